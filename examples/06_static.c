/* A private copy of npuprof: NPUPROF_STATIC keeps all names and an arena inside this file.
   The arena is too small on purpose, so the program shows how losses are counted.
   SPDX-License-Identifier: MIT
   Build: cc -I.. 06_static.c */
#define NPUPROF_STATIC
#define NPUPROF_ARENA_BYTES (64 * 1024)
#include "npuprof.h"

int main(void)
{
    npuprof_stats stats;
    npuprof_start(1);
    for (int i = 0; i < 10000; i++) {
        PROF_SCOPE("more than fits");
    }
    npuprof_get_stats(&stats);
    printf("%llu recorded + %llu lost = 10000 executed\n", (unsigned long long)stats.recorded,
           (unsigned long long)stats.lost);
    return npuprof_dump("static.json");
}

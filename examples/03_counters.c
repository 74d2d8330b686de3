/* Values over time: counters, moments, a memory pool, and facts for the file's metadata.
   SPDX-License-Identifier: MIT
   Build: cc -I.. 03_counters.c */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

int main(void)
{
    static const char *const layers[] = { "conv1", "conv2", "dense" };
    unsigned long long used = 1 << 20, allocated = 4 << 20;
    npuprof_metadata("model", "example");
    npuprof_start(1);
    for (int i = 0; i < 3; i++) {
        PROF_SCOPE("layer");
        PROF_COUNTER("layer index", i);                     /* an integer stays an integer */
        PROF_COUNTER("temperature", 40.5 + i);
        used += 700000;
        if (used > allocated) allocated *= 2;
        PROF_MEMORY(NULL, used, allocated, layers[i]);      /* NULL: the host's pool */
    }
    /* PROF_ARG takes the type of the value. PROF_BOOL says it: in C, `true` is an int. */
    PROF_INSTANT("events", "done", PROF_ARGS(PROF_ARG("reason", "no more layers"), PROF_BOOL("ok", true)));
    npuprof_print_memory(stdout);
    return npuprof_dump("counters.json");
}

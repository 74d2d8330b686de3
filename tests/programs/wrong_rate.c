/* Records on a clock of its own that runs by 500 ppm beside the rate it states. Usage: wrong_rate PATH...
   SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <time.h>

static uint64_t os_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t wrong_clock(void) { return os_ns(CLOCK_MONOTONIC) / 2000 * 2001; }
#define NPUPROF_NOW() wrong_clock()
#define NPUPROF_NOW_HZ 1000000000
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

int main(int argc, char **argv)
{
    npuprof_start(1);
    { PROF_SCOPE("early"); }
    nanosleep(&(struct timespec){ .tv_nsec = 400000000 }, NULL);
    for (int i = 0; i < 50; i++) {
        PROF_SCOPE_ARGS("", "late", PROF_ARGS(PROF_INT("boottime_ns", (int64_t)os_ns(CLOCK_BOOTTIME))));
    }
    npuprof_stop();
    for (int i = 1; i < argc; i++)
        if (npuprof_dump(argv[i]) != NPUPROF_OK) return 1;
    return 0;
}

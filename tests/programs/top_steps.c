/* Records what it is told, into a mapped arena. Usage: top_steps ARENA BYTES keep-oldest|keep-newest|stream
   Each line of the standard input is a number N: it records N spans "fast", one span "slow" of 20 ms, one
   execution of 10 ms on a device, and one instant; one line "done" is the answer. It ends with its input.
   SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "npuprof.h"
#include "npuprof_npu.h"

static npuprof_npu npu;

static uint64_t read_ticks(void *user)
{
    struct timespec t;
    (void)user;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pause_ms(long ms)
{
    const struct timespec t = { 0, ms * 1000000 };
    nanosleep(&t, NULL);
}

static void *step(void *count)
{
    for (long n = *(long *)count; n > 0; n--) { PROF_SCOPE("fast"); }
    { PROF_SCOPE("slow\nname"); pause_ms(20); }
    WITH_NPU_PROFILER(&npu, 0, "Execution", "NPU", PROF_NO_ARGS, { pause_ms(10); });
    PROF_INSTANT("c", "told");
    return NULL;
}

int main(int argc, char **argv)
{
    static npuprof_desc desc;
    npuprof_npu_desc device;
    long count;
    if (argc != 4) return 2;
    if (!strcmp(argv[3], "stream")) {
        desc.when_full = NPUPROF_STREAM;
        desc.output_path = argv[1];
    } else {
        desc.when_full = !strcmp(argv[3], "keep-newest") ? NPUPROF_KEEP_NEWEST : NPUPROF_KEEP_OLDEST;
        desc.arena_path = argv[1];
        desc.arena_bytes = strtoul(argv[2], NULL, 10);
    }
    memset(&device, 0, sizeof device);
    device.name = "npu0";
    device.read_ticks = read_ticks;
    device.counter.hz = 1000000000;
    if (npuprof_init(&desc) != NPUPROF_OK || npuprof_start(1) != NPUPROF_OK) return 2;
    if (npuprof_npu_open(&npu, &device) != NPUPROF_OK) return 2;
    PROF_SCOPE("whole run");
    while (scanf("%ld", &count) == 1) {
        pthread_t other;                   /* steps take turns between two threads */
        if (count % 2) pthread_create(&other, NULL, step, &count), pthread_join(other, NULL);
        else step(&count);
        puts("done");
        fflush(stdout);
    }
    return 0;
}

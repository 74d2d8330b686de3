/* An NPU without hardware: an array plays its BAR, with a 64-bit tick counter in two words at offset 0x10. Replace the array by your
   driver's mapping (desc.bar), or by a path such as /sys/bus/pci/devices/0000:01:00.0/resource0 (desc.resource).
   SPDX-License-Identifier: MIT
   Build: cc -I.. 07_npu_on_an_array.c */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"

#include <time.h>

static uint32_t bar[1024];

/* The device's clock: 25 ticks a microsecond. On real hardware it moves by itself. */
static void tick(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t ticks = (uint64_t)now.tv_sec * 25000000 + (uint64_t)now.tv_nsec / 40;
    bar[4] = (uint32_t)ticks;
    bar[5] = (uint32_t)(ticks >> 32);
}
static void run_kernel(void)
{
    const uint32_t start = bar[4];
    while (bar[4] - start < 2500) tick();   /* 100 microseconds */
}

int main(void)
{
    static npuprof_npu npu;
    npuprof_npu_desc desc = { 0 };
    desc.name = "array";
    desc.bar = bar;
    desc.bar_bytes = sizeof bar;
    desc.counter.lo_offset = 0x10;
    desc.counter.hi_offset = 0x14;
    desc.counter.lag_ns = 10000;            /* software moves this counter: a read may be a little old */

    npuprof_start(1);
    tick();
    npuprof_result result = npuprof_npu_open(&npu, &desc);
    for (int i = 0; i < 10 && result == NPUPROF_OK; i++) {
        tick();
        WITH_NPU_PROFILER(&npu, 0, "conv1", "NPU", PROF_ARGS(PROF_INT("i", i)), {
            run_kernel();                   /* no completion ring: the block waits for the kernel */
        });
    }
    tick();
    npuprof_npu_close(&npu);                /* takes the last clock anchor */
    if (result != NPUPROF_OK) puts(npuprof_result_string(result));
    npuprof_print_npu_operators(stdout);
    return result != NPUPROF_OK ? (int)result : (int)npuprof_dump("npu_on_an_array.json");
}

/* An NPU without hardware: a function plays its tick counter. With a device, say instead where the counter is: desc.bar (your driver's
   mapping) or desc.resource (a path such as /sys/bus/pci/devices/0000:01:00.0/resource0), desc.counter.lo_offset and desc.counter.hi_offset.
   SPDX-License-Identifier: MIT
   Build: cc -I.. 07_npu.c */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"

#include <time.h>

/* The device's clock: 25 ticks a microsecond.
   Why not an array as desc.bar that the program moves from time to time: between two moves the counter is late, by more than any bound
   while the one who moves it is off the CPU. desc.counter.lag_ns must say how late; the device spans are that much less certain. */
static uint64_t read_ticks(void *unused)
{
    struct timespec now;
    (void)unused;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 25000000 + (uint64_t)now.tv_nsec / 40;
}
static void run_kernel(void)
{
    const uint64_t start = read_ticks(NULL);
    while (read_ticks(NULL) - start < 2500) {}      /* 100 microseconds */
}

int main(void)
{
    static npuprof_npu npu;
    npuprof_npu_desc desc = { 0 };
    desc.name = "npu0";
    desc.read_ticks = read_ticks;

    npuprof_start(1);
    npuprof_result result = npuprof_npu_open(&npu, &desc);
    for (int i = 0; i < 10 && result == NPUPROF_OK; i++) {
        WITH_NPU_PROFILER(&npu, 0, "conv1", "NPU", PROF_ARGS(PROF_INT("i", i)), {
            run_kernel();                           /* no completion ring: the block waits for the kernel */
        });
    }
    npuprof_npu_close(&npu);                        /* takes the last clock anchor */
    if (result != NPUPROF_OK) puts(npuprof_result_string(result));
    npuprof_print_npu_operators(stdout);
    return result != NPUPROF_OK ? (int)result : (int)npuprof_dump("npu.json");
}

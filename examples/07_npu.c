/* An NPU without hardware: a function plays the device's tick counter.
   With a real device, leave desc.read_ticks out and say where the counter is:
     desc.bar            your driver's mapping, with desc.bar_bytes
     desc.resource       or a path, such as /sys/bus/pci/devices/0000:01:00.0/resource0
     desc.counter.lo_offset, desc.counter.hi_offset
   SPDX-License-Identifier: MIT
   Build: cc -I.. 07_npu.c */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"

#include <time.h>

/* The device's clock: 25 ticks a microsecond.
   Why a function, and not an array that a thread updates: between two updates the array is late, and while
   that thread is off the CPU it is late without limit. Such a counter needs desc.counter.lag_ns, which says
   how late it may be. The error of every device span grows by that. */
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
    while (read_ticks(NULL) - start < 2500) { }     /* 100 microseconds */
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
        WITH_NPU_PROFILER(&npu, 0, "conv1", "NPU", PROF_ARGS(PROF_ARG("i", i)), {
            run_kernel();                           /* no completion ring: the block waits for the kernel */
        });
    }
    npuprof_npu_close(&npu);                        /* takes the last clock anchor */
    if (result != NPUPROF_OK) puts(npuprof_result_string(result));
    npuprof_print_npu_operators(stdout);
    return result != NPUPROF_OK ? (int)result : (int)npuprof_dump("npu.json");
}

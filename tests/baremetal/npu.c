/* Drives devices with counters of many kinds from a bare machine, all on a clock of its own: npu.img is its
   image, npu.json its own JSON. The devices count 3 ticks for every 4 of the clock, from DEVICE_ZERO at its
   start, and the event "truth" says what two of them add: so whoever reads the trace knows where each span
   truly lies.
   SPDX-License-Identifier: MIT */
#include <stdint.h>

#define DEVICE_ZERO 0x1FFFFF000u
static uint64_t ticks = 0xFFFF0000u;               /* and so is the clock */
static volatile uint32_t registers[6];
static uint64_t skew, reset_at;                    /* of the split counter; of the function */
static uint64_t device_ticks(void) { return DEVICE_ZERO + (ticks - 0xFFFF0000u) * 3 / 4; }

static uint32_t clock_now(void)
{
    ticks += 8;
    const uint64_t d = device_ticks();
    registers[0] = ~(uint32_t)d & 0xFFFFFF;        /* 24 bits, counting down */
    /* two words, not latched: the clock moves them between two loads */
    registers[1] = (uint32_t)(d + skew);
    registers[2] = (uint32_t)((d + skew) >> 32);
    return (uint32_t)ticks;
}
#define NPUPROF_NOW() clock_now()
#define NPUPROF_NOW_HZ 100000000u
#define NPUPROF_FREESTANDING
static uint32_t context;                           /* 1: the interrupt */
#define NPUPROF_CONTEXTS 2
#define NPUPROF_CONTEXT() context
#define NPUPROF_ARENA_BYTES 7168
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#include "port.h"

static void wait(uint32_t time)
{
    ticks += time;
    (void)clock_now();
}

/* A device behind a function, which may be reset. */
static uint64_t read_function(void *user)
{
    (void)user;
    return device_ticks() - reset_at;
}

static int waits;
static int wait_for(void *user)
{
    (void)user;
    waits++;
    return 0;
}

static npuprof_npu down, split, function;
static int failed;
static void check(int number, bool is)
{
    if (!is && !failed) failed = number;
}

static npuprof_result opened(npuprof_npu *npu, npuprof_npu_desc *d) { return npuprof_npu_open(npu, d); }

static void refusals(void)
{
    static const npuprof_npu_desc empty;
    npuprof_npu_desc d = empty;
    d.counter.lo_offset = 3 * 4;
    d.counter.hi_offset = 4 * 4;
    check(2, opened(&down, &d) == NPUPROF_ERR_NPU_SOURCE);
    d.resource = "/sys/bus/pci/devices/0000:01:00.0/resource0";
    check(3, opened(&down, &d) == NPUPROF_ERR_UNSUPPORTED);
    d.resource = NULL;
    d.bar = (const void *)(uintptr_t)registers;
    d.bar_bytes = sizeof registers;
    registers[3] = registers[4] = 0xFFFFFFFFu;
    check(4, opened(&down, &d) == NPUPROF_ERR_NPU_DEAD);
    registers[3] = registers[4] = 0;
    ticks += 100000;                     /* the counter of 24 bits wraps */
    d.ring.count = 1;
    check(5, opened(&down, &d) == NPUPROF_ERR_UNSUPPORTED);
    d.ring.count = 0;
    d.counter.hi_offset = sizeof registers;
    check(6, opened(&down, &d) == NPUPROF_ERR_NPU_RANGE);
    d.pmu_count = 1;
    check(7, opened(&down, &d) != NPUPROF_OK && !down.number_);
}

/* Begun by the task, ended by an interrupt, in another order than begun; more than fit; ended twice. */
static void calls(char *name)
{
    uint32_t handles[5];
    const uint32_t reads = split.mmio_reads;
    for (int i = 0; i < 5; i++) {
        name[0] = (char)('v' + i);
        handles[i] = npuprof_npu_begin(&split, (uint64_t)i, name, "NPU", PROF_ARGS(PROF_INT("i", i)));
        wait(500);
    }
    check(40, handles[0] && handles[3] && !handles[4]);
    context = 1;
    check(41, npuprof_npu_end(&down, handles[2]) == NPUPROF_ERR_ARGUMENT);
    for (int i = 2; i >= 0; i--) {
        check(42, npuprof_npu_end_args(&split, handles[i], PROF_ARGS(PROF_UINT("macs", i))) == NPUPROF_OK);
        wait(300);
    }
    check(43, npuprof_npu_end(&split, handles[1]) == NPUPROF_ERR_ARGUMENT);
    context = 0;
    check(44, npuprof_npu_end(&split, handles[3]) == NPUPROF_OK && split.mmio_reads - reads == 8);
    check(45, npuprof_npu_end(&split, 0) == NPUPROF_OK && npuprof_npu_end(&split, 1) != NPUPROF_OK);
}

int main(void)
{
    static npuprof_npu_desc d;
    const npuprof_sink sink = { port_write, NULL };
    char name[] = "a name of run time";
    uint64_t t = 0, again;
    npuprof_start(1);
    refusals();
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    d.counter.big_endian = true;
#endif
    d.name = "down";
    d.bar = (const void *)(uintptr_t)registers;
    d.bar_bytes = sizeof registers;
    d.counter.bits = 24;
    d.counter.counts_down = true;
    check(10, opened(&down, &d) == NPUPROF_OK);
    d.name = "split";
    d.counter.bits = 64;
    d.counter.counts_down = false;
    d.counter.hz = 75000000;
    d.counter.lo_offset = 4;
    d.counter.hi_offset = 8;
    /* The high word is loaded as 3; before the low one, both change. */
    skew = ((uint64_t)4 << 32) - 3 - device_ticks();
    registers[2] = 3;
    check(11, opened(&split, &d) == NPUPROF_OK);
    check(12, npuprof_npu_read(&split, &t) == NPUPROF_OK && t >> 32 == 4 && t == device_ticks() + skew - 6);
    d.name = "function";
    d.bar = NULL;
    d.bar_bytes = 0;
    d.read_ticks = read_function;
    d.counter.lag_ns = 300;
    d.wait = wait_for;
    d.wait_around = true;
    check(13, opened(&function, &d) == NPUPROF_OK);
    {
        PROF_RECORD("trace");
        wait(100);
        for (int i = 0; i < 3; i++) {
            PROF_INFERENCE("Inference");
            uint32_t reads = down.mmio_reads;
            WITH_NPU_PROFILER(&down, 0, "wraps", "NPU", PROF_ARGS(PROF_INT("i", i)), wait(3000));
            check(20, down.mmio_reads - reads == 2);
            reads = split.mmio_reads;
            WITH_NPU_PROFILER(&split, i, name, "NPU", PROF_NO_ARGS, {
                wait(700);
                { PROF_SCOPE("on the host"); wait(300); }
            });
            check(21, split.mmio_reads - reads == 2);
            WITH_NPU_PROFILER(&function, (void *)(uintptr_t)0x1234, "function", "NPU", PROF_NO_ARGS,
                              wait(123));
            name[0]++;
            wait(200000);
        }
        check(22, waits == 6);
        /* a second: more than four periods of the counter of 24 bits, and no read in between */
        wait(100000000);
        WITH_NPU_PROFILER(&down, 0, "after wraps", NULL, PROF_NO_ARGS, wait(5000));
        WITH_NPU_PROFILER(&down, 0, "over wraps", NULL, PROF_NO_ARGS, wait(60000000));
        check(23, npuprof_npu_read(&down, &t) == NPUPROF_OK && t >= (uint32_t)5 << 24);
        again = device_ticks() & 0xFFFFFF;
        check(24, npuprof_npu_extend(&down, ~again) >= t);
        /* The device function is reset: no span, and why. */
        WITH_NPU_PROFILER(&function, 0, "reset", "NPU", PROF_NO_ARGS,
                          wait(4000); reset_at = device_ticks() - 5000);
        wait(1000);
        WITH_NPU_PROFILER(&function, 0, "after reset", "NPU", PROF_NO_ARGS, wait(4000));
        /* The split counter dies, and lives. */
        const void *was = (const void *)(uintptr_t)split.bar_;
        split.bar_ = (const volatile unsigned char *)registers + 8;
        WITH_NPU_PROFILER(&split, 0, "dead", "NPU", PROF_NO_ARGS, wait(4000));
        split.bar_ = (const volatile unsigned char *)was;
        check(25, npuprof_npu_read(&split, &t) == NPUPROF_OK);
        npuprof_npu_span(&split, 2, "own stamps", "dma", t - 600, t - 300, PROF_ARGS(PROF_INT("bytes", 64)));
        calls(name);
        /* An interrupt that comes while the device is read. */
        split.lock_ = 1;
        WITH_NPU_PROFILER(&split, 0, "busy", "NPU", PROF_NO_ARGS, wait(40));
        split.lock_ = 0;
    }
    PROF_INSTANT("truth", "truth", PROF_ARGS(PROF_UINT("split", skew), PROF_UINT("reset", reset_at)));
    npuprof_stop();
    { WITH_NPU_PROFILER(&down, 0, "stopped", "NPU", PROF_NO_ARGS, wait(1)); }
    npuprof_npu_close(&down);
    npuprof_npu_close(&split);
    npuprof_npu_close(&function);
    npuprof_npu_close(&function);
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    check(30, stats.lost == 0);
    port_open("npu.img");
    check(31, npuprof_write_image(sink) == NPUPROF_OK);
    port_close();
#ifndef NPUPROF_NO_JSON
    port_open("npu.json");
    check(32, npuprof_write_json(sink) == NPUPROF_OK);
    port_close();
#endif
    return failed;
}

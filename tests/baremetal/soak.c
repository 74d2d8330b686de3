/* A ring of 4 KiB that records SPANS spans, half before and half after SECONDS in which the program sleeps.
   Before the last two spans its clock stands for a third of that. The clock has 24 bits (AVR: 16), and a tick
   hook reads it in each half of its period. soak.img is the image; soak.log has four words of 64 bits: spans;
   when the last two began and when the trace began, by another timer; that timer's rate.
   SPDX-License-Identifier: MIT */
#include <stdint.h>

#ifndef SPANS
#define SPANS 1000000
#endif
#ifndef SECONDS
#define SECONDS 10800u
#endif
#include "soak.h"
#define NPUPROF_NOW() soak_clock()
#define NPUPROF_FREESTANDING
#define NPUPROF_ARENA_BYTES 4096
#define NPUPROF_WHEN_FULL NPUPROF_KEEP_NEWEST
#define NPUPROF_NO_JSON
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#define PORT_TICK soak_ticked
#include "port.h"

static uint32_t spans;
static volatile bool clock_stands;
void soak_ticked(void)
{
    if (!clock_stands) npuprof_tick();
}

static void record(uint32_t count)
{
    for (uint32_t i = 0; i < count; i += 2) {
        { PROF_SCOPE_ARGS("c", "numbered", PROF_ARGS(PROF_UINT("n", spans))); }
        { PROF_SCOPE("plain"); }
        spans += 2;
    }
}

static void sleep_for(uint64_t seconds)
{
    const uint64_t end = soak_truth() + seconds * SOAK_TRUTH_HZ;
    while (soak_truth() < end) soak_sleep();
}

/* Low power: the clock stands, and what woke the program tells how long. */
static void sleep_without_clock(uint64_t seconds)
{
    const uint64_t before = soak_truth();
    clock_stands = true;
    soak_stop_clock();
    sleep_for(seconds);
    soak_go_on();
    const uint64_t ticks = (soak_truth() - before) * (NPUPROF_NOW_HZ / SOAK_TRUTH_HZ);
    clock_stands = false;
    npuprof_slept(ticks);
}

int main(void)
{
    const npuprof_sink sink = { port_write, NULL };
    uint64_t log[4];
    npuprof_stats stats;
    soak_set_up();
    log[2] = soak_truth();
    npuprof_start(1);
    record(SPANS / 2);
    sleep_for(SECONDS);
    record(SPANS / 2 - 2);
    sleep_without_clock(SECONDS / 3);
    log[1] = soak_truth();
    record(2);
    npuprof_get_stats(&stats);
    soak_end();
    log[0] = spans;
    log[3] = SOAK_TRUTH_HZ;
    port_open("soak.log");
    port_write(NULL, log, sizeof log);
    port_close();
    port_open("soak.img");
    const npuprof_result result = npuprof_write_image(sink);
    port_close();
    if (result != NPUPROF_OK) return 1;
    return stats.recorded + stats.lost == spans ? 0 : 2;
}

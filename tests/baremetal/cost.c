/* Instructions of a whole span on a Cortex-M4, in virtual time: SysTick runs at 25 MHz, an instruction takes
   32 ns (-icount shift=5). Exit code: the instructions, those that read the clock twice and make 47 bits of
   its 32 excluded. With -DSWITCHES of npuprof_switch(), its one clock read included.
   SPDX-License-Identifier: MIT */
#include <stdint.h>

volatile uint32_t clock_register;
#define NPUPROF_NOW() clock_register
#define NPUPROF_NOW_HZ 25000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_ARENA_BYTES 8192
#ifdef SWITCHES
#define NPUPROF_CONTEXTS 4
#endif
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "port.h"

enum { SPANS = 500 };
static volatile int work;
static uint32_t elapsed(uint32_t since) { return (since - *(volatile uint32_t *)0xE000E018) & 0xFFFFFF; }

/* Why functions of their own: what stands around a loop changes the registers that it gets. */
static __attribute__((noinline)) uint32_t ticks_of_nothing(void)
{
    const uint32_t start = *(volatile uint32_t *)0xE000E018;
    for (int i = 0; i < SPANS; i++) work = i;
    return elapsed(start);
}

static __attribute__((noinline)) uint32_t ticks_of_reads(void)
{
    const uint32_t start = *(volatile uint32_t *)0xE000E018;
    for (int i = 0; i < SPANS; i++) {
        (void)npuprof_fw_stamp_(npuprof_fw_arena_);
        work = i;
        (void)npuprof_fw_stamp_(npuprof_fw_arena_);
    }
    return elapsed(start);
}

static __attribute__((noinline)) uint32_t ticks_of_spans(void)
{
    const uint32_t start = *(volatile uint32_t *)0xE000E018;
    for (int i = 0; i < SPANS; i++) {
#ifdef SWITCHES
        npuprof_switch(1, 2u + (i & 1));
#else
        PROF_SCOPE("span");
#endif
        work = i;
    }
    return elapsed(start);
}

int main(void)
{
    npuprof_start(1);
    *(volatile uint32_t *)0xE000E014 = 0xFFFFFF;
    *(volatile uint32_t *)0xE000E018 = 0;
    *(volatile uint32_t *)0xE000E010 = 5;
    while (!*(volatile uint32_t *)0xE000E018) { }
    const uint32_t empty = ticks_of_nothing(), reads = ticks_of_reads(), spans = ticks_of_spans();
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    if (stats.recorded != SPANS || empty >= reads) return 255;
#ifdef SWITCHES
    return (int)(((spans - empty) * 40 + 32 * SPANS - 1) / (32 * SPANS));
#endif
    return (int)(((spans - reads) * 40 + 32 * SPANS - 1) / (32 * SPANS));
}

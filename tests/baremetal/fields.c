/* Instructions of each record, clock reads included, in virtual time: an instruction takes 32 ns (-icount
   shift=5), a tick of SysTick TICK_PS ps. The file fields.txt has a line for each: its name and the
   instructions. A ring runs for a lap before.
   SPDX-License-Identifier: MIT */
#include <stdint.h>

volatile uint32_t clock_register;
#define NPUPROF_NOW() clock_register
#define NPUPROF_NOW_HZ 25000000u
#define NPUPROF_FREESTANDING
#ifndef NPUPROF_ARENA_BYTES
#define NPUPROF_ARENA_BYTES 12288
#endif
#ifndef TICK_PS
#define TICK_PS 62500                      /* of the Cortex-M0 of a microbit */
#endif
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "port.h"

enum { TIMES = 24 };
static volatile int work;
static uint32_t elapsed(uint32_t since) { return (since - *(volatile uint32_t *)0xE000E018) & 0xFFFFFF; }

#define TIMED(name, record)                                                     \
    static __attribute__((noinline)) uint32_t ticks_of_##name(void)             \
    {                                                                           \
        const uint32_t start = *(volatile uint32_t *)0xE000E018;                \
        for (int i = 0; i < TIMES; i++) {                                       \
            record;                                                             \
            work = i;                                                           \
        }                                                                       \
        return elapsed(start);                                                  \
    }
TIMED(nothing, (void)0)
TIMED(span, PROF_SCOPE("span"))
TIMED(span_with_one, PROF_SCOPE_ARGS("c", "span", PROF_ARGS(PROF_INT("n", work))))
TIMED(counter, PROF_COUNTER("counter", work))
TIMED(instant, PROF_INSTANT("c", "instant"))
TIMED(instant_with_one, PROF_INSTANT("c", "instant", PROF_ARGS(PROF_UINT("n", (uint32_t)work))))
TIMED(span_with_two, PROF_SCOPE_ARGS("c", "span", PROF_ARGS(PROF_INT("n", work), PROF_INT("m", work))))
static void by_hand(void)
{
    PROF_BEGIN("c", "by hand");
    PROF_END();
}

TIMED(begin_end, by_hand())
TIMED(switch, npuprof_switch(0, 5))
TIMED(count, npuprof_count(9, (uint32_t)work))
TIMED(name, npuprof_name(20, i & 1 ? "dma channel" : "the other"))
TIMED(metadata, npuprof_metadata("key", i & 1 ? "value" : "other"))

static uint32_t instructions(uint32_t ticks)
{
    return (ticks * (TICK_PS / 100) + 320 * TIMES - 1) / (320 * TIMES);
}

static void line(const char *name, uint32_t ticks)
{
    char digits[5] = "0000\n";
    size_t length = 0;
    (void)npuprof_flush();                 /* a stream needs room for the next */
    while (name[length]) length++;
    port_write(NULL, name, length);
    for (int i = 3; i >= 0; i--, ticks /= 10) digits[i] = (char)('0' + ticks % 10);
    port_write(NULL, digits, 5);
}

int main(void)
{
    npuprof_start(1);
    *(volatile uint32_t *)0xE000E014 = 0xFFFFFF;
    *(volatile uint32_t *)0xE000E018 = 0;
    *(volatile uint32_t *)0xE000E010 = 5;
    while (!*(volatile uint32_t *)0xE000E018) { }
    const uint32_t nothing = ticks_of_nothing();
    for (int i = 0; NPUPROF_RING_ && i < NPUPROF_ARENA_BYTES / 16; i++) {
        PROF_INSTANT("c", "lap");
        if (i % 64 == 0) (void)npuprof_flush();
    }
    port_open("fields.txt");
#define LINE(name) line(#name " ", instructions(ticks_of_##name() - nothing))
    LINE(span);
    LINE(span_with_one);
    LINE(counter);
    LINE(instant);
    LINE(instant_with_one);
    LINE(span_with_two);
    LINE(begin_end);
    LINE(switch);
    LINE(count);
    LINE(name);
    LINE(metadata);
    port_close();
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    return stats.recorded && (NPUPROF_RING_ || stats.recorded == 9 * TIMES) &&
           !stats.lost_by_cause[NPUPROF_LOST_NOTES] ? 0 : 1;
}

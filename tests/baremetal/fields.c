/* Instructions of each record on a Cortex-M0, clock reads included, in virtual time: SysTick runs at 16 MHz,
   an instruction takes 32 ns (-icount shift=5). The file fields.txt has a line for each: its name and the
   instructions.
   SPDX-License-Identifier: MIT */
#include <stdint.h>

volatile uint32_t clock_register;
#define NPUPROF_NOW() clock_register
#define NPUPROF_NOW_HZ 25000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_ARENA_BYTES 12288
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "port.h"

enum { TIMES = 64 };
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

static void line(const char *name, uint32_t ticks)
{
    char digits[5] = "0000\n";
    size_t length = 0;
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
    port_open("fields.txt");
#define LINE(name) line(#name " ", ((ticks_of_##name() - nothing) * 125 + 64 * TIMES - 1) / (64 * TIMES))
    LINE(span);
    LINE(span_with_one);
    LINE(counter);
    LINE(instant);
    LINE(instant_with_one);
    port_close();
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    return stats.recorded == 5 * TIMES && !stats.lost ? 0 : 1;
}

/* Instructions and stack of each record, clock reads included, in virtual time: an instruction takes 32 ns
   (-icount shift=5), a tick of the processor's own timer TICK_PS ps. The file fields.txt has a line for each:
   its name, the instructions, the bytes of stack that it takes the first time below a function that records
   nothing. A ring runs for a lap before.
   SPDX-License-Identifier: MIT */
#include <stdint.h>

volatile uint32_t clock_register;
#define NPUPROF_NOW() clock_register
#define NPUPROF_NOW_HZ 25000000u
#define NPUPROF_FREESTANDING
#ifndef NPUPROF_ARENA_BYTES
#define NPUPROF_ARENA_BYTES 12288
#endif
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#include "port.h"

enum { TIMES = 12, LAP = NPUPROF_ARENA_BYTES / 16, PART = 16 };
static volatile int work;
static const char *volatile text = "a text";
static npuprof_npu npu;

/* A timer that counts down, and where the stack ends. */
#if defined(__arm__)
#ifndef TICK_PS
#define TICK_PS 62500                      /* of the Cortex-M0 of a microbit */
#endif
static void start_timer(void)
{
    *(volatile uint32_t *)0xE000E014 = 0xFFFFFF;
    *(volatile uint32_t *)0xE000E018 = 0;
    *(volatile uint32_t *)0xE000E010 = 5;
    while (!*(volatile uint32_t *)0xE000E018) { }
}

static inline uint32_t timer(void) { return *(volatile uint32_t *)0xE000E018; }
#define STACK_POINTER(p) __asm__ volatile("mov %0, sp" : "=r"(p))
#else /* RISC-V */
#define TICK_PS 1000
static void start_timer(void) {}

static inline uint32_t timer(void)
{
    uint32_t cycles;
    __asm__ volatile("csrr %0, mcycle" : "=r"(cycles));
    return -cycles;
}
#define STACK_POINTER(p) __asm__ volatile("mv %0, sp" : "=r"(p))
#endif /* !__arm__: RISC-V */

#define TIMED(name, record)                                                     \
    static __attribute__((noinline)) void once_##name(int i)                    \
    {                                                                           \
        record;                                                                 \
        work = i;                                                               \
    }                                                                           \
    static __attribute__((noinline)) uint32_t ticks_of_##name(void)             \
    {                                                                           \
        const uint32_t start = timer();                                         \
        for (int i = 0; i < TIMES; i++) {                                       \
            record;                                                             \
            work = i;                                                           \
        }                                                                       \
        return (start - timer()) & 0xFFFFFF;                                    \
    }
#define ARG(key) PROF_INT(key, work)
TIMED(nothing, (void)0)
TIMED(span, PROF_SCOPE("span"))
TIMED(span_with_one, PROF_SCOPE_ARGS("c", "span", PROF_ARGS(ARG("n"))))
TIMED(span_with_two, PROF_SCOPE_ARGS("c", "span", PROF_ARGS(ARG("n"), ARG("m"))))
TIMED(span_with_four, PROF_SCOPE_ARGS("c", "span", PROF_ARGS(ARG("n"), ARG("m"), ARG("o"), ARG("p"))))
TIMED(span_with_text, PROF_SCOPE_ARGS("c", "span", PROF_ARGS(PROF_STR("s", text))))
TIMED(counter, PROF_COUNTER("counter", work))
TIMED(instant, PROF_INSTANT("c", "instant"))
TIMED(instant_with_one, PROF_INSTANT("c", "instant", PROF_ARGS(PROF_UINT("n", (uint32_t)work))))
TIMED(flow, PROF_FLOW_OUT((uint32_t)work))
static void by_hand(void)
{
    PROF_BEGIN("c", "by hand");
    PROF_END();
}

static void by_text(void)
{
    PROF_BEGIN("c", text);
    PROF_END();
}

TIMED(begin_end, by_hand())
TIMED(begin_end_of_text, by_text())
TIMED(switch, npuprof_switch(0, 5))
TIMED(count, npuprof_count(9, (uint32_t)work))
TIMED(name, npuprof_name(20, i & 1 ? "dma channel" : "the other"))
TIMED(metadata, npuprof_metadata("key", i & 1 ? "value" : "other"))
TIMED(kernel, WITH_NPU_PROFILER(&npu, 0, "kernel", "NPU", PROF_NO_ARGS, (void)0))

/* So many cells as a part has; and that they are handed over. */
static void part(void)
{
    for (int i = 0; i < PART; i++) PROF_INSTANT("c", "part");
}

TIMED(part, part())
TIMED(part_and_poll, part(); (void)npuprof_poll())
TIMED(poll, (void)npuprof_poll())

static uint32_t instructions(uint32_t ticks)
{
    return (ticks * (TICK_PS / 100) / 10 + 16 * TIMES) / (32 * TIMES);
}

enum { WORDS = 256 };
static __attribute__((noinline)) uint32_t stack_of(void (*once)(int))
{
    volatile uint32_t *sp;
    int n = WORDS;
    STACK_POINTER(sp);
    for (int i = 1; i <= WORDS; i++) sp[-i] = 0xA5C3A5C3u;
    once(1);
    while (n && sp[-n] == 0xA5C3A5C3u) n--;
    return (uint32_t)n * 4;
}

static void figure(uint32_t n)
{
    char digits[6] = "     ";
    for (int i = 4; i >= 0 && n; i--, n /= 10) digits[i] = (char)('0' + n % 10);
    port_write(NULL, digits, 5);
}

static void line(const char *name, uint32_t ticks, void (*once)(int), void (*nothing)(int))
{
    size_t length = 0;
    (void)npuprof_flush();                 /* a stream needs room for the next */
    while (name[length]) length++;
    port_write(NULL, name, length);
    figure(instructions(ticks));
    figure(stack_of(once) - stack_of(nothing));
    port_write(NULL, "\n", 1);
    (void)npuprof_flush();
}

int main(void)
{
    static volatile uint32_t bar[4];
    static npuprof_npu_desc desc;
    npuprof_start(1);
    start_timer();
    desc.bar = bar;
    desc.bar_bytes = sizeof bar;
    desc.counter.hi_offset = 4;
    if (npuprof_npu_open(&npu, &desc) != NPUPROF_OK) return 2;
    const uint32_t nothing = ticks_of_nothing();
    for (int i = 0; NPUPROF_RING_ && i < LAP; i++) {
        PROF_INSTANT("c", "lap");
        if (i % 64 == 0) (void)npuprof_flush();
    }
    port_open("fields.txt");
#define LINE(name) line(#name " ", ticks_of_##name() - nothing, once_##name, once_nothing)
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
    LINE(flow);
    LINE(span_with_four);
    LINE(span_with_text);
    LINE(begin_end_of_text);
    LINE(kernel);
    (void)once_part;
#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
    LINE(poll);
    const uint32_t parts = ticks_of_part();
    (void)npuprof_flush();
    line("part ", ticks_of_part_and_poll() - parts, once_part_and_poll, once_nothing);
#else
    (void)once_poll, (void)once_part_and_poll;
    (void)ticks_of_poll, (void)ticks_of_part, (void)ticks_of_part_and_poll;
#endif
    port_close();
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    return stats.lost_by_cause[NPUPROF_LOST_NOTES] || (!NPUPROF_RING_ && stats.lost) || !stats.recorded;
}

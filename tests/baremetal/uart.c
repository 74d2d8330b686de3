/* A Cortex-M3 streams what it records over a serial line: npuprof_poll() in the main loop, two contexts, and
   spans that are open when their cell is sent.
   SPDX-License-Identifier: MIT */
#include <stdint.h>

static volatile uint32_t reads;
static uint32_t read_clock(void) { return reads += 7; }
static volatile uint32_t task;
#define NPUPROF_NOW() read_clock()
#define NPUPROF_NOW_HZ 1000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_CONTEXT() task
#define NPUPROF_CONTEXTS 2
#define NPUPROF_ARENA_BYTES 4096
#define NPUPROF_WHEN_FULL NPUPROF_STREAM
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "port.h"

#ifndef SPANS
#define SPANS 300
#endif
/* UART0 of the board, a CMSDK UART. */
#define UART(offset) (*(volatile uint32_t *)(0x40004000 + (offset)))

/* Takes what the line takes now. */
static int put(void *user, const void *bytes, size_t count)
{
    const uint8_t *p = (const uint8_t *)bytes;
    size_t n = 0;
    (void)user;
    for (; n < count && !(UART(4) & 1); n++) UART(0) = p[n];
    return n == count ? 0 : -1 - (int)n;
}

static void drain(npuprof_result (*hand_over)(void))
{
    while (hand_over() == NPUPROF_ERR_BUSY) { }
}

static void step(uint32_t i)
{
    PROF_SCOPE("step");
    {
        PROF_SCOPE_ARGS("c", "with arguments",
                        PROF_ARGS(PROF_INT("i", i), PROF_STR("text", "a text of some length")));
        if (i % 16 == 0) drain(npuprof_flush);         /* both are sent while they are open */
    }
    PROF_COUNTER("i", i);
    task = 1;
    { PROF_SCOPE("other"); }
    task = 0;
}

int main(void)
{
    npuprof_desc desc;
    for (size_t i = 0; i < sizeof desc; i++) ((volatile uint8_t *)&desc)[i] = 0;
    desc.when_full = NPUPROF_STREAM;
    desc.sink.write = put;
    UART(16) = 16;                                     /* BAUDDIV; the relay paces */
    UART(8) = 1;                                       /* CTRL: transmit */
    if (npuprof_init(&desc) != NPUPROF_OK || npuprof_start(1) != NPUPROF_OK) return 1;
    PROF_THREAD_NAME("main loop");
    npuprof_metadata("board", "an emulated one");
    {
        PROF_SCOPE("whole run");
        for (uint32_t i = 0; i < SPANS; i++) {
            step(i);
            drain(npuprof_poll);
        }
    }
    npuprof_stop();
    drain(npuprof_flush);
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    return stats.lost ? 2 : 0;
}

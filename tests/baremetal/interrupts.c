/* A Cortex-M records in its main loop and in an interrupt that comes every few dozen instructions: every span
   that ran is in the arena or counted as lost. The image is interrupts.img.
   SPDX-License-Identifier: MIT */
#include <stdint.h>

static volatile uint32_t reads;
static uint32_t read_clock(void) { return ++reads; }
#define NPUPROF_NOW() read_clock()
#define NPUPROF_NOW_HZ 1000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_ARENA_BYTES 8192
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#define PORT_TICK tick
#include "port.h"

static volatile uint32_t executed, ticks;
static volatile uint32_t seed = 1;
void tick(void)
{
    PROF_SCOPE("tick");
    ticks++;
    seed = seed * 1664525u + 1013904223u;
    *(volatile uint32_t *)0xE000E014 = 300 + (seed >> 24);      /* not always at the same instruction */
    if (seed >> 31) PROF_COUNTER("ticks", ticks);
    if (seed >> 31) ticks++;
}

int main(void)
{
    const npuprof_sink sink = { port_write, NULL };
    npuprof_start(1);
    *(volatile uint32_t *)0xE000E014 = 300;
    *(volatile uint32_t *)0xE000E018 = 0;
    *(volatile uint32_t *)0xE000E010 = 7;
    while (executed < 400) {
        PROF_SCOPE("loop");
        { PROF_SCOPE_ARGS("c", "args", PROF_ARGS(PROF_INT("n", executed))); }
        executed += 2;
    }
    *(volatile uint32_t *)0xE000E010 = 0;
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    port_open("interrupts.img");
    const npuprof_result r = npuprof_write_image(sink);
    port_close();
    if (r != NPUPROF_OK) return 1;
    if (ticks < 10 || stats.lost < 10) return 2;
    return stats.recorded + stats.lost == executed + ticks ? 0 : 3;
}

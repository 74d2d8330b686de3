/* Instructions of a whole span on a Cortex-M4, in virtual time: SysTick runs at 25 MHz, an instruction takes
   32 ns (-icount shift=5). Exit code: the instructions, those that read the clock twice and make 47 bits of
   its 32 excluded.
   SPDX-License-Identifier: MIT */
#include <stdint.h>

volatile uint32_t clock_register;
#define NPUPROF_NOW() clock_register
#define NPUPROF_NOW_HZ 25000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_ARENA_BYTES 8192
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "port.h"

enum { SPANS = 500 };
static volatile int work;
static uint32_t elapsed(uint32_t since) { return (since - *(volatile uint32_t *)0xE000E018) & 0xFFFFFF; }

int main(void)
{
    uint32_t empty, reads, spans, start;
    npuprof_start(1);
    *(volatile uint32_t *)0xE000E014 = 0xFFFFFF;
    *(volatile uint32_t *)0xE000E018 = 0;
    *(volatile uint32_t *)0xE000E010 = 5;
    while (!*(volatile uint32_t *)0xE000E018) { }
    start = *(volatile uint32_t *)0xE000E018;
    for (int i = 0; i < SPANS; i++) work = i;
    empty = elapsed(start);
    start = *(volatile uint32_t *)0xE000E018;
    for (int i = 0; i < SPANS; i++) {
        (void)npuprof_fw_stamp_(npuprof_fw_arena_);
        work = i;
        (void)npuprof_fw_stamp_(npuprof_fw_arena_);
    }
    reads = elapsed(start);
    start = *(volatile uint32_t *)0xE000E018;
    for (int i = 0; i < SPANS; i++) {
        PROF_SCOPE("span");
        work = i;
    }
    spans = elapsed(start);
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    if (stats.recorded != SPANS || empty >= reads) return 255;
    return (int)(((spans - reads) * 40 + 32 * SPANS - 1) / (32 * SPANS));
}

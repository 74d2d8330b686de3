/* The clock of examples/firmware/systick.h against another timer of the same rate, with a period that is no
   power of two: in the main loop at each phase of the period, with interrupts on and off for up to most of a
   period; in an interrupt above SysTick while the tick is pending; and in one that comes before the handler
   has counted. Exit code 0: every reading lies between two readings of the other timer, and each phase was
   met but the first four ticks, which the emulator shows to no instruction.
   SPDX-License-Identifier: MIT */
#include <stdint.h>
#ifndef MICROBIT
#define HZ 25000000u
#define SLACK_OF_TIMER 2
#else
#define HZ 16000000u
#define SLACK_OF_TIMER 32
#endif
#define NPUPROF_IMPLEMENTATION
#include "systick.h"
#define NPUPROF_NOW() systick_now()
#define NPUPROF_NOW_HZ HZ
#define NPUPROF_FREESTANDING
#define NPUPROF_ARENA_BYTES 1024
#define NPUPROF_NO_JSON
#include "npuprof.h"
#define PORT_TICK tick
#define PORT_PENDSV never
#define PORT_IRQ0 above
#define PORT_IRQ1 never
#include "port.h"
#include "second_timer.h"

enum { PERIOD = 1009, READINGS = 60000, SLACK = SLACK_OF_TIMER };
static volatile uint32_t wrong, ticks, aboves, pending_seen;
static uint32_t offset;
static uint8_t met[PERIOD];
static uint32_t phases;

/* One reading between two of the other timer. The two count at different instants of a tick. That of the
   microbit loses a fraction of a tick at each reading: there the offset follows. */
static uint32_t check(void)
{
    const uint32_t before = timer_now(), now = systick_now() + offset, after = timer_now();
    const int32_t early = (int32_t)(before - now), late = (int32_t)(now - after);
    if (early > SLACK || late > SLACK) wrong++;
#ifdef MICROBIT
    else offset += (uint32_t)(early > 0 ? early : late > 0 ? -late : 0);
#endif
    const uint32_t phase = systick_now() % PERIOD;
    phases += !met[phase];
    met[phase] = 1;
    return systick_now();
}

void never(void);
void never(void) { wrong++; }

void above(void);
void above(void)
{
    aboves++;
    if (REG(0xE000ED04) & 1u << 26) pending_seen++;
    check();
}

void tick(void);
void tick(void)
{
    ticks++;
    REG(0xE000E200) = 1;                     /* the interrupt above comes at once, before this one has read */
    __asm__ volatile("dsb\n\tisb" : : : "memory");
    npuprof_tick();
    check();
}

int main(void)
{
    uint32_t seed = 1;
    REG(0xE000ED20) = 0xC0000000;            /* SysTick: lowest */
    REG(0xE000E400) = 0x40;
    REG(0xE000E100) = 1;
    timer_start();
    npuprof_start(1);
    REG(0xE000E014) = PERIOD - 1;
    REG(0xE000E018) = 0;
    REG(0xE000E010) = 7;
    __asm__ volatile("cpsid i" : : : "memory");
    while (!systick_now()) { }
    offset = timer_now() - systick_now();
    __asm__ volatile("cpsie i" : : : "memory");
    for (uint32_t i = 0; i < READINGS; i++) {
        check();
        seed = seed * 1664525u + 1013904223u;
        for (volatile uint32_t jitter = seed >> 29; jitter; jitter--) { }
        if (seed >> 30) continue;
        __asm__ volatile("cpsid i" : : : "memory");
        const uint32_t until = systick_now() + (seed >> 8) % (PERIOD * 3 / 4);
        while ((int32_t)(until - check()) > 0) { }
        REG(0xE000E200) = 1;                 /* comes before the tick if that is pending, too */
        __asm__ volatile("cpsie i" : : : "memory");
    }
    __asm__ volatile("cpsid i" : : : "memory");
    const uint32_t periods = systick_now() / PERIOD;
    if (wrong) return 1;
    if (phases < PERIOD - 4) return 2;
    if (periods != ticks && periods != ticks + 1) return 4;
    return ticks > 1000 && aboves > ticks && pending_seen > 50 ? 0 : 3;
}

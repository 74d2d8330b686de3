/* systick.h - the SysTick of a Cortex-M as a clock of npuprof: any LOAD, any interrupt, M0 to M55.
   SPDX-License-Identifier: MIT

     #include "systick.h"
     #define NPUPROF_NOW() systick_now()
     #define NPUPROF_NOW_HZ 48000000u        // the rate at which SysTick counts
     #include "npuprof.h"                    // one file: #define NPUPROF_IMPLEMENTATION before systick.h

   Call npuprof_tick() in the SysTick handler: each period needs one read, whenever the handler runs.
   Interrupts of any priority may read, also while the tick is pending, or between its start and its first
   instruction.
   Why not a count that the handler keeps, and the pending bit: the bit is cleared before the handler counts,
   so an interrupt in between would see neither. COUNTFLAG has no such gap: it is set when the counter comes
   to 0 and cleared by reading it. For this reason nothing else may read SYST_CSR: no tickless idle, no
   debugger's window with its registers. The clock stands still while SysTick is off: npuprof_slept(). */
#ifndef SYSTICK_H
#define SYSTICK_H
#include <stdint.h>

extern uint32_t systick_passed;              /* ticks up to when the counter last came to 0 */
#ifdef NPUPROF_IMPLEMENTATION
uint32_t systick_passed;
#endif

/* Ticks since SysTick was switched on, modulo 2^32. Interrupts are off for at most 9 instructions. */
static inline uint32_t systick_now(void)
{
    volatile uint32_t *systick = (volatile uint32_t *)0xE000E010u;       /* SYST_CSR, LOAD, VAL */
    uint32_t *at = &systick_passed, mask, left, passed;
    const uint32_t period = systick[1] + 1;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(mask), "+r"(systick), "+r"(at) : : "memory");
    left = systick[2];
    passed = *at;
    if (systick[0] & 0x10000u) {             /* COUNTFLAG: `left` may be of the period before */
        left = systick[2];
        *at = passed += period;
    }
    __asm__ volatile("msr primask, %0" : : "r"(mask) : "memory");
    return left ? passed + period - left : passed;
}
#endif /* SYSTICK_H */

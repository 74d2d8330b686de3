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

#define SYSTICK_CSR (*(volatile uint32_t *)0xE000E010u)
#define SYSTICK_RVR (*(volatile uint32_t *)0xE000E014u)     /* LOAD: a period has one tick more */
#define SYSTICK_CVR (*(volatile uint32_t *)0xE000E018u)     /* VAL: counts down */

extern uint32_t systick_passed;              /* ticks up to when the counter last came to 0 */
#ifdef NPUPROF_IMPLEMENTATION
uint32_t systick_passed;
#endif

/* Ticks since SysTick was switched on, modulo 2^32. Interrupts are off for 9 instructions. */
static inline uint32_t systick_now(void)
{
    uint32_t mask, left, passed;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(mask) : : "memory");
    left = SYSTICK_CVR;
    passed = systick_passed;
    if (SYSTICK_CSR & 0x10000u) {            /* COUNTFLAG: `left` may be of the period before */
        left = SYSTICK_CVR;
        passed += SYSTICK_RVR + 1;
        systick_passed = passed;
    }
    __asm__ volatile("msr primask, %0" : : "r"(mask) : "memory");
    return left ? passed + SYSTICK_RVR + 1 - left : passed;
}
#endif /* SYSTICK_H */

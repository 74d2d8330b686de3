/* second_timer.h - a timer beside SysTick, of the same rate: TIMER0 of an nRF51, or that of an MPS2 board.
   SPDX-License-Identifier: MIT */
#ifndef SECOND_TIMER_H
#define SECOND_TIMER_H
#include <stdint.h>

#define REG(address) (*(volatile uint32_t *)(address))

static void timer_start(void)
{
#ifdef MICROBIT
    REG(0x40008508) = 3;                     /* 32 bits, prescaler 0, start */
    REG(0x40008510) = 0;
    REG(0x40008000) = 1;
#else
    REG(0x40002000) = 0xFFFFFFFF;
    REG(0x40002008) = 0x82;
#endif
}

static uint32_t timer_now(void)
{
#ifdef MICROBIT
    REG(0x40008040) = 1;
    return REG(0x40008540);
#else
    return 0xFFFFFFFF - REG(0x40002004);
#endif
}
#endif /* SECOND_TIMER_H */

/* Your own clock: any expression of an unsigned type, of any width. Here a 24-bit counter at 1 MHz, as a SysTick might be.
   SPDX-License-Identifier: MIT
   Build: cc -I.. 05_own_clock.c
   NPUPROF_NOW() must be defined alike in every file of the program; a file that disagrees does not link. */
unsigned my_ticks(void);
#define NPUPROF_NOW() my_ticks()
#define NPUPROF_NOW_HZ 1000000
#define NPUPROF_NOW_BITS 24                 /* extended by npuprof; gaps must stay below 16.7 s */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

static unsigned ticks = 0xFFFFF0;           /* it wraps soon */
unsigned my_ticks(void) { return ticks++ & 0xFFFFFF; }

int main(void)
{
    npuprof_start(1);
    for (int i = 0; i < 20; i++) {
        PROF_SCOPE("step");
        ticks += 5;
    }
    return npuprof_dump("own_clock.json");
}

/* Your own clock: an expression of any unsigned type, of 8 to 64 bits. Here a 24-bit counter at 1 MHz.
   SPDX-License-Identifier: MIT
   Build: cc -I.. 05_own_clock.c
   Define NPUPROF_NOW() the same way in every file of the program. A file without it does not link. */
unsigned my_ticks(void);
#define NPUPROF_NOW() my_ticks()
#define NPUPROF_NOW_HZ 1000000
#define NPUPROF_NOW_BITS 24                 /* it wraps every 16.8 s; gaps may be 7/8 of that, 14.7 s */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

static unsigned ticks = 0xFFFFF0;           /* wraps after a few steps */
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

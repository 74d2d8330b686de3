/* own_clock.h - a clock that the test defines: 1 tick is 1 ns. Include before npuprof.h.
   SPDX-License-Identifier: MIT

   Why a function: the library reads it, too, which is compiled once for all tests that have such a clock. */
#ifndef OWN_CLOCK_H
#define OWN_CLOCK_H

#include <stdint.h>

uint64_t own_clock(void);
#define NPUPROF_NOW() own_clock()
#define NPUPROF_NOW_HZ 1000000000

#endif

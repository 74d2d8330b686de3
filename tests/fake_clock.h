/* fake_clock.h - a clock that only the test moves: 1 tick is 1 ns. Include before npuprof.h.
   SPDX-License-Identifier: MIT */
#ifndef FAKE_CLOCK_H
#define FAKE_CLOCK_H

#include "own_clock.h"

static uint64_t fake_ticks = 1000000;

uint64_t own_clock(void) { return __atomic_load_n(&fake_ticks, __ATOMIC_RELAXED); }

#endif

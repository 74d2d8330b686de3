/* fake_clock.h - a clock that only the test moves: 1 tick is 1 ns. Include before npuprof.h.
   SPDX-License-Identifier: MIT */
#ifndef FAKE_CLOCK_H
#define FAKE_CLOCK_H

#include <stdint.h>

static uint64_t fake_ticks = 1000000;
#define NPUPROF_NOW() __atomic_load_n(&fake_ticks, __ATOMIC_RELAXED)
#define NPUPROF_NOW_HZ 1000000000

#endif

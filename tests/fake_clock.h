/* fake_clock.h - a clock that only the test moves: 1 tick is 1 ns. Include before npuprof.h.
   SPDX-License-Identifier: MIT */
#ifndef FAKE_CLOCK_H
#define FAKE_CLOCK_H

#include "own_clock.h"

static uint64_t fake_ticks = 1000000;

uint64_t own_clock(void) { return __atomic_load_n(&fake_ticks, __ATOMIC_RELAXED); }

/* A device's counter that is the host's clock. */
static inline uint64_t fake_counter(void *user)
{
    (void)user;
    return fake_ticks;
}

/* One that runs with the host's clock, from another zero. A read takes 10 ns and happens in its middle. */
static const uint64_t device_zero = UINT64_C(123456789012);
static inline uint64_t fake_counter_apart(void *user)
{
    fake_ticks += 5;
    const uint64_t ticks = fake_counter(user) + device_zero;
    fake_ticks += 5;
    return ticks;
}

#endif /* FAKE_CLOCK_H */

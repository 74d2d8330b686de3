/* random.h - random numbers that are the same in each run: a test may set `seed`.
   SPDX-License-Identifier: MIT */
#ifndef RANDOM_H
#define RANDOM_H

#include "check.h"

static uint64_t seed = 88172645463325252u;

CHECK_UNUSED_ static uint64_t random_bits(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

/* The same, scrambled: its low bits are as good as its high ones. */
CHECK_UNUSED_ static uint64_t random_mixed(void) { return random_bits() * UINT64_C(0x2545F4914F6CDD1D); }

/* From 0 to less than 1. */
CHECK_UNUSED_ static double uniform(void) { return (double)(random_mixed() >> 11) / 9007199254740992.0; }

#endif /* RANDOM_H */

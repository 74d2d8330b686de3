#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"

/* Time as numbers: the user's clock, sums that do not wrap, and the window of an anchor. Both recorders and
   npuprof_npu.h use it. Owns no data; may not know where a time comes from or where it is stored. */

/* The user's expressions NPUPROF_NOW() and NPUPROF_NOW_HZ, each expanded here only.
   Why functions without a local or a parameter: an expression may use any name, and a name of ours would hide
   the user's. */
#ifdef NPUPROF_NOW
enum { NPUPROF_CLOCK_BITS_ = NPUPROF_WIDTH_ };
NPUPROF_ALWAYS_INLINE_ uint64_t npuprof_user_now_(void) { return (uint64_t)(NPUPROF_NOW()); }
NPUPROF_ALWAYS_INLINE_ uint64_t npuprof_user_hz_(void) { return (uint64_t)(NPUPROF_NOW_HZ); }

#else
enum { NPUPROF_CLOCK_BITS_ = 64 };
#endif

/* ---- Sums that stop at 0 and at UINT64_MAX */

static inline uint64_t npuprof_saturating_add_(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t npuprof_saturating_sub_(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }
static inline uint64_t npuprof_min_(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t npuprof_max_(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* ---- An anchor: device ticks that were read at some moment between two host stamps */

static inline uint64_t npuprof_anchor_width_(const npuprof_anchor_ *a)
{
    return npuprof_saturating_sub_(a->host_after, a->host_before);
}

static inline uint64_t npuprof_anchor_middle_(const npuprof_anchor_ *a)
{
    return a->host_before + npuprof_anchor_width_(a) / 2;
}

/* How far the moment can be from the middle at most. */
static inline uint64_t npuprof_anchor_error_(const npuprof_anchor_ *a)
{
    return npuprof_anchor_width_(a) - npuprof_anchor_width_(a) / 2;
}

/* a * b / c, rounded down or up. UINT64_MAX: it does not fit, or c is 0. Bit by bit, for compilers that have
   no division of 128 bits. */
static inline uint64_t npuprof_mul_div_by_bits_(uint64_t a, uint64_t b, uint64_t c, bool up)
{
    uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX), left = (a >> 32) * (b & UINT32_MAX),
        right = (a & UINT32_MAX) * (b >> 32);
    uint64_t middle = (low >> 32) + (left & UINT32_MAX) + (right & UINT32_MAX);
    uint64_t r = (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32) + (middle >> 32), q = 0;
    low = (middle << 32) | (low & UINT32_MAX);
    if (r >= c) return UINT64_MAX;
    for (int bit = 63; bit >= 0; bit--) {
        bool carry = (r >> 63) != 0;
        r = (r << 1) | ((low >> bit) & 1);
        if (carry || r >= c) {
            r -= c;
            q |= (uint64_t)1 << bit;
        }
    }
    return up && r != 0 && q != UINT64_MAX ? q + 1 : q;
}

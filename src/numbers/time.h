#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"

/* The user's expressions, each expanded once.
   Why functions without a local or a parameter: such an expression may use any name, now() and mask() as
   well. */
#ifdef NPUPROF_NOW
enum { NPUPROF_CLOCK_BITS_ = NPUPROF_WIDTH_ };
NPUPROF_ALWAYS_INLINE_ uint64_t npuprof_user_now_(void) { return (uint64_t)(NPUPROF_NOW()); }
NPUPROF_ALWAYS_INLINE_ uint64_t npuprof_user_hz_(void) { return (uint64_t)(NPUPROF_NOW_HZ); }

#else
enum { NPUPROF_CLOCK_BITS_ = 64 };
#endif
/* Numbers, for both recorders and npuprof_npu.h. */
static inline uint64_t npuprof_saturating_add_(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t npuprof_saturating_sub_(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }
static inline uint64_t npuprof_min_(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t npuprof_max_(uint64_t a, uint64_t b) { return a > b ? a : b; }

static inline uint64_t npuprof_anchor_width_(const npuprof_anchor_ *a)
{
    return npuprof_saturating_sub_(a->host_after, a->host_before);
}

static inline uint64_t npuprof_anchor_middle_(const npuprof_anchor_ *a)
{
    return a->host_before + npuprof_anchor_width_(a) / 2;
}

static inline uint64_t npuprof_anchor_error_(const npuprof_anchor_ *a)
{
    return npuprof_anchor_width_(a) - npuprof_anchor_width_(a) / 2;
}

/* a * b / c, rounded down or up; UINT64_MAX when it does not fit or c is 0. For where nothing divides 128
   bits. */
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

#pragma once   /* SPDX-License-Identifier: MIT */
#include "time.h"

/* Numbers. 128-bit products by halves where the compiler has no such type. */
typedef struct npuprof_u128_ { uint64_t high, low; } npuprof_u128_;
static npuprof_u128_ npuprof_multiply_(uint64_t a, uint64_t b)
{
    npuprof_u128_ r;
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 npuprof_wide_;
    const npuprof_wide_ p = (npuprof_wide_)a * b;
    r.high = (uint64_t)(p >> 64);
    r.low = (uint64_t)p;
#else
    const uint64_t al = a & 0xFFFFFFFFu, ah = a >> 32, bl = b & 0xFFFFFFFFu, bh = b >> 32;
    const uint64_t ll = al * bl, lh = al * bh, hl = ah * bl, hh = ah * bh;
    const uint64_t middle = (ll >> 32) + (lh & 0xFFFFFFFFu) + (hl & 0xFFFFFFFFu);
    r.low = middle << 32 | (ll & 0xFFFFFFFFu);
    r.high = hh + (lh >> 32) + (hl >> 32) + (middle >> 32);
#endif
    return r;
}

/* a * b / c, rounded down or up; UINT64_MAX when it does not fit or c is 0. */
static uint64_t npuprof_mul_div_(uint64_t a, uint64_t b, uint64_t c, bool up)
{
#if defined(__SIZEOF_INT128__) && !defined(NPUPROF_NO_INT128_)
    __extension__ typedef unsigned __int128 npuprof_wide_;
    npuprof_wide_ n = (npuprof_wide_)a * b;
    const uint64_t high = (uint64_t)(n >> 64);
    uint64_t q;
    if (high >= c) return UINT64_MAX;
    if (!high) {
        q = (uint64_t)n / c;
    } else {
#ifdef __x86_64__
        /* Why: the quotient fits, which the compiler does not know; its own function takes four times as
           long. */
        uint64_t left;
        __asm__("divq %4" : "=a"(q), "=d"(left) : "0"((uint64_t)n), "1"(high), "r"(c) : "cc");
        (void)left;
#else
        q = (uint64_t)(n / c);
#endif
    }
    const bool rest = (uint64_t)n != q * c;
    return up && rest && q != UINT64_MAX ? q + 1 : q;
#else /* !(__SIZEOF_INT128__ && !NPUPROF_NO_INT128_) */
    return npuprof_mul_div_by_bits_(a, b, c, up);
#endif /* !(__SIZEOF_INT128__ && !NPUPROF_NO_INT128_) */
}

static uint64_t npuprof_scale_(uint64_t a, uint64_t b, uint64_t c)
{
    return npuprof_mul_div_(a, b, c, false);
}

/* a * x / c rounded down, for many x from 0 to c, without a division each. Prepared with
   npuprof_ratio_prepare_(); c must not be 0. */
typedef struct npuprof_ratio_ {
    uint64_t a, c, whole, rest, inverse;         /* whole, rest: a / c, a % c; inverse: rest * 2^64 / c */
} npuprof_ratio_;
static void npuprof_ratio_prepare_(npuprof_ratio_ *r, uint64_t a, uint64_t c)
{
    r->a = a;
    r->c = c;
    r->whole = a / c;
    r->rest = a % c;
    r->inverse = 0;
#if defined(__SIZEOF_INT128__) && !defined(NPUPROF_NO_INT128_)
    __extension__ typedef unsigned __int128 npuprof_wide_;
    r->inverse = (uint64_t)(((npuprof_wide_)r->rest << 64) / c);
#endif
}

static inline uint64_t npuprof_ratio_times_(const npuprof_ratio_ *r, uint64_t x)
{
#if defined(__SIZEOF_INT128__) && !defined(NPUPROF_NO_INT128_)
    if (r->c >> 63 == 0) {
        /* The inverse is less than 1 too small, so the quotient is right or 1 too small, and what is left is
           below 2 c. */
        __extension__ typedef unsigned __int128 npuprof_wide_;
        const uint64_t q = (uint64_t)((npuprof_wide_)r->inverse * x >> 64);
        return r->whole * x + q + (r->rest * x - q * r->c >= r->c);
    }
#endif
    return npuprof_mul_div_(r->a, x, r->c, false);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "time.h"

/* Products of 128 bits, and their quotients, exact. Where the compiler has no type of 128 bits they are made
   of halves or bit by bit. Hosted code only: times and rates of long traces need it. Owns no data; may not
   know what the numbers mean. */

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

#if defined(__SIZEOF_INT128__) && !defined(NPUPROF_NO_INT128_)
/* (high * 2^64 + low) / c, where high < c. Why assembler: the quotient fits in 64 bits, and one instruction
   divides. The compiler does not know that; the function that it calls takes four times as long. */
static inline uint64_t npuprof_divide_(uint64_t high, uint64_t low, uint64_t c)
{
#ifdef __x86_64__
    uint64_t q, left;
    __asm__("divq %4" : "=a"(q), "=d"(left) : "0"(low), "1"(high), "r"(c) : "cc");
    (void)left;
    return q;
#else
    __extension__ typedef unsigned __int128 npuprof_wide_;
    return (uint64_t)(((npuprof_wide_)high << 64 | low) / c);
#endif
}
#endif

/* a * b / c, rounded down or up. UINT64_MAX: it does not fit, or c is 0. */
static uint64_t npuprof_mul_div_(uint64_t a, uint64_t b, uint64_t c, bool up)
{
#if defined(__SIZEOF_INT128__) && !defined(NPUPROF_NO_INT128_)
    __extension__ typedef unsigned __int128 npuprof_wide_;
    npuprof_wide_ n = (npuprof_wide_)a * b;
    const uint64_t high = (uint64_t)(n >> 64);
    if (high >= c) return UINT64_MAX;
    const uint64_t q = high ? npuprof_divide_(high, (uint64_t)n, c) : (uint64_t)n / c;
    const bool rest = (uint64_t)n != q * c;
    return up && rest && q != UINT64_MAX ? q + 1 : q;
#else /* !(__SIZEOF_INT128__ && !NPUPROF_NO_INT128_) */
    return npuprof_mul_div_by_bits_(a, b, c, up);
#endif /* !(__SIZEOF_INT128__ && !NPUPROF_NO_INT128_) */
}

/* The same, rounded down. */
static uint64_t npuprof_scale_(uint64_t a, uint64_t b, uint64_t c)
{
    return npuprof_mul_div_(a, b, c, false);
}

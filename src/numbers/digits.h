#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/hot.h"
#include <string.h>

/* Numbers as text: at p, returning the end of the text. Writing numbers is most of the work of a writer, so
   eight digits are made at a time, without a loop, a table or a division.

   All of these may overwrite up to 7 bytes behind the end. Nothing here has state but npuprof_stamp_cache_,
   which the writer owns. */

/* bytes that a number needs at most, those behind its end included */
enum { NPUPROF_DIGITS_MAX_ = 40 };

#define NPUPROF_DIGITS_ZEROS_ ((uint64_t)0x3030303030303030u)      /* "00000000" */

/* Stores eight bytes, the lowest bits first, on machines of any byte order.
   Why two ways: of single bytes, some of them known to be 0, gcc makes four stores. */
NPUPROF_HOT_ static inline void npuprof_digits_store_(char *p, uint64_t text)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(p, &text, 8);
#else
    for (int i = 0; i < 8; i++) p[i] = (char)(text >> 8 * i);
#endif
}

/* The eight decimal digits of v < 10^8, a byte each, the first in the lowest one. First the two halves of
   four digits are split, then all pairs of digits at once, then all digits at once. A product and a shift
   stand for each division. What is split into q and x - 10^n q, that one so many bits higher, is
   (x << bits) - ((10^n << bits) - 1) q. */
NPUPROF_HOT_ static inline uint64_t npuprof_digits_eight_(uint64_t v)
{
    const uint64_t high = v * 109951163 >> 40, halves = (v << 32) - high * (((uint64_t)10000 << 32) - 1);
    const uint64_t top = halves * 10486 >> 20 & 0x0000007F0000007Fu;
    const uint64_t pairs = (halves << 16) - top * ((100 << 16) - 1);
    const uint64_t tens = pairs * 103 >> 10 & 0x000F000F000F000Fu;
    return (pairs << 8) - tens * ((10 << 8) - 1);
}

/* Why apart: else gcc inlines the function into itself, in 859 bytes of code. */
static char *npuprof_digits_long_uint_(char *p, uint64_t v);

NPUPROF_HOT_ static NPUPROF_NOINLINE_ char *npuprof_digits_uint_(char *p, uint64_t v)
{
    *p = (char)('0' + v);
    if (v < 10) return p + 1;              /* Why first: flags, indices and states are most of all numbers */
    if (NPUPROF_UNLIKELY_(v >= 100000000)) return npuprof_digits_long_uint_(p, v);
    const uint64_t digits = npuprof_digits_eight_(v);
    const unsigned zeros = NPUPROF_LOW_ZEROS_(digits | (uint64_t)1 << 56) / 8;
    npuprof_digits_store_(p, (digits | NPUPROF_DIGITS_ZEROS_) >> 8 * zeros);
    return p + 8 - zeros;
}

static NPUPROF_NOINLINE_ char *npuprof_digits_long_uint_(char *p, uint64_t v)
{
    const uint64_t high = v / 100000000;
    p = npuprof_digits_uint_(p, high);
    npuprof_digits_store_(p, npuprof_digits_eight_(v - high * 100000000) | NPUPROF_DIGITS_ZEROS_);
    return p + 8;
}

NPUPROF_HOT_ static inline char *npuprof_digits_int_(char *p, int64_t v)
{
    if (v >= 0) return npuprof_digits_uint_(p, (uint64_t)v);
    *p = '-';
    return npuprof_digits_uint_(p + 1, 0 - (uint64_t)v);
}

/* Eight digits with a point behind the fifth, without the first `zeros` of them. */
NPUPROF_HOT_ static inline char *npuprof_digits_pointed_(char *p, uint64_t digits, unsigned zeros)
{
    digits |= NPUPROF_DIGITS_ZEROS_;
    npuprof_digits_store_(p, digits >> 8 * zeros);
    p -= zeros;
    p[5] = '.';
    npuprof_digits_store_(p + 6, digits >> 40);
    return p + 9;
}

static NPUPROF_NOINLINE_ char *npuprof_digits_long_milli_(char *p, int64_t v)
{
    const uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    *p = '-';
    p = npuprof_digits_uint_(p + (v < 0), size / 1000);
    *p++ = '.';
    npuprof_digits_store_(p, (npuprof_digits_eight_(size % 1000) | NPUPROF_DIGITS_ZEROS_) >> 40);
    return p + 3;
}

/* Thousandths as a decimal with three places: ns as microseconds, mHz as Hz. */
NPUPROF_HOT_ static inline char *npuprof_digits_milli_(char *p, int64_t v)
{
    if (NPUPROF_UNLIKELY_((uint64_t)v >= 100000000)) return npuprof_digits_long_milli_(p, v);
    const uint64_t digits = npuprof_digits_eight_((uint64_t)v);
    return npuprof_digits_pointed_(p, digits, NPUPROF_LOW_ZEROS_(digits | (uint64_t)1 << 32) / 8);
}

/* The text of a stamp's digits above 10^8, which many stamps in a row have in common. `above` is
   NPUPROF_NO_STAMP_, far from all stamps, if nothing is cached. */
#define NPUPROF_NO_STAMP_ ((uint64_t)1 << 63)
typedef struct npuprof_stamp_cache_ {
    uint64_t above;
    uint32_t length;
    char text[NPUPROF_DIGITS_MAX_];
} npuprof_stamp_cache_;

static NPUPROF_NOINLINE_ char *npuprof_digits_far_stamp_(npuprof_stamp_cache_ *cache, char *p, int64_t v)
{
    if (v >= 0) {
        const uint64_t high = (uint64_t)v / 100000000;
        cache->above = high * 100000000;
        cache->length = high ? (uint32_t)(npuprof_digits_uint_(cache->text, high) - cache->text) : 0;
    }
    return npuprof_digits_milli_(p, v);
}

/* npuprof_digits_milli_() for stamps. */
NPUPROF_HOT_ static inline char *npuprof_digits_stamp_(npuprof_stamp_cache_ *cache, char *p, int64_t v)
{
    const uint64_t rest = (uint64_t)v - cache->above;
    if (NPUPROF_UNLIKELY_(rest >= 100000000)) return npuprof_digits_far_stamp_(cache, p, v);
    const uint64_t digits = npuprof_digits_eight_(rest);
    const unsigned zeros = cache->above ? 0 : NPUPROF_LOW_ZEROS_(digits | (uint64_t)1 << 32) / 8;
    memcpy(p, cache->text, 16);
    return npuprof_digits_pointed_(p + cache->length, digits, zeros);
}

/* 16 hexadecimal digits, eight at a time: each digit is spread to a byte of its own, and those above 9 move
   on to the letters. */
static inline void npuprof_digits_hex_(char *p, uint64_t v)
{
    for (int half = 0; half < 2; half++, v <<= 32) {
        uint64_t x = v >> 48 | (v >> 32 & 0xFFFF) << 32;
        x = (x >> 8 & 0x000000FF000000FFu) | (x & 0x000000FF000000FFu) << 16;
        x = (x >> 4 & 0x000F000F000F000Fu) | (x & 0x000F000F000F000Fu) << 8;
        const uint64_t letters = (x + 0x0606060606060606u) >> 4 & 0x0101010101010101u;
        npuprof_digits_store_(p + 8 * half, x + NPUPROF_DIGITS_ZEROS_ + letters * ('a' - '0' - 10));
    }
}

static inline void npuprof_digits_hex_text_(char digits[17], uint64_t v)
{
    npuprof_digits_hex_(digits, v);
    digits[16] = 0;
}

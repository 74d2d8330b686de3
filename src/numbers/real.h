#pragma once   /* SPDX-License-Identifier: MIT */
#include "digits.h"
#include "wide.h"

/* Reals as text: the shortest digits that read back as the same double, and of those the nearest ones. It is
   Raffaello Giulietti's Schubfach ("The Schubfach way to render doubles", 2020), with the names of the paper:
   a double is c * 2^q, and what reads back as it lies around it, up to half the way to its neighbours. The
   decimals there are 10^k apart. All is scaled by 4 * 10^-k: then the decimals and what lies half-way between
   them are integers. The double and its bounds are rounded to odd, so each comparison comes out right.
   Owns no data; may not know who prints. */

enum {
    NPUPROF_REAL_STEP_ = 27,               /* exponents of ten from one power in the table to the next */
    NPUPROF_REAL_FIRST_ = -11              /* step of the table's first one */
};

/* The first 128 bits of 10^e, plus one. Of every 27th power the table has 192 bits; a power of 5 below 2^64
   times that gives all in between, exact to the last of the 128 bits. */
NPUPROF_HOT_ static inline npuprof_u128_ npuprof_real_ten_(int e)
{
    static const uint64_t bits[][3] = {
        { 0xA76C582338ED2621u, 0xAF2AF2B80AF6F24Eu, 0x657C8F4D43323A36u },
        { 0x873E4F75E2224E68u, 0x5A7744A6E804A291u, 0xCC35EDDFCF0996D7u },
        { 0xDA7F5BF590966848u, 0xAF39A475506A899Eu, 0xA30294CC2934E662u },
        { 0xB080392CC4349DECu, 0xBD8D794D96AACFB3u, 0xFE13A5C86AF64418u },
        { 0x8E938662882AF53Eu, 0x547EB47B7282EE9Cu, 0x41B0230E1421487Du },
        { 0xE65829B3046B0AFAu, 0x0CB4A5A3112A5112u, 0xA3B561B1CB208396u },
        { 0xBA121A4650E4DDEBu, 0x92F34D62616CE413u, 0x21A0183E10583CD3u },
        { 0x964E858C91BA2655u, 0x3A6A07F8D510F86Fu, 0xE9082F25E9C5E9ECu },
        { 0xF2D56790AB41C2A2u, 0xFAE27299423FB9C3u, 0x3695DAD7E8858901u },
        { 0xC428D05AA4751E4Cu, 0xAA97E14C3C26B886u, 0x96842DC95323F5A8u },
        { 0x9E74D1B791E07E48u, 0x775EA264CF55347Du, 0xCA49F1C05120C9C7u },
        { 0x8000000000000000u, 0x0000000000000000u, 0x0000000000000000u },
        { 0xCECB8F27F4200F3Au, 0x0000000000000000u, 0x0000000000000000u },
        { 0xA70C3C40A64E6C51u, 0x999090B65F67D924u, 0x0000000000000000u },
        { 0x86F0AC99B4E8DAFDu, 0x69A028BB3DED71A3u, 0xDF9F915627C04E28u },
        { 0xDA01EE641A708DE9u, 0xE80E6F4820CC9495u, 0xD74BAAD03BC1D8D3u },
        { 0xB01AE745B101E9E4u, 0x5EC05DCFF72E7F8Fu, 0xC04C79FFE324301Fu },
        { 0x8E41ADE9FBEBC27Du, 0x14588F13BE847307u, 0x23BD6A2059C002F5u },
        { 0xE5D3EF282A242E81u, 0x8F1668C8A86DA5FAu, 0xF0B5CCF5176ECC7Cu },
        { 0xB9A74A0637CE2EE1u, 0x6D953E2BD7173692u, 0x88EFB0037AC08BDEu },
        { 0x95F83D0A1FB69CD9u, 0x4ABDAF101564F98Eu, 0x0D5A4AF7B3A98E47u },
        { 0xF24A01A73CF2DCCFu, 0xBC633B39673C8CECu, 0x3D9C44CD2F36917Cu },
        { 0xC3B8358109E84F07u, 0x0A862F80EC4700C8u, 0x02606EA01029DC37u },
        { 0x9E19DB92B4E31BA9u, 0x6C07A2C26A8346D1u, 0x4944D9F52CD0DEC2u },
    };
    static const uint64_t fives[NPUPROF_REAL_STEP_] = {
        0x8000000000000000u, 0xA000000000000000u, 0xC800000000000000u, 0xFA00000000000000u,
        0x9C40000000000000u, 0xC350000000000000u, 0xF424000000000000u, 0x9896800000000000u,
        0xBEBC200000000000u, 0xEE6B280000000000u, 0x9502F90000000000u, 0xBA43B74000000000u,
        0xE8D4A51000000000u, 0x9184E72A00000000u, 0xB5E620F480000000u, 0xE35FA931A0000000u,
        0x8E1BC9BF04000000u, 0xB1A2BC2EC5000000u, 0xDE0B6B3A76400000u, 0x8AC7230489E80000u,
        0xAD78EBC5AC620000u, 0xD8D726B7177A8000u, 0x878678326EAC9000u, 0xA968163F0A57B400u,
        0xD3C21BCECCEDA100u, 0x84595161401484A0u, 0xA56FA5B99019A5C8u
    };
    const int from_first = e - NPUPROF_REAL_STEP_ * NPUPROF_REAL_FIRST_;
    const uint64_t *const base = bits[from_first / NPUPROF_REAL_STEP_];
    const uint64_t five = fives[from_first % NPUPROF_REAL_STEP_];
    const npuprof_u128_ x = npuprof_multiply_(base[0], five), y = npuprof_multiply_(base[1], five);
    const uint64_t third = npuprof_multiply_(base[2], five).high + y.low;
    const uint64_t second = y.high + (third < y.low);          /* a product's high half is never all ones */
    npuprof_u128_ g;
    g.low = x.low + second;
    g.high = x.high + (g.low < second);
    if (!(g.high >> 63)) {
        g.high = g.high << 1 | g.low >> 63;
        g.low = g.low << 1 | third >> 63;
    }
    g.high += ++g.low == 0;
    return g;
}

/* g * x / 2^128, rounded to odd: the lowest bit says, too, that something was cut off. */
NPUPROF_HOT_ static inline uint64_t npuprof_real_scale_(npuprof_u128_ g, uint64_t x)
{
    const npuprof_u128_ high = npuprof_multiply_(g.high, x);
    const uint64_t middle = high.low + npuprof_multiply_(g.low, x).high;
    return (high.high + (middle < high.low)) | (middle > 1);
}

/* A positive decimal: digits * 10^exponent. */
typedef struct npuprof_real_decimal_ { uint64_t digits; int exponent; } npuprof_real_decimal_;

/* Of c * 2^q. `even`: the bounds read back as it, too. `narrow`: its lower neighbour is half as far. */
NPUPROF_HOT_ static npuprof_real_decimal_ npuprof_real_shortest_(uint64_t c, int q, bool even, bool narrow)
{
    /* floor(log10(2^q)), of 3/4 of it where it is narrow; floor(log2(10^-k)) */
    const int k = (int)((q * INT64_C(661971961083) - (narrow ? INT64_C(274743187321) : 0)) >> 41);
    const int h = q + (int)(-k * INT64_C(913124641741) >> 38) + 1;
    const npuprof_u128_ g = npuprof_real_ten_(-k);
    const uint64_t v = npuprof_real_scale_(g, 4 * c << h);
    const uint64_t lower = npuprof_real_scale_(g, (4 * c - 2 + narrow) << h) + !even;
    const uint64_t upper = npuprof_real_scale_(g, (4 * c + 2) << h) - !even;
    const uint64_t floor = v / 4, tenth = floor / 10;
    npuprof_real_decimal_ d = { tenth, k + 1 };
    const bool below = lower <= 40 * tenth, above = 40 * tenth + 40 <= upper;
    if (floor >= 10 && below != above) {       /* one digit less; the two decimals there are too far apart */
        d.digits += above;
        return d;
    }
    const bool down = lower <= 4 * floor, up = 4 * floor + 4 <= upper;
    const uint64_t middle = 4 * floor + 2;
    const bool nearer_up = v > middle || (v == middle && (floor & 1));
    d.digits = floor + (down != up ? up : nearer_up);
    d.exponent = k;
    return d;
}

/* Takes the zeros off the end. */
NPUPROF_HOT_ static inline void npuprof_real_strip_(npuprof_real_decimal_ *d)
{
    if (d->digits % 100000000 == 0) {
        d->digits /= 100000000;
        d->exponent += 8;
    }
    for (; d->digits % 10 == 0; d->exponent++) d->digits /= 10;
}

/* Zeros, at most 16 of them. Returns the end. */
NPUPROF_HOT_ static inline char *npuprof_real_zeros_(char *p, int count)
{
    npuprof_digits_store_(p, NPUPROF_DIGITS_ZEROS_);
    npuprof_digits_store_(p + 8, NPUPROF_DIGITS_ZEROS_);
    return p + count;
}

/* The exponent's text: e-05, e+300. */
static char *npuprof_real_exponent_(char *p, int e)
{
    *p++ = 'e';
    *p++ = e < 0 ? '-' : '+';
    if (e < 0) e = -e;
    if (e < 10) *p++ = '0';
    return npuprof_digits_uint_(p, (uint64_t)e);
}

/* A finite double, as printf's %g shows so many digits: as a plain decimal, but with an exponent below -4, or
   where the digits end before the point and before the 15th. */
NPUPROF_HOT_ static char *npuprof_digits_real_(char *p, uint64_t bits)
{
    const uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    const int biased = (int)(bits >> 52 & 0x7FF);
    char text[NPUPROF_DIGITS_MAX_];
    *p = '-';
    p += bits >> 63;
    if (!(bits << 1)) {
        *p = '0';
        return p + 1;
    }
    const uint64_t c = biased ? fraction | (uint64_t)1 << 52 : fraction;
    npuprof_real_decimal_ d =
        npuprof_real_shortest_(c, (biased ? biased : 1) - 1075, !(c & 1), !fraction && biased > 1);
    npuprof_real_strip_(&d);
    const int count = (int)(npuprof_digits_uint_(text, d.digits) - text), e = d.exponent + count - 1;
    const bool scientific = e < -4 || e >= (count > 15 ? count : 15);
    const int whole = scientific ? 1 : e + 1;      /* digits before the point */
    if (whole <= 0) {
        memcpy(npuprof_real_zeros_(p + 1, 1 - whole), text, 24);
        p[0] = '0';
        p[1] = '.';
        return p + 2 - whole + count;
    }
    memcpy(p, text, 24);
    if (whole >= count) {
        p = npuprof_real_zeros_(p + count, whole - count);
    } else {
        memcpy(p + whole + 1, text + whole, 16);
        p[whole] = '.';
        p += count + 1;
    }
    return scientific ? npuprof_real_exponent_(p, e) : p;
}

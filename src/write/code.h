#pragma once   /* SPDX-License-Identifier: MIT */
#include "../format/arena.h"
#include "../public/compiler.h"
#include <string.h>

/* The code of a chunk's units in a block (src/format/arena.h, CODE): a few bytes for what follows from the
   unit before, and no way to lose one: what fits no shorter form is written as it is.
   Data: npuprof_block_coder_, of the one thread that writes. The units may be those of an open chunk: each
   word is loaded once.
   This part knows words, not records: it need not know which call site is a span and which a counter. */

typedef struct npuprof_block_coder_ {
    uint64_t base, start, end;             /* of the chunk; the references of CODE */
    uint64_t payload[NPUPROF_CODE_CONTROLS_], w1[NPUPROF_CODE_CONTROLS_ + 1];
    uint32_t site;
    uint32_t string;                       /* units that are bytes of a string, from here on */
} npuprof_block_coder_;

/* Begins a block. What is left of a string stays. */
static void npuprof_block_coder_begin_(npuprof_block_coder_ *c, uint64_t base)
{
    const uint32_t string = c->string;
    memset(c, 0, sizeof *c);
    c->base = base;
    c->start = c->end = base & NPUPROF_CODE_START_MASK_;
    c->string = string;
}

/* How many bytes hold a number; 0: none. */
NPUPROF_HOT_ static inline unsigned npuprof_block_coder_bytes_(uint64_t v)
{
    return v ? (NPUPROF_BITS_(v) + 7) / 8 : 0;
}

/* Puts the low `count` bytes of a number, lowest first. Writes 8 in any case. */
NPUPROF_HOT_ static inline uint8_t *npuprof_block_coder_put_(uint8_t *to, uint64_t v, unsigned count)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    memcpy(to, &v, 8);
    return to + count;
}

/* The shorter one of v and its difference to `before`, as a number without sign. *is_difference: which. */
NPUPROF_HOT_ static inline uint64_t npuprof_block_coder_choose_(uint64_t v, uint64_t before,
                                                                 bool *is_difference)
{
    const uint64_t difference = v - before;
    const uint64_t a = v << 1 ^ (0 - (v >> 63)), b = difference << 1 ^ (0 - (difference >> 63));
    *is_difference = b < a;
    return b < a ? b : a;
}

/* One of the long forms: code, lengths, site if it is another one, two numbers. */
NPUPROF_HOT_ static NPUPROF_NOINLINE_ uint8_t *
npuprof_block_coder_put_long_(uint8_t *to, unsigned code, const uint32_t *site, uint64_t first,
                              uint64_t second)
{
    const unsigned a = npuprof_block_coder_bytes_(first), b = npuprof_block_coder_bytes_(second);
    *to++ = (uint8_t)(code << 3);
    *to++ = (uint8_t)(a | b << 3 | (site ? 0x80u : 0));
    if (site) to = npuprof_block_coder_put_(to, *site, 3);
    to = npuprof_block_coder_put_(to, first, a);
    return npuprof_block_coder_put_(to, second, b);
}

/* A unit with a call site that is no plain span with a short gap before it. */
NPUPROF_HOT_ static uint8_t *npuprof_block_coder_put_site_(npuprof_block_coder_ *c, uint64_t w0, uint64_t w1,
                                                          uint8_t *to)
{
    const uint32_t site = (uint32_t)w0 & NPUPROF_ID_MASK_, *const other = site == c->site ? NULL : &site;
    const uint64_t start = w0 >> NPUPROF_ID_BITS_, mask = NPUPROF_CODE_START_MASK_;
    const uint64_t length = w1 - (c->base + ((start - c->base) & mask));
    const bool is_open = w1 == NPUPROF_END_OPEN_;
    bool is_difference;
    c->site = site;
    if (start && (is_open || length >> 48 == 0)) {
        const unsigned sites = !other ? 0 : 1u + (site > 0xFF) + (site > 0xFFFF);
        const unsigned bytes = is_open ? 0 : npuprof_block_coder_bytes_(length);
        *to++ = (uint8_t)(7u | (is_open ? 7u : bytes) << 3 | sites << 6);
        to = npuprof_block_coder_put_(to, site, sites);
        to = npuprof_block_coder_put_(to, (start - c->start) & mask, 6);
        to = npuprof_block_coder_put_(to, length, bytes);
        if (!is_open) c->end = w1 & mask;
        c->start = start;
        return to;
    }
    const uint64_t value = npuprof_block_coder_choose_(w1, c->w1[NPUPROF_CODE_CONTROLS_], &is_difference);
    c->w1[NPUPROF_CODE_CONTROLS_] = w1;
    if (!start) {                          /* the first unit of a span that was moved */
        const uint64_t as_is = w1 << 1 ^ (0 - (w1 >> 63));
        return npuprof_block_coder_put_long_(to, NPUPROF_CODE_MOVED_, other, 0, as_is);
    }
    const uint64_t gap = (start - c->start) & mask;
    c->start = start;
    return npuprof_block_coder_put_long_(to, NPUPROF_CODE_EVENT_ + is_difference, other, gap, value);
}

/* A unit that is not plain. NULL: it ends the chunk. */
NPUPROF_HOT_ static NPUPROF_NOINLINE_ uint8_t *
npuprof_block_coder_put_other_(npuprof_block_coder_ *c, uint64_t w0, uint64_t w1, uint8_t *to)
{
    const uint32_t id = (uint32_t)w0 & NPUPROF_ID_MASK_, k = id - NPUPROF_CONTROL_;
    const uint64_t payload = w0 >> NPUPROF_ID_BITS_;
    bool is_difference;
    if (!c->string) {
        if (!w0) return NULL;
        if (id - 1 < NPUPROF_CONTROL_ - 1) return npuprof_block_coder_put_site_(c, w0, w1, to);
        if (id && k < NPUPROF_CODE_CONTROLS_) {
            const uint64_t value = npuprof_block_coder_choose_(w1, c->w1[k], &is_difference);
            const uint64_t change = payload ^ c->payload[k];
            if (id == NPUPROF_CONTROL_ARG_ && payload >> 32 > 8)
                c->string = (uint32_t)NPUPROF_UNITS_((payload >> 32) - 8);
            c->payload[k] = payload;
            c->w1[k] = w1;
            return npuprof_block_coder_put_long_(to, k << 1 | is_difference, NULL, change, value);
        }
    } else {
        c->string--;
    }
    *to++ = NPUPROF_CODE_RAW_ << 3;
    to = npuprof_block_coder_put_(to, w0, 8);
    return npuprof_block_coder_put_(to, w1, 8);
}

/* Codes units until the chunk ends. *to: where the code goes, and then its end; NPUPROF_CODE_MOST_ bytes for
   each unit, and 8. Returns the first unit that was not coded. */
NPUPROF_HOT_ static const npuprof_unit_ *
npuprof_block_coder_put_units_(npuprof_block_coder_ *c, const npuprof_unit_ *u, const npuprof_unit_ *end,
                               uint8_t **to)
{
    const uint64_t base = c->base, mask = NPUPROF_CODE_START_MASK_;
    uint8_t *p = *to;
    for (; u < end; u++) {
        const uint64_t w0 = NPUPROF_LOAD_(&u->w0), w1 = NPUPROF_LOAD_(&u->w1);
        const uint64_t start = w0 >> NPUPROF_ID_BITS_, length = w1 - (base + ((start - base) & mask));
        const uint64_t after_start = (start - c->start) & mask, after_end = (start - c->end) & mask;
        const bool by_end = after_end < after_start;
        const uint64_t gap = by_end ? after_end : after_start;
        const uint32_t site = (uint32_t)w0 & NPUPROF_ID_MASK_;
        if (NPUPROF_UNLIKELY_(site - 1 >= NPUPROF_CONTROL_ - 1 || gap >> 24 || length >> 48 || !start ||
                              c->string)) {
            uint8_t *const behind = npuprof_block_coder_put_other_(c, w0, w1, p);
            if (!behind) break;
            p = behind;
            continue;
        }
        const unsigned gaps = 1u + (gap > 0xFF) + (gap > 0xFFFF);
        const unsigned lengths = npuprof_block_coder_bytes_(length);
        const unsigned sites = site == c->site ? 0 : 1u + (site > 0xFF) + (site > 0xFFFF);
        *p = (uint8_t)((gaps + (by_end ? 3 : 0)) | lengths << 3 | sites << 6);
        p = npuprof_block_coder_put_(p + 1, site, sites);
        p = npuprof_block_coder_put_(p, gap, gaps);
        p = npuprof_block_coder_put_(p, length, lengths);
        c->start = start;
        c->end = w1 & mask;
        c->site = site;
    }
    *to = p;
    return u;
}

/* The sum of a block; the length is a multiple of 8. */
NPUPROF_HOT_ static uint64_t npuprof_block_coder_sum_(const uint64_t *words, size_t bytes)
{
    uint64_t sum = 0;
    for (const uint64_t *const end = words + bytes / 8; words < end; words++) {
        sum = (sum ^ *words) * NPUPROF_BLOCK_FACTOR_;
        sum = sum << 32 | sum >> 32;
    }
    return sum;
}

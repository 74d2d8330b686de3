#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/hot.h"
#include "../numbers/text.h"
#include "../format/layouts.h"
#include "../arena/table.h"
#include "../read/image.h"
#include "../read/walk.h"

/* A buffered writer over a sink. After an error it swallows what comes; the error stays. */
typedef struct npuprof_out_ {
    npuprof_sink sink;
    char *bytes;
    size_t room, used;
    uint64_t flushes;
    int error;
} npuprof_out_;

static void npuprof_out_flush_(npuprof_out_ *o)
{
    if (o->used && !o->error) o->error = o->sink.write(o->sink.user, o->bytes, o->used);
    o->used = 0;
    o->flushes++;
}
static NPUPROF_NOINLINE_ void npuprof_out_put_slow_(npuprof_out_ *o, const char *bytes, size_t count)
{
    while (count) {
        if (o->used == o->room) npuprof_out_flush_(o);
        const size_t n = count < o->room - o->used ? count : o->room - o->used;
        memcpy(o->bytes + o->used, bytes, n);
        o->used += n;
        bytes += n;
        count -= n;
    }
}
static inline void npuprof_put_(npuprof_out_ *o, const char *bytes, size_t count)
{
    if (NPUPROF_UNLIKELY_(count > o->room - o->used)) {
        npuprof_out_put_slow_(o, bytes, count);
        return;
    }
    memcpy(o->bytes + o->used, bytes, count);
    o->used += count;
}
static inline void npuprof_out_puts_(npuprof_out_ *o, const char *text) { npuprof_put_(o, text, strlen(text)); }
/* Room for as many bytes at once, as many as the buffer has at most; who fills it counts o->used up. */
static inline char *npuprof_out_reserve_(npuprof_out_ *o, size_t count)
{
    if (NPUPROF_UNLIKELY_(count > o->room - o->used)) npuprof_out_flush_(o);
    return o->bytes + o->used;
}
/* Eight bytes, that in the lowest bits first, whatever the machine's order: compilers make one store of it. */
static inline void npuprof_digits_store_(char *p, uint64_t text)
{
    p[0] = (char)text;
    p[1] = (char)(text >> 8);
    p[2] = (char)(text >> 16);
    p[3] = (char)(text >> 24);
    p[4] = (char)(text >> 32);
    p[5] = (char)(text >> 40);
    p[6] = (char)(text >> 48);
    p[7] = (char)(text >> 56);
}
/* The eight decimal digits of v < 10^8, a byte each, the first in the lowest one: halves, pairs and digits are split all at once. */
static inline uint64_t npuprof_digits_eight_(uint64_t v)
{
    const uint64_t high = v * 109951163 >> 40, halves = high | (v - high * 10000) << 32;
    const uint64_t top = halves * 10486 >> 20 & 0x0000007F0000007Fu, pairs = top | (halves - top * 100) << 16;
    const uint64_t tens = pairs * 103 >> 10 & 0x000F000F000F000Fu;
    return tens | (pairs - tens * 10) << 8;
}
#define NPUPROF_DIGITS_ZEROS_ ((uint64_t)0x3030303030303030u)
/* Numbers as text at p; they return its end. Up to 7 bytes behind it are overwritten, too. */
enum { NPUPROF_DIGITS_MAX_ = 40 };
static inline char *npuprof_digits_uint_(char *p, uint64_t v)
{
    if (NPUPROF_UNLIKELY_(v >= 100000000)) {
        const uint64_t high = v / 100000000;
        p = npuprof_digits_uint_(p, high);
        npuprof_digits_store_(p, npuprof_digits_eight_(v - high * 100000000) | NPUPROF_DIGITS_ZEROS_);
        return p + 8;
    }
    const uint64_t digits = npuprof_digits_eight_(v);
    const unsigned zeros = NPUPROF_LOW_ZEROS_(digits | (uint64_t)1 << 56) / 8;
    npuprof_digits_store_(p, (digits | NPUPROF_DIGITS_ZEROS_) >> 8 * zeros);
    return p + 8 - zeros;
}
static inline char *npuprof_digits_int_(char *p, int64_t v)
{
    *p = '-';
    return npuprof_digits_uint_(p + (v < 0), v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}
/* Eight digits with a point behind the fifth, without the first `zeros` of them. */
static inline char *npuprof_digits_pointed_(char *p, uint64_t digits, unsigned zeros)
{
    digits |= NPUPROF_DIGITS_ZEROS_;
    npuprof_digits_store_(p, ((digits & 0xFFFFFFFFFFu) | (uint64_t)'.' << 40) >> 8 * zeros);
    npuprof_digits_store_(p + 6 - zeros, digits >> 40);
    return p + 9 - zeros;
}
/* thousandths as a decimal with three places: ns as µs, mHz as Hz. */
static NPUPROF_NOINLINE_ char *npuprof_digits_long_milli_(char *p, int64_t v)
{
    const uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    *p = '-';
    p = npuprof_digits_uint_(p + (v < 0), size / 1000);
    *p++ = '.';
    npuprof_digits_store_(p, (npuprof_digits_eight_(size % 1000) | NPUPROF_DIGITS_ZEROS_) >> 40);
    return p + 3;
}
static inline char *npuprof_digits_milli_(char *p, int64_t v)
{
    if (NPUPROF_UNLIKELY_((uint64_t)v >= 100000000)) return npuprof_digits_long_milli_(p, v);
    const uint64_t digits = npuprof_digits_eight_((uint64_t)v);
    return npuprof_digits_pointed_(p, digits, NPUPROF_LOW_ZEROS_(digits | (uint64_t)1 << 32) / 8);
}
/* The same for stamps, one near the other: the text of what lies above 10^8 is kept. */
typedef struct npuprof_stamp_cache_ { uint64_t above; uint32_t length; char text[NPUPROF_DIGITS_MAX_]; } npuprof_stamp_cache_;   /* length 0: nothing kept */
static NPUPROF_NOINLINE_ char *npuprof_digits_far_stamp_(npuprof_stamp_cache_ *stamps, char *p, int64_t v)
{
    if (v >= 100000000) {
        stamps->above = (uint64_t)v - (uint64_t)v % 100000000;
        stamps->length = (uint32_t)(npuprof_digits_uint_(stamps->text, stamps->above / 100000000) - stamps->text);
    }
    return npuprof_digits_milli_(p, v);
}
static inline char *npuprof_digits_stamp_(npuprof_stamp_cache_ *stamps, char *p, int64_t v)
{
    const uint64_t rest = (uint64_t)v - stamps->above;
    if (NPUPROF_UNLIKELY_(rest >= 100000000 || !stamps->length)) return npuprof_digits_far_stamp_(stamps, p, v);
    memcpy(p, stamps->text, 16);
    return npuprof_digits_pointed_(p + stamps->length, npuprof_digits_eight_(rest), 0);
}
static inline void npuprof_digits_hex_(char *p, uint64_t v)
{
    for (int half = 0; half < 2; half++, v <<= 32) {
        uint64_t x = v >> 48 | (v >> 32 & 0xFFFF) << 32;
        x = (x >> 8 & 0x000000FF000000FFu) | (x & 0x000000FF000000FFu) << 16;
        x = (x >> 4 & 0x000F000F000F000Fu) | (x & 0x000F000F000F000Fu) << 8;
        npuprof_digits_store_(p + 8 * half, x + NPUPROF_DIGITS_ZEROS_ + ((x + 0x0606060606060606u) >> 4 & 0x0101010101010101u) * ('a' - '0' - 10));
    }
}
static void npuprof_out_uint_(npuprof_out_ *o, uint64_t v)
{
    char *const p = npuprof_out_reserve_(o, NPUPROF_DIGITS_MAX_);
    o->used += (size_t)(npuprof_digits_uint_(p, v) - p);
}
static void npuprof_out_int_(npuprof_out_ *o, int64_t v)
{
    char *const p = npuprof_out_reserve_(o, NPUPROF_DIGITS_MAX_);
    o->used += (size_t)(npuprof_digits_int_(p, v) - p);
}
static inline void npuprof_out_milli_(npuprof_out_ *o, int64_t v)
{
    char *const p = npuprof_out_reserve_(o, NPUPROF_DIGITS_MAX_);
    o->used += (size_t)(npuprof_digits_milli_(p, v) - p);
}
static inline void npuprof_out_hex_(npuprof_out_ *o, uint64_t v)
{
    npuprof_digits_hex_(npuprof_out_reserve_(o, 16), v);
    o->used += 16;
}

static inline void npuprof_digits_hex_text_(char digits[17], uint64_t v)
{
    npuprof_digits_hex_(digits, v);
    digits[16] = 0;
}
/* The two words of a trace's id: TRACEPARENT's, else the arena's seed and the id of the trace's root span. */
static inline void npuprof_image_trace_id_(const npuprof_image_ *im, uint32_t tid, uint64_t root, char digits[33])
{
    const uint64_t id = npuprof_image_span_id_(im, tid, root);
    npuprof_digits_hex_text_(digits, im->h->seed_high);
    npuprof_digits_hex_text_(digits + 16, id);
    if (im->h->traceparent[0]) memcpy(digits, im->h->traceparent + 3, 32);
}

/* A string with quotes: raw UTF-8, bad bytes as U+FFFD. JSON escapes; CSV (json false) doubles its quotes. */
static void npuprof_out_escaped_(npuprof_out_ *o, const void *text, size_t length, bool json)
{
    const uint8_t *p = (const uint8_t *)text, *const end = p + length, *from = p;
    while (p < end) {
        while (p < end && *p >= 0x20 && *p < 0x80 && *p != '"' && *p != '\\') p++;
        if (p == end) break;
        const size_t n = npuprof_utf8_length_(p, (size_t)(end - p));
        if (n == 1 && *p != '"' && (!json || (*p != '\\' && *p >= 0x20))) {
            p++;
            continue;
        }
        if (n > 1) {
            p += n;
            continue;
        }
        npuprof_put_(o, (const char *)from, (size_t)(p - from));
        if (n == 0) {
            npuprof_out_puts_(o, "\xEF\xBF\xBD");
        } else if (!json) {
            npuprof_out_puts_(o, "\"\"");
        } else if (*p == '"' || *p == '\\') {
            const char escape[2] = { '\\', (char)*p };
            npuprof_put_(o, escape, 2);
        } else {
            const char escape[6] = { '\\', 'u', '0', '0', (char)('0' + (*p >> 4)), "0123456789abcdef"[*p & 15] };
            npuprof_put_(o, escape, 6);
        }
        from = ++p;
    }
    npuprof_put_(o, (const char *)from, (size_t)(p - from));
}
static void npuprof_out_string_(npuprof_out_ *o, const void *text, size_t length, bool json)
{
    npuprof_put_(o, "\"", 1);
    npuprof_out_escaped_(o, text, length, json);
    npuprof_put_(o, "\"", 1);
}
static void npuprof_put_text_(npuprof_out_ *o, const npuprof_image_ *im, uint32_t id, bool json)
{
    size_t length;
    const char *text = npuprof_image_text_(im, id, &length);
    npuprof_out_string_(o, text, length, json);
}
static inline void npuprof_out_quoted_(npuprof_out_ *o, const char *text) { npuprof_out_string_(o, text, strlen(text), true); }
/* A double with all its digits, whatever the locale. False: not finite, nothing written. */
static inline bool npuprof_out_real_(npuprof_out_ *o, uint64_t bits)
{
    union { uint64_t u; double d; } v;
    v.u = bits;
    if ((bits >> 52 & 0x7FF) == 0x7FF) return false;
    char text[40];
    int n = 0;
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(text, sizeof text, "%.*g", digits, v.d);
        if (digits == 17 || strtod(text, NULL) == v.d) break;
    }
    /* The locale's decimal point may be any bytes. */
    for (int i = 0, point = 0; i < n; i++) {
        const bool plain = (text[i] >= '0' && text[i] <= '9') || text[i] == '-' || text[i] == '+' || text[i] == 'e';
        if (plain) npuprof_put_(o, text + i, 1);
        else if (!point++) npuprof_put_(o, ".", 1);
    }
    return true;
}
/* A counter's value. Why beyond int64 as a real: viewers garble such integers. */
static inline void npuprof_out_big_(npuprof_out_ *o, uint64_t v)
{
    if (v >> 63) (void)npuprof_out_real_(o, npuprof_real_bits_((double)v));
    else npuprof_out_uint_(o, v);
}
static inline void npuprof_put_value_(npuprof_out_ *o, const npuprof_value_ *v)
{
    switch (v->type) {
    case NPUPROF_ARG_INT: npuprof_out_int_(o, (int64_t)v->bits); break;
    case NPUPROF_ARG_UINT:
        /* Why: viewers garble integers beyond int64; as a string they stay what they are. */
        if (v->bits >> 63) npuprof_out_puts_(o, "\"");
        npuprof_out_uint_(o, v->bits);
        if (v->bits >> 63) npuprof_out_puts_(o, "\"");
        break;
    case NPUPROF_ARG_BOOL: npuprof_out_puts_(o, v->bits ? "true" : "false"); break;
    case NPUPROF_ARG_REAL:
        if (!npuprof_out_real_(o, v->bits)) npuprof_out_puts_(o, v->bits << 12 ? "\"NaN\"" : v->bits >> 63 ? "\"-Infinity\"" : "\"Infinity\"");
        break;
    case NPUPROF_ARG_STR:
    case NPUPROF_ARG_STR_CUT_: {
        /* A cut string ends with an ellipsis. */
        char text[NPUPROF_ARG_STRING_LIMIT_ + 3];
        const bool cut = v->type == NPUPROF_ARG_STR_CUT_ && v->length <= NPUPROF_ARG_STRING_LIMIT_;
        if (cut) {
            memcpy(text, v->text, v->length);
            memcpy(text + v->length, "\xE2\x80\xA6", 3);
        }
        npuprof_out_string_(o, cut ? (const void *)text : v->text, v->length + (cut ? 3 : 0), true);
        break;
    }
    default: npuprof_out_puts_(o, "null"); break;
    }
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/text.h"
#include "arena.h"
#include "read.h"

/* Text of the target's own JSON: strings, numbers and templates, into a sink. For those who have no host at
   hand. Works on a npuprof_fw_out_ on the caller's stack. Numbers of 64 bits are divided and multiplied by
   addition and shifts: the compiler's library functions for that take flash. May not know records. */

#ifndef NPUPROF_NO_JSON
enum { NPUPROF_FW_AROUND_ = 16 };        /* open spans that are compared; deeper ones are not */

/* What a template may name: of the event, the first two in ns with three decimals; then of the metadata, in
   the places of the event's. */
#define NPUPROF_FW_START_ "%0"
#define NPUPROF_FW_LENGTH_ "%1"
#define NPUPROF_FW_TRACK_ "%2"           /* its context, from 1 */
#define NPUPROF_FW_VALUE_ "%3"           /* its NPUPROF_FIELD_VALUE_: an id */
#define NPUPROF_FW_HZ_ "%2"
#define NPUPROF_FW_RECORDED_ "%3"
#define NPUPROF_FW_LEFT_OUT_ "%4"
#define NPUPROF_FW_LOST_EVENTS_ "%5"
#define NPUPROF_FW_LOST_NOTES_ "%6"
#define NPUPROF_FW_NAME_ "%7"            /* from here on no numbers */
#define NPUPROF_FW_CATEGORY_ "%8"
#define NPUPROF_FW_PHASE_ "%9"
#define NPUPROF_FW_AT_(name) ((uint32_t)(name)[1] - '0')

typedef struct npuprof_fw_text_ { const char *text; uint32_t length; } npuprof_fw_text_;
typedef struct npuprof_fw_out_ {
    uint64_t number[7];                  /* element NPUPROF_FW_AT_() of each name */
    npuprof_fw_text_ word[2];            /* name and category; NULL: none */
    npuprof_sink sink;
    struct { uint64_t start, end; } around[NPUPROF_FW_AROUND_];        /* the spans around the next one */
    uint64_t last;                       /* last stamp of the trace, in ticks since its first */
    uint32_t depth, left_out;            /* of around; records that are not in the JSON */
    int error, phase;                    /* of the sink; "ph" of the event, 'L': left out */
} npuprof_fw_out_;

static NPUPROF_NOINLINE_ void npuprof_fw_put_bytes_(npuprof_fw_out_ *o, const char *bytes, size_t count)
{
    if (!o->error) o->error = o->sink.write(o->sink.user, bytes, count);
}

static NPUPROF_NOINLINE_ void npuprof_fw_put_char_(npuprof_fw_out_ *o, int c)
{
    const char byte = (char)c;
    npuprof_fw_put_bytes_(o, &byte, 1);
}

/* A quoted text, up to its NUL or its length. A bad byte becomes U+FFFD. */
static NPUPROF_NOINLINE_ void npuprof_fw_put_text_(npuprof_fw_out_ *o, const char *text, uint32_t length)
{
    npuprof_fw_put_char_(o, '"');
    for (uint32_t n; length && *text; text += n, length -= n) {
        const int c = (uint8_t)*text;
        n = (uint32_t)npuprof_utf8_length_((const uint8_t *)text, (size_t)length);
        if (c < 32 || c == 127) {
            npuprof_fw_put_bytes_(o, "\\u00", 4);
            npuprof_fw_put_char_(o, '0' + (c >> 4));
            npuprof_fw_put_char_(o, "0123456789abcdef"[c & 15]);
            continue;
        }
        if (c == '"' || c == '\\') npuprof_fw_put_char_(o, '\\');
        npuprof_fw_put_bytes_(o, n ? text : "\xEF\xBF\xBD", n ? (size_t)n : 3);
        n += !n;
    }
    npuprof_fw_put_char_(o, '"');
}

/* point: number of digits after the point; 0: no point. */
static NPUPROF_NOINLINE_ void npuprof_fw_put_number_(uint64_t v, npuprof_fw_out_ *o, int point)
{
    char digits[24], *p = digits + sizeof digits;
    do {
        const uint32_t low = (uint32_t)v;
        v = npuprof_fw_divide_(v, 10, 0);
        *--p = (char)('0' + low - (uint32_t)v * 10);
        if (!--point) *--p = '.';
    } while (v || point >= 0);
    npuprof_fw_put_bytes_(o, p, (size_t)(digits + sizeof digits - p));
}

/* v * 2^twos, v below 2^61, with 15 digits: v * 2^twos * 10^tens stays the same while `twos` goes to 0. */
static NPUPROF_NOINLINE_ void npuprof_fw_put_scaled_(uint64_t v, npuprof_fw_out_ *o, int twos)
{
    enum { top = 28 };                   /* bit 60 is this one of the upper word */
    int tens = 0;
    uint32_t digit = 0;
    for (; twos > 0; twos--, v <<= 1)
        if (v >> 32 >> top) {
            v = npuprof_fw_divide_(v + 5, 10, 0);
            tens++;
        }
    for (; v && twos < 0; twos++) {
        for (; !(v >> 32 >> top); tens--) {
            uint64_t twice = v << 1;     /* Why so: a product is a call into the compiler's library. */
            v = (v << 3) + NPUPROF_LOAD_(&twice);
        }
        v = (v + (v >> 1 & 1)) >> 1;     /* halves are rounded to even */
    }
    for (uint64_t less; v >= UINT64_C(1000000000000000); v = less, tens++) {
        less = npuprof_fw_divide_(v, 10, 0);
        digit = (uint32_t)v - (uint32_t)less * 10;
    }
    v += digit >= 5 && tens < 294;       /* Why: the largest double, rounded up, is no double. */
    for (uint64_t less; v && tens; v = less, tens++) {
        less = npuprof_fw_divide_(v, 10, 0);
        if ((uint32_t)v != (uint32_t)less * 10) break;
    }
    npuprof_fw_put_number_(v, o, tens < 0 && tens >= -18 ? -tens : 0);
    if (tens > 0 || tens < -18) {
        npuprof_fw_put_bytes_(o, tens < 0 ? "e-" : "e+", 2);
        npuprof_fw_put_number_((uint64_t)(tens < 0 ? -tens : tens), o, 0);
    }
}

/* Writes a template: JSON with ' for a quotation mark, and a name from above for what it names.
   Why not member by member, as write/emit.h of the host: a call for each takes 500 bytes more of flash. */
static NPUPROF_NOINLINE_ void npuprof_fw_put_(npuprof_fw_out_ *o, const char *text)
{
    for (int c; (c = *text) != 0; text++) {
        if (c != '%') {
            npuprof_fw_put_char_(o, c == '\'' ? '"' : c);
            continue;
        }
        const uint32_t at = (uint32_t)*++text - '0', word = at - NPUPROF_FW_AT_(NPUPROF_FW_NAME_);
        if (word < 2) npuprof_fw_put_text_(o, o->word[word].text, o->word[word].length);
        else if (word == 2) npuprof_fw_put_char_(o, o->phase);
        else npuprof_fw_put_number_(o->number[at], o, at < 2 ? 3 : 0);
    }
}

static bool npuprof_fw_is_finite_(uint64_t v) { return (~(uint32_t)(v >> 32) & 0x7FF00000u) != 0; }

/* A value of that type, NPUPROF_ARG_*. */
static NPUPROF_NOINLINE_ void npuprof_fw_put_value_(uint64_t v, npuprof_fw_out_ *o, uint32_t type)
{
    const bool minus = (type & 1) && v >> 63;                /* NPUPROF_ARG_INT and _REAL are odd */
    if (type == NPUPROF_ARG_REAL && !npuprof_fw_is_finite_(v)) {
        npuprof_fw_put_(o, v << 12 ? "'NaN'" : minus ? "'-Infinity'" : "'Infinity'");
        return;
    }
    if (minus) npuprof_fw_put_char_(o, '-');
    if (type == NPUPROF_ARG_REAL) {
        const int exponent = (int)(v >> 52) & 0x7FF;
        v &= 0xFFFFFFFFFFFFFu;
        npuprof_fw_put_scaled_(exponent ? v | 0x10000000000000u : v, o, (exponent ? exponent : 1) - 1075);
    } else if (type == NPUPROF_ARG_UINT && v >> 63) {        /* viewers take 63 bits at most */
        if (o->phase == 'C') {
            npuprof_fw_put_scaled_((v >> 4) + (v >> 3 & 1), o, 4);
        } else {
            npuprof_fw_put_char_(o, '"');
            npuprof_fw_put_number_(v, o, 0);
            npuprof_fw_put_char_(o, '"');
        }
    } else if (type == NPUPROF_ARG_BOOL) {
        npuprof_fw_put_(o, v ? "true" : "false");
    } else {
        npuprof_fw_put_number_(minus ? 0 - v : v, o, 0);
    }
}
#endif /* !NPUPROF_NO_JSON */

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/hot.h"
#include "../numbers/text.h"
#include "../format/layouts.h"
#include "../arena/table.h"
#include "../read/image.h"
#include "../read/args.h"
#include "../numbers/digits.h"
#include "../numbers/real.h"

/* A buffered writer of text over a sink, for JSON and CSV: bytes, numbers, strings with their quotes, values
   of arguments. After an error of the sink it swallows what comes; the error stays. The buffer is the
   caller's. */
typedef struct npuprof_out_ {
    npuprof_sink sink;
    char *bytes;
    size_t capacity, used;
    uint64_t flushes;
    int error;
    bool fresh;                            /* of JSON: nothing is behind the bracket yet (emit.h) */
} npuprof_out_;

static void npuprof_out_flush_(npuprof_out_ *o)
{
    if (o->used && !o->error) o->error = o->sink.write(o->sink.user, o->bytes, o->used);
    o->used = 0;
    o->flushes++;
}

/* The writer itself failed, with an errno value; 0: it did not. The first error stays. */
static void npuprof_out_fail_(npuprof_out_ *o, int error)
{
    if (!o->error) o->error = error;
}

/* Makes room, at least 4096 bytes of a buffer that has them: whole pages go, what is left stays.
   Why whole pages: a file system writes a page of which it gets a piece more slowly, and twice. */
static NPUPROF_NOINLINE_ void npuprof_out_make_room_(npuprof_out_ *o)
{
    const size_t left = o->used % 4096, pages = o->used - left;
    o->used = pages ? pages : left;
    npuprof_out_flush_(o);
    if (!pages) return;
    memcpy(o->bytes, o->bytes + pages, left);
    o->used = left;
}

static NPUPROF_NOINLINE_ void npuprof_out_put_slow_(npuprof_out_ *o, const char *bytes, size_t count)
{
    while (count) {
        if (o->used == o->capacity) npuprof_out_make_room_(o);
        const size_t n = count < o->capacity - o->used ? count : o->capacity - o->used;
        memcpy(o->bytes + o->used, bytes, n);
        o->used += n;
        bytes += n;
        count -= n;
    }
}

NPUPROF_HOT_ static inline void npuprof_out_put_(npuprof_out_ *o, const char *bytes, size_t count)
{
    if (NPUPROF_UNLIKELY_(count > o->capacity - o->used)) {
        npuprof_out_put_slow_(o, bytes, count);
        return;
    }
    memcpy(o->bytes + o->used, bytes, count);
    o->used += count;
}

static inline void npuprof_out_puts_(npuprof_out_ *o, const char *text)
{
    npuprof_out_put_(o, text, strlen(text));
}

/* Makes so many bytes free in the buffer, at most its capacity, and returns where they are. Who fills them
   says how far: npuprof_out_take_(). */
NPUPROF_HOT_ static inline char *npuprof_out_reserve_(npuprof_out_ *o, size_t count)
{
    if (NPUPROF_UNLIKELY_(count > o->capacity - o->used)) npuprof_out_make_room_(o);
    return o->bytes + o->used;
}

/* They are filled up to there. */
NPUPROF_HOT_ static inline void npuprof_out_take_(npuprof_out_ *o, const char *end)
{
    o->used = (size_t)(end - o->bytes);
}

/* ---- Numbers */

static void npuprof_out_uint_(npuprof_out_ *o, uint64_t v)
{
    npuprof_out_take_(o, npuprof_digits_uint_(npuprof_out_reserve_(o, NPUPROF_DIGITS_MAX_), v));
}

static void npuprof_out_int_(npuprof_out_ *o, int64_t v)
{
    npuprof_out_take_(o, npuprof_digits_int_(npuprof_out_reserve_(o, NPUPROF_DIGITS_MAX_), v));
}

static inline void npuprof_out_milli_(npuprof_out_ *o, int64_t v)
{
    npuprof_out_take_(o, npuprof_digits_milli_(npuprof_out_reserve_(o, NPUPROF_DIGITS_MAX_), v));
}

/* A double, as the shortest digits that read back as it. False: it is not finite, and nothing was written. */
static inline bool npuprof_out_real_(npuprof_out_ *o, uint64_t bits)
{
    if ((bits >> 52 & 0x7FF) == 0x7FF) return false;
    npuprof_out_take_(o, npuprof_digits_real_(npuprof_out_reserve_(o, NPUPROF_DIGITS_MAX_), bits));
    return true;
}

/* ---- Strings */

/* The inside of a quoted string: raw UTF-8, bad bytes as U+FFFD. JSON escapes; CSV (json false) doubles its
   quotes. Why DEL, too: Perfetto refuses a file that has it raw in the metadata. */
static void npuprof_out_escaped_(npuprof_out_ *o, const void *text, size_t length, bool json)
{
    const uint8_t *p = (const uint8_t *)text, *const end = p + length, *from = p;
    while (p < end) {
        while (p < end && *p >= 0x20 && *p < 0x7F && *p != '"' && *p != '\\') p++;
        if (p == end) break;
        const size_t n = npuprof_utf8_length_(p, (size_t)(end - p));
        if (n > 1 || (n == 1 && *p != '"' && (!json || (*p != '\\' && *p >= 0x20 && *p != 0x7F)))) {
            p += n;
            continue;
        }
        npuprof_out_put_(o, (const char *)from, (size_t)(p - from));
        if (n == 0) {
            npuprof_out_puts_(o, "\xEF\xBF\xBD");
        } else if (!json) {
            npuprof_out_puts_(o, "\"\"");
        } else if (*p == '"' || *p == '\\') {
            const char escape[2] = { '\\', (char)*p };
            npuprof_out_put_(o, escape, 2);
        } else {
            const char escape[6] = {
                '\\', 'u', '0', '0', (char)('0' + (*p >> 4)), "0123456789abcdef"[*p & 15]
            };
            npuprof_out_put_(o, escape, 6);
        }
        from = ++p;
    }
    npuprof_out_put_(o, (const char *)from, (size_t)(p - from));
}

/* What a text in a CSV has before it if a spreadsheet would take it for a formula: a quote. A text that has
   quotes there already gets one more, so that the reader takes away what was put. */
static void npuprof_out_guard_(npuprof_out_ *o, const char *text, size_t length)
{
    size_t n = 0;
    while (n < length && text[n] == '\'') n++;
    if (n < length && memchr("=+-@\t\r", text[n], 6)) npuprof_out_put_(o, "'", 1);
}

static void npuprof_out_string_(npuprof_out_ *o, const void *text, size_t length, bool json)
{
    npuprof_out_put_(o, "\"", 1);
    if (!json) npuprof_out_guard_(o, (const char *)text, length);
    npuprof_out_escaped_(o, text, length, json);
    npuprof_out_put_(o, "\"", 1);
}

/* A string of the image's table. */
static void npuprof_out_text_(npuprof_out_ *o, const npuprof_image_ *im, uint32_t id, bool json)
{
    size_t length;
    const char *text = npuprof_image_text_(im, id, &length);
    npuprof_out_string_(o, text, length, json);
}

static inline void npuprof_out_quoted_(npuprof_out_ *o, const char *text)
{
    npuprof_out_string_(o, text, strlen(text), true);
}

/* A string argument; one that was cut when it was recorded ends with an ellipsis. */
static inline void npuprof_out_string_value_(npuprof_out_ *o, const npuprof_value_ *v)
{
    char text[NPUPROF_ARG_STRING_LIMIT_ + 3];
    if (v->type != NPUPROF_ARG_STR_CUT_ || v->length > NPUPROF_ARG_STRING_LIMIT_) {
        npuprof_out_string_(o, v->text, v->length, true);
        return;
    }
    memcpy(text, v->text, v->length);
    memcpy(text + v->length, "\xE2\x80\xA6", 3);
    npuprof_out_string_(o, text, v->length + 3, true);
}

NPUPROF_ASSERT_(out_value_type_without_case, NPUPROF_ARG_TYPE_COUNT_ == NPUPROF_ARG_STR_NULL_ + 1);

/* The value of an argument, as JSON. Other types are those of damaged images. */
static inline void npuprof_out_value_(npuprof_out_ *o, const npuprof_value_ *v)
{
    /* Why: JSON has no such numbers, and viewers garble integers above int64. As strings they stay what they
       are. */
    const char *const not_finite = v->bits << 12   ? "\"NaN\""
                                   : v->bits >> 63 ? "\"-Infinity\""
                                                   : "\"Infinity\"";
    const char *const quote = v->bits >> 63 ? "\"" : "";
    switch (v->type) {
    case NPUPROF_ARG_INT: npuprof_out_int_(o, (int64_t)v->bits); break;
    case NPUPROF_ARG_UINT:
        npuprof_out_puts_(o, quote);
        npuprof_out_uint_(o, v->bits);
        npuprof_out_puts_(o, quote);
        break;
    case NPUPROF_ARG_BOOL: npuprof_out_puts_(o, v->bits ? "true" : "false"); break;
    case NPUPROF_ARG_REAL:
        if (!npuprof_out_real_(o, v->bits)) npuprof_out_puts_(o, not_finite);
        break;
    case NPUPROF_ARG_STR:
    case NPUPROF_ARG_STR_CUT_: npuprof_out_string_value_(o, v); break;
    case NPUPROF_ARG_STR_NULL_:
    default: npuprof_out_puts_(o, "null"); break;
    }
}

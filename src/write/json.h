#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../numbers/text.h"
#include "../format/arena.h"
#include "../read/image.h"
#include "../read/args.h"
#include "../read/time.h"
#include "../read/walk.h"
#include "text.h"
#include "work.h"
#include "span_text.h"

/* Events of Chrome's trace format: what the parts of the JSON writer have in common. An event is written in
   pieces: its beginning up to the stamps, stamps, arguments, and a closing brace. Times are microseconds with
   three decimals, after the beginning of the trace; tids are those of threads first, then one for each
   further track.

   Data: the work area. The parts: json_thread.h (threads), json_placed.h (tracks that are no threads),
   json_flow.h (arrows of flows), json_clock.h (clocks of devices), json_head.h (metadata, and the order of it
   all). */

/* Are two keys the same once they are written? Bad bytes all become U+FFFD. */
static bool npuprof_json_same_key_(const npuprof_image_ *im, uint32_t a, uint32_t b)
{
    size_t a_left, b_left;
    if (a == b) return true;
    const uint8_t *p = (const uint8_t *)npuprof_image_text_(im, a, &a_left);
    const uint8_t *q = (const uint8_t *)npuprof_image_text_(im, b, &b_left);
    while (a_left && b_left) {
        const size_t n = npuprof_utf8_length_(p, a_left), m = npuprof_utf8_length_(q, b_left);
        const bool p_bad = n == 0 || (n == 3 && memcmp(p, "\xEF\xBF\xBD", 3) == 0);
        const bool q_bad = m == 0 || (m == 3 && memcmp(q, "\xEF\xBF\xBD", 3) == 0);
        if (p_bad != q_bad || (!p_bad && (n != m || memcmp(p, q, n) != 0))) return false;
        p += n ? n : 1;
        q += m ? m : 1;
        a_left -= n ? n : 1;
        b_left -= m ? m : 1;
    }
    return a_left == b_left;
}

/* Begins an event: everything up to the stamps. name: NULL for name_id. category: 0 for none. */
static void npuprof_json_open_(npuprof_work_ *w, const char *phase, uint32_t name_id, const char *name,
                               uint32_t category, uint32_t tid)
{
    npuprof_out_ *o = &w->out;
    npuprof_out_puts_(o, w->comma ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    w->comma = true;
    npuprof_out_puts_(o, phase);
    npuprof_out_puts_(o, "\",\"name\":");
    if (name) npuprof_out_quoted_(o, name);
    else npuprof_out_text_(o, &w->image, name_id, true);
    if (category) {
        npuprof_out_puts_(o, ",\"cat\":");
        npuprof_out_text_(o, &w->image, category, true);
    }
    npuprof_out_puts_(o, ",\"pid\":");
    npuprof_out_uint_(o, w->image.h->pid);
    npuprof_out_puts_(o, ",\"tid\":");
    npuprof_out_uint_(o, tid);
}

static void npuprof_json_stamp_(npuprof_work_ *w, const char *key, int64_t ns)
{
    npuprof_out_puts_(&w->out, key);
    npuprof_out_milli_(&w->out, ns);
}

/* `key` is the member's text up to its value: comma, quotes and colon included. */
static void npuprof_json_member_(npuprof_out_ *o, const char *key, uint64_t value)
{
    npuprof_out_puts_(o, key);
    npuprof_out_uint_(o, value);
}

/* ---- Spans: the beginning is the same for all spans of a site on a track, so it is cached */

/* A span up to its arguments to p, where NPUPROF_SPAN_TEXT_ROOM_ bytes are free, and a closing brace that is
   not counted: who writes no arguments counts it. Returns the end. */
NPUPROF_HOT_ static inline char *npuprof_json_cached_span_(npuprof_work_ *w, char *p,
                                                           const npuprof_span_text_ *cached, int64_t start,
                                                           int64_t end)
{
    p = npuprof_digits_stamp_(&w->stamps, npuprof_span_text_copy_(p, cached), start);
    memcpy(p, ",\"dur\": ", 8);
    p = npuprof_digits_milli_(p + 7, end - start);
    *p = '}';
    return p;
}

static void npuprof_json_span_(npuprof_work_ *w, const npuprof_event_ *ev, uint32_t tid, int64_t start,
                               int64_t end)
{
    const uint64_t key = npuprof_span_text_key_(tid, ev->site, ev->kind);
    npuprof_span_text_ *const cached = npuprof_span_text_at_(w, key);
    bool fits = cached->key == key;
    if (!fits) {
        npuprof_out_ aside;
        npuprof_span_text_begin_(w, cached, &aside);
        npuprof_json_open_(w, "X", ev->name, NULL, ev->category, tid);
        npuprof_out_puts_(&w->out, ",\"ts\":");
        fits = npuprof_span_text_end_(w, cached, key, &aside);
    }
    if (fits) {
        char *const p = npuprof_out_reserve_(&w->out, NPUPROF_SPAN_TEXT_ROOM_);
        w->out.used += (size_t)(npuprof_json_cached_span_(w, p, cached, start, end) - p);
        return;
    }
    npuprof_json_open_(w, "X", ev->name, NULL, ev->category, tid);
    npuprof_json_stamp_(w, ",\"ts\":", start);
    npuprof_json_stamp_(w, ",\"dur\":", end - start);
}

/* ---- Arguments */

/* Does an argument with this key come again behind the last one? */
static bool npuprof_json_key_comes_again_(const npuprof_args_walk_ *args, uint32_t key)
{
    npuprof_args_walk_ rest = *args;
    npuprof_value_ later;
    while (npuprof_args_next_(&rest, &later))
        if (npuprof_json_same_key_(args->image, later.key, key)) return true;
    return false;
}

/* A key and its colon. A key that is in `first`, the text that the writer itself has put, becomes
   "user.<key>". */
static void npuprof_json_key_(npuprof_work_ *w, uint32_t id, const char *first)
{
    npuprof_out_ *o = &w->out;
    char quoted[40];                       /* longer than any key of the writer */
    size_t length;
    const char *key = npuprof_image_text_(&w->image, id, &length);
    quoted[0] = 0;
    if (*first && length < 32 && !memchr(key, 0, length)) {
        quoted[0] = '"';
        memcpy(quoted + 1, key, length);
        memcpy(quoted + 1 + length, "\":", 3);
    }
    if (quoted[0] && strstr(first, quoted)) {
        npuprof_out_puts_(o, "\"user.");
        npuprof_out_puts_(o, quoted + 1);
    } else {
        npuprof_out_text_(o, &w->image, id, true);
        npuprof_out_put_(o, ":", 1);
    }
}

/* ,"args":{...}: `first` is what the writer itself puts before them, without a comma at its end, or "".
   Why of a key that comes twice only the last: strict readers refuse a key twice. */
static void npuprof_json_args_(npuprof_work_ *w, const npuprof_event_ *ev, const char *first)
{
    npuprof_out_ *o = &w->out;
    npuprof_value_ v;
    bool any = *first != 0;
    npuprof_args_walk_ args = npuprof_args_begin_(&w->image, ev);
    if (!any && ev->args == ev->args_end && !ev->results) return;
    npuprof_out_puts_(o, ",\"args\":{");
    npuprof_out_puts_(o, first);
    while (npuprof_args_next_(&args, &v)) {
        if (npuprof_json_key_comes_again_(&args, v.key)) continue;
        if (any) npuprof_out_put_(o, ",", 1);
        any = true;
        npuprof_json_key_(w, v.key, first);
        npuprof_out_value_(o, &v);
    }
    npuprof_out_put_(o, "}", 1);
}

/* ---- Text that is put together before it is written */

/* Appends text; returns the new length. */
static size_t npuprof_json_append_(char *text, size_t at, size_t capacity, const char *more)
{
    npuprof_text_copy_(text + at, capacity - at, more);
    return at + strlen(text + at);
}

/* A decimal number as text. */
static const char *npuprof_json_decimal_(char text[24], uint64_t v)
{
    char digits[NPUPROF_DIGITS_MAX_];
    *npuprof_digits_uint_(digits, v) = 0;
    npuprof_text_copy_(text, 24, digits);
    return text;
}

/* Appends "trace_id" and "span_id" of a record, as the CSV has them, to what the writer puts before the
   arguments. */
static void npuprof_json_ids_(const npuprof_image_ *im, char *text, size_t capacity, uint32_t root_tid,
                              uint64_t root, uint32_t tid, uint64_t position)
{
    char trace[33], span[17];
    const char *parts[] = { *text ? ",\"trace_id\":\"" : "\"trace_id\":\"", trace, "\",\"span_id\":\"", span,
                            "\"" };
    npuprof_digits_trace_id_(im, root_tid, root, trace);
    npuprof_digits_hex_text_(span, npuprof_image_span_id_(im, tid, position));
    size_t n = strlen(text);
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++)
        n = npuprof_json_append_(text, n, capacity, parts[part]);
}

/* ---- Names of tracks */

/* A metadata event with {"name":...}: a name of the table between two texts, and further members in `more`.
   */
static void npuprof_json_name_(npuprof_work_ *w, const char *what, uint32_t tid, uint32_t name_id,
                               const char *prefix, const char *suffix, const char *more)
{
    size_t length;
    const char *name = npuprof_image_text_(&w->image, name_id, &length);
    char text[192];
    npuprof_json_open_(w, "M", 0, what, 0, tid);
    npuprof_out_puts_(&w->out, ",\"args\":{\"name\":");
    if (!length && !*prefix) {             /* Why: viewers refuse a track without a name. */
        name = "unnamed";
        length = 7;
    }
    if (!*prefix && !*suffix) {
        npuprof_out_string_(&w->out, name, length, true);
    } else {
        const size_t p = strlen(prefix), s = strlen(suffix), cut = npuprof_utf8_cut_(name, length, 64);
        size_t n = p < 60 ? p : 60;
        memcpy(text, prefix, n);
        memcpy(text + n, name, cut);
        n += cut;
        memcpy(text + n, suffix, s < 60 ? s : 60);
        n += s < 60 ? s : 60;
        npuprof_out_string_(&w->out, text, n, true);
    }
    npuprof_out_puts_(&w->out, more);
    npuprof_out_puts_(&w->out, "}}");
}

/* Where a viewer puts the track. */
static void npuprof_json_sort_(npuprof_work_ *w, const char *what, uint32_t tid, uint32_t index)
{
    npuprof_json_open_(w, "M", 0, what, 0, tid);
    npuprof_json_member_(&w->out, ",\"args\":{\"sort_index\":", index);
    npuprof_out_puts_(&w->out, "}}");
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../numbers/text.h"
#include "../format/arena.h"
#include "../os/common.h"
#include "../arena/table.h"
#include "../read/image.h"
#include "../read/cursor.h"
#include "../read/time.h"
#include "../read/walk.h"
#include "text.h"
#include "work.h"
#include "lanes.h"
#include "span_text.h"

/* Are two keys the same once they are written? Bad bytes all become U+FFFD. */
static bool npuprof_json_same_key_(const npuprof_image_ *im, uint32_t a, uint32_t b)
{
    size_t a_left, b_left;
    if (a == b) return true;
    const uint8_t *p = (const uint8_t *)npuprof_image_text_(im, a, &a_left), *q = (const uint8_t *)npuprof_image_text_(im, b, &b_left);
    while (a_left && b_left) {
        const size_t n = npuprof_utf8_length_(p, a_left), m = npuprof_utf8_length_(q, b_left);
        const bool p_bad = n == 0 || (n == 3 && memcmp(p, "\xEF\xBF\xBD", 3) == 0), q_bad = m == 0 || (m == 3 && memcmp(q, "\xEF\xBF\xBD", 3) == 0);
        if (p_bad != q_bad || (!p_bad && (n != m || memcmp(p, q, n) != 0))) return false;
        p += n ? n : 1;
        q += m ? m : 1;
        a_left -= n ? n : 1;
        b_left -= m ? m : 1;
    }
    return a_left == b_left;
}

/* Begins an event: everything up to the stamps. name: or NULL for name_id. */
static void npuprof_json_open_(npuprof_work_ *w, const char *phase, uint32_t name_id, const char *name, uint32_t category, uint32_t tid)
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

/* A span up to its arguments. Its beginning is kept, because the next one of its site and track begins alike. */
static inline void npuprof_json_cached_span_(npuprof_work_ *w, const npuprof_span_text_ *kept, int64_t start, int64_t end)
{
    char *p = npuprof_span_text_put_(&w->out, kept);
    p = npuprof_digits_stamp_(&w->stamps, p, start);
    memcpy(p, ",\"dur\": ", 8);
    p = npuprof_digits_milli_(p + 7, end - start);
    *p = '}';
    w->out.used = (size_t)(p - w->out.bytes);
}
static void npuprof_json_span_(npuprof_work_ *w, const npuprof_event_ *ev, uint32_t tid, int64_t start, int64_t end)
{
    const uint64_t key = npuprof_span_text_key_(tid, ev->site, ev->kind);
    npuprof_span_text_ *const kept = npuprof_span_text_at_(w, key);
    bool fits = kept->key == key;
    if (!fits) {
        npuprof_out_ aside;
        npuprof_span_text_begin_(w, kept, &aside);
        npuprof_json_open_(w, "X", ev->name, NULL, ev->category, tid);
        npuprof_out_puts_(&w->out, ",\"ts\":");
        fits = npuprof_span_text_end_(w, kept, key, &aside);
    }
    if (fits) {
        npuprof_json_cached_span_(w, kept, start, end);
        return;
    }
    npuprof_json_open_(w, "X", ev->name, NULL, ev->category, tid);
    npuprof_json_stamp_(w, ",\"ts\":", start);
    npuprof_json_stamp_(w, ",\"dur\":", end - start);
}

/* ,"args":{...}: `first` is what the writer itself has to say, without its comma, or "". */
static void npuprof_json_args_(npuprof_work_ *w, const npuprof_event_ *ev, const char *first)
{
    npuprof_out_ *o = &w->out;
    npuprof_value_ v;
    bool any = *first != 0;
    const npuprof_unit_ *u = ev->args;
    if (!any && u == ev->args_end) return;
    npuprof_out_puts_(o, ",\"args\":{");
    npuprof_out_puts_(o, first);
    while (npuprof_args_next_(&u, ev->args_end, &v)) {
        /* Why the last of a key: strict readers refuse a key twice. */
        bool again = false;
        npuprof_value_ later;
        for (const npuprof_unit_ *rest = u; !again && npuprof_args_next_(&rest, ev->args_end, &later);)
            again = npuprof_json_same_key_(&w->image, later.key, v.key);
        if (again) continue;
        if (any) npuprof_out_put_(o, ",", 1);
        any = true;
        /* A key that the writer has used itself becomes "user.<key>". */
        char own[40];
        size_t length;
        const char *key = npuprof_image_text_(&w->image, v.key, &length);
        own[0] = 0;
        if (*first && length < 32 && !memchr(key, 0, length)) {
            own[0] = '"';
            memcpy(own + 1, key, length);
            memcpy(own + 1 + length, "\":", 3);
        }
        if (own[0] && strstr(first, own)) {
            npuprof_out_puts_(o, "\"user.");
            npuprof_out_puts_(o, own + 1);
        } else {
            npuprof_out_text_(o, &w->image, v.key, true);
            npuprof_out_put_(o, ":", 1);
        }
        npuprof_out_value_(o, &v);
    }
    npuprof_out_put_(o, "}", 1);
}

/* Appends text; returns the new length. */
static size_t npuprof_json_append_(char *text, size_t at, size_t room, const char *more)
{
    npuprof_text_copy_(text + at, room - at, more);
    return at + strlen(text + at);
}
/* A metadata event: {"name":text} or {"sort_index":n}. A name that is empty is "unnamed". */
static void npuprof_json_name_(npuprof_work_ *w, const char *what, uint32_t tid, uint32_t name_id, const char *prefix, const char *suffix,
                               const char *more)
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
        const size_t p = strlen(prefix), s = strlen(suffix);
        size_t n = p < 60 ? p : 60;
        memcpy(text, prefix, n);
        const size_t kept = npuprof_utf8_cut_(name, length, 64);
        memcpy(text + n, name, kept);
        n += kept;
        memcpy(text + n, suffix, s < 60 ? s : 60);
        n += s < 60 ? s : 60;
        npuprof_out_string_(&w->out, text, n, true);
    }
    npuprof_out_puts_(&w->out, more);
    npuprof_out_puts_(&w->out, "}}");
}
static void npuprof_json_sort_(npuprof_work_ *w, const char *what, uint32_t tid, uint32_t index)
{
    npuprof_json_open_(w, "M", 0, what, 0, tid);
    npuprof_out_puts_(&w->out, ",\"args\":{\"sort_index\":");
    npuprof_out_uint_(&w->out, index);
    npuprof_out_puts_(&w->out, "}}");
}
/* A decimal number as text. */
static const char *npuprof_json_decimal_(char room[24], uint64_t v)
{
    char text[NPUPROF_DIGITS_MAX_];
    *npuprof_digits_uint_(text, v) = 0;
    npuprof_text_copy_(room, 24, text);
    return room;
}

/* ,"trace_id":"...","span_id":"...": as in the CSV, behind the writer's other words of a span. */
static void npuprof_json_ids_(const npuprof_image_ *im, char *text, size_t room, uint32_t root_tid, uint64_t root, uint32_t tid, uint64_t position)
{
    char trace[33], span[17];
    const char *parts[] = { *text ? ",\"trace_id\":\"" : "\"trace_id\":\"", trace, "\",\"span_id\":\"", span, "\"" };
    npuprof_digits_trace_id_(im, root_tid, root, trace);
    npuprof_digits_hex_text_(span, npuprof_image_span_id_(im, tid, position));
    size_t n = strlen(text);
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) {
        npuprof_text_copy_(text + n, room - n, parts[part]);
        n += strlen(text + n);
    }
}

/* The plain spans that come next, as long as they nest and their beginnings are kept. */
static void npuprof_json_plain_(npuprof_work_ *w)
{
    const uint32_t nested = 1u << NPUPROF_KIND_RECORD | 1u << NPUPROF_KIND_WARM_UP | 1u << NPUPROF_KIND_INFERENCE | 1u << NPUPROF_KIND_OPERATOR | 1u << NPUPROF_KIND_MEMORY;
    const bool walk = w->image.kinds & nested;   /* Why not always: it is for the ids of those */
    const uint32_t tid = w->walk.tid;
    npuprof_cursor_ c = w->walk.cursor[0];
    npuprof_plain_ p;
    while (npuprof_cursor_peek_plain_(&c, &p)) {
        const uint64_t key = npuprof_span_text_key_(tid, p.site, NPUPROF_KIND_SPAN);
        const npuprof_span_text_ *kept = npuprof_span_text_at_(w, key);
        if (kept->key != key) break;
        const int64_t start = npuprof_image_trace_ns_(&w->image, p.start), end = npuprof_image_trace_ns_(&w->image, p.end);
        if (!npuprof_lane_nest_(w, 0, start, end)) break;
        if (walk) npuprof_walk_plain_(&w->walk, &p);
        npuprof_json_cached_span_(w, kept, start, end);
        w->out.used++;
        c.unit++;
    }
    w->walk.cursor[0].unit = c.unit;
}

/* The state of a memory pool, and what changed it: tag and change are arguments of an instant beside the counter, because a counter
   takes nothing but its values. Why the category: Chrome's viewer takes a counter and a pool of one name for one otherwise. */
static void npuprof_json_memory_(npuprof_work_ *w, const npuprof_event_ *ev, uint32_t tid, int64_t ts)
{
    npuprof_out_ *const o = &w->out;
    size_t length;
    npuprof_json_open_(w, "C", ev->category, NULL, 0, tid);
    npuprof_out_puts_(o, ",\"cat\":\"memory\",\"tag\":");
    npuprof_out_text_(o, &w->image, ev->name, true);
    if (ev->change) {
        npuprof_out_puts_(o, ",\"change\":");
        npuprof_out_int_(o, ev->change);
    }
    if (w->walk.warm_up) npuprof_out_puts_(o, ",\"warm_up\":true");
    npuprof_json_stamp_(w, ",\"ts\":", ts);
    npuprof_out_puts_(o, ",\"args\":{\"used\":");
    npuprof_out_big_(o, ev->value);
    npuprof_out_puts_(o, ",\"allocated\":");
    npuprof_out_big_(o, ev->second);
    npuprof_out_puts_(o, "}}");
    (void)npuprof_image_text_(&w->image, ev->name, &length);
    if (!length && !ev->change) return;
    npuprof_json_open_(w, "i", ev->name, length ? NULL : "memory", 0, tid);
    npuprof_json_stamp_(w, ",\"cat\":\"memory\",\"derived\":true,\"s\":\"t\",\"ts\":", ts);
    npuprof_out_puts_(o, ",\"args\":{\"pool\":");
    npuprof_out_text_(o, &w->image, ev->category, true);
    npuprof_out_puts_(o, ",\"tag\":");
    npuprof_out_text_(o, &w->image, ev->name, true);
    if (ev->change) {
        npuprof_out_puts_(o, ",\"change\":");
        npuprof_out_int_(o, ev->change);
    }
    npuprof_out_puts_(o, "}}");
}

/* Members of a thread's name: its number in the system, with which the trace joins those of perf, ftrace and strace; and how many threads
   had the track one after the other, where that number is the last one's only. */
static void npuprof_json_native_thread_(const npuprof_slot_head_ *slot, char *text, size_t room)
{
    const uint32_t id = NPUPROF_LOAD_(&slot->os_tid), owners = NPUPROF_LOAD_(&slot->owners);
    char number[24];
    size_t n = 0;
    text[0] = 0;
    if (id) n = npuprof_json_append_(text, n, room, ",\"native_id\":");
    if (id) n = npuprof_json_append_(text, n, room, npuprof_json_decimal_(number, id));
    if (owners > 1) n = npuprof_json_append_(text, n, room, ",\"native_threads\":");
    if (owners > 1) (void)npuprof_json_append_(text, n, room, npuprof_json_decimal_(number, owners));
}
static void npuprof_json_thread_(npuprof_work_ *w, const npuprof_slot_head_ *slot)
{
    npuprof_image_ *im = &w->image;
    npuprof_event_ ev;
    static const char *const kinds[] = { "", "\"kind\":\"record\"", "\"kind\":\"warm_up\"", "\"kind\":\"inference\"", "\"kind\":\"operator\"" };
    char native[80];
    char text[160], number[24];
    size_t length;
    uint32_t name = NPUPROF_LOAD_(&slot->name);
    (void)npuprof_image_text_(im, name, &length);
    if (!length) name = 0;
    npuprof_walk_begin_(&w->walk, im, NPUPROF_LOAD_(&slot->tid));
    npuprof_lane_clear_all_(w);
    const uint32_t tid = w->walk.tid;
    npuprof_json_native_thread_(slot, native, sizeof native);
    if (name) npuprof_json_name_(w, "thread_name", tid, name, "", "", native);
    else if (NPUPROF_LOAD_(&slot->os_tid) == im->h->pid) npuprof_json_name_(w, "thread_name", tid, 0, "main", "", native);
    else npuprof_json_name_(w, "thread_name", tid, 0, "thread ", npuprof_json_decimal_(number, tid), native);
    npuprof_json_sort_(w, "thread_sort_index", tid, tid);
    for (;;) {
        if (w->walk.sources == 1 && w->lanes) npuprof_json_plain_(w);
        if (!npuprof_walk_next_(&w->walk, &ev)) break;
        const int64_t ts = npuprof_image_trace_ns_(im, ev.start);
        if (ev.kind <= NPUPROF_KIND_OPERATOR) {
            int64_t end = npuprof_image_trace_ns_(im, ev.end);
            if (end < ts) end = ts;
            const uint32_t lane = npuprof_lane_find_(w, npuprof_lane_no_group_, ts, end);
            if (lane && (!w->tid[lane] || lane == NPUPROF_LANES_)) {
                w->tid[lane] = w->next_tid++;
                npuprof_json_name_(w, "thread_name", w->tid[lane], name, name ? "" : "thread", " (overlap)", "");
                npuprof_json_sort_(w, "thread_sort_index", w->tid[lane], tid);
            }
            npuprof_json_span_(w, &ev, lane ? w->tid[lane] : tid, ts, end);
            text[0] = 0;
            if (ev.kind != NPUPROF_KIND_SPAN) {
                npuprof_text_copy_(text, sizeof text, kinds[ev.kind - NPUPROF_KIND_SPAN]);
                npuprof_json_ids_(im, text, sizeof text, ev.tid, w->walk.root, ev.tid, ev.position);
            }
            if (ev.unfinished || ev.cut) {
                const size_t used = strlen(text);
                const char *left = ev.unfinished ? ",\"unfinished\":true" : ",\"unfinished\":\"unwound\"";
                npuprof_text_copy_(text + used, sizeof text - used, left + !used);
            }
            npuprof_json_args_(w, &ev, text);
            npuprof_out_puts_(&w->out, "}");
            continue;
        }
        const uint32_t k = ev.kind;
        if (k == NPUPROF_KIND_INSTANT) {
            npuprof_json_open_(w, "i", ev.name, NULL, ev.category, tid);
            npuprof_json_stamp_(w, ",\"s\":\"t\",\"ts\":", ts);
            npuprof_json_args_(w, &ev, "");
            npuprof_out_puts_(&w->out, "}");
        } else if (k == NPUPROF_KIND_COUNTER_INT || k == NPUPROF_KIND_COUNTER_UINT || k == NPUPROF_KIND_COUNTER_REAL) {
            if (k == NPUPROF_KIND_COUNTER_REAL && (ev.value >> 52 & 0x7FF) == 0x7FF) {
                w->skipped_values++;
                continue;
            }
            npuprof_json_open_(w, "C", ev.name, NULL, 0, tid);
            npuprof_json_stamp_(w, ",\"ts\":", ts);
            npuprof_out_puts_(&w->out, ",\"args\":{\"value\":");
            if (k == NPUPROF_KIND_COUNTER_INT) npuprof_out_int_(&w->out, (int64_t)ev.value);
            else if (k == NPUPROF_KIND_COUNTER_UINT) npuprof_out_big_(&w->out, ev.value);
            else npuprof_out_real_(&w->out, ev.value);
            npuprof_out_puts_(&w->out, "}}");
        } else if (k == NPUPROF_KIND_MEMORY) {
            npuprof_json_memory_(w, &ev, tid, ts);
        }
    }
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "../read/image.h"
#include "../read/cursor.h"
#include "../read/time.h"
#include "../read/walk.h"
#include "text.h"
#include "work.h"
#include "lanes.h"
#include "span_text.h"
#include "json.h"

/* The events of one thread: spans, instants, counters, states of memory pools. Spans that do not nest,
   because a signal handler or an unwound span is between them, go to "(overlap)" tracks beside the thread's.

   Most records are plain spans, and npuprof_json_plain_() is the fast path for them. */

/* Must the spans around each span be known? Why not always: only these kinds have ids, or are left out in
   warm-up. */
static bool npuprof_json_needs_walk_(const npuprof_image_ *im)
{
    const uint32_t kinds = 1u << NPUPROF_KIND_RECORD | 1u << NPUPROF_KIND_WARM_UP |
                           1u << NPUPROF_KIND_INFERENCE | 1u << NPUPROF_KIND_OPERATOR |
                           1u << NPUPROF_KIND_MEMORY;
    return (im->kinds & kinds) != 0;
}

/* Writes the plain spans that come next, as long as they nest and their beginnings are cached. */
NPUPROF_HOT_ NPUPROF_NOINLINE_ static void npuprof_json_plain_(npuprof_work_ *w)
{
    const bool walk = npuprof_json_needs_walk_(&w->image);
    const uint32_t tid = w->walk.tid;
    npuprof_plain_walk_ c = npuprof_cursor_begin_plains_(&w->walk.cursor[0]);
    npuprof_plain_ p;
    char *at = npuprof_out_reserve_(&w->out, NPUPROF_SPAN_TEXT_ROOM_);
    const char *last = w->out.bytes + w->out.capacity - NPUPROF_SPAN_TEXT_ROOM_;
    while (npuprof_cursor_peek_plain_(&c, &p)) {
        const uint64_t key = npuprof_span_text_key_(tid, p.site, NPUPROF_KIND_SPAN);
        const npuprof_span_text_ *cached = npuprof_span_text_at_(w, key);
        if (cached->key != key) break;
        const int64_t start = npuprof_image_trace_ns_(&w->image, p.start);
        const int64_t end = npuprof_image_trace_ns_(&w->image, p.end);
        if (!npuprof_lane_nest_(w, 0, start, end)) break;
        if (walk) npuprof_walk_plain_(&w->walk, &p, npuprof_cursor_plain_position_(&w->walk.cursor[0], &c));
        if (NPUPROF_UNLIKELY_(at > last)) {
            w->out.used = (size_t)(at - w->out.bytes);
            at = npuprof_out_reserve_(&w->out, NPUPROF_SPAN_TEXT_ROOM_);
        }
        at = npuprof_json_cached_span_(w, at, cached, start, end) + 1;
        c.at++;
    }
    w->out.used = (size_t)(at - w->out.bytes);
    (void)npuprof_cursor_end_plains_(&w->walk.cursor[0], &c);
}

/* What the writer puts before the arguments of a span: its kind and ids, and whether it has an end. */
static void npuprof_json_span_words_(npuprof_work_ *w, const npuprof_event_ *ev, char *text, size_t capacity)
{
    static const char *const kinds[] = { "", "\"kind\":\"record\"", "\"kind\":\"warm_up\"",
                                         "\"kind\":\"inference\"", "\"kind\":\"operator\"" };
    text[0] = 0;
    if (ev->kind != NPUPROF_KIND_SPAN) {
        npuprof_text_copy_(text, capacity, kinds[ev->kind - NPUPROF_KIND_SPAN]);
        npuprof_json_ids_(&w->image, text, capacity, ev->tid, w->walk.root, ev->tid, ev->position);
    }
    if (ev->unfinished || ev->cut) {
        const size_t used = strlen(text);
        const char *words = ev->unfinished ? ",\"unfinished\":true" : ",\"unfinished\":\"unwound\"";
        (void)npuprof_json_append_(text, used, capacity, words + !used);
    }
}

/* A span of a thread, on the thread's track or, if it does not nest there, on one beside it. name: of the
   thread, or 0. */
static void npuprof_json_thread_span_(npuprof_work_ *w, const npuprof_event_ *ev, uint32_t name)
{
    char text[160];
    const uint32_t tid = w->walk.tid;
    const int64_t start = npuprof_image_trace_ns_(&w->image, ev->start);
    int64_t end = npuprof_image_trace_ns_(&w->image, ev->end);
    if (end < start) end = start;
    const uint32_t lane = npuprof_lane_find_(w, npuprof_lane_no_group_, start, end);
    if (lane && (!w->tid[lane] || lane == NPUPROF_LANES_)) {
        w->tid[lane] = w->next_tid++;
        npuprof_json_name_(w, "thread_name", w->tid[lane], name, name ? "" : "thread", " (overlap)", "");
        npuprof_json_sort_(w, "thread_sort_index", w->tid[lane], tid);
    }
    npuprof_json_span_(w, ev, lane ? w->tid[lane] : tid, start, end);
    npuprof_json_span_words_(w, ev, text, sizeof text);
    npuprof_json_args_(w, ev, text);
    npuprof_out_puts_(&w->out, "}");
}

static void npuprof_json_counter_(npuprof_work_ *w, const npuprof_event_ *ev, int64_t ts)
{
    const uint32_t kind = ev->kind;
    if (kind == NPUPROF_KIND_COUNTER_REAL && (ev->value >> 52 & 0x7FF) == 0x7FF) {
        w->skipped_values++;
        return;
    }
    npuprof_json_open_(w, "C", ev->name, NULL, 0, w->walk.tid);
    npuprof_json_stamp_(w, ",\"ts\":", ts);
    npuprof_out_puts_(&w->out, ",\"args\":{\"value\":");
    if (kind == NPUPROF_KIND_COUNTER_INT) npuprof_out_int_(&w->out, (int64_t)ev->value);
    else if (kind == NPUPROF_KIND_COUNTER_UINT) npuprof_out_big_(&w->out, ev->value);
    else npuprof_out_real_(&w->out, ev->value);
    npuprof_out_puts_(&w->out, "}}");
}

static void npuprof_json_change_(npuprof_out_ *o, const npuprof_event_ *ev)
{
    if (!ev->change) return;
    npuprof_out_puts_(o, ",\"change\":");
    npuprof_out_int_(o, ev->change);
}

/* The state of a memory pool as a counter; and what changed it as the arguments of an instant beside it,
   because a counter takes nothing but values. Why the category: without it, Chrome's viewer takes a counter
   and a pool of the same name for one. */
static void npuprof_json_memory_(npuprof_work_ *w, const npuprof_event_ *ev, int64_t ts)
{
    npuprof_out_ *const o = &w->out;
    size_t length;
    npuprof_json_open_(w, "C", ev->category, NULL, 0, w->walk.tid);
    npuprof_out_puts_(o, ",\"cat\":\"memory\",\"tag\":");
    npuprof_out_text_(o, &w->image, ev->name, true);
    npuprof_json_change_(o, ev);
    if (w->walk.warm_up) npuprof_out_puts_(o, ",\"warm_up\":true");
    npuprof_json_stamp_(w, ",\"ts\":", ts);
    npuprof_out_puts_(o, ",\"args\":{\"used\":");
    npuprof_out_big_(o, ev->value);
    npuprof_out_puts_(o, ",\"allocated\":");
    npuprof_out_big_(o, ev->second);
    npuprof_out_puts_(o, "}}");
    (void)npuprof_image_text_(&w->image, ev->name, &length);
    if (!length && !ev->change) return;
    npuprof_json_open_(w, "i", ev->name, length ? NULL : "memory", 0, w->walk.tid);
    npuprof_json_stamp_(w, ",\"cat\":\"memory\",\"derived\":true,\"s\":\"t\",\"ts\":", ts);
    npuprof_out_puts_(o, ",\"args\":{\"pool\":");
    npuprof_out_text_(o, &w->image, ev->category, true);
    npuprof_out_puts_(o, ",\"tag\":");
    npuprof_out_text_(o, &w->image, ev->name, true);
    npuprof_json_change_(o, ev);
    npuprof_out_puts_(o, "}}");
}

static void npuprof_json_instant_(npuprof_work_ *w, const npuprof_event_ *ev, int64_t ts)
{
    npuprof_json_open_(w, "i", ev->name, NULL, ev->category, w->walk.tid);
    npuprof_json_stamp_(w, ",\"s\":\"t\",\"ts\":", ts);
    npuprof_json_args_(w, ev, "");
    npuprof_out_puts_(&w->out, "}");
}

/* Members of a thread's name: its number in the system, by which the trace can be joined with those of perf,
   ftrace and strace. If several threads had the track one after the other, it is the last one's, and their
   number is there, too. */
static void npuprof_json_native_thread_(const npuprof_slot_head_ *slot, char *text, size_t capacity)
{
    const uint32_t id = NPUPROF_LOAD_(&slot->os_tid), owners = NPUPROF_LOAD_(&slot->owners);
    char number[24];
    size_t n = 0;
    text[0] = 0;
    if (id) n = npuprof_json_append_(text, n, capacity, ",\"native_id\":");
    if (id) n = npuprof_json_append_(text, n, capacity, npuprof_json_decimal_(number, id));
    if (owners > 1) n = npuprof_json_append_(text, n, capacity, ",\"native_threads\":");
    if (owners > 1) (void)npuprof_json_append_(text, n, capacity, npuprof_json_decimal_(number, owners));
}

/* Names the thread's track. Returns the name's id; 0: it has none of its own. */
static uint32_t npuprof_json_thread_name_(npuprof_work_ *w, const npuprof_slot_head_ *slot)
{
    char native[80], number[24];
    size_t length;
    const uint32_t name = NPUPROF_LOAD_(&slot->name), tid = w->walk.tid;
    const bool is_main = NPUPROF_LOAD_(&slot->os_tid) == w->image.h->pid;
    (void)npuprof_image_text_(&w->image, name, &length);
    npuprof_json_native_thread_(slot, native, sizeof native);
    if (length) npuprof_json_name_(w, "thread_name", tid, name, "", "", native);
    else if (is_main) npuprof_json_name_(w, "thread_name", tid, 0, "main", "", native);
    else npuprof_json_name_(w, "thread_name", tid, 0, "thread ", npuprof_json_decimal_(number, tid), native);
    npuprof_json_sort_(w, "thread_sort_index", tid, tid);
    return length ? name : 0;
}

static void npuprof_json_thread_(npuprof_work_ *w, const npuprof_slot_head_ *slot)
{
    npuprof_event_ ev;
    npuprof_walk_begin_(&w->walk, &w->image, NPUPROF_LOAD_(&slot->tid));
    npuprof_lane_clear_all_(w);
    const uint32_t name = npuprof_json_thread_name_(w, slot);
    for (;;) {
        if (w->walk.sources == 1 && w->lanes) npuprof_json_plain_(w);
        if (!npuprof_walk_next_(&w->walk, &ev)) break;
        const int64_t ts = npuprof_image_trace_ns_(&w->image, ev.start);
        switch (ev.kind) {
        case NPUPROF_KIND_INSTANT: npuprof_json_instant_(w, &ev, ts); break;
        case NPUPROF_KIND_COUNTER_INT:
        case NPUPROF_KIND_COUNTER_UINT:
        case NPUPROF_KIND_COUNTER_REAL: npuprof_json_counter_(w, &ev, ts); break;
        case NPUPROF_KIND_MEMORY: npuprof_json_memory_(w, &ev, ts); break;
        default:
            if (ev.kind <= NPUPROF_KIND_OPERATOR) npuprof_json_thread_span_(w, &ev, name);
            break;                         /* json_placed.h and json_flow.h have the others */
        }
    }
}

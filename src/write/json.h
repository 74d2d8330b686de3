#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../numbers/text.h"
#include "../format/arena.h"
#include "../read/image.h"
#include "../read/args.h"
#include "../read/cursor.h"
#include "../read/time.h"
#include "../read/walk.h"
#include "../read/scene.h"
#include "../read/scene_facts.h"
#include "../read/scene_thread.h"
#include "../read/scene_placed.h"
#include "text.h"
#include "emit.h"
#include "work.h"
#include "span_text.h"

/* The scene as events of Chrome's trace format. Times are microseconds with three decimals; tids are those of
   threads first, then one for each further track. A track's number is its tid.

   Data: the work area. Most records are plain spans, and npuprof_json_plain_() is the fast path for them. The
   other parts: json_clock.h (clocks of devices), json_head.h (metadata, and the order of it all). */

/* Begins the scene of the open image. */
static npuprof_scene_ *npuprof_work_scene_(npuprof_work_ *w, const npuprof_scene_output_ *output,
                                           void *user)
{
    npuprof_scene_ *const s = &w->scene;
    s->image = &w->image;
    s->walk = &w->walk;
    s->lanes = &w->lanes;
    s->output = output;
    s->user = user;
    return s;
}

/* ---- Events */

/* Begins an event, up to its tid. name: NULL for name_id. category: 0 for none. */
static void npuprof_json_open_(npuprof_work_ *w, const char *phase, uint32_t name_id, const char *name,
                               uint32_t category, uint64_t tid)
{
    npuprof_out_ *const o = &w->out;
    npuprof_out_puts_(o, o->fresh ? "\n{\"ph\":\"" : ",\n{\"ph\":\"");
    o->fresh = false;
    npuprof_out_puts_(o, phase);
    npuprof_out_puts_(o, "\",\"name\":");
    if (name) npuprof_out_quoted_(o, name);
    else npuprof_out_text_(o, &w->image, name_id, true);
    if (category) npuprof_emit_name_(o, "cat", &w->image, category);
    npuprof_emit_uint_(o, "pid", w->image.h->pid);
    npuprof_emit_uint_(o, "tid", tid);
}

static void npuprof_json_value_(npuprof_out_ *o, uint32_t kind, uint64_t bits)
{
    if (kind == NPUPROF_KIND_COUNTER_INT) npuprof_out_int_(o, (int64_t)bits);
    else if (kind == NPUPROF_KIND_COUNTER_UINT) npuprof_out_big_(o, bits);
    else npuprof_out_real_(o, bits);
}

/* "args":{...}, if there are any: facts, then the user's. Why of a key that comes twice only the last: strict
   readers refuse a key twice. */
static void npuprof_json_args_(npuprof_work_ *w, const npuprof_scene_event_ *e)
{
    npuprof_out_ *const o = &w->out;
    npuprof_args_walk_ args = npuprof_args_begin_(&w->image, e->ev);
    npuprof_value_ v;
    if (!e->fact_count && !npuprof_args_any_(e->ev)) return;
    npuprof_emit_begin_(o, "args", "{");
    for (const npuprof_value_ *fact = e->facts; fact < e->facts + e->fact_count; fact++) {
        if (fact->key == NPUPROF_FACT_CHANGE_ && !fact->bits) continue;    /* as in the pool's own members */
        npuprof_emit_key_(o, npuprof_fact_keys_[fact->key]);
        if (fact->type == NPUPROF_ARG_UINT) npuprof_out_uint_(o, fact->bits);
        else npuprof_out_value_(o, fact);
    }
    while (npuprof_args_next_(&args, &v)) {
        if (npuprof_scene_key_comes_again_(&args, v.key)) continue;
        npuprof_emit_key_(o, NULL);
        const char *const fact = npuprof_fact_key_(e, &w->image, v.key);
        if (fact) npuprof_out_puts_(o, "\"user.");
        if (fact) npuprof_out_puts_(o, fact);
        if (fact) npuprof_out_put_(o, "\"", 1);
        else npuprof_out_text_(o, &w->image, v.key, true);
        npuprof_out_put_(o, ":", 1);
        npuprof_out_value_(o, &v);
    }
    npuprof_emit_end_(o, "}");
}

static void npuprof_json_instant_(npuprof_scene_ *s, const npuprof_scene_event_ *e)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    npuprof_out_ *const o = &w->out;
    npuprof_json_open_(w, "i", e->name, e->own_name, e->own_category ? 0 : e->category, e->track);
    if (e->own_category) npuprof_emit_text_(o, "cat", e->own_category);
    if (e->derived) npuprof_emit_word_(o, "derived", "true");
    npuprof_emit_text_(o, "s", e->of_process ? "p" : "t");
    npuprof_emit_milli_(o, "ts", e->start);
    npuprof_json_args_(w, e);
    npuprof_emit_end_(o, "}");
}

static void npuprof_json_counter_(npuprof_scene_ *s, const npuprof_scene_event_ *e, uint32_t kind,
                                  uint64_t bits)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    npuprof_json_open_(w, "C", e->name, NULL, 0, e->track);
    npuprof_emit_milli_(&w->out, "ts", e->start);
    npuprof_emit_begin_(&w->out, "args", "{");
    npuprof_emit_key_(&w->out, "value");
    npuprof_json_value_(&w->out, kind, bits);
    npuprof_out_puts_(&w->out, "}}");
}

/* The state of a memory pool as a counter of two values. */
static void npuprof_json_pool_(npuprof_scene_ *s, const npuprof_scene_event_ *e)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    npuprof_out_ *const o = &w->out;
    npuprof_json_open_(w, "C", e->category, NULL, 0, e->track);
    npuprof_emit_text_(o, "cat", e->own_category);
    npuprof_emit_name_(o, "tag", &w->image, e->name);
    if (e->ev->change) npuprof_emit_int_(o, "change", e->ev->change);
    if (s->walk->warm_up) npuprof_emit_word_(o, "warm_up", "true");
    npuprof_emit_milli_(o, "ts", e->start);
    npuprof_emit_begin_(o, "args", "{");
    npuprof_emit_key_(o, "used");
    npuprof_out_big_(o, e->ev->value);
    npuprof_emit_key_(o, "allocated");
    npuprof_out_big_(o, e->ev->second);
    npuprof_out_puts_(o, "}}");
}

/* One arrow. Viewers match its two halves by id, category and name. */
static void npuprof_json_put_arrow_(npuprof_work_ *w, const char *name, uint64_t from_tid, int64_t from_ns,
                                    uint64_t to_tid, int64_t to_ns)
{
    for (int end = 0; end < 2; end++) {
        npuprof_json_open_(w, end ? "f" : "s", 0, name, 0, end ? to_tid : from_tid);
        if (end) npuprof_emit_text_(&w->out, "bp", "e");
        npuprof_emit_text_(&w->out, "cat", name);
        w->arrows += !end;
        npuprof_emit_uint_(&w->out, "id", w->arrows);
        npuprof_emit_milli_(&w->out, "ts", end ? to_ns : from_ns);
        npuprof_emit_end_(&w->out, "}");
    }
}

static void npuprof_json_arrow_(npuprof_scene_ *s, uint32_t from_tid, int64_t from_ns, uint32_t to_tid,
                                int64_t to_ns)
{
    npuprof_json_put_arrow_((npuprof_work_ *)s->user, "flow", from_tid, from_ns, to_tid, to_ns);
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

static uint32_t npuprof_json_span_(npuprof_scene_ *s, const npuprof_scene_event_ *e)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    const npuprof_event_ *const ev = e->ev;
    const uint64_t key = npuprof_span_text_key_((uint32_t)e->track, ev->site, ev->kind);
    npuprof_span_text_ *const cached = npuprof_span_text_at_(w, key);
    bool fits = cached->key == key;
    if (!fits) {
        npuprof_out_ aside;
        npuprof_span_text_begin_(w, cached, &aside);
        npuprof_json_open_(w, "X", ev->name, NULL, ev->category, e->track);
        npuprof_emit_key_(&w->out, "ts");
        fits = npuprof_span_text_end_(w, cached, key, &aside);
    }
    if (fits) {
        char *const p = npuprof_out_reserve_(&w->out, NPUPROF_SPAN_TEXT_ROOM_);
        w->out.used += (size_t)(npuprof_json_cached_span_(w, p, cached, e->start, e->end) - p);
    } else {
        npuprof_json_open_(w, "X", ev->name, NULL, ev->category, e->track);
        npuprof_emit_milli_(&w->out, "ts", e->start);
        npuprof_emit_milli_(&w->out, "dur", e->end - e->start);
    }
    npuprof_json_args_(w, e);
    npuprof_emit_end_(&w->out, "}");
    if (e->submitted)
        npuprof_json_put_arrow_(w, "submit", ev->link.slot,
                                npuprof_image_trace_ns_(&w->image, ev->link.ticks), e->track, e->start);
    return 0;
}

/* Writes the plain spans that come next, as long as they nest and their beginnings are cached. */
NPUPROF_HOT_ NPUPROF_NOINLINE_ static void npuprof_json_plain_(npuprof_scene_ *s)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    const bool walk = npuprof_scene_needs_walk_(&w->image);
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
        if (!npuprof_lane_nest_(&w->lanes, 0, start, end)) break;
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

/* ---- Tracks */

/* Names a track, and says where a viewer puts it. thread: NULL for a track that is none; else also its number
   in the system, by which the trace can be joined with those of perf, ftrace and strace; and how many threads
   had the track one after the other: it is the last one's name and number. */
static void npuprof_json_track_(npuprof_work_ *w, uint64_t tid, const char *name, size_t length,
                                uint64_t sort, const npuprof_scene_thread_track_ *thread)
{
    npuprof_out_ *const o = &w->out;
    npuprof_json_open_(w, "M", 0, "thread_name", 0, tid);
    npuprof_emit_begin_(o, "args", "{");
    npuprof_emit_key_(o, "name");
    npuprof_out_string_(o, name, length, true);
    if (thread && thread->native_id) npuprof_emit_uint_(o, "native_id", thread->native_id);
    if (thread && thread->owners > 1) npuprof_emit_uint_(o, "native_threads", thread->owners);
    npuprof_out_puts_(o, "}}");
    npuprof_json_open_(w, "M", 0, "thread_sort_index", 0, tid);
    npuprof_emit_begin_(o, "args", "{");
    npuprof_emit_uint_(o, "sort_index", sort);
    npuprof_out_puts_(o, "}}");
}

static uint64_t npuprof_json_thread_(npuprof_scene_ *s, const npuprof_scene_thread_track_ *t)
{
    size_t length = strlen(t->own);
    const char *const name = t->name ? npuprof_image_text_(s->image, t->name, &length) : t->own;
    npuprof_json_track_((npuprof_work_ *)s->user, t->tid, name, length, t->tid, t);
    return t->tid;
}

static uint64_t npuprof_json_overlap_(npuprof_scene_ *s, const npuprof_scene_thread_track_ *t)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    const uint32_t tid = w->next_tid++;
    char text[192];
    const size_t length = npuprof_scene_overlap_name_(s->image, t, 64, text);
    npuprof_json_track_(w, tid, text, length, t->tid, NULL);
    return tid;
}

/* A lane has the name of its track; the second and further ones of a group have a number, too. Why the tid of
   the first lane is taken with the track: it may be begun after others. */
static uint64_t npuprof_json_lane_(npuprof_scene_ *s, const npuprof_event_ *ev, uint32_t lane)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    const npuprof_image_ *const im = s->image;
    const npuprof_lane_set_ *const l = s->lanes;
    const npuprof_lane_group_ group = npuprof_scene_group_(im, ev);
    char text[192], suffix[96] = "";
    uint32_t name = (uint32_t)s->placed, of_group = 1;
    size_t n = 0;
    if (w->placed != s->placed) w->first_tid = w->next_tid++;
    w->placed = s->placed;
    const uint32_t tid = lane ? w->next_tid++ : w->first_tid;
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        const npuprof_device_entry_ *const d = npuprof_image_device_(im, ev->device);
        name = d ? d->name : 0;
        n = npuprof_scene_lane_text_(im, ev, d && d->pe_count > 1, suffix);
    }
    for (uint32_t i = 0; i < lane && i < NPUPROF_LANES_; i++)
        of_group += npuprof_lane_same_group_(l->group[i], group);
    if (of_group > 1) snprintf(suffix + n, sizeof suffix - n, " #%u", (unsigned)of_group);
    if (suffix[0]) {
        n = npuprof_scene_name_(im, name, 64, suffix, text);
        npuprof_json_track_(w, tid, text, n, tid, NULL);
        return tid;
    }
    const char *const own = npuprof_image_text_(im, name, &n);
    npuprof_json_track_(w, tid, n ? own : "unnamed", n ? n : 7, tid, NULL);
    return tid;
}

static const npuprof_scene_output_ npuprof_json_output_ = {
    npuprof_json_thread_, npuprof_json_overlap_, npuprof_json_lane_, npuprof_json_plain_,
    npuprof_json_span_, NULL, npuprof_json_instant_, npuprof_json_counter_, npuprof_json_pool_,
    npuprof_json_arrow_, true
};

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/arena.h"
#include "../read/image.h"
#include "../read/args.h"
#include "../read/cursor.h"
#include "../read/time.h"
#include "../read/place.h"
#include "../read/placed.h"
#include "text.h"
#include "work.h"
#include "lanes.h"
#include "json.h"

/* The tracks that are no threads: device spans, a track for each PE; finished spans; async spans, a track for
   each name. They come sorted by track and start (read/placed.h). Arrows lead from the span that submitted a
   job to its execution.

   Also the pauses, and arrows, which json_flow.h uses, too. */

/* One arrow, in trace time. Viewers match its two halves by id, category and name. */
static void npuprof_json_arrow_(npuprof_work_ *w, const char *name, uint32_t from_tid, int64_t from_ns,
                                uint32_t to_tid, int64_t to_ns)
{
    for (int end = 0; end < 2; end++) {
        npuprof_json_open_(w, end ? "f" : "s", 0, name, 0, end ? to_tid : from_tid);
        npuprof_out_puts_(&w->out, end ? ",\"bp\":\"e\",\"cat\":\"" : ",\"cat\":\"");
        npuprof_out_puts_(&w->out, name);
        w->arrows += !end;
        npuprof_json_member_(&w->out, "\",\"id\":", w->arrows);
        npuprof_json_stamp_(w, ",\"ts\":", end ? to_ns : from_ns);
        npuprof_out_puts_(&w->out, "}");
    }
}

/* Is an arrow drawn to a device span that starts there? Viewers draw none back in time, so there is none to a
   span that the error of the clock puts before the span that submitted it. */
static bool npuprof_json_draws_arrow_(const npuprof_image_ *im, const npuprof_event_ *ev, int64_t start_ns)
{
    return npuprof_image_has_arrow_(im, ev) && npuprof_image_ns_(im, ev->link.ticks) <= start_ns;
}

/* Did a device span start before its submission, or end behind its record, by more than the error says? */
static bool npuprof_json_causality_broken_(const npuprof_event_ *ev, uint64_t start, uint64_t start_error,
                                           uint64_t end, uint64_t end_error)
{
    if (!ev->has_link) return false;
    return (int64_t)(start + start_error - ev->link.ticks) < 0 ||
           (int64_t)(ev->host_ticks + end_error - end) < 0;
}

/* ---- Tracks */

static npuprof_lane_group_ npuprof_json_group_of_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    npuprof_lane_group_ group = npuprof_lane_no_group_;
    if (ev->kind != NPUPROF_KIND_DEVICE) return group;
    if (ev->flags & NPUPROF_STAMP_SAMPLED && npuprof_args_find_(im, ev, "stream", &group.stream))
        group.sort = NPUPROF_GROUP_STREAM_;
    else
        group.sort =
            npuprof_args_is_execution_(im, ev) ? NPUPROF_GROUP_EXECUTIONS_ : NPUPROF_GROUP_INSTRUCTIONS_;
    return group;
}

/* The name of a PE's track, a string's id; 0: it has none. */
static uint32_t npuprof_json_lane_name_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    const npuprof_entry_ *e;
    uint32_t id = 0;
    while ((e = npuprof_image_next_entry_(im, NPUPROF_ENTRY_LANE, sizeof(npuprof_pair_entry_), &id)) !=
           NULL) {
        const npuprof_pair_entry_ *const lane = (const npuprof_pair_entry_ *)(const void *)e;
        if (NPUPROF_LOAD_ACQUIRE_(&e->a) == ev->device && lane->b[0] == ev->pe) return lane->b[1];
    }
    return 0;
}

/* Appends what a lane of a device's track has behind the device's name. */
static size_t npuprof_json_device_suffix_(const npuprof_image_ *im, const npuprof_device_entry_ *d,
                                          const npuprof_event_ *ev, npuprof_lane_group_ group, char *text,
                                          size_t capacity)
{
    char number[24], name[48];
    size_t n = 0, length = 0;
    const uint32_t named = npuprof_json_lane_name_(im, ev);
    const char *const own = named ? npuprof_image_text_(im, named, &length) : "";
    if (named) {
        if (length >= sizeof name) length = sizeof name - 1;
        memcpy(name, own, length);
        name[length] = 0;
        n = npuprof_json_append_(text, n, capacity, " ");
        n = npuprof_json_append_(text, n, capacity, name);
    } else if (d && (d->pe_count > 1 || ev->pe)) {
        n = npuprof_json_append_(text, n, capacity, " PE ");
        n = npuprof_json_append_(text, n, capacity, npuprof_json_decimal_(number, ev->pe));
    }
    if (group.sort == NPUPROF_GROUP_INSTRUCTIONS_)
        n = npuprof_json_append_(text, n, capacity, " instructions");
    if (group.sort != NPUPROF_GROUP_STREAM_) return n;
    /* A stream that is no small number is written as the pointer it may be. */
    const bool pointer = group.stream >> 32 != 0;
    n = npuprof_json_append_(text, n, capacity, pointer ? " stream 0x" : " stream ");
    if (pointer) npuprof_digits_hex_text_(number, group.stream);
    else (void)npuprof_json_decimal_(number, group.stream);
    return npuprof_json_append_(text, n, capacity, number);
}

/* Names a lane of a track by the first span in it. */
static void npuprof_json_track_name_(npuprof_work_ *w, const npuprof_event_ *ev, uint64_t track,
                                     uint32_t lane, uint32_t tid)
{
    char text[64] = "", number[24];
    size_t n = 0;
    uint32_t name = (uint32_t)track, of_group = 1;
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        const npuprof_lane_group_ group = npuprof_json_group_of_(&w->image, ev);
        const npuprof_device_entry_ *const d = npuprof_image_device_(&w->image, ev->device);
        name = d ? d->name : 0;
        n = npuprof_json_device_suffix_(&w->image, d, ev, group, text, sizeof text);
        for (uint32_t i = 0; i < lane && i < NPUPROF_LANES_; i++)
            of_group += npuprof_lane_same_group_(w->group[i], group);
    } else {
        of_group += lane;
    }
    if (of_group > 1) {
        n = npuprof_json_append_(text, n, sizeof text, " #");
        (void)npuprof_json_append_(text, n, sizeof text, npuprof_json_decimal_(number, of_group));
    }
    npuprof_json_name_(w, "thread_name", tid, name, "", text, "");
    npuprof_json_sort_(w, "thread_sort_index", tid, tid);
}

/* The track that spans come from now: number and tid of its first lane. */
typedef struct npuprof_json_track_ { uint64_t track; uint32_t first_tid; } npuprof_json_track_;

/* The tid of the lane that a span goes into; begins its track and its lane if it is the first there. */
static uint32_t npuprof_json_lane_tid_(npuprof_work_ *w, npuprof_json_track_ *at, const npuprof_event_ *ev,
                                       const npuprof_placed_ *p)
{
    const npuprof_lane_group_ group = npuprof_json_group_of_(&w->image, ev);
    if (p->track != at->track) {
        npuprof_lane_clear_all_(w);
        at->track = p->track;
        at->first_tid = w->next_tid++;
        /* The first lane is that of executions, even if an instruction comes first. */
        if (group.sort == NPUPROF_GROUP_INSTRUCTIONS_) npuprof_lane_add_(w, npuprof_lane_no_group_);
    }
    const uint32_t lane = npuprof_lane_find_(w, group, p->start_ns, p->end_ns);
    if (!w->tid[lane] || lane == NPUPROF_LANES_) {
        w->tid[lane] = lane ? w->next_tid++ : at->first_tid;
        npuprof_json_track_name_(w, ev, at->track, lane, w->tid[lane]);
    }
    return w->tid[lane];
}

/* ---- Spans */

/* What an output says of a device span beside the user's arguments. */
typedef struct npuprof_json_facts_ {
    const char *stamp;                     /* who stamped it */
    bool has_ticks, has_error;             /* host stamps have no device ticks, and maybe no known error */
    bool broken, warm_up;                  /* broken: against causality */
    bool execution;                        /* a whole one: it has ids. Its instructions have its trace id */
    uint64_t error_ns, root;               /* root: position of the root of its trace, in the slot root_tid */
    uint32_t root_tid;
} npuprof_json_facts_;

static npuprof_json_facts_ npuprof_json_facts_of_(const npuprof_image_ *im,
                                                  npuprof_image_anchor_caches_ *caches,
                                                  const npuprof_event_ *ev)
{
    uint64_t start = 0, end = 0, start_error = 0, end_error = 0;
    const bool by_host = (ev->flags & NPUPROF_STAMP_HOST) != 0;
    npuprof_json_facts_ f;
    (void)npuprof_image_host_ticks_(im, caches, ev, ev->start, &start, &start_error);
    (void)npuprof_image_host_ticks_(im, caches, ev, ev->end, &end, &end_error);
    const uint64_t error = start_error > end_error ? start_error : end_error;
    f.stamp = ev->flags & NPUPROF_STAMP_SAMPLED ? "sampled" : by_host ? "host" : "device";
    f.has_ticks = !by_host;
    f.has_error = !by_host || ev->epoch;
    f.broken = npuprof_json_causality_broken_(ev, start, start_error, end, end_error);
    f.warm_up = ev->has_link && ev->link.warm_up;
    f.execution = npuprof_args_is_execution_(im, ev);
    f.error_ns = (uint64_t)npuprof_image_ns_(im, im->h->first.ticks + error) + 1;
    f.root = ev->has_link ? ev->link.root_position : ev->position;
    f.root_tid = ev->has_link ? ev->link.slot : ev->tid;
    return f;
}

static void npuprof_json_device_args_(npuprof_work_ *w, npuprof_image_anchor_caches_ *caches,
                                      const npuprof_event_ *ev)
{
    const npuprof_image_ *im = &w->image;
    const npuprof_json_facts_ f = npuprof_json_facts_of_(im, caches, ev);
    char text[320], number[24];
    const struct { const char *key; uint64_t number; bool is_there; } numbers[] = {
        { "\",\"pe_index\":", ev->pe, true },
        { ",\"start_ticks\":", ev->start, f.has_ticks },
        { ",\"end_ticks\":", ev->end, f.has_ticks },
        { ",\"error_ns\":", f.error_ns, f.has_error } };
    size_t n = npuprof_json_append_(text, 0, sizeof text, "\"stamp\":\"");
    n = npuprof_json_append_(text, n, sizeof text, f.stamp);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!numbers[i].is_there) continue;
        n = npuprof_json_append_(text, n, sizeof text, numbers[i].key);
        n = npuprof_json_append_(text, n, sizeof text, npuprof_json_decimal_(number, numbers[i].number));
    }
    if (f.broken) n = npuprof_json_append_(text, n, sizeof text, ",\"causality\":\"violated\"");
    if (f.warm_up) n = npuprof_json_append_(text, n, sizeof text, ",\"warm_up\":true");
    if (f.execution) npuprof_json_ids_(im, text, sizeof text, f.root_tid, f.root, ev->tid, ev->position);
    npuprof_json_args_(w, ev, text);
}

/* An event of a device: an instant in the lane of its PE, or a counter. */
static void npuprof_json_placed_event_(npuprof_work_ *w, npuprof_image_anchor_caches_ *caches,
                                       const npuprof_event_ *ev, const npuprof_placed_ *p, uint32_t tid)
{
    const int64_t ts = p->start_ns - w->image.origin_ns;
    if ((ev->flags & NPUPROF_STAMP_VALUE) == NPUPROF_STAMP_VALUE) {
        npuprof_json_open_(w, "C", ev->name, NULL, 0, tid);
        npuprof_json_stamp_(w, ",\"ts\":", ts);
        npuprof_out_puts_(&w->out, ",\"args\":{\"value\":");
        npuprof_out_big_(&w->out, ev->end);
        npuprof_out_puts_(&w->out, "}}");
        return;
    }
    npuprof_json_open_(w, "i", ev->name, NULL, ev->category, tid);
    npuprof_json_stamp_(w, ",\"s\":\"t\",\"ts\":", ts);
    npuprof_json_device_args_(w, caches, ev);
    npuprof_out_puts_(&w->out, "}");
}

static void npuprof_json_placed_span_(npuprof_work_ *w, npuprof_image_anchor_caches_ *caches,
                                      const npuprof_event_ *ev, const npuprof_placed_ *p, uint32_t tid)
{
    const npuprof_image_ *im = &w->image;
    npuprof_json_span_(w, ev, tid, p->start_ns - im->origin_ns, p->end_ns - im->origin_ns);
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        npuprof_json_device_args_(w, caches, ev);
    } else {
        const bool reversed = ev->kind == NPUPROF_KIND_FINISHED && (int64_t)ev->second < (int64_t)ev->value;
        const char *words = "";
        if (p->unfinished) words = "\"unfinished\":true";
        else if (p->out_of_range) words = "\"stamps_out_of_range\":true";
        else if (reversed) words = "\"end_before_start\":true";
        npuprof_json_args_(w, ev, words);
    }
    npuprof_out_puts_(&w->out, "}");
    if (ev->kind == NPUPROF_KIND_DEVICE && npuprof_json_draws_arrow_(im, ev, p->start_ns))
        npuprof_json_arrow_(w, "submit", ev->link.slot, npuprof_image_trace_ns_(im, ev->link.ticks), tid,
                            p->start_ns - im->origin_ns);
}

static void npuprof_json_placed_(npuprof_work_ *w)
{
    const npuprof_image_ *im = &w->image;
    const uint32_t kinds =
        1u << NPUPROF_KIND_DEVICE | 1u << NPUPROF_KIND_FINISHED | 1u << NPUPROF_KIND_ASYNC_BEGIN;
    npuprof_placed_walk_ spans = npuprof_placed_begin_(im, kinds);
    npuprof_image_anchor_caches_ *const caches = npuprof_image_clear_caches_();
    npuprof_event_ ev;
    npuprof_json_track_ track = { 0, 0 };
    for (const npuprof_placed_ *p; (p = npuprof_placed_next_(&spans, &ev)) != NULL;) {
        const uint32_t tid = npuprof_json_lane_tid_(w, &track, &ev, p);
        if (ev.kind == NPUPROF_KIND_DEVICE && ev.flags & NPUPROF_STAMP_INSTANT)
            npuprof_json_placed_event_(w, caches, &ev, p, tid);
        else npuprof_json_placed_span_(w, caches, &ev, p, tid);
    }
    npuprof_out_fail_(&w->out, spans.error);
}

/* Two instants of the whole process for each pause. */
static void npuprof_json_pauses_(npuprof_work_ *w)
{
    const npuprof_entry_ *e;
    uint32_t id = 0;
    while ((e = npuprof_image_next_entry_(&w->image, NPUPROF_ENTRY_PAUSE, sizeof(npuprof_pause_entry_),
                                          &id)) != NULL) {
        const npuprof_pause_entry_ *pause = (const npuprof_pause_entry_ *)(const void *)e;
        const uint64_t at[2] = { NPUPROF_LOAD_(&pause->from), NPUPROF_LOAD_(&pause->to) };
        for (int i = 0; i < 2; i++) {
            if (!at[i] || at[i] < w->image.clear_ticks) continue;
            npuprof_json_open_(w, "i", 0, i ? "npuprof resumed" : "npuprof paused", 0, 1);
            npuprof_json_stamp_(w, ",\"s\":\"p\",\"ts\":", npuprof_image_trace_ns_(&w->image, at[i]));
            npuprof_out_puts_(&w->out, "}");
        }
    }
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "pftrace.h"
#include "pftrace_event.h"
#include "pftrace_arrows.h"
#include "pftrace_thread.h"

/* The spans that have tracks of their own, as in write/json_placed.h: those of devices, finished and async
   spans. A device is a track, and its engines (PEs) and streams are tracks under it. */

/* Where the lanes of the spans that come next are. */
typedef struct npuprof_pftrace_place_ { uint64_t track, parent; uint32_t device; } npuprof_pftrace_place_;

static uint64_t npuprof_pftrace_device_track_(npuprof_pftrace_ *p, const npuprof_event_ *ev,
                                              npuprof_pftrace_place_ *at)
{
    const npuprof_device_entry_ *const d = npuprof_image_device_(&p->work->image, ev->device);
    const uint64_t uuid = npuprof_pftrace_number_(p, NPUPROF_PFTRACE_OF_DEVICE_, ev->device);
    if (at->device == ev->device) return uuid;
    at->device = ev->device;
    const size_t track = npuprof_pftrace_begin_track_(p, uuid, 0);
    npuprof_pftrace_name_track_(p, d ? d->name : 0, "");
    npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_ORDERING_, 3);      /* its children by their rank */
    npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_MERGE_, 2);         /* not with another process's device */
    npuprof_pftrace_end_track_(p, track);
    return uuid;
}

/* Begins the lane that an event is the first in. Lanes of one group have one name and one key, and the viewer
   draws them as one track. */
static void npuprof_pftrace_open_placed_(npuprof_pftrace_ *p, uint32_t lane, const npuprof_event_ *ev,
                                         const npuprof_pftrace_place_ *at)
{
    const npuprof_lane_group_ group = npuprof_json_group_of_(&p->work->image, ev);
    const uint64_t of = npuprof_hash_mix_(at->track) + group.sort + npuprof_hash_mix_(group.stream);
    const size_t track = npuprof_pftrace_begin_lane_(p, lane, at->parent);
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        npuprof_device_entry_ every;
        char text[64] = "";
        memset(&every, 0, sizeof every);
        every.pe_count = 2;                /* always say which PE */
        (void)npuprof_json_device_suffix_(&p->work->image, &every, ev, group, text, sizeof text);
        npuprof_proto_words_(&p->event, NPUPROF_PFTRACE_NAME_, text + 1);
        npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_RANK_, ev->pe * 3u + group.sort + 1);
    } else {
        npuprof_pftrace_name_track_(p, ev->kind == NPUPROF_KIND_FINISHED ? ev->track : ev->name, "");
    }
    npuprof_pftrace_merge_track_(p, npuprof_pftrace_number_(p, NPUPROF_PFTRACE_OF_GROUP_, of));
    npuprof_pftrace_end_track_(p, track);
    npuprof_pftrace_use_track_(p, p->lane[lane]);
}

/* The lane of an event that has no length: the first of its group, whatever is open there. */
static uint32_t npuprof_pftrace_point_lane_(npuprof_work_ *w, npuprof_lane_group_ group)
{
    uint32_t lane = 0;
    while (lane < w->lanes && !npuprof_lane_same_group_(w->group[lane], group)) lane++;
    if (lane == NPUPROF_LANES_) return 0;
    if (lane == w->lanes) npuprof_lane_add_(w, group);
    return lane;
}

/* The lane that an event goes into. is_point: it is no span, so no end may follow. */
static uint32_t npuprof_pftrace_placed_lane_(npuprof_pftrace_ *p, npuprof_pftrace_place_ *at,
                                             const npuprof_event_ *ev, const npuprof_placed_ *s,
                                             bool is_point)
{
    npuprof_work_ *const w = p->work;
    const int64_t start = s->start_ns - w->image.origin_ns, end = s->end_ns - w->image.origin_ns;
    if (s->track != at->track) {
        npuprof_pftrace_close_lanes_(p, INT64_MAX - 1);
        npuprof_lane_clear_all_(w);
        memset(p->lane, 0, sizeof p->lane);
        at->track = s->track;
        at->parent = ev->kind == NPUPROF_KIND_DEVICE ? npuprof_pftrace_device_track_(p, ev, at) : p->process;
    }
    npuprof_pftrace_close_lanes_(p, start - is_point);     /* in the tick of its end, a point is in a span */
    const npuprof_lane_group_ group = npuprof_json_group_of_(&w->image, ev);
    const uint32_t lane =
        is_point ? npuprof_pftrace_point_lane_(w, group) : npuprof_lane_find_(w, group, start, end);
    if (!p->lane[lane] || lane == NPUPROF_LANES_) npuprof_pftrace_open_placed_(p, lane, ev, at);
    return lane;
}

/* What the writer says of a device span: where it was, on which clock, and how wrong it may be. Returns the
   words that it used. */
static uint32_t npuprof_pftrace_put_device_(npuprof_pftrace_ *p, npuprof_image_anchor_caches_ *caches,
                                            const npuprof_event_ *ev)
{
    const npuprof_json_facts_ f = npuprof_json_facts_of_(&p->work->image, caches, ev);
    uint32_t words = (1u << (NPUPROF_PFTRACE_WORD_ERROR_NS_ + 1)) - (1u << NPUPROF_PFTRACE_WORD_STAMP_);
    npuprof_pftrace_put_word_(p, NPUPROF_PFTRACE_WORD_STAMP_, f.stamp);
    npuprof_pftrace_put_uint_(p, NPUPROF_PFTRACE_WORD_PE_INDEX_, ev->pe);
    if (f.has_ticks) {
        npuprof_pftrace_put_uint_(p, NPUPROF_PFTRACE_WORD_START_TICKS_, ev->start);
        npuprof_pftrace_put_uint_(p, NPUPROF_PFTRACE_WORD_END_TICKS_, ev->end);
    }
    if (f.has_error) npuprof_pftrace_put_uint_(p, NPUPROF_PFTRACE_WORD_ERROR_NS_, f.error_ns);
    if (f.broken) {
        npuprof_pftrace_put_word_(p, NPUPROF_PFTRACE_WORD_CAUSALITY_, "violated");
        words |= 1u << NPUPROF_PFTRACE_WORD_CAUSALITY_;
    }
    if (f.warm_up) {
        npuprof_pftrace_put_true_(p, NPUPROF_PFTRACE_WORD_WARM_UP_);
        words |= 1u << NPUPROF_PFTRACE_WORD_WARM_UP_;
    }
    if (!f.execution) return words;
    npuprof_pftrace_put_ids_(p, f.root_tid, f.root, ev->tid, ev->position);
    return words | 1u << NPUPROF_PFTRACE_WORD_TRACE_ID_ | 1u << NPUPROF_PFTRACE_WORD_SPAN_ID_;
}

/* The number of the arrow to a device span from the span that submitted the job. */
static uint64_t npuprof_pftrace_submit_number_(const npuprof_pftrace_ *p, const npuprof_event_ *ev)
{
    return npuprof_pftrace_number_(p, NPUPROF_PFTRACE_OF_SUBMIT_, ev->locator);
}

/* Collects the ends of those arrows in threads. */
static void npuprof_pftrace_collect_submits_(npuprof_pftrace_ *p)
{
    npuprof_work_ *const w = p->work;
    npuprof_image_anchor_caches_ caches;
    npuprof_event_ ev;
    npuprof_placed_ s;
    npuprof_pftrace_tie_ tie;
    memset(&caches, 0, sizeof caches);
    memset(&tie, 0, sizeof tie);
    if (!(w->image.kinds >> NPUPROF_KIND_DEVICE & 1)) return;
    for (uint32_t tid = 0; (tid = npuprof_image_next_tid_(&w->image, tid)) != 0;) {
        npuprof_walk_begin_(&w->walk, &w->image, tid);
        while (npuprof_walk_next_(&w->walk, &ev)) {
            if (ev.kind != NPUPROF_KIND_DEVICE || !ev.has_link) continue;
            if (!npuprof_place_start_(&w->image, &caches, &ev, &s)) continue;
            if (!npuprof_json_draws_arrow_(&w->image, &ev, s.start_ns)) continue;
            tie.position = ev.link.position;
            tie.tid = ev.link.slot;
            tie.ns = npuprof_image_trace_ns_(&w->image, ev.link.ticks);
            tie.id = npuprof_pftrace_submit_number_(p, &ev);
            npuprof_pftrace_add_tie_(p, tie);
        }
    }
}

/* An instant of a device, or the value of one of its counters. */
static void npuprof_pftrace_placed_event_(npuprof_pftrace_ *p, npuprof_image_anchor_caches_ *caches,
                                          npuprof_pftrace_place_ *at, const npuprof_event_ *ev,
                                          const npuprof_placed_ *s)
{
    const int64_t ns = s->start_ns - p->work->image.origin_ns;
    if ((ev->flags & NPUPROF_STAMP_VALUE) == NPUPROF_STAMP_VALUE) {
        const uint64_t track = npuprof_pftrace_counter_track_(p, ev->name, NPUPROF_PFTRACE_VALUE_);
        npuprof_pftrace_sample_(p, track, ns, NPUPROF_KIND_COUNTER_UINT, ev->end);
        return;
    }
    const uint32_t lane = npuprof_pftrace_placed_lane_(p, at, ev, s, true);
    npuprof_pftrace_begin_event_(p, NPUPROF_PFTRACE_INSTANT_);
    npuprof_pftrace_put_names_(p, ev->name, ev->category);
    npuprof_pftrace_put_args_(p, ev, npuprof_pftrace_put_device_(p, caches, ev));
    npuprof_pftrace_send_(p, p->lane[lane], ns);
}

static void npuprof_pftrace_placed_span_(npuprof_pftrace_ *p, npuprof_image_anchor_caches_ *caches,
                                         npuprof_pftrace_place_ *at, const npuprof_event_ *ev,
                                         const npuprof_placed_ *s)
{
    const npuprof_image_ *const im = &p->work->image;
    const int64_t start = s->start_ns - im->origin_ns, end = s->end_ns - im->origin_ns;
    const bool reversed = ev->kind == NPUPROF_KIND_FINISHED && (int64_t)ev->second < (int64_t)ev->value;
    if (ev->kind == NPUPROF_KIND_DEVICE && ev->flags & NPUPROF_STAMP_INSTANT) {
        npuprof_pftrace_placed_event_(p, caches, at, ev, s);
        return;
    }
    const uint32_t lane = npuprof_pftrace_placed_lane_(p, at, ev, s, false);
    unsigned word = NPUPROF_PFTRACE_WORD_COUNT_;
    uint32_t words = 0;
    npuprof_pftrace_begin_event_(p, NPUPROF_PFTRACE_BEGIN_);
    npuprof_pftrace_put_names_(p, ev->name, ev->category);
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        words = npuprof_pftrace_put_device_(p, caches, ev);
        if (npuprof_json_draws_arrow_(im, ev, s->start_ns))
            npuprof_proto_fixed64_(&p->event, NPUPROF_PFTRACE_FLOW_END_IDS_,
                                   npuprof_pftrace_submit_number_(p, ev));
    } else if (s->unfinished) {
        word = NPUPROF_PFTRACE_WORD_UNFINISHED_;
    } else if (s->out_of_range) {
        word = NPUPROF_PFTRACE_WORD_OUT_OF_RANGE_;
    } else if (reversed) {
        word = NPUPROF_PFTRACE_WORD_REVERSED_;
    }
    if (word < NPUPROF_PFTRACE_WORD_COUNT_) {
        npuprof_pftrace_put_true_(p, word);
        words |= 1u << word;
    }
    npuprof_pftrace_put_args_(p, ev, words);
    npuprof_pftrace_send_(p, p->lane[lane], start);
    npuprof_pftrace_leave_open_(p, lane, end, 0);
}

static void npuprof_pftrace_placed_(npuprof_pftrace_ *p)
{
    npuprof_work_ *const w = p->work;
    const uint32_t kinds =
        1u << NPUPROF_KIND_DEVICE | 1u << NPUPROF_KIND_FINISHED | 1u << NPUPROF_KIND_ASYNC_BEGIN;
    npuprof_pftrace_place_ at = { 0, 0, 0 };
    npuprof_image_anchor_caches_ caches;
    npuprof_placed_walk_ spans = npuprof_placed_begin_(&w->image, kinds);
    npuprof_event_ ev;
    memset(&caches, 0, sizeof caches);
    npuprof_lane_clear_all_(w);
    for (const npuprof_placed_ *s; (s = npuprof_placed_next_(&spans, &ev)) != NULL;)
        npuprof_pftrace_placed_span_(p, &caches, &at, &ev, s);
    npuprof_out_fail_(&w->out, spans.error);
    npuprof_pftrace_close_lanes_(p, INT64_MAX - 1);
}

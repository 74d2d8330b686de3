#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "image.h"
#include "time.h"
#include "walk.h"
#include "lanes.h"
#include "scene.h"
#include "scene_facts.h"

/* The events of threads, in the order of time: spans, instants, counters, states of memory pools. Spans that
   do not nest, because a signal handler or an unwound span is between them, go to lanes beside the thread's
   track. */

/* ---- Ends of spans */

/* Tells the output the ends of a lane's spans that are over at a moment, or before it. */
NPUPROF_HOT_ static void npuprof_scene_close_(npuprof_scene_ *s, uint32_t lane, int64_t until)
{
    npuprof_lane_set_ *const l = s->lanes;
    while (s->output->end && l->nodes[l->top[lane]].end <= until) {
        const npuprof_lane_node_ *const node = &l->nodes[l->top[lane]];
        s->output->end(s, l->track[lane], node->end, node->mark);
        npuprof_lane_drop_(l, lane);
    }
}

static void npuprof_scene_close_all_(npuprof_scene_ *s, int64_t until)
{
    if (!s->output->end) return;
    for (uint32_t lane = 0; lane < s->lanes->count; lane++) npuprof_scene_close_(s, lane, until);
}

/* Shows a span, which was put into a lane. */
static void npuprof_scene_span_(npuprof_scene_ *s, npuprof_scene_event_ *e, uint32_t lane)
{
    e->track = s->lanes->track[lane];
    const uint32_t mark = s->output->span(s, e);
    if (lane < NPUPROF_LANES_) s->lanes->nodes[s->lanes->top[lane]].mark = mark;
    else if (s->output->end) s->output->end(s, e->track, e->end, mark);
}

/* ---- Events */

/* Must the spans around each span be known? Why not always: only these kinds have ids, or are left out in
   warm-up. */
static bool npuprof_scene_needs_walk_(const npuprof_image_ *im)
{
    const uint32_t kinds = 1u << NPUPROF_KIND_RECORD | 1u << NPUPROF_KIND_WARM_UP |
                           1u << NPUPROF_KIND_INFERENCE | 1u << NPUPROF_KIND_OPERATOR |
                           1u << NPUPROF_KIND_MEMORY;
    return (im->kinds & kinds) != 0;
}

/* An event on the track of the thread at hand, without facts. */
static void npuprof_scene_show_(npuprof_scene_ *s, const npuprof_event_ *ev, npuprof_scene_event_ *e)
{
    e->ev = ev;
    e->name = ev->name;
    e->category = ev->category;
    e->own_name = e->own_category = NULL;
    e->start = e->end = npuprof_image_trace_ns_(s->image, ev->start);
    e->track = s->lanes->track[0];
    e->derived = e->submitted = e->of_process = false;
    e->keys = e->fact_count = 0;
}

static void npuprof_scene_thread_span_(npuprof_scene_ *s, npuprof_scene_event_ *e)
{
    e->end = npuprof_image_trace_ns_(s->image, e->ev->end);
    if (e->end < e->start) e->end = e->start;
    npuprof_scene_close_all_(s, e->start);
    const uint32_t lane = npuprof_lane_find_(s->lanes, npuprof_lane_no_group_, e->start, e->end);
    if (!s->lanes->track[lane] || lane == NPUPROF_LANES_)
        s->lanes->track[lane] = s->output->overlap(s, &s->thread);
    npuprof_fact_of_span_(e, s->image, s->walk->root);
    npuprof_scene_span_(s, e, lane);
}

static void npuprof_scene_instant_(npuprof_scene_ *s, npuprof_scene_event_ *e)
{
    s->output->instant(s, e);
}

static void npuprof_scene_counter_(npuprof_scene_ *s, npuprof_scene_event_ *e)
{
    const uint64_t bits = e->ev->value;
    const bool finite = !npuprof_kind_is_real_(e->ev->kind) || (bits >> 52 & 0x7FF) != 0x7FF;
    if (finite) s->output->counter(s, e, e->ev->kind, bits);
    else s->skipped_values++;
}

/* The state of a memory pool; and what changed it as an instant beside it, because a counter takes nothing
   but values. Why a category: without it, Chrome's viewer takes a counter and a pool of the same name for
   one. */
static void npuprof_scene_memory_(npuprof_scene_ *s, npuprof_scene_event_ *e)
{
    const npuprof_event_ *const ev = e->ev;
    size_t length, pool_length;
    e->own_category = "memory";
    s->output->pool(s, e);
    const char *const tag = npuprof_image_text_(s->image, ev->name, &length);
    const char *const pool = npuprof_image_text_(s->image, ev->category, &pool_length);
    if (!length && !ev->change) return;
    if (!length) e->own_name = "memory";
    e->derived = true;
    npuprof_fact_add_text_(e, NPUPROF_FACT_POOL_, pool, pool_length);
    npuprof_fact_add_text_(e, NPUPROF_FACT_TAG_, tag, length);
    (void)npuprof_fact_add_(e, NPUPROF_FACT_CHANGE_, NPUPROF_ARG_INT, (uint64_t)ev->change);
    s->output->instant(s, e);
}

/* What is shown of an event on its thread's track, by kind: a new kind needs its line here. NULL: nothing;
   scene_placed.h and scene_flows.h have those. */
static void (*const npuprof_scene_of_kind_[])(npuprof_scene_ *s, npuprof_scene_event_ *e) = {
    NULL,                                  /* none */
    npuprof_scene_thread_span_, npuprof_scene_thread_span_, npuprof_scene_thread_span_,
    npuprof_scene_thread_span_, npuprof_scene_thread_span_,
    npuprof_scene_instant_,
    npuprof_scene_counter_, npuprof_scene_counter_, npuprof_scene_counter_,
    npuprof_scene_memory_,
    NULL, NULL,                            /* flows */
    NULL, NULL,                            /* async */
    NULL, NULL                             /* finished, device */
};
NPUPROF_ASSERT_(scene_kind_without_line,
                sizeof npuprof_scene_of_kind_ / sizeof *npuprof_scene_of_kind_ == NPUPROF_KIND_COUNT);

static void npuprof_scene_begin_thread_(npuprof_scene_ *s, const npuprof_slot_head_ *slot)
{
    npuprof_scene_thread_track_ *const t = &s->thread;
    size_t length;
    t->tid = NPUPROF_LOAD_(&slot->tid);
    t->native_id = NPUPROF_LOAD_(&slot->os_tid);
    t->owners = NPUPROF_LOAD_(&slot->owners);
    t->name = NPUPROF_LOAD_(&slot->name);
    (void)npuprof_image_text_(s->image, t->name, &length);
    if (!length) t->name = 0;
    if (t->native_id == s->image->h->pid) npuprof_text_copy_(t->own, sizeof t->own, "main");
    else snprintf(t->own, sizeof t->own, "thread %u", (unsigned)t->tid);
    npuprof_lane_clear_all_(s->lanes);
    npuprof_lane_add_(s->lanes, npuprof_lane_no_group_);
    s->lanes->track[0] = s->output->thread(s, t);
    s->lanes->track[NPUPROF_LANES_] = 0;
}

/* All threads. */
static void npuprof_scene_threads_(npuprof_scene_ *s)
{
    npuprof_event_ ev;
    npuprof_scene_event_ e;
    for (uint32_t tid = 0; (tid = npuprof_image_next_tid_(s->image, tid)) != 0;) {
        const npuprof_slot_head_ *const slot = npuprof_image_thread_slot_(s->image, tid);
        if (!slot) continue;
        npuprof_scene_begin_thread_(s, slot);
        npuprof_walk_begin_(s->walk, s->image, tid);
        for (;;) {
            if (s->walk->sources == 1) s->output->plain(s);
            if (!npuprof_walk_next_(s->walk, &ev)) break;
            if (!npuprof_scene_of_kind_[ev.kind]) continue;
            npuprof_scene_show_(s, &ev, &e);
            /* Why one less: in the very tick where a span ends, an event is still inside it. */
            if (!npuprof_kind_nests_(ev.kind)) npuprof_scene_close_(s, 0, e.start - 1);
            npuprof_scene_of_kind_[ev.kind](s, &e);
        }
        npuprof_scene_close_all_(s, INT64_MAX - 1);
    }
}

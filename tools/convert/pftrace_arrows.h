#pragma once   /* SPDX-License-Identifier: MIT */
#include "pftrace.h"
#include "pftrace_event.h"

/* Arrows. The viewer binds each end to the span whose begin or end event carries the arrow's number, and
   draws nothing if the arrow ends before it begins. So the number stands on the begin of the span that the
   arrow leaves, and on the end of the one that it reaches: the first is never later than the second. (On a
   device span it stands on the begin.) Which arrows leave a span must be known before it is written, so
   arrows are collected first.

   Data: ties, one for each end of an arrow in a thread, 40 bytes each. */

static void npuprof_pftrace_add_tie_(npuprof_pftrace_ *p, const npuprof_pftrace_tie_ *tie)
{
    if (!npuprof_list_add_(&p->ties, tie)) p->error = ENOMEM;
}

static npuprof_pftrace_tie_ *npuprof_pftrace_tie_at_(const npuprof_pftrace_ *p, size_t i)
{
    return (npuprof_pftrace_tie_ *)(void *)p->ties.at + i;
}

/* An arrow of PROF_FLOW_OUT and PROF_FLOW_IN (read/scene_flows.h finds them). */
static void npuprof_pftrace_arrow_(npuprof_scene_ *s, uint32_t from_tid, int64_t from_ns, uint32_t to_tid,
                                   int64_t to_ns)
{
    npuprof_pftrace_ *const p = (npuprof_pftrace_ *)s->user;
    npuprof_pftrace_tie_ tie;
    memset(&tie, 0, sizeof tie);
    tie.position = UINT64_MAX;
    tie.id = npuprof_pftrace_number_(p, NPUPROF_PFTRACE_OF_ARROW_, ++p->arrows);
    tie.tid = from_tid;
    tie.ns = from_ns;
    npuprof_pftrace_add_tie_(p, &tie);
    tie.tid = to_tid;
    tie.ns = to_ns;
    tie.in = true;
    npuprof_pftrace_add_tie_(p, &tie);
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
            if (!npuprof_fact_draws_arrow_(&w->image, &ev, s.start_ns)) continue;
            tie.position = ev.link.position;
            tie.tid = ev.link.slot;
            tie.ns = npuprof_image_trace_ns_(&w->image, ev.link.ticks);
            tie.submits = true;
            tie.id = npuprof_pftrace_submit_number_(p, &ev);
            npuprof_pftrace_add_tie_(p, &tie);
        }
    }
}

/* ---- The ties of a thread */

static bool npuprof_pftrace_tie_by_time_(const void *a, const void *b)
{
    const npuprof_pftrace_tie_ *x = (const npuprof_pftrace_tie_ *)a, *y = (const npuprof_pftrace_tie_ *)b;
    if (x->tid != y->tid) return x->tid < y->tid;
    if (x->ns != y->ns) return x->ns < y->ns;
    return x->id < y->id;
}

static bool npuprof_pftrace_tie_by_span_(const void *a, const void *b)
{
    const npuprof_pftrace_tie_ *x = (const npuprof_pftrace_tie_ *)a, *y = (const npuprof_pftrace_tie_ *)b;
    if (x->position != y->position) return x->position < y->position;
    if (x->in != y->in) return x->in < y->in;
    return x->id < y->id;
}

/* The first tie of the thread at hand that is not before a time (by_span false) or a position. */
static size_t npuprof_pftrace_find_tie_(const npuprof_pftrace_ *p, bool by_span, uint64_t position,
                                        int64_t ns)
{
    size_t low = p->tie_first, high = p->tie_end;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const npuprof_pftrace_tie_ *const tie = npuprof_pftrace_tie_at_(p, middle);
        if (by_span ? tie->position < position : tie->ns < ns) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Finds the spans of the thread's flows, and sorts its ties by span. All ties are sorted by time. */
static void npuprof_pftrace_begin_ties_(npuprof_pftrace_ *p, const npuprof_scene_ *s, uint32_t tid)
{
    npuprof_walk_ *const walk = s->walk;
    const npuprof_image_ *const im = s->image;
    npuprof_event_ ev;
    int64_t ns;
    npuprof_pftrace_tie_ *const ties = npuprof_pftrace_tie_at_(p, 0);
    p->tie_first = p->tie_end;
    while (p->tie_first < p->ties.count && ties[p->tie_first].tid < tid) p->tie_first++;
    p->tie_end = p->tie_first;
    while (p->tie_end < p->ties.count && ties[p->tie_end].tid == tid) p->tie_end++;
    if (p->tie_first == p->tie_end) return;
    npuprof_walk_begin_(walk, im, tid);
    while (npuprof_walk_next_(walk, &ev)) {
        const bool in = ev.kind == NPUPROF_KIND_FLOW_IN;
        if ((!in && ev.kind != NPUPROF_KIND_FLOW_OUT) || !npuprof_flow_arrow_ns_(s, &ev, &ns)) continue;
        ns -= im->origin_ns;
        size_t i = npuprof_pftrace_find_tie_(p, false, 0, ns);
        for (; i < p->tie_end && ties[i].ns == ns; i++)
            if (ties[i].in == in && ties[i].position == UINT64_MAX) ties[i].position = walk->parent;
    }
    npuprof_heap_sort_(ties + p->tie_first, sizeof *ties, p->tie_end - p->tie_first,
                       npuprof_pftrace_tie_by_span_);
}

/* Puts the arrows that leave a span on its begin, and its correlation with what it submitted. Returns the
   index + 1 of the first one that reaches it, for its end; 0: none does. */
static uint32_t npuprof_pftrace_put_ties_(npuprof_pftrace_ *p, uint64_t position)
{
    const npuprof_pftrace_tie_ *const ties = npuprof_pftrace_tie_at_(p, 0);
    size_t i = p->tie_end;
    if (p->tie_first < p->tie_end) i = npuprof_pftrace_find_tie_(p, true, position, 0);
    bool submits = false;
    for (; i < p->tie_end && ties[i].position == position && !ties[i].in; i++) {
        npuprof_proto_fixed64_(&p->event, NPUPROF_PFTRACE_FLOW_IDS_, ties[i].id);
        submits |= ties[i].submits;
    }
    if (submits) npuprof_pftrace_put_correlation_(p, ties[i - 1].tid, position);
    return i < p->tie_end && ties[i].position == position ? (uint32_t)i + 1 : 0;
}

/* Sends the end of a span at which arrows end. tie: what npuprof_pftrace_put_ties_() returned. */
static void npuprof_pftrace_send_tied_end_(npuprof_pftrace_ *p, uint64_t track, int64_t ns, uint32_t tie)
{
    npuprof_pftrace_begin_event_(p, NPUPROF_PFTRACE_END_);
    const npuprof_pftrace_tie_ *const ties = npuprof_pftrace_tie_at_(p, 0);
    const uint64_t position = ties[tie - 1].position;
    for (size_t i = tie - 1; i < p->tie_end && ties[i].position == position; i++)
        npuprof_proto_fixed64_(&p->event, NPUPROF_PFTRACE_FLOW_END_IDS_, ties[i].id);
    npuprof_pftrace_send_(p, track, ns);
}

/* Sends the end of a span. tie: the same, 0 if none does. */
static inline void npuprof_pftrace_send_end_(npuprof_pftrace_ *p, uint64_t track, int64_t ns, uint32_t tie)
{
    static const uint8_t end[NPUPROF_PFTRACE_SHORT_] = { NPUPROF_PFTRACE_TYPE_ << 3, NPUPROF_PFTRACE_END_ };
    if (tie) npuprof_pftrace_send_tied_end_(p, track, ns, tie);
    else npuprof_pftrace_send_short_(p, track, ns, end, 2);
}

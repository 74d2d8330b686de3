#pragma once   /* SPDX-License-Identifier: MIT */
#include "image.h"
#include "time.h"

/* ---- Spans that have tracks of their own: device, finished and async spans, sorted in the scratch */

enum { NPUPROF_TRACK_DEVICE_ = 1, NPUPROF_TRACK_FINISHED_, NPUPROF_TRACK_ASYNC_ };
typedef struct npuprof_placed_ {
    uint64_t track;                        /* NPUPROF_TRACK_* << 56 | device << 32 | pe; or the track's or span's name */
    int64_t start_ns, end_ns;              /* after the first anchor */
    int64_t order_ns;                      /* the end that the order goes by: an async span's real one is found later */
    uint64_t locator, id;                  /* id: of an async span */
    int64_t limit_ns;                      /* of an async span: where its id begins anew */
    uint32_t tid;                          /* of an arrow's beginning */
    uint32_t bucket, next;                 /* of a batch's look-up by id: index + 1 */
    bool unfinished, ends_at_once, out_of_range;   /* ends_at_once: an end in the tick of the beginning; out_of_range: stamps of another clock, drawn at the start of the trace */
} npuprof_placed_;

/* Order on the page: track, start, the longer first. The locator makes it total. */
static bool npuprof_placed_before_(const npuprof_placed_ *a, const npuprof_placed_ *b)
{
    if (a->track != b->track) return a->track < b->track;
    if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns;
    if (a->order_ns != b->order_ns) return a->order_ns > b->order_ns;
    return a->locator < b->locator;
}

static uint64_t npuprof_place_track_(const npuprof_event_ *ev)
{
    if (ev->kind == NPUPROF_KIND_DEVICE) return (uint64_t)NPUPROF_TRACK_DEVICE_ << 56 | (uint64_t)ev->device << 32 | ev->pe;
    if (ev->kind == NPUPROF_KIND_FINISHED) return (uint64_t)NPUPROF_TRACK_FINISHED_ << 56 | ev->track;
    return (uint64_t)NPUPROF_TRACK_ASYNC_ << 56 | ev->name;
}

/* Where an event goes; false: it stays on its thread, or there is no anchor to place it. */
/* In two steps. Why: where a device span ends costs as much as where it begins, and the first step refuses most. */
static bool npuprof_place_start_(const npuprof_image_ *im, npuprof_map_caches_ *near_by, const npuprof_event_ *ev, npuprof_placed_ *p)
{
    p->track = npuprof_place_track_(ev);
    p->locator = ev->locator;
    p->id = ev->value;
    p->tid = p->bucket = p->next = 0;
    p->limit_ns = 0;
    p->unfinished = p->ends_at_once = p->out_of_range = false;
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        uint64_t start;
        if (!npuprof_image_host_ticks_(im, near_by, ev, ev->start, &start, NULL)) return false;
        p->start_ns = npuprof_image_ns_(im, start);
    } else if (ev->kind == NPUPROF_KIND_FINISHED) {
        p->start_ns = (int64_t)(ev->value - (uint64_t)im->h->first.unix_ns);
        p->end_ns = (int64_t)(ev->second - (uint64_t)im->h->first.unix_ns);
        /* Why: farther off than this, viewers lose the nanoseconds of the whole trace. */
        const int64_t limit = (int64_t)1 << 50;
        const int64_t latest = npuprof_image_ns_(im, im->last_ticks) + limit;
        p->out_of_range = p->start_ns < -limit || p->start_ns > latest || p->end_ns < -limit || p->end_ns > latest;
        if (p->out_of_range) p->start_ns = p->end_ns = 0;
    } else if (ev->kind == NPUPROF_KIND_ASYNC_BEGIN) {
        p->start_ns = npuprof_image_ns_(im, ev->start);
        p->end_ns = npuprof_image_ns_(im, im->open_until);
        p->unfinished = true;
    } else {
        return false;
    }
    return true;
}
static bool npuprof_place_end_(const npuprof_image_ *im, npuprof_map_caches_ *near_by, const npuprof_event_ *ev, npuprof_placed_ *p)
{
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        uint64_t end;
        if (!npuprof_image_host_ticks_(im, near_by, ev, ev->end, &end, NULL)) return false;
        p->end_ns = npuprof_image_ns_(im, end);
    }
    if (p->end_ns < p->start_ns) p->end_ns = p->start_ns;
    p->order_ns = p->end_ns;
    return true;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "image.h"
#include "cursor.h"
#include "time.h"
#include "kinds.h"

/* Placed spans: those that have tracks of their own, beside the threads. Device spans, finished spans
   (npuprof_span()) and async spans are recorded by any thread at any time, so they are sorted by track and
   start before they are written (read/placed.h). What one has in memory is 40 bytes; its record is decoded
   again when it is written, unless its site says all. */

enum { NPUPROF_TRACK_DEVICE_ = 1, NPUPROF_TRACK_FINISHED_, NPUPROF_TRACK_ASYNC_ };
/* What is wrong with one: it has no end; its stamps are of another clock, so that it is drawn where the trace
   begins; its end is before its start. */
enum { NPUPROF_FAULT_NONE_, NPUPROF_FAULT_UNFINISHED_, NPUPROF_FAULT_RANGE_, NPUPROF_FAULT_REVERSED_ };
typedef struct npuprof_placed_ {
    /* NPUPROF_TRACK_* << 56 | device << 32 | pe; or the name of track or span */
    uint64_t track;
    int64_t start_ns, end_ns;              /* after the first anchor */
    uint64_t locator;
    uint32_t text;                         /* site << 8 | kind; 0: arguments or a device say more of it */
    uint32_t fault;                        /* NPUPROF_FAULT_* */
} npuprof_placed_;

/* The order on the page: by track, start, then the longer one first, but for async spans: their ends may be
   unknown. The locator makes the order total. */
NPUPROF_HOT_ static bool npuprof_placed_is_before_(const void *one, const void *other)
{
    const npuprof_placed_ *const a = (const npuprof_placed_ *)one, *const b = (const npuprof_placed_ *)other;
    if (a->track != b->track) return a->track < b->track;
    if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns;
    if (a->end_ns != b->end_ns && a->track >> 56 != NPUPROF_TRACK_ASYNC_) return a->end_ns > b->end_ns;
    return a->locator < b->locator;
}

/* Of a device's span or a finished one. */
static uint64_t npuprof_place_track_(const npuprof_event_ *ev)
{
    if (ev->kind == NPUPROF_KIND_DEVICE)
        return (uint64_t)NPUPROF_TRACK_DEVICE_ << 56 | (uint64_t)ev->device << 32 | ev->pe;
    return (uint64_t)NPUPROF_TRACK_FINISHED_ << 56 | ev->track;
}

/* Are these ns after the first anchor too far from the trace? Why: farther away than this (13 days), viewers
   lose the nanoseconds of the whole trace. */
static bool npuprof_place_is_far_(const npuprof_image_ *im, int64_t from, int64_t to)
{
    const int64_t limit = (int64_t)1 << 50;
    return from < -limit || to > npuprof_image_ns_(im, im->last_ticks) + limit;
}

/* ---- Placing an event, in two steps. False: it stays on its thread, or there is no anchor to place it by.
   Why two: the end of a device span costs as much as its start, and a survey of starts needs none. */

static bool npuprof_place_start_(const npuprof_image_ *im, npuprof_image_anchor_caches_ *caches,
                                 const npuprof_event_ *ev, npuprof_placed_ *p)
{
    p->track = npuprof_place_track_(ev);
    p->locator = ev->locator;
    p->fault = NPUPROF_FAULT_NONE_;
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        uint64_t start;
        if (!npuprof_image_host_ticks_(im, caches, ev, ev->start, &start, NULL)) return false;
        p->start_ns = npuprof_image_ns_(im, start);
    } else if (ev->kind == NPUPROF_KIND_FINISHED) {
        p->start_ns = (int64_t)(ev->value - (uint64_t)im->h->first.unix_ns);
        p->end_ns = (int64_t)(ev->second - (uint64_t)im->h->first.unix_ns);
        if ((int64_t)ev->second < (int64_t)ev->value) p->fault = NPUPROF_FAULT_REVERSED_;
        const bool ordered = p->start_ns <= p->end_ns;
        if (!npuprof_place_is_far_(im, ordered ? p->start_ns : p->end_ns, ordered ? p->end_ns : p->start_ns))
            return true;
        p->fault = NPUPROF_FAULT_RANGE_;
        p->start_ns = p->end_ns = 0;
    } else {
        return false;
    }
    return true;
}

static bool npuprof_place_end_(const npuprof_image_ *im, npuprof_image_anchor_caches_ *caches,
                               const npuprof_event_ *ev, npuprof_placed_ *p)
{
    if (ev->kind == NPUPROF_KIND_DEVICE && ev->flags & NPUPROF_STAMP_INSTANT) {
        p->end_ns = p->start_ns;
    } else if (ev->kind == NPUPROF_KIND_DEVICE) {
        uint64_t end;
        if (!npuprof_image_host_ticks_(im, caches, ev, ev->end, &end, NULL)) return false;
        p->end_ns = npuprof_image_ns_(im, end);
    }
    if (p->end_ns < p->start_ns) p->end_ns = p->start_ns;
    return true;
}

/* Places the begin of an async span at these ns. Where open spans end: it has no end yet. */
NPUPROF_HOT_ static inline void npuprof_place_async_(const npuprof_event_ *ev, int64_t ns,
                                                     int64_t open_until_ns, npuprof_placed_ *p)
{
    p->track = (uint64_t)NPUPROF_TRACK_ASYNC_ << 56 | ev->name;
    p->locator = ev->locator;
    p->start_ns = ns;
    p->end_ns = ns > open_until_ns ? ns : open_until_ns;
    p->fault = NPUPROF_FAULT_UNFINISHED_;
}

/* Both steps. */
static bool npuprof_place_(const npuprof_image_ *im, npuprof_image_anchor_caches_ *caches,
                           const npuprof_event_ *ev, npuprof_placed_ *p)
{
    return npuprof_place_start_(im, caches, ev, p) && npuprof_place_end_(im, caches, ev, p);
}

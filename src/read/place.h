#pragma once   /* SPDX-License-Identifier: MIT */
#include "image.h"
#include "cursor.h"
#include "time.h"

/* Placed spans: those that have tracks of their own, beside the threads. Device spans, finished spans
   (npuprof_span()) and async spans are recorded by any thread at any time, so they are sorted by track and
   start before they are written (read/placed.h). What one has in memory is 48 bytes; its record is decoded
   again when it is written. */

enum { NPUPROF_TRACK_DEVICE_ = 1, NPUPROF_TRACK_FINISHED_, NPUPROF_TRACK_ASYNC_ };
typedef struct npuprof_placed_ {
    /* NPUPROF_TRACK_* << 56 | device << 32 | pe; or the name of track or span */
    uint64_t track;
    int64_t start_ns, end_ns;              /* after the first anchor */
    uint64_t locator;
    size_t event;                          /* of an async span: index of its begin (read/placed.h) */
    bool unfinished;
    /* its stamps are of another clock: it is drawn where the trace begins */
    bool out_of_range;
} npuprof_placed_;

/* The order on the page: by track, start, then the longer one first. The locator makes the order total. */
NPUPROF_HOT_ static bool npuprof_placed_is_before_(const void *one, const void *other)
{
    const npuprof_placed_ *const a = (const npuprof_placed_ *)one, *const b = (const npuprof_placed_ *)other;
    if (a->track != b->track) return a->track < b->track;
    if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns;
    if (a->end_ns != b->end_ns) return a->end_ns > b->end_ns;
    return a->locator < b->locator;
}

/* ---- A walk over the records of some kinds, a bit for each, of a slot that its cursor was put at */

typedef struct npuprof_place_walk_ {
    npuprof_cursor_ cursor;
    uint32_t kinds;
    struct { uint32_t site, kind, name; } met[256];    /* those met last */
} npuprof_place_walk_;

static void npuprof_place_begin_(npuprof_place_walk_ *w, uint32_t kinds)
{
    w->kinds = kinds;
    memset(w->met, 0, sizeof w->met);
}

/* Fills in what npuprof_place_() reads of the plain record *p at c->at, which has a name. False: it must be
   decoded. */
static bool npuprof_place_fill_(const npuprof_place_walk_ *w, const npuprof_plain_walk_ *c,
                                const npuprof_plain_ *p, npuprof_event_ *ev)
{
    const npuprof_cursor_ *const cursor = &w->cursor;
    const npuprof_unit_ *const more = c->at + 1;
    const uint64_t w0 = npuprof_unit_load_w0_(more), unit = (uint64_t)(c->at - cursor->units);
    const bool finished = ((uint32_t)w0 & NPUPROF_ID_MASK_) == NPUPROF_CONTROL_FINISHED_;
    ev->kind = w->met[p->site % 256].kind;
    if (finished != (ev->kind == NPUPROF_KIND_FINISHED)) return false;
    ev->name = w->met[p->site % 256].name;
    ev->start = ev->host_ticks = p->start;
    ev->value = p->end;
    ev->track = (uint32_t)(w0 >> NPUPROF_ID_BITS_);
    ev->second = npuprof_unit_load_w1_(more);
    ev->has_link = false;
    ev->locator = ((uint64_t)(cursor->chunk - 1) * cursor->image->units + unit) << 1 | cursor->first;
    return true;
}

/* Goes over the plain records that come next, as long as their sites were met, up to one of the kinds. False:
   the record at the cursor must be decoded. Why: most records are plain, and few are of the kinds. */
static bool npuprof_place_plain_(npuprof_place_walk_ *w, npuprof_event_ *ev)
{
    npuprof_plain_walk_ c = npuprof_cursor_begin_plains_(&w->cursor);
    npuprof_plain_ p;
    bool found = false;
    while (!found && npuprof_cursor_peek_plain_(&c, &p)) {
        const bool met = w->met[p.site % 256].site == p.site;
        if (!met && p.site != NPUPROF_CONTROL_RESULT_) break;
        found = met && (w->kinds >> w->met[p.site % 256].kind & 1);
        if (found && !npuprof_place_fill_(w, &c, &p, ev)) {
            found = false;
            break;
        }
        c.at = p.behind;
    }
    npuprof_cursor_end_plains_(&w->cursor, &c);
    return found;
}

/* The next one; of others than device spans *ev has only what npuprof_place_() reads. False: there are no
   more. */
static bool npuprof_place_next_(npuprof_place_walk_ *w, npuprof_event_ *ev)
{
    for (;;) {
        if (npuprof_place_plain_(w, ev)) return true;
        if (!npuprof_cursor_next_event_(&w->cursor, ev)) return false;
        w->met[ev->site % 256].site = ev->site;
        w->met[ev->site % 256].kind = ev->kind;
        w->met[ev->site % 256].name = ev->name;
        if (w->kinds >> ev->kind & 1) return true;
    }
}

static uint64_t npuprof_place_track_(const npuprof_event_ *ev)
{
    if (ev->kind == NPUPROF_KIND_DEVICE)
        return (uint64_t)NPUPROF_TRACK_DEVICE_ << 56 | (uint64_t)ev->device << 32 | ev->pe;
    if (ev->kind == NPUPROF_KIND_FINISHED) return (uint64_t)NPUPROF_TRACK_FINISHED_ << 56 | ev->track;
    return (uint64_t)NPUPROF_TRACK_ASYNC_ << 56 | ev->name;
}

/* ---- Placing an event, in two steps. False: it stays on its thread, or there is no anchor to place it by.
   Why two: the end of a device span costs as much as its start, and a survey of starts needs none. */

static bool npuprof_place_start_(const npuprof_image_ *im, npuprof_image_anchor_caches_ *caches,
                                 const npuprof_event_ *ev, npuprof_placed_ *p)
{
    p->track = npuprof_place_track_(ev);
    p->locator = ev->locator;
    p->unfinished = p->out_of_range = false;
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        uint64_t start;
        if (!npuprof_image_host_ticks_(im, caches, ev, ev->start, &start, NULL)) return false;
        p->start_ns = npuprof_image_ns_(im, start);
    } else if (ev->kind == NPUPROF_KIND_FINISHED) {
        p->start_ns = (int64_t)(ev->value - (uint64_t)im->h->first.unix_ns);
        p->end_ns = (int64_t)(ev->second - (uint64_t)im->h->first.unix_ns);
        /* Why: farther away than this (13 days), viewers lose the nanoseconds of the whole trace. */
        const int64_t limit = (int64_t)1 << 50, latest = npuprof_image_ns_(im, im->last_ticks) + limit;
        const bool early = p->start_ns < -limit || p->end_ns < -limit;
        p->out_of_range = early || p->start_ns > latest || p->end_ns > latest;
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

/* Both steps. */
static bool npuprof_place_(const npuprof_image_ *im, npuprof_image_anchor_caches_ *caches,
                           const npuprof_event_ *ev, npuprof_placed_ *p)
{
    return npuprof_place_start_(im, caches, ev, p) && npuprof_place_end_(im, caches, ev, p);
}

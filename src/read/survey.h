#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "../clock/host.h"
#include "../arena/anchors.h"
#include "../arena/chunks.h"
#include "image.h"
#include "live.h"
#include "cursor.h"
#include "threads.h"
#include "time.h"
#include "rate.h"
#include "kinds.h"
#include "place.h"

/* Opens an image for a reader: goes through all of its events once, counts them, and finds what the trace
   spans, how fast its clock was, where the trace begins, and where spans end that are still open.

   Data: the image, which the caller owns and fills here. A live arena goes on recording meanwhile; what is
   newer than the last stamp found here is not shown, so that a reader sees the same events in each of its
   walks. */

/* ---- The walk over all events */

/* What a trace spans, and the start of the last span that is still open, if there is one. first_ns, last_ns:
   what finished spans say of themselves, after the first anchor; is_odd: one has a link, or ends before it
   starts. */
typedef struct npuprof_survey_ {
    npuprof_extent_ extent;
    int64_t first_ns, last_ns;
    uint64_t newest_open;
    bool open, is_odd;
} npuprof_survey_;

static void npuprof_survey_add_finished_(npuprof_survey_ *x, const npuprof_event_ *ev, int64_t first)
{
    const int64_t start = (int64_t)(ev->value - (uint64_t)first);
    const int64_t end = (int64_t)(ev->second - (uint64_t)first);
    if (start < x->first_ns) x->first_ns = start;
    if (end > x->last_ns) x->last_ns = end;
    x->is_odd = x->is_odd || end < start || ev->has_link;
}

static void npuprof_survey_add_(npuprof_survey_ *x, const npuprof_event_ *ev, uint64_t first)
{
    const bool nests = npuprof_kind_nests_(ev->kind), ended = nests && !ev->unfinished;
    npuprof_extent_add_(&x->extent, ev->kind, ev->host_ticks - first,
                        ended ? npuprof_max_(ev->end, ev->host_ticks) : ev->host_ticks);
    if (nests && !ended) x->newest_open = npuprof_max_(x->newest_open, ev->host_ticks);
    x->open = x->open || (nests && !ended);
}

static npuprof_survey_ npuprof_survey_events_(npuprof_image_ *im)
{
    npuprof_event_ ev;
    npuprof_cursor_kinds_ c;
    npuprof_survey_ x;
    const npuprof_slot_head_ *slot = NULL;
    memset(&x, 0, sizeof x);
    x.first_ns = INT64_MAX;
    x.last_ns = INT64_MIN;
    npuprof_cursor_begin_kinds_(&c, NPUPROF_CURSOR_DECODED_ | 1u << NPUPROF_KIND_FINISHED);
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL) {
        npuprof_cursor_begin_slot_(&c.cursor, im, slot);
        while (npuprof_cursor_next_of_kinds_(&c, &ev)) {
            im->kinds |= (uint32_t)1 << ev.kind;
            npuprof_survey_add_(&x, &ev, im->h->first.ticks);
            if (ev.kind == NPUPROF_KIND_FINISHED) npuprof_survey_add_finished_(&x, &ev, im->h->first.unix_ns);
        }
    }
    x.extent.earliest = npuprof_image_earlier_(x.extent.earliest, c.passed.earliest);
    x.extent.last = npuprof_max_(x.extent.last, c.passed.last);
    im->events = x.extent.events + c.passed.events;
    return x;
}

/* The trace begins with the earliest of the spans that have stamps of their own. False: to find it needs
   another walk.
   Why their ends do not count for open spans: nobody knows if the process lived then. */
static bool npuprof_survey_finished_(npuprof_image_ *im, const npuprof_survey_ *x)
{
    if (im->kinds >> NPUPROF_KIND_DEVICE & 1 || x->is_odd) return false;
    if (npuprof_place_is_far_(im, x->first_ns, x->last_ns)) return false;
    im->origin_ns = npuprof_image_earlier_(im->origin_ns, x->first_ns);
    return true;
}

/* That walk. */
static void npuprof_survey_placed_(npuprof_image_ *im)
{
    npuprof_image_anchor_caches_ caches;
    npuprof_event_ ev;
    npuprof_cursor_kinds_ c;
    npuprof_placed_ p;
    int64_t first_ns = im->origin_ns;
    const npuprof_slot_head_ *slot = NULL;
    memset(&caches, 0, sizeof caches);
    npuprof_cursor_begin_kinds_(&c, NPUPROF_OWN_STAMPS_);
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL) {
        npuprof_cursor_begin_slot_(&c.cursor, im, slot);
        while (npuprof_cursor_next_of_kinds_(&c, &ev)) {
            if (npuprof_image_has_arrow_(im, &ev))
                first_ns = npuprof_image_earlier_(first_ns, npuprof_image_ns_(im, ev.link.ticks));
            if (npuprof_place_start_(im, &caches, &ev, &p))
                first_ns = npuprof_image_earlier_(first_ns, p.start_ns);
        }
    }
    im->origin_ns = first_ns;
}

/* The trace begins before its first pause, too. */
static void npuprof_survey_pauses_(npuprof_image_ *im)
{
    const npuprof_entry_ *e;
    uint32_t id = 0;
    while ((e = npuprof_image_next_entry_(im, NPUPROF_ENTRY_PAUSE, sizeof(npuprof_pause_entry_), &id)) !=
           NULL) {
        const npuprof_pause_entry_ *pause = (const npuprof_pause_entry_ *)(const void *)e;
        const uint64_t at[2] = { NPUPROF_LOAD_(&pause->from), NPUPROF_LOAD_(&pause->to) };
        for (int i = 0; i < 2; i++)
            if (at[i] && at[i] >= im->clear_ticks)
                im->origin_ns = npuprof_image_earlier_(im->origin_ns, npuprof_image_ns_(im, at[i]));
    }
}

/* ---- Opening */

/* Opens what is to be read, the image given or else the live arena, without a look at its events. */
static void npuprof_image_open_unread_(npuprof_image_ *im)
{
    if (npuprof_image_given_) *im = *npuprof_image_given_;
    else npuprof_image_open_live_(im);
    im->clear_ticks = NPUPROF_LOAD_(&im->h->clear_ticks);
    const npuprof_image_window_ limits = npuprof_image_limits_();
    if (!npuprof_image_given_ && limits.since > im->clear_ticks) im->clear_ticks = limits.since;
    im->last_ticks = im->open_until = UINT64_MAX;
    if (!npuprof_image_given_ && limits.until) im->last_ticks = limits.until;
}

/* Fills im->lost. Returns how many whole spans and events that is. */
static uint64_t npuprof_image_sum_lost_(npuprof_image_ *im)
{
    const npuprof_slot_head_ *slot = NULL;
    uint64_t sum = 0;
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) im->lost[i] = NPUPROF_LOAD_(&im->h->lost[i]);
    if (!im->next)
        im->lost[NPUPROF_LOST_OVERWRITTEN] += npuprof_chunk_sum_overwritten_(im->h, im->chunk_total);
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL)
        im->lost[NPUPROF_LOST_FULL] += NPUPROF_LOAD_(&slot->lost);
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++)
        sum += npuprof_chunk_is_whole_loss_[i] ? im->lost[i] : 0;
    return sum;
}

/* The newest clock anchor. A live arena takes one if anything was recorded since the last one, or spans are
   open: `last` is the newest stamp, or now.
   Why not always: reading twice must give the same bytes while nothing happens. */
static void npuprof_image_take_closing_anchor_(npuprof_image_ *im, uint64_t last)
{
    im->closing = npuprof_arena_copy_last_anchor_(im->h);
    if (npuprof_image_given_ || (last <= im->closing.ticks && im->closing.ticks != im->h->first.ticks))
        return;
    npuprof_arena_renew_last_anchor_();
    im->closing = npuprof_arena_copy_last_anchor_(im->h);
}

/* Opens what is to be read, and goes through its events. */
static void npuprof_image_open_(npuprof_image_ *im)
{
    npuprof_image_open_unread_(im);
    (void)npuprof_image_sum_lost_(im);
    /* Why before the walk: what the walk finds open was open now. */
    const uint64_t now = npuprof_image_given_ ? 0 : npuprof_min_(im->last_ticks, npuprof_clock_in_order_());
    const npuprof_survey_ x = npuprof_survey_events_(im);
    const uint64_t last = x.extent.last;
    npuprof_image_take_closing_anchor_(im, x.open ? npuprof_max_(last, now) : last);
    const npuprof_header_ *const h = im->h;
    im->last_ticks = last ? last : h->first.ticks;
    /* Spans without an end are known to be open up to now; in an image, up to its last anchor, when the
       process that recorded it lived. */
    im->open_until = npuprof_max_(im->last_ticks, npuprof_image_given_ ? im->closing.ticks : now);
    npuprof_rate_find_(im);
    /* Why not at the first anchor: the clock of another thread may be behind that of the thread that took the
       anchor, and viewers drop events with negative times. */
    const uint64_t earliest = h->first.ticks + (uint64_t)x.extent.earliest;
    im->origin_ns = npuprof_image_earlier_(0, npuprof_image_ns_(im, earliest));
    npuprof_survey_pauses_(im);
    if (im->kinds & NPUPROF_OWN_STAMPS_ && !npuprof_survey_finished_(im, &x))
        npuprof_survey_placed_(im);
    /* Why a microsecond more: the last stamp of a crash is often the start of the span that it happened in,
       and viewers show no span without length. */
    if (x.open && x.newest_open >= im->open_until)
        im->open_until = x.newest_open + npuprof_image_ticks_at_(im, 1000) - h->first.ticks;
}

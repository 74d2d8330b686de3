#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "../numbers/wide.h"
#include "../format/arena.h"
#include "../read/image.h"
#include "../read/cursor.h"
#include "../read/threads.h"
#include "../read/time.h"
#include "text.h"
#include "emit.h"
#include "json.h"

/* The metadata's "clock_sync" of a device: how its clock was mapped to the host's, how well, and what went
   wrong. */

/* What a walk over all spans of the device finds. */
typedef struct npuprof_json_sync_ {
    uint64_t spans, unplaced, violations, undrawn;
    uint64_t host_spans;                   /* on the host's clock: not mapped */
    uint64_t max_error;                    /* in host ticks */
    uint32_t anchors;
    uint64_t contradictions, opened;       /* of the declared rate; host ticks in which it does not count */
    uint64_t late_reads;                   /* left out: clock/evidence.h, E4 */
    bool is_wild;                          /* it counts nowhere in some epoch */
    npuprof_anchor_ first, last;           /* of the epoch whose anchors are farthest apart */
} npuprof_json_sync_;

/* A member in thousandths; null if it is not known. */
static void npuprof_json_known_milli_(npuprof_out_ *o, const char *key, bool is_known, uint64_t thousandths,
                                      bool is_negative)
{
    if (!is_known) npuprof_emit_word_(o, key, "null");
    else npuprof_emit_milli_(o, key, is_negative ? -(int64_t)thousandths : (int64_t)thousandths);
}

static void npuprof_json_collect_anchors_(const npuprof_image_ *im, const npuprof_device_entry_ *d,
                                          npuprof_json_sync_ *s)
{
    npuprof_anchor_ a, begin = s->first;
    npuprof_map_evidence_ evidence;
    uint32_t block = 0, index = 0, epoch = 0, of_epoch = 0;
    npuprof_image_begin_evidence_(im, d, &evidence);
    for (;; s->anchors++) {
        const bool more = npuprof_image_next_anchor_(im, d, &block, &index, &epoch, &a);
        if (!more || (s->anchors && epoch != of_epoch)) {
            npuprof_map_judge_(&evidence);
            s->contradictions += evidence.steps;
            s->opened += evidence.opened_host;
            s->late_reads += evidence.lates;
            s->is_wild |= evidence.is_wild;
            npuprof_image_begin_evidence_(im, d, &evidence);
        }
        if (!more) break;
        const npuprof_map_point_ p = npuprof_map_point_of_(&a);
        npuprof_map_witness_(&evidence, &p);
        if (!s->anchors || epoch != of_epoch) begin = a;
        of_epoch = epoch;
        if (a.host_after - begin.host_after <= s->last.host_after - s->first.host_after) continue;
        s->first = begin;
        s->last = a;
    }
}

static void npuprof_json_collect_sync_(const npuprof_image_ *im, const npuprof_device_entry_ *d,
                                       npuprof_json_sync_ *s)
{
    npuprof_image_anchor_caches_ caches;
    npuprof_event_ ev;
    npuprof_cursor_ c;
    const npuprof_slot_head_ *slot = NULL;
    memset(&caches, 0, sizeof caches);
    memset(s, 0, sizeof *s);
    npuprof_json_collect_anchors_(im, d, s);
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL) {
        npuprof_cursor_begin_slot_(&c, im, slot);
        while (npuprof_cursor_next_event_(&c, &ev)) {
            npuprof_image_times_ times;
            if (ev.kind != NPUPROF_KIND_DEVICE || ev.device != d->head.a) continue;
            if (ev.flags & NPUPROF_STAMP_INSTANT) continue;
            /* Why: nobody measured the times of a job that has no stamps. */
            if (ev.flags & NPUPROF_STAMP_HOST && !(ev.flags & NPUPROF_STAMP_SAMPLED)) {
                s->host_spans++;
                continue;
            }
            s->spans++;
            if (!npuprof_image_times_of_(im, &caches, &ev, &times)) {
                s->unplaced++;
                continue;
            }
            s->max_error = npuprof_max_(s->max_error, times.error);
            s->violations += times.broken;
            const bool drawn = npuprof_fact_draws_arrow_(im, &ev, npuprof_image_ns_(im, times.start));
            s->undrawn += npuprof_image_has_arrow_(im, &ev) && !drawn;
        }
    }
}

/* The rate between the first and the last anchor; null if there is none. Its uncertainty is the errors of the
   two over their distance: half the distance of their host stamps, a device tick of either, and the host
   clock's own anchors. */
static void npuprof_json_rate_(npuprof_out_ *o, const npuprof_image_ *im, const npuprof_device_entry_ *d,
                               const npuprof_json_sync_ *s)
{
    const uint64_t ticks = s->last.device_ticks - s->first.device_ticks, trillion = 1000000000000u;
    const uint64_t first_half = (s->first.host_after - s->first.host_before) / 2;
    const uint64_t last_half = (s->last.host_after - s->last.host_before) / 2;
    const uint64_t first_at = s->first.host_before + first_half, last_at = s->last.host_before + last_half;
    const uint64_t error = first_half + last_half + 2;
    const uint64_t ns = (uint64_t)npuprof_image_ns_(im, im->h->first.ticks + (last_at - first_at));
    uint64_t rate_mhz = ns ? npuprof_scale_(ticks, trillion, ns) : 0;
    if (rate_mhz > NPUPROF_MAX_HZ_ * 1000) rate_mhz = 0;     /* no counter is so fast: its values jump */
    npuprof_json_known_milli_(o, "rate_hz", rate_mhz, rate_mhz, false);
    uint64_t ppt = last_at > first_at ? npuprof_scale_(error, trillion, last_at - first_at) : 0;
    if (ticks) ppt += npuprof_scale_(1, trillion, ticks);
    const npuprof_host_anchor_ *const first = &im->h->first, *const closing = &im->closing;
    if (closing->ticks > first->ticks && !im->h->clock_hz)
        ppt += npuprof_scale_(first->error_ticks + closing->error_ticks + 1, trillion,
                              closing->ticks - first->ticks);
    npuprof_json_known_milli_(o, "rate_uncertainty_ppm", rate_mhz, ppt / 1000 + 1, false);
    if (d->nominal_hz) npuprof_emit_uint_(o, "nominal_hz", d->nominal_hz);
    else npuprof_emit_word_(o, "nominal_hz", "null");
    const bool has_drift = d->nominal_hz && d->nominal_hz <= NPUPROF_MAX_HZ_ && rate_mhz;
    const uint64_t nominal = has_drift ? d->nominal_hz * 1000 : 1;
    const bool slow = rate_mhz < nominal;
    const uint64_t ppb = npuprof_scale_(slow ? nominal - rate_mhz : rate_mhz - nominal, 1000000000u, nominal);
    npuprof_json_known_milli_(o, "drift_ppm", has_drift, npuprof_min_(ppb, INT64_MAX), slow);
}

/* [ns after the first clock anchor, half width in ns, device ticks] of each anchor, at most a thousand. */
static void npuprof_json_anchor_list_(npuprof_out_ *o, const npuprof_image_ *im,
                                      const npuprof_device_entry_ *d)
{
    npuprof_anchor_ a;
    uint32_t block = 0, index = 0, epoch = 0, shown = 0;
    npuprof_emit_begin_(o, "anchor_list", "[");
    for (; shown < 1000 && npuprof_image_next_anchor_(im, d, &block, &index, &epoch, &a); shown++) {
        const uint64_t half = (a.host_after - a.host_before + 1) / 2;
        npuprof_emit_begin_(o, NULL, "[");
        npuprof_emit_int_(o, NULL, npuprof_image_ns_(im, a.host_before + half));
        npuprof_emit_uint_(o, NULL, (uint64_t)npuprof_image_ns_(im, im->h->first.ticks + half) + 1);
        npuprof_emit_uint_(o, NULL, a.device_ticks);
        npuprof_emit_end_(o, "]");
    }
    npuprof_emit_end_(o, "]");
}

/* How many records are lost or odd, by why: those that are not 0. */
static void npuprof_json_records_(npuprof_out_ *o, const npuprof_image_ *im, const npuprof_device_entry_ *d)
{
    static const char *const keys[NPUPROF_RECORDS_COUNT] = {
        "lost_overwritten", "lost_stamps", "lost_epoch", "lost_no_anchor", "lost_by_driver",
        "unknown_records", "unmatched_ends", "unfinished", "past_last_lane", "loss_unknown",
        "dropped_jobs", "open_jobs", "ambiguous_jobs", "lost_period", "lost_contradiction" };
    const npuprof_entry_ *e;
    uint64_t counts[NPUPROF_RECORDS_COUNT] = { 0 };
    uint32_t id = 0;
    bool any = false;
    while ((e = npuprof_image_next_entry_(im, NPUPROF_ENTRY_RECORDS, sizeof(npuprof_records_entry_), &id)) !=
           NULL) {
        const npuprof_records_entry_ *const r = (const npuprof_records_entry_ *)(const void *)e;
        if (e->a != d->head.a) continue;
        for (unsigned i = 0; i < NPUPROF_RECORDS_COUNT; i++) counts[i] += NPUPROF_LOAD_(&r->counts[i]);
    }
    for (unsigned i = 0; i < NPUPROF_RECORDS_COUNT; i++) {
        if (!counts[i]) continue;
        if (!any) npuprof_emit_begin_(o, "records", "{");
        npuprof_emit_uint_(o, keys[i], counts[i]);
        any = true;
    }
    if (any) npuprof_emit_end_(o, "}");
}

static void npuprof_json_clock_sync_(npuprof_work_ *w, const npuprof_device_entry_ *d)
{
    static const struct { const char *key; uint32_t note; } notes[] = {
        { "wraps", NPUPROF_NOTE_WRAPS },
        { "resets", NPUPROF_NOTE_RESETS },
        { "ambiguous_gaps", NPUPROF_NOTE_AMBIGUOUS },
        { "dead_reads", NPUPROF_NOTE_DEAD_READS },
        { "torn_reads", NPUPROF_NOTE_TORN_READS },
        { "ring_lost", NPUPROF_NOTE_RING_LOST },
    };
    const npuprof_image_ *im = &w->image;
    npuprof_out_ *o = &w->out;
    npuprof_json_sync_ s;
    npuprof_json_collect_sync_(im, d, &s);
    npuprof_emit_begin_(o, "clock_sync", "{");
    npuprof_json_rate_(o, im, d, &s);
    const uint64_t max_error_ns = (uint64_t)npuprof_image_ns_(im, im->h->first.ticks + s.max_error) + 1;
    npuprof_emit_uint_(o, "max_error_ns", s.max_error ? max_error_ns : 0);
    npuprof_emit_uint_(o, "anchors", s.anchors);
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        npuprof_emit_uint_(o, notes[i].key, NPUPROF_LOAD_(&d->notes[notes[i].note]));
    npuprof_emit_uint_(o, "spans", s.spans);
    if (s.host_spans) npuprof_emit_uint_(o, "host_spans", s.host_spans);
    npuprof_emit_uint_(o, "unplaced_spans", s.unplaced);
    npuprof_emit_uint_(o, "causality_violations", s.violations);
    npuprof_emit_uint_(o, "arrows_left_out", s.undrawn);
    if (s.late_reads) npuprof_emit_uint_(o, "late_reads", s.late_reads);
    if (s.contradictions) {
        npuprof_emit_uint_(o, "contradictions", s.contradictions);
        npuprof_emit_uint_(o, "opened_ns", (uint64_t)npuprof_image_ns_(im, im->h->first.ticks + s.opened));
        npuprof_emit_text_(o, "class", s.is_wild ? "stands" : "steady");
    }
    npuprof_json_records_(o, im, d);
    npuprof_json_anchor_list_(o, im, d);
    const uint32_t flags = NPUPROF_LOAD_(&d->flags);
    if (flags & NPUPROF_DEVICE_IDLE_) npuprof_emit_word_(o, "idle_at_open", "true");
    if (flags & NPUPROF_DEVICE_CAUSAL_) npuprof_emit_text_(o, "clock", "causal");
    npuprof_emit_end_(o, "}");
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../types.h"
#include "format.h"
#include "stamp.h"
#include "ended.h"

/* When a record was: its stamps, by the law of stamp.h, with what its lane and its job say. Under the queue
   lock. May not know how a span is drawn. */

/* Whether the lanes of a queue remember their stamps. */
static bool npuprof_npu_lanes_count_(const npuprof_npu_queue_ *q)
{
    return q->is.ascending || q->is.lane_count || npuprof_npu_has_(q, NPUPROF_NPU_AT_CLOCK_HIGH_) ||
           npuprof_npu_has_(q, NPUPROF_NPU_AT_KIND_);
}

/* The lane's latest device time, and its last stamp, from which the next is extended. */
static void npuprof_npu_note_stamp_(const npuprof_npu_queue_ *q, npuprof_npu_lane_state_ *lane,
                                    const npuprof_npu_times_ *t, uint64_t stamp)
{
    if (!lane || (!(t->flags & NPUPROF_STAMP_HOST) && t->epoch != lane->epoch)) return;
    if (t->end > lane->last_ticks) lane->last_ticks = t->end;
    if (!lane->has_last && !q->is.ascending) return;
    if (!lane->has_last || stamp > lane->last) lane->last = stamp;
    lane->has_last = true;
}

/* The one stamp of a begin, an end or an event. */
static int npuprof_npu_moment_(const npuprof_npu *npu, const npuprof_npu_entry_ *e,
                               const npuprof_npu_submission_ *of, npuprof_npu_times_ *t)
{
    const npuprof_npu_queue_ *const q = e->q;
    const npuprof_npu_pass_ *const pass = e->pass;
    npuprof_npu_bounds_ b =
        npuprof_npu_bounds_of_(npu, &pass->units, &pass->now, q, e->lane, of ? of->submitted : 0);
    uint64_t stamp;
    memset(t, 0, sizeof *t);
    if (q->is.stamp_clock == NPUPROF_NPU_STAMP_NONE) {
        t->start = t->end = pass->now.host;
        t->epoch = 0;
        t->flags = NPUPROF_STAMP_HOST;
        return NPUPROF_NPU_TIMES_GOOD_;
    }
    int why = npuprof_npu_extend_stamp_at_(npu, e, &b, NPUPROF_NPU_AT_STAMP_, &stamp);
    if (why == NPUPROF_RECORDS_PERIOD && npuprof_npu_narrow_by_job_(q, &pass->now, of, &b) &&
        npuprof_npu_extend_stamp_at_(npu, e, &b, NPUPROF_NPU_AT_STAMP_, &stamp) == NPUPROF_NPU_TIMES_GOOD_)
        why = NPUPROF_NPU_TIMES_GOOD_;
    t->start = t->end = stamp;
    if (why == NPUPROF_NPU_TIMES_GOOD_) why = npuprof_npu_place_(npu, e, of, t);
    if (why == NPUPROF_NPU_TIMES_GOOD_) npuprof_npu_note_stamp_(q, e->lane, t, stamp);
    return why;
}

/* Why a record is lost: what contradicts the facts of this run of the counter may be of the one before. */
static int npuprof_npu_why_lost_(const npuprof_npu_entry_ *e, const npuprof_npu_submission_ *of, int why)
{
    const bool before = why == NPUPROF_RECORDS_CONTRADICTION && !npuprof_npu_is_of_epoch_(e, of, 0);
    return before ? (int)NPUPROF_RECORDS_EPOCH : why;
}

/* Extends the start and the end of a span, those that its record has. Each narrows the other: it began before
   it ended. Returns NPUPROF_NPU_TIMES_GOOD_, or why the record is lost. */
static int npuprof_npu_extend_span_(const npuprof_npu *npu, const npuprof_npu_entry_ *e,
                                    npuprof_npu_bounds_ b, npuprof_npu_times_ *t)
{
    const npuprof_npu_queue_ *const q = e->q;
    const bool has_end = npuprof_npu_has_(q, NPUPROF_NPU_AT_END_), known = e->pass->units.known;
    int why = NPUPROF_NPU_TIMES_GOOD_;
    if (has_end) why = npuprof_npu_extend_stamp_at_(npu, e, &b, NPUPROF_NPU_AT_END_, &t->end);
    const bool open = why == NPUPROF_RECORDS_PERIOD;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_START_) || (why != NPUPROF_NPU_TIMES_GOOD_ && !open)) return why;
    if (has_end && !open && known) b.high = npuprof_saturating_add_(t->end, 1);
    why = npuprof_npu_extend_stamp_at_(npu, e, &b, NPUPROF_NPU_AT_START_, &t->start);
    if (open && why == NPUPROF_NPU_TIMES_GOOD_) {
        b.low = npuprof_saturating_sub_(t->start, 1);
        why = npuprof_npu_extend_stamp_at_(npu, e, &b, NPUPROF_NPU_AT_END_, &t->end);
    } else if (!known && has_end && t->end < t->start) {
        t->end = t->start + ((t->end - t->start) &
                             npuprof_npu_mask_(npuprof_npu_stamp_bits_(npu, q, NPUPROF_NPU_AT_END_)));
    }
    return why;
}

/* ns as host ticks, or in the unit of the stamps of a counter. */
static uint64_t npuprof_npu_ns_in_units_(const npuprof_npu *npu, const npuprof_npu_queue_ *q,
                                         const npuprof_npu_now_ *now, uint64_t ns)
{
    const npuprof_npu_ring *const r = &q->is;
    if (r->stamp_clock == NPUPROF_NPU_STAMP_HOST) return ns / r->stamp_unit_ns;
    if (r->stamp_clock == NPUPROF_NPU_STAMP_NONE)
        return npuprof_npu_mul_div_(ns, npu->second_, 1000000000, false);
    const uint64_t ticks = npuprof_npu_mul_div_(ns, now->rate, 1000000000, false);
    return npuprof_npu_is_scaled_(r) ? npuprof_npu_mul_div_(ticks, r->scale_den, r->scale_num, false) : ticks;
}

/* The duration of a record in units of its stamps. *doubt_ns: by how much it may be off; 0: as little as a
   stamp. False: nobody knows the rate. */
static bool npuprof_npu_duration_(const npuprof_npu *npu, const npuprof_npu_queue_ *q,
                                  const npuprof_npu_now_ *now, uint64_t raw, uint64_t *units,
                                  uint64_t *doubt_ns)
{
    const npuprof_npu_ring *const r = &q->is;
    const bool by_rate = r->stamp_clock == NPUPROF_NPU_STAMP_COUNTER;
    const uint64_t unit = r->duration_num / r->duration_den + 1;
    *units = npuprof_npu_mul_div_(raw, r->duration_num, r->duration_den, false);
    *doubt_ns = unit;
    if (!r->duration_in_ns) {
        const uint64_t num = by_rate ? r->scale_num : r->stamp_unit_ns, den = by_rate ? r->scale_den : 1;
        *doubt_ns = unit > 2 ? npuprof_npu_mul_div_(unit, num, den, true) : 0;
        if (by_rate)
            *doubt_ns = npuprof_npu_mul_div_(*doubt_ns, 1000000000, npuprof_max_(now->rate, 1), true);
        return true;
    }
    if (by_rate) *doubt_ns += npuprof_npu_mul_div_(*units, now->rate_ppm, 1000000, true);
    *units = npuprof_npu_ns_in_units_(npu, q, now, *units);
    return !by_rate || now->rate;
}

/* A span without a stamp: it ends now, and began when its duration says, or when it was submitted. */
static int npuprof_npu_host_times_(const npuprof_npu *npu, const npuprof_npu_entry_ *e,
                                   const npuprof_npu_submission_ *of, npuprof_npu_times_ *t)
{
    const npuprof_npu_now_ *const now = &e->pass->now;
    const bool told = npuprof_npu_has_(e->q, NPUPROF_NPU_AT_DURATION_);
    const uint64_t since = of->known && of->link.ticks < now->host ? of->link.ticks : 0;
    uint64_t length, doubt_ns;
    t->end = now->host;
    t->start = since ? since : t->end;
    t->epoch = 0;
    t->flags = NPUPROF_STAMP_HOST;
    if (!told) return NPUPROF_NPU_TIMES_GOOD_;
    (void)npuprof_npu_duration_(npu, e->q, now, e->r->v[NPUPROF_NPU_AT_DURATION_], &length, &doubt_ns);
    const uint64_t slack = npuprof_npu_ns_in_units_(npu, e->q, now, doubt_ns) + 2;
    const uint64_t start = npuprof_saturating_sub_(t->end, length);
    if (start + slack < since) return NPUPROF_RECORDS_CONTRADICTION;
    t->start = npuprof_max_(start, since);
    /* It ended when it was seen, or as much before that as it may have begun earlier. */
    if (since) t->epoch = npuprof_host_error_code_(t->start - since + slack);
    return NPUPROF_NPU_TIMES_GOOD_;
}

/* Finds the end, or the start, that a duration tells. Returns NPUPROF_NPU_TIMES_GOOD_, or why the record is
   lost: it would be older than its submission, or younger than now. */
static int npuprof_npu_add_duration_(const npuprof_npu *npu, const npuprof_npu_entry_ *e,
                                     const npuprof_npu_submission_ *of, npuprof_npu_times_ *t)
{
    const npuprof_npu_queue_ *const q = e->q;
    const npuprof_npu_now_ *const now = &e->pass->now;
    const npuprof_npu_bounds_ b = npuprof_npu_bounds_of_(npu, &e->pass->units, now, q, NULL, of->submitted);
    uint64_t length;
    if (!npuprof_npu_duration_(npu, q, now, e->r->v[NPUPROF_NPU_AT_DURATION_], &length, &t->doubt_ns))
        return NPUPROF_RECORDS_NO_ANCHOR;
    const uint64_t slack = npuprof_npu_ns_in_units_(npu, q, now, t->doubt_ns) + 1;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_END_)) {
        t->end = npuprof_saturating_add_(t->start, length);
        if (t->end > npuprof_saturating_add_(b.high, slack)) return NPUPROF_RECORDS_CONTRADICTION;
        t->end = npuprof_max_(npuprof_min_(t->end, b.high), t->start);
        return NPUPROF_NPU_TIMES_GOOD_;
    }
    if (length > npuprof_saturating_add_(t->end, slack)) return NPUPROF_RECORDS_STAMPS;
    t->start = npuprof_saturating_sub_(t->end, length);
    if (npuprof_saturating_add_(t->start, slack) < b.low) return NPUPROF_RECORDS_CONTRADICTION;
    t->start = npuprof_min_(npuprof_max_(t->start, b.low), t->end);
    return NPUPROF_NPU_TIMES_GOOD_;
}

/* The two stamps of a whole span, or one and a duration. */
static int npuprof_npu_span_times_(const npuprof_npu *npu, const npuprof_npu_entry_ *e,
                                   const npuprof_npu_submission_ *of, npuprof_npu_times_ *t)
{
    const npuprof_npu_queue_ *const q = e->q;
    const npuprof_npu_now_ *const now = &e->pass->now;
    memset(t, 0, sizeof *t);
    if (q->is.stamp_clock == NPUPROF_NPU_STAMP_NONE) return npuprof_npu_host_times_(npu, e, of, t);
    npuprof_npu_bounds_ b = npuprof_npu_bounds_of_(npu, &e->pass->units, now, q, e->lane, of->submitted);
    int why = npuprof_npu_extend_span_(npu, e, b, t);
    if (why == NPUPROF_RECORDS_PERIOD && npuprof_npu_narrow_by_job_(q, now, of, &b) &&
        npuprof_npu_extend_span_(npu, e, b, t) == NPUPROF_NPU_TIMES_GOOD_) why = NPUPROF_NPU_TIMES_GOOD_;
    if (why != NPUPROF_NPU_TIMES_GOOD_) return npuprof_npu_why_lost_(e, of, why);
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_DURATION_)) why = npuprof_npu_add_duration_(npu, e, of, t);
    else if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_END_)) t->end = t->start;
    else if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_START_)) t->start = t->end;
    if (why != NPUPROF_NPU_TIMES_GOOD_) return npuprof_npu_why_lost_(e, of, why);
    const uint64_t last = t->end;
    why = npuprof_npu_place_(npu, e, of, t);
    if (why == NPUPROF_NPU_TIMES_GOOD_) npuprof_npu_note_stamp_(q, e->lane, t, last);
    return why;
}

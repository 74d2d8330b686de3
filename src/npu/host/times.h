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
static int npuprof_npu_moment_(const npuprof_npu *npu, const npuprof_npu_queue_ *q,
                               const npuprof_npu_pass_ *pass, npuprof_npu_lane_state_ *lane,
                               const npuprof_npu_record_ *r, const npuprof_npu_submission_ *of,
                               npuprof_npu_times_ *t)
{
    npuprof_npu_bounds_ b =
        npuprof_npu_bounds_of_(npu, &pass->units, &pass->now, q, lane, of ? of->submitted : 0);
    uint64_t stamp;
    if (q->is.stamp_clock == NPUPROF_NPU_STAMP_NONE) {
        t->start = t->end = pass->now.host;
        t->epoch = 0;
        t->flags = NPUPROF_STAMP_HOST;
        return NPUPROF_NPU_TIMES_GOOD_;
    }
    int why = npuprof_npu_extend_stamp_at_(npu, q, &pass->units, &b, r, NPUPROF_NPU_AT_STAMP_, &stamp);
    if (why == NPUPROF_RECORDS_PERIOD && npuprof_npu_narrow_by_job_(q, &pass->now, of, &b) &&
        npuprof_npu_extend_stamp_at_(npu, q, &pass->units, &b, r, NPUPROF_NPU_AT_STAMP_, &stamp) ==
        NPUPROF_NPU_TIMES_GOOD_) why = NPUPROF_NPU_TIMES_GOOD_;
    if (why == NPUPROF_NPU_TIMES_GOOD_)
        why = npuprof_npu_place_(npu, q, pass, lane, of, stamp, stamp, t);
    if (why == NPUPROF_NPU_TIMES_GOOD_) npuprof_npu_note_stamp_(q, lane, t, stamp);
    return why;
}

/* Why a record is lost: what contradicts the facts of this run of the counter may be of the one before. */
static int npuprof_npu_why_lost_(const npuprof_npu_pass_ *pass, const npuprof_npu_lane_state_ *lane,
                                 const npuprof_npu_submission_ *of, int why)
{
    const bool before = why == NPUPROF_RECORDS_CONTRADICTION && !npuprof_npu_is_of_epoch_(pass, lane, of, 0);
    return before ? (int)NPUPROF_RECORDS_EPOCH : why;
}

/* Extends the start and the end of a span, those that its record has. Each narrows the other: it began before
   it ended. Returns NPUPROF_NPU_TIMES_GOOD_, or why the record is lost. */
static int npuprof_npu_extend_span_(const npuprof_npu *npu, const npuprof_npu_queue_ *q,
                                    const npuprof_npu_pass_ *pass, npuprof_npu_bounds_ b,
                                    const npuprof_npu_record_ *r, uint64_t *start, uint64_t *end)
{
    const bool has_end = npuprof_npu_has_(q, NPUPROF_NPU_AT_END_);
    const npuprof_npu_units_ *const u = &pass->units;
    int why = NPUPROF_NPU_TIMES_GOOD_;
    if (has_end) why = npuprof_npu_extend_stamp_at_(npu, q, u, &b, r, NPUPROF_NPU_AT_END_, end);
    const bool open = why == NPUPROF_RECORDS_PERIOD;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_START_) || (why != NPUPROF_NPU_TIMES_GOOD_ && !open)) return why;
    if (has_end && !open && u->known) b.high = npuprof_saturating_add_(*end, 1);
    why = npuprof_npu_extend_stamp_at_(npu, q, u, &b, r, NPUPROF_NPU_AT_START_, start);
    if (open && why == NPUPROF_NPU_TIMES_GOOD_) {
        b.low = npuprof_saturating_sub_(*start, 1);
        why = npuprof_npu_extend_stamp_at_(npu, q, u, &b, r, NPUPROF_NPU_AT_END_, end);
    } else if (!u->known && has_end && *end < *start) {
        *end = *start + ((*end - *start) &
                         npuprof_npu_mask_(npuprof_npu_stamp_bits_(npu, q, NPUPROF_NPU_AT_END_)));
    }
    return why;
}

/* The two stamps of a whole span, or one and a duration. */
static int npuprof_npu_span_times_(const npuprof_npu *npu, const npuprof_npu_queue_ *q,
                                   const npuprof_npu_pass_ *pass, npuprof_npu_lane_state_ *lane,
                                   const npuprof_npu_record_ *r, const npuprof_npu_submission_ *of,
                                   npuprof_npu_times_ *t)
{
    const uint64_t duration = r->v[NPUPROF_NPU_AT_DURATION_];
    uint64_t start = 0, end = 0;
    if (q->is.stamp_clock == NPUPROF_NPU_STAMP_NONE) {
        t->end = t->start = pass->now.host;
        if (of->known && of->link.ticks && of->link.ticks < t->end) t->start = of->link.ticks;
        t->epoch = 0;
        t->flags = NPUPROF_STAMP_HOST;
        return NPUPROF_NPU_TIMES_GOOD_;
    }
    npuprof_npu_bounds_ b = npuprof_npu_bounds_of_(npu, &pass->units, &pass->now, q, lane, of->submitted);
    int why = npuprof_npu_extend_span_(npu, q, pass, b, r, &start, &end);
    if (why == NPUPROF_RECORDS_PERIOD && npuprof_npu_narrow_by_job_(q, &pass->now, of, &b) &&
        npuprof_npu_extend_span_(npu, q, pass, b, r, &start, &end) == NPUPROF_NPU_TIMES_GOOD_)
        why = NPUPROF_NPU_TIMES_GOOD_;
    if (why != NPUPROF_NPU_TIMES_GOOD_) return npuprof_npu_why_lost_(pass, lane, of, why);
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_END_)) {
        end = npuprof_saturating_add_(start, duration);
        const uint64_t latest = npuprof_saturating_add_(pass->units.now, pass->units.allowance);
        if (q->is.stamp_clock == NPUPROF_NPU_STAMP_HOST && end > latest) return NPUPROF_RECORDS_STAMPS;
    } else if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_START_)) {
        if (duration > end) return NPUPROF_RECORDS_STAMPS;
        start = end - duration;
    }
    why = npuprof_npu_place_(npu, q, pass, lane, of, start, end, t);
    if (why == NPUPROF_NPU_TIMES_GOOD_) npuprof_npu_note_stamp_(q, lane, t, end);
    return why;
}

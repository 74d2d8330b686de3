#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../../numbers/wide.h"
#include "../types.h"
#include "../mmio.h"
#include "../clock.h"
#include "draw.h"
#include "format.h"
#include "stamp.h"

/* When a record was: its raw stamps become times. First a stamp is extended, in its own unit, to 64 bits;
   then it becomes ticks of the device's counter, or of the host. Under the queue lock. May not know how a
   span is drawn.

   The law of a narrow stamp. What is known of the host time of a stamp is an interval [S, F]:
     F   The record was there when the clock was read: the stamp is not younger.
     S   Its work is not older than its submission, than the record before it in a lane whose stamps ascend,
         than max_age_ms before the look that did not see it, and than the epoch.
   The counter made at most its maximum rate in F - S ticks, so its value is in [low, high]. The values that
   end in the raw bits are a period apart. One of them in [low, high]: that is the stamp. Several: nobody can
   tell which period, and the record is lost by that cause. None: the facts contradict each other, and it is
   lost by that one. */

/* The times of a record. */
typedef struct npuprof_npu_times_ {
    uint64_t start, end;                 /* ticks of `epoch`, or of the host */
    uint32_t epoch;
    unsigned flags;                      /* NPUPROF_STAMP_DEVICE or _HOST */
    uint64_t doubt_ns;                   /* by how much a duration that told it may be off */
    bool unfinished;                     /* the end did not come */
} npuprof_npu_times_;

/* A record in hand, on its way from its queue to the trace. */
typedef struct npuprof_npu_entry_ {
    npuprof_npu_queue_ *q;
    const npuprof_npu_record_ *r;
    const npuprof_npu_pass_ *pass;       /* in which it came */
    bool can_wait;                       /* it may be given back until it can be told whose it is */
    bool is_late;                        /* it waited: it belongs to a submission before ticket `before` */
    uint32_t before;
    /* By npuprof_npu_take_record_(): */
    int kind;                            /* NPUPROF_NPU_KIND_* */
    npuprof_npu_lane_state_ *lane;       /* NULL: the lanes of the queue remember nothing */
    unsigned pe;
    npuprof_npu_submission_ *of;         /* whose it is */
    npuprof_npu_times_ t;
} npuprof_npu_entry_;

/* What a stamp may show. */
typedef struct npuprof_npu_bounds_ { uint64_t low, high; } npuprof_npu_bounds_;

/* ---- Extending a stamp */

/* Valid bits of the stamps at that place. */
static unsigned npuprof_npu_stamp_bits_(const npuprof_npu_queue_ *q, unsigned at)
{
    const unsigned bits = npuprof_npu_bits_at_(q, at);
    return bits > q->stamp_bits ? q->stamp_bits : bits;
}

/* Where the queue's widest stamps are. */
static unsigned npuprof_npu_main_stamp_(const npuprof_npu_queue_ *q)
{
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_END_)) return NPUPROF_NPU_AT_END_;
    return npuprof_npu_has_(q, NPUPROF_NPU_AT_START_) ? NPUPROF_NPU_AT_START_ : NPUPROF_NPU_AT_STAMP_;
}

/* What the stamps of a record may show; lane: whose last stamp counts, or NULL. */
static npuprof_npu_bounds_ npuprof_npu_bounds_of_(const npuprof_npu *npu, const npuprof_npu_entry_ *e,
                                                  const npuprof_npu_lane_state_ *lane)
{
    const npuprof_npu_units_ *const u = &e->pass->units;
    npuprof_npu_bounds_ b = { 0, UINT64_MAX };
    const uint64_t since = npuprof_max_(e->of->submitted, u->aged);
    if (!u->known) return b;
    b.low = u->oldest;
    b.high = npuprof_saturating_add_(u->now, u->allowance);
    if (since && u->per_second) {
        const uint64_t host = npuprof_saturating_sub_(e->pass->now.read_after, since);
        const uint64_t ticks = npuprof_mul_div_(host, u->per_second, npu->second_, true);
        const uint64_t ago = npuprof_saturating_add_(ticks, u->allowance + 2);
        b.low = npuprof_max_(b.low, npuprof_saturating_sub_(u->now, ago));
    }
    if (!lane || !lane->has_last) return b;
    const uint64_t mask = npuprof_npu_mask_(npuprof_npu_stamp_bits_(e->q, npuprof_npu_main_stamp_(e->q)));
    /* Work of two units may be written in another order than it was stamped. */
    const uint64_t last = npuprof_saturating_sub_(lane->last, npuprof_min_(mask / 8, 1 << 20));
    b.low = npuprof_max_(b.low, last);
    /* Where records tell the high part, one comes in each period. */
    if (npuprof_npu_has_(e->q, NPUPROF_NPU_AT_CLOCK_HIGH_))
        b.high = npuprof_min_(b.high, npuprof_saturating_add_(last, mask));
    return b;
}

/* Narrows the bounds of a part's stamps by its job's times. False: they are not known. */
static bool npuprof_npu_narrow_by_job_(const npuprof_npu_entry_ *e, npuprof_npu_bounds_ *b)
{
    const npuprof_npu_submission_ *const of = e->of;
    if (!of->begun || of->run != e->pass->now.epoch) return false;
    b->low = npuprof_max_(b->low, npuprof_saturating_sub_(npuprof_npu_in_stamps_(&e->q->is, of->begun), 1));
    if (!of->over) return true;
    const uint64_t over = npuprof_npu_in_stamps_(&e->q->is, of->over);
    b->high = npuprof_min_(b->high, npuprof_saturating_add_(over, 1));
    return true;
}

/* The value of that many bits between two bounds. Returns NPUPROF_NPU_PLACED_, or why the record is lost;
   with several, *stamp is the first of them. */
static int npuprof_npu_extend_(uint64_t raw, unsigned bits, const npuprof_npu_bounds_ *b, uint64_t *stamp)
{
    const uint64_t mask = npuprof_npu_mask_(bits), up = (raw - b->low) & mask;
    *stamp = raw;
    if (bits >= 64) return NPUPROF_NPU_PLACED_;
    if (b->low > b->high || up > b->high - b->low) return NPUPROF_RECORDS_CONTRADICTION;
    *stamp = b->low + up;
    return b->high - b->low - up > mask ? (int)NPUPROF_RECORDS_PERIOD : (int)NPUPROF_NPU_PLACED_;
}

/* A raw stamp of that many bits, counting up. */
static uint64_t npuprof_npu_raw_stamp_(const npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t raw,
                                       unsigned bits)
{
    const bool down = npu->desc_.counter.counts_down && q->is.stamp_clock == NPUPROF_NPU_STAMP_COUNTER;
    return (down ? ~raw : raw) & npuprof_npu_mask_(bits);
}

/* Extends the stamp at that place of a record, in its own unit. Returns as npuprof_npu_extend_(). */
static int npuprof_npu_extend_at_(const npuprof_npu *npu, const npuprof_npu_entry_ *e,
                                  const npuprof_npu_bounds_ *b, unsigned at, uint64_t *stamp)
{
    const unsigned bits = npuprof_npu_stamp_bits_(e->q, at);
    const uint64_t raw = npuprof_npu_raw_stamp_(npu, e->q, e->r->v[at], bits);
    /* Why 48 bits: they outlast what a clock that was never told can be asked for. */
    if (!e->pass->units.known) {
        *stamp = b->low + ((raw - b->low) & npuprof_npu_mask_(bits));
        return bits < 48 && !npuprof_npu_is_pushed_(npu) ? (int)NPUPROF_RECORDS_NO_ANCHOR
                                                         : (int)NPUPROF_NPU_PLACED_;
    }
    const int why = npuprof_npu_extend_(raw, bits, b, stamp);
    const bool late = *stamp > b->high && e->q->is.stamp_clock == NPUPROF_NPU_STAMP_HOST;
    return late ? (int)NPUPROF_RECORDS_STAMPS : why;
}

/* Extends the stamps that a record has. Start and end of a span narrow each other: it began before it
   ended. Returns as npuprof_npu_extend_(). */
static int npuprof_npu_extend_times_(const npuprof_npu *npu, npuprof_npu_entry_ *e, npuprof_npu_bounds_ b)
{
    const npuprof_npu_queue_ *const q = e->q;
    npuprof_npu_times_ *const t = &e->t;
    const bool has_end = npuprof_npu_has_(q, NPUPROF_NPU_AT_END_), known = e->pass->units.known;
    int why = NPUPROF_NPU_PLACED_;
    if (e->kind != NPUPROF_NPU_KIND_SPAN) {
        why = npuprof_npu_extend_at_(npu, e, &b, NPUPROF_NPU_AT_STAMP_, &t->end);
        t->start = t->end;
        return why;
    }
    if (has_end) why = npuprof_npu_extend_at_(npu, e, &b, NPUPROF_NPU_AT_END_, &t->end);
    const bool open = why == NPUPROF_RECORDS_PERIOD;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_START_) || (why != NPUPROF_NPU_PLACED_ && !open)) return why;
    if (has_end && !open && known) b.high = npuprof_saturating_add_(t->end, 1);
    why = npuprof_npu_extend_at_(npu, e, &b, NPUPROF_NPU_AT_START_, &t->start);
    if (open && why == NPUPROF_NPU_PLACED_) {
        b.low = npuprof_saturating_sub_(t->start, 1);
        why = npuprof_npu_extend_at_(npu, e, &b, NPUPROF_NPU_AT_END_, &t->end);
    } else if (!known && has_end && t->end < t->start) {
        const unsigned bits = npuprof_npu_stamp_bits_(q, NPUPROF_NPU_AT_END_);
        t->end = t->start + ((t->end - t->start) & npuprof_npu_mask_(bits));
    }
    return why;
}

/* ---- Durations */

/* ns as host ticks, or in the unit of the stamps of a counter. */
static uint64_t npuprof_npu_ns_in_units_(const npuprof_npu *npu, const npuprof_npu_entry_ *e, uint64_t ns)
{
    const npuprof_npu_ring *const r = &e->q->is;
    if (r->stamp_clock == NPUPROF_NPU_STAMP_HOST) return ns / r->stamp_unit_ns;
    if (r->stamp_clock == NPUPROF_NPU_STAMP_NONE)
        return npuprof_mul_div_(ns, npu->second_, 1000000000, false);
    const uint64_t ticks = npuprof_mul_div_(ns, e->pass->now.rate, 1000000000, false);
    return npuprof_npu_is_scaled_(r) ? npuprof_mul_div_(ticks, r->scale_den, r->scale_num, false) : ticks;
}

/* The duration of a record in units of its stamps. *doubt_ns: by how much it may be off; 0: as little as a
   stamp. False: nobody knows the rate. */
static bool npuprof_npu_duration_(const npuprof_npu *npu, const npuprof_npu_entry_ *e, uint64_t *units,
                                  uint64_t *doubt_ns)
{
    const npuprof_npu_ring *const r = &e->q->is;
    const npuprof_npu_now_ *const now = &e->pass->now;
    const bool by_rate = r->stamp_clock == NPUPROF_NPU_STAMP_COUNTER;
    const uint64_t unit = r->duration_num / r->duration_den + 1;
    *units = npuprof_mul_div_(e->r->v[NPUPROF_NPU_AT_DURATION_], r->duration_num, r->duration_den, false);
    *doubt_ns = unit;
    if (!r->duration_in_ns) {
        const uint64_t num = by_rate ? r->scale_num : r->stamp_unit_ns, den = by_rate ? r->scale_den : 1;
        *doubt_ns = unit > 2 ? npuprof_mul_div_(unit, num, den, true) : 0;
        if (by_rate) *doubt_ns = npuprof_mul_div_(*doubt_ns, 1000000000, npuprof_max_(now->rate, 1), true);
        return true;
    }
    if (by_rate) *doubt_ns += npuprof_mul_div_(*units, now->rate_ppm, 1000000, true);
    *units = npuprof_npu_ns_in_units_(npu, e, *units);
    return !by_rate || now->rate;
}

/* Finds the end, or the start, that a duration tells. Returns NPUPROF_NPU_PLACED_, or why the record is lost:
   it would be older than its submission, or younger than now. */
static int npuprof_npu_add_duration_(const npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    npuprof_npu_times_ *const t = &e->t;
    const npuprof_npu_bounds_ b = npuprof_npu_bounds_of_(npu, e, NULL);
    uint64_t length;
    if (!npuprof_npu_duration_(npu, e, &length, &t->doubt_ns)) return NPUPROF_RECORDS_NO_ANCHOR;
    const uint64_t slack = npuprof_npu_ns_in_units_(npu, e, t->doubt_ns) + 1;
    if (!npuprof_npu_has_(e->q, NPUPROF_NPU_AT_END_)) {
        t->end = npuprof_saturating_add_(t->start, length);
        if (t->end > npuprof_saturating_add_(b.high, slack)) return NPUPROF_RECORDS_CONTRADICTION;
        t->end = npuprof_max_(npuprof_min_(t->end, b.high), t->start);
        return NPUPROF_NPU_PLACED_;
    }
    if (length > npuprof_saturating_add_(t->end, slack)) return NPUPROF_RECORDS_STAMPS;
    t->start = npuprof_saturating_sub_(t->end, length);
    if (npuprof_saturating_add_(t->start, slack) < b.low) return NPUPROF_RECORDS_CONTRADICTION;
    t->start = npuprof_min_(npuprof_max_(t->start, b.low), t->end);
    return NPUPROF_NPU_PLACED_;
}

/* A record without a stamp: it ends now. A span began when its duration says, or when it was submitted. */
static int npuprof_npu_host_times_(const npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    const uint64_t now = e->pass->now.host;
    const uint64_t since = e->of->known && e->of->link.ticks < now ? e->of->link.ticks : 0;
    npuprof_npu_times_ *const t = &e->t;
    uint64_t length, doubt_ns;
    t->end = now;
    t->start = since ? since : now;
    t->flags = NPUPROF_STAMP_HOST;
    if (e->kind != NPUPROF_NPU_KIND_SPAN || !npuprof_npu_has_(e->q, NPUPROF_NPU_AT_DURATION_))
        return NPUPROF_NPU_PLACED_;
    (void)npuprof_npu_duration_(npu, e, &length, &doubt_ns);
    const uint64_t slack = npuprof_npu_ns_in_units_(npu, e, doubt_ns) + 2;
    const uint64_t start = npuprof_saturating_sub_(now, length);
    if (start + slack < since) return NPUPROF_RECORDS_CONTRADICTION;
    t->start = npuprof_max_(start, since);
    /* It ended when it was seen, or as much before that as it may have begun earlier. */
    if (since) t->epoch = npuprof_host_error_code_(t->start - since + slack);
    return NPUPROF_NPU_PLACED_;
}

/* ---- Placing extended stamps */

/* A stamp as ticks of the host, or of the device's counter. False: it lies before the device was opened, or
   would be negative. */
static bool npuprof_npu_ticks_of_(const npuprof_npu *npu, const npuprof_npu_entry_ *e, uint64_t *stamp)
{
    const npuprof_npu_ring *const r = &e->q->is;
    const npuprof_npu_now_ *const now = &e->pass->now;
    const bool by_host = r->stamp_clock == NPUPROF_NPU_STAMP_HOST;
    const int64_t by = by_host ? (int64_t)(*stamp * r->stamp_unit_ns) - now->ns : r->stamp_offset;
    uint64_t size = by < 0 ? 0 - (uint64_t)by : (uint64_t)by, ticks = now->host;
    if (by_host) {
        size = npuprof_mul_div_(size, (uint64_t)1 << 32, npuprof_max_(now->ns_per_4g, 1), false);
        *stamp = by > 0 ? ticks + size : npuprof_saturating_sub_(ticks, size);
        return *stamp + npu->second_ / 1000000 >= npu->open_host_;
    }
    ticks = *stamp;
    if (npuprof_npu_is_scaled_(r)) ticks = npuprof_mul_div_(ticks, r->scale_num, r->scale_den, false);
    *stamp = by < 0 ? ticks - size : npuprof_saturating_add_(ticks, size);
    return by >= 0 || ticks >= size;
}

/* Whether a record is certainly of this epoch: it began after a submission or a record that is. */
static bool npuprof_npu_is_of_epoch_(const npuprof_npu_entry_ *e)
{
    const uint32_t epoch = e->pass->now.epoch;
    if (!epoch || (e->of->submitted && e->of->epoch == epoch)) return true;
    return e->lane && e->lane->has_last && e->lane->epoch == epoch;
}

/* Whether the counter may have shown those ticks, of which a stamp has the low bits, in the epoch before:
   between its last read, or its first one where the record may be older, and the most that it may have come
   to. */
static bool npuprof_npu_fits_old_epoch_(const npuprof_npu_entry_ *e, uint64_t ticks, bool is_since)
{
    const npuprof_npu_now_ *const now = &e->pass->now;
    const npuprof_npu_ring *const r = &e->q->is;
    const uint64_t first = now->epoch == 1 ? npuprof_saturating_sub_(now->open_ticks, now->allowance) : 0;
    const uint64_t from = npuprof_npu_in_stamps_(r, is_since ? now->old_epoch_ticks : first);
    const uint64_t low = npuprof_saturating_sub_(from, 1);
    const uint64_t most =
        npuprof_npu_in_stamps_(r, npuprof_saturating_add_(now->old_epoch_most, now->allowance));
    const uint64_t mask = npuprof_npu_mask_(npuprof_npu_stamp_bits_(e->q, npuprof_npu_main_stamp_(e->q)));
    return ((npuprof_npu_in_stamps_(r, ticks) - low) & mask) <= npuprof_saturating_add_(most - low, 2);
}

/* Finds the epoch of a record whose times are ticks of the counter: the one whose ticks they may be. Returns
   NPUPROF_NPU_PLACED_, or why it is lost. */
static int npuprof_npu_find_epoch_(const npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    const npuprof_npu_now_ *const now = &e->pass->now;
    const uint64_t almost = npuprof_saturating_add_(e->t.start, now->allowance);
    const bool later = now->known && e->t.end > npuprof_saturating_add_(now->ticks, now->allowance);
    const bool is_since = npuprof_max_(e->of->submitted, e->pass->units.aged) >= now->old_epoch_host;
    const bool old = npuprof_npu_fits_old_epoch_(e, e->t.end, is_since);
    if (npuprof_npu_is_of_epoch_(e) || (is_since && !old)) {
        if (later) return NPUPROF_RECORDS_STAMPS;
    } else {
        /* Why: of a counter that may stand, of two resets, or without the time now, nobody knows where the
           epoch before ended, or where this one is. */
        if (npuprof_npu_may_stand_(npu) || now->epoch > 1 || !now->known || (!later && old))
            return NPUPROF_RECORDS_EPOCH;
        if (later && !old) return NPUPROF_RECORDS_STAMPS;
        if (later) e->t.epoch--;
    }
    return e->t.epoch == 0 && almost < now->open_ticks ? (int)NPUPROF_RECORDS_STAMPS
                                                       : (int)NPUPROF_NPU_PLACED_;
}

/* Makes times of the extended stamps. Returns NPUPROF_NPU_PLACED_, or why the record is lost. */
static int npuprof_npu_place_(const npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    const npuprof_npu_ring *const r = &e->q->is;
    npuprof_npu_times_ *const t = &e->t;
    t->epoch = e->pass->now.epoch;
    t->flags = NPUPROF_STAMP_DEVICE;
    if (r->stamp_clock == NPUPROF_NPU_STAMP_HOST) {
        const uint64_t ns_per_4g = npuprof_max_(e->pass->now.ns_per_4g, 1);
        t->flags = NPUPROF_STAMP_HOST;
        t->epoch =
            npuprof_host_error_code_(npuprof_mul_div_(r->stamp_unit_ns, (uint64_t)1 << 32, ns_per_4g, true));
    }
    if (!npuprof_npu_ticks_of_(npu, e, &t->start) || !npuprof_npu_ticks_of_(npu, e, &t->end))
        return NPUPROF_RECORDS_STAMPS;
    if (t->start > t->end) {             /* by what one unit of a stamp is: no time at all */
        if (t->start - t->end > (npuprof_npu_is_scaled_(r) ? npuprof_npu_unit_(r) : 0))
            return NPUPROF_RECORDS_STAMPS;
        t->start = t->end;
    }
    if (t->flags & NPUPROF_STAMP_HOST || (!e->pass->now.known && !t->epoch)) return NPUPROF_NPU_PLACED_;
    return npuprof_npu_find_epoch_(npu, e);
}

/* The lane's latest device time, and its last stamp, from which the next is extended. */
static void npuprof_npu_note_stamp_(const npuprof_npu_entry_ *e, uint64_t stamp)
{
    npuprof_npu_lane_state_ *const lane = e->lane;
    if (!lane || (!(e->t.flags & NPUPROF_STAMP_HOST) && e->t.epoch != lane->epoch)) return;
    if (e->t.end > lane->last_ticks) lane->last_ticks = e->t.end;
    if (!lane->has_last && !e->q->is.ascending) return;
    if (!lane->has_last || stamp > lane->last) lane->last = stamp;
    lane->has_last = true;
}

/* Finds the times of a record, e->t: by its stamps, with what its lane and its job say. Returns
   NPUPROF_NPU_PLACED_, or why it is lost. */
static int npuprof_npu_find_times_(const npuprof_npu *npu, npuprof_npu_entry_ *e)
{
    const npuprof_npu_queue_ *const q = e->q;
    const bool is_span = e->kind == NPUPROF_NPU_KIND_SPAN;
    memset(&e->t, 0, sizeof e->t);
    if (q->is.stamp_clock == NPUPROF_NPU_STAMP_NONE) return npuprof_npu_host_times_(npu, e);
    npuprof_npu_bounds_ b = npuprof_npu_bounds_of_(npu, e, e->lane);
    int why = npuprof_npu_extend_times_(npu, e, b);
    if (why == NPUPROF_RECORDS_PERIOD && npuprof_npu_narrow_by_job_(e, &b) &&
        npuprof_npu_extend_times_(npu, e, b) == NPUPROF_NPU_PLACED_) why = NPUPROF_NPU_PLACED_;
    if (is_span && why == NPUPROF_NPU_PLACED_) {
        if (npuprof_npu_has_(q, NPUPROF_NPU_AT_DURATION_)) why = npuprof_npu_add_duration_(npu, e);
        else if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_END_)) e->t.end = e->t.start;
        else if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_START_)) e->t.start = e->t.end;
    }
    /* What contradicts the facts of this run of the counter may be of the one before. */
    if (is_span && why == NPUPROF_RECORDS_CONTRADICTION && !npuprof_npu_is_of_epoch_(e))
        why = NPUPROF_RECORDS_EPOCH;
    const uint64_t last = e->t.end;
    if (why == NPUPROF_NPU_PLACED_) why = npuprof_npu_place_(npu, e);
    if (why == NPUPROF_NPU_PLACED_) npuprof_npu_note_stamp_(e, last);
    return why;
}

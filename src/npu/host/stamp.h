#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../types.h"
#include "../mmio.h"
#include "../clock.h"
#include "format.h"

/* The clock of a queue: its raw stamps become times. First a stamp is extended, in its own unit, to 64 bits;
   then it becomes ticks of the device's counter, or of the host. May not know what an entry is.

   The law of a narrow stamp. What is known of the host time of a stamp is an interval [S, F]:
     F   The record was there when the clock was read: the stamp is not younger.
     S   Its work is not older than its submission, than the record before it in a lane whose stamps ascend,
         than max_age_ms before the look that did not see it, and than the epoch.
   The counter made at most its maximum rate in F - S ticks, so its value is in [low, high]. The values that
   end in the raw bits are a period apart. One of them in [low, high]: that is the stamp. Several: nobody can
   tell which period, and the record is lost by that cause. None: the facts contradict each other, and it is
   lost by that one. */

/* The clocks when a pass over records began. */
typedef struct npuprof_npu_now_ {
    bool known;                          /* the device's time is */
    uint64_t ticks, old_epoch_ticks;     /* of the device; its last ticks before this epoch */
    uint64_t open_ticks;                 /* at open, or before it */
    uint64_t old_epoch_host;             /* host ticks when those were read */
    uint64_t allowance;                  /* stamps may lie this many ticks after it */
    uint32_t epoch;
    uint64_t per_second;                 /* the most ticks that the counter makes in a second; 0: not known */
    uint64_t rate, rate_ppm;             /* ticks in a second, and by how much it may be off; 0: not known */
    uint64_t read_after;                 /* host ticks when `ticks` was over */
    uint64_t host, ns_per_4g;
    int64_t ns;                          /* `host` on the clock of npuprof_now_ns() */
} npuprof_npu_now_;

/* The same in the unit of a queue's stamps. */
typedef struct npuprof_npu_units_ {
    uint64_t now, allowance;
    uint64_t oldest;                     /* the first one of the epoch, or 0 */
    uint64_t per_second;
    uint64_t aged;                       /* host ticks that no record is older than; 0: not known */
    bool known;
} npuprof_npu_units_;

/* A pass over the records of one queue. */
typedef struct npuprof_npu_pass_ {
    npuprof_npu_now_ now;
    npuprof_npu_units_ units;
    bool last;                           /* no other pass follows: leave nothing for it */
} npuprof_npu_pass_;

/* A record in hand. */
typedef struct npuprof_npu_entry_ {
    npuprof_npu_queue_ *q;
    const npuprof_npu_record_ *r;
    const npuprof_npu_pass_ *pass;       /* in which it came */
    npuprof_npu_lane_state_ *lane;       /* NULL: the lanes of the queue remember nothing */
    unsigned pe;
} npuprof_npu_entry_;

/* What a stamp may show. */
typedef struct npuprof_npu_bounds_ { uint64_t low, high; } npuprof_npu_bounds_;

/* The times of a record. */
typedef struct npuprof_npu_times_ {
    uint64_t start, end;                 /* ticks of `epoch`, or of the host */
    uint32_t epoch;
    unsigned flags;                      /* NPUPROF_STAMP_DEVICE or _HOST */
    uint64_t doubt_ns;                   /* more of the end that a duration told */
    bool unfinished;                     /* the end did not come */
} npuprof_npu_times_;

enum { NPUPROF_NPU_TIMES_GOOD_ = -1 };   /* else NPUPROF_RECORDS_*, why it is lost */

static bool npuprof_npu_is_scaled_(const npuprof_npu_ring *r) { return r->scale_num != 1 ||
                                                               r->scale_den != 1; }

/* How many ticks of the counter one unit of a scaled stamp is, rounded up. */
static uint64_t npuprof_npu_unit_(const npuprof_npu_ring *r) { return r->scale_num / r->scale_den + 1; }

/* Valid bits of the stamps at that place. */
static unsigned npuprof_npu_stamp_bits_(const npuprof_npu *npu, const npuprof_npu_queue_ *q, unsigned at)
{
    const unsigned bits = npuprof_npu_bits_at_(q, at), counter = npu->desc_.counter.bits;
    const bool same = q->is.stamp_clock == NPUPROF_NPU_STAMP_COUNTER && !npuprof_npu_is_scaled_(&q->is) &&
                      !q->is.stamp_offset;
    return same && bits > counter ? counter : bits;
}

/* Where the queue's widest stamps are. */
static unsigned npuprof_npu_main_stamp_(const npuprof_npu_queue_ *q)
{
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_END_)) return NPUPROF_NPU_AT_END_;
    return npuprof_npu_has_(q, NPUPROF_NPU_AT_START_) ? NPUPROF_NPU_AT_START_ : NPUPROF_NPU_AT_STAMP_;
}

/* Sets the ticks of the counter in a second, as they are known best. Under the lock. */
static void npuprof_npu_know_rate_(const npuprof_npu *npu, npuprof_npu_now_ *now)
{
    const npuprof_anchor_ *const a = &npu->rate_from_, *const b = &npu->rate_to_;
    now->rate = npu->desc_.counter.hz;
    now->rate_ppm = 200;                 /* of a crystal that is as it is described */
    if (!npu->has_rate_ || (npu->coarse_rate_ && now->rate)) return;
    const uint64_t host = npuprof_anchor_middle_(b) - npuprof_anchor_middle_(a);
    const uint64_t rate = npuprof_npu_mul_div_(npu->second_, b->device_ticks - a->device_ticks, host, false);
    const uint64_t ppm = 2 * (uint64_t)npu->desc_.max_rate_ppm + 2 +
        npuprof_npu_mul_div_(npuprof_anchor_error_(a) + npuprof_anchor_error_(b), 1000000, host, true);
    const uint64_t apart = rate > now->rate ? rate - now->rate : now->rate - rate;
    if (ppm > now->rate_ppm && now->rate && apart <= npuprof_npu_mul_div_(rate, ppm, 1000000, true)) return;
    now->rate = rate;
    now->rate_ppm = ppm;
}

/* Reads the host's clock, and the device's if the queue's stamps need it. Not OK: nothing can be placed. */
static npuprof_result npuprof_npu_read_now_(npuprof_npu *npu, bool by_counter, npuprof_npu_now_ *now)
{
    npuprof_anchor_ sample;
    npuprof_result result = NPUPROF_OK;
    uint64_t min, max = 0;
    now->host = npuprof_npu_ticks_();
    now->ns_per_4g = npuprof_ns_per_4g_ticks_();
    now->ns = npuprof_ticks_to_ns_(now->host);
    now->known = false;
    now->per_second = 0;
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    if (by_counter) {
        result = npuprof_npu_read_locked_(npu, &sample);
        const uint64_t width = npuprof_anchor_width_(&sample);
        now->known = npuprof_npu_time_goes_on_(result) || result == NPUPROF_ERR_NPU_STOPPED;
        if (!npuprof_npu_predict_(npu, 0, width + npu->second_ / 1000000 + 1, &min, &max)) max = 0;
    }
    if (npuprof_npu_predict_(npu, 0, npu->second_, &min, &now->per_second)) now->per_second++;
    else now->per_second = 0;
    npuprof_npu_know_rate_(npu, now);
    now->ticks = now->known ? sample.device_ticks : npu->last_.device_ticks;
    now->read_after = now->known ? sample.host_after : now->host;
    now->old_epoch_ticks = npu->old_epoch_ticks_;
    now->open_ticks = npu->open_ticks_;
    now->old_epoch_host = npu->old_epoch_host_;
    now->epoch = npu->epoch_;
    now->allowance = max;
    /* Why more: nobody read this time, it is the middle of what is possible. */
    if (now->known && npuprof_npu_is_pushed_(npu) &&
        npuprof_npu_predict_(npu, npuprof_saturating_sub_(now->host, npu->last_.host_after),
                             npuprof_saturating_sub_(now->host, npu->last_.host_before), &min, &max))
        now->allowance = npuprof_saturating_add_(now->allowance, max - min);
    npuprof_npu_unlock_(npu);
    return result;
}

/* Ticks of the counter in the unit of a queue's stamps; 0 before the first of those. */
static uint64_t npuprof_npu_in_stamps_(const npuprof_npu_ring *r, uint64_t ticks)
{
    const int64_t offset = r->stamp_offset;
    const uint64_t size = offset < 0 ? 0 - (uint64_t)offset : (uint64_t)offset;
    ticks = offset < 0 ? npuprof_saturating_add_(ticks, size) : npuprof_saturating_sub_(ticks, size);
    return npuprof_npu_is_scaled_(r) ? npuprof_npu_mul_div_(ticks, r->scale_den, r->scale_num, false) : ticks;
}

/* Now in the unit of a queue's stamps, and what is known of their age. */
static npuprof_npu_units_ npuprof_npu_units_of_(const npuprof_npu *npu, npuprof_npu_queue_ *q,
                                                const npuprof_npu_now_ *now)
{
    npuprof_npu_units_ u = { 0, 0, 0, 0, 0, now->known };
    const npuprof_npu_ring *r = &q->is;
    if (r->stamp_clock == NPUPROF_NPU_STAMP_NONE) return u;
    if (r->max_age_ms && q->looked) {
        const uint64_t age = npuprof_npu_mul_div_(r->max_age_ms, npu->second_, 1000, true);
        u.aged = npuprof_max_(npuprof_saturating_sub_(q->looked, age), 1);
    }
    q->looked = now->host;
    if (r->stamp_clock == NPUPROF_NPU_STAMP_HOST) {
        u.now = (uint64_t)now->ns / r->stamp_unit_ns;
        u.allowance = 1000 / r->stamp_unit_ns + 1;
        u.per_second = 1000100000u / r->stamp_unit_ns + 1;
        u.known = true;
        return u;
    }
    u.now = npuprof_npu_in_stamps_(r, now->ticks);
    u.allowance = now->allowance;
    u.per_second = now->per_second;
    if (npuprof_npu_is_scaled_(r)) {
        u.allowance = npuprof_npu_mul_div_(u.allowance, r->scale_den, r->scale_num, true) + 1;
        u.per_second = npuprof_npu_mul_div_(u.per_second, r->scale_den, r->scale_num, true);
    }
    if (!now->epoch)
        u.oldest = npuprof_npu_in_stamps_(r, npuprof_saturating_sub_(now->open_ticks, now->allowance));
    return u;
}

/* What the stamps of a record may show whose work was submitted at that host time; 0: not known. */
static npuprof_npu_bounds_ npuprof_npu_bounds_of_(const npuprof_npu *npu, const npuprof_npu_units_ *u,
                                                  const npuprof_npu_now_ *now,
                                                  const npuprof_npu_queue_ *q,
                                                  const npuprof_npu_lane_state_ *lane, uint64_t submitted)
{
    /* Work of two units may be written in another order than it was stamped. */
    const unsigned bits = npuprof_npu_stamp_bits_(npu, q, npuprof_npu_main_stamp_(q));
    const uint64_t nearly = npuprof_min_(npuprof_npu_mask_(bits) / 8, 1 << 20);
    npuprof_npu_bounds_ b = { 0, UINT64_MAX };
    const uint64_t since = npuprof_max_(submitted, u->aged);
    if (!u->known) return b;
    b.low = u->oldest;
    b.high = npuprof_saturating_add_(u->now, u->allowance);
    if (since && u->per_second) {
        const uint64_t host = npuprof_saturating_sub_(now->read_after, since);
        const uint64_t ticks = npuprof_npu_mul_div_(host, u->per_second, npu->second_, true);
        b.low = npuprof_max_(b.low, npuprof_saturating_sub_(
                                        u->now, npuprof_saturating_add_(ticks, u->allowance + 2)));
    }
    if (!lane || !lane->has_last) return b;
    b.low = npuprof_max_(b.low, npuprof_saturating_sub_(lane->last, nearly));
    /* Where records tell the high part, one comes in each period. */
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_CLOCK_HIGH_))
        b.high = npuprof_min_(b.high, npuprof_saturating_add_(npuprof_saturating_sub_(lane->last, nearly),
                                                              npuprof_npu_mask_(bits)));
    return b;
}

/* The value of that many bits between two bounds. Returns NPUPROF_NPU_TIMES_GOOD_, or why the record is
   lost; with several, *stamp is the first of them. */
static int npuprof_npu_extend_(uint64_t raw, unsigned bits, const npuprof_npu_bounds_ *b, uint64_t *stamp)
{
    const uint64_t mask = npuprof_npu_mask_(bits), up = (raw - b->low) & mask;
    *stamp = raw;
    if (bits >= 64) return NPUPROF_NPU_TIMES_GOOD_;
    if (b->low > b->high || up > b->high - b->low) return NPUPROF_RECORDS_CONTRADICTION;
    *stamp = b->low + up;
    return b->high - b->low - up > mask ? (int)NPUPROF_RECORDS_PERIOD : (int)NPUPROF_NPU_TIMES_GOOD_;
}

/* Extends the stamp at that place of a record, in its own unit. Returns NPUPROF_NPU_TIMES_GOOD_, or why the
   record is lost. */
static int npuprof_npu_extend_stamp_at_(const npuprof_npu *npu, const npuprof_npu_entry_ *e,
                                        const npuprof_npu_bounds_ *b, unsigned at, uint64_t *stamp)
{
    const npuprof_npu_queue_ *const q = e->q;
    const unsigned bits = npuprof_npu_stamp_bits_(npu, q, at);
    const bool down = npu->desc_.counter.counts_down && q->is.stamp_clock == NPUPROF_NPU_STAMP_COUNTER;
    const uint64_t raw = (down ? ~e->r->v[at] : e->r->v[at]) & npuprof_npu_mask_(bits);
    /* Why 48 bits: they outlast what a clock that was never told can be asked for. */
    if (!e->pass->units.known) {
        *stamp = b->low + ((raw - b->low) & npuprof_npu_mask_(bits));
        return bits < 48 && !npuprof_npu_is_pushed_(npu) ? (int)NPUPROF_RECORDS_NO_ANCHOR
                                                         : (int)NPUPROF_NPU_TIMES_GOOD_;
    }
    const int why = npuprof_npu_extend_(raw, bits, b, stamp);
    const bool late = *stamp > b->high && q->is.stamp_clock == NPUPROF_NPU_STAMP_HOST;
    return late ? (int)NPUPROF_RECORDS_STAMPS : why;
}

/* A stamp as host ticks. False: it lies before the device was opened. */
static bool npuprof_npu_host_stamp_(const npuprof_npu *npu, const npuprof_npu_queue_ *q,
                                    const npuprof_npu_now_ *now, uint64_t stamp, uint64_t *ticks)
{
    const int64_t ns = (int64_t)(stamp * q->is.stamp_unit_ns);
    const int64_t ago = now->ns - ns;
    const uint64_t size = ago < 0 ? 0 - (uint64_t)ago : (uint64_t)ago;
    const uint64_t distance =
        npuprof_npu_mul_div_(size, (uint64_t)1 << 32, npuprof_max_(now->ns_per_4g, 1), false);
    *ticks = ago < 0 ? now->host + distance : npuprof_saturating_sub_(now->host, distance);
    return *ticks + npu->second_ / 1000000 >= npu->open_host_;
}

/* A stamp as ticks of the device's counter. False: it would be negative. */
static bool npuprof_npu_counter_stamp_(const npuprof_npu_queue_ *q, uint64_t stamp, uint64_t *ticks)
{
    const int64_t offset = q->is.stamp_offset;
    const uint64_t size = offset < 0 ? 0 - (uint64_t)offset : (uint64_t)offset;
    if (npuprof_npu_is_scaled_(&q->is))
        stamp = npuprof_npu_mul_div_(stamp, q->is.scale_num, q->is.scale_den, false);
    *ticks = offset < 0 ? stamp - size : npuprof_saturating_add_(stamp, size);
    return offset >= 0 || stamp >= size;
}

/* Whether a record that began at those ticks is certainly of this epoch: it began after a submission or a
   record that is; or after the epoch before was read last, whose ticks are higher from then on. */
static bool npuprof_npu_is_of_epoch_(const npuprof_npu_entry_ *e, const npuprof_npu_submission_ *of,
                                     uint64_t start)
{
    const npuprof_npu_pass_ *const pass = e->pass;
    const uint64_t since = npuprof_max_(of ? of->submitted : 0, pass->units.aged);
    if (!pass->now.epoch) return true;
    if (of && of->submitted && of->epoch == pass->now.epoch) return true;
    if (since >= pass->now.old_epoch_host && start < pass->now.old_epoch_ticks) return true;
    return e->lane && e->lane->has_last && e->lane->epoch == pass->now.epoch;
}

/* Finds the epoch of two times, in ticks of the counter: the one whose ticks they may be. Returns
   NPUPROF_NPU_TIMES_GOOD_, or why the record is lost. */
static int npuprof_npu_find_epoch_(const npuprof_npu *npu, const npuprof_npu_pass_ *pass, bool certain,
                                   npuprof_npu_times_ *t)
{
    const npuprof_npu_now_ *const now = &pass->now;
    const bool later = t->end > npuprof_saturating_add_(now->ticks, now->allowance);
    const bool unopened = now->epoch == 1 &&
                          npuprof_saturating_add_(t->start, now->allowance) < now->open_ticks;
    const bool old = now->epoch && !unopened &&
                     t->end <= npuprof_saturating_add_(now->old_epoch_ticks, now->allowance);
    if (certain) return later ? (int)NPUPROF_RECORDS_STAMPS : (int)NPUPROF_NPU_TIMES_GOOD_;
    /* Why: of a counter that may stand, and of two resets, nobody knows where the epoch before ended. */
    if (npuprof_npu_may_stand_(npu) || now->epoch > 1 || (!later && old)) return NPUPROF_RECORDS_EPOCH;
    if (later && !old) return NPUPROF_RECORDS_STAMPS;
    if (later) t->epoch--;
    return NPUPROF_NPU_TIMES_GOOD_;
}

/* Makes times of two extended stamps, which `t` holds. Returns NPUPROF_NPU_TIMES_GOOD_, or why the record is
   lost. */
static int npuprof_npu_place_(const npuprof_npu *npu, const npuprof_npu_entry_ *e,
                              const npuprof_npu_submission_ *of, npuprof_npu_times_ *t)
{
    const npuprof_npu_queue_ *const q = e->q;
    const npuprof_npu_now_ *const now = &e->pass->now;
    const uint64_t start = t->start, end = t->end;
    t->epoch = now->epoch;
    t->flags = NPUPROF_STAMP_DEVICE;
    if (q->is.stamp_clock == NPUPROF_NPU_STAMP_HOST) {
        t->flags = NPUPROF_STAMP_HOST;
        t->epoch = npuprof_host_error_code_(
            npuprof_npu_mul_div_(q->is.stamp_unit_ns, (uint64_t)1 << 32, npuprof_max_(now->ns_per_4g, 1),
                                 true));
        const bool good = npuprof_npu_host_stamp_(npu, q, now, start, &t->start);
        if (!npuprof_npu_host_stamp_(npu, q, now, end, &t->end) || !good) return NPUPROF_RECORDS_STAMPS;
    } else {
        const bool good = npuprof_npu_counter_stamp_(q, start, &t->start);
        if (!npuprof_npu_counter_stamp_(q, end, &t->end) || !good) return NPUPROF_RECORDS_STAMPS;
    }
    if (t->start > t->end) {             /* by what one unit of a stamp is: no time at all */
        const uint64_t quantum = npuprof_npu_is_scaled_(&q->is) ? npuprof_npu_unit_(&q->is) : 0;
        if (t->start - t->end > quantum) return NPUPROF_RECORDS_STAMPS;
        t->start = t->end;
    }
    if (t->flags & NPUPROF_STAMP_HOST || !now->known) return NPUPROF_NPU_TIMES_GOOD_;
    const bool certain = npuprof_npu_is_of_epoch_(e, of, t->start);
    const int why = npuprof_npu_find_epoch_(npu, e->pass, certain, t);
    if (why != NPUPROF_NPU_TIMES_GOOD_) return why;
    const bool before = t->epoch == 0 && npuprof_saturating_add_(t->start, now->allowance) < now->open_ticks;
    return before ? (int)NPUPROF_RECORDS_STAMPS : (int)NPUPROF_NPU_TIMES_GOOD_;
}

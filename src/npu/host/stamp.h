#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../types.h"
#include "../mmio.h"
#include "../clock.h"
#include "format.h"

/* The clock of a queue: its raw stamps become times. First a stamp is extended, in its own unit, to 64 bits;
   then it becomes ticks of the device's counter, or of the host. May not know what an entry is.

   How a narrow stamp is extended: what it stamps has happened, so it is the one value in the last period
   before now; or a little after now, by as much as the clock may be off. On a lane whose stamps ascend, it is
   the first value behind the lane's last stamp. */

/* The clocks when a pass over records began. */
typedef struct npuprof_npu_now_ {
    bool known;                          /* the device's time is */
    uint64_t ticks, old_epoch_ticks;     /* of the device; its last ticks before this epoch */
    uint64_t open_ticks;                 /* at open, or before it */
    uint64_t epoch_from;                 /* the first ones of this epoch */
    uint64_t allowance;                  /* stamps may lie this many ticks after it */
    uint32_t epoch;
    uint64_t host, ns_per_4g;
    int64_t ns;                          /* `host` on the clock of npuprof_now_ns() */
} npuprof_npu_now_;

/* The same in the unit of a queue's stamps. */
typedef struct npuprof_npu_units_ {
    uint64_t now, allowance;
    bool known;
    bool lap_is_unknown;                 /* too long since it was looked at: a narrow stamp may be of any
                                            period */
} npuprof_npu_units_;

/* The times of a record. */
typedef struct npuprof_npu_times_ {
    uint64_t start, end;                 /* ticks of `epoch`, or of the host */
    uint32_t epoch;
    unsigned flags;                      /* NPUPROF_STAMP_DEVICE or _HOST */
} npuprof_npu_times_;

enum { NPUPROF_NPU_TIMES_GOOD_ = -1 };   /* else NPUPROF_RECORDS_*, why it is lost */

static bool npuprof_npu_is_scaled_(const npuprof_npu_ring *r) { return r->scale_num != 1 ||
                                                               r->scale_den != 1; }

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
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    if (by_counter) {
        result = npuprof_npu_read_locked_(npu, &sample);
        const uint64_t width = npuprof_anchor_width_(&sample);
        now->known = npuprof_npu_time_goes_on_(result) || result == NPUPROF_ERR_NPU_STOPPED;
        if (!npuprof_npu_predict_(npu, 0, width + npu->second_ / 1000000 + 1, &min, &max)) max = 0;
    }
    now->ticks = now->known ? sample.device_ticks : npu->last_.device_ticks;
    now->old_epoch_ticks = npu->old_epoch_ticks_;
    now->open_ticks = npu->open_ticks_;
    now->epoch_from = npu->epoch_from_;
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

/* Now in the unit of a queue's stamps, and whether its narrow stamps are still certain. */
static npuprof_npu_units_ npuprof_npu_units_of_(const npuprof_npu *npu, npuprof_npu_queue_ *q,
                                                const npuprof_npu_now_ *now)
{
    npuprof_npu_units_ u = { 0, 0, now->known, false };
    const npuprof_npu_ring *r = &q->is;
    if (r->stamp_clock == NPUPROF_NPU_STAMP_NONE) return u;
    const unsigned bits = npuprof_npu_stamp_bits_(npu, q, npuprof_npu_main_stamp_(q));
    const bool host = r->stamp_clock == NPUPROF_NPU_STAMP_HOST;
    if (host) {
        u.now = (uint64_t)now->ns / r->stamp_unit_ns;
        u.allowance = 1000 / r->stamp_unit_ns + 1;
        u.known = true;
    } else {
        u.now = npuprof_npu_in_stamps_(r, now->ticks);
        u.allowance = now->allowance;
        if (npuprof_npu_is_scaled_(r))
            u.allowance = npuprof_npu_mul_div_(u.allowance, r->scale_den, r->scale_num, true) + 1;
    }
    if (bits < 64 && u.known) {
        const uint64_t mask = npuprof_npu_mask_(bits);
        const uint64_t looked = host || q->looked_epoch == now->epoch ? q->looked : 0;
        const uint64_t since = host ? looked : npuprof_npu_in_stamps_(r, looked);
        u.lap_is_unknown = (u.now > since && u.now - since > mask) || u.allowance > mask / 2;
        q->looked = host ? u.now : now->ticks;
        q->looked_epoch = now->epoch;
    }
    return u;
}

/* The value of that many bits in the last period before now, or a little after now. */
static uint64_t npuprof_npu_extend_past_(uint64_t raw, unsigned bits, const npuprof_npu_units_ *u)
{
    const uint64_t mask = npuprof_npu_mask_(bits);
    if (bits >= 64) return raw;
    const uint64_t ahead = (raw - u->now) & mask, back = (u->now - raw) & mask;
    return ahead <= u->allowance || back > u->now ? u->now + ahead : u->now - back;
}

/* The value of that many bits behind the last one of a lane, or a little before it: work of two units may be
   written in another order than it was stamped. */
static uint64_t npuprof_npu_extend_after_(uint64_t raw, unsigned bits, uint64_t last)
{
    enum { nearly = 1 << 20 };
    const uint64_t mask = npuprof_npu_mask_(bits), back = (last - raw) & mask;
    if (back <= npuprof_min_(mask / 8, nearly) && back <= last) return last - back;
    return last + ((raw - last) & mask);
}

/* Extends the stamp at that place of a record, in its own unit. Returns NPUPROF_NPU_TIMES_GOOD_, or why the
   record is lost. */
static int npuprof_npu_extend_stamp_at_(const npuprof_npu *npu, const npuprof_npu_queue_ *q,
                                        const npuprof_npu_units_ *u, npuprof_npu_lane_state_ *lane,
                                        const npuprof_npu_record_ *r, unsigned at, uint64_t *stamp)
{
    const unsigned bits = npuprof_npu_stamp_bits_(npu, q, at);
    const bool down = npu->desc_.counter.counts_down && q->is.stamp_clock == NPUPROF_NPU_STAMP_COUNTER;
    const uint64_t raw = (down ? ~r->v[at] : r->v[at]) & npuprof_npu_mask_(bits);
    const bool by_lane = lane && lane->has_last;
    *stamp = raw;
    if (by_lane) {
        *stamp = npuprof_npu_extend_after_(raw, bits, lane->last);
    } else if (bits < 64) {
        if (!u->known && bits < 48) return NPUPROF_RECORDS_NO_ANCHOR;
        if (u->lap_is_unknown) return NPUPROF_RECORDS_STAMPS;
        if (u->known) *stamp = npuprof_npu_extend_past_(raw, bits, u);
    }
    if (u->known && *stamp > npuprof_saturating_add_(u->now, u->allowance) &&
        (by_lane || q->is.stamp_clock == NPUPROF_NPU_STAMP_HOST)) return NPUPROF_RECORDS_STAMPS;
    return NPUPROF_NPU_TIMES_GOOD_;
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

/* Two extended stamps as times. Returns NPUPROF_NPU_TIMES_GOOD_, or why the record is lost. */
static int npuprof_npu_place_(const npuprof_npu *npu, const npuprof_npu_queue_ *q,
                              const npuprof_npu_now_ *now,
                              uint64_t start, uint64_t end, npuprof_npu_times_ *t)
{
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
        const uint64_t quantum = npuprof_npu_is_scaled_(&q->is) ? q->is.scale_num / q->is.scale_den + 1 : 0;
        if (t->start - t->end > quantum) return NPUPROF_RECORDS_STAMPS;
        t->start = t->end;
    }
    if (t->flags & NPUPROF_STAMP_HOST || !now->known) return NPUPROF_NPU_TIMES_GOOD_;
    /* What was stamped before the first read of an epoch may be of any epoch, if the counter may stand. */
    const bool later = t->end > npuprof_saturating_add_(now->ticks, now->allowance);
    if (npuprof_npu_may_stand_(npu) && now->epoch && (later || t->start < now->epoch_from))
        return NPUPROF_RECORDS_EPOCH;
    /* After now: a time of the epoch before, or nonsense. */
    if (later) {
        const bool old =
            now->epoch && t->end <= npuprof_saturating_add_(now->old_epoch_ticks, now->allowance);
        if (!old) return now->epoch > 1 ? NPUPROF_RECORDS_EPOCH : NPUPROF_RECORDS_STAMPS;
        t->epoch--;
    }
    const bool before = t->epoch == 0 && npuprof_saturating_add_(t->start, now->allowance) < now->open_ticks;
    return before ? (int)NPUPROF_RECORDS_STAMPS : (int)NPUPROF_NPU_TIMES_GOOD_;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../../numbers/wide.h"
#include "../types.h"
#include "../mmio.h"
#include "../clock.h"
#include "../anchors.h"
#include "format.h"

/* The clocks when a pass over records began: the host's, the device's, and both in the unit of a queue's
   stamps. May not know what an entry is. */

/* The clocks when a pass over records began. */
typedef struct npuprof_npu_now_ {
    bool known;                          /* the device's time is */
    uint64_t ticks, old_epoch_ticks;     /* of the device; its last ticks before this epoch */
    uint64_t open_ticks;                 /* at open, or before it */
    uint64_t old_epoch_host;             /* host ticks when those were read */
    uint64_t old_epoch_most;             /* the most that it may have shown in that epoch */
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
} npuprof_npu_pass_;

static bool npuprof_npu_is_scaled_(const npuprof_npu_ring *r)
{
    return r->scale_num != 1 || r->scale_den != 1;
}

/* A stamp that shows the counter's own ticks has no more bits than the counter: the rest means nothing. */
static void npuprof_npu_limit_stamps_(const npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    const bool same = q->is.stamp_clock == NPUPROF_NPU_STAMP_COUNTER && !npuprof_npu_is_scaled_(&q->is) &&
                      !q->is.stamp_offset;
    q->stamp_bits = (uint8_t)(same ? npu->desc_.counter.bits : 64);
}

/* How many ticks of the counter one unit of a scaled stamp is, rounded up. */
static uint64_t npuprof_npu_unit_(const npuprof_npu_ring *r) { return r->scale_num / r->scale_den + 1; }

/* Sets the ticks of the counter in a second, as they are known best. Under the lock. */
static void npuprof_npu_set_rate_(const npuprof_npu *npu, npuprof_npu_now_ *now)
{
    const npuprof_anchor_ *const a = &npu->rate_from_, *const b = &npu->rate_to_;
    now->rate = npu->desc_.counter.hz;
    now->rate_ppm = 200;                 /* of a crystal that is as it is described */
    if (!npu->has_rate_ || (npu->coarse_rate_ && now->rate)) return;
    const uint64_t host = npuprof_anchor_middle_(b) - npuprof_anchor_middle_(a);
    const uint64_t rate = npuprof_mul_div_(npu->second_, b->device_ticks - a->device_ticks, host, false);
    const uint64_t ppm = 2 * (uint64_t)npu->desc_.max_rate_ppm + 2 +
        npuprof_mul_div_(npuprof_anchor_error_(a) + npuprof_anchor_error_(b), 1000000, host, true);
    const uint64_t apart = rate > now->rate ? rate - now->rate : now->rate - rate;
    if (ppm > now->rate_ppm && now->rate && apart <= npuprof_mul_div_(rate, ppm, 1000000, true)) return;
    now->rate = rate;
    now->rate_ppm = ppm;
}

/* Reads the host's clock, and the device's if the queue's stamps need it. Not OK: nothing can be placed. */
static npuprof_result npuprof_npu_read_now_(npuprof_npu *npu, bool by_counter, npuprof_npu_now_ *now)
{
    npuprof_anchor_ sample;
    npuprof_result result = NPUPROF_OK;
    uint64_t min, max = 0;
    now->host = npuprof_ticks_();
    now->ns_per_4g = npuprof_ns_per_4g_ticks_();
    now->ns = npuprof_ticks_to_ns_(now->host);
    now->known = false;
    now->per_second = 0;
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    if (by_counter) {
        const uint64_t last = npu->last_.device_ticks & npuprof_npu_mask_(npu->desc_.counter.bits);
        result = npuprof_npu_read_locked_(npu, &sample);
        /* Why: such a counter may stand between two jobs, but this one did since the last was submitted. */
        if (npuprof_npu_may_stand_(npu) && result != NPUPROF_OK &&
            npuprof_npu_time_goes_on_(result) && sample.device_ticks > last) npuprof_npu_set_unsteady_(npu);
        const uint64_t width = npuprof_anchor_width_(&sample);
        now->known = npuprof_npu_time_goes_on_(result) || result == NPUPROF_ERR_NPU_STOPPED;
        if (!npuprof_npu_predict_(npu, 0, width + npu->second_ / 1000000 + 1, &min, &max)) max = 0;
        /* Why before the records are drawn: a reader of the trace has nothing but anchors. */
        if (result == NPUPROF_OK && !npuprof_npu_is_pushed_(npu) && npuprof_npu_rate_changed_(npu, &sample)) {
            (void)npuprof_npu_keep_reads_(npu, &sample, true);
            (void)npuprof_npu_put_anchor_(npu, &sample, true);
        }
    }
    if (npuprof_npu_predict_(npu, 0, npu->second_, &min, &now->per_second)) now->per_second++;
    else now->per_second = 0;
    npuprof_npu_set_rate_(npu, now);
    now->ticks = now->known ? sample.device_ticks : npu->last_.device_ticks;
    now->read_after = now->known ? sample.host_after : now->host;
    now->old_epoch_ticks = npu->old_epoch_ticks_;
    now->open_ticks = npu->open_ticks_;
    now->old_epoch_host = npu->old_epoch_host_;
    now->old_epoch_most = npu->old_epoch_most_;
    now->epoch = npu->epoch_;
    now->allowance = max;
    /* Why more: nobody read this time, it is the middle of what is possible. */
    if (now->known && npuprof_npu_is_pushed_(npu) &&
        npuprof_npu_predict_since_(npu, now->host, now->host, &min, &max))
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
    return npuprof_npu_is_scaled_(r) ? npuprof_mul_div_(ticks, r->scale_den, r->scale_num, false) : ticks;
}

/* Now in the unit of a queue's stamps, and what is known of their age. */
static npuprof_npu_units_ npuprof_npu_units_of_(const npuprof_npu *npu, npuprof_npu_queue_ *q,
                                                const npuprof_npu_now_ *now)
{
    npuprof_npu_units_ u = { 0, 0, 0, 0, 0, now->known };
    const npuprof_npu_ring *r = &q->is;
    if (r->stamp_clock == NPUPROF_NPU_STAMP_NONE) return u;
    if (r->max_age_ms) {
        const uint64_t age = npuprof_mul_div_(r->max_age_ms, npu->second_, 1000, true);
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
        u.allowance = npuprof_mul_div_(u.allowance, r->scale_den, r->scale_num, true) + 1;
        u.per_second = npuprof_mul_div_(u.per_second, r->scale_den, r->scale_num, true);
    }
    if (!now->epoch)
        u.oldest = npuprof_npu_in_stamps_(r, npuprof_saturating_sub_(now->open_ticks, now->allowance));
    return u;
}

/* Reads the clocks for records of a queue; NULL: for what has no stamps. *result: becomes the first that is
   not OK. False: no record can be placed. */
static bool npuprof_npu_begin_pass_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_pass_ *pass,
                                    npuprof_result *result)
{
    npu->texts_.stamp_left = 0;          /* what is drawn now was there later than what was drawn before */
    const bool by_counter = q && q->is.stamp_clock == NPUPROF_NPU_STAMP_COUNTER;
    const npuprof_result read = npuprof_npu_read_now_(npu, by_counter, &pass->now);
    if (*result == NPUPROF_OK) *result = read;
    if (read == NPUPROF_ERR_NPU_DEAD || read == NPUPROF_ERR_NPU_TORN || read == NPUPROF_ERR_NPU_BUSY)
        return false;
    if (q) pass->units = npuprof_npu_units_of_(npu, q, &pass->now);
    return true;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../../numbers/wide.h"
#include "../../record/device.h"
#include "../../control/start.h"
#include "../types.h"
#include "../api.h"
#include "../mmio.h"
#include "../clock.h"
#include "../anchors.h"

/* Clock anchors that nobody reads from a register: those the driver hands over, and those that follow from
   causality. Owns last_ of a device with desc.anchors_only (npuprof_npu in types.h): under the device's lock.
   May not know rings, or who decoded a record.

   Anchors are the best two of what was told since the one before, as they were told. Why: each is true by
   itself, and a reader that has all of them sees where the clock stood (clock/evidence.h).
   What device time is now follows from one bracket, last_: at the newest device tick that anybody has told
   of, the host clock was between host_before and host_after.
     1. A new bracket is true by itself: the driver's statement; or of a job, that it began after it was
        submitted, and ended before its record was seen.
     2. The older of the two is brought to the tick of the newer one: at least min and at most max host ticks
        pass in between (npuprof_npu_host_range_), by the rate between the anchors so far.
     3. Both are true of the same tick then, so their intersection is. It is at most as wide as either.
     4. If it is empty, the counter was reset or stood, or its rate changed: an epoch begins, with the new
        bracket, which the old one ends with, too, unless it goes back.
   Assumption beside those of clock/device_map.h: within an epoch the rate has one centre.
   Anchors are stored when one is due; of wide brackets only after a second. Why: a stamp is mapped by few
   anchors beside it, and narrower ones may follow. */

/* The host ticks that pass in n device ticks. Unknown: anything. */
static npuprof_npu_range_ npuprof_npu_host_range_(const npuprof_npu *npu, uint64_t n)
{
    const uint64_t hz = npu->desc_.counter.hz;
    npuprof_npu_range_ r = { 0, UINT64_MAX };
    if (n == 0) {
        r.max = 0;
    } else if (npu->has_rate_ && !npu->coarse_rate_) {
        r = npuprof_npu_range_between_(npu, &npu->rate_from_, &npu->rate_to_, n);
    } else if (hz) {
        r.min = npuprof_mul_div_(n - 1, npu->second_, 4 * hz, false);
        r.max = npuprof_mul_div_(n + 1, 4 * npu->second_, hz, true);
    }
    return r;
}

/* The bracket, so many device ticks later. */
static npuprof_anchor_ npuprof_npu_carry_(const npuprof_npu *npu, const npuprof_anchor_ *from, uint64_t ticks)
{
    const npuprof_npu_range_ r = npuprof_npu_host_range_(npu, ticks);
    npuprof_anchor_ a;
    a.device_ticks = from->device_ticks + ticks;
    a.host_before = npuprof_saturating_add_(from->host_before, r.min);
    a.host_after = npuprof_saturating_add_(from->host_after, r.max);
    return a;
}

/* An epoch ends with a bracket that contradicts it: the clock stood, or its rate changed, and nobody knows
   when. If that is a later tick, the bracket is the epoch's, too, and a reader finds the gap open. */
static void npuprof_npu_end_by_contradiction_(npuprof_npu *npu, const npuprof_anchor_ *given)
{
    npuprof_npu_set_unsteady_(npu);
    if (given->device_ticks <= npu->last_.device_ticks) return;
    (void)npuprof_npu_keep_reads_(npu, NULL, false);
    (void)npuprof_npu_put_anchor_(npu, given, false);
}

/* Something has contradicted hz: an epoch has begun, or a record fits no time. So often, and no two anchors
   of one epoch: not the clock contradicts hz, but hz the clock. Its rate is measured from then on. */
static void npuprof_npu_doubt_hz_(npuprof_npu *npu)
{
    if (!npu->has_rate_ && npu->desc_.counter.hz && ++npu->doubts_ == NPUPROF_NPU_DOUBTS_)
        npu->desc_.counter.hz = 0;
}

/* Takes a bracket whose ticks are extended. NPUPROF_ERR_NPU_RESET: it contradicts what is known. Under the
   lock. */
static npuprof_result npuprof_npu_narrow_(npuprof_npu *npu, const npuprof_anchor_ *given)
{
    npuprof_anchor_ *const last = &npu->last_, a = *given, b = *last;
    npuprof_result result = NPUPROF_OK;
    if (!npu->has_last_) {
        const uint64_t since = npuprof_saturating_sub_(a.host_after, npu->open_host_);
        uint64_t min, max;
        *last = a;
        npu->has_last_ = true;
        if (npu->epoch_ == 0 && npuprof_npu_predict_(npu, 0, since, &min, &max))
            npu->open_ticks_ = npuprof_saturating_sub_(a.device_ticks, max);
    } else {
        if (a.device_ticks < b.device_ticks) a = npuprof_npu_carry_(npu, &a, b.device_ticks - a.device_ticks);
        else b = npuprof_npu_carry_(npu, &b, a.device_ticks - b.device_ticks);
        a.host_before = npuprof_max_(a.host_before, b.host_before);
        a.host_after = npuprof_min_(a.host_after, b.host_after);
        if (a.host_before > a.host_after) {
            npuprof_npu_end_by_contradiction_(npu, given);
            npuprof_npu_new_epoch_(npu, NPUPROF_ERR_NPU_RESET);
            npuprof_npu_doubt_hz_(npu);
            result = NPUPROF_ERR_NPU_RESET;
            a = *given;
        }
        *last = a;
    }
    return result;
}

/* Weighs a bracket as it was told, and makes anchors of the best two, if one is due. */
static npuprof_result npuprof_npu_keep_told_(npuprof_npu *npu, const npuprof_anchor_ *told)
{
    npuprof_npu_weigh_read_(npu, told);
    if (!npuprof_npu_anchor_is_due_(npu, told->host_after)) return NPUPROF_OK;
    const uint64_t width = npuprof_min_(npuprof_anchor_width_(&npu->best_upper_),
                                        npuprof_anchor_width_(&npu->best_lower_));
    if (npu->has_rate_ && npu->anchor_count_ && width > 4 * npu->best_width_ &&
        told->host_after < npu->anchors_[npu->anchor_count_ - 1].host_after + npu->second_) return NPUPROF_OK;
    return npuprof_npu_keep_reads_(npu, told, true);
}

/* A job of a device whose counter nobody reads: it ran from job->device_ticks to `end` of that epoch, was
   submitted at or after host_before, and was over at host_after. unit: the counter may have shown so many
   ticks more than that when it began. False: it cannot have lasted that long, and says nothing. Nor does one
   of another epoch. */
static bool npuprof_npu_bracket_job_(npuprof_npu *npu, uint32_t epoch, const npuprof_anchor_ *job,
                                     uint64_t end, uint64_t unit)
{
    npuprof_anchor_ a = *job;
    if (!npuprof_npu_is_pushed_(npu) || !npuprof_npu_lock_(npu)) return true;
    const uint64_t least = npuprof_npu_host_range_(npu, npuprof_saturating_sub_(end, a.device_ticks)).min;
    a.host_before = npuprof_saturating_sub_(a.host_before, npuprof_npu_host_range_(npu, unit).max);
    a.host_after = npuprof_saturating_sub_(a.host_after, least);
    const bool good = a.device_ticks <= end && a.host_before <= a.host_after;
    if (!good) npuprof_npu_doubt_hz_(npu);
    if (good && epoch == npu->epoch_) {
        (void)npuprof_npu_narrow_(npu, &a);
        a.host_after = job->host_after;
        npuprof_npu_weigh_read_(npu, &a);
        a.device_ticks = end;
        (void)npuprof_npu_keep_told_(npu, &a);
    }
    npuprof_npu_unlock_(npu);
    if (!good || NPUPROF_LOAD_(&npu->is_causal_)) return good;
    NPUPROF_STORE_(&npu->is_causal_, true);
    npuprof_device_flag_(npu->number_, NPUPROF_DEVICE_CAUSAL_);
    return true;
}

/* A record of a device whose counter nobody reads fits no time between its submission and now. */
static void npuprof_npu_doubt_pushed_(npuprof_npu *npu)
{
    if (!npuprof_npu_is_pushed_(npu) || !npuprof_npu_lock_(npu)) return;
    npuprof_npu_doubt_hz_(npu);
    npuprof_npu_unlock_(npu);
}

/* The ticks of a raw value that the counter showed in a bracket after the last one. *result: _RESET,
   _AMBIGUOUS: it begins an epoch. */
static uint64_t npuprof_npu_place_pushed_(npuprof_npu *npu, const npuprof_npu_raw_ *raw,
                                          npuprof_result *result)
{
    const unsigned bits = npu->desc_.counter.bits;
    const uint64_t mask = npuprof_npu_mask_(bits), last = npu->last_.device_ticks;
    const uint64_t delta = (raw->value - last) & mask;
    uint64_t ticks = raw->value, min, max;
    *result = NPUPROF_OK;
    if (!npu->has_last_) return ticks;
    if (npuprof_npu_place_value_(npu, raw, bits, true, &ticks) == NPUPROF_OK) return ticks;
    const bool known = npuprof_npu_predict_since_(npu, raw->before, raw->after, &min, &max);
    if (!known && (bits < 48 || delta <= mask / 2)) return last + delta;
    const bool gap = known && bits < 64 && max - min > mask / 2;
    *result = gap ? NPUPROF_ERR_NPU_AMBIGUOUS : NPUPROF_ERR_NPU_RESET;
    return raw->value;
}

/* Whether such a value may have been shown before the last one, by so many ticks: the brackets overlap. */
static bool npuprof_npu_may_be_older_(const npuprof_npu *npu, const npuprof_npu_raw_ *raw, uint64_t behind)
{
    uint64_t min, max = npuprof_npu_mask_(npu->desc_.counter.bits) / 2;
    if (!npu->has_last_ || raw->before >= npu->last_.host_after) return false;
    (void)npuprof_npu_predict_(npu, 0, npu->last_.host_after - raw->before, &min, &max);
    return behind <= max && behind <= npu->last_.device_ticks;
}

/* The driver's anchor, under the lock. */
static npuprof_result npuprof_npu_take_pushed_(npuprof_npu *npu, const npuprof_npu_raw_ *raw)
{
    npuprof_anchor_ a;
    npuprof_result result;
    if (npu->has_last_ && raw->after < npu->last_.host_before) return NPUPROF_OK;
    a.device_ticks = npuprof_npu_place_pushed_(npu, raw, &result);
    a.host_before = raw->before;
    a.host_after = raw->after;
    npu->idle_ = false;
    const bool says_less = npu->has_last_ && raw->before < npu->last_.host_after &&
                           npuprof_anchor_width_(&a) > npuprof_anchor_width_(&npu->last_);
    const unsigned bits = npu->desc_.counter.bits;
    const uint64_t behind = (npu->last_.device_ticks - raw->value) & npuprof_npu_mask_(bits);
    if (result != NPUPROF_OK && npuprof_npu_may_be_older_(npu, raw, behind)) {
        if (!npuprof_npu_is_pushed_(npu)) return NPUPROF_OK;
        a.device_ticks = npu->last_.device_ticks - behind;
        result = NPUPROF_OK;
    }
    if (result != NPUPROF_OK) {
        npuprof_anchor_ later = a;
        const uint64_t ahead = (raw->value - npu->last_.device_ticks) & npuprof_npu_mask_(bits);
        later.device_ticks = npu->last_.device_ticks + ahead;
        /* Why not an ambiguous one: it may be whole periods later than that. */
        const bool goes_on = result == NPUPROF_ERR_NPU_RESET && ahead <= npuprof_npu_mask_(bits) / 2;
        if (goes_on && npuprof_npu_is_pushed_(npu)) npuprof_npu_end_by_contradiction_(npu, &later);
        npuprof_npu_new_epoch_(npu, result);
        npu->has_last_ = false;
        if (npuprof_npu_is_pushed_(npu)) npuprof_npu_doubt_hz_(npu);
    }
    if (npuprof_npu_is_pushed_(npu)) {
        const npuprof_result narrowed = npuprof_npu_narrow_(npu, &a);
        const npuprof_result kept = npuprof_npu_keep_told_(npu, &a);
        if (result == NPUPROF_OK) result = narrowed == NPUPROF_OK ? kept : narrowed;
        if (npu->doubts_ != NPUPROF_NPU_DOUBTS_) return result;
        npu->doubts_++;                  /* said once */
        return npuprof_npu_wrong_counter_("hz contradicts its anchors: its rate is measured now");
    } else if (result != NPUPROF_OK || !says_less) {
        npu->has_last_ = true;
        npu->last_ = a;
        (void)npuprof_npu_add_anchor_(npu, &a);
    }
    return result;
}

NPUPROF_API_ npuprof_result npuprof_npu_anchor(npuprof_npu *npu, uint64_t raw, int64_t host_before_ns,
                                               int64_t host_after_ns)
{
    npuprof_npu_raw_ read;
    uint64_t before_error, after_error;
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    if (host_before_ns > host_after_ns)
        return NPUPROF_REFUSE_("npuprof_npu_anchor: host_before_ns is after host_after_ns");
    const npuprof_npu_counter *c = &npu->desc_.counter;
    const uint64_t now = npuprof_ticks_();
    read.value = (c->counts_down ? ~raw : raw) & npuprof_npu_mask_(c->bits);
    read.before = npuprof_ticks_at_ns_(host_before_ns, &before_error);
    read.after = npuprof_ticks_at_ns_(host_after_ns, &after_error);
    read.before = npuprof_saturating_sub_(read.before, npuprof_saturating_add_(before_error, npu->lag_));
    read.after = npuprof_saturating_add_(read.after, after_error);
    read.ones = read.zeros = false;
    if (read.before > now)
        return NPUPROF_REFUSE_("npuprof_npu_anchor: host_before_ns is in the future; it is a time of "
                               "npuprof_now_ns()");
    if (read.after > now) read.after = now;
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    const npuprof_result result = npuprof_npu_take_pushed_(npu, &read);
    npuprof_npu_unlock_(npu);
    return result;
}

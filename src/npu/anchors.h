#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "../format/compact.h"
#include "../numbers/wide.h"
#include "../clock/device_map.h"
#include "types.h"
#include "mmio.h"
#include "clock.h"

/* How long the last anchor lasts; see CLOCK in the head. */
static uint64_t npuprof_npu_anchor_interval_(const npuprof_npu *npu)
{
    const uint32_t n = npu->anchor_count_;
    const uint64_t age = npuprof_saturating_sub_(npu->anchors_[n - 1].host_after, npu->first_anchor_);
#ifndef NPUPROF_FREESTANDING
    const uint64_t part = age / 1000;
#else   /* Why: a 64-bit division is a call. */
    const uint64_t part = age >> 10;
#endif
    if (n == 1) return npu->second_ / 10000;
    return npuprof_max_(npuprof_min_(npuprof_max_(age, npu->second_ / 1000), npu->second_ / 4), part);
}

/* Keeps an anchor and stores it in the arena. One that is not later than the last is left out. */
static npuprof_result npuprof_npu_add_anchor_(npuprof_npu *npu, const npuprof_anchor_ *anchor)
{
    uint32_t n = npu->anchor_count_;
    if (n && (anchor->device_ticks <= npu->anchors_[n - 1].device_ticks || anchor->host_before <= npu->anchors_[n - 1].host_after))
        return NPUPROF_OK;
    if (n == 0) npu->first_anchor_ = anchor->host_after;
    if (n == NPUPROF_NPU_ANCHORS_)
        for (n = 0; n < NPUPROF_NPU_ANCHORS_ - 1; n++) npu->anchors_[n] = npu->anchors_[n + 1];
    npu->anchors_[n] = *anchor;
    npu->anchor_count_ = n + 1;
    const uint64_t width = npuprof_anchor_width_(anchor);
    if (!npu->best_width_ || width < npu->best_width_) npu->best_width_ = width;
    npuprof_npu_measure_rate_(npu);
#ifndef NPUPROF_FREESTANDING
    return npuprof_device_anchor_(npu->number_, npu->epoch_, anchor);
#else
    npu->interval_ = npuprof_npu_anchor_interval_(npu);
    if (width > UINT32_MAX) return NPUPROF_OK;   /* Why: the stamps themselves say more */
    const uint64_t values[3] = { anchor->device_ticks, anchor->host_after, npu->number_ | (npu->epoch_ & 0xFFFF) << 8 | width << 32 };
    const npuprof_args none = { NULL, 0 };
    npuprof_npu_put_record_(NPUPROF_NPU_NAME_OF_(npu), NPUPROF_CELL_KIND_ANCHOR_, values, none);
    return NPUPROF_OK;
#endif
}

/* Whether it is time for the next anchor. */
static bool npuprof_npu_anchor_is_due_(const npuprof_npu *npu, uint64_t now)
{
    const uint32_t n = npu->anchor_count_;
    if (n == 0) return true;
#ifndef NPUPROF_FREESTANDING
    return npuprof_saturating_sub_(now, npu->anchors_[n - 1].host_after) >= npuprof_npu_anchor_interval_(npu);
#else
    return npuprof_saturating_sub_(now, npu->anchors_[n - 1].host_after) >= npu->interval_;
#endif
}

#ifndef NPUPROF_FREESTANDING
/* Whether a read lies outside of what the anchors foretell: the rate has changed. The next anchors then come as quickly as after
   open. Not within a millisecond, for a clock that is worse than max_rate_ppm says. */
static bool npuprof_npu_rate_changed_(npuprof_npu *npu, const npuprof_anchor_ *sample)
{
    if (npu->anchor_count_ < 2 || !npu->has_rate_ || npu->coarse_rate_) return false;
    const npuprof_anchor_ *last = &npu->anchors_[npu->anchor_count_ - 1];
    const uint64_t least = npuprof_saturating_sub_(sample->host_before, last->host_after), most = npuprof_saturating_sub_(sample->host_after, last->host_before);
    if (least < npu->second_ / 1000) return false;
    const npuprof_map_range_ r = npuprof_map_range_between_(&npu->rate_from_, &npu->rate_to_, 2000 * (uint64_t)npu->desc_.max_rate_ppm,
                                                    npuprof_saturating_sub_(sample->device_ticks, last->device_ticks));
    if (r.max >= least && r.min <= most) return false;
    npu->first_anchor_ = sample->host_after;
    return true;
}

#endif

/* One round of brackets. *stale: the counter stood still where it should have moved, and nothing was stored. */
static npuprof_result npuprof_npu_take_brackets_(npuprof_npu *npu, bool *stale)
{
    npuprof_anchor_ best, sample, previous = npu->last_;
    bool has_best = false, fresh = false;
    npuprof_result result = NPUPROF_OK;
    const uint64_t begin = npuprof_ticks_();
    const bool had_last = npu->has_last_;
    best = previous;
    for (unsigned i = 0; i < npu->desc_.brackets; i++) {
        const npuprof_result r = npuprof_npu_read_locked_(npu, &sample);
        if (r == NPUPROF_ERR_NPU_RESET || r == NPUPROF_ERR_NPU_AMBIGUOUS) {
            has_best = fresh = false;
            result = r;
        } else if (r != NPUPROF_OK) {
            return r;
        }
        /* Why: where the counter is moved by software that was interrupted, a value that just changed is the true one. */
        const bool moved = (had_last || i) && sample.device_ticks != previous.device_ticks;
        if (!has_best || (moved && !fresh) || (moved == fresh && npuprof_anchor_width_(&sample) < npuprof_anchor_width_(&best))) {
            best = sample;
            has_best = true;
            fresh = moved;
        }
        previous = sample;
    }
    const uint64_t host = npuprof_ticks_() - begin;
    uint64_t least, most;
    const npuprof_anchor_ *last = npu->anchor_count_ ? &npu->anchors_[npu->anchor_count_ - 1] : NULL;
    *stale = !fresh && npuprof_npu_predict_(npu, host, host, &least, &most) && least >= 4;
    if (last && best.device_ticks <= last->device_ticks && best.host_before > last->host_after) *stale = true;
    if (*stale) return result;
    const npuprof_result stored = npuprof_npu_add_anchor_(npu, &best);
    return result == NPUPROF_OK ? stored : result;
}

/* Whether a result leaves a device time that goes on. */
static bool npuprof_npu_time_goes_on_(npuprof_result result)
{
    return result == NPUPROF_OK || result == NPUPROF_ERR_NPU_RESET || result == NPUPROF_ERR_NPU_AMBIGUOUS;
}

/* Takes one anchor. *alone: it is the epoch's only one. */
static npuprof_result npuprof_npu_take_anchor_(npuprof_npu *npu, bool *alone)
{
    const uint64_t begin = npuprof_ticks_(), hz = npu->desc_.counter.hz;
    const uint64_t patience = npuprof_max_(npu->second_ / 500, hz ? npuprof_mul_div_(npu->second_, 4, hz, true) : 0);
    npuprof_result first = NPUPROF_OK;
    *alone = false;
    for (uint32_t i = 0; i < 4096 && npuprof_saturating_sub_(npuprof_ticks_(), begin) <= patience; i++) {
        bool stale = false;
        if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
        const npuprof_result result = npuprof_npu_take_brackets_(npu, &stale);
        *alone = npu->anchor_count_ == 1;
        npuprof_npu_unlock_(npu);
        if (first == NPUPROF_OK) first = result;
        if (!stale || !npuprof_npu_time_goes_on_(result)) return first;
    }
    return first == NPUPROF_OK ? NPUPROF_ERR_NPU_STOPPED : first;
}

/* The second anchor of an epoch comes soon after the first.
   Why: without a rate nobody can count the wraps of a long gap, and the read behind it would begin an epoch of one anchor again. */
static void npuprof_npu_take_second_anchor_(npuprof_npu *npu)
{
    const uint64_t begin = npuprof_ticks_(), hz = npu->desc_.counter.hz;
    const uint64_t ticks = hz ? npuprof_mul_div_(npu->second_, 16, hz, true) : 0;
    const uint64_t pause = npuprof_max_(npu->second_ / 10000, npuprof_min_(ticks, npu->second_ / 500));
    bool alone;
    for (uint32_t i = 0; i < (uint32_t)1 << 16 && npuprof_saturating_sub_(npuprof_ticks_(), begin) < pause; i++) {}
    (void)npuprof_npu_take_anchor_(npu, &alone);
}

NPUPROF_API_ npuprof_result npuprof_npu_sync(npuprof_npu *npu)
{
    bool alone;
    if (!npu->number_) return NPUPROF_ERR_ARGUMENT;
    const npuprof_result result = npuprof_npu_take_anchor_(npu, &alone);
    if (alone && npuprof_npu_time_goes_on_(result)) npuprof_npu_take_second_anchor_(npu);
    return npuprof_npu_explain_result_(npu, result);
}

/* The library's own wish for an anchor. Why the pause: on a counter that stands still each takes its 2 ms, and there may be one a kernel. */
static npuprof_result npuprof_npu_renew_anchor_(npuprof_npu *npu)
{
    const uint64_t begin = npuprof_ticks_();
    if (begin < NPUPROF_LOAD_(&npu->renew_from_)) return NPUPROF_OK;
    const npuprof_result result = npuprof_npu_sync(npu);
    if (result != NPUPROF_ERR_NPU_STOPPED) return result;
    const uint64_t end = npuprof_ticks_();
    NPUPROF_STORE_(&npu->renew_from_, end + 64 * npuprof_saturating_sub_(end, begin));
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_npu_read(npuprof_npu *npu, uint64_t *ticks)
{
    npuprof_anchor_ sample;
    *ticks = 0;
    if (!npu->number_) return NPUPROF_ERR_ARGUMENT;
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    const npuprof_result result = npuprof_npu_read_locked_(npu, &sample);
    npuprof_npu_unlock_(npu);
    *ticks = sample.device_ticks;
    if (result != NPUPROF_OK && npuprof_npu_time_goes_on_(result)) (void)npuprof_npu_sync(npu);
    return npuprof_npu_explain_result_(npu, result);
}

/* raw, counting up, of that many bits, as the value nearest to now. */
static uint64_t npuprof_npu_extend_nearest_(uint64_t raw, unsigned bits, uint64_t now)
{
    const uint64_t mask = npuprof_npu_mask_(bits), ahead = (raw - now) & mask, back = (now - raw) & mask;
    if (bits >= 64) return raw;
    return ahead < back || back > now ? now + ahead : now - back;
}

NPUPROF_API_ uint64_t npuprof_npu_extend(npuprof_npu *npu, uint64_t raw)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    uint64_t least, most, now;
    npuprof_anchor_ sample;
    if (!npu->number_) return raw;
    if (c->counts_down) raw = ~raw;
    raw &= npuprof_npu_mask_(c->bits);
    if (c->bits >= 64) return raw;
    if (!npuprof_npu_lock_(npu)) return raw;
    const uint64_t host = npuprof_saturating_sub_(npuprof_ticks_(), npu->last_.host_after);
    if (npuprof_npu_predict_(npu, host, host, &least, &most) && most - least <= npuprof_npu_mask_(c->bits) / 16) {
        now = npu->last_.device_ticks + least / 2 + most / 2;
    } else {
        (void)npuprof_npu_read_locked_(npu, &sample);
        now = npu->last_.device_ticks;
    }
    npuprof_npu_unlock_(npu);
    return npuprof_npu_extend_nearest_(raw, c->bits, now);
}

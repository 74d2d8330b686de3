#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "types.h"
#include "mmio.h"
#include "clock.h"
#include "requirements.h"

/* Clock anchors: pairs of device time and host time, from which a reader maps device stamps to host stamps.
   Here they are taken, kept and renewed; clock/device_map.h interpolates between them and proves the error
   bound.
   Owns anchors_ and what belongs to them (npuprof_npu in types.h): under the device's lock, except
   renew_from_. May not know kernels and rings.

   How an anchor is taken:
     1. Read the counter desc.brackets times. Each read is a bracket (npuprof_npu_raw_ in mmio.h): the device
        showed device_ticks at some host time between host_before and host_after.
     2. Keep the narrowest bracket. All of them are true, so any choice is right; the narrowest says most.
        Hosted: all reads since the last anchor are weighed (host_side.h), and the best two of them are kept.
     3. But a value that has just changed is better than one that stood. Why: a counter that software moves
        may be late, but not at the moment it moves.
     4. Drop an anchor that is not later than the last one on both clocks: the two would give no rate.
   When: two at open, two where an epoch begins, then by age (npuprof_npu_anchor_interval_). */

/* Host ticks from the last anchor to the next: as old as the trace is, at least 1 ms, at most 250 ms or a
   2048th of the age. The second one follows after 0.1 ms. */
static uint64_t npuprof_npu_anchor_interval_(const npuprof_npu *npu)
{
    const uint64_t last = npu->anchors_[npu->anchor_count_ - 1].host_after;
    const uint64_t age = npuprof_saturating_sub_(last, npu->first_anchor_);
    const uint64_t part = NPUPROF_NPU_DIVIDES_ ? age / 2048 : age >> 11;
    if (npu->anchor_count_ == 1) return npu->second_ / 10000;
    return npuprof_max_(npuprof_min_(npuprof_max_(age, npu->second_ / 1000), npu->second_ / 4), part);
}

/* Takes the rate from the anchors, unless they are too close together to tell it. */
static void npuprof_npu_measure_rate_(npuprof_npu *npu)
{
    if (npu->anchor_count_ < 2) return;
    const npuprof_anchor_ *to = &npu->anchors_[npu->anchor_count_ - 1], *from = npuprof_npu_rate_begin_(npu);
    const uint64_t host = npuprof_anchor_middle_(to) - npuprof_anchor_middle_(from);
    if (host <= 4 * (npuprof_anchor_error_(from) + npuprof_anchor_error_(to))) return;
    if (to->device_ticks - from->device_ticks < 4) return;
    npu->rate_from_ = *from;
    npu->rate_to_ = *to;
    npu->has_rate_ = true;
    npu->coarse_rate_ = false;
    if (!NPUPROF_NPU_DIVIDES_) npuprof_npu_set_fast_(npu);
}

/* Keeps an anchor and stores it in the arena. One that is not later than the last is left out. runs: the
   counter runs now. Why no rate if not: it would be that of a clock that mostly stood. */
static npuprof_result npuprof_npu_put_anchor_(npuprof_npu *npu, const npuprof_anchor_ *anchor, bool runs)
{
    uint32_t n = npu->anchor_count_;
    const npuprof_anchor_ *last = n ? &npu->anchors_[n - 1] : NULL;
    if (npu->idle_) return NPUPROF_OK;
    if (last && !npuprof_npu_is_later_(npu, anchor, last)) return NPUPROF_OK;
    if (n == 0) npu->first_anchor_ = anchor->host_after;
    if (n == NPUPROF_NPU_ANCHORS_)
        for (n = 0; n < NPUPROF_NPU_ANCHORS_ - 1; n++) npu->anchors_[n] = npu->anchors_[n + 1];
    npu->anchors_[n] = *anchor;
    npu->anchor_count_ = n + 1;
    const uint64_t width = npuprof_anchor_width_(anchor);
    if (!npu->best_width_ || width < npu->best_width_) npu->best_width_ = width;
    if (runs) npuprof_npu_measure_rate_(npu);
    if (!NPUPROF_NPU_DIVIDES_) npu->anchor_interval_ = npuprof_npu_anchor_interval_(npu);
    return npuprof_npu_store_anchor_(npu, anchor);
}

static npuprof_result npuprof_npu_add_anchor_(npuprof_npu *npu, const npuprof_anchor_ *anchor)
{
    return npuprof_npu_put_anchor_(npu, anchor, true);
}

/* Keeps the best two reads since the last anchor, or the one that is given if there are none. The first
   anchor of an epoch is that alone. */
static npuprof_result npuprof_npu_keep_reads_(npuprof_npu *npu, const npuprof_anchor_ *else_this, bool runs)
{
    npuprof_anchor_ first, second;
    const bool alone = !npuprof_npu_best_reads_(npu, &first, &second) || !npu->anchor_count_;
    if (alone && !else_this) return NPUPROF_OK;
    if (alone) return npuprof_npu_put_anchor_(npu, else_this, runs);
    const npuprof_result result = npuprof_npu_put_anchor_(npu, &first, runs);
    const npuprof_result then = npuprof_npu_put_anchor_(npu, &second, runs);
    return result == NPUPROF_OK ? then : result;
}

/* Whether it is time for the next anchor. */
static bool npuprof_npu_anchor_is_due_(const npuprof_npu *npu, uint64_t now)
{
    const uint32_t n = npu->anchor_count_;
    if (n == 0 || (n == 1 && npuprof_npu_may_stand_(npu))) return true;
    const uint64_t age = npuprof_saturating_sub_(now, npu->anchors_[n - 1].host_after);
    return age >= (NPUPROF_NPU_DIVIDES_ ? npuprof_npu_anchor_interval_(npu) : npu->anchor_interval_);
}

/* The best of desc.brackets brackets. *fresh: its value had just changed. Results as
   npuprof_npu_read_locked_(). */
static npuprof_result npuprof_npu_best_bracket_(npuprof_npu *npu, npuprof_anchor_ *best, bool *fresh)
{
    npuprof_anchor_ sample, previous = npu->last_;
    npuprof_result result = NPUPROF_OK;
    bool has_best = false;
    const bool had_last = npu->has_last_;
    *best = previous;
    *fresh = false;
    for (unsigned i = 0; i < npu->desc_.brackets; i++) {
        const npuprof_result r = npuprof_npu_read_locked_(npu, &sample);
        if (r == NPUPROF_ERR_NPU_RESET || r == NPUPROF_ERR_NPU_AMBIGUOUS) {
            has_best = *fresh = false;
            result = r;
        } else if (r != NPUPROF_OK) {
            return r;
        }
        const bool moved = (had_last || i) && sample.device_ticks != previous.device_ticks;
        const bool narrower = npuprof_anchor_width_(&sample) < npuprof_anchor_width_(best);
        if (!has_best || (moved && !*fresh) || (moved == *fresh && narrower)) {
            *best = sample;
            has_best = true;
            *fresh = moved;
        }
        previous = sample;
    }
    return result;
}

/* Takes the brackets of one anchor and adds it. *stale: the counter stood still where it should have moved,
   and nothing was added. Under the lock. */
static npuprof_result npuprof_npu_take_brackets_(npuprof_npu *npu, bool *stale)
{
    npuprof_anchor_ best;
    bool fresh;
    const uint64_t begin = npuprof_npu_ticks_();
    const npuprof_result result = npuprof_npu_best_bracket_(npu, &best, &fresh);
    if (!npuprof_npu_time_goes_on_(result)) return result;
    const uint64_t host = npuprof_npu_ticks_() - begin;
    uint64_t min, max;
    const npuprof_anchor_ *last = npu->anchor_count_ ? &npu->anchors_[npu->anchor_count_ - 1] : NULL;
    *stale = !fresh && npuprof_npu_predict_(npu, host, host, &min, &max) && min >= 4;
    if (last && best.device_ticks <= last->device_ticks && best.host_before > last->host_after) *stale = true;
    if (*stale) return result;
    const npuprof_result stored = npuprof_npu_keep_reads_(npu, &best, true);
    return result == NPUPROF_OK ? stored : result;
}

/* Takes one anchor; waits for a counter that stands still, for a few of its ticks. *alone: it is the epoch's
   only one. */
static npuprof_result npuprof_npu_take_anchor_(npuprof_npu *npu, bool *alone)
{
    const uint64_t begin = npuprof_npu_ticks_(), hz = npu->desc_.counter.hz;
    const uint64_t patience =
        npuprof_max_(npu->second_ / 500, hz ? npuprof_npu_mul_div_(npu->second_, 4, hz, true) : 0);
    npuprof_result first = NPUPROF_OK;
    *alone = false;
    /* Why the first time without a look at the clock: this thread may have been off its CPU meanwhile. */
    for (uint32_t i = 0; i < 4096; i++) {
        bool stale = false;
        if (i && npuprof_saturating_sub_(npuprof_npu_ticks_(), begin) > patience) break;
        if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
        const npuprof_result result = npuprof_npu_take_brackets_(npu, &stale);
        *alone = npu->anchor_count_ == 1;
        npuprof_npu_unlock_(npu);
        if (first == NPUPROF_OK) first = result;
        if (!stale || !npuprof_npu_time_goes_on_(result)) return first;
    }
    /* Why: it may have run since the last anchor. What was read then is true, and shows that it stands. */
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    (void)npuprof_npu_keep_reads_(npu, &npu->last_, false);
    npuprof_npu_unlock_(npu);
    return first == NPUPROF_OK ? NPUPROF_ERR_NPU_STOPPED : first;
}

/* The second anchor of an epoch contradicted the first one, or not, by what is known of the rate.
   Why not the rate any more after three in a row: a counter that moves does not stand, or begin anew, each
   time in the tenth of a millisecond in which it is looked at. */
static inline void npuprof_npu_doubt_rate_(npuprof_npu *npu, npuprof_result result)
{
#ifndef NPUPROF_FREESTANDING
    const bool contradicts = result == NPUPROF_ERR_NPU_RESET || result == NPUPROF_ERR_NPU_AMBIGUOUS;
    if (!npuprof_npu_lock_(npu)) return;
    npu->doubts_ = contradicts ? npu->doubts_ + 1 : 0;
    if (npu->doubts_ == 3) {
        if (!npu->has_rate_) npu->desc_.counter.hz = 0;
        npu->has_rate_ = false;
        npu->doubts_ = 0;
    }
    npuprof_npu_unlock_(npu);
#else
    (void)npu, (void)result;
#endif
}

/* The second anchor of an epoch comes soon after the first.
   Why: without a rate nobody can count the wraps of a long gap, and the read after it would begin an epoch of
   one anchor again. */
static void npuprof_npu_take_second_anchor_(npuprof_npu *npu)
{
    const uint64_t begin = npuprof_npu_ticks_(), hz = npu->desc_.counter.hz;
    const uint64_t ticks = hz ? npuprof_npu_mul_div_(npu->second_, 16, hz, true) : 0;
    const uint64_t pause = npuprof_max_(npu->second_ / 10000, npuprof_min_(ticks, npu->second_ / 500));
    bool alone;
    for (uint32_t i = 0; i < (uint32_t)1 << 16; i++)
        if (npuprof_saturating_sub_(npuprof_npu_ticks_(), begin) >= pause) break;
    npuprof_npu_doubt_rate_(npu, npuprof_npu_take_anchor_(npu, &alone));
}

/* The two anchors of a device that is being opened: no other thread has it yet. */
static npuprof_result npuprof_npu_take_first_anchors_(npuprof_npu *npu)
{
    bool stale = false;
    npuprof_result result = npuprof_npu_take_brackets_(npu, &stale);
    if (!npuprof_npu_time_goes_on_(result)) return result;
    if (stale && npu->anchor_count_ == 0) result = npuprof_npu_add_anchor_(npu, &npu->last_);
    if (result != NPUPROF_ERR_TABLE_FULL) npuprof_npu_take_second_anchor_(npu);
    return result == NPUPROF_ERR_TABLE_FULL ? result : NPUPROF_OK;
}

/* Reads the counter for the first time; `add` numbers the device. One that is off or whose counter stands is
   open all the same. NPUPROF_ERR_NPU_NOT_ENABLED: it stands because of a requirement. */
static npuprof_result npuprof_npu_begin_clock_(npuprof_npu *npu, npuprof_result (*add)(npuprof_npu *npu))
{
    npuprof_anchor_ sample;
    npuprof_result result = NPUPROF_OK;
    npu->idle_ = !npuprof_npu_is_pushed_(npu);
    if (npu->idle_) result = npuprof_npu_read_locked_(npu, &sample);
    const bool off = result == NPUPROF_ERR_NPU_OFF;
    if (result == NPUPROF_OK || off) result = add(npu);
    if (result == NPUPROF_OK && npu->idle_ && !off) result = npuprof_npu_take_first_anchors_(npu);
    if (result == NPUPROF_ERR_NPU_OFF) result = NPUPROF_OK;
    if (result != NPUPROF_OK || !npu->idle_ || off) return result;
    result = npuprof_npu_explain_(npu, NPUPROF_ERR_NPU_STOPPED);
    return result == NPUPROF_ERR_NPU_NOT_ENABLED ? result : NPUPROF_OK;
}

/* Where the counter is never read: what is known of it now becomes an anchor. closing: if that is the only
   one, a second one follows from the nominal rate, which may be wrong by a factor of 4: without it nothing
   could be mapped. Why so far ahead: two anchors may not overlap. */
static npuprof_result npuprof_npu_keep_pushed_(npuprof_npu *npu, bool closing)
{
    npuprof_result result = NPUPROF_ERR_NPU_NO_ANCHOR;
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    const uint64_t hz = npu->desc_.counter.hz;
    if (npu->has_last_) result = npuprof_npu_keep_reads_(npu, NULL, true);
    if (closing && npu->anchor_count_ == 1 && hz) {
        npuprof_anchor_ later = npu->anchors_[0];
        const uint64_t host = npuprof_anchor_width_(&later) + npu->second_ / 1000;
        const uint64_t ticks = npuprof_npu_mul_div_(host, 4 * hz, npu->second_, true) + 4;
        later.device_ticks = npuprof_saturating_add_(later.device_ticks, ticks);
        later.host_before += npuprof_npu_mul_div_(ticks, npu->second_, 4 * hz, false);
        later.host_after += npuprof_npu_mul_div_(ticks, 4 * npu->second_, hz, true);
        result = npuprof_npu_add_anchor_(npu, &later);
    }
    npuprof_npu_unlock_(npu);
    return result;
}

NPUPROF_API_ npuprof_result npuprof_npu_sync(npuprof_npu *npu)
{
    bool alone;
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    if (npuprof_npu_is_pushed_(npu)) return npuprof_npu_keep_pushed_(npu, false);
    const npuprof_result result = npuprof_npu_take_anchor_(npu, &alone);
    if (alone && npuprof_npu_time_goes_on_(result)) npuprof_npu_take_second_anchor_(npu);
    return npuprof_npu_explain_(npu, result);
}

/* Takes an anchor because one is due. On a counter that stands still that takes 2 ms, so the next one then
   waits for 64 times as long. Why: there may be a kernel every few microseconds, and each would ask for an
   anchor. */
static npuprof_result npuprof_npu_renew_anchor_(npuprof_npu *npu)
{
    const uint64_t begin = npuprof_npu_ticks_();
    if (begin < NPUPROF_LOAD_(&npu->renew_from_)) return NPUPROF_OK;
    const npuprof_result result = npuprof_npu_sync(npu);
    if (result != NPUPROF_ERR_NPU_STOPPED && result != NPUPROF_ERR_NPU_NOT_ENABLED &&
        result != NPUPROF_ERR_NPU_OFF) return result;
    const uint64_t end = npuprof_npu_ticks_();
    NPUPROF_STORE_(&npu->renew_from_, end + 64 * npuprof_saturating_sub_(end, begin));
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_npu_read(npuprof_npu *npu, uint64_t *ticks)
{
    npuprof_anchor_ sample;
    *ticks = 0;
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    const npuprof_result result = npuprof_npu_read_locked_(npu, &sample);
    npuprof_npu_unlock_(npu);
    *ticks = sample.device_ticks;
    if (result != NPUPROF_OK && npuprof_npu_time_goes_on_(result)) (void)npuprof_npu_sync(npu);
    return npuprof_npu_explain_(npu, result);
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
    uint64_t min, max, now;
    npuprof_anchor_ sample;
    if (!npu->number_) return raw;
    if (c->counts_down) raw = ~raw;
    raw &= npuprof_npu_mask_(c->bits);
    if (c->bits >= 64 || !npuprof_npu_lock_(npu)) return raw;
    const uint64_t host = npuprof_saturating_sub_(npuprof_npu_ticks_(), npu->last_.host_after);
    if (npuprof_npu_predict_(npu, host, host, &min, &max) && max - min <= npuprof_npu_mask_(c->bits) / 16) {
        now = npu->last_.device_ticks + min / 2 + max / 2;
    } else {
        (void)npuprof_npu_read_locked_(npu, &sample);
        now = npu->last_.device_ticks;
    }
    npuprof_npu_unlock_(npu);
    return npuprof_npu_extend_nearest_(raw, c->bits, now);
}

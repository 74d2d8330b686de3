#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "types.h"
#include "mmio.h"

/* Device time: a raw value of the counter becomes ticks of 64 bits that never go back. Wraps are counted by
   the host clock. A reset begins a new epoch. Counters that are dead, torn or stand still are told apart.
   Owns last_, epoch_ and what belongs to them (npuprof_npu in types.h): the caller holds the device's lock.
   May not know what anchors are used for, or a kernel.

   A device with desc.is_on or requirements may stand, and be reset, between any two jobs. An epoch begins
   with a value that went back, or lies behind what the measured rate predicts. One that lies ahead begins
   none: a late counter caught up. Where there is no rate yet, see npuprof_npu_went_on_().
   Until a read has seen the counter move (idle_), nothing is predicted and no anchor is kept.

   How many wraps?
     1. Between the last read and this one lie at least host_min and at most host_max host ticks.
     2. By the rate and its error that is at least min and at most max device ticks (npuprof_npu_predict_).
     3. The values that fit the raw one are a period apart. So if max - min is less than a period, at most one
        of them lies in [min, max]. That one is taken.
     4. If max - min is more than half a period, the number of wraps is called ambiguous: a new epoch
        begins. */

/* Min and max device ticks in host_min to host_max host ticks. False: nothing is known of the rate. */
static bool npuprof_npu_predict_(const npuprof_npu *npu, uint64_t host_min, uint64_t host_max, uint64_t *min,
                                 uint64_t *max)
{
    if (npu->has_rate_) {
        const npuprof_anchor_ *a = &npu->rate_from_, *b = &npu->rate_to_;
        const uint64_t ticks = b->device_ticks - a->device_ticks;
        const uint64_t host = npuprof_anchor_middle_(b) - npuprof_anchor_middle_(a);
        const uint64_t error = npuprof_anchor_error_(a) + npuprof_anchor_error_(b);
        const uint64_t ppm = 100 + 2 * (uint64_t)npu->desc_.max_rate_ppm;
        *min = npuprof_npu_mul_div_(host_min, ticks - 1, npuprof_saturating_add_(host, error), false);
        *max = npuprof_npu_mul_div_(host_max, ticks + 1, npuprof_saturating_sub_(host, error), true);
        *min -= npuprof_npu_mul_div_(*min, npuprof_min_(ppm, 1000000), 1000000, true);
        *max = npuprof_saturating_add_(*max, npuprof_npu_mul_div_(*max, ppm, 1000000, true));
    } else if (npu->desc_.counter.hz) {
        *min = npuprof_npu_mul_div_(host_min, npu->desc_.counter.hz, npu->second_, false);
        *max = npuprof_npu_mul_div_(host_max, npu->desc_.counter.hz, npu->second_, true);
    } else {
        return false;
    }
    if (!npu->has_rate_ || npu->coarse_rate_) {
        *min /= 4;
        *max = npuprof_npu_mul_div_(*max, 4, 1, false);
    }
    *min = npuprof_saturating_sub_(*min, 2);
    *max = npuprof_saturating_add_(*max, 2);
    return true;
}

/* The same from the last read to a moment between two host times. */
static bool npuprof_npu_predict_since_(const npuprof_npu *npu, uint64_t before, uint64_t after, uint64_t *min,
                                       uint64_t *max)
{
    return npuprof_npu_predict_(npu, npuprof_saturating_sub_(before, npu->last_.host_after),
                                npuprof_saturating_sub_(after, npu->last_.host_before), min, max);
}

/* Whether the counter may stand, or begin again, while the host's clock goes on. */
static bool npuprof_npu_may_stand_(const npuprof_npu *npu)
{
    return npu->desc_.is_on || npu->desc_.requirement_count;
}

/* Without a measured rate: whether the counter went on for at most 2 ms, or by what counter.hz says, to an
   eighth of it. Why the lag: a rate is known only after some times that. */
static bool npuprof_npu_went_on_(const npuprof_npu *npu, uint64_t delta, uint64_t host_min, uint64_t host_max)
{
    const uint64_t hz = npu->desc_.counter.hz;
    if (host_max <= npuprof_saturating_add_(npu->second_ / 500, 8 * npu->lag_)) return true;
    if (!hz) return false;
    const uint64_t min = npuprof_npu_mul_div_(host_min, hz, npu->second_, false);
    const uint64_t max = npuprof_npu_mul_div_(host_max, hz, npu->second_, true);
    return delta >= npuprof_saturating_sub_(min - min / 8, 2) &&
           delta <= npuprof_saturating_add_(max, max / 8 + 2);
}

/* The most that a counter may show by now which was reset after the last read. Why the nominal rate, too: the
   measured one, with which it is `most`, is less if the counter stood. */
static inline uint64_t npuprof_npu_most_from_0_(const npuprof_npu *npu, const npuprof_npu_raw_ *raw,
                                                uint64_t most)
{
#ifndef NPUPROF_FREESTANDING
    const uint64_t host = npuprof_saturating_sub_(raw->after, npu->last_.host_before);
    return npuprof_max_(most, npuprof_npu_mul_div_(host, 4 * npu->desc_.counter.hz, npu->second_, true));
#else
    return (void)npu, (void)raw, most;
#endif
}

/* A value that is not as predicted, `delta` ticks ahead of the last one. A clock that was slowed, stopped for
   a while or sped up still goes forward; a reset goes back to something near 0. The two can be told apart
   only where no wrap is possible. True: it went forward. */
static bool npuprof_npu_went_forward_(const npuprof_npu *npu, const npuprof_npu_raw_ *raw, unsigned bits,
                                      uint64_t delta, uint64_t min, uint64_t max)
{
    const uint64_t mask = npuprof_npu_mask_(bits);
    uint64_t second_min, second_max;
    (void)npuprof_npu_predict_(npu, 0, npu->second_, &second_min, &second_max);
    if (!delta) return true;             /* it stands */
    if (delta > mask / 2 || max > mask / 16) return false;
    const uint64_t caught_up = npuprof_saturating_add_(npuprof_npu_mul_div_(max, 8, 1, false), second_max);
    if (npuprof_npu_may_stand_(npu))
        return delta > max && delta <= npuprof_npu_most_from_0_(npu, raw, caught_up) &&
               raw->value > (npu->last_.device_ticks & mask);
    const uint64_t host_min = npuprof_saturating_sub_(raw->before, npu->last_.host_after);
    const bool restarted = delta && delta < min / 2 && raw->value <= max && host_min > npu->second_ / 10;
    if (bits >= 48 && raw->value > npuprof_npu_most_from_0_(npu, raw, caught_up)) return true;
    /* Why: a rate measured over less than a second may be that of a counter that was late all the time. A
       wide counter that was reset goes back. */
    const bool doubtful = npu->has_rate_ && bits >= 48 &&
        (npu->coarse_rate_ || npu->rate_to_.host_after - npu->rate_from_.host_before < npu->second_);
    return !restarted && (delta <= caught_up || doubtful);
}

/* The extended value of a raw one of that many bits. NPUPROF_OK: as predicted, or forward by something that a
   late or changed clock explains. NPUPROF_ERR_NPU_AMBIGUOUS, _RESET: *ticks begins a new epoch. strict:
   NPUPROF_OK for nothing but what is predicted, else NPUPROF_ERR_NPU_AMBIGUOUS. */
static npuprof_result npuprof_npu_place_value_(const npuprof_npu *npu, const npuprof_npu_raw_ *raw,
                                               unsigned bits, bool strict, uint64_t *ticks)
{
    const npuprof_anchor_ *last = &npu->last_;
    const uint64_t mask = npuprof_npu_mask_(bits), delta = (raw->value - last->device_ticks) & mask;
    const uint64_t host_min = npuprof_saturating_sub_(raw->before, last->host_after);
    const uint64_t host_max = npuprof_saturating_sub_(raw->after, last->host_before);
    uint64_t min, max;
    *ticks = last->device_ticks + delta;
    if (npu->idle_ || !npuprof_npu_predict_(npu, host_min, host_max, &min, &max)) {
        if (strict) return NPUPROF_ERR_NPU_AMBIGUOUS;
        if (bits < 48 || delta <= mask / 2) return NPUPROF_OK;
        *ticks = raw->value;
        return NPUPROF_ERR_NPU_RESET;
    }
    if (delta && !npu->has_rate_ && npuprof_npu_may_stand_(npu) &&
        !npuprof_npu_went_on_(npu, delta, host_min, host_max)) {
        if (strict) return NPUPROF_ERR_NPU_AMBIGUOUS;
        *ticks = raw->value;
        return NPUPROF_ERR_NPU_RESET;
    }
    if (bits == 64) {
        if (delta >= min && delta <= max) {
            if (*ticks >= last->device_ticks) return NPUPROF_OK;
            /* All 64 bits have wrapped: there is nothing left to extend to. */
            return strict ? NPUPROF_ERR_NPU_AMBIGUOUS : NPUPROF_ERR_NPU_RESET;
        }
    } else {
        const uint64_t wraps = min > delta ? (min - delta + mask) >> bits : 0;
        const uint64_t placed = delta + (wraps << bits);
        const bool ambiguous = max - min > mask / 2;
        if (ambiguous || placed <= max) {
            *ticks = last->device_ticks + placed;
            return ambiguous ? NPUPROF_ERR_NPU_AMBIGUOUS : NPUPROF_OK;
        }
    }
    if (strict) return NPUPROF_ERR_NPU_AMBIGUOUS;
    if (npuprof_npu_went_forward_(npu, raw, bits, delta, min, max)) return NPUPROF_OK;
    *ticks = raw->value;
    return bits >= 48 && raw->value > last->device_ticks ? NPUPROF_ERR_NPU_AMBIGUOUS : NPUPROF_ERR_NPU_RESET;
}

/* Whether an anchor is later than the last one on both clocks: else the two would give no rate. Brackets that
   are told are wide; the two may overlap. */
static bool npuprof_npu_is_later_(const npuprof_npu *npu, const npuprof_anchor_ *anchor,
                                  const npuprof_anchor_ *last)
{
    if (anchor->device_ticks <= last->device_ticks) return false;
    if (!npuprof_npu_is_pushed_(npu)) return anchor->host_before > last->host_after;
    return anchor->host_before >= last->host_before && anchor->host_after >= last->host_after;
}

/* The best reads of an epoch that is over, and its last one, become its last anchors. Why: what was stamped
   since the anchor before would else lie behind the last one, where nothing bounds it. */
static void npuprof_npu_end_epoch_(npuprof_npu *npu)
{
    npuprof_anchor_ ends[3];
    unsigned count = npuprof_npu_best_reads_(npu, &ends[0], &ends[1]) ? 2 : 0;
    if (!npuprof_npu_is_pushed_(npu)) ends[count++] = npu->last_;
    if (!npu->anchor_count_ || npu->idle_) return;
    const npuprof_anchor_ *last = &npu->anchors_[npu->anchor_count_ - 1];
    for (unsigned i = 0; i < count; i++) {
        if (!npuprof_npu_is_later_(npu, &ends[i], last)) continue;
        (void)npuprof_npu_store_anchor_(npu, &ends[i]);
        last = &ends[i];
    }
}

#if !defined(NPUPROF_FREESTANDING) || defined(NPUPROF_NPU_RECORDS)
/* The most that the counter may have shown since the last read; UINT64_MAX: nobody can tell. Why the nominal
   rate, too: the measured one is less if the counter stood. */
static uint64_t npuprof_npu_most_since_(const npuprof_npu *npu)
{
    const uint64_t now = npuprof_npu_ticks_(), hz = npu->desc_.counter.hz;
    uint64_t min, max;
    if (!npuprof_npu_predict_since_(npu, now, now, &min, &max) || (npuprof_npu_may_stand_(npu) && !hz))
        return UINT64_MAX;
    const uint64_t host = npuprof_saturating_sub_(now, npu->last_.host_before);
    max = npuprof_max_(max, npuprof_npu_mul_div_(host, 2 * hz, npu->second_, true));
    return npuprof_saturating_add_(npu->last_.device_ticks, max);
}
#endif

static void npuprof_npu_new_epoch_(npuprof_npu *npu, npuprof_result why)
{
    npuprof_npu_end_epoch_(npu);
    const bool reset = why == NPUPROF_ERR_NPU_RESET;
    npu->old_epoch_ticks_ = npu->last_.device_ticks;
    npu->old_epoch_host_ = npu->last_.host_after;
#if !defined(NPUPROF_FREESTANDING) || defined(NPUPROF_NPU_RECORDS)
    npu->old_epoch_most_ = npuprof_npu_most_since_(npu);
#endif
    npu->epoch_++;
    npu->anchor_count_ = 0;
    npu->epoch_why_ = why;
    /* Why not of one that may stand: a wide guess would take a stand for a slow clock. */
    if (reset) npu->coarse_rate_ = npu->has_rate_ && !npuprof_npu_may_stand_(npu);
    npuprof_npu_note_(npu, reset ? NPUPROF_NOTE_RESETS : NPUPROF_NOTE_AMBIGUOUS, 1);
}

/* Whether a result leaves a device time that goes on, maybe in a new epoch. */
static bool npuprof_npu_time_goes_on_(npuprof_result result)
{
    return result == NPUPROF_OK || result == NPUPROF_ERR_NPU_RESET || result == NPUPROF_ERR_NPU_AMBIGUOUS;
}

/* All bits were 1, or all were 0: the time, or a device that does not answer. Loads again until that is
   certain. absurd: it cannot be the time unless the counter moves on. True: the device does not answer. */
static bool npuprof_npu_is_dead_(npuprof_npu *npu, npuprof_npu_raw_ *raw, bool absurd)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    /* Bits above the counter's own were 1, too. */
    if (raw->ones && c->bits < c->access && !npu->desc_.read_ticks) return true;
    const uint64_t begin = raw->before;
    const uint64_t allowed = c->hz ? npuprof_min_(npuprof_npu_mul_div_(npu->second_, 4, c->hz, true),
                                                  npu->second_ / 100) : npu->second_ / 1000;
    for (uint32_t i = 0; i < (uint32_t)1 << 16; i++) {
        const bool ones = raw->ones;
        const npuprof_result result = npuprof_npu_load_counter_(npu, c, false, raw);
        if (result != NPUPROF_ERR_NPU_DEAD &&
            (result != NPUPROF_OK || !(ones ? raw->ones : raw->zeros))) return false;
        if (absurd || npuprof_saturating_sub_(raw->before, begin) > allowed) return true;
    }
    return false;
}

/* Where divisions are slow: finds out, from the rate between the last two anchors, by which power of two host
   ticks are to be multiplied to give about the device ticks, and up to how many host ticks that is enough to
   count no wrap. */
static void npuprof_npu_set_fast_(npuprof_npu *npu)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    const uint64_t max = npuprof_npu_mask_(npuprof_npu_is_split_(c) ? npuprof_npu_low_bits_(c) : c->bits) / 8;
    const uint64_t ticks = npu->rate_to_.device_ticks - npu->rate_from_.device_ticks;
    uint64_t host = npuprof_anchor_middle_(&npu->rate_to_) - npuprof_anchor_middle_(&npu->rate_from_);
    int shift = 0;
    for (; host < ticks && shift < 30; shift++) host <<= 1;
    for (; host / 2 >= ticks && shift > -30; shift--) host /= 2;
    npu->fast_shift_ = shift;
    if (host < ticks) npu->fast_host_ticks_ = 0;
    else if (shift >= 0) npu->fast_host_ticks_ = max >> shift;
    else npu->fast_host_ticks_ = max > UINT64_MAX >> -shift ? UINT64_MAX : max << -shift;
}

static uint64_t npuprof_npu_shift_(uint64_t host, int shift)
{
    return shift >= 0 ? host << shift : host >> -shift;
}

/* The fast path of a read, without a division. False: it does not do; the last read is too long ago, or the
   counter went on at less than a quarter of the rate, or more than four times it. */
static bool npuprof_npu_read_fast_(npuprof_npu *npu)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    const npuprof_anchor_ *last = &npu->last_;
    const bool split = npuprof_npu_is_split_(c);
    npuprof_npu_raw_ raw;
    if (!npu->has_last_ || !npu->has_rate_ || npu->coarse_rate_ ||
        npuprof_npu_ticks_() - last->host_before >= npu->fast_host_ticks_) return false;
    if (npuprof_npu_load_counter_(npu, c, split, &raw) != NPUPROF_OK || raw.ones || raw.zeros) return false;
    const unsigned bits = split ? npuprof_npu_low_bits_(c) : c->bits;
    const uint64_t delta = (raw.value - last->device_ticks) & npuprof_npu_mask_(bits);
    const uint64_t host_max = raw.after - last->host_before;
    const uint64_t host_min = npuprof_saturating_sub_(raw.before, last->host_after);
    const uint64_t min = npuprof_npu_shift_(host_min, npu->fast_shift_);
    const uint64_t max = npuprof_npu_shift_(host_max, npu->fast_shift_);
    if (host_max >= npu->fast_host_ticks_) return false;
    if (!delta || delta > 2 * max + 2 || delta + 2 < min / 4) return false;
    npu->last_.device_ticks += delta;
    npu->last_.host_before = raw.before;
    npu->last_.host_after = raw.after;
    return true;
}

/* Whether a value is ahead of the last one, but by less than predicted: the counter stood or was slowed, as
   far as anybody can tell. */
static inline bool npuprof_npu_fell_behind_(const npuprof_npu *npu, const npuprof_npu_raw_ *raw)
{
#ifndef NPUPROF_FREESTANDING
    const uint64_t mask = npuprof_npu_mask_(npu->desc_.counter.bits);
    const uint64_t delta = (raw->value - npu->last_.device_ticks) & mask;
    uint64_t min, max;
    return npu->has_last_ && !npuprof_npu_may_stand_(npu) &&
           npuprof_npu_predict_since_(npu, raw->before, raw->after, &min, &max) && delta < min;
#else
    return (void)npu, (void)raw, false;
#endif
}

/* Loads the low word of a split counter where that alone tells the time. False: it does not.
   Why only where it cannot have come round: the first rate may be that of a counter that stood and then
   caught up, many times the true one. */
static bool npuprof_npu_read_low_(npuprof_npu *npu, npuprof_npu_raw_ *raw, uint64_t *ticks)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    uint64_t min, max;
    if (!npu->has_last_ || npu->idle_ || !npuprof_npu_is_split_(c)) return false;
    const uint64_t now = npuprof_npu_ticks_();
    if (!npuprof_npu_predict_since_(npu, now, now, &min, &max)) return false;
    return max < npuprof_npu_mask_(npuprof_npu_low_bits_(c)) / 2 &&
           npuprof_npu_load_counter_(npu, c, true, raw) == NPUPROF_OK &&
           npuprof_npu_place_value_(npu, raw, npuprof_npu_low_bits_(c), true, ticks) == NPUPROF_OK;
}

/* Loads the whole counter and extends it. Results as npuprof_npu_place_value_(), and _NPU_DEAD, _NPU_TORN. */
static npuprof_result npuprof_npu_read_whole_(npuprof_npu *npu, npuprof_npu_raw_ *raw, uint64_t *ticks)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    const bool has_last = npu->has_last_, may_be_zero = npu->idle_ || npuprof_npu_may_stand_(npu);
    npuprof_result result = NPUPROF_OK;
    for (int i = 0; i < 2; i++) {        /* Why twice: another program's read may have moved a latch. */
        result = npuprof_npu_load_counter_(npu, c, false, raw);
        if (result != NPUPROF_OK) {
            const bool dead = result == NPUPROF_ERR_NPU_DEAD;
            npuprof_npu_note_(npu, dead ? NPUPROF_NOTE_DEAD_READS : NPUPROF_NOTE_TORN_READS, 1);
            return result;
        }
        const bool predicted =
            has_last && npuprof_npu_place_value_(npu, raw, c->bits, true, ticks) == NPUPROF_OK &&
            *ticks != npu->last_.device_ticks;
        const bool absurd =
            (has_last && npuprof_npu_place_value_(npu, raw, c->bits, false, ticks) != NPUPROF_OK) ||
            (raw->ones && c->bits >= 48 && !c->counts_down);
        const bool doubtful = raw->ones || (raw->zeros && !may_be_zero);
        if (doubtful && !predicted && npuprof_npu_is_dead_(npu, raw, absurd)) {
            npuprof_npu_note_(npu, NPUPROF_NOTE_DEAD_READS, 1);
            return NPUPROF_ERR_NPU_DEAD;
        }
        *ticks = raw->value;
        if (has_last) result = npuprof_npu_place_value_(npu, raw, c->bits, false, ticks);
        if (result == NPUPROF_OK) break;
    }
    return result;
}

/* The counter shows the value of the last read. NPUPROF_ERR_NPU_STOPPED if it should have moved for 100 ms.
   */
static npuprof_result npuprof_npu_stands_still_(const npuprof_npu *npu, const npuprof_npu_raw_ *raw)
{
    const uint64_t still = npuprof_saturating_sub_(raw->before, npu->last_.host_after);
    uint64_t min = 0, max;
    const bool known = npuprof_npu_predict_(npu, still, still, &min, &max);
    return still >= npu->second_ / 10 && (!known || min >= 16) ? NPUPROF_ERR_NPU_STOPPED : NPUPROF_OK;
}

/* Device time now where it cannot be read. NPUPROF_ERR_NPU_NO_ANCHOR: nobody can tell. */
static npuprof_result npuprof_npu_predict_now_(const npuprof_npu *npu, npuprof_anchor_ *sample)
{
    const uint64_t now = npuprof_npu_ticks_();
    uint64_t min, max;
    if (!npu->has_last_ || !npuprof_npu_predict_since_(npu, now, now, &min, &max))
        return NPUPROF_ERR_NPU_NO_ANCHOR;
    sample->device_ticks = npuprof_saturating_add_(npu->last_.device_ticks, min / 2 + max / 2);
    sample->host_before = sample->host_after = now;
    return NPUPROF_OK;
}

/* Reads the counter and moves last_. *sample: ticks and bracket. Results as npuprof_npu_read(), but for
   _BUSY. Where anchors are pushed there is nothing to read: the value is what they predict. */
static npuprof_result npuprof_npu_read_locked_(npuprof_npu *npu, npuprof_anchor_ *sample)
{
    const unsigned bits = npu->desc_.counter.bits;
    npuprof_npu_raw_ raw;
    npuprof_result result = NPUPROF_OK;
    uint64_t ticks = 0;
    *sample = npu->last_;
    if (npuprof_npu_is_pushed_(npu)) return npuprof_npu_predict_now_(npu, sample);
    if (!npuprof_npu_is_on_(npu)) return NPUPROF_ERR_NPU_OFF;
    if (!NPUPROF_NPU_DIVIDES_ && npuprof_npu_read_fast_(npu)) {
        *sample = npu->last_;
        return NPUPROF_OK;
    }
    if (!npuprof_npu_read_low_(npu, &raw, &ticks)) result = npuprof_npu_read_whole_(npu, &raw, &ticks);
    if (!npuprof_npu_time_goes_on_(result)) return result;
    if (result == NPUPROF_OK && npu->has_last_ && ticks == npu->last_.device_ticks) {
        sample->host_before = raw.before;
        sample->host_after = raw.after;
        return npuprof_npu_stands_still_(npu, &raw);
    }
    if (result != NPUPROF_OK) {
        if (npuprof_npu_fell_behind_(npu, &raw)) npuprof_npu_set_unsteady_(npu);
        npuprof_npu_new_epoch_(npu, result);
    } else if (npu->has_last_ && bits < 64) {
        const uint64_t wraps = (ticks >> bits) - (npu->last_.device_ticks >> bits);
        if (wraps) npuprof_npu_note_(npu, NPUPROF_NOTE_WRAPS, wraps);
    }
    if (npu->has_last_) npu->idle_ = false;
    npu->has_last_ = true;
    npu->last_.device_ticks = ticks;
    npu->last_.host_before = raw.before;
    npu->last_.host_after = raw.after;
    *sample = npu->last_;
    npuprof_npu_weigh_read_(npu, &npu->last_);
    return result;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "../format/compact.h"
#include "../numbers/wide.h"
#include "../os/common.h"
#include "../control/start.h"
#include "../clock/device_map.h"
#include "types.h"
#include "mmio.h"
#include "map.h"

/* What follows keeps last_, the epoch and the anchors of a device; whoever calls it holds the lock. false: a signal handler asks
   that interrupted the owner, or the owner has not run for seconds. */
#ifdef NPUPROF_FREESTANDING
static bool npuprof_npu_lock_(npuprof_npu *npu)
{
#if NPUPROF_MASKS_
    const npuprof_os_mask_ before = npuprof_os_mask_interrupts_();
    const bool is_free = npu->lock_ == 0;
    npu->lock_ = 1;
    npuprof_os_unmask_interrupts_(before);
    return is_free;
#else
    uintptr_t owner = 0;
    return NPUPROF_CAS_(&npu->lock_, &owner, (uintptr_t)1);
#endif
}
static void npuprof_npu_unlock_(npuprof_npu *npu)
{
    NPUPROF_SIGNAL_FENCE_();
#if NPUPROF_MASKS_
    NPUPROF_STORE_(&npu->lock_, (uintptr_t)0);
#else
    NPUPROF_STORE_RELEASE_(&npu->lock_, (uintptr_t)0);
#endif
}
#else
/* Why naps: an owner that was preempted may need this very CPU. Why an end: the owner may be a thread that a fork() left behind, or
   wait itself, in a signal handler, for what this thread holds. */
static bool npuprof_npu_lock_(npuprof_npu *npu)
{
    enum { spins = 1000, naps = 1000, seconds = 5 };
    const uintptr_t me = npuprof_slot_me_();
    uint64_t begin = 0;
    for (uint32_t i = 0;; i++) {
        uintptr_t owner = NPUPROF_LOAD_(&npu->lock_);
        if (owner == me) return false;
        if (owner == 0 && NPUPROF_CAS_(&npu->lock_, &owner, me)) return true;
        if (i < spins) continue;
        if (i == spins) begin = npuprof_ticks_();
        if (i >= spins + naps && npuprof_saturating_sub_(npuprof_ticks_(), begin) >= seconds * npu->second_) return false;
        npuprof_os_yield_();
    }
}
static void npuprof_npu_unlock_(npuprof_npu *npu) { NPUPROF_STORE_RELEASE_(&npu->lock_, (uintptr_t)0); }
#endif

/* Least and most device ticks in a span of host ticks. False: nothing is known of the rate. */
static bool npuprof_npu_predict_(const npuprof_npu *npu, uint64_t host_least, uint64_t host_most, uint64_t *least, uint64_t *most)
{
    if (npu->has_rate_) {
        const npuprof_anchor_ *a = &npu->rate_from_, *b = &npu->rate_to_;
        const uint64_t ticks = b->device_ticks - a->device_ticks;
        const uint64_t host = npuprof_anchor_middle_(b) - npuprof_anchor_middle_(a), error = npuprof_anchor_error_(a) + npuprof_anchor_error_(b);
        const uint64_t ppm = 100 + 2 * (uint64_t)npu->desc_.max_rate_ppm;
        *least = npuprof_mul_div_(host_least, ticks - 1, npuprof_saturating_add_(host, error), false);
        *most = npuprof_mul_div_(host_most, ticks + 1, npuprof_saturating_sub_(host, error), true);
        *least -= npuprof_mul_div_(*least, npuprof_min_(ppm, 1000000), 1000000, true);
        *most = npuprof_saturating_add_(*most, npuprof_mul_div_(*most, ppm, 1000000, true));
    } else if (npu->desc_.counter.hz) {
        *least = npuprof_mul_div_(host_least, npu->desc_.counter.hz, npu->second_, false);
        *most = npuprof_mul_div_(host_most, npu->desc_.counter.hz, npu->second_, true);
    } else {
        return false;
    }
    if (!npu->has_rate_ || npu->coarse_rate_) {
        *least /= 4;
        *most = npuprof_mul_div_(*most, 4, 1, false);
    }
    *least = npuprof_saturating_sub_(*least, 2);
    *most = npuprof_saturating_add_(*most, 2);
    return true;
}

/* Where a raw value of that many bits lies: *ticks, extended. NPUPROF_OK: as expected, or forward by something a late or
   changed clock explains. NPUPROF_ERR_NPU_AMBIGUOUS, _RESET: *ticks begins a new epoch. strict: nothing but as expected. */
static npuprof_result npuprof_npu_place_value_(const npuprof_npu *npu, const npuprof_npu_raw_ *raw, unsigned bits, bool strict, uint64_t *ticks)
{
    const npuprof_anchor_ *last = &npu->last_;
    const uint64_t mask = npuprof_npu_mask_(bits), delta = (raw->value - last->device_ticks) & mask;
    const uint64_t host_least = npuprof_saturating_sub_(raw->before, last->host_after), host_most = npuprof_saturating_sub_(raw->after, last->host_before);
    uint64_t least, most, stall_least, stall_most;
    *ticks = last->device_ticks + delta;
    if (!npuprof_npu_predict_(npu, host_least, host_most, &least, &most)) {
        if (strict) return NPUPROF_ERR_NPU_AMBIGUOUS;
        if (bits < 48 || delta <= mask / 2) return NPUPROF_OK;
        *ticks = raw->value;
        return NPUPROF_ERR_NPU_RESET;
    }
    if (bits == 64) {
        if (delta >= least && delta <= most) {
            if (*ticks >= last->device_ticks) return NPUPROF_OK;
            return strict ? NPUPROF_ERR_NPU_AMBIGUOUS : NPUPROF_ERR_NPU_RESET;   /* all 64 bits wrapped: nothing left to extend to */
        }
    } else {
        const uint64_t wraps = least > delta ? (least - delta + mask) >> bits : 0;
        const uint64_t placed = delta + (wraps << bits);
        if (most - least > mask / 2) {
            *ticks = last->device_ticks + placed;
            return NPUPROF_ERR_NPU_AMBIGUOUS;
        }
        if (placed <= most) {
            *ticks = last->device_ticks + placed;
            return NPUPROF_OK;
        }
    }
    if (strict) return NPUPROF_ERR_NPU_AMBIGUOUS;
    /* Not as expected. A clock that was slowed, stopped for a while or sped up still goes forward; a reset goes back to
       something near 0. Only told apart where no wrap comes into question. */
    (void)npuprof_npu_predict_(npu, 0, npu->second_, &stall_least, &stall_most);
    if (delta <= mask / 2 && most <= mask / 16) {
        const bool restarted = delta && delta < least / 2 && raw->value <= most && host_least > npu->second_ / 10;
        const uint64_t rush = npuprof_saturating_add_(npuprof_mul_div_(most, 8, 1, false), stall_most);
        /* Why: a rate of less than a second may be that of a counter which was late all the time. A wide counter that was reset
           goes back. */
        const bool doubtful = npu->has_rate_ && bits >= 48 &&
                              (npu->coarse_rate_ || npu->rate_to_.host_after - npu->rate_from_.host_before < npu->second_);
        if (!restarted && (delta <= rush || doubtful)) return NPUPROF_OK;
    }
    *ticks = raw->value;
    return NPUPROF_ERR_NPU_RESET;
}

static void npuprof_npu_note_(const npuprof_npu *npu, unsigned note, uint64_t add)
{
#ifndef NPUPROF_FREESTANDING
    if (npu->number_) npuprof_device_note_(npu->number_, note, add);
#else   /* Why not the wraps: the host sees them in the ticks. */
    const uint64_t values[3] = { add, note, npu->number_ };
    const npuprof_args none = { NULL, 0 };
    if (npu->number_ && note != NPUPROF_NOTE_WRAPS) npuprof_npu_put_record_(NPUPROF_NPU_NAME_OF_(npu), NPUPROF_CELL_KIND_COUNT_, values, none);
#endif
}

static void npuprof_npu_new_epoch_(npuprof_npu *npu, npuprof_result why)
{
    const bool reset = why == NPUPROF_ERR_NPU_RESET;
    npu->old_epoch_ticks_ = npu->last_.device_ticks;
    npu->epoch_++;
    npu->anchor_count_ = 0;
    npu->epoch_why_ = why;
    if (reset) npu->coarse_rate_ = npu->has_rate_;
    npuprof_npu_note_(npu, reset ? NPUPROF_NOTE_RESETS : NPUPROF_NOTE_AMBIGUOUS, 1);
}

/* All zeros or ones that may or may not be the time: loads until that is certain. absurd: they cannot be the time, unless
   the counter moves on. True: nobody is there. */
static bool npuprof_npu_is_dead_(npuprof_npu *npu, npuprof_npu_raw_ *raw, bool absurd)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    if (raw->ones && c->bits < c->access && !npu->desc_.read_ticks) return true;   /* bits that the counter does not have */
    const uint64_t begin = raw->before;
    const uint64_t allowed = c->hz ? npuprof_min_(npuprof_mul_div_(npu->second_, 4, c->hz, true), npu->second_ / 100) : npu->second_ / 1000;
    for (uint32_t i = 0; i < (uint32_t)1 << 16; i++) {
        const bool ones = raw->ones;
        const npuprof_result result = npuprof_npu_load_counter_(npu, c, false, raw);
        if (result != NPUPROF_ERR_NPU_DEAD && (result != NPUPROF_OK || !(ones ? raw->ones : raw->zeros))) return false;
        if (absurd || npuprof_saturating_sub_(raw->before, begin) > allowed) return true;
    }
    return false;
}

/* A result for the user: why a device is dead, where its configuration space tells. */
static npuprof_result npuprof_npu_explain_result_(const npuprof_npu *npu, npuprof_result result)
{
    const npuprof_result state = result == NPUPROF_ERR_NPU_DEAD ? npuprof_npu_pci_state_(npu) : NPUPROF_OK;
    return state == NPUPROF_OK ? result : state;
}

#ifdef NPUPROF_FREESTANDING
/* How long, and by which power of two, a read can do without divisions: from the rate between the last two anchors. */
static void npuprof_npu_set_fast_(npuprof_npu *npu)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    const uint64_t most = npuprof_npu_mask_(npuprof_npu_is_split_(c) ? c->access : c->bits) / 8;
    const uint64_t ticks = npu->rate_to_.device_ticks - npu->rate_from_.device_ticks;
    uint64_t host = npuprof_anchor_middle_(&npu->rate_to_) - npuprof_anchor_middle_(&npu->rate_from_);
    int shift = 0;
    for (; host < ticks && shift < 30; shift++) host <<= 1;
    for (; host / 2 >= ticks && shift > -30; shift--) host /= 2;
    npu->quick_shift_ = shift;
    npu->quick_ = host < ticks ? 0 : shift >= 0 ? most >> shift : most > UINT64_MAX >> -shift ? UINT64_MAX : most << -shift;
}
/* Reads the counter where that is enough: the last read is near, and the counter went on at a quarter of the rate to four times it. */
static bool npuprof_npu_read_fast_(npuprof_npu *npu)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    const npuprof_anchor_ *last = &npu->last_;
    const bool split = npuprof_npu_is_split_(c);
    const int shift = npu->quick_shift_;
    npuprof_npu_raw_ raw;
    if (!npu->has_last_ || !npu->has_rate_ || npu->coarse_rate_ || npuprof_ticks_() - last->host_before >= npu->quick_) return false;
    if (npuprof_npu_load_counter_(npu, c, split, &raw) != NPUPROF_OK || raw.ones || raw.zeros) return false;
    const uint64_t delta = (raw.value - last->device_ticks) & npuprof_npu_mask_(split ? c->access : c->bits);
    const uint64_t host_least = npuprof_saturating_sub_(raw.before, last->host_after), host_most = raw.after - last->host_before;
    const uint64_t least = shift >= 0 ? host_least << shift : host_least >> -shift, most = shift >= 0 ? host_most << shift : host_most >> -shift;
    if (host_most >= npu->quick_ || !delta || delta > 2 * most + 2 || delta + 2 < least / 4) return false;
    npu->last_.device_ticks += delta;
    npu->last_.host_before = raw.before;
    npu->last_.host_after = raw.after;
    return true;
}
#endif

/* Reads the counter and moves last_. *sample: ticks and bracket. See npuprof_npu_read() for the results. */
static npuprof_result npuprof_npu_read_locked_(npuprof_npu *npu, npuprof_anchor_ *sample)
{
    const npuprof_npu_counter *c = &npu->desc_.counter;
    npuprof_npu_raw_ raw;
    npuprof_result result = NPUPROF_OK;
    uint64_t ticks = 0;
    bool placed = false;
#ifdef NPUPROF_FREESTANDING
    if (npuprof_npu_read_fast_(npu)) {
        *sample = npu->last_;
        return NPUPROF_OK;
    }
#endif
    *sample = npu->last_;
    if (npu->has_last_ && npuprof_npu_is_split_(c)) {            /* one load where it is enough */
        const uint64_t now = npuprof_ticks_();
        uint64_t least, most;
        if (npuprof_npu_predict_(npu, npuprof_saturating_sub_(now, npu->last_.host_after), npuprof_saturating_sub_(now, npu->last_.host_before), &least, &most) &&
            most - least < npuprof_npu_mask_(c->access) / 8) {
            result = npuprof_npu_load_counter_(npu, c, true, &raw);
            placed = result == NPUPROF_OK && npuprof_npu_place_value_(npu, &raw, c->access, true, &ticks) == NPUPROF_OK;
        }
    }
    for (int i = 0; i < 2 && !placed; i++) {     /* Why twice: a foreign read may have moved a latch */
        result = npuprof_npu_load_counter_(npu, c, false, &raw);
        if (result != NPUPROF_OK) {
            npuprof_npu_note_(npu, result == NPUPROF_ERR_NPU_DEAD ? NPUPROF_NOTE_DEAD_READS : NPUPROF_NOTE_TORN_READS, 1);
            return result;
        }
        const bool expected = npu->has_last_ && npuprof_npu_place_value_(npu, &raw, c->bits, true, &ticks) == NPUPROF_OK && ticks != npu->last_.device_ticks;
        const bool absurd = (npu->has_last_ && npuprof_npu_place_value_(npu, &raw, c->bits, false, &ticks) != NPUPROF_OK) ||
                            (raw.ones && c->bits >= 48 && !c->counts_down);
        if ((raw.ones || raw.zeros) && !expected && npuprof_npu_is_dead_(npu, &raw, absurd)) {
            npuprof_npu_note_(npu, NPUPROF_NOTE_DEAD_READS, 1);
            return NPUPROF_ERR_NPU_DEAD;
        }
        ticks = raw.value;
        result = npu->has_last_ ? npuprof_npu_place_value_(npu, &raw, c->bits, false, &ticks) : NPUPROF_OK;
        placed = result == NPUPROF_OK;
    }
    if (result == NPUPROF_OK && npu->has_last_ && ticks == npu->last_.device_ticks) {
        uint64_t least = 0, most;
        const uint64_t still = npuprof_saturating_sub_(raw.before, npu->last_.host_after);
        sample->host_before = raw.before;
        sample->host_after = raw.after;
        const bool known = npuprof_npu_predict_(npu, still, still, &least, &most);
        return still >= npu->second_ / 10 && (!known || least >= 16) ? NPUPROF_ERR_NPU_STOPPED : NPUPROF_OK;
    }
    if (result != NPUPROF_OK) {
        npuprof_npu_new_epoch_(npu, result);
    } else if (npu->has_last_ && c->bits < 64) {
        const uint64_t wraps = (ticks >> c->bits) - (npu->last_.device_ticks >> c->bits);
        if (wraps) npuprof_npu_note_(npu, NPUPROF_NOTE_WRAPS, wraps);
    }
    npu->has_last_ = true;
    npu->last_.device_ticks = ticks;
    npu->last_.host_before = raw.before;
    npu->last_.host_after = raw.after;
    *sample = npu->last_;
    return result;
}

#ifndef NPUPROF_FREESTANDING
/* Loads the event counters. Bit n of the result: value[n] is good. */
static uint32_t npuprof_npu_load_pmu_(npuprof_npu *npu, uint64_t *value)
{
    npuprof_npu_raw_ raw;
    uint32_t good = 0;
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++) {
        if (npuprof_npu_load_counter_(npu, &npu->pmu_[i].is.counter, false, &raw) != NPUPROF_OK) continue;
        value[i] = raw.value;
        good |= 1u << i;
    }
    return good;
}

/* Turns what was loaded in this epoch into totals. Under the lock. */
static void npuprof_npu_add_pmu_(npuprof_npu *npu, uint32_t good, uint64_t *value)
{
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++) {
        npuprof_npu_pmu_state_ *p = &npu->pmu_[i];
        if (!(good >> i & 1)) continue;
        if (p->epoch == npu->epoch_ + 1) p->total += (value[i] - p->raw) & npuprof_npu_mask_(p->is.counter.bits);
        p->epoch = npu->epoch_ + 1;
        p->raw = value[i];
        value[i] = p->total;
    }
}

/* Their tracks. */
static void npuprof_npu_draw_pmu_(npuprof_npu *npu, uint32_t good, const uint64_t *total)
{
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++) if (good >> i & 1) npuprof_event_now_(&npu->pmu_[i].site, total[i]);
}

#endif

/* The rate of the anchors: over the longest stretch up to the last one that does not contradict the last interval. */
static void npuprof_npu_measure_rate_(npuprof_npu *npu)
{
    if (npu->anchor_count_ < 2) return;
    const npuprof_anchor_ *to = &npu->anchors_[npu->anchor_count_ - 1], *from = to - 1;
#ifndef NPUPROF_FREESTANDING
    const uint64_t ticks = to->device_ticks - from->device_ticks, wander = 2000 * (uint64_t)npu->desc_.max_rate_ppm;
    const npuprof_map_range_ newest = npuprof_map_range_between_(from, to, wander, ticks);
    for (const npuprof_anchor_ *a = from; a > npu->anchors_; a--) {
        if (npuprof_map_ranges_apart_(newest, npuprof_map_range_between_(a - 1, to, wander, ticks))) break;
        from = a - 1;
    }
#endif
    if (npuprof_anchor_middle_(to) - npuprof_anchor_middle_(from) <= 4 * (npuprof_anchor_error_(from) + npuprof_anchor_error_(to))) return;
    if (to->device_ticks - from->device_ticks < 4) return;
    npu->rate_from_ = *from;
    npu->rate_to_ = *to;
    npu->has_rate_ = true;
    npu->coarse_rate_ = false;
#ifdef NPUPROF_FREESTANDING
    npuprof_npu_set_fast_(npu);
#endif
}

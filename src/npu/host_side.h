#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "../numbers/wide.h"
#include "../os/common.h"
#include "../record/device.h"
#include "../control/start.h"
#include "types.h"
#include "map/map.h"

/* What the parts for both sides ask of a host; firmware_side.h defines the same functions for firmware. Here:
   the lock of a device, its records in the arena, its results. May not know how a counter is read.

   lock_: 0 = free, else the thread that holds it. It is taken by compare-and-swap and given back with release
   order, so what it guards (npuprof_npu in types.h) needs no atomics. queue_lock_ is the same for records. */

static inline uint64_t npuprof_npu_ticks_(void) { return npuprof_ticks_(); }

/* Whether device time comes from npuprof_npu_anchor() and causality: the counter is never read. */
static inline bool npuprof_npu_is_pushed_(const npuprof_npu *npu) { return npu->desc_.anchors_only; }

static inline uint64_t npuprof_npu_mul_div_(uint64_t a, uint64_t b, uint64_t c, bool up)
{
    return npuprof_mul_div_(a, b, c, up);
}

/* False: the caller is a signal handler that interrupted the holder, or the holder has not run for 5 seconds.
   Why it yields: a holder that was preempted may need this very CPU.
   Why it gives up: the holder may be a thread that a fork() left behind, or may itself wait, in a signal
   handler, for something that this thread holds. */
static bool npuprof_npu_lock_word_(const npuprof_npu *npu, uintptr_t *word)
{
    enum { spins = 1000, yields = 1000, seconds = 5 };
    const uintptr_t me = npuprof_slot_me_();
    uint64_t begin = 0;
    for (uint32_t i = 0;; i++) {
        uintptr_t owner = NPUPROF_LOAD_(word);
        if (owner == me) return false;
        if (owner == 0 && NPUPROF_CAS_(word, &owner, me)) return true;
        if (i < spins) continue;
        if (i == spins) begin = npuprof_ticks_();
        if (i >= spins + yields &&
            npuprof_saturating_sub_(npuprof_ticks_(), begin) >= seconds * npu->second_) return false;
        npuprof_os_yield_();
    }
}

static bool npuprof_npu_lock_(npuprof_npu *npu) { return npuprof_npu_lock_word_(npu, &npu->lock_); }

static void npuprof_npu_unlock_(npuprof_npu *npu) { NPUPROF_STORE_RELEASE_(&npu->lock_, (uintptr_t)0); }

/* The same for records. Who needs both locks takes this one first. */
static bool npuprof_npu_lock_queue_(npuprof_npu *npu)
{
    return npuprof_npu_lock_word_(npu, &npu->queue_lock_);
}

/* False: somebody holds it. */
static bool npuprof_npu_try_queue_(npuprof_npu *npu)
{
    uintptr_t nobody = 0;
    return NPUPROF_CAS_(&npu->queue_lock_, &nobody, npuprof_slot_me_());
}

static void npuprof_npu_unlock_queue_(npuprof_npu *npu)
{
    NPUPROF_STORE_RELEASE_(&npu->queue_lock_, (uintptr_t)0);
}

/* Stores `to` in a word that is `was`. False: it is not. */
static inline bool npuprof_npu_replace_word_(uint32_t *word, uint32_t was, uint32_t to)
{
    return NPUPROF_CAS_(word, &was, to);
}

static inline void npuprof_npu_count_load_(npuprof_npu *npu) { NPUPROF_ADD_(&npu->mmio_reads, 1u); }

/* Whether a fault took the mapping away. */
static inline bool npuprof_npu_is_gone_(const npuprof_npu *npu) { return NPUPROF_LOAD_(&npu->gone_) != 0; }

/* Adds to one of the device's tallies, NPUPROF_NOTE_*. */
static void npuprof_npu_note_(const npuprof_npu *npu, unsigned note, uint64_t add)
{
    if (npu->number_) npuprof_device_note_(npu->number_, note, add);
}

/* An epoch ends because the clock stood, or its rate changed, and nobody knows when. */
static void npuprof_npu_set_unsteady_(npuprof_npu *npu)
{
    NPUPROF_STORE_(&npu->is_unsteady_, true);
    npuprof_device_flag_(npu->number_, NPUPROF_DEVICE_UNSTEADY_);
}

/* Stores an anchor of this epoch in the arena. */
static npuprof_result npuprof_npu_store_anchor_(const npuprof_npu *npu, const npuprof_anchor_ *anchor)
{
    return npuprof_device_anchor_(npu->number_, npu->epoch_, anchor);
}

/* A result for the user: why a device is dead, where its PCI configuration space tells. */
static npuprof_result npuprof_npu_explain_result_(const npuprof_npu *npu, npuprof_result result)
{
    const npuprof_result state = result == NPUPROF_ERR_NPU_DEAD ? npuprof_npu_pci_state_(npu) : NPUPROF_OK;
    return state == NPUPROF_OK ? result : state;
}

/* A counter that cannot be: which of its members does not fit. */
static npuprof_result npuprof_npu_wrong_counter_(const char *why)
{
    return npuprof_os_explain_(NPUPROF_ERR_NPU_COUNTER, "NPUPROF_ERR_NPU_COUNTER: a counter's %s", why);
}

/* A counter that stands because of a requirement that does not hold: the result, and its sentence. */
static npuprof_result npuprof_npu_not_enabled_(const npuprof_npu_requirement *unmet, uint64_t word)
{
    unsigned lsb = 0;
    while (lsb < 63 && !(unmet->mask >> lsb & 1)) lsb++;
    return npuprof_os_explain_(NPUPROF_ERR_NPU_NOT_ENABLED,
                               "NPUPROF_ERR_NPU_NOT_ENABLED: the device's counter stands until %s is %llu, "
                               "and it is %llu", unmet->text, (unsigned long long)(unmet->value >> lsb),
                               (unsigned long long)((word & unmet->mask) >> lsb));
}

/* ---- The rate between two clock anchors, and what follows from it for a distance

   Notation: an anchor's device ticks were read between its two host stamps. Its middle is off by at most e,
   half of their distance. H, T: host and device ticks from one anchor to another. E: the sum of their e.
     R1  A counter shows whole ticks: if it counted n, between n - 1 and n + 1 passed.
     R2  (H - E) / (T + 1) <= average slope between the two <= (H + E) / (T - 1)                  by R1
     R3  If the slope stays within r of a centre, two slopes differ by at most w = 2 r / (1 - r) of either. So
         n device ticks near the two take
            min = (H - E) (n - 1) / (T + 1) (1 - w)   and   max = (H + E) (n + 1) / (T - 1) (1 + w) */

/* The host ticks that pass in some device ticks. */
typedef struct npuprof_npu_range_ { uint64_t min, max; } npuprof_npu_range_;

/* The host ticks in a distance of n device ticks, by the slope between two anchors (R2, R3). */
static npuprof_npu_range_ npuprof_npu_range_between_(const npuprof_npu *npu, const npuprof_anchor_ *a,
                                                     const npuprof_anchor_ *b, uint64_t n)
{
    const uint64_t ticks = npuprof_saturating_sub_(b->device_ticks, a->device_ticks);
    const uint64_t error = npuprof_anchor_error_(a) + npuprof_anchor_error_(b);
    const uint64_t host = npuprof_saturating_sub_(npuprof_anchor_middle_(b), npuprof_anchor_middle_(a));
    const uint64_t drift_ppb = 2000 * (uint64_t)npu->desc_.max_rate_ppm;
    npuprof_npu_range_ r;
    r.min = npuprof_mul_div_(npuprof_saturating_sub_(host, error), npuprof_saturating_sub_(n, 1),
                             npuprof_saturating_add_(ticks, 1), false);
    r.min = npuprof_saturating_sub_(r.min, npuprof_mul_div_(r.min, drift_ppb, 1000000000, true));
    r.max = npuprof_mul_div_(npuprof_saturating_add_(host, error), npuprof_saturating_add_(n, 1),
                             npuprof_saturating_sub_(ticks, 1), true);
    r.max = npuprof_saturating_add_(r.max, npuprof_mul_div_(r.max, drift_ppb, 1000000000, true));
    return r;
}

static bool npuprof_npu_ranges_apart_(npuprof_npu_range_ a, npuprof_npu_range_ b)
{
    return a.min > b.max || b.min > a.max;
}

/* The anchor from which the rate is measured, up to the last one: the oldest of those that do not contradict
   the last interval, nor does any anchor between them. There are two anchors at least. */
static const npuprof_anchor_ *npuprof_npu_rate_begin_(const npuprof_npu *npu)
{
    const npuprof_anchor_ *to = &npu->anchors_[npu->anchor_count_ - 1], *from = to - 1;
    const uint64_t ticks = to->device_ticks - from->device_ticks;
    const npuprof_npu_range_ newest = npuprof_npu_range_between_(npu, from, to, ticks);
    for (const npuprof_anchor_ *a = from; a > npu->anchors_; a--) {
        if (npuprof_npu_ranges_apart_(newest, npuprof_npu_range_between_(npu, a - 1, to, ticks))) break;
        from = a - 1;
    }
    return from;
}

/* ---- The best reads since the last anchor. Why two: one read bounds device time best from above, another
   one from below; the other reads in between say less than the two together. */

/* The host ticks from one device tick to another by the rate, rounded as its distance. */
static int64_t npuprof_npu_host_from_(const npuprof_npu *npu, uint64_t from, uint64_t to, bool up)
{
    const npuprof_anchor_ *const a = &npu->rate_from_, *const b = &npu->rate_to_;
    const uint64_t host = npuprof_anchor_middle_(b) - npuprof_anchor_middle_(a);
    const uint64_t ticks = b->device_ticks - a->device_ticks;
    const bool is_back = to < from;
    const uint64_t by = is_back ? from - to : to - from;
    const int64_t size = (int64_t)npuprof_mul_div_(by, host, ticks, up != is_back);
    return is_back ? -size : size;
}

/* Weighs a read against the two: is it before or behind where their rate leads to? Without a rate, the
   narrowest one is both. A wrong rate makes the choice worse, not the bound wrong. */
static void npuprof_npu_weigh_read_(npuprof_npu *npu, const npuprof_anchor_ *a)
{
    const npuprof_anchor_ *const up = &npu->best_upper_, *const low = &npu->best_lower_;
    if (!npu->has_best_) {
        npu->best_upper_ = npu->best_lower_ = *a;
        npu->has_best_ = true;
    } else if (npu->has_rate_) {
        const int64_t fast = npuprof_npu_host_from_(npu, up->device_ticks, a->device_ticks, false);
        const int64_t slow = npuprof_npu_host_from_(npu, low->device_ticks, a->device_ticks, true);
        if ((int64_t)(a->host_after - up->host_after) < fast) npu->best_upper_ = *a;
        if ((int64_t)(a->host_before - low->host_before) > slow) npu->best_lower_ = *a;
    } else if (npuprof_anchor_width_(a) <= npuprof_anchor_width_(up)) {
        npu->best_upper_ = npu->best_lower_ = *a;
    }
}

/* Takes the two, the earlier one first. False: there was no read. */
static bool npuprof_npu_best_reads_(npuprof_npu *npu, npuprof_anchor_ *first, npuprof_anchor_ *second)
{
    const bool is_upper = npu->best_upper_.device_ticks < npu->best_lower_.device_ticks;
    if (!npu->has_best_) return false;
    *first = is_upper ? npu->best_upper_ : npu->best_lower_;
    *second = is_upper ? npu->best_lower_ : npu->best_upper_;
    npu->has_best_ = false;
    return true;
}

/* Copies a string into a buffer, cut at a UTF-8 boundary. */
static void npuprof_npu_copy_text_(char *to, size_t capacity, const char *from)
{
    size_t n = 0;
    while (from && n < capacity - 1 && from[n]) n++;
    if (from && from[n]) while (n && ((unsigned char)from[n] & 0xC0) == 0x80) n--;
    for (size_t i = 0; i < n; i++) to[i] = from[i];
    to[n] = 0;
}

/* Whether a read lies outside of what the anchors predict: the rate has changed. The next anchors then come
   as quickly as after open. Why not within a millisecond of the last change: the device's clock may be worse
   than max_rate_ppm says, and so few reads behind a change prove no rate (E2 in clock/evidence.h). */
static bool npuprof_npu_rate_changed_(npuprof_npu *npu, const npuprof_anchor_ *sample)
{
    if (npu->anchor_count_ < 2 || !npu->has_rate_ || npu->coarse_rate_) return false;
    const npuprof_anchor_ *last = &npu->anchors_[npu->anchor_count_ - 1];
    const uint64_t min = npuprof_saturating_sub_(sample->host_before, last->host_after);
    const uint64_t max = npuprof_saturating_sub_(sample->host_after, last->host_before);
    if (npuprof_saturating_sub_(sample->host_before, npu->changed_) < npu->second_ / 1000) return false;
    const npuprof_npu_range_ r =
        npuprof_npu_range_between_(npu, &npu->rate_from_, &npu->rate_to_,
                                   npuprof_saturating_sub_(sample->device_ticks, last->device_ticks));
    if (r.max >= min && r.min <= max) return false;
    npu->first_anchor_ = npu->changed_ = sample->host_after;
    return true;
}

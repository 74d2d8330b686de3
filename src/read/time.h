#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "../numbers/wide.h"
#include "../format/arena.h"
#include "../clock/device_map.h"
#include "image.h"
#include "threads.h"

/* Host ticks as ns after the first anchor. */
static NPUPROF_NOINLINE_ int64_t npuprof_image_far_ns_(const npuprof_image_ *im, uint64_t ticks)
{
    const int64_t distance = (int64_t)(ticks - im->h->first.ticks);
    const npuprof_u128_ p = npuprof_multiply_(distance < 0 ? 0 - (uint64_t)distance : (uint64_t)distance, im->multiplier);
    uint64_t ns = im->shift >= 64 ? p.high >> (im->shift - 64) : im->shift ? p.high << (64 - im->shift) | p.low >> im->shift : p.low;
    if (NPUPROF_UNLIKELY_(ns > NPUPROF_NS_LIMIT_)) ns = NPUPROF_NS_LIMIT_;
    return distance < 0 ? -(int64_t)ns : (int64_t)ns;
}
static inline int64_t npuprof_image_ns_(const npuprof_image_ *im, uint64_t ticks)
{
    const uint64_t distance = ticks - im->h->first.ticks;
    if (NPUPROF_UNLIKELY_(distance > im->quick_ticks)) return npuprof_image_far_ns_(im, ticks);
    return (int64_t)npuprof_multiply_(distance << im->left, im->multiplier).high;
}
static inline int64_t npuprof_image_earlier_(int64_t a, int64_t b) { return a < b ? a : b; }
/* The first host ticks that are not before a time: ns after the first anchor, not negative. */
static uint64_t npuprof_image_ticks_at_(const npuprof_image_ *im, int64_t ns)
{
    const uint64_t ticks = im->h->first.ticks + npuprof_scale_((uint64_t)ns, (uint64_t)1 << im->shift, im->multiplier);
    return ticks + (npuprof_image_ns_(im, ticks) < ns);
}
static inline int64_t npuprof_image_trace_ns_(const npuprof_image_ *im, uint64_t ticks) { return npuprof_image_ns_(im, ticks) - im->origin_ns; }

/* The multiplier for num / den: as many bits as fit into 63. */
static void npuprof_image_set_rate_(npuprof_image_ *im, uint64_t num, uint64_t den)
{
    im->shift = 0;
    im->multiplier = npuprof_scale_(num, 1, den);
    while (im->shift < 62) {
        const uint64_t next = npuprof_scale_(num, (uint64_t)2 << im->shift, den);
        if (next >> 63) break;
        im->multiplier = next;
        im->shift++;
    }
    im->left = im->shift ? 64 - im->shift : 0;
    im->quick_ticks = im->shift ? npuprof_min_(npuprof_scale_(NPUPROF_NS_LIMIT_, (uint64_t)1 << im->shift, im->multiplier), ((uint64_t)1 << im->shift) - 1) : 0;
}

/* A device's anchors near some ticks, as an array for npuprof_map_ticks_(). Kept while they serve. */
typedef struct npuprof_map_cache_ {
    uint32_t device, epoch, count, rate_ppb;
    uint64_t lag;
    bool whole_start, whole_end;           /* the array begins with the first anchor; ends with the last */
    npuprof_map_interval_ interval;            /* of the last stamp */
    const npuprof_device_entry_ *entry;
    npuprof_anchor_ anchor[4 * NPUPROF_ANCHORS_PER_ENTRY_];
    uint32_t block[4 * NPUPROF_ANCHORS_PER_ENTRY_];  /* where each of them lies */
} npuprof_map_cache_;
typedef struct npuprof_map_caches_ { npuprof_map_cache_ of[4]; } npuprof_map_caches_;     /* by device, its low bits */

static const npuprof_device_entry_ *npuprof_image_device_(const npuprof_image_ *im, uint32_t device)
{
    uint32_t id = 0;
    const npuprof_entry_ *e;
    while ((e = npuprof_image_next_entry_(im, NPUPROF_ENTRY_DEVICE, sizeof(npuprof_device_entry_), &id)) != NULL)
        if (NPUPROF_LOAD_ACQUIRE_(&e->a) == device) return (const npuprof_device_entry_ *)(const void *)e;
    return NULL;
}
/* The anchor that found no room in the table; false: there is none. Why a limit: who wrote it may have been killed, or never run. */
static bool npuprof_image_overflow_anchor_(const npuprof_device_entry_ *d, uint32_t *epoch, npuprof_anchor_ *to)
{
    for (int tries = 0; tries < 1000; tries++) {
        const uint32_t used = NPUPROF_LOAD_ACQUIRE_(&d->overflow_used);
        to->device_ticks = NPUPROF_LOAD_ACQUIRE_(&d->overflow.device_ticks);
        to->host_before = NPUPROF_LOAD_ACQUIRE_(&d->overflow.host_before);
        to->host_after = NPUPROF_LOAD_ACQUIRE_(&d->overflow.host_after);
        *epoch = NPUPROF_LOAD_ACQUIRE_(&d->overflow_epoch);
        if (used && NPUPROF_LOAD_ACQUIRE_(&d->overflow_used) == used) return true;
        if (!used && !to->host_after) return false;          /* never written */
    }
    return false;
}
/* Walks a device's anchors: *block 0 before the first. False at the end. */
static bool npuprof_image_next_anchor_(const npuprof_image_ *im, const npuprof_device_entry_ *d, uint32_t *block, uint32_t *index, uint32_t *epoch,
                                 npuprof_anchor_ *to)
{
    if (*block == UINT32_MAX) return false;
    if (*block == 0) {
        *block = NPUPROF_LOAD_ACQUIRE_(&d->first_anchors);
        *index = 0;
    }
    for (;;) {
        const npuprof_anchors_entry_ *b = (const npuprof_anchors_entry_ *)(const void *)npuprof_image_entry_(
            im, *block, NPUPROF_ENTRY_ANCHORS, sizeof(npuprof_anchors_entry_));
        if (b && *index < NPUPROF_LOAD_ACQUIRE_(&b->count) && *index < NPUPROF_ANCHORS_PER_ENTRY_) {
            *epoch = b->epoch;
            *to = b->anchor[(*index)++];
            return true;
        }
        const uint32_t next = b ? NPUPROF_LOAD_ACQUIRE_(&b->head.a) : 0;
        if (next <= *block) break;
        *block = next;
        *index = 0;
    }
    *block = UINT32_MAX;
    return npuprof_image_overflow_anchor_(d, epoch, to);
}
/* The anchors around the ticks: as many before as behind, if there are.
   Why from the block where the last ones began: from the first one on it would be quadratic in a device's anchors. */
static void npuprof_map_cache_fill_(const npuprof_image_ *im, npuprof_map_cache_ *near_by, uint32_t device, uint32_t epoch, uint64_t ticks)
{
    enum { NPUPROF_NEAR_ROOM_ = 4 * NPUPROF_ANCHORS_PER_ENTRY_, NPUPROF_NEAR_HALF_ = NPUPROF_NEAR_ROOM_ / 2 };
    const uint32_t n = near_by->count;
    const bool same = near_by->device == device && near_by->epoch == epoch && n;
    if (same && (near_by->whole_start || ticks >= near_by->anchor[n / 4].device_ticks) &&
        (near_by->whole_end || ticks <= near_by->anchor[n - 1 - n / 4].device_ticks))
        return;
    const npuprof_device_entry_ *const d = near_by->device == device && near_by->entry ? near_by->entry : npuprof_image_device_(im, device);
    uint32_t index = 0, at_epoch, after = 0;
    uint32_t block = same && ticks >= near_by->anchor[n / 4].device_ticks && near_by->block[0] != UINT32_MAX ? near_by->block[0] : 0;
    npuprof_anchor_ a;
    memset(near_by, 0, sizeof *near_by);
    near_by->device = device;
    near_by->epoch = epoch;
    near_by->whole_start = near_by->whole_end = true;
    near_by->entry = d;
    if (!d) return;
    near_by->whole_start = block == 0 || block == NPUPROF_LOAD_ACQUIRE_(&d->first_anchors);
    near_by->rate_ppb = d->max_rate_ppb;
    near_by->lag = NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_LAG]);
    while (npuprof_image_next_anchor_(im, d, &block, &index, &at_epoch, &a)) {
        if (at_epoch != epoch) continue;
        if (near_by->count == NPUPROF_NEAR_ROOM_) {
            if (after >= NPUPROF_NEAR_HALF_) {
                near_by->whole_end = false;
                break;
            }
            memmove(near_by->anchor, near_by->anchor + 1, (NPUPROF_NEAR_ROOM_ - 1) * sizeof a);
            memmove(near_by->block, near_by->block + 1, (NPUPROF_NEAR_ROOM_ - 1) * sizeof block);
            near_by->count--;
            near_by->whole_start = false;
        }
        near_by->block[near_by->count] = block;
        near_by->anchor[near_by->count++] = a;
        if (a.device_ticks > ticks) after++;
    }
}
/* Device ticks as host ticks. False: the device has no anchor to go by. */
static bool npuprof_image_host_ticks_(const npuprof_image_ *im, npuprof_map_caches_ *nears, const npuprof_event_ *ev, uint64_t ticks, uint64_t *host,
                                uint64_t *error_ticks)
{
    bool widened;
    npuprof_map_cache_ *near_by = &nears->of[ev->device & 3];
    npuprof_map_cache_fill_(im, near_by, ev->device, ev->epoch, ticks);
    if (!npuprof_map_ticks_cached_(near_by->anchor, near_by->count, near_by->rate_ppb, &near_by->interval, ticks, host, error_ticks, &widened)) return false;
    /* Why: the anchors' errors hold what the reads of the anchors were late; the read of this stamp may have been late, too. */
    if (error_ticks && ev->flags & NPUPROF_STAMP_SAMPLED) *error_ticks = npuprof_saturating_add_(*error_ticks, near_by->lag);
    return true;
}

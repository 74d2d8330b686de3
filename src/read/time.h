#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "../numbers/wide.h"
#include "../format/arena.h"
#include "../clock/evidence.h"
#include "image.h"
#include "threads.h"

/* Stamps as nanoseconds. Host ticks go through the image's rate, which follows from its clock anchors; device
   ticks first become host ticks, by the anchors of their device near them.

   Data: an npuprof_image_anchor_caches_, which the caller owns: the anchors that were used last, so that
   stamps near each other do not search the table again. Of a live arena, anchors are added meanwhile: an
   entry's `count` is read with acquire, and the anchors before it do not change. */

/* Why a limit: a damaged stamp must not overflow what is computed from it. 9 years. */
#define NPUPROF_NS_LIMIT_ ((uint64_t)1 << 58)

/* ---- Host time */

static NPUPROF_NOINLINE_ int64_t npuprof_image_far_ns_(const npuprof_image_ *im, uint64_t ticks)
{
    const int64_t distance = (int64_t)(ticks - im->h->first.ticks);
    const uint64_t size = distance < 0 ? 0 - (uint64_t)distance : (uint64_t)distance;
    const npuprof_u128_ p = npuprof_multiply_(size, im->multiplier);
    uint64_t ns = p.low;
    if (im->shift >= 64) ns = p.high >> (im->shift - 64);
    else if (im->shift) ns = p.high << (64 - im->shift) | p.low >> im->shift;
    if (NPUPROF_UNLIKELY_(ns > NPUPROF_NS_LIMIT_)) ns = NPUPROF_NS_LIMIT_;
    return distance < 0 ? -(int64_t)ns : (int64_t)ns;
}

/* Host ticks as ns after the first anchor. */
NPUPROF_HOT_ static inline int64_t npuprof_image_ns_(const npuprof_image_ *im, uint64_t ticks)
{
    const uint64_t distance = ticks - im->h->first.ticks;
    if (NPUPROF_UNLIKELY_(distance > im->fast_ticks)) return npuprof_image_far_ns_(im, ticks);
    return (int64_t)npuprof_multiply_(distance << im->left, im->multiplier).high;
}

static inline int64_t npuprof_image_earlier_(int64_t a, int64_t b) { return a < b ? a : b; }

/* The first host ticks that are not before a time: ns after the first anchor, not negative. */
static uint64_t npuprof_image_ticks_at_(const npuprof_image_ *im, int64_t ns)
{
    const uint64_t distance = npuprof_scale_((uint64_t)ns, (uint64_t)1 << im->shift, im->multiplier);
    const uint64_t ticks = im->h->first.ticks + distance;
    return ticks + (npuprof_image_ns_(im, ticks) < ns);
}

/* Host ticks as ns after the beginning of the trace. */
NPUPROF_HOT_ static inline int64_t npuprof_image_trace_ns_(const npuprof_image_ *im, uint64_t ticks)
{
    return npuprof_image_ns_(im, ticks) - im->origin_ns;
}

/* The rate num / den as a multiplier and a shift: as many bits as fit into 63. */
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
    im->left = 0;
    im->fast_ticks = 0;
    if (!im->shift) return;
    const uint64_t one = (uint64_t)1 << im->shift;
    im->left = 64 - im->shift;
    im->fast_ticks = npuprof_min_(npuprof_scale_(NPUPROF_NS_LIMIT_, one, im->multiplier), one - 1);
}

/* ---- Device time */

/* Points of one device and epoch that are neighbours, and what all of them say of its clock. */
typedef struct npuprof_image_anchors_ {
    uint32_t device, epoch;
    uint64_t lag, unit;                    /* NPUPROF_NOTE_LAG, NPUPROF_NOTE_UNIT */
    bool whole_start, whole_end;           /* it begins with the first point; ends with the last */
    const npuprof_device_entry_ *entry;
    uint32_t block[NPUPROF_MAP_POINTS_];   /* the table's entry that each of them is in */
    npuprof_map_evidence_ evidence;        /* of the whole epoch */
    npuprof_map_ map;
} npuprof_image_anchors_;

/* by the low bits of the device */
typedef struct npuprof_image_anchor_caches_ { npuprof_image_anchors_ of[4]; } npuprof_image_anchor_caches_;

/* Empty ones, for one walk at a time of who holds the lock of the readers. Why static: they are large for a
   thread's stack. */
static npuprof_image_anchor_caches_ *npuprof_image_clear_caches_(void)
{
    static npuprof_image_anchor_caches_ caches;
    memset(&caches, 0, sizeof caches);
    return &caches;
}

static const npuprof_device_entry_ *npuprof_image_device_(const npuprof_image_ *im, uint32_t device)
{
    const npuprof_entry_ *e;
    uint32_t id = 0;
    while ((e = npuprof_image_next_entry_(im, NPUPROF_ENTRY_DEVICE, sizeof(npuprof_device_entry_), &id)) !=
           NULL)
        if (NPUPROF_LOAD_ACQUIRE_(&e->a) == device) return (const npuprof_device_entry_ *)(const void *)e;
    return NULL;
}

/* The anchor that found the table full; false: there is none.
   Why not until it succeeds: the thread that writes it may have been killed, or never run. */
static bool npuprof_image_overflow_anchor_(const npuprof_device_entry_ *d, uint32_t *epoch,
                                           npuprof_anchor_ *to)
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

/* Walks a device's anchors in the order of their recording. *block: 0 before the first one. False: no more.
   */
static bool npuprof_image_next_anchor_(const npuprof_image_ *im, const npuprof_device_entry_ *d,
                                       uint32_t *block, uint32_t *index, uint32_t *epoch, npuprof_anchor_ *to)
{
    if (*block == UINT32_MAX) return false;
    if (*block == 0) {
        *block = NPUPROF_LOAD_ACQUIRE_(&d->first_anchors);
        *index = 0;
    }
    for (;;) {
        const npuprof_entry_ *const entry =
            npuprof_image_entry_(im, *block, NPUPROF_ENTRY_ANCHORS, sizeof(npuprof_anchors_entry_));
        const npuprof_anchors_entry_ *b = (const npuprof_anchors_entry_ *)(const void *)entry;
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

/* What is declared of a device's clock; its anchors may contradict it. */
static void npuprof_image_begin_evidence_(const npuprof_image_ *im, const npuprof_device_entry_ *d,
                                          npuprof_map_evidence_ *e)
{
    memset(e, 0, sizeof *e);
    e->rate.max_rate_ppb = d->max_rate_ppb;
    e->rate.hz = d->nominal_hz;
    e->rate.may_be_late = NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_LAG]) != 0;
    e->rate.is_unsteady = (NPUPROF_LOAD_(&d->flags) & NPUPROF_DEVICE_UNSTEADY_) != 0;
    e->rate.second = e->rate.window = npuprof_image_ticks_at_(im, 1000000000) - im->h->first.ticks;
}

/* What all anchors of an epoch say of the device's clock. */
static void npuprof_image_judge_(const npuprof_image_ *im, const npuprof_device_entry_ *d, uint32_t epoch,
                                 npuprof_map_evidence_ *e)
{
    uint32_t block = 0, index = 0, at_epoch;
    npuprof_anchor_ a;
    npuprof_image_begin_evidence_(im, d, e);
    while (npuprof_image_next_anchor_(im, d, &block, &index, &at_epoch, &a)) {
        const npuprof_map_point_ p = npuprof_map_point_of_(&a);
        if (at_epoch == epoch) npuprof_map_witness_(e, &p);
    }
    npuprof_map_judge_(e);
}

/* Does the cache have the anchors around some ticks, with enough of them on both sides? */
static bool npuprof_image_anchors_cover_(const npuprof_image_anchors_ *cache, uint64_t ticks)
{
    const npuprof_map_ *const m = &cache->map;
    const uint32_t margin = m->count / 4;
    return (cache->whole_start || ticks >= m->point[margin].upper) &&
           (cache->whole_end || ticks <= m->point[m->count - 1 - margin].lower);
}

/* Makes room for one more point in a map that is full: the oldest goes. */
static void npuprof_image_anchors_shift_(npuprof_image_anchors_ *cache)
{
    npuprof_map_ *const m = &cache->map;
    memmove(m->point, m->point + 1, (NPUPROF_MAP_POINTS_ - 1) * sizeof *m->point);
    memmove(m->open, m->open + 1, (NPUPROF_MAP_POINTS_ - 1) * sizeof *m->open);
    memmove(cache->block, cache->block + 1, (NPUPROF_MAP_POINTS_ - 1) * sizeof *cache->block);
    m->open[--m->count] = false;
    cache->whole_start = false;
}

/* Caches the anchors around some ticks: as many before as behind, if there are.
   Why it goes on from the entry where the cached ones begin: starting from the first anchor each time would
   take time quadratic in the anchors of a device. */
static void npuprof_image_anchors_find_(const npuprof_image_ *im, npuprof_image_anchors_ *cache,
                                        uint32_t device, uint32_t epoch, uint64_t ticks)
{
    npuprof_map_ *const m = &cache->map;
    const bool same = cache->device == device && cache->epoch == epoch && m->count;
    if (same && npuprof_image_anchors_cover_(cache, ticks)) return;
    const bool found = cache->device == device && cache->entry;
    const npuprof_device_entry_ *const d = found ? cache->entry : npuprof_image_device_(im, device);
    const bool goes_on =
        same && ticks >= m->point[m->count / 4].upper && cache->block[0] != UINT32_MAX;
    uint32_t block = goes_on ? cache->block[0] : 0, index = 0, at_epoch, after = 0;
    npuprof_anchor_ a;
    memset(m, 0, sizeof *m);
    cache->device = device;
    cache->epoch = epoch;
    cache->whole_start = cache->whole_end = true;
    cache->entry = d;
    if (!d) return;
    if (!same) npuprof_image_judge_(im, d, epoch, &cache->evidence);
    npuprof_map_begin_(m, &cache->evidence);
    cache->whole_start = block == 0 || block == NPUPROF_LOAD_ACQUIRE_(&d->first_anchors);
    cache->lag = NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_LAG]);
    cache->unit = NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_UNIT]);
    while (npuprof_image_next_anchor_(im, d, &block, &index, &at_epoch, &a)) {
        const npuprof_map_point_ p = npuprof_map_point_of_(&a);
        if (at_epoch != epoch) continue;
        if (m->count == NPUPROF_MAP_POINTS_) {
            if (after >= NPUPROF_MAP_POINTS_ / 2) {
                cache->whole_end = false;
                break;
            }
            npuprof_image_anchors_shift_(cache);
        }
        cache->block[m->count] = block;
        npuprof_map_add_(m, &cache->evidence, &p);
        if (p.upper > ticks) after++;
    }
}

/* Device ticks of an event as host ticks, with the error if it is wanted. False: nothing bounds them. */
static bool npuprof_image_host_ticks_(const npuprof_image_ *im, npuprof_image_anchor_caches_ *caches,
                                      const npuprof_event_ *ev, uint64_t ticks, uint64_t *host,
                                      uint64_t *error_ticks)
{
    npuprof_image_anchors_ *const c = &caches->of[ev->device & 3];
    uint64_t error;
    if (ev->flags & NPUPROF_STAMP_HOST) {        /* npuprof_host_error_code_() */
        *host = ticks;
        if (error_ticks) *error_ticks = (uint64_t)(ev->epoch & 2047u) << (ev->epoch >> 11);
        return true;
    }
    npuprof_image_anchors_find_(im, c, ev->device, ev->epoch, ticks);
    npuprof_map_stamped_ stamp = { ticks, c->unit, 0, npuprof_saturating_add_(ev->host_ticks, 1) };
    if (ev->flags & NPUPROF_STAMP_SAMPLED) stamp.unit = 1;
    if (npuprof_image_has_arrow_(im, ev)) stamp.since = ev->link.ticks;
    if (!npuprof_map_stamp_(&c->map, &stamp, host, &error)) return false;
    /* Why more: the anchors' errors contain how late the anchors were read. This stamp may have been read
       late, too. */
    if (ev->flags & NPUPROF_STAMP_SAMPLED) error = npuprof_saturating_add_(error, c->lag);
    if (error_ticks) *error_ticks = error;
    return true;
}

/* Where a device span is in host ticks. error: of both ends. broken: it starts before its submission, or ends
   behind its record, by more than the clock's error says. The clock is wrong then, and the error is what
   these two alone leave. */
typedef struct npuprof_image_times_ {
    uint64_t start, end, error;
    bool broken;
} npuprof_image_times_;

/* Of a point, both are its start. False: nothing bounds it. */
static bool npuprof_image_times_of_(const npuprof_image_ *im, npuprof_image_anchor_caches_ *caches,
                                    const npuprof_event_ *ev, npuprof_image_times_ *t)
{
    const uint64_t last = ev->flags & NPUPROF_STAMP_INSTANT ? ev->start : ev->end;
    uint64_t start_error, end_error;
    if (!npuprof_image_host_ticks_(im, caches, ev, ev->start, &t->start, &start_error) ||
        !npuprof_image_host_ticks_(im, caches, ev, last, &t->end, &end_error)) return false;
    t->error = npuprof_max_(start_error, end_error);
    t->broken = ev->has_link && ((int64_t)(t->start + start_error - ev->link.ticks) < 0 ||
                                 (int64_t)(ev->host_ticks + end_error - t->end) < 0);
    if (!t->broken) return true;
    t->error = npuprof_max_(t->error, npuprof_saturating_sub_(ev->host_ticks, t->start));
    t->error = npuprof_max_(t->error, npuprof_saturating_sub_(t->end, ev->link.ticks));
    return true;
}

/* An error in ns, rounded up. */
static uint64_t npuprof_image_error_ns_(const npuprof_image_ *im, uint64_t error_ticks)
{
    return (uint64_t)npuprof_image_ns_(im, im->h->first.ticks + error_ticks) + 1;
}

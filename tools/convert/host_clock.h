#pragma once   /* SPDX-License-Identifier: MIT */
#include "expander.h"
#include "device.h"
#include "clock.h"
#include "host_time.h"
#include "gaps.h"

/* A firmware's stamps as times of its host, by all anchors that it took (host_time.h). Its clock is to the
   host what a device's counter is: an anchor is a read of it, so the law and the proof are those of
   src/clock/device_map.h, and what contradicts them is found by src/clock/evidence.h. Each stamp becomes the
   tick at which an exact clock of the stated rate would have been; the largest error of all of them is the
   trace's.
   What is assumed of the rate: it stays within 2 ppm in a second, and moves by that in each second, as of a
   device. Metadata npuprof.rate_ppb says instead how far it is from one rate as long as the trace lasts. */

enum { NPUPROF_EXPAND_RATE_PPB_ = 2000, NPUPROF_EXPAND_BESIDE_ = NPUPROF_MAP_POINTS_ / 4 };

typedef struct npuprof_expand_clock_ {
    const npuprof_expander_ *x;
    uint64_t hz, zero_ns;                  /* of the first anchor, by the host's clock that counts */
    uint32_t from, to;                     /* the anchors that the map has */
    uint64_t error_ns, unknown;            /* the largest error; stamps that nothing bounds */
    npuprof_map_evidence_ evidence;
    npuprof_map_ map;
} npuprof_expand_clock_;

static bool npuprof_expand_anchor_before_(const void *a, const void *b)
{
    return ((const npuprof_expand_said_anchor_ *)a)->is.ticks <
           ((const npuprof_expand_said_anchor_ *)b)->is.ticks;
}

/* Sorts the anchors by their ticks. What is there twice, as a stream sends it, stays once. */
static void npuprof_expand_sort_anchors_(npuprof_expander_ *x)
{
    uint32_t n = 0;
    npuprof_heap_sort_(x->anchor, sizeof *x->anchor, x->anchors, npuprof_expand_anchor_before_);
    for (uint32_t i = 0; i < x->anchors; i++)
        if (!n || x->anchor[i].is.ticks != x->anchor[n - 1].is.ticks) x->anchor[n++] = x->anchor[i];
    x->anchors = n;
}

/* The host's clock that counts: the monotonic one, or the first of the others that runs. */
static int64_t npuprof_expand_host_ns_(const npuprof_expander_ *x, const npuprof_host_anchor_ *a)
{
    const npuprof_host_anchor_ *const first = &x->anchor[0].is, *const last = &x->anchor[x->anchors - 1].is;
    if (last->monotonic_ns > first->monotonic_ns) return a->monotonic_ns;
    return last->boot_ns > first->boot_ns ? a->boot_ns : a->unix_ns;
}

/* An anchor as a read of the clock. Why a tick more: it shows a tick as long as that lasts; and a 64th: the
   rate is not quite the stated one. */
static npuprof_map_point_ npuprof_expand_point_(const npuprof_expand_clock_ *k, uint32_t i)
{
    const npuprof_host_anchor_ *const a = &k->x->anchor[i].is;
    const uint64_t ticks = npuprof_saturating_add_(a->error_ticks, a->error_ticks / 64 + 2);
    const uint64_t error = npuprof_scale_(ticks, 1000000000, k->hz) + 1;
    const uint64_t ns = (uint64_t)npuprof_expand_host_ns_(k->x, a);
    npuprof_map_point_ p;
    p.upper = p.lower = a->ticks;
    p.upper_host = npuprof_saturating_add_(ns, error);
    p.lower_host = npuprof_saturating_sub_(ns, error);
    return p;
}

static void npuprof_expand_begin_clock_(npuprof_expand_clock_ *k, const npuprof_expander_ *x)
{
    memset(k, 0, sizeof *k);
    k->x = x;
    k->hz = npuprof_max_(x->h->clock_hz, 1);
    k->zero_ns = (uint64_t)npuprof_expand_host_ns_(x, &x->anchor[0].is);
    k->evidence.rate.second = 1000000000;
    k->evidence.rate.hz = k->hz;
    k->evidence.rate.window = x->rate_is_said ? (uint64_t)1 << 62 : k->evidence.rate.second;
    k->evidence.rate.max_rate_ppb = x->rate_is_said ? x->rate_ppb : (uint32_t)NPUPROF_EXPAND_RATE_PPB_;
    for (uint32_t i = 0; i < x->anchors; i++) {
        const npuprof_map_point_ p = npuprof_expand_point_(k, i);
        npuprof_map_witness_(&k->evidence, &p);
    }
    npuprof_map_judge_(&k->evidence);
}

/* Fills the map with the anchors around a stamp. */
static void npuprof_expand_show_anchors_(npuprof_expand_clock_ *k, uint64_t ticks)
{
    const npuprof_expand_said_anchor_ *const a = k->x->anchor;
    const uint32_t all = k->x->anchors, beside = NPUPROF_EXPAND_BESIDE_;
    const bool has_before = !k->from || (k->to && ticks >= a[k->from + beside].is.ticks);
    const bool has_behind = k->to == all || (k->to && ticks <= a[k->to - 1 - beside].is.ticks);
    uint32_t from = 0, to = all;
    if (k->to && has_before && has_behind) return;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (a[middle].is.ticks <= ticks) from = middle + 1;
        else to = middle;
    }
    k->from = from > NPUPROF_MAP_POINTS_ / 2 ? from - NPUPROF_MAP_POINTS_ / 2 : 0;
    k->to = (uint32_t)npuprof_min_(all, k->from + NPUPROF_MAP_POINTS_);
    k->from = k->to > NPUPROF_MAP_POINTS_ ? k->to - NPUPROF_MAP_POINTS_ : 0;
    npuprof_map_begin_(&k->map, &k->evidence);
    for (uint32_t i = k->from; i < k->to; i++) {
        const npuprof_map_point_ p = npuprof_expand_point_(k, i);
        npuprof_map_add_(&k->map, &k->evidence, &p);
    }
}

/* A stamp as an exact clock would have it, and by how many ns it may be off. UINT64_MAX: nothing bounds it;
   it lies as the stated rate says. */
static uint64_t npuprof_expand_exact_(npuprof_expand_clock_ *k, uint64_t ticks, uint64_t *error_ns)
{
    const npuprof_host_anchor_ *const zero = &k->x->anchor[0].is;
    const npuprof_map_stamped_ stamp = { ticks, 1, 0, UINT64_MAX };
    uint64_t ns;
    npuprof_expand_show_anchors_(k, ticks);
    if (!npuprof_map_stamp_(&k->map, &stamp, &ns, error_ns)) {
        *error_ns = UINT64_MAX;
        return ticks;
    }
    /* Why more: what is rounded to a tick. */
    *error_ns += 1000000000 / k->hz + 2;
    ns = npuprof_saturating_add_(ns, 500000000 / k->hz);       /* to the nearest tick */
    if (ns >= k->zero_ns) return zero->ticks + npuprof_scale_(ns - k->zero_ns, k->hz, 1000000000);
    return npuprof_saturating_sub_(zero->ticks, npuprof_scale_(k->zero_ns - ns, k->hz, 1000000000));
}

/* The same of a stamp of an event, whose error is part of the trace's. */
static uint64_t npuprof_expand_exact_event_(npuprof_expand_clock_ *k, uint64_t ticks)
{
    uint64_t error;
    const uint64_t exact = npuprof_expand_exact_(k, ticks, &error);
    if (error == UINT64_MAX) k->unknown++;
    else k->error_ns = npuprof_max_(k->error_ns, error);
    return exact;
}

/* A tick of a device's bracket, moved outwards by as much as it may be off: direction is -1 or 1.
   Why: between two anchors the corrected clock may run faster or slower than it truly does, by their errors.
   A device's steady rate would else contradict it. */
static uint64_t npuprof_expand_exact_bracket_(npuprof_expand_clock_ *k, uint64_t ticks, int direction)
{
    uint64_t error;
    const uint64_t exact = npuprof_expand_exact_(k, ticks, &error);
    const uint64_t off = error == UINT64_MAX ? 1 : npuprof_scale_(error, k->hz, 1000000000) + 1;
    return direction < 0 ? npuprof_saturating_sub_(exact, off) : npuprof_saturating_add_(exact, off);
}

/* The anchors of devices, whose host is the firmware. */
static void npuprof_expand_exact_devices_(npuprof_expand_clock_ *k, npuprof_expander_ *x)
{
    for (uint32_t device = 1; device < 256; device++) {
        const uint32_t id = x->devices[device].id;
        if (!id) continue;
        uint32_t at = ((const npuprof_device_entry_ *)(void *)(x->table + (size_t)id * 16))->first_anchors;
        while (at) {
            npuprof_anchors_entry_ *const e = (npuprof_anchors_entry_ *)(void *)(x->table + (size_t)at * 16);
            for (uint32_t i = 0; i < e->count; i++) {
                npuprof_anchor_ *const a = &e->anchor[i];
                a->host_before = npuprof_expand_exact_bracket_(k, a->host_before, -1);
                a->host_after = npuprof_expand_exact_bracket_(k, a->host_after, 1);
            }
            at = e->head.a;
        }
    }
}

/* The stamps that a device span has of the host. */
static void npuprof_expand_exact_values_(npuprof_expand_clock_ *k, npuprof_expand_item_ *r)
{
    const uint64_t flags = r->drawn ? r->drawn->what >> 40 & NPUPROF_STAMP_HOST
                                    : r->values[2] & NPUPROF_CELL_BY_HOST_;
    if (r->kind != NPUPROF_KIND_DEVICE || !flags) return;
    for (int i = 0; i < 2; i++) r->values[i] = npuprof_expand_exact_event_(k, r->values[i]);
}

/* A finished span has ns since the trace's begin, which was at the tick `first`. Makes ticks of them.
   Why no value of more than 2^53: a damaged one must not become another. */
static void npuprof_expand_exact_finished_(npuprof_expand_clock_ *k, npuprof_expand_item_ *r, uint64_t first)
{
    if (r->kind != NPUPROF_KIND_FINISHED || r->missing) return;
    for (int i = 0; i < 2; i++) {
        uint64_t error = 0, *const ns = &r->values[i];
        if (*ns >> 53) continue;
        const uint64_t ticks = first + npuprof_scale_(*ns, k->hz, 1000000000);
        const uint64_t exact = k->x->anchors > 1 ? npuprof_expand_exact_(k, ticks, &error) : ticks;
        *ns = npuprof_expand_ns_(k->x, exact);
        k->unknown += error == UINT64_MAX;
        if (error != UINT64_MAX) k->error_ns = npuprof_max_(k->error_ns, error + 1000000000 / k->hz);
    }
}

/* Makes the stamps of all records exact. */
static void npuprof_expand_exact_records_(npuprof_expand_clock_ *k, npuprof_expander_ *x)
{
    for (npuprof_expand_item_ *r = x->list; r < x->list + x->record_count; r++) {
        const bool is_pause = r->kind == NPUPROF_CELL_KIND_PAUSE_;
        const bool has_end = npuprof_kind_nests_(r->kind) || is_pause || r->missing;
        uint64_t error;
        if (!r->kind || r->kind >= NPUPROF_KIND_COUNT) {
            r->start = npuprof_expand_exact_(k, r->start, &error);
            if (has_end && !r->open) r->end = npuprof_expand_exact_(k, r->end, &error);
            continue;
        }
        npuprof_expand_exact_values_(k, r);
        r->start = npuprof_expand_exact_event_(k, r->start);
        if (has_end && !r->open) r->end = npuprof_max_(npuprof_expand_exact_event_(k, r->end), r->start);
    }
}

/* Says in the trace what its times are worth: metadata npuprof.clock. */
static void npuprof_expand_say_clock_(npuprof_expander_ *x, const npuprof_expand_clock_ *k)
{
    char text[200];
    if (x->anchors < 2) {
        (void)snprintf(text, sizeof text, "1 anchor: times are by the stated rate from it on, and nothing "
                       "bounds them: record a second npuprof.anchor");
    } else {
        const npuprof_host_anchor_ *const a = &x->anchor[0].is, *const b = &x->anchor[x->anchors - 1].is;
        const double ns = (double)(npuprof_expand_host_ns_(x, b) - npuprof_expand_host_ns_(x, a));
        const double ppm = ((double)(b->ticks - a->ticks) * 1e9 / ns / (double)k->hz - 1) * 1e6;
        const int n = snprintf(text, sizeof text, "%u anchors: the clock runs at %+.3f ppm of the stated "
                               "rate, times are corrected; ", (unsigned)x->anchors, ppm);
        if (k->unknown) (void)snprintf(text + n, sizeof text - (size_t)n, "nothing bounds %llu of them",
                                       (unsigned long long)k->unknown);
        else (void)snprintf(text + n, sizeof text - (size_t)n, "error at most %llu ns",
                            (unsigned long long)k->error_ns);
    }
    const uint32_t ids[2] = { npuprof_expand_text_(x, "npuprof.clock", 13),
                              npuprof_expand_text_(x, text, strlen(text)) };
    (void)npuprof_expand_entry_(x, NPUPROF_ENTRY_METADATA, 0, ids, sizeof ids);
    if (!k->evidence.steps) return;
    (void)snprintf(text, sizeof text, "%u anchors contradict a rate that is steady: say npuprof.rate_ppb",
                   (unsigned)k->evidence.steps);
    npuprof_expand_warn_(x, "NPUPROF_NOW", text);
}

/* Puts the trace where its first anchor says: it begins there, unless an event is before that. */
static void npuprof_expand_place_trace_(npuprof_expand_clock_ *k, npuprof_expander_ *x)
{
    npuprof_host_anchor_ *const to = &x->h->first, first = x->anchor[0].is;
    const uint64_t began = to->ticks;
    *to = first;
    for (uint32_t i = 0; i < x->record_count; i++)
        if (x->list[i].kind && x->list[i].kind < NPUPROF_KIND_COUNT)
            to->ticks = npuprof_min_(to->ticks, x->list[i].start);
    const int64_t earlier = (int64_t)npuprof_scale_(first.ticks - to->ticks, 1000000000u, k->hz);
    to->boot_ns -= earlier;
    to->monotonic_ns -= earlier;
    to->unix_ns -= earlier;
    for (uint32_t i = 0; i < x->record_count; i++) npuprof_expand_exact_finished_(k, &x->list[i], began);
}

/* Makes all times those of the host, if there are anchors. Call it when no stamp is compared with one of the
   target any more. */
static void npuprof_expand_use_host_clock_(npuprof_expander_ *x)
{
    static npuprof_expand_clock_ k;            /* Why static: it is large for a stack. */
    x->host_error_ns = UINT64_MAX;
    if (!x->anchors) return;
    npuprof_expand_sort_anchors_(x);
    const npuprof_host_anchor_ *const last = &x->anchor[x->anchors - 1].is;
    if (npuprof_expand_host_ns_(x, last) <= npuprof_expand_host_ns_(x, &x->anchor[0].is)) x->anchors = 1;
    npuprof_expand_begin_clock_(&k, x);
    if (x->anchors > 1) {
        npuprof_expand_exact_records_(&k, x);
        npuprof_expand_exact_devices_(&k, x);
    }
    npuprof_expand_place_trace_(&k, x);
    if (x->anchors > 1 && !k.unknown) x->host_error_ns = k.error_ns;
    npuprof_expand_say_clock_(x, &k);
}

/* The header's last anchor, at the latest stamp. Its error and that of the first one add up to that of all
   times. If nothing bounds them, it is the first one: then no output says an error at the end. */
static void npuprof_expand_end_trace_(npuprof_expander_ *x, uint64_t last)
{
    npuprof_header_ *const h = x->h;
    npuprof_host_anchor_ to = h->first;
    const uint64_t hz = npuprof_max_(h->clock_hz, 1);
    if (!x->anchors) to.ticks = last;
    if (x->host_error_ns != UINT64_MAX) {
        const uint64_t error = npuprof_scale_(x->host_error_ns, hz, 1000000000) + 1;
        to.ticks = npuprof_max_(last, npuprof_max_(x->anchor[x->anchors - 1].is.ticks, to.ticks + 1));
        const int64_t ns = (int64_t)npuprof_scale_(to.ticks - h->first.ticks, 1000000000, hz);
        to.boot_ns += ns;
        to.monotonic_ns += ns;
        to.unix_ns += ns;
        h->first.error_ticks = npuprof_min_(h->first.error_ticks, error);
        to.error_ticks = error - h->first.error_ticks;
    }
    h->last[0] = h->last[1] = to;
}

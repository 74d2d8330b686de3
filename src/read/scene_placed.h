#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/digits.h"
#include "../format/arena.h"
#include "image.h"
#include "args.h"
#include "time.h"
#include "place.h"
#include "placed.h"
#include "lanes.h"
#include "scene.h"
#include "scene_facts.h"
#include "scene_thread.h"

/* The tracks that are no threads: device spans, a track for each PE; finished spans; async spans, a track for
   each name. They come sorted by track and start (placed.h). */

/* ---- Lanes and their names */

NPUPROF_HOT_ static npuprof_lane_group_ npuprof_scene_group_(const npuprof_image_ *im,
                                                            const npuprof_event_ *ev)
{
    npuprof_lane_group_ group = npuprof_lane_no_group_;
    if (ev->kind != NPUPROF_KIND_DEVICE) return group;
    if (ev->flags & NPUPROF_STAMP_SAMPLED && npuprof_args_find_(im, ev, "stream", &group.stream))
        group.sort = NPUPROF_GROUP_STREAM_;
    else
        group.sort =
            npuprof_args_is_execution_(im, ev) ? NPUPROF_GROUP_EXECUTIONS_ : NPUPROF_GROUP_INSTRUCTIONS_;
    return group;
}

/* The name of a PE's track, a string's id; 0: it has none. */
static uint32_t npuprof_scene_pe_name_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    const npuprof_entry_ *e;
    uint32_t id = 0;
    while ((e = npuprof_image_next_entry_(im, NPUPROF_ENTRY_LANE, sizeof(npuprof_pair_entry_), &id)) !=
           NULL) {
        const npuprof_pair_entry_ *const lane = (const npuprof_pair_entry_ *)(const void *)e;
        if (NPUPROF_LOAD_ACQUIRE_(&e->a) == ev->device && lane->b[0] == ev->pe) return lane->b[1];
    }
    return 0;
}

/* What a lane of a device has behind the device's name: " PE 1 instructions". The PE's number is there if
   `numbers` says so, or if it is not the first. Returns the length. */
static size_t npuprof_scene_lane_text_(const npuprof_image_ *im, const npuprof_event_ *ev, bool numbers,
                                       char text[96])
{
    const npuprof_lane_group_ group = npuprof_scene_group_(im, ev);
    const uint32_t named = npuprof_scene_pe_name_(im, ev);
    const unsigned long long stream = group.stream;
    size_t n = 0, length;
    text[0] = 0;
    if (named) {
        const char *const name = npuprof_image_text_(im, named, &length);
        n = (size_t)snprintf(text, 96, " %.*s", (int)(length < 47 ? length : 47), name);
    } else if (numbers || ev->pe) {
        n = (size_t)snprintf(text, 96, " PE %u", (unsigned)ev->pe);
    }
    if (group.sort == NPUPROF_GROUP_INSTRUCTIONS_) n = npuprof_scene_append_(text, n, 96, " instructions");
    if (group.sort != NPUPROF_GROUP_STREAM_) return n;
    /* A stream that is no small number is written as the pointer it may be. */
    if (stream >> 32) return n + (size_t)snprintf(text + n, 96 - n, " stream 0x%016llx", stream);
    return n + (size_t)snprintf(text + n, 96 - n, " stream %llu", stream);
}

/* ---- Events */

/* The lane of an event, with a track. point: it is no span. */
static uint32_t npuprof_scene_placed_lane_(npuprof_scene_ *s, const npuprof_scene_event_ *e, bool point)
{
    npuprof_lane_set_ *const l = s->lanes;
    const npuprof_lane_group_ group = npuprof_scene_group_(s->image, e->ev);
    npuprof_scene_close_all_(s, e->start - point);     /* in the tick of its end, a point is in a span */
    const uint32_t lane =
        point ? npuprof_lane_point_(l, group) : npuprof_lane_find_(l, group, e->start, e->end);
    if (!l->track[lane] || lane == NPUPROF_LANES_) l->track[lane] = s->output->lane(s, e->ev, lane);
    return lane;
}

/* Is it the value of a device's counter? */
static bool npuprof_scene_is_value_(const npuprof_event_ *ev)
{
    return ev->kind == NPUPROF_KIND_DEVICE && (ev->flags & NPUPROF_STAMP_VALUE) == NPUPROF_STAMP_VALUE;
}

static void npuprof_scene_placed_event_(npuprof_scene_ *s, npuprof_image_anchor_caches_ *caches,
                                        const npuprof_placed_ *p, npuprof_scene_event_ *e)
{
    const npuprof_event_ *const ev = e->ev;
    const bool is_device = ev->kind == NPUPROF_KIND_DEVICE;
    const bool is_point = is_device && (ev->flags & NPUPROF_STAMP_INSTANT);
    const uint32_t lane = npuprof_scene_placed_lane_(s, e, is_point);
    e->track = s->lanes->track[lane];
    if (npuprof_scene_is_value_(ev)) {
        s->output->counter(s, e, NPUPROF_KIND_COUNTER_UINT, ev->end);
        return;
    }
    if (is_device) npuprof_fact_of_device_(e, s->image, caches);
    else npuprof_fact_of_finished_(e, p);
    e->submitted = is_device && npuprof_fact_draws_arrow_(s->image, ev, p->start_ns);
    if (is_point) s->output->instant(s, e);
    else npuprof_scene_span_(s, e, lane);
}

/* All of them. */
static void npuprof_scene_placed_(npuprof_scene_ *s)
{
    const npuprof_image_ *const im = s->image;
    const uint32_t kinds =
        1u << NPUPROF_KIND_DEVICE | 1u << NPUPROF_KIND_FINISHED | 1u << NPUPROF_KIND_ASYNC_BEGIN;
    npuprof_placed_walk_ spans = npuprof_placed_begin_(im, kinds);
    npuprof_image_anchor_caches_ *const caches = npuprof_image_clear_caches_();
    npuprof_event_ ev;
    npuprof_scene_event_ e;
    s->placed = 0;
    npuprof_lane_clear_all_(s->lanes);
    for (const npuprof_placed_ *p; (p = npuprof_placed_next_(&spans)) != NULL;) {
        if (p->track == s->placed && s->output->placed && s->output->placed(s, p)) continue;
        if (!npuprof_cursor_decode_at_(im, p->locator, &ev)) continue;
        npuprof_scene_show_(s, &ev, &e);
        e.start = p->start_ns - im->origin_ns;
        e.end = p->end_ns - im->origin_ns;
        if (!s->output->counters_in_lanes && npuprof_scene_is_value_(&ev)) {
            s->output->counter(s, &e, NPUPROF_KIND_COUNTER_UINT, ev.end);
            continue;
        }
        if (p->track != s->placed) {
            npuprof_scene_close_all_(s, INT64_MAX - 1);
            npuprof_lane_clear_all_(s->lanes);
            s->lanes->track[NPUPROF_LANES_] = 0;
            /* The first lane is that of executions, even if an instruction comes first. */
            if (npuprof_scene_group_(im, &ev).sort == NPUPROF_GROUP_INSTRUCTIONS_)
                npuprof_lane_add_(s->lanes, npuprof_lane_no_group_);
            s->placed = p->track;
        }
        npuprof_scene_placed_event_(s, caches, p, &e);
    }
    npuprof_scene_close_all_(s, INT64_MAX - 1);
    if (!s->error) s->error = spans.error;
}

/* ---- Pauses */

/* Two instants of the whole process for each pause, on a track of the output's. */
static void npuprof_scene_pauses_(npuprof_scene_ *s, uint64_t track)
{
    const npuprof_image_ *const im = s->image;
    const npuprof_entry_ *entry;
    npuprof_event_ none;
    npuprof_scene_event_ e;
    uint32_t id = 0;
    memset(&none, 0, sizeof none);
    memset(&e, 0, sizeof e);
    e.ev = &none;
    e.track = track;
    e.of_process = true;
    while ((entry = npuprof_image_next_entry_(im, NPUPROF_ENTRY_PAUSE, sizeof(npuprof_pause_entry_), &id)) !=
           NULL) {
        const npuprof_pause_entry_ *const pause = (const npuprof_pause_entry_ *)(const void *)entry;
        const uint64_t at[2] = { NPUPROF_LOAD_(&pause->from), NPUPROF_LOAD_(&pause->to) };
        for (int i = 0; i < 2; i++) {
            if (!at[i] || at[i] < im->clear_ticks) continue;
            e.own_name = i ? "npuprof resumed" : "npuprof paused";
            e.start = e.end = npuprof_image_trace_ns_(im, at[i]);
            s->output->instant(s, &e);
        }
    }
}

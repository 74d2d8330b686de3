#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/text.h"
#include "../numbers/time.h"
#include "../numbers/wide.h"
#include "../format/arena.h"
#include "../os/common.h"
#include "../read/image.h"
#include "../read/cursor.h"
#include "../read/threads.h"
#include "../read/time.h"
#include "../read/place.h"
#include "../read/batch.h"
#include "../read/survey.h"
#include "../read/walk.h"
#include "text.h"
#include "work.h"
#include "lanes.h"
#include "json.h"
#include "json_flow.h"

static npuprof_lane_group_ npuprof_json_group_of_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    npuprof_lane_group_ group = npuprof_lane_no_group_;
    if (ev->kind != NPUPROF_KIND_DEVICE) return group;
    if (ev->flags & NPUPROF_STAMP_SAMPLED && npuprof_args_find_(im, ev, "stream", &group.stream)) group.sort = NPUPROF_GROUP_STREAM_;
    else group.sort = npuprof_args_is_execution_(im, ev) ? NPUPROF_GROUP_EXECUTIONS_ : NPUPROF_GROUP_INSTRUCTIONS_;
    return group;
}

/* The name of a lane of a track that is no thread. A stream that is no small number is written as the pointer it may be. */
static void npuprof_json_track_name_(npuprof_work_ *w, const npuprof_event_ *ev, uint64_t track, uint32_t lane, uint32_t tid)
{
    char text[64] = "", number[24];
    size_t n = 0;
    uint32_t name = (uint32_t)track, of_group = 1;
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        const npuprof_lane_group_ group = npuprof_json_group_of_(&w->image, ev);
        const npuprof_device_entry_ *const d = npuprof_image_device_(&w->image, ev->device);
        name = d ? d->name : 0;
        if (d && (d->pe_count > 1 || ev->pe)) {
            n = npuprof_json_append_(text, n, sizeof text, " PE ");
            n = npuprof_json_append_(text, n, sizeof text, npuprof_json_decimal_(number, ev->pe));
        }
        if (group.sort == NPUPROF_GROUP_INSTRUCTIONS_) n = npuprof_json_append_(text, n, sizeof text, " instructions");
        if (group.sort == NPUPROF_GROUP_STREAM_) {
            n = npuprof_json_append_(text, n, sizeof text, group.stream >> 32 ? " stream 0x" : " stream ");
            if (group.stream >> 32) npuprof_digits_hex_text_(number, group.stream);
            else (void)npuprof_json_decimal_(number, group.stream);
            n = npuprof_json_append_(text, n, sizeof text, number);
        }
        for (uint32_t i = 0; i < lane && i < NPUPROF_LANES_; i++) of_group += npuprof_lane_same_group_(w->group[i], group);
    } else {
        of_group += lane;
    }
    if (of_group > 1) {
        n = npuprof_json_append_(text, n, sizeof text, " #");
        (void)npuprof_json_append_(text, n, sizeof text, npuprof_json_decimal_(number, of_group));
    }
    npuprof_json_name_(w, "thread_name", tid, name, "", text, "");
    npuprof_json_sort_(w, "thread_sort_index", tid, tid);
}

/* Viewers draw no arrow back in time: a device span that the clock's error puts before the submitting one has none. */
static bool npuprof_json_draws_arrow_(const npuprof_image_ *im, const npuprof_event_ *ev, int64_t start_ns)
{
    return npuprof_image_has_arrow_(im, ev) && npuprof_image_ns_(im, ev->link.ticks) <= start_ns;
}

static bool npuprof_json_causality_broken_(const npuprof_event_ *ev, uint64_t start, uint64_t start_error, uint64_t end, uint64_t end_error)
{
    return ev->has_link && ((int64_t)(start + start_error - ev->link.ticks) < 0 || (int64_t)(ev->host_ticks + end_error - end) < 0);
}

static void npuprof_json_placed_(npuprof_work_ *w)
{
    const npuprof_image_ *im = &w->image;
    const uint32_t kinds = 1u << NPUPROF_KIND_DEVICE | 1u << NPUPROF_KIND_FINISHED | 1u << NPUPROF_KIND_ASYNC_BEGIN;
    npuprof_placed_ last;
    npuprof_map_caches_ near_by;
    npuprof_event_ ev;
    char number[24];
    uint32_t first_tid = 0;                        /* of the track at hand */
    uint64_t track = 0;
    size_t count;
    memset(&near_by, 0, sizeof near_by);
    for (const npuprof_placed_ *after = NULL; (count = npuprof_batch_next_(im, kinds, after, w->placed, w->placed_room)) > 0; after = &last) {
        for (size_t i = 0; i < count; i++) {
            const npuprof_placed_ *p = &w->placed[i];
            if (!npuprof_cursor_decode_at_(im, p->locator, &ev)) continue;
            const npuprof_lane_group_ group = npuprof_json_group_of_(im, &ev);
            if (p->track != track) {
                npuprof_lane_clear_all_(w);
                track = p->track;
                first_tid = w->next_tid++;
                if (group.sort == NPUPROF_GROUP_INSTRUCTIONS_) npuprof_lane_add_(w, npuprof_lane_no_group_);  /* executions: above, whatever comes first */
            }
            const uint32_t lane = npuprof_lane_find_(w, group, p->start_ns, p->end_ns);
            if (!w->tid[lane] || lane == NPUPROF_LANES_) {
                w->tid[lane] = lane ? w->next_tid++ : first_tid;
                npuprof_json_track_name_(w, &ev, track, lane, w->tid[lane]);
            }
            npuprof_json_span_(w, &ev, w->tid[lane], p->start_ns - im->origin_ns, p->end_ns - im->origin_ns);
            if (ev.kind == NPUPROF_KIND_DEVICE) {
                char text[320];
                uint64_t start = 0, end = 0, start_error = 0, end_error = 0;
                (void)npuprof_image_host_ticks_(im, &near_by, &ev, ev.start, &start, &start_error);
                (void)npuprof_image_host_ticks_(im, &near_by, &ev, ev.end, &end, &end_error);
                const uint64_t error = start_error > end_error ? start_error : end_error;
                const bool broken = npuprof_json_causality_broken_(&ev, start, start_error, end, end_error);
                const char *parts[] = { "\"stamp\":\"", ev.flags & NPUPROF_STAMP_SAMPLED ? "sampled" : "device", "\",\"pe_index\":", NULL,
                                        ",\"start_ticks\":", NULL, ",\"end_ticks\":", NULL, ",\"error_ns\":", NULL,
                                        broken ? ",\"causality\":\"violated\"" : "",
                                        ev.has_link && ev.link.warm_up ? ",\"warm_up\":true" : "" };
                const uint64_t numbers[] = { ev.pe, ev.start, ev.end, (uint64_t)npuprof_image_ns_(im, im->h->first.ticks + error) + 1 };
                size_t n = 0;
                for (size_t part = 0, next = 0; part < sizeof parts / sizeof *parts; part++) {
                    npuprof_text_copy_(text + n, sizeof text - n, parts[part] ? parts[part] : npuprof_json_decimal_(number, numbers[next++]));
                    n += strlen(text + n);
                }
                /* A whole execution; its instructions have its trace id. */
                if (npuprof_args_is_execution_(im, &ev))
                    npuprof_json_ids_(im, text, sizeof text, ev.has_link ? ev.link.slot : ev.tid, ev.has_link ? ev.link.root_position : ev.position,
                                      ev.tid, ev.position);
                npuprof_json_args_(w, &ev, text);
            } else {
                npuprof_json_args_(w, &ev, p->unfinished ? "\"unfinished\":true" : p->out_of_range ? "\"stamps_out_of_range\":true"
                                           : ev.kind == NPUPROF_KIND_FINISHED && (int64_t)ev.second < (int64_t)ev.value ? "\"end_before_start\":true" : "");
            }
            npuprof_out_puts_(&w->out, "}");
            if (ev.kind == NPUPROF_KIND_DEVICE && npuprof_json_draws_arrow_(im, &ev, p->start_ns))
                npuprof_json_arrow_(w, "submit", ev.link.slot, npuprof_image_trace_ns_(im, ev.link.ticks), w->tid[lane],
                                    p->start_ns - im->origin_ns);
        }
        last = w->placed[count - 1];
    }
}

static void npuprof_json_pauses_(npuprof_work_ *w)
{
    uint32_t id = 0;
    const npuprof_entry_ *e;
    while ((e = npuprof_image_next_entry_(&w->image, NPUPROF_ENTRY_PAUSE, sizeof(npuprof_pause_entry_), &id)) != NULL) {
        const npuprof_pause_entry_ *pause = (const npuprof_pause_entry_ *)(const void *)e;
        const uint64_t at[2] = { NPUPROF_LOAD_(&pause->from), NPUPROF_LOAD_(&pause->to) };
        for (int i = 0; i < 2; i++)
            if (at[i] && at[i] >= w->image.clear_ticks) {
                npuprof_json_open_(w, "i", 0, i ? "npuprof resumed" : "npuprof paused", 0, 1);
                npuprof_json_stamp_(w, ",\"s\":\"p\",\"ts\":", npuprof_image_trace_ns_(&w->image, at[i]));
                npuprof_out_puts_(&w->out, "}");
            }
    }
}

static void npuprof_json_member_(npuprof_out_ *o, const char *key, uint64_t value)
{
    npuprof_out_puts_(o, key);
    npuprof_out_uint_(o, value);
}
/* A member in thousandths, null where it is not known. */
static void npuprof_json_milli_(npuprof_out_ *o, const char *key, bool is_known, uint64_t thousandths, bool is_negative)
{
    npuprof_out_puts_(o, key);
    if (is_known) npuprof_out_milli_(o, is_negative ? -(int64_t)thousandths : (int64_t)thousandths);
    else npuprof_out_puts_(o, "null");
}

/* How a device's clock was mapped. Rate: between the first and the last anchor of the longest epoch, so its uncertainty is
   their two errors over their distance; null where there is none. */
static void npuprof_json_clock_sync_(npuprof_work_ *w, const npuprof_device_entry_ *d)
{
    const npuprof_image_ *im = &w->image;
    npuprof_out_ *o = &w->out;
    npuprof_anchor_ first, last, begin;
    npuprof_map_caches_ near_by;
    npuprof_event_ ev;
    npuprof_cursor_ c;
    uint32_t block = 0, index = 0, epoch = 0, of_epoch = 0, anchors = 0;
    uint64_t violations = 0, worst = 0, unplaced = 0, spans = 0, undrawn = 0;
    memset(&first, 0, sizeof first);
    memset(&near_by, 0, sizeof near_by);
    last = begin = first;
    for (npuprof_anchor_ a; npuprof_image_next_anchor_(im, d, &block, &index, &epoch, &a); anchors++) {
        if (!anchors || epoch != of_epoch) begin = a;
        of_epoch = epoch;
        if (a.host_after - begin.host_after <= last.host_after - first.host_after) continue;
        first = begin;
        last = a;
    }
    for (const npuprof_slot_head_ *slot = npuprof_image_next_slot_(im, NULL); slot; slot = npuprof_image_next_slot_(im, slot)) {
        npuprof_cursor_begin_slot_(&c, im, slot);
        while (npuprof_cursor_next_event_(&c, &ev)) {
            uint64_t start, end, start_error, end_error;
            if (ev.kind != NPUPROF_KIND_DEVICE || ev.device != d->head.a) continue;
            spans++;
            if (!npuprof_image_host_ticks_(im, &near_by, &ev, ev.start, &start, &start_error) ||
                !npuprof_image_host_ticks_(im, &near_by, &ev, ev.end, &end, &end_error)) {
                unplaced++;
                continue;
            }
            if (start_error > worst) worst = start_error;
            if (end_error > worst) worst = end_error;
            violations += npuprof_json_causality_broken_(&ev, start, start_error, end, end_error);
            undrawn += npuprof_image_has_arrow_(im, &ev) && !npuprof_json_draws_arrow_(im, &ev, npuprof_image_ns_(im, start));
        }
    }
    const uint64_t ticks = last.device_ticks - first.device_ticks;
    const uint64_t first_at = first.host_before + (first.host_after - first.host_before) / 2;
    const uint64_t last_at = last.host_before + (last.host_after - last.host_before) / 2;
    const uint64_t wobble = (first.host_after - first.host_before) / 2 + (last.host_after - last.host_before) / 2 + 2;
    const uint64_t span_ns = (uint64_t)npuprof_image_ns_(im, im->h->first.ticks + (last_at - first_at));
    uint64_t rate_mhz = span_ns ? npuprof_scale_(ticks, 1000000000000u, span_ns) : 0;
    if (rate_mhz > NPUPROF_MAX_HZ_ * 1000) rate_mhz = 0;     /* no counter's: its values jump */
    npuprof_json_milli_(o, "{\"rate_hz\":", rate_mhz, rate_mhz, false);
    /* One device tick of reading granularity at either end, and the host clock's own two anchors. */
    uint64_t ppt = last_at > first_at ? npuprof_scale_(wobble, 1000000000000u, last_at - first_at) : 0;
    if (ticks) ppt += npuprof_scale_(1, 1000000000000u, ticks);
    const npuprof_host_anchor_ *const closing = &im->closing;
    if (closing->ticks > im->h->first.ticks && !im->h->clock_hz)
        ppt += npuprof_scale_(im->h->first.error_ticks + closing->error_ticks + 1, 1000000000000u, closing->ticks - im->h->first.ticks);
    npuprof_json_milli_(o, ",\"rate_uncertainty_ppm\":", rate_mhz, ppt / 1000 + 1, false);
    npuprof_out_puts_(o, ",\"nominal_hz\":");
    if (d->nominal_hz) npuprof_out_uint_(o, d->nominal_hz);
    else npuprof_out_puts_(o, "null");
    const bool has_drift = d->nominal_hz && d->nominal_hz <= NPUPROF_MAX_HZ_ && rate_mhz;
    const uint64_t nominal = has_drift ? d->nominal_hz * 1000 : 1;
    const bool slow = rate_mhz < nominal;
    const uint64_t ppb = npuprof_scale_(slow ? nominal - rate_mhz : rate_mhz - nominal, 1000000000u, nominal);
    npuprof_json_milli_(o, ",\"drift_ppm\":", has_drift, npuprof_min_(ppb, INT64_MAX), slow);
    npuprof_json_member_(o, ",\"max_error_ns\":", worst ? (uint64_t)npuprof_image_ns_(im, im->h->first.ticks + worst) + 1 : 0);
    npuprof_json_member_(o, ",\"anchors\":", anchors);
    npuprof_json_member_(o, ",\"wraps\":", NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_WRAPS]));
    npuprof_json_member_(o, ",\"resets\":", NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_RESETS]));
    npuprof_json_member_(o, ",\"ambiguous_gaps\":", NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_AMBIGUOUS]));
    npuprof_json_member_(o, ",\"dead_reads\":", NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_DEAD_READS]));
    npuprof_json_member_(o, ",\"torn_reads\":", NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_TORN_READS]));
    npuprof_json_member_(o, ",\"ring_lost\":", NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_RING_LOST]));
    npuprof_json_member_(o, ",\"spans\":", spans);
    npuprof_json_member_(o, ",\"unplaced_spans\":", unplaced);
    npuprof_json_member_(o, ",\"causality_violations\":", violations);
    npuprof_json_member_(o, ",\"arrows_left_out\":", undrawn);
    /* [ns after the first clock anchor, half width in ns, device ticks] of each anchor, the first thousand. */
    npuprof_out_puts_(o, ",\"anchor_list\":[");
    block = index = 0;
    uint32_t shown = 0;
    for (npuprof_anchor_ a; shown < 1000 && npuprof_image_next_anchor_(im, d, &block, &index, &epoch, &a); shown++) {
        const uint64_t half = (a.host_after - a.host_before + 1) / 2;
        npuprof_out_puts_(o, shown ? ",[" : "[");
        npuprof_out_int_(o, npuprof_image_ns_(im, a.host_before + half));
        npuprof_json_member_(o, ",", (uint64_t)npuprof_image_ns_(im, im->h->first.ticks + half) + 1);
        npuprof_json_member_(o, ",", a.device_ticks);
        npuprof_out_puts_(o, "]");
    }
    npuprof_out_puts_(o, "]}");
}

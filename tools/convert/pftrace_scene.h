#pragma once   /* SPDX-License-Identifier: MIT */
#include "pftrace.h"
#include "pftrace_event.h"
#include "pftrace_arrows.h"

/* The scene (read/scene.h) as packets. A span is two events, and its end is sent when the scene comes to
   it. A device is a track, and its engines (PEs) and streams are tracks under it. */

static npuprof_pftrace_ *npuprof_pftrace_of_(const npuprof_scene_ *s)
{
    return (npuprof_pftrace_ *)s->user;
}

/* ---- Spans */

/* Caches the begin of a plain span, for those of its call site that follow. The event was just built. */
static void npuprof_pftrace_cache_plain_(npuprof_pftrace_ *p, uint64_t key)
{
    npuprof_pftrace_plain_ *const plain = &p->plain[((uint32_t)key >> 8) % 256];
    if (p->event.used > sizeof plain->bytes) return;
    plain->key = key;
    plain->length = (uint32_t)p->event.used;
    memcpy(plain->bytes, p->event.bytes, p->event.used);
}

/* npuprof_scene_close_() of the thread's first lane. Why again: its calls take as long as the packets. */
static inline void npuprof_pftrace_close_(npuprof_pftrace_ *p, npuprof_lane_set_ *l, int64_t until)
{
    const npuprof_lane_node_ *node;
    while ((node = &l->nodes[l->top[0]])->end <= until) {
        npuprof_pftrace_send_end_(p, l->track[0], node->end, node->mark);
        npuprof_lane_drop_(l, 0);
    }
}

NPUPROF_HOT_ static void npuprof_pftrace_plain_spans_(npuprof_scene_ *s)
{
    npuprof_pftrace_ *const p = npuprof_pftrace_of_(s);
    npuprof_walk_ *const w = s->walk;
    const bool walk = npuprof_scene_needs_walk_(s->image);
    npuprof_event_ ev;
    npuprof_scene_event_ e;
    if (p->tie_first < p->tie_end) return;             /* arrows may end at any of them */
    npuprof_plain_walk_ c = npuprof_cursor_begin_plains_(&w->cursor[0]);
    npuprof_plain_ span;
    e.ev = &ev;
    e.keys = 0;                            /* of such a span the library itself says nothing */
    ev.position = ev.end = 0;
    ev.results = false;
    while (npuprof_cursor_peek_plain_(&c, &span)) {
        const uint64_t key = npuprof_span_text_key_(1, span.site, NPUPROF_KIND_SPAN);
        const npuprof_pftrace_plain_ *const plain = &p->plain[((uint32_t)key >> 8) % 256];
        const npuprof_unit_ *const args = c.at + 1;
        if (plain->key != key || !npuprof_cursor_plain_ended_(&c, &span)) break;
        if (args != span.behind && npuprof_unit_load_id_(args) != NPUPROF_CONTROL_ARG_) break;
        const int64_t start = npuprof_image_trace_ns_(s->image, span.start);
        const int64_t end = npuprof_image_trace_ns_(s->image, span.end);
        npuprof_pftrace_close_(p, s->lanes, start);
        if (!npuprof_lane_nest_(s->lanes, 0, start, end)) break;
        s->lanes->nodes[s->lanes->top[0]].mark = 0;
        if (walk)
            npuprof_walk_plain_(w, span.start, span.end, npuprof_cursor_plain_position_(&w->cursor[0], &c));
        if (args == span.behind) {
            npuprof_pftrace_send_short_(p, s->lanes->track[0], start, plain->bytes, plain->length);
        } else {
            ev.args = args;
            ev.args_end = span.behind;
            npuprof_pftrace_begin_(p);
            npuprof_proto_raw_(&p->event, plain->bytes, plain->length);
            npuprof_pftrace_put_args_(p, &e);
            npuprof_pftrace_send_(p, s->lanes->track[0], start);
        }
        c.at = span.behind;
    }
    npuprof_cursor_end_plains_(&w->cursor[0], &c);
}

/* Begins an event of the scene, up to its facts. */
static void npuprof_pftrace_begin_shown_(npuprof_pftrace_ *p, const npuprof_scene_event_ *e, unsigned type)
{
    npuprof_pftrace_begin_event_(p, type);
    if (e->own_name) npuprof_proto_words_(&p->event, NPUPROF_PFTRACE_NAME_TEXT_, e->own_name);
    else npuprof_pftrace_put_names_(p, e->name, e->own_category ? 0 : e->category);
    if (e->own_category) npuprof_proto_words_(&p->event, NPUPROF_PFTRACE_CATEGORY_TEXT_, e->own_category);
    if (!e->derived && npuprof_scene_of_kind_[e->ev->kind]) npuprof_pftrace_put_source_(p, e->ev);
}

static uint32_t npuprof_pftrace_span_(npuprof_scene_ *s, const npuprof_scene_event_ *e)
{
    npuprof_pftrace_ *const p = npuprof_pftrace_of_(s);
    const npuprof_event_ *const ev = e->ev;
    npuprof_pftrace_begin_shown_(p, e, NPUPROF_PFTRACE_BEGIN_);
    if (ev->kind == NPUPROF_KIND_SPAN && !e->fact_count && !ev->results)
        npuprof_pftrace_cache_plain_(p, npuprof_span_text_key_(1, ev->site, ev->kind));
    npuprof_pftrace_put_facts_(p, e);
    if (e->submitted)
        npuprof_proto_fixed64_(&p->event, NPUPROF_PFTRACE_FLOW_END_IDS_,
                               npuprof_pftrace_submit_number_(p, ev));
    npuprof_pftrace_put_args_(p, e);
    if (ev->kind == NPUPROF_KIND_DEVICE && ev->has_link)
        npuprof_pftrace_put_correlation_(p, ev->link.slot, ev->link.position);
    const uint32_t tie = npuprof_kind_nests_(ev->kind) ? npuprof_pftrace_put_ties_(p, ev->position) : 0;
    npuprof_pftrace_send_(p, e->track, e->start);
    return tie;
}

static void npuprof_pftrace_end_(npuprof_scene_ *s, uint64_t track, int64_t ns, uint32_t tie)
{
    npuprof_pftrace_send_end_(npuprof_pftrace_of_(s), track, ns, tie);
}

/* ---- Counters: a track for each name */

/* counter_descriptor.proto; tracks of one key have one scale */
enum { NPUPROF_PFTRACE_UNIT_BYTES_ = 3, NPUPROF_PFTRACE_UNIT_NAME_ = 6, NPUPROF_PFTRACE_SCALE_KEY_ = 7 };

/* The unit of a counter, if the program says it: npuprof_metadata("npuprof.unit.NAME", UNIT). */
static void npuprof_pftrace_put_unit_(npuprof_pftrace_ *p, const char *name, size_t length)
{
    static const char says[] = "npuprof.unit.";
    const size_t before = sizeof says - 1;
    const npuprof_image_ *const im = &p->work->image;
    const npuprof_pair_entry_ *pair;
    const char *unit = NULL;
    size_t unit_length = 0;
    uint32_t id = 0;
    while ((pair = (const npuprof_pair_entry_ *)(const void *)npuprof_image_next_entry_(
                im, NPUPROF_ENTRY_METADATA, sizeof *pair, &id)) != NULL) {
        size_t count;
        const char *const key = npuprof_image_text_(im, pair->b[0], &count);
        if (!pair->b[1] || count != before + length || memcmp(key, says, before)) continue;
        if (!memcmp(key + before, name, length)) unit = npuprof_image_text_(im, pair->b[1], &unit_length);
    }
    if (unit) npuprof_proto_text_(&p->event, NPUPROF_PFTRACE_UNIT_NAME_, unit, unit_length);
}

/* What a track shows: the value of a counter; one of the two of a memory pool; or what changed the pool, and
   below it those two. */
enum { NPUPROF_PFTRACE_VALUE_ = 0, NPUPROF_PFTRACE_USED_, NPUPROF_PFTRACE_ALLOCATED_, NPUPROF_PFTRACE_POOL_ };

/* Describes the track of a counter or a pool, if that was not done yet, and returns its number; 0: it has no
   name in the image. */
static uint64_t npuprof_pftrace_counter_track_(npuprof_pftrace_ *p, uint32_t name, unsigned shows)
{
    static const char *const suffixes[] = { "", " used", " allocated", "" };
    size_t length;
    const char *const text = npuprof_image_text_(&p->work->image, name, &length);
    const uint64_t key = npuprof_hash_text_(text, length) ^ (uint64_t)shows << 40;
    const uint64_t uuid = npuprof_pftrace_number_(p, NPUPROF_PFTRACE_OF_COUNTER_, key);
    const size_t at = NPUPROF_FACT_COUNT_ + (size_t)name;
    if (at >= p->name_count) return 0;
    const uint32_t bit = 1u << (NPUPROF_PFTRACE_SPACES_ + 1 + shows);
    if (p->names[at].sent & bit) return uuid;
    p->names[at].sent |= bit;
    const bool of_pool = shows == NPUPROF_PFTRACE_USED_ || shows == NPUPROF_PFTRACE_ALLOCATED_;
    const uint64_t pool = of_pool ? npuprof_pftrace_counter_track_(p, name, NPUPROF_PFTRACE_POOL_) : 0;
    const size_t track = npuprof_pftrace_begin_track_(p, uuid, of_pool ? pool : p->process);
    npuprof_pftrace_name_track_(p, name, suffixes[shows]);
    if (shows == NPUPROF_PFTRACE_POOL_) {
        npuprof_pftrace_end_track_(p, track);
        return uuid;
    }
    const size_t counter = npuprof_proto_begin_(&p->event, 8);
    if (of_pool) npuprof_proto_uint_(&p->event, 3, NPUPROF_PFTRACE_UNIT_BYTES_);
    if (of_pool) npuprof_proto_text_(&p->event, NPUPROF_PFTRACE_SCALE_KEY_, text, length);
    else npuprof_pftrace_put_unit_(p, text, length);
    npuprof_proto_end_(&p->event, counter);
    npuprof_pftrace_end_track_(p, track);
    return uuid;
}

static void npuprof_pftrace_sample_(npuprof_pftrace_ *p, uint64_t track, int64_t ns, uint32_t kind,
                                    uint64_t bits)
{
    if (!track) return;
    npuprof_pftrace_begin_event_(p, NPUPROF_PFTRACE_COUNTER_);
    if (npuprof_kind_is_real_(kind)) {
        npuprof_proto_fixed64_(&p->event, NPUPROF_PFTRACE_COUNTER_REAL_, bits);
    } else if (kind == NPUPROF_KIND_COUNTER_UINT && bits >> 63) {
        npuprof_proto_fixed64_(&p->event, NPUPROF_PFTRACE_COUNTER_REAL_, npuprof_real_bits_((double)bits));
    } else {
        npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_COUNTER_VALUE_, bits);
    }
    npuprof_pftrace_send_(p, track, ns);
}

static void npuprof_pftrace_counter_(npuprof_scene_ *s, const npuprof_scene_event_ *e, uint32_t kind,
                                     uint64_t bits)
{
    npuprof_pftrace_ *const p = npuprof_pftrace_of_(s);
    const uint64_t track = npuprof_pftrace_counter_track_(p, e->name, NPUPROF_PFTRACE_VALUE_);
    npuprof_pftrace_sample_(p, track, e->start, kind, bits);
}

static void npuprof_pftrace_pool_(npuprof_scene_ *s, const npuprof_scene_event_ *e)
{
    npuprof_pftrace_ *const p = npuprof_pftrace_of_(s);
    const uint32_t kind = NPUPROF_KIND_COUNTER_UINT;
    uint64_t track = npuprof_pftrace_counter_track_(p, e->category, NPUPROF_PFTRACE_USED_);
    npuprof_pftrace_sample_(p, track, e->start, kind, e->ev->value);
    track = npuprof_pftrace_counter_track_(p, e->category, NPUPROF_PFTRACE_ALLOCATED_);
    npuprof_pftrace_sample_(p, track, e->start, kind, e->ev->second);
}

/* What changed a pool is on the pool's track, with the number of the thread that did it. */
static void npuprof_pftrace_instant_(npuprof_scene_ *s, const npuprof_scene_event_ *e)
{
    npuprof_pftrace_ *const p = npuprof_pftrace_of_(s);
    const uint64_t pool = e->derived ? npuprof_pftrace_counter_track_(p, e->ev->category,
                                                                      NPUPROF_PFTRACE_POOL_) : 0;
    npuprof_pftrace_begin_shown_(p, e, NPUPROF_PFTRACE_INSTANT_);
    npuprof_pftrace_put_facts_(p, e);
    if (pool) {
        const size_t arg = npuprof_proto_begin_(&p->event, NPUPROF_PFTRACE_ARGS_);
        npuprof_proto_words_(&p->event, 10, "tid");
        npuprof_proto_uint_(&p->event, 3, p->tid);
        npuprof_proto_end_(&p->event, arg);
    }
    npuprof_pftrace_put_args_(p, e);
    npuprof_pftrace_send_(p, pool ? pool : e->track, e->start);
}

/* ---- Tracks */

/* Begins the description of a lane's track. The caller names it. */
static size_t npuprof_pftrace_begin_lane_(npuprof_pftrace_ *p, uint64_t *uuid, uint64_t parent)
{
    *uuid = npuprof_pftrace_number_(p, NPUPROF_PFTRACE_OF_LANE_, ++p->lanes);
    return npuprof_pftrace_begin_track_(p, *uuid, parent);
}

/* Describes the thread's track, by its number in the system if that is known. */
static uint64_t npuprof_pftrace_thread_(npuprof_scene_ *s, const npuprof_scene_thread_track_ *t)
{
    npuprof_pftrace_ *const p = npuprof_pftrace_of_(s);
    const uint64_t uuid = npuprof_pftrace_number_(p, NPUPROF_PFTRACE_OF_THREAD_, t->tid);
    size_t length;
    p->tid = t->native_id ? t->native_id : t->tid;
    npuprof_pftrace_begin_ties_(p, s, t->tid);
    const size_t track = npuprof_pftrace_begin_track_(p, uuid, 0);
    const size_t thread = npuprof_proto_begin_(&p->event, 4);
    npuprof_proto_uint_(&p->event, 1, s->image->h->pid);
    npuprof_proto_uint_(&p->event, 2, p->tid);
    const char *const name = npuprof_image_text_(s->image, t->name, &length);
    if (t->name) npuprof_proto_text_(&p->event, 5, name, npuprof_utf8_cut_(name, length, 100));
    else npuprof_proto_words_(&p->event, 5, t->own);
    npuprof_proto_end_(&p->event, thread);
    npuprof_pftrace_end_track_(p, track);
    npuprof_pftrace_use_track_(p, uuid);
    return uuid;
}

static uint64_t npuprof_pftrace_overlap_(npuprof_scene_ *s, const npuprof_scene_thread_track_ *t)
{
    npuprof_pftrace_ *const p = npuprof_pftrace_of_(s);
    uint64_t uuid;
    char text[192];
    const size_t track = npuprof_pftrace_begin_lane_(p, &uuid, p->process);
    npuprof_proto_text_(&p->event, NPUPROF_PFTRACE_NAME_, text,
                        npuprof_scene_overlap_name_(s->image, t, 100, text));
    npuprof_pftrace_merge_track_(p, s->lanes->track[0]);
    npuprof_pftrace_end_track_(p, track);
    return uuid;
}

/* Says below the device's name how wrong its stamps may be. */
static void npuprof_pftrace_describe_clock_(npuprof_pftrace_ *p, const npuprof_device_entry_ *d)
{
    const npuprof_image_ *const im = &p->work->image;
    npuprof_json_sync_ sync;
    char text[96];
    npuprof_json_collect_sync_(im, d, &sync);
    if (!sync.max_error) return;
    const int64_t ns = npuprof_image_ns_(im, im->h->first.ticks + sync.max_error) + 1;
    snprintf(text, sizeof text, "the device's stamps, at most %lld ns wrong on the host's clock",
             (long long)ns);
    npuprof_proto_words_(&p->event, NPUPROF_PFTRACE_DESCRIPTION_, text);
}

/* The track of an event's device, which is described before the first lane of it. */
static uint64_t npuprof_pftrace_device_track_(npuprof_pftrace_ *p, const npuprof_event_ *ev)
{
    const npuprof_device_entry_ *const d = npuprof_image_device_(&p->work->image, ev->device);
    const uint64_t uuid = npuprof_pftrace_number_(p, NPUPROF_PFTRACE_OF_DEVICE_, ev->device);
    if (p->device == ev->device) return uuid;
    p->device = ev->device;
    const size_t track = npuprof_pftrace_begin_track_(p, uuid, 0);
    npuprof_pftrace_name_track_(p, d ? d->name : 0, "");
    if (d) npuprof_pftrace_describe_clock_(p, d);
    npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_ORDERING_, 3);      /* its children by their rank */
    npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_MERGE_, 2);         /* not with another process's device */
    npuprof_pftrace_end_track_(p, track);
    return uuid;
}

/* Lanes of one group have one name and one key, and the viewer draws them as one track. */
static uint64_t npuprof_pftrace_lane_(npuprof_scene_ *s, const npuprof_event_ *ev, uint32_t lane)
{
    npuprof_pftrace_ *const p = npuprof_pftrace_of_(s);
    const bool is_device = ev->kind == NPUPROF_KIND_DEVICE;
    const npuprof_lane_group_ group = npuprof_scene_group_(s->image, ev);
    const uint64_t of = npuprof_hash_mix_(s->placed) + group.sort + npuprof_hash_mix_(group.stream);
    const uint64_t parent = is_device ? npuprof_pftrace_device_track_(p, ev) : p->process;
    uint64_t uuid;
    const size_t track = npuprof_pftrace_begin_lane_(p, &uuid, parent);
    (void)lane;
    if (is_device) {
        char text[96];
        (void)npuprof_scene_lane_text_(s->image, ev, true, text);
        npuprof_proto_words_(&p->event, NPUPROF_PFTRACE_NAME_, text + 1);
        npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_RANK_, ev->pe * 3u + group.sort + 1);
    } else {
        npuprof_pftrace_name_track_(p, (uint32_t)s->placed, "");
    }
    npuprof_pftrace_merge_track_(p, npuprof_pftrace_number_(p, NPUPROF_PFTRACE_OF_GROUP_, of));
    npuprof_pftrace_end_track_(p, track);
    npuprof_pftrace_use_track_(p, uuid);
    return uuid;
}

static const npuprof_scene_output_ npuprof_pftrace_output_ = {
    npuprof_pftrace_thread_, npuprof_pftrace_overlap_, npuprof_pftrace_lane_, npuprof_pftrace_plain_spans_,
    NULL, npuprof_pftrace_span_, npuprof_pftrace_end_, npuprof_pftrace_instant_, npuprof_pftrace_counter_,
    npuprof_pftrace_pool_, npuprof_pftrace_arrow_, false
};

#pragma once   /* SPDX-License-Identifier: MIT */
#include "pftrace.h"
#include "pftrace_event.h"
#include "pftrace_arrows.h"

/* The events of one thread, in the order of time: spans, instants, counters, states of memory pools. The same
   walk and the same lanes as in the JSON (write/json_thread.h). A span is two events, and its end is sent
   when the walk comes to it. */

/* Sends the ends of a lane's spans that are over at a moment, or before it. */
static void npuprof_pftrace_close_lane_(npuprof_pftrace_ *p, uint32_t lane, int64_t until)
{
    npuprof_work_ *const w = p->work;
    uint32_t top = w->top[lane];
    while (w->nodes[top].end <= until) {
        const uint32_t node = top;
        npuprof_pftrace_send_end_(p, p->lane[lane], w->nodes[node].end, w->nodes[node].pad);
        top = w->nodes[node].below;
        w->nodes[node].below = w->free_node;
        w->free_node = node;
    }
    w->top[lane] = top;
}

static void npuprof_pftrace_close_lanes_(npuprof_pftrace_ *p, int64_t until)
{
    for (uint32_t lane = 0; lane < p->work->lanes; lane++) npuprof_pftrace_close_lane_(p, lane, until);
}

/* The span that was just put into a lane: its end is sent later, with the arrows that reach it. */
static void npuprof_pftrace_leave_open_(npuprof_pftrace_ *p, uint32_t lane, int64_t end, uint32_t tie)
{
    npuprof_work_ *const w = p->work;
    if (lane == NPUPROF_LANES_) npuprof_pftrace_send_end_(p, p->lane[lane], end, tie);
    else w->nodes[w->top[lane]].pad = tie;
}

/* ---- Plain spans */

/* Caches the begin of a plain span, for those of its call site that follow. The event was just built. */
static void npuprof_pftrace_cache_plain_(npuprof_pftrace_ *p, uint64_t key)
{
    npuprof_pftrace_plain_ *const plain = &p->plain[((uint32_t)key >> 8) % 256];
    if (p->event.used > sizeof plain->bytes) return;
    plain->key = key;
    plain->length = (uint32_t)p->event.used;
    memcpy(plain->bytes, p->event.bytes, p->event.used);
}

static void npuprof_pftrace_plain_spans_(npuprof_pftrace_ *p)
{
    npuprof_work_ *const w = p->work;
    const bool walk = npuprof_json_needs_walk_(&w->image);
    npuprof_plain_walk_ c = npuprof_cursor_begin_plains_(&w->walk.cursor[0]);
    npuprof_plain_ s;
    while (npuprof_cursor_peek_plain_(&c, &s)) {
        const uint64_t key = npuprof_span_text_key_(1, s.site, NPUPROF_KIND_SPAN);
        const npuprof_pftrace_plain_ *const plain = &p->plain[((uint32_t)key >> 8) % 256];
        if (plain->key != key) break;
        const int64_t start = npuprof_image_trace_ns_(&w->image, s.start);
        const int64_t end = npuprof_image_trace_ns_(&w->image, s.end);
        npuprof_pftrace_close_lane_(p, 0, start);
        if (!npuprof_lane_nest_(w, 0, start, end)) break;
        w->nodes[w->top[0]].pad = 0;
        if (walk) npuprof_walk_plain_(&w->walk, &s, npuprof_cursor_plain_position_(&w->walk.cursor[0], &c));
        npuprof_pftrace_send_short_(p, p->lane[0], start, plain->bytes, plain->length);
        c.at++;
    }
    (void)npuprof_cursor_end_plains_(&w->walk.cursor[0], &c);
}

/* Begins the description of a lane's track. The caller names it. */
static size_t npuprof_pftrace_begin_lane_(npuprof_pftrace_ *p, uint32_t lane, uint64_t parent)
{
    p->lane[lane] = npuprof_pftrace_number_(p, NPUPROF_PFTRACE_OF_LANE_, ++p->lanes);
    return npuprof_pftrace_begin_track_(p, p->lane[lane], parent);
}

/* ---- Spans */

static void npuprof_pftrace_thread_span_(npuprof_pftrace_ *p, const npuprof_event_ *ev, uint32_t name)
{
    static const char *const kinds[] = { "", "record", "warm_up", "inference", "operator" };
    npuprof_work_ *const w = p->work;
    const int64_t start = npuprof_image_trace_ns_(&w->image, ev->start);
    int64_t end = npuprof_image_trace_ns_(&w->image, ev->end);
    uint32_t words = 0;
    if (end < start) end = start;
    npuprof_pftrace_close_lanes_(p, start);
    const uint32_t lane = npuprof_lane_find_(w, npuprof_lane_no_group_, start, end);
    if (!p->lane[lane] || lane == NPUPROF_LANES_) {
        const size_t track = npuprof_pftrace_begin_lane_(p, lane, p->process);
        npuprof_pftrace_name_track_(p, name, name ? " (overlap)" : "thread (overlap)");
        npuprof_pftrace_merge_track_(p, p->lane[0]);
        npuprof_pftrace_end_track_(p, track);
    }
    npuprof_pftrace_begin_event_(p, NPUPROF_PFTRACE_BEGIN_);
    npuprof_pftrace_put_names_(p, ev->name, ev->category);
    npuprof_pftrace_put_source_(p, ev);
    const bool closed = !ev->unfinished && !ev->cut;
    const bool has_args = ev->args != ev->args_end || ev->results;
    if (ev->kind == NPUPROF_KIND_SPAN && !has_args && closed)
        npuprof_pftrace_cache_plain_(p, npuprof_span_text_key_(1, ev->site, ev->kind));
    if (ev->kind != NPUPROF_KIND_SPAN) {
        npuprof_pftrace_put_word_(p, NPUPROF_PFTRACE_WORD_KIND_, kinds[ev->kind - NPUPROF_KIND_SPAN]);
        npuprof_pftrace_put_ids_(p, ev->tid, w->walk.root, ev->tid, ev->position);
        words |= 1u << NPUPROF_PFTRACE_WORD_KIND_ | 1u << NPUPROF_PFTRACE_WORD_TRACE_ID_ |
                 1u << NPUPROF_PFTRACE_WORD_SPAN_ID_;
    }
    if (ev->unfinished) npuprof_pftrace_put_true_(p, NPUPROF_PFTRACE_WORD_UNFINISHED_);
    else if (ev->cut) npuprof_pftrace_put_word_(p, NPUPROF_PFTRACE_WORD_UNFINISHED_, "unwound");
    if (ev->unfinished || ev->cut) words |= 1u << NPUPROF_PFTRACE_WORD_UNFINISHED_;
    npuprof_pftrace_put_args_(p, ev, words);
    const uint32_t tie = npuprof_pftrace_put_ties_(p, ev->position);
    npuprof_pftrace_send_(p, p->lane[lane], start);
    npuprof_pftrace_leave_open_(p, lane, end, tie);
}

/* ---- Counters: a track for each name */

enum { NPUPROF_PFTRACE_UNIT_BYTES_ = 3 };     /* counter_descriptor.proto */

/* What a counter's track shows: the value of a counter, or one of the two of a memory pool. */
enum { NPUPROF_PFTRACE_VALUE_ = 0, NPUPROF_PFTRACE_USED_, NPUPROF_PFTRACE_ALLOCATED_ };

/* Describes the track of a counter, if that was not done yet, and returns its number; 0: it has no name in
   the image. */
static uint64_t npuprof_pftrace_counter_track_(npuprof_pftrace_ *p, uint32_t name, unsigned shows)
{
    static const char *const suffixes[] = { "", " used", " allocated" };
    size_t length;
    const char *const text = npuprof_image_text_(&p->work->image, name, &length);
    const uint64_t key = npuprof_hash_text_(text, length) ^ (uint64_t)shows << 40;
    const uint64_t uuid = npuprof_pftrace_number_(p, NPUPROF_PFTRACE_OF_COUNTER_, key);
    const size_t at = NPUPROF_PFTRACE_WORD_COUNT_ + (size_t)name;
    if (at >= p->name_count) return 0;
    const uint32_t bit = 1u << (NPUPROF_PFTRACE_SPACES_ + 1 + shows);
    if (p->names[at].sent & bit) return uuid;
    p->names[at].sent |= bit;
    const size_t track = npuprof_pftrace_begin_track_(p, uuid, p->process);
    npuprof_pftrace_name_track_(p, name, suffixes[shows]);
    const size_t counter = npuprof_proto_begin_(&p->event, 8);
    if (shows) npuprof_proto_uint_(&p->event, 3, NPUPROF_PFTRACE_UNIT_BYTES_);
    npuprof_proto_end_(&p->event, counter);
    npuprof_pftrace_end_track_(p, track);
    return uuid;
}

static void npuprof_pftrace_sample_(npuprof_pftrace_ *p, uint64_t track, int64_t ns, uint32_t kind,
                                    uint64_t bits)
{
    if (!track) return;
    npuprof_pftrace_begin_event_(p, NPUPROF_PFTRACE_COUNTER_);
    if (kind == NPUPROF_KIND_COUNTER_REAL) {
        npuprof_proto_fixed64_(&p->event, NPUPROF_PFTRACE_COUNTER_REAL_, bits);
    } else if (kind == NPUPROF_KIND_COUNTER_UINT && bits >> 63) {
        npuprof_proto_fixed64_(&p->event, NPUPROF_PFTRACE_COUNTER_REAL_, npuprof_real_bits_((double)bits));
    } else {
        npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_COUNTER_VALUE_, bits);
    }
    npuprof_pftrace_send_(p, track, ns);
}

static void npuprof_pftrace_memory_(npuprof_pftrace_ *p, const npuprof_event_ *ev, int64_t ns)
{
    size_t length;
    const uint32_t pool = ev->category, kind = NPUPROF_KIND_COUNTER_UINT;
    uint64_t track = npuprof_pftrace_counter_track_(p, pool, NPUPROF_PFTRACE_USED_);
    npuprof_pftrace_sample_(p, track, ns, kind, ev->value);
    track = npuprof_pftrace_counter_track_(p, pool, NPUPROF_PFTRACE_ALLOCATED_);
    npuprof_pftrace_sample_(p, track, ns, kind, ev->second);
    const char *const tag = npuprof_image_text_(&p->work->image, ev->name, &length);
    if (!length && !ev->change) return;
    npuprof_pftrace_begin_event_(p, NPUPROF_PFTRACE_INSTANT_);
    if (length) npuprof_pftrace_put_names_(p, ev->name, 0);
    else npuprof_proto_words_(&p->event, NPUPROF_PFTRACE_NAME_TEXT_, "memory");
    npuprof_proto_words_(&p->event, 22, "memory");
    size_t arg = npuprof_pftrace_begin_word_(p, NPUPROF_PFTRACE_WORD_POOL_);
    size_t pool_length;
    const char *const text = npuprof_image_text_(&p->work->image, pool, &pool_length);
    npuprof_proto_text_(&p->event, 6, text, pool_length);
    npuprof_proto_end_(&p->event, arg);
    arg = npuprof_pftrace_begin_word_(p, NPUPROF_PFTRACE_WORD_TAG_);
    npuprof_proto_text_(&p->event, 6, tag, length);
    npuprof_proto_end_(&p->event, arg);
    arg = npuprof_pftrace_begin_word_(p, NPUPROF_PFTRACE_WORD_CHANGE_);
    npuprof_proto_uint_(&p->event, 4, (uint64_t)ev->change);
    npuprof_proto_end_(&p->event, arg);
    npuprof_pftrace_send_(p, p->lane[0], ns);
}

/* ---- All of it */

/* Describes the thread's track, by its number in the system if that is known. Returns the name's id; 0: it
   has none of its own. */
static uint32_t npuprof_pftrace_thread_track_(npuprof_pftrace_ *p, const npuprof_slot_head_ *slot,
                                              uint64_t uuid)
{
    const npuprof_image_ *const im = &p->work->image;
    const uint32_t id = NPUPROF_LOAD_(&slot->os_tid), name = NPUPROF_LOAD_(&slot->name);
    char text[40];
    size_t length;
    const char *const own = npuprof_image_text_(im, name, &length);
    const size_t track = npuprof_pftrace_begin_track_(p, uuid, 0);
    const size_t thread = npuprof_proto_begin_(&p->event, 4);
    npuprof_proto_uint_(&p->event, 1, im->h->pid);
    npuprof_proto_uint_(&p->event, 2, id ? id : p->work->walk.tid);
    snprintf(text, sizeof text, "thread %u", (unsigned)p->work->walk.tid);
    if (length) npuprof_proto_text_(&p->event, 5, own, npuprof_utf8_cut_(own, length, 100));
    else npuprof_proto_words_(&p->event, 5, id == im->h->pid ? "main" : text);
    npuprof_proto_end_(&p->event, thread);
    npuprof_pftrace_end_track_(p, track);
    return length ? name : 0;
}

/* An event of the thread. name: of the thread, or 0. */
static void npuprof_pftrace_thread_event_(npuprof_pftrace_ *p, const npuprof_event_ *ev, uint32_t name)
{
    const int64_t ns = npuprof_image_trace_ns_(&p->work->image, ev->start);
    if (ev->kind <= NPUPROF_KIND_OPERATOR) {
        npuprof_pftrace_thread_span_(p, ev, name);
        return;
    }
    /* Why one less: in the very tick where a span ends, an event is still inside it. */
    if (p->work->lanes) npuprof_pftrace_close_lane_(p, 0, ns - 1);
    switch (ev->kind) {
    case NPUPROF_KIND_INSTANT:
        npuprof_pftrace_begin_event_(p, NPUPROF_PFTRACE_INSTANT_);
        npuprof_pftrace_put_names_(p, ev->name, ev->category);
        npuprof_pftrace_put_source_(p, ev);
        npuprof_pftrace_put_args_(p, ev, 0);
        npuprof_pftrace_send_(p, p->lane[0], ns);
        break;
    case NPUPROF_KIND_COUNTER_REAL:
        if ((ev->value >> 52 & 0x7FF) == 0x7FF) {      /* not finite */
            p->work->skipped_values++;
            break;
        }
        /* fallthrough */
    case NPUPROF_KIND_COUNTER_INT:
    case NPUPROF_KIND_COUNTER_UINT: {
        const uint64_t track = npuprof_pftrace_counter_track_(p, ev->name, NPUPROF_PFTRACE_VALUE_);
        npuprof_pftrace_sample_(p, track, ns, ev->kind, ev->value);
        break;
    }
    case NPUPROF_KIND_MEMORY: npuprof_pftrace_memory_(p, ev, ns); break;
    default: break;                        /* pftrace_placed.h and pftrace_arrows.h have the others */
    }
}

static void npuprof_pftrace_thread_(npuprof_pftrace_ *p, const npuprof_slot_head_ *slot)
{
    npuprof_work_ *const w = p->work;
    const uint32_t tid = NPUPROF_LOAD_(&slot->tid);
    const uint64_t uuid = npuprof_pftrace_number_(p, NPUPROF_PFTRACE_OF_THREAD_, tid);
    npuprof_event_ ev;
    npuprof_pftrace_begin_ties_(p, tid);
    npuprof_walk_begin_(&w->walk, &w->image, tid);
    npuprof_lane_clear_all_(w);
    memset(p->lane, 0, sizeof p->lane);
    const uint32_t name = npuprof_pftrace_thread_track_(p, slot, uuid);
    npuprof_pftrace_use_track_(p, p->lane[0] = uuid);
    const bool ties = p->tie_first < p->tie_end;
    for (;;) {
        if (w->walk.sources == 1 && w->lanes && !ties) npuprof_pftrace_plain_spans_(p);
        if (!npuprof_walk_next_(&w->walk, &ev)) break;
        npuprof_pftrace_thread_event_(p, &ev, name);
    }
    npuprof_pftrace_close_lanes_(p, INT64_MAX - 1);
}

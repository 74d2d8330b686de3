#pragma once   /* SPDX-License-Identifier: MIT */
#include "../format/arena.h"
#include "image.h"
#include "time.h"
#include "place.h"
#include "order.h"

static void npuprof_async_note_(const npuprof_image_ *im, npuprof_piece_ *piece, const npuprof_event_ *ev)
{
    const int64_t at = npuprof_image_ns_(im, ev->start);
    if (at < piece->async_least_ns) piece->async_least_ns = at;
    if (at > piece->async_most_ns) piece->async_most_ns = at;
    if (ev->value < piece->least_id) piece->least_id = ev->value;
    if (ev->value > piece->most_id) piece->most_id = ev->value;
}
/* The async spans of a batch, looked up by id, and how far their ends may be: those found lie before `until`, the others have ids from
   least_id to most_id (least > most: all are found). */
typedef struct npuprof_async_ends_ {
    const npuprof_image_ *image;
    npuprof_placed_ *room;
    size_t count;
    int64_t from, until;
    uint64_t least_id, most_id;
    npuprof_filter_ want;
} npuprof_async_ends_;

static void npuprof_async_set_bounds_(npuprof_async_ends_ *a)
{
    a->until = INT64_MIN;
    a->least_id = UINT64_MAX;
    a->most_id = 0;
    for (size_t i = 0; i < a->count; i++) {
        const npuprof_placed_ *const p = &a->room[i];
        if (p->track >> 56 != NPUPROF_TRACK_ASYNC_) continue;
        const int64_t end = p->unfinished || p->end_ns > p->limit_ns ? p->limit_ns : p->end_ns;
        if (end == INT64_MAX) {
            if (p->id < a->least_id) a->least_id = p->id;
            if (p->id > a->most_id) a->most_id = p->id;
        } else if (end > a->until) {
            a->until = end;
        }
    }
}
static void npuprof_async_take_event_(npuprof_async_ends_ *a, const npuprof_event_ *ev)
{
    const int64_t at = npuprof_image_ns_(a->image, ev->start);
    for (uint32_t i = *npuprof_placed_bucket_(a->room, a->count, ev->value); i; i = a->room[i - 1].next) {
        npuprof_placed_ *const p = &a->room[i - 1];
        if (p->id != ev->value) continue;
        if (ev->kind == NPUPROF_KIND_ASYNC_BEGIN) {
            if (p->start_ns < at && at < p->limit_ns) p->limit_ns = at;
        } else if (p->start_ns == at) {
            p->ends_at_once = true;
        } else if (p->start_ns < at) {
            if (p->unfinished || at < p->end_ns) p->end_ns = at;
            p->unfinished = false;
        }
    }
}
/* Walks the earliest piece that may tell more. Returns how many events there were; 0: there is no such piece. */
static size_t npuprof_async_walk_piece_(npuprof_async_ends_ *a)
{
    npuprof_piece_ *next = NULL;
    for (npuprof_piece_ *piece = npuprof_piece_index_.piece; piece < npuprof_piece_index_.piece + NPUPROF_PIECES_; piece++) {
        if (piece->walked || piece->async_most_ns < a->from || (next && piece->async_least_ns >= next->async_least_ns)) continue;
        if (piece->async_least_ns <= a->until || (piece->least_id <= a->most_id && piece->most_id >= a->least_id)) next = piece;
    }
    if (!next) return 0;
    npuprof_event_ ev;
    const npuprof_slot_head_ *slot = next->slot;
    npuprof_cursor_ c = next->at;
    size_t met = 1;
    next->walked = true;
    c.left = a->image->chunk_total / NPUPROF_PIECES_ + 1;
    for (; npuprof_piece_next_event_(&slot, &c, &a->want, &ev); met++)   /* those passed over cost next to nothing */
        if (ev.kind == NPUPROF_KIND_ASYNC_END || ev.kind == NPUPROF_KIND_ASYNC_BEGIN) npuprof_async_take_event_(a, &ev);
    return met;
}
/* The ends of the async spans of a batch: a beginning takes the first end after it with its id, unless the id begins anew before that.
   From the time of the batch on, piece by piece, as far as the ends may be.
   Why not bounded anew after each piece: that takes as long as a piece. */
static void npuprof_async_find_ends_(const npuprof_image_ *im, npuprof_placed_ *room, size_t count)
{
    npuprof_async_ends_ a;
    memset(&a, 0, sizeof a);
    a.image = im;
    a.room = room;
    a.count = count;
    a.from = INT64_MAX;
    npuprof_filter_set_(&a.want, 1u << NPUPROF_KIND_ASYNC_BEGIN | 1u << NPUPROF_KIND_ASYNC_END);
    a.want.room = room;
    a.want.count = count;
    for (size_t i = 0; i < count; i++) room[i].bucket = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t *const bucket = npuprof_placed_bucket_(room, count, room[i].id);
        room[i].limit_ns = INT64_MAX;
        if (room[i].track >> 56 != NPUPROF_TRACK_ASYNC_) continue;
        room[i].next = *bucket;
        *bucket = (uint32_t)i + 1;
        if (room[i].start_ns < a.from) a.from = room[i].start_ns;
    }
    for (npuprof_piece_ *piece = npuprof_piece_index_.piece; piece < npuprof_piece_index_.piece + NPUPROF_PIECES_; piece++) piece->walked = false;
    npuprof_async_set_bounds_(&a);
    for (size_t met = 0, bounded = 1;;) {
        const size_t n = npuprof_async_walk_piece_(&a);
        if (!n && bounded) break;
        met += n;
        bounded = !n || met >= count;
        if (!bounded) continue;
        npuprof_async_set_bounds_(&a);
        met = 0;
    }
    for (size_t i = 0; i < count; i++) {
        if (room[i].end_ns > room[i].limit_ns) {
            room[i].end_ns = room[i].limit_ns;
            room[i].unfinished = true;
        }
        if (room[i].unfinished && room[i].ends_at_once) {
            room[i].end_ns = room[i].start_ns;
            room[i].unfinished = false;
        }
    }
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../format/arena.h"
#include "image.h"
#include "time.h"
#include "place.h"
#include "order.h"

/* The ends of async spans. A begin and its end may be recorded by different threads and lie far apart, so a
   batch of begins is first complete, and then looks for its ends: a begin takes the first end behind it that
   has its id, unless the id begins anew before that end. Only the pieces that can hold such ends are walked,
   the earliest first.

   Data: the batch, which the caller owns, and `walked` of the pieces. */
typedef struct npuprof_async_ends_ {
    const npuprof_image_ *image;
    npuprof_placed_ *list;
    size_t count;
    int64_t from, until;                   /* the ends that were found lie before `until`; */
    uint64_t min_id, max_id;               /* those that were not have these ids. min > max: all were found */
    npuprof_filter_ filter;
} npuprof_async_ends_;

/* Notes an async event in the index. */
static void npuprof_async_note_(const npuprof_image_ *im, npuprof_piece_ *piece, const npuprof_event_ *ev)
{
    const int64_t at = npuprof_image_ns_(im, ev->start);
    if (at < piece->async_min_ns) piece->async_min_ns = at;
    if (at > piece->async_max_ns) piece->async_max_ns = at;
    if (ev->value < piece->min_id) piece->min_id = ev->value;
    if (ev->value > piece->max_id) piece->max_id = ev->value;
}

/* How far the ends may be, from what was found until now. */
static void npuprof_async_set_bounds_(npuprof_async_ends_ *a)
{
    a->until = INT64_MIN;
    a->min_id = UINT64_MAX;
    a->max_id = 0;
    for (size_t i = 0; i < a->count; i++) {
        const npuprof_placed_ *const p = &a->list[i];
        if (p->track >> 56 != NPUPROF_TRACK_ASYNC_) continue;
        const int64_t end = p->unfinished || p->end_ns > p->limit_ns ? p->limit_ns : p->end_ns;
        if (end == INT64_MAX) {
            if (p->id < a->min_id) a->min_id = p->id;
            if (p->id > a->max_id) a->max_id = p->id;
        } else if (end > a->until) {
            a->until = end;
        }
    }
}

/* A begin or an end: what it says about the spans of the batch that have its id. */
static void npuprof_async_take_event_(npuprof_async_ends_ *a, const npuprof_event_ *ev)
{
    const int64_t at = npuprof_image_ns_(a->image, ev->start);
    for (uint32_t i = *npuprof_placed_bucket_(a->list, a->count, ev->value); i; i = a->list[i - 1].next) {
        npuprof_placed_ *const p = &a->list[i - 1];
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

/* Can a piece say more about the batch? */
static bool npuprof_async_needs_piece_(const npuprof_async_ends_ *a, const npuprof_piece_ *piece)
{
    if (piece->walked || piece->async_max_ns < a->from) return false;
    return piece->async_min_ns <= a->until || (piece->min_id <= a->max_id && piece->max_id >= a->min_id);
}

/* Walks the earliest piece that can say more. Returns how many events it has; 0: there is no such piece. */
static size_t npuprof_async_walk_piece_(npuprof_async_ends_ *a)
{
    npuprof_piece_ *next = NULL, *piece = npuprof_piece_index_.piece;
    for (size_t i = 0; i < NPUPROF_PIECES_; i++, piece++)
        if ((!next || piece->async_min_ns < next->async_min_ns) && npuprof_async_needs_piece_(a, piece))
            next = piece;
    if (!next) return 0;
    npuprof_event_ ev;
    const npuprof_slot_head_ *slot = next->slot;
    npuprof_cursor_ c = next->at;
    size_t met = 1;
    next->walked = true;
    c.left = a->image->chunk_total / NPUPROF_PIECES_ + 1;
    /* Records that the filter skips are not counted: they cost next to nothing. */
    for (; npuprof_piece_next_event_(&slot, &c, &a->filter, &ev); met++)
        if (ev.kind == NPUPROF_KIND_ASYNC_END || ev.kind == NPUPROF_KIND_ASYNC_BEGIN)
            npuprof_async_take_event_(a, &ev);
    return met;
}

/* Puts the async spans of the batch into the look-up by id. */
static void npuprof_async_index_(npuprof_async_ends_ *a)
{
    for (size_t i = 0; i < a->count; i++) a->list[i].bucket = 0;
    for (size_t i = 0; i < a->count; i++) {
        npuprof_placed_ *const p = &a->list[i];
        p->limit_ns = INT64_MAX;
        if (p->track >> 56 != NPUPROF_TRACK_ASYNC_) continue;
        uint32_t *const bucket = npuprof_placed_bucket_(a->list, a->count, p->id);
        p->next = *bucket;
        *bucket = (uint32_t)i + 1;
        if (p->start_ns < a->from) a->from = p->start_ns;
    }
}

/* Finds the ends of the async spans of a batch.
   Why the bounds are not set anew after each piece: that takes as long as a piece. */
static void npuprof_async_find_ends_(const npuprof_image_ *im, npuprof_placed_ *list, size_t count)
{
    npuprof_async_ends_ a;
    memset(&a, 0, sizeof a);
    a.image = im;
    a.list = list;
    a.count = count;
    a.from = INT64_MAX;
    npuprof_filter_set_(&a.filter, 1u << NPUPROF_KIND_ASYNC_BEGIN | 1u << NPUPROF_KIND_ASYNC_END);
    a.filter.list = list;
    a.filter.count = count;
    npuprof_async_index_(&a);
    for (size_t i = 0; i < NPUPROF_PIECES_; i++) npuprof_piece_index_.piece[i].walked = false;
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
    for (npuprof_placed_ *p = list; p < list + count; p++) {
        if (p->end_ns > p->limit_ns) {
            p->end_ns = p->limit_ns;
            p->unfinished = true;
        }
        if (p->unfinished && p->ends_at_once) {
            p->end_ns = p->start_ns;
            p->unfinished = false;
        }
    }
}

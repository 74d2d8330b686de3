#pragma once   /* SPDX-License-Identifier: MIT */
#include "../format/arena.h"
#include "image.h"
#include "cursor.h"
#include "threads.h"
#include "time.h"
#include "place.h"
#include "order.h"
#include "async.h"

/* Placed spans in order, in batches: there is no heap to sort all of them in.

   The first batch walks the whole arena, keeps the first spans in a list that the caller hands in, as many as
   fit, and notes in the index what each piece has. Each further batch keeps the first spans behind the last
   one of the batch before, from the pieces that can have such spans. The callers hold the lock of the
   readers: the index and the state of a batch are there once. */
typedef struct npuprof_batch_ {
    const npuprof_image_ *image;
    uint32_t kinds;
    const npuprof_placed_ *last;           /* of the batch before; NULL: this is the first one */
    npuprof_placed_ *list;                 /* a heap until the batch is complete */
    size_t capacity, count;
    bool async;                            /* it has async spans */
    npuprof_image_anchor_caches_ caches;
    npuprof_filter_ filter;
} npuprof_batch_;

/* The names of the async spans that the batch may still want. */
static void npuprof_batch_narrow_(npuprof_batch_ *b)
{
    const uint64_t async = (uint64_t)NPUPROF_TRACK_ASYNC_ << 56;
    const uint64_t min = b->last && b->last->track > async ? b->last->track : async;
    const uint64_t max = b->count == b->capacity ? b->list[0].track : UINT64_MAX;
    if (max < min) b->filter.kinds = b->kinds & ~(1u << NPUPROF_KIND_ASYNC_BEGIN);
    b->filter.min_name = (uint32_t)min;
    b->filter.max_name = max - async < UINT32_MAX ? (uint32_t)max : UINT32_MAX;
}

/* Places an event. False: the batch does not want it. */
static bool npuprof_batch_place_(npuprof_batch_ *b, npuprof_piece_ *piece, const npuprof_event_ *ev,
                                 npuprof_placed_ *p)
{
    const npuprof_placed_ *const last = b->last;
    const bool full = b->count == b->capacity;
    /* Why the track first: it costs nothing, but the time of a device does. */
    const uint64_t track = npuprof_place_track_(ev);
    if (last && (track < last->track || (full && track > b->list[0].track))) return false;
    if (!npuprof_place_start_(b->image, &b->caches, ev, p)) return false;
    if (!last && p->start_ns < piece->min_ns) piece->min_ns = p->start_ns;
    if (!last && p->start_ns > piece->max_ns) piece->max_ns = p->start_ns;
    if (last && track == last->track && p->start_ns < last->start_ns) return false;
    if (full && track == b->list[0].track && p->start_ns > b->list[0].start_ns) return false;
    return npuprof_place_end_(b->image, &b->caches, ev, p) && (!last || npuprof_placed_before_(last, p));
}

/* Walks a piece. The first batch notes what lies in it. */
static void npuprof_batch_gather_piece_(npuprof_batch_ *b, npuprof_piece_ *piece,
                                        const npuprof_slot_head_ **slot, npuprof_cursor_ *c)
{
    npuprof_event_ ev;
    npuprof_placed_ p;
    c->left = b->image->chunk_total / NPUPROF_PIECES_ + 1;
    while (npuprof_piece_next_event_(slot, c, &b->filter, &ev)) {
        if (!b->last && (ev.kind == NPUPROF_KIND_ASYNC_BEGIN || ev.kind == NPUPROF_KIND_ASYNC_END))
            npuprof_async_note_(b->image, piece, &ev);
        if (!(b->kinds >> ev.kind & 1) || !npuprof_batch_place_(b, piece, &ev, &p)) continue;
        b->async |= ev.kind == NPUPROF_KIND_ASYNC_BEGIN;
        npuprof_placed_keep_min_(b->list, b->capacity, &b->count, &p);
        if (b->last) npuprof_batch_narrow_(b);
    }
}

static void npuprof_piece_begin_(npuprof_piece_ *piece, const npuprof_slot_head_ *slot,
                                 const npuprof_cursor_ *c)
{
    memset(piece, 0, sizeof *piece);
    piece->min_ns = piece->async_min_ns = INT64_MAX;
    piece->max_ns = piece->async_max_ns = INT64_MIN;
    piece->min_id = UINT64_MAX;
    piece->slot = slot;
    if (slot) piece->at = *c;
}

/* The first batch: all pieces, and the index. */
static void npuprof_batch_gather_all_(npuprof_batch_ *b)
{
    npuprof_cursor_ c;
    const npuprof_slot_head_ *slot = npuprof_image_next_slot_(b->image, NULL);
    if (slot) npuprof_cursor_begin_slot_(&c, b->image, slot);
    for (npuprof_piece_ *piece = npuprof_piece_index_.piece;
         piece < npuprof_piece_index_.piece + NPUPROF_PIECES_; piece++) {
        npuprof_piece_begin_(piece, slot, &c);
        npuprof_batch_gather_piece_(b, piece, &slot, &c);
    }
}

/* A further batch: the pieces that can have what it wants. First those that have spans from the start of the
   last one on, then the others: those can have later tracks only, and these are not wanted once the list is
   full of this one. */
static void npuprof_batch_gather_behind_(npuprof_batch_ *b)
{
    const npuprof_placed_ *const last = b->last;
    for (int before = 0; before < 2; before++) {
        npuprof_piece_ *piece = npuprof_piece_index_.piece;
        for (size_t i = 0; i < NPUPROF_PIECES_; i++, piece++) {
            const bool one_track = b->count == b->capacity && b->list[0].track == last->track;
            if ((piece->max_ns < last->start_ns) != before || piece->min_ns > piece->max_ns) continue;
            if (one_track && (before || piece->min_ns > b->list[0].start_ns)) continue;
            const npuprof_slot_head_ *slot = piece->slot;
            npuprof_cursor_ c = piece->at;
            npuprof_batch_gather_piece_(b, piece, &slot, &c);
        }
    }
}

/* One batch of placed spans behind *last (NULL: the first batch), as many as fit into the list. Returns how
   many; 0: there are no more. */
static size_t npuprof_batch_next_(const npuprof_image_ *im, uint32_t kinds, const npuprof_placed_ *last,
                                  npuprof_placed_ *list, size_t capacity)
{
    static npuprof_batch_ b;               /* Why static: it is large for a thread's stack. */
    if (!(im->kinds & kinds)) return 0;
    memset(&b, 0, sizeof b);
    b.image = im;
    b.kinds = kinds;
    b.last = last;
    b.list = list;
    b.capacity = capacity;
    npuprof_filter_set_(&b.filter, last ? kinds : kinds | 1u << NPUPROF_KIND_ASYNC_END);
    if (last) npuprof_batch_gather_behind_(&b);
    else npuprof_batch_gather_all_(&b);
    npuprof_placed_sort_(list, b.count);
    if (b.async) npuprof_async_find_ends_(im, list, b.count);
    return b.count;
}

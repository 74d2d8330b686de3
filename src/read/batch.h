#pragma once   /* SPDX-License-Identifier: MIT */
#include "../format/arena.h"
#include "image.h"
#include "cursor.h"
#include "threads.h"
#include "time.h"
#include "place.h"
#include "order.h"
#include "async.h"

/* A batch on its way: the least of the placed spans seen so far. */
typedef struct npuprof_batch_ {
    const npuprof_image_ *image;
    uint32_t kinds;
    const npuprof_placed_ *last;
    npuprof_placed_ *room;
    size_t rooms, count;
    bool async;
    npuprof_map_caches_ near_by;
    npuprof_filter_ want;
} npuprof_batch_;

/* The names of the async spans that may still be wanted. */
static void npuprof_batch_narrow_(npuprof_batch_ *b)
{
    const uint64_t async = (uint64_t)NPUPROF_TRACK_ASYNC_ << 56, least = b->last && b->last->track > async ? b->last->track : async;
    const uint64_t most = b->count == b->rooms ? b->room[0].track : UINT64_MAX;
    if (most < least) b->want.kinds = b->kinds & ~(1u << NPUPROF_KIND_ASYNC_BEGIN);
    b->want.least_name = (uint32_t)least;
    b->want.most_name = most - async < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}
/* Walks a piece. The first batch notes what lies in it. */
static void npuprof_batch_gather_piece_(npuprof_batch_ *b, npuprof_piece_ *piece, const npuprof_slot_head_ **slot, npuprof_cursor_ *c)
{
    const npuprof_image_ *const im = b->image;
    const npuprof_placed_ *const last = b->last;
    npuprof_event_ ev;
    npuprof_placed_ p;
    c->left = im->chunk_total / NPUPROF_PIECES_ + 1;
    while (npuprof_piece_next_event_(slot, c, &b->want, &ev)) {
        if (!last && (ev.kind == NPUPROF_KIND_ASYNC_BEGIN || ev.kind == NPUPROF_KIND_ASYNC_END)) npuprof_async_note_(im, piece, &ev);
        if (!(b->kinds >> ev.kind & 1)) continue;
        /* Why here: the track costs nothing, the device's time does. */
        const uint64_t track = npuprof_place_track_(&ev);
        const bool full = b->count == b->rooms;
        if (last && (track < last->track || (full && track > b->room[0].track))) continue;
        if (!npuprof_place_start_(im, &b->near_by, &ev, &p)) continue;
        if (!last && p.start_ns < piece->least_ns) piece->least_ns = p.start_ns;
        if (!last && p.start_ns > piece->most_ns) piece->most_ns = p.start_ns;
        if (last && track == last->track && p.start_ns < last->start_ns) continue;
        if (full && track == b->room[0].track && p.start_ns > b->room[0].start_ns) continue;
        if (!npuprof_place_end_(im, &b->near_by, &ev, &p) || (last && !npuprof_placed_before_(last, &p))) continue;
        b->async |= ev.kind == NPUPROF_KIND_ASYNC_BEGIN;
        npuprof_placed_keep_min_(b->room, b->rooms, &b->count, &p);
        if (last) npuprof_batch_narrow_(b);
    }
}
static void npuprof_piece_begin_(npuprof_piece_ *piece, const npuprof_slot_head_ *slot, const npuprof_cursor_ *c)
{
    memset(piece, 0, sizeof *piece);
    piece->least_ns = piece->async_least_ns = INT64_MAX;
    piece->most_ns = piece->async_most_ns = INT64_MIN;
    piece->least_id = UINT64_MAX;
    piece->slot = slot;
    if (slot) piece->at = *c;
}
/* One batch of placed spans after *last, as many as the room holds, in order. 0: there are no more.
   Why in batches: no heap. The first one, last NULL, walks the arena and keeps the smallest it sees; the others walk the pieces that
   can hold what comes next. One caller at a time. */
static size_t npuprof_batch_next_(const npuprof_image_ *im, uint32_t kinds, const npuprof_placed_ *last, npuprof_placed_ *room, size_t rooms)
{
    static npuprof_batch_ b;               /* Why static: it is large for a thread's stack */
    npuprof_cursor_ c;
    if (!(im->kinds & kinds)) return 0;
    memset(&b, 0, sizeof b);
    b.image = im;
    b.kinds = kinds;
    b.last = last;
    b.room = room;
    b.rooms = rooms;
    npuprof_filter_set_(&b.want, last ? kinds : kinds | 1u << NPUPROF_KIND_ASYNC_END);
    const npuprof_slot_head_ *slot = npuprof_image_next_slot_(im, NULL);
    if (slot) npuprof_cursor_begin_slot_(&c, im, slot);
    /* Why twice: a piece that lies before `last` holds later tracks only, and those are not wanted once the room is full of this one. */
    for (int before = 0; before < (last ? 2 : 1); before++) {
        for (npuprof_piece_ *piece = npuprof_piece_index_.piece; piece < npuprof_piece_index_.piece + NPUPROF_PIECES_; piece++) {
            if (!last) {
                npuprof_piece_begin_(piece, slot, &c);
            } else {
                const bool one_track = b.count == rooms && room[0].track == last->track;
                if ((piece->most_ns < last->start_ns) != before || piece->least_ns > piece->most_ns ||
                    (one_track && (before || piece->least_ns > room[0].start_ns)))
                    continue;
                slot = piece->slot;
                c = piece->at;
            }
            npuprof_batch_gather_piece_(&b, piece, &slot, &c);
        }
    }
    npuprof_placed_sort_(room, b.count);
    if (b.async) npuprof_async_find_ends_(im, room, b.count);
    return b.count;
}

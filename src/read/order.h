#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/config.h"
#include "../numbers/hash.h"
#include "../numbers/heap.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "image.h"
#include "cursor.h"
#include "threads.h"
#include "place.h"

/* The arena in the order of a walk, cut into pieces of as many chunks, and the time that the placed spans of each lie in: what a batch
   need not look at. */
enum { NPUPROF_PIECES_ = NPUPROF_SCRATCH_BYTES / 1024 };
typedef struct npuprof_piece_ {
    int64_t least_ns, most_ns;             /* of their beginnings; least > most: there are none */
    int64_t async_least_ns, async_most_ns; /* of the beginnings and ends of async spans */
    uint64_t least_id, most_id;            /* and their ids */
    bool walked;
    const npuprof_slot_head_ *slot;        /* where it begins; NULL: behind the last slot */
    npuprof_cursor_ at;
} npuprof_piece_;
/* A place in that order to walk on from, and the ids of the PROF_FLOW_OUTs from there to the next one. */
typedef struct npuprof_flow_mark_ {
    uint64_t least_id, most_id;            /* least > most: there are none */
    uint32_t tid, chunk;                   /* chunk: index + 1 of the thread's chunk; 0: its first */
} npuprof_flow_mark_;
enum { NPUPROF_FLOW_MARKS_ = 2 * NPUPROF_PIECES_ };
/* One of the two at a time. */
static union { npuprof_piece_ piece[NPUPROF_PIECES_]; npuprof_flow_mark_ mark[NPUPROF_FLOW_MARKS_]; } npuprof_piece_index_;

/* What a walk through pieces wants: events of these kinds, async beginnings only with names from least to most; with a room all async
   events whose ids are in it. What the sites met last are is kept, so that records of one unit that are not wanted need not be decoded. */
typedef struct npuprof_filter_ {
    uint32_t kinds, least_name, most_name;
    npuprof_placed_ *room;
    size_t count;
    struct { uint32_t site, kind, name; } met[256];
} npuprof_filter_;

/* The first of those in the room that may have the id: index + 1; 0: there is none. */
static inline uint32_t *npuprof_placed_bucket_(npuprof_placed_ *room, size_t count, uint64_t id)
{
    return &room[(npuprof_hash_mix_(id) >> 32) * count >> 32].bucket;
}
static inline bool npuprof_filter_passes_(const npuprof_filter_ *want, uint32_t known, uint64_t value)
{
    const uint32_t kind = want->met[known].kind;
    if (!(want->kinds >> kind & 1)) return false;
    if (want->room) {
        uint32_t i = *npuprof_placed_bucket_(want->room, want->count, value);
        while (i && want->room[i - 1].id != value) i = want->room[i - 1].next;
        return i != 0;
    }
    return kind != NPUPROF_KIND_ASYNC_BEGIN || want->met[known].name - want->least_name <= want->most_name - want->least_name;
}
static void npuprof_filter_set_(npuprof_filter_ *want, uint32_t kinds)
{
    memset(want, 0, sizeof *want);
    want->kinds = kinds;
    want->most_name = UINT32_MAX;
}
/* Passes over what is not wanted. */
static void npuprof_filter_skip_plain_(npuprof_cursor_ *cursor, const npuprof_filter_ *want)
{
    const npuprof_cursor_ c = *cursor;
    const uint32_t end = c.plain_begin + c.plain_count;
    uint32_t unit = c.unit;
    for (; unit >= c.plain_begin && unit < end; unit++) {
        const uint32_t site = (uint32_t)npuprof_unit_load_w0_(c.units + unit) & NPUPROF_ID_MASK_, known = site % 256;
        if (site - 1 >= NPUPROF_CONTROL_ - 1 || want->met[known].site != site) break;
        if (((uint32_t)npuprof_unit_load_w0_(c.units + unit + 1) & NPUPROF_ID_MASK_) >= NPUPROF_CONTROL_) break;
        if (npuprof_filter_passes_(want, known, npuprof_unit_load_w1_(c.units + unit))) break;
    }
    cursor->unit = unit;
}
/* The next event of a piece, wanted or not. At the end slot and cursor are where the next piece begins. */
static bool npuprof_piece_next_event_(const npuprof_slot_head_ **slot, npuprof_cursor_ *c, npuprof_filter_ *want, npuprof_event_ *ev)
{
    while (*slot) {
        npuprof_filter_skip_plain_(c, want);
        if (npuprof_cursor_next_event_(c, ev)) {
            want->met[ev->site % 256].site = ev->site;
            want->met[ev->site % 256].kind = ev->kind;
            want->met[ev->site % 256].name = ev->name;
            return true;
        }
        const uint32_t left = c->left;
        if (!left) break;
        *slot = npuprof_image_next_slot_(c->image, *slot);
        if (*slot) npuprof_cursor_begin_slot_(c, c->image, *slot);
        c->left = left;
    }
    return false;
}

/* ---- Heaps of placed spans, the last one on top */

static bool npuprof_placed_heap_before_(const void *a, const void *b)
{
    return npuprof_placed_before_((const npuprof_placed_ *)a, (const npuprof_placed_ *)b);
}

/* Keeps *p in a heap of at most `capacity` spans, if it is among the first of all that were seen. */
static void npuprof_placed_keep_min_(npuprof_placed_ *heap, size_t capacity, size_t *count, const npuprof_placed_ *p)
{
    if (*count < capacity) {
        heap[(*count)++] = *p;
        npuprof_heap_sift_up_(heap, sizeof *heap, *count, npuprof_placed_heap_before_);
    } else if (npuprof_placed_before_(p, &heap[0])) {
        heap[0] = *p;
        npuprof_heap_sift_down_(heap, sizeof *heap, *count, 0, npuprof_placed_heap_before_);
    }
}

/* Sorts spans, whether they are a heap or not. */
static void npuprof_placed_sort_(npuprof_placed_ *list, size_t count)
{
    npuprof_heap_sort_(list, sizeof *list, count, npuprof_placed_heap_before_);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/config.h"
#include "../numbers/hash.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "image.h"
#include "cursor.h"
#include "threads.h"
#include "place.h"

/* What lets a walk over the whole arena leave most of it out: an index of its pieces, and a filter of
   records.

   All chunks, slot after slot, are cut into pieces of equally many chunks. The first walk notes for each
   piece the times and ids of the placed spans in it (read/batch.h), or the ids of the flows
   (write/json_flow.h); later walks begin at the pieces that can hold what they look for.

   Data: npuprof_piece_index_, one for the process, used by who holds the lock of the readers. */

enum { NPUPROF_PIECES_ = NPUPROF_SCRATCH_BYTES / 1024, NPUPROF_PIECE_MARKS_ = 2 * NPUPROF_PIECES_ };

typedef struct npuprof_piece_ {
    int64_t min_ns, max_ns;                /* of the starts of placed spans; min > max: there are none */
    int64_t async_min_ns, async_max_ns;    /* of the begins and ends of async spans */
    uint64_t min_id, max_id;               /* and their ids */
    bool walked;
    const npuprof_slot_head_ *slot;        /* where the piece begins; NULL: behind the last slot */
    npuprof_cursor_ at;
} npuprof_piece_;

/* A place where a walk can go on, and the ids of the PROF_FLOW_OUTs from there to the next mark. */
typedef struct npuprof_piece_mark_ {
    uint64_t min_id, max_id;               /* min > max: there are none */
    uint32_t tid, chunk;                   /* chunk: index + 1 of the thread's chunk; 0: its first one */
} npuprof_piece_mark_;

/* Never both at a time. */
static union {
    npuprof_piece_ piece[NPUPROF_PIECES_];
    npuprof_piece_mark_ mark[NPUPROF_PIECE_MARKS_];
} npuprof_piece_index_;

/* ---- The filter */

/* Which records a walk wants: those of some kinds; of async begins only those with names from min_name to
   max_name; and with a list only the async events whose ids are in the list. `met` caches what the sites met
   last are, so that plain records that are not wanted need not be decoded. */
typedef struct npuprof_filter_ {
    uint32_t kinds, min_name, max_name;
    npuprof_placed_ *list;
    size_t count;
    struct { uint32_t site, kind, name; } met[256];
} npuprof_filter_;

static void npuprof_filter_set_(npuprof_filter_ *filter, uint32_t kinds)
{
    memset(filter, 0, sizeof *filter);
    filter->kinds = kinds;
    filter->max_name = UINT32_MAX;
}

/* Is a record wanted whose site is met[known]? */
static inline bool npuprof_filter_passes_(const npuprof_filter_ *filter, uint32_t known, uint64_t value)
{
    const uint32_t kind = filter->met[known].kind;
    if (!(filter->kinds >> kind & 1)) return false;
    if (filter->list) {
        uint32_t i = *npuprof_placed_bucket_(filter->list, filter->count, value);
        while (i && filter->list[i - 1].id != value) i = filter->list[i - 1].next;
        return i != 0;
    }
    if (kind != NPUPROF_KIND_ASYNC_BEGIN) return true;
    return filter->met[known].name - filter->min_name <= filter->max_name - filter->min_name;
}

/* Moves the cursor over the plain records that are not wanted. */
static void npuprof_filter_skip_plain_(npuprof_cursor_ *cursor, const npuprof_filter_ *filter)
{
    const npuprof_cursor_ c = *cursor;
    const uint32_t end = c.plain_begin + c.plain_count;
    uint32_t unit = c.unit;
    for (; unit >= c.plain_begin && unit < end; unit++) {
        const uint32_t site = npuprof_unit_load_id_(c.units + unit), known = site % 256;
        if (site - 1 >= NPUPROF_CONTROL_ - 1 || filter->met[known].site != site) break;
        if (npuprof_unit_load_id_(c.units + unit + 1) >= NPUPROF_CONTROL_) break;
        if (npuprof_filter_passes_(filter, known, npuprof_unit_load_w1_(c.units + unit))) break;
    }
    cursor->unit = unit;
}

/* ---- Walking a piece */

/* The next event of a piece, wanted or not. False: the end; slot and cursor are then where the next piece
   begins. */
static bool npuprof_piece_next_event_(const npuprof_slot_head_ **slot, npuprof_cursor_ *c,
                                      npuprof_filter_ *filter, npuprof_event_ *ev)
{
    while (*slot) {
        npuprof_filter_skip_plain_(c, filter);
        if (npuprof_cursor_next_event_(c, ev)) {
            filter->met[ev->site % 256].site = ev->site;
            filter->met[ev->site % 256].kind = ev->kind;
            filter->met[ev->site % 256].name = ev->name;
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

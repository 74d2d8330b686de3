#pragma once   /* SPDX-License-Identifier: MIT */
#include "expander.h"
#include "fields.h"

/* What is different in a RING (src/format/compact.h): the upper bits of stamps, records that a stream sends
   again, ends of spans that come by themselves, and cells that are named by index and lap. */

/* So many kept records of one start are looked at. Why a limit: an image that has a million is damaged, and
   must not take hours. */
enum { NPUPROF_EXPAND_LOOKS_ = 1024 };

/* The start of a record whose upper bits follow from `near_ticks`. A kept record may be old: it is at most a
   quarter of the range after that, the others at most half. */
static uint64_t npuprof_expand_ring_start_(uint64_t low, unsigned bits, uint64_t near_ticks, bool is_kept)
{
    const uint64_t range = UINT64_C(1) << bits, after = is_kept ? range / 4 : range / 2;
    const uint64_t latest = near_ticks + after;
    const uint64_t back = (latest - low) & (range - 1);
    return back <= latest ? latest - back : low;
}

/* The start of a note that a stream sends again: before now. Why more: the clock of the header may be a bit
   before that of the note. */
static uint64_t npuprof_expand_ring_again_(uint64_t low, unsigned bits, uint64_t now)
{
    const uint64_t range = UINT64_C(1) << bits, latest = now + range / 64;
    const uint64_t back = (latest - low) & (range - 1);
    return back <= latest ? npuprof_min_(latest - back, now) : low;
}

/* In an image of a ring: notes that are older than all that is not kept. Why by laps: the bits of a stamp may
   be fewer than they are old. */
static void npuprof_expand_ring_age_(const npuprof_expander_ *x, uint32_t cell, uint32_t lap,
                                     npuprof_expand_item_ *r)
{
    const npuprof_expand_cells_ *const g = x->g;
    const uint32_t newest = g->c.used & NPUPROF_RING_INDEX_, oldest = newest < g->c.cells ? newest : 0;
    const uint32_t at = (uint32_t)(((uint64_t)g->number[cell] + oldest) % g->c.cells);
    const uint32_t laps = ((g->c.used >> NPUPROF_RING_LAP_SHIFT_) - lap) & NPUPROF_EXPAND_LAPS_;
    r->is_old = laps > 1 || (laps == 1 && at < oldest);
    r->end = ((uint64_t)NPUPROF_EXPAND_LAPS_ - laps) * g->c.cells + at;
}

/* The bits of a start that a record and its CLOSE have. */
static uint64_t npuprof_expand_ring_mask_(const npuprof_expander_ *x)
{
    const unsigned bits = 48u - x->g->c.context_bits;
    return UINT64_MAX >> (64 - npuprof_min_(bits, NPUPROF_CELL_STAMP_BITS_));
}

/* Where the newest record with this start and context is found. */
static uint32_t *npuprof_expand_ring_bucket_(npuprof_expander_ *x, uint32_t context, uint64_t start)
{
    const uint64_t mask = npuprof_expand_ring_mask_(x);
    return &x->kept[npuprof_hash_mix_((start & mask) ^ (uint64_t)context << 56) % NPUPROF_EXPAND_KEPT_];
}

/* Do two records have the same place in the ring and the same cells, but for what a ring writes into them? */
static bool npuprof_expand_ring_is_same_(const npuprof_expander_ *x, uint32_t a, uint32_t b)
{
    const uint32_t count = npuprof_expand_ring_length_(x, a), laps = x->g->number[b] - x->g->number[a];
    if (laps % x->g->c.cells) return false;
    if (npuprof_expand_cell_word_(x, a, 0) != npuprof_expand_cell_word_(x, b, 0)) return false;
    if (!npuprof_expand_are_adjacent_(x->g, a, count)) return true;
    if (!npuprof_expand_are_adjacent_(x->g, b, count)) return true;
    return memcmp(x->g->cells + ((size_t)a + 1) * 16, x->g->cells + ((size_t)b + 1) * 16,
                  ((size_t)count - 1) * 16) == 0;
}

/* Notes a kept record of a stream. False: it was there before, and is sent again. index: its place in the
   list, once a gap stands in front of it. */
static bool npuprof_expand_ring_keep_(npuprof_expander_ *x, npuprof_expand_item_ *r, uint32_t index)
{
    uint32_t *const bucket = npuprof_expand_ring_bucket_(x, r->context, r->start), looks = 0;
    for (uint32_t at = *bucket; at && looks++ < NPUPROF_EXPAND_LOOKS_; at = x->list[at - 1].kept) {
        const npuprof_expand_item_ *const old = &x->list[at - 1];
        if (old->context == r->context && old->start == r->start &&
            npuprof_expand_ring_is_same_(x, old->cell, r->cell)) return false;
    }
    r->kept = *bucket;
    *bucket = index + 1;
    return true;
}

/* Ends the span that a record CLOSE is about. False: its beginning is not there. */
static bool npuprof_expand_ring_close_(npuprof_expander_ *x, const npuprof_expand_item_ *close)
{
    const uint64_t mask = npuprof_expand_ring_mask_(x);
    uint32_t *before = npuprof_expand_ring_bucket_(x, close->context, close->end), looks = 0;
    for (; *before && looks++ < NPUPROF_EXPAND_LOOKS_; before = &x->list[*before - 1].kept) {
        npuprof_expand_item_ *const r = &x->list[*before - 1];
        const bool is_span = npuprof_kind_nests_(r->kind) || r->kind == NPUPROF_CELL_KIND_PAUSE_;
        if (!is_span || r->context != close->context || ((r->start ^ close->end) & mask)) continue;
        r->open = false;
        r->end = npuprof_max_(close->start, r->start);
        *before = r->kept;
        return true;
    }
    return false;
}

/* The number, as the gathered cells are counted, of the cell that the record at `cell` names: by its number,
   from 1; in a ring by `used` of when it was taken. UINT32_MAX: there is none. */
static uint32_t npuprof_expand_named_number_(const npuprof_expander_ *x, uint32_t used, uint32_t cell)
{
    const npuprof_expand_cells_ *const g = x->g;
    if (!npuprof_expand_is_ring_(&g->c)) return used - 1 - g->line.begin;
    const uint32_t cells = g->c.cells, index = used & NPUPROF_RING_INDEX_;
    const uint32_t newest = g->c.used & NPUPROF_RING_INDEX_, oldest = newest < cells ? newest : 0;
    if (index >= cells) return UINT32_MAX;
    if (!g->line.is_stream) return (index + cells - oldest) % cells;
    /* Where the cell lies follows from the newest header, whose `crc` says it of number `used`. Why not from
       the number: it is modulo 2^32, no multiple of the cells. */
    const int64_t all = (int64_t)cells * (NPUPROF_EXPAND_LAPS_ + 1);
    const int64_t lap = g->c.crc >> NPUPROF_RING_LAP_SHIFT_ & NPUPROF_EXPAND_LAPS_;
    const int64_t sent = lap * cells + (g->c.crc & NPUPROF_RING_INDEX_);
    const int64_t back = sent - npuprof_line_after_(g->c.used, g->line.begin + g->number[cell]);
    const uint64_t place = (uint64_t)((back % all + all) % all);
    const uint32_t ago = (uint32_t)(place / cells) - (used >> NPUPROF_RING_LAP_SHIFT_);
    return g->number[cell] - (uint32_t)(place % cells) - (ago & NPUPROF_EXPAND_LAPS_) * cells + index;
}

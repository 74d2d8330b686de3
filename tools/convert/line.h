#pragma once   /* SPDX-License-Identifier: MIT */
#include "parts.h"

/* The traces on a line. Headers and parts come in the order in which they were sent, but for some that a line
   repeats, swaps or loses; this part says which of them are of one trace, and counts. A new trace begins
   where the target did: at a header that differs in what stays the same, or whose numbers go back. If that
   header was lost, the next one tells: parts before it had numbers that were there with other contents, or
   its clock went back.
   Numbers of cells are modulo 2^32; two of one trace are less than 2^31 apart.
   The reader of files and --follow decide by the same functions. Constant memory. */

enum {
    NPUPROF_LINE_SWAPPED_ = 2 * NPUPROF_PART_CELLS_,   /* a header may be swapped with so many cells */
    NPUPROF_LINE_LATE_ = 64 * NPUPROF_PART_CELLS_,     /* a part may come so many cells late */
    NPUPROF_LINE_GAPS_ = 64,       /* gaps that may still be filled */
    NPUPROF_LINE_SEEN_ = 128       /* parts that are known again */
};

typedef struct npuprof_line_ {
    npuprof_compact_header_ c;     /* the newest header */
    bool has_header, swap;
    bool is_stream, is_image;      /* both false: not known yet */
    uint64_t start;                /* of the trace, as its first header says */
    uint32_t headers, parts, cells;   /* that were taken; no cell twice */
    uint32_t begin, end;           /* the first cell that should be there, of a stream the first that came;
                                      the one behind the newest */
    uint32_t gaps, twice;          /* runs of cells that are missing; parts that came again */
    uint32_t refused;              /* parts since the newest header that came again */
    uint32_t back;                 /* the deepest step back since the newest header, and where */
    uint64_t back_at;
    uint32_t strange;              /* parts since then that cannot be of this trace, and where the first is */
    uint64_t strange_at;
    uint32_t wide;                 /* the widest gap since then, and the part behind it */
    uint64_t wide_at;
    struct { uint32_t first, crc; } seen[NPUPROF_LINE_SEEN_];   /* the newest parts, by `parts` */
    struct { uint32_t from, to; } gap[NPUPROF_LINE_GAPS_];   /* the newest ones */
    uint32_t known_gaps;
} npuprof_line_;

/* The distance from b to a. */
static int32_t npuprof_line_after_(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b);
}

/* So many cells of a stream were sent before the first one that came, modulo 2^32: a gap, too, which `gaps`
   does not count. */
static uint32_t npuprof_line_before_(const npuprof_line_ *l)
{
    return l->is_image ? 0 : l->begin;
}

/* So many cells are missing so far, without those before the first one that came. */
static uint32_t npuprof_line_missing_(const npuprof_line_ *l)
{
    return l->end - l->begin - l->cells;
}

static uint64_t npuprof_line_start_(const npuprof_compact_header_ *c)
{
    return (uint64_t)c->first_high << 32 | c->first_low;
}

/* Do two headers agree in all that a trace does not change? */
static bool npuprof_line_is_same_(const npuprof_compact_header_ *a, const npuprof_compact_header_ *b)
{
    const size_t counts = offsetof(npuprof_compact_header_, used);
    const bool same_rate = a->hz_low == b->hz_low && a->hz_high == b->hz_high;
    const bool same_place = a->address_low == b->address_low && a->address_high == b->address_high;
    return memcmp(a, b, counts) == 0 && same_rate && same_place && a->build == b->build;
}

/* The number behind the last cell that the newest header knows. */
static uint32_t npuprof_line_known_end_(const npuprof_line_ *l)
{
    return l->is_stream ? l->c.used : npuprof_expand_cell_count_(&l->c);
}

/* Is the clock of a header before that of the one before? In a silence of 2^47 ticks it looks so, too. */
static bool npuprof_line_is_clock_back_(const npuprof_line_ *l, const npuprof_compact_header_ *c)
{
    return npuprof_line_after_(c->clock, l->c.clock) < 0;
}

/* Where the trace began whose header lies at `offset` and is another one's than the parts before. */
static uint64_t npuprof_line_begins_(const npuprof_line_ *l, uint64_t offset)
{
    const bool is_back = l->back > NPUPROF_LINE_SWAPPED_;
    uint64_t at = is_back ? l->back_at : offset;
    if (l->is_image) return offset;
    if (l->strange && l->strange_at < at) at = l->strange_at;
    return !is_back && !l->strange && l->wide ? l->wide_at : at;
}

/* Does this header begin another trace? */
static bool npuprof_line_is_other_(const npuprof_line_ *l, const npuprof_compact_header_ *c, bool swap)
{
    const uint32_t end = npuprof_expand_may_stream_(c) ? c->used : npuprof_expand_cell_count_(c);
    const bool goes_back = l->parts && npuprof_line_after_(end, l->end) < -NPUPROF_LINE_SWAPPED_;
    if (!l->has_header) return goes_back;
    if (swap != l->swap || !npuprof_line_is_same_(&l->c, c)) return true;
    if (l->is_image) return l->headers > 1 || c->used != l->c.used;
    /* A clock that stood still moves the start back, also below 0, and nothing moves it on. */
    if ((int64_t)(npuprof_line_start_(c) - npuprof_line_start_(&l->c)) > 0) return true;
    if (npuprof_line_after_(c->lost, l->c.lost) < 0 || l->strange) return true;
    const bool is_moved = npuprof_line_start_(c) != npuprof_line_start_(&l->c);
    if (is_moved && npuprof_line_is_clock_back_(l, c)) return true;
    return npuprof_line_after_(c->used, l->c.used) < 0 || goes_back;
}

static void npuprof_line_open_gap_(npuprof_line_ *l, uint32_t from, uint32_t to)
{
    l->gaps++;
    if (l->known_gaps == NPUPROF_LINE_GAPS_)
        memmove(&l->gap[0], &l->gap[1], --l->known_gaps * sizeof l->gap[0]);
    l->gap[l->known_gaps].from = from;
    l->gap[l->known_gaps++].to = to;
}

/* Is the number in a header of a build that streams near that of a cell beside it? In an image of such a
   build it is no number. */
static bool npuprof_line_is_near_(uint32_t cell, uint32_t used)
{
    return cell - used + (1u << 23) < 1u << 24;
}

/* The first header of a trace. Parts may have come before it: of an image whose own header is damaged, or of
   a stream that began before. */
static void npuprof_line_begin_(npuprof_line_ *l, const npuprof_compact_header_ *c)
{
    l->is_image = !npuprof_expand_may_stream_(c);
    l->start = npuprof_line_start_(c);
    if (!l->parts) {
        l->begin = l->end = l->is_image ? 0 : c->used;
    } else if (l->is_image) {
        l->headers++;
        if (l->begin) npuprof_line_open_gap_(l, 0, l->begin);
        l->begin = 0;
    } else {
        l->is_stream = npuprof_line_is_near_(l->end, c->used);
    }
}

/* Takes a header that lies at `offset`. False: another trace begins, at *begins, and the header is not
   taken. */
static bool npuprof_line_take_header_(npuprof_line_ *l, const npuprof_parts_item_ *item, uint64_t offset,
                                      uint64_t *begins)
{
    if (npuprof_line_is_other_(l, &item->c, item->swap)) {
        *begins = npuprof_line_begins_(l, offset);
        return false;
    }
    if (!l->has_header) npuprof_line_begin_(l, &item->c);
    l->c = item->c;
    l->swap = item->swap;
    l->has_header = true;
    l->headers++;
    l->twice += l->refused;
    l->refused = l->back = l->wide = 0;
    return true;
}

/* Fills the cells [from, to) of a gap. False: they lie in none that is known. */
static bool npuprof_line_fill_gap_(npuprof_line_ *l, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < l->known_gaps; i++) {
        const uint32_t first = l->gap[i].from, end = l->gap[i].to;
        if (npuprof_line_after_(from, first) < 0 || npuprof_line_after_(end, to) < 0) continue;
        if (from != first && end != to) {
            l->gaps++;
            if (l->known_gaps < NPUPROF_LINE_GAPS_) {
                l->gap[l->known_gaps].from = to;
                l->gap[l->known_gaps++].to = end;
            }
            l->gap[i].to = from;
        } else if (from == first && end == to) {
            l->gaps--;
            memmove(&l->gap[i], &l->gap[i + 1], (--l->known_gaps - i) * sizeof l->gap[i]);
        } else if (from == first) {
            l->gap[i].from = to;
        } else {
            l->gap[i].to = from;
        }
        return true;
    }
    return false;
}

/* Says by the first part behind a header of a build that streams whether it streamed: the part is not far
   behind the number in the header. Else npuprof_write_image() wrote it. */
static void npuprof_line_see_kind_(npuprof_line_ *l, const npuprof_part_head_ *part)
{
    if (!l->has_header || l->is_stream || l->is_image) return;
    l->is_stream = npuprof_line_is_near_(part->first, l->c.used);
    l->is_image = !l->is_stream;
    if (l->is_image && !l->parts) l->begin = l->end = 0;
}

/* Did this part come before? A target makes no two parts of the same cells. */
static bool npuprof_line_was_seen_(const npuprof_line_ *l, const npuprof_part_head_ *part)
{
    for (uint32_t i = 0; i < NPUPROF_LINE_SEEN_ && i < l->parts; i++)
        if (l->seen[i].first == part->first && l->seen[i].crc == part->crc) return true;
    return false;
}

/* Notes a part that has cells of others, with other contents. */
static void npuprof_line_note_strange_(npuprof_line_ *l, uint64_t offset)
{
    if (!l->strange++) l->strange_at = offset;
}

/* A part that begins before the newest cell: takes it if its cells, or the last ones, are missing. Cells in
   front of all others are, if the line swapped them. */
static bool npuprof_line_take_late_(npuprof_line_ *l, uint32_t first, uint32_t end, uint64_t offset)
{
    const uint32_t back = l->end - first, cells = end - first;
    const int32_t before = npuprof_line_after_(l->begin, first), more = npuprof_line_after_(end, l->end);
    bool taken = more > 0 && before <= 0;
    if (taken) {
        npuprof_line_note_strange_(l, offset);
        l->cells += (uint32_t)more;
        l->end = end;
        return true;
    }
    if (l->back < back) {
        l->back = back;
        l->back_at = offset;
    }
    if (before > 0 && before <= NPUPROF_LINE_SWAPPED_ && npuprof_line_after_(end, l->begin) <= 0) {
        if (end != l->begin) npuprof_line_open_gap_(l, end, l->begin);
        l->begin = first;
        taken = true;
    } else {
        taken = back <= NPUPROF_LINE_LATE_ && npuprof_line_fill_gap_(l, first, end);
    }
    l->cells += taken ? cells : 0;
    if (!taken) npuprof_line_note_strange_(l, offset);
    return taken;
}

/* Takes a part that lies at `offset`. False: it is of another trace, or was there before. */
static bool npuprof_line_take_part_(npuprof_line_ *l, const npuprof_parts_item_ *item, uint64_t offset)
{
    const uint32_t first = item->part.first, end = first + item->part.count;
    if (l->has_header && item->swap != l->swap) return false;
    npuprof_line_see_kind_(l, &item->part);
    if (l->is_image && end > npuprof_line_known_end_(l)) return false;
    if (!l->has_header && !l->parts) l->begin = l->end = first;
    if (!l->cells && l->begin && l->is_stream && npuprof_line_after_(first, l->begin) > 0)
        l->begin = l->end = first;
    const int32_t ahead = npuprof_line_after_(first, l->end);
    const bool is_again = ahead < 0 && npuprof_line_was_seen_(l, &item->part);
    l->refused += is_again;
    if (is_again || (ahead < 0 && !npuprof_line_take_late_(l, first, end, offset))) return false;
    if (ahead > 0) npuprof_line_open_gap_(l, l->end, first);
    if (ahead > 0 && (uint32_t)ahead > l->wide) {
        l->wide = (uint32_t)ahead;
        l->wide_at = offset;
    }
    if (ahead >= 0) l->cells += item->part.count;
    if (ahead >= 0) l->end = end;
    l->seen[l->parts % NPUPROF_LINE_SEEN_].first = first;
    l->seen[l->parts++ % NPUPROF_LINE_SEEN_].crc = item->part.crc;
    return true;
}

/* Nothing more comes: cells that the newest header knows and that did not come are missing. */
static void npuprof_line_finish_(npuprof_line_ *l)
{
    l->twice += l->refused;
    l->refused = 0;
    const uint32_t end = npuprof_line_known_end_(l);
    if (!l->has_header || (!l->is_stream && !l->is_image) || npuprof_line_after_(end, l->end) <= 0) return;
    npuprof_line_open_gap_(l, l->end, end);
    l->end = end;
}

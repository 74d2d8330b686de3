#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"
#include "find.h"
#include "expander.h"

/* The arena of firmware (COMPACT) that goes on recording while it is read: in memory that is mapped, such as
   a BAR, or as three dumps, one after the other. Nobody can stop it, so the copy must show one moment.
   L1  The moment is when the header was read first. From then on header.used says which cells were taken.
   L2  Each cell is read twice, and then header.used again. Cells that were not taken until then, and are the
       same twice, are what they were in between.
   L3  A record begins at header.used, whenever that is read, and at cell 0. From there on its length says
       where the next one begins. A length that is in doubt ends that: the rest is left out up to the next
       place that L3 names.
   L4  A span that ended meanwhile is shown as what it was: open.
   What is left out becomes empty cells, so it is counted: of a ring header.lost is all there were.
   Mapped memory is read from the oldest cell on, ahead of the target. When the target overtakes, the rest is
   read from the newest cell back, until both meet.
   Where the target's clock stands, a record may look as the one that it replaced. */

/* Called when so many bytes were read twice: for tests, whose memory is not slow. */
#ifndef NPUPROF_LOAD_PAUSE_
#define NPUPROF_LOAD_PAUSE_() ((void)0)
#endif

enum { NPUPROF_LOAD_BLOCK_ = 32, NPUPROF_LOAD_TRIES_ = 8, NPUPROF_LOAD_OVERTAKEN_ = 3,
       NPUPROF_LOAD_HOLDS_ = 10000 };
/* What is known of a cell, by its place: 0 is the oldest one, as of L1. */
enum { NPUPROF_LOAD_READ_ = 1, NPUPROF_LOAD_BEGINS_ = 2 };   /* by L2; by L3 */

typedef struct npuprof_load_target_ {
    const uint8_t *from;                   /* the arena where it is; NULL: of dumps */
    npuprof_compact_header_ first, now;    /* its header, see L1, and as read last. In our byte order */
    bool swap, is_ring;
    uint32_t count, cells, oldest;         /* cells in all, of which so many may be read; the oldest one */
    uint32_t taken;                        /* so many places were taken since */
    uint8_t *a, *b, *known, *to;           /* the cells twice; what is known of each; what comes out */
} npuprof_load_target_;

/* Why by words: a BAR may take no other access. */
static void npuprof_load_copy_target_(void *to, const void *from, size_t bytes)
{
    const uint32_t *const f = (const uint32_t *)from;
    for (size_t i = 0; i < bytes / 4; i++) {
        const uint32_t word = NPUPROF_LOAD_ACQUIRE_(f + i);
        memcpy((uint8_t *)to + i * 4, &word, 4);
    }
}

static uint32_t npuprof_load_target_index_(const npuprof_load_target_ *x, uint32_t place)
{
    const uint32_t left = x->count - x->oldest;
    return place < left ? x->oldest + place : place - left;
}

/* Where in a copy the cell at that place is. */
static size_t npuprof_load_target_at_(const npuprof_load_target_ *x, uint32_t place)
{
    return (size_t)npuprof_load_target_index_(x, place) * sizeof(npuprof_cell_);
}

static uint32_t npuprof_load_target_word_(const npuprof_load_target_ *x, const uint8_t *copy, uint32_t place,
                                          unsigned word)
{
    return npuprof_expand_word_at_(copy + npuprof_load_target_at_(x, place) + (size_t)word * 4, x->swap);
}

/* Notes how far the target is now. */
static void npuprof_load_note_taken_(npuprof_load_target_ *x)
{
    const uint32_t index = x->now.used & NPUPROF_RING_INDEX_, begin = x->first.used & ~NPUPROF_RING_INDEX_;
    const uint32_t laps = (x->now.used - begin) >> NPUPROF_RING_LAP_SHIFT_ & NPUPROF_EXPAND_LAPS_;
    const int64_t taken = (int64_t)laps * x->count + index - x->oldest;
    if (!x->is_ring) return;
    if (index >= x->count || taken < (int64_t)x->taken || taken > (int64_t)x->cells) x->taken = x->cells;
    else x->taken = (uint32_t)taken;
    if (x->taken < x->cells) x->known[x->taken] |= NPUPROF_LOAD_BEGINS_;
}

/* Reads the header where the arena is, until it is the same twice. A reader on the target holds the ring for
   a while: this waits for it. */
static void npuprof_load_look_(npuprof_load_target_ *x)
{
    uint8_t bytes[2][sizeof x->now];
    bool swap;
    for (unsigned n = 0; n < NPUPROF_LOAD_HOLDS_; n++) {
        npuprof_load_copy_target_(bytes[n % 2], x->from, sizeof x->now);
        (void)npuprof_expand_read_header_(bytes[n % 2], &x->now, &swap);
        if (n < NPUPROF_LOAD_TRIES_ && (!n || memcmp(bytes[0], bytes[1], sizeof x->now) != 0)) continue;
        if (!x->is_ring || (x->now.used & NPUPROF_RING_INDEX_) < x->now.cells) return;
    }
}

/* Are these cells the same in both copies? None of them goes on with the first cell of the memory. */
static bool npuprof_load_is_same_(const npuprof_load_target_ *x, uint32_t place, uint32_t cells)
{
    const size_t at = npuprof_load_target_at_(x, place);
    return memcmp(x->a + at, x->b + at, (size_t)cells * sizeof(npuprof_cell_)) == 0;
}

/* Reads cells from `from` to `to` until those that were not taken are the same twice: L2. */
static void npuprof_load_cells_(npuprof_load_target_ *x, uint32_t from, uint32_t to)
{
    const uint8_t *const cells = x->from + sizeof x->first;
    bool is_same = false;
    for (unsigned n = 0; n < NPUPROF_LOAD_TRIES_ && from < to && !is_same; n++) {
        const size_t at = npuprof_load_target_at_(x, from);
        const size_t bytes = (size_t)(to - from) * sizeof(npuprof_cell_);
        npuprof_load_copy_target_(x->a + at, cells + at, bytes);
        NPUPROF_LOAD_PAUSE_();
        npuprof_load_copy_target_(x->b + at, cells + at, bytes);
        NPUPROF_LOAD_PAUSE_();
        npuprof_load_look_(x);
        npuprof_load_note_taken_(x);
        if (from < x->taken) from = x->taken;
        is_same = from < to && npuprof_load_is_same_(x, from, to - from);
    }
    for (uint32_t place = from; place < to; place++) x->known[place] |= NPUPROF_LOAD_READ_;
}

/* Where a block that begins or ends at a place may reach: not beyond the last cell of the memory. */
static uint32_t npuprof_load_block_end_(const npuprof_load_target_ *x, uint32_t from)
{
    const uint32_t last = x->count - x->oldest, limit = from < last && last < x->cells ? last : x->cells;
    return limit - from > NPUPROF_LOAD_BLOCK_ ? from + NPUPROF_LOAD_BLOCK_ : limit;
}

static uint32_t npuprof_load_block_begin_(const npuprof_load_target_ *x, uint32_t to, uint32_t from)
{
    const uint32_t last = x->count - x->oldest, limit = to > last && last > from ? last : from;
    return to - limit > NPUPROF_LOAD_BLOCK_ ? to - NPUPROF_LOAD_BLOCK_ : limit;
}

/* Is nothing here yet, because somebody is writing it? */
static bool npuprof_load_is_unfinished_(const npuprof_load_target_ *x, const uint8_t *copy, uint32_t place)
{
    uint16_t half;
    memcpy(&half, copy + npuprof_load_target_at_(x, place) + 14, 2);
    if (x->swap) half = npuprof_load_swap16_(half);
    if (!x->is_ring) return npuprof_load_target_word_(x, copy, place, 0) == 0;
    return (half & NPUPROF_CELL_OPEN_) && (half & NPUPROF_CELL_CLAIMED_);
}

/* Copies the cells of memory that is mapped. Why unfinished ones are read again: what is behind them was read
   later, and they may have become one record with it. */
static void npuprof_load_read_target_(npuprof_load_target_ *x)
{
    const uint8_t *const cells = x->from + sizeof x->first;
    uint32_t from = 0, to = x->cells;
    for (unsigned overtaken = 0; from < to && overtaken < NPUPROF_LOAD_OVERTAKEN_;) {
        const uint32_t end = npuprof_load_block_end_(x, from);
        npuprof_load_cells_(x, from, end);
        overtaken = x->taken < end ? 0 : overtaken + 1;
        from = x->taken > end ? x->taken : end;
    }
    while (to > from && to > x->taken) {
        const uint32_t begin = npuprof_load_block_begin_(x, to, from > x->taken ? from : x->taken);
        npuprof_load_cells_(x, begin, to);
        to = begin;
    }
    for (uint32_t place = 0; place < x->cells; place++) {
        const size_t at = npuprof_load_target_at_(x, place);
        if (!(x->known[place] & NPUPROF_LOAD_READ_) || !npuprof_load_is_unfinished_(x, x->a, place)) continue;
        npuprof_load_copy_target_(x->b + at, cells + at, sizeof(npuprof_cell_));
    }
}

/* ---- What of the copies counts */

static bool npuprof_load_was_read_(const npuprof_load_target_ *x, uint32_t place, uint32_t cells)
{
    if (place + cells > x->cells || npuprof_load_target_index_(x, place) + cells > x->count) return false;
    for (uint32_t i = place; i < place + cells; i++)
        if (!(x->known[i] & NPUPROF_LOAD_READ_)) return false;
    return true;
}

/* How many cells the record has at that place, which begins one; 0: that is in doubt. Its end may have
   changed meanwhile. Why another copy of what is unfinished without a ring: it says its length later. */
static uint32_t npuprof_load_target_length_(const npuprof_load_target_ *x, uint32_t place)
{
    const bool is_begun = !npuprof_load_is_unfinished_(x, x->a, place);
    const uint8_t *const copy = x->is_ring || is_begun ? x->a : x->b;
    const size_t at = npuprof_load_target_at_(x, place);
    const bool is_same = memcmp(x->a + at, x->b + at, is_begun ? 8 : sizeof(npuprof_cell_)) == 0;
    const uint32_t ref = npuprof_load_target_word_(x, copy, place, 0);
    const uint32_t unfinished = npuprof_load_target_word_(x, copy, place, 2);
    uint32_t n = 1, word = NPUPROF_FIELD_MORE_;
    if (copy == x->a && !is_same) return 0;
    if (!x->is_ring && !ref) return unfinished ? unfinished : 1;
    while ((ref & 1) && (word & NPUPROF_FIELD_MORE_)) {
        if (n >= x->cells - place || !npuprof_load_was_read_(x, place, n + 1)) return 0;
        word = npuprof_load_target_word_(x, copy, place + n, 1);
        if (copy == x->a && word != npuprof_load_target_word_(x, x->b, place + n, 1)) return 0;
        if (x->is_ring) return NPUPROF_FIELD_CELLS_(word);
        n += 1 + ((word >> 8 & 0x7FFFFF) + 7) / 16;
    }
    return n;
}

/* Takes over a record of so many cells. */
static void npuprof_load_keep_record_(npuprof_load_target_ *x, uint32_t place, uint32_t cells)
{
    const size_t at = npuprof_load_target_at_(x, place);
    const uint16_t open = x->swap ? npuprof_load_swap16_(NPUPROF_CELL_OPEN_) : NPUPROF_CELL_OPEN_;
    memcpy(x->to + at, x->a + at, (size_t)cells * sizeof(npuprof_cell_));
    if (!npuprof_load_is_same_(x, place, 1)) memcpy(x->to + at + 14, &open, sizeof open);
}

/* Fills x->to with the records that L2 and L3 hold for, and else with empty cells; returns how many cells
   were left out. */
static uint32_t npuprof_load_keep_records_(npuprof_load_target_ *x)
{
    const uint32_t cleared = NPUPROF_CELL_CLEARED_;
    uint32_t n, left_out = 0;
    bool is_sure = false;
    for (uint32_t i = 0; i < x->count; i++) memcpy(x->to + (size_t)i * sizeof(npuprof_cell_), &cleared, 4);
    if (x->swap)
        for (uint32_t i = 0; i < x->count; i++) npuprof_load_swap32_(x->to + (size_t)i * 16, 1);
    for (uint32_t place = 0; place < x->cells; place += n) {
        is_sure = is_sure || x->known[place] & NPUPROF_LOAD_BEGINS_;
        n = is_sure && npuprof_load_was_read_(x, place, 1) ? npuprof_load_target_length_(x, place) : 0;
        is_sure = n && n <= x->cells - place && npuprof_load_was_read_(x, place, n);
        if (!is_sure) n = 1;
        if (is_sure && npuprof_load_is_unfinished_(x, x->a, place)) continue;
        if (is_sure && (n == 1 || npuprof_load_is_same_(x, place + 1, n - 1)))
            npuprof_load_keep_record_(x, place, n);
        else left_out += n;
    }
    return left_out;
}

/* ---- From the source to an image */

/* Where in memory that is mapped the arena begins. NULL: nowhere. */
static const uint8_t *npuprof_load_find_target_(const uint8_t *bytes, size_t count,
                                                npuprof_load_found_ *found)
{
    uint8_t head[sizeof found->header];
    uint32_t magic[2], words[2];
    memcpy(magic, "NPUPROF\n", sizeof magic);
    for (size_t at = 0; at + sizeof head <= count; at += 4) {
        words[0] = NPUPROF_LOAD_((const uint32_t *)(const void *)(bytes + at));
        if (words[0] != magic[0]) continue;
        npuprof_load_copy_target_(head, bytes + at, sizeof head);
        if (npuprof_expand_header_fault_(head, sizeof head, &found->header, &found->swap)) continue;
        if (found->header.layout != NPUPROF_LAYOUT_COMPACT) continue;
        found->at = at;
        return bytes + at;
    }
    return NULL;
}

/* Begins a copy of the arena whose header is x->first, with so many cells in the source. False: there is no
   memory. */
static bool npuprof_load_begin_target_(npuprof_load_target_ *x, size_t in_source)
{
    const uint32_t index = x->first.used & NPUPROF_RING_INDEX_;
    x->count = (uint32_t)npuprof_min_(x->first.cells, in_source);
    x->cells = x->is_ring ? x->count : (uint32_t)npuprof_min_(x->first.used, x->count);
    x->oldest = x->is_ring ? index : 0;
    const size_t bytes = (size_t)x->count * sizeof(npuprof_cell_);
    x->a = (uint8_t *)npuprof_load_memory_(2 * bytes + x->count + 1);
    npuprof_loaded_.file_bytes = sizeof x->first + bytes;
    npuprof_loaded_.file = npuprof_load_memory_(npuprof_loaded_.file_bytes);
    if (!x->a || !npuprof_loaded_.file) return false;
    x->b = x->a + bytes;
    x->known = x->b + bytes;
    x->to = (uint8_t *)npuprof_loaded_.file + sizeof x->first;
    x->known[0] |= NPUPROF_LOAD_BEGINS_;
    x->known[x->count - x->oldest] |= NPUPROF_LOAD_BEGINS_;
    return true;
}

/* Makes an image of what was copied, unless the target began anew meanwhile. */
static npuprof_result npuprof_load_end_target_(npuprof_load_target_ *x)
{
    npuprof_compact_header_ c = x->first;
    c.crc = 0;                             /* Why: checks of another moment say nothing. */
    npuprof_loaded_.is_live = npuprof_loaded_.is_target = true;
    npuprof_loaded_.damage.changed = npuprof_load_keep_records_(x);
    if (x->swap) npuprof_load_swap32_(&c.endian, 4);
    if (x->swap) npuprof_load_swap32_(&c.cells, 13);
    memcpy(npuprof_loaded_.file, &c, sizeof c);
    npuprof_load_free_(x->a, 2 * (size_t)x->count * sizeof(npuprof_cell_) + x->count + 1);
    if (npuprof_line_is_same_(&x->first, &x->now)) return NPUPROF_OK;
    return npuprof_load_refuse_(0, "the target began anew while it was read, read it again: the image");
}

static const char npuprof_load_no_target_[] = "no arena of firmware is in it, from the first byte: searched";
static const char npuprof_load_held_[] = "the target is reading its ring, read it later: its header";

/* Reads an arena in memory that is mapped. */
static npuprof_result npuprof_load_mapped_target_(const uint8_t *bytes, size_t count)
{
    npuprof_load_target_ x;
    npuprof_load_found_ found;
    memset(&x, 0, sizeof x);
    x.from = npuprof_load_find_target_(bytes, count, &found);
    if (!x.from) return npuprof_load_refuse_(count, npuprof_load_no_target_);
    x.swap = found.swap;
    x.is_ring = npuprof_expand_is_ring_(&found.header);
    npuprof_load_look_(&x);
    x.first = x.now;
    if (x.is_ring && (x.first.used & NPUPROF_RING_INDEX_) >= x.first.cells)
        return npuprof_load_refuse_(found.at, npuprof_load_held_);
    if (!npuprof_load_begin_target_(&x, (count - found.at - sizeof x.first) / sizeof(npuprof_cell_)))
        return NPUPROF_ERR_NO_SPACE;
    npuprof_load_read_target_(&x);
    return npuprof_load_end_target_(&x);
}

/* Reads an arena of three dumps: the cells are in the first two, and the last one says what was taken. */
static npuprof_result npuprof_load_dumped_target_(const uint8_t *const dumps[3], const size_t counts[3])
{
    npuprof_load_target_ x;
    npuprof_load_found_ found;
    memset(&x, 0, sizeof x);
    const uint32_t layout = NPUPROF_LAYOUT_COMPACT;
    if (!npuprof_load_find_layout_(dumps[0], counts[0], layout, layout, &found))
        return npuprof_load_refuse_(counts[0], npuprof_load_no_target_);
    const size_t least = counts[0] < counts[1] ? counts[0] : counts[1], cells_at = found.at + sizeof x.first;
    const uint8_t *const last = dumps[2] + found.at;
    bool swap;
    x.first = found.header;
    x.swap = found.swap;
    x.is_ring = npuprof_expand_is_ring_(&x.first);
    if (least < cells_at || counts[2] < cells_at || !npuprof_expand_read_header_(last, &x.now, &swap))
        return npuprof_load_refuse_(found.at, "the other dumps are not of the same memory: the arena");
    if (x.is_ring && (x.first.used & NPUPROF_RING_INDEX_) >= x.first.cells)
        return npuprof_load_refuse_(found.at, npuprof_load_held_);
    if (!npuprof_load_begin_target_(&x, (least - cells_at) / sizeof(npuprof_cell_)))
        return NPUPROF_ERR_NO_SPACE;
    memcpy(x.a, dumps[0] + cells_at, (size_t)x.count * sizeof(npuprof_cell_));
    memcpy(x.b, dumps[1] + cells_at, (size_t)x.count * sizeof(npuprof_cell_));
    npuprof_load_note_taken_(&x);
    for (uint32_t place = x.taken; place < x.cells; place++) x.known[place] |= NPUPROF_LOAD_READ_;
    return npuprof_load_end_target_(&x);
}

/* Reads what is at the paths into npuprof_loaded_.file: one is mapped, three are dumps. */
static npuprof_result npuprof_load_read_live_(const char *const paths[3])
{
    void *dumps[3] = { NULL, NULL, NULL };
    size_t counts[3] = { 0, 0, 0 };
    int error = 0;
    if (!paths[1]) {
        error = npuprof_load_map_file_(paths[0], false, &dumps[0], &counts[0]);
        if (error) return npuprof_os_result_(error);
        if (!dumps[0]) return npuprof_load_refuse_(0, "no memory that can be mapped: its beginning");
        const npuprof_result r = npuprof_load_mapped_target_((const uint8_t *)dumps[0], counts[0]);
        npuprof_os_unmap_(dumps[0], counts[0]);
        return r;
    }
    npuprof_result r = NPUPROF_OK;
    for (int i = 0; i < 3 && !error; i++) error = npuprof_load_read_file_(paths[i], &dumps[i], &counts[i]);
    const uint8_t *const bytes[3] = { (const uint8_t *)dumps[0], (const uint8_t *)dumps[1],
                                      (const uint8_t *)dumps[2] };
    r = error ? npuprof_os_result_(error) : npuprof_load_dumped_target_(bytes, counts);
    for (int i = 0; i < 3; i++) npuprof_load_free_(dumps[i], counts[i]);
    return r;
}

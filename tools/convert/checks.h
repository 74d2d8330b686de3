#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"
#include "find.h"
#include "expander.h"

/* The checks of firmware's cells in a dump of memory (NPUPROF_CHECKED; src/format/compact.h). Records that do
   not match are damage: they are emptied, and the rest is shown. What is still open has no check.
   A length that is damaged hides where the next record begins. So if the records of 16 cells do not match,
   the next ones are tried from each of their cells on. */

typedef struct npuprof_expand_check_dump_ {
    uint8_t *cells;                        /* in the dump */
    const uint8_t *checks;
    uint32_t used;                         /* so many cells were taken */
    bool swap;
} npuprof_expand_check_dump_;

static uint32_t npuprof_expand_check_word_(const npuprof_expand_check_dump_ *d, uint32_t cell, unsigned word)
{
    return npuprof_expand_word_at_(d->cells + (size_t)cell * sizeof(npuprof_cell_) + (size_t)word * 4,
                                   d->swap);
}

/* How many cells the record has that begins there; not beyond those that were taken. */
static uint32_t npuprof_expand_check_length_(const npuprof_expand_check_dump_ *d, uint32_t cell)
{
    const uint32_t ref = npuprof_expand_check_word_(d, cell, 0), left = d->used - cell;
    uint32_t n = 1, field = NPUPROF_FIELD_MORE_;
    if (!ref) n = npuprof_expand_check_word_(d, cell, 2);
    while ((ref & 1) && (field & NPUPROF_FIELD_MORE_) && n < left) {
        field = npuprof_expand_check_word_(d, cell + n, 1);
        n += 1 + (NPUPROF_FIELD_LENGTH_(field) + 7) / 16;
    }
    return n < 1 ? 1 : n < left ? n : left;
}

/* Whether the record that begins there is finished, not open, and says something. */
static bool npuprof_expand_check_is_closed_(const npuprof_expand_check_dump_ *d, uint32_t cell)
{
    uint16_t half;
    memcpy(&half, d->cells + (size_t)cell * sizeof(npuprof_cell_) + 14, sizeof half);
    if (d->swap) half = npuprof_load_swap16_(half);
    const uint32_t ref = npuprof_expand_check_word_(d, cell, 0);
    return ref > (NPUPROF_CELL_CLEARED_ | 1) && !(half & NPUPROF_CELL_OPEN_);
}

/* The sum of the records from a cell on that begin before `end`. *next: where the one behind them begins. */
static uint32_t npuprof_expand_check_sum_(const npuprof_expand_check_dump_ *d, uint32_t cell, uint32_t end,
                                          uint32_t *next)
{
    uint32_t all = 0;
    while (cell < end) {
        const uint32_t n = npuprof_expand_check_length_(d, cell);
        uint32_t sum = 0;
        if (npuprof_expand_check_is_closed_(d, cell))
            for (uint32_t i = 0; i < 4 * n; i++)
                sum = npuprof_compact_check_(sum, npuprof_expand_check_word_(d, cell + i / 4, i % 4));
        all += sum;
        cell += n;
    }
    *next = cell;
    return all;
}

/* Empties the cells between two, which a record may not be made of any more. */
static void npuprof_expand_check_empty_(const npuprof_expand_check_dump_ *d, uint32_t from, uint32_t to)
{
    uint32_t cleared = NPUPROF_CELL_CLEARED_;
    if (d->swap) npuprof_load_swap32_(&cleared, 1);
    for (; from < to; from++) {
        uint8_t *const cell = d->cells + (size_t)from * sizeof(npuprof_cell_);
        memset(cell, 0, sizeof(npuprof_cell_));
        memcpy(cell, &cleared, sizeof cleared);
    }
}

/* Where from `run` on records match the check of those that begin before `end`. Why the last such place: what
   is in front may be the rest of a record. False: nowhere. */
static bool npuprof_expand_check_find_(const npuprof_expand_check_dump_ *d, uint32_t run, uint32_t end,
                                       uint32_t check, uint32_t *at, uint32_t *next)
{
    for (*at = end; check && *at > run;)
        if (npuprof_expand_check_sum_(d, --*at, end, next) == check) return true;
    return false;
}

/* Checks all cells of a dump. offset: of its first one. */
static void npuprof_expand_check_cells_(const npuprof_expand_check_dump_ *d, uint64_t offset)
{
    uint32_t begin = 0, next, at;          /* begin: of a record, or, if none is sure, of what is in doubt */
    bool is_sure = true;
    for (uint32_t run = 0; run < d->used; run += 16) {
        const uint32_t end = d->used - run < 16 ? d->used : run + 16;
        const uint32_t check = npuprof_expand_word_at_(d->checks + run / 4, d->swap);
        if (is_sure && npuprof_expand_check_sum_(d, begin, end, &next) == check) {
            begin = next;
        } else if (is_sure) {
            npuprof_load_note_damage_(offset + (uint64_t)run * sizeof(npuprof_cell_),
                                      "16 cells that do not match their check, and are left out");
            is_sure = false;
        } else if (npuprof_expand_check_find_(d, run, end, check, &at, &next)) {
            npuprof_expand_check_empty_(d, begin, at);
            begin = next;
            is_sure = true;
        }
    }
    if (!is_sure) npuprof_expand_check_empty_(d, begin, d->used);
}

/* Checks the cells of an arena in a dump, if it has checks and is there to its end. */
static void npuprof_expand_check_found_(uint8_t *image, size_t bytes, const npuprof_load_found_ *found)
{
    const npuprof_compact_header_ *const c = &found->header;
    const uint64_t cells_at = found->at + sizeof *c, checks_at = cells_at + (uint64_t)c->cells * 16;
    npuprof_expand_check_dump_ d;
    if (found->layout != NPUPROF_LAYOUT_COMPACT || c->crc != NPUPROF_COMPACT_CHECKED_) return;
    if (checks_at + ((uint64_t)c->cells + 15) / 16 * 4 > bytes) return;
    d.cells = image + cells_at;
    d.checks = image + checks_at;
    d.used = (uint32_t)npuprof_min_(c->used, c->cells);
    d.swap = found->swap;
    npuprof_expand_check_cells_(&d, cells_at);
}

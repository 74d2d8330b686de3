#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"
#include "swap.h"

/* The cells of a firmware image (src/format/compact.h), in order, from wherever they are: an arena in a dump
   of memory (COMPACT), or the parts that a line brought (PARTS), of which some may be missing or damaged.
   Behind this part the rest of the expansion sees one array of cells and the number that each had on the
   target. A gap in the numbers is a loss. */

/* Cells that lie one behind the other in the file. */
typedef struct npuprof_expand_run_ {
    uint32_t start;                /* number of the first one, as counted here */
    uint32_t names;                /* crc of their records' names; 0: unknown */
    uint64_t offset;               /* of the first one in the file */
} npuprof_expand_run_;

typedef struct npuprof_expand_cells_ {
    npuprof_compact_header_ c;     /* in our byte order */
    bool swap;                     /* the cells have the other one */
    const uint8_t *cells;
    uint32_t count, run_count;
    uint32_t *number;              /* of each cell: its number on the target */
    npuprof_expand_run_ *runs;
} npuprof_expand_cells_;

static uint32_t npuprof_expand_word_at_(const uint8_t *p, bool swap)
{
    uint32_t v;
    memcpy(&v, p, 4);
    if (swap) npuprof_load_swap32_(&v, 1);
    return v;
}

/* Reads the header at p into *c, in our byte order. NULL, or what is wrong with it. */
static const char *npuprof_expand_header_fault_(const uint8_t *p, size_t count, npuprof_compact_header_ *c,
                                                bool *swap)
{
    if (count < sizeof *c) return "shorter than a header";
    memcpy(c, p, sizeof *c);
    *swap = c->endian == 0x04030201u;
    if (*swap) {
        npuprof_load_swap32_(&c->endian, 4);
        npuprof_load_swap32_(&c->cells, (sizeof *c - offsetof(npuprof_compact_header_, cells)) / 4);
    }
    const bool has_crc = c->layout == NPUPROF_LAYOUT_PARTS;
    const uint32_t crc = has_crc ? ~npuprof_crc_add_(UINT32_MAX, p, sizeof *c - 4) : 0;
    const uint64_t hz = (uint64_t)c->hz_high << 32 | c->hz_low;
    const bool is_header = memcmp(p, "NPUPROF\n", 8) == 0 && c->endian == 0x01020304u && c->format == 1 &&
                           c->header_bytes == sizeof *c && c->crc == crc;
    const bool is_clock = c->clock_bits >= 8 && c->clock_bits <= 64 && hz && hz <= UINT64_C(1000000000000000);
    const bool is_pointer = c->pointer_bytes == 2 || c->pointer_bytes == 4 || c->pointer_bytes == 8;
    const bool has_cells = c->cells && c->cells <= UINT32_MAX / 16 && c->context_bits <= 8;
    return is_header && is_clock && is_pointer && has_cells ? NULL : "a damaged header";
}

/* Reads the head of the part at p. Its bytes with the cells; 0: there is no whole part. */
static size_t npuprof_expand_part_at_(const npuprof_expand_cells_ *g, const uint8_t *p, size_t left,
                                      npuprof_part_head_ *part)
{
    if (left < sizeof *part || npuprof_expand_word_at_(p, g->swap) != NPUPROF_PART_MARK_) return 0;
    memcpy(part, p, sizeof *part);
    if (g->swap) {
        npuprof_load_swap32_(part, sizeof *part / 4);
        /* They are the halves of one word. */
        const uint16_t count = part->lead;
        part->lead = part->count;
        part->count = count;
    }
    const size_t cells = (size_t)part->count * sizeof(npuprof_cell_);
    if (!part->count || part->count > NPUPROF_PART_CELLS_ || part->lead > part->count) return 0;
    if (cells > left - sizeof *part) return 0;
    const uint32_t crc = npuprof_crc_add_(UINT32_MAX, p, sizeof *part - 4);
    if (part->crc != ~npuprof_crc_add_(crc, p + sizeof *part, cells)) return 0;
    return sizeof *part + cells;
}

static void npuprof_expand_add_run_(npuprof_expand_cells_ *g, uint64_t offset, uint32_t names)
{
    npuprof_expand_run_ *const run = &g->runs[g->run_count++];
    run->start = g->count;
    run->offset = offset;
    run->names = names;
}

/* Takes a part's cells, but not the end of a record whose beginning is missing. expected: number of the first
   cell if nothing is. */
static void npuprof_expand_take_part_(npuprof_expand_cells_ *g, const npuprof_part_head_ *part,
                                      const uint8_t *image, size_t at, uint32_t expected, uint8_t *cells)
{
    const uint32_t lead = part->first != expected ? part->lead : 0;
    const size_t offset = at + sizeof *part + lead * sizeof(npuprof_cell_);
    npuprof_expand_add_run_(g, offset, part->names);
    memcpy(cells + (size_t)g->count * sizeof(npuprof_cell_), image + offset,
           (part->count - lead) * sizeof(npuprof_cell_));
    for (uint32_t i = lead; i < part->count; i++) g->number[g->count++] = part->first + i;
}

/* Is there a whole header from `at` on? The last one says that nothing was cut off. */
static bool npuprof_expand_has_end_(const uint8_t *image, size_t count, size_t at)
{
    npuprof_compact_header_ c;
    bool swap;
    for (; at + sizeof c <= count; at++)
        if (image[at] == 'N' && !npuprof_expand_header_fault_(image + at, count - at, &c, &swap)) return true;
    return false;
}

/* PARTS: takes the cells of all whole parts; `capacity` cells fit. What is missing is damage, at the place
   where it should be. header: where the first whole header lies: at the beginning, or, if that one is
   damaged, behind the parts. */
static void npuprof_expand_gather_parts_(npuprof_expand_cells_ *g, const uint8_t *image, size_t count,
                                         size_t header, uint8_t *cells, uint32_t capacity)
{
    npuprof_part_head_ part;
    uint32_t expected = 0;
    size_t behind = header + sizeof g->c, size;
    for (size_t at = 0; at + sizeof part <= count; at += size ? size : 1) {
        size = npuprof_expand_part_at_(g, image + at, count - at, &part);
        const uint64_t end = size ? (uint64_t)part.first + part.count : 0;
        /* Why the runs, too: a part may hold nothing but the end of a record that is missing. */
        const bool fits = size && g->count + part.count <= capacity && g->run_count <= capacity;
        if (!fits || part.first < expected || end > g->c.used) {
            size = 0;
            continue;
        }
        if (!g->run_count && at < header) {
            npuprof_load_note_damage_(0, "a damaged header");
            behind = 0;
        }
        if (part.first != expected) npuprof_load_note_damage_(behind, "a damaged part");
        npuprof_expand_take_part_(g, &part, image, at, expected, cells);
        expected = (uint32_t)end;
        behind = at + size;
    }
    const bool has_end = npuprof_expand_has_end_(image, count, behind);
    if (expected != g->c.used)
        npuprof_load_note_damage_(behind, behind == count ? "the file is cut off" : "a damaged part");
    else if (!has_end) npuprof_load_note_damage_(behind, "the end of the image is missing or damaged");
    g->cells = cells;
}

/* COMPACT: the cells lie behind the header, `capacity` of them in the file. They can be checked for nothing
   but that. */
static void npuprof_expand_gather_memory_(npuprof_expand_cells_ *g, const uint8_t *image, size_t count,
                                          size_t header, uint32_t capacity)
{
    if (capacity < npuprof_min_(g->c.used, g->c.cells))
        npuprof_load_note_damage_(count, "the file is cut off");
    g->cells = image + header + sizeof g->c;
    npuprof_expand_add_run_(g, header + sizeof g->c, 0);
    for (; g->count < capacity; g->count++) g->number[g->count] = g->count;
}

/* Are this cell and the count - 1 cells behind it there, with nothing missing between them? */
static bool npuprof_expand_are_adjacent_(const npuprof_expand_cells_ *g, uint64_t cell, uint64_t count)
{
    return cell + count <= g->count && g->number[cell + count - 1] - g->number[cell] == count - 1;
}

/* Where a cell lies in the file. */
static uint64_t npuprof_expand_cell_offset_(const npuprof_expand_cells_ *g, uint32_t cell)
{
    uint32_t from = 0, to = g->run_count;
    while (to - from > 1) {
        const uint32_t middle = from + (to - from) / 2;
        if (g->runs[middle].start <= cell) from = middle;
        else to = middle;
    }
    return g->runs[from].offset + (uint64_t)(cell - g->runs[from].start) * sizeof(npuprof_cell_);
}

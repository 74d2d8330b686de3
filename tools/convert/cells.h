#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"
#include "parts.h"
#include "line.h"

/* The cells of a firmware image (src/format/compact.h), in order, from wherever they are: an arena in a dump
   of memory (COMPACT), or the parts that a line brought (PARTS), of which some may be missing or damaged.
   Behind this part the rest of the expansion sees one array of cells and the number that each had on the
   target. A gap in the numbers is a loss. */

/* The stream goes on from an earlier file, which --follow wrote: nothing is missing before its first cell.
   Set by the one thread that follows. */
static bool npuprof_expand_is_continued_;

/* The stream goes on: a record at its end whose rest is still to come is no damage. Set as that one. */
static bool npuprof_expand_goes_on_;

/* Cells that lie one behind the other in the file. */
typedef struct npuprof_expand_run_ {
    uint32_t start;                /* number of the first one, as counted here */
    uint32_t names;                /* crc of their records' names; 0: unknown */
    uint32_t missing;              /* so many cells in front of them */
    uint64_t offset;               /* of the first one in the file */
    uint64_t ticks;                /* of a RING: a stamp near theirs */
} npuprof_expand_run_;

typedef struct npuprof_expand_cells_ {
    npuprof_compact_header_ c;     /* in our byte order */
    bool swap;                     /* the cells have the other one */
    const uint8_t *cells;
    uint32_t count, run_count;
    uint32_t *number;              /* of each cell: its number on the target, counted from line.begin */
    npuprof_line_ line;            /* PARTS: what is missing, and what came twice */
    uint32_t missing_before;       /* so many cells of a stream, before the first one */
    uint32_t missing_behind;       /* so many, behind the last one */
    npuprof_expand_run_ *runs;
} npuprof_expand_cells_;

static npuprof_expand_run_ *npuprof_expand_add_run_(npuprof_expand_cells_ *g, uint64_t offset,
                                                    uint32_t names)
{
    npuprof_expand_run_ *const run = &g->runs[g->run_count++];
    memset(run, 0, sizeof *run);
    run->start = g->count;
    run->offset = offset;
    run->names = names;
    return run;
}

/* What is in a section of PARTS: one trace. */
typedef struct npuprof_expand_section_ {
    size_t from, to;               /* bytes of the image; behind `to` another trace begins, or nothing */
    npuprof_line_ line;            /* what it says of the trace, up to the end */
    size_t parts, cells;           /* so many, of which some may be there twice */
    size_t first_header;           /* offset of the first whole header; to: there is none */
    size_t header_bytes;           /* it has so many */
    size_t last_end;               /* behind the last header or part */
    bool ends_with_header;
} npuprof_expand_section_;

/* Surveys the trace that begins at `from` and ends before another one, or at `count`. */
static void npuprof_expand_survey_to_(const uint8_t *image, size_t count, size_t from,
                                      npuprof_expand_section_ *s)
{
    npuprof_parts_item_ item;
    uint64_t begins = count;
    memset(s, 0, sizeof *s);
    s->from = from;
    s->to = s->first_header = count;
    for (size_t at = from; npuprof_parts_next_(image, s->to, true, &at, &item); at += item.bytes) {
        if (item.is_header && !npuprof_line_take_header_(&s->line, &item, at, &begins)) {
            s->to = (size_t)begins;
            break;
        }
        if (item.is_header && at < s->first_header) {
            s->first_header = at;
            s->header_bytes = item.bytes;
        }
        if (!item.is_header) npuprof_line_take_part_(&s->line, &item, at);
        s->parts += !item.is_header;
        s->cells += item.is_header ? 0 : item.part.count;
        s->last_end = at + item.bytes;
        s->ends_with_header = item.is_header;
    }
    if (!s->line.has_header) s->first_header = s->to;
}

/* Surveys the trace that begins at `from`. */
static void npuprof_expand_survey_(const uint8_t *image, size_t count, size_t from,
                                   npuprof_expand_section_ *s)
{
    npuprof_expand_survey_to_(image, count, from, s);
    /* Why again: parts of the next trace came before the header that told. */
    if (s->to < s->last_end) npuprof_expand_survey_to_(image, s->to, from, s);
}

/* A part in a list of them. */
typedef struct npuprof_expand_part_ {
    uint64_t offset;               /* in the image */
    size_t head_bytes;             /* in front of its cells */
    uint64_t ticks;                /* the stamp that the header before it says */
    uint32_t first, names;         /* first: counted from the section's first cell */
    uint16_t count, lead;
} npuprof_expand_part_;

static bool npuprof_expand_part_before_(const void *a, const void *b)
{
    const npuprof_expand_part_ *const p = (const npuprof_expand_part_ *)a;
    const npuprof_expand_part_ *const q = (const npuprof_expand_part_ *)b;
    return p->first != q->first ? p->first < q->first : p->offset < q->offset;
}

/* The stamp that a header says, which follows `before`: 48 bits without the low ones. */
static uint64_t npuprof_expand_header_ticks_(const npuprof_compact_header_ *c, uint64_t before)
{
    const unsigned low = c->clock_bits >= 24 ? 16 : c->clock_bits / 2;
    const uint64_t distance = (((uint64_t)c->clock << low) - before) << 16;
    if (!npuprof_expand_is_ring_(c) || !c->clock || distance >> 63) return before;
    return before + (distance >> 16);
}

/* Lists the section's parts in the order of their cells, as *line takes them; returns how many. */
static size_t npuprof_expand_list_parts_(const npuprof_expand_section_ *s, const uint8_t *image,
                                         npuprof_line_ *line, npuprof_expand_part_ *list)
{
    npuprof_parts_item_ item;
    uint64_t ticks = s->line.start, begins;
    size_t n = 0;
    bool sorted = true;
    memset(line, 0, sizeof *line);
    for (size_t at = s->from; npuprof_parts_next_(image, s->to, true, &at, &item); at += item.bytes) {
        if (item.is_header && npuprof_line_take_header_(line, &item, at, &begins))
            ticks = npuprof_expand_header_ticks_(&item.c, ticks);
        if (item.is_header || item.swap != s->line.swap) continue;
        if (!npuprof_line_take_part_(line, &item, at)) continue;
        /* Why from the begin that the whole section has: cells in front of the first ones may come late. */
        const npuprof_expand_part_ part = { at, item.head_bytes, ticks, item.part.first - s->line.begin,
                                            item.part.names, item.part.count, item.part.lead };
        sorted = sorted && (!n || npuprof_expand_part_before_(&list[n - 1], &part));
        list[n++] = part;
    }
    npuprof_line_finish_(line);
    if (!sorted) npuprof_heap_sort_(list, sizeof *list, n, npuprof_expand_part_before_);
    return n;
}

/* Takes a part's cells: not those that are there already, and not the end of a record whose beginning is
   missing. expected: number of the first cell if nothing is. */
static void npuprof_expand_take_part_(npuprof_expand_cells_ *g, const npuprof_expand_part_ *part,
                                      const uint8_t *image, uint32_t expected, uint8_t *cells)
{
    const uint32_t there = part->first < expected ? expected - part->first : 0;
    const uint32_t again = there < part->count ? there : part->count;
    const uint32_t skip = !g->run_count || part->first > expected ? part->lead : again;
    const size_t offset = (size_t)part->offset + part->head_bytes + skip * sizeof(npuprof_cell_);
    npuprof_expand_run_ *const run = npuprof_expand_add_run_(g, offset, again ? 0 : part->names);
    run->missing = part->first > expected ? part->first - expected : 0;
    if (g->run_count == 1) run->missing += g->missing_before;
    run->ticks = part->ticks;
    memcpy(cells + (size_t)g->count * sizeof(npuprof_cell_), image + offset,
           (part->count - skip) * sizeof(npuprof_cell_));
    for (uint32_t i = skip; i < part->count; i++) g->number[g->count++] = part->first + i;
}

/* Where a part of a stream begins behind the last whole one: it is cut off or damaged. s->to: none does. */
static size_t npuprof_expand_tail_(const npuprof_expand_section_ *s, const uint8_t *image)
{
    npuprof_parts_item_ item;
    size_t end = s->from;
    for (size_t at = end; npuprof_parts_next_(image, s->to, true, &at, &item); at += item.bytes)
        end = at + item.bytes;
    return end + npuprof_parts_mark_in_(image + end, s->to - end);
}

/* Notes the damage at the section's end. behind: the offset behind the last part. */
static void npuprof_expand_check_end_(npuprof_expand_cells_ *g, const npuprof_expand_section_ *s,
                                      const uint8_t *image, size_t count, uint64_t behind)
{
    const bool may_end = s->line.is_stream && s->to == count && !npuprof_expand_goes_on_;
    const size_t tail = may_end ? npuprof_expand_tail_(s, image) : count;
    const npuprof_line_ *const l = &s->line;
    if (l->strange)
        npuprof_load_note_damage_(l->strange_at, "parts of a trace whose headers are all missing");
    g->missing_behind = g->line.end - l->end;
    if (g->missing_behind || (!l->parts && !l->is_image && l->c.used))
        npuprof_load_note_damage_(behind, behind == count ? "the file is cut off" : "a damaged part");
    else if (tail < count)
        npuprof_load_note_damage_(tail, "the last part is cut off or damaged");
    else if (!l->is_stream && (l->headers < 2 || !s->ends_with_header))
        npuprof_load_note_damage_(behind, "the end of the image is missing or damaged");
}

/* PARTS: takes the cells of all whole parts of a section. What is missing is damage, at the place where it
   should be. list: space for the parts; cells: for their cells. */
static void npuprof_expand_gather_parts_(npuprof_expand_cells_ *g, const uint8_t *image, size_t count,
                                         const npuprof_expand_section_ *s, npuprof_expand_part_ *list,
                                         uint8_t *cells)
{
    const size_t parts = npuprof_expand_list_parts_(s, image, &g->line, list);
    uint32_t expected = 0;
    uint64_t behind = s->first_header + s->header_bytes;
    g->missing_before = parts && !npuprof_expand_is_continued_ ? npuprof_line_before_(&g->line) : 0;
    if (g->missing_before) npuprof_load_note_damage_(s->from, "the beginning of the stream is missing");
    if (parts && !s->line.is_stream && list[0].offset < s->first_header) {
        npuprof_load_note_damage_(s->from, "a damaged header");
        behind = s->from;
    }
    for (const npuprof_expand_part_ *part = list; part < list + parts; part++) {
        if (part->first > expected) npuprof_load_note_damage_(behind, "a damaged part");
        npuprof_expand_take_part_(g, part, image, expected, cells);
        if (part->first + part->count > expected) expected = part->first + part->count;
        behind = part->offset + part->head_bytes + part->count * sizeof(npuprof_cell_);
    }
    npuprof_expand_check_end_(g, s, image, count, behind);
    g->cells = cells;
}

/* COMPACT: the cells lie behind the header, `capacity` of them in the file. They can be checked for nothing
   but that. */
static void npuprof_expand_gather_memory_(npuprof_expand_cells_ *g, const uint8_t *image, size_t count,
                                          size_t header, uint32_t capacity, uint8_t *cells)
{
    const uint32_t total = npuprof_expand_cell_count_(&g->c);
    /* An index beyond the cells: the oldest one is not known. */
    const uint32_t newest = g->c.used & NPUPROF_RING_INDEX_;
    const uint32_t oldest = npuprof_expand_is_ring_(&g->c) && newest < total ? newest : 0;
    const uint64_t first = (uint64_t)g->c.first_high << 32 | g->c.first_low;
    if (capacity < total) npuprof_load_note_damage_(count, "the file is cut off");
    for (int half = 0; half < 2; half++) {
        const uint32_t from = half ? 0 : (uint32_t)npuprof_min_(oldest, capacity);
        const uint32_t to = half ? (uint32_t)npuprof_min_(oldest, capacity) : capacity;
        const uint64_t offset = header + sizeof g->c + (uint64_t)from * sizeof(npuprof_cell_);
        if (from == to) continue;
        npuprof_expand_add_run_(g, offset, 0)->ticks = npuprof_expand_header_ticks_(&g->c, first);
        memcpy(cells + (size_t)g->count * sizeof(npuprof_cell_), image + offset,
               (size_t)(to - from) * sizeof(npuprof_cell_));
        for (uint32_t i = from; i < to; i++, g->count++) g->number[g->count] = (i - oldest + total) % total;
    }
    g->cells = cells;
}

/* Are this cell and the count - 1 cells behind it there, with nothing missing between them? */
static bool npuprof_expand_are_adjacent_(const npuprof_expand_cells_ *g, uint64_t cell, uint64_t count)
{
    return cell + count <= g->count && g->number[cell + count - 1] - g->number[cell] == count - 1;
}

/* The cell that had this number on the target. False: it is not there. */
static bool npuprof_expand_find_cell_(const npuprof_expand_cells_ *g, uint32_t number, uint32_t *cell)
{
    uint32_t from = 0, to = g->count;
    while (to - from > 1) {
        const uint32_t middle = from + (to - from) / 2;
        if (g->number[middle] <= number) from = middle;
        else to = middle;
    }
    *cell = from;
    return g->count && g->number[from] == number;
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

/* An image that find.h has found. */
typedef struct npuprof_load_found_ {
    size_t at;                             /* offset of its header */
    uint32_t layout;                       /* NPUPROF_LAYOUT_*; 0: there is no image */
    npuprof_compact_header_ header;        /* of a firmware's image, in our byte order */
    bool swap;                             /* a firmware's image has the other byte order */
} npuprof_load_found_;

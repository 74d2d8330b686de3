#pragma once   /* SPDX-License-Identifier: MIT */
#include "check.h"

/* What there is of an image's cells, in order, wherever they come from. */
typedef struct npuprof_expand_run_ { uint32_t start, names; uint64_t offset; } npuprof_expand_run_;   /* cells from start on: where they lie in the file */
typedef struct npuprof_expand_cells_ {
    npuprof_compact_header_ c;
    bool swap;
    const uint8_t *cells;
    uint32_t count, stretch_count;
    uint32_t *number;              /* that each cell has on the target */
    npuprof_expand_run_ *stretches;
} npuprof_expand_cells_;

static uint32_t npuprof_expand_word_at_(const uint8_t *p, bool swap)
{
    uint32_t v;
    memcpy(&v, p, 4);
    if (swap) npuprof_load_swap32_(&v, 1);
    return v;
}
/* Reads the header at p; what is wrong with it, or NULL. */
static const char *npuprof_expand_header_fault_(const uint8_t *p, size_t count, npuprof_compact_header_ *c, bool *swap)
{
    if (count < sizeof *c) return "shorter than a header";
    memcpy(c, p, sizeof *c);
    *swap = c->endian == 0x04030201u;
    if (*swap) {
        npuprof_load_swap32_(&c->endian, 4);
        npuprof_load_swap32_(&c->cells, (sizeof *c - offsetof(npuprof_compact_header_, cells)) / 4);
    }
    const uint32_t crc = c->layout == NPUPROF_LAYOUT_PARTS ? ~npuprof_crc_add_(UINT32_MAX, p, sizeof *c - 4) : 0;
    const uint64_t hz = (uint64_t)c->hz_high << 32 | c->hz_low;
    if (memcmp(p, "NPUPROF\n", 8) != 0 || c->endian != 0x01020304u || c->format != 1 || c->header_bytes != sizeof *c || c->crc != crc ||
        c->context_bits > 8 || c->clock_bits < 8 || c->clock_bits > 64 || !hz || hz > UINT64_C(1000000000000000) ||
        !c->cells || c->cells > UINT32_MAX / 16 ||
        (c->pointer_bytes != 2 && c->pointer_bytes != 4 && c->pointer_bytes != 8)) return "a damaged header";
    return NULL;
}
/* Is there a whole part at p? Its bytes; 0: no. */
static size_t npuprof_expand_part_at_(const npuprof_expand_cells_ *g, const uint8_t *p, size_t room, npuprof_part_head_ *part)
{
    if (room < sizeof *part || npuprof_expand_word_at_(p, g->swap) != NPUPROF_PART_MARK_) return 0;
    memcpy(part, p, sizeof *part);
    if (g->swap) {
        npuprof_load_swap32_(part, sizeof *part / 4);
        const uint16_t count = part->lead;                   /* two halves of one word */
        part->lead = part->count;
        part->count = count;
    }
    const size_t cells = (size_t)part->count * sizeof(npuprof_cell_);
    if (!part->count || part->count > NPUPROF_PART_CELLS_ || part->lead > part->count || cells > room - sizeof *part) return 0;
    if (part->crc != ~npuprof_crc_add_(npuprof_crc_add_(UINT32_MAX, p, sizeof *part - 4), p + sizeof *part, cells)) return 0;
    return sizeof *part + cells;
}
static void npuprof_expand_add_run_(npuprof_expand_cells_ *g, uint64_t offset, uint32_t names)
{
    g->stretches[g->stretch_count].start = g->count;
    g->stretches[g->stretch_count].offset = offset;
    g->stretches[g->stretch_count++].names = names;
}
/* Takes the cells of all whole parts into `cells`; room: so many fit. What is missing is damage, at the place where it should be.
   header: where the first header that is whole lies: at the begin, or, if that one is damaged, behind the parts. */
static void npuprof_expand_gather_parts_(npuprof_expand_cells_ *g, const uint8_t *image, size_t count, size_t header, uint8_t *cells, uint32_t room)
{
    npuprof_part_head_ part;
    npuprof_compact_header_ again;
    uint32_t expected = 0;
    size_t behind = header + sizeof again, size;
    bool swap, ends = false;
    for (size_t at = 0; at + sizeof part <= count; at += size ? size : 1) {
        size = npuprof_expand_part_at_(g, image + at, count - at, &part);
        /* Why the stretches: a part may hold nothing but the end of a record that is missing. */
        if (!size || part.first < expected || (uint64_t)part.first + part.count > g->c.used || g->count + part.count > room || g->stretch_count > room) {
            size = 0;
            continue;
        }
        if (!g->stretch_count && at < header) {
            npuprof_load_note_damage_(0, "a damaged header");
            behind = 0;
        }
        const bool gap = part.first != expected;
        const uint32_t lead = gap ? part.lead : 0;           /* the end of a record whose begin is not there */
        if (gap) npuprof_load_note_damage_(behind, "a damaged part");
        npuprof_expand_add_run_(g, at + sizeof part + (uint64_t)lead * sizeof(npuprof_cell_), part.names);
        memcpy(cells + (size_t)g->count * sizeof(npuprof_cell_), image + at + sizeof part + lead * sizeof(npuprof_cell_), (part.count - lead) * sizeof(npuprof_cell_));
        for (uint32_t i = lead; i < part.count; i++) g->number[g->count++] = part.first + i;
        expected = part.first + part.count;
        behind = at + size;
    }
    for (size_t at = behind; at + sizeof again <= count && !ends; at++)
        ends = image[at] == 'N' && npuprof_expand_header_fault_(image + at, count - at, &again, &swap) == NULL;
    if (expected != g->c.used) npuprof_load_note_damage_(behind, behind == count ? "the file is cut off" : "a damaged part");
    else if (!ends) npuprof_load_note_damage_(behind, "the end of the image is missing or damaged");
    g->cells = cells;
}
/* The same of an arena in memory. Nothing there can be checked but that it is all there. */
static void npuprof_expand_gather_memory_(npuprof_expand_cells_ *g, const uint8_t *image, size_t count, size_t header, uint32_t room)
{
    if (room < npuprof_min_(g->c.used, g->c.cells)) npuprof_load_note_damage_(count, "the file is cut off");
    g->cells = image + header + sizeof g->c;
    npuprof_expand_add_run_(g, header + sizeof g->c, 0);
    for (; g->count < room; g->count++) g->number[g->count] = g->count;
}

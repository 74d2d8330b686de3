#pragma once   /* SPDX-License-Identifier: MIT */
#include "expander.h"

/* Cells and fields: what one cell says, where the next one is, and what cannot be. A number of the image is
   never trusted: a field that is not there in full counts as not there, and `broken` says so. */

static uint32_t npuprof_expand_cell_word_(const npuprof_expander_ *x, uint32_t cell, unsigned word)
{
    return npuprof_expand_word_at_(x->g->cells + (size_t)cell * 16 + word * 4, x->g->swap);
}

/* One of the two halves of a cell's last word. */
static uint32_t npuprof_expand_cell_half_(const npuprof_expander_ *x, uint32_t cell, unsigned half)
{
    uint16_t v;
    memcpy(&v, x->g->cells + (size_t)cell * 16 + 12 + half * 2, 2);
    return x->g->swap ? npuprof_load_swap16_(v) : v;
}

static uint32_t npuprof_expand_field_type_(const npuprof_expander_ *x, uint32_t field)
{
    return npuprof_expand_cell_word_(x, field, 1) & 0xFF;
}

static uint32_t npuprof_expand_field_length_(const npuprof_expander_ *x, uint32_t field)
{
    const uint32_t mask = npuprof_expand_is_ring_(&x->g->c) ? 0xFFFu : 0x7FFFFFu;
    return npuprof_expand_cell_word_(x, field, 1) >> 8 & mask;
}

/* How many cells a record in a RING has: its first field says. */
static uint32_t npuprof_expand_ring_length_(const npuprof_expander_ *x, uint32_t cell)
{
    const bool has_fields = npuprof_expand_cell_word_(x, cell, 0) & 1;
    if (!has_fields || !npuprof_expand_are_adjacent_(x->g, cell, 2)) return 1;
    const uint32_t count = npuprof_expand_cell_word_(x, cell + 1, 1) >> 20 & 0x7FF;
    return count ? count : 1;
}

/* Is there no record at this cell, or none any more, or none yet? */
static bool npuprof_expand_is_empty_(const npuprof_expander_ *x, uint32_t cell)
{
    const uint32_t ref = npuprof_expand_cell_word_(x, cell, 0), half = npuprof_expand_cell_half_(x, cell, 1);
    const bool is_claimed = half & NPUPROF_CELL_OPEN_ && half & NPUPROF_CELL_CLAIMED_;
    return !ref || (ref & ~1u) == NPUPROF_CELL_CLEARED_ || (npuprof_expand_is_ring_(&x->g->c) && is_claimed);
}

static const char *npuprof_expand_field_text_(const npuprof_expander_ *x, uint32_t field)
{
    return (const char *)x->g->cells + (size_t)field * 16 + 8;
}

static uint64_t npuprof_expand_field_value_(const npuprof_expander_ *x, uint32_t field)
{
    return (uint64_t)npuprof_expand_cell_word_(x, field, 3) << 32 | npuprof_expand_cell_word_(x, field, 2);
}

/* How many cells a field takes. */
static uint32_t npuprof_expand_field_cells_(const npuprof_expander_ *x, uint32_t field)
{
    return 1 + (npuprof_expand_field_length_(x, field) + 7) / 16;
}

/* Can the cell be a field? */
static bool npuprof_expand_is_field_(const npuprof_expander_ *x, uint32_t cell)
{
    const uint32_t key = npuprof_expand_cell_word_(x, cell, 0), type = npuprof_expand_field_type_(x, cell);
    const bool is_text = type >= NPUPROF_ARG_STR && type < NPUPROF_FIELD_VALUE_ &&
                         type != NPUPROF_ARG_STR_NULL_;
    const bool is_own = type >= NPUPROF_FIELD_NAME_ && type != NPUPROF_FIELD_RESULT_;      /* has no key */
    if (!type || type > NPUPROF_FIELD_WORD_) return false;
    return npuprof_expand_field_length_(x, cell) <= (is_text ? 1024u : 0u) && !key == is_own;
}

/* The field behind a record's cell (is_head), or behind another field. UINT32_MAX: there is none; *broken
   (may be NULL) is set if there should be one. */
static uint32_t npuprof_expand_next_field_(const npuprof_expander_ *x, uint32_t cell, bool is_head,
                                           bool *broken)
{
    const uint32_t own = is_head ? 1 : npuprof_expand_field_cells_(x, cell);
    const uint32_t more = is_head ? npuprof_expand_cell_word_(x, cell, 0) & 1
                                  : npuprof_expand_cell_word_(x, cell, 1) & NPUPROF_FIELD_MORE_;
    const uint64_t next = (uint64_t)cell + own;
    if (!more) return UINT32_MAX;
    if (npuprof_expand_are_adjacent_(x->g, cell, (uint64_t)own + 1) &&
        npuprof_expand_is_field_(x, (uint32_t)next) &&
        npuprof_expand_are_adjacent_(x->g, next, npuprof_expand_field_cells_(x, (uint32_t)next)))
        return (uint32_t)next;
    if (broken) *broken = true;
    return UINT32_MAX;
}

/* All fields of the record at a cell, one after the other. */
#define NPUPROF_EXPAND_EACH_FIELD_(x, f, cell)                                                        \
    for (uint32_t f = npuprof_expand_next_field_(x, cell, true, NULL); f != UINT32_MAX;               \
         f = npuprof_expand_next_field_(x, f, false, NULL))

/* The cell behind a record. *broken is set if fields are missing. */
static uint32_t npuprof_expand_cell_after_(const npuprof_expander_ *x, uint32_t cell, bool *broken)
{
    const uint32_t cells = npuprof_expand_cell_word_(x, cell, 2);
    uint32_t next = cell + 1;
    if (npuprof_expand_is_ring_(&x->g->c) && npuprof_expand_is_empty_(x, cell)) {
        const uint32_t length = npuprof_expand_ring_length_(x, cell);
        return npuprof_expand_are_adjacent_(x->g, cell, length) ? cell + length : next;
    }
    /* A record that is not finished says how many cells it has. */
    if (!npuprof_expand_cell_word_(x, cell, 0))
        return cells < 65536 && cells && npuprof_expand_are_adjacent_(x->g, cell, cells) ? cell + cells
                                                                                         : next;
    for (uint32_t f = npuprof_expand_next_field_(x, cell, true, broken); f != UINT32_MAX;
         f = npuprof_expand_next_field_(x, f, false, broken))
        next = f + npuprof_expand_field_cells_(x, f);
    return next;
}

/* A call site in the target's memory: addresses of its texts. */
typedef struct npuprof_expand_site_ {
    uint64_t name, category, file;         /* file: 0 if there is none */
    uint32_t line;
    uint8_t kind;
} npuprof_expand_site_;

/* File and line, if the call site has them: older programs have zeros in the place of the line, and no
   file. */
static void npuprof_expand_read_source_(const npuprof_expander_ *x, const uint8_t *site, uint64_t left,
                                        npuprof_expand_site_ *out)
{
    const uint32_t p = x->pointer_bytes;
    const uint8_t *const line = site + 2 * p + 1;
    size_t length = 0;
    const uint32_t at = (2 * p + 4 + p - 1) / p * p;
    out->file = 0;
    out->line = 0;
    if (left < at + p) return;
    const uint32_t number = line[0] | (uint32_t)line[1] << 8 | (uint32_t)line[2] << 16;
    const uint64_t file = number ? npuprof_elf_number_(x->elf, site + at, p) : 0;
    if (!file || !npuprof_elf_text_at_(x->elf, file, &length) || !length) return;
    out->file = file;
    out->line = number;
}

/* The call site at an address of the target. False: there is none. */
static bool npuprof_expand_site_at_(const npuprof_expander_ *x, uint64_t address, npuprof_expand_site_ *out)
{
    const npuprof_elf_ *const elf = x->elf;
    const uint32_t p = x->pointer_bytes;
    uint64_t left;
    size_t length = 0;
    const uint8_t *const site = npuprof_elf_bytes_at_(elf, address, &left);
    if (!site || left <= 2 * p || !npuprof_elf_may_be_site_(elf, address)) return false;
    out->name = npuprof_elf_number_(elf, site, p);
    out->category = npuprof_elf_number_(elf, site + p, p);
    out->kind = site[2 * p];
    npuprof_expand_read_source_(x, site, left, out);
    return out->kind && out->kind < NPUPROF_KIND_COUNT && npuprof_elf_text_at_(elf, out->name, &length) &&
           (!out->category || npuprof_elf_text_at_(elf, out->category, &length));
}

/* The same for the reference of a record. False, too: it refers to no call site. */
static bool npuprof_expand_site_of_(const npuprof_expander_ *x, uint32_t ref, npuprof_expand_site_ *out)
{
    return !(ref & 2) &&
        npuprof_expand_site_at_(x, npuprof_expand_target_address_(x, ref & ~(uint32_t)3), out);
}

/* Goes on with the CRC over the names of a record, as the target computed it: see npuprof_part_head_. */
static uint32_t npuprof_expand_crc_names_(const npuprof_expander_ *x, uint32_t cell, uint32_t crc)
{
    const uint32_t ref = npuprof_expand_cell_word_(x, cell, 0);
    const char *text;
    size_t length = 0;
    npuprof_expand_site_ site = { 0, 0, 0, 0, 0 };
    if (npuprof_expand_is_empty_(x, cell)) return crc;
    if (!(ref & 2)) {
        if (!npuprof_expand_site_of_(x, ref, &site)) return ~crc;
        text = npuprof_elf_text_at_(x->elf, site.name, &length);
        crc = npuprof_crc_add_(crc, text, length + 1);
        text = site.category ? npuprof_elf_text_at_(x->elf, site.category, &length) : "";
        crc = npuprof_crc_add_(crc, text, site.category ? length + 1 : 1);
        crc = npuprof_crc_add_(crc, &site.kind, 1);
    }
    NPUPROF_EXPAND_EACH_FIELD_(x, f, cell) {
        const uint32_t key = npuprof_expand_cell_word_(x, f, 0);
        if (!key) continue;
        text = npuprof_elf_text_at_(x->elf, npuprof_expand_target_address_(x, key), &length);
        crc = text ? npuprof_crc_add_(crc, text, length + 1) : ~crc;
    }
    return crc;
}

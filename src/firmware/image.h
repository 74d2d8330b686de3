#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../public/api.h"
#include "../format/layouts.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"
#include "cells.h"
#include "policy.h"

/* npuprof_write_image(): the cells in parts of 16 with a checksum each, over any line (format/compact.h).
   Tasks may record meanwhile. Also the way from a cell to what the program's constants say of it. Reads cells
   only. */

#ifndef NPUPROF_NAMES_SECTION
/* An address of this build from its low 32 bits. */
static NPUPROF_NOINLINE_ const void *npuprof_fw_address_of_(uint32_t low)
{
    static const char here = 0;
    /* Why: the constants of a program lie together, but maybe on both sides of a multiple of 2^32. */
    const int32_t distance = (int32_t)(low - (uint32_t)(uintptr_t)&here);
    if (sizeof(void *) > 4) return (const void *)((uintptr_t)&here + (uintptr_t)distance);
    return (const void *)(uintptr_t)low;
}

static const npuprof_site_ *npuprof_fw_site_of_(const npuprof_cell_ *head)
{
    return (const npuprof_site_ *)npuprof_fw_address_of_(head->ref & ~(uint32_t)3);
}

static uint32_t npuprof_fw_crc_text_(uint32_t crc, const char *text)
{
    return npuprof_crc_add_(crc, text, (size_t)npuprof_fw_text_length_(text) + 1);
}

/* Adds to a CRC what the ELF file says of a record: with it the host finds out whether it has the right file.
   */
static uint32_t npuprof_fw_crc_names_(uint32_t crc, const npuprof_cell_ *head)
{
    const npuprof_cell_ *end;
    if (!npuprof_fw_is_there_(head)) return crc;
    if (!(head->ref & 2)) {
        const npuprof_site_ *site = npuprof_fw_site_of_(head);
        crc = npuprof_fw_crc_text_(crc, site->name);
        crc = npuprof_fw_crc_text_(crc, site->category ? site->category : "");
        crc = npuprof_crc_add_(crc, &site->kind, 1);
    }
    const npuprof_cell_ *f = npuprof_fw_next_field_(head, true, &end);
    for (; f; f = npuprof_fw_next_field_(f, false, &end))
        if (f->ref) crc = npuprof_fw_crc_text_(crc, (const char *)npuprof_fw_address_of_(f->ref));
    return crc;
}

#else /* NPUPROF_NAMES_SECTION: the target does not have the names */

static uint32_t npuprof_fw_crc_names_(uint32_t crc, const npuprof_cell_ *head)
{
    (void)head;
    return crc;
}

#endif /* NPUPROF_NAMES_SECTION */

/* Why with interrupts masked, and in this order: a record that is made meanwhile, or a span that ends, is
   then there either before or after. */
static void npuprof_fw_copy_cell_(npuprof_cell_ *to, const npuprof_cell_ *from)
{
    NPUPROF_MASKED_BEGIN_
    to->end = NPUPROF_LOAD_(&from->end);
    to->ref = NPUPROF_LOAD_(&from->ref);
    to->high.word = NPUPROF_LOAD_(&from->high.word);
    to->start = NPUPROF_LOAD_(&from->start);
    if (!NPUPROF_MASKS_ && to->ref) to->end = NPUPROF_LOAD_(&from->end);
    NPUPROF_MASKED_END_
}

static int npuprof_fw_write_header_(npuprof_sink sink, uint32_t used)
{
    npuprof_compact_header_ h;
    npuprof_fw_copy_bytes_((uint8_t *)&h, npuprof_fw_arena_, sizeof h);
    h.layout = NPUPROF_LAYOUT_PARTS;
    npuprof_fw_set_image_words_(&h, used);
    h.crc = ~npuprof_crc_add_(UINT32_MAX, &h, sizeof h - sizeof h.crc);
    return sink.write(sink.user, &h, sizeof h);
}

/* The cell with that number in an image. */
static const npuprof_cell_ *npuprof_fw_numbered_(uint32_t number)
{
    const npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint32_t left = c->cells - npuprof_fw_oldest_;
    return npuprof_fw_cells_(c) + (number < left ? npuprof_fw_oldest_ + number : number - left);
}

/* Copies the cells from *at on into a part. *next: the first cell after *at that begins a record. */
static uint32_t npuprof_fw_fill_part_(npuprof_part_head_ *head, npuprof_cell_ *to, uint32_t *at,
                                      uint32_t *next, uint32_t used)
{
    const uint32_t lead = *next - *at;
    uint32_t names = UINT32_MAX, n = 0;
    head->mark = NPUPROF_PART_MARK_;
    head->first = *at;
    for (; n < NPUPROF_PART_CELLS_ && *at < used; n++, (*at)++) {
        const npuprof_cell_ *const cell = npuprof_fw_numbered_(*at);
        npuprof_fw_copy_cell_(&to[n], cell);
        if (*at != *next) continue;
        if (to[n].ref) {
            *next += (uint32_t)(npuprof_fw_after_record_(cell) - cell);
            names = npuprof_fw_crc_names_(names, cell);
        } else {
            *next += to[n].end ? to[n].end : 1;
        }
    }
    head->lead = (uint16_t)(lead < n ? lead : n);
    head->count = (uint16_t)n;
    head->names = ~names;
    return n;
}

NPUPROF_API_ npuprof_result npuprof_write_image(npuprof_sink sink)
{
    struct { npuprof_part_head_ head; npuprof_cell_ cells[NPUPROF_PART_CELLS_]; } part;
    const uint32_t used = npuprof_fw_used_cells_(npuprof_fw_arena_);
    if (!sink.write || !npuprof_fw_arena_->cells) return NPUPROF_ERR_ARGUMENT;
    if (!NPUPROF_FW_CAN_WRITE_) return NPUPROF_ERR_UNSUPPORTED;
    if (!npuprof_fw_hold_(npuprof_fw_arena_)) return NPUPROF_ERR_BUSY;
    int error = npuprof_fw_write_header_(sink, used);
    for (uint32_t at = 0, next = 0; at < used && !error;) {
        const uint32_t n = npuprof_fw_fill_part_(&part.head, part.cells, &at, &next, used);
        const size_t bytes = (size_t)n * sizeof *part.cells;
        const uint32_t crc = npuprof_crc_add_(UINT32_MAX, &part, sizeof part.head - sizeof part.head.crc);
        part.head.crc = ~npuprof_crc_add_(crc, part.cells, bytes);
        error = sink.write(sink.user, &part, sizeof part.head + bytes);
    }
    if (!error) error = npuprof_fw_write_header_(sink, used);
    npuprof_fw_let_go_(npuprof_fw_arena_);
    return error ? NPUPROF_ERR_IO : NPUPROF_OK;
}

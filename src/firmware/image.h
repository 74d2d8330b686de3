#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/layouts.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "record.h"
#include "event.h"
#include "control.h"

#ifndef NPUPROF_NAMES_SECTION
/* An address of this build from its low 32 bits. */
static NPUPROF_NOINLINE_ const void *npuprof_fw_address_of_(uint32_t low)
{
    static const char here = 0;
    /* Why: the constants of a program lie together, but maybe on both sides of a multiple of 2^32. */
    if (sizeof(void *) > 4) return (const void *)((uintptr_t)&here + (uintptr_t)(intptr_t)(int32_t)(low - (uint32_t)(uintptr_t)&here));
    return (const void *)(uintptr_t)low;
}
static const npuprof_site_ *npuprof_fw_site_of_(const npuprof_cell_ *head)
{
    return (const npuprof_site_ *)npuprof_fw_address_of_(head->ref & ~(uint32_t)3);
}

/* ---- The image, in parts */

static uint32_t npuprof_fw_crc_text_(uint32_t crc, const char *text) { return npuprof_crc_add_(crc, text, (size_t)npuprof_fw_text_length_(text) + 1); }
/* The CRC goes on over what the ELF file has to say of a record. */
static uint32_t npuprof_fw_crc_names_(uint32_t crc, const npuprof_cell_ *head)
{
    const npuprof_cell_ *end;
    if (!head->ref) return crc;
    if (!(head->ref & 2)) {
        const npuprof_site_ *site = npuprof_fw_site_of_(head);
        crc = npuprof_fw_crc_text_(crc, site->name);
        crc = npuprof_fw_crc_text_(crc, site->category ? site->category : "");
        crc = npuprof_crc_add_(crc, &site->kind, 1);
    }
    for (const npuprof_cell_ *f = npuprof_fw_next_field_(head, true, &end); f; f = npuprof_fw_next_field_(f, false, &end))
        if (f->ref) crc = npuprof_fw_crc_text_(crc, (const char *)npuprof_fw_address_of_(f->ref));
    return crc;
}
#else
static uint32_t npuprof_fw_crc_names_(uint32_t crc, const npuprof_cell_ *head)
{
    (void)head;
    return crc;
}
#endif
/* Why in one go, and this order: a record that is made, or a span that ends, meanwhile is there before or after. */
static void npuprof_fw_copy_cell_(npuprof_cell_ *to, const npuprof_cell_ *from)
{
    NPUPROF_MASKED_BEGIN_
    to->end = NPUPROF_LOAD_(&from->end);
    to->ref = NPUPROF_LOAD_(&from->ref);
    to->high.word = NPUPROF_LOAD_(&from->high.word);
    to->start = NPUPROF_LOAD_(&from->start);
    if (to->ref) to->end = NPUPROF_LOAD_(&from->end);
    NPUPROF_MASKED_END_
}
static int npuprof_fw_write_header_(npuprof_sink sink, uint32_t used)
{
    npuprof_compact_header_ h;
    npuprof_fw_copy_bytes_((uint8_t *)&h, npuprof_fw_arena_, sizeof h);
    h.layout = NPUPROF_LAYOUT_PARTS;
    h.used = used;
    h.crc = ~npuprof_crc_add_(UINT32_MAX, &h, sizeof h - sizeof h.crc);
    return sink.write(sink.user, &h, sizeof h);
}
NPUPROF_API_ npuprof_result npuprof_write_image(npuprof_sink sink)
{
    struct { npuprof_part_head_ head; npuprof_cell_ cells[NPUPROF_PART_CELLS_]; } part;
    const npuprof_cell_ *const cells = npuprof_fw_cells_(npuprof_fw_arena_);
    const uint32_t used = npuprof_fw_used_cells_(npuprof_fw_arena_);
    if (!sink.write || !npuprof_fw_arena_->cells) return NPUPROF_ERR_ARGUMENT;
    int error = npuprof_fw_write_header_(sink, used);
    for (uint32_t at = 0, next = 0; at < used && !error;) {      /* next: where a record begins */
        uint32_t names = UINT32_MAX, n = 0;
        part.head.mark = NPUPROF_PART_MARK_;
        part.head.first = at;
        const uint32_t lead = next - at;
        for (; n < NPUPROF_PART_CELLS_ && at < used; n++, at++) {
            npuprof_fw_copy_cell_(&part.cells[n], &cells[at]);
            if (at != next) continue;
            const uint32_t count = part.cells[n].ref ? 0 : part.cells[n].end;
            next = count ? at + count : part.cells[n].ref ? (uint32_t)(npuprof_fw_after_record_(&cells[at]) - cells) : at + 1;
            if (part.cells[n].ref) names = npuprof_fw_crc_names_(names, &cells[at]);
        }
        part.head.lead = (uint16_t)(lead < n ? lead : n);
        part.head.count = (uint16_t)n;
        part.head.names = ~names;
        part.head.crc = ~npuprof_crc_add_(npuprof_crc_add_(UINT32_MAX, &part, sizeof part.head - 4), part.cells, (size_t)n * sizeof *part.cells);
        error = sink.write(sink.user, &part, sizeof part.head + (size_t)n * sizeof *part.cells);
    }
    if (!error) error = npuprof_fw_write_header_(sink, used);
    return error ? NPUPROF_ERR_IO : NPUPROF_OK;
}

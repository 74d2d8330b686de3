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
static NPUPROF_NOINLINE_ const void *npuprof_address_(uint32_t low)
{
    static const char here = 0;
    /* Why: the constants of a program lie together, but maybe on both sides of a multiple of 2^32. */
    if (sizeof(void *) > 4) return (const void *)((uintptr_t)&here + (uintptr_t)(intptr_t)(int32_t)(low - (uint32_t)(uintptr_t)&here));
    return (const void *)(uintptr_t)low;
}
static const npuprof_site_ *npuprof_site_of_(const npuprof_quad_ *head)
{
    return (const npuprof_site_ *)npuprof_address_(head->ref & ~(uint32_t)3);
}

/* ---- The image, in parts */

static uint32_t npuprof_text_crc_(uint32_t crc, const char *text) { return npuprof_crc_(crc, text, (size_t)npuprof_length_(text) + 1); }
/* The CRC goes on over what the ELF file has to say of a record. */
static uint32_t npuprof_names_crc_(uint32_t crc, const npuprof_quad_ *head)
{
    const npuprof_quad_ *end;
    if (!head->ref) return crc;
    if (!(head->ref & 2)) {
        const npuprof_site_ *site = npuprof_site_of_(head);
        crc = npuprof_text_crc_(crc, site->name);
        crc = npuprof_text_crc_(crc, site->category ? site->category : "");
        crc = npuprof_crc_(crc, &site->kind, 1);
    }
    for (const npuprof_quad_ *f = npuprof_next_field_(head, true, &end); f; f = npuprof_next_field_(f, false, &end))
        if (f->ref) crc = npuprof_text_crc_(crc, (const char *)npuprof_address_(f->ref));
    return crc;
}
#else
static uint32_t npuprof_names_crc_(uint32_t crc, const npuprof_quad_ *head)
{
    (void)head;
    return crc;
}
#endif
/* Why in one go, and this order: a record that is made, or a span that ends, meanwhile is there before or after. */
static void npuprof_copy_cell_(npuprof_quad_ *to, const npuprof_quad_ *from)
{
    NPUPROF_WHOLE_BEGIN_
    to->end = NPUPROF_LOAD_(&from->end);
    to->ref = NPUPROF_LOAD_(&from->ref);
    to->high.word = NPUPROF_LOAD_(&from->high.word);
    to->start = NPUPROF_LOAD_(&from->start);
    if (to->ref) to->end = NPUPROF_LOAD_(&from->end);
    NPUPROF_WHOLE_END_
}
static int npuprof_write_header_(npuprof_sink sink, uint32_t used)
{
    npuprof_compact_ h;
    npuprof_move_((uint8_t *)&h, npuprof_compact_at_, sizeof h);
    h.layout = NPUPROF_LAYOUT_PARTS;
    h.used = used;
    h.crc = ~npuprof_crc_(UINT32_MAX, &h, sizeof h - sizeof h.crc);
    return sink.write(sink.user, &h, sizeof h);
}
NPUPROF_API_ npuprof_result npuprof_write_image(npuprof_sink sink)
{
    struct { npuprof_part_ head; npuprof_quad_ cells[NPUPROF_PART_CELLS_]; } part;
    const npuprof_quad_ *const cells = npuprof_cells_(npuprof_compact_at_);
    const uint32_t used = npuprof_used_(npuprof_compact_at_);
    if (!sink.write || !npuprof_compact_at_->cells) return NPUPROF_ERR_ARGUMENT;
    int error = npuprof_write_header_(sink, used);
    for (uint32_t at = 0, next = 0; at < used && !error;) {      /* next: where a record begins */
        uint32_t names = UINT32_MAX, n = 0;
        part.head.mark = NPUPROF_PART_MARK_;
        part.head.first = at;
        const uint32_t lead = next - at;
        for (; n < NPUPROF_PART_CELLS_ && at < used; n++, at++) {
            npuprof_copy_cell_(&part.cells[n], &cells[at]);
            if (at != next) continue;
            const uint32_t count = part.cells[n].ref ? 0 : part.cells[n].end;
            next = count ? at + count : part.cells[n].ref ? (uint32_t)(npuprof_after_(&cells[at]) - cells) : at + 1;
            if (part.cells[n].ref) names = npuprof_names_crc_(names, &cells[at]);
        }
        part.head.lead = (uint16_t)(lead < n ? lead : n);
        part.head.count = (uint16_t)n;
        part.head.names = ~names;
        part.head.crc = ~npuprof_crc_(npuprof_crc_(UINT32_MAX, &part, sizeof part.head - 4), part.cells, (size_t)n * sizeof *part.cells);
        error = sink.write(sink.user, &part, sizeof part.head + (size_t)n * sizeof *part.cells);
    }
    if (!error) error = npuprof_write_header_(sink, used);
    return error ? NPUPROF_ERR_IO : NPUPROF_OK;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../public/hot.h"
#include "../numbers/time.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"

/* The hot path on firmware: a span of one cell. A token is the number of its cell, from 1; 0: not recorded.
   Owns the cells of open spans: who holds the token ends the span. May not know arguments. */

/* The upper bits of a stamp and the context, as a cell has them. */
static inline uint16_t npuprof_fw_high_half_(uint64_t now, uint32_t context)
{
    return (uint16_t)((uint32_t)(now >> 32) << NPUPROF_CONTEXT_BITS_ | context);
}

/* Begins a span. `ref` is stored last: until then the cell holds nothing. */
static inline npuprof_token_ npuprof_fw_begin_cell_(npuprof_compact_header_ *c, uint32_t ref, uint64_t now,
                                                    uint32_t context)
{
    const uint32_t at = npuprof_fw_reserve_cells_(c, 1, &c->lost);
    if (NPUPROF_UNLIKELY_(at == NPUPROF_FW_NO_CELL_)) return 0;
    /* Why not npuprof_fw_cells_(): so the header's size becomes part of the instructions. */
    npuprof_cell_ *cell = (npuprof_cell_ *)(uintptr_t)c + at;
    cell[NPUPROF_FW_HEADER_CELLS_].start = (uint32_t)now;
    cell[NPUPROF_FW_HEADER_CELLS_].high.half[0] = npuprof_fw_high_half_(now, context);
    cell[NPUPROF_FW_HEADER_CELLS_].high.half[1] = NPUPROF_CELL_OPEN_;
    NPUPROF_SIGNAL_FENCE_();
    NPUPROF_STORE_(&cell[NPUPROF_FW_HEADER_CELLS_].ref, ref);
    return at + 1;
}

/* The open span of that token, or NULL.
   Why it asks: a goto past a scope leaves garbage in its token, and garbage must not write anywhere. */
static inline npuprof_cell_ *npuprof_fw_open_cell_(const npuprof_compact_header_ *c, npuprof_token_ token)
{
    if (NPUPROF_UNLIKELY_(token > NPUPROF_FW_CELL_COUNT_())) return NULL;
    npuprof_cell_ *cell = (npuprof_cell_ *)(uintptr_t)c + token;
    const uint16_t end = NPUPROF_LOAD_(&cell[NPUPROF_FW_HEADER_CELLS_ - 1].high.half[1]);
    return NPUPROF_LIKELY_(end & NPUPROF_CELL_OPEN_) ? cell + (NPUPROF_FW_HEADER_CELLS_ - 1) : NULL;
}

NPUPROF_ALWAYS_INLINE_ void npuprof_fw_end_cell_(npuprof_compact_header_ *c, npuprof_token_ token,
                                                 uint64_t now)
{
    npuprof_cell_ *cell = (npuprof_cell_ *)(uintptr_t)c + token;
    if (NPUPROF_UNLIKELY_(!npuprof_fw_open_cell_(c, token))) return;
    const uint16_t end = (uint16_t)((uint32_t)(now >> 32) & 0x7FFF);
    NPUPROF_STORE_(&cell[NPUPROF_FW_HEADER_CELLS_ - 1].end, (uint32_t)now);
    NPUPROF_STORE_(&cell[NPUPROF_FW_HEADER_CELLS_ - 1].high.half[1], end);
}

NPUPROF_API_ npuprof_token_ npuprof_begin_(const npuprof_site_ *site)
{
    NPUPROF_MASKED_BEGIN_
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint64_t now = npuprof_fw_stamp_(c);
    const npuprof_token_ token =
        npuprof_fw_begin_cell_(c, (uint32_t)(uintptr_t)site, now, npuprof_fw_context_());
    NPUPROF_MASKED_END_
    return token;
}

NPUPROF_API_ void npuprof_close_(npuprof_token_ token)
{
    NPUPROF_MASKED_BEGIN_
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_fw_end_cell_(c, token, npuprof_fw_stamp_(c));
    NPUPROF_MASKED_END_
}

NPUPROF_API_ npuprof_token_ npuprof_next_(npuprof_token_ token, const npuprof_site_ *site)
{
    NPUPROF_MASKED_BEGIN_
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint64_t now = npuprof_fw_stamp_(c);
    npuprof_fw_end_cell_(c, token, now);
    token = NPUPROF_OPEN_(1)
        ? npuprof_fw_begin_cell_(c, (uint32_t)(uintptr_t)site, now, npuprof_fw_context_()) : 0;
    NPUPROF_MASKED_END_
    return token;
}

NPUPROF_API_ bool npuprof_is_open_(npuprof_token_ token)
{
    return npuprof_fw_open_cell_(npuprof_fw_arena_, token) != NULL;
}

NPUPROF_API_ void npuprof_wait_(const npuprof_device *device)
{
    if (device->wait) (void)device->wait(device->user);
}

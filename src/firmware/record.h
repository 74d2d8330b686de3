#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../public/hot.h"
#include "../numbers/time.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"
#include "cells.h"

/* The hot path on firmware: a span of one cell.
   Owns the cells of open spans: who holds the token ends the span. May not know arguments. */

/* The upper bits of a stamp and the context, as a cell has them. */
static inline uint16_t npuprof_fw_high_half_(uint64_t now, uint32_t context)
{
    return (uint16_t)((uint32_t)(now >> 32) << NPUPROF_CONTEXT_BITS_ | context);
}

/* Begins a span in the cell of that token. Its token, or 0. */
static inline npuprof_token_ npuprof_fw_begin_cell_(npuprof_compact_header_ *c, npuprof_token_ token,
                                                    uint32_t ref, uint64_t now, uint32_t context)
{
    if (NPUPROF_LIKELY_(token)) {
        npuprof_cell_ *const around = npuprof_fw_near_cell_(c, token);
        around[NPUPROF_FW_HEAD_].start = (uint32_t)now;
        around[NPUPROF_FW_HEAD_].high.half[0] = npuprof_fw_high_half_(now, context);
        npuprof_fw_publish_(&around[NPUPROF_FW_HEAD_], token, ref, true);
    }
    return npuprof_fw_tally_(c, token, &c->lost);
}

#if NPUPROF_WHEN_FULL == NPUPROF_STREAM

/* Ends a span that was sent while it was open: a record CLOSE, and its own cells are free. Why they are
   emptied first: else they could be sent again behind the end. */
static inline void npuprof_fw_close_sent_(npuprof_compact_header_ *c, npuprof_cell_ *cell, uint64_t now)
{
    const uint32_t mask = ((uint32_t)1 << NPUPROF_CONTEXT_BITS_) - 1;
    npuprof_os_store_(&cell->ref, (cell->ref & 1) + NPUPROF_CELL_CLEARED_);
    const npuprof_token_ token = npuprof_fw_take_(c, 1, &c->lost_notes);
    if (token) {
        npuprof_cell_ *const own = npuprof_fw_cell_(c, token);
        own->start = (uint32_t)now;
        own->end = cell->start;
        own->high.half[0] = (uint16_t)((uint32_t)(now >> 32) << NPUPROF_CONTEXT_BITS_ |
                                       (cell->high.half[0] & mask));
        npuprof_fw_publish_half_(own, (uint32_t)NPUPROF_CELL_KIND_CLOSE_ << 8 | 2,
                                 (uint32_t)cell->high.half[0] >> NPUPROF_CONTEXT_BITS_ & 0x7FFF);
    }
    (void)npuprof_fw_tally_(c, token, &c->lost_notes);
    npuprof_fw_store_half_(cell, 0);
}

/* Ends a span if half[1] of its cell is `was`. Returns what it was. */
static inline uint32_t npuprof_fw_end_if_(npuprof_cell_ *cell, uint32_t was, uint64_t now)
{
    const uint16_t end = (uint16_t)((uint32_t)(now >> 32) & 0x7FFF);
#if NPUPROF_MASKS_
    NPUPROF_MASKED_BEGIN_
    const uint32_t half = NPUPROF_LOAD_(&cell->high.half[1]);
    if (half == was) {
        NPUPROF_STORE_(&cell->end, (uint32_t)now);
        NPUPROF_STORE_(&cell->high.half[1], end);
    }
    NPUPROF_MASKED_END_
    return half;
#else
    npuprof_cell_ is, to;
    do {
        is.high.word = to.high.word = NPUPROF_LOAD_(&cell->high.word);
        if (is.high.half[1] != was) return is.high.half[1];
        NPUPROF_STORE_(&cell->end, (uint32_t)now);
        to.high.half[1] = end;
    } while (!npuprof_fw_replace_(&cell->high.word, is.high.word, to.high.word));
    return was;
#endif
}

static NPUPROF_NOINLINE_ void npuprof_fw_end_cell_(npuprof_compact_header_ *c, npuprof_token_ token,
                                                   uint64_t now)
{
    npuprof_cell_ *const cell = npuprof_fw_cell_(c, token);
    const uint32_t was = token >> NPUPROF_RING_LAP_SHIFT_;
    if (!(token & NPUPROF_RING_IS_)) return;
    if (NPUPROF_UNLIKELY_((token & NPUPROF_RING_INDEX_) >= NPUPROF_FW_CELL_COUNT_())) return;
    if (npuprof_fw_end_if_(cell, was, now) == (was | NPUPROF_CELL_SENT_))
        npuprof_fw_close_sent_(c, cell, now);
}

#else /* NPUPROF_WHEN_FULL is not NPUPROF_STREAM */

NPUPROF_ALWAYS_INLINE_ void npuprof_fw_end_cell_(npuprof_compact_header_ *c, npuprof_token_ token,
                                                 uint64_t now)
{
    npuprof_cell_ *const cell = npuprof_fw_open_cell_(c, token);
    const uint16_t end = (uint16_t)((uint32_t)(now >> 32) & 0x7FFF);
    if (NPUPROF_UNLIKELY_(!cell)) return;
#if NPUPROF_RING_
    NPUPROF_STORE_(&cell->end, (uint32_t)now);
    npuprof_fw_store_half_(cell, end);
#else
    npuprof_cell_ *const around = npuprof_fw_near_cell_(c, token);
    NPUPROF_STORE_(&around[NPUPROF_FW_HEAD_].end, (uint32_t)now);
    NPUPROF_STORE_(&around[NPUPROF_FW_HEAD_].high.half[1], end);
#endif
}
#endif /* NPUPROF_WHEN_FULL */

NPUPROF_API_ npuprof_token_ npuprof_begin_(const npuprof_site_ *site)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint32_t ref = (uint32_t)(uintptr_t)site;
    /* Why two orders: each is the shorter one there. */
#if NPUPROF_MASKS_ || NPUPROF_RING_
    const npuprof_token_ token = npuprof_fw_take_(c, 1, &c->lost);
    const uint64_t now = npuprof_fw_stamp_(c);
#else
    const uint64_t now = npuprof_fw_stamp_(c);
    const npuprof_token_ token = npuprof_fw_take_(c, 1, &c->lost);
#endif
    return npuprof_fw_begin_cell_(c, token, ref, now, npuprof_fw_context_());
}

NPUPROF_API_ void npuprof_close_(npuprof_token_ token)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_fw_end_cell_(c, token, npuprof_fw_stamp_(c));
}

NPUPROF_API_ npuprof_token_ npuprof_next_(npuprof_token_ token, const npuprof_site_ *site)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint64_t now = npuprof_fw_stamp_(c);
    npuprof_fw_end_cell_(c, token, now);
    if (!NPUPROF_OPEN_(1)) return 0;
    token = npuprof_fw_take_(c, 1, &c->lost);
    return npuprof_fw_begin_cell_(c, token, (uint32_t)(uintptr_t)site, now, npuprof_fw_context_());
}

NPUPROF_API_ bool npuprof_is_open_(npuprof_token_ token)
{
    return npuprof_fw_open_cell_(npuprof_fw_arena_, token) != NULL;
}

NPUPROF_API_ void npuprof_wait_(const npuprof_device *device)
{
    if (device->wait) (void)device->wait(device->user);
}

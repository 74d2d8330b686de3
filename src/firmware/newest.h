#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../public/api.h"
#include "../public/hot.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"
#include "cells.h"
#include "ring.h"

/* NPUPROF_KEEP_NEWEST: the ring runs for ever, and who reads it holds it meanwhile: then the index in
   header.used is beyond the cells, and what would be recorded is lost. What each function does is said in
   >>firmware/policy. */

#if NPUPROF_WHEN_FULL == NPUPROF_KEEP_NEWEST

#define NPUPROF_FW_CAUSE_ "overwritten"
enum { NPUPROF_FW_LOST_ = NPUPROF_LOST_OVERWRITTEN };

static inline bool npuprof_fw_may_pass_(const npuprof_compact_header_ *c, uint32_t next)
{
    (void)c;
    (void)next;
    return true;
}

static inline bool npuprof_fw_is_held_(uint32_t used)
{
    return (used & NPUPROF_RING_INDEX_) >= NPUPROF_FW_CELL_COUNT_();
}

static inline uint32_t npuprof_fw_tries_after_(uint32_t tries) { return tries - 1; }

static inline uint32_t npuprof_fw_half_of_(const npuprof_cell_ *cell)
{
    return NPUPROF_LOAD_(&cell->high.half[1]);
}

static inline uint32_t npuprof_fw_begin_trace_(npuprof_compact_header_ *c, uint32_t cells)
{
    return npuprof_fw_begin_ring_(c, cells);
}

/* header.lost counts all events, also those that are recorded. */
static inline uint32_t *npuprof_fw_events_(npuprof_compact_header_ *c) { return &c->lost; }

static inline npuprof_token_ npuprof_fw_tally_(npuprof_compact_header_ *c, npuprof_token_ token,
                                               uint32_t *lost)
{
    if (!token || lost == &c->lost) npuprof_fw_count_(lost);
    return token;
}

NPUPROF_ALWAYS_INLINE_ void npuprof_fw_end_found_(npuprof_cell_ *cell, uint64_t now)
{
    NPUPROF_STORE_(&cell->end, (uint32_t)now);
    npuprof_fw_store_half_(cell, npuprof_fw_end_half_(now));
}

NPUPROF_ALWAYS_INLINE_ void npuprof_fw_end_cell_(npuprof_compact_header_ *c, npuprof_token_ token,
                                                 uint64_t now)
{
    npuprof_cell_ *const cell = npuprof_fw_open_cell_(c, token);
    if (NPUPROF_LIKELY_(cell)) npuprof_fw_end_found_(cell, now);
}

static bool npuprof_fw_hold_(npuprof_compact_header_ *c)
{
    for (;;) {
        const uint32_t used = npuprof_os_load_(&c->used), at = used & NPUPROF_RING_INDEX_;
        if (at == NPUPROF_RING_INDEX_ || !c->cells) return false;
        if (!npuprof_fw_replace_(&c->used, used, used | NPUPROF_RING_INDEX_)) continue;
        npuprof_fw_oldest_ = at;
        return true;
    }
}

static void npuprof_fw_let_go_(npuprof_compact_header_ *c)
{
    npuprof_os_store_(&c->used, (c->used & ~NPUPROF_RING_INDEX_) | npuprof_fw_oldest_);
}

static inline uint32_t npuprof_fw_lost_of_(const npuprof_compact_header_ *c, uint64_t found)
{
    const uint32_t all = c->lost;
    return all > found ? (uint32_t)(all - found) : 0;
}

/* Spans that are open stay where they are, and lose their name. What is kept besides stays. */
NPUPROF_API_ npuprof_result npuprof_clear(void)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_cell_ *const cells = npuprof_fw_cells_(c);
    if (!c->cells) return NPUPROF_OK;
    if (!npuprof_fw_hold_(c)) return NPUPROF_ERR_BUSY;
    for (npuprof_cell_ *head = cells, *const end = cells + c->cells; head < end;) {
        npuprof_cell_ *const next = cells + (npuprof_fw_after_record_(head) - cells);
        const bool is_kept = (NPUPROF_LOAD_(&head->high.half[1]) & NPUPROF_CELL_OPEN_) != 0;
        if ((npuprof_fw_is_there_(head) && npuprof_fw_says_event_(head)) || !is_kept)
            npuprof_os_store_(&head->ref, NPUPROF_CELL_CLEARED_ | (head->ref & 1));
        head = next;
    }
    c->lost = c->lost_notes = 0;
    npuprof_fw_let_go_(c);
    return NPUPROF_OK;
}

#endif /* NPUPROF_WHEN_FULL is NPUPROF_KEEP_NEWEST */

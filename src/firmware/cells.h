#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../public/hot.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"
#include "ring.h"

/* Taking cells, and finishing the record in them. Two ways, of which a build has one:
     KEEP_OLDEST   Cells are taken one behind the other, until there are none.
     a ring        The next record replaces the oldest ones (format/compact.h, RING).
   A token is what names a record in cells: from npuprof_fw_take_() to npuprof_fw_finish_(), and for an open
   span until it ends. 0: no cells, so no record.
   Owns header.used and header.lost. May not know what a record says, except how long it is. */

/* Whether a record is there, and nobody is writing it. */
static inline bool npuprof_fw_is_there_(const npuprof_cell_ *head)
{
    const uint32_t claimed = NPUPROF_CELL_OPEN_ | NPUPROF_CELL_CLAIMED_;
    if (NPUPROF_RING_ && (NPUPROF_LOAD_(&head->high.half[1]) & claimed) == claimed) return false;
    return head->ref != 0;
}

static bool npuprof_fw_is_event_(const npuprof_cell_ *head)
{
    return npuprof_fw_is_there_(head) &&
           (!(head->ref & 2) || (head->ref >> 8 & 0xFF) - 1 < NPUPROF_CELL_KIND_THREAD_ - 1);
}

#if !NPUPROF_RING_

#if !NPUPROF_MASKS_
/* Cells from `at` on were taken and are too few: counts that as lost. Those that exist stay empty.
   Why they are not given back: whoever took cells meanwhile has those after them. */
static NPUPROF_NOINLINE_ npuprof_token_ npuprof_fw_lose_cells_(npuprof_compact_header_ *c, uint32_t at,
                                                               uint32_t *lost)
{
    const uint32_t cells = NPUPROF_FW_CELL_COUNT_();
    uint32_t used = NPUPROF_LOAD_(&c->used);
    for (; at < cells; at++) NPUPROF_STORE_(&npuprof_fw_cells_(c)[at].ref, NPUPROF_CELL_CLEARED_);
    if (used > cells) (void)NPUPROF_CAS_RELAXED_(&c->used, &used, cells);    /* it must not wrap to 0 */
    NPUPROF_INCREMENT_(lost);
    return 0;
}
#endif

/* Takes `count` cells: the token of the first. 0: they do not fit, and *lost is one more. While its `ref` is
   0, its `end` says how many they are, so that readers can step over it; of a span without fields it is 0,
   which is 1. */
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_fw_take_(npuprof_compact_header_ *c, uint32_t count,
                                                       uint32_t *lost)
{
    const bool is_plain = NPUPROF_CONSTANT_(count) && count == 1;
#if NPUPROF_MASKS_
    const uint32_t cells = NPUPROF_FW_CELL_COUNT_();
    int32_t places = (int32_t)(cells - count + 1);         /* where it may begin; not above 0: nowhere */
    if (!is_plain) NPUPROF_KNOWN_(places);
    NPUPROF_MASKED_BEGIN_
    const uint32_t at = c->used;
    const bool fits = (int32_t)at < places;
    if (NPUPROF_LIKELY_(fits)) {
        c->used = at + count;
        if (!is_plain) NPUPROF_STORE_(&npuprof_fw_cells_(c)[at].end, count);
    } else {
        NPUPROF_INCREMENT_(lost);
    }
    NPUPROF_MASKED_END_
    return fits ? at + 1 : 0;
#else
    const uint32_t at = NPUPROF_ADD_(&c->used, count), cells = NPUPROF_FW_CELL_COUNT_();
    if (NPUPROF_UNLIKELY_(at >= cells || count > cells - at)) return npuprof_fw_lose_cells_(c, at, lost);
    if (!is_plain) NPUPROF_STORE_(&npuprof_fw_cells_(c)[at].end, count);
    return at + 1;
#endif
}

/* The last thing done to a record: now it is there. half: its half[1]. */
NPUPROF_ALWAYS_INLINE_ void npuprof_fw_publish_half_(npuprof_cell_ *head, uint32_t ref, uint32_t half)
{
    head->high.half[1] = (uint16_t)half;
    NPUPROF_SIGNAL_FENCE_();
    npuprof_os_store_(&head->ref, ref);
}

/* The same. open: a span that is still to be ended. */
NPUPROF_ALWAYS_INLINE_ void npuprof_fw_publish_(npuprof_cell_ *head, npuprof_token_ token, uint32_t ref,
                                                bool open)
{
    (void)token;
    npuprof_fw_publish_half_(head, ref, open ? NPUPROF_CELL_OPEN_ : 0);
}

/* After that, or instead of it: nothing, what did not fit was counted. */
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_fw_tally_(npuprof_compact_header_ *c, npuprof_token_ token,
                                                        uint32_t *lost)
{
    (void)c;
    (void)lost;
    return token;
}

/* The open span of that token, or NULL.
   Why it asks: a goto past a scope leaves garbage in its token, and garbage must not write anywhere. */
static inline npuprof_cell_ *npuprof_fw_open_cell_(npuprof_compact_header_ *c, npuprof_token_ token)
{
    if (NPUPROF_UNLIKELY_(token > NPUPROF_FW_CELL_COUNT_())) return NULL;
    npuprof_cell_ *const around = npuprof_fw_near_cell_(c, token);
    const uint16_t half = NPUPROF_LOAD_(&around[NPUPROF_FW_HEAD_].high.half[1]);
    return NPUPROF_LIKELY_(half & NPUPROF_CELL_OPEN_) ? around + NPUPROF_FW_HEAD_ : NULL;
}

#else /* NPUPROF_RING_ */

/* Takes `count` cells: the token of the first. 0: they do not fit. Until npuprof_fw_publish_() the record is
   claimed, and is stepped over as a whole. */
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_fw_take_(npuprof_compact_header_ *c, uint32_t count,
                                                       uint32_t *lost)
{
    (void)lost;
    return count > 1 ? npuprof_fw_take_more_(c, count) : npuprof_fw_claim_next_(c, 1);
}

/* The last thing done to a record: now it is there. half: its half[1]. */
NPUPROF_ALWAYS_INLINE_ void npuprof_fw_publish_half_(npuprof_cell_ *head, uint32_t ref, uint32_t half)
{
    npuprof_os_store_(&head->ref, ref);
    npuprof_fw_store_half_(head, half);
}

/* The same. open: it is kept; a span until it ends. */
NPUPROF_ALWAYS_INLINE_ void npuprof_fw_publish_(npuprof_cell_ *head, npuprof_token_ token, uint32_t ref,
                                                bool open)
{
    npuprof_fw_publish_half_(head, ref, open ? token >> NPUPROF_RING_LAP_SHIFT_ : 0);
}

/* After that, or instead of it: *lost counts what did not fit; header.lost of NPUPROF_KEEP_NEWEST counts
   all. NPUPROF_STREAM counts the others, too. */
static inline npuprof_token_ npuprof_fw_tally_(npuprof_compact_header_ *c, npuprof_token_ token,
                                               uint32_t *lost)
{
    const bool is_event = lost == &c->lost;
#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
    if (token && is_event) lost = &npuprof_fw_recorded_;
#endif
    if (!token || is_event) npuprof_fw_count_(lost);
    return token;
}

/* The open span of that token, or NULL: garbage, or an end that came twice. */
NPUPROF_ALWAYS_INLINE_ npuprof_cell_ *npuprof_fw_open_cell_(npuprof_compact_header_ *c, npuprof_token_ token)
{
    npuprof_cell_ *const cell = npuprof_fw_cell_(c, token);
    if (!(token & NPUPROF_RING_IS_)) return NULL;
    if (NPUPROF_UNLIKELY_((token & NPUPROF_RING_INDEX_) >= NPUPROF_FW_CELL_COUNT_())) return NULL;
    uint32_t half = NPUPROF_LOAD_(&cell->high.half[1]);
    if (NPUPROF_WHEN_FULL == NPUPROF_STREAM) half &= ~(uint32_t)NPUPROF_CELL_SENT_;
    return half == token >> NPUPROF_RING_LAP_SHIFT_ ? cell : NULL;
}

#endif /* NPUPROF_RING_ */

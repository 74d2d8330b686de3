#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../public/api.h"
#include "../public/hot.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"
#include "cells.h"

/* NPUPROF_KEEP_OLDEST: cells are taken one behind the other, until there are none. What a policy is, and what
   each of its functions does, is said in >>firmware/policy.
   Owns header.used and header.lost. May not know what a record says, except how long it is. */

#if NPUPROF_WHEN_FULL == NPUPROF_KEEP_OLDEST

#define NPUPROF_FW_CELLS_WORD_(count) 0
#define NPUPROF_FW_CAUSE_ "arena_full"
#define NPUPROF_FW_KEEPS_ALL_
#define NPUPROF_FW_OPEN_HALF_(token) NPUPROF_CELL_OPEN_
enum { NPUPROF_FW_HEAD_ = NPUPROF_FW_HEADER_CELLS_ - 1, NPUPROF_FW_LOST_ = NPUPROF_LOST_FULL };

/* What there is nothing to do for. age: the span that was found last is the youngest. */
#define npuprof_fw_begin_trace_(c, cells) (cells)
#define npuprof_fw_is_kept_(ref) false
#define npuprof_fw_keep_last_(c, kept, count, token) ((void)(token))
#define npuprof_fw_oldest_ 0u
#define npuprof_fw_next_record_(at, end) npuprof_fw_after_record_(at)
#define npuprof_fw_first_after_(head) npuprof_fw_after_record_(head)
#define npuprof_fw_let_go_(c) ((void)(c))
#define npuprof_fw_lost_of_(c, found) ((c)->lost)
#define npuprof_fw_set_image_words_(h, cells) ((void)((h)->used = (cells)))
#define npuprof_fw_age_now_() UINT64_C(0)
#define npuprof_fw_age_(head, now) (now)
#define npuprof_fw_find_zero_(c) ((void)(c))
#define npuprof_fw_is_of_(result, token, head) ((token) == npuprof_fw_token_of_(npuprof_fw_arena_, head))

static inline bool npuprof_fw_hold_(npuprof_compact_header_ *c)
{
    (void)c;
    return true;
}

/* ---- Recording */

static inline npuprof_cell_ *npuprof_fw_near_cell_(npuprof_compact_header_ *c, npuprof_token_ token)
{
    return (npuprof_cell_ *)(uintptr_t)c + token;
}

static inline npuprof_cell_ *npuprof_fw_cell_(npuprof_compact_header_ *c, npuprof_token_ token)
{
    return npuprof_fw_near_cell_(c, token) + NPUPROF_FW_HEAD_;
}

#ifdef NPUPROF_CHECKED
static const npuprof_cell_ *npuprof_fw_after_record_(const npuprof_cell_ *head);

static uint32_t *npuprof_fw_check_of_(npuprof_compact_header_ *c, uint32_t cell)
{
    return (uint32_t *)(uintptr_t)(npuprof_fw_cells_(c) + NPUPROF_FW_CELL_COUNT_()) + cell / 16;
}

/* Adds a record that is finished, and whose span has ended, to the check of its cells. What npuprof_clear()
   emptied has none. */
static NPUPROF_NOINLINE_ void npuprof_fw_add_check_(const npuprof_cell_ *head)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const npuprof_cell_ *const end = npuprof_fw_after_record_(head);
    uint32_t sum = 0;
    if (head->ref <= (NPUPROF_CELL_CLEARED_ | 1)) return;
    for (const npuprof_cell_ *cell = head; cell < end; cell++) {
        sum = npuprof_compact_check_(sum, NPUPROF_LOAD_(&cell->ref));
        sum = npuprof_compact_check_(sum, NPUPROF_LOAD_(&cell->start));
        sum = npuprof_compact_check_(sum, NPUPROF_LOAD_(&cell->end));
        sum = npuprof_compact_check_(sum, NPUPROF_LOAD_(&cell->high.word));
    }
    uint32_t *const check = npuprof_fw_check_of_(c, (uint32_t)(head - npuprof_fw_cells_(c)));
    NPUPROF_MASKED_BEGIN_
#if NPUPROF_MASKS_
    *check += sum;
#else
    (void)NPUPROF_ADD_(check, sum);
#endif
    NPUPROF_MASKED_END_
}

static void npuprof_fw_clear_checks_(npuprof_compact_header_ *c)
{
    for (uint32_t cell = 0; cell < c->cells; cell += 16) npuprof_os_store_(npuprof_fw_check_of_(c, cell), 0);
}
#else /* !NPUPROF_CHECKED */
#define npuprof_fw_add_check_(head) ((void)0)
#define npuprof_fw_clear_checks_(c) ((void)0)
#endif /* !NPUPROF_CHECKED */

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
    if (!is_plain) {
        NPUPROF_KNOWN_(places);
        if (NPUPROF_ARENA_BYTES) NPUPROF_KNOWN_(c);
        if (NPUPROF_ARENA_BYTES) NPUPROF_KNOWN_(count);
    }
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
#else /* !NPUPROF_MASKS_ */
    const uint32_t at = NPUPROF_ADD_(&c->used, count), cells = NPUPROF_FW_CELL_COUNT_();
    if (NPUPROF_UNLIKELY_(at >= cells || count > cells - at)) return npuprof_fw_lose_cells_(c, at, lost);
    if (!is_plain) NPUPROF_STORE_(&npuprof_fw_cells_(c)[at].end, count);
    return at + 1;
#endif /* !NPUPROF_MASKS_ */
}

/* Why two orders: each is the shorter one there. */
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_fw_take_now_(npuprof_compact_header_ *c, uint64_t *now)
{
#if NPUPROF_MASKS_
    const npuprof_token_ token = npuprof_fw_take_(c, 1, &c->lost);
    *now = npuprof_fw_stamp_(c);
    return token;
#else
    *now = npuprof_fw_stamp_(c);
    return npuprof_fw_take_(c, 1, &c->lost);
#endif
}

NPUPROF_ALWAYS_INLINE_ void npuprof_fw_publish_half_(npuprof_cell_ *head, uint32_t ref, uint32_t half)
{
    head->high.half[1] = (uint16_t)half;
    NPUPROF_SIGNAL_FENCE_();
    npuprof_os_store_(&head->ref, ref);
    if (!(half & NPUPROF_CELL_OPEN_)) npuprof_fw_add_check_(head);
}

/* The short way. There is no other one: what does not fit is lost, and was counted. */
#define npuprof_fw_put_long_(ref, values, shape) 0
#define npuprof_fw_begin_short_(head, ref, count) ((void)0)
#define npuprof_fw_publish_short_(head, ref, half) npuprof_fw_publish_half_((head), (ref), (half))
NPUPROF_ALWAYS_INLINE_ bool npuprof_fw_take_short_(npuprof_compact_header_ *c, uint32_t count,
                                                   npuprof_cell_ **head, npuprof_token_ *token)
{
    *token = npuprof_fw_take_(c, count, &c->lost);
    *head = npuprof_fw_cell_(c, *token);
    return *token != 0;
}

/* What did not fit was counted when it was to be taken. */
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_fw_tally_(npuprof_compact_header_ *c, npuprof_token_ token,
                                                        uint32_t *lost)
{
    (void)c;
    (void)lost;
    return token;
}

static inline npuprof_cell_ *npuprof_fw_open_cell_(npuprof_compact_header_ *c, npuprof_token_ token)
{
    if (NPUPROF_UNLIKELY_(token > NPUPROF_FW_CELL_COUNT_())) return NULL;
    npuprof_cell_ *const around = npuprof_fw_near_cell_(c, token);
    const uint16_t half = NPUPROF_LOAD_(&around[NPUPROF_FW_HEAD_].high.half[1]);
    return NPUPROF_LIKELY_(half & NPUPROF_CELL_OPEN_) ? around + NPUPROF_FW_HEAD_ : NULL;
}

NPUPROF_ALWAYS_INLINE_ void npuprof_fw_end_cell_(npuprof_compact_header_ *c, npuprof_token_ token,
                                                 uint64_t now)
{
    const npuprof_cell_ *const cell = npuprof_fw_open_cell_(c, token);
    const uint16_t end = npuprof_fw_end_half_(now);
    if (NPUPROF_UNLIKELY_(!cell)) return;
    npuprof_cell_ *const around = npuprof_fw_near_cell_(c, token);
    NPUPROF_STORE_(&around[NPUPROF_FW_HEAD_].end, (uint32_t)now);
    NPUPROF_STORE_(&around[NPUPROF_FW_HEAD_].high.half[1], end);
    npuprof_fw_add_check_(cell);
}

static inline void npuprof_fw_end_found_(npuprof_cell_ *cell, uint64_t now)
{
    NPUPROF_STORE_(&cell->end, (uint32_t)now);
    NPUPROF_STORE_(&cell->high.half[1], npuprof_fw_end_half_(now));
}

/* `end` is the token, and the bits beside NPUPROF_CELL_OPEN_ are what was skipped. */
static void npuprof_fw_save_(npuprof_cell_ *cell, const npuprof_fw_by_hand_ *h)
{
    cell->end = h->top;
    cell->high.half[1] = NPUPROF_CELL_OPEN_ | (h->skipped & 0x7FFF);
}

static void npuprof_fw_restore_(const npuprof_cell_ *cell, npuprof_fw_by_hand_ *h)
{
    h->top = cell->end;
    h->skipped = cell->high.half[1] & 0x7FFF;
}

/* ---- Reading */

static inline bool npuprof_fw_is_there_(const npuprof_cell_ *head) { return head->ref != 0; }

static uint32_t npuprof_fw_used_cells_(const npuprof_compact_header_ *c)
{
    const uint32_t used = NPUPROF_LOAD_(&c->used);
    return used < c->cells ? used : c->cells;
}

static const npuprof_cell_ *npuprof_fw_after_record_(const npuprof_cell_ *head)
{
    const npuprof_cell_ *end = head + (head->end ? head->end : 1);
    if (head->ref) (void)npuprof_fw_find_field_(head, 0, &end);
    return end;
}

static inline npuprof_token_ npuprof_fw_token_of_(const npuprof_compact_header_ *c, const npuprof_cell_ *head)
{
    return (npuprof_token_)(head - npuprof_fw_cells_(c)) + 1;
}

NPUPROF_ATTRIBUTE_((unused))             /* without JSON nobody asks */
static NPUPROF_NOINLINE_ uint64_t npuprof_fw_since_first_(uint32_t high, uint32_t low)
{
    const uint64_t ticks = ((uint64_t)high << 32 | low) - npuprof_fw_first_stamp_(npuprof_fw_arena_);
    return ticks & NPUPROF_FW_RANGE_;
}

/* A cell as nobody has taken it yet. */
static void npuprof_fw_empty_cell_(npuprof_cell_ *cell)
{
    NPUPROF_STORE_(&cell->ref, 0);
    NPUPROF_STORE_(&cell->start, 0);
    NPUPROF_STORE_(&cell->end, 0);
    NPUPROF_STORE_(&cell->high.word, 0);
}

/* Gives cleared cells back one by one, from the last, as long as nobody takes one meanwhile. */
static void npuprof_fw_give_back_cells_(npuprof_compact_header_ *c)
{
    uint32_t seen = NPUPROF_LOAD_(&c->used);
    while (seen > c->cells && !NPUPROF_REPLACE_(&c->used, &seen, c->cells)) { }
    for (uint32_t at = NPUPROF_LOAD_(&c->used), was = at; at && was == at; at--) {
        npuprof_cell_ *const cell = &npuprof_fw_cells_(c)[at - 1];
        if (NPUPROF_LOAD_(&cell->ref) != NPUPROF_CELL_CLEARED_) break;
        if (NPUPROF_LOAD_(&cell->high.half[1]) & NPUPROF_CELL_OPEN_) break;
        npuprof_fw_empty_cell_(cell);
        NPUPROF_MASKED_BEGIN_
        was = NPUPROF_LOAD_(&c->used);
        while (was == at && !NPUPROF_REPLACE_(&c->used, &was, at - 1)) { }
        NPUPROF_MASKED_END_
        if (was != at) NPUPROF_STORE_(&cell->ref, NPUPROF_CELL_CLEARED_);
        else was = at - 1;
    }
}

/* Records that are open, or not finished, stay where they are: their end is still to be written. Open ones
   lose their name. */
NPUPROF_API_ npuprof_result npuprof_clear(void)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_cell_ *const cells = npuprof_fw_cells_(c);
    const int gate = NPUPROF_LOAD_(&npuprof_gate_);
    NPUPROF_STORE_(&npuprof_gate_, INT_MIN);
    for (npuprof_cell_ *head = cells, *const end = cells + npuprof_fw_used_cells_(c); head < end;) {
        npuprof_cell_ *const next = cells + (npuprof_fw_after_record_(head) - cells);
        /* Why from the last to the first: an interrupt that reads meanwhile still finds the next record. */
        for (npuprof_cell_ *cell = NPUPROF_LOAD_(&head->ref) ? next : head; cell > head;) {
            if (--cell > head) NPUPROF_STORE_(&cell->high.word, 0);
            NPUPROF_STORE_(&cell->ref, NPUPROF_CELL_CLEARED_);
        }
        head = next;
    }
    npuprof_fw_give_back_cells_(c);
    npuprof_fw_clear_checks_(c);
    c->lost = c->lost_notes = 0;
    NPUPROF_STORE_(&npuprof_gate_, gate);
    return NPUPROF_OK;
}

#endif /* NPUPROF_WHEN_FULL is NPUPROF_KEEP_OLDEST */

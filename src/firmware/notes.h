#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"
#include "cells.h"
#include "policy.h"
#include "poll.h"

/* What a ring keeps of names, metadata and clock anchors: of each the newest, and some of those before it.
   Why a slot for each, found by its key: a search of the cells takes as long as the arena is large, with
   interrupts off in a task's creation.
   Data: npuprof_fw_notes_, a slot for each name of a number, of a context, and for each key of metadata; it
   stays that one's. npuprof_fw_past_: names that others replaced; records of their time may still be there.
   npuprof_fw_anchors_: the first npuprof.anchor, the newest, and some between, evenly; of one task.
   A record that finds no slot is one as any other, and counted as lost: it will be overwritten. */

/* Keys: the number of a name + 1; a context + NPUPROF_FW_KEY_CONTEXT_; the upper half is metadata. */
#define NPUPROF_FW_KEY_CONTEXT_ 0x10000u
#define NPUPROF_FW_KEY_METADATA_ 0x80000000u

#if NPUPROF_RING_

typedef struct npuprof_fw_slot_ { uint32_t key; npuprof_token_ token; } npuprof_fw_slot_;
enum { NPUPROF_FW_PAST_ = 8, NPUPROF_FW_ANCHORS_KEPT_ = 8 };
static npuprof_fw_slot_ npuprof_fw_notes_[NPUPROF_NAMES];
static npuprof_token_ npuprof_fw_past_[NPUPROF_FW_PAST_];
static uint32_t npuprof_fw_past_count_;
static struct {
    npuprof_token_ token[NPUPROF_FW_ANCHORS_KEPT_];
    uint32_t count, step, kept;          /* there were so many; each `step`-th is kept; how many are */
} npuprof_fw_anchors_;

/* The slot of a key, which is not 0. NULL: all are taken. */
static npuprof_fw_slot_ *npuprof_fw_slot_of_(uint32_t key)
{
    for (uint32_t i = 0; i < NPUPROF_NAMES; i++) {
        npuprof_fw_slot_ *const slot = &npuprof_fw_notes_[(key + i) & (NPUPROF_NAMES - 1)];
        uint32_t is = npuprof_os_load_(&slot->key);
        if (!is && npuprof_fw_replace_(&slot->key, 0, key)) return slot;
        if (!is) is = npuprof_os_load_(&slot->key);
        if (is == key) return slot;
    }
    return NULL;
}

/* Puts a token in a place, and returns the one that was there. */
static npuprof_token_ npuprof_fw_exchange_(npuprof_token_ *place, npuprof_token_ token)
{
    npuprof_token_ was;
    do was = npuprof_os_load_(place);
    while (!npuprof_fw_replace_(place, was, token));
    return was;
}

#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
/* What is kept in that place, and was sent, goes into the ring once more, as it is, and is not kept where it
   was. Who polls calls it for each place between two headers. If there is no room, nothing is done. */
static void npuprof_fw_send_place_again_(npuprof_compact_header_ *c, npuprof_token_ *place)
{
    const npuprof_token_ old = npuprof_os_load_(place);
    const npuprof_cell_ *const from = npuprof_fw_cell_(c, old);
    if (!old || NPUPROF_LOAD_(&from->high.half[1]) !=
                    ((old >> NPUPROF_RING_LAP_SHIFT_) | NPUPROF_CELL_SENT_)) return;
    const uint32_t count = npuprof_fw_length_(from), ref = from->ref;
    const npuprof_token_ token = npuprof_fw_take_(c, count, &c->lost_notes);
    if (!token) return;
    npuprof_cell_ *const to = npuprof_fw_cell_(c, token);
    for (uint32_t n = 1; n < count; n++) to[n] = from[n];
    to->start = from->start;
    to->end = from->end | NPUPROF_CELL_AGAIN_;
    to->high.half[0] = from->high.half[0];
    npuprof_fw_publish_half_(to, ref, NPUPROF_FW_OPEN_HALF_(token));
    /* Why in this order: one that was replaced meanwhile must not come back. */
    const bool is_there = npuprof_fw_replace_(place, old, token);
    npuprof_fw_release_(c, is_there ? old : token, true);
}

/* part: since the last header, of NPUPROF_FW_PARTS_. */
static void npuprof_fw_send_again_(npuprof_compact_header_ *c, uint32_t part)
{
    for (uint32_t i = part; i < NPUPROF_NAMES + NPUPROF_FW_ANCHORS_KEPT_; i += NPUPROF_FW_PARTS_)
        npuprof_fw_send_place_again_(c, i < NPUPROF_NAMES ? &npuprof_fw_notes_[i].token
                                                          : &npuprof_fw_anchors_.token[i - NPUPROF_NAMES]);
}
#define npuprof_fw_begin_again_() ((void)(npuprof_fw_again_ = npuprof_fw_send_again_))
#else /* NPUPROF_WHEN_FULL is NPUPROF_KEEP_NEWEST */
#define npuprof_fw_begin_again_() ((void)0)
#endif /* NPUPROF_WHEN_FULL is NPUPROF_STREAM */

/* Puts a note in its slot: what it replaces is released. */
static npuprof_result npuprof_fw_keep_note_(npuprof_fw_slot_ *slot, npuprof_token_ token)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    if (!token) return NPUPROF_ERR_TABLE_FULL;
    if (!slot) {
        npuprof_fw_release_(c, token, false);
        return npuprof_fw_tally_(c, 0, &c->lost_notes), NPUPROF_ERR_TABLE_FULL;
    }
    npuprof_fw_begin_again_();
    npuprof_token_ old = npuprof_fw_exchange_(&slot->token, token);
    const bool is_name = slot->key < NPUPROF_FW_KEY_CONTEXT_;
    if (old && is_name) old = npuprof_fw_exchange_(&npuprof_fw_past_[npuprof_fw_past_count_++ %
                                                                     NPUPROF_FW_PAST_], old);
    npuprof_fw_release_(c, old, true);
    return NPUPROF_OK;
}

/* Whether a note of this slot was there before. */
static inline bool npuprof_fw_has_note_(const npuprof_fw_slot_ *slot)
{
    return slot && npuprof_os_load_(&slot->token);
}

/* Keeps the newest anchor. When there is no place, every second one goes. */
static npuprof_result npuprof_fw_keep_anchor_(npuprof_token_ token)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    if (!token) return NPUPROF_ERR_TABLE_FULL;
    uint32_t n = npuprof_fw_anchors_.kept, step = npuprof_fw_anchors_.step + !npuprof_fw_anchors_.step;
    npuprof_token_ *const kept = npuprof_fw_anchors_.token;
    if (n && ((npuprof_fw_anchors_.count - 1) & (step - 1))) {
        npuprof_fw_release_(c, npuprof_fw_exchange_(&kept[n - 1], 0), false);
        n--;
    }
    if (n == NPUPROF_FW_ANCHORS_KEPT_) {
        for (n = 0; n < NPUPROF_FW_ANCHORS_KEPT_ / 2; n++) {
            npuprof_fw_release_(c, npuprof_fw_exchange_(&kept[2 * n + 1], 0), false);
            if (n) kept[n] = npuprof_fw_exchange_(&kept[2 * n], 0);
        }
        step *= 2;
    }
    kept[n] = token;
    npuprof_fw_anchors_.kept = n + 1;
    npuprof_fw_anchors_.step = step;
    npuprof_fw_anchors_.count++;
    npuprof_fw_begin_again_();
    return NPUPROF_OK;
}

#else /* !NPUPROF_RING_: what is recorded stays */

typedef struct npuprof_fw_slot_ { uint32_t key; } npuprof_fw_slot_;
#define npuprof_fw_slot_of_(key) ((void)(key), (npuprof_fw_slot_ *)NULL)
#define npuprof_fw_has_note_(slot) ((void)(slot), false)
#define npuprof_fw_keep_anchor_(token) npuprof_fw_keep_note_(NULL, token)

static inline npuprof_result npuprof_fw_keep_note_(const npuprof_fw_slot_ *slot, npuprof_token_ token)
{
    (void)slot;
    return token ? NPUPROF_OK : NPUPROF_ERR_TABLE_FULL;
}

#endif /* NPUPROF_RING_ */

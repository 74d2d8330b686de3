#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "state.h"
#include "../os/common.h"
#include "chunks.h"

/* A thread and the slot it records into: how a slot is found, and where its chunk and its open spans are.
   Words: slot_mine (the thread's own, changed by record/ and by the end of the thread), and of a slot those
   that state.h describes. Nothing here takes a chunk; slots.h does. */

static NPUPROF_THREAD_LOCAL_ npuprof_slot_ *npuprof_slot_mine_ = &npuprof_slot_none_;
static NPUPROF_THREAD_LOCAL_ uint32_t npuprof_slot_by_hand_skipped_;   /* PROF_BEGINs while it has no slot */

/* Names the calling thread in the words `drainer`, `writer` and `setting_up`; never 0. */
static uintptr_t npuprof_slot_me_(void) { return (uintptr_t)&npuprof_slot_mine_; }

/* Takes a slot that nobody owns. any: whichever. fresh: one that never recorded. Else one that did, with
   that name; name 0: an unnamed one. NULL: there is none. */
static npuprof_slot_ *npuprof_slot_find_(uint32_t name, bool fresh, bool any)
{
    uint32_t at = NPUPROF_LOAD_ACQUIRE_(&npuprof_s_.header->slot_first);
    while (at) {
        npuprof_slot_ *const slot = npuprof_slot_at_(at);
        const npuprof_slot_head_ *const head = &slot->head;
        uint32_t nobody = 0;
        if (NPUPROF_LOAD_(&slot->owned) == 0) {
            const bool used = NPUPROF_LOAD_(&head->tid) != 0;
            const bool fits = any || (fresh ? !used : used && NPUPROF_LOAD_(&head->name) == name);
            if (fits && NPUPROF_CAS_(&slot->owned, &nobody, 1)) return slot;
        }
        at = head->next_slot;
    }
    return NULL;
}

/* The slot's chunk. It must have one. */
static inline npuprof_chunk_ *npuprof_slot_current_chunk_(const npuprof_slot_ *slot)
{
    return npuprof_chunk_at_(slot->head.last_chunk - 1);
}

/* Position of the next record of a slot that has a chunk. */
static uint64_t npuprof_slot_position_(const npuprof_slot_ *slot)
{
    npuprof_chunk_ *const chunk = npuprof_slot_current_chunk_(slot);
    return chunk->first_position + (uint64_t)(slot->cursor - npuprof_chunk_units_(chunk));
}

/* Takes its chunk from a slot that the caller owns. NULL: it has none, or spans are open in it (R2). */
static npuprof_chunk_ *npuprof_slot_detach_chunk_(npuprof_slot_ *slot)
{
    if (!slot->cursor || slot->top != slot->open) return NULL;
    slot->position = npuprof_slot_position_(slot);
    slot->cursor = slot->end = NULL;
    return npuprof_slot_current_chunk_(slot);
}

/* Where an open span lies; e is its place in slot->open, chunk the slot's current one. */
static inline npuprof_unit_ *npuprof_slot_open_unit_(const npuprof_slot_ *slot, npuprof_chunk_ *chunk,
                                                     const npuprof_token_ *e)
{
    if (*e & NPUPROF_TOKEN_MOVED_) return npuprof_chunk_units_(chunk) + 2 * (e - slot->open - 1);
    return (npuprof_unit_ *)(slot->token_zero + (*e & ~(npuprof_token_)NPUPROF_TOKEN_FLAGS_));
}

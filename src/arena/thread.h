#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "state.h"
#include "../os/common.h"
#include "chunks.h"

/* A thread and the slot it records into: how a slot is found, and where its chunk and its open spans are.
   Words: slot_mine (the thread's own, changed by record/ and by the end of the thread), and of a slot those
   that state.h describes. Nothing here takes a chunk; slots.h does. */

/* The calling thread's slot; npuprof_slot_none_ if it has none. And while it has none, how many PROF_BEGINs
   are open. Of a thread-local variable, or of a key, whose one pointer is the slot, or 2 * the count + 1.
   npuprof_slot_me_() names the calling thread in the words `drainer` and `writer`, and above; never 0. */
#if NPUPROF_THREAD_KEY
NPUPROF_ALWAYS_INLINE_ npuprof_slot_ *npuprof_slot_mine_(void)
{
    void *const own = npuprof_os_own_();
    return own && !((uintptr_t)own & 1) ? (npuprof_slot_ *)own : &npuprof_slot_none_;
}

static uint32_t npuprof_slot_skipped_(void)
{
    const uintptr_t own = (uintptr_t)npuprof_os_own_();
    return own & 1 ? (uint32_t)(own >> 1) : 0;
}

static void npuprof_slot_set_skipped_(uint32_t count)
{
    npuprof_os_watch_thread_(count ? (void *)((uintptr_t)count << 1 | 1) : NULL);
}

static void npuprof_slot_clear_skipped_(void) {}       /* the slot is in its place */
static uintptr_t npuprof_slot_me_(void) { return npuprof_os_me_(); }

#else /* !NPUPROF_THREAD_KEY */
static NPUPROF_THREAD_LOCAL_ npuprof_slot_ *npuprof_slot_own_ = &npuprof_slot_none_;
static NPUPROF_THREAD_LOCAL_ uint32_t npuprof_slot_own_skipped_;

NPUPROF_ALWAYS_INLINE_ npuprof_slot_ *npuprof_slot_mine_(void) { return npuprof_slot_own_; }
static uint32_t npuprof_slot_skipped_(void) { return npuprof_slot_own_skipped_; }
static void npuprof_slot_set_skipped_(uint32_t count) { npuprof_slot_own_skipped_ = count; }
static void npuprof_slot_clear_skipped_(void) { npuprof_slot_own_skipped_ = 0; }
static uintptr_t npuprof_slot_me_(void) { return (uintptr_t)&npuprof_slot_own_; }

#endif /* !NPUPROF_THREAD_KEY */

/* Gives the calling thread this slot; NULL: none. False: the system has no place to keep it. */
static bool npuprof_slot_become_(npuprof_slot_ *slot)
{
#if !NPUPROF_THREAD_KEY
    npuprof_slot_own_ = slot ? slot : &npuprof_slot_none_;
#endif
    return npuprof_os_watch_thread_(slot) || !NPUPROF_THREAD_KEY;
}

#ifdef NPUPROF_AUTO
/* From now on no call is open in this slot. */
static void npuprof_slot_forget_calls_(npuprof_slot_ *slot)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    npuprof_slot_call_ *const first = (npuprof_slot_call_ *)(void *)((uint8_t *)slot + s->slot_calls_at);
    slot->calls.beyond = 0;
    slot->calls.next = slot->calls.end = npuprof_slot_call_none_ + 1;
    if (s->slot_calls < 3) return;
    first->token = first[s->slot_calls - 1].token = NPUPROF_CALL_NONE_;
    slot->calls.next = first + 1;
    slot->calls.end = first + s->slot_calls - 1;
}

#endif
/* What `owned` is in the slots of the calling thread. */
static uint32_t npuprof_slot_owner_(void)
{
    const uint32_t tid = (uint32_t)npuprof_os_tid_();
    return tid ? tid : 1;
}

/* Gives a slot of the calling thread back. */
static void npuprof_slot_give_back_(npuprof_slot_ *slot)
{
    NPUPROF_STORE_RELEASE_(&slot->owned, 0);
    NPUPROF_ADD_SEQ_(&npuprof_arena_.slots_left, 1);
    NPUPROF_ADD_(&npuprof_arena_.slots_free, 1);
}

#define NPUPROF_SLOT_FRESH_ UINT32_MAX

/* Takes a slot that nobody owns: one that recorded under that name; 0: without one; NPUPROF_SLOT_FRESH_: one
   that never recorded. NULL: there is none. */
static npuprof_slot_ *npuprof_slot_take_free_(uint32_t name)
{
    const uint32_t me = npuprof_slot_owner_();
    const bool fresh = name == NPUPROF_SLOT_FRESH_;
    uint32_t at = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.header->slot_first);
    while (at && NPUPROF_LOAD_(&npuprof_arena_.slots_free)) {
        npuprof_slot_ *const slot = npuprof_slot_at_(at);
        const npuprof_slot_head_ *const head = &slot->head;
        uint32_t nobody = 0;
        if (NPUPROF_LOAD_(&slot->owned) == 0) {
            const bool used = NPUPROF_LOAD_(&head->tid) != 0;
            const bool fits = fresh ? !used : used && NPUPROF_LOAD_(&head->name) == name;
            if (fits && NPUPROF_CAS_(&slot->owned, &nobody, me)) {
                NPUPROF_ADD_(&npuprof_arena_.slots_free, UINT32_MAX);
                return slot;
            }
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

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "state.h"
#include "../os/common.h"
#include "time.h"
#include "chunks.h"

static NPUPROF_THREAD_LOCAL_ npuprof_slot_ *npuprof_slot_mine_ = &npuprof_slot_none_;
static NPUPROF_THREAD_LOCAL_ uint32_t npuprof_slot_by_hand_skipped_;   /* PROF_BEGINs of a thread without a slot */

/* Takes a slot that nobody owns: with that name if name is not 0, else an unnamed one; fresh: one that never recorded. */
static npuprof_slot_ *npuprof_slot_find_(uint32_t name, bool fresh, bool any)
{
    uint32_t at = NPUPROF_LOAD_ACQUIRE_(&npuprof_s_.header->slot_first);
    while (at) {
        npuprof_slot_ *const slot = npuprof_slot_at_(at);
        const npuprof_slot_head_ *const head = &slot->head;
        uint32_t nobody = 0;
        if (NPUPROF_LOAD_(&slot->owned) == 0 &&
            (any || (fresh ? NPUPROF_LOAD_(&head->tid) == 0 : NPUPROF_LOAD_(&head->tid) != 0 && NPUPROF_LOAD_(&head->name) == name)) &&
            NPUPROF_CAS_(&slot->owned, &nobody, 1))
            return slot;
        at = head->next_slot;
    }
    return NULL;
}

/* A chunk full of fresh slots; one of them is the caller's. */
static npuprof_slot_ *npuprof_slot_make_chunk_(bool nested, const npuprof_signals_ *held)
{
    npuprof_header_ *h = npuprof_s_.header;
    npuprof_chunk_ *chunk = npuprof_chunk_take_(NPUPROF_CHUNK_SLOTS, nested, held);
    if (!chunk) return NULL;
    uint8_t *const start = (uint8_t *)(chunk + 1);
    npuprof_slot_ *newest = NULL;
    uint32_t head = NPUPROF_LOAD_ACQUIRE_(&h->slot_first), tail_at = 0;
    for (size_t at = 0; at + h->slot_bytes <= h->chunk_bytes - sizeof *chunk; at += h->slot_bytes) {
        npuprof_slot_ *slot = (npuprof_slot_ *)(void *)(start + at);
        slot->top = slot->open;
        slot->open[0] = 1;
        slot->head.next_slot = tail_at;
        tail_at = (uint32_t)((size_t)((const uint8_t *)slot - npuprof_s_.base) / 16);
        newest = slot;
    }
    newest->owned = 1;
    npuprof_slot_ *last = (npuprof_slot_ *)(void *)start;
    do last->head.next_slot = head;
    while (!NPUPROF_CAS_(&h->slot_first, &head, tail_at));
    npuprof_exchange_end_();
    return newest;
}

enum { NPUPROF_SLOT_NAMED_LIMIT_ = 1024 };   /* from here on, slots of other names are used again */

/* A slot for a thread or, with a parent, for a signal handler on the parent's thread. NULL: no room. held: see npuprof_chunk_take_. */
static npuprof_slot_ *npuprof_slot_take_(npuprof_slot_ *parent, uint32_t name, bool fresh, const npuprof_signals_ *held)
{
    npuprof_header_ *h = npuprof_s_.header;
    npuprof_slot_ *slot = NULL;
    if (!parent && !fresh) slot = npuprof_slot_find_(name, false, false);
    if (!slot) slot = npuprof_slot_find_(0, true, false);
    if (!slot && (parent || NPUPROF_LOAD_(&h->threads) < NPUPROF_SLOT_NAMED_LIMIT_)) slot = npuprof_slot_make_chunk_(parent != NULL, held);
    if (!slot && !parent) slot = npuprof_slot_find_(0, false, true);
    if (!slot) return NULL;
    if (slot->head.tid == 0) {
        if (parent) NPUPROF_STORE_(&slot->head.context, parent->head.context + 1);
        NPUPROF_STORE_(&slot->head.tid, parent ? parent->head.tid : NPUPROF_ADD_(&h->threads, 1) + 1);
    }
    NPUPROF_STORE_(&slot->head.os_tid, (uint32_t)npuprof_os_tid_());
    NPUPROF_STORE_(&slot->head.owners, slot->head.owners + 1);
    slot->top = slot->open;
    slot->by_hand_bits = 0;
    slot->by_hand_count = 0;
    return slot;
}

/* Where an open span lies: chunk is the slot's current one. */
static inline npuprof_unit_ *npuprof_slot_open_unit_(const npuprof_slot_ *slot, npuprof_chunk_ *chunk, const npuprof_token_ *e)
{
    if (*e & NPUPROF_TOKEN_MOVED_) return npuprof_chunk_units_(chunk) + 2 * (e - slot->open - 1);
    return (npuprof_unit_ *)(slot->token_zero + (*e & ~(npuprof_token_)NPUPROF_TOKEN_FLAGS_));
}
static inline npuprof_chunk_ *npuprof_slot_current_chunk_(const npuprof_slot_ *slot) { return npuprof_chunk_at_(slot->head.last_chunk - 1); }

/* Starts a new chunk for the slot and moves its open spans there. NULL: the arena is full, all stays as it was. held: see npuprof_chunk_take_.
   Why: every open span then lies in its thread's current chunk, so a retired chunk has no writers: it can be recycled,
   streamed and counted, and a long span pins nothing. Where a span was, a note says what it was. */
static npuprof_unit_ *npuprof_slot_change_chunk_(npuprof_slot_ *slot, uint64_t now, const npuprof_signals_ *held)
{
    const bool nested = slot->head.context != 0;
    npuprof_chunk_ *chunk = npuprof_chunk_take_(NPUPROF_CHUNK_OPEN, nested, held);
    if (!chunk) return NULL;
    npuprof_chunk_ *old = slot->cursor ? npuprof_chunk_at_(slot->head.last_chunk - 1) : NULL;
    npuprof_unit_ *u = npuprof_chunk_units_(chunk);
    /* Why a while before: the clocks of two CPUs may differ a little. */
    NPUPROF_STORE_(&chunk->base, now - ((uint64_t)1 << 40));
    NPUPROF_STORE_(&chunk->prev, slot->head.last_chunk);
    /* Why the context in it: those of a thread's signal handlers count apart, and (tid, position) must stay unique. */
    uint64_t position = slot->position;
    if (!nested && !position) position = npuprof_s_.first_position;
    if (nested && !position) position = (uint64_t)1 << 43 | (uint64_t)(NPUPROF_ADD_(&npuprof_s_.header->contexts, 1) & 0xFFFF) << 27;
    if (old) position = npuprof_slot_position_(slot);
    NPUPROF_STORE_(&chunk->first_position, position);
    for (npuprof_token_ *e = slot->open + 1; e <= slot->top; e++) {
        const npuprof_unit_ *was = npuprof_slot_open_unit_(slot, old, e);
        const bool moved = *e & NPUPROF_TOKEN_MOVED_;
        position = moved ? was[1].w0 >> NPUPROF_ID_BITS_ : old->first_position + (uint64_t)(was - npuprof_chunk_units_(old));
        u[1].w1 = moved ? was[1].w1 : npuprof_chunk_start_ticks_(old, was->w0);
        u[1].w0 = position << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_MOVED_;
        u[0].w1 = NPUPROF_END_OPEN_;
        u[0].w0 = was->w0 & NPUPROF_ID_MASK_;
        u += 2;
    }
    NPUPROF_STORE_(&chunk->moved_units, (uint16_t)(u - npuprof_chunk_units_(chunk)));
    /* Why the owner last: a chunk without one is nothing to a reader of what a killed process left. */
    NPUPROF_STORE_RELEASE_(&chunk->owner, slot->head.tid << 3 | slot->head.context);
    NPUPROF_STORE_RELEASE_(&slot->head.last_chunk, npuprof_chunk_index_(chunk) + 1);
    u = npuprof_chunk_units_(chunk);
    for (npuprof_token_ *e = slot->open + 1; e <= slot->top; e++, u += 2) {
        npuprof_unit_ *const was = npuprof_slot_open_unit_(slot, old, e);
        /* Why this order: between the two a reader takes the start from where the span is now. */
        NPUPROF_STORE_RELEASE_(&was->w0, (was->w0 & NPUPROF_ID_MASK_) << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_MOVED_AWAY_);
        NPUPROF_STORE_RELEASE_(&was->w1, u[1].w1);
        *e |= NPUPROF_TOKEN_MOVED_;
    }
    npuprof_token_ first_token = (npuprof_token_)(chunk->first_position * 16);
    if (!first_token || first_token > UINT32_MAX - npuprof_s_.units * 16) first_token = 16;
    slot->token_zero = (uintptr_t)npuprof_chunk_units_(chunk) - first_token;
    slot->deadline = chunk->base + (((uint64_t)1 << NPUPROF_START_BITS_) - 1);
    slot->cursor = u;
    slot->end = npuprof_chunk_units_(chunk) + npuprof_s_.units;
    if (old) npuprof_chunk_retire_(old);
    npuprof_exchange_end_();
    return u;
}
static npuprof_unit_ *npuprof_slot_begin_chunk_(npuprof_slot_ *slot, uint64_t now)
{
    npuprof_signals_ held;
    if (npuprof_arena_is_full_()) return NULL;
    /* Why not with keep-oldest: there nobody waits for a chunk that another thread has, and no record makes a system call. */
    const bool shared = npuprof_s_.when_full != NPUPROF_KEEP_OLDEST;
    if (shared) npuprof_os_hold_signals_(&held);
    npuprof_unit_ *const u = npuprof_slot_change_chunk_(slot, now, &held);
    if (shared) npuprof_os_release_signals_(&held);
    if (!u) return NULL;
    npuprof_arena_renew_anchor_if_due_(now);
    if (npuprof_s_.when_full == NPUPROF_STREAM && slot->head.context == 0) (void)npuprof_stream_drain_();
    return u;
}

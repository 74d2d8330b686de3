#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "state.h"
#include "../os/common.h"
#include "anchors.h"
#include "chunks.h"
#include "thread.h"
#include "exchange.h"

/* How a thread gets a slot, and how a slot changes to a new chunk: what may need a chunk, and so may wait.
   Words: header.slot_first and head.next_slot, the list of all slots. A slot is in it for ever; the list
   grows at its front, by a CAS, so whoever walks it sees whole slots only. The words of a slot: see
   state.h. Callers hold their signals (`held`: as they were before), or a handler that records would take a
   slot, too. */

/* A chunk full of fresh slots. One of them is the caller's. NULL: there is no chunk. */
static npuprof_slot_ *npuprof_slot_make_chunk_(bool nested, const npuprof_os_signals_ *held)
{
    npuprof_header_ *h = npuprof_arena_.header;
    npuprof_chunk_ *chunk = npuprof_chunk_take_(NPUPROF_CHUNK_SLOTS, nested, held);
    if (!chunk) return NULL;
    uint8_t *const start = (uint8_t *)(chunk + 1);
    npuprof_slot_ *newest = NULL;
    uint32_t count = 0;
    uint32_t head = NPUPROF_LOAD_ACQUIRE_(&h->slot_first), newest_at = 0;
    for (size_t at = 0; at + h->slot_bytes <= h->chunk_bytes - sizeof *chunk; at += h->slot_bytes) {
        npuprof_slot_ *slot = (npuprof_slot_ *)(void *)(start + at);
        slot->top = slot->open;
        slot->open[0] = 1;
        slot->head.next_slot = newest_at;
        newest_at = (uint32_t)((size_t)((const uint8_t *)slot - npuprof_arena_.base) / 16);
        newest = slot;
        count++;
    }
    newest->owned = npuprof_slot_owner_();
    npuprof_slot_ *oldest = (npuprof_slot_ *)(void *)start;
    do oldest->head.next_slot = head;
    while (!NPUPROF_CAS_(&h->slot_first, &head, newest_at));
    NPUPROF_ADD_(&npuprof_arena_.slots_free, count - 1);
    npuprof_exchange_end_();
    return newest;
}

/* Have the threads as many rows as they may have? With a chunk each they may take three quarters of the
   arena, but 64 rows at least. Then threads whose names are new share rows (record/thread.h). Why: names that
   never come again would take all of it. */
static bool npuprof_slot_rows_are_full_(void)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    const uint64_t each = (h->chunk_bytes - sizeof(npuprof_chunk_)) / h->slot_bytes;
    return NPUPROF_LOAD_(&h->threads) >= npuprof_max_(h->chunk_count * 3 / 4 * each / (each + 1), 64);
}

/* Ends the slots of threads that are no more and did not give them back: they ended without the clean-up of
   the system, or recorded behind it. Looked for when as many slots were taken as there are since the last
   time, so it costs each the same. A thread that lives has its number in `owned`, and a dead one's number
   changes only here. False: there was none. */
static bool npuprof_slot_end_dead_(void)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    const uint32_t threads = NPUPROF_LOAD_(&s->header->threads), few = 64;
    uint32_t nobody = 0;
    bool any = false;
    const uint32_t taken = NPUPROF_LOAD_(&s->slots_taken);
    if (threads < few || taken - NPUPROF_LOAD_(&s->slots_checked) < threads) return false;
    if (!NPUPROF_CAS_(&s->slots_checking, &nobody, 1)) return false;
    for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&s->header->slot_first); at;) {
        npuprof_slot_ *const slot = npuprof_slot_at_(at);
        const uint32_t owner = NPUPROF_LOAD_ACQUIRE_(&slot->owned);
        at = slot->head.next_slot;
        if (!owner || owner == NPUPROF_SLOT_RETIRING_ || NPUPROF_LOAD_(&slot->head.context)) continue;
        if (!npuprof_os_is_gone_(owner)) continue;
        npuprof_arena_hooks_.ends(slot);
        any = true;
    }
    NPUPROF_STORE_(&s->slots_checked, taken);
    NPUPROF_STORE_RELEASE_(&s->slots_checking, 0);
    return any;
}

/* A slot for a thread or, with a parent, for a signal handler on the parent's thread. NULL: there is no
   space. fresh: none that recorded before; always so with a parent. */
static npuprof_slot_ *npuprof_slot_take_(npuprof_slot_ *parent, bool fresh, const npuprof_os_signals_ *held)
{
    npuprof_header_ *h = npuprof_arena_.header;
    npuprof_slot_ *slot = NULL;
    if (!fresh) slot = npuprof_slot_take_free_(0);
    if (!slot) slot = npuprof_slot_take_free_(NPUPROF_SLOT_FRESH_);
    if (!slot && !fresh && npuprof_slot_end_dead_()) slot = npuprof_slot_take_free_(0);
    if (!slot) slot = npuprof_slot_make_chunk_(parent != NULL, held);
    if (!slot) return NULL;
    NPUPROF_ADD_(&npuprof_arena_.slots_taken, 1);
    if (slot->head.tid == 0) {
        if (parent) NPUPROF_STORE_(&slot->head.context, parent->head.context + 1);
        NPUPROF_STORE_(&slot->head.tid, parent ? parent->head.tid : NPUPROF_ADD_(&h->threads, 1) + 1);
    }
    /* Why this order: who reads the number finds that the slot had an owner before (read/hand.h). */
    NPUPROF_STORE_(&slot->head.owners, slot->head.owners + 1);
    NPUPROF_STORE_RELEASE_(&slot->head.os_tid, (uint32_t)npuprof_os_tid_());
    slot->by_hand_bits = 0;
    slot->by_hand_count = 0;
    *npuprof_slot_correlation_(slot) = 0;
    NPUPROF_CALLS_(npuprof_slot_forget_calls_(slot);)
    return slot;
}

/* Where the slot's stream goes on in a new chunk; old: its chunk, or NULL.
   Why handlers' contexts begin elsewhere: they count apart, and (thread, position) must stay unique. */
static uint64_t npuprof_slot_next_position_(const npuprof_slot_ *slot, const npuprof_chunk_ *old)
{
    if (old) return npuprof_slot_position_(slot);
    if (slot->position) return slot->position;
    if (slot->head.context == 0) return npuprof_arena_.first_position;
    return (uint64_t)1 << 43 | (uint64_t)(NPUPROF_ADD_(&npuprof_arena_.header->contexts, 1) & 0xFFFF) << 27;
}

/* Copies the open spans of the slot from its old chunk to the start of another one. Returns where they
   end. */
static npuprof_unit_ *npuprof_slot_copy_open_(const npuprof_slot_ *slot, npuprof_chunk_ *old,
                                              npuprof_chunk_ *chunk)
{
    npuprof_unit_ *u = npuprof_chunk_units_(chunk);
    for (const npuprof_token_ *e = slot->open + 1; e <= slot->top; e++, u += 2) {
        const npuprof_unit_ *was = npuprof_slot_open_unit_(slot, old, e);
        if (*e & NPUPROF_TOKEN_MOVED_) {
            u[1] = was[1];
        } else {
            const uint64_t position = old->first_position + (uint64_t)(was - npuprof_chunk_units_(old));
            u[1].w0 = position << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_MOVED_;
            u[1].w1 = npuprof_chunk_start_ticks_(old, was->w0);
        }
        u[0].w0 = was->w0 & NPUPROF_ID_MASK_;
        u[0].w1 = NPUPROF_END_OPEN_;
    }
    return u;
}

/* Marks the open spans as moved, in the old chunk and in the slot. Why by their positions: this may be done
   again, when some are marked already (R14). One that came into the old chunk by a move lies there where it
   lies now: open spans are a stack. */
static void npuprof_slot_mark_moved_(npuprof_slot_ *slot, npuprof_chunk_ *chunk)
{
    const npuprof_unit_ *const units = npuprof_chunk_units_(chunk), *u = units;
    for (npuprof_token_ *e = slot->open + 1; e <= slot->top; e++, u += 2) {
        npuprof_chunk_ *const old = npuprof_chunk_at_(chunk->prev - 1);
        const uint64_t at = (u[1].w0 >> NPUPROF_ID_BITS_) - old->first_position;
        const size_t place = at < npuprof_arena_.units ? (size_t)at : (size_t)(u - units);
        npuprof_unit_ *const was = npuprof_chunk_units_(old) + place;
        /* Why this order: a reader that comes between the two finds the start where the span is now. */
        NPUPROF_STORE_RELEASE_(&was->w0, u[0].w0 << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_MOVED_AWAY_);
        NPUPROF_STORE_RELEASE_(&was->w1, u[1].w1);
        *e |= NPUPROF_TOKEN_MOVED_;
    }
}

/* Makes a chunk that was taken the slot's last one, with the open spans at the start. */
static void npuprof_slot_append_chunk_(npuprof_slot_ *slot, npuprof_chunk_ *old, npuprof_chunk_ *chunk,
                                       uint64_t now)
{
    /* Why a while before now: the clocks of two CPUs may differ a little. */
    NPUPROF_STORE_(&chunk->base, now - ((uint64_t)1 << 40));
    NPUPROF_STORE_(&chunk->prev, slot->head.last_chunk);
    NPUPROF_STORE_(&chunk->first_position, npuprof_slot_next_position_(slot, old));
    npuprof_unit_ *const cursor = npuprof_slot_copy_open_(slot, old, chunk);
    NPUPROF_STORE_(&cursor->w0, 0);        /* R13 */
    NPUPROF_STORE_(&chunk->moved_units, (uint16_t)(cursor - npuprof_chunk_units_(chunk)));
    /* Why the owner after all that: a reader, or who reads what a killed process left, ignores a chunk
       without one. */
    NPUPROF_STORE_RELEASE_(&chunk->owner, slot->head.tid << 3 | slot->head.context);
    NPUPROF_STORE_RELEASE_(&slot->head.last_chunk, slot->changes_to);
    NPUPROF_SIGNAL_FENCE_();
}

/* Gives the slot a new chunk, with its open spans at the start, and retires the old one. Returns where the
   next record goes; the caller sets the end. NULL: the arena is full, and all is as it was. Why the open
   spans move: R2. A retired chunk can then be recycled, streamed and counted, however long a span is open. */
static npuprof_unit_ *npuprof_slot_change_chunk_(npuprof_slot_ *slot, uint64_t now,
                                                 const npuprof_os_signals_ *held)
{
    npuprof_chunk_ *chunk, *old = NULL;
    if (!slot->changes_to) {
        chunk = npuprof_chunk_take_(NPUPROF_CHUNK_OPEN, slot->head.context != 0, held);
        if (!chunk) return NULL;
        slot->changes_to = npuprof_chunk_index_(chunk) + 1;
        NPUPROF_SIGNAL_FENCE_();
    }
    chunk = npuprof_chunk_at_(slot->changes_to - 1);
    /* Why the owner, too: the slot may get again what was its last chunk. */
    if (!chunk->owner || slot->head.last_chunk != slot->changes_to) {
        if (slot->cursor) old = npuprof_slot_current_chunk_(slot);
        npuprof_slot_append_chunk_(slot, old, chunk, now);
    }
    npuprof_slot_mark_moved_(slot, chunk);
    npuprof_unit_ *const units = npuprof_chunk_units_(chunk);
    npuprof_token_ first_token = (npuprof_token_)(chunk->first_position * 16);
    if (first_token - 1 >= UINT32_MAX - npuprof_arena_.units * 16) first_token = 16;      /* 0, too */
    slot->token_zero = (uintptr_t)units - first_token;
    slot->deadline = chunk->base + (((uint64_t)1 << NPUPROF_START_BITS_) - 1);
    slot->cursor = slot->end = units + chunk->moved_units;
    NPUPROF_SIGNAL_FENCE_();
    slot->changes_to = 0;
    if (old) npuprof_chunk_retire_(old);
    npuprof_exchange_end_();
    return slot->cursor;
}

/* Changes the chunk as above, and holds this thread's signals meanwhile where chunks are recycled (R11). With
   the signals released again, it stores a host anchor if one is due, and drains the queue to the sink. Goes
   on with a change that was left half done (R14). */
static npuprof_unit_ *npuprof_slot_begin_chunk_(npuprof_slot_ *slot, uint64_t now)
{
    npuprof_os_signals_ held;
    if (!slot->changes_to && npuprof_arena_is_full_()) return NULL;
    const bool shared = npuprof_arena_.when_full != NPUPROF_KEEP_OLDEST;   /* R11 */
    if (shared) npuprof_os_hold_signals_(&held);
    npuprof_unit_ *const u = npuprof_slot_change_chunk_(slot, now, &held);
    if (shared) npuprof_os_release_signals_(&held);
    if (!u) return NULL;
    npuprof_arena_renew_anchor_if_due_(now);
    if (NPUPROF_ARENA_STREAMS_() && slot->head.context == 0) (void)npuprof_arena_hooks_.drain();
    return u;
}

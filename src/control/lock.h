#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../clock/host.h"
#include "../arena/chunks.h"
#include "../arena/slots.h"
#include "../record/enter.h"
#include "start.h"

/* The lock of the readers: of whoever writes an output, prints a report or empties the arena. One of them at
   a time is at work, and while it is, no chunk is recycled.

   Data, in npuprof_arena_, which is for arena/:
     writer   the thread that has the lock, 0: none. CAS from 0; back to 0 with release
     frozen   not 0 while the lock is held. Written by the thread that has it; threads that want to recycle
              read it (arena/chunks.h, R4)
   A reader stores `frozen` first, and then waits until nobody recycles any more.

   This part may not know what the readers do. */

/* What npuprof_os_hold_cancel_() gave the thread that has the lock; it alone writes and reads it. */
static int npuprof_reader_cancel_before_;

/* Takes the lock. False: this thread cannot have it. It has it already (a sink that calls back, a signal
   handler), or it is in the sink of NPUPROF_STREAM, or there is no arena; or another has it, and !waits. */
static bool npuprof_reader_lock_or_(bool waits, uint32_t frozen)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    const uintptr_t me = npuprof_slot_me_();
    if (!npuprof_record_is_ready_() || NPUPROF_LOAD_(&s->drainer) == me) return false;
    const int cancel_before = npuprof_os_hold_cancel_();
    for (;;) {
        uintptr_t nobody = 0;
        if (NPUPROF_CAS_(&s->writer, &nobody, me)) break;
        if (nobody == me || !waits) {
            npuprof_os_release_cancel_(cancel_before);
            return false;
        }
        npuprof_os_yield_();
    }
    npuprof_reader_cancel_before_ = cancel_before;
    NPUPROF_STORE_SEQ_(&s->frozen, frozen);
    /* Why this wait ends: a thread that recycles cannot be the one that waits here. Its signals are blocked,
       so no handler of it waits; or it is the drainer, which was refused above. */
    while (NPUPROF_LOAD_SEQ_(&s->recycling)) npuprof_os_yield_();
    return true;
}

static bool npuprof_reader_lock_(void) { return npuprof_reader_lock_or_(true, NPUPROF_FROZEN_); }

/* Gives the lock back. Threads that found no chunk may look again: chunks may be free, or be recycled. */
static void npuprof_reader_unlock_(void)
{
    NPUPROF_ADD_SEQ_(&npuprof_arena_.exchanging, 1);
    npuprof_exchange_begin_round_();
    NPUPROF_STORE_SEQ_(&npuprof_arena_.frozen, 0);
    npuprof_exchange_end_();
    const int cancel_before = npuprof_reader_cancel_before_;
    NPUPROF_STORE_RELEASE_(&npuprof_arena_.writer, (uintptr_t)0);
    npuprof_os_release_cancel_(cancel_before);
}

/* The result to return after npuprof_reader_lock_() returned false. */
static npuprof_result npuprof_reader_result_(void)
{
    return npuprof_record_is_ready_() ? NPUPROF_ERR_BUSY : NPUPROF_ERR_ARENA_SIZE;
}

/* Takes back a chunk that is given up. Returns how many spans and events began in it since `clear_ticks`:
   they are lost. counts: shall it look? */
static uint64_t npuprof_control_give_up_(npuprof_chunk_ *chunk, bool counts)
{
    uint64_t arguments;
    const uint64_t lost = counts ? npuprof_chunk_count_events_(npuprof_arena_.header, chunk, &arguments) : 0;
    npuprof_chunk_free_(chunk);
    return lost;
}

/* What a clear discards, for the cursors of npuprof_read(): they count it as lost. `since`: clear_ticks
   before it. Call when clear_ticks is new. */
static uint64_t npuprof_control_count_forgotten_(uint64_t since)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    const uint32_t chunks = NPUPROF_LOAD_ACQUIRE_(&h->chunk_next);
    uint64_t sum = npuprof_chunk_sum_overwritten_(h, chunks) + NPUPROF_LOAD_(&h->streamed), arguments;
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++)
        sum += npuprof_chunk_is_whole_loss_[i] ? NPUPROF_LOAD_(&h->lost[i]) : 0;
    for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&h->slot_first); at; at = npuprof_slot_at_(at)->head.next_slot)
        sum += NPUPROF_LOAD_(&npuprof_slot_at_(at)->head.lost);
    for (uint32_t i = 0; i < chunks; i++) {
        const npuprof_chunk_ *const chunk = npuprof_chunk_at_(i);
        const uint16_t state = NPUPROF_LOAD_ACQUIRE_(&chunk->state);
        if ((state != NPUPROF_CHUNK_OPEN && state != NPUPROF_CHUNK_RETIRED) ||
            !NPUPROF_LOAD_ACQUIRE_(&chunk->owner)) continue;
        sum += npuprof_chunk_count_between_(chunk, npuprof_arena_.units, since,
                                            NPUPROF_LOAD_(&h->clear_ticks), &arguments);
    }
    return sum;
}

/* Empties the arena of what began before these ticks. Chunks that other threads fill stay theirs: readers
   leave out what is in them from before clear_ticks. 0: before now, and what begins meanwhile may be
   forgotten, too; else it is counted as lost where it does not stay. !waits: NPUPROF_ERR_BUSY if another
   thread has the lock. */
static npuprof_result npuprof_control_clear_before_(uint64_t before, bool waits)
{
    uint64_t lost = 0;
    if (!npuprof_reader_lock_or_(waits, NPUPROF_FROZEN_)) return npuprof_reader_result_();
    npuprof_header_ *h = npuprof_arena_.header;
    npuprof_slot_ *mine = npuprof_slot_mine_() == &npuprof_slot_none_ ? NULL : npuprof_record_enter_();
    const uint64_t since = NPUPROF_LOAD_(&h->clear_ticks);
    NPUPROF_STORE_(&h->clear_ticks, before ? before : npuprof_clock_in_order_());
    if (NPUPROF_LOAD_(&npuprof_arena_.cursors))
        npuprof_arena_.forgotten += npuprof_control_count_forgotten_(since);
    (void)npuprof_chunk_retire_idle_();
    npuprof_chunk_ *chunk = mine ? npuprof_slot_detach_chunk_(mine) : NULL;
    if (chunk) lost += npuprof_control_give_up_(chunk, before != 0);
    while ((chunk = npuprof_chunk_unqueue_()) != NULL) lost += npuprof_control_give_up_(chunk, before != 0);
    /* Why behind that: until then a full arena goes on losing. */
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) NPUPROF_STORE_(&h->lost[i], 0);
    NPUPROF_STORE_(&h->streamed, 0);
    for (uint32_t i = 0, chunks = NPUPROF_LOAD_ACQUIRE_(&h->chunk_next); i < chunks; i++)
        NPUPROF_STORE_(&npuprof_chunk_overwritten_at_(h, i)->count, 0);
    for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&h->slot_first); at; at = npuprof_slot_at_(at)->head.next_slot)
        NPUPROF_STORE_(&npuprof_slot_at_(at)->head.lost, 0);
    if (lost) npuprof_count_lost_(NPUPROF_LOST_READING, lost);
    if (mine) npuprof_record_leave_(mine);
    npuprof_reader_unlock_();
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_clear(void) { return npuprof_control_clear_before_(0, true); }

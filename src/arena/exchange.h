#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "state.h"
#include "../os/common.h"
#include "chunks.h"
#include "thread.h"

#include <string.h>

/* How a thread gets a new chunk for its full one, and how long it waits for it. With keep-oldest nobody
   waits. With keep-newest the oldest retired chunk is taken. With stream the thread hands retired chunks to
   the sink, or waits for the thread that does. The difficulty is when to stop waiting.

   Words, all sequentially consistent:
     exchanging        threads that are changing to a new chunk and may yet give their old one back
     failed            those of them that looked for a chunk in this round and found none. A round is the
                       time between two chunks that are given back; the word's upper half is its number
     drainer, frozen   see state.h

   R7   A thread enters `exchanging` before it looks for a chunk. It gives its old chunk back only after it
        has taken a new one, and leaves `exchanging` after that, or when it gives up.

   R8   So waiting is pointless once every thread in `exchanging` has looked and found none in the same round:
        nobody can give back what the others wait for. `hopeless` keeps that round: who comes later in it
        need not look, unless a slot was given back, whose chunk may be idle.

   R9   Whoever gives a chunk back begins a new round, and leaves `exchanging` afterwards. In the other order
        a thread could find that all others have failed, and give up, when a chunk has just come back.

   R10  A thread that naps or drains steps aside: it is in neither count. It looks again afterwards.

   R11  A thread in `exchanging` has its signals held, and pthread_cancel(): so no handler leaves it there for
        ever by a jump, or waits for the thread that it interrupted. Not with keep-oldest, where nobody waits:
        there no record makes a system call, and R14 holds.

   R12  While a thread drains (`drainer`) or reads (`frozen`), others wait for it: chunks may come back when
        it is done. If that thread itself needs a chunk, in a sink that records, it does not wait.

   R14  With keep-oldest a change may be left half done: by a handler that jumps, or an end of the thread.
        Then the slot is busy and its `changes_to` names the chunk. Who ends spans of such a slot goes on
        with the change first (record/span.h); each step may be done twice. Only then the slot is used
        again. */

/* What the rooms above hand down, once, before anything records. */
static struct {
    bool (*drain)(void);           /* hands retired chunks to the sink. False: none was freed */
    void (*ends)(npuprof_slot_ *slot);     /* of a thread that is over: ends its spans, gives it back */
} npuprof_arena_hooks_;

/* Is there a thread to wait for? R12 */
static bool npuprof_exchange_may_wait_(void)
{
    return NPUPROF_LOAD_SEQ_(&npuprof_arena_.drainer) || NPUPROF_LOAD_SEQ_(&npuprof_arena_.frozen);
}

/* Does this thread drain, or read, further up its stack? R12 */
static bool npuprof_exchange_is_waited_for_(void)
{
    const uintptr_t me = npuprof_slot_me_();
    return NPUPROF_LOAD_(&npuprof_arena_.drainer) == me || NPUPROF_LOAD_(&npuprof_arena_.writer) == me;
}

/* A chunk was given back, or may be taken again. R9 */
static void npuprof_exchange_begin_round_(void)
{
    uint32_t failed = NPUPROF_LOAD_SEQ_(&npuprof_arena_.failed);
    while (!NPUPROF_CAS_(&npuprof_arena_.failed, &failed, (failed & 0xFFFF0000u) + 0x10000)) {}
}

/* Call when the old chunk is in the queue or on the free stack, after npuprof_chunk_take_() gave a new one.
   R9 */
static void npuprof_exchange_end_(void)
{
    npuprof_exchange_begin_round_();
    NPUPROF_ADD_SEQ_(&npuprof_arena_.exchanging, UINT32_MAX);
}

/* Retires the chunks, half full, of threads that have ended. False: there was none. Why not while no slot was
   given back since the last time: a thread that gets no chunk would pay for all slots with each record. */
static bool npuprof_chunk_retire_idle_(void)
{
    bool any = false;
    const uint32_t left = NPUPROF_LOAD_SEQ_(&npuprof_arena_.slots_left);
    if (left == NPUPROF_LOAD_(&npuprof_arena_.slots_swept)) return false;
    for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.header->slot_first); at;) {
        npuprof_slot_ *const slot = npuprof_slot_at_(at);
        uint32_t nobody = 0;
        if (NPUPROF_LOAD_(&slot->owned) == 0 && NPUPROF_CAS_(&slot->owned, &nobody, NPUPROF_SLOT_RETIRING_)) {
            for (npuprof_slot_ *s = slot; s; s = s->nested) {
                npuprof_chunk_ *chunk = npuprof_slot_detach_chunk_(s);
                if (!chunk) continue;
                /* Why before it, too: the caller may already be counted in `failed`, and others would give
                   up. */
                npuprof_exchange_begin_round_();
                npuprof_chunk_retire_(chunk);
                npuprof_exchange_begin_round_();
                any = true;
            }
            NPUPROF_STORE_RELEASE_(&slot->owned, 0);
        }
        at = slot->head.next_slot;
    }
    NPUPROF_STORE_(&npuprof_arena_.slots_swept, left);
    return any;
}

/* Had all failed in this round already, and has nothing come back since? R8 */
static bool npuprof_exchange_was_hopeless_(uint32_t round)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    return NPUPROF_LOAD_SEQ_(&s->hopeless) == (round << 16 | 1) && !npuprof_chunk_are_queued_() &&
           NPUPROF_LOAD_SEQ_(&s->slots_left) == NPUPROF_LOAD_(&s->slots_swept);
}

/* The caller found no chunk; `failed` is what the word was before it looked, *counted the round in which
   the caller is counted. Counts it, and says whether everybody has failed. R8 */
static bool npuprof_exchange_is_hopeless_(uint32_t failed, uint32_t *counted)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    const uint32_t round = failed >> 16, max = 0xFFFF;
    if (npuprof_exchange_may_wait_()) return false;
    if (NPUPROF_ARENA_STREAMS_() && npuprof_chunk_are_queued_()) return false;
    if (npuprof_exchange_was_hopeless_(round)) return true;
    for (uint32_t now = NPUPROF_LOAD_SEQ_(&s->failed); *counted != round;) {
        if (now >> 16 != round) return false;
        if ((now & max) == max || NPUPROF_CAS_(&s->failed, &now, now + 1)) *counted = round;
    }
    /* Why `failed` on both sides: between two looks one thread may leave and another come, and the failure
       of the first would be taken for one of the second. */
    const uint32_t before = NPUPROF_LOAD_SEQ_(&s->failed), exchanging = NPUPROF_LOAD_SEQ_(&s->exchanging);
    if (npuprof_exchange_may_wait_()) return false;
    if (before >> 16 != round || before != NPUPROF_LOAD_SEQ_(&s->failed)) return false;
    if ((before & max) < exchanging && (before & max) != max) return false;
    NPUPROF_STORE_SEQ_(&s->hopeless, round << 16 | 1);
    return true;
}

/* R10, R11. Why the signals come meanwhile: a sink that records may have to wait for them. held: as they
   were. */
static void npuprof_exchange_step_aside_(uint32_t *counted, const npuprof_os_signals_ *held)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    uint32_t now = NPUPROF_LOAD_SEQ_(&s->failed);
    while (*counted == now >> 16 && (now & 0xFFFF) && (now & 0xFFFF) != 0xFFFF)
        if (NPUPROF_CAS_(&s->failed, &now, now - 1)) *counted = UINT32_MAX;
    *counted = UINT32_MAX;
    NPUPROF_ADD_SEQ_(&s->exchanging, UINT32_MAX);
    npuprof_os_release_signals_(held);
}

static void npuprof_exchange_step_back_(void)
{
    npuprof_os_signals_ before;
    npuprof_os_hold_signals_(&before);
    NPUPROF_ADD_SEQ_(&npuprof_arena_.exchanging, 1);
}

static bool npuprof_exchange_drain_aside_(uint32_t *counted, const npuprof_os_signals_ *held)
{
    npuprof_exchange_step_aside_(counted, held);
    const bool any = npuprof_arena_hooks_.drain();
    npuprof_exchange_step_back_();
    return any;
}

/* Would npuprof_chunk_take_() find none, and not wait? Asked first where each record of a full arena comes
   by. */
static bool npuprof_arena_is_full_(void)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    if (NPUPROF_LOAD_(&s->header->chunk_next) < s->header->chunk_count) return false;
    if (NPUPROF_LOAD_(&s->chunk_free) & NPUPROF_CHUNK_NUMBER_MASK_) return false;
    if (s->when_full == NPUPROF_KEEP_OLDEST) return true;
    if (s->when_full == NPUPROF_KEEP_NEWEST && NPUPROF_LOAD_SEQ_(&s->frozen) == NPUPROF_FROZEN_) return true;
    if (npuprof_exchange_may_wait_()) return false;
    return npuprof_exchange_was_hopeless_(NPUPROF_LOAD_SEQ_(&s->failed) >> 16);
}

/* Empties a chunk that was taken, and gives it its state. R6. Records are written over what is in it (R13);
   slots and parts of the table need zeros. */
static void npuprof_chunk_make_fresh_(npuprof_chunk_ *chunk, uint32_t state)
{
    NPUPROF_STORE_(&chunk->next, 0);
    NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)NPUPROF_CHUNK_FREE);
    /* Why: a release does not keep later stores behind it, and a process may be killed in between. */
    NPUPROF_SIGNAL_FENCE_();
    if (state != NPUPROF_CHUNK_OPEN)
        memset(npuprof_chunk_units_(chunk), 0, npuprof_arena_.header->chunk_bytes - sizeof *chunk);
    NPUPROF_STORE_(&chunk->base, 0);
    NPUPROF_STORE_(&chunk->first_position, 0);
    NPUPROF_STORE_(&chunk->owner, 0);
    NPUPROF_STORE_(&chunk->prev, 0);
    NPUPROF_STORE_(&chunk->moved_units, 0);
    NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)state);
}

/* An empty chunk in that state: then the caller calls npuprof_exchange_end_(), with the signals still held.
   NULL: the arena is full. nested: for a signal handler's slot, which never waits. held: the signals as
   they were (R11). */
static npuprof_chunk_ *npuprof_chunk_take_(uint32_t state, bool nested, const npuprof_os_signals_ *held)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    npuprof_chunk_ *chunk = NULL;
    bool recycling = false;
    uint32_t counted = UINT32_MAX, nap = 20;
    NPUPROF_ADD_SEQ_(&s->exchanging, 1);
    for (uint64_t since = 0;;) {
        const uint32_t failed = NPUPROF_LOAD_SEQ_(&s->failed);
        if ((chunk = npuprof_chunk_take_unused_()) != NULL || s->when_full == NPUPROF_KEEP_OLDEST) break;
        if (s->when_full == NPUPROF_KEEP_NEWEST) {
            recycling = npuprof_chunk_begin_recycling_();
            if (recycling) chunk = npuprof_chunk_take_oldest_();
            if (recycling && !chunk && npuprof_chunk_retire_idle_()) chunk = npuprof_chunk_take_oldest_();
            if (chunk || NPUPROF_LOAD_SEQ_(&s->frozen) == NPUPROF_FROZEN_) break;
            if (recycling) npuprof_chunk_end_recycling_();
            recycling = false;
        }
        if (nested) break;
        if (NPUPROF_ARENA_STREAMS_()) {
            if (npuprof_chunk_are_queued_() && npuprof_exchange_drain_aside_(&counted, held)) continue;
            if (npuprof_chunk_retire_idle_()) continue;
        }
        if (npuprof_exchange_is_waited_for_() || npuprof_exchange_is_hopeless_(failed, &counted)) break;
        /* Why an end: a thread may have left for good, by a jump out of a sink. */
        const uint64_t ns = (uint64_t)npuprof_os_monotonic_ns_();
        if (!since || npuprof_exchange_may_wait_()) since = ns;
        if (ns - since > UINT64_C(5000000000)) break;
        /* Why longer and longer: threads by the thousand that look again would keep those from running that
           are about to finish. */
        nap = npuprof_exchange_may_wait_() ? 20 : nap < 5000 ? nap * 2 : nap;
        npuprof_exchange_step_aside_(&counted, held);
        npuprof_os_nap_(nap);
        npuprof_exchange_step_back_();
    }
    if (chunk) npuprof_chunk_make_fresh_(chunk, state);
    else NPUPROF_ADD_SEQ_(&s->exchanging, UINT32_MAX);
    if (recycling) npuprof_chunk_end_recycling_();
    return chunk;
}

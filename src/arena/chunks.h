#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "state.h"
#include "../os/common.h"
#include "layout.h"

/* ---- Retired chunks. They have no writers, so anyone may recycle them: npuprof_clear(), NPUPROF_KEEP_NEWEST, the sink.
   The queue holds their indexes + 1, oldest first, and above them the lap. It has room for all chunks, so it is never full. A thread
   takes a place in it, then fills it in; one that finds the first place not filled in yet takes the queue for empty.
   Why the lap: what stands there from the lap before need not be cleared, and a thread that stops in the middle of taking an entry
   spoils none of a later lap. */

static uint32_t npuprof_chunk_queue_lap_(const npuprof_header_ *h, uint32_t at) { return at / h->queue_slots * (NPUPROF_CHUNK_NUMBER_MASK_ + 1); }
static void npuprof_chunk_retire_(npuprof_chunk_ *chunk)
{
    npuprof_header_ *h = npuprof_s_.header;
    NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)NPUPROF_CHUNK_RETIRED);
    const uint32_t at = NPUPROF_ADD_(&h->queue_tail, 1);
    NPUPROF_STORE_RELEASE_(&npuprof_s_.queue[at & (h->queue_slots - 1)], npuprof_chunk_queue_lap_(h, at) | (npuprof_chunk_index_(chunk) + 1));
}
/* The oldest retired chunk, taken out of the queue. NULL: there is none. */
static npuprof_chunk_ *npuprof_chunk_unqueue_(void)
{
    npuprof_header_ *h = npuprof_s_.header;
    uint32_t head = NPUPROF_LOAD_ACQUIRE_(&h->queue_head);
    for (;;) {
        const uint32_t entry = NPUPROF_LOAD_ACQUIRE_(&npuprof_s_.queue[head & (h->queue_slots - 1)]), before = head;
        if (!(entry & NPUPROF_CHUNK_NUMBER_MASK_) || (entry & ~NPUPROF_CHUNK_NUMBER_MASK_) != npuprof_chunk_queue_lap_(h, head)) {
            head = NPUPROF_LOAD_ACQUIRE_(&h->queue_head);
            if (head == before) return NULL;
        } else if (NPUPROF_CAS_(&h->queue_head, &head, head + 1)) {
            return npuprof_chunk_at_((entry & NPUPROF_CHUNK_NUMBER_MASK_) - 1);
        }
    }
}
/* Nobody may take retired chunks while a reader looks at them. Why a look first: threads that are refused again and again would keep
   the reader waiting. */
static bool npuprof_chunk_begin_recycling_(void)
{
    if (NPUPROF_LOAD_SEQ_(&npuprof_s_.frozen)) return false;
    NPUPROF_ADD_SEQ_(&npuprof_s_.recycling, 1);
    if (!NPUPROF_LOAD_SEQ_(&npuprof_s_.frozen)) return true;
    NPUPROF_ADD_SEQ_(&npuprof_s_.recycling, UINT32_MAX);
    return false;
}
static void npuprof_chunk_end_recycling_(void) { NPUPROF_ADD_SEQ_(&npuprof_s_.recycling, UINT32_MAX); }

/* chunk_free: index + 1 of the first free chunk, and above it the number of times one was given back. Why the number: a thread that stopped
   between reading the first and taking it must see that the stack was changed. Taking one need not count: only who gives one back can put
   a chunk on top again. 44 bits do not come round. */
static void npuprof_chunk_free_(npuprof_chunk_ *chunk)
{
    uint64_t *const free_head = &npuprof_s_.chunk_free;
    const uint64_t once = (uint64_t)NPUPROF_CHUNK_NUMBER_MASK_ + 1, number = npuprof_chunk_index_(chunk) + 1;
    uint64_t head = NPUPROF_LOAD_ACQUIRE_(free_head);
    NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)NPUPROF_CHUNK_FREE);
    do NPUPROF_STORE_(&chunk->next, (uint32_t)head & NPUPROF_CHUNK_NUMBER_MASK_);
    while (!NPUPROF_CAS_(free_head, &head, (head & ~(once - 1)) + once + number));
}

/* Of the next record of a slot that has a chunk, in its stream. */
static uint64_t npuprof_slot_position_(const npuprof_slot_ *slot)
{
    npuprof_chunk_ *const chunk = npuprof_chunk_at_(slot->head.last_chunk - 1);
    return chunk->first_position + (uint64_t)(slot->cursor - npuprof_chunk_units_(chunk));
}
/* Detaches the current chunk of a slot, which nobody else may use just now and which has no open spans. NULL: it has none. */
static npuprof_chunk_ *npuprof_slot_detach_chunk_(npuprof_slot_ *slot)
{
    if (!slot->cursor || slot->top != slot->open) return NULL;
    slot->position = npuprof_slot_position_(slot);
    slot->cursor = slot->end = NULL;
    return npuprof_chunk_at_(slot->head.last_chunk - 1);
}
/* How a chunk is handed over. `exchanging` counts the threads that are changing to a new chunk and may yet give their old one back. Each of them
   that has looked for a chunk and found none is counted in `failed`, too, which begins at 0 whenever one was given back.
     - A thread gives its old chunk back only after it has taken a new one. So waiting is pointless once every thread in `exchanging` has
       looked and found none since the last chunk was given back.
     - A thread that gives a chunk back resets `failed` first and leaves `exchanging` afterwards. So no other thread gives up in between.
     - A thread that naps or drains is in neither count. It looks again when it is back.
     - A thread in `exchanging` has its signals held: no handler comes, so none leaves it there by a jump or waits for it. Not so with
       keep-oldest, where nobody waits.
     - Who drains or reads has `drainer` or `frozen` set, and others wait for that. */
static void npuprof_exchange_begin_round_(void)
{
    uint32_t failed = NPUPROF_LOAD_SEQ_(&npuprof_s_.failed);
    while (!NPUPROF_CAS_(&npuprof_s_.failed, &failed, (failed & 0xFFFF0000u) + 0x10000)) {}
}

/* Retires what threads that have ended left half full. False: there was nothing. */
static bool npuprof_chunk_retire_idle_(void)
{
    bool any = false;
    for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&npuprof_s_.header->slot_first); at;) {
        npuprof_slot_ *const slot = npuprof_slot_at_(at);
        uint32_t nobody = 0;
        if (NPUPROF_LOAD_(&slot->owned) == 0 && NPUPROF_CAS_(&slot->owned, &nobody, 1)) {
            for (npuprof_slot_ *s = slot; s; s = s->nested) {
                npuprof_chunk_ *chunk = npuprof_slot_detach_chunk_(s);
                if (!chunk) continue;
                npuprof_exchange_begin_round_();         /* Why before, too: the caller may be counted as one that found none */
                npuprof_chunk_retire_(chunk);
                npuprof_exchange_begin_round_();
                any = true;
            }
            NPUPROF_STORE_RELEASE_(&slot->owned, 0);
        }
        at = slot->head.next_slot;
    }
    return any;
}

/* The start of a record, in ticks. */
static inline uint64_t npuprof_chunk_start_ticks_(const npuprof_chunk_ *chunk, uint64_t w0)
{
    return chunk->base + (((w0 >> NPUPROF_ID_BITS_) - chunk->base) & (((uint64_t)1 << NPUPROF_START_BITS_) - 1));
}

/* Spans and events that lie in a retired chunk of an arena, since the last clear, and the arguments in it of spans that have moved on. */
static uint64_t npuprof_chunk_count_events_(const npuprof_header_ *h, const npuprof_chunk_ *chunk, uint64_t *left_arguments)
{
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    const uint64_t clear = NPUPROF_LOAD_(&h->clear_ticks);
    const uint32_t count = (h->chunk_bytes - (uint32_t)sizeof *chunk) / (uint32_t)sizeof *units;
    uint32_t n = 0;
    bool left = false;
    *left_arguments = 0;
    /* Why apart: most chunks hold nothing but spans of one unit, and this is a part of what a span costs. */
    while (!clear && n < count && n >= chunk->moved_units && ((uint32_t)units[n].w0 & NPUPROF_ID_MASK_) - 1 < NPUPROF_CONTROL_ - 1) n++;
    uint64_t events = n;
    for (; n < count && units[n].w0; n++) {
        const uint32_t id = (uint32_t)units[n].w0 & NPUPROF_ID_MASK_;
        const uint64_t payload = units[n].w0 >> NPUPROF_ID_BITS_;
        if (id < NPUPROF_CONTROL_ || id == NPUPROF_CONTROL_MOVED_AWAY_) {
            left = id == NPUPROF_CONTROL_MOVED_AWAY_;
            const bool moved = n < chunk->moved_units;
            if (!left) events += (moved ? units[n + 1].w1 : npuprof_chunk_start_ticks_(chunk, units[n].w0)) >= clear;
            n += moved;
        } else if (id == NPUPROF_CONTROL_ARG_) {
            const uint64_t length = payload >> 32;
            *left_arguments += left;
            if (length > 8) n += (uint32_t)NPUPROF_UNITS_(length - 8);
        }
    }
    return events;
}

/* Takes the oldest retired chunk and counts what is in it as overwritten. NULL: none, or a reader holds them. Why `next`: one store makes what lies
   in the chunk lost, so a process that is killed leaves each record either there or counted. */
static npuprof_chunk_ *npuprof_chunk_overwrite_oldest_(void)
{
    const npuprof_header_ *const h = npuprof_s_.header;
    uint64_t arguments;
    npuprof_chunk_ *chunk = npuprof_chunk_unqueue_();
    if (!chunk && npuprof_chunk_retire_idle_()) chunk = npuprof_chunk_unqueue_();
    if (!chunk) return NULL;
    npuprof_overwritten_ *const o = npuprof_chunk_overwritten_at_(h, npuprof_chunk_index_(chunk));
    const uint64_t count = NPUPROF_LOAD_(&o->count) + npuprof_chunk_count_events_(h, chunk, &arguments);
    if (arguments) NPUPROF_ADD_(&npuprof_s_.header->lost[NPUPROF_LOST_ARGUMENTS], arguments);
    NPUPROF_STORE_RELEASE_(&o->next, count + 1);
    NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)NPUPROF_CHUNK_FREE);
    NPUPROF_STORE_RELEASE_(&o->count, count);
    NPUPROF_STORE_RELEASE_(&o->next, (uint64_t)0);
    return chunk;
}
/* What was overwritten in an arena. */
static uint64_t npuprof_chunk_sum_overwritten_(const npuprof_header_ *h, uint32_t chunks)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < chunks && h->overwritten_offset; i++) {
        const npuprof_overwritten_ *const o = npuprof_chunk_overwritten_at_(h, i);
        const uint64_t next = NPUPROF_LOAD_(&o->next);
        sum += next ? next - 1 : NPUPROF_LOAD_(&o->count);
    }
    return sum;
}

static bool npuprof_stream_drain_(void);
static bool npuprof_lock_may_wait_(void);
static bool npuprof_lock_is_waited_for_(void);

/* A chunk that was never used or was given back. NULL: none. */
static npuprof_chunk_ *npuprof_chunk_take_unused_(void)
{
    npuprof_header_ *h = npuprof_s_.header;
    uint32_t next = NPUPROF_LOAD_(&h->chunk_next);
    while (next < h->chunk_count)
        if (NPUPROF_CAS_(&h->chunk_next, &next, next + 1)) return npuprof_chunk_at_(next);
    const uint64_t mask = NPUPROF_CHUNK_NUMBER_MASK_;
    for (uint64_t head = NPUPROF_LOAD_ACQUIRE_(&npuprof_s_.chunk_free); head & mask;) {
        npuprof_chunk_ *chunk = npuprof_chunk_at_((uint32_t)(head & mask) - 1);
        if (NPUPROF_CAS_(&npuprof_s_.chunk_free, &head, (head & ~mask) | (NPUPROF_LOAD_(&chunk->next) & mask))) return chunk;
    }
    return NULL;
}

/* To be called when the chunk that was given up for a new one is back in the queue or on the free stack. */
static void npuprof_exchange_end_(void)
{
    npuprof_exchange_begin_round_();
    NPUPROF_ADD_SEQ_(&npuprof_s_.exchanging, UINT32_MAX);
}
static bool npuprof_chunk_are_queued_(void) { return NPUPROF_LOAD_ACQUIRE_(&npuprof_s_.header->queue_head) != NPUPROF_LOAD_ACQUIRE_(&npuprof_s_.header->queue_tail); }
/* The caller looked for a chunk and found none since `failed` was what it is given as. *counted: what it was when that was last counted.
   True: it is hopeless. */
static bool npuprof_exchange_is_hopeless_(uint32_t failed, uint32_t *counted)
{
    npuprof_arena_state_ *const s = &npuprof_s_;
    const uint32_t round = failed >> 16;
    if (npuprof_lock_may_wait_() || (s->when_full == NPUPROF_STREAM && npuprof_chunk_are_queued_())) return false;
    for (uint32_t now = NPUPROF_LOAD_SEQ_(&s->failed); *counted != round; )
        if (now >> 16 != round) return false;
        else if ((now & 0xFFFF) == 0xFFFF || NPUPROF_CAS_(&s->failed, &now, now + 1)) *counted = round;
    /* Why read on both sides: of two threads that end and begin in between, neither may stand for the other. */
    const uint32_t before = NPUPROF_LOAD_SEQ_(&s->failed), exchanging = NPUPROF_LOAD_SEQ_(&s->exchanging);
    if (npuprof_lock_may_wait_()) return false;
    return before >> 16 == round && before == NPUPROF_LOAD_SEQ_(&s->failed) && ((before & 0xFFFF) >= exchanging || (before & 0xFFFF) == 0xFFFF);
}

/* Until it steps back the thread is not one of those who are changing, and its signals come. Why: a sink that records may have to wait for
   them, and a handler may leave by a jump. */
static void npuprof_exchange_step_aside_(uint32_t *counted, const npuprof_signals_ *held)
{
    npuprof_arena_state_ *const s = &npuprof_s_;
    for (uint32_t now = NPUPROF_LOAD_SEQ_(&s->failed); *counted == now >> 16 && (now & 0xFFFF) && (now & 0xFFFF) != 0xFFFF;)
        if (NPUPROF_CAS_(&s->failed, &now, now - 1)) *counted = UINT32_MAX;
    *counted = UINT32_MAX;
    NPUPROF_ADD_SEQ_(&s->exchanging, UINT32_MAX);
    npuprof_os_release_signals_(held);
}
static void npuprof_exchange_step_back_(void)
{
    npuprof_signals_ before;
    npuprof_os_hold_signals_(&before);
    NPUPROF_ADD_SEQ_(&npuprof_s_.exchanging, 1);
}
static bool npuprof_exchange_drain_aside_(uint32_t *counted, const npuprof_signals_ *held)
{
    npuprof_exchange_step_aside_(counted, held);
    const bool any = npuprof_stream_drain_();
    npuprof_exchange_step_back_();
    return any;
}

/* Would npuprof_chunk_take_() find none, and not wait? Why before it: a full arena is asked by every record. */
static bool npuprof_arena_is_full_(void)
{
    const npuprof_header_ *const h = npuprof_s_.header;
    if (NPUPROF_LOAD_(&h->chunk_next) < h->chunk_count || (NPUPROF_LOAD_(&npuprof_s_.chunk_free) & NPUPROF_CHUNK_NUMBER_MASK_)) return false;
    return npuprof_s_.when_full == NPUPROF_KEEP_OLDEST || (npuprof_s_.when_full == NPUPROF_KEEP_NEWEST && NPUPROF_LOAD_SEQ_(&npuprof_s_.frozen));
}

/* A fresh zeroed chunk; npuprof_exchange_end_() is called afterwards. NULL: the arena is full.
   nested: for a signal handler's context, which never waits. held: the signals are, until the caller has exchanged. */
static npuprof_chunk_ *npuprof_chunk_take_(uint32_t state, bool nested, const npuprof_signals_ *held)
{
    npuprof_arena_state_ *const s = &npuprof_s_;
    npuprof_chunk_ *chunk = NULL;
    bool recycling = false;
    uint32_t counted = UINT32_MAX;
    if (npuprof_arena_is_full_()) return NULL;
    NPUPROF_ADD_SEQ_(&s->exchanging, 1);
    for (uint64_t since = 0;;) {
        const uint32_t failed = NPUPROF_LOAD_SEQ_(&s->failed);
        if ((chunk = npuprof_chunk_take_unused_()) != NULL || s->when_full == NPUPROF_KEEP_OLDEST) break;
        if (s->when_full == NPUPROF_KEEP_NEWEST) {
            if (!npuprof_chunk_begin_recycling_()) break;
            recycling = (chunk = npuprof_chunk_overwrite_oldest_()) != NULL;
            if (recycling) break;
            npuprof_chunk_end_recycling_();
        }
        if (nested) break;
        if (s->when_full == NPUPROF_STREAM && ((npuprof_chunk_are_queued_() && npuprof_exchange_drain_aside_(&counted, held)) || npuprof_chunk_retire_idle_())) continue;
        if (npuprof_lock_is_waited_for_() || npuprof_exchange_is_hopeless_(failed, &counted)) break;
        /* Why an end: a thread may have left for good, by a jump out of a sink. */
        const uint64_t ns = (uint64_t)npuprof_os_monotonic_ns_();
        if (!since || npuprof_lock_may_wait_()) since = ns;
        if (ns - since > UINT64_C(5000000000)) break;
        npuprof_exchange_step_aside_(&counted, held);
        npuprof_os_yield_();
        npuprof_exchange_step_back_();
    }
    if (chunk) {
        /* Why only now: a process that is killed leaves a chunk whole until it is counted or sent. */
        NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)NPUPROF_CHUNK_FREE);
        NPUPROF_SIGNAL_FENCE_();
        memset(npuprof_chunk_units_(chunk), 0, s->header->chunk_bytes - sizeof *chunk);
        NPUPROF_STORE_(&chunk->base, 0);
        NPUPROF_STORE_(&chunk->first_position, 0);
        NPUPROF_STORE_(&chunk->owner, 0);
        NPUPROF_STORE_(&chunk->prev, 0);
        NPUPROF_STORE_(&chunk->moved_units, 0);
        NPUPROF_STORE_(&chunk->next, 0);
        NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)state);
    } else {
        NPUPROF_ADD_SEQ_(&s->exchanging, UINT32_MAX);
    }
    if (recycling) npuprof_chunk_end_recycling_();
    return chunk;
}

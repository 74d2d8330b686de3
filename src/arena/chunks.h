#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "layout.h"
#include "state.h"

/* Chunks: where each one is, and how it gets from one place to the next. Nothing here waits; exchange.h does.

     place         state     who may touch its contents       moved by                          to
     never used    0         nobody                           npuprof_chunk_take_unused_()      taken
     free stack    FREE      nobody; `next` is the stack's    npuprof_chunk_take_unused_()      taken
     taken         FREE      the thread that took it          npuprof_slot_change_chunk_()      open
                                                              npuprof_slot_make_chunk_()        slots
     open          OPEN      its slot's owner writes,         npuprof_chunk_retire_()           retired
                             readers read                     npuprof_clear() by the owner      free stack
     retired       RETIRED   nobody writes, readers read      by npuprof_chunk_unqueue_(), with
                                                                keep-newest, take_oldest()      taken
                                                                stream, the drainer             in the sink
                                                                any, npuprof_clear()            free stack
     in the sink   RETIRED   the drainer reads                npuprof_chunk_free_()             free stack
     slots         SLOTS     the owner of each slot           stays

   R1  A chunk is in one place. Whoever moves it out of a place that threads share, by a CAS, has it alone.

   R2  A retired chunk has no writers: spans that are open in a chunk are moved to the next one before it is
       retired. So whoever unqueues it may read it with plain loads, send it, and write it anew.

   R3  The queue has a place for every chunk, so it is never full. A thread takes a place by adding to
       queue_tail, then fills it. The first place that is not filled ends the queue for everybody. An entry
       is index + 1 of the chunk, and above it the lap: how many times the queue has been gone round. An
       entry of an earlier lap counts as not filled, so nobody has to clear it.

   R4  Retired chunks are unqueued only between begin_recycling and end_recycling, or by the one reader
       itself. A thread counts itself in `recycling`, then looks at `frozen`; a reader sets `frozen`, then
       waits until `recycling` is 0. Both words are sequentially consistent, so at least one of the two sees
       the other: no chunk is taken while a reader looks at it.

   R5  chunk_free is index + 1 of the first free chunk, and above it how many times a chunk was given back.
       So a thread that stops between reading the first chunk's `next` and its CAS notices that the stack
       was changed. Taking need not count: only giving back can put the same chunk on top again. The count
       has 44 bits and does not come round.

   R6  The records of a chunk stay until they are sent or counted as overwritten. When it is taken again, it
       has no owner until what is in it is void. So a process that is killed leaves each record either there
       or counted.

   R13 Behind the last record of a chunk is a unit whose w0 is 0, and behind that whatever was there before.
       So a chunk need not be zeroed when it is taken: it gets one 0 before it gets its owner, and a record
       stores the 0 behind it before its own w0, which has the release. A reader loads w0 with acquire, from
       the first unit on, and stops at the first 0. The last unit of a chunk is for that 0 alone. */

static uint32_t npuprof_chunk_queue_lap_(const npuprof_header_ *h, uint32_t at)
{
    return at / h->queue_slots * (NPUPROF_CHUNK_NUMBER_MASK_ + 1);
}

/* open -> retired. R2: the chunk has no open spans. R3 */
static void npuprof_chunk_retire_(npuprof_chunk_ *chunk)
{
    npuprof_header_ *h = npuprof_arena_.header;
    NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)NPUPROF_CHUNK_RETIRED);
    const uint32_t at = NPUPROF_ADD_(&h->queue_tail, 1);
    const uint32_t entry = npuprof_chunk_queue_lap_(h, at) | (npuprof_chunk_index_(chunk) + 1);
    NPUPROF_STORE_RELEASE_(&npuprof_arena_.queue[at & (h->queue_slots - 1)], entry);
}

static bool npuprof_chunk_are_queued_(void)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    return NPUPROF_LOAD_ACQUIRE_(&h->queue_head) != NPUPROF_LOAD_ACQUIRE_(&h->queue_tail);
}

/* The oldest retired chunk, now the caller's (R1). NULL: there is none. R3, R4 */
static npuprof_chunk_ *npuprof_chunk_unqueue_(void)
{
    npuprof_header_ *h = npuprof_arena_.header;
    const uint32_t mask = NPUPROF_CHUNK_NUMBER_MASK_;
    uint32_t head = NPUPROF_LOAD_ACQUIRE_(&h->queue_head);
    for (;;) {
        const uint32_t entry = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.queue[head & (h->queue_slots - 1)]);
        const uint32_t before = head;
        if (!(entry & mask) || (entry & ~mask) != npuprof_chunk_queue_lap_(h, head)) {
            head = NPUPROF_LOAD_ACQUIRE_(&h->queue_head);
            if (head == before) return NULL;
        } else if (NPUPROF_CAS_(&h->queue_head, &head, head + 1)) {
            return npuprof_chunk_at_((entry & mask) - 1);
        }
    }
}

/* False: a reader looks at the retired chunks. R4. Why a look first: threads that are refused again and
   again would keep `recycling` above 0, and the reader waiting. */
static bool npuprof_chunk_begin_recycling_(void)
{
    if (NPUPROF_LOAD_SEQ_(&npuprof_arena_.frozen)) return false;
    NPUPROF_ADD_SEQ_(&npuprof_arena_.recycling, 1);
    if (!NPUPROF_LOAD_SEQ_(&npuprof_arena_.frozen)) return true;
    NPUPROF_ADD_SEQ_(&npuprof_arena_.recycling, UINT32_MAX);
    return false;
}

static void npuprof_chunk_end_recycling_(void) { NPUPROF_ADD_SEQ_(&npuprof_arena_.recycling, UINT32_MAX); }

/* The caller's chunk -> free stack. R5 */
static void npuprof_chunk_free_(npuprof_chunk_ *chunk)
{
    uint64_t *const free_head = &npuprof_arena_.chunk_free;
    const uint64_t once = (uint64_t)NPUPROF_CHUNK_NUMBER_MASK_ + 1, number = npuprof_chunk_index_(chunk) + 1;
    uint64_t head = NPUPROF_LOAD_ACQUIRE_(free_head);
    NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)NPUPROF_CHUNK_FREE);
    do NPUPROF_STORE_(&chunk->next, (uint32_t)head & NPUPROF_CHUNK_NUMBER_MASK_);
    while (!NPUPROF_CAS_(free_head, &head, (head & ~(once - 1)) + once + number));
}

/* never used, or free stack -> taken. NULL: there is none. R5 */
static npuprof_chunk_ *npuprof_chunk_take_unused_(void)
{
    npuprof_header_ *h = npuprof_arena_.header;
    uint32_t next = NPUPROF_LOAD_(&h->chunk_next);
    while (next < h->chunk_count)
        if (NPUPROF_CAS_(&h->chunk_next, &next, next + 1)) return npuprof_chunk_at_(next);
    const uint64_t mask = NPUPROF_CHUNK_NUMBER_MASK_;
    for (uint64_t head = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.chunk_free); head & mask;) {
        npuprof_chunk_ *chunk = npuprof_chunk_at_((uint32_t)(head & mask) - 1);
        const uint64_t rest = (head & ~mask) | (NPUPROF_LOAD_(&chunk->next) & mask);
        if (NPUPROF_CAS_(&npuprof_arena_.chunk_free, &head, rest)) return chunk;
    }
    return NULL;
}

/* ---- What is in a chunk */

/* The start of a record in a chunk of this base, in ticks. Why no mask: bits above the start's fall off. */
NPUPROF_HOT_ static inline uint64_t npuprof_chunk_ticks_from_(uint64_t base, uint64_t w0)
{
    return base + ((w0 - (base << NPUPROF_ID_BITS_)) >> NPUPROF_ID_BITS_);
}

NPUPROF_HOT_ static inline uint64_t npuprof_chunk_start_ticks_(const npuprof_chunk_ *chunk, uint64_t w0)
{
    return npuprof_chunk_ticks_from_(chunk->base, w0);
}

/* How many units behind this one are bytes of its string. */
static inline uint64_t npuprof_chunk_string_units_(uint64_t w0)
{
    const uint64_t length = w0 >> NPUPROF_ID_BITS_ >> 32;
    return ((uint32_t)w0 & NPUPROF_ID_MASK_) == NPUPROF_CONTROL_ARG_ && length > 8
        ? NPUPROF_UNITS_(length - 8) : 0;
}

/* Has the span at this position, which was in the chunk, moved on? */
static bool npuprof_chunk_span_left_(const npuprof_chunk_ *chunk, uint64_t position, uint32_t count)
{
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    uint64_t n = position - chunk->first_position;
    if (n >= count)
        for (n = 0; n + 1 < chunk->moved_units && units[n + 1].w0 >> NPUPROF_ID_BITS_ != position;) n += 2;
    return n < count && ((uint32_t)units[n].w0 & NPUPROF_ID_MASK_) == NPUPROF_CONTROL_MOVED_AWAY_;
}

/* Spans and events that are in the first `count` units of a chunk and began from `since` on, before `until`.
   *left_arguments: arguments in it of spans that have moved on. */
NPUPROF_HOT_ static uint64_t npuprof_chunk_count_between_(const npuprof_chunk_ *chunk, uint32_t count,
                                                          uint64_t since, uint64_t until,
                                                          uint64_t *left_arguments)
{
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    const bool all = !since && until == UINT64_MAX;
    uint32_t n = 0;
    bool left = false;
    *left_arguments = 0;
    /* Why a loop of its own: most chunks hold only spans of one unit, and with keep-newest and stream this
       is part of what a span costs. */
    while (all && n < count && n >= chunk->moved_units &&
           ((uint32_t)NPUPROF_LOAD_(&units[n].w0) & NPUPROF_ID_MASK_) - 1 < NPUPROF_CONTROL_ - 1)
        n++;
    uint64_t events = n;
    for (; n < count; n++) {
        const uint64_t w0 = NPUPROF_LOAD_ACQUIRE_(&units[n].w0);
        const uint32_t id = (uint32_t)w0 & NPUPROF_ID_MASK_;
        if (!w0) break;
        if (id < NPUPROF_CONTROL_ || id == NPUPROF_CONTROL_MOVED_AWAY_) {
            left = id == NPUPROF_CONTROL_MOVED_AWAY_;
            const bool moved = n < chunk->moved_units;
            const uint64_t start = moved ? units[n + 1].w1 : npuprof_chunk_start_ticks_(chunk, w0);
            if (!left) events += start >= since && start < until;
            n += moved;
        } else if (id == NPUPROF_CONTROL_ARG_) {
            *left_arguments += left;
            n += (uint32_t)npuprof_chunk_string_units_(w0);
        } else if (id == NPUPROF_CONTROL_RESULT_) {
            left = npuprof_chunk_span_left_(chunk, units[n].w1, count);
        }
    }
    return events;
}

/* Spans and events in a retired chunk, since the last npuprof_clear(). Why not the arena's own count of
   units: a reader asks for an image, which has another. */
static uint64_t npuprof_chunk_count_events_(const npuprof_header_ *h, const npuprof_chunk_ *chunk,
                                            uint64_t *left_arguments)
{
    const uint32_t units = (h->chunk_bytes - (uint32_t)sizeof *chunk) / (uint32_t)sizeof(npuprof_unit_);
    return npuprof_chunk_count_between_(chunk, units, NPUPROF_LOAD_(&h->clear_ticks), UINT64_MAX,
                                        left_arguments);
}

/* retired -> taken: the oldest one. What is in it is counted as overwritten. NULL: there is none. R4, R6:
   the store of `next` makes everything in the chunk lost at once. */
static npuprof_chunk_ *npuprof_chunk_take_oldest_(void)
{
    npuprof_header_ *const h = npuprof_arena_.header;
    uint64_t arguments;
    npuprof_chunk_ *chunk = npuprof_chunk_unqueue_();
    if (!chunk) return NULL;
    npuprof_overwritten_ *const o = npuprof_chunk_overwritten_at_(h, npuprof_chunk_index_(chunk));
    const uint64_t count = NPUPROF_LOAD_(&o->count) + npuprof_chunk_count_events_(h, chunk, &arguments);
    if (arguments) NPUPROF_ADD_(&h->lost[NPUPROF_LOST_ARGUMENTS], arguments);
    NPUPROF_STORE_RELEASE_(&o->next, count + 1);
    NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)NPUPROF_CHUNK_FREE);
    NPUPROF_STORE_RELEASE_(&o->count, count);
    NPUPROF_STORE_RELEASE_(&o->next, (uint64_t)0);
    return chunk;
}

/* By cause: is a whole span or event lost? */
#define NPUPROF_WHOLE_(name, text, whole) whole,
static const bool npuprof_chunk_is_whole_loss_[] = { NPUPROF_LOSSES(NPUPROF_WHOLE_) };
#undef NPUPROF_WHOLE_

/* Spans and events that were overwritten in the first `chunks` chunks of an arena. */
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

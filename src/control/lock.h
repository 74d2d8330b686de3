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

/* Does this thread drain, or read, further up its stack? Then others wait for it, and it for nobody. */
static bool npuprof_is_waited_for_(void)
{
    const uintptr_t me = npuprof_me_();
    return NPUPROF_LOAD_(&npuprof_s_.drainer) == me || NPUPROF_LOAD_(&npuprof_s_.writer) == me;
}
/* Is there one to wait for? */
static bool npuprof_may_wait_(void) { return NPUPROF_LOAD_SEQ_(&npuprof_s_.drainer) || NPUPROF_LOAD_SEQ_(&npuprof_s_.frozen); }

/* One reader at a time: they share the scratch, and nothing is recycled under them. False: this thread is one already (a sink that
   calls back, a signal handler), or calls from the sink of NPUPROF_STREAM. */
static bool npuprof_lock_scratch_(void)
{
    npuprof_state_ *const s = &npuprof_s_;
    const uintptr_t me = npuprof_me_();
    if (!npuprof_is_ready_() || NPUPROF_LOAD_(&s->drainer) == me) return false;
    const int whole = npuprof_os_begin_whole_();
    for (;;) {
        uintptr_t nobody = 0;
        if (NPUPROF_CAS_(&s->writer, &nobody, me)) break;
        if (nobody == me) {
            npuprof_os_end_whole_(whole);
            return false;
        }
        npuprof_os_yield_();
    }
    s->writer_whole = whole;
    NPUPROF_STORE_SEQ_(&s->frozen, 1);
    /* Why this ends: a thread that recycles has its signals held, or is the drainer, which does not come here. */
    while (NPUPROF_LOAD_SEQ_(&s->recycling)) npuprof_os_yield_();
    return true;
}
static void npuprof_unlock_scratch_(void)
{
    NPUPROF_ADD_SEQ_(&npuprof_s_.exchanging, 1);       /* chunks may be free now, or be taken again */
    npuprof_given_back_();
    NPUPROF_STORE_SEQ_(&npuprof_s_.frozen, 0);
    npuprof_exchanged_();
    const int whole = npuprof_s_.writer_whole;
    NPUPROF_STORE_RELEASE_(&npuprof_s_.writer, (uintptr_t)0);
    npuprof_os_end_whole_(whole);
}

NPUPROF_API_ void npuprof_clear(void)
{
    if (!npuprof_lock_scratch_()) return;
    npuprof_header_ *h = npuprof_s_.header;
    npuprof_slot_ *mine = npuprof_my_slot_ == &npuprof_no_slot_ ? NULL : npuprof_enter_();
    NPUPROF_STORE_(&h->clear_ticks, npuprof_clock_());
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) NPUPROF_STORE_(&h->lost[i], 0);
    NPUPROF_STORE_(&h->streamed, 0);
    for (uint32_t i = 0, chunks = NPUPROF_LOAD_ACQUIRE_(&h->chunk_next); i < chunks; i++) NPUPROF_STORE_(&npuprof_overwritten_at_(h, i)->count, 0);
    for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&h->slot_first); at; at = npuprof_slot_at_(at)->head.next_slot)
        NPUPROF_STORE_(&npuprof_slot_at_(at)->head.lost, 0);
    (void)npuprof_retire_idle_();
    npuprof_chunk_ *chunk = mine ? npuprof_detach_chunk_(mine) : NULL;
    if (chunk) npuprof_free_chunk_(chunk);
    while ((chunk = npuprof_unqueue_()) != NULL) npuprof_free_chunk_(chunk);
    if (mine) npuprof_leave_(mine);
    npuprof_unlock_scratch_();
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../format/arena.h"
#include "../arena/state.h"
#include "../clock/host.h"
#include "../arena/table.h"
#include "../arena/layout.h"
#include "../arena/chunks.h"
#include "../arena/slots.h"
#include "../arena/thread.h"
#include "../record/end.h"
#include "../record/objects.h"
#include "../record/device.h"
#include "../control/start.h"
#include "../control/attach.h"

/* The end of a thread, and the empty trace with which the child of a fork begins.

   A thread that ends closes its open spans and gives its slot back. Another thread may take the slot then.
   The child of a fork has one thread: every word that names a thread is set back. Names, metadata and devices
   stay.

   Data: npuprof_setup_thread_, of setup.h, and npuprof_fork_noted_, by a thread that forks and by its child.
   In the child, npuprof_arena_ and the arena, and what lower rooms know of threads or of an arena that is no
   more. A thread's end changes that thread's slot only.

   This part may not know formats, nor files. */

static uintptr_t npuprof_setup_thread_;        /* that sets up; written by it, atomic */

/* Waits for the thread that sets up, for some seconds at most. before: the state that was found.
   Why not if it is the calling thread: this is a signal handler then, and the set-up goes on behind it. */
static npuprof_result npuprof_setup_wait_(uint32_t before)
{
    const uintptr_t me = npuprof_slot_me_();
    for (unsigned n = 0; before == 1 && NPUPROF_LOAD_(&npuprof_setup_thread_) != me && n < 100000; n++) {
        npuprof_os_yield_();
        before = NPUPROF_LOAD_ACQUIRE_(&npuprof_record_setup_);
    }
    return before == 2 ? NPUPROF_OK : NPUPROF_ERR_STARTED;
}

/* Lays an arena out, behind which everything that the process knows about another one is void. */
static bool npuprof_process_lay_out_(void *memory, size_t bytes, int when_full, bool fresh)
{
    NPUPROF_CALLS_(npuprof_record_objects_.newest = 0;)
    return npuprof_arena_lay_out_(memory, bytes, when_full, fresh);
}

/* Ends the slot of a thread that is over. */
static void npuprof_process_end_slot_(npuprof_slot_ *slot)
{
    for (npuprof_slot_ *at = slot; at; at = at->nested) {
        npuprof_record_unwind_(at, at->open, npuprof_clock_());
        NPUPROF_STORE_(&at->busy, 0);
    }
    npuprof_slot_give_back_(slot);
}

/* Runs at the end of the thread that has this slot. */
static void npuprof_process_thread_ends_(void *user)
{
    if ((uintptr_t)user & 1) return;       /* it had none (arena/thread.h) */
    (void)npuprof_slot_become_(NULL);
    npuprof_process_end_slot_((npuprof_slot_ *)user);
}

/* Empties the entries of the table that are about the parent: pauses, clock anchors, counts of devices. */
static void npuprof_fork_empty_table_(npuprof_header_ *h)
{
    const uint32_t skip = (uint32_t)NPUPROF_ENTRY_SKIP << 24;
    for (uint32_t at = h->table_first; (at = npuprof_table_past_head_(h, at)) < h->table_used;) {
        npuprof_entry_ *const e = (npuprof_entry_ *)npuprof_table_entry_at_(at / NPUPROF_TABLE_UNIT_);
        /* 0: a thread of the parent was adding this entry. It takes one unit. */
        if (!e->type_units) e->type_units = 1;
        const uint32_t type = e->type_units >> 24, units = e->type_units & 0xFFFFFFu;
        const bool goes = !type || type == NPUPROF_ENTRY_PAUSE || type == NPUPROF_ENTRY_ANCHORS;
        if (goes) e->type_units = units | skip;
        if (type == NPUPROF_ENTRY_RECORDS) {
            npuprof_records_entry_ *r = (npuprof_records_entry_ *)(void *)e;
            memset(r->counts, 0, sizeof r->counts);
        }
        if (type == NPUPROF_ENTRY_DEVICE) {
            npuprof_device_entry_ *d = (npuprof_device_entry_ *)(void *)e;
            memset(d->notes, 0, sizeof d->notes);
            memset(&d->overflow, 0, sizeof d->overflow);
            d->overflow_used = d->first_anchors = d->last_anchors = 0;
        }
        at += units * NPUPROF_TABLE_UNIT_;
    }
}

/* Moves the pages of the table to the first chunks, whose records are not needed any more. Returns how many
   those are. */
static uint32_t npuprof_fork_gather_pages_(void)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    const size_t words = s->header->chunk_bytes / sizeof(uint64_t);
    uint32_t page = 0;
    for (; page < s->page_count && s->pages[page]; page++) {
        uint64_t *const to = (uint64_t *)(void *)npuprof_chunk_at_(page);
        uint64_t *const from = (uint64_t *)(void *)npuprof_chunk_at_(s->pages[page] - 1);
        if (from == to) continue;
        for (uint32_t later = page + 1; later < s->page_count; later++)
            if (s->pages[later] == page + 1) s->pages[later] = s->pages[page];
        s->pages[page] = page + 1;
        for (size_t i = 0; i < words; i++) {
            const uint64_t was = to[i];
            to[i] = from[i];
            from[i] = was;
        }
    }
    return page;
}

/* Empties the child's arena and begins a trace in it. Names, metadata and devices stay. */
static void npuprof_fork_start_over_(void)
{
    npuprof_header_ *h = npuprof_arena_.header;
    npuprof_fork_empty_table_(h);
    memset(h->lost, 0, sizeof h->lost);
    memset(npuprof_arena_.queue, 0, (size_t)h->queue_slots * 4);
    memset(npuprof_chunk_overwritten_at_(h, 0), 0, (size_t)h->chunk_count * sizeof(npuprof_overwritten_));
    h->clear_ticks = h->streamed = 0;
    h->queue_head = h->queue_tail = h->slot_first = h->threads = 0;
    h->chunk_next = npuprof_fork_gather_pages_();
    npuprof_arena_.chunk_free = 0;
    npuprof_arena_.slots_free = npuprof_arena_.slots_left = npuprof_arena_.slots_swept = 0;
    npuprof_arena_.forgotten = 0;
    npuprof_arena_begin_trace_(h);
    npuprof_control_advance_generation_();
}

/* What the child of a fork goes on from. */
static struct {
    uint64_t position;             /* where the streams of its slots begin */
    uint64_t by_hand;              /* PROF_BEGINs that are open. Their PROF_ENDs end nothing in the child */
    uint64_t mark;                 /* of the two, and of the thread that noted them */
} npuprof_fork_noted_;

static uint64_t npuprof_fork_mark_(uint64_t position, uint64_t by_hand)
{
    return ((position ^ by_hand << 40) * UINT64_C(0x9E3779B97F4A7C15)) ^ (uint64_t)npuprof_slot_me_();
}

/* Runs before a fork, in the thread that forks. Why before it: in a mapped arena the parent goes on while the
   child begins. Why a mark: two threads may fork at the same moment, and what both have noted is nobody's. */
static void npuprof_fork_note_(void)
{
    const npuprof_slot_ *const mine = npuprof_slot_mine_();
    /* Why positions go on: scopes that the parent opened on this thread's stack also end in the child. Their
       tokens must not equal those of the child's spans. Why + 1: tokens of the first chunk are 1 ahead,
       because no token is 0. */
    const uint64_t position =
        mine->cursor ? npuprof_slot_position_(mine) + 1 : (uint64_t)npuprof_arena_.first_position;
    const uint64_t by_hand = (uint64_t)mine->by_hand_count + npuprof_slot_skipped_();
    NPUPROF_STORE_(&npuprof_fork_noted_.position, position);
    NPUPROF_STORE_(&npuprof_fork_noted_.by_hand, by_hand);
    NPUPROF_STORE_(&npuprof_fork_noted_.mark, npuprof_fork_mark_(position, by_hand));
}

/* Sets back, in the child, every word that names a thread of the parent. */
static void npuprof_process_forget_threads_(void)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    s->writer = s->drainer = 0;
    s->recycling = s->frozen = s->exchanging = s->failed = s->hopeless = s->keeping_time = 0;
    NPUPROF_CALLS_(npuprof_record_objects_.listing = 0;)
    /* Why none is drained: a device is the parent's, and so are its records. */
    npuprof_record_drains_.first = NULL;
    npuprof_record_drains_.holder = 0;
    s->slots_checking = s->slots_taken = s->slots_checked = 0;
    npuprof_control_.paused = 0;
    NPUPROF_ATTACH_(npuprof_control_attach_forget_();)
    if (npuprof_control_.telling != npuprof_slot_me_()) npuprof_control_.telling = 0;
    const uint64_t mark = npuprof_fork_mark_(npuprof_fork_noted_.position, npuprof_fork_noted_.by_hand);
    if (npuprof_fork_noted_.mark != mark) npuprof_fork_note_();
    s->first_position = npuprof_fork_noted_.position;
    (void)npuprof_slot_become_(NULL);
    npuprof_slot_set_skipped_((uint32_t)npuprof_fork_noted_.by_hand);
}

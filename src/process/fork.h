#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../clock/host.h"
#include "../arena/layout.h"
#include "../arena/chunks.h"
#include "../arena/slots.h"
#include "../arena/thread.h"
#include "../record/end.h"
#include "../control/start.h"
#include "../control/capture.h"
#include "../control/path.h"
#include "../control/environment.h"
#include "../write/stream.h"

/* The end of a thread, and the child of a fork: two functions that setup.h hands to os/, and the first record
   of the child.

   A thread that ends closes its open spans and gives its slot back. Another thread may take the slot then.

   In the child of a fork only the calling thread is left. Every word that names a thread is set back, and the
   child begins with an empty arena; the table of names stays. Memory is emptied at once. A mapped file is the
   parent's, so npuprof_setup_state_ becomes 3, and the first record moves the child to a file of its own
   (npuprof_fork_leave_parent_).

   Data: all of npuprof_s_ and of the arena. In the child, nobody else writes it: the hook runs before fork()
   returns, and state 3 is left by one thread, as in setup.h. A thread's end changes that thread's slot only.

   This part may not know formats. */

/* Runs at the end of the thread that has this slot. */
static void npuprof_process_thread_ends_(void *user)
{
    npuprof_slot_ *slot = (npuprof_slot_ *)user;
    if (slot != npuprof_slot_mine_) return;
    npuprof_slot_mine_ = &npuprof_slot_none_;
    for (npuprof_slot_ *at = slot; at; at = at->nested) {
        npuprof_record_unwind_(at, at->open, npuprof_clock_());
        NPUPROF_STORE_(&at->busy, 0);
    }
    NPUPROF_STORE_RELEASE_(&slot->owned, 0);
}

/* Empties the entries of the table that are about the parent: pauses, clock anchors, counts of devices. */
static void npuprof_fork_empty_table_(npuprof_header_ *h)
{
    const uint32_t end = h->table_used / h->table_unit;
    for (uint32_t id = (h->bucket_count * 4 + h->table_unit - 1) / h->table_unit; id < end;) {
        npuprof_entry_ *e = (npuprof_entry_ *)npuprof_table_entry_at_(id);
        /* 0: a thread of the parent was adding this entry. It takes one unit, and no type. */
        if (!e->type_units) e->type_units = 1;
        const uint32_t type = e->type_units >> 24, units = e->type_units & 0xFFFFFFu;
        if (type == NPUPROF_ENTRY_PAUSE || type == NPUPROF_ENTRY_ANCHORS) e->type_units = units;
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
        id += units;
    }
}

/* Empties the child's arena and begins a trace in it. Names, metadata and devices stay. */
static void npuprof_fork_start_over_(void)
{
    npuprof_header_ *h = npuprof_s_.header;
    npuprof_fork_empty_table_(h);
    memset(h->lost, 0, sizeof h->lost);
    memset(npuprof_s_.queue, 0, (size_t)h->queue_slots * 4);
    memset(npuprof_chunk_overwritten_at_(h, 0), 0, (size_t)h->chunk_count * sizeof(npuprof_overwritten_));
    h->clear_ticks = h->streamed = 0;
    h->queue_head = h->queue_tail = h->chunk_next = h->slot_first = h->threads = 0;
    npuprof_s_.chunk_free = 0;
    npuprof_arena_begin_trace_(h);
    npuprof_control_advance_generation_();
}

/* Runs in the child of a fork. */
static void npuprof_fork_in_child_(void)
{
    npuprof_arena_state_ *s = &npuprof_s_;
    if (npuprof_setup_state_ != 2) return;
    /* Why not always: a daemon forks before it records anything, and keeps the paths as they are. */
    s->forked = s->forked || s->started || s->write_at_exit || s->mapped_bytes || s->header->threads;
    s->writer = s->drainer = 0;
    s->recycling = s->frozen = s->exchanging = s->failed = s->keeping_time = s->listing = 0;
    s->paused = 0;
    if (s->armed) npuprof_capture_start_over_(s->held & NPUPROF_HOLD_COMMAND_);
    /* Why positions go on: scopes that the parent opened on this thread's stack also end in the child. Their
       tokens must not equal those of the child's spans. Why + 1: tokens of the first chunk are 1 ahead,
       because no token is 0. */
    const npuprof_slot_ *const mine = npuprof_slot_mine_;
    if (mine->cursor) s->first_position = npuprof_slot_position_(mine) + 1;
    npuprof_slot_mine_ = &npuprof_slot_none_;
    npuprof_stream_forget_();
    if (s->mapped_bytes) {
        /* Why the file is not made now: most children only call exec, and would leave an empty one. */
        npuprof_setup_state_ = 3;
        npuprof_control_advance_generation_();
    } else {
        npuprof_fork_start_over_();
    }
    npuprof_control_set_gate_();
}

/* Makes npuprof_s_ point to the arena that was copied to this memory. */
static void npuprof_fork_move_to_(void *memory)
{
    npuprof_arena_state_ *s = &npuprof_s_;
    s->base = (uint8_t *)memory;
    s->header = (npuprof_header_ *)memory;
    NPUPROF_STORE_(&npuprof_lost_, &s->header->lost[0]);
    s->table = s->base + s->header->table_offset;
    s->buckets = (uint32_t *)(void *)s->table;
    s->queue = (uint32_t *)(void *)(s->base + s->header->queue_offset);
    s->chunks = s->base + s->header->chunks_offset;
    if (memory == npuprof_static_arena_) {
        const size_t room =
            (sizeof npuprof_static_arena_ - s->header->chunks_offset) / s->header->chunk_bytes;
        if (s->header->chunk_count > room) s->header->chunk_count = (uint32_t)room;
    }
}

/* Leaves the parent's mapped file, at the child's first record. The child moves to a file of its own; if it
   cannot be made, to memory of the same size; if there is none, to the static arena. Header and table are
   copied, if they fit. */
static void npuprof_fork_leave_parent_(void)
{
    npuprof_arena_state_ *s = &npuprof_s_;
    uint8_t *const old = s->base;
    const npuprof_header_ *h = s->header;
    const size_t bytes = s->mapped_bytes;
    void *memory = NULL;
    (void)npuprof_os_close_(s->mapped_fd);
    s->mapped_bytes = 0;
    const int error = npuprof_path_map_arena_(NULL, bytes, true, &memory);
    if (error) memory = npuprof_os_memory_(bytes);
    if (!memory) memory = npuprof_static_arena_;
    if (memory != npuprof_static_arena_ || h->chunks_offset <= sizeof npuprof_static_arena_) {
        memcpy(memory, old, h->chunks_offset);
        npuprof_fork_move_to_(memory);
        npuprof_fork_start_over_();
    } else {
        (void)npuprof_arena_lay_out_(memory, sizeof npuprof_static_arena_, s->when_full, false);
    }
    npuprof_os_unmap_(old, bytes);
    if (error) npuprof_env_refuse_("NPUPROF_ARENA_PATH", s->arena_path, strerror(error));
}

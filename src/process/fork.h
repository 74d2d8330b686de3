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
#include "restart.h"

/* The child of a fork: a function that setup.h hands to os/, and the first record of the child.

   In the child of a fork only the calling thread is left. Every word that names a thread is set back, and the
   child begins with an empty arena; the table of names stays. Memory is emptied at once. A mapped file is the
   parent's, so npuprof_setup_state_ becomes 3, and the first record moves the child to a file of its own
   (npuprof_fork_leave_parent_).

   Data: all of npuprof_s_ and of the arena. In the child, nobody else writes it: the hook runs before fork()
   returns, and state 3 is left by one thread, as in setup.h.

   This part may not know formats. */

/* Runs in the child of a fork. */
static void npuprof_fork_in_child_(void)
{
    npuprof_arena_state_ *s = &npuprof_s_;
    if (npuprof_setup_state_ != 2) return;
    /* Why not always: a daemon forks before it records anything, and keeps the paths as they are. */
    s->forked = s->forked || s->started || s->write_at_exit || s->mapped_bytes || s->header->threads;
    npuprof_process_forget_threads_();
    if (s->armed) npuprof_capture_start_over_(s->held & NPUPROF_HOLD_COMMAND_);
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

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
   parent's, so npuprof_record_setup_ becomes 3, and the first record moves the child to a file of its own
   (npuprof_fork_leave_parent_).

   Data: all of npuprof_arena_ and of the arena. In the child, nobody else writes it: the hook runs before
   fork() returns, and state 3 is left by one thread, as in setup.h.

   This part may not know formats. */

/* Runs in the child of a fork. */
static void npuprof_fork_in_child_(void)
{
    npuprof_arena_state_ *s = &npuprof_arena_;
    if (npuprof_record_setup_ != 2) return;
    /* Why not always: a daemon forks before it records anything, and keeps the paths as they are. */
    const bool records = NPUPROF_LOAD_(&npuprof_control_.started) || s->header->threads;
    if (records || npuprof_path_output_.at_exit || npuprof_path_arena_.bytes)
        npuprof_path_output_.forked = true;
    npuprof_process_forget_threads_();
    if (npuprof_control_.armed) npuprof_capture_start_over_(npuprof_control_.held & NPUPROF_HOLD_COMMAND_);
    npuprof_stream_forget_();
    if (npuprof_path_arena_.bytes) {
        /* Why the file is not made now: most children only call exec, and would leave an empty one. */
        npuprof_record_setup_ = 3;
        npuprof_control_advance_generation_();
    } else {
        npuprof_fork_start_over_();
    }
    npuprof_control_set_gate_();
}

/* Makes npuprof_arena_ point to the arena that was copied to this memory. */
static void npuprof_fork_move_to_(void *memory)
{
    npuprof_arena_state_ *s = &npuprof_arena_;
    npuprof_arena_use_(memory);
    if (memory == npuprof_arena_static_) {
        const size_t room =
            (sizeof npuprof_arena_static_ - s->header->chunks_offset) / s->header->chunk_bytes;
        if (s->header->chunk_count > room) s->header->chunk_count = (uint32_t)room;
    }
}

/* Copies header and table of the parent's arena, whose threads go on, to this memory of so many bytes. The
   table's pages come to the first chunks. False: they do not fit. */
static bool npuprof_fork_copy_names_(uint8_t *memory, size_t bytes)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    const npuprof_header_ *const h = s->header;
    uint32_t *const copy = (uint32_t *)(void *)(memory + h->table_offset);
    const size_t buckets = (size_t)((uint8_t *)s->buckets - s->base);
    const size_t behind_them = buckets + (size_t)s->bucket_count * 4;
    if (h->chunks_offset > bytes) return false;
    /* Why in this order: what leads to a name before the name, whose thread went the other way. */
    memcpy(memory + buckets, s->buckets, behind_them - buckets);
    (void)NPUPROF_LOAD_SEQ_(&h->table_used);
    memcpy(memory, s->base, buckets);
    (void)NPUPROF_LOAD_SEQ_(&h->table_used);
    memcpy(memory + behind_them, s->base + behind_them, h->chunks_offset - behind_them);
    const uint32_t used = NPUPROF_LOAD_ACQUIRE_(&h->table_used);
    const uint32_t behind = used > h->table_bytes ? used - h->table_bytes : 0;
    const uint32_t pages = (behind + h->chunk_bytes - 1) / h->chunk_bytes;
    if (h->chunks_offset + (uint64_t)pages * h->chunk_bytes > bytes) return false;
    for (uint32_t i = 0; i < pages; i++)
        memcpy(memory + h->chunks_offset + (size_t)i * h->chunk_bytes, npuprof_chunk_at_(s->pages[i] - 1),
               h->chunk_bytes);
    for (uint32_t i = 0; i < s->page_count; i++) copy[i] = i < pages ? i + 1 : 0;
    npuprof_header_ *const to = (npuprof_header_ *)(void *)memory;
    to->table_used = used;
    /* Why these again: what was copied may have the newest numbers, which nothing else may get. */
    to->sites = NPUPROF_LOAD_(&h->sites);
    to->devices = NPUPROF_LOAD_(&h->devices);
    return true;
}

/* Leaves the parent's mapped file, at the child's first record. The child moves to a file of its own; if it
   cannot be made, to memory of the same size; if there is none, to the static arena. Header and table are
   copied, if they fit. */
static void npuprof_fork_leave_parent_(void)
{
    npuprof_arena_state_ *s = &npuprof_arena_;
    uint8_t *const old = s->base;
    const size_t bytes = npuprof_path_arena_.bytes;
    void *memory = NULL;
    npuprof_os_close_held_(npuprof_path_arena_.fd, npuprof_path_arena_.file);
    npuprof_path_arena_.bytes = 0;
    const int error = npuprof_path_map_arena_(NULL, bytes, true, &memory);
    if (error) memory = npuprof_os_memory_(bytes);
    if (!memory) memory = npuprof_arena_static_;
    const size_t room = memory == npuprof_arena_static_ ? sizeof npuprof_arena_static_ : bytes;
    if (npuprof_fork_copy_names_((uint8_t *)memory, room)) {
        npuprof_fork_move_to_(memory);
        npuprof_fork_start_over_();
    } else {
        (void)npuprof_process_lay_out_(memory, sizeof npuprof_arena_static_, s->when_full, false);
    }
    npuprof_os_unmap_(old, bytes);
    if (error) npuprof_env_refuse_("NPUPROF_ARENA_PATH", npuprof_path_arena_.pattern, strerror(error));
}

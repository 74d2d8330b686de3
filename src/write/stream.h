#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "../os/common.h"
#include "../arena/state.h"
#include "../arena/anchors.h"
#include "../arena/chunks.h"
#include "../record/enter.h"
#include "../control/start.h"
#include "../control/lock.h"
#include "../control/path.h"
#include "../read/image.h"
#include "../read/threads.h"
#include "../read/survey.h"
#include "text.h"
#include "block.h"

/* NPUPROF_STREAM: full chunks go to a sink, the program's or a file of our own, while threads record.
   Data: npuprof_stream_, and the chunk in the sink. One thread at a time touches them: the drainer (it
   has put itself into npuprof_arena_.drainer), or who has the readers' lock, for which drainers wait.
   header.streamed counts the spans and events that the sink took; header.lost those that it did not.
   This part may wait for the sink, and may not wait for a recording thread. */

static struct {
    npuprof_sink sink;             /* the program's, or our own file's; write is NULL: none yet */
    bool begun;                    /* the header is out */
    bool ends;                     /* the program ends */
    /* Nothing more can be sent: a part of a block is out and cannot be taken back, or the program has closed
       our file. */
    bool broken;
    int fd;                        /* of our own file; -1: there is none */
    uint64_t file;                 /* which that is (npuprof_os_file_()) */
    uint32_t table_sent;           /* bytes of the table that are out */
    uint64_t sent;                 /* bytes of all that is out and whole */
    uint32_t chunks;               /* chunks sent since all slots, the table and the header were */
    uint64_t left;                 /* events of open chunks that the last npuprof_flush() could not send */
    npuprof_result result;         /* the first failure since the last npuprof_flush() */
} npuprof_stream_ = { { NULL, NULL }, false, false, false, -1, 0, 0, 0, 0, 0, NPUPROF_OK };

/* May the next block go out: has the program left us the number of our own file? */
static bool npuprof_stream_is_ours_(void)
{
    return npuprof_stream_.fd < 0 || npuprof_os_is_still_(npuprof_stream_.fd, npuprof_stream_.file);
}

/* Call in a child of fork, where the stream is still the parent's. A file is closed, and the child will
   create its own. A sink of the program stays with the parent: the child keeps its oldest records. */
static void npuprof_stream_forget_(void)
{
    if (npuprof_stream_.fd >= 0) npuprof_os_close_held_(npuprof_stream_.fd, npuprof_stream_.file);
    else if (npuprof_stream_.sink.write && npuprof_arena_.when_full == NPUPROF_STREAM)
        npuprof_arena_.when_full = NPUPROF_KEEP_OLDEST;
    memset(&npuprof_stream_, 0, sizeof npuprof_stream_);
    npuprof_stream_.fd = -1;
}

/* Creates the file that output_path names and makes it the sink. Returns 0 or an errno value. */
static int npuprof_stream_open_file_(void)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    const char *const pattern = npuprof_path_output_.pattern;
    npuprof_path_ path, aside;
    int *const fd = &npuprof_stream_.fd, error;
    if (npuprof_path_expand_(h, pattern, 0, &path) && npuprof_os_in_place_(path.text)) {
        error = npuprof_os_open_(path.text, fd);
    } else {
        error = npuprof_path_create_growing_(h, pattern, npuprof_path_output_.forked, fd, &path, &aside);
        if (!error && (error = npuprof_os_lock_(*fd)) != 0) {
            npuprof_path_discard_(*fd, &path, &aside);
            *fd = -1;
        }
    }
    npuprof_stream_.file = npuprof_os_file_(*fd);
    npuprof_stream_.sink.write = error ? NULL : npuprof_os_write_;
    npuprof_stream_.sink.user = fd;
    return error;
}

/* Notes a failure. From our own file, what was written since the last success is taken back, so the next
   block may succeed. */
static void npuprof_stream_fail_(int error)
{
    if (npuprof_stream_.fd >= 0 && !npuprof_stream_.broken)
        npuprof_stream_.broken =
            !npuprof_stream_is_ours_() || !npuprof_os_take_back_(npuprof_stream_.fd, npuprof_stream_.sent);
    if (npuprof_stream_.result == NPUPROF_OK) npuprof_stream_.result = npuprof_os_result_(error);
}

/* Sends the new part of the table and one chunk, or none. With `all` it also sends all slots, the whole table
   and the header, which without a chunk ends the stream. False: the sink failed. */
static bool npuprof_stream_send_(const npuprof_image_ *im, const npuprof_chunk_ *chunk, bool all)
{
    npuprof_block_writer_ b;
    char buffer[1024];
    uint32_t table_sent = npuprof_stream_.table_sent;
    int error = npuprof_stream_.broken || !npuprof_stream_is_ours_() ? EPIPE
        : npuprof_stream_.sink.write ? 0 : npuprof_stream_open_file_();
    if (!error) {
        npuprof_block_begin_writer_(&b, npuprof_stream_.sink, im->h->chunk_bytes, buffer, sizeof buffer);
        if (!npuprof_stream_.begun) npuprof_block_put_header_(&b, im);
        if (all) npuprof_block_put_slots_(&b, im);
        if (all || table_sent != im->table_used)
            table_sent = npuprof_block_put_table_(&b, im, all ? 0 : table_sent);
        const uint32_t closed = chunk ? NPUPROF_CLOSED_NOT_
            : npuprof_stream_.ends ? NPUPROF_CLOSED_BY_END_ : NPUPROF_CLOSED_BY_FLUSH_;
        if (all) npuprof_block_put_header_piece_(&b, im, closed, npuprof_stream_.left);
        /* Why last: a chunk that fails is counted as lost, so nothing behind it may fail. */
        if (chunk) npuprof_block_put_chunk_(&b, im, chunk);
        npuprof_out_flush_(&b.out);
        error = b.out.error;
    }
    if (error) {
        npuprof_stream_fail_(error);
        return false;
    }
    npuprof_stream_.begun = true;
    npuprof_stream_.sent += b.put;
    npuprof_stream_.table_sent = table_sent;
    npuprof_stream_.chunks = all ? 0 : npuprof_stream_.chunks + 1;
    return true;
}

/* Hands the chunks that are queued by now to the sink, oldest first, and frees them. False: there were
   none. */
static bool npuprof_stream_drain_locked_(void)
{
    npuprof_header_ *const h = npuprof_arena_.header;
    npuprof_chunk_ *chunk;
    uint64_t arguments;
    bool any = false;
    npuprof_stream_.left = 0;
    /* Why only those: while other threads record, the queue may never be empty. */
    const uint32_t end = NPUPROF_LOAD_ACQUIRE_(&h->queue_tail);
    while ((int32_t)(end - NPUPROF_LOAD_ACQUIRE_(&h->queue_head)) > 0 &&
           (chunk = npuprof_chunk_unqueue_()) != NULL) {
        npuprof_image_ im;
        npuprof_image_init_live_(&im);
        const uint64_t events = npuprof_chunk_count_events_(h, chunk, &arguments);
        /* Why all now and then: clock anchors and names of threads change, and the process may be killed. */
        const bool all = npuprof_stream_.chunks > 64 * (1 + im.table_used / h->chunk_bytes);
        if (npuprof_stream_send_(&im, chunk, all)) NPUPROF_ADD_(&h->streamed, events);
        else NPUPROF_ADD_(&h->lost[NPUPROF_LOST_SINK], events);
        npuprof_chunk_free_(chunk);
        any = true;
    }
    return any;
}

/* Makes this thread the drainer and drains. False: nothing was freed; another thread drains, or a reader has
   the chunks. */
static bool npuprof_stream_drain_(void)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    uintptr_t nobody = 0;
    bool any = false;
    const int cancel = npuprof_os_hold_cancel_();
    if (NPUPROF_CAS_(&s->drainer, &nobody, npuprof_slot_me_())) {
        /* Why: this runs inside a macro, which must not change the program's errno */
        const int error_before = errno;
        if (npuprof_chunk_begin_recycling_()) {
            any = npuprof_stream_drain_locked_();
            if (any) npuprof_exchange_begin_round_();
            npuprof_chunk_end_recycling_();
        }
        errno = error_before;
        NPUPROF_STORE_RELEASE_(&s->drainer, (uintptr_t)0);
    }
    npuprof_os_release_cancel_(cancel);
    return any;
}

NPUPROF_API_ npuprof_result npuprof_flush(void)
{
    npuprof_image_ im;
    uint64_t arguments;
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (npuprof_arena_.when_full != NPUPROF_STREAM) return NPUPROF_OK;
    if (!npuprof_reader_lock_()) return npuprof_reader_result_();
    (void)npuprof_stream_drain_locked_();
    npuprof_arena_renew_last_anchor_();
    npuprof_image_open_live_(&im);
    const npuprof_slot_head_ *slot = NULL;
    while ((slot = npuprof_image_next_slot_(&im, slot)) != NULL)
        for (uint32_t at = slot->first_chunk; at; at = npuprof_image_next_chunk_(&im, at - 1))
            if (!npuprof_stream_send_(&im, npuprof_image_chunk_(&im, at - 1), false))
                npuprof_stream_.left +=
                    npuprof_chunk_count_events_(im.h, npuprof_chunk_at_(at - 1), &arguments);
    /* Why again: the chunks just sent may use names that are newer than the table that was sent. */
    im.table_used = NPUPROF_LOAD_ACQUIRE_(&im.h->table_used);
    (void)npuprof_stream_send_(&im, NULL, true);
    const npuprof_result r = npuprof_stream_.result;
    npuprof_stream_.result = NPUPROF_OK;
    npuprof_reader_unlock_();
    return r;
}

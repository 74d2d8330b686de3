#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../arena/time.h"
#include "../arena/chunks.h"
#include "../record/enter.h"
#include "../control/start.h"
#include "../control/lock.h"
#include "../read/image.h"
#include "../read/threads.h"
#include "../read/survey.h"
#include "text.h"
#include "image.h"

/* In a child of fork. The parent's sink is not its own: it keeps the oldest, unless the stream is a file, of which it takes another. */
static void npuprof_stream_forget_(void)
{
    if (npuprof_stream_.fd >= 0) {
        (void)npuprof_os_close_(npuprof_stream_.fd);
        npuprof_s_.sink.write = NULL;
    } else if (npuprof_s_.sink.write && npuprof_s_.when_full == NPUPROF_STREAM) {
        npuprof_s_.when_full = NPUPROF_KEEP_OLDEST;
    }
    memset(&npuprof_stream_, 0, sizeof npuprof_stream_);
    npuprof_stream_.fd = -1;
}

static int npuprof_stream_open_file_(void);

/* Sends what is new in the table, with `all` everything but the chunks, and a chunk: `own`, or a copy of number index - 1. False:
   the sink failed. Of our own file the part of a block that was written is taken back, so the next one may succeed. */
static bool npuprof_stream_send_(const npuprof_image_ *im, npuprof_chunk_ *own, uint32_t index, bool all)
{
    npuprof_arena_state_ *const s = &npuprof_s_;
    npuprof_block_writer_ b;
    char room[1024];
    uint32_t table_sent = npuprof_stream_.table_sent;
    int error = npuprof_stream_.broken ? EPIPE : s->sink.write ? 0 : npuprof_stream_open_file_();
    if (!error) {
        npuprof_block_begin_writer_(&b, s->sink, im->h->chunk_bytes, room, sizeof room);
        if (!npuprof_stream_.begun) npuprof_block_put_header_(&b, im);
        if (all) npuprof_block_put_slots_(&b, im);
        if (all || table_sent != im->table_used) table_sent = npuprof_block_put_table_(&b, im, all ? 0 : table_sent);
        if (all) npuprof_block_put_header_piece_(&b, im, !own);
        /* Why last: when the sink refuses a later block, it has not got the chunk. */
        if (own) npuprof_block_put_own_chunk_(&b, own);
        if (index) npuprof_block_put_chunk_(&b, im, index - 1);
        npuprof_out_flush_(&b.out);
        error = b.out.error;
    }
    if (!error) {
        npuprof_stream_.begun = true;
        npuprof_stream_.table_sent = table_sent;
        npuprof_stream_.chunks = all ? 0 : npuprof_stream_.chunks + 1;
        return true;
    }
    if (npuprof_stream_.fd >= 0 && !npuprof_stream_.broken)
        npuprof_stream_.broken = !npuprof_os_take_back_(npuprof_stream_.fd, npuprof_stream_.begun ? (sizeof(npuprof_header_) + 63) / 64 * 64 : 0, im->h->chunk_bytes);
    if (npuprof_stream_.result == NPUPROF_OK) npuprof_stream_.result = npuprof_os_result_(error);
    return false;
}

/* Hands the chunks that are retired by now to the sink, oldest first. False: there are none. */
static bool npuprof_stream_drain_locked_(void)
{
    npuprof_header_ *const h = npuprof_s_.header;
    npuprof_chunk_ *chunk;
    uint64_t arguments;
    bool any = false;
    /* Why an end: what is recorded meanwhile is for the next one, or this one would never be done. */
    const uint32_t end = NPUPROF_LOAD_ACQUIRE_(&h->queue_tail);
    while ((int32_t)(end - NPUPROF_LOAD_ACQUIRE_(&h->queue_head)) > 0 && (chunk = npuprof_chunk_unqueue_()) != NULL) {
        npuprof_image_ im;
        npuprof_image_init_live_(&im);
        const uint64_t events = npuprof_chunk_count_events_(h, chunk, &arguments);
        /* Why all of it now and then: anchors and thread names change, and the process may be killed. */
        const bool sent = npuprof_stream_send_(&im, chunk, 0, npuprof_stream_.chunks > 64 * (1 + im.table_used / h->chunk_bytes));
        if (sent) NPUPROF_ADD_(&h->streamed, events);
        else NPUPROF_ADD_(&h->lost[NPUPROF_LOST_SINK], events);
        npuprof_chunk_free_(chunk);
        any = true;
    }
    return any;
}
/* The same, unless somebody else does it or a reader holds the chunks. */
static bool npuprof_stream_drain_(void)
{
    npuprof_arena_state_ *const s = &npuprof_s_;
    uintptr_t nobody = 0;
    bool any = false;
    const int whole = npuprof_os_hold_cancel_();
    if (!NPUPROF_CAS_(&s->drainer, &nobody, npuprof_control_me_())) {
        npuprof_os_release_cancel_(whole);
        return false;
    }
    const int error_before = errno;        /* the program's, in the middle of which this runs */
    if (npuprof_chunk_begin_recycling_()) {
        any = npuprof_stream_drain_locked_();
        if (any) npuprof_exchange_begin_round_();
        npuprof_chunk_end_recycling_();
    }
    errno = error_before;
    NPUPROF_STORE_RELEASE_(&s->drainer, (uintptr_t)0);
    npuprof_os_release_cancel_(whole);
    return any;
}

/* npuprof_flush(); *left: spans and events that the sink did not take and that are in the arena still. */
static npuprof_result npuprof_stream_flush_(uint64_t *left)
{
    npuprof_image_ im;
    uint64_t arguments;
    *left = 0;
    if (!npuprof_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (npuprof_s_.when_full != NPUPROF_STREAM) return NPUPROF_OK;
    if (!npuprof_scratch_lock_()) return NPUPROF_ERR_ARGUMENT;
    (void)npuprof_stream_drain_locked_();
    npuprof_arena_renew_last_anchor_();
    npuprof_image_open_live_(&im);
    for (const npuprof_slot_head_ *slot = npuprof_image_next_slot_(&im, NULL); slot; slot = npuprof_image_next_slot_(&im, slot))
        for (uint32_t at = slot->first_chunk; at; at = npuprof_image_next_chunk_(&im, at - 1))
            if (!npuprof_stream_send_(&im, NULL, at, false)) *left += npuprof_chunk_count_events_(im.h, npuprof_chunk_at_(at - 1), &arguments);
    im.table_used = NPUPROF_LOAD_ACQUIRE_(&im.h->table_used);      /* of the copied records, too */
    (void)npuprof_stream_send_(&im, NULL, 0, true);
    const npuprof_result r = npuprof_stream_.result;
    npuprof_stream_.result = NPUPROF_OK;
    npuprof_scratch_unlock_();
    return r;
}

NPUPROF_API_ npuprof_result npuprof_flush(void)
{
    uint64_t left;
    return npuprof_stream_flush_(&left);
}

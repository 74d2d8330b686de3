#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../clock/host.h"
#include "../arena/chunks.h"
#include "../numbers/time.h"
#include "../read/image.h"
#include "../read/cursor.h"
#include "../read/threads.h"
#include "../read/survey.h"
#include "text.h"
#include "block.h"

/* The image of an arena, in one go: header, table, slots, chunks, and a last header that says it is complete.
   Threads go on recording meanwhile. What they add to chunks behind the place that was read is not in the
   image; the table is sent up to the newest name that a copied record may use.
   The caller has the readers' lock. */

/* The newest stamp in an open chunk of the live arena: the start of a record, or the end of a span; now, if a
   span is open. */
static uint64_t npuprof_write_newest_in_(const npuprof_image_ *im, const npuprof_chunk_ *chunk)
{
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    const uint32_t count = npuprof_block_whole_units_(im, chunk);
    uint64_t newest = 0;
    for (uint32_t n = 0; n < count; n++) {
        const uint64_t w0 = npuprof_unit_load_w0_(units + n), w1 = npuprof_unit_load_w1_(units + n);
        const uint32_t id = (uint32_t)w0 & NPUPROF_ID_MASK_;
        const bool moved = n < chunk->moved_units;
        if (id < NPUPROF_CONTROL_) {
            const npuprof_site_entry_ *const site = npuprof_table_site_at_(id);
            const bool span = npuprof_kind_nests_(site->head.a & 0xFF);
            if (span && w1 == NPUPROF_END_OPEN_) return npuprof_clock_in_order_();
            if (span) newest = npuprof_max_(newest, w1 & ~NPUPROF_END_CUT_);
            if (!moved) newest = npuprof_max_(newest, npuprof_chunk_start_ticks_(chunk, w0));
        }
        n += moved ? 1 : (uint32_t)npuprof_chunk_string_units_(w0);
    }
    return newest;
}

/* The newest stamp of the live arena. Only a slot's last chunk can hold it: open spans move to it. */
static uint64_t npuprof_write_newest_live_(const npuprof_image_ *im)
{
    const npuprof_slot_head_ *slot = NULL;
    uint64_t newest = 0;
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL) {
        /* Why the first one, too: a slot whose chunks were all taken away still has its last number. */
        const uint32_t index = NPUPROF_LOAD_ACQUIRE_(&slot->last_chunk);
        if (index && NPUPROF_LOAD_ACQUIRE_(&slot->first_chunk))
            newest = npuprof_max_(newest, npuprof_write_newest_in_(im, npuprof_image_chunk_(im, index - 1)));
    }
    return newest;
}

/* Writes the image of what the reader is to read. Returns 0 or an errno value. */
static int npuprof_write_image_locked_(npuprof_sink sink)
{
    const npuprof_slot_head_ *slot = NULL;
    npuprof_block_writer_ b;
    npuprof_image_ im;
    uint64_t few[512];
    npuprof_image_open_unread_(&im);
    npuprof_image_take_closing_anchor_(&im, im.next ? 0 : npuprof_write_newest_live_(&im));
    /* Why no more than 64 KiB: what is written is then still in the cache when the system copies it. Why also
       without: an image is the last thing that can be had where memory is short. */
    void *const pages = npuprof_os_memory_(65536);
    npuprof_block_begin_writer_(&b, sink, im.h->chunk_bytes, pages ? pages : few, pages ? 65536 : sizeof few);
    npuprof_block_put_header_(&b, &im);
    const uint32_t table_sent = npuprof_block_put_table_(&b, &im, 0);
    npuprof_block_put_slots_(&b, &im);
    while ((slot = npuprof_image_next_slot_(&im, slot)) != NULL)
        for (uint32_t at = slot->first_chunk; at; at = npuprof_image_next_chunk_(&im, at - 1)) {
            NPUPROF_PREFETCH_((uintptr_t)npuprof_image_chunk_(&im, at - 1) +
                              8 * (uintptr_t)im.h->chunk_bytes);
            npuprof_block_put_chunk_(&b, &im, npuprof_image_chunk_(&im, at - 1));
        }
    if (!im.next) {
        /* Why again: a record that was just copied may use a name that is newer than the table above. */
        im.table_used = NPUPROF_LOAD_ACQUIRE_(&im.h->table_used);
        if (table_sent != im.table_used) (void)npuprof_block_put_table_(&b, &im, table_sent);
    }
    const uint32_t closed = (uint32_t)npuprof_max_(im.h->closed, NPUPROF_CLOSED_BY_END_);
    npuprof_block_put_header_piece_(&b, &im, closed, 0);
    npuprof_out_flush_(&b.out);
    if (pages) npuprof_os_unmap_(pages, 65536);
    return b.out.error;
}

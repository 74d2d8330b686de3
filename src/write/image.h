#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../arena/chunks.h"
#include "../read/image.h"
#include "../read/cursor.h"
#include "../read/threads.h"
#include "../read/survey.h"
#include "text.h"
#include "block.h"

/* The image of an arena, in one go: header, table, slots, chunks, and a last header that says it is complete.
   Threads go on recording meanwhile. What they add to chunks behind the place that was read is not in the
   image; the table is sent up to the newest name that a copied record may use.
   Data: the caller holds the scratch, which is the buffer here. `next` in the heads of retired chunks is ours
   while we hold it (only readers use it), so it can carry the mark of a block. */

/* The newest stamp of the live arena. Only a slot's last chunk can hold it: open spans move to it. */
static uint64_t npuprof_write_newest_live_(const npuprof_image_ *im)
{
    const npuprof_slot_head_ *slot = NULL;
    npuprof_cursor_ c;
    npuprof_event_ ev;
    uint64_t last = 0;
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL) {
        npuprof_cursor_begin_slot_(&c, im, slot);
        if (c.chunk) npuprof_cursor_begin_chunk_(&c, NPUPROF_LOAD_ACQUIRE_(&slot->last_chunk));
        c.left = 1;
        while (npuprof_cursor_next_event_(&c, &ev)) last = npuprof_extent_newest_(last, &ev);
    }
    return last;
}

/* How many retired chunks lie side by side from chunk `at` (index + 1) on and follow each other in their
   slot, at most `limit`; *behind: the slot's chunk behind them. */
static uint32_t npuprof_write_count_adjacent_(const npuprof_image_ *im, uint32_t at, uint32_t limit,
                                              uint32_t *behind)
{
    uint32_t count = 0, next = at;
    while (next == at + count && count < limit) {
        const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, next - 1);
        NPUPROF_PREFETCH_((uintptr_t)chunk + 8 * (uintptr_t)im->h->chunk_bytes);
        if (NPUPROF_LOAD_ACQUIRE_(&chunk->state) != NPUPROF_CHUNK_RETIRED) break;
        /* Of an image that was read back the heads stay as they are: only those of a stream have the mark. */
        if (im->next && chunk->next != NPUPROF_BLOCK_MARK_) break;
        next = npuprof_image_next_chunk_(im, next - 1);
        count++;
    }
    *behind = next;
    return count;
}

/* Puts adjacent retired chunks from where they are: marks their heads as blocks, and links them again. */
static void npuprof_write_put_adjacent_(npuprof_block_writer_ *b, const npuprof_image_ *im, uint32_t at,
                                        uint32_t count, uint32_t behind)
{
    const bool is_live = !im->next;
    for (uint32_t i = 0; i < count && is_live; i++)
        NPUPROF_STORE_(&npuprof_chunk_at_(at - 1 + i)->next, NPUPROF_BLOCK_MARK_);
    npuprof_block_put_direct_(b, npuprof_image_chunk_(im, at - 1), (size_t)count * b->block_bytes);
    for (uint32_t i = 0; i < count && is_live; i++)
        NPUPROF_STORE_(&npuprof_chunk_at_(at - 1 + i)->next, i + 1 < count ? at + i + 1 : behind);
}

/* Puts a slot's chunks, `at` being index + 1 of the first.
   Why at least 64 KiB from where they are: below that a copy costs less than a call of the system. Why at
   most 256 KiB: the heads that were just marked are still in the cache when they are linked again. */
static void npuprof_write_put_chunks_(npuprof_block_writer_ *b, const npuprof_image_ *im, uint32_t at)
{
    enum { DIRECT_MIN = 65536, DIRECT_MAX = 262144 };
    while (at) {
        uint32_t behind;
        const uint32_t count = npuprof_write_count_adjacent_(im, at, DIRECT_MAX / b->block_bytes, &behind);
        if (count * b->block_bytes >= DIRECT_MIN) {
            npuprof_write_put_adjacent_(b, im, at, count, behind);
            at = behind;
        } else {
            npuprof_block_put_chunk_(b, im, at - 1);
            at = npuprof_image_next_chunk_(im, at - 1);
        }
    }
}

/* Writes the image of what the reader is to read. Returns 0 or an errno value. */
static int npuprof_write_image_locked_(npuprof_sink sink)
{
    const npuprof_slot_head_ *slot = NULL;
    npuprof_block_writer_ b;
    npuprof_image_ im;
    npuprof_image_open_unread_(&im);
    npuprof_image_take_closing_anchor_(&im, im.next ? 0 : npuprof_write_newest_live_(&im));
    npuprof_block_begin_writer_(&b, sink, im.h->chunk_bytes, npuprof_scratch_, sizeof npuprof_scratch_);
    npuprof_block_put_header_(&b, &im);
    const uint32_t table_sent = npuprof_block_put_table_(&b, &im, 0);
    npuprof_block_put_slots_(&b, &im);
    while ((slot = npuprof_image_next_slot_(&im, slot)) != NULL)
        npuprof_write_put_chunks_(&b, &im, slot->first_chunk);
    if (!im.next) {
        /* Why again: a record that was just copied may use a name that is newer than the table above. */
        im.table_used = NPUPROF_LOAD_ACQUIRE_(&im.h->table_used);
        if (table_sent != im.table_used) (void)npuprof_block_put_table_(&b, &im, table_sent);
    }
    npuprof_block_put_header_piece_(&b, &im, true);
    npuprof_out_flush_(&b.out);
    return b.out.error;
}

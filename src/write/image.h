#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/time.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../arena/chunks.h"
#include "../read/image.h"
#include "../read/cursor.h"
#include "../read/threads.h"
#include "../read/survey.h"
#include "text.h"

/* ---- Writing: the header, then blocks. One writer for files, sinks and streams. */

typedef struct npuprof_block_writer_ {
    npuprof_out_ out;
    uint32_t block_bytes, left;            /* left: of the block begun */
} npuprof_block_writer_;

static void npuprof_block_begin_writer_(npuprof_block_writer_ *b, npuprof_sink sink, uint32_t block_bytes, void *room, size_t room_bytes)
{
    memset(b, 0, sizeof *b);
    b->out.sink = sink;
    b->out.bytes = (char *)room;
    b->out.capacity = room_bytes;
    b->block_bytes = block_bytes;
}
static void npuprof_block_end_(npuprof_block_writer_ *b)
{
    static const char zeros[256] = { 0 };
    for (; b->left; b->left -= b->left < sizeof zeros ? b->left : (uint32_t)sizeof zeros)
        npuprof_out_put_(&b->out, zeros, b->left < sizeof zeros ? b->left : sizeof zeros);
}
static void npuprof_block_put_head_(npuprof_block_writer_ *b, npuprof_chunk_ head)
{
    npuprof_block_end_(b);
    head.next = NPUPROF_BLOCK_MARK_;
    npuprof_out_put_(&b->out, (const char *)&head, sizeof head);
    b->left = b->block_bytes - (uint32_t)sizeof head;
}
/* Words that other threads may be changing just now. count: a multiple of 8. */
static void npuprof_block_put_words_(npuprof_block_writer_ *b, const void *words, size_t count)
{
    for (const uint64_t *w = (const uint64_t *)words; count; w++, count -= 8) {
        const uint64_t v = NPUPROF_LOAD_(w);
        npuprof_out_put_(&b->out, (const char *)&v, 8);
    }
}

/* Pieces of a region: bytes from `at` to `end`, put one after the other. */
typedef struct npuprof_block_region_ { npuprof_block_writer_ *blocks; uint16_t state; uint64_t at, end; } npuprof_block_region_;
static void npuprof_block_put_region_(npuprof_block_region_ *r, const void *words, size_t count)
{
    while (count) {
        if (!r->blocks->left) {
            npuprof_chunk_ head;
            memset(&head, 0, sizeof head);
            head.state = r->state;
            head.base = r->at;
            head.first_position = npuprof_min_(r->end - r->at, r->blocks->block_bytes - sizeof head);
            npuprof_block_put_head_(r->blocks, head);
        }
        const size_t n = count < r->blocks->left ? count : r->blocks->left;
        npuprof_block_put_words_(r->blocks, words, n);
        words = (const uint8_t *)words + n;
        r->at += n;
        r->blocks->left -= (uint32_t)n;
        count -= n;
    }
}
static npuprof_block_region_ npuprof_block_begin_region_(npuprof_block_writer_ *b, uint16_t state, uint64_t at, uint64_t end)
{
    npuprof_block_region_ r;
    npuprof_block_end_(b);
    r.blocks = b;
    r.state = state;
    r.at = at;
    r.end = end;
    return r;
}

/* The table's entries from offset `from` on, or from the first one; what is not finished goes as room. Returns where the first
   unfinished one lies. */
static uint32_t npuprof_block_put_table_(npuprof_block_writer_ *b, const npuprof_image_ *im, uint32_t from)
{
    const uint32_t unit = im->h->table_unit, end = im->table_used, first = (im->h->bucket_count * 4 + unit - 1) / unit * unit;
    if (from < first) from = first;
    npuprof_block_region_ r = npuprof_block_begin_region_(b, NPUPROF_BLOCK_TABLE_PIECE, from, end);
    uint32_t finished = end;
    for (uint32_t at = from; at < end;) {
        const npuprof_entry_ *e = (const npuprof_entry_ *)(const void *)(im->table + at);
        const uint32_t type_units = NPUPROF_LOAD_ACQUIRE_(&e->type_units), units = type_units & 0xFFFFFFu;
        const bool whole = type_units >> 24 && units && (uint64_t)units * unit <= end - at;
        if (!whole && at < finished) finished = at;
        /* Not finished: room of its length, or, if even that is not known yet, of the rest. */
        uint32_t room[4] = { units, 0, 0, 0 };
        const uint32_t length = whole ? units * unit : units && (uint64_t)units * unit <= end - at ? units * unit : end - at;
        for (uint32_t put = 0; put < length; put += whole ? length : unit, room[0] = 0)
            npuprof_block_put_region_(&r, whole ? (const void *)e : room, whole ? length : unit);
        at += length;
    }
    npuprof_block_end_(b);
    return finished;
}
/* Why all of them, tid 0 too: a thread may take one between the count and the walk, and would push the last one out. */
static void npuprof_block_put_slots_(npuprof_block_writer_ *b, const npuprof_image_ *im)
{
    uint64_t count = 0;
    for (const npuprof_slot_head_ *slot = npuprof_image_next_slot_(im, NULL); slot; slot = npuprof_image_next_slot_(im, slot)) count++;
    npuprof_block_region_ r = npuprof_block_begin_region_(b, NPUPROF_BLOCK_SLOTS_PIECE, 0, count * sizeof(npuprof_slot_head_));
    for (const npuprof_slot_head_ *slot = npuprof_image_next_slot_(im, NULL); slot; slot = npuprof_image_next_slot_(im, slot)) npuprof_block_put_region_(&r, slot, sizeof *slot);
    npuprof_block_end_(b);
}
/* A chunk; of one that a thread is still filling the whole records. */
static void npuprof_block_put_chunk_(npuprof_block_writer_ *b, const npuprof_image_ *im, uint32_t index)
{
    const npuprof_chunk_ *chunk = npuprof_image_chunk_(im, index);
    const npuprof_unit_ *units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    npuprof_chunk_ head;
    uint32_t n = 0;
    head.state = NPUPROF_LOAD_ACQUIRE_(&chunk->state);
    head.base = chunk->base;
    head.first_position = chunk->first_position;
    head.owner = chunk->owner;
    head.prev = chunk->prev;
    head.moved_units = chunk->moved_units;
    npuprof_block_put_head_(b, head);
    if (head.state == NPUPROF_CHUNK_OPEN) {
        npuprof_event_ ev;
        bool shown;
        for (uint32_t taken = 1; n < im->units && taken; n += taken) taken = npuprof_cursor_decode_(im, index, n, false, &ev, &shown);
        npuprof_block_put_words_(b, units, (size_t)n * sizeof *units);
    } else {
        n = im->units;
        npuprof_out_put_(&b->out, (const char *)units, (size_t)n * sizeof *units);
    }
    b->left -= n * (uint32_t)sizeof *units;
    npuprof_block_end_(b);
}
/* A retired chunk that is only ours, straight from the arena. */
static void npuprof_block_put_own_chunk_(npuprof_block_writer_ *b, npuprof_chunk_ *chunk)
{
    NPUPROF_STORE_(&chunk->next, NPUPROF_BLOCK_MARK_);
    npuprof_block_end_(b);
    npuprof_out_flush_(&b->out);
    if (!b->out.error) b->out.error = b->out.sink.write(b->out.sink.user, chunk, b->block_bytes);
}
/* The header as it is now, for a stream. */
static void npuprof_block_copy_header_(const npuprof_image_ *im, npuprof_header_ *copy)
{
    const uint64_t *from = (const uint64_t *)(const void *)im->h;
    uint64_t *to = (uint64_t *)(void *)copy;
    for (size_t i = 0; i < sizeof *copy / 8; i++) to[i] = NPUPROF_LOAD_(from + i);
    copy->layout = NPUPROF_LAYOUT_STREAM;
    copy->header_bytes = (sizeof *copy + 63) / 64 * 64;
    copy->threads = im->threads;
    copy->table_used = im->table_used;
    copy->closed = 0;
    if (!im->next) copy->lost[NPUPROF_LOST_OVERWRITTEN] += npuprof_chunk_sum_overwritten_(im->h, im->chunk_total);
    copy->overwritten_offset = 0;
}
static void npuprof_block_put_header_piece_(npuprof_block_writer_ *b, const npuprof_image_ *im, bool closing)
{
    npuprof_header_ h;
    npuprof_block_copy_header_(im, &h);
    h.closed = closing;
    npuprof_block_region_ r = npuprof_block_begin_region_(b, NPUPROF_BLOCK_HEADER_PIECE, 0, sizeof h);
    npuprof_block_put_region_(&r, &h, sizeof h);
    npuprof_block_end_(b);
}
static void npuprof_block_put_header_(npuprof_block_writer_ *b, const npuprof_image_ *im)
{
    npuprof_header_ h;
    npuprof_block_copy_header_(im, &h);
    npuprof_out_put_(&b->out, (const char *)&h, sizeof h);
    b->left = h.header_bytes - (uint32_t)sizeof h;
    npuprof_block_end_(b);
}

/* The newest stamp of the live arena. Only a slot's last chunk can hold it: what is open moves along. */
static uint64_t npuprof_image_newest_live_(const npuprof_image_ *im)
{
    npuprof_cursor_ c;
    npuprof_event_ ev;
    uint64_t last = 0;
    for (const npuprof_slot_head_ *slot = npuprof_image_next_slot_(im, NULL); slot; slot = npuprof_image_next_slot_(im, slot)) {
        npuprof_cursor_begin_slot_(&c, im, slot);
        if (c.chunk) npuprof_cursor_begin_chunk_(&c, NPUPROF_LOAD_ACQUIRE_(&slot->last_chunk));
        c.left = 1;
        while (npuprof_cursor_next_event_(&c, &ev)) last = npuprof_extent_newest_(last, &ev);
    }
    return last;
}
/* A slot's chunks. Retired ones that lie side by side go into the sink straight from where they are. Why up to 256 KiB at once: their
   heads, just marked as blocks, are still in the cache. */
static void npuprof_block_put_chunks_(npuprof_block_writer_ *b, const npuprof_image_ *im, uint32_t at)
{
    const uint32_t most = 262144 / b->block_bytes;
    while (at) {
        uint32_t count = 0, next = at;
        while (next == at + count && count < most) {
            const npuprof_chunk_ *chunk = npuprof_image_chunk_(im, next - 1);
            NPUPROF_PREFETCH_((uintptr_t)chunk + 8 * (uintptr_t)b->block_bytes);
            if (NPUPROF_LOAD_ACQUIRE_(&chunk->state) != NPUPROF_CHUNK_RETIRED || (im->next && chunk->next != NPUPROF_BLOCK_MARK_)) break;
            next = npuprof_image_next_chunk_(im, next - 1);
            count++;
        }
        if (count * b->block_bytes < 65536) {
            npuprof_block_put_chunk_(b, im, at - 1);
            at = npuprof_image_next_chunk_(im, at - 1);
            continue;
        }
        for (uint32_t i = 0; i < count && !im->next; i++) NPUPROF_STORE_(&npuprof_chunk_at_(at - 1 + i)->next, NPUPROF_BLOCK_MARK_);
        npuprof_block_end_(b);
        npuprof_out_flush_(&b->out);
        if (!b->out.error) b->out.error = b->out.sink.write(b->out.sink.user, npuprof_image_chunk_(im, at - 1), (size_t)count * b->block_bytes);
        for (uint32_t i = 0; i < count && !im->next; i++) NPUPROF_STORE_(&npuprof_chunk_at_(at - 1 + i)->next, i + 1 < count ? at + i + 1 : next);
        at = next;
    }
}

/* The image of what is open, in one go. */
static int npuprof_image_write_locked_(npuprof_sink sink)
{
    npuprof_block_writer_ b;
    npuprof_image_ im;
    npuprof_image_open_unread_(&im);
    npuprof_image_take_closing_anchor_(&im, im.next ? 0 : npuprof_image_newest_live_(&im));
    npuprof_block_begin_writer_(&b, sink, im.h->chunk_bytes, npuprof_scratch_, sizeof npuprof_scratch_);
    npuprof_block_put_header_(&b, &im);
    const uint32_t table_sent = npuprof_block_put_table_(&b, &im, 0);
    npuprof_block_put_slots_(&b, &im);
    for (const npuprof_slot_head_ *slot = npuprof_image_next_slot_(&im, NULL); slot; slot = npuprof_image_next_slot_(&im, slot))
        npuprof_block_put_chunks_(&b, &im, slot->first_chunk);
    if (!im.next) {
        /* Why again: threads go on, and what a copied record names may be newer than the table above. */
        im.table_used = NPUPROF_LOAD_ACQUIRE_(&im.h->table_used);
        if (table_sent != im.table_used) (void)npuprof_block_put_table_(&b, &im, table_sent);
    }
    npuprof_block_put_header_piece_(&b, &im, true);
    npuprof_out_flush_(&b.out);
    return b.out.error;
}

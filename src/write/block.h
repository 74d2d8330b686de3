#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/time.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/chunks.h"
#include "../read/image.h"
#include "../read/cursor.h"
#include "../read/threads.h"
#include "text.h"

/* Blocks: what the image in a file and a stream consist of behind their header (src/format/arena.h, BLOCK).
   A block is a chunk, or a piece of a region: header, table or slots.
   Data: npuprof_block_writer_, of the one thread that writes. What is written may belong to threads that
   record meanwhile; the words of a region and of an open chunk are loaded one by one, so each is whole.
   This part does not know whether the blocks go to a file or a sink, nor which of them are needed. */

typedef struct npuprof_block_writer_ {
    npuprof_out_ out;
    uint32_t block_bytes;
    uint32_t left;                         /* bytes that the block just begun still needs */
} npuprof_block_writer_;

static void npuprof_block_begin_writer_(npuprof_block_writer_ *b, npuprof_sink sink, uint32_t block_bytes,
                                        void *buffer, size_t buffer_bytes)
{
    memset(b, 0, sizeof *b);
    b->out.sink = sink;
    b->out.bytes = (char *)buffer;
    b->out.capacity = buffer_bytes;
    b->block_bytes = block_bytes;
}

/* Fills the rest of the block with zeros. */
static void npuprof_block_end_(npuprof_block_writer_ *b)
{
    static const char zeros[256] = { 0 };
    while (b->left) {
        const uint32_t n = b->left < sizeof zeros ? b->left : (uint32_t)sizeof zeros;
        npuprof_out_put_(&b->out, zeros, n);
        b->left -= n;
    }
}

static void npuprof_block_put_head_(npuprof_block_writer_ *b, npuprof_chunk_ head)
{
    npuprof_block_end_(b);
    head.next = NPUPROF_BLOCK_MARK_;
    npuprof_out_put_(&b->out, (const char *)&head, sizeof head);
    b->left = b->block_bytes - (uint32_t)sizeof head;
}

/* Puts words that other threads may be changing. count: bytes, a multiple of 8. */
static void npuprof_block_put_words_(npuprof_block_writer_ *b, const void *words, size_t count)
{
    for (const uint64_t *w = (const uint64_t *)words; count; w++, count -= 8) {
        const uint64_t v = NPUPROF_LOAD_(w);
        npuprof_out_put_(&b->out, (const char *)&v, 8);
    }
}

/* ---- Regions: the bytes from `at` to `end`, put one after the other, as pieces of one block each */

typedef struct npuprof_block_region_ {
    npuprof_block_writer_ *blocks;
    uint16_t state;                        /* of the blocks: NPUPROF_BLOCK_*_PIECE */
    uint64_t at, end;
} npuprof_block_region_;

static npuprof_block_region_ npuprof_block_begin_region_(npuprof_block_writer_ *b, uint16_t state,
                                                         uint64_t at,
                                                         uint64_t end)
{
    npuprof_block_region_ r;
    npuprof_block_end_(b);
    r.blocks = b;
    r.state = state;
    r.at = at;
    r.end = end;
    return r;
}

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

/* Puts an entry that a thread is adding: its length if that is known, else that of all that is behind it.
   A reader skips it. Returns its bytes. */
static uint32_t npuprof_block_put_unfinished_(npuprof_block_region_ *r, uint32_t units, uint32_t unit,
                                              uint32_t left)
{
    uint32_t words[4] = { units, 0, 0, 0 };
    const uint32_t bytes = units && (uint64_t)units * unit <= left ? units * unit : left;
    for (uint32_t put = 0; put < bytes; put += unit, words[0] = 0) npuprof_block_put_region_(r, words, unit);
    return bytes;
}

/* Puts the table from offset `from` on, or from its first entry. Returns the offset of the first entry that
   is not finished: the next call goes on there. */
static uint32_t npuprof_block_put_table_(npuprof_block_writer_ *b, const npuprof_image_ *im, uint32_t from)
{
    const uint32_t unit = im->h->table_unit, end = im->table_used;
    const uint32_t first = (im->h->bucket_count * 4 + unit - 1) / unit * unit;
    uint32_t finished = end;
    if (from < first) from = first;
    npuprof_block_region_ r = npuprof_block_begin_region_(b, NPUPROF_BLOCK_TABLE_PIECE, from, end);
    for (uint32_t at = from; at < end;) {
        const npuprof_entry_ *const e = (const npuprof_entry_ *)(const void *)(im->table + at);
        const uint32_t type_units = NPUPROF_LOAD_ACQUIRE_(&e->type_units), units = type_units & 0xFFFFFFu;
        if (type_units >> 24 && units && (uint64_t)units * unit <= end - at) {
            npuprof_block_put_region_(&r, e, units * unit);
            at += units * unit;
            continue;
        }
        if (at < finished) finished = at;
        at += npuprof_block_put_unfinished_(&r, units, unit, end - at);
    }
    npuprof_block_end_(b);
    return finished;
}

/* Puts the heads of all slots. Why also of those that no thread has: a thread may take one after they were
   counted, and the count must stay right. */
static void npuprof_block_put_slots_(npuprof_block_writer_ *b, const npuprof_image_ *im)
{
    const npuprof_slot_head_ *slot = NULL;
    uint64_t bytes = 0;
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL) bytes += sizeof *slot;
    npuprof_block_region_ r = npuprof_block_begin_region_(b, NPUPROF_BLOCK_SLOTS_PIECE, 0, bytes);
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL)
        npuprof_block_put_region_(&r, slot, sizeof *slot);
    npuprof_block_end_(b);
}

/* ---- The header */

/* The header as it is now, as that of a stream. */
static void npuprof_block_copy_header_(const npuprof_image_ *im, npuprof_header_ *copy)
{
    const uint64_t *const from = (const uint64_t *)(const void *)im->h;
    uint64_t *const to = (uint64_t *)(void *)copy;
    for (size_t i = 0; i < sizeof *copy / 8; i++) to[i] = NPUPROF_LOAD_(from + i);
    copy->layout = NPUPROF_LAYOUT_STREAM;
    copy->header_bytes = (sizeof *copy + 63) / 64 * 64;
    copy->threads = im->threads;
    copy->table_used = im->table_used;
    copy->closed = 0;
    if (im->clear_ticks > copy->clear_ticks) copy->clear_ticks = im->clear_ticks;
    if (!im->next)
        copy->lost[NPUPROF_LOST_OVERWRITTEN] += npuprof_chunk_sum_overwritten_(im->h, im->chunk_total);
    copy->overwritten_offset = 0;
}

/* The header that an image begins with. */
static void npuprof_block_put_header_(npuprof_block_writer_ *b, const npuprof_image_ *im)
{
    npuprof_header_ h;
    npuprof_block_copy_header_(im, &h);
    npuprof_out_put_(&b->out, (const char *)&h, sizeof h);
    b->left = h.header_bytes - (uint32_t)sizeof h;
    npuprof_block_end_(b);
}

/* A newer header; `closing`: nothing comes behind it. */
static void npuprof_block_put_header_piece_(npuprof_block_writer_ *b, const npuprof_image_ *im, bool closing)
{
    npuprof_header_ h;
    npuprof_block_copy_header_(im, &h);
    h.closed = closing;
    npuprof_block_region_ r = npuprof_block_begin_region_(b, NPUPROF_BLOCK_HEADER_PIECE, 0, sizeof h);
    npuprof_block_put_region_(&r, &h, sizeof h);
    npuprof_block_end_(b);
}

/* ---- Chunks */

/* How many units of a chunk hold whole records. */
static uint32_t npuprof_block_whole_units_(const npuprof_image_ *im, uint32_t index)
{
    npuprof_event_ ev;
    bool shown;
    uint32_t n = 0;
    for (uint32_t taken = 1; n < im->units && taken; n += taken) {
        ev.host_ticks = 0;
        taken = npuprof_cursor_decode_(im, index, n, false, &ev, &shown);
        if (taken && npuprof_image_until_ && ev.host_ticks > npuprof_image_until_) break;
    }
    return n;
}

/* A copy of a chunk; of one that a thread is filling, the whole records. */
static void npuprof_block_put_chunk_(npuprof_block_writer_ *b, const npuprof_image_ *im, uint32_t index)
{
    const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, index);
    npuprof_chunk_ head;
    head.state = NPUPROF_LOAD_ACQUIRE_(&chunk->state);
    head.base = chunk->base;
    head.first_position = chunk->first_position;
    head.owner = chunk->owner;
    head.prev = chunk->prev;
    head.moved_units = chunk->moved_units;
    npuprof_block_put_head_(b, head);
    const bool is_open = head.state == NPUPROF_CHUNK_OPEN;
    const size_t bytes = (size_t)(is_open ? npuprof_block_whole_units_(im, index) :
                                  im->units) * sizeof(npuprof_unit_);
    if (is_open) npuprof_block_put_words_(b, chunk + 1, bytes);
    else npuprof_out_put_(&b->out, (const char *)(chunk + 1), bytes);
    b->left -= (uint32_t)bytes;
    npuprof_block_end_(b);
}

/* Hands `count` bytes to the sink from where they are, behind all that was put. */
static void npuprof_block_put_direct_(npuprof_block_writer_ *b, const void *bytes, size_t count)
{
    npuprof_block_end_(b);
    npuprof_out_flush_(&b->out);
    if (!b->out.error) b->out.error = b->out.sink.write(b->out.sink.user, bytes, count);
}

/* A chunk that nobody else uses, from where it is. */
static void npuprof_block_put_own_chunk_(npuprof_block_writer_ *b, npuprof_chunk_ *chunk)
{
    NPUPROF_STORE_(&chunk->next, NPUPROF_BLOCK_MARK_);
    npuprof_block_put_direct_(b, chunk, b->block_bytes);
}

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
#include "code.h"

/* Blocks: what the image in a file and a stream consist of behind their header (src/format/arena.h, BLOCK).
   A block is made of a chunk, or of a piece of a region: header, table or slots.
   Data: npuprof_block_writer_, and npuprof_block_now_, the block that is being made. Both are of the one
   thread that writes: it has the readers' lock, or is the drainer, and neither runs while the other does.
   What is written may belong to threads that record meanwhile; the words of a region and of an open chunk
   are loaded one by one, so each is whole.
   This part does not know whether the blocks go to a file or a sink, nor which of them are needed. */

/* Why not all of a chunk: one of 64 KiB would need as much memory, which nothing else does. */
enum { NPUPROF_BLOCK_UNITS_ = 512, NPUPROF_BLOCK_PAYLOAD_ = NPUPROF_BLOCK_UNITS_ * NPUPROF_CODE_MOST_ };
NPUPROF_ASSERT_(block_max, (int)NPUPROF_BLOCK_PAYLOAD_ <= (int)NPUPROF_BLOCK_MAX_);

static struct {
    npuprof_stored_ head;
    uint64_t payload[NPUPROF_BLOCK_PAYLOAD_ / 8 + 2];      /* the coder writes 8 bytes more */
} npuprof_block_now_;

typedef struct npuprof_block_writer_ {
    npuprof_out_ out;
    uint32_t chunk_bytes;
    uint64_t put;                          /* bytes of all that was put */
} npuprof_block_writer_;

static void npuprof_block_begin_writer_(npuprof_block_writer_ *b, npuprof_sink sink, uint32_t chunk_bytes,
                                        void *buffer, size_t buffer_bytes)
{
    memset(b, 0, sizeof *b);
    b->out.sink = sink;
    b->out.bytes = (char *)buffer;
    b->out.capacity = buffer_bytes;
    b->chunk_bytes = chunk_bytes;
}

/* Puts bytes: what does not fit into the buffer goes to the sink at once, behind all that was put. */
static void npuprof_block_put_bytes_(npuprof_block_writer_ *b, const void *bytes, size_t count)
{
    npuprof_out_ *const o = &b->out;
    b->put += count;
    if (count > o->capacity - o->used) npuprof_out_flush_(o);
    if (count <= o->capacity) npuprof_out_put_(o, (const char *)bytes, count);
    else if (!o->error) o->error = o->sink.write(o->sink.user, bytes, count);
}

/* Puts the block that was made, with so many bytes of payload. */
static void npuprof_block_put_(npuprof_block_writer_ *b, size_t bytes)
{
    npuprof_stored_ *const head = &npuprof_block_now_.head;
    const size_t zeros = (8 - bytes % 8) % 8, count = sizeof *head + bytes + zeros;
    memset((uint8_t *)npuprof_block_now_.payload + bytes, 0, zeros);
    head->mark = NPUPROF_BLOCK_MARK_;
    head->bytes = (uint16_t)bytes;
    head->sum = 0;
    head->sum = npuprof_block_coder_sum_((const uint64_t *)(const void *)&npuprof_block_now_, count);
    npuprof_block_put_bytes_(b, &npuprof_block_now_, count);
}

/* ---- Regions: the bytes from `at` to `end`, put one after the other, as pieces of one block each */

typedef struct npuprof_block_region_ {
    npuprof_block_writer_ *blocks;
    uint16_t state;                        /* of the blocks: NPUPROF_BLOCK_*_PIECE */
    uint64_t at;
    uint32_t used;                         /* bytes of the piece that is being made */
} npuprof_block_region_;

static npuprof_block_region_ npuprof_block_begin_region_(npuprof_block_writer_ *b, uint16_t state,
                                                         uint64_t at)
{
    npuprof_block_region_ r;
    r.blocks = b;
    r.state = state;
    r.at = at;
    r.used = 0;
    return r;
}

/* Puts the piece that was made, if any. */
static void npuprof_block_end_region_(npuprof_block_region_ *r)
{
    npuprof_stored_ *const head = &npuprof_block_now_.head;
    if (!r->used) return;
    memset(head, 0, sizeof *head);
    head->state = r->state;
    head->base = r->at;
    head->first_position = r->used;
    npuprof_block_put_(r->blocks, r->used);
    r->at += r->used;
    r->used = 0;
}

/* Puts words that other threads may be changing. count: bytes, a multiple of 8. */
static void npuprof_block_put_region_(npuprof_block_region_ *r, const void *words, size_t count)
{
    /* Why no more than a chunk: a reader may give each block the space of one. */
    const uint32_t chunk_room = r->blocks->chunk_bytes - (uint32_t)sizeof(npuprof_chunk_);
    const uint32_t room = (uint32_t)npuprof_min_(chunk_room, NPUPROF_BLOCK_PAYLOAD_);
    for (const uint64_t *w = (const uint64_t *)words; count; w++, count -= 8) {
        npuprof_block_now_.payload[r->used / 8] = NPUPROF_LOAD_(w);
        r->used += 8;
        if (r->used + 8 > room) npuprof_block_end_region_(r);
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
    static const uint64_t no_entry[sizeof(npuprof_chunk_) / 8] = { 0 };
    const uint32_t unit = im->h->table_unit, end = im->table_used;
    uint32_t finished = end;
    if (from < im->h->table_first) from = im->h->table_first;
    npuprof_block_region_ r = npuprof_block_begin_region_(b, NPUPROF_BLOCK_TABLE_PIECE, from);
    for (uint32_t at = from; at < end;) {
        if (npuprof_table_past_head_(im->h, at) != at) {
            npuprof_block_put_region_(&r, no_entry, sizeof no_entry);
            at += (uint32_t)sizeof no_entry;
            continue;
        }
        const npuprof_entry_ *const e = npuprof_image_table_at_(im, at);
        const uint32_t type_units = NPUPROF_LOAD_ACQUIRE_(&e->type_units), units = type_units & 0xFFFFFFu;
        if (type_units >> 24 && units && (uint64_t)units * unit <= end - at) {
            npuprof_block_put_region_(&r, e, units * unit);
            at += units * unit;
            continue;
        }
        if (at < finished) finished = at;
        at += npuprof_block_put_unfinished_(&r, units, unit, end - at);
    }
    npuprof_block_end_region_(&r);
    return finished;
}

/* Puts the heads of all slots. Why also of those that no thread has: a thread may take one after they were
   counted, and the count must stay right. */
static void npuprof_block_put_slots_(npuprof_block_writer_ *b, const npuprof_image_ *im)
{
    const npuprof_slot_head_ *slot = NULL;
    npuprof_block_region_ r = npuprof_block_begin_region_(b, NPUPROF_BLOCK_SLOTS_PIECE, 0);
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL)
        npuprof_block_put_region_(&r, slot, sizeof *slot);
    npuprof_block_end_region_(&r);
}

/* ---- The header */

/* The header as it is now, as that of a stream. */
static void npuprof_block_copy_header_(const npuprof_image_ *im, npuprof_header_ *copy)
{
    const uint64_t *const from = (const uint64_t *)(const void *)im->h;
    uint64_t *const to = (uint64_t *)(void *)copy;
    for (size_t i = 0; i < sizeof *copy / 8; i++) to[i] = NPUPROF_LOAD_(from + i);
    copy->layout = NPUPROF_LAYOUT_CODED;
    copy->header_bytes = (sizeof *copy + 63) / 64 * 64;
    copy->threads = im->threads;
    copy->table_used = im->table_used;
    if (im->clear_ticks > copy->clear_ticks) copy->clear_ticks = im->clear_ticks;
    if (!im->next)
        copy->lost[NPUPROF_LOST_OVERWRITTEN] += npuprof_chunk_sum_overwritten_(im->h, im->chunk_total);
    copy->overwritten_offset = 0;
}

/* The header that an image begins with. */
static void npuprof_block_put_header_(npuprof_block_writer_ *b, const npuprof_image_ *im)
{
    union { npuprof_header_ h; uint8_t bytes[(sizeof(npuprof_header_) + 63) / 64 * 64]; } head;
    memset(&head, 0, sizeof head);
    npuprof_block_copy_header_(im, &head.h);
    npuprof_block_put_bytes_(b, &head, sizeof head);
}

/* A newer header. closed: NPUPROF_CLOSED_*. left: events that are not lost for the arena, which may send them
   later, but for who reads what is out. */
static void npuprof_block_put_header_piece_(npuprof_block_writer_ *b, const npuprof_image_ *im,
                                            uint32_t closed, uint64_t left)
{
    npuprof_header_ h;
    npuprof_block_copy_header_(im, &h);
    h.closed = closed;
    h.lost[NPUPROF_LOST_SINK] += left;
    npuprof_block_region_ r = npuprof_block_begin_region_(b, NPUPROF_BLOCK_HEADER_PIECE, 0);
    npuprof_block_put_region_(&r, &h, sizeof h);
    npuprof_block_end_region_(&r);
}

/* ---- Chunks */

/* How many units of an open chunk hold whole records: those before the first empty head, as heads are stored
   last. */
static uint32_t npuprof_block_whole_units_(const npuprof_image_ *im, const npuprof_chunk_ *chunk)
{
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    const uint64_t limit = npuprof_image_limits_().until, until = limit ? limit : UINT64_MAX;
    uint32_t n = 0;
    for (; n < im->units; n++) {
        const uint64_t w0 = npuprof_unit_load_w0_(units + n), strings = npuprof_chunk_string_units_(w0);
        const uint32_t id = (uint32_t)w0 & NPUPROF_ID_MASK_;
        if (!w0) break;
        if (n < chunk->moved_units) continue;
        if (id < NPUPROF_CONTROL_ && npuprof_chunk_start_ticks_(chunk, w0) > until) break;
        if (id == NPUPROF_CONTROL_MOVED_AWAY_ && npuprof_unit_load_w1_(units + n) > until) break;
        if (strings < im->units - n) n += (uint32_t)strings;
    }
    return n;
}

/* Puts the records of a chunk; of one that a thread is filling, the whole ones. */
static void npuprof_block_put_chunk_(npuprof_block_writer_ *b, const npuprof_image_ *im,
                                     const npuprof_chunk_ *chunk)
{
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1), *u = units;
    npuprof_stored_ *const head = &npuprof_block_now_.head;
    npuprof_block_coder_ coder;
    uint32_t taken;
    head->state = NPUPROF_LOAD_ACQUIRE_(&chunk->state);
    head->base = chunk->base;
    head->first_position = chunk->first_position;
    head->owner = chunk->owner;
    head->moved_units = chunk->moved_units;
    const npuprof_unit_ *end = u + im->units;
    if (head->state == NPUPROF_CHUNK_OPEN)
        end = u + npuprof_block_whole_units_(im, chunk);
    coder.string = 0;
    do {
        uint8_t *const code = (uint8_t *)npuprof_block_now_.payload, *code_end = code;
        const npuprof_unit_ *const from = u;
        const uint32_t left = (uint32_t)(end - u);
        taken = (uint32_t)npuprof_min_(left, NPUPROF_BLOCK_UNITS_);
        head->first_unit = (uint16_t)(u - units);
        npuprof_block_coder_begin_(&coder, head->base);
        u = npuprof_block_coder_put_units_(&coder, u, u + taken, &code_end);
        if (u > from || from == units) npuprof_block_put_(b, (size_t)(code_end - code));
        taken -= (uint32_t)(u - from);
    } while (u < end && !taken);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"
#include "swap.h"
#include "header.h"
#include "slots.h"

/* The chunks of an ARENA and the blocks of a STREAM, in two walks.
   The first (scan) goes over the image: it swaps heads and records, closes gaps between blocks, marks what
   cannot be read as free, and counts what there is. Then memory for table, slots and order can be had. The
   second (collect) copies the table and the slots there and notes the chunks with records. */

typedef struct npuprof_load_scan_ {
    uint8_t *bytes;                /* the image */
    size_t count;                  /* its bytes */
    bool stream;
    uint64_t first_offset;         /* of the first chunk or block */
    uint64_t chunks;               /* how many chunks or whole blocks there are */
    uint64_t closed;               /* index + 1 of the block that ends a stream; 0: none yet */
    uint64_t table_used;           /* bytes of the table */
    uint32_t table_part;           /* bytes of its first part */
    uint64_t slots;                /* slot heads there may be, at most */
    npuprof_header_ newest;        /* of a stream: the newest header, made of its pieces, not swapped */
} npuprof_load_scan_;

/* Moves *at to the next block of a stream, and that block to where it would be if nothing were missing: block
   i. False: there is no whole block any more. Why search: a sink may fail inside a block and go on later. */
static bool npuprof_load_next_block_(npuprof_load_scan_ *s, uint64_t *at, uint64_t i)
{
    const uint32_t block_bytes = npuprof_loaded_.header.chunk_bytes;
    const uint64_t expected = *at, to = s->first_offset + i * block_bytes;
    uint32_t mark = 0;
    if (*at + block_bytes > s->count) return false;
    for (; *at + sizeof(npuprof_chunk_) <= s->count; *at += 8) {
        memcpy(&mark, s->bytes + *at + offsetof(npuprof_chunk_, next), 4);
        if (npuprof_loaded_.swap) npuprof_load_swap32_(&mark, 1);
        if (mark == NPUPROF_BLOCK_MARK_) break;
    }
    if (*at != expected) npuprof_load_note_damage_(expected, "a damaged block");
    if (*at + block_bytes > s->count) return false;
    if (*at != to) memmove(s->bytes + to, s->bytes + *at, block_bytes);
    return true;
}

/* A chunk with records. at: where it lies in the file. */
static void npuprof_load_scan_records_(npuprof_chunk_ *chunk, uint64_t at)
{
    if (npuprof_loaded_.swap)
        npuprof_load_swap_units_((npuprof_unit_ *)(void *)(chunk + 1), npuprof_loaded_.image.units);
    const uint32_t tid = chunk->owner >> 3;
    if (tid && tid <= NPUPROF_LOAD_TIDS_MAX_) {
        npuprof_loaded_.ordered++;
        return;
    }
    /* Owner 0 is no damage: the process died just before it began the chunk. */
    if (chunk->owner) npuprof_load_note_damage_(at, "a chunk of no thread");
    chunk->state = NPUPROF_CHUNK_FREE;
}

/* A piece of a header; complete with its last piece. */
static void npuprof_load_scan_header_piece_(npuprof_load_scan_ *s, const npuprof_chunk_ *piece, uint64_t at,
                                            uint64_t i)
{
    npuprof_header_ *const h = &npuprof_loaded_.header;
    const uint64_t end = piece->base + piece->first_position;
    uint64_t offset;
    if (end > sizeof s->newest) return;
    memcpy((uint8_t *)&s->newest + piece->base, piece + 1, (size_t)piece->first_position);
    if (end != sizeof s->newest) return;
    npuprof_header_ newer = s->newest;
    if (npuprof_loaded_.swap) npuprof_load_swap_header_(&newer);
    const bool fits = !npuprof_load_header_fault_(&newer, s->count, &offset) &&
                      newer.chunk_bytes == h->chunk_bytes && newer.header_bytes == h->header_bytes;
    if (fits) *h = newer;
    else npuprof_load_note_damage_(at, "a damaged header");
    if (newer.closed) s->closed = i + 1;
}

/* A piece of header, table or slots: base is its offset there, first_position its length. */
static void npuprof_load_scan_piece_(npuprof_load_scan_ *s, npuprof_chunk_ *piece, uint64_t at, uint64_t i)
{
    const npuprof_header_ *const h = &npuprof_loaded_.header;
    const uint64_t data_bytes = h->chunk_bytes - sizeof *piece, end = piece->base + piece->first_position;
    const bool is_too_far = piece->base > (uint64_t)h->table_first + s->count;
    if (piece->first_position > data_bytes || is_too_far || (piece->base | piece->first_position) % 8) {
        npuprof_load_note_damage_(at, "a damaged piece");
        piece->state = NPUPROF_CHUNK_FREE;
    } else if (piece->state == NPUPROF_BLOCK_HEADER_PIECE) {
        npuprof_load_scan_header_piece_(s, piece, at, i);
    } else if (piece->state == NPUPROF_BLOCK_TABLE_PIECE) {
        s->table_used = npuprof_max_(s->table_used, end);
    } else {
        const uint64_t slots_in_block = data_bytes / sizeof(npuprof_slot_head_);
        s->slots = npuprof_max_(s->slots,
                                npuprof_min_(end / sizeof(npuprof_slot_head_), slots_in_block * s->chunks));
    }
}

/* One chunk or block. at: where it lies in the file. */
static void npuprof_load_scan_chunk_(npuprof_load_scan_ *s, uint64_t at, uint64_t i)
{
    const npuprof_header_ *const h = &npuprof_loaded_.header;
    npuprof_chunk_ *const chunk = (npuprof_chunk_ *)(void *)(s->bytes + s->first_offset + i * h->chunk_bytes);
    if (npuprof_loaded_.swap) npuprof_load_swap_chunk_head_(chunk);
    const uint16_t state = chunk->state;
    if (npuprof_load_has_records_(state)) {
        npuprof_load_scan_records_(chunk, at);
    } else if (state == NPUPROF_CHUNK_SLOTS && !s->stream) {
        s->slots += (h->chunk_bytes - sizeof *chunk) / h->slot_bytes;
    } else if (state == NPUPROF_BLOCK_TABLE_PIECE ||
               (state >= NPUPROF_BLOCK_HEADER_PIECE && state <= NPUPROF_BLOCK_SLOTS_PIECE && s->stream)) {
        npuprof_load_scan_piece_(s, chunk, at, i);
    } else if (state != NPUPROF_CHUNK_FREE) {
        npuprof_load_note_damage_(at, "a chunk of a kind that this version does not know");
        chunk->state = NPUPROF_CHUNK_FREE;
    }
}

/* The first walk. s->chunks: how many there may be, then how many there are. */
static void npuprof_load_scan_all_(npuprof_load_scan_ *s)
{
    const uint32_t chunk_bytes = npuprof_loaded_.header.chunk_bytes;
    uint64_t at = s->first_offset, i = 0;
    s->newest = npuprof_loaded_.header;
    for (; s->stream ? npuprof_load_next_block_(s, &at, i) : i < s->chunks; at += chunk_bytes, i++)
        npuprof_load_scan_chunk_(s, at, i);
    s->chunks = i;
    if (s->stream && (!s->chunks || s->closed != s->chunks))
        npuprof_load_note_damage_(s->count, "the end of the stream is missing");
    if (!s->stream) s->table_used = npuprof_min_(s->table_used, npuprof_loaded_.header.table_used);
    if (s->table_used > NPUPROF_LOAD_TABLE_MAX_) s->table_used = 0;
}

/* The second walk: copies the table, and the heads of slots to `found`; returns how many those are. */
static uint64_t npuprof_load_collect_(const npuprof_load_scan_ *s, uint8_t *table, npuprof_slot_head_ *found)
{
    const npuprof_header_ *const h = &npuprof_loaded_.header;
    const uint64_t found_bytes = s->slots * sizeof *found;
    uint64_t count = 0;
    uint32_t ordered = 0;
    const uint64_t first_part = s->stream ? 0 : npuprof_min_(s->table_used, s->table_part);
    if (first_part) memcpy(table, s->bytes + h->table_offset, (size_t)first_part);
    for (uint32_t i = 0; i < s->chunks; i++) {
        const npuprof_chunk_ *const chunk = npuprof_image_chunk_(&npuprof_loaded_.image, i);
        const uint8_t *const data = (const uint8_t *)(chunk + 1);
        if (npuprof_load_has_records_(chunk->state)) {
            npuprof_loaded_.order[ordered++] = i;
        } else if (chunk->state == NPUPROF_CHUNK_SLOTS && !s->stream) {
            for (size_t at = 0; at + h->slot_bytes <= h->chunk_bytes - sizeof *chunk; at += h->slot_bytes)
                memcpy(&found[count++], data + at, sizeof *found);
        } else if (chunk->state == NPUPROF_BLOCK_TABLE_PIECE) {
            const uint64_t bytes = chunk->base < s->table_used ? s->table_used - chunk->base : 0;
            memcpy(table + npuprof_min_(chunk->base, s->table_used), data,
                   (size_t)npuprof_min_(chunk->first_position, bytes));
        } else if (chunk->state == NPUPROF_BLOCK_SLOTS_PIECE && s->stream) {
            const uint64_t bytes = chunk->base < found_bytes ? found_bytes - chunk->base : 0;
            memcpy((uint8_t *)found + npuprof_min_(chunk->base, found_bytes), data,
                   (size_t)npuprof_min_(chunk->first_position, bytes));
            count = s->slots;
        }
    }
    npuprof_loaded_.ordered = ordered;
    for (uint64_t n = 0; n < count && npuprof_loaded_.swap; n++) npuprof_load_swap_slot_head_(&found[n]);
    return count;
}

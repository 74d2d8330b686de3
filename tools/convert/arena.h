#pragma once   /* SPDX-License-Identifier: MIT */
#include "check.h"

static npuprof_result npuprof_load_arena_locked_(uint8_t *bytes, size_t count)
{
    npuprof_header_ *const h = &npuprof_loaded_.header;
    npuprof_image_ *const im = &npuprof_loaded_.image;
    uint64_t offset = 0;
    if (count < sizeof *h) return npuprof_load_refuse_(count, "shorter than a header");
    memcpy(h, bytes, sizeof *h);
    if (memcmp(h->magic, "NPUPROF\n", 8) != 0) return npuprof_load_refuse_(0, "not an npuprof image");
    npuprof_loaded_.swap = h->endian == 0x04030201u;
    if (npuprof_loaded_.swap) npuprof_load_swap_header_(h);
    if (h->endian != 0x01020304u) return npuprof_load_refuse_(8, "an unknown byte order");
    const char *fault = npuprof_load_header_fault_(h, count, &offset);
    if (fault) return npuprof_load_refuse_(offset, fault);

    /* First look at the chunks or blocks: byte order, and how many there are of each kind. */
    const bool stream = h->layout == NPUPROF_LAYOUT_STREAM;
    const uint64_t first_offset = stream ? h->header_bytes : h->chunks_offset;
    uint64_t chunks = (count - first_offset) / h->chunk_bytes, slots = 0, used = stream ? 0 : h->table_used;
    const uint32_t slots_in_piece = (h->chunk_bytes - (uint32_t)sizeof(npuprof_chunk_)) / (uint32_t)sizeof(npuprof_slot_head_);
    if (chunks > UINT32_MAX - 1) return npuprof_load_refuse_(first_offset, "too many chunks");
    if (!stream && chunks > h->chunk_next) chunks = h->chunk_next;
    if (!stream && chunks < h->chunk_next) npuprof_load_note_damage_(count, "the file is cut off");
    if (!stream) npuprof_load_count_overwritten_(bytes, count, (uint32_t)chunks);
    memset(im, 0, sizeof *im);
    im->h = h;
    im->chunks = bytes + first_offset;
    im->units = (h->chunk_bytes - (uint32_t)sizeof(npuprof_chunk_)) / 16;
    npuprof_header_ newest = *h;
    uint64_t closed = stream ? 0 : UINT64_MAX, i = 0;    /* closed: index + 1 of the block that closes the stream */
    for (uint64_t at = first_offset; stream ? at + h->chunk_bytes <= count : i < chunks; at += h->chunk_bytes, i++) {
        if (stream) {
            /* A sink failed in the middle of a block, or bytes are missing: find the next block, and close the gap. */
            const uint64_t wanted = at;
            uint32_t mark = 0;
            for (; at + sizeof(npuprof_chunk_) <= count; at += 8) {
                memcpy(&mark, bytes + at + offsetof(npuprof_chunk_, next), 4);
                if (npuprof_loaded_.swap) npuprof_load_swap32_(&mark, 1);
                if (mark == NPUPROF_BLOCK_MARK_) break;
            }
            if (at != wanted) npuprof_load_note_damage_(wanted, "a damaged block");
            if (at + h->chunk_bytes > count) break;
            if (at != first_offset + i * h->chunk_bytes) memmove(bytes + first_offset + i * h->chunk_bytes, bytes + at, h->chunk_bytes);
        }
        npuprof_chunk_ *chunk = (npuprof_chunk_ *)(void *)(bytes + first_offset + i * h->chunk_bytes);
        if (npuprof_loaded_.swap) npuprof_load_swap_chunk_head_(chunk);
        if (chunk->state == NPUPROF_CHUNK_OPEN || chunk->state == NPUPROF_CHUNK_RETIRED) {
            if (npuprof_loaded_.swap) npuprof_load_swap_units_((npuprof_unit_ *)(void *)(chunk + 1), im->units);
            if (chunk->owner >> 3 == 0 || chunk->owner >> 3 > NPUPROF_LOAD_TIDS_MAX_) {
                /* Owner 0: the process died before the chunk was begun. */
                if (chunk->owner) npuprof_load_note_damage_(at, "a chunk of no thread");
                chunk->state = NPUPROF_CHUNK_FREE;
            } else {
                npuprof_loaded_.ordered++;
            }
        } else if (chunk->state == NPUPROF_CHUNK_SLOTS && !stream) {
            slots += (h->chunk_bytes - sizeof *chunk) / h->slot_bytes;
        } else if (chunk->state >= NPUPROF_BLOCK_HEADER_PIECE && chunk->state <= NPUPROF_BLOCK_SLOTS_PIECE && stream) {
            if (chunk->first_position > h->chunk_bytes - sizeof *chunk || chunk->base > (uint64_t)h->bucket_count * 4 + count || (chunk->base | chunk->first_position) % 8) {
                npuprof_load_note_damage_(at, "a damaged piece");
                chunk->state = NPUPROF_CHUNK_FREE;
            } else if (chunk->state == NPUPROF_BLOCK_HEADER_PIECE && chunk->base + chunk->first_position <= sizeof newest) {
                memcpy((uint8_t *)&newest + chunk->base, chunk + 1, (size_t)chunk->first_position);
                if (chunk->base + chunk->first_position == sizeof newest) {
                    npuprof_header_ turned = newest;
                    if (npuprof_loaded_.swap) npuprof_load_swap_header_(&turned);
                    if (!npuprof_load_header_fault_(&turned, count, &offset) && turned.chunk_bytes == h->chunk_bytes && turned.header_bytes == h->header_bytes) *h = turned;
                    else npuprof_load_note_damage_(at, "a damaged header");
                    if (turned.closed == 1) closed = i + 1;
                }
            } else if (chunk->state == NPUPROF_BLOCK_TABLE_PIECE) {
                used = npuprof_max_(used, chunk->base + chunk->first_position);
            } else if (chunk->state == NPUPROF_BLOCK_SLOTS_PIECE) {
                slots = npuprof_max_(slots, npuprof_min_((chunk->base + chunk->first_position) / sizeof(npuprof_slot_head_), (uint64_t)slots_in_piece * chunks));
            }
        } else if (chunk->state != NPUPROF_CHUNK_FREE) {
            npuprof_load_note_damage_(at, "a chunk of no known kind");
            chunk->state = NPUPROF_CHUNK_FREE;
        }
    }
    if (stream) chunks = i;
    if (stream && closed != chunks) npuprof_load_note_damage_(count, "the end of the stream is missing");
    if (used > 256u * 1024 * 1024) used = 0;
    im->chunk_total = (uint32_t)chunks;
    h->last_used &= 1;
    h->host[sizeof h->host - 1] = h->program[sizeof h->program - 1] = 0;
    if (h->traceparent[0] && !npuprof_env_is_traceparent_(h->traceparent)) {
        npuprof_load_note_damage_(offsetof(npuprof_header_, traceparent), "a damaged traceparent");
        h->traceparent[0] = 0;
    }
    npuprof_host_anchor_ *const anchors[3] = { &h->first, &h->last[0], &h->last[1] };
    for (int n = 0; n < 3; n++) {
        int64_t *const ns[3] = { &anchors[n]->monotonic_ns, &anchors[n]->boot_ns, &anchors[n]->unix_ns };
        for (int k = 0; k < 3; k++)
            if (*ns[k] < 0 || *ns[k] >> 62) {
                npuprof_load_note_damage_(offsetof(npuprof_header_, first), "a damaged clock anchor");
                *ns[k] = 0;
            }
    }

    /* A number for each call site, whose entry takes two units. Why not the header's: that of a stream is older. */
    h->sites = (uint32_t)npuprof_min_(used / sizeof(npuprof_pair_entry_), NPUPROF_CONTROL_ - 1);

    /* Memory beside the image: table with the sites' index, slots as found and as sorted, order and next of the chunks. */
    const size_t table_bytes = ((size_t)used + (size_t)h->sites * 4 + 15) / 16 * 16, all_slots = (size_t)slots + npuprof_loaded_.ordered;
    const size_t found_bytes = (size_t)slots * sizeof(npuprof_slot_head_), sorted_bytes = 16 + (all_slots + 1) * NPUPROF_IMAGE_SLOT_UNITS_ * 16;
    npuprof_loaded_.side_bytes = table_bytes + found_bytes + sorted_bytes + ((size_t)npuprof_loaded_.ordered + (size_t)chunks) * 4 + 64;
    npuprof_loaded_.side = npuprof_os_memory_(npuprof_loaded_.side_bytes);
    if (!npuprof_loaded_.side) return NPUPROF_ERR_NO_SPACE;
    uint8_t *const table = (uint8_t *)npuprof_loaded_.side, *const sorted = table + table_bytes;
    npuprof_slot_head_ *const found = (npuprof_slot_head_ *)(void *)(sorted + sorted_bytes);
    npuprof_loaded_.order = (uint32_t *)(void *)(found + slots);
    uint32_t *const next = npuprof_loaded_.order + npuprof_loaded_.ordered;
    uint64_t found_count = 0;
    uint32_t ordered = 0;
    if (!stream) memcpy(table, bytes + h->table_offset, (size_t)used);
    h->table_bytes = (uint32_t)table_bytes;
    if (h->bucket_count * 4 > used) h->bucket_count = (uint32_t)(used / 4);
    for (uint32_t n = 0; n < chunks; n++) {
        const npuprof_chunk_ *chunk = npuprof_image_chunk_(im, n);
        const uint8_t *const data = (const uint8_t *)(chunk + 1);
        if (chunk->state == NPUPROF_CHUNK_OPEN || chunk->state == NPUPROF_CHUNK_RETIRED) {
            npuprof_loaded_.order[ordered++] = n;
        } else if (chunk->state == NPUPROF_CHUNK_SLOTS && !stream) {
            for (size_t at = 0; at + h->slot_bytes <= h->chunk_bytes - sizeof *chunk; at += h->slot_bytes) memcpy(&found[found_count++], data + at, sizeof *found);
        } else if (chunk->state == NPUPROF_BLOCK_TABLE_PIECE && stream) {
            memcpy(table + chunk->base, data, (size_t)chunk->first_position);
        } else if (chunk->state == NPUPROF_BLOCK_SLOTS_PIECE && stream) {
            for (uint64_t at = chunk->base, end = chunk->base + chunk->first_position; at < end; at += 8)
                if (at + 8 <= found_bytes) memcpy((uint8_t *)found + at, data + (at - chunk->base), 8);
            found_count = slots;
        }
    }
    if (npuprof_loaded_.swap)
        for (uint64_t n = 0; n < found_count; n++) npuprof_load_swap_slot_head_(&found[n]);
    npuprof_loaded_.ordered = ordered;
    im->next = next;
    npuprof_load_check_table_(table, (uint32_t)used, stream ? first_offset : h->table_offset);
    npuprof_load_chain_chunks_(next, sorted, found, found_count, first_offset);
    npuprof_load_check_records_(first_offset);
    h->streamed = 0;                       /* what went to the sink is here now */
    im->damaged = npuprof_loaded_.damage.places;
    return NPUPROF_OK;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../format/arena.h"
#include "../arena/state.h"
#include "../arena/table.h"
#include "image.h"

/* Opens the live arena as an image, while its threads go on recording.

   A slot knows its last chunk, and each chunk the one before (`prev`). A reader goes this way back and writes
   `next` into the chunks and `first_chunk` into the slots, which only readers use and only under their lock.
   Meanwhile a chunk may be taken away from its slot and recycled: then its owner or its position does not
   fit, and the way ends there. */

/* All but the order of the chunks. */
static void npuprof_image_init_live_(npuprof_image_ *im)
{
    const npuprof_header_ *h = npuprof_arena_.header;
    memset(im, 0, sizeof *im);
    im->h = h;
    im->table = npuprof_arena_.table;
    im->chunks = npuprof_arena_.chunks;
    im->pages = npuprof_arena_.pages;
    im->slots = npuprof_arena_.base;
    im->slots_bytes = h->arena_bytes;
    im->units = npuprof_arena_.units;
    im->table_used = NPUPROF_LOAD_ACQUIRE_(&h->table_used);
    im->chunk_total = NPUPROF_LOAD_ACQUIRE_(&h->chunk_next);
    im->threads = NPUPROF_LOAD_ACQUIRE_(&h->threads);
    im->slot_first = NPUPROF_LOAD_ACQUIRE_(&h->slot_first);
}

static uint32_t npuprof_image_owner_live_(const npuprof_slot_head_ *slot)
{
    return NPUPROF_LOAD_(&slot->tid) << 3 | NPUPROF_LOAD_(&slot->context);
}

/* Does the chunk hold records of this slot? */
static bool npuprof_image_is_of_live_(const npuprof_chunk_ *chunk, uint32_t owner)
{
    const uint16_t state = NPUPROF_LOAD_ACQUIRE_(&chunk->state);
    const bool in_use = state == NPUPROF_CHUNK_RETIRED || state == NPUPROF_CHUNK_OPEN;
    return in_use && NPUPROF_LOAD_ACQUIRE_(&chunk->owner) == owner;
}

/* Chains the chunks of a slot, from the one on that holds the record at `from`. Returns the first one,
   index + 1; 0: it has none. */
static uint32_t npuprof_image_chain_live_(const npuprof_image_ *im, const npuprof_slot_head_ *slot,
                                          uint64_t from)
{
    uint32_t index = NPUPROF_LOAD_ACQUIRE_(&slot->last_chunk), next = 0;
    const uint32_t owner = npuprof_image_owner_live_(slot);
    for (uint64_t position = UINT64_MAX; index && index <= im->h->chunk_count;) {
        npuprof_chunk_ *const chunk = npuprof_chunk_at_(index - 1);
        /* Why: each chunk's head is a cache miss, and only the chunk itself says which one comes next. Most
           often it is the one that was taken eight before; a prefetch outside of the arena does nothing. */
        NPUPROF_PREFETCH_((uintptr_t)chunk - 8 * (uintptr_t)im->h->chunk_bytes);
        const bool ours = npuprof_image_is_of_live_(chunk, owner);
        const uint64_t first = NPUPROF_LOAD_(&chunk->first_position);
        if (!ours || first >= position) break;       /* recycled */
        NPUPROF_STORE_(&chunk->next, next);
        next = index;
        if (first <= from) break;
        position = first;
        index = NPUPROF_LOAD_(&chunk->prev);
    }
    return next;
}

static void npuprof_image_open_live_(npuprof_image_ *im)
{
    npuprof_image_init_live_(im);
    for (uint32_t at = im->slot_first; at; at = npuprof_slot_at_(at)->head.next_slot) {
        npuprof_slot_head_ *const slot = &npuprof_slot_at_(at)->head;
        NPUPROF_STORE_(&slot->first_chunk, npuprof_image_chain_live_(im, slot, 0));
    }
    /* Why only now: just before its slot is looked at, a thread may take a chunk or a tid that was never
       used. */
    im->chunk_total = NPUPROF_LOAD_ACQUIRE_(&im->h->chunk_next);
    im->threads = NPUPROF_LOAD_ACQUIRE_(&im->h->threads);
}

/* Copies what another arena knew before anything was recorded, its metadata, into the live one. */
static void npuprof_image_copy_metadata_(const npuprof_header_ *old)
{
    static const uint32_t types[2] = { NPUPROF_ENTRY_METADATA, NPUPROF_ENTRY_ENVIRONMENT };
    npuprof_image_ im;
    size_t length;
    memset(&im, 0, sizeof im);
    im.h = old;
    im.table = (const uint8_t *)(const void *)old + old->table_offset;
    im.pages = (const uint32_t *)(const void *)im.table;
    im.chunks = (const uint8_t *)(const void *)old + old->chunks_offset;
    im.table_used = old->table_used;
    memcpy(npuprof_arena_.header->traceparent, old->traceparent, sizeof old->traceparent);
    for (int i = 0; i < 2; i++) {
        const npuprof_entry_ *e;
        uint32_t id = 0;
        while ((e = npuprof_image_next_entry_(&im, types[i], sizeof(npuprof_pair_entry_), &id)) != NULL) {
            const npuprof_pair_entry_ *pair = (const npuprof_pair_entry_ *)(const void *)e;
            npuprof_table_add_pair_(types[i], npuprof_image_text_(&im, pair->b[0], &length),
                                    npuprof_image_text_(&im, pair->b[1], &length));
        }
    }
}

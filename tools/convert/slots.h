#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"

/* Slots and their chunks. The reader wants the slots sorted by thread and context, and for each chunk the
   slot's next one. Both are made here from what every chunk says of itself (owner and first_position),
   because the links in a file may be those of any moment. The file's own heads of slots add what chunks do
   not say: names, the system's thread, losses.
   Data: npuprof_loaded_.order is sorted; `next` and `slots`, both in npuprof_loaded_.side, are written. */

enum { NPUPROF_LOAD_TIDS_MAX_ = 1 << 20,       /* a thread number beyond is damage */
       NPUPROF_LOAD_EMPTY_SLOTS_MAX_ = 16384 };    /* slots without a chunk */

/* Order of chunks: by owner, then as they were written. */
static bool npuprof_load_chunk_before_(const void *a, const void *b)
{
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const npuprof_chunk_ *x = npuprof_image_chunk_(&npuprof_loaded_.image, i);
    const npuprof_chunk_ *y = npuprof_image_chunk_(&npuprof_loaded_.image, j);
    if (x->owner != y->owner) return x->owner < y->owner;
    if (x->first_position != y->first_position) return x->first_position < y->first_position;
    return i < j;
}

static void npuprof_load_sort_chunks_(uint32_t *list, uint32_t count)
{
    bool sorted = true;
    for (uint32_t i = 1; i < count && sorted; i++)
        sorted = npuprof_load_chunk_before_(&list[i - 1], &list[i]);
    if (!sorted) npuprof_heap_sort_(list, sizeof *list, count, npuprof_load_chunk_before_);
}

/* The chunk at a place of the order. */
static const npuprof_chunk_ *npuprof_load_ordered_chunk_(uint32_t place)
{
    return npuprof_image_chunk_(&npuprof_loaded_.image, npuprof_loaded_.order[place]);
}

/* Slot number i, from 0, of the sorted ones. Why 16 bytes in front: no slot has unit number 0. */
static npuprof_slot_head_ *npuprof_load_slot_at_(uint8_t *slots, uint32_t i)
{
    return (npuprof_slot_head_ *)(void *)(slots + 16 + (size_t)i * NPUPROF_IMAGE_SLOT_UNITS_ * 16);
}

/* Is the chunk at the next place a newer version of this one? */
static bool npuprof_load_is_replaced_(uint32_t place)
{
    const npuprof_chunk_ *const chunk = npuprof_load_ordered_chunk_(place);
    if (place + 1 == npuprof_loaded_.ordered) return false;
    const npuprof_chunk_ *const next = npuprof_load_ordered_chunk_(place + 1);
    return next->owner == chunk->owner && next->first_position == chunk->first_position;
}

/* Counts what is in these places of the order as overwritten. */
static void npuprof_load_count_as_overwritten_(uint32_t from, uint32_t to)
{
    const npuprof_header_ *const h = &npuprof_loaded_.header;
    uint64_t arguments, events = 0;
    for (; from < to; from++)
        events += npuprof_chunk_count_events_(h, npuprof_load_ordered_chunk_(from), &arguments);
    npuprof_loaded_.header.lost[NPUPROF_LOST_OVERWRITTEN] += events;
}

/* Links the chunks of one slot, from place `from` of the order on; returns the place behind them. */
static uint32_t npuprof_load_link_slot_(npuprof_slot_head_ *slot, uint32_t *next, uint32_t from,
                                        uint64_t first_offset)
{
    const npuprof_header_ *const h = &npuprof_loaded_.header;
    const uint32_t *const order = npuprof_loaded_.order, owner = npuprof_load_ordered_chunk_(from)->owner;
    uint32_t *link = &slot->first_chunk, first = from, place = from;
    uint64_t position = 0;
    slot->tid = owner >> 3;
    slot->context = owner & 7;
    for (; place < npuprof_loaded_.ordered && npuprof_load_ordered_chunk_(place)->owner == owner; place++) {
        const npuprof_chunk_ *const chunk = npuprof_load_ordered_chunk_(place);
        if (npuprof_load_is_replaced_(place)) {
            if (h->layout == NPUPROF_LAYOUT_ARENA)
                npuprof_load_note_damage_(first_offset + (uint64_t)order[place] * h->chunk_bytes,
                                          "the same chunk twice");
            continue;
        }
        /* A process with NPUPROF_KEEP_NEWEST was killed while it recycled a chunk: what is before the gap was
           to go, too.
           Why not in a damaged image: there the gap may be damage, and all is shown that can be read. */
        const bool is_gap = link != &slot->first_chunk &&
            chunk->first_position - position > npuprof_loaded_.image.units;
        if (is_gap && h->when_full == NPUPROF_KEEP_NEWEST && !npuprof_loaded_.damage.places) {
            link = &slot->first_chunk;
            npuprof_load_count_as_overwritten_(first, place);
            first = place;
        }
        position = chunk->first_position;
        *link = order[place] + 1;
        link = &next[order[place]];
    }
    return place;
}

/* The slot of an owner among `count` sorted ones, or NULL; *place: where it is, or belongs. */
static npuprof_slot_head_ *npuprof_load_find_slot_(uint8_t *slots, uint32_t count, uint64_t owner,
                                                   uint32_t *place)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        npuprof_slot_head_ *const slot = npuprof_load_slot_at_(slots, middle);
        const uint64_t key = (uint64_t)slot->tid << 3 | slot->context;
        *place = middle;
        if (key == owner) return slot;
        if (key < owner) low = middle + 1;
        else high = middle;
    }
    *place = low;
    return NULL;
}

/* Inserts an empty slot at a place of the sorted ones. */
static npuprof_slot_head_ *npuprof_load_insert_slot_(uint8_t *slots, uint32_t place)
{
    const size_t bytes = NPUPROF_IMAGE_SLOT_UNITS_ * 16;
    npuprof_slot_head_ *const slot = npuprof_load_slot_at_(slots, place);
    memmove((uint8_t *)slot + bytes, slot, (npuprof_loaded_.image.slot_count - place) * bytes);
    memset(slot, 0, bytes);
    npuprof_loaded_.image.slot_count++;
    return slot;
}

/* Adds what the file's heads of slots say. Slots without a chunk come in addition: they may have a name, or
   losses. */
static void npuprof_load_merge_slots_(uint8_t *slots, const npuprof_slot_head_ *found, uint64_t count,
                                      uint64_t first_offset)
{
    npuprof_image_ *const im = &npuprof_loaded_.image;
    uint32_t empty = 0, place;
    for (const npuprof_slot_head_ *from = found; from < found + count; from++) {
        if (!from->tid) continue;
        if (from->tid > NPUPROF_LOAD_TIDS_MAX_ || from->context > 7) {
            npuprof_load_note_damage_(first_offset, "a damaged slot");
            continue;
        }
        const uint64_t owner = (uint64_t)from->tid << 3 | from->context;
        npuprof_slot_head_ *slot = npuprof_load_find_slot_(slots, im->slot_count, owner, &place);
        if (!slot) {
            if (empty++ == NPUPROF_LOAD_EMPTY_SLOTS_MAX_)
                npuprof_load_note_damage_(first_offset, "too many slots");
            if (empty > NPUPROF_LOAD_EMPTY_SLOTS_MAX_) continue;
            slot = npuprof_load_insert_slot_(slots, place);
            slot->tid = from->tid;
            slot->context = from->context;
        }
        slot->name = from->name;
        slot->os_tid = from->os_tid;
        slot->owners = from->owners;
        slot->lost = from->lost;
    }
}

/* Makes the sorted slots and the links of their chunks. found: the file's heads of slots. first_offset: where
   the chunks lie in the file. */
static void npuprof_load_make_slots_(uint32_t *next, uint8_t *slots, const npuprof_slot_head_ *found,
                                     uint64_t found_count, uint64_t first_offset)
{
    npuprof_image_ *const im = &npuprof_loaded_.image;
    npuprof_load_sort_chunks_(npuprof_loaded_.order, npuprof_loaded_.ordered);
    for (uint32_t place = 0; place < npuprof_loaded_.ordered; im->slot_count++)
        place = npuprof_load_link_slot_(npuprof_load_slot_at_(slots, im->slot_count), next, place,
                                        first_offset);
    npuprof_load_merge_slots_(slots, found, found_count, first_offset);
    for (uint32_t i = 0; i < im->slot_count; i++) {
        npuprof_slot_head_ *const slot = npuprof_load_slot_at_(slots, i);
        slot->next_slot = i + 1 < im->slot_count ? 1 + (i + 1) * NPUPROF_IMAGE_SLOT_UNITS_ : 0;
        if (slot->tid > im->threads) im->threads = slot->tid;
    }
    im->slots = slots;
    im->slots_bytes = 16 + (uint64_t)im->slot_count * NPUPROF_IMAGE_SLOT_UNITS_ * 16;
    im->slot_first = im->slot_count ? 1 : 0;
}

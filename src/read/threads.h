#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../format/arena.h"
#include "image.h"

/* The slots of an image, and which of them belong to one thread: its own, and those of the signal handlers
   that interrupted it (their `context` is not 0).

   The slots of a live arena are a list in the order in which they were made. Those of a loaded image are
   sorted by tid and context and lie at equal distances, so they are found by binary search. */

/* of a loaded image, from unit 1 on */
enum { NPUPROF_IMAGE_SLOT_UNITS_ = (sizeof(npuprof_slot_head_) + 15) / 16 };

static const npuprof_slot_head_ *npuprof_image_slot_(const npuprof_image_ *im, uint32_t unit)
{
    const uint64_t at = (uint64_t)unit * 16;
    if (!unit || at + sizeof(npuprof_slot_head_) > im->slots_bytes) return NULL;
    return (const npuprof_slot_head_ *)(const void *)(im->slots + at);
}

/* Walks all slots: NULL before the first one and behind the last. */
static const npuprof_slot_head_ *npuprof_image_next_slot_(const npuprof_image_ *im,
                                                          const npuprof_slot_head_ *slot)
{
    return npuprof_image_slot_(im, slot ? slot->next_slot : im->slot_first);
}

/* Of a loaded image: the first slot whose tid is at least this one. NULL: there is none. */
static const npuprof_slot_head_ *npuprof_image_first_slot_from_(const npuprof_image_ *im, uint32_t tid)
{
    uint32_t low = 0, high = im->slot_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (npuprof_image_slot_(im, 1 + middle * NPUPROF_IMAGE_SLOT_UNITS_)->tid < tid) low = middle + 1;
        else high = middle;
    }
    return low < im->slot_count ? npuprof_image_slot_(im, 1 + low * NPUPROF_IMAGE_SLOT_UNITS_) : NULL;
}

/* Walks the slots of one thread: NULL before the first one and behind the last. */
static const npuprof_slot_head_ *npuprof_image_next_slot_of_(const npuprof_image_ *im, uint32_t tid,
                                                             const npuprof_slot_head_ *slot)
{
    if (!im->slot_count) {
        do slot = npuprof_image_next_slot_(im, slot);
        while (slot && NPUPROF_LOAD_(&slot->tid) != tid);
        return slot;
    }
    slot = slot ? npuprof_image_next_slot_(im, slot) : npuprof_image_first_slot_from_(im, tid);
    return slot && slot->tid == tid ? slot : NULL;
}

/* Walks the threads by their tids: 0 before the first one and behind the last.
   Why not simply all numbers up to the last: in a damaged image that may be a million. */
static uint32_t npuprof_image_next_tid_(const npuprof_image_ *im, uint32_t tid)
{
    if (!im->slot_count) return tid < im->threads ? tid + 1 : 0;
    const npuprof_slot_head_ *const slot = npuprof_image_first_slot_from_(im, tid + 1);
    return slot ? slot->tid : 0;
}

/* The thread's own slot. NULL: the image is damaged. */
static inline const npuprof_slot_head_ *npuprof_image_thread_slot_(const npuprof_image_ *im, uint32_t tid)
{
    const npuprof_slot_head_ *slot = NULL;
    do slot = npuprof_image_next_slot_of_(im, tid, slot);
    while (slot && NPUPROF_LOAD_(&slot->context));
    return slot;
}

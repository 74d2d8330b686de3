#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../format/arena.h"
#include "image.h"

static const npuprof_slot_head_ *npuprof_image_slot_(const npuprof_image_ *im, uint32_t unit)
{
    const uint64_t at = (uint64_t)unit * 16;
    if (!unit || at + sizeof(npuprof_slot_head_) > im->slots_bytes) return NULL;
    return (const npuprof_slot_head_ *)(const void *)(im->slots + at);
}
/* The slots, one after the other; NULL at the end. */
static const npuprof_slot_head_ *npuprof_image_next_slot_(const npuprof_image_ *im, const npuprof_slot_head_ *slot)
{
    return npuprof_image_slot_(im, slot ? slot->next_slot : im->slot_first);
}

/* Slots of a loaded image lie this far apart, from unit 1 on. */
enum { NPUPROF_IMAGE_SLOT_UNITS_ = (sizeof(npuprof_slot_head_) + 15) / 16 };

/* The first slot of a loaded image whose tid is at least this. NULL: none. */
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
/* A thread's slots, its own and those of its signal handlers, one after the other. */
static const npuprof_slot_head_ *npuprof_image_next_slot_of_(const npuprof_image_ *im, uint32_t tid, const npuprof_slot_head_ *slot)
{
    if (!im->slot_count) {
        do slot = npuprof_image_next_slot_(im, slot);
        while (slot && NPUPROF_LOAD_(&slot->tid) != tid);
        return slot;
    }
    if (slot) {
        slot = npuprof_image_next_slot_(im, slot);
    } else {
        slot = npuprof_image_first_slot_from_(im, tid);
    }
    return slot && slot->tid == tid ? slot : NULL;
}
/* The threads, in the order of their tids. tid: the one before, at first 0. 0: there are no more.
   Why not all numbers up to the last: in a damaged image that may be a million. */
static uint32_t npuprof_image_next_tid_(const npuprof_image_ *im, uint32_t tid)
{
    if (!im->slot_count) return tid < im->threads ? tid + 1 : 0;
    const npuprof_slot_head_ *const slot = npuprof_image_first_slot_from_(im, tid + 1);
    return slot ? slot->tid : 0;
}
/* A thread's own slot, by its tid: 1 to header.threads. NULL: damaged. */
static inline const npuprof_slot_head_ *npuprof_image_thread_slot_(const npuprof_image_ *im, uint32_t tid)
{
    const npuprof_slot_head_ *slot = NULL;
    do slot = npuprof_image_next_slot_of_(im, tid, slot);
    while (slot && NPUPROF_LOAD_(&slot->context));
    return slot;
}

/* ---- Time */

/* Why a limit: a damaged stamp must not overflow what is computed from it. 9 years. */
#define NPUPROF_NS_LIMIT_ ((uint64_t)1 << 58)

#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"

/* Byte order: swaps what another machine wrote, in place, structure by structure. The structures are those of
   src/format/arena.h; runs of words of one size are swapped together. This part looks at no value but those
   that say how long something is. */

static uint16_t npuprof_load_swap16_(uint16_t v)
{
    return (uint16_t)(v << 8 | v >> 8);
}

static void npuprof_load_swap32_(void *p, size_t count)
{
    for (uint32_t *w = (uint32_t *)p; count--; w++)
        *w = *w << 24 | (*w & 0xFF00) << 8 | (*w >> 8 & 0xFF00) | *w >> 24;
}

/* Why in halves: the words may be aligned to 4 bytes only. */
static void npuprof_load_swap64_(void *p, size_t count)
{
    for (uint32_t *w = (uint32_t *)p; count--; w += 2) {
        npuprof_load_swap32_(w, 2);
        const uint32_t first = w[0];
        w[0] = w[1];
        w[1] = first;
    }
}

static void npuprof_load_swap_header_(npuprof_header_ *h)
{
    const size_t longs = offsetof(npuprof_header_, arena_bytes), words = offsetof(npuprof_header_, last_used);
    npuprof_load_swap32_(&h->endian, (longs - offsetof(npuprof_header_, endian)) / 4);
    npuprof_load_swap64_(&h->arena_bytes, (words - longs) / 8);
    npuprof_load_swap32_(&h->last_used, (offsetof(npuprof_header_, host) - words) / 4);
}

static void npuprof_load_swap_chunk_head_(npuprof_chunk_ *c)
{
    npuprof_load_swap64_(&c->base, 2);
    npuprof_load_swap32_(&c->owner, 3);
    c->state = npuprof_load_swap16_(c->state);
    c->moved_units = npuprof_load_swap16_(c->moved_units);
}

static void npuprof_load_swap_slot_head_(npuprof_slot_head_ *s)
{
    npuprof_load_swap32_(&s->tid, 8);
    npuprof_load_swap64_(&s->lost, 1);
}

/* The units of a chunk. The bytes of a string argument stay: 8 in w1 of its unit, the rest in the units
   behind it. */
static void npuprof_load_swap_units_(npuprof_unit_ *u, uint32_t units)
{
    for (npuprof_unit_ *const end = u + units; u < end; u++) {
        npuprof_load_swap64_(&u->w0, 1);
        const uint64_t payload = u->w0 >> NPUPROF_ID_BITS_, length = payload >> 32;
        const bool is_string = ((uint32_t)u->w0 & NPUPROF_ID_MASK_) == NPUPROF_CONTROL_ARG_ &&
                               (payload & 15) >= NPUPROF_ARG_STR;
        if (!is_string) npuprof_load_swap64_(&u->w1, 1);
        else if (length > 8) u += npuprof_min_(NPUPROF_UNITS_(length - 8), (uint64_t)(end - u) - 1);
    }
}

/* An entry of the table whose first word is swapped already. */
static void npuprof_load_swap_entry_(npuprof_entry_ *e, uint32_t type)
{
    npuprof_load_swap32_(&e->hash, 3);
    if (type == NPUPROF_ENTRY_SITE) npuprof_load_swap32_(&((npuprof_site_entry_ *)(void *)e)->name, 4);
    if (type == NPUPROF_ENTRY_METADATA || type == NPUPROF_ENTRY_ENVIRONMENT || type == NPUPROF_ENTRY_LANE)
        npuprof_load_swap32_(((npuprof_pair_entry_ *)(void *)e)->b, 2);
    if (type == NPUPROF_ENTRY_PAUSE) npuprof_load_swap64_(&((npuprof_pause_entry_ *)(void *)e)->from, 2);
    if (type == NPUPROF_ENTRY_DEVICE) {
        npuprof_device_entry_ *const d = (npuprof_device_entry_ *)(void *)e;
        const size_t from = offsetof(npuprof_device_entry_, nominal_hz);
        npuprof_load_swap64_(&d->nominal_hz, (offsetof(npuprof_device_entry_, overflow_epoch) - from) / 8);
        npuprof_load_swap32_(&d->overflow_epoch, 8);
    }
    if (type == NPUPROF_ENTRY_RECORDS)
        npuprof_load_swap64_(((npuprof_records_entry_ *)(void *)e)->counts, NPUPROF_RECORDS_ROOM_);
    if (type == NPUPROF_ENTRY_MODULE) {
        npuprof_module_entry_ *const m = (npuprof_module_entry_ *)(void *)e;
        npuprof_load_swap64_(&m->bias, 3);
        npuprof_load_swap32_(&m->path, 2);
    }
    if (type == NPUPROF_ENTRY_ANCHORS) {
        npuprof_anchors_entry_ *const a = (npuprof_anchors_entry_ *)(void *)e;
        npuprof_load_swap32_(&a->epoch, 2);
        npuprof_load_swap64_(a->anchor, 3 * NPUPROF_ANCHORS_PER_ENTRY_);
    }
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"
#include "check.h"

/* ---- The arena file of a running process. Nobody stops it: what is copied must have stood still.
   The copy holds the chunks that were begun before it and are there still at its end, and for the others how
   many events were overwritten in them by then: so recorded + lost is what was executed. */

typedef struct npuprof_load_live_ {
    const npuprof_header_ *from;           /* the file */
    npuprof_header_ *to;
    uint64_t newest;                       /* base of the newest chunk at the beginning */
} npuprof_load_live_;

static void npuprof_load_copy_words_(void *to, const void *from, size_t bytes)
{
    const uint64_t *f = (const uint64_t *)from;
    for (uint8_t *t = (uint8_t *)to; bytes >= 8; bytes -= 8, t += 8) {
        const uint64_t v = NPUPROF_LOAD_ACQUIRE_(f++);
        memcpy(t, &v, 8);
    }
}
static npuprof_chunk_ *npuprof_load_chunk_in_(const npuprof_header_ *h, uint32_t index)
{
    return (npuprof_chunk_ *)((uintptr_t)h + h->chunks_offset + (size_t)index * h->chunk_bytes);
}
static bool npuprof_load_has_records_(uint16_t state)
{
    return state == NPUPROF_CHUNK_OPEN || state == NPUPROF_CHUNK_RETIRED;
}

/* Does the chunk hold what was copied, at most with more behind it? An owner's position never comes again. */
static bool npuprof_load_is_unchanged_(const npuprof_load_live_ *x, uint32_t index)
{
    const npuprof_chunk_ *const now = npuprof_load_chunk_in_(x->from, index);
    const npuprof_chunk_ *const copy = npuprof_load_chunk_in_(x->to, index);
    const npuprof_overwritten_ *const o = npuprof_chunk_overwritten_at_(x->from, index);
    return npuprof_load_has_records_(NPUPROF_LOAD_ACQUIRE_(&now->state)) &&
           NPUPROF_LOAD_ACQUIRE_(&now->owner) == copy->owner &&
           NPUPROF_LOAD_ACQUIRE_(&now->first_position) == copy->first_position &&
           !NPUPROF_LOAD_ACQUIRE_(&o->next) &&
           NPUPROF_LOAD_ACQUIRE_(&o->count) == npuprof_chunk_overwritten_at_(x->to, index)->count;
}
/* Nothing is in it; how many were. */
static void npuprof_load_copy_empty_(const npuprof_load_live_ *x, uint32_t index)
{
    const npuprof_overwritten_ *const o = npuprof_chunk_overwritten_at_(x->from, index);
    npuprof_overwritten_ *const copy = npuprof_chunk_overwritten_at_(x->to, index);
    for (;;) {
        copy->next = NPUPROF_LOAD_ACQUIRE_(&o->next);
        copy->count = NPUPROF_LOAD_ACQUIRE_(&o->count);
        if (copy->next == NPUPROF_LOAD_ACQUIRE_(&o->next)) break;
    }
    npuprof_load_chunk_in_(x->to, index)->state = NPUPROF_CHUNK_FREE;
}
static void npuprof_load_copy_chunk_(const npuprof_load_live_ *x, uint32_t index)
{
    const npuprof_chunk_ *const from = npuprof_load_chunk_in_(x->from, index);
    npuprof_chunk_ *const copy = npuprof_load_chunk_in_(x->to, index);
    npuprof_load_copy_empty_(x, index);
    const uint16_t state = NPUPROF_LOAD_ACQUIRE_(&from->state);
    const uint32_t owner = NPUPROF_LOAD_ACQUIRE_(&from->owner);
    const uint64_t position = NPUPROF_LOAD_ACQUIRE_(&from->first_position);
    if (!npuprof_load_has_records_(state) || !owner || npuprof_chunk_overwritten_at_(x->to, index)->next) return;
    npuprof_load_copy_words_(copy, from, x->to->chunk_bytes);
    if (copy->owner == owner && copy->first_position == position && npuprof_load_is_unchanged_(x, index)) return;
    npuprof_load_copy_empty_(x, index);
    npuprof_loaded_.damage.changed++;
}
/* Is it there still, and older than the read? */
static void npuprof_load_recheck_chunk_(const npuprof_load_live_ *x, uint32_t index)
{
    npuprof_chunk_ *const copy = npuprof_load_chunk_in_(x->to, index);
    if (!npuprof_load_has_records_(copy->state)) return;
    const npuprof_chunk_ *const now = npuprof_load_chunk_in_(x->from, index);
    if (!npuprof_load_is_unchanged_(x, index)) {
        npuprof_load_copy_empty_(x, index);
        npuprof_loaded_.damage.changed++;
    } else if ((int64_t)(copy->base - x->newest) > 0) {
        copy->state = NPUPROF_CHUNK_FREE;
    } else if (copy->state == NPUPROF_CHUNK_OPEN && NPUPROF_LOAD_ACQUIRE_(&now->state) == NPUPROF_CHUNK_RETIRED) {
        npuprof_load_copy_chunk_(x, index);     /* Why: it is whole now, and its open spans have moved */
    }
}
static void npuprof_load_copy_chunks_(npuprof_load_live_ *x, uint32_t chunks)
{
    bool any = false;
    for (uint32_t i = 0; i < chunks; i++) {
        const npuprof_chunk_ *const chunk = npuprof_load_chunk_in_(x->from, i);
        const uint64_t base = NPUPROF_LOAD_ACQUIRE_(&chunk->base);
        if (NPUPROF_LOAD_ACQUIRE_(&chunk->state) != NPUPROF_CHUNK_OPEN) continue;
        if (any && (int64_t)(base - x->newest) <= 0) continue;
        x->newest = base;
        any = true;
    }
    for (uint32_t i = 0; i < chunks; i++) npuprof_load_copy_chunk_(x, i);
    for (uint32_t i = 0; i < chunks; i++) npuprof_load_recheck_chunk_(x, i);
    for (uint32_t i = 0; i < chunks; i++)
        if (NPUPROF_LOAD_ACQUIRE_(&npuprof_load_chunk_in_(x->from, i)->state) == NPUPROF_CHUNK_SLOTS)
            npuprof_load_copy_words_(npuprof_load_chunk_in_(x->to, i), npuprof_load_chunk_in_(x->from, i), x->to->chunk_bytes);
}
/* The header, and the names: after the records, which may have the newest of them. */
static void npuprof_load_copy_names_(const npuprof_load_live_ *x)
{
    enum { NPUPROF_CLOCKS_FROM_ = offsetof(npuprof_header_, first), NPUPROF_CLOCKS_TO_ = offsetof(npuprof_header_, last_used) };
    npuprof_header_ before;
    memset(&before, 0, sizeof before);
    /* Why until it is the same twice: a clock anchor is renewed now and then. */
    for (unsigned n = 0; n < 1000; n++) {
        if (memcmp((const uint8_t *)&before + NPUPROF_CLOCKS_FROM_, (const uint8_t *)x->to + NPUPROF_CLOCKS_FROM_,
                   NPUPROF_CLOCKS_TO_ - NPUPROF_CLOCKS_FROM_) == 0) break;
        before = *x->to;
        npuprof_load_copy_words_(x->to, x->from, sizeof *x->to);
    }
    const size_t at = x->to->table_offset, bytes = (size_t)npuprof_min_(x->to->table_used, x->to->table_bytes);
    npuprof_load_copy_words_((uint8_t *)x->to + at, (const uint8_t *)x->from + at, bytes);
}
/* A copy of an arena that others may be writing into, in memory of its own. NULL: it is none that can be copied,
   or there is no memory. */
static void *npuprof_load_copy_arena_(const uint8_t *from, size_t bytes)
{
    npuprof_header_ h;
    npuprof_load_live_ x = { (const npuprof_header_ *)(const void *)from, NULL, 0 };
    uint64_t offset;
    if (bytes < sizeof h) return NULL;
    memcpy(&h, from, sizeof h);
    if (memcmp(h.magic, "NPUPROF\n", 8) != 0 || h.endian != 0x01020304u) return NULL;
    if (npuprof_load_header_fault_(&h, bytes, &offset) || h.layout != NPUPROF_LAYOUT_ARENA) return NULL;
    const uint32_t chunks = (uint32_t)npuprof_min_((bytes - h.chunks_offset) / h.chunk_bytes, h.chunk_next);
    const uint64_t end = h.overwritten_offset + (uint64_t)chunks * sizeof(npuprof_overwritten_);
    if (!h.overwritten_offset || h.overwritten_offset % 8 || h.chunks_offset % 8 || end > bytes) return NULL;
    if ((uint64_t)h.table_offset + h.table_bytes > bytes) return NULL;
    x.to = (npuprof_header_ *)npuprof_os_memory_(bytes);
    if (!x.to) return NULL;
    memcpy(x.to, &h, sizeof h);
    npuprof_load_copy_chunks_(&x, chunks);
    npuprof_load_copy_names_(&x);
    return x.to;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"
#include "header.h"

/* The arena file of a running process, copied while it records. Nobody can stop it, so the copy must show one
   moment.
   L1  The moment is the beginning of the copying: `newest` is the base of the newest chunk then. Chunks that
       were begun later are left out.
   L2  A chunk that was there at that moment and still is when all chunks are copied goes into the copy.
   L3  Of any other chunk the copy has the count of what was overwritten in it by then.
   So recorded + lost is what was executed. A chunk that L2 was true for and then was not counts as `changed`.
   Data: the file is only read, each word once with acquire, as src/arena/ orders its writes. The copy is
   ours. */

typedef struct npuprof_load_live_ {
    const npuprof_header_ *from;           /* the file */
    npuprof_header_ *to;                   /* the copy */
    uint64_t newest;                       /* see L1 */
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

/* Does the chunk still hold what was copied, at most with more behind it? An owner has each position only
   once. */
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

/* Leaves the chunk out; copies how many events were overwritten in it. */
static void npuprof_load_copy_empty_(const npuprof_load_live_ *x, uint32_t index)
{
    const npuprof_overwritten_ *const o = npuprof_chunk_overwritten_at_(x->from, index);
    npuprof_overwritten_ *const copy = npuprof_chunk_overwritten_at_(x->to, index);
    do {
        copy->next = NPUPROF_LOAD_ACQUIRE_(&o->next);
        copy->count = NPUPROF_LOAD_ACQUIRE_(&o->count);
    } while (copy->next != NPUPROF_LOAD_ACQUIRE_(&o->next));
    npuprof_load_chunk_in_(x->to, index)->state = NPUPROF_CHUNK_FREE;
}

/* Leaves out a chunk that was reused while it was copied. */
static void npuprof_load_copy_changed_(const npuprof_load_live_ *x, uint32_t index)
{
    npuprof_load_copy_empty_(x, index);
    npuprof_loaded_.damage.changed++;
}

/* What the looks before have seen, for one that goes on from them (top.h): of each chunk that was full, who
   filled it and where, as a hash; 0: none. A full chunk does not change until another owner takes it. */
static struct { bool on, is_first; uint64_t *full; uint32_t chunks; } npuprof_load_seen_;

static uint64_t npuprof_load_chunk_key_(uint32_t owner, uint64_t position)
{
    return npuprof_hash_mix_(position ^ (uint64_t)owner << 40) | 1;
}

/* Is it a chunk that need not be copied? The first look takes all that are full for seen. */
static bool npuprof_load_was_seen_(uint32_t index, uint16_t state, uint32_t owner, uint64_t position)
{
    if (!npuprof_load_seen_.full || index >= npuprof_load_seen_.chunks || state != NPUPROF_CHUNK_RETIRED)
        return false;
    const uint64_t key = npuprof_load_chunk_key_(owner, position);
    if (npuprof_load_seen_.is_first) npuprof_load_seen_.full[index] = key;
    return npuprof_load_seen_.full[index] == key;
}

/* Notes the chunks of the copy that were full. */
static void npuprof_load_note_seen_(const npuprof_load_live_ *x, uint32_t chunks)
{
    for (uint32_t i = 0; npuprof_load_seen_.full && i < chunks && i < npuprof_load_seen_.chunks; i++) {
        const npuprof_chunk_ *const copy = npuprof_load_chunk_in_(x->to, i);
        if (copy->state != NPUPROF_CHUNK_RETIRED) continue;
        npuprof_load_seen_.full[i] = npuprof_load_chunk_key_(copy->owner, copy->first_position);
    }
    npuprof_load_seen_.is_first = false;
}

static void npuprof_load_copy_chunk_(const npuprof_load_live_ *x, uint32_t index)
{
    const npuprof_chunk_ *const from = npuprof_load_chunk_in_(x->from, index);
    npuprof_chunk_ *const copy = npuprof_load_chunk_in_(x->to, index);
    npuprof_load_copy_empty_(x, index);
    const uint16_t state = NPUPROF_LOAD_ACQUIRE_(&from->state);
    const uint32_t owner = NPUPROF_LOAD_ACQUIRE_(&from->owner);
    const uint64_t position = NPUPROF_LOAD_ACQUIRE_(&from->first_position);
    if (!npuprof_load_has_records_(state) || !owner || npuprof_chunk_overwritten_at_(x->to, index)->next)
        return;
    if (npuprof_load_was_seen_(index, state, owner, position)) return;
    npuprof_load_copy_words_(copy, from, x->to->chunk_bytes);
    const bool is_same = copy->owner == owner && copy->first_position == position;
    if (!is_same || !npuprof_load_is_unchanged_(x, index)) npuprof_load_copy_changed_(x, index);
}

/* Holds the copy of a chunk to L1 and L2. */
static void npuprof_load_recheck_chunk_(const npuprof_load_live_ *x, uint32_t index)
{
    const npuprof_chunk_ *const now = npuprof_load_chunk_in_(x->from, index);
    npuprof_chunk_ *const copy = npuprof_load_chunk_in_(x->to, index);
    if (!npuprof_load_has_records_(copy->state)) return;
    if (!npuprof_load_is_unchanged_(x, index)) npuprof_load_copy_changed_(x, index);
    else if ((int64_t)(copy->base - x->newest) > 0) copy->state = NPUPROF_CHUNK_FREE;
    /* Why a second copy: the chunk is full now, and the spans that are open in it have moved to the next
       one. */
    else if (copy->state == NPUPROF_CHUNK_OPEN && NPUPROF_LOAD_ACQUIRE_(&now->state) == NPUPROF_CHUNK_RETIRED)
        npuprof_load_copy_chunk_(x, index);
}

static void npuprof_load_copy_chunks_(npuprof_load_live_ *x, uint32_t chunks)
{
    bool any = false;
    for (uint32_t i = 0; i < chunks; i++) {
        const npuprof_chunk_ *const chunk = npuprof_load_chunk_in_(x->from, i);
        const uint64_t base = NPUPROF_LOAD_ACQUIRE_(&chunk->base);
        /* Why full ones, too: the newest one may have filled up since the beginning. */
        if (!npuprof_load_has_records_(NPUPROF_LOAD_ACQUIRE_(&chunk->state))) continue;
        if (any && (int64_t)(base - x->newest) <= 0) continue;
        x->newest = base;
        any = true;
    }
    for (uint32_t i = 0; i < chunks; i++) npuprof_load_copy_chunk_(x, i);
    for (uint32_t i = 0; i < chunks; i++) npuprof_load_recheck_chunk_(x, i);
    for (uint32_t i = 0; i < chunks; i++) {
        const npuprof_chunk_ *const chunk = npuprof_load_chunk_in_(x->from, i);
        if (NPUPROF_LOAD_ACQUIRE_(&chunk->state) != NPUPROF_CHUNK_SLOTS) continue;
        npuprof_load_copy_words_(npuprof_load_chunk_in_(x->to, i), chunk, x->to->chunk_bytes);
    }
}

/* Copies the chunks where the table goes on, also those that held records when these were copied. */
static void npuprof_load_copy_pages_(const npuprof_load_live_ *x, uint32_t chunks)
{
    for (uint32_t i = 0; i < chunks; i++) {
        const npuprof_chunk_ *const chunk = npuprof_load_chunk_in_(x->from, i);
        npuprof_chunk_ *const copy = npuprof_load_chunk_in_(x->to, i);
        if (NPUPROF_LOAD_ACQUIRE_(&chunk->state) != NPUPROF_BLOCK_TABLE_PIECE) continue;
        if (npuprof_load_has_records_(copy->state)) npuprof_load_copy_changed_(x, i);
        npuprof_load_copy_words_(copy, chunk, x->to->chunk_bytes);
        /* Why: a thread that another one was faster than gave it back, and it holds records now. */
        if (copy->state != NPUPROF_BLOCK_TABLE_PIECE) copy->state = NPUPROF_CHUNK_FREE;
    }
}

/* Copies the header and the table. Call after the records are copied: they may use the newest names. */
static void npuprof_load_copy_names_(const npuprof_load_live_ *x, size_t arena_bytes)
{
    const size_t clocks = offsetof(npuprof_header_, first), clocks_end = offsetof(npuprof_header_, last_used);
    const npuprof_header_ checked = *x->to;
    npuprof_header_ before;
    memset(&before, 0, sizeof before);
    /* Why until the clock anchors are the same twice: one may be written just now. */
    for (unsigned n = 0; n < 1000; n++) {
        if (memcmp((const uint8_t *)&before + clocks, (const uint8_t *)x->to + clocks,
                   clocks_end - clocks) == 0) break;
        before = *x->to;
        npuprof_load_copy_words_(x->to, x->from, sizeof *x->to);
    }
    /* Why: nobody else has checked what the file says of them by now. */
    x->to->table_offset = checked.table_offset;
    x->to->table_bytes = checked.table_bytes;
    x->to->chunks_offset = checked.chunks_offset;
    x->to->chunk_bytes = checked.chunk_bytes;
    const size_t bytes = (size_t)npuprof_min_(x->to->table_used, x->to->table_bytes);
    const size_t at = x->to->table_offset;
    npuprof_load_copy_words_((uint8_t *)x->to + at, (const uint8_t *)x->from + at, bytes);
    const size_t room = (arena_bytes - x->to->chunks_offset) / x->to->chunk_bytes;
    npuprof_load_copy_pages_(x, (uint32_t)npuprof_min_(room, x->to->chunk_next));
}

/* A copy of an arena that a process is writing into, in memory of its own. NULL: it is no arena that can be
   copied, or there is no memory. */
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
    x.to = (npuprof_header_ *)npuprof_load_memory_(bytes);
    if (!x.to) return NULL;
    memcpy(x.to, &h, sizeof h);
    if (npuprof_load_seen_.on && !npuprof_load_seen_.full) {
        npuprof_load_seen_.full = (uint64_t *)npuprof_os_memory_((size_t)h.chunk_count * 8 + 8);
        npuprof_load_seen_.chunks = h.chunk_count;
    }
    npuprof_load_copy_chunks_(&x, chunks);
    npuprof_load_note_seen_(&x, chunks);
    npuprof_load_copy_names_(&x, bytes);
    return x.to;
}

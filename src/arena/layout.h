#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/hash.h"
#include "../numbers/time.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "state.h"
#include "../os/common.h"
#include "../clock/host.h"
#include "anchors.h"

#include <string.h>

/* Lays an arena out in a piece of memory: how big the table's first part, the queue and the chunks are, and
   where they begin. Writes the whole header, and where things lie into the state. One thread is here, before
   others can record. It does not know whose memory it is. */

/* The bits of chunk_free and of the queue's entries that hold index + 1 of a chunk (R3, R5). */
#define NPUPROF_CHUNK_NUMBER_MASK_ ((uint32_t)0xFFFFF)

/* A mark of a process: the low half of seed_high. Trace ids show by it which process of a host they are
   of. */
static uint32_t npuprof_arena_mark_of_pid_(uint32_t pid) { return (uint32_t)npuprof_hash_mix_(pid); }

/* Begins a trace in an arena that is laid out: clocks, names, ids. */
static void npuprof_arena_begin_trace_(npuprof_header_ *h)
{
    h->pid = npuprof_os_pid_();
    npuprof_os_names_(h->host, sizeof h->host, h->program, sizeof h->program);
    npuprof_arena_read_anchor_(&h->first);
    h->last[0] = h->last[1] = h->first;
    h->last_used = 0;
    const uint64_t seed = npuprof_hash_mix_((uint64_t)h->first.unix_ns ^ (uint64_t)h->pid << 32);
    h->seed_high = (seed & ~(uint64_t)UINT32_MAX) | npuprof_arena_mark_of_pid_(h->pid);
    h->seed_low = npuprof_hash_mix_(h->seed_high ^ h->first.ticks);
}

/* Bigger chunks change less often; smaller ones leave less unused, and lose less at a time with
   keep-newest. */
static uint32_t npuprof_arena_chunk_bytes_(size_t bytes)
{
    if (bytes >> 16 >> 16) return 65536;               /* 4 GiB; a size_t may have 32 bits */
    if (bytes >= 1024 * 1024) return 8192;
    return bytes >= 128 * 1024 ? 4096 : bytes >= 16384 ? 1024 : bytes >= 4096 ? 512 : 256;
}

/* The table's first part: pages | index | buckets | entries. */
typedef struct npuprof_arena_table_plan_ {
    uint32_t pages, index, buckets;        /* words of 4 bytes */
    uint32_t first, bytes;                 /* offset of the first entry; bytes of the part */
} npuprof_arena_table_plan_;

/* With all of its pages the table takes a quarter of a small arena, an eighth of others, and no more than
   256 MiB. The first part has space for ten names at least. Why the smallest arenas have only a first part:
   they have few chunks, and threads need those. */
static npuprof_arena_table_plan_ npuprof_arena_plan_table_(uint64_t bytes)
{
    npuprof_arena_table_plan_ p;
    const uint32_t most = (uint32_t)npuprof_min_(bytes / (bytes < 65536 ? 4 : 8), 256 * 1024 * 1024);
    const uint32_t entries = bytes < 16384 ? most : (uint32_t)npuprof_max_(bytes / 256, 1024);
    const uint32_t page = npuprof_arena_chunk_bytes_((size_t)bytes) - (uint32_t)sizeof(npuprof_chunk_);
    const uint32_t most_index = (NPUPROF_ID_MASK_ + 1) / NPUPROF_TABLE_SITES_;
    p.pages = (most - entries + page - 1) / page;
    p.index = (uint32_t)npuprof_min_(most / 512 + 1, most_index);
    for (p.buckets = 8; p.buckets < most / 256;) p.buckets *= 2;
    p.first = ((p.pages + p.index + p.buckets) * 4 + 15) / 16 * 16;
    p.bytes = (p.first + entries + 63) / 64 * 64;
    return p;
}

/* Zeroes all but the chunks (not if the memory is fresh: zero already), and writes the sizes and offsets. */
static void npuprof_arena_plan_(npuprof_header_ *h, size_t bytes, bool fresh)
{
    const uint32_t max_chunks = NPUPROF_CHUNK_NUMBER_MASK_ - 1;
    const size_t header_bytes = (sizeof(npuprof_header_) + 63) / 64 * 64;
    const npuprof_arena_table_plan_ table = npuprof_arena_plan_table_(bytes);
    const uint32_t chunk_bytes = npuprof_arena_chunk_bytes_(bytes);
    const size_t for_each = chunk_bytes + sizeof(npuprof_overwritten_);      /* and 4 bytes of the queue */
    uint32_t queue_slots = 1;
    uint32_t count = (uint32_t)((bytes - header_bytes - table.bytes) / (for_each + 4));
    if (count > max_chunks) count = max_chunks;
    while (queue_slots < count) queue_slots *= 2;
    const size_t queue_offset = header_bytes + table.bytes;
    const size_t overwritten_offset = queue_offset + ((size_t)queue_slots * 4 + 15) / 16 * 16;
    while (count && overwritten_offset + count * for_each > bytes) count--;
    const size_t chunks_offset = overwritten_offset + count * sizeof(npuprof_overwritten_);
    if (!fresh) memset(h, 0, chunks_offset);
    h->arena_bytes = bytes;
    h->header_bytes = (uint32_t)header_bytes;
    h->table_offset = (uint32_t)header_bytes;
    h->table_bytes = table.bytes;
    h->table_unit = NPUPROF_TABLE_UNIT_;
    h->table_first = h->table_used = table.first;
    h->queue_offset = (uint32_t)queue_offset;
    h->queue_slots = queue_slots;
    h->overwritten_offset = (uint32_t)overwritten_offset;
    h->chunks_offset = (uint32_t)chunks_offset;
    h->chunk_bytes = chunk_bytes;
    h->chunk_count = count;
}

/* From now on the arena in that memory, which is laid out, is this file's. */
static void npuprof_arena_use_(void *memory)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    npuprof_header_ *const h = (npuprof_header_ *)memory;
    const npuprof_arena_table_plan_ table = npuprof_arena_plan_table_(h->arena_bytes);
    s->base = (uint8_t *)memory;
    s->header = h;
    NPUPROF_STORE_(&npuprof_lost_, &h->lost[0]);
    s->table = s->base + h->table_offset;
    s->table_units = table.bytes / NPUPROF_TABLE_UNIT_;
    s->pages = (uint32_t *)(void *)s->table;
    s->page_count = table.pages;
    for (s->page_shift = 0; h->chunk_bytes >> s->page_shift > NPUPROF_TABLE_UNIT_;) s->page_shift++;
    s->index = s->pages + table.pages;
    s->index_count = table.index;
    s->buckets = s->index + table.index;
    s->bucket_count = table.buckets;
    s->queue = (uint32_t *)(void *)(s->base + h->queue_offset);
    s->chunks = s->base + h->chunks_offset;
}

/* A slot: its words, its open spans, and with NPUPROF_AUTO its calls, as many as can be open spans. In the
   smallest arenas they are what space there is. */
static void npuprof_arena_plan_slot_(npuprof_header_ *h)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    const uint32_t room = h->chunk_bytes - (uint32_t)sizeof(npuprof_chunk_);
    const uint32_t all = room / (uint32_t)sizeof(npuprof_unit_);
    s->units = all - 1;                    /* R13 */
    s->correlation_at = (uint32_t)(sizeof(npuprof_slot_) + all * sizeof(npuprof_token_) + 7) / 8 * 8;
    h->slot_bytes = s->correlation_at + (uint32_t)sizeof(uint64_t);
#ifdef NPUPROF_AUTO
    const uint32_t each = (uint32_t)sizeof(npuprof_slot_call_), rest = room - h->slot_bytes;
    s->slot_calls = (uint32_t)npuprof_min_(rest / each, npuprof_min_(s->units / 2 + 4, 256 + 2));
    s->slot_calls_at = h->slot_bytes;
    h->slot_bytes += s->slot_calls * each;
#endif
    h->slot_bytes = (h->slot_bytes + 15) / 16 * 16;
}

/* Lays an empty arena out. Chunks need not be zero. fresh: all of the memory is zero, and the pages of the
   table are left alone. False: the memory is too small, or not aligned to 8. */
static bool npuprof_arena_lay_out_(void *memory, size_t bytes, int when_full, bool fresh)
{
    npuprof_arena_state_ *s = &npuprof_arena_;
    npuprof_header_ *h = (npuprof_header_ *)memory;
    const uint64_t max_bytes = (uint64_t)16 * UINT32_MAX;      /* slots have unit numbers of 32 bits */
    if ((uint64_t)bytes > max_bytes) bytes = (size_t)max_bytes;
    if (bytes < 2048 || ((uintptr_t)memory & 7)) return false;
    npuprof_arena_plan_(h, bytes, fresh);
    h->endian = 0x01020304u;
    h->format = 1;
    h->layout = NPUPROF_LAYOUT_ARENA;
    h->when_full = (uint32_t)when_full;
    s->when_full = when_full;
    npuprof_arena_plan_slot_(h);
    h->clock_source = (uint32_t)npuprof_clock_source_;
    h->clock_bits = NPUPROF_CLOCK_BITS_;
#ifdef NPUPROF_NOW
    h->clock_hz = npuprof_user_hz_();
#endif
    npuprof_arena_use_(memory);
    s->chunk_free = 0;
    s->slots_free = s->slots_left = s->slots_swept = s->slots_taken = s->slots_checked = 0;
    npuprof_arena_begin_trace_(h);
    memcpy(h->magic, "NPUPROF\n", 8);
    return h->chunk_count > 0;
}

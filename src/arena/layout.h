#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/hash.h"
#include "../numbers/time.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "state.h"
#include "../os/common.h"
#include "../clock/host.h"
#include "time.h"

/* Begins a trace in an arena that is laid out: clocks, names, seed. */
static void npuprof_arena_begin_trace_(npuprof_header_ *h)
{
    h->pid = npuprof_os_pid_();
    npuprof_os_names_(h->host, sizeof h->host, h->program, sizeof h->program);
    npuprof_arena_read_anchor_(&h->first);
    h->last[0] = h->last[1] = h->first;
    h->last_used = 0;
    h->seed_high = (npuprof_hash_mix_((uint64_t)h->first.unix_ns ^ (uint64_t)h->pid << 32) & ~(uint64_t)UINT32_MAX) | npuprof_arena_mark_of_pid_(h->pid);
    h->seed_low = npuprof_hash_mix_(h->seed_high ^ h->first.ticks);
}

/* The bits of chunk_free and of the queue's entries that hold index + 1 of a chunk. */
#define NPUPROF_CHUNK_NUMBER_MASK_ ((uint32_t)0xFFFFF)

/* Lays an empty arena out in that memory. Chunks need not be zero: each is zeroed when it is taken. fresh:
   all of it is zero already, and the table's pages are left alone. False: too small. */
static bool npuprof_arena_lay_out_(void *memory, size_t bytes, int when_full, bool fresh)
{
    npuprof_arena_state_ *s = &npuprof_s_;
    const size_t header_bytes = (sizeof(npuprof_header_) + 63) / 64 * 64;
    /* Slots have unit numbers of 32 bits. */
    if ((uint64_t)bytes > (uint64_t)16 * UINT32_MAX) bytes = (size_t)((uint64_t)16 * UINT32_MAX);
    if (bytes < 2048 || ((uintptr_t)memory & 7)) return false;
    size_t table_bytes = bytes < 65536 ? bytes / 4 : bytes / 8;
    if (table_bytes > 256 * 1024 * 1024) table_bytes = 256 * 1024 * 1024;
    table_bytes = table_bytes / 64 * 64;
    const uint32_t unit = NPUPROF_TABLE_UNIT_;
    uint32_t buckets = 8;
    while (buckets < table_bytes / 256) buckets *= 2;
    const uint32_t chunk_bytes = (uint64_t)bytes >= (uint64_t)1 << 32 ? 65536 : bytes >= 1024 * 1024 ? 8192 : bytes >= 128 * 1024 ? 4096 : bytes >= 16384 ? 1024 : bytes >= 4096 ? 512 : 256;
    npuprof_header_ *h = (npuprof_header_ *)memory;
    uint32_t chunk_count = (uint32_t)((bytes - header_bytes - table_bytes) / (chunk_bytes + 4 + sizeof(npuprof_overwritten_))), queue_slots = 1;
    if (chunk_count > NPUPROF_CHUNK_NUMBER_MASK_ - 1) chunk_count = NPUPROF_CHUNK_NUMBER_MASK_ - 1;
    while (queue_slots < chunk_count) queue_slots *= 2;
    size_t queue_bytes = ((size_t)queue_slots * 4 + 15) / 16 * 16;
    while (chunk_count && header_bytes + table_bytes + queue_bytes + chunk_count * (chunk_bytes + sizeof(npuprof_overwritten_)) > bytes) chunk_count--;
    const size_t overwritten_offset = header_bytes + table_bytes + queue_bytes, chunks_offset = overwritten_offset + chunk_count * sizeof(npuprof_overwritten_);
    if (!fresh) memset(memory, 0, chunks_offset);
    h->endian = 0x01020304u;
    h->format = 1;
    h->layout = NPUPROF_LAYOUT_ARENA;
    h->arena_bytes = bytes;
    h->header_bytes = (uint32_t)header_bytes;
    h->table_offset = (uint32_t)header_bytes;
    h->table_bytes = (uint32_t)table_bytes;
    h->table_unit = unit;
    h->bucket_count = buckets;
    h->table_used = (buckets * 4 + unit - 1) / unit * unit;
    h->queue_offset = (uint32_t)(header_bytes + table_bytes);
    h->queue_slots = queue_slots;
    h->overwritten_offset = (uint32_t)overwritten_offset;
    h->chunks_offset = (uint32_t)chunks_offset;
    h->chunk_bytes = chunk_bytes;
    h->chunk_count = chunk_count;
    h->when_full = (uint32_t)when_full;
    s->when_full = when_full;
    s->units = (uint32_t)((chunk_bytes - sizeof(npuprof_chunk_)) / sizeof(npuprof_unit_));
    h->slot_bytes = (uint32_t)((sizeof(npuprof_slot_) + s->units * sizeof(npuprof_token_) + 15) / 16 * 16);
    h->clock_source = (uint32_t)npuprof_clock_source_;
    h->clock_bits = NPUPROF_CLOCK_BITS_;
#ifdef NPUPROF_NOW
    h->clock_hz = npuprof_user_hz_();
#endif
    s->base = (uint8_t *)memory;
    s->header = h;
    NPUPROF_STORE_(&npuprof_lost_, &h->lost[0]);
    s->table = s->base + h->table_offset;
    s->buckets = (uint32_t *)(void *)s->table;
    s->queue = (uint32_t *)(void *)(s->base + h->queue_offset);
    s->chunks = s->base + h->chunks_offset;
    s->chunk_free = 0;
    npuprof_arena_begin_trace_(h);
    memcpy(h->magic, "NPUPROF\n", 8);
    return h->chunk_count > 0;
}

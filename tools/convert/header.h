#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"
#include "swap.h"

/* The header of an image with layout ARENA, CODED or STREAM. First all that the rest is found by: a fault
   there refuses the image. Then the values that outputs show: a fault there is damage, and the value is
   replaced by one that says nothing. */

enum { NPUPROF_LOAD_TABLE_MAX_ = 512 * 1024 * 1024 };      /* bytes: twice as much as is ever written */

/* Can the rest of the image be found by this header? NULL: yes. Else what is wrong, at *offset of the
   header. */
static const char *npuprof_load_header_fault_(const npuprof_header_ *h, size_t bytes, uint64_t *offset)
{
    const uint32_t most_table = NPUPROF_LOAD_TABLE_MAX_;
    const uint64_t table_end = (uint64_t)h->table_offset + npuprof_min_(h->table_used, h->table_bytes);
    const bool is_arena = h->layout == NPUPROF_LAYOUT_ARENA;
#define NPUPROF_LOAD_REFUSE_(field, condition, text)      \
    if (condition) {                                      \
        *offset = offsetof(npuprof_header_, field);       \
        return text;                                      \
    }
    NPUPROF_LOAD_REFUSE_(format, h->format != 1, "an image format that this version does not know")
    NPUPROF_LOAD_REFUSE_(layout, !is_arena && h->layout != NPUPROF_LAYOUT_CODED &&
                         h->layout != NPUPROF_LAYOUT_STREAM, "no such layout")
    NPUPROF_LOAD_REFUSE_(header_bytes, h->header_bytes < sizeof *h || h->header_bytes % 64 ||
                         h->header_bytes > bytes, "the header's size")
    NPUPROF_LOAD_REFUSE_(table_unit, h->table_unit != 16, "the table's unit")
    NPUPROF_LOAD_REFUSE_(table_bytes, h->table_bytes > most_table || h->table_bytes % 16, "the table's size")
    NPUPROF_LOAD_REFUSE_(table_first, h->table_first > h->table_bytes || h->table_first % 16,
                         "the table's first entry")
    NPUPROF_LOAD_REFUSE_(table_used, h->table_used > most_table || h->table_used % 16,
                         "the table's used bytes")
    NPUPROF_LOAD_REFUSE_(chunk_bytes, h->chunk_bytes < 256 || h->chunk_bytes > 65536 || h->chunk_bytes % 16,
                         "the size of a chunk")
    NPUPROF_LOAD_REFUSE_(slot_bytes, h->slot_bytes < sizeof(npuprof_slot_head_) || h->slot_bytes % 8 ||
                         h->slot_bytes > h->chunk_bytes - sizeof(npuprof_chunk_), "the size of a slot")
    NPUPROF_LOAD_REFUSE_(table_offset, is_arena && (h->table_offset % 16 || table_end > bytes),
                         "the table lies outside the file")
    NPUPROF_LOAD_REFUSE_(chunks_offset, is_arena && (h->chunks_offset % 16 || h->chunks_offset > bytes),
                         "the chunks lie outside the file")
#undef NPUPROF_LOAD_REFUSE_
    return NULL;
}

/* The first word of what lies at this offset of the table, in our byte order; 0: it lies outside. */
static uint32_t npuprof_load_table_word_(const uint8_t *bytes, size_t count, uint64_t at)
{
    uint32_t word = 0;
    at += npuprof_loaded_.header.table_offset;
    if (at + sizeof word > count) return 0;
    memcpy(&word, bytes + at, sizeof word);
    if (npuprof_loaded_.swap) npuprof_load_swap32_(&word, 1);
    return word;
}

/* Arenas that were made before 1.0 hold a number of buckets in place of table_first: see format/arena.h. */
static void npuprof_load_read_draft_(const uint8_t *bytes, size_t count)
{
    npuprof_header_ *const h = &npuprof_loaded_.header;
    const uint64_t first = (uint64_t)h->table_first * 4;
    if (h->layout != NPUPROF_LAYOUT_ARENA || first >= h->table_used || (first & (first - 1))) return;
    if (npuprof_load_table_word_(bytes, count, h->table_first) >> 24) return;
    if (npuprof_load_table_word_(bytes, count, first) >> 24) h->table_first = (uint32_t)first;
}

/* Copies the header of an image into npuprof_loaded_.header, in our byte order. NPUPROF_OK, or what is
   wrong. */
static npuprof_result npuprof_load_read_header_(const uint8_t *bytes, size_t count)
{
    npuprof_header_ *const h = &npuprof_loaded_.header;
    uint64_t offset = 0;
    if (count < sizeof *h) return npuprof_load_refuse_(count, "shorter than a header");
    memcpy(h, bytes, sizeof *h);
    if (memcmp(h->magic, "NPUPROF\n", 8) != 0) return npuprof_load_refuse_(0, "not an npuprof image");
    npuprof_loaded_.swap = h->endian == 0x04030201u;
    if (npuprof_loaded_.swap) npuprof_load_swap_header_(h);
    if (h->endian != 0x01020304u) return npuprof_load_refuse_(8, "an unknown byte order");
    npuprof_load_read_draft_(bytes, count);
    const char *const fault = npuprof_load_header_fault_(h, count, &offset);
    return fault ? npuprof_load_refuse_(offset, fault) : NPUPROF_OK;
}

/* Replaces values that cannot be. */
static void npuprof_load_repair_header_(void)
{
    npuprof_header_ *const h = &npuprof_loaded_.header;
    npuprof_host_anchor_ *const anchors[3] = { &h->first, &h->last[0], &h->last[1] };
    h->last_used &= 1;
    h->host[sizeof h->host - 1] = h->program[sizeof h->program - 1] = 0;
    h->traceparent[sizeof h->traceparent - 1] = 0;
    if (h->traceparent[0] && !npuprof_env_is_traceparent_(h->traceparent)) {
        npuprof_load_note_damage_(offsetof(npuprof_header_, traceparent), "a damaged traceparent");
        h->traceparent[0] = 0;
    }
    for (int i = 0; i < 3; i++) {
        int64_t *const ns[3] = { &anchors[i]->monotonic_ns, &anchors[i]->boot_ns, &anchors[i]->unix_ns };
        for (int k = 0; k < 3; k++) {
            if (*ns[k] >= 0 && *ns[k] >> 62 == 0) continue;
            npuprof_load_note_damage_(offsetof(npuprof_header_, first), "a damaged clock anchor");
            *ns[k] = 0;
        }
    }
}

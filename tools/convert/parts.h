#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"
#include "swap.h"

/* Headers and parts of PARTS (src/format/compact.h) in the bytes that a line brought. Bytes may be lost,
   doubled or wrong, and others may stand between. What is found is whole: its CRC is right. Behind a mark
   whose CRC is wrong the search goes on at the next byte, so nothing whole is passed. */

/* What was found. */
typedef struct npuprof_parts_item_ {
    size_t bytes;                  /* it has so many; 0: nothing was found */
    bool is_header, swap;          /* swap: it has the other byte order */
    npuprof_compact_header_ c;     /* a header, in our byte order */
    npuprof_part_head_ part;       /* a part's head, in our byte order */
} npuprof_parts_item_;

static uint32_t npuprof_expand_word_at_(const uint8_t *p, bool swap)
{
    uint32_t v;
    memcpy(&v, p, 4);
    if (swap) npuprof_load_swap32_(&v, 1);
    return v;
}

/* Reads the header at p into *c, in our byte order. NULL, or what is wrong with it. */
static const char *npuprof_expand_header_fault_(const uint8_t *p, size_t count, npuprof_compact_header_ *c,
                                                bool *swap)
{
    if (count < sizeof *c) return "shorter than a header";
    memcpy(c, p, sizeof *c);
    *swap = c->endian == 0x04030201u;
    if (*swap) {
        npuprof_load_swap32_(&c->endian, 4);
        npuprof_load_swap32_(&c->cells, (sizeof *c - offsetof(npuprof_compact_header_, cells)) / 4);
    }
    const bool has_crc = c->layout == NPUPROF_LAYOUT_PARTS;
    const uint32_t crc = has_crc ? ~npuprof_crc_add_(UINT32_MAX, p, sizeof *c - 4) : 0;
    const uint64_t hz = (uint64_t)c->hz_high << 32 | c->hz_low;
    const bool is_header = memcmp(p, "NPUPROF\n", 8) == 0 && c->endian == 0x01020304u && c->format - 1 < 2 &&
                           c->header_bytes == sizeof *c && c->crc == crc;
    const bool is_clock = c->clock_bits >= 8 && c->clock_bits <= 64 && hz && hz <= UINT64_C(1000000000000000);
    const bool is_pointer = c->pointer_bytes == 2 || c->pointer_bytes == 4 || c->pointer_bytes == 8;
    const bool has_cells = c->cells && c->cells <= UINT32_MAX / 16 && c->context_bits <= 8;
    return is_header && is_clock && is_pointer && has_cells ? NULL : "a damaged header";
}

static bool npuprof_expand_is_ring_(const npuprof_compact_header_ *c)
{
    return c->format == 2;
}

/* How many cells an image with this header has. */
static uint32_t npuprof_expand_cell_count_(const npuprof_compact_header_ *c)
{
    return npuprof_expand_is_ring_(c) || c->used > c->cells ? c->cells : c->used;
}

/* Reads the head of a part and checks it. Returns the part's bytes; 0: there is none; more than `left`: it
   goes on behind them. */
static size_t npuprof_parts_part_(const uint8_t *p, size_t left, bool swap, npuprof_part_head_ *part)
{
    if (left < sizeof *part) return sizeof *part;
    memcpy(part, p, sizeof *part);
    if (swap) {
        npuprof_load_swap32_(part, sizeof *part / 4);
        /* They are the halves of one word. */
        const uint16_t count = part->lead;
        part->lead = part->count;
        part->count = count;
    }
    if (!part->count || part->count > NPUPROF_PART_CELLS_ || part->lead > part->count) return 0;
    const size_t cells = (size_t)part->count * sizeof(npuprof_cell_);
    if (cells > left - sizeof *part) return sizeof *part + cells;
    const uint32_t crc = npuprof_crc_add_(UINT32_MAX, p, sizeof *part - 4);
    if (part->crc != ~npuprof_crc_add_(crc, p + sizeof *part, cells)) return 0;
    return sizeof *part + cells;
}

/* What begins at p: *item is filled, if it is whole. Returns its bytes; 0: nothing begins there; more than
   `left`: something may. */
static size_t npuprof_parts_at_(const uint8_t *p, size_t left, npuprof_parts_item_ *item)
{
    /* NPUPROF_PART_MARK_ as the two byte orders send it. */
    static const uint8_t little[4] = { 'N', 'P', 'B', 'T' }, big[4] = { 'T', 'B', 'P', 'N' };
    const uint32_t one = 1;
    const bool we_are_big = *(const uint8_t *)&one == 0;
    const size_t marked = left < 4 ? left : 4, named = left < 8 ? left : 8;
    item->bytes = 0;
    if (memcmp(p, "NPUPROF\n", named) == 0) {
        if (left < sizeof item->c) return sizeof item->c;
        item->is_header = true;
        if (npuprof_expand_header_fault_(p, left, &item->c, &item->swap)) return 0;
        return item->bytes = item->c.layout == NPUPROF_LAYOUT_PARTS ? sizeof item->c : 0;
    }
    const bool is_big = memcmp(p, big, marked) == 0;
    if (!is_big && memcmp(p, little, marked) != 0) return 0;
    item->is_header = false;
    item->swap = is_big != we_are_big;
    const size_t bytes = npuprof_parts_part_(p, left, item->swap, &item->part);
    if (bytes <= left) item->bytes = bytes;
    return bytes;
}

/* Looks for the next header or part from *at on; *at is then where it lies. False: there is none; the search
   goes on at *at when more bytes have come. is_end: none will. */
static bool npuprof_parts_next_(const uint8_t *bytes, size_t count, bool is_end, size_t *at,
                                npuprof_parts_item_ *item)
{
    item->bytes = 0;
    for (; *at < count; ++*at) {
        const uint8_t first = bytes[*at];
        if (first != 'N' && first != 'T') continue;
        const size_t size = npuprof_parts_at_(bytes + *at, count - *at, item);
        if (item->bytes) return true;
        if (size && !is_end) return false;
    }
    return false;
}

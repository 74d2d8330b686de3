#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"
#include "swap.h"

/* Headers and parts of PARTS (src/format/compact.h) in the bytes that a line brought. Bytes may be lost,
   doubled or wrong, and others may stand between. What is found is whole: its CRC is right. Behind a mark
   whose CRC is wrong the search goes on at the next byte, so nothing whole is passed. */

/* What was found. */
typedef struct npuprof_parts_item_ {
    size_t bytes;                  /* it has so many; 0: nothing was found */
    size_t head_bytes;             /* a part: so many of them are in front of its cells */
    bool is_header, swap;          /* swap: it has the other byte order */
    npuprof_compact_header_ c;     /* a header, in our byte order; of a stream, `used` is the number of the
                                      cell behind it */
    npuprof_part_head_ part;       /* a part's head, in our byte order, also of a stream; lead <= count */
} npuprof_parts_item_;

static uint32_t npuprof_expand_word_at_(const uint8_t *p, bool swap)
{
    uint32_t v;
    memcpy(&v, p, 4);
    if (swap) npuprof_load_swap32_(&v, 1);
    return v;
}

/* Reads the header at p into *c, in our byte order. False: it is none. Its crc is not looked at. */
static bool npuprof_expand_read_header_(const uint8_t *p, npuprof_compact_header_ *c, bool *swap)
{
    memcpy(c, p, sizeof *c);
    *swap = c->endian == 0x04030201u;
    if (*swap) {
        npuprof_load_swap32_(&c->endian, 4);
        npuprof_load_swap32_(&c->cells, (sizeof *c - offsetof(npuprof_compact_header_, cells)) / 4);
    }
    const uint64_t hz = (uint64_t)c->hz_high << 32 | c->hz_low;
    const bool is_header = memcmp(p, "NPUPROF\n", 8) == 0 && c->endian == 0x01020304u && c->format == 1 &&
                           c->header_bytes == sizeof *c;
    const bool is_clock = c->clock_bits >= 8 && c->clock_bits <= 64 && hz && hz <= UINT64_C(1000000000000000);
    const bool is_pointer = c->pointer_bytes == 2 || c->pointer_bytes == 4 || c->pointer_bytes == 8;
    const bool has_cells = c->cells && c->cells <= UINT32_MAX / 16 && c->context_bits <= 8;
    return is_header && is_clock && is_pointer && has_cells;
}

static bool npuprof_expand_is_ring_(const npuprof_compact_header_ *c)
{
    return c->build_kind >> 4 != NPUPROF_KEEP_OLDEST;
}

/* Is this the header of a build that streams? */
static bool npuprof_expand_may_stream_(const npuprof_compact_header_ *c)
{
    return npuprof_expand_is_ring_(c) && c->build_kind >> 4 == NPUPROF_STREAM;
}

/* Reads the header at p, which stands for itself, into *c, in our byte order. NULL, or what is wrong. */
static const char *npuprof_expand_header_fault_(const uint8_t *p, size_t count, npuprof_compact_header_ *c,
                                                bool *swap)
{
    if (count < sizeof *c) return "shorter than a header";
    if (!npuprof_expand_read_header_(p, c, swap)) return "a damaged header";
    if (c->layout == NPUPROF_LAYOUT_PARTS)
        return c->crc == ~npuprof_crc_add_(UINT32_MAX, p, sizeof *c - 4) ? NULL : "a damaged header";
    if (npuprof_expand_may_stream_(c) && c->crc & NPUPROF_RING_IS_) return NULL;
    return c->crc > NPUPROF_COMPACT_CHECKED_ ? "a damaged header" : NULL;
}

/* How many cells an image with this header has. */
static uint32_t npuprof_expand_cell_count_(const npuprof_compact_header_ *c)
{
    return npuprof_expand_is_ring_(c) || c->used > c->cells ? c->cells : c->used;
}

/* Reads the head of a part, of so many bytes, whose count and lead are these. Returns the bytes of the part;
   0: it is none; if they are more than `left`, the head may not be there. */
static size_t npuprof_parts_head_(const uint8_t *p, size_t left, bool swap, void *head, size_t bytes,
                                  uint16_t *count, uint16_t *lead)
{
    uint32_t words[sizeof(npuprof_part_head_) / 4];
    if (left < bytes) return bytes;
    memcpy(words, p, bytes);
    if (swap) npuprof_load_swap32_(words, bytes / 4);
    memcpy(head, words, bytes);
    const uint16_t first = *count;
    if (swap) *count = *lead;
    if (swap) *lead = first;
    if (!*count || *count > NPUPROF_PART_CELLS_) return 0;
    return bytes + *count * sizeof(npuprof_cell_);
}

/* Reads the head of a part and checks it. Returns the part's bytes; 0: there is none; more than `left`: it
   goes on behind them. */
static size_t npuprof_parts_part_(const uint8_t *p, size_t left, bool swap, npuprof_part_head_ *part)
{
    const size_t bytes = npuprof_parts_head_(p, left, swap, part, sizeof *part, &part->count, &part->lead);
    if (left < sizeof *part || !bytes) return bytes;
    if (part->lead > part->count) return 0;
    if (bytes > left) return bytes;
    const uint32_t crc = npuprof_crc_add_(UINT32_MAX, p, sizeof *part - 4);
    return part->crc == ~npuprof_crc_add_(crc, p + sizeof *part, bytes - sizeof *part) ? bytes : 0;
}

/* The same of a part of a stream, which may be a header. */
static size_t npuprof_parts_streamed_(const uint8_t *p, size_t left, npuprof_parts_item_ *item)
{
    npuprof_stream_head_ head;
    const size_t next = offsetof(npuprof_stream_head_, next);
    bool swap;
    const size_t bytes =
        npuprof_parts_head_(p, left, item->swap, &head, sizeof head, &head.count, &head.lead);
    if (!bytes || bytes > left) return bytes;
    if (head.crc != ~npuprof_crc_add_(UINT32_MAX, p + next, bytes - next)) return 0;
    item->part.first = head.next - head.count;
    item->part.count = head.count;
    item->part.lead = head.lead < head.count ? head.lead : head.count;
    item->part.names = 0;
    item->part.crc = head.crc;
    item->head_bytes = sizeof head;
    if (bytes != sizeof head + sizeof item->c || memcmp(p + sizeof head, "NPUPROF\n", 8) != 0) return bytes;
    item->is_header = true;
    if (!npuprof_expand_read_header_(p + sizeof head, &item->c, &swap) || swap != item->swap) return 0;
    item->c.used = head.next;
    return npuprof_expand_may_stream_(&item->c) ? bytes : 0;
}

/* Where the mark of a part of a stream lies in these bytes; `count`: none does. */
static size_t npuprof_parts_mark_in_(const uint8_t *bytes, size_t count)
{
    for (size_t at = 0; at + 4 <= count; at++)
        if (memcmp(bytes + at, "NPST", 4) == 0 || memcmp(bytes + at, "TSPN", 4) == 0) return at;
    return count;
}

/* What begins at p: *item is filled, if it is whole. Returns its bytes; 0: nothing begins there; more than
   `left`: something may. */
static size_t npuprof_parts_at_(const uint8_t *p, size_t left, npuprof_parts_item_ *item)
{
    /* NPUPROF_PART_MARK_ and NPUPROF_STREAM_MARK_ as the two byte orders send them. */
    static const char marks[] = "NPBTTBPNNPSTTSPN";
    const uint32_t one = 1;
    const bool we_are_big = *(const uint8_t *)&one == 0;
    const size_t marked = left < 4 ? left : 4, named = left < 8 ? left : 8;
    int mark = 0;
    item->bytes = 0;
    if (memcmp(p, "NPUPROF\n", named) == 0) {
        if (left < sizeof item->c) return sizeof item->c;
        item->is_header = true;
        if (npuprof_expand_header_fault_(p, left, &item->c, &item->swap)) return 0;
        return item->bytes = item->c.layout == NPUPROF_LAYOUT_PARTS ? sizeof item->c : 0;
    }
    while (mark < 4 && memcmp(p, marks + 4 * mark, marked) != 0) mark++;
    if (mark == 4) return 0;
    item->is_header = false;
    item->swap = (mark & 1) != we_are_big;
    item->head_bytes = sizeof item->part;
    const size_t bytes = mark & 2 ? npuprof_parts_streamed_(p, left, item)
                                  : npuprof_parts_part_(p, left, item->swap, &item->part);
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

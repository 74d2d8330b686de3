#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"
#include "swap.h"
#include "header.h"
#include "table.h"
#include "slots.h"
#include "coded.h"
#include "blocks.h"

/* Makes a reader's image (npuprof_loaded_.image) of an ARENA or STREAM image in memory.
   The steps, in the order in which each needs the one before: header, chunks or blocks (blocks.h), values of
   the header, memory beside the image, table (table.h), slots (slots.h), and one look at every record. Behind
   them the reader meets nothing that it cannot decode, and npuprof_damage says what was left out. */

/* Adds what was overwritten in the chunks of an arena to the header's count. A chunk whose `next` is set
   holds nothing that counts. */
static void npuprof_load_count_overwritten_(uint8_t *bytes, size_t count, uint32_t chunks)
{
    npuprof_header_ *const h = &npuprof_loaded_.header;
    const uint64_t offset = h->overwritten_offset;
    h->overwritten_offset = 0;
    if (!offset) return;
    if (offset % 8 || offset + (uint64_t)chunks * sizeof(npuprof_overwritten_) > count) {
        npuprof_load_note_damage_(offsetof(npuprof_header_, overwritten_offset),
                                  "the counts of what was overwritten lie outside the file");
        return;
    }
    for (uint32_t i = 0; i < chunks; i++) {
        npuprof_overwritten_ *const o = (npuprof_overwritten_ *)(void *)(bytes + offset) + i;
        npuprof_chunk_ *const chunk =
            (npuprof_chunk_ *)(void *)(bytes + h->chunks_offset + (size_t)i * h->chunk_bytes);
        if (npuprof_loaded_.swap) npuprof_load_swap64_(&o->count, 2);
        h->lost[NPUPROF_LOST_OVERWRITTEN] += o->next ? o->next - 1 : o->count;
        if (o->next) chunk->state = NPUPROF_CHUNK_FREE;
    }
}

/* Reads the records of a chunk that need a look: plain ones of sites that were met are passed. */
static void npuprof_load_check_chunk_(npuprof_cursor_kinds_ *k, uint32_t index, uint64_t offset)
{
    const npuprof_image_ *const im = &npuprof_loaded_.image;
    const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, index);
    const npuprof_unit_ *const u = (const npuprof_unit_ *)(const void *)(chunk + 1);
    npuprof_cursor_ *const c = &k->cursor;
    npuprof_event_ ev;
    bool shown;
    memset(&ev, 0, sizeof ev);
    if (chunk->moved_units > im->units) npuprof_load_note_damage_(offset - 2, "a damaged chunk");
    npuprof_cursor_begin_chunk_(c, index + 1);
    for (uint32_t n = 0, taken = 1; n < im->units && taken; n += taken) {
        c->unit = n;
        k->plain = npuprof_cursor_begin_plains_(c);
        (void)npuprof_cursor_plain_of_kinds_(k, &ev);
        npuprof_cursor_end_plains_(c, &k->plain);
        n = c->unit;
        taken = npuprof_cursor_decode_(im, index, n, false, &ev, &shown);
        if (ev.kind != NPUPROF_KIND_NONE) npuprof_cursor_note_site_(k, &ev);
        bool good = ev.kind != NPUPROF_KIND_NONE;
        if (taken && n < chunk->moved_units) {
            const uint32_t id = (uint32_t)u[n].w0 & NPUPROF_ID_MASK_;
            const bool is_away = id == NPUPROF_CONTROL_MOVED_AWAY_;
            good = npuprof_image_site_(im, is_away ? (uint32_t)(u[n].w0 >> NPUPROF_ID_BITS_) : id) != NULL;
        }
        if (taken && (!good || ev.unknown))
            npuprof_load_note_damage_(offset + (uint64_t)n * 16,
                                      ev.unknown ? "a unit of a kind that this version does not know"
                                                 : "a damaged record");
    }
}

/* So many call sites, from number 1 on, are all there. */
static uint32_t npuprof_load_known_sites_(void)
{
    const npuprof_image_ *const im = &npuprof_loaded_.image;
    uint32_t known = 0;
    while (known < im->h->sites && im->site_ids[known + 1]) known++;
    return known;
}

/* Reads every record once and counts those that cannot be read. Not those of a block that was decoded and
   whose call sites are there: none is damaged. */
static void npuprof_load_check_records_(uint64_t first_offset)
{
    const npuprof_load_block_ *const blocks = npuprof_loaded_.coded.blocks;
    const uint32_t known = npuprof_load_known_sites_();
    npuprof_image_ *const im = &npuprof_loaded_.image;
    npuprof_cursor_kinds_ k;
    npuprof_cursor_begin_kinds_(&k, 0);
    k.met[0].use = 0;
    im->last_ticks = im->open_until = UINT64_MAX;
    k.cursor.image = im;
    for (uint32_t i = 0; i < npuprof_loaded_.ordered; i++) {
        const uint32_t index = npuprof_loaded_.order[i];
        if (blocks && blocks[index].most < known) continue;
        const uint64_t offset = first_offset + (uint64_t)index * im->h->chunk_bytes + sizeof(npuprof_chunk_);
        npuprof_load_check_chunk_(&k, index, offset);
    }
}

/* The chunks of an arena, or the blocks of a stream: begins the scan, and runs it. */
static npuprof_result npuprof_load_scan_image_(npuprof_load_scan_ *s, uint8_t *bytes, size_t count)
{
    npuprof_header_ *const h = &npuprof_loaded_.header;
    npuprof_image_ *const im = &npuprof_loaded_.image;
    memset(s, 0, sizeof *s);
    s->bytes = bytes;
    s->count = count;
    s->stream = h->layout == NPUPROF_LAYOUT_STREAM;
    s->first_offset = s->stream ? h->header_bytes : h->chunks_offset;
    s->table_part = h->table_bytes;
    s->table_used = s->stream ? 0 : npuprof_min_(h->table_used, h->table_bytes);
    s->chunks = (count - s->first_offset) / h->chunk_bytes;
    if (s->chunks > UINT32_MAX - 1) return npuprof_load_refuse_(s->first_offset, "too many chunks");
    if (!s->stream) {
        if (s->chunks < h->chunk_next) npuprof_load_note_damage_(count, "the file is cut off");
        s->chunks = npuprof_min_(s->chunks, h->chunk_next);
        npuprof_load_count_overwritten_(bytes, count, (uint32_t)s->chunks);
    }
    memset(im, 0, sizeof *im);
    im->h = h;
    im->chunks = bytes + s->first_offset;
    im->units = (h->chunk_bytes - (uint32_t)sizeof(npuprof_chunk_)) / 16;
    npuprof_load_scan_all_(s);
    im->chunk_total = (uint32_t)s->chunks;
    return NPUPROF_OK;
}

/* Fills the memory beside the image: table | slots as sorted | slots as found | order of the chunks | next
   chunk of each | ids of the call sites' entries. False: there is no memory. */
static bool npuprof_load_fill_side_(const npuprof_load_scan_ *s)
{
    npuprof_header_ *const h = &npuprof_loaded_.header;
    const uint32_t ordered = npuprof_loaded_.ordered;
    /* Why not the header's number of sites: that of a stream is older than the table. An entry takes two
       units. */
    h->sites = (uint32_t)npuprof_min_(s->table_used / sizeof(npuprof_pair_entry_), NPUPROF_CONTROL_ - 1);
    const size_t table_bytes = ((size_t)s->table_used + 15) / 16 * 16;
    const size_t sorted_bytes = 16 + ((size_t)s->slots + ordered + 1) * NPUPROF_IMAGE_SLOT_UNITS_ * 16;
    const size_t found_bytes = (size_t)s->slots * sizeof(npuprof_slot_head_);
    const size_t list_bytes = ((size_t)ordered + (size_t)s->chunks + h->sites + 1) * 4;
    npuprof_loaded_.side_bytes = table_bytes + sorted_bytes + found_bytes + list_bytes + 64;
    npuprof_loaded_.side = npuprof_os_memory_(npuprof_loaded_.side_bytes);
    if (!npuprof_loaded_.side) return false;
    uint8_t *const table = (uint8_t *)npuprof_loaded_.side, *const sorted = table + table_bytes;
    npuprof_slot_head_ *const found = (npuprof_slot_head_ *)(void *)(sorted + sorted_bytes);
    npuprof_loaded_.order = (uint32_t *)(void *)(found + s->slots);
    uint32_t *const next = npuprof_loaded_.order + ordered;
    h->table_bytes = (uint32_t)table_bytes;
    if (h->table_first > s->table_used) h->table_first = (uint32_t)s->table_used / 16 * 16;
    const uint64_t found_count = npuprof_load_collect_(s, table, found);
    npuprof_loaded_.image.next = next;
    npuprof_load_check_table_(table, (uint32_t)s->table_used, s->table_part, next + s->chunks,
                              s->stream ? s->first_offset : h->table_offset);
    npuprof_load_make_slots_(next, sorted, found, found_count, s->first_offset);
    return true;
}

/* Loads an image that begins at `bytes`. */
static npuprof_result npuprof_load_arena_locked_(uint8_t *bytes, size_t count)
{
    npuprof_load_scan_ s;
    npuprof_result r = npuprof_load_read_header_(bytes, count);
    if (r == NPUPROF_OK && npuprof_loaded_.header.layout == NPUPROF_LAYOUT_CODED)
        r = npuprof_load_decode_stream_(&bytes, &count);
    if (r == NPUPROF_OK) r = npuprof_load_scan_image_(&s, bytes, count);
    if (r != NPUPROF_OK) return r;
    npuprof_load_repair_header_();
    if (!npuprof_load_fill_side_(&s)) return NPUPROF_ERR_NO_SPACE;
    npuprof_load_check_records_(s.first_offset);
    npuprof_loaded_.header.streamed = 0;   /* what went to the sink is counted here, with the rest */
    npuprof_loaded_.image.damaged = npuprof_loaded_.damage.places;
    return NPUPROF_OK;
}

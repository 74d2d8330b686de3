#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"
#include "swap.h"

/* The table of names of an ARENA or STREAM image, in memory of our own: its parts lie there one behind the
   other. One walk over the entries swaps their bytes, empties those that cannot be read, and notes the ids of
   the call sites by number. Behind this walk the reader may follow any id: it finds an entry of the type it
   asks for, whole, or none. */

/* Bytes that an entry must have at least, by its type. */
static const size_t npuprof_load_entry_bytes_[] = {
    0, sizeof(npuprof_entry_) + 1, sizeof(npuprof_site_entry_), sizeof(npuprof_pair_entry_),
    sizeof(npuprof_pair_entry_), sizeof(npuprof_pause_entry_), sizeof(npuprof_device_entry_),
    sizeof(npuprof_anchors_entry_), sizeof(npuprof_pair_entry_), sizeof(npuprof_records_entry_),
    sizeof(npuprof_module_entry_), sizeof(npuprof_entry_) };

/* Is there room for what its type holds? An unknown type is that of a newer version. left: bytes of the table
   from the entry on. */
static bool npuprof_load_entry_fits_(uint32_t type, uint32_t units, uint32_t left)
{
    if (type > NPUPROF_ENTRY_SKIP) return units && units <= left / 16;
    return units <= left / 16 && (type == 0 || (size_t)units * 16 >= npuprof_load_entry_bytes_[type]);
}

/* A call site: a name that is none becomes 0. False: its number cannot be. One of a kind of a newer version
   is left out, and so are its records. */
static bool npuprof_load_check_site_(npuprof_entry_ *e, uint32_t *site_ids, uint32_t at, uint64_t file_offset)
{
    const npuprof_image_ *const im = &npuprof_loaded_.image;
    const uint32_t number = e->a >> 8, kind = e->a & 0xFF;
    npuprof_site_entry_ *const site = (npuprof_site_entry_ *)(void *)e;
    uint32_t *const names[] = { &site->name, &site->category, &site->file };
    if (!number || number > npuprof_loaded_.header.sites || !kind) return false;
    if (kind >= NPUPROF_KIND_COUNT) {
        npuprof_load_note_damage_(file_offset + at, "a call site of a kind that this version does not know");
        return true;
    }
    for (int i = 0; i < 3; i++) {
        if (!*names[i] || npuprof_image_entry_(im, *names[i], NPUPROF_ENTRY_STRING, sizeof *e)) continue;
        npuprof_load_note_damage_(file_offset + at, "a call site without its name");
        *names[i] = 0;
    }
    site_ids[number] = at / 16;
    return true;
}

/* Does the entry at offset `at` hold what its type says? */
static bool npuprof_load_check_entry_(npuprof_entry_ *e, uint32_t type, uint32_t *site_ids, uint32_t at,
                                      uint64_t file_offset)
{
    const uint32_t bytes = (e->type_units & 0xFFFFFFu) * 16;
    switch (type) {
    case NPUPROF_ENTRY_STRING: return e->a < bytes - sizeof *e && ((const char *)(e + 1))[e->a] == 0;
    case NPUPROF_ENTRY_SITE: return npuprof_load_check_site_(e, site_ids, at, file_offset);
    case NPUPROF_ENTRY_DEVICE:
    case NPUPROF_ENTRY_LANE:
    case NPUPROF_ENTRY_RECORDS: return e->a && e->a < 256;
    case NPUPROF_ENTRY_ANCHORS:
        return ((const npuprof_anchors_entry_ *)(const void *)e)->count <= NPUPROF_ANCHORS_PER_ENTRY_;
    default:
        if (type > NPUPROF_ENTRY_SKIP)
            npuprof_load_note_damage_(file_offset + at, "an entry of a type that this version does not know");
        return true;
    }
}

/* Where the part of the table ends in which an entry lies; `part`: bytes of the first one. */
static uint64_t npuprof_load_part_end_(uint32_t at, uint32_t part)
{
    const uint32_t chunk_bytes = npuprof_loaded_.header.chunk_bytes;
    return at < part ? part : at + chunk_bytes - (uint64_t)(at - part) % chunk_bytes;
}

/* Walks over the table: `used` bytes, the first `part` of which are its first part and lie at file_offset of
   the image. Entries of an unknown length are passed unit by unit until one can be read again; such a run is
   one place of damage. Where a later part has a chunk's head, an entry to skip is made. */
static void npuprof_load_check_table_(uint8_t *table, uint32_t used, uint32_t part, uint32_t *site_ids,
                                      uint64_t file_offset)
{
    npuprof_header_ *const h = &npuprof_loaded_.header;
    bool in_damage = false;
    npuprof_loaded_.image.table = table;
    npuprof_loaded_.image.table_used = used;
    npuprof_loaded_.image.site_ids = site_ids;
    for (uint32_t at = h->table_first; at < used;) {
        npuprof_entry_ *const e = (npuprof_entry_ *)(void *)(table + at);
        const uint64_t part_end = npuprof_load_part_end_(at, part);
        const uint32_t left = (uint32_t)(npuprof_min_(used, part_end) - at);
        if (at >= part && part_end - at == h->chunk_bytes) {
            const uint32_t head = (uint32_t)npuprof_min_(sizeof(npuprof_chunk_), left);
            e->type_units = (uint32_t)NPUPROF_ENTRY_SKIP << 24 | head / 16;
            at += head;
            continue;
        }
        if (npuprof_loaded_.swap) npuprof_load_swap32_(&e->type_units, 1);
        const uint32_t type = e->type_units >> 24, units = e->type_units & 0xFFFFFFu;
        bool good = npuprof_load_entry_fits_(type, units, left);
        if (good && type && npuprof_loaded_.swap) npuprof_load_swap_entry_(e, type);
        good = good && npuprof_load_check_entry_(e, type, site_ids, at, file_offset);
        if (!good && !in_damage)
            npuprof_load_note_damage_(file_offset + at, "a damaged entry of the table of names");
        in_damage = !good;
        if (!good || !units) e->type_units = 1;
        at += good && units ? units * 16 : 16;
    }
    if (h->devices > 255) h->devices = 255;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "check.h"
#include "elf.h"
#include "parts.h"
#include "record.h"
#include "device.h"

/* Is the ELF file of another build than the one that recorded? Of a part whose records are not all there nothing can be said. */
static bool npuprof_expand_is_other_build_(const npuprof_expander_ *x)
{
    const npuprof_expand_cells_ *g = x->g;
    uint32_t crc = UINT32_MAX, cell = 0, build;
    bool broken = false;
    if (!x->elf->count) return false;
    if (g->c.build_kind == NPUPROF_BUILD_GNU_ && (!npuprof_elf_build_id_(x->elf, &build) || build != g->c.build)) return true;
    for (uint32_t stretch = 0; stretch < g->stretch_count; stretch++) {
        const uint32_t end = stretch + 1 < g->stretch_count ? g->stretches[stretch + 1].start : x->count;
        while (cell < end) {
            crc = npuprof_expand_crc_names_(x, cell, crc);
            cell = npuprof_expand_cell_after_(x, cell, &broken);
        }
        if (g->stretches[stretch].names && !broken && ~crc != g->stretches[stretch].names) return true;
        crc = UINT32_MAX;
        broken = false;
    }
    return false;
}
/* Counts a record that is not whole; whether its cells are there was looked at before. */
static void npuprof_expand_check_fields_(const npuprof_expander_ *x, uint32_t cell, uint32_t next, bool broken, const npuprof_expand_item_ *r)
{
    const bool is_span = r->kind <= NPUPROF_KIND_OPERATOR || r->kind == NPUPROF_CELL_KIND_PAUSE_, gap = next < x->count && !npuprof_expand_are_adjacent_(x, next - 1, 2);
    size_t length = 0;
    if (broken && !gap) npuprof_load_note_damage_(npuprof_expand_cell_offset_(x, cell), "a record that is cut off");
    else if (!broken && !is_span && npuprof_expand_cell_word_(x, cell, 2) != next - cell) npuprof_load_note_damage_(npuprof_expand_cell_offset_(x, cell), "a damaged record");
    for (uint32_t f = npuprof_expand_next_field_(x, cell, true, NULL); f != UINT32_MAX && x->elf->count; f = npuprof_expand_next_field_(x, f, false, NULL)) {
        const uint32_t key = npuprof_expand_cell_word_(x, f, 0);
        if (key && !npuprof_elf_text_at_(x->elf, npuprof_expand_target_address_(x, key), &length)) npuprof_load_note_damage_(npuprof_expand_cell_offset_(x, f), "an argument whose key is no text");
    }
}
/* May a record whose fields break off lack one of its own: a name, a value? Those come before the user's. */
static bool npuprof_expand_lacks_own_field_(const npuprof_expander_ *x, uint32_t cell, const npuprof_expand_item_ *r)
{
    uint32_t last = NPUPROF_FIELD_NAME_;
    for (uint32_t f = npuprof_expand_next_field_(x, cell, true, NULL); f != UINT32_MAX; f = npuprof_expand_next_field_(x, f, false, NULL))
        last = npuprof_expand_cell_word_(x, f, 1) & 0xFF;
    return last >= NPUPROF_FIELD_NAME_ && (r->kind > NPUPROF_KIND_OPERATOR || (npuprof_expand_cell_word_(x, cell, 0) & 2));
}
/* Reads all records into x->list, in the order of their cells. */
static void npuprof_expand_read_records_(npuprof_expander_ *x)
{
    uint64_t before = x->h->first.ticks;
    for (uint32_t at = 0, next; at < x->count; at = next) {
        const uint32_t ref = npuprof_expand_cell_word_(x, at, 0);
        npuprof_expand_item_ *const r = &x->list[x->record_count];
        bool broken = false;
        next = npuprof_expand_cell_after_(x, at, &broken);
        if (!ref || ref == NPUPROF_CELL_CLEARED_) continue;
        const char *fault = npuprof_expand_record_fault_(x, at);
        if (fault) {
            npuprof_load_note_damage_(npuprof_expand_cell_offset_(x, at), fault);
            continue;
        }
        npuprof_expand_record_(x, at, before, r);
        npuprof_expand_check_fields_(x, at, next, broken, r);
        before = r->start;
        if (broken && npuprof_expand_lacks_own_field_(x, at, r)) continue;
        npuprof_expand_note_(x, r);
        x->record_count++;
    }
}
/* Does the clock run, and forward? stamps: room for two of each record, and one. */
static void npuprof_expand_check_clock_(npuprof_expander_ *x, uint64_t *stamps)
{
    struct { uint64_t top, before; uint32_t behind; } of[256];   /* behind: so many in a row lie before the top */
    const unsigned bits = x->g->c.clock_bits;
    uint32_t count = 0;
    memset(of, 0, sizeof of);
    stamps[count++] = x->h->first.ticks;
    for (npuprof_expand_item_ *r = x->list; r < x->list + x->record_count; r++) {
        const bool is_span = r->kind <= NPUPROF_KIND_OPERATOR, behind = r->start < of[r->context].top;
        /* Why two in a row, the second one later, or a hundred: an interrupt's records lie before the one that it interrupted in the making. */
        if (behind && of[r->context].behind && (r->start > of[r->context].before || of[r->context].behind > 100)) x->back++;
        else if (r->start < x->h->first.ticks) x->back++;
        of[r->context].behind = behind ? of[r->context].behind + 1 : 0;
        of[r->context].before = r->start;
        if (!behind) of[r->context].top = r->start;
        stamps[count++] = r->start;
        if (!is_span || r->open) continue;
        if (r->end - r->start >= (UINT64_C(1) << NPUPROF_CELL_STAMP_BITS_) - (UINT64_C(1) << 40)) {
            x->back++;
            r->end = r->start;
        }
        stamps[count++] = r->end;
    }
    npuprof_elf_sort_(stamps, count);
    if (count > 2 && stamps[0] == stamps[count - 1]) x->still = count;
    /* A narrow clock that goes back looks as if it had gone nearly once around. */
    for (uint32_t i = 1; i < count && bits < 48; i++)
        if (stamps[i] - stamps[i - 1] >= (UINT64_C(99) << bits) / 100 && stamps[i] - stamps[i - 1] < UINT64_C(1) << bits) x->back++;
}
/* Says in the trace what is wrong with the clock. */
static void npuprof_expand_warn_of_clock_(npuprof_expander_ *x)
{
    char text[96], digits[24];
    uint32_t count = x->still ? x->still : x->back, n = sizeof digits;
    if (!count) return;
    do digits[--n] = (char)('0' + count % 10); while (count /= 10);
    memcpy(text, digits + n, sizeof digits - n);
    const size_t length = sizeof digits - n;
    const char *const what = x->still ? " stamps, all the same: the clock does not run" : " times the clock went back, or a gap of a period: times there are wrong";
    memcpy(text + length, what, strlen(what));
    const uint32_t ids[2] = { npuprof_expand_text_(x, "NPUPROF_NOW", 11), npuprof_expand_text_(x, text, length + strlen(what)) };
    (void)npuprof_expand_entry_(x, NPUPROF_ENTRY_ENVIRONMENT, 0, ids, sizeof ids, false);
}
/* Sorts records by their start; those of one start stay as they are. other: as much room. */
static void npuprof_expand_sort_records_(npuprof_expand_item_ *list, npuprof_expand_item_ *other, uint32_t count)
{
    bool sorted = true;
    for (uint32_t i = 1; i < count && sorted; i++) sorted = list[i - 1].start <= list[i].start;
    for (uint64_t run = 1; run < count && !sorted; run *= 2) {
        for (uint64_t from = 0; from < count; from += 2 * run) {
            const uint64_t middle = npuprof_min_(from + run, count), end = npuprof_min_(from + 2 * run, count);
            uint64_t a = from, b = middle;
            for (uint64_t to = from; to < end; to++) other[to] = b >= end || (a < middle && list[a].start <= list[b].start) ? list[a++] : list[b++];
        }
        memcpy(list, other, count * sizeof *list);
    }
}
/* By context, in each by start; spare: as much room. begin[c]: where context c begins. */
static void npuprof_expand_order_records_(npuprof_expander_ *x, npuprof_expand_item_ *spare, uint32_t begin[257])
{
    uint32_t next[256];
    memset(begin, 0, 257 * sizeof *begin);
    for (uint32_t i = 0; i < x->record_count; i++) begin[x->list[i].context + 1]++;
    for (uint32_t c = 0; c < 256; c++) {
        next[c] = begin[c];
        begin[c + 1] += begin[c];
    }
    for (uint32_t i = 0; i < x->record_count; i++) spare[next[x->list[i].context]++] = x->list[i];
    memcpy(x->list, spare, x->record_count * sizeof *spare);
    for (uint32_t c = 0; c < 256; c++) npuprof_expand_sort_records_(x->list + begin[c], spare, begin[c + 1] - begin[c]);
}
/* What a context's record says of the trace, not of an event. Returns whether it is an event. */
static bool npuprof_expand_trace_note_(npuprof_expander_ *x, const npuprof_expand_item_ *r, npuprof_slot_head_ *slot)
{
    if (r->kind == NPUPROF_CELL_KIND_THREAD_) slot->name = r->name;
    if (r->kind == NPUPROF_CELL_KIND_METADATA_) {
        const uint32_t ids[2] = { r->name, r->category ? r->category : npuprof_expand_text_(x, "", 0) };
        (void)npuprof_expand_entry_(x, NPUPROF_ENTRY_METADATA, 0, ids, sizeof ids, false);
    }
    if (r->kind == NPUPROF_CELL_KIND_PAUSE_) {
        const uint64_t ticks[2] = { r->start, r->open ? 0 : r->end };
        (void)npuprof_expand_entry_(x, NPUPROF_ENTRY_PAUSE, 0, ticks, sizeof ticks, false);
    }
    return r->kind != NPUPROF_KIND_NONE && r->kind <= NPUPROF_KIND_DEVICE;
}
/* The span around the block of a sampled device span, which says the number of its cell; NULL: it is not there. */
static const npuprof_expand_item_ *npuprof_expand_host_span_(const npuprof_expander_ *x, const npuprof_expand_item_ *list, const npuprof_expand_item_ *r)
{
    const uint32_t number = (uint32_t)(r->values[2] >> 32) - 1;
    uint32_t from = 0, to = x->count;
    if (r->kind != NPUPROF_KIND_DEVICE || !(r->values[2] & NPUPROF_EXPAND_SAMPLED_)) return NULL;
    while (to - from > 1) {
        const uint32_t middle = from + (to - from) / 2;
        if (x->g->number[middle] <= number) from = middle;
        else to = middle;
    }
    const npuprof_expand_item_ *const host = x->g->number[from] == number && x->place[from] ? &list[x->place[from] - 1] : NULL;
    /* Why the cell: the numbers of other contexts are of other lists. */
    return host && host->cell == from && host < r && host->kind <= NPUPROF_KIND_OPERATOR ? host : NULL;
}
/* Writes the units of a context's events into chunks; *last: the last stamp. */
static void npuprof_expand_context_(npuprof_expander_ *x, npuprof_expand_item_ *list, uint32_t count, npuprof_slot_head_ *slot, uint64_t *last)
{
    npuprof_header_ *const h = x->h;
    uint32_t found = 0, n = 0;
    uint64_t position = 0;
    npuprof_chunk_ *chunk = NULL;
    const uint32_t units = (NPUPROF_EXPAND_CHUNK_BYTES_ - sizeof *chunk) / sizeof(npuprof_unit_);
    for (uint32_t i = 0; i < count; i++) {
        if (!npuprof_expand_trace_note_(x, &list[i], slot)) continue;
        list[found] = list[i];
        const npuprof_expand_item_ *const r = &list[found++];
        x->place[r->cell] = found;
        if (r->start > *last) *last = r->start;
        if (!r->open && r->kind <= NPUPROF_KIND_OPERATOR && r->end > *last) *last = r->end;
    }
    npuprof_expand_cut_lost_spans_(list, found);
    npuprof_expand_find_roots_(list, found);
    for (uint32_t i = 0; i < found; i++) {
        if (!chunk || n + 512 > units || (list[i].start - chunk->base) >> NPUPROF_START_BITS_) {
            if (h->chunk_next == x->chunks) break;
            position += n;
            n = 0;
            chunk = (npuprof_chunk_ *)(void *)((uint8_t *)h + h->chunks_offset + (size_t)h->chunk_next++ * NPUPROF_EXPAND_CHUNK_BYTES_);
            chunk->state = NPUPROF_CHUNK_RETIRED;
            chunk->owner = slot->tid << 3;
            chunk->base = list[i].start;
            chunk->first_position = position;
        }
        list[i].position = position + n;
        n += npuprof_expand_units_(x, list, &list[i], npuprof_expand_host_span_(x, list, &list[i]), slot->tid, (npuprof_unit_ *)(void *)(chunk + 1) + n, units - n);
    }
}
/* The header of the arena being made. */
static void npuprof_expand_header_(npuprof_header_ *h, const npuprof_compact_header_ *c, size_t header_bytes, size_t table_bytes)
{
    memcpy(h->magic, "NPUPROF\n", 8);
    h->endian = 0x01020304u;
    h->format = 1;
    h->layout = NPUPROF_LAYOUT_ARENA;
    h->header_bytes = (uint32_t)header_bytes;
    h->arena_bytes = sizeof *c + (uint64_t)c->cells * 16;
    h->clock_hz = (uint64_t)c->hz_high << 32 | c->hz_low;
    h->clock_source = NPUPROF_CLOCK_USER;
    h->clock_bits = c->clock_bits;
    h->first.ticks = (uint64_t)c->first_high << 32 | c->first_low;
    h->seed_high = npuprof_hash_mix_(h->first.ticks + 1);
    h->seed_low = npuprof_hash_mix_(h->seed_high);
    h->lost[NPUPROF_LOST_FULL] = c->lost;
    h->lost[NPUPROF_LOST_NOTES] = c->lost_notes;
    h->table_offset = (uint32_t)header_bytes;
    h->table_bytes = (uint32_t)table_bytes;
    h->table_unit = 16;
    h->table_used = 16;                    /* an id is never 0 */
    h->bucket_count = 4;
    h->chunks_offset = h->queue_offset = (uint32_t)(header_bytes + table_bytes);
    h->chunk_bytes = NPUPROF_EXPAND_CHUNK_BYTES_;
    h->slot_bytes = sizeof(npuprof_slot_head_);
    h->pid = 1;
    memcpy(h->host, "target", 7);
    memcpy(h->program, "firmware", 9);
}
/* Makes the arena of what was gathered; what is wrong, or NULL. spare, stamps: as the two above want them. */
static const char *npuprof_expand_gathered_(npuprof_expander_ *x, npuprof_expand_item_ *spare, uint64_t *stamps)
{
    npuprof_header_ *const h = x->h;
    uint32_t begin[257];
    if (npuprof_expand_is_other_build_(x)) return "the ELF file is of another build than this image";
    npuprof_chunk_ *const chunk = (npuprof_chunk_ *)(void *)((uint8_t *)h + h->chunks_offset);
    npuprof_slot_head_ *const slots = (npuprof_slot_head_ *)(void *)(chunk + 1);
    chunk->state = NPUPROF_CHUNK_SLOTS;
    h->chunk_next = 1;
    npuprof_expand_read_records_(x);
    if (x->foreign > x->refs / 2) return "the ELF file is of another build than this image";
    npuprof_expand_check_clock_(x, stamps);
    npuprof_expand_order_records_(x, spare, begin);
    uint64_t last = h->first.ticks;
    for (uint32_t c = 0; c < 256; c++) {
        if (begin[c] == begin[c + 1]) continue;
        npuprof_slot_head_ *const slot = &slots[h->threads];
        slot->tid = ++h->threads;
        npuprof_expand_context_(x, x->list + begin[c], begin[c + 1] - begin[c], slot, &last);
    }
    npuprof_expand_warn_of_clock_(x);
    h->last[0] = h->last[1] = h->first;
    h->last[0].ticks = last;
    h->chunk_count = h->chunk_next;
    return NULL;
}
/* The arena that a firmware image stands for, in memory of its own: *bytes of it. c: its header. NULL: no memory, or *fault says what is
   wrong. */
static uint8_t *npuprof_expand_image_(const uint8_t *image, size_t count, size_t header, const npuprof_compact_header_ *c, bool swap, const npuprof_elf_ *elf, size_t *bytes,
                                const char **fault)
{
    const bool in_parts = c->layout == NPUPROF_LAYOUT_PARTS;
    const uint32_t cells = (uint32_t)npuprof_min_((count - (in_parts ? 0 : header + sizeof *c)) / 16, npuprof_min_(c->used, c->cells)), stretches = cells + 1;
    /* Every record takes at most as many units as cells, and a half full chunk behind it. */
    const size_t header_bytes = (sizeof(npuprof_header_) + 63) / 64 * 64, table_bytes = 16 * 1024 * 1024;
    const size_t chunks = 2 * ((size_t)cells * 16 / (NPUPROF_EXPAND_CHUNK_BYTES_ / 2)) + ((size_t)1 << c->context_bits) + 2;
    const size_t arena_bytes = header_bytes + table_bytes + chunks * NPUPROF_EXPAND_CHUNK_BYTES_;
    npuprof_expand_cells_ g;
    memset(&g, 0, sizeof g);
    *fault = NULL;
    *bytes = arena_bytes + 2 * (size_t)cells * sizeof(npuprof_expand_item_) + sizeof(npuprof_expander_) + (2 * (size_t)cells + 1) * 8 +
             stretches * sizeof(npuprof_expand_run_) + (size_t)cells * (16 + 4 + 4);
    uint8_t *const arena = (uint8_t *)npuprof_os_memory_(*bytes);
    if (!arena) return NULL;
    npuprof_expand_item_ *const list = (npuprof_expand_item_ *)(void *)(arena + arena_bytes);
    npuprof_expander_ *const x = (npuprof_expander_ *)(void *)(list + 2 * (size_t)cells);
    uint64_t *const stamps = (uint64_t *)(void *)(x + 1);
    g.c = *c;
    g.swap = swap;
    g.stretches = (npuprof_expand_run_ *)(void *)(stamps + 2 * (size_t)cells + 1);
    g.number = (uint32_t *)(void *)(g.stretches + stretches);
    x->place = g.number + cells;
    if (in_parts) npuprof_expand_gather_parts_(&g, image, count, header, (uint8_t *)(x->place + cells), cells);
    else npuprof_expand_gather_memory_(&g, image, count, header, cells);
    x->elf = elf;
    x->g = &g;
    x->cells = g.cells;
    x->count = g.count;
    x->pointer_bytes = c->pointer_bytes;
    x->swap = swap;
    x->near_address = (uint64_t)c->address_high << 32 | c->address_low;
    x->list = list;
    x->chunks = chunks;
    x->h = (npuprof_header_ *)(void *)arena;
    x->table = arena + header_bytes;
    npuprof_expand_header_(x->h, c, header_bytes, table_bytes);
    *fault = npuprof_expand_gathered_(x, list + cells, stamps);
    if (!*fault) return arena;
    npuprof_os_unmap_(arena, *bytes);
    return NULL;
}
/* The first header of a layout from `from` to `to` in an image, read into *c if it is a firmware's; count: there is none. */
static size_t npuprof_load_find_layout_(const uint8_t *bytes, size_t count, uint32_t from, uint32_t to, npuprof_compact_header_ *c, bool *swap, uint32_t *layout)
{
    uint32_t words[4];
    for (const uint8_t *p = bytes, *const end = bytes + count; count >= 24 && p <= end - 24; p++) {
        p = (const uint8_t *)memchr(p, 'N', (size_t)(end - 23 - p));
        if (!p) break;
        if (memcmp(p, "NPUPROF\n", 8) != 0) continue;
        memcpy(words, p + 8, sizeof words);
        if (words[0] == 0x04030201u) npuprof_load_swap32_(words, 4);
        if (words[0] != 0x01020304u || words[1] != 1 || words[2] < from || words[2] > to) continue;
        if (words[2] >= NPUPROF_LAYOUT_COMPACT && npuprof_expand_header_fault_(p, (size_t)(end - p), c, swap)) continue;
        *layout = words[2];
        return (size_t)(p - bytes);
    }
    return count;
}
/* Where an image begins: at the begin, or, if it is a firmware's, in a dump of memory, a core file or what a serial line brought. 0 if
   there is none.
   Why an arena before parts: memory may hold what is left of parts that were written. */
static size_t npuprof_load_find_image_(const uint8_t *bytes, size_t count, bool firmware, npuprof_compact_header_ *c, bool *swap, uint32_t *layout)
{
    size_t at = count;
    *layout = 0;
    if (count >= 8 && memcmp(bytes, "NPUPROF\n", 8) == 0) at = npuprof_load_find_layout_(bytes, npuprof_min_(count, sizeof *c), NPUPROF_LAYOUT_ARENA, NPUPROF_LAYOUT_PARTS, c, swap, layout);
    if (*layout) return at;
    if (firmware) at = npuprof_load_find_layout_(bytes, count, NPUPROF_LAYOUT_ARENA, NPUPROF_LAYOUT_COMPACT, c, swap, layout);
    if (!*layout) at = npuprof_load_find_layout_(bytes, count, NPUPROF_LAYOUT_PARTS, NPUPROF_LAYOUT_PARTS, c, swap, layout);
    return *layout ? at : 0;
}

static void npuprof_load_release_locked_(void)
{
    npuprof_image_given_ = NULL;
    if (npuprof_loaded_.side) npuprof_os_unmap_(npuprof_loaded_.side, npuprof_loaded_.side_bytes);
    if (npuprof_loaded_.file) npuprof_os_unmap_(npuprof_loaded_.file, npuprof_loaded_.file_bytes);
    memset(&npuprof_loaded_, 0, sizeof npuprof_loaded_);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "expander.h"
#include "cells.h"
#include "device.h"
#include "records.h"
#include "clock.h"
#include "units.h"
#include "host_time.h"
#include "host_clock.h"
#include "replay_run.h"

/* Expansion: makes of a firmware's image (COMPACT or PARTS) the ARENA that a host would have recorded. The
   rest of loading, and every output, then knows only one form.
   The steps: gather the cells (cells.h), read the records (records.h), look at the clock (clock.h), add the
   time slept and the names of numbers (numbers.h), make the times the host's (host_clock.h), sort the records
   by context and start, write each context's units into chunks (units.h). All memory is one block, counted
   in advance:
       header | table | chunks | list, twice | expander | stamps | anchors | parts | runs | numbers |
       places | results | cells | names of numbers */

enum { NPUPROF_EXPAND_CHUNK_BYTES_ = 65536,
       NPUPROF_EXPAND_RECORD_UNITS_ = 512 };   /* a record that may be longer begins a new chunk */

/* Sorts records by their starts; those of one start keep their order. spare: as much memory again. */
static void npuprof_expand_sort_records_(npuprof_expand_item_ *list, npuprof_expand_item_ *spare,
                                         uint32_t count)
{
    bool sorted = true;
    for (uint32_t i = 1; i < count && sorted; i++) sorted = list[i - 1].start <= list[i].start;
    for (uint64_t run = 1; run < count && !sorted; run *= 2) {
        for (uint64_t from = 0; from < count; from += 2 * run) {
            const uint64_t middle = npuprof_min_(from + run, count);
            const uint64_t end = npuprof_min_(from + 2 * run, count);
            uint64_t a = from, b = middle;
            for (uint64_t to = from; to < end; to++) {
                const bool takes_a = b >= end || (a < middle && list[a].start <= list[b].start);
                spare[to] = takes_a ? list[a++] : list[b++];
            }
        }
        memcpy(list, spare, count * sizeof *list);
    }
}

/* Notes what all records say of devices, by their starts. Why: a ring keeps anchors in place, so older ones
   may come behind newer ones. spare: as much memory as the list has. */
static void npuprof_expand_note_devices_(npuprof_expander_ *x, npuprof_expand_item_ *spare)
{
    npuprof_expand_sort_records_(x->list, spare, x->record_count);
    for (uint32_t i = 0; i < x->record_count; i++) npuprof_expand_note_(x, &x->list[i]);
}

/* Sorts the list by context, and by start in each. */
static void npuprof_expand_order_records_(npuprof_expander_ *x, npuprof_expand_item_ *spare)
{
    uint32_t next[256], *const begin = x->begin;
    memset(begin, 0, 257 * sizeof *begin);
    for (uint32_t i = 0; i < x->record_count; i++) begin[x->list[i].context + 1]++;
    for (uint32_t c = 0; c < 256; c++) {
        next[c] = begin[c];
        begin[c + 1] += begin[c];
    }
    for (uint32_t i = 0; i < x->record_count; i++) spare[next[x->list[i].context]++] = x->list[i];
    memcpy(x->list, spare, x->record_count * sizeof *spare);
    for (uint32_t c = 0; c < 256; c++)
        npuprof_expand_sort_records_(x->list + begin[c], spare, begin[c + 1] - begin[c]);
}

/* Takes what a record says of the whole trace: metadata, a pause. True: it is an event. */
static bool npuprof_expand_trace_note_(npuprof_expander_ *x, const npuprof_expand_item_ *r)
{
    if (r->kind == NPUPROF_CELL_KIND_METADATA_) {
        const uint32_t ids[2] = { r->name, r->category ? r->category : npuprof_expand_text_(x, "", 0) };
        (void)npuprof_expand_entry_(x, NPUPROF_ENTRY_METADATA, 0, ids, sizeof ids);
    }
    if (r->kind == NPUPROF_CELL_KIND_METADATA_ && npuprof_expand_is_key_(x, r->name, "npuprof.clock")) {
        const uint32_t ids[2] = { npuprof_expand_text_(x, "NPUPROF_NOW", 11), r->category };
        (void)npuprof_expand_entry_(x, NPUPROF_ENTRY_ENVIRONMENT, 0, ids, sizeof ids);
    }
    if (r->kind == NPUPROF_CELL_KIND_PAUSE_) {
        const uint64_t ticks[2] = { r->start, r->open ? 0 : r->end };
        (void)npuprof_expand_entry_(x, NPUPROF_ENTRY_PAUSE, 0, ticks, sizeof ticks);
    }
    return r->kind != NPUPROF_KIND_NONE && r->kind < NPUPROF_KIND_COUNT;
}

/* Keeps the events of a context's list, and numbers them; returns how many. *last: the latest stamp so
   far. */
static uint32_t npuprof_expand_keep_events_(npuprof_expander_ *x, npuprof_expand_item_ *list, uint32_t count,
                                            uint64_t *last)
{
    uint32_t events = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!npuprof_expand_trace_note_(x, &list[i])) continue;
        list[events] = list[i];
        const npuprof_expand_item_ *const r = &list[events++];
        if (!r->missing && !r->drawn) x->place[r->cell] = (uint32_t)(r - x->list) + 1;
        *last = npuprof_max_(*last, r->start);
        if (!r->open && npuprof_kind_nests_(r->kind)) *last = npuprof_max_(*last, r->end);
    }
    return events;
}

/* A new chunk of a slot, or NULL: there is none left. */
static npuprof_chunk_ *npuprof_expand_new_chunk_(npuprof_expander_ *x, const npuprof_slot_head_ *slot,
                                                 uint64_t base, uint64_t position)
{
    npuprof_header_ *const h = x->h;
    if (h->chunk_next == x->chunks) return NULL;
    uint8_t *const at = (uint8_t *)h + h->chunks_offset +
        (size_t)h->chunk_next++ * NPUPROF_EXPAND_CHUNK_BYTES_;
    npuprof_chunk_ *const chunk = (npuprof_chunk_ *)(void *)at;
    chunk->state = NPUPROF_CHUNK_RETIRED;
    chunk->owner = slot->tid << 3;
    chunk->base = base;
    chunk->first_position = position;
    return chunk;
}

/* Writes the units of a context's events into chunks. */
static void npuprof_expand_context_(npuprof_expander_ *x, npuprof_expand_item_ *list, uint32_t events,
                                    const npuprof_slot_head_ *slot)
{
    const uint32_t units = (NPUPROF_EXPAND_CHUNK_BYTES_ - sizeof(npuprof_chunk_)) / sizeof(npuprof_unit_);
    npuprof_chunk_ *chunk = NULL;
    uint32_t n = 0;
    uint64_t position = 0;
    for (npuprof_expand_item_ *r = list; r < list + events; r++) {
        const bool is_far = chunk && (r->start - chunk->base) >> NPUPROF_START_BITS_;
        if (!chunk || is_far || n + NPUPROF_EXPAND_RECORD_UNITS_ > units) {
            position += n;
            n = 0;
            chunk = npuprof_expand_new_chunk_(x, slot, r->start, position);
            if (!chunk) {
                x->h->lost[NPUPROF_LOST_FULL] += (uint64_t)(list + events - r);
                return;
            }
        }
        npuprof_unit_ *const u = (npuprof_unit_ *)(void *)(chunk + 1) + n;
        r->position = position + n;
        n += npuprof_expand_units_(x, r, u, units - n);
    }
}

/* Writes the events of all contexts, a slot for each. *last: the latest stamp. Three rounds. Why: a device
   span may have its host span in any context, and takes its name in the second round and its position in the
   third. */
static void npuprof_expand_contexts_(npuprof_expander_ *x, npuprof_slot_head_ *slots, uint64_t *last)
{
    uint32_t events[256];
    for (uint32_t c = 0; c < 256; c++) {
        npuprof_expand_item_ *const list = x->list + x->begin[c];
        const uint32_t count = x->begin[c + 1] - x->begin[c];
        events[c] = 0;
        if (!count) continue;
        npuprof_slot_head_ *const slot = &slots[x->h->threads];
        slot->tid = x->tid[c] = ++x->h->threads;
        slot->name = x->names[c];
        events[c] = npuprof_expand_keep_events_(x, list, count, last);
        npuprof_expand_cut_lost_spans_(list, events[c]);
        npuprof_expand_find_roots_(list, events[c]);
    }
    for (uint32_t c = 0; c < 256; c++)
        if (events[c])
            npuprof_expand_context_(x, x->list + x->begin[c], events[c], &slots[x->tid[c] - 1]);
    for (uint32_t c = 0; c < 256; c++)
        for (uint32_t i = 0; i < events[c]; i++) npuprof_expand_link_(x, &x->list[x->begin[c] + i]);
}

/* The header of the arena being made. */
static void npuprof_expand_header_(npuprof_header_ *h, const npuprof_compact_header_ *c, size_t header_bytes,
                                   size_t table_bytes)
{
    memcpy(h->magic, "NPUPROF\n", 8);
    h->endian = 0x01020304u;
    h->format = 1;
    h->layout = NPUPROF_LAYOUT_ARENA;
    h->header_bytes = (uint32_t)header_bytes;
    h->arena_bytes = sizeof *c + (uint64_t)c->cells * sizeof(npuprof_cell_);
    h->clock_hz = (uint64_t)c->hz_high << 32 | c->hz_low;
    h->clock_source = NPUPROF_CLOCK_USER;
    h->clock_bits = c->clock_bits;
    h->first.ticks = (uint64_t)c->first_high << 32 | c->first_low;
    h->seed_high = npuprof_hash_mix_(h->first.ticks + 1);
    h->seed_low = npuprof_hash_mix_(h->seed_high);
    h->when_full = npuprof_expand_is_ring_(c) ? c->build_kind >> 4 : 0u;
    h->lost[h->when_full == NPUPROF_KEEP_NEWEST ? NPUPROF_LOST_OVERWRITTEN : NPUPROF_LOST_FULL] = c->lost;
    h->lost[NPUPROF_LOST_NOTES] = c->lost_notes;
    h->table_offset = (uint32_t)header_bytes;
    h->table_bytes = (uint32_t)table_bytes;
    h->table_unit = 16;
    h->table_first = h->table_used = 16;   /* an id is never 0 */
    h->chunks_offset = h->queue_offset = (uint32_t)(header_bytes + table_bytes);
    h->chunk_bytes = NPUPROF_EXPAND_CHUNK_BYTES_;
    h->slot_bytes = sizeof(npuprof_slot_head_);
    h->pid = 1;
    memcpy(h->host, "target", 7);
    memcpy(h->program, "firmware", 9);
}

/* So many records of the newest expansion have an address for a name, because no ELF file was given. Set and
   read by the thread that loads. */
static uint32_t npuprof_expand_unnamed_;

/* Makes the arena of the gathered cells. NULL, or what is wrong. spare: as much memory as the list has;
   stamps: see npuprof_expand_check_clock_(). */
static const char *npuprof_expand_gathered_(npuprof_expander_ *x, npuprof_expand_item_ *spare,
                                            uint64_t *stamps)
{
    static const char other_build[] = "the ELF file is of another build than this image";
    npuprof_header_ *const h = x->h;
    if (npuprof_expand_is_other_build_(x)) return other_build;
    npuprof_chunk_ *const chunk = (npuprof_chunk_ *)(void *)((uint8_t *)h + h->chunks_offset);
    npuprof_slot_head_ *const slots = (npuprof_slot_head_ *)(void *)(chunk + 1);
    chunk->state = NPUPROF_CHUNK_SLOTS;
    h->chunk_next = 1;
    npuprof_expand_read_records_(x);
    if (x->foreign > x->refs / 2) return other_build;
    npuprof_expand_unnamed_ = x->elf->count ? 0 : x->refs;
    npuprof_expand_say_gaps_(x);
    npuprof_expand_count_overwritten_(x);
    npuprof_expand_check_clock_(x, stamps);
    npuprof_expand_move_stamps_(x, spare);
    npuprof_expand_give_names_(x, spare);
    npuprof_expand_note_devices_(x, spare);
    size_t drawn_bytes;
    void *const drawn = npuprof_replay_(x, &drawn_bytes);
    npuprof_expand_use_host_clock_(x);
    npuprof_expand_order_records_(x, spare);
    uint64_t last = h->first.ticks;
    npuprof_expand_contexts_(x, slots, &last);
    npuprof_load_free_(drawn, drawn_bytes);
    npuprof_expand_warn_of_clock_(x);
    npuprof_expand_warn_of_names_(x);
    npuprof_expand_end_trace_(x, last);
    npuprof_expand_number_tasks_(x, slots);
    h->chunk_count = h->chunk_next;
    return NULL;
}

/* What the memory of an expansion holds, in this order: bytes of each, and of all. */
typedef struct npuprof_expand_sizes_ {
    uint32_t cells, runs;
    size_t header, table, chunks, arena, list, stamps, anchors, parts, all;
} npuprof_expand_sizes_;

/* A record takes at most as many units as it has cells, and a gap two; a chunk is at least half full, but for
   those that begin because the time between two records is long: of those so many have space. */
enum { NPUPROF_EXPAND_FAR_CHUNKS_ = 512 };

static void npuprof_expand_size_(npuprof_expand_sizes_ *z, const npuprof_compact_header_ *c, uint32_t cells,
                                 size_t parts)
{
    z->cells = cells;
    z->runs = (uint32_t)parts + 1;
    const size_t records = (size_t)cells + z->runs;
    const size_t full_chunks = (records + z->runs) * 16 / (NPUPROF_EXPAND_CHUNK_BYTES_ / 2);
    z->header = (sizeof(npuprof_header_) + 63) / 64 * 64;
    z->table = 16 * 1024 * 1024;
    const size_t far_chunks = (size_t)npuprof_min_(records, NPUPROF_EXPAND_FAR_CHUNKS_);
    z->chunks = 3 * full_chunks + far_chunks + ((size_t)1 << c->context_bits) + 2;
    z->arena = z->header + z->table + z->chunks * NPUPROF_EXPAND_CHUNK_BYTES_;
    z->list = records * sizeof(npuprof_expand_item_);
    z->stamps = (2 * records + 1) * 8;
    z->anchors = (cells / NPUPROF_EXPAND_ANCHOR_CELLS_ + 1) * sizeof(npuprof_expand_said_anchor_);
    z->parts = parts * sizeof(npuprof_expand_part_);
    const size_t cell_bytes = 3 * sizeof(uint32_t) + sizeof(npuprof_cell_);
    z->all = z->arena + 2 * z->list + sizeof(npuprof_expander_) + z->stamps + z->anchors + z->parts +
             z->runs * sizeof(npuprof_expand_run_) + cells * cell_bytes +
             NPUPROF_EXPAND_NUMBERS_ * sizeof(uint32_t);
}

/* Gathers the cells and makes the arena of them, in memory of these sizes. section: of PARTS; else NULL.
   NULL, or what is wrong. */
static const char *npuprof_expand_into_(uint8_t *arena, const npuprof_expand_sizes_ *z, const uint8_t *image,
                                        size_t count, const npuprof_load_found_ *found,
                                        const npuprof_expand_section_ *section, const npuprof_elf_ *elf)
{
    npuprof_expand_cells_ g;
    uint8_t *const spare = arena + z->arena + z->list;
    npuprof_expander_ *const x = (npuprof_expander_ *)(void *)(spare + z->list);
    uint8_t *const stamps = (uint8_t *)(x + 1), *const anchors = stamps + z->stamps;
    uint8_t *const parts = anchors + z->anchors;
    memset(&g, 0, sizeof g);
    g.c = section ? section->line.c : found->header;
    if (section && section->line.is_stream) {
        g.c.first_low = (uint32_t)section->line.start;
        g.c.first_high = (uint32_t)(section->line.start >> 32);
    }
    g.swap = section ? section->line.swap : found->swap;
    g.runs = (npuprof_expand_run_ *)(void *)(parts + z->parts);
    g.number = (uint32_t *)(void *)(g.runs + z->runs);
    x->place = g.number + z->cells;
    x->results = x->place + z->cells;
    x->names = x->results + z->cells + z->cells * (sizeof(npuprof_cell_) / sizeof(uint32_t));
    if (section)
        npuprof_expand_gather_parts_(&g, image, count, section, (npuprof_expand_part_ *)(void *)parts,
                                     (uint8_t *)(x->results + z->cells));
    else npuprof_expand_gather_memory_(&g, image, count, found->at, z->cells,
                                       (uint8_t *)(x->results + z->cells));
    x->anchor = (npuprof_expand_said_anchor_ *)(void *)anchors;
    x->elf = elf;
    x->g = &g;
    x->pointer_bytes = g.c.pointer_bytes;
    x->near_address = (uint64_t)g.c.address_high << 32 | g.c.address_low;
    x->list = (npuprof_expand_item_ *)(void *)(arena + z->arena);
    x->chunks = z->chunks;
    x->room = z->cells + z->runs;
    x->h = (npuprof_header_ *)(void *)arena;
    x->table = arena + z->header;
    npuprof_expand_header_(x->h, &g.c, z->header, z->table);
    return npuprof_expand_gathered_(x, (npuprof_expand_item_ *)(void *)spare, (uint64_t *)(void *)stamps);
}

/* The arena that a firmware's image stands for, in memory of its own, *bytes of it. found: its header.
   Returns NULL: there is no memory, or *fault says what is wrong. */
static uint8_t *npuprof_expand_image_(const uint8_t *image, size_t count, const npuprof_load_found_ *found,
                                      const npuprof_elf_ *elf, size_t *bytes, const char **fault)
{
    static npuprof_expand_section_ s;
    npuprof_expand_sizes_ z;
    const bool in_parts = found->layout == NPUPROF_LAYOUT_PARTS;
    size_t cells, parts = 0;
    *fault = NULL;
    if (in_parts) {
        npuprof_expand_survey_(image, count, npuprof_loaded_.from, &s);
        while (!s.line.has_header && s.to < count) {
            npuprof_load_note_damage_(s.from, "parts of a trace whose headers are all missing");
            npuprof_expand_survey_(image, count, s.to, &s);
        }
        npuprof_loaded_.damage.next = s.to < count ? s.to : 0;
        cells = s.cells;
        parts = s.parts;
        if (!s.line.has_header) *fault = "parts without a header";
    } else {
        const npuprof_compact_header_ *const c = &found->header;
        const size_t in_file = (count - found->at - sizeof *c) / sizeof(npuprof_cell_);
        cells = npuprof_min_(in_file, npuprof_expand_cell_count_(c));
        parts = 1;                                                  /* a ring has two runs */
    }
    if (cells > UINT32_MAX / 2) *fault = "too many cells";
    if (*fault) return NULL;
    npuprof_expand_size_(&z, in_parts ? &s.line.c : &found->header, (uint32_t)cells, parts);
    uint8_t *const arena = (uint8_t *)npuprof_load_memory_(z.all);
    if (!arena) return NULL;
    *bytes = z.all;
    *fault = npuprof_expand_into_(arena, &z, image, count, found, in_parts ? &s : NULL, elf);
    if (!*fault) return arena;
    npuprof_load_free_(arena, z.all);
    return NULL;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"

static void npuprof_load_note_damage_(uint64_t offset, const char *what)
{
    if (!npuprof_loaded_.damage.places++) {
        npuprof_loaded_.damage.offset = offset;
        npuprof_loaded_.damage.what = what;
    }
}

static uint16_t npuprof_load_swap16_(uint16_t v) { return (uint16_t)(v << 8 | v >> 8); }
static void npuprof_load_swap32_(void *p, size_t count)
{
    for (uint32_t *w = (uint32_t *)p; count--; w++) *w = *w << 24 | (*w & 0xFF00) << 8 | (*w >> 8 & 0xFF00) | *w >> 24;
}
static void npuprof_load_swap64_(void *p, size_t count)
{
    for (uint32_t *w = (uint32_t *)p; count--; w += 2) {
        npuprof_load_swap32_(w, 2);
        const uint32_t first = w[0];
        w[0] = w[1];
        w[1] = first;
    }
}
static void npuprof_load_swap_header_(npuprof_header_ *h)
{
    npuprof_load_swap32_(&h->endian, 4);
    npuprof_load_swap64_(&h->arena_bytes, (offsetof(npuprof_header_, last_used) - offsetof(npuprof_header_, arena_bytes)) / 8);
    npuprof_load_swap32_(&h->last_used, (offsetof(npuprof_header_, host) - offsetof(npuprof_header_, last_used)) / 4);
}
static void npuprof_load_swap_chunk_head_(npuprof_chunk_ *c)
{
    npuprof_load_swap64_(&c->base, 2);
    npuprof_load_swap32_(&c->owner, 3);
    c->state = npuprof_load_swap16_(c->state);
    c->moved_units = npuprof_load_swap16_(c->moved_units);
}
static void npuprof_load_swap_slot_head_(npuprof_slot_head_ *s)
{
    npuprof_load_swap32_(&s->tid, 8);
    npuprof_load_swap64_(&s->lost, 1);
}
/* Strings of arguments stay as they are: 8 bytes in the head's w1, the rest in the units behind. */
static void npuprof_load_swap_units_(npuprof_unit_ *u, uint32_t units)
{
    for (npuprof_unit_ *const end = u + units; u < end; u++) {
        npuprof_load_swap64_(&u->w0, 1);
        const uint64_t payload = u->w0 >> NPUPROF_ID_BITS_;
        const bool text = ((uint32_t)u->w0 & NPUPROF_ID_MASK_) == NPUPROF_CONTROL_ARG_ && (payload & 15) >= NPUPROF_ARG_STR;
        if (!text) npuprof_load_swap64_(&u->w1, 1);
        else if (payload >> 32 > 8) u += npuprof_min_(NPUPROF_UNITS_((payload >> 32) - 8), (uint64_t)(end - u) - 1);
    }
}
static void npuprof_load_swap_entry_(npuprof_entry_ *e, uint32_t type)
{
    npuprof_load_swap32_(&e->hash, 3);
    if (type == NPUPROF_ENTRY_SITE || type == NPUPROF_ENTRY_METADATA || type == NPUPROF_ENTRY_ENVIRONMENT) npuprof_load_swap32_(((npuprof_pair_entry_ *)(void *)e)->b, 2);
    if (type == NPUPROF_ENTRY_PAUSE) npuprof_load_swap64_(&((npuprof_pause_entry_ *)(void *)e)->from, 2);
    if (type == NPUPROF_ENTRY_DEVICE) {
        npuprof_device_entry_ *d = (npuprof_device_entry_ *)(void *)e;
        npuprof_load_swap64_(&d->nominal_hz, (offsetof(npuprof_device_entry_, overflow_epoch) - offsetof(npuprof_device_entry_, nominal_hz)) / 8);
        npuprof_load_swap32_(&d->overflow_epoch, 8);
    }
    if (type == NPUPROF_ENTRY_ANCHORS) {
        npuprof_anchors_entry_ *a = (npuprof_anchors_entry_ *)(void *)e;
        npuprof_load_swap32_(&a->epoch, 2);
        npuprof_load_swap64_(a->anchor, 3 * NPUPROF_ANCHORS_PER_ENTRY_);
    }
}

/* Is the header one that the rest can be read by? NULL: yes; else what is wrong, at *offset. */
static const char *npuprof_load_header_fault_(const npuprof_header_ *h, size_t bytes, uint64_t *offset)
{
#define NPUPROF_LOAD_REFUSE_(field, condition, text)           \
    if (condition) {                                      \
        *offset = offsetof(npuprof_header_, field);       \
        return text;                                      \
    }
    NPUPROF_LOAD_REFUSE_(format, h->format != 1, "an image format that this version does not know")
    NPUPROF_LOAD_REFUSE_(layout, h->layout != NPUPROF_LAYOUT_ARENA && h->layout != NPUPROF_LAYOUT_STREAM, "no such layout")
    NPUPROF_LOAD_REFUSE_(header_bytes, h->header_bytes < sizeof *h || h->header_bytes % 64 || h->header_bytes > bytes, "the header's size")
    NPUPROF_LOAD_REFUSE_(table_unit, h->table_unit != 16, "the table's unit")
    NPUPROF_LOAD_REFUSE_(table_bytes, h->table_bytes > 256u * 1024 * 1024 || h->table_bytes % 16, "the table's size")
    NPUPROF_LOAD_REFUSE_(bucket_count, h->bucket_count > h->table_bytes / 4 || h->bucket_count > 1u << 20, "the table's buckets")
    NPUPROF_LOAD_REFUSE_(table_used, h->table_used > h->table_bytes || h->table_used % 16, "the table's used bytes")
    NPUPROF_LOAD_REFUSE_(chunk_bytes, h->chunk_bytes < 256 || h->chunk_bytes > 65536 || h->chunk_bytes % 16, "the size of a chunk")
    NPUPROF_LOAD_REFUSE_(slot_bytes, h->slot_bytes < sizeof(npuprof_slot_head_) || h->slot_bytes % 8 || h->slot_bytes > h->chunk_bytes - sizeof(npuprof_chunk_), "the size of a slot")
    if (h->layout == NPUPROF_LAYOUT_ARENA) {
        NPUPROF_LOAD_REFUSE_(table_offset, h->table_offset % 16 || (uint64_t)h->table_offset + h->table_used > bytes, "the table lies outside the file")
        NPUPROF_LOAD_REFUSE_(chunks_offset, h->chunks_offset % 16 || h->chunks_offset > bytes, "the chunks lie outside the file")
    }
    return NULL;
}

/* Goes through the table once: byte order, sizes, the index of the sites. */
static void npuprof_load_check_table_(uint8_t *table, uint32_t used, uint64_t file_offset)
{
    npuprof_header_ *const h = &npuprof_loaded_.header;
    npuprof_image_ *const im = &npuprof_loaded_.image;
    bool lost = false;
    im->table = table;
    im->table_used = used;
    for (uint32_t at = (h->bucket_count * 4 + 15) / 16 * 16; at < used;) {
        npuprof_entry_ *e = (npuprof_entry_ *)(void *)(table + at);
        static const size_t least[] = { 0, sizeof(npuprof_entry_) + 1, sizeof(npuprof_pair_entry_), sizeof(npuprof_pair_entry_), sizeof(npuprof_pair_entry_),
                                        sizeof(npuprof_pause_entry_), sizeof(npuprof_device_entry_), sizeof(npuprof_anchors_entry_) };
        if (npuprof_loaded_.swap) npuprof_load_swap32_(&e->type_units, 1);
        const uint32_t type = e->type_units >> 24, units = e->type_units & 0xFFFFFFu;
        bool good = type < sizeof least / sizeof *least && units <= (used - at) / 16 && (type == 0 || (size_t)units * 16 >= least[type]);
        if (good && type && npuprof_loaded_.swap) npuprof_load_swap_entry_(e, type);
        if (good && type == NPUPROF_ENTRY_STRING) good = e->a < units * 16 - sizeof *e && ((const char *)(e + 1))[e->a] == 0;
        if (good && type == NPUPROF_ENTRY_SITE) {
            const uint32_t number = e->a >> 8;
            good = number && number <= h->sites && (e->a & 0xFF) && (e->a & 0xFF) < NPUPROF_KIND_COUNT;
            uint32_t *const names = ((npuprof_pair_entry_ *)(void *)e)->b;
            for (int i = 0; i < 2 && good; i++) {
                if (!names[i] || npuprof_image_entry_(im, names[i], NPUPROF_ENTRY_STRING, sizeof *e)) continue;
                npuprof_load_note_damage_(file_offset + at, "a call site without its name");
                names[i] = 0;
            }
            if (good) *npuprof_table_site_id_at_(table, h, number) = at / 16;
        }
        if (good && type == NPUPROF_ENTRY_DEVICE) good = e->a && e->a < 256;
        if (good && type == NPUPROF_ENTRY_ANCHORS) good = ((const npuprof_anchors_entry_ *)(const void *)e)->count <= NPUPROF_ANCHORS_PER_ENTRY_;
        if (!good && !lost) npuprof_load_note_damage_(file_offset + at, "a damaged entry of the table of names");
        lost = !good;
        if (!good || !units) e->type_units = 1;
        at += good && units ? units * 16 : 16;
    }
    if (h->devices > 255) h->devices = 255;
}

/* Order of chunks: by slot, then as they were written. */
static bool npuprof_load_chunk_before_(const void *a, const void *b)
{
    const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    const npuprof_chunk_ *x = npuprof_image_chunk_(&npuprof_loaded_.image, i);
    const npuprof_chunk_ *y = npuprof_image_chunk_(&npuprof_loaded_.image, j);
    if (x->owner != y->owner) return x->owner < y->owner;
    if (x->first_position != y->first_position) return x->first_position < y->first_position;
    return i < j;
}

static void npuprof_load_sort_chunks_(uint32_t *list, uint32_t count)
{
    bool sorted = true;
    for (uint32_t i = 1; i < count && sorted; i++) sorted = npuprof_load_chunk_before_(&list[i - 1], &list[i]);
    if (!sorted) npuprof_heap_sort_(list, sizeof *list, count, npuprof_load_chunk_before_);
}

enum { NPUPROF_LOAD_TIDS_MAX_ = 1 << 20 };          /* a thread number beyond is damage */

/* Chains the chunks of each slot, and puts the slots into `slots` in the order of their owners. found: the slot heads of the file. */
static void npuprof_load_chain_chunks_(uint32_t *next, uint8_t *slots, const npuprof_slot_head_ *found, uint64_t found_count, uint64_t first_offset)
{
    npuprof_image_ *const im = &npuprof_loaded_.image;
    const npuprof_header_ *const h = im->h;
    uint32_t *const order = npuprof_loaded_.order;
    uint32_t count = 0, n = npuprof_loaded_.ordered, chunkless = 0;
    const size_t stride = NPUPROF_IMAGE_SLOT_UNITS_ * 16;
    npuprof_load_sort_chunks_(order, n);
    for (uint32_t i = 0; i < n;) {
        const npuprof_chunk_ *chunk = npuprof_image_chunk_(im, order[i]);
        npuprof_slot_head_ *const slot = (npuprof_slot_head_ *)(void *)(slots + 16 + (size_t)count++ * stride);
        slot->tid = chunk->owner >> 3;
        slot->context = chunk->owner & 7;
        uint32_t *link = &slot->first_chunk, kept = i;
        uint64_t position = 0;
        for (; i < n && npuprof_image_chunk_(im, order[i])->owner == chunk->owner; i++) {
            /* An older version of the next one? */
            if (i + 1 < n && npuprof_image_chunk_(im, order[i + 1])->owner == chunk->owner &&
                npuprof_image_chunk_(im, order[i + 1])->first_position == npuprof_image_chunk_(im, order[i])->first_position) {
                if (h->layout == NPUPROF_LAYOUT_ARENA) npuprof_load_note_damage_(first_offset + (uint64_t)order[i] * h->chunk_bytes, "the same chunk twice");
                continue;
            }
            /* Of a killed flight recorder: chunks that were taken to be recycled, with nothing behind them. In a damaged file all is kept. */
            const bool gap = link != &slot->first_chunk && npuprof_image_chunk_(im, order[i])->first_position - position > im->units;
            if (gap && h->when_full == NPUPROF_KEEP_NEWEST && !npuprof_loaded_.damage.places) {
                link = &slot->first_chunk;
                for (uint64_t arguments; kept < i; kept++) npuprof_loaded_.header.lost[NPUPROF_LOST_OVERWRITTEN] += npuprof_chunk_count_events_(h, npuprof_image_chunk_(im, order[kept]), &arguments);
            }
            position = npuprof_image_chunk_(im, order[i])->first_position;
            *link = order[i] + 1;
            link = &next[order[i]];
        }
        if (slot->tid > im->threads) im->threads = slot->tid;
    }
    im->slot_count = count;
    /* What the file says about them; those without chunks come in addition. */
    for (uint64_t f = 0; f < found_count; f++) {
        const npuprof_slot_head_ *from = &found[f];
        if (!from->tid) continue;
        if (from->tid > NPUPROF_LOAD_TIDS_MAX_ || from->context > 7) {
            npuprof_load_note_damage_(first_offset, "a damaged slot");
            continue;
        }
        uint32_t low = 0, high = im->slot_count;
        const uint64_t owner = (uint64_t)from->tid << 3 | from->context;
        npuprof_slot_head_ *slot = NULL;
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;
            npuprof_slot_head_ *at = (npuprof_slot_head_ *)(void *)(slots + 16 + middle * stride);
            const uint64_t key = (uint64_t)at->tid << 3 | at->context;
            if (key == owner) slot = at;
            if (key < owner) low = middle + 1;
            else high = middle;
        }
        if (!slot && chunkless++ == 16384) npuprof_load_note_damage_(first_offset, "too many slots");
        if (!slot && chunkless > 16384) continue;
        if (!slot) {                       /* in its place */
            memmove(slots + 16 + (low + 1) * stride, slots + 16 + low * stride, (im->slot_count - low) * stride);
            slot = (npuprof_slot_head_ *)(void *)(slots + 16 + low * stride);
            memset(slot, 0, stride);
            slot->tid = from->tid;
            slot->context = from->context;
            im->slot_count++;
            if (slot->tid > im->threads) im->threads = slot->tid;
        }
        slot->name = from->name;
        slot->os_tid = from->os_tid;
        slot->owners = from->owners;
        slot->lost = from->lost;
    }
    for (uint32_t i = 0; i < im->slot_count; i++) {
        npuprof_slot_head_ *slot = (npuprof_slot_head_ *)(void *)(slots + 16 + i * stride);
        slot->next_slot = i + 1 < im->slot_count ? 1 + (i + 1) * NPUPROF_IMAGE_SLOT_UNITS_ : 0;
    }
    im->slots = slots;
    im->slots_bytes = 16 + im->slot_count * stride;
    im->slot_first = im->slot_count ? 1 : 0;
}

/* Reads every record once and counts what cannot be read. */
static void npuprof_load_check_records_(uint64_t first_offset)
{
    npuprof_image_ *const im = &npuprof_loaded_.image;
    npuprof_cursor_ c;
    uint32_t sites[256];                   /* those met last */
    npuprof_extent_ unused;
    memset(&unused, 0, sizeof unused);
    memset(sites, 0, sizeof sites);
    im->last_ticks = im->open_until = UINT64_MAX;
    c.image = im;
    for (uint32_t i = 0; i < npuprof_loaded_.ordered; i++) {
        const uint32_t index = npuprof_loaded_.order[i];
        const uint64_t offset = first_offset + (uint64_t)index * im->h->chunk_bytes + sizeof(npuprof_chunk_);
        npuprof_event_ ev;
        bool shown;
        ev.kind = NPUPROF_KIND_NONE;
        if (npuprof_image_chunk_(im, index)->moved_units > im->units) npuprof_load_note_damage_(offset - 2, "a damaged chunk");
        const npuprof_unit_ *const u = (const npuprof_unit_ *)(const void *)(npuprof_image_chunk_(im, index) + 1);
        npuprof_cursor_begin_chunk_(&c, index + 1);
        for (uint32_t n = 0, taken = 1; n < im->units && taken; n += taken) {
            c.unit = n;
            n += npuprof_survey_plain_(&c, sites, &unused);
            taken = npuprof_cursor_decode_(im, index, n, false, &ev, &shown);
            if (ev.kind != NPUPROF_KIND_NONE) sites[ev.site % 256] = ev.site << 8 | ev.kind;
            bool good = ev.kind != NPUPROF_KIND_NONE;
            if (n < npuprof_image_chunk_(im, index)->moved_units && taken) {
                const uint32_t id = (uint32_t)u[n].w0 & NPUPROF_ID_MASK_;
                good = npuprof_image_site_(im, id == NPUPROF_CONTROL_MOVED_AWAY_ ? (uint32_t)(u[n].w0 >> NPUPROF_ID_BITS_) : id) != NULL;
            }
            if (taken && !good) npuprof_load_note_damage_(offset + (uint64_t)n * 16, "a damaged record");
        }
    }
}

static npuprof_result npuprof_load_refuse_(uint64_t offset, const char *what)
{
    npuprof_loaded_.damage.places = 1;
    npuprof_loaded_.damage.offset = offset;
    npuprof_loaded_.damage.what = what;
    return NPUPROF_ERR_FORMAT;
}

/* What was overwritten in the chunks of an arena goes into the header's count. A chunk whose next count is there is gone. */
static void npuprof_load_count_overwritten_(uint8_t *bytes, size_t count, uint32_t chunks)
{
    npuprof_header_ *const h = &npuprof_loaded_.header;
    const uint64_t offset = h->overwritten_offset;
    h->overwritten_offset = 0;
    if (!offset) return;
    if (offset % 8 || offset + (uint64_t)chunks * sizeof(npuprof_overwritten_) > count) {
        npuprof_load_note_damage_(offsetof(npuprof_header_, overwritten_offset), "the counts of what was overwritten lie outside the file");
        return;
    }
    for (uint32_t i = 0; i < chunks; i++) {
        npuprof_overwritten_ *const o = (npuprof_overwritten_ *)(void *)(bytes + offset) + i;
        if (npuprof_loaded_.swap) npuprof_load_swap64_(&o->count, 2);
        h->lost[NPUPROF_LOST_OVERWRITTEN] += o->next ? o->next - 1 : o->count;
        if (o->next) ((npuprof_chunk_ *)(void *)(bytes + h->chunks_offset + (size_t)i * h->chunk_bytes))->state = NPUPROF_CHUNK_FREE;
    }
}

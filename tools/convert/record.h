#pragma once   /* SPDX-License-Identifier: MIT */
#include "check.h"
#include "elf.h"
#include "parts.h"

typedef struct npuprof_expand_item_ {   /* of a compact image */
    uint32_t cell, context, kind, name, category, track;   /* strings of the table */
    uint64_t start, end, values[3], position;
    uint32_t around, root;         /* of a span: numbers from 1, in the list, of the one around it and of its trace's root */
    bool open, cut, warm_up;
} npuprof_expand_item_;

typedef struct npuprof_expander_ {
    const npuprof_elf_ *elf;
    const npuprof_expand_cells_ *g;
    const uint8_t *cells;
    uint32_t count, pointer_bytes;
    bool swap;
    uint64_t near_address;         /* what the addresses are near to */
    npuprof_header_ *h;            /* of the arena being made */
    uint8_t *table;
    size_t chunks;                 /* so many fit */
    npuprof_expand_item_ *list;         /* of the records, by context and start */
    uint32_t record_count, *place; /* place: number in the list, from 1, of the record that begins at a cell */
    uint32_t refs, foreign;        /* references to call sites, and those that are to none */
    uint32_t back, still;          /* stamps that went back, and that are all the same */
    uint32_t buckets[1024];
    struct { uint32_t id, bits, epoch; uint64_t wraps; } devices[256];   /* id: of its entry; wraps: in that epoch */
} npuprof_expander_;

static uint32_t npuprof_expand_cell_word_(const npuprof_expander_ *x, uint32_t cell, unsigned word)
{
    uint32_t v;
    memcpy(&v, x->cells + (size_t)cell * 16 + word * 4, 4);
    if (x->swap) npuprof_load_swap32_(&v, 1);
    return v;
}
static uint32_t npuprof_expand_cell_half_(const npuprof_expander_ *x, uint32_t cell, unsigned half)
{
    uint16_t v;
    memcpy(&v, x->cells + (size_t)cell * 16 + 12 + half * 2, 2);
    return x->swap ? npuprof_load_swap16_(v) : v;
}
/* A new entry, empty. NULL: the table is full. */
static npuprof_entry_ *npuprof_expand_new_(npuprof_expander_ *x, uint32_t type, size_t bytes, uint32_t *id)
{
    const uint32_t units = (uint32_t)((bytes + 15) / 16);
    if (x->h->table_used + (uint64_t)units * 16 + 65536 > x->h->table_bytes) return NULL;
    npuprof_entry_ *e = (npuprof_entry_ *)(void *)(x->table + x->h->table_used);
    *id = x->h->table_used / 16;
    e->type_units = units | type << 24;
    x->h->table_used += units * 16;
    return e;
}
/* An entry of the table with these bytes behind its head, found or made. 0: the table is full. */
static uint32_t npuprof_expand_entry_(npuprof_expander_ *x, uint32_t type, uint32_t a, const void *bytes, size_t count, bool text)
{
    const uint32_t hash = npuprof_hash_text_((const char *)bytes, count) ^ type ^ a << 8, units = (uint32_t)((sizeof(npuprof_entry_) + count + text + 15) / 16);
    uint32_t *const bucket = &x->buckets[hash % 1024];
    for (uint32_t id = *bucket; id;) {
        const npuprof_entry_ *e = (const npuprof_entry_ *)(const void *)(x->table + (size_t)id * 16);
        if (e->hash == hash && e->type_units == (units | type << 24) && (type == NPUPROF_ENTRY_SITE ? (e->a & 0xFF) == a : e->a == a) && memcmp(e + 1, bytes, count) == 0) return id;
        id = e->next;
    }
    uint32_t id;
    npuprof_entry_ *e = npuprof_expand_new_(x, type, sizeof *e + count + text, &id);
    if (!e) return 0;
    e->hash = hash;
    e->next = *bucket;
    e->a = type == NPUPROF_ENTRY_SITE ? a | ++x->h->sites << 8 : a;
    memcpy(e + 1, bytes, count);
    *bucket = id;
    return id;
}
static uint32_t npuprof_expand_text_(npuprof_expander_ *x, const char *text, size_t length)
{
    return npuprof_expand_entry_(x, NPUPROF_ENTRY_STRING, (uint32_t)length, text, length, true);
}
/* The text at an address of the target; what is not in the ELF file is named by its address. */
static uint32_t npuprof_expand_target_text_(npuprof_expander_ *x, uint64_t address)
{
    uint64_t room;
    char number[24];
    const char *text = (const char *)npuprof_elf_bytes_at_(x->elf, address, &room);
    const char *end = text ? (const char *)memchr(text, 0, room < NPUPROF_TABLE_STRING_LIMIT_ ? (size_t)room : (size_t)NPUPROF_TABLE_STRING_LIMIT_) : NULL;
    if (!end) {
        npuprof_digits_hex_text_(number, address);
        size_t zeros = 0;
        while (zeros < 8 && number[zeros] == '0') zeros++;
        memmove(number + 1, number + zeros, 17 - zeros);
        number[0] = '@';
        text = number;
        end = number + strlen(number);
    }
    return npuprof_expand_text_(x, text, (size_t)(end - text));
}
/* A field's own cells. A number that cannot be comes out as a field that does not fit. */
static uint32_t npuprof_expand_field_cells_(const npuprof_expander_ *x, uint32_t cell) { return 1 + ((npuprof_expand_cell_word_(x, cell, 1) >> 8 & 0x7FFFFF) + 7) / 16; }
/* Are so many cells from this one on there, one behind the other? */
static bool npuprof_expand_are_adjacent_(const npuprof_expander_ *x, uint64_t cell, uint64_t count)
{
    return cell + count <= x->count && x->g->number[cell + count - 1] - x->g->number[cell] == count - 1;
}
/* A 32-bit word of the target as an address. */
static uint64_t npuprof_expand_target_address_(const npuprof_expander_ *x, uint32_t low)
{
    return x->pointer_bytes > 4 ? x->near_address + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)x->near_address) : low;
}
/* Can that be a field? */
static bool npuprof_expand_is_field_(const npuprof_expander_ *x, uint32_t cell)
{
    const uint32_t key = npuprof_expand_cell_word_(x, cell, 0), what = npuprof_expand_cell_word_(x, cell, 1), type = what & 0xFF, length = what >> 8 & 0x7FFFFF;
    const bool text = type >= NPUPROF_ARG_STR && type < NPUPROF_FIELD_VALUE_;
    if (!type || type > NPUPROF_FIELD_RESULT_ || length > (text && type != NPUPROF_ARG_STR_NULL_ ? 1024u : 0u)) return false;
    return !key == (type >= NPUPROF_FIELD_NAME_ && type != NPUPROF_FIELD_RESULT_);
}
/* The field behind a cell, or UINT32_MAX; *broken: there should be one. head: that cell is a record's. */
static uint32_t npuprof_expand_next_field_(const npuprof_expander_ *x, uint32_t cell, bool head, bool *broken)
{
    const uint32_t of_head = head ? 1 : npuprof_expand_field_cells_(x, cell);
    const uint64_t next = (uint64_t)cell + of_head;
    if (!(head ? npuprof_expand_cell_word_(x, cell, 0) & 1 : npuprof_expand_cell_word_(x, cell, 1) & NPUPROF_FIELD_MORE_)) return UINT32_MAX;
    if (npuprof_expand_are_adjacent_(x, cell, (uint64_t)of_head + 1) && npuprof_expand_is_field_(x, (uint32_t)next) &&
        npuprof_expand_are_adjacent_(x, next, npuprof_expand_field_cells_(x, (uint32_t)next))) return (uint32_t)next;
    if (broken) *broken = true;
    return UINT32_MAX;
}
static uint64_t npuprof_expand_field_value_(const npuprof_expander_ *x, uint32_t field) { return (uint64_t)npuprof_expand_cell_word_(x, field, 3) << 32 | npuprof_expand_cell_word_(x, field, 2); }
/* A cell's place in the file. */
static uint64_t npuprof_expand_cell_offset_(const npuprof_expander_ *x, uint32_t cell)
{
    uint32_t from = 0, to = x->g->stretch_count;
    while (to - from > 1) {
        const uint32_t middle = from + (to - from) / 2;
        if (x->g->stretches[middle].start <= cell) from = middle;
        else to = middle;
    }
    return x->g->stretches[from].offset + (uint64_t)(cell - x->g->stretches[from].start) * sizeof(npuprof_cell_);
}

/* The call site at an address of the target. False: there is none. */
typedef struct npuprof_elf_site_info_ { uint64_t name, category; uint8_t kind; } npuprof_elf_site_info_;
static bool npuprof_expand_site_at_(const npuprof_expander_ *x, uint64_t address, npuprof_elf_site_info_ *out)
{
    const npuprof_elf_ *elf = x->elf;
    const uint32_t p = x->pointer_bytes;
    uint64_t room;
    size_t length = 0, from = 0, to = elf->site_count;
    const uint8_t *site = npuprof_elf_bytes_at_(elf, address, &room);
    if (!site || room <= 2 * p) return false;
    while (to - from > 1) {
        const size_t middle = from + (to - from) / 2;
        if (elf->sites[middle] <= (elf->avr ? address | 0x800000 : address)) from = middle;
        else to = middle;
    }
    if (elf->site_count && elf->sites[from] != (elf->avr ? address | 0x800000 : address)) return false;
    out->name = npuprof_elf_number_(elf, site, p);
    out->category = npuprof_elf_number_(elf, site + p, p);
    out->kind = site[2 * p];
    return out->kind && out->kind < NPUPROF_KIND_COUNT && npuprof_elf_text_at_(elf, out->name, &length) &&
           (!out->category || npuprof_elf_text_at_(elf, out->category, &length));
}
/* What is wrong with the record at a cell, or NULL. */
static const char *npuprof_expand_record_fault_(npuprof_expander_ *x, uint32_t cell)
{
    const uint32_t ref = npuprof_expand_cell_word_(x, cell, 0), kind = ref >> 8;
    npuprof_elf_site_info_ site = { 0, 0, 0 };
    if (ref & 2)
        return ref & 0xFC || (kind > NPUPROF_KIND_DEVICE && (kind < NPUPROF_CELL_KIND_THREAD_ || kind > NPUPROF_CELL_KIND_COUNT_)) ? "a record of no known kind" : NULL;
    x->refs++;
    if (!x->elf->count || npuprof_expand_site_at_(x, npuprof_expand_target_address_(x, ref & ~(uint32_t)3), &site)) return NULL;
    x->foreign++;
    return "a reference that is no call site of this program";
}
/* The cell behind a record. One in the making says how many cells it has. */
static uint32_t npuprof_expand_cell_after_(const npuprof_expander_ *x, uint32_t cell, bool *broken)
{
    const uint32_t making = npuprof_expand_cell_word_(x, cell, 2);
    uint32_t next = cell + 1;
    if (!npuprof_expand_cell_word_(x, cell, 0)) return making && making < 65536 && npuprof_expand_are_adjacent_(x, cell, making) ? cell + making : next;
    for (uint32_t f = npuprof_expand_next_field_(x, cell, true, broken); f != UINT32_MAX; f = npuprof_expand_next_field_(x, f, false, broken))
        next = f + npuprof_expand_field_cells_(x, f);
    return next;
}
/* The CRC goes on over what the ELF file has to say of a record, as the target did it. */
static uint32_t npuprof_expand_crc_names_(const npuprof_expander_ *x, uint32_t cell, uint32_t crc)
{
    const uint32_t ref = npuprof_expand_cell_word_(x, cell, 0);
    const char *text;
    size_t length = 0;
    npuprof_elf_site_info_ site = { 0, 0, 0 };
    if (ref && !(ref & 2)) {
        if (!npuprof_expand_site_at_(x, npuprof_expand_target_address_(x, ref & ~(uint32_t)3), &site)) return ~crc;
        text = npuprof_elf_text_at_(x->elf, site.name, &length);
        crc = npuprof_crc_add_(crc, text, length + 1);
        text = site.category ? npuprof_elf_text_at_(x->elf, site.category, &length) : "";
        crc = npuprof_crc_add_(crc, text, site.category ? length + 1 : 1);
        crc = npuprof_crc_add_(crc, &site.kind, 1);
    }
    for (uint32_t f = ref ? npuprof_expand_next_field_(x, cell, true, NULL) : UINT32_MAX; f != UINT32_MAX; f = npuprof_expand_next_field_(x, f, false, NULL)) {
        const uint32_t key = npuprof_expand_cell_word_(x, f, 0);
        if (!key) continue;
        text = npuprof_elf_text_at_(x->elf, npuprof_expand_target_address_(x, key), &length);
        crc = text ? npuprof_crc_add_(crc, text, length + 1) : ~crc;
    }
    return crc;
}

/* Reads the record at a cell. */
static void npuprof_expand_record_(npuprof_expander_ *x, uint32_t cell, uint64_t before, npuprof_expand_item_ *r)
{
    const uint32_t ref = npuprof_expand_cell_word_(x, cell, 0), low_half = npuprof_expand_cell_half_(x, cell, 0), high_half = npuprof_expand_cell_half_(x, cell, 1);
    const unsigned context_bits = x->g->c.context_bits, bits = 48 - context_bits;
    memset(r, 0, sizeof *r);
    r->cell = cell;
    r->context = low_half & ((1u << context_bits) - 1);
    const uint64_t start = (uint64_t)(low_half >> context_bits) << 32 | npuprof_expand_cell_word_(x, cell, 1), away = (start - before) << (64 - bits);
    r->start = before + (uint64_t)((int64_t)away >> (64 - bits));
    r->open = (high_half & NPUPROF_CELL_OPEN_) != 0;
    r->end = r->start + ((((uint64_t)high_half << 32 | npuprof_expand_cell_word_(x, cell, 2)) - r->start) & (UINT64_MAX >> (64 - NPUPROF_CELL_STAMP_BITS_)));
    r->kind = ref >> 8;
    if (!(ref & 2)) {
        const uint64_t address = npuprof_expand_target_address_(x, ref & ~(uint32_t)3);
        npuprof_elf_site_info_ site = { 0, 0, 0 };
        r->kind = NPUPROF_KIND_SPAN;
        if (npuprof_expand_site_at_(x, address, &site)) {
            size_t length = 0;
            r->kind = site.kind;
            r->name = npuprof_expand_target_text_(x, site.name);
            if (site.category && npuprof_elf_text_at_(x->elf, site.category, &length) && length) r->category = npuprof_expand_target_text_(x, site.category);
        } else {
            r->name = npuprof_expand_target_text_(x, address);
        }
    }
    for (uint32_t f = npuprof_expand_next_field_(x, cell, true, NULL); f != UINT32_MAX; f = npuprof_expand_next_field_(x, f, false, NULL)) {
        const uint32_t type = npuprof_expand_cell_word_(x, f, 1) & 0xFF, length = npuprof_expand_cell_word_(x, f, 1) >> 8 & 0x7FFFFF;
        const char *text = (const char *)x->cells + (size_t)f * 16 + 8;
        if (type == NPUPROF_FIELD_NAME_) r->name = npuprof_expand_text_(x, text, length);
        if (type == NPUPROF_FIELD_CATEGORY_) r->category = length ? npuprof_expand_text_(x, text, length) : 0;
        if (r->kind >= NPUPROF_CELL_KIND_THREAD_ && (type == NPUPROF_ARG_STR || type == NPUPROF_ARG_STR_CUT_))
            *(r->kind == NPUPROF_CELL_KIND_THREAD_ ? &r->name : &r->category) = npuprof_expand_text_(x, text, length);
        if (type == NPUPROF_FIELD_TRACK_) r->track = npuprof_expand_text_(x, text, length);
        if (type == NPUPROF_FIELD_VALUE_) r->values[0] = npuprof_expand_field_value_(x, f);
        if (type == NPUPROF_FIELD_SECOND_) r->values[1] = npuprof_expand_field_value_(x, f);
        if (type == NPUPROF_FIELD_THIRD_) r->values[2] = npuprof_expand_field_value_(x, f);
    }
    if (!r->name) r->name = npuprof_expand_text_(x, "", 0);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../numbers/text.h"
#include "../numbers/hash.h"
#include "../format/arena.h"
#include "state.h"

/* Appends a table entry of that size, zeroed and not yet finished. NULL: the table is full. */
static npuprof_entry_ *npuprof_table_add_entry_(size_t bytes, uint32_t *id)
{
    npuprof_header_ *h = npuprof_s_.header;
    const uint32_t units = (uint32_t)((bytes + h->table_unit - 1) / h->table_unit);
    /* Why the margin: a running thread may have taken a site's number and not yet its entry. */
    const uint32_t margin = h->table_bytes < 2048 ? 32 : h->table_bytes < 65536 ? 256 : 4096;
    bool mine = false;
    /* Why the size first, and then the end moves, by whoever comes: whoever walks the table gets past an
       entry that is not finished, however long its thread stands still. */
    for (uint32_t used = NPUPROF_LOAD_ACQUIRE_(&h->table_used); !mine;) {
        const uint64_t taken = (uint64_t)used + (uint64_t)NPUPROF_LOAD_(&h->sites) * 4 + margin;
        if (taken + (uint64_t)units * h->table_unit > h->table_bytes) return NULL;
        *id = used / h->table_unit;
        uint32_t size = 0;
        mine = NPUPROF_CAS_(&((npuprof_entry_ *)npuprof_table_entry_at_(*id))->type_units, &size, units);
        const uint32_t end = used + (mine ? units : size & 0xFFFFFFu) * h->table_unit;
        if (NPUPROF_CAS_(&h->table_used, &used, end)) used = end;
    }
    return (npuprof_entry_ *)npuprof_table_entry_at_(*id);
}
static void npuprof_table_finish_entry_(npuprof_entry_ *e, uint32_t type) { NPUPROF_STORE_RELEASE_(&e->type_units, NPUPROF_LOAD_(&e->type_units) | type << 24); }

/* Hangs a finished entry into its bucket, so that look-ups find it. */
static void npuprof_table_publish_entry_(npuprof_entry_ *e, uint32_t id, uint32_t hash)
{
    uint32_t *bucket = &npuprof_s_.buckets[hash & (npuprof_s_.header->bucket_count - 1)];
    uint32_t head = NPUPROF_LOAD_ACQUIRE_(bucket);
    NPUPROF_STORE_(&e->hash, hash);
    do NPUPROF_STORE_(&e->next, head);
    while (!NPUPROF_CAS_(bucket, &head, id));
}

enum { NPUPROF_TABLE_STRING_LIMIT_ = 65535, NPUPROF_ARG_STRING_LIMIT_ = 1024 };

/* The id of a string that is in the table, or 0. */
static uint32_t npuprof_table_find_string_(const char *text, size_t length, uint32_t hash)
{
    uint32_t id = NPUPROF_LOAD_ACQUIRE_(&npuprof_s_.buckets[hash & (npuprof_s_.header->bucket_count - 1)]);
    while (id) {
        const npuprof_entry_ *e = (const npuprof_entry_ *)npuprof_table_entry_at_(id);
        if (e->hash == hash && NPUPROF_LOAD_(&e->type_units) >> 24 == NPUPROF_ENTRY_STRING && e->a == length && memcmp(e + 1, text, length) == 0) break;
        id = e->next;
    }
    return id;
}
static bool npuprof_table_has_string_(const char *text) { return npuprof_table_find_string_(text, strlen(text), npuprof_hash_text_(text, strlen(text))) != 0; }
/* The id of a string, copied into the table at its first use. 0: the table is full. Lock-free; two threads
   that meet here may store a string twice, which no reader minds. */
static uint32_t npuprof_table_intern_string_(const char *text)
{
    const size_t length = npuprof_utf8_cut_(text, strlen(text), NPUPROF_TABLE_STRING_LIMIT_);
    const uint32_t hash = npuprof_hash_text_(text, length);
    uint32_t id = npuprof_table_find_string_(text, length, hash);
    if (id) return id;
    npuprof_entry_ *e = npuprof_table_add_entry_(sizeof *e + length + 1, &id);
    if (!e) return 0;
    e->a = (uint32_t)length;
    memcpy(e + 1, text, length);
    npuprof_table_finish_entry_(e, NPUPROF_ENTRY_STRING);
    npuprof_table_publish_entry_(e, id, hash);
    return id;
}

/* The table entry of a call site: kind, name and category. NULL: the table is full. */
static const npuprof_pair_entry_ *npuprof_table_intern_site_(uint32_t kind, const char *category, const char *name)
{
    const uint32_t name_id = npuprof_table_intern_string_(name ? name : "");
    const uint32_t category_id = category && *category ? npuprof_table_intern_string_(category) : 0;
    if (!name_id || (category && *category && !category_id)) return NULL;
    const uint32_t hash = (uint32_t)(npuprof_hash_mix_((uint64_t)name_id << 32 ^ (uint64_t)category_id << 8 ^ kind) >> 16);
    uint32_t id = NPUPROF_LOAD_ACQUIRE_(&npuprof_s_.buckets[hash & (npuprof_s_.header->bucket_count - 1)]);
    while (id) {
        const npuprof_pair_entry_ *e = (const npuprof_pair_entry_ *)npuprof_table_entry_at_(id);
        if (e->head.hash == hash && NPUPROF_LOAD_(&e->head.type_units) >> 24 == NPUPROF_ENTRY_SITE && (e->head.a & 0xFF) == kind && e->b[0] == name_id &&
            e->b[1] == category_id)
            return e;
        id = e->head.next;
    }
    npuprof_header_ *h = npuprof_s_.header;
    if (NPUPROF_LOAD_(&h->sites) >= NPUPROF_CONTROL_ - 1024) return NULL;
    npuprof_pair_entry_ *e = (npuprof_pair_entry_ *)(void *)npuprof_table_add_entry_(sizeof *e, &id);
    if (!e) return NULL;
    const uint32_t number = NPUPROF_ADD_(&h->sites, 1) + 1;
    e->head.a = number << 8 | kind;
    e->b[0] = name_id;
    e->b[1] = category_id;
    npuprof_table_finish_entry_(&e->head, NPUPROF_ENTRY_SITE);
    NPUPROF_STORE_RELEASE_(npuprof_table_site_id_at_(npuprof_s_.table, h, number), id);
    npuprof_table_publish_entry_(&e->head, id, hash);
    return e;
}
/* Its number; 0: the table is full. */
static uint32_t npuprof_table_intern_site_number_(uint32_t kind, const char *category, const char *name)
{
    const npuprof_pair_entry_ *e = npuprof_table_intern_site_(kind, category, name);
    return e ? e->head.a >> 8 : 0;
}

/* A pair of strings for the metadata. The table is full: counted. */
static void npuprof_table_add_pair_(uint32_t type, const char *key, const char *value)
{
    uint32_t id;
    const uint32_t key_id = npuprof_table_intern_string_(key ? key : ""), value_id = npuprof_table_intern_string_(value ? value : "");
    npuprof_pair_entry_ *e = NULL;
    if (key_id && value_id) e = (npuprof_pair_entry_ *)(void *)npuprof_table_add_entry_(sizeof *e, &id);
    if (!e) {
        NPUPROF_ADD_(&npuprof_s_.header->lost[NPUPROF_LOST_NOTES], 1);
        return;
    }
    e->b[0] = key_id;
    e->b[1] = value_id;
    npuprof_table_finish_entry_(&e->head, type);
}

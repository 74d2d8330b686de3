#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../numbers/hash.h"
#include "../numbers/text.h"
#include "../format/arena.h"
#include "state.h"

#include <string.h>

/* The table of names: strings, call sites, metadata and devices, which records name by number
   (format/arena.h). It only grows. Words, all of them atomic:
     header.table_used     end of the entries. By CAS, by whoever comes, past an entry that has its size
     header.sites          number of call sites; added to
     entry.type_units      size by CAS from 0: the entry is taken. Type, with release: the entry is whole
     buckets, entry.next   lists of whole entries by hash; an entry is put in front of its list by CAS
     the index at the end  id of a call site's entry, with release, before anybody uses its number
   So whoever reads a number, an id or table_used with acquire sees whole what lies behind it. Lock-free:
   two threads may store the same name at the same time, and it is then there twice, which harms nobody.
   This part does not know who uses the names. */

/* Appends an entry of that size, zeroed and not finished. NULL: the table is full. */
static npuprof_entry_ *npuprof_table_add_entry_(size_t bytes, uint32_t *id)
{
    npuprof_header_ *h = npuprof_s_.header;
    const uint32_t units = (uint32_t)((bytes + h->table_unit - 1) / h->table_unit);
    /* Why a margin: a thread may have taken the number of a site and not yet stored its id. */
    const uint32_t margin = h->table_bytes < 2048 ? 32 : h->table_bytes < 65536 ? 256 : 4096;
    bool mine = false;
    /* Why the size before the end: a reader gets past an entry that is not finished, however long its thread
       stands still. */
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

/* The entry is whole: readers may look at it. */
static void npuprof_table_finish_entry_(npuprof_entry_ *e, uint32_t type)
{
    NPUPROF_STORE_RELEASE_(&e->type_units, NPUPROF_LOAD_(&e->type_units) | type << 24);
}

static uint32_t *npuprof_table_bucket_(uint32_t hash)
{
    return &npuprof_s_.buckets[hash & (npuprof_s_.header->bucket_count - 1)];
}

/* Puts a finished entry into its bucket: look-ups find it. */
static void npuprof_table_publish_entry_(npuprof_entry_ *e, uint32_t id, uint32_t hash)
{
    uint32_t *bucket = npuprof_table_bucket_(hash);
    uint32_t head = NPUPROF_LOAD_ACQUIRE_(bucket);
    NPUPROF_STORE_(&e->hash, hash);
    do NPUPROF_STORE_(&e->next, head);
    while (!NPUPROF_CAS_(bucket, &head, id));
}

/* ---- Strings */

enum {
    NPUPROF_TABLE_STRING_LIMIT_ = 65535,   /* longest name */
    NPUPROF_ARG_STRING_LIMIT_ = 1024       /* longest string argument; those lie in the chunks */
};

/* The id of a string that is in the table, or 0. */
static uint32_t npuprof_table_find_string_(const char *text, size_t length, uint32_t hash)
{
    uint32_t id = NPUPROF_LOAD_ACQUIRE_(npuprof_table_bucket_(hash));
    while (id) {
        const npuprof_entry_ *e = (const npuprof_entry_ *)npuprof_table_entry_at_(id);
        const bool is_string = NPUPROF_LOAD_(&e->type_units) >> 24 == NPUPROF_ENTRY_STRING;
        if (e->hash == hash && is_string && e->a == length && memcmp(e + 1, text, length) == 0) break;
        id = e->next;
    }
    return id;
}

static bool npuprof_table_has_string_(const char *text)
{
    const size_t length = strlen(text);
    return npuprof_table_find_string_(text, length, npuprof_hash_text_(text, length)) != 0;
}

/* The id of a string, copied into the table at its first use. 0: the table is full. */
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

/* ---- Call sites */

/* What makes a call site: equal ones share an entry. */
typedef struct npuprof_table_site_ { uint32_t kind, name, category, file, line; } npuprof_table_site_;

static uint32_t npuprof_table_hash_site_(const npuprof_table_site_ *s)
{
    const uint64_t source = (uint64_t)s->file << 32 ^ s->line;
    const uint64_t all = (uint64_t)s->name << 32 ^ (uint64_t)s->category << 8 ^ s->kind;
    return (uint32_t)(npuprof_hash_mix_(source ? all ^ npuprof_hash_mix_(source) : all) >> 16);
}

static const npuprof_site_entry_ *npuprof_table_find_site_(const npuprof_table_site_ *s, uint32_t hash)
{
    uint32_t id = NPUPROF_LOAD_ACQUIRE_(npuprof_table_bucket_(hash));
    while (id) {
        const npuprof_site_entry_ *e = (const npuprof_site_entry_ *)npuprof_table_entry_at_(id);
        const bool is_site = NPUPROF_LOAD_(&e->head.type_units) >> 24 == NPUPROF_ENTRY_SITE;
        const bool same = e->name == s->name && e->category == s->category && e->file == s->file &&
                          e->line == s->line;
        if (e->head.hash == hash && is_site && same && (e->head.a & 0xFF) == s->kind) return e;
        id = e->head.next;
    }
    return NULL;
}

/* The entry of a call site, made at its first use. NULL: the table is full. */
static const npuprof_site_entry_ *npuprof_table_enter_site_(const npuprof_table_site_ *s)
{
    const uint32_t hash = npuprof_table_hash_site_(s);
    const npuprof_site_entry_ *found = npuprof_table_find_site_(s, hash);
    if (found) return found;
    npuprof_header_ *h = npuprof_s_.header;
    uint32_t id;
    /* Why 1024 before the end: that many threads may pass this line before one of them adds. */
    if (NPUPROF_LOAD_(&h->sites) >= NPUPROF_CONTROL_ - 1024) return NULL;
    npuprof_site_entry_ *e = (npuprof_site_entry_ *)(void *)npuprof_table_add_entry_(sizeof *e, &id);
    if (!e) return NULL;
    const uint32_t number = NPUPROF_ADD_(&h->sites, 1) + 1;
    e->head.a = number << 8 | s->kind;
    e->name = s->name;
    e->category = s->category;
    e->file = s->file;
    e->line = s->line;
    npuprof_table_finish_entry_(&e->head, NPUPROF_ENTRY_SITE);
    NPUPROF_STORE_RELEASE_(npuprof_table_site_id_at_(npuprof_s_.table, h, number), id);
    npuprof_table_publish_entry_(&e->head, id, hash);
    return e;
}

/* The entry of a call site by its texts. file: NULL if it is not known. NULL: the table is full. */
static const npuprof_site_entry_ *npuprof_table_intern_site_(uint32_t kind, const char *category,
                                                             const char *name, const char *file,
                                                             uint32_t line)
{
    const bool has_category = category && *category;
    npuprof_table_site_ s = { kind, 0, 0, 0, 0 };
    s.name = npuprof_table_intern_string_(name ? name : "");
    if (has_category) s.category = npuprof_table_intern_string_(category);
    if (!s.name || (has_category && !s.category)) return NULL;
    if (file) s.file = npuprof_table_intern_string_(file);
    if (s.file) s.line = line;
    return npuprof_table_enter_site_(&s);
}

/* Its number. 0: the table is full. */
static uint32_t npuprof_table_intern_site_number_(uint32_t kind, const char *category, const char *name,
                                                  const char *file, uint32_t line)
{
    const npuprof_site_entry_ *e = npuprof_table_intern_site_(kind, category, name, file, line);
    return e ? e->head.a >> 8 : 0;
}

/* The number of the call site that is like this one, and whose spans have results. 0: the table is full. */
static uint32_t npuprof_table_site_with_results_(uint32_t number)
{
    const uint32_t id = *npuprof_table_site_id_at_(npuprof_s_.table, npuprof_s_.header, number);
    const npuprof_site_entry_ *e = (const npuprof_site_entry_ *)npuprof_table_entry_at_(id);
    npuprof_table_site_ s = { e->head.a & 0xFF, e->name, e->category, e->file, e->line };
    if (s.line & NPUPROF_SITE_RESULTS_) return number;
    s.line |= NPUPROF_SITE_RESULTS_;
    e = npuprof_table_enter_site_(&s);
    return e ? e->head.a >> 8 : 0;
}

/* ---- Pairs: metadata, and variables that were refused. False: the table is full, which is counted. */
static bool npuprof_table_add_pair_(uint32_t type, const char *key, const char *value)
{
    uint32_t id;
    const uint32_t key_id = npuprof_table_intern_string_(key ? key : "");
    const uint32_t value_id = npuprof_table_intern_string_(value ? value : "");
    npuprof_pair_entry_ *e = NULL;
    if (key_id && value_id) e = (npuprof_pair_entry_ *)(void *)npuprof_table_add_entry_(sizeof *e, &id);
    if (!e) {
        NPUPROF_ADD_(&npuprof_s_.header->lost[NPUPROF_LOST_NOTES], 1);
        return false;
    }
    e->b[0] = key_id;
    e->b[1] = value_id;
    npuprof_table_finish_entry_(&e->head, type);
    return true;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../numbers/hash.h"
#include "../numbers/text.h"
#include "../format/arena.h"
#include "state.h"
#include "../os/common.h"
#include "chunks.h"
#include "thread.h"
#include "exchange.h"

#include <string.h>

/* The table of names: strings, call sites, metadata and devices, which records name by number
   (format/arena.h). It only grows: behind its first part in chunks, its pages. Words, all of them atomic:
     header.table_used     end of the entries. By CAS, by whoever comes, past an entry that has its size
     header.sites          number of call sites; added to
     pages                 chunk of a page by CAS from 0, before table_used goes into the page
     base, first_position  of that chunk's head: the same values by all who begin the page, before
                           table_used goes into it
     entry.type_units      size by CAS from 0: the entry is taken. Type, with release: the entry is whole
     buckets, entry.next   lists of whole entries by hash; an entry is put in front of its list by CAS
     index                 id, by CAS from 0, of a zeroed entry that holds ids of call sites
     the ids there         each with release, before anybody uses the number of its call site
   So whoever reads a number, an id or table_used with acquire sees whole what lies behind it. Lock-free, but
   for the chunk of a page (exchange.h): two threads may store the same name at the same time, and it is
   then there twice, which harms nobody. This part does not know who uses the names. */

/* Takes a chunk for a page, if nobody else does. Returns index + 1 of the page's chunk. 0: there is none. */
NPUPROF_COLD_ static uint32_t npuprof_table_take_page_(uint32_t page, bool nested)
{
    npuprof_os_signals_ held;
    uint32_t number = 0;
    const bool shared = npuprof_arena_.when_full != NPUPROF_KEEP_OLDEST;   /* R11 */
    if (shared) npuprof_os_hold_signals_(&held);
    npuprof_chunk_ *const chunk = npuprof_chunk_take_(NPUPROF_BLOCK_TABLE_PIECE, nested, &held);
    if (!chunk) {
        number = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.pages[page]);
    } else {
        const uint32_t ours = npuprof_chunk_index_(chunk) + 1;
        if (NPUPROF_CAS_(&npuprof_arena_.pages[page], &number, ours)) number = ours;
        else npuprof_chunk_free_(chunk);
        npuprof_exchange_end_();
    }
    if (shared) npuprof_os_release_signals_(&held);
    return number;
}

/* Makes sure that the page is there which begins at that offset. False: the table is full. */
NPUPROF_COLD_ static bool npuprof_table_make_page_(uint32_t at, bool nested)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    const uint32_t page = (at - h->table_bytes) / h->chunk_bytes, head = sizeof(npuprof_chunk_);
    if (page >= npuprof_arena_.page_count) return false;
    uint32_t number = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.pages[page]);
    if (!number) number = npuprof_table_take_page_(page, nested);
    if (!number) return false;
    npuprof_chunk_ *const chunk = npuprof_chunk_at_(number - 1);
    NPUPROF_STORE_(&chunk->base, (uint64_t)at + head);
    NPUPROF_STORE_(&chunk->first_position, (uint64_t)h->chunk_bytes - head);
    return true;
}

/* Appends an entry of that size, zeroed and not finished. NULL: the table is full. nested: for a signal
   handler, which waits for no chunk. */
NPUPROF_COLD_ static npuprof_entry_ *npuprof_table_append_(size_t bytes, bool nested, uint32_t *id)
{
    npuprof_header_ *const h = npuprof_arena_.header;
    const uint32_t unit = NPUPROF_TABLE_UNIT_, size = (uint32_t)((bytes + unit - 1) / unit * unit);
    for (uint32_t used = NPUPROF_LOAD_ACQUIRE_(&h->table_used);;) {
        const uint32_t at = npuprof_table_past_head_(h, used);
        if (at != used && !npuprof_table_make_page_(used, nested)) return NULL;
        const uint32_t beyond = used < h->table_bytes ? 0 : (used - h->table_bytes) / h->chunk_bytes + 1;
        const uint32_t left = h->table_bytes + beyond * h->chunk_bytes - at;
        const bool fits = size <= left;
        /* Why the page first: while there is none for a long entry, a short one may still fit. */
        if (!fits && size > h->chunk_bytes - sizeof(npuprof_chunk_)) return NULL;
        if (!fits && !npuprof_table_make_page_(at + left, nested)) return NULL;
        npuprof_entry_ *const e = (npuprof_entry_ *)npuprof_table_entry_at_(at / unit);
        uint32_t found = 0;
        const uint32_t ours = fits ? size / unit : left / unit | (uint32_t)NPUPROF_ENTRY_SKIP << 24;
        const bool mine = NPUPROF_CAS_(&e->type_units, &found, ours);
        /* Why the size before the end: a reader gets past an entry that is not finished, however long its
           thread stands still. */
        const uint32_t end = at + ((mine ? ours : found) & 0xFFFFFFu) * unit;
        if (NPUPROF_CAS_(&h->table_used, &used, end)) used = end;
        *id = at / unit;
        if (mine && fits) return e;
    }
}

/* The same; it may wait for a chunk, but not in a signal handler that interrupted a record. */
NPUPROF_COLD_ static npuprof_entry_ *npuprof_table_add_entry_(size_t bytes, uint32_t *id)
{
    const npuprof_slot_ *const slot = npuprof_slot_mine_();
    return npuprof_table_append_(bytes, slot->nested && NPUPROF_LOAD_(&slot->nested->busy), id);
}

/* Walks over the entries up to an offset. *at: 0 before the first one. NULL: there are no more, or one is
   being taken just now. */
NPUPROF_COLD_ static npuprof_entry_ *npuprof_table_next_(uint32_t *at, uint32_t end)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    const uint32_t here = npuprof_table_past_head_(h, *at ? *at : h->table_first);
    if (here >= end) return NULL;
    npuprof_entry_ *const e = (npuprof_entry_ *)npuprof_table_entry_at_(here / NPUPROF_TABLE_UNIT_);
    const uint32_t units = NPUPROF_LOAD_ACQUIRE_(&e->type_units) & 0xFFFFFFu;
    *at = here + units * NPUPROF_TABLE_UNIT_;
    return units ? e : NULL;
}

/* The entry is whole: readers may look at it. */
static void npuprof_table_finish_entry_(npuprof_entry_ *e, uint32_t type)
{
    NPUPROF_STORE_RELEASE_(&e->type_units, NPUPROF_LOAD_(&e->type_units) | type << 24);
}

static uint32_t *npuprof_table_bucket_(uint32_t hash)
{
    return &npuprof_arena_.buckets[hash & (npuprof_arena_.bucket_count - 1)];
}

/* The number at a place of the table's own memory, read by a write that changes nothing.
   Why: a first access that writes takes one page fault and not two. */
static uint32_t npuprof_table_read_(uint32_t *at)
{
    uint32_t found = 0;
    (void)NPUPROF_CAS_(at, &found, 0);
    return found;
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
    NPUPROF_TABLE_STRING_LIMIT_ = 65535,   /* longest name of an image; see npuprof_table_text_limit_() */
    NPUPROF_ARG_STRING_LIMIT_ = 1024       /* longest string argument; those lie in the chunks */
};

/* Bytes of the longest name: it fits into a page. */
static size_t npuprof_table_text_limit_(void)
{
    return npuprof_arena_.header->chunk_bytes - sizeof(npuprof_chunk_) - sizeof(npuprof_entry_) - 1;
}

/* Of a name that is longer, its start and this are kept. */
#define NPUPROF_TABLE_CUT_ "\xE2\x80\xA6"

/* The id of a string that is in the table, or 0. It is the text of that length, and behind it `end`. */
static uint32_t npuprof_table_find_string_(const char *text, size_t length, const char *end, uint32_t hash)
{
    const size_t more = strlen(end);
    uint32_t id = npuprof_table_read_(npuprof_table_bucket_(hash));
    while (id) {
        const npuprof_entry_ *e = (const npuprof_entry_ *)npuprof_table_entry_at_(id);
        const bool is_string = NPUPROF_LOAD_(&e->type_units) >> 24 == NPUPROF_ENTRY_STRING;
        const char *const bytes = (const char *)(e + 1);
        if (e->hash == hash && is_string && e->a == length + more && memcmp(bytes, text, length) == 0 &&
            memcmp(bytes + length, end, more) == 0)
            break;
        id = e->next;
    }
    return id;
}

static bool npuprof_table_has_string_(const char *text)
{
    const size_t length = strlen(text);
    return npuprof_table_find_string_(text, length, "", npuprof_hash_text_(text, length)) != 0;
}

/* The id of a string, copied into the table at its first use. 0: the table is full. */
static uint32_t npuprof_table_intern_string_(const char *text)
{
    const size_t all = strlen(text), limit = npuprof_table_text_limit_();
    const char *const end = all > limit ? NPUPROF_TABLE_CUT_ : "";
    const size_t more = strlen(end), length = npuprof_utf8_cut_(text, all, limit - more);
    const uint32_t hash = npuprof_hash_text_(text, length);
    uint32_t id = npuprof_table_find_string_(text, length, end, hash);
    if (id) return id;
    npuprof_entry_ *e = npuprof_table_add_entry_(sizeof *e + length + more + 1, &id);
    if (!e) return 0;
    e->a = (uint32_t)(length + more);
    memcpy(e + 1, text, length);
    memcpy((char *)(e + 1) + length, end, more);
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
    uint32_t id = npuprof_table_read_(npuprof_table_bucket_(hash));
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

/* Where the id of a call site's entry goes. NULL: the table is full. */
NPUPROF_COLD_ static uint32_t *npuprof_table_make_site_id_(uint32_t number)
{
    const uint32_t n = number / NPUPROF_TABLE_SITES_;
    if (n >= npuprof_arena_.index_count) return NULL;
    uint32_t at = npuprof_table_read_(&npuprof_arena_.index[n]);
    if (!at) {
        uint32_t ours;
        npuprof_entry_ *const e = npuprof_table_add_entry_(sizeof(npuprof_table_index_entry_), &ours);
        if (!e) return NULL;
        npuprof_table_finish_entry_(e, NPUPROF_ENTRY_SKIP);
        if (NPUPROF_CAS_(&npuprof_arena_.index[n], &at, ours)) at = ours;
    }
    return &((npuprof_table_index_entry_ *)npuprof_table_entry_at_(at))->ids[number % NPUPROF_TABLE_SITES_];
}

/* The entry of a call site, made at its first use. NULL: the table is full. */
NPUPROF_COLD_ static const npuprof_site_entry_ *npuprof_table_enter_site_(const npuprof_table_site_ *s)
{
    const uint32_t hash = npuprof_table_hash_site_(s);
    const npuprof_site_entry_ *found = npuprof_table_find_site_(s, hash);
    if (found) return found;
    npuprof_header_ *h = npuprof_arena_.header;
    uint32_t id;
    /* Why 1024 before the end: that many threads may pass this line before one of them adds. */
    if (NPUPROF_LOAD_(&h->sites) >= NPUPROF_CONTROL_ - 1024) return NULL;
    /* Why before the number is taken: in a full table no number is lost. */
    if (!npuprof_table_make_site_id_(NPUPROF_LOAD_(&h->sites) + 1)) return NULL;
    npuprof_site_entry_ *e = (npuprof_site_entry_ *)(void *)npuprof_table_add_entry_(sizeof *e, &id);
    if (!e) return NULL;
    const uint32_t number = NPUPROF_ADD_(&h->sites, 1) + 1;
    uint32_t *const site_id = npuprof_table_make_site_id_(number);
    if (!site_id) {
        npuprof_table_finish_entry_(&e->head, NPUPROF_ENTRY_SKIP);
        return NULL;
    }
    e->head.a = number << 8 | s->kind;
    e->name = s->name;
    e->category = s->category;
    e->file = s->file;
    e->line = s->line;
    npuprof_table_finish_entry_(&e->head, NPUPROF_ENTRY_SITE);
    NPUPROF_STORE_RELEASE_(site_id, id);
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
NPUPROF_COLD_ static uint32_t npuprof_table_site_with_results_(uint32_t number)
{
    const npuprof_site_entry_ *e = npuprof_table_site_at_(number);
    npuprof_table_site_ s = { e->head.a & 0xFF, e->name, e->category, e->file, e->line };
    if (s.line & NPUPROF_SITE_RESULTS_) return number;
    s.line |= NPUPROF_SITE_RESULTS_;
    e = npuprof_table_enter_site_(&s);
    return e ? e->head.a >> 8 : 0;
}

/* ---- Notes: pairs and pauses. They come without an end in a process that lives long, so they get half of
   the table at most: a new call site always finds space beside them. */

NPUPROF_COLD_ static bool npuprof_table_takes_notes_(void)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    const uint64_t all = h->table_bytes + (uint64_t)npuprof_arena_.page_count * h->chunk_bytes;
    return NPUPROF_LOAD_ACQUIRE_(&h->table_used) < h->table_first + (all - h->table_first) / 2;
}

/* ---- Pairs: metadata, and variables that were refused. False: there is no space, which is counted. */
NPUPROF_COLD_ static bool npuprof_table_add_pair_(uint32_t type, const char *key, const char *value)
{
    uint32_t id;
    const bool fits = npuprof_table_takes_notes_();
    const uint32_t key_id = fits ? npuprof_table_intern_string_(key ? key : "") : 0;
    const uint32_t value_id = key_id ? npuprof_table_intern_string_(value ? value : "") : 0;
    npuprof_pair_entry_ *e = NULL;
    if (value_id) e = (npuprof_pair_entry_ *)(void *)npuprof_table_add_entry_(sizeof *e, &id);
    if (!e) {
        NPUPROF_ADD_(&npuprof_arena_.header->lost[NPUPROF_LOST_NOTES], 1);
        return false;
    }
    e->b[0] = key_id;
    e->b[1] = value_id;
    npuprof_table_finish_entry_(&e->head, type);
    return true;
}

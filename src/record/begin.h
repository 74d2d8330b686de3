#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../clock/host.h"
#include "../arena/table.h"
#include "../arena/slots.h"
#include "enter.h"
#include "args.h"
#include "span.h"

#include <string.h>

/* How spans begin. Each kind has a fast path and a slow one (..._slow_), a function of its own. Why: the
   fast one then needs no stack frame. The fast path is taken if the clock is one instruction, the call site
   (and its keys) are known, the slot is not busy, the chunk has space, and no argument is a string. It
   looks nothing up and counts nothing: if one of these does not hold, the slow path does all of it again.
   Words of npuprof_keys_, beside those of args.h, each with release:
     fast    the fast generation for which the call site and the keys that are there are known
     text    where the site whose name and category came last at this place is in the table, in bytes, << 32 |
             the generation */

/* ---- Name and category are constants of the macro */

NPUPROF_API_ npuprof_token_ npuprof_begin_(npuprof_site_ *site)
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    const uint32_t known = NPUPROF_LOAD_ACQUIRE_(&site->generation);
    if (NPUPROF_UNLIKELY_(npuprof_differ_(known, &npuprof_arena_fast_)))
        return npuprof_record_begin_slow_(site);
    if (NPUPROF_UNLIKELY_(npuprof_test_and_set_(&slot->busy))) return npuprof_record_begin_slow_(site);
    const uint64_t now = npuprof_clock_fast_();
    npuprof_unit_ *const u = slot->cursor;
    if (NPUPROF_UNLIKELY_(u == slot->end || now > slot->deadline)) {
        npuprof_record_leave_(slot);
        return npuprof_record_begin_slow_(site);
    }
    const npuprof_token_ token =
        npuprof_record_put_span_(slot, u, u + 1, now << NPUPROF_ID_BITS_ | NPUPROF_LOAD_PLAIN_(&site->id));
    slot->cursor++;
    npuprof_record_leave_(slot);
    return token;
}

/* With NPUPROF_RECORD_ONLY size counts more than the time of a record that is no plain span: strings take the
   slow path, and texts of functions are looked up each time. */
#ifdef NPUPROF_RECORD_ONLY
#define NPUPROF_RECORD_SMALL_ 1
#else
#define NPUPROF_RECORD_SMALL_ 0
#endif

/* Writes a string argument of up to 64 bytes at u, if `room` units are enough for it. word: its key's.
   Returns its last unit, or NULL: nothing was written. */
static inline npuprof_unit_ *npuprof_record_write_string_fast_(npuprof_unit_ *u, size_t room,
                                                               const npuprof_arg *a, uint64_t word)
{
    enum { MOST = 64, UNITS = 1 + NPUPROF_UNITS_(MOST - 8) };
    const size_t length = a->type == NPUPROF_ARG_STR && a->value.s ? strlen(a->value.s) : MOST + 1;
    if (NPUPROF_RECORD_SMALL_ || length > MOST || room < UNITS) return NULL;
    u->w1 = 0;
    memcpy(&u->w1, a->value.s, length < 8 ? length : 8);
    u->w0 = ((uint64_t)length << 32 | NPUPROF_ARG_STR) << NPUPROF_ID_BITS_ | word;
    if (length <= 8) return u;
    npuprof_unit_ *const last = u + NPUPROF_UNITS_(length - 8);
    last->w0 = last->w1 = 0;               /* R13: what the text leaves of it would be from before */
    memcpy(u + 1, a->value.s + 8, length - 8);
    return last;
}

/* Writes the arguments from number i on, the first of which is a string or has an unknown key; those before
   it are there. */
static NPUPROF_NOINLINE_ npuprof_unit_ *npuprof_record_write_args_rest_(const npuprof_slot_ *slot,
                                                                        const npuprof_keys_ *keys,
                                                                        npuprof_args args, size_t i)
{
    npuprof_unit_ *u = slot->cursor + i;
    for (; i < args.count; i++) {
        const npuprof_arg *const a = &args.items[i];
        const bool is_known = NPUPROF_LOAD_ACQUIRE_(&keys->key[i]) == a->key;
        const uint64_t word = NPUPROF_LOAD_(&keys->word[i]);
        const size_t others = args.count - i - 1;
        npuprof_unit_ *last = ++u;
        if (!is_known) {
            last = NULL;
        } else if (a->type >= NPUPROF_ARG_STR) {
            last = npuprof_record_write_string_fast_(u, (size_t)(slot->end - u) - others, a, word);
        } else {
            u->w1 = a->value.u;
            u->w0 = word | (uint64_t)a->type << NPUPROF_ID_BITS_;
        }
        if (!last) return NULL;
        u = last;
    }
    return u + 1;
}

/* Writes the arguments of a record that begins at the cursor, if the fast path may. Returns where they end.
   NULL: nothing was written. */
static inline npuprof_unit_ *npuprof_record_write_args_fast_(const npuprof_slot_ *slot,
                                                             const npuprof_keys_ *keys, npuprof_args args,
                                                             uint64_t now)
{
    npuprof_unit_ *const u = slot->cursor;
    const bool fits = (size_t)(slot->end - u) > args.count;
    if (NPUPROF_UNLIKELY_(!fits || now > slot->deadline || args.count > NPUPROF_KEYS_)) return NULL;
    for (size_t i = 0; i < args.count; i++) {
        const npuprof_arg *const a = &args.items[i];
        if (NPUPROF_UNLIKELY_(a->type >= NPUPROF_ARG_STR || NPUPROF_LOAD_ACQUIRE_(&keys->key[i]) != a->key))
            return npuprof_record_write_args_rest_(slot, keys, args, i);
        u[1 + i].w1 = a->value.u;
        u[1 + i].w0 = NPUPROF_LOAD_PLAIN_(&keys->word[i]) | (uint64_t)a->type << NPUPROF_ID_BITS_;
    }
    return u + 1 + args.count;
}

/* From now on the fast path may be taken here: the call site is known, and those of its keys that are
   there. */
static void npuprof_record_make_keys_fast_(const npuprof_site_ *site, npuprof_keys_ *keys)
{
    const uint32_t generation = NPUPROF_LOAD_ACQUIRE_(&site->generation);
    if (keys && generation == NPUPROF_LOAD_(&npuprof_arena_generation_)) {
        npuprof_record_forget_keys_(keys, generation);
        NPUPROF_STORE_RELEASE_(&keys->fast, generation);
    }
}

static NPUPROF_SLOW_ npuprof_token_
npuprof_record_begin_args_slow_(npuprof_site_ *site, npuprof_keys_ *keys, npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return npuprof_record_count_no_context_();
    npuprof_token_ token = 0;
    if (npuprof_record_is_resolved_(site)) {
        const uint32_t id = (uint32_t)NPUPROF_LOAD_(&site->id);
        token = npuprof_record_begin_span_args_(slot, id, NPUPROF_WAY_ARGS_, keys, args);
        npuprof_record_make_keys_fast_(site, keys);
    }
    npuprof_record_leave_(slot);
    return token;
}

NPUPROF_API_ npuprof_token_ npuprof_begin_args_(npuprof_site_ *site, npuprof_keys_ *keys, npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    if (NPUPROF_UNLIKELY_(npuprof_differ_(NPUPROF_LOAD_ACQUIRE_(&keys->fast), &npuprof_arena_fast_) ||
                          npuprof_test_and_set_(&slot->busy)))
        return npuprof_record_begin_args_slow_(site, keys, args);
    const uint64_t now = npuprof_clock_fast_();
    npuprof_token_ token = 0;
    npuprof_unit_ *const end = npuprof_record_write_args_fast_(slot, keys, args, now);
    if (NPUPROF_LIKELY_(end != NULL)) {
        const uint64_t w0 = now << NPUPROF_ID_BITS_ | NPUPROF_LOAD_PLAIN_(&site->id);
        token = npuprof_record_put_span_(slot, slot->cursor, end, w0);
        slot->cursor = end;
    }
    npuprof_record_leave_(slot);
    return NPUPROF_LIKELY_(end != NULL) ? token : npuprof_record_begin_args_slow_(site, keys, args);
}

/* ---- One argument, not a string. Its type comes as NPUPROF_ARG_* << NPUPROF_ARG_SHIFT_ */

static NPUPROF_SLOW_ npuprof_token_
npuprof_record_begin_arg_slow_(npuprof_keys_ *keys, const char *key, uint64_t type, uint64_t value,
                               npuprof_site_ *site)
{
    npuprof_arg a;
    npuprof_args args;
    a.key = key;
    a.type = (uint32_t)(type >> NPUPROF_ARG_SHIFT_);
    a.value.u = value;
    args.items = &a;
    args.count = 1;
    return npuprof_record_begin_args_slow_(site, keys, args);
}

NPUPROF_ASSERT_(arg_shift, NPUPROF_ARG_SHIFT_ == NPUPROF_ID_BITS_);

/* The fast path wrote the argument, and then saw that the chunk cannot hold this time. Begins the
   span on the slow path, with the argument from there. */
static NPUPROF_SLOW_ npuprof_token_
npuprof_record_begin_arg_late_(npuprof_keys_ *keys, npuprof_site_ *site)
{
    npuprof_slot_ *const slot = npuprof_slot_mine_();
    npuprof_unit_ *const argument = slot->cursor + 1;
    const uint64_t type = argument->w0 ^ NPUPROF_LOAD_(&keys->word[0]), value = argument->w1;
    npuprof_record_leave_(slot);
    return npuprof_record_begin_arg_slow_(keys, NPUPROF_LOAD_(&keys->key[0]), type, value, site);
}

/* Why the parameters are in this order: rdtsc needs rdx, so there is one that is used before it. */
NPUPROF_API_ npuprof_token_ npuprof_begin_arg_(npuprof_keys_ *keys, const char *key, uint64_t type,
                                               uint64_t value, npuprof_site_ *site)
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    if (NPUPROF_UNLIKELY_(npuprof_differ_(NPUPROF_LOAD_ACQUIRE_(&keys->fast), &npuprof_arena_fast_) ||
                          npuprof_is_other_(key, &keys->key[0]) || npuprof_test_and_set_(&slot->busy)))
        return npuprof_record_begin_arg_slow_(keys, key, type, value, site);
    npuprof_unit_ *const argument = slot->cursor + 1;
    if (NPUPROF_UNLIKELY_(argument >= slot->end)) {
        npuprof_record_leave_(slot);
        return npuprof_record_begin_arg_slow_(keys, key, type, value, site);
    }
    argument->w0 = NPUPROF_LOAD_PLAIN_(&keys->word[0]) | type;
    argument->w1 = value;
    const uint64_t now = npuprof_clock_fast_();
    /* Why the fence: the address is read again then, which takes no register across the clock. */
    NPUPROF_SIGNAL_FENCE_();
    if (NPUPROF_UNLIKELY_(now > slot->deadline)) return npuprof_record_begin_arg_late_(keys, site);
    npuprof_unit_ *const u = slot->cursor;
    const uint64_t w0 = now << NPUPROF_ID_BITS_ | NPUPROF_LOAD_PLAIN_(&site->id);
    const npuprof_token_ token = npuprof_record_put_span_(slot, u, u + 2, w0);
    slot->cursor += 2;
    npuprof_record_leave_(slot);
    return token;
}

/* ---- A call site that is known by its number */

static NPUPROF_SLOW_ npuprof_token_ npuprof_record_begin_number_slow_(uint32_t number)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return npuprof_record_count_no_context_();
    const npuprof_token_ token = npuprof_record_begin_span_at_(
        slot, number, npuprof_clock_(), NPUPROF_RECORD_HERE_(slot, NPUPROF_WAY_NUMBER_));
    npuprof_record_leave_(slot);
    return token;
}

/* Begins it; `slow` does where the fast path may not. Why inline: the compiler then sees which function that
   is. */
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_record_begin_number_or_(uint32_t number,
                                                                      npuprof_token_ (*slow)(uint32_t))
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    if (NPUPROF_UNLIKELY_(npuprof_test_and_set_(&slot->busy))) return slow(number);
    const uint64_t now = npuprof_clock_fast_();
    npuprof_unit_ *const u = slot->cursor;
    if (NPUPROF_UNLIKELY_(u == slot->end || now > slot->deadline)) {
        npuprof_record_leave_(slot);
        return slow(number);
    }
    const npuprof_token_ token =
        npuprof_record_put_span_(slot, u, u + 1, now << NPUPROF_ID_BITS_ | number);
    slot->cursor++;
    npuprof_record_leave_(slot);
    return token;
}

static inline npuprof_token_ npuprof_record_begin_number_(uint32_t number)
{
    return npuprof_record_begin_number_or_(number, npuprof_record_begin_number_slow_);
}

/* ---- Name and category come at run time, or may differ between inlined copies of one macro */

/* An entry, in_first: of the first part of the table. */
static inline const npuprof_entry_ *npuprof_record_entry_(uint32_t id, bool in_first)
{
    const void *const first = npuprof_arena_.table + (size_t)id * NPUPROF_TABLE_UNIT_;
    return (const npuprof_entry_ *)(in_first ? first : npuprof_table_entry_fast_(id));
}

/* The site whose name and category came last at this place, if these are the same texts. NULL: they are not.
   in_first: it lies in the first part of the table, and so do its texts, which came before it.
   Why texts and not pointers: a buffer may hold another name by now. */
static inline const npuprof_site_entry_ *npuprof_record_match_text_(const npuprof_site_entry_ *e,
                                                                    bool in_first, const char *category,
                                                                    const char *name)
{
    if (NPUPROF_UNLIKELY_(!name)) return NULL;
    if (NPUPROF_UNLIKELY_(strcmp(name, (const char *)(npuprof_record_entry_(e->name, in_first) + 1)) != 0))
        return NULL;
    if (!category || !e->category) return !category && !e->category ? e : NULL;
    return strcmp(category, (const char *)(npuprof_record_entry_(e->category, in_first) + 1)) == 0 ? e : NULL;
}

/* Of a site in the table's first part, by its offset there. */
static inline const npuprof_site_entry_ *npuprof_record_match_first_(uint32_t at, const char *category,
                                                                     const char *name)
{
    const void *const e = npuprof_arena_.table + at;
    return npuprof_record_match_text_((const npuprof_site_entry_ *)e, true, category, name);
}

/* Of any site, by its id. */
static NPUPROF_NOINLINE_ const npuprof_site_entry_ *npuprof_record_match_anywhere_(uint32_t id,
                                                                                  const char *category,
                                                                                  const char *name)
{
    const void *const e = npuprof_table_entry_fast_(id);
    return npuprof_record_match_text_((const npuprof_site_entry_ *)e, false, category, name);
}

/* Gives a call site the name and category of its first call. Does it have these?
   Why the pointers are compared: inlining may give one call site several constants. */
static bool npuprof_record_name_site_(npuprof_site_ *site, const char *category, const char *name)
{
    static const char taken = 0;               /* no name's address: the category comes first */
    const char *nothing = NULL;
    if (NPUPROF_LOAD_(&site->name) == NULL && NPUPROF_CAS_(&site->name, &nothing, &taken)) {
        NPUPROF_STORE_(&site->category, category);
        NPUPROF_STORE_RELEASE_(&site->name, name);
    }
    return NPUPROF_LOAD_ACQUIRE_(&site->name) == name && NPUPROF_LOAD_(&site->category) == category;
}

/* In keys->text beside the generation, which has 31 bits: the site does not lie in the table's first part. */
#define NPUPROF_KEYS_ANYWHERE_ 0x80000000u

/* The number of a call site, by its own name and category if it has one (constants of the call), else by
   `keys`, where they came at run time; one of the two may be NULL. 0: it is not to be recorded, or the table
   is full, which is counted. */
static uint32_t npuprof_record_named_id_(npuprof_site_ *site, npuprof_keys_ *keys, const char *category,
                                         const char *name)
{
    if (site && npuprof_record_name_site_(site, category, name))
        return npuprof_record_is_resolved_(site) ? (uint32_t)NPUPROF_LOAD_(&site->id) : 0;
    if (!keys) return npuprof_record_resolve_name_(site->kind, category, name);
    const uint32_t generation = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_generation_);
    const uint64_t text = NPUPROF_LOAD_ACQUIRE_(&keys->text);
    const npuprof_site_entry_ *e = NULL;
    const uint32_t place = (uint32_t)(text >> 32);
    if ((uint32_t)text == generation) e = npuprof_record_match_first_(place, category, name);
    else if ((uint32_t)text == (generation | NPUPROF_KEYS_ANYWHERE_))
        e = npuprof_record_match_anywhere_(place, category, name);
    if (e) return e->head.a >> 8;
    if (!npuprof_record_category_passes_(category)) return 0;
    e = npuprof_table_intern_site_(keys->kind, category, name, keys->file, keys->line);
    if (!e) {
        npuprof_count_lost_(NPUPROF_LOST_NAMES, 1);
        return 0;
    }
    const uint32_t number = e->head.a >> 8, id = npuprof_table_site_id_(number);
    if (NPUPROF_RECORD_WATCHES_() && npuprof_record_is_watched_(number)) return number;
    const bool in_first = id < npuprof_arena_.table_units;
    const uint64_t at = in_first ? id * NPUPROF_TABLE_UNIT_ : id;
    NPUPROF_STORE_RELEASE_(&keys->text, at << 32 | generation | (in_first ? 0 : NPUPROF_KEYS_ANYWHERE_));
    return number;
}

/* ---- Texts of functions, which have no call site */

/* Where the call site or string is in the table that came last with these addresses: as npuprof_keys_.text,
   but always an id. Words: atomic, each by itself. */
enum { NPUPROF_RECORD_NAMES_ = 128 };
static uint64_t npuprof_record_names_[NPUPROF_RECORD_NAMES_];

static inline uint64_t *npuprof_record_name_place_(uint32_t kind, const char *category, const char *name)
{
    const uint64_t all = (uint64_t)(uintptr_t)name * 31 + (uint64_t)(uintptr_t)category + kind;
    return &npuprof_record_names_[all * UINT64_C(0x9E3779B97F4A7C15) >> 57];
}

/* The number of the call site of a record that a function makes. 0: it is not to be recorded, or the table is
   full, which is counted. Why texts are compared, too: an address may hold another text by now. */
static inline uint32_t npuprof_record_function_id_(uint32_t kind, const char *category, const char *name)
{
    uint64_t *const place = npuprof_record_name_place_(kind, category, name);
    const uint32_t generation = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_generation_);
    const uint64_t known = NPUPROF_LOAD_ACQUIRE_(place);
    if (NPUPROF_RECORD_SMALL_) return npuprof_record_resolve_name_(kind, category, name);
    if (NPUPROF_LIKELY_((uint32_t)known == generation)) {
        const npuprof_entry_ *const e = npuprof_record_entry_((uint32_t)(known >> 32), false);
        const npuprof_site_entry_ *const site = (const npuprof_site_entry_ *)(const void *)e;
        const bool is_site = NPUPROF_LOAD_(&e->type_units) >> 24 == NPUPROF_ENTRY_SITE;
        if (is_site && (e->a & 0xFF) == kind && npuprof_record_match_text_(site, false, category, name))
            return e->a >> 8;
    }
    const uint32_t number = npuprof_record_resolve_name_(kind, category, name);
    if (number) NPUPROF_STORE_RELEASE_(place, (uint64_t)npuprof_table_site_id_(number) << 32 | generation);
    return number;
}

/* The id of a string, likewise. 0: the table is full. */
static inline uint32_t npuprof_record_string_id_(const char *text)
{
    uint64_t *const place = npuprof_record_name_place_(0, NULL, text);
    const uint32_t generation = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_generation_);
    const uint64_t known = NPUPROF_LOAD_ACQUIRE_(place);
    const uint32_t before = (uint32_t)(known >> 32);
    if (NPUPROF_RECORD_SMALL_) return npuprof_table_intern_string_(text);
    if (NPUPROF_LIKELY_((uint32_t)known == generation)) {
        const npuprof_entry_ *const e = npuprof_record_entry_(before, false);
        const bool is_string = NPUPROF_LOAD_(&e->type_units) >> 24 == NPUPROF_ENTRY_STRING;
        if (is_string && strcmp(text, (const char *)(e + 1)) == 0) return before;
    }
    const uint32_t id = npuprof_table_intern_string_(text);
    if (id) NPUPROF_STORE_RELEASE_(place, (uint64_t)id << 32 | generation);
    return id;
}

NPUPROF_API_ void npuprof_wait_(const npuprof_device *device)
{
    if (device->wait) (void)device->wait(device->user);
}

NPUPROF_API_ npuprof_token_ npuprof_begin_named_(const npuprof_device *device, npuprof_site_ *site,
                                                 npuprof_keys_ *keys, const char *category, const char *name,
                                                 npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return npuprof_record_count_no_context_();
    npuprof_token_ token = 0;
    const uint32_t id = npuprof_record_named_id_(site, keys, category, name);
    if (id) {
        if (device && device->wait_around) {
            npuprof_record_leave_(slot);
            npuprof_wait_(device);
            NPUPROF_STORE_(&slot->busy, 1);
            NPUPROF_SIGNAL_FENCE_();
        }
        /* Without a device, others of this library call it, too. */
        const uint32_t way = device ? NPUPROF_WAY_DEVICE_ : NPUPROF_WAY_NAMED_;
        token = npuprof_record_begin_span_args_(slot, id, way, keys, args);
    }
    npuprof_record_leave_(slot);
    return token;
}

/* Without a call site: its texts are looked up each time. */
static npuprof_token_ npuprof_record_begin_kind_(uint32_t kind, const char *category, const char *name,
                                                 npuprof_args args)
{
    npuprof_slot_ *const slot = npuprof_record_enter_();
    if (!slot) return npuprof_record_count_no_context_();
    const uint32_t id = npuprof_record_resolve_name_(kind, category, name);
    const npuprof_token_ token =
        id ? npuprof_record_begin_span_args_(slot, id, NPUPROF_WAY_KIND_, NULL, args) : 0;
    npuprof_record_leave_(slot);
    return token;
}

NPUPROF_API_ npuprof_token_ npuprof_begin_constant_(npuprof_site_ *site, const char *category,
                                                    const char *name)
{
    if (NPUPROF_LIKELY_(NPUPROF_LOAD_ACQUIRE_(&site->name) == name &&
                        NPUPROF_LOAD_(&site->category) == category))
        return npuprof_begin_(site);
    return npuprof_begin_named_(NULL, site, NULL, category, name, PROF_NO_ARGS);
}

static NPUPROF_NOINLINE_ npuprof_token_
npuprof_record_begin_text_slow_(const char *name, const char *category, npuprof_keys_ *keys)
{
    const uint64_t text = NPUPROF_LOAD_ACQUIRE_(&keys->text);
    if ((uint32_t)text == (NPUPROF_LOAD_(&npuprof_arena_fast_) | NPUPROF_KEYS_ANYWHERE_)) {
        const npuprof_site_entry_ *const e =
            npuprof_record_match_anywhere_((uint32_t)(text >> 32), category, name);
        if (e) return npuprof_record_begin_number_(e->head.a >> 8);
    }
    return npuprof_begin_named_(NULL, NULL, keys, category, name, PROF_NO_ARGS);
}

NPUPROF_API_ npuprof_token_ npuprof_begin_text_(const char *name, const char *category, npuprof_keys_ *keys)
{
    const uint64_t text = NPUPROF_LOAD_ACQUIRE_(&keys->text);
    const npuprof_site_entry_ *e = NULL;
    if (NPUPROF_LIKELY_(!npuprof_differ_((uint32_t)text, &npuprof_arena_fast_)))
        e = npuprof_record_match_first_((uint32_t)(text >> 32), category, name);
    return NPUPROF_LIKELY_(e != NULL) ? npuprof_record_begin_number_(e->head.a >> 8)
        : npuprof_record_begin_text_slow_(name, category, keys);
}

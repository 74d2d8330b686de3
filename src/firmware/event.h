#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/layouts.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"
#include "policy.h"
#include "notes.h"
#include "record.h"

/* Records with fields: spans with arguments or run-time names, events, memory, names and metadata. A record
   is a head cell and a field cell for each text and value (format/compact.h).
   Owns npuprof_fw_by_hand_of_: the spans of PROF_BEGIN, for each context its own; and the memory pools of
   PROF_ALLOC, which tasks may update at once without a lock. May not know who reads the cells. */

/* Two lists: the library's own fields, then the user's. */
typedef struct npuprof_fw_fields_ { npuprof_args list[2]; } npuprof_fw_fields_;

/* The bytes of a text that are recorded: 1,024 at most, and whole UTF-8 sequences. */
static uint32_t npuprof_fw_kept_length_(const char *text, bool *cut)
{
    uint32_t n = npuprof_fw_text_length_(text);
    *cut = n > 1024;
    if (*cut)
        for (n = 1024; n > 1020 && ((uint8_t)text[n] & 0xC0) == 0x80;) n--;
    return n;
}

static bool npuprof_fw_is_text_(uint32_t type)
{
    return type >= NPUPROF_ARG_STR && type < NPUPROF_FIELD_VALUE_;
}

/* Cells that a text takes beside its field cell, which holds 8 bytes of it. */
static uint32_t npuprof_fw_text_cells_(uint32_t length) { return length > 8 ? (length + 7) / 16 : 0; }

/* Fills one field cell, and those of its text. Returns its last cell. cells: NPUPROF_FW_CELLS_WORD_ of the
   record, for its first field; else 0. */
static inline npuprof_cell_ *npuprof_fw_put_field_(npuprof_cell_ *field, const npuprof_arg *a, uint32_t cells)
{
    uint32_t type = a->type, length = 0;
    bool cut = false;
    if (!npuprof_fw_is_text_(type)) {
        field->end = (uint32_t)a->value.u;
        field->high.word = (uint32_t)(a->value.u >> 32);
    } else if (a->value.s) {
        length = npuprof_fw_kept_length_(a->value.s, &cut);
        npuprof_fw_copy_bytes_((uint8_t *)&field->end, a->value.s, (size_t)length);
    } else {
        type = NPUPROF_ARG_STR_NULL_;
    }
    if (cut && type == NPUPROF_ARG_STR) type = NPUPROF_ARG_STR_CUT_;
    field->ref = (uint32_t)(uintptr_t)a->key;
    field->start = type | length << 8 | cells;
    return field + npuprof_fw_text_cells_(length);
}

/* The cells that all fields take. */
static inline uint32_t npuprof_fw_count_cells_(const npuprof_fw_fields_ *fields)
{
    uint32_t count = 0;
    bool cut;
    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < fields->list[l].count; i++) {
            const npuprof_arg *a = &fields->list[l].items[i];
            const bool has_text = npuprof_fw_is_text_(a->type) && a->value.s;
            count += 1 + npuprof_fw_text_cells_(has_text ? npuprof_fw_kept_length_(a->value.s, &cut) : 0);
        }
    return count;
}

/* Fills a record's head, after its fields, and finishes it, with that half[1]. */
static inline void npuprof_fw_finish_(npuprof_cell_ *head, uint32_t ref, uint32_t half, uint64_t now)
{
    head->start = (uint32_t)now;
    head->high.half[0] = npuprof_fw_high_half_(now, npuprof_fw_context_());
    npuprof_fw_publish_half_(head, ref, half);
}

/* Why a function: it takes flash once. */
static NPUPROF_NOINLINE_ npuprof_token_ npuprof_fw_take_fields_(npuprof_compact_header_ *c, uint32_t count,
                                                                uint32_t *lost)
{
    return npuprof_fw_take_(c, count, lost);
}

/* Where a record is counted that is lost: an event, or a note. */
static uint32_t *npuprof_fw_lost_(npuprof_compact_header_ *c, uint32_t ref)
{
    const uint32_t kind = ref >> 8 & 0xFF;
    const bool is_note = (ref & 2) && kind >= NPUPROF_CELL_KIND_THREAD_ && kind < NPUPROF_CELL_KIND_ENTRY_;
    return is_note ? &c->lost_notes : &c->lost;
}

NPUPROF_ASSERT_(shape, (int)NPUPROF_SHAPE_EVENT_ == (int)NPUPROF_FIELD_VALUE_);

/* Records a head and its fields. span: it is left open. The token, or 0: lost. */
static npuprof_token_ npuprof_fw_put_record_(uint32_t ref, bool span, const npuprof_fw_fields_ *fields)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint64_t now = npuprof_fw_stamp_(c);
    const uint32_t count = 1 + npuprof_fw_count_cells_(fields);
    uint32_t *const lost = npuprof_fw_lost_(c, ref);
    const npuprof_token_ token = npuprof_fw_take_fields_(c, count, lost);
    if (!token) return npuprof_fw_tally_(c, 0, lost);
    npuprof_cell_ *const head = npuprof_fw_cell_(c, token), *field = head, *last = head;
    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < fields->list[l].count; i++) {
            const uint32_t cells = last == head ? NPUPROF_FW_CELLS_WORD_(count) : 0;
            if (last == head) ref |= 1;
            else last->start |= NPUPROF_FIELD_MORE_;
            last = ++field;
            field = npuprof_fw_put_field_(field, &fields->list[l].items[i], cells);
        }
    const bool stays = span || npuprof_fw_is_kept_(ref);
    npuprof_fw_finish_(head, ref, stays ? NPUPROF_FW_OPEN_HALF_(token) : 0, now);
    return npuprof_fw_tally_(c, token, lost);
}
#define NPUPROF_FW_REF_OF_KIND_(kind) ((uint32_t)(kind) << 8 | 2)

/* A record whose texts (name, category, track) and values came at run time. A text may be NULL, a value but
   the first 0: then it is not recorded. */
static npuprof_token_ npuprof_fw_put_named_(uint32_t ref, bool span, const char *const *texts,
                                            const uint64_t *values, npuprof_args args)
{
    npuprof_arg own[6];
    npuprof_fw_fields_ fields;
    size_t count = 0;
    for (uint32_t i = 0; i < 6; i++) {
        own[count].key = NULL;
        own[count].type = NPUPROF_FIELD_NAME_ + i;
        if (i < 3 && texts && texts[i]) own[count++].value.s = texts[i];
        if (i >= 3 && values && (i == 3 || values[i - 3])) own[count++].value.u = values[i - 3];
    }
    fields.list[0].items = own;
    fields.list[0].count = count;
    fields.list[1].items = args.items;
    fields.list[1].count = args.count;
    return npuprof_fw_put_record_(ref, span, &fields);
}

NPUPROF_API_ npuprof_token_ npuprof_begin_args_(const npuprof_site_ *site, npuprof_args args)
{
    return npuprof_fw_put_named_((uint32_t)(uintptr_t)site, true, NULL, NULL, args);
}

NPUPROF_API_ npuprof_token_ npuprof_begin_named_(uint32_t kind, const char *category, const char *name,
                                                 npuprof_args args)
{
    const char *const texts[3] = { name, category, NULL };
    return npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(kind), true, texts, NULL, args);
}

/* Spans of PROF_BEGIN, a stack for each context. */
static npuprof_fw_by_hand_ npuprof_fw_by_hand_of_[1u << NPUPROF_CONTEXT_BITS_];

/* Makes a span that just began the innermost of its stack; token 0: it was not recorded. */
static void npuprof_fw_push_(npuprof_fw_by_hand_ *h, npuprof_token_ token)
{
    if (NPUPROF_LIKELY_(token)) {
        npuprof_fw_save_(npuprof_fw_cell_(npuprof_fw_arena_, token), h);
        h->top = token;
        h->skipped = 0;
    } else {
        h->skipped++;
    }
}

/* Takes the innermost span off its stack: its cell, or NULL if it was not recorded or there is none. */
static npuprof_cell_ *npuprof_fw_pop_(npuprof_fw_by_hand_ *h)
{
    if (h->skipped) {
        h->skipped--;
        return NULL;
    }
    npuprof_cell_ *const cell = npuprof_fw_open_cell_(npuprof_fw_arena_, h->top);
    if (cell) npuprof_fw_restore_(cell, h);
    return cell;
}

/* Ends the innermost span of a stack. */
static void npuprof_fw_end_top_(npuprof_fw_by_hand_ *h)
{
    npuprof_cell_ *const cell = npuprof_fw_pop_(h);
    if (cell) npuprof_fw_end_found_(cell, npuprof_fw_stamp_(npuprof_fw_arena_));
}

NPUPROF_API_ void npuprof_begin_by_hand_(const char *category, const char *name)
{
    const bool open = NPUPROF_OPEN_(1);
    const npuprof_token_ token =
        open ? npuprof_begin_named_(NPUPROF_KIND_SPAN, category, name, PROF_NO_ARGS) : 0;
    npuprof_fw_push_(&npuprof_fw_by_hand_of_[npuprof_fw_context_()], token);
}

NPUPROF_API_ void npuprof_begin_here_(const npuprof_site_ *site)
{
    npuprof_fw_push_(&npuprof_fw_by_hand_of_[npuprof_fw_context_()],
                     NPUPROF_OPEN_(1) ? npuprof_begin_(site) : 0);
}

NPUPROF_API_ void npuprof_end_by_hand_(void)
{
    npuprof_fw_end_top_(&npuprof_fw_by_hand_of_[npuprof_fw_context_()]);
}

NPUPROF_API_ void npuprof_event_args_now_(const npuprof_site_ *site, npuprof_args args)
{
    (void)npuprof_fw_put_named_((uint32_t)(uintptr_t)site, false, NULL, NULL, args);
}

/* ---- The short way: values that are no texts */

/* Fills a record of at least one value, and finishes it. many: of more than one. */
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_fw_fill_short_(npuprof_cell_ *head, npuprof_token_ token,
                                                             uint32_t ref, const npuprof_arg *values,
                                                             uint32_t shape, bool many)
{
    npuprof_cell_ *field = head + 1;
    uint32_t count = shape >> NPUPROF_SHAPE_SHIFT_, word = values->type;
    if (many) word |= NPUPROF_FIELD_MORE_;
    npuprof_os_store_(&field->start, word | NPUPROF_FW_CELLS_WORD_(1 + count));
    npuprof_fw_begin_short_(head, ref | 1, 1 + count);
    for (;;) {
        field->ref = (uint32_t)(uintptr_t)values->key;
        field->end = (uint32_t)values->value.u;
        field->high.word = (uint32_t)(values->value.u >> 32);
        if (!many || !--count) break;
        values++;
        field++;
        field->start = values->type | NPUPROF_FIELD_MORE_;
    }
    if (many) field->start = values->type;
    const bool apart = NPUPROF_MASKS_ && !(NPUPROF_CONSTANT_(many) && many);
    const uint64_t now = apart ? npuprof_fw_stamp_apart_(npuprof_fw_arena_)
                               : npuprof_fw_stamp_here_(npuprof_fw_arena_);
    head->start = (uint32_t)now;
    head->high.half[0] = npuprof_fw_high_half_(now, npuprof_fw_context_());
    npuprof_fw_publish_short_(head, ref | 1, shape & NPUPROF_SHAPE_SPAN_ ? NPUPROF_FW_OPEN_HALF_(token) : 0);
    return token;
}

#if NPUPROF_RING_
/* The same where cells are hard to find. */
static NPUPROF_NOINLINE_ npuprof_token_ npuprof_fw_put_long_(uint32_t ref, const npuprof_arg *values,
                                                             uint32_t shape)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const npuprof_token_ token = npuprof_fw_take_more_(c, 1 + (shape >> NPUPROF_SHAPE_SHIFT_));
    if (token) (void)npuprof_fw_fill_short_(npuprof_fw_cell_(c, token), token, ref, values, shape,
                                               shape >= 2 << NPUPROF_SHAPE_SHIFT_);
    return npuprof_fw_tally_(c, token, &c->lost);
}

static NPUPROF_NOINLINE_ npuprof_token_ npuprof_fw_put_value_long_(uint32_t ref, const char *key,
                                                                   uint64_t value, uint32_t shape)
{
    npuprof_arg own = npuprof_arg_(key, shape >> NPUPROF_SHAPE_SHIFT_);
    own.value.u = value;
    return npuprof_fw_put_long_(ref, &own, 1 << NPUPROF_SHAPE_SHIFT_ | (shape & NPUPROF_SHAPE_SPAN_));
}
#else /* !NPUPROF_RING_ */
#define npuprof_fw_put_value_long_(ref, key, value, shape) 0
#endif /* NPUPROF_RING_ */

NPUPROF_API_ npuprof_token_ npuprof_put_value_(const npuprof_site_ *site, const char *key, uint64_t value,
                                               uint32_t shape)
{
    const uint32_t ref = (uint32_t)(uintptr_t)site;
    npuprof_cell_ *head;
    npuprof_token_ token;
    if (NPUPROF_UNLIKELY_(!npuprof_fw_take_short_(npuprof_fw_arena_, 2, &head, &token)))
        return npuprof_fw_put_value_long_(ref, key, value, shape);
    npuprof_arg own = npuprof_arg_(key, shape >> NPUPROF_SHAPE_SHIFT_);
    own.value.u = value;
    return npuprof_fw_fill_short_(head, token, ref, &own,
                                  1 << NPUPROF_SHAPE_SHIFT_ | (shape & NPUPROF_SHAPE_SPAN_), false);
}

NPUPROF_API_ npuprof_token_ npuprof_put_values_(const npuprof_site_ *site, const npuprof_arg *values,
                                                uint32_t shape)
{
    const uint32_t ref = (uint32_t)(uintptr_t)site, count = 1 + (shape >> NPUPROF_SHAPE_SHIFT_);
    npuprof_cell_ *head;
    npuprof_token_ token;
    if (NPUPROF_UNLIKELY_(!npuprof_fw_take_short_(npuprof_fw_arena_, count, &head, &token)))
        return npuprof_fw_put_long_(ref, values, shape);
    return npuprof_fw_fill_short_(head, token, ref, values, shape, true);
}

NPUPROF_API_ void npuprof_put_instant_(const npuprof_site_ *site)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    uint64_t now;
    const npuprof_token_ token = npuprof_fw_take_now_(c, &now);
    if (NPUPROF_LIKELY_(token)) {
        npuprof_cell_ *const head = npuprof_fw_cell_(c, token);
        head->end = 1;
        npuprof_fw_finish_(head, (uint32_t)(uintptr_t)site, 0, now);
    }
    (void)npuprof_fw_tally_(c, token, &c->lost);
}

static void npuprof_fw_put_event_(uint32_t kind, const char *name, const char *category, const char *track,
                                  uint64_t first, uint64_t second, uint64_t third, npuprof_args args)
{
    const char *const texts[3] = { name, category, track };
    const uint64_t values[3] = { first, second, third };
    (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(kind), false, texts, values, args);
}

NPUPROF_API_ void npuprof_async_begin(const char *category, const char *name, uint64_t id)
{
    if (!NPUPROF_OPEN_(1)) return;
    npuprof_fw_put_event_(NPUPROF_KIND_ASYNC_BEGIN, name ? name : "", category, NULL, id, 0, 0, PROF_NO_ARGS);
}

NPUPROF_API_ void npuprof_async_end(uint64_t id)
{
    if (!npuprof_fw_arena_->cells) return;
    npuprof_fw_put_event_(NPUPROF_KIND_ASYNC_END, NULL, NULL, NULL, id, 0, 0, PROF_NO_ARGS);
}

NPUPROF_API_ void npuprof_span(const char *track, const char *category, const char *name, int64_t start_ns,
                               int64_t end_ns, npuprof_args args)
{
    if (!NPUPROF_OPEN_(1)) return;
    npuprof_fw_put_event_(NPUPROF_KIND_FINISHED, name ? name : "", category, track ? track : "",
                          (uint64_t)start_ns, (uint64_t)end_ns, 0, args);
}

/* What PROF_ALLOC and PROF_FREE count, for each device. */
typedef struct npuprof_fw_pool_ {
    const npuprof_device *device;
    bool taken;
    uint64_t used, allocated;
} npuprof_fw_pool_;

/* The pool of a device. Devices after the fourth share one. */
static npuprof_fw_pool_ *npuprof_fw_find_pool_(const npuprof_device *device)
{
    static npuprof_fw_pool_ pools[4], others;
    for (npuprof_fw_pool_ *pool = pools; pool < pools + 4; pool++) {
        if (pool->taken && pool->device != device) continue;
        pool->taken = true;
        pool->device = device;
        return pool;
    }
    return &others;
}

static void npuprof_fw_put_memory_(const npuprof_device *device, const npuprof_fw_pool_ *pool,
                                   uint64_t change, const char *tag)
{
    if (!NPUPROF_OPEN_(1)) return;
    const char *const name = device && device->name ? device->name : "host";
    npuprof_fw_put_event_(NPUPROF_KIND_MEMORY, tag ? tag : "", name, NULL, pool->used, pool->allocated,
                          change, PROF_NO_ARGS);
}

NPUPROF_API_ void npuprof_memory_(const npuprof_device *device, uint64_t used_bytes, uint64_t allocated_bytes,
                                  const char *tag)
{
    npuprof_fw_pool_ *const pool = npuprof_fw_find_pool_(device);
    pool->used = used_bytes;
    pool->allocated = allocated_bytes;
    npuprof_fw_put_memory_(device, pool, 0, tag);
}

NPUPROF_API_ void npuprof_memory_change_(const npuprof_device *device, bool is_free, uint64_t bytes,
                                         const char *tag)
{
    npuprof_fw_pool_ *const pool = npuprof_fw_find_pool_(device);
    pool->used = !is_free ? pool->used + bytes : pool->used > bytes ? pool->used - bytes : 0;
    if (pool->allocated < pool->used) pool->allocated = pool->used;
    npuprof_fw_put_memory_(device, pool, bytes << 2 | (is_free ? 2 : 1), tag);
}

/* A thread's name or metadata: the text is an argument. values: of npuprof_fw_put_named_, or NULL. id: of its
   slot; 0: it is an anchor.
   Why a thread's note has a name, too: the JSON writer then needs to know nothing of notes. */
static npuprof_result npuprof_fw_put_note_(uint32_t kind, const char *name, const uint64_t *values,
                                           npuprof_arg arg, uint32_t id)
{
    const char *const texts[3] = { name, NULL, NULL };
    if (!npuprof_fw_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    npuprof_fw_slot_ *const slot = id ? npuprof_fw_slot_of_(id) : NULL;
    const uint32_t ref = NPUPROF_FW_REF_OF_KIND_(kind);
    const npuprof_token_ token = npuprof_fw_put_named_(ref, false, texts, values, npuprof_args_(&arg, 1));
    return id ? npuprof_fw_keep_note_(slot, token) : npuprof_fw_keep_anchor_(token);
}

static npuprof_result npuprof_fw_put_thread_(const char *name, const uint64_t *values)
{
    return npuprof_fw_put_note_(NPUPROF_CELL_KIND_THREAD_, "thread_name", values,
                                npuprof_str_("name", name ? name : ""),
                                NPUPROF_FW_KEY_CONTEXT_ + npuprof_fw_context_());
}

NPUPROF_API_ void npuprof_thread_name_(const char *name) { (void)npuprof_fw_put_thread_(name, NULL); }

NPUPROF_API_ npuprof_result npuprof_task(const char *name, uint32_t number)
{
    const uint64_t values[3] = { number, 0, 0 };
    return npuprof_fw_put_thread_(name, values);
}

/* What tells keys of metadata apart. 0: "npuprof.anchor". */
static uint32_t npuprof_fw_key_id_(const char *key)
{
    static const char anchor[] = "npuprof.anchor";
    uint32_t n = 0;
    while (NPUPROF_LOAD_(key + n) == anchor[n])
        if (!anchor[n++]) return 0;
    return npuprof_crc_add_(UINT32_MAX, key, (size_t)npuprof_fw_text_length_(key)) | NPUPROF_FW_KEY_METADATA_;
}

NPUPROF_API_ npuprof_result npuprof_metadata(const char *key, const char *value)
{
    if (!key) return NPUPROF_ERR_ARGUMENT;
    return npuprof_fw_put_note_(NPUPROF_CELL_KIND_METADATA_, key, NULL,
                                npuprof_str_("value", value ? value : ""),
                                NPUPROF_RING_ ? npuprof_fw_key_id_(key) : 1);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/layouts.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "record.h"

NPUPROF_API_ npuprof_token_ npuprof_next_(npuprof_token_ token, const npuprof_site_ *site)
{
    NPUPROF_MASKED_BEGIN_
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint64_t now = npuprof_fw_stamp_(c);
    npuprof_fw_end_cell_(c, token, now);
    token = NPUPROF_OPEN_(1) ? npuprof_fw_begin_cell_(c, site, now) : 0;
    NPUPROF_MASKED_END_
    return token;
}
NPUPROF_API_ bool npuprof_is_open_(npuprof_token_ token) { return npuprof_fw_open_cell_(npuprof_fw_arena_, token) != NULL; }
NPUPROF_API_ void npuprof_wait_(const npuprof_device *device)
{
    if (device->wait) (void)device->wait(device->user);
}

/* ---- Records with fields */

/* Why by hand: a loop that a compiler knows becomes a call of strlen or memcpy, which may not be there. */
static uint32_t npuprof_fw_text_length_(const char *text)
{
    uint32_t n = 0;
    while (NPUPROF_LOAD_(text + n)) n++;
    return n;
}
static void npuprof_fw_copy_bytes_(uint8_t *to, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++) NPUPROF_STORE_(to + i, ((const uint8_t *)from)[i]);
}

/* Why two lists: the library's own fields, then the user's. */
typedef struct npuprof_fw_fields_ { npuprof_args list[2]; } npuprof_fw_fields_;

/* The number of text bytes that are kept. UTF-8 sequences stay whole. */
static uint32_t npuprof_kept_(const char *text, bool *cut)
{
    uint32_t n = npuprof_fw_text_length_(text);
    *cut = n > 1024;
    if (*cut)
        for (n = 1024; n > 1020 && ((uint8_t)text[n] & 0xC0) == 0x80;) n--;
    return n;
}
static bool npuprof_is_text_(uint32_t type) { return type >= NPUPROF_ARG_STR && type < NPUPROF_FIELD_VALUE_; }

/* Takes the cells of a record, *at, and the time. While its ref is 0, the end of the first says how many they are. */
static NPUPROF_NOINLINE_ uint64_t npuprof_fw_take_cells_(npuprof_compact_header_ *c, uint32_t count, uint32_t ref, uint32_t *at)
{
    const bool note = (ref & 2) && ref >> 8 >= NPUPROF_CELL_KIND_THREAD_;
    NPUPROF_MASKED_BEGIN_
    const uint64_t now = npuprof_fw_stamp_(c);
    *at = npuprof_fw_reserve_cells_(c, count, note ? &c->lost_notes : &c->lost);
    if (*at != NPUPROF_FW_NO_CELL_) NPUPROF_STORE_(&npuprof_fw_cells_(c)[*at].end, count);
    NPUPROF_MASKED_END_
    return now;
}
static npuprof_token_ npuprof_fw_put_record_(uint32_t ref, bool span, const npuprof_fw_fields_ *fields)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_token_ token = 0;
    uint32_t count = 1;
    bool cut;
    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < fields->list[l].count; i++) {
            const npuprof_arg *a = &fields->list[l].items[i];
            const uint32_t length = npuprof_is_text_(a->type) && a->value.s ? npuprof_kept_(a->value.s, &cut) : 0;
            count += 1 + (length > 8 ? (length + 7) / 16 : 0);
        }
    uint32_t at;
    const uint64_t now = npuprof_fw_take_cells_(c, count, ref, &at);
    if (at != NPUPROF_FW_NO_CELL_) {
        npuprof_cell_ *const head = npuprof_fw_cells_(c) + at, *field = head, *last = head;
        for (int l = 0; l < 2; l++)
            for (size_t i = 0; i < fields->list[l].count; i++) {
                const npuprof_arg *a = &fields->list[l].items[i];
                uint32_t type = a->type, length = 0;
                cut = false;
                field++;
                if (!npuprof_is_text_(type)) {
                    field->end = (uint32_t)a->value.u;
                    field->high.word = (uint32_t)(a->value.u >> 32);
                } else if (a->value.s) {
                    length = npuprof_kept_(a->value.s, &cut);
                    npuprof_fw_copy_bytes_((uint8_t *)&field->end, a->value.s, (size_t)length);
                } else {
                    type = NPUPROF_ARG_STR_NULL_;
                }
                if (cut && type == NPUPROF_ARG_STR) type = NPUPROF_ARG_STR_CUT_;
                if (last == head) ref |= 1;
                else last->start |= NPUPROF_FIELD_MORE_;
                field->ref = (uint32_t)(uintptr_t)a->key;
                field->start = type | length << 8;
                last = field;
                field += length > 8 ? (length + 7) / 16 : 0;
            }
        head->start = (uint32_t)now;
        head->high.half[0] = npuprof_fw_high_half_(now);
        head->high.half[1] = span ? NPUPROF_CELL_OPEN_ : 0;
        NPUPROF_SIGNAL_FENCE_();
        NPUPROF_MASKED_BEGIN_                                 /* Why: on an 8-bit machine that is four stores */
        NPUPROF_STORE_(&head->ref, ref);
        NPUPROF_MASKED_END_
        token = at + 1;
    }
    return token;
}
#define NPUPROF_FW_REF_OF_KIND_(kind) ((uint32_t)(kind) << 8 | 2)

/* A record whose name, category and track came at run time, each NULL if there is none. */
static npuprof_token_ npuprof_fw_put_named_(uint32_t ref, bool span, const char *const *texts, const uint64_t *values, npuprof_args args)
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
NPUPROF_API_ npuprof_token_ npuprof_begin_named_(uint32_t kind, const char *category, const char *name, npuprof_args args)
{
    const char *const texts[3] = { name, category, NULL };
    return npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(kind), true, texts, NULL, args);
}

/* While such a span is open, its end is the token of the one before it, beside it the PROF_BEGINs skipped before it. */
NPUPROF_API_ void npuprof_begin_by_hand_(const char *category, const char *name)
{
    npuprof_fw_by_hand_ *h = &npuprof_fw_by_hand_of_[npuprof_fw_context_()];
    const npuprof_args none = { NULL, 0 };
    const npuprof_token_ token = NPUPROF_OPEN_(1) ? npuprof_begin_named_(NPUPROF_KIND_SPAN, category, name, none) : 0;
    npuprof_cell_ *cell = npuprof_fw_open_cell_(npuprof_fw_arena_, token);
    if (cell) {
        cell->end = h->top;
        cell->high.half[1] = NPUPROF_CELL_OPEN_ | (h->skipped & 0x7FFF);
        h->top = token;
        h->skipped = 0;
    } else {
        h->skipped++;
    }
}
NPUPROF_API_ void npuprof_end_by_hand_(void)
{
    npuprof_fw_by_hand_ *h = &npuprof_fw_by_hand_of_[npuprof_fw_context_()];
    const npuprof_cell_ *cell = npuprof_fw_open_cell_(npuprof_fw_arena_, h->top);
    if (h->skipped) {
        h->skipped--;
    } else if (cell) {
        const npuprof_token_ token = h->top;
        h->top = cell->end;
        h->skipped = cell->high.half[1] & 0x7FFF;
        npuprof_close_(token);
    }
}

NPUPROF_API_ void npuprof_event_args_now_(const npuprof_site_ *site, npuprof_args args)
{
    (void)npuprof_fw_put_named_((uint32_t)(uintptr_t)site, false, NULL, NULL, args);
}
NPUPROF_API_ void npuprof_event_now_(const npuprof_site_ *site, uint64_t value)
{
    const npuprof_arg own = { NULL, NPUPROF_FIELD_VALUE_, { (int64_t)value } };
    npuprof_event_args_now_(site, npuprof_args_(&own, 1));
}
static void npuprof_record_named_event_(uint32_t kind, const char *name, const char *category, const char *track, uint64_t first, uint64_t second,
                                 uint64_t third, npuprof_args args)
{
    const char *const texts[3] = { name, category, track };
    const uint64_t values[3] = { first, second, third };
    (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(kind), false, texts, values, args);
}
static void npuprof_set_up_(void *memory, size_t bytes);
static bool npuprof_is_ready_(void)
{
#if NPUPROF_ARENA_BYTES
    if (!npuprof_fw_arena_->cells) npuprof_set_up_(&npuprof_static_arena_, NPUPROF_ARENA_BYTES);
    return true;
#else
    return npuprof_fw_arena_->cells != 0;
#endif
}

NPUPROF_API_ void npuprof_async_begin(const char *category, const char *name, uint64_t id)
{
    const npuprof_args none = { NULL, 0 };
    if (NPUPROF_OPEN_(1)) npuprof_record_named_event_(NPUPROF_KIND_ASYNC_BEGIN, name ? name : "", category, NULL, id, 0, 0, none);
}
NPUPROF_API_ void npuprof_async_end(uint64_t id)
{
    const npuprof_args none = { NULL, 0 };
    if (npuprof_fw_arena_->cells) npuprof_record_named_event_(NPUPROF_KIND_ASYNC_END, NULL, NULL, NULL, id, 0, 0, none);
}
NPUPROF_API_ void npuprof_span(const char *track, const char *category, const char *name, int64_t start_ns, int64_t end_ns, npuprof_args args)
{
    if (NPUPROF_OPEN_(1))
        npuprof_record_named_event_(NPUPROF_KIND_FINISHED, name ? name : "", category, track ? track : "", (uint64_t)start_ns, (uint64_t)end_ns, 0, args);
}
/* What PROF_ALLOC and PROF_FREE count, for each device. */
typedef struct npuprof_record_pool_ { const npuprof_device *device; bool taken; uint64_t used, allocated; } npuprof_record_pool_;
static npuprof_record_pool_ *npuprof_record_find_pool_(const npuprof_device *device)
{
    static npuprof_record_pool_ pools[4], none;
    for (npuprof_record_pool_ *pool = pools; pool < pools + 4; pool++) {
        if (pool->taken && pool->device != device) continue;
        pool->taken = true;
        pool->device = device;
        return pool;
    }
    return &none;
}
static void npuprof_record_memory_event_(const npuprof_device *device, const npuprof_record_pool_ *pool, uint64_t change, const char *tag)
{
    const npuprof_args none = { NULL, 0 };
    if (NPUPROF_OPEN_(1))
        npuprof_record_named_event_(NPUPROF_KIND_MEMORY, tag ? tag : "", device && device->name ? device->name : "host", NULL, pool->used, pool->allocated,
                             change, none);
}
NPUPROF_API_ void npuprof_memory_(const npuprof_device *device, uint64_t used_bytes, uint64_t allocated_bytes, const char *tag)
{
    npuprof_record_pool_ *const pool = npuprof_record_find_pool_(device);
    pool->used = used_bytes;
    pool->allocated = allocated_bytes;
    npuprof_record_memory_event_(device, pool, 0, tag);
}
NPUPROF_API_ void npuprof_memory_change_(const npuprof_device *device, bool is_free, uint64_t bytes, const char *tag)
{
    npuprof_record_pool_ *const pool = npuprof_record_find_pool_(device);
    pool->used = !is_free ? pool->used + bytes : pool->used > bytes ? pool->used - bytes : 0;
    if (pool->allocated < pool->used) pool->allocated = pool->used;
    npuprof_record_memory_event_(device, pool, bytes << 2 | (is_free ? 2 : 1), tag);
}
/* A note's text is an argument.
   Why a name for every thread's note, too: the JSON writer then needs to know nothing of notes. */
static npuprof_result npuprof_fw_put_note_(uint32_t kind, const char *name, const char *key, const char *text)
{
    const char *const texts[3] = { name, NULL, NULL };
    const npuprof_arg arg = npuprof_str_(key, text ? text : "");
    if (!npuprof_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    const npuprof_args args = npuprof_args_(&arg, 1);
    return npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(kind), false, texts, NULL, args) == NPUPROF_FW_NO_CELL_
               ? NPUPROF_ERR_TABLE_FULL : NPUPROF_OK;
}

NPUPROF_API_ void npuprof_thread_name_(const char *name)
{
    (void)npuprof_fw_put_note_(NPUPROF_CELL_KIND_THREAD_, "thread_name", "name", name);
}

NPUPROF_API_ npuprof_result npuprof_metadata(const char *key, const char *value)
{
    return key ? npuprof_fw_put_note_(NPUPROF_CELL_KIND_METADATA_, key, "value", value) : NPUPROF_ERR_ARGUMENT;
}

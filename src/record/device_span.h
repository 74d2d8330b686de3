#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../clock/host.h"
#include "enter.h"
#include "args.h"
#include "span.h"
#include "event.h"

/* The spans of devices. Two ways: npuprof_device_span_() looks its texts up each time. For
   npuprof_device_record_() the caller keeps an npuprof_device_texts_, in which it finds them again.
   Words: those of span.h.
   This part does not know how a device is read, nor what is stored of it (device.h). */

/* The units of a device span behind its first one. Returns how many. */
static size_t npuprof_record_device_units_(npuprof_unit_ extra[3], const npuprof_device_event_ *e)
{
    const npuprof_link_ *const link = e->link;
    const uint64_t pe = e->pe & 0xFFFFu, epoch = e->epoch & 0xFFFFu, flags = e->flags & 15u;
    const uint64_t payload = flags << 40 | epoch << 24 | pe << 8 | e->device;
    extra[0].w0 = payload << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_DEVICE_;
    extra[0].w1 = e->end;
    if (!link || !link->ticks) return 1;
    extra[1].w0 = link->position << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_LINK_;
    extra[1].w1 = link->ticks;
    extra[2].w0 = link->root_position << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_LINK_ROOT_;
    extra[2].w1 = (uint64_t)link->warm_up << 32 | link->slot;
    return 3;
}

NPUPROF_API_ void npuprof_device_span_(const npuprof_device_event_ *e, npuprof_args args)
{
    npuprof_record_new_ r = npuprof_record_of_(e->start, NULL, args);
    npuprof_unit_ extra[3];
    r.extra = extra;
    r.extra_count = npuprof_record_device_units_(extra, e);
    npuprof_record_named_event_(NPUPROF_KIND_DEVICE, e->category, e->name, &r);
}

/* The number of the call site of a name that stays, or of one that comes at run time: often that is the one
   before. 0: it is not to be recorded. */
static uint32_t npuprof_record_device_name_(npuprof_device_texts_ *texts, bool stays,
                                            const npuprof_device_event_ *e)
{
    const char *name = e->name;
    size_t at = ((uintptr_t)name / 8 ^ (uintptr_t)name / 512) % NPUPROF_DEVICE_NAMES_;
    if (!stays) at = NPUPROF_DEVICE_NAMES_;
    if (!stays && strcmp(texts->last, name) == 0) name = texts->last;
    if (texts->name[at] == name && texts->category[at] == e->category) return texts->id[at];
    const uint32_t id = npuprof_record_resolve_name_(NPUPROF_KIND_DEVICE, e->category, name);
    const size_t bytes = stays ? 0 : strlen(name) + 1;
    if (!id || bytes > sizeof texts->last) return id;
    if (!stays) name = (const char *)memmove(texts->last, name, bytes);
    texts->name[at] = name;
    texts->category[at] = e->category;
    texts->id[at] = id;
    return id;
}

/* Finds the words of integer arguments, texts->word. Returns how many arguments are to be recorded: all, or
   none if the table is full, which is counted. */
static size_t npuprof_record_keep_keys_(npuprof_device_texts_ *texts, npuprof_args args)
{
    for (size_t i = 0; i < args.count; i++) {
        const char *const key = args.items[i].key;
        if (NPUPROF_LIKELY_(texts->key[i] == key)) continue;
        texts->word[i] = npuprof_record_key_word_(NULL, i, key, texts->generation);
        texts->key[i] = texts->word[i] ? key : NULL;
        if (texts->word[i]) continue;
        npuprof_count_lost_(NPUPROF_LOST_ARGUMENTS, args.count);
        return 0;
    }
    return args.count;
}

/* When a record is written. Why not the clock for each: that read costs as much as the rest. What follows at
   once in the same slot, up to 16 records, has the same stamp. */
static uint64_t npuprof_record_shared_stamp_(npuprof_device_texts_ *texts, const npuprof_slot_ *slot)
{
    if (!texts->stamp_left || texts->behind != slot->cursor) {
        texts->stamp = npuprof_clock_();
        texts->stamp_left = 16;
    }
    texts->stamp_left--;
    return texts->stamp;
}

/* Writes a device record whose texts are known. */
static void npuprof_record_put_device_(npuprof_device_texts_ *texts, npuprof_slot_ *slot, uint32_t id,
                                       const npuprof_device_event_ *e, npuprof_args args)
{
    npuprof_unit_ extra[3];
    const size_t count = npuprof_record_device_units_(extra, e);
    const uint64_t now = npuprof_record_shared_stamp_(texts, slot);
    npuprof_unit_ *const u = npuprof_record_reserve_(slot, 1 + count + args.count, now);
    if (!u) {
        npuprof_record_count_full_(slot);
        return;
    }
    npuprof_unit_ *at = u + 1;
    for (size_t i = 0; i < count; i++) *at++ = extra[i];
    for (size_t i = 0; i < args.count; i++, at++) {
        at->w0 = texts->word[i] | (uint64_t)args.items[i].type << NPUPROF_ID_BITS_;
        at->w1 = args.items[i].value.u;
    }
    npuprof_record_publish_(u, at, now << NPUPROF_ID_BITS_ | id, e->start);
    slot->cursor = at;
    texts->behind = at;
}

NPUPROF_API_ void npuprof_device_record_(npuprof_device_texts_ *texts, bool keeps_name,
                                         const npuprof_device_event_ *e, npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (!slot) {
        (void)npuprof_record_count_no_context_();
        return;
    }
    const uint32_t generation = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_generation_);
    if (texts->generation != generation) memset(texts, 0, sizeof *texts);
    texts->generation = generation;
    const uint32_t id = npuprof_record_device_name_(texts, keeps_name, e);
    args.count = id ? npuprof_record_keep_keys_(texts, args) : 0;
    if (id) npuprof_record_put_device_(texts, slot, id, e, args);
    npuprof_record_leave_(slot);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../clock/host.h"
#include "../arena/slots.h"
#include "enter.h"
#include "args.h"

#include <string.h>

/* Writes records into a slot, and pushes and ends its open spans: all on the slow path, and what both paths
   share. The slot is busy, so its plain words are the caller's. The words of a record, in this order:
     extra units and arguments   plain
     w1 of the first unit        relaxed
     w0 of the first unit        with release: it makes all of this a record. So a process that is killed
                                 leaves a whole record or none
     w1 of a span                once more when it ends, with release
   This part does not know which macro calls it. */

/* Space for so many units at the cursor, in a chunk that can hold a record that starts now. NULL: the arena
   is full, which is not counted. */
static inline npuprof_unit_ *npuprof_record_reserve_(npuprof_slot_ *slot, size_t units, uint64_t now)
{
    const bool in_reach = (slot->deadline - now) >> NPUPROF_START_BITS_ == 0;
    if (NPUPROF_LIKELY_((size_t)(slot->end - slot->cursor) >= units && in_reach)) return slot->cursor;
    /* The open spans move along, two units each. */
    if (units + 2 * (size_t)(slot->top - slot->open) > npuprof_s_.units) return NULL;
    npuprof_unit_ *u = npuprof_slot_begin_chunk_(slot, now);
    if (NPUPROF_LOAD_ACQUIRE_(&npuprof_record_hooks_.begins)) npuprof_record_hooks_.moved();
    return u && (size_t)(slot->end - u) >= units ? u : NULL;
}

/* Writes one record: the first unit, extra units, arguments. NULL: it did not fit, which is counted.
   Arguments that do not fit are dropped, which is counted apart, and the record is kept. */
static npuprof_unit_ *npuprof_record_emit_(npuprof_slot_ *slot, uint32_t id, uint64_t now, uint64_t w1,
                                           const npuprof_unit_ *extra, size_t extra_count,
                                           npuprof_keys_ *keys, npuprof_args args)
{
    size_t arg_units = args.count ? npuprof_record_count_arg_units_(args) : 0;
    npuprof_unit_ *u = npuprof_record_reserve_(slot, 1 + extra_count + arg_units, now);
    if (!u && arg_units) {
        u = npuprof_record_reserve_(slot, 1 + extra_count, now);
        if (u) npuprof_count_lost_(NPUPROF_LOST_ARGUMENTS, args.count);
        arg_units = 0;
    }
    if (!u) {
        npuprof_record_count_full_(slot);
        return NULL;
    }
    if (extra_count) memcpy(u + 1, extra, extra_count * sizeof *extra);
    if (arg_units && !npuprof_record_write_args_(u + 1 + extra_count, keys, args)) {
        memset(u + 1 + extra_count, 0, arg_units * sizeof *u);
        npuprof_count_lost_(NPUPROF_LOST_ARGUMENTS, args.count);
        arg_units = 0;
    }
    NPUPROF_STORE_(&u->w1, w1);
    NPUPROF_STORE_RELEASE_(&u->w0, now << NPUPROF_ID_BITS_ | id);
    slot->cursor = u + 1 + extra_count + arg_units;
    return u;
}

/* ---- Open spans */

/* Pushes a span that was written at u. Returns its token.
   Why a token and no address: a goto past a scope leaves garbage in it, which must not end another span. */
static inline npuprof_token_ npuprof_record_push_span_(npuprof_slot_ *slot, npuprof_unit_ *u)
{
    npuprof_token_ *const top = slot->top;
    const npuprof_token_ token = (npuprof_token_)((uintptr_t)u - slot->token_zero);
    top[1] = NPUPROF_CLOCK_IS_FAST_() ? token : token | NPUPROF_TOKEN_SLOW_;
    slot->top = top + 1;
    return token;
}

/* Writes the first unit of a span at u and pushes the span. For where the clock is known to be fast. */
static inline npuprof_token_ npuprof_record_put_span_(npuprof_slot_ *slot, npuprof_unit_ *u, uint64_t w0)
{
    NPUPROF_STORE_(&u->w1, NPUPROF_END_OPEN_);
    NPUPROF_STORE_RELEASE_(&u->w0, w0);
    const npuprof_token_ token = (npuprof_token_)((uintptr_t)u - slot->token_zero);
    slot->top[1] = token;
    /* Why the fence: compilers then add in memory, one instruction less. */
    NPUPROF_SIGNAL_FENCE_();
    slot->top++;
    return token;
}

/* Begins a span. 0: it did not fit, which is counted. */
static NPUPROF_NOINLINE_ npuprof_token_ npuprof_record_begin_span_args_(npuprof_slot_ *slot, uint32_t id,
                                                                        uint64_t now, npuprof_keys_ *keys,
                                                                        npuprof_args args)
{
    npuprof_unit_ *u = npuprof_record_emit_(slot, id, now, NPUPROF_END_OPEN_, NULL, 0, keys, args);
    return u ? npuprof_record_push_span_(slot, u) : 0;
}

/* The same without arguments. */
static inline npuprof_token_ npuprof_record_begin_span_(npuprof_slot_ *slot, uint32_t id, uint64_t now)
{
    npuprof_unit_ *const u = npuprof_record_reserve_(slot, 1, now);
    if (!u) {
        npuprof_record_count_full_(slot);
        return 0;
    }
    NPUPROF_STORE_(&u->w1, NPUPROF_END_OPEN_);
    NPUPROF_STORE_RELEASE_(&u->w0, now << NPUPROF_ID_BITS_ | id);
    slot->cursor = u + 1;
    return npuprof_record_push_span_(slot, u);
}

/* flags: 0 or NPUPROF_END_CUT_. */
static inline void npuprof_record_end_span_(npuprof_unit_ *u, uint64_t now, uint64_t flags)
{
    NPUPROF_STORE_RELEASE_(&u->w1, (now & ~NPUPROF_END_CUT_) | flags);
}

/* Counts a record for which there is no slot. */
NPUPROF_COLD_ static npuprof_token_ npuprof_record_count_no_context_(void)
{
    npuprof_count_lost_(NPUPROF_LOST_CONTEXT, 1);
    return 0;
}

static NPUPROF_SLOW_ npuprof_token_ npuprof_record_begin_slow_(npuprof_site_ *site)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return npuprof_record_count_no_context_();
    npuprof_token_ token = 0;
    if (npuprof_record_is_resolved_(site))
        token = npuprof_record_begin_span_(slot, (uint32_t)NPUPROF_LOAD_(&site->id), npuprof_clock_());
    npuprof_record_leave_(slot);
    return token;
}

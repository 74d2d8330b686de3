#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../clock/host.h"
#include "../arena/slots.h"
#include "enter.h"
#include "args.h"

/* Room for that many units at the cursor, with a base that reaches now. NULL: the arena is full; not counted. */
static inline npuprof_unit_ *npuprof_record_reserve_(npuprof_slot_ *slot, size_t units, uint64_t now)
{
    if (NPUPROF_LIKELY_((size_t)(slot->end - slot->cursor) >= units && (slot->deadline - now) >> NPUPROF_START_BITS_ == 0))
        return slot->cursor;
    /* The open spans must move along, two units each. */
    if (units + 2 * (size_t)(slot->top - slot->open) > npuprof_s_.units) return NULL;
    npuprof_unit_ *u = npuprof_slot_begin_chunk_(slot, now);
    return u && (size_t)(slot->end - u) >= units ? u : NULL;
}

/* Writes one record: the head, extra units, arguments. Head last, so that a kill leaves a whole record or none.
   False: lost and counted. Arguments that fit nowhere are dropped, counted apart, and the record is kept. */
static npuprof_unit_ *npuprof_record_emit_(npuprof_slot_ *slot, uint32_t id, uint64_t now, uint64_t w1, const npuprof_unit_ *extra,
                                    size_t extra_count, npuprof_keys_ *keys, npuprof_args args)
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

/* Pushes a span that was written at u.
   Why a token and no address: a goto past a scope leaves garbage in it; garbage must not close somebody else's span. */
static inline npuprof_token_ npuprof_record_push_span_(npuprof_slot_ *slot, npuprof_unit_ *u)
{
    npuprof_token_ *const top = slot->top;
    const npuprof_token_ token = (npuprof_token_)((uintptr_t)u - slot->token_zero);
    top[1] = NPUPROF_CLOCK_IS_FAST_() ? token : token | NPUPROF_TOKEN_SLOW_;
    slot->top = top + 1;
    return token;
}

/* The same where the clock is known to be quick. Writes the two words last: a kill leaves a whole record or none. */
static inline npuprof_token_ npuprof_record_put_span_(npuprof_slot_ *slot, npuprof_unit_ *u, uint64_t w0)
{
    NPUPROF_STORE_(&u->w1, NPUPROF_END_OPEN_);
    NPUPROF_STORE_RELEASE_(&u->w0, w0);
    const npuprof_token_ token = (npuprof_token_)((uintptr_t)u - slot->token_zero);
    slot->top[1] = token;
    /* Why the fence: compilers then add in memory, an instruction less. */
    NPUPROF_SIGNAL_FENCE_();
    slot->top++;
    return token;
}

static NPUPROF_NOINLINE_ npuprof_token_ npuprof_record_begin_span_args_(npuprof_slot_ *slot, uint32_t id, uint64_t now, npuprof_keys_ *keys,
                                                                 npuprof_args args)
{
    npuprof_unit_ *u = npuprof_record_emit_(slot, id, now, NPUPROF_END_OPEN_, NULL, 0, keys, args);
    return u ? npuprof_record_push_span_(slot, u) : 0;
}
static inline npuprof_token_ npuprof_record_begin_span_(npuprof_slot_ *slot, uint32_t id, uint64_t now)
{
    npuprof_unit_ *u = slot->cursor;
    if (NPUPROF_UNLIKELY_(u == slot->end || now > slot->deadline)) {
        const npuprof_args none = { NULL, 0 };
        return npuprof_record_begin_span_args_(slot, id, now, NULL, none);
    }
    NPUPROF_STORE_(&u->w1, NPUPROF_END_OPEN_);
    NPUPROF_STORE_RELEASE_(&u->w0, now << NPUPROF_ID_BITS_ | id);
    slot->cursor = u + 1;
    return npuprof_record_push_span_(slot, u);
}
static inline void npuprof_record_end_span_(npuprof_unit_ *u, uint64_t now, uint64_t flags)
{
    NPUPROF_STORE_RELEASE_(&u->w1, (now & ~NPUPROF_END_CUT_) | flags);
}
static npuprof_token_ npuprof_record_count_no_context_(void)
{
    npuprof_count_lost_(NPUPROF_LOST_CONTEXT, 1);
    return 0;
}

static NPUPROF_NOINLINE_ npuprof_token_ npuprof_record_begin_slow_(npuprof_site_ *site)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return npuprof_record_count_no_context_();
    npuprof_token_ token = 0;
    if (npuprof_record_is_resolved_(site)) token = npuprof_record_begin_span_(slot, (uint32_t)NPUPROF_LOAD_(&site->id), npuprof_clock_());
    npuprof_record_leave_(slot);
    return token;
}

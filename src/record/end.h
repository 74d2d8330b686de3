#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../clock/host.h"
#include "../arena/slots.h"
#include "enter.h"
#include "span.h"
#include "begin.h"
#include "boundary.h"

/* How spans end: by their token, or by PROF_END. A slot's open spans are a stack. A span that is ended
   while others lie above it ends those, too, as cut: a longjmp left them. If their own ends come all the
   same, as those of coroutines do, they end there. PROF_BEGIN and PROF_END have no token. by_hand_bits
   remembers for the newest 64 of them whether they were recorded, so that PROF_END ends the right one.
   Words: of the slot, plain, while it is busy; w1 of the span, with release. */

/* The open span of that token, or NULL. */
static npuprof_token_ *npuprof_record_find_open_(npuprof_slot_ *slot, npuprof_token_ token)
{
    for (npuprof_token_ *e = slot->top; e > slot->open; e--)
        if ((*e & ~(npuprof_token_)NPUPROF_TOKEN_FLAGS_) == token) return e;
    return NULL;
}

/* Ends a span that was cut before its own end came, if its chunk is still the slot's: of a coroutine that
   went on in between, or one that npuprof_record_sweep_() took for left. Garbage is no place of a span that
   was cut in the last 2^44 ticks. */
static inline void npuprof_record_end_cut_(const npuprof_slot_ *slot, npuprof_token_ token, uint64_t now)
{
    npuprof_unit_ *const units = npuprof_chunk_units_(npuprof_slot_current_chunk_(slot)),
        *const u = (npuprof_unit_ *)(slot->token_zero + token);
    if (u >= units && u < slot->cursor && !(token & NPUPROF_TOKEN_FLAGS_) &&
        (now - (u->w1 ^ NPUPROF_END_CUT_)) >> NPUPROF_START_BITS_ == 0)
        NPUPROF_STORE_RELEASE_(&u->w1, NPUPROF_END_STAMP_(now));
}

/* Ends the span of a token that is not on top of this slot. It may lie below other spans, or in the context
   that a signal handler left by longjmp; or the token is garbage, and nothing happens.
   Why the last one that has it: a span that was moved keeps the token of a place where another chunk may be
   by now, and a handler's span that was moved, too, may have begun at the same place. */
static NPUPROF_SLOW_ void npuprof_record_unwind_to_(npuprof_slot_ *slot, npuprof_token_ token,
                                                    uint64_t now)
{
    npuprof_slot_ *of = NULL;
    npuprof_token_ *e = NULL;
    for (npuprof_slot_ *at = npuprof_slot_mine_(); at; at = at != slot ? at->nested : NULL) {
        npuprof_token_ *const its = npuprof_record_find_open_(at, token);
        if (its) of = at, e = its;
    }
    if (!of) {
        npuprof_record_end_cut_(slot, token, now);
        return;
    }
    npuprof_record_unwind_(of, e, now);
    npuprof_record_pop_span_(of, now, 0);
    /* Found in a context below the one in use: the contexts in between, busy or not, will not go on. */
    for (; of != slot; of = of->nested) {
        npuprof_record_unwind_(of->nested, of->nested->open, now);
        NPUPROF_STORE_(&of->busy, 0);
    }
}

/* Ends a span by its token, on top or not, with a stamp that may be shared. */
static inline void npuprof_record_close_at_(npuprof_slot_ *slot, npuprof_token_ token, uint64_t now)
{
    if (NPUPROF_LIKELY_(*slot->top == token)) npuprof_record_pop_span_(slot, now, 0);
    else npuprof_record_unwind_to_(slot, token, now);
}

static NPUPROF_SLOW_ void npuprof_record_close_slow_(npuprof_token_given_ given)
{
    const npuprof_token_ token = (npuprof_token_)given;
    if (npuprof_record_end_unrecorded_(token) || npuprof_slot_mine_() == &npuprof_slot_none_) return;
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (!slot) return;
    const uint64_t now = npuprof_clock_();
    const npuprof_record_boundary_ boundary = npuprof_record_look_at_end_(slot, token, now);
    npuprof_record_close_at_(slot, token, now);
    npuprof_record_leave_(slot);
    if (boundary.kind) npuprof_record_hooks_.ends(boundary.kind, boundary.ticks);
}

/* Ends a span that is not on top of the slot, which is busy, or one that has a flag there. */
static NPUPROF_NOINLINE_ void npuprof_record_close_other_(npuprof_slot_ *slot, npuprof_token_given_ given,
                                                          uint64_t now)
{
    const npuprof_token_ token = (npuprof_token_)given;
    if (NPUPROF_RECORD_SMALL_ || *slot->top != (token | NPUPROF_TOKEN_BOUNDARY_)) {
        npuprof_record_leave_(slot);
        npuprof_record_close_slow_(given);
        return;
    }
    const npuprof_record_boundary_ boundary = npuprof_record_look_at_end_(slot, token, now);
    npuprof_record_pop_span_(slot, now, 0);
    npuprof_record_leave_(slot);
    npuprof_record_hooks_.ends(boundary.kind, boundary.ticks);
}

/* Why the clock first: what follows does not belong to the span. */
NPUPROF_API_ void npuprof_close_(npuprof_token_given_ token)
{
    const uint64_t now = npuprof_clock_fast_();
    npuprof_slot_ *slot = npuprof_slot_mine_();
    if (NPUPROF_UNLIKELY_(npuprof_test_and_set_(&slot->busy))) {
        npuprof_record_close_slow_(token);
        return;
    }
    if (NPUPROF_UNLIKELY_(*slot->top != (npuprof_token_)token)) {
        npuprof_record_close_other_(slot, token, now);
        return;
    }
    npuprof_unit_ *const u = (npuprof_unit_ *)(slot->token_zero + token);
    NPUPROF_STORE_RELEASE_(&u->w1, NPUPROF_END_STAMP_(now));
    NPUPROF_SIGNAL_FENCE_();
    slot->top--;
    npuprof_record_leave_(slot);
}

NPUPROF_API_ bool npuprof_is_open_(npuprof_token_ token)
{
    for (npuprof_slot_ *at = npuprof_slot_mine_(); at; at = at->nested)
        if (npuprof_record_find_open_(at, token)) return true;
    return false;
}

static NPUPROF_SLOW_ npuprof_token_ npuprof_record_next_slow_(npuprof_token_given_ given,
                                                              npuprof_site_ *site)
{
    npuprof_token_ token = (npuprof_token_)given;
    const bool open = NPUPROF_OPEN_(1);
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return open ? npuprof_record_count_no_context_() : 0;
    const uint64_t now = npuprof_clock_();
    if (NPUPROF_LIKELY_(token != 0)) npuprof_record_close_at_(slot, token, now);
    token = 0;
    if (open && npuprof_record_is_resolved_(site))
        token = npuprof_record_begin_span_at_(slot, (uint32_t)NPUPROF_LOAD_(&site->id), now,
                                              NPUPROF_RECORD_HERE_(slot, NPUPROF_WAY_NEXT_));
    npuprof_record_leave_(slot);
    return token;
}

NPUPROF_API_ npuprof_token_ npuprof_next_(npuprof_token_given_ token, npuprof_site_ *site)
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    const uint32_t known = NPUPROF_LOAD_ACQUIRE_(&site->generation);
    /* While the gate is closed, no call site's generation is the fast one. */
    if (NPUPROF_UNLIKELY_(npuprof_differ_(known, &npuprof_arena_fast_) ||
                          npuprof_test_and_set_(&slot->busy)))
        return npuprof_record_next_slow_(token, site);
    npuprof_token_ *const top = slot->top;
    const uint64_t now = npuprof_clock_fast_();
    npuprof_unit_ *const u = slot->cursor;
    if (NPUPROF_UNLIKELY_(*top != (npuprof_token_)token || u == slot->end || now > slot->deadline)) {
        npuprof_record_leave_(slot);
        return npuprof_record_next_slow_(token, site);
    }
    const uintptr_t zero = slot->token_zero;
    NPUPROF_STORE_RELEASE_(&((npuprof_unit_ *)(zero + token))->w1, NPUPROF_END_STAMP_(now));
    const uint64_t w0 = now << NPUPROF_ID_BITS_ | NPUPROF_LOAD_PLAIN_(&site->id);
    npuprof_record_publish_(u, u + 1, w0, NPUPROF_END_OPEN_);
    const npuprof_token_ next = (npuprof_token_)((uintptr_t)u - zero);
    *top = next;
    NPUPROF_SIGNAL_FENCE_();
    slot->cursor++;
    npuprof_record_leave_(slot);
    return next;
}

NPUPROF_API_ void npuprof_begin_by_hand_(npuprof_keys_ *keys, const char *category, const char *name)
{
    const bool open = NPUPROF_OPEN_(1), has_slot = npuprof_slot_mine_() != &npuprof_slot_none_;
    npuprof_slot_ *slot = open || has_slot ? npuprof_record_enter_() : NULL;
    if (!slot) {
        npuprof_slot_set_skipped_(npuprof_slot_skipped_() + 1);
        if (open) (void)npuprof_record_count_no_context_();
        return;
    }
    npuprof_token_ token = 0;
    if (open && slot->by_hand_count >= 64) {
        npuprof_count_lost_(NPUPROF_LOST_DEPTH, 1);
    } else if (open) {
        const uint32_t id = npuprof_record_named_id_(NULL, keys, category, name);
        if (id) token = npuprof_record_begin_span_args_(slot, id, NPUPROF_WAY_NAMED_, NULL, PROF_NO_ARGS);
        if (token) *slot->top |= NPUPROF_TOKEN_BY_HAND_;
    }
    slot->by_hand_count++;
    if (slot->by_hand_count <= 64) slot->by_hand_bits = slot->by_hand_bits << 1 | (token != 0);
    npuprof_record_leave_(slot);
}

NPUPROF_API_ void npuprof_end_by_hand_(void)
{
    if (npuprof_slot_mine_() == &npuprof_slot_none_) {
        const uint32_t skipped = npuprof_slot_skipped_();
        if (skipped) npuprof_slot_set_skipped_(skipped - 1);
        else if (NPUPROF_OPEN_(1)) npuprof_count_lost_(NPUPROF_LOST_ENDS, 1);
        return;
    }
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (!slot) return;
    if (slot->by_hand_count > 64) {
        slot->by_hand_count--;
    } else if (slot->by_hand_count) {
        const npuprof_token_ *e = slot->top;
        while (!(*e & NPUPROF_TOKEN_BY_HAND_)) e--;      /* open[0] has the flag, and no span's token */
        if (slot->by_hand_bits & 1)
            npuprof_record_unwind_to_(slot, *e & ~(npuprof_token_)NPUPROF_TOKEN_FLAGS_, npuprof_clock_());
        slot->by_hand_bits >>= 1;
        slot->by_hand_count--;
    } else if (NPUPROF_OPEN_(1)) {
        npuprof_count_lost_(NPUPROF_LOST_ENDS, 1);
    }
    npuprof_record_leave_(slot);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/hot.h"
#include "../arena/state.h"
#include "../arena/chunks.h"
#include "../arena/thread.h"
#include "../arena/table.h"
#include "enter.h"
#include "begin.h"

/* Boundaries: the begins and ends of PROF_RECORD and PROF_INFERENCE, and the ends of watched spans. There
   capture control looks at its conditions (control/capture.h), by the functions in npuprof_record_hooks_.

   How an end comes here without a cost for other spans: a boundary that was recorded has a flag in its place
   among the open spans, so that its end takes the slow path (arena/state.h). One that was not recorded has a
   token that no span has: the flag alone, and its kind in bit 0. Without capture control there is neither.

   This part may not know what the conditions are. */

/* The span that is about to end, if capture control looks at it. */
typedef struct npuprof_record_boundary_ {
    uint32_t kind;                 /* NPUPROF_KIND_NONE: it does not */
    uint64_t ticks;                /* how long the span took */
} npuprof_record_boundary_;

/* Puts the flag on the span that was just begun. */
static npuprof_token_ npuprof_record_mark_boundary_(npuprof_token_ token)
{
    npuprof_slot_ *of = NULL;      /* the last one, as in npuprof_record_unwind_to_() */
    for (npuprof_slot_ *at = npuprof_slot_mine_(); at && token; at = at->nested)
        if ((*at->top & ~(npuprof_token_)NPUPROF_TOKEN_FLAGS_) == token) of = at;
    if (of) *of->top |= NPUPROF_TOKEN_BOUNDARY_;
    return token;
}

/* Begins a boundary while there is capture control; begins: that of npuprof_record_hooks_. */
static NPUPROF_NOINLINE_ npuprof_token_
npuprof_record_begin_armed_(uint32_t (*begins)(uint32_t), npuprof_site_ *site, npuprof_keys_ *keys,
                            const char *category, const char *name)
{
    const uint32_t kind = keys->kind, as = begins(kind);
    const npuprof_token_ unrecorded = NPUPROF_TOKEN_BOUNDARY_ | (kind == NPUPROF_KIND_RECORD);
    if (!as) return unrecorded;
    const npuprof_token_ token = as != kind ? npuprof_record_begin_kind_(as, category, name, PROF_NO_ARGS)
                                 : site     ? npuprof_begin_constant_(site, category, name)
                                            : npuprof_begin_text_(name, category, keys);
    return token ? npuprof_record_mark_boundary_(token) : unrecorded;
}

NPUPROF_API_ npuprof_token_ npuprof_begin_boundary_(npuprof_site_ *site, npuprof_keys_ *keys,
                                                    const char *category, const char *name)
{
    uint32_t (*const begins)(uint32_t) = NPUPROF_RECORD_BEGINS_();
    if (NPUPROF_UNLIKELY_(begins != NULL))
        return npuprof_record_begin_armed_(begins, site, keys, category, name);
    return site ? npuprof_begin_constant_(site, category, name) : npuprof_begin_text_(name, category, keys);
}

/* The end of a boundary that was not recorded? Then that is all. A token that a goto left as garbage may be
   taken for one; it then counts as an inference. */
NPUPROF_COLD_ static bool npuprof_record_end_unrecorded_(npuprof_token_ token)
{
    const npuprof_token_ in_flags = token & NPUPROF_TOKEN_FLAGS_;
    if (token != in_flags || (token & ~(npuprof_token_)1) != NPUPROF_TOKEN_BOUNDARY_) return false;
    if (NPUPROF_RECORD_BEGINS_())
        npuprof_record_hooks_.ends(token & 1 ? NPUPROF_KIND_RECORD : NPUPROF_KIND_INFERENCE, UINT64_MAX);
    return true;
}

/* What capture control is to know of a span before it ends. */
static NPUPROF_NOINLINE_ npuprof_record_boundary_
npuprof_record_look_at_end_(const npuprof_slot_ *slot, npuprof_token_ token, uint64_t now)
{
    npuprof_record_boundary_ b = { NPUPROF_KIND_NONE, 0 };
    const npuprof_token_ top = *slot->top, flags = NPUPROF_TOKEN_FLAGS_;
    if ((top & ~flags) != token || !(top & NPUPROF_TOKEN_BOUNDARY_) || slot->top == slot->open) return b;
    const npuprof_unit_ *const u = npuprof_record_open_unit_(slot, slot->top);
    const uint64_t start = top & NPUPROF_TOKEN_MOVED_ ? u[1].w1 : npuprof_record_start_ticks_(slot, u->w0);
    const uint32_t number = (uint32_t)u->w0 & NPUPROF_ID_MASK_;
    b.kind = npuprof_table_site_at_(number)->head.a & NPUPROF_RECORD_KIND_;
    if (NPUPROF_RECORD_WATCHES_() && npuprof_record_is_watched_(number)) b.kind |= NPUPROF_RECORD_WATCHED_;
    b.ticks = now > start ? now - start : 0;
    return b;
}

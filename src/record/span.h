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
     w0 of the unit behind       relaxed: 0 (arena/chunks.h, R13)
     w1 of the first unit        relaxed
     w0 of the first unit        with release: it makes all of this a record. So a process that is killed
                                 leaves a whole record or none
     w1 of a span                once more when it ends, with release
   This part does not know which macro calls it. */

/* ---- Spans that were left behind

   longjmp() over a scope, or a child of vfork() that ends in one, leaves it open, and nothing ends it if no
   span is around it. When half of the place for open spans is full, those that lie deeper in the stack than
   who begins a span now are over. How deep a span lies is noted behind the first eighth of that place, at
   the latest behind two thirds: there all begins take the slow path (the slot's `end` says where). The notes
   are in the half of slot.open that tokens do not reach; the first word of it is up to which open span there
   are none.
   Why not by the depth alone: a thread may have several stacks, of coroutines or signal handlers, and what
   lies on another one is not over. So who begins must be on the stack that the thread was born with. Else a
   long row must end in the frame and call site that now begin again. Why no short one: compilers make a few
   copies of a recursive function in one frame.
   Of two scopes of one frame by turns only the outer one ends the other by such a row: that one may be within
   it. The outer one is the lower one; what lies below both may be around them. */

/* In which function of this library a note was taken: in each, the frame lies elsewhere below the user's. So
   notes compare exactly only if they are of one way and one call site; those of _SLOW_ also of two. */
enum {
    NPUPROF_WAY_SLOW_ = 1, NPUPROF_WAY_NEXT_, NPUPROF_WAY_NUMBER_, NPUPROF_WAY_ARGS_, NPUPROF_WAY_NAMED_,
    NPUPROF_WAY_KIND_, NPUPROF_WAY_DEVICE_, NPUPROF_WAYS_ = 7
};
/* What frames of several ways may differ in, and the widest row, in units of 2 bytes. */
enum { NPUPROF_RECORD_NEAR_ = 1024 / 2, NPUPROF_RECORD_FAR_ = (256 << 10) / 2 };
enum { NPUPROF_RECORD_COPIES_ = 10 };       /* more of a function than a compiler makes in one frame */
#define NPUPROF_RECORD_HERE_(local, way) \
    ((uint32_t)((uintptr_t)NPUPROF_FRAME_(local) >> 1 & ~(uintptr_t)NPUPROF_WAYS_) | (way))

/* Where the depth in the stack of open span number `depth` is noted. */
static inline npuprof_token_ *npuprof_record_note_(npuprof_slot_ *slot, uint32_t depth)
{
    return &slot->open[npuprof_record_depth_() + 3 + depth];
}

/* Sets where the next record takes the slow path, behind so many units that are written now: before there can
   be more open spans than fit. On the fast path no depth is noted. NULL: the chunk has no space for the
   units. */
static inline npuprof_unit_ *npuprof_record_set_end_(npuprof_slot_ *slot, size_t units)
{
    npuprof_unit_ *const end = npuprof_chunk_units_(npuprof_slot_current_chunk_(slot)) + npuprof_arena_.units;
    const size_t room = (size_t)(end - slot->cursor);
    if (room < units) return NULL;
    const size_t depth = (size_t)(slot->top - slot->open), most = npuprof_record_depth_(), noted = most / 8;
    /* Why a third: then a chunk takes the slow path for this twice. A small one may more often. */
    const size_t unnoted = most < 128 ? noted : (npuprof_arena_.units + 2) / 3;
    const size_t free_units = depth >= noted ? 0 : unnoted - depth;
    npuprof_token_ *const none = npuprof_record_note_(slot, 0);
    if (free_units) *none = UINT32_MAX;
    else if (*none > depth) *none = (npuprof_token_)depth;
    slot->end = room - units < free_units ? end : slot->cursor + units + free_units;
    return slot->cursor;
}

/* Where an open span lies; e is its place in slot->open. Why not the one of arena/thread.h: that needs the
   chunk, which is seldom needed here. */
static inline npuprof_unit_ *npuprof_record_open_unit_(const npuprof_slot_ *slot, const npuprof_token_ *e)
{
    const npuprof_token_ flags = NPUPROF_TOKEN_FLAGS_;
    if (NPUPROF_LIKELY_(!(*e & NPUPROF_TOKEN_MOVED_)))
        return (npuprof_unit_ *)(slot->token_zero + (*e & ~flags));
    return npuprof_slot_open_unit_(slot, npuprof_slot_current_chunk_(slot), e);
}

/* The start of a span of the slot's current chunk, in ticks: the chunk holds what began up to `deadline`. */
static inline uint64_t npuprof_record_start_ticks_(const npuprof_slot_ *slot, uint64_t w0)
{
    const uint64_t mask = ((uint64_t)1 << NPUPROF_START_BITS_) - 1;
    return slot->deadline - ((slot->deadline - (w0 >> NPUPROF_ID_BITS_)) & mask);
}

static inline uint32_t npuprof_record_site_of_(npuprof_slot_ *slot, const npuprof_token_ *e)
{
    return (uint32_t)NPUPROF_LOAD_(&npuprof_record_open_unit_(slot, e)->w0) & NPUPROF_ID_MASK_;
}

/* Whether open span number `at` is of that site and began the same way. */
static inline bool npuprof_record_is_again_(npuprof_slot_ *slot, uint32_t at, uint32_t site, uint32_t here)
{
    return !((*npuprof_record_note_(slot, at) ^ here) & NPUPROF_WAYS_) &&
           npuprof_record_site_of_(slot, slot->open + at) == site;
}

/* How much deeper in the stack an open span lies than one of this site that begins at that frame; 0: it is in
   the same frame, or may be. Below 0: it is around it, as PROF_BEGIN's may be. */
static inline int32_t npuprof_record_deeper_(npuprof_slot_ *slot, uint32_t at, uint32_t site, uint32_t here)
{
    const uint32_t note = *npuprof_record_note_(slot, at), ways = NPUPROF_WAYS_;
    const int32_t deeper = (int32_t)((here & ~ways) - (note & ~ways)), slack = NPUPROF_RECORD_NEAR_;
    const bool are_exact = NPUPROF_FRAME_IS_EXACT_ && ((here | note) & ways) == NPUPROF_WAY_SLOW_;
    if (slot->open[at] & NPUPROF_TOKEN_BY_HAND_) return -1;
    if (deeper > slack || deeper < -slack || are_exact) return deeper;
    return npuprof_record_is_again_(slot, at, site, here) ? deeper : 0;
}

/* Whether nothing can be left behind: the newest open spans are in the frame that now begins another one, and
   then around it. That is how a deep recursion is, which shall pay no more for it. */
static inline bool npuprof_record_nests_(npuprof_slot_ *slot, uint32_t site, uint32_t here)
{
    const uint32_t none = *npuprof_record_note_(slot, 0), depth = (uint32_t)(slot->top - slot->open);
    for (uint32_t at = depth; depth - at < NPUPROF_RECORD_COPIES_; at--) {
        const int32_t deeper = at > none ? npuprof_record_deeper_(slot, at, site, here) : -1;
        if (deeper) return deeper < 0;
    }
    return false;
}

/* Ends the newest open span. flags: 0 or NPUPROF_END_CUT_. */
static inline void npuprof_record_pop_span_(npuprof_slot_ *slot, uint64_t now, uint64_t flags)
{
    npuprof_unit_ *const u = npuprof_record_open_unit_(slot, slot->top);
    NPUPROF_STORE_RELEASE_(&u->w1, NPUPROF_END_STAMP_(now) | flags);
    slot->top--;
}

/* Ends the open spans above `entry` as cut. */
NPUPROF_COLD_ static void npuprof_record_unwind_(npuprof_slot_ *slot, npuprof_token_ *entry, uint64_t now)
{
    if (slot->changes_to) (void)npuprof_slot_begin_chunk_(slot, now);      /* R14 */
    while (slot->top > entry) {
        if ((*slot->top & NPUPROF_TOKEN_BY_HAND_) && slot->by_hand_count) {
            slot->by_hand_bits >>= 1;
            slot->by_hand_count--;
        }
        npuprof_record_pop_span_(slot, now, NPUPROF_END_CUT_);
    }
}

/* Ends what was left behind, before a span of this site begins at that frame. */
NPUPROF_COLD_ static NPUPROF_NOINLINE_ void npuprof_record_sweep_(npuprof_slot_ *slot, uint32_t site,
                                                                  uint32_t here, uint64_t now)
{
    if (npuprof_record_nests_(slot, site, here)) return;
    const uint32_t none = *npuprof_record_note_(slot, 0), depth = (uint32_t)(slot->top - slot->open);
    const int32_t own = (int32_t)(npuprof_os_own_stack_(NPUPROF_FRAME_(none)) / 2);
    const uint32_t copies = NPUPROF_RECORD_COPIES_, needed = own ? copies : npuprof_record_depth_() / 4;
    /* Down to where all is over: by the frames; by the row of this site; by what of it lies above all other
       sites of the frame, `other` is the topmost of which. The row: the open span below it, and the topmost
       of its lowest ones side by side, which of a few may be copies of a function that still go on. */
    uint32_t over = depth, row = depth, top = depth, other = 0, below = depth, group = depth, count = 0;
    bool outermost = false;
    for (uint32_t at = depth; at; at--) {
        const bool noted = at > none;          /* else the sites alone say it */
        const int32_t deeper = noted ? npuprof_record_deeper_(slot, at, site, here) : 0;
        if (deeper < 0 || deeper > NPUPROF_RECORD_FAR_) break;
        if (deeper) {
            /* Another scope in this frame may be around the new one, and then so may be what lies below. */
            if (over == at && deeper < own) over = at - 1;
            continue;
        }
        const uint32_t its = npuprof_record_site_of_(slot, slot->open + at);
        const bool is_it = noted ? npuprof_record_is_again_(slot, at, site, here) : its == site;
        if (is_it || its == other) outermost = is_it;
        if (noted && !is_it && !other) other = its;
        if (!noted || !is_it) continue;
        if (below != at) group = at;
        below = at - 1;
        row = ++count >= copies ? below : group;
        if (depth - below < needed) row = depth;
        if (!other) top = row;
    }
    over = (uint32_t)npuprof_min_(over, outermost ? row : top);
    npuprof_record_unwind_(slot, slot->open + over, now);
}

/* Space for so many units at the cursor, in a chunk that can hold a record that starts now. NULL: the arena
   is full, which is not counted. */
static inline npuprof_unit_ *npuprof_record_reserve_(npuprof_slot_ *slot, size_t units, uint64_t now)
{
    const bool in_reach = (slot->deadline - now) >> NPUPROF_START_BITS_ == 0;
    if (NPUPROF_LIKELY_((size_t)(slot->end - slot->cursor) >= units && in_reach)) return slot->cursor;
    if (slot->cursor && in_reach && npuprof_record_set_end_(slot, units)) return slot->cursor;
    /* The open spans move along, two units each. */
    if (units + 2 * (size_t)(slot->top - slot->open) > npuprof_arena_.units) return NULL;
    npuprof_unit_ *const u = npuprof_slot_begin_chunk_(slot, now);
    if (!u) return NULL;
    npuprof_record_look_around_(slot, true);
    return npuprof_record_set_end_(slot, units);
}

/* A record to be written, beside its call site and its time. */
typedef struct npuprof_record_new_ {
    uint64_t w1;                       /* of the first unit */
    const npuprof_unit_ *extra;        /* units behind that, before the arguments */
    size_t extra_count;
    npuprof_keys_ *keys;               /* of the arguments; may be NULL */
    npuprof_args args;
} npuprof_record_new_;

static inline npuprof_record_new_ npuprof_record_of_(uint64_t w1, npuprof_keys_ *keys, npuprof_args args)
{
    npuprof_record_new_ r;
    r.w1 = w1;
    r.extra = NULL;
    r.extra_count = 0;
    r.keys = keys;
    r.args = args;
    return r;
}

/* Makes a record of the units from u up to `behind`: writes the first one. Nothing else stores the w0 that
   makes a record. R13 */
static inline void npuprof_record_publish_(npuprof_unit_ *u, npuprof_unit_ *behind, uint64_t w0, uint64_t w1)
{
    NPUPROF_STORE_(&behind->w0, 0);
    NPUPROF_STORE_(&u->w1, w1);
    NPUPROF_STORE_RELEASE_(&u->w0, w0);
}

/* Writes one record: the first unit, extra units, arguments. NULL: it did not fit, which is counted.
   Arguments that do not fit are dropped, which is counted apart, and the record is kept. */
static npuprof_unit_ *npuprof_record_emit_(npuprof_slot_ *slot, uint32_t id, uint64_t now,
                                           const npuprof_record_new_ *r)
{
    const size_t extra_count = r->extra_count;
    size_t arg_units = r->args.count ? npuprof_record_count_arg_units_(r->args) : 0;
    npuprof_unit_ *u = npuprof_record_reserve_(slot, 1 + extra_count + arg_units, now);
    if (!u && arg_units) {
        u = npuprof_record_reserve_(slot, 1 + extra_count, now);
        if (u) npuprof_count_lost_(NPUPROF_LOST_ARGUMENTS, r->args.count);
        arg_units = 0;
    }
    if (!u) {
        npuprof_record_count_full_(slot);
        return NULL;
    }
    for (size_t i = 0; i < extra_count; i++) u[1 + i] = r->extra[i];
    if (arg_units && !npuprof_record_write_args_(u + 1 + extra_count, r->keys, r->args)) {
        npuprof_count_lost_(NPUPROF_LOST_ARGUMENTS, r->args.count);
        arg_units = 0;
        /* Why: what is not needed must not be taken on the fast path, which notes no depth. */
        slot->end = u + 1 + extra_count;
    }
    npuprof_unit_ *const behind = u + 1 + extra_count + arg_units;
    npuprof_record_publish_(u, behind, now << NPUPROF_ID_BITS_ | id, r->w1);
    slot->cursor = behind;
    return u;
}

/* ---- Open spans */

/* Has the end of a watched span looked at. */
NPUPROF_COLD_ static NPUPROF_NOINLINE_ void npuprof_record_mark_watched_(npuprof_slot_ *slot,
                                                                         const npuprof_unit_ *u)
{
    if (npuprof_record_is_watched_((uint32_t)u->w0 & NPUPROF_ID_MASK_)) *slot->top |= NPUPROF_TOKEN_BOUNDARY_;
}

/* Pushes a span that was written at u. Returns its token.
   Why a token and no address: a goto past a scope leaves garbage in it, which must not end another span. */
static inline npuprof_token_ npuprof_record_push_span_(npuprof_slot_ *slot, npuprof_unit_ *u, uint32_t here)
{
    npuprof_token_ *const top = slot->top;
    const npuprof_token_ token = (npuprof_token_)((uintptr_t)u - slot->token_zero);
    const uint32_t depth = (uint32_t)(top + 1 - slot->open);
    if (depth > npuprof_record_depth_() / 8) *npuprof_record_note_(slot, depth) = here;
    top[1] = NPUPROF_CLOCK_IS_FAST_() ? token : token | NPUPROF_TOKEN_SLOW_;
    slot->top = top + 1;
    if (NPUPROF_RECORD_WATCHES_()) npuprof_record_mark_watched_(slot, u);
    return token;
}

/* Writes the first unit of a span at u, which ends before `behind`, and pushes the span. For where the clock
   is known to be fast. */
static inline npuprof_token_ npuprof_record_put_span_(npuprof_slot_ *slot, npuprof_unit_ *u,
                                                      npuprof_unit_ *behind, uint64_t w0)
{
    npuprof_record_publish_(u, behind, w0, NPUPROF_END_OPEN_);
    const npuprof_token_ token = (npuprof_token_)((uintptr_t)u - slot->token_zero);
    slot->top[1] = token;
    /* Why the fence: compilers then add in memory, one instruction less. */
    NPUPROF_SIGNAL_FENCE_();
    slot->top++;
    return token;
}

/* Before a span begins: whether one more may be open. */
static inline bool npuprof_record_make_room_(npuprof_slot_ *slot, uint32_t id, uint64_t now, uint32_t here)
{
    if (NPUPROF_UNLIKELY_((uint32_t)(slot->top - slot->open) > npuprof_record_depth_() / 2))
        npuprof_record_sweep_(slot, id, here, now);
    return !npuprof_record_is_deep_(slot);
}

/* Begins a span; way: of its callers. 0: it did not fit, which is counted. */
static NPUPROF_NOINLINE_ npuprof_token_ npuprof_record_begin_span_args_(npuprof_slot_ *slot, uint32_t id,
                                                                        uint32_t way, npuprof_keys_ *keys,
                                                                        npuprof_args args)
{
    const uint32_t here = NPUPROF_RECORD_HERE_(slot, way);
    const uint64_t now = npuprof_clock_();
    const npuprof_record_new_ r = npuprof_record_of_(NPUPROF_END_OPEN_, keys, args);
    if (!npuprof_record_make_room_(slot, id, now, here)) return npuprof_record_count_full_(slot), 0;
    npuprof_unit_ *const u = npuprof_record_emit_(slot, id, now, &r);
    return u ? npuprof_record_push_span_(slot, u, here) : 0;
}

/* The same without arguments. */
static inline npuprof_token_ npuprof_record_begin_span_at_(npuprof_slot_ *slot, uint32_t id, uint64_t now,
                                                           uint32_t here)
{
    const bool fits = npuprof_record_make_room_(slot, id, now, here);
    npuprof_unit_ *const u = fits ? npuprof_record_reserve_(slot, 1, now) : NULL;
    if (!u) {
        npuprof_record_count_full_(slot);
        return 0;
    }
    npuprof_record_publish_(u, u + 1, now << NPUPROF_ID_BITS_ | id, NPUPROF_END_OPEN_);
    slot->cursor = u + 1;
    return npuprof_record_push_span_(slot, u, here);
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
    if (npuprof_record_is_resolved_(site)) {
        const uint32_t id = (uint32_t)NPUPROF_LOAD_(&site->id);
        /* Why asked ahead of the clock: in a full arena each span comes here, and the clock takes half of
           the time. */
        if (slot->cursor && npuprof_arena_is_full_() && !npuprof_record_set_end_(slot, 1))
            npuprof_record_count_full_(slot);
        else token = npuprof_record_begin_span_at_(slot, id, npuprof_clock_(),
                                                   NPUPROF_RECORD_HERE_(slot, NPUPROF_WAY_SLOW_));
    }
    npuprof_record_leave_(slot);
    return token;
}

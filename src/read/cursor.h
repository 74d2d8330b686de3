#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/chunks.h"
#include "image.h"

/* Decodes records, and walks those of one slot, chunk by chunk, in the order in which they began.

   A record is one unit or several: its head (start and site; end or value), then units with control ids that
   belong to it, then its arguments. A chunk begins with the spans that were open when it was taken
   (moved_units units, two for each): such a span moved here from the chunk before, where its unit now says
   NPUPROF_CONTROL_MOVED_AWAY_. A span is shown where it began, with the end that it has in the chunk it moved
   to last; a moved span is shown only in the first chunk that the image still has of its slot.

   A cursor is the caller's own and on its stack. Of a live arena it may be stopped at any moment and copied:
   it holds no lock. The words of a unit are read with acquire, since their threads may be writing them. */
typedef struct npuprof_cursor_ {
    const npuprof_image_ *image;
    uint32_t chunk, unit;                  /* chunk: index + 1; 0: behind the last one */
    uint32_t tid;
    bool first;                            /* the chunk is the first of its slot */
    uint32_t plain_begin, plain_count;     /* units of the chunk that may be plain: not moved, not the last */
    const npuprof_unit_ *units;
    uint64_t base, first_position;         /* the chunk's */
    uint64_t clear_ticks;                  /* the image's */
    /* the image's, bit 63 cleared: in an end stamp that bit means 'cut' */
    uint64_t last_ticks;
} npuprof_cursor_;

/* A plain record: one unit and its arguments, with nothing else that belongs to it but one unit FINISHED or
   MEMORY. A span, or an event; its site says which. Or a RESULT, which is its site then. Most records are
   plain spans. */
typedef struct npuprof_plain_ {
    uint64_t start, end;                   /* end: of an event, its value */
    uint32_t site;
    const npuprof_unit_ *behind;           /* its end, and that of its arguments */
} npuprof_plain_;

/* Goes to the beginning of a chunk, index + 1; 0: to the end. */
static void npuprof_cursor_begin_chunk_(npuprof_cursor_ *c, uint32_t index)
{
    c->chunk = index;
    c->unit = c->plain_begin = c->plain_count = 0;
    if (!index) return;
    const npuprof_chunk_ *chunk = npuprof_image_chunk_(c->image, index - 1);
    c->units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    c->base = chunk->base;
    c->first_position = chunk->first_position;
    c->clear_ticks = c->image->clear_ticks;
    c->last_ticks = c->image->last_ticks < NPUPROF_END_CUT_ ? c->image->last_ticks : NPUPROF_END_CUT_ - 1;
    c->plain_begin = chunk->moved_units;
    c->plain_count = c->plain_begin < c->image->units ? c->image->units - 1 - c->plain_begin : 0;
}

static void npuprof_cursor_begin_slot_(npuprof_cursor_ *c, const npuprof_image_ *im,
                                       const npuprof_slot_head_ *slot)
{
    c->image = im;
    npuprof_cursor_begin_chunk_(c, NPUPROF_LOAD_ACQUIRE_(&slot->first_chunk));
    c->tid = NPUPROF_LOAD_(&slot->tid);
    c->first = true;
}

NPUPROF_HOT_ static inline uint64_t npuprof_unit_load_w0_(const npuprof_unit_ *u)
{
    return NPUPROF_LOAD_ACQUIRE_(&u->w0);
}

NPUPROF_HOT_ static inline uint64_t npuprof_unit_load_w1_(const npuprof_unit_ *u)
{
    return NPUPROF_LOAD_ACQUIRE_(&u->w1);
}

/* The id in the first word of a unit: a site's number, or NPUPROF_CONTROL_*. */
NPUPROF_HOT_ static inline uint32_t npuprof_unit_load_id_(const npuprof_unit_ *u)
{
    return (uint32_t)npuprof_unit_load_w0_(u) & NPUPROF_ID_MASK_;
}

/* Where a span that moved away from chunk `index` is now: its unit. NULL: not in the image. *home: its chunk,
   or the last one on the way there; stays if there is none. */
static const npuprof_unit_ *npuprof_cursor_follow_moved_(const npuprof_image_ *im, uint32_t index,
                                                         uint64_t position, const npuprof_chunk_ **home)
{
    while ((index = npuprof_image_next_chunk_(im, index)) != 0) {
        const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, --index);
        const npuprof_unit_ *u = (const npuprof_unit_ *)(const void *)(chunk + 1);
        const npuprof_unit_ *const end = u + (chunk->moved_units < im->units ? chunk->moved_units & ~1u : 0);
        while (u < end && npuprof_unit_load_w0_(u + 1) >> NPUPROF_ID_BITS_ != position) u += 2;
        if (u == end) return NULL;
        *home = chunk;
        if (npuprof_unit_load_id_(u) != NPUPROF_CONTROL_MOVED_AWAY_) return u;
    }
    return NULL;
}

/* The end of a span, from the stamp in ev->value. */
NPUPROF_HOT_ static inline void npuprof_cursor_decode_end_(const npuprof_image_ *im, npuprof_event_ *ev)
{
    if (ev->value != NPUPROF_END_OPEN_) {
        ev->cut = ev->value >> 63 != 0;
        ev->end = (ev->value & ~NPUPROF_END_CUT_) | (ev->start & NPUPROF_END_CUT_);
        if (ev->end <= im->last_ticks) return;
    }
    ev->unfinished = true;
    ev->end = im->open_until;
}

/* What changed a pool, from the payload of its MEMORY unit. */
NPUPROF_HOT_ static inline int64_t npuprof_cursor_change_(uint64_t payload)
{
    return (int64_t)(payload >> 2) * ((payload & 1) ? 1 : -1);
}

/* The units with control ids behind a head. Returns the first one that is none of these. */
NPUPROF_HOT_ static inline const npuprof_unit_ *
npuprof_cursor_decode_controls_(const npuprof_unit_ *u, const npuprof_unit_ *end, npuprof_event_ *ev)
{
    for (; u < end; u++) {
        const uint64_t w0 = npuprof_unit_load_w0_(u), payload = w0 >> NPUPROF_ID_BITS_;
        const uint32_t control = (uint32_t)w0 & NPUPROF_ID_MASK_;
        if (control == NPUPROF_CONTROL_FINISHED_) {
            ev->track = (uint32_t)payload;
            ev->second = u->w1;
        } else if (control == NPUPROF_CONTROL_MEMORY_) {
            ev->second = u->w1;
            ev->change = npuprof_cursor_change_(payload);
        } else if (control == NPUPROF_CONTROL_DEVICE_) {
            ev->device = (uint32_t)payload & 0xFF;
            ev->pe = (uint32_t)(payload >> 8) & 0xFFFF;
            ev->epoch = (uint32_t)(payload >> 24) & 0xFFFF;
            ev->flags = (uint32_t)(payload >> 40) & 15;
            ev->start = ev->value;
            ev->end = u->w1;
        } else if (control == NPUPROF_CONTROL_LINK_) {
            ev->has_link = true;
            ev->link.position = payload;
            ev->link.ticks = u->w1;
        } else if (control == NPUPROF_CONTROL_LINK_ROOT_) {
            ev->link.root_position = payload;
            ev->link.slot = (uint32_t)u->w1;
            ev->link.warm_up = (u->w1 >> 32 & 1) != 0;
        } else if (control <= NPUPROF_CONTROL_RESULT_) {
            break;
        } else {
            ev->unknown++;                 /* of a newer version: one unit (format/layouts.h, VERSIONS) */
        }
    }
    return u;
}

/* The end of the units behind a head that have control ids of their own, and no arguments. */
NPUPROF_HOT_ static inline const npuprof_unit_ *
npuprof_cursor_skip_controls_(const npuprof_unit_ *u, const npuprof_unit_ *end)
{
    for (; u < end; u++) {
        const uint32_t id = npuprof_unit_load_id_(u), of_record = id - NPUPROF_CONTROL_FINISHED_;
        const bool is_known = of_record <= NPUPROF_CONTROL_LINK_ROOT_ - NPUPROF_CONTROL_FINISHED_;
        if (!is_known && id <= NPUPROF_CONTROL_RESULT_) break;
    }
    return u;
}

/* How many units behind that of an argument belong to it: of its text, 8 bytes are in the first one. */
NPUPROF_HOT_ static inline uint64_t npuprof_cursor_arg_more_(uint64_t w0)
{
    return ((w0 >> NPUPROF_ID_BITS_ >> 32) + 7) / 16;
}

/* The end of the arguments that begin at u. Why numbers first: most are, and one takes one unit, whose text
   has no length. */
NPUPROF_HOT_ static NPUPROF_NOINLINE_ const npuprof_unit_ *
npuprof_cursor_skip_args_(const npuprof_unit_ *u, const npuprof_unit_ *end)
{
    const uint64_t length = UINT64_MAX << (NPUPROF_ID_BITS_ + 32);
    for (; u < end; u++) {
        const uint64_t w0 = npuprof_unit_load_w0_(u);
        if ((w0 & (length | NPUPROF_ID_MASK_)) == NPUPROF_CONTROL_ARG_) continue;
        if (((uint32_t)w0 & NPUPROF_ID_MASK_) != NPUPROF_CONTROL_ARG_) break;
        const uint64_t more = npuprof_cursor_arg_more_(w0);
        if (more >= (uint64_t)(end - u)) break;
        u += more;
    }
    return u;
}

/* The head of the record at *u: where and when it began, and its site. Moves *u behind it. Returns the unit
   that has the end or value, which is elsewhere if the span moved away; NULL: not in the image. */
NPUPROF_HOT_ static inline const npuprof_unit_ *npuprof_cursor_decode_head_(const npuprof_image_ *im,
                                                               uint32_t index, bool moved,
                                                               const npuprof_unit_ **u,
                                                               uint64_t w0, npuprof_event_ *ev)
{
    const npuprof_unit_ *const head = *u, *at = head;
    const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, index), *home = chunk;
    ev->site = (uint32_t)w0 & NPUPROF_ID_MASK_;
    ev->start = npuprof_chunk_start_ticks_(chunk, w0);
    ++*u;
    if (moved) {
        ev->position = npuprof_unit_load_w0_(*u) >> NPUPROF_ID_BITS_;
        ev->start = npuprof_unit_load_w1_(*u);
        ++*u;
    }
    if (ev->site == NPUPROF_CONTROL_MOVED_AWAY_) {
        ev->site = (uint32_t)(w0 >> NPUPROF_ID_BITS_) & NPUPROF_ID_MASK_;
        ev->start = npuprof_unit_load_w1_(head);
        at = npuprof_cursor_follow_moved_(im, index, ev->position, &home);
        if (at) ev->start = npuprof_unit_load_w1_(at + 1);
        else if (ev->start == NPUPROF_END_OPEN_) ev->start = chunk->base + ((uint64_t)1 << 40);
    }
    return at;
}

/* Clears what a record need not have. Why not all of it: gcc -O2 clears more than 80 bytes by `rep stos`,
   which took two thirds of the time of npuprof_cursor_decode_() on an AMD EPYC guest. */
NPUPROF_HOT_ static inline void npuprof_cursor_clear_event_(npuprof_event_ *ev)
{
    ev->kind = ev->track = 0;
    ev->second = 0;
    ev->change = 0;
    ev->unfinished = ev->cut = ev->has_link = ev->results = false;
    ev->device = ev->pe = ev->epoch = ev->flags = ev->unknown = 0;
    memset(&ev->link, 0, sizeof ev->link);
}

/* Decodes the record at unit number `unit` of a chunk; `first`: the chunk is the first of its slot. Returns
   how many units it takes; 0: there is none. *shown is false if the record is shown elsewhere, is older than
   the last clear, or is damaged (kind NPUPROF_KIND_NONE); then *ev may be incomplete. */
NPUPROF_HOT_ static uint32_t npuprof_cursor_decode_(const npuprof_image_ *im, uint32_t index, uint32_t unit,
                                                    bool first, npuprof_event_ *ev, bool *shown)
{
    const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, index);
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    const npuprof_unit_ *const end = units + im->units;
    const npuprof_unit_ *u = units + unit;
    const uint64_t w0 = npuprof_unit_load_w0_(u);
    const bool moved = unit < chunk->moved_units;
    *shown = false;
    if (w0 == 0) return 0;
    npuprof_cursor_clear_event_(ev);
    /* Why at once: following moved spans from every chunk they went through takes time quadratic in the
       chunks. */
    if (moved && (!first || u + 1 == end)) {
        ev->kind = NPUPROF_KIND_SPAN;
        return u + 1 == end ? 1 : 2;
    }
    ev->position = chunk->first_position + unit;
    ev->tid = chunk->owner >> 3;
    ev->locator = ((uint64_t)index * im->units + unit) << 1 | first;
    if (((uint32_t)w0 & NPUPROF_ID_MASK_) == NPUPROF_CONTROL_RESULT_) {    /* it belongs to a span */
        ev->kind = NPUPROF_KIND_SPAN;
        return (uint32_t)(npuprof_cursor_skip_args_(u + 1, end) - units) - unit;
    }
    const npuprof_unit_ *const at = npuprof_cursor_decode_head_(im, index, moved, &u, w0, ev);
    const npuprof_site_entry_ *site = npuprof_image_site_(im, ev->site);
    const uint32_t kind = site ? site->head.a & 0xFF : (uint32_t)NPUPROF_KIND_NONE;
    const bool known = kind != NPUPROF_KIND_NONE && kind < NPUPROF_KIND_COUNT;
    if (known) {
        ev->kind = kind;
        ev->name = site->name;
        ev->category = site->category;
        ev->host_ticks = ev->end = ev->start;
        ev->value = at ? npuprof_unit_load_w1_(at) : NPUPROF_END_OPEN_;
        /* Why again: the span may have moved away after its first word was read; then its second word is its
           start. */
        if (NPUPROF_UNLIKELY_(ev->value == ev->start && at &&
                              npuprof_unit_load_id_(at) == NPUPROF_CONTROL_MOVED_AWAY_))
            return npuprof_cursor_decode_(im, index, unit, first, ev, shown);
    }
    if (known && npuprof_kind_nests_(kind)) {
        npuprof_cursor_decode_end_(im, ev);
        const uint32_t id = at ? npuprof_unit_load_id_(at) : ev->site;
        if (id != ev->site) site = npuprof_image_site_(im, id);
        ev->results = site && (site->line & NPUPROF_SITE_RESULTS_);
    }
    ev->args = npuprof_cursor_decode_controls_(u, end, ev);
    ev->args_end = npuprof_cursor_skip_args_(ev->args, end);
    *shown = known && ev->host_ticks >= im->clear_ticks && ev->host_ticks <= im->last_ticks;
    return (uint32_t)(ev->args_end - units) - unit;
}

/* The fast path beside npuprof_cursor_next_event_(): a walk over the plain records that come next in the
   chunk. `at` is the caller's to move on. Why a struct of its own, on the caller's stack: else the compiler
   must assume that what the loop writes is a part of the cursor, and loads all of it again each time. */
typedef struct npuprof_plain_walk_ {
    const npuprof_unit_ *at, *end;         /* NULL: there are none */
    uint64_t base, clear_ticks, last_ticks;
} npuprof_plain_walk_;

NPUPROF_HOT_ static inline npuprof_plain_walk_
npuprof_cursor_begin_plains_(const npuprof_cursor_ *c)
{
    npuprof_plain_walk_ p = { NULL, NULL, c->base, c->clear_ticks, c->last_ticks };
    const uint32_t passed = c->unit - c->plain_begin;
    if (passed < c->plain_count && p.clear_ticks <= p.last_ticks) {
        p.at = c->units + c->unit;
        p.end = p.at + (c->plain_count - passed);
    }
    return p;
}

/* Moves the cursor to where the walk is. */
NPUPROF_HOT_ static inline void npuprof_cursor_end_plains_(npuprof_cursor_ *c, const npuprof_plain_walk_ *p)
{
    if (p->at) c->unit = (uint32_t)(p->at - c->units);
}

/* Does a unit with this id begin a record? */
NPUPROF_HOT_ static inline bool npuprof_cursor_begins_record_(uint32_t id)
{
    return id < NPUPROF_CONTROL_ || id == NPUPROF_CONTROL_RESULT_;
}

/* Is it the id of the unit that a plain record may have behind its head? */
NPUPROF_HOT_ static inline bool npuprof_cursor_has_more_(uint32_t id)
{
    return id == NPUPROF_CONTROL_FINISHED_ || id == NPUPROF_CONTROL_MEMORY_;
}

/* Is the next record plain, and shown? Its site is not looked up, and may be none at all: the caller knows
   the sites that it met, and asks npuprof_cursor_plain_ended_() of those of spans. */
NPUPROF_HOT_ static inline bool npuprof_cursor_peek_plain_(const npuprof_plain_walk_ *c, npuprof_plain_ *p)
{
    const npuprof_unit_ *const u = c->at;
    if (u >= c->end) return false;
    const uint64_t w0 = npuprof_unit_load_w0_(u);
    /* Why first: behind a head that is not there yet, a thread may be writing arguments by plain stores. */
    if (!w0) return false;
    p->site = (uint32_t)w0 & NPUPROF_ID_MASK_;
    p->end = npuprof_unit_load_w1_(u);
    p->behind = u + 1;
    const uint32_t next = npuprof_unit_load_id_(u + 1);
    if (NPUPROF_UNLIKELY_(!npuprof_cursor_begins_record_(next))) {
        if (!npuprof_cursor_begins_record_(p->site)) return false;
        p->behind = npuprof_cursor_skip_args_(u + 1 + npuprof_cursor_has_more_(next), c->end);
        if (p->behind >= c->end) return false;
        if (!npuprof_cursor_begins_record_(npuprof_unit_load_id_(p->behind))) return false;
    }
    p->start = npuprof_chunk_ticks_from_(c->base, w0);
    return p->start - c->clear_ticks <= c->last_ticks - c->clear_ticks;     /* not before, not behind */
}

/* Has the span ended, before what is shown ends? */
NPUPROF_HOT_ static inline bool npuprof_cursor_plain_ended_(const npuprof_plain_walk_ *c,
                                                            const npuprof_plain_ *p)
{
    if (p->end > c->last_ticks) return false;
    if (NPUPROF_LIKELY_(p->start < p->end)) return true;
    /* Why equal ones again: the second word of a span that moved away after the first was read is its start.
       */
    return p->start == p->end && npuprof_unit_load_id_(c->at) == p->site;
}

/* The position of the record that npuprof_cursor_peek_plain_() found. */
NPUPROF_HOT_ static inline uint64_t npuprof_cursor_plain_position_(const npuprof_cursor_ *c,
                                                                   const npuprof_plain_walk_ *p)
{
    return c->first_position + (uint64_t)(p->at - c->units);
}

/* The slot's next event. False: there are no more. */
NPUPROF_HOT_ static bool npuprof_cursor_next_event_(npuprof_cursor_ *c, npuprof_event_ *ev)
{
    const npuprof_image_ *im = c->image;
    while (c->chunk) {
        while (c->unit < im->units) {
            bool shown;
            const uint32_t taken = npuprof_cursor_decode_(im, c->chunk - 1, c->unit, c->first, ev, &shown);
            if (!taken) break;
            c->unit += taken;
            if (shown) return true;
        }
        npuprof_cursor_begin_chunk_(c, npuprof_image_next_chunk_(im, c->chunk - 1));
        c->first = false;
    }
    return false;
}

/* Decodes a record again, by event.locator. */
static bool npuprof_cursor_decode_at_(const npuprof_image_ *im, uint64_t locator, npuprof_event_ *ev)
{
    const uint64_t unit = locator >> 1;
    bool shown;
    npuprof_cursor_decode_(im, (uint32_t)(unit / im->units), (uint32_t)(unit % im->units), locator & 1, ev,
                           &shown);
    return shown;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/read.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../arena/chunks.h"
#include "image.h"
#include "cursor.h"
#include "live.h"
#include "list.h"
#include "args.h"
#include "time.h"
#include "survey.h"

/* What a cursor of npuprof_read() knows of the live arena, and how it finds what is new there.

   Of each slot it knows the position of the next record to look at. Records are looked at once, in the order
   of the slot. A span that is open then is noted, and looked at again in each later read, until it has ended.
   What is found goes into a batch, decoded, with copies of its arguments. So the lock of the readers is held
   for a batch at a time, and never while the program's function runs.

   What the cursor will never get is counted without looking for it. All that is not in the arena any more,
   since the trace began: T = lost by all causes + overwritten + streamed + forgotten by npuprof_clear(). Of
   that, the cursor has passed the records that it saw in chunks which are gone since, and those that were
   forgotten in chunks which are not: G. So T - G is lost to it.

   Data: npuprof_read_, in pages of the system's, of the thread that has made the cursor busy. The functions
   here need the lock of the readers. This part may not know what is done with a record. */

enum { NPUPROF_READ_RECORDS_ = 128, NPUPROF_READ_ARGS_BYTES_ = 32768 };      /* of a batch; of a record */

typedef struct npuprof_read_slot_ {
    uint64_t position;                     /* of the next record to look at */
    uint64_t end;                          /* this read goes no further */
    uint32_t at;                           /* unit number of the slot */
    uint32_t chunk;                        /* where that record is or will be, index + 1; 0: not known */
    uint32_t open;                         /* the newest of its noted spans, index + 1; 0: none */
} npuprof_read_slot_;

/* A span that later records may lie in: it was open when it was looked at, or when those began. */
typedef struct npuprof_read_open_ {
    uint64_t position, parent;             /* parent: position of the span around it; UINT64_MAX: none */
    uint64_t start, end;                   /* end: UINT64_MAX until it is known */
    uint32_t chunk, home;                  /* where it began, and where it is now, index + 1 */
    uint32_t next;                         /* the noted span before it, or the next free place: index + 1 */
    bool passed, warm_up;                  /* passed: it is done with */
    uint64_t reached;                      /* the first position of chunk `home` */
} npuprof_read_open_;

/* The records of a chunk that were passed, and which chunk of which slot it was then. */
typedef struct npuprof_read_chunk_ { uint64_t first_position; uint32_t owner, passed; } npuprof_read_chunk_;

/* A record of a batch. Its arguments follow, and their strings. */
typedef struct npuprof_read_item_ {
    npuprof_event_ ev;                     /* without `args` */
    uint64_t parent;
    uint32_t slot, bytes, arg_count;       /* slot: its unit number; bytes: of all of the item */
    bool warm_up, args_lost;
} npuprof_read_item_;

typedef struct npuprof_read_ {
    npuprof_image_ image;
    npuprof_image_anchor_caches_ caches;
    const npuprof_header_ *header;         /* of the trace; with the next two. NULL: none yet */
    uint64_t seed, cleared;                /* cleared: its clear_ticks */
    uint32_t pid;
    uint32_t kinds;                        /* what the read wants */
    npuprof_list_ slots, open;
    uint32_t newest;                       /* unit number of the newest slot that is known */
    uint32_t turn, todo;                   /* the slot at hand, and how many are left in this read */
    uint32_t free, open_count;             /* free: place in `open`, index + 1; spans that are open */
    uint32_t left;                         /* records that may still be looked at under this lock */
    uint64_t gone, lost;                   /* G; what was told to be lost so far */
    size_t at, used;                       /* in the batch: the next item to hand over, and the end */
    size_t bytes, batch_bytes;             /* of all this memory; of the batch */
    npuprof_read_chunk_ *chunks;
    uint8_t *batch;
    int error;                             /* 0, or ENOMEM */
} npuprof_read_;

static npuprof_read_slot_ *npuprof_read_slot_at_(npuprof_read_ *r, uint32_t index)
{
    return (npuprof_read_slot_ *)(void *)r->slots.at + index;
}

static npuprof_read_open_ *npuprof_read_open_at_(npuprof_read_ *r, uint32_t number)
{
    return (npuprof_read_open_ *)(void *)r->open.at + (number - 1);
}

/* ---- What is passed, and what is gone */

static bool npuprof_read_is_there_(npuprof_read_ *r, uint32_t index)
{
    const npuprof_read_chunk_ *const known = &r->chunks[index];
    const npuprof_chunk_ *const chunk = npuprof_image_chunk_(&r->image, index);
    return npuprof_image_is_of_live_(chunk, known->owner) &&
           NPUPROF_LOAD_(&chunk->first_position) == known->first_position;
}

/* The record of the chunk, index + 1, is done with. */
static void npuprof_read_pass_(npuprof_read_ *r, uint32_t number)
{
    npuprof_read_chunk_ *const known = &r->chunks[number - 1];
    const npuprof_chunk_ *const chunk = npuprof_image_chunk_(&r->image, number - 1);
    if (known->owner != chunk->owner || known->first_position != chunk->first_position) {
        r->gone += known->passed;
        known->owner = chunk->owner;
        known->first_position = chunk->first_position;
        known->passed = 0;
    }
    known->passed++;
}

/* T - G. */
static uint64_t npuprof_read_count_lost_(npuprof_read_ *r)
{
    npuprof_image_ *const im = &r->image;
    /* Why anew: records were found in chunks that were taken since. */
    im->chunk_total = NPUPROF_LOAD_ACQUIRE_(&im->h->chunk_next);
    const uint64_t all =
        npuprof_arena_.forgotten + NPUPROF_LOAD_(&im->h->streamed) + npuprof_image_sum_lost_(im);
    for (uint32_t i = 0; i < im->chunk_total; i++) {
        if (!r->chunks[i].passed || npuprof_read_is_there_(r, i)) continue;
        r->gone += r->chunks[i].passed;
        r->chunks[i].passed = 0;
    }
    return all - r->gone;
}

/* ---- Noted spans: of each slot a list, the newest first */

/* False: the system has no memory for it. */
static bool npuprof_read_note_(npuprof_read_ *r, npuprof_read_slot_ *s, const npuprof_read_open_ *span)
{
    uint32_t number = r->free;
    if (number) r->free = npuprof_read_open_at_(r, number)->next;
    else if (npuprof_list_add_(&r->open, span)) number = (uint32_t)r->open.count;
    if (!number) {
        r->error = ENOMEM;
        return false;
    }
    npuprof_read_open_ *const e = npuprof_read_open_at_(r, number);
    *e = *span;
    e->next = s->open;
    s->open = number;
    r->open_count += !e->passed;
    return true;
}

/* Takes the span out of its list, in which *link leads to it. */
static void npuprof_read_forget_(npuprof_read_ *r, uint32_t *link)
{
    const uint32_t number = *link;
    npuprof_read_open_ *const e = npuprof_read_open_at_(r, number);
    *link = e->next;
    e->next = r->free;
    r->free = number;
    r->open_count -= !e->passed;
}

/* The unit of a noted span in the chunk where it is; NULL: that chunk is gone. */
static const npuprof_unit_ *npuprof_read_find_(const npuprof_image_ *im, const npuprof_read_open_ *e,
                                               uint32_t owner)
{
    const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, e->home - 1);
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    if (!npuprof_image_is_of_live_(chunk, owner)) return NULL;
    const uint64_t n = e->position - chunk->first_position;
    if (n < im->units) return units + n;
    for (uint32_t i = 0; i + 1 < chunk->moved_units; i += 2)
        if (npuprof_unit_load_w0_(units + i + 1) >> NPUPROF_ID_BITS_ == e->position) return units + i;
    return NULL;
}

/* Looks whether a noted span has ended, and follows it to where it is. False: it is gone. */
static bool npuprof_read_look_(npuprof_read_ *r, npuprof_read_open_ *e, uint32_t owner)
{
    const npuprof_image_ *const im = &r->image;
    const npuprof_unit_ *u = npuprof_read_find_(im, e, owner);
    const npuprof_chunk_ *home = npuprof_image_chunk_(im, e->home - 1);
    if (!u) return false;
    const uint64_t end = npuprof_unit_load_w1_(u);
    /* Why the id behind the end: a span that moves away in between is seen to have moved. */
    if (npuprof_unit_load_id_(u) == NPUPROF_CONTROL_MOVED_AWAY_) {
        u = npuprof_cursor_follow_moved_(im, e->home - 1, e->position, &home);
        e->home = npuprof_chunk_index_(home) + 1;
        e->reached = home->first_position;
        return !u || npuprof_read_look_(r, e, owner);    /* !u: the rest of the way is not known yet */
    }
    if (end != NPUPROF_END_OPEN_) e->end = end & ~NPUPROF_END_CUT_;
    return true;
}

/* A chunk that is still there: so many of the records that were passed in it are forgotten. */
static void npuprof_read_forgot_(npuprof_read_ *r, uint32_t index, uint64_t count)
{
    r->chunks[index].passed -= (uint32_t)count;
    r->gone += count;
}

/* npuprof_clear() was called since the last read. Of the records of a chunk that were passed, those that
   began before it have gone: all that are forgotten, without those that were not looked at, and without noted
   spans, which are lost. */
static void npuprof_read_clear_(npuprof_read_ *r)
{
    const npuprof_image_ *const im = &r->image;
    const uint64_t since = r->cleared, until = im->clear_ticks;
    uint64_t arguments;
    for (uint32_t i = 0; i < im->chunk_total; i++) {
        const npuprof_chunk_ *const c = npuprof_image_chunk_(im, i);
        if (!npuprof_read_is_there_(r, i)) continue;
        npuprof_read_forgot_(r, i, npuprof_chunk_count_between_(c, im->units, since, until, &arguments));
    }
    for (npuprof_read_slot_ *s = npuprof_read_slot_at_(r, 0), *end = s + r->slots.count; s < end; s++) {
        if (s->chunk && npuprof_read_is_there_(r, s->chunk - 1)) {
            const npuprof_chunk_ *const c = npuprof_image_chunk_(im, s->chunk - 1);
            const uint32_t looked_at = (uint32_t)(s->position - c->first_position);
            const uint64_t all = npuprof_chunk_count_between_(c, im->units, since, until, &arguments);
            const uint64_t seen = npuprof_chunk_count_between_(c, looked_at, since, until, &arguments);
            npuprof_read_forgot_(r, s->chunk - 1, seen - all);
        }
        for (uint32_t *link = &s->open; *link;) {
            npuprof_read_open_ *const e = npuprof_read_open_at_(r, *link);
            if (e->start >= until) {
                link = &e->next;
                continue;
            }
            if (!e->passed && npuprof_read_is_there_(r, e->home - 1))
                npuprof_read_forgot_(r, e->home - 1, (uint64_t)-1);
            npuprof_read_forget_(r, link);
        }
    }
}

/* ---- The batch */

/* Copies the arguments of a record behind its item. False: they do not fit. */
static bool npuprof_read_copy_args_(npuprof_read_ *r, npuprof_read_item_ *item)
{
    npuprof_args_walk_ w = npuprof_args_begin_(&r->image, &item->ev);
    npuprof_value_ v;
    npuprof_arg *const args = (npuprof_arg *)(void *)(item + 1);
    size_t count = 0, length;
    while (npuprof_args_next_(&w, &v)) count++;
    uint8_t *text = (uint8_t *)(args + count);
    uint8_t *const end = (uint8_t *)item + sizeof *item + NPUPROF_READ_ARGS_BYTES_;
    if (text > end) return false;
    w = npuprof_args_begin_(&r->image, &item->ev);
    for (npuprof_arg *a = args; a < args + count && npuprof_args_next_(&w, &v); a++) {
        a->key = npuprof_image_text_(&r->image, v.key, &length);
        a->type = v.type;
        a->value.u = v.bits;
        if (v.type < NPUPROF_ARG_STR) continue;
        a->type = NPUPROF_ARG_STR;
        item->args_lost = item->args_lost || v.type == NPUPROF_ARG_STR_CUT_;
        if (v.length >= (size_t)(end - text)) return false;
        memcpy(text, v.text, v.length);
        text[v.length] = 0;
        a->value.s = (const char *)text;
        text += v.length + 1;
    }
    item->arg_count = (uint32_t)count;
    item->bytes = (uint32_t)((size_t)(text - (uint8_t *)item + 15) / 16 * 16);
    return true;
}

/* Puts a record into the batch, if its kind is wanted. False: the batch is full. */
static bool npuprof_read_put_(npuprof_read_ *r, const npuprof_read_slot_ *s, const npuprof_event_ *ev,
                              uint64_t parent, bool warm_up)
{
    npuprof_read_item_ *const item = (npuprof_read_item_ *)(void *)(r->batch + r->used);
    if (!(r->kinds >> ev->kind & 1)) return true;
    if (r->batch_bytes - r->used < sizeof *item + NPUPROF_READ_ARGS_BYTES_) return false;
    item->ev = *ev;
    item->parent = parent;
    item->slot = s->at;
    item->bytes = sizeof *item;
    item->arg_count = 0;
    item->warm_up = warm_up;
    item->args_lost = false;
    if (npuprof_args_any_(ev) && !npuprof_read_copy_args_(r, item)) item->args_lost = true;
    r->used += item->bytes;
    return true;
}

/* A noted span has ended: puts it into the batch. False: that is full. */
static bool npuprof_read_put_noted_(npuprof_read_ *r, const npuprof_read_slot_ *s, npuprof_read_open_ *e,
                                    uint32_t owner)
{
    const npuprof_image_ *const im = &r->image;
    const npuprof_chunk_ *const began = npuprof_image_chunk_(im, e->chunk - 1);
    npuprof_event_ ev;
    bool shown = false;
    const uint64_t n = e->position - began->first_position;
    ev.unfinished = true;
    if (npuprof_image_is_of_live_(began, owner) && n < im->units)
        npuprof_cursor_decode_(im, e->chunk - 1, (uint32_t)n, false, &ev, &shown);
    const bool overwritten = ev.unfinished;
    if (overwritten) {
        const npuprof_chunk_ *const home = npuprof_image_chunk_(im, e->home - 1);
        const npuprof_unit_ *const u = npuprof_read_find_(im, e, owner);
        const uint32_t unit = (uint32_t)(u - (const npuprof_unit_ *)(const void *)(home + 1));
        npuprof_cursor_decode_(im, e->home - 1, unit, true, &ev, &shown);
    }
    const size_t at = r->used;
    if (shown && !npuprof_read_put_(r, s, &ev, e->parent, e->warm_up)) return false;
    if (r->used > at && overwritten) ((npuprof_read_item_ *)(void *)(r->batch + at))->args_lost = true;
    if (shown) npuprof_read_pass_(r, e->home);       /* else it is forgotten */
    e->passed = true;
    r->open_count--;
    return true;
}

/* ---- The records of a slot */

/* Forgets the noted spans that are over when the next record begins; they are put into the batch before.
   False: that is full. Which are over: npuprof_walk_leave_() says it. */
static bool npuprof_read_leave_(npuprof_read_ *r, npuprof_read_slot_ *s, uint64_t at, bool span,
                                uint32_t owner)
{
    while (s->open) {
        npuprof_read_open_ *const e = npuprof_read_open_at_(r, s->open);
        const bool is_there = e->passed || npuprof_read_look_(r, e, owner);
        if (is_there && e->end > at) return true;
        if (is_there && e->end == at && (!span || e->start == at)) return true;
        if (is_there && !e->passed && !npuprof_read_put_noted_(r, s, e, owner)) return false;
        npuprof_read_forget_(r, &s->open);
    }
    return true;
}

/* Looks at the record at the slot's position, in its chunk. False: come again, when the batch is empty. */
static bool npuprof_read_record_(npuprof_read_ *r, npuprof_read_slot_ *s, uint32_t owner)
{
    const npuprof_image_ *const im = &r->image;
    const npuprof_chunk_ *home = npuprof_image_chunk_(im, s->chunk - 1);
    const uint32_t unit = (uint32_t)(s->position - home->first_position);
    npuprof_event_ ev;
    bool shown;
    if (!r->left--) return false;
    const uint32_t taken = npuprof_cursor_decode_(im, s->chunk - 1, unit, false, &ev, &shown);
    if (shown) {
        const bool nests = npuprof_kind_nests_(ev.kind);
        if (!npuprof_read_leave_(r, s, ev.host_ticks, nests, owner)) return false;
        const npuprof_read_open_ *const top = s->open ? npuprof_read_open_at_(r, s->open) : NULL;
        npuprof_read_open_ e = { ev.position, top ? top->position : UINT64_MAX, ev.host_ticks, UINT64_MAX,
                                 s->chunk, s->chunk, 0, !nests || !ev.unfinished, top && top->warm_up,
                                 home->first_position };
        if (e.passed && !npuprof_read_put_(r, s, &ev, e.parent, e.warm_up)) return false;
        if (e.passed) {
            const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(home + 1);
            if (npuprof_unit_load_id_(units + unit) == NPUPROF_CONTROL_MOVED_AWAY_)
                (void)npuprof_cursor_follow_moved_(im, s->chunk - 1, e.position, &home);
            npuprof_read_pass_(r, npuprof_chunk_index_(home) + 1);
            e.end = ev.end;
        }
        e.warm_up = e.warm_up || ev.kind == NPUPROF_KIND_WARM_UP;
        if (nests && !npuprof_read_note_(r, s, &e)) return false;
    }
    s->position += taken;
    return true;
}

/* Whether a noted span is in that chunk, too. Then it has moved at least so far, and that is noted. */
static bool npuprof_read_reach_(const npuprof_image_ *im, npuprof_read_open_ *e, uint32_t number,
                                uint32_t owner)
{
    const uint32_t was = e->home;
    const uint64_t first = npuprof_image_chunk_(im, number - 1)->first_position;
    e->home = number;
    const bool found = npuprof_read_find_(im, e, owner) != NULL;
    if (found && e->reached < first) e->reached = first;
    else e->home = was;
    return found;
}

/* Goes to a chunk of the slot, index + 1. Spans that were open when it began are in it, and go on from there.
   The others that are noted have ended, and are gone if their chunk is. If chunks before it are gone, spans
   that were never looked at may be in it, too. */
static void npuprof_read_enter_(npuprof_read_ *r, npuprof_read_slot_ *s, uint32_t number, uint32_t owner)
{
    const npuprof_image_ *const im = &r->image;
    const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, number - 1);
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    for (uint32_t *link = &s->open; *link;) {
        npuprof_read_open_ *const e = npuprof_read_open_at_(r, *link);
        if (npuprof_read_reach_(im, e, number, owner) || npuprof_read_find_(im, e, owner)) link = &e->next;
        else npuprof_read_forget_(r, link);
    }
    for (uint32_t i = 0; i + 1 < chunk->moved_units; i += 2) {
        const npuprof_read_open_ *const top = s->open ? npuprof_read_open_at_(r, s->open) : NULL;
        const npuprof_read_open_ e = { npuprof_unit_load_w0_(units + i + 1) >> NPUPROF_ID_BITS_,
                                       top ? top->position : UINT64_MAX, units[i + 1].w1, UINT64_MAX,
                                       number, number, 0, false, top && top->warm_up,
                                       chunk->first_position };
        if (e.position >= s->position) (void)npuprof_read_note_(r, s, &e);
    }
    s->chunk = number;
    s->position = chunk->first_position;
}

/* Goes to where the slot's next record is. False: there is none yet. */
static bool npuprof_read_seek_(npuprof_read_ *r, npuprof_read_slot_ *s, const npuprof_slot_head_ *slot,
                               uint32_t owner)
{
    const npuprof_image_ *const im = &r->image;
    for (bool chained = false;; chained = true) {
        const npuprof_chunk_ *const c = s->chunk ? npuprof_image_chunk_(im, s->chunk - 1) : NULL;
        const bool known =
            c && npuprof_image_is_of_live_(c, owner) && s->position - c->first_position <= im->units;
        for (bool here = known; here;) {
            const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, s->chunk - 1);
            const uint64_t unit = s->position - chunk->first_position;
            const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
            if (unit < im->units && npuprof_unit_load_w0_(units + unit)) return true;
            const uint32_t next = npuprof_image_next_chunk_(im, s->chunk - 1);
            const npuprof_chunk_ *const n = next ? npuprof_image_chunk_(im, next - 1) : NULL;
            here = n && npuprof_image_is_of_live_(n, owner) && n->first_position == s->position;
            if (here) npuprof_read_enter_(r, s, next, owner);
        }
        if (chained || (known && NPUPROF_LOAD_ACQUIRE_(&slot->last_chunk) == s->chunk)) return false;
        const uint32_t first = npuprof_image_chain_live_(im, slot, s->position ? s->position - 1 : 0);
        if (!first) return false;
        if (npuprof_image_chunk_(im, first - 1)->first_position < s->position) s->chunk = first;
        else npuprof_read_enter_(r, s, first, owner);
    }
}

/* A read begins: it goes as far in each slot as the chunk reaches that is the last one now. Why not to where
   there is nothing more: a thread may record faster than that is read. */
static void npuprof_read_set_ends_(npuprof_read_ *r)
{
    const npuprof_image_ *const im = &r->image;
    for (uint32_t i = 0; i < r->slots.count; i++) {
        npuprof_read_slot_ *const s = npuprof_read_slot_at_(r, i);
        const uint32_t last = npuprof_image_chain_live_(im, &npuprof_slot_at_(s->at)->head, UINT64_MAX);
        s->end = last ? npuprof_image_chunk_(im, last - 1)->first_position + im->units : 0;
    }
}

/* Puts what is new in a slot into the batch. False: come again, when the batch is empty. Why nothing of a
   slot without a tid: its thread is about to set that, and records of it would not be found again. */
static bool npuprof_read_slot_news_(npuprof_read_ *r, npuprof_read_slot_ *s)
{
    const npuprof_slot_head_ *const slot = &npuprof_slot_at_(s->at)->head;
    const uint32_t owner = npuprof_image_owner_live_(slot);
    if (!(owner >> 3)) return true;
    while (npuprof_read_seek_(r, s, slot, owner) && s->position < s->end)
        if (!npuprof_read_record_(r, s, owner)) return false;
    for (uint32_t *link = &s->open; *link;) {
        npuprof_read_open_ *const e = npuprof_read_open_at_(r, *link);
        const bool is_there = e->passed || npuprof_read_look_(r, e, owner);
        if (is_there && !e->passed && e->end != UINT64_MAX && !npuprof_read_put_noted_(r, s, e, owner))
            return false;
        if (is_there) link = &e->next;
        else npuprof_read_forget_(r, link);
    }
    return true;
}

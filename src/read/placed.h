#pragma once   /* SPDX-License-Identifier: MIT */
#include "../format/arena.h"
#include "image.h"
#include "cursor.h"
#include "threads.h"
#include "time.h"
#include "place.h"
#include "list.h"

/* All placed spans of an image in order: one walk collects them, one sort puts them in order, and the async
   ones get their ends. */

#define NPUPROF_ASYNC_KINDS_ (1u << NPUPROF_KIND_ASYNC_BEGIN | 1u << NPUPROF_KIND_ASYNC_END)

/* A begin or an end of an async span, in the order of its thread. span: a begin's index + 1 in the list,
   which is not sorted yet; 0: it is an end. */
typedef struct npuprof_async_ { uint64_t id; int64_t ns; size_t span; } npuprof_async_;

NPUPROF_HOT_ static bool npuprof_async_before_(const void *one, const void *other)
{
    const npuprof_async_ *const a = (const npuprof_async_ *)one, *const b = (const npuprof_async_ *)other;
    return a->id != b->id ? a->id < b->id : a->ns < b->ns;
}

static void npuprof_async_close_(npuprof_placed_ *p, int64_t ns)
{
    p->end_ns = ns;
    p->fault = NPUPROF_FAULT_NONE_;
}

/* No end came before `ns`, where its id begins anew. early: an end of another thread came in its tick. */
static void npuprof_async_leave_(npuprof_placed_ *p, bool early, int64_t ns)
{
    if (early) npuprof_async_close_(p, p->start_ns);
    else if (ns < p->end_ns) p->end_ns = ns;
}

/* A begin, its end, and nothing else of their id. */
NPUPROF_HOT_ static inline bool npuprof_async_is_pair_(const npuprof_async_ *from, const npuprof_async_ *last)
{
    return last - from >= 2 && from->span && !from[1].span && from[1].id == from->id &&
           from->ns < from[1].ns && (last - from == 2 || from[2].id != from->id);
}

/* Goes on with the events of one tick and one id, which begin at `from`. open: the span of that id that has
   no end yet; NULL: none. Returns where the next tick begins. */
NPUPROF_COLD_ static const npuprof_async_ *npuprof_async_tick_(npuprof_placed_ *list, npuprof_placed_ **open,
                                                               bool *early, const npuprof_async_ *from,
                                                               const npuprof_async_ *last)
{
    const npuprof_async_ *behind = from, *taken = from;
    npuprof_placed_ *p = *open;
    const uint64_t id = from->id;
    const int64_t ns = from->ns;
    while (behind < last && behind->id == id && behind->ns == ns) behind++;
    while (taken < behind && taken->span) taken++;
    if (!p) taken = NULL;
    else if (taken < behind) npuprof_async_close_(p, ns);
    else npuprof_async_leave_(p, *early, ns);
    p = NULL;
    *early = false;
    for (; from < behind; from++) {
        if (from == taken) continue;
        if (p && from->span) npuprof_async_leave_(p, false, ns);
        if (p && !from->span) npuprof_async_close_(p, ns);
        *early = *early || (!p && !from->span);
        p = from->span ? &list[from->span - 1] : NULL;
    }
    if (p && (from == last || from->id != id)) {
        npuprof_async_leave_(p, *early, INT64_MAX);
        p = NULL;
    }
    *open = p;
    return from;
}

/* Gives the async spans of a list their ends: a begin takes the first end behind it that has its id,
   unless the id begins anew before. In one tick, what began before it ends first; then the order of the
   threads counts. Returns 0 or an errno value. */
static int npuprof_async_find_ends_(const npuprof_list_ *spans, npuprof_list_ *events)
{
    npuprof_placed_ *const list = (npuprof_placed_ *)(void *)spans->at, *open = NULL;
    bool early = false;
    if (!events->count) return 0;
    if (!npuprof_list_sort_(events, npuprof_async_before_)) return ENOMEM;
    const npuprof_async_ *from = (const npuprof_async_ *)(const void *)events->at;
    const npuprof_async_ *const last = from + events->count;
    while (from < last) {
        if (!open && npuprof_async_is_pair_(from, last)) {
            npuprof_async_close_(&list[from->span - 1], from[1].ns);
            from += 2;
        } else {
            from = npuprof_async_tick_(list, &open, &early, from, last);
        }
    }
    return 0;
}

/* What a walk over an image collects. */
typedef struct npuprof_placed_lists_ {
    const npuprof_image_ *image;
    npuprof_list_ *spans, *events;
    int64_t open_until_ns;                 /* where open spans end */
} npuprof_placed_lists_;

/* The next place in the list of spans, for this record. NULL: the system has no memory for it. */
NPUPROF_HOT_ static inline npuprof_placed_ *npuprof_placed_room_(const npuprof_placed_lists_ *to,
                                                                 const npuprof_event_ *ev)
{
    npuprof_placed_ *const p = (npuprof_placed_ *)npuprof_list_room_(to->spans);
    const bool known = ev->args == ev->args_end && ev->kind != NPUPROF_KIND_DEVICE;
    if (p) p->text = known ? ev->site << 8 | ev->kind : 0;
    return p;
}

/* Adds the begin or the end of an async span; a begin is a span, too. False: the system has no memory for
   it. */
NPUPROF_HOT_ static inline bool npuprof_async_add_(const npuprof_placed_lists_ *to, const npuprof_event_ *ev)
{
    npuprof_async_ *const event = (npuprof_async_ *)npuprof_list_room_(to->events);
    if (!event) return false;
    event->id = ev->value;
    event->ns = npuprof_image_ns_(to->image, ev->start);
    event->span = 0;
    if (ev->kind == NPUPROF_KIND_ASYNC_BEGIN) {
        npuprof_placed_ *const p = npuprof_placed_room_(to, ev);
        if (!p) return false;
        npuprof_place_async_(ev, event->ns, to->open_until_ns, p);
        event->span = ++to->spans->count;
    }
    to->events->count++;
    return true;
}

/* Behind an async record: adds the plain ones that come next, and passes records of kinds that are not asked
   for: the step of npuprof_cursor_next_of_kinds_() without a record's other values. False: the system has no
   memory for them. */
NPUPROF_HOT_ static bool npuprof_placed_gather_plain_(const npuprof_placed_lists_ *to,
                                                      npuprof_cursor_kinds_ *c)
{
    npuprof_plain_walk_ walk = c->plain;
    npuprof_plain_ p;
    bool fits = true;
    while (fits && npuprof_cursor_peek_plain_(&walk, &p)) {
        const uint32_t use = c->met[p.site % 256].use, kind = use & 0xFF;
        npuprof_event_ ev;
        if (use >> 8 != p.site) break;
        if (c->kinds >> kind & 1) {
            if (!(NPUPROF_ASYNC_KINDS_ >> kind & 1) || !npuprof_cursor_fill_plain_(c, &walk, &p, &ev)) break;
            fits = npuprof_async_add_(to, &ev);
        }
        walk.at = p.behind;
    }
    c->plain = walk;
    return fits;
}

/* Walks the image once. Returns 0 or an errno value. Its caller holds the lock of the readers. */
static int npuprof_placed_gather_(const npuprof_placed_lists_ *to, uint32_t kinds)
{
    npuprof_image_anchor_caches_ *const caches = npuprof_image_clear_caches_();
    npuprof_event_ ev;
    npuprof_cursor_kinds_ c;
    const npuprof_slot_head_ *slot = NULL;
    const uint32_t async = kinds >> NPUPROF_KIND_ASYNC_BEGIN & 1;
    npuprof_cursor_begin_kinds_(&c, kinds | async << NPUPROF_KIND_ASYNC_END);
    while ((slot = npuprof_image_next_slot_(to->image, slot)) != NULL) {
        npuprof_cursor_begin_slot_(&c.cursor, to->image, slot);
        while (npuprof_cursor_next_of_kinds_(&c, &ev)) {
            if (NPUPROF_ASYNC_KINDS_ >> ev.kind & 1) {
                if (!npuprof_async_add_(to, &ev) || !npuprof_placed_gather_plain_(to, &c)) return ENOMEM;
                continue;
            }
            npuprof_placed_ *const p = npuprof_placed_room_(to, &ev);
            if (!p) return ENOMEM;
            to->spans->count += npuprof_place_(to->image, caches, &ev, p);
        }
    }
    return 0;
}

/* A walk over the placed spans of these kinds, in order. */
typedef struct npuprof_placed_walk_ {
    const npuprof_image_ *image;
    npuprof_list_ list;
    size_t at;
    int error;                             /* 0, or ENOMEM: the system has no memory for them */
} npuprof_placed_walk_;

static npuprof_placed_walk_ npuprof_placed_begin_(const npuprof_image_ *im, uint32_t kinds)
{
    npuprof_placed_walk_ walk = { im, npuprof_list_of_(sizeof(npuprof_placed_)), 0, 0 };
    npuprof_list_ events = npuprof_list_of_(sizeof(npuprof_async_));
    if (!(im->kinds & kinds)) return walk;
    const npuprof_placed_lists_ gather = { im, &walk.list, &events, npuprof_image_ns_(im, im->open_until) };
    walk.error = npuprof_placed_gather_(&gather, kinds);
    if (!walk.error) walk.error = npuprof_async_find_ends_(&walk.list, &events);
    if (!walk.error && !npuprof_list_sort_(&walk.list, npuprof_placed_is_before_))
        walk.error = ENOMEM;
    if (walk.error) npuprof_list_free_(&walk.list);
    npuprof_list_free_(&events);
    return walk;
}

/* The next span. NULL: there is none; the walk is over, and its pages are given back. */
static const npuprof_placed_ *npuprof_placed_next_(npuprof_placed_walk_ *walk)
{
    const npuprof_placed_ *const list = (const npuprof_placed_ *)(const void *)walk->list.at;
    if (walk->at < walk->list.count) return &list[walk->at++];
    npuprof_list_free_(&walk->list);
    return NULL;
}

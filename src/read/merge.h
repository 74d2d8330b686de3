#pragma once   /* SPDX-License-Identifier: MIT */
#include "../numbers/heap.h"
#include "../format/arena.h"
#include "image.h"
#include "cursor.h"
#include "threads.h"
#include "time.h"
#include "../write/lanes.h"

/* ---- Memory pools */

/* The memory records of all threads in the order of time, warm-up left out: a merge with one place in the scratch for each slot.
   Ties go by tid, as the JSON is written. */
typedef struct npuprof_merge_source_ {
    int64_t ns, warm_up_ns;                /* of the slot's next record; until when its thread is in warm-up */
    uint32_t chunk, unit, tid, context;    /* where to find it */
    bool first;
} npuprof_merge_source_;
typedef struct npuprof_merge_ {
    const npuprof_image_ *image;
    npuprof_merge_source_ *heap;
    size_t count, room, left_out;
} npuprof_merge_;

/* Which of two slots is read later? The heap has the earliest on top. */
static bool npuprof_merge_is_later_(const void *one, const void *other)
{
    const npuprof_merge_source_ *const a = (const npuprof_merge_source_ *)one, *const b = (const npuprof_merge_source_ *)other;
    if (a->ns != b->ns) return a->ns > b->ns;
    return a->tid != b->tid ? a->tid > b->tid : a->context > b->context;
}

/* Moves on to the slot's next record of memory or warm-up. False: there is none. */
static bool npuprof_merge_seek_(const npuprof_image_ *im, npuprof_merge_source_ *s, npuprof_cursor_ *c)
{
    npuprof_event_ ev;
    do {
        s->chunk = c->chunk;
        s->unit = c->unit;
        s->first = c->first;
        if (!npuprof_cursor_next_event_(c, &ev)) return false;
    } while (ev.kind != NPUPROF_KIND_MEMORY && ev.kind != NPUPROF_KIND_WARM_UP);
    s->ns = npuprof_image_ns_(im, ev.host_ticks);
    return true;
}
static void npuprof_merge_begin_(npuprof_merge_ *m, npuprof_work_ *w)
{
    npuprof_cursor_ c;
    m->image = &w->image;
    m->heap = (npuprof_merge_source_ *)(void *)w->placed;
    m->room = w->placed_room * sizeof *w->placed / sizeof *m->heap;
    m->count = m->left_out = 0;
    for (const npuprof_slot_head_ *slot = npuprof_image_next_slot_(m->image, NULL); slot; slot = npuprof_image_next_slot_(m->image, slot)) {
        npuprof_merge_source_ s;
        memset(&s, 0, sizeof s);
        npuprof_cursor_begin_slot_(&c, m->image, slot);
        s.tid = c.tid;
        s.context = slot->context;
        s.warm_up_ns = INT64_MIN;
        if (!npuprof_merge_seek_(m->image, &s, &c)) continue;
        if (m->count == m->room) {
            m->left_out++;
            continue;
        }
        m->heap[m->count++] = s;
        npuprof_heap_sift_up_(m->heap, sizeof *m->heap, m->count, npuprof_merge_is_later_);
    }
}
static bool npuprof_merge_next_(npuprof_merge_ *m, npuprof_event_ *ev)
{
    while (m->count) {
        npuprof_merge_source_ *const s = m->heap;
        npuprof_cursor_ c;
        c.image = m->image;
        c.chunk = s->chunk;
        c.unit = s->unit;
        c.tid = s->tid;
        c.left = UINT32_MAX;
        c.first = s->first;
        if (npuprof_cursor_next_event_(&c, ev) && ev->kind == NPUPROF_KIND_WARM_UP) {
            /* Why all: a thread's signal handlers have slots of their own. */
            const int64_t end = npuprof_image_ns_(m->image, ev->end);
            for (npuprof_merge_source_ *other = s; other < s + m->count; other++)
                if (other->tid == s->tid && other->warm_up_ns < end) other->warm_up_ns = end;
        }
        const bool wanted = ev->kind == NPUPROF_KIND_MEMORY && s->ns > s->warm_up_ns;
        if (!npuprof_merge_seek_(m->image, s, &c)) *s = s[--m->count];
        npuprof_heap_sift_down_(m->heap, sizeof *m->heap, m->count, 0, npuprof_merge_is_later_);
        if (wanted) return true;
    }
    return false;
}

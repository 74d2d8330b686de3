#pragma once   /* SPDX-License-Identifier: MIT */
#include "../numbers/heap.h"
#include "../format/arena.h"
#include "image.h"
#include "cursor.h"
#include "threads.h"
#include "time.h"

/* The memory records of all threads in the order of time, without those in warm-up: a merge of the slots by a
   heap, in memory that the caller hands in. Records of the same nanosecond come in the order of tids, as the
   JSON has them. */

typedef struct npuprof_merge_source_ {     /* a slot, and where its next record of memory or warm-up is */
    int64_t ns, warm_up_ns;                /* of that record; until then the thread is in warm-up */
    uint32_t chunk, unit, tid, context;
    bool first;
} npuprof_merge_source_;

typedef struct npuprof_merge_ {
    const npuprof_image_ *image;
    npuprof_merge_source_ *heap;           /* the earliest on top */
    size_t count, capacity, left_out;      /* left_out: slots that found no room */
} npuprof_merge_;

static bool npuprof_merge_is_later_(const void *one, const void *other)
{
    const npuprof_merge_source_ *const a = (const npuprof_merge_source_ *)one;
    const npuprof_merge_source_ *const b = (const npuprof_merge_source_ *)other;
    if (a->ns != b->ns) return a->ns > b->ns;
    return a->tid != b->tid ? a->tid > b->tid : a->context > b->context;
}

/* Moves a source to its next record of memory or warm-up. False: there is none. */
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

static void npuprof_merge_begin_(npuprof_merge_ *m, const npuprof_image_ *im, void *memory, size_t bytes)
{
    npuprof_cursor_ c;
    const npuprof_slot_head_ *slot = NULL;
    m->image = im;
    m->heap = (npuprof_merge_source_ *)memory;
    m->capacity = bytes / sizeof *m->heap;
    m->count = m->left_out = 0;
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL) {
        npuprof_merge_source_ s;
        memset(&s, 0, sizeof s);
        npuprof_cursor_begin_slot_(&c, im, slot);
        s.tid = c.tid;
        s.context = slot->context;
        s.warm_up_ns = INT64_MIN;
        if (!npuprof_merge_seek_(im, &s, &c)) continue;
        if (m->count == m->capacity) {
            m->left_out++;
            continue;
        }
        m->heap[m->count++] = s;
        npuprof_heap_sift_up_(m->heap, sizeof *m->heap, m->count, npuprof_merge_is_later_);
    }
}

/* The next memory record. False: there are no more. */
static bool npuprof_merge_next_(npuprof_merge_ *m, npuprof_event_ *ev)
{
    while (m->count) {
        npuprof_merge_source_ *const s = m->heap;
        npuprof_cursor_ c;
        c.image = m->image;
        c.chunk = s->chunk;
        c.unit = s->unit;
        c.tid = s->tid;
        c.first = s->first;
        if (npuprof_cursor_next_event_(&c, ev) && ev->kind == NPUPROF_KIND_WARM_UP) {
            /* Why all sources of the thread: its signal handlers have slots of their own. */
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

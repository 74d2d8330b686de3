#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "image.h"
#include "cursor.h"
#include "threads.h"
#include "time.h"
#include "kinds.h"

/* Walks the events of one thread in the order of time, and knows for each of them the span around it (its
   parent) and the root of its trace: the PROF_RECORD around it, else the outermost span. A thread's own slot
   and those of its signal handlers are merged.

   Nesting follows from the stamps alone: spans that are over when the next event begins are left, so the
   stack of open spans needs no ends. Data: a walk is large; there is one in the work area (write/work.h). */

enum { NPUPROF_WALK_DEPTH_ = 512 };        /* a deeper span has the span at this depth as its parent */

typedef struct npuprof_walk_ {
    const npuprof_image_ *image;
    uint32_t tid, sources, depth, from;    /* from: the source of the event just given */
    npuprof_cursor_ cursor[NPUPROF_SLOT_CONTEXTS_];       /* of the sources: the thread's slots */
    npuprof_cursor_kinds_ *few;            /* instead of the only one, whatever nests included; or NULL */
    /* the next event of each, if there are several sources */
    npuprof_event_ waiting[NPUPROF_SLOT_CONTEXTS_];
    bool has[NPUPROF_SLOT_CONTEXTS_];
    struct { uint64_t start, end, position, root; } open[NPUPROF_WALK_DEPTH_];
    bool warm[NPUPROF_WALK_DEPTH_];        /* the open span is in warm-up */
    bool has_parent, warm_up;              /* of the event just given, */
    uint64_t parent, root;                 /* their positions, */
    uint64_t parent_start, parent_end;     /* and host ticks */
} npuprof_walk_;

static void npuprof_walk_begin_(npuprof_walk_ *w, const npuprof_image_ *im, uint32_t tid)
{
    const npuprof_slot_head_ *slot = NULL;
    w->image = im;
    w->tid = tid;
    w->sources = w->depth = w->from = 0;
    w->few = NULL;
    while (w->sources < NPUPROF_SLOT_CONTEXTS_ && (slot = npuprof_image_next_slot_of_(im, tid, slot)) != NULL)
        if (NPUPROF_LOAD_(&slot->first_chunk)) {
            npuprof_cursor_begin_slot_(&w->cursor[w->sources], im, slot);
            w->sources++;
        }
    for (uint32_t i = 0; i < w->sources && w->sources > 1; i++)
        w->has[i] = npuprof_cursor_next_event_(&w->cursor[i], &w->waiting[i]);
}

/* Leaves the spans that are over at a moment; `span`: a span begins then, otherwise it is an event. In the
   very tick where a span ends, an event is still inside it, and a span is only if the one around it has no
   length. */
NPUPROF_HOT_ static inline void npuprof_walk_leave_(npuprof_walk_ *w, uint64_t at, bool span)
{
    uint32_t depth = w->depth;
    for (; depth && w->open[depth - 1].end <= at; depth--)
        if (NPUPROF_UNLIKELY_(w->open[depth - 1].end == at) && (!span || w->open[depth - 1].start == at))
            break;
    w->depth = depth;
}

/* Enters a span, which has w->root and w->warm_up. */
NPUPROF_HOT_ static inline void npuprof_walk_enter_(npuprof_walk_ *w, uint64_t start, uint64_t end,
                                                    uint64_t position)
{
    if (w->depth == NPUPROF_WALK_DEPTH_) return;
    w->open[w->depth].start = start;
    w->open[w->depth].end = end;
    w->open[w->depth].position = position;
    w->open[w->depth].root = w->root;
    w->warm[w->depth] = w->warm_up;
    w->depth++;
}

/* The step of npuprof_walk_next_() for a plain span, which the caller has from the cursor. */
NPUPROF_HOT_ static NPUPROF_NOINLINE_ void npuprof_walk_plain_(npuprof_walk_ *w, uint64_t start,
                                                              uint64_t end, uint64_t position)
{
    npuprof_walk_leave_(w, start, true);
    w->has_parent = w->depth > 0;
    w->root = position;
    w->warm_up = false;
    if (w->depth) {
        w->parent = w->open[w->depth - 1].position;
        w->root = w->open[w->depth - 1].root;
        w->warm_up = w->warm[w->depth - 1];
    }
    npuprof_walk_enter_(w, start, end, position);
}

/* The same for an event that is no span. What else the walk knows of it stays unknown. */
NPUPROF_HOT_ static inline void npuprof_walk_plain_event_(npuprof_walk_ *w, uint64_t at)
{
    npuprof_walk_leave_(w, at, false);
    w->warm_up = w->depth && w->warm[w->depth - 1];
}

/* The thread's next event. False: there are no more. */
static bool npuprof_walk_next_(npuprof_walk_ *w, npuprof_event_ *ev)
{
    if (w->sources <= 1) {                 /* nothing to merge, nothing to copy */
        if (!w->sources) return false;
        if (!(w->few ? npuprof_cursor_next_of_kinds_(w->few, ev)
                     : npuprof_cursor_next_event_(&w->cursor[0], ev))) return false;
    } else {
        uint32_t first = UINT32_MAX;
        for (uint32_t i = 0; i < w->sources; i++) {
            const bool earlier =
                first == UINT32_MAX || w->waiting[i].host_ticks < w->waiting[first].host_ticks;
            if (w->has[i] && earlier) first = i;
        }
        if (first == UINT32_MAX) return false;
        *ev = w->waiting[first];
        w->from = first;
        w->has[first] = npuprof_cursor_next_event_(&w->cursor[first], &w->waiting[first]);
    }
    npuprof_walk_leave_(w, ev->host_ticks, npuprof_kind_nests_(ev->kind));
    w->has_parent = w->depth > 0;
    w->parent_start = w->depth ? w->open[w->depth - 1].start : 0;
    w->parent_end = w->depth ? w->open[w->depth - 1].end : 0;
    w->parent = w->depth ? w->open[w->depth - 1].position : 0;
    w->root = w->depth ? w->open[w->depth - 1].root : ev->position;
    w->warm_up = w->depth && w->warm[w->depth - 1];
    if (npuprof_kind_nests_(ev->kind)) {
        if (ev->kind == NPUPROF_KIND_RECORD || ev->kind == NPUPROF_KIND_WARM_UP) w->root = ev->position;
        if (ev->kind == NPUPROF_KIND_WARM_UP) w->warm_up = true;
        npuprof_walk_enter_(w, ev->host_ticks, ev->end, ev->position);
    }
    return true;
}

/* ---- Finished spans outside warm-up, thread by thread: what tables are made of */

typedef struct npuprof_walk_spans_ {
    const npuprof_image_ *image;
    npuprof_walk_ *walk;
    uint32_t tid, kinds;                   /* tid 0: not begun; kinds: a bit for each */
} npuprof_walk_spans_;

static npuprof_walk_spans_ npuprof_walk_begin_spans_(npuprof_walk_ *walk, const npuprof_image_ *im,
                                                     uint32_t kinds)
{
    const npuprof_walk_spans_ it = { im, walk, 0, kinds };
    return it;
}

/* The next span and its duration. False: there are no more. */
static bool npuprof_walk_next_span_(npuprof_walk_spans_ *it, npuprof_event_ *ev, uint64_t *duration_ns)
{
    for (;;) {
        while (it->tid && npuprof_walk_next_(it->walk, ev)) {
            if (!(it->kinds >> ev->kind & 1) || ev->unfinished || it->walk->warm_up) continue;
            const int64_t start = npuprof_image_ns_(it->image, ev->start);
            const int64_t ns = npuprof_image_ns_(it->image, ev->end) - start;
            *duration_ns = ns > 0 ? (uint64_t)ns : 0;
            return true;
        }
        const uint32_t next = npuprof_image_next_tid_(it->image, it->tid);
        if (!next) return false;
        it->tid = next;
        npuprof_walk_begin_(it->walk, it->image, next);
    }
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/wide.h"
#include "image.h"
#include "cursor.h"
#include "place.h"
#include "placed.h"
#include "args.h"

/* Walks placed spans in the order of track and start, and tells for each of a device the execution that it
   lies in. An execution is a span of a whole job on one PE; the spans of its instructions lie inside it.

   Engines of one PE work at the same time, so their spans overlap each other, and nesting alone would put one
   under another. A span therefore belongs to the execution on its track that contains it and has the same
   execution_index, if both have one. An execution is complete, and handed over, when the walk is behind its
   end. */
typedef struct npuprof_execution_ {
    bool used, warm_up, has_link, has_index;
    bool counted;                          /* the device itself says how long it worked (busy_ticks) */
    /* run_ns and sum_ns are known: counted, or spans inside, or stamps of the device */
    bool measured;
    uint32_t device, pe, tid, root_tid;
    uint64_t position, root, execution_index;
    int64_t start_ns, end_ns;
    /* compute inside: the time of any, up to run_end; and of all together */
    int64_t run_end, run_ns, sum_ns;
} npuprof_execution_;

enum { NPUPROF_EXECUTIONS_ = 16 };         /* that a PE may work at at the same time */

/* The caller fills in what is above the line, and what its callbacks need; a callback may be NULL. */
typedef struct npuprof_device_walk_ {
    /* within: NULL if the span is itself an execution, in none, or of no device */
    void (*span)(struct npuprof_device_walk_ *, const npuprof_event_ *, const npuprof_placed_ *,
                 const npuprof_execution_ *within);
    void (*execution)(struct npuprof_device_walk_ *, const npuprof_execution_ *);
    void *user;                            /* these two are the callbacks' own */
    FILE *out;
    /* ---- */
    npuprof_execution_ list[NPUPROF_EXECUTIONS_];
} npuprof_device_walk_;

/* Is it compute? Not the execution itself, and no transfer. */
static bool npuprof_execution_is_compute_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    return !npuprof_image_text_is_(im, ev->name, "Execution") &&
           !npuprof_image_text_is_(im, ev->name, "Load") && !npuprof_image_text_is_(im, ev->name, "Store");
}

/* Hands over the executions that are not on this track, or ended before this moment, the earliest first. */
static void npuprof_execution_close_(npuprof_device_walk_ *d, uint64_t track, int64_t before_ns)
{
    for (;;) {
        npuprof_execution_ *oldest = NULL;
        for (npuprof_execution_ *e = d->list; e < d->list + NPUPROF_EXECUTIONS_; e++) {
            const uint64_t own = (uint64_t)NPUPROF_TRACK_DEVICE_ << 56 | (uint64_t)e->device << 32 | e->pe;
            const bool over = own != track || e->end_ns < before_ns;
            if (e->used && over && (!oldest || e->start_ns < oldest->start_ns)) oldest = e;
        }
        if (!oldest) return;
        oldest->used = false;
        if (d->execution) d->execution(d, oldest);
    }
}

static void npuprof_execution_begin_(npuprof_device_walk_ *d, const npuprof_image_ *im,
                                     const npuprof_event_ *ev, const npuprof_placed_ *p)
{
    npuprof_execution_ *e = d->list;
    while (e < d->list + NPUPROF_EXECUTIONS_ - 1 && e->used) e++;
    if (e->used && d->execution) d->execution(d, e);
    memset(e, 0, sizeof *e);
    e->used = true;
    e->device = ev->device;
    e->pe = ev->pe;
    e->tid = ev->tid;
    e->position = ev->position;
    e->has_index = npuprof_args_find_(im, ev, "execution_index", &e->execution_index) != 0;
    e->has_link = ev->has_link;
    e->warm_up = ev->has_link && ev->link.warm_up;
    e->root_tid = ev->has_link ? ev->link.slot : ev->tid;
    e->root = ev->has_link ? ev->link.root_position : ev->position;
    e->start_ns = e->run_end = p->start_ns;
    e->end_ns = p->end_ns;
    uint64_t busy;
    uint64_t ticks = ev->end - ev->start;
    if (ev->flags & NPUPROF_STAMP_HOST && npuprof_args_find_(im, ev, "ticks", &ticks) != NPUPROF_ARG_UINT)
        ticks = 0;
    const bool has_busy = npuprof_args_find_(im, ev, "busy_ticks", &busy) == NPUPROF_ARG_UINT;
    e->counted = has_busy && ev->end > ev->start && ticks && p->end_ns > p->start_ns;
    e->measured = e->counted || !(ev->flags & (NPUPROF_STAMP_SAMPLED | NPUPROF_STAMP_HOST));
    if (!e->counted) return;
    const uint64_t ns = (uint64_t)(p->end_ns - p->start_ns);
    e->run_ns = e->sum_ns = (int64_t)npuprof_scale_(ns, busy < ticks ? busy : ticks, ticks);
}

/* The execution that a span lies in, the latest one; NULL: in none. */
static npuprof_execution_ *npuprof_execution_around_(npuprof_device_walk_ *d, const npuprof_image_ *im,
                                                     const npuprof_event_ *ev, const npuprof_placed_ *p)
{
    uint64_t index = 0;
    const bool has_index = npuprof_args_find_(im, ev, "execution_index", &index) != 0;
    npuprof_execution_ *best = NULL;
    for (npuprof_execution_ *e = d->list; e < d->list + NPUPROF_EXECUTIONS_; e++) {
        if (!e->used || e->start_ns > p->start_ns || p->end_ns > e->end_ns) continue;
        if (has_index && e->has_index && e->execution_index != index) continue;
        if (!best || e->start_ns > best->start_ns) best = e;
    }
    return best;
}

/* Adds the time of a span to its execution. */
static void npuprof_execution_add_(npuprof_execution_ *e, const npuprof_image_ *im, const npuprof_event_ *ev,
                                   const npuprof_placed_ *p)
{
    e->measured = true;
    if (e->counted || !npuprof_execution_is_compute_(im, ev)) return;
    e->sum_ns += p->end_ns - p->start_ns;
    if (p->end_ns <= e->run_end) return;
    e->run_ns += p->end_ns - (p->start_ns > e->run_end ? p->start_ns : e->run_end);
    e->run_end = p->end_ns;
}

/* Is a placed span in warm-up? */
static bool npuprof_execution_is_warm_up_(const npuprof_event_ *ev, const npuprof_execution_ *within)
{
    return within ? within->warm_up : ev->has_link && ev->link.warm_up;
}

/* Walks all placed spans of these kinds, a bit for each, with the callbacks of *d. Returns 0 or an errno
   value. */
static int npuprof_execution_walk_(npuprof_device_walk_ *d, const npuprof_image_ *im, uint32_t kinds)
{
    npuprof_placed_walk_ spans = npuprof_placed_begin_(im, kinds);
    npuprof_event_ ev;
    memset(d->list, 0, sizeof d->list);
    for (const npuprof_placed_ *p; (p = npuprof_placed_next_(&spans)) != NULL;) {
        if (!npuprof_cursor_decode_at_(im, p->locator, &ev)) continue;
        const bool is_device = ev.kind == NPUPROF_KIND_DEVICE;
        npuprof_execution_ *within = NULL;
        if (is_device && ev.flags & NPUPROF_STAMP_INSTANT) continue;
        npuprof_execution_close_(d, p->track, p->start_ns);
        if (is_device && npuprof_args_is_execution_(im, &ev)) npuprof_execution_begin_(d, im, &ev, p);
        else if (is_device) within = npuprof_execution_around_(d, im, &ev, p);
        if (within) npuprof_execution_add_(within, im, &ev, p);
        if (d->span) d->span(d, &ev, p, within);
    }
    npuprof_execution_close_(d, 0, 0);
    return spans.error;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/wide.h"
#include "image.h"
#include "cursor.h"
#include "place.h"
#include "batch.h"
#include "walk.h"
#include "../write/lanes.h"

/* Device spans on their way through a track in order: which execution does each belong to? */
typedef struct npuprof_execution_ {
    bool used, warm_up, has_link;
    uint32_t device, pe, tid;
    uint64_t position, execution_index, root;
    uint32_t root_tid;
    bool has_index, counted, measured;     /* counted: the device itself says how long it worked; measured: that, or spans inside, or its own stamps do */
    int64_t start_ns, end_ns, run_end, run_ns, sum_ns;
} npuprof_execution_;

/* Is it compute? Not Execution, Load or Store. */
static bool npuprof_execution_is_compute_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    return !npuprof_image_text_is_(im, ev->name, "Execution") && !npuprof_image_text_is_(im, ev->name, "Load") && !npuprof_image_text_is_(im, ev->name, "Store");
}

/* Calls back for every device span in order of track and start, with the execution it lies in (NULL: none), and for every
   execution once it is complete.
   Why by containment and index: engines of one PE overlap each other, so nesting alone would hang one under another. */
enum { NPUPROF_EXECUTIONS_ = 16 };
typedef struct npuprof_device_walk_ {
    npuprof_work_ *work;
    void (*span)(struct npuprof_device_walk_ *, const npuprof_event_ *, const npuprof_placed_ *, const npuprof_execution_ *);
    void (*execution)(struct npuprof_device_walk_ *, const npuprof_execution_ *);
    FILE *out;
    uint64_t rows;
} npuprof_device_walk_;

static void npuprof_execution_close_(npuprof_device_walk_ *d, npuprof_execution_ *list, uint64_t before_track, int64_t before_ns)
{
    for (;;) {
        npuprof_execution_ *oldest = NULL;
        for (npuprof_execution_ *e = list; e < list + NPUPROF_EXECUTIONS_; e++) {
            const uint64_t track = (uint64_t)NPUPROF_TRACK_DEVICE_ << 56 | (uint64_t)e->device << 32 | e->pe;
            if (e->used && (track != before_track || e->end_ns < before_ns) && (!oldest || e->start_ns < oldest->start_ns)) oldest = e;
        }
        if (!oldest) return;
        oldest->used = false;
        if (d->execution) d->execution(d, oldest);
    }
}

static void npuprof_execution_walk_devices_(npuprof_device_walk_ *d)
{
    npuprof_work_ *w = d->work;
    const npuprof_image_ *im = &w->image;
    npuprof_execution_ list[NPUPROF_EXECUTIONS_];
    npuprof_placed_ last;
    npuprof_event_ ev;
    size_t count;
    memset(list, 0, sizeof list);
    for (const npuprof_placed_ *after = NULL; (count = npuprof_batch_next_(im, 1u << NPUPROF_KIND_DEVICE, after, w->placed, w->placed_room)) > 0;
         after = &last) {
        for (size_t i = 0; i < count; i++) {
            const npuprof_placed_ *p = &w->placed[i];
            if (!npuprof_cursor_decode_at_(im, p->locator, &ev)) continue;
            npuprof_execution_close_(d, list, p->track, p->start_ns);
            uint64_t index = 0;
            const bool has_index = npuprof_args_find_(im, &ev, "execution_index", &index) != 0;
            const npuprof_execution_ *within = NULL;
            if (npuprof_walk_is_execution_(im, &ev)) {
                npuprof_execution_ *e = list;
                while (e < list + NPUPROF_EXECUTIONS_ - 1 && e->used) e++;
                if (e->used && d->execution) d->execution(d, e);
                memset(e, 0, sizeof *e);
                e->used = true;
                e->device = ev.device;
                e->pe = ev.pe;
                e->tid = ev.tid;
                e->position = ev.position;
                e->has_index = has_index;
                e->execution_index = index;
                e->has_link = ev.has_link;
                e->warm_up = ev.has_link && ev.link.warm_up;
                e->root_tid = ev.has_link ? ev.link.slot : ev.tid;
                e->root = ev.has_link ? ev.link.root_position : ev.position;
                e->start_ns = e->run_end = p->start_ns;
                e->end_ns = p->end_ns;
                uint64_t busy;
                e->counted = npuprof_args_find_(im, &ev, "busy_ticks", &busy) == NPUPROF_ARG_UINT && ev.end > ev.start && p->end_ns > p->start_ns;
                e->measured = e->counted || !(ev.flags & NPUPROF_STAMP_SAMPLED);
                if (e->counted)
                    e->run_ns = e->sum_ns = (int64_t)npuprof_scale_((uint64_t)(p->end_ns - p->start_ns), busy < ev.end - ev.start ? busy : ev.end - ev.start,
                                                                    ev.end - ev.start);
            } else {
                npuprof_execution_ *best = NULL;
                for (npuprof_execution_ *e = list; e < list + NPUPROF_EXECUTIONS_; e++)
                    if (e->used && e->start_ns <= p->start_ns && p->end_ns <= e->end_ns &&
                        (!has_index || !e->has_index || e->execution_index == index) && (!best || e->start_ns > best->start_ns))
                        best = e;
                if (best) best->measured = true;
                if (best && !best->counted && npuprof_execution_is_compute_(im, &ev)) {
                    best->sum_ns += p->end_ns - p->start_ns;
                    if (p->end_ns > best->run_end) {
                        best->run_ns += p->end_ns - (p->start_ns > best->run_end ? p->start_ns : best->run_end);
                        best->run_end = p->end_ns;
                    }
                }
                within = best;
            }
            if (d->span) d->span(d, &ev, p, within);
        }
        last = w->placed[count - 1];
    }
    npuprof_execution_close_(d, list, 0, 0);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../format/arena.h"
#include "image.h"
#include "threads.h"
#include "time.h"
#include "list.h"
#include "kinds.h"
#include "walk.h"
#include "scene.h"

/* Arrows of PROF_FLOW_OUT and PROF_FLOW_IN: each IN inside a span gets an arrow from the newest OUT before it
   that has its id and is inside a span. Each arrow has an id of its own, so users may use theirs again. All
   flows are collected and sorted by id and time; then each IN comes behind its OUT. */

/* One that is inside a span. ns: where its arrow begins or ends. order: the same, but never before that of
   the flow before it on its thread. Why: a thread's flows keep their order even if its clock steps back. */
typedef struct npuprof_flow_ {
    uint64_t id, locator;
    int64_t ns, order;
    uint32_t tid;
    bool in;
} npuprof_flow_;

/* By id and time; OUTs first, then by thread. */
NPUPROF_HOT_ static bool npuprof_flow_before_(const void *one, const void *other)
{
    const npuprof_flow_ *const a = (const npuprof_flow_ *)one, *const b = (const npuprof_flow_ *)other;
    if (a->id != b->id) return a->id < b->id;
    if (a->order != b->order) return a->order < b->order;
    if (a->in != b->in) return b->in;
    if (a->tid != b->tid) return a->tid < b->tid;
    return a->locator < b->locator;
}

/* Is the flow that was just walked to inside a span? *ns: where its arrow ends.
   Why before the end of the span: viewers bind an arrow to the slice around its stamp, and the end is
   outside. */
static bool npuprof_flow_arrow_ns_(const npuprof_scene_ *s, const npuprof_event_ *ev, int64_t *ns)
{
    const npuprof_image_ *const im = s->image;
    if (!s->walk->has_parent) return false;
    const int64_t parent_end = npuprof_image_ns_(im, s->walk->parent_end);
    *ns = npuprof_image_ns_(im, ev->start);
    if (*ns >= parent_end) *ns = parent_end - 1;
    return *ns >= npuprof_image_ns_(im, s->walk->parent_start);
}

/* Adds the flows of a thread. Returns 0 or an errno value. */
static int npuprof_flow_gather_thread_(npuprof_scene_ *s, uint32_t tid, npuprof_list_ *flows)
{
    const uint32_t kinds = 1u << NPUPROF_KIND_FLOW_OUT | 1u << NPUPROF_KIND_FLOW_IN;
    npuprof_event_ ev;
    npuprof_cursor_kinds_ few;
    int64_t order = INT64_MIN;
    npuprof_walk_begin_(s->walk, s->image, tid);
    npuprof_cursor_begin_kinds_(&few, kinds | NPUPROF_KINDS_THAT_NEST_);
    few.cursor = s->walk->cursor[0];
    s->walk->few = &few;
    while (npuprof_walk_next_(s->walk, &ev)) {
        if (!(kinds >> ev.kind & 1)) continue;
        npuprof_flow_ *const f = (npuprof_flow_ *)npuprof_list_room_(flows);
        if (!f) return ENOMEM;
        if (!npuprof_flow_arrow_ns_(s, &ev, &f->ns)) continue;
        if (f->ns > order) order = f->ns;
        f->id = ev.value;
        f->locator = ev.locator;
        f->order = order;
        f->tid = tid;
        f->in = ev.kind == NPUPROF_KIND_FLOW_IN;
        flows->count++;
    }
    return 0;
}

/* All of them: tells the output their arrows. */
static void npuprof_scene_flows_(npuprof_scene_ *s)
{
    const npuprof_image_ *const im = s->image;
    npuprof_list_ flows = npuprof_list_of_(sizeof(npuprof_flow_));
    const npuprof_flow_ *out = NULL;       /* the newest one */
    int error = 0;
    if (!(im->kinds >> NPUPROF_KIND_FLOW_IN & 1)) return;
    for (uint32_t tid = 0; !error && (tid = npuprof_image_next_tid_(im, tid)) != 0;)
        error = npuprof_flow_gather_thread_(s, tid, &flows);
    if (!error && !npuprof_list_sort_(&flows, npuprof_flow_before_)) error = ENOMEM;
    const npuprof_flow_ *const list = (const npuprof_flow_ *)(const void *)flows.at;
    for (const npuprof_flow_ *f = list; !error && f < list + flows.count; f++) {
        if (!f->in) out = f;
        else if (out && out->id == f->id && out->ns <= f->ns)
            s->output->arrow(s, out->tid, out->ns - im->origin_ns, f->tid, f->ns - im->origin_ns);
    }
    npuprof_list_free_(&flows);
    if (!s->error) s->error = error;
}

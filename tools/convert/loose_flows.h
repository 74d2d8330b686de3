#pragma once   /* SPDX-License-Identifier: MIT */
#include "api.h"

/* Ends of PROF_FLOW_OUT and PROF_FLOW_IN without a partner in their process, for `merge`: the partner may be
   in another one. Lines of "in,id,tid,ns,span_start_ns,span_end_ns"; in: 0 or 1; times as in the JSON. */

typedef struct npuprof_load_loose_flow_ {
    npuprof_flow_ flow;                  /* first: npuprof_flow_before_() sorts by it */
    int64_t start, end;                  /* of the span around it */
} npuprof_load_loose_flow_;

static bool npuprof_load_loose_gather_(npuprof_scene_ *s, uint32_t tid, npuprof_list_ *flows)
{
    npuprof_event_ ev;
    npuprof_load_loose_flow_ f;
    memset(&f, 0, sizeof f);
    f.flow.order = INT64_MIN;
    f.flow.tid = tid;
    npuprof_walk_begin_(s->walk, s->image, tid);
    while (npuprof_walk_next_(s->walk, &ev)) {
        f.flow.in = ev.kind == NPUPROF_KIND_FLOW_IN;
        if ((!f.flow.in && ev.kind != NPUPROF_KIND_FLOW_OUT) ||
            !npuprof_flow_arrow_ns_(s, &ev, &f.flow.ns)) continue;
        if (f.flow.ns > f.flow.order) f.flow.order = f.flow.ns;
        f.flow.id = ev.value;
        f.flow.locator = ev.locator;
        f.start = npuprof_image_ns_(s->image, s->walk->parent_start);
        f.end = npuprof_image_ns_(s->image, s->walk->parent_end);
        if (!npuprof_list_add_(flows, &f)) return false;
    }
    return true;
}

static void npuprof_load_loose_put_(npuprof_scene_ *s, const npuprof_load_loose_flow_ *f)
{
    npuprof_out_ *const o = &((npuprof_work_ *)s->user)->out;
    const int64_t ns[] = { f->flow.ns, f->start, f->end };
    npuprof_out_puts_(o, f->flow.in ? "1," : "0,");
    npuprof_out_uint_(o, f->flow.id);
    npuprof_out_puts_(o, ",");
    npuprof_out_uint_(o, f->flow.tid);
    for (int i = 0; i < 3; i++) {
        npuprof_out_puts_(o, ",");
        npuprof_out_int_(o, ns[i] - s->image->origin_ns);
    }
    npuprof_out_puts_(o, "\n");
}

/* Which have no partner: as npuprof_scene_flows_() joins them. */
static void npuprof_load_loose_find_(npuprof_scene_ *s, const npuprof_list_ *flows)
{
    const npuprof_load_loose_flow_ *const list = (const npuprof_load_loose_flow_ *)(const void *)flows->at;
    const npuprof_load_loose_flow_ *out = NULL;
    bool joined = true;                  /* `out` */
    for (const npuprof_load_loose_flow_ *f = list; f < list + flows->count; f++) {
        const bool has_out = out && out->flow.id == f->flow.id && out->flow.ns <= f->flow.ns;
        if (f->flow.in && has_out) {
            joined = true;
        } else if (f->flow.in) {
            npuprof_load_loose_put_(s, f);
        } else {
            if (!joined) npuprof_load_loose_put_(s, out);
            out = f;
            joined = false;
        }
    }
    if (!joined) npuprof_load_loose_put_(s, out);
}

static int npuprof_load_loose_write_locked_(npuprof_sink sink)
{
    npuprof_work_ *const w = npuprof_work_begin_(sink);
    if (!w) return ENOMEM;
    npuprof_image_open_(&w->image);
    npuprof_scene_ *const s = npuprof_work_scene_(w, NULL, w);
    npuprof_list_ flows = npuprof_list_of_(sizeof(npuprof_load_loose_flow_));
    const uint32_t kinds = w->image.kinds >> NPUPROF_KIND_FLOW_OUT | w->image.kinds >> NPUPROF_KIND_FLOW_IN;
    bool whole = true;
    for (uint32_t tid = 0; whole && kinds & 1 && (tid = npuprof_image_next_tid_(&w->image, tid)) != 0;)
        whole = npuprof_load_loose_gather_(s, tid, &flows);
    whole = whole && npuprof_list_sort_(&flows, npuprof_flow_before_);
    if (whole) npuprof_load_loose_find_(s, &flows);
    npuprof_list_free_(&flows);
    const int error = npuprof_work_finish_(w);
    return whole ? error : ENOMEM;
}

/* Writes those of the loaded image to a file. Results as npuprof_dump(). */
NPUPROF_API_ npuprof_result npuprof_write_loose_flows(const char *path)
{
    return npuprof_file_write_by_(path, npuprof_load_loose_write_locked_, NULL);
}

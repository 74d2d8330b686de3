#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "work.h"

/* Lanes: a viewer's track shows spans that nest. Spans of a track that overlap without nesting go into
   further lanes, each a track of its own. Spans come in the order of their starts; each goes into the first
   lane of its group where it nests or stands free.

   A lane is a stack of the ends of its open spans, as a list of nodes in the scratch memory (w->nodes). */

/* Spans of one track that must not share lanes: on a device's PE whole executions are above their
   instructions, so that arrows end at the execution; sampled spans go by stream. */
enum { NPUPROF_GROUP_EXECUTIONS_ = 0, NPUPROF_GROUP_INSTRUCTIONS_, NPUPROF_GROUP_STREAM_ };
static const npuprof_lane_group_ npuprof_lane_no_group_ = { 0, 0 };

static inline void npuprof_lane_clear_all_(npuprof_work_ *w)
{
    w->lanes = 0;
    w->free_node = 0;
    w->fresh_node = 1;
    w->nodes[0].end = INT64_MAX;
}

/* Takes the spans off a lane that are over at a moment. */
NPUPROF_HOT_ static inline void npuprof_lane_pop_(npuprof_work_ *w, uint32_t lane, int64_t start)
{
    uint32_t top = w->top[lane];
    while (w->nodes[top].end <= start) {
        const uint32_t node = top;
        top = w->nodes[node].below;
        w->nodes[node].below = w->free_node;
        w->free_node = node;
    }
    w->top[lane] = top;
}

/* Puts a span into a lane. False: it neither nests nor stands free there, or there is no node left. */
NPUPROF_HOT_ static inline bool npuprof_lane_nest_(npuprof_work_ *w, uint32_t lane, int64_t start,
                                                   int64_t end)
{
    npuprof_lane_node_ *const nodes = w->nodes, *const last = &nodes[w->top[lane]];
    if (last->end <= start) {              /* the next span in the one around the last: it takes its place */
        const int64_t around = nodes[last->below].end;
        if (start < around && end <= around) {
            last->end = end;
            return true;
        }
    }
    npuprof_lane_pop_(w, lane, start);
    const uint32_t top = w->top[lane];
    uint32_t node = w->free_node;
    if (nodes[top].end < end) return false;
    if (node) {
        w->free_node = nodes[node].below;
    } else {
        node = w->fresh_node;
        if (node == w->node_count) return false;
        w->fresh_node++;
    }
    nodes[node].end = end;
    nodes[node].below = top;
    w->top[lane] = node;
    return true;
}

static inline void npuprof_lane_add_(npuprof_work_ *w, npuprof_lane_group_ group)
{
    w->top[w->lanes] = 0;
    w->tid[w->lanes] = 0;
    w->group[w->lanes] = group;
    w->lanes++;
}

static inline bool npuprof_lane_same_group_(npuprof_lane_group_ a, npuprof_lane_group_ b)
{
    return a.sort == b.sort && a.stream == b.stream;
}

/* Puts a span into the first lane of its group that can take it; if there are too many lanes, of any group.
   Returns the lane. NPUPROF_LANES_: no lane or no node is left, and the span gets a track of its own. */
static inline uint32_t npuprof_lane_find_(npuprof_work_ *w, npuprof_lane_group_ group, int64_t start,
                                          int64_t end)
{
    uint32_t lane = 0;
    for (; lane < w->lanes; lane++) npuprof_lane_pop_(w, lane, start);
    for (lane = 0; lane < NPUPROF_LANES_; lane++) {
        if (lane == w->lanes) npuprof_lane_add_(w, group);
        if (npuprof_lane_same_group_(w->group[lane], group) && npuprof_lane_nest_(w, lane, start, end))
            return lane;
        if (!w->free_node && w->fresh_node == w->node_count) return NPUPROF_LANES_;
    }
    for (lane = 0; lane < NPUPROF_LANES_ && !npuprof_lane_nest_(w, lane, start, end);) lane++;
    return lane;
}

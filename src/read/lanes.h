#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"

/* Lanes: a viewer's track shows spans that nest. Spans of a track that overlap without nesting go into
   further lanes, each a track of its own. Spans come in the order of their starts; each goes into the first
   lane of its group where it nests or stands free.

   Data: a lane is a stack of the ends of its open spans, as a list of nodes. The memory is the caller's. */

enum { NPUPROF_LANES_ = 256 };

/* mark: the output's own word of the span, for its end. */
typedef struct npuprof_lane_node_ { int64_t end; uint32_t below, mark; } npuprof_lane_node_;

/* Spans of one track that must not share lanes: on a device's PE whole executions are above their
   instructions, so that arrows end at the execution; sampled spans go by stream. */
enum { NPUPROF_GROUP_EXECUTIONS_ = 0, NPUPROF_GROUP_INSTRUCTIONS_, NPUPROF_GROUP_STREAM_ };
typedef struct npuprof_lane_group_ { uint32_t sort; uint64_t stream; } npuprof_lane_group_;
static const npuprof_lane_group_ npuprof_lane_no_group_ = { 0, 0 };

typedef struct npuprof_lane_set_ {
    npuprof_lane_node_ *nodes;             /* [0] is below all others, and never ends */
    uint32_t node_count, free_node, fresh_node;      /* nodes from fresh_node on were never used */
    uint32_t count;
    uint32_t top[NPUPROF_LANES_];
    npuprof_lane_group_ group[NPUPROF_LANES_];
    /* the output's numbers of the tracks, 0: not begun; and of that of the last span that got no lane */
    uint64_t track[NPUPROF_LANES_ + 1];
} npuprof_lane_set_;

static inline void npuprof_lane_clear_all_(npuprof_lane_set_ *l)
{
    l->count = 0;
    l->free_node = 0;
    l->fresh_node = 1;
    l->nodes[0].end = INT64_MAX;
}

/* Takes the spans off a lane that are over at a moment. */
NPUPROF_HOT_ static inline void npuprof_lane_pop_(npuprof_lane_set_ *l, uint32_t lane, int64_t start)
{
    uint32_t top = l->top[lane];
    while (l->nodes[top].end <= start) {
        const uint32_t node = top;
        top = l->nodes[node].below;
        l->nodes[node].below = l->free_node;
        l->free_node = node;
    }
    l->top[lane] = top;
}

/* Takes the innermost open span off a lane. */
static inline void npuprof_lane_drop_(npuprof_lane_set_ *l, uint32_t lane)
{
    const uint32_t node = l->top[lane];
    l->top[lane] = l->nodes[node].below;
    l->nodes[node].below = l->free_node;
    l->free_node = node;
}

/* Puts a span into a lane. False: it neither nests nor stands free there, or there is no node left. */
NPUPROF_HOT_ static inline bool npuprof_lane_nest_(npuprof_lane_set_ *l, uint32_t lane, int64_t start,
                                                   int64_t end)
{
    npuprof_lane_node_ *const nodes = l->nodes, *const last = &nodes[l->top[lane]];
    if (last->end <= start) {              /* the next span in the one around the last: it takes its place */
        const int64_t around = nodes[last->below].end;
        if (start < around && end <= around) {
            last->end = end;
            return true;
        }
    }
    npuprof_lane_pop_(l, lane, start);
    const uint32_t top = l->top[lane];
    uint32_t node = l->free_node;
    if (nodes[top].end < end) return false;
    if (node) {
        l->free_node = nodes[node].below;
    } else {
        node = l->fresh_node;
        if (node == l->node_count) return false;
        l->fresh_node++;
    }
    nodes[node].end = end;
    nodes[node].below = top;
    l->top[lane] = node;
    return true;
}

static inline void npuprof_lane_add_(npuprof_lane_set_ *l, npuprof_lane_group_ group)
{
    l->top[l->count] = 0;
    l->track[l->count] = 0;
    l->group[l->count] = group;
    l->count++;
}

static inline bool npuprof_lane_same_group_(npuprof_lane_group_ a, npuprof_lane_group_ b)
{
    return a.sort == b.sort && a.stream == b.stream;
}

/* Is no node left? */
static inline bool npuprof_lane_is_full_(const npuprof_lane_set_ *l)
{
    return !l->free_node && l->fresh_node == l->node_count;
}

/* Puts a span into the first lane of its group that can take it; if there are too many lanes, of any group.
   Returns the lane. NPUPROF_LANES_: no lane or no node is left, and the span gets a track of its own. */
static inline uint32_t npuprof_lane_find_(npuprof_lane_set_ *l, npuprof_lane_group_ group, int64_t start,
                                          int64_t end)
{
    uint32_t lane = 0;
    for (; lane < l->count; lane++) npuprof_lane_pop_(l, lane, start);
    for (lane = 0; lane < NPUPROF_LANES_; lane++) {
        if (lane == l->count) npuprof_lane_add_(l, group);
        if (npuprof_lane_same_group_(l->group[lane], group) && npuprof_lane_nest_(l, lane, start, end))
            return lane;
        if (npuprof_lane_is_full_(l)) return NPUPROF_LANES_;
    }
    for (lane = 0; lane < NPUPROF_LANES_ && !npuprof_lane_nest_(l, lane, start, end);) lane++;
    return lane;
}

/* The lane of an event without length: the first of its group, whatever is open there. */
static inline uint32_t npuprof_lane_point_(npuprof_lane_set_ *l, npuprof_lane_group_ group)
{
    uint32_t lane = 0;
    while (lane < l->count && !npuprof_lane_same_group_(l->group[lane], group)) lane++;
    if (lane == NPUPROF_LANES_) return 0;
    if (lane == l->count) npuprof_lane_add_(l, group);
    return lane;
}

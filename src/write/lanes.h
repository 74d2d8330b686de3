#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../arena/state.h"
#include "../read/image.h"
#include "../read/place.h"
#include "../read/walk.h"
#include "text.h"

/* ---- The scratch, shared out */

typedef struct npuprof_lane_node_ { int64_t end; uint32_t below, pad; } npuprof_lane_node_;
enum { NPUPROF_LANES_ = 256 };
/* Spans that have lanes of their own on a track: on a device's PE whole executions, above their instructions, so that arrows end at the
   execution; sampled spans by stream. */
enum { NPUPROF_GROUP_EXECUTIONS_ = 0, NPUPROF_GROUP_INSTRUCTIONS_, NPUPROF_GROUP_STREAM_ };
typedef struct npuprof_lane_group_ { uint32_t sort; uint64_t stream; } npuprof_lane_group_;
static const npuprof_lane_group_ npuprof_lane_no_group_ = { 0, 0 };
/* What the spans of a site and a track have in common: all the text but the numbers. Kept for the sites met last. */
enum { NPUPROF_SPAN_TEXTS_ = 256, NPUPROF_SPAN_TEXT_MAX_ = 128 };
typedef struct npuprof_kept_ { uint64_t key; uint32_t length, pad; char text[NPUPROF_SPAN_TEXT_MAX_]; } npuprof_kept_;   /* key: tid << 32 | site << 8 | kind; 0: none */
typedef struct npuprof_work_ {
    npuprof_out_ out;
    npuprof_lane_node_ *nodes;             /* [0] lies below all others, and never ends */
    uint32_t node_count, free_node, fresh_node, lanes;   /* fresh_node: from here on none was ever used */
    uint32_t top[NPUPROF_LANES_], tid[NPUPROF_LANES_ + 1];   /* of the track at hand */
    npuprof_lane_group_ group[NPUPROF_LANES_];
    uint32_t next_tid;
    npuprof_placed_ *placed;
    size_t placed_room;
    npuprof_image_ image;
    npuprof_walk_ walk;
    bool comma;
    uint64_t arrows;
    npuprof_kept_ kept[NPUPROF_SPAN_TEXTS_];
    uint32_t trace_tid;                    /* trace_id is the text of this trace's */
    uint64_t trace_root;
    char trace_id[33];
    npuprof_stamp_cache_ stamps;
    uint64_t skipped_values;
} npuprof_work_;
static npuprof_work_ npuprof_work_area_;

static void npuprof_work_share_scratch_(npuprof_work_ *w, npuprof_sink sink)
{
    uint8_t *p = (uint8_t *)npuprof_scratch_;
    const size_t quarter = sizeof npuprof_scratch_ / 4 / 16 * 16;
    memset(w, 0, sizeof *w);
    w->out.sink = sink;
    w->out.bytes = (char *)p;
    /* Why no more: what is written is still in the nearest cache when the system copies it. */
    w->out.room = quarter < 32768 ? quarter : 32768;
    w->trace_root = UINT64_MAX;            /* of none */
    w->nodes = (npuprof_lane_node_ *)(void *)(p + quarter);
    w->node_count = (uint32_t)(quarter / sizeof *w->nodes);
    w->placed = (npuprof_placed_ *)(void *)(p + 2 * quarter);
    w->placed_room = (sizeof npuprof_scratch_ - 2 * quarter) / sizeof *w->placed;
}

static inline void npuprof_lane_clear_all_(npuprof_work_ *w)
{
    w->lanes = 0;
    w->free_node = 0;
    w->fresh_node = 1;
    w->nodes[0].end = INT64_MAX;
}

static inline void npuprof_lane_pop_(npuprof_work_ *w, uint32_t lane, int64_t start)
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
/* Puts the span into the lane if it nests or stands free there. */
static inline bool npuprof_lane_nest_(npuprof_work_ *w, uint32_t lane, int64_t start, int64_t end)
{
    npuprof_lane_pop_(w, lane, start);
    npuprof_lane_node_ *const nodes = w->nodes;
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
static inline bool npuprof_lane_same_group_(npuprof_lane_group_ a, npuprof_lane_group_ b) { return a.sort == b.sort && a.stream == b.stream; }
/* The first lane of its group where the span nests or stands free; of any group, where there are no more. Spans come in order of their
   starts. NPUPROF_LANES_: there is no room to know; the span then gets a track of its own. */
static inline uint32_t npuprof_lane_find_(npuprof_work_ *w, npuprof_lane_group_ group, int64_t start, int64_t end)
{
    uint32_t lane = 0;
    for (; lane < w->lanes; lane++) npuprof_lane_pop_(w, lane, start);
    for (lane = 0; lane < NPUPROF_LANES_; lane++) {
        if (lane == w->lanes) npuprof_lane_add_(w, group);
        if (npuprof_lane_same_group_(w->group[lane], group) && npuprof_lane_nest_(w, lane, start, end)) return lane;
        if (!w->free_node && w->fresh_node == w->node_count) return NPUPROF_LANES_;
    }
    for (lane = 0; lane < NPUPROF_LANES_ && !npuprof_lane_nest_(w, lane, start, end);) lane++;
    return lane;
}

/* The place where the text of a site and a track is kept. What lies there may be another's. */
static inline npuprof_kept_ *npuprof_span_text_at_(npuprof_work_ *w, uint64_t key) { return &w->kept[((uint32_t)key >> 8) % NPUPROF_SPAN_TEXTS_]; }
static inline uint64_t npuprof_span_text_key_(uint32_t tid, uint32_t site, uint32_t kind) { return (uint64_t)tid << 32 | site << 8 | kind; }
/* Between these two the writer's output is what will be kept. False: it is too long. */
static inline void npuprof_span_text_begin_(npuprof_work_ *w, npuprof_kept_ *kept, npuprof_out_ *aside)
{
    *aside = w->out;
    kept->key = 0;
    w->out.bytes = kept->text;
    w->out.room = sizeof kept->text;
    w->out.used = 0;
    w->out.error = -1;
}
static inline bool npuprof_span_text_end_(npuprof_work_ *w, npuprof_kept_ *kept, uint64_t key, const npuprof_out_ *aside)
{
    const bool fits = w->out.flushes == aside->flushes;
    kept->length = (uint32_t)w->out.used;
    if (fits) kept->key = key;
    w->out = *aside;
    return fits;
}
/* Puts what is kept, with room for numbers behind it; returns the end. */
static inline char *npuprof_span_text_put_(npuprof_out_ *o, const npuprof_kept_ *kept)
{
    char *const p = npuprof_out_reserve_(o, NPUPROF_SPAN_TEXT_MAX_ + 3 * NPUPROF_DIGITS_MAX_);
    memcpy(p, kept->text, 64);
    if (kept->length > 64) memcpy(p + 64, kept->text + 64, sizeof kept->text - 64);
    return p + kept->length;
}

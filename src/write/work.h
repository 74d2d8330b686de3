#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../arena/state.h"
#include "../control/lock.h"
#include "../read/image.h"
#include "../read/place.h"
#include "../read/walk.h"
#include "../read/lanes.h"
#include "../read/scene.h"
#include "../read/executions.h"
#include "../read/memory.h"
#include "text.h"

/* The work area of the writers and reports: what is too large for a thread's stack, there once, used by who
   holds the lock of the readers. The scratch memory (NPUPROF_SCRATCH_BYTES) is shared out here: a quarter,
   but 64 KiB at most, for the writer's buffer, a quarter for lanes, and the rest for a writer's own tables.
   Spans that are sorted are in pages (read/list.h). */

enum { NPUPROF_SPAN_TEXTS_ = 256, NPUPROF_SPAN_TEXT_MAX_ = 128 };

/* What the rows of a site on a track have in common: all text before the first number (write/span_text.h),
   and so many bytes behind it that come after the last. key: tid << 32 | site << 8 | kind; 0: none. */
typedef struct npuprof_span_text_ {
    uint64_t key;
    uint32_t length, last;
    char text[NPUPROF_SPAN_TEXT_MAX_];
} npuprof_span_text_;

typedef struct npuprof_work_ {
    npuprof_out_ out;
    npuprof_image_ image;
    npuprof_walk_ walk;
    void *room;                            /* for tables of the writer at hand */
    size_t room_bytes;
    npuprof_lane_set_ lanes;                  /* of the track at hand */
    npuprof_scene_ scene;
    /* text that is used again */
    npuprof_span_text_ span_text[NPUPROF_SPAN_TEXTS_];
    npuprof_stamp_cache_ stamps;
    uint32_t trace_tid;                    /* trace_id is the text of the trace with this root */
    uint64_t trace_root;
    char trace_id[33];
    /* of the JSON: the next track that is no thread; the track at hand, and the tid of its first lane */
    uint32_t next_tid, first_tid;
    uint64_t placed;
    uint64_t arrows;
} npuprof_work_;

static npuprof_work_ npuprof_work_area_;

static void npuprof_work_share_scratch_(npuprof_work_ *w, npuprof_sink sink)
{
    uint8_t *p = (uint8_t *)npuprof_scratch_;
    const size_t quarter = sizeof npuprof_scratch_ / 4 / 16 * 16;
    memset(w, 0, sizeof *w);
    w->out.sink = sink;
    w->out.bytes = (char *)p;
    /* Why 64 KiB: fewer calls cost less than a first cache that holds it all gains; more gains nothing. */
    const size_t buffer = quarter < 65536 ? quarter : 65536;
    w->out.capacity = buffer;
    w->trace_root = UINT64_MAX;            /* of no trace */
    w->stamps.above = NPUPROF_NO_STAMP_;
    w->lanes.nodes = (npuprof_lane_node_ *)(void *)(p + buffer);
    w->lanes.node_count = (uint32_t)(quarter / sizeof *w->lanes.nodes);
    w->room = p + buffer + quarter;
    w->room_bytes = sizeof npuprof_scratch_ - buffer - quarter;
}

/* ---- The walks of read/ that need memory, in that of the work area */

static inline npuprof_work_ *npuprof_work_of_(const npuprof_device_walk_ *d)
{
    return (npuprof_work_ *)d->user;
}

/* d->user: the work area. */
static inline void npuprof_work_walk_devices_(npuprof_device_walk_ *d)
{
    npuprof_work_ *const w = npuprof_work_of_(d);
    npuprof_out_fail_(&w->out, npuprof_execution_walk_(d, &w->image));
}

static inline void npuprof_work_begin_merge_(npuprof_merge_ *m, npuprof_work_ *w)
{
    npuprof_merge_begin_(m, &w->image, w->room, w->room_bytes);
}

static inline npuprof_pool_reports_ npuprof_work_collect_pools_(npuprof_work_ *w)
{
    npuprof_merge_ merge;
    npuprof_pool_report_ *const list = (npuprof_pool_report_ *)(void *)w->lanes.nodes;
    npuprof_work_begin_merge_(&merge, w);
    return npuprof_pool_collect_(&merge, list, w->lanes.node_count * sizeof *w->lanes.nodes / sizeof *list);
}

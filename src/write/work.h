#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../os/common.h"
#include "../read/image.h"
#include "../read/place.h"
#include "../read/walk.h"
#include "../read/lanes.h"
#include "../read/scene.h"
#include "../read/executions.h"
#include "../read/memory.h"
#include "text.h"

/* The work area of the writers and reports: what is too large for a thread's stack, in pages of the system's
   that are mapped from npuprof_work_begin_() to npuprof_work_end_(), by who holds the lock of the readers. Of
   the NPUPROF_SCRATCH_BYTES behind it a quarter, but 128 KiB at most, is the writer's buffer, a quarter is
   for lanes, and the rest for a writer's own tables. Pages that nobody touches cost nothing. */

enum { NPUPROF_SPAN_TEXTS_ = 256, NPUPROF_SPAN_TEXT_MAX_ = 128 };

/* What the rows of a site on a track have in common: all text before the first number (write/span_text.h),
   and so many bytes behind it that come after the last. key: tid << 32 | site << 8 | kind; 0: none. */
typedef struct npuprof_span_text_ {
    uint64_t key;
    uint32_t length, last;
    char text[NPUPROF_SPAN_TEXT_MAX_];
} npuprof_span_text_;

/* A key of arguments as JSON, with a comma, its quotes and the colon. id: in the image's table. mark: a bit,
   the same for keys of the same text; of the CSV, the key's column. */
enum { NPUPROF_KEY_TEXTS_ = 64, NPUPROF_KEY_TEXT_MAX_ = 48 };
typedef struct npuprof_work_key_ {
    uint64_t mark;
    uint32_t id, length;
    char text[NPUPROF_KEY_TEXT_MAX_];
} npuprof_work_key_;

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
    npuprof_work_key_ key_text[NPUPROF_KEY_TEXTS_];
    npuprof_stamp_cache_ stamps;
    uint32_t trace_tid;                    /* trace_id is the text of the trace with this root */
    uint64_t trace_root;
    char trace_id[33];
    /* of the JSON: the next track that is no thread; the track at hand, and the tid of its first lane */
    uint32_t next_tid, first_tid;
    uint64_t placed;
    uint64_t arrows;
} npuprof_work_;

/* Why 4096 more: in the writer's buffer an event without text of the user's has its space at once. */
#define NPUPROF_WORK_BYTES_ (sizeof(npuprof_work_) + (size_t)(NPUPROF_SCRATCH_BYTES) + 4096)

/* NULL: the system has no memory for it. */
static npuprof_work_ *npuprof_work_begin_(npuprof_sink sink)
{
    npuprof_work_ *const w = (npuprof_work_ *)npuprof_os_memory_(NPUPROF_WORK_BYTES_);
    uint8_t *const p = (uint8_t *)(w + 1);
    const size_t quarter = (size_t)(NPUPROF_SCRATCH_BYTES) / 4 / 16 * 16;
    if (!w) return NULL;
    w->out.sink = sink;
    w->out.bytes = (char *)p;
    /* Why 128 KiB: half as much takes 3 % longer to a file, twice as much gains nothing. */
    w->out.capacity = quarter + 4096 < 131072 ? quarter + 4096 : 131072;
    w->trace_root = UINT64_MAX;            /* of no trace */
    w->key_text[0].id = 1;                 /* no key yet, also not 0 */
    w->stamps.above = NPUPROF_NO_STAMP_;
    w->lanes.nodes = (npuprof_lane_node_ *)(void *)(p + w->out.capacity);
    w->lanes.node_count = (uint32_t)(quarter / sizeof *w->lanes.nodes);
    w->room = p + w->out.capacity + quarter;
    w->room_bytes = NPUPROF_WORK_BYTES_ - sizeof *w - w->out.capacity - quarter;
    return w;
}

/* Returns 0, or the error of the output. */
static int npuprof_work_end_(npuprof_work_ *w)
{
    const int error = w->out.error;
    npuprof_os_unmap_(w, NPUPROF_WORK_BYTES_);
    return error;
}

/* The same at the end of an output. */
static int npuprof_work_finish_(npuprof_work_ *w)
{
    npuprof_out_flush_(&w->out);
    return npuprof_work_end_(w);
}

/* ---- The walks of read/ that need memory, in that of the work area */

static inline npuprof_work_ *npuprof_work_of_(const npuprof_device_walk_ *d)
{
    return (npuprof_work_ *)d->user;
}

/* d->user: the work area. kinds: a bit for each kind of placed span. */
static inline void npuprof_work_walk_placed_(npuprof_device_walk_ *d, uint32_t kinds)
{
    npuprof_work_ *const w = npuprof_work_of_(d);
    npuprof_out_fail_(&w->out, npuprof_execution_walk_(d, &w->image, kinds));
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

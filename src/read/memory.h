#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "image.h"
#include "../write/lanes.h"
#include "merge.h"

/* What is known of a pool. */
typedef struct npuprof_pool_report_ {
    uint32_t device, used_tag, allocated_tag;
    uint64_t allocated;                    /* the last */
    uint64_t used_ticks;                   /* of the record with the most used */
    npuprof_memory_peaks peaks;
} npuprof_pool_report_;

/* The allocated figure after a record. Why not as recorded: an alloc or a free takes nothing from the pool, but two threads may stamp
   them in the other order. */
static uint64_t npuprof_pool_allocated_(const npuprof_event_ *ev, uint64_t before)
{
    return ev->change && ev->second < before ? before : ev->second;
}
static void npuprof_pool_add_(npuprof_pool_report_ *p, const npuprof_event_ *ev)
{
    npuprof_memory_peaks *const peaks = &p->peaks;
    const uint64_t allocated = npuprof_pool_allocated_(ev, p->allocated);
    peaks->drops += peaks->records && allocated < p->allocated;
    p->allocated = allocated;
    if (!peaks->records || ev->value > peaks->used_bytes) {
        peaks->used_bytes = ev->value;
        peaks->held_bytes = allocated;
        peaks->used_at = peaks->records;
        p->used_ticks = ev->host_ticks;
        p->used_tag = ev->name;
    }
    if (!peaks->records || allocated > peaks->allocated_bytes) {
        peaks->allocated_bytes = allocated;
        peaks->allocated_at = peaks->records;
        p->allocated_tag = ev->name;
    }
    peaks->records++;
}

/* All pools, in the order of their first records. Kept where the JSON has its lanes. */
typedef struct npuprof_pool_reports_ {
    npuprof_pool_report_ *list, *end;
    uint64_t records_left_out;             /* for want of room: those of further pools, */
    uint64_t threads_left_out;             /* and threads with all their records */
} npuprof_pool_reports_;

static npuprof_pool_reports_ npuprof_pool_collect_(npuprof_work_ *w)
{
    npuprof_pool_reports_ pools;
    npuprof_merge_ merge;
    npuprof_event_ ev;
    pools.list = pools.end = (npuprof_pool_report_ *)(void *)w->nodes;
    pools.records_left_out = 0;
    const size_t room = w->node_count * sizeof *w->nodes / sizeof *pools.list;
    for (npuprof_merge_begin_(&merge, w); npuprof_merge_next_(&merge, &ev);) {
        npuprof_pool_report_ *p = pools.list;
        while (p < pools.end && !npuprof_image_same_text_(&w->image, p->device, ev.category)) p++;
        if (p == pools.list + room) {
            pools.records_left_out++;
            continue;
        }
        if (p == pools.end) {
            memset(p, 0, sizeof *p);
            p->device = ev.category;
            pools.end++;
        }
        npuprof_pool_add_(p, &ev);
    }
    pools.threads_left_out = merge.left_out;
    return pools;
}

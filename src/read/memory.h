#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "image.h"
#include "merge.h"

/* Memory pools: what the CSV and the report say about each of them. A pool goes by its name. */

typedef struct npuprof_pool_report_ {
    uint32_t device, used_tag, allocated_tag;   /* names; the tags are those of the two peaks */
    uint64_t allocated;                    /* after the last record */
    uint64_t used_ticks;                   /* of the record with the most bytes used */
    npuprof_memory_peaks peaks;
} npuprof_pool_report_;

/* All pools, in the order of their first records. */
typedef struct npuprof_pool_reports_ {
    npuprof_pool_report_ *list, *end;
    uint64_t records_left_out;             /* of pools that found no room in the list */
    uint64_t threads_left_out;             /* that found no room in the merge, with all their records */
} npuprof_pool_reports_;

/* The allocated bytes after a record.
   Why not always what it says: an alloc or a free takes nothing from the pool, but two threads may have
   stamped their records in another order than they changed the pool. */
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

/* Goes through a merge that has just begun. `list`: memory for the pools. */
static npuprof_pool_reports_ npuprof_pool_collect_(npuprof_merge_ *merge, npuprof_pool_report_ *list,
                                                   size_t capacity)
{
    npuprof_pool_reports_ pools = { list, list, 0, 0 };
    npuprof_event_ ev;
    while (npuprof_merge_next_(merge, &ev)) {
        npuprof_pool_report_ *p = list;
        while (p < pools.end && !npuprof_image_same_text_(merge->image, p->device, ev.category)) p++;
        if (p == list + capacity) {
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
    pools.threads_left_out = merge->left_out;
    return pools;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/hash.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "event.h"

/* Memory pools: what PROF_ALLOC and PROF_FREE count, one pool for each device and one for the host. Words
   of a pool, all relaxed: key, the hash of its name, by CAS from 0; then used and allocated bytes. Two
   threads may allocate at the same time: each event has the sum that its own change gave, so the last one
   recorded need not be the last one counted. Why outside the arena: the counts go on while nothing is
   recorded and nothing is set up. */

enum { NPUPROF_RECORD_POOLS_ = 64 };

typedef struct npuprof_record_pool_ { uint64_t key, used, allocated; } npuprof_record_pool_;

static npuprof_record_pool_ npuprof_record_pools_[NPUPROF_RECORD_POOLS_];

static const char *npuprof_record_pool_name_(const npuprof_device *device)
{
    return device && device->name ? device->name : "host";
}

/* The pool of that name, made at its first use. NULL: there are too many. */
static npuprof_record_pool_ *npuprof_record_find_pool_(const char *name)
{
    const uint64_t key = npuprof_hash_key_(name);
    npuprof_record_pool_ *const end = npuprof_record_pools_ + NPUPROF_RECORD_POOLS_;
    for (npuprof_record_pool_ *pool = npuprof_record_pools_; pool < end; pool++) {
        uint64_t has = NPUPROF_LOAD_(&pool->key);
        if (has == key || (has == 0 && (NPUPROF_CAS_(&pool->key, &has, key) || has == key))) return pool;
    }
    return NULL;
}

/* change: 0, or bytes << 2 | 1 for an allocation, 2 for a release. */
static void npuprof_record_memory_event_(const char *name, uint64_t used, uint64_t allocated, uint64_t change,
                                         const char *tag)
{
    npuprof_record_new_ r = npuprof_record_of_(used, NULL, PROF_NO_ARGS);
    npuprof_unit_ extra;
    extra.w0 = change << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_MEMORY_;
    extra.w1 = allocated;
    r.extra = &extra;
    r.extra_count = 1;
    npuprof_record_named_event_(NPUPROF_KIND_MEMORY, name, tag, &r);
}

NPUPROF_API_ void npuprof_memory_(const npuprof_device *device, uint64_t used_bytes, uint64_t allocated_bytes,
                                  const char *tag)
{
    const char *const name = npuprof_record_pool_name_(device);
    npuprof_record_pool_ *const pool = npuprof_record_find_pool_(name);
    if (pool) {
        NPUPROF_STORE_(&pool->used, used_bytes);
        NPUPROF_STORE_(&pool->allocated, allocated_bytes);
    }
    npuprof_record_memory_event_(name, used_bytes, allocated_bytes, 0, tag);
}

NPUPROF_API_ void npuprof_memory_change_(const npuprof_device *device, bool is_free, uint64_t bytes,
                                         const char *tag)
{
    const char *const name = npuprof_record_pool_name_(device);
    npuprof_record_pool_ *const pool = npuprof_record_find_pool_(name);
    if (!pool) {
        if (!NPUPROF_GATE_IS_CLOSED_()) npuprof_count_lost_(NPUPROF_LOST_NAMES, 1);
        return;
    }
    uint64_t used = NPUPROF_LOAD_(&pool->used), now, allocated = NPUPROF_LOAD_(&pool->allocated);
    do now = !is_free ? used + bytes : used > bytes ? used - bytes : 0;
    while (!NPUPROF_CAS_(&pool->used, &used, now));
    while (allocated < now && !NPUPROF_CAS_(&pool->allocated, &allocated, now)) {}
    if (NPUPROF_GATE_IS_CLOSED_()) return;
    const uint64_t max = ((uint64_t)1 << 42) - 1;
    const uint64_t change = (bytes < max ? bytes : max) << 2 | (is_free ? 2 : 1);
    npuprof_record_memory_event_(name, now, allocated > now ? allocated : now, change, tag);
}

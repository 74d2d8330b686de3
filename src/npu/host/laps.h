#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/hash.h"
#include "../types.h"
#include "../mmio.h"
#include "format.h"
#include "rule.h"
#include "draw.h"

/* A ring that shows the same again after some laps: of slots, of phases, of a narrow count. What it cannot
   tell, the entry before the next one can: if it is not as it was read, the device has written it again. Owns
   read_end and read_hash of an npuprof_npu_queue_. May not know who says that an entry is there. */

static uint32_t npuprof_npu_hash_record_(const npuprof_npu_queue_ *q, const npuprof_npu_record_ *r)
{
    uint64_t hash = 1;
    for (unsigned i = 0; i < q->present_count; i++) hash = npuprof_hash_mix_fast_(hash ^ r->v[q->present[i]]);
    return (uint32_t)(hash >> 32);
}

/* Of the entry of that number, as it is now. */
static uint32_t npuprof_npu_hash_entry_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number)
{
    npuprof_npu_record_ r;
    memset(&r, 0, sizeof r);
    npuprof_npu_copy_entry_(npu, q, npuprof_npu_entry_at_(q, number), &r);
    return npuprof_npu_hash_record_(q, &r);
}

/* Counts entries that are lost in front of the next one. */
static void npuprof_npu_count_gap_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t count)
{
    if (count) {
        q->gap = true;
        npu->gap_ticket_ = NPUPROF_LOAD_(&npu->tickets_);
    }
    npuprof_npu_count_records_(npu, NPUPROF_RECORDS_OVERWRITTEN, count);
}

/* Whether it may come round unseen, and a look at the entry before the next one costs no load of the BAR. */
static bool npuprof_npu_may_come_round_(const npuprof_npu_queue_ *q)
{
    return q->is.memory && q->rule->period && q->rule->period(q);
}

/* Remembers the entry before the next one, as it is now. */
static void npuprof_npu_remember_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    if (!npuprof_npu_may_come_round_(q)) return;
    q->read_end = q->next + 1;
    q->read_hash = npuprof_npu_hash_entry_(npu, q, q->next + q->is.count - 1);
}

/* Whether that entry is another one now: the device came round. */
static bool npuprof_npu_came_round_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    const uint32_t hash = q->read_hash;
    if (!npuprof_npu_may_come_round_(q)) return false;
    const bool known = q->read_end == q->next + 1;
    npuprof_npu_remember_(npu, q);
    return known && q->read_hash != hash;
}

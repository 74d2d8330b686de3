#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/hash.h"
#include "../types.h"
#include "../mmio.h"
#include "format.h"
#include "draw.h"

/* A ring that shows the same again after some laps: of slots, of phases, of a narrow count. What it cannot
   tell, the entry before the next one can: if it is not as it was read, the device has written it again. Owns
   read_end and read_hash of an npuprof_npu_queue_. May not know who says that an entry is there. */

static uint32_t npuprof_npu_hash_record_(const npuprof_npu_queue_ *q, const npuprof_npu_record_ *r)
{
    uint64_t hash = 1;
    for (unsigned i = 0; i < q->present_count; i++) hash = npuprof_hash_mix_(hash ^ r->v[q->present[i]]);
    return (uint32_t)(hash >> 32);
}

/* Whether the producer index tells a slot, and no laps. */
static bool npuprof_npu_tells_slot_(const npuprof_npu_index *x)
{
    return (x->unit == NPUPROF_NPU_INDEX_SLOT || x->unit == NPUPROF_NPU_INDEX_BYTE_OFFSET) && !x->has_laps;
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

/* The phase of the entry of that number. */
static uint64_t npuprof_npu_phase_of_(const npuprof_npu_queue_ *q, uint64_t number)
{
    return (q->is.phase_first ^ number / q->is.count) & 1;
}

/* After how many entries it does, if none tells its number; 0: never. */
static uint64_t npuprof_npu_period_(const npuprof_npu_queue_ *q)
{
    const npuprof_npu_index *const x = &q->is.producer;
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) return 0;
    if (q->is.ready == NPUPROF_NPU_READY_PHASE) return 2 * (uint64_t)q->is.count;
    if (q->is.ready) return 0;
    if (npuprof_npu_tells_slot_(x)) return (x->has_wrap ? 2 : 1) * (uint64_t)q->is.count;
    return x->unit == NPUPROF_NPU_INDEX_COUNT && q->index.mask < UINT32_MAX ? q->index.mask + 1 : 0;
}

/* Remembers the entry before the next one, as it is now. */
static void npuprof_npu_remember_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    npuprof_npu_record_ last;
    memset(&last, 0, sizeof last);
    if (!q->is.memory || !npuprof_npu_period_(q)) return;
    npuprof_npu_copy_entry_(npu, q, npuprof_npu_entry_at_(q, q->next + q->is.count - 1), &last);
    q->read_end = q->next + 1;
    q->read_hash = npuprof_npu_hash_record_(q, &last);
}

/* Whether that entry is another one now: the device came round. With a phase, by an even number of laps. */
static bool npuprof_npu_came_round_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    const uint32_t hash = q->read_hash;
    const bool by_phase = q->is.ready == NPUPROF_NPU_READY_PHASE;
    if (!q->is.memory || !npuprof_npu_period_(q)) return false;
    for (unsigned back = 1; by_phase && back <= 2; back++) {     /* Why two: one may be half written. */
        const uint64_t number = q->next + 2 * (uint64_t)q->is.count - back;
        if (npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, number), NPUPROF_NPU_AT_PHASE_) !=
            npuprof_npu_phase_of_(q, number)) return false;
    }
    const bool known = q->read_end == q->next + 1;
    npuprof_npu_remember_(npu, q);
    return known && q->read_hash != hash;
}

/* The device came round, and what the ring shows does not tell how often: once at least, if what is new is
   less than half of the ring. Why half: a device may write entries before it announces them. */
static void npuprof_npu_pass_period_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t *producer)
{
    const uint64_t period = npuprof_npu_period_(q), fresh = *producer - q->next;
    const bool by_phase = q->is.ready == NPUPROF_NPU_READY_PHASE;
    if (!by_phase && fresh >= q->is.count) return;
    npuprof_npu_count_records_(npu, NPUPROF_RECORDS_LOSS_UNKNOWN, 1);
    if (!by_phase && fresh > q->is.count / 2) return;
    q->index.last += period;
    *producer += period;
    if (!by_phase) return;
    npuprof_npu_count_gap_(npu, q, period);
    q->next += period;
    q->read_end = q->next + 1;
}

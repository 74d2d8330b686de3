#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../types.h"
#include "../mmio.h"
#include "format.h"
#include "rule.h"
#include "index.h"
#include "laps.h"
#include "ready.h"

/* READY_PRODUCER: an index says how far the device is. It is read again behind each batch of copies: what the
   device may have come round to is lost. Owns `index` of an npuprof_npu_queue_, as index.h reads it. */

/* Whether the producer index tells a slot, and no laps. */
static bool npuprof_npu_tells_slot_(const npuprof_npu_index *x)
{
    return (x->unit == NPUPROF_NPU_INDEX_SLOT || x->unit == NPUPROF_NPU_INDEX_BYTE_OFFSET) && !x->has_laps;
}

/* Whether entries tell which lap that slot is of. */
static bool npuprof_npu_is_numbered_slot_(const npuprof_npu_queue_ *q)
{
    return npuprof_npu_tells_slot_(&q->is.producer) && npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_);
}

static uint64_t npuprof_npu_producer_period_(const npuprof_npu_queue_ *q)
{
    const npuprof_npu_index *const x = &q->is.producer;
    if (npuprof_npu_is_numbered_slot_(q)) return npuprof_npu_sequence_period_(q);
    if (npuprof_npu_tells_slot_(x)) return (x->has_wrap ? 2 : 1) * (uint64_t)q->is.count;
    if (x->has_laps || q->index.mask >= UINT32_MAX) return 0;
    return (q->index.mask + 1) / (x->unit == NPUPROF_NPU_INDEX_BYTES ? q->is.entry_bytes : 1);
}

/* The first reading of an index that may have come round before: the newest entry tells the number of the
   next, if it has one and that agrees with the index. */
static void npuprof_npu_number_index_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t *producer)
{
    const npuprof_npu_index *x = &q->is.producer;
    const uint64_t count = q->is.count, unit = q->is.entry_bytes;
    const bool is_slot = npuprof_npu_tells_slot_(x), in_bytes = x->unit == NPUPROF_NPU_INDEX_BYTES;
    npuprof_npu_record_ last;
    if ((!is_slot && !in_bytes) || !npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) return;
    memset(&last, 0, sizeof last);
    if (npuprof_npu_is_blank_(npu, q, npuprof_npu_entry_at_(q, *producer + count - 1))) return;
    npuprof_npu_copy_entry_(npu, q, npuprof_npu_entry_at_(q, *producer + count - 1), &last);
    const uint64_t number = npuprof_npu_number_of_(q, last.v[NPUPROF_NPU_AT_SEQUENCE_] -
                                                      q->is.sequence_first + 1, *producer, count);
    if (number > UINT64_MAX / 2 / unit) return;
    const uint64_t rest = (q->index.last - number * unit) & q->index.mask;      /* of a cut record */
    if (in_bytes && rest >= unit) return;
    q->index.last = in_bytes ? number * unit + rest : number;
    *producer = number;
}

/* Whether the last slot is another one than at open. */
static bool npuprof_npu_has_last_changed_(npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    return npuprof_npu_hash_entry_(npu, q, q->is.count - 1) != q->index.silent;
}

/* The first laps of an index that showed none at open, and may have hidden one: if its last entry is as it
   was, it did, and what lay there is older. Two laps on, nothing tells. */
static void npuprof_npu_take_hidden_lap_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t producer)
{
    const bool unknown = producer >= 2 * (uint64_t)q->is.count;
    if (!unknown && npuprof_npu_has_last_changed_(npu, q)) return;
    npuprof_npu_count_records_(npu, NPUPROF_RECORDS_LOSS_UNKNOWN, unknown);
    q->next = q->is.count;
}

/* Reads the producer index. The first time, the newest entry tells the number of a slot, if it has one.
   Results as npuprof_npu_read_index_(). */
static npuprof_result npuprof_npu_read_producer_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t *producer)
{
    const uint64_t count = q->is.count;
    const bool first = !q->numbered, hides = q->index.was_empty && q->index.may_be_full;
    if (q->index.was_empty && npuprof_npu_has_last_changed_(npu, q)) q->index.was_empty = false;
    const npuprof_result result = npuprof_npu_read_index_(npu, &q->is.producer, &q->index, producer);
    if (*producer) q->index.was_empty = false;
    if (!q->index.known) return result;
    if (first) {
        q->numbered = true;
        npuprof_npu_number_index_(npu, q, producer);
        q->next = *producer;
        npuprof_npu_remember_(npu, q);
    } else if (result == NPUPROF_ERR_NPU_RING && *producer < q->next) {
        q->next = *producer > count ? *producer - count : 0;     /* the device counts from 0 again */
    } else if (hides && *producer > count) {
        npuprof_npu_take_hidden_lap_(npu, q, *producer);
    }
    return result;
}

static npuprof_result npuprof_npu_find_producer_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    uint64_t producer;
    if (q->is.producer.has_laps && !q->is.producer.laps_first) {
        q->index.silent = npuprof_npu_hash_entry_(npu, q, q->is.count - 1);
        q->index.was_empty = true;
        q->index.may_be_full = !npuprof_npu_is_blank_(npu, q, npuprof_npu_entry_at_(q, q->is.count - 1));
    }
    return npuprof_npu_read_producer_(npu, q, &producer);
}

/* The device came round, and what the index shows does not tell how often: once at least, if what is new is
   less than half of the ring. Why half: a device may write entries before it announces them. With numbers in
   the entries, what they tell is counted already. */
static void npuprof_npu_pass_period_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t *producer)
{
    const uint64_t period = npuprof_npu_producer_period_(q), fresh = *producer - q->next;
    npuprof_npu_count_records_(npu, NPUPROF_RECORDS_LOSS_UNKNOWN, 1);
    if (fresh > q->is.count / 2 || npuprof_npu_is_numbered_slot_(q)) return;
    q->index.last += period * (q->is.producer.unit == NPUPROF_NPU_INDEX_BYTES ? q->is.entry_bytes : 1);
    *producer += period;
}

/* The whole laps that a slot does not show, by the number of the newest entry. Why the index again: if it
   went on meanwhile, that may be the number of a lap that it does not show yet. */
static void npuprof_npu_add_laps_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t *producer)
{
    const uint64_t ahead = npuprof_npu_laps_ahead_(npu, q, *producer), was = *producer;
    if (!ahead || npuprof_npu_read_producer_(npu, q, producer) != NPUPROF_OK || *producer != was) return;
    q->index.last += ahead;
    *producer += ahead;
}

static bool npuprof_npu_begin_producer_(npuprof_npu *npu, npuprof_npu_queue_ *q,
                                        npuprof_npu_reading_ *reading)
{
    const bool came_round = npuprof_npu_came_round_(npu, q);
    reading->result = npuprof_npu_read_producer_(npu, q, &reading->producer);
    if (reading->result == NPUPROF_ERR_NPU_RING)
        npuprof_npu_count_records_(npu, NPUPROF_RECORDS_LOSS_UNKNOWN, 1);
    else if (reading->result == NPUPROF_OK && npuprof_npu_is_numbered_slot_(q) &&
             (came_round || !npuprof_npu_producer_period_(q)))
        npuprof_npu_add_laps_(npu, q, &reading->producer);
    if (came_round && reading->result == NPUPROF_OK)
        npuprof_npu_pass_period_(npu, q, &reading->producer);
    return reading->result == NPUPROF_OK || reading->result == NPUPROF_ERR_NPU_RING;
}

/* The entry of that number, copied before the index was `newest`. LATER: it is not written yet, although the
   index announces it. LAPPED: the device went round by *gap entries more than the index shows. */
static int npuprof_npu_judge_announced_(const npuprof_npu_queue_ *q, const npuprof_npu_record_ *r,
                                        uint64_t sequence_before, uint64_t number, uint64_t newest,
                                        uint64_t *gap)
{
    const uint64_t behind = newest - number, count = q->is.count;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_))
        return behind < count ? NPUPROF_NPU_ENTRY_GOOD_ : NPUPROF_NPU_ENTRY_LOST_;
    if (behind > count) return NPUPROF_NPU_ENTRY_LOST_;
    const uint64_t mask = npuprof_npu_sequence_mask_(q);
    const uint64_t ahead = (sequence_before - (number + q->is.sequence_first)) & mask;
    if (ahead == 0 && r->v[NPUPROF_NPU_AT_SEQUENCE_] == sequence_before) return NPUPROF_NPU_ENTRY_GOOD_;
    const bool overwritten = ahead && ahead <= mask / 2 && ahead % count == 0;
    if (!overwritten && behind < count) return NPUPROF_NPU_ENTRY_LATER_;
    /* Why not LAPPED a whole lap behind: the device may just be writing the next lap's entry there. */
    if (!overwritten || behind == count || !npuprof_npu_tells_slot_(&q->is.producer))
        return NPUPROF_NPU_ENTRY_LOST_;
    *gap = ahead;
    return NPUPROF_NPU_ENTRY_LAPPED_;
}

/* Copies a batch of announced entries. False: the index is bad. */
static bool npuprof_npu_copy_announced_(npuprof_npu *npu, npuprof_npu_queue_ *q,
                                        npuprof_npu_reading_ *reading)
{
    uint64_t before[NPUPROF_NPU_BATCH_], newest = 0;
    const bool numbered = npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_);
    if (reading->producer - q->next > q->is.count) {
        const uint64_t oldest = reading->producer - q->is.count;
        npuprof_npu_count_gap_(npu, q, oldest - q->next);
        q->next = oldest;
    }
    reading->count = (unsigned)npuprof_min_(reading->producer - q->next, NPUPROF_NPU_BATCH_);
    for (unsigned i = 0; i < reading->count; i++) {
        const volatile unsigned char *const entry = npuprof_npu_entry_at_(q, q->next + i);
        before[i] = numbered ? npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_) : 0;
        npuprof_npu_copy_entry_(npu, q, entry, &reading->batch[i]);
        if (numbered)
            reading->batch[i].v[NPUPROF_NPU_AT_SEQUENCE_] =
                npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_);
    }
    const npuprof_result again = npuprof_npu_read_producer_(npu, q, &newest);
    if (again != NPUPROF_OK) {
        if (reading->result == NPUPROF_OK) reading->result = again;
        return false;
    }
    for (unsigned i = 0; i < reading->count; i++) {
        reading->gap[i] = 0;
        reading->fate[i] =
            (uint8_t)npuprof_npu_judge_announced_(q, &reading->batch[i], before[i], q->next + i, newest,
                                                  &reading->gap[i]);
    }
    return true;
}

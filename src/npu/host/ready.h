#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../types.h"
#include "../mmio.h"
#include "format.h"
#include "rule.h"
#include "laps.h"

/* How an entry that tells itself that it is there is copied, for every such rule; and the number that it
   carries. May not know what a value means.

   An entry may change while it is copied: the word that says "ready" is read before and after. If it changed,
   the entry is copied once more, and lost if it changed again. */

/* Is there nothing but zeros in an entry? */
static bool npuprof_npu_is_blank_(npuprof_npu *npu, const npuprof_npu_queue_ *q,
                                  const volatile unsigned char *entry)
{
    for (unsigned i = 0; i < q->word_count; i++)
        if (npuprof_npu_load_entry_word_(npu, q, entry, i)) return false;
    return true;
}

/* The bits in which the sequence field and the number of an entry must agree. */
static uint64_t npuprof_npu_sequence_mask_(const npuprof_npu_queue_ *q)
{
    const uint64_t mask = npuprof_npu_mask_(npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_SEQUENCE_));
    const npuprof_npu_index *x = &q->is.producer;
    if (!q->rule || !q->rule->is_announced) return mask;
    if (x->unit == NPUPROF_NPU_INDEX_COUNT) return npuprof_min_(mask, npuprof_npu_mask_(x->bits));
    if (x->unit != NPUPROF_NPU_INDEX_BYTES || x->bits >= 32) return mask;
    return npuprof_min_(mask, npuprof_npu_mask_(x->bits) / q->is.entry_bytes);
}

/* After how many entries a sequence shows the same again; 0: not while anybody lives. */
static uint64_t npuprof_npu_sequence_period_(const npuprof_npu_queue_ *q)
{
    const uint64_t mask = npuprof_npu_sequence_mask_(q);
    return mask < UINT32_MAX ? mask + 1 : 0;
}

/* The least entry number that a sequence shows as `low`, and that has the same remainder by `step` as
   `place`. UINT64_MAX: there is none. */
static uint64_t npuprof_npu_number_of_(const npuprof_npu_queue_ *q, uint64_t low, uint64_t place,
                                       uint64_t step)
{
    const uint64_t period = npuprof_npu_sequence_period_(q), tries = period ? step : 1;
    uint64_t number = low & npuprof_npu_sequence_mask_(q);
    for (uint64_t i = 0; i < tries; i++, number += period)
        if (number % step == place % step) return number;
    return UINT64_MAX;
}

/* How many entries, whole laps, the device is ahead of the entry before `next`, by the sequence there: at
   least so many. Why a half: numbers further on are those of a device that began anew. */
static uint64_t npuprof_npu_laps_ahead_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t next)
{
    const uint64_t mask = npuprof_npu_sequence_mask_(q);
    const volatile unsigned char *const entry = npuprof_npu_entry_at_(q, next + q->is.count - 1);
    const uint64_t shown = npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_);
    const uint64_t ahead = npuprof_npu_number_of_(q, shown - q->is.sequence_first - next + 1, 0, q->is.count);
    if (!ahead || ahead == UINT64_MAX || npuprof_npu_is_blank_(npu, q, entry)) return 0;
    return npuprof_npu_sequence_period_(q) || ahead <= mask / 2 ? ahead : 0;
}

/* What lies so many laps back is overwritten. */
static void npuprof_npu_pass_laps_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    const uint64_t ahead = npuprof_npu_laps_ahead_(npu, q, q->next), count = q->is.count;
    if (ahead <= count) return;
    npuprof_npu_count_gap_(npu, q, ahead - count);
    q->next += ahead - count;
    q->read_end = q->next + 1;
}

static bool npuprof_npu_is_there_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number)
{
    uint64_t word, gap;
    return q->rule->is_there(npu, q, number, &word, &gap) == NPUPROF_NPU_ENTRY_GOOD_;
}

/* Copies an entry if it is there. */
static int npuprof_npu_copy_one_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number,
                                 npuprof_npu_record_ *record, uint64_t *gap)
{
    for (int i = 0; i < 2; i++) {
        uint64_t before, after;
        *gap = 0;
        const int is = q->rule->is_there(npu, q, number, &before, gap);
        if (is == NPUPROF_NPU_ENTRY_LATER_) return i ? NPUPROF_NPU_ENTRY_LOST_ : is;
        if (is != NPUPROF_NPU_ENTRY_GOOD_) return is;
        npuprof_npu_copy_entry_(npu, q, npuprof_npu_entry_at_(q, number), record);
        const int now = q->rule->is_there(npu, q, number, &after, gap);
        if (now == NPUPROF_NPU_ENTRY_GOOD_ && after == before) return now;
    }
    return NPUPROF_NPU_ENTRY_LOST_;
}

/* Where reading ends for now. Why a lap: a device that is faster than this must not hold it up. */
static bool npuprof_npu_begin_asked_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading)
{
    (void)npu;
    reading->producer = q->next + q->is.count;
    return true;
}

/* Copies a batch of entries that are asked one by one. */
static bool npuprof_npu_copy_asked_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading)
{
    const uint64_t end = npuprof_min_(reading->producer - q->next, NPUPROF_NPU_BATCH_);
    while (reading->count < end) {
        const unsigned i = reading->count;
        int fate = npuprof_npu_copy_one_(npu, q, q->next + i, &reading->batch[i], &reading->gap[i]);
        if (q->rule->judge) fate = q->rule->judge(npu, q, reading, i, fate);
        if (fate == NPUPROF_NPU_ENTRY_LATER_) break;
        reading->fate[i] = (uint8_t)fate;
        reading->count++;
        if (fate == NPUPROF_NPU_ENTRY_LAPPED_) break;
    }
    return reading->count != 0;
}

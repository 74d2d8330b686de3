#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../types.h"
#include "../mmio.h"
#include "format.h"
#include "rule.h"
#include "laps.h"
#include "ready.h"
#include "ready_sequence.h"

/* READY_PHASE: an entry's bit `phase` equals phase_first in even laps, and not in odd ones. With `sequence`,
   the number of an entry tells the laps apart. */

static const char *npuprof_npu_check_phase_(const npuprof_npu_queue_ *q)
{
    return npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_PHASE_) > 1 ? "has more than 1 bit" : NULL;
}

static uint64_t npuprof_npu_phase_period_(const npuprof_npu_queue_ *q)
{
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) return npuprof_npu_sequence_period_(q);
    return 2 * (uint64_t)q->is.count;
}

/* The phase of the entry of that number. */
static uint64_t npuprof_npu_phase_of_(const npuprof_npu_queue_ *q, uint64_t number)
{
    return (q->is.phase_first ^ number / q->is.count) & 1;
}

static int npuprof_npu_phase_is_there_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number,
                                       uint64_t *word, uint64_t *gap)
{
    uint64_t shown;
    *word = npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, number), NPUPROF_NPU_AT_PHASE_);
    if (*word != npuprof_npu_phase_of_(q, number)) return NPUPROF_NPU_ENTRY_LATER_;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) return NPUPROF_NPU_ENTRY_GOOD_;
    /* Why only laps: the bit says that it is there; the number, that it is two laps further. */
    const int is = npuprof_npu_sequence_is_there_(npu, q, number, &shown, gap);
    return is == NPUPROF_NPU_ENTRY_LAPPED_ ? is : NPUPROF_NPU_ENTRY_GOOD_;
}

/* The number behind the newest entry: the least one, not before `from`, that the phases agree with. */
static uint64_t npuprof_npu_search_phase_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t from)
{
    const uint64_t count = q->is.count;
    uint64_t edge = 1;
    const uint64_t first =
        npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, 0), NPUPROF_NPU_AT_PHASE_);
    while (edge < count && npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, edge),
                                                   NPUPROF_NPU_AT_PHASE_) == first) edge++;
    if (from == 0 && edge == count && first != npuprof_npu_phase_of_(q, 0)) return 0;
    for (uint64_t lap = from / count;; lap++) {
        const uint64_t end = lap * count + edge;
        if (first == npuprof_npu_phase_of_(q, lap * count) && end >= from) return end;
    }
}

/* What the newest entry's number says of the next one, if it has one and that agrees with the phases. Why
   also of 0: after an even number of laps, all phases are those of a ring that was never written. */
static uint64_t npuprof_npu_number_phase_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t next)
{
    const uint64_t two_laps = 2 * (uint64_t)q->is.count, place = next + two_laps - 1;
    const volatile unsigned char *const entry = npuprof_npu_entry_at_(q, place);
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_) || npuprof_npu_is_blank_(npu, q, entry)) return next;
    const uint64_t shown = npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_);
    const uint64_t newest = npuprof_npu_number_of_(q, shown - q->is.sequence_first, place, two_laps);
    return newest != UINT64_MAX ? newest + 1 : next;
}

static npuprof_result npuprof_npu_find_phase_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    q->next = npuprof_npu_number_phase_(npu, q, npuprof_npu_search_phase_(npu, q, 0));
    npuprof_npu_remember_(npu, q);
    return NPUPROF_OK;
}

/* Whether the two entries before the next one have phases as after an even number of laps. Why two: one may
   be half written. */
static bool npuprof_npu_do_phases_fit_(npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    for (unsigned back = 1; back <= 2; back++) {
        const uint64_t number = q->next + 2 * (uint64_t)q->is.count - back;
        if (npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, number), NPUPROF_NPU_AT_PHASE_) !=
            npuprof_npu_phase_of_(q, number)) return false;
    }
    return true;
}

/* If the device came round, nothing tells how often; by an even number of laps, all of the first two are
   lost. Why the phases again: the device may have written one more entry between the look at them and the
   copy. */
static bool npuprof_npu_begin_phase_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading)
{
    const uint64_t period = npuprof_npu_phase_period_(q);
    const bool fitted = npuprof_npu_may_come_round_(q) && npuprof_npu_do_phases_fit_(npu, q);
    if (npuprof_npu_came_round_(npu, q)) {
        npuprof_npu_count_records_(npu, NPUPROF_RECORDS_LOSS_UNKNOWN, 1);
        if (npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) {
            npuprof_npu_pass_laps_(npu, q);
        } else if (fitted && npuprof_npu_do_phases_fit_(npu, q)) {
            npuprof_npu_count_gap_(npu, q, period);
            q->next += period;
            q->read_end = q->next + 1;
        }
    }
    return npuprof_npu_begin_asked_(npu, q, reading);
}

/* The entry is not there. If the one before it has changed since it was read, the device has come round, and
   nothing of what lies between can be told apart: all of it is lost. */
static void npuprof_npu_check_lap_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    if (npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_) && !npuprof_npu_phase_period_(q))
        npuprof_npu_pass_laps_(npu, q);
    const uint64_t before = q->next + 2 * (uint64_t)q->is.count - 1;
    const uint64_t last = npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, before),
                                                  NPUPROF_NPU_AT_PHASE_);
    if (last == npuprof_npu_phase_of_(q, before)) return;
    const uint64_t end = npuprof_npu_search_phase_(npu, q, q->next);
    npuprof_npu_count_gap_(npu, q, end - q->next);
    q->next = end;
    npuprof_npu_remember_(npu, q);
}

static int npuprof_npu_judge_phase_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading,
                                    unsigned i, int fate)
{
    (void)reading;
    if (fate == NPUPROF_NPU_ENTRY_LATER_ && !i) npuprof_npu_check_lap_(npu, q);
    return fate;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../types.h"
#include "../mmio.h"
#include "format.h"
#include "rule.h"
#include "laps.h"
#include "ready.h"

/* READY_SEQUENCE: an entry's field `sequence` shows its number, so it tells laps apart, too: with less than
   32 bits, not how often the numbers came round. */

static const char *npuprof_npu_check_sequence_(const npuprof_npu_queue_ *q)
{
    const uint64_t numbers = npuprof_npu_mask_(npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_SEQUENCE_));
    return numbers / 2 < q->is.count ? "has no numbers for more than two laps: it needs more bits" : NULL;
}

/* What the number says that is in an entry where that one is expected. */
static int npuprof_npu_sequence_is_there_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number,
                                          uint64_t *word, uint64_t *gap)
{
    const volatile unsigned char *const entry = npuprof_npu_entry_at_(q, number);
    const uint64_t mask = npuprof_npu_sequence_mask_(q);
    *word = npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_);
    const uint64_t ahead = (*word - (number + q->is.sequence_first)) & mask;
    if (ahead == 0) {                    /* Why: memory that was never written may show the number 0. */
        if (*word == 0 && npuprof_npu_is_blank_(npu, q, entry)) return NPUPROF_NPU_ENTRY_LATER_;
        return NPUPROF_NPU_ENTRY_GOOD_;
    }
    if (ahead > mask / 2 || ahead % q->is.count) return NPUPROF_NPU_ENTRY_LATER_;
    *gap = ahead - (q->is.count - 1);    /* the newest ones are still there */
    return NPUPROF_NPU_ENTRY_LAPPED_;
}

/* The number behind the newest entry, by the sequence numbers in the ring. */
static uint64_t npuprof_npu_search_sequence_(npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    const uint64_t count = q->is.count, mask = npuprof_npu_sequence_mask_(q);
    for (uint64_t i = 0; i < count; i++) {
        const volatile unsigned char *const entry = npuprof_npu_entry_at_(q, i);
        const volatile unsigned char *const after = npuprof_npu_entry_at_(q, i + 1);
        const uint64_t word = npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_);
        const uint64_t next = npuprof_npu_load_value_(npu, q, after, NPUPROF_NPU_AT_SEQUENCE_);
        if (((next - word) & mask) == 1 || npuprof_npu_is_blank_(npu, q, entry)) continue;
        const uint64_t number = npuprof_npu_number_of_(q, word - q->is.sequence_first, i, count);
        if (number != UINT64_MAX) return number + 1;
    }
    return 0;
}

static npuprof_result npuprof_npu_find_sequence_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    q->next = npuprof_npu_search_sequence_(npu, q);
    npuprof_npu_remember_(npu, q);
    return NPUPROF_OK;
}

/* If the device came round, a narrow number does not tell how often. */
static bool npuprof_npu_begin_sequence_(npuprof_npu *npu, npuprof_npu_queue_ *q,
                                        npuprof_npu_reading_ *reading)
{
    if (npuprof_npu_came_round_(npu, q)) {
        npuprof_npu_count_records_(npu, NPUPROF_RECORDS_LOSS_UNKNOWN, 1);
        npuprof_npu_pass_laps_(npu, q);
    }
    return npuprof_npu_begin_asked_(npu, q, reading);
}

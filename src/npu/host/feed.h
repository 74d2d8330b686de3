#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../types.h"
#include "../api.h"
#include "drain.h"

/* The driver brings the records: entries that it has anyway go through the decoder of drain.h at once. Under
   the queue lock, for which a second thread waits. */

/* Entries that the numbers in a fed queue say are missing. One that goes back begins to count anew. */
static void npuprof_npu_count_missing_(npuprof_npu *npu, npuprof_npu_queue_ *q, const npuprof_npu_record_ *r)
{
    uint64_t missing;
    if (!npuprof_npu_follows_(q, r, &missing)) q->last_sequence = r->v[NPUPROF_NPU_AT_SEQUENCE_];
    npuprof_npu_count_gap_(npu, q, missing);
}

static npuprof_result npuprof_npu_feed_(npuprof_npu *npu, npuprof_npu_queue_ *q, const unsigned char *data,
                                        size_t bytes)
{
    npuprof_npu_record_ record;
    npuprof_npu_pass_ pass;
    npuprof_result result = NPUPROF_OK;
    memset(&record, 0, sizeof record);
    if (!npuprof_npu_lock_queue_(npu)) return NPUPROF_ERR_NPU_BUSY;
    if (!npuprof_npu_begin_pass_(npu, q, &pass, &result)) {
        npuprof_npu_unlock_queue_(npu);
        return result;
    }
    npuprof_npu_take_late_(npu, false);
    for (size_t at = 0; at < bytes; at += q->is.entry_bytes) {
        npuprof_npu_take_entry_(q, data + at, &record);
        npuprof_npu_count_missing_(npu, q, &record);
        npuprof_npu_take_or_keep_(npu, q, &record, &pass);
    }
    npuprof_npu_end_pass_(npu, bytes != 0);
    if (q->is.stamp_clock == NPUPROF_NPU_STAMP_COUNTER) {
        const npuprof_result renewed = npuprof_npu_renew_if_due_(npu);
        if (result == NPUPROF_OK) result = renewed;
    }
    if (result == NPUPROF_ERR_NPU_NO_ANCHOR && npuprof_npu_lock_(npu)) {
        if (npu->has_last_) result = NPUPROF_OK;                 /* the records themselves told the time */
        npuprof_npu_unlock_(npu);
    }
    return result;
}

NPUPROF_API_ npuprof_result npuprof_npu_feed(npuprof_npu *npu, unsigned ring, const void *data, size_t bytes)
{
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    if (ring >= npu->queue_count_) return NPUPROF_ERR_NPU_NO_RING;
    npuprof_npu_queue_ *const q = &npu->queues_[ring];
    if (!q->is.feed) return NPUPROF_REFUSE_("npuprof_npu_feed: this ring is polled, not fed");
    if (!data && bytes) return NPUPROF_REFUSE_("npuprof_npu_feed: data is NULL");
    if (bytes % q->is.entry_bytes)
        return NPUPROF_REFUSE_("npuprof_npu_feed: bytes is no multiple of ring.entry_bytes");
    return npuprof_npu_explain_(npu, npuprof_npu_feed_(npu, q, (const unsigned char *)data, bytes));
}

NPUPROF_API_ void npuprof_npu_set_stamp_offset(npuprof_npu *npu, int64_t ticks)
{
    if (!npu->number_ || !npuprof_npu_lock_queue_(npu)) return;
    for (unsigned i = 0; i < npu->queue_count_; i++) {
        npuprof_npu_queue_ *const q = &npu->queues_[i];
        if (q->is.stamp_clock != NPUPROF_NPU_STAMP_COUNTER || q->is.stamp_offset == ticks) continue;
        q->is.stamp_offset = ticks;
        npuprof_npu_limit_stamps_(npu, q);
        npuprof_npu_forget_stamps_(npu, q);
    }
    npu->stamp_offset_ = ticks;
    npuprof_npu_unlock_queue_(npu);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../types.h"
#include "../api.h"
#include "../mmio.h"
#include "../clock.h"
#include "../anchors.h"
#include "pmu.h"
#include "draw.h"
#include "rules.h"
#include "stamp.h"
#include "late.h"
#include "progress.h"

/* The library comes for the records of rings that it polls. One drain works at a time, the one that holds the
   queue lock.

   A ring is read up to where the device was when its drain began; then the clock is read, so every stamp lies
   before it. */

/* Takes one batch that was copied. True: go on with the next. */
static bool npuprof_npu_take_batch_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading,
                                    const npuprof_npu_pass_ *pass)
{
    const uint64_t first = q->next;
    for (unsigned i = 0; i < reading->count; i++) {
        const uint64_t number = first + i;
        const int fate = reading->fate[i];
        if (fate == NPUPROF_NPU_ENTRY_LATER_) return false;
        if (fate == NPUPROF_NPU_ENTRY_LAPPED_) {
            npuprof_npu_count_gap_(npu, q, reading->gap[i]);
            q->next = number + reading->gap[i];
            q->index.last += reading->gap[i];
            reading->producer += reading->gap[i];
            return true;
        }
        const bool good = fate == NPUPROF_NPU_ENTRY_GOOD_;
        npuprof_npu_count_gap_(npu, q, good ? reading->gap[i] : 1);
        if (good) npuprof_npu_take_or_keep_(npu, q, &reading->batch[i], pass);
        q->next = number + 1;
        if (i + 1 < reading->count && reading->fate[i + 1] == NPUPROF_NPU_ENTRY_GOOD_) continue;
        q->read_end = good ? q->next + 1 : 0;
        q->read_hash = npuprof_npu_hash_record_(q, &reading->batch[i]);
    }
    return true;
}

/* Takes what a ring has. */
static void npuprof_npu_drain_queue_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_visit_ *d)
{
    npuprof_npu_reading_ reading;
    npuprof_npu_pass_ pass;
    if (npuprof_npu_is_in_bar_(q) && !npuprof_npu_is_on_(npu)) {
        reading.result = NPUPROF_ERR_NPU_OFF;
    } else if (npuprof_npu_begin_reading_(npu, q, &reading)) {
        const uint64_t begun = q->next;
        /* Why the clock after the copy, and for each batch that no index announced: what came meanwhile has
           stamps of meanwhile. */
        bool go_on = true;
        for (bool again = false; go_on && npuprof_npu_copy_batch_(npu, q, &reading); again = true) {
            if (!q->rule->is_announced || !again) go_on = npuprof_npu_begin_pass_(npu, q, &pass, &d->result);
            if (go_on) go_on = npuprof_npu_take_batch_(npu, q, &reading, &pass);
        }
        d->took = d->took || q->next != begun;
    }
    if (d->ring_result == NPUPROF_OK) d->ring_result = reading.result;
}

/* Takes an anchor if one is due. */
static npuprof_result npuprof_npu_renew_if_due_(npuprof_npu *npu)
{
    if (!npuprof_npu_lock_(npu)) return NPUPROF_OK;
    const bool due = npuprof_npu_anchor_is_due_(npu, npuprof_ticks_()) ||
                     npuprof_npu_rate_changed_(npu, &npu->last_);
    npuprof_npu_unlock_(npu);
    return due ? npuprof_npu_renew_anchor_(npu) : NPUPROF_OK;
}

/* wait: for another drain, which is not to take the last records. */
static npuprof_result npuprof_npu_drain_(npuprof_npu *npu, bool wait)
{
    npuprof_npu_visit_ d = { NPUPROF_OK, NPUPROF_OK, false };
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    if (!npu->queue_count_ && !npu->desc_.progress.is_there) return NPUPROF_ERR_NPU_NO_RING;
    if (wait && !npuprof_npu_lock_queue_(npu)) return NPUPROF_ERR_NPU_BUSY;
    if (!wait && !npuprof_npu_try_queue_(npu)) return NPUPROF_OK;
    npuprof_npu_take_late_(npu, false);
    for (unsigned i = 0; i < npu->queue_count_; i++)
        if (npu->queues_[i].base) npuprof_npu_drain_queue_(npu, &npu->queues_[i], &d);
    if (npu->desc_.progress.is_there) npuprof_npu_drain_progress_(npu, &d);
    npuprof_npu_end_pass_(npu, d.took);
    if (d.ring_result != NPUPROF_ERR_NPU_DEAD && d.result != NPUPROF_ERR_NPU_DEAD) {
        const npuprof_result renewed = npuprof_npu_renew_if_due_(npu);
        /* Why not no anchor: the records may need none, or said so themselves. */
        if (d.result == NPUPROF_OK && renewed != NPUPROF_ERR_NPU_NO_ANCHOR) d.result = renewed;
    }
    return d.ring_result != NPUPROF_OK ? d.ring_result : d.result;
}

NPUPROF_API_ npuprof_result npuprof_npu_drain(npuprof_npu *npu)
{
    return npuprof_npu_explain_(npu, npuprof_npu_drain_(npu, false));
}

/* The last records of a device that is being closed: what lies in its rings, and begins without ends. */
static void npuprof_npu_finish_records_(npuprof_npu *npu)
{
    npuprof_npu_pair_ *pair;
    (void)npuprof_npu_drain_(npu, true);
    if (!npuprof_npu_lock_queue_(npu)) return;
    for (unsigned i = 0; i < npu->queue_count_; i++) {
        npuprof_npu_queue_ *q = &npu->queues_[i];
        uint64_t producer;
        if (!q->base || !q->rule->is_announced || !q->found) continue;
        if (npuprof_npu_is_in_bar_(q) && !npuprof_npu_is_on_(npu)) continue;
        if (npuprof_npu_read_producer_(npu, q, &producer) == NPUPROF_OK)
            npuprof_npu_count_records_(npu, NPUPROF_RECORDS_OVERWRITTEN, producer - q->next);
    }
    npuprof_npu_take_late_(npu, true);
    npuprof_npu_count_open_jobs_(npu);
    while ((pair = npuprof_npu_oldest_pair_(npu)) != NULL) npuprof_npu_abandon_pair_(npu, pair);
    npuprof_npu_end_pass_(npu, false);
}

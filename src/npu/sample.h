#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "types.h"
#include "api.h"
#include "mmio.h"
#include "clock.h"
#include "anchors.h"

/* The two reads of a sampled submission, and what they say together. The caller holds the device's lock. Owns
   nothing.

   Two ways to place such a span:
     by the device's clock   its stamps are device ticks, which the anchors map
     by_host                 its stamps are the middles of the two brackets. They are true whatever the
                             counter did in between; the ticks are an argument. For a device that may stand
                             (npuprof_npu_may_stand_), and for a block whose begin found a counter that stood
                             or had begun again: no anchor of its epoch is known there. */

static void npuprof_npu_sample_begin_(npuprof_npu_block_ *block)
{
    npuprof_npu *npu = block->npu;
    npuprof_anchor_ sample;
    const bool stood = npuprof_npu_may_stand_(npu) || npu->idle_;
    const npuprof_result result = npuprof_npu_is_pushed_(npu) ? NPUPROF_ERR_NPU_NO_RING
                                                              : npuprof_npu_read_locked_(npu, &sample);
    const bool begins = result == NPUPROF_ERR_NPU_STOPPED || result == NPUPROF_ERR_NPU_RESET ||
                        result == NPUPROF_ERR_NPU_AMBIGUOUS;
    block->by_host = stood || begins;
    block->result = begins ? NPUPROF_OK : result;
    block->epoch = npu->epoch_;
    if (block->result != NPUPROF_OK) return;
    block->start_ticks = sample.device_ticks;
    block->host_before = sample.host_before;
    block->host_after = sample.host_after;
}

/* The end of a block was read: result, end. NPUPROF_OK: there is a device span; *ticks is its length. */
static npuprof_result npuprof_npu_sample_end_(const npuprof_npu_block_ *block, npuprof_result result,
                                              const npuprof_anchor_ *end, uint64_t *ticks)
{
    const npuprof_npu *npu = block->npu;
    const uint64_t mask = npuprof_npu_mask_(npu->desc_.counter.bits);
    uint64_t min, most = mask / 2;
    const uint64_t hz = npu->desc_.counter.hz;
    *ticks = 0;
    if (block->result != NPUPROF_OK) return block->result;
    if (!block->by_host) {
        *ticks = end->device_ticks - block->start_ticks;
        return result == NPUPROF_OK && npu->epoch_ != block->epoch ? npu->epoch_why_ : result;
    }
    if (!npuprof_npu_time_goes_on_(result) && result != NPUPROF_ERR_NPU_STOPPED) return result;
    *ticks = (end->device_ticks - block->start_ticks) & mask;
    if (!*ticks) return NPUPROF_ERR_NPU_STOPPED;
    if (NPUPROF_NPU_DIVIDES_) {
        const uint64_t host = npuprof_saturating_sub_(end->host_after, block->host_before);
        (void)npuprof_npu_predict_(npu, 0, host, &min, &most);
        /* Why the nominal rate, too: the measured one is less if the counter stood in between. */
        if (hz) most = npuprof_max_(most, npuprof_npu_mul_div_(host, 4 * hz, npu->second_, true));
    }
    /* Why RESET: a counter that seems to have run too fast has gone back. */
    return *ticks <= npuprof_min_(most, mask / 2) ? NPUPROF_OK : NPUPROF_ERR_NPU_RESET;
}

/* The middles of the two brackets. Returns how far they may be off. */
static uint64_t npuprof_npu_sample_place_(const npuprof_npu_block_ *block, const npuprof_anchor_ *end,
                                          uint64_t *start_host, uint64_t *end_host)
{
    npuprof_anchor_ begin;
    begin.device_ticks = block->start_ticks;
    begin.host_before = block->host_before;
    begin.host_after = block->host_after;
    *start_host = npuprof_anchor_middle_(&begin);
    *end_host = npuprof_max_(npuprof_anchor_middle_(end), *start_host);
    return npuprof_max_(npuprof_anchor_error_(&begin), npuprof_anchor_error_(end)) + 1;
}

#if !defined(NPUPROF_FREESTANDING) || defined(NPUPROF_NPU_RECORDS)
/* Before a job goes to a device whose own records will show it: if the counter may stand, it is read, and an
   epoch begins where it stood or began anew. Why: a stamp from before the first read of an epoch may be of
   any epoch. */
static void npuprof_npu_look_(npuprof_npu *npu)
{
    npuprof_anchor_ sample;
    uint64_t min, max;
    if (!npuprof_npu_may_stand_(npu) || npuprof_npu_is_pushed_(npu) || !npuprof_npu_lock_(npu)) return;
    const npuprof_anchor_ before = npu->last_;
    const npuprof_result result = npuprof_npu_read_locked_(npu, &sample);
    bool stood = result == NPUPROF_ERR_NPU_STOPPED;
    if (result == NPUPROF_OK && sample.device_ticks == before.device_ticks)
        stood = npuprof_npu_predict_(npu, npuprof_saturating_sub_(sample.host_before, before.host_after), 0,
                                     &min, &max) && min > 0;
    if (stood && npu->anchor_count_) {
        npuprof_npu_new_epoch_(npu, NPUPROF_ERR_NPU_RESET);
        npu->last_ = sample;
    }
    if ((stood || npuprof_npu_time_goes_on_(result)) && npu->anchor_count_ == 0)
        (void)npuprof_npu_add_anchor_(npu, &sample);
    npuprof_npu_unlock_(npu);
}
#endif /* !NPUPROF_FREESTANDING || NPUPROF_NPU_RECORDS */

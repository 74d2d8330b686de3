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

/* Whether the newest read found the value of the one before, though the counter should have moved since.
   Such a read leaves last_ as it was. Every other one is last_ itself, or failed and is a copy of it: no
   time passed. */
static bool npuprof_npu_stood_(const npuprof_npu *npu, const npuprof_anchor_ *sample)
{
    uint64_t min, max;
    return sample->device_ticks == npu->last_.device_ticks &&
           npuprof_npu_predict_since_(npu, sample->host_before, 0, &min, &max) && min > 0;
}

static void npuprof_npu_sample_begin_(npuprof_npu_block_ *block)
{
    npuprof_npu *npu = block->npu;
    const bool may_stand = npuprof_npu_may_stand_(npu) || npu->idle_;
    const npuprof_result result = npuprof_npu_is_pushed_(npu) ? NPUPROF_ERR_NPU_NO_RING
                                                              : npuprof_npu_read_locked_(npu, &block->begin);
    const bool begins = result == NPUPROF_ERR_NPU_STOPPED || result == NPUPROF_ERR_NPU_RESET ||
                        result == NPUPROF_ERR_NPU_AMBIGUOUS;
    block->by_host = may_stand || begins || npuprof_npu_stood_(npu, &block->begin);
    block->result = begins ? NPUPROF_OK : result;
    block->epoch = npu->epoch_;
}

/* The end of a sampled submission. */
typedef struct npuprof_npu_end_state_ {
    npuprof_anchor_ read;
    npuprof_result result;               /* NPUPROF_OK: there is a device span */
    uint32_t epoch;
    uint64_t ticks;                      /* its length */
    bool renew;                          /* an anchor is to be taken after the host span */
    bool is_anchor;                      /* this read has a bracket that will do for the anchor that is due */
} npuprof_npu_end_state_;

/* Whether there is a device span to end->read, whose result was `read`. */
static npuprof_result npuprof_npu_judge_end_(const npuprof_npu_block_ *block, npuprof_result read,
                                             npuprof_npu_end_state_ *end)
{
    const npuprof_npu *npu = block->npu;
    const uint64_t mask = npuprof_npu_mask_(npu->desc_.counter.bits);
    uint64_t min, most = mask / 2;
    const uint64_t hz = npu->desc_.counter.hz;
    if (block->result != NPUPROF_OK) return block->result;
    end->ticks = end->read.device_ticks - block->begin.device_ticks;
    if (!block->by_host) return read == NPUPROF_OK && npu->epoch_ != block->epoch ? npu->epoch_why_ : read;
    if (!npuprof_npu_time_goes_on_(read) && read != NPUPROF_ERR_NPU_STOPPED) return read;
    end->ticks &= mask;
    if (!end->ticks) return NPUPROF_ERR_NPU_STOPPED;
    if (NPUPROF_NPU_DIVIDES_) {
        const uint64_t host = npuprof_saturating_sub_(end->read.host_after, block->begin.host_before);
        (void)npuprof_npu_predict_(npu, 0, host, &min, &most);
        /* Why the nominal rate, too: the measured one is less if the counter stood in between. */
        if (hz) most = npuprof_max_(most, npuprof_npu_mul_div_(host, 4 * hz, npu->second_, true));
    }
    /* Why RESET: a counter that seems to have run too fast has gone back. */
    return end->ticks <= npuprof_min_(most, mask / 2) ? NPUPROF_OK : NPUPROF_ERR_NPU_RESET;
}

/* Reads the counter at the end. */
static void npuprof_npu_sample_end_(const npuprof_npu_block_ *block, npuprof_npu_end_state_ *end)
{
    npuprof_npu *npu = block->npu;
    const npuprof_result read = npuprof_npu_read_locked_(npu, &end->read);
    end->result = npuprof_npu_judge_end_(block, read, end);
    end->epoch = npu->epoch_;
    /* Why none of a device that may stand: its spans are placed without them. */
    const bool anchors = npuprof_npu_time_goes_on_(read) && !npuprof_npu_may_stand_(npu);
    end->renew = anchors && (npu->anchor_count_ < 2 || npuprof_npu_rate_changed_(npu, &end->read));
    /* Why not a wide one: waiting for a better one is no worse. */
    end->is_anchor = anchors && read == NPUPROF_OK && !end->renew &&
                     npuprof_npu_anchor_is_due_(npu, end->read.host_after) &&
                     npuprof_anchor_width_(&end->read) <= 4 * npu->best_width_;
}

/* Nothing was read at the end: somebody holds the device. */
static void npuprof_npu_no_end_(npuprof_npu_end_state_ *end)
{
    end->result = NPUPROF_ERR_NPU_BUSY;
    end->epoch = 0;
    end->ticks = 0;
    end->renew = end->is_anchor = false;
}

/* The middles of the two brackets. Returns how far they may be off. */
static uint64_t npuprof_npu_sample_place_(const npuprof_npu_block_ *block, const npuprof_anchor_ *end,
                                          uint64_t *start_host, uint64_t *end_host)
{
    *start_host = npuprof_anchor_middle_(&block->begin);
    *end_host = npuprof_max_(npuprof_anchor_middle_(end), *start_host);
    return npuprof_max_(npuprof_anchor_error_(&block->begin), npuprof_anchor_error_(end)) + 1;
}

#if !defined(NPUPROF_FREESTANDING) || defined(NPUPROF_NPU_RECORDS)
/* Before a job goes to a device whose own records will show it: if the counter may stand, it is read, and an
   epoch begins where it stood or began anew. Why: a stamp from before the first read of an epoch may be of
   any epoch. */
static void npuprof_npu_look_(npuprof_npu *npu)
{
    npuprof_anchor_ sample;
    if (!npuprof_npu_may_stand_(npu) || npuprof_npu_is_pushed_(npu) || !npuprof_npu_lock_(npu)) return;
    const npuprof_result result = npuprof_npu_read_locked_(npu, &sample);
    const bool stood = result == NPUPROF_ERR_NPU_STOPPED || npuprof_npu_stood_(npu, &sample);
    if (stood && npu->anchor_count_) {
        npuprof_npu_new_epoch_(npu, NPUPROF_ERR_NPU_RESET);
        npu->last_ = sample;
    }
    if ((stood || npuprof_npu_time_goes_on_(result)) && npu->anchor_count_ == 0)
        (void)npuprof_npu_add_anchor_(npu, &sample);
    npuprof_npu_unlock_(npu);
}
#endif /* !NPUPROF_FREESTANDING || NPUPROF_NPU_RECORDS */

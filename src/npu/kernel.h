#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "../format/compact.h"
#include "../record/event.h"
#include "types.h"
#include "api.h"
#include "mmio.h"
#include "clock.h"
#include "anchors.h"
#include "ring.h"

/* The block macro. */
#ifdef NPUPROF_FREESTANDING
NPUPROF_API_ void npuprof_npu_enter_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream)
{
    block->npu = npu;
    block->stream = stream;
    npuprof_wait_around_(&npu->device);
}
NPUPROF_API_ npuprof_token_ npuprof_npu_begin_(npuprof_npu_block_ *block, npuprof_token_ token)
{
    npuprof_npu *npu = block->npu;
    npuprof_anchor_ sample;
    block->result = NPUPROF_ERR_NPU_BUSY;
    if (!token || !npu->number_ || !npuprof_npu_lock_(npu)) return token;
    block->result = npuprof_npu_read_locked_(npu, &sample);
    block->epoch = npu->epoch_;
    block->start_ticks = sample.device_ticks;
    npuprof_npu_unlock_(npu);
    return token;
}
NPUPROF_API_ void npuprof_npu_end_(npuprof_npu_block_ *block)
{
    npuprof_npu *npu = block->npu;
    npuprof_anchor_ sample;
    npuprof_result result = NPUPROF_ERR_NPU_BUSY;
    uint32_t epoch = 0;
    bool renew = false, due = false;
    npuprof_wait_around_(&npu->device);
    if (!npu->number_) {
        npuprof_close_(block->token);
        return;
    }
    if (npuprof_npu_lock_(npu)) {
        result = npuprof_npu_read_locked_(npu, &sample);
        epoch = npu->epoch_;
        renew = npuprof_npu_time_goes_on_(result) && npu->anchor_count_ < 2;
        due = result == NPUPROF_OK && !renew && npuprof_npu_anchor_is_due_(npu, sample.host_after) &&
              npuprof_anchor_width_(&sample) <= 4 * npu->best_width_;
        npuprof_npu_unlock_(npu);
    }
    npuprof_close_(block->token);
    if (block->result != NPUPROF_OK) result = block->result;
    else if (result == NPUPROF_OK && epoch != block->epoch) result = npu->epoch_why_;
    if (result == NPUPROF_OK) {
        const npuprof_arg arg = npuprof_int_("stream", (int64_t)block->stream);
        const uint64_t values[3] = { block->start_ticks, sample.device_ticks,
                                     (uint64_t)block->token << 32 | (uint32_t)1 << 24 | (epoch & 0xFFFF) << 8 | npu->number_ };
        npuprof_npu_put_record_(NPUPROF_NPU_NAME_OF_(npu), NPUPROF_KIND_DEVICE, values, npuprof_args_(&arg, 1));
    } else {                             /* the event lies behind the host span, and says why there is no device span */
        const char *const texts[3] = { "no device span", "NPU", NULL };
        npuprof_arg why[2] = { npuprof_str_("device", npu->device.name), npuprof_uint_("why", (uint64_t)result) };
        why[1].type = NPUPROF_FIELD_RESULT_;
        (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(NPUPROF_KIND_INSTANT), false, texts, NULL, npuprof_args_(why, 2));
    }
    /* Why behind the host span: what it takes is none of the kernel's time. */
    if (due && npuprof_npu_lock_(npu)) {
        if (epoch == npu->epoch_) (void)npuprof_npu_add_anchor_(npu, &sample);
        npuprof_npu_unlock_(npu);
    }
    if (renew) (void)npuprof_npu_renew_anchor_(npu);
}

NPUPROF_API_ void npuprof_npu_span(npuprof_npu *npu, unsigned pe, const char *name, const char *cat, uint64_t start_ticks,
                                   uint64_t end_ticks, npuprof_args args)
{
    if (!npu->number_ || !NPUPROF_OPEN_(1)) return;
    const char *const texts[3] = { name ? name : "", cat, NULL };
    const uint64_t values[3] = { start_ticks, end_ticks < start_ticks ? start_ticks : end_ticks,
                                 (uint64_t)(pe & 0xFFFF) << 32 | (npu->epoch_ & 0xFFFF) << 8 | npu->number_ };
    (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(NPUPROF_KIND_DEVICE), false, texts, values, args);
}
#else
NPUPROF_API_ npuprof_token_ npuprof_npu_begin_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream, npuprof_site_ *site,
                                               npuprof_keys_ *keys, bool literals, const char *category, const char *name,
                                               npuprof_args args)
{
    const bool by_ring = npu->number_ && npu->desc_.ring.count;
    const npuprof_token_ token =
        npuprof_begin_named_(by_ring ? NULL : &npu->device, site, keys, NPUPROF_KIND_SPAN, category, name, args);
    block->npu = npu;
    block->stream = stream;
    block->sampled = false;
    block->ticket = block->pmu_good = 0;
    block->result = NPUPROF_ERR_NPU_BUSY;
    if (!token || !npu->number_) return token;
    block->link = npuprof_link_here_();
    if (by_ring) {
        npuprof_npu_job_ *job = npuprof_npu_new_job_(npu, NPUPROF_NPU_IN_BLOCK_, stream, &block->link);
        if (job) {
            block->ticket = job->ticket;
            block->sampled = true;
            npuprof_npu_copy_text_(job->name, sizeof job->name, name);
            npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
        }
        return token;
    }
    block->name = name;
    block->category = category;
    if (!literals) {
        npuprof_npu_copy_text_(block->name_copy, sizeof block->name_copy, name);
        npuprof_npu_copy_text_(block->category_copy, sizeof block->category_copy, category);
        block->name = block->name_copy;
        block->category = category ? block->category_copy : NULL;
    }
    npuprof_anchor_ sample;
    if (!npuprof_npu_lock_(npu)) return token;
    block->result = npuprof_npu_read_locked_(npu, &sample);
    block->sampled = block->result == NPUPROF_OK;
    block->epoch = npu->epoch_;
    block->start_ticks = sample.device_ticks;
    if (block->sampled) block->pmu_good = npuprof_npu_load_pmu_(npu, block->pmu);
    npuprof_npu_add_pmu_(npu, block->pmu_good, block->pmu);
    npuprof_npu_unlock_(npu);
    npuprof_npu_draw_pmu_(npu, block->pmu_good, block->pmu);
    return token;
}

NPUPROF_API_ void npuprof_npu_end_(npuprof_npu_block_ *block)
{
    npuprof_npu *npu = block->npu;
    if (npu->number_ && npu->desc_.ring.count) {
        npuprof_npu_job_ *job = &npu->jobs_[block->ticket % NPUPROF_NPU_JOBS_];
        if (block->sampled && NPUPROF_LOAD_(&job->ticket) == block->ticket && npuprof_npu_hold_job_(job, NPUPROF_NPU_READY_)) {
            const bool mine = job->ticket == block->ticket;
            const uint32_t flags = job->flags;
            /* Over already, or the driver numbers its commands and submitted none here. */
            const bool over = mine && !(flags & NPUPROF_NPU_HAS_ID_) && (!(flags & NPUPROF_NPU_IN_BLOCK_) || NPUPROF_LOAD_(&npu->uses_ids_));
            if (mine) NPUPROF_STORE_(&job->flags, flags & ~(uint32_t)NPUPROF_NPU_IN_BLOCK_);
            npuprof_npu_release_job_(job, over ? NPUPROF_NPU_FREE_ : NPUPROF_NPU_READY_);
        }
        npuprof_close_(block->token);
        return;
    }
    if (npu->device.wait_around) npuprof_wait_(&npu->device);
    if (!npu->number_) {
        npuprof_close_(block->token);
        return;
    }
    npuprof_anchor_ sample;
    npuprof_result result = NPUPROF_ERR_NPU_BUSY;
    uint64_t pmu[NPUPROF_NPU_PMU_];
    uint32_t epoch = 0, pmu_good = 0;
    bool renew = false;
    if (npuprof_npu_lock_(npu)) {
        if (block->sampled) pmu_good = npuprof_npu_load_pmu_(npu, pmu);      /* Why first: so their steps lie between the two stamps */
        result = npuprof_npu_read_locked_(npu, &sample);
        epoch = npu->epoch_;
        if (result == NPUPROF_OK && epoch == block->epoch) npuprof_npu_add_pmu_(npu, pmu_good, pmu);
        renew = npuprof_npu_time_goes_on_(result) && (npu->anchor_count_ < 2 || npuprof_npu_rate_changed_(npu, &sample));
        /* A free anchor: this read has a bracket, too. Why not a wide one: it would be no better than waiting. */
        if (result == NPUPROF_OK && !renew && npuprof_npu_anchor_is_due_(npu, sample.host_after) &&
            npuprof_anchor_width_(&sample) <= 4 * npu->best_width_)
            (void)npuprof_npu_add_anchor_(npu, &sample);
        npuprof_npu_unlock_(npu);
    }
    if (block->result != NPUPROF_OK) result = block->result;
    else if (result == NPUPROF_OK && epoch != block->epoch) result = npu->epoch_why_;
    if (result == NPUPROF_ERR_NPU_BUSY) npuprof_count_lost_(NPUPROF_LOST_BUSY, 1);
    if (result != NPUPROF_OK) {          /* the host span says why there is no device span */
        const npuprof_arg why[] = { npuprof_str_("device", npu->device.name),
                                    npuprof_str_("why", npuprof_result_string(npuprof_npu_explain_result_(npu, result))) };
        npuprof_record_named_event_(NPUPROF_KIND_INSTANT, "NPU", "no device span", 0, NULL, 0, npuprof_args_(why, 2));
    }
    npuprof_close_(block->token);
    if (result == NPUPROF_OK) {
        npuprof_arg list[1 + NPUPROF_NPU_PMU_];
        size_t count = 0;
        list[count++] = npuprof_int_("stream", (int64_t)block->stream);
        npuprof_npu_draw_pmu_(npu, pmu_good, pmu);
        for (unsigned i = 0; i < npu->desc_.pmu_count; i++)
            if (pmu_good & block->pmu_good & 1u << i)
                list[count++] = npuprof_uint_(npu->pmu_[i].is.is_busy ? "busy_ticks" : npu->pmu_[i].is.name, pmu[i] - block->pmu[i]);
        npuprof_device_span_(npu->number_, epoch, 0, block->category, block->name, block->start_ticks, sample.device_ticks,
                             NPUPROF_STAMP_SAMPLED, &block->link, npuprof_args_(list, count));
    }
    if (renew) (void)npuprof_npu_renew_anchor_(npu);
}

NPUPROF_API_ void npuprof_npu_span(npuprof_npu *npu, unsigned pe, const char *name, const char *cat, uint64_t start_ticks,
                                   uint64_t end_ticks, npuprof_args args)
{
    if (!npu->number_ || !NPUPROF_OPEN_(1)) return;
    npuprof_device_span_(npu->number_, NPUPROF_LOAD_(&npu->epoch_), pe, cat, name, start_ticks, end_ticks < start_ticks ? start_ticks : end_ticks,
                         NPUPROF_STAMP_DEVICE, NULL, args);
}
#endif

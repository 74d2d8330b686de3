#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../record/args.h"
#include "../../record/begin.h"
#include "../../record/end.h"
#include "../../record/event.h"
#include "../../record/device_span.h"
#include "../../control/environment.h"
#include "../types.h"
#include "../api.h"
#include "../macros.h"
#include "../mmio.h"
#include "../clock.h"
#include "../anchors.h"
#include "../sample.h"
#include "pmu.h"
#include "jobs.h"
#include "late.h"

/* The two ends of a submission, and device spans by hand. With a ring the ends only say who submitted;
   without one the counter is read at both. Owns the npuprof_npu_block_, which lies on the stack of the thread
   that is in a block, or in an entry of npu/calls.h that this thread holds. */

/* The device's end of a submission begins; its host span is open. literals: name and category stay. */
static void npuprof_npu_begin_device_(npuprof_npu_block_ *block, bool literals, const char *category,
                                      const char *name)
{
    npuprof_npu *npu = block->npu;
    block->link = npuprof_link_here_();
    if (npu->desc_.cpu_ns) npuprof_npu_note_usage_(&block->link);
    if (npu->has_submissions_) {
        npuprof_npu_look_(npu);
        npuprof_npu_job_ *job = npuprof_npu_new_job_(npu, NPUPROF_NPU_IN_BLOCK_, block->stream, &block->link);
        if (!job) return;
        NPUPROF_STORE_(&block->job_at, (uint32_t)(job - npu->jobs_));
        NPUPROF_STORE_(&block->ticket, job->ticket);
        block->sampled = true;
        npuprof_npu_copy_text_(job->name, sizeof job->name, name);
        npuprof_npu_release_job_(npu, job, NPUPROF_NPU_JOB_OPEN_);
        return;
    }
    block->name = name;
    block->category = category;
    if (!literals) {
        npuprof_npu_copy_text_(block->name_copy, sizeof block->name_copy, name);
        npuprof_npu_copy_text_(block->category_copy, sizeof block->category_copy, category);
        block->name = block->name_copy;
        block->category = category ? block->category_copy : NULL;
    }
    if (!npuprof_npu_lock_(npu)) return;
    npuprof_npu_sample_begin_(block);
    block->sampled = block->result == NPUPROF_OK;
    if (block->sampled) block->pmu_good = npuprof_npu_load_pmu_(npu, block->pmu);
    npuprof_npu_add_pmu_(npu, block->pmu_good, block->pmu, 0);
    npuprof_npu_unlock_(npu);
    npuprof_npu_draw_pmu_(npu, block->pmu_good, block->pmu);
}

/* Nothing is known of the device yet. */
static void npuprof_npu_clear_block_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream)
{
    block->npu = npu;
    block->stream = stream;
    block->sampled = false;
    block->pmu_good = 0;
    NPUPROF_STORE_(&block->job_at, 0u);
    NPUPROF_STORE_(&block->ticket, 0u);
    block->result = NPUPROF_ERR_NPU_BUSY;
}

/* The host span was not recorded: if it was lost, so is the device span, for the same cause. With a ring the
   device span comes by its record. site and keys may both be NULL. */
static NPUPROF_SLOW_ void npuprof_npu_count_lost_span_(const npuprof_npu *npu, npuprof_site_ *site,
                                                       npuprof_keys_ *keys, const char *category,
                                                       const char *name)
{
    if (!npu->number_ || npu->has_submissions_) return;
    npuprof_slot_ *const slot = npuprof_record_enter_();
    if (!slot) {
        (void)npuprof_record_count_no_context_();
        return;
    }
    /* Without a number it is not to be recorded, or the table is full, which that counts. */
    const uint32_t id = site || keys ? npuprof_record_named_id_(site, keys, category, name)
                                     : npuprof_record_resolve_name_(NPUPROF_KIND_SPAN, category, name);
    if (id) npuprof_record_count_full_(slot);
    npuprof_record_leave_(slot);
}

NPUPROF_API_ npuprof_token_ npuprof_npu_begin_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream,
                                               npuprof_site_ *site, npuprof_keys_ *keys, bool literals,
                                               const char *category, const char *name, npuprof_args args)
{
    const bool by_ring = npu->number_ && npu->has_submissions_;
    const npuprof_token_ token = npuprof_begin_named_(by_ring ? NULL : &npu->device, site, keys,
                                                      category, name, args);
    npuprof_npu_clear_block_(block, npu, stream);
    if (token && npu->number_) npuprof_npu_begin_device_(block, literals, category, name);
    else if (!token) npuprof_npu_count_lost_span_(npu, site, keys, category, name);
    return token;
}

/* The end of a sampled block, with its event counters. */
typedef struct npuprof_npu_block_end_ {
    npuprof_npu_end_state_ is;
    uint32_t pmu_good;
    uint64_t pmu[NPUPROF_NPU_PMU_];
} npuprof_npu_block_end_;

/* Reads counter and event counters. */
static void npuprof_npu_read_end_(const npuprof_npu_block_ *block, npuprof_npu_block_end_ *end)
{
    npuprof_npu *npu = block->npu;
    end->pmu_good = 0;
    npuprof_npu_no_end_(&end->is);
    if (!npuprof_npu_lock_(npu)) return;
    /* Why the event counters first: so their steps lie between the two stamps. */
    if (block->sampled) end->pmu_good = npuprof_npu_load_pmu_(npu, end->pmu);
    npuprof_npu_sample_end_(block, &end->is);
    if (end->is.result == NPUPROF_OK)
        npuprof_npu_add_pmu_(npu, end->pmu_good, end->pmu, NPUPROF_NPU_JOBS_RAN_ | NPUPROF_NPU_SAME_RUN_);
    if (end->is.is_anchor) (void)npuprof_npu_keep_reads_(npu, &end->is.read, true);
    npuprof_npu_unlock_(npu);
}

static void npuprof_npu_draw_sampled_(const npuprof_npu_block_ *block, const npuprof_npu_block_end_ *end,
                                      npuprof_args args)
{
    npuprof_npu *npu = block->npu;
    npuprof_arg list[3 + NPUPROF_NPU_PMU_ + NPUPROF_NPU_CALL_ARGS_ + NPUPROF_NPU_USAGE_ARGS_];
    size_t count = 0;
    list[count++] = npuprof_int_("stream", (int64_t)block->stream);
    if (block->link.correlation) list[count++] = npuprof_uint_("correlation", block->link.correlation);
    npuprof_npu_draw_pmu_(npu, end->pmu_good, end->pmu);
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++)
        if (end->pmu_good & block->pmu_good & 1u << i)
            list[count++] = npuprof_npu_pmu_arg_(npu, i, block->pmu[i], end->pmu[i], end->is.ticks);
    uint64_t start = block->begin.device_ticks, stop = end->is.read.device_ticks;
    uint32_t epoch = end->is.epoch;
    if (block->by_host) {
        list[count++] = npuprof_uint_("ticks", end->is.ticks);
        epoch = npuprof_host_error_code_(npuprof_npu_sample_place_(block, &end->is.read, &start, &stop));
    }
    for (size_t i = 0; i < args.count && i < NPUPROF_NPU_CALL_ARGS_; i++) list[count++] = args.items[i];
    if (npu->desc_.cpu_ns) count += npuprof_npu_usage_args_(&block->link, list + count);
    const unsigned flags = NPUPROF_STAMP_SAMPLED | (block->by_host ? NPUPROF_STAMP_HOST : 0);
    const npuprof_device_event_ event = {
        npu->number_, epoch, 0, flags, block->category, block->name, start, stop, &block->link
    };
    npuprof_device_span_(&event, npuprof_args_(list, count));
}

/* There is no device span: an event says why, and it is counted if it is lost. Returns what the event
   says. */
static npuprof_result npuprof_npu_draw_no_span_(npuprof_npu *npu, npuprof_result result)
{
    const npuprof_result reason = npuprof_npu_explain_(npu, result);
    const char *text = npuprof_result_string(reason);
    npuprof_arg why[2];                    /* one by one: tcc takes no structs of functions in a list */
    why[0] = npuprof_str_("device", npu->device.name);
    why[1] = npuprof_str_("why", text);
    if (result == NPUPROF_ERR_NPU_BUSY) npuprof_count_lost_(NPUPROF_LOST_BUSY, 1);
    if (result == NPUPROF_ERR_NPU_CALLS) npuprof_count_lost_(NPUPROF_LOST_CALLS, 1);
    const npuprof_record_new_ r = npuprof_record_of_(0, NULL, npuprof_args_(why, 2));
    npuprof_record_named_event_(NPUPROF_KIND_INSTANT, "NPU", "no device span", &r);
    return reason;
}

/* Ends a submission: the device's end, then the host span if that is still open. args: of the device span.
   Results as npuprof_npu_end(). */
static npuprof_result npuprof_npu_finish_block_(npuprof_npu_block_ *block, npuprof_args args)
{
    npuprof_npu *npu = block->npu;
    npuprof_npu_block_end_ end;
    if (npu->number_ && npu->has_submissions_) {
        if (block->sampled && npuprof_npu_end_block_of_job_(npu, block->job_at, block->ticket))
            npuprof_npu_look_at_late_(npu);
        if (block->token) npuprof_close_(block->token);
        return NPUPROF_OK;
    }
    if (block->token && npu->device.wait_around) npuprof_wait_(&npu->device);
    if (!npu->number_) {
        if (block->token) (void)npuprof_npu_draw_no_span_(npu, NPUPROF_ERR_NPU_NOT_OPEN);
        npuprof_close_(block->token);
        return NPUPROF_ERR_NPU_NOT_OPEN;
    }
    npuprof_npu_read_end_(block, &end);
    npuprof_result result = end.is.result;
    if (result != NPUPROF_OK) result = npuprof_npu_draw_no_span_(npu, result);
    if (block->token) npuprof_close_(block->token);
    if (result == NPUPROF_OK) npuprof_npu_draw_sampled_(block, &end, args);
    if (end.is.renew) (void)npuprof_npu_renew_anchor_(npu);
    return result;
}

NPUPROF_API_ uint64_t npuprof_npu_set_correlation(uint64_t id)
{
    return npuprof_correlate_(id);
}

NPUPROF_API_ void npuprof_npu_end_(npuprof_npu_block_ *block)
{
    (void)npuprof_npu_finish_block_(block, PROF_NO_ARGS);
}

NPUPROF_API_ void npuprof_npu_span(npuprof_npu *npu, unsigned pe, const char *name, const char *cat,
                                   uint64_t start_ticks, uint64_t end_ticks, npuprof_args args)
{
    const uint64_t end = end_ticks < start_ticks ? start_ticks : end_ticks;
    const npuprof_device_event_ event = {
        npu->number_, NPUPROF_LOAD_(&npu->epoch_), pe, NPUPROF_STAMP_DEVICE, cat, name, start_ticks, end, NULL
    };
    npuprof_device_span_(&event, args);
}

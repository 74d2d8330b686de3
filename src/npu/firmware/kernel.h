#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../../format/layouts.h"
#include "../../firmware/arena.h"
#include "../../firmware/record.h"
#include "../../firmware/event.h"
#include "../types.h"
#include "../api.h"
#include "../macros.h"
#include "../mmio.h"
#include "../clock.h"
#include "../anchors.h"
#include "../describe.h"
#include "../sample.h"
#include "../calls.h"
#include "jobs.h"

/* Devices on firmware: opening and closing, the two ends of a submission, device spans by hand. A device span
   is a record of ticks; the host maps them when it converts the image. Owns the npuprof_npu_block_, on the
   stack of the task that is in the block or in an entry of calls.h, and the number of the last device opened:
   one task opens at a time. Nothing here copies or clears by assignment of a whole structure. Why: the
   compiler would call memcpy and memset, which firmware may not have. */

/* Says what device it is, in the arena. */
static npuprof_result npuprof_npu_put_device_(npuprof_npu *npu)
{
    static uint8_t devices;
    const npuprof_npu_desc *d = &npu->desc_;
    const uint64_t bits = d->counter.bits;
    if (devices == 255) return NPUPROF_ERR_TABLE_FULL;
    npu->number_ = ++devices;
    const uint64_t values[3] = { d->counter.hz, d->max_rate_ppm * (uint64_t)1000 | bits << 32,
                                 npu->number_ | (uint64_t)(d->pe_count & 0xFFFFFF) << 8 |
                                     (uint64_t)npuprof_npu_may_stand_(npu) << 32 };
    (void)npuprof_npu_put_record_(npu->device.name, NPUPROF_CELL_KIND_DEVICE_, values, PROF_NO_ARGS);
    if (d->pmu_count)
        (void)npuprof_metadata(npu->device.name, "desc.pmu is not sampled on firmware");
    if (npu->lag_) npuprof_npu_note_(npu, NPUPROF_NOTE_LAG, npu->lag_);
#ifdef NPUPROF_NPU_RECORDS
    return npuprof_npu_take_rings_(npu, true);
#else
    return NPUPROF_OK;
#endif
}

NPUPROF_API_ npuprof_result npuprof_npu_open(npuprof_npu *npu, const npuprof_npu_desc *desc)
{
    size_t needed = 0;
    if (!npu) return NPUPROF_ERR_ARGUMENT;
    for (size_t i = 0; i < sizeof *npu; i++) NPUPROF_STORE_((uint8_t *)npu + i, 0);
    if (!desc) return NPUPROF_ERR_ARGUMENT;
    npuprof_fw_copy_bytes_((uint8_t *)&npu->desc_, desc, sizeof *desc);
    const npuprof_npu_desc *d = &npu->desc_;
    npuprof_result result = npuprof_npu_check_desc_(npu, &needed);
    if (result != NPUPROF_OK) return result;
    if (d->progress.is_there || d->resource || d->vfio) return NPUPROF_ERR_UNSUPPORTED;
#ifdef NPUPROF_NPU_RECORDS
    result = npuprof_npu_take_rings_(npu, false);
    if (result != NPUPROF_OK) return result;
#else
    if (d->ring.count || d->ring_count || d->ring.feed || d->anchors_only) return NPUPROF_ERR_UNSUPPORTED;
#endif
    if (needed && !npuprof_npu_has_bar_(d)) return NPUPROF_ERR_NPU_RANGE;
    const unsigned access = d->counter.access;
    if (d->bar && access > 8 * sizeof(void *) && access > 32) return NPUPROF_ERR_UNSUPPORTED;
    if (npuprof_user_hz_() >> 32) return NPUPROF_ERR_UNSUPPORTED;      /* second_ has 32 bits */
    if (d->bar) result = npuprof_npu_use_bar_(npu, needed, npuprof_npu_register_align_(d));
    if (result != NPUPROF_OK) return result;
    if (!npuprof_fw_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    npu->second_ = (uint32_t)npuprof_max_((uint32_t)npuprof_user_hz_(), 1000);
    npu->lag_ = npuprof_npu_mul_div_(npu->second_, d->counter.lag_ns, 1000000000, true);
    result = npuprof_npu_begin_clock_(npu, npuprof_npu_put_device_);
    if (result != NPUPROF_OK && result != NPUPROF_ERR_NPU_NOT_ENABLED) npu->number_ = 0;
    return result;
}

NPUPROF_NPU_OPEN_OF_1_0_

NPUPROF_API_ void npuprof_npu_close(npuprof_npu *npu)
{
    if (!npu->number_) return;
    (void)npuprof_npu_sync(npu);
    npu->number_ = 0;
}

/* Firmware maps nothing. */
NPUPROF_API_ bool npuprof_npu_fault(const void *address)
{
    NPUPROF_UNUSED_(address);
    return false;
}

NPUPROF_API_ void npuprof_npu_enter_(npuprof_npu_block_ *block, npuprof_npu *npu, uint64_t stream)
{
    block->npu = npu;
    block->stream = stream;
    npuprof_wait_around_(&npu->device);
}

NPUPROF_API_ npuprof_token_ npuprof_npu_begin_(npuprof_npu_block_ *block, npuprof_token_ token)
{
    npuprof_npu *npu = block->npu;
    block->result = NPUPROF_ERR_NPU_BUSY;
    block->by_host = false;
#ifdef NPUPROF_NPU_RECORDS
    if (token && npu->has_submissions_) {
        if (npu->number_) npuprof_npu_look_(npu);
        npuprof_npu_put_job_(npu, NPUPROF_CELL_JOB_BEGIN_, token, block->stream);
        return token;
    }
#endif
    if (!token || !npu->number_ || !npuprof_npu_lock_(npu)) return token;
    npuprof_npu_sample_begin_(block);
    npuprof_npu_unlock_(npu);
    return token;
}

/* An event after the host span, which says why there is no device span. */
static void npuprof_npu_put_no_span_(const npuprof_npu *npu, npuprof_result result)
{
    const char *const texts[3] = { "no device span", "NPU", NULL };
    npuprof_arg why[2] = { npuprof_str_("device", npu->device.name), npuprof_uint_("why", (uint64_t)result) };
    why[1].type = NPUPROF_FIELD_RESULT_;
    (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(NPUPROF_KIND_INSTANT), false, texts, NULL,
                                npuprof_args_(why, 2));
}

/* Records a device span, with the name of its host span, by that one's token. One that is placed by the host
   has host ticks for stamps, and their error for its epoch. */
static void npuprof_npu_put_sampled_(const npuprof_npu_block_ *block, const npuprof_npu_end_state_ *end,
                                     npuprof_args args)
{
    const npuprof_npu *npu = block->npu;
    npuprof_arg list[2 + NPUPROF_NPU_CALL_ARGS_];
    size_t count = 1;
    uint64_t values[3] = { block->begin.device_ticks, end->read.device_ticks, (uint64_t)block->token << 32 };
    uint32_t number = NPUPROF_CELL_SAMPLED_, epoch = end->epoch;
    list[0].key = "stream";
    list[0].type = NPUPROF_ARG_INT;
    list[0].value.u = block->stream;
    if (block->by_host) {
        const uint64_t error = npuprof_npu_sample_place_(block, &end->read, &values[0], &values[1]);
        list[count].key = "ticks";
        list[count].type = NPUPROF_ARG_UINT;
        list[count++].value.u = end->ticks;
        number |= NPUPROF_CELL_BY_HOST_;
        epoch = error >> 16 ? 0 : (uint32_t)error;
    }
    values[2] |= number | (epoch & 0xFFFF) << 8 | npu->number_;
    for (size_t i = 0; i < args.count && i < NPUPROF_NPU_CALL_ARGS_; i++, count++) {
        list[count].key = args.items[i].key;
        list[count].type = args.items[i].type;
        list[count].value = args.items[i].value;
    }
    (void)npuprof_npu_put_record_(NPUPROF_NPU_NAME_OF_(npu), NPUPROF_KIND_DEVICE, values,
                                  npuprof_args_(list, count));
}

/* Ends a submission: reads the counter, ends the host span if it is still open, records the device span.
   Results as npuprof_npu_end(). */
static npuprof_result npuprof_npu_end_block_(npuprof_npu_block_ *block, npuprof_args args)
{
    npuprof_npu *npu = block->npu;
    npuprof_npu_end_state_ end;
    npuprof_npu_no_end_(&end);
    if (npuprof_npu_lock_(npu)) {
        npuprof_npu_sample_end_(block, &end);
        npuprof_npu_unlock_(npu);
    }
    npuprof_close_(block->token);
    if (end.result == NPUPROF_OK) npuprof_npu_put_sampled_(block, &end, args);
    else npuprof_npu_put_no_span_(npu, end.result);
    /* Why anchors after the host span: their time is none of the kernel's. */
    if (end.is_anchor && npuprof_npu_lock_(npu)) {
        if (end.epoch == npu->epoch_) (void)npuprof_npu_add_anchor_(npu, &end.read);
        npuprof_npu_unlock_(npu);
    }
    if (end.renew) (void)npuprof_npu_renew_anchor_(npu);
    return end.result;
}

NPUPROF_API_ void npuprof_npu_end_(npuprof_npu_block_ *block)
{
    npuprof_wait_around_(&block->npu->device);
#ifdef NPUPROF_NPU_RECORDS
    if (block->npu->has_submissions_) {
        npuprof_npu_put_job_(block->npu, NPUPROF_CELL_JOB_END_, block->token, 0);
        npuprof_close_(block->token);
        return;
    }
#endif
    if (block->npu->number_) (void)npuprof_npu_end_block_(block, PROF_NO_ARGS);
    else npuprof_close_(block->token);
}

#ifdef NPUPROF_NPU_RECORDS
/* Any number may be open. With submissions the span's token is the handle, else that of the call's record. */
NPUPROF_API_ uint32_t npuprof_npu_begin(npuprof_npu *npu, uint64_t stream, const char *name, const char *cat,
                                        npuprof_args args)
{
    npuprof_npu_block_ block;
    const npuprof_token_ token =
        NPUPROF_OPEN_(1) ? npuprof_begin_named_(NPUPROF_KIND_SPAN, cat, name, args) : 0;
    uint32_t handle = token;
    block.npu = npu;
    block.stream = stream;
    block.token = token && npu->number_ ? npuprof_npu_begin_(&block, token) : 0;
    if (block.token && !npu->has_submissions_) handle = npuprof_npu_put_call_(&block);
    npuprof_close_(token);
    return block.token ? handle : 0;
}

NPUPROF_API_ npuprof_result npuprof_npu_end_args(npuprof_npu *npu, uint32_t handle, npuprof_args args)
{
    npuprof_npu_block_ block;
    if (!handle) return NPUPROF_OK;
    if (!npu->has_submissions_)
        return npuprof_npu_take_call_back_(npu, handle, &block) ? npuprof_npu_end_block_(&block, args)
                                                                : NPUPROF_ERR_ARGUMENT;
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    npuprof_npu_put_job_(npu, NPUPROF_CELL_JOB_END_, handle, 0);
    return NPUPROF_OK;
}

#else /* !NPUPROF_NPU_RECORDS */
NPUPROF_API_ uint32_t npuprof_npu_begin(npuprof_npu *npu, uint64_t stream, const char *name, const char *cat,
                                        npuprof_args args)
{
    uint32_t handle = 0;
    const npuprof_token_ token =
        NPUPROF_OPEN_(1) ? npuprof_begin_named_(NPUPROF_KIND_SPAN, cat, name, args) : 0;
    npuprof_npu_call_ *const call = token && npu->number_ ? npuprof_npu_take_call_(npu, &handle) : NULL;
    if (call) {
        call->block.npu = npu;
        call->block.stream = stream;
        call->block.token = npuprof_npu_begin_(&call->block, token);
        npuprof_npu_release_call_(call, handle);
    } else if (token && npu->number_) {
        npuprof_npu_put_no_span_(npu, NPUPROF_ERR_NPU_CALLS);
    }
    npuprof_close_(token);
    return handle;
}

NPUPROF_API_ npuprof_result npuprof_npu_end_args(npuprof_npu *npu, uint32_t handle, npuprof_args args)
{
    if (!handle) return NPUPROF_OK;
    npuprof_npu_call_ *const call = npuprof_npu_hold_call_(npu, handle);
    if (!call) return NPUPROF_ERR_ARGUMENT;
    const npuprof_result result = npuprof_npu_end_block_(&call->block, args);
    npuprof_npu_release_call_(call, 0);
    return result;
}
#endif /* NPUPROF_NPU_RECORDS */

NPUPROF_API_ void npuprof_npu_span(npuprof_npu *npu, unsigned pe, const char *name, const char *cat,
                                   uint64_t start_ticks, uint64_t end_ticks, npuprof_args args)
{
    if (!npu->number_ || !NPUPROF_OPEN_(1)) return;
    const char *const texts[3] = { name ? name : "", cat, NULL };
    const uint64_t values[3] = { start_ticks, end_ticks < start_ticks ? start_ticks : end_ticks,
                                 (uint64_t)(pe & 0xFFFF) << 32 | (npu->epoch_ & 0xFFFF) << 8 | npu->number_ };
    (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(NPUPROF_KIND_DEVICE), false, texts, values, args);
}

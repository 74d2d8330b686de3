#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../record/begin.h"
#include "../../record/end.h"
#include "../types.h"
#include "../api.h"
#include "../macros.h"
#include "../calls.h"
#include "jobs.h"
#include "kernel.h"

/* Begin and end as calls: a submission whose two ends are in different functions or threads. Its block lies
   in an entry of npu/calls.h. May not know how a counter is read, or what is in a record. */

NPUPROF_API_ uint32_t npuprof_npu_begin(npuprof_npu *npu, uint64_t stream, const char *name, const char *cat,
                                        npuprof_args args)
{
    uint32_t handle = 0;
    if (!NPUPROF_OPEN_(1)) return 0;
    const npuprof_token_ token = npuprof_record_begin_kind_(NPUPROF_KIND_SPAN, cat, name, args);
    if (!token) {
        npuprof_npu_count_lost_span_(npu, NULL, NULL, cat, name);
        return 0;
    }
    npuprof_npu_call_ *const call = npu->number_ ? npuprof_npu_take_call_(npu, &handle) : NULL;
    if (call) {
        npuprof_npu_clear_block_(&call->block, npu, stream);
        call->block.token = 0;               /* its host span ends here */
        npuprof_npu_begin_device_(&call->block, false, cat, name);
    } else if (npu->number_) {
        (void)npuprof_npu_draw_no_span_(npu, NPUPROF_ERR_NPU_CALLS);
    }
    npuprof_close_(token);
    if (call) npuprof_npu_release_call_(call, handle);
    return handle;
}

NPUPROF_API_ npuprof_result npuprof_npu_end_args(npuprof_npu *npu, uint32_t handle, npuprof_args args)
{
    if (!handle) return NPUPROF_OK;
    npuprof_npu_call_ *const call = npuprof_npu_hold_call_(npu, handle);
    if (!call && handle >> 24 != npu->number_)
        return NPUPROF_REFUSE_("npuprof_npu_end: the handle is of another device, or of one that was closed");
    if (!call) return NPUPROF_REFUSE_("npuprof_npu_end: the handle was ended before, or was never given out");
    const npuprof_result result = npuprof_npu_finish_block_(&call->block, args);
    npuprof_npu_release_call_(call, 0);
    return result;
}

/* Why the handle is looked at twice: the entry is not held, as an end of this handle must find it open. */
NPUPROF_API_ npuprof_result npuprof_npu_set_job_of(npuprof_npu *npu, uint32_t handle, uint64_t id)
{
    if (!handle) return NPUPROF_OK;
    if (!npu->number_ || !npu->has_submissions_) return NPUPROF_ERR_NPU_NO_RING;
    const npuprof_npu_call_ *const call = &npu->calls_[handle % NPUPROF_NPU_CALLS_];
    const bool open = NPUPROF_LOAD_ACQUIRE_(&call->handle) == handle;
    const uint32_t ticket = NPUPROF_LOAD_ACQUIRE_(&call->block.ticket);
    const uint32_t at = NPUPROF_LOAD_ACQUIRE_(&call->block.job_at);
    if (!open || NPUPROF_LOAD_(&call->handle) != handle)
        return NPUPROF_REFUSE_("npuprof_npu_set_job_of: the handle is not open on this device");
    (void)npuprof_npu_number_ticket_(npu, at, ticket, id);
    return NPUPROF_OK;
}

/* The device is being closed: what is open has no end any more. */
static void npuprof_npu_drop_calls_(npuprof_npu *npu)
{
    for (uint32_t i = 0; i < NPUPROF_NPU_CALLS_; i++) {
        npuprof_npu_call_ *const call = &npu->calls_[i];
        if (!NPUPROF_LOAD_(&call->handle)) continue;
        if (!npu->has_submissions_) npuprof_count_lost_(NPUPROF_LOST_CALLS, 1);
        NPUPROF_STORE_(&call->handle, 0u);
    }
}

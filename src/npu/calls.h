#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "types.h"
#include "api.h"
#include "mmio.h"

/* The table of open calls: those of npuprof_npu_begin() that no npuprof_npu_end() has ended. Owns calls_ and
   next_call_ (npuprof_npu in types.h). May not know what begins and ends.

   An entry's handle is its only shared word:
     0                      free
     NPUPROF_NPU_CALL_HELD_ somebody begins or ends it, and owns the rest of the entry
     a handle               open: number of the device << 24 | turn of the entry, 17 or 22 bits | entry
   Who turns 0 into HELD begins; who turns the handle into HELD ends. So of two that end one handle, one finds
   it gone, at whatever place the other was interrupted. Nobody waits.
   Why the device's number: a handle of another device, or of the same one before it was closed, is refused.
   Why a turn: a handle that was ended stays wrong for the next 131,071 calls in its entry (on firmware for
   four million). */

#if !defined(NPUPROF_FREESTANDING) || !defined(NPUPROF_NPU_RECORDS)
enum { NPUPROF_NPU_CALL_HELD_ = 1 };

/* A free entry, held, and the handle that it is to have. NULL: there is none. */
static npuprof_npu_call_ *npuprof_npu_take_call_(npuprof_npu *npu, uint32_t *handle)
{
    const uint32_t first = NPUPROF_LOAD_(&npu->next_call_);
    for (uint32_t i = 0; i < NPUPROF_NPU_CALLS_; i++) {
        const uint32_t at = (first + i) % NPUPROF_NPU_CALLS_;
        npuprof_npu_call_ *call = &npu->calls_[at];
        if (!npuprof_npu_replace_word_(&call->handle, 0, NPUPROF_NPU_CALL_HELD_)) continue;
        NPUPROF_STORE_(&npu->next_call_, at + 1);
        *handle = npu->number_ << 24 | (++call->turn * NPUPROF_NPU_CALLS_ & 0xFFFFFF) | at;
        return call;
    }
    return NULL;
}

/* The entry of an open handle, held. NULL: it is not open, or not of this device. */
static npuprof_npu_call_ *npuprof_npu_hold_call_(npuprof_npu *npu, uint32_t handle)
{
    if (handle >> 24 == 0 || handle >> 24 != npu->number_) return NULL;
    npuprof_npu_call_ *const call = &npu->calls_[handle % NPUPROF_NPU_CALLS_];
    return npuprof_npu_replace_word_(&call->handle, handle, NPUPROF_NPU_CALL_HELD_) ? call : NULL;
}

/* Opens a held entry under that handle, or frees it with handle 0. */
static void npuprof_npu_release_call_(npuprof_npu_call_ *call, uint32_t handle)
{
    (void)npuprof_npu_replace_word_(&call->handle, NPUPROF_NPU_CALL_HELD_, handle);
}
#endif /* !NPUPROF_FREESTANDING || !NPUPROF_NPU_RECORDS */

NPUPROF_API_ npuprof_result npuprof_npu_end(npuprof_npu *npu, uint32_t handle)
{
    return npuprof_npu_end_args(npu, handle, PROF_NO_ARGS);
}

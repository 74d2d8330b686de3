#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../public/hot.h"
#include "../numbers/time.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"
#include "policy.h"

/* The hot path on firmware: a span of one cell.
   Owns the cells of open spans: who holds the token ends the span. May not know arguments. */

/* Begins a span in the cell of that token. Its token, or 0. */
static inline npuprof_token_ npuprof_fw_begin_cell_(npuprof_compact_header_ *c, npuprof_token_ token,
                                                    uint32_t ref, uint64_t now, uint32_t context)
{
    if (NPUPROF_LIKELY_(token)) {
        npuprof_cell_ *const around = npuprof_fw_near_cell_(c, token);
        around[NPUPROF_FW_HEAD_].start = (uint32_t)now;
        around[NPUPROF_FW_HEAD_].high.half[0] = npuprof_fw_high_half_(now, context);
        npuprof_fw_publish_half_(&around[NPUPROF_FW_HEAD_], ref, NPUPROF_FW_OPEN_HALF_(token));
    }
    return npuprof_fw_tally_(c, token, &c->lost);
}

NPUPROF_API_ npuprof_token_ npuprof_begin_(const npuprof_site_ *site)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint32_t ref = (uint32_t)(uintptr_t)site;
    uint64_t now;
    const npuprof_token_ token = npuprof_fw_take_now_(c, &now);
    return npuprof_fw_begin_cell_(c, token, ref, now, npuprof_fw_context_());
}

NPUPROF_API_ void npuprof_close_(npuprof_token_ token)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_fw_end_cell_(c, token, npuprof_fw_stamp_(c));
}

NPUPROF_API_ npuprof_token_ npuprof_next_(npuprof_token_ token, const npuprof_site_ *site)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint64_t now = npuprof_fw_stamp_(c);
    npuprof_fw_end_cell_(c, token, now);
    if (!NPUPROF_OPEN_(1)) return 0;
    token = npuprof_fw_take_(c, 1, &c->lost);
    return npuprof_fw_begin_cell_(c, token, (uint32_t)(uintptr_t)site, now, npuprof_fw_context_());
}

NPUPROF_API_ bool npuprof_is_open_(npuprof_token_ token)
{
    return npuprof_fw_open_cell_(npuprof_fw_arena_, token) != NULL;
}

NPUPROF_API_ void npuprof_wait_(const npuprof_device *device)
{
    if (device->wait) (void)device->wait(device->user);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/hot.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"
#include "policy.h"
#include "event.h"

/* PROF_RESULT on firmware: arguments of a span that become known while it is open, as a record of their own
   (NPUPROF_CELL_KIND_RESULT_) that names the cell of the span. The host makes one list of them.
   Why a search and no stack of open spans: a plain span stays as cheap as it is, and who has no results pays
   nothing. Data: the cells alone.
   When the cells are full, the arguments are lost and counted in lost_notes; the span is still there.
   In a ring they are overwritten as all records are, which nothing counts: they are no events. Those of a
   span that is open for longer than a lap may be missing while the span is there.
   May not know an output. */

/* The token of the innermost open span of this context; 0: there is none. Time: the records so far. */
static npuprof_token_ npuprof_fw_innermost_(const npuprof_compact_header_ *c)
{
    const npuprof_cell_ *const cells = npuprof_fw_cells_(c), *const end = npuprof_fw_cells_end_(c);
    const uint32_t context = npuprof_fw_context_();
    npuprof_token_ token = 0;
    const uint64_t now = npuprof_fw_age_now_();
    uint64_t youngest = 0;
    for (const npuprof_cell_ *at = cells; at < end; at = npuprof_fw_after_record_(at)) {
        const bool open = NPUPROF_LOAD_(&at->high.half[1]) & NPUPROF_CELL_OPEN_;
        if (!open || npuprof_fw_context_of_(at) != context || !npuprof_fw_is_event_(at)) continue;
        const uint64_t age = npuprof_fw_age_(at, now);
        if (token && age > youngest) continue;
        youngest = age;
        token = npuprof_fw_token_of_(c, at);
    }
    return token;
}

NPUPROF_API_ void npuprof_result_(npuprof_args args)
{
    const npuprof_compact_header_ *const c = npuprof_fw_arena_;
    uint32_t used = npuprof_os_load_(&c->used), before = ~used;
    npuprof_token_ token = 0;
    /* Why again: an interrupt that takes cells of a ring divides them anew, and the search may miss the span.
       Why not for ever: one may come in each search. */
    for (int tries = 3; tries && used != before; tries--) {
        before = used;
        token = npuprof_fw_innermost_(c);
        used = npuprof_os_load_(&c->used);
    }
    const uint64_t values[3] = { token, 0, 0 };
    const uint32_t ref = NPUPROF_FW_REF_OF_KIND_(NPUPROF_CELL_KIND_RESULT_);
    if (token) (void)npuprof_fw_put_named_(ref, false, NULL, values, args);
}

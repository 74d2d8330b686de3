#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../types.h"
#include "../mmio.h"
#include "jobs.h"
#include "match.h"
#include "draw.h"
#include "index.h"
#include "stamp.h"

/* A device without records: an index of finished jobs ends submissions. Those whose numbers it has passed are
   over; without numbers, one for each step, the oldest first. Owns progress_ and progress_next_ (npuprof_npu
   in types.h). Under the queue lock. */

/* What a drain has found. */
typedef struct npuprof_npu_visit_ {
    npuprof_result ring_result, result;  /* the first bad one of a ring; of the clock */
    bool took;                           /* there were records */
} npuprof_npu_visit_;

/* Draws a submission that is over. */
static void npuprof_npu_draw_progress_(npuprof_npu *npu, const npuprof_npu_now_ *now,
                                       const npuprof_npu_submission_ *of)
{
    npuprof_npu_drawing_ s;
    memset(&s, 0, sizeof s);
    s.end = now->host;
    s.start = of->link.ticks && of->link.ticks < s.end ? of->link.ticks : s.end;
    s.flags = NPUPROF_STAMP_HOST;
    s.takes_arrow = true;
    npuprof_npu_draw_(npu, &s, of);
}

/* Counts submissions that gave up their places as lost, at most so many. Returns how many. */
static uint64_t npuprof_npu_count_forgotten_(npuprof_npu *npu, uint64_t most)
{
    const uint32_t forgotten = (uint32_t)npuprof_min_(NPUPROF_LOAD_(&npu->forgotten_), most);
    NPUPROF_ADD_(&npu->forgotten_, 0u - forgotten);
    npuprof_npu_count_records_(npu, NPUPROF_RECORDS_OVERWRITTEN, forgotten);
    return forgotten;
}

/* Whether a job has a number, and that lies below `done`, as far as the index tells: modulo its period. */
static bool npuprof_npu_is_progress_over_(const npuprof_npu *npu, const npuprof_npu_job_ *job, uint64_t done)
{
    const npuprof_npu_progress *const p = &npu->desc_.progress;
    if (!(NPUPROF_LOAD_(&job->flags) & NPUPROF_NPU_HAS_ID_)) return false;
    const uint64_t id = NPUPROF_LOAD_(&job->id);
    const bool is_slot =
        p->index.unit == NPUPROF_NPU_INDEX_SLOT || p->index.unit == NPUPROF_NPU_INDEX_BYTE_OFFSET;
    if (is_slot) {
        const uint64_t from = npu->progress_next_ % p->count;
        return (id % p->count + p->count - from) % p->count < done - npu->progress_next_;
    }
    /* Why so far back: a number may be set when its work is over. */
    const uint64_t unit = p->index.unit == NPUPROF_NPU_INDEX_BYTES ? p->entry_bytes : 1;
    const uint64_t last = npu->progress_.mask / unit, behind = done - 1 - id;
    return (last == UINT64_MAX ? behind : behind % (last + 1)) <= last / 2;
}

/* Ends the numbered submissions that are over. */
static void npuprof_npu_end_numbered_(npuprof_npu *npu, npuprof_npu_visit_ *d, uint64_t done)
{
    npuprof_npu_pass_ pass;
    npuprof_npu_submission_ of;
    npuprof_npu_lookup_ s;
    memset(&s, 0, sizeof s);
    s.has_id = s.whole = true;
    s.id_mask = UINT64_MAX;
    for (bool first = true;; first = false) {
        npuprof_npu_job_ *const job = npuprof_npu_oldest_job_(npu, npuprof_npu_is_progress_over_, done);
        if (!job || (first && !npuprof_npu_begin_pass_(npu, NULL, &pass, &d->result))) break;
        s.id = NPUPROF_LOAD_(&job->id);
        (void)npuprof_npu_take_submission_(npu, &s, &of);
        d->took = true;
        if (of.known) npuprof_npu_draw_progress_(npu, &pass.now, &of);
        else if (!of.muted) break;       /* somebody else ended it, or holds it */
    }
    npu->progress_next_ = done;
}

/* Ends one submission, the oldest, for each step of the index. */
static void npuprof_npu_end_steps_(npuprof_npu *npu, npuprof_npu_visit_ *d, uint64_t done)
{
    npuprof_npu_pass_ pass;
    npuprof_npu_lookup_ any;
    if (done == npu->progress_next_ || !npuprof_npu_begin_pass_(npu, NULL, &pass, &d->result)) return;
    memset(&any, 0, sizeof any);
    any.any_stream = any.whole = true;
    /* Why first: what was forgotten is older than all that is known. */
    npu->progress_next_ += npuprof_npu_count_forgotten_(npu, done - npu->progress_next_);
    for (; npu->progress_next_ < done; npu->progress_next_++) {
        npuprof_npu_submission_ of;
        (void)npuprof_npu_take_submission_(npu, &any, &of);
        d->took = true;
        if (!of.known) {                 /* it, and all after, were submitted while recording was off */
            npu->progress_next_ = done;
            return;
        }
        npuprof_npu_draw_progress_(npu, &pass.now, &of);
    }
}

/* Ends the submissions that the progress index says are over. */
static void npuprof_npu_drain_progress_(npuprof_npu *npu, npuprof_npu_visit_ *d)
{
    uint64_t done;
    if (npu->progress_.in_bar && !npuprof_npu_is_on_(npu)) {
        d->ring_result = NPUPROF_ERR_NPU_OFF;
        return;
    }
    const bool known = npu->progress_.known;
    d->ring_result = npuprof_npu_read_index_(npu, &npu->desc_.progress.index, &npu->progress_, &done);
    if (d->ring_result == NPUPROF_ERR_NPU_DEAD || d->ring_result == NPUPROF_ERR_NPU_BUSY) return;
    if (!known || done < npu->progress_next_) npu->progress_next_ = done;
    /* Why: numbers of npuprof_npu_job() are not the index's. */
    if (!NPUPROF_LOAD_(&npu->uses_ids_) || NPUPROF_LOAD_(&npu->ids_)) {
        npuprof_npu_end_steps_(npu, d, done);
        return;
    }
    (void)npuprof_npu_count_forgotten_(npu, UINT64_MAX);     /* one that gave up its place is nobody's */
    npuprof_npu_end_numbered_(npu, d, done);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../types.h"
#include "match.h"
#include "stamp.h"

/* Parts of jobs: a part is of its job's submission, also when it comes after the record of the whole, and
   lies in the time of that. Owns ended_, the jobs whose whole came last (npuprof_npu in types.h). Under the
   queue lock. May not know what is in a record. */

enum { NPUPROF_NPU_ENDED_ = 32 };

typedef struct npuprof_npu_ended_ {
    npuprof_npu_sought_ sought;          /* of its whole */
    npuprof_npu_submission_ of;          /* with its times; unknown and not muted: others submitted it */
} npuprof_npu_ended_;

/* Its job ran from `begun` to `over` of a run of the counter; over 0: that is not known. */
static void npuprof_npu_note_run_(npuprof_npu_submission_ *of, unsigned flags, uint32_t run, uint64_t begun,
                                  uint64_t over)
{
    if (flags & NPUPROF_STAMP_HOST) return;
    of->begun = begun;
    of->over = over;
    of->run = run;
}

/* Keeps a job whose whole was placed. */
static void npuprof_npu_note_ended_(npuprof_npu *npu, const npuprof_npu_sought_ *sought,
                                    const npuprof_npu_submission_ *of, const npuprof_npu_times_ *t)
{
    /* Why: a number of fewer bits may be used again while it is here. */
    if (!sought->has_id || sought->id_mask <= 2 * NPUPROF_NPU_ENDED_) return;
    npuprof_npu_ended_ *const ended = &npu->ended_[npu->ended_count_++ % NPUPROF_NPU_ENDED_];
    ended->sought = *sought;
    ended->of = *of;
    ended->of.has_arrow = false;
    npuprof_npu_note_run_(&ended->of, t->flags, t->epoch, t->start, t->end);
}

/* Finds the job of a part whose whole came. False: there is none, or one with this number is open. */
static bool npuprof_npu_find_ended_(const npuprof_npu *npu, const npuprof_npu_sought_ *s,
                                    npuprof_npu_submission_ *of)
{
    const uint32_t room = NPUPROF_NPU_ENDED_, count = npu->ended_count_;
    for (uint32_t i = 1; i <= count && i <= room && s->has_id; i++) {
        const npuprof_npu_ended_ *const ended = &npu->ended_[(count - i) % room];
        if ((ended->sought.id ^ s->id) & s->id_mask || ended->sought.is_scoped != s->is_scoped ||
            (s->is_scoped && ended->sought.scope != s->scope)) continue;
        if (npuprof_npu_look_by_id_(npu, s).oldest) return false;
        *of = ended->of;
        return true;
    }
    return false;
}

/* Bounds of a part's stamps that its job's times narrow. False: they are not known. */
static bool npuprof_npu_narrow_by_job_(const npuprof_npu_queue_ *q, const npuprof_npu_now_ *now,
                                       const npuprof_npu_submission_ *of, npuprof_npu_bounds_ *b)
{
    if (!of || !of->begun || of->run != now->epoch) return false;
    const uint64_t begun = npuprof_npu_in_stamps_(&q->is, of->begun);
    b->low = npuprof_max_(b->low, npuprof_saturating_sub_(begun, 1));
    if (of->over)
        b->high = npuprof_min_(b->high, npuprof_saturating_add_(npuprof_npu_in_stamps_(&q->is, of->over), 1));
    return true;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../types.h"
#include "match.h"
#include "times.h"

/* Parts of jobs: a part is of its job's submission, also when it comes after the record of the whole, and
   lies in the time of that. Owns ended_, the jobs whose whole came last (npuprof_npu in types.h). Under the
   queue lock. May not know what is in a record. */

enum { NPUPROF_NPU_ENDED_ = 32 };

typedef struct npuprof_npu_ended_ {
    npuprof_npu_lookup_ whole;
    npuprof_npu_submission_ of;          /* with its times; unknown and not muted: others submitted it */
} npuprof_npu_ended_;

/* Its job ran in these times; `over`: its end is known. */
static void npuprof_npu_set_run_(npuprof_npu_submission_ *of, const npuprof_npu_times_ *t, bool over)
{
    if (t->flags & NPUPROF_STAMP_HOST) return;
    of->begun = t->start;
    of->over = over ? t->end : 0;
    of->run = t->epoch;
}

/* Keeps a job whose whole was placed. */
static void npuprof_npu_note_ended_(npuprof_npu *npu, const npuprof_npu_lookup_ *whole,
                                    const npuprof_npu_entry_ *e)
{
    /* Why: a number of fewer bits may be used again while it is here. */
    if (!whole->has_id || whole->id_mask <= 2 * NPUPROF_NPU_ENDED_) return;
    npuprof_npu_ended_ *const ended = &npu->ended_[npu->ended_count_++ % NPUPROF_NPU_ENDED_];
    ended->whole = *whole;
    ended->of = *e->of;
    ended->of.has_arrow = false;
    npuprof_npu_set_run_(&ended->of, &e->t, true);
}

/* Finds the job of a part whose whole came. False: there is none, or one with this number is open. */
static bool npuprof_npu_find_ended_(const npuprof_npu *npu, const npuprof_npu_lookup_ *s,
                                    npuprof_npu_submission_ *of)
{
    const uint32_t room = NPUPROF_NPU_ENDED_, count = npu->ended_count_;
    for (uint32_t i = 1; i <= count && i <= room && s->has_id; i++) {
        const npuprof_npu_ended_ *const ended = &npu->ended_[(count - i) % room];
        if ((ended->whole.id ^ s->id) & s->id_mask || ended->whole.is_scoped != s->is_scoped ||
            (s->is_scoped && ended->whole.scope != s->scope)) continue;
        if (npuprof_npu_look_in_(npu, npuprof_npu_row_of_(npu, s->id), s).oldest) return false;
        *of = ended->of;
        return true;
    }
    return false;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../types.h"
#include "../mmio.h"
#include "match.h"
#include "record.h"

/* Records that came before it can be told whose they are: their submission has no number yet, because its
   thread does not run, or its entry is held. They wait here, in the order in which they came, for a second at
   most. Owns late_ (npuprof_npu in types.h). Under the queue lock. May not know where a record came from. */

enum { NPUPROF_NPU_LATE_ = 64 };

typedef struct npuprof_npu_late_ {
    npuprof_npu_record_ record;
    npuprof_npu_pass_ pass;              /* in which it came */
    npuprof_npu_queue_ *queue;
    uint64_t since;                      /* host ticks */
    uint32_t before;                     /* ticket of the first submission after it */
} npuprof_npu_late_;

/* Takes the first that waits. False: it still does, which only happens with can_wait. */
static bool npuprof_npu_take_first_late_(npuprof_npu *npu, bool can_wait)
{
    const npuprof_npu_late_ *const late = &npu->late_[npu->late_first_ % NPUPROF_NPU_LATE_];
    npuprof_npu_entry_ e;
    e.q = late->queue;
    e.r = &late->record;
    e.pass = &late->pass;
    e.can_wait = can_wait;
    e.is_late = true;
    e.before = late->before;
    if (!npuprof_npu_take_record_(npu, &e)) return false;
    npu->late_first_++;
    npu->late_count_--;
    return true;
}

/* Takes those that need not wait any more. all: none does. */
static void npuprof_npu_take_late_(npuprof_npu *npu, bool all)
{
    const uint64_t now = npu->late_count_ ? npuprof_ticks_() : 0;
    while (npu->late_count_) {
        const uint64_t since = npu->late_[npu->late_first_ % NPUPROF_NPU_LATE_].since;
        const bool can_wait = !all && npuprof_saturating_sub_(now, since) <= npu->second_;
        if (!npuprof_npu_take_first_late_(npu, can_wait)) return;
    }
}

/* Takes those that need not wait any more. Takes the queue lock; who holds it looks as well. */
static void npuprof_npu_look_at_late_(npuprof_npu *npu)
{
    if (!npuprof_npu_try_queue_(npu)) return;
    npuprof_npu_take_late_(npu, false);
    npuprof_npu_end_pass_(npu, false);
}

/* Whether a record of the queue waits: the next ones stay behind it. */
static bool npuprof_npu_has_late_(const npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    for (uint32_t i = 0; i < npu->late_count_; i++)
        if (npu->late_[(npu->late_first_ + i) % NPUPROF_NPU_LATE_].queue == q) return true;
    return false;
}

/* Takes a record, or keeps it until it can be told whose it is. */
static void npuprof_npu_take_or_keep_(npuprof_npu *npu, npuprof_npu_queue_ *q, const npuprof_npu_record_ *r,
                                      const npuprof_npu_pass_ *pass)
{
    npuprof_npu_entry_ e;
    e.q = q;
    e.r = r;
    e.pass = pass;
    e.can_wait = true;
    e.is_late = false;
    e.before = 0;
    if (npu->late_count_) npuprof_npu_take_late_(npu, false);    /* who held it may be done */
    if (!npuprof_npu_has_late_(npu, q) && npuprof_npu_take_record_(npu, &e)) return;
    if (npu->late_count_ == NPUPROF_NPU_LATE_) {
        (void)npuprof_npu_take_first_late_(npu, false);
        npuprof_npu_take_late_(npu, false);
    }
    npuprof_npu_late_ *const late = &npu->late_[(npu->late_first_ + npu->late_count_++) % NPUPROF_NPU_LATE_];
    late->record = *r;
    late->pass = *pass;
    late->queue = q;
    late->since = npuprof_ticks_();
    late->before = NPUPROF_LOAD_(&npu->tickets_);
}

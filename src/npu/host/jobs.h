#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../../record/thread.h"
#include "../types.h"
#include "../api.h"
#include "../mmio.h"

/* Submissions of a device whose records end them: who submitted what, until its completion record comes.
   May not know what is in a record, or when it is read.

   Owns jobs_ (npuprof_npu in types.h), one entry for each open submission:
     state     A new submission turns FREE to HELD, and then to READY. Who changes or ends it turns READY to
               HELD, and then to READY or FREE. Only the thread that turned it to HELD writes the other words.
               It stores the next state with release order, after a few instructions.
     ticket    Number of the submission, taken from tickets_. Its entry is ticket % NPUPROF_NPU_JOBS_. Anybody
               may read it, to find out whether the entry is still the one he knows.
     skipped   Ticket of a submission that found the entry held and took the next ticket.
     id, flags Anybody may read them to pass over an entry, and looks again once he holds it.
   When all entries are taken, the oldest submission gives its entry up and loses its arrow. */

enum {
    NPUPROF_NPU_FREE_ = 0, NPUPROF_NPU_READY_ = 1, NPUPROF_NPU_HELD_ = 2,
    NPUPROF_NPU_HAS_ID_ = 1,             /* flags: the command has a number */
    NPUPROF_NPU_IN_BLOCK_ = 2,           /* its block has not ended */
    NPUPROF_NPU_MUTED_ = 4,              /* not to be recorded */
    NPUPROF_NPU_HAS_ARROW_ = 8,          /* a record of it took the arrow */
    NPUPROF_NPU_OWNER_ = 16              /* times the slot of the thread that submitted it */
};

/* Holds an entry if it is in that state. Returns `state` if the caller holds it now, else the state it is in;
   HELD: its holder was interrupted. */
static uint32_t npuprof_npu_claim_job_(npuprof_npu_job_ *job, uint32_t state)
{
    for (int i = 0; i < 1000; i++) {
        uint32_t seen = NPUPROF_LOAD_(&job->state);
        if (seen == NPUPROF_NPU_HELD_) continue;
        if (seen != state || NPUPROF_CAS_(&job->state, &seen, (uint32_t)NPUPROF_NPU_HELD_)) return seen;
    }
    return NPUPROF_NPU_HELD_;
}

static bool npuprof_npu_hold_job_(npuprof_npu_job_ *job, uint32_t state)
{
    return npuprof_npu_claim_job_(job, state) == state;
}

static void npuprof_npu_release_job_(npuprof_npu_job_ *job, uint32_t state)
{
    NPUPROF_STORE_RELEASE_(&job->state, state);
}

/* The entry of a new submission, held. NULL: the next four are held by others right now. */
static npuprof_npu_job_ *npuprof_npu_new_job_(npuprof_npu *npu, uint32_t flags, uint64_t stream,
                                              const npuprof_link_ *link)
{
    npuprof_npu_job_ *job = NULL;
    uint32_t ticket = 0;
    for (int i = 0; i < 4; i++) {
        ticket = NPUPROF_ADD_(&npu->tickets_, 1u);
        job = &npu->jobs_[ticket % NPUPROF_NPU_JOBS_];
        if (npuprof_npu_hold_job_(job, NPUPROF_NPU_FREE_)) break;
        if (npuprof_npu_hold_job_(job, NPUPROF_NPU_READY_)) {
            if (!(job->flags & NPUPROF_NPU_MUTED_)) NPUPROF_ADD_(&npu->forgotten_, 1u);
            break;
        }
        NPUPROF_STORE_(&job->skipped, ticket);
        job = NULL;
    }
    if (!job) return NULL;
    NPUPROF_STORE_RELEASE_(&job->ticket, ticket);
    NPUPROF_STORE_(&job->id, (uint64_t)0);
    job->records = 0;
    NPUPROF_STORE_(&job->flags, flags | link->slot * NPUPROF_NPU_OWNER_);
    job->stream = stream;
    job->epoch = NPUPROF_LOAD_(&npu->epoch_);
    job->link = *link;
    job->name[0] = 0;
    return job;
}

/* The newest submission that this thread began and nobody ended, held: of the block that it is in, or of a
   npuprof_npu_begin(). NULL: there is none that is recorded, or the entry is held. */
static npuprof_npu_job_ *npuprof_npu_find_my_job_(npuprof_npu *npu, const npuprof_link_ *here)
{
    const uint32_t end = NPUPROF_LOAD_(&npu->tickets_);
    const uint32_t mine = here->slot * NPUPROF_NPU_OWNER_ | NPUPROF_NPU_IN_BLOCK_;
    if (!here->slot) return NULL;
    for (uint32_t i = 1; i <= NPUPROF_NPU_JOBS_; i++) {
        npuprof_npu_job_ *job = &npu->jobs_[(end - i) % NPUPROF_NPU_JOBS_];
        const uint32_t any = NPUPROF_NPU_HAS_ID_ | NPUPROF_NPU_HAS_ARROW_;
        if ((NPUPROF_LOAD_(&job->flags) | any) != (mine | any)) continue;
        if (NPUPROF_LOAD_(&job->state) == NPUPROF_NPU_FREE_) continue;
        return npuprof_npu_hold_job_(job, NPUPROF_NPU_READY_) ? job : NULL;
    }
    return NULL;
}

static bool npuprof_npu_has_id_(const npuprof_npu_job_ *job, uint64_t id, uint64_t mask)
{
    return NPUPROF_LOAD_(&job->flags) & NPUPROF_NPU_HAS_ID_ && ((NPUPROF_LOAD_(&job->id) ^ id) & mask) == 0;
}

/* Takes a number back from the submissions that had it before: their records were missed. */
static void npuprof_npu_forget_id_(npuprof_npu *npu, uint64_t id, uint64_t mask)
{
    for (unsigned i = 0; i < NPUPROF_NPU_JOBS_; i++) {
        npuprof_npu_job_ *old = &npu->jobs_[i];
        if (!npuprof_npu_has_id_(old, id, mask) || !npuprof_npu_hold_job_(old, NPUPROF_NPU_READY_)) continue;
        const bool in_block = (old->flags & NPUPROF_NPU_IN_BLOCK_) != 0;
        NPUPROF_STORE_(&old->flags, old->flags & ~(uint32_t)NPUPROF_NPU_HAS_ID_);
        npuprof_npu_release_job_(old, in_block ? NPUPROF_NPU_READY_ : NPUPROF_NPU_FREE_);
    }
}

/* Gives a number to a command of this submission, which is held, or NULL: it is outside a recorded one, and
   `here` is where. Releases it. */
static void npuprof_npu_give_id_(npuprof_npu *npu, npuprof_npu_job_ *job, const npuprof_link_ *here,
                                 uint64_t id)
{
    if (!job || job->flags & NPUPROF_NPU_HAS_ID_) {      /* the second is one more command of it */
        npuprof_link_ link = *here;
        uint64_t stream = 0;
        char name[NPUPROF_NPU_NAME_] = "";
        const bool muted = !job && !here->ticks;
        if (job) {
            link = job->link;
            stream = job->stream;
            memcpy(name, job->name, sizeof name);
            npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
        }
        job = npuprof_npu_new_job_(npu, muted ? NPUPROF_NPU_MUTED_ : 0, stream, &link);
        if (!job) return;
        memcpy(job->name, name, sizeof name);
    }
    NPUPROF_STORE_(&job->id, id);
    NPUPROF_STORE_(&job->flags, job->flags | NPUPROF_NPU_HAS_ID_);
    npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
}

/* Gives a number to the command being submitted. again: the number may have been given before. */
static void npuprof_npu_number_job_(npuprof_npu *npu, uint64_t id, bool again)
{
    if (!npu->number_ || !npu->has_submissions_) return;
    const npuprof_link_ here = npuprof_link_here_();
    NPUPROF_STORE_(&npu->uses_ids_, 1u);
    if (again) npuprof_npu_forget_id_(npu, id, npu->id_mask_);
    npuprof_npu_give_id_(npu, npuprof_npu_find_my_job_(npu, &here), &here, id);
}

/* The same for the submission of that ticket. False: it is over, or its entry is held. */
static bool npuprof_npu_number_ticket_(npuprof_npu *npu, uint32_t ticket, uint64_t id)
{
    npuprof_npu_job_ *job = &npu->jobs_[ticket % NPUPROF_NPU_JOBS_];
    NPUPROF_STORE_(&npu->uses_ids_, 1u);
    npuprof_npu_forget_id_(npu, id, npu->id_mask_);
    if (!npuprof_npu_hold_job_(job, NPUPROF_NPU_READY_)) return false;
    const bool mine = job->ticket == ticket;
    if (mine) npuprof_npu_give_id_(npu, job, &job->link, id);
    else npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
    return mine;
}

NPUPROF_API_ uint32_t npuprof_npu_job(npuprof_npu *npu)
{
    uint32_t id;
    const uint64_t mask = npu->number_ ? npu->id_mask_ : UINT64_MAX;
    do id = NPUPROF_ADD_(&npu->ids_, 1u) + 1u; while (!(id & mask));
    npuprof_npu_number_job_(npu, id, mask < 0xFFFF);
    return id;
}

NPUPROF_API_ void npuprof_npu_set_job(npuprof_npu *npu, uint64_t id)
{
    npuprof_npu_number_job_(npu, id, true);
}

NPUPROF_API_ void npuprof_npu_set_job_records(npuprof_npu *npu, unsigned n)
{
    if (!npu->number_ || !npu->has_submissions_) return;
    const npuprof_link_ here = npuprof_link_here_();
    npuprof_npu_job_ *const job = npuprof_npu_find_my_job_(npu, &here);
    if (!job) return;
    job->records = n;
    npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
}

/* Whether the submission of that ticket is over. Looks at the ticket first, then at the state.
   Why: who has taken a ticket may not have got to its entry yet, which is free until then. */
static bool npuprof_npu_is_job_over_(const npuprof_npu_job_ *job, uint32_t ticket)
{
    return NPUPROF_LOAD_(&job->skipped) == ticket ||
           (NPUPROF_LOAD_ACQUIRE_(&job->ticket) == ticket && NPUPROF_LOAD_(&job->state) == NPUPROF_NPU_FREE_);
}

/* What is known of the submission that a record belongs to. */
typedef struct npuprof_npu_sought_ {
    bool has_id, any_stream;
    uint64_t id, id_mask;                /* the bits of the command's number that are known */
    uint64_t stream;                     /* preferred, unless any_stream */
} npuprof_npu_sought_;

/* The submission that a record belongs to, held; NULL: there is none. *busy: one that it may be is held by a
   thread that does not run. Under the queue lock. */
static npuprof_npu_job_ *npuprof_npu_find_job_(npuprof_npu *npu, const npuprof_npu_sought_ *sought,
                                               bool *busy)
{
    const uint32_t end = NPUPROF_LOAD_(&npu->tickets_);
    const bool by_id = sought->has_id && NPUPROF_LOAD_(&npu->uses_ids_);
    npuprof_npu_job_ *oldest = NULL;
    uint32_t first = npu->first_ticket_;
    *busy = false;
    if (end - first > NPUPROF_NPU_JOBS_) first = end - NPUPROF_NPU_JOBS_;
    while (first != end && npuprof_npu_is_job_over_(&npu->jobs_[first % NPUPROF_NPU_JOBS_], first)) first++;
    npu->first_ticket_ = first;
    for (uint32_t ticket = first; ticket != end; ticket++) {
        npuprof_npu_job_ *job = &npu->jobs_[ticket % NPUPROF_NPU_JOBS_];
        if (by_id && !npuprof_npu_has_id_(job, sought->id, sought->id_mask)) continue;
        if (!by_id && NPUPROF_LOAD_(&job->flags) & NPUPROF_NPU_MUTED_) continue;
        const uint32_t state = npuprof_npu_claim_job_(job, NPUPROF_NPU_READY_);
        *busy = *busy || state == NPUPROF_NPU_HELD_;
        if (state != NPUPROF_NPU_READY_) continue;
        const bool found = by_id ? npuprof_npu_has_id_(job, sought->id, sought->id_mask)
                                 : sought->any_stream || job->stream == sought->stream;
        if (found) {
            if (oldest) npuprof_npu_release_job_(oldest, NPUPROF_NPU_READY_);
            return job;
        }
        if (!by_id && !oldest) oldest = job;
        else npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
    }
    return oldest;
}

/* Finds the submission of a record; `whole`: the record stands for it, and the last such record ends it.
   NPUPROF_ERR_NPU_BUSY, only with can_wait: nobody can tell now, and nothing was done. Under the queue
   lock. */
static npuprof_result npuprof_npu_take_submission_(npuprof_npu *npu, const npuprof_npu_sought_ *sought,
                                                   bool whole, bool can_wait, npuprof_npu_submission_ *of)
{
    bool busy;
    npuprof_npu_job_ *job = npuprof_npu_find_job_(npu, sought, &busy);
    if (busy && can_wait) {
        if (job) npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
        return NPUPROF_ERR_NPU_BUSY;
    }
    memcpy(of->name, "job", sizeof "job");
    of->known = of->muted = of->has_arrow = false;
    if (!job) return NPUPROF_OK;
    const uint32_t flags = job->flags;
    of->muted = (flags & NPUPROF_NPU_MUTED_) != 0;
    of->known = !of->muted;
    of->has_arrow = of->known && whole && !(flags & NPUPROF_NPU_HAS_ARROW_);
    of->link = job->link;
    of->epoch = job->epoch;
    of->stream = job->stream;
    if (job->name[0]) memcpy(of->name, job->name, sizeof of->name);
    const bool over = whole && job->records <= 1;
    if (whole && job->records > 1) {
        job->records--;
        NPUPROF_STORE_(&job->flags, flags | NPUPROF_NPU_HAS_ARROW_);
    }
    /* If its block is still open, the end of that frees the entry. */
    if (over) NPUPROF_STORE_(&job->flags, flags & ~(uint32_t)(NPUPROF_NPU_HAS_ID_ | NPUPROF_NPU_IN_BLOCK_));
    npuprof_npu_release_job_(job, over && !(flags & NPUPROF_NPU_IN_BLOCK_) ? NPUPROF_NPU_FREE_
                                                                            : NPUPROF_NPU_READY_);
    return NPUPROF_OK;
}

/* The block that a submission was made in ends. The submission is over, too, if its record came already, or
   if the driver numbers its commands and submitted none here. */
static void npuprof_npu_end_block_of_job_(npuprof_npu *npu, uint32_t ticket)
{
    npuprof_npu_job_ *job = &npu->jobs_[ticket % NPUPROF_NPU_JOBS_];
    if (NPUPROF_LOAD_(&job->ticket) != ticket || !npuprof_npu_hold_job_(job, NPUPROF_NPU_READY_)) return;
    const bool mine = job->ticket == ticket;
    const uint32_t flags = job->flags;
    const bool over = mine && !(flags & NPUPROF_NPU_HAS_ID_) &&
                      (!(flags & NPUPROF_NPU_IN_BLOCK_) || NPUPROF_LOAD_(&npu->uses_ids_));
    if (mine) NPUPROF_STORE_(&job->flags, flags & ~(uint32_t)NPUPROF_NPU_IN_BLOCK_);
    npuprof_npu_release_job_(job, over ? NPUPROF_NPU_FREE_ : NPUPROF_NPU_READY_);
}

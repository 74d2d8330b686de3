#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/hash.h"
#include "../../numbers/time.h"
#include "../../os/common.h"
#include "../../arena/thread.h"
#include "../../record/args.h"
#include "../../record/thread.h"
#include "../types.h"
#include "../api.h"
#include "../mmio.h"

/* Submissions of a device whose records end them: who submitted what, until its completion record comes.
   May not know what is in a record, or when it is read.

   Owns jobs_ (npuprof_npu in types.h), one entry for each open submission, and used_, a bit for each entry:
     used_     Who sets a bit has that entry, which nobody else has; who clears it gives it back.
     state     A new submission turns FREE to HELD, and then to READY. Who changes or ends it turns READY to
               HELD, and then to OPEN or FREE. Only the thread that turned it to HELD writes the other words.
               It stores the next state with release order, after a few instructions.
     ticket    Number of the submission: the smaller one is older. Anybody may read it, to find out whether
               the entry is still the one he knows.
     numbered_ One row of bits for each hash of a number. Who holds an entry sets its bit in the row of its
               number, and clears it when that is over. A bit says that a look is worth it, no more.
     id, flags, stream
               Anybody may read them to pass over an entry, and looks again once he holds it.
   When all entries are taken, the oldest open submission gives its entry up and loses its arrow. What its
   record could be taken for is remembered in dropped_ and forgotten_: a record that may be a dropped one's is
   nobody's. */

enum {
    NPUPROF_NPU_JOB_FREE_ = 0, NPUPROF_NPU_JOB_OPEN_ = 1, NPUPROF_NPU_JOB_HELD_ = 2,
    NPUPROF_NPU_HAS_ID_ = 1,             /* flags: the command has a number */
    NPUPROF_NPU_IN_BLOCK_ = 2,           /* its block has not ended */
    NPUPROF_NPU_MUTED_ = 4,              /* not to be recorded */
    NPUPROF_NPU_HAS_ARROW_ = 8,          /* a record of it took the arrow */
    NPUPROF_NPU_LOOSE_ = 16,             /* numbered outside of a submission: when it was submitted, and on
                                            which stream, is not known */
    NPUPROF_NPU_OURS_ = 32,              /* its number is npuprof_npu_job()'s: no other one has it */
    NPUPROF_NPU_OVER_ = 64,              /* its record came, and its block has not ended */
    NPUPROF_NPU_OWNER_ = 128,            /* times the slot of the thread that submitted it */
    NPUPROF_NPU_SURE_BITS_ = 32,         /* numbers of that many bits are not used again */
    NPUPROF_NPU_ROWS_ = 64               /* of numbered_ */
};

/* ---- desc.cpu_ns */

enum { NPUPROF_NPU_USAGE_ARGS_ = 4 };

/* The calling thread submits: notes what it has used. Why the slot: it knows the system's number. */
static void npuprof_npu_note_usage_(npuprof_link_ *link)
{
    if (npuprof_os_usage_(link->used)) link->thread = NPUPROF_LOAD_(&npuprof_slot_mine_()->head.os_tid);
}

/* The end is noticed now: what the calling thread used since it submitted, as NPUPROF_NPU_USAGE_ARGS_
   arguments; only the first, when, if another one submitted. Returns how many. */
static size_t npuprof_npu_usage_args_(const npuprof_link_ *link, npuprof_arg *args)
{
    uint64_t used[3];
    const uint32_t me = NPUPROF_LOAD_(&npuprof_slot_mine_()->head.os_tid);
    args[0] = npuprof_int_("noticed_ns", npuprof_now_ns());
    if (!link->thread || link->thread != me || !npuprof_os_usage_(used)) return 1;
    args[1] = npuprof_uint_("wait_cpu_ns", used[0] - link->used[0]);
    args[2] = npuprof_uint_("wait_switches", used[1] - link->used[1]);
    args[3] = npuprof_uint_("wait_preempted", used[2] - link->used[2]);
    return NPUPROF_NPU_USAGE_ARGS_;
}

/* ---- Entries */

/* Holds an entry if it is in that state. Returns `state` if the caller holds it now, else the state it is in;
   HELD: its holder was interrupted. */
static uint32_t npuprof_npu_claim_job_(npuprof_npu_job_ *job, uint32_t state)
{
    for (int i = 0; i < 1000; i++) {
        uint32_t seen = NPUPROF_LOAD_(&job->state);
        if (seen == NPUPROF_NPU_JOB_HELD_) continue;
        if (seen != state || NPUPROF_CAS_(&job->state, &seen, (uint32_t)NPUPROF_NPU_JOB_HELD_)) return seen;
    }
    return NPUPROF_NPU_JOB_HELD_;
}

static bool npuprof_npu_hold_job_(npuprof_npu_job_ *job, uint32_t state)
{
    return npuprof_npu_claim_job_(job, state) == state;
}

/* Lets go of a held entry. FREE: it is given back. */
static void npuprof_npu_release_job_(npuprof_npu *npu, npuprof_npu_job_ *job, uint32_t state)
{
    const size_t at = (size_t)(job - npu->jobs_);
    NPUPROF_STORE_RELEASE_(&job->state, state);
    if (state != NPUPROF_NPU_JOB_FREE_) return;
    uint32_t used = NPUPROF_LOAD_(&npu->used_[at / 32]);
    while (!NPUPROF_CAS_(&npu->used_[at / 32], &used, used & ~((uint32_t)1 << at % 32))) {}
}

/* A walk over the entries whose bits are set: of used_, or of a row of numbered_. */
typedef struct npuprof_npu_walk_ {
    const uint32_t *next, *end;
    uint32_t left;                       /* bits of the 32 entries in front of `jobs` */
    npuprof_npu_job_ *jobs;
} npuprof_npu_walk_;

static npuprof_npu_walk_ npuprof_npu_walk_of_(const npuprof_npu *npu, const uint32_t *bits)
{
    const npuprof_npu_walk_ walk = { bits, bits + npu->desc_.job_count / 32, 0, npu->jobs_ };
    return walk;
}

/* The next entry; NULL: there is none. */
static inline npuprof_npu_job_ *npuprof_npu_next_job_(npuprof_npu_walk_ *walk)
{
    for (; !walk->left; walk->jobs += 32) {
        if (walk->next == walk->end) return NULL;
        walk->left = NPUPROF_LOAD_(walk->next++);
    }
    npuprof_npu_job_ *const job = walk->jobs - 32 + NPUPROF_LOW_ZEROS_(walk->left);
    walk->left &= walk->left - 1;
    return job;
}

/* Takes the first free entry, held. NULL: there is none. */
static npuprof_npu_job_ *npuprof_npu_take_free_job_(npuprof_npu *npu)
{
    for (uint32_t word = 0; word < npu->desc_.job_count / 32; word++) {
        uint32_t used = NPUPROF_LOAD_(&npu->used_[word]);
        while (~used) {
            const uint32_t bit = NPUPROF_LOW_ZEROS_(~used);
            if (!NPUPROF_CAS_(&npu->used_[word], &used, used | (uint32_t)1 << bit)) continue;
            NPUPROF_STORE_(&npu->jobs_[word * 32 + bit].state, (uint32_t)NPUPROF_NPU_JOB_HELD_);
            return &npu->jobs_[word * 32 + bit];
        }
    }
    return NULL;
}

/* The bits of the entries that may have a number, as in used_. */
static uint32_t *npuprof_npu_row_of_(const npuprof_npu *npu, uint64_t id)
{
    const uint64_t row = npuprof_hash_mix_fast_(id & npu->id_mask_) % NPUPROF_NPU_ROWS_;
    return npu->numbered_ + row * (npu->desc_.job_count / 32);
}

/* Puts a held entry into the row of its number, or takes it out. */
static void npuprof_npu_set_numbered_(npuprof_npu *npu, const npuprof_npu_job_ *job, bool in)
{
    const size_t at = (size_t)(job - npu->jobs_);
    const uint32_t bit = (uint32_t)1 << at % 32;
    NPUPROF_ADD_(&npuprof_npu_row_of_(npu, job->id)[at / 32], in ? bit : 0u - bit);
}

/* Whether submission a is older than b, by their tickets. */
static bool npuprof_npu_is_older_(uint32_t a, uint32_t b) { return (int32_t)(a - b) < 0; }

/* Numbers of so few bits that one is used again while its last record may not have come. */
static bool npuprof_npu_numbers_return_(const npuprof_npu *npu)
{
    return npu->id_mask_ >> (NPUPROF_NPU_SURE_BITS_ - 1) == 0;
}

/* Counts what a submission that gives up its place may be taken for. It is held. */
static void npuprof_npu_drop_job_(npuprof_npu *npu, const npuprof_npu_job_ *job)
{
    const uint32_t flags = job->flags;
    if (flags & NPUPROF_NPU_HAS_ID_) npuprof_npu_set_numbered_(npu, job, false);
    if (flags & NPUPROF_NPU_HAS_ID_ && npu->has_numbers_) {
        if (npuprof_npu_numbers_return_(npu))
            NPUPROF_ADD_(&npu->dropped_[(job->id & npu->id_mask_) % NPUPROF_NPU_DROPPED_], 1u);
    } else if (!(flags & (NPUPROF_NPU_MUTED_ | NPUPROF_NPU_OVER_)) &&
               !(npu->has_numbers_ && NPUPROF_LOAD_(&npu->uses_ids_))) {
        NPUPROF_ADD_(&npu->dropped_[job->stream % NPUPROF_NPU_DROPPED_], 1u);
        NPUPROF_ADD_(&npu->forgotten_, 1u);
    }
    if (!(flags & (NPUPROF_NPU_MUTED_ | NPUPROF_NPU_OVER_))) NPUPROF_ADD_(&npu->jobs_dropped_, 1u);
}

/* The oldest open submission that `fits`, if that is not NULL. NULL: there is none. */
static npuprof_npu_job_ *npuprof_npu_oldest_job_(const npuprof_npu *npu,
                                                 bool (*fits)(const npuprof_npu *npu,
                                                              const npuprof_npu_job_ *job, uint64_t value),
                                                 uint64_t value)
{
    npuprof_npu_job_ *oldest = NULL;
    uint32_t ticket = 0;
    npuprof_npu_walk_ walk = npuprof_npu_walk_of_(npu, npu->used_);
    for (npuprof_npu_job_ *job; (job = npuprof_npu_next_job_(&walk)) != NULL;) {
        const uint32_t its = NPUPROF_LOAD_ACQUIRE_(&job->ticket);
        if (NPUPROF_LOAD_ACQUIRE_(&job->state) != NPUPROF_NPU_JOB_OPEN_) continue;
        if ((fits && !fits(npu, job, value)) || (oldest && !npuprof_npu_is_older_(its, ticket))) continue;
        oldest = job;
        ticket = its;
    }
    return oldest;
}

/* The oldest open submission, held and dropped. NULL: the oldest four are held by others right now. */
static npuprof_npu_job_ *npuprof_npu_drop_oldest_job_(npuprof_npu *npu)
{
    for (int i = 0; i < 4; i++) {
        npuprof_npu_job_ *const oldest = npuprof_npu_oldest_job_(npu, NULL, 0);
        if (!oldest || !npuprof_npu_hold_job_(oldest, NPUPROF_NPU_JOB_OPEN_)) continue;
        npuprof_npu_drop_job_(npu, oldest);
        return oldest;
    }
    return NULL;
}

/* The entry of a new submission, held. NULL: all are held by others right now. */
static npuprof_npu_job_ *npuprof_npu_new_job_(npuprof_npu *npu, uint32_t flags, uint64_t stream,
                                              const npuprof_link_ *link)
{
    npuprof_npu_job_ *job = npuprof_npu_take_free_job_(npu);
    if (!job) job = npuprof_npu_drop_oldest_job_(npu);
    if (!job) {
        NPUPROF_ADD_(&npu->jobs_dropped_, 1u);
        return NULL;
    }
    NPUPROF_STORE_(&job->flags, flags | link->slot * NPUPROF_NPU_OWNER_);
    NPUPROF_STORE_RELEASE_(&job->ticket, NPUPROF_ADD_SEQ_(&npu->tickets_, 1u));
    NPUPROF_STORE_(&job->id, (uint64_t)0);
    NPUPROF_STORE_(&job->stream, stream);
    job->records = 0;
    NPUPROF_STORE_(&job->epoch, NPUPROF_LOAD_(&npu->epoch_));
    job->link = *link;
    job->name[0] = 0;
    return job;
}

/* Whether an entry with these flags is a submission of this thread whose block has not ended. */
static bool npuprof_npu_is_my_block_(uint32_t flags, const npuprof_link_ *here)
{
    return flags / NPUPROF_NPU_OWNER_ == here->slot &&
           flags & (NPUPROF_NPU_IN_BLOCK_ | NPUPROF_NPU_OVER_) &&
           !(flags & (NPUPROF_NPU_MUTED_ | NPUPROF_NPU_LOOSE_));
}

/* The newest submission that this thread began and nobody ended, held: of the block that it is in, or of a
   npuprof_npu_begin(). Its record may have come. NULL: there is none that is recorded, or it is held. */
static npuprof_npu_job_ *npuprof_npu_find_my_job_(npuprof_npu *npu, const npuprof_link_ *here)
{
    npuprof_npu_job_ *newest = NULL;
    uint32_t ticket = 0;
    if (!here->slot) return NULL;
    npuprof_npu_walk_ walk = npuprof_npu_walk_of_(npu, npu->used_);
    for (npuprof_npu_job_ *job; (job = npuprof_npu_next_job_(&walk)) != NULL;) {
        const uint32_t its = NPUPROF_LOAD_(&job->ticket);
        if (!npuprof_npu_is_my_block_(NPUPROF_LOAD_(&job->flags), here)) continue;
        if (NPUPROF_LOAD_(&job->state) == NPUPROF_NPU_JOB_FREE_) continue;
        if (newest && npuprof_npu_is_older_(its, ticket)) continue;
        newest = job;
        ticket = its;
    }
    if (!newest || !npuprof_npu_hold_job_(newest, NPUPROF_NPU_JOB_OPEN_)) return NULL;
    if (npuprof_npu_is_my_block_(newest->flags, here) && newest->ticket == ticket) return newest;
    npuprof_npu_release_job_(npu, newest, NPUPROF_NPU_JOB_OPEN_);
    return NULL;
}

/* Gives a number, with the flag `ours` or 0, to a command of this submission, which is held, or NULL: it is
   outside a recorded one, and `here` is where. Releases it. */
static void npuprof_npu_give_id_(npuprof_npu *npu, npuprof_npu_job_ *job, const npuprof_link_ *here,
                                 uint64_t id, uint32_t ours)
{
    uint32_t none = 0;
    const bool first = NPUPROF_CAS_(&npu->uses_ids_, &none, 1u);
    /* Its record, which came before any number, was matched by order. */
    if (first && job && job->flags & NPUPROF_NPU_OVER_) {
        npuprof_npu_release_job_(npu, job, NPUPROF_NPU_JOB_OPEN_);
        return;
    }
    /* the second is one more command of it */
    if (!job || job->flags & (NPUPROF_NPU_HAS_ID_ | NPUPROF_NPU_OVER_)) {
        npuprof_link_ link = *here;
        uint64_t stream = 0;
        char name[NPUPROF_NPU_NAME_] = "";
        uint32_t flags = 0;
        if (job) {
            link = job->link;
            stream = job->stream;
            memcpy(name, job->name, sizeof name);
            npuprof_npu_release_job_(npu, job, NPUPROF_NPU_JOB_OPEN_);
        } else {
            flags = here->ticks ? NPUPROF_NPU_LOOSE_ : NPUPROF_NPU_LOOSE_ | NPUPROF_NPU_MUTED_;
        }
        job = npuprof_npu_new_job_(npu, flags, stream, &link);
        if (!job) return;
        memcpy(job->name, name, sizeof name);
    }
    NPUPROF_STORE_(&job->id, id);
    npuprof_npu_set_numbered_(npu, job, true);
    NPUPROF_STORE_(&job->flags, job->flags | NPUPROF_NPU_HAS_ID_ | ours);
    npuprof_npu_release_job_(npu, job, NPUPROF_NPU_JOB_OPEN_);
}

/* Gives a number to the command being submitted. */
static void npuprof_npu_number_job_(npuprof_npu *npu, uint64_t id, uint32_t ours)
{
    if (!npu->number_ || !npu->has_submissions_) return;
    const npuprof_link_ here = npuprof_link_here_();
    npuprof_npu_give_id_(npu, npuprof_npu_find_my_job_(npu, &here), &here, id, ours);
}

/* The same for the submission of that ticket, whose entry is jobs_[at]. False: it is over, or it is held. */
static bool npuprof_npu_number_ticket_(npuprof_npu *npu, uint32_t at, uint32_t ticket, uint64_t id)
{
    npuprof_npu_job_ *job = &npu->jobs_[at];
    if (!npuprof_npu_hold_job_(job, NPUPROF_NPU_JOB_OPEN_)) return false;
    const bool mine = job->ticket == ticket;
    if (mine) npuprof_npu_give_id_(npu, job, &job->link, id, 0);
    else npuprof_npu_release_job_(npu, job, NPUPROF_NPU_JOB_OPEN_);
    return mine;
}

/* Whether an open submission has that number. */
static bool npuprof_npu_is_number_taken_(const npuprof_npu *npu, uint64_t id)
{
    npuprof_npu_walk_ walk = npuprof_npu_walk_of_(npu, npuprof_npu_row_of_(npu, id));
    for (npuprof_npu_job_ *job; (job = npuprof_npu_next_job_(&walk)) != NULL;)
        if (NPUPROF_LOAD_(&job->flags) & NPUPROF_NPU_HAS_ID_ &&
            ((NPUPROF_LOAD_(&job->id) ^ id) & npu->id_mask_) == 0) return true;
    return false;
}

NPUPROF_API_ uint32_t npuprof_npu_job(npuprof_npu *npu)
{
    uint32_t id;
    const uint64_t mask = npu->number_ ? npu->id_mask_ : UINT64_MAX;
    /* Why at most that often: if all of them are taken, the oldest submission's record comes first. */
    unsigned left = npu->number_ && mask <= 0xFFFF ? npu->desc_.job_count : 0;
    do id = NPUPROF_ADD_(&npu->ids_, 1u) + 1u;
    while (!(id & mask) || (left && left-- && npuprof_npu_is_number_taken_(npu, id)));
    npuprof_npu_number_job_(npu, id, NPUPROF_NPU_OURS_);
    return id;
}

NPUPROF_API_ void npuprof_npu_set_job(npuprof_npu *npu, uint64_t id)
{
    npuprof_npu_number_job_(npu, id, 0);
}

NPUPROF_API_ void npuprof_npu_set_job_records(npuprof_npu *npu, unsigned n)
{
    if (!npu->number_ || !npu->has_submissions_) return;
    const npuprof_link_ here = npuprof_link_here_();
    npuprof_npu_job_ *const job = npuprof_npu_find_my_job_(npu, &here);
    if (!job) return;
    job->records = n;
    npuprof_npu_release_job_(npu, job, NPUPROF_NPU_JOB_OPEN_);
}

/* The block that a submission was made in ends. The submission is over, too, if its record came already, or
   if the driver numbers its commands and submitted none here. True: it is the first that ends without a
   number. Records that came inside need not wait for one. */
static bool npuprof_npu_end_block_of_job_(npuprof_npu *npu, uint32_t at, uint32_t ticket)
{
    npuprof_npu_job_ *job = &npu->jobs_[at];
    uint32_t none = 0;
    if (NPUPROF_LOAD_(&job->ticket) != ticket || !npuprof_npu_hold_job_(job, NPUPROF_NPU_JOB_OPEN_))
        return false;
    const bool mine = job->ticket == ticket;
    const uint32_t flags = job->flags;
    const bool over = mine && !(flags & NPUPROF_NPU_HAS_ID_) &&
                      (!(flags & NPUPROF_NPU_IN_BLOCK_) || NPUPROF_LOAD_(&npu->uses_ids_));
    if (mine) NPUPROF_STORE_(&job->flags, flags & ~(uint32_t)NPUPROF_NPU_IN_BLOCK_);
    npuprof_npu_release_job_(npu, job, over ? NPUPROF_NPU_JOB_FREE_ : NPUPROF_NPU_JOB_OPEN_);
    return !NPUPROF_LOAD_(&npu->uses_ids_) && NPUPROF_CAS_(&npu->ended_unnumbered_, &none, 1u);
}

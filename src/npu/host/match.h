#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../types.h"
#include "../mmio.h"
#include "jobs.h"
#include "draw.h"

/* Which submission a record belongs to. A number is matched in its scope (ring.job_scope); of several open
   submissions that have it, the oldest. Where two could be meant and nothing decides, the record is nobody's:
   it is drawn without an arrow, and counted. Under the queue lock. May not know what is in a record. */

/* What is known of the submission that a record belongs to. */
typedef struct npuprof_npu_lookup_ {
    bool has_id, any_stream;
    uint64_t id, id_mask;                /* the bits of the command's number that are known */
    uint64_t stream;                     /* without a number: preferred, unless any_stream */
    bool is_scoped;                      /* the number is that of a submission whose stream is `scope` */
    uint64_t scope;
    bool is_late;                        /* it waited: it belongs to a submission before that ticket */
    uint32_t before;
    bool whole;                          /* the record stands for it, and the last such record ends it */
    bool can_wait;                       /* until it can be told */
} npuprof_npu_lookup_;

/* What a look at all open submissions found. */
typedef struct npuprof_npu_found_ {
    npuprof_npu_job_ *oldest, *second;   /* of those that it may be */
    uint32_t ticket, second_ticket;
    bool busy;                           /* one that it may be is held by a thread that does not run */
    bool awaited;                        /* one of this scope may get this number yet; by order: the first
                                            number of all may come */
    bool elsewhere;                      /* a submission of another scope has the number */
    bool other_stream;                   /* without a number: no submission has the stream */
} npuprof_npu_found_;

static void npuprof_npu_add_found_(npuprof_npu_found_ *f, npuprof_npu_job_ *job, uint32_t ticket)
{
    if (!f->oldest || npuprof_npu_is_older_(ticket, f->ticket)) {
        f->second = f->oldest;
        f->second_ticket = f->ticket;
        f->oldest = job;
        f->ticket = ticket;
    } else if (!f->second || npuprof_npu_is_older_(ticket, f->second_ticket)) {
        f->second = job;
        f->second_ticket = ticket;
    }
}

/* Whether it has the number. */
static bool npuprof_npu_has_id_(const npuprof_npu_job_ *job, const npuprof_npu_lookup_ *s)
{
    return NPUPROF_LOAD_(&job->flags) & NPUPROF_NPU_HAS_ID_ &&
           ((NPUPROF_LOAD_(&job->id) ^ s->id) & s->id_mask) == 0;
}

/* Whether a submission with these flags is of the record's scope, or may be. */
static bool npuprof_npu_is_in_scope_(const npuprof_npu_job_ *job, uint32_t flags,
                                     const npuprof_npu_lookup_ *s)
{
    if (!s->is_scoped || flags & NPUPROF_NPU_OURS_) return true;
    if (flags & NPUPROF_NPU_LOOSE_) return (flags & NPUPROF_NPU_MUTED_) != 0;
    return NPUPROF_LOAD_(&job->stream) == s->scope;
}

/* The state of an entry; HELD: its holder was interrupted. */
static uint32_t npuprof_npu_state_of_job_(const npuprof_npu_job_ *job)
{
    uint32_t state = NPUPROF_NPU_JOB_HELD_;
    for (int i = 0; i < 1000 && state == NPUPROF_NPU_JOB_HELD_; i++)
        state = NPUPROF_LOAD_ACQUIRE_(&job->state);
    return state;
}

/* Whether its record may be lost: entries were, or a reset came, since it was submitted. */
static bool npuprof_npu_is_doubtful_(const npuprof_npu *npu, const npuprof_npu_job_ *job)
{
    return npuprof_npu_is_older_(NPUPROF_LOAD_(&job->ticket), npu->gap_ticket_) ||
           NPUPROF_LOAD_(&job->epoch) != NPUPROF_LOAD_(&npu->epoch_);
}

/* Looks at the entries of those bits: used_, or a row of numbered_, which leaves out what is awaited. */
static npuprof_npu_found_ npuprof_npu_look_in_(const npuprof_npu *npu, const uint32_t *bits,
                                               const npuprof_npu_lookup_ *s)
{
    npuprof_npu_found_ f = { NULL, NULL, 0, 0, false, false, false, false };
    npuprof_npu_walk_ walk = npuprof_npu_walk_of_(npu, bits);
    for (npuprof_npu_job_ *job; (job = npuprof_npu_next_job_(&walk)) != NULL;) {
        const uint32_t ticket = NPUPROF_LOAD_ACQUIRE_(&job->ticket), flags = NPUPROF_LOAD_(&job->flags);
        if (!npuprof_npu_has_id_(job, s)) {
            f.awaited = f.awaited || ((flags & NPUPROF_NPU_IN_BLOCK_) != 0 &&
                                      npuprof_npu_is_in_scope_(job, flags, s) &&
                                      (!s->is_late || npuprof_npu_is_older_(ticket, s->before)));
            continue;
        }
        const bool in_scope = npuprof_npu_is_in_scope_(job, flags, s);
        f.elsewhere = f.elsewhere || !in_scope;
        const uint32_t state = in_scope ? npuprof_npu_state_of_job_(job) : (uint32_t)NPUPROF_NPU_JOB_FREE_;
        f.busy = f.busy || state == NPUPROF_NPU_JOB_HELD_;
        if (state == NPUPROF_NPU_JOB_OPEN_) npuprof_npu_add_found_(&f, job, ticket);
    }
    return f;
}

/* Why all entries, if the row shows none, or one whose record may be lost: another may get the number. */
static npuprof_npu_found_ npuprof_npu_look_by_id_(const npuprof_npu *npu, const npuprof_npu_lookup_ *s)
{
    const npuprof_npu_found_ f = npuprof_npu_look_in_(npu, npuprof_npu_row_of_(npu, s->id), s);
    if (f.oldest && !npuprof_npu_is_doubtful_(npu, f.oldest)) return f;
    return npuprof_npu_look_in_(npu, npu->used_, s);
}

/* Stops at a submission with the ticket open_from_, if that fits: no open one is older. Why tickets_ is
   loaded before the walk: who has a ticket before that one shows by then that his entry is held, or open. */
static npuprof_npu_found_ npuprof_npu_look_by_order_(npuprof_npu *npu, const npuprof_npu_lookup_ *s)
{
    npuprof_npu_found_ f = { NULL, NULL, 0, 0, false, false, false, false }, other = f;
    const bool awaits = s->has_id && !NPUPROF_LOAD_(&npu->ended_unnumbered_);
    uint32_t from = NPUPROF_LOAD_ACQUIRE_(&npu->tickets_);
    npuprof_npu_walk_ walk = npuprof_npu_walk_of_(npu, npu->used_);
    for (npuprof_npu_job_ *job; (job = npuprof_npu_next_job_(&walk)) != NULL;) {
        const uint32_t ticket = NPUPROF_LOAD_ACQUIRE_(&job->ticket);
        if (NPUPROF_LOAD_(&job->flags) & (NPUPROF_NPU_MUTED_ | NPUPROF_NPU_OVER_)) continue;
        const uint32_t state = npuprof_npu_state_of_job_(job);
        f.busy = f.busy || state == NPUPROF_NPU_JOB_HELD_;
        if (state != NPUPROF_NPU_JOB_OPEN_) continue;
        f.awaited = f.awaited || (awaits && NPUPROF_LOAD_(&job->flags) & NPUPROF_NPU_IN_BLOCK_);
        const bool fits = s->any_stream || NPUPROF_LOAD_(&job->stream) == s->stream;
        npuprof_npu_add_found_(fits ? &f : &other, job, ticket);
        if (fits && !awaits && ticket == npu->open_from_) return f;
        if (npuprof_npu_is_older_(ticket, from)) from = ticket;
    }
    if (!f.busy) npu->open_from_ = from;
    if (f.oldest || NPUPROF_LOAD_(&npu->forgotten_)) return f;
    other.busy = f.busy;
    other.awaited = f.awaited;
    other.other_stream = true;
    return other;
}

/* Takes one from a count, if it is not 0. */
static bool npuprof_npu_take_one_(uint32_t *count)
{
    if (!NPUPROF_LOAD_(count)) return false;
    NPUPROF_ADD_(count, 0u - 1u);
    return true;
}

/* Whether the record may be one of a submission that was dropped. A whole one: that is over then. */
static bool npuprof_npu_may_be_dropped_(npuprof_npu *npu, const npuprof_npu_lookup_ *s, bool by_id)
{
    uint64_t key = s->stream;
    if (by_id && !npuprof_npu_numbers_return_(npu)) return false;
    if (by_id) key = s->id & npu->id_mask_;
    uint32_t *const count = &npu->dropped_[key % NPUPROF_NPU_DROPPED_];
    if (by_id) return s->whole ? npuprof_npu_take_one_(count) : NPUPROF_LOAD_(count) != 0;
    if (!s->any_stream && !NPUPROF_LOAD_(count)) return false;
    if (!s->whole) return NPUPROF_LOAD_(&npu->forgotten_) != 0;
    if (!npuprof_npu_take_one_(&npu->forgotten_)) return false;
    if (!s->any_stream) (void)npuprof_npu_take_one_(count);
    return true;
}

/* Ends a submission that is held. If its block is still open, the end of that frees the entry. */
static void npuprof_npu_end_job_(npuprof_npu *npu, npuprof_npu_job_ *job)
{
    const uint32_t flags = job->flags;
    const uint32_t open = NPUPROF_NPU_HAS_ID_ | NPUPROF_NPU_IN_BLOCK_;
    if (flags & NPUPROF_NPU_HAS_ID_) npuprof_npu_set_numbered_(npu, job, false);
    if (job->ticket == npu->open_from_) npu->open_from_++;
    NPUPROF_STORE_(&job->flags, (flags & ~open) | NPUPROF_NPU_OVER_);
    npuprof_npu_release_job_(npu, job,
                             flags & NPUPROF_NPU_IN_BLOCK_ ? NPUPROF_NPU_JOB_OPEN_ : NPUPROF_NPU_JOB_FREE_);
}

/* Whether the other submission with this number may be meant as well. The oldest is held. */
static bool npuprof_npu_is_ambiguous_(const npuprof_npu *npu, const npuprof_npu_found_ *f,
                                      const npuprof_npu_lookup_ *s)
{
    const uint32_t any = NPUPROF_NPU_LOOSE_ | NPUPROF_NPU_OURS_;
    if (npuprof_npu_is_doubtful_(npu, f->oldest) && (f->second || f->awaited)) return true;
    return s->is_scoped && f->second &&
           !(f->oldest->flags & any) != !(NPUPROF_LOAD_(&f->second->flags) & any);
}

/* Two submissions may be meant: whole: both are over. The oldest is held. */
static void npuprof_npu_give_both_up_(npuprof_npu *npu, const npuprof_npu_found_ *f, bool whole)
{
    if (!whole) {
        npuprof_npu_release_job_(npu, f->oldest, NPUPROF_NPU_JOB_OPEN_);
        return;
    }
    npuprof_npu_end_job_(npu, f->oldest);
    if (!f->second || !npuprof_npu_hold_job_(f->second, NPUPROF_NPU_JOB_OPEN_)) return;
    if (f->second->ticket == f->second_ticket) npuprof_npu_end_job_(npu, f->second);
    else npuprof_npu_release_job_(npu, f->second, NPUPROF_NPU_JOB_OPEN_);
}

/* The submission that a record belongs to, f->oldest, held; NULL: there is none, or nobody can tell which.
   *wait: nobody can tell now, and nothing was done. */
static npuprof_npu_job_ *npuprof_npu_find_job_(npuprof_npu *npu, const npuprof_npu_lookup_ *s,
                                               npuprof_npu_found_ *f, bool *wait)
{
    const bool by_id = s->has_id && NPUPROF_LOAD_(&npu->uses_ids_);
    for (int i = 0; i < 8; i++) {
        *f = by_id ? npuprof_npu_look_by_id_(npu, s) : npuprof_npu_look_by_order_(npu, s);
        *wait = s->can_wait && (f->busy || (f->awaited && !(by_id && f->oldest)));
        if (*wait) return NULL;
        const bool held = f->oldest && npuprof_npu_hold_job_(f->oldest, NPUPROF_NPU_JOB_OPEN_);
        if (f->oldest && !held) continue;
        if (held && (f->oldest->ticket != f->ticket || (by_id && !npuprof_npu_has_id_(f->oldest, s)))) {
            npuprof_npu_release_job_(npu, f->oldest, NPUPROF_NPU_JOB_OPEN_);
            continue;                    /* it changed meanwhile */
        }
        *wait = held && by_id && s->can_wait && f->awaited && npuprof_npu_is_doubtful_(npu, f->oldest);
        const bool dropped = !*wait && npuprof_npu_may_be_dropped_(npu, s, by_id);
        if (*wait || (held && !by_id && dropped)) {      /* the dropped one is older */
            npuprof_npu_release_job_(npu, f->oldest, NPUPROF_NPU_JOB_OPEN_);
            return NULL;
        }
        if (held && !dropped && !(by_id && npuprof_npu_is_ambiguous_(npu, f, s))) return f->oldest;
        if (held) npuprof_npu_give_both_up_(npu, f, s->whole);
        if (held || f->elsewhere) npuprof_npu_count_records_(npu, NPUPROF_RECORDS_AMBIGUOUS, 1);
        return NULL;
    }
    return NULL;
}

/* Nobody's. */
static void npuprof_npu_clear_submission_(npuprof_npu_submission_ *of)
{
    of->known = of->muted = of->has_arrow = false;
    of->submitted = of->begun = of->over = 0;
}

/* Finds the submission of a record. NPUPROF_ERR_NPU_BUSY, only with can_wait: nobody can tell now, and
   nothing was done. */
static npuprof_result npuprof_npu_take_submission_(npuprof_npu *npu, const npuprof_npu_lookup_ *s,
                                                   npuprof_npu_submission_ *of)
{
    npuprof_npu_found_ found;
    bool wait;
    npuprof_npu_job_ *const job = npuprof_npu_find_job_(npu, s, &found, &wait);
    if (wait) return NPUPROF_ERR_NPU_BUSY;
    npuprof_npu_clear_submission_(of);
    memcpy(of->name, "job", sizeof "job");
    if (!job) return NPUPROF_OK;
    const uint32_t flags = job->flags;
    of->muted = (flags & NPUPROF_NPU_MUTED_) != 0;
    of->known = !of->muted;
    of->has_arrow = of->known && s->whole && !(flags & NPUPROF_NPU_HAS_ARROW_);
    of->link = job->link;
    of->epoch = job->epoch;
    of->stream = job->stream;
    if (of->known && !(flags & NPUPROF_NPU_LOOSE_) && !found.other_stream) of->submitted = job->link.ticks;
    if (job->name[0]) memcpy(of->name, job->name, sizeof of->name);
    if (s->whole && job->records <= 1) {
        npuprof_npu_end_job_(npu, job);
        return NPUPROF_OK;
    }
    if (s->whole) {
        job->records--;
        NPUPROF_STORE_(&job->flags, flags | NPUPROF_NPU_HAS_ARROW_);
    }
    npuprof_npu_release_job_(npu, job, NPUPROF_NPU_JOB_OPEN_);
    return NPUPROF_OK;
}

/* The device is being closed: counts the submissions whose records never came. */
static void npuprof_npu_count_open_jobs_(npuprof_npu *npu)
{
    npuprof_npu_walk_ walk = npuprof_npu_walk_of_(npu, npu->used_);
    for (npuprof_npu_job_ *job; (job = npuprof_npu_next_job_(&walk)) != NULL;)
        if (!(NPUPROF_LOAD_(&job->flags) & (NPUPROF_NPU_MUTED_ | NPUPROF_NPU_OVER_)))
            npuprof_npu_count_records_(npu, NPUPROF_RECORDS_OPEN_JOBS, 1);
}

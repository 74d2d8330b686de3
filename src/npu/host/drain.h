#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../types.h"
#include "../api.h"
#include "../mmio.h"
#include "../clock.h"
#include "../anchors.h"
#include "pmu.h"
#include "jobs.h"
#include "draw.h"
#include "format.h"
#include "index.h"
#include "rules.h"
#include "stamp.h"
#include "record.h"
#include "late.h"

/* The library comes for the records: rings that it polls, and an index of finished jobs. One drain works at a
   time, the one that holds the queue lock.

   A ring is read up to where the device was when its drain began; then the clock is read, so every stamp lies
   before it. */

/* Takes one batch that was copied. True: go on with the next. */
static bool npuprof_npu_take_batch_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading,
                                    const npuprof_npu_pass_ *pass)
{
    const uint64_t first = q->next;
    for (unsigned i = 0; i < reading->count; i++) {
        const uint64_t number = first + i;
        const int fate = reading->fate[i];
        if (fate == NPUPROF_NPU_ENTRY_LATER_) return false;
        if (fate == NPUPROF_NPU_ENTRY_LAPPED_) {
            npuprof_npu_count_gap_(npu, q, reading->gap[i]);
            q->next = number + reading->gap[i];
            q->index.last += reading->gap[i];
            reading->producer += reading->gap[i];
            return true;
        }
        const bool good = fate == NPUPROF_NPU_ENTRY_GOOD_;
        npuprof_npu_count_gap_(npu, q, good ? reading->gap[i] : 1);
        if (good) npuprof_npu_take_or_keep_(npu, q, &reading->batch[i], pass);
        q->next = number + 1;
        if (i + 1 < reading->count && reading->fate[i + 1] == NPUPROF_NPU_ENTRY_GOOD_) continue;
        q->read_end = good ? q->next + 1 : 0;
        q->read_hash = npuprof_npu_hash_record_(q, &reading->batch[i]);
    }
    return true;
}

/* A drain under way. */
typedef struct npuprof_npu_visit_ {
    npuprof_npu_pass_ pass;
    npuprof_npu_reading_ reading;
    npuprof_result ring_result, result;  /* the first bad one of a ring; of the clock */
    bool took;                           /* there were records */
} npuprof_npu_visit_;

/* Reads the clocks. False: no record can be placed. */
static bool npuprof_npu_drain_now_(npuprof_npu *npu, npuprof_npu_visit_ *d, bool by_counter)
{
    const npuprof_result result = npuprof_npu_read_now_(npu, by_counter, &d->pass.now);
    if (d->result == NPUPROF_OK) d->result = result;
    return result != NPUPROF_ERR_NPU_DEAD && result != NPUPROF_ERR_NPU_TORN && result != NPUPROF_ERR_NPU_BUSY;
}

/* The same for a batch of a ring that was copied. */
static bool npuprof_npu_drain_batch_now_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_visit_ *d)
{
    if (!npuprof_npu_drain_now_(npu, d, q->is.stamp_clock == NPUPROF_NPU_STAMP_COUNTER)) return false;
    d->pass.units = npuprof_npu_units_of_(npu, q, &d->pass.now);
    return true;
}

/* Takes what a ring has. */
static void npuprof_npu_drain_queue_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_visit_ *d)
{
    npuprof_npu_reading_ *const reading = &d->reading;
    if (npuprof_npu_is_in_bar_(q) && !npuprof_npu_is_on_(npu)) {
        reading->result = NPUPROF_ERR_NPU_OFF;
    } else if (npuprof_npu_begin_reading_(npu, q, reading) && q->next != reading->producer) {
        const uint64_t begun = q->next;
        /* Why the clock after the copy, and for each batch that no index announced: what came meanwhile has
           stamps of meanwhile. */
        bool go_on = true;
        for (bool again = false; go_on && npuprof_npu_copy_batch_(npu, q, reading); again = true) {
            if (!q->rule->is_announced || !again) go_on = npuprof_npu_drain_batch_now_(npu, q, d);
            if (go_on) go_on = npuprof_npu_take_batch_(npu, q, reading, &d->pass);
        }
        d->took = d->took || q->next != begun;
    }
    if (d->ring_result == NPUPROF_OK) d->ring_result = reading->result;
}

/* Draws a submission that the progress index says is over. */
static void npuprof_npu_draw_progress_(npuprof_npu *npu, const npuprof_npu_visit_ *d,
                                       const npuprof_npu_submission_ *of)
{
    npuprof_npu_drawing_ s;
    memset(&s, 0, sizeof s);
    s.end = d->pass.now.host;
    s.start = of->link.ticks && of->link.ticks < s.end ? of->link.ticks : s.end;
    s.flags = NPUPROF_STAMP_HOST;
    s.takes_arrow = true;
    npuprof_npu_draw_(npu, &s, of);
}

/* Whether a job's number lies below `done`, as far as the index tells: modulo its period. */
static bool npuprof_npu_is_progress_over_(const npuprof_npu *npu, uint64_t id, uint64_t done)
{
    const npuprof_npu_progress *const p = &npu->desc_.progress;
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

/* The oldest numbered submission that is over; NULL: there is none. */
static npuprof_npu_job_ *npuprof_npu_oldest_over_(const npuprof_npu *npu, uint64_t done)
{
    npuprof_npu_job_ *oldest = NULL;
    uint32_t ticket = 0;
    for (npuprof_npu_job_ *job = npu->jobs_; (job = npuprof_npu_next_job_(npu, job)) != NULL; job++) {
        const uint32_t its = NPUPROF_LOAD_ACQUIRE_(&job->ticket);
        if (NPUPROF_LOAD_ACQUIRE_(&job->state) != NPUPROF_NPU_JOB_OPEN_ ||
            !(NPUPROF_LOAD_(&job->flags) & NPUPROF_NPU_HAS_ID_) ||
            !npuprof_npu_is_progress_over_(npu, NPUPROF_LOAD_(&job->id), done)) continue;
        if (oldest && !npuprof_npu_is_older_(its, ticket)) continue;
        oldest = job;
        ticket = its;
    }
    return oldest;
}

/* Ends the numbered submissions that are over. One that gave up its place is nobody's: it is lost. */
static void npuprof_npu_end_numbered_(npuprof_npu *npu, npuprof_npu_visit_ *d, uint64_t done)
{
    const uint32_t forgotten = NPUPROF_LOAD_(&npu->forgotten_);
    npuprof_npu_sought_ sought;
    npuprof_npu_submission_ of;
    NPUPROF_ADD_(&npu->forgotten_, 0u - forgotten);
    npuprof_npu_count_records_(npu, NPUPROF_RECORDS_OVERWRITTEN, forgotten);
    memset(&sought, 0, sizeof sought);
    sought.has_id = true;
    sought.id_mask = UINT64_MAX;
    for (bool first = true;; first = false) {
        npuprof_npu_job_ *const job = npuprof_npu_oldest_over_(npu, done);
        if (!job || (first && !npuprof_npu_drain_now_(npu, d, false))) break;
        sought.id = NPUPROF_LOAD_(&job->id);
        (void)npuprof_npu_take_submission_(npu, &sought, true, false, &of);
        d->took = true;
        if (of.known) npuprof_npu_draw_progress_(npu, d, &of);
        else if (!of.muted) break;       /* somebody else ended it, or holds it */
    }
    npu->progress_next_ = done;
}

/* Ends the submissions that the progress index says are over: those whose numbers it has passed; without
   numbers, one for each step. */
static void npuprof_npu_drain_progress_(npuprof_npu *npu, npuprof_npu_visit_ *d)
{
    const npuprof_npu_progress *p = &npu->desc_.progress;
    uint64_t done;
    npuprof_npu_sought_ any;
    memset(&any, 0, sizeof any);
    any.any_stream = true;
    if (npu->progress_.in_bar && !npuprof_npu_is_on_(npu)) {
        d->ring_result = NPUPROF_ERR_NPU_OFF;
        return;
    }
    const bool known = npu->progress_.known;
    /* Why: numbers of npuprof_npu_job() are not the index's. */
    const bool numbered = NPUPROF_LOAD_(&npu->uses_ids_) && !NPUPROF_LOAD_(&npu->ids_);
    d->ring_result = npuprof_npu_read_index_(npu, &p->index, &npu->progress_, &done);
    if (d->ring_result == NPUPROF_ERR_NPU_DEAD || d->ring_result == NPUPROF_ERR_NPU_BUSY) return;
    if (!known || done < npu->progress_next_) npu->progress_next_ = done;
    if (numbered) {
        npuprof_npu_end_numbered_(npu, d, done);
        return;
    }
    if (done == npu->progress_next_ || !npuprof_npu_drain_now_(npu, d, false)) return;
    /* Why first: what was forgotten is older than all that is known. */
    const uint64_t forgotten =
        npuprof_min_(NPUPROF_LOAD_(&npu->forgotten_), done - npu->progress_next_);
    NPUPROF_ADD_(&npu->forgotten_, 0u - (uint32_t)forgotten);
    npuprof_npu_count_records_(npu, NPUPROF_RECORDS_OVERWRITTEN, forgotten);
    npu->progress_next_ += forgotten;
    for (; npu->progress_next_ < done; npu->progress_next_++) {
        npuprof_npu_submission_ of;
        (void)npuprof_npu_take_submission_(npu, &any, true, false, &of);
        d->took = true;
        if (!of.known) {                 /* it, and all after, were submitted while recording was off */
            npu->progress_next_ = done;
            return;
        }
        npuprof_npu_draw_progress_(npu, d, &of);
    }
}

/* Whether an anchor is due. */
static bool npuprof_npu_wants_anchor_(npuprof_npu *npu)
{
    if (!npuprof_npu_lock_(npu)) return false;
    const bool due = npuprof_npu_anchor_is_due_(npu, npuprof_npu_ticks_()) ||
                     npuprof_npu_rate_changed_(npu, &npu->last_);
    npuprof_npu_unlock_(npu);
    return due;
}

/* last: there is no next drain to leave anything to. */
static npuprof_result npuprof_npu_drain_(npuprof_npu *npu, bool last)
{
    npuprof_npu_visit_ d;
    uintptr_t nobody = 0;
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    if (!npu->queue_count_ && !npu->desc_.progress.is_there) return NPUPROF_ERR_NPU_NO_RING;
    if (last && !npuprof_npu_lock_queue_(npu)) return NPUPROF_ERR_NPU_BUSY;
    if (!last && !NPUPROF_CAS_(&npu->queue_lock_, &nobody, npuprof_slot_me_())) return NPUPROF_OK;
    memset(&d.pass, 0, sizeof d.pass);
    d.pass.last = last;
    d.ring_result = d.result = NPUPROF_OK;
    d.took = false;
    npuprof_npu_take_late_(npu, false);
    for (unsigned i = 0; i < npu->queue_count_; i++)
        if (npu->queues_[i].base) npuprof_npu_drain_queue_(npu, &npu->queues_[i], &d);
    if (npu->desc_.progress.is_there) npuprof_npu_drain_progress_(npu, &d);
    if (d.took) npuprof_npu_sample_pmu_(npu);
    npuprof_npu_flush_counts_(npu);
    npuprof_npu_unlock_queue_(npu);
    const bool dead = d.ring_result == NPUPROF_ERR_NPU_DEAD || d.result == NPUPROF_ERR_NPU_DEAD;
    if (!dead && npuprof_npu_wants_anchor_(npu)) {
        const npuprof_result synced = npuprof_npu_renew_anchor_(npu);
        /* Why not no anchor: the records may need none, or said so themselves. */
        if (d.result == NPUPROF_OK && synced != NPUPROF_ERR_NPU_NO_ANCHOR) d.result = synced;
    }
    return d.ring_result != NPUPROF_OK ? d.ring_result : d.result;
}

NPUPROF_API_ npuprof_result npuprof_npu_drain(npuprof_npu *npu)
{
    return npuprof_npu_explain_(npu, npuprof_npu_drain_(npu, false));
}

/* The last records of a device that is being closed: what lies in its rings, and begins without ends. */
static void npuprof_npu_finish_records_(npuprof_npu *npu)
{
    npuprof_npu_pair_ *pair;
    (void)npuprof_npu_drain_(npu, true);
    if (!npuprof_npu_lock_queue_(npu)) return;
    for (unsigned i = 0; i < npu->queue_count_; i++) {
        npuprof_npu_queue_ *q = &npu->queues_[i];
        uint64_t producer;
        if (!q->base || !q->rule->is_announced || !q->found) continue;
        if (npuprof_npu_is_in_bar_(q) && !npuprof_npu_is_on_(npu)) continue;
        if (npuprof_npu_read_producer_(npu, q, &producer) == NPUPROF_OK)
            npuprof_npu_count_records_(npu, NPUPROF_RECORDS_OVERWRITTEN, producer - q->next);
    }
    npuprof_npu_take_late_(npu, true);
    npuprof_npu_count_open_jobs_(npu);
    while ((pair = npuprof_npu_oldest_pair_(npu)) != NULL) npuprof_npu_abandon_pair_(npu, pair);
    npuprof_npu_flush_counts_(npu);
    npuprof_npu_unlock_queue_(npu);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "../numbers/wide.h"
#include "types.h"
#include "api.h"
#include "mmio.h"
#include "clock.h"
#include "anchors.h"

NPUPROF_API_ npuprof_result npuprof_npu_host_ns(npuprof_npu *npu, uint64_t ticks, int64_t *ns, uint64_t *error_ns)
{
    uint64_t host = 0, error = 0;
    bool widened, good = false;
    *ns = 0;
    if (error_ns) *error_ns = 0;
    if (!npu->number_) return NPUPROF_ERR_ARGUMENT;
    for (int i = 0; i < 2 && !good; i++) {
        if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
        good = npuprof_map_ticks_(npu->anchors_, npu->anchor_count_, npu->desc_.max_rate_ppm * 1000u, ticks, &host, &error, &widened);
        npuprof_npu_unlock_(npu);
        if (!good && i == 0) (void)npuprof_npu_sync(npu);
    }
    if (!good) return NPUPROF_ERR_NPU_NO_ANCHOR;
    *ns = npuprof_ticks_to_ns_(host);
    if (error_ns) *error_ns = npuprof_saturating_add_(npuprof_mul_div_(error, npuprof_ns_per_4g_ticks_(), (uint64_t)1 << 32, true), 1);
    return NPUPROF_OK;
}

/* Submissions. A job is owned by whoever turned its state to HELD; nobody keeps it for more than a few instructions.
   Returns `state` if the caller owns it now, else the state it is in; HELD: its owner was interrupted. */
static uint32_t npuprof_npu_claim_job_(npuprof_npu_job_ *job, uint32_t state)
{
    for (int i = 0; i < 1000; i++) {
        uint32_t seen = NPUPROF_LOAD_(&job->state);
        if (seen == NPUPROF_NPU_HELD_) continue;
        if (seen != state || NPUPROF_CAS_(&job->state, &seen, (uint32_t)NPUPROF_NPU_HELD_)) return seen;
    }
    return NPUPROF_NPU_HELD_;
}
static bool npuprof_npu_hold_job_(npuprof_npu_job_ *job, uint32_t state) { return npuprof_npu_claim_job_(job, state) == state; }
static void npuprof_npu_release_job_(npuprof_npu_job_ *job, uint32_t state) { NPUPROF_STORE_RELEASE_(&job->state, state); }

/* The entry of a new submission, held; the oldest one is given up if all are taken. NULL: the next ones are being used right now. */
static npuprof_npu_job_ *npuprof_npu_new_job_(npuprof_npu *npu, uint32_t flags, uint64_t stream, const npuprof_link_ *link)
{
    npuprof_npu_job_ *job = NULL;
    uint32_t ticket = 0;
    for (int i = 0; i < 4 && !job; i++) {
        ticket = NPUPROF_ADD_(&npu->tickets_, 1u);
        job = &npu->jobs_[ticket % NPUPROF_NPU_JOBS_];
        if (npuprof_npu_hold_job_(job, NPUPROF_NPU_FREE_) || npuprof_npu_hold_job_(job, NPUPROF_NPU_READY_)) continue;
        NPUPROF_STORE_(&job->skipped, ticket);
        job = NULL;
    }
    if (!job) return NULL;
    NPUPROF_STORE_RELEASE_(&job->ticket, ticket);
    NPUPROF_STORE_(&job->id, 0u);
    NPUPROF_STORE_(&job->flags, flags | link->slot * NPUPROF_NPU_OWNER_);
    job->stream = stream;
    job->link = *link;
    job->name[0] = 0;
    return job;
}

/* Copies a string into a buffer, cut at a UTF-8 boundary. */
static void npuprof_npu_copy_text_(char *to, size_t room, const char *from)
{
    size_t n = 0;
    while (from && n < room - 1 && from[n]) n++;
    if (from && from[n]) while (n && ((unsigned char)from[n] & 0xC0) == 0x80) n--;
    for (size_t i = 0; i < n; i++) to[i] = from[i];
    to[n] = 0;
}

/* The submission of the block that this thread is in, held; NULL: it is in none that is recorded, or cannot be had. */
static npuprof_npu_job_ *npuprof_npu_find_my_job_(npuprof_npu *npu, const npuprof_link_ *here)
{
    const uint32_t end = NPUPROF_LOAD_(&npu->tickets_), mine = here->slot * NPUPROF_NPU_OWNER_ | NPUPROF_NPU_IN_BLOCK_;
    if (!here->ticks) return NULL;
    for (uint32_t i = 1; i <= NPUPROF_NPU_JOBS_; i++) {
        npuprof_npu_job_ *job = &npu->jobs_[(end - i) % NPUPROF_NPU_JOBS_];
        if ((NPUPROF_LOAD_(&job->flags) | NPUPROF_NPU_HAS_ID_) != (mine | NPUPROF_NPU_HAS_ID_)) continue;
        if (NPUPROF_LOAD_(&job->state) != NPUPROF_NPU_FREE_) return npuprof_npu_hold_job_(job, NPUPROF_NPU_READY_) ? job : NULL;
    }
    return NULL;
}

static uint32_t npuprof_npu_id_mask_(const npuprof_npu *npu)
{
    const npuprof_npu_field f = npu->desc_.ring.job;
    const unsigned bits = f.bits ? f.bits : 8u * f.width_bytes - f.lsb;
    return !f.width_bytes || bits >= 32 ? UINT32_MAX : ((uint32_t)1 << bits) - 1;
}

/* Gives a number to the command being submitted. again: the number may have been given before. */
static void npuprof_npu_number_job_(npuprof_npu *npu, uint32_t id, bool again)
{
    if (!npu->number_ || !npu->desc_.ring.count) return;
    const uint32_t mask = npuprof_npu_id_mask_(npu);
    const npuprof_link_ here = npuprof_link_here_();
    NPUPROF_STORE_(&npu->uses_ids_, 1u);
    for (unsigned i = 0; again && i < NPUPROF_NPU_JOBS_; i++) {  /* the record of the earlier one was missed */
        npuprof_npu_job_ *old = &npu->jobs_[i];
        if (!(NPUPROF_LOAD_(&old->flags) & NPUPROF_NPU_HAS_ID_) || ((NPUPROF_LOAD_(&old->id) ^ id) & mask)) continue;
        if (!npuprof_npu_hold_job_(old, NPUPROF_NPU_READY_)) continue;
        const bool in_block = (old->flags & NPUPROF_NPU_IN_BLOCK_) != 0;
        NPUPROF_STORE_(&old->flags, old->flags & ~(uint32_t)NPUPROF_NPU_HAS_ID_);
        npuprof_npu_release_job_(old, in_block ? NPUPROF_NPU_READY_ : NPUPROF_NPU_FREE_);
    }
    npuprof_npu_job_ *job = npuprof_npu_find_my_job_(npu, &here);
    if (!job || job->flags & NPUPROF_NPU_HAS_ID_) {              /* outside a recorded block, or one more command of the same block */
        npuprof_link_ link = here;
        uint64_t stream = 0;
        char name[NPUPROF_NPU_NAME_] = "";
        if (job) {
            link = job->link;
            stream = job->stream;
            memcpy(name, job->name, sizeof name);
            npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
        }
        job = npuprof_npu_new_job_(npu, here.ticks ? 0 : NPUPROF_NPU_MUTED_, stream, &link);
        if (!job) return;
        memcpy(job->name, name, sizeof name);
    }
    NPUPROF_STORE_(&job->id, id);
    NPUPROF_STORE_(&job->flags, job->flags | NPUPROF_NPU_HAS_ID_);
    npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
}

NPUPROF_API_ uint32_t npuprof_npu_job(npuprof_npu *npu)
{
    uint32_t id;
    const uint32_t mask = npuprof_npu_id_mask_(npu);
    do id = NPUPROF_ADD_(&npu->ids_, 1u) + 1u; while (!(id & mask));
    npuprof_npu_number_job_(npu, id, mask < 0xFFFF);
    return id;
}

NPUPROF_API_ void npuprof_npu_set_job(npuprof_npu *npu, uint32_t id) { npuprof_npu_number_job_(npu, id, true); }

/* Whether the submission of that ticket is over.
   Why the ticket, and before the state: who has taken a ticket may not have got to its entry yet, which is free as long. */
static bool npuprof_npu_is_job_over_(const npuprof_npu_job_ *job, uint32_t ticket)
{
    return NPUPROF_LOAD_(&job->skipped) == ticket ||
           (NPUPROF_LOAD_ACQUIRE_(&job->ticket) == ticket && NPUPROF_LOAD_(&job->state) == NPUPROF_NPU_FREE_);
}

/* The submission that a record belongs to, held; NULL: nobody knows. *busy: one that it may be is held by somebody else, who
   does not run. */
static npuprof_npu_job_ *npuprof_npu_find_job_(npuprof_npu *npu, uint32_t id, uint64_t pe, bool *busy)
{
    const uint32_t end = NPUPROF_LOAD_(&npu->tickets_), mask = npuprof_npu_id_mask_(npu);
    const bool by_id = npu->desc_.ring.job.width_bytes && NPUPROF_LOAD_(&npu->uses_ids_);
    npuprof_npu_job_ *oldest = NULL;
    *busy = false;
    if (end - npu->first_ticket_ > NPUPROF_NPU_JOBS_) npu->first_ticket_ = end - NPUPROF_NPU_JOBS_;
    while (npu->first_ticket_ != end && npuprof_npu_is_job_over_(&npu->jobs_[npu->first_ticket_ % NPUPROF_NPU_JOBS_], npu->first_ticket_))
        npu->first_ticket_++;
    for (uint32_t ticket = npu->first_ticket_; ticket != end; ticket++) {
        npuprof_npu_job_ *job = &npu->jobs_[ticket % NPUPROF_NPU_JOBS_];
        const uint32_t flags = NPUPROF_LOAD_(&job->flags);
        if (by_id ? !(flags & NPUPROF_NPU_HAS_ID_) || ((NPUPROF_LOAD_(&job->id) ^ id) & mask) : (flags & NPUPROF_NPU_MUTED_) != 0) continue;
        const uint32_t state = npuprof_npu_claim_job_(job, NPUPROF_NPU_READY_);
        *busy = *busy || state == NPUPROF_NPU_HELD_;
        if (state != NPUPROF_NPU_READY_) continue;
        const bool found = by_id ? (job->flags & NPUPROF_NPU_HAS_ID_) && ((job->id ^ id) & mask) == 0
                                 : !npu->desc_.ring.pe.width_bytes || job->stream == pe;
        if (found) {
            if (oldest) npuprof_npu_release_job_(oldest, NPUPROF_NPU_READY_);
            return job;
        }
        if (!by_id && !oldest) oldest = job;
        else npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
    }
    return oldest;
}

/* A completion record, as copied from the ring. */
typedef struct npuprof_npu_record_ {
    uint64_t sequence, sequence_after, job, start, end, pe, op, status, execution, instruction;
} npuprof_npu_record_;

static void npuprof_npu_copy_record_(npuprof_npu *npu, uint64_t number, npuprof_npu_record_ *r)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    const volatile unsigned char *base = ring->memory ? (const volatile unsigned char *)ring->memory : npu->bar_ + ring->offset;
    const volatile unsigned char *entry = base + (size_t)(number % ring->count) * ring->entry_bytes;
    r->sequence = npuprof_npu_load_field_(npu, entry, ring->sequence);
    r->job = npuprof_npu_load_field_(npu, entry, ring->job);
    r->start = npuprof_npu_load_field_(npu, entry, ring->start);
    r->end = npuprof_npu_load_field_(npu, entry, ring->end);
    r->pe = npuprof_npu_load_field_(npu, entry, ring->pe);
    r->op = npuprof_npu_load_field_(npu, entry, ring->op);
    r->status = npuprof_npu_load_field_(npu, entry, ring->status);
    r->execution = npuprof_npu_load_field_(npu, entry, ring->execution);
    r->instruction = npuprof_npu_load_field_(npu, entry, ring->instruction);
    r->sequence_after = npuprof_npu_load_field_(npu, entry, ring->sequence);
}

/* A stamp of a record as extended ticks: the last value at or before now, or a little after. */
static uint64_t npuprof_npu_extend_stamp_(const npuprof_npu *npu, npuprof_npu_field field, uint64_t raw, uint64_t now)
{
    unsigned bits = field.bits ? field.bits : 8u * field.width_bytes - field.lsb;
    if (bits > npu->desc_.counter.bits) bits = npu->desc_.counter.bits;
    const uint64_t mask = npuprof_npu_mask_(bits);
    if (npu->desc_.counter.counts_down) raw = ~raw;
    if (bits >= 64) return raw;
    const uint64_t ahead = (raw - now) & mask, back = (now - raw) & mask;
    return ahead <= mask / 64 || back > now ? now + ahead : now - back;
}

/* The device's time as a drain found it. */
typedef struct npuprof_npu_now_ { uint64_t ticks, old_epoch_ticks, slack; uint32_t epoch; } npuprof_npu_now_;

/* Draws the device span of a record. NPUPROF_ERR_NPU_RING: its stamps are impossible; _NPU_BUSY, only with can_wait: nobody can
   tell now whose it is, and nothing was done. */
static npuprof_result npuprof_npu_draw_record_(npuprof_npu *npu, const npuprof_npu_record_ *r, const npuprof_npu_now_ *now, bool can_wait)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    const bool whole = !ring->execution_op || r->op + 1 == ring->execution_op;
    uint64_t end = npuprof_npu_extend_stamp_(npu, ring->end, r->end, now->ticks), start = end;
    uint32_t epoch = now->epoch;
    if (ring->start.width_bytes) start = npuprof_npu_extend_stamp_(npu, ring->start, r->start, now->ticks);
    if (!ring->end.width_bytes) end = start;
    bool good = start <= end;
    if (now->slack && end > npuprof_saturating_add_(now->ticks, now->slack)) {      /* after now: of the time before a reset, or nonsense */
        good = good && epoch && end <= npuprof_saturating_add_(now->old_epoch_ticks, now->slack);
        epoch--;
    }

    npuprof_link_ link;
    char name[NPUPROF_NPU_NAME_] = "job";
    uint64_t stream = 0;
    bool known = false, muted = false, busy;
    npuprof_npu_job_ *job = npuprof_npu_find_job_(npu, (uint32_t)r->job, r->pe, &busy);
    if (busy && can_wait) {
        if (job) npuprof_npu_release_job_(job, NPUPROF_NPU_READY_);
        return NPUPROF_ERR_NPU_BUSY;
    }
    memset(&link, 0, sizeof link);
    if (job) {
        const uint32_t flags = job->flags;
        muted = (flags & NPUPROF_NPU_MUTED_) != 0;
        known = !muted;
        link = job->link;
        stream = job->stream;
        if (job->name[0]) memcpy(name, job->name, sizeof name);
        /* Over; if its block is still open, that frees the entry. */
        if (whole) NPUPROF_STORE_(&job->flags, flags & ~(uint32_t)(NPUPROF_NPU_HAS_ID_ | NPUPROF_NPU_IN_BLOCK_));
        npuprof_npu_release_job_(job, whole && !(flags & NPUPROF_NPU_IN_BLOCK_) ? NPUPROF_NPU_FREE_ : NPUPROF_NPU_READY_);
    }
    if (muted || (!known && !NPUPROF_OPEN_(1))) return NPUPROF_OK;
    if (!good) return NPUPROF_ERR_NPU_RING;
    if (ring->op.width_bytes) {
        if (r->op < ring->op_count && ring->op_names && ring->op_names[r->op]) {
            npuprof_npu_copy_text_(name, sizeof name, ring->op_names[r->op]);
        } else {
            char digits[24];
            size_t n = sizeof digits - 1;
            uint64_t v = r->op;
            digits[n] = 0;
            do digits[--n] = (char)('0' + v % 10); while ((v /= 10) != 0);
            npuprof_npu_copy_text_(name, sizeof name, "op ");
            npuprof_npu_copy_text_(name + 3, sizeof name - 3, digits + n);
        }
    }
    npuprof_arg list[5];
    size_t count = 0;
    if (known) list[count++] = npuprof_int_("stream", (int64_t)stream);
    if (ring->job.width_bytes) list[count++] = npuprof_uint_("job", r->job);
    if (ring->execution.width_bytes) list[count++] = npuprof_uint_("execution_index", r->execution);
    if (ring->instruction.width_bytes && !(ring->execution_op && whole)) list[count++] = npuprof_uint_("instruction_index", r->instruction);
    if (r->status) list[count++] = npuprof_uint_("status", r->status);
    npuprof_device_span_(npu->number_, epoch, (unsigned)r->pe, ring->category ? ring->category : "NPU", name, start, end,
                         NPUPROF_STAMP_DEVICE, whole && known ? &link : NULL, npuprof_args_(list, count));
    return NPUPROF_OK;
}

static void npuprof_npu_count_lost_(npuprof_npu *npu, uint64_t count)
{
    if (!count) return;
    npuprof_npu_note_(npu, NPUPROF_NOTE_RING_LOST, count);
    npuprof_count_lost_(NPUPROF_LOST_RING, count);
}

/* Bits in which the sequence field and the number of an entry must agree. */
static uint64_t npuprof_npu_sequence_mask_(const npuprof_npu *npu)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    unsigned bits = ring->sequence.bits ? ring->sequence.bits : 8u * ring->sequence.width_bytes - ring->sequence.lsb;
    if (!ring->producer_is_slot && bits > ring->producer_bits) bits = ring->producer_bits;
    return npuprof_npu_mask_(bits);
}

/* Reads the producer index: the number of the next entry that the device will write. Moves ring_next_ if that cannot be. */
static npuprof_result npuprof_npu_read_producer_(npuprof_npu *npu, uint64_t *producer)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    const uint64_t mask = npuprof_npu_mask_(ring->producer_bits);
    const uint64_t word = npuprof_npu_load_register_(npu, ring->producer_offset, 4, ring->big_endian), index = word & mask;
    *producer = npu->ring_next_;
    if (word == 0xFFFFFFFFu) {
        npuprof_anchor_ sample;
        if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
        const npuprof_result result = npuprof_npu_read_locked_(npu, &sample);
        npuprof_npu_unlock_(npu);
        if (result == NPUPROF_ERR_NPU_DEAD) return result;
    }
    if (ring->producer_is_slot) {
        if (index >= ring->count) return NPUPROF_ERR_NPU_RING;
        if (!npu->ring_numbered_) {              /* the newest entry tells the count, if there is one */
            npuprof_npu_record_ newest;
            npu->ring_numbered_ = true;
            npu->ring_next_ = index;
            if (ring->sequence.width_bytes) {
                npuprof_npu_copy_record_(npu, index + ring->count - 1, &newest);
                if ((newest.sequence + 1) % ring->count == index) npu->ring_next_ = newest.sequence + 1;
            }
        }
        *producer = npu->ring_next_ + (index + ring->count - npu->ring_next_ % ring->count) % ring->count;
    } else {
        if (!npu->ring_numbered_) {
            npu->ring_numbered_ = true;
            npu->ring_next_ = index;
        }
        const uint64_t ahead = (index - npu->ring_next_) & mask;
        if (ahead > mask / 2) {                  /* went back: the device counts from 0 again */
            npu->ring_next_ = index > ring->count ? index - ring->count : 0;
            *producer = index;
            return NPUPROF_ERR_NPU_RING;
        }
        *producer = npu->ring_next_ + ahead;
    }
    return NPUPROF_OK;
}

/* Whether a drain may leave a record to the next one. */
static bool npuprof_npu_can_wait_(npuprof_npu *npu, uint64_t records)
{
    const uint64_t now = npuprof_ticks_();
    if (!npu->busy_since_) npu->busy_since_ = npuprof_max_(now, 1);
    return records <= npu->desc_.ring.count / 2 && npuprof_saturating_sub_(now, npu->busy_since_) <= npu->second_;
}

/* last: there is no next drain to leave anything to. */
static npuprof_result npuprof_npu_drain_(npuprof_npu *npu, bool last)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    npuprof_npu_record_ batch[NPUPROF_NPU_BATCH_];
    uint64_t producer = 0;
    uint32_t expected = 0;
    npuprof_result result = NPUPROF_OK;
    if (!npu->number_) return NPUPROF_ERR_ARGUMENT;
    if (!ring->count) return NPUPROF_ERR_NPU_NO_RING;
    if (!NPUPROF_CAS_(&npu->draining_, &expected, 1u)) return NPUPROF_OK;
    npuprof_result ring_result = npuprof_npu_read_producer_(npu, &producer);
    const uint64_t begun = npu->ring_next_;
    bool go_on = ring_result == NPUPROF_OK || (ring_result == NPUPROF_ERR_NPU_RING && producer > npu->ring_next_), due = false;
    npuprof_npu_now_ now = { 0, 0, 0, 0 };
    if (npuprof_npu_lock_(npu)) {
        npuprof_anchor_ sample;
        uint64_t least;
        if (go_on && producer != npu->ring_next_) result = npuprof_npu_read_locked_(npu, &sample);
        now.ticks = npu->last_.device_ticks;
        now.old_epoch_ticks = npu->old_epoch_ticks_;
        now.epoch = npu->epoch_;
        (void)npuprof_npu_predict_(npu, 0, npu->second_, &least, &now.slack);
        due = ring_result != NPUPROF_ERR_NPU_DEAD && (npuprof_npu_anchor_is_due_(npu, npuprof_ticks_()) || npuprof_npu_rate_changed_(npu, &npu->last_));
        npuprof_npu_unlock_(npu);
    } else {
        result = NPUPROF_ERR_NPU_BUSY;
    }
    if (result == NPUPROF_ERR_NPU_DEAD || result == NPUPROF_ERR_NPU_TORN || result == NPUPROF_ERR_NPU_BUSY) go_on = false;
    while (go_on && npu->ring_next_ != producer) {
        uint64_t first = npu->ring_next_, newest = 0;
        if (producer - first > ring->count) {
            npuprof_npu_count_lost_(npu, producer - ring->count - first);
            first = npu->ring_next_ = producer - ring->count;
        }
        const uint64_t count = npuprof_min_(producer - first, NPUPROF_NPU_BATCH_), mask = npuprof_npu_sequence_mask_(npu);
        for (uint64_t i = 0; i < count; i++) npuprof_npu_copy_record_(npu, first + i, &batch[i]);
        const npuprof_result again = npuprof_npu_read_producer_(npu, &newest);
        if (again != NPUPROF_OK) {
            if (ring_result == NPUPROF_OK) ring_result = again;
            break;
        }
        for (uint64_t i = 0; i < count && go_on; i++) {
            const uint64_t number = first + i, behind = newest - number;
            bool good = ring->sequence.width_bytes ? behind <= ring->count : behind < ring->count;
            if (good && ring->sequence.width_bytes) {
                const uint64_t ahead = (batch[i].sequence - number) & mask;
                good = ahead == 0 && batch[i].sequence_after == batch[i].sequence;
                /* Why: an index may be seen before the entry it announces. The entry is then the one of a lap before. */
                const bool later = ahead <= mask / 2 && ahead % ring->count == 0 && ahead;
                if (!good && !later && behind < ring->count) {
                    go_on = false;
                    break;
                }
                if (later && ring->producer_is_slot) {           /* whole laps that the index does not show */
                    npuprof_npu_count_lost_(npu, ahead);
                    npu->ring_next_ = number + ahead;
                    producer += ahead;
                    break;
                }
            }
            npuprof_result drawn = NPUPROF_ERR_NPU_RING;
            if (good) drawn = npuprof_npu_draw_record_(npu, &batch[i], &now, !last);
            if (drawn == NPUPROF_ERR_NPU_BUSY && npuprof_npu_can_wait_(npu, behind)) {
                go_on = false;
                break;
            }
            if (drawn == NPUPROF_ERR_NPU_BUSY) drawn = npuprof_npu_draw_record_(npu, &batch[i], &now, false);
            else npu->busy_since_ = 0;
            npu->ring_next_ = number + 1;
            if (drawn != NPUPROF_OK) npuprof_npu_count_lost_(npu, 1);
        }
    }
    if (npu->ring_next_ != begun && npu->desc_.pmu_count && NPUPROF_OPEN_(1) && npuprof_npu_lock_(npu)) {
        uint64_t pmu[NPUPROF_NPU_PMU_];
        const uint32_t good = npuprof_npu_load_pmu_(npu, pmu);
        npuprof_npu_add_pmu_(npu, good, pmu);
        npuprof_npu_unlock_(npu);
        npuprof_npu_draw_pmu_(npu, good, pmu);
    }
    NPUPROF_STORE_RELEASE_(&npu->draining_, 0u);
    if (due && result != NPUPROF_ERR_NPU_DEAD) {
        const npuprof_result synced = npuprof_npu_renew_anchor_(npu);
        if (result == NPUPROF_OK) result = synced;
    }
    return ring_result != NPUPROF_OK ? ring_result : result;
}

NPUPROF_API_ npuprof_result npuprof_npu_drain(npuprof_npu *npu) { return npuprof_npu_explain_result_(npu, npuprof_npu_drain_(npu, false)); }

static npuprof_result npuprof_npu_bench_read_(void *user, uint64_t *ticks) { return npuprof_npu_read((npuprof_npu *)user, ticks); }
/* Why both by the same anchors, after the second stamp: one that came in between would show as time. */
static npuprof_result npuprof_npu_bench_ns_(void *user, uint64_t from, uint64_t to, double *ns)
{
    int64_t start_ns, end_ns;
    npuprof_result r = npuprof_npu_host_ns((npuprof_npu *)user, from, &start_ns, NULL);
    if (r == NPUPROF_OK) r = npuprof_npu_host_ns((npuprof_npu *)user, to, &end_ns, NULL);
    if (r == NPUPROF_OK) *ns = (double)(end_ns - start_ns);
    return r;
}
NPUPROF_API_ npuprof_bench_clock npuprof_npu_clock(npuprof_npu *npu)
{
    npuprof_bench_clock clock;
    clock.read = npuprof_npu_bench_read_;
    clock.ns = npuprof_npu_bench_ns_;
    clock.user = npu;
    return clock;
}

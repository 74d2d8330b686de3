#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../../record/args.h"
#include "../../record/device.h"
#include "../types.h"
#include "../api.h"
#include "../mmio.h"
#include "../clock.h"
#include "../anchors.h"
#include "pmu.h"
#include "jobs.h"
#include "draw.h"
#include "ring.h"

/* Turns completion records into device spans. One drain works at a time, the one that holds the queue lock;
   it owns ring_next_, first_ticket_ and busy_since_ (npuprof_npu in types.h) until it gives it back.

   A drain reads the producer index, then the counter. Then it copies the records in batches and reads the
   index again after each batch: what the device may have overwritten during the copy is counted as lost. */

enum { NPUPROF_NPU_BATCH_ = 32 };        /* entries copied before the index is read again */

/* A drain under way. */
typedef struct npuprof_npu_pass_ {
    uint64_t producer;                   /* number of the entry where it ends */
    uint64_t now;                        /* device ticks, read after `producer` */
    uint64_t old_epoch_ticks;
    uint64_t max_ahead;                  /* stamps may lie this far after `now`; 0 = unknown */
    uint32_t epoch;
    bool last;                           /* no other drain follows: leave nothing for it */
    npuprof_result ring_result, result;  /* of the ring; of the counter */
} npuprof_npu_pass_;

/* The times of a record, extended. */
typedef struct npuprof_npu_times_ {
    uint64_t start, end;
    uint32_t epoch;
    bool good;                           /* they are possible */
} npuprof_npu_times_;

/* A stamp of a record as extended ticks: the last value at or before now, or a little after. */
static uint64_t npuprof_npu_extend_stamp_(const npuprof_npu *npu, npuprof_npu_field field, uint64_t raw,
                                          uint64_t now)
{
    unsigned bits = npuprof_npu_field_bits_(field);
    if (bits > npu->desc_.counter.bits) bits = npu->desc_.counter.bits;
    const uint64_t mask = npuprof_npu_mask_(bits);
    if (npu->desc_.counter.counts_down) raw = ~raw;
    if (bits >= 64) return raw;
    const uint64_t ahead = (raw - now) & mask, back = (now - raw) & mask;
    return ahead <= mask / 64 || back > now ? now + ahead : now - back;
}

static npuprof_npu_times_ npuprof_npu_extend_record_(const npuprof_npu *npu, const npuprof_npu_record_ *r,
                                                     const npuprof_npu_pass_ *pass)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    npuprof_npu_times_ t;
    t.end = npuprof_npu_extend_stamp_(npu, ring->end, r->end, pass->now);
    t.start = t.end;
    if (ring->start.width_bytes) t.start = npuprof_npu_extend_stamp_(npu, ring->start, r->start, pass->now);
    if (!ring->end.width_bytes) t.end = t.start;
    t.epoch = pass->epoch;
    t.good = t.start <= t.end;
    /* After now: a time of the epoch before, or nonsense. */
    if (pass->max_ahead && t.end > npuprof_saturating_add_(pass->now, pass->max_ahead)) {
        t.good = t.good && t.epoch &&
                 t.end <= npuprof_saturating_add_(pass->old_epoch_ticks, pass->max_ahead);
        t.epoch--;
    }
    return t;
}

/* The name of an op code in desc.ring.ops; NULL: it has none. */
static const char *npuprof_npu_find_op_(const npuprof_npu_ring *ring, uint64_t op)
{
    unsigned first = 0, end = ring->op_count;
    while (first < end) {
        const unsigned middle = first + (end - first) / 2;
        if (ring->ops[middle].code == op) return ring->ops[middle].name;
        if (ring->ops[middle].code < op) first = middle + 1;
        else end = middle;
    }
    return NULL;
}

/* The name of an op code, or "op 17". */
static void npuprof_npu_name_op_(const npuprof_npu_ring *ring, uint64_t op, char *name, size_t capacity)
{
    const char *known = npuprof_npu_find_op_(ring, op);
    if (known) {
        npuprof_npu_copy_text_(name, capacity, known);
        return;
    }
    char digits[24];
    size_t n = sizeof digits - 1;
    digits[n] = 0;
    do digits[--n] = (char)('0' + op % 10); while ((op /= 10) != 0);
    npuprof_npu_copy_text_(name, capacity, "op ");
    npuprof_npu_copy_text_(name + 3, capacity - 3, digits + n);
}

/* Draws the device span of a record. NPUPROF_ERR_NPU_RING: its stamps are impossible; _NPU_BUSY, only with
   can_wait: nobody can tell now whose it is, and nothing was done. */
static npuprof_result npuprof_npu_draw_record_(npuprof_npu *npu, const npuprof_npu_record_ *r,
                                               const npuprof_npu_pass_ *pass, bool can_wait)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    const bool whole = !ring->execution_op || r->op + 1 == ring->execution_op;
    const npuprof_npu_times_ t = npuprof_npu_extend_record_(npu, r, pass);
    const npuprof_npu_sought_ sought = { ring->job.width_bytes != 0, !ring->pe.width_bytes, r->job,
                                         npu->id_mask_, r->pe };
    char name[NPUPROF_NPU_NAME_];
    npuprof_npu_submission_ of;
    npuprof_npu_drawing_ d;
    if (npuprof_npu_take_submission_(npu, &sought, whole, can_wait, &of) != NPUPROF_OK)
        return NPUPROF_ERR_NPU_BUSY;
    if (!npuprof_npu_draws_(&of)) return NPUPROF_OK;
    if (!t.good) return NPUPROF_ERR_NPU_RING;
    d.start = t.start;
    d.end = t.end;
    d.epoch = t.epoch;
    d.flags = NPUPROF_STAMP_DEVICE;
    d.lane = (unsigned)r->pe;
    d.category = ring->category;
    d.takes_arrow = whole;
    d.name = NULL;
    if (ring->op.width_bytes) {
        npuprof_npu_name_op_(ring, r->op, name, sizeof name);
        d.name = name;
    }
    size_t n = NPUPROF_NPU_OWN_ARGS_;
    if (ring->job.width_bytes) d.args[n++] = npuprof_uint_("job", r->job);
    if (ring->execution.width_bytes) d.args[n++] = npuprof_uint_("execution_index", r->execution);
    if (ring->instruction.width_bytes && !(ring->execution_op && whole))
        d.args[n++] = npuprof_uint_("instruction_index", r->instruction);
    if (r->status) d.args[n++] = npuprof_uint_("status", r->status);
    d.arg_count = n - NPUPROF_NPU_OWN_ARGS_;
    npuprof_npu_draw_(npu, &d, &of);
    return NPUPROF_OK;
}

/* What a copied entry is. */
enum {
    NPUPROF_NPU_ENTRY_GOOD_, NPUPROF_NPU_ENTRY_LOST_, NPUPROF_NPU_ENTRY_LATER_, NPUPROF_NPU_ENTRY_LAPPED_
};

/* The entry of that number. newest: the producer index after the copy. LATER: the entry is not written yet,
   although the index announces it. LAPPED: the device went round by *laps entries more than the index shows.
   */
static int npuprof_npu_judge_entry_(const npuprof_npu *npu, const npuprof_npu_record_ *r, uint64_t number,
                                    uint64_t newest, uint64_t *laps)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    const uint64_t behind = newest - number;
    if (!ring->sequence.width_bytes)
        return behind < ring->count ? NPUPROF_NPU_ENTRY_GOOD_ : NPUPROF_NPU_ENTRY_LOST_;
    if (behind > ring->count) return NPUPROF_NPU_ENTRY_LOST_;
    const uint64_t mask = npuprof_npu_sequence_mask_(npu), ahead = (r->sequence - number) & mask;
    if (ahead == 0 && r->sequence_after == r->sequence) return NPUPROF_NPU_ENTRY_GOOD_;
    const bool overwritten = ahead && ahead <= mask / 2 && ahead % ring->count == 0;
    if (!overwritten && behind < ring->count) return NPUPROF_NPU_ENTRY_LATER_;
    if (!overwritten || ring->producer.unit != NPUPROF_NPU_INDEX_SLOT) return NPUPROF_NPU_ENTRY_LOST_;
    *laps = ahead;
    return NPUPROF_NPU_ENTRY_LAPPED_;
}

/* Whether a drain may leave a record, which is `records` behind the newest, to the next one. */
static bool npuprof_npu_can_wait_(npuprof_npu *npu, uint64_t records)
{
    const uint64_t now = npuprof_npu_ticks_();
    if (!npu->busy_since_) npu->busy_since_ = npuprof_max_(now, 1);
    return records <= npu->desc_.ring.count / 2 &&
           npuprof_saturating_sub_(now, npu->busy_since_) <= npu->second_;
}

/* Draws one batch. True: go on with the next. */
static bool npuprof_npu_drain_batch_(npuprof_npu *npu, npuprof_npu_pass_ *pass)
{
    npuprof_npu_record_ batch[NPUPROF_NPU_BATCH_];
    const uint64_t entries = npu->desc_.ring.count;
    uint64_t first = npu->ring_next_, newest = 0, laps = 0;
    if (pass->producer - first > entries) {
        npuprof_npu_count_records_(npu, NPUPROF_RECORDS_OVERWRITTEN, pass->producer - entries - first);
        first = npu->ring_next_ = pass->producer - entries;
    }
    const uint64_t count = npuprof_min_(pass->producer - first, NPUPROF_NPU_BATCH_);
    for (uint64_t i = 0; i < count; i++) npuprof_npu_copy_record_(npu, first + i, &batch[i]);
    const npuprof_result again = npuprof_npu_read_producer_(npu, &newest);
    if (again != NPUPROF_OK) {
        if (pass->ring_result == NPUPROF_OK) pass->ring_result = again;
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t number = first + i;
        const int entry = npuprof_npu_judge_entry_(npu, &batch[i], number, newest, &laps);
        if (entry == NPUPROF_NPU_ENTRY_LATER_) return false;
        if (entry == NPUPROF_NPU_ENTRY_LAPPED_) {
            npuprof_npu_count_records_(npu, NPUPROF_RECORDS_OVERWRITTEN, laps);
            npu->ring_next_ = number + laps;
            pass->producer += laps;
            return true;
        }
        npuprof_result drawn = NPUPROF_ERR_NPU_RING;
        if (entry == NPUPROF_NPU_ENTRY_GOOD_)
            drawn = npuprof_npu_draw_record_(npu, &batch[i], pass, !pass->last);
        if (drawn != NPUPROF_ERR_NPU_BUSY) npu->busy_since_ = 0;
        else if (npuprof_npu_can_wait_(npu, newest - number)) return false;
        else drawn = npuprof_npu_draw_record_(npu, &batch[i], pass, false);
        npu->ring_next_ = number + 1;
        const bool good = entry == NPUPROF_NPU_ENTRY_GOOD_;
        if (drawn != NPUPROF_OK)
            npuprof_npu_count_records_(npu, good ? NPUPROF_RECORDS_STAMPS : NPUPROF_RECORDS_OVERWRITTEN, 1);
    }
    return true;
}

/* Reads the producer index and then the counter. *due: an anchor is due. False: no record can be drawn. */
static bool npuprof_npu_begin_pass_(npuprof_npu *npu, npuprof_npu_pass_ *pass, bool *due)
{
    npuprof_anchor_ sample;
    uint64_t min;
    *due = false;
    pass->result = NPUPROF_OK;
    pass->ring_result = npuprof_npu_read_producer_(npu, &pass->producer);
    const bool readable = pass->ring_result == NPUPROF_OK ||
                          (pass->ring_result == NPUPROF_ERR_NPU_RING && pass->producer > npu->ring_next_);
    if (!npuprof_npu_lock_(npu)) {
        pass->result = NPUPROF_ERR_NPU_BUSY;
        return false;
    }
    if (readable && pass->producer != npu->ring_next_) pass->result = npuprof_npu_read_locked_(npu, &sample);
    pass->now = npu->last_.device_ticks;
    pass->old_epoch_ticks = npu->old_epoch_ticks_;
    pass->epoch = npu->epoch_;
    pass->max_ahead = 0;
    (void)npuprof_npu_predict_(npu, 0, npu->second_, &min, &pass->max_ahead);
    *due = pass->ring_result != NPUPROF_ERR_NPU_DEAD &&
           (npuprof_npu_anchor_is_due_(npu, npuprof_npu_ticks_()) ||
            npuprof_npu_rate_changed_(npu, &npu->last_));
    npuprof_npu_unlock_(npu);
    return readable && pass->result != NPUPROF_ERR_NPU_DEAD && pass->result != NPUPROF_ERR_NPU_TORN;
}

/* Samples the event counters for a drain that found records. */
static void npuprof_npu_drain_pmu_(npuprof_npu *npu)
{
    uint64_t pmu[NPUPROF_NPU_PMU_];
    if (!npu->desc_.pmu_count || !NPUPROF_OPEN_(1) || !npuprof_npu_lock_(npu)) return;
    const uint32_t good = npuprof_npu_load_pmu_(npu, pmu);
    npuprof_npu_add_pmu_(npu, good, pmu, NPUPROF_NPU_JOBS_RAN_);
    npuprof_npu_unlock_(npu);
    npuprof_npu_draw_pmu_(npu, good, pmu);
}

/* last: there is no next drain to leave anything to. */
static npuprof_result npuprof_npu_drain_(npuprof_npu *npu, bool last)
{
    npuprof_npu_pass_ pass;
    uintptr_t nobody = 0;
    bool due;
    if (!npu->number_) return NPUPROF_ERR_NPU_NOT_OPEN;
    if (!npu->desc_.ring.count) return NPUPROF_ERR_NPU_NO_RING;
    if (last && !npuprof_npu_lock_queue_(npu)) return NPUPROF_ERR_NPU_BUSY;
    if (!last && !NPUPROF_CAS_(&npu->queue_lock_, &nobody, npuprof_slot_me_())) return NPUPROF_OK;
    pass.last = last;
    bool go_on = npuprof_npu_begin_pass_(npu, &pass, &due);
    const uint64_t begun = npu->ring_next_;
    while (go_on && npu->ring_next_ != pass.producer) go_on = npuprof_npu_drain_batch_(npu, &pass);
    if (npu->ring_next_ != begun) npuprof_npu_drain_pmu_(npu);
    npuprof_npu_flush_counts_(npu);
    npuprof_npu_unlock_queue_(npu);
    if (due && pass.result != NPUPROF_ERR_NPU_DEAD) {
        const npuprof_result synced = npuprof_npu_renew_anchor_(npu);
        if (pass.result == NPUPROF_OK) pass.result = synced;
    }
    return pass.ring_result != NPUPROF_OK ? pass.ring_result : pass.result;
}

NPUPROF_API_ npuprof_result npuprof_npu_drain(npuprof_npu *npu)
{
    return npuprof_npu_explain_(npu, npuprof_npu_drain_(npu, false));
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../types.h"
#include "../mmio.h"
#include "format.h"
#include "rule.h"
#include "laps.h"
#include "ready.h"

/* READY_VALID: an entry's field `valid` equals valid_value, and somebody else clears it. Where nobody does,
   all stay valid, and only what they hold tells. Owns stuck, run, blank_at, searched_at and seen_at of an
   npuprof_npu_queue_, and seen_ of an npuprof_npu. */

static const char *npuprof_npu_check_valid_(const npuprof_npu_queue_ *q)
{
    return npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_VALID_) > 32 ? "has more than 32 bits" : NULL;
}

static int npuprof_npu_valid_is_there_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number,
                                       uint64_t *word, uint64_t *gap)
{
    (void)gap;
    *word = npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, number), NPUPROF_NPU_AT_VALID_);
    return *word == q->is.valid_value ? NPUPROF_NPU_ENTRY_GOOD_ : NPUPROF_NPU_ENTRY_LATER_;
}

/* Entries that the numbers of a device's entries say are missing before this one. False: it has an old
   number, so it was read before. A device that numbers nothing shows 0 always. */
static bool npuprof_npu_follows_(npuprof_npu_queue_ *q, const npuprof_npu_record_ *r, uint64_t *missing)
{
    *missing = 0;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) return true;
    const uint64_t now = r->v[NPUPROF_NPU_AT_SEQUENCE_], mask = npuprof_npu_sequence_mask_(q);
    const uint64_t ahead = (now - q->last_sequence - 1) & mask;
    const bool numbered = q->has_sequence && (now || q->last_sequence);
    if (numbered && ahead > mask / 2) return false;
    if (numbered) *missing = ahead;
    q->last_sequence = now;
    q->has_sequence = true;
    return true;
}

/* Whether no entry of the ring is cleared. */
static bool npuprof_npu_are_all_valid_(npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    for (uint64_t i = 0; i < q->is.count; i++)
        if (!npuprof_npu_is_there_(npu, q, q->next + i)) return false;
    return true;
}

/* May the entry be one of the lap before, which was read? Not if it was seen cleared since. */
static bool npuprof_npu_may_be_old_(const npuprof_npu_queue_ *q, uint64_t number)
{
    return number >= q->is.count && q->blank_at != number + 1;
}

/* Is the entry that was copied one entry, not the old one and the new one mixed? Why again: it was valid
   before and after the copy, but it may have been cleared and written in between. What changed meanwhile is
   another one in a second copy. */
static bool npuprof_npu_is_one_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number, uint32_t hash)
{
    npuprof_npu_record_ again;
    uint64_t gap;
    if (!npuprof_npu_may_be_old_(q, number)) return true;
    memset(&again, 0, sizeof again);
    return npuprof_npu_copy_one_(npu, q, number, &again, &gap) == NPUPROF_NPU_ENTRY_GOOD_ &&
           npuprof_npu_hash_record_(q, &again) == hash;
}

/* An entry that is valid: is it a new one? If nobody clears them, all stay valid, and only what they hold
   tells. */
static int npuprof_npu_judge_valid_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading,
                                    unsigned i, int fate)
{
    const npuprof_npu_record_ *const r = &reading->batch[i];
    const uint64_t number = q->next + i;
    /* Cleared while it was copied: of the lap before, it is not lost. */
    if (fate == NPUPROF_NPU_ENTRY_LOST_ && npuprof_npu_may_be_old_(q, number))
        fate = NPUPROF_NPU_ENTRY_LATER_;
    if (fate == NPUPROF_NPU_ENTRY_LATER_) {
        q->run = q->stuck = false;
        q->blank_at = number + 1;
    }
    if (fate != NPUPROF_NPU_ENTRY_GOOD_) return fate;
    uint32_t *const seen = q->seen_at < NPUPROF_NPU_SEEN_ ? &npu->seen_[q->seen_at + number % q->is.count]
                                                          : NULL;
    const uint32_t hash = npuprof_npu_hash_record_(q, r);
    const bool again = seen && *seen == hash && number >= q->is.count;
    if (!q->stuck && (q->run >= q->is.count || (again && npuprof_npu_are_all_valid_(npu, q)))) {
        q->stuck = true;
        reading->result = NPUPROF_ERR_NPU_RING;
    }
    if (q->stuck && (!seen || *seen == hash)) return NPUPROF_NPU_ENTRY_LATER_;
    if (!npuprof_npu_is_one_(npu, q, number, hash)) return NPUPROF_NPU_ENTRY_LATER_;
    if (!npuprof_npu_follows_(q, r, &reading->gap[i])) return NPUPROF_NPU_ENTRY_LATER_;
    if (seen) *seen = hash;
    q->run++;
    return NPUPROF_NPU_ENTRY_GOOD_;
}

/* Finds out where the device writes: the first valid entry behind one that is not. False: none is valid. */
static bool npuprof_npu_search_valid_(npuprof_npu *npu, npuprof_npu_queue_ *q, bool behind)
{
    const uint64_t count = q->is.count;
    bool last = npuprof_npu_is_there_(npu, q, count - 1);
    for (uint64_t i = 0; i < count; i++) {
        const bool now = npuprof_npu_is_there_(npu, q, i);
        if (behind ? last && !now : !last && now) {
            q->next = i;
            return true;
        }
        last = now;
    }
    return false;
}

static npuprof_result npuprof_npu_find_valid_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    q->numbered = npuprof_npu_search_valid_(npu, q, true);
    return NPUPROF_OK;
}

/* If the next entry was cleared before it was read, valid ones lie further on, and none right before it: goes
   on there, and what it passes is lost. Entries are cleared in order. At most 100 times a second, since it
   looks at the whole ring. */
static void npuprof_npu_pass_cleared_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    const uint64_t count = q->is.count, now = npuprof_npu_ticks_();
    uint64_t ahead = 1;
    if (npuprof_npu_is_there_(npu, q, q->next) || npuprof_npu_is_there_(npu, q, q->next + count - 1)) return;
    if (q->searched_at && npuprof_saturating_sub_(now, q->searched_at) < npu->second_ / 100) return;
    q->searched_at = now;
    while (ahead < count && !npuprof_npu_is_there_(npu, q, q->next + ahead)) ahead++;
    /* Why again: the device may have written it meanwhile. */
    if (ahead == count || npuprof_npu_is_there_(npu, q, q->next)) return;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) npuprof_npu_count_gap_(npu, q, ahead);
    q->next += ahead;
}

static bool npuprof_npu_begin_valid_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading)
{
    if (q->numbered) npuprof_npu_pass_cleared_(npu, q);
    else q->numbered = npuprof_npu_search_valid_(npu, q, false);
    return npuprof_npu_begin_asked_(npu, q, reading);
}

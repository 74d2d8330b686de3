#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/hash.h"
#include "../types.h"
#include "../mmio.h"
#include "format.h"
#include "index.h"
#include "laps.h"
#include "draw.h"

/* Transport of a polled ring: who says that entry number n is there, and whether the copy that was made of it
   is whole. The reader keeps its own n, which starts at 0 and never wraps. Owns the transport's part of an
   npuprof_npu_queue_. May not know what a value means.

   An entry may change while it is copied. With a producer index, the index is read again behind a batch of
   copies: what the device may have come round to is lost. With another rule, the word that says "ready" is
   read before and after the copy: if it changed, the entry is copied once more, and lost if it changed
   again. */

enum { NPUPROF_NPU_BATCH_ = 32 };        /* entries copied before the index is read again */

/* What a copied entry is. */
enum {
    NPUPROF_NPU_ENTRY_GOOD_, NPUPROF_NPU_ENTRY_LOST_, NPUPROF_NPU_ENTRY_LATER_, NPUPROF_NPU_ENTRY_LAPPED_
};

/* A ring that is being read. */
typedef struct npuprof_npu_reading_ {
    uint64_t producer;                   /* number of the entry where it ends */
    npuprof_result result;               /* of the ring */
    unsigned count;                      /* of the batch */
    bool is_clear;                       /* the batch has been set to 0 */
    npuprof_npu_record_ batch[NPUPROF_NPU_BATCH_];
    uint8_t fate[NPUPROF_NPU_BATCH_];    /* NPUPROF_NPU_ENTRY_* */
    uint64_t gap[NPUPROF_NPU_BATCH_];    /* LAPPED: entries that are missing; GOOD: missing before it */
} npuprof_npu_reading_;

/* Is there nothing but zeros in an entry? */
static bool npuprof_npu_is_blank_(npuprof_npu *npu, const npuprof_npu_queue_ *q,
                                  const volatile unsigned char *entry)
{
    for (unsigned i = 0; i < q->word_count; i++)
        if (npuprof_npu_load_entry_word_(npu, q, entry, i)) return false;
    return true;
}

/* The bits in which the sequence field and the number of an entry must agree. */
static uint64_t npuprof_npu_sequence_mask_(const npuprof_npu_queue_ *q)
{
    unsigned bits = npuprof_npu_bits_at_(q, NPUPROF_NPU_AT_SEQUENCE_);
    const npuprof_npu_index *x = &q->is.producer;
    const bool counts = !q->is.feed && !q->is.ready && x->unit == NPUPROF_NPU_INDEX_COUNT;
    if (counts && bits > x->bits) bits = x->bits;
    return npuprof_npu_mask_(bits);
}

/* Whether an entry is there, by READY_VALID, _PHASE or _SEQUENCE: GOOD, LATER or LAPPED. *word: what said
   so. */
static int npuprof_npu_is_ready_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number,
                                 const volatile unsigned char *entry, uint64_t *word, uint64_t *gap)
{
    const npuprof_npu_ring *r = &q->is;
    if (r->ready == NPUPROF_NPU_READY_VALID) {
        *word = npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_VALID_);
        return *word == r->valid_value ? NPUPROF_NPU_ENTRY_GOOD_ : NPUPROF_NPU_ENTRY_LATER_;
    }
    if (r->ready == NPUPROF_NPU_READY_PHASE) {
        *word = npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_PHASE_);
        if (*word != npuprof_npu_phase_of_(q, number)) return NPUPROF_NPU_ENTRY_LATER_;
        if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) return NPUPROF_NPU_ENTRY_GOOD_;
    }
    const bool by_phase = r->ready == NPUPROF_NPU_READY_PHASE;
    const uint64_t shown = npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_);
    const uint64_t mask = npuprof_npu_sequence_mask_(q);
    const uint64_t ahead = (shown - (number + r->sequence_first)) & mask;
    if (!by_phase) *word = shown;
    if (by_phase && (ahead == 0 || ahead > mask / 2 || ahead % r->count)) return NPUPROF_NPU_ENTRY_GOOD_;
    if (ahead == 0) {                    /* Why: memory that was never written may show the number 0. */
        if (*word == 0 && npuprof_npu_is_blank_(npu, q, entry)) return NPUPROF_NPU_ENTRY_LATER_;
        return NPUPROF_NPU_ENTRY_GOOD_;
    }
    if (ahead > mask / 2 || ahead % r->count) return NPUPROF_NPU_ENTRY_LATER_;
    *gap = ahead - (r->count - 1);       /* the newest ones are still there */
    return NPUPROF_NPU_ENTRY_LAPPED_;
}

/* Copies an entry if it is there. */
static int npuprof_npu_copy_ready_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number,
                                   npuprof_npu_record_ *record, uint64_t *gap)
{
    const volatile unsigned char *const entry = npuprof_npu_entry_at_(q, number);
    for (int i = 0; i < 2; i++) {
        uint64_t before, after;
        const int is = npuprof_npu_is_ready_(npu, q, number, entry, &before, gap);
        if (is == NPUPROF_NPU_ENTRY_LATER_) return i ? NPUPROF_NPU_ENTRY_LOST_ : is;
        if (is != NPUPROF_NPU_ENTRY_GOOD_) return is;
        npuprof_npu_copy_entry_(npu, q, entry, record);
        const int now = npuprof_npu_is_ready_(npu, q, number, entry, &after, gap);
        if (now == NPUPROF_NPU_ENTRY_GOOD_ && after == before) return now;
    }
    return NPUPROF_NPU_ENTRY_LOST_;
}

/* ---- READY_VALID */

/* Entries that the numbers of a device's entries say are missing before this one. False: it has an old
   number, so it was read before. A device that numbers nothing shows 0 always. */
static bool npuprof_npu_follows_(npuprof_npu_queue_ *q, const npuprof_npu_record_ *r, uint64_t *missing)
{
    const uint64_t now = r->v[NPUPROF_NPU_AT_SEQUENCE_], mask = npuprof_npu_sequence_mask_(q);
    const uint64_t ahead = (now - q->last_sequence - 1) & mask;
    *missing = 0;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) return true;
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
    for (uint64_t i = 0; i < q->is.count; i++) {
        uint64_t word, gap;
        const volatile unsigned char *const entry = npuprof_npu_entry_at_(q, q->next + i);
        if (npuprof_npu_is_ready_(npu, q, i, entry, &word, &gap) != NPUPROF_NPU_ENTRY_GOOD_) return false;
    }
    return true;
}

/* An entry that is valid: is it a new one? If nobody clears them, all stay valid, and only what they hold
   tells. */
static int npuprof_npu_judge_valid_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t number,
                                    const npuprof_npu_record_ *r, npuprof_npu_reading_ *reading,
                                    uint64_t *gap)
{
    uint32_t *const seen = q->seen_at < NPUPROF_NPU_SEEN_ ? &npu->seen_[q->seen_at + number % q->is.count]
                                                          : NULL;
    const uint32_t hash = npuprof_npu_hash_record_(q, r);
    const bool again = seen && *seen == hash && number >= q->is.count;
    if (!q->stuck && (q->run >= q->is.count || (again && npuprof_npu_are_all_valid_(npu, q)))) {
        q->stuck = true;
        reading->result = NPUPROF_ERR_NPU_RING;
    }
    if (q->stuck && (!seen || *seen == hash)) return NPUPROF_NPU_ENTRY_LATER_;
    if (!npuprof_npu_follows_(q, r, gap)) return NPUPROF_NPU_ENTRY_LATER_;
    if (seen) *seen = hash;
    q->run++;
    return NPUPROF_NPU_ENTRY_GOOD_;
}

/* Finds out where the device writes: the first valid entry behind one that is not. False: none is valid. */
static bool npuprof_npu_find_valid_(npuprof_npu *npu, npuprof_npu_queue_ *q, bool behind)
{
    const uint64_t count = q->is.count;
    uint64_t word, gap;
    bool last = npuprof_npu_is_ready_(npu, q, count - 1, npuprof_npu_entry_at_(q, count - 1), &word, &gap) ==
                NPUPROF_NPU_ENTRY_GOOD_;
    for (uint64_t i = 0; i < count; i++) {
        const bool now = npuprof_npu_is_ready_(npu, q, i, npuprof_npu_entry_at_(q, i), &word, &gap) ==
                         NPUPROF_NPU_ENTRY_GOOD_;
        if (behind ? last && !now : !last && now) {
            q->next = i;
            return true;
        }
        last = now;
    }
    return false;
}

static bool npuprof_npu_is_valid_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t number)
{
    uint64_t word, gap;
    return npuprof_npu_is_ready_(npu, q, number, npuprof_npu_entry_at_(q, number), &word, &gap) ==
           NPUPROF_NPU_ENTRY_GOOD_;
}

/* If the next entry was cleared before it was read, valid ones lie further on, and none right before it: goes
   on there, and what it passes is lost. Entries are cleared in order. At most 100 times a second, since it
   looks at the whole ring. */
static void npuprof_npu_pass_cleared_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    const uint64_t count = q->is.count, now = npuprof_npu_ticks_();
    uint64_t ahead = 1;
    if (npuprof_npu_is_valid_(npu, q, q->next) || npuprof_npu_is_valid_(npu, q, q->next + count - 1)) return;
    if (q->searched_at && npuprof_saturating_sub_(now, q->searched_at) < npu->second_ / 100) return;
    q->searched_at = now;
    while (ahead < count && !npuprof_npu_is_valid_(npu, q, q->next + ahead)) ahead++;
    /* Why again: the device may have written it meanwhile. */
    if (ahead == count || npuprof_npu_is_valid_(npu, q, q->next)) return;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) npuprof_npu_count_gap_(npu, q, ahead);
    q->next += ahead;
}

/* ---- READY_PHASE */

/* The number behind the newest entry: the least one, not before `from`, that the phases agree with. */
static uint64_t npuprof_npu_find_phase_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t from)
{
    const uint64_t count = q->is.count;
    uint64_t edge = 1;
    const uint64_t first =
        npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, 0), NPUPROF_NPU_AT_PHASE_);
    while (edge < count && npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, edge),
                                                   NPUPROF_NPU_AT_PHASE_) == first) edge++;
    if (from == 0 && edge == count && first != npuprof_npu_phase_of_(q, 0)) return 0;
    for (uint64_t lap = from / count;; lap++) {
        const uint64_t end = lap * count + edge;
        if (first == npuprof_npu_phase_of_(q, lap * count) && end >= from) return end;
    }
}

/* What the newest entry's number says of the next one, if it has one and that agrees with the phases. */
static uint64_t npuprof_npu_number_phase_(npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t next)
{
    if (!next || !npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) return next;
    const uint64_t shown = npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, next - 1),
                                                   NPUPROF_NPU_AT_SEQUENCE_);
    const uint64_t newest = (shown - q->is.sequence_first) & npuprof_npu_sequence_mask_(q);
    const bool same = newest % q->is.count == (next - 1) % q->is.count &&
                      npuprof_npu_phase_of_(q, newest) == npuprof_npu_phase_of_(q, next - 1);
    return same ? newest + 1 : next;
}

/* The entry is not there. If the one before it has changed since it was read, the device has come round, and
   nothing of what lies between can be told apart: all of it is lost. */
static void npuprof_npu_check_lap_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    if (!q->next) return;
    const uint64_t last = npuprof_npu_load_value_(npu, q, npuprof_npu_entry_at_(q, q->next - 1),
                                                  NPUPROF_NPU_AT_PHASE_);
    if (last == npuprof_npu_phase_of_(q, q->next - 1)) return;
    const uint64_t end = npuprof_npu_find_phase_(npu, q, q->next);
    npuprof_npu_count_gap_(npu, q, end - q->next);
    q->next = end;
    npuprof_npu_remember_(npu, q);
}

/* ---- READY_SEQUENCE */

/* The number behind the newest entry, by the sequence numbers in the ring. */
static uint64_t npuprof_npu_find_sequence_(npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    const uint64_t count = q->is.count, mask = npuprof_npu_sequence_mask_(q);
    for (uint64_t i = 0; i < count; i++) {
        const volatile unsigned char *const entry = npuprof_npu_entry_at_(q, i);
        const volatile unsigned char *const after = npuprof_npu_entry_at_(q, i + 1);
        const uint64_t word = npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_);
        const uint64_t next = npuprof_npu_load_value_(npu, q, after, NPUPROF_NPU_AT_SEQUENCE_);
        const uint64_t number = (word - q->is.sequence_first) & mask;
        if (number % count != i || ((next - word) & mask) == 1 ||
            npuprof_npu_is_blank_(npu, q, entry)) continue;
        return number + 1;
    }
    return 0;
}

/* ---- All rules */

/* The first reading of an index that may have come round before: the newest entry tells the number of the
   next, if it has one and that agrees with the index. */
static void npuprof_npu_number_index_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t *producer)
{
    const npuprof_npu_index *x = &q->is.producer;
    const uint64_t count = q->is.count, unit = q->is.entry_bytes;
    const bool is_slot = npuprof_npu_tells_slot_(x), in_bytes = x->unit == NPUPROF_NPU_INDEX_BYTES;
    npuprof_npu_record_ last;
    if ((!is_slot && !in_bytes) || !npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_)) return;
    memset(&last, 0, sizeof last);
    npuprof_npu_copy_entry_(npu, q, npuprof_npu_entry_at_(q, *producer + count - 1), &last);
    const uint64_t number =
        (last.v[NPUPROF_NPU_AT_SEQUENCE_] - q->is.sequence_first + 1) & npuprof_npu_sequence_mask_(q);
    if (number % count != *producer % count || number > UINT64_MAX / 2 / unit) return;
    const uint64_t rest = (q->index.last - number * unit) & q->index.mask;      /* of a cut record */
    if (in_bytes && rest >= unit) return;
    q->index.last = in_bytes ? number * unit + rest : number;
    *producer = number;
}

/* Reads the producer index. The first time, the newest entry tells the number of a slot, if it has one.
   Results as npuprof_npu_read_index_(). */
static npuprof_result npuprof_npu_read_producer_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t *producer)
{
    const uint64_t count = q->is.count;
    const bool first = !q->numbered;
    npuprof_npu_record_ last;
    memset(&last, 0, sizeof last);
    if (q->index.was_empty) {
        npuprof_npu_copy_entry_(npu, q, npuprof_npu_entry_at_(q, count - 1), &last);
        if (npuprof_npu_hash_record_(q, &last) != q->index.silent) q->index.was_empty = false;
    }
    const npuprof_result result = npuprof_npu_read_index_(npu, &q->is.producer, &q->index, count,
                                                          q->is.entry_bytes, q->is.big_endian, producer);
    if (*producer) q->index.was_empty = false;
    if (!q->index.known) return result;
    if (first) {
        q->numbered = true;
        npuprof_npu_number_index_(npu, q, producer);
        q->next = *producer;
        npuprof_npu_remember_(npu, q);
    } else if (result == NPUPROF_ERR_NPU_RING && *producer < q->next) {
        q->next = *producer > count ? *producer - count : 0;     /* the device counts from 0 again */
    }
    return result;
}

/* Whether it cannot be read without touching the BAR. */
static bool npuprof_npu_is_in_bar_(const npuprof_npu_queue_ *q)
{
    return !q->is.memory || (!q->is.ready && q->index.in_bar);
}

/* Finds out where a ring that was just opened is: what lies in it is older. */
static npuprof_result npuprof_npu_find_ring_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    uint64_t producer;
    npuprof_npu_record_ last;
    memset(&last, 0, sizeof last);
    if (!q->base) return NPUPROF_OK;
    q->found = true;
    switch (q->is.ready) {
    case NPUPROF_NPU_READY_VALID: q->numbered = npuprof_npu_find_valid_(npu, q, true); return NPUPROF_OK;
    case NPUPROF_NPU_READY_PHASE:
        q->next = npuprof_npu_number_phase_(npu, q, npuprof_npu_find_phase_(npu, q, 0));
        npuprof_npu_remember_(npu, q);
        return NPUPROF_OK;
    case NPUPROF_NPU_READY_SEQUENCE: q->next = npuprof_npu_find_sequence_(npu, q); return NPUPROF_OK;
    default: break;
    }
    if (q->is.producer.has_laps && !q->is.producer.laps_first) {
        npuprof_npu_copy_entry_(npu, q, npuprof_npu_entry_at_(q, q->is.count - 1), &last);
        q->index.silent = npuprof_npu_hash_record_(q, &last);
        q->index.was_empty = true;
    }
    return npuprof_npu_read_producer_(npu, q, &producer);
}

/* Begins to read a ring. False: nothing can be read. */
static bool npuprof_npu_begin_reading_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading)
{
    reading->result = NPUPROF_OK;
    reading->count = 0;
    reading->is_clear = false;
    if (!q->found) reading->result = npuprof_npu_find_ring_(npu, q);     /* it was off at open */
    reading->producer = q->next;
    const bool came_round = npuprof_npu_came_round_(npu, q);
    if (reading->result != NPUPROF_OK && reading->result != NPUPROF_ERR_NPU_RING) return false;
    if (q->is.ready == NPUPROF_NPU_READY_PRODUCER) {
        reading->result = npuprof_npu_read_producer_(npu, q, &reading->producer);
        if (reading->result == NPUPROF_ERR_NPU_RING)
            npuprof_npu_count_records_(npu, NPUPROF_RECORDS_LOSS_UNKNOWN, 1);
        else if (came_round && reading->result == NPUPROF_OK)
            npuprof_npu_pass_period_(npu, q, &reading->producer);
        return reading->result == NPUPROF_OK || reading->result == NPUPROF_ERR_NPU_RING;
    }
    if (q->is.ready == NPUPROF_NPU_READY_VALID && q->numbered) npuprof_npu_pass_cleared_(npu, q);
    else if (q->is.ready == NPUPROF_NPU_READY_VALID) q->numbered = npuprof_npu_find_valid_(npu, q, false);
    /* Why: a device that is faster than this must not hold it up. */
    reading->producer = q->next + q->is.count;
    if (came_round) npuprof_npu_pass_period_(npu, q, &reading->producer);
    return true;
}

/* The entry of that number, copied before the index was `newest`. LATER: it is not written yet, although the
   index announces it. LAPPED: the device went round by *gap entries more than the index shows. */
static int npuprof_npu_judge_announced_(const npuprof_npu_queue_ *q, const npuprof_npu_record_ *r,
                                        uint64_t sequence_before, uint64_t number, uint64_t newest,
                                        uint64_t *gap)
{
    const uint64_t behind = newest - number, count = q->is.count;
    if (!npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_))
        return behind < count ? NPUPROF_NPU_ENTRY_GOOD_ : NPUPROF_NPU_ENTRY_LOST_;
    if (behind > count) return NPUPROF_NPU_ENTRY_LOST_;
    const uint64_t mask = npuprof_npu_sequence_mask_(q);
    const uint64_t ahead = (sequence_before - (number + q->is.sequence_first)) & mask;
    if (ahead == 0 && r->v[NPUPROF_NPU_AT_SEQUENCE_] == sequence_before) return NPUPROF_NPU_ENTRY_GOOD_;
    const bool overwritten = ahead && ahead <= mask / 2 && ahead % count == 0;
    if (!overwritten && behind < count) return NPUPROF_NPU_ENTRY_LATER_;
    /* Why not LAPPED a whole lap behind: the device may just be writing the next lap's entry there. */
    if (!overwritten || behind == count || !npuprof_npu_tells_slot_(&q->is.producer))
        return NPUPROF_NPU_ENTRY_LOST_;
    *gap = ahead;
    return NPUPROF_NPU_ENTRY_LAPPED_;
}

/* Copies a batch of announced entries. False: the index is bad. */
static bool npuprof_npu_copy_announced_(npuprof_npu *npu, npuprof_npu_queue_ *q,
                                        npuprof_npu_reading_ *reading)
{
    uint64_t before[NPUPROF_NPU_BATCH_], newest = 0;
    const bool numbered = npuprof_npu_has_(q, NPUPROF_NPU_AT_SEQUENCE_);
    if (reading->producer - q->next > q->is.count) {
        const uint64_t oldest = reading->producer - q->is.count;
        npuprof_npu_count_gap_(npu, q, oldest - q->next);
        q->next = oldest;
    }
    reading->count = (unsigned)npuprof_min_(reading->producer - q->next, NPUPROF_NPU_BATCH_);
    for (unsigned i = 0; i < reading->count; i++) {
        const volatile unsigned char *const entry = npuprof_npu_entry_at_(q, q->next + i);
        before[i] = numbered ? npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_) : 0;
        npuprof_npu_copy_entry_(npu, q, entry, &reading->batch[i]);
        if (numbered)
            reading->batch[i].v[NPUPROF_NPU_AT_SEQUENCE_] =
                npuprof_npu_load_value_(npu, q, entry, NPUPROF_NPU_AT_SEQUENCE_);
    }
    const npuprof_result again = npuprof_npu_read_producer_(npu, q, &newest);
    if (again != NPUPROF_OK) {
        if (reading->result == NPUPROF_OK) reading->result = again;
        return false;
    }
    for (unsigned i = 0; i < reading->count; i++)
        reading->fate[i] =
            (uint8_t)npuprof_npu_judge_announced_(q, &reading->batch[i], before[i], q->next + i,
                                                                 newest, &reading->gap[i]);
    return true;
}

/* Copies the next batch. False: there is none. */
static bool npuprof_npu_copy_batch_(npuprof_npu *npu, npuprof_npu_queue_ *q, npuprof_npu_reading_ *reading)
{
    reading->count = 0;
    if (q->next == reading->producer) return false;
    if (!reading->is_clear) memset(reading->batch, 0, sizeof reading->batch);
    reading->is_clear = true;
    if (q->is.ready == NPUPROF_NPU_READY_PRODUCER) return npuprof_npu_copy_announced_(npu, q, reading);
    const uint64_t end = npuprof_min_(reading->producer - q->next, NPUPROF_NPU_BATCH_);
    while (reading->count < end) {
        const unsigned i = reading->count;
        const uint64_t number = q->next + i;
        reading->gap[i] = 0;
        int fate = npuprof_npu_copy_ready_(npu, q, number, &reading->batch[i], &reading->gap[i]);
        if (q->is.ready == NPUPROF_NPU_READY_VALID) {
            if (fate == NPUPROF_NPU_ENTRY_LATER_) q->run = q->stuck = false;
            if (fate == NPUPROF_NPU_ENTRY_GOOD_)
                fate =
                    npuprof_npu_judge_valid_(npu, q, number, &reading->batch[i], reading, &reading->gap[i]);
        }
        if (fate == NPUPROF_NPU_ENTRY_LATER_) break;
        reading->fate[i] = (uint8_t)fate;
        reading->count++;
        if (fate == NPUPROF_NPU_ENTRY_LAPPED_) break;
    }
    if (!reading->count && q->is.ready == NPUPROF_NPU_READY_PHASE) npuprof_npu_check_lap_(npu, q);
    return reading->count != 0;
}

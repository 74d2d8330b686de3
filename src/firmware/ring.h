#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../public/hot.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"

/* The ring: taking cells from the oldest records (format/compact.h, RING).
   Who wants cells claims the old record at header.used and moves header.used behind it. A record that is
   kept, or that another task is writing, cannot be claimed: it is passed. So nobody waits, and a task that is
   left in the middle of a record keeps its cells however many laps the others make.
   Owns header.used and the upper bits of half[1]. An index in header.used beyond the cells: a reader of
   NPUPROF_KEEP_NEWEST is at work, and what would be recorded is lost. */

#if NPUPROF_RING_

#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
/* Spans and events that were recorded. */
static uint32_t npuprof_fw_recorded_;
#endif

/* high.word with that half[1]; the other half is whatever it is. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define NPUPROF_FW_HIGH_WORD_(upper) ((upper) >> 16)
#else
#define NPUPROF_FW_HIGH_WORD_(upper) (upper)
#endif
#define NPUPROF_FW_OPEN_WORD_ NPUPROF_FW_HIGH_WORD_((uint32_t)NPUPROF_CELL_OPEN_ << 16)
#define NPUPROF_FW_SENT_WORD_ NPUPROF_FW_HIGH_WORD_((uint32_t)NPUPROF_CELL_SENT_ << 16)
#define NPUPROF_FW_CLAIMED_WORD_ UINT32_MAX
/* Why by a shift: the smallest processors have no constant for the bit. */
#define NPUPROF_FW_IS_CLAIMED_(word) \
    ((int32_t)((word) << (NPUPROF_FW_HIGH_WORD_((uint32_t)1 << 16) == 1 ? 17 : 1)) < 0)
#define NPUPROF_FW_FLAGS_ ((uint32_t)(NPUPROF_CELL_CLAIMED_ | NPUPROF_CELL_SENT_) << NPUPROF_RING_LAP_SHIFT_)

/* Stores `to` in a word that is `was`. False: it is not. */
static bool npuprof_fw_replace_(uint32_t *word, uint32_t was, uint32_t to)
{
    NPUPROF_MASKED_BEGIN_
#if NPUPROF_MASKS_
    const bool is = NPUPROF_LOAD_(word) == was;
    if (is) NPUPROF_STORE_(word, to);
#else
    const bool is = NPUPROF_CAS_(word, &was, to);
#endif
    NPUPROF_MASKED_END_
    return is;
}

static inline void npuprof_fw_count_(uint32_t *word)
{
    NPUPROF_MASKED_BEGIN_
    NPUPROF_INCREMENT_(word);
    NPUPROF_MASKED_END_
}

/* Stores half[1], which says who may write the cell: after all else. */
NPUPROF_ALWAYS_INLINE_ void npuprof_fw_store_half_(npuprof_cell_ *cell, uint32_t half)
{
#ifdef __AVR__
    NPUPROF_MASKED_BEGIN_
    NPUPROF_STORE_(&cell->high.half[1], (uint16_t)half);
    NPUPROF_MASKED_END_
#elif NPUPROF_MASKS_
    NPUPROF_SIGNAL_FENCE_();
    NPUPROF_STORE_(&cell->high.half[1], (uint16_t)half);
#else
    NPUPROF_STORE_RELEASE_(&cell->high.half[1], (uint16_t)half);
#endif
}

NPUPROF_ALWAYS_INLINE_ uint32_t npuprof_fw_length_(const npuprof_cell_ *head)
{
    uint32_t n = 1;
    if (head->ref & 1) n = NPUPROF_FIELD_CELLS_(head[1].start);
    return n;
}

/* Whether the cells before `next` may be replaced, or passed: of NPUPROF_STREAM if they were sent, so if it
   is ahead of header.crc by one lap at most. */
static inline bool npuprof_fw_may_pass_(const npuprof_compact_header_ *c, uint32_t next)
{
#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
    /* Why shifted: laps have 13 bits. Why signed: if header.used has moved on, more may have been sent. */
    const int32_t ahead = (int32_t)((next - npuprof_os_load_(&c->crc)) << 3);
    return ahead <= (int32_t)1 << (NPUPROF_RING_LAP_SHIFT_ + 3);
#else
    (void)c;
    (void)next;
    return true;
#endif
}

/* Moves header.used from `used` to `next`, behind the record at `head`. True: that record is claimed. False:
   it is passed, or another task was faster. Why its length may be read before: while header.used stands, it
   has that. */
static inline bool npuprof_fw_claim_(npuprof_compact_header_ *c, npuprof_cell_ *head, uint32_t used,
                                     uint32_t next)
{
    uint32_t high;
#if NPUPROF_MASKS_
    uint32_t claimed = NPUPROF_FW_CLAIMED_WORD_;
    if (NPUPROF_WHEN_FULL == NPUPROF_KEEP_NEWEST) NPUPROF_KNOWN_(claimed);
    NPUPROF_MASKED_BEGIN_
    bool is_ours = NPUPROF_LOAD_(&c->used) == used;
    if (is_ours) {
        NPUPROF_STORE_(&c->used, next);
        high = NPUPROF_LOAD_(&head->high.word);
        is_ours = !(high & NPUPROF_FW_OPEN_WORD_);
        if (is_ours) NPUPROF_STORE_(&head->high.word, claimed);
    }
    NPUPROF_MASKED_END_
    return is_ours;
#else
    high = NPUPROF_LOAD_(&head->high.word);
    const bool is_free = !(high & NPUPROF_FW_OPEN_WORD_) &&
                         NPUPROF_CAS_(&head->high.word, &high, NPUPROF_FW_CLAIMED_WORD_);
    if (NPUPROF_CAS_(&c->used, &used, next)) return is_free;
    if (is_free) NPUPROF_STORE_RELEASE_(&head->high.word, high);
    return false;
#endif
}

/* Gives `count` cells back, which are ours, as one record with nothing in it. */
static void npuprof_fw_give_back_(npuprof_cell_ *head, uint32_t count)
{
    if (count > 1) npuprof_os_store_(&head[1].start, count << 20);
    npuprof_os_store_(&head->ref, NPUPROF_CELL_CLEARED_ | (count > 1));
    npuprof_fw_store_half_(head, 0);
}

/* Empties a record that is ours. Why its fields stay: a stream may have sent its head, and sends them yet. */
static NPUPROF_NOINLINE_ void npuprof_fw_empty_(npuprof_cell_ *head)
{
    npuprof_os_store_(&head->ref, (head->ref & 1) + NPUPROF_CELL_CLEARED_);
    npuprof_fw_store_half_(head, 0);
}

/* Claims the next record that can be claimed: the token of its first cell. Of its cells it takes `most`, and
   gives the others back. 0: there is none.
   Why no limit for NPUPROF_STREAM: it ends where nothing was sent yet. */
static NPUPROF_NOINLINE_ npuprof_token_ npuprof_fw_claim_next_(npuprof_compact_header_ *c,
                                                                uint32_t most)
{
    const uint32_t cells = NPUPROF_FW_CELL_COUNT_();
    for (uint32_t tries = cells; tries; tries -= NPUPROF_WHEN_FULL != NPUPROF_STREAM) {
        const uint32_t used = npuprof_os_load_(&c->used);
        npuprof_cell_ *const head = npuprof_fw_cell_(c, used);
        if (NPUPROF_WHEN_FULL == NPUPROF_KEEP_NEWEST && (used & NPUPROF_RING_INDEX_) >= cells) break;
        const uint32_t n = npuprof_fw_length_(head);
        uint32_t next = used + n;
        if ((next & NPUPROF_RING_INDEX_) >= cells) {
            next = (used >> NPUPROF_RING_LAP_SHIFT_) + 1;
            next = next << NPUPROF_RING_LAP_SHIFT_ & ~NPUPROF_FW_FLAGS_;
            if (NPUPROF_CLOCK_BITS_ >= 48) c->clock = (uint32_t)(npuprof_fw_stamp_(c) >> 16);
        }
        if (!npuprof_fw_may_pass_(c, next)) break;
        if (!npuprof_fw_claim_(c, head, used, next)) continue;
        if (n > most) npuprof_fw_give_back_(head + most, n - most);
        return used;
    }
    return 0;
}

/* Lets go of the kept record of that token, if it is still there. empty: nothing of it is left, else it is as
   any other; what a stream has sent is always emptied. Why it is claimed first: another task may let go of
   the same one, and the cells are then somebody else's. */
static void npuprof_fw_release_(npuprof_compact_header_ *c, npuprof_token_ token, bool empty)
{
    npuprof_cell_ *const head = npuprof_fw_cell_(c, token);
    npuprof_cell_ was, to;
    uint32_t half;
    if (!(token & NPUPROF_RING_IS_)) return;
    do {
        was.high.word = to.high.word = npuprof_os_load_(&head->high.word);
        half = was.high.half[1];
        if (half & NPUPROF_CELL_CLAIMED_) return;
        if ((half & ~(uint32_t)NPUPROF_CELL_SENT_) != token >> NPUPROF_RING_LAP_SHIFT_) return;
        to.high.half[1] = 0;
        if (half & NPUPROF_CELL_SENT_) empty = true;
        if (empty) to.high.word = NPUPROF_FW_CLAIMED_WORD_;
    } while (!npuprof_fw_replace_(&head->high.word, was.high.word, to.high.word));
    if (empty) npuprof_fw_empty_(head);
}

/* Takes `count` cells, one behind the other, at least 2. */
static NPUPROF_NOINLINE_ npuprof_token_ npuprof_fw_take_more_(npuprof_compact_header_ *c, uint32_t count)
{
    const uint32_t cells = NPUPROF_FW_CELL_COUNT_();
    uint32_t have = 0, n = 1;
    npuprof_token_ token = 0;
    if (count > NPUPROF_FIELD_CELLS_(UINT32_MAX)) return 0;
    for (uint32_t tried = 0; tried <= cells && count <= cells; tried += n) {
        const npuprof_token_ more = npuprof_fw_claim_next_(c, count);
        n = npuprof_fw_length_(npuprof_fw_cell_(c, more));
        if (n > count) n = count;
        if (have && more != token + have) {
            npuprof_fw_give_back_(npuprof_fw_cell_(c, token), have);
            have = 0;
        }
        if (!more) break;
        if (!have) token = more;
        have += n;
        if (have < count) continue;
        npuprof_cell_ *const head = npuprof_fw_cell_(c, token);
        if (have > count) npuprof_fw_give_back_(head + count, have - count);
        npuprof_os_store_(&head[1].start, count << 20);
        npuprof_os_store_(&head->ref, NPUPROF_CELL_CLEARED_ | 1);
        return token;
    }
    if (have) npuprof_fw_give_back_(npuprof_fw_cell_(c, token), have);
    return 0;
}

#endif /* NPUPROF_RING_ */

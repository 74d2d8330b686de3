#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../public/hot.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"
#include "cells.h"

/* The ring, which NPUPROF_KEEP_NEWEST and NPUPROF_STREAM share: taking cells from the oldest records
   (format/compact.h, RING).
   Who wants cells claims the old record at header.used and moves header.used behind it. A record that is
   kept, or that another task is writing, cannot be claimed: it is passed. So nobody waits, and a task that is
   left in the middle of a record keeps its cells however many laps the others make.
   What each function does is said in >>firmware/policy.
   Owns header.used and the upper bits of half[1]. */

#if NPUPROF_RING_

#define NPUPROF_FW_CELLS_WORD_(count) ((uint32_t)(count) << 20)
#define NPUPROF_FW_OPEN_HALF_(token) ((token) >> NPUPROF_RING_LAP_SHIFT_)
enum { NPUPROF_FW_HEAD_ = 0 };

/* ---- What the two decide, each in its file */

/* Whether the cells before `next` may be replaced, or passed. */
static inline bool npuprof_fw_may_pass_(const npuprof_compact_header_ *c, uint32_t next);
/* Whether a reader keeps that header.used for itself. */
static inline bool npuprof_fw_is_held_(uint32_t used);
/* How often else it may be tried to find a record that can be claimed. */
static inline uint32_t npuprof_fw_tries_after_(uint32_t tries);
/* What counts the events that are recorded. */
static inline uint32_t *npuprof_fw_events_(npuprof_compact_header_ *c);
/* half[1] of a cell, as its token has it. */
static inline uint32_t npuprof_fw_half_of_(const npuprof_cell_ *cell);

/* ---- Cells */

static inline uint32_t npuprof_fw_begin_ring_(npuprof_compact_header_ *c, uint32_t cells)
{
    c->used = NPUPROF_RING_IS_;
    return !NPUPROF_ARENA_BYTES && cells > NPUPROF_RING_INDEX_ ? NPUPROF_RING_INDEX_ : cells;
}

static inline npuprof_cell_ *npuprof_fw_near_cell_(npuprof_compact_header_ *c, npuprof_token_ token)
{
    return npuprof_fw_cells_(c) + (token & NPUPROF_RING_INDEX_);
}

static inline npuprof_cell_ *npuprof_fw_cell_(npuprof_compact_header_ *c, npuprof_token_ token)
{
    return npuprof_fw_near_cell_(c, token);
}

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

/* Whether an event is counted while interrupts are off anyway. Why not always: it takes too long on an AVR,
   where the address of the count is not known, and where a compiler for speed moves more behind the mask. */
#if defined(__AVR__) || !defined(__OPTIMIZE_SIZE__)
enum { NPUPROF_FW_COUNTS_MASKED_ = 0 };
#else
enum { NPUPROF_FW_COUNTS_MASKED_ = NPUPROF_WHEN_FULL == NPUPROF_KEEP_NEWEST && NPUPROF_ARENA_BYTES };
#endif

/* Moves header.used from `used` to `next`, behind the record at `head`, whose high.word was `high`. True: it
   is claimed, and *counted is one more. False: it is passed, or another task was faster.
   Why its length and `high` may be read before: while header.used stands, it has that length, and what can be
   claimed stays so. Why a barrier between the two words: those who meet look at both. Why one behind them:
   who reads the ring from outside finds nothing new in cells that are not taken. */
NPUPROF_ALWAYS_INLINE_ bool npuprof_fw_claim_(npuprof_compact_header_ *c, npuprof_cell_ *head, uint32_t used,
                                              uint32_t next, uint32_t high, uint32_t *counted)
{
    const bool is_free = !(high & NPUPROF_FW_OPEN_WORD_);
#if NPUPROF_MASKS_
    uint32_t claimed = NPUPROF_FW_CLAIMED_WORD_;
    NPUPROF_KNOWN_(claimed);
    NPUPROF_MASKED_BEGIN_
    const bool is_ours = NPUPROF_LOAD_(&c->used) == used;
    if (is_ours) {
        NPUPROF_STORE_(&c->used, next);
        if (is_free) NPUPROF_STORE_(&head->high.word, claimed);
        if (counted && NPUPROF_FW_COUNTS_MASKED_) ++*counted;
    }
    NPUPROF_MASKED_END_
    if (counted && !NPUPROF_FW_COUNTS_MASKED_ && is_ours) npuprof_fw_count_(counted);
    return is_ours && is_free;
#else
    if (is_free && !NPUPROF_CAS_RELAXED_(&head->high.word, &high, NPUPROF_FW_CLAIMED_WORD_)) return false;
    NPUPROF_FENCE_();
    if (NPUPROF_CAS_RELAXED_(&c->used, &used, next)) {
        NPUPROF_FENCE_();
        if (counted) NPUPROF_INCREMENT_(counted);
        return is_free;
    }
    if (is_free) NPUPROF_STORE_RELEASE_(&head->high.word, high);
    return false;
#endif /* !NPUPROF_MASKS_ */
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

/* What header.used becomes where a lap ends. */
NPUPROF_ALWAYS_INLINE_ uint32_t npuprof_fw_next_lap_(npuprof_compact_header_ *c, uint32_t used)
{
    if (NPUPROF_CLOCK_BITS_ >= 48) c->clock = (uint32_t)(npuprof_fw_stamp_(c) >> 16);
    return ((used >> NPUPROF_RING_LAP_SHIFT_) + 1) << NPUPROF_RING_LAP_SHIFT_ & ~NPUPROF_FW_FLAGS_;
}

/* Claims the next record that can be claimed: the token of its first cell. Of its cells it takes `most`, and
   gives the others back. 0: there is none. */
static NPUPROF_NOINLINE_ npuprof_token_ npuprof_fw_claim_next_(npuprof_compact_header_ *c,
                                                                uint32_t most)
{
    const uint32_t cells = NPUPROF_FW_CELL_COUNT_();
    for (uint32_t tries = cells; tries; tries = npuprof_fw_tries_after_(tries)) {
        const uint32_t used = npuprof_os_load_(&c->used);
        npuprof_cell_ *const head = npuprof_fw_cell_(c, used);
        if (npuprof_fw_is_held_(used)) break;
        const uint32_t high = NPUPROF_LOAD_(&head->high.word), n = npuprof_fw_length_(head);
        uint32_t next = used + n;
        if ((next & NPUPROF_RING_INDEX_) >= cells) next = npuprof_fw_next_lap_(c, used);
        if (!npuprof_fw_may_pass_(c, next)) break;
        if (!npuprof_fw_claim_(c, head, used, next, high, NULL)) continue;
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

/* Says of `count` cells, which are ours, that they are one record with nothing in it yet. */
NPUPROF_ALWAYS_INLINE_ void npuprof_fw_join_(npuprof_cell_ *head, uint32_t count)
{
    npuprof_os_store_(&head[1].start, count << 20);
    npuprof_os_store_(&head->ref, NPUPROF_CELL_CLEARED_ | 1);
    head->end = count;
}

/* Takes the next `count` cells at once, of which *first is the first, if nothing in them is kept and others
   are behind them; *counted is one more. False: it is, or another task was faster. Who calls it has to say at
   once how long the record is.
   Why only the first record is claimed: while header.used stands, nobody takes those behind it. */
NPUPROF_ALWAYS_INLINE_ bool npuprof_fw_take_run_(npuprof_compact_header_ *c, uint32_t count,
                                                 uint32_t *counted, npuprof_cell_ **first,
                                                 npuprof_token_ *token)
{
    const uint32_t used = npuprof_os_load_(&c->used);
    npuprof_cell_ *head = npuprof_fw_cell_(c, used), *behind = head + count, *at = head;
    const npuprof_cell_ *const end = npuprof_fw_cells_(c) + NPUPROF_FW_CELL_COUNT_();
    if (NPUPROF_UNLIKELY_(behind >= end)) return false;
    const uint32_t high = NPUPROF_MASKS_ ? 0 : NPUPROF_LOAD_(&head->high.word);
    NPUPROF_SETTLED_(head);
    do {
        /* Why one word of both: one question for the usual record, which is one cell. */
        const uint32_t other = NPUPROF_LOAD_(&at->high.word), ref = NPUPROF_LOAD_(&at->ref);
        at++;
        NPUPROF_SETTLED_(at);
        if ((other | (ref & 1) * NPUPROF_FW_OPEN_WORD_) & NPUPROF_FW_OPEN_WORD_) {
            const uint32_t n = NPUPROF_FIELD_CELLS_(NPUPROF_LOAD_(&at->start));
            if ((other & NPUPROF_FW_OPEN_WORD_) || !n) return false;     /* 0: another core is at it */
            at += n;
            NPUPROF_SETTLED_(at);
            at--;
        }
    } while (at < behind);
    uint32_t next = used + count;
    if (NPUPROF_UNLIKELY_(at != behind)) {
        if (at > end) return false;
        next = at < end ? used + (uint32_t)(at - head) : npuprof_fw_next_lap_(c, used);
    }
    if (!npuprof_fw_may_pass_(c, next)) return false;
    if (NPUPROF_UNLIKELY_(!npuprof_fw_claim_(c, head, used, next, high, counted))) return false;
    if (NPUPROF_UNLIKELY_(at != behind)) npuprof_fw_give_back_(behind, (uint32_t)(at - behind));
    *first = head;
    *token = used;
    return true;
}

/* Takes `count` cells, one behind the other. */
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
        if (count > 1) npuprof_fw_join_(head, count);
        return token;
    }
    if (have) npuprof_fw_give_back_(npuprof_fw_cell_(c, token), have);
    return 0;
}

/* ---- Recording */

/* Until npuprof_fw_publish_half_() the record is claimed, and is stepped over as a whole. */
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_fw_take_(npuprof_compact_header_ *c, uint32_t count,
                                                       uint32_t *lost)
{
    (void)lost;
    npuprof_token_ token;
    if (NPUPROF_CONSTANT_(count) && count == 1) return npuprof_fw_claim_next_(c, 1);
    npuprof_cell_ *head;
    if (!npuprof_fw_take_run_(c, count, NULL, &head, &token)) return npuprof_fw_take_more_(c, count);
    if (count > 1) npuprof_fw_join_(head, count);
    return token;
}

NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_fw_take_now_(npuprof_compact_header_ *c, uint64_t *now)
{
    const npuprof_token_ token = npuprof_fw_take_(c, 1, &c->lost);
    *now = npuprof_fw_stamp_(c);
    return token;
}

NPUPROF_ALWAYS_INLINE_ void npuprof_fw_publish_half_(npuprof_cell_ *head, uint32_t ref, uint32_t half)
{
    npuprof_os_store_(&head->ref, ref);
    npuprof_fw_store_half_(head, half);
}

/* The short way. Why `ref` comes first here: what is claimed says nothing but how long it is. */
#define npuprof_fw_take_short_(c, count, head, token) \
    npuprof_fw_take_run_((c), (count), npuprof_fw_events_(c), (head), (token))
NPUPROF_ALWAYS_INLINE_ void npuprof_fw_begin_short_(npuprof_cell_ *head, uint32_t ref, uint32_t count)
{
    npuprof_os_store_(&head->ref, ref);
    head->end = count;
}

#define npuprof_fw_publish_short_(head, ref, half) npuprof_fw_store_half_((head), (half))

/* NULL: garbage, or an end that came twice. */
NPUPROF_ALWAYS_INLINE_ npuprof_cell_ *npuprof_fw_open_cell_(npuprof_compact_header_ *c, npuprof_token_ token)
{
    npuprof_cell_ *const cell = npuprof_fw_cell_(c, token);
    if (!(token & NPUPROF_RING_IS_)) return NULL;
    if (NPUPROF_UNLIKELY_((token & NPUPROF_RING_INDEX_) >= NPUPROF_FW_CELL_COUNT_())) return NULL;
    return npuprof_fw_half_of_(cell) == token >> NPUPROF_RING_LAP_SHIFT_ ? cell : NULL;
}

/* ---- Records that are kept */

/* What says a name, or how clocks go together. */
static inline bool npuprof_fw_is_kept_(uint32_t ref)
{
    const uint32_t note = (ref >> 8 & 0xFF) - NPUPROF_CELL_KIND_THREAD_;
    const uint32_t kept = 1u << (NPUPROF_CELL_KIND_METADATA_ - NPUPROF_CELL_KIND_THREAD_) | 1u |
                          1u << (NPUPROF_CELL_KIND_DEVICE_ - NPUPROF_CELL_KIND_THREAD_) |
                          1u << (NPUPROF_CELL_KIND_ANCHOR_ - NPUPROF_CELL_KIND_THREAD_) |
                          1u << (NPUPROF_CELL_KIND_NAME_ - NPUPROF_CELL_KIND_THREAD_);
    return (ref & 2) && note < 32 && (kept >> note & 1);
}

static inline void npuprof_fw_keep_last_(npuprof_compact_header_ *c, npuprof_token_ *kept, int count,
                                         npuprof_token_ token)
{
    if (!token) return;
    npuprof_fw_release_(c, kept[0], false);
    for (int i = 0; i < count - 1; i++) NPUPROF_STORE_(&kept[i], kept[i + 1]);
    kept[count - 1] = token;
}

/* `end` has the index of the outer span's cell, from 1, and above it what was skipped. Why no token: the bits
   beside NPUPROF_CELL_OPEN_ check one. */
static void npuprof_fw_save_(npuprof_cell_ *cell, const npuprof_fw_by_hand_ *h)
{
    cell->end = (h->top ? (h->top & NPUPROF_RING_INDEX_) + 1 : 0) | (uint32_t)h->skipped << 16;
}

static void npuprof_fw_restore_(const npuprof_cell_ *cell, npuprof_fw_by_hand_ *h)
{
    const uint32_t outer = (cell->end & NPUPROF_RING_INDEX_) - 1;
    h->skipped = (uint16_t)(cell->end >> 16);
    h->top = 0;
    if (outer == UINT32_MAX) return;
    const uint32_t half = npuprof_fw_cell_(npuprof_fw_arena_, outer)->high.half[1];
    h->top = outer | (half & ~(uint32_t)NPUPROF_CELL_SENT_) << NPUPROF_RING_LAP_SHIFT_;
}

/* ---- Reading */

/* Index of the oldest cell, of the reader that is at work. */
static uint32_t npuprof_fw_oldest_;

static inline bool npuprof_fw_is_there_(const npuprof_cell_ *head)
{
    const uint32_t claimed = NPUPROF_CELL_OPEN_ | NPUPROF_CELL_CLAIMED_;
    if ((NPUPROF_LOAD_(&head->high.half[1]) & claimed) == claimed) return false;
    return head->ref > (NPUPROF_CELL_CLEARED_ | 1);
}

static uint32_t npuprof_fw_used_cells_(const npuprof_compact_header_ *c) { return c->cells; }

/* Why bounded: a task that is left in the middle of a record may be at it. */
static const npuprof_cell_ *npuprof_fw_after_record_(const npuprof_cell_ *head)
{
    const npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint32_t n = npuprof_fw_length_(head);
    const uint32_t left = (uint32_t)(npuprof_fw_cells_(c) + c->cells - head);
    return head + (n - 1 < left ? n : left);
}

static inline const npuprof_cell_ *npuprof_fw_next_record_(const npuprof_cell_ *at, const npuprof_cell_ *end)
{
    const npuprof_cell_ *const next = npuprof_fw_after_record_(at);
    const npuprof_cell_ *const cells = npuprof_fw_cells_(npuprof_fw_arena_);
    const npuprof_cell_ *const first = cells + npuprof_fw_oldest_;
    if (at < first) return next < first ? next : end;
    return next < end || first == cells ? next : cells;
}

static inline void npuprof_fw_set_image_words_(npuprof_compact_header_ *h, uint32_t used)
{
    (void)used;
    h->used = (h->used & ~NPUPROF_RING_INDEX_) | npuprof_fw_oldest_;
    if (NPUPROF_CLOCK_BITS_ >= 48) h->clock = (uint32_t)(npuprof_fw_stamp_(npuprof_fw_arena_) >> 16);
}

static inline npuprof_token_ npuprof_fw_token_of_(const npuprof_compact_header_ *c, const npuprof_cell_ *head)
{
    return (npuprof_token_)(head - npuprof_fw_cells_(c)) |
           (head->high.half[1] & ~(uint32_t)NPUPROF_CELL_SENT_) << NPUPROF_RING_LAP_SHIFT_;
}

static inline uint64_t npuprof_fw_age_now_(void) { return npuprof_fw_stamp_(npuprof_fw_arena_); }

static inline uint64_t npuprof_fw_age_(const npuprof_cell_ *head, uint64_t now)
{
    const uint64_t start = (uint64_t)(head->high.half[0] >> NPUPROF_CONTEXT_BITS_) << 32 | head->start;
    return (now - start) & NPUPROF_BITS_MASK_(48 - NPUPROF_CONTEXT_BITS_);
}

/* Ticks since the trace began that no record is older than: a ring runs longer than the range of a cell's
   stamp. */
static uint64_t npuprof_fw_zero_;
static inline void npuprof_fw_find_zero_(npuprof_compact_header_ *c)
{
    const uint64_t back = NPUPROF_FW_RANGE_ / 4 * 3, now = npuprof_fw_stamp_(c) - npuprof_fw_first_stamp_(c);
    npuprof_fw_zero_ = now > back ? now - back : 0;
}

NPUPROF_ATTRIBUTE_((unused))             /* without JSON nobody asks */
static NPUPROF_NOINLINE_ uint64_t npuprof_fw_since_first_(uint32_t high, uint32_t low)
{
    const uint64_t ticks = ((uint64_t)high << 32 | low) - npuprof_fw_first_stamp_(npuprof_fw_arena_);
    return ((ticks - npuprof_fw_zero_) & NPUPROF_FW_RANGE_) + npuprof_fw_zero_;
}

/* A record that is newer than the result may have replaced the span; a span that was open for long may lie
   behind its results. */
static inline bool npuprof_fw_is_of_(const npuprof_cell_ *result, uint32_t token, const npuprof_cell_ *head)
{
    const npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint32_t cells = c->cells, number = (uint32_t)(head - npuprof_fw_cells_(c));
    const uint32_t own = (uint32_t)(result - npuprof_fw_cells_(c)) + cells - npuprof_fw_oldest_;
    if (!npuprof_fw_is_there_(result) || (token & NPUPROF_RING_INDEX_) != number) return false;
    if (own % cells > (number + cells - npuprof_fw_oldest_) % cells) return true;
    return npuprof_fw_since_first_(head->high.half[0] >> NPUPROF_CONTEXT_BITS_, head->start) <
           npuprof_fw_since_first_(result->high.half[0] >> NPUPROF_CONTEXT_BITS_, result->start);
}

#define npuprof_fw_first_after_(head) (npuprof_fw_cells_(npuprof_fw_arena_) + npuprof_fw_oldest_)

#endif /* NPUPROF_RING_ */

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/layouts.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"
#include "record.h"
#include "event.h"

/* Reading the list of cells on the target: ticks as nanoseconds, the way from record to record,
   npuprof_clear(), npuprof_get_stats(). Tasks may record meanwhile: a record that is not finished says how
   many cells it has. May not know an output. */

/* A clock's rate. Why 32 bits on a machine of 32: nobody has a faster clock there, and arithmetic of 64 takes
   flash. */
#if UINTPTR_MAX > UINT32_MAX
typedef uint64_t npuprof_fw_rate_;
#else
typedef uint32_t npuprof_fw_rate_;
#endif

static npuprof_fw_rate_ npuprof_fw_rate_of_(const npuprof_compact_header_ *c)
{
    return (npuprof_fw_rate_)((uint64_t)c->hz_high << 32 | c->hz_low);
}

/* n / by with so many decimals, cut off, as a number without its point.
   Why by addition: products and divisions of 64 bits are calls into the compiler's library. */
static NPUPROF_NOINLINE_ uint64_t npuprof_fw_divide_(uint64_t n, npuprof_fw_rate_ by, int decimals)
{
    uint64_t result = 0;
    npuprof_fw_rate_ rest = 0;
    /* Negative steps: the quotient bit by bit, twice what it was and the next bit of n. Then the decimals:
       ten times what it was. */
    for (int step = -64; step < decimals; step++) {
        const uint64_t before = result;
        const npuprof_fw_rate_ add = rest;
        rest = (npuprof_fw_rate_)(n >> 63);
        n <<= 1;
        result = 0;
        for (int times = step < 0 ? 2 : 10; times; times--) {
            rest += add;
            result += before;
            if (rest < add || rest >= by) {
                rest -= by;
                result++;
            }
        }
    }
    return result;
}

/* Rounded down. */
static uint64_t npuprof_fw_ticks_to_ns_(uint64_t ticks)
{
    return npuprof_fw_divide_(ticks, npuprof_fw_rate_of_(npuprof_fw_arena_), 9);
}

static uint64_t npuprof_fw_first_stamp_(const npuprof_compact_header_ *c)
{
    return (uint64_t)c->first_high << 32 | c->first_low;
}
#define NPUPROF_BITS_MASK_(bits) (UINT64_MAX >> (64 - (bits)))

NPUPROF_API_ int64_t npuprof_now_ns(void)
{
    if (!npuprof_fw_is_ready_()) return 0;
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint64_t ticks = npuprof_fw_stamp_(c) - npuprof_fw_first_stamp_(c);
    return (int64_t)npuprof_fw_ticks_to_ns_(ticks & NPUPROF_BITS_MASK_(NPUPROF_CELL_STAMP_BITS_));
}

static uint32_t npuprof_fw_used_cells_(const npuprof_compact_header_ *c)
{
    if (NPUPROF_RING_) return c->cells;
    const uint32_t used = NPUPROF_LOAD_(&c->used);
    return used < c->cells ? used : c->cells;
}

static const npuprof_cell_ *npuprof_fw_cells_end_(const npuprof_compact_header_ *c)
{
    return npuprof_fw_cells_(c) + npuprof_fw_used_cells_(c);
}

/* The cell after a field and its text. */
static const npuprof_cell_ *npuprof_fw_after_field_(const npuprof_cell_ *field)
{
    return field + 1 + (NPUPROF_FIELD_LENGTH_(field->start) + 7) / 16;
}

/* The next field of a record: the first one if `at` is the head. After the last one NULL, and *end is where
   the next record may begin. */
static const npuprof_cell_ *npuprof_fw_next_field_(const npuprof_cell_ *at, bool head,
                                                   const npuprof_cell_ **end)
{
    const bool more = head ? at->ref & 1 : at->start & NPUPROF_FIELD_MORE_;
    *end = head ? at + 1 : npuprof_fw_after_field_(at);
    return more ? *end : NULL;
}

/* A record's field of that type, or NULL; *end is where the next record begins. */
static inline const npuprof_cell_ *npuprof_fw_find_field_(const npuprof_cell_ *head, uint32_t type,
                                                          const npuprof_cell_ **end)
{
    const npuprof_cell_ *found = NULL;
    const npuprof_cell_ *f = npuprof_fw_next_field_(head, true, end);
    for (; f; f = npuprof_fw_next_field_(f, false, end))
        if ((f->start & 0xFF) == type) found = f;
    return found;
}

/* Where the next record begins. */
static const npuprof_cell_ *npuprof_fw_after_record_(const npuprof_cell_ *head)
{
#if NPUPROF_RING_
    /* Why bounded: a task that is left in the middle of a record may be at it. */
    const uint32_t n = npuprof_fw_length_(head);
    const uint32_t left = (uint32_t)(npuprof_fw_cells_end_(npuprof_fw_arena_) - head);
    return head + (n - 1 < left ? n : left);
#else
    const npuprof_cell_ *end = head + (head->end ? head->end : 1);
    if (head->ref) (void)npuprof_fw_find_field_(head, 0, &end);
    return end;
#endif
}

#if NPUPROF_RING_
/* Index of the oldest cell, of the reader that is at work. */
static uint32_t npuprof_fw_oldest_;
#else
enum { npuprof_fw_oldest_ = 0 };
#endif

/* Whether a reader may begin: in a ring, what would be recorded is lost until npuprof_fw_let_go_(). False:
   another reader is at work. */
static bool npuprof_fw_hold_(npuprof_compact_header_ *c)
{
#if NPUPROF_WHEN_FULL == NPUPROF_KEEP_NEWEST
    for (;;) {
        const uint32_t used = npuprof_os_load_(&c->used), at = used & NPUPROF_RING_INDEX_;
        if (at == NPUPROF_RING_INDEX_ || !c->cells) return false;
        if (!npuprof_fw_replace_(&c->used, used, used | NPUPROF_RING_INDEX_)) continue;
        npuprof_fw_oldest_ = at;
        return true;
    }
#else
    (void)c;
    return true;
#endif
}

static void npuprof_fw_let_go_(npuprof_compact_header_ *c)
{
    (void)c;
#if NPUPROF_WHEN_FULL == NPUPROF_KEEP_NEWEST
    npuprof_os_store_(&c->used, (c->used & ~NPUPROF_RING_INDEX_) | npuprof_fw_oldest_);
#endif
}

/* The record after one, in the order of time but for those that are kept. After the last one `end`. */
static inline const npuprof_cell_ *npuprof_fw_next_record_(const npuprof_cell_ *at, const npuprof_cell_ *end)
{
    const npuprof_cell_ *const next = npuprof_fw_after_record_(at);
    if (!NPUPROF_RING_) return next;
    const npuprof_cell_ *const cells = npuprof_fw_cells_(npuprof_fw_arena_);
    const npuprof_cell_ *const first = cells + npuprof_fw_oldest_;
    if (at < first) return next < first ? next : end;
    return next < end || first == cells ? next : cells;
}

#define NPUPROF_FW_EACH_RECORD_(at, end)                                                           \
    (const npuprof_cell_ *at = npuprof_fw_cells_(npuprof_fw_arena_) + npuprof_fw_oldest_; at < end; \
     at = npuprof_fw_next_record_(at, end))

/* How many events were lost of NPUPROF_KEEP_NEWEST, if so many are there. */
static inline uint32_t npuprof_fw_overwritten_(const npuprof_compact_header_ *c, uint64_t recorded)
{
    const uint32_t all = c->lost;
    return all > recorded ? (uint32_t)(all - recorded) : 0;
}

#if NPUPROF_RING_

#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
/* Records are on their way to the sink. */
NPUPROF_API_ npuprof_result npuprof_clear(void) { return NPUPROF_ERR_UNSUPPORTED; }

#else /* NPUPROF_KEEP_NEWEST */

/* Spans that are open stay where they are, and lose their name. What is kept besides stays. */
NPUPROF_API_ npuprof_result npuprof_clear(void)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_cell_ *const cells = npuprof_fw_cells_(c);
    if (!c->cells) return NPUPROF_OK;
    if (!npuprof_fw_hold_(c)) return NPUPROF_ERR_BUSY;
    for (npuprof_cell_ *head = cells, *const end = cells + c->cells; head < end;) {
        npuprof_cell_ *const next = cells + (npuprof_fw_after_record_(head) - cells);
        const bool is_kept = (NPUPROF_LOAD_(&head->high.half[1]) & NPUPROF_CELL_OPEN_) != 0;
        if (npuprof_fw_is_event_(head) || !is_kept)
            npuprof_os_store_(&head->ref, NPUPROF_CELL_CLEARED_ | (head->ref & 1));
        head = next;
    }
    c->lost = c->lost_notes = 0;
    npuprof_fw_let_go_(c);
    return NPUPROF_OK;
}
#endif /* NPUPROF_WHEN_FULL */

#else /* !NPUPROF_RING_ */

/* A cell as nobody has taken it yet. */
static void npuprof_fw_empty_cell_(npuprof_cell_ *cell)
{
    NPUPROF_STORE_(&cell->ref, 0);
    NPUPROF_STORE_(&cell->start, 0);
    NPUPROF_STORE_(&cell->end, 0);
    NPUPROF_STORE_(&cell->high.word, 0);
}

/* Gives cleared cells back one by one, from the last, as long as nobody takes one meanwhile. */
static void npuprof_fw_give_back_cells_(npuprof_compact_header_ *c)
{
    uint32_t seen = NPUPROF_LOAD_(&c->used);
    while (seen > c->cells && !NPUPROF_REPLACE_(&c->used, &seen, c->cells)) { }
    for (uint32_t at = NPUPROF_LOAD_(&c->used), was = at; at && was == at; at--) {
        npuprof_cell_ *const cell = &npuprof_fw_cells_(c)[at - 1];
        if (NPUPROF_LOAD_(&cell->ref) != NPUPROF_CELL_CLEARED_) break;
        if (NPUPROF_LOAD_(&cell->high.half[1]) & NPUPROF_CELL_OPEN_) break;
        npuprof_fw_empty_cell_(cell);
        NPUPROF_MASKED_BEGIN_
        was = NPUPROF_LOAD_(&c->used);
        while (was == at && !NPUPROF_REPLACE_(&c->used, &was, at - 1)) { }
        NPUPROF_MASKED_END_
        if (was != at) NPUPROF_STORE_(&cell->ref, NPUPROF_CELL_CLEARED_);
        else was = at - 1;
    }
}

/* Records that are open, or not finished, stay where they are: their end is still to be written. Open ones
   lose their name. */
NPUPROF_API_ npuprof_result npuprof_clear(void)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_cell_ *const cells = npuprof_fw_cells_(c);
    const int gate = NPUPROF_LOAD_(&npuprof_gate_);
    NPUPROF_STORE_(&npuprof_gate_, INT_MIN);
    for (npuprof_cell_ *head = cells, *const end = cells + npuprof_fw_used_cells_(c); head < end;) {
        npuprof_cell_ *const next = cells + (npuprof_fw_after_record_(head) - cells);
        /* Why from the last to the first: an interrupt that reads meanwhile still finds the next record. */
        for (npuprof_cell_ *cell = NPUPROF_LOAD_(&head->ref) ? next : head; cell > head;) {
            if (--cell > head) NPUPROF_STORE_(&cell->high.word, 0);
            NPUPROF_STORE_(&cell->ref, NPUPROF_CELL_CLEARED_);
        }
        head = next;
    }
    npuprof_fw_give_back_cells_(c);
    c->lost = c->lost_notes = 0;
    NPUPROF_STORE_(&npuprof_gate_, gate);
    return NPUPROF_OK;
}

#endif /* NPUPROF_RING_ */

NPUPROF_API_ npuprof_result npuprof_get_stats(npuprof_stats *out)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const npuprof_cell_ *const end = npuprof_fw_cells_end_(c);
    if (!out) return NPUPROF_ERR_ARGUMENT;
    for (size_t i = 0; i < sizeof *out; i++) NPUPROF_STORE_((uint8_t *)out + i, 0);
    if (c->cells && !npuprof_fw_hold_(c)) return NPUPROF_ERR_BUSY;
    for NPUPROF_FW_EACH_RECORD_(at, end) {
        if (!npuprof_fw_is_event_(at)) continue;
        const uint32_t context = at->high.half[0] & (((uint32_t)1 << NPUPROF_CONTEXT_BITS_) - 1);
        out->recorded++;
        if (context >= out->threads) out->threads = context + 1;
    }
#if NPUPROF_WHEN_FULL == NPUPROF_KEEP_NEWEST
    out->lost = out->lost_by_cause[NPUPROF_LOST_OVERWRITTEN] = npuprof_fw_overwritten_(c, out->recorded);
    if (c->cells) npuprof_fw_let_go_(c);
#else
#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
    out->recorded = npuprof_fw_recorded_;
#endif
    out->lost = out->lost_by_cause[NPUPROF_LOST_FULL] = c->lost;
#endif
    out->lost_by_cause[NPUPROF_LOST_NOTES] = c->lost_notes;
    out->bytes_used = (uint64_t)(end - npuprof_fw_cells_(c)) * sizeof(npuprof_cell_);
    out->bytes_total = sizeof *c + (uint64_t)c->cells * sizeof(npuprof_cell_);
    return NPUPROF_OK;
}

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
    const uint64_t ticks = npuprof_fw_stamp_masked_(c) - npuprof_fw_first_stamp_(c);
    return (int64_t)npuprof_fw_ticks_to_ns_(ticks & NPUPROF_BITS_MASK_(NPUPROF_CELL_STAMP_BITS_));
}

static uint32_t npuprof_fw_used_cells_(const npuprof_compact_header_ *c)
{
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
    return field + 1 + ((field->start >> 8 & 0x7FFFFF) + 7) / 16;
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
static const npuprof_cell_ *npuprof_fw_find_field_(const npuprof_cell_ *head, uint32_t type,
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
    const npuprof_cell_ *end = head + (head->end ? head->end : 1);
    if (head->ref) (void)npuprof_fw_find_field_(head, 0, &end);
    return end;
}

static bool npuprof_fw_is_event_(const npuprof_cell_ *head)
{
    return head->ref && (!(head->ref & 2) || (head->ref >> 8 & 0xFF) - 1 < NPUPROF_CELL_KIND_THREAD_ - 1);
}

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

NPUPROF_API_ npuprof_result npuprof_get_stats(npuprof_stats *out)
{
    const npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const npuprof_cell_ *const end = npuprof_fw_cells_end_(c);
    if (!out) return NPUPROF_ERR_ARGUMENT;
    for (size_t i = 0; i < sizeof *out; i++) NPUPROF_STORE_((uint8_t *)out + i, 0);
    for (const npuprof_cell_ *at = npuprof_fw_cells_(c); at < end; at = npuprof_fw_after_record_(at)) {
        if (!npuprof_fw_is_event_(at)) continue;
        const uint32_t context = at->high.half[0] & (((uint32_t)1 << NPUPROF_CONTEXT_BITS_) - 1);
        out->recorded++;
        if (context >= out->threads) out->threads = context + 1;
    }
    out->lost = out->lost_by_cause[NPUPROF_LOST_FULL] = c->lost;
    out->lost_by_cause[NPUPROF_LOST_NOTES] = c->lost_notes;
    out->bytes_used = (uint64_t)(end - npuprof_fw_cells_(c)) * sizeof(npuprof_cell_);
    out->bytes_total = sizeof *c + (uint64_t)c->cells * sizeof(npuprof_cell_);
    return NPUPROF_OK;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/layouts.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"
#include "cells.h"
#include "policy.h"

/* Reading the cells on the target: ticks as nanoseconds, and npuprof_get_stats(). Tasks may record meanwhile:
   a record that is not finished says how many cells it has. May not know an output. */

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

NPUPROF_API_ int64_t npuprof_now_ns(void)
{
    if (!npuprof_fw_is_ready_()) return 0;
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint64_t ticks = npuprof_fw_stamp_in_order_(c) - npuprof_fw_first_stamp_(c);
    return (int64_t)npuprof_fw_ticks_to_ns_(ticks & NPUPROF_BITS_MASK_(NPUPROF_CELL_STAMP_BITS_));
}

NPUPROF_API_ npuprof_result npuprof_get_stats(npuprof_stats *out)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const npuprof_cell_ *const end = npuprof_fw_cells_end_(c);
    uint32_t found = 0;
    if (!out) return NPUPROF_ERR_ARGUMENT;
    for (size_t i = 0; i < sizeof *out; i++) NPUPROF_STORE_((uint8_t *)out + i, 0);
    if (c->cells && !npuprof_fw_hold_(c)) return NPUPROF_ERR_BUSY;
    for NPUPROF_FW_EACH_RECORD_(at, end) {
        if (!npuprof_fw_is_event_(at)) continue;
        const uint32_t context = npuprof_fw_context_of_(at);
        found++;
        if (context >= out->threads) out->threads = context + 1;
    }
    out->lost = out->lost_by_cause[NPUPROF_FW_LOST_] = npuprof_fw_lost_of_(c, found);
    out->recorded = npuprof_fw_recorded_of_(found);
    if (c->cells) npuprof_fw_let_go_(c);
    out->lost_by_cause[NPUPROF_LOST_NOTES] = c->lost_notes;
    out->bytes_used = (uint64_t)(end - npuprof_fw_cells_(c)) * sizeof(npuprof_cell_);
    out->bytes_total = sizeof *c + (uint64_t)c->cells * sizeof(npuprof_cell_);
    return NPUPROF_OK;
}

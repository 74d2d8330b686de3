#pragma once   /* SPDX-License-Identifier: MIT */
#include "expander.h"
#include "fields.h"

/* Names by number, and the time that a clock stood still. Both may be said after the records that they are
   about, so both are applied to the list of all records. The number of a context is that context. */

enum { NPUPROF_EXPAND_NUMBERS_ = 65536 };

/* Notes a record that says how long the clock stood still. */
static void npuprof_expand_note_sleep_(npuprof_expander_ *x, npuprof_expand_item_ *r)
{
    if (r->kind != NPUPROF_CELL_KIND_SLEPT_) return;
    r->values[0] = r->end & (UINT64_MAX >> (64 - NPUPROF_CELL_STAMP_BITS_));
    x->slept += r->values[0];
}

/* The ticks that the clock stood still in all records. Why in advance: the header's start of the trace was
   moved back by them, and the stamps were not. */
static uint64_t npuprof_expand_all_slept_(const npuprof_expander_ *x)
{
    uint64_t ticks = 0;
    bool broken;
    if (x->g->line.is_stream) return 0;                     /* its first header is of before */
    for (uint32_t at = 0; at < x->g->count; at = npuprof_expand_cell_after_(x, at, &broken)) {
        const uint32_t ref = npuprof_expand_cell_word_(x, at, 0), high = npuprof_expand_cell_half_(x, at, 1);
        if (ref == (NPUPROF_CELL_KIND_SLEPT_ << 8 | 2))
            ticks += (uint64_t)(high & 0x7FFF) << 32 | npuprof_expand_cell_word_(x, at, 2);
    }
    return ticks;
}

/* The ticks slept before a stamp of a record. Of the same tick, what is in a later cell came later. */
static uint64_t npuprof_expand_slept_before_(const npuprof_expand_item_ *sleeps, uint32_t count,
                                             uint64_t stamp, uint32_t cell)
{
    uint32_t from = 0, to = count;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        const npuprof_expand_item_ *const s = &sleeps[middle];
        if (s->start < stamp || (s->start == stamp && s->cell < cell)) from = middle + 1;
        else to = middle;
    }
    return from ? sleeps[from - 1].values[1] : 0;
}

/* Moves all stamps on by the time slept before them. A sleep itself becomes a span. sleeps: as much memory as
   the list has. */
static void npuprof_expand_move_stamps_(npuprof_expander_ *x, npuprof_expand_item_ *sleeps)
{
    uint32_t count = 0;
    uint64_t slept = 0;
    for (const npuprof_expand_item_ *r = x->list; r < x->list + x->record_count; r++) {
        if (r->kind != NPUPROF_CELL_KIND_SLEPT_) continue;
        sleeps[count] = *r;
        if (count && r->start < sleeps[count - 1].start) sleeps[count].start = sleeps[count - 1].start;
        sleeps[count++].values[1] = slept += r->values[0];
    }
    for (uint32_t i = 0; count && i < x->anchors; i++) {
        npuprof_host_anchor_ *const a = &x->anchor[i].is;
        a->ticks += npuprof_expand_slept_before_(sleeps, count, a->ticks, x->anchor[i].cell);
    }
    for (npuprof_expand_item_ *r = x->list; count && r < x->list + x->record_count; r++) {
        const bool by_host = r->kind == NPUPROF_KIND_DEVICE && (r->values[2] & NPUPROF_CELL_BY_HOST_);
        for (int i = 0; i < 2 && by_host; i++)
            r->values[i] += npuprof_expand_slept_before_(sleeps, count, r->values[i], r->cell);
        r->end += npuprof_expand_slept_before_(sleeps, count, r->end, r->cell);
        r->start += npuprof_expand_slept_before_(sleeps, count, r->start, r->cell);
        if (r->kind != NPUPROF_CELL_KIND_SLEPT_) continue;
        r->end = r->start + r->values[0];
        r->kind = NPUPROF_KIND_SPAN;
        r->name = npuprof_expand_text_(x, "slept", 5);
    }
}

/* A record that names a number or a context: that number. UINT32_MAX: it is none. */
static uint32_t npuprof_expand_named_(const npuprof_expand_item_ *r)
{
    if (r->kind == NPUPROF_CELL_KIND_THREAD_) return r->context;
    const bool is_name = r->kind == NPUPROF_CELL_KIND_NAME_ && r->values[0] < NPUPROF_EXPAND_NUMBERS_;
    return is_name ? (uint32_t)r->values[0] : UINT32_MAX;
}

static bool npuprof_expand_is_named_before_(const void *a, const void *b)
{
    const npuprof_expand_item_ *const p = (const npuprof_expand_item_ *)a;
    const npuprof_expand_item_ *const q = (const npuprof_expand_item_ *)b;
    const uint32_t n = npuprof_expand_named_(p), m = npuprof_expand_named_(q);
    if (n != m) return n < m;
    if (p->is_old || q->is_old) return p->is_old && (!q->is_old || p->end < q->end);
    return p->start != q->start ? p->start < q->start : p->cell < q->cell;
}

static uint32_t npuprof_expand_said_name_(const npuprof_expand_item_ *r)
{
    return r->kind == NPUPROF_CELL_KIND_THREAD_ ? r->name : r->category;
}

/* The name that a number had then, 0: none is known. A number's first name is that of what came before it,
   too. said: what names numbers, sorted. */
static uint32_t npuprof_expand_name_then_(const npuprof_expand_item_ *said, uint32_t count, uint32_t number,
                                          uint64_t then)
{
    uint32_t from = 0, to = count;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2, n = npuprof_expand_named_(&said[middle]);
        const uint64_t since = said[middle].is_old ? 0 : said[middle].start;
        if (n < number || (n == number && since <= then)) from = middle + 1;
        else to = middle;
    }
    if (from && npuprof_expand_named_(&said[from - 1]) == number)
        return npuprof_expand_said_name_(&said[from - 1]);
    const bool is_first = from < count && npuprof_expand_named_(&said[from]) == number &&
                          (said[from].kind == NPUPROF_CELL_KIND_THREAD_ || !said[from].values[1]);
    return is_first ? npuprof_expand_said_name_(&said[from]) : 0;
}

/* Gives the records of a number the name that it had at their start. A number without one is called by
   itself. said: as much memory as the list has. */
static void npuprof_expand_give_names_(npuprof_expander_ *x, npuprof_expand_item_ *said)
{
    char text[16];
    uint32_t count = 0;
    for (const npuprof_expand_item_ *r = x->list; r < x->list + x->record_count; r++)
        if (npuprof_expand_named_(r) != UINT32_MAX) said[count++] = *r;
    npuprof_heap_sort_(said, sizeof *said, count, npuprof_expand_is_named_before_);
    for (uint32_t i = 0; i < count; i++)
        x->names[npuprof_expand_named_(&said[i])] = npuprof_expand_said_name_(&said[i]);
    for (npuprof_expand_item_ *r = x->list; r < x->list + x->record_count; r++) {
        if (!r->number) continue;
        r->name = npuprof_expand_name_then_(said, count, r->number - 1, r->start);
        if (r->name) continue;
        const int length = snprintf(text, sizeof text, "number %u", (unsigned)r->number - 1);
        r->name = npuprof_expand_text_(x, text, (size_t)length);
    }
}

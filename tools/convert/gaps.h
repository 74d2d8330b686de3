#pragma once   /* SPDX-License-Identifier: MIT */
#include "expander.h"
#include "clock.h"

/* What a line lost, in the trace: each run of missing cells is a finished span "gap" on a track of its own,
   from the start of the last record before it to the start of the first one behind it. The cells that are
   missing began in that time. Its argument says how many they are. */

/* A stamp as a host's FINISHED record has it: ns since the trace's begin. */
static uint64_t npuprof_expand_ns_(const npuprof_expander_ *x, uint64_t ticks)
{
    const uint64_t first = x->h->first.ticks;
    return ticks > first ? npuprof_scale_(ticks - first, 1000000000u, x->h->clock_hz) : 0;
}

/* Gives a gap its place, once no stamp is moved any more. */
static void npuprof_expand_place_gap_(const npuprof_expander_ *x, npuprof_expand_item_ *r)
{
    r->values[0] = npuprof_expand_ns_(x, r->end);
    r->values[1] = npuprof_expand_ns_(x, r->start);
}

/* Begins a run of cells, which the cell `at` belongs to. *before: see npuprof_expand_read_cell_. Returns how
   many cells are missing in front of it. */
static uint32_t npuprof_expand_begin_run_(const npuprof_expander_ *x, uint32_t at, uint32_t *run,
                                          uint64_t *before)
{
    const npuprof_expand_cells_ *const g = x->g;
    uint32_t missing = 0;
    for (; *run < g->run_count && g->runs[*run].start <= at; ++*run) {
        missing += g->runs[*run].missing;
        *before = npuprof_max_(*before, g->runs[*run].ticks);
    }
    return missing;
}

/* Adds a gap to the list: in *r, whose start and context are those of the record behind it. from: the start
   of the record before. */
static void npuprof_expand_gap_(npuprof_expander_ *x, npuprof_expand_item_ *r, uint32_t missing,
                                uint64_t from)
{
    const uint64_t to = r->start;
    const uint32_t context = r->context;
    memset(r, 0, sizeof *r);
    r->start = to;
    r->context = context;
    r->kind = NPUPROF_KIND_FINISHED;
    r->missing = missing;
    r->name = npuprof_expand_text_(x, "gap", 3);
    r->category = npuprof_expand_text_(x, "npuprof", 7);
    r->track = npuprof_expand_text_(x, "gaps of the line", 16);
    r->end = npuprof_min_(from, to);       /* its beginning: in ticks, while the stamps may still be moved */
    x->record_count++;
}

/* A ring that keeps the newest counts all events there were: those that are not here were overwritten. */
static void npuprof_expand_count_overwritten_(npuprof_expander_ *x)
{
    uint64_t *const lost = &x->h->lost[NPUPROF_LOST_OVERWRITTEN];
    uint64_t here = 0;
    for (const npuprof_expand_item_ *r = x->list; r < x->list + x->record_count; r++)
        here += r->kind && r->kind < NPUPROF_KIND_COUNT && !r->missing;
    *lost -= npuprof_min_(*lost, here);
}

/* How far a stream's start was moved back beyond what the records of sleep say. */
static uint64_t npuprof_expand_unexplained_(const npuprof_expander_ *x)
{
    const npuprof_line_ *const l = &x->g->line;
    const uint64_t moved = l->start - npuprof_line_start_(&l->c);
    return l->is_stream && moved > x->slept ? moved - x->slept : 0;
}

/* Says in the trace, as npuprof_expand_warn_of_clock_() does, what the line did. */
static void npuprof_expand_say_gaps_(npuprof_expander_ *x)
{
    const uint64_t unexplained = npuprof_expand_unexplained_(x);
    char text[512], began[64] = "", strange[64] = "", moved[128] = "";
    uint32_t open = 0;
    const npuprof_line_ *const l = &x->g->line;
    const uint32_t before = x->g->missing_before, gaps = l->gaps + (before != 0);
    for (const npuprof_expand_item_ *r = x->list; gaps && r < x->list + x->record_count; r++)
        open += r->open && r->kind && npuprof_kind_nests_(r->kind);
    if (!gaps && !l->twice && !l->strange && !x->no_begin && !unexplained) return;
    if (l->strange) snprintf(strange, sizeof strange, "; %u parts are of a start without a header",
                             (unsigned)l->strange);
    if (unexplained) snprintf(moved, sizeof moved, "; the start moved back by %llu ticks in a gap: the "
                              "target slept there, or began anew", (unsigned long long)unexplained);
    if (before) snprintf(began, sizeof began, ", %u of them before the first that came", (unsigned)before);
    snprintf(text, sizeof text, "%u gaps, %u cells are missing%s; %u parts came twice; "
             "%u spans ended whose beginning is not there; %u are open, maybe because "
             "their ends are missing%s%s",
             (unsigned)gaps, (unsigned)(npuprof_line_missing_(l) + before), began,
             (unsigned)l->twice, (unsigned)x->no_begin, (unsigned)open, strange, moved);
    npuprof_expand_warn_(x, "NPUPROF_LINE", text);
}

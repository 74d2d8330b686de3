#pragma once   /* SPDX-License-Identifier: MIT */
#include "expander.h"

/* Does a firmware's clock run, and forward? A clock that stands still or goes back makes times that look
   right and are not. What is found becomes an ENVIRONMENT entry NPUPROF_NOW of the table, so every output can
   show it; the records stay. So does an entry NPUPROF_NAMES_SECTION: names that were to stay in the ELF file
   take flash. */

/* Of a context: whether its records come in the order of time. An interrupt may come in a record, behind its
   cell and before its stamp; its own records then lie behind it in the cells and before it in time. `late`
   are records that may be such ones, each before the one in front of it; `done` is the newest of those that
   are not: a later one came behind them. Nothing explains a record before that. */
enum { NPUPROF_EXPAND_LATE_ = 16 };
typedef struct npuprof_expand_order_ {
    uint64_t late[NPUPROF_EXPAND_LATE_], done, before;     /* before: start of the record before */
    uint32_t lates, behind;                                /* behind: so many in a row are not explained */
} npuprof_expand_order_;

/* Counts a record that lies before an earlier one and that no interrupt explains.
   Why two in a row, the second one later, or a hundred: other records get their stamp first and their cell
   last, so one of them lies behind those of its interrupts. */
static void npuprof_expand_check_order_(npuprof_expander_ *x, npuprof_expand_order_ *o, uint64_t start)
{
    while (o->lates && o->late[o->lates - 1] <= start) o->done = npuprof_max_(o->done, o->late[--o->lates]);
    const bool is_behind = start < o->done;
    if (is_behind && o->behind && (start > o->before || o->behind > 100)) x->back++;
    else if (start < x->h->first.ticks) x->back++;
    o->behind = is_behind ? o->behind + 1 : 0;
    o->before = start;
    if (is_behind) return;
    if (o->lates == NPUPROF_EXPAND_LATE_) o->done = npuprof_max_(o->done, o->late[--o->lates]);
    o->late[o->lates++] = start;
}

/* Checks the stamps of all records, in the order of their cells. stamps: space for two of each record, and
   one. */
static void npuprof_expand_check_clock_(npuprof_expander_ *x, uint64_t *stamps)
{
    const uint64_t longest = (UINT64_C(1) << NPUPROF_CELL_STAMP_BITS_) - (UINT64_C(1) << 40);
    const unsigned bits = x->g->c.clock_bits;
    static npuprof_expand_order_ order[256];   /* Why static: it is large for a stack. */
    uint32_t count = 0;
    memset(order, 0, sizeof order);
    stamps[count++] = x->h->first.ticks;
    for (npuprof_expand_item_ *r = x->list; r < x->list + x->record_count; r++) {
        /* Why not what is kept: it may be older than what lies before it. */
        if (x->g->line.is_stream ? !r->open : !npuprof_expand_is_ring_(&x->g->c))
            npuprof_expand_check_order_(x, &order[r->context], r->start);
        stamps[count++] = r->start;
        if (!npuprof_kind_nests_(r->kind) || r->open) continue;
        /* An end before the start looks as if the span lasted for nearly all that the bits of an end can
           say. */
        if (r->end - r->start >= longest) {
            x->back += x->elf->count != 0;         /* else it may be no span, but a counter */
            r->end = r->start;
        }
        stamps[count++] = r->end;
    }
    npuprof_elf_sort_(stamps, count);
    if (count > 2 && stamps[0] == stamps[count - 1]) x->still = count;
    if (bits >= 48) return;
    /* A narrow clock that goes back looks as if it had gone nearly once around. */
    const uint64_t period = UINT64_C(1) << bits, suspicious = 99 * period / 100;
    for (uint32_t i = 1; i < count; i++) {
        const uint64_t gap = stamps[i] - stamps[i - 1];
        if (gap >= suspicious && gap < period) x->back++;
    }
}

static void npuprof_expand_warn_(npuprof_expander_ *x, const char *name, const char *text)
{
    const uint32_t ids[2] = { npuprof_expand_text_(x, name, strlen(name)),
                              npuprof_expand_text_(x, text, strlen(text)) };
    (void)npuprof_expand_entry_(x, NPUPROF_ENTRY_ENVIRONMENT, 0, ids, sizeof ids);
}

/* Says in the trace what is wrong with the clock, if anything is. */
static void npuprof_expand_warn_of_clock_(npuprof_expander_ *x)
{
    static const char still[] = " stamps, all the same: the clock does not run";
    static const char back[] = " times the clock went back, or a gap of a period: times there are wrong";
    char text[96];
    const uint32_t count = x->still ? x->still : x->back;
    if (!count) return;
    (void)snprintf(text, sizeof text, "%u%s", (unsigned)count, x->still ? still : back);
    npuprof_expand_warn_(x, "NPUPROF_NOW", text);
}

/* Says in the trace how much flash names take that were to take none. */
static void npuprof_expand_warn_of_names_(npuprof_expander_ *x)
{
    const char *section = NULL;
    const uint64_t bytes = npuprof_elf_loaded_names_(x->elf, &section);
    char text[256];
    if (!bytes) return;
    (void)snprintf(text, sizeof text, "the section %.40s takes %u bytes of flash: the linker script needs "
                   "%.40s 0xF0000000 (INFO) : { *(%.40s) }", section, (unsigned)bytes, section, section);
    npuprof_expand_warn_(x, "NPUPROF_NAMES_SECTION", text);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/hash.h"
#include "../numbers/heap.h"
#include "../numbers/wide.h"
#include "../read/image.h"
#include "../read/args.h"
#include "../read/threads.h"
#include "../read/time.h"
#include "../read/place.h"
#include "../read/walk.h"
#include "../read/executions.h"
#include "../numbers/digits.h"
#include "../write/work.h"
#include "common.h"

/* Tables of spans: inferences, operators outside the NPU, executions of the NPU, and its operators by name.
   A new table is a function npuprof_print_...() here, with a line in NPUPROF_TABLES of public/api.h, which
   declares it: it begins and ends as these do. */

/* Host spans of a kind, one a row. */
static npuprof_result npuprof_report_print_spans_(FILE *out, uint32_t kind)
{
    npuprof_work_ *w;
    const npuprof_result refused = npuprof_report_begin_(out, &w);
    if (refused) return refused;
    npuprof_event_ ev;
    uint64_t ns;
    char trace[33], name[49];
    const bool operators = kind == NPUPROF_KIND_OPERATOR;
    fprintf(out, "%-32s  %-16s  %9s", "trace_id", "span_id", "thread.id");
    if (operators) fprintf(out, "  %-24s  %14s", "name", "operator_index");
    fprintf(out, "  %12s\n", "dur");
    npuprof_walk_spans_ it = npuprof_walk_begin_spans_(&w->walk, &w->image, 1u << kind);
    while (npuprof_walk_next_span_(&it, &ev, &ns)) {
        const uint64_t span = npuprof_image_span_id_(&w->image, ev.tid, ev.position);
        uint64_t index = 0;
        npuprof_image_trace_id_(&w->image, ev.tid, w->walk.root, trace);
        fprintf(out, "%s  %016llx  %9u  ", trace, (unsigned long long)span, (unsigned)ev.tid);
        if (operators) {
            (void)npuprof_args_find_(&w->image, &ev, "operator_index", &index);
            npuprof_report_cell_(&w->image, ev.name, name, sizeof name);
            fprintf(out, "%-24s  %14lld  ", name, (long long)index);
        }
        fprintf(out, "%12llu\n", (unsigned long long)ns);
    }
    return npuprof_report_end_(out, w);
}

NPUPROF_API_ npuprof_result npuprof_print_inferences(FILE *out)
{
    return npuprof_report_print_spans_(out, NPUPROF_KIND_INFERENCE);
}

NPUPROF_API_ npuprof_result npuprof_print_external_operators(FILE *out)
{
    return npuprof_report_print_spans_(out, NPUPROF_KIND_OPERATOR);
}

/* ---- Executions of the NPU */

static void npuprof_report_print_execution_(npuprof_device_walk_ *d, const npuprof_execution_ *e)
{
    const npuprof_image_ *const im = &npuprof_work_of_(d)->image;
    const int64_t total = e->end_ns - e->start_ns;
    char trace[33], index[24] = "";
    if (e->warm_up) return;
    npuprof_image_trace_id_(im, e->root_tid, e->root, trace);
    if (e->has_index) snprintf(index, sizeof index, "%llu", (unsigned long long)e->execution_index);
    fprintf(d->out, "%s  %016llx  %8u  %15s  %12lld", trace,
            (unsigned long long)npuprof_image_span_id_(im, e->tid, e->position), (unsigned)e->pe, index,
                (long long)total);
    if (e->measured)
        fprintf(d->out, "  %12lld  %12lld  %12lld\n", (long long)e->run_ns, (long long)(total - e->run_ns),
                (long long)e->sum_ns);
    else
        fprintf(d->out, "  %12s  %12s  %12s\n", "-", "-", "-");
}

NPUPROF_API_ npuprof_result npuprof_print_npu_executions(FILE *out)
{
    npuprof_device_walk_ d;
    memset(&d, 0, sizeof d);
    npuprof_work_ *w;
    const npuprof_result refused = npuprof_report_begin_(out, &w);
    if (refused) return refused;
    d.user = w;
    d.out = out;
    d.execution = npuprof_report_print_execution_;
    fprintf(out, "%-32s  %-16s  %8s  %15s  %12s  %12s  %12s  %12s\n", "trace_id", "span_id", "pe_index",
            "execution_index", "NPU Total", "NPU Run", "NPU IoWait", "NPU Sum");
    npuprof_work_walk_placed_(&d, 1u << NPUPROF_KIND_DEVICE);
    return npuprof_report_end_(out, w);
}

/* ---- Operators of the NPU, by name */

typedef struct npuprof_report_total_ {
    uint32_t name, order;                  /* order: of the first span of this name */
    uint64_t count, ns;                    /* count 0: the place is free */
} npuprof_report_total_;

/* A hash table of totals. */
typedef struct npuprof_report_totals_ {
    npuprof_device_walk_ walk;             /* first: callbacks of the walk get a pointer to it */
    npuprof_report_total_ *list;
    size_t count, capacity;
    uint64_t ns;                           /* of all names */
    uint64_t left_out;                     /* spans of names that had no space */
} npuprof_report_totals_;

static void npuprof_report_add_operator_(npuprof_device_walk_ *d, const npuprof_event_ *ev,
                                         const npuprof_placed_ *p, const npuprof_execution_ *within)
{
    npuprof_report_totals_ *const t = (npuprof_report_totals_ *)(void *)d;
    const npuprof_image_ *const im = &npuprof_work_of_(d)->image;
    if (!npuprof_execution_is_compute_(im, ev) || npuprof_execution_is_warm_up_(ev, within)) return;
    const uint64_t ns = (uint64_t)(p->end_ns - p->start_ns);
    size_t length;
    if (!t->capacity) {
        t->left_out++;
        return;
    }
    const char *const name = npuprof_image_text_(im, ev->name, &length);
    size_t i = npuprof_hash_text_(name, length) % t->capacity;
    while (t->list[i].count && !npuprof_image_same_text_(im, t->list[i].name, ev->name))
        i = i + 1 < t->capacity ? i + 1 : 0;
    t->ns += ns;
    if (!t->list[i].count) {
        /* Why an eighth stays free: look-ups end at a free place. */
        if (t->count + t->capacity / 8 >= t->capacity) {
            t->left_out++;
            return;
        }
        t->list[i].name = ev->name;
        t->list[i].order = (uint32_t)t->count++;
    }
    t->list[i].count++;
    t->list[i].ns += ns;
}

/* By mean, longest first; equal ones as they came. Why multiplied: a / b > c / d is a * d > c * b, which is
   exact. */
static bool npuprof_report_total_before_(const void *one, const void *other)
{
    const npuprof_report_total_ *const a = (const npuprof_report_total_ *)one;
    const npuprof_report_total_ *const b = (const npuprof_report_total_ *)other;
    const npuprof_u128_ x = npuprof_multiply_(a->ns, b->count), y = npuprof_multiply_(b->ns, a->count);
    if (x.high != y.high) return x.high > y.high;
    return x.low != y.low ? x.low > y.low : a->order < b->order;
}

/* Packs the totals to the front of the list and sorts them; returns how many there are. */
static size_t npuprof_report_sort_totals_(npuprof_report_totals_ *t)
{
    size_t used = 0;
    for (size_t i = 0; i < t->capacity; i++)
        if (t->list[i].count) t->list[used++] = t->list[i];
    npuprof_heap_sort_(t->list, sizeof *t->list, used, npuprof_report_total_before_);
    return used;
}

static void npuprof_report_print_total_(FILE *out, const npuprof_report_totals_ *t,
                                        const npuprof_report_total_ *b)
{
    char name[49];
    /* The mean in millionths of a ns, rounded half up. */
    const uint64_t part = (npuprof_scale_(b->ns % b->count, 2000000, b->count) + 1) / 2;
    const uint64_t whole = b->ns / b->count + part / 1000000, millionths = part % 1000000;
    const uint64_t share = npuprof_report_share_(b->ns, t->ns);
    npuprof_report_cell_(&npuprof_work_of_(&t->walk)->image, b->name, name, sizeof name);
    fprintf(out, "%-40s  %14llu.%06llu  %8llu  %14llu  %6llu.%02llu\n", name, (unsigned long long)whole,
            (unsigned long long)millionths, (unsigned long long)b->count, (unsigned long long)b->ns,
            (unsigned long long)(share / 100), (unsigned long long)(share % 100));
}

NPUPROF_API_ npuprof_result npuprof_print_npu_operators(FILE *out)
{
    npuprof_report_totals_ t;
    memset(&t, 0, sizeof t);
    npuprof_work_ *w;
    const npuprof_result refused = npuprof_report_begin_(out, &w);
    if (refused) return refused;
    t.walk.user = w;
    t.list = (npuprof_report_total_ *)w->room;
    t.capacity = w->room_bytes / sizeof *t.list;
    memset(t.list, 0, t.capacity * sizeof *t.list);
    t.walk.span = npuprof_report_add_operator_;
    npuprof_work_walk_placed_(&t.walk, 1u << NPUPROF_KIND_DEVICE);
    fprintf(out, "%-40s  %21s  %8s  %14s  %9s\n", "name", "average_elapsed (ns)", "count", "total (ns)",
            "share (%)");
    const size_t used = npuprof_report_sort_totals_(&t);
    for (size_t i = 0; i < used; i++) npuprof_report_print_total_(out, &t, &t.list[i]);
    if (t.left_out)
        fprintf(out, "(%llu spans of further names are in the total only)\n", (unsigned long long)t.left_out);
    return npuprof_report_end_(out, w);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/text.h"
#include "../numbers/hash.h"
#include "../numbers/wide.h"
#include "../arena/table.h"
#include "../record/memory.h"
#include "../control/lock.h"
#include "../read/image.h"
#include "../read/threads.h"
#include "../read/time.h"
#include "../read/place.h"
#include "../read/survey.h"
#include "../read/walk.h"
#include "../write/text.h"
#include "../write/work.h"
#include "../read/executions.h"
#include "../read/merge.h"
#include "../read/memory.h"

static int npuprof_report_discard_(void *user, const void *bytes, size_t count)
{
    (void)user;
    (void)bytes;
    (void)count;
    return 0;
}

/* Opens the arena for a report. NULL: there is none. Ends with npuprof_report_end_. */
static npuprof_work_ *npuprof_report_begin_(FILE *out)
{
    static const npuprof_sink nowhere = { npuprof_report_discard_, NULL };
    if (!out || !npuprof_scratch_lock_()) return NULL;
    npuprof_work_share_scratch_(&npuprof_work_area_, nowhere);
    npuprof_image_open_(&npuprof_work_area_.image);
    return &npuprof_work_area_;
}

/* Why npuprof_report_begin_() gave none. */
static npuprof_result npuprof_report_refused_(FILE *out)
{
    return out ? npuprof_scratch_result_() : NPUPROF_REFUSE_("npuprof_print_...: out is NULL");
}

static npuprof_result npuprof_report_end_(FILE *out)
{
    npuprof_scratch_unlock_();
    return ferror(out) ? NPUPROF_ERR_IO : NPUPROF_OK;
}

/* Every host span of that kind outside warm-up records, thread by thread. */
typedef struct npuprof_report_spans_ { npuprof_work_ *work; uint32_t tid, kind; } npuprof_report_spans_;
static bool npuprof_report_next_span_(npuprof_report_spans_ *it, npuprof_event_ *ev, uint64_t *duration_ns)
{
    const npuprof_image_ *im = &it->work->image;
    for (;;) {
        while (it->tid && npuprof_walk_next_(&it->work->walk, ev)) {
            if (ev->kind != it->kind || ev->unfinished || it->work->walk.warm_up) continue;
            const int64_t ns = npuprof_image_ns_(im, ev->end) - npuprof_image_ns_(im, ev->start);
            *duration_ns = ns > 0 ? (uint64_t)ns : 0;
            return true;
        }
        const uint32_t next = npuprof_image_next_tid_(im, it->tid);
        if (!next) return false;
        it->tid = next;
        npuprof_walk_begin_(&it->work->walk, im, next);
    }
}
static npuprof_report_spans_ npuprof_report_spans_of_(npuprof_work_ *w, uint32_t kind)
{
    npuprof_report_spans_ it;
    it.work = w;
    it.tid = 0;
    it.kind = kind;
    return it;
}

/* The durations of those ranks (0 = the least), exactly, without storing any: eight walks, a byte of the answer each. */
enum { NPUPROF_REPORT_RANKS_ = 12 };
static void npuprof_report_order_statistics_(npuprof_work_ *w, uint32_t kind, uint64_t rank[], unsigned ranks, uint64_t value[])
{
    static uint64_t histogram[NPUPROF_REPORT_RANKS_][256];
    npuprof_event_ ev;
    uint64_t ns;
    for (unsigned i = 0; i < ranks; i++) value[i] = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
        memset(histogram, 0, sizeof histogram);
        npuprof_report_spans_ it = npuprof_report_spans_of_(w, kind);
        while (npuprof_report_next_span_(&it, &ev, &ns))
            for (unsigned i = 0; i < ranks; i++)
                if (shift == 56 || ns >> (shift + 8) == value[i] >> (shift + 8)) histogram[i][ns >> shift & 255]++;
        for (unsigned i = 0; i < ranks; i++) {
            unsigned byte = 0;
            while (byte < 255 && rank[i] >= histogram[i][byte]) rank[i] -= histogram[i][byte++];
            value[i] |= (uint64_t)byte << shift;
        }
    }
}

NPUPROF_API_ npuprof_result npuprof_print_summary(FILE *out)
{
    static const unsigned per_mille[] = { 500, 900, 950, 970, 990, 999 };
    enum { COUNT = sizeof per_mille / sizeof *per_mille };
    npuprof_work_ *w = npuprof_report_begin_(out);
    if (!w) return npuprof_report_refused_(out);
    npuprof_event_ ev;
    uint64_t count = 0, total = 0, least = UINT64_MAX, most = 0, ns;
    npuprof_report_spans_ it = npuprof_report_spans_of_(w, NPUPROF_KIND_INFERENCE);
    while (npuprof_report_next_span_(&it, &ev, &ns)) {
        count++;
        total += ns;
        if (ns < least) least = ns;
        if (ns > most) most = ns;
    }
    fprintf(out, "================================================\n  Inference Results Summary\n"
                 "================================================\n");
    fprintf(out, "Inference counts                : %llu\n", (unsigned long long)count);
    if (count) {
        uint64_t rank[2 * COUNT], value[2 * COUNT], quantile[COUNT];
        for (unsigned i = 0; i < COUNT; i++) {
            rank[2 * i] = (count - 1) * per_mille[i] / 1000;
            rank[2 * i + 1] = rank[2 * i] + 1 < count ? rank[2 * i] + 1 : rank[2 * i];
        }
        npuprof_report_order_statistics_(w, NPUPROF_KIND_INFERENCE, rank, 2 * COUNT, value);
        for (unsigned i = 0; i < COUNT; i++) {
            const uint64_t part = (count - 1) * per_mille[i] % 1000;
            quantile[i] = value[2 * i] + ((value[2 * i + 1] - value[2 * i]) * part + 500) / 1000;
        }
        fprintf(out, "Min latency (ns)                : %llu\n", (unsigned long long)least);
        fprintf(out, "Max latency (ns)                : %llu\n", (unsigned long long)most);
        fprintf(out, "Mean latency (ns)               : %llu\n", (unsigned long long)((2 * total + count) / (2 * count)));
        fprintf(out, "Median latency (ns)             : %llu\n", (unsigned long long)quantile[0]);
        for (unsigned i = 1; i < COUNT; i++)
            fprintf(out, "%u.%u percentile Latency (ns)    : %llu\n", per_mille[i] / 10, per_mille[i] % 10, (unsigned long long)quantile[i]);
        fprintf(out, "Total latency (ns)              : %llu\n", (unsigned long long)total);
    }
    return npuprof_report_end_(out);
}
/* The bytes of a UTF-8 character that a terminal obeys or turns the text around by: controls, C1 controls, bidi marks, line separators. 0: none. */
static size_t npuprof_report_control_length_(const unsigned char *c, size_t left)
{
    if (c[0] < 0x20 || c[0] == 0x7F) return 1;
    if (left < 2) return 0;
    if ((c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0) || (c[0] == 0xD8 && c[1] == 0x9C)) return 2;
    if (left < 3 || c[0] != 0xE2) return 0;
    if (c[1] == 0x80) return c[2] == 0x8E || c[2] == 0x8F || (c[2] >= 0xA8 && c[2] <= 0xAE) ? 3 : 0;
    return c[1] == 0x81 && c[2] >= 0xA6 && c[2] <= 0xA9 ? 3 : 0;
}

/* A name as a table cell: control bytes as '?', cut to the room. */
static const char *npuprof_report_cell_(const npuprof_image_ *im, uint32_t id, char *room, size_t bytes)
{
    size_t length;
    const char *text = npuprof_image_text_(im, id, &length);
    length = npuprof_utf8_cut_(text, length, bytes - 1);
    size_t used = 0;
    for (size_t i = 0; i < length; used++) {
        const size_t harm = npuprof_report_control_length_((const unsigned char *)text + i, length - i);
        room[used] = harm ? '?' : text[i];
        i += harm ? harm : 1;
    }
    room[used] = 0;
    return room;
}

static npuprof_result npuprof_report_print_spans_(FILE *out, uint32_t kind)
{
    npuprof_work_ *w = npuprof_report_begin_(out);
    if (!w) return npuprof_report_refused_(out);
    npuprof_event_ ev;
    uint64_t ns;
    char trace[33], name[49];
    const bool operators = kind == NPUPROF_KIND_OPERATOR;
    if (operators) fprintf(out, "%-32s  %-16s  %9s  %-24s  %14s  %12s\n", "trace_id", "span_id", "thread.id", "name", "operator_index", "dur");
    else fprintf(out, "%-32s  %-16s  %9s  %12s\n", "trace_id", "span_id", "thread.id", "dur");
    npuprof_report_spans_ it = npuprof_report_spans_of_(w, kind);
    while (npuprof_report_next_span_(&it, &ev, &ns)) {
        uint64_t index = 0;
        npuprof_digits_trace_id_(&w->image, ev.tid, w->walk.root, trace);
        fprintf(out, "%s  %016llx  %9u  ", trace, (unsigned long long)npuprof_image_span_id_(&w->image, ev.tid, ev.position), (unsigned)ev.tid);
        if (operators) {
            (void)npuprof_args_find_(&w->image, &ev, "operator_index", &index);
            fprintf(out, "%-24s  %14lld  ", npuprof_report_cell_(&w->image, ev.name, name, sizeof name), (long long)index);
        }
        fprintf(out, "%12llu\n", (unsigned long long)ns);
    }
    return npuprof_report_end_(out);
}
NPUPROF_API_ npuprof_result npuprof_print_inferences(FILE *out) { return npuprof_report_print_spans_(out, NPUPROF_KIND_INFERENCE); }
NPUPROF_API_ npuprof_result npuprof_print_external_operators(FILE *out) { return npuprof_report_print_spans_(out, NPUPROF_KIND_OPERATOR); }

static void npuprof_report_print_execution_(npuprof_device_walk_ *d, const npuprof_execution_ *e)
{
    char trace[33], index[24] = "";
    if (e->warm_up) return;
    npuprof_digits_trace_id_(&npuprof_work_of_(d)->image, e->root_tid, e->root, trace);
    if (e->has_index) snprintf(index, sizeof index, "%llu", (unsigned long long)e->execution_index);
    const int64_t total = e->end_ns - e->start_ns;
    fprintf(d->out, "%s  %016llx  %8u  %15s  %12lld", trace, (unsigned long long)npuprof_image_span_id_(&npuprof_work_of_(d)->image, e->tid, e->position),
            (unsigned)e->pe, index, (long long)total);
    if (e->measured) fprintf(d->out, "  %12lld  %12lld  %12lld\n", (long long)e->run_ns, (long long)(total - e->run_ns), (long long)e->sum_ns);
    else fprintf(d->out, "  %12s  %12s  %12s\n", "-", "-", "-");
}

NPUPROF_API_ npuprof_result npuprof_print_npu_executions(FILE *out)
{
    npuprof_device_walk_ d;
    memset(&d, 0, sizeof d);
    d.user = npuprof_report_begin_(out);
    if (!d.user) return npuprof_report_refused_(out);
    d.out = out;
    d.execution = npuprof_report_print_execution_;
    fprintf(out, "%-32s  %-16s  %8s  %15s  %12s  %12s  %12s  %12s\n", "trace_id", "span_id", "pe_index", "execution_index", "NPU Total",
            "NPU Run", "NPU IoWait", "NPU Sum");
    npuprof_work_walk_devices_(&d);
    return npuprof_report_end_(out);
}

/* Totals by name, in the far half of the scratch's sorting room: a table to look names up, sorted at the end. */
typedef struct npuprof_report_total_ { uint32_t name, order; uint64_t count, ns; } npuprof_report_total_;     /* count 0: free. order: of the first spans */
typedef struct npuprof_report_totals_ { npuprof_device_walk_ walk; npuprof_report_total_ *list; size_t count, room; uint64_t ns, others; } npuprof_report_totals_;

static void npuprof_report_add_operator_(npuprof_device_walk_ *d, const npuprof_event_ *ev, const npuprof_placed_ *p, const npuprof_execution_ *within)
{
    npuprof_report_totals_ *t = (npuprof_report_totals_ *)(void *)d;
    const npuprof_image_ *im = &npuprof_work_of_(d)->image;
    if (!npuprof_execution_is_compute_(im, ev) || (within ? within->warm_up : ev->has_link && ev->link.warm_up)) return;
    const uint64_t ns = (uint64_t)(p->end_ns - p->start_ns);
    size_t length;
    const char *const name = npuprof_image_text_(im, ev->name, &length);
    size_t i = npuprof_hash_text_(name, length) % t->room;
    while (t->list[i].count && !npuprof_image_same_text_(im, t->list[i].name, ev->name)) i = i + 1 < t->room ? i + 1 : 0;
    t->ns += ns;
    if (!t->list[i].count) {
        if (t->count + t->room / 8 >= t->room) {
            t->others++;
            return;
        }
        t->list[i].name = ev->name;
        t->list[i].order = (uint32_t)t->count++;
    }
    t->list[i].count++;
    t->list[i].ns += ns;
}
/* By mean, descending, then as they came. a / b > c / d as a * d > c * b. */
static bool npuprof_report_total_before_(const npuprof_report_total_ *a, const npuprof_report_total_ *b)
{
    const npuprof_u128_ x = npuprof_multiply_(a->ns, b->count), y = npuprof_multiply_(b->ns, a->count);
    if (x.high != y.high) return x.high > y.high;
    return x.low != y.low ? x.low > y.low : a->order < b->order;
}

NPUPROF_API_ npuprof_result npuprof_print_npu_operators(FILE *out)
{
    npuprof_report_totals_ t;
    char name[49];
    memset(&t, 0, sizeof t);
    npuprof_work_ *w = npuprof_report_begin_(out);
    t.walk.user = w;
    if (!w) return npuprof_report_refused_(out);
    const size_t half = w->placed_room / 2;
    t.list = (npuprof_report_total_ *)(void *)(w->placed + (w->placed_room - half));
    t.room = half * sizeof *w->placed / sizeof *t.list;
    w->placed_room -= half;
    memset(t.list, 0, t.room * sizeof *t.list);
    t.walk.span = npuprof_report_add_operator_;
    npuprof_work_walk_devices_(&t.walk);
    fprintf(out, "%-40s  %21s  %8s  %14s  %9s\n", "name", "average_elapsed (ns)", "count", "total (ns)", "share (%)");
    size_t used = 0;
    for (size_t i = 0; i < t.room; i++)
        if (t.list[i].count) t.list[used++] = t.list[i];
    for (size_t gap = used / 2; gap; gap /= 2)
        for (size_t i = gap; i < used; i++) {
            const npuprof_report_total_ moving = t.list[i];
            size_t at = i;
            for (; at >= gap && npuprof_report_total_before_(&moving, &t.list[at - gap]); at -= gap) t.list[at] = t.list[at - gap];
            t.list[at] = moving;
        }
    for (const npuprof_report_total_ *b = t.list; b < t.list + used; b++) {
        /* Rounded half up. */
        const uint64_t part = (npuprof_scale_(b->ns % b->count, 2000000, b->count) + 1) / 2;
        const uint64_t whole = b->ns / b->count + part / 1000000, millionths = part % 1000000;
        const uint64_t share = t.ns ? (npuprof_scale_(b->ns, 20000, t.ns) + 1) / 2 : 0;
        fprintf(out, "%-40s  %14llu.%06llu  %8llu  %14llu  %6llu.%02llu\n", npuprof_report_cell_(&w->image, b->name, name, sizeof name),
                (unsigned long long)whole, (unsigned long long)millionths, (unsigned long long)b->count, (unsigned long long)b->ns,
                (unsigned long long)(share / 100), (unsigned long long)(share % 100));
    }
    if (t.others) fprintf(out, "(%llu spans of further names are in the total only)\n", (unsigned long long)t.others);
    return npuprof_report_end_(out);
}

/* Bytes as MB of 2^20, rounded half up. Why by hand: printf takes the locale's decimal point. Six decimals tell bytes apart. */
static const char *npuprof_report_mb_(uint64_t bytes, char room[32])
{
    const uint64_t part = ((bytes & 0xFFFFF) * 1000000 + 0x80000) >> 20;
    snprintf(room, 32, "%llu.%06u", (unsigned long long)(bytes >> 20) + part / 1000000, (unsigned)(part % 1000000));
    return room;
}

NPUPROF_API_ npuprof_result npuprof_print_memory(FILE *out)
{
    npuprof_work_ *w = npuprof_report_begin_(out);
    if (!w) return npuprof_report_refused_(out);
    const npuprof_image_ *im = &w->image;
    const npuprof_pool_reports_ pools = npuprof_work_collect_pools_(w);
    npuprof_merge_ merge;
    npuprof_event_ ev;
    char tag[81], mb[2][32];
    if (pools.end == pools.list) fprintf(out, "no memory records\n");
    for (const npuprof_pool_report_ *p = pools.list; p < pools.end; p++) {
        const uint64_t unused = p->peaks.held_bytes > p->peaks.used_bytes ? p->peaks.held_bytes - p->peaks.used_bytes : 0;
        const uint64_t share = p->peaks.held_bytes ? (npuprof_scale_(unused, 20000, p->peaks.held_bytes) + 1) / 2 : 0;
        fprintf(out, "Memory of %s (MB of 2^20 bytes): %llu records\n", npuprof_report_cell_(im, p->device, tag, sizeof tag), (unsigned long long)p->peaks.records);
        fprintf(out, "peak used       : %s at #%llu %s\n", npuprof_report_mb_(p->peaks.used_bytes, mb[0]), (unsigned long long)p->peaks.used_at,
                npuprof_report_cell_(im, p->used_tag, tag, sizeof tag));
        fprintf(out, "peak allocated  : %s at #%llu %s\n", npuprof_report_mb_(p->peaks.allocated_bytes, mb[0]), (unsigned long long)p->peaks.allocated_at,
                npuprof_report_cell_(im, p->allocated_tag, tag, sizeof tag));
        fprintf(out, "fragmentation   : %s (%llu.%02llu %%) allocated but not used at the peak\n", npuprof_report_mb_(unused, mb[0]),
                (unsigned long long)(share / 100), (unsigned long long)(share % 100));
        fprintf(out, "allocated drops : %llu\n", (unsigned long long)p->peaks.drops);
        fprintf(out, "%-6s\t%-80s\t%-15s\t%-15s\n", "#Trace", "#Tag", "used", "alloc");
        uint64_t index = 0, allocated = 0;
        for (npuprof_work_begin_merge_(&merge, w); npuprof_merge_next_(&merge, &ev);) {
            if (!npuprof_image_same_text_(im, p->device, ev.category)) continue;
            allocated = npuprof_pool_allocated_(&ev, allocated);
            fprintf(out, "%-6llu\t%-80s\t%-15s\t%-15s\n", (unsigned long long)index++, npuprof_report_cell_(im, ev.name, tag, sizeof tag),
                    npuprof_report_mb_(ev.value, mb[0]), npuprof_report_mb_(allocated, mb[1]));
        }
    }
    if (pools.records_left_out)
        fprintf(out, "(%llu records of further pools are left out: NPUPROF_SCRATCH_BYTES)\n",
                (unsigned long long)pools.records_left_out);
    if (pools.threads_left_out)
        fprintf(out, "(the records of %llu more threads are left out: NPUPROF_SCRATCH_BYTES)\n",
                (unsigned long long)pools.threads_left_out);
    return npuprof_report_end_(out);
}

NPUPROF_API_ npuprof_result npuprof_get_memory(const npuprof_device *device, npuprof_memory_peaks *out)
{
    static const npuprof_sink nowhere = { npuprof_report_discard_, NULL };
    npuprof_work_ *const w = &npuprof_work_area_;
    const char *const name = npuprof_record_pool_name_(device);
    npuprof_pool_report_ pool;
    npuprof_merge_ merge;
    npuprof_event_ ev;
    if (!out) return NPUPROF_REFUSE_("npuprof_get_memory: out is NULL");
    memset(out, 0, sizeof *out);
    memset(&pool, 0, sizeof pool);
    if (!npuprof_scratch_lock_()) return NPUPROF_ERR_ARENA_SIZE;
    npuprof_work_share_scratch_(w, nowhere);
    npuprof_image_open_(&w->image);
    for (npuprof_work_begin_merge_(&merge, w); npuprof_merge_next_(&merge, &ev);)
        if (npuprof_image_text_is_(&w->image, ev.category, name)) npuprof_pool_add_(&pool, &ev);
    npuprof_scratch_unlock_();
    *out = pool.peaks;
    return merge.left_out ? NPUPROF_ERR_NO_SPACE : pool.peaks.records ? NPUPROF_OK : NPUPROF_ERR_NOT_FOUND;
}

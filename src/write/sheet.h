#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/hash.h"
#include "../numbers/time.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../arena/table.h"
#include "../read/image.h"
#include "../read/cursor.h"
#include "../read/threads.h"
#include "../read/time.h"
#include "../read/place.h"
#include "../read/survey.h"
#include "../read/walk.h"
#include "../read/args.h"
#include "../read/executions.h"
#include "text.h"
#include "work.h"

/* The operators' sheet, which NPUPROF_OUTPUT_PATH=d/ writes: settings, a row for each operator, totals, with
   formulas that a spreadsheet computes. An operator is a span with the argument ne.type. Spans whose texts
   are the same are one operator; its latency is their mean. Warm-up is left out.
   tools/npuprof/report/operator_sheet.py writes the same sheet, byte for byte; a test compares them.
   Data: npuprof_sheet_, whose list and buckets lie in the upper half of the work area's space for sorting,
   of the thread that has the readers' lock. Texts are not copied: an operator keeps the place of its first
   span. */

/* The texts of an operator are its first columns. "": the span's name. */
enum { NPUPROF_SHEET_TYPE_, NPUPROF_SHEET_NAME_ = 2, NPUPROF_SHEET_WEIGHT_ = 9, NPUPROF_SHEET_TEXTS_ };
static const char npuprof_sheet_keys_[NPUPROF_SHEET_TEXTS_][17] = {
    "ne.type", "ne.post_op", "", "ne.input_names", "ne.input_shapes", "ne.input_dtypes",
    "ne.output_names", "ne.output_shapes", "ne.output_dtypes", "ne.weight_shape" };
static const char npuprof_sheet_head_[] =
    "operator type,post op,operator name,input tensor name,input shape,input dtype,output tensor name,"
    "output shape,output dtype,weight shape,weight sparse ratio,sparse support,operator latency (ms),"
    "aim to weight sparse ratio,sparse kernel pref ratio,aim to sparse latency(ms)\n";

typedef struct npuprof_sheet_text_ {
    const char *text;
    size_t length;
    bool cut;                              /* the recorder cut it to the longest length */
} npuprof_sheet_text_;

typedef struct npuprof_sheet_row_ {
    uint64_t locator;                      /* of the operator's first span */
    uint64_t count, ns;                    /* of all its spans */
    uint32_t hash, next;                   /* next: of the same bucket, index + 1 */
    uint32_t shape, pad;                   /* shape: number, from 1, of its setting; 0: it cannot be sparse */
} npuprof_sheet_row_;

typedef struct npuprof_sheet_ {
    npuprof_device_walk_ walk;             /* first: callbacks of the walk get a pointer to it */
    npuprof_sheet_row_ *list;
    uint32_t *buckets;                     /* by hash: index + 1 */
    size_t count, capacity, shapes;
    uint64_t left_out;                     /* spans of operators that had no space */
} npuprof_sheet_;

/* ---- What a span says of its operator */

static bool npuprof_sheet_is_text_(const npuprof_value_ *v)
{
    return v->type == NPUPROF_ARG_STR || v->type == NPUPROF_ARG_STR_CUT_;
}

/* The text of column i; "" if the span does not have it. */
static npuprof_sheet_text_ npuprof_sheet_operator_text_(const npuprof_image_ *im, const npuprof_event_ *ev,
                                                        unsigned i)
{
    npuprof_sheet_text_ p = { "", 0, false };
    npuprof_value_ v;
    if (i == NPUPROF_SHEET_NAME_) {
        p.text = npuprof_image_text_(im, ev->name, &p.length);
    } else if (npuprof_args_find_value_(im, ev, npuprof_sheet_keys_[i], &v) && npuprof_sheet_is_text_(&v)) {
        p.text = (const char *)v.text;
        p.length = v.length;
        p.cut = v.type == NPUPROF_ARG_STR_CUT_;
    }
    return p;
}

static bool npuprof_sheet_same_text_(npuprof_sheet_text_ a, npuprof_sheet_text_ b)
{
    return a.length == b.length && a.cut == b.cut && memcmp(a.text, b.text, a.length) == 0;
}

static bool npuprof_sheet_same_operator_(const npuprof_image_ *im, const npuprof_event_ *a,
                                         const npuprof_event_ *b)
{
    for (unsigned i = 0; i < NPUPROF_SHEET_TEXTS_; i++)
        if (!npuprof_sheet_same_text_(npuprof_sheet_operator_text_(im, a, i),
                                      npuprof_sheet_operator_text_(im, b, i))) return false;
    return true;
}

/* The share of zeros in the weight; below 0: it is not known. */
static double npuprof_sheet_sparse_ratio_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    npuprof_value_ v;
    union { uint64_t u; double d; } bits;
    if (!npuprof_args_find_value_(im, ev, "ne.sparse_ratio", &v)) return -1;
    bits.u = v.bits;
    if (v.type == NPUPROF_ARG_REAL) return bits.d >= 0 && bits.d <= 1 ? bits.d : -1;
    return (v.type == NPUPROF_ARG_INT || v.type == NPUPROF_ARG_UINT) && v.bits <= 1 ? (double)v.bits : -1;
}

/* Is it this word, in any case of letters? */
static bool npuprof_sheet_is_word_(npuprof_sheet_text_ p, const char *word)
{
    if (p.length != strlen(word) || p.cut) return false;
    for (size_t i = 0; i < p.length; i++)
        if ((p.text[i] >= 'A' && p.text[i] <= 'Z' ? p.text[i] + 32 : p.text[i]) != word[i]) return false;
    return true;
}

/* Is it a shape NxM, where N is a multiple of 4? A sparse kernel takes 4 rows at a time. */
static bool npuprof_sheet_is_by_four_(npuprof_sheet_text_ p)
{
    size_t digits = 0, rest;
    while (digits < p.length && p.text[digits] >= '0' && p.text[digits] <= '9') digits++;
    if (!digits || digits + 1 >= p.length || p.text[digits] != 'x' || p.cut) return false;
    for (rest = digits + 1; rest < p.length && p.text[rest] >= '0' && p.text[rest] <= '9'; rest++) {}
    const int tens = digits > 1 ? p.text[digits - 2] - '0' : 0;
    return rest == p.length && (tens * 10 + p.text[digits - 1] - '0') % 4 == 0;
}

/* Could a sparse kernel do it? The argument ne.sparse_support says so; without it, matrix products with a
   weight by four that is less than half zeros. */
static bool npuprof_sheet_can_be_sparse_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    npuprof_value_ v;
    const npuprof_sheet_text_ type = npuprof_sheet_operator_text_(im, ev, 0);
    const npuprof_sheet_text_ weight = npuprof_sheet_operator_text_(im, ev, NPUPROF_SHEET_WEIGHT_);
    if (npuprof_args_find_value_(im, ev, "ne.sparse_support", &v) && v.type != NPUPROF_ARG_STR_NULL_)
        return v.type == NPUPROF_ARG_BOOL && v.bits && weight.length;
    if (!npuprof_sheet_is_word_(type, "innerproduct") && !npuprof_sheet_is_word_(type, "matmul"))
        return false;
    return npuprof_sheet_is_by_four_(weight) && npuprof_sheet_sparse_ratio_(im, ev) < 0.5;
}

/* ---- Collecting operators */

/* Hash of all texts of an operator. */
static uint64_t npuprof_sheet_hash_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    uint64_t h = 0;
    for (unsigned i = 0; i < NPUPROF_SHEET_TEXTS_; i++) {
        const npuprof_sheet_text_ p = npuprof_sheet_operator_text_(im, ev, i);
        h = npuprof_hash_mix_(h ^ npuprof_hash_text_(p.text, p.length));
    }
    return h;
}

/* Adds a span of this duration to its operator, a new one if it has none. Other spans: nothing. */
static void npuprof_sheet_add_(npuprof_sheet_ *t, const npuprof_event_ *ev, uint64_t ns)
{
    const npuprof_image_ *im = &npuprof_work_of_(&t->walk)->image;
    npuprof_value_ v;
    npuprof_event_ other;
    if (!npuprof_args_find_value_(im, ev, "ne.type", &v) || !npuprof_sheet_is_text_(&v)) return;
    const uint64_t h = npuprof_sheet_hash_(im, ev);
    uint32_t *const bucket = &t->buckets[h % t->capacity], first = *bucket;
    for (uint32_t i = first; i; i = t->list[i - 1].next) {
        npuprof_sheet_row_ *const op = &t->list[i - 1];
        if (op->hash != (uint32_t)h || !npuprof_cursor_decode_at_(im, op->locator, &other)) continue;
        if (!npuprof_sheet_same_operator_(im, ev, &other)) continue;
        op->count++;
        op->ns += ns;
        return;
    }
    if (t->count == t->capacity) {
        t->left_out++;
        return;
    }
    npuprof_sheet_row_ *const op = &t->list[t->count++];
    memset(op, 0, sizeof *op);
    op->locator = ev->locator;
    op->hash = (uint32_t)h;
    op->next = first;
    op->count = 1;
    op->ns = ns;
    *bucket = (uint32_t)t->count;
}

/* A span that has a place of its own: of a device, or with stamps of the caller's. */
static void npuprof_sheet_placed_(npuprof_device_walk_ *d, const npuprof_event_ *ev, const npuprof_placed_ *p,
                                  const npuprof_execution_ *within)
{
    if (npuprof_execution_is_warm_up_(ev, within)) return;
    npuprof_sheet_add_((npuprof_sheet_ *)(void *)d, ev, (uint64_t)(p->end_ns - p->start_ns));
}

/* All spans: those of threads, and those that have places. */
static void npuprof_sheet_collect_(npuprof_sheet_ *t)
{
    npuprof_work_ *const w = npuprof_work_of_(&t->walk);
    npuprof_event_ ev;
    uint64_t ns;
    npuprof_walk_spans_ it =
        npuprof_walk_begin_spans_(&w->walk, &w->image, NPUPROF_KINDS_THAT_NEST_);
    while (npuprof_walk_next_span_(&it, &ev, &ns)) npuprof_sheet_add_(t, &ev, ns);
    t->walk.span = npuprof_sheet_placed_;
    npuprof_work_walk_placed_(&t->walk, 1u << NPUPROF_KIND_DEVICE | 1u << NPUPROF_KIND_FINISHED);
}

/* ---- Writing the sheet */

/* A cell. guarded: its first character does not make it a formula. A cut text ends in an ellipsis. */
static void npuprof_sheet_put_text_(npuprof_out_ *o, npuprof_sheet_text_ p, bool guarded)
{
    bool quoted = false;
    for (size_t i = 0; i < p.length; i++) quoted |= memchr(",\"\r\n", p.text[i], 4) != NULL;
    if (quoted) npuprof_out_puts_(o, "\"");
    if (guarded) npuprof_out_guard_(o, p.text, p.length);
    npuprof_out_escaped_(o, p.text, p.length, false);
    if (p.cut) npuprof_out_puts_(o, "\xE2\x80\xA6");
    if (quoted) npuprof_out_puts_(o, "\"");
}

/* An operator's row, number r of the sheet. The formulas look up the ratio in the settings of its shape. */
static void npuprof_sheet_put_row_(npuprof_sheet_ *t, const npuprof_sheet_row_ *op, size_t r)
{
    npuprof_out_ *const o = &npuprof_work_of_(&t->walk)->out;
    const npuprof_image_ *im = &npuprof_work_of_(&t->walk)->image;
    npuprof_event_ ev;
    char text[400];
    if (!npuprof_cursor_decode_at_(im, op->locator, &ev)) return;
    for (unsigned i = 0; i < NPUPROF_SHEET_TEXTS_; i++) {
        npuprof_sheet_put_text_(o, npuprof_sheet_operator_text_(im, &ev, i), true);
        npuprof_out_puts_(o, ",");
    }
    const double ratio = npuprof_sheet_sparse_ratio_(im, &ev);
    const unsigned hundredths = ratio < 0 ? 0 : (unsigned)(ratio * 10000 + 0.5);
    const unsigned long long ns = (2 * op->ns + op->count) / (2 * op->count), n = r, s = op->shape + 1;
    if (ratio >= 0) snprintf(text, sizeof text, "%u.%02u%%", hundredths / 100, hundredths % 100);
    npuprof_out_puts_(o, ratio >= 0 ? text : "");
    snprintf(text, sizeof text, ",%s,%llu.%06llu,", op->shape ? "true" : "", ns / 1000000, ns % 1000000);
    npuprof_out_puts_(o, text);
    if (op->shape)
        snprintf(text, sizeof text, "90%%,\"=IF(OR(N%llu=0.9,N%llu=\"\"90%%\"\"),B%llu,"
                 "IF(OR(N%llu=0.8,N%llu=\"\"80%%\"\"),C%llu,"
                 "IF(OR(N%llu=0.7,N%llu=\"\"70%%\"\"),D%llu,E%llu)))\","
                 "\"=IF(O%llu>0,M%llu/O%llu,M%llu)\"\n", n, n, s, n, n, s, n, n, s, s, n, n, n, n);
    else
        snprintf(text, sizeof text, ",,=M%llu\n", n);
    npuprof_out_puts_(o, text);
}

/* How many spans each operator is the mean of, and what was left out. */
static void npuprof_sheet_put_notes_(npuprof_sheet_ *t)
{
    npuprof_out_ *const o = &npuprof_work_of_(&t->walk)->out;
    uint64_t min = UINT64_MAX, max = 0;
    for (size_t i = 0; i < t->count; i++) {
        min = npuprof_min_(min, t->list[i].count);
        max = npuprof_max_(max, t->list[i].count);
    }
    npuprof_out_puts_(o, "\"operator latency: mean of ");
    npuprof_out_uint_(o, min);
    if (max != min) {
        npuprof_out_puts_(o, " to ");
        npuprof_out_uint_(o, max);
    }
    npuprof_out_puts_(o, " spans for each operator, warm-up left out\"\n");
    if (!t->left_out) return;
    npuprof_out_uint_(o, t->left_out);
    npuprof_out_puts_(o, " spans of further operators are left out: NPUPROF_SCRATCH_BYTES\n");
}

/* The totals of the rows from number `first` on, as formulas. */
static void npuprof_sheet_put_totals_(npuprof_sheet_ *t, unsigned long long first)
{
    npuprof_out_ *const o = &npuprof_work_of_(&t->walk)->out;
    const unsigned long long last = first + t->count - 1, at = last + 1;
    char text[400];
    static const char before[] = ",,,,,,,,,,,";
    snprintf(text, sizeof text, "%stotal latency(ms),=SUM(M%llu:M%llu),,"
             "total aim to sparse latency(ms),=SUM(P%llu:P%llu),sparse improve,"
             "\"=IF(P%llu>0,M%llu/P%llu,1)\"\n", before, first, last, first, last, at, at, at);
    npuprof_out_puts_(o, text);
    snprintf(text, sizeof text, "%ssparse support latency(ms),"
             "\"=SUMIF(O%llu:O%llu,\"\">0\"\",M%llu:M%llu)\",,"
             "aim to sparse support latency(ms),\"=SUMIF(O%llu:O%llu,\"\">0\"\",P%llu:P%llu)\"\n",
             before, first, last, first, last, first, last, first, last);
    npuprof_out_puts_(o, text);
    snprintf(text, sizeof text, "%ssparse support latency ratio,=M%llu/(M%llu+0.000001),,"
             "aim to sparse support latency ratio,"
             "\"=IF(P%llu>0,P%llu/P%llu,0)\"\n", before, at + 1, at, at, at + 1, at);
    npuprof_out_puts_(o, text);
}

/* A row of settings for each shape of a weight that can be sparse; numbers the shapes. */
static void npuprof_sheet_put_settings_(npuprof_sheet_ *t)
{
    const npuprof_image_ *im = &npuprof_work_of_(&t->walk)->image;
    npuprof_out_ *const o = &npuprof_work_of_(&t->walk)->out;
    npuprof_event_ ev, other;
    npuprof_out_puts_(o, "weight shape,90% 4x1 perf ratio,80% 4x1 perf ratio,70% 4x1 perf ratio,others\n");
    for (size_t i = 0; i < t->count; i++) {
        npuprof_sheet_row_ *const op = &t->list[i];
        if (!npuprof_cursor_decode_at_(im, op->locator, &ev) || !npuprof_sheet_can_be_sparse_(im, &ev))
            continue;
        const npuprof_sheet_text_ weight = npuprof_sheet_operator_text_(im, &ev, NPUPROF_SHEET_WEIGHT_);
        for (size_t k = 0; k < i && !op->shape; k++)
            if (t->list[k].shape && npuprof_cursor_decode_at_(im, t->list[k].locator, &other) &&
                npuprof_sheet_same_text_(weight,
                                         npuprof_sheet_operator_text_(im, &other, NPUPROF_SHEET_WEIGHT_)))
                op->shape = t->list[k].shape;
        if (op->shape) continue;
        op->shape = (uint32_t)++t->shapes;
        npuprof_sheet_put_text_(o, weight, false);
        npuprof_out_puts_(o, ",4,4,4,1\n");
    }
}

/* Writes the sheet. Returns 0 or an errno value; ENOENT: there are no operators. */
static int npuprof_write_sheet_locked_(npuprof_sink sink)
{
    npuprof_work_ *const w = npuprof_work_begin_(sink);
    npuprof_sheet_ t;
    if (!w) return ENOMEM;
    memset(&t, 0, sizeof t);
    npuprof_image_open_(&w->image);
    t.walk.user = w;
    t.capacity = w->room_bytes / (sizeof *t.list + sizeof *t.buckets);
    t.list = (npuprof_sheet_row_ *)w->room;
    t.buckets = (uint32_t *)(void *)(t.list + t.capacity);
    if (t.capacity) npuprof_sheet_collect_(&t);
    if (!t.count) {
        const int error = npuprof_work_end_(w);
        return error ? error : ENOENT;
    }
    npuprof_sheet_put_settings_(&t);
    npuprof_out_puts_(&w->out, npuprof_sheet_head_);
    for (size_t i = 0; i < t.count; i++) npuprof_sheet_put_row_(&t, &t.list[i], t.shapes + 3 + i);
    npuprof_sheet_put_totals_(&t, t.shapes + 3);
    npuprof_sheet_put_notes_(&t);
    return npuprof_work_finish_(w);
}

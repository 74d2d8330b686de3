#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../read/image.h"
#include "../read/cursor.h"
#include "../read/time.h"
#include "../read/walk.h"
#include "text.h"
#include "work.h"
#include "span_text.h"

typedef struct npuprof_csv_columns_ {
    uint32_t tid, parent_tid, root_tid, thread;    /* thread: the thread.id column, 0 = empty */
    uint64_t position, parent, root;
    bool has_parent;
    int64_t start_ns, end_ns;                      /* after the first anchor */
} npuprof_csv_columns_;

/* The columns up to the end. */
static inline void npuprof_csv_put_ids_(npuprof_work_ *w, const npuprof_csv_columns_ *row)
{
    const npuprof_image_ *im = &w->image;
    npuprof_out_ *o = &w->out;
    if (row->root_tid != w->trace_tid || row->root != w->trace_root) {
        npuprof_digits_trace_id_(im, row->root_tid, row->root, w->trace_id);
        w->trace_tid = row->root_tid;
        w->trace_root = row->root;
    }
    char *p = npuprof_out_reserve_(o, 72 + 2 * NPUPROF_DIGITS_MAX_);
    memcpy(p, w->trace_id, 32);
    p += 32;
    *p++ = ',';
    if (row->has_parent) npuprof_digits_hex_(p, npuprof_image_span_id_(im, row->parent_tid, row->parent));
    else if (im->h->traceparent[0]) memcpy(p, im->h->traceparent + 36, 16);
    if (row->has_parent || im->h->traceparent[0]) p += 16;
    *p++ = ',';
    npuprof_digits_hex_(p, npuprof_image_span_id_(im, row->tid, row->position));
    p += 16;
    *p++ = ',';
    p = npuprof_digits_int_(p, im->h->first.unix_ns + row->start_ns);
    *p++ = ',';
    p = npuprof_digits_int_(p, im->h->first.unix_ns + row->end_ns);
    o->used = (size_t)(p - o->bytes);
}
/* The columns from there to the length. */
static void npuprof_csv_put_text_(npuprof_work_ *w, const npuprof_event_ *ev, uint32_t thread)
{
    static const char *const keys[] = { "dram_base", "pe_index", "execution_index", "instruction_index", "operator_index" };
    const npuprof_image_ *im = &w->image;
    npuprof_out_ *o = &w->out;
    npuprof_out_puts_(o, ",");
    if (ev->category) npuprof_out_text_(o, im, ev->category, false);
    npuprof_out_puts_(o, ",");
    npuprof_out_text_(o, im, ev->name, false);
    npuprof_out_puts_(o, ",");
    if (thread) npuprof_out_uint_(o, thread);
    for (unsigned i = 0; i < 5; i++) {
        uint64_t value = ev->pe;
        const uint32_t type = i == 1 && ev->kind == NPUPROF_KIND_DEVICE ? (uint32_t)NPUPROF_ARG_UINT : npuprof_args_find_(im, ev, keys[i], &value);
        npuprof_out_puts_(o, ",");
        if (type == NPUPROF_ARG_INT) npuprof_out_int_(o, (int64_t)value);
        else if (type) npuprof_out_uint_(o, value);
    }
    npuprof_out_puts_(o, ",");
}
static inline void npuprof_csv_cached_row_(npuprof_work_ *w, const npuprof_span_text_ *kept, const npuprof_csv_columns_ *row)
{
    npuprof_csv_put_ids_(w, row);
    char *p = npuprof_span_text_put_(&w->out, kept);
    p = npuprof_digits_int_(p, row->end_ns - row->start_ns);
    *p++ = '\n';
    w->out.used = (size_t)(p - w->out.bytes);
}
static void npuprof_csv_row_(npuprof_work_ *w, const npuprof_event_ *ev, const npuprof_csv_columns_ *row)
{
    if (row->thread && ev->args == ev->args_end) {
        const uint64_t key = npuprof_span_text_key_(row->thread, ev->site, ev->kind);
        npuprof_span_text_ *const kept = npuprof_span_text_at_(w, key);
        bool fits = kept->key == key;
        if (!fits) {
            npuprof_out_ aside;
            npuprof_span_text_begin_(w, kept, &aside);
            npuprof_csv_put_text_(w, ev, row->thread);
            fits = npuprof_span_text_end_(w, kept, key, &aside);
        }
        if (fits) {
            npuprof_csv_cached_row_(w, kept, row);
            return;
        }
    }
    npuprof_csv_put_ids_(w, row);
    npuprof_csv_put_text_(w, ev, row->thread);
    npuprof_out_int_(&w->out, row->end_ns - row->start_ns);
    npuprof_out_puts_(&w->out, "\n");
}
/* The row of a thread's span, the one that the walk has just given. */
static inline void npuprof_csv_thread_row_(const npuprof_work_ *w, npuprof_csv_columns_ *row, uint64_t start, uint64_t end, uint64_t position)
{
    row->tid = row->parent_tid = row->root_tid = row->thread = w->walk.tid;
    row->position = position;
    row->has_parent = w->walk.has_parent;
    row->parent = w->walk.parent;
    row->root = w->walk.root;
    row->start_ns = npuprof_image_ns_(&w->image, start);
    row->end_ns = npuprof_image_ns_(&w->image, end);
    if (row->end_ns < row->start_ns) row->end_ns = row->start_ns;
}
/* The plain spans that come next, as long as their text is kept. */
static void npuprof_csv_plain_(npuprof_work_ *w)
{
    npuprof_cursor_ c = w->walk.cursor[0];
    npuprof_plain_ p;
    npuprof_csv_columns_ row;
    while (npuprof_cursor_peek_plain_(&c, &p)) {
        const uint64_t key = npuprof_span_text_key_(w->walk.tid, p.site, NPUPROF_KIND_SPAN);
        const npuprof_span_text_ *kept = npuprof_span_text_at_(w, key);
        if (kept->key != key) break;
        npuprof_walk_plain_(&w->walk, &p);
        npuprof_csv_thread_row_(w, &row, p.start, p.end, p.position);
        npuprof_csv_cached_row_(w, kept, &row);
        c.unit++;
    }
    w->walk.cursor[0].unit = c.unit;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../read/image.h"
#include "../read/cursor.h"
#include "../read/time.h"
#include "../read/args.h"
#include "../read/place.h"
#include "../read/walk.h"
#include "../read/executions.h"
#include "../numbers/digits.h"
#include "text.h"
#include "work.h"
#include "span_text.h"

/* Rows of the CSV, one for each span: ids and times, which differ from row to row, then names and arguments,
   which repeat. If no argument has a column they follow from the call site, so they are cached by it and the
   thread (span_text.h). Times are in ns since the Unix epoch.
   Data: npuprof_work_, of the thread that has the readers' lock. */

/* What a row's ids and times are made of. */
typedef struct npuprof_csv_columns_ {
    uint32_t tid, parent_tid, root_tid;
    uint32_t thread;                       /* column thread.id; 0: empty */
    uint64_t position, parent, root;       /* of the span, the span around it, and its trace's root */
    bool has_parent;
    int64_t start_ns, end_ns;              /* after the first anchor */
} npuprof_csv_columns_;

/* The columns trace_id to end. */
static inline void npuprof_csv_put_ids_(npuprof_work_ *w, const npuprof_csv_columns_ *row)
{
    const npuprof_image_ *const im = &w->image;
    npuprof_out_ *const o = &w->out;
    if (row->root_tid != w->trace_tid || row->root != w->trace_root) {
        npuprof_image_trace_id_(im, row->root_tid, row->root, w->trace_id);
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

enum { NPUPROF_CSV_INTEGERS_ = 5 };

/* The column of integers that a key of arguments has, from 1 on; 0: none. */
static uint32_t npuprof_csv_column_(npuprof_work_ *w, uint32_t key)
{
    static const char names[NPUPROF_CSV_INTEGERS_][18] = { "dram_base", "pe_index", "execution_index",
                                                           "instruction_index", "operator_index" };
    npuprof_work_key_ *const cached = &w->key_text[key % NPUPROF_KEY_TEXTS_];
    if (cached->id != key) {
        cached->id = key;
        uint32_t n = NPUPROF_CSV_INTEGERS_;
        while (n && !npuprof_image_text_is_(&w->image, key, names[n - 1])) n--;
        cached->mark = n;
    }
    return (uint32_t)cached->mark;
}

/* Notes the arguments that have a column. False: none has. */
static bool npuprof_csv_find_(npuprof_work_ *w, npuprof_args_walk_ *args,
                              npuprof_value_ found[1 + NPUPROF_CSV_INTEGERS_])
{
    npuprof_value_ v;
    uint32_t columns = 0;
    while (npuprof_args_next_(args, &v)) {
        const uint32_t column = npuprof_csv_column_(w, v.key);
        found[column] = v;
        columns |= column;
    }
    return columns != 0;
}

/* The columns cat to operator_index, with a comma on either side. A device span's pe is that of its record.
   Why not all arguments with the name of a column: a reader takes a thread's row with an operator_index
   for an operator, and one of no thread with a pe_index for a device span. */
static void npuprof_csv_put_text_(npuprof_work_ *w, const npuprof_event_ *ev, uint32_t thread,
                                  npuprof_value_ found[1 + NPUPROF_CSV_INTEGERS_])
{
    enum { PE_INDEX = 2, OPERATOR_INDEX = 5 };
    const npuprof_image_ *const im = &w->image;
    npuprof_out_ *const o = &w->out;
    const bool device = ev->kind == NPUPROF_KIND_DEVICE;
    if (device) {
        found[PE_INDEX].type = NPUPROF_ARG_UINT;
        found[PE_INDEX].bits = ev->pe;
    }
    npuprof_out_puts_(o, ",");
    if (ev->category) npuprof_out_text_(o, im, ev->category, false);
    npuprof_out_puts_(o, ",");
    npuprof_out_text_(o, im, ev->name, false);
    npuprof_out_puts_(o, ",");
    if (thread) npuprof_out_uint_(o, thread);
    for (uint32_t i = 1; i <= NPUPROF_CSV_INTEGERS_; i++) {
        npuprof_out_puts_(o, ",");
        if (!device && !(i == OPERATOR_INDEX ? ev->kind == NPUPROF_KIND_OPERATOR : thread)) continue;
        if (found[i].type == NPUPROF_ARG_INT) npuprof_out_int_(o, (int64_t)found[i].bits);
        else if (found[i].type == NPUPROF_ARG_UINT) npuprof_out_uint_(o, found[i].bits);
    }
    npuprof_out_puts_(o, ",");
}

/* The column source, with the comma before it and the end of the line: file and line of the call site. */
static void npuprof_csv_put_source_(npuprof_work_ *w, const npuprof_event_ *ev)
{
    const npuprof_site_entry_ *const site = npuprof_image_site_(&w->image, ev->site);
    npuprof_out_ *const o = &w->out;
    size_t length;
    npuprof_out_puts_(o, ",");
    if (site && site->file) {
        const char *const file = npuprof_image_text_(&w->image, site->file, &length);
        npuprof_out_puts_(o, "\"");
        npuprof_out_guard_(o, file, length);
        npuprof_out_escaped_(o, file, length, false);
        npuprof_out_puts_(o, ":");
        npuprof_out_uint_(o, site->line & ~NPUPROF_SITE_RESULTS_);
        npuprof_out_puts_(o, "\"");
    }
    npuprof_out_puts_(o, "\n");
}

/* A row whose text is cached. */
static inline void npuprof_csv_cached_row_(npuprof_work_ *w, const npuprof_span_text_ *cached,
                                           const npuprof_csv_columns_ *row)
{
    npuprof_csv_put_ids_(w, row);
    char *p = npuprof_out_reserve_(&w->out, NPUPROF_SPAN_TEXT_ROOM_);
    p = npuprof_span_text_copy_(p, cached);
    p = npuprof_digits_int_(p, row->end_ns - row->start_ns);
    memcpy(p, cached->text + cached->length, cached->last);
    p += cached->last;
    npuprof_out_take_(&w->out, p);
}

static void npuprof_csv_row_(npuprof_work_ *w, const npuprof_event_ *ev, const npuprof_csv_columns_ *row)
{
    const uint32_t kind = ev->results ? (uint32_t)NPUPROF_SPAN_TEXT_RESULTS_ : ev->kind;
    const uint64_t key = npuprof_span_text_key_(row->thread, ev->site, kind);
    npuprof_span_text_ *const cached = npuprof_span_text_at_(w, key);
    npuprof_value_ found[1 + NPUPROF_CSV_INTEGERS_];
    npuprof_out_ aside;
    memset(found, 0, sizeof found);
    npuprof_args_walk_ args = npuprof_args_begin_(&w->image, ev);
    bool fits = !npuprof_csv_find_(w, &args, found) && kind != NPUPROF_KIND_DEVICE;
    if (fits && cached->key != key) {
        npuprof_span_text_begin_(w, cached, &aside);
        npuprof_csv_put_text_(w, ev, row->thread, found);
        const size_t used = w->out.used;
        npuprof_csv_put_source_(w, ev);
        const size_t last = w->out.used - used;
        fits = npuprof_span_text_end_(w, cached, key, &aside);
        npuprof_span_text_split_(cached, (uint32_t)last);
    }
    if (fits) {
        npuprof_csv_cached_row_(w, cached, row);
        return;
    }
    npuprof_csv_put_ids_(w, row);
    npuprof_csv_put_text_(w, ev, row->thread, found);
    npuprof_out_int_(&w->out, row->end_ns - row->start_ns);
    npuprof_csv_put_source_(w, ev);
}

/* Fills in the row of the thread's span that the walk has just given. */
static inline void npuprof_csv_thread_columns_(const npuprof_work_ *w, npuprof_csv_columns_ *row,
                                               uint64_t start, uint64_t end, uint64_t position)
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

/* The fast path: writes the plain spans that come next, as long as their text is cached. */
static void npuprof_csv_plain_(npuprof_work_ *w)
{
    npuprof_plain_walk_ c = npuprof_cursor_begin_plains_(&w->walk.cursor[0]);
    npuprof_plain_ p;
    npuprof_csv_columns_ row;
    npuprof_value_ found[1 + NPUPROF_CSV_INTEGERS_];
    while (npuprof_cursor_peek_plain_(&c, &p)) {
        const uint64_t key = npuprof_span_text_key_(w->walk.tid, p.site, NPUPROF_KIND_SPAN);
        const npuprof_span_text_ *const cached = npuprof_span_text_at_(w, key);
        npuprof_args_walk_ args = { &w->image, c.at + 1, p.behind, 0, 0, 0, 0 };
        if (cached->key != key || !npuprof_cursor_plain_ended_(&c, &p)) break;
        if (args.u != p.behind && (npuprof_unit_load_id_(args.u) != NPUPROF_CONTROL_ARG_ ||
                                   npuprof_csv_find_(w, &args, found))) break;
        const uint64_t position = npuprof_cursor_plain_position_(&w->walk.cursor[0], &c);
        npuprof_walk_plain_(&w->walk, p.start, p.end, position);
        npuprof_csv_thread_columns_(w, &row, p.start, p.end, position);
        npuprof_csv_cached_row_(w, cached, &row);
        c.at = p.behind;
    }
    npuprof_cursor_end_plains_(&w->walk.cursor[0], &c);
}

/* The row of a span that has a place of its own: a device span, `within` an execution or NULL, or one with
   stamps of the caller's. Its parent is the execution, else the span that submitted it. */
static void npuprof_csv_device_(npuprof_device_walk_ *d, const npuprof_event_ *ev, const npuprof_placed_ *p,
                                const npuprof_execution_ *within)
{
    npuprof_csv_columns_ row;
    memset(&row, 0, sizeof row);
    row.tid = row.root_tid = ev->tid;
    row.position = row.root = ev->position;
    row.start_ns = p->start_ns;
    row.end_ns = p->end_ns;
    if (within) {
        row.has_parent = true;
        row.parent_tid = within->tid;
        row.parent = within->position;
        row.root_tid = within->root_tid;
        row.root = within->root;
    } else if (ev->has_link) {
        row.has_parent = true;
        row.parent_tid = row.root_tid = ev->link.slot;
        row.parent = ev->link.position;
        row.root = ev->link.root_position;
    }
    npuprof_csv_row_(npuprof_work_of_(d), ev, &row);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../read/image.h"
#include "../read/cursor.h"
#include "../read/threads.h"
#include "../read/time.h"
#include "../read/place.h"
#include "../read/survey.h"
#include "../read/walk.h"
#include "../read/executions.h"
#include "../read/memory.h"
#include "text.h"
#include "work.h"
#include "csv.h"

/* The CSV as a whole: the rows of all threads, of the placed spans (read/place.h), and behind them a row for
   the peak of each memory pool. What the work area had no space for is a last such row. */

/* A row that is no span: it has no ids, and its name is put by the caller, up to
   npuprof_csv_end_memory_(). */
static void npuprof_csv_begin_memory_(npuprof_work_ *w, int64_t ns)
{
    npuprof_out_puts_(&w->out, ",,,");
    npuprof_out_int_(&w->out, ns);
    npuprof_out_puts_(&w->out, ",");
    npuprof_out_int_(&w->out, ns);
    npuprof_out_puts_(&w->out, ",\"memory\",\"");
}

static void npuprof_csv_end_memory_(npuprof_work_ *w)
{
    npuprof_out_puts_(&w->out, "\",,,,,,,0,\n");
}

static void npuprof_csv_memory_text_(npuprof_work_ *w, uint32_t id)
{
    size_t length;
    const char *const text = npuprof_image_text_(&w->image, id, &length);
    npuprof_out_escaped_(&w->out, text, length, false);
}

static void npuprof_csv_put_left_out_(npuprof_work_ *w, uint64_t count, const char *what)
{
    if (!count) return;
    npuprof_csv_begin_memory_(w, w->image.h->first.unix_ns);
    npuprof_out_uint_(&w->out, count);
    npuprof_out_puts_(&w->out, what);
    npuprof_out_puts_(&w->out, " are left out: NPUPROF_SCRATCH_BYTES");
    npuprof_csv_end_memory_(w);
}

/* A row for the peak of each memory pool. */
static void npuprof_csv_memory_(npuprof_work_ *w)
{
    npuprof_out_ *const o = &w->out;
    if (!(w->image.kinds >> NPUPROF_KIND_MEMORY & 1)) return;
    const npuprof_pool_reports_ pools = npuprof_work_collect_pools_(w);
    for (const npuprof_pool_report_ *p = pools.list; p < pools.end; p++) {
        npuprof_csv_begin_memory_(w, w->image.h->first.unix_ns + npuprof_image_ns_(&w->image, p->used_ticks));
        size_t length;
        const char *const device = npuprof_image_text_(&w->image, p->device, &length);
        npuprof_out_guard_(o, device, length);
        npuprof_csv_memory_text_(w, p->device);
        npuprof_out_puts_(o, " used_bytes=");
        npuprof_out_uint_(o, p->peaks.used_bytes);
        npuprof_out_puts_(o, " allocated_bytes=");
        npuprof_out_uint_(o, p->peaks.held_bytes);
        npuprof_out_puts_(o, " tag=");
        npuprof_csv_memory_text_(w, p->used_tag);
        npuprof_csv_end_memory_(w);
    }
    npuprof_csv_put_left_out_(w, pools.records_left_out, " records of further pools");
    npuprof_csv_put_left_out_(w, pools.threads_left_out, " threads' memory records");
}

/* The rows of a thread's spans. */
static void npuprof_csv_thread_(npuprof_work_ *w, uint32_t tid)
{
    npuprof_event_ ev;
    npuprof_csv_columns_ row;
    npuprof_walk_begin_(&w->walk, &w->image, tid);
    for (;;) {
        if (w->walk.sources == 1) npuprof_csv_plain_(w);
        if (!npuprof_walk_next_(&w->walk, &ev)) break;
        if (!npuprof_kind_nests_(ev.kind)) continue;
        npuprof_csv_thread_columns_(w, &row, ev.start, ev.end, ev.position);
        npuprof_csv_row_(w, &ev, &row);
    }
}

/* Writes the CSV. Returns 0 or an errno value. */
static int npuprof_write_csv_locked_(npuprof_sink sink)
{
    npuprof_work_ *const w = npuprof_work_begin_(sink);
    npuprof_device_walk_ d;
    if (!w) return ENOMEM;
    npuprof_image_open_(&w->image);
    npuprof_out_puts_(&w->out,
                      "trace_id,parent_span_id,span_id,start,end,cat,name,thread.id,dram_base,pe_index,"
                               "execution_index,instruction_index,operator_index,dur,source\n");
    for (uint32_t tid = 0; (tid = npuprof_image_next_tid_(&w->image, tid)) != 0;) npuprof_csv_thread_(w, tid);
    memset(&d, 0, sizeof d);
    d.user = w;
    d.span = npuprof_csv_device_;
    npuprof_work_walk_placed_(&d, 1u << NPUPROF_KIND_DEVICE | 1u << NPUPROF_KIND_FINISHED |
                                      1u << NPUPROF_KIND_ASYNC_BEGIN);
    npuprof_csv_memory_(w);
    return npuprof_work_finish_(w);
}

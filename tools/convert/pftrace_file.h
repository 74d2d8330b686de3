#pragma once   /* SPDX-License-Identifier: MIT */
#include "pftrace.h"
#include "pftrace_event.h"
#include "pftrace_arrows.h"
#include "pftrace_attributes.h"
#include "pftrace_scene.h"

/* A .pftrace file as a whole: the process, threads, placed spans, marks and attributes.
   Why threads before placed spans: of two events at one time the viewer takes the first in the file first,
   and an arrow must begin before it ends. */

/* Describes the process, on whose track the marks are. process_descriptor.proto. */
static void npuprof_pftrace_process_(npuprof_pftrace_ *p)
{
    const npuprof_header_ *const h = p->work->image.h;
    p->process = npuprof_pftrace_number_(p, NPUPROF_PFTRACE_OF_PROCESS_, 0);
    const size_t track = npuprof_pftrace_begin_track_(p, p->process, 0);
    const size_t process = npuprof_proto_begin_(&p->event, 3);
    npuprof_proto_uint_(&p->event, 1, h->pid);
    npuprof_proto_words_(&p->event, 6, h->program[0] ? h->program : "program");
    npuprof_proto_end_(&p->event, process);
    npuprof_pftrace_end_track_(p, track);
}

/* Memory for names and packets. A packet has at most one record, which lies in a chunk, and names of it. */
static bool npuprof_pftrace_begin_buffers_(npuprof_pftrace_ *p)
{
    const npuprof_image_ *const im = &p->work->image;
    const size_t room = 2 * (size_t)im->h->chunk_bytes + 3 * (size_t)im->table_used + 65536;
    p->ties = npuprof_list_of_(sizeof(npuprof_pftrace_tie_));
    p->name_count = NPUPROF_FACT_COUNT_ + im->table_used / im->h->table_unit + 1;
    p->names_bytes = p->name_count * sizeof *p->names;
    p->buffer_bytes = 3 * room;
    p->names = (npuprof_pftrace_name_ *)npuprof_os_memory_(p->names_bytes);
    p->buffers = npuprof_os_memory_(p->buffer_bytes);
    if (!p->names || !p->buffers) return false;
    p->event.bytes = (uint8_t *)p->buffers;
    p->interned.bytes = p->event.bytes + 2 * room;
    p->event.capacity = p->interned.capacity = room;
    return true;
}

static void npuprof_pftrace_end_buffers_(npuprof_pftrace_ *p)
{
    if (p->names) npuprof_os_unmap_(p->names, p->names_bytes);
    if (p->buffers) npuprof_os_unmap_(p->buffers, p->buffer_bytes);
    npuprof_list_free_(&p->ties);
    memset(p, 0, sizeof *p);
}

/* The clocks at the beginning of the trace. Why not below 0: a target without clocks of a system begins at 0,
   and a stamp before that would be a large one. */
static void npuprof_pftrace_begin_clocks_(npuprof_pftrace_ *p)
{
    const npuprof_image_ *const im = &p->work->image;
    const npuprof_host_anchor_ *const first = &im->h->first;
    const int64_t boot = first->boot_ns + im->origin_ns, shift = boot < 0 ? -boot : 0;
    p->boot_ns = boot + shift;
    p->monotonic_ns = first->monotonic_ns + im->origin_ns + shift;
    p->unix_ns = first->unix_ns + im->origin_ns + shift;
    p->seed = im->h->seed_low ^ npuprof_hash_mix_((uint64_t)first->unix_ns ^ (uint64_t)im->h->pid << 40);
}

/* Writes the open image as a .pftrace. Returns 0 or an errno value. */
static int npuprof_pftrace_write_locked_(npuprof_sink sink)
{
    npuprof_pftrace_ *const p = &npuprof_pftrace_state_;
    npuprof_work_ *const w = p->work = npuprof_work_begin_(sink);
    if (!w) return ENOMEM;
    npuprof_image_open_(&w->image);
    npuprof_scene_ *const s = npuprof_work_scene_(w, &npuprof_pftrace_output_, p);
    int error = ENOMEM;
    if (npuprof_pftrace_begin_buffers_(p)) {
        npuprof_pftrace_begin_clocks_(p);
        npuprof_pftrace_begin_sequence_(p);
        npuprof_pftrace_process_(p);
        npuprof_scene_flows_(s);
        npuprof_pftrace_collect_submits_(p);
        if (!npuprof_list_sort_(&p->ties, npuprof_pftrace_tie_by_time_))
            p->error = ENOMEM;
        npuprof_scene_threads_(s);
        npuprof_scene_placed_(s);
        npuprof_out_fail_(&w->out, s->error);
        npuprof_pftrace_use_track_(p, p->process);
        npuprof_scene_pauses_(s, p->process);
        npuprof_pftrace_attributes_write_(p);
        npuprof_out_flush_(&w->out);
        error = p->error;
    }
    const int written = npuprof_work_end_(w);
    npuprof_pftrace_end_buffers_(p);
    return error ? error : written;
}

/* Writes the loaded image to a file, whole or not at all. Results as npuprof_dump(). */
NPUPROF_API_ npuprof_result npuprof_write_pftrace(const char *path)
{
    return npuprof_file_write_by_(path, npuprof_pftrace_write_locked_, NULL);
}

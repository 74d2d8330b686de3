#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/wide.h"
#include "../record/memory.h"
#include "../control/lock.h"
#include "../read/image.h"
#include "../read/survey.h"
#include "../read/merge.h"
#include "../read/memory.h"
#include "../write/work.h"
#include "common.h"

/* Memory pools: the printed report, and the peaks of one pool for the program. What counts as a pool, and how
   its peaks come about, is in read/memory.h. */

/* Bytes as MB of 2^20, in `text`, rounded half up to six decimals, which tell single bytes apart. */
static const char *npuprof_report_mb_(uint64_t bytes, char text[32])
{
    const uint64_t part = ((bytes & 0xFFFFF) * 1000000 + 0x80000) >> 20;
    snprintf(text, 32, "%llu.%06u", (unsigned long long)(bytes >> 20) + part / 1000000,
             (unsigned)(part % 1000000));
    return text;
}

static void npuprof_report_print_peak_(FILE *out, const npuprof_image_ *im, const char *what, uint64_t bytes,
                                       uint64_t at, uint32_t tag_id)
{
    char tag[81], mb[32];
    fprintf(out, "%-16s: %s at #%llu %s\n", what, npuprof_report_mb_(bytes, mb), (unsigned long long)at,
            npuprof_report_cell_(im, tag_id, tag, sizeof tag));
}

/* The lines above a pool's records. */
static void npuprof_report_print_pool_(FILE *out, const npuprof_image_ *im, const npuprof_pool_report_ *p)
{
    const npuprof_memory_peaks *const peaks = &p->peaks;
    const uint64_t held = peaks->held_bytes, used = peaks->used_bytes, unused = held > used ? held - used : 0;
    const uint64_t share = npuprof_report_share_(unused, held);
    char name[81], mb[32];
    npuprof_report_cell_(im, p->device, name, sizeof name);
    fprintf(out, "Memory of %s (MB of 2^20 bytes): %llu records\n", name, (unsigned long long)peaks->records);
    npuprof_report_print_peak_(out, im, "peak used", used, peaks->used_at, p->used_tag);
    npuprof_report_print_peak_(out, im, "peak allocated", peaks->allocated_bytes, peaks->allocated_at,
                               p->allocated_tag);
    fprintf(out, "fragmentation   : %s (%llu.%02llu %%) allocated but not used at the peak\n",
            npuprof_report_mb_(unused, mb), (unsigned long long)(share / 100),
                (unsigned long long)(share % 100));
    fprintf(out, "allocated drops : %llu\n", (unsigned long long)peaks->drops);
}

/* A pool's records, one a row, in the order of time over all threads. */
static void npuprof_report_print_pool_records_(FILE *out, npuprof_work_ *w, const npuprof_pool_report_ *p)
{
    const npuprof_image_ *const im = &w->image;
    npuprof_merge_ merge;
    npuprof_event_ ev;
    uint64_t index = 0, allocated = 0;
    char tag[81], mb[2][32];
    fprintf(out, "%-6s\t%-80s\t%-15s\t%-15s\n", "#Trace", "#Tag", "used", "alloc");
    for (npuprof_work_begin_merge_(&merge, w); npuprof_merge_next_(&merge, &ev);) {
        if (!npuprof_image_same_text_(im, p->device, ev.category)) continue;
        allocated = npuprof_pool_allocated_(&ev, allocated);
        npuprof_report_cell_(im, ev.name, tag, sizeof tag);
        fprintf(out, "%-6llu\t%-80s\t%-15s\t%-15s\n", (unsigned long long)index++, tag,
                npuprof_report_mb_(ev.value, mb[0]), npuprof_report_mb_(allocated, mb[1]));
    }
}

NPUPROF_API_ npuprof_result npuprof_print_memory(FILE *out)
{
    npuprof_work_ *w;
    const npuprof_result refused = npuprof_report_begin_(out, &w);
    if (refused) return refused;
    const npuprof_pool_reports_ pools = npuprof_work_collect_pools_(w);
    if (pools.end == pools.list) fprintf(out, "no memory records\n");
    for (const npuprof_pool_report_ *p = pools.list; p < pools.end; p++) {
        npuprof_report_print_pool_(out, &w->image, p);
        npuprof_report_print_pool_records_(out, w, p);
    }
    if (pools.records_left_out)
        fprintf(out, "(%llu records of further pools are left out: NPUPROF_SCRATCH_BYTES)\n",
                (unsigned long long)pools.records_left_out);
    if (pools.threads_left_out)
        fprintf(out, "(the records of %llu more threads are left out: NPUPROF_SCRATCH_BYTES)\n",
                (unsigned long long)pools.threads_left_out);
    return npuprof_report_end_(out, w);
}

NPUPROF_API_ npuprof_result npuprof_get_memory(const npuprof_device *device, npuprof_memory_peaks *out)
{
    npuprof_work_ *w;
    const char *const name = npuprof_record_pool_name_(device);
    npuprof_pool_report_ pool;
    npuprof_merge_ merge;
    npuprof_event_ ev;
    if (!out) return NPUPROF_REFUSE_("npuprof_get_memory: out is NULL");
    memset(out, 0, sizeof *out);
    memset(&pool, 0, sizeof pool);
    const npuprof_result refused = npuprof_report_open_(&w);
    if (refused) return refused;
    for (npuprof_work_begin_merge_(&merge, w); npuprof_merge_next_(&merge, &ev);)
        if (npuprof_image_text_is_(&w->image, ev.category, name)) npuprof_pool_add_(&pool, &ev);
    (void)npuprof_work_end_(w);
    npuprof_reader_unlock_();
    *out = pool.peaks;
    return merge.left_out ? NPUPROF_ERR_NO_SPACE : pool.peaks.records ? NPUPROF_OK : NPUPROF_ERR_NOT_FOUND;
}

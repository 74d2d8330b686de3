#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/api.h"
#include "../os/common.h"
#include <string.h>

/* NPUPROF_NO_REPORTS: this part stands in place of the others of this room. A program that prints a report
   still links; it gets a result and the sentence that says what to do.
   Owns no data. */

/* ---- What all of them return */

static npuprof_result npuprof_report_left_out_(void)
{
    return NPUPROF_LEFT_OUT_("NPUPROF_NO_REPORTS leaves the reports out; dump the trace, and use "
                             "`npuprof.py report`");
}

#define NPUPROF_LEFT_OUT_REPORT_(name)                  \
    NPUPROF_API_ npuprof_result name(FILE *out)         \
    {                                                   \
        (void)out;                                      \
        return npuprof_report_left_out_();              \
    }
NPUPROF_TABLES(NPUPROF_LEFT_OUT_REPORT_)
NPUPROF_LEFT_OUT_REPORT_(npuprof_print_bench)
#undef NPUPROF_LEFT_OUT_REPORT_

NPUPROF_API_ npuprof_result npuprof_get_memory(const npuprof_device *device, npuprof_memory_peaks *out)
{
    (void)device;
    if (!out) return NPUPROF_REFUSE_("npuprof_get_memory: out is NULL");
    memset(out, 0, sizeof *out);
    return npuprof_report_left_out_();
}

NPUPROF_API_ npuprof_result npuprof_bench(const npuprof_bench_desc *desc, npuprof_bench_result *out)
{
    (void)desc;
    if (!out) return NPUPROF_REFUSE_("npuprof_bench: out is NULL");
    memset(out, 0, sizeof *out);
    return npuprof_report_left_out_();
}

NPUPROF_API_ void npuprof_bench_reset(void)
{
}

NPUPROF_API_ size_t npuprof_bench_size(void)
{
    return 0;
}

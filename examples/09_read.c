/* Spans handed back while the program runs, as an adapter to a runtime's own profiler wants them: each once,
   on another clock, and what was lost is counted.
   SPDX-License-Identifier: MIT
   Build: cc -I.. 09_read.c */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

typedef struct adapter {
    npuprof_cursor cursor;           /* all zero: from the beginning of the trace */
    int64_t offset_ns;               /* the runtime's clock, here CLOCK_MONOTONIC, less npuprof_now_ns() */
    uint64_t error_ns, lost;
} adapter;

/* One span. What must outlive this call is copied. */
static bool hand_over(void *user, const npuprof_read_span *span)
{
    const adapter *const a = (const adapter *)user;
    const uint64_t error_ns = span->error_ns == UINT64_MAX ? UINT64_MAX : span->error_ns + a->error_ns;
    printf("%s %s: at %" PRId64 " ns, for %" PRId64 " ns, +- %" PRIu64 " ns\n", span->track, span->name,
           span->start_ns + a->offset_ns, span->end_ns - span->start_ns, error_ns);
    for (size_t i = 0; i < span->arg_count; i++)
        if (span->args[i].type == NPUPROF_ARG_INT)
            printf("    %s = %" PRId64 "\n", span->args[i].key, span->args[i].value.i);
    return true;                     /* false: the next read goes on behind this one */
}

static void flush_events(adapter *a)
{
    npuprof_read_result counts = { .struct_size = sizeof counts };
    const npuprof_result result = npuprof_read(&a->cursor, NPUPROF_READ_SPANS, hand_over, a, &counts);
    a->lost += counts.lost;
    if (result != NPUPROF_OK) printf("%s\n", npuprof_result_string(result));
    printf("%" PRIu64 " spans, %" PRIu64 " are open\n", counts.spans, counts.open);
}

int main(void)
{
    adapter a = { .lost = 0 };
    int64_t theirs, ours;
    uint64_t bracket;
    npuprof_start(1);
    PROF_THREAD_NAME("main");
    if (npuprof_clock_pair(CLOCK_MONOTONIC, &theirs, &ours, &bracket) != NPUPROF_OK) return 1;
    a.offset_ns = theirs - ours;
    a.error_ns = (bracket + 1) / 2;
    {
        PROF_SCOPE("model");
        for (int i = 0; i < 2; i++) {
            PROF_SCOPE_ARGS("ops", "conv", PROF_ARGS(PROF_INT("layer", i)));
        }
        flush_events(&a);            /* both conv; the model is open */
    }
    flush_events(&a);                /* the model */
    printf("%" PRIu64 " lost\n", a.lost);
    npuprof_read_end(&a.cursor);
    return 0;
}

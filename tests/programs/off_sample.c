/* Functions with every macro in them. Built with -DNPUPROF_OFF and with -DTEST_PLAIN, where the macros are
   not there at all, the object files must hold the same instructions. The names all hold "zebra", to be
   searched for.
   SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#ifndef TEST_PLAIN
#include "npuprof.h"
#include "npuprof_npu.h"
#else
#define PROF_SCOPE(name)
#define PROF_SCOPE_CAT(cat, name)
#define PROF_SCOPE_ARGS(cat, name, args)
#define PROF_SCOPE_LEVEL(level, cat, name, args)
#define PROF_WAIT(cat, name)
#define PROF_FUNCTION()
#define PROF_BLOCK(cat, name)
#define PROF_RECORD(name)
#define PROF_RECORD_WARM_UP(name)
#define PROF_INFERENCE(name)
#define PROF_OPERATOR(index, name)
#define PROF_PHASES(name)
#define PROF_NEXT(name)
#define PROF_BEGIN(cat, name)
#define PROF_END()
#define PROF_RESULT(...)
#define PROF_RESULT_LEVEL(level, ...)
#define PROF_FLOW_OUT(id)
#define PROF_FLOW_IN(id)
#define PROF_INSTANT(cat, name, args)
#define PROF_COUNTER(name, value)
#define PROF_MEMORY(device, used, allocated, tag)
#define PROF_ALLOC(device, bytes, tag)
#define PROF_FREE(device, bytes, tag)
#define PROF_THREAD_NAME(name)
#define WITH_BASE_PROFILER(device, name, cat, args, ...) { __VA_ARGS__; }
#define WITH_BASE_PROFILER_LEVEL(level, device, name, cat, args, ...) { __VA_ARGS__; }
#define PROF_NPU_SCOPE(npu, stream, name, cat, args)
#define PROF_NO_AUTO
#define WITH_NPU_PROFILER(npu, stream, name, cat, args, ...) { __VA_ARGS__; }
#define WITH_NPU_PROFILER_LEVEL(level, npu, stream, name, cat, args, ...) { __VA_ARGS__; }
#endif /* TEST_PLAIN */

int convolve(const int8_t *in, int8_t *out, int n, int k);
int drive(volatile uint32_t *registers, int jobs, const char *label);
double kernel(const double *v, size_t n);
int escape(int n);
int side_effects(int *counter);
int evaluated_never(void);
int evaluated_at_run_time(int n);
int kernels(void *npu, int n, void *queue);
#ifdef TEST_WITH_API
int with_api(int n);
#endif

int convolve(const int8_t *in, int8_t *out, int n, int k)
{
    PROF_FUNCTION();
    PROF_SCOPE_ARGS("zebra category", "zebra convolve",
                    PROF_ARGS(PROF_ARG("zebra n", n), PROF_REAL("zebra k", k)));
    int sum = 0;
    PROF_PHASES("zebra load");
    for (int i = 0; i < n; i++) {
        PROF_SCOPE("zebra row");
        int acc = 0;
        for (int j = 0; j < k; j++) acc += in[i + j] * (j + 1);
        out[i] = (int8_t)(acc >> 4);
        sum += acc;
    }
    PROF_NEXT("zebra store");
    for (int i = 0; i < n; i++) sum ^= out[i];
    PROF_COUNTER("zebra sum", sum);
    return sum;
}

int drive(volatile uint32_t *registers, int jobs, const char *label)
{
    PROF_RECORD(label);
    PROF_RECORD_WARM_UP("zebra warm up");
    PROF_THREAD_NAME(label);
    int done = 0;
    for (int i = 0; i < jobs; i++) {
        PROF_INFERENCE("zebra inference");
        PROF_OPERATOR(i, label);
        WITH_BASE_PROFILER(NULL, "zebra submit", "zebra category", PROF_ARGS(PROF_STR("zebra label", label)),
                           registers[0] = (uint32_t)i);
        PROF_FLOW_OUT(i);
        PROF_BEGIN("zebra category", label);
        while (!(registers[1] & 1u)) {
            PROF_INSTANT("zebra category", "zebra poll", PROF_NO_ARGS);
            if (registers[1] & 2u) return -1;
        }
        PROF_RESULT(PROF_INT("zebra result", evaluated_never()));
        PROF_RESULT_LEVEL(2, PROF_INT("zebra result", evaluated_never()));
    PROF_END();
        WITH_BASE_PROFILER_LEVEL(2, NULL, label, "zebra category", PROF_NO_ARGS,
                                 if (registers[2] == 7) break; done += (int)registers[2]);
        PROF_FLOW_IN(i);
        PROF_MEMORY(NULL, (uint64_t)done, 2u, "zebra tag");
        PROF_ALLOC(NULL, (uint64_t)done, label);
        PROF_FREE(NULL, (uint64_t)done, "zebra tag");
    }
    return done;
}

double kernel(const double *v, size_t n)
{
    PROF_SCOPE_CAT("zebra category", "zebra kernel");
    PROF_SCOPE_LEVEL(2, "zebra category", "zebra detail",
                     PROF_ARGS(PROF_UINT("zebra n", n), PROF_BOOL("zebra even", n % 2 == 0)));
    double s = 0;
    for (size_t i = 0; i < n; i++) s += v[i] * v[i];
    PROF_COUNTER("zebra s", s);
    return s;
}

PROF_NO_AUTO int escape(int n)
{
    int r = 1;
    for (int i = 0; i < n; i++) {
        PROF_SCOPE("zebra loop");
        PROF_WAIT("zebra category", "zebra wait");
        if (i == 3) continue;
        if (i == 7) goto out;
        r *= i + n;
        PROF_BLOCK("zebra category", "zebra block") { r ^= i; }
        if (r & 1) PROF_BLOCK("zebra category", "zebra odd") r += 3;
        PROF_BLOCK("zebra category", "zebra loop in a block") {
            for (int j = 0; j < n; j++) r += evaluated_at_run_time(j);
            if (r == 77) return r;
        }
        if (r > 100000) { PROF_SCOPE("zebra big"); return r; }
    }
out:
    return r + 1;
}

/* Arguments are never evaluated when off. */
int side_effects(int *counter)
{
    PROF_SCOPE_ARGS("zebra category", "zebra effects", PROF_ARGS(PROF_INT("zebra n", evaluated_never())));
    PROF_COUNTER("zebra counter", (*counter)++);
    PROF_INSTANT("zebra category", "zebra i", PROF_ARGS(PROF_INT("zebra n", ++*counter)));
    return *counter;
}

int kernels(void *npu, int n, void *queue)
{
    for (int i = 0; i < n; i++) {
        WITH_NPU_PROFILER((npuprof_npu *)npu, queue, "zebra kernel", "zebra category",
                          PROF_ARGS(PROF_INT("zebra i", i)), n += i; if (n == 7) continue;);
        PROF_NPU_SCOPE((npuprof_npu *)npu, queue, "zebra scope", "zebra category", PROF_NO_ARGS);
        WITH_NPU_PROFILER_LEVEL(2, (npuprof_npu *)npu, i, "zebra detail", "zebra category", PROF_NO_ARGS,
                                n ^= i; if (n == 8) return 1;);
    }
    return n + (queue != NULL) + (npu != NULL);
}

#ifdef TEST_WITH_API
/* Every function; what a stub fills is not used, so that nothing of it is left either. */
int with_api(int n)
{
#ifndef TEST_PLAIN
    npuprof_sink sink = { NULL, NULL };
    npuprof_stats stats;
    npuprof_npu npu;
    uint64_t ticks, error_ns;
    int64_t ns;
#define Z(call) do { if ((call) != NPUPROF_OK) n = 0; } while (0)
    Z(npuprof_init(NULL));
    npuprof_start(n);
    npuprof_metadata("zebra key", "zebra value");
    npuprof_async_begin("zebra category", "zebra async", (uint64_t)n);
#endif
    n = n * 3 + 1;
#ifndef TEST_PLAIN
    npuprof_async_end((uint64_t)n);
    npuprof_span("zebra track", "zebra category", "zebra span", n, n + 1, PROF_ARGS(PROF_INT("zebra n", n)));
    Z(npuprof_set_categories("zebra"));
    if (npuprof_is_recording() || npuprof_is_recording_level(2)) npuprof_poll();
    npuprof_pause();
    npuprof_resume();
    npuprof_clear();
    npuprof_stop();
    Z(npuprof_dump("zebra.json"));
    Z(npuprof_flush());
    Z(npuprof_write_json(sink));
    Z(npuprof_write_image(sink));
    npuprof_get_stats(&stats);
    if (npuprof_now_ns()) n = 0;
    if (!npuprof_result_string(NPUPROF_OK)) n = 0;
#ifndef NPUPROF_FREESTANDING
    npuprof_bench_desc bench = { "zebra", NULL, 0, 0, 0, 0, NULL, { NULL, NULL, NULL } };
    npuprof_bench_result result;
    npuprof_memory_peaks peaks;
#define Z_PRINTS(name) Z(name(NULL));
    NPUPROF_TABLES(Z_PRINTS)
    Z(npuprof_get_memory(NULL, &peaks));
    Z(npuprof_bench(&bench, &result));
    npuprof_bench_reset();
    if (npuprof_bench_size()) n = 0;
    Z(npuprof_print_bench(NULL));
    if (npuprof_npu_clock(&npu).read) n = 0;
    npuprof_instant("zebra category", "zebra instant", PROF_ARGS(PROF_INT("zebra n", n)));
    npuprof_counter_int("zebra int", n);
    npuprof_counter_real("zebra real", 0.5);
    npuprof_cursor cursor = { 0, 0, NULL, { 0 } };
    npuprof_read_result seen;
    uint64_t place = 0, bracket;
    int64_t other, ours;
    Z(npuprof_read(&cursor, NPUPROF_READ_SPANS, NULL, &stats, &seen));
    npuprof_read_end(&cursor);
    Z(npuprof_read_anchors(1, &place, NULL, &stats));
    Z(npuprof_clock_pair(0, &other, &ours, &bracket));
#else /* NPUPROF_FREESTANDING */
    Z(npuprof_task("zebra", 1));
    Z(npuprof_name(1, "zebra"));
    npuprof_switch(0, 1);
    npuprof_enter(0, 1);
    npuprof_leave(0);
    npuprof_count(1, 2);
    npuprof_tick();
    npuprof_slept(3);
#endif /* !NPUPROF_FREESTANDING */
    Z(npuprof_npu_open(&npu, NULL));
    Z(npuprof_npu_read(&npu, &ticks));
    if (npuprof_npu_extend(&npu, 1)) n = 0;
    Z(npuprof_npu_sync(&npu));
    Z(npuprof_npu_host_ns(&npu, ticks, &ns, &error_ns));
    Z(npuprof_npu_drain(&npu));
    npuprof_npu_span(&npu, 0, "zebra", "zebra", 1, 2, PROF_NO_ARGS);
    if (npuprof_npu_job(&npu) != 1) n = 0;
    npuprof_npu_set_job(&npu, 1);
    if (npuprof_npu_begin(&npu, 1, "zebra", "zebra", PROF_NO_ARGS)) n = 0;
    Z(npuprof_npu_end(&npu, 1));
    Z(npuprof_npu_end_args(&npu, 1, PROF_NO_ARGS));
    Z(npuprof_npu_set_job_of(&npu, 1, 1));
    n += (int)npuprof_npu_set_correlation((uint64_t)n);
    Z(npuprof_npu_anchor(&npu, 1, 2, 3));
    Z(npuprof_npu_feed(&npu, 0, "zebra", 0));
    npuprof_npu_set_stamp_offset(&npu, 1);
    npuprof_npu_set_job_records(&npu, 1);
    npuprof_npu_lost(&npu, 1);
    npuprof_npu_instant(&npu, 0, "zebra", "zebra", 1, PROF_NO_ARGS);
    npuprof_npu_value(&npu, "zebra", 1, 2);
    (void)npuprof_npu_complete(&npu, 1, 0, "zebra", "zebra", 1, 2, PROF_NO_ARGS, true);
    (void)npuprof_npu_complete_host(&npu, 1, 0, "zebra", "zebra", 1, 2, PROF_NO_ARGS, true);
    if (npuprof_npu_extend_stamp(&npu, 1, 32, 0) != 1) n = 0;
    if (npuprof_npu_fault(NULL)) n = 0;
    npuprof_npu_close(&npu);
#endif /* !TEST_PLAIN */
    return n;
}
#endif /* TEST_WITH_API */

/* Every macro and function of npuprof.h once, as C99 to C17 and C++11 on; built in many ways by
   test_compile.py and run once.
   SPDX-License-Identifier: MIT */
#ifdef TEST_INSIDE_EXTERN_C
extern "C" {
#include <stddef.h>
#endif
#ifdef TEST_WITH_NOW
#ifdef __cplusplus
extern "C"
#endif
unsigned test_now(void);
#define NPUPROF_NOW() test_now()
#define NPUPROF_NOW_HZ 1000000
#endif
#include "npuprof.h"
#ifdef TEST_TWICE
#include "npuprof.h"
#endif
#ifdef TEST_INSIDE_EXTERN_C
}
#endif

#define TWO_SCOPES(a, b) PROF_SCOPE(a); PROF_SCOPE(b)

int every_macro(int n, char *run_time_name, double x, float f, bool b, unsigned long long u,
                unsigned char small);

int every_macro(int n, char *run_time_name, double x, float f, bool b, unsigned long long u,
                unsigned char small)
{
    PROF_FUNCTION();
    PROF_SCOPE("scope");
    PROF_SCOPE("a second in the same block");
    PROF_SCOPE_CAT("cat", "scope cat");
    PROF_SCOPE_ARGS("cat", "scope args",
                    PROF_ARGS(PROF_INT("n", n), PROF_UINT("u", u), PROF_REAL("x", x), PROF_BOOL("b", b),
                                                    PROF_STR("s", run_time_name), PROF_INT("small", small),
                                                    PROF_REAL("f", f)));
    PROF_SCOPE_ARGS("cat", "no args", PROF_NO_ARGS);
    PROF_SCOPE_ARGS("cat", "no list");
    PROF_WAIT("cat", "wait");
#ifndef NPUPROF_NAMES_SECTION
    PROF_SCOPE_ARGS(NULL, "no category", PROF_ARGS(PROF_ARG("n", n), PROF_ARG("u", u), PROF_ARG("b", b),
                                                   PROF_ARG("s", "literal")));
#endif
    PROF_INSTANT("cat", "no list");
    PROF_SCOPE_LEVEL(2, "cat", "level", PROF_ARGS(PROF_BOOL("positive", n > 0)));
    TWO_SCOPES("one", "two");
    PROF_BLOCK("cat", "block") {
        PROF_BLOCK("cat", "inner") n++;
    }
    npuprof_device device = { "npu", NULL, NULL, false };
    for (int i = 0; i < n; i++) {
        PROF_RECORD(run_time_name);
        PROF_RECORD_WARM_UP("warm up");
        PROF_INFERENCE(run_time_name);
        PROF_INFERENCE("literal");
        PROF_OPERATOR(i, "operator");
        PROF_PHASES("one");
        n -= i;
        PROF_NEXT("two");
        {
            PROF_PHASES("nested one");
            PROF_NEXT("nested two");
        }
        if (n > 2) PROF_NEXT("in an if");
        else PROF_NEXT("in an else");
        WITH_BASE_PROFILER(NULL, "block", "cat", PROF_NO_ARGS, int one = 1, two = 2; n += one - two; n++);
        WITH_BASE_PROFILER(&device, run_time_name, run_time_name, PROF_ARGS(PROF_INT("i", i)), {
            PROF_SCOPE("in a block");
            WITH_BASE_PROFILER_LEVEL(2, NULL, "nested block", "cat", PROF_NO_ARGS,
                                     if (n == 77) continue; if (n == 78) break;);
            if (n == 79) return 1;
        });
        if (n == 80)
            WITH_BASE_PROFILER(NULL, "in an if", "cat", PROF_NO_ARGS, n++);
        else
            WITH_BASE_PROFILER(NULL, "in an else", "cat", PROF_NO_ARGS, n--);
        switch (n) {
        case 1: {
            PROF_SCOPE("case");
            break;
        }
        default: PROF_INSTANT("cat", "default", PROF_NO_ARGS);
        }
    }
    PROF_BEGIN("cat", run_time_name);
    PROF_INSTANT("cat", "instant", PROF_ARGS(PROF_STR("s", "literal"), PROF_INT("c", 'c')));
    PROF_COUNTER("int", n);
    PROF_COUNTER("double", x);
    PROF_COUNTER("float", f);
    PROF_COUNTER("unsigned", u);
    PROF_COUNTER("bool", b);
    PROF_COUNTER("small", small);
    PROF_COUNTER("size", sizeof(int));
    PROF_COUNTER("comparison", n > 3);
    PROF_FLOW_OUT(u);
    PROF_FLOW_IN(7);
    PROF_MEMORY(&device, 1u, u, run_time_name);
    PROF_MEMORY(NULL, 1u, 2u, "literal");
    PROF_ALLOC(&device, n, run_time_name);
    if (b) PROF_FREE(NULL, sizeof(int), "literal");
    else PROF_FREE(&device, 1, "literal");
    PROF_RESULT(PROF_INT("n", n), PROF_ARG("s", run_time_name));
    PROF_RESULT_LEVEL(2, PROF_BOOL("b", b));
    if (b) PROF_RESULT(PROF_INT("unbraced", 1));
    else PROF_RESULT(PROF_INT("unbraced", 2));
    PROF_END();
    PROF_THREAD_NAME(run_time_name);
    if (b) PROF_COUNTER("unbraced", 1);
    else PROF_INSTANT("cat", "unbraced", PROF_NO_ARGS);
    return n;
}

int every_run(void *user, intptr_t stream);
#ifndef NPUPROF_FREESTANDING
int every_function(const char *path, FILE *out, npuprof_sink sink);

int every_run(void *user, intptr_t stream) { return *(int *)user > 1000 || stream > 0; }

int every_function(const char *path, FILE *out, npuprof_sink sink)
{
    npuprof_stats stats;
    static npuprof_desc desc;
    npuprof_result first = npuprof_init(&desc);
    npuprof_result all[] = { first, npuprof_set_categories("-none"), npuprof_set_categories(NULL) };
    int bad = 0;
    npuprof_start(2);
    npuprof_pause();
    npuprof_resume();
    npuprof_clear();
    npuprof_async_begin("cat", "async", 1);
    npuprof_async_end(1);
    npuprof_span("track", "cat", "span", npuprof_now_ns(), npuprof_now_ns(), PROF_ARGS(PROF_INT("a", 1)));
    npuprof_span(NULL, NULL, NULL, npuprof_now_ns(), 0, PROF_NO_ARGS);
    npuprof_metadata("key", "value");
    npuprof_get_stats(&stats);
    bad += every_macro(3, (char *)(size_t)path, 0.5, 0.5f, true, 9, 1) == 12345;
    npuprof_stop();
    bad += npuprof_dump(path) != NPUPROF_OK;
    bad += sink.write && npuprof_write_json(sink) != NPUPROF_OK;
#define PRINTS(name) bad += name(out) != NPUPROF_OK;
    NPUPROF_TABLES(PRINTS)
    npuprof_memory_peaks peaks;
    bad += npuprof_get_memory(NULL, &peaks) != NPUPROF_OK;
    npuprof_bench_op op = { every_run, &bad, -1, 16 };
    npuprof_bench_desc bench = { "key", &op, 1, -1, 2, 2, NULL, { NULL, NULL, NULL } };
    npuprof_bench_result measured;
    bad += npuprof_bench(&bench, &measured) != NPUPROF_OK || measured.cached;
    bad += npuprof_bench_size() > 1;
    bad += npuprof_print_bench(out) != NPUPROF_OK;
    npuprof_bench_reset();
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) bad += all[i] != NPUPROF_OK;
    return bad + (npuprof_result_string(NPUPROF_OK) == NULL) + (stats.recorded > 1000);
}

#ifndef TEST_NO_MAIN
int main(int argc, char **argv)
{
    npuprof_sink none = { NULL, NULL };
    if (argc < 2) return 2;
    return every_function(argv[1], stdout, none);
}
#endif
#endif /* !NPUPROF_FREESTANDING */

/* Functions with every macro in them. Built with -DNPUPROF_OFF and with -DTEST_PLAIN, where the macros are not there at all, the
   object files must hold the same instructions. The names all hold "zebra", to be searched for.
   SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#ifndef TEST_PLAIN
#include "npuprof.h"
#else
#define PROF_SCOPE(name)
#define PROF_SCOPE_CAT(cat, name)
#define PROF_SCOPE_ARGS(cat, name, args)
#define PROF_SCOPE_LEVEL(level, cat, name, args)
#define PROF_FUNCTION()
#define PROF_BLOCK(cat, name) for (int once = 1; once; once = 0)   /* so that break and continue mean the same */
#define PROF_RECORD(name)
#define PROF_RECORD_WARM_UP(name)
#define PROF_INFERENCE(name)
#define PROF_OPERATOR(index, name)
#define PROF_PHASES(name)
#define PROF_NEXT(name)
#define PROF_BEGIN(cat, name)
#define PROF_END()
#define PROF_FLOW_OUT(id)
#define PROF_FLOW_IN(id)
#define PROF_INSTANT(cat, name, args)
#define PROF_COUNTER(name, value)
#define PROF_MEMORY(device, used, allocated, tag)
#define PROF_THREAD_NAME(name)
#define WITH_BASE_PROFILER(device, name, cat, args, ...) { __VA_ARGS__; }
#define WITH_BASE_PROFILER_LEVEL(level, device, name, cat, args, ...) { __VA_ARGS__; }
#endif

int convolve(const int8_t *in, int8_t *out, int n, int k);
int drive(volatile uint32_t *registers, int jobs, const char *label);
double kernel(const double *v, size_t n);
int escape(int n);
int side_effects(int *counter);
int evaluated_never(void);
#ifdef TEST_WITH_API
int with_api(int n);
#endif

int convolve(const int8_t *in, int8_t *out, int n, int k)
{
    PROF_FUNCTION();
    PROF_SCOPE_ARGS("zebra category", "zebra convolve", PROF_ARGS(PROF_INT("zebra n", n), PROF_REAL("zebra k", k)));
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
        WITH_BASE_PROFILER(NULL, "zebra submit", "zebra category", PROF_ARGS(PROF_STR("zebra label", label)), registers[0] = (uint32_t)i);
        PROF_FLOW_OUT(i);
        PROF_BEGIN("zebra category", label);
        while (!(registers[1] & 1u)) {
            PROF_INSTANT("zebra category", "zebra poll", PROF_NO_ARGS);
            if (registers[1] & 2u) return -1;
        }
        PROF_END();
        WITH_BASE_PROFILER_LEVEL(2, NULL, label, "zebra category", PROF_NO_ARGS, if (registers[2] == 7) break; done += (int)registers[2]);
        PROF_FLOW_IN(i);
        PROF_MEMORY(NULL, (uint64_t)done, 2u, "zebra tag");
    }
    return done;
}

double kernel(const double *v, size_t n)
{
    PROF_SCOPE_CAT("zebra category", "zebra kernel");
    PROF_SCOPE_LEVEL(2, "zebra category", "zebra detail", PROF_ARGS(PROF_UINT("zebra n", n), PROF_BOOL("zebra even", n % 2 == 0)));
    double s = 0;
    for (size_t i = 0; i < n; i++) s += v[i] * v[i];
    PROF_COUNTER("zebra s", s);
    return s;
}

int escape(int n)
{
    int r = 1;
    for (int i = 0; i < n; i++) {
        PROF_SCOPE("zebra loop");
        if (i == 3) continue;
        if (i == 7) goto out;
        r *= i + n;
        PROF_BLOCK("zebra category", "zebra block") { r ^= i; }
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

#ifdef TEST_WITH_API
int with_api(int n)
{
#ifndef TEST_PLAIN
    npuprof_start(n);
    npuprof_metadata("zebra key", "zebra value");
    npuprof_async_begin("zebra category", "zebra async", (uint64_t)n);
#endif
    n = n * 3 + 1;
#ifndef TEST_PLAIN
    npuprof_async_end((uint64_t)n);
    npuprof_span("zebra track", "zebra category", "zebra span", n, n + 1, PROF_ARGS(PROF_INT("zebra n", n)));
    if (npuprof_set_categories("zebra") != NPUPROF_OK) n = 0;
    npuprof_pause();
    npuprof_resume();
    npuprof_clear();
    npuprof_stop();
    if (npuprof_dump("zebra.json") != NPUPROF_OK) n = 0;
#endif
    return n;
}
#endif

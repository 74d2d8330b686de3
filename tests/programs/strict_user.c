/* A file of a user who compiles with more warnings than we do: only uses of the macros, as C and C++; built
   by test_compile.py.
   SPDX-License-Identifier: MIT */
#include "npuprof.h"
#include "npuprof_npu.h"

double double_of(float small);
double strict_user(npuprof_npu *npu, const char *name, double real, float small, int n,
                   unsigned long long big, void *queue);
double strict_user(npuprof_npu *npu, const char *name, double real, float small, int n,
                   unsigned long long big, void *queue)
{
    PROF_FUNCTION();
    PROF_SCOPE("a");
    PROF_SCOPE_CAT("c", "a");
    PROF_SCOPE_ARGS("c", "a", PROF_ARGS(PROF_INT("n", n), PROF_UINT("big", big), PROF_BOOL("b", n > 3),
                                        PROF_STR("s", name)));
    PROF_SCOPE_LEVEL(2, "c", "a", PROF_NO_ARGS);
    PROF_RECORD(name);
    PROF_INFERENCE("i");
    PROF_OPERATOR(n, name);
    PROF_PHASES("one");
    PROF_NEXT("two");
    PROF_BLOCK("c", "b") { n++; }
    PROF_BEGIN("c", name);
    PROF_END();
    PROF_FLOW_OUT(n);
    PROF_FLOW_IN(big);
    PROF_INSTANT("c", "i", PROF_NO_ARGS);
    PROF_COUNTER("n", n);
    PROF_COUNTER("big", big);
    PROF_COUNTER("queue", n > 3);
#if !defined(NPUPROF_FREESTANDING)
    PROF_COUNTER("real", real);
    PROF_COUNTER("small", small);
    PROF_INSTANT("c", "i", PROF_ARGS(PROF_REAL("real", real), PROF_UINT("address", queue)));
    npuprof_instant("c", name, PROF_NO_ARGS);
    npuprof_counter_int(name, 1);
    npuprof_counter_real(name, 0.5);
    npuprof_span("track", "c", name, 1, 2, PROF_NO_ARGS);
#endif
    PROF_MEMORY(&npu->device, 1u, big, name);
    PROF_ALLOC(&npu->device, n, "tag");
    PROF_FREE(&npu->device, sizeof(int), "tag");
    PROF_THREAD_NAME(name);
    WITH_BASE_PROFILER(&npu->device, name, "c", PROF_NO_ARGS, n++);
    if (n > 5) WITH_BASE_PROFILER(&npu->device, name, "c", PROF_NO_ARGS, n++);
    if (n > 6) WITH_NPU_PROFILER(npu, n, "kernel", "c", PROF_NO_ARGS, n++);
    else WITH_BASE_PROFILER(&npu->device, name, "c", PROF_NO_ARGS, n++);
    WITH_NPU_PROFILER(npu, n, "kernel", "c", PROF_NO_ARGS, n++);
    WITH_NPU_PROFILER(npu, queue, name, "c", PROF_ARGS(PROF_INT("n", n)), n++);
    WITH_NPU_PROFILER_LEVEL(2, npu, big, name, name, PROF_NO_ARGS, n++);
    PROF_NPU_SCOPE(npu, queue, name, "c", PROF_ARGS(PROF_INT("n", n)));
    (void)npuprof_npu_end(npu, npuprof_npu_begin(npu, 1, name, "c", PROF_NO_ARGS));
    return real * n > 2.5 ? real : double_of(small);
}

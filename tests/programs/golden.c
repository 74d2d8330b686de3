/* Writes one trace on a clock of its own: only host, pid and start differ from run to run.
   SPDX-License-Identifier: MIT */
#include "fake_clock.h"
#include "npuprof.h"

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    npuprof_metadata("model", "golden");
    PROF_THREAD_NAME("main");
    npuprof_start(2);
    {
        PROF_RECORD("trace");
        fake_ticks += 1000;
        for (int i = 0; i < 2; i++) {
            PROF_INFERENCE("Inference");
            fake_ticks += 1;
            { PROF_OPERATOR(3, "Quantize"); fake_ticks += 250; }
            WITH_BASE_PROFILER(NULL, "kernel", "npu", PROF_ARGS(PROF_INT("n", -5), PROF_STR("s", "a\"b"),
                                                                PROF_REAL("x", 0.5)), fake_ticks += 1000000);
            { PROF_PHASES("one"); fake_ticks += 7; PROF_NEXT("two"); fake_ticks += 8; }
            PROF_COUNTER("queue", i);
            PROF_INSTANT("c", "now", PROF_NO_ARGS);
        }
        { PROF_SCOPE("out"); PROF_FLOW_OUT(1); fake_ticks += 5; }
        { PROF_SCOPE("in"); fake_ticks += 5; PROF_FLOW_IN(1); fake_ticks += 5; }
        npuprof_async_begin("q", "job", 9);
        fake_ticks += 50;
        npuprof_async_end(9);
        npuprof_span("dma", "d", "copy", npuprof_now_ns() - 40, npuprof_now_ns() - 10, PROF_NO_ARGS);
    }
    npuprof_stop();
    return (int)npuprof_dump(argv[1]);
}

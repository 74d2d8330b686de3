/* Writes a small trace for the viewers, on a clock of its own. All stamps are multiples of 125 ns: sums of
   such microseconds are exact in floating point, so that speedscope's own reader of Chrome JSON shows it
   right and a mutant of it shows what its rule is for.
   SPDX-License-Identifier: MIT */
#include "fake_clock.h"
#include "npuprof.h"

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    PROF_THREAD_NAME("main \"é\"");
    npuprof_start(1);
    {
        PROF_SCOPE_ARGS("host", "parent", PROF_ARGS(PROF_INT("n", INT64_MAX)));
        {
            PROF_SCOPE("child");
            fake_ticks += 10000;
            { PROF_SCOPE("submit"); fake_ticks += 5000; PROF_FLOW_OUT(31); fake_ticks += 5000; }
            PROF_COUNTER("bytes", 7);
            fake_ticks += 20000;
        }
        { PROF_SCOPE("touching"); fake_ticks += 60000; }
    }
    PROF_INSTANT("c", "mark", PROF_NO_ARGS);
    { PROF_SCOPE("after"); PROF_SCOPE("same"); fake_ticks += 1500; PROF_FLOW_IN(31); fake_ticks += 1000; }
    npuprof_span("PE 0", "npu", "device", npuprof_now_ns() - 80000, npuprof_now_ns() - 70000, PROF_NO_ARGS);
    npuprof_stop();
    return (int)npuprof_dump(argv[1]);
}

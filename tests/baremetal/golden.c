/* Records one trace on a clock of its own, on any bare machine: golden.img is its image, golden.json its own
   JSON.
   SPDX-License-Identifier: MIT */
#include <stdint.h>

#ifndef TICK_BITS
#define TICK_BITS 24
#endif
static volatile uint32_t ticks = 0xFFFC18;         /* wraps at once */
static volatile uint8_t task;
#define NPUPROF_NOW() (ticks & (0xFFFFFFFFu >> (32 - TICK_BITS)))
#define NPUPROF_NOW_HZ 1000000000u
#define NPUPROF_NOW_BITS TICK_BITS
#define NPUPROF_FREESTANDING
#define NPUPROF_CONTEXT() task
#define NPUPROF_CONTEXTS 3
#define NPUPROF_ARENA_BYTES 1648
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "port.h"

static void wait(uint32_t time) { ticks += time; }

static void kernel(int n, char *run_time_name)
{
    PROF_FUNCTION();
    WITH_BASE_PROFILER(NULL, "kernel", "npu", PROF_ARGS(PROF_INT("n", -n), PROF_STR("s", "a\"b"),
                                                        PROF_STR("long", "0123456789abcdefghijklmnop")),
                                                        wait(1000000));
    WITH_BASE_PROFILER(NULL, run_time_name, "npu",
                       PROF_ARGS(PROF_BOOL("b", n == 5), PROF_UINT("u", UINT64_MAX)), wait(10));
}

int main(void)
{
    char name[] = "run time";
    const npuprof_sink sink = { port_write, NULL };
    npuprof_metadata("model", "golden");
    PROF_THREAD_NAME("main");
    npuprof_start(2);
    {
        PROF_RECORD("trace");
        wait(1000);
        for (int i = 0; i < 2; i++) {
            PROF_INFERENCE("Inference");
            wait(1);
            { PROF_OPERATOR(3, "Quantize"); wait(250); PROF_RESULT(PROF_INT("ne.forward_ns", 200)); }
            kernel(5 + i, name);
            name[0]++;
            { PROF_PHASES("one"); wait(7); PROF_NEXT("two"); wait(8); }
            PROF_COUNTER("queue", i - 1);
            PROF_INSTANT("c", "now", PROF_NO_ARGS);
        }
        /* A task switch in the middle of a span, twice. */
        PROF_BEGIN("os", "outer");
        wait(5);
        task = 1;
        PROF_THREAD_NAME("worker");
        PROF_BEGIN(NULL, "other");
        wait(3);
        task = 0;
        PROF_BEGIN("os", "inner");
        wait(4);
        PROF_END();
        task = 1;
        PROF_END();
        wait(2);
        task = 0;
        PROF_END();
        npuprof_pause();
        wait(100);
        { PROF_SCOPE("not recorded"); }
        npuprof_resume();
        { PROF_SCOPE_LEVEL(3, "c", "too fine", PROF_NO_ARGS); }
        PROF_FLOW_OUT(1);
        wait(1);
        PROF_FLOW_IN(1);
        PROF_MEMORY(NULL, 4096, 8192, "conv");
        PROF_ALLOC(NULL, 6000, "pool");
        npuprof_async_begin("q", "job", 9);
        wait(50);
        npuprof_async_end(9);
        npuprof_span("dma", "d", "copy", npuprof_now_ns() - 40, npuprof_now_ns() - 10, PROF_NO_ARGS);
    }
    task = 2;
    PROF_BEGIN(NULL, "never ends");
    wait(20);
    npuprof_stop();
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    for (int i = 0; i < 1000; i++) { PROF_SCOPE("stopped"); }
    port_open("golden.img");
    npuprof_result r = npuprof_write_image(sink);
    port_close();
#ifndef NPUPROF_NO_JSON
    port_open("golden.json");
    if (r == NPUPROF_OK) r = npuprof_write_json(sink);
    port_close();
#endif
    return r != NPUPROF_OK || stats.lost || stats.threads != 3 ? 1 : 0;
}

/* Writes every kind of event, every type of argument and every way to end a span, on clocks of its own: JSON,
   CSV and reports that are the same at each run but for host, pid and start. usage: golden_kinds FILE...; the
   reports go to standard output.
   SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include "fake_clock.h"
#include "npuprof.h"
#include "npuprof_npu.h"

/* The device: a counter of 25 ticks a microsecond at 0x10, a busy counter at 0x18, a producer index at 0x20,
   8 records of 32 bytes at 0x100. */
static uint32_t bar[256];
#define FIELD(at) (npuprof_npu_field){ .offset = (at), .width_bytes = 4 }
static const npuprof_npu_op operators[] = { { 0, "Execution" }, { 1, "Conv2d" } };

static void pass(uint64_t ns)
{
    fake_ticks += ns;
    bar[4] = (uint32_t)(fake_ticks / 40);
    bar[6] += (uint32_t)(ns / 80);
}

static void complete(uint32_t job, uint32_t op, uint32_t start, uint32_t end)
{
    uint32_t *r = bar + 64 + 8 * (bar[8] % 8);
    r[0] = job, r[1] = op, r[2] = start, r[3] = end, r[4] = 1, r[5] = bar[8], r[6] = 4, r[7] = 2;
    bar[8]++;
}

static npuprof_npu_desc device(const char *name)
{
    npuprof_npu_desc desc = { 0 };
    desc.name = name, desc.bar = bar, desc.bar_bytes = sizeof bar;
    desc.counter.lo_offset = 0x10, desc.counter.bits = 32;
    return desc;
}

static void jumps(jmp_buf where)
{
    PROF_FUNCTION();
    pass(100);
    longjmp(where, 1);
}

int main(int argc, char **argv)
{
    static npuprof_npu sampled, ringed;
    static const npuprof_npu_pmu busy = { .name = "busy_ticks",
                                          .counter = { .lo_offset = 0x18, .bits = 32 }, .is_busy = true };
    npuprof_npu_desc a = device("sampled"), b = device("ringed");
    a.pmu = &busy, a.pmu_count = 1;
    b.pe_count = 2;
    b.ring.offset = 0x100, b.ring.entry_bytes = 32, b.ring.count = 8, b.ring.producer.offset = 0x20;
    b.ring.job = FIELD(0), b.ring.op = FIELD(4);
    b.ring.start = FIELD(8), b.ring.end = FIELD(12);
    b.ring.pe = FIELD(16), b.ring.sequence = FIELD(20);
    b.ring.instruction = FIELD(24),
        b.ring.execution = FIELD(28);
    b.ring.ops = operators, b.ring.op_count = 2, b.ring.execution_op = 1;
    npuprof_metadata("model", "every kind");
    PROF_THREAD_NAME("main");
    npuprof_start(2);
    pass(1000);
    if (npuprof_npu_open(&sampled, &a) != NPUPROF_OK || npuprof_npu_open(&ringed, &b) != NPUPROF_OK) return 3;
    {
        PROF_SCOPE_ARGS("c", "arguments", PROF_ARGS(PROF_INT("int", INT64_MIN), PROF_UINT("uint", UINT64_MAX),
                                                    PROF_REAL("real", -0.125), PROF_BOOL("bool", true),
                                                    PROF_STR("str", "é \"\\\n")));
        pass(10);
        PROF_RESULT(PROF_INT("status", -5), PROF_BOOL("bool", false));
        PROF_RESULT_LEVEL(3, PROF_INT("above the level", 1));
    }
    { PROF_SCOPE_LEVEL(3, "c", "above the level", PROF_NO_ARGS); pass(10); }
    PROF_BEGIN("c", "by hand");
    pass(10);
    PROF_END();
    { PROF_RECORD_WARM_UP("warm up"); PROF_INFERENCE("Inference"); pass(500); }
    {
        PROF_RECORD("trace");
        PROF_INFERENCE("Inference");
        { PROF_OPERATOR(7, "Quantize"); pass(250); PROF_RESULT(PROF_INT("ne.forward_ns", 200)); }
        { PROF_PHASES("one"); pass(70); PROF_NEXT("two"); pass(80); }
        WITH_NPU_PROFILER(&sampled, 0, "conv1", "NPU", PROF_ARGS(PROF_INT("n", 1)), pass(4000));
        WITH_NPU_PROFILER(&ringed, 0, "conv2", "NPU", PROF_NO_ARGS, {
            const uint32_t job = (uint32_t)npuprof_npu_job(&ringed), now = bar[4];
            pass(400);
            complete(job, 1, now + 12, now + 60);
            complete(job, 0, now + 10, now + 70);
        });
        pass(4000);
        if (npuprof_npu_drain(&ringed) != NPUPROF_OK) return 4;
        npuprof_npu_span(&ringed, 0, "by hand", "NPU", (fake_ticks - 800) / 40, (fake_ticks - 400) / 40,
                         PROF_NO_ARGS);
    }
    PROF_COUNTER("int", -1);
    PROF_COUNTER("uint", UINT64_MAX);
    PROF_COUNTER("real", 0.5);
    PROF_MEMORY(NULL, 1000, 4096, "tag");
    PROF_ALLOC(&ringed.device, 300, "buffer");
    PROF_FREE(&ringed.device, 100, "part");
    PROF_INSTANT("c", "now", PROF_ARGS(PROF_BOOL("whole", false)));
    { PROF_SCOPE("out"); PROF_FLOW_OUT(1); pass(5); }
    { PROF_SCOPE("in"); PROF_FLOW_IN(1); pass(5); }
    npuprof_async_begin("q", "job", 9);
    pass(50);
    npuprof_async_end(9);
    npuprof_async_begin("q", "never ends", 10);
    npuprof_span("dma", "d", "copy", npuprof_now_ns() - 40, npuprof_now_ns() - 10, PROF_NO_ARGS);
    npuprof_pause();
    pass(1000);
    npuprof_resume();
    jmp_buf where;
    { PROF_SCOPE("around a jump"); if (!setjmp(where)) jumps(where); pass(5); }
    PROF_BEGIN(NULL, "never ended");
    pass(5);
    npuprof_npu_close(&ringed);
    npuprof_npu_close(&sampled);
    npuprof_stop();
    npuprof_print_summary(stdout);
    npuprof_print_npu_executions(stdout);
    npuprof_print_npu_operators(stdout);
    npuprof_print_external_operators(stdout);
    npuprof_print_memory(stdout);
    for (int i = 1; i < argc; i++) {
        const npuprof_result result = npuprof_dump(argv[i]);
        if (result != NPUPROF_OK) return (int)result;
    }
    return 0;
}

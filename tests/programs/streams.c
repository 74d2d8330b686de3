/* Two streams of a sampled device that overlap, whole kernels and one with instructions, and a second device
   with two PEs. Usage: streams PATH...
   SPDX-License-Identifier: MIT */
#include "fake_clock.h"
#include "npuprof.h"
#include "npuprof_npu.h"

static void instruction(npuprof_npu *npu, unsigned pe, const char *name, int step, uint64_t start,
                        uint64_t end)
{
    npuprof_npu_span(npu, pe, name, "NPU", start, end,
                     PROF_ARGS(PROF_INT("execution_index", 7), PROF_INT("instruction_index", step)));
}

int main(int argc, char **argv)
{
    static npuprof_npu npu, other;
    npuprof_npu_desc desc = { 0 };
    desc.name = "npu", desc.read_ticks = fake_counter, desc.counter.hz = 1000000000;
    npuprof_start(1);
    fake_ticks += 1000000;
    if (npuprof_npu_open(&npu, &desc) != NPUPROF_OK) return 2;
    desc.name = "other", desc.pe_count = 2;
    if (npuprof_npu_open(&other, &desc) != NPUPROF_OK) return 2;
    for (int i = 0; i < 30; i++) {
        WITH_NPU_PROFILER(&npu, i % 3, i % 2 ? "conv" : "pool", "NPU", PROF_NO_ARGS, {
            fake_ticks += 100;
            WITH_NPU_PROFILER(&npu, (i + 1) % 3, "inner", "NPU", PROF_NO_ARGS, fake_ticks += 50);
            fake_ticks += 100;
        });
        const uint64_t now = fake_ticks;
        npuprof_npu_span(&npu, 0, "Execution", "NPU", now - 240, now - 20,
                         PROF_ARGS(PROF_INT("execution_index", 7)));
        instruction(&npu, 0, "matmul", 0, now - 230, now - 130);
        instruction(&npu, 0, "vector", 1, now - 180, now - 60);
        for (unsigned pe = 0; pe < 2; pe++) {
            npuprof_npu_span(&other, pe, "Execution", "NPU", now - 200, now,
                             PROF_ARGS(PROF_INT("execution_index", 7)));
            instruction(&other, pe, "Load", 0, now - 200, now - 150);
            instruction(&other, pe, "matmul", 1, now - 150, now - 50 + 10 * pe);
        }
        fake_ticks += 500;
    }
    npuprof_npu_close(&other);
    npuprof_npu_close(&npu);
    npuprof_stop();
    for (int i = 1; i < argc; i++)
        if (npuprof_dump(argv[i]) != NPUPROF_OK) return 1;
    return 0;
}

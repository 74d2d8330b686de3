/* Dumps a trace of about COUNT spans, on a clock of its own. Usage: many_spans host|device COUNT PATH...
   host: inferences of nine nested spans. device: inferences with a submission, its execution and eight
   instructions.
   SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fake_clock.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"

static uint64_t read_ticks(void *user)
{
    (void)user;
    return fake_ticks;
}

static npuprof_npu npu;
static uint64_t random_bits = 1;
static uint64_t some(uint64_t least, uint64_t more)
{
    random_bits = random_bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (random_bits >> 33) % more;
}

static void host(void)
{
    PROF_INFERENCE("Inference");
    fake_ticks += some(20, 100);
    for (int i = 0; i < 3; i++) {
        PROF_SCOPE_CAT("layer", "conv");
        fake_ticks += some(10, 50);
        { PROF_SCOPE_CAT("operator", "pad"); fake_ticks += some(200, 500); }
        { PROF_SCOPE_CAT("operator", "multiply"); fake_ticks += some(1000, 5000); }
    }
}

static void device(int number)
{
    PROF_INFERENCE("Inference");
    fake_ticks += some(20, 100);
    WITH_NPU_PROFILER(&npu, 0, "Execution", "NPU", PROF_ARGS(PROF_INT("execution_index", number)), {
        static const char *const names[] = { "Load", "LowLevelPad", "LowLevelConv2d", "LowLevelPad",
                                             "LowLevelConv2d", "LowLevelReshape",
                                             "LowLevelConv2d", "Store" };
        uint64_t at = fake_ticks + 10;
        for (int i = 0; i < 8; i++) {
            const uint64_t ticks = some(100, 3000);
            npuprof_npu_span(&npu, 0, names[i], "NPU", at, at + ticks,
                             PROF_ARGS(PROF_INT("execution_index", number),
                                       PROF_INT("instruction_index", i)));
            at += ticks;
        }
        fake_ticks = at + 100;
    });
}

int main(int argc, char **argv)
{
    npuprof_npu_desc desc;
    if (argc < 3) return 2;
    const bool devices = strcmp(argv[1], "device") == 0;
    const int inferences = atoi(argv[2]) / (devices ? 11 : 10);
    memset(&desc, 0, sizeof desc);
    desc.name = "npu0";
    desc.read_ticks = read_ticks;
    desc.counter.hz = 1000000000;
    npuprof_start(1);
    if (npuprof_npu_open(&npu, &desc) != NPUPROF_OK) return 2;
    for (int i = 0; i < inferences; i++) {
        if (devices) device(i);
        else host();
        fake_ticks += some(100, 2000);
    }
    npuprof_npu_close(&npu);
    npuprof_stop();
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    if (stats.lost) return 3;
    for (int i = 3; i < argc; i++)
        if (npuprof_dump(argv[i]) != NPUPROF_OK) return 1;
    return 0;
}

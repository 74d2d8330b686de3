/* Dumps a trace of about COUNT spans, on a clock of its own. Usage: many_spans KIND COUNT PATH...
   host: inferences of nine nested spans. device: inferences with a submission, its execution and eight
   instructions. network: inferences with a job of 50 layers, each with its Load, on each of two PEs, and a
   marked wait for each.
   SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fake_clock.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"

static npuprof_npu npu;
static uint64_t random_bits = 1;
static uint64_t some(uint64_t least, uint64_t more)
{
    random_bits = random_bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (random_bits >> 33) % more;
}

enum { LAYERS = 50 };
#define INDEXES(execution, instruction) \
    PROF_ARGS(PROF_INT("execution_index", execution), PROF_INT("instruction_index", instruction))

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

/* Begins and ends of a job's instructions: the Load of a layer runs while the layer before computes. */
typedef struct times {
    uint64_t load[LAYERS + 1], begin[LAYERS], end[LAYERS];
} times;

static void plan(times *t, uint64_t at)
{
    t->load[0] = at;
    for (uint64_t i = 0; i < LAYERS; i++) {
        t->load[i + 1] = t->load[i] + some(200, 900);
        t->begin[i] = i && t->end[i - 1] > t->load[i + 1] ? t->end[i - 1] : t->load[i + 1];
        t->end[i] = t->begin[i] + some(300 + 10 * i, 300);
    }
}

static void record(const times *t, uint32_t handle, unsigned pe, int number)
{
    char name[16];
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "layer%d", i);
        npuprof_npu_span(&npu, pe, "Load", "NPU", t->load[i], t->load[i + 1], INDEXES(number, i));
        npuprof_npu_span(&npu, pe, name, "NPU", t->begin[i], t->end[i], INDEXES(number, i));
    }
    npuprof_npu_set_job_of(&npu, handle, (uint64_t)number + 1);
    npuprof_npu_complete(&npu, (uint64_t)number + 1, pe, NULL, NULL, t->load[0], t->end[LAYERS - 1],
                         PROF_ARGS(PROF_INT("execution_index", number)), true);
    npuprof_npu_end(&npu, handle);
}

static void network(int number)
{
    PROF_INFERENCE("Inference");
    uint32_t handles[2];
    times jobs[2];
    fake_ticks += some(500, 3000);
    for (unsigned pe = 0; pe < 2; pe++) {
        PROF_SCOPE("submit");
        handles[pe] = npuprof_npu_begin(&npu, pe, "network", "NPU", PROF_ARGS(PROF_INT("n", number)));
        fake_ticks += some(200, 200);
        plan(&jobs[pe], fake_ticks + some(500, 500));
    }
    for (unsigned pe = 0; pe < 2; pe++) {
        PROF_WAIT("host", "wait");
        const uint64_t end = jobs[pe].end[LAYERS - 1];
        fake_ticks = (fake_ticks < end ? end : fake_ticks) + some(100, 200);
    }
    npuprof_npu_sync(&npu);
    for (unsigned pe = 0; pe < 2; pe++)
        record(&jobs[pe], handles[pe], pe, 2 * number + (int)pe);
}

int main(int argc, char **argv)
{
    npuprof_npu_desc desc;
    if (argc < 3) return 2;
    const bool devices = strcmp(argv[1], "device") == 0, networks = strcmp(argv[1], "network") == 0;
    const int inferences = atoi(argv[2]) / (networks ? 4 * LAYERS + 7 : devices ? 11 : 10);
    memset(&desc, 0, sizeof desc);
    desc.name = "npu0";
    desc.read_ticks = fake_counter;
    desc.counter.hz = 1000000000;
    desc.pe_count = networks ? 2 : 1;
    desc.ring.feed = networks;
    npuprof_start(1);
    if (npuprof_npu_open(&npu, &desc) != NPUPROF_OK) return 2;
    for (int i = 0; i < inferences; i++) {
        if (networks) network(i);
        else if (devices) device(i);
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

/* Records what the published tables of two releases of another profiler show, on a clock of its own, prints
   the tables and dumps to every path given. Usage: published 1|2|edges PATH...
   SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include "fake_clock.h"
#include "npuprof.h"
#include "npuprof_npu.h"

static npuprof_npu npu;

typedef struct published {
    uint64_t inference[4], record[2];            /* two records of two inferences */
    struct { const char *name; uint64_t ns[4]; } external[4];
    uint64_t total[4], run[4];
    /* of all four executions; the first takes what is left */
    struct { const char *name; unsigned count; uint64_t ns; } operators[7];
} published;

static const published releases[2] = {
    { { 650018, 365199, 258540, 270625 }, { 1100000, 778887 },
      { { "Quantize", { 42929, 14085, 4400, 6631 } }, { "Lower", { 72999, 32360, 28714, 11694 } },
        { "Unlower", { 31812, 15655, 12675, 17573 } }, { "Dequantize", { 4895, 6128, 12227, 16021 } } },
      { 10902, 10901, 10997, 10900 }, { 8559, 8557, 8557, 8555 },
      { { "LowLevelConv2d", 16, 0 }, { "LowLevelDepthwiseConv2d", 12, 9088 }, { "LowLevelPad", 12, 4337 },
        { "LowLevelMask", 8, 932 },
        { "LowLevelExpand", 8, 24 }, { "LowLevelReshape", 68, 204 }, { "LowLevelSlice", 8, 24 } } },
    { { 3027309, 2111363, 1824769, 1584494 }, { 6000000, 11204385 },
      { { "Quantize", { 136285, 45465, 71736, 56736 } }, { "Lower", { 133350, 152748, 311310, 265447 } },
        { "Unlower", { 44775, 67140, 51930, 35869 } }, { "Dequantize", { 14682, 32388, 12362, 14688 } } },
      { 119145, 119363, 119157, 119219 }, { 108134, 108134, 108134, 108134 },
      { { "LowLevelConv2d", 60, 0 }, { "LowLevelDepthwiseConv2d", 56, 79088 }, { "LowLevelPad", 56, 32244 },
        { "LowLevelTranspose", 4, 1000 },
        { "LowLevelReshape", 240, 480 }, { "LowLevelSlice", 12, 24 }, { "LowLevelExpand", 16, 32 } } },
};

/* One execution from now on; the host's clock does not move. */
static void execute(const published *p, unsigned n)
{
    const uint64_t at = fake_ticks + device_zero;
    uint64_t used = 100, left = p->run[n];
    int step = 0;
    npuprof_npu_span(&npu, 0, "Execution", "NPU", at, at + p->total[n],
                     PROF_ARGS(PROF_INT("execution_index", n)));
    npuprof_npu_span(&npu, 0, "Load", "NPU", at, at + 100,
                     PROF_ARGS(PROF_INT("execution_index", n), PROF_INT("instruction_index", step++)));
    for (int k = 6; k >= 0; k--) {
        const unsigned count = p->operators[k].count / 4;
        uint64_t ns = k ? p->operators[k].ns / 4 + (n == 3 ? p->operators[k].ns % 4 : 0) : left;
        if (k) left -= ns;
        for (unsigned i = 0; i < count; i++) {
            const uint64_t part = i + 1 < count ? ns / (count - i) : ns;
            npuprof_npu_span(&npu, 0, p->operators[k].name, "NPU", at + used, at + used + part,
                             PROF_ARGS(PROF_INT("execution_index", n),
                                       PROF_INT("instruction_index", step++)));
            used += part;
            ns -= part;
        }
    }
    npuprof_npu_span(&npu, 0, "Store", "NPU", at + used, at + p->total[n],
                     PROF_ARGS(PROF_INT("execution_index", n), PROF_INT("instruction_index", step++)));
}

static void release(const published *p)
{
    for (unsigned r = 0; r < 2; r++) {
        const uint64_t record_end = fake_ticks + p->record[r];
        PROF_RECORD(r ? "trace" : "first");
        for (unsigned n = 2 * r; n < 2 * r + 2; n++) {
            const uint64_t end = fake_ticks + p->inference[n];
            PROF_INFERENCE("Inference");
            for (int k = 0; k < 4; k++) {
                if (k == 2) {
                    execute(p, n);
                    fake_ticks += p->total[n];
                }
                PROF_OPERATOR(k, p->external[k].name);
                fake_ticks += p->external[k].ns[n];
            }
            fake_ticks = end;
        }
        fake_ticks = record_end;
    }
}

/* What the tables must bear: overlap, an execution without operators, warm-up, names that need care, nesting,
   memory. */
static void edges(void)
{
    {
        PROF_RECORD_WARM_UP("getting ready");
        PROF_INFERENCE("Inference");
        PROF_MEMORY(NULL, 99 << 20, 99 << 20, "warm");
        WITH_NPU_PROFILER(&npu, 1, "warm", "NPU", PROF_NO_ARGS, fake_ticks += 7777);
    }
    {
        PROF_RECORD("overlap");
        const uint64_t at = fake_ticks + device_zero;
        npuprof_npu_span(&npu, 1, "Execution", "NPU", at, at + 160,
                         PROF_ARGS(PROF_INT("execution_index", 0)));
        npuprof_npu_span(&npu, 1, "conv", "NPU", at, at + 100,
                         PROF_ARGS(PROF_INT("execution_index", 0), PROF_INT("instruction_index", 1)));
        npuprof_npu_span(&npu, 1, "vector", "NPU", at + 50, at + 150,
                         PROF_ARGS(PROF_INT("execution_index", 0), PROF_INT("instruction_index", 2)));
        npuprof_npu_span(&npu, 1, "Execution", "NPU", at + 1000, at + 1500,
                         PROF_ARGS(PROF_INT("execution_index", 1)));
        npuprof_npu_span(&npu, 1, "Load", "NPU", at + 1000, at + 1400,
                         PROF_ARGS(PROF_INT("execution_index", 1), PROF_INT("instruction_index", 0)));
        fake_ticks += 5000;
        for (int i = 0; i < 3; i++) {
            PROF_INFERENCE("a model, \"quoted\"");
            fake_ticks += 100;
            WITH_NPU_PROFILER(&npu, 2, "matmul", "NPU", PROF_ARGS(PROF_INT("execution_index", 10 + i)),
                              fake_ticks += 1000);
            {
                PROF_OPERATOR(7, "Gr\xC3\xB6\xC3\x9F"
                                 "e, with a name that is longer than any column of the table");
                fake_ticks += 40;
            }
            { PROF_SCOPE_CAT("user", "post\tprocess\\"); fake_ticks += 60; }
            PROF_MEMORY(NULL, (uint64_t)(i + 1) << 20, (uint64_t)(i == 1 ? 8 : 4) << 20,
                        i == 1 ? "loss" : "conv");
        }
        PROF_MEMORY(NULL, 3 << 20, 8 << 20, "tensor");
        PROF_ALLOC(NULL, 2 << 20, "tensor");
        PROF_FREE(NULL, 1234567, "tensor");
    }
    npuprof_async_begin("queue", "job", 5);
    fake_ticks += 900;
    npuprof_async_end(5);
    npuprof_span("dma", "copy", "transfer", npuprof_now_ns() - 400, npuprof_now_ns() - 100, PROF_NO_ARGS);
}

int main(int argc, char **argv)
{
    npuprof_npu_desc desc;
    if (argc < 2) return 2;
    memset(&desc, 0, sizeof desc);
    desc.name = "npu0";
    desc.read_ticks = fake_counter_apart;
    desc.counter.hz = 1000000000;
    desc.pe_count = 2;
    PROF_THREAD_NAME("main");
    npuprof_start(1);
    fake_ticks += 1000000;
    if (npuprof_npu_open(&npu, &desc) != NPUPROF_OK) return 2;
    if (strcmp(argv[1], "edges") == 0) edges();
    else release(&releases[argv[1][0] == '2']);
    fake_ticks += 1000000;
    npuprof_npu_close(&npu);
    npuprof_stop();
    for (int i = 2; i < argc; i++)
        if (npuprof_dump(argv[i]) != NPUPROF_OK) return 1;
#define PRINTS(name) name,
    npuprof_result (*const print[])(FILE *) = { NPUPROF_TABLES(PRINTS) };
    for (unsigned i = 0; i < sizeof print / sizeof *print; i++) {
        if (i) printf("\n");
        if (print[i](stdout) != NPUPROF_OK) return 1;
    }
    return 0;
}

/* Two devices of one name whose spans, instants and values lie at random, in and beside each other; spans and
   tracks of one name; a memory pool of 2^63 bytes. usage: points SEED FILE
   SPDX-License-Identifier: MIT */
#include "../npu/sim.h"
#include "npuprof.h"
#include "npuprof_npu.h"

static npuprof_npu npu[2];
static uint64_t state;
static unsigned any(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

static void device(npuprof_npu *to)
{
    const uint64_t now = sim_truth();
    for (int i = 0; i < 60; i++) {
        const uint64_t start = now - 1 - any(2000), end = start + any((unsigned)(now - start));
        const unsigned pe = any(2);
        switch (any(4)) {
        case 0: npuprof_npu_value(to, "power", any(9), start); break;
        case 1: npuprof_npu_instant(to, pe, "fault", NULL, start, PROF_ARGS(PROF_UINT("code", 9))); break;
        case 2:
            (void)npuprof_npu_complete(to, 0, pe, "run", NULL, start, end, PROF_NO_ARGS, false);
            npuprof_npu_instant(to, pe, "at its end", NULL, end, PROF_NO_ARGS);
            break;
        default:
            (void)npuprof_npu_complete(to, 0, pe, "step", NULL, start, end,
                                       PROF_ARGS(PROF_INT("instruction_index", i)), false);
        }
    }
}

int main(int argc, char **argv)
{
    const npuprof_device pool = { "pool", NULL, NULL, false };
    if (argc < 3) return 2;
    state = (uint64_t)atoi(argv[1]) * 77 + 5;
    SIM_DESC(desc);
    desc.pe_count = 2;
    npuprof_start(1);
    for (int i = 0; i < 2; i++)
        if (npuprof_npu_open(&npu[i], &desc) != NPUPROF_OK) return 2;
    sim_advance(10000000);
    npuprof_metadata("seed", argv[1]);
    PROF_MEMORY(&pool, UINT64_C(1) << 63, UINT64_MAX, "all");
    for (int i = 0; i < 2; i++) {
        npuprof_async_begin("q", "copy", 1 + (uint64_t)i);
        sim_advance(100000);
        device(&npu[i]);
        npuprof_span("copy", "d", "copy", npuprof_now_ns() - 50, npuprof_now_ns() - 10, PROF_NO_ARGS);
        npuprof_span("copy", "d", "copy", npuprof_now_ns() - 40, npuprof_now_ns() - 5, PROF_NO_ARGS);
    }
    for (int i = 0; i < 2; i++) {
        npuprof_async_end(1 + (uint64_t)i);
        npuprof_npu_close(&npu[i]);
    }
    return npuprof_dump(argv[2]) == NPUPROF_OK ? 0 : 3;
}

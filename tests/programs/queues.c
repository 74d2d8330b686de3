/* Queues of a device with every kind of record: spans of begins and ends, instants, a counter, lanes with
   names, spans on the host's clock, and what is odd. usage: queues FILE...
   SPDX-License-Identifier: MIT */
#include "../npu/sim.h"
#include "../trace.h"
#include "../npu/fed.h"
#include "npuprof.h"
#include "npuprof_npu.h"

static npuprof_npu npu;
static const npuprof_npu_kind kinds[] = { { 1, NPUPROF_NPU_KIND_BEGIN }, { 2, NPUPROF_NPU_KIND_END },
                                          { 3, NPUPROF_NPU_KIND_INSTANT }, { 4, NPUPROF_NPU_KIND_COUNTER } };
static const npuprof_npu_lane lanes[] = { { 7, "core 7" }, { 9, "core 9" } };

/* kind 1 | key 1 | lane 1 | op 1 | job 4 | stamp 8 */
enum { ENTRY = 16 };
static void feed(unsigned ring, unsigned kind, unsigned key, unsigned lane, uint64_t job, uint64_t stamp)
{
    unsigned char entry[ENTRY];
    put(entry, 1, kind);
    put(entry + 1, 1, key);
    put(entry + 2, 1, lane);
    put(entry + 3, 1, kind);
    put(entry + 4, 4, job);
    put(entry + 8, 8, stamp);
    if (npuprof_npu_feed(&npu, ring, entry, ENTRY) != NPUPROF_OK) exit(2);
}

static void describe(npuprof_npu_ring rings[2])
{
    for (int i = 0; i < 2; i++) {
        rings[i].feed = true;
        rings[i].entry_bytes = ENTRY;
        rings[i].op = (npuprof_npu_field)AT(3, 1, 0, 0);
        rings[i].job = (npuprof_npu_field)AT(4, 4, 0, 0);
    }
    rings[0].kind = (npuprof_npu_field)AT(0, 1, 0, 0);
    rings[0].kinds = kinds;
    rings[0].kind_count = 4;
    rings[0].key[0] = (npuprof_npu_field)AT(1, 1, 0, 0);
    rings[0].pe = (npuprof_npu_field)AT(2, 1, 0, 0);
    rings[0].value = (npuprof_npu_field)AT(4, 4, 0, 0);
    rings[0].stamp = (npuprof_npu_field)AT(8, 8, 0, 0);
    rings[0].lanes = lanes;
    rings[0].lane_count = 2;
    rings[1].stamp_clock = NPUPROF_NPU_STAMP_NONE;
    rings[1].pe_base = 3;
}

int main(int argc, char **argv)
{
    static npuprof_npu_ring rings[2];
    SIM_DESC(desc);
    describe(rings);
    desc.pe_count = 4;
    desc.rings = rings;
    desc.ring_count = 2;
    desc.cpu_ns = true;
    npuprof_start(1);
    if (npuprof_npu_open(&npu, &desc) != NPUPROF_OK) return 2;
    sim_advance(10000000);
    for (unsigned i = 0; i < 20; i++) {
        const unsigned lane = i & 2 ? 7 : 9;
        uint32_t job = 0;
        WITH_NPU_PROFILER(&npu, 3, "infer", "NPU", PROF_NO_ARGS,
                          { job = npuprof_npu_job(&npu); sim_advance(10000); });
        sim_advance(50000);
        const uint64_t now = sim_truth();
        if (i & 1) {
            feed(1, 0, 0, 0, job, 0);
            continue;
        }
        feed(0, 1, i, lane, job, now - 1000);
        feed(0, 3, 0, 7, 0, now - 900);
        feed(0, 4, 0, 7, i, now - 800);
        feed(0, 2, i, lane, 0, now - 500);
    }
    feed(0, 2, 99, 7, 0, sim_truth());           /* no begin; no end; no kind; not yet */
    feed(0, 1, 98, 7, 0, sim_truth() - 5);
    feed(0, 88, 98, 7, 0, sim_truth() - 5);
    feed(0, 3, 98, 7, 0, sim_truth() + 500000);
    npuprof_npu_close(&npu);
    for (int i = 1; i < argc; i++)
        if (npuprof_dump(argv[i]) != NPUPROF_OK) return 3;
    return 0;
}

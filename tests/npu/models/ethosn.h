/* ethosn.h - Arm Ethos-N77 / N78: profiling entries of 8 bytes, which the driver reads from a debugfs file.
   SPDX-License-Identifier: MIT

   From Arm-software/ethos-n-driver-stack 6834c82 (uapi/ethosn_shared.h:73-78, ethosn_firmware.h:454-480,
   Profiling.cpp). A core's firmware has a buffer and a counter of its own, which no host can read: four cores
   are four devices here, and the driver pushes anchors. Word 0 is the low half of the cycle counter; word 1:
   1:0 type (0 start, 1 end, 2 instant, 3 counter), 6:2 id, 31:7 data. A full stamp (instant 0) has bits 52:32
   of the counter at 31:11. The write index, a slot, moves when an inference is over. */

enum { ETHOSN_HEADER = 128, ETHOSN_COUNT = 3001, ETHOSN_CORES = 4 };
static struct {
    unsigned char *buffer;
    uint32_t slot, reader, id;
    uint64_t zero;                       /* what its counter shows beside that of the others */
    uint64_t anchored_at;
} ethosn[ETHOSN_CORES];
static bool ethosn_gives_full_stamps = true, ethosn_is_anchored = true;

static const npuprof_npu_op ethosn_ops[] = { { 1, "Inference" }, { 4, "DmaReadSetup" }, { 5, "DmaRead" },
                                             { 9, "MceStripe" }, { 11, "PleStripe" } };
static const npuprof_npu_kind ethosn_kinds[] = { { 0, NPUPROF_NPU_KIND_BEGIN }, { 1, NPUPROF_NPU_KIND_END },
                                                 { 2, NPUPROF_NPU_KIND_INSTANT },
                                                 { 3, NPUPROF_NPU_KIND_SKIP } };

static void ethosn_describe_entry(npuprof_npu_ring *r)
{
    *r = (npuprof_npu_ring){
        .feed = true, .entry_bytes = 8, .stamp = play_field(0, 4, 31, 0), .ascending = true,
        .kind = play_field(4, 4, 1, 0), .kinds = ethosn_kinds, .kind_count = 4,
        .key = { play_field(4, 4, 6, 2) },
        .op = play_field(4, 4, 10, 7), .ops = ethosn_ops, .op_count = 5, .execution_op = 1 + 1,
        .clock_when = { { play_field(4, 4, 1, 0), 2 }, { play_field(4, 4, 10, 7), 0 } },
        .clock_high = play_field(4, 4, 31, 11) };
}

static void ethosn_describe(npuprof_npu_desc *d)
{
    d->anchors_only = true;
    d->counter.bits = 53;
    ethosn[play_opening].buffer = play_memory(ETHOSN_HEADER + 8 * ETHOSN_COUNT + 8);
    ethosn[play_opening].zero = 1000000007ull * play_opening;
    ethosn_describe_entry(&d->ring);
}

static uint64_t ethosn_cycles(unsigned core, uint64_t ns) { return play_ticks(ns) + ethosn[core].zero; }

static void ethosn_write(unsigned char *entry, uint64_t cycles, uint32_t word)
{
    play_put(entry, 0, 4, cycles & UINT32_MAX);
    play_put(entry, 4, 4, word);
}

static void ethosn_put(unsigned core, uint64_t cycles, uint32_t word)
{
    ethosn_write(ethosn[core].buffer + ETHOSN_HEADER + 8u * ethosn[core].slot, cycles, word);
    ethosn[core].slot = (ethosn[core].slot + 1) % ETHOSN_COUNT;
}

static uint32_t ethosn_start(unsigned core, uint64_t ns, uint32_t event)
{
    const uint32_t id = ethosn[core].id++ % 32;
    ethosn_put(core, ethosn_cycles(core, ns), id << 2 | event << 7);
    return id;
}

static void ethosn_end(unsigned core, uint64_t ns, uint32_t id)
{
    ethosn_put(core, ethosn_cycles(core, ns), 1 | id << 2);
}

/* An inference with two pieces of work that overlap. */
static void ethosn_ended(const play_job *job)
{
    const unsigned core = job->lane;
    const uint64_t piece = (job->end - job->begin) / 8, b = job->begin;
    if (ethosn_gives_full_stamps)
        ethosn_put(core, ethosn_cycles(core, b),
                   2 | (uint32_t)(ethosn_cycles(core, b) >> 32 & 0x1FFFFF) << 11);
    const uint32_t whole = ethosn_start(core, b, 1);
    const uint32_t dma = ethosn_start(core, b + piece, 5);
    const uint32_t mce = ethosn_start(core, b + 2 * piece, 9);
    ethosn_put(core, ethosn_cycles(core, b + 3 * piece), 3 | 2 << 2 | 0x1FFFFFFu << 7);
    ethosn_end(core, b + 4 * piece, dma);
    ethosn_end(core, b + 6 * piece, mce);
    ethosn_end(core, job->end, whole);
    play_put(ethosn[core].buffer, 0, 4, ethosn[core].slot);      /* nothing was visible before */
    play_truth(core, "Inference", job->serial, b, job->end);
    play_truth(core, "DmaRead", -1, b + piece, b + 4 * piece);
    play_truth(core, "MceStripe", -1, b + 2 * piece, b + 6 * piece);
    play.entries += 6;                                           /* starts and ends */
}

static void ethosn_anchor(unsigned core)
{
    play_anchor(&play_npus[core], ethosn[core].zero, 1000);
    ethosn[core].anchored_at = play.host;
}

static void ethosn_opened(void)
{
    for (unsigned core = 0; core < play_devices(); core++) ethosn_anchor(core);
}

/* Reads the debugfs files. */
static void ethosn_serve(void)
{
    static unsigned char bytes[8 * ETHOSN_COUNT];
    for (unsigned core = 0; core < play_devices(); core++) {
        size_t n = 0;
        const uint32_t end = (uint32_t)play_get(ethosn[core].buffer, 0, 4) % ETHOSN_COUNT;
        for (; ethosn[core].reader != end; n += 8) {
            play_copy(bytes + n, ethosn[core].buffer, ETHOSN_HEADER + 8u * ethosn[core].reader, 8);
            ethosn[core].reader = (ethosn[core].reader + 1) % ETHOSN_COUNT;
        }
        if (ethosn_is_anchored && play.host - ethosn[core].anchored_at > 20000000) ethosn_anchor(core);
        if (n) play_note(npuprof_npu_feed(&play_npus[core], 0, bytes, n));
    }
}

static const play_model ethosn_model = {
    .name = "ethosn", .lanes = ETHOSN_CORES, .hz = 1000000000, .start = 1000, .ppm = 37, .separate = true,
    .describe = ethosn_describe, .opened = ethosn_opened, .ended = ethosn_ended, .serve = ethosn_serve,
    .own_truth = true, .entries_per_job = UINT32_MAX, .compare = "per_span=2"
};

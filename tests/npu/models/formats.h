/* formats.h - the entries of all devices by themselves: where things are, and the bytes of one job. For tests
   and benchmarks that bring the entries by whatever way they like. After all.h.
   SPDX-License-Identifier: MIT */
#ifndef FORMATS_H
#define FORMATS_H

typedef struct play_format {
    const char *name;
    void (*describe)(npuprof_npu_ring *ring);    /* the format alone: no transport */
    unsigned (*write)(unsigned char *to, const play_job *job);   /* the job's: 256 bytes at most */
    unsigned job_bits;                   /* 0: entries do not name the job */
} play_format;

static unsigned format_fence(unsigned char *to, const play_job *job)
{
    memset(to, 0, FENCE_ENTRY);
    fence_write(to, job);
    return FENCE_ENTRY;
}

static unsigned format_hws(unsigned char *to, const play_job *job)
{
    memset(to, 0, 2 * HWS_ENTRY);
    hws_write(to, job->begin, 1, job->lane, job->id);
    hws_write(to + HWS_ENTRY, job->end, 3, job->lane, 0);
    return 2 * HWS_ENTRY;
}

static unsigned format_ethosn(unsigned char *to, const play_job *job)
{
    const uint64_t begin = play_ticks(job->begin);
    ethosn_write(to, begin, 2 | (uint32_t)(begin >> 32 & 0x1FFFFF) << 11);
    ethosn_write(to + 8, begin, job->serial % 32 << 2 | 1 << 7);
    ethosn_write(to + 16, play_ticks(job->end), 1 | job->serial % 32 << 2);
    return 24;
}

static void tt_write(unsigned char *to, uint32_t type, uint32_t id, uint64_t ticks)
{
    play_put(to, 0, 4, 0x80000000u | type << 28 | id << 12 | (ticks >> 32 & 0xFFF));
    play_put(to, 4, 4, ticks & UINT32_MAX);
}

static unsigned format_tt(unsigned char *to, const play_job *job)
{
    tt_write(to, 0, TT_FIRMWARE, play_ticks(job->begin));
    tt_write(to + 8, 1, TT_FIRMWARE, play_ticks(job->end));
    return 16;
}

static unsigned format_neuron(unsigned char *to, const play_job *job)
{
    memset(to, 0, 2 * NEURON_BYTES);
    neuron_write(to, job, job->begin, 0, 1);
    neuron_write(to + NEURON_BYTES, job, job->end, 1, 1);
    return 2 * NEURON_BYTES;
}

static unsigned format_gaudi_cq(unsigned char *to, const play_job *job)
{
    play_put(to, 0, 4, 0xC0000000u | (job->id & 0xFFF));
    return 4;
}

static unsigned format_gaudi_eq(unsigned char *to, const play_job *job)
{
    memset(to, 0, 64);
    gaudi_put_event(to, 0x123, job->serial, job->id);
    return 64;
}

static unsigned format_qaic(unsigned char *to, const play_job *job)
{
    play_put(to, 0, 4, job->id & 0xFFFF);
    return 4;
}

/* What no device has: everything that an entry may hold. */
static void wide_describe(npuprof_npu_ring *r)
{
    static const npuprof_npu_kind kinds[] = { { 1, NPUPROF_NPU_KIND_SKIP }, { 9, NPUPROF_NPU_KIND_SPAN } };
    *r = (npuprof_npu_ring){
        .entry_bytes = 96, .start = play_two(play_field(0, 4, 31, 0), play_field(4, 4, 31, 0)),
        .end = play_two(play_field(12, 4, 31, 0), play_field(8, 4, 31, 0)),
        .kind = play_field(16, 1, 7, 0), .kinds = kinds, .kind_count = 2,
        .job = play_two(play_field(20, 4, 31, 0), play_field(24, 4, 31, 0)),
        .pe = play_two(play_field(28, 2, 15, 0), play_field(30, 2, 15, 0)),
        .op = play_two(play_field(32, 4, 31, 0), play_field(36, 4, 31, 0)), .ops = fence_ops, .op_count = 2,
        .status = play_field(40, 4, 31, 0), .execution = play_field(44, 4, 31, 0),
        .instruction = play_field(48, 4, 31, 0),
        .key = { play_field(44, 4, 31, 0), play_field(48, 4, 31, 0) },
        .scale_num = 3, .scale_den = 2, .stamp_offset = 12345 };
    for (unsigned i = 0; i < 4; i++) {
        static const char *const names[] = { "a", "b", "c", "d" };
        r->args[i].field = play_two(play_field(56 + 8 * i, 4, 31, 0), play_field(60 + 8 * i, 4, 31, 0));
        r->args[i].name = names[i];
    }
}

static unsigned format_wide(unsigned char *to, const play_job *job)
{
    const uint64_t begin = (play_ticks(job->begin) - 12345) / 3 * 2,
        end = (play_ticks(job->end) - 12345) / 3 * 2;
    memset(to, 0x11, 96);
    play_put(to, 0, 4, begin & UINT32_MAX);
    play_put(to, 4, 4, begin >> 32);
    play_put(to, 12, 4, end & UINT32_MAX);
    play_put(to, 8, 4, end >> 32);
    play_put(to, 16, 1, 9);
    play_put(to, 20, 4, job->id & UINT32_MAX);
    play_put(to, 24, 4, job->id >> 32);
    play_put(to, 28, 4, job->lane);
    play_put(to, 32, 4, 1);
    play_put(to, 36, 4, 0);
    return 96;
}

static const play_format play_formats[] = {
    { "Intel fence log", fence_describe_entry, format_fence, 64 },
    { "Intel scheduler log", hws_describe_entry, format_hws, 0 },
    { "Ethos-N", ethosn_describe_entry, format_ethosn, 0 },
    { "Tenstorrent marker", tt_describe_entry, format_tt, 0 },
    { "Neuron (assumed)", neuron_describe_entry, format_neuron, 0 },
    { "Gaudi CQ", gaudi_describe_entry, format_gaudi_cq, 12 },
    { "Gaudi EQ", gaudi_describe_eq_entry, format_gaudi_eq, 0 },
    { "QAIC", qaic_describe_entry, format_qaic, 16 },
    { "the widest", wide_describe, format_wide, 64 }
};
enum { PLAY_FORMATS = sizeof play_formats / sizeof play_formats[0] };

#endif /* FORMATS_H */

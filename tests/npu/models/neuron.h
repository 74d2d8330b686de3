/* neuron.h - AWS Neuron: a notification queue with a phase bit.
   SPDX-License-Identifier: MIT

   Public (aws-neuron/aws-neuron-driver fca19f7): queues in host memory, one for each type and core, ready by
   a phase bit that toggles each lap. The layout of an entry is not public; this one is ASSUMED, as in
   examples/devices/neuron.toml: 32 bytes, word 0: 0 phase, 7:4 kind (0 begin, 1 end), 15:8 engine; at 4
   instruction; at 8 and 12 the stamp's halves. No counter that a host can read is known. */

enum { NEURON_BYTES = 32, NEURON_ENGINES = 4 };
static unsigned neuron_count = 700;
static unsigned char *neuron_memory;
static uint64_t neuron_written, neuron_anchored_at;
static const npuprof_npu_kind neuron_kinds[] = { { 0, NPUPROF_NPU_KIND_BEGIN }, { 1, NPUPROF_NPU_KIND_END },
                                                 { 2, NPUPROF_NPU_KIND_INSTANT } };

static void neuron_describe_entry(npuprof_npu_ring *r)
{
    *r = (npuprof_npu_ring){
        .entry_bytes = NEURON_BYTES, .stamp = play_two(play_field(8, 4, 31, 0), play_field(12, 4, 31, 0)),
        .kind = play_field(0, 4, 7, 4), .kinds = neuron_kinds, .kind_count = 3,
        .key = { play_field(4, 4, 31, 0) }, .instruction = play_field(4, 4, 31, 0),
        .pe = play_field(0, 4, 15, 8) };
}

static void neuron_describe(npuprof_npu_desc *d)
{
    d->anchors_only = true;
    neuron_describe_entry(&d->ring);
    d->ring.memory = neuron_memory = play_memory(NEURON_BYTES * neuron_count);
    d->ring.memory_bytes = NEURON_BYTES * neuron_count;
    d->ring.count = neuron_count;
    d->ring.ready = NPUPROF_NPU_READY_PHASE;
    d->ring.phase = play_field(0, 4, 0, 0);
    d->ring.phase_first = 1;
}

static void neuron_write(unsigned char *entry, const play_job *job, uint64_t ns, uint32_t kind,
                         uint32_t phase)
{
    const uint64_t ticks = play_ticks(ns);
    play_put(entry, 4, 4, job->serial);
    play_put(entry, 8, 4, ticks & UINT32_MAX);
    play_put(entry, 12, 4, ticks >> 32);
    play_put(entry, 0, 4, phase | kind << 4 | job->lane << 8);
}

static void neuron_notify(const play_job *job, uint64_t ns, uint32_t kind)
{
    const uint64_t number = neuron_written++;
    neuron_write(neuron_memory + number % neuron_count * NEURON_BYTES, job, ns, kind,
                 !(number / neuron_count & 1));
    play.entries++;
}

static void neuron_began(const play_job *job) { neuron_notify(job, job->begin, 0); }
static void neuron_ended(const play_job *job) { neuron_notify(job, job->end, 1); }

static void neuron_anchor(void)
{
    play_anchor(&play_npus[0], 0, 1000);
    neuron_anchored_at = play.host;
}

static void neuron_serve(void)
{
    if (play.host - neuron_anchored_at > 20000000) neuron_anchor();
    play_note(npuprof_npu_drain(&play_npus[0]));
}

static const play_model neuron_model = {
    .name = "neuron", .lanes = NEURON_ENGINES, .hz = 1000000000, .start = 0xFFFFFF000000ull, .ppm = 11,
    .describe = neuron_describe, .opened = neuron_anchor, .began = neuron_began, .ended = neuron_ended,
    .serve = neuron_serve, .entries_per_job = UINT32_MAX, .compare = "per_span=2"
};

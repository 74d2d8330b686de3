/* neuron.h - AWS Neuron: a notification queue with a phase bit.
   SPDX-License-Identifier: MIT

   Public (aws-neuron/aws-neuron-driver fca19f7): queues in host memory, one for each type and core, ready by
   a phase bit that toggles each lap. The layout of an entry is not public; this one is ASSUMED: 32 bytes, at
   0 word 0: 0 phase, 2:1 kind (1 begin, 2 end), 15:8 engine; at 4 instruction; at 8 and 12 the stamp's
   halves; at 16 job. */

enum { NEURON_BYTES = 32, NEURON_COUNT = 700, NEURON_ENGINES = 4 };
static unsigned char *neuron_memory, *neuron_bar;
static uint64_t neuron_written;
static const npuprof_npu_kind neuron_kinds[] = { { 1, NPUPROF_NPU_KIND_BEGIN }, { 2, NPUPROF_NPU_KIND_END } };
static const npuprof_npu_op neuron_ops[] = { { 7, "matmul" } };

static void neuron_describe_entry(npuprof_npu_ring *r)
{
    r->entry_bytes = NEURON_BYTES;
    r->stamp = play_two(play_field(8, 4, 31, 0), play_field(12, 4, 31, 0));
    r->kind = play_field(0, 4, 2, 1);
    r->kinds = neuron_kinds;
    r->kind_count = 2;
    r->key[0] = r->job = play_field(16, 8, 63, 0);
    r->pe = play_field(0, 4, 15, 8);
    r->op = play_field(4, 4, 31, 0);
    r->ops = neuron_ops;
    r->op_count = 1;
}

static void neuron_describe(npuprof_npu_desc *d)
{
    d->bar = neuron_bar = play_memory(64);
    d->bar_bytes = 64;
    d->counter.lo_offset = 0;
    d->counter.hi_offset = 4;
    d->ring.memory = neuron_memory = play_memory(NEURON_BYTES * NEURON_COUNT);
    d->ring.memory_bytes = NEURON_BYTES * NEURON_COUNT;
    d->ring.count = NEURON_COUNT;
    d->ring.ready = NPUPROF_NPU_READY_PHASE;
    d->ring.phase = play_field(0, 4, 0, 0);
    d->ring.phase_first = 1;
    neuron_describe_entry(&d->ring);
}

static void neuron_show(uint64_t ticks)
{
    play_put(neuron_bar, 0, 4, ticks & UINT32_MAX);
    play_put(neuron_bar, 4, 4, ticks >> 32);
}

static void neuron_write(unsigned char *entry, const play_job *job, uint64_t ns, uint32_t kind,
                         uint32_t phase)
{
    const uint64_t ticks = play_ticks(ns);
    play_put(entry, 4, 4, 7);
    play_put(entry, 8, 4, ticks & UINT32_MAX);
    play_put(entry, 12, 4, ticks >> 32);
    play_put(entry, 16, 8, job->id);
    play_put(entry, 0, 4, phase | kind << 1 | job->lane << 8);
}

static void neuron_notify(const play_job *job, uint64_t ns, uint32_t kind)
{
    const uint64_t number = neuron_written++;
    neuron_write(neuron_memory + number % NEURON_COUNT * NEURON_BYTES, job, ns, kind,
                 !(number / NEURON_COUNT & 1));
    play.entries++;
}

static void neuron_began(const play_job *job) { neuron_notify(job, job->begin, 1); }
static void neuron_ended(const play_job *job) { neuron_notify(job, job->end, 2); }
static const char *neuron_name(const play_job *job) { (void)job; return "matmul"; }

static const play_model neuron_model = {
    .name = "neuron", .lanes = NEURON_ENGINES, .hz = 1400000000, .start = 0xFFFFFF000000ull, .ppm = 11,
    .describe = neuron_describe, .name_of = neuron_name, .began = neuron_began, .ended = neuron_ended,
    .show = neuron_show, .entries_per_job = UINT32_MAX, .compare = "per_span=2"
};

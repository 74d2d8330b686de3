/* qaic.h - Qualcomm Cloud AI 100: response queues without stamps, read beside the driver.
   SPDX-License-Identifier: MIT

   From Linux drivers/accel/qaic (qaic.h QAIC_DBC_OFF, qaic_data.c struct dbc_rsp, qaic_timesync.c). The
   counter: 64 bits at BAR 0 + 0xA28, 19.2 MHz. Channel i: registers at 0x20000 + 0x1000 i of another BAR,
   +0xC the device's tail, a slot; entries of 4 bytes in host memory: u16 req_id, u16 status. One response
   for each slice of a job, 1 to 5 here. */

enum { QAIC_CHANNELS = 4, QAIC_BAR0 = 0x1000, QAIC_DBC = 0x20000, QAIC_BAR2 = 0x24000 };
static unsigned qaic_count = 256;
static unsigned char *qaic_bar0, *qaic_bar2;
static struct { unsigned char *memory; uint64_t written; } qaic[QAIC_CHANNELS];
static npuprof_npu_ring qaic_rings[QAIC_CHANNELS];

static void qaic_describe_entry(npuprof_npu_ring *r)
{
    *r = (npuprof_npu_ring){ .entry_bytes = 4, .job = play_field(0, 2, 15, 0),
                             .status = play_field(2, 2, 15, 0), .stamp_clock = NPUPROF_NPU_STAMP_NONE };
}

static void qaic_describe(npuprof_npu_desc *d)
{
    d->bar = qaic_bar0 = play_memory(QAIC_BAR0);
    d->bar_bytes = QAIC_BAR0;
    d->counter.lo_offset = 0xA28;
    d->counter.access = 64;
    d->counter.order = NPUPROF_NPU_SINGLE;
    qaic_bar2 = play_memory(QAIC_BAR2);
    for (unsigned i = 0; i < QAIC_CHANNELS; i++) {
        npuprof_npu_ring *r = &qaic_rings[i];
        qaic_describe_entry(r);
        r->memory = qaic[i].memory = play_memory(4 * qaic_count);
        r->memory_bytes = 4 * qaic_count;
        r->count = qaic_count;
        r->producer = (npuprof_npu_index){
            .memory = qaic_bar2, .memory_bytes = QAIC_BAR2, .offset = QAIC_DBC + 0x1000 * i + 0xC,
            .unit = NPUPROF_NPU_INDEX_SLOT };
        r->pe_base = i;
        play_put(qaic_bar2, r->producer.offset, 4, qaic[i].written % qaic_count);
    }
    d->rings = qaic_rings;
    d->ring_count = QAIC_CHANNELS;
}

static void qaic_show(uint64_t ticks) { play_put(qaic_bar0, 0xA28, 8, ticks); }
static unsigned qaic_slices(const play_job *job) { return job->serial % 5 + 1; }

static void qaic_numbered(const play_job *job)
{
    npuprof_npu_set_job_records(&play_npus[0], qaic_slices(job));
}

/* ids come round, and those of a channel are its own */
static uint64_t qaic_number(uint32_t serial, uint32_t lane)
{
    return (serial * 2654435761u >> 4 | lane) & 0xFFFF;
}

static void qaic_respond(const play_job *job, uint64_t ns)
{
    const unsigned c = job->lane;
    const size_t at = 4 * (size_t)(qaic[c].written++ % qaic_count);
    play_put(qaic[c].memory, at + 2, 2, 0);
    play_put(qaic[c].memory, at, 2, job->id);
    play_put(qaic_bar2, QAIC_DBC + 0x1000 * c + 0xC, 4, qaic[c].written % qaic_count);
    play_truth(c, "submit", job->serial, job->begin, ns);
    play.entries++;
}

static void qaic_began(const play_job *job)
{
    for (unsigned i = 1; i < qaic_slices(job); i++) qaic_respond(job, job->begin);
}

static void qaic_ended(const play_job *job) { qaic_respond(job, job->end); }

/* serve_every: the driver takes a response at once; as a second reader, see all before they come round. */
static const play_model qaic_model = {
    .name = "qaic", .lanes = QAIC_CHANNELS, .hz = 19200000, .start = 99, .ppm = -40,
        .describe = qaic_describe,
    .number = qaic_number, .numbered = qaic_numbered, .began = qaic_began, .ended = qaic_ended,
    .show = qaic_show, .serve_every = 300000, .own_truth = true, .entries_per_job = UINT32_MAX,
    .compare = "stamps=host"
};

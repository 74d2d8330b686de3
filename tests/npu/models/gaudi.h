/* gaudi.h - Habana Gaudi: completion queues without stamps, fed where the driver reads them, or polled beside
   it; the event queue.
   SPDX-License-Identifier: MIT

   From Linux drivers/accel/habanalabs (qman_if.h, cpucp_if.h, irq.c) and uapi/habanalabs.h. A CQ entry is 4
   bytes, little-endian: 31 ready, 30 shadow index valid, 11:0 number of the job or command submission modulo
   4096. The driver clears bit 31. An EQ entry has 64 bytes: at 4 ready 31, type 27:16, index 15:0. Time comes
   from an ioctl that takes a microsecond or two. */

enum { GAUDI_QUEUES = 4, GAUDI_CQ = 4096, GAUDI_EQ = 64 };
static struct {
    unsigned char *memory;
    uint64_t written, reader;
    uint64_t written_at[GAUDI_CQ];
} gaudi[GAUDI_QUEUES];
static struct {
    unsigned char *memory;
    uint64_t written, reader;
    uint64_t written_at[GAUDI_EQ];
} gaudi_event_queue;
static npuprof_npu_ring gaudi_rings[GAUDI_QUEUES + 1];   /* the last is the EQ */
static uint64_t gaudi_clears_after = 6000000;    /* ns; polled only */

static void gaudi_describe_entry(npuprof_npu_ring *r)
{
    *r = (npuprof_npu_ring){ .entry_bytes = 4, .job = play_field(0, 4, 11, 0),
                             .stamp_clock = NPUPROF_NPU_STAMP_NONE };
}

static const npuprof_npu_op gaudi_eq_ops[] = { { 0x123, "HBM ECC" } };

static void gaudi_describe_eq_entry(npuprof_npu_ring *r)
{
    *r = (npuprof_npu_ring){
        .entry_bytes = 64, .stamp_clock = NPUPROF_NPU_STAMP_NONE, .all_are = NPUPROF_NPU_KIND_INSTANT,
        .op = play_field(4, 4, 27, 16), .ops = gaudi_eq_ops, .op_count = 1,
        .args = { { play_field(8, 8, 63, 0), "data" } } };
}

static void gaudi_put_event(unsigned char *entry, uint32_t type, uint32_t index, uint64_t data)
{
    play_put(entry, 8, 8, data);
    play_put(entry, 4, 4, 0x80000000u | type << 16 | (index & 0xFFFF));
}

/* The ioctl: the device's time, then the host's. */
static uint64_t gaudi_read_ticks(void *user)
{
    (void)user;
    play_until(play.host + 300 + play_random(700));
    const uint64_t ticks = play_ticks(play.host);
    play_until(play.host + 300 + play_random(700));
    return ticks;
}

/* The queue is polled: a bit of word `at` says that an entry is there, and the driver clears it. */
static void gaudi_describe_polling(npuprof_npu_ring *r, unsigned char *memory, unsigned count, unsigned at)
{
    r->memory = memory;
    r->memory_bytes = r->entry_bytes * count;
    r->count = count;
    r->ready = NPUPROF_NPU_READY_VALID;
    r->valid = play_field(at, 4, 31, 31);
    r->valid_value = 1;
}

static void gaudi_describe(npuprof_npu_desc *d, bool fed)
{
    npuprof_npu_ring *const eq = &gaudi_rings[GAUDI_QUEUES];
    d->read_ticks = gaudi_read_ticks;
    for (unsigned i = 0; i < GAUDI_QUEUES; i++) {
        npuprof_npu_ring *r = &gaudi_rings[i];
        gaudi_describe_entry(r);
        gaudi[i].memory = play_memory(4 * GAUDI_CQ);
        r->pe_base = i;
        r->feed = fed;
        if (!fed) gaudi_describe_polling(r, gaudi[i].memory, GAUDI_CQ, 0);
    }
    gaudi_describe_eq_entry(eq);
    gaudi_event_queue.memory = play_memory(64 * GAUDI_EQ);
    eq->feed = fed;
    if (!fed) gaudi_describe_polling(eq, gaudi_event_queue.memory, GAUDI_EQ, 4);
    if (!fed) eq->sequence = play_field(4, 4, 15, 0);
    d->rings = gaudi_rings;
    d->ring_count = GAUDI_QUEUES + 1;
}

static void gaudi_describe_fed(npuprof_npu_desc *d) { gaudi_describe(d, true); }
static void gaudi_describe_polled(npuprof_npu_desc *d) { gaudi_describe(d, false); }
/* The driver's own number, of which an entry has the low 12 bits. */
static uint64_t gaudi_number(uint32_t serial, uint32_t lane) { (void)lane; return 0x500000000 + serial; }

/* An event, unless the queue is full. */
static void gaudi_event(const play_job *job)
{
    unsigned char *const entry = gaudi_event_queue.memory + 64 * (gaudi_event_queue.written % GAUDI_EQ);
    if (gaudi_event_queue.written - gaudi_event_queue.reader == GAUDI_EQ) return;
    gaudi_event_queue.written_at[gaudi_event_queue.written % GAUDI_EQ] = job->end;
    gaudi_put_event(entry, 0x123, (uint32_t)(65000 + gaudi_event_queue.written), job->serial);
    gaudi_event_queue.written++;
    play_instant(0, "HBM ECC", job->end);
}

static void gaudi_ended(const play_job *job)
{
    const unsigned q = job->lane;
    const uint64_t slot = gaudi[q].written++ % GAUDI_CQ;
    gaudi[q].written_at[slot] = job->end;
    play_put(gaudi[q].memory, 4 * slot, 4, 0xC0000000u | (job->id & 0xFFF));
    if (job->serial % 32 == 0) gaudi_event(job);
}

static void gaudi_serve_events(void)
{
    unsigned char bytes[64];
    for (;; gaudi_event_queue.reader++) {
        const size_t at = 64 * (size_t)(gaudi_event_queue.reader % GAUDI_EQ);
        const uint64_t head = play_get(gaudi_event_queue.memory, at + 4, 4);
        if (!(head >> 31 & 1) || gaudi_event_queue.reader == gaudi_event_queue.written) return;
        play_copy(bytes, gaudi_event_queue.memory, at, 64);
        play_put(gaudi_event_queue.memory, at + 4, 4, head & 0x7FFFFFFF);
        play_note(npuprof_npu_feed(&play_npus[0], GAUDI_QUEUES, bytes, 64));
    }
}

/* The driver's handler: takes what is ready, clears it, feeds it. */
static void gaudi_serve_fed(void)
{
    static unsigned char bytes[4 * GAUDI_CQ];
    for (unsigned q = 0; q < GAUDI_QUEUES; q++) {
        size_t n = 0;
        for (; n < sizeof bytes; n += 4) {
            const size_t at = 4 * (size_t)(gaudi[q].reader % GAUDI_CQ);
            const uint64_t entry = play_get(gaudi[q].memory, at, 4);
            if (!(entry >> 31 & 1)) break;
            play_copy(bytes + n, gaudi[q].memory, at, 4);
            play_put(gaudi[q].memory, at, 4, entry & 0x7FFFFFFF);
            gaudi[q].reader++;
        }
        if (n) play_note(npuprof_npu_feed(&play_npus[0], q, bytes, n));
    }
    gaudi_serve_events();
}

/* The driver clears what is older than gaudi_clears_after, and events after 6 ms. */
static void gaudi_clear(uint64_t ticks)
{
    (void)ticks;
    for (; gaudi_event_queue.reader < gaudi_event_queue.written; gaudi_event_queue.reader++) {
        const size_t slot = (size_t)(gaudi_event_queue.reader % GAUDI_EQ), at = 64 * slot + 4;
        if (play.host < gaudi_event_queue.written_at[slot] + 6000000) break;
        play_put(gaudi_event_queue.memory, at, 4, play_get(gaudi_event_queue.memory, at, 4) & 0x7FFFFFFF);
    }
    for (unsigned q = 0; q < GAUDI_QUEUES; q++) {
        while (gaudi[q].reader < gaudi[q].written) {
            const uint64_t slot = gaudi[q].reader % GAUDI_CQ;
            if (play.host < gaudi[q].written_at[slot] + gaudi_clears_after) break;
            play_put(gaudi[q].memory, 4 * slot, 4, play_get(gaudi[q].memory, 4 * slot, 4) & 0x7FFFFFFF);
            gaudi[q].reader++;
        }
    }
}

static const play_model gaudi_fed_model = {
    .name = "gaudi", .lanes = GAUDI_QUEUES, .hz = 1000000000, .start = 5, .ppm = 3,
    .describe = gaudi_describe_fed, .number = gaudi_number, .ended = gaudi_ended, .serve = gaudi_serve_fed,
    .compare = "stamps=host"
};
static const play_model gaudi_polled_model = {
    .name = "gaudi-polled", .lanes = GAUDI_QUEUES, .hz = 1000000000, .start = 5, .ppm = 3,
    .describe = gaudi_describe_polled, .number = gaudi_number, .ended = gaudi_ended, .show = gaudi_clear,
    .compare = "stamps=host"
};

/* intel.h - Intel NPU (37xx, 40xx, 50xx): native fence logs, and the log of the hardware scheduler.
   SPDX-License-Identifier: MIT

   From intel/linux-npu-driver 7b13873 (vpu_jsm_api.h:362-457) and Linux ivpu_hw_40xx_reg.h. The counter: one
   load of 64 bits at 0x01029008. Both logs lie in host memory, little-endian: at 0 the next slot, at 4 a lap
   count that moves with entry 0: the fence log counts returns to it, the scheduler's log writes of it. Stamps
   of the fence log are SysTime: half the counter and an offset. */

enum { INTEL_BAR = 0x0102A000, INTEL_COUNTER = 0x01029008, INTEL_LOGS = 4 };
static unsigned char *intel_bar;
static struct { unsigned char *memory; uint64_t written; } intel_log[INTEL_LOGS];
static npuprof_npu_ring intel_rings[INTEL_LOGS];

static void intel_describe_counter(npuprof_npu_desc *d)
{
    d->bar = intel_bar = play_memory(INTEL_BAR);
    d->bar_bytes = INTEL_BAR;
    d->counter.lo_offset = INTEL_COUNTER;
    d->counter.access = 64;
    d->counter.order = NPUPROF_NPU_SINGLE;
}

static int intel_torn;                   /* 1: the slot is stored 1 us before the laps; 2: after them */
static struct { unsigned char *at; uint64_t value, when; } intel_pending;

static void intel_store_pending(void)
{
    if (intel_pending.at) play_put(intel_pending.at, 0, 4, intel_pending.value);
    intel_pending.at = NULL;
}

static void intel_show(uint64_t ticks)
{
    play_put(intel_bar, INTEL_COUNTER, 8, ticks);
    if (play.host >= intel_pending.when) intel_store_pending();
}

/* Slot and laps, in one store. laps_first: those of the first lap. */
static void intel_announce(unsigned log, uint64_t count, uint64_t laps_first)
{
    unsigned char *memory = intel_log[log].memory;
    const uint64_t n = intel_log[log].written, laps = n ? (n - 1) / count + laps_first : 0, slot = n % count;
    intel_store_pending();
    if (!intel_torn) {
        play_put(memory, 0, 8, slot | laps << 32);
        return;
    }
    play_put(memory, intel_torn == 1 ? 0 : 4, 4, intel_torn == 1 ? slot : laps);
    intel_pending.at = memory + (intel_torn == 1 ? 4 : 0);
    intel_pending.value = intel_torn == 1 ? laps : slot;
    intel_pending.when = play.host + 1000;
}

/* ---- Native fence log: one of waits for each of four engines */

enum { FENCE_HEADER = 40, FENCE_ENTRY = 56, FENCE_SYSTIME = 5000000 };
static unsigned fence_count = 512;
static const npuprof_npu_op fence_ops[] = { { 0, "signal" }, { 1, "wait" } };
static uint64_t fence_systime = FENCE_SYSTIME;

static void fence_describe_entry(npuprof_npu_ring *r)
{
    *r = (npuprof_npu_ring){
        .entry_bytes = FENCE_ENTRY, .job = play_field(0, 8, 63, 0),
        .args = { { play_field(8, 8, 63, 0), "handle" } },
        .op = play_field(16, 8, 63, 0), .ops = fence_ops, .op_count = 2,
        .start = play_field(32, 8, 63, 0), .end = play_field(48, 8, 63, 0),
        .scale_num = 2, .scale_den = 1, .stamp_offset = -2 * FENCE_SYSTIME };
}

static void intel_describe_log(npuprof_npu_ring *r, unsigned log, size_t header, unsigned entry,
                               unsigned count)
{
    const size_t bytes = (header + (size_t)entry * count + 7) / 8 * 8;
    r->memory = intel_log[log].memory = play_memory(bytes);
    r->memory_bytes = bytes;
    r->first = header;
    r->count = count;
    r->producer = (npuprof_npu_index){ .in_memory = true, .unit = NPUPROF_NPU_INDEX_SLOT, .has_laps = true,
                                       .laps_offset = 4 };
}

static void fence_describe(npuprof_npu_desc *d)
{
    intel_describe_counter(d);
    for (unsigned i = 0; i < INTEL_LOGS; i++) {
        npuprof_npu_ring *r = &intel_rings[i];
        fence_describe_entry(r);
        intel_describe_log(r, i, FENCE_HEADER, FENCE_ENTRY, fence_count);
        r->pe_base = i;
        play_put(intel_log[i].memory, 8, 4, 1);
        play_put(intel_log[i].memory, 16, 8, fence_count);
    }
    d->rings = intel_rings;
    d->ring_count = INTEL_LOGS;
}

static void fence_write(unsigned char *entry, const play_job *job)
{
    play_put(entry, 0, 8, job->id);
    play_put(entry, 8, 8, 0x40u * (job->lane + 1));
    play_put(entry, 16, 8, 1);
    play_put(entry, 32, 8, play_ticks(job->begin) / 2 + fence_systime);
    play_put(entry, 48, 8, play_ticks(job->end) / 2 + fence_systime);
}

static void fence_ended(const play_job *job)
{
    unsigned char *memory = intel_log[job->lane].memory;
    fence_write(memory + FENCE_HEADER + intel_log[job->lane].written % fence_count * FENCE_ENTRY, job);
    intel_log[job->lane].written++;
    intel_announce(job->lane, fence_count, 0);
}

static const char *fence_name(const play_job *job) { (void)job; return "wait"; }
static uint64_t fence_number(uint32_t serial, uint32_t lane) { (void)lane; return (serial + 1ull) << 32; }

static const play_model fence_model = {
    .name = "fence", .lanes = INTEL_LOGS, .hz = 38400000, .start = 77777777, .ppm = -21,
    .describe = fence_describe, .number = fence_number, .name_of = fence_name, .ended = fence_ended,
    .show = intel_show, .compare = "tick_ns=79"
};

/* ---- Log of the hardware scheduler: one for the engine, with four contexts in it */

enum { HWS_HEADER = 32, HWS_ENTRY = 32 };
static unsigned hws_count = 1000;
static bool hws_tells_context_states = true;
static const npuprof_npu_kind hws_kinds[] = {
    { 0, NPUPROF_NPU_KIND_INSTANT }, { 1, NPUPROF_NPU_KIND_BEGIN }, { 2, NPUPROF_NPU_KIND_INSTANT },
    { 3, NPUPROF_NPU_KIND_END }, { 4, NPUPROF_NPU_KIND_INSTANT }
};
static const npuprof_npu_op hws_ops[] = { { 0, "context state" }, { 1, "work" }, { 2, "unwait" },
                                          { 3, "no more work" }, { 4, "wait" } };

static void hws_describe_entry(npuprof_npu_ring *r)
{
    *r = (npuprof_npu_ring){
        .entry_bytes = HWS_ENTRY, .stamp = play_field(0, 8, 63, 0),
        .kind = play_field(8, 4, 31, 0), .kinds = hws_kinds, .kind_count = 5,
        .op = play_field(8, 4, 31, 0), .ops = hws_ops, .op_count = 5,
        .key = { play_field(16, 8, 63, 0) }, .pe = play_field(16, 8, 63, 0),
        .args = { { play_field(24, 8, 63, 0), "data" } } };
}

static void hws_describe(npuprof_npu_desc *d)
{
    intel_describe_counter(d);
    hws_describe_entry(&d->ring);
    intel_describe_log(&d->ring, 0, HWS_HEADER, HWS_ENTRY, hws_count);
    d->ring.producer.laps_first = 1;
    play_put(intel_log[0].memory, 8, 8, hws_count);
}

static void hws_write(unsigned char *entry, uint64_t ns, uint32_t operation, uint64_t context, uint64_t data)
{
    play_put(entry, 0, 8, play_ticks(ns));
    play_put(entry, 8, 4, operation);
    play_put(entry, 16, 8, context);
    play_put(entry, 24, 8, data);
}

static void hws_log(uint64_t ns, uint32_t operation, uint64_t context, uint64_t data)
{
    hws_write(intel_log[0].memory + HWS_HEADER + intel_log[0].written % hws_count * HWS_ENTRY, ns, operation,
              context, data);
    intel_log[0].written++;
    intel_announce(0, hws_count, 1);
}

static void hws_began(const play_job *job)
{
    if (hws_tells_context_states) {
        hws_log(job->begin, 0, job->lane, 1);
        play_instant(job->lane, "context state", job->begin);
    }
    hws_log(job->begin, 1, job->lane, job->id);
    play.entries++;
}

static void hws_ended(const play_job *job)
{
    hws_log(job->end, 3, job->lane, 0);
    play.entries++;
}

static const char *hws_name(const play_job *job) { (void)job; return "work"; }

static const play_model hws_model = {
    .name = "hws", .lanes = 4, .hz = 38400000, .start = 1234, .ppm = 5, .describe = hws_describe,
    .name_of = hws_name, .began = hws_began, .ended = hws_ended, .show = intel_show,
    .entries_per_job = UINT32_MAX, .compare = "per_span=2"
};

/* test: time=600 large - queues that count for themselves, in worlds that are mixed at random
   Three layouts of examples/devices and two that are not described there, fed and polled: idle gaps of many
   periods, suspends, work that others submit, numbers that are told late, several records of a job. No span
   is outside its bound or another job's; what is not drawn is lost, by its cause.
   SPDX-License-Identifier: MIT */
#include "npu/models/play.h"
#include "trace.h"
#include "npuprof.h"
#include "npuprof_npu.h"
#include "npu/models/play_run.h"
#include "examples/devices/qaic_regs.h"
#include "examples/devices/gaudi_regs.h"
#include "examples/devices/ethosn_regs.h"
#include "examples/devices/intel_fence_regs.h"

/* ---- The worlds */

enum { CHANNELS = 2, DEPTH = 40, NAMES = 61, RING = 512, BOX = 1 << 16 };

/* A job, as it truly was. */
typedef struct truth {
    int64_t begin, end, block_begin, block_end;  /* ns */
    int64_t seen;                        /* when its records had been handed over */
    uint32_t channel, number;
    bool foreign;                        /* others submitted it */
} truth;

typedef struct mixed {
    const char *name;
    unsigned channels, id_bits;          /* of a number; 0: records have none */
    bool fed, host;                      /* host: records have no stamps */
    bool resets;
    uint64_t hz;
    double period;                       /* of its stamps, s */
    void (*describe)(npuprof_npu_desc *d);
    void (*write)(const play_job *job);
    void (*show)(uint64_t ticks);
    unsigned least;                      /* records that must be drawn, of 1000 */
    unsigned jobs;
} mixed;

static const mixed *is;
static npuprof_npu npu;
static npuprof_npu_ring rings[16];
static truth *truths;
static uint32_t *of_channel[CHANNELS], next_of[CHANNELS];    /* serials by number */
static uint32_t open_of[CHANNELS];
static unsigned executed;                /* records that the device wrote */

static struct { unsigned char bytes[BOX]; size_t used; uint32_t jobs[BOX / 4], job_count; } box[CHANNELS];
static struct { unsigned char *memory; uint32_t written; } ring[CHANNELS];
static unsigned char *bar;

/* A place for a record of the channel. */
static unsigned char *entry_of(unsigned channel, unsigned bytes)
{
    executed++;
    if (is->fed) {
        CHECK_STOP(box[channel].used + bytes <= BOX);
        box[channel].used += bytes;
        return box[channel].bytes + box[channel].used - bytes;
    }
    return ring[channel].memory + (size_t)bytes * (ring[channel].written++ % RING);
}

/* ---- Layouts of examples/devices */

static unsigned char *qaic_channels;

static void qaic_describe(npuprof_npu_desc *d)
{
    *d = qaic_npu_desc(rings);
    d->ring_count = CHANNELS;
    d->bar = bar = play_memory(QAIC_BAR_BYTES);
    d->bar_bytes = QAIC_BAR_BYTES;
    qaic_channels = play_memory(QAIC_BAR_BYTES);
    for (unsigned i = 0; i < CHANNELS; i++) {
        rings[i].memory = ring[i].memory = play_memory(RING * QAIC_DBC_RSP_BYTES);
        rings[i].memory_bytes = RING * QAIC_DBC_RSP_BYTES;
        rings[i].count = RING;
        rings[i].producer.memory = qaic_channels;
        rings[i].producer.memory_bytes = QAIC_BAR_BYTES;
    }
}

static void qaic_show(uint64_t ticks) { play_put(bar, QAIC_QTIMER_OFFSET, 8, ticks); }

static unsigned qaic_slices(uint32_t serial) { return serial % 3 + 1; }

static void qaic_write(const play_job *job)
{
    for (unsigned i = 0; i < qaic_slices(job->serial); i++) {
        unsigned char *const to = entry_of(job->lane, QAIC_DBC_RSP_BYTES);
        play_put(to, QAIC_DBC_RSP_REQ_ID_OFFSET, 2, job->id & 0xFFFF);
        play_put(to, QAIC_DBC_RSP_STATUS_OFFSET, 2, 0);
        play_put(qaic_channels, QAIC_DBC_RSPTP_OFFSET + job->lane * QAIC_RING_DBC_RSP_STRIDE, 4,
                 ring[job->lane].written % RING);
    }
}

/* Two queues, each with its own CQ. */
static void gaudi_describe(npuprof_npu_desc *d)
{
    *d = gaudi_npu_desc(rings);
    rings[1] = rings[0];
    rings[1].pe_base = 1;
    d->pe_count = CHANNELS;
    d->bar = bar = play_memory(GAUDI_BAR_BYTES);
    d->bar_bytes = GAUDI_BAR_BYTES;
    d->counter.hz = is->hz;
}

static void gaudi_show(uint64_t ticks)
{
    play_put(bar, GAUDI_CNTCR_OFFSET, 4, play_powered_on);
    play_put(bar, GAUDI_CNTCVL_OFFSET, 4, ticks & UINT32_MAX);
    play_put(bar, GAUDI_CNTCVU_OFFSET, 4, ticks >> 32);
}

static void gaudi_write(const play_job *job)
{
    play_put(entry_of(job->lane, GAUDI_CQ_BYTES), 0, 4,
             GAUDI_CQ_READY_MASK | GAUDI_CQ_SHADOW_VALID_MASK | (job->id & GAUDI_CQ_INDEX_MASK));
}

static void ethosn_describe(npuprof_npu_desc *d) { *d = ethosn_npu_desc(); }

static void ethosn_put(uint64_t ns, uint32_t word)
{
    unsigned char *const to = entry_of(0, ETHOSN_ENTRY_BYTES);
    play_put(to, 0, 4, play_ticks(ns) & UINT32_MAX);
    play_put(to, 4, 4, word);
}

/* An inference, and a piece of work in it: each has a begin and an end. */
static void ethosn_write(const play_job *job)
{
    const uint64_t piece = (job->end - job->begin) / 4;
    const uint32_t id = 2 * job->serial % 32, data = job->serial << 11;
    const unsigned counted = executed;
    ethosn_put(job->begin, 2u | (uint32_t)(play_ticks(job->begin) >> 32 & 0x1FFFFF) << 11);
    ethosn_put(job->begin, id << 2 | ETHOSN_OP_INFERENCE << 7 | data);
    ethosn_put(job->begin + piece, (id + 1) << 2 | ETHOSN_OP_MCE_STRIPE << 7 | data);
    ethosn_put(job->begin + 2 * piece, 1u | (id + 1) << 2);
    ethosn_put(job->end, 1u | id << 2);
    executed = counted + 2;
}

/* One log for all fences, each of which counts its own values. */
static const uint64_t handles[CHANNELS] = { 0x7f0000001000, 0x7f8000001000 };

static void fence_describe(npuprof_npu_desc *d)
{
    *d = intel_fence_npu_desc();
    d->bar = bar = play_memory(INTEL_FENCE_BAR_BYTES);
    d->bar_bytes = INTEL_FENCE_BAR_BYTES;
    unsigned char *const memory = play_memory(40 + RING * INTEL_FENCE_FENCE_BYTES);
    d->ring.memory = memory;
    d->ring.memory_bytes = 40 + RING * INTEL_FENCE_FENCE_BYTES;
    d->ring.count = RING;
    ring[0].memory = memory + 40;
}

static void fence_show(uint64_t ticks) { play_put(bar, INTEL_FENCE_PERF_EXT_FREE_CNT_OFFSET, 8, ticks); }

static void fence_write(const play_job *job)
{
    unsigned char *const to = entry_of(0, INTEL_FENCE_FENCE_BYTES);
    const uint64_t n = ring[0].written;
    play_put(to, INTEL_FENCE_FENCE_VALUE_OFFSET, 8, job->id);
    play_put(to, INTEL_FENCE_FENCE_HANDLE_OFFSET, 8, handles[job->lane]);
    play_put(to, INTEL_FENCE_FENCE_OP_OFFSET, 8, 1);
    play_put(to, INTEL_FENCE_FENCE_WAIT_BEGIN_OFFSET, 8, play_ticks(job->begin) / 2);
    play_put(to, INTEL_FENCE_FENCE_END_OFFSET, 8, play_ticks(job->end) / 2);
    play_put(ring[0].memory - 40, 0, 8, n % RING | (n - 1) / RING << 32);     /* laps move with entry 0 */
}

/* ---- Layouts that no description has */

enum { MAIL_BYTES = 16, MAIL_HEAD = 64, MAIL_BITS = 24 };

/* A mailbox of responses: number 2 | retval 2 | serial 4 | end 4, of 24 bits | duration 4 */
static void mail_describe(npuprof_npu_desc *d)
{
    d->read_ticks = play_read;
    d->counter.hz = is->hz;
    for (unsigned i = 0; i < CHANNELS; i++) {
        npuprof_npu_ring *const r = &rings[i];
        unsigned char *const memory = play_memory(MAIL_HEAD + RING * MAIL_BYTES);
        ring[i].memory = memory + MAIL_HEAD;
        *r = (npuprof_npu_ring){
            .memory = memory, .memory_bytes = MAIL_HEAD + RING * MAIL_BYTES, .first = MAIL_HEAD,
            .count = RING, .entry_bytes = MAIL_BYTES, .producer = { .in_memory = true },
            .job = play_field(0, 2, 15, 0),
            .status = play_field(2, 2, 15, 0), .args = { { play_field(4, 4, 31, 0), "data" } },
            .end = play_field(8, 4, MAIL_BITS - 1, 0), .duration = play_field(12, 4, 31, 0), .pe_base = i };
    }
    d->rings = rings;
    d->ring_count = d->pe_count = CHANNELS;
}

static void mail_write(const play_job *job)
{
    unsigned char *const to = entry_of(job->lane, MAIL_BYTES);
    play_put(to, 0, 2, job->id & 0xFFFF);
    play_put(to, 4, 4, job->serial << 4);
    play_put(to, 8, 4, play_ticks(job->end) & UINT32_MAX);
    play_put(to, 12, 4, play_ticks(job->end) - play_ticks(job->begin));
    play_put(ring[job->lane].memory - MAIL_HEAD, 0, 4, ring[job->lane].written);
}

enum { LAYER_BYTES = 16, LAYER_WHOLE = 3 };

/* One queue of two cores: number 2 | core 1 | op 1 | serial 4 | start 4 | end 4; layers, and their job */
static void layers_describe(npuprof_npu_desc *d)
{
    d->read_ticks = play_read;
    d->counter.hz = is->hz;
    d->pe_count = CHANNELS;
    d->ring = (npuprof_npu_ring){
        .feed = true, .entry_bytes = LAYER_BYTES, .job = play_field(0, 2, 15, 0),
        .pe = play_field(2, 1, 7, 0), .op = play_field(3, 1, 7, 0),
        .args = { { play_field(4, 4, 31, 0), "data" } },
        .start = play_field(8, 4, 31, 0), .end = play_field(12, 4, 31, 0),
        .execution_op = LAYER_WHOLE + 1, .job_scope = NPUPROF_NPU_SCOPE_LANE };
}

static void layers_put(const play_job *job, unsigned op, uint64_t begin, uint64_t end)
{
    unsigned char *const to = entry_of(0, LAYER_BYTES);
    play_put(to, 0, 2, job->id & 0xFFFF);
    play_put(to, 2, 1, job->lane);
    play_put(to, 3, 1, op);
    play_put(to, 4, 4, job->serial << 4 | op);
    play_put(to, 8, 4, play_ticks(begin) & UINT32_MAX);
    play_put(to, 12, 4, play_ticks(end) & UINT32_MAX);
}

static void layers_write(const play_job *job)
{
    const uint64_t piece = (job->end - job->begin) / 4;
    const bool first = job->serial % 2;
    if (first) layers_put(job, LAYER_WHOLE, job->begin, job->end);
    layers_put(job, 1, job->begin + piece, job->begin + 2 * piece);
    layers_put(job, 2, job->begin + 2 * piece, job->begin + 3 * piece);
    if (!first) layers_put(job, LAYER_WHOLE, job->begin, job->end);
}

/* ---- The host */

static bool shares(void) { return is->write == layers_write || is->write == fence_write; }
static unsigned queues(void) { return shares() ? 1 : is->channels; }
static uint64_t stream_of(uint32_t channel) { return is->write == fence_write ? handles[channel] : channel; }

/* A job is over: its records are written. */
static void ended(const play_job *job)
{
    truth *const t = &truths[job->serial];
    const unsigned queue = queues() > 1 ? job->lane : 0;
    t->begin = (int64_t)job->begin;
    t->end = (int64_t)job->end;
    is->write(job);
    box[queue].jobs[box[queue].job_count++] = job->serial;
    open_of[job->lane]--;
}

/* Hands over, or takes, what is there. */
static void serve(void)
{
    static unsigned char bytes[BOX];
    static uint32_t jobs[BOX / 4];
    for (unsigned i = 0; i < queues(); i++) {
        const size_t n = box[i].used;
        const uint32_t count = box[i].job_count;
        memcpy(bytes, box[i].bytes, n);
        memcpy(jobs, box[i].jobs, count * sizeof *jobs);
        box[i].used = 0;
        if (n) (void)npuprof_npu_feed(&npu, i, bytes, n);
        if (!is->fed) (void)npuprof_npu_drain(&npu);
        for (uint32_t j = 0; j < count; j++) truths[jobs[j]].seen = (int64_t)play.host;
        memmove(box[i].jobs, box[i].jobs + count, (box[i].job_count - count) * sizeof *jobs);
        box[i].job_count -= count;
    }
}

static const char *name_of(uint32_t serial)
{
    static char names[NAMES][16];
    if (!names[serial % NAMES][0]) snprintf(names[serial % NAMES], 16, "work %u", serial % NAMES);
    return names[serial % NAMES];
}

/* The device takes the command; at once, or when it is free. */
static void command(uint32_t serial, uint32_t channel)
{
    truths[serial].channel = channel;
    truths[serial].number = next_of[channel]++;
    of_channel[channel][truths[serial].number] = serial;
    open_of[channel]++;
    play_submit(channel, 0, truths[serial].number, 500 + play_random(3000), 2000 + play_random(20000));
}

static void number(uint32_t serial)
{
    if (!is->id_bits) return;
    npuprof_npu_set_job(&npu, truths[serial].number);
    if (is->write == qaic_write) npuprof_npu_set_job_records(&npu, qaic_slices(serial));
}

/* The submitter is interrupted before it told the number: the work may be over, and its record be there. */
static void interrupt(void)
{
    if (play_random(8)) return;
    play_until(play.host + play_random(100000));
    if (is->id_bits && play_random(2)) serve();
}

static void submit_by_handle(uint32_t serial, uint32_t channel)
{
    truth *const t = &truths[serial];
    t->block_begin = (int64_t)play.host;
    const uint32_t handle = npuprof_npu_begin(&npu, stream_of(channel), name_of(serial), "NPU", PROF_NO_ARGS);
    t->block_end = (int64_t)play.host;
    command(serial, channel);
    interrupt();
    if (is->id_bits) (void)npuprof_npu_set_job_of(&npu, handle, t->number);
    interrupt();
    (void)npuprof_npu_end(&npu, handle);
}

static void submit_one(uint32_t serial)
{
    const uint32_t channel = (uint32_t)play_random(is->channels);
    truth *const t = &truths[serial];
    if (open_of[channel] >= DEPTH || (!is->id_bits && open_of[channel])) play_until(play.host + 2000000);
    if (is->id_bits && play_random(6) == 0) {
        t->foreign = true;
        command(serial, channel);
    } else if (play_random(4) == 0 && is->write != qaic_write) {
        submit_by_handle(serial, channel);
    } else {
        t->block_begin = (int64_t)play.host;
        WITH_NPU_PROFILER(&npu, stream_of(channel), name_of(serial), "NPU", PROF_NO_ARGS, {
            command(serial, channel);
            interrupt();
            number(serial);
        });
        t->block_end = (int64_t)play.host;
    }
}

static void idle(void)
{
    const double most = 20 * is->period < 90 ? 20 * is->period : 90;
    play_until(play.host + (play_random(50) ? play_random(200000)
                                            : (uint64_t)(most * 1e6 * (double)play_random(1000))));
}

static void suspend(void)
{
    play_until(play.host + 50000000);            /* all is done */
    if (play_random(2)) serve();
    play_powered_on = false;
    play_until(play.host + 1000000 + play_random(UINT64_C(2000000000)));
    play.origin = play.host;
    play.start = play_random(100000);
    play_powered_on = true;
    play_until(play.host + 10);
}

static void anchor(void) { play_anchor(&npu, 0, 1000); }

static void run_world(void)
{
    for (uint32_t i = 0; i < is->jobs; i++) {
        submit_one(i);
        if (play_random(3)) continue;
        play_until(play.host + play_random(50000));
        if (play_random(100) == 0) idle();       /* they are handed over late */
        serve();
        idle();
        if (is->resets && play_random(200) == 0) suspend();
        if (is->write == ethosn_write && play_random(300) == 0) anchor();
    }
    play_until(play.host + 50000000);
    serve();
}

/* ---- The comparison */

/* The job of a span; NULL: there is none, or nobody can tell. */
static truth *truth_of(json_node *e, int64_t shift)
{
    json_node *const data = json_get(e, "args.data");
    json_node *const fence = json_get(e, "args.handle");
    if (data) return &truths[json_int(data) >> 4];
    if (fence) {
        const uint32_t c = (uint64_t)json_int(fence) == handles[1];
        return &truths[of_channel[c][json_int(json_get(e, "args.job"))]];
    }
    const int64_t pe = json_int(json_get(e, "args.pe_index")), id = json_int(json_get(e, "args.job"));
    const int64_t end = trace_end(e) + shift;
    for (uint32_t n = (uint32_t)id; n < next_of[pe]; n += 1u << is->id_bits) {
        truth *const t = &truths[of_channel[pe][n]];
        if (end >= t->end && end <= t->seen) return t;
    }
    return NULL;
}

typedef struct found { unsigned spans, matched, outside, crossed, nobody; } found;

/* A span against the truth. */
static void compare_span(json_node *e, int64_t shift, found *f)
{
    const truth *const t = truth_of(e, shift);
    json_node *const stream = json_get(e, "args.stream"), *data = json_get(e, "args.data");
    f->spans++;
    if (!t) {
        f->nobody++;
        return;
    }
    const unsigned op = data ? json_int(data) & 15 : 0;
    int64_t begin = t->begin, end = t->end;
    if (is->write == layers_write && op != LAYER_WHOLE) {
        begin += (t->end - t->begin) / 4 * op;
        end = begin + (t->end - t->begin) / 4;
    } else if (op == ETHOSN_OP_MCE_STRIPE) {
        begin += (t->end - t->begin) / 4;
        end = begin + (t->end - t->begin) / 4;
    }
    const int64_t bound = json_int(json_get(e, "args.error_ns")) + 1 + (int64_t)(1000000000 / is->hz);
    begin = trace_start(e) + shift - begin;
    end = trace_end(e) + shift - end;
    if (is->host ? (stream && begin > 0) || end < 0
                 : begin > bound || -begin > bound || end > bound || -end > bound) {
        if (!f->outside++)
            printf("note %s: %" PRId64 " and %" PRId64 " ns off, bound %" PRId64 "\n", is->name, begin, end,
                   bound);
    }
    if (!stream) return;
    f->matched++;
    const char *const name = json_text(json_get(e, "name"));
    const bool named = strncmp(name, "work ", 5) != 0 || !strcmp(name, name_of((uint32_t)(t - truths)));
    if (t->foreign || (uint64_t)json_int(stream) != stream_of(t->channel) || !named) {
        if (!f->crossed++)
            printf("note %s: job %d has another's name, %s\n", is->name, (int)(t - truths), name);
    }
}

/* Each arrow comes from the block of its span's job. Returns how many there are. */
static unsigned compare_arrows(json_node *t, int64_t shift, found *f)
{
    json_node **const starts = (json_node **)calloc(is->jobs * 4 + 64, sizeof *starts);
    json_node *span = NULL;
    unsigned arrows = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        const char ph = json_text(json_get(e, "ph"))[0];
        if (ph == 's') starts[(size_t)json_int(json_get(e, "id")) % (is->jobs * 4 + 64)] = e;
    }
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        const char ph = json_text(json_get(e, "ph"))[0];
        if (ph == 'X' && json_get(e, "args.pe_index")) span = e;
        if (ph != 'f') continue;
        json_node *const s = starts[(size_t)json_int(json_get(e, "id")) % (is->jobs * 4 + 64)];
        const truth *const is_of = span ? truth_of(span, shift) : NULL;
        CHECK_STOP(s && is_of && trace_start(span) == trace_start(e));
        const int64_t at = trace_start(s) + shift;
        arrows++;
        f->crossed += at < is_of->block_begin || at > is_of->block_end;
    }
    return arrows;
}

/* A count of the device's clock_sync, or of its records. */
static unsigned count_of(json_node *t, const char *key)
{
    json_node *const sync = json_get(json_get(t, "metadata.npuprof.devices")->first, "clock_sync");
    json_node *const all = json_get(sync, "records");
    json_node *n = json_get(sync, key);
    if (!n && all) n = json_get(all, key);
    return n ? (unsigned)json_int(n) : 0;
}

/* Recorded and lost are what was executed; what could be told has its arrow. */
static void check_counts(json_node *t, const found *f, unsigned arrows)
{
    npuprof_stats stats;
    unsigned ours = 0;
    npuprof_get_stats(&stats);
    for (unsigned i = 0; i < is->jobs; i++) ours += !truths[i].foreign;
    arrows += count_of(t, "arrows_left_out");
    printf("note %s: %u of %u records drawn, %u with a submission; %u of %u arrows\n", is->name, f->spans,
           executed, f->matched, arrows, ours);
    CHECK_UINT(f->outside, 0);
    CHECK_UINT(f->crossed, 0);
    CHECK_UINT(f->nobody, 0);
    CHECK_UINT(f->spans + stats.lost_by_cause[NPUPROF_LOST_RING], executed);
    CHECK_UINT(f->spans + count_of(t, "lost_period") + count_of(t, "lost_epoch"), executed);
    CHECK_UINT(count_of(t, "open_jobs") + count_of(t, "dropped_jobs"), 0);
    CHECK(f->spans >= executed / 1000 * is->least);
    CHECK(is->least == 1000 ? arrows == ours : arrows >= ours / 100 * 98);
}

static void world_of(const void *user)
{
    npuprof_npu_desc d;
    found f = { 0, 0, 0, 0, 0 };
    is = (const mixed *)user;
    truths = (truth *)calloc(is->jobs, sizeof *truths);
    for (unsigned i = 0; i < CHANNELS; i++)
        of_channel[i] = (uint32_t *)calloc(is->jobs, sizeof **of_channel);
    play.seed ^= is->jobs * 977u + (uint64_t)is->name[0];
    play.hz = is->hz;
    play.origin = play.host;
    play.start = 5000000;
    memset(&d, 0, sizeof d);
    is->describe(&d);
    d.name = is->name;
    if (is->resets) d.is_on = play_is_on;
    play.show = is->show;
    play.ended_job = ended;
    npuprof_start(1);
    play.step = 0;
    const int64_t offset = npuprof_now_ns() - (int64_t)play.host;
    play.step = 30;
    play_until(play.host + 1000);
    const npuprof_result opened = npuprof_npu_open(&npu, &d);
    if (opened != NPUPROF_OK) check_failed_(__FILE__, __LINE__, "%s", npuprof_result_string(opened));
    if (is->write == ethosn_write) anchor();
    run_world();
    npuprof_npu_close(&npu);
    const char *const path = check_path("mixed.json");
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    json_node *const t = trace_load(path);
    const int64_t shift = json_int(json_get(t, "metadata.npuprof.start_unix_ns")) - offset;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next)
        if (json_text(json_get(e, "ph"))[0] == 'X' && json_get(e, "args.pe_index"))
            compare_span(e, shift, &f);
    check_counts(t, &f, compare_arrows(t, shift, &f));
}

static void worlds(unsigned jobs)
{
    const mixed all[] = {
        { "qaic", CHANNELS, 16, false, true, true, 19200000, 1, qaic_describe, qaic_write, qaic_show,
          1000, jobs },
        { "gaudi", CHANNELS, 12, true, true, true, 1000000000, 1, gaudi_describe, gaudi_write, gaudi_show,
          1000, jobs },
        { "ethosn", 1, 0, true, false, false, 1000000000, 4.29, ethosn_describe, ethosn_write, NULL,
          1000, jobs },
        { "fence", CHANNELS, 64, false, false, false, 38400000, 1, fence_describe, fence_write, fence_show,
          1000, jobs },
        { "mail", CHANNELS, 16, false, false, true, 100000000, .168, mail_describe, mail_write, NULL,
          780, jobs },
        { "layers", CHANNELS, 16, true, false, true, 1000000000, 4.29, layers_describe, layers_write, NULL,
          780, jobs },
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) check_in_child(world_of, &all[i]);
}

static void small_worlds(void) { worlds(800); }
static void large_worlds(void) { worlds(CHECK_SANITIZED ? 3000 : 100000); }

CHECK_MAIN(CASE(small_worlds), CASE_THOROUGH(large_worlds))

/* records and kernels of which the counter alone does not tell when they were: reaped behind a reset, while
   it stood, while a governor changed it. Each is in its bound, or is lost and counted
   SPDX-License-Identifier: MIT */
#include "fixture.h"

enum { ENTRY = 24, MS = 1000000, MOST = 40 };

/* The counter: it showed `value` at `host`, and makes so many ticks a microsecond since. */
static struct { uint64_t host, value, rate; unsigned bits; } clk;
static struct { uint64_t begin, end, from, to; } truth[MOST + 1];
static uint64_t begun;

static uint64_t value_at(uint64_t host) { return clk.value + (host - clk.host) * clk.rate / 1000; }

static void show(void)
{
    const uint64_t value = value_at(sim.host) & sim_mask(clk.bits);
    sim_store(SIM_LO, 4, value & UINT32_MAX);
    sim_store(SIM_HI, 4, value >> 32);
}

/* From now on it shows this value, at this rate. */
static void goes_on(uint64_t value, uint64_t rate)
{
    clk.value = value;
    clk.host = sim.host;
    clk.rate = rate;
    sim_publish();
}

/* Opens a device of 1 GHz that gets its records by feed; ring false: kernels are sampled. */
static void open_clock(unsigned bits, uint64_t value, uint64_t rate, bool ring)
{
    sim.tick = show;
    sim.bits = clk.bits = bits;
    goes_on(value, rate);
    npuprof_start(1);
    begun = mark_zero();
    npuprof_npu_desc desc = sim_desc();
    desc.counter.hz = 1000000000;
    if (ring)
        desc.ring = (npuprof_npu_ring){ .feed = true, .entry_bytes = ENTRY, .job = AT(0, 8, 0, 0),
                                        .start = AT(8, 8, 0, 0), .end = AT(16, 8, 0, 0) };
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
}

/* The device runs a job for so long; rate: of the counter meanwhile. The record is there, and not yet fed. */
static void runs(unsigned job, uint64_t length, uint64_t rate)
{
    WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, {
        npuprof_npu_set_job(&npu, job);
        sim_advance(1000);
    });
    sim_advance(10000);
    goes_on(value_at(sim.host), rate);
    truth[job].begin = sim.host;
    truth[job].from = value_at(sim.host) & sim_mask(clk.bits);
    sim_advance(length);
    truth[job].end = sim.host;
    truth[job].to = value_at(sim.host) & sim_mask(clk.bits);
}

static npuprof_result feed(unsigned job)
{
    unsigned char entry[ENTRY];
    put(entry, 8, job);
    put(entry + 8, 8, truth[job].from);
    put(entry + 16, 8, truth[job].to);
    return npuprof_npu_feed(&npu, 0, entry, ENTRY);
}

/* Each span of a job is in its bound. Returns how many there are. */
static unsigned check_spans(json_node *t)
{
    const int64_t zero = trace_start(trace_event(t, "X", "zero", 0));
    unsigned spans = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        json_node *const bound = json_get(e, "args.error_ns"), *const job = json_get(e, "args.job");
        if (!bound || !job) continue;
        const int64_t j = json_int(job), error = json_int(bound) + 1;
        CHECK(llabs(trace_start(e) - zero - (int64_t)(truth[j].begin - begun)) <= error);
        CHECK(llabs(trace_end(e) - zero - (int64_t)(truth[j].end - begun)) <= error);
        spans++;
    }
    return spans;
}

/* A job that hung, or was just not reaped: after `idle` ms the device is reset, and its record comes behind
   that. What it shows may be of the new run of the counter, too. */
static void reaped_behind_a_reset(unsigned bits, uint64_t value, uint64_t ms, uint64_t idle)
{
    open_clock(bits, value, 1000, true);
    runs(1, MS, 1000);
    CHECK_INT(feed(1), NPUPROF_OK);
    sim_sync(ms * MS);
    runs(2, 3 * MS, 1000);
    sim_advance(idle * MS);
    goes_on(0, 1000);
    sim_advance(350 * MS);
    CHECK(feed(2) != NPUPROF_OK);
    runs(3, MS, 1000);
    CHECK_INT(feed(3), NPUPROF_OK);
    json_node *const t = closed();
    CHECK_UINT(check_spans(t), 2);
    CHECK_INT(records(t, "lost_epoch"), 1);
}

static void behind_a_reset(void) { reaped_behind_a_reset(64, MS, 1, 600); }

static void behind_a_reset_narrow(void)
{
    reaped_behind_a_reset(32, UINT64_C(60000) * MS, 4450, 50);
}

/* The same where the old run of the counter was so long that its stamps cannot be of the new one. */
static void behind_a_reset_told_apart(void)
{
    open_clock(64, UINT64_C(60000) * MS, 1000, true);
    runs(1, MS, 1000);
    sim_advance(50 * MS);
    goes_on(0, 1000);
    sim_advance(350 * MS);
    CHECK_INT(feed(1), NPUPROF_ERR_NPU_RESET);
    CHECK_UINT(check_spans(closed()), 1);
}

/* A wide counter that stands while the device is idle, and is never reset: up for long, no value of it is
   that of a reset; else nobody can tell. A span is as long as its ticks say. */
static void stands(uint64_t value, bool may_have_begun)
{
    unsigned spans = 0;
    open_clock(64, value, 1000, true);
    goes_on(value_at(sim.host), 0);
    for (unsigned job = 1; job <= 12; job++) {
        runs(job, MS * (job % 4 ? 1 : 20), 1000);
        goes_on(value_at(sim.host), 0);
        sim_advance(10000);
        const npuprof_result fed = feed(job);
        if (fed != NPUPROF_OK) CHECK_INT(fed, NPUPROF_ERR_NPU_AMBIGUOUS);
        CHECK(may_have_begun || fed == NPUPROF_OK);
        sim_advance(200 * MS);
    }
    json_node *const t = closed();
    CHECK_INT(said(t, "resets"), 0);
    CHECK_UINT(check_spans(t), may_have_begun ? 12 - (unsigned)records(t, "lost_epoch") : 12);
    for (json_node *e = json_get(t, "traceEvents")->first; e && !may_have_begun; e = e->next) {
        json_node *const job = json_get(e, "args.job");
        if (!job || !json_get(e, "args.error_ns")) continue;
        const int64_t j = json_int(job), length = (int64_t)(truth[j].end - truth[j].begin);
        spans += llabs(trace_dur(e) - length) < length / 8;
    }
    CHECK(may_have_begun || spans == 12);
}

static void stands_up_for_long(void) { stands(UINT64_C(1000000) * MS, false); }
static void stands_from_the_start(void) { stands(MS, true); }

/* Kernels whose counter is read at both ends, and stands in between, for less than what is called stopped. */
static void stands_between_kernels(void)
{
    open_clock(64, UINT64_C(1000000) * MS, 0, false);
    sim_advance(50 * MS);
    for (unsigned i = 1; i <= 4; i++) {
        WITH_NPU_PROFILER(&npu, i, "kernel", "NPU", PROF_NO_ARGS, {
            truth[i].begin = sim.host;
            goes_on(value_at(sim.host), 1000);
            sim_advance(2 * MS);
            goes_on(value_at(sim.host), 0);
            truth[i].end = sim.host;
        });
        sim_advance(50 * MS);
    }
    json_node *const t = closed();
    const int64_t zero = trace_start(trace_event(t, "X", "zero", 0));
    unsigned spans = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        if (!json_get(e, "args.error_ns")) continue;
        const int64_t i = json_int(json_get(e, "args.stream"));
        CHECK(llabs(trace_start(e) - zero - (int64_t)(truth[i].begin - begun)) < 1000);
        CHECK(llabs(trace_end(e) - zero - (int64_t)(truth[i].end - begun)) < 1000);
        spans++;
    }
    CHECK_UINT(spans, 4);
    CHECK_INT(said(t, "causality_violations"), 0);
}

/* A governor changes the rate twice, each time for good, and the device is looked at once a second: between
   two looks there is one rate, which has to be held against the next. */
static void governed_for_good(void)
{
    open_clock(64, UINT64_C(1000000) * MS, 500, true);
    sim_advance(MS / 10);
    runs(1, MS, 1000);
    sim_advance(UINT64_C(1000) * MS);
    CHECK_INT(feed(1), NPUPROF_OK);
    runs(2, 100 * MS, 1000);
    runs(3, 100 * MS, 900);
    sim_advance(UINT64_C(800) * MS);
    CHECK_INT(feed(2), NPUPROF_OK);
    CHECK_INT(feed(3), NPUPROF_OK);
    for (unsigned job = 4; job <= MOST; job++) {
        runs(job, 100 * MS, 900);
        sim_advance(UINT64_C(900) * MS);
        CHECK_INT(feed(job), NPUPROF_OK);
    }
    json_node *const t = closed();
    CHECK_UINT(check_spans(t), MOST);
    CHECK_INT(said(t, "contradictions"), 2);
}

/* Stamps from before the submission: the clock was wrong then. What bounds the span is its submission and the
   moment of its record. */
static void before_its_submission(void)
{
    open_clock(64, UINT64_C(1000) * MS, 1000, true);
    sim_sync(50 * MS);
    runs(1, MS, 1000);
    truth[1].from -= 5 * MS;
    truth[1].to -= 5 * MS;
    sim_advance(2 * MS);
    CHECK_INT(feed(1), NPUPROF_OK);
    sim_sync(50 * MS);
    json_node *const t = closed();
    CHECK_UINT(check_spans(t), 1);
    CHECK_INT(said(t, "causality_violations"), 1);
    CHECK(said(t, "max_error_ns") >= 5 * MS && said(t, "max_error_ns") < 20 * MS);
}

/* ---- A record comes while a drain draws those before it: it was drawn later than they were. */

static union { uint64_t align; unsigned char bytes[4 * 32]; } meanwhile;
static struct { unsigned looks, at, jobs; uint64_t end[3]; } coming;

/* job 8 | start 8 | end 8 | sequence 8 */
static void write_job(unsigned job, uint64_t end)
{
    unsigned char *const entry = meanwhile.bytes + (job - 1) * 32;
    coming.end[job] = end;
    put(entry, 8, job);
    put(entry + 8, 8, end - 10);
    put(entry + 16, 8, end);
    put(entry + 24, 8, job);
    coming.jobs = job;
}

/* The second record is written behind that look at the clock: 10 us pass there. */
static void comes(void)
{
    if (coming.at && ++coming.looks == coming.at) write_job(2, sim_truth() + 100);
    if (coming.at && coming.looks == coming.at + 1) sim.host += 10000;
    sim_store(SIM_LO, 4, sim_truth() & UINT32_MAX);
    sim_store(SIM_HI, 4, sim_truth() >> 32);
}

static void comes_at(const void *user)
{
    npuprof_npu_desc d = sim_desc();
    d.ring = (npuprof_npu_ring){ .memory = meanwhile.bytes, .memory_bytes = sizeof meanwhile.bytes,
                                 .ready = NPUPROF_NPU_READY_SEQUENCE, .sequence = AT(24, 8, 0, 0),
                                 .sequence_first = 1, .entry_bytes = 32, .count = 4, .job = AT(0, 8, 0, 0),
                                 .start = AT(8, 8, 0, 0), .end = AT(16, 8, 0, 0) };
    sim.tick = comes;
    open_npu(&d);
    sim_advance(1000000);
    (void)submit(0, "one");
    (void)submit(0, "two");
    sim_advance(1000000);
    write_job(1, sim_truth());
    sim_advance(1000);
    coming.at = *(const unsigned *)user;
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    sim_advance(100000);
    json_node *t = closed();
    CHECK_INT(json_int(json_get(clock_sync(t), "causality_violations")), 0);
    CHECK_UINT(coming.jobs, 2);
}

static void come_meanwhile(void)
{
    for (unsigned at = 1; at <= 12; at++) check_in_child(comes_at, &at);
}

CHECK_MAIN(CASE(behind_a_reset), CASE(behind_a_reset_narrow), CASE(behind_a_reset_told_apart),
           CASE(stands_up_for_long), CASE(stands_from_the_start), CASE(stands_between_kernels),
           CASE(governed_for_good), CASE(before_its_submission), CASE(come_meanwhile))

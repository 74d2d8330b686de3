/* devices with is_on or an enable bit, and a ring: a wrong hz, a start at any value, a gate that shuts
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION
#include "fixture.h"
#include "random.h"

enum { CONTROL = 0x40, JOBS = 300, HZ = 25000000 };

static uint64_t up_to(uint64_t n) { return random_mixed() % n; }

/* ---- A counter of 25 MHz that stands, starts and is reset as the test says */

static struct { bool runs, on; uint64_t ns, since; } device;
static struct { uint64_t start, end; } job[JOBS];

static uint64_t device_ns(void) { return device.ns + (device.runs ? sim.host - device.since : 0); }

static void tick(void) { sim_store(SIM_LO, 8, device_ns() / 40); }

static void run(bool runs, uint64_t ns)
{
    device.ns = ns;
    device.since = sim.host;
    device.on = device.runs = runs;
    sim_store(CONTROL, 4, runs);
    tick();
}

static bool is_on(void *user) { (void)user; return device.on; }

static const npuprof_npu_requirement enabled = { .offset = CONTROL, .mask = 1, .value = 1, .text = "EN" };

static npuprof_npu_desc desc_of(uint64_t hz, bool by_power)
{
    npuprof_npu_desc d = { .name = "gated", .bar = sim_bar.bytes, .bar_bytes = sizeof sim_bar,
                           .counter = { .lo_offset = SIM_LO, .access = 64, .bits = 48, .hz = hz } };
    sim.tick = tick;
    run(false, 1000000);
    if (by_power) d.is_on = is_on;
    else d.requirements = &enabled, d.requirement_count = 1;
    d.ring = sim_ring();
    return d;
}

static void work(unsigned i)
{
    job[i].start = sim.host;
    const uint64_t start = device_ns() / 40;
    sim_advance(5000 + up_to(300000));
    job[i].end = sim.host;
    sim_record(i, start, device_ns() / 40);
}

static void submit_job(void) { WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, sim_advance(100)); }

/* Each span is a job, within its error; the others are lost, `most` at most. */
static json_node *compare(uint64_t zero, size_t most)
{
    json_node *t = closed();
    const int64_t base = trace_start(trace_event(t, "X", "zero", 0)) - (int64_t)zero;
    size_t spans = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        if (!json_get(e, "args.stamp")) continue;
        const int64_t start = trace_start(e) - base, end = trace_end(e) - base;
        const int64_t error = json_int(json_get(e, "args.error_ns")) + 1;
        bool right = false;
        for (unsigned i = 0; i < JOBS; i++)
            right = right || (llabs(start - (int64_t)job[i].start) <= error &&
                              llabs(end - (int64_t)job[i].end) <= error);
        if (!right) check_failed_(__FILE__, __LINE__, "%" PRId64 " to %" PRId64 " is no job", start, end);
        spans++;
    }
    json_node *clock = json_get(json_get(t, "metadata.npuprof.devices")->first, "clock_sync");
    CHECK_UINT(spans + (size_t)json_int(json_get(clock, "ring_lost")), JOBS);
    CHECK_INT(json_int(json_get(clock, "unplaced_spans")), 0);
    if (spans + most < JOBS) check_failed_(__FILE__, __LINE__, "only %zu spans", spans);
    CHECK_INT(json_int(json_get(clock, "causality_violations")), 0);
    return clock;
}

/* It never stands; hz is off by more than the factor of 4 that is allowed. */
static void wrong_hz(uint64_t hz, bool by_power)
{
    const npuprof_npu_desc desc = desc_of(hz, by_power);
    run(true, 1000000);
    open_npu(&desc);
    const uint64_t zero = mark_zero();
    for (unsigned i = 0; i < JOBS; i++) {
        submit_job();
        work(i);
        sim_advance(up_to(10000));
        (void)npuprof_npu_drain(&npu);
        sim_advance(up_to(20) ? up_to(200000) : 300000000);
    }
    json_node *clock = compare(zero, 8);
    CHECK_INT(json_int(json_get(clock, "nominal_hz")), (int64_t)hz);
    CHECK(llabs(json_int(json_get(clock, "rate_hz")) - HZ) < 100);
}

static void hz_10_times(void) { wrong_hz(10 * (uint64_t)HZ, true); }
static void hz_1000_times(void) { wrong_hz(1000 * (uint64_t)HZ, true); }
static void hz_1000_times_by_bit(void) { wrong_hz(1000 * (uint64_t)HZ, false); }
static void hz_a_thousandth(void) { wrong_hz(HZ / 1000, true); }

/* Its power goes and comes, and it begins at any value: often far ahead of the last one. */
static void begins_anywhere(void)
{
    const npuprof_npu_desc desc = desc_of(HZ, true);
    run(true, 1000000);
    open_npu(&desc);
    const uint64_t zero = mark_zero();
    for (unsigned i = 0; i < JOBS; i++) {
        if (i % 20 == 19) {
            run(false, 0);
            sim_advance(1000000 + up_to(200000000));
            run(true, up_to(UINT64_C(1) << 45));
        }
        submit_job();
        work(i);
        sim_advance(up_to(10000));
        (void)npuprof_npu_drain(&npu);
        sim_advance(up_to(100000));
    }
    json_node *clock = compare(zero, 0);
    CHECK(llabs(json_int(json_get(clock, "rate_hz")) - HZ) < 100);
    CHECK_INT(json_int(json_get(clock, "resets")) + json_int(json_get(clock, "ambiguous_gaps")), 15);
}

/* Its clock runs during a job only: not yet when that is submitted, and not any more at the drain. */
static void stops_before_the_drain(void)
{
    const npuprof_npu_desc desc = desc_of(HZ, false);
    sim.step = 600;
    npuprof_start(1);
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_ERR_NPU_NOT_ENABLED);
    const uint64_t zero = mark_zero();
    for (unsigned i = 0; i < JOBS; i++) {
        submit_job();
        sim_advance(1000 + up_to(5000));
        run(true, device.ns);
        work(i);
        run(false, device_ns());
        sim_advance(up_to(10) ? up_to(10000) : up_to(1000000));
        (void)npuprof_npu_drain(&npu);
        sim_advance(up_to(400000));
    }
    (void)compare(zero, JOBS / 2);
}

/* A clock that nobody reads, and no pair of times: jobs last longer, or shorter, than hz allows. */
static void wrong_hz_of_nobody(uint64_t hz)
{
    npuprof_npu_desc desc = desc_of(hz, true);
    desc.bar = NULL;
    desc.bar_bytes = 0;
    desc.is_on = NULL;
    desc.anchors_only = true;
    desc.ring = (npuprof_npu_ring){ .feed = true, .entry_bytes = 16, .start = AT(0, 8, 0, 0),
                                    .end = AT(8, 8, 0, 0) };
    run(true, 1000000);
    open_npu(&desc);
    const uint64_t zero = mark_zero();
    for (unsigned i = 0; i < JOBS; i++) {
        submit_job();
        work(i);
        sim_advance(up_to(10000));
        (void)npuprof_npu_feed(&npu, 0, sim_bar.bytes + SIM_RING + 16 * (i % 8), 16);
        sim_advance(up_to(20) ? up_to(200000) : 300000000);
    }
    (void)compare(zero, 30);
}

static void hz_of_nobody_10_times(void) { wrong_hz_of_nobody(10 * (uint64_t)HZ); }
static void hz_of_nobody_a_tenth(void) { wrong_hz_of_nobody(HZ / 10); }
static void hz_of_nobody_a_thousandth(void) { wrong_hz_of_nobody(HZ / 1000); }

CHECK_MAIN(CASE(hz_10_times), CASE(hz_1000_times), CASE(hz_1000_times_by_bit), CASE(hz_a_thousandth),
           CASE(begins_anywhere), CASE(stops_before_the_drain), CASE(hz_of_nobody_10_times),
           CASE(hz_of_nobody_a_tenth), CASE(hz_of_nobody_a_thousandth))

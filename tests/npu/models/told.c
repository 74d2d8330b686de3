/* test: large - jobs whose times the driver tells, in each way that it may know them, at random: no span is
   outside of the error that it states, and none is another's
   SPDX-License-Identifier: MIT */
#include "npu/fixture.h"
#include "npu/random.h"

enum { WAYS = 8, FEW = 800, MANY = CHECK_SANITIZED ? 3000 : 100000 };
static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g" };
static struct { uint64_t begin, end, noticed; } truth[MANY + 1];

static uint64_t below(uint64_t n) { return (random_mixed() >> 11) % n; }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t apart(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }
static int64_t ns_of(uint64_t host) { return npuprof_ticks_to_ns_(host); }

static void submit_one(uint32_t job)
{
    const uint64_t free = truth[job - 1].end;
    sim_advance(1000 + below(50000));
    if (below(50) == 0) sim_advance(below(2000000000));
    WITH_NPU_PROFILER(&npu, 0, names[job % 7], "NPU", PROF_NO_ARGS, {
        if (below(4)) sim_advance(below(5000));
        truth[job].begin = (free > sim.host ? free : sim.host) + below(20000);
        npuprof_npu_set_job(&npu, job);
    });
    truth[job].end = truth[job].begin + 500 + below(3000000);
    truth[job].noticed = truth[job].end + below(below(20) ? 200000 : 30000000);
}

/* The driver notices that it is over, and says what it knows. */
static void tell(uint32_t job)
{
    const uint64_t begin = truth[job].begin, end = truth[job].end, early = begin - below(400);
    if (truth[job].noticed > sim.host) sim_advance(truth[job].noticed - sim.host);
    npuprof_npu_host_times times = { 0, 0, 0, 0, 0, 0 };
    const uint64_t told_end = least(end + below(2000), sim.host), way = below(WAYS);
    const uint64_t told_begin = least(begin + below(2000), told_end);
    bool found;
    if (way == 1 || way == 4 || way == 7) times.duration_ns = end - begin;
    if (way == 2 || way == 4) times.not_before_ns = ns_of(early), times.not_after_ns = ns_of(told_end);
    if (way == 3) {
        times.start_ns = ns_of(told_begin), times.end_ns = ns_of(told_end);
        times.error_ns = apart(told_begin, begin) + apart(told_end, end) + 1;
    }
    if (way == 7) times.end_ns = ns_of(told_end), times.error_ns = apart(told_end, end) + 1;
    if (way == 5 || way == 6)
        found = npuprof_npu_complete_host(&npu, job, 0, NULL, NULL, way == 5 ? 0 : ns_of(told_begin),
                                          ns_of(sim.host), PROF_NO_ARGS, true);
    else
        found = npuprof_npu_complete_times(&npu, job, 0, NULL, NULL, times, PROF_NO_ARGS, true);
    CHECK(found);
}

static void compare(unsigned jobs, uint64_t begun)
{
    json_node *const t = written();
    const int64_t zero = trace_start(trace_event(t, "X", "zero", 0)) - (int64_t)begun;
    unsigned spans = 0, outside = 0, crossed = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        json_node *const job = json_get(e, "args.job"), *const error = json_get(e, "args.error_ns");
        if (!job) continue;
        const int64_t n = json_int(job), bound = error ? json_int(error) + 2 : -1;
        spans++;
        outside += llabs(trace_start(e) - zero - (int64_t)truth[n].begin) > bound ||
                   llabs(trace_end(e) - zero - (int64_t)truth[n].end) > bound;
        crossed += strcmp(json_text(json_get(e, "name")), names[n % 7]) != 0;
    }
    printf("  %u spans, %u outside, %u crossed\n", spans, outside, crossed);
    CHECK_UINT(spans, jobs);
    CHECK_UINT(outside, 0);
    CHECK_UINT(crossed, 0);
    CHECK_UINT(trace_count(t, "f", "submit"), jobs);
    CHECK_INT(records(t, "open_jobs"), 0);
}

/* Up to three jobs are under way. */
static void play(unsigned jobs)
{
    npuprof_npu_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "told";
    desc.anchors_only = true;              /* its clock is of no use: all times are the host's */
    desc.counter.hz = 1000000000;
    open_npu(&desc);
    const uint64_t begun = mark_zero();
    for (uint32_t next = 1, told = 1; told <= jobs;) {
        if (next <= jobs && next - told < 3 && (next == told || below(2))) submit_one(next++);
        else tell(told++);
    }
    npuprof_npu_close(&npu);
    compare(jobs, begun);
}

static void few(void) { play(FEW); }
static void many(void) { play(MANY); }

CHECK_MAIN(CASE(few), CASE_THOROUGH(many))

/* test: lib=-lm large - device clocks that are not what was declared: they stand while idle, a governor
   switches them, their rate toggles. Every span is in its bound, and the trace says what was seen. Of a
   steady clock the bound is narrow
   SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "random.h"
#include <math.h>

enum { ENTRY = 24, GOVERNED = 20000000, MANY = CHECK_SANITIZED ? 10000 : 100000 };

static double between(double a, double b) { return a * pow(b / a, uniform()); }

/* The clock: `fast` ticks a ns for half a period, `slow` for the other. Without a period it runs in jobs
   only. */
static struct { double fast, slow; uint64_t period, from, to; long double phase; } clk;
static struct { uint64_t begin, end; } truth[MANY + 1];
static unsigned jobs = 1500;
static bool even;                    /* hand-overs every 5 ms, loads of 2 to 6 us */
static double stalls;                /* share of the loads after which it shows the same for 20 us */
static uint64_t stalled_to;
static double at_feed;               /* share of the jobs at whose end it still runs when it is read */
static unsigned right;               /* spans whose length is off by at most a quarter */

static long double phase_at(uint64_t host)
{
    if (!clk.period) {
        const uint64_t to = host < clk.to ? host : clk.to;
        return clk.phase + (long double)(to > clk.from ? to - clk.from : 0) * (long double)clk.fast;
    }
    const uint64_t half = clk.period / 2, whole = host / clk.period, left = host % clk.period;
    const long double one = (long double)half * (long double)(clk.fast + clk.slow);
    return (long double)whole * one + (long double)(left < half ? left : half) * (long double)clk.fast +
           (long double)(left > half ? left - half : 0) * (long double)clk.slow;
}

/* A look at the host's clock lasts 0.2 to 3 us; the load happens anywhere in it. */
static void show(void)
{
    sim.step = (uint64_t)(even ? 2000 + 4000 * uniform() : between(200, 3000));
    const double way = even ? 200 : 0, at = way + uniform() * ((double)sim.step - 2 * way);
    const uint64_t value = (uint64_t)floorl(phase_at(sim.host + (uint64_t)at));
    if (stalls > 0 && sim.host < stalled_to) return;
    if (stalls > 0 && uniform() < stalls) stalled_to = sim.host + 20000;
    sim_store(SIM_LO, 4, value & UINT32_MAX);
    sim_store(SIM_HI, 4, value >> 32);
}

static void pass(double ns)
{
    sim.host += (uint64_t)ns;
    show();
}

static void run_job(unsigned job)
{
    unsigned char entry[ENTRY];
    const double length = even ? 1e6 : between(2e4, 5e6), late = between(2e3, 1e5);
    WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, {
        npuprof_npu_set_job(&npu, job);
        pass(between(500, 5000));
    });
    truth[job].begin = sim.host + (uint64_t)between(500, 20000);
    truth[job].end = truth[job].begin + (uint64_t)length;
    if (!clk.period) {
        clk.phase = phase_at(sim.host);
        clk.from = truth[job].begin;
        clk.to = truth[job].end + (uint64_t)(uniform() < at_feed ? 2e5 : late / 2);
    }
    put(entry, 8, job);
    put(entry + 8, 8, (uint64_t)floorl(phase_at(truth[job].begin)));
    put(entry + 16, 8, (uint64_t)floorl(phase_at(truth[job].end)));
    pass((double)(truth[job].end - sim.host) + late);
    const npuprof_result fed = npuprof_npu_feed(&npu, 0, entry, ENTRY);
    if (fed == NPUPROF_ERR_NPU_DEAD || fed == NPUPROF_ERR_NPU_NO_ANCHOR)
        check_failed_(__FILE__, __LINE__, "job %u: %s", job, npuprof_result_string(fed));
    pass(even ? 3.9e6 : between(1e5, 2e7));
}

static int compare_errors(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* How many stamps of a trace lie outside of their bounds; the median bound. */
static unsigned outside(json_node *t, uint64_t begun, unsigned *spans, int64_t *median)
{
    static int64_t errors[MANY];
    const int64_t zero = trace_start(trace_event(t, "X", "zero", 0));
    unsigned out = 0;
    *spans = right = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        json_node *const bound = json_get(e, "args.error_ns"), *const job = json_get(e, "args.job");
        if (!bound || !job || *spans == jobs) continue;
        const int64_t j = json_int(job), error = json_int(bound) + 1;
        const int64_t start = (int64_t)(truth[j].begin - begun), end = (int64_t)(truth[j].end - begun);
        out += llabs(trace_start(e) - zero - start) > error;
        out += llabs(trace_end(e) - zero - end) > error;
        errors[(*spans)++] = error;
        right += 4 * llabs(trace_dur(e) - (end - start)) <= end - start;
    }
    qsort(errors, *spans, sizeof *errors, compare_errors);
    *median = *spans ? errors[*spans / 2] : 0;
    return out;
}

/* A world that begins with that clock. */
static npuprof_npu_desc begin(double fast, double slow, uint64_t period)
{
    seed = 88172645463325252u;
    sim.tick = show;
    sim.bits = 64;
    clk.fast = fast;
    clk.slow = slow;
    clk.period = period;
    clk.phase = 1e9L;
    clk.from = sim.host;
    clk.to = sim.host + 3000000;
    show();
    npuprof_start(1);
    npuprof_npu_desc desc = sim_desc();
    desc.counter.hz = (uint64_t)(fast * 1e9);
    return desc;
}

static void play(const char *what, double fast, double slow, uint64_t period, int64_t widest)
{
    npuprof_npu_desc desc = begin(fast, slow, period);
    const uint64_t begun = mark_zero();
    if (stalls > 0) desc.counter.lag_ns = 400;
    desc.ring = (npuprof_npu_ring){ .feed = true, .entry_bytes = ENTRY, .job = AT(0, 8, 0, 0),
                                    .start = AT(8, 8, 0, 0), .end = AT(16, 8, 0, 0) };
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    for (unsigned job = 1; job <= jobs; job++) run_job(job);
    json_node *t = closed();
    unsigned spans;
    int64_t median;
    const unsigned out = outside(t, begun, &spans, &median);
    json_node *const seen = json_get(clock_sync(t), "contradictions");
    if (stalls > 0) CHECK(json_get(clock_sync(t), "late_reads") != NULL);
    printf("  %s: %u spans, %u stamps outside, median bound %" PRId64 " ns, contradictions %" PRId64
           ", %u with their length\n", what, spans, out, median, seen ? json_int(seen) : 0, right);
    CHECK_UINT(out, 0);
    CHECK(spans > jobs * 8 / 10);
    /* half of the governor's jobs run at half the rate */
    CHECK(right > spans * (period == GOVERNED ? 4 : 9) / 10);
    CHECK(even ? !seen : seen != NULL);
    CHECK(median < widest);
}

static void stands_while_idle(void) { at_feed = 1; play("stands", 0.5, 0, 0, 20000000); }
static void stands_when_read(void) { at_feed = 0.5; play("stands, too", 0.5, 0, 0, 200000000); }
static void stands_when_fed(void) { at_feed = 0; play("stands, always", 0.5, 0, 0, 200000000); }
static void governor(void) { play("governor", 1, 0.5, GOVERNED, 20000000); }
static void steady(void) { even = true; play("steady", 0.1, 0.1, 100000000, 720); }

static void late(void)
{
    even = true;
    stalls = 0.002;
    play("late at times", 0.1, 0.1, 100000000, 3000);
}

/* One read is 5 ms late, the second to the fifth of all: it alone is left out. */
static void late_among_the_first(const void *user)
{
    const unsigned which = *(const unsigned *)user;
    even = true;
    npuprof_npu_desc desc = begin(0.1, 0.1, 100000000);
    seed += which;
    desc.counter.lag_ns = 400;
    open_npu(&desc);
    for (unsigned read = 2; read < 12; read++) {
        stalls = 1e-9;
        stalled_to = 0;
        pass(2e6);
        if (read == which) {
            sim.host += 5000000;
            stalled_to = sim.host + 1000000;
        }
        CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
    }
    json_node *const sync = clock_sync(closed());
    json_node *const reads = json_get(sync, "late_reads");
    CHECK_INT(reads ? json_int(reads) : 0, 1);
    CHECK(json_get(sync, "contradictions") == NULL);
}

static void late_first(void)
{
    static const unsigned which[] = { 2, 3, 4, 5 };
    for (unsigned i = 0; i < 4; i++) check_in_child(late_among_the_first, &which[i]);
}

/* Kernels whose counter is read at both ends: a clock that runs in them only, and a governed one. The stream
   is the job. */
static void sampled(const void *user)
{
    const npuprof_npu_desc desc = begin(0.5, 0.25, *(const uint64_t *)user);
    const uint64_t begun = mark_zero();
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    for (unsigned job = 1; job <= jobs; job++) {
        const double length = between(2e3, 5e6);
        WITH_NPU_PROFILER(&npu, job, "job", "NPU", PROF_NO_ARGS, {
            truth[job].begin = sim.host;
            clk.phase = clk.period ? 0 : phase_at(sim.host);
            clk.from = sim.host;
            clk.to = sim.host + (uint64_t)length;
            pass(length);
            truth[job].end = sim.host;
        });
        pass(between(1e3, 1e8));
    }
    json_node *const t = closed();
    const int64_t zero = trace_start(trace_event(t, "X", "zero", 0));
    unsigned out = 0, spans = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        json_node *const bound = json_get(e, "args.error_ns");
        if (!bound) continue;
        const int64_t j = json_int(json_get(e, "args.stream"));
        const int64_t error = json_int(bound) + 12000;  /* four looks at the clock */
        out += llabs(trace_start(e) - zero - (int64_t)(truth[j].begin - begun)) > error;
        out += llabs(trace_end(e) - zero - (int64_t)(truth[j].end - begun)) > error;
        spans++;
    }
    CHECK_UINT(out, 0);
    CHECK_UINT(spans, jobs);
    CHECK(json_get(clock_sync(t), "contradictions") != NULL);
}

static void sampled_kernels(void)
{
    static const uint64_t periods[] = { 0, 20000000, 700000000 };
    for (unsigned i = 0; i < 3; i++) check_in_child(sampled, &periods[i]);
}

/* Where reads contradict each other, what was just read is mapped all the same: it was before now. */
static void asked_at_once(void)
{
    uint64_t ticks, error;
    int64_t ns;
    even = true;
    const npuprof_npu_desc desc = begin(0.1, 0.05, 20000000);
    open_npu(&desc);
    for (int i = 0; i < 400; i++) {
        pass(i < 200 ? 1e6 : between(1e6, 1e9));
        const uint64_t from = sim.host;
        CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
        CHECK_INT(npuprof_npu_host_ns(&npu, ticks, &ns, &error), NPUPROF_OK);
        CHECK(ns - (int64_t)error <= npuprof_ticks_to_ns_(sim.host));
        if (ns + (int64_t)error < npuprof_ticks_to_ns_(from))
            check_failed_(__FILE__, __LINE__, "round %d: %" PRId64 " ns before", i,
                          npuprof_ticks_to_ns_(from) - ns - (int64_t)error);
    }
    npuprof_npu_close(&npu);
}

static void toggled(void) { play("toggled", 0.1, 0.10001, 100000000, 20000000); }

/* The same with many jobs. */
static void in_many(const void *user)
{
    void (*const play_one)(void) = *(void (*const *)(void))user;
    jobs = MANY;
    play_one();
}

static void many_jobs(void)
{
    static void (*const plays[])(void) = { stands_while_idle, stands_when_read, stands_when_fed, governor,
                                           toggled, steady };
    for (unsigned i = 0; i < 6; i++) check_in_child(in_many, &plays[i]);
}

CHECK_MAIN(CASE(stands_while_idle), CASE(stands_when_read), CASE(stands_when_fed), CASE(governor),
           CASE(toggled), CASE(steady), CASE(late), CASE(late_first), CASE(asked_at_once),
           CASE(sampled_kernels), CASE_THOROUGH(many_jobs))

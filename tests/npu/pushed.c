/* test: lib=-lm - device time without a readable counter: anchors that the driver pushes, and causality alone
   SPDX-License-Identifier: MIT

   The truth is a linear device clock that the test computes itself. */
#include "fixture.h"
#include "random.h"
#include <math.h>

enum { DEVICES = 40, JOBS = 150, BATCH = 5 };

static double between(double a, double b) { return a * pow(b / a, uniform()); }

/* The true clock: ticks at a host time. */
static struct { long double rate, zero; uint64_t at; } truth;
static struct { uint64_t from, to; } stands;           /* in between it does */
static uint64_t ticks_at(uint64_t host)
{
    if (host >= stands.to) host -= stands.to - stands.from;
    else if (host > stands.from) host = stands.from;
    return (uint64_t)floorl(truth.zero + (long double)(int64_t)(host - truth.at) * truth.rate);
}

static uint64_t begun;               /* host time of the span "zero" */

static void begin(void)
{
    npuprof_start(1);
    begun = mark_zero();
}

static npuprof_npu_desc pushed_desc(uint64_t hz)
{
    return (npuprof_npu_desc){ .name = "pushed", .anchors_only = true, .counter = { .hz = hz } };
}

/* A device whose clock is as exact as it says. */
static void open_exact(void)
{
    const npuprof_npu_desc desc = pushed_desc(1000000000);
    truth.rate = 1;
    truth.zero = 1e9L;
    truth.at = sim.host;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
}

/* Compares all device spans with the truth in their arguments. Returns how many there are; *worst: the widest
   bound of those from `warm` on. */
static size_t compare(json_node *t, int64_t warm, int64_t *worst)
{
    const int64_t zero = trace_start(trace_event(t, "X", "zero", 0));
    size_t count = 0;
    *worst = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        if (!json_get(e, "args.begin")) continue;
        const int64_t start = arg(e, "begin") - (int64_t)begun;
        const int64_t end = arg(e, "end") - (int64_t)begun;
        const int64_t error = arg(e, "error_ns") + 1;
        count++;
        if (llabs(trace_start(e) - zero - start) > error || llabs(trace_end(e) - zero - end) > error)
            check_failed_(__FILE__, __LINE__, "job %" PRId64 ": start %" PRId64 " ns off, end %" PRId64
                          ", bound %" PRId64, arg(e, "job"),
                          trace_start(e) - zero - start, trace_end(e) - zero - end, error);
        if (arg(e, "job") >= warm && error > *worst) *worst = error;
    }
    return count;
}

/* Submits a few jobs, lets them run one after the other, and reports them in any order. */
static void run_batch(uint64_t *number, double spread)
{
    struct { uint64_t id, begin, end; } job[BATCH];
    const unsigned count = 1 + (unsigned)(uniform() * BATCH);
    uint64_t free_at = 0;
    for (unsigned i = 0; i < count; i++) {
        WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, {
            job[i].id = ++*number;
            npuprof_npu_set_job(&npu, job[i].id);
            sim_advance((uint64_t)between(100, 3000));
        });
        const uint64_t ready = sim.host + (uint64_t)between(200, spread);
        job[i].begin = ready > free_at ? ready : free_at + 100;
        job[i].end = free_at = job[i].begin + (uint64_t)between(1000, 100000);
    }
    if (sim.host < free_at) sim.host = free_at;
    sim_advance((uint64_t)between(200, spread));
    for (unsigned n = count; n > 0; n--) {
        const unsigned i = (unsigned)(uniform() * n);
        CHECK(npuprof_npu_complete(&npu, job[i].id, 0, "run", NULL, ticks_at(job[i].begin),
                                   ticks_at(job[i].end),
                                   PROF_ARGS(PROF_UINT("begin", job[i].begin), PROF_UINT("end", job[i].end)),
                                   true));
        job[i] = job[n - 1];
    }
    sim_advance((uint64_t)between(1000, 3000000));
}

/* No anchor at all: what follows from submissions and reports contains the truth, for any schedule, any true
   rate within a factor of 3 of the nominal one, and any offset. */
static void causality_alone(void)
{
    size_t wanted = 0;
    begin();
    for (int device = 0; device < DEVICES; device++) {
        const double spread = between(1000, 1000000);
        const uint64_t hz = (uint64_t)between(1e7, 2e9);
        uint64_t number = 0;
        npuprof_npu_desc desc = pushed_desc(uniform() < 0.2 ? 0 : hz);
        truth.rate = (long double)((double)hz / 1e9 * (uniform() < 0.5 ? 1 + (uniform() - 0.5) / 1000
                                                                       : between(0.35, 3)));
        truth.zero = (long double)between(1, 1e15);
        truth.at = sim.host;
        CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
        while (number < JOBS) run_batch(&number, spread);
        wanted += number;
        npuprof_npu_close(&npu);
    }
    json_node *t = written();
    int64_t worst;
    CHECK_UINT(compare(t, 0, &worst), wanted);
    json_node *d = json_get(t, "metadata.npuprof.devices");
    CHECK_STOP(d && d->count == DEVICES);
    int64_t unplaced = 0;
    for (d = d->first; d; d = d->next) {
        CHECK_STR(json_text(json_get(d, "clock_sync.clock")), "causal");
        CHECK_INT(json_int(json_get(d, "clock_sync.causality_violations")), 0);
        CHECK_INT(json_int(json_get(d, "clock_sync.resets")), 0);
        unplaced += json_int(json_get(d, "clock_sync.unplaced_spans"));
    }
    CHECK_INT(unplaced, 0);
}

/* One queue, steady: the bound comes down to about half of the shortest way there and back. */
static void tight(void)
{
    npuprof_npu_desc desc = pushed_desc(100000000);
    uint64_t number = 0;
    begin();
    truth.rate = 0.1L * 1.00004L;
    truth.zero = 5e9L;
    truth.at = sim.host;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    for (int i = 0; i < 4000; i++) {
        /* one way in ten is 2 us short in all, the others take 50 to 200 us */
        const uint64_t there = i % 10 ? (uint64_t)between(25000, 100000) : 1000;
        const uint64_t back = i % 10 ? (uint64_t)between(25000, 100000) : 1000;
        WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, ++number));
        const uint64_t from = sim.host + there, to = from + 20000;
        sim.host = to + back;
        CHECK(npuprof_npu_complete(&npu, number, 0, "run", NULL, ticks_at(from), ticks_at(to),
                                   PROF_ARGS(PROF_UINT("begin", from), PROF_UINT("end", to)), true));
        sim_advance(500000);
    }
    npuprof_npu_close(&npu);
    int64_t worst;
    CHECK_UINT(compare(written(), 2000, &worst), 4000);
    printf("  bound %" PRId64 " ns, half of the shortest way 1000 ns\n", worst);
    CHECK(worst < 4000);
}

static npuprof_result push(uint64_t ticks, uint64_t before, uint64_t after)
{
    return npuprof_npu_anchor(&npu, ticks, npuprof_ticks_to_ns_(before), npuprof_ticks_to_ns_(after));
}

/* Anchors of a driver, and stamps of 32 bits that wrap: the bound contains the truth. */
static void pushed_anchors(void)
{
    npuprof_npu_desc desc = pushed_desc(1000000000);
    desc.counter.bits = 48;
    begin();
    truth.rate = 1.00003L;
    truth.zero = 4294967296.0L * 3 - 1e8L;
    truth.at = sim.host;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    uint64_t number = 0;
    for (int i = 0; i < 300; i++) {
        const uint64_t before = sim.host, width = (uint64_t)between(500, 50000);
        const uint64_t read = ticks_at(before + (uint64_t)(uniform() * (double)width));
        sim_advance(width);
        CHECK_INT(push(read, before, sim.host), NPUPROF_OK);
        sim_advance((uint64_t)between(1000, 5e7));
        WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, ++number));
        const uint64_t from = sim.host + 1000, to = from + 20000;
        sim.host = to + (uint64_t)between(1000, 1e6);
        const uint64_t start = npuprof_npu_extend_stamp(&npu, (uint32_t)ticks_at(from), 32, 0);
        const uint64_t end = npuprof_npu_extend_stamp(&npu, (uint32_t)ticks_at(to), 32, start);
        CHECK_UINT(start, ticks_at(from));
        CHECK_UINT(end, ticks_at(to));
        CHECK(npuprof_npu_complete(&npu, number, 0, "run", NULL, start, end,
                                   PROF_ARGS(PROF_UINT("begin", from), PROF_UINT("end", to)), true));
    }
    json_node *t = closed();
    int64_t worst;
    CHECK_UINT(compare(t, 0, &worst), 300);
    CHECK(worst < 60000);
    CHECK_INT(said(t, "resets"), 0);
}

static void what_is_refused(void)
{
    npuprof_npu_desc desc = pushed_desc(1000000000);
    uint64_t ticks;
    int64_t ns;
    begin();
    truth.rate = 1;
    truth.zero = 1e9L;
    truth.at = sim.host;
    CHECK_INT(npuprof_npu_anchor(&npu, 1, 2, 3), NPUPROF_ERR_NPU_NOT_OPEN);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_NO_ANCHOR);
    CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_ERR_NPU_NO_ANCHOR);
    sim_advance(1000000);
    CHECK_INT(push(ticks_at(sim.host), sim.host, sim.host - 1), NPUPROF_ERR_ARGUMENT);
    CHECK(strstr(npuprof_result_string(NPUPROF_ERR_ARGUMENT), "after host_after_ns"));
    CHECK_INT(push(ticks_at(sim.host), sim.host + 1000000, sim.host + 2000000), NPUPROF_ERR_ARGUMENT);
    CHECK(strstr(npuprof_result_string(NPUPROF_ERR_ARGUMENT), "in the future"));
    for (int i = 0; i < 4; i++) {
        CHECK_INT(push(ticks_at(sim.host), sim.host - 100, sim.host + 100), NPUPROF_OK);
        sim_advance(100000000);
    }
    CHECK_INT(push(ticks_at(sim.host - 300000000), sim.host - 300000100, sim.host - 300000000), NPUPROF_OK);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    CHECK(llabs((int64_t)(ticks - ticks_at(sim.host))) < 1000);
    CHECK_INT(npuprof_npu_host_ns(&npu, ticks, &ns, NULL), NPUPROF_OK);
    CHECK(llabs(ns - npuprof_ticks_to_ns_(sim.host)) < 1000);
    /* 10 us of 0.4 s: more than the brackets and 2 ppm allow */
    CHECK_INT(push(ticks_at(sim.host) + 10000, sim.host - 100, sim.host), NPUPROF_ERR_NPU_RESET);
    CHECK_UINT(npu.epoch_, 1);
    sim_advance(1000000);
    CHECK_INT(push(ticks_at(sim.host) + 10000, sim.host - 100, sim.host), NPUPROF_OK);
    sim_advance(1000000);
    CHECK_INT(push(5, sim.host - 100, sim.host), NPUPROF_ERR_NPU_RESET);
    npuprof_npu_close(&npu);
    CHECK_INT(npuprof_npu_anchor(&npu, 1, 2, 3), NPUPROF_ERR_NPU_NOT_OPEN);
    desc.read_ticks = NULL;
    desc.bar = sim_bar.bytes;
    desc.bar_bytes = sizeof sim_bar;
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_OK);
    CHECK_UINT(npu.mmio_reads, 0);
    npuprof_npu_close(&npu);
}

/* A single anchor and the nominal rate place what is near it, however wrong that rate is. */
static void one_anchor(void)
{
    begin();
    for (int i = 0; i < 8; i++) {
        npuprof_npu_desc desc = pushed_desc(1000000000);
        truth.rate = (long double)between(0.3, 3.5);
        truth.zero = 1e9L;
        truth.at = sim.host;
        CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
        sim_advance(1000000);
        CHECK_INT(push(ticks_at(sim.host - 50), sim.host - 100, sim.host), NPUPROF_OK);
        const uint64_t from = sim.host + 10000, to = from + 20000;
        sim.host = to;
        (void)npuprof_npu_complete(&npu, 0, 0, "run", NULL, ticks_at(from), ticks_at(to),
                                   PROF_ARGS(PROF_UINT("begin", from), PROF_UINT("end", to)), true);
        npuprof_npu_close(&npu);
    }
    int64_t worst;
    CHECK_UINT(compare(written(), 0, &worst), 8);
}

/* The true rate is 10 times the nominal one, or a tenth: that is said once, and it is measured. */
static void wrong_hz(void)
{
    begin();
    for (unsigned bits = 32; bits <= 64; bits += 32) {
        for (int slow = 0; slow < 2; slow++) {
            npuprof_npu_desc desc = pushed_desc(100000000);
            unsigned said_so = 0;
            desc.counter.bits = bits;
            truth.rate = slow ? 0.01L : 1;
            truth.zero = 1e6L;
            truth.at = sim.host;
            CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
            for (unsigned i = 0; i < 40; i++) {
                sim_advance(10000000);
                const npuprof_result result = push(ticks_at(sim.host - 50), sim.host - 100, sim.host);
                said_so += result == NPUPROF_ERR_NPU_COUNTER;
                if (i > 8) CHECK_INT(result, NPUPROF_OK);
                const uint64_t at = sim.host, ticks = ticks_at(at), none = 0;
                sim_advance(1000);
                if (i > 8)
                    (void)npuprof_npu_complete(&npu, none, 0, "run", NULL, ticks, ticks,
                                               PROF_ARGS(PROF_UINT("begin", at), PROF_UINT("end", at)), true);
            }
            CHECK_UINT(said_so, 1);
            CHECK_UINT(npu.epoch_, 8);
            npuprof_npu_close(&npu);
        }
    }
    int64_t worst;
    CHECK_UINT(compare(written(), 0, &worst), 4 * 31);
    CHECK(worst < 3000);
}

/* Beside a counter that is read, a pushed anchor is one more; one that contradicts it begins an epoch. */
static void beside_a_counter(void)
{
    begin();
    SIM_DESC(desc);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    sim_advance(50000000);
    const uint32_t anchors = npu.anchor_count_;
    CHECK_INT(push(sim_truth(), sim.host - 50, sim.host), NPUPROF_OK);
    CHECK_UINT(npu.anchor_count_, anchors + 1);
    sim_advance(50000000);
    CHECK_INT(push(sim_truth() / 2, sim.host - 50, sim.host), NPUPROF_ERR_NPU_RESET);
    npuprof_npu_close(&npu);
}

/* A wide bracket whose value is older than a read inside of it is no reset, whether the counter is read or
   not. */
static void wide_bracket(void)
{
    begin();
    SIM_DESC(desc);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    for (unsigned i = 0; i < 20; i++) {
        sim_advance(5000000);
        const uint64_t raw = sim_truth(), before = sim.host;
        sim_sync(200000);
        sim_advance(100000);
        const uint64_t last = npu.last_.device_ticks;
        CHECK_INT(push(raw, before, sim.host), NPUPROF_OK);
        CHECK_UINT(npu.last_.device_ticks, last);
    }
    CHECK_UINT(npu.epoch_, 0);
    npuprof_npu_close(&npu);
    open_exact();
    for (unsigned i = 0; i < 20; i++) {
        sim_advance(5000000);
        const uint64_t before = sim.host;
        sim_advance(200000);
        CHECK_INT(push(ticks_at(sim.host - 50), sim.host - 100, sim.host), NPUPROF_OK);
        sim_advance(100000);
        CHECK_INT(push(ticks_at(before + 20000), before, sim.host), NPUPROF_OK);
    }
    CHECK_UINT(npu.epoch_, 0);
    npuprof_npu_close(&npu);
}

/* Brackets that are much wider than the best one are kept only if there was none for a second. */
static void wide_beside_narrow(void)
{
    begin();
    open_exact();
    for (unsigned i = 0; i < 5; i++) {
        sim_advance(300000000);
        CHECK_INT(push(ticks_at(sim.host - 50), sim.host - 100, sim.host), NPUPROF_OK);
    }
    const uint32_t narrow = npu.anchor_count_;
    CHECK_UINT(narrow, 5);
    for (unsigned i = 1; i <= 8; i++) {
        sim_advance(300000000);
        CHECK_INT(push(ticks_at(sim.host - 500000), sim.host - 1000000, sim.host), NPUPROF_OK);
        CHECK(npu.anchor_count_ >= narrow + i / 4 && npu.anchor_count_ <= narrow + i / 4 * 2);    /* 1.2 s */
    }
    npuprof_npu_close(&npu);
}

/* Records whose stamps are coarser than the counter: a job's begin may be up to a unit after its stamp, so it
   may seem older than its submission. job 4 | start 4 | end 4 | 0 4 | begin 8 | end 8 */
static void coarse_stamps(void)
{
    const unsigned unit = 1000;
    npuprof_npu_desc desc = pushed_desc(1000000000);
    desc.ring = (npuprof_npu_ring){ .feed = true, .entry_bytes = 32, .job = AT(0, 4, 0, 0),
                                    .start = AT(4, 4, 0, 0), .end = AT(8, 4, 0, 0), .scale_num = unit,
                                    .args = { { AT(16, 8, 0, 0), "begin" }, { AT(24, 8, 0, 0), "end" } } };
    begin();
    truth.rate = 1;
    truth.zero = 1e9L;
    truth.at = sim.host;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    for (uint32_t i = 1; i <= JOBS; i++) {
        unsigned char entry[32] = { 0 };
        const uint64_t before = sim.host;
        sim_advance(3000);
        CHECK_INT(push(ticks_at(before + (uint64_t)(uniform() * 3000)), before, sim.host), NPUPROF_OK);
        sim_advance((uint64_t)between(1000, 5e7));
        WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, i));
        const uint64_t from = sim.host + 100, to = from + (uint64_t)between(1000, 20000);
        sim.host = to + 100;
        put(entry, 4, i);
        put(entry + 4, 4, ticks_at(from) / unit);
        put(entry + 8, 4, ticks_at(to) / unit);
        put(entry + 16, 8, from);
        put(entry + 24, 8, to);
        CHECK_INT(npuprof_npu_feed(&npu, 0, entry, sizeof entry), NPUPROF_OK);
    }
    json_node *t = closed();
    int64_t worst;
    CHECK_UINT(compare(t, 0, &worst), JOBS);
    CHECK(worst < 3 * (int64_t)unit);
    CHECK_INT(said(t, "resets"), 0);
}

/* A narrow stamp of the period before, long after the last read: it is never of the future. */
static void old_stamp(void)
{
    begin();
    SIM_DESC(desc);
    desc.counter.hz = sim.hz;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    for (unsigned i = 0; i < 100; i++) {
        sim_advance(i == 50 ? 20000000000 : 50000000);
        const uint64_t now = sim_truth();
        sim_advance(1000);
        CHECK_UINT(npuprof_npu_extend_stamp(&npu, now & 0xFFFF, 16, 0), now);
    }
    npuprof_npu_close(&npu);
}

/* The clock stands for 5 ms while a job waits, and nobody says so: what the job's stamps are is known again
   from the next anchor, which contradicts. It bounds the job, too. */
static void stands_unannounced(void)
{
    enum { EACH = 40, COUNT = 3 * EACH };
    begin();
    open_exact();
    for (unsigned i = 1; i <= COUNT + 1; i++) {
        const uint64_t before = sim.host;
        sim_advance(1000);
        const npuprof_result result = push(ticks_at(before + 500), before, sim.host);
        CHECK_INT(result, i % EACH == 1 && i > 1 ? NPUPROF_ERR_NPU_RESET : NPUPROF_OK);
        if (i > COUNT) break;
        WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, i));
        if (i % EACH == 0) {
            sim_advance(5000000);
            truth.zero -= 5000000;
        }
        const uint64_t from = sim.host + 1000, to = from + 20000;
        sim.host = to + 1000;
        CHECK(npuprof_npu_complete(&npu, i, 0, "run", NULL, ticks_at(from), ticks_at(to),
                                   PROF_ARGS(PROF_UINT("begin", from), PROF_UINT("end", to)), true));
        sim_advance(10000000);
    }
    json_node *t = closed();
    int64_t worst;
    CHECK_UINT(compare(t, 0, &worst), COUNT);
    CHECK_INT(said(t, "resets"), 3);
}

/* The clock stands once, beneath brackets that are wide enough to hide how long, or behind the last of them.
   Jobs run on. */
static void stands_beneath_jobs(void)
{
    begin();
    for (int device = 0; device < DEVICES; device++) {
        const npuprof_npu_desc desc = pushed_desc(31500000);
        uint64_t number = 0;
        truth.rate = 0.0315L;
        truth.zero = 1e5L;
        truth.at = sim.host;
        stands.from = sim.host + (uint64_t)between(1e6, 5e7);
        stands.to = stands.from + (uint64_t)between(1e5, 2e8);
        CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
        while (number < JOBS) {
            run_batch(&number, 30000);
            if (sim.host > stands.from && sim.host < stands.to && uniform() < 0.2) sim.host = stands.to;
            if (uniform() < 0.7) continue;
            sim_advance((uint64_t)between(500, 5000));
            (void)push(ticks_at(sim.host - 200), sim.host - 500, sim.host);
        }
        npuprof_npu_close(&npu);
    }
    memset(&stands, 0, sizeof stands);
    int64_t worst;
    CHECK(compare(written(), 0, &worst) > DEVICES * JOBS / 2);
}

/* An anchor whose bracket is so wide. */
static void push_between(double least, double most)
{
    const uint64_t half = (uint64_t)between(least, most);
    (void)push(ticks_at(sim.host - half), sim.host - 2 * half, sim.host);
}

/* Reset behind an anchor, and a while later it shows more than there: nobody can tell it from a clock that
   went on. Jobs of both runs in between, before the next anchor and behind it. */
static void reset_shows_more(void)
{
    begin();
    for (int device = 0; device < DEVICES; device++) {
        const npuprof_npu_desc desc = pushed_desc(uniform() < 0.5 ? 1000000000 : 0);
        uint64_t number = 0;
        truth.rate = 1;
        truth.zero = 1e6L;
        truth.at = sim.host;
        CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
        const unsigned anchors = 1 + (unsigned)(uniform() * 10);
        for (unsigned i = 0; i < anchors; i++) {
            push_between(500, 50000);
            run_batch(&number, 30000);
        }
        if (uniform() < 0.5) run_batch(&number, 30000);
        const uint64_t shown = ticks_at(sim.host);
        truth.zero = 0;
        truth.at = sim.host;
        while (ticks_at(sim.host) < shown + (uint64_t)between(1e4, 1e7)) run_batch(&number, 30000);
        for (unsigned i = 0; i < 10; i++) {
            push_between(500, 50000);
            run_batch(&number, 30000);
        }
        npuprof_npu_close(&npu);
    }
    int64_t worst;
    CHECK(compare(written(), 0, &worst) > DEVICES * 10);
}

/* A record of the run before the reset comes behind the first anchor of the next run. It is drawn in its own
   run and tells nothing of this one; where no rate tells the runs apart, it is lost, and counted.
   job 8 | start 8 | end 8 | begin 8 | end 8 */
static void reset_before_its_record(unsigned anchors)
{
    npuprof_npu_desc desc = pushed_desc(0);
    unsigned char entry[40];
    desc.ring = (npuprof_npu_ring){ .feed = true, .entry_bytes = 40, .job = AT(0, 8, 0, 0),
                                    .start = AT(8, 8, 0, 0), .end = AT(16, 8, 0, 0),
                                    .args = { { AT(24, 8, 0, 0), "begin" }, { AT(32, 8, 0, 0), "end" } } };
    begin();
    truth.rate = 1;
    truth.zero = 1e9L;
    truth.at = sim.host;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    for (unsigned i = 0; i < anchors; i++) {
        sim_advance(10000000);
        CHECK_INT(push(ticks_at(sim.host - 50), sim.host - 100, sim.host), NPUPROF_OK);
    }
    WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, 1));
    const uint64_t from = sim.host + 1000, to = from + 20000;
    const uint64_t words[5] = { 1, ticks_at(from), ticks_at(to), from, to };
    for (unsigned i = 0; i < 5; i++) put(entry + 8 * i, 8, words[i]);
    truth.zero = 0;
    truth.at = sim.host = to + 1000;
    sim_advance(1000000);
    CHECK_INT(push(ticks_at(sim.host - 50), sim.host - 100, sim.host), NPUPROF_ERR_NPU_RESET);
    sim_advance(1000);
    (void)npuprof_npu_feed(&npu, 0, entry, sizeof entry);
    for (unsigned i = 0; i < 4; i++) {
        sim_advance(10000000);
        CHECK_INT(push(ticks_at(sim.host - 50), sim.host - 100, sim.host), NPUPROF_OK);
    }
    json_node *t = closed();
    int64_t worst;
    CHECK_UINT(compare(t, 0, &worst), anchors > 1);
    CHECK_INT(said(t, "resets"), 1);
    CHECK_INT(records(t, "lost_epoch"), anchors == 1);
}

static void reset_with_a_rate(void) { reset_before_its_record(4); }
static void reset_without_a_rate(void) { reset_before_its_record(1); }

/* No anchor for so long that nobody can tell how often the counter came round: the next one is none of what
   was before, and moves no job there. */
static void silent_for_periods(void)
{
    npuprof_npu_desc desc = pushed_desc(1000000000);
    desc.counter.bits = 32;
    begin();
    truth.rate = 1;
    truth.zero = 1e9L;
    truth.at = sim.host;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    for (int i = 0; i < 3; i++) {
        const uint64_t before = sim.host;
        sim_advance(1000);
        CHECK_INT(push(ticks_at(before + 500), before, sim.host), NPUPROF_OK);
        if (i < 2) sim_advance(1000000);
    }
    const uint64_t last = sim.host;
    WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, 1));
    const uint64_t from = sim.host + 1000, to = from + 1000000000;
    sim.host = to + 1000;
    CHECK(npuprof_npu_complete(&npu, 1, 0, "run", NULL, ticks_at(from), ticks_at(to),
                               PROF_ARGS(PROF_UINT("begin", from), PROF_UINT("end", to)), true));
    sim.host = last + (UINT64_C(2000) << 32) + 100000000;
    const uint64_t before = sim.host;
    sim_advance(1000);
    CHECK_INT(push(ticks_at(before + 500) & UINT32_MAX, before, sim.host), NPUPROF_ERR_NPU_AMBIGUOUS);
    json_node *t = closed();
    int64_t worst;
    CHECK_UINT(compare(t, 0, &worst), 1);
    CHECK(worst < 2000000);
}

CHECK_MAIN(CASE(causality_alone), CASE(tight), CASE(pushed_anchors), CASE(what_is_refused), CASE(one_anchor),
           CASE(wrong_hz), CASE(beside_a_counter), CASE(wide_bracket), CASE(wide_beside_narrow),
           CASE(coarse_stamps), CASE(old_stamp), CASE(stands_unannounced), CASE(stands_beneath_jobs),
           CASE(reset_shows_more), CASE(reset_with_a_rate), CASE(reset_without_a_rate),
           CASE(silent_for_periods))

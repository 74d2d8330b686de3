/* test: lib=-lm - device time on the host's clock: the error bound is true, and not wider than it must be
   SPDX-License-Identifier: MIT

   npu/random_clocks.c does the same through the whole library. */
#define NPUPROF_IMPLEMENTATION
#include "fixture.h"
#include "random.h"
#include <math.h>

enum { ANCHORS = 40, PIECES = 16 * ANCHORS, RATIOS = 500000 };

static unsigned up_to(unsigned n) { return (unsigned)(uniform() * n); }
static double between(double a, double b) { return a * pow(b / a, uniform()); }

static npuprof_map_rate_ steady(uint32_t ppb, uint64_t window)
{
    const npuprof_map_rate_ rate = { .second = 1000000000, .window = window, .max_rate_ppb = ppb };
    return rate;
}

/* A device clock: pieces of constant rate in ticks per ns. */
static struct { long double time, phase, rate; } piece[PIECES];
static int pieces;
static long double phase_at(long double time)
{
    int i = 0;
    while (i + 1 < pieces && piece[i + 1].time <= time) i++;
    return piece[i].phase + (time - piece[i].time) * piece[i].rate;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* With no read behind the anchors. */
static bool map_ticks(const npuprof_anchor_ *anchors, size_t count, const npuprof_map_rate_ *rate,
                      uint64_t ticks, uint64_t *host, uint64_t *error)
{
    const npuprof_map_reads_ reads = { anchors, count, NULL, 0, *rate };
    return npuprof_map_ticks_(&reads, ticks, host, error);
}

/* One random clock with its anchors and questions: its rate stays within ppb of a centre. */
static uint64_t questions, wrong, decreasing;
static double ratio[RATIOS];
static size_t ratios;
static void one_clock(void)
{
    const int count = 2 + (int)up_to(ANCHORS - 2), uneven = (int)up_to(2);
    const double interval = between(1e6, 1e10), ppb = up_to(3) ? floor(between(1, 2e6)) : 0;
    /* in the bracket: at its ends, anywhere, narrow ones among wide ones */
    const unsigned where = up_to(3);
    double rate = between(1e-4, 5), width = between(20, 20000), narrowest = 1e30;
    long double time[ANCHORS];
    npuprof_anchor_ anchor[ANCHORS];
    const npuprof_map_rate_ known = steady((uint32_t)ppb, UINT64_C(1) << 60);
    if (width > interval / 20) width = interval / 20;
    if (rate * interval < 2000) rate = 2000 / interval;
    time[0] = (long double)between(1e7, 1e15);
    for (int i = 1; i < count; i++)
        time[i] = time[i - 1] + (long double)(uneven ? between(interval / 1000 + 10 * width, interval)
                                              : interval * (0.5 + uniform()));
    long double phase = floorl((long double)between(1, 1e17));
    pieces = 0;
    for (int i = 0; i < count - 1; i++) {
        const long double length = time[i + 1] - time[i];
        const int steps = 2 + (int)up_to(13);
        for (int s = 0; s < steps; s++) {
            const double off = up_to(2) ? (up_to(2) ? 1 : -1) : 2 * uniform() - 1;
            piece[pieces].time = time[i] + length * s / steps;
            piece[pieces].phase = phase;
            piece[pieces].rate = (long double)rate / (1 + (long double)(off * 0.999 * ppb) / 1e9L);
            phase += length / steps * piece[pieces].rate;
            pieces++;
        }
    }
    for (int i = 0; i < count; i++) {
        const double w = where == 2 ? width * between(1, 4) : width,
            at = where == 0 ? (double)up_to(2) : uniform();
        anchor[i].device_ticks = (uint64_t)floorl(phase_at(time[i]));
        anchor[i].host_before = (uint64_t)floorl(time[i] - (long double)(w * at));
        anchor[i].host_after = (uint64_t)floorl(time[i] + (long double)(w * (1 - at)));
        const double half = (double)(anchor[i].host_after - anchor[i].host_before) / 2;
        if (half < narrowest) narrowest = half;
    }
    for (int q = 0; q < 40; q++) {
        const int i = (int)up_to((unsigned)count - 1);
        const long double x = (time[i + 1] - time[i]) * (long double)uniform(), when = time[i] + x;
        const uint64_t ticks = (uint64_t)floorl(phase_at(when));
        uint64_t host, error, later, ignored;
        const size_t all = (size_t)count;
        if (!map_ticks(anchor, all, &known, ticks, &host, &error) ||
            !map_ticks(anchor, all, &known, ticks + 1 + up_to(1000), &later, &ignored)) {
            wrong++;
            continue;
        }
        questions++;
        decreasing += later < host;
        if (fabsl((long double)host - when) > (long double)error) wrong++;
        if (ratios < RATIOS) {
            const long double length = time[i + 1] - time[i];
            const double best = narrowest + 1 / rate + 2e-9 * ppb * (double)(x * (length - x) / length);
            ratio[ratios++] = (double)error / best;
        }
    }
}

static void random_clocks(void)
{
    const unsigned clocks = CHECK_SANITIZED ? 1000 : 10000;
    for (unsigned i = 0; i < clocks; i++) one_clock();
    qsort(ratio, ratios, sizeof ratio[0], compare);
    printf("  %" PRIu64 " stamps; bound / best possible: median %.2f, 90 %% below %.2f\n", questions,
           ratio[ratios / 2], ratio[ratios * 9 / 10]);
    CHECK_UINT(wrong, 0);
    CHECK_UINT(decreasing, 0);
    CHECK_UINT(questions, 40 * clocks);
    CHECK(ratio[ratios / 2] < 1);
}

static void few_anchors(void)
{
    static const npuprof_anchor_ anchors[] = { { 1000, 5000, 5010 }, { 2000, 7000, 7011 } };
    const npuprof_map_rate_ rate = steady(1000, 1000000000), any = steady(UINT32_MAX, 0);
    uint64_t host, error;
    CHECK(!map_ticks(anchors, 0, &rate, 1000, &host, &error));
    CHECK(!map_ticks(anchors, 1, &rate, 1001, &host, &error));
    CHECK(map_ticks(anchors, 1, &rate, 1000, &host, &error));
    CHECK(host == 5005 && error == 6);         /* a tick lasts until the next */
    CHECK(map_ticks(anchors, 2, &rate, 1500, &host, &error));
    CHECK(host >= 6005 && host <= 6007 && error >= 6 && error < 12);
    CHECK(map_ticks(anchors, 2, &rate, 3000, &host, &error));
    CHECK(host > 9000 - error && host < 9010 + error && error < 60);
    CHECK(map_ticks(anchors, 2, &rate, 0, &host, &error));
    CHECK(host > 3000 - error && host < 3010 + error && error < 60);
    CHECK(!map_ticks(anchors, 2, &rate, UINT64_MAX, &host, &error));      /* beyond all host times */
    CHECK(!map_ticks(anchors, 2, &any, UINT64_MAX, &host, &error));
}

/* One wide anchor among narrow ones changes nothing: the set of clocks that fit is what the others leave. */
static void a_wide_anchor_does_not_hurt(void)
{
    const npuprof_map_rate_ rate = steady(2000, 1000000000);
    npuprof_anchor_ anchors[9];
    uint64_t host, error, worst = 0;
    for (unsigned i = 0; i < 9; i++) {
        const uint64_t at = 1000000000 + i * 20000000, half = i == 1 ? 730000 : 3000;
        anchors[i].device_ticks = at;
        anchors[i].host_before = at - half;
        anchors[i].host_after = at + half;
    }
    for (uint64_t x = 0; x < 40000000; x += 1000000) {
        CHECK(map_ticks(anchors, 9, &rate, 1000000000 + x, &host, &error));
        CHECK(host - (1000000000 + x) <= error || 1000000000 + x - host <= error);
        worst = error > worst ? error : worst;
    }
    CHECK(worst < 3200);
    CHECK(map_ticks(anchors, 3, &rate, 1015000000, &host, &error));
    CHECK(error < 3200);
}

/* a * b / c against long division by hand. */
static void multiply_and_divide(void)
{
    CHECK_UINT(npuprof_mul_div_(UINT64_MAX, UINT64_MAX, UINT64_MAX, false), UINT64_MAX);
    CHECK_UINT(npuprof_mul_div_(UINT64_MAX, 2, 2, true), UINT64_MAX);
    CHECK_UINT(npuprof_mul_div_(UINT64_MAX, 2, 1, false), UINT64_MAX);
    CHECK_UINT(npuprof_mul_div_(1, 1, 0, false), UINT64_MAX);
    CHECK_UINT(npuprof_mul_div_(10, 10, 3, false), 33);
    CHECK_UINT(npuprof_mul_div_(10, 10, 3, true), 34);
    CHECK_UINT(npuprof_mul_div_(UINT64_C(0x8000000000000001), 6, 3, false), UINT64_MAX);
    CHECK_UINT(npuprof_mul_div_(UINT64_C(0x4000000000000001), 6, 3, false), UINT64_C(0x8000000000000002));
}

/* Live mapping of a device whose nominal rate is a lie, read through brackets of 20 ns, over a minute. */
static void live(void)
{
    sim.hz = 25003000;
    SIM_DESC(desc);
    desc.counter.hz = 10000000;
    int64_t ns;
    uint64_t error, narrow = 0;
    sim.step = 0;
    open_npu(&desc);
    /* no time has passed */
    CHECK_INT(npuprof_npu_host_ns(&npu, sim_truth() + 10, &ns, &error), NPUPROF_ERR_NPU_NO_ANCHOR);
    CHECK(ns == 0 && error == 0);
    sim.step = 10;
    sim_advance(1000000);
    CHECK_INT(npuprof_npu_host_ns(&npu, sim_truth(), &ns, &error), NPUPROF_OK);
    for (int i = 0; i < 240; i++) {
        uint64_t past = sim_truth(), past_host = sim.host;
        int64_t past_ns = npuprof_ticks_to_ns_(past_host);
        sim_sync(250000000);
        CHECK_INT(npuprof_npu_host_ns(&npu, past, &ns, &error), NPUPROF_OK);
        if ((uint64_t)llabs(ns - past_ns) > error)
            check_failed_(__FILE__, __LINE__, "%" PRId64 " ns off, bound %" PRIu64, ns - past_ns, error);
        if (i > 3) narrow += error < 2000;
    }
    CHECK_UINT(narrow, 236);
    CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
    npuprof_npu_close(&npu);
}

/* Anchors grow apart, so that days fit the arena, and none of them reads a register more for a sampled
   block. */
static void anchors_over_days(void)
{
    open_sim();
    uint64_t anchors = 0, last = 0;
    for (int i = 0; i < 200000; i++) {
        const uint32_t loads = npu.mmio_reads;
        WITH_NPU_PROFILER(&npu, 0, "block", "NPU", PROF_NO_ARGS, sim_advance(1000000000));
        if (npu.mmio_reads - loads > 6)
            check_failed_(__FILE__, __LINE__, "%u loads in round %d", npu.mmio_reads - loads, i);
        const uint64_t newest = npu.anchors_[npu.anchor_count_ - 1].device_ticks;
        anchors += newest != last;
        last = newest;
    }
    CHECK(anchors > 1000 && anchors < 20000);
    npuprof_npu_close(&npu);
}

/* A counter that software moves may be late: lag_ns widens the anchors to the past, and the bound is true
   again. */
static void late_counter(void)
{
    for (int known = 0; known < 2; known++) {
        uint64_t error, wrong_ones = 0;
        int64_t ns;
        sim.origin = sim.host;
        SIM_DESC(desc);
        desc.counter.lag_ns = known ? 400 : 0;
        CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
        for (int i = 0; i < 50; i++) {
            sim_advance(100000000);
            /* the registers show what was 300 ns ago ... */
            sim.origin += 300;
            sim_sync(0);
            sim.origin -= 300;                                   /* ... a stamp of the device does not */
            int64_t true_ns = npuprof_ticks_to_ns_(sim.host);
            CHECK_INT(npuprof_npu_host_ns(&npu, sim_truth(), &ns, &error), NPUPROF_OK);
            wrong_ones += i > 1 && (uint64_t)llabs(ns - true_ns) > error;
        }
        if (known) CHECK_UINT(wrong_ones, 0);
        else CHECK(wrong_ones > 40);
        npuprof_npu_close(&npu);
    }
}

CHECK_MAIN(CASE_THOROUGH(random_clocks), CASE(few_anchors), CASE(a_wide_anchor_does_not_hurt),
           CASE(multiply_and_divide), CASE(live), CASE(anchors_over_days), CASE(late_counter))

/* test: lib=-lm - device time on the host's clock: the error bound is true, and not wider than it must be
   SPDX-License-Identifier: MIT

   test_clock.c checks the mapping with random clocks whose true time is known. */
#include "sim.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#include <math.h>

enum { ANCHORS = 40, PIECES = 16 * ANCHORS, RATIOS = 500000 };

static uint64_t seed = 88172645463325252u;
static double uniform(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)((seed * UINT64_C(0x2545F4914F6CDD1D)) >> 11) / 9007199254740992.0;
}

static unsigned up_to(unsigned n) { return (unsigned)(uniform() * n); }
static double between(double a, double b) { return a * pow(b / a, uniform()); }

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

/* One random clock with its anchors and questions. The assumptions are kept: a wander of ppb around a centre
   that changes at most once in an interval and not in the stretch beside it that is as long. */
static uint64_t questions, wrong, decreasing, flags, flags_of_changes, changes;
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
    bool change[ANCHORS];
    npuprof_anchor_ anchor[ANCHORS];
    int quiet = 0;                                   /* the first interval that may have a change near it */
    if (width > interval / 20) width = interval / 20;
    if (rate * interval < 2000) rate = 2000 / interval;
    time[0] = (long double)between(1e7, 1e15);
    for (int i = 0; i < count; i++) {
        if (i)
            time[i] = time[i - 1] + (long double)(uneven ? between(interval / 1000 + 10 * width, interval)
                                                  : interval * (0.5 + uniform()));
        change[i] = false;
    }
    for (int i = 0; i < count - 1 && count > 2; i++) {
        const long double length = time[i + 1] - time[i] + (long double)(4 * width);
        int left = i, right = i + 1;                 /* the anchors that what lies beside it reaches to */
        while (left > 0 && time[i] - time[left] < length) left--;
        while (right < count - 1 && time[right] - time[i + 1] < length) right++;
        if (left < quiet || up_to(3)) continue;
        change[i] = true;
        quiet = right;
    }
    long double phase = floorl((long double)between(1, 1e17));
    pieces = 0;
    for (int i = 0; i < count - 1; i++) {
        const long double length = time[i + 1] - time[i], at = change[i] ? (long double)uniform() : 0.5L;
        const double next = !change[i] ? rate : up_to(2) ? rate * between(0.2, 5)
            : rate * (1 + (uniform() - 0.5) * between(1e-9, 0.1));
        const int steps = 1 + (int)up_to(7);
        changes += change[i];
        for (int s = 0; s < 2 * steps; s++) {
            const long double from = s < steps ? at * s / steps : at + (1 - at) * (s - steps) / steps;
            const long double to = s < steps ? at * (s + 1) / steps : at + (1 - at) * (s + 1 - steps) / steps;
            const double off = up_to(2) ? (up_to(2) ? 1 : -1) : 2 * uniform() - 1;
            piece[pieces].time = time[i] + length * from;
            piece[pieces].phase = phase;
            piece[pieces].rate = (long double)(s < steps ? rate
                                               : next) / (1 + (long double)(off * 0.999 * ppb) / 1e9L);
            phase += length * (to - from) * piece[pieces].rate;
            pieces++;
        }
        rate = next;
    }
    for (int i = 0; i < count; i++) {
        const double w = where == 2 ? width * between(1, 4) : width,
            at = where == 0 ? (double)up_to(2) : uniform();
        anchor[i].device_ticks = (uint64_t)floorl(phase_at(time[i]));
        anchor[i].host_before = (uint64_t)floorl(time[i] - (long double)(w * at));
        anchor[i].host_after = (uint64_t)ceill(time[i] + (long double)(w * (1 - at)));
        const double half = (double)(anchor[i].host_after - anchor[i].host_before) / 2;
        if (half < narrowest) narrowest = half;
    }
    for (int q = 0; q < 40; q++) {
        const int i = (int)up_to((unsigned)count - 1);
        const long double x = (time[i + 1] - time[i]) * (long double)uniform(), when = time[i] + x;
        const uint64_t ticks = (uint64_t)floorl(phase_at(when));
        uint64_t host, error, later, ignored;
        bool flag, other;
        if (!npuprof_map_ticks_(anchor, (size_t)count, (uint32_t)ppb, ticks, &host, &error, &flag) ||
            !npuprof_map_ticks_(anchor, (size_t)count, (uint32_t)ppb, ticks + 1 + up_to(1000), &later,
                                &ignored, &other)) {
            wrong++;
            continue;
        }
        questions++;
        flags += flag;
        flags_of_changes += flag && change[i];
        decreasing += later < host;
        if (fabsl((long double)host - when) > (long double)error) wrong++;
        if (!change[i] && !flag && ratios < RATIOS) {
            const long double length = time[i + 1] - time[i];
            const double best = narrowest + 1 / rate + 2e-9 * ppb * (double)(x * (length - x) / length);
            ratio[ratios++] = (double)error / best;
        }
    }
}

static void random_clocks(void)
{
    for (int i = 0; i < 10000; i++) one_clock();
    qsort(ratio, ratios, sizeof ratio[0], compare);
    printf("  %" PRIu64 " stamps, %" PRIu64 " rate changes, %" PRIu64 " stamps flagged, %" PRIu64
           " of them beside or in a change; bound / best possible: "
           "median %.2f, 90 %% below %.2f\n", questions, changes, flags, flags_of_changes, ratio[ratios / 2],
           ratio[ratios * 9 / 10]);
    CHECK_UINT(wrong, 0);
    CHECK_UINT(decreasing, 0);
    CHECK(questions == 400000);
    CHECK(ratio[ratios / 2] < 2);
}

/* More than one change in an interval, near a change: no bound can be given, and the flag says so. */
static void broken_assumptions_are_flagged(void)
{
    static const npuprof_anchor_ anchors[] = { { 0, 0, 100 }, { 1000000, 1000000, 1000100 },
                                               { 5000000, 2000000, 2000100 }, { 6000000, 3000000, 3000100 } };
    uint64_t host, error;
    bool flag;
    CHECK(npuprof_map_ticks_(anchors, 4, 1000, 3000000, &host, &error, &flag));
    CHECK(flag);
    CHECK(error > 300000);
    CHECK(npuprof_map_ticks_(anchors, 4, 1000, 500000, &host, &error, &flag));
    CHECK(flag);
}

static void few_anchors(void)
{
    static const npuprof_anchor_ anchors[] = { { 1000, 5000, 5010 }, { 2000, 7000, 7011 } };
    uint64_t host, error;
    bool flag;
    CHECK(!npuprof_map_ticks_(anchors, 0, 1000, 1000, &host, &error, &flag));
    CHECK(!npuprof_map_ticks_(anchors, 1, 1000, 1001, &host, &error, &flag));
    CHECK(npuprof_map_ticks_(anchors, 1, 1000, 1000, &host, &error, &flag));
    CHECK(host == 5005 && error == 5);
    CHECK(npuprof_map_ticks_(anchors, 2, 1000, 1500, &host, &error, &flag));
    CHECK(host == 6005 && error >= 6 && error < 12);
    CHECK(npuprof_map_ticks_(anchors, 2, 1000, 3000, &host, &error, &flag));
    CHECK(host > 9000 - error && host < 9010 + error && error < 60);
    CHECK(npuprof_map_ticks_(anchors, 2, 1000, 0, &host, &error, &flag));
    CHECK(host > 3000 - error && host < 3010 + error && error < 60);
    CHECK(npuprof_map_ticks_(anchors, 2, 1000, UINT64_MAX, &host, &error, &flag));
    CHECK(npuprof_map_ticks_(anchors, 2, UINT32_MAX, UINT64_MAX, &host, &error, &flag));
}

/* a * b / c against long division by hand. */
/* Bounds that were worked out by hand from the rules in clock/device_map.h: not one tick more or less. */
static void bounds_by_hand(void)
{
    static const npuprof_anchor_ bent[] = { { 0, 0, 0 }, { 1000, 50000, 50000 }, { 2000, 60000, 60000 } },
        early[] = { { 1000, 500, 500 }, { 2000, 1500, 1500 } },
        wide[] = { { 0, 0, 20 }, { 1000, 10000, 10040 } },
        even[] = { { 0, 0, 0 }, { 1000, 10000, 10000 }, { 2000, 20000, 20000 }, { 3000, 30000, 30000 } },
        tail[] = { { 0, 0, 0 }, { 1000, 10000, 10000 }, { 1100, 11000, 11000 }, { 1200, 12000, 12000 } },
        step[] = { { 0, 0, 0 }, { 1000, 10000, 10000 }, { 2000, 30000, 30000 }, { 3000, 40000, 40000 } },
        slower[] = { { 0, 0, 0 }, { 1000, 20000, 20000 }, { 2000, 30000, 30000 } };
    static const struct {
        const npuprof_anchor_ *anchors;
        size_t count;
        uint32_t ppb;
        uint64_t at, host, error;
    } cases[] = {
        { bent, 3, 0, 0, 0, 51 },              /* in an anchor's own tick: one tick of the slower side */
        { bent, 3, 0, 1000, 50000, 51 },
        { bent, 3, 0, 2000, 60000, 11 },
        { early, 2, 0, 500, 0, 2 },            /* outside: the slope goes on; no host tick is negative */
        { early, 2, 0, 0, 0, 503 },
        { early, 2, 0, 3000, 2500, 3 },
        { wide, 2, 0, 250, 2512, 25 },         /* between: errors by distance, 1, one tick */
        { wide, 2, 1000000, 250, 2512, 29 },   /* and the bow of a rate that drifts */
        { even, 4, 0, 1500, 15000, 16 },       /* the stretches on both sides say more */
        { tail, 3, 0, 500, 5000, 62 },         /* a short one on one side only */
        { step, 4, 0, 1500, 20000, 5016 },     /* both contradict the slope between: the larger error */
        { step, 3, 0, 3000, 50000, 41 },       /* a stretch that contradicts the nearest says nothing */
        { slower, 3, 0, 3000, 40000, 21 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t host = 0, error = 0;
        bool flag = false;
        CHECK(npuprof_map_ticks_(cases[i].anchors, cases[i].count, cases[i].ppb, cases[i].at, &host, &error,
                                 &flag));
        CHECK_UINT(host, cases[i].host);
        CHECK_UINT(error, cases[i].error);
    }
}

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

static npuprof_npu npu;

/* Live mapping of a device whose nominal rate is a lie, read through brackets of 20 ns, over a minute. */
static void live(void)
{
    npuprof_start(1);
    sim.hz = 25003000;
    SIM_DESC(desc);
    desc.counter.hz = 10000000;
    int64_t ns;
    uint64_t error, narrow = 0;
    sim.step = 0;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    /* no time has passed */
    CHECK_INT(npuprof_npu_host_ns(&npu, sim_truth() + 10, &ns, &error), NPUPROF_ERR_NPU_NO_ANCHOR);
    CHECK(ns == 0 && error == 0);
    sim.step = 10;
    sim_advance(1000000);
    CHECK_INT(npuprof_npu_host_ns(&npu, sim_truth(), &ns, &error), NPUPROF_OK);
    for (int i = 0; i < 240; i++) {
        uint64_t past = sim_truth(), past_host = sim.host;
        int64_t past_ns = npuprof_ticks_to_ns_(past_host);
        sim_advance(250000000);
        CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
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
    npuprof_start(1);
    SIM_DESC(desc);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
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
    CHECK(anchors > 1000 && anchors < 10000);
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
            sim_advance(0);
            CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
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

CHECK_MAIN(CASE_THOROUGH(random_clocks), CASE(broken_assumptions_are_flagged), CASE(few_anchors),
           CASE(bounds_by_hand),
           CASE(multiply_and_divide), CASE(live),
           CASE(anchors_over_days), CASE(late_counter))

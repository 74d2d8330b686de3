/* test: lib=-lm - ten thousand random clocks through the whole library: true time lies in the stated bound
   SPDX-License-Identifier: MIT

   A host clock with jitter, a device whose rate drifts, wanders, changes or steps, counters that wrap,
   brackets whose load happens anywhere in them. The library sees registers only; the truth stays here.
   npu/clock.c checks the mapping alone. */
#define NPUPROF_IMPLEMENTATION
#include "fixture.h"
#include "random.h"
#include <math.h>

enum { CASES = 10000, BATCH = 100, QUESTIONS = 64, RATIOS = 400 };
enum { STEADY, CHANGES, STEPS, MODELS };

static unsigned up_to(unsigned n) { return (unsigned)(uniform() * n); }
static double between(double a, double b) { return a * pow(b / a, uniform()); }

/* The device: it ran with `rate` ticks per ns since `time`, until the next piece begins. */
static struct {
    long double time, phase, rate, until;
    double centre, wander, next_centre, step, jitter;
    long double change_at;           /* 0 = no change is coming */
    int64_t jump;                    /* of the phase, at the change */
    int where;                       /* in a bracket the load happens: 0 before, 1 anywhere, 2 behind */
} clk;

static long double phase_at(long double time)
{
    while (time >= clk.until) {
        clk.phase += (clk.until - clk.time) * clk.rate;
        clk.time = clk.until;
        if (clk.change_at > 0 && clk.until >= clk.change_at) {
            clk.centre = clk.next_centre;
            clk.phase = clk.jump == INT64_MIN ? 0 : clk.phase + (long double)clk.jump;
            clk.change_at = 0;
        }
        const double off = up_to(2) ? (up_to(2) ? 1 : -1) : 2 * uniform() - 1;
        clk.rate = (long double)clk.centre / (1 + (long double)(off * 0.999 * clk.wander));
        clk.until = clk.time + (long double)between(1e5, 1e9);
        if (clk.change_at > 0 && clk.until > clk.change_at) clk.until = clk.change_at;
    }
    return clk.phase + (time - clk.time) * clk.rate;
}

static void show(void)
{
    const double to_next = clk.step * (up_to(20) ? 1 + clk.jitter * uniform() : between(1, 100));
    sim.step = 1 + (uint64_t)to_next;
    const double at = clk.where == 0 ? 0 : clk.where == 2 ? 1 : uniform();
    const uint64_t value =
        (uint64_t)floorl(phase_at((long double)sim.host
                                  + (long double)(at * (double)sim.step))) & sim_mask(sim.bits);
    sim_store(SIM_LO, 4, value & UINT32_MAX);
    sim_store(SIM_HI, 4, value >> 32);
}

static void pass(double ns)
{
    sim.host += (uint64_t)ns;
    show();
}

/* What the tests of one process find. */
typedef struct tally {
    uint64_t cases, questions, kept, wrong, silent, far, epochs, epochs_of_steady, rate_changes, steps;
    size_t ratios;
    double ratio[RATIOS];
} tally;

static void one_clock(tally *sum)
{
    static uint64_t asked[QUESTIONS], asked_at[QUESTIONS], asked_within[QUESTIONS];
    int changes = 0, questions = 0;
    const unsigned model = up_to(MODELS), ops = 4 + up_to(16), ppm = up_to(3) ? 2 : 1 + up_to(200);
    const double hz = between(1e6, 4e9), longest = between(1e7, 1e10);
    sim.bits = up_to(2) ? 32 : 33 + up_to(32);
    sim.access = 32;
    memset(&clk, 0, sizeof clk);
    clk.centre = hz / 1e9;
    clk.wander = up_to(3) ? ppm * 1e-6 : 0;
    clk.step = between(10, 2000);
    clk.jitter = up_to(2) ? 3 : 0.01;
    clk.where = (int)up_to(3);
    clk.time = clk.until = (long double)sim.host;
    clk.phase = floorl((long double)between(1, (double)sim_mask(sim.bits < 60 ? sim.bits : 60)));
    const uint64_t zero = (uint64_t)clk.phase & ~sim_mask(sim.bits);
    show();
    npuprof_npu_desc desc = { .bar = sim_bar.bytes, .bar_bytes = sizeof sim_bar, .max_rate_ppm = ppm,
                              .counter = { .lo_offset = SIM_LO, .hi_offset = SIM_HI,
                                           .bits = (uint8_t)sim.bits } };
    desc.counter.hz = up_to(3) ? (uint64_t)(hz * (1 + (uniform() - 0.5) * 1e-3)) : up_to(2)
        ? (uint64_t)(hz / 2.5) : 0;
    if (npuprof_npu_open(&npu, &desc) != NPUPROF_OK) {
        check_failed_(__FILE__, __LINE__, "open");
        return;
    }
    sum->cases++;
    uint32_t epoch = npu.epoch_;
    double narrowest = 1e30;
    uint64_t widest = 0;
    for (unsigned op = 0; op < ops; op++) {
        const double gap = between(1e6, longest);
        const bool announced = up_to(2);
        if (clk.change_at <= 0 && model != STEADY && op > 2 && !up_to(4) && changes < 32) {
            if (announced) (void)npuprof_npu_sync(&npu);
            clk.change_at = (long double)sim.host + (announced ? 1 : (long double)(gap * uniform()));
            clk.until = clk.change_at;
            clk.next_centre = model == STEPS ? clk.centre : up_to(2) ? clk.centre * between(0.2, 5)
                : clk.centre * (1 + (uniform() - 0.5) * between(1e-6, 0.1));
            clk.jump = model == CHANGES ? 0 : up_to(3) ? (int64_t)(between(1, 1e9) * clk.centre) : INT64_MIN;
            changes++;
            sum->rate_changes += model == CHANGES;
            sum->steps += model == STEPS;
            if (announced) {
                pass(10);
                (void)npuprof_npu_sync(&npu);
            }
        }
        for (int part = 0; part < 3; part++) {
            pass(gap / 3);
            if (questions < QUESTIONS && model != STEPS) {
                asked_at[questions] = sim.host;
                asked_within[questions] = 0;
                asked[questions++] = (uint64_t)floorl(phase_at((long double)sim.host)) - zero;
            }
        }
        npuprof_result result = NPUPROF_OK;
        if (up_to(3)) result = npuprof_npu_sync(&npu);
        else WITH_NPU_PROFILER(&npu, 0, "block", "NPU", PROF_NO_ARGS, pass(between(1000, 1e6)));
        if (result != NPUPROF_OK && result != NPUPROF_ERR_NPU_RESET && result != NPUPROF_ERR_NPU_AMBIGUOUS)
            check_failed_(__FILE__, __LINE__, "sync: %s", npuprof_result_string(result));
        /* A stamp that the library itself gave, and between which looks at the clock. */
        uint64_t ticks;
        const uint64_t before = sim.host;
        result = npuprof_npu_read(&npu, &ticks);
        if (result == NPUPROF_OK && model == STEPS && questions < QUESTIONS) {
            asked_at[questions] = before + (sim.host - before) / 2;
            asked_within[questions] = (sim.host - before) / 2 + sim.step + 1;
            asked[questions++] = ticks;
        }
        if (npu.epoch_ != epoch) {
            /* Device time began anew, which the result says. Where nothing happened, it must not. */
            sum->epochs++;
            sum->epochs_of_steady += model == STEADY;
            epoch = npu.epoch_;
            questions = 0;
            if (model != STEPS) break;
        }
    }
    (void)npuprof_npu_sync(&npu);
    for (uint32_t i = 0; i < npu.anchor_count_; i++) {
        widest = npuprof_max_(widest, npuprof_anchor_width_(&npu.anchors_[i]));
        narrowest = fmin(narrowest, (double)npuprof_anchor_width_(&npu.anchors_[i]) / 2);
    }
    for (int q = 0; q < questions && npu.epoch_ == epoch; q++) {
        uint64_t host, error;
        const uint32_t n = npu.anchor_count_;
        const npuprof_map_reads_ reads = { npu.anchors_, n, NULL, 0,
            { .second = 1000000000, .window = 1000000000, .max_rate_ppb = ppm * 1000 } };
        if (n < 3 || asked[q] <= npu.anchors_[0].device_ticks || asked[q] >= npu.anchors_[n - 1].device_ticks)
            continue;
        if (!npuprof_map_ticks_(&reads, asked[q], &host, &error)) continue;
        const bool kept = !changes;
        const uint64_t off = host > asked_at[q] ? host - asked_at[q] : asked_at[q] - host;
        sum->questions++;
        sum->kept += kept;
        if (off > npuprof_saturating_add_(error, asked_within[q])) {
            sum->wrong += kept;
            sum->silent += !kept;
            sum->far += off > error + asked_within[q] + widest;
            if (kept || off > error + asked_within[q] + widest)
                printf("  model %u, case %" PRIu64 ": %" PRIu64 " ns off, bound %" PRIu64 "\n", model,
                       sum->cases, off, error);
        }
        if (model == STEADY && sum->ratios < RATIOS) {
            uint32_t b = 0;
            while (npu.anchors_[b].device_ticks <= asked[q]) b++;
            const double x = (double)(asked_at[q] - npu.anchors_[b - 1].host_before),
                y = (double)(npu.anchors_[b].host_before - asked_at[q]);
            sum->ratio[sum->ratios++] =
                (double)error / (narrowest + 1 / clk.centre + 2e-6 * ppm * x * y / (x + y));
        }
    }
    npuprof_npu_close(&npu);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Why processes: an arena has room for 255 devices. */
static void ten_thousand_clocks(void)
{
    static tally all;
    static double ratio[CASES / BATCH * RATIOS];
    const int clocks = check_is_quick() || CHECK_SANITIZED ? CASES / 5 : CASES;
    size_t ratios = 0;
    for (int batch = 0; batch < clocks / BATCH; batch++) {
        int ends[2];
        tally one;
        CHECK_STOP(pipe(ends) == 0);
        fflush(stdout);
        const pid_t child = fork();
        CHECK_STOP(child >= 0);
        if (child == 0) {
            static tally mine;
            seed = 88172645463325252u + (uint64_t)batch * UINT64_C(0x9E3779B97F4A7C15);
            sim.tick = show;
            /* up for ten days */
            sim.host = UINT64_C(1000000000) + (up_to(2) ? UINT64_C(864000000000000) : 0);
            npuprof_start(1);
            for (int i = 0; i < BATCH; i++) one_clock(&mine);
            fflush(stdout);
            const bool sent = write(ends[1], &mine, sizeof mine) == (ssize_t)sizeof mine;
            _exit(sent && !check_failures_ ? 0 : 1);
        }
        close(ends[1]);
        size_t got = 0;
        for (ssize_t n; got < sizeof one && (n = read(ends[0], (char *)&one + got, sizeof one - got)) > 0;)
            got += (size_t)n;
        int status = -1;
        close(ends[0]);
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK_STOP(got == sizeof one);
        all.cases += one.cases;
        all.questions += one.questions;
        all.kept += one.kept;
        all.wrong += one.wrong;
        all.silent += one.silent;
        all.far += one.far;
        all.epochs += one.epochs;
        all.epochs_of_steady += one.epochs_of_steady;
        all.rate_changes += one.rate_changes;
        all.steps += one.steps;
        memcpy(ratio + ratios, one.ratio, one.ratios * sizeof *ratio);
        ratios += one.ratios;
    }
    CHECK_STOP(ratios > 0);
    qsort(ratio, ratios, sizeof *ratio, compare);
    printf("  %" PRIu64 " clocks, %" PRIu64 " changes of rate, %" PRIu64 " steps, %" PRIu64
           " new epochs (%" PRIu64 " of steady clocks); %" PRIu64
           " stamps, %" PRIu64 " of steady clocks, %" PRIu64 " of others outside the bound; "
           "bound / best possible: median %.2f, 90 %% below %.2f\n",
           all.cases, all.rate_changes, all.steps, all.epochs, all.epochs_of_steady, all.questions, all.kept,
           all.silent,
           ratio[ratios / 2], ratio[ratios * 9 / 10]);
    CHECK_INT(all.cases, clocks);
    CHECK_UINT(all.wrong, 0);
    /* a change that stays within the reads' own errors is seen by nobody */
    CHECK(all.far * 2000 < all.questions - all.kept);
    CHECK(all.silent * 100 < all.questions - all.kept);
    CHECK_UINT(all.epochs_of_steady, 0);
    CHECK(all.kept > 10 * (unsigned)clocks && all.steps > (unsigned)clocks / 5
          && all.rate_changes > (unsigned)clocks / 5);
    CHECK(ratio[ratios / 2] < 1.5);
}

CHECK_MAIN(CASE(ten_thousand_clocks))

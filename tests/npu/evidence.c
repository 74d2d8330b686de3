/* test: lib=-lm - what the reads of a device's clock say against the clock that was declared: which gaps are
   open, which reads were late, when nothing is left of it
   SPDX-License-Identifier: MIT */
#include "check.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "random.h"
#include <math.h>

enum { MOST = 128, SECOND = 1000000000, EVERY = 10000000, WIDTH = 400, A_JUMP = 1000000 };

/* Reads of a counter with 25 MHz, each of which takes 400 ns. */
static struct {
    npuprof_map_evidence_ evidence;
    npuprof_map_point_ point[MOST];
    unsigned count;
    uint64_t host, ahead;                  /* ahead: ticks that the counter has jumped by */
} w;

static void begin(void)
{
    memset(&w, 0, sizeof w);
    w.evidence.rate.max_rate_ppb = 100000;
    w.evidence.rate.second = w.evidence.rate.window = SECOND;
    w.host = SECOND;
}

static void read_late(uint64_t ticks)
{
    const npuprof_anchor_ read = { .device_ticks = w.host / 40 + w.ahead - ticks,
                                   .host_before = w.host - WIDTH / 2, .host_after = w.host + WIDTH / 2 };
    CHECK_STOP(w.count < MOST);
    w.point[w.count] = npuprof_map_point_of_(&read);
    npuprof_map_witness_(&w.evidence, &w.point[w.count++]);
    w.host += EVERY;
}

static void reads(unsigned count)
{
    for (unsigned i = 0; i < count; i++) read_late(0);
}

static bool open_behind(unsigned i)
{
    return npuprof_map_is_open_(&w.evidence, &w.point[i], &w.point[i + 1]);
}

static unsigned open_gaps(unsigned from, unsigned to)
{
    unsigned open = 0;
    for (unsigned i = from; i < to; i++) open += open_behind(i);
    return open;
}

/* E1: of all gaps only those around the step are open. */
static void one_step(void)
{
    begin();
    reads(20);
    w.ahead += A_JUMP;
    reads(20);
    npuprof_map_judge_(&w.evidence);
    CHECK_UINT(w.evidence.steps, 1);
    CHECK_UINT(w.evidence.ranges, 1);
    CHECK(open_behind(19));
    CHECK_UINT(open_gaps(0, 18) + open_gaps(21, 39), 0);
    CHECK(w.evidence.opened_host >= EVERY && w.evidence.opened_host < 4 * EVERY);
}

/* Two steps with so many reads between them. */
static void two_steps(unsigned between)
{
    begin();
    reads(20);
    w.ahead += A_JUMP;
    reads(between);
    w.ahead += A_JUMP;
    reads(20);
    npuprof_map_judge_(&w.evidence);
    CHECK_UINT(w.evidence.steps, 2);
    CHECK(open_behind(19) && open_behind(19 + between));
    CHECK_UINT(open_gaps(0, 18) + open_gaps(21 + between, 39 + between), 0);
}

/* E2: between them all is open, if there are fewer than 6; before and behind them nothing. */
static void two_near(void)
{
    for (unsigned between = 1; between < NPUPROF_MAP_READS_; between++) {
        two_steps(between);
        CHECK_UINT(w.evidence.ranges, 1);
        CHECK_UINT(open_gaps(19, 20 + between), between + 1);
    }
    two_steps(NPUPROF_MAP_READS_);
    CHECK_UINT(w.evidence.ranges, 2);
    two_steps(12);
    CHECK_UINT(w.evidence.ranges, 2);
    CHECK_UINT(open_gaps(21, 30), 0);
}

/* E2 at both ends. */
static void few_at_the_ends(void)
{
    begin();
    reads(3);
    w.ahead += A_JUMP;
    reads(20);
    w.ahead += A_JUMP;
    reads(3);
    npuprof_map_judge_(&w.evidence);
    CHECK_UINT(open_gaps(0, 3), 3);
    CHECK_UINT(open_gaps(22, 25), 3);
    CHECK_UINT(open_gaps(5, 21), 0);
}

/* A step with the last read. */
static void last_read(void)
{
    begin();
    reads(20);
    w.ahead += A_JUMP;
    reads(1);
    npuprof_map_judge_(&w.evidence);
    CHECK_UINT(w.evidence.steps, 1);
    CHECK(open_behind(19));
    CHECK_UINT(open_gaps(0, 18), 0);
}

/* Steps with 9 reads between them, in so many seconds. Is it said that the clock is no steady one? */
static bool is_wild_after(unsigned steps, unsigned seconds)
{
    begin();
    for (unsigned i = 0; i < steps; i++) {
        reads(9);
        w.ahead += A_JUMP;
    }
    reads(9);
    w.host = (uint64_t)(1 + seconds) * SECOND - (uint64_t)9 * EVERY;
    reads(10);
    npuprof_map_judge_(&w.evidence);
    CHECK_UINT(w.evidence.steps, steps);
    return w.evidence.is_wild;
}

/* E3 */
static void many_steps(void)
{
    CHECK(!is_wild_after(2, 1));
    CHECK(is_wild_after(3, 5));
    CHECK(!is_wild_after(3, 7));
    CHECK(!is_wild_after(8, 20));
    CHECK(is_wild_after(9, 40));
}

/* E4: one late read is left out, four in a row are a step. */
static void late(void)
{
    begin();
    w.evidence.rate.may_be_late = true;
    reads(10);
    read_late(500);
    reads(10);
    npuprof_map_judge_(&w.evidence);
    CHECK_UINT(w.evidence.steps, 0);
    CHECK_UINT(w.evidence.lates, 1);
    for (unsigned i = 0; i < w.count; i++)
        CHECK(npuprof_map_was_late_(&w.evidence, &w.point[i]) == (i == 10));
    begin();
    w.evidence.rate.may_be_late = true;
    reads(10);
    for (int i = 0; i < 4; i++) read_late(500);
    reads(10);
    npuprof_map_judge_(&w.evidence);
    CHECK(w.evidence.steps >= 1);
    CHECK_UINT(open_gaps(0, 8), 0);
}

/* E4: the newest reads are late ones only if one behind them fits: until then, the clock may have changed. */
static void late_so_far(void)
{
    for (unsigned few = 1; few <= 3; few++) {
        for (unsigned behind = 0; behind < 2; behind++) {
            begin();
            w.evidence.rate.may_be_late = true;
            reads(10);
            for (unsigned i = 0; i < few; i++) read_late(500);
            reads(behind);
            npuprof_map_judge_(&w.evidence);
            CHECK_UINT(w.evidence.lates, behind ? few : 0);
            CHECK_UINT(w.evidence.steps, !behind);
            CHECK(open_behind(9) == !behind);
            CHECK_UINT(open_gaps(0, 7), 0);
        }
    }
}

/* Two reads within a tick leave any rate: nothing bounds what lies far behind them. */
static void any_rate(void)
{
    const uint64_t next = SECOND + 900000;
    const npuprof_anchor_ read[2] = { { 1000, SECOND, SECOND + 10 }, { 1001, next, next + 10 } };
    const npuprof_map_reads_ r = { read, 2, NULL, 0, { SECOND, SECOND, 0, 2000, false, false } };
    uint64_t host, error;
    CHECK(!npuprof_map_ticks_(&r, 21000, &host, &error));
}

/* ---- A clock that changes its rate, read by a counter that may show its value late */

enum { PIECES = 5, READS = 56 };
static struct { double from, phase, rate; } piece[PIECES];
static unsigned pieces;

static double between(double a, double b) { return a * pow(b / a, uniform()); }

static double phase_at(double host)
{
    unsigned i = pieces - 1;
    while (i && piece[i].from > host) i--;
    return piece[i].phase + (host - piece[i].from) * piece[i].rate;
}

static double slowest, fastest;

static void change(double host)
{
    const double phase = phase_at(host);
    piece[pieces].from = host;
    piece[pieces].phase = phase;
    piece[pieces].rate = piece[pieces - 1].rate * between(slowest, fastest);
    pieces++;
}

/* Each change is announced: a read before it and one behind it. How much of what is drawn between the reads
   so far lies outside of its bound? */
static unsigned outside_beneath_the_lag(void)
{
    unsigned out = 0;
    for (unsigned world = 0; world < 80; world++) {
        npuprof_anchor_ read[READS];
        const double lag = between(1e4, 1e7);
        double host = 1e9;
        npuprof_map_reads_ r = { read, 0, NULL, 0, { SECOND, SECOND, 0, 2000, true, false } };
        pieces = 1;
        piece[0].from = 0;
        piece[0].phase = 1;
        piece[0].rate = between(0.002, 2);
        while (r.count < READS) {
            const bool changes = pieces < PIECES && r.count > 1 && uniform() < 0.2;
            for (unsigned side = 0; side < 1u + changes && r.count < READS; side++) {
                npuprof_anchor_ *const a = &read[r.count], *const last = r.count ? a - 1 : NULL;
                host += side ? 300 : 0;
                a->device_ticks = (uint64_t)phase_at(host - lag * 0.9 * uniform() * uniform());
                a->host_before = (uint64_t)(host - lag - 50);
                a->host_after = (uint64_t)host + 50;
                if (!last || (a->host_before > last->host_after && a->device_ticks > last->device_ticks))
                    r.count++;
                if (changes && !side) change(host + 150);
            }
            host += between(lag / 10, 2e8);
            for (unsigned i = 0; r.count > 1 && i < 10; i++) {
                const double from = (double)read->host_after, to = (double)read[r.count - 1].host_before;
                const double t = from + (to - from) * sqrt(uniform());
                uint64_t got, error;
                if (!npuprof_map_ticks_(&r, (uint64_t)phase_at(t), &got, &error)) continue;
                out += fabs((double)got - t) > (double)error + 1;
            }
        }
    }
    return out;
}

static void changes_beneath_the_lag(void)
{
    slowest = 0.2;
    fastest = 5;
    CHECK_UINT(outside_beneath_the_lag(), 0);
}

/* What stays within the reads' own errors nobody can see. */
static void changes_within_the_lag(void)
{
    slowest = 0.97;
    fastest = 1.03;
    CHECK(outside_beneath_the_lag() < 300);        /* of 40000; 524 if only the newest 6 reads are doubted */
}

CHECK_MAIN(CASE(one_step), CASE(two_near), CASE(few_at_the_ends), CASE(last_read),
           CASE(many_steps), CASE(late), CASE(late_so_far), CASE(any_rate),
           CASE(changes_beneath_the_lag), CASE(changes_within_the_lag))

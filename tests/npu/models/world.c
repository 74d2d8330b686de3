/* test: time=400 large - a world that is mixed at random: idle gaps of many periods, late feeds, foreign jobs
   Resets of the counter, too, and stamps of 16 to 64 bits. Nothing is drawn outside its bound; all else is
   lost by its cause.
   SPDX-License-Identifier: MIT */
#include "npu/models/played.h"
#include "npu/models/formats.h"

static npuprof_npu npu;

/* ---- Layouts that no description of examples/devices has: job 4 | start 4 | end or duration 4 */

static void put_three(unsigned char *to, uint64_t job, uint64_t a, uint64_t b)
{
    play_put(to, 0, 4, job);
    play_put(to, 4, 4, a & UINT32_MAX);
    play_put(to, 8, 4, b & UINT32_MAX);
}

static void three_describe(npuprof_npu_ring *r)
{
    r->entry_bytes = 12;
    r->job = play_field(0, 4, 31, 0);
    r->start = play_field(4, 4, 31, 0);
    r->end = play_field(8, 4, 31, 0);
}

static unsigned three_write(unsigned char *to, const play_job *job)
{
    put_three(to, job->id, play_ticks(job->begin), play_ticks(job->end));
    return 12;
}

static void long_describe(npuprof_npu_ring *r)
{
    three_describe(r);
    r->duration = r->start;
    memset(&r->start, 0, sizeof r->start);
}

static unsigned long_write(unsigned char *to, const play_job *job)
{
    put_three(to, job->id, play_ticks(job->end) - play_ticks(job->begin), play_ticks(job->end));
    return 12;
}

/* ---- The world */

typedef struct world {
    const play_format *format;
    unsigned bits;                       /* of the stamps; 0: as the format has them */
    uint64_t hz;
    bool resets;                         /* the device is off at times, and its counter begins at 0 again */
    bool ascending;
    unsigned jobs, foreign;              /* one in `foreign` was not submitted here; 0: none */
} world;

static const play_format three = { "three", three_describe, three_write, 32 };
static const play_format with_duration = { "duration", long_describe, long_write, 32 };

static void narrow(npuprof_npu_field *f, unsigned bits)
{
    if (f->width_bytes && !f->hi_width_bytes && bits < f->bits) f->bits = (uint8_t)bits;
}

enum { ROOM = 1 << 17 };
typedef struct truth { int64_t begin, end; } truth;

/* One idle gap: mostly short, sometimes of up to 20 periods, at most 90 s. */
static uint64_t gap_of(const world *w)
{
    const unsigned bits = w->bits ? w->bits : 32;
    const double period = (double)(UINT64_C(1) << (bits < 40 ? bits : 40)) / (double)w->hz * 1e9;
    const double most = 20 * period < 9e10 ? 20 * period : 9e10;
    if (play_random(50)) return play_random(200000);
    return (uint64_t)(most * (double)play_random(1000) / 1000);
}

static void suspend(void)
{
    play_powered_on = false;
    play_until(play.host + 1000000 + play_random(UINT64_C(2000000000)));
    play.origin = play.host;
    play.start = play_random(100000);
    play_powered_on = true;
}

static void run_world(const world *w, truth *truths)
{
    static unsigned char batch[256 * 256];
    size_t bytes = 0, waiting = 0;
    for (unsigned i = 0; i < w->jobs; i++) {
        play_job job = { i, 0, 1, i + 1, play.host, 0, 0 };
        const bool foreign = w->foreign && play_random(w->foreign) == 0;
        if (foreign) {
            job.id |= 1u << 30;
        } else {
            WITH_NPU_PROFILER(&npu, 0, "submit", "NPU", PROF_NO_ARGS, {
                npuprof_npu_set_job(&npu, job.id);
                play_until(play.host + 100);
            });
        }
        job.begin = play.host + 500 + play_random(3000);
        job.end = job.begin + 2000 + play_random(20000);
        play_until(job.end + play_random(5000));
        truths[i].begin = (int64_t)job.begin;
        truths[i].end = (int64_t)job.end;
        bytes += w->format->write(batch + bytes, &job);
        waiting++;
        if (play_random(4) && waiting < 200) continue;           /* some are handed over late */
        if (play_random(100) == 0) play_until(play.host + gap_of(w));
        (void)npuprof_npu_feed(&npu, 0, batch, bytes);
        bytes = waiting = 0;
        play_until(play.host + gap_of(w));
        if (w->resets && play_random(200) == 0) suspend();
    }
    (void)npuprof_npu_feed(&npu, 0, batch, bytes);
}

/* Each device span holds its bound; returns how many there are. */
static unsigned compare_world(const world *w, json_node *t, const truth *truths, int64_t offset)
{
    const int64_t base = json_int(json_get(t, "metadata.npuprof.start_unix_ns"));
    const int64_t tick = 1 + (int64_t)(1000000000 / w->hz);
    unsigned spans = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        json_node *job = json_get(e, "args.job");
        if (json_text(json_get(e, "ph"))[0] != 'X' || !job) continue;
        const truth *is = &truths[(json_int(job) & 0x3FFFFFFF) - 1];
        const int64_t bound = json_int(json_get(e, "args.error_ns")) + tick;
        const int64_t begin = base + trace_start(e) - offset - is->begin;
        const int64_t end = base + trace_end(e) - offset - is->end;
        if (begin > bound || -begin > bound || end > bound || -end > bound)
            check_failed_(__FILE__, __LINE__, "%s %u bits: job %" PRId64 ": %" PRId64 " and %" PRId64
                          " ns off, bound %" PRId64, w->format->name, w->bits, json_int(job), begin, end,
                          bound);
        spans++;
    }
    return spans;
}

static void world_of(const void *user)
{
    const world *const w = (const world *)user;
    truth *const truths = (truth *)calloc(w->jobs, sizeof(truth));
    npuprof_npu_desc d;
    npuprof_stats stats;
    play.seed ^= w->bits * 977u + w->jobs;
    play.hz = w->hz;
    play.origin = play.host;
    play.start = 5000000;
    memset(&d, 0, sizeof d);
    d.name = "world";
    d.read_ticks = play_read;
    d.counter.hz = w->hz;
    if (w->resets) d.is_on = play_is_on;
    w->format->describe(&d.ring);
    d.ring.feed = true;
    d.ring.ascending = w->ascending;
    if (w->bits) {
        narrow(&d.ring.start, w->bits);
        narrow(&d.ring.end, w->bits);
        narrow(&d.ring.stamp, w->bits);
    }
    npuprof_start(1);
    play.step = 0;
    const int64_t offset = npuprof_now_ns() - (int64_t)play.host;
    play.step = 30;
    const npuprof_result opened = npuprof_npu_open(&npu, &d);
    if (opened != NPUPROF_OK) check_failed_(__FILE__, __LINE__, "%s", npuprof_result_string(opened));
    run_world(w, truths);
    npuprof_npu_close(&npu);
    const char *path = check_path("world.json");
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    npuprof_get_stats(&stats);
    json_node *t = trace_load(path);
    const unsigned spans = compare_world(w, t, truths, offset);
    CHECK_UINT(spans + stats.lost_by_cause[NPUPROF_LOST_RING], w->jobs);
    CHECK_INT(json_int(json_get(json_get(t, "metadata.npuprof.devices")->first,
                                "clock_sync.causality_violations")), 0);
    printf("note %s, %u bits%s: %u of %u drawn\n", w->format->name, w->bits, w->resets ? ", resets" : "",
           spans, w->jobs);
    if (w->bits >= 32 && !w->foreign && !w->resets) CHECK(spans > w->jobs / 1000 * 995);
}

static void worlds(unsigned jobs)
{
    const world all[] = {
        { &three, 32, 1000000000, false, false, jobs, 0 }, { &three, 32, 1000000000, false, false, jobs, 5 },
        { &three, 32, 1000000000, false, true, jobs, 0 }, { &three, 24, 100000000, true, true, jobs, 5 },
        { &three, 16, 19200000, false, false, jobs, 0 }, { &three, 24, 100000000, true, false, jobs, 7 },
        { &three, 32, 1000000000, true, false, jobs, 0 },
        { &with_duration, 32, 1000000000, false, true, jobs, 9 },
        { &with_duration, 20, 24000000, true, false, jobs, 9 },
        { &play_formats[0], 0, 1000000000, true, false, jobs, 6 },
        { &play_formats[8], 0, 500000000, false, false, jobs, 6 },
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) check_in_child(world_of, &all[i]);
}

static void small_worlds(void) { worlds(800); }
static void large_worlds(void) { worlds(CHECK_SANITIZED ? 3000 : 100000); }

CHECK_MAIN(CASE(small_worlds), CASE_THOROUGH(large_worlds))

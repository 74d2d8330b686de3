/* npuprof_read() of devices: their ticks, epochs, bounds, jobs and parents; what a read drains; clock anchors
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION
#include "fixture.h"

static struct {
    npuprof_read_span span[64];
    uint64_t job[64];
    char name[64][32], track[64][32];
    unsigned count;
} got;
static npuprof_cursor cursor;

static bool take(void *user, const npuprof_read_span *span)
{
    (void)user;
    CHECK_STOP(got.count < 64);
    got.span[got.count] = *span;
    snprintf(got.name[got.count], sizeof got.name[0], "%s", span->name);
    snprintf(got.track[got.count], sizeof got.track[0], "%s", span->track);
    got.count++;
    return true;
}

static void read_kinds(uint32_t kinds)
{
    got.count = 0;
    CHECK_INT(npuprof_read(&cursor, kinds, take, NULL, NULL), NPUPROF_OK);
}

static void read_devices(void) { read_kinds(1u << NPUPROF_KIND_DEVICE); }

/* The moment in true time lies in the bound of a stamp. sim.h: 1 host tick is 1 ns. */
static bool is_right(int64_t ns, uint64_t error_ns, uint64_t true_host)
{
    const int64_t off = ns - npuprof_ticks_to_ns_(true_host);
    return error_ns != UINT64_MAX && (uint64_t)(off < 0 ? -off : off) <= error_ns;
}

/* A ring that only a read drains; jobs with their submissions. */
static void drained_by_the_read(void)
{
    npuprof_npu_desc desc = sim_desc();
    desc.ring = sim_ring();
    open_npu(&desc);
    (void)submit(0, "conv");
    sim_advance(5000);
    const uint64_t start = sim_truth(), start_host = sim.host;
    sim_advance(20000);
    const uint64_t end = sim_truth(), end_host = sim.host;
    sim_record(0, start, end);
    sim_sync(1000000);
    read_kinds(NPUPROF_READ_ALL | NPUPROF_READ_NO_DRAIN);
    CHECK_UINT(got.count, 1);
    CHECK_STR(got.name[0], "conv");
    const uint64_t submission = got.span[0].id;
    read_devices();
    CHECK_UINT(got.count, 1);
    const npuprof_read_span *const span = &got.span[0];
    CHECK_STR(got.track[0], "sim");
    CHECK_UINT(span->start_ticks, start);
    CHECK_UINT(span->end_ticks, end);
    CHECK(span->flags & NPUPROF_READ_HAS_TICKS && !(span->flags & NPUPROF_READ_NO_TIME));
    CHECK_UINT(span->device, 1);
    CHECK(span->parent == submission);
    CHECK(is_right(span->start_ns, span->error_ns, start_host));
    CHECK(is_right(span->end_ns, span->error_ns, end_host));
    CHECK(span->error_ns < 10000);
    read_devices();
    CHECK_UINT(got.count, 0);
    npuprof_npu_close(&npu);
}

/* A record comes two reads later, with stamps before those that were handed over; the counter wraps, and is
   reset, between reads. */
static void late_wrapped_and_reset(void)
{
    sim.bits = 24;
    sim.hz = 100000000;
    open_sim();
    const uint64_t old = sim_truth();
    sim_sync(1000000);
    const uint64_t newer = sim_truth(), newer_host = sim.host;
    sim_sync(1000000);
    npuprof_npu_span(&npu, 1, "newer", "NPU", newer, newer + 100, PROF_ARGS(PROF_UINT("job", 77)));
    read_devices();
    CHECK_UINT(got.count, 1);
    CHECK_UINT(got.span[0].job, 77);
    CHECK_UINT(got.span[0].engine, 1);
    CHECK(is_right(got.span[0].start_ns, got.span[0].error_ns, newer_host));
    for (int i = 0; i < 30; i++) sim_sync(20000000);             /* 60 million ticks: it wraps */
    read_devices();
    CHECK_UINT(got.count, 0);
    npuprof_npu_span(&npu, 1, "older", "NPU", old, old + 100, PROF_NO_ARGS);
    const uint64_t wrapped = sim_truth(), wrapped_host = sim.host;
    sim_sync(1000000);
    npuprof_npu_span(&npu, 1, "wrapped", "NPU", wrapped, wrapped + 50, PROF_NO_ARGS);
    read_devices();
    CHECK_UINT(got.count, 2);
    CHECK(got.span[0].start_ns < got.span[1].start_ns - 500000000);
    CHECK(got.span[1].start_ticks > 1u << 24);
    CHECK(is_right(got.span[1].start_ns, got.span[1].error_ns, wrapped_host));
    const uint32_t epoch = got.span[1].epoch;
    sim.start = (sim_truth() - 1000000) & sim_mask(24);          /* back: no wrap explains it */
    sim.origin = sim.host;
    sim_advance(1000);
    const npuprof_result result = npuprof_npu_sync(&npu);
    CHECK(result == NPUPROF_ERR_NPU_RESET || result == NPUPROF_ERR_NPU_AMBIGUOUS);
    sim_sync(1000000);
    const uint64_t reset = sim_truth(), reset_host = sim.host;
    sim_sync(1000000);
    npuprof_npu_span(&npu, 1, "reset", "NPU", reset, reset + 50, PROF_NO_ARGS);
    read_devices();
    CHECK_UINT(got.count, 1);
    CHECK(got.span[0].epoch > epoch);
    CHECK(is_right(got.span[0].start_ns, got.span[0].error_ns, reset_host));
    npuprof_npu_close(&npu);
}

static void change_rate(uint64_t hz)
{
    sim.start = sim_truth();
    sim.origin = sim.host;
    sim.hz = hz;
}

/* The rate changes soon after an anchor, and a record of then is read at once: no anchor was due. */
static void rate_changes_behind(unsigned syncs)
{
    npuprof_npu_desc desc = sim_desc();
    desc.ring = sim_ring();
    open_npu(&desc);
    for (unsigned i = 0; i < syncs; i++) sim_sync(syncs * syncs * 10000);
    change_rate(sim.hz - sim.hz / 16);
    for (unsigned i = 0; i < 4; i++) {
        sim_advance(100000);
        const uint64_t start = sim_truth(), start_host = sim.host;
        sim_advance(100000);
        const uint64_t end_host = sim.host;
        sim_record(i, start, sim_truth());
        sim_advance(1000);
        read_devices();
        CHECK_UINT(got.count, 1);
        CHECK(is_right(got.span[0].start_ns, got.span[0].error_ns, start_host));
        CHECK(is_right(got.span[0].end_ns, got.span[0].error_ns, end_host));
    }
    npuprof_npu_close(&npu);
    sim.hz = 25000000;
}

static void rate_just_changed(void) { rate_changes_behind(10); }
static void rate_changes_at_once(void) { rate_changes_behind(2); }

/* A narrow counter stands, and nobody says so: what it shows again is no reset. Where it goes on an epoch
   begins, and what was stamped meanwhile is not placed by the rate before or behind. */
static void stands_unannounced(void)
{
    uint64_t ticks;
    sim.bits = 32;
    sim.hz = 1900000000;
    open_sim();
    for (int i = 0; i < 20; i++) sim_sync(10000000);
    const uint64_t stood = sim_truth();
    change_rate(0);
    for (int i = 0; i < 2; i++) {
        sim_advance(300000000);
        CHECK_INT(npuprof_npu_read(&npu, &ticks), i ? NPUPROF_ERR_NPU_STOPPED : NPUPROF_ERR_NPU_RESET);
    }
    CHECK_UINT(npu.epoch_, 1);
    const uint64_t host = sim.host;
    npuprof_npu_span(&npu, 1, "meanwhile", "NPU", stood, stood, PROF_NO_ARGS);
    sim_advance(300000000);
    change_rate(1900000000);
    for (int i = 0; i < 20; i++) {
        sim_advance(10000000);
        (void)npuprof_npu_sync(&npu);
    }
    read_devices();
    CHECK_UINT(got.count, 1);
    CHECK(got.span[0].flags & NPUPROF_READ_NO_TIME ||
          is_right(got.span[0].start_ns, got.span[0].error_ns, host));
    npuprof_npu_close(&npu);
    sim.bits = 64;
    sim.hz = 25000000;
}

/* Two devices, one of them with a clock that is known worse; instants and values; times of the host. */
static void two_devices(void)
{
    static npuprof_npu other;
    npuprof_npu_desc desc = sim_desc();
    desc.anchors_only = false;
    open_npu(&desc);
    npuprof_npu_desc pushed;
    memset(&pushed, 0, sizeof pushed);
    pushed.name = "pushed";
    pushed.anchors_only = true;
    pushed.counter.bits = 64;
    pushed.counter.hz = sim.hz;
    CHECK_INT(npuprof_npu_open(&other, &pushed), NPUPROF_OK);
    for (int i = 0; i < 3; i++) {
        sim_sync(1000000);
        const int64_t now = npuprof_now_ns();
        CHECK_INT(npuprof_npu_anchor(&other, sim_truth(), now - 300000, now), NPUPROF_OK);
    }
    const uint64_t at = sim_truth() - 20000;
    npuprof_npu_span(&npu, 0, "exact", "NPU", at, at + 10, PROF_NO_ARGS);
    npuprof_npu_span(&other, 0, "vague", "NPU", at, at + 10, PROF_NO_ARGS);
    npuprof_npu_instant(&npu, 0, "point", "NPU", at, PROF_NO_ARGS);
    npuprof_npu_value(&npu, "level", 42, at);
    (void)npuprof_npu_complete_host(&other, 0, 0, "by host", "NPU", npuprof_now_ns() - 500, npuprof_now_ns(),
                                    PROF_NO_ARGS, true);
    read_devices();
    CHECK_UINT(got.count, 5);
    CHECK_UINT(got.span[0].device, 1);
    CHECK_UINT(got.span[1].device, 2);
    CHECK_STR(got.track[1], "pushed");
    CHECK(got.span[1].error_ns > 100000 && got.span[0].error_ns < 10000);
    CHECK(got.span[2].flags & NPUPROF_READ_POINT && got.span[2].end_ns == got.span[2].start_ns);
    CHECK_UINT(got.span[3].value.u, 42);
    CHECK(got.span[3].flags & NPUPROF_READ_POINT);
    CHECK(got.span[4].flags & NPUPROF_READ_HOST_STAMPS && !(got.span[4].flags & NPUPROF_READ_HAS_TICKS));
    npuprof_npu_close(&other);
    npuprof_npu_close(&npu);
}

/* Nothing is known of its clock: the span comes all the same. */
static void no_anchor(void)
{
    npuprof_npu_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "unknown";
    desc.anchors_only = true;
    desc.counter.bits = 64;
    open_npu(&desc);
    npuprof_npu_span(&npu, 0, "when?", "NPU", 1000, 2000, PROF_NO_ARGS);
    read_devices();
    CHECK_UINT(got.count, 1);
    CHECK(got.span[0].flags & NPUPROF_READ_NO_TIME && got.span[0].flags & NPUPROF_READ_HAS_TICKS);
    CHECK_UINT(got.span[0].start_ticks, 1000);
    CHECK(got.span[0].error_ns == UINT64_MAX && got.span[0].start_ns == 0);
    npuprof_npu_close(&npu);
}

typedef struct anchors { unsigned count, left; uint64_t last_ticks; } anchors;
static bool take_anchor(void *user, const npuprof_read_anchor *anchor)
{
    anchors *const a = (anchors *)user;
    CHECK_UINT(anchor->struct_size, sizeof *anchor);
    CHECK(anchor->ticks > a->last_ticks && anchor->before_ns <= anchor->after_ns);
    a->last_ticks = anchor->ticks;
    a->count++;
    return --a->left != 0;
}

/* Each anchor once, however many are taken at a time. */
static void each_anchor_once(void)
{
    anchors a = { 0, 1, 0 };
    uint64_t place = 0, again = 0;
    unsigned more;
    open_sim();
    do {
        more = a.count;
        a.left = 1;
        CHECK_INT(npuprof_read_anchors(1, &place, take_anchor, &a), NPUPROF_OK);
    } while (a.count > more);
    CHECK(a.count >= 2);
    for (int i = 0; i < 100; i++) sim_sync(10000000);
    a.left = 1000;
    CHECK_INT(npuprof_read_anchors(1, &place, take_anchor, &a), NPUPROF_OK);
    anchors all = { 0, 1000, 0 };
    CHECK_INT(npuprof_read_anchors(1, &again, take_anchor, &all), NPUPROF_OK);
    CHECK_UINT(a.count, all.count);
    CHECK(all.count > 50);
    CHECK_INT(npuprof_read_anchors(2, &again, take_anchor, &all), NPUPROF_ERR_NOT_FOUND);
    CHECK_INT(npuprof_read_anchors(1, NULL, take_anchor, &all), NPUPROF_ERR_ARGUMENT);
    npuprof_npu_close(&npu);
}

CHECK_MAIN(CASE(drained_by_the_read), CASE(rate_just_changed), CASE(rate_changes_at_once),
           CASE(stands_unannounced), CASE(late_wrapped_and_reset), CASE(two_devices), CASE(no_anchor),
           CASE(each_anchor_once))

/* what a stamp counts: narrow, scaled, with an offset, on the host's clock, with a duration, ascending
   SPDX-License-Identifier: MIT */
#include "fixture.h"


/* Nobody submitted these records: how old they may be is told by max_age_ms.
   op 4 | - 4 | first stamp 8 | second stamp 8 */
enum { ENTRY = 24 };
static npuprof_npu_desc queue(void)
{
    npuprof_npu_desc desc = sim_desc();
    desc.ring = (npuprof_npu_ring){ .feed = true, .entry_bytes = ENTRY, .op = AT(0, 4, 0, 0) };
    return desc;
}

static void feed(unsigned op, uint64_t first, uint64_t second)
{
    unsigned char entry[ENTRY];
    put(entry, 4, op);
    put(entry + 8, 8, first);
    put(entry + 16, 8, second);
    CHECK_INT(npuprof_npu_feed(&npu, 0, entry, ENTRY), NPUPROF_OK);
}

static void expect(json_node *t, unsigned op, uint64_t start, uint64_t end)
{
    json_node *e = op_span(t, op);
    CHECK_STOP(e != NULL);
    CHECK_INT(arg(e, "start_ticks"), (int64_t)start);
    CHECK_INT(arg(e, "end_ticks"), (int64_t)end);
}

/* Another clock of the device: half the rate, with an offset that changes. */
static void second_clock(void)
{
    npuprof_npu_desc desc = queue();
    desc.ring.start = (npuprof_npu_field)AT(8, 8, 0, 0);
    desc.ring.end = (npuprof_npu_field)AT(16, 8, 0, 0);
    desc.ring.scale_num = 2;
    desc.ring.stamp_offset = -1000;
    open_npu(&desc);
    sim_advance(100000000);
    const uint64_t t0 = sim_truth() / 2 * 2 - 100000;
    feed(1, (t0 + 1000) / 2, (t0 + 2000) / 2);
    feed(2, 400, 450);                   /* negative: before the counter began */
    npuprof_npu_set_stamp_offset(&npu, 6000);
    feed(3, (t0 - 6000) / 2, (t0 - 5000) / 2);
    json_node *t = closed();
    expect(t, 1, t0, t0 + 1000);
    expect(t, 3, t0, t0 + 1000);
    CHECK(op_span(t, 2) == NULL);
    CHECK_INT(records(t, "lost_stamps"), 1);
}

/* Stamps that count every 32nd tick, in 16 bits: the period is 2^21 ticks. */
static void coarse(void)
{
    npuprof_npu_desc desc = queue();
    desc.ring.start = (npuprof_npu_field)AT(8, 2, 0, 0);
    desc.ring.end = (npuprof_npu_field)AT(16, 2, 0, 0);
    desc.ring.scale_num = 32;
    desc.ring.max_age_ms = 1;
    open_npu(&desc);
    for (unsigned i = 0; i < 20; i++) {
        sim_advance(60000000);           /* 0.7 of a period */
        const uint64_t end = sim_truth() / 32 - 3;
        feed(i, end - 60, end);
    }
    const uint64_t last = sim_truth() / 32 - 3;
    const uint64_t mark = sim.host;
    PROF_INSTANT("test", "mark");
    json_node *t = closed(), *marked = trace_event(t, "i", "mark", 0), *e = op_span(t, 19);
    expect(t, 19, (last - 60) * 32, last * 32);
    CHECK(json_get(clock_sync(t), "records") == NULL);
    /* The stamp may have been taken at any of the 32 ticks, 40 ns each: its bound holds all. */
    CHECK_STOP(e && marked);
    const int64_t error = arg(e, "error_ns") + 2 * (int64_t)sim.step;
    for (unsigned i = 0; i < 32; i += 31) {
        const int64_t truth = (int64_t)(sim.origin + (last * 32 + i - sim.start) * 40 - mark);
        CHECK(llabs(trace_end(e) - trace_start(marked) - truth) <= error);
    }
    CHECK(error < 1000);
}

/* Nobody looked for longer than a period: which one narrow stamps are of cannot be known. */
static void looked_too_late(void)
{
    npuprof_npu_desc desc = queue();
    desc.ring.end = (npuprof_npu_field)AT(16, 4, 0, 20);         /* 42 ms */
    desc.ring.max_age_ms = 1;
    open_npu(&desc);
    sim_advance(30000000);
    feed(1, 0, sim_truth());
    sim_advance(60000000);
    feed(2, 0, sim_truth());
    sim_advance(60000000);
    CHECK_INT(npuprof_npu_feed(&npu, 0, NULL, 0), NPUPROF_OK);   /* says that there was nothing */
    sim_advance(30000000);
    feed(3, 0, sim_truth());
    json_node *t = closed();
    CHECK(op_span(t, 1) && !op_span(t, 2) && op_span(t, 3));
    CHECK_INT(records(t, "lost_period"), 1);
}

/* Stamps that ascend tell that none is older than the one before: not which period they are of. */
static void ascending(void)
{
    npuprof_npu_desc desc = queue();
    desc.ring.end = (npuprof_npu_field)AT(16, 4, 0, 20);
    desc.ring.ascending = true;
    unsigned char log[10 * ENTRY];
    uint64_t truth[10];
    open_npu(&desc);
    sim_advance(1000000);
    const uint64_t first = sim_truth();
    feed(20, 0, first);
    for (unsigned i = 0; i < 10; i++) {  /* 10 times 0.7 periods, fed at once; each other one a little back */
        sim_advance(30000000);
        truth[i] = sim_truth();
        put(log + i * ENTRY, 4, i);
        put(log + i * ENTRY + 16, 8, truth[i]);
    }
    CHECK_INT(npuprof_npu_feed(&npu, 0, log, sizeof log), NPUPROF_OK);
    sim_advance(300000000);
    feed(29, 0, sim_truth());            /* 7 periods are open */
    json_node *t = closed();
    expect(t, 20, first, first);
    for (unsigned i = 0; i < 10; i++) CHECK(op_span(t, i) == NULL);
    CHECK_INT(records(t, "lost_period"), 11);
}

/* A stamp of an ascending lane that is early by more than units differ is not believed. */
static void early_by_far(void)
{
    sim.start = UINT64_C(1) << 40;
    npuprof_npu_desc desc = queue();
    desc.ring.stamp = (npuprof_npu_field)AT(8, 8, 0, 44);
    desc.ring.all_are = NPUPROF_NPU_KIND_INSTANT;
    desc.ring.ascending = true;
    open_npu(&desc);
    sim_advance(UINT64_C(200000000000));
    feed(1, sim_truth() - 1000, 0);
    feed(2, sim_truth() - 900 - (UINT64_C(1) << 32), 0);         /* its high half was read first */
    feed(3, sim_truth() - 800, 0);
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "i", "op 1"), 1);
    CHECK_UINT(trace_count(t, "i", "op 2"), 0);
    CHECK_UINT(trace_count(t, "i", "op 3"), 1);
    CHECK_INT(records(t, "lost_contradiction"), 1);
}

/* The host's clock, in microseconds: no anchors are asked. */
static void host_clock(void)
{
    npuprof_npu_desc desc = queue();
    desc.ring.start = (npuprof_npu_field)AT(8, 8, 0, 0);
    desc.ring.end = (npuprof_npu_field)AT(16, 8, 0, 0);
    desc.ring.stamp_clock = NPUPROF_NPU_STAMP_HOST;
    desc.ring.stamp_unit_ns = 1000;
    open_npu(&desc);
    sim_advance(100000000);
    const uint64_t now = (uint64_t)npuprof_now_ns() / 1000;
    feed(1, now - 3000, now - 1000);
    feed(2, now - 3000, now + 5000);     /* not yet */
    feed(3, now - 3000000, now);         /* before the device was opened */
    json_node *t = closed(), *e = op_span(t, 1);
    CHECK_STOP(e != NULL);
    CHECK_STR(json_text(json_get(e, "args.stamp")), "host");
    CHECK(trace_dur(e) >= 1999000 && trace_dur(e) <= 2001000);
    CHECK(op_span(t, 2) == NULL && op_span(t, 3) == NULL);
    CHECK_INT(records(t, "lost_stamps"), 2);
}

/* One end and a duration. */
static void durations(void)
{
    for (int from_end = 0; from_end < 2; from_end++) {
        npuprof_npu_desc desc = queue();
        if (from_end) desc.ring.end = (npuprof_npu_field)AT(8, 8, 0, 0);
        else desc.ring.start = (npuprof_npu_field)AT(8, 8, 0, 0);
        desc.ring.duration = (npuprof_npu_field)AT(16, 4, 0, 0);
        open_npu(&desc);
        sim_advance(100000000);
        const uint64_t at = sim_truth() - 5000;
        feed(1 + (unsigned)from_end, at, 700);
        feed(9, at, from_end ? 0xFFFFFFFFu : 6000);              /* before 0; after now */
            json_node *t = closed();
        expect(t, 1 + (unsigned)from_end, from_end ? at - 700 : at, from_end ? at : at + 700);
        CHECK(op_span(t, 9) == NULL);
    }
}

/* Narrow stamps of a clock that is set anew, of a counter above 2^63; a duration that ends in the future. */
static void set_anew(void)
{
    npuprof_start(1);
    for (int pass = 0; pass < 3; pass++) {
        if (pass == 2) sim.start = UINT64_C(0x9000000000000000);
        npuprof_npu_desc desc = queue();
        desc.ring.end = (npuprof_npu_field)AT(16, 4, 0, 0);
        desc.ring.ascending = pass == 1;
        desc.ring.max_age_ms = 1;
        CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
        uint64_t offset = 0;
        for (unsigned i = 0; i < 9; i++) {
            sim_advance(UINT64_C(40000000000));
            feed(0, 0, sim_truth() - 5 - offset);
            if (i == 2) offset = sim_truth();
            if (i == 5) offset = sim_truth() - UINT64_C(0x500000000);
            if (pass < 2) npuprof_npu_set_stamp_offset(&npu, (int64_t)offset);
            else offset = 0;
        }
        npuprof_npu_close(&npu);
    }
    CHECK_UINT(lost(), 0);
    npuprof_npu_desc desc = queue();
    desc.ring.start = (npuprof_npu_field)AT(8, 8, 0, 0);
    desc.ring.duration = (npuprof_npu_field)AT(16, 8, 0, 0);
    desc.ring.stamp_clock = NPUPROF_NPU_STAMP_HOST;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    sim_advance(1000000);
    feed(1, (uint64_t)npuprof_now_ns() - 1000, 500);
    feed(2, (uint64_t)npuprof_now_ns() - 1000, UINT64_C(3600000000000));
    npuprof_npu_close(&npu);
    CHECK_UINT(lost(), 1);
    CHECK_UINT(recorded(), 28);
}

CHECK_MAIN(CASE(second_clock), CASE(coarse), CASE(looked_too_late), CASE(ascending), CASE(early_by_far),
           CASE(host_clock), CASE(durations), CASE(set_anew))

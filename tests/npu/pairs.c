/* begin and end as records of their own: matching, what is left open, kinds, stamps whose high part comes in
   another record
   SPDX-License-Identifier: MIT */
#include "fixture.h"

/* kind 1 | key 1 | lane 1 | op 1 | job 4 | stamp 8 */
enum { ENTRY = 16 };
static const npuprof_npu_kind kinds[] = { { 1, NPUPROF_NPU_KIND_BEGIN }, { 2, NPUPROF_NPU_KIND_END },
                                          { 3, NPUPROF_NPU_KIND_INSTANT }, { 4, NPUPROF_NPU_KIND_COUNTER },
                                          { 5, NPUPROF_NPU_KIND_SKIP } };

static npuprof_npu_desc queue(void)
{
    npuprof_npu_desc desc = sim_desc();
    desc.pe_count = 4;
    desc.ring = (npuprof_npu_ring){
        .feed = true, .entry_bytes = ENTRY, .kind = AT(0, 1, 0, 0), .kinds = kinds, .kind_count = 5,
        .key = { AT(1, 1, 0, 0) }, .pe = AT(2, 1, 0, 0), .op = AT(3, 1, 0, 0), .job = AT(4, 4, 0, 0),
        .value = AT(4, 4, 0, 0), .stamp = AT(8, 8, 0, 0) };
    return desc;
}

static void feed(unsigned kind, unsigned key, unsigned lane, unsigned op, uint64_t job, uint64_t stamp)
{
    unsigned char entry[ENTRY];
    put(entry, 1, kind);
    put(entry + 1, 1, key);
    put(entry + 2, 1, lane);
    put(entry + 3, 1, op);
    put(entry + 4, 4, job);
    put(entry + 8, 8, stamp);
    CHECK_INT(npuprof_npu_feed(&npu, 0, entry, ENTRY), NPUPROF_OK);
}

/* Nested, crossed between lanes, the same key twice: an end takes the newest begin of its lane and key. */
static void matching(void)
{
    npuprof_npu_desc desc = queue();
    open_npu(&desc);
    sim_advance(10000000);
    const uint64_t t0 = sim_truth() - 100000;
    uint32_t job = 0;
    WITH_NPU_PROFILER(&npu, 1, "outer", "NPU", PROF_NO_ARGS,
                      { job = npuprof_npu_job(&npu); sim_advance(8000000); });
    const uint64_t t1 = sim_truth() - 1000;
    feed(1, 7, 0, 10, job, t1);
    feed(1, 7, 0, 11, 0, t1 + 100);      /* the same key, inside */
    feed(1, 7, 1, 12, 0, t0);
    feed(2, 7, 0, 99, 0, t1 + 200);
    feed(2, 7, 1, 99, 0, t0 + 5000);
    feed(2, 7, 0, 99, 0, t1 + 300);
    json_node *t = closed();
    static const struct { unsigned op; uint64_t ticks; int64_t pe; } truth[] = {
        { 10, 300, 0 }, { 11, 100, 0 }, { 12, 5000, 1 } };
    for (int i = 0; i < 3; i++) {
        json_node *e = op_span(t, truth[i].op);
        CHECK_STOP(e != NULL);
        CHECK_INT(arg(e, "end_ticks") - arg(e, "start_ticks"),
                  (int64_t)truth[i].ticks);
        CHECK_INT(arg(e, "pe_index"), truth[i].pe);
    }
    CHECK_INT(json_int(json_get(op_span(t, 10), "args.job")), (int64_t)job);
    CHECK_UINT(trace_count(t, "f", "submit"), 1);
    CHECK(json_get(clock_sync(t), "records") == NULL);
}

/* Bytes moved are in the end, a size in the begin; what both have is the end's. */
static void arguments_of_the_end(void)
{
    static const unsigned begin[] = { 0, 30, 40, 5 }, end[] = { 70, 0, 80, 6 };
    npuprof_npu_desc desc = queue();
    unsigned char entry[ENTRY + 4];
    desc.ring.entry_bytes = sizeof entry;
    desc.ring.args[0] = (npuprof_npu_arg){ AT(ENTRY, 1, 0, 0), "moved" };
    desc.ring.args[1] = (npuprof_npu_arg){ AT(ENTRY + 1, 1, 0, 0), "size" };
    desc.ring.args[2] = (npuprof_npu_arg){ AT(ENTRY + 2, 1, 0, 0), "both" };
    desc.ring.instruction = (npuprof_npu_field)AT(ENTRY + 3, 1, 0, 0);
    open_npu(&desc);
    sim_advance(10000000);
    for (unsigned i = 0; i < 2; i++) {
        memset(entry, 0, sizeof entry);
        put(entry, 1, 1 + i);
        put(entry + 3, 1, 10);
        put(entry + 8, 8, sim_truth() - 100 + i);
        for (unsigned k = 0; k < 4; k++) put(entry + ENTRY + k, 1, i ? end[k] : begin[k]);
        CHECK_INT(npuprof_npu_feed(&npu, 0, entry, sizeof entry), NPUPROF_OK);
    }
    json_node *t = closed(), *e = op_span(t, 10);
    CHECK_STOP(e != NULL);
    CHECK_INT(arg(e, "moved"), 70);
    CHECK_INT(arg(e, "size"), 30);
    CHECK_INT(arg(e, "both"), 80);
    CHECK_INT(arg(e, "instruction_index"), 6);
}

/* An end without a begin, a begin without an end, an end before its begin, a kind that nobody described. */
static void left_over(void)
{
    npuprof_npu_desc desc = queue();
    open_npu(&desc);
    sim_advance(10000000);
    const uint64_t t0 = sim_truth() - 100000;
    feed(2, 1, 0, 1, 0, t0);
    feed(1, 2, 0, 2, 0, t0 + 10);
    feed(1, 3, 0, 3, 0, t0 + 2000);
    feed(2, 3, 0, 3, 0, t0 + 11);
    feed(77, 3, 0, 3, 0, t0 + 12);
    feed(5, 3, 0, 3, 0, t0 + 12);
    feed(3, 9, 0, 4, 6, t0 + 500);
    feed(4, 9, 0, 5, 1234567, t0 + 600);
    json_node *t = closed(), *open = op_span(t, 2);
    CHECK_STOP(open != NULL);
    CHECK_STR(json_text(json_get(open, "args.unfinished")), "true");
    CHECK_INT(arg(open, "end_ticks"), (int64_t)(t0 + 2000));
    CHECK(op_span(t, 1) == NULL && op_span(t, 3) == NULL);
    CHECK_INT(records(t, "unmatched_ends"), 1);
    CHECK_INT(records(t, "unfinished"), 1);
    CHECK_INT(records(t, "lost_stamps"), 1);
    CHECK_INT(records(t, "unknown_records"), 1);
    json_node *i = trace_event(t, "i", "op 4", 0), *c = trace_event(t, "C", "sim op 5", 0);
    CHECK_STOP(i && c);
    CHECK_INT(arg(i, "start_ticks"), (int64_t)(t0 + 500));
    CHECK_INT(arg(i, "job"), 6);
    CHECK_INT(arg(c, "value"), 1234567);
    CHECK(trace_start(c) > trace_start(i));
}

/* More begins than there is room for: the oldest ones are unfinished, none is lost. */
static void too_many(void)
{
    npuprof_npu_desc desc = queue();
    open_npu(&desc);
    sim_advance(10000000);
    const uint64_t t0 = sim_truth() - 10000;
    enum { ALL = NPUPROF_NPU_PAIRS_ + 20 };
    for (unsigned i = 0; i < ALL; i++) feed(1, i, 0, 1 + i / 200, i, t0 + i);
    for (unsigned i = 0; i < ALL; i++) feed(2, i, 0, 0, i, t0 + 1000 + i);
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "X", "op 1"), ALL);
    CHECK_INT(records(t, "unfinished"), 20);
    CHECK_INT(records(t, "unmatched_ends"), 20);
}

/* A reset between begin and end: the begin is unfinished, the end matches nothing. */
static void reset_between(void)
{
    sim.start = 900000000;
    npuprof_npu_desc desc = queue();
    uint64_t ticks;
    open_npu(&desc);
    sim_advance(10000000);
    feed(1, 2, 0, 2, 0, sim_truth());
    sim.origin = sim.host;
    sim.start = 100;
    sim_advance(500000000);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_RESET);
    feed(2, 2, 0, 2, 0, sim_truth());
    json_node *t = closed();
    CHECK_INT(records(t, "unmatched_ends"), 1);
    CHECK_INT(records(t, "unfinished"), 1);
    CHECK_INT(trace_dur(op_span(t, 2)), 0);
}

/* The number of a job is that of its begin, also for parts that come after its end. */
static void parts_after_the_end(void)
{
    npuprof_npu_desc desc = queue();
    desc.ring.execution_op = 10 + 1;
    open_npu(&desc);
    uint32_t job = 0;
    WITH_NPU_PROFILER(&npu, 5, "whole", "NPU", PROF_NO_ARGS,
                      { job = npuprof_npu_job(&npu); sim_advance(8000000); });
    const uint64_t t1 = sim_truth() - 1000;
    feed(1, 7, 0, 10, job, t1);
    feed(2, 7, 0, 10, job + 70, t1 + 300);
    feed(1, 8, 0, 12, job, t1 + 100);
    feed(2, 8, 0, 12, job, t1 + 200);
    json_node *const part = op_span(closed(), 12);
    CHECK_STOP(part != NULL);
    CHECK_INT(arg(part, "stream"), 5);
}

CHECK_MAIN(CASE(matching), CASE(parts_after_the_end), CASE(arguments_of_the_end), CASE(left_over),
           CASE(too_many), CASE(reset_between))

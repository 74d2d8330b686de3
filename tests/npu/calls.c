/* begin and end as calls: out of order, by job, refused, too many; register loads counted
   SPDX-License-Identifier: MIT */
#include "fixture.h"

/* Two overlap and end the other way round. Each device span is as long as its own pair, has an arrow from its
   host span, and takes two register loads. */
static void out_of_order(void)
{
    open_sim();
    const uint32_t before = npu.mmio_reads;
    const uint32_t one = npuprof_npu_begin(&npu, 7, "one", "NPU", PROF_ARGS(PROF_INT("batch", 4)));
    const uint64_t begun = sim_truth();
    sim_advance(100000);
    const uint32_t two = npuprof_npu_begin(&npu, 8, "two", "NPU", PROF_NO_ARGS);
    sim_advance(100000);
    CHECK(one && two && one != two);
    CHECK_INT(npuprof_npu_end_args(&npu, one, PROF_ARGS(PROF_INT("status", 3))), NPUPROF_OK);
    const uint64_t ended = sim_truth();
    sim_advance(100000);
    CHECK_INT(npuprof_npu_end(&npu, two), NPUPROF_OK);
    CHECK_UINT(npu.mmio_reads - before, 4);
    json_node *t = closed();
    json_node *first = device_span(t, "one", 0), *second = device_span(t, "two", 0);
    CHECK_STOP(first && second);
    const uint64_t start = (uint64_t)arg(first, "start_ticks");
    const uint64_t end = (uint64_t)arg(first, "end_ticks");
    CHECK(start <= begun && begun - start <= 5 && end <= ended && ended - end <= 5);
    CHECK_INT(arg(first, "stream"), 7);
    CHECK_INT(arg(first, "status"), 3);
    CHECK_INT(arg(second, "stream"), 8);
    CHECK_UINT(trace_count(t, "s", "submit"), 2);
    json_node *host = trace_event(t, "X", "one", 0);
    CHECK_INT(arg(host, "batch"), 4);
    CHECK_INT(said(t, "spans"), 2);
    CHECK_INT(said(t, "causality_violations"), 0);
}

/* What is ended twice, was never given out, or belongs to another device or another opening is refused with a
   sentence, and draws nothing. */
static void refused_handles(void)
{
    static npuprof_npu other;
    open_sim();
    SIM_DESC(d);
    CHECK_STOP(npuprof_npu_open(&other, &d) == NPUPROF_OK);
    const uint32_t handle = npuprof_npu_begin(&npu, 0, "a", NULL, PROF_NO_ARGS);
    CHECK_INT(npuprof_npu_end(&other, handle), NPUPROF_ERR_ARGUMENT);
    CHECK(strstr(npuprof_result_string(NPUPROF_ERR_ARGUMENT), "another device") != NULL);
    CHECK_INT(npuprof_npu_end(&npu, handle + 1), NPUPROF_ERR_ARGUMENT);
    CHECK_INT(npuprof_npu_end(&npu, 1), NPUPROF_ERR_ARGUMENT);
    CHECK_INT(npuprof_npu_end(&npu, 0), NPUPROF_OK);
    CHECK_INT(npuprof_npu_set_job_of(&npu, handle, 1), NPUPROF_ERR_NPU_NO_RING);
    CHECK_INT(npuprof_npu_end(&npu, handle), NPUPROF_OK);
    CHECK_INT(npuprof_npu_end(&npu, handle), NPUPROF_ERR_ARGUMENT);
    CHECK(strstr(npuprof_result_string(NPUPROF_ERR_ARGUMENT), "ended before") != NULL);
    for (int i = 0; i < 3 * NPUPROF_NPU_CALLS_; i++) {           /* its entry is used again */
        const uint32_t next = npuprof_npu_begin(&npu, 0, "b", NULL, PROF_NO_ARGS);
        CHECK_INT(npuprof_npu_end(&npu, handle), NPUPROF_ERR_ARGUMENT);
        CHECK_INT(npuprof_npu_end(&npu, next), NPUPROF_OK);
    }
    const uint32_t last = npuprof_npu_begin(&npu, 0, "c", NULL, PROF_NO_ARGS);
    npuprof_npu_close(&npu);                                     /* "c" is lost */
    CHECK_INT(npuprof_npu_end(&npu, last), NPUPROF_ERR_ARGUMENT);
    CHECK_STOP(npuprof_npu_open(&npu, &d) == NPUPROF_OK);
    CHECK_INT(npuprof_npu_end(&npu, last), NPUPROF_ERR_ARGUMENT);
    npuprof_npu_close(&npu);
    CHECK_UINT(npuprof_npu_begin(&npu, 0, "closed", NULL, PROF_NO_ARGS), 0);
    npuprof_npu_close(&other);
    npuprof_stop();
    CHECK_UINT(npuprof_npu_begin(&npu, 0, "off", NULL, PROF_NO_ARGS), 0);
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    CHECK_UINT(stats.lost_by_cause[NPUPROF_LOST_CALLS], 1);
    CHECK_UINT(stats.lost, 1);
    json_node *t = written();
    CHECK_UINT(device_spans(t), 1 + 3 * NPUPROF_NPU_CALLS_);
    CHECK_UINT(trace_count(t, "X", "closed"), 1);
    CHECK_UINT(trace_count(t, "X", "off"), 0);
}

/* As many as fit, and ten more: those are counted, and an event says why. What is open still ends. */
static void too_many(void)
{
    uint32_t handle[NPUPROF_NPU_CALLS_ + 10];
    npuprof_stats stats;
    open_sim();
    for (int i = 0; i < NPUPROF_NPU_CALLS_ + 10; i++) {
        handle[i] = npuprof_npu_begin(&npu, 0, "many", "NPU", PROF_NO_ARGS);
        CHECK((handle[i] != 0) == (i < NPUPROF_NPU_CALLS_));
        sim_advance(1000);
    }
    for (int i = 0; i < NPUPROF_NPU_CALLS_ + 10; i++) CHECK_INT(npuprof_npu_end(&npu, handle[i]), NPUPROF_OK);
    CHECK(npuprof_npu_begin(&npu, 0, "room again", "NPU", PROF_NO_ARGS) != 0);
    npuprof_get_stats(&stats);
    CHECK_UINT(stats.lost_by_cause[NPUPROF_LOST_CALLS], 10);
    CHECK_UINT(stats.lost, 10);
    json_node *t = written();
    CHECK_UINT(device_spans(t), NPUPROF_NPU_CALLS_);
    CHECK_UINT(trace_count(t, "i", "no device span"), 10);
    CHECK_UINT(trace_count(t, "X", "many"), 2 * NPUPROF_NPU_CALLS_ + 10);
    const char *why = json_text(json_get(trace_event(t, "i", "no device span", 0), "args.why"));
    CHECK(strstr(why, "npuprof_npu_end") != NULL);
}

/* A counter that is reset in between gives no span, and the reason. */
static void reset_between(void)
{
    open_sim();
    sim_advance(1000000);
    const uint32_t handle = npuprof_npu_begin(&npu, 0, "reset", "NPU", PROF_NO_ARGS);
    sim_advance(1000000);
    sim.origin = sim.host;
    sim.start = 5;
    CHECK_INT(npuprof_npu_end(&npu, handle), NPUPROF_ERR_NPU_RESET);
    sim_advance(1000000);
    CHECK_INT(npuprof_npu_end(&npu, npuprof_npu_begin(&npu, 0, "after", "NPU", PROF_NO_ARGS)), NPUPROF_OK);
    json_node *t = closed();
    CHECK(!device_span(t, "reset", 0) && device_span(t, "after", 0));
    CHECK_UINT(trace_count(t, "i", "no device span"), 1);
}

/* Event counters: the steps between the two ends are arguments, the sums are tracks, and their loads are as
   documented: 2 for the device's clock and 2 for each counter of one word. */
static void event_counters(void)
{
    static const npuprof_npu_pmu pmu[] = {
        { .name = "macs", .counter = { .lo_offset = 0x40, .bits = 32 } },
        { .name = "busy", .counter = { .lo_offset = 0x48, .bits = 32 }, .is_busy = true } };
    npuprof_npu_desc desc = sim_desc();
    sim_store(0x40, 4, 1000);
    sim_store(0x48, 4, 1000);
    desc.pmu = pmu;
    desc.pmu_count = 2;
    open_npu(&desc);
    const uint32_t loads = npu.mmio_reads;
    const uint32_t handle = npuprof_npu_begin(&npu, 0, "conv", "NPU", PROF_NO_ARGS);
    sim_advance(1000000);
    sim_store(0x40, 4, 1500);
    sim_store(0x48, 4, 8000);
    CHECK_INT(npuprof_npu_end_args(&npu, handle, PROF_ARGS(PROF_INT("status", 1))), NPUPROF_OK);
    CHECK_UINT(npu.mmio_reads - loads, 2 + 2 * 2);
    json_node *t = closed(), *span = device_span(t, "conv", 0);
    CHECK_STOP(span);
    CHECK_INT(arg(span, "macs"), 500);
    CHECK_INT(arg(span, "busy_ticks"), 7000);
    CHECK_INT(arg(span, "status"), 1);
    CHECK_UINT(trace_count(t, "C", "sim macs"), 2);
}

/* PROF_NPU_SCOPE is a WITH_NPU_PROFILER to the end of its block; return ends it, too. */
static int scope(bool leave)
{
    PROF_NPU_SCOPE(&npu, 3, "scope", "NPU", PROF_NO_ARGS);
    sim_advance(1000);
    if (leave) return 1;
    PROF_NPU_SCOPE(&npu, 4, "scope", "NPU", PROF_ARGS(PROF_INT("inner", 1)));
    sim_advance(1000);
    return 0;
}

static void scopes(void)
{
    open_sim();
    CHECK_INT(scope(true) + scope(false), 1);
    json_node *t = closed();
    CHECK_UINT(device_spans(t), 3);
    CHECK_INT(arg(device_span(t, "scope", 1), "stream"), 3);
    CHECK_UINT(trace_count(t, "s", "submit"), 3);
}

/* ---- With a ring: the record draws the span */

enum { ENTRY = 24, COUNT = 64 };
static uint32_t written_records;

static void open_ringed(void)
{
    SIM_DESC(d);
    d.ring = (npuprof_npu_ring){ .offset = SIM_RING, .entry_bytes = ENTRY, .count = COUNT,
                                 .producer = { .offset = SIM_PRODUCER }, .job = AT(4, 4, 0, 0),
                                 .start = AT(8, 8, 0, 0), .end = AT(16, 8, 0, 0) };
    open_npu(&d);
}

static void complete(uint32_t job)
{
    const size_t at = SIM_RING + (written_records % COUNT) * ENTRY;
    sim_store(at + 4, 4, job);
    sim_store(at + 8, 8, sim_truth() - 100);
    sim_store(at + 16, 8, sim_truth() - 50);
    sim_store(SIM_PRODUCER, 4, ++written_records);
}

/* Begun in this order, numbered in any: by the newest, by handle, twice in one submission. Each record finds
   its submission, whether it is ended before the record comes or after; ends take no register load. */
static void by_job(void)
{
    open_ringed();
    const uint32_t a = npuprof_npu_begin(&npu, 1, "a", "NPU", PROF_NO_ARGS);
    const uint32_t b = npuprof_npu_begin(&npu, 2, "b", "NPU", PROF_NO_ARGS);
    const uint32_t of_b = npuprof_npu_job(&npu);
    const uint32_t c = npuprof_npu_begin(&npu, 3, "c", "NPU", PROF_NO_ARGS);
    npuprof_npu_set_job(&npu, 4000);
    npuprof_npu_set_job(&npu, 4001);                             /* c gives two commands */
    CHECK_INT(npuprof_npu_set_job_of(&npu, a, 5000), NPUPROF_OK);
    sim_advance(100000);
    complete(4001);
    complete(5000);
    const uint32_t loads = npu.mmio_reads;
    CHECK_INT(npuprof_npu_end(&npu, a), NPUPROF_OK);
    CHECK_UINT(npu.mmio_reads - loads, 0);
    CHECK_INT(npuprof_npu_set_job_of(&npu, a, 5001), NPUPROF_ERR_ARGUMENT);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    complete(of_b);
    complete(4000);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_INT(npuprof_npu_end(&npu, c), NPUPROF_OK);
    CHECK_INT(npuprof_npu_end(&npu, b), NPUPROF_OK);
    json_node *t = closed();
    CHECK_UINT(device_spans(t), 4);
    CHECK_UINT(trace_count(t, "s", "submit"), 4);
    CHECK_INT(arg(device_span(t, "a", 0), "job"), 5000);
    CHECK_INT(arg(device_span(t, "b", 0), "stream"), 2);
    CHECK_INT(arg(device_span(t, "c", 0), "job"), 4001);
    CHECK_INT(arg(device_span(t, "c", 1), "job"), 4000);
}

static uint64_t executed(void)
{
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    return stats.recorded + stats.lost;
}

static void deep(int scopes)
{
    PROF_SCOPE("deep");
    if (scopes > 1) {
        deep(scopes - 1);
        return;
    }
    WITH_NPU_PROFILER(&npu, 0, "block", "NPU", PROF_NO_ARGS, sim_advance(1000));
    { PROF_NPU_SCOPE(&npu, 0, "scope", "NPU", PROF_NO_ARGS); sim_advance(1000); }
    CHECK_UINT(npuprof_npu_begin(&npu, 0, "call", "NPU", PROF_NO_ARGS), 0);
}

/* Where a host span is lost, its device span is counted, too, by the same cause; where a category leaves
   both out, neither is. */
static void lost_hosts(void)
{
    enum { SCOPES = 2000 };
    npuprof_stats stats;
    open_sim();
    const uint64_t before = executed();
    deep(SCOPES);
    CHECK_UINT(executed() - before, SCOPES + 2 * 3);
    npuprof_get_stats(&stats);
    CHECK_UINT(stats.lost_by_cause[NPUPROF_LOST_DEPTH], stats.lost);
    CHECK_INT(npuprof_set_categories("-NPU"), NPUPROF_OK);
    deep(SCOPES);
    CHECK_INT(npuprof_set_categories(NULL), NPUPROF_OK);
    CHECK_UINT(executed() - before, 2 * SCOPES + 2 * 3);
    CHECK_UINT(device_spans(closed()), 0);
}

CHECK_MAIN(CASE(out_of_order), CASE(refused_handles), CASE(too_many), CASE(lost_hosts), CASE(reset_between),
           CASE(event_counters), CASE(scopes), CASE(by_job))

/* records that the driver hands over: what is taken, matched, drawn, counted; the bytes of real devices
   SPDX-License-Identifier: MIT */
#include "fixture.h"


/* job 2 | op 2 | - 4 | end 8 */
enum { ENTRY = 16 };
static void put_entry(unsigned char *at, unsigned job, unsigned op, uint64_t end)
{
    put(at, 2, job);
    put(at + 2, 2, op);
    put(at + 4, 4, 0);
    put(at + 8, 8, end);
}

static npuprof_npu_desc queue(void)
{
    npuprof_npu_desc desc = sim_desc();
    desc.ring = (npuprof_npu_ring){ .feed = true, .entry_bytes = ENTRY, .job = AT(0, 2, 0, 16),
                                    .op = AT(2, 2, 0, 0), .end = AT(8, 8, 0, 0) };
    return desc;
}

static void feed(unsigned job, unsigned op, uint64_t end)
{
    unsigned char entry[ENTRY];
    put_entry(entry, job, op, end);
    CHECK_INT(npuprof_npu_feed(&npu, 0, entry, ENTRY), NPUPROF_OK);
}

/* Whole entries, at any address, become spans at once, with their submissions. */
static void spans(void)
{
    npuprof_npu_desc desc = queue();
    unsigned char buffer[1 + 3 * ENTRY], *const at = buffer + 1;
    open_npu(&desc);
    sim_advance(1000000);
    const uint32_t a = submit(1, "a"), b = submit(1, "b");
    sim_advance(100000);
    put_entry(at, b, 5, sim_truth() - 1000);
    put_entry(at + ENTRY, a, 6, sim_truth() - 500);
    put_entry(at + 2 * ENTRY, 77, 2000, sim_truth());
    CHECK_INT(npuprof_npu_feed(&npu, 0, at, 3 * ENTRY), NPUPROF_OK);
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "X", "op 5"), 1);
    CHECK_UINT(trace_count(t, "X", "op 6"), 1);
    CHECK_UINT(trace_count(t, "X", "op 0x7d0"), 1);
    CHECK_UINT(trace_count(t, "f", "submit"), 2);
    CHECK_INT(json_int(json_get(trace_event(t, "X", "op 5", 0), "args.job")), (int64_t)b);
}

/* Each code of a table of any length has its name, and what lies between them has none. */
static void names(void)
{
    static const npuprof_npu_op table[] = { { 1, "n1" }, { 3, "n3" }, { 5, "n5" }, { 7, "n7" }, { 9, "n9" },
                                            { 11, "n11" } };
    for (unsigned count = 0; count <= 6; count++) {
        npuprof_npu_desc desc = queue();
        desc.ring.ops = count ? table : NULL;
        desc.ring.op_count = count;
        open_npu(&desc);
        for (unsigned code = 0; code < 13; code++) {
            sim_advance(100000);
            feed(code, code, sim_truth());
        }
        json_node *t = closed();
        for (unsigned code = 0; code < 13; code++) {
            char name[16], op[16];
            snprintf(name, sizeof name, "n%u", code);
            snprintf(op, sizeof op, "op %u", code);
            const bool known = code % 2 && code < 2 * count;
            CHECK_UINT(trace_count(t, "X", name), known);
            CHECK_UINT(trace_count(t, "X", op), !known);
        }
        CHECK_INT(npuprof_clear(), NPUPROF_OK);
    }
}

/* All is taken, or nothing. */
static void refusals(void)
{
    npuprof_npu_desc desc = queue();
    unsigned char entry[ENTRY] = { 0 };
    npuprof_npu_desc polled = desc;
    npuprof_start(1);
    memset(&npu, 0, sizeof npu);
    CHECK_INT(npuprof_npu_feed(&npu, 0, entry, ENTRY), NPUPROF_ERR_NPU_NOT_OPEN);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    sim_advance(1000000);
    put_entry(entry, 1, 1, sim_truth());
    CHECK_INT(npuprof_npu_feed(&npu, 0, entry, ENTRY - 1), NPUPROF_ERR_ARGUMENT);
    CHECK(strstr(npuprof_result_string(NPUPROF_ERR_ARGUMENT), "entry_bytes") != NULL);
    CHECK_INT(npuprof_npu_feed(&npu, 0, NULL, ENTRY), NPUPROF_ERR_ARGUMENT);
    CHECK_INT(npuprof_npu_feed(&npu, 1, entry, ENTRY), NPUPROF_ERR_NPU_NO_RING);
    CHECK_INT(npuprof_npu_feed(&npu, 0, NULL, 0), NPUPROF_OK);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    sim.ones = true;
    sim_advance(100000000);
    CHECK_INT(npuprof_npu_feed(&npu, 0, entry, ENTRY), NPUPROF_ERR_NPU_DEAD);
    sim.ones = false;
    sim_advance(1000);
    CHECK_UINT(trace_count(closed(), "X", "op 1"), 0);
    polled.ring.feed = false;
    polled.ring.count = 8;
    polled.ring.offset = SIM_RING;
    polled.ring.producer.offset = SIM_PRODUCER;
    CHECK_STOP(npuprof_npu_open(&npu, &polled) == NPUPROF_OK);
    CHECK_INT(npuprof_npu_feed(&npu, 0, entry, ENTRY), NPUPROF_ERR_ARGUMENT);
    npuprof_npu_close(&npu);
}

/* Stamps that cannot be are counted by why: in the future, before the device was opened, of an epoch that is
   over for long. Those of the epoch before are drawn there. */
static void impossible_stamps(void)
{
    sim.start = 50000000;
    npuprof_npu_desc desc = queue();
    open_npu(&desc);
    sim_advance(1000000000);
    feed(0, 1, sim_truth() + 1000000);
    feed(0, 2, sim.start - 1000000);
    const uint64_t of_first = sim_truth();
    uint64_t ticks;
    for (unsigned i = 0; i < 2; i++) {        /* two resets; the second epoch is shorter than the first */
        sim.origin = sim.host;
        sim.start = 100;
        sim_advance(500000000);
        CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_RESET);
        sim_advance(100000000);
        CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    }
    feed(0, 3, of_first);
    feed(0, 4, sim_truth());
    json_node *t = closed();
    CHECK_INT(records(t, "lost_stamps"), 2);
    CHECK_INT(records(t, "lost_epoch"), 2);
    for (unsigned op = 1; op < 5; op++) CHECK(!op_span(t, op));
}

/* No stamp at all: from the submission to the feed, on the host's clock, and marked so. */
static void no_stamps(void)
{
    SIM_DESC(desc);
    unsigned char cq[4];
    desc.ring = (npuprof_npu_ring){ .feed = true, .entry_bytes = 4, .job = AT(0, 4, 0, 12),
                                    .stamp_clock = NPUPROF_NPU_STAMP_NONE };
    open_npu(&desc);
    sim_advance(1000000);
    uint64_t begun = 0;
    WITH_NPU_PROFILER(&npu, 3, "infer", "NPU", PROF_NO_ARGS, {
        npuprof_npu_set_job(&npu, 0x127A5);      /* the device brings back 12 bits */
        begun = sim.host;
        sim_advance(5000);
    });
    sim_advance(250000);
    put(cq, 4, 0xC00007A5u);             /* Gaudi: A5 07 00 C0 */
    CHECK_INT(npuprof_npu_feed(&npu, 0, cq, 4), NPUPROF_OK);
    const uint64_t fed = sim.host;
    put(cq, 4, 0xC0000001u);             /* of nobody: no time, no arrow */
    CHECK_INT(npuprof_npu_feed(&npu, 0, cq, 4), NPUPROF_OK);
    json_node *t = closed(), *d = NULL;
    for (size_t i = 0; (d = trace_event(t, "X", "infer", i)) != NULL; i++)
        if (json_get(d, "args.stamp")) break;
    CHECK_STOP(d != NULL);
    CHECK_STR(json_text(json_get(d, "args.stamp")), "host");
    CHECK(json_get(d, "args.start_ticks") == NULL);
    CHECK_INT(arg(d, "job"), 0x7A5);
    CHECK(trace_dur(d) >= 255000 && trace_dur(d) <= (int64_t)(fed - begun) + 1000);
    CHECK_UINT(trace_count(t, "f", "submit"), 1);
    json_node *of_nobody = trace_event(t, "X", "job", 0);
    CHECK_STOP(of_nobody != NULL);
    CHECK_INT(trace_dur(of_nobody), 0);
    json_node *sync = clock_sync(t);
    CHECK_INT(json_int(json_get(sync, "spans")), 0);
    CHECK_INT(json_int(json_get(sync, "host_spans")), 2);
}

/* Several records a job: the first has the arrow, the last ends it. */
static void records_of_a_job(void)
{
    npuprof_npu_desc desc = queue();
    open_npu(&desc);
    sim_advance(1000000);
    WITH_NPU_PROFILER(&npu, 3, "sliced", "NPU", PROF_NO_ARGS, {
        npuprof_npu_set_job(&npu, 0x123450007u);
        npuprof_npu_set_job_records(&npu, 3);
        sim_advance(5000);
    });
    for (unsigned i = 0; i < 4; i++) {
        sim_advance(10000);
        feed(7, i, sim_truth());
    }
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "f", "submit"), 1);
    for (unsigned i = 0; i < 4; i++) {
        json_node *e = op_span(t, i);
        CHECK_STOP(e != NULL);
        CHECK((json_get(e, "args.stream") != NULL) == (i < 3));
    }
}

/* Numbers in the entries: a gap is counted, a device that numbers nothing is taken as it is. */
static void numbered_events(void)
{
    SIM_DESC(desc);
    unsigned char eq[64];
    desc.ring = (npuprof_npu_ring){
        .feed = true, .entry_bytes = 64, .sequence = AT(4, 4, 0, 16), .op = AT(4, 4, 16, 12),
        .args = { { AT(8, 8, 0, 0), "DATA0" } }, .all_are = NPUPROF_NPU_KIND_INSTANT,
        .stamp_clock = NPUPROF_NPU_STAMP_NONE };
    open_npu(&desc);
    memset(eq, 0, sizeof eq);
    put(eq + 4, 4, 0x81230004u);         /* Gaudi: event 0x123, index 4 */
    put(eq + 8, 8, 99);
    CHECK_INT(npuprof_npu_feed(&npu, 0, eq, 64), NPUPROF_OK);
    put(eq + 4, 4, 0x81230006u);
    CHECK_INT(npuprof_npu_feed(&npu, 0, eq, 64), NPUPROF_OK);
    put(eq + 4, 4, 0x81240007u);
    CHECK_INT(npuprof_npu_feed(&npu, 0, eq, 64), NPUPROF_OK);
    json_node *t = closed(), *e = trace_event(t, "i", "op 291", 0);
    CHECK_STOP(e != NULL);
    CHECK_INT(arg(e, "DATA0"), 99);
    CHECK_UINT(trace_count(t, "i", "op 291"), 2);
    CHECK_UINT(trace_count(t, "i", "op 292"), 1);
    CHECK_INT(records(t, "lost_overwritten"), 1);
}

/* Rings of one device, each with PEs of its own. */
static void many_rings(void)
{
    static const npuprof_npu_lane cores[] = { { 0x10001, "core 1,1" }, { 0x20001, "core 2,1" } };
    npuprof_npu_ring rings[2];
    unsigned char entry[ENTRY];
    npuprof_npu_desc desc = queue();
    desc.ring.pe = (npuprof_npu_field)AT(4, 4, 0, 0);
    rings[0] = rings[1] = desc.ring;
    rings[1].pe_base = 3;
    rings[0].lanes = cores;
    rings[0].lane_count = 2;
    memset(&desc.ring, 0, sizeof desc.ring);
    desc.rings = rings;
    desc.ring_count = 2;
    desc.pe_count = 4;
    open_npu(&desc);
    static const struct { unsigned ring, pe, lane; } fed[] = {
        { 0, 0x20001, 1 }, { 0, 0x10001, 0 }, { 0, 0x30001, 2 }, { 0, 0x40001, 3 }, { 0, 0x50001, 3 },
        { 1, 0, 3 } };
    for (unsigned i = 0; i < 6; i++) {
        sim_advance(1000000);
        put_entry(entry, i, i, sim_truth());
        put(entry + 4, 4, fed[i].pe);
        CHECK_INT(npuprof_npu_feed(&npu, fed[i].ring, entry, ENTRY), NPUPROF_OK);
    }
    json_node *t = closed(), *m;
    for (unsigned i = 0; i < 6; i++) {
        json_node *e = op_span(t, i);
        CHECK_STOP(e != NULL);
        CHECK_INT(arg(e, "pe_index"), (int64_t)fed[i].lane);
    }
    bool named = false;
    for (size_t i = 0; (m = trace_event(t, "M", "thread_name", i)) != NULL; i++)
        named = named || strstr(json_text(json_get(m, "args.name")), "sim core 2,1") != NULL;
    CHECK(named);
    CHECK_INT(records(t, "past_last_lane"), 1);
}

/* A name for one value: the numbers of PEs stay, but for the one whose PE the name has. Padding takes no
   lane. */
static void one_name(void)
{
    static const npuprof_npu_lane dma[] = { { 9, "dma" } };
    static const npuprof_npu_kind kinds[] = { { 0, NPUPROF_NPU_KIND_SPAN }, { 7, NPUPROF_NPU_KIND_SKIP } };
    static const struct { unsigned kind, pe, lane; } fed[] = {
        { 7, 0xFFF, 0 }, { 0, 0, 3 }, { 7, 0xFFE, 0 }, { 0, 1, 1 }, { 0, 9, 0 }, { 0, 2, 2 }, { 0, 0, 3 } };
    unsigned char entry[ENTRY];
    npuprof_npu_desc desc = queue();
    desc.pe_count = 4;
    desc.ring.pe = (npuprof_npu_field)AT(4, 4, 0, 16);
    desc.ring.kind = (npuprof_npu_field)AT(4, 4, 28, 4);
    desc.ring.kinds = kinds;
    desc.ring.kind_count = 2;
    desc.ring.lanes = dma;
    desc.ring.lane_count = 1;
    open_npu(&desc);
    for (unsigned i = 0; i < 7; i++) {
        sim_advance(1000000);
        put_entry(entry, i, i, sim_truth());
        put(entry + 4, 4, fed[i].pe | fed[i].kind << 28);
        CHECK_INT(npuprof_npu_feed(&npu, 0, entry, ENTRY), NPUPROF_OK);
    }
    json_node *t = closed();
    for (unsigned i = 0; i < 7; i++) {
        json_node *e = op_span(t, i);
        CHECK((e == NULL) == (fed[i].kind != 0));
        if (e) CHECK_INT(arg(e, "pe_index"), (int64_t)fed[i].lane);
    }
    CHECK(json_get(clock_sync(t), "records") == NULL);
}

CHECK_MAIN(CASE(spans), CASE(names), CASE(refusals), CASE(impossible_stamps), CASE(no_stamps),
           CASE(records_of_a_job), CASE(numbered_events), CASE(many_rings), CASE(one_name))

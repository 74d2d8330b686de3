/* the completion ring: following the index, sequence numbers, stamps, matching jobs
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION
#include "fixture.h"

enum { ENTRY = 40, COUNT = 16, OP_EXECUTION = 0 };
static const npuprof_npu_op ops[] = { { 0, "Execution" }, { 1, "Load" }, { 2, "Conv" } };
static uint32_t wrote;             /* records since reset */
static unsigned stamp_bits = 64;

/* sequence 4 | job 4 | op 2 | pe 1 | status 1 | execution 4 | instruction 4 | - 4 | start 8 | end 8 */
static void put_entry(uint32_t number, uint32_t job, unsigned op, unsigned pe, uint64_t start, uint64_t end)
{
    size_t at = SIM_RING + (number % COUNT) * ENTRY;
    sim_store(at + 4, 4, job);
    sim_store(at + 8, 2, op);
    sim_store(at + 10, 1, pe);
    sim_store(at + 11, 1, op == 2 ? 5 : 0);
    sim_store(at + 12, 4, job * 10);
    sim_store(at + 16, 4, op);
    sim_store(at + 24, 8, (sim.down ? ~start : start) & sim_mask(stamp_bits));
    sim_store(at + 32, 8, (sim.down ? ~end : end) & sim_mask(stamp_bits));
    sim_store(at, 4, number);
}

static void announce(void) { sim_store(SIM_PRODUCER, 4, wrote); }

/* The device finishes something that took the last `ticks` ticks. */
static void complete(uint32_t job, unsigned op, unsigned pe, uint64_t ticks)
{
    uint64_t now = sim_truth();
    put_entry(wrote, job, op, pe, now - ticks, now);
    wrote++;
    announce();
}

static npuprof_npu_desc ringed(void)
{
    npuprof_npu_desc desc = sim_desc();
    desc.pe_count = 4;
    desc.ring = (npuprof_npu_ring){
        .offset = SIM_RING, .entry_bytes = ENTRY, .count = COUNT, .big_endian = sim.big,
        .producer = { .offset = SIM_PRODUCER },
        .sequence = AT(0, 4, 0, 0), .job = AT(4, 4, 0, 0), .op = AT(8, 2, 0, 0), .pe = AT(10, 1, 0, 0),
        .status = AT(11, 1, 0, 0), .execution = AT(12, 4, 0, 0), .instruction = AT(16, 4, 0, 0),
        .start = AT(24, 8, 0, 0), .end = AT(32, 8, 0, 0),
        .ops = ops, .op_count = 3, .execution_op = OP_EXECUTION + 1
    };
    return desc;
}

static void open_ringed(void)
{
    const npuprof_npu_desc desc = ringed();
    open_npu(&desc);
}

/* The host span that the device span with this job and name was submitted by, through its flow arrow. */
static json_node *span_of_job(json_node *t, const char *name, int64_t job)
{
    json_node *e;
    for (size_t i = 0; (e = trace_event(t, "X", name, i)) != NULL; i++)
        if (arg(e, "job") == job) return e;
    return NULL;
}

/* Whole executions have a track of their own above their instructions, and the arrow ends there, though both
   begin at once; each says its stream. What comes before the first execution does not change that. */
static void tracks(void)
{
    open_ringed();
    sim_sync(1000000);
    const uint32_t a = submit(2, "first");
    sim_advance(100000);
    complete(a, 1, 2, 2400);
    complete(a, 2, 2, 1000);
    complete(a, OP_EXECUTION, 2, 1000);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    json_node *t = closed(), *execution = trace_event(t, "X", "Execution", 0),
        *conv = trace_event(t, "X", "Conv", 0);
    json_node *load = trace_event(t, "X", "Load", 0), *end = trace_event(t, "f", "submit", 0);
    CHECK_STOP(execution && conv && load && end);
    CHECK_INT(trace_start(execution), trace_start(conv));
    CHECK_INT(trace_tid(end), trace_tid(execution));
    CHECK_INT(trace_tid(load), trace_tid(conv));
    CHECK(trace_tid(execution) < trace_tid(conv));
    CHECK_STR(trace_track(t, execution), "sim PE 2");
    CHECK_STR(trace_track(t, conv), "sim PE 2 instructions");
    CHECK_INT(arg(execution, "stream"), 2);
    CHECK_INT(arg(conv, "stream"), 2);
}

/* Records become device spans with names and arguments, whatever the order they complete in; nothing is read
   while submitting. */
static void drain(void)
{
    npuprof_npu_desc desc = ringed();
    wrote = 5;
    announce();
    open_npu(&desc);     /* what was there before is left out */
    sim_sync(1000000);
    uint32_t loads = npu.mmio_reads, a = submit(0, "first"), b = submit(1, "second");
    CHECK_UINT(npu.mmio_reads, loads);
    CHECK(a && b && a != b);
    sim_advance(100000);
    complete(b, 1, 1, 500);
    complete(b, 2, 1, 400);
    complete(b, 17, 1, 300);
    complete(b, OP_EXECUTION, 1, 600);
    complete(a, OP_EXECUTION, 0, 700);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    sim_advance(1000000);
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "X", "Execution"), 2);
    CHECK_UINT(trace_count(t, "X", "Load"), 1);
    CHECK_UINT(trace_count(t, "X", "Conv"), 1);
    CHECK_UINT(trace_count(t, "X", "op 17"), 1);
    CHECK_UINT(trace_count(t, "s", NULL), 2);
    CHECK_UINT(trace_count(t, "f", NULL), 2);
    json_node *conv = trace_event(t, "X", "Conv", 0), *execution = span_of_job(t, "Execution", b);
    CHECK_INT(arg(conv, "job"), b);
    CHECK_INT(arg(conv, "status"), 5);
    CHECK_INT(arg(conv, "execution_index"), b * 10);
    CHECK_INT(arg(conv, "instruction_index"), 2);
    CHECK(execution && !json_get(execution, "args.instruction_index") && !json_get(execution, "args.status"));
    CHECK_STR(json_text(json_get(execution, "args.stamp")), "device");
    CHECK_INT(trace_dur(execution), 600 * 40);                   /* 25 MHz */
    CHECK_UINT(lost(), 0);
}

/* An index that runs ahead of its entry: the entry is taken later. One that is overwritten while read is
   lost, not mixed. */
static void sequence_numbers(void)
{
    open_ringed();
    for (unsigned i = 0; i < 20; i++) {
        sim_advance(100000);
        complete(i, 2, 0, 5);
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    }
    wrote++;
    announce();                                                  /* number 20, entry not there yet */
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(npu.queues_[0].next, 20);
    put_entry(20, 20, 2, 0, sim_truth() - 5, sim_truth());
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(npu.queues_[0].next, 21);
    for (unsigned i = 0; i < COUNT; i++) complete(100 + i, 2, 0, 5);
    /* the device begins entry 37 in the place of 21 */
    sim_store(SIM_RING + (21 % COUNT) * ENTRY, 4, ~(uint32_t)37);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(npu.queues_[0].next, 37);
    CHECK_UINT(lost(), 1);
    npuprof_npu_close(&npu);
    CHECK_UINT(recorded(), 21 + COUNT - 1);
}

/* What the index announced, and was not there when the device was closed, is lost. */
static void announced_and_never_there(void)
{
    open_ringed();
    sim_advance(100000);
    complete(1, 2, 0, 5);
    wrote += 2;
    announce();
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(lost(), 0);
    npuprof_npu_close(&npu);
    CHECK_UINT(lost(), 2);
    CHECK_UINT(trace_count(written(), "X", "Conv"), 1);
}

/* Stamps of fewer bits, counting down, big-endian: the same spans. */
static void narrow_stamps(void)
{
    npuprof_start(1);
    for (int kind = 0; kind < 8; kind++) {
        stamp_bits = kind & 1 ? 24 : 40;
        sim.down = kind & 2;
        sim.big = kind & 4;
        sim.bits = 40;
        sim.origin = sim.host;
        sim.start = 0xFFFFFF;                                    /* 24 bits wrap in 0.67 s */
        wrote = 0;
        npuprof_npu_desc desc = ringed();
        desc.ring.start.bits = desc.ring.end.bits = (uint8_t)stamp_bits;
        desc.ring.max_age_ms = 1;
        announce();
        CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
        sim_sync(1000000);
        for (unsigned i = 0; i < 10; i++) {
            sim_advance(100000000);
            complete(1000u * (unsigned)kind + i, 2, 0, 1000000);
            sim_advance(400000000);
            CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
        }
        npuprof_npu_close(&npu);
    }
    json_node *t = written();
    int64_t first = 0;
    for (int kind = 0; kind < 8; kind++) {
        for (int i = 0; i < 10; i++) {
            json_node *e = span_of_job(t, "Conv", 1000 * kind + i);
            CHECK_STOP(e != NULL);
            if (trace_dur(e) < 39999000 || trace_dur(e) > 40001000) CHECK_INT(trace_dur(e), 40000000);
            if (i) CHECK(trace_start(e) - first > 499990000 && trace_start(e) - first < 500010000);
            first = trace_start(e);
        }
    }
}

/* Impossible stamps make no span, and are counted. */
static void impossible_stamps(void)
{
    open_ringed();
    sim_advance(1000000);
    put_entry(wrote++, 1, 2, 0, sim_truth(), sim_truth() - 1);
    put_entry(wrote++, 2, 2, 0, sim_truth(), UINT64_MAX);
    put_entry(wrote++, 3, 2, 0, sim_truth() - 1, sim_truth());
    announce();
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(lost(), 2);
    CHECK_UINT(trace_count(closed(), "X", "Conv"), 1);
}

/* A reset starts counter and index again; what comes after is drawn. An index that makes no sense is said. */
static void device_reset(void)
{
    npuprof_npu_desc desc = ringed();
    npuprof_start(1);
    sim.start = 900000000;
    sim_advance(0);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    for (unsigned i = 0; i < 5; i++) {
        sim_advance(10000000);
        complete(i, 2, 0, 5);
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    }
    complete(7, 2, 0, 50);                                       /* of the time before, seen after */
    put_entry(0, 8, 2, 0, 100, 200);
    put_entry(1, 7, 2, 0, sim_truth() - 50, sim_truth());
    wrote = 2;
    announce();
    sim.origin = sim.host;
    sim.start = 1;
    sim_advance(1000000);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_ERR_NPU_RING);
    CHECK_UINT(npu.epoch_, 1);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    sim_advance(1000000);
    complete(9, 2, 0, 5);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    sim_advance(1000000);
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "X", "Conv"), 8);
    CHECK(trace_end(span_of_job(t, "Conv", 7)) <= trace_start(span_of_job(t, "Conv", 8)));
    CHECK_UINT(lost(), 0);
}

/* Numbers chosen by the device; the same number twice. */
static void device_chooses_the_number(void)
{
    open_ringed();
    for (unsigned i = 0; i < 6; i++) {
        sim_advance(1000000);
        WITH_NPU_PROFILER(&npu, 0, "submit", "NPU", PROF_NO_ARGS,
                          { sim_advance(100); npuprof_npu_set_job(&npu, i % 2); });
        sim_advance(1000000);
        if (i != 2) complete(i % 2, OP_EXECUTION, 0, 5);
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    }
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "X", "Execution"), 5);
    CHECK_UINT(trace_count(t, "s", NULL), 5);
}

/* No numbers at all: in order for each PE. */
static void in_order(void)
{
    open_ringed();
    static const char *const names[] = { "a", "b", "c", "d" };
    for (unsigned i = 0; i < 4; i++) {
        sim_advance(1000000);
        WITH_NPU_PROFILER(&npu, i % 2, names[i], "NPU", PROF_NO_ARGS, sim_advance(100));
    }
    sim_advance(1000000);
    complete(77, 1, 1, 100);
    complete(77, OP_EXECUTION, 1, 100);          /* b */
    complete(78, OP_EXECUTION, 1, 50);           /* d */
    complete(79, OP_EXECUTION, 0, 100);          /* a */
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    sim_advance(1000000);
    complete(80, OP_EXECUTION, 0, 100);          /* c */
    complete(81, OP_EXECUTION, 0, 50);           /* nobody's */
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "X", "Execution"), 5);
    CHECK_UINT(trace_count(t, "s", NULL), 4);
    for (unsigned i = 0; i < 4; i++) {
        static const int64_t jobs[] = { 79, 77, 80, 78 };
        json_node *e = span_of_job(t, "Execution", jobs[i]), *flow;
        bool found = false;
        for (size_t k = 0; (flow = trace_event(t, "f", NULL, k)) != NULL; k++) {
            json_node *from;
            if (trace_tid(flow) != trace_tid(e) || json_us_as_ns(json_get(flow, "ts")) != trace_start(e))
                continue;
            for (size_t j = 0; (from = trace_event(t, "s", NULL, j)) != NULL; j++) {
                if (strcmp(json_text(json_get(from, "id")), json_text(json_get(flow, "id"))) != 0) continue;
                json_node *host = trace_event(t, "X", names[i], 0);
                int64_t at = json_us_as_ns(json_get(from, "ts"));
                found = found || (at >= trace_start(host) && at <= trace_end(host));
            }
        }
        if (!found) check_failed_(__FILE__, __LINE__, "no arrow from %s to job %d", names[i], (int)jobs[i]);
    }
}

/* What was submitted while recording was off stays out, even when it is drained later; the other way round it
   comes in. */
static void gate(void)
{
    open_ringed();
    uint32_t a = submit(0, "on");
    npuprof_pause();
    uint32_t b = submit(0, "off");
    sim_advance(1000000);
    complete(a, OP_EXECUTION, 0, 100);
    complete(4000, OP_EXECUTION, 0, 50);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    npuprof_resume();
    complete(b, OP_EXECUTION, 0, 20);
    complete(4001, OP_EXECUTION, 0, 10);
    npuprof_npu_drain(&npu);
    npuprof_stop();
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "X", "Execution"), 2);
    CHECK(span_of_job(t, "Execution", a) != NULL);
    CHECK(span_of_job(t, "Execution", 4001) != NULL);
    CHECK_UINT(trace_count(t, "s", NULL), 1);
}

/* More open submissions than the table holds: the oldest lose their arrow, nothing else. */
static void many_submissions(void)
{
    enum { JOBS = 300, ROOM = 256 };
    static uint32_t jobs[JOBS];
    open_ringed();
    for (unsigned i = 0; i < JOBS; i++) jobs[i] = submit(0, "submit");
    for (unsigned i = 0; i < JOBS; i++) {
        sim_advance(10000);
        complete(jobs[i], OP_EXECUTION, 0, 5);
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    }
    npuprof_npu_walk_ open = npuprof_npu_walk_of_(&npu, npu.used_);
    CHECK(npuprof_npu_next_job_(&open) == NULL);
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "X", "Execution"), JOBS);
    CHECK_UINT(trace_count(t, "s", NULL), ROOM);
    CHECK_UINT(records(t, "dropped_jobs"), JOBS - ROOM);
}

/* The place of a job that is over goes to one newer than the one behind it. By order, then by number. */
static void oldest_is_behind(void)
{
    static const char *const names[] = { "over", "oldest", "newest" };
    open_ringed();
    for (unsigned i = 0; i < 6; i++) {
        WITH_NPU_PROFILER(&npu, 0, names[i % 3], "NPU", PROF_NO_ARGS,
                          { sim_advance(1000); if (i >= 3) npuprof_npu_set_job(&npu, 7); });
        for (unsigned left = i % 3; left; left--) {
            complete(7, OP_EXECUTION, 0, 5);
            CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
            if (left == 2) CHECK_STR(npu.jobs_[0].name, "newest");
            if (left == 2) CHECK_INT(npu.jobs_[0].state, NPUPROF_NPU_JOB_OPEN_);
        }
    }
}

static uint32_t submit_kind(bool numbered)
{
    if (numbered) return submit(0, "numbered");
    WITH_NPU_PROFILER(&npu, 0, "in order", "NPU", PROF_NO_ARGS, sim_advance(1000));
    return 7;
}

/* The thread that holds a submission does not run: the record stays in the ring, but not for ever. */
static void held_submission(void)
{
    for (unsigned kind = 0; kind < 10; kind++) {
        const bool numbered = kind < 5;
        wrote = 0;
        npuprof_npu_desc desc = ringed();
        announce();
        open_npu(&desc);
        sim_advance(1000000);
        const uint32_t id = submit_kind(numbered);
        npuprof_npu_walk_ open = npuprof_npu_walk_of_(&npu, npu.used_);
        npuprof_npu_job_ *job = npuprof_npu_next_job_(&open);
        CHECK_STOP(job != NULL);
        CHECK_UINT(job->state, NPUPROF_NPU_JOB_OPEN_);
        job->state = NPUPROF_NPU_JOB_HELD_;
        sim_advance(10000);
        complete(id, OP_EXECUTION, 0, 5);
        for (int i = 0; i < 3; i++) {
            CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
            CHECK_UINT(npu.late_count_, 1);
            sim_advance(300000000);
        }
        bool arrow = false, close_now = false;
        switch (kind % 5) {
        case 0: arrow = true; break;                             /* it runs again */
        case 1: sim_advance(200000000); break;                   /* more than a second */
        /* more wait behind it than there is room for */
        case 2:
            for (unsigned i = 0; i < 80; i++) {
                complete(5000 + i, OP_EXECUTION, 0, 5);
                if (i % COUNT == COUNT - 1) CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
            }
            break;
        case 3: close_now = true; break;
        /* whatever else there is in the meantime */
        default: arrow = true; submit_kind(numbered); break;
        }
        if (arrow) job->state = NPUPROF_NPU_JOB_OPEN_;
        if (!close_now) {
            CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
            if (kind % 5 != 2) CHECK_UINT(npu.late_count_, 0);
        }
        npuprof_npu_close(&npu);
        CHECK_UINT(lost(), 0);
        json_node *t = written(), *flow = NULL;
        size_t arrows = 0;
        json_node *e = span_of_job(t, "Execution", id);
        CHECK_STOP(e != NULL);
        for (size_t i = 0; (flow = trace_event(t, "f", NULL, i)) != NULL; i++)
            arrows += json_us_as_ns(json_get(flow, "ts")) == trace_start(e);
        if (arrows != arrow) check_failed_(__FILE__, __LINE__, "kind %u: %zu arrows", kind, arrows);
        npuprof_clear();
    }
}

/* An entry that is held does not cost the next submission its arrow. */
static void held_entry(void)
{
    open_ringed();
    npu.used_[0] = 1;
    npu.jobs_[0].state = NPUPROF_NPU_JOB_HELD_;
    const uint32_t id = submit(0, "submit");
    sim_advance(10000);
    complete(id, OP_EXECUTION, 0, 5);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(npu.queues_[0].next, 1);
    CHECK_UINT(trace_count(closed(), "s", NULL), 1);
}

/* Every way out of a block ends it, and its submission. */
static int leave_by_return(void)
{
    WITH_NPU_PROFILER(&npu, 0, "return", "NPU", PROF_NO_ARGS, { (void)npuprof_npu_job(&npu); return 1; });
    return 0;
}

static void ways_out(void)
{
    npuprof_npu_walk_ walk;
    open_ringed();
    CHECK_INT(leave_by_return(), 1);
    for (int i = 0; i < 3; i++) {
        WITH_NPU_PROFILER(&npu, i, "loop", "NPU", PROF_ARGS(PROF_INT("i", i)),
                          if (i == 1) break; if (i == 0) continue; CHECK(false));
    }
    WITH_NPU_PROFILER(&npu, &npu, "goto", "NPU", PROF_NO_ARGS, goto out);
    CHECK(false);
out:
    walk = npuprof_npu_walk_of_(&npu, npu.used_);
    for (npuprof_npu_job_ *job; (job = npuprof_npu_next_job_(&walk)) != NULL;)
        CHECK(!(job->flags & NPUPROF_NPU_IN_BLOCK_));
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "X", "return"), 1);
    CHECK_UINT(trace_count(t, "X", "loop"), 2);
    CHECK_UINT(trace_count(t, "X", "goto"), 1);
}

static void no_ring(void)
{
    SIM_DESC(desc);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_ERR_NPU_NO_RING);
    npuprof_npu_close(&npu);
}

static void dead_while_draining(void)
{
    open_ringed();
    sim_advance(1000000);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    complete(1, 2, 0, 5);
    sim.ones = true;
    sim_store(SIM_PRODUCER, 4, 0xFFFFFFFFu);
    sim_advance(1000000);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_ERR_NPU_DEAD);
    sim.ones = false;
    announce();
    sim_advance(1000000);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    CHECK_UINT(trace_count(closed(), "X", "Conv"), 1);
    CHECK_UINT(lost(), 0);
}

CHECK_MAIN(CASE(tracks), CASE(drain), CASE(sequence_numbers), CASE(announced_and_never_there),
           CASE(narrow_stamps), CASE(impossible_stamps), CASE(device_reset), CASE(device_chooses_the_number),
           CASE(in_order), CASE(gate), CASE(many_submissions), CASE(oldest_is_behind), CASE(held_submission),
           CASE(held_entry), CASE(ways_out), CASE(no_ring), CASE(dead_while_draining))

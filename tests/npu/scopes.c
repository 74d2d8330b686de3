/* test: san=address,undefined - whose a record is: numbers that are unique in a queue only,
   numbers that come late, many open submissions
   SPDX-License-Identifier: MIT */
#include "fixture.h"
#include <pthread.h>

/* job 4 | end 8 */
enum { ENTRY = 16, CHANNELS = 2, JOBS = 2000, ALL_JOBS = 20000 };
static npuprof_npu_ring rings[CHANNELS];

static npuprof_npu_desc queues(unsigned count, unsigned bits, int scope)
{
    npuprof_npu_desc desc = sim_desc();
    for (unsigned i = 0; i < count; i++)
        rings[i] = (npuprof_npu_ring){ .feed = true, .entry_bytes = ENTRY, .job = AT(0, 4, 0, (uint8_t)bits),
                                       .end = AT(8, 8, 0, 0), .pe_base = i, .job_scope = scope };
    desc.rings = rings;
    desc.ring_count = desc.pe_count = count;
    return desc;
}

/* A queue whose records have `bits` of the number of a job. */
static void open_queue(unsigned bits)
{
    const npuprof_npu_desc desc = queues(1, bits, 0);
    open_npu(&desc);
}

static void feed(unsigned ring, uint64_t job)
{
    unsigned char entry[ENTRY];
    put(entry, 4, job);
    put(entry + 8, 8, sim_truth());
    CHECK_INT(npuprof_npu_feed(&npu, ring, entry, sizeof entry), NPUPROF_OK);
}

/* Spans of a device whose submission's name is `name`, or which have none: "job". */
static size_t spans_of(json_node *t, const char *name)
{
    size_t n = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next)
        n += json_get(e, "args.job") != NULL && !strcmp(json_get(e, "name")->text, name);
    return n;
}

/* Channels that count their own jobs, as many ahead of each other as it comes: no job has another's name. */
static void two_channels_of(unsigned jobs)
{
    static const char *const names[CHANNELS] = { "zero", "one" };
    npuprof_npu_desc desc = queues(CHANNELS, 16, 0);
    uint32_t next[CHANNELS] = { 0, 40 }, done[CHANNELS] = { 0, 40 }, random = 1;
    json_node *e;
    open_npu(&desc);
    for (unsigned i = 0; i < jobs;) {
        random = random * 1664525 + 1013904223;
        const unsigned c = random >> 31, ahead = next[c] - done[c];
        sim_advance(1000);
        if (random >> 30 & 1 ? ahead < 90 : !ahead) {
            WITH_NPU_PROFILER(&npu, c, names[c], "NPU", PROF_NO_ARGS,
                              npuprof_npu_set_job(&npu, next[c] & 0xFFFF));
            next[c]++;
            i++;
        } else {
            feed(c, done[c]++ & 0xFFFF);
        }
    }
    for (unsigned c = 0; c < CHANNELS; c++)
        while (done[c] != next[c]) feed(c, done[c]++ & 0xFFFF);
    json_node *t = closed();
    CHECK_UINT(spans_of(t, "zero") + spans_of(t, "one"), jobs);
    CHECK_UINT(trace_count(t, "f", "submit"), jobs);
    int64_t track[CHANNELS] = { -1, -1 };
    size_t wrong = 0;
    for (e = json_get(t, "traceEvents")->first; e; e = e->next) {
        if (!json_get(e, "args.job")) continue;
        const int64_t c = arg(e, "stream");
        if (track[c] < 0) track[c] = trace_tid(e);
        wrong += track[c] != trace_tid(e) || strcmp(json_get(e, "name")->text, names[c]) != 0;
    }
    CHECK_UINT(wrong, 0);
    CHECK(track[0] != track[1]);
}

static void two_channels(void) { two_channels_of(JOBS); }
static void two_channels_long(void) { two_channels_of(ALL_JOBS); }

/* A lane as the scope: a submission that says another lane than its record is none of it, and counted. */
static void lanes(void)
{
    npuprof_npu_desc desc = queues(1, 16, NPUPROF_NPU_SCOPE_LANE);
    rings[0].pe = (npuprof_npu_field)AT(4, 1, 0, 0);
    desc.pe_count = 2;
    open_npu(&desc);
    WITH_NPU_PROFILER(&npu, 1, "one", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, 5));
    sim_advance(1000000);
    feed(0, 5);                                  /* of lane 0 */
    json_node *t = closed();
    CHECK_UINT(spans_of(t, "job"), 1);
    CHECK_UINT(records(t, "ambiguous_jobs"), 1);
    CHECK_UINT(records(t, "open_jobs"), 1);
}

/* A number that is used again before the first record of it was fed: each record is its own submission's. */
static void used_again(void)
{
    open_queue(8);
    WITH_NPU_PROFILER(&npu, 0, "first", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, 5));
    WITH_NPU_PROFILER(&npu, 0, "second", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, 0x105));
    sim_advance(1000000);
    feed(0, 5);
    sim_advance(1000000);
    feed(0, 5);
    json_node *t = closed();
    json_node *const first = trace_event(t, "X", "first", 1);
    json_node *const second = trace_event(t, "X", "second", 1);
    CHECK_STOP(first && second);
    CHECK(trace_end(first) < trace_end(second));
}

/* One long job beside many short ones keeps its arrow. */
static void long_job(void)
{
    open_queue(32);
    WITH_NPU_PROFILER(&npu, 0, "prefill", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, 1));
    for (unsigned i = 2; i < 5002; i++) {
        WITH_NPU_PROFILER(&npu, 0, "vision", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, i));
        sim_advance(10000);
        feed(0, i);
    }
    feed(0, 1);
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "f", "submit"), 5001);
    CHECK_UINT(records(t, "dropped_jobs") + records(t, "open_jobs"), 0);
    CHECK_UINT(spans_of(t, "prefill"), 1);
}

/* More open than the table holds, with numbers that return: what was dropped takes no other's record. */
static void dropped(void)
{
    npuprof_npu_desc desc = queues(1, 8, 0);
    enum { OPEN = 100, ROOM = 64 };
    desc.job_count = ROOM - 10;                  /* rounded up */
    open_npu(&desc);
    for (unsigned i = 0; i < OPEN; i++)
        WITH_NPU_PROFILER(&npu, 0, "early", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, i));
    feed(0, 99);
    WITH_NPU_PROFILER(&npu, 0, "again", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, 3));
    feed(0, 3);                                  /* of the job that was dropped, or of the new one */
    feed(0, 3);
    json_node *t = closed();
    CHECK_UINT(records(t, "dropped_jobs"), OPEN - ROOM);
    CHECK_UINT(records(t, "ambiguous_jobs"), 1);
    CHECK_UINT(records(t, "open_jobs"), ROOM - 1);
    CHECK_UINT(spans_of(t, "again"), 0);
    CHECK_UINT(spans_of(t, "job"), 2);
}

/* Records that are fed before their submission has its number: its thread was preempted. */
static void number_late(void)
{
    enum { MANY = 1000 };
    open_queue(16);
    WITH_NPU_PROFILER(&npu, 0, "first", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, 9999));
    for (unsigned i = 0; i < MANY; i++) {
        const uint32_t handle = npuprof_npu_begin(&npu, 0, "handle", "NPU", PROF_NO_ARGS);
        sim_advance(2000);
        if (i % 2) feed(0, i);
        WITH_NPU_PROFILER(&npu, 0, "block", "NPU", PROF_NO_ARGS, {
            sim_advance(2000);
            feed(0, MANY + i);
            npuprof_npu_set_job(&npu, MANY + i);
        });
        CHECK_INT(npuprof_npu_set_job_of(&npu, handle, i), NPUPROF_OK);
        CHECK_INT(npuprof_npu_end(&npu, handle), NPUPROF_OK);
        if (i % 2 == 0) feed(0, i);
    }
    feed(0, 9999);
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "f", "submit"), 2 * MANY + 1);
    CHECK_UINT(spans_of(t, "handle"), MANY);
    CHECK_UINT(spans_of(t, "block"), MANY);
    CHECK_UINT(records(t, "open_jobs"), 0);
}

/* A record that is nobody's waits for a second at most, and only for submissions before it. */
static void foreign(void)
{
    open_queue(16);
    const uint32_t open = npuprof_npu_begin(&npu, 0, "open", "NPU", PROF_NO_ARGS);
    CHECK_INT(npuprof_npu_set_job_of(&npu, open, 1), NPUPROF_OK);
    feed(0, 77);
    CHECK_UINT(npu.late_count_, 1);
    sim_advance(1100000000);
    WITH_NPU_PROFILER(&npu, 0, "new", "NPU", PROF_NO_ARGS, feed(0, 1); npuprof_npu_set_job(&npu, 77));
    CHECK_UINT(npu.late_count_, 0);
    CHECK_INT(npuprof_npu_end(&npu, open), NPUPROF_OK);
    json_node *t = closed();
    CHECK_UINT(spans_of(t, "open"), 1);
    CHECK_UINT(spans_of(t, "job"), 1);
    CHECK_UINT(spans_of(t, "new"), 0);
}

/* The first number of all comes late: others' records before it are nobody's, its own waits. Of two commands
   of a block the second keeps name and arrow when the first is over. */
static void first_number_late(void)
{
    open_queue(16);
    WITH_NPU_PROFILER(&npu, 0, "ours", "NPU", PROF_NO_ARGS, {
        sim_advance(1000);
        feed(0, 6);
        feed(0, 7);
        npuprof_npu_set_job(&npu, 7);
    });
    WITH_NPU_PROFILER(&npu, 0, "two", "NPU", PROF_NO_ARGS, {
        npuprof_npu_set_job(&npu, 8);
        sim_advance(1000);
        feed(0, 8);
        npuprof_npu_set_job(&npu, 9);
        sim_advance(1000);
        feed(0, 9);
    });
    WITH_NPU_PROFILER(&npu, 0, "given", "NPU", PROF_NO_ARGS, {
        feed(0, npuprof_npu_job(&npu));
        feed(0, npuprof_npu_job(&npu));
    });
    sim_advance(1000);
    json_node *t = closed();
    CHECK_UINT(spans_of(t, "job"), 1);
    CHECK_UINT(spans_of(t, "ours"), 1);
    CHECK_UINT(spans_of(t, "two"), 2);
    CHECK_UINT(spans_of(t, "given"), 2);
    CHECK_UINT(trace_count(t, "f", "submit"), 5);
    CHECK_INT(records(t, "open_jobs"), 0);
}

/* Of a driver that never numbers, a record inside its block is there without a close. */
static void never_numbered(void)
{
    open_queue(16);
    for (unsigned i = 0; i < 3; i++) {
        WITH_NPU_PROFILER(&npu, 0, "blocking", "NPU", PROF_NO_ARGS, {
            sim_advance(1000);
            feed(0, 100 + i);
        });
        json_node *t = written();
        CHECK_UINT(spans_of(t, "blocking"), i + 1);
        CHECK_UINT(trace_count(t, "f", "submit"), i + 1);
    }
    npuprof_npu_close(&npu);
}

/* An index that counts descriptors, of which a job has several: its number is that of the last one. first:
   what the index shows at open; late: some numbers come when their work is over. */
static void descriptors_of(int unit, uint32_t first, bool late)
{
    enum { COUNT = 16, MANY = 400, EACH = 5 };
    static uint32_t word;
    const uint32_t mask = unit == NPUPROF_NPU_INDEX_SLOT ? COUNT - 1 : UINT32_MAX;
    uint32_t number[MANY], written = first, done = first, over = 0, wrong = 0;
    npuprof_stats stats;
    SIM_DESC(desc);
    desc.progress = (npuprof_npu_progress){
        .is_there = true, .count = unit == NPUPROF_NPU_INDEX_SLOT ? COUNT : 0,
        .index = { .memory = &word, .memory_bytes = sizeof word, .unit = unit } };
    put((unsigned char *)&word, 4, done & mask);
    open_npu(&desc);
    for (unsigned i = 0; i < MANY; i++) {
        const bool is_late = late && i % 3 == 1;
        const uint32_t handle = npuprof_npu_begin(&npu, i, "job", "NPU", PROF_NO_ARGS);
        written += 1 + i % EACH;
        number[i] = written - 1;
        if (!is_late) CHECK_INT(npuprof_npu_set_job_of(&npu, handle, number[i]), NPUPROF_OK);
        while (done != written && (is_late || written - done > 8)) {
            sim_advance(1000);
            put((unsigned char *)&word, 4, ++done & mask);
            CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
            while (over < i + !is_late && (int32_t)(number[over] - done) < 0) over++;
            npuprof_get_stats(&stats);
            wrong += stats.recorded != i + 1 + over;
        }
        if (is_late) CHECK_INT(npuprof_npu_set_job_of(&npu, handle, number[i]), NPUPROF_OK);
        CHECK_INT(npuprof_npu_end(&npu, handle), NPUPROF_OK);
    }
    CHECK_UINT(wrong, 0);
    sim_advance(1000);
    put((unsigned char *)&word, 4, written & mask);
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "f", "submit"), MANY);
    CHECK_UINT(records(t, "open_jobs"), 0);
}

static void descriptors(void) { descriptors_of(NPUPROF_NPU_INDEX_COUNT, 0, false); }
static void descriptors_late(void) { descriptors_of(NPUPROF_NPU_INDEX_COUNT, 0xFFFFFF00u, true); }
static void descriptor_slots(void) { descriptors_of(NPUPROF_NPU_INDEX_SLOT, 5, false); }

static npuprof_result opened;
static size_t held;
static void *open_on_a_small_stack(void *desc)
{
    npuprof_npu here;
    held = sizeof here;
    opened = npuprof_npu_open(&here, (const npuprof_npu_desc *)desc);
    const uint32_t handle = npuprof_npu_begin(&here, 0, "job", "NPU", PROF_NO_ARGS);
    npuprof_npu_end(&here, handle);
    npuprof_npu_drain(&here);
    npuprof_npu_close(&here);
    return NULL;
}

/* A device on the stack of a thread that has 128 KiB of it. */
static void small_stack(void)
{
    npuprof_npu_desc desc = queues(CHANNELS, 16, 0);
    pthread_attr_t small;
    pthread_t thread;
    npuprof_start(1);
    CHECK_INT(pthread_attr_init(&small), 0);
    CHECK_INT(pthread_attr_setstacksize(&small, 128 * 1024), 0);
    CHECK_INT(pthread_create(&thread, &small, open_on_a_small_stack, &desc), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(opened, NPUPROF_OK);
    CHECK(held <= 8192);
}

/* Memory that the user names: how much is needed is said, and that much is enough. */
static void named_memory(void)
{
    static uint64_t memory[1 << 16];
    npuprof_npu_desc desc = queues(1, 16, 0);
    npuprof_start(1);
    desc.memory = (void *)(((uintptr_t)memory + 15) / 16 * 16);
    desc.memory_bytes = 1000;
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_ERR_NPU_MEMORY);
    const char *const said = strstr(npuprof_result_string(NPUPROF_ERR_NPU_MEMORY), "needs ");
    CHECK_STOP(said != NULL);
    unsigned long long needs = 0;
    CHECK_STOP(sscanf(said, "needs %llu", &needs) == 1 && needs < sizeof memory - 16);
    desc.memory_bytes = (size_t)needs - 1;
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_ERR_NPU_MEMORY);
    desc.memory_bytes++;
    ((unsigned char *)desc.memory)[needs] = 77;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    WITH_NPU_PROFILER(&npu, 0, "named", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, 3));
    sim_advance(1000000);
    feed(0, 3);
    npuprof_npu_close(&npu);
    CHECK_INT(((unsigned char *)desc.memory)[needs], 77);
    CHECK_UINT(spans_of(written(), "named"), 1);
    desc.memory = NULL;
    desc.job_count = 65537;
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_ERR_ARGUMENT);
}

CHECK_MAIN(CASE(two_channels), CASE_THOROUGH(two_channels_long), CASE(lanes), CASE(used_again),
           CASE(long_job), CASE(dropped), CASE(number_late), CASE(foreign), CASE(first_number_late),
           CASE(never_numbered), CASE(descriptors), CASE(descriptors_late), CASE(descriptor_slots),
           CASE(small_stack), CASE(named_memory))

/* desc.cpu_ns: what the thread did while its job ran, by each way in which an end is noticed
   SPDX-License-Identifier: MIT */
#include "fixture.h"
#include <pthread.h>
#include <time.h>

/* job 8 | end 8 | op 8 */
enum { ENTRY = 24, WHOLE = 1, MS = 1000000 };

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleeps(void)
{
    const struct timespec moment = { 0, 20 * MS };
    nanosleep(&moment, NULL);
}

static void works(void)
{
    const uint64_t until = cpu_ns() + 20 * MS;
    while (cpu_ns() < until) continue;
}

static void polls(void)
{
    const struct timespec moment = { 0, MS };
    for (int i = 0; i < 10; i++) nanosleep(&moment, NULL);
}

static void open_fed(bool asked)
{
    npuprof_npu_desc desc = sim_desc();
    desc.ring = (npuprof_npu_ring){ .feed = true, .entry_bytes = ENTRY, .job = AT(0, 8, 0, 0),
                                    .end = AT(8, 8, 0, 0), .op = AT(16, 8, 0, 0),
                                    .execution_op = WHOLE + 1 };
    desc.cpu_ns = asked;
    open_npu(&desc);
    sim_advance(MS);
}

static void feed(uint64_t job, uint64_t op)
{
    unsigned char entry[ENTRY];
    put(entry, 8, job);
    put(entry + 8, 8, sim_truth());
    put(entry + 16, 8, op);
    CHECK_INT(npuprof_npu_feed(&npu, 0, entry, ENTRY), NPUPROF_OK);
}

/* The device span of that name. */
static json_node *span_of(json_node *t, const char *name)
{
    json_node *const e = device_span(t, name, 0);
    CHECK_STOP(e != NULL);
    return e;
}

static bool has_usage(json_node *e)
{
    const bool cpu = json_get(e, "args.wait_cpu_ns") != NULL;
    CHECK(cpu == (json_get(e, "args.wait_switches") != NULL));
    CHECK(cpu == (json_get(e, "args.wait_preempted") != NULL));
    return cpu;
}

static void slept(json_node *e)
{
    CHECK_STOP(has_usage(e));
    CHECK(arg(e, "wait_cpu_ns") > 0 && arg(e, "wait_cpu_ns") < 10 * MS);
    CHECK(arg(e, "wait_switches") >= 1);
}

static json_node *after(void (*meanwhile)(void))
{
    open_fed(true);
    const uint32_t job = submit(1, "job");
    meanwhile();
    sim_advance(MS);
    feed(job, WHOLE);
    return span_of(closed(), "op 1");
}

/* Asleep, at work and polling are told apart. */
static void asleep(void) { slept(after(sleeps)); }

static void at_work(void)
{
    json_node *e = after(works);
    CHECK_STOP(has_usage(e));
    CHECK(arg(e, "wait_cpu_ns") >= 20 * MS);
    CHECK_INT(arg(e, "wait_switches"), 0);
}

static void polling(void) { CHECK(arg(after(polls), "wait_switches") >= 10); }

/* Only the job has them, not its parts; when it was noticed is between the device's end and now. */
static void the_job_alone(void)
{
    open_fed(true);
    const uint32_t job = submit(1, "job");
    sim_advance(MS);
    feed(job, 2);
    feed(job, WHOLE);
    const int64_t now = npuprof_now_ns();
    json_node *t = closed(), *part = span_of(t, "op 2"), *whole = span_of(t, "op 1");
    CHECK(!has_usage(part) && !json_get(part, "args.noticed_ns"));
    CHECK(has_usage(whole));
    CHECK(arg(whole, "noticed_ns") <= now && arg(whole, "noticed_ns") > now - MS);
    const int64_t start = json_int(json_get(t, "metadata.npuprof.start_unix_ns"));
    const double end = json_real(json_get(whole, "ts")) + json_real(json_get(whole, "dur"));
    const double noticed = (double)(arg(whole, "noticed_ns") - start) / 1000;
    CHECK(noticed >= end - 1 && noticed < end + 1000);
}

static void *feed_elsewhere(void *job)
{
    { PROF_SCOPE("elsewhere"); }             /* it has a track of its own */
    feed(*(const uint32_t *)job, WHOLE);
    return NULL;
}

static void *submit_elsewhere(void *job)
{
    *(uint32_t *)job = submit(1, "job");
    return NULL;
}

static void in_a_thread(void *(*run)(void *), uint32_t *job)
{
    pthread_t thread;
    CHECK_STOP(pthread_create(&thread, NULL, run, job) == 0);
    pthread_join(thread, NULL);
}

/* Another thread notices, also one in the place of the submitter, which has ended: only when. */
static void another_thread(void)
{
    open_fed(true);
    uint32_t job = submit(1, "job");
    in_a_thread(feed_elsewhere, &job);
    in_a_thread(submit_elsewhere, &job);
    in_a_thread(feed_elsewhere, &job);
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "X", "op 1"), 2);
    for (size_t i = 0; i < 2; i++) {
        json_node *e = trace_event(t, "X", "op 1", i);
        CHECK(!has_usage(e) && json_get(e, "args.noticed_ns"));
    }
}

/* A sampled block, and its two ends as calls. */
static void sampled(void)
{
    npuprof_npu_desc desc = sim_desc();
    desc.cpu_ns = true;
    open_npu(&desc);
    sim_advance(MS);
    WITH_NPU_PROFILER(&npu, 1, "block", "NPU", PROF_NO_ARGS, { sleeps(); sim_advance(MS); });
    const uint32_t handle = npuprof_npu_begin(&npu, 1, "call", "NPU", PROF_NO_ARGS);
    sleeps();
    sim_advance(MS);
    CHECK_INT(npuprof_npu_end_args(&npu, handle, PROF_ARGS(PROF_INT("status", 3))), NPUPROF_OK);
    json_node *t = closed();
    slept(span_of(t, "block"));
    slept(span_of(t, "call"));
    CHECK_INT(arg(span_of(t, "call"), "status"), 3);
}

/* A record by hand, with as many arguments as it may have. */
static void by_hand(void)
{
    open_fed(true);
    const uint32_t job = submit(1, "job");
    sleeps();
    sim_advance(MS);
    CHECK(npuprof_npu_complete(&npu, job, 0, "hand", NULL, sim_truth() - 100, sim_truth(),
                               PROF_ARGS(PROF_INT("a", 1), PROF_INT("b", 2), PROF_INT("c", 3),
                                         PROF_INT("d", 4), PROF_INT("e", 5), PROF_INT("f", 6),
                                         PROF_INT("g", 7), PROF_INT("h", 8), PROF_STR("i", "nine")), true));
    json_node *e = span_of(closed(), "hand");
    slept(e);
    CHECK_STR(json_text(json_get(e, "args.i")), "nine");
}

/* Without cpu_ns there is nothing of it. */
static void not_asked(void)
{
    open_fed(false);
    feed(submit(1, "job"), WHOLE);
    json_node *e = span_of(closed(), "op 1");
    CHECK(!has_usage(e) && !json_get(e, "args.noticed_ns"));
}

CHECK_MAIN(CASE(asleep), CASE(at_work), CASE(polling), CASE(the_job_alone), CASE(another_thread),
           CASE(sampled), CASE(by_hand), CASE(not_asked))

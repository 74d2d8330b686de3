/* a runtime's number of a submission comes back at its device spans; one device that is open twice is named
   SPDX-License-Identifier: MIT */
#include "fixture.h"
#include <pthread.h>

/* job 4 | end 8 */
enum { ENTRY = 16 };
static npuprof_npu_ring ring = { .feed = true, .entry_bytes = ENTRY, .job = AT(0, 4, 0, 0),
                                 .end = AT(8, 8, 0, 0) };

static void feed(uint32_t job)
{
    unsigned char entry[ENTRY];
    put(entry, 4, job);
    put(entry + 8, 8, sim_truth());
    CHECK_INT(npuprof_npu_feed(&npu, 0, entry, sizeof entry), NPUPROF_OK);
}

/* The correlation of the device span of that name; -1: it has none. */
static int64_t correlation_of(json_node *t, const char *name)
{
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        if (!json_get(e, "args.stream") || strcmp(json_get(e, "name")->text, name) != 0) continue;
        json_node *const value = json_get(e, "args.correlation");
        return value ? json_int(value) : -1;
    }
    check_failed_(__FILE__, __LINE__, "no device span %s", name);
    return -2;
}

static void *other_thread(void *job)
{
    WITH_NPU_PROFILER(&npu, 0, "other thread", "NPU", PROF_NO_ARGS,
                      *(uint32_t *)job = npuprof_npu_job(&npu));
    return NULL;
}

/* Records come late, when the thread is at another number. Calls nest; other threads have their own. */
static void by_records(void)
{
    npuprof_npu_desc desc = sim_desc();
    uint32_t jobs[4];
    pthread_t thread;
    desc.rings = &ring;
    desc.ring_count = 1;
    CHECK_INT(npuprof_npu_set_correlation(9), 0);         /* it never recorded, and nothing is recorded */
    open_npu(&desc);
    CHECK_INT(npuprof_npu_set_correlation(70), 0);
    WITH_NPU_PROFILER(&npu, 0, "first", "NPU", PROF_NO_ARGS, jobs[0] = npuprof_npu_job(&npu));
    CHECK_INT(npuprof_npu_set_correlation(71), 70);
    const uint32_t handle = npuprof_npu_begin(&npu, 0, "second", "NPU", PROF_NO_ARGS);
    jobs[1] = npuprof_npu_job(&npu);
    CHECK_INT(npuprof_npu_end(&npu, handle), NPUPROF_OK);
    pthread_create(&thread, NULL, other_thread, &jobs[2]);
    pthread_join(thread, NULL);
    CHECK_INT(npuprof_npu_set_correlation(0), 71);
    WITH_NPU_PROFILER(&npu, 0, "none", "NPU", PROF_NO_ARGS, jobs[3] = npuprof_npu_job(&npu));
    CHECK_INT(npuprof_npu_set_correlation(99), 0);
    sim_advance(1000);
    for (int i = 3; i >= 0; i--) feed(jobs[i]);
    npuprof_npu_close(&npu);
    json_node *const t = written();
    CHECK_INT(correlation_of(t, "first"), 70);
    CHECK_INT(correlation_of(t, "second"), 71);
    CHECK_INT(correlation_of(t, "other thread"), -1);
    CHECK_INT(correlation_of(t, "none"), -1);
}

/* A thread that gets the slot of one that ended does not get its number. */
static void *sets(void *unused)
{
    npuprof_npu_set_correlation(5);
    return unused;
}

static void by_samples(void)
{
    pthread_t thread;
    uint32_t job;
    open_sim();
    pthread_create(&thread, NULL, sets, NULL);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, other_thread, &job);
    pthread_join(thread, NULL);
    npuprof_npu_set_correlation(UINT64_MAX >> 1);
    WITH_NPU_PROFILER(&npu, 0, "block", "NPU", PROF_NO_ARGS, sim_advance(1000));
    npuprof_npu_close(&npu);
    json_node *const t = written();
    CHECK_STR(json_get(trace_event(t, "X", "block", 1), "args.correlation")->text, "9223372036854775807");
    CHECK_INT(correlation_of(t, "other thread"), -1);
}

/* The trace's note, or NULL. */
static const char *note(const char *name)
{
    json_node *t = written();
    json_node *const notes = json_get(t, "metadata.npuprof.unused_environment");
    char key[64];
    snprintf(key, sizeof key, "npuprof_npu_open_twice %s", name);
    for (json_node *n = notes ? notes->first : NULL; n; n = n->next)
        if (n->key && strcmp(n->key, key) == 0) return n->text;
    return NULL;
}

static void in_two_layers(void)
{
    static npuprof_npu runtime, third;
    npuprof_npu_desc desc = sim_desc();
    const char *const name = desc.name;
    open_npu(&desc);
    npuprof_npu_close(&npu);
    open_npu(&desc);                     /* again, and only once at a time */
    desc.name = "another";
    CHECK_INT(npuprof_npu_open(&third, &desc), NPUPROF_OK);
    CHECK(note(name) == NULL && note("another") == NULL);
    desc.name = name;
    CHECK_INT(npuprof_npu_open(&runtime, &desc), NPUPROF_OK);
    CHECK(note(name) && strstr(note(name), "a driver and a runtime both open one device"));
    CHECK(note("another") == NULL);
    npuprof_npu_close(&runtime);
    npuprof_npu_close(&third);
    npuprof_npu_close(&npu);
}

CHECK_MAIN(CASE(by_records), CASE(by_samples), CASE(in_two_layers))

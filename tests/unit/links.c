/* arrows, async spans, clock anchors and metadata in great numbers: each is found, in a time that grows with
   their number
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include <pthread.h>
#define NPUPROF_ARENA_BYTES (64 * 1024 * 1024)
/* Each look at the clock is a moment of its own. */
static uint64_t ticks = 1000;
#define NPUPROF_NOW() __atomic_add_fetch(&ticks, 10, __ATOMIC_RELAXED)
#define NPUPROF_NOW_HZ 1000000000
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#include "recorded.h"

/* Of writing what `record` records. */
static double seconds_of(void (*record)(unsigned), unsigned n)
{
    static const npuprof_sink nowhere = { to_nowhere, NULL };
    npuprof_clear();
    npuprof_start(1);
    record(n);
    npuprof_stop();
    CHECK_UINT(stats_now().lost, 0);
    const double from = seconds_used();
    CHECK_INT(npuprof_write_json(nowhere), NPUPROF_OK);
    return seconds_used() - from;
}

/* Four times as many take about four times the time; 16 times if it were quadratic. */
static void linear(const char *what, void (*record)(unsigned), unsigned n)
{
    double small = 1e9, large = 1e9;
    for (int i = 0; i < 5 && (!i || large > 7 * small); i++) {  /* Why again: others use the machine, too */
        const double one = seconds_of(record, n), four = seconds_of(record, 4 * n);
        if (one < small) small = one;
        if (four < large) large = four;
    }
    printf("  %s: %u %.3f s, %u %.3f s\n", what, n, small, 4 * n, large);
    CHECK(large <= 7 * small);
}

static uint64_t mixed(uint64_t x) { return (x ^ x >> 15) * UINT64_C(0x9E3779B97F4A7C15); }

static void pairs(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        { PROF_SCOPE("sends"); PROF_FLOW_OUT(mixed(i)); }
        { PROF_SCOPE("takes"); PROF_FLOW_IN(mixed(i)); }
    }
}

static void all_sent_first(unsigned n)
{
    for (unsigned i = 0; i < n; i++) { PROF_SCOPE("sends"); PROF_FLOW_OUT(i); }
    for (unsigned i = 0; i < n; i++) { PROF_SCOPE("takes"); PROF_FLOW_IN(i); }
}

static void of_nobody(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        { PROF_SCOPE("sends"); PROF_FLOW_OUT(2 * (uint64_t)i); }
        { PROF_SCOPE("takes"); PROF_FLOW_IN(2 * (uint64_t)i + 1); }
    }
}

static void arrows_in_linear_time(void)
{
    if (CHECK_SANITIZED) CHECK_SKIP("it measures time, and a sanitizer takes most of it");
    linear("arrows", pairs, 40000);
    linear("arrows, all sent before the first is taken", all_sent_first, 40000);
    linear("arrows that nobody sent", of_nobody, 40000);
}

enum { THREADS = 5, EACH = 6000 };
static void *sends_and_takes(void *user)
{
    const uint64_t t = *(const uint64_t *)user;
    char name[8];
    snprintf(name, sizeof name, "t%u", (unsigned)t);
    PROF_THREAD_NAME(name);                /* a slot of its own */
    PROF_SCOPE("around");
    for (uint64_t i = 0; i < EACH; i++) {
        PROF_SCOPE("sends");
        PROF_FLOW_OUT(t << 32 | i);
        if (i % 3 == 0) { PROF_SCOPE("inside"); PROF_FLOW_OUT(UINT64_MAX); }
    }
    for (uint64_t i = 0; i < EACH; i++) {
        PROF_SCOPE("takes");
        PROF_FLOW_IN(t << 32 | (t % 2 ? i : EACH - 1 - i));
    }
    return NULL;
}

/* Each arrow begins in the span that sent it and ends in the one that took it. */
static void each_arrow(void)
{
    uint64_t numbers[THREADS] = { 0, 1, 2, 3, 4 };
    npuprof_start(1);
    on_threads(THREADS, sends_and_takes, numbers, sizeof numbers[0]);
    json_node *t = written();
    static struct { int64_t from[EACH], to[EACH], end[EACH]; } spans[THREADS + 2], got[THREADS + 2];
    int sent[THREADS + 2] = { 0 }, taken[THREADS + 2] = { 0 }, arrows[THREADS + 2] = { 0 };
    for (json_node *e = json_get(t, "traceEvents")->first, *f; e; e = e->next) {
        const char *ph = json_text(json_get(e, "ph")), *name = json_text(json_get(e, "name"));
        const int tid = (int)trace_tid(e);
        if (strcmp(ph, "X") == 0 && strcmp(name, "sends") == 0) spans[tid].from[sent[tid]++] = trace_start(e);
        if (strcmp(ph, "X") == 0 && strcmp(name, "takes") == 0) {
            spans[tid].end[taken[tid]] = trace_end(e);
            spans[tid].to[taken[tid]++] = trace_start(e);
        }
        if (strcmp(ph, "s") != 0) continue;
        f = e->next;
        CHECK_STOP(f != NULL && trace_tid(f) == tid && arrows[tid] < EACH);
        got[tid].from[arrows[tid]] = trace_start(e);
        got[tid].to[arrows[tid]++] = trace_start(f);
    }
    uint64_t good = 0;
    for (int tid = 1; tid <= THREADS + 1; tid++) {
        if (!arrows[tid]) continue;
        CHECK_INT(arrows[tid], EACH);
        int64_t forward = 0, backward = 0;
        for (int i = 0; i < EACH; i++) {
            int low = 0, high = EACH;              /* the span that took it, the one that sent it */
            while (high - low > 1)
                *(spans[tid].to[(low + high) / 2] <= got[tid].to[i] ? &low : &high) = (low + high) / 2;
            const int to = low;
            CHECK(got[tid].to[i] < spans[tid].end[to]);
            low = 0, high = EACH;
            while (high - low > 1)
                *(spans[tid].from[(low + high) / 2] <= got[tid].from[i] ? &low : &high) = (low + high) / 2;
            forward += low == to;
            backward += low == EACH - 1 - to;
        }
        good += forward == EACH || backward == EACH;
    }
    CHECK_UINT(good, THREADS);
}

static void jobs(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        npuprof_async_begin("c", "job", mixed(i));
        { PROF_SCOPE("works"); }
        npuprof_async_end(mixed(i));
    }
}

static void jobs_of_many_names(unsigned n)
{
    char name[16];
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof name, "job %u", i % 20);
        npuprof_async_begin("c", name, mixed(i));
        if (i >= 100) npuprof_async_end(mixed(i - 100));
    }
}

static void jobs_without_end(unsigned n)
{
    for (unsigned i = 0; i < n; i++) npuprof_async_begin("c", "job", i);
}

static void async_in_linear_time(void)
{
    if (CHECK_SANITIZED) CHECK_SKIP("it measures time, and a sanitizer takes most of it");
    linear("async spans", jobs, 40000);
    linear("async spans of 20 names", jobs_of_many_names, 40000);
    /* Why more: the first 65536 of them nest, and each later one gets a lane of its own. */
    linear("async spans without end", jobs_without_end, 160000);
}

/* Each async span ends where it was ended, across batches; every 50th never ends, every 70th begins again
   with its id. */
static void each_async_span(void)
{
    enum { COUNT = 20000, LONGEST = 3000 };
    /* a record may look at the clock more than once */
    static int64_t before[COUNT], begun[COUNT], ended[COUNT], ended_after[COUNT];
    static unsigned due[COUNT + LONGEST + 1][4], dues[COUNT + LONGEST + 1];
    char name[8];
    npuprof_start(1);
    for (unsigned i = 0; i < COUNT + LONGEST; i++) {
        if (i < COUNT) {
            const bool again = i % 70 == 69;
            snprintf(name, sizeof name, "n%u", i % 3);
            before[i] = (int64_t)ticks;
            npuprof_async_begin(NULL, name, again ? i - 1 : i);
            begun[i] = (int64_t)ticks;
            unsigned at = i + 1 + i * 7919 % LONGEST;
            while (dues[at] == 4) at--;
            if (i % 50 && !again && (i + 1) % 70 != 69) due[at][dues[at]++] = i;
        }
        for (unsigned k = 0; k < dues[i]; k++) {
            ended[due[i][k]] = (int64_t)ticks;
            npuprof_async_end(due[i][k]);
            ended_after[due[i][k]] = (int64_t)ticks;
        }
    }
    npuprof_stop();
    json_node *t = written();
    unsigned seen = 0, right = 0;
    const int64_t zero = trace_start(trace_event(t, "X", "n1", 0));
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        if (strcmp(json_text(json_get(e, "ph")), "X") != 0) continue;
        const int64_t start = trace_start(e) - zero + begun[1];
        unsigned low = 0, high = COUNT;
        while (high - low > 1) *(before[(low + high) / 2] < start ? &low : &high) = (low + high) / 2;
        const bool unfinished = json_get(e, "args.unfinished") != NULL;
        const int64_t end = start + trace_dur(e);
        seen++;
        if (low % 70 == 68 && low + 1 < COUNT)
            right += unfinished && end > before[low + 1] && end <= begun[low + 1];
        else right += unfinished ? !ended[low] : end > ended[low] && end <= ended_after[low];
    }
    CHECK_UINT(seen, COUNT);
    CHECK_UINT(right, COUNT);
}

/* Device spans of a clock that was synchronised n times. */
static uint64_t read_ticks(void *user)
{
    (void)user;
    return NPUPROF_NOW();
}

static npuprof_npu npu;
static void anchors(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        ticks += 1000;
        npuprof_npu_span(&npu, 0, "k", "c", ticks - 500, ticks - 100, PROF_NO_ARGS);
        CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
    }
}

static void anchors_in_linear_time(void)
{
    if (CHECK_SANITIZED) CHECK_SKIP("it measures time, and a sanitizer takes most of it");
    npuprof_npu_desc desc = { 0 };
    desc.name = "npu0";
    desc.read_ticks = read_ticks;
    desc.counter.hz = 1000000000;
    desc.brackets = 1;
    npuprof_start(1);
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_OK);
    /* of 1500 and of 7500 in all */
    const double small = seconds_of(anchors, 1500), large = seconds_of(anchors, 6000);
    printf("  device spans and anchors: %.3f s, five times as many %.3f s\n", small, large);
    CHECK(large <= 10 * small + 0.02);
    npuprof_npu_close(&npu);
}

static void keys(unsigned n)
{
    static unsigned number;
    char key[24];
    for (unsigned i = 0; i < n; i++) {
        snprintf(key, sizeof key, "key %u", number++);
        npuprof_metadata(key, "value");
    }
}

/* Of a key that comes again, also one that is the same only once it is written, the last value counts. Many
   keys take no longer each. */
static void metadata(void)
{
    npuprof_metadata("again", "1");
    npuprof_metadata("bad \xff", "1");
    /* of 1000, 5000 and 30,000 in all */
    const double small = seconds_of(keys, 1000), large = seconds_of(keys, 4000);
    const double most = seconds_of(keys, 25000);
    printf("  metadata: %.3f s, five times as much %.3f s, 30 times %.3f s\n", small, large, most);
    CHECK(CHECK_SANITIZED || (large <= 10 * small + 0.02 && most < 1));
    npuprof_metadata("again", "2");
    npuprof_metadata("bad \xfe", "2");
    json_node *t = written(), *user = json_get(t, "metadata.npuprof.user");
    unsigned count = 0, twos = 0, keys_there = 0;
    for (json_node *m = user ? user->first : NULL; m; m = m->next) {
        count += strncmp(m->key, "key ", 4) != 0;
        keys_there += strncmp(m->key, "key ", 4) == 0;
        twos += strcmp(json_text(m), "2") == 0;
    }
    CHECK_UINT(count, 2);
    CHECK_UINT(keys_there, 30000);
    CHECK_UINT(twos, 2);
}

CHECK_MAIN(CASE(anchors_in_linear_time), CASE(metadata), CASE_THOROUGH(arrows_in_linear_time),
           CASE(each_arrow), CASE_THOROUGH(async_in_linear_time), CASE(each_async_span))

/* test: soak=200 valgrind cc=-O2 - the flight recorder: the newest chunks are all there, contiguous for each
   thread, names kept
   SPDX-License-Identifier: MIT */
#include "life.h"

enum { THREADS = 8 };
static pthread_barrier_t all_ready, all_done;
static uint64_t spans_each;
static int64_t shortest_us;                    /* how long the first of the threads to end had recorded */

/* Numbers its spans; two more stay open from before the first to behind the last. */
static void *number_spans(void *unused)
{
    char name[32];
    (void)unused;
    pthread_barrier_wait(&all_ready);
    snprintf(name, sizeof name, "worker %lx", (unsigned long)pthread_self());
    PROF_THREAD_NAME(name);
    PROF_BEGIN("names", "run-time category and name");
    PROF_SCOPE("whole thread");
    const double started = life_seconds();
    for (uint64_t i = 0; i < spans_each; i++) {
        PROF_SCOPE_ARGS("c", "numbered", PROF_ARGS(PROF_UINT("n", i)));
    }
    const int64_t took_us = (int64_t)((life_seconds() - started) * 1e6);
    int64_t old = __atomic_load_n(&shortest_us, __ATOMIC_RELAXED);
    while (took_us < old && !__atomic_compare_exchange_n(&shortest_us, &old, took_us, true, __ATOMIC_RELAXED,
                                                         __ATOMIC_RELAXED)) {}
    pthread_barrier_wait(&all_done);       /* nobody ends while others still record */
    PROF_END();
    pthread_barrier_wait(&all_done);
    return NULL;
}

/* The numbers of each track: one after the other? */
typedef struct numbers {
    int64_t first[64], last[64];
    uint64_t count, gaps, whole, named, by_hand;
    int64_t longest_us;
} numbers;
static void look(life_counts *c, const char *line)
{
    numbers *s = (numbers *)c->user;
    const int64_t tid = life_number(line, "tid");
    if (tid < 1 || tid >= 64) return;
    if (life_has(line, "\"name\":\"numbered\"")) {
        const int64_t n = life_number(line, "n");
        if (s->last[tid] < 0) s->first[tid] = n;
        else if (n != s->last[tid] + 1) s->gaps++;
        s->last[tid] = n;
        s->count++;
    }
    s->whole += life_has(line, "\"name\":\"whole thread\"");
    s->named += life_has(line, "\"name\":\"worker ");
    s->by_hand += life_has(line, "\"name\":\"run-time category and name\"")
        && life_has(line, "\"cat\":\"names\"");
    if (life_has(line, "\"name\":\"whole thread\"") && life_number(line, "dur") > s->longest_us)
        s->longest_us = life_number(line, "dur");
}

static void contiguous(int threads, uint64_t each, size_t arena_bytes)
{
    pthread_t thread[THREADS];
    numbers found;
    life_begin(NPUPROF_KEEP_NEWEST, arena_bytes, NULL);
    spans_each = each;
    shortest_us = INT64_MAX;
    pthread_barrier_init(&all_ready, NULL, (unsigned)threads);
    pthread_barrier_init(&all_done, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++) thread[i] = started(number_spans, NULL);
    pthread_barrier_wait(&all_done);
    pthread_barrier_wait(&all_done);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    const npuprof_stats s = life_account((uint64_t)threads * (each + 2), true);
    CHECK_UINT(s.lost, s.lost_by_cause[NPUPROF_LOST_OVERWRITTEN]);
    memset(&found, 0, sizeof found);
    for (int i = 0; i < 64; i++) found.last[i] = -1;
    life_count(look, &found);
    CHECK_UINT(found.gaps, 0);
    CHECK_UINT(found.whole, threads);
    CHECK_UINT(found.named, threads);
    CHECK_UINT(found.by_hand, threads);
    CHECK(found.longest_us >= shortest_us);
    int ended_well = 0;
    for (int i = 0; i < 64; i++) ended_well += found.last[i] == (int64_t)each - 1;
    CHECK_INT(ended_well, threads);
    /* 32 bytes each; most of a large arena holds them. */
    if (found.count * 32 < arena_bytes * (arena_bytes < 65536 ? 4 : 6) / 10)
        check_failed_(__FILE__, __LINE__, "only %" PRIu64 " of the newest spans in %zu bytes", found.count,
                      arena_bytes);
    /* The image says the same as the live arena. */
    const char *path = check_path("t.npuprof");
    npuprof_damage damage;
    const numbers live = found;
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    CHECK_INT(npuprof_load(path, &damage), NPUPROF_OK);
    CHECK_UINT(damage.places, 0);
    memset(&found, 0, sizeof found);
    for (int i = 0; i < 64; i++) found.last[i] = -1;
    life_account((uint64_t)threads * (each + 2), true);
    life_count(look, &found);
    CHECK(memcmp(&live, &found, sizeof live) == 0);
    npuprof_unload();
}

static void one_thread(void) { contiguous(1, life_scaled(2000000, 100000000), 1 << 20); }
static void two_threads(void) { contiguous(2, life_scaled(500000, 10000000), 1 << 20); }
static void eight_threads(void) { contiguous(8, life_scaled(100000, 2000000), 1 << 20); }
static void small_arena(void) { contiguous(1, life_scaled(100000, 1000000), 16384); }

/* 10^8 spans of nothing but 16 bytes through 1 MiB. */
static void memory_is_constant(void)
{
    const uint64_t n = life_scaled(5000000, 100000000);
    size_t before = 0;
    life_begin(NPUPROF_KEEP_NEWEST, 1 << 20, NULL);
    const double started = life_seconds();
    for (uint64_t i = 0; i < n; i++) {
        PROF_SCOPE("s");
        if (i == n / 10) before = life_resident_bytes();
    }
    const double took = life_seconds() - started;
    const size_t after = life_resident_bytes();
    if (!CHECK_SANITIZED) CHECK(after <= before + (1 << 20));
    const npuprof_stats s = life_account(n, true);
    CHECK_UINT(s.lost, s.lost_by_cause[NPUPROF_LOST_OVERWRITTEN]);
    CHECK(s.recorded * 16 > (1 << 20) * 7 / 10);
    printf("note keep-newest: %.1f ns a span over %" PRIu64
           " spans through 1 MiB, resident %zu KiB at a tenth, %zu KiB at the end\n",
           took / (double)n * 1e9, n, before / 1024, after / 1024);
}

/* Names that were first seen long ago, call sites and run-time strings, are still there when they come
   again. */
static void names_kept(void)
{
    char name[32];
    numbers unused;
    life_counts c;
    memset(&unused, 0, sizeof unused);
    life_begin(NPUPROF_KEEP_NEWEST, 65536, NULL);
    npuprof_metadata("model", "resnet");
    PROF_THREAD_NAME("main thread");
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20; i++) {
            snprintf(name, sizeof name, "run-time %d", i);
            PROF_BEGIN("category", name);
            PROF_END();
        }
        if (round < 2) for (int i = 0; i < 20000; i++) { PROF_SCOPE("filler"); }
    }
    json_node *t = written();
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "run-time %d", i);
        json_node *e = trace_event(t, "X", name, 0);
        CHECK_STOP(e != NULL);
        CHECK_STR(json_text(json_get(e, "cat")), "category");
        CHECK_STR(trace_track(t, e), "main thread");
    }
    CHECK_STR(json_text(json_get(t, "metadata.npuprof.user.model")), "resnet");
    c = life_count(NULL, NULL);
    CHECK(c.slices > 1000);
    CHECK_UINT(stats_now().lost_by_cause[NPUPROF_LOST_NAMES], 0);
}

/* A span with arguments that outlives its chunk: it stays; that its arguments went is counted. */
static void long_span_with_arguments(void)
{
    life_begin(NPUPROF_KEEP_NEWEST, 65536, NULL);
    {
        PROF_SCOPE_ARGS("c", "long",
                        PROF_ARGS(PROF_INT("n", 5), PROF_STR("s", "a string of more than eight bytes")));
        for (int i = 0; i < 50000; i++) { PROF_SCOPE("short"); }
    }
    const npuprof_stats s = life_account(50001, true);
    json_node *t = written(), *e = trace_event(t, "X", "long", 0);
    CHECK_STOP(e != NULL);
    CHECK_UINT(trace_count(t, "X", "long"), 1);
    CHECK_UINT(trace_count(t, "X", "short") + 1, s.recorded);
    for (size_t i = 0; i + 1 < s.recorded; i += 100) CHECK(trace_inside(trace_event(t, "X", "short", i), e));
    CHECK(json_int(json_get(e, "args.n")) == 5 || s.lost_by_cause[NPUPROF_LOST_ARGUMENTS] >= 1);
    CHECK(json_get(e, "args.unfinished") == NULL);
    trace_check_nesting(t);
}

/* clear() in the middle: what comes afterwards is counted from zero. */
static void cleared(void)
{
    life_begin(NPUPROF_KEEP_NEWEST, 65536, NULL);
    for (int round = 1; round <= 5; round++) {
        for (int i = 0; i < round * 3000; i++) { PROF_SCOPE("before"); }
        npuprof_clear();
        for (int i = 0; i < round * 700; i++) { PROF_SCOPE("after"); }
        const npuprof_stats s = stats_now();
        CHECK_INT(s.recorded + s.lost, round * 700);
        const life_counts c = life_count(NULL, NULL);
        CHECK_UINT(c.slices, s.recorded);
    }
}

CHECK_MAIN(CASE(one_thread), CASE(two_threads), CASE(eight_threads), CASE(small_arena),
           CASE(memory_is_constant), CASE(names_kept), CASE(long_span_with_arguments), CASE(cleared))

/* test: time=100 soak=300 cc=-O2 - threads by the thousand: more at once than fit, names that never come
   again, threads that record while they end or end without the system's clean-up
   SPDX-License-Identifier: MIT */
#include "life.h"
#include <sys/syscall.h>

static pthread_barrier_t in_place;

static void start_thread(pthread_t *thread, void *(*work)(void *), void *user)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    CHECK_STOP(!pthread_create(thread, &small, work, user));
}

static void *stays(void *user)
{
    { PROF_SCOPE("stays"); }
    pthread_barrier_wait(&in_place);
    pthread_barrier_wait(&in_place);
    return user;
}

enum { MEASURED = 10000 };

/* ns of a span: the fastest of some rounds. Why short ones: some then touch no new page. */
static void *measures(void *user)
{
    double *const best = (double *)user;
    enum { ROUNDS = MEASURED / 100, SPANS = 100 };
    *best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = life_seconds();
        for (int i = 0; i < SPANS; i++) { PROF_SCOPE("late"); }
        const double ns = (life_seconds() - start) / SPANS * 1e9;
        if (ns < *best) *best = ns;
    }
    return NULL;
}

typedef struct crowd { int policy; unsigned threads; size_t arena_bytes; } crowd;
static void at_once(const void *user)
{
    static life_memory memory;
    const crowd *const c = (const crowd *)user;
    pthread_t *const thread = (pthread_t *)calloc(c->threads, sizeof *thread), late;
    double ns = 0, alone = 0;
    CHECK_STOP(thread != NULL);
    life_begin(c->policy, c->arena_bytes, &memory);
    (void)measures(&alone);
    pthread_barrier_init(&in_place, NULL, c->threads + 1);
    for (unsigned i = 0; i < c->threads; i++) start_thread(&thread[i], stays, NULL);
    pthread_barrier_wait(&in_place);
    const npuprof_stats s = stats_now();
    start_thread(&late, measures, &ns);
    pthread_join(late, NULL);
    pthread_barrier_wait(&in_place);
    for (unsigned i = 0; i < c->threads; i++) pthread_join(thread[i], NULL);
    CHECK_UINT(s.recorded + s.lost, c->threads + MEASURED);
    if (c->arena_bytes > (size_t)16 << 20) CHECK_UINT(s.lost, 0);
    else CHECK(s.lost_by_cause[NPUPROF_LOST_CONTEXT] > 0);
    printf("note %s, %u threads, %zu MiB: %.1f ns a span of one more, %.2f of one alone\n",
           life_policy_names[c->policy], c->threads, c->arena_bytes >> 20, ns, ns / alone);
    if (!life_is_slow()) CHECK(ns <= 10 * alone);
}

static void more_than_1024(void)
{
    /* Under a sanitizer the crowd that fits and the one that does not, once: a thread takes 20 ms there. */
    const int first = life_is_slow() ? NPUPROF_KEEP_NEWEST : NPUPROF_KEEP_OLDEST;
    for (int policy = first; policy <= NPUPROF_KEEP_NEWEST; policy++) {
        const crowd fits = { policy, 1300, (size_t)32 << 20 }, too_many = { policy, 1300, (size_t)1 << 20 };
        const crowd all = { policy, (unsigned)life_scaled(10000, 10000), (size_t)160 << 20 };
        check_in_child(at_once, &fits);
        check_in_child(at_once, &too_many);
        if (!life_is_slow()) check_in_child(at_once, &all);
    }
}

/* The default arena has no slot for most of these, and no chunk for the others. Each span is there, or
   counted. Why ten times: a walk over all threads would take a hundred, and a busy machine a few. */
static void ten_thousand(void)
{
    const unsigned threads = (unsigned)life_scaled(10000, 10000);
    pthread_t *const thread = (pthread_t *)calloc(threads, sizeof *thread), late;
    double alone = 0, full = 0, refused = 0;
    CHECK_STOP(thread != NULL);
    npuprof_start(1);
    (void)measures(&alone);
    pthread_barrier_init(&in_place, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++) start_thread(&thread[i], stays, NULL);
    pthread_barrier_wait(&in_place);
    for (int filled = 0; filled < 2; filled++) (void)measures(&full);
    start_thread(&late, measures, &refused);
    pthread_join(late, NULL);
    pthread_barrier_wait(&in_place);
    for (unsigned i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    (void)life_account(threads + 4 * (uint64_t)MEASURED, true);
    free(thread);
    printf("note %u threads: %.1f ns a span of one alone; %.2f of it in the full arena, %.2f without slot\n",
           threads, alone, full / alone, refused / alone);
    if (life_is_slow()) return;
    CHECK(full <= 10 * alone);
    CHECK(refused <= 10 * alone);
}

static void *comes_and_goes(void *user)
{
    PROF_SCOPE("short");
    return user;
}

static void a_million_short_ones(void)
{
    const uint64_t threads = life_scaled(20000, 1000000);
    npuprof_start(1);
    for (uint64_t i = 0; i < threads; i++) {
        pthread_t thread;
        start_thread(&thread, comes_and_goes, NULL);
        pthread_join(thread, NULL);
    }
    const npuprof_stats s = life_account(threads, true);
    CHECK_UINT(s.lost, 0);
    CHECK(s.threads <= 3);
}

/* ---- Names: an event says the name of its thread, and the row bears that name or "other threads" */

static void *named(void *user)
{
    char name[40];
    const unsigned n = (unsigned)(uintptr_t)user;
    snprintf(name, sizeof name, "thread %u", n);
    PROF_THREAD_NAME(name);
    PROF_INSTANT("c", "of", PROF_ARGS(PROF_UINT("n", n)));
    if (n % 7 == 0) PROF_THREAD_NAME("renamed");
    return NULL;
}

typedef struct rows {
    unsigned own, of_others, wrong, count;
    int64_t tid[4000];
    char name[4000][40];
} rows;
static void read_row(life_counts *c, const char *line)
{
    rows *const r = (rows *)c->user;
    if (life_has(line, "\"thread_name\"") && r->count < 4000) {
        const char *const name = strstr(strstr(line, "\"args\""), "\"name\":\"") + 8;
        r->tid[r->count] = life_number(line, "tid");
        snprintf(r->name[r->count++], sizeof r->name[0], "%.*s", (int)strcspn(name, "\""), name);
    }
}

static void read_event(life_counts *c, const char *line)
{
    rows *const r = (rows *)c->user;
    char name[40];
    if (!life_has(line, "\"name\":\"of\"")) return;
    const int64_t tid = life_number(line, "tid"), n = life_number(line, "n");
    snprintf(name, sizeof name, "thread %d", (int)n);
    for (unsigned i = 0; i < r->count; i++) {
        if (r->tid[i] != tid) continue;
        const bool own = !strcmp(r->name[i], name) || (n % 7 == 0 && !strcmp(r->name[i], "renamed"));
        r->own += own;
        r->of_others += !strcmp(r->name[i], "other threads");
        return;
    }
    r->wrong++;
}

static void names_that_never_come_again(void)
{
    static rows r;
    enum { THREADS = 1500 };
    life_begin(NPUPROF_KEEP_OLDEST, (size_t)8 << 20, NULL);
    for (unsigned n = 0; n < THREADS; n++) {
        pthread_t thread;
        start_thread(&thread, named, (void *)(uintptr_t)n);
        pthread_join(thread, NULL);
    }
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded, THREADS);
    CHECK(s.threads < THREADS / 3 * 2);
    (void)life_count(read_row, &r);
    (void)life_count(read_event, &r);
    CHECK_UINT(r.own + r.of_others, THREADS);
    CHECK(r.own > 300);
    CHECK_UINT(s.lost_by_cause[NPUPROF_LOST_NOTES], r.of_others);
}

/* ---- Ends of threads */

static pthread_key_t last_key;
static void records_again(void *left)
{
    PROF_SCOPE("in a destructor");
    if ((uintptr_t)left > 1) pthread_setspecific(last_key, (void *)((uintptr_t)left - 1));
}

/* Records in each round of destructors, behind npuprof's own, for which the key is newer. */
static void *in_all_rounds(void *user)
{
    { PROF_SCOPE("work"); }
    pthread_setspecific(last_key, (void *)(uintptr_t)PTHREAD_DESTRUCTOR_ITERATIONS);
    return user;
}

/* Ends without any clean-up of the system. */
static void *without_clean_up(void *user)
{
    PROF_SCOPE("cut");
    if (!user) (void)syscall(SYS_exit, 0);
    return NULL;
}

static void leaked_slots(void)
{
    enum { THREADS = 1000 };
    if (CHECK_SANITIZED) CHECK_SKIP("the thread sanitizer's own destructor runs before the last one here");
    life_begin(NPUPROF_KEEP_OLDEST, (size_t)32 << 20, NULL);
    CHECK_STOP(pthread_key_create(&last_key, records_again) == 0);
    for (unsigned n = 0; n < THREADS; n++) {
        pthread_t thread;
        start_thread(&thread, in_all_rounds, NULL);
        pthread_join(thread, NULL);
    }
    const npuprof_stats s = life_account((1 + PTHREAD_DESTRUCTOR_ITERATIONS) * (uint64_t)THREADS, true);
    CHECK_UINT(s.lost, 0);
    CHECK(s.threads <= 200);
}

static void threads_that_exit_by_a_system_call(void)
{
    enum { THREADS = 500 };
    if (life_is_slow()) CHECK_SKIP("a sanitizer waits for ever for such a thread");
    life_begin(NPUPROF_KEEP_OLDEST, (size_t)32 << 20, NULL);
    for (unsigned n = 0; n < THREADS; n++) {
        pthread_t thread;
        start_thread(&thread, without_clean_up, NULL);
        pthread_join(thread, NULL);
    }
    const npuprof_stats s = life_account(THREADS, true);
    CHECK_UINT(s.lost, 0);
    CHECK(s.threads <= 200);
}

CHECK_MAIN(CASE(more_than_1024), CASE(ten_thousand), CASE(a_million_short_ones),
           CASE(names_that_never_come_again), CASE(leaked_slots),
           CASE_THOROUGH(threads_that_exit_by_a_system_call))

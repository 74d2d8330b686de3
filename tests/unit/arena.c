/* test: cc=-O2 - exact loss counts, 16 bytes a span, thread churn, depth, signal handlers, fork
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
static int masks;       /* the library's calls of pthread_sigmask */
static int count_masks(int how, const sigset_t *set, sigset_t *before)
{
    __atomic_fetch_add(&masks, 1, __ATOMIC_RELAXED);
    return pthread_sigmask(how, set, before);
}
#define pthread_sigmask count_masks
#include "npuprof.h"
#include "recorded.h"

#define SHARE (CHECK_SANITIZED ? 10 : 1)
#define MORE(threads) (CHECK_SANITIZED ? (threads) * 8 : (threads) < 4 ? (threads) + 1 : (threads) * 2)

/* ---- recorded + lost == executed ---- */

typedef struct load { size_t arena_bytes; int threads, spans_each; } load;
static pthread_barrier_t all_ready;

static void *spans_only(void *user)
{
    const load *l = (const load *)user;
    pthread_barrier_wait(&all_ready);
    for (int i = 0; i < l->spans_each; i++) { PROF_SCOPE("s"); }
    return NULL;
}

static void *all_kinds(void *user)
{
    const load *l = (const load *)user;
    char name[32];
    pthread_barrier_wait(&all_ready);
    for (int i = 0; i < l->spans_each / 11; i++) {
        snprintf(name, sizeof name, "name %d", i);
        record_each_kind(i, name);
    }
    return NULL;
}

static void run_threads(const load *l, void *(*work)(void *))
{
    begin_in(malloc(l->arena_bytes), l->arena_bytes, NPUPROF_KEEP_OLDEST);
    pthread_barrier_init(&all_ready, NULL, (unsigned)l->threads);
    on_threads((unsigned)l->threads, work, (void *)(uintptr_t)l, 0);
}

static void account_all_kinds(const void *user)
{
    const load *l = (const load *)user;
    run_threads(l, all_kinds);
    npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded + s.lost, (uint64_t)l->threads * (uint64_t)(l->spans_each / 11) * 11);
    CHECK_UINT(s.bytes_total, l->arena_bytes);
    json_node *t = written(), *lost = json_get(t, "metadata.npuprof.lost");      /* the file says the same */
    CHECK_UINT(trace_count(t, "X", NULL) + trace_count(t, "i", NULL) + trace_count(t, "C", NULL), s.recorded);
    uint64_t sum = 0;
    for (json_node *cause = lost ? lost->first : NULL; cause; cause = cause->next)
        if (strcmp(cause->key, "arguments") != 0) sum += (uint64_t)json_int(cause);
    CHECK_UINT(sum, s.lost);
    if (check_failures_) printf("  (with %zu bytes and %d threads)\n", l->arena_bytes, l->threads);
}

static void loss_of_all_kinds(void)
{
    static const size_t sizes[] = { 2048, 4096, 16384, 131072, 1 << 20 };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int threads = 1; threads <= 8; threads = MORE(threads)) {
            load l = { sizes[i], threads, (sizes[i] == 1 << 20 ? 20000 : 5000) / threads };
            check_in_child(account_all_kinds, &l);
        }
}

/* Why one place: a name at another line is another entry of the table. */
static void record_named(const char *name)
{
    PROF_BEGIN("c", name);
    PROF_END();
}

/* Names take at most a quarter of the arena; past that they are counted under their own cause, and known
   names go on. */
static void names_full(void)
{
    load l = { 256 * 1024, 1, 0 };
    char name[64];
    run_threads(&l, spans_only);
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "a name of some length to fill the table %d", i);
        record_named(name);
    }
    npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded + s.lost, 20000);
    CHECK(s.lost_by_cause[NPUPROF_LOST_NAMES] > 0);
    CHECK(s.recorded > 250);
    record_named("a name of some length to fill the table 0");
    CHECK_UINT(stats_now().recorded, s.recorded + 1);
    npuprof_clear();
    for (int i = 0; i < 100000; i++) {
        record_named("a name of some length to fill the table 1");
    }
    s = stats_now();
    CHECK_UINT(s.lost_by_cause[NPUPROF_LOST_NAMES], 0);
    CHECK(s.recorded * 16 > 256 * 1024 / 2);
}

/* ---- names take what they need ---- */

/* Spans of ten names in an arena that is full, by the image that is written of it. */
static void *ten_names(void *user)
{
    const load *l = (const load *)user;
    pthread_barrier_wait(&all_ready);
    for (int i = 0; i < l->spans_each; i += 10) {
        { PROF_SCOPE("decode"); }
        { PROF_SCOPE("embed"); }
        { PROF_SCOPE("attention"); }
        { PROF_SCOPE("softmax"); }
        { PROF_SCOPE("matmul"); }
        { PROF_SCOPE("normalise"); }
        { PROF_SCOPE("sample"); }
        { PROF_SCOPE("copy in"); }
        { PROF_SCOPE("copy out"); }
        { PROF_SCOPE("wait"); }
    }
    return NULL;
}

static void arena_of_ten_names(const void *user)
{
    const load *l = (const load *)user;
    run_threads(l, ten_names);
    const uint64_t lost = stats_now().lost, all = (uint64_t)l->threads * (uint64_t)l->spans_each;
    json_node *t = written();
    const size_t spans = trace_count(t, "X", NULL);
    CHECK_UINT(spans + lost, all);
    /* Why less with more threads: each has a slot. */
    if (spans * 16 < l->arena_bytes * (l->threads == 1 ? 95 : 92) / 100)
        check_failed_(__FILE__, __LINE__, "an arena of %zu bytes holds only %zu spans", l->arena_bytes,
                      spans);
}

static void names_need_little(void)
{
    const load one = { 1 << 20, 1, 70000 }, eight = { 1 << 20, 8, 70000 };
    check_in_child(arena_of_ten_names, &one);
    check_in_child(arena_of_ten_names, &eight);
}

/* Names that come when the arena is full of records, one for each span. */
static void names_of_a_full_arena(const void *user)
{
    const int when_full = *(const int *)user;
    static uint64_t memory[(1 << 20) / 8];
    char name[64];
    begin_in(memory, sizeof memory, when_full);
    for (int i = 0; i < 200000; i++) { PROF_SCOPE("s"); }
    for (int i = 0; i < 800; i++) {
        snprintf(name, sizeof name, "a name of a name table that has to grow, %d", i);
        record_named(name);
    }
    npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded + s.lost, 200800);
    if (when_full == NPUPROF_KEEP_OLDEST) {
        CHECK(s.lost_by_cause[NPUPROF_LOST_NAMES] + s.lost_by_cause[NPUPROF_LOST_FULL] == s.lost);
        CHECK(s.lost_by_cause[NPUPROF_LOST_NAMES] > 0);
    } else {
        CHECK_UINT(s.lost_by_cause[NPUPROF_LOST_NAMES], 0);
    }
    if (when_full != NPUPROF_KEEP_NEWEST) return;
    json_node *t = written();
    int found = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        const char *const n = json_text(json_get(e, "name"));
        found += n && strncmp(n, "a name of a name table", 22) == 0;
    }
    CHECK_INT(found, 800);
}

static void names_come_late(void)
{
    static const int when_full[] = { NPUPROF_KEEP_OLDEST, NPUPROF_KEEP_NEWEST, NPUPROF_STREAM };
    for (int i = 0; i < 3; i++) check_in_child(names_of_a_full_arena, &when_full[i]);
}

/* ---- the size of a span ---- */

static void sixteen_bytes(void)
{
    enum { SPANS = 100000 };
    npuprof_start(1);
    for (int i = 0; i < 2; i++) { PROF_SCOPE("s"); }
    npuprof_stats before = stats_now();
    for (int i = 1; i < SPANS; i++) { PROF_SCOPE("s"); }
    { PROF_SCOPE("s2"); }
    npuprof_stats after = stats_now();
    CHECK_UINT(after.recorded - before.recorded, SPANS);
    CHECK_UINT((after.bytes_used - before.bytes_used) / SPANS, 16);
}

/* An arena of n bytes holds nearly n / 16 spans. */
static void arena_is_used(const void *user)
{
    const load *l = (const load *)user;
    run_threads(l, spans_only);
    npuprof_stats s = stats_now();
    if (s.recorded * 16 < l->arena_bytes * 7 / 10)
        check_failed_(__FILE__, __LINE__, "an arena of %zu bytes holds only %" PRIu64 " spans",
                      l->arena_bytes, s.recorded);
}

/* A thread's first record may hold signals; after that none does under keep-oldest, over many chunks. */
static void no_system_call(void)
{
    npuprof_start(1);
    { PROF_SCOPE("first"); }
    __atomic_store_n(&masks, 0, __ATOMIC_RELAXED);
    for (int i = 0; i < 100000; i++) { PROF_SCOPE_ARGS("c", "s", PROF_ARGS(PROF_INT("i", i))); }
    CHECK_INT(masks, 0);
    CHECK(stats_now().recorded > 50000);
}

static void arena_use(void)
{
    static const load loads[] = { { 65536, 1, 5000 }, { 1 << 20, 1, 70000 }, { 1 << 20, 4, 70000 },
                                  { (size_t)8 << 20, 8, 70000 } };
    for (size_t i = 0; i < 4; i++) check_in_child(arena_is_used, &loads[i]);
}

/* ---- threads ---- */

static void *short_thread(void *unused)
{
    (void)unused;
    PROF_SCOPE("thread");
    { PROF_SCOPE_ARGS("c", "inner", PROF_ARGS(PROF_INT("n", 1))); }
    PROF_INSTANT("c", "end", PROF_NO_ARGS);
    return NULL;
}

/* Churn with an arena that fills, 16 threads at a time: still exact. */
static void thread_churn_full(void)
{
    enum { AT_ONCE = 16, ROUNDS = 2000 / AT_ONCE / SHARE };
    load l = { 16384, 1, 0 };
    run_threads(&l, spans_only);
    for (int round = 0; round < ROUNDS; round++) {
        on_threads(AT_ONCE, short_thread, NULL, 0);
    }
    npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded + s.lost, 3 * AT_ONCE * ROUNDS);
    written();
}

/* Results of a thread for which there is no slot are lost arguments. */
static void *result_beside_others(void *user)
{
    (void)user;
    PROF_SCOPE("work");
    PROF_RESULT(PROF_INT("a", 1), PROF_INT("b", 2));
    pthread_barrier_wait(&all_ready);
    return NULL;
}

static void results_without_a_slot(void)
{
    const load l = { 2048, 64, 1 };
    run_threads(&l, result_beside_others);
    npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded + s.lost, 64);
    CHECK(s.lost_by_cause[NPUPROF_LOST_CONTEXT] > 0);
    CHECK(s.lost_by_cause[NPUPROF_LOST_ARGUMENTS] >= 2 * s.lost_by_cause[NPUPROF_LOST_CONTEXT]);
}

/* A thread that ends by pthread_exit() or is cancelled inside a span gives its slot back too. */
static void *leave_inside(void *user)
{
    PROF_SCOPE("left");
    PROF_BEGIN("c", "left by hand");
    if (!user) pthread_exit(NULL);
    for (;;) usleep(1000), pthread_testcancel();
    return NULL;
}

static void thread_ends_inside_a_span(void)
{
    npuprof_start(1);
    for (int i = 0; i < 200; i++) {
        pthread_t thread = started(leave_inside, i % 50 ? NULL : &masks);
        if (i % 50 == 0) usleep(500), pthread_cancel(thread);
        pthread_join(thread, NULL);
        on_a_thread(short_thread, NULL);
    }
    npuprof_stats s = stats_now();
    /* a cancel may come before the spans */
    CHECK(s.recorded + s.lost >= 200 * 5 - 8 && s.recorded + s.lost <= 200 * 5);
    CHECK(s.threads <= 2);
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", "inner"), 200);
}

/* ---- depth ---- */

static void dive(int depth)
{
    PROF_SCOPE_ARGS("c", "dive", PROF_ARGS(PROF_INT("depth", depth)));
    if (depth > 1) dive(depth - 1);
}

static void deep_nesting(void)
{
    npuprof_start(1);
    for (int round = 0; round < 3; round++) {
        dive(400);
        { PROF_SCOPE("after"); }
    }
    npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded + s.lost, 3 * 401);
    CHECK_UINT(s.lost, s.lost_by_cause[NPUPROF_LOST_DEPTH]);
    json_node *t = written();
    CHECK_COUNTS(t, "X", { "after", 3 }, { NULL, s.recorded });
    for (size_t i = 0; i < 3; i++)
        CHECK(trace_start(trace_event(t, "X", "after",
                                      i)) >= trace_end(trace_event(t, "X", "dive",
                                                                   i * (s.recorded / 3 - 1))));
}

static void very_deep_nesting(void)
{
    npuprof_start(1);
    dive(5000);
    { PROF_SCOPE("after"); }
    npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded + s.lost, 5001);
    CHECK(s.lost_by_cause[NPUPROF_LOST_DEPTH] > 0);   /* viewers take 512 */
    CHECK_INT(json_int(json_get(written(), "metadata.npuprof.lost.too_deep")), (int64_t)s.lost);
}

/* A span open over many chunks stays one span, at its place. */
static void long_span(void)
{
    load l = { 1 << 20, 1, 0 };
    run_threads(&l, spans_only);
    {
        PROF_SCOPE("long");
        PROF_BEGIN("c", "long 2");
        for (int i = 0; i < 20000; i++) { PROF_SCOPE_ARGS("c", "short", PROF_NO_ARGS); }
        PROF_END();
    }
    { PROF_SCOPE("after"); }
    npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded, 20003);
    json_node *t = written(), *longest = trace_event(t, "X", "long", 0);
    CHECK_COUNTS(t, "X", { "long", 1 }, { "long 2", 1 }, { "short", 20000 });
    CHECK(trace_inside(trace_event(t, "X", "short", 0), longest)
          && trace_inside(trace_event(t, "X", "short", 19999), longest));
    CHECK(json_get(longest, "args") == NULL);
}

/* An open span whose end comes when the arena is long full: it is not lost. */
static void end_is_never_lost(void)
{
    load l = { 32768, 1, 0 };
    run_threads(&l, spans_only);
    {
        PROF_SCOPE("long");
        for (int i = 0; i < 20000; i++) { PROF_SCOPE("short"); }
        usleep(1000);
    }
    npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded + s.lost, 20001);
    json_node *t = written(), *longest = trace_event(t, "X", "long", 0);
    CHECK_STOP(longest != NULL);
    CHECK(json_get(longest, "args") == NULL);
    CHECK(trace_dur(longest) > 1000000);
}

/* ---- signals ---- */

static volatile sig_atomic_t handled;
static void handler(int signal_number)
{
    (void)signal_number;
    PROF_SCOPE("handler");
    PROF_INSTANT("c", "tick", PROF_ARGS(PROF_INT("n", 1)));
    handled++;
}

static void under_a_timer(size_t arena_bytes, int rounds)
{
    struct sigaction action;
    struct itimerval timer = { { 0, 60 }, { 0, 60 } }, off;
    load l = { arena_bytes, 1, 0 };
    uint64_t executed = 0;
    run_threads(&l, spans_only);
    memset(&off, 0, sizeof off);
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; i < rounds; i++) {
        PROF_SCOPE("outer");
        { PROF_SCOPE_ARGS("c", "inner", PROF_ARGS(PROF_INT("i", i))); }
        { PROF_PHASES("p1"); PROF_NEXT("p2"); }
        PROF_COUNTER("i", i);
        PROF_BEGIN("c", "by hand");
        PROF_END();
        executed += 6;
    }
    setitimer(ITIMER_REAL, &off, NULL);
    npuprof_stop();
    npuprof_stats s = stats_now();
    CHECK(handled > 5);
    CHECK_UINT(s.recorded + s.lost, executed + 2 * (uint64_t)handled);
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", NULL) + trace_count(t, "i", NULL) + trace_count(t, "C", NULL), s.recorded);
    if (!s.lost) {
        CHECK_COUNTS(t, "X", { "handler", (uint64_t)handled }, { "outer", (uint64_t)rounds });
    }
}

static void signal_handler(void) { under_a_timer((size_t)16 << 20, 20000 / SHARE); }
static void signal_handler_full(void) { under_a_timer(65536, 200000 / SHARE); }

/* The handler comes as the thread's very first record. */
static void signal_first(void)
{
    npuprof_start(1);
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    { PROF_SCOPE("main"); raise(SIGUSR1); }
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", "handler"), 2);
    CHECK(trace_inside(trace_event(t, "X", "handler", 1), trace_event(t, "X", "main", 0)));
}

/* ---- fork ---- */

static void fork_child(void)
{
    int status = 0;
    npuprof_start(1);
    { PROF_SCOPE("before"); }
    PROF_SCOPE("open in the parent");
    PROF_BEGIN("c", "by hand, open in the parent");
    pid_t child = fork();
    if (child == 0) {
        check_failures_ = 0;
        npuprof_stats s = stats_now();
        CHECK_UINT(s.recorded + s.lost, 0);
        PROF_END();
        { PROF_SCOPE("of the child"); { PROF_SCOPE_ARGS("c", "inner", PROF_ARGS(PROF_INT("n", 1))); } }
        PROF_COUNTER("n", 1);
        s = stats_now();
        CHECK_UINT(s.recorded, 3);
        CHECK_UINT(s.lost, 0);
        json_node *t = written();
        CHECK_COUNTS(t, "X", { NULL, 2 }, { "of the child", 1 });
        CHECK_INT(json_int(json_get(trace_event(t, "X", "inner", 0), "pid")), getpid());
        CHECK_INT(json_int(json_get(t, "metadata.npuprof.pid")), getpid());
        exit(check_failures_ ? 1 : 0);
    }
    CHECK_STOP(waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
    { PROF_SCOPE("after"); }
    PROF_END();
    json_node *t = written();
    CHECK_COUNTS(t, "X", { NULL, 4 }, { "of the child", 0 });
    CHECK_INT(json_int(json_get(t, "metadata.npuprof.pid")), getpid());
}

static volatile int stop_threads;
static void *until_stopped(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&stop_threads, __ATOMIC_RELAXED)) { PROF_SCOPE("busy"); { PROF_SCOPE("inner"); } }
    return NULL;
}

/* A fork in the middle of other threads' records. */
static void fork_beside_threads(void)
{
    pthread_t threads[2];
    npuprof_start(1);
    for (int i = 0; i < 2; i++) threads[i] = started(until_stopped, NULL);
    for (int i = 0; i < 10; i++) {
        int status = 0;
        usleep(500);
        pid_t child = fork();
        if (child == 0) {
            for (int k = 0; k < 3000; k++) { PROF_SCOPE("child"); }
            npuprof_stats s = stats_now();
            _exit(s.recorded == 3000 && s.lost == 0 ? 0 : 3);
        }
        CHECK(waitpid(child, &status, 0) == child);
        CHECK_INT(status, 0);
    }
    __atomic_store_n(&stop_threads, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

/* Reading, toggling and clearing beside recording threads: no crash, each file whole. */
static void read_beside_threads(void)
{
    pthread_t threads[3];
    load l = { (1 << 20) / SHARE, 1, 0 };
    run_threads(&l, spans_only);
    for (int i = 0; i < 3; i++) threads[i] = started(until_stopped, NULL);
    for (int i = 0; i < 12; i++) {
        npuprof_stats s = stats_now();
        CHECK(s.threads <= 4);
        written();
        if (i % 4 == 1) npuprof_clear();
        if (i % 4 == 2) npuprof_set_categories(i % 8 ? "x" : NULL);
        if (i % 4 == 3) { npuprof_stop(); npuprof_start(1); npuprof_pause(); npuprof_resume(); }
    }
    __atomic_store_n(&stop_threads, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    npuprof_set_categories(NULL);
    npuprof_clear();
    { PROF_SCOPE("last"); }
    npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded + s.lost, 1);
}

CHECK_MAIN(CASE(loss_of_all_kinds), CASE(names_full), CASE(names_need_little),
           CASE(names_come_late), CASE(sixteen_bytes), CASE(no_system_call), CASE(arena_use),
           CASE(thread_churn_full), CASE(results_without_a_slot),
           CASE(thread_ends_inside_a_span), CASE(deep_nesting), CASE(very_deep_nesting), CASE(long_span),
           CASE(end_is_never_lost), CASE(signal_handler), CASE(signal_handler_full), CASE(signal_first),
           CASE(fork_child), CASE(fork_beside_threads), CASE_THOROUGH(read_beside_threads))

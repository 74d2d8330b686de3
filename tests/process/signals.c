/* test: soak=600 valgrind cc=-O2 lib=-lrt - timer signals at 10 kHz that record inside what they interrupt:
   exact counts, no torn record
   SPDX-License-Identifier: MIT */
#include "life.h"
#include <sys/syscall.h>

/* Thread sanitizer hands a signal on when it likes to, sometimes none for a minute, and lets no handler
   interrupt another. */
#if defined(__SANITIZE_THREAD__)
#define SIGNALS_COME 0
#elif defined(__has_feature)
#define SIGNALS_COME (!__has_feature(thread_sanitizer))
#else
#define SIGNALS_COME 1
#endif

/* Each record carries a number and what belongs to it. */
#define KEY(n) ((n) * UINT64_C(0x9E3779B97F4A7C15) >> 20)
static volatile uint64_t handled[2], nested;
static volatile int inside;

static void handler(int number)
{
    const int which = number != SIGRTMIN;
    const uint64_t n = handled[which];
    if (!npuprof_is_recording()) return;   /* thread sanitizer hands on what came before the stop */
    nested += inside != 0;
    inside++;
    {
        PROF_SCOPE_ARGS("handler", "outer", PROF_ARGS(PROF_UINT("n", n), PROF_UINT("key", KEY(n))));
        { PROF_SCOPE("plain"); }
        PROF_BEGIN("by hand", which ? "second" : "first");
        if (which == 0 && n % 50 == 0) raise(SIGRTMIN + 1);      /* nested for certain */
        PROF_END();
        PROF_COUNTER("ticks", n);
    }
    inside--;
    handled[which]++;
}
enum { IN_A_HANDLER = 4 };

/* Room for what the sink gets. Why: it is called from handlers, too, and may not ask for memory there. */
static life_memory *roomy(void)
{
    static life_memory memory;
    memory.room = (size_t)(life_is_soak() ? 2000 : 300) << 20;
    memory.bytes = (uint8_t *)malloc(memory.room);
    CHECK_STOP(memory.bytes != NULL);
    return &memory;
}

/* Sends a signal to the calling thread every 100 us; two of them, out of step. Under valgrind every 2 ms, as
   handlers take longer. */
static void start_timers(timer_t timers[2])
{
    const long period_ns = getenv("NPUPROF_TEST_SLOW") ? 2000000 : 100000;
    struct sigaction action = { 0 };
    sigemptyset(&action.sa_mask);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;          /* each may interrupt the other */
    /* Why both first: the first handler raises the second signal at once. */
    for (int i = 0; i < 2; i++) sigaction(SIGRTMIN + i, &action, NULL);
    for (int i = 0; i < 2; i++) {
        struct sigevent event;
        struct itimerspec every = { { 0, period_ns }, { 0, period_ns / 2 * (i + 1) } };
        memset(&event, 0, sizeof event);
        event.sigev_notify = SIGEV_SIGNAL;
        event.sigev_signo = SIGRTMIN + i;
        CHECK_STOP(timer_create(CLOCK_MONOTONIC, &event, &timers[i]) == 0);
        CHECK_STOP(timer_settime(timers[i], 0, &every, NULL) == 0);
    }
}

static void stop_timers(timer_t timers[2])
{
    for (int i = 0; i < 2; i++) timer_delete(timers[i]);
    signal(SIGRTMIN, SIG_IGN);
    signal(SIGRTMIN + 1, SIG_IGN);
}

typedef struct looked { uint64_t bad, handlers, mains; } looked;
static void look(life_counts *c, const char *line)
{
    looked *l = (looked *)c->user;
    const bool of_handler = life_has(line, "\"name\":\"outer\",\"cat\":\"handler\"");
    if (!of_handler && !life_has(line, "\"name\":\"main\",\"cat\":\"m\"")) return;
    l->handlers += of_handler;
    l->mains += !of_handler;
    const uint64_t n = (uint64_t)life_number(line, "n"), key = (uint64_t)life_number(line, "key");
    /* Arguments may be lost as a whole, and are counted then; wrong ones never. */
    if (life_has(line, "\"args\":{\"n\"") && key != KEY(n)) l->bad++;
    if (life_has(line, "\"unfinished\"")) l->bad++;
}

static void under_timers(int policy, size_t arena_bytes, double seconds)
{
    life_memory *const memory = roomy();
    timer_t timers[2];
    uint64_t rounds = 0;
    looked l = { 0, 0, 0 };
    life_begin(policy, arena_bytes, memory);
    start_timers(timers);
    const double until = life_seconds() + seconds;
    /* Longer where that brings too few signals: on a busy machine. */
    for (;;) {
        const double now = rounds % 64 ? 0 : life_seconds();
        if (now >= until && (now >= until + (SIGNALS_COME ? 60 : 3)
                             || (handled[0] > 10 && handled[1] > 10 && (nested || !SIGNALS_COME)))) break;
        PROF_SCOPE_ARGS("m", "main", PROF_ARGS(PROF_UINT("n", rounds), PROF_UINT("key", KEY(rounds))));
        { PROF_SCOPE("inner"); }
        { PROF_PHASES("p1"); PROF_NEXT("p2"); }
        PROF_BEGIN("c", rounds % 2 ? "odd" : "even");
        PROF_END();
        PROF_COUNTER("rounds", rounds);
        rounds++;
    }
    stop_timers(timers);
    npuprof_stop();
    const uint64_t executed = rounds * 6 + (handled[0] + handled[1]) * IN_A_HANDLER;
    if (SIGNALS_COME) CHECK(handled[0] > 10 && handled[1] > 10 && nested > 0);
    if (policy == NPUPROF_STREAM) CHECK_INT(npuprof_flush(), NPUPROF_OK);
    const npuprof_stats s = life_account(executed, true);
    if (policy == NPUPROF_STREAM) {
        life_check_streamed(memory, s.recorded, s.lost, true);
        CHECK_INT(npuprof_load_memory(memory->bytes, memory->count, NULL), NPUPROF_OK);
    }
    life_count(look, &l);
    CHECK_UINT(l.bad, 0);
    if (s.lost == 0) {
        CHECK_UINT(l.handlers, handled[0] + handled[1]);
        CHECK_UINT(l.mains, rounds);
    }
    if (s.recorded < 400000) (void)written();
    printf("note %s, %zu KiB: %" PRIu64 " rounds under %" PRIu64 " signals in %.1f s, %" PRIu64
           " of them nested, %" PRIu64
           " records lost\n",
           life_policy_names[policy], arena_bytes / 1024, rounds, handled[0] + handled[1], seconds, nested,
           s.lost);
}

static double seconds(void) { return life_is_soak() ? 5 : 0.2; }

static void kept(void)
{
    under_timers(NPUPROF_KEEP_OLDEST, (size_t)(life_is_soak() ? 1024 : life_is_slow() ? 16 : 128) << 20,
                 seconds());
}

static void full(void) { under_timers(NPUPROF_KEEP_OLDEST, 65536, seconds()); }
static void overwriting(void) { under_timers(NPUPROF_KEEP_NEWEST, 1 << 20, seconds()); }
static void overwriting_small(void) { under_timers(NPUPROF_KEEP_NEWEST, 16384, seconds()); }
static void streaming(void) { under_timers(NPUPROF_STREAM, 1 << 20, seconds()); }
static void streaming_small(void) { under_timers(NPUPROF_STREAM, 16384, seconds()); }

/* Signals of other threads, as fast as they come, to threads that record. */
static volatile int stop;
static __thread volatile uint64_t mine;
static void count_here(int number)
{
    (void)number;
    PROF_SCOPE_ARGS("handler", "outer", PROF_ARGS(PROF_UINT("n", 3), PROF_UINT("key", KEY(UINT64_C(3)))));
    PROF_INSTANT("c", "i", PROF_NO_ARGS);
    mine += 2;
}

static void *record_until_stopped(void *user)
{
    uint64_t n = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        PROF_SCOPE("a");
        { PROF_SCOPE_ARGS("m", "main", PROF_ARGS(PROF_UINT("n", n), PROF_UINT("key", KEY(n)))); }
        n += 2;
    }
    /* Why: one that was sent before the stop may come after it. */
    sigset_t this_one;
    sigemptyset(&this_one);
    sigaddset(&this_one, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &this_one, NULL);
    *(uint64_t *)user = n + mine;
    return NULL;
}

static void storm(int policy, size_t arena_bytes)
{
    enum { THREADS = 3 };
    life_memory *const memory = roomy();
    pthread_t thread[THREADS];
    uint64_t executed[THREADS], sum = 0;
    looked l = { 0, 0, 0 };
    signal(SIGUSR1, count_here);
    life_begin(policy, arena_bytes, memory);
    for (int i = 0; i < THREADS; i++)
        CHECK_STOP(!pthread_create(&thread[i], NULL, record_until_stopped, &executed[i]));
    for (int i = 0; i < (getenv("NPUPROF_TEST_SLOW") ? 30 : CHECK_SANITIZED ? 300 : 6000); i++)
        pthread_kill(thread[i % THREADS], SIGUSR1);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        sum += executed[i];
    }
    if (policy == NPUPROF_STREAM) CHECK_INT(npuprof_flush(), NPUPROF_OK);
    const npuprof_stats s = life_account(sum, true);
    if (policy == NPUPROF_STREAM) life_check_streamed(memory, s.recorded, s.lost, true);
    life_count(look, &l);
    CHECK_UINT(l.bad, 0);
}

static void storm_kept(void) { storm(NPUPROF_KEEP_OLDEST, 1 << 20); }
static void storm_overwriting(void) { storm(NPUPROF_KEEP_NEWEST, 1 << 20); }
static void storm_streaming(void) { storm(NPUPROF_STREAM, 1 << 20); }

/* A span of a thread and one of its handler that both outlast their chunks, which had the same place in
   memory one after the other: each ends when its block does. */
static unsigned before_it;
static int between_chunks(life_memory *m, size_t count)
{
    (void)m;
    (void)count;
    if (!inside) raise(SIGUSR1);
    return 0;
}

static void outlasting(int number)
{
    (void)number;
    inside = 1;
    for (unsigned i = 0; i < before_it; i++) PROF_INSTANT("c", "before it", PROF_NO_ARGS);
    {
        PROF_SCOPE_CAT("handler", "outer");
        for (unsigned i = 0; i < 70; i++) PROF_INSTANT("c", "inside it", PROF_NO_ARGS);
    }
    inside = 0;
}

/* The last event in each span is in it. */
static void look_at_last(life_counts *c, const char *line)
{
    static double end;
    looked *l = (looked *)c->user;
    const bool is_main = life_has(line, "\"name\":\"main\",\"cat\":\"m\"");
    const bool is_last = life_has(line, "\"name\":\"last\",\"cat\"");
    l->bad += life_has(line, "\"unfinished\"");
    if (!is_main && !is_last) return;
    const double start = strtod(strstr(line, "\"ts\":") + 5, NULL);
    if (is_main) end = start + strtod(strstr(line, "\"dur\":") + 6, NULL);
    l->mains += is_main;
    l->handlers += is_last;
    l->bad += is_last && start > end;
}

static void both_outlast_their_chunks(void)
{
    enum { ROUNDS = 120 };
    life_memory *const memory = roomy();
    looked l = { 0, 0, 0 };
    memory->before = between_chunks;
    signal(SIGUSR1, outlasting);
    life_begin(NPUPROF_STREAM, 16384, memory);
    for (unsigned round = 0; round < ROUNDS; round++) {
        PROF_SCOPE_CAT("m", "main");
        before_it = round % 60;
        for (unsigned i = 0; i < 200 + round % 7; i++) PROF_INSTANT("c", "of the thread", PROF_NO_ARGS);
        PROF_INSTANT("c", "last", PROF_NO_ARGS);
    }
    memory->before = NULL;
    CHECK_INT(npuprof_flush(), NPUPROF_OK);
    CHECK_INT(npuprof_load_memory(memory->bytes, memory->count, NULL), NPUPROF_OK);
    life_count(look_at_last, &l);
    CHECK_UINT(l.bad, 0);
    CHECK_UINT(l.mains, ROUNDS);
    CHECK_UINT(l.handlers, ROUNDS);
}

CHECK_MAIN(CASE_THOROUGH(kept), CASE(full), CASE(both_outlast_their_chunks), CASE_THOROUGH(overwriting),
           CASE(overwriting_small), CASE_THOROUGH(streaming), CASE_THOROUGH(streaming_small),
           CASE(storm_kept), CASE(storm_overwriting), CASE(storm_streaming))

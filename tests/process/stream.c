/* test: soak=400 valgrind cc=-O2 - streaming: nothing lost in constant memory; a full disk, a closed pipe,
   short writes are counted
   SPDX-License-Identifier: MIT */
#include "life.h"
#include <sys/resource.h>
#include <sys/time.h>

static void begin_streaming(void *arena, size_t arena_bytes, const char *path, npuprof_sink sink)
{
    npuprof_desc desc = { 0 };
    desc.arena = arena;
    desc.arena_bytes = arena_bytes;
    desc.when_full = NPUPROF_STREAM;
    desc.output_path = path;
    desc.sink = sink;
    CHECK_STOP(arena != NULL);
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    npuprof_start(1);
}

static void begin_to_file(const char *path, size_t arena_bytes)
{
    begin_streaming(malloc(arena_bytes), arena_bytes, path, (npuprof_sink){ NULL, NULL });
}

/* ---- to a file ---- */

/* Where a large file may go: a memory file system, else the test's own directory. */
static life_path large_path(void)
{
    if (life_is_soak() && access("/dev/shm", W_OK) == 0) setenv("NPUPROF_TEST_TMP", "/dev/shm", 1);
    return life_own_path("npuprof");
}

static void to_a_file(void)
{
    const uint64_t n = life_scaled(3000000, 100000000);
    const life_path name = large_path();
    const char *path = name.path;
    size_t before = 0;
    struct stat st;
    begin_to_file(name.pattern, 1 << 20);
    double started = life_seconds();
    for (uint64_t i = 0; i < n; i++) {
        PROF_SCOPE("s");
        if (i == n / 10) before = life_resident_bytes();
    }
    const double took = life_seconds() - started;
    const size_t after = life_resident_bytes();
    if (!CHECK_SANITIZED) CHECK(after <= before + (1 << 20));
    CHECK_INT(npuprof_flush(), NPUPROF_OK);
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded, n);
    CHECK_UINT(s.lost, 0);
    CHECK_INT(stat(path, &st), 0);
    CHECK((uint64_t)st.st_size >= n * 2 && (uint64_t)st.st_size < n * 6 + (4 << 20));
    life_check_file(path, n, 0);
    unlink(path);
    printf("note stream: %.1f ns a span, sustained, over %" PRIu64
           " spans to a file in %.8s, resident %zu KiB at a tenth, %zu KiB at the end\n",
           took / (double)n * 1e9, n, path, before / 1024, after / 1024);
}

/* The recording alone, to compare: an arena that holds them all, touched before. */
static void recording_alone(void)
{
    const uint64_t n = life_scaled(1000000, 10000000);
    life_begin(NPUPROF_KEEP_OLDEST, (size_t)n * 24 + (1 << 20), NULL);
    for (uint64_t i = 0; i < n; i++) { PROF_SCOPE("s"); }
    CHECK_UINT(stats_now().recorded, n);
    npuprof_clear();
    const double started = life_seconds();
    for (uint64_t i = 0; i < n; i++) { PROF_SCOPE("s"); }
    const double took = life_seconds() - started;
    CHECK_UINT(stats_now().recorded + stats_now().lost, n);
    printf("note recording alone: %.1f ns a span\n", took / (double)n * 1e9);
}

static int count_only(void *user, const void *bytes, size_t count)
{
    (void)bytes;
    *(uint64_t *)user += count;
    return 0;
}

static void to_a_counting_sink(void)
{
    const uint64_t n = life_scaled(3000000, 100000000);
    static uint64_t got = 0;
    begin_streaming(malloc(1 << 20), 1 << 20, NULL, (npuprof_sink){ count_only, &got });
    const double started = life_seconds();
    for (uint64_t i = 0; i < n; i++) { PROF_SCOPE("s"); }
    const double took = life_seconds() - started;
    CHECK_INT(npuprof_flush(), NPUPROF_OK);
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded, n);
    CHECK_UINT(s.lost, 0);
    CHECK(got >= n * 2 && got < n * 6);
    printf("note stream: %.1f ns a span, sustained, to a sink that only counts, %.2f bytes a span\n",
           took / (double)n * 1e9,
           (double)got / (double)n);
}

/* ---- long spans pin nothing; the order of things ---- */

static void long_spans(void)
{
    static life_memory memory;          /* the sink is called at exit, too */
    life_begin(NPUPROF_STREAM, 65536, &memory);
    const uint64_t n = life_scaled(100000, 100000);
    {
        PROF_SCOPE_ARGS("c", "long", PROF_ARGS(PROF_INT("n", 7)));
        PROF_BEGIN("run-time", "by hand");
        for (uint64_t i = 0; i < n; i++) { PROF_SCOPE_ARGS("c", "short", PROF_ARGS(PROF_UINT("n", i))); }
        PROF_END();
    }
    CHECK_INT(npuprof_flush(), NPUPROF_OK);
    const npuprof_stats s = life_account(n + 2, true);
    CHECK_UINT(s.lost, 0);
    life_check_streamed(&memory, n + 2, 0, true);
    CHECK_INT(npuprof_load_memory(memory.bytes, memory.count, NULL), NPUPROF_OK);
    json_node *t = written(), *longest = trace_event(t, "X", "long", 0),
        *hand = trace_event(t, "X", "by hand", 0);
    CHECK_STOP(longest && hand);
    CHECK_COUNTS(t, "X", { "long", 1 }, { "by hand", 1 });
    CHECK_INT(json_int(json_get(longest, "args.n")), 7);     /* its arguments are in the file, too */
    CHECK(trace_inside(hand, longest));
    int64_t expected = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        const char *name = json_text(json_get(e, "name"));
        if (!name || strcmp(name, "short") != 0) continue;
        if (json_int(json_get(e, "args.n")) != expected++) {
            CHECK_INT(json_int(json_get(e, "args.n")), expected - 1);
            break;
        }
    }
    CHECK_INT(expected, n);
}

/* Flushes in the middle, many, hand copies over: each event is there once in the end; the spans open at a
   flush are unfinished in what a reader sees at that moment, and whole later. */
static void flush_often(void)
{
    static life_memory memory;
    char name[32];
    life_begin(NPUPROF_STREAM, 1 << 20, &memory);
    PROF_THREAD_NAME("flusher");
    uint64_t executed = 1;
    {
        PROF_SCOPE("over all");
        for (int i = 0; i < 200; i++) {
            snprintf(name, sizeof name, "name %d", i);
            PROF_BEGIN("c", name);
            PROF_COUNTER("n", i);
            executed += 2;
            CHECK_INT(npuprof_flush(), NPUPROF_OK);
            if (i == 150) {
                uint8_t *copy = (uint8_t *)malloc(memory.count);
                CHECK_STOP(copy != NULL);
                memcpy(copy, memory.bytes, memory.count);
                CHECK_INT(npuprof_load_memory(copy, memory.count, NULL), NPUPROF_OK);
                life_account(executed, true);
                json_node *t = written();
                CHECK_STR(json_text(json_get(trace_event(t, "X", "over all", 0), "args.unfinished")), "true");
                CHECK_STR(json_text(json_get(trace_event(t, "X", "name 150", 0), "args.unfinished")), "true");
                CHECK(json_get(trace_event(t, "X", "name 149", 0), "args.unfinished") == NULL);
                CHECK_STR(trace_track(t, trace_event(t, "X", "name 149", 0)), "flusher");
                npuprof_unload();
            }
            PROF_END();
        }
    }
    CHECK_INT(npuprof_flush(), NPUPROF_OK);
    life_account(executed, true);
    life_check_streamed(&memory, executed, 0, true);
    CHECK_INT(npuprof_load_memory(memory.bytes, memory.count, NULL), NPUPROF_OK);
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", "over all"), 1);
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next)
        CHECK(json_get(e, "args.unfinished") == NULL);
}

/* ---- threads and a slow sink ---- */

static pthread_barrier_t all_ready;
static uint64_t spans_each;
static void *spans(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&all_ready);
    PROF_SCOPE("thread");
    for (uint64_t i = 1; i < spans_each; i++) { PROF_SCOPE_ARGS("c", "s", PROF_ARGS(PROF_UINT("n", i))); }
    return NULL;
}

static int slow(life_memory *m, size_t count)
{
    (void)count;
    if (m->calls % 16 == 0) usleep(200);
    return 0;
}

static uint64_t sinks_own;
static int records_itself(life_memory *m, size_t count)
{
    sinks_own++;
    PROF_SCOPE_ARGS("sink", "inside the sink",
                    PROF_ARGS(PROF_UINT("call", m->calls), PROF_UINT("bytes", count)));
    return 0;
}

static void threads_to(int threads, uint64_t each, size_t arena_bytes,
                       int (*before)(life_memory *m, size_t count))
{
    static life_memory memory;          /* the sink is called at exit, too */
    memory.before = before;
    spans_each = each;
    life_begin(NPUPROF_STREAM, arena_bytes, &memory);
    pthread_barrier_init(&all_ready, NULL, (unsigned)threads);
    on_threads((unsigned)threads, spans, NULL, 0);
    CHECK_INT(npuprof_flush(), NPUPROF_OK);
    if (before == records_itself) {
        const npuprof_stats s = stats_now();
        npuprof_stop();
        /* Who is inside the sink cannot wait for a chunk that only its return sets free. How often that is
           depends on the machine; the others wait. */
        CHECK_UINT(s.recorded + s.lost, (uint64_t)threads * each + sinks_own);
        CHECK(s.lost < sinks_own);
        printf("note the sink recorded %" PRIu64 ", of which %" PRIu64 " are lost\n", sinks_own, s.lost);
        CHECK_INT(npuprof_flush(), NPUPROF_OK);
        life_check_streamed(&memory, stats_now().recorded, s.lost, true);
        return;
    }
    const npuprof_stats s = life_account((uint64_t)threads * each, true);
    CHECK_UINT(s.lost, 0);                 /* who needs a chunk waits */
    life_check_streamed(&memory, s.recorded, 0, true);
}

static void many_threads(void) { threads_to(16, life_scaled(20000, 500000), 1 << 20, NULL); }
static void slow_sink(void) { threads_to(4, life_scaled(10000, 100000), 65536, slow); }

static int refuses_aloud(life_memory *m, size_t count)
{
    (void)count;
    errno = ENOSPC;
    return m->calls % 2 ? ENOSPC : 0;
}

/* What the library does inside a span never shows in errno: setting up, a chunk change, a sink that fails. */
static void errno_survives(void)
{
    static life_memory memory;
    memory.before = refuses_aloud;
    setenv("NPUPROF_OUTPUT", "/nowhere/at/all.json", 1);
    life_begin(NPUPROF_STREAM, 65536, &memory);
    errno = 4321;
    for (int i = 0; i < 5000; i++) { PROF_SCOPE("s"); }
    CHECK_INT(errno, 4321);
    CHECK(memory.calls > 10);
    unsetenv("NPUPROF_OUTPUT");
}

static void sink_that_records(void) { threads_to(4, life_scaled(10000, 100000), 65536, records_itself); }

/* A handler that finds no chunk while the main thread is in the sink counts; nobody waits for himself. */
static volatile sig_atomic_t handled;
static void handler(int number)
{
    (void)number;
    for (int i = 0; i < 300; i++) { PROF_SCOPE_ARGS("c", "handler", PROF_ARGS(PROF_INT("n", i))); }
    handled++;
}

static int interrupted(life_memory *m, size_t count)
{
    (void)count;
    if (m->calls % 8 == 0) raise(SIGUSR1);
    return 0;
}

static void handler_inside_the_sink(void)
{
    static life_memory memory;          /* the sink is called at exit, too */
    memory.before = interrupted;
    signal(SIGUSR1, handler);
    life_begin(NPUPROF_STREAM, 16384, &memory);
    const uint64_t n = life_scaled(20000, 100000);
    for (uint64_t i = 0; i < n; i++) { PROF_SCOPE_ARGS("c", "main", PROF_ARGS(PROF_UINT("n", i))); }
    memory.before = NULL;
    CHECK_INT(npuprof_flush(), NPUPROF_OK);
    CHECK(handled > 10);
    const npuprof_stats s = life_account(n + 300 * (uint64_t)handled, true);
    CHECK_UINT(s.lost, s.lost_by_cause[NPUPROF_LOST_FULL] + s.lost_by_cause[NPUPROF_LOST_CONTEXT]);
    life_check_streamed(&memory, s.recorded, s.lost, true);
}

/* ---- failures ---- */

/* A sink that takes only parts of what comes. What it refused is in the cause `sink`; what it took can be
   read. */
static uint32_t random_state = 1;
static uint32_t random_number(void)
{
    return random_state = random_state * 1664525u + 1013904223u, random_state >> 8;
}

static int refuse_some(life_memory *m, size_t count)
{
    (void)m;
    (void)count;
    return random_number() % 10 < 3 ? ENOSPC : 0;
}

static void sink_that_refuses(void)
{
    for (uint32_t seed = 1; seed <= 20; seed++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            static life_memory memory;          /* the sink is called at exit, too */
            memory.before = refuse_some;
            random_state = seed;
            life_begin(NPUPROF_STREAM, 16384, &memory);
            for (int i = 0; i < 5000; i++) { PROF_SCOPE_ARGS("c", "main", PROF_ARGS(PROF_INT("n", i))); }
            (void)npuprof_flush();
            memory.before = NULL;
            (void)npuprof_flush();
            CHECK_INT(npuprof_flush(), NPUPROF_OK);
            const npuprof_stats s = life_account(5000, true);
            CHECK(s.lost > 0 && s.recorded > 0);
            CHECK_UINT(s.lost, s.lost_by_cause[NPUPROF_LOST_SINK]);
            CHECK_INT(npuprof_load_memory(memory.bytes, memory.count, NULL), NPUPROF_OK);
            npuprof_stats loaded;
            npuprof_get_stats(&loaded);
            CHECK_UINT(loaded.recorded, s.recorded);
            CHECK_UINT(loaded.lost, s.lost);
            CHECK_UINT(life_count(NULL, NULL).slices, s.recorded);
            if (check_failures_) printf("  (seed %u)\n", (unsigned)seed);
            fflush(stdout);
            _exit(check_failures_ ? 1 : 0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

static int refuse_all(life_memory *m, size_t count)
{
    (void)m;
    (void)count;
    return EPIPE;
}

static void sink_that_is_gone(void)
{
    static life_memory memory;          /* the sink is called at exit, too */
    life_begin(NPUPROF_STREAM, 16384, &memory);
    for (int i = 0; i < 3000; i++) { PROF_SCOPE("taken"); }
    memory.before = refuse_all;
    for (int i = 0; i < 10000; i++) { PROF_SCOPE("refused"); }
    CHECK(npuprof_flush() != NPUPROF_OK);
    const npuprof_stats s = life_account(13000, true);
    CHECK(s.lost_by_cause[NPUPROF_LOST_SINK] > 8000);
}

/* The file system is full in the middle of a write (a limit on the size does the same), and has room again
   later. */
static void full_disk(void)
{
    static const rlim_t limits[] = { 0, 1, 607, 608, 700, 5000, 65537, 100003, 400001 };
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            struct rlimit limit = { limits[i], RLIM_INFINITY };
            const life_path name = life_own_path("npuprof");
            begin_to_file(name.pattern, 65536);
            setrlimit(RLIMIT_FSIZE, &limit);
            for (int k = 0; k < 200000; k++) { PROF_SCOPE("s"); }
            (void)npuprof_flush();
            npuprof_stats s = life_account(200000, true);
            CHECK(s.lost_by_cause[NPUPROF_LOST_SINK] > 10000);
            limit.rlim_cur = RLIM_INFINITY;
            setrlimit(RLIMIT_FSIZE, &limit);
            for (int k = 0; k < 40000; k++) { PROF_SCOPE("t"); }
            (void)npuprof_flush();
            CHECK_INT(npuprof_flush(), NPUPROF_OK);
            s = life_account(240000, true);
            CHECK(s.recorded >= 39000);    /* it goes on as soon as there is room */
            CHECK_UINT(s.lost, s.lost_by_cause[NPUPROF_LOST_SINK]);
            life_check_file(name.path, s.recorded, s.lost);
            if (check_failures_) printf("  (limit %lu)\n", (unsigned long)limits[i]);
            unlink(name.path);
            fflush(stdout);
            _exit(check_failures_ ? 1 : 0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

/* A fifo: short writes as the reader likes, then the reader goes away. The program lives on. */
static void fifo(uint64_t reader_takes)
{
    const life_path name = life_own_path("npuprof");
    const char *path = name.path, *copy = check_path("copy");
    unlink(path);
    CHECK_STOP(mkfifo(path, 0600) == 0);
    fflush(stdout);
    pid_t reader = fork();
    if (reader == 0) {
        FILE *in = fopen(path, "rb"), *out = fopen(copy, "wb");
        char bytes[777];
        size_t n;
        while (in && out && reader_takes && (n = fread(bytes, 1, sizeof bytes, in)) > 0) {
            fwrite(bytes, 1, n, out);
            reader_takes -= n < reader_takes ? n : reader_takes;
        }
        if (out) fclose(out);
        _exit(0);
    }
    begin_to_file(name.pattern, 65536);
    for (int i = 0; i < 80000; i++) { PROF_SCOPE("s"); }
    const npuprof_result r = npuprof_flush();
    const npuprof_stats s = life_account(80000, true);
    if (reader_takes == UINT64_MAX) {
        CHECK_INT(r, NPUPROF_OK);
        CHECK_UINT(s.lost, 0);
    } else {
        CHECK(r != NPUPROF_OK);
        CHECK(s.lost_by_cause[NPUPROF_LOST_SINK] > 20000);
    }
    unlink(path);
}

static void pipe_closed(void)
{
    fifo(100000);
    int status;
    CHECK(wait(&status) > 0);
}

static void pipe_short_writes(void)
{
    fifo(UINT64_MAX);
    /* The reader ends when this process has closed the fifo, and that is at its end; what it has got by then
       is not checked here. */
}

/* More threads than there are chunks, all at once: most find none ever. They give up when nobody has one to
   give back, and soon: nobody waits for those who wait. */
static pthread_barrier_t all_begin;
static void *crowd(void *unused)
{
    (void)unused;
    { PROF_SCOPE("first"); }
    pthread_barrier_wait(&all_begin);
    for (int i = 0; i < 200; i++) { PROF_SCOPE("s"); }
    return NULL;
}

static void more_threads_than_chunks(void)
{
    enum { MOST = 200 };
    const int crowd_count = life_is_slow() ? 60 : MOST, times = life_is_slow() ? 2 : 10;
    static life_memory memory;
    life_begin(NPUPROF_STREAM, (size_t)crowd_count * 320, &memory);
    pthread_barrier_init(&all_begin, NULL, (unsigned)crowd_count);
    for (int n = 0; n < times; n++) on_threads((unsigned)crowd_count, crowd, NULL, 0);
    CHECK_INT(npuprof_flush(), NPUPROF_OK);
    const npuprof_stats s = life_account((uint64_t)crowd_count * (uint64_t)times * 201, true);
    life_check_streamed(&memory, s.recorded, s.lost, true);
    printf("note stream: %d threads at once in %d bytes, %d times: %" PRIu64 " recorded, %" PRIu64 " lost\n",
           crowd_count, crowd_count * 320, times, s.recorded, s.lost);
}

/* ---- nobody waits for ever: the alarm ends what does ---- */

static volatile int go_on, in_sink;
static int sleepy(void *user, const void *bytes, size_t count)
{
    (void)user, (void)bytes, (void)count;
    __atomic_store_n(&in_sink, 1, __ATOMIC_RELAXED);
    usleep(200);                           /* pthread_cancel() ends a thread here */
    return 0;
}

static void *record_on(void *unused)
{
    (void)unused;
    while (__atomic_load_n(&go_on, __ATOMIC_RELAXED)) { PROF_SCOPE("s"); }
    return NULL;
}

static void begin_sleepy(size_t arena_bytes)
{
    static uint64_t arena[8192];
    begin_streaming(arena, arena_bytes, NULL, (npuprof_sink){ sleepy, NULL });
    __atomic_store_n(&go_on, 1, __ATOMIC_RELAXED);
    alarm(300);                             /* it hangs */
}

/* Others fill chunks as fast as it empties them. */
static void flush_ends(void)
{
    pthread_t thread[2];
    begin_sleepy(8192);
    for (int i = 0; i < 2; i++) thread[i] = started(record_on, NULL);
    for (int i = 0; i < 5; i++) CHECK_INT(npuprof_flush(), NPUPROF_OK);
    __atomic_store_n(&go_on, 0, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
}

/* A thread is cancelled while it is in the sink: it leaves only when it is out of it. */
static void cancelled_in_the_sink(void)
{
    pthread_t thread;
    begin_sleepy(65536);
    for (int n = 0; n < 10; n++) {
        thread = started(record_on, NULL);
        __atomic_store_n(&in_sink, 0, __ATOMIC_RELAXED);
        while (!__atomic_load_n(&in_sink, __ATOMIC_RELAXED)) usleep(10);
        pthread_cancel(thread);
        __atomic_store_n(&go_on, 0, __ATOMIC_RELAXED);
        pthread_join(thread, NULL);
        __atomic_store_n(&go_on, 1, __ATOMIC_RELAXED);
        for (int i = 0; i < 20000; i++) { PROF_SCOPE("main"); }
    }
    CHECK_INT(npuprof_flush(), NPUPROF_OK);
    CHECK_UINT(stats_now().lost, 0);
}

/* Cancelled at any instruction: what it was changing is not left half done. */
static void *record_asynchronously(void *unused)
{
    int before;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
    return record_on(unused);
}

static void cancelled_anywhere(void)
{
    if (CHECK_SANITIZED) CHECK_SKIP("sanitizers may not be cancelled");
    life_begin(NPUPROF_KEEP_NEWEST, 16384, NULL);
    __atomic_store_n(&go_on, 1, __ATOMIC_RELAXED);
    alarm(60);                              /* it hangs */
    const pthread_t other = started(record_on, NULL);
    for (int n = 0; n < 300; n++) {
        const pthread_t thread = started(record_asynchronously, NULL);
        usleep((unsigned)(100 + n));
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    __atomic_store_n(&go_on, 0, __ATOMIC_RELAXED);
    pthread_join(other, NULL);
    const npuprof_stats s = stats_now();
    CHECK_UINT(life_count(NULL, NULL).slices, s.recorded);
}

/* ---- settings ---- */

static void refused_without_a_sink(void)
{
    npuprof_desc desc = { 0 };
    desc.when_full = NPUPROF_STREAM;
    CHECK_INT(npuprof_init(&desc), NPUPROF_ERR_ARGUMENT);
    desc.output_path = check_path("t.json");
    CHECK_INT(npuprof_init(&desc), NPUPROF_ERR_ARGUMENT);
    desc.when_full = 3;
    CHECK_INT(npuprof_init(&desc), NPUPROF_ERR_ARGUMENT);
    desc.when_full = -1;
    CHECK_INT(npuprof_init(&desc), NPUPROF_ERR_ARGUMENT);
    desc.when_full = NPUPROF_KEEP_NEWEST;
    desc.output_path = NULL;
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    CHECK_INT(npuprof_flush(), NPUPROF_OK);
}

/* A child that streams; %p is its pid. */
static pid_t start_streaming(int spans_count, life_path *name)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        *name = life_own_path("npuprof");
        begin_to_file(name->pattern, 65536);
        for (int i = 0; i != spans_count; i++) { PROF_SCOPE_ARGS("c", "s", PROF_ARGS(PROF_INT("n", i))); }
        exit(0);
    }
    char file[64];
    snprintf(file, sizeof file, "%d.npuprof", (int)child);
    name->path = check_path(file);
    return child;
}

/* At exit the rest goes into the file, and nobody has to ask. */
static void exit_flushes(void)
{
    static const int counts[] = { 12345, 1, 0 };
    for (int i = 0; i < 3; i++) {
        int status;
        life_path name;
        pid_t child = start_streaming(counts[i], &name);
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        life_check_file(name.path, (uint64_t)counts[i], 0);
        unlink(name.path);
    }
}

/* Killed: the file holds whole chunks and can be read. */
static void killed(void)
{
    for (int i = 0; i < 10; i++) {
        int status;
        life_path name;
        pid_t child = start_streaming(-1, &name);
        struct stat file;
        for (int ms = 0; ms < 60000 && (stat(name.path, &file) != 0 || file.st_size < 65536); ms++)
            usleep(1000);
        usleep(3000 * (unsigned)i);
        kill(child, SIGKILL);
        CHECK(waitpid(child, &status, 0) == child);
        npuprof_damage damage;
        CHECK_INT(npuprof_load(name.path, &damage), NPUPROF_OK);
        const npuprof_stats s = stats_now();
        CHECK(s.recorded > 100);
        CHECK(damage.places <= 1);
        CHECK_UINT(life_count(NULL, NULL).slices, s.recorded);
        npuprof_unload();
        unlink(name.path);
    }
}

CHECK_MAIN(CASE(to_a_file), CASE(recording_alone), CASE(to_a_counting_sink), CASE(long_spans),
           CASE(flush_often), CASE(many_threads), CASE(more_threads_than_chunks), CASE(flush_ends),
           CASE(cancelled_in_the_sink), CASE(cancelled_anywhere), CASE(slow_sink), CASE(errno_survives),
           CASE(sink_that_records), CASE(handler_inside_the_sink), CASE(sink_that_refuses),
           CASE(sink_that_is_gone), CASE(full_disk), CASE(pipe_closed), CASE(pipe_short_writes),
           CASE(refused_without_a_sink), CASE(exit_flushes),
           CASE_THOROUGH(killed))

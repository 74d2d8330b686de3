/* npuprof_read(): what comes, when, with what, and what is refused
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "recorded.h"
#include <signal.h>

/* What the last read handed over. */
static struct {
    npuprof_read_span span[600];
    char name[600][32];
    unsigned count, stop_after;
} got;
static npuprof_cursor cursor;
static uint64_t lost, delivered;

static bool take(void *user, const npuprof_read_span *span)
{
    (void)user;
    if (got.count < 600) {
        got.span[got.count] = *span;
        snprintf(got.name[got.count], sizeof got.name[0], "%s", span->name);
    }
    return ++got.count != got.stop_after;
}

static npuprof_read_result read_all(void)
{
    npuprof_read_result r = { .struct_size = sizeof r };
    got.count = 0;
    CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_ALL, take, NULL, &r), NPUPROF_OK);
    CHECK_UINT(r.spans, got.count);
    delivered += r.spans;
    lost += r.lost;
    return r;
}

static const npuprof_read_span *named(const char *name)
{
    for (unsigned i = 0; i < got.count && i < 600; i++)
        if (!strcmp(got.name[i], name)) return &got.span[i];
    check_failed_(__FILE__, __LINE__, "%s was not handed over", name);
    return &got.span[0];
}

/* All that was executed was delivered, or is counted as lost. */
static void nothing_uncounted(uint64_t open)
{
    const npuprof_stats s = stats_now();
    CHECK_UINT(delivered + lost + open, s.recorded + s.lost);
}

static void open_comes_later(void)
{
    npuprof_start(1);
    PROF_THREAD_NAME("the main one");
    {
        PROF_SCOPE("outer");
        { PROF_SCOPE_CAT("cat", "inner"); PROF_COUNTER("n", -3); }
        CHECK_UINT(read_all().open, 1);
        CHECK_UINT(got.count, 2);
        const npuprof_read_span *const inner = named("inner"), *const n = named("n");
        CHECK_STR(inner->category, "cat");
        CHECK_STR(inner->track, "the main one");
        CHECK_INT(inner->kind, NPUPROF_KIND_SPAN);
        CHECK_INT(n->kind, NPUPROF_KIND_COUNTER_INT);
        CHECK_INT(n->value.i, -3);
        CHECK(n->parent == inner->id && n->flags & NPUPROF_READ_POINT);
        CHECK(inner->parent && inner->parent != inner->id);
        got.span[599].id = inner->parent;
        CHECK_UINT(read_all().spans, 0);
    }
    { PROF_SCOPE("behind"); }
    CHECK_UINT(read_all().open, 0);
    CHECK_UINT(got.count, 2);
    CHECK(named("outer")->id == got.span[599].id);
    CHECK_UINT(named("behind")->parent, 0);
    CHECK(named("outer")->end_ns >= named("outer")->start_ns);
    CHECK_UINT(read_all().spans, 0);
    nothing_uncounted(0);
}

static const npuprof_arg *argument(const npuprof_read_span *span, const char *key)
{
    for (size_t i = span->arg_count; i-- > 0;)
        if (!strcmp(span->args[i].key, key)) return &span->args[i];
    CHECK_STOP(!"there is such an argument");
    return NULL;
}

static char long_text[1000];
static bool look_at_arguments(void *user, const npuprof_read_span *span)
{
    ++*(int *)user;
    CHECK_INT(argument(span, "i")->value.i, -7);
    CHECK_INT(argument(span, "b")->type, NPUPROF_ARG_BOOL);
    CHECK(argument(span, "r")->value.d == 1.5);
    CHECK_STR(argument(span, "s")->value.s, "12345678");
    CHECK_STR(argument(span, "long")->value.s, long_text);
    CHECK_UINT(argument(span, "later")->value.u, 5);
    CHECK(!(span->flags & NPUPROF_READ_ARGS_LOST));
    return true;
}

static bool look_at_cut(void *user, const npuprof_read_span *span)
{
    CHECK(span->flags & NPUPROF_READ_ARGS_LOST);
    CHECK_INT(argument(span, "cut")->type, NPUPROF_ARG_STR);
    *(size_t *)user = strlen(argument(span, "cut")->value.s);
    return true;
}

static void arguments(void)
{
    int spans = 0;
    memset(long_text, 'x', sizeof long_text - 1);
    npuprof_start(1);
    for (int i = 0; i < 3; i++) {
        PROF_SCOPE_ARGS("c", "with", PROF_ARGS(PROF_INT("i", -7), PROF_BOOL("b", true), PROF_REAL("r", 1.5),
                                               PROF_STR("s", "12345678"), PROF_STR("long", long_text)));
        if (i == 1) CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_SPANS, look_at_arguments, &spans, NULL),
                              NPUPROF_OK);
        PROF_RESULT(PROF_UINT("later", 5));
    }
    CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_SPANS, look_at_arguments, &spans, NULL), NPUPROF_OK);
    CHECK_INT(spans, 3);
    static char longer[20000];
    memset(longer, 'y', sizeof longer - 1);
    { PROF_SCOPE_ARGS("c", "with", PROF_ARGS(PROF_STR("cut", longer))); }
    size_t length = 0;
    CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_SPANS, look_at_cut, &length, NULL), NPUPROF_OK);
    CHECK(length > 1000 && length < sizeof longer - 1);
}

/* Kinds that are not asked for are passed over, and come no more. */
static void kinds(void)
{
    npuprof_start(1);
    npuprof_async_begin("c", "async", 9);
    npuprof_async_end(9);
    PROF_MEMORY(NULL, 5, 7, "tag");
    npuprof_span("track", "c", "finished", 100, 50, PROF_NO_ARGS);
    { PROF_SCOPE("kernel"); { PROF_RECORD_WARM_UP("warm"); { PROF_SCOPE("inside"); } } }
    CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_SPANS, take, NULL, NULL), NPUPROF_OK);
    CHECK_UINT(got.count, 4);
    CHECK_INT(named("finished")->start_ns, 100);
    CHECK_INT(named("finished")->end_ns, 100);
    CHECK_STR(named("finished")->track, "track");
    CHECK(named("inside")->flags & NPUPROF_READ_WARM_UP);
    CHECK(!(named("kernel")->flags & NPUPROF_READ_WARM_UP));
    CHECK_UINT(read_all().spans, 0);
    npuprof_cursor second;
    memset(&second, 0, sizeof second);
    got.count = 0;
    CHECK_INT(npuprof_read(&second, 1u << NPUPROF_KIND_MEMORY, take, NULL, NULL), NPUPROF_OK);
    CHECK_UINT(got.count, 1);
    CHECK_STR(got.span[0].category, "host");
    CHECK_UINT(got.span[0].value.u, 5);
    CHECK_UINT(got.span[0].allocated_bytes, 7);
    CHECK_INT(npuprof_read(&second, NPUPROF_READ_ALL, NULL, NULL, NULL), NPUPROF_OK);
    npuprof_read_end(&second);
    npuprof_read_end(&second);
}

static void burst(int n)
{
    for (int i = 0; i < n; i++) { PROF_SCOPE("burst"); }
}

/* An arena of 64 KiB that laps the cursor, while a span stays open. */
static void lapped(int when_full)
{
    static uint64_t memory[8192];
    begin_in(memory, sizeof memory, when_full);
    for (int round = 0; round < 40; round++) {
        PROF_SCOPE_ARGS("c", "long", PROF_ARGS(PROF_UINT("n", 1)));
        burst(round * 97);
        nothing_uncounted(read_all().open);
        burst(50);
        if (round % 3 == 0) npuprof_span("t", "c", "older", 1, 2, PROF_NO_ARGS);
    }
    (void)read_all();
    nothing_uncounted(0);
    CHECK(when_full == NPUPROF_KEEP_OLDEST || lost > 100);
}

static void lapped_oldest(void) { lapped(NPUPROF_KEEP_OLDEST); }
static void lapped_newest(void) { lapped(NPUPROF_KEEP_NEWEST); }
static void lapped_stream(void) { lapped(NPUPROF_STREAM); }

/* A consumer that stops gets the rest later, however small its portions. */
static void stops(void)
{
    npuprof_start(1);
    burst(1000);
    for (int i = 0; i < 1000; i++) {
        got.stop_after = 1 + (unsigned)i % 3;
        if (!read_all().spans) break;
        if (i == 100) burst(500);
    }
    CHECK_UINT(delivered, 1500);
    nothing_uncounted(0);
}

/* The counts go on behind npuprof_clear(): what it discarded is lost. */
static void cleared(void)
{
    uint64_t executed = 0;
    npuprof_start(1);
    (void)read_all();
    for (int round = 0; round < 20; round++) {
        const int before = round * 40, unread = round % 3 * 600;
        PROF_SCOPE("open at the clear");
        burst(before);
        if (round % 2) (void)read_all();
        burst(unread);
        CHECK_INT(npuprof_clear(), NPUPROF_OK);
        burst(10);
        executed += (uint64_t)before + (uint64_t)unread + 11;
        if (round % 4 < 2) (void)read_all();
    }
    (void)read_all();
    CHECK_UINT(delivered + lost, executed);
    CHECK_UINT(read_all().open, 0);
    npuprof_read_end(&cursor);
    lost = delivered = 0;
    (void)read_all();
    nothing_uncounted(0);
}

static void forked(void)
{
    npuprof_start(1);
    burst(10);
    PROF_SCOPE("open");
    CHECK_UINT(read_all().spans, 10);
    const pid_t child = fork();
    if (child == 0) {
        burst(3);
        lost = delivered = 0;
        const npuprof_read_result r = read_all();
        const bool good = r.spans == 3 && r.lost == 0 && r.open == 0;
        _exit(good ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    CHECK_INT(status, 0);
    burst(2);
    CHECK_UINT(read_all().spans, 2);
}

/* fn forks, or a thread reads while another one forks: in the child the cursor is free, and begins anew. */
static pid_t child_of_callback = -1;
static unsigned handed_to_child;
static bool fork_in_callback(void *user, const npuprof_read_span *span)
{
    (void)user, (void)span;
    if (child_of_callback == 0) handed_to_child++;
    if (child_of_callback == -1 && ++got.count == 200) child_of_callback = fork();
    return true;
}

static bool is_new_in_child(void)
{
    lost = delivered = 0;
    burst(3);
    const npuprof_read_result r = read_all();
    npuprof_read_end(&cursor);
    return r.spans == 3 && r.lost == 0 && r.open == 0 && !cursor.memory_;
}

static void forked_in_callback(void)
{
    npuprof_read_result r = { .struct_size = sizeof r };
    int status = 1;
    npuprof_start(1);
    burst(1000);
    CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_ALL, fork_in_callback, NULL, &r), NPUPROF_OK);
    if (child_of_callback == 0) {
        const bool ended = handed_to_child == 0 && r.spans == 200 && r.lost == 0 && r.open == 0;
        _exit(ended && is_new_in_child() ? 0 : 1);
    }
    CHECK_UINT(r.spans, 1000);
    waitpid(child_of_callback, &status, 0);
    CHECK_INT(status, 0);
}

static int in_callback;
static bool stay_in_callback(void *user, const npuprof_read_span *span)
{
    (void)user, (void)span;
    NPUPROF_STORE_SEQ_(&in_callback, 1);
    while (NPUPROF_LOAD_SEQ_(&in_callback) == 1) usleep(100);
    return true;
}

static void *reads(void *user)
{
    (void)user;
    CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_ALL, stay_in_callback, NULL, NULL), NPUPROF_OK);
    return NULL;
}

static void forked_beside_a_reader(void)
{
    int status = 1;
    npuprof_start(1);
    burst(1);
    const pthread_t reader = started(reads, NULL);
    while (!NPUPROF_LOAD_SEQ_(&in_callback)) usleep(100);
    const pid_t child = fork();
    if (child == 0) _exit(is_new_in_child() ? 0 : 1);
    waitpid(child, &status, 0);
    NPUPROF_STORE_SEQ_(&in_callback, 2);
    pthread_join(reader, NULL);
    CHECK_INT(status, 0);
}

static bool call_back(void *user, const npuprof_read_span *span)
{
    static int depth;
    (void)span;
    PROF_SCOPE("in the callback");
    CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_ALL, take, NULL, NULL), NPUPROF_ERR_BUSY);
    CHECK(strstr(npuprof_result_string(NPUPROF_ERR_BUSY), "this cursor is being read") != NULL);
    npuprof_read_end(&cursor);
    CHECK_INT(npuprof_write_json((npuprof_sink){ to_nowhere, NULL }), NPUPROF_OK);
    if (!depth++) CHECK_INT(npuprof_clear(), NPUPROF_OK);
    burst(100);
    ++*(int *)user;
    return true;
}

static void calls_in_the_callback(void)
{
    static uint64_t memory[8192];
    int calls = 0;
    begin_in(memory, sizeof memory, NPUPROF_KEEP_NEWEST);
    burst(2);
    CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_SPANS, call_back, &calls, NULL), NPUPROF_OK);
    CHECK_INT(calls, 2);
}

static npuprof_result in_sink, in_handler;
static int sink_that_reads(void *user, const void *bytes, size_t count)
{
    (void)user, (void)bytes, (void)count;
    in_sink = npuprof_read(&cursor, NPUPROF_READ_ALL, take, NULL, NULL);
    raise(SIGUSR1);
    return 0;
}

static void handler(int number)
{
    (void)number;
    in_handler = npuprof_read(&cursor, NPUPROF_READ_ALL, take, NULL, NULL);
}

static void refused_in_sink_and_handler(void)
{
    npuprof_start(1);
    burst(3);
    signal(SIGUSR1, handler);
    CHECK_INT(npuprof_write_image((npuprof_sink){ sink_that_reads, NULL }), NPUPROF_OK);
    CHECK_INT(in_sink, NPUPROF_ERR_BUSY);
    CHECK_INT(in_handler, NPUPROF_ERR_BUSY);
    CHECK_UINT(read_all().spans, 3);
}

/* Structs of an older and a newer header. */
static void sizes(void)
{
    struct { npuprof_read_result now; uint64_t later[2]; } newer = { .now = { .struct_size = sizeof newer } };
    npuprof_read_result older = { .struct_size = 16, .lost = 77 };
    newer.later[0] = newer.later[1] = 99;
    npuprof_start(1);
    burst(5);
    CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_SPANS, take, NULL, &newer.now), NPUPROF_OK);
    CHECK_UINT(newer.now.spans, 5);
    CHECK_UINT(newer.later[0] + newer.later[1], 0);
    CHECK_UINT(newer.now.struct_size, sizeof newer);
    burst(4);
    CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_SPANS, take, NULL, &older), NPUPROF_OK);
    CHECK_UINT(older.spans, 4);
    CHECK_UINT(older.lost, 77);
    older.struct_size = 0;
    CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_SPANS, take, NULL, &older), NPUPROF_ERR_ARGUMENT);
    CHECK(strstr(npuprof_result_string(NPUPROF_ERR_ARGUMENT), "struct_size") != NULL);
    CHECK_INT(npuprof_read(NULL, NPUPROF_READ_SPANS, take, NULL, NULL), NPUPROF_ERR_ARGUMENT);
    npuprof_cursor of_newer = { .struct_size = sizeof of_newer + 8 };
    CHECK_INT(npuprof_read(&of_newer, NPUPROF_READ_SPANS, take, NULL, NULL), NPUPROF_ERR_VERSION);
    of_newer.struct_size = sizeof of_newer;
    CHECK_INT(npuprof_read(&of_newer, NPUPROF_READ_SPANS, NULL, NULL, NULL), NPUPROF_OK);
    npuprof_read_end(&of_newer);
    npuprof_read_end(NULL);
}

static void *one_span(void *user)
{
    (void)user;
    PROF_THREAD_NAME("a thread");
    { PROF_SCOPE("of a thread"); }
    return NULL;
}

static void *stay(void *user)
{
    (void)one_span(user);
    pthread_barrier_wait((pthread_barrier_t *)user);
    pthread_barrier_wait((pthread_barrier_t *)user);
    return NULL;
}

static void many_threads(void)
{
    enum { THREADS = 300 };
    pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    npuprof_start(1);
    CHECK_UINT(read_all().spans, 0);
    for (int i = 0; i < THREADS; i++) threads[i] = started(stay, &barrier);
    pthread_barrier_wait(&barrier);
    CHECK_UINT(read_all().spans, THREADS);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 700; i++) on_a_thread(one_span, NULL);
    CHECK_UINT(read_all().spans, 700);
    CHECK_STR(got.span[0].track, "a thread");
    nothing_uncounted(0);
}

/* Names that the table has no space for are lost, and counted for a cursor, too. */
static void full_table(void)
{
    static uint64_t memory[2048];
    begin_in(memory, sizeof memory, NPUPROF_KEEP_OLDEST);
    for (int i = 0; i < 500; i++) {
        char name[32];
        snprintf(name, sizeof name, "name number %d", i);
        PROF_BEGIN("c", name);
        PROF_END();
        if (i % 50 == 0) (void)read_all();
    }
    (void)read_all();
    nothing_uncounted(0);
    CHECK(lost > 100);
}

static void clock_pairs(void)
{
    int64_t other, ours;
    uint64_t bracket;
    const int clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME };
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        struct timespec t;
        clock_gettime(clocks[i], &t);
        const int64_t before = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec, ours_before = npuprof_now_ns();
        CHECK_INT(npuprof_clock_pair(clocks[i], &other, &ours, &bracket), NPUPROF_OK);
        CHECK(other >= before && ours >= ours_before && ours <= npuprof_now_ns());
        CHECK(other - before < INT64_C(5000000000));
    }
    CHECK_INT(npuprof_clock_pair(-12345, &other, &ours, &bracket), NPUPROF_ERR_ARGUMENT);
    CHECK_INT(npuprof_clock_pair(CLOCK_MONOTONIC, NULL, &ours, &bracket), NPUPROF_ERR_ARGUMENT);
}

/* Times agree with npuprof_now_ns(). */
static void times(void)
{
    npuprof_start(1);
    for (int i = 0; i < 20; i++) {
        const int64_t before = npuprof_now_ns();
        { PROF_SCOPE("timed"); usleep(1000); }
        const int64_t behind = npuprof_now_ns();
        CHECK_UINT(read_all().spans, 1);
        const int64_t error_ns = (int64_t)got.span[0].error_ns;
        CHECK(got.span[0].start_ns >= before - error_ns && got.span[0].end_ns <= behind + error_ns);
        CHECK(error_ns < 100000);
    }
}

CHECK_MAIN(CASE(open_comes_later), CASE(arguments), CASE(kinds), CASE(lapped_oldest), CASE(lapped_newest),
           CASE(lapped_stream), CASE(stops), CASE(cleared), CASE(forked), CASE(forked_in_callback),
           CASE(forked_beside_a_reader), CASE(calls_in_the_callback), CASE(refused_in_sink_and_handler),
           CASE(sizes), CASE(many_threads), CASE(full_table), CASE(clock_pairs), CASE(times))

/* levels, categories, start, stop, pause, clear, init, result codes, sinks, writing twice
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include <errno.h>
#include <time.h>
#include "npuprof.h"
#include "recorded.h"

static uint64_t recorded(void)
{
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.lost, 0);
    return s.recorded;
}

static void everything(void)
{
    { PROF_SCOPE("a"); }
    { PROF_SCOPE_CAT("c", "b"); }
    { PROF_SCOPE_LEVEL(2, "c", "level 2", PROF_NO_ARGS); }
    { PROF_SCOPE_LEVEL(3, "c", "level 3", PROF_NO_ARGS); }
    { PROF_RECORD("d"); }
    { PROF_INFERENCE("e"); }
    { PROF_OPERATOR(1, "f"); }
    { PROF_PHASES("g"); PROF_NEXT("h"); }
    { PROF_FUNCTION(); }
    PROF_BEGIN("c", "i");
    PROF_END();
    WITH_BASE_PROFILER(NULL, "j", "c", PROF_NO_ARGS, (void)0);
    WITH_BASE_PROFILER_LEVEL(2, NULL, "level 2", "c", PROF_NO_ARGS, (void)0);
    npuprof_async_begin("c", "k", 1);
    npuprof_async_end(1);
    npuprof_span("track", "c", "l", 1, 2, PROF_NO_ARGS);
    PROF_INSTANT("c", "m", PROF_NO_ARGS);
    PROF_COUNTER("n", 1);
    { PROF_SCOPE("flow"); PROF_FLOW_OUT(1); PROF_FLOW_IN(1); }
    PROF_MEMORY(NULL, 1, 2, "o");
}

/* Nothing is recorded until npuprof_start() says so. */
static void silent_before_start(void)
{
    everything();
    CHECK_UINT(stats_now().recorded + stats_now().lost, 0);
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", NULL) + trace_count(t, "i", NULL) + trace_count(t, "C", NULL), 0);
    npuprof_start(1);
    everything();
    CHECK(recorded() > 15);
}

static void levels(void)
{
    static const struct { int start; size_t two, three; } rows[] = { { 1, 0, 0 }, { 2, 2, 0 }, { 3, 2, 1 },
                                                                     { 9, 2, 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        npuprof_clear();
        npuprof_start(rows[i].start);
        everything();
        { PROF_SCOPE_LEVEL(10, "c", "above the highest level", PROF_NO_ARGS); }
        npuprof_stop();
        json_node *t = written();
        CHECK_COUNTS(t, "X", { "a", 1 }, { "above the highest level", 0 }, { "level 2", rows[i].two },
                     { "level 3", rows[i].three });
    }
}

static void categories(void)
{
    npuprof_start(1);
    CHECK_INT(npuprof_set_categories("npu,operator"), NPUPROF_OK);
    { PROF_SCOPE_CAT("npu", "1 in"); }
    { PROF_SCOPE_CAT("operator", "1 in"); }
    { PROF_SCOPE_CAT("npu2", "1 out"); }
    { PROF_SCOPE_CAT("np", "1 out"); }
    { PROF_SCOPE("1 out"); }
    PROF_INSTANT("npu", "1 in", PROF_NO_ARGS);
    PROF_INSTANT("other", "1 out", PROF_NO_ARGS);
    WITH_BASE_PROFILER(NULL, "1 in", "npu", PROF_NO_ARGS, (void)0);
    WITH_BASE_PROFILER(NULL, "1 out", "other", PROF_NO_ARGS, (void)0);
    PROF_BEGIN("other", "1 out"); PROF_END();
    PROF_BEGIN("operator", "1 in"); PROF_END();
    CHECK_INT(npuprof_set_categories("-npu"), NPUPROF_OK);
    for (int i = 0; i < 2; i++) {
        { PROF_SCOPE_CAT("npu", "2 out"); }
        { PROF_SCOPE_CAT("operator", "2 in"); }
        { PROF_SCOPE("2 in"); }
    }
    CHECK_INT(npuprof_set_categories("-npu,-operator"), NPUPROF_OK);
    { PROF_SCOPE_CAT("operator", "3 out"); }
    { PROF_SCOPE_CAT("third", "3 in"); }
    CHECK_INT(npuprof_set_categories("a,-b"), NPUPROF_ERR_CATEGORIES);     /* nothing changes */
    { PROF_SCOPE_CAT("operator", "4 out"); }
    { PROF_SCOPE_CAT("third", "4 in"); }
    CHECK_INT(npuprof_set_categories("-a,b"), NPUPROF_ERR_CATEGORIES);
    CHECK_INT(npuprof_set_categories(NULL), NPUPROF_OK);
    { PROF_SCOPE_CAT("npu", "5 in"); }
    CHECK_INT(npuprof_set_categories("x"), NPUPROF_OK);
    CHECK_INT(npuprof_set_categories(""), NPUPROF_OK);
    { PROF_SCOPE_CAT("npu", "5 in"); }
    json_node *t = written();
    CHECK_COUNTS(t, NULL, { "1 in", 5 }, { "2 in", 4 }, { "3 in", 1 }, { "4 in", 1 }, { "5 in", 2 });
    for (char n = '1'; n < '5'; n++) {
        char out[] = "? out";
        out[0] = n;
        CHECK_UINT(trace_count(t, NULL, out), 0);
    }
}

/* An end has no category: it ends what was recorded, whatever the list says. A counter has none either, and
   is left out. */
static void categories_of_async_spans(void)
{
    npuprof_start(1);
    CHECK_INT(npuprof_set_categories("npu"), NPUPROF_OK);
    npuprof_async_end(7);                          /* of nobody: recorded, and not shown */
    CHECK_UINT(recorded(), 1);
    PROF_COUNTER("counter", 1);
    npuprof_async_begin("npu", "in", 1);
    npuprof_async_begin("other", "out", 2);
    npuprof_async_end(1);
    npuprof_async_end(2);
    json_node *t = written();
    CHECK_COUNTS(t, "X", { "in", 1 }, { "out", 0 });
    CHECK_UINT(trace_count(t, "C", "counter"), 0);
    CHECK(!json_get(json_get(trace_event(t, "X", "in", 0), "args"), "unfinished"));
}

/* The same call site follows every change of the list; the string may go. */
static void categories_change(void)
{
    static const char *const lists[] = { "a", "b", "-a", "-b", "", "a,b", "-a,-b" };
    static const size_t wanted[] = { 1, 0, 0, 1, 1, 1, 0 };
    uint64_t before = 0;
    npuprof_start(1);
    for (size_t i = 0; i < 70; i++) {
        char copy[16];
        snprintf(copy, sizeof copy, "%s", lists[i % 7]);
        CHECK_INT(npuprof_set_categories(copy), NPUPROF_OK);
        memset(copy, '?', sizeof copy);
        { PROF_SCOPE_CAT("a", "a"); }
        uint64_t now = recorded();
        CHECK_UINT(now - before, wanted[i % 7]);
        before = now;
    }
}

/* Toggling in the middle of a span unbalances nothing. */
static void toggles(void)
{
    npuprof_start(1);
    {
        PROF_SCOPE("begun open, ended closed");
        npuprof_stop();
        {
            PROF_SCOPE("begun closed, ended open");
            npuprof_start(1);
            { PROF_SCOPE("inner 1"); }
        }
        {
            PROF_SCOPE_LEVEL(2, "c", "level 2", PROF_NO_ARGS);
            npuprof_start(2);
            { PROF_SCOPE_LEVEL(2, "c", "inner 2", PROF_NO_ARGS); npuprof_start(1); }
        }
        CHECK_INT(npuprof_set_categories("none"), NPUPROF_OK);
        npuprof_pause();
    }
    npuprof_resume();
    CHECK_INT(npuprof_set_categories(NULL), NPUPROF_OK);
    { PROF_SCOPE("after"); }
    json_node *t = written();
    json_node *outer = trace_event(t, "X", "begun open, ended closed", 0),
        *after = trace_event(t, "X", "after", 0);
    CHECK_COUNTS(t, "X", { "begun closed, ended open", 0 }, { "level 2", 0 });
    CHECK_STOP(outer && after);
    CHECK(trace_inside(trace_event(t, "X", "inner 1", 0), outer));
    CHECK(trace_inside(trace_event(t, "X", "inner 2", 0), outer));
    CHECK(trace_start(after) >= trace_end(outer));
    CHECK(json_get(outer, "args") == NULL);
}

/* Idempotent; what is stopped stays stopped; the level comes back. */
static void pause_and_resume(void)
{
    npuprof_resume();
    { PROF_SCOPE("never started"); }
    npuprof_pause();
    npuprof_resume();
    { PROF_SCOPE("never started"); }
    npuprof_start(2);
    npuprof_pause();
    npuprof_pause();
    { PROF_SCOPE("paused"); }
    { PROF_RECORD("paused"); }
    npuprof_resume();
    { PROF_SCOPE_LEVEL(2, "c", "resumed", PROF_NO_ARGS); }
    npuprof_resume();
    { PROF_SCOPE_LEVEL(2, "c", "resumed", PROF_NO_ARGS); }
    npuprof_pause();
    npuprof_start(1);                     /* a start ends the pause */
    { PROF_SCOPE("started"); }
    npuprof_stop();
    npuprof_resume();
    { PROF_SCOPE("stopped"); }
    json_node *t = written();
    CHECK_COUNTS(t, "X", { "never started", 0 }, { "paused", 0 }, { "resumed", 2 }, { "started", 1 },
                 { "stopped", 0 });
}

static void clear(void)
{
    npuprof_metadata("model", "kept");
    PROF_THREAD_NAME("kept");
    npuprof_start(1);
    {
        PROF_SCOPE("open over the clear");
        everything();
        npuprof_clear();
        { PROF_SCOPE("after"); }
    }
    json_node *t = written();
    CHECK_COUNTS(t, "X", { "a", 0 }, { "after", 1 });
    CHECK_STR(trace_track(t, trace_event(t, "X", "after", 0)), "kept");
    npuprof_clear();
    CHECK_UINT(stats_now().recorded + stats_now().lost, 0);
    for (int i = 0; i < 1000; i++) {
        { PROF_SCOPE("x"); }
        if (i % 10 == 9) npuprof_clear();
    }
    CHECK_UINT(recorded(), 0);
    { PROF_SCOPE("last"); }
    CHECK_UINT(recorded(), 1);
}

static void stats(void)
{
    npuprof_stats s;
    memset(&s, 0xFF, sizeof s);
    npuprof_get_stats(&s);
    CHECK_UINT(s.recorded, 0);
    CHECK_UINT(s.bytes_total, NPUPROF_ARENA_BYTES);
    npuprof_start(1);
    for (int i = 0; i < 10; i++) {
        PROF_SCOPE("x");
        PROF_INSTANT("c", "i", PROF_NO_ARGS);
        PROF_COUNTER("n", i);
    }
    npuprof_get_stats(&s);
    CHECK_UINT(s.recorded, 30);
    CHECK_UINT(s.lost, 0);
    CHECK_UINT(s.threads, 1);
    CHECK(s.bytes_used > 0 && s.bytes_used <= s.bytes_total);
    for (int i = 0; i < NPUPROF_LOST_COUNT; i++) CHECK_UINT(s.lost_by_cause[i], 0);
}

static uint64_t arena[64 * 1024];
static void init_with_an_arena(void)
{
    npuprof_desc desc = { 0 };
    desc.arena = arena;
    desc.arena_bytes = sizeof arena - 16;
    arena[sizeof arena / 8 - 2] = arena[sizeof arena / 8 - 1] = UINT64_C(0x5555555555555555);
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    npuprof_start(1);
    for (int i = 0; i < 100000; i++) { PROF_SCOPE("x"); }
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.bytes_total, sizeof arena - 16);
    CHECK_UINT(s.recorded + s.lost, 100000);
    CHECK(s.lost > 0);
    CHECK(arena[sizeof arena / 8 - 2] == UINT64_C(0x5555555555555555)
          && arena[sizeof arena / 8 - 1] == UINT64_C(0x5555555555555555));
    CHECK_INT(npuprof_init(&desc), NPUPROF_ERR_STARTED);
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", "x"), s.recorded);
    json_node *lost = json_get(t, "metadata.npuprof.lost.arena_full");
    CHECK_INT(json_int(lost), (int64_t)s.lost);
}

/* Each mistake has its code, and the library works after it. */
static void init_refuses(void)
{
    npuprof_desc desc, zero;
    memset(&zero, 0, sizeof zero);
    desc = zero; desc.arena = arena; desc.arena_bytes = 2047;
    CHECK_INT(npuprof_init(&desc), NPUPROF_ERR_ARENA_SIZE);
    desc = zero; desc.arena = (char *)arena + 1; desc.arena_bytes = 65536;
    CHECK_INT(npuprof_init(&desc), NPUPROF_ERR_ARENA_SIZE);
    desc = zero; desc.when_full = 77;
    CHECK(npuprof_init(&desc) == NPUPROF_ERR_ARGUMENT || npuprof_init(&desc) == NPUPROF_ERR_UNSUPPORTED);
    desc = zero; desc.categories = "a,-b";
    CHECK_INT(npuprof_init(&desc), NPUPROF_ERR_CATEGORIES);
    CHECK_INT(npuprof_init_(&zero, sizeof zero, NPUPROF_VERSION + 1), NPUPROF_ERR_VERSION);
    CHECK_INT(npuprof_init_(&zero, sizeof zero - 8, NPUPROF_VERSION), NPUPROF_ERR_VERSION);
    desc = zero; desc.categories = "only";
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    npuprof_start(1);
    { PROF_SCOPE_CAT("only", "in"); }
    { PROF_SCOPE_CAT("other", "out"); }
    CHECK_UINT(recorded(), 1);
    CHECK_INT(npuprof_init(NULL), NPUPROF_ERR_STARTED);
}

static void init_with_null(void)
{
    CHECK_INT(npuprof_init(NULL), NPUPROF_OK);
    npuprof_start(1);
    { PROF_SCOPE("x"); }
    CHECK_UINT(recorded(), 1);
}

/* One list: every code has a name of its own and a sentence of its own. */
static void result_strings(void)
{
#define NAME(name, text) #name, #name ": " text,
    static const char *const list[] = { NPUPROF_RESULTS(NAME) };
#undef NAME
    CHECK_INT(NPUPROF_OK, 0);
    CHECK_UINT(sizeof list / sizeof list[0], 2 * NPUPROF_RESULT_COUNT);
    for (int i = 0; i < NPUPROF_RESULT_COUNT; i++) {
        const char *text = npuprof_result_string((npuprof_result)i);
        CHECK_STR(text, list[2 * i + 1]);
        CHECK(text && strlen(text) >= 2);
        for (int k = 0; k < i; k++) CHECK(strcmp(text, npuprof_result_string((npuprof_result)k)) != 0);
    }
    const char *unknown = npuprof_result_string(NPUPROF_RESULT_COUNT);
    CHECK(unknown && *unknown);
    CHECK(npuprof_result_string((npuprof_result)-1) != NULL);
    CHECK(npuprof_result_string((npuprof_result)12345) != NULL);
}

/* NPUPROF_ERR_ARGUMENT says which argument of which function it was. */
static void check_refused(npuprof_result result, const char *words)
{
    CHECK_INT(result, NPUPROF_ERR_ARGUMENT);
    if (!strstr(npuprof_result_string(NPUPROF_ERR_ARGUMENT), words))
        check_failed_(__FILE__, __LINE__, "%s: %s", words, npuprof_result_string(NPUPROF_ERR_ARGUMENT));
}

static void refused_arguments(void)
{
    const npuprof_sink nothing = { NULL, NULL };
    CHECK_STR(npuprof_result_string(NPUPROF_ERR_ARGUMENT),
              "NPUPROF_ERR_ARGUMENT: an argument is missing or out of its range");
    check_refused(npuprof_start(0), "npuprof_start: level");
    CHECK_INT(npuprof_start(10), NPUPROF_ERR_ARGUMENT);
    { PROF_SCOPE("not recorded"); }
    check_refused(npuprof_dump(NULL), "npuprof_dump: path");
    check_refused(npuprof_dump(""), "npuprof_dump: path is not 1 to 1023");
    CHECK_INT(npuprof_dump(check_path("t.json.gz")), NPUPROF_ERR_ARGUMENT);
    check_refused(npuprof_dump(check_path("t.pftrace")), "npuprof_dump: path ends in .pftrace or .gz");
    CHECK(!check_read_file(check_path("t.json.gz"), NULL));
    check_refused(npuprof_write_image(nothing), "npuprof_write_image: sink.write");
    check_refused(npuprof_write_json(nothing), "npuprof_write_json: sink.write");
    check_refused(npuprof_metadata(NULL, "value"), "npuprof_metadata: key");
    check_refused(npuprof_get_stats(NULL), "npuprof_get_stats: out");
    CHECK_UINT(stats_now().recorded, 0);
    CHECK_INT(npuprof_start(9), NPUPROF_OK);
    CHECK_INT(npuprof_pause(), NPUPROF_OK);
    CHECK_INT(npuprof_pause(), NPUPROF_OK);
    CHECK_INT(npuprof_resume(), NPUPROF_OK);
    CHECK_INT(npuprof_clear(), NPUPROF_OK);
    CHECK_INT(npuprof_stop(), NPUPROF_OK);
}

/* Metadata that finds no room says so, and is counted. */
static void metadata_when_full(void)
{
    static uint64_t memory[4096 / 8];
    begin_in(memory, sizeof memory, NPUPROF_KEEP_OLDEST);
    char key[32];
    unsigned refused = 0;
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "a key of its own %d", i);
        const npuprof_result result = npuprof_metadata(key, "value");
        if (result != NPUPROF_OK) CHECK_INT(result, NPUPROF_ERR_TABLE_FULL);
        refused += result != NPUPROF_OK;
    }
    CHECK(refused > 0);
    CHECK_UINT(stats_now().lost_by_cause[NPUPROF_LOST_NOTES], refused);
}

static int calls_back(void *user, const void *bytes, size_t count)
{
    (void)bytes;
    (void)count;
    npuprof_stats stats;
    CHECK_INT(npuprof_clear(), NPUPROF_ERR_BUSY);
    CHECK_INT(npuprof_dump(check_path("busy.json")), NPUPROF_ERR_BUSY);
    CHECK_INT(npuprof_get_stats(&stats), NPUPROF_ERR_BUSY);
    *(npuprof_result *)user = NPUPROF_ERR_BUSY;
    return 0;
}

/* A sink that calls back is told so. */
static void busy(void)
{
    npuprof_result result = NPUPROF_OK;
    const npuprof_sink sink = { calls_back, &result };
    CHECK_INT(npuprof_start(1), NPUPROF_OK);
    { PROF_SCOPE("a"); }
    CHECK_INT(npuprof_write_json(sink), NPUPROF_OK);
    CHECK_INT(result, NPUPROF_ERR_BUSY);
}

typedef struct memory_sink {
    char *bytes;
    size_t count, room, fail_at;
    int error;
    unsigned calls_after;
} memory_sink;
static int write_memory(void *user, const void *bytes, size_t count)
{
    memory_sink *m = (memory_sink *)user;
    if (m->count + count > m->fail_at) {
        m->calls_after++;
        return m->error;
    }
    CHECK_STOP(m->count + count <= m->room);
    memcpy(m->bytes + m->count, bytes, count);
    m->count += count;
    return 0;
}

static memory_sink new_sink(size_t fail_at, int error)
{
    memory_sink m = { (char *)malloc(1 << 22), 0, 1 << 22, fail_at, error, 0 };
    return m;
}

/* A sink that fails, at whatever byte, gives a code at once and changes nothing in the arena. */
static void failing_sink(void)
{
    npuprof_start(1);
    for (int i = 0; i < 5; i++) everything();
    npuprof_stop();
    uint64_t before = recorded();
    memory_sink whole = new_sink(SIZE_MAX, 0);
    npuprof_sink sink = { write_memory, &whole };
    CHECK_INT(npuprof_write_json(sink), NPUPROF_OK);
    CHECK_STOP(json_parse(whole.bytes, whole.count) != NULL);
    static const struct { int error; npuprof_result wanted; } rows[] =
        { { EIO, NPUPROF_ERR_IO }, { ENOSPC, NPUPROF_ERR_NO_SPACE }, { EPIPE, NPUPROF_ERR_IO } };
    for (size_t i = 0; i < 3; i++) {
        for (size_t at = 0; at < whole.count; at += whole.count / 7 + 1) {
            memory_sink bad = new_sink(at, rows[i].error);
            sink.user = &bad;
            CHECK_INT(npuprof_write_json(sink), rows[i].wanted);
            CHECK_UINT(bad.calls_after, 1);
            CHECK(!memcmp(bad.bytes, whole.bytes, bad.count));
            free(bad.bytes);
        }
    }
    memory_sink again = new_sink(SIZE_MAX, 0);
    sink.user = &again;
    CHECK_INT(npuprof_write_json(sink), NPUPROF_OK);
    CHECK(again.count == whole.count && !memcmp(again.bytes, whole.bytes, whole.count));
    CHECK_UINT(recorded(), before);
    sink.write = NULL;
    CHECK_INT(npuprof_write_json(sink), NPUPROF_ERR_ARGUMENT);
}

/* Reading changes nothing: the second file has the same bytes, and so has one written after the reports. But
   for open spans, which go on. */
static void dump_twice(void)
{
    static const char *const extensions[] = { "json", "csv", "npuprof", "other" };
#define PRINTS(name) name,
    npuprof_result (*const reports[])(FILE *) = { NPUPROF_TABLES(PRINTS) };
    npuprof_start(2);
    for (int i = 0; i < 20; i++) everything();
    npuprof_stop();
    for (size_t i = 0; i < 4; i++) {
        char name[3][32];
        size_t size[3] = { 0, 0, 0 };
        for (int k = 0; k < 3; k++) {
            snprintf(name[k], sizeof name[k], "%d.%s", k, extensions[i]);
            npuprof_result result = npuprof_dump(check_path(name[k]));
            if (k == 0 && result == NPUPROF_ERR_UNSUPPORTED) break;
            CHECK_INT(result, NPUPROF_OK);
            if (k == 1) {
                for (size_t n = 0; n < sizeof reports / sizeof reports[0]; n++) free(printed(reports[n]));
                (void)stats_now();
                usleep(2000);
            }
        }
        char *a = check_read_file(check_path(name[0]), &size[0]),
            *b = check_read_file(check_path(name[1]), &size[1]),
             *c = check_read_file(check_path(name[2]), &size[2]);
        if (!a) continue;
        CHECK_STOP(a && b && c);
        if (size[0] != size[1] || memcmp(a, b, size[0]))
            check_failed_(__FILE__, __LINE__, "the second .%s differs from the first", extensions[i]);
        if (size[0] != size[2] || memcmp(a, c, size[0]))
            check_failed_(__FILE__, __LINE__, "the third .%s differs from the first", extensions[i]);
    }
}

/* The same while recording goes on: the records are those of the moment, and whole. */
static void dump_while_open(void)
{
    npuprof_start(1);
    for (int i = 0; i < 50; i++) {
        PROF_SCOPE("outer");
        { PROF_SCOPE("inner"); }
        json_node *t = written();
        CHECK_COUNTS(t, "X", { "outer", (uint64_t)i + 1 }, { "inner", (uint64_t)i + 1 });
    }
}

/* Monotonic and near the real time. */
static void now(void)
{
    struct timespec ts;
    for (int round = 0; round < 2; round++) {
        int64_t last = npuprof_now_ns();
        for (int i = 0; i < 10000; i++) {
            int64_t n = npuprof_now_ns();
            if (n < last) {
                check_failed_(__FILE__, __LINE__, "the clock went back by %" PRId64 " ns", last - n);
                break;
            }
            last = n;
        }
        clock_gettime(CLOCK_REALTIME, &ts);
        int64_t real = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
        CHECK(llabs(npuprof_now_ns() - real) < 50000000);
        npuprof_start(1);
        usleep(20000);
    }
}

CHECK_MAIN(CASE(silent_before_start), CASE(levels), CASE(categories), CASE(categories_of_async_spans),
           CASE(categories_change), CASE(toggles),
           CASE(pause_and_resume), CASE(clear), CASE(stats), CASE(init_with_an_arena), CASE(init_refuses),
           CASE(init_with_null), CASE(result_strings), CASE(refused_arguments), CASE(metadata_when_full),
           CASE(busy), CASE(failing_sink), CASE(dump_twice), CASE(dump_while_open), CASE(now))

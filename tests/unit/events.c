/* test: cc=-O1 - instants, counters, flows, async and finished spans, thread names, metadata
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include <pthread.h>
#include "npuprof.h"
#include "recorded.h"
#include <sys/syscall.h>

static void instants(void)
{
    npuprof_start(1);
    {
        PROF_SCOPE("around");
        for (int i = 0; i < 3; i++) PROF_INSTANT("c", "now", PROF_ARGS(PROF_INT("i", i)));
        PROF_INSTANT("c", "plain", PROF_NO_ARGS);
    }
    json_node *t = written(), *around = trace_event(t, "X", "around", 0),
        *plain = trace_event(t, "i", "plain", 0);
    CHECK_UINT(trace_count(t, "i", "now"), 3);
    for (size_t i = 0; i < 3; i++) {
        json_node *e = trace_event(t, "i", "now", i);
        CHECK_STOP(e && around);
        CHECK_INT(json_int(json_get(e, "args.i")), (int64_t)i);
        CHECK(trace_start(e) >= trace_start(around) && trace_start(e) <= trace_end(around));
        CHECK_INT(trace_tid(e), trace_tid(around));
    }
    CHECK_STOP(plain != NULL);
    CHECK_STR(json_text(json_get(plain, "cat")), "c");
    CHECK_STR(json_text(json_get(plain, "s")), "t");
    CHECK(json_get(plain, "args") == NULL);
}

/* The text of the nth value of a counter; its only argument. */
static const char *counter(json_node *t, const char *name, size_t nth)
{
    json_node *args = json_get(trace_event(t, "C", name, nth), "args");
    if (!args || args->count != 1 || args->first->type != JSON_NUMBER) return "(no single number)";
    return args->first->text;
}

/* An integer stays an integer; what Perfetto cannot read as int64 must still be a number of about that
   size. */
static void counters(void)
{
    uint64_t u = UINT64_MAX;
    uint8_t small = 200;
    int64_t s = INT64_MIN;
    float f = 0.25f;
    npuprof_start(1);
    PROF_COUNTER("int", -7);
    PROF_COUNTER("int", 2147483647);
    PROF_COUNTER("int64", s);
    PROF_COUNTER("int64", INT64_MAX);
    PROF_COUNTER("uint64", u);
    PROF_COUNTER("uint64", 3u);
    PROF_COUNTER("uint8", small);
    PROF_COUNTER("double", 0.1);
    PROF_COUNTER("double", -2.0);
    PROF_COUNTER("float", f);
    PROF_COUNTER("bool", 3 > 2);
    PROF_COUNTER("real bool", (bool)true);
    PROF_COUNTER("large", 9007199254740993);
    json_node *t = written();
    CHECK_STR(counter(t, "int", 0), "-7");
    CHECK_STR(counter(t, "int", 1), "2147483647");
    CHECK_STR(counter(t, "int64", 0), "-9223372036854775808");
    CHECK_STR(counter(t, "int64", 1), "9223372036854775807");
    CHECK_STR(counter(t, "uint64", 1), "3");
    CHECK(strtod(counter(t, "uint64", 0), NULL) > 1.8e19);
    CHECK_STR(counter(t, "uint8", 0), "200");
    CHECK(strtod(counter(t, "double", 0), NULL) == 0.1);
    CHECK(strtod(counter(t, "double", 1), NULL) == -2);
    CHECK(strtod(counter(t, "float", 0), NULL) == 0.25);
    CHECK_STR(counter(t, "bool", 0), "1");
    CHECK_STR(counter(t, "real bool", 0), "1");
    CHECK_STR(counter(t, "large", 0), "9007199254740993");
}

/* The slice that a flow event binds to: the innermost around it. */
static json_node *slice_around(json_node *t, json_node *event)
{
    json_node *best = NULL;
    for (size_t i = 0, n = trace_count(t, "X", NULL); event && i < n; i++) {
        json_node *e = trace_event(t, "X", NULL, i);
        if (trace_tid(e) == trace_tid(event) && trace_start(e) <= trace_start(event)
            && trace_end(e) >= trace_start(event) &&
            (!best || trace_dur(e) < trace_dur(best)))
            best = e;
    }
    return best;
}

static uint64_t queue_id;
static void *worker(void *unused)
{
    (void)unused;
    PROF_THREAD_NAME("worker");
    PROF_SCOPE("consume");
    PROF_FLOW_IN(queue_id);
    return NULL;
}

static void flows(void)
{
    queue_id = UINT64_C(0xFFFFFFFF00000001);
    npuprof_start(1);
    {
        PROF_SCOPE("produce");
        PROF_FLOW_OUT(queue_id);
    }
    on_a_thread(worker, NULL);
    json_node *t = written(), *s = trace_event(t, "s", NULL, 0), *f = trace_event(t, "f", NULL, 0);
    CHECK_STOP(s && f);
    CHECK_STR(json_text(json_get(s, "name")), json_text(json_get(f, "name")));
    CHECK_STR(json_text(json_get(s, "cat")), json_text(json_get(f, "cat")));
    CHECK_STR(json_text(json_get(s, "id")), json_text(json_get(f, "id")));
    CHECK_STR(json_text(json_get(f, "bp")), "e");
    CHECK(trace_start(s) <= trace_start(f));
    CHECK_STR(json_text(json_get(slice_around(t, s), "name")), "produce");
    CHECK_STR(json_text(json_get(slice_around(t, f), "name")), "consume");
    CHECK_STR(trace_track(t, f), "worker");
}

/* An id used again gives arrows of their own; VIEWERS.md: a repeated s with the same id, cat and name is an
   error. */
static void flow_id_again(void)
{
    npuprof_start(1);
    for (int i = 0; i < 4; i++) {
        { PROF_SCOPE("out"); PROF_FLOW_OUT(1); }
        { PROF_SCOPE("in"); PROF_FLOW_IN(1); }
    }
    json_node *t = written();
    CHECK_UINT(trace_count(t, "s", NULL), 4);
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(json_text(json_get(trace_event(t, "s", NULL, i), "id")),
                         json_text(json_get(trace_event(t, "s", NULL, k), "id"))) != 0);
    for (size_t i = 0; i < 4; i++)
        CHECK_STR(json_text(json_get(trace_event(t, "s", NULL, i), "id")),
                  json_text(json_get(trace_event(t, "f", NULL, i), "id")));
}

static void *end_jobs(void *unused)
{
    (void)unused;
    for (uint64_t id = 0; id < 5; id++) npuprof_async_end(id + ((uint64_t)1 << 40));
    return NULL;
}

/* Begins here, ends there, overlapping: each is one X event on a track where nothing overlaps. */
static void async_spans(void)
{
    char name[16];
    npuprof_start(1);
    npuprof_async_end(99);    /* an end without a begin is not a span */
    for (uint64_t id = 0; id < 5; id++) {
        snprintf(name, sizeof name, "job %d", (int)id);
        npuprof_async_begin("q", name, id + ((uint64_t)1 << 40));
        memset(name, '?', sizeof name - 1);
    }
    on_a_thread(end_jobs, NULL);
    npuprof_async_begin("q", "again", (uint64_t)1 << 40);
    npuprof_async_end((uint64_t)1 << 40);
    npuprof_async_begin("q", "never ended", 7);
    json_node *t = written();
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "job %d", i);
        json_node *e = trace_event(t, "X", name, 0);
        CHECK_UINT(trace_count(t, "X", name), 1);
        CHECK_STOP(e != NULL);
        CHECK_STR(json_text(json_get(e, "cat")), "q");
        CHECK(json_get(e, "args.unfinished") == NULL);
        for (size_t k = 0; k < trace_count(t, "X", NULL); k++) {
            json_node *o = trace_event(t, "X", NULL, k);
            if (o == e || trace_tid(o) != trace_tid(e)) continue;
            CHECK(trace_end(o) <= trace_start(e) || trace_end(e) <= trace_start(o) || trace_inside(e, o)
                  || trace_inside(o, e));
        }
    }
    CHECK_COUNTS(t, "X", { "again", 1 }, { "never ended", 1 });
    CHECK(json_get(trace_event(t, "X", "never ended", 0), "args") != NULL);
    CHECK_UINT(trace_count(t, "X", NULL), 7);
    CHECK_UINT(trace_count(t, "b", NULL) + trace_count(t, "e", NULL) + trace_count(t, "B", NULL)
               + trace_count(t, "E", NULL), 0);
}

/* Finished spans with the caller's stamps lie on the track of that name, at that place. */
static void finished_spans(void)
{
    npuprof_start(1);
    int64_t zero = npuprof_now_ns();
    { PROF_SCOPE("host"); npuprof_span("dma 0", "d", "copy", zero, zero, PROF_NO_ARGS); }
    int64_t one = npuprof_now_ns();
    npuprof_span("dma 0", "d", "measured", zero, one, PROF_ARGS(PROF_INT("bytes", 4096)));
    npuprof_span("dma 0", "d", "a", one + 100, one + 300, PROF_NO_ARGS);
    npuprof_span("dma 0", "d", "overlaps a", one + 200, one + 400, PROF_NO_ARGS);
    npuprof_span("dma 1", NULL, "b", one + 150, one + 250, PROF_NO_ARGS);
    npuprof_span("dma 1", "d", "backwards", one + 500, one + 450, PROF_NO_ARGS);
    json_node *t = written();
    json_node *host = trace_event(t, "X", "host", 0), *a = trace_event(t, "X", "a", 0),
        *over = trace_event(t, "X", "overlaps a", 0),
         *b = trace_event(t, "X", "b", 0), *measured = trace_event(t, "X", "measured", 0),
         *back = trace_event(t, "X", "backwards", 0);
    CHECK_STOP(host && a && over && b && measured && back);
    CHECK_STR(trace_track(t, a), "dma 0");
    CHECK_STR(trace_track(t, b), "dma 1");
    CHECK(trace_tid(a) != trace_tid(host) && trace_tid(a) != trace_tid(b) && trace_tid(over) != trace_tid(a));
    CHECK(trace_tid(measured) != trace_tid(host));
    CHECK_INT(trace_dur(a), 200);
    CHECK_INT(trace_dur(over), 200);
    CHECK_INT(trace_dur(b), 100);
    CHECK_INT(trace_start(over) - trace_start(a), 100);
    CHECK_INT(trace_start(b) - trace_start(a), 50);
    CHECK_INT(json_int(json_get(measured, "args.bytes")), 4096);
    CHECK(json_get(b, "cat") == NULL);
    CHECK_INT(trace_dur(back), 0);
    CHECK(json_get(back, "args") != NULL);
    CHECK(trace_event(t, "X", "copy", 0) != NULL);
    /* The rate of the clock is refined between the stamp and the write, so the two may differ by some ns. */
    CHECK(trace_start(host) >= trace_start(measured) - 1000000);
    CHECK(trace_end(host) <= trace_end(measured) + 1000000);
}

/* A stamp 13 days from the trace, on either side and at either end, is said to be out of range. */
static void finished_spans_far_away(void)
{
    static const struct { const char *name; int start, end; } spans[] = {
        { "early start", -1, 0 }, { "early end", 0, -1 }, { "late start", 1, 0 }, { "late end", 0, 1 } };
    const int64_t far_ns = ((int64_t)1 << 50) + 1000000000;
    npuprof_start(1);
    const int64_t now = npuprof_now_ns();
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++)
        npuprof_span("track", NULL, spans[i].name, now + spans[i].start * far_ns, now + spans[i].end * far_ns,
                     PROF_NO_ARGS);
    npuprof_span("track", NULL, "a day", now - INT64_C(86400000000000), now, PROF_NO_ARGS);
    json_node *t = written();
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        json_node *e = trace_event(t, "X", spans[i].name, 0);
        CHECK_STOP(e != NULL);
        CHECK(json_get(e, "args.stamps_out_of_range") != NULL);
        CHECK_INT(trace_dur(e), 0);
    }
    json_node *day = trace_event(t, "X", "a day", 0);
    CHECK_STOP(day != NULL);
    CHECK(json_get(day, "args.stamps_out_of_range") == NULL);
    CHECK_INT(trace_dur(day), INT64_C(86400000000000));
}

static void *named_worker(void *name)
{
    PROF_THREAD_NAME((const char *)name);
    memset(name, '?', 8);
    PROF_SCOPE("work");
    return NULL;
}

static void *renamed_worker(void *name)
{
    PROF_THREAD_NAME((const char *)name);
    PROF_THREAD_NAME("another");
    PROF_SCOPE("renamed work");
    return NULL;
}

static void thread_names(void)
{
    char one[] = "reader 1", two[] = "writer 2";
    PROF_THREAD_NAME("the main thread");     /* kept while stopped */
    npuprof_start(1);
    { PROF_SCOPE("main work"); }
    on_a_thread(named_worker, one);
    json_node *t = written();
    CHECK_STR(trace_track(t, trace_event(t, "X", "main work", 0)), "the main thread");
    CHECK_STR(trace_track(t, trace_event(t, "X", "work", 0)), "reader 1");
    CHECK(trace_tid(trace_event(t, "X", "work", 0)) != trace_tid(trace_event(t, "X", "main work", 0)));
    on_a_thread(named_worker, two);
    PROF_THREAD_NAME("renamed");
    t = written();
    CHECK_STR(trace_track(t, trace_event(t, "X", "main work", 0)), "renamed");
    CHECK(trace_event(t, "M", "process_name", 0) != NULL);
    CHECK(trace_event(t, "M", "thread_sort_index", 0) != NULL);
    for (size_t i = 0; i < trace_count(t, "X", NULL); i++) {
        int64_t tid = trace_tid(trace_event(t, "X", NULL, i));
        CHECK(tid >= 1 && tid <= 3);
        CHECK_INT(json_int(json_get(trace_event(t, "X", NULL, i), "pid")), getpid());
    }
}

static void *late_worker(void *name)
{
    if (name) {
        PROF_SCOPE("mine");
        PROF_THREAD_NAME((const char *)name);
    } else {
        PROF_SCOPE("of nobody");
    }
    return NULL;
}

/* A row that other threads have used keeps its name: one that is said inside a span, where the thread cannot
   go to another row, is counted. Behind the span it can. */
static void late_names(void)
{
    npuprof_stats stats;
    char late[] = "late";
    npuprof_start(1);
    on_a_thread(late_worker, NULL);
    on_a_thread(late_worker, late);
    json_node *t = written();
    CHECK(strcmp(trace_track(t, trace_event(t, "X", "of nobody", 0)), "late") != 0);
    CHECK(strcmp(trace_track(t, trace_event(t, "X", "mine", 0)), "late") != 0);
    npuprof_get_stats(&stats);
    CHECK_UINT(stats.lost_by_cause[NPUPROF_LOST_NOTES], 1);
    char name[] = "reader 1", again[] = "reader 1";
    on_a_thread(named_worker, name);
    on_a_thread(renamed_worker, again);
    t = written();
    CHECK_STR(trace_track(t, trace_event(t, "X", "work", 0)), "reader 1");
    CHECK_STR(trace_track(t, trace_event(t, "X", "renamed work", 0)), "another");
}

static int64_t native_ids[3];
static void *numbered_worker(void *number)
{
    native_ids[*(int *)number] = (int64_t)syscall(SYS_gettid);
    PROF_SCOPE("numbered");
    return NULL;
}

/* A track says the system's number of its thread, and how many threads had it where that is the last
   one's. */
static void native_threads(void)
{
    npuprof_start(1);
    { PROF_SCOPE("main work"); }
    for (int i = 0; i < 3; i++) on_a_thread(numbered_worker, &i);
    json_node *t = written(), *e;
    const int64_t main_tid = trace_tid(trace_event(t, "X", "main work", 0)),
        tid = trace_tid(trace_event(t, "X", "numbered", 2));
    size_t found = 0;
    for (size_t i = 0; (e = trace_event(t, "M", "thread_name", i)) != NULL; i++) {
        if (trace_tid(e) == main_tid) {
            CHECK_INT(json_int(json_get(e, "args.native_id")), getpid());
            CHECK(json_get(e, "args.native_threads") == NULL);
            found++;
        } else if (trace_tid(e) == tid) {
            CHECK_INT(json_int(json_get(e, "args.native_id")), native_ids[2]);
            CHECK_INT(json_int(json_get(e, "args.native_threads")), 3);
            found++;
        }
    }
    CHECK_UINT(found, 2);
}

/* Pairs of the program in metadata.npuprof, or beside it: found by key anywhere in the metadata. */
static json_node *find_key(json_node *v, const char *key)
{
    for (json_node *m = v ? v->first : NULL; m; m = m->next) {
        if (m->key && !strcmp(m->key, key)) return m;
        json_node *inner = find_key(m, key);
        if (inner) return inner;
    }
    return NULL;
}

static void metadata(void)
{
    char key[] = "model", value[] = "resnet50";
    npuprof_metadata(key, value);             /* kept while stopped */
    memset(key, '?', 5);
    memset(value, '?', 8);
    npuprof_metadata("firmware", "1.0");
    npuprof_start(1);
    npuprof_metadata("firmware", "2.0 \"b\"");
    npuprof_metadata("empty", "");
    { PROF_SCOPE("x"); }
    json_node *t = written(), *m = json_get(t, "metadata");
    CHECK_STR(json_text(find_key(m, "model")), "resnet50");
    CHECK_STR(json_text(find_key(m, "firmware")), "2.0 \"b\"");
    CHECK_STR(json_text(find_key(m, "empty")), "");
    json_node *own = json_get(t, "metadata.npuprof");
    CHECK_STOP(own != NULL);
    CHECK_STR(json_text(json_get(own, "version")), NPUPROF_VERSION_STRING);
    CHECK_INT(json_int(json_get(own, "pid")), getpid());
    CHECK(json_int(json_get(own, "start_unix_ns")) > INT64_C(1600000000000000000));
    CHECK(json_get(own, "start_monotonic_ns") != NULL);
    CHECK(json_get(own, "clock.source") && json_real(json_get(own, "clock.hz")) > 1000);
    CHECK(json_get(own, "lost") && json_get(own, "lost")->type == JSON_OBJECT);
    char host[256];
    gethostname(host, sizeof host);
    CHECK_STR(json_text(json_get(own, "host")), host);
}

/* Memory pools: a counter for each of the two figures. */
static void memory(void)
{
    npuprof_device device = { "npu7", NULL, NULL, false };
    npuprof_start(1);
    PROF_MEMORY(NULL, 100, 200, "op a");
    PROF_MEMORY(&device, (uint64_t)5 << 40, (uint64_t)6 << 40, "op b");
    json_node *t = written();
    CHECK(trace_count(t, "C", NULL) >= 2);
}

/* Viewers refuse a track without a name. */
static void without_names(void)
{
    npuprof_start(1);
    PROF_THREAD_NAME("");
    { PROF_SCOPE("host"); }
    const int64_t now = npuprof_now_ns();
    npuprof_span("", NULL, "on a track", now, now + 10, PROF_NO_ARGS);
    npuprof_span("", NULL, "over it", now + 5, now + 15, PROF_NO_ARGS);
    npuprof_async_begin(NULL, "", 1);
    npuprof_async_end(1);
    json_node *t = written();
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next)
        if (strcmp(json_text(json_get(e, "ph")), "M") == 0 && json_get(e, "args.name"))
            CHECK(json_get(e, "args.name")->text_bytes > 0);
    CHECK_STR(trace_track(t, trace_event(t, "X", "host", 0)), "main");
    CHECK_STR(trace_track(t, trace_event(t, "X", "on a track", 0)), "unnamed");
    CHECK_STR(trace_track(t, trace_event(t, "X", "over it", 0)), "unnamed #2");
    CHECK_STR(trace_track(t, trace_event(t, "X", "", 0)), "unnamed");
}

/* A counter and a pool of one name are two tracks; tag and change are arguments that viewers show. */
static void tags(void)
{
    npuprof_device device = { "npu7", NULL, NULL, false };
    npuprof_start(1);
    PROF_COUNTER("npu7", 3);
    PROF_ALLOC(&device, 300, "buffer");
    PROF_FREE(&device, 100, "part");
    PROF_MEMORY(&device, 5, 6, "");
    json_node *t = written(), *counter_event = trace_event(t, "C", "npu7", 0),
        *pool = trace_event(t, "C", "npu7", 1);
    CHECK_STOP(counter_event && pool);
    CHECK(json_get(counter_event, "cat") == NULL);
    CHECK_STR(json_text(json_get(pool, "cat")), "memory");
    json_node *buffer = trace_event(t, "i", "buffer", 0), *part = trace_event(t, "i", "part", 0);
    CHECK_STOP(buffer && part);
    CHECK_UINT(trace_count(t, "i", NULL), 2);
    CHECK_STR(json_text(json_get(buffer, "args.pool")), "npu7");
    CHECK_STR(json_text(json_get(buffer, "args.tag")), "buffer");
    CHECK_INT(json_int(json_get(buffer, "args.change")), 300);
    CHECK_INT(json_int(json_get(part, "args.change")), -100);
    CHECK_INT(trace_start(buffer), trace_start(pool));
    CHECK_INT(json_int(json_get(t, "metadata.npuprof.recorded")), 4);
}

CHECK_MAIN(CASE(instants), CASE(counters), CASE(flows), CASE(flow_id_again), CASE(async_spans),
           CASE(finished_spans), CASE(finished_spans_far_away), CASE(thread_names), CASE(late_names),
           CASE(native_threads),
           CASE(metadata), CASE(memory), CASE(without_names), CASE(tags))

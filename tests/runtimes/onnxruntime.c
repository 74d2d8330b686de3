/* test: cc=-I{root}/examples/runtimes/onnxruntime cc=-I{root}/tests/programs/runtimes lib=-lm - the profiler
   for ONNX Runtime without it: a late call, a clock that is set, texts that would break JSON, two profilers
   at once, what is lost, errors of ORT
   SPDX-License-Identifier: MIT */
#include "check.h"
#include "npuprof.h"
#include "npuprof_npu.h"
#include "ort_api.h"
#include "npuprof_ort.h"
#include "drifting_npu.h"

enum { MOST = 2000, TEXTS = 16 };
struct OrtProfilingEvent { char name[160]; int thread; int64_t us, lasted_us; size_t count;
                           char key[TEXTS][32], value[TEXTS][160]; };
struct OrtProfilingEventsContainer { OrtProfilingEvent *event[MOST]; size_t count; };
struct OrtStatus { int unused; };

static OrtStatus failure;
static OrtProfilingEventsContainer got;
static int made, released, fails_at;
static int64_t zero, was_set;            /* ORT's clock is CLOCK_MONOTONIC, 0 at `zero`, and may be set */

static int64_t ort_us(void) { return (drifting_real_ns() - zero + was_set) / 1000; }

static void sleep_us(long us) { nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL); }

static OrtStatus *create_event(OrtProfilingEventCategory category, int32_t process, int32_t thread,
                               const char *name, int64_t us, int64_t lasted_us, const char *const *keys,
                               const char *const *values, size_t count, OrtProfilingEvent **event)
{
    CHECK(category == OrtProfilingEventCategory_KERNEL && process == (int32_t)getpid() && count <= TEXTS);
    if (fails_at && made == fails_at) return &failure;
    OrtProfilingEvent *const e = *event = calloc(1, sizeof *e);
    made++;
    snprintf(e->name, sizeof e->name, "%s", name);
    e->thread = thread, e->us = us, e->lasted_us = lasted_us, e->count = count;
    for (size_t i = 0; i < count; i++) {
        snprintf(e->key[i], sizeof e->key[i], "%s", keys[i]);
        snprintf(e->value[i], sizeof e->value[i], "%s", values[i]);
    }
    return NULL;
}

static void release_event(OrtProfilingEvent *event)
{
    released++;
    free(event);
}

static OrtStatus *name_of(const OrtProfilingEvent *e, const char **out) { return *out = e->name, NULL; }
static OrtStatus *start_of(const OrtProfilingEvent *e, int64_t *out) { return *out = e->us, NULL; }
static OrtStatus *length_of(const OrtProfilingEvent *e, int64_t *out) { return *out = e->lasted_us, NULL; }

static OrtStatus *value_of(const OrtProfilingEvent *e, const char *key, const char **out)
{
    *out = NULL;
    for (size_t i = 0; i < e->count; i++)
        if (!strcmp(e->key[i], key)) *out = e->value[i];
    return NULL;
}

static OrtStatus *add_events(OrtProfilingEventsContainer *to, const OrtProfilingEvent *const *events,
                             size_t count)
{
    CHECK(count > 0 && to->count + count <= MOST);
    for (size_t i = 0; i < count; i++) {
        to->event[to->count] = malloc(sizeof *events[i]);
        *to->event[to->count++] = *events[i];
    }
    return NULL;
}

static OrtStatus *create_status(OrtErrorCode code, const char *text)
{
    return (void)code, (void)text, &failure;
}

static void release_status(OrtStatus *status) { CHECK(status == &failure); }

static const OrtEpApi ep_api = { .CreateProfilingEvent = create_event, .ReleaseProfilingEvent = release_event,
                                 .ProfilingEvent_GetName = name_of, .ProfilingEvent_GetTimestampUs = start_of,
                                 .ProfilingEvent_GetDurationUs = length_of,
                                 .ProfilingEvent_GetArgValue = value_of,
                                 .ProfilingEventsContainer_AddEvents = add_events };
static const OrtEpApi *get_ep_api(void) { return &ep_api; }
static const OrtApi api = { .CreateStatus = create_status, .ReleaseStatus = release_status,
                            .GetEpApi = get_ep_api };

/* A profiler that has started, some us after ORT took the offset. */
static OrtEpProfilerImpl *begun(long late_us)
{
    OrtEpProfilerImpl *p;
    CHECK(npuprof_ort_create(&api, &p) == NULL);
    CHECK_STOP(p != NULL);
    const int64_t offset_ns = drifting_real_ns() - zero;
    if (late_us) sleep_us(late_us);
    CHECK(p->StartProfiling(p, offset_ns) == NULL);
    return p;
}

/* A node in which the device runs a job; `count` profilers see it, and see its end in the same order. */
static void run_node(OrtEpProfilerImpl *const *p, int count, const char *name, const char *job)
{
    OrtProfilingEvent e = { .count = 2, .key = { "op_name", "node_index" }, .value = { "Mul", "7" } };
    snprintf(e.name, sizeof e.name, "%s", name);
    e.us = ort_us();
    for (int i = 0; i < count; i++) CHECK(p[i]->StartEvent(p[i], (uint64_t)e.us) == NULL);
    if (job) drifting_run(job, 5000);
    e.lasted_us = ort_us() - e.us;
    for (int i = 0; i < count; i++) CHECK(p[i]->StopEvent(p[i], (uint64_t)e.us, &e) == NULL);
}

/* Ends and releases a profiler; `got` has what it gave. */
static void end(OrtEpProfilerImpl *p)
{
    while (got.count) free(got.event[--got.count]);
    CHECK(p->EndProfiling(p, &got) == NULL);
    p->Release(p);
    CHECK_INT(released, made);
}

static void set_up(void)
{
    CHECK_INT(drifting_open(), NPUPROF_OK);
    zero = drifting_real_ns() - 300000;
}

static int64_t number(const OrtProfilingEvent *e, const char *key)
{
    const char *text;
    (void)value_of(e, key, &text);
    CHECK_STOP(text != NULL);
    return atoll(text);
}

/* Is it where it was, within the error that it states? */
static void check_place(const OrtProfilingEvent *e)
{
    const drifting_truth *const k = &drifting_kept[number(e, "job") - 1];
    const int64_t error = number(e, "error_ns");
    const char *said;
    (void)value_of(e, "clock", &said);
    CHECK(said == NULL);
    CHECK_STR(e->name, k->name);
    CHECK(llabs(e->us * 1000 - (k->start_ns - zero)) <= error);
    CHECK(llabs((e->us + e->lasted_us) * 1000 - (k->end_ns - zero)) <= error);
}

/* The one call that ORT's clock is told at comes 5 ms late: the events tell better. */
static void late_start(void)
{
    set_up();
    OrtEpProfilerImpl *const p = begun(5000);
    for (int i = 0; i < 600; i++) {
        run_node(&p, 1, "node", "job");
        run_node(&p, 1, "short", NULL);      /* ORT cuts its length to 0 us */
    }
    end(p);
    CHECK_UINT(got.count, 600);          /* more than are handed over at once */
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < got.count; i++) {
        CHECK_INT(number(got.event[i], "job"), (int64_t)i + 1);
        check_place(got.event[i]);
        if (number(got.event[i], "error_ns") < least) least = number(got.event[i], "error_ns");
    }
    CHECK(least < 500000);
}

/* Without any event there is only that call: the error is as long as what it may have waited. */
static void no_event(void)
{
    set_up();
    OrtEpProfilerImpl *const p = begun(3000);
    drifting_run("alone", 5000);
    end(p);
    CHECK_UINT(got.count, 1);
    CHECK(number(got.event[0], "error_ns") > 1500000);
    check_place(got.event[0]);
}

static void clock_is_set(void)
{
    set_up();
    OrtEpProfilerImpl *const p = begun(0);
    for (int i = 0; i < 20; i++) {
        if (i == 10) was_set = 50000000;
        run_node(&p, 1, "node", "job");
    }
    end(p);
    CHECK_UINT(got.count, 20);
    for (size_t i = 0; i < got.count; i++) {
        const char *said;
        (void)value_of(got.event[i], "clock", &said);
        CHECK_STR(said ? said : "nothing", "ORT's clock was set while it profiled");
        CHECK(number(got.event[i], "error_ns") >= 24000000);
    }
}

static void texts(void)
{
    char text[300];
    set_up();
    OrtEpProfilerImpl *const p = begun(0);
    memset(text, 'x', sizeof text);
    strcpy(text + 126, "\xC3\xBC");
    npuprof_npu_span(&drifting_npu, 0, text, "[c", drifting_ticks(drifting_real_ns()),
                     drifting_ticks(drifting_real_ns()),
                     PROF_ARGS(PROF_STR("path", "[\"C:\\\""), PROF_REAL("half", 0.5), PROF_BOOL("yes", true),
                               PROF_INT("less", -3)));
    drifting_run("a \"b\" \\ c\n\x7f", 5000);
    drifting_run("{\"raw\":1}", 5000);
    end(p);
    CHECK_UINT(got.count, 3);
    CHECK_STR(got.event[1]->name, "a 'b'   c  ");
    CHECK_STR(got.event[2]->name, "('raw':1}");
    text[126] = 0;
    CHECK_STR(got.event[0]->name, text);
    const char *const keys[] = { "path", "half", "yes", "less" }, *values[4];
    for (int i = 0; i < 4; i++) (void)value_of(got.event[0], keys[i], &values[i]);
    CHECK_STR(values[0], "('C: '");
    CHECK_STR(values[1], "0.5");
    CHECK_STR(values[2], "true");
    CHECK_STR(values[3], "-3");
}

static bool count_events(void *user, const npuprof_read_span *span)
{
    int *const counts = user;
    if (!strcmp(span->category, "onnxruntime")) {
        counts[!strcmp(span->name, "outer")]++;
        CHECK(!strncmp(span->track, "onnxruntime ", 12));
    }
    return true;
}

/* Each gets all device spans since its start, and its own events; npuprof stops with the last of them. */
static void two_at_once(void)
{
    OrtEpProfilerImpl *p[2], *other[3];
    npuprof_cursor cursor = { 0 };
    int counts[2] = { 0, 0 };
    set_up();
    p[0] = begun(0);
    CHECK(npuprof_is_recording());
    for (int i = 0; i < 5; i++) run_node(p, 1, "outer", "job");
    for (int i = 0; i < 3; i++) other[i] = begun(0);
    p[1] = begun(0);                     /* the fifth: it shares its place among the last calls */
    for (int i = 0; i < 3; i++) end(other[i]);
    for (int i = 0; i < 7; i++) run_node(p, 2, "node", "job");
    end(p[1]);
    CHECK_UINT(got.count, 7);
    CHECK(npuprof_is_recording());
    for (size_t i = 0; i < got.count; i++) check_place(got.event[i]);
    end(p[0]);
    CHECK_UINT(got.count, 12);
    for (size_t i = 0; i < got.count; i++) check_place(got.event[i]);
    CHECK(!npuprof_is_recording());
    CHECK_INT(npuprof_read(&cursor, NPUPROF_READ_SPANS, count_events, counts, NULL), NPUPROF_OK);
    CHECK_INT(counts[1], 5);
    CHECK_INT(counts[0], 14);
    npuprof_start(1);
    end(begun(0));
    CHECK(npuprof_is_recording());       /* the program's own start stays */
}

/* Deeper than a thread's list: the events are counted, and the spans are there. */
static void too_deep(void)
{
    set_up();
    OrtEpProfilerImpl *const p = begun(0);
    OrtProfilingEvent e = { .name = "around" };
    int64_t us[10];
    for (int i = 0; i < 10; i++) {
        us[i] = ort_us();
        CHECK(p->StartEvent(p, 1) == NULL);
    }
    run_node(&p, 1, "inner", "job");
    for (int i = 9; i >= 0; i--) {
        e.us = us[i];
        e.lasted_us = ort_us() - e.us;
        CHECK(p->StopEvent(p, 1, &e) == NULL);
    }
    run_node(&p, 1, "after", "job");
    end(p);
    CHECK_UINT(got.count, 3);
    check_place(got.event[0]);
    check_place(got.event[1]);
    CHECK_STR(got.event[2]->name, "npuprof: not in this profile");
    CHECK_INT(number(got.event[2], "nested_too_deep"), 3);
    CHECK_INT(number(got.event[2], "lost"), 0);
}

/* What an event has no room for is counted. */
static void many_arguments(void)
{
    npuprof_arg items[20];
    const npuprof_args args = { items, 20 };
    char keys[20][4];
    set_up();
    OrtEpProfilerImpl *const p = begun(0);
    for (int i = 0; i < 20; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        items[i] = PROF_INT("k", i);
        items[i].key = keys[i];
    }
    npuprof_npu_span(&drifting_npu, 0, "many", NULL, drifting_ticks(drifting_real_ns()),
                     drifting_ticks(drifting_real_ns()), args);
    end(p);
    CHECK_STOP(got.count == 2);
    int there = 0;
    for (int i = 0; i < 20; i++) {
        const char *text;
        (void)value_of(got.event[0], keys[i], &text);
        there += text != NULL;
    }
    CHECK_INT(number(got.event[1], "arguments"), 20 - there);
    CHECK(there < 20 && there > 5);
}

/* An engine has a row of its own, however high its number is. */
static void rows(void)
{
    static npuprof_npu other;
    set_up();
    const npuprof_npu_desc d = { .name = "other", .read_ticks = drifting_read, .pe_count = 65536,
                                 .counter = { .bits = 32, .hz = DRIFTING_HZ } };
    CHECK_INT(npuprof_npu_open(&other, &d), NPUPROF_OK);
    OrtEpProfilerImpl *const p = begun(0);
    const unsigned engines[] = { 0, 1000, 65535 };
    for (int i = 0; i < 6; i++) {
        const uint64_t ticks = drifting_ticks(drifting_real_ns());
        npuprof_npu_span(i < 3 ? &drifting_npu : &other, engines[i % 3], "op", NULL, ticks, ticks,
                         PROF_NO_ARGS);
    }
    end(p);
    CHECK_STOP(got.count == 6);
    for (int i = 0; i < 6; i++) {
        CHECK(got.event[i]->thread > NPUPROF_ORT_ROW);
        for (int k = 0; k < i; k++) CHECK(got.event[i]->thread != got.event[k]->thread);
    }
    npuprof_npu_close(&other);
}

static void lost_is_said(void)
{
    static uint64_t arena[8192];
    const npuprof_desc desc = { .arena = arena, .arena_bytes = sizeof arena };
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    set_up();
    OrtEpProfilerImpl *const p = begun(0);
    for (int i = 0; i < 1000; i++) drifting_run("job", 100);
    end(p);
    npuprof_stats stats;
    CHECK_INT(npuprof_get_stats(&stats), NPUPROF_OK);
    CHECK(got.count > 10 && stats.lost > 0);
    CHECK_INT(number(got.event[got.count - 1], "lost"), (int64_t)stats.lost);
}

static void errors_of_ort(void)
{
    set_up();
    OrtEpProfilerImpl *const p = begun(0);
    for (int i = 0; i < 10; i++) run_node(&p, 1, "node", "job");
    fails_at = 4;
    got.count = 0;
    CHECK(p->EndProfiling(p, &got) == &failure);
    p->Release(p);
    CHECK_INT(released, made);
}

CHECK_MAIN(CASE(late_start), CASE(no_event), CASE(clock_is_set), CASE(texts), CASE(two_at_once),
           CASE(too_deep), CASE(many_arguments), CASE(rows), CASE(lost_is_said), CASE(errors_of_ort))

/* the user's clock: exact times in the file, phases, pauses, async and finished spans at it
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include "fake_clock.h"
#include "npuprof.h"
#include "recorded.h"

/* One tick is one ns: every duration and distance is exact. */
static void exact_times(void)
{
    npuprof_start(1);
    {
        PROF_SCOPE("outer");
        fake_ticks += 5;
        for (uint64_t i = 0; i < 10; i++) { PROF_SCOPE("inner"); fake_ticks += i; }
        fake_ticks += 1000000001;
    }
    {
        PROF_PHASES("p1");
        fake_ticks += 3;
        PROF_NEXT("p2");
        fake_ticks += 4;
        PROF_NEXT("p3");
        fake_ticks += 5;
    }
    fake_ticks += 7;
    PROF_INSTANT("c", "i", PROF_NO_ARGS);
    npuprof_async_begin("c", "async", 1);
    fake_ticks += 11;
    npuprof_async_end(1);
    json_node *t = written(), *outer = trace_event(t, "X", "outer", 0);
    CHECK_STOP(outer != NULL);
    int64_t zero = trace_start(outer);
    CHECK_INT(trace_dur(outer), 5 + 45 + 1000000001);
    for (size_t i = 0; i < 10; i++) CHECK_INT(trace_dur(trace_event(t, "X", "inner", i)), (int64_t)i);
    CHECK_INT(trace_start(trace_event(t, "X", "inner", 9)) - zero, 5 + 36);
    json_node *p1 = trace_event(t, "X", "p1", 0), *p2 = trace_event(t, "X", "p2", 0),
        *p3 = trace_event(t, "X", "p3", 0);
    CHECK_INT(trace_dur(p1), 3);
    CHECK_INT(trace_dur(p2), 4);
    CHECK_INT(trace_dur(p3), 5);
    CHECK_INT(trace_start(p2), trace_end(p1));
    CHECK_INT(trace_start(p3), trace_end(p2));
    CHECK_INT(trace_start(trace_event(t, "i", "i", 0)) - zero, 1000000051 + 12 + 7);
    CHECK_INT(trace_dur(trace_event(t, "X", "async", 0)), 11);
    CHECK_INT(json_int(json_get(t, "metadata.npuprof.clock.hz")), 1000000000);
}

/* Spans may last days: 40 of them, past the 2^44 ticks of a record's start. */
static void days(void)
{
    uint64_t day = UINT64_C(86400) * 1000000000;
    npuprof_start(1);
    {
        PROF_SCOPE("long");
        for (int i = 0; i < 40; i++) { PROF_SCOPE("day"); fake_ticks += day; }
        fake_ticks += 123;
    }
    { PROF_SCOPE("after"); fake_ticks += 1; }
    json_node *t = written(), *whole = trace_event(t, "X", "long", 0);
    CHECK_INT(trace_dur(whole), (int64_t)(40 * day + 123));
    CHECK_UINT(trace_count(t, "X", "day"), 40);
    for (size_t i = 0; i < 40; i++) {
        CHECK_INT(trace_dur(trace_event(t, "X", "day", i)), (int64_t)day);
        CHECK_INT(trace_start(trace_event(t, "X", "day", i)) - trace_start(whole), (int64_t)(i * day));
    }
    CHECK_INT(trace_dur(trace_event(t, "X", "after", 0)), 1);
    CHECK_INT(trace_start(trace_event(t, "X", "after", 0)), trace_end(whole));
    trace_check_nesting(t);
}

/* The gap of a pause is not cut out of the time. */
static void pause_keeps_time(void)
{
    npuprof_start(1);
    { PROF_SCOPE("a"); fake_ticks += 10; }
    npuprof_pause();
    fake_ticks += 1000;
    { PROF_SCOPE("b"); fake_ticks += 10; }
    npuprof_resume();
    fake_ticks += 1;
    { PROF_SCOPE("c"); fake_ticks += 10; }
    json_node *t = written();
    CHECK_INT(trace_start(trace_event(t, "X", "c", 0)) - trace_end(trace_event(t, "X", "a", 0)), 1011);
    CHECK_UINT(trace_count(t, "X", "b"), 0);
    json_node *mark = NULL;     /* the gap is marked: by some event that starts in it or at its edges */
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        const char *ph = json_text(json_get(e, "ph")), *name = json_text(json_get(e, "name"));
        if (ph && *ph != 'M' && name && strlen(name) > 1 && strstr(name, "pause")) mark = e;
    }
    CHECK(mark != NULL);
}

/* Stamps of the caller on npuprof_now_ns()'s clock come out where that clock stood. */
static void finished_at_now(void)
{
    npuprof_start(1);
    fake_ticks += 500;
    int64_t before = npuprof_now_ns();
    {
        PROF_SCOPE("host");
        fake_ticks += 250;
    }
    int64_t after = npuprof_now_ns();
    CHECK_INT(after - before, 250);
    npuprof_span("track", NULL, "mine", before, after, PROF_NO_ARGS);
    npuprof_span("track", NULL, "before the start", before - 10000, before - 9000, PROF_NO_ARGS);
    json_node *t = written(), *host = trace_event(t, "X", "host", 0), *mine = trace_event(t, "X", "mine", 0);
    CHECK_INT(trace_start(mine), trace_start(host));
    CHECK_INT(trace_dur(mine), 250);
    CHECK_INT(trace_dur(trace_event(t, "X", "before the start", 0)), 1000);
    int64_t start_unix = json_int(json_get(t, "metadata.npuprof.start_unix_ns"));
    CHECK_INT(start_unix + trace_start(host), before);
}

/* A clock that goes back by mistake makes no span of 1.8e19 ns. */
static void clock_goes_back(void)
{
    npuprof_start(1);
    { PROF_SCOPE("around"); fake_ticks += 100; { PROF_SCOPE("back"); fake_ticks -= 50; } fake_ticks += 100; }
    { PROF_SCOPE("after"); fake_ticks += 5; }
    json_node *t = written();
    trace_check_nesting(t);
    CHECK(trace_dur(trace_event(t, "X", "back", 0)) <= 100);
    CHECK_INT(trace_dur(trace_event(t, "X", "after", 0)), 5);
}

/* No stamp is negative, whatever kind of event the earliest one is: viewers drop what is. */
static void earliest_is(const void *user)
{
    const int kind = *(const int *)user;
    npuprof_start(1);
    { PROF_SCOPE("first"); fake_ticks += 100; }
    uint64_t now = fake_ticks;
    fake_ticks -= 5000;                    /* as a thread's clock that is behind does */
    if (kind == 0) { PROF_SCOPE("behind"); fake_ticks += 7; }
    if (kind == 1) PROF_INSTANT("c", "behind", PROF_NO_ARGS);
    if (kind == 2) PROF_COUNTER("behind", 1);
    if (kind == 3) PROF_MEMORY(NULL, 1, 2, "behind");
    if (kind == 4) { npuprof_async_begin(NULL, "behind", 9); fake_ticks += 7; npuprof_async_end(9); }
    if (kind == 5) { npuprof_pause(); npuprof_resume(); }
    if (kind == 6) {
        PROF_BEGIN(NULL, "behind");
        fake_ticks += 7;
        PROF_FLOW_OUT(1);
        PROF_FLOW_IN(1);
        PROF_END();
    }
    fake_ticks = now + 100;
    { PROF_SCOPE("last"); fake_ticks += 100; }
    json_node *t = written_in_any_order(), *first = trace_event(t, "X", "first", 0);
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next)
        if (json_get(e, "ts")) CHECK(trace_start(e) >= 0);
    CHECK_INT(trace_start(trace_event(t, "X", "last", 0)) - trace_start(first), 200);
    CHECK_INT(trace_start(first), 4900);
}

static void earliest_of_each_kind(void)
{
    for (int kind = 0; kind < 7; kind++)
        if (!check_in_child(earliest_is, &kind)) printf("  (kind %d)\n", kind);
}

/* What is open ends with the last stamp that the library took: a time that a program states is no sign that
   it lived then. What was opened last is long enough to be seen. */
static void open_spans(void)
{
    npuprof_start(1);
    PROF_BEGIN(NULL, "outer");
    { PROF_SCOPE("done"); fake_ticks += 100; }
    PROF_BEGIN(NULL, "inner");
    fake_ticks += 50;
    PROF_INSTANT("c", "seen", PROF_NO_ARGS);
    json_node *t = written();
    CHECK_INT(trace_dur(trace_event(t, "X", "inner", 0)), 50);
    CHECK_INT(trace_dur(trace_event(t, "X", "outer", 0)), 150);
    const int64_t from = npuprof_now_ns();
    npuprof_span("track", NULL, "later", from, from + 3000, PROF_NO_ARGS);
    t = written();
    CHECK_INT(trace_dur(trace_event(t, "X", "inner", 0)), 50);
    fake_ticks += 9000;
    PROF_BEGIN(NULL, "victim");
    npuprof_async_begin(NULL, "job", 3);
    t = written();
    CHECK_INT(trace_dur(trace_event(t, "X", "victim", 0)), 1000);
    CHECK_INT(trace_dur(trace_event(t, "X", "job", 0)), 1000);
    CHECK_INT(trace_end(trace_event(t, "X", "outer", 0)), trace_end(trace_event(t, "X", "victim", 0)));
    CHECK(json_get(trace_event(t, "X", "victim", 0), "args.unfinished") != NULL);
    trace_check_nesting(t);
}

/* Begins and ends of one id in one tick, as a slow clock has them: each begin has the end behind it. */
static void async_in_one_tick(void)
{
    npuprof_start(1);
    npuprof_async_begin("c", "at once", 7);
    npuprof_async_end(7);
    npuprof_async_begin("c", "long", 7);
    npuprof_async_begin("c", "before", 8);
    fake_ticks += 2000;
    npuprof_async_end(8);
    npuprof_async_begin("c", "open", 8);
    fake_ticks += 1000;
    npuprof_async_end(7);
    npuprof_stop();
    static const struct { const char *name; int64_t ns; bool open; } spans[] = {
        { "at once", 0, false }, { "long", 3000, false }, { "before", 2000, false }, { "open", 1000, true } };
    json_node *const t = written();
    for (unsigned n = 0; n < 4; n++) {
        json_node *const e = trace_event(t, "X", spans[n].name, 0);
        CHECK_INT(trace_end(e) - trace_start(e), spans[n].ns);
        CHECK_INT(json_get(e, "args.unfinished") != NULL, spans[n].open);
    }
}

CHECK_MAIN(CASE(exact_times), CASE(days), CASE(pause_keeps_time), CASE(finished_at_now),
           CASE(async_in_one_tick), CASE(clock_goes_back), CASE(earliest_of_each_kind), CASE(open_spans))

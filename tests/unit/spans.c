/* spans in all their forms, their names, categories and arguments
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include <setjmp.h>
#include <sys/wait.h>
#include <threads.h>
#include <ucontext.h>
#include <unistd.h>
#include "npuprof.h"
#include "recorded.h"

static void in_a_function(void) { PROF_FUNCTION(); }

/* Every form gives one X event with its name and category, inside the one around it. */
static void forms(void)
{
    static const char *const inner[] = { "scope", "scope cat", "scope args", "scope level", "wait",
                                         "in_a_function", "block", "block level", "by hand", "phase 1",
                                         "phase 2", "phase 3", "operator" };
    npuprof_start(2);
    {
        PROF_RECORD("record");
        {
            PROF_INFERENCE("inference");
            { PROF_SCOPE("scope"); }
            { PROF_SCOPE_CAT("c1", "scope cat"); }
            { PROF_SCOPE_ARGS("c2", "scope args", PROF_ARGS(PROF_INT("n", 7))); }
            { PROF_SCOPE_LEVEL(2, "c3", "scope level", PROF_NO_ARGS); }
            { PROF_WAIT("c7", "wait"); }
            in_a_function();
            WITH_BASE_PROFILER(NULL, "block", "c4", PROF_NO_ARGS, int a = 1; int b = 2; CHECK(a + b == 3));
            WITH_BASE_PROFILER_LEVEL(2, NULL, "block level", "c5", PROF_ARGS(PROF_INT("m", -7)),
                                     { CHECK(1); });
            PROF_BEGIN("c6", "by hand");
            PROF_END();
            { PROF_PHASES("phase 1"); PROF_NEXT("phase 2"); PROF_NEXT("phase 3"); }
            { PROF_OPERATOR(12, "operator"); }
        }
    }
    { PROF_RECORD_WARM_UP("warm up"); }
    npuprof_stop();
    json_node *t = written();
    json_node *record = trace_event(t, "X", "record", 0), *inference = trace_event(t, "X", "inference", 0);
    CHECK(record && inference && trace_inside(inference, record));
    CHECK(trace_event(t, "X", "warm up", 0) != NULL);
    CHECK_STR(json_text(json_get(inference, "cat")), "Runtime");
    for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
        CHECK_UINT(trace_count(t, "X", inner[i]), 1);
        if (!trace_inside(trace_event(t, "X", inner[i], 0), inference))
            check_failed_(__FILE__, __LINE__, "%s is not inside inference", inner[i]);
    }
    CHECK_UINT(trace_count(t, "X", NULL), 16);
    CHECK(json_get(trace_event(t, "X", "scope", 0), "cat") == NULL);
    CHECK_STR(json_text(json_get(trace_event(t, "X", "scope cat", 0), "cat")), "c1");
    CHECK_STR(json_text(json_get(trace_event(t, "X", "scope args", 0), "cat")), "c2");
    CHECK_STR(json_text(json_get(trace_event(t, "X", "scope level", 0), "cat")), "c3");
    CHECK_STR(json_text(json_get(trace_event(t, "X", "block", 0), "cat")), "c4");
    CHECK_STR(json_text(json_get(trace_event(t, "X", "block level", 0), "cat")), "c5");
    CHECK_STR(json_text(json_get(trace_event(t, "X", "by hand", 0), "cat")), "c6");
    CHECK_STR(json_text(json_get(trace_event(t, "X", "wait", 0), "cat")), "c7");
    CHECK_STR(json_text(json_get(trace_event(t, "X", "wait", 0), "args.kind")), "wait");
    CHECK_INT(json_int(json_get(trace_event(t, "X", "scope args", 0), "args.n")), 7);
    CHECK_INT(json_int(json_get(trace_event(t, "X", "block level", 0), "args.m")), -7);
    CHECK_INT(json_int(json_get(trace_event(t, "X", "operator", 0), "args.operator_index")), 12);
}

/* The end of one phase is the start of the next, to the ns. */
static void phases(void)
{
    npuprof_start(1);
    for (int i = 0; i < 50; i++) { PROF_PHASES("p1"); PROF_NEXT("p2"); PROF_NEXT("p3"); }
    {
        PROF_PHASES("outer 1");
        { PROF_PHASES("nested 1"); PROF_NEXT("nested 2"); }
        PROF_NEXT("outer 2");
    }
    json_node *t = written();
    for (size_t i = 0; i < 50; i++) {
        json_node *a = trace_event(t, "X", "p1", i), *b = trace_event(t, "X", "p2", i),
            *c = trace_event(t, "X", "p3", i);
        CHECK_STOP(a && b && c);
        CHECK_INT(trace_end(a), trace_start(b));
        CHECK_INT(trace_end(b), trace_start(c));
    }
    CHECK(trace_inside(trace_event(t, "X", "nested 1", 0), trace_event(t, "X", "outer 1", 0)));
    CHECK(trace_inside(trace_event(t, "X", "nested 2", 0), trace_event(t, "X", "outer 1", 0)));
    CHECK_INT(trace_end(trace_event(t, "X", "outer 1", 0)), trace_start(trace_event(t, "X", "outer 2", 0)));
}

/* PROF_NEXT while stopped ends the phase before and begins none. */
static void phases_stopped(void)
{
    npuprof_start(1);
    {
        PROF_PHASES("before");
        npuprof_stop();
        PROF_NEXT("not there");
        npuprof_start(1);
        PROF_NEXT("after");
    }
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", NULL), 2);
    json_node *before = trace_event(t, "X", "before", 0), *after = trace_event(t, "X", "after", 0);
    CHECK_STOP(before && after);
    CHECK(trace_end(before) <= trace_start(after));
}

static void arguments(void)
{
    static char long_text[2001], cut_text[1100];
    memset(long_text, 'x', 2000);
    memset(cut_text, 'y', 1023);
    memcpy(cut_text + 1023, "\xC3\xA9\xC3\xA9", 5);
    const char *nothing = NULL;
    npuprof_start(1);
    { PROF_SCOPE_ARGS("c", "ints", PROF_ARGS(PROF_INT("min", INT64_MIN), PROF_INT("max", INT64_MAX),
                                             PROF_UINT("small", 5u),
                                              PROF_UINT("zero", 0))); }
    { PROF_SCOPE_ARGS("c", "reals",
                      PROF_ARGS(PROF_REAL("half", 0.5), PROF_REAL("tenth", 0.1), PROF_REAL("big", -1e300),
                                               PROF_REAL("tiny", 5e-324))); }
    {
        PROF_SCOPE_ARGS("c", "rest", PROF_ARGS(PROF_BOOL("yes", 2 > 1), PROF_BOOL("no", 0),
                                               PROF_STR("s", "text"), PROF_STR("null", nothing)));
    }
    { PROF_SCOPE_ARGS("c", "long", PROF_ARGS(PROF_STR("s", long_text))); }
    { PROF_SCOPE_ARGS("c", "cut", PROF_ARGS(PROF_STR("s", cut_text))); }
    { PROF_SCOPE_ARGS("c", "many", PROF_ARGS(PROF_INT("a", 1), PROF_INT("b", 2), PROF_INT("c", 3),
                                             PROF_INT("d", 4), PROF_INT("e", 5),
                                              PROF_INT("f", 6), PROF_STR("g", "seven"), PROF_INT("h", 8))); }
    PROF_INSTANT("c", "instant", PROF_ARGS(PROF_INT("a", -1), PROF_STR("b", "")));
    json_node *t = written(), *e = trace_event(t, "X", "ints", 0);
    CHECK_STR(json_text(json_get(e, "args.min")), "-9223372036854775808");
    CHECK_STR(json_text(json_get(e, "args.max")), "9223372036854775807");
    CHECK_STR(json_text(json_get(e, "args.small")), "5");
    CHECK_STR(json_text(json_get(e, "args.zero")), "0");
    CHECK(json_get(e, "args.max") && json_get(e, "args.max")->type == JSON_NUMBER);
    e = trace_event(t, "X", "reals", 0);
    CHECK(json_real(json_get(e, "args.half")) == 0.5);
    CHECK(json_real(json_get(e, "args.tenth")) == 0.1);
    CHECK(json_real(json_get(e, "args.big")) == -1e300);
    CHECK(json_real(json_get(e, "args.tiny")) == 5e-324);
    e = trace_event(t, "X", "rest", 0);
    CHECK(json_get(e, "args.yes") && json_get(e, "args.yes")->type == JSON_BOOL);
    CHECK_STR(json_text(json_get(e, "args.yes")), "true");
    CHECK_STR(json_text(json_get(e, "args.no")), "false");
    CHECK_STR(json_text(json_get(e, "args.s")), "text");
    e = trace_event(t, "X", "many", 0);
    CHECK_INT(json_int(json_get(e, "args.a")), 1);
    CHECK_INT(json_int(json_get(e, "args.e")), 5);
    CHECK_STR(json_text(json_get(e, "args.g")), "seven");
    CHECK_INT(json_int(json_get(e, "args.h")), 8);
    e = trace_event(t, "i", "instant", 0);
    CHECK_INT(json_int(json_get(e, "args.a")), -1);
    CHECK_STR(json_text(json_get(e, "args.b")), "");
    json_node *s = json_get(trace_event(t, "X", "long", 0), "args.s");
    CHECK_STOP(s && s->type == JSON_STRING);
    CHECK(!strncmp(s->text, long_text, 1000) && s->text_bytes < 1100);
    /* cut, and it says so */
    CHECK(s->text_bytes != 1024 || json_get(trace_event(t, "X", "long", 0), "args")->count > 1);
    s = json_get(trace_event(t, "X", "cut", 0), "args.s");
    CHECK_STOP(s && s->type == JSON_STRING);
    CHECK(!strncmp(s->text, cut_text, 1023) && s->text_bytes < 1100);
    CHECK(strstr(s->text, "\xEF\xBF\xBD") == NULL);       /* no half character became a U+FFFD */
}

/* An integer that does not fit int64 must not come out garbled: Perfetto reads only int64. */
static void arguments_above_int64(void)
{
    npuprof_start(1);
    {
        PROF_SCOPE_ARGS("c", "u",
                        PROF_ARGS(PROF_UINT("max", UINT64_MAX), PROF_UINT("edge", (uint64_t)1 << 63)));
    }
    json_node *t = written(), *e = trace_event(t, "X", "u", 0);
    CHECK_STOP(e != NULL);
    json_node *max = json_get(e, "args.max"), *edge = json_get(e, "args.edge");
    CHECK_STOP(max && edge);
    CHECK(max->type == JSON_STRING
          && strstr(max->text, max->text[1] == 'x' ? "ffffffffffffffff" : "18446744073709551615"));
    CHECK(edge->type == JSON_STRING);
}

/* NaN and infinities are no JSON numbers. */
static void arguments_not_finite(void)
{
    volatile double zero = 0;
    npuprof_start(1);
    {
        PROF_SCOPE_ARGS("c", "f", PROF_ARGS(PROF_REAL("inf", 1 / zero), PROF_REAL("minus", -1 / zero),
                                            PROF_REAL("nan", zero / zero), PROF_INT("last", 1)));
    }
    PROF_COUNTER("counter", 1 / zero);
    PROF_COUNTER("counter", 1.5);
    json_node *t = written();
    CHECK_INT(json_int(json_get(trace_event(t, "X", "f", 0), "args.last")), 1);
    CHECK(trace_count(t, "C", NULL) >= 1);
}

static int evaluated;
static int count_evaluation(void) { return ++evaluated; }

/* Arguments are evaluated while the gate is open, once, and not at all otherwise. */
static void arguments_evaluated_once(void)
{
    for (int i = 0; i < 2; i++) {
        { PROF_SCOPE_ARGS("c", "s", PROF_ARGS(PROF_INT("n", count_evaluation()))); }
        PROF_INSTANT("c", "i", PROF_ARGS(PROF_INT("n", count_evaluation())));
        WITH_BASE_PROFILER(NULL, "b", "c", PROF_ARGS(PROF_INT("n", count_evaluation())), (void)0);
        PROF_COUNTER("n", count_evaluation());
        CHECK_INT(evaluated, i * 4);
        npuprof_start(1);
    }
}

/* Names made at run time are copied: they may change and go. */
static void run_time_names(void)
{
    npuprof_start(1);
    for (int i = 0; i < 5; i++) {
        char *name = (char *)malloc(32), *category = (char *)malloc(32);
        CHECK_STOP(name && category);
        snprintf(name, 32, "name %d", i);
        snprintf(category, 32, "category %d", i % 2);
        {
            PROF_RECORD(name);
            PROF_INFERENCE(name);
            PROF_OPERATOR(i, name);
            WITH_BASE_PROFILER(NULL, name, category, PROF_ARGS(PROF_STR("s", name)), memset(name, '#', 5));
            PROF_BEGIN(category, name);
            free(category);
            memset(name, '!', 31);
            PROF_END();
        }
        free(name);
    }
    json_node *t = written();
    for (int i = 0; i < 5; i++) {
        char name[32], changed[32], category[32];
        snprintf(name, 32, "name %d", i);
        snprintf(changed, 32, "#####%d", i);
        snprintf(category, 32, "category %d", i % 2);
        CHECK_COUNTS(t, "X", { name, 4 }, { changed, 1 });
        CHECK_STR(json_text(json_get(trace_event(t, "X", name, 3), "cat")), category);
        CHECK_STR(json_text(json_get(trace_event(t, "X", name, 3), "args.s")), name);
        CHECK_STR(json_text(json_get(trace_event(t, "X", changed, 0), "cat")), category);
    }
    CHECK_UINT(trace_count(t, "X", NULL), 25);
}

/* A device of the host macros: waits before both stamps, only if told so and recorded. */
static int waits;
static int count_wait(void *user) { return ++*(int *)user; }

static void wait_around(void)
{
    npuprof_device device = { "npu", count_wait, &waits, false };
    WITH_BASE_PROFILER(&device, "closed", "c", PROF_NO_ARGS, (void)0);
    npuprof_start(1);
    WITH_BASE_PROFILER(&device, "not asked", "c", PROF_NO_ARGS, (void)0);
    CHECK_INT(waits, 0);
    device.wait_around = true;
    WITH_BASE_PROFILER(&device, "asked", "c", PROF_NO_ARGS, CHECK_INT(waits, 1));
    CHECK_INT(waits, 2);
    WITH_BASE_PROFILER_LEVEL(2, &device, "above the level", "c", PROF_NO_ARGS, (void)0);
    npuprof_stop();
    WITH_BASE_PROFILER(&device, "stopped", "c", PROF_NO_ARGS, (void)0);
    CHECK_INT(waits, 2);
    device.wait = NULL;
    npuprof_start(1);
    WITH_BASE_PROFILER(&device, "no function", "c", PROF_NO_ARGS, (void)0);
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", NULL), 3);
}

/* A block keeps break, continue and return of the code around it. */
static int leave_by_return(void)
{
    WITH_BASE_PROFILER(NULL, "returned", "c", PROF_NO_ARGS, return 5);
    return 6;
}

static void control_flow(void)
{
    int rounds = 0;
    npuprof_start(1);
    for (int i = 0; i < 10; i++) {
        rounds++;
        WITH_BASE_PROFILER(NULL, "loop", "c", PROF_NO_ARGS, if (i == 1) continue; if (i == 3) break;);
    }
    CHECK_INT(rounds, 4);
    CHECK_INT(leave_by_return(), 5);
    if (rounds == 4)
        WITH_BASE_PROFILER(NULL, "in an if", "c", PROF_NO_ARGS, (void)0);
    else
        CHECK(false);
    json_node *t = written();
    CHECK_COUNTS(t, "X", { "loop", 4 }, { "returned", 1 }, { "in an if", 1 });
    for (size_t i = 0; i < 6; i++) CHECK(json_get(trace_event(t, "X", NULL, i), "args.unfinished") == NULL);
}

/* A span that is open at the write is in the trace, marked, and ends with its last child or later. */
static void unfinished(void)
{
    npuprof_start(1);
    PROF_SCOPE("open");
    { PROF_SCOPE("closed"); }
    json_node *t = written(), *open = trace_event(t, "X", "open", 0),
        *closed = trace_event(t, "X", "closed", 0);
    CHECK_STOP(open && closed);
    CHECK(trace_inside(closed, open));
    CHECK(json_get(open, "args") != NULL);
    CHECK(json_get(closed, "args") == NULL);
}

/* PROF_END closes the last PROF_BEGIN, recorded or not; an END too many does nothing. */
static void by_hand(void)
{
    PROF_END();
    npuprof_start(1);
    PROF_END();
    PROF_BEGIN("c", "a");
    npuprof_stop();
    PROF_BEGIN("c", "not recorded");
    npuprof_start(1);
    PROF_BEGIN("c", "b");
    PROF_END();     /* b */
    PROF_END();     /* not recorded */
    PROF_BEGIN(NULL, "c");
    PROF_END();     /* c */
    PROF_END();     /* a */
    PROF_END();     /* none */
    { PROF_SCOPE("around"); PROF_BEGIN("c", "d"); PROF_END(); }
    json_node *t = written();
    json_node *a = trace_event(t, "X", "a", 0), *b = trace_event(t, "X", "b", 0),
        *c = trace_event(t, "X", "c", 0);
    CHECK_UINT(trace_count(t, "X", NULL), 5);
    CHECK_STOP(a && b && c);
    CHECK(trace_inside(b, a) && trace_inside(c, a));
    CHECK(json_get(c, "cat") == NULL);
    CHECK(trace_inside(trace_event(t, "X", "d", 0), trace_event(t, "X", "around", 0)));
    for (size_t i = 0; i < 5; i++) CHECK(json_get(trace_event(t, "X", NULL, i), "args") == NULL);
}

/* Hand-made spans deeper than any limit, and toggled on the way, still pair up. */
static void by_hand_deep(void)
{
    npuprof_start(1);
    for (int i = 0; i < 300; i++) {
        if (i == 100) npuprof_stop();
        if (i == 150) npuprof_start(1);
        PROF_BEGIN("c", i % 2 ? "odd" : "even");
    }
    for (int i = 0; i < 300; i++) PROF_END();
    PROF_BEGIN("c", "last");
    PROF_END();
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded + s.lost, 251);
    json_node *t = written(), *last = trace_event(t, "X", "last", 0);
    CHECK_STOP(last != NULL);
    for (size_t i = 0, n = trace_count(t, "X", NULL); i < n; i++) {
        json_node *e = trace_event(t, "X", NULL, i);
        CHECK(json_get(e, "args") == NULL);
        if (e != last) CHECK(trace_end(e) <= trace_start(last));
    }
}

/* Two scopes made by one macro stand on one line. */
#define TWO_SCOPES() PROF_SCOPE("first"); PROF_SCOPE("second")
static void two_on_a_line(void)
{
    npuprof_start(1);
    { TWO_SCOPES(); }
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", "first"), 1);
    CHECK(trace_inside(trace_event(t, "X", "second", 0), trace_event(t, "X", "first", 0)));
}

/* ---- Scopes that nothing ends: longjmp() over them, with no span around */

static jmp_buf away;
static volatile bool jumps = true;

static __attribute__((noinline)) int leave(int depth)
{
    PROF_SCOPE("left");
    if (depth > 0) return leave(depth - 1) + 1;
    if (jumps) longjmp(away, 1);
    return 0;
}

static __attribute__((noinline)) void leave_from_here(void)
{
    if (setjmp(away)) return;
    PROF_SCOPE("left here");
    longjmp(away, 1);
}

static __attribute__((noinline)) void leave_from_below(int depth)
{
    if (!setjmp(away)) (void)leave(depth);
}

static void left_behind(void)
{
    npuprof_start(1);
    for (int i = 0; i < 6000; i++) {
        if (i % 4) leave_from_below(i % 3);
        else leave_from_here();
        PROF_SCOPE("ok");
    }
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.lost, 0);
    CHECK_UINT(s.recorded, 6000 + 1500 + 1500 * (1 + 2 + 3));
}

/* Two scopes of one frame by turns. */
static __attribute__((noinline)) void leave_by_turns(int rounds)
{
    volatile int i = 0;
    (void)setjmp(away);
    while (i < rounds) {
        if (i++ % 2) {
            PROF_SCOPE("one");
            longjmp(away, 1);
        } else {
            PROF_SCOPE("other");
            longjmp(away, 1);
        }
    }
}

/* No span ever ends. */
static void nothing_else(void)
{
    npuprof_stats s;
    npuprof_start(1);
    for (int i = 0; i < 2000; i++) leave_from_below(0);
    for (int i = 0; i < 2000; i++) leave_from_below(i % 5);
    leave_by_turns(2000);
    for (int i = 0; i < 1000; i++) {
        const pid_t child = vfork();
        if (!child) {
            PROF_SCOPE("child");
            _exit(0);
        }
        CHECK_STOP(child > 0 && waitpid(child, NULL, 0) == child);
    }
    CHECK_INT(npuprof_get_stats(&s), NPUPROF_OK);
    CHECK_UINT(s.lost, 0);
    CHECK_UINT(s.recorded, 2000 + 6000 + 2000 + 1000);
}

/* Jumps over many scopes at once, with and without arguments; then work that ends as it should. */
static __attribute__((noinline)) int leave_args(int depth)
{
    PROF_SCOPE_ARGS("test", "left", PROF_ARGS(PROF_INT("depth", depth)));
    if (depth > 0) return (depth % 3 ? leave_args(depth - 1) : leave(depth - 1)) + 1;
    longjmp(away, 1);
}

static __attribute__((noinline)) void leave_args_from_below(int depth)
{
    if (!setjmp(away)) (void)leave_args(depth);
}

static void left_deep(int rounds, int most)
{
    npuprof_start(1);
    uint64_t executed = 0;
    for (volatile int i = 0; i < rounds; i++) {
        const int depth = i * 37 % most;
        if (i % 2) leave_from_below(depth);
        else leave_args_from_below(depth);
        executed += (uint64_t)depth + 1;
    }
    for (int i = 0; i < 10000; i++) {
        PROF_SCOPE("work");
        executed++;
    }
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.lost, 0);
    CHECK_UINT(s.recorded, executed);
}

static void many_at_once(void) { left_deep(1000, 60); }

/* Why fewer with sanitizers: 14 KiB of a thread's stack are known to be its own, which their frames fill. */
static int many_in_a_thread(void *user)
{
    (void)user;
    left_deep(1000, CHECK_SANITIZED ? 15 : 60);
    return 0;
}

/* Why C11's threads: files with the other ones run under the thread sanitizer, too, for which vfork() is
   fork(), and a stack begins with a megabyte of its own. */
static void many_elsewhere(void)
{
    thrd_t thread;
    CHECK_STOP(thrd_create(&thread, many_in_a_thread, NULL) == thrd_success);
    CHECK_STOP(thrd_join(thread, NULL) == thrd_success);
}

/* More at once than may be open: the rest is counted, and what comes later is recorded. */
static void more_than_fit(void)
{
    npuprof_stats s;
    npuprof_start(1);
    for (int i = 0; i < 20; i++) leave_from_below(400);
    CHECK_INT(npuprof_get_stats(&s), NPUPROF_OK);
    CHECK_UINT(s.recorded + s.lost, 20 * 401);
    CHECK_UINT(s.lost, s.lost_by_cause[NPUPROF_LOST_DEPTH]);
    const uint64_t lost = s.lost;
    for (int i = 0; i < 1000; i++) { PROF_SCOPE("work"); }
    CHECK_INT(npuprof_get_stats(&s), NPUPROF_OK);
    CHECK_UINT(s.lost, lost);
}

/* A scope around many that are left behind stays open, and ends where it ends. */
static __attribute__((noinline)) void around(int rounds)
{
    PROF_SCOPE("around");
    for (int i = 0; i < rounds; i++) leave_from_below(0);
    PROF_SCOPE("inside");
}

static void left_inside(void)
{
    npuprof_start(1);
    around(3000);
    json_node *t = written();
    CHECK(trace_event(t, "X", "around", 0) && trace_event(t, "X", "inside", 0));
    CHECK(!json_get(trace_event(t, "X", "around", 0), "args.unfinished"));
    CHECK(!json_get(trace_event(t, "X", "inside", 0), "args.unfinished"));
}

/* Spans of other stacks are not over, nor are those of a deep recursion. */
enum { ROUTINES = 120, STACK = 32 << 10 };
static ucontext_t outside, inside[ROUTINES];
static char stacks[ROUTINES][STACK] __attribute__((aligned(16)));

static void routine(int n)
{
    PROF_SCOPE("routine");
    swapcontext(&inside[n], &outside);
}

static __attribute__((noinline)) int recurse(int depth)
{
    PROF_SCOPE("deep");
    return depth ? recurse(depth - 1) + 1 : 0;
}

static void several_stacks(void)
{
    npuprof_start(1);
    for (int n = 0; n < ROUTINES; n++) {
        getcontext(&inside[n]);
        inside[n].uc_stack.ss_sp = stacks[n];
        inside[n].uc_stack.ss_size = STACK;
        inside[n].uc_link = &outside;
        makecontext(&inside[n], (void (*)(void))routine, 1, n);
        swapcontext(&outside, &inside[n]);
        PROF_SCOPE("between");
    }
    CHECK_INT(recurse(120), 120);
    for (int n = ROUTINES - 1; n >= 0; n--) swapcontext(&outside, &inside[n]);
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.lost, 0);
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", NULL), 2 * ROUTINES + 121);
    for (int n = 0; n < ROUTINES; n++)
        CHECK(json_get(trace_event(t, "X", "routine", (size_t)n), "args.unfinished") == NULL);
}

/* Nor are those of small stacks that lie side by side, for whoever begins a span on a stack above them. */
enum { SMALL = 28, SMALL_STACK = 16 << 10 };
static ucontext_t scheduler;
static char small_stacks[SMALL + 4][SMALL_STACK] __attribute__((aligned(16)));

static __attribute__((noinline)) int nest(int n, int depth)
{
    PROF_SCOPE("live");
    if (depth) return nest(n, depth - 1) + 1;
    swapcontext(&inside[n], &scheduler);
    return 0;
}

static void nests(int n) { CHECK_INT(nest(n, 7), 7); }

static void schedules(void)
{
    for (int n = 0; n < SMALL; n++) {
        for (int i = 0; i < (n == 6 ? 300 : 0); i++) { PROF_SCOPE("short"); }
        swapcontext(&scheduler, &inside[n]);
    }
    for (int i = 0; i < 10; i++) { PROF_SCOPE("scheduler"); }
    for (int n = SMALL - 1; n >= 0; n--) swapcontext(&scheduler, &inside[n]);
}

static void make_small(ucontext_t *u, ucontext_t *next, int stack, int count, void (*run)(void))
{
    getcontext(u);
    u->uc_stack.ss_sp = small_stacks[stack];
    u->uc_stack.ss_size = (size_t)count * SMALL_STACK;
    u->uc_link = next;
    makecontext(u, run, 1, stack);
}

static void side_by_side(void)
{
    npuprof_start(1);
    for (int n = 0; n < SMALL; n++) make_small(&inside[n], &scheduler, n, 1, (void (*)(void))nests);
    make_small(&scheduler, &outside, SMALL, 4, schedules);
    swapcontext(&outside, &scheduler);
    CHECK_UINT(stats_now().lost, 0);
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", "live"), 8 * SMALL);
    for (size_t n = 0; n < 8 * SMALL; n++)
        CHECK(!json_get(trace_event(t, "X", "live", n), "args.unfinished"));
}

CHECK_MAIN(CASE(left_behind), CASE(nothing_else), CASE(many_at_once), CASE(many_elsewhere),
           CASE(more_than_fit), CASE(left_inside), CASE(several_stacks), CASE(side_by_side), CASE(forms),
           CASE(phases), CASE(phases_stopped), CASE(arguments), CASE(arguments_above_int64),
           CASE(arguments_not_finite), CASE(arguments_evaluated_once), CASE(run_time_names),
           CASE(wait_around), CASE(control_flow), CASE(unfinished), CASE(by_hand), CASE(by_hand_deep),
           CASE(two_on_a_line))

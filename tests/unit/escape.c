/* test: cc=-O2 cc=-Wno-uninitialized - goto, return, break, continue and longjmp out of every form of scope,
   and goto past it
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include <setjmp.h>
#include "npuprof.h"
#include "recorded.h"

static jmp_buf back;

/* Fills the stack below with a value that a token might have. */
static void __attribute__((noinline)) poison(uint32_t value)
{
    volatile uint32_t garbage[512];
    for (size_t i = 0; i < 512; i++) garbage[i] = value;
    (void)garbage[511];
}

enum { BY_RETURN, BY_BREAK, BY_CONTINUE, BY_GOTO, BY_LONGJMP, BY_END, WAYS };
#define FORM(name, open)                                                            \
    static int __attribute__((noinline)) out_of_##name(volatile int way)            \
    {                                                                               \
        for (int i = 0; i < 1; i++) {                                               \
            open;                                                                   \
            PROF_COUNTER("inside", 1);                                              \
            if (way == BY_RETURN) return 1;                                         \
            if (way == BY_BREAK) break;                                             \
            if (way == BY_CONTINUE) continue;                                       \
            if (way == BY_GOTO) goto out;                                           \
            if (way == BY_LONGJMP) longjmp(back, 1);                                \
        }                                                                           \
        return 2;                                                                   \
    out:                                                                            \
        return 3;                                                                   \
    }
#define FORMS(X)                                                                    \
    X(scope, PROF_SCOPE("scope"))                                                   \
    X(scope_cat, PROF_SCOPE_CAT("c", "scope"))                                      \
    X(scope_args, PROF_SCOPE_ARGS("c", "scope", PROF_ARGS(PROF_INT("way", way))))   \
    X(scope_level, PROF_SCOPE_LEVEL(1, "c", "scope", PROF_NO_ARGS))                 \
    X(function, PROF_FUNCTION())                                                    \
    X(record, PROF_RECORD("scope"))                                                 \
    X(warm_up, PROF_RECORD_WARM_UP("scope"))                                        \
    X(inference, PROF_INFERENCE("scope"))                                           \
    X(operator_, PROF_OPERATOR(1, "scope"))                                         \
    X(phases, PROF_PHASES("scope"); PROF_NEXT("scope"))
FORMS(FORM)

static int __attribute__((noinline)) out_of_block(volatile int way)
{
    for (int i = 0; i < 1; i++) {
        WITH_BASE_PROFILER(NULL, "scope", "c", PROF_NO_ARGS, {
            if (way == BY_RETURN) return 1;
            if (way == BY_BREAK) break;
            if (way == BY_CONTINUE) continue;
            if (way == BY_GOTO) goto out;
            if (way == BY_LONGJMP) longjmp(back, 1);
        });
    }
    return 2;
out:
    return 3;
}

#define ENTRY(name, open) out_of_##name,
static int (*const out_of[])(volatile int) = { FORMS(ENTRY) out_of_block };
enum { FORM_COUNT = sizeof out_of / sizeof out_of[0] };

/* Each way out ends the span, at that moment: the probe behind it lies beside, not inside. */
static void ways_out(void)
{
    npuprof_start(1);
    for (int form = 0; form < FORM_COUNT; form++)
        for (int way = 0; way < WAYS; way++) {
            if (way == BY_LONGJMP) continue;
            poison((uint32_t)(form + 1));
            CHECK_INT(out_of[form](way), way == BY_RETURN ? 1 : way == BY_GOTO ? 3 : 2);
            { PROF_SCOPE("probe"); }
        }
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", "probe"), FORM_COUNT * (WAYS - 1));
    CHECK_UINT(trace_count(t, "X", NULL), FORM_COUNT * (WAYS - 1) * 2 + WAYS - 1);   /* phases are two each */
    trace_check_nesting(t);
    int64_t end = 0;
    for (size_t i = 0; i < FORM_COUNT * (WAYS - 1); i++) {
        json_node *probe = trace_event(t, "X", "probe", i);
        CHECK_STOP(probe != NULL);
        CHECK(trace_start(probe) >= end);
        end = trace_end(probe);
    }
    /* none holds a probe, none is open */
    for (size_t i = 0, n = trace_count(t, "X", NULL); i < n; i++) {
        json_node *e = trace_event(t, "X", NULL, i);
        CHECK(json_get(e, "args.unfinished") == NULL);
        if (strcmp(json_text(json_get(e, "name")), "probe") != 0)
            for (size_t k = 0; k < FORM_COUNT * (WAYS - 1); k++) {
                json_node *probe = trace_event(t, "X", "probe", k);
                if (trace_start(probe) > trace_start(e)) CHECK(trace_start(probe) >= trace_end(e));
            }
    }
}

/* With the gate closed, and toggled inside, nothing changes for the code. */
static void ways_out_closed(void)
{
    for (volatile int form = 0; form < FORM_COUNT; form++)
        for (volatile int way = 0; way < WAYS; way++) {
            if (way == BY_LONGJMP) { if (!setjmp(back)) out_of[form](way); }
            else CHECK_INT(out_of[form](way), way == BY_RETURN ? 1 : way == BY_GOTO ? 3 : 2);
        }
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded + s.lost, 0);
}

/* longjmp runs no clean-up: the spans it left end with the next that closes around them, marked. */
static void by_longjmp(void)
{
    npuprof_start(1);
    for (volatile int form = 0; form < FORM_COUNT; form++) {
        PROF_SCOPE("around");
        if (!setjmp(back)) {
            PROF_BEGIN("c", "left by hand");
            out_of[form](BY_LONGJMP);
        }
        { PROF_SCOPE("probe"); }
    }
    const npuprof_stats s = stats_now();
    /* around, by hand, scope, probe, counter; phases one more, block no counter */
    CHECK_UINT(s.recorded + s.lost, FORM_COUNT * 5);
    { PROF_SCOPE("last"); }
    json_node *t = written();
    CHECK_COUNTS(t, "X", { "around", FORM_COUNT }, { "probe", FORM_COUNT });
    trace_check_nesting(t);
    for (size_t i = 0; i < FORM_COUNT; i++) {
        json_node *around = trace_event(t, "X", "around", i), *probe = trace_event(t, "X", "probe", i),
            *left = trace_event(t, "X", "left by hand", i);
        CHECK_STOP(around && probe && left);
        CHECK(trace_inside(probe, around) && trace_inside(left, around));
        CHECK(json_get(around, "args") == NULL && json_get(probe, "args") == NULL);
        CHECK(json_get(left, "args") != NULL);
    }
    CHECK(trace_start(trace_event(t, "X", "last",
                                  0)) >= trace_end(trace_event(t, "X", "around", FORM_COUNT - 1)));
}

/* With nothing around, over and over: every span is counted, and later threads of control are not hurt. */
static void by_longjmp_often(void)
{
    npuprof_start(1);
    for (volatile int i = 0; i < 5000; i++)
        if (!setjmp(back)) out_of[0](BY_LONGJMP);
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded + s.lost, 10000);
    trace_check_nesting(written());
}

/* gcc lets goto jump past a scope and runs its clean-up on garbage: the standard driver idiom. clang and C++
   refuse it. */
#if defined(__GNUC__) && !defined(__clang__)
#define PAST(name, open)                                                            \
    static int __attribute__((noinline)) past_##name(volatile int way)              \
    {                                                                               \
        if (way) goto out;                                                          \
        open;                                                                       \
        PROF_COUNTER("inside", 1);                                                  \
    out:                                                                            \
        return way;                                                                 \
    }
FORMS(PAST)
#define PAST_ENTRY(name, open) past_##name,
static int (*const past[])(volatile int) = { FORMS(PAST_ENTRY) };
enum { PAST_COUNT = sizeof past / sizeof past[0] };

static void goto_past(void)
{
    uint64_t spans = 0;
    for (int open = 0; open < 2; open++) {
        for (uint32_t garbage = 0; garbage < 20; garbage++)
            for (int form = 0; form < PAST_COUNT; form++) {
                static const uint32_t wild[] = { 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 0xDEADBEEF, 0x10000,
                                                 0xFFFF, 4096, 0x10001 };
                PROF_SCOPE("around");
                poison(garbage < 8 ? wild[garbage] : garbage - 8);
                CHECK_INT(past[form](1), 1);
                { PROF_SCOPE("probe"); CHECK_INT(past[form](0), 0); }
                spans += open ? form == PAST_COUNT - 1 ? 5 : 4 : 0;
            }
        npuprof_start(1);
    }
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded + s.lost, spans);
    json_node *t = written();
    CHECK_COUNTS(t, "X", { "around", 20 * PAST_COUNT }, { "probe", 20 * PAST_COUNT });
    trace_check_nesting(t);
}

/* Garbage of every small value, among them those that a token could have: nothing is lost or counted twice,
   the trace stays valid, and at most the span around ends early. */
static void goto_past_any_garbage(void)
{
    enum { VALUES = 20000 };
    npuprof_start(1);
    for (uint32_t value = 0; value < VALUES; value++) {
        PROF_SCOPE("around");
        PROF_BEGIN("c", "by hand");
        poison(value);
        past[value % PAST_COUNT](1);
        PROF_END();
    }
    { PROF_SCOPE("last"); }
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded + s.lost, 2 * VALUES + 1);
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", "around"), VALUES);
    CHECK(json_get(trace_event(t, "X", "last", 0), "args") == NULL);
    trace_check_nesting(t);
}

#else /* !(__GNUC__ && !__clang__) */
static void goto_past(void) { CHECK_SKIP("this compiler refuses a goto past a scope"); }
static void goto_past_any_garbage(void) { CHECK_SKIP("this compiler refuses a goto past a scope"); }
#endif /* !(__GNUC__ && !__clang__) */

CHECK_MAIN(CASE(ways_out), CASE(ways_out_closed), CASE(by_longjmp), CASE(by_longjmp_often), CASE(goto_past),
           CASE(goto_past_any_garbage))

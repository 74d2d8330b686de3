/* test: lib=-lm - the recorder for microcontrollers, here on the host: its JSON, blocks in their for-form,
   levels, a full arena
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include <math.h>
static uint64_t ticks;
static int task;
#define NPUPROF_NOW() ticks
#define NPUPROF_NOW_HZ 3000000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_CONTEXT() task
#define NPUPROF_CONTEXTS 2
#define NPUPROF_ARENA_BYTES 4096
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "own_json.h"

static void numbers(void)
{
    npuprof_start(1);
    PROF_INSTANT("c", "reals", PROF_ARGS(PROF_REAL("half", 0.5), PROF_REAL("minus", -2.25),
                                         PROF_REAL("tiny", 1e-7), PROF_REAL("zero", 0.0),
                                         PROF_REAL("large", 4294967295.5), PROF_REAL("micro", 1.000001),
                                         PROF_REAL("huge", 1e300)));
    PROF_INSTANT("c", "numbers", PROF_ARGS(PROF_INT("least", INT64_MIN), PROF_INT("most", INT64_MAX),
                                           PROF_UINT("u", UINT64_MAX), PROF_BOOL("b", true)));
    PROF_COUNTER("real", -0.75);
    PROF_COUNTER("int", -7);
    PROF_COUNTER("unsigned", UINT64_C(10000000000000000000));
    (void)written();
    static const char *const wanted[] =
        { "{\"half\":0.5,\"minus\":-2.25,\"tiny\":0.0000001,\"zero\":0,\"large\":4294967295.5,"
          "\"micro\":1.000001,\"huge\":1e+300}",
          "{\"least\":-9223372036854775808,\"most\":9223372036854775807,"
          "\"u\":\"18446744073709551615\",\"b\":true}",
          "{\"value\":-0.75}", "{\"value\":-7}", "{\"value\":1e+19}" };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strstr(text, wanted[i])) CHECK_STR(text, wanted[i]);
}

/* Results: of the innermost open span of the context, whatever began it; without one, nothing. */
static void results(void)
{
    npuprof_start(1);
    {
        PROF_SCOPE("outer");
        ticks++;
        {
            PROF_SCOPE_ARGS("c", "inner", PROF_ARGS(PROF_INT("n", -1)));
            ticks++;
            PROF_RESULT(PROF_INT("s", 5));
        }
        task = 1;
        PROF_RESULT(PROF_INT("nobody's", 1));
        PROF_BEGIN("c", "other task");
        PROF_RESULT(PROF_STR("text", "longer than eight bytes"), PROF_BOOL("ok", true));
        task = 0;
        { PROF_SCOPE("plain"); }
        PROF_RESULT(PROF_UINT("u", 7));
        PROF_RESULT(PROF_INT("last", -7));
    }
    static const char *const wanted[] = {
        "{\"args\":{\"u\":7,\"last\":-7},\"ph\":\"X\"", "{\"args\":{\"n\":-1,\"s\":5},\"ph\":\"X\"",
        "{\"args\":{\"unfinished\":true,\"text\":\"longer than eight bytes\",\"ok\":true},\"ph\":\"X\"" };
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", NULL), 4);
    CHECK(strstr(text, "nobody") == NULL);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strstr(text, wanted[i])) CHECK_STR(text, wanted[i]);
}

/* A rate above 2^31, stamps beyond 2^32 and their ends in ns. */
static void times(void)
{
    ticks = UINT64_C(3000000000) * 1000;
    npuprof_start(1);
    ticks += 1;                              /* a third of a ns */
    PROF_BEGIN(NULL, "a");
    ticks += UINT64_C(3000000000) * 5000 + 2;
    PROF_END();
    PROF_BEGIN("cat \"q\" \\ \n", "open");
    json_node *t = written(), *a = trace_event(t, "X", "a", 0), *open = trace_event(t, "X", "open", 0);
    CHECK_INT(trace_start(a), 0);
    CHECK_INT(trace_dur(a), INT64_C(5000) * 1000000000 + 1);
    CHECK_STR(json_text(json_get(open, "cat")), "cat \"q\" \\ \n");
    CHECK_INT(trace_dur(open), 1000);
    CHECK(json_get(open, "args.unfinished") != NULL);
}

static void full(void)
{
    npuprof_stats stats;
    npuprof_start(1);
    for (int i = 0; i < 1000; i++) {
        task = i & 1;
        PROF_SCOPE("s");
    }
    npuprof_get_stats(&stats);
    CHECK_INT(stats.recorded + stats.lost, 1000);
    CHECK_INT(stats.recorded, (4096 - 80) / 16);
    CHECK_INT(stats.threads, 2);
    json_node *t = written();
    CHECK_INT(json_int(json_get(t, "metadata.npuprof.recorded")), (int64_t)stats.recorded);
    npuprof_clear();
    (void)written();
    npuprof_get_stats(&stats);
    CHECK_INT(stats.recorded + stats.lost, 0);
}

/* What the target cannot write is left out and counted; nothing comes out as something else. */
static void left_out(void)
{
    npuprof_start(1);
    PROF_INSTANT("c", "reals", PROF_ARGS(PROF_REAL("big", 1e12), PROF_REAL("tiny", 5e-324),
                                         PROF_REAL("most", -1.7976931348623157e308),
                                         PROF_REAL("third", 1.0 / 3),
                                         PROF_REAL("inf", HUGE_VAL), PROF_REAL("nan", NAN),
                                         PROF_REAL("minus", -HUGE_VAL)));
    PROF_COUNTER("infinite", HUGE_VAL);
    PROF_INSTANT("c", "texts", PROF_ARGS(PROF_STR("bad", "a\xFF\xC3(\xED\xA0\x80\xE2\x82" "b\tc"),
                                         PROF_STR("good", "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"),
                                         PROF_STR("none", NULL)));
    npuprof_async_begin("c", "job", 7);
    ticks += 3000;
    npuprof_async_end(7);
    npuprof_async_end(8);
    npuprof_span("track", "c", "finished", 10, 20, PROF_NO_ARGS);
    PROF_MEMORY(NULL, 5, 9, "tag");
    json_node *t = written(), *reals = trace_event(t, "i", "reals", 0),
        *texts = trace_event(t, "i", "texts", 0);
    CHECK(json_real(json_get(reals, "args.big")) == 1e12);
    CHECK(fabs(json_real(json_get(reals, "args.most")) / -1.7976931348623157e308 - 1) < 1e-13);
    CHECK(fabs(json_real(json_get(reals, "args.third")) * 3 - 1) < 1e-14);
    CHECK(strstr(text, "\"tiny\":4.94065645841247e-324") || strstr(text, "\"tiny\":494065645841247e-338"));
    CHECK_STR(json_text(json_get(reals, "args.inf")), "Infinity");
    CHECK_STR(json_text(json_get(reals, "args.nan")), "NaN");
    CHECK_STR(json_text(json_get(reals, "args.minus")), "-Infinity");
    CHECK_STR(json_text(json_get(texts, "args.bad")),
              "a\xEF\xBF\xBD\xEF\xBF\xBD(\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
              "b\tc");
    CHECK_STR(json_text(json_get(texts, "args.good")), "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80");
    CHECK(strstr(text, "\"none\":null"));
    CHECK(trace_event(t, "b", "job", 0) && trace_event(t, "e", "job", 0) && !trace_event(t, "e", "", 0));
    CHECK(!strstr(text, "finished\"") && !strstr(text, "\"infinite\""));
    CHECK_INT(json_int(json_get(trace_event(t, "C", "host", 0), "args.allocated")), 9);
    CHECK_INT(json_int(json_get(t, "metadata.npuprof.recorded")), 8);
    CHECK_INT(json_int(json_get(t, "metadata.npuprof.left_out")), 3);
}

/* Tasks that share a context: their spans do not nest, so the later one is left out, and those inside the
   first one are not. */
static void overlap(void)
{
    npuprof_start(1);
    const npuprof_token_ first = npuprof_begin_named_(NPUPROF_KIND_SPAN, NULL, "first", PROF_NO_ARGS);
    ticks += 3000;
    { PROF_SCOPE("inside"); ticks += 3000; }
    const npuprof_token_ second = npuprof_begin_named_(NPUPROF_KIND_SPAN, NULL, "second", PROF_NO_ARGS);
    ticks += 3000;
    npuprof_close_(first);
    ticks += 3000;
    npuprof_close_(second);
    { PROF_SCOPE("after"); ticks += 3000; }
    json_node *t = written();
    CHECK(trace_event(t, "X", "first", 0) && trace_event(t, "X", "inside", 0)
          && trace_event(t, "X", "after", 0) && !trace_event(t, "X", "second", 0));
    CHECK_INT(json_int(json_get(t, "metadata.npuprof.left_out")), 1);
}

static void sink_fails(void)
{
    const npuprof_sink bad = { put, text }, none = { NULL, NULL };
    npuprof_start(1);
    CHECK_INT(npuprof_write_json(bad), NPUPROF_ERR_IO);
    CHECK_INT(npuprof_write_json(none), NPUPROF_ERR_ARGUMENT);
}

CHECK_MAIN(CASE(numbers), CASE(results), CASE(times), CASE(full), CASE(left_out), CASE(overlap),
           CASE(sink_fails))

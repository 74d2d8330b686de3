/* test: cc=-O2 - what the compiler picks a fast function for: the right values and times, across the ends of
   chunks and after long breaks
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include "fake_clock.h"
#define NPUPROF_ARENA_BYTES 262144
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "recorded.h"
#include "fast.h"

enum { ROUNDS = 100 };

static void arguments(void)
{
    json_node *const t = fast_recorded(ROUNDS, written);
    CHECK_UINT(trace_count(t, "X", "plain"), (ROUNDS + 2) / 3);
}

/* A chunk holds starts of 2^44 ticks: then a span with an argument takes the slow path from the middle of the
   fast one. */
static void after_a_break(void)
{
    npuprof_start(1);
    for (int i = 0; i < 6; i++) {
        fast_spans(i);
        if (i & 1) fake_ticks += UINT64_C(1) << 45;
    }
    npuprof_stop();
    json_node *const t = written();
    for (int i = 0; i < 6; i++) fast_check(t, "X", i, 5);
    CHECK_INT(trace_start(trace_event(t, "X", "int", 2)) - trace_end(trace_event(t, "X", "two", 1)),
              INT64_C(1) << 45);
}

/* One macro with names that change from call to call. */
static void with_name(const char *category, const char *name)
{
    WITH_BASE_PROFILER(NULL, name, category, PROF_NO_ARGS, fake_ticks += 5);
}

static void check_names(json_node *t, const char *name, size_t count, const char *category)
{
    CHECK_UINT(trace_count(t, "X", name), count);
    for (size_t i = 0; i < count; i++) {
        json_node *const e = trace_event(t, "X", name, i);
        CHECK_STR(json_text(json_get(e, "cat")), category);
        CHECK_INT(trace_dur(e), 5);
    }
}

static void names(void)
{
    npuprof_start(1);
    for (int i = 0; i < 40; i++) {
        with_name("d", i / 4 & 1 ? "one" : "two");
        with_name(i / 2 & 1 ? "e" : "f", i / 2 & 1 ? "three" : "four");
        with_name("i", i / 2 & 1 ? NULL : "perhaps");
    }
    for (int i = 0; i < 40; i++) with_name(i / 2 & 1 ? NULL : "j", "in one or none");
    json_node *const t = written();
    check_names(t, "one", 20, "d");
    check_names(t, "two", 20, "d");
    check_names(t, "three", 20, "e");
    check_names(t, "four", 20, "f");
    check_names(t, "perhaps", 20, "i");
    check_names(t, "", 20, "i");
    for (size_t i = 0; i < 40; i++) {
        json_node *const cat = json_get(trace_event(t, "X", "in one or none", i), "cat");
        CHECK((cat && strcmp(json_text(cat), "j") == 0) == !(i / 2 & 1));
    }
}

/* Names that lie where the table went on, behind its first part. */
static void names_far_behind(void)
{
    char name[120];
    npuprof_start(1);
    for (int i = 0; i < 180; i++) {
        snprintf(name, sizeof name, "%0100d", i % 60);
        with_name("g", name);
        for (int k = 0; k < 4 && i >= 60; k++) with_name("h", i & 1 ? "late one" : "late two");
    }
    json_node *const t = written();
    snprintf(name, sizeof name, "%0100d", 59);
    check_names(t, name, 3, "g");
    check_names(t, "late one", 240, "h");
    check_names(t, "late two", 240, "h");
}

/* Keys whose text in the JSON is as long as what the writer copies of each at once, one longer, and much
   longer. */
static void keys(void)
{
    npuprof_start(1);
    for (int i = 0; i < 9; i++) {
        PROF_SCOPE_ARGS("k", "keyed",
                        PROF_ARGS(PROF_INT("thirteen_char", i), PROF_INT("fourteen_chars", -i),
                                  PROF_INT("as_long_as_no_other_key_here", 7 * i)));
    }
    npuprof_stop();
    json_node *const t = written();
    for (size_t i = 0; i < 9; i++) {
        json_node *const args = json_get(trace_event(t, "X", "keyed", i), "args");
        CHECK_INT(json_int(json_get(args, "thirteen_char")), (int64_t)i);
        CHECK_INT(json_int(json_get(args, "fourteen_chars")), -(int64_t)i);
        CHECK_INT(json_int(json_get(args, "as_long_as_no_other_key_here")), 7 * (int64_t)i);
    }
}

CHECK_MAIN(CASE(keys), CASE(arguments), CASE(after_a_break), CASE(names), CASE(names_far_behind))

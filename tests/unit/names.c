/* test: - run-time names at one call site: a buffer used again, categories, muting, arguments of alternating
   keys, a closed gate, names that are too long
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include "npuprof.h"
#include "recorded.h"

static int how_many(json_node *t, const char *name)
{
    int n = 0;
    while (trace_event(t, "X", name, (size_t)n)) n++;
    return n;
}

static void named(const char *category, const char *name)
{
    WITH_BASE_PROFILER(NULL, name, category, PROF_NO_ARGS, (void)0);
}

static void in_c(const char *name) { WITH_BASE_PROFILER(NULL, name, "c", PROF_NO_ARGS, (void)0); }

static void buffer_used_again(void)
{
    char name[16];
    npuprof_start(1);
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof name, "name %d", i / 5 % 3);
        in_c(name);
    }
    named(NULL, "name 1");
    named("other", "name 1");
    named("", "name 1");
    named(NULL, "");
    json_node *t = written();
    CHECK_INT(how_many(t, "name 0"), 10);
    CHECK_INT(how_many(t, "name 1"), 13);
    CHECK_INT(how_many(t, "name 2"), 10);
    CHECK_INT(how_many(t, ""), 1);
}

static void categories_that_change(void)
{
    npuprof_start(1);
    for (int round = 0; round < 4; round++) {
        CHECK_INT(npuprof_set_categories(round % 2 ? "-c" : ""), NPUPROF_OK);
        for (int i = 0; i < 3; i++) in_c("muted at times");
        for (int i = 0; i < 3; i++) named("other", "never muted");
    }
    json_node *t = written();
    CHECK_INT(how_many(t, "muted at times"), 6);
    CHECK_INT(how_many(t, "never muted"), 12);
}

/* One call site whose argument list comes from outside: its keys and types are not always the same. */
static void with(npuprof_args args) { PROF_SCOPE_ARGS("c", "listed", args); }

static void keys_that_alternate(void)
{
    npuprof_start(1);
    for (int i = 0; i < 8; i++) {
        const npuprof_arg a[2] = { PROF_INT("first", i), PROF_UINT("second", 10 + i) },
            b[2] = { PROF_INT("third", -i), PROF_INT("first", 20 + i) };
        const npuprof_arg c[1] = { PROF_STR("first", "text") };
        const npuprof_args lists[4] = { { a, 2 }, { b, 2 }, { c, 1 }, { NULL, 0 } };
        with(lists[i % 4]);
    }
    json_node *t = written();
    for (int i = 0; i < 8; i++) {
        json_node *args = json_get(trace_event(t, "X", "listed", (size_t)i), "args");
        if (i % 4 == 0) CHECK_INT(json_int(json_get(args, "first")), i);
        if (i % 4 == 0) CHECK_INT(json_int(json_get(args, "second")), 10 + i);
        if (i % 4 == 1) CHECK_INT(json_int(json_get(args, "third")), -i);
        if (i % 4 == 1) CHECK_INT(json_int(json_get(args, "first")), 20 + i);
        if (i % 4 == 2) CHECK_STR(json_text(json_get(args, "first")), "text");
    }
}

static void phases(bool stop)
{
    PROF_PHASES("one");
    PROF_NEXT("two");
    if (stop) npuprof_stop();
    PROF_NEXT("three");
    PROF_NEXT("four");
    npuprof_start(1);
    PROF_NEXT("five");
}

static void phases_of_a_closed_gate(void)
{
    npuprof_start(1);
    phases(false);
    phases(true);
    json_node *t = written();
    CHECK_INT(how_many(t, "one") + how_many(t, "two") + how_many(t, "five"), 6);
    CHECK_INT(how_many(t, "three") + how_many(t, "four"), 2);
}

/* A name, a category and a value of metadata that are too long: cut, and seen to be. */
static void too_long(void)
{
    static char text[10001];
    memset(text, 'x', sizeof text - 1);
    npuprof_start(1);
    CHECK_INT(npuprof_metadata("long", text), NPUPROF_OK);
    for (int i = 0; i < 3; i++) named(text, text);
    text[8143] = 0;
    named(text, text);
    json_node *t = written();
    CHECK_INT(how_many(t, text), 1);
    strcpy(text + 8140, "\xE2\x80\xA6");
    CHECK_INT(how_many(t, text), 3);
    CHECK_STR(json_text(json_get(trace_event(t, "X", text, 2), "cat")), text);
    CHECK_STR(json_text(json_get(t, "metadata.npuprof.user.long")), text);
}

/* However often a program pauses and changes its metadata, a new call site finds space. */
static void notes_leave_space(void)
{
    char value[20];
    unsigned refused = 0;
    npuprof_start(1);
    for (int i = 0; i < 100000; i++) {
        refused += npuprof_pause() == NPUPROF_ERR_TABLE_FULL;
        npuprof_resume();
    }
    for (int i = 0; i < 100000; i++) {
        snprintf(value, sizeof value, "value %d", i);
        refused += npuprof_metadata("key", value) == NPUPROF_ERR_TABLE_FULL;
    }
    { PROF_SCOPE("a new one"); }
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded, 1);
    CHECK_UINT(s.lost_by_cause[NPUPROF_LOST_NAMES], 0);
    CHECK_UINT(s.lost_by_cause[NPUPROF_LOST_NOTES], refused);
    CHECK(refused > 0 && npuprof_is_recording());
}

CHECK_MAIN(CASE(notes_leave_space), CASE(too_long), CASE(buffer_used_again), CASE(categories_that_change),
           CASE(keys_that_alternate), CASE(phases_of_a_closed_gate))

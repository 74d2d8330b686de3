/* fast.h - the records that the compiler picks a fast function for: arguments that it knows. Include it after
   fake_clock.h and npuprof.h, in a test that is optimised.
   SPDX-License-Identifier: MIT */
#ifndef FAST_H
#define FAST_H

#define FAST_EACH_(X) \
    X("int", PROF_INT("v", -i)) X("uint", PROF_UINT("v", ((uint64_t)1 << 62) + (uint64_t)i)) \
    X("bool", PROF_BOOL("v", i & 1)) X("real", PROF_REAL("v", i + 0.5)) X("text", PROF_STR("v", "four"))

static void fast_spans(int i)
{
#define FAST_SPAN_(name, arg) { PROF_SCOPE_ARGS("c", name, PROF_ARGS(arg)); fake_ticks += 5; }
    FAST_EACH_(FAST_SPAN_)
    { PROF_SCOPE_ARGS("c", "none", PROF_NO_ARGS); fake_ticks += 5; }
    { PROF_SCOPE_ARGS("c", "two", PROF_ARGS(PROF_INT("v", i), PROF_INT("w", -i))); fake_ticks += 5; }
    /* Why: so that the end of a chunk meets each of them. */
    if (i % 3 == 0) { PROF_SCOPE("plain"); }
}

static void fast_instants(int i)
{
#define FAST_INSTANT_(name, arg) PROF_INSTANT("c", name, PROF_ARGS(arg));
    FAST_EACH_(FAST_INSTANT_)
    PROF_INSTANT("c", "none", PROF_NO_ARGS);
    PROF_INSTANT("c", "two", PROF_ARGS(PROF_INT("v", i), PROF_INT("w", -i)));
}

static const char *fast_wanted(const char *name, int i)
{
    static char text[40];
    if (strcmp(name, "int") == 0) snprintf(text, sizeof text, "%d", -i);
    else if (strcmp(name, "uint") == 0) snprintf(text, sizeof text, "%lld", (1LL << 62) + i);
    else if (strcmp(name, "real") == 0) snprintf(text, sizeof text, "%d.5", i);
    else snprintf(text, sizeof text, "%s", name[0] == 't' ? "four" : i & 1 ? "true" : "false");
    return text;
}

/* The ith record of each kind has its own arguments and, a span, its length. */
static void fast_check(json_node *t, const char *phase, int i, int64_t length)
{
    static const char *const names[] = { "int", "uint", "bool", "real", "text" };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        json_node *const e = trace_event(t, phase, names[n], (size_t)i), *const args = json_get(e, "args");
        CHECK_STOP(args && args->count == 1);
        CHECK_STR(json_text(json_get(args, "v")), fast_wanted(names[n], i));
        if (length) CHECK_INT(trace_dur(e), length);
    }
    json_node *const none = trace_event(t, phase, "none", (size_t)i);
    json_node *const two = trace_event(t, phase, "two", (size_t)i), *const args = json_get(two, "args");
    CHECK_STOP(none && !json_get(none, "args.v") && args && args->count == 2);
    CHECK_INT(json_int(json_get(args, "v")), i);
    CHECK_INT(json_int(json_get(args, "w")), -i);
    if (length) CHECK_INT(trace_dur(none), length);
    if (length) CHECK_INT(trace_dur(two), length);
}

/* Records and checks so many of each; the trace. */
static json_node *fast_recorded(int rounds, json_node *(*read)(void))
{
    npuprof_start(1);
    for (int i = 0; i < rounds; i++) {
        fast_spans(i);
        fast_instants(i);
    }
    npuprof_stop();
    json_node *const t = read();
    for (int i = 0; i < rounds; i++) {
        fast_check(t, "X", i, 5);
        fast_check(t, "i", i, 0);
    }
    return t;
}

#endif /* FAST_H */

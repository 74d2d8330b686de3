/* test: cc=-O1 - cases at the edges: many lanes, keys of the writer's own, room after a clear, a child of
   fork, levels below 1, a pause before init
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include <sys/wait.h>
#include <unistd.h>
#define NPUPROF_ARENA_BYTES (64 * 1024)
#define NPUPROF_SCRATCH_BYTES 1024
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "recorded.h"

/* More spans at once than the writer has lanes for: each still stands on a track where it overlaps
   nothing. */
static void many_lanes(void)
{
    npuprof_start(1);
    for (uint64_t i = 0; i < 200; i++) npuprof_async_begin("c", "request", i);
    for (uint64_t i = 0; i < 200; i++) npuprof_async_end(i);
    CHECK_INT(trace_count(written(), "X", "request"), 200);
}

/* An id that begins anew while its end is missing: the first goes to there and says so. */
static void async_id_again(void)
{
    npuprof_start(1);
    npuprof_async_begin("c", "job", 7);
    npuprof_async_begin("c", "job", 7);
    npuprof_async_end(7);
    json_node *t = written();
    CHECK_INT(trace_count(t, "X", "job"), 2);
    int unfinished = 0;
    for (size_t i = 0; i < 2; i++)
        unfinished += json_get(trace_event(t, "X", "job", i), "args.unfinished") != NULL;
    CHECK_INT(unfinished, 1);
}

static void keys_of_the_writer(void)
{
    const int64_t now = npuprof_now_ns();
    npuprof_start(1);
    PROF_BEGIN("c", "open");
    npuprof_span("track", "c", "done", now, now - 5, PROF_ARGS(PROF_INT("end_before_start", 3)));
    for (int i = 0; i < 2; i++) {        /* again: by texts that are cached */
        PROF_SCOPE_ARGS("c", "user's", PROF_ARGS(PROF_STR("stamp", "device"), PROF_BOOL("unfinished", true),
                                                 PROF_BOOL("warm_up", true), PROF_INT("pe_index", 1)));
    }
    json_node *t = written();
    CHECK_INT(trace_count(t, "X", NULL), 4);
    CHECK(json_get(trace_event(t, "X", "done", 0), "args.end_before_start") != NULL);
    for (size_t i = 0; i < 2; i++) {
        json_node *args = json_get(trace_event(t, "X", "user's", i), "args");
        CHECK_INT(args->count, 4);
        CHECK(!json_get(args, "stamp") && !json_get(args, "unfinished") && !json_get(args, "warm_up"));
        CHECK(json_get(args, "pe_index") != NULL);
    }
}

static void room_after_clear(void)
{
    for (int round = 0; round < 5; round++) {
        npuprof_start(1);
        for (int i = 0; i < 10000; i++) { PROF_SCOPE("filler"); }
        const npuprof_stats s = stats_now();
        CHECK_UINT(s.recorded + s.lost, 10000);
        CHECK(s.recorded > 1000);
        npuprof_clear();
    }
}

/* A span over many chunks is closed, and it is one. */
static void outer_span(void)
{
    npuprof_start(1);
    {
        PROF_SCOPE_ARGS("c", "outer", PROF_ARGS(PROF_INT("n", 1)));
        for (int i = 0; i < 2000; i++) { PROF_SCOPE("inner"); }
    }
    json_node *t = written();
    CHECK_INT(trace_count(t, "X", "outer"), 1);
    CHECK(json_get(trace_event(t, "X", "outer", 0), "args.unfinished") == NULL);
    CHECK(json_get(trace_event(t, "X", "outer", 0), "args.n") != NULL);
}

static void child_keeps_metadata(void)
{
    npuprof_metadata("model", "kept");
    npuprof_start(1);
    { PROF_SCOPE_ARGS("c", "before", PROF_ARGS(PROF_INT("a", 1), PROF_INT("b", 2))); }
    const char *path = check_path("child.json");
    const pid_t child = fork();
    if (child == 0) {
        { PROF_SCOPE_ARGS("c", "after", PROF_ARGS(PROF_INT("a", 1), PROF_INT("b", 2))); }
        _exit((int)npuprof_dump(path));
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK_INT(status, 0);
    json_node *t = trace_load(path);
    CHECK_COUNTS(t, "X", { "before", 0 }, { "after", 1 });
    CHECK(json_get(t, "metadata.npuprof.user.model") != NULL);
}

static void level_zero(void)
{
    { PROF_SCOPE_LEVEL(0, "c", "never", PROF_NO_ARGS); }
    { PROF_SCOPE_LEVEL(-3, "c", "never", PROF_NO_ARGS); }
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded, 0);
}

static void pause_before_init(void)
{
    static uint64_t memory[4096];
    const npuprof_desc desc = { .arena = memory, .arena_bytes = sizeof memory / 8 };
    char key[16];
    /* the pause then lies far into the table: beyond the small arena's end */
    for (int i = 0; i < 60; i++) {
        snprintf(key, sizeof key, "key %d", i);
        npuprof_metadata(key, "value");
    }
    npuprof_pause();
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    npuprof_start(1);
    for (size_t i = sizeof memory / 8 / 8; i < sizeof memory / 8; i++) CHECK_STOP(memory[i] == 0);
}

CHECK_MAIN(CASE(many_lanes), CASE(async_id_again), CASE(keys_of_the_writer), CASE(room_after_clear),
           CASE(outer_span), CASE(child_keeps_metadata), CASE(level_zero), CASE(pause_before_init))

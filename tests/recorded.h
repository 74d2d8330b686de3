/* recorded.h - what the C tests of the recorder share: what was written and printed, figures, threads.
   SPDX-License-Identifier: MIT

   Include it behind npuprof.h, which holds the implementation. */
#ifndef RECORDED_H
#define RECORDED_H

#include "trace.h"
#include <pthread.h>
#include <time.h>

/* The trace as it is now. */
CHECK_UNUSED_ static json_node *written_in_any_order(void)
{
    const char *path = check_path("t.json");
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    json_node *t = trace_load(path);
    unlink(path);
    return t;
}

/* The same; every slice nests in or lies beside the others of its track. */
CHECK_UNUSED_ static json_node *written(void)
{
    json_node *t = written_in_any_order();
    trace_check_nesting(t);
    return t;
}

/* Eleven spans, instants and counters. */
CHECK_UNUSED_ static void record_each_kind(int64_t i, const char *name)
{
    PROF_SCOPE("outer");
    {
        PROF_SCOPE_ARGS("c", "args", PROF_ARGS(PROF_INT("i", i), PROF_STR("s", name)));
        PROF_INSTANT("c", "i", PROF_NO_ARGS);
    }
    { PROF_OPERATOR(i, name); PROF_COUNTER("n", i); }
    { PROF_PHASES("p1"); PROF_NEXT("p2"); PROF_NEXT("p3"); }
    PROF_BEGIN("c", name);
    PROF_INSTANT("c", "i2", PROF_ARGS(PROF_REAL("x", 0.5)));
    PROF_END();
    WITH_BASE_PROFILER(NULL, "block", "c", PROF_NO_ARGS, (void)0);
}

/* The figures as they are now: what is lost is the sum of its causes. */
CHECK_UNUSED_ static npuprof_stats stats_now(void)
{
    npuprof_stats s;
    uint64_t sum = 0;
    CHECK_INT(npuprof_get_stats(&s), NPUPROF_OK);
    for (int i = 0; i < NPUPROF_LOST_COUNT; i++)
        sum += i == NPUPROF_LOST_ARGUMENTS || i == NPUPROF_LOST_NOTES || i == NPUPROF_LOST_ENDS
            ? 0 : s.lost_by_cause[i];
    CHECK_UINT(sum, s.lost);
    CHECK(s.bytes_used <= s.bytes_total);
    return s;
}

/* What a report function prints; to be freed. */
CHECK_UNUSED_ static char *printed(npuprof_result (*print)(FILE *))
{
    FILE *file = tmpfile();
    CHECK_STOP(file != NULL);
    CHECK_INT(print(file), NPUPROF_OK);
    char *text = check_read_stream(file);
    fclose(file);
    return text;
}

/* What a sink gets goes nowhere. */
CHECK_UNUSED_ static int to_nowhere(void *user, const void *bytes, size_t count)
{
    (void)user, (void)bytes, (void)count;
    return 0;
}

/* Recording begins in this memory, by a policy. */
CHECK_UNUSED_ static void begin_in(void *memory, size_t bytes, int when_full)
{
    npuprof_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.arena = memory;
    desc.arena_bytes = bytes;
    desc.when_full = when_full;
    if (when_full == NPUPROF_STREAM) desc.sink.write = to_nowhere;
    CHECK_STOP(memory != NULL);
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    npuprof_start(1);
}

CHECK_UNUSED_ static pthread_t started(void *(*work)(void *), void *user)
{
    pthread_t thread;
    CHECK_STOP(!pthread_create(&thread, NULL, work, user));
    return thread;
}

CHECK_UNUSED_ static void on_a_thread(void *(*work)(void *), void *user)
{
    pthread_join(started(work, user), NULL);
}

/* Runs count threads at once, up to 300; the one with the number n works on users + n * step. */
CHECK_UNUSED_ static void on_threads(unsigned count, void *(*work)(void *), void *users, size_t step)
{
    pthread_t threads[300];
    CHECK_STOP(count <= 300);
    for (unsigned n = 0; n < count; n++)
        threads[n] = started(work, users ? (char *)users + n * step : NULL);
    for (unsigned n = 0; n < count; n++) pthread_join(threads[n], NULL);
}

/* Of CPU, of this process. */
CHECK_UNUSED_ static double seconds_used(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#endif /* RECORDED_H */

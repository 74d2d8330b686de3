/* Records with NPUPROF_RECORD_ONLY or without it, on a clock of its own, and dumps the image to argv[1]. With
   it, each function that is left out must say so.
   SPDX-License-Identifier: MIT */
#include <stdint.h>
static uint64_t now = 1000;
#define NPUPROF_NOW() (now += 10)
#define NPUPROF_NOW_HZ 1000000000
#define NPUPROF_ARENA_BYTES (256 * 1024)
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *record(void *unused)
{
    PROF_THREAD_NAME("worker");
    { PROF_SCOPE_ARGS("c", "in a thread", PROF_ARGS(PROF_STR("key", "text"), PROF_INT("n", -5))); }
    return unused;
}

#ifdef NPUPROF_RECORD_ONLY
static int put(void *user, const void *bytes, size_t count) { return user == bytes && count; }

static int is_refused(npuprof_result r, const char *word)
{
    return r == NPUPROF_ERR_UNSUPPORTED && strstr(npuprof_result_string(r), word) != NULL;
}

static int refused(void)
{
    const npuprof_sink sink = { put, NULL };
    npuprof_desc desc;
    npuprof_bench_desc bench;
    npuprof_bench_result result;
    npuprof_memory_peaks peaks;
    memset(&bench, 0, sizeof bench);
    memset(&desc, 0, sizeof desc);
    desc.output_path = "t.json";
    int all = is_refused(npuprof_init(&desc), "output_path");
    desc.output_path = NULL;
    desc.when_full = NPUPROF_STREAM;
    all &= is_refused(npuprof_init(&desc), "when_full");
    all &= is_refused(npuprof_dump("t.json"), ".npuprof") & is_refused(npuprof_write_json(sink), "JSON");
    all &= is_refused(npuprof_flush(), "stream") & is_refused(npuprof_poll(), "capture");
    all &= is_refused(npuprof_print_summary(stdout), "report");
    all &= is_refused(npuprof_print_memory(stdout), "report");
    all &= is_refused(npuprof_bench(&bench, &result), "report");
    return all & is_refused(npuprof_get_memory(NULL, &peaks), "report") & (npuprof_bench_size() == 0);
}
#else /* !NPUPROF_RECORD_ONLY */

static int refused(void) { return 1; }
#endif /* !NPUPROF_RECORD_ONLY */

/* A child begins with an empty trace. */
static int child_is_empty(void)
{
    int status = 1;
    const pid_t child = fork();
    if (child == 0) {
        npuprof_stats stats;
        { PROF_SCOPE("child"); }
        _exit(npuprof_get_stats(&stats) != NPUPROF_OK || stats.recorded != 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(int count, char **arguments)
{
    pthread_t thread;
    npuprof_stats stats;
    if (count != 2 || !refused() || npuprof_start(1) != NPUPROF_OK) return 2;
    for (int i = 0; i < 100; i++) {
        PROF_SCOPE("outer");
        { PROF_SCOPE("inner"); }
        { PROF_SCOPE_ARGS("c", "step", PROF_ARGS(PROF_INT("i", i))); }
        PROF_COUNTER("counter", i * i);
    }
    PROF_INSTANT("c", "now", PROF_NO_ARGS);
    if (pthread_create(&thread, NULL, record, NULL) || pthread_join(thread, NULL)) return 3;
    { PROF_BLOCK("c", "last") { now += 5; } }
    npuprof_stop();
    if (npuprof_get_stats(&stats) != NPUPROF_OK || stats.recorded != 403 || stats.lost) return 4;
    const npuprof_result r = npuprof_dump(arguments[1]);
    npuprof_start(1);
    return r != NPUPROF_OK ? 5 : child_is_empty() ? 0 : 6;
}

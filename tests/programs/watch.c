/* A program for triggers on a name; test_trigger.py says when. It prints the number of files.
     FORM                30 spans "other" and "decode" in turn, by that form; decode number 20 takes a second.
                         After number 10 it sleeps as long. "neither": of that name are only counters
                         and asynchronous spans
     threads T N         T threads with N spans "decode" each, beside others
     for-ever            one thread with spans "decode", until it is killed
     fork                a child with spans "decode"
     late                npuprof_init() with the trigger, then spans "decode"
   SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "npuprof.h"

enum { SLOW_US = 1000000 };                /* longer than a machine under load makes any other one */

static void work(int us) { if (us) usleep((unsigned)us); }

static void decode(const char *form, int i, int us)
{
    const char *volatile text = "decode";
    if (strcmp(form, "scope") == 0) { PROF_SCOPE("decode"); work(us); }
    if (strcmp(form, "category") == 0) { PROF_SCOPE_CAT("codec", "any"); work(us); }
    if (strcmp(form, "args") == 0) {
        PROF_SCOPE_ARGS("codec", "decode", PROF_ARGS(PROF_INT("n", i)));
        work(us);
    }
    if (strcmp(form, "record") == 0) { PROF_RECORD("decode"); work(us); }
    if (strcmp(form, "instant") == 0 && us) PROF_INSTANT("codec", "decode");
    if (strcmp(form, "neither") == 0) {
        PROF_COUNTER("decode", i);
        PROF_COUNTER("decode", 0.5);
        npuprof_async_begin("codec", "decode", (uint64_t)i);
        npuprof_async_end((uint64_t)i);
    }
    if (strcmp(form, "block") == 0) WITH_BASE_PROFILER(NULL, "decode", "codec", PROF_NO_ARGS, work(us););
    if (strcmp(form, "text") == 0) WITH_BASE_PROFILER(NULL, text, "codec", PROF_NO_ARGS, work(us););
}

static void run(const char *form, int count)
{
    for (int i = 0; i < count; i++) {
        PROF_SCOPE_ARGS("c", "other", PROF_ARGS(PROF_INT("i", i)));
        decode(form, i, i == 20 ? SLOW_US : 0);
        if (i == 10) work(SLOW_US);
    }
}

static int each;

static void *many(void *user)
{
    (void)user;
    run("scope", each < 20 ? each : 20);
    for (int i = 20; i < each; i++) {
        PROF_SCOPE("decode");
    }
    return NULL;
}

static void threads(int count)
{
    pthread_t ids[32];
    for (int i = 0; i < count; i++) pthread_create(&ids[i], NULL, many, NULL);
    for (int i = 0; i < count; i++) pthread_join(ids[i], NULL);
}

static void late(void)
{
    npuprof_capture capture;
    npuprof_desc desc;
    memset(&capture, 0, sizeof capture);
    memset(&desc, 0, sizeof desc);
    capture.trigger = "span:decode>800ms";
    desc.capture = &capture;
    if (npuprof_init(&desc) == NPUPROF_OK) run("scope", 25);
}

int main(int argc, char **argv)
{
    const char *const what = argc > 1 ? argv[1] : "scope";
    if (strcmp(what, "threads") == 0) {
        each = atoi(argv[3]);
        threads(atoi(argv[2]));
    } else if (strcmp(what, "for-ever") == 0) {
        for (;;) { PROF_SCOPE("decode"); }
    } else if (strcmp(what, "fork") == 0) {
        const pid_t child = fork();
        if (child == 0) run("scope", 25);
        if (child) waitpid(child, NULL, 0);
    } else if (strcmp(what, "late") == 0) {
        late();
    } else {
        run(what, 30);
    }
    npuprof_stats s;
    npuprof_get_stats(&s);
    printf("recorded=%llu captures=%llu failed=%llu slow=%llu\n", (unsigned long long)s.recorded,
           (unsigned long long)s.captures, (unsigned long long)s.captures_failed,
           (unsigned long long)s.slow);
    return 0;
}

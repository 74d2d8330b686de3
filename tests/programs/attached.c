/* Threads with numbered marks, which record nothing by themselves: npuprof.py attach does.
   usage: attached THREADS [WORD...]
     wait         no mark comes before a line of standard input
     own          npuprof_start()
     undumpable   prctl(PR_SET_DUMPABLE, 0)
     stream       npuprof_init() with a sink of its own
     slow         a millisecond between two marks, else some microseconds
     busy         nothing between them
     a path       of a library, whose work(n) is called as the marks are
   It says "ready" and goes on until it is killed.
   SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include "npuprof.h"

static void (*plugin)(int n);
static long pause_ns = 3000;

static void *work(void *user)
{
    const unsigned thread = (unsigned)(uintptr_t)user;
    for (unsigned n = 0;; n++) {
        const struct timespec pause = { 0, pause_ns };
        PROF_SCOPE("around");
        PROF_INSTANT("c", "mark", PROF_ARGS(PROF_UINT("t", thread), PROF_UINT("n", n)));
        if (plugin) plugin((int)n);
        if (pause_ns) nanosleep(&pause, NULL);
    }
    return NULL;
}

static int sink(void *user, const void *bytes, size_t count)
{
    return (void)user, (void)bytes, (void)count, 0;
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    bool waits = false;
    for (int i = 2; i < argc; i++) {
        waits |= !strcmp(argv[i], "wait");
        if (!strcmp(argv[i], "own")) npuprof_start(1);
        if (!strcmp(argv[i], "slow")) pause_ns = 1000000;
        if (!strcmp(argv[i], "busy")) pause_ns = 0;
        if (!strcmp(argv[i], "undumpable") && prctl(PR_SET_DUMPABLE, 0)) return 1;
        if (!strcmp(argv[i], "stream")) {
            npuprof_desc desc;
            memset(&desc, 0, sizeof desc);
            desc.when_full = NPUPROF_STREAM;
            desc.sink.write = sink;
            if (npuprof_init(&desc)) return 1;
        }
#ifndef WITHOUT_PLUGINS
        if (strchr(argv[i], '/')) {
            void *const library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
            if (library) *(void **)&plugin = dlsym(library, "work");
            if (!plugin) return fprintf(stderr, "%s\n", dlerror()), 1;
        }
#endif
    }
    puts("ready");
    fflush(stdout);
    if (waits) (void)getchar();
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(uintptr_t)i)) return 1;
    }
    for (;;) pause();
}

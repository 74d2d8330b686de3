/* a program without a mark, compiled with -finstrument-functions. Each function counts its own calls while
   recording is on; at the end the counts are printed with the functions' addresses. argv[1] chooses what it
   does.
   SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_AUTO
#define NPUPROF_AUTO_FUNCTIONS 16
#include "npuprof.h"

enum { LEAF, MIDDLE, RECURSIVE, HANDLER, WORKER, JUMPS, CATCHES, GATED, FUNCTIONS };
static unsigned long calls[FUNCTIONS];
static volatile int shift;         /* 0: keeps the compiler from computing what functions return */

PROF_NO_AUTO static int count(int function)
{
    if (npuprof_is_recording()) __atomic_fetch_add(&calls[function], 1, __ATOMIC_RELAXED);
    return shift;
}

static int leaf(int n) { return n + count(LEAF); }

static int middle(int n) { return leaf(n) + leaf(n + 1) + count(MIDDLE); }

static int recursive(int n) { return (n > 1 ? recursive(n - 1) : middle(n)) + count(RECURSIVE); }

static void handler(int number) { count(HANDLER); (void)leaf(number); }

static void *worker(void *user)
{
    for (int i = 0; i < 500; i++) (void)middle(i);
    count(WORKER);
    return user;
}

static jmp_buf back;

static int jumps(int n)
{
    count(JUMPS);
    if (n == shift) longjmp(back, 1);
    return n ? jumps(n - 1) + shift : n;
}

static int catches(int depth)
{
    count(CATCHES);
    if (setjmp(back) == 0) return jumps(depth);
    return leaf(depth);
}

/* Stops at 7 and starts again at 3, so that calls lie around, across and inside of what is recorded. */
static int gated(int n)
{
    if (n == 7) npuprof_stop();
    if (n == 3) npuprof_start(1);
    const int got = n > 1 ? gated(n - 1) : leaf(n);
    return got + shift;
}

static void with_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

static void with_signals(void)
{
    const struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 20000 || (calls[HANDLER] < 20 && i < 10000000); i++) (void)middle(i);
    setitimer(ITIMER_REAL, &never, NULL);
}

static void with_library(const char *path)
{
    void *const library = dlopen(path, RTLD_NOW);
    int (*plugged)(int) = NULL;
    if (library) *(void **)&plugged = dlsym(library, "plugged");
    if (!plugged) abort();
    for (int i = 0; i < 5; i++) (void)plugged(i);
    printf("plugged %p 5\n", (void *)(intptr_t)plugged);
}

static void act(const char *what, const char *path)
{
    if (strcmp(what, "calls") == 0) {
        for (int i = 0; i < 100; i++) (void)recursive(5);
        with_threads();
        with_signals();
    }
    if (strcmp(what, "deep") == 0) (void)recursive(1000);
    if (strcmp(what, "deep") == 0) (void)middle(1);
    if (strcmp(what, "jumps") == 0) for (int i = 0; i < 10; i++) (void)catches(20);
    if (strcmp(what, "deep_jumps") == 0) for (int i = 0; i < 10; i++) (void)catches(1000);
    if (strcmp(what, "gated") == 0) (void)gated(9);
    if (strcmp(what, "library") == 0) with_library(path);
}

static void *address_of(int function)
{
    void *const all[] = { (void *)(intptr_t)leaf, (void *)(intptr_t)middle, (void *)(intptr_t)recursive,
                          (void *)(intptr_t)handler, (void *)(intptr_t)worker, (void *)(intptr_t)jumps,
                          (void *)(intptr_t)catches, (void *)(intptr_t)gated };
    return all[function];
}

PROF_NO_AUTO int main(int argc, char **argv)
{
    static const char *const names[] = { "leaf", "middle", "recursive", "handler", "worker", "jumps",
                                         "catches", "gated" };
    const char *const what = argc > 1 ? argv[1] : "";
    (void)middle(1);
    npuprof_start(1);
    act(what, argc > 2 ? argv[2] : "");
    if (strcmp(what, "calls") == 0) {
        npuprof_stop();
        (void)middle(2);
        npuprof_start(1);
        (void)middle(3);
    }
    npuprof_stop();
    for (int i = 0; i < FUNCTIONS; i++) printf("%s %p %lu\n", names[i], address_of(i), calls[i]);
    fflush(stdout);
    if (getenv("KILLED")) kill(getpid(), SIGKILL);
    return npuprof_dump("t.json") != NPUPROF_OK || npuprof_dump("t.csv") != NPUPROF_OK;
}

/* fibers.h - runs npuprof.h under chosen interleavings. Include before npuprof.h, once, in a test of its own.
   SPDX-License-Identifier: MIT

   Threads are fibers of one OS thread. Each atomic access of the header is a point where another fiber may go
   on; so is the moment between what is to be stored and the store. The header is used as it is: its accesses
   are the compiler's __atomic built-ins, its clocks, naps and signal masks are calls, its thread-locals bear
   a keyword, and macros replace all of these here. What is between two accesses runs as one step, in the
   order of the program: weak memory is not shown.

   A schedule is random (from a seed: how often a fiber is stopped, and for which other one) or given (a list
   of moments and fibers; without any, a fiber goes on until it ends or naps; the fiber itself: it gets a
   signal). Both can be repeated. */
#ifndef FIBERS_H
#define FIBERS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#undef _FORTIFY_SOURCE         /* its longjmp() refuses to change stacks */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <sys/auxv.h>

enum { FIBERS = 5, FIBER_STACK = 256 * 1024, FIBER_LOCALS = 512, PREEMPTIONS = 4, STEPS = 1 << 18 };

typedef struct fiber {
    sigjmp_buf at;
    ucontext_t begin;
    char *stack;
    void (*run)(int me);
    bool done, fresh, left;            /* left: it stands in the middle of something, and never goes on */
    unsigned handlers;                 /* of signals, that run on it just now */
    uint64_t naps, ticks;
    bool holds;                        /* signals wait */
    unsigned char locals[FIBER_LOCALS];
} fiber;

typedef struct preemption { uint32_t step; uint8_t to; } preemption;

static struct schedule {
    fiber fiber[FIBERS + 1];           /* the last one: who starts the others, and checks */
    int count, me;
    bool running, random, handlers;
    uint64_t rng, ticks, naps, steps;
    uint32_t switch_rate, handler_rate;   /* of 65536 */
    const char *wrong;                 /* the first thing that was */
    char text[300];
    preemption list[PREEMPTIONS];
    uint32_t listed, taken;
    uint8_t who[STEPS], alive[STEPS];  /* at each step: which fiber, and which were not done */
} the;

/* A fiber that naps for this long, all others too, waits for ever. The library's own give-ups come later. */
enum { NAP_NS = 70000, MOST_NAPS = 30000, MOST_STEPS = 4000000 };
static uint64_t most_naps = MOST_NAPS;

static void on_handler(void);          /* what a signal handler does */
static bool wake_now(void);            /* with an unfair schedule: shall fiber 0, which naps, go on? */
static bool unfair;

/* Define FIBERS_EVERY for schedules that somebody else chooses: every.h. Here is what it is told. */
#ifdef FIBERS_EVERY
static void every_access(const volatile void *at, size_t bytes, bool writes);
static void every_nap(void);
#define FIBER_ACCESS(p, writes) every_access((p), sizeof *(p), (writes))
#else
#define FIBER_ACCESS(p, writes) fiber_point()
#endif

static uint32_t fiber_random(void)
{
    the.rng ^= the.rng << 13;
    the.rng ^= the.rng >> 7;
    the.rng ^= the.rng << 17;
    return (uint32_t)(the.rng >> 32);
}

/* ---- What the header's thread-locals are */

extern unsigned char __start_fiber_locals[], __stop_fiber_locals[];
static size_t fiber_locals_range(unsigned char **from)
{
    *from = __start_fiber_locals;
    __asm__ volatile("" : "+r"(*from) : : "memory");
    return (size_t)(__stop_fiber_locals - __start_fiber_locals);
}

static void fiber_save_locals(fiber *f)
{
    unsigned char *from;
    const size_t bytes = fiber_locals_range(&from);
    if (bytes > sizeof f->locals) abort();
    memcpy(f->locals, from, bytes);
}

static void fiber_load_locals(const fiber *f)
{
    unsigned char *to;
    const size_t bytes = fiber_locals_range(&to);
    memcpy(to, f->locals, bytes);
}

/* ---- Changing fibers */

__attribute__((noinline)) static void fiber_go(int to)
{
    fiber *const from = &the.fiber[the.me];
    if (to == the.me) return;
    fiber_save_locals(from);
    the.me = to;
    fiber_load_locals(&the.fiber[to]);
    if (sigsetjmp(from->at, 0) != 0) return;
    if (!the.fiber[to].fresh) siglongjmp(the.fiber[to].at, 1);
    the.fiber[to].fresh = false;
    setcontext(&the.fiber[to].begin);
}

static void fiber_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void fiber_fail(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (!the.wrong) vsnprintf(the.text, sizeof the.text, format, list);
    va_end(list);
    the.wrong = the.text;
}

/* Ends the run: nobody goes on. */
static void fiber_stop(void)
{
    the.running = false;
    fiber_go(FIBERS);
    abort();
}

static int fiber_next(int from)
{
    for (int i = 1; i <= the.count; i++)
        if (!the.fiber[(from + i) % the.count].done) return (from + i) % the.count;
    return -1;
}

/* Another one that is not done; from itself if there is none. */
static int fiber_any_other(int from)
{
    const int next = fiber_next(from);
    for (int i = 0; i < 20 && the.random && next >= 0 && next != from; i++) {
        const int to = (int)(fiber_random() % (unsigned)the.count);
        if (!the.fiber[to].done && to != from) return to;
    }
    return next < 0 ? from : next;
}

static void fiber_main(void)
{
    for (;;) {
        const int me = the.me;
        the.fiber[me].run(me);
        the.fiber[me].done = true;
        if (fiber_next(me) < 0) the.running = false;
        fiber_go(the.running ? fiber_any_other(me) : FIBERS);
    }
}

static void fiber_signal(void)
{
    fiber *const f = &the.fiber[the.me];
    if (f->holds || f->handlers >= 2) return;
    f->handlers++;
    on_handler();
    f->handlers--;
}

static void fiber_random_point(void)
{
    const uint32_t r = fiber_random();
    const int to = (int)((r >> 16) % (unsigned)the.count);
    if ((r & 65535) < the.switch_rate && !the.fiber[to].done) fiber_go(to);
    if (the.handlers && (fiber_random() & 65535) < the.handler_rate) fiber_signal();
}

/* Before each atomic access. */
static void fiber_point(void)
{
    if (!the.running) return;
    const uint64_t step = the.steps++;
    if (step >= MOST_STEPS) fiber_fail("nobody gets on: %d steps", MOST_STEPS);
    if (the.wrong) fiber_stop();
    if (unfair && the.me && wake_now() && !the.fiber[0].done) {
        fiber_go(0);
    } else if (the.random) {
        fiber_random_point();
    } else {
        if (step >= STEPS) return;
        uint8_t alive = 0;
        for (int i = 0; i < the.count; i++) alive |= (uint8_t)(!the.fiber[i].done << i);
        the.who[step] = (uint8_t)the.me;
        the.alive[step] = alive;
        if (the.taken == the.listed || the.list[the.taken].step != step) return;
        const int to = the.list[the.taken++].to;
        if (to == the.me) fiber_signal();
        else if (!the.fiber[to].done) fiber_go(to);
    }
}

/* Whoever waits naps: the others go on. */
static int fiber_nap(void)
{
    if (!the.running) return 0;
#ifdef FIBERS_EVERY
    every_nap();
    return 0;
#endif
    the.steps++;
    the.fiber[the.me].naps++;
    if (++the.naps > most_naps)
        fiber_fail("somebody waits for ever: %.1f s of naps", (double)most_naps * NAP_NS / 1e9);
    if (the.wrong) fiber_stop();
    fiber_go(fiber_any_other(the.me));
    return 0;
}

/* One signal stands for all. */
static int fiber_hold(int how, const sigset_t *set, sigset_t *before)
{
    fiber *const f = &the.fiber[the.me];
    if (before) {
        sigemptyset(before);
        if (f->holds) sigaddset(before, SIGUSR1);
    }
    if (how == SIG_BLOCK) f->holds |= sigismember(set, SIGUSR1) == 1;
    else f->holds = sigismember(set, SIGUSR1) == 1;
    return 0;
}

#ifdef FIBERS_EVERY                     /* a clock of each fiber: what it shows depends on no other */
static uint64_t fiber_clock(void) { return 1000000 + ++the.fiber[the.me].ticks; }
#else
static uint64_t fiber_clock(void) { return 1000000 + ++the.ticks; }
#endif

static int fiber_time(struct timespec *t)
{
    const uint64_t ns = 1000000000 + the.naps * NAP_NS + the.ticks + the.fiber[the.me].ticks;
    t->tv_sec = (time_t)(ns / 1000000000);
    t->tv_nsec = (long)(ns % 1000000000);
    return 0;
}

/* ---- Running */

/* Fiber n is to run that, from the beginning. */
static void fiber_set_up(int n, void (*run)(int))
{
    fiber *const f = &the.fiber[n];
    f->run = run;
    f->done = false;
    f->handlers = 0;
    f->naps = f->ticks = 0;
    f->holds = false;
    fiber_save_locals(f);
    if (f->stack && !f->left) return;
    f->left = false;
    if (!f->stack) f->stack = (char *)malloc(FIBER_STACK);
    if (!f->stack || getcontext(&f->begin) != 0) abort();
    f->begin.uc_stack.ss_sp = f->stack;
    f->begin.uc_stack.ss_size = FIBER_STACK;
    f->begin.uc_link = NULL;
    makecontext(&f->begin, fiber_main, 0);
    f->fresh = true;
}

/* Runs all that are set up; the thread-locals are then as before. True: nothing was wrong so far. */
static bool fiber_run(int count, int first)
{
    the.count = count;
    the.me = FIBERS;
    the.wrong = NULL;
    the.ticks = the.naps = the.steps = 0;
    the.taken = 0;
    the.running = true;
    fiber_go(first);
    the.running = false;
    for (int i = 0; i < count && the.wrong; i++) the.fiber[i].left = true;
    return !the.wrong;
}

/* ---- What the header calls, from here on. Why twice the same name: a macro is not expanded in itself. */

#define __atomic_load_n(p, order) \
    __extension__({ __typeof__(p) place_ = (p); FIBER_ACCESS(place_, false); \
                    __atomic_load_n(place_, order); })
#define __atomic_store_n(p, v, order) \
    __extension__({ __typeof__(p) place_ = (p); __typeof__(*(p)) stored_ = (v); FIBER_ACCESS(place_, true); \
                    __atomic_store_n(place_, stored_, order); })
#define __atomic_fetch_add(p, v, order) \
    __extension__({ __typeof__(p) place_ = (p); __typeof__(*(p)) added_ = (__typeof__(*(p)))(v); \
                    FIBER_ACCESS(place_, true); __atomic_fetch_add(place_, added_, order); })
#define __atomic_compare_exchange_n(p, expected, v, weak, success, failure) \
    __extension__({ __typeof__(p) place_ = (p); __typeof__(*(p)) wanted_ = (v); FIBER_ACCESS(place_, true); \
                    __atomic_compare_exchange_n(place_, expected, wanted_, weak, success, failure); })
#define NPUPROF_TSAN_ 1                /* all accesses are atomic ones, none is written in assembly */
#define __thread __attribute__((section("fiber_locals"), used))
#define clock_gettime(clock, t) ((void)(clock), fiber_time(t))
/* Nor may it look for the kernel's own function behind that one. */
static volatile unsigned long fiber_no_page;
#define getauxval(what) ((what) == AT_SYSINFO_EHDR ? fiber_no_page : (getauxval)(what))
#define pthread_sigmask(how, set, before) fiber_hold(how, set, before)
#define nanosleep(wanted, left) ((void)(wanted), fiber_nap())
/* A definition has (void), a call has (): calls come here. All fibers have the same thread-locals. */
#define npuprof_slot_me_(x) FIBER_ME_##x
#define FIBER_ME_void __attribute__((unused)) header_me_(void)
#define FIBER_ME_ (uintptr_t)&the.fiber[the.me]
#if defined(__x86_64__) || defined(__i386__)
#define __builtin_ia32_rdtsc() fiber_clock()
#else
#define NPUPROF_NOW() fiber_clock()
#define NPUPROF_NOW_HZ 1000000000
#endif

#endif /* FIBERS_H */

/* two threads that change what is recorded at the same moment, and forks beside them
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include <pthread.h>
#include <sched.h>
#include "npuprof.h"

/* ---- npuprof_set_categories() from two threads: a call site obeys the list that is in force */

static unsigned begun, left, rounds;

static __attribute__((noinline)) void record_both(void)
{
    { PROF_SCOPE_CAT("x", "in x"); }
    { PROF_SCOPE_CAT("y", "in y"); }
}

/* Until the other thread is there. Why not at once: both are to call at the same moment. */
static void wait_for(unsigned *word, unsigned n)
{
    for (int i = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) < n; i++)
        if (i > 20000) sched_yield();
}

static void *set_x(void *unused)
{
    for (unsigned n = 1; n <= rounds; n++) {
        wait_for(&begun, n);
        npuprof_set_categories("x");
        record_both();
        __atomic_store_n(&left, n, __ATOMIC_RELEASE);
    }
    return unused;
}

static void two_lists(void)
{
    pthread_t thread;
    unsigned wrong = 0;
    npuprof_stats s;
    rounds = CHECK_SANITIZED ? 2000 : 200000;    /* a sanitizer needs no luck to see a race */
    npuprof_start(1);
    CHECK_STOP(!pthread_create(&thread, NULL, set_x, NULL));
    for (unsigned n = 1; n <= rounds; n++) {
        __atomic_store_n(&begun, n, __ATOMIC_RELEASE);
        for (volatile unsigned i = 0; i < n % 64; i++) {}
        npuprof_set_categories("y");
        record_both();
        wait_for(&left, n);
        npuprof_clear();
        record_both();
        CHECK_STOP(npuprof_get_stats(&s) == NPUPROF_OK);
        if (s.recorded != 1) printf("round %u: recorded %u\n", n, (unsigned)s.recorded);
        wrong += s.recorded != 1;
    }
    pthread_join(thread, NULL);
    CHECK_UINT(wrong, 0);
}

/* ---- the clock of bounds and brackets, on two threads: what one has seen of the other came before */

static uint64_t marked __attribute__((aligned(64)));
static uint64_t mark_ticks;

static void *mark(void *unused)
{
    for (unsigned n = 1; n <= rounds; n++) {
        wait_for(&begun, n);
        mark_ticks = npuprof_ticks_();
        __atomic_store_n(&marked, n, __ATOMIC_RELEASE);
    }
    return unused;
}

/* Without the fences it fails in some runs only, by how the two CPUs lie; compile/test_instructions fails in
   each. */
static void clock_of_two(void)
{
    pthread_t thread;
    unsigned early = 0;
    rounds = CHECK_SANITIZED ? 2000 : 3000000;
    begun = 0;
    npuprof_start(1);
    CHECK_STOP(!pthread_create(&thread, NULL, mark, NULL));
    for (unsigned n = 1; n <= rounds; n++) {
        __atomic_store_n(&begun, n, __ATOMIC_RELEASE);
        for (volatile unsigned i = 0; i < n % 64; i++) {}
        for (int i = 0; __atomic_load_n(&marked, __ATOMIC_ACQUIRE) < n; i++)
            if (i > 20000) sched_yield();
        early += npuprof_ticks_() < mark_ticks;
    }
    pthread_join(thread, NULL);
    CHECK_UINT(early, 0);
}

/* ---- fork while another thread is in npuprof_capture.gate: the child is told, too */

static int in_gate, told_in_child;
static pid_t parent;

static void gate(void *user, bool open)
{
    (void)user;
    (void)open;
    if (getpid() != parent) {
        told_in_child++;
        return;
    }
    __atomic_store_n(&in_gate, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&in_gate, __ATOMIC_ACQUIRE) == 1) sched_yield();
}

static void *start(void *unused)
{
    npuprof_start(1);
    return unused;
}

static void fork_in_gate(void)
{
    pthread_t thread;
    npuprof_desc desc = { 0 };
    npuprof_capture capture = { 0 };
    capture.gate = gate;
    desc.capture = &capture;
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    parent = getpid();
    CHECK_STOP(!pthread_create(&thread, NULL, start, NULL));
    while (!__atomic_load_n(&in_gate, __ATOMIC_ACQUIRE)) sched_yield();
    const pid_t child = fork();
    if (child == 0) {
        npuprof_stop();
        npuprof_start(1);
        _exit(told_in_child);
    }
    __atomic_store_n(&in_gate, 2, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 2);
}

CHECK_MAIN(CASE_THOROUGH(two_lists), CASE_THOROUGH(clock_of_two), CASE(fork_in_gate))

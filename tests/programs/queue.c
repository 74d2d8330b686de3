/* A thread that stops in the middle of taking a chunk out of the queue of retired ones, while another goes
   round it several times.
   SPDX-License-Identifier: MIT
   HOOKED_HEADER is npuprof.h with a call of taken_out() where the chunk has been taken. Prints what was lost
   but not overwritten. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static void taken_out(void);
#define NPUPROF_IMPLEMENTATION
#include HOOKED_HEADER

static __thread int slow;
static volatile int stopped, go_on;
static void taken_out(void)
{
    if (!slow || stopped) return;
    __atomic_store_n(&stopped, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&go_on, __ATOMIC_SEQ_CST)) {}
}

static void spans(int count)
{
    for (int i = 0; i < count; i++) { PROF_SCOPE("s"); }
}

static void *stops(void *unused)
{
    (void)unused;
    slow = 1;
    spans(200000);
    return NULL;
}

int main(void)
{
    static uint64_t memory[16384 / 8];
    pthread_t thread;
    npuprof_desc desc;
    npuprof_stats s;
    memset(&desc, 0, sizeof desc);
    desc.arena = memory;
    desc.arena_bytes = sizeof memory;
    desc.when_full = NPUPROF_KEEP_NEWEST;
    if (npuprof_init(&desc) != NPUPROF_OK) return 2;
    npuprof_start(1);
    pthread_create(&thread, NULL, stops, NULL);
    while (!__atomic_load_n(&stopped, __ATOMIC_SEQ_CST)) {}
    spans(100003);                 /* rounds of the queue, and a part of one */
    __atomic_store_n(&go_on, 1, __ATOMIC_SEQ_CST);
    spans(200000);
    pthread_join(thread, NULL);
    npuprof_get_stats(&s);
    printf("%llu\n", (unsigned long long)(s.lost - s.lost_by_cause[NPUPROF_LOST_OVERWRITTEN]));
    return s.recorded + s.lost == 500003 ? 0 : 1;
}

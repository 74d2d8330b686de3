/* test: thorough soak=300 valgrind cc=-O2 - recorded + lost = executed each policy, 1 to 64 threads, 2 KiB to
   64 MiB
   SPDX-License-Identifier: MIT */
#include "life.h"

typedef struct load { int policy, threads; size_t arena_bytes; uint64_t rounds_each; bool names; } load;
enum { EVENTS_A_ROUND = 12, EVENTS_AROUND = 3 };
static pthread_barrier_t all_ready;

/* Two spans stay open over everything the thread records. */
static void *work(void *user)
{
    const load *l = (const load *)user;
    char name[48];
    pthread_barrier_wait(&all_ready);
    snprintf(name, sizeof name, "worker %lx", (unsigned long)pthread_self());
    PROF_THREAD_NAME(name);
    PROF_SCOPE("whole thread");
    PROF_BEGIN("c", "by hand over all");
    for (uint64_t i = 0; i < l->rounds_each; i++) {
        snprintf(name, sizeof name, "name %d", (int)(l->names ? i : i % 5));
        record_each_kind((int64_t)i, name);
        npuprof_span("track", "c", name, npuprof_now_ns(), npuprof_now_ns(), PROF_ARGS(PROF_UINT("u", i)));
    }
    PROF_END();
    PROF_COUNTER("last", 1);
    return NULL;
}

static void account(const void *user)
{
    const load *l = (const load *)user;
    pthread_t threads[64];
    static life_memory memory;          /* the sink is called at exit, too */
    life_begin(l->policy, l->arena_bytes, &memory);
    pthread_barrier_init(&all_ready, NULL, (unsigned)l->threads);
    for (int i = 0; i < l->threads; i++)
        CHECK_STOP(!pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)l));
    if (l->policy == NPUPROF_STREAM) CHECK_INT(npuprof_flush(), NPUPROF_OK);    /* beside the threads */
    for (int i = 0; i < l->threads; i++) pthread_join(threads[i], NULL);
    const uint64_t executed = (uint64_t)l->threads * (EVENTS_AROUND + l->rounds_each * EVENTS_A_ROUND);
    const npuprof_stats s = life_account(executed, true);
    CHECK_UINT(s.bytes_total, l->arena_bytes);
    CHECK(s.bytes_used <= s.bytes_total);
    CHECK(s.threads <= (uint64_t)l->threads);
    for (int i = 0; i < NPUPROF_LOST_COUNT; i++) {
        /* Where the others hold every chunk open there is nothing to recycle or to hand over. */
        const bool may = i == NPUPROF_LOST_FULL ? l->policy == NPUPROF_KEEP_OLDEST
            || l->arena_bytes < (size_t)l->threads * 4096
                       : i == NPUPROF_LOST_OVERWRITTEN ? l->policy == NPUPROF_KEEP_NEWEST
                       : i != NPUPROF_LOST_SINK && i != NPUPROF_LOST_RING && i != NPUPROF_LOST_READING;
        if (!may && s.lost_by_cause[i])
            check_failed_(__FILE__, __LINE__, "%" PRIu64 " lost by cause %d", s.lost_by_cause[i], i);
    }
    if (l->policy == NPUPROF_STREAM) {
        CHECK_INT(npuprof_flush(), NPUPROF_OK);
        const npuprof_stats after = life_account(executed, true);
        CHECK_UINT(after.recorded, s.recorded);
        CHECK_UINT(after.lost, s.lost);
        life_check_streamed(&memory, s.recorded, s.lost, true);
        life_account(executed, true);       /* the live arena is there again */
    }
    if (check_failures_)
        printf("  (%s, %zu bytes, %d threads)\n", life_policy_names[l->policy], l->arena_bytes, l->threads);
}

static void of_policy(int policy)
{
    static const size_t sizes[] = { 2048, 2056, 4096, 16384, 65536, 1 << 20, (size_t)64 << 20 };
    static const int threads[] = { 1, 2, 8, 64 };
    /* Under a sanitizer or valgrind neither the largest arena nor the most threads: that takes minutes and
       goes the same ways. */
    const size_t without = life_is_slow() ? 1 : 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] - without; i++)
        for (size_t k = 0; k < sizeof threads / sizeof threads[0] - without; k++) {
            const uint64_t all = sizes[i] >= (size_t)64 << 20 ? life_scaled(16000, 1000000)
                                 : sizes[i] >= 1 << 20        ? life_scaled(16000, 100000)
                                                              : life_scaled(1600, 16000);
            load l = { policy, threads[k], sizes[i], all / (uint64_t)threads[k] + 1, k % 2 != 0 };
            check_in_child(account, &l);
        }
}

static void keep_oldest(void) { of_policy(NPUPROF_KEEP_OLDEST); }
static void keep_newest(void) { of_policy(NPUPROF_KEEP_NEWEST); }
static void stream(void) { of_policy(NPUPROF_STREAM); }

CHECK_MAIN(CASE(keep_oldest), CASE(keep_newest), CASE(stream))

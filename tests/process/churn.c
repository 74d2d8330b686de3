/* test: thorough soak=300 cc=-O2 - threads by the thousand, 64 at a time: slots are given back, every span is
   accounted for, nothing leaks
   SPDX-License-Identifier: MIT */
#include "life.h"
#include <dirent.h>

enum { AT_ONCE = 64, EVENTS = 4 };

static pthread_barrier_t batch;

static void *short_thread(void *user)
{
    const uint64_t n = (uint64_t)(uintptr_t)user;
    if (n % 3 == 0) PROF_THREAD_NAME(n % 2 ? "short" : "short too");
    PROF_SCOPE("thread");
    { PROF_SCOPE_ARGS("c", "inner", PROF_ARGS(PROF_UINT("n", n))); }
    PROF_BEGIN("c", "by hand");
    pthread_barrier_wait(&batch);          /* all of them are alive now */
    PROF_INSTANT("c", "end", PROF_NO_ARGS);
    if (n % 5 == 0) pthread_exit(NULL);    /* two spans are open */
    PROF_END();
    return NULL;
}

static int open_files(void)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    for (; folder && readdir(folder); n++) {}
    if (folder) closedir(folder);
    return n;
}

/* What the threads recorded, found again in the file: each number once. */
typedef struct seen { uint8_t *once; uint64_t limit, inner, twice, slices; int64_t highest_tid; } seen;
static void look(life_counts *c, const char *line)
{
    seen *s = (seen *)c->user;
    const int64_t tid = life_number(line, "tid");
    if (tid > s->highest_tid) s->highest_tid = tid;
    if (!life_has(line, "\"name\":\"inner\"")) return;
    const uint64_t n = (uint64_t)life_number(line, "n");
    s->inner++;
    if (n >= s->limit || s->once[n]++) s->twice++;
}

static void churn(int policy, uint64_t threads, size_t arena_bytes)
{
    static life_memory memory;
    pthread_t thread[AT_ONCE];
    pthread_attr_t small;
    size_t resident = 0;
    int files = 0;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 * 1024);
    life_begin(policy, arena_bytes, &memory);
    const double started = life_seconds();
    threads = threads / AT_ONCE * AT_ONCE;
    pthread_barrier_init(&batch, NULL, AT_ONCE);
    for (uint64_t i = 0; i < threads; i += AT_ONCE) {
        for (uint64_t k = 0; k < AT_ONCE; k++)
            CHECK_STOP(!pthread_create(&thread[k], &small, short_thread, (void *)(uintptr_t)(i + k)));
        for (uint64_t k = 0; k < AT_ONCE; k++) pthread_join(thread[k], NULL);
        if (i <= threads / 4) resident = life_resident_bytes(), files = open_files();
    }
    const double took = life_seconds() - started;
    const size_t resident_after = life_resident_bytes();
    if (policy == NPUPROF_KEEP_NEWEST && !CHECK_SANITIZED)
        CHECK(resident_after <= resident + arena_bytes + (1 << 20));
    CHECK_INT(open_files(), files);
    npuprof_stats s = life_account(EVENTS * threads, true);
    CHECK(s.threads >= AT_ONCE && s.threads <= AT_ONCE * 5 / 4);
    if (policy != NPUPROF_KEEP_NEWEST) CHECK_UINT(s.lost, 0);
    CHECK_UINT(s.lost, s.lost_by_cause[NPUPROF_LOST_OVERWRITTEN]);
    if (policy == NPUPROF_STREAM) {
        CHECK_INT(npuprof_flush(), NPUPROF_OK);
        life_check_streamed(&memory, s.recorded, 0, true);
        CHECK_INT(npuprof_load_memory(memory.bytes, memory.count, NULL), NPUPROF_OK);
    }
    seen found = { 0 };
    found.limit = threads;
    found.once = (uint8_t *)calloc(threads, 1);
    CHECK_STOP(found.once != NULL);
    const life_counts c = life_count(look, &found);
    CHECK_UINT(found.twice, 0);
    CHECK(found.highest_tid <= AT_ONCE * 5 / 4);
    if (policy != NPUPROF_KEEP_NEWEST) CHECK_UINT(found.inner, threads);
    CHECK_UINT(c.slices + c.instants, s.recorded);
    printf("note %s: %" PRIu64 " threads, %d at a time, %.1f us each; slots %" PRIu64
           "; resident %zu KiB after a quarter, %zu KiB at the end\n",
           life_policy_names[policy], threads, AT_ONCE, took / (double)threads * 1e6, s.threads,
           resident / 1024,
           resident_after / 1024);
}

static void a_million(void) { churn(NPUPROF_KEEP_NEWEST, life_scaled(20000, 1000000), 4 << 20); }
static void all_kept(void) { churn(NPUPROF_KEEP_OLDEST, life_scaled(20000, 200000), (size_t)64 << 20); }
static void streamed(void) { churn(NPUPROF_STREAM, life_scaled(20000, 200000), 1 << 20); }

CHECK_MAIN(CASE(a_million), CASE(all_kept), CASE(streamed))

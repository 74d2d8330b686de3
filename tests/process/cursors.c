/* test: time=200 - npuprof_read(): three cursors of different speed beside eight threads and two devices,
   for every policy: recorded = delivered + lost for each, and nothing comes twice
   SPDX-License-Identifier: MIT */
#include "check.h"
#include "npuprof.h"
#include "npuprof_npu.h"
#include "recorded.h"
#include "../npu/at_once.h"

enum { WORKERS = 6, DEVICES = 2, CURSORS = 3 };

static struct { npuprof_npu npu; uint64_t origin; } devices[DEVICES];
static uint64_t rounds;
static int stop;

/* 24 bits at 100 MHz: it wraps six times a second. Set back, it is a reset. */
static uint64_t device_ticks(void *user)
{
    uint64_t *const origin = (uint64_t *)user;
    return (real_ns() - __atomic_load_n(origin, __ATOMIC_RELAXED)) / 10;
}

static void *device_work(void *user)
{
    npuprof_npu *const npu = &devices[(uintptr_t)user].npu;
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t from = 0, to = 0;
        if (i % 20000 == 19999)
            __atomic_store_n(&devices[(uintptr_t)user].origin, real_ns(), __ATOMIC_RELAXED);
        (void)npuprof_npu_read(npu, &from);
        (void)npuprof_npu_read(npu, &to);
        npuprof_npu_span(npu, i % 4, "job", "NPU", from, to, PROF_ARGS(PROF_UINT("job", i + 1)));
        WITH_NPU_PROFILER(npu, 0, "sampled", "NPU", PROF_NO_ARGS, { (void)i; });
    }
    return NULL;
}

static const char more_than_eight[] = "more than eight bytes";
static void *work(void *user)
{
    char name[32];
    (void)user;
    for (uint64_t i = 0; i < rounds; i++) {
        PROF_SCOPE_ARGS("c", "outer", PROF_ARGS(PROF_UINT("i", i), PROF_STR("text", more_than_eight)));
        snprintf(name, sizeof name, "name %d", (int)(i % 50));
        PROF_BEGIN("run-time", name);
        PROF_COUNTER("n", i);
        PROF_END();
        for (int n = 0; n < 3; n++) { PROF_SCOPE("plain"); }
        if (i % 100 == 0) npuprof_span("track", "c", "finished", 1, 2, PROF_NO_ARGS);
    }
    return NULL;
}

typedef struct reader {
    npuprof_cursor cursor;
    unsigned stops_after, nap_us;
    unsigned left;
    uint64_t *ids, count, capacity, lost, open, told, wrong;
} reader;
static reader readers[CURSORS];

static bool take(void *user, const npuprof_read_span *span)
{
    reader *const r = (reader *)user;
    if (r->count == r->capacity) {
        r->capacity = r->capacity ? 2 * r->capacity : 1 << 16;
        r->ids = (uint64_t *)realloc(r->ids, r->capacity * sizeof *r->ids);
        CHECK_STOP(r->ids != NULL);
    }
    r->ids[r->count++] = span->id;
    const bool is_outer = strcmp(span->name, "outer") == 0, is_job = strcmp(span->name, "job") == 0;
    r->wrong += span->struct_size != sizeof *span || span->end_ns < span->start_ns || !span->id;
    /* Arguments that found no space are dropped, all of a span. */
    if (is_outer && span->arg_count) r->wrong += strcmp(span->args[1].value.s, more_than_eight) != 0;
    if (is_job && span->arg_count) r->wrong += span->job == 0;
    return !r->stops_after || --r->left;
}

static void read_once(reader *r)
{
    npuprof_read_result counts = { .struct_size = sizeof counts };
    r->left = r->stops_after;
    CHECK_INT(npuprof_read(&r->cursor, NPUPROF_READ_ALL, take, r, &counts), NPUPROF_OK);
    r->told += counts.spans;
    r->lost += counts.lost;
    r->open = counts.open;
}

static void *read_on(void *user)
{
    reader *const r = (reader *)user;
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        read_once(r);
        usleep(r->nap_us);
    }
    return NULL;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void check_reader(reader *r, const npuprof_stats *s, const char *name)
{
    uint64_t twice = 0;
    do read_once(r); while (r->stops_after && !r->left);
    qsort(r->ids, r->count, sizeof *r->ids, by_number);
    for (uint64_t i = 1; i < r->count; i++) twice += r->ids[i] == r->ids[i - 1];
    CHECK_UINT(twice, 0);
    CHECK_UINT(r->wrong, 0);
    CHECK_UINT(r->open, 0);
    CHECK_UINT(r->told, r->count);
    CHECK_UINT(r->count + r->lost, s->recorded + s->lost);
    printf("note %s: %" PRIu64 " delivered, %" PRIu64 " lost\n", name, r->count, r->lost);
    npuprof_read_end(&r->cursor);
    CHECK(r->cursor.memory_ == NULL);
    free(r->ids);
}

static void all_of(int when_full, size_t bytes)
{
    pthread_t threads[WORKERS + DEVICES + CURSORS];
    unsigned n = 0;
    begin_in(calloc(1, bytes), bytes, when_full);
    rounds = (check_is_quick() ? 5000 : 25000) / (CHECK_SANITIZED ? 10 : 1);
    readers[1].nap_us = 3000;
    readers[2].nap_us = 100;
    readers[2].stops_after = 500;
    for (unsigned i = 0; i < DEVICES; i++) {
        const npuprof_npu_desc desc = { .name = i ? "right" : "left", .read_ticks = device_ticks,
                                        .user = &devices[i].origin, .pe_count = 4,
                                        .counter = { .bits = 24, .hz = 100000000 } };
        CHECK_INT(npuprof_npu_open(&devices[i].npu, &desc), NPUPROF_OK);
    }
    for (uintptr_t i = 0; i < WORKERS; i++) threads[n++] = started(work, NULL);
    for (uintptr_t i = 0; i < DEVICES; i++) threads[n++] = started(device_work, (void *)i);
    for (unsigned i = 0; i < CURSORS; i++) threads[n++] = started(read_on, &readers[i]);
    for (unsigned i = 0; i < WORKERS + DEVICES; i++) pthread_join(threads[i], NULL);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (unsigned i = WORKERS + DEVICES; i < n; i++) pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < DEVICES; i++) npuprof_npu_close(&devices[i].npu);
    npuprof_stop();
    const npuprof_stats s = stats_now();
    printf("note %" PRIu64 " recorded, %" PRIu64 " lost\n", s.recorded, s.lost);
    CHECK_UINT(s.lost_by_cause[NPUPROF_LOST_READING], 0);
    check_reader(&readers[0], &s, "at once");
    check_reader(&readers[1], &s, "late");
    check_reader(&readers[2], &s, "stopping");
}

static void keep_oldest(void) { all_of(NPUPROF_KEEP_OLDEST, 64 << 20); }
static void keep_oldest_full(void) { all_of(NPUPROF_KEEP_OLDEST, 1 << 20); }
static void keep_newest(void) { all_of(NPUPROF_KEEP_NEWEST, 1 << 20); }
static void stream(void) { all_of(NPUPROF_STREAM, 1 << 20); }

CHECK_MAIN(CASE(keep_oldest), CASE(keep_oldest_full), CASE(keep_newest), CASE(stream))

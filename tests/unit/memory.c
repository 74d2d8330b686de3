/* memory pools: running figures, peaks, drops, fragmentation, the order of time over threads, warm-up, the
   JSON
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include "fake_clock.h"
#include <pthread.h>
#include <signal.h>
#define NPUPROF_SCRATCH_BYTES 4096       /* little room: some 50 threads in one merge, 11 pools */
#define NPUPROF_ARENA_BYTES (64 * 1024 * 1024)
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "../../tools/convert/load.h"
#include "recorded.h"

#define MB(n) ((uint64_t)(n) << 20)

static const npuprof_device npu0 = { "npu0", NULL, NULL, false };

static char *table(void) { return printed(npuprof_print_memory); }

/* Does the text hold these lines, one after the other? Blanks at a line's end do not count, runs of blanks
   are one. */
static void check_lines(int line, const char *text, const char *wanted)
{
    char *squeezed = (char *)malloc(strlen(text) + 1), *to = squeezed;
    for (const char *c = text; *c; c++) {
        const bool blank = *c == ' ' || *c == '\t';
        if (blank) {
            if (to > squeezed && to[-1] != ' ' && to[-1] != '\n') *to++ = ' ';
            continue;
        }
        if (*c == '\n' && to > squeezed && to[-1] == ' ') to--;
        *to++ = *c;
    }
    *to = 0;
    if (!strstr(squeezed, wanted)) {
        check_failed_(__FILE__, line, "not as wanted");
        printf("---- wanted\n%s---- printed\n%s", wanted, squeezed);
    }
    free(squeezed);
}
#define CHECK_LINES(text, wanted) check_lines(__LINE__, (text), (wanted))

/* The state after each operator: both peaks with their own records, the drops, what lay idle at the peak of
   used. */
static void states(void)
{
    static const unsigned used[] = { 10, 30, 20, 40, 5, 6 }, allocated[] = { 64, 64, 96, 48, 32, 32 };
    npuprof_start(1);
    for (unsigned i = 0; i < 6; i++) {
        char tag[16];
        snprintf(tag, sizeof tag, "op_%u", i);
        PROF_MEMORY(NULL, MB(used[i]), MB(allocated[i]), tag);
        fake_ticks += 10;
    }
    npuprof_stop();
    CHECK_LINES(table(), "Memory of host (MB of 2^20 bytes): 6 records\n"
                         "peak used : 40.000000 at #3 op_3\n"
                         "peak allocated : 96.000000 at #2 op_2\n"
                         "fragmentation : 8.000000 (16.67 %) allocated but not used at the peak\n"
                         "allocated drops : 2\n"
                         "#Trace #Tag used alloc\n"
                         "0 op_0 10.000000 64.000000\n1 op_1 30.000000 64.000000\n"
                         "2 op_2 20.000000 96.000000\n3 op_3 40.000000 48.000000\n"
                         "4 op_4 5.000000 32.000000\n5 op_5 6.000000 32.000000\n");
}

/* Memory alone, by its category; what its peaks are. */
static void peaks_alone(void)
{
    static const unsigned used[] = { 10, 30, 20, 40, 5, 6 }, allocated[] = { 64, 64, 96, 48, 32, 32 };
    npuprof_memory_peaks peaks;
    CHECK_INT(npuprof_get_memory(NULL, &peaks), NPUPROF_ERR_NOT_FOUND);
    CHECK_INT(npuprof_get_memory(NULL, NULL), NPUPROF_ERR_ARGUMENT);
    CHECK_INT(npuprof_set_categories("memory"), NPUPROF_OK);
    npuprof_start(1);
    for (unsigned i = 0; i < 6; i++) {
        PROF_SCOPE_CAT("host", "op");
        PROF_MEMORY(NULL, MB(used[i]), MB(allocated[i]), "op");
        if (i % 2) PROF_ALLOC(&npu0, MB(1), "a");
        fake_ticks += 10;
    }
    CHECK_INT(npuprof_set_categories("-memory"), NPUPROF_OK);
    { PROF_SCOPE("seen"); PROF_MEMORY(NULL, MB(1000), MB(1000), "op"); }
    npuprof_stop();
    const npuprof_stats stats = stats_now();
    CHECK_UINT(stats.recorded, 6 + 3 + 1);
    CHECK_INT(npuprof_get_memory(NULL, &peaks), NPUPROF_OK);
    CHECK_UINT(peaks.records, 6);
    CHECK_UINT(peaks.used_bytes, MB(40));
    CHECK_UINT(peaks.used_at, 3);
    CHECK_UINT(peaks.held_bytes, MB(48));
    CHECK_UINT(peaks.allocated_bytes, MB(96));
    CHECK_UINT(peaks.allocated_at, 2);
    CHECK_UINT(peaks.drops, 2);
    CHECK_INT(npuprof_get_memory(&npu0, &peaks), NPUPROF_OK);
    CHECK_UINT(peaks.records, 3);
    CHECK_UINT(peaks.used_bytes, MB(3));
    CHECK_INT(npuprof_set_categories(NULL), NPUPROF_OK);
}

/* The end of the CSV, from the first row that is no span on, with its times relative to a moment. */
static char *memory_rows(int64_t *moment)
{
    char end[24], *to, *text;
    const char *path = check_path("t.csv");
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    text = check_read_file(path, NULL);
    char *const rows = strstr(text, "\n,,,");
    if (!rows) return strcpy(text, "");
    to = text;
    for (char *line = rows + 1; *line; line = strchr(line, '\n') + 1) {
        int64_t ns;
        CHECK_STOP(sscanf(line, ",,,%" SCNd64 ",%23[-0-9],", &ns, end) == 2);
        if (*moment < 0) *moment = ns;
        CHECK_INT(ns, strtoll(end, NULL, 10));
        const char *const behind = strstr(line, end) + 2 * (strlen(end) + 1);
        to += sprintf(to, "%" PRId64 " ", ns - *moment);
        const size_t length = (size_t)(strchr(behind, '\n') + 1 - behind);
        memmove(to, behind, length);
        to += length;
    }
    *to = 0;
    return text;
}

/* In the CSV, the peak of each pool has a row, as npuprof_get_memory() has it. */
static void rows(void)
{
    static const npuprof_device quoted = { "a \"b\", c", NULL, NULL, false };
    const npuprof_device *const pool[] = { NULL, &quoted };
    char wanted[2][400];
    int64_t moment = -1;
    npuprof_start(1);
    { PROF_SCOPE("span"); fake_ticks += 5; }
    npuprof_stop();
    CHECK_STR(memory_rows(&moment), "");
    npuprof_start(1);
    {
        PROF_RECORD_WARM_UP("warm up");
        PROF_MEMORY(NULL, MB(100), MB(200), "first");
        fake_ticks += 10;
    }
    fake_ticks += 10;
    PROF_MEMORY(NULL, 40, 64, "before");
    fake_ticks += 7;
    PROF_ALLOC(&quoted, 100, "x, \"y\"");
    fake_ticks += 20;
    PROF_MEMORY(NULL, 50, 96, "peak");
    fake_ticks += 10;
    PROF_MEMORY(NULL, 50, 128, "as much");
    PROF_FREE(&quoted, 60, "z");
    npuprof_stop();
    for (int i = 0; i < 2; i++) {
        npuprof_memory_peaks peaks;
        CHECK_INT(npuprof_get_memory(pool[i], &peaks), NPUPROF_OK);
        snprintf(wanted[i], sizeof wanted[i], "%d \"memory\",\"%s used_bytes=%" PRIu64
                                              " allocated_bytes=%" PRIu64 " tag=%s\",,,,,,,0,\n", i ? -20 : 0,
                 i ? "a \"\"b\"\", c" : "host", peaks.used_bytes, peaks.held_bytes,
                 i ? "x, \"\"y\"\"" : "peak");
    }
    strcat(wanted[0], wanted[1]);
    CHECK_STR(memory_rows(&moment), wanted[0]);
}

/* Allocs and frees, pool by pool; the first of equal peaks counts; a free of too much ends at zero. */
static void changes(void)
{
    npuprof_start(1);
    PROF_ALLOC(&npu0, MB(3), "a");
    PROF_ALLOC(NULL, 512 * 1024, "h");
    PROF_ALLOC(&npu0, MB(2), "b");
    PROF_FREE(&npu0, MB(3), "a");
    PROF_ALLOC(&npu0, MB(3), "c");
    PROF_FREE(&npu0, MB(99), "too much");
    PROF_MEMORY(&npu0, MB(1), MB(4), "pool trimmed");
    PROF_ALLOC(&npu0, MB(1), "d");
    PROF_FREE(NULL, 1, "h");
    npuprof_stop();
    char *text = table();
    CHECK_LINES(text, "Memory of npu0 (MB of 2^20 bytes): 7 records\n"
                      "peak used : 5.000000 at #1 b\n"
                      "peak allocated : 5.000000 at #1 b\n"
                      "fragmentation : 0.000000 (0.00 %) allocated but not used at the peak\n"
                      "allocated drops : 1\n"
                      "#Trace #Tag used alloc\n"
                      "0 a 3.000000 3.000000\n1 b 5.000000 5.000000\n2 a 2.000000 5.000000\n"
                      "3 c 5.000000 5.000000\n4 too much 0.000000 5.000000\n"
                      "5 pool trimmed 1.000000 4.000000\n6 d 2.000000 4.000000\n");
    CHECK_LINES(text, "Memory of host (MB of 2^20 bytes): 2 records\n");
    CHECK_LINES(text, "0 h 0.500000 0.500000\n1 h 0.499999 0.500000\n");
}

/* The counts go on while nothing is recorded, before the first start, too. */
static void while_stopped(void)
{
    PROF_ALLOC(&npu0, MB(10), "early");
    npuprof_start(1);
    PROF_ALLOC(&npu0, MB(1), "one");
    npuprof_pause();
    PROF_ALLOC(&npu0, MB(7), "paused");
    PROF_FREE(&npu0, MB(10), "early");
    npuprof_resume();
    PROF_ALLOC(&npu0, MB(1), "two");
    npuprof_stop();
    const npuprof_stats stats = stats_now();
    CHECK_UINT(stats.recorded, 2);
    CHECK_LINES(table(), "0 one 11.000000 11.000000\n1 two 9.000000 18.000000\n");
}

/* Names, not addresses, make a pool; more than 64 pools are counted as lost, and only their allocs and
   frees. */
static void pools(void)
{
    char names[80][8];
    npuprof_start(1);
    for (unsigned i = 0; i < 80; i++) {
        snprintf(names[i], sizeof names[i], "n%u", i);
        const npuprof_device device = { names[i], NULL, NULL, false };
        PROF_ALLOC(&device, MB(1), "x");
    }
    const npuprof_device again = { "n0", NULL, NULL, false };
    PROF_ALLOC(&again, MB(1), "y");
    npuprof_stop();
    const npuprof_stats stats = stats_now();
    CHECK_UINT(stats.recorded, 65);
    CHECK_UINT(stats.lost_by_cause[NPUPROF_LOST_NAMES], 16);
    char *text = table();
    CHECK_LINES(text, "0 x 1.000000 1.000000\n1 y 2.000000 2.000000\n");
    CHECK(strstr(text, "records of further pools are left out") != NULL);
    int64_t moment = 0;
    text = memory_rows(&moment);
    unsigned count = 0;
    for (const char *c = text; (c = strstr(c, " used_bytes=")) != NULL; c++) count++;
    CHECK_UINT(count, 11);
    CHECK(strstr(text, "\"n0 used_bytes=2097152 allocated_bytes=2097152 tag=y\"") != NULL);
    CHECK(strstr(text, " \"memory\",\"53 records of further pools are left out: "
                       "NPUPROF_SCRATCH_BYTES\",,,,,,,0,\n") != NULL);
}

static void *one_record(void *tag)
{
    PROF_MEMORY(NULL, 1000000, 0, (const char *)tag);
    return NULL;
}

static void *many_records(void *user)
{
    pthread_barrier_t *barriers = (pthread_barrier_t *)user;
    pthread_barrier_wait(&barriers[0]);
    one_record((void *)(size_t)"crowd");
    pthread_barrier_wait(&barriers[1]);
    return NULL;
}

/* Threads take turns: the table goes by time, not by thread, and so do the drops. */
typedef struct turns {
    unsigned turn, count;
    const char *tag;
    uint64_t allocated;
    pthread_barrier_t *at;
} turns;
static void *take_turns(void *user)
{
    const turns *t = (const turns *)user;
    for (unsigned i = 0; i < 9; i++) {
        if (i % 3 == t->turn) PROF_MEMORY(NULL, MB(i), t->allocated, t->tag);
        if (pthread_barrier_wait(t->at) == PTHREAD_BARRIER_SERIAL_THREAD) fake_ticks += 10;
        pthread_barrier_wait(t->at);
    }
    return NULL;
}

static void threads(void)
{
    pthread_barrier_t at;
    turns list[3] = { { 0, 0, "one", MB(90), &at }, { 1, 0, "two", MB(80), &at },
                      { 2, 0, "three", MB(100), &at } };
    pthread_barrier_init(&at, NULL, 3);
    npuprof_start(1);
    on_threads(3, take_turns, list, sizeof list[0]);
    npuprof_stop();
    CHECK_LINES(table(), "peak used : 8.000000 at #8 three\npeak allocated : 100.000000 at #2 three\n"
                         "fragmentation : 92.000000 (92.00 %) allocated but not used at the peak\n"
                         "allocated drops : 5\n"
                         "#Trace #Tag used alloc\n0 one 0.000000 90.000000\n1 two 1.000000 80.000000\n"
                         "2 three 2.000000 100.000000\n3 one 3.000000 90.000000\n"
                         "4 two 4.000000 80.000000\n5 three 5.000000 100.000000\n"
                         "6 one 6.000000 90.000000\n7 two 7.000000 80.000000\n"
                         "8 three 8.000000 100.000000\n");
}

/* More threads at once than the scratch has room for: it says so. */
static void crowd(void)
{
    enum { THREADS = 60 };
    pthread_barrier_t barriers[2];
    for (int i = 0; i < 2; i++) pthread_barrier_init(&barriers[i], NULL, THREADS);
    npuprof_start(1);
    on_threads(THREADS, many_records, barriers, 0);
    npuprof_stop();
    char *text = table(), note[100];
    const int shown = atoi(strstr(text, ": ") ? strstr(text, ": ") + 2 : "0");
    CHECK(shown > 40 && shown < THREADS);
    snprintf(note, sizeof note, "(the records of %d more threads are left out: NPUPROF_SCRATCH_BYTES)",
             THREADS - shown);
    CHECK(strstr(text, note) != NULL);
    int64_t moment = 0;
    snprintf(note, sizeof note, " \"memory\",\"%d threads' memory records are left out: "
                                "NPUPROF_SCRATCH_BYTES\",", THREADS - shown);
    CHECK(strstr(memory_rows(&moment), note) != NULL);
}

/* Two threads alloc at once: no order of the stamps makes a drop. */
static void *alloc_and_free(void *user)
{
    (void)user;
    for (int i = 0; i < 20000; i++) {
        PROF_ALLOC(&npu0, 4096, "block");
        PROF_FREE(&npu0, 4096, "block");
    }
    return NULL;
}

static void no_false_drops(void)
{
    npuprof_start(1);
    on_threads(4, alloc_and_free, NULL, 0);
    npuprof_stop();
    char *text = table();
    CHECK_LINES(text, "allocated drops : 0\n");
    CHECK(strstr(text, "160000 records") != NULL && strstr(text, "17592186044415") == NULL);
}

/* Warm-up is left out, also in the thread's signal handlers; the other threads are not in warm-up. */
static void in_handler(int number)
{
    (void)number;
    PROF_MEMORY(NULL, MB(500), MB(500), "handler");
}

static void warm_up(void)
{
    signal(SIGUSR1, in_handler);
    npuprof_start(1);
    {
        PROF_RECORD_WARM_UP("warm up");
        PROF_MEMORY(NULL, MB(100), MB(200), "first");
        fake_ticks += 10;
        { PROF_SCOPE("inner"); PROF_ALLOC(NULL, MB(1), "inside"); raise(SIGUSR1); fake_ticks += 10; }
        on_a_thread(one_record, (void *)(size_t)"other");
        fake_ticks += 10;
    }
    fake_ticks += 10;
    PROF_MEMORY(NULL, MB(2), MB(4), "real");
    fake_ticks += 10;
    PROF_MEMORY(NULL, MB(1), MB(3), "real");
    npuprof_stop();
    CHECK_LINES(table(), "Memory of host (MB of 2^20 bytes): 3 records\npeak used : 2.000000 at #1 real\n"
                         "peak allocated : 4.000000 at #1 real\n"
                         "fragmentation : 2.000000 (50.00 %) allocated but not used at the peak\n"
                         "allocated drops : 1\n"
                         "#Trace #Tag used alloc\n0 other 0.953674 0.000000\n1 real 2.000000 4.000000\n"
                         "2 real 1.000000 3.000000\n");
}

/* Counters in the JSON: one track a pool, what changed, what is warm-up. The image gives the same report. */
static void outputs(void)
{
    npuprof_start(1);
    {
        PROF_RECORD_WARM_UP("warm up");
        PROF_ALLOC(&npu0, 100, "w");
        fake_ticks += 10;
    }
    fake_ticks += 10;
    PROF_FREE(&npu0, 40, "f");
    PROF_MEMORY(NULL, UINT64_C(1) << 60, UINT64_MAX, "huge");
    PROF_ALLOC(NULL, UINT64_C(1) << 50, "cut");
    npuprof_stop();
    const char *json = check_path("t.json"), *image = check_path("t.npuprof");
    CHECK_INT(npuprof_dump(json), NPUPROF_OK);
    json_node *t = trace_load(json), *w = trace_event(t, "C", "npu0", 0), *f = trace_event(t, "C", "npu0", 1),
        *huge = trace_event(t, "C", "host", 0);
    CHECK_STOP(w && f && huge && trace_count(t, "C", "host") == 2);
    CHECK_STR(json_text(json_get(w, "tag")), "w");
    CHECK_INT(json_int(json_get(w, "args.used")), 100);
    CHECK_INT(json_int(json_get(w, "change")), 100);
    CHECK(json_get(w, "warm_up") != NULL && json_get(f, "warm_up") == NULL);
    CHECK_INT(json_int(json_get(f, "change")), -40);
    CHECK_INT(json_int(json_get(f, "args.used")), 60);
    CHECK_INT(json_int(json_get(f, "args.allocated")), 100);
    CHECK(json_get(huge, "change") == NULL);
    CHECK_INT(json_int(json_get(trace_event(t, "C", "host", 1), "change")), (INT64_C(1) << 42) - 1);
    char *live = table();
    CHECK_INT(npuprof_dump(image), NPUPROF_OK);
    CHECK_INT(npuprof_load(image, NULL), NPUPROF_OK);
    CHECK_STR(table(), live);
    npuprof_unload();
}

static void again_at(int i)
{
    PROF_MEMORY(NULL, i == 6 ? UINT64_MAX : (uint64_t)i, 2 * (uint64_t)i, "op");
    fake_ticks += 10;
    if (i % 2) PROF_ALLOC(&npu0, (uint64_t)(1 + i), "a");
    else PROF_FREE(&npu0, (uint64_t)i, "a");
    fake_ticks += 10;
}

/* The same call sites again and again: after the first records the JSON writes them by its fast path. */
static void again(void)
{
    npuprof_start(1);
    for (int i = 0; i < 4; i++) again_at(i);
    {
        PROF_RECORD_WARM_UP("warm up");
        for (int i = 4; i < 6; i++) again_at(i);
    }
    fake_ticks += 10;                      /* in the tick of its end a span still holds an event */
    for (int i = 6; i < 8; i++) again_at(i);
    npuprof_stop();
    json_node *const t = written();
    for (int i = 0; i < 8; i++) {
        const size_t n = (size_t)i;
        json_node *const host = trace_event(t, "C", "host", n), *const op = trace_event(t, "i", "op", n);
        json_node *const pool = trace_event(t, "C", "npu0", n), *const a = trace_event(t, "i", "a", n);
        const int64_t change = i % 2 ? 1 + i : -i;
        CHECK_STOP(host && op && pool && a);
        if (i != 6) CHECK_INT(json_int(json_get(host, "args.used")), i);
        CHECK_INT(json_int(json_get(host, "args.allocated")), 2 * i);
        CHECK((json_get(host, "warm_up") != NULL) == (i == 4 || i == 5));
        CHECK(json_get(host, "change") == NULL && json_get(op, "args.change") == NULL);
        CHECK_STR(json_text(json_get(op, "args.pool")), "host");
        CHECK_STR(json_text(json_get(a, "args.tag")), "a");
        CHECK_INT(change ? json_int(json_get(pool, "change")) : 0, change);
        CHECK_INT(change ? json_int(json_get(a, "args.change")) : 0, change);
        CHECK_INT(trace_start(a), trace_start(pool));
        CHECK_INT(trace_start(a) - trace_start(op), 10);
    }
    CHECK_STR(json_text(json_get(trace_event(t, "C", "host", 6), "args.used")), "1.8446744073709552e+19");
}

static double seconds_of(unsigned records)
{
    npuprof_clear();
    npuprof_start(1);
    for (unsigned i = 0; i < records; i++) {
        PROF_MEMORY(i % 2 ? &npu0 : NULL, i, 2 * (uint64_t)i, "op");
        fake_ticks += 10;
    }
    npuprof_stop();
    FILE *null = fopen("/dev/null", "w");
    const double from = seconds_used();
    CHECK_INT(npuprof_print_memory(null), NPUPROF_OK);
    fclose(null);
    return seconds_used() - from;
}

/* A million records, with little scratch: as many times the time as records. */
static void million(void)
{
    if (CHECK_SANITIZED) CHECK_SKIP("it measures time, and a sanitizer takes most of it");
    const double small = seconds_of(100000), large = seconds_of(1000000);
    printf("  100,000 records %.3f s, 1,000,000 records %.3f s\n", small, large);
    CHECK(large < 25 * small + 0.1);
}

CHECK_MAIN(CASE(states), CASE(peaks_alone), CASE(rows), CASE(changes), CASE(while_stopped), CASE(pools),
           CASE(threads), CASE(crowd), CASE(no_false_drops), CASE(warm_up), CASE(outputs), CASE(again),
           CASE_THOROUGH(million))

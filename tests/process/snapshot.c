/* test: valgrind cc=-O2 - live snapshots: each format written while other threads go on recording, for every
   policy
   SPDX-License-Identifier: MIT */
#include "life.h"

static volatile int stop;
static uint64_t executed[4];
static void *work(void *user)
{
    const unsigned number = (unsigned)(uintptr_t)user;
    char name[32];
    uint64_t n = 0;
    snprintf(name, sizeof name, "worker %u", number);
    PROF_THREAD_NAME(name);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        PROF_SCOPE_ARGS("c", "numbered", PROF_ARGS(PROF_UINT("t", number), PROF_UINT("n", n / 4)));
        snprintf(name, sizeof name, "name %d", (int)(n / 4 % 50));
        PROF_BEGIN("run-time", name);
        PROF_COUNTER("n", n / 4);
        PROF_END();
        { PROF_SCOPE("plain"); }
        n += 4;
    }
    executed[number] = n;
    return NULL;
}

/* The numbers of each thread follow each other, but for what was lost while an earlier snapshot was
   written. */
typedef struct numbers { int64_t first[8], last[8]; uint64_t gaps, seen, open; } numbers;
static void look(life_counts *c, const char *line)
{
    numbers *s = (numbers *)c->user;
    if (!life_has(line, "\"name\":\"numbered\"")) return;
    s->open += life_has(line, "\"unfinished\"");
    if (!life_has(line, "\"n\":")) return;
    const int64_t t = life_number(line, "t"), n = life_number(line, "n");
    if (t < 0 || t >= 8) { s->gaps++; return; }
    if (s->last[t] < 0) s->first[t] = n;
    else if (n != s->last[t] + 1) s->gaps++;
    s->last[t] = n;
    s->seen++;
}

static numbers read_numbers(void)
{
    numbers s = { 0 };
    for (int i = 0; i < 8; i++) s.last[i] = -1;
    life_count(look, &s);
    CHECK(s.open <= 3);
    return s;
}

static uint64_t csv_rows(const char *path)
{
    size_t bytes = 0;
    uint64_t rows = 0;
    char *text = check_read_file(path, &bytes);
    CHECK_STOP(text != NULL);
    for (char *line = text; line && *line; rows++) {
        char *end = strchr(line, '\n');
        int commas = 0;
        for (char *p = line; p < end; p++) commas += *p == ',';
        CHECK_INT(commas, 14);
        if (!end) break;
        line = end + 1;
    }
    free(text);
    return rows ? rows - 1 : 0;
}

static void snapshots(int policy, size_t arena_bytes)
{
    enum { THREADS = 3 };
    static life_memory memory;
    pthread_t thread[THREADS];
    const char *json = check_path("t.json"), *csv = check_path("t.csv"), *image = check_path("t.npuprof");
    npuprof_damage damage;
    uint64_t last_seen = 0, sum = 0;
    life_begin(policy, arena_bytes, &memory);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK_STOP(!pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i));
    const int rounds = check_is_quick() ? 2 : life_is_slow() ? 3 : 5;
    for (int round = 0; round < rounds && !check_failures_; round++) {
        usleep(2000);
        CHECK_INT(npuprof_dump(json), NPUPROF_OK);
        json_node *t = trace_load(json);
        trace_check_nesting(t);
        CHECK(json_get(t, "metadata.npuprof.lost") != NULL);
        CHECK_INT(npuprof_dump(csv), NPUPROF_OK);
        (void)csv_rows(csv);
        CHECK_INT(npuprof_dump(image), NPUPROF_OK);
        CHECK_INT(npuprof_load(image, &damage), NPUPROF_OK);
        life_check_whole(&damage);
        const npuprof_stats s = stats_now();
        const life_counts c = life_count(NULL, NULL);
        CHECK_UINT(c.slices + c.counters, s.recorded);
        const numbers loaded = read_numbers();
        npuprof_unload();
        const numbers live = read_numbers();
        if (!s.lost) CHECK(loaded.gaps == 0);
        if (policy == NPUPROF_KEEP_NEWEST) CHECK(live.gaps <= 2 * THREADS * (unsigned)(round + 1));
        if (policy == NPUPROF_KEEP_OLDEST) {
            CHECK(live.gaps == 0 && loaded.seen >= last_seen && live.seen >= loaded.seen);
            for (int i = 0; i < THREADS; i++) CHECK(live.last[i] < 0 || live.first[i] == 0);
        } else {
            /* None: all but its newest chunk is gone, and that is still empty. */
            for (int i = 0; i < THREADS; i++) CHECK(live.last[i] < 0 || live.last[i] >= loaded.last[i]);
        }
        last_seen = loaded.seen;
        if (policy == NPUPROF_STREAM && round % 2) CHECK_INT(npuprof_flush(), NPUPROF_OK);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        sum += executed[i];
    }
    if (policy == NPUPROF_STREAM) CHECK_INT(npuprof_flush(), NPUPROF_OK);
    const npuprof_stats s = life_account(sum, true);
    if (policy == NPUPROF_STREAM) life_check_streamed(&memory, s.recorded, s.lost, true);
    for (int i = 0; policy == NPUPROF_STREAM && i < NPUPROF_LOST_COUNT; i++)
        if (s.lost_by_cause[i])
            check_failed_(__FILE__, __LINE__, "%" PRIu64 " lost by cause %d", s.lost_by_cause[i], i);
    if (policy == NPUPROF_KEEP_NEWEST && arena_bytes > 65536)
        CHECK(s.lost_by_cause[NPUPROF_LOST_FULL] <= s.lost_by_cause[NPUPROF_LOST_READING]);
    unlink(json);
    unlink(csv);
    unlink(image);
    printf("note %s: %d snapshots of each format, %" PRIu64 " recorded, %" PRIu64 " lost while reading\n",
           life_policy_names[policy], rounds, s.recorded, s.lost_by_cause[NPUPROF_LOST_READING]);
}

/* Why small when slow: the test's own readers take the time, and under valgrind they share one processor with
   the writers. */
static size_t large(void)
{
    return (size_t)1 << (getenv("NPUPROF_TEST_SLOW") || CHECK_SANITIZED ? 17 : 20);
}

static void keep_oldest(void) { snapshots(NPUPROF_KEEP_OLDEST, large()); }
static void keep_newest(void) { snapshots(NPUPROF_KEEP_NEWEST, large()); }
static void keep_newest_small(void) { snapshots(NPUPROF_KEEP_NEWEST, 65536); }
static void stream(void) { snapshots(NPUPROF_STREAM, large()); }

/* Quiet: every format says the same, live and loaded, to the byte. */
static void live_and_loaded_are_alike(int policy)
{
    static life_memory live, loaded, memory;
    const char *path = check_path("t.npuprof"), *again = check_path("u.npuprof"), *csv = check_path("t.csv"),
               *csv2 = check_path("u.csv");
    npuprof_damage damage;
    char name[32];
    life_begin(policy, 65536, &memory);
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "name %d", i % 40);
        PROF_INFERENCE(name);
        { PROF_OPERATOR(i, name); PROF_INSTANT("c", "i", PROF_NO_ARGS); }
        PROF_SCOPE_ARGS(
            "c", "args",
            PROF_ARGS(PROF_INT("i", -i), PROF_REAL("x", 1.5), PROF_STR("s", "text of some length"),
                      PROF_BOOL("b", true)));
        PROF_MEMORY(NULL, (unsigned)i, 1000u, "tag");
    }
    npuprof_stop();
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    CHECK_INT(npuprof_write_json(life_sink(&live)), NPUPROF_OK);
    CHECK_INT(npuprof_dump(csv), NPUPROF_OK);
    const npuprof_stats before = stats_now();
    CHECK_INT(npuprof_load(path, &damage), NPUPROF_OK);
    const npuprof_stats after = stats_now();
    CHECK_INT(npuprof_write_json(life_sink(&loaded)), NPUPROF_OK);
    CHECK_INT(npuprof_dump(csv2), NPUPROF_OK);
    CHECK_INT(npuprof_dump(again), NPUPROF_OK);
    npuprof_unload();
    CHECK_UINT(damage.places, 0);
    CHECK_UINT(after.recorded, before.recorded);
    CHECK_UINT(after.lost, before.lost);
    for (int i = 0; i < NPUPROF_LOST_COUNT; i++) CHECK_UINT(after.lost_by_cause[i], before.lost_by_cause[i]);
    CHECK_UINT(after.threads, before.threads);
    CHECK(after.bytes_used <= after.bytes_total);
    if (live.count != loaded.count || memcmp(live.bytes, loaded.bytes, live.count) != 0) {
        size_t at = 0;
        while (at < live.count && at < loaded.count && live.bytes[at] == loaded.bytes[at]) at++;
        check_failed_(__FILE__, __LINE__, "live and loaded differ at %zu: %.60s | %.60s", at,
                      (char *)live.bytes + at,
                      (char *)loaded.bytes + at);
    }
    size_t n1 = 0, n2 = 0;
    char *one = check_read_file(csv, &n1), *two = check_read_file(csv2, &n2);
    CHECK(n1 > 1000 && n1 == n2 && memcmp(one, two, n1) == 0);
    /* The image of an image is as good. */
    CHECK_INT(npuprof_load(again, &damage), NPUPROF_OK);
    CHECK_UINT(damage.places, 0);
    loaded.count = 0;
    CHECK_INT(npuprof_write_json(life_sink(&loaded)), NPUPROF_OK);
    CHECK(live.count == loaded.count && memcmp(live.bytes, loaded.bytes, live.count) == 0);
}

static void alike_keep_oldest(void) { live_and_loaded_are_alike(NPUPROF_KEEP_OLDEST); }
static void alike_keep_newest(void) { live_and_loaded_are_alike(NPUPROF_KEEP_NEWEST); }

CHECK_MAIN(CASE_THOROUGH(keep_oldest), CASE_THOROUGH(keep_newest), CASE(keep_newest_small),
           CASE_THOROUGH(stream), CASE(alike_keep_oldest), CASE(alike_keep_newest))

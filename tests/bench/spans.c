/* What recording costs, as a ratio to the floor. Floor and library alternate in batches of 2,000.
   SPDX-License-Identifier: MIT usage: spans hot | sustained POLICY SPANS | fresh KIND | threads
   | device | names | process POLICY SPANS PATH | image SPANS PATH [args] */
#include "bench.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"

enum { ROUNDS = 301, MAX_ROUNDS = 100000, MIB = 1024 * 1024 };
static double ratio[MAX_ROUNDS], base_ns[MAX_ROUNDS];

static int64_t volatile n = 1;
static char run_time_name[32] = "a run-time name";
static npuprof_npu npu;
static uint32_t volatile bar[32];
LOOP(empty, )
LOOP(span, PROF_SCOPE("span"); BARRIER())
LOOP(one_argument, PROF_SCOPE_ARGS("bench", "span", PROF_ARGS(PROF_INT("n", n))); BARRIER())
LOOP(four_arguments, PROF_SCOPE_ARGS("bench", "span",
                                     PROF_ARGS(PROF_INT("a", n), PROF_INT("b", n), PROF_REAL("c", 3),
                                               PROF_BOOL("d", true))); BARRIER())
LOOP(named, WITH_BASE_PROFILER(NULL, run_time_name, NULL, PROF_NO_ARGS, BARRIER()))
LOOP(constant, WITH_BASE_PROFILER(NULL, "a constant", "bench", PROF_NO_ARGS, BARRIER()))
LOOP(by_hand, PROF_BEGIN(NULL, run_time_name); BARRIER(); PROF_END())
LOOP(instant, PROF_INSTANT("bench", "moment", PROF_NO_ARGS))
LOOP(counter, PROF_COUNTER("value", n))
static BENCH_NOINLINE uint64_t phases(void)
{
    const uint64_t start = bench_ticks();
    PROF_PHASES("first");
    for (int i = 0; i < BATCH; i++) {
        PROF_NEXT("next");
        BARRIER();
    }
    return bench_ticks() - start;
}

static void interleave(const char *name, uint64_t (*f)(void), int rounds, double limit)
{
    const double scale = bench_ns_per_tick() / BATCH;
    f();
    for (int r = 0; r < rounds; r++) {
        const double base = (double)bench_floor();
        ratio[r] = (double)f() / base;
        base_ns[r] = base * scale;
    }
    qsort(base_ns, (size_t)rounds, sizeof *base_ns, bench_by_value);
    qsort(ratio, (size_t)rounds, sizeof *ratio, bench_by_value);
    bench_row(name, ratio, rounds, "x floor", limit, ratio[rounds / 2] * base_ns[rounds / 2]);
}

static int ignore(void *user, const void *bytes, size_t count)
{
    (void)user;
    (void)bytes;
    (void)count;
    return 0;
}

static npuprof_desc desc;
static void init(int when_full, size_t mib, bool populate)
{
    desc.when_full = when_full;
    desc.arena_bytes = mib * MIB;
    desc.arena = mmap(NULL, desc.arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    desc.populate = populate;
    if (desc.sink.write == NULL) desc.sink.write = ignore;
    if (desc.arena == MAP_FAILED || npuprof_init(&desc) != NPUPROF_OK) exit(2);
}

static void hot(const char *where)
{
    init(NPUPROF_KEEP_OLDEST, 256, true);
    npuprof_start(1);
    if (*where) {
        interleave(where, span, ROUNDS, 1.10);
        return;
    }
    interleave("span", span, ROUNDS, 0);
    interleave("PROF_NEXT", phases, ROUNDS, 0.52);
    interleave("span, 1 int64 argument", one_argument, ROUNDS, 1.05);
    interleave("span, 4 arguments", four_arguments, ROUNDS, 0);
    interleave("span, run-time name already interned", named, ROUNDS, 1.3);
    interleave("WITH_BASE_PROFILER, constant name", constant, ROUNDS, 0);
    interleave("PROF_BEGIN/PROF_END, run-time name", by_hand, ROUNDS, 0);
    interleave("instant", instant, ROUNDS, 0);
    interleave("counter", counter, ROUNDS, 0);
    npuprof_stop();
    const double scale = bench_ns_per_tick() / BATCH;
    for (int r = 0; r < ROUNDS; r++) {
        const double bare = (double)empty();
        ratio[r] = ((double)span() - bare) * scale;
    }
    bench_row("disabled at run time, over the bare loop", ratio, ROUNDS, "ns", 0.7, 0);
}

/* A device whose registers are an array, which the benchmark counts up itself; a completion ring in memory,
   filled by it, too. */
static void tick(void) { bar[0] = (uint32_t)(bench_ticks() / 16); }

enum { KERNELS = 200, DEVICE_ROUNDS = 101 };
static BENCH_NOINLINE uint64_t only_ticks(void)
{
    const uint64_t start = bench_ticks();
    for (int i = 0; i < 2 * KERNELS; i++) tick();
    return bench_ticks() - start;
}

static BENCH_NOINLINE uint64_t npu_spans(void)
{
    const uint64_t start = bench_ticks();
    for (int i = 0; i < KERNELS; i++) {
        tick();
        WITH_NPU_PROFILER(&npu, 0, "kernel", NULL, PROF_NO_ARGS, tick());
    }
    return bench_ticks() - start;
}

static void device(void)
{
    enum { COUNT = 256, ENTRY = 24, RECORDS = 100 };
    static uint8_t ring[COUNT * ENTRY];
    npuprof_npu_desc d;
    init(NPUPROF_KEEP_NEWEST, 16, true);
    memset(&d, 0, sizeof d);
    d.name = "array";
    d.bar = (const volatile void *)bar;
    d.bar_bytes = sizeof bar;
    d.counter.bits = 32;
    d.counter.order = NPUPROF_NPU_SINGLE;
    tick();
    if (npuprof_npu_open(&npu, &d) != NPUPROF_OK) exit(2);
    npuprof_start(1);
    const double scale = bench_ns_per_tick();
    double anchor[DEVICE_ROUNDS], drain[DEVICE_ROUNDS];
    for (int r = 0; r < DEVICE_ROUNDS; r++) {
        const double bare = (double)only_ticks();
        ratio[r] = ((double)npu_spans() - bare) * scale / KERNELS;
        tick();
        const uint64_t start = bench_ticks();
        (void)npuprof_npu_sync(&npu);
        anchor[r] = (double)(bench_ticks() - start) * scale;
    }
    bench_row("WITH_NPU_PROFILER on an array", ratio, DEVICE_ROUNDS, "ns", 0, 0);
    bench_row("npuprof_npu_sync, one anchor", anchor, DEVICE_ROUNDS, "ns", 0, 0);
    npuprof_npu_close(&npu);
    d.ring.memory = ring;
    d.ring.memory_bytes = sizeof ring;
    d.ring.entry_bytes = ENTRY;
    d.ring.count = COUNT;
    d.ring.producer.offset = 64;
    d.ring.sequence.offset = 0, d.ring.sequence.width_bytes = 4;
    d.ring.start.offset = 8, d.ring.start.width_bytes = 8;
    d.ring.end.offset = 16, d.ring.end.width_bytes = 8;
    if (npuprof_npu_open(&npu, &d) != NPUPROF_OK) exit(2);
    /* Why: a counter that stood still may be one that began anew; the library does not guess. */
    tick();
    (void)npuprof_npu_sync(&npu);
    uint32_t produced = 0;
    for (int r = 0; r < DEVICE_ROUNDS; r++) {
        for (int i = 0; i < RECORDS; i++, produced++) {
            uint8_t *const e = ring + (size_t)(produced % COUNT) * ENTRY;
            const uint64_t from = bar[0] - 20u, to = bar[0] - 10u;
            memcpy(e, &produced, 4);
            memcpy(e + 8, &from, 8);
            memcpy(e + 16, &to, 8);
        }
        bar[16] = produced;
        tick();
        const uint64_t start = bench_ticks();
        (void)npuprof_npu_drain(&npu);
        drain[r] = (double)(bench_ticks() - start) * scale / RECORDS;
    }
    bench_row("npuprof_npu_drain, each of 100 records", drain, DEVICE_ROUNDS, "ns", 0, 0);
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    if (stats.lost_by_cause[NPUPROF_LOST_RING]) exit(3);
    npuprof_npu_close(&npu);
}

static void sustained(int policy, int spans)
{
    static const char *const names[] = { "span, sustained, keep-oldest", "span, sustained, keep-newest",
                                         "span, sustained, stream, sink returns at once" };
    static const double limits[] = { 1.03, 1.06, 1.03 };
    const int rounds = spans / BATCH < MAX_ROUNDS ? spans / BATCH : MAX_ROUNDS;
    init(policy, policy == NPUPROF_KEEP_OLDEST ? (size_t)rounds * BATCH * 16 / MIB * 6 / 5 + 16 : 16, true);
    npuprof_start(1);
    interleave(names[policy], span, rounds - 1, limits[policy]);
}

/* Fills an arena once. kind 0: the static one; 1: the same, populated; 2: 64 MiB; 3: the same, populated.
   The mean is all of it: the median does not see the batch in which a huge page is zeroed. */
static void fresh(int kind)
{
    static const char *const names[] = { "span, fresh default arena", "span, populated default arena",
                                         "span, fresh 64 MiB", "span, populated 64 MiB" };
    const bool populate = kind & 1;
    const int rounds = (kind < 2 ? 880000 : 3400000) / BATCH - 1;
    double before = bench_ns(CLOCK_MONOTONIC), took, sum = 0;
    char text[80];
    desc.populate = populate;
    if (kind >= 2) init(NPUPROF_KEEP_OLDEST, 64, populate);
    else if (npuprof_init(&desc) != NPUPROF_OK) exit(2);
    took = (bench_ns(CLOCK_MONOTONIC) - before) / 1e6;
    npuprof_start(1);
    interleave(names[kind], span, rounds, populate ? 1.05 : 0);
    for (int r = 0; r < rounds; r++) sum += ratio[r];
    sum /= rounds;
    snprintf(text, sizeof text, "%s, mean", names[kind]);
    bench_row(text, &sum, 1, "x floor", 0, 0);
    snprintf(text, sizeof text, "%s, resident", names[kind]);
    double resident = bench_resident_mib();
    bench_row(text, &resident, 1, "MiB", 0, 0);
    if (populate) {
        snprintf(text, sizeof text, "%s, at the start", names[kind]);
        bench_row(text, &took, 1, "ms", 0, 0);
    }
}

static pthread_barrier_t barrier;
typedef struct half { int cpu; double ratio[ROUNDS * 4]; } half;
static void *record_half(void *user)
{
    half *h = (half *)user;
    bench_pin(h->cpu);
    span();
    for (int r = 0; r < ROUNDS * 4; r++) {
        pthread_barrier_wait(&barrier);
        const double base = (double)bench_floor();
        pthread_barrier_wait(&barrier);
        h->ratio[r] = (double)span() / base;
    }
    return NULL;
}

static void threads(void)
{
    static half halves[2];
    init(NPUPROF_KEEP_NEWEST, 64, true);
    npuprof_start(1);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_t t[2];
    for (int i = 0; i < 2; i++) {
        halves[i].cpu = i;
        pthread_create(&t[i], NULL, record_half, &halves[i]);
    }
    for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
    bench_row("span, 2 threads at once, thread 1", halves[0].ratio, ROUNDS * 4, "x floor", 1.05, 0);
    bench_row("span, 2 threads at once, thread 2", halves[1].ratio, ROUNDS * 4, "x floor", 1.05, 0);
}

/* CPU of the whole process, in ns a span; one number, for run.py to compare. */
static void process(int policy, long spans, const char *path)
{
    struct rusage from, to;
    desc.output_path = path;
    desc.sink.write = NULL;
    desc.when_full = policy;
    desc.populate = true;
    if (npuprof_init(&desc) != NPUPROF_OK) exit(2);
    npuprof_start(1);
    getrusage(RUSAGE_SELF, &from);
    for (long i = 0; i < spans / BATCH; i++) span();
    if (npuprof_flush() != NPUPROF_OK) exit(2);
    getrusage(RUSAGE_SELF, &to);
    const double us = (double)(to.ru_utime.tv_sec - from.ru_utime.tv_sec + to.ru_stime.tv_sec
                               - from.ru_stime.tv_sec) * 1e6 +
                      (double)(to.ru_utime.tv_usec - from.ru_utime.tv_usec + to.ru_stime.tv_usec
                               - from.ru_stime.tv_usec);
    printf("%.6f\n", us * 1000 / (double)(spans / BATCH * BATCH));
    fflush(stdout);
    if (policy != NPUPROF_STREAM) _exit(0);
}

/* What of a full arena of 1 MiB does not hold spans, when these have ten names. */
static void names(void)
{
    char name[16];
    npuprof_stats stats;
    init(NPUPROF_KEEP_OLDEST, 1, true);
    npuprof_start(1);
    for (int i = 0; i < 70000; i++) {
        snprintf(name, sizeof name, "name %d", i % 10);
        PROF_BEGIN(NULL, name);
        PROF_END();
    }
    npuprof_get_stats(&stats);
    if (stats.recorded + stats.lost != 70000 || !stats.lost) exit(2);
    double rest = 100 - (double)stats.recorded * 16 * 100 / MIB;
    bench_row("full 1 MiB, ten names: not for spans", &rest, 1, "% of bytes", 5, 0);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "threads") != 0) bench_pin(1);
    if (strcmp(mode, "hot") == 0) hot(argc > 2 ? argv[2] : "");
    else if (strcmp(mode, "device") == 0) device();
    else if (strcmp(mode, "names") == 0) names();
    else if (strcmp(mode, "sustained") == 0 && argc > 3) sustained(atoi(argv[2]), atoi(argv[3]));
    else if (strcmp(mode, "fresh") == 0 && argc > 2) fresh(atoi(argv[2]) & 3);
    else if (strcmp(mode, "threads") == 0) threads();
    else if (strcmp(mode, "process") == 0 && argc > 4) process(atoi(argv[2]), atol(argv[3]), argv[4]);
    else if (strcmp(mode, "image") == 0 && argc > 3) {
        const long spans = atol(argv[2]);
        init(NPUPROF_KEEP_OLDEST, (size_t)spans * (argc > 4 ? 32 : 16) / MIB * 6 / 5 + 16, true);
        npuprof_start(1);
        for (long i = 0; i < spans / BATCH; i++) (void)(argc > 4 ? one_argument() : span());
        if (npuprof_dump(argv[3]) != NPUPROF_OK) return 2;
    } else return 2;
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    if (stats.lost && strcmp(mode, "sustained") == 0 && atoi(argv[2]) != NPUPROF_KEEP_NEWEST) return 3;
    return 0;
}

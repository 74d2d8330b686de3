/* What each kind of record costs: recorded, over the floor; and written as JSON, over a plain span.
   SPDX-License-Identifier: MIT usage: kinds [PART OF A NAME]
   Each kind has a process of its own with a fresh arena. Recording: batches in turn with the floor, as in
   spans.c. JSON: CPU time of npuprof_write_json() into /dev/null, in ns for each event of the JSON, over
   that of plain spans; and npuprof_dump() to /dev/shm over write(2) of the same bytes in pieces of 256 KiB.
   Two flows are an arrow, of two events; a PROF_ALLOC is a counter and an instant. PROF_INFERENCE armed: with
   a trigger that never comes true, over the unarmed one; on two threads, in CPU time of both. */
#include "bench.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

enum { ROUNDS = 101, EVENTS = 100 * BATCH, WRITES = 15, PIECE = 256 * 1024, MIB = 1024 * 1024 };
static int64_t volatile n = 12345;
static uint64_t job;
static double volatile real = 0.1234567890123;
static const char *volatile text = "decoder.layer.7";

LOOP(plain, PROF_SCOPE("span"); BARRIER())
LOOP(one_integer, PROF_SCOPE_ARGS("bench", "span", PROF_ARGS(PROF_INT("n", n))); BARRIER())
LOOP(four_integers, PROF_SCOPE_ARGS("bench", "span", PROF_ARGS(PROF_INT("bytes", n), PROF_INT("batch", n),
                                                               PROF_UINT("layer", (uint64_t)n),
                                                               PROF_INT("status", 0))); BARRIER())
LOOP(one_real, PROF_SCOPE_ARGS("bench", "span", PROF_ARGS(PROF_REAL("load", real + i))); BARRIER())
LOOP(one_string, PROF_SCOPE_ARGS("bench", "span", PROF_ARGS(PROF_STR("op", text))); BARRIER())
LOOP(instant, PROF_INSTANT("bench", "moment", PROF_NO_ARGS))
LOOP(counter, PROF_COUNTER("value", n))
LOOP(flow, PROF_SCOPE("span"); PROF_FLOW_OUT(++job); PROF_FLOW_IN(job))
LOOP(flow_out, PROF_FLOW_OUT((uint64_t)i))
LOOP(async, npuprof_async_begin("bench", "job", ++job); npuprof_async_end(job))
LOOP(async_begin, npuprof_async_begin("bench", "job", (uint64_t)i))
LOOP(memory, PROF_ALLOC(NULL, 64, "tensor"))
LOOP(result, PROF_SCOPE("span"); PROF_RESULT(PROF_INT("status", n)))
LOOP(inference, PROF_INFERENCE("inference"); BARRIER())
static BENCH_NOINLINE uint64_t finished(void)
{
    const int64_t now = npuprof_now_ns();
    const uint64_t start = bench_ticks();
    for (int i = 0; i < BATCH; i++) {
        npuprof_span("queue", "bench", "copy", now + i, now + i + 1, PROF_NO_ARGS);
        BARRIER();
    }
    return bench_ticks() - start;
}

/* record, json: limits of the two ratios. 0: none; below 0: not measured. file: of the file's. */
typedef struct kind { const char *name; uint64_t (*batch)(void); double record, json, file; } kind;
static const kind kinds[] = {
    { "span", plain, 0, 0, 1.4 },           { "span, 1 integer", one_integer, 0, 3, 1.4 },
    { "span, 4 integers", four_integers, 0, 3, 0 }, { "span, 1 real", one_real, 0, 4, 0 },
    { "span, 1 string", one_string, 2, 4, 0 }, { "instant", instant, 0, 3, 0 },
    { "counter", counter, 0, 3, 0 },        { "span, flow out and in", flow, 0, 3, 0 },
    { "flow out", flow_out, 0, -1, 0 },     { "async begin and end", async, 0, 3, 0 },
    { "async begin", async_begin, 2, -1, 0 }, { "PROF_ALLOC", memory, 1.6, 3, 0 },
    { "span, PROF_RESULT", result, 0, 3, 0 }, { "npuprof_span", finished, 2.5, 3, 0 },
    { "PROF_INFERENCE", inference, 0, 0, 0 },
};

static double *shared;                     /* [0]: JSON of a plain span, ns; [1, 2]: PROF_INFERENCE unarmed */
static double values[3][ROUNDS];

static double cpu_ns(void) { return bench_ns(CLOCK_PROCESS_CPUTIME_ID); }

static void init(size_t mib, const npuprof_capture *capture)
{
    npuprof_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.arena_bytes = mib * MIB;
    desc.arena = mmap(NULL, desc.arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    desc.populate = true;
    desc.capture = capture;
    if (desc.arena == MAP_FAILED || npuprof_init(&desc) != NPUPROF_OK) exit(2);
    npuprof_start(1);
}

/* ---- Where JSON goes */

static bench_memory json;

static double timed_write(const char *path)
{
    unlink(path);
    const double start = cpu_ns();
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    for (size_t at = 0; at < json.count; at += PIECE)
        if (bench_to_fd(&fd, json.bytes + at, json.count - at < PIECE ? json.count - at : PIECE)) exit(2);
    close(fd);
    const double took = cpu_ns() - start;
    unlink(path);
    return took;
}

static double timed_dump(const char *path)
{
    const double start = cpu_ns();
    if (npuprof_dump(path) != NPUPROF_OK) exit(2);
    const double took = cpu_ns() - start;
    unlink(path);
    return took;
}

/* ---- Rows */

static void row(const char *what, const char *name, double *list, int count, const char *unit, double limit,
                double ns)
{
    char whole[100];
    snprintf(whole, sizeof whole, "%s: %s", what, name);
    bench_row(whole, list, count, unit, limit, ns);
}

static void write_rows(const kind *k)
{
    char path[100];
    int null = open("/dev/null", O_WRONLY);
    const npuprof_sink sink = { bench_to_fd, &null }, memory = { bench_to_memory, &json };
    const char *const folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ".";
    json.room = (size_t)EVENTS * 700;
    json.bytes = (char *)mmap(NULL, json.room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (npuprof_write_json(memory) != NPUPROF_OK) exit(2);
    size_t events = 0;
    for (const char *at = json.bytes; (at = strstr(at, "\n{\"ph\"")) != NULL; at++) events++;
    snprintf(path, sizeof path, "%s/npuprof-bench-%d.json", folder, (int)getpid());
    for (int i = 0; i < WRITES; i++) {
        const double start = cpu_ns();
        if (npuprof_write_json(sink) != NPUPROF_OK) exit(2);
        values[0][i] = values[1][i] = (cpu_ns() - start) / (double)events;
        const double raw = timed_write(path);
        values[2][i] = timed_dump(path) / raw;
    }
    row("json", k->name, values[0], WRITES, "ns", 0, 0);
    const double ns = values[0][WRITES / 2];
    if (k == kinds) shared[0] = ns;
    for (int i = 0; i < WRITES; i++) values[1][i] /= shared[0];
    if (shared[0] > 0 && k != kinds)
        row("json", k->name, values[1], WRITES, "x plain span", k->json, ns);
    row("json file / write", k->name, values[2], WRITES, "x write", k->file, 0);
}

static void measure(const kind *k)
{
    const double scale = bench_ns_per_tick() / BATCH;
    init((size_t)EVENTS * 8 * 16 / MIB + 64, NULL);
    k->batch();
    for (int r = 0; r < ROUNDS; r++) {
        const double base = (double)bench_floor(), own = (double)k->batch();
        values[0][r] = own / base;
        values[1][r] = own * scale;
    }
    qsort(values[1], ROUNDS, sizeof *values[1], bench_by_value);
    row("record", k->name, values[0], ROUNDS, "x floor", k->record, values[1][ROUNDS / 2]);
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    if (stats.lost) exit(3);
    if (k->json >= 0) write_rows(k);
}

/* ---- Capture control */

static pthread_barrier_t barrier;
static void *infer(void *cpu)
{
    bench_pin(*(int *)cpu);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 5; i++) inference();
    return NULL;
}

/* CPU time of a PROF_INFERENCE, of so many threads at once. */
static void measure_armed(int threads, bool armed)
{
    npuprof_capture capture;
    char name[60];
    memset(&capture, 0, sizeof capture);
    capture.trigger = "inference>1h";
    init(64, armed ? &capture : NULL);
    for (int r = -1; r < WRITES; r++) {
        pthread_t t[2];
        int cpus[2] = { 0, 1 };
        npuprof_clear();
        pthread_barrier_init(&barrier, NULL, (unsigned)threads);
        const double start = cpu_ns();
        for (int i = 0; i < threads; i++) pthread_create(&t[i], NULL, infer, &cpus[i]);
        for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
        if (r >= 0) values[0][r] = values[1][r] = (cpu_ns() - start) / (5.0 * BATCH * threads);
    }
    snprintf(name, sizeof name, "PROF_INFERENCE, %d threads%s", threads, armed ? ", armed" : "");
    row("record", name, values[0], WRITES, "ns", 0, 0);
    if (!armed) shared[threads] = values[0][WRITES / 2];
    for (int r = 0; r < WRITES; r++) values[1][r] /= shared[threads];
    if (armed) row("record", name, values[1], WRITES, "x unarmed", 1.3, values[0][WRITES / 2]);
}

/* Runs one in a process of its own. */
static void apart(const kind *k, int threads, bool armed)
{
    int status;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        if (k) measure(k);
        else measure_armed(threads, armed);
        fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status) exit(2);
}

int main(int argc, char **argv)
{
    const char *const part = argc > 1 ? argv[1] : "";
    shared = (double *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bench_pin(1);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (i == 0 || strstr(kinds[i].name, part)) apart(&kinds[i], 0, false);
    for (int threads = 1; threads <= 2 && strstr("PROF_INFERENCE, armed", part); threads++) {
        apart(NULL, threads, false);
        apart(NULL, threads, true);
    }
    return 0;
}

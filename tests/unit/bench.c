/* npuprof_bench: counts, latencies, spread, groups, the cache, the host's clock, a device's and one's own,
   records
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include <math.h>
#include "fake_clock.h"
#include "npuprof.h"
#include "npuprof_npu.h"

/* An operator that takes the times of a list, one after the other, the last one for ever. */
typedef struct timed { unsigned runs, count, fail_at; uint64_t ns[128]; intptr_t streams[64]; } timed;
static int run_timed(void *user, intptr_t stream)
{
    timed *t = (timed *)user;
    fake_ticks += t->ns[t->runs < t->count ? t->runs : t->count - 1];
    if (t->runs < 64) t->streams[t->runs] = stream;
    return ++t->runs == t->fail_at ? 5 : 0;
}

static bool near(double got, double wanted) { return fabs(got - wanted) < 1e-9 * (1 + fabs(wanted)); }
#define CHECK_REAL(got, wanted) \
    do { \
        const double g_ = (got), w_ = (wanted); \
        if (!near(g_, w_)) check_failed_(__FILE__, __LINE__, "%s is %.12g, not %.12g", #got, g_, w_); \
    } while (0)

static npuprof_bench_result bench(const npuprof_bench_desc *desc)
{
    npuprof_bench_result r;
    CHECK_INT(npuprof_bench(desc, &r), NPUPROF_OK);
    return r;
}

/* 10 runs before, 10 runs in 1 repeat; nothing has to be started. */
static void defaults(void)
{
    static timed t = { .count = 11,
                       .ns = { 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 2500 } };
    const npuprof_bench_op op = { run_timed, &t, 0, 4096 };
    const npuprof_bench_desc desc = { .ops = &op };
    const npuprof_bench_result r = bench(&desc);
    CHECK_UINT(t.runs, 20);
    CHECK_INT(r.repeat, 1);
    CHECK_REAL(r.latency_us[0], 2.5);
    CHECK_REAL(r.mean_us, 2.5);
    CHECK(!r.unstable && !r.cached && r.spread == 0);
    CHECK_UINT(r.workspace_bytes, 4096);
    CHECK_UINT(npuprof_bench_size(), 0);       /* no key */
}

/* Each repeat is the mean of its runs; the spread is that of the repeats. */
static void repeats(void)
{
    static timed t = { .count = 9, .ns = { 50000, 1000, 3000, 1000, 1000, 4000, 2000, 1500, 1500 } };
    const npuprof_bench_op op = { run_timed, &t, 0, 0 };
    npuprof_bench_desc desc = { .ops = &op, .warmup = 1, .number = 2, .repeat = 4 };
    npuprof_bench_result r = bench(&desc);
    CHECK_UINT(t.runs, 9);
    CHECK_REAL(r.latency_us[0], 2);
    CHECK_REAL(r.latency_us[1], 1);
    CHECK_REAL(r.latency_us[2], 3);
    CHECK_REAL(r.latency_us[3], 1.5);
    CHECK_REAL(r.mean_us, 1.875);
    CHECK_REAL(r.median_us, 1.75);
    CHECK_REAL(r.min_us, 1);
    CHECK_REAL(r.max_us, 3);
    CHECK_REAL(r.spread, 2 / 1.75);
    CHECK(r.unstable);
    t = (timed){ .count = 3, .ns = { 1000, 1050, 1100 } };
    desc.warmup = -1;
    desc.number = 1;
    desc.repeat = 3;
    r = bench(&desc);
    CHECK_UINT(t.runs, 3);
    CHECK_REAL(r.spread, 100 / 1050.0);
    CHECK(!r.unstable);
    desc.repeat = NPUPROF_BENCH_REPEATS;
    t.runs = 0;
    r = bench(&desc);
    CHECK_REAL(r.latency_us[NPUPROF_BENCH_REPEATS - 1], 1.1);
}

/* A group: all operators once in a run, each on its stream, the workspaces added. Work in queues is over when
   wait returns. */
static unsigned waits;
static uint64_t queued_ns;
static int enqueue(void *user, intptr_t stream)
{
    (void)stream;
    queued_ns += *(const uint64_t *)user;
    return 0;
}

static int wait_for_all(void *user)
{
    CHECK_STR((const char *)user, "queues");
    waits++;
    fake_ticks += queued_ns;
    queued_ns = 0;
    return 0;
}

static void groups(void)
{
    static timed t = { .count = 1, .ns = { 10 } };
    const npuprof_bench_op three[] = { { run_timed, &t, -1, 100 }, { run_timed, &t, 2, 20 },
                                       { run_timed, &t, 3, 3 } };
    npuprof_bench_desc desc = { .ops = three, .op_count = 3, .warmup = -1, .number = 2, .repeat = 2 };
    npuprof_bench_result r = bench(&desc);
    CHECK_UINT(t.runs, 12);
    CHECK_REAL(r.latency_us[1], 0.03);
    CHECK_UINT(r.workspace_bytes, 123);
    for (int i = 0; i < 12; i++) CHECK_INT(t.streams[i], i % 3 == 0 ? -1 : i % 3 + 1);
    uint64_t ns = 700;
    const npuprof_bench_op queued[] = { { enqueue, &ns, 0, 0 }, { enqueue, &ns, 1, 0 } };
    const npuprof_device device = { "npu0", wait_for_all, (void *)(size_t)"queues", false };
    desc = (npuprof_bench_desc){ .ops = queued, .op_count = 2, .repeat = 3, .device = &device };
    r = bench(&desc);
    CHECK_REAL(r.mean_us, 1.4);
    CHECK_UINT(waits, 6);
}

/* By key and settings; a result from the cache runs nothing; the last 32 are kept. */
static void cache(void)
{
    static timed t = { .count = 1, .ns = { 1000 } };
    npuprof_bench_op ops[2] = { { run_timed, &t, 0, 8 }, { run_timed, &t, 1, 8 } };
    const npuprof_device device = { "npu0", NULL, NULL, false };
    npuprof_bench_desc desc = { .key = "conv", .ops = ops };
    bench(&desc);
    t.ns[0] = 77000;
    const unsigned before = t.runs;
    npuprof_bench_result r = bench(&desc);
    CHECK(r.cached && t.runs == before);
    CHECK_REAL(r.latency_us[0], 1);
    CHECK_UINT(r.workspace_bytes, 8);
    desc.warmup = 10;
    desc.number = 10;
    desc.repeat = 1;
    CHECK(bench(&desc).cached);                    /* the defaults said aloud */
    for (int i = 0; i < 7; i++) {
        npuprof_bench_desc other = desc;
        if (i == 0) other.warmup = 9;
        if (i == 1) other.number = 11;
        if (i == 2) other.repeat = 2;
        if (i == 3) other.key = "conv2";
        if (i == 4) other.op_count = 2;
        if (i == 5) ops[0].stream = 4;
        if (i == 6) other.device = &device;
        CHECK(!bench(&other).cached);
        CHECK(bench(&other).cached);
        ops[0].stream = 0;
    }
    CHECK_UINT(npuprof_bench_size(), 8);
    npuprof_bench_reset();
    CHECK_UINT(npuprof_bench_size(), 0);
    CHECK(!bench(&desc).cached);
    char key[80];
    for (int i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "op %d", i);
        desc.key = key;
        bench(&desc);
    }
    CHECK_UINT(npuprof_bench_size(), 32);
    for (int i = 39; i >= 8; i--) {
        snprintf(key, sizeof key, "op %d", i);
        CHECK(bench(&desc).cached);
    }
    snprintf(key, sizeof key, "op 7");
    CHECK(!bench(&desc).cached);
    memset(key, 'x', 70);                         /* too long to be kept */
    key[70] = 0;
    CHECK(!bench(&desc).cached);
    CHECK(!bench(&desc).cached);
}

static npuprof_result own_read(void *user, uint64_t *ticks)
{
    if (*(int *)user) return NPUPROF_ERR_NPU_DEAD;
    *ticks = fake_ticks / 8;
    return NPUPROF_OK;
}

static npuprof_result own_ns(void *user, uint64_t from, uint64_t to, double *ns)
{
    (void)user;
    *ns = 8.0 * (double)(to - from);
    return NPUPROF_OK;
}

static void mistakes(void)
{
    static timed t = { .count = 1, .ns = { 1000 } };
    npuprof_bench_op op = { run_timed, &t, 0, 0 };
    npuprof_bench_desc good = { .key = "k", .ops = &op }, bad;
    npuprof_bench_result r;
    CHECK_INT(npuprof_bench(&good, NULL), NPUPROF_ERR_ARGUMENT);
    CHECK_INT(npuprof_bench(NULL, &r), NPUPROF_ERR_ARGUMENT);
    for (int i = 0; i < 7; i++) {
        bad = good;
        if (i == 0) bad.ops = NULL;
        if (i == 1) bad.warmup = -2;
        if (i == 2) bad.number = -1;
        if (i == 3) bad.repeat = -1;
        if (i == 4) bad.repeat = NPUPROF_BENCH_REPEATS + 1;
        if (i == 5) bad.clock.read = own_read;
        if (i == 6) op.run = NULL;
        memset(&r, 1, sizeof r);
        CHECK_INT(npuprof_bench(&bad, &r), NPUPROF_ERR_ARGUMENT);
        CHECK(r.repeat == 0 && r.latency_us[0] == 0 && !r.cached);
        op.run = run_timed;
    }
    CHECK_UINT(t.runs, 0);
    for (unsigned at = 3; at <= 13; at += 10) {    /* fails in the warm-up; in the second run of the repeat */
        t.runs = 0;
        t.fail_at = at;
        CHECK_INT(npuprof_bench(&good, &r), NPUPROF_ERR_BENCH);
        CHECK(t.runs == at && r.repeat == 0);
    }
    CHECK_UINT(npuprof_bench_size(), 0);
    t.fail_at = 0;
    int dead = 0;
    good.clock = (npuprof_bench_clock){ own_read, own_ns, &dead };
    CHECK_INT(npuprof_bench(&good, &r), NPUPROF_OK);
    CHECK_REAL(r.mean_us, 1);
    npuprof_bench_reset();
    dead = 1;
    CHECK_INT(npuprof_bench(&good, &r), NPUPROF_ERR_NPU_DEAD);
}

/* A device whose counter runs at 250 MHz and says so wrongly: what counts is its measured rate. */
static uint64_t quarter(void *user)
{
    (void)user;
    return 5000 + (fake_ticks += 4) / 4;
}

static void device_clock(void)
{
    static npuprof_npu npu;
    static timed t = { .count = 1, .ns = { 40000 } };
    const npuprof_npu_desc device = { .name = "npu0", .read_ticks = quarter, .counter = { .hz = 900000000 } };
    CHECK_INT(npuprof_npu_open(&npu, &device), NPUPROF_OK);
    fake_ticks += 100000000;
    CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
    const npuprof_bench_op op = { run_timed, &t, 0, 0 };
    npuprof_bench_desc desc = { .key = "on the device", .ops = &op, .number = 1000, .repeat = 3,
                                .clock = npuprof_npu_clock(&npu) };
    const npuprof_bench_result r = bench(&desc);
    CHECK(fabs(r.mean_us - 40) < 0.001 && r.spread < 0.001 && !r.unstable);
    desc.clock = (npuprof_bench_clock){ NULL, NULL, NULL };
    CHECK(!bench(&desc).cached);                  /* another clock is another setting */
    npuprof_npu_close(&npu);
    desc.clock = npuprof_npu_clock(&npu);
    desc.key = NULL;
    npuprof_bench_result closed;
    CHECK(npuprof_bench(&desc, &closed) != NPUPROF_OK);
}

static int run_inference(void *user, intptr_t stream)
{
    (void)stream;
    PROF_INFERENCE("Inference");
    fake_ticks += *(const uint64_t *)user;
    return 0;
}

/* Recorded: the warm-up runs are a warm-up, so the summary knows the measured ones only. The table of the
   cache. */
static void recorded_and_printed(void)
{
    uint64_t ns = 2000;
    const npuprof_bench_op op = { run_inference, &ns, 0, 1 << 20 };
    npuprof_bench_desc desc = { .key = "model", .ops = &op };
    static timed t = { .count = 2, .ns = { 1000, 1500 } };
    const npuprof_bench_op second = { run_timed, &t, 0, 0 };
    npuprof_bench_desc shaky = { .key = "shaky", .ops = &second, .warmup = -1, .number = 1, .repeat = 2 };
    npuprof_start(1);
    bench(&desc);
    bench(&shaky);
    npuprof_stop();
    FILE *file = tmpfile();
    CHECK_STOP(file != NULL);
    CHECK_INT(npuprof_print_summary(file), NPUPROF_OK);
    CHECK(strstr(check_read_stream(file), "Inference counts                : 10\n") != NULL);
    FILE *table = tmpfile();
    CHECK_INT(npuprof_print_bench(table), NPUPROF_OK);
    char *text = check_read_stream(table);
    static const char *const wanted[] = { "2.000", "2.000", "2.000", "-", "1", "1048576", NULL, "1.250",
                                          "1.000", "1.500", "40.000", "2", "0", "unstable" };
    const char *at = strstr(text, "model");
    for (unsigned i = 0; i < sizeof wanted / sizeof *wanted && at; i++) {
        if (!wanted[i]) at = strstr(at, "shaky");
        else if ((at = strstr(at, wanted[i])) != NULL) at += strlen(wanted[i]);
        if (!at)
            check_failed_(__FILE__, __LINE__, "not there: %s\n%s", wanted[i] ? wanted[i] : "shaky", text);
    }
    const char *row = strstr(text, "model");
    /* the stable row does not say so */
    CHECK(row && strcspn(row, "\n") < (size_t)(strstr(text, "unstable") - row));
    CHECK_INT(npuprof_print_bench(NULL), NPUPROF_ERR_ARGUMENT);
}

CHECK_MAIN(CASE(defaults), CASE(repeats), CASE(groups), CASE(cache), CASE(mistakes), CASE(device_clock),
           CASE(recorded_and_printed))

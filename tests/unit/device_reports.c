/* test: large - the device reports: IoWait and operator vectors, overlap, identities, warm-up; the JSON of
   device spans
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include <math.h>
#include <pthread.h>
#include "fake_clock.h"
#include "npuprof.h"
#include "npuprof_npu.h"
#include "recorded.h"

static npuprof_npu npu;
static uint64_t at;          /* device ticks; moves on with every execution */

static void open_npu(void)
{
    npuprof_npu_desc desc = { 0 };
    desc.name = "npu0";
    desc.read_ticks = fake_counter_apart;
    desc.counter.hz = 1000000000;
    desc.pe_count = 4;
    npuprof_start(1);
    fake_ticks += 1000000;
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_OK);
    at = fake_ticks + device_zero;
}

static void close_npu(void)
{
    if (fake_ticks + device_zero < at) fake_ticks = at - device_zero;
    fake_ticks += 1000000;
    npuprof_npu_close(&npu);
    npuprof_stop();
}

static void execution(unsigned pe, unsigned number, uint64_t ticks)
{
    npuprof_npu_span(&npu, pe, "Execution", "NPU", at, at + ticks,
                     PROF_ARGS(PROF_INT("execution_index", number)));
}

static void instruction(unsigned pe, const char *name, unsigned number, unsigned step, uint64_t from,
                        uint64_t to)
{
    npuprof_npu_span(&npu, pe, name, "NPU", at + from, at + to,
                     PROF_ARGS(PROF_INT("execution_index", number), PROF_INT("instruction_index", step)));
}

/* Rows of a table of numbers: the last columns of every line that has at least that many numbers. */
typedef struct row { char name[64]; double number[8]; int numbers; } row;
static int read_rows(const char *text, row *rows, int room)
{
    int count = 0;
    for (const char *line = text; *line && count < room;) {
        size_t length = strcspn(line, "\n");
        char copy[512];
        snprintf(copy, sizeof copy, "%.*s", (int)length, line);
        row *r = &rows[count];
        memset(r, 0, sizeof *r);
        for (char *word = strtok(copy, " |\t"); word; word = strtok(NULL, " |\t")) {
            char *end;
            double value = strtod(word, &end);
            if (!r->name[0]) snprintf(r->name, sizeof r->name, "%s", word);
            else if (!*end && strlen(word) != 16 && r->numbers < 8) r->number[r->numbers++] = value;
        }
        if (r->numbers >= 4) count++;
        line += length + (line[length] == '\n');
    }
    return count;
}

/* The last four columns: NPU Total, NPU Run, NPU IoWait, NPU Sum. */
typedef struct figures { int64_t total, run, wait, sum; } figures;
static int read_executions(figures *list, int room)
{
    row rows[64];
    char *text = printed(npuprof_print_npu_executions);
    CHECK(strstr(text, "NPU Total") && strstr(text, "NPU Run") && strstr(text, "NPU IoWait")
          && strstr(text, "NPU Sum"));
    int count = read_rows(text, rows, room < 64 ? room : 64);
    for (int i = 0; i < count; i++) {
        const double *n = rows[i].number + rows[i].numbers - 4;
        list[i] = (figures){ (int64_t)n[0], (int64_t)n[1], (int64_t)n[2], (int64_t)n[3] };
        if (list[i].total != list[i].run + list[i].wait)
            check_failed_(__FILE__, __LINE__, "row %d: total is not run + wait\n%s", i, text);
    }
    return count;
}

/* Published figures: four executions of one model, its seven operators, and the totals of both. */
static const int64_t totals_1[] = { 10902, 10901, 10997, 10900 }, runs_1[] = { 8559, 8557, 8557, 8555 },
    waits_1[] = { 2343, 2344, 2440, 2345 };
static const int64_t operators_1[] = { 19619, 9088, 4337, 932, 24, 204, 24 };

static void io_wait_and_operators(void)
{
    open_npu();
    for (unsigned i = 0; i < 4; i++) {
        static const char *const names[] = { "LowLevelConv2d", "LowLevelDepthwise", "LowLevelPad",
                                             "LowLevelExpand", "LowLevelReshape",
                                             "LowLevelLower", "LowLevelSlice" };
        uint64_t used = 300, rest = 0;
        execution(0, i, (uint64_t)totals_1[i]);
        instruction(0, "Load", i, 0, 0, 300);
        for (unsigned k = 1; k < 7; k++) {
            uint64_t ns = (uint64_t)operators_1[k] / 4 + (i == 0 ? (uint64_t)operators_1[k] % 4 : 0);
            instruction(0, names[k], i, k, used, used + ns);
            used += ns;
            rest += ns;
        }
        instruction(0, names[0], i, 7, used, used + (uint64_t)runs_1[i] - rest);
        instruction(0, "Store", i, 8, (uint64_t)totals_1[i] - 200, (uint64_t)totals_1[i]);
        at += 20000;
    }
    close_npu();
    figures rows[8];
    CHECK_INT(read_executions(rows, 8), 4);
    int64_t all_runs = 0;
    for (int i = 0; i < 4; i++) {
        CHECK_INT(rows[i].total, totals_1[i]);
        CHECK_INT(rows[i].run, runs_1[i]);
        CHECK_INT(rows[i].wait, waits_1[i]);
        CHECK_INT(rows[i].sum, runs_1[i]);
        all_runs += rows[i].sum;
    }
    CHECK_INT(all_runs, 34228);
    row list[16];
    char *text = printed(npuprof_print_npu_operators);
    CHECK_INT(read_rows(text, list, 16), 7);
    CHECK(strstr(text, "average_elapsed (ns)") != NULL);
    CHECK(!strstr(text, "Execution") && !strstr(text, "Load ") && !strstr(text, "Store"));
    double sum = 0, share = 0, before = 1e300;
    for (int i = 0; i < 7; i++) {     /* mean, count, total, share; sorted by the mean */
        double product = list[i].number[0] * list[i].number[1];
        CHECK(product > list[i].number[2] - 0.01 && product < list[i].number[2] + 0.01);
        CHECK(list[i].number[0] <= before);
        before = list[i].number[0];
        sum += list[i].number[2];
        share += list[i].number[3];
    }
    CHECK(sum == 34228);
    CHECK(share > 99.9 && share < 100.1);
    CHECK(list[0].number[2] == 19619 && list[1].number[2] == 9088 && list[2].number[2] == 4337);
    if (check_failures_) puts(text);
}

/* The other release's table, once printed with the operands the wrong way round. */
static void io_wait_2(void)
{
    static const int64_t totals[] = { 119145, 119363, 119157, 119219 },
        waits[] = { 11011, 11229, 11023, 11085 };
    open_npu();
    for (unsigned i = 0; i < 4; i++) {
        execution(i, i, (uint64_t)totals[i]);             /* each on a PE of its own */
        instruction(i, "LowLevelConv2d", i, 1, 1000, 1000 + 108134);
        at += 50000;                                      /* and at the same time */
    }
    close_npu();
    figures rows[8];
    CHECK_INT(read_executions(rows, 8), 4);
    int64_t all = 0;
    for (int i = 0; i < 4; i++) {
        CHECK_INT(rows[i].run, 108134);
        CHECK_INT(rows[i].wait, waits[i]);
        CHECK_INT(rows[i].total, totals[i]);
        all += rows[i].sum;
    }
    CHECK_INT(all, 432536);
}

/* Two engines, 0-100 and 50-150, in an execution of 160: union 150, sum 200, wait 10. */
static void overlap(void)
{
    open_npu();
    execution(1, 0, 160);
    instruction(1, "conv", 0, 1, 0, 100);
    instruction(1, "vector", 0, 2, 50, 150);
    at += 1000;
    execution(1, 1, 160);                        /* one inside the other, and twice the same */
    instruction(1, "conv", 1, 1, 10, 110);
    instruction(1, "vector", 1, 2, 20, 50);
    instruction(1, "vector", 1, 3, 20, 50);
    at += 1000;
    execution(1, 2, 160);                        /* touching ends */
    instruction(1, "conv", 2, 1, 0, 80);
    instruction(1, "vector", 2, 2, 80, 160);
    close_npu();
    figures rows[8];
    CHECK_INT(read_executions(rows, 8), 3);
    CHECK(rows[0].total == 160 && rows[0].run == 150 && rows[0].wait == 10 && rows[0].sum == 200);
    CHECK(rows[1].total == 160 && rows[1].run == 100 && rows[1].wait == 60 && rows[1].sum == 160);
    CHECK(rows[2].total == 160 && rows[2].run == 160 && rows[2].wait == 0 && rows[2].sum == 160);
    row list[8];
    CHECK_INT(read_rows(printed(npuprof_print_npu_operators), list, 8), 2);
    CHECK(list[0].number[2] + list[1].number[2] == 520);        /* the operators add up to the sums */
}

/* No compute at all: the row stays, with Run 0. */
static void without_operators(void)
{
    open_npu();
    execution(0, 0, 500);
    instruction(0, "Load", 0, 1, 0, 400);
    close_npu();
    figures rows[8];
    CHECK_INT(read_executions(rows, 8), 1);
    CHECK(rows[0].total == 500 && rows[0].run == 0 && rows[0].wait == 500 && rows[0].sum == 0);
}

/* 2,000 executions on four PEs of two interleaved streams: every identity, at a size past any small
   buffer. */
static void many(void)
{
    uint64_t sum = 0;
    uint32_t random = 1;
    open_npu();
    for (unsigned i = 0; i < 2000; i++) {
        unsigned pe = i % 4;
        uint64_t from = 0;
        execution(pe, i, 4000);
        for (unsigned k = 0; k < 5; k++) {
            random = random * 1664525u + 1013904223u;
            uint64_t length = 100 + (random >> 24);
            char name[16];
            snprintf(name, sizeof name, "op%u", (random >> 16) % 30);
            instruction(pe, name, i, k + 1, from, from + length);
            from += 300 + (random >> 28);
            sum += length;
        }
        if (pe == 3) at += 5000;
    }
    close_npu();
    static figures rows[64];
    CHECK_INT(read_executions(rows, 64), 64);
    row list[64];
    int count = read_rows(printed(npuprof_print_npu_operators), list, 64);
    double total = 0;
    CHECK_INT(count, 30);
    for (int i = 0; i < count; i++) total += list[i].number[2];
    CHECK_INT(total, sum);
}

/* Sampled blocks: a device span inside the host span, marked, on the PE's track; warm-up is left out of the
   tables. */
static void sampled(void)
{
    open_npu();
    {
        PROF_RECORD_WARM_UP("warm up");
        WITH_NPU_PROFILER(&npu, 0, "warm", "NPU", PROF_NO_ARGS, fake_ticks += 7777);
    }
    {
        PROF_RECORD("trace");
        PROF_INFERENCE("Inference");
        for (int i = 0; i < 3; i++)
            WITH_NPU_PROFILER(&npu, 0, "conv", "NPU", PROF_ARGS(PROF_INT("i", i)), fake_ticks += 1000);
    }
    at = fake_ticks + device_zero;
    close_npu();
    json_node *t = written();
    json_node *inference = trace_event(t, "X", "Inference", 0);
    unsigned device_spans = 0, host_spans = 0;
    CHECK_STOP(inference != NULL);
    for (size_t i = 0; i < trace_count(t, "X", "conv"); i++) {
        json_node *e = trace_event(t, "X", "conv", i);
        /* to a tick of the host's clock, which is 1 ns here */
        CHECK(trace_start(e) >= trace_start(inference) - 1 && trace_end(e) <= trace_end(inference) + 1);
        if (trace_tid(e) == trace_tid(inference)) {
            host_spans++;
            continue;
        }
        device_spans++;
        CHECK_STR(json_text(json_get(e, "args.stamp")), "sampled");
        CHECK(trace_dur(e) >= 1000 && trace_dur(e) <= 1100);
        CHECK(strstr(trace_track(t, e), "npu0") != NULL);
    }
    CHECK_UINT(device_spans, 3);
    CHECK_UINT(host_spans, 3);
    json_node *devices = json_get(t, "metadata.npuprof.devices");
    CHECK_STOP(devices && devices->first);
    CHECK_STR(json_text(json_get(devices->first, "name")), "npu0");
    json_node *sync = json_get(devices->first, "clock_sync");
    CHECK(fabs(json_real(json_get(sync, "rate_hz")) - 1e9) < 1e5);
    CHECK_INT(json_int(json_get(sync, "causality_violations")), 0);
    CHECK(json_real(json_get(sync, "max_error_ns")) >= 0);
    char *text = printed(npuprof_print_npu_operators);
    CHECK(strstr(text, "conv") != NULL && strstr(text, "warm") == NULL);
}

/* Ten times the spans take about ten times the time, however many batches they are sorted in; thousands of
   names, too. */
static double seconds_of(unsigned executions, unsigned names)
{
    char name[16];
    npuprof_clear();
    npuprof_start(1);
    for (unsigned i = 0; i < executions; i++) {
        execution(i % 4, i, 900);
        for (unsigned k = 0; k < 9; k++) {
            snprintf(name, sizeof name, "op%u", (9 * i + k) % names);
            instruction(i % 4, name, i, k + 1, 100 * k, 100 * k + 50);
        }
        at += 1000;
        fake_ticks = at - device_zero;
    }
    npuprof_npu_sync(&npu);
    npuprof_stop();
    unsigned lines = 0;
    const double from = seconds_used();
    char *const text[] = { printed(npuprof_print_npu_operators), printed(npuprof_print_npu_executions) };
    const double used = seconds_used() - from;
    for (int i = 0; i < 2; i++)
        for (char *c = text[i]; *c; c++) lines += *c == '\n';
    CHECK_UINT(lines, names + executions + 2);
    free(text[0]);
    free(text[1]);
    return used;
}

static void linear(void)
{
    if (CHECK_SANITIZED) CHECK_SKIP("it measures time, and a sanitizer takes most of it");
    open_npu();
    const double small = seconds_of(2500, 20), large = seconds_of(25000, 20), names = seconds_of(25000, 2000);
    printf("  25,000 device spans %.3f s, 250,000 %.3f s, of 2,000 names %.3f s\n", small, large, names);
    CHECK(large < 30 * small + 0.1 && names < 3 * large + 0.1);
}

enum { DRAINED = CHECK_SANITIZED ? 3000 : 30000 };
/* The same PEs drained by three threads, one after the other, over the same time: many batches, each from all
   of them. */
static void *record_every_third(void *first)
{
    const uint64_t zero = at;
    /* a slot of its own */
    PROF_THREAD_NAME(*(const unsigned *)first == 0 ? "zero" : *(const unsigned *)first == 1 ? "one" : "two");
    for (unsigned i = *(const unsigned *)first; i < DRAINED; i += 3) {
        at = zero + UINT64_C(1000) * i;
        execution(i % 2, i, 900);
        instruction(i % 2, "op", i, 1, 100, 100 + i % 500);
        instruction(i % 2, "other", i, 2, 50, 150);
    }
    at = zero;
    return NULL;
}

static void several_drains(void)
{
    static figures rows[64];
    unsigned first[3] = { 2, 0, 1 };
    uint64_t sum = 0;
    open_npu();
    for (int i = 0; i < 3; i++) on_a_thread(record_every_third, &first[i]);
    at += UINT64_C(1000) * DRAINED;
    close_npu();
    for (unsigned i = 0; i < DRAINED; i++) sum += i % 500 + 100;
    row list[4];
    CHECK_INT(read_rows(printed(npuprof_print_npu_operators), list, 4), 2);
    CHECK_INT(list[0].number[1] + list[1].number[1], 2 * DRAINED);
    CHECK_INT(list[0].number[2] + list[1].number[2], sum);
    CHECK_INT(read_executions(rows, 64), 64);
    unsigned count = 0, at_index = 0;
    for (const char *line = printed(npuprof_print_npu_executions); (line = strchr(line, '\n')) != NULL
         && line[1]; line++, count++) {
        unsigned pe, index;
        if (sscanf(line, " %*s %*s %u %u", &pe, &index) != 2) continue;
        if (index != at_index)
            check_failed_(__FILE__, __LINE__, "execution %u where %u should be", index, at_index);
        at_index = index + 2 < DRAINED ? index + 2 : 1;
    }
    CHECK_UINT(count, DRAINED);
}

/* Means are rounded half up, not cut: 5 / 3 and 13 / 7. */
static void means(void)
{
    char name[8];
    static const unsigned count[] = { 3, 7 }, total[] = { 5, 13 };
    open_npu();
    execution(0, 0, 1000);
    for (unsigned k = 0; k < 2; k++) {
        snprintf(name, sizeof name, "op%u", k);
        for (unsigned i = 0, left = total[k]; i < count[k]; i++) {
            const unsigned ns = i + 1 < count[k] ? total[k] / count[k] : left;
            instruction(0, name, 0, 10 * k + i, 100 * k + 10 * i, 100 * k + 10 * i + ns);
            left -= ns;
        }
    }
    at += 2000;
    close_npu();
    char *text = printed(npuprof_print_npu_operators);
    CHECK(strstr(text, " 1.666667 ") != NULL);
    CHECK(strstr(text, " 1.857143 ") != NULL);
}

CHECK_MAIN(CASE(io_wait_and_operators), CASE(io_wait_2), CASE(overlap), CASE(without_operators), CASE(many),
           CASE(sampled), CASE_THOROUGH(linear), CASE_THOROUGH(several_drains), CASE(means))

/* the host reports on a fake clock: percentile vectors, rounding, warm-up, rows
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include "fake_clock.h"
#include <ctype.h>
#include "npuprof.h"
#include "recorded.h"

/* The last number of a line. */
static int64_t last_number(const char *line, const char *end)
{
    const char *at = NULL;
    for (const char *c = line; c < end; c++)
        if (isdigit((unsigned char)*c)
            && (c == line || !(isdigit((unsigned char)c[-1]) || c[-1] == '.' || c[-1] == '-'))) at = c;
        else if (*c == '-' && isdigit((unsigned char)c[1])) at = c;
    return at ? strtoll(at, NULL, 10) : INT64_MIN;
}

/* The value of the line with that label; a percentile's label is its number. */
static int64_t value_of(const char *text, const char *label)
{
    for (const char *line = text; *line;) {
        const char *end = line + strcspn(line, "\n"), *c = line;
        while (c < end && !isalnum((unsigned char)*c)) c++;
        size_t n = strlen(label);
        bool percentile = isdigit((unsigned char)*label) != 0, has = false;
        for (const char *p = c; p + 10 <= end; p++) has = has || !strncmp(p, "percentile", 10);
        if ((size_t)(end - c) > n && !strncasecmp(c, label, n) && percentile == has
            && (!percentile || !(isdigit((unsigned char)c[n]) || (c[n] == '.' && c[n + 1] != '0'))))
            return last_number(c + n + (percentile ? 1 : 0), end);
        line = end + (*end == '\n');
    }
    return INT64_MIN;
}

static void record_inferences(const uint64_t *durations, int count)
{
    npuprof_start(1);
    for (int i = 0; i < count; i++) {
        PROF_INFERENCE("Inference");
        fake_ticks += durations[i];
    }
    npuprof_stop();
}

typedef struct summary {
    const char *what;
    int count;
    uint64_t durations[4];
    int64_t wanted[10];
} summary;

static void check_summary(const uint64_t *durations, int count, const int64_t *wanted)
{
    static const char *const labels[] = { "Inference counts", "min", "max", "mean", "median", "90", "95",
                                          "97", "99", "99.9" };
    record_inferences(durations, count);
    char *text = printed(npuprof_print_summary);
    int before = check_failures_;
    CHECK(strstr(text, "Inference Results Summary") != NULL);
    for (size_t i = 0; i < 10; i++) {
        int64_t got = value_of(text, labels[i]);
        if (got != wanted[i])
            check_failed_(__FILE__, __LINE__, "%s is %" PRId64 ", not %" PRId64, labels[i], got, wanted[i]);
    }
    if (check_failures_ != before) puts(text);
}

static void check_a_summary(const void *user)
{
    const summary *s = (const summary *)user;
    check_summary(s->durations, s->count, s->wanted);
    if (check_failures_) printf("  (%s)\n", s->what);
}

/* Type 7, rounded half up, not to even. */
static void percentiles(void)
{
#define LONG(n) INT64_C(900719925474099##n)
    static const summary list[] = {
        { "published", 4, { 365199, 258540, 650018, 270625 },
          { 4, 258540, 650018, 386096, 317912, 564572, 607295, 624384, 641473, 649164 } },
        { "published, too", 4, { 3027309, 1584494, 2111363, 1824769 },
          { 4, 1584494, 3027309, 2136984, 1968066, 2752525, 2889917, 2944874, 2999831, 3024561 } },
        { "a mean of 12.5, a 90th percentile of 14.5", 2, { 10, 15 },
          { 2, 10, 15, 13, 13, 15, 15, 15, 15, 15 } },
        { "one", 1, { 77 }, { 1, 77, 77, 77, 77, 77, 77, 77, 77, 77 } },
        { "past 2^53, where a double is no longer exact", 2, { LONG(3), LONG(5) },
          { 2, LONG(3), LONG(5), LONG(4), LONG(4), LONG(5), LONG(5), LONG(5), LONG(5), LONG(5) } } };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) check_in_child(check_a_summary, &list[i]);
}

static void many_inferences(void)
{
    static uint64_t durations[10001];
    for (uint64_t i = 0; i <= 10000; i++) durations[i] = 1000 + (i * 7919) % 10001;
    static const int64_t wanted[] = { 10001, 1000, 11000, 6000, 6000, 10000, 10500, 10700, 10900, 10990 };
    check_summary(durations, 10001, wanted);
}

/* With no inference: a table that says so, not a division by zero. */
static void nothing_recorded(void)
{
    npuprof_result (*const all[])(FILE *) = { npuprof_print_summary, npuprof_print_inferences,
                                              npuprof_print_npu_executions,
                                              npuprof_print_npu_operators, npuprof_print_external_operators,
                                              npuprof_print_memory };
    for (int started = 0; started < 2; started++) {
        for (size_t i = 0; i < 6; i++) {
            char *text = printed(all[i]);
            CHECK(strstr(text, "nan") == NULL && strstr(text, "inf ") == NULL
                  && strstr(text, "18446744073709") == NULL);
        }
        npuprof_start(1);
    }
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        static const uint64_t durations[] = { 1 };
        record_inferences(durations, 1);
        setvbuf(full, NULL, _IONBF, 0);
        CHECK(npuprof_print_summary(full) != NPUPROF_OK);
        fclose(full);
    }
    for (size_t i = 0; i < 6; i++) CHECK_INT(all[i](NULL), NPUPROF_ERR_ARGUMENT);
}

/* Warm-up is left out of every report, its later siblings are not. */
static void warm_up(void)
{
    npuprof_start(1);
    for (int i = 0; i < 3; i++) {
        PROF_RECORD_WARM_UP("warm up");
        {
            PROF_INFERENCE("Inference");
            fake_ticks += 999999;
            { PROF_OPERATOR(1, "Quantize"); fake_ticks += 888888; }
        }
    }
    {
        PROF_RECORD("trace");
        for (int i = 0; i < 2; i++) {
            PROF_INFERENCE("Inference");
            fake_ticks += 100;
            { PROF_OPERATOR(3, "Lower"); fake_ticks += 50; }
        }
    }
    npuprof_stop();
    char *text = printed(npuprof_print_summary);
    CHECK_INT(value_of(text, "Inference counts"), 2);
    CHECK_INT(value_of(text, "max"), 150);
    text = printed(npuprof_print_external_operators);
    CHECK(strstr(text, "Lower") != NULL);
    CHECK(strstr(text, "Quantize") == NULL && strstr(text, "888888") == NULL);
    text = printed(npuprof_print_inferences);
    CHECK(strstr(text, "999999") == NULL && strstr(text, "1888887") == NULL);
    CHECK(strstr(text, "150") != NULL);
}

static unsigned count_text(const char *text, const char *part)
{
    unsigned n = 0;
    while ((text = strstr(text, part)) != NULL) n++, text++;
    return n;
}

/* Is there a run of n hex digits? Copies the first one at or after *text. */
static bool hex_run(const char **text, size_t n, char *out)
{
    for (const char *c = *text; *c; c++) {
        size_t k = strspn(c, "0123456789abcdef");
        if (k == n) { memcpy(out, c, n); out[n] = 0; *text = c + n; return true; }
        if (k) c += k - 1;
    }
    return false;
}

static void rows(void)
{
    npuprof_start(1);
    PROF_THREAD_NAME("main");
    for (int i = 0; i < 3; i++) {
        PROF_RECORD("trace");
        PROF_INFERENCE("Inference");
        { PROF_OPERATOR(10 + i, "Quantize"); fake_ticks += 7001 + (unsigned)i; }
        fake_ticks += 90000;
    }
    npuprof_stop();
    char *text = printed(npuprof_print_inferences), trace[3][40], span[3][40];
    static const char *const columns[] = { "trace_id", "span_id", "thread.id", "dur", "name",
                                           "operator_index" };
    for (int i = 0; i < 4; i++) CHECK(strstr(text, columns[i]) != NULL);
    CHECK(strstr(text, "97001") && strstr(text, "97002") && strstr(text, "97003"));
    const char *at = text;
    for (int i = 0; i < 3; i++) {
        CHECK_STOP(hex_run(&at, 32, trace[i]) && hex_run(&at, 16, span[i]));
        for (int k = 0; k < i; k++) CHECK(strcmp(trace[i], trace[k]) != 0 && strcmp(span[i], span[k]) != 0);
    }
    text = printed(npuprof_print_external_operators);
    for (int i = 0; i < 6; i++) CHECK(strstr(text, columns[i]) != NULL);
    CHECK_UINT(count_text(text, "Quantize"), 3);
    for (int i = 0; i < 3; i++) CHECK(strstr(text, trace[i]) != NULL);      /* the same ids in every report */
    CHECK(strstr(text, "7001") && strstr(text, "7002") && strstr(text, "7003"));
}

CHECK_MAIN(CASE(percentiles), CASE(many_inferences), CASE(nothing_recorded), CASE(warm_up), CASE(rows))

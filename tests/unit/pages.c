/* where the system gives no more memory: outputs say so, nothing is lost, and the image needs none; and what
   an output took is given back
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include <sys/resource.h>
#include <unistd.h>
#include "npuprof.h"
#include "npuprof_npu.h"

static int64_t span_count(void) { return check_is_quick() ? 12000 : 60000; }
static int64_t flow_count(void) { return span_count() / 3; }

static void spans(void)
{
    for (int64_t i = 0; i < span_count(); i++)
        npuprof_span("track", "c", "work", 2 * i + 1, 2 * i + 2, PROF_NO_ARGS);
}

static void requests(void)
{
    for (int64_t i = 0; i < span_count(); i++) npuprof_async_begin("c", "work", (uint64_t)i);
    for (int64_t i = 0; i < span_count(); i++) npuprof_async_end((uint64_t)i);
}

static void flows(void)
{
    for (int64_t i = 0; i < flow_count(); i++) {
        { PROF_SCOPE("work"); PROF_FLOW_OUT(i); }
        { PROF_SCOPE("work"); PROF_FLOW_IN(i); }
    }
}

static uint64_t read_ticks(void *user)
{
    (void)user;
    return (uint64_t)npuprof_now_ns();
}

static void kernels(void)
{
    static npuprof_npu npu;
    npuprof_npu_desc desc = { 0 };
    desc.name = "npu0";
    desc.read_ticks = read_ticks;
    desc.counter.hz = 1000000000;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    const uint64_t now = (uint64_t)npuprof_now_ns();
    for (int64_t i = 0; i < span_count(); i++)
        npuprof_npu_span(&npu, 0, "work", "NPU", now - 3 * (uint64_t)i, now - 3 * (uint64_t)i + 2,
                         PROF_NO_ARGS);
    npuprof_npu_close(&npu);
}

/* The address space of the process, in pages. */
static unsigned long mapped(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK_STOP(f && fscanf(f, "%lu", &pages) == 1);
    (void)fclose(f);
    return pages;
}

/* The process gets so much more address space, and no more. Returns the limit before. */
static struct rlimit limit_to(rlim_t more)
{
    struct rlimit before, now;
    CHECK_STOP(getrlimit(RLIMIT_AS, &before) == 0);
    now = before;
    now.rlim_cur = mapped() * (rlim_t)sysconf(_SC_PAGESIZE) + more;
    CHECK_STOP(setrlimit(RLIMIT_AS, &now) == 0);
    return before;
}

/* At each limit the JSON and the tables are refused with one sentence, until they are written whole. */
static void refused(void (*record)(void), int64_t work)
{
    if (CHECK_SANITIZED) CHECK_SKIP("a sanitizer takes more address space than any limit leaves");
    npuprof_start(1);
    record();
    npuprof_stop();
    FILE *null = fopen("/dev/null", "w");
    CHECK_STOP(null != NULL);
    const char *const paths[] = { check_path("t.json"), check_path("t.csv"), check_path("t.npuprof") };
    bool whole = false;
    unsigned times = 0, without = 0;       /* without: not even the pages of a table were there */
    unsigned long pages = 0;
    /* Why 32 MiB: so much is there where a list grows to twice its room when 16 times is refused. */
    for (rlim_t more = 4096; !whole && more <= (rlim_t)32 << 20; more *= 2) {
        const struct rlimit before = limit_to(more);
        const npuprof_result json = npuprof_dump(paths[0]);
        const npuprof_result csv = npuprof_dump(paths[1]);
        const npuprof_result plain = npuprof_dump(paths[2]);
        const npuprof_result table = npuprof_print_npu_operators(null);
        CHECK_STOP(setrlimit(RLIMIT_AS, &before) == 0);
        CHECK_INT(plain, NPUPROF_OK);
        CHECK(table == json || (record != kernels && table == NPUPROF_OK));  /* it sorts device spans alone */
        CHECK(csv == json || (record == flows && csv == NPUPROF_OK));        /* a CSV has no arrows */
        without += plain == NPUPROF_OK && table == NPUPROF_ERR_MEMORY;
        whole = json == NPUPROF_OK;
        if (whole) break;
        if (!times++) pages = mapped();
        CHECK_UINT(mapped(), pages);
        CHECK_INT(json, NPUPROF_ERR_MEMORY);
        CHECK(access(paths[0], F_OK) != 0);
    }
    CHECK(whole && times >= 3 && without >= 3);
    pages = mapped();
    CHECK_INT(npuprof_dump(paths[0]), NPUPROF_OK);
    CHECK_INT(npuprof_dump(paths[1]), NPUPROF_OK);
    CHECK_INT(npuprof_print_npu_operators(null), NPUPROF_OK);
    CHECK_UINT(mapped(), pages);
    (void)fclose(null);
    CHECK_INT(trace_count(trace_load(paths[0]), "X", "work"), work);
    CHECK(strstr(npuprof_result_string(NPUPROF_ERR_MEMORY), "write t.npuprof") != NULL);
}

static void refused_spans(void) { refused(spans, span_count()); }
static void refused_requests(void) { refused(requests, span_count()); }
static void refused_flows(void) { refused(flows, 2 * flow_count()); }
static void refused_kernels(void) { refused(kernels, span_count()); }

CHECK_MAIN(CASE(refused_spans), CASE(refused_requests), CASE(refused_flows), CASE(refused_kernels))

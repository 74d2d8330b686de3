/* fixture.h - one device, `npu`, on the clock of sim.h: opens it, lets time pass, reads what its trace says.
   SPDX-License-Identifier: MIT

   Includes the library: a test's knobs stand before. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "sim.h"
#include "trace.h"
#include "fed.h"
#include "npuprof.h"
#include "npuprof_npu.h"

static npuprof_npu npu;

/* Records, and opens the device; the case ends where it does not open. */
CHECK_UNUSED_ static void open_npu(const npuprof_npu_desc *desc)
{
    npuprof_start(1);
    const npuprof_result result = npuprof_npu_open(&npu, desc);
    if (result != NPUPROF_OK) check_failed_(__FILE__, __LINE__, "open: %s", npuprof_result_string(result));
    CHECK_STOP(result == NPUPROF_OK);
}

/* The description that fits sim.h; a test changes what it wants. */
CHECK_UNUSED_ static npuprof_npu_desc sim_desc(void)
{
    SIM_DESC(d);
    return d;
}

/* The device of sim.h as it is. */
CHECK_UNUSED_ static void open_sim(void)
{
    const npuprof_npu_desc desc = sim_desc();
    open_npu(&desc);
}

/* What cannot be is refused, and the sentence says why: `words` are in it. */
CHECK_UNUSED_ static void refused(const npuprof_npu_desc *desc, npuprof_result why, const char *words)
{
    CHECK_INT(npuprof_npu_open(&npu, desc), why);
    npuprof_npu_close(&npu);
    if (!strstr(npuprof_result_string(why), words)) CHECK_STR(npuprof_result_string(why), words);
}

/* `good` with one change is refused. */
#define REFUSED(why, words, ...) \
    do { npuprof_npu_desc desc = good; __VA_ARGS__; refused(&desc, (why), (words)); } while (0)

/* A ring of 8 records: start 8 | end 8. */
CHECK_UNUSED_ static npuprof_npu_ring sim_ring(void)
{
    sim_store(SIM_PRODUCER, 4, 0);
    return (npuprof_npu_ring){ .offset = SIM_RING, .entry_bytes = 16, .count = 8,
                               .producer = { .offset = SIM_PRODUCER }, .start = AT(0, 8, 0, 0),
                               .end = AT(8, 8, 0, 0) };
}

/* The device writes record `number` of that ring. */
CHECK_UNUSED_ static void sim_record(unsigned number, uint64_t start, uint64_t end)
{
    const size_t at = SIM_RING + 16 * (number % 8);
    sim_store(at, 8, start);
    sim_store(at + 8, 8, end);
    sim_store(SIM_PRODUCER, 4, number + 1);
}

/* Time passes, and the device is asked what time it is. */
CHECK_UNUSED_ static void sim_sync(uint64_t ns)
{
    sim_advance(ns);
    CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
}

/* A span of the host that begins now, which times of the trace are compared with. */
CHECK_UNUSED_ static uint64_t mark_zero(void)
{
    const uint64_t now = sim.host;
    const int64_t ns = npuprof_ticks_to_ns_(now);
    npuprof_span("zero", "test", "zero", ns, ns + 1000, PROF_NO_ARGS);
    return now;
}

CHECK_UNUSED_ static json_node *written(void)
{
    const char *const path = check_path("t.json");
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    return trace_load(path);
}

CHECK_UNUSED_ static json_node *closed(void)
{
    npuprof_npu_close(&npu);
    return written();
}

/* A block of the host: the number of its job. */
CHECK_UNUSED_ static uint32_t submit(unsigned stream, const char *name)
{
    uint32_t job = 0;
    WITH_NPU_PROFILER(&npu, stream, name, "NPU", PROF_NO_ARGS,
                      { job = npuprof_npu_job(&npu); sim_advance(1000); });
    return job;
}

CHECK_UNUSED_ static uint64_t recorded(void)
{
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    return stats.recorded;
}

CHECK_UNUSED_ static uint64_t lost(void)
{
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    return stats.lost_by_cause[NPUPROF_LOST_RING];
}

#endif /* FIXTURE_H */

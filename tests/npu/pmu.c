/* event counters: arguments, tracks, NPU Run, wraps, resets, and what they cost; sampled stamps of a counter
   that is late
   SPDX-License-Identifier: MIT */
#include "fixture.h"

enum { BUSY = 0x40, BUSY_HIGH = 0x44, MACS = 0x48, STALLS = 0x50 };

#define FREE NULL, 0, NULL, false, false         /* neither by function nor scaled */
static const npuprof_npu_pmu pmu[] = {
    { "busy", { BUSY, BUSY_HIGH, 48, 32, NPUPROF_NPU_HI_LO_HI, false, false, 0, 0, 0, 0, 0 }, true, FREE },
    { "macs", { MACS, 0, 24, 32, NPUPROF_NPU_SINGLE, false, false, 0, 0, 0, 0, 0 }, false, FREE },
    { "stalls", { STALLS, 0, 64, 64, NPUPROF_NPU_SINGLE, true, true, 0, 0, 0, 0, 0 }, false, FREE },
};

static void set(uint64_t busy, uint64_t macs, uint64_t stalls)
{
    const bool big = sim.big;
    sim_store(BUSY, 4, busy & UINT32_MAX);
    sim_store(BUSY_HIGH, 4, busy >> 32 & 0xFFFF);
    sim_store(MACS, 4, macs & 0xFFFFFF);
    sim.big = true;
    sim_store(STALLS, 8, ~stalls);
    sim.big = big;
}

static void open_pmu(void)
{
    SIM_DESC(desc);
    desc.pmu = pmu;
    desc.pmu_count = 3;
    open_npu(&desc);
}

/* Steps as arguments, sums since open as tracks; over wraps of every one of them. */
static void arguments_and_tracks(void)
{
    set(0xFFFFFFFFFFF0, 0xFFFFF0, UINT64_MAX - 5);
    open_pmu();
    sim_advance(1000000);
    WITH_NPU_PROFILER(&npu, 0, "one", "NPU", PROF_NO_ARGS, {
        sim_advance(1000000);
        set(0xFFFFFFFFFFF0 + 20000, 0xFFFFF0 + 1000, UINT64_MAX - 5 + 7);
    });
    sim_advance(1000000);
    set(20100, 1100, 100);
    WITH_NPU_PROFILER(&npu, 0, "two", "NPU", PROF_NO_ARGS, {
        sim_advance(1000000);
        set(22100, 1400, 200);
    });
    json_node *t = closed(), *one = device_span(t, "one", 0), *two = device_span(t, "two", 0);
    CHECK_STOP(one && two);
    CHECK_INT(arg(one, "busy_ticks"), 20000);
    CHECK_INT(arg(one, "macs"), 1000);
    CHECK_INT(arg(one, "stalls"), 7);
    CHECK_INT(arg(two, "busy_ticks"), 2000);
    CHECK_INT(arg(two, "macs"), 300);
    CHECK_INT(arg(two, "stalls"), 100);
    static const int64_t macs[] = { 0, 1000, 1000 + 116, 1000 + 116 + 300 };
    CHECK_UINT(trace_count(t, "C", "sim macs"), 4);
    CHECK_UINT(trace_count(t, "C", "sim busy"), 4);
    CHECK_UINT(trace_count(t, "C", "sim stalls"), 4);
    for (size_t i = 0; i < 4; i++) {
        json_node *e = trace_event(t, "C", "sim macs", i);
        CHECK_STOP(e != NULL);
        CHECK_INT(json_int(json_get(e, "args")->first), macs[i]);
    }
}

static void print_executions(char *text, size_t bytes)
{
    FILE *file = tmpfile();
    CHECK_STOP(file != NULL);
    CHECK_INT(npuprof_print_npu_executions(file), NPUPROF_OK);
    rewind(file);
    CHECK(fread(text, 1, bytes - 1, file) > 0);
    fclose(file);
}

/* NPU Total = Run + IoWait, Run from the busy counter: 20,000 of 25,000 ticks. */
static void run_and_wait(void)
{
    char text[4000] = "";
    set(100, 0, 0);
    open_pmu();
    sim_advance(1000000);
    WITH_NPU_PROFILER(&npu, 0, "conv", "NPU", PROF_NO_ARGS, {
        sim_advance(1000000 - 60);
        set(100 + 20000, 0, 0);
    });
    json_node *t = closed(), *span = device_span(t, "conv", 0);
    CHECK_STOP(span != NULL);
    print_executions(text, sizeof text);
    long long total = 0, run = 0, wait = 0, sum = 0;
    char *last = strrchr(text, '\n');
    if (last && !last[1]) *last = 0;
    last = strrchr(text, '\n');
    CHECK_STOP(last != NULL);
    long long numbers[32];
    int count = 0;
    for (char *word = strtok(last, " |\t\n"); word && count < 32; word = strtok(NULL, " |\t\n"))
        numbers[count++] = strtoll(word, NULL, 10);
    CHECK_STOP(count >= 4);
    total = numbers[count - 4], run = numbers[count - 3], wait = numbers[count - 2], sum = numbers[count - 1];
    CHECK(llabs(total - trace_dur(span)) <= 1);
    CHECK(llabs(run - 800000) < 200 && sum == run);
    CHECK_INT(total, run + wait);
}

/* Without a busy counter nobody measured when the device worked: unknown, not all of it waiting. */
static void run_unknown(void)
{
    char text[4000] = "", want[64];
    open_sim();
    sim_advance(1000000);
    WITH_NPU_PROFILER(&npu, 0, "conv", "NPU", PROF_NO_ARGS, { sim_advance(1000000); });
    json_node *t = closed(), *span = device_span(t, "conv", 0);
    CHECK_STOP(span != NULL);
    print_executions(text, sizeof text);
    snprintf(want, sizeof want, "%12lld  %12s  %12s  %12s\n", (long long)trace_dur(span), "-", "-", "-");
    CHECK(strstr(text, want) != NULL);
}

static uint32_t loads_of(unsigned count)
{
    SIM_DESC(desc);
    desc.pmu = pmu;
    desc.pmu_count = count;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    sim_advance(1000000);
    const uint32_t before = npu.mmio_reads;
    WITH_NPU_PROFILER(&npu, 0, "span", "NPU", PROF_NO_ARGS, sim_advance(1000000));
    const uint32_t loads = npu.mmio_reads - before;
    npuprof_npu_close(&npu);
    return loads;
}

/* At both ends: 3 for two split halves, 1 for each of the others. */
static void loads(void)
{
    npuprof_start(1);
    set(1, 1, 1);
    CHECK_UINT(loads_of(0), 2);
    CHECK_UINT(loads_of(1), 2 + 6);
    CHECK_UINT(loads_of(3), 2 + 6 + 2 + 2);
}

/* A reset and a death in a block: no device span, and no jump in the tracks. */
static void reset_and_death(void)
{
    set(1000, 1000, 1000);
    open_pmu();
    sim_advance(500000000);
    WITH_NPU_PROFILER(&npu, 0, "good", "NPU", PROF_NO_ARGS, { sim_advance(1000000); set(1500, 1500, 1500); });
    WITH_NPU_PROFILER(&npu, 0, "reset", "NPU", PROF_NO_ARGS,
                      { sim.origin = sim.host; sim.start = 0; sim_advance(1000000); set(0, 0, 0); });
    WITH_NPU_PROFILER(&npu, 0, "later", "NPU", PROF_NO_ARGS, { sim_advance(1000000); set(77, 77, 77); });
    WITH_NPU_PROFILER(&npu, 0, "dies", "NPU", PROF_NO_ARGS,
                      {
                          sim_advance(1000000);
                          sim.ones = true;
                          set(UINT64_MAX, UINT64_MAX, 0);
                          sim_advance(0);
                      });
    sim.ones = false;
    sim_advance(0);
    json_node *t = closed(), *later = device_span(t, "later", 0);
    CHECK_STOP(later && device_span(t, "good", 0));
    CHECK(!device_span(t, "reset", 0) && !device_span(t, "dies", 0));
    CHECK_INT(arg(later, "macs"), 77);
    int64_t highest = 0;
    for (size_t i = 0; i < trace_count(t, "C", "sim macs"); i++) {
        const int64_t value = json_int(json_get(trace_event(t, "C", "sim macs", i), "args")->first);
        if (value > highest) highest = value;
    }
    CHECK_INT(highest, 500 + 77);
}

/* With a ring: tracks only, at drains that find records. */
static void at_drains(void)
{
    set(5, 5, 5);
    SIM_DESC(desc);
    desc.pmu = pmu;
    desc.pmu_count = 3;
    desc.ring = sim_ring();
    open_npu(&desc);
    for (unsigned i = 0; i < 3; i++) {
        sim_advance(1000000);
        WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, sim_advance(1000));
        sim_record(i, sim_truth() - 20, sim_truth() - 10);
        set(5 + 10 * i, 5 + 10 * i, 5);
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    }
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "C", "sim macs"), 3);
    CHECK_INT(json_int(json_get(trace_event(t, "C", "sim macs", 2), "args")->first), 20);
}

static void counters_that_cannot_be(void)
{
    npuprof_npu_pmu list[9];
    for (int i = 0; i < 9; i++) list[i] = pmu[1];
    npuprof_npu_desc good = sim_desc();
    good.pmu = list;
    good.pmu_count = 8;
    CHECK_INT(npuprof_npu_open(&npu, &good), NPUPROF_OK);
    npuprof_npu_close(&npu);
    REFUSED(NPUPROF_ERR_ARGUMENT, "", desc.pmu_count = 9);
    good.pmu_count = 2;
    REFUSED(NPUPROF_ERR_ARGUMENT, "", desc.pmu = NULL);
    REFUSED(NPUPROF_ERR_ARGUMENT, "", list[1].name = NULL);
    list[1] = pmu[1];
    REFUSED(NPUPROF_ERR_NPU_RANGE, "", list[1].counter.lo_offset = SIM_BYTES);
    list[1] = pmu[1];
    REFUSED(NPUPROF_ERR_NPU_COUNTER, "", list[1].counter.bits = 33);
}

/* A read that lag_ns allows to be late may be that of a sampled stamp: its error holds that, and no span is
   called wrong for it. */
static void late_stamps(void)
{
    for (int known = 0; known < 2; known++) {
        sim.origin = sim.host;
        SIM_DESC(desc);
        desc.counter.lag_ns = known ? 4000 : 0;
        open_npu(&desc);
        for (int i = 0; i < 50; i++) {
            sim_sync(100000000);
            sim_advance(10000);
            sim.origin += 3900;                                  /* the registers show what was 3.9 us ago */
            WITH_NPU_PROFILER(&npu, 0, "late", "NPU", PROF_NO_ARGS, sim_advance(20000));
            sim.origin -= 3900;
        }
        json_node *devices = json_get(closed(), "metadata.npuprof.devices"),
            *last = devices ? devices->first : NULL;
        CHECK_STOP(last != NULL);
        while (last->next) last = last->next;
        CHECK_INT(json_int(json_get(last, "clock_sync.spans")), 50);
        const long long violations = (long long)json_int(json_get(last, "clock_sync.causality_violations"));
        if (known) CHECK_INT(violations, 0);
        else CHECK(violations > 40 || json_get(last, "clock_sync.contradictions"));
    }
}

CHECK_MAIN(CASE(arguments_and_tracks), CASE(run_and_wait), CASE(run_unknown), CASE(loads),
           CASE(reset_and_death), CASE(at_drains), CASE(counters_that_cannot_be), CASE(late_stamps))

/* device state: power, enable bits, resets at every job, counters that stand; event counters by function
   SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "random.h"
#include <sys/mman.h>

enum { CONTROL = 0x40, ENABLE = 0x44, JOBS = 2000 };

static uint64_t up_to(uint64_t n) { return random_mixed() % n; }

static const npuprof_npu_requirement required[] = {
    { .offset = CONTROL, .mask = 0x4, .value = 0x4, .text = "PMCR.CNT_EN" },
    { .offset = ENABLE, .access = 32, .mask = 0x80000000u, .value = 0x80000000u,
      .text = "PMCNTENSET.CYCLE" } };

static const char *why(json_node *t, size_t n)
{
    return json_text(json_get(trace_event(t, "i", "no device span", n), "args.why"));
}

/* ---- A device whose counter stands, starts and is reset as the test says */

static struct { bool runs, on; uint64_t value, since; } device;

static uint64_t counter_now(void)
{
    return device.value + (device.runs ? sim.host - device.since : 0);
}

static void tick(void)
{
    const uint64_t value = counter_now() & sim_mask(48);
    sim_store(SIM_LO, 4, value & 0xFFFFFFFF);
    sim_store(SIM_HI, 4, value >> 32);
}

static void run(bool runs)
{
    device.value = counter_now();
    device.since = sim.host;
    device.runs = runs;
}

static void reset_to(uint64_t value)
{
    device.value = value;
    device.since = sim.host;
}

/* What it requires is there. */
static npuprof_npu_desc gated_desc(void)
{
    sim.tick = tick;
    memset(&device, 0, sizeof device);
    tick();
    sim_store(CONTROL, 4, 4);
    sim_store(ENABLE, 4, 0x80000000u);
    return (npuprof_npu_desc){ .name = "gated", .bar = sim_bar.bytes, .bar_bytes = sizeof sim_bar,
                               .counter = { .lo_offset = SIM_LO, .hi_offset = SIM_HI, .bits = 48 },
                               .requirements = required, .requirement_count = 2 };
}

/* Enable bits: open says which is missing, in words, and goes on; so does each block. */
static void enable_bits(void)
{
    npuprof_npu_desc desc = gated_desc();
    uint64_t ticks;
    npuprof_start(1);
    sim_store(CONTROL, 4, 0);
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_ERR_NPU_NOT_ENABLED);
    CHECK(strstr(npuprof_result_string(NPUPROF_ERR_NPU_NOT_ENABLED), "until PMCR.CNT_EN is 1, and it is 0"));
    WITH_NPU_PROFILER(&npu, 0, "disabled", "NPU", PROF_NO_ARGS, sim_advance(1000000));
    sim_store(CONTROL, 4, 4);
    sim_store(ENABLE, 4, 0);
    WITH_NPU_PROFILER(&npu, 0, "half", "NPU", PROF_NO_ARGS, sim_advance(200000000));
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_NOT_ENABLED);
    CHECK(strstr(npuprof_result_string(NPUPROF_ERR_NPU_NOT_ENABLED), "until PMCNTENSET.CYCLE is 1"));
    sim_store(ENABLE, 4, 0x80000000u);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_STOPPED);     /* enabled, and does not run */
    run(true);
    WITH_NPU_PROFILER(&npu, 0, "enabled", "NPU", PROF_NO_ARGS, sim_advance(1000000));
    json_node *t = closed(), *span = device_span(t, "enabled", 0);
    CHECK_STOP(span && !device_span(t, "disabled", 0) && !device_span(t, "half", 0));
    CHECK(llabs(arg(span, "ticks") - 1000000) < 200);
    CHECK(why(t, 0) && strstr(why(t, 0), "PMCR.CNT_EN") && strstr(why(t, 1), "PMCNTENSET.CYCLE"));
    CHECK(json_get(json_get(t, "metadata.npuprof.devices")->first, "clock_sync.idle_at_open"));
    CHECK_INT(said(t, "dead_reads"), 0);
}

static void requirements_that_cannot_be(void)
{
    npuprof_npu_requirement r = required[0];
    npuprof_npu_desc good = gated_desc();
    good.requirements = &r;
    good.requirement_count = 1;
    REFUSED(NPUPROF_ERR_ARGUMENT, "", desc.requirements = NULL);
    REFUSED(NPUPROF_ERR_ARGUMENT, "", r.text = NULL);
    r = required[0];
    REFUSED(NPUPROF_ERR_ARGUMENT, "never agree", r.value = 8);
    r = required[0];
    REFUSED(NPUPROF_ERR_ARGUMENT, "", r.access = 16);
    r = required[0];
    REFUSED(NPUPROF_ERR_NPU_RANGE, "", r.offset = SIM_BYTES);
    REFUSED(NPUPROF_ERR_NPU_RANGE, "", r.offset = CONTROL + 2);
}

/* ---- The walk of an Ethos-U: power on resets, the counter runs while the device does */

/* What the blocks were, which of them cannot have a span, and how long the counter ran; UINT64_MAX: that is
   not to be seen. */
static struct { uint64_t enter, inside, leave, after; bool lost; uint64_t ran; } job[JOBS];

/* Compares the device spans with the blocks: each begins between enter and inside, ends between leave and
   after, within its error, which is not larger than these stretches. */
static void compare_jobs(json_node *t, uint64_t zero, unsigned count)
{
    const int64_t base = trace_start(trace_event(t, "X", "zero", 0)) - (int64_t)zero;
    unsigned i = 0, lost = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        if (!json_get(e, "args.stamp")) continue;
        while (i < count && job[i].lost) i++, lost++;
        CHECK_STOP(i < count);
        const int64_t start = trace_start(e) - base, end = trace_end(e) - base;
        const int64_t error = arg(e, "error_ns");
        if (start < (int64_t)job[i].enter - error || start > (int64_t)job[i].inside + error ||
            end < (int64_t)job[i].leave - error || end > (int64_t)job[i].after + error || error > 300)
            check_failed_(__FILE__, __LINE__, "job %u: %" PRId64 " to %" PRId64 ", truly %" PRIu64 " to %"
                          PRIu64 ", error %" PRId64, i, start, end, job[i].enter, job[i].after, error);
        const int64_t ticks = arg(e, "ticks");
        if (job[i].ran != UINT64_MAX && llabs(ticks - (int64_t)job[i].ran) > 300)
            check_failed_(__FILE__, __LINE__, "job %u: %" PRId64 " ticks, truly %" PRIu64, i, ticks,
                          job[i].ran);
        i++;
    }
    while (i < count && job[i].lost) i++, lost++;
    CHECK_UINT(i, count);
    CHECK_UINT(trace_count(t, "i", "no device span"), lost);
}

static bool is_on(void *user)
{
    (void)user;
    return device.on;
}

/* by_power: the power goes off after each job, and on with a reset. Else the counter only stands. */
static void walk(bool by_power)
{
    npuprof_npu_desc desc = gated_desc();
    npuprof_start(1);
    if (by_power) desc.is_on = is_on;
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_OK);
    const uint64_t zero = mark_zero();
    for (unsigned i = 0; i < JOBS; i++) {
        sim_advance(up_to(3) ? up_to(100000) : up_to(900000000));
        device.on = true;
        if (by_power) reset_to(up_to(4) ? 0 : up_to(2000));
        const bool early = up_to(2);                 /* it runs already when the block begins */
        if (early) run(true);
        tick();
        job[i].enter = sim.host;
        WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, {
            job[i].inside = sim.host;
            sim_advance(up_to(50000));
            const uint64_t waited = early ? sim.host - job[i].inside : 0;
            run(true);
            const uint64_t length = 10000 + up_to(3000000);
            sim_advance(length);
            job[i].ran = length + waited;
            job[i].lost = false;
            const unsigned cycle = by_power ? (unsigned)up_to(20) : 9;
            if (cycle == 0) {                        /* a power cycle in the block: the value goes back */
                run(false);
                device.value = 0;
                job[i].lost = true;
            } else if (cycle == 1) {                 /* and passes the first one again: it cannot be seen */
                reset_to(0);
                sim_advance(length);
                job[i].ran = UINT64_MAX;
            }
            if (!early || up_to(2)) {
                run(false);
                sim_advance(up_to(20000));
            }
            tick();
            job[i].leave = sim.host;
        });
        job[i].after = sim.host;
        run(false);
        tick();
        device.on = !by_power;
        if (by_power) {                              /* nothing is read while it is off */
            uint64_t ticks;
            const uint32_t loads = npu.mmio_reads;
            CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_OFF);
            CHECK_UINT(npu.mmio_reads, loads);
        }
    }
    compare_jobs(closed(), zero, JOBS);
}

static void reset_at_every_job(void) { walk(true); }
static void stands_between_jobs(void) { walk(false); }

/* ---- A counter that a program moves, now and then, beside an enable bit: late, and never reset */

static void nothing(void) {}

static void moved_by_a_program(uint32_t lag_ns, uint64_t hz)
{
    npuprof_npu_desc desc = gated_desc();
    npuprof_start(1);
    desc.counter.lag_ns = lag_ns;
    desc.counter.hz = hz;
    reset_to(5000000000);
    run(true);
    tick();
    sim.tick = nothing;
    (void)npuprof_npu_open(&npu, &desc);             /* it stands until the program moves it */
    for (unsigned i = 0; i < 50; i++) {
        sim_advance(i % 3 ? 2000000 : 20000000);
        if (i == 40) reset_to(5000);
        tick();
        sim_advance(up_to(lag_ns + 1));
        const npuprof_result result = npuprof_npu_sync(&npu);
        if (i == 40) CHECK_INT(result, NPUPROF_ERR_NPU_RESET);
        else CHECK(result == NPUPROF_OK || result == NPUPROF_ERR_NPU_STOPPED);
    }
    CHECK_INT(said(closed(), "resets"), 1);
}

static void moved_late(void) { moved_by_a_program(1000000, 1000000000); }
static void moved_in_time(void) { moved_by_a_program(0, 1000000000); }

/* ---- Power: a page that cannot be touched while the device is off */

static unsigned char *page;
static void page_tick(void)
{
    if (device.on) *(volatile uint32_t *)(void *)(page + SIM_LO) = (uint32_t)(sim.host / 40);
}

static void power(bool on)
{
    device.on = false;
    CHECK(mprotect(page, 4096, on ? PROT_READ | PROT_WRITE : PROT_NONE) == 0);
    device.on = on;
    page_tick();
}

static void no_access_while_off(void)
{
    npuprof_npu_pmu events = { .name = "events", .counter = { .lo_offset = CONTROL, .bits = 32 } };
    uint64_t ticks, before;
    page = (unsigned char *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_STOP((void *)page != MAP_FAILED);
    sim.tick = page_tick;
    npuprof_start(1);
    power(false);
    const npuprof_npu_desc desc = { .name = "page", .bar = page, .bar_bytes = 4096,
                                    .counter = { .lo_offset = SIM_LO, .bits = 32 }, .is_on = is_on,
                                    .pmu = &events, .pmu_count = 1,
                                    .requirements = required, .requirement_count = 1 };
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_OK);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_OFF);
    CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_ERR_NPU_OFF);
    WITH_NPU_PROFILER(&npu, 0, "off", "NPU", PROF_NO_ARGS, sim_advance(1000000));
    CHECK_UINT(npu.mmio_reads, 0);
    power(true);
    CHECK_INT(npuprof_npu_read(&npu, &before), NPUPROF_OK);
    for (int i = 0; i < 20; i++) {
        sim_sync(1000000);
    }
    power(false);
    sim_advance(50000000);
    const uint32_t loads = npu.mmio_reads;
    WITH_NPU_PROFILER(&npu, 0, "off", "NPU", PROF_NO_ARGS, sim_advance(1000000));
    (void)npuprof_npu_extend(&npu, 5);
    CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_ERR_NPU_OFF);
    CHECK_UINT(npu.mmio_reads, loads);
    power(true);                                     /* the counter ran on: no epoch */
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    CHECK_UINT(npu.epoch_, 0);
    power(false);
    json_node *t = closed();
    CHECK(!device_span(t, "off", 0));
    CHECK(why(t, 0) && strstr(why(t, 0), "NPUPROF_ERR_NPU_OFF") && strstr(why(t, 1), "NPUPROF_ERR_NPU_OFF"));
    CHECK_INT(said(t, "resets"), 0);
}

/* ---- Event counters by function */

static uint64_t event_value[8];
static bool read_event(void *user, unsigned i, uint64_t *value)
{
    *value = event_value[i];
    return user == &npu && event_value[i] != 99;
}

static uint64_t read_ticks(void *user)
{
    (void)user;
    return sim_truth();
}

static void by_function(void)
{
    static const npuprof_npu_pmu events[] = {
        { .name = "idle", .read = read_event, .is_idle = true, .counter = { .bits = 32 } },
        { .name = "read", .read = read_event, .scale = 8, .unit = "bytes", .counter = { .bits = 32 } },
        { .name = "stall", .read = read_event, .restarts = true, .counter = { .bits = 32 } },
        { .name = "flaky", .read = read_event, .counter = { .bits = 16 } } };
    const npuprof_npu_desc desc = { .name = "sim", .read_ticks = read_ticks, .user = &npu, .pmu = events,
                                    .pmu_count = 4 };
    open_npu(&desc);
    event_value[1] = 0xFFFFFFF0u;
    for (unsigned i = 0; i < 3; i++) {
        sim_advance(1000000);
        event_value[2] = 70;                         /* of the job before; this one's falls below it */
        event_value[3] = i == 1 ? 99 : 0xFFFF;
        WITH_NPU_PROFILER(&npu, 0, "conv", "NPU", PROF_NO_ARGS, {
            sim_advance(1000000);                    /* 25,000 ticks, 10,000 of them idle */
            event_value[0] += 10000;
            event_value[1] = (event_value[1] + 100) & 0xFFFFFFFF;
            event_value[2] = 30 + i;
            event_value[3] = 2;
        });
    }
    json_node *t = closed();
    for (unsigned i = 0; i < 3; i++) {
        json_node *e = device_span(t, "conv", i);
        CHECK_STOP(e != NULL);
        CHECK(llabs(arg(e, "busy_ticks") - 15000) < 20);
        CHECK_INT(arg(e, "read"), 800);
        CHECK_INT(arg(e, "stall"), 30 + i);
        if (i != 1) CHECK_INT(arg(e, "flaky"), 3);
        else CHECK(!json_get(e, "args.flaky"));
    }
    CHECK_UINT(trace_count(t, "C", "sim read (bytes)"), 6);
    CHECK_INT(json_int(json_get(trace_event(t, "C", "sim read (bytes)", 5), "args")->first), 2400);
    CHECK_INT(json_int(json_get(trace_event(t, "C", "sim stall", 5), "args")->first), 30 + 31 + 32);
}

static void event_counters_that_cannot_be(void)
{
    npuprof_npu_pmu list[2] = { { .name = "a", .read = read_event },
                                { .name = "b", .read = read_event, .counter = { .bits = 32 } } };
    const npuprof_npu_desc good = { .read_ticks = read_ticks, .pmu = list, .pmu_count = 2 };
    CHECK_INT(npuprof_npu_open(&npu, &good), NPUPROF_OK);
    npuprof_npu_close(&npu);
    REFUSED(NPUPROF_ERR_ARGUMENT, "", list[0].is_idle = list[1].is_busy = true);
    list[1].is_busy = false;
    REFUSED(NPUPROF_ERR_ARGUMENT, "", list[0].is_busy = true);
    list[0].is_busy = list[0].is_idle = false;
    REFUSED(NPUPROF_ERR_ARGUMENT, "", list[0].scale = UINT64_C(0x100000001));
    list[0].scale = 1;
    REFUSED(NPUPROF_ERR_NPU_RANGE, "no BAR", list[1].read = NULL);
    CHECK(strstr(npuprof_result_string(NPUPROF_ERR_NPU_RANGE), "b lies in it"));
    CHECK_INT(npuprof_npu_open(&npu, NULL), NPUPROF_ERR_ARGUMENT);
}

/* The counter by function, the ring and an event counter in the BAR. */
static void function_beside_a_bar(void)
{
    static const npuprof_npu_pmu macs = { .name = "macs", .counter = { .lo_offset = CONTROL, .bits = 32 } };
    SIM_DESC(desc);
    desc.counter.lo_offset = SIM_BYTES;              /* unused */
    desc.read_ticks = read_ticks;
    desc.pmu = &macs;
    desc.pmu_count = 1;
    desc.ring = sim_ring();
    sim.zeros = true;                                /* what the BAR says of the time is of no account */
    open_npu(&desc);
    for (unsigned i = 0; i < 3; i++) {
        sim_advance(1000000);
        WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, sim_advance(1000));
        sim_store(CONTROL, 4, 10 * i);
        sim_record(i, sim_truth() - 20, sim_truth() - 10);
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    }
    json_node *t = closed();
    CHECK_INT(said(t, "spans"), 3);
    CHECK_INT(said(t, "causality_violations"), 0);
    CHECK_UINT(trace_count(t, "C", "sim macs"), 3);
}

/* A ring of a device that is off between jobs, and reset: no stamp is taken for one of another epoch. */
static void ring_over_resets(void)
{
    npuprof_npu_desc desc = gated_desc();
    unsigned drained = 0;
    sim_store(CONTROL, 4, 4);
    sim_store(ENABLE, 4, 0x80000000u);
    desc.is_on = is_on;
    desc.ring = sim_ring();
    open_npu(&desc);
    const uint64_t zero = mark_zero();
    for (unsigned i = 0; i < 300; i++) {
        device.on = true;
        reset_to(up_to(3) ? up_to(1000) : counter_now());        /* now and then it only stood */
        run(true);
        sim_advance(1000);
        if (!up_to(4)) CHECK(npuprof_npu_drain(&npu) != NPUPROF_ERR_NPU_OFF);
        WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, sim_advance(100));
        sim_advance(up_to(100000));
        job[i].enter = sim.host;
        const uint64_t start = counter_now();
        sim_advance(20000);
        job[i].leave = sim.host;
        sim_record(i, start, counter_now());
        sim_advance(up_to(50000));
        const bool early = up_to(3) != 0;
        if (early) (void)npuprof_npu_drain(&npu);
        drained += early;
        run(false);
        device.on = false;
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_ERR_NPU_OFF);
        sim_advance(up_to(2) ? up_to(300000000) : up_to(100000));
    }
    device.on = true;
    run(true);
    json_node *t = closed();
    const int64_t base = trace_start(trace_event(t, "X", "zero", 0)) - (int64_t)zero;
    size_t spans = 0;
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next) {
        if (!json_get(e, "args.stamp")) continue;
        const int64_t start = trace_start(e) - base, end = trace_end(e) - base;
        const int64_t error = arg(e, "error_ns") + 1;
        bool right = false;
        for (unsigned i = 0; i < 300; i++)
            right = right || (llabs(start - (int64_t)job[i].enter) <= error &&
                              llabs(end - (int64_t)job[i].leave) <= error);
        if (!right) check_failed_(__FILE__, __LINE__, "%" PRId64 " to %" PRId64 " is no job", start, end);
        spans++;
    }
    const size_t lost = (size_t)said(t, "ring_lost");
    printf("  %zu spans, %zu lost, %u drained before the power went\n", spans, lost, drained);
    CHECK_UINT(spans + lost, 300);
    CHECK(spans >= drained);
}

/* The driver decodes, and the counter is read: blocks are submissions, too. */
static void by_hand_beside_a_counter(void)
{
    SIM_DESC(desc);
    desc.ring.feed = true;
    open_npu(&desc);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_ERR_NPU_NO_RING);
    CHECK_INT(npuprof_npu_feed(&npu, 0, "a", 1), NPUPROF_ERR_NPU_NO_RING);
    for (unsigned i = 0; i < 20; i++) {
        sim_sync(100000000);
        WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, sim_advance(1000));
        const uint64_t start = sim_truth();
        sim_advance(5000);
        const uint64_t over = sim_truth(), raw = over & 0xFFFF;
        sim_advance(5000);
        CHECK_UINT(npuprof_npu_extend_stamp(&npu, raw, 16, 0), over);
        const uint64_t end = npuprof_npu_extend_stamp(&npu, raw, 16, start);
        CHECK(npuprof_npu_complete(&npu, 0, 0, NULL, NULL, start, end, PROF_NO_ARGS, true));
    }
    json_node *t = closed();
    CHECK_INT(said(t, "spans"), 20);
    CHECK_UINT(trace_count(t, "s", "submit"), 20);
    CHECK_INT(said(t, "ring_lost"), 0);
}

CHECK_MAIN(CASE(enable_bits), CASE(requirements_that_cannot_be), CASE(reset_at_every_job),
           CASE(stands_between_jobs), CASE(moved_late), CASE(moved_in_time), CASE(no_access_while_off),
           CASE(by_function), CASE(event_counters_that_cannot_be), CASE(function_beside_a_bar),
           CASE(ring_over_resets), CASE(by_hand_beside_a_counter))

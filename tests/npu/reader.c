/* reading the counter: halves, widths, directions, wraps, resets, stopped and dead counters, number of loads
   SPDX-License-Identifier: MIT */
#define NPUPROF_IMPLEMENTATION
#include "fixture.h"
#include "random.h"

/* A counter whose halves change between two loads, as a list: one state for each look at the host clock, the
   last one stays. */
static const uint32_t (*script)[2];
static size_t script_count, script_at;
static void play(void)
{
    size_t i = script_at < script_count ? script_at++ : script_count - 1;
    sim_store(SIM_HI, 4, script[i][0]);
    sim_store(SIM_LO, 4, script[i][1]);
}

static uint64_t read_ok(void)
{
    uint64_t ticks = 0;
    npuprof_result result = npuprof_npu_read(&npu, &ticks);
    if (result != NPUPROF_OK) check_failed_(__FILE__, __LINE__, "read: %s", npuprof_result_string(result));
    return ticks;
}

/* hi 0, lo 0xFFFFFFFF, hi 1 is read again: neither 0xFFFFFFFF nor 0x1FFFFFFFF. */
static void torn_halves_are_read_again(void)
{
    static const uint32_t states[][2] = { { 0, 0xFFFFFFF0 }, { 0, 0xFFFFFFFF }, { 1, 0 }, { 1, 1 } };
    npuprof_npu_raw_ raw;
    SIM_DESC(desc);
    desc.counter.hz = 0;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    script = states;
    script_count = 4;
    sim.tick = play;
    play();
    uint32_t loads = npu.mmio_reads;
    CHECK_INT(npuprof_npu_load_counter_(&npu, &npu.desc_.counter, false, &raw), NPUPROF_OK);
    CHECK_UINT(raw.value, 0x100000001u);
    CHECK_UINT(npu.mmio_reads - loads, 5);
}

static void spin(void)
{
    static uint32_t n;
    sim_store(SIM_HI, 4, ++n);
}

static void halves_that_never_agree(void)
{
    uint64_t ticks;
    SIM_DESC(desc);
    desc.counter.hz = 0;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    npu.has_rate_ = false;                                       /* so that it needs both halves */
    uint64_t before = npu.last_.device_ticks;
    sim.tick = spin;
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_TORN);
    CHECK_UINT(ticks, before);
}

/* A signal handler asks that interrupted a call of the same thread: no waiting, and 0. */
static void inside_another_call(void)
{
    uint64_t ticks = 1, error;
    int64_t ns;
    SIM_DESC(desc);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    sim_advance(1000000);
    CHECK(npuprof_npu_lock_(&npu));
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_BUSY);
    CHECK_UINT(ticks, 0);
    CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_ERR_NPU_BUSY);
    CHECK_INT(npuprof_npu_host_ns(&npu, 5000, &ns, &error), NPUPROF_ERR_NPU_BUSY);
    npuprof_npu_unlock_(&npu);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    npuprof_npu_close(&npu);
}

/* The counter of a simulator whose thread was interrupted between the first two anchors: it catches up, and
   that is no reset. */
static void late_from_the_start(void)
{
    uint64_t ticks;
    sim.hz = 1000000000;
    SIM_DESC(desc);
    desc.counter.hz = 0;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    npu.anchor_count_ = 1;
    npu.has_rate_ = false;
    npu.last_ = npu.anchors_[0];
    sim_advance(30);
    sim.frozen = true;
    sim_advance(10000000);
    CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);               /* hardly any ticks in 10 ms */
    CHECK(npu.anchor_count_ == 2 || npu.anchor_count_ == 3);
    sim_advance(100000);
    sim.frozen = false;
    sim_advance(0);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    for (int i = 0; i < 10; i++) {
        sim_sync(1000000);
    }
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    CHECK_UINT(npu.epoch_, 0);
    npuprof_npu_close(&npu);
}

/* A counter that stood until the device was open and then caught up: the first rate is many times the true
   one. No wrap of the low word is told by it. */
static uint64_t caught_up_at;
static void catch_up(void)
{
    static uint64_t late = 1;
    const uint64_t shown = sim.host < caught_up_at ? late++ : sim_truth();
    sim_store(SIM_HI, 4, shown >> 32);
    sim_store(SIM_LO, 4, shown & UINT32_MAX);
}

static void caught_up_at_open(void)
{
    uint64_t ticks, wrong_ones = 0;
    sim.hz = 1000000000;
    sim.start = 50000000;
    sim.step = 500;
    caught_up_at = sim.host + 60000;
    sim.tick = catch_up;
    SIM_DESC(desc);
    desc.counter.hz = 0;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    const npuprof_anchor_ *from = &npu.rate_from_, *to = &npu.rate_to_;
    CHECK(to->device_ticks - from->device_ticks > 100 * (to->host_after - from->host_before));
    for (int i = 0; i < 2000; i++) {
        sim_advance(1000000 + (uint64_t)(9e7 * uniform()));      /* after more it may have begun again */
        const uint64_t before = sim_truth();
        CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
        wrong_ones += ticks < before || ticks > sim_truth();
    }
    CHECK_UINT(wrong_ones, 0);
    CHECK_UINT(npu.epoch_, 0);
    npuprof_npu_close(&npu);
}

static void small_wrap(void)
{
    static uint32_t bar[2] = { 0xFFFFFFF0u, 0 };
    const npuprof_npu_desc desc = { .bar = bar, .bar_bytes = sizeof bar, .counter = { .bits = 32 } };
    uint64_t a, b;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    a = read_ok();
    bar[0] = 0x10;
    b = read_ok();
    CHECK_UINT(b - a, 0x20);
}

/* Widths from 1 to 64: what stands in the bits above them does not matter. */
static void every_width(void)
{
    SIM_DESC(desc);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    for (unsigned k = 0; k < 64 * 2 * 2 * 2 * 3 * 4; k++) {
        npuprof_npu_counter c = npu.desc_.counter;
        npuprof_npu_raw_ raw;
        c.bits = 1 + k % 64;
        c.access = k / 64 & 1 ? 64 : 32;
        c.lo_bits = (uint8_t)c.access;
        c.counts_down = k / 128 & 1;
        c.big_endian = sim.big = k / 256 & 1;
        c.order = (int)(k / 512 % 3);
        if (c.order == NPUPROF_NPU_SINGLE && c.bits > c.access) continue;
        const uint64_t value = random_bits(), shown = c.counts_down ? ~value : value, above = random_bits();
        if (c.access == 64) {
            sim_store(SIM_LO, 8, (shown & sim_mask(c.bits)) | (above & ~sim_mask(c.bits)));
        } else {
            const unsigned low = c.bits < 32 ? c.bits : 32, high = c.bits - low;
            sim_store(SIM_LO, 4, (shown & sim_mask(low)) | (above & ~sim_mask(low)));
            sim_store(SIM_HI, 4, (shown >> 32 & sim_mask(high)) | (above & ~sim_mask(high)));
        }
        sim.frozen = true;
        CHECK_INT(npuprof_npu_load_counter_(&npu, &c, false, &raw), NPUPROF_OK);
        if (raw.value != (value & sim_mask(c.bits)))
            check_failed_(__FILE__, __LINE__, "kind %u bits %u: %" PRIx64 " for %" PRIx64, k, c.bits,
                          raw.value, value & sim_mask(c.bits));
    }
}

/* Every width, access, order, direction and byte order gives the device's true time, over gaps up to a
   second. */
static void every_kind_of_counter(uint64_t hz, unsigned least_kinds)
{
    static const unsigned widths[] = { 14, 24, 31, 32, 33, 40, 48, 56, 63, 64 };
    unsigned kinds = 0;
    for (unsigned k = 0; k < 2 * 2 * 2 * 2 * 10; k++) {
        sim.access = k & 1 ? 64 : 32;
        sim.latch = k & 2;
        sim.down = k & 4;
        sim.big = k & 8;
        sim.bits = widths[k / 16];
        sim.hz = hz;
        if (sim_mask(sim.bits) / sim.hz < 1) continue;           /* wraps within a second: another test */
        sim.origin = sim.host;
        sim.start = random_bits() & sim_mask(sim.bits) & ~(UINT64_C(1) << (sim.bits - 1));
        memset(&sim_bar, 0, sizeof sim_bar);
        SIM_DESC(desc);
        npuprof_result result = npuprof_npu_open(&npu, &desc);
        if (result != NPUPROF_OK) {
            check_failed_(__FILE__, __LINE__, "kind %u: open: %s", k, npuprof_result_string(result));
            continue;
        }
        kinds++;
        sim_sync(1000000);
        for (int i = 0; i < 50; i++) {
            uint64_t ticks;
            sim_advance(random_bits() % (i % 5 ? 100000000 : 1000000000));
            uint64_t least = sim_truth();
            result = npuprof_npu_read(&npu, &ticks);
            if (result != NPUPROF_OK || ticks < least || ticks > sim_truth() + 1)
                check_failed_(__FILE__, __LINE__, "kind %u bits %u access %u hz %" PRIu64 ": %s, %" PRIu64
                                                  " not in [%" PRIu64 ", %" PRIu64 "]", k,
                              sim.bits, sim.access, sim.hz, npuprof_result_string(result), ticks, least,
                              sim_truth());
        }
        npuprof_npu_close(&npu);
    }
    CHECK(kinds >= least_kinds);
}

static void every_kind_at_8_khz(void) { every_kind_of_counter(8000, 160); }
static void every_kind_at_24_mhz(void) { every_kind_of_counter(24000000, 128); }
static void every_kind_at_1_ghz(void) { every_kind_of_counter(1000000000, 112); }
static void every_kind_at_4_thz(void) { every_kind_of_counter(UINT64_C(4096000000000), 64); }

/* A 14-bit counter at 8 kHz, gaps of up to 500 periods of 2.048 s; a 32-bit one at 24 MHz over days. */
static void many_wraps(void)
{
    for (int kind = 0; kind < 2; kind++) {
        sim.bits = kind ? 32 : 14;
        sim.hz = kind ? 24000000 : 8000;
        sim.origin = sim.host;
        sim.start = 77;
        SIM_DESC(desc);
        CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
        for (int i = 0; i < 12; i++) {                           /* the rate gets known better and better */
            sim_advance(UINT64_C(100000000) << (i < 6 ? i : 6));
            CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
        }
        for (int i = 0; i < 200; i++) {
            sim_advance(random_bits() % (kind ? UINT64_C(86400000000000) : UINT64_C(1000000000000)));
            uint64_t least = sim_truth(), ticks = read_ok();
            if (ticks < least || ticks > sim_truth())
                check_failed_(__FILE__, __LINE__, "kind %d: %" PRIu64 " for %" PRIu64, kind, ticks, least);
        }
        CHECK_UINT(npu.epoch_, 0);
        npuprof_npu_close(&npu);
    }
}

/* A device that is looked at once a minute: its rate is known from the start, and again after a reset and
   after a gap too long. */
static void once_a_minute(void)
{
    for (int known = 0; known < 2; known++) {
        uint64_t ticks;
        sim.bits = 32;
        sim.hz = 24000000;
        sim.start = 99;
        sim.origin = sim.host;
        SIM_DESC(desc);
        desc.counter.hz = known ? 24000000 : 0;
        CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
        CHECK(npu.anchor_count_ == 2 || npu.anchor_count_ == 3);
        for (int i = 0; i < 100; i++) {
            sim_advance(60000000000);
            const uint64_t least = sim_truth();
            npuprof_result result = npuprof_npu_read(&npu, &ticks);
            if (result != NPUPROF_OK || ticks < least || ticks > sim_truth())
                check_failed_(__FILE__, __LINE__, "minute %d: %s", i, npuprof_result_string(result));
        }
        /* 4.6 days: 100 ppm of it are half a period */
        sim_advance(UINT64_C(400000000000000));
        CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_AMBIGUOUS);
        CHECK(npu.anchor_count_ == 2 || npu.anchor_count_ == 3);
        sim_advance(60000000000);
        CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
        sim_advance(5000000000);
        sim.origin = sim.host;
        sim.start = 0;
        sim_advance(1000000);
        CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_RESET);
        CHECK(npu.anchor_count_ == 2 || npu.anchor_count_ == 3);
        sim_advance(60000000000);
        CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
        CHECK_UINT(npu.epoch_, 2);
        npuprof_npu_close(&npu);
    }
}

/* The rate changes by half between two anchors that would be 250 ms apart: the next block sees it, and the
   anchors follow. */
static void frequency_change_is_followed(void)
{
    open_sim();
    for (int i = 0; i < 100; i++)
        WITH_NPU_PROFILER(&npu, 0, "block", "NPU", PROF_NO_ARGS, sim_advance(10000000));
    for (int change = 0; change < 2; change++) {
        sim.start = sim_truth();
        sim.origin = sim.host;
        sim.hz = change ? 25000000 : 12500000;
        const uint64_t at = sim.host;
        int64_t ns;
        uint64_t error;
        for (int i = 0; i < 10; i++)
            WITH_NPU_PROFILER(&npu, 0, "block", "NPU", PROF_NO_ARGS, sim_advance(2000000));
        uint32_t after = 0;
        for (uint32_t i = 0; i < npu.anchor_count_; i++) after += npu.anchors_[i].host_before > at;
        CHECK(after >= 4);
        const uint64_t ticks = sim_truth();
        const int64_t now = npuprof_ticks_to_ns_(sim.host);
        CHECK_INT(npuprof_npu_host_ns(&npu, ticks, &ns, &error), NPUPROF_OK);
        CHECK((uint64_t)llabs(ns - now) <= error && error < 2000);
        for (int i = 0; i < 100; i++)
            WITH_NPU_PROFILER(&npu, 0, "block", "NPU", PROF_NO_ARGS, sim_advance(10000000));
    }
    CHECK_UINT(npu.epoch_, 0);
    npuprof_npu_close(&npu);
}

static void reset_is_no_wrap(void)
{
    for (unsigned bits = 32; bits <= 64; bits += 32) {
        uint64_t ticks = 0;
        sim.bits = bits;
        sim.origin = sim.host;
        sim.start = 3000000000u;
        SIM_DESC(desc);
        CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
        for (int i = 0; i < 3; i++) {
            sim_sync(500000000);
        }
        sim_advance(300000000);
        sim.origin = sim.host - 40000000;                        /* began at 0, 40 ms ago */
        sim.start = 0;
        sim_advance(0);
        uint64_t least = sim_truth();
        CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_RESET);
        CHECK(ticks >= least && ticks <= sim_truth());
        CHECK_UINT(npu.epoch_, 1);
        CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
        sim_advance(200000000);
        CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
        CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
        CHECK_UINT(npu.epoch_, 1);
        npuprof_npu_close(&npu);
    }
}

static void stopped_counter(void)
{
    uint64_t ticks = 0, at;
    SIM_DESC(desc);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    sim_sync(1000000);
    sim.frozen = true;
    at = read_ok();
    sim_advance(50000000);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);       /* a pause of 50 ms proves nothing */
    sim_advance(60000000);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_STOPPED);
    CHECK(ticks - at < 10);
    CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_ERR_NPU_STOPPED);
    sim.frozen = false;
    sim_advance(1000);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    CHECK_UINT(npu.epoch_, 0);
}

static void dead_device(void)
{
    for (int zeros = 0; zeros < 2; zeros++) {
        uint64_t ticks, before;
        sim.origin = sim.host;
        SIM_DESC(desc);
        CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
        sim_sync(1000000);
        before = read_ok();
        if (zeros) sim.zeros = true;
        else sim.ones = true;
        sim_advance(1000000);
        CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_DEAD);
        CHECK_UINT(ticks, before);
        CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_ERR_NPU_DEAD);
        sim.zeros = sim.ones = false;
        sim_advance(1000000);
        CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
        CHECK_UINT(npu.epoch_, 0);
        npuprof_npu_close(&npu);
        if (zeros) sim.zeros = true;
        else sim.ones = true;
        sim_advance(0);
        /* zeros at open are a counter that has not been started */
        CHECK_INT(npuprof_npu_open(&npu, &desc), zeros ? NPUPROF_OK : NPUPROF_ERR_NPU_DEAD);
        npuprof_npu_close(&npu);
        sim.zeros = sim.ones = false;
    }
}

/* A narrow counter in a wide register: all ones are bits it does not have. */
static void dead_narrow_counter(void)
{
    sim.bits = 14;
    sim.hz = 8000;
    sim.ones = true;
    SIM_DESC(desc);
    desc.counter.hz = 0;
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_ERR_NPU_DEAD);
}

/* Neither a dead nor a reset device makes a device span; the trace says what was seen. */
static void no_span_of_a_bad_read(void)
{
    open_sim();
    sim_advance(1000000);
    WITH_NPU_PROFILER(&npu, 0, "good", "NPU", PROF_NO_ARGS, sim_advance(1000000));
    WITH_NPU_PROFILER(&npu, 0, "dies", "NPU", PROF_NO_ARGS,
                      { sim_advance(1000000); sim.ones = true; sim_advance(0); });
    WITH_NPU_PROFILER(&npu, 0, "dead", "NPU", PROF_NO_ARGS, sim_advance(1000000));
    sim.ones = false;
    WITH_NPU_PROFILER(&npu, 0, "reset", "NPU", PROF_NO_ARGS,
                      { sim.origin = sim.host; sim.start = 0; sim_advance(1000000); });
    WITH_NPU_PROFILER(&npu, 0, "again", "NPU", PROF_NO_ARGS, sim_advance(1000000));
    sim_advance(1000000);
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "X", "good"), 2);
    CHECK_UINT(trace_count(t, "X", "dies"), 1);
    CHECK_UINT(trace_count(t, "X", "dead"), 1);
    CHECK_UINT(trace_count(t, "X", "reset"), 1);
    CHECK_UINT(trace_count(t, "X", "again"), 2);
    static const struct { const char *span; npuprof_result why; } marks[] = {
        { "dies", NPUPROF_ERR_NPU_DEAD }, { "dead", NPUPROF_ERR_NPU_DEAD },
            { "reset", NPUPROF_ERR_NPU_RESET } };
    CHECK_UINT(trace_count(t, "i", "no device span"), 3);
    for (size_t i = 0; i < 3; i++) {                             /* inside the host span that it is about */
        json_node *mark = trace_event(t, "i", "no device span", i),
            *span = trace_event(t, "X", marks[i].span, 0);
        CHECK_STOP(mark && span);
        CHECK(trace_start(mark) >= trace_start(span) && trace_start(mark) <= trace_end(span));
        CHECK_STR(json_text(json_get(mark, "args.why")), npuprof_result_string(marks[i].why));
        CHECK_STR(json_text(json_get(mark, "args.device")), "sim");
    }
}

static uint32_t loads_of_a_span(void)
{
    uint32_t before = npu.mmio_reads;
    WITH_NPU_PROFILER(&npu, 0, "span", "NPU", PROF_NO_ARGS, sim_advance(1000000));
    return npu.mmio_reads - before;
}

/* The numbers of the contract: 2 where the low word is enough, else 4 latched, 6 split; one register: 2. */
static void loads_for_a_sampled_span(void)
{
    for (int kind = 0; kind < 4; kind++) {
        sim.latch = kind == 1;
        sim.access = kind == 2 ? 64 : 32;
        sim.hz = kind == 3 ? UINT64_C(4096000000000) : 25000000;
        sim.origin = sim.host;
        SIM_DESC(desc);
        desc.counter.hz = 0;
        open_npu(&desc);
        const uint32_t loads = kind == 3 ? 4 : 2;    /* the low word comes round every ms: all for the end */
        CHECK_UINT(loads_of_a_span(), loads);
        npu.has_rate_ = false;
        CHECK_UINT(loads_of_a_span(), kind == 0 ? 6 : kind == 1 ? 4 : kind == 2 ? 2 : 6);
        for (int i = 0; i < 4; i++) {
            sim_sync(10000000);
        }
        CHECK_UINT(loads_of_a_span(), loads);
        sim_advance(UINT64_C(20000000000));
        CHECK_UINT(loads_of_a_span(), kind == 3 ? 6 : 2);
        npuprof_npu_close(&npu);
    }
}

static uint64_t ticks_of_user(void *user) { return *(uint64_t *)user; }

static void a_function_instead_of_a_bar(void)
{
    uint64_t value = 1000, ticks;
    const npuprof_npu_desc desc = { .read_ticks = ticks_of_user, .user = &value, .counter = { .bits = 40 } };
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    value = 5000;
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    CHECK_UINT(ticks, 5000);
    CHECK_UINT(npu.mmio_reads, 0);
    npuprof_npu_close(&npu);
    npuprof_npu_close(&npu);
}

/* A raw stamp is the one nearest to now, before or after. */
static void extend(void)
{
    sim.bits = 32;
    SIM_DESC(desc);
    sim.start = 0x1FFFFFF00u;
    sim_advance(0);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    sim_sync(1000000);
    sim_advance(UINT64_C(400000000000));
    for (int i = 0; i < 1000; i++) {
        int64_t offset = (int64_t)(random_bits() % 4000000000u) - 2000000000;
        /* the counter has shown 0xFFFFFFxx at open */
        uint64_t wanted = sim_truth() - 0x100000000u + (uint64_t)offset;
        CHECK_UINT(npuprof_npu_extend(&npu, wanted & 0xFFFFFFFFu), wanted);
    }
}

CHECK_MAIN(CASE(torn_halves_are_read_again), CASE(halves_that_never_agree), CASE(inside_another_call),
           CASE(late_from_the_start), CASE(caught_up_at_open), CASE(small_wrap), CASE(every_width),
           CASE(every_kind_at_8_khz), CASE(every_kind_at_24_mhz), CASE(every_kind_at_1_ghz),
           CASE(every_kind_at_4_thz), CASE(many_wraps), CASE(once_a_minute),
           CASE(frequency_change_is_followed), CASE(reset_is_no_wrap), CASE(stopped_counter),
           CASE(dead_device), CASE(dead_narrow_counter), CASE(no_span_of_a_bad_read),
           CASE(loads_for_a_sampled_span), CASE(a_function_instead_of_a_bar), CASE(extend))

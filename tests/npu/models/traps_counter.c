/* test: large - real NPUs with the traps of their counters and indices: enable bits, resets, halves of two
   moments, latches that others move, registers that mean something else, blocks without power
   SPDX-License-Identifier: MIT */
#include "npu/models/played.h"
#include "npu/models/traps.h"

static npuprof_npu npu;

/* How far what the library reads is from the truth, in ticks; what time passes meanwhile is allowed. */
static uint64_t read_error(npuprof_result *result)
{
    uint64_t ticks = 0;
    const uint64_t before = play_ticks(play.host);
    *result = npuprof_npu_read(&npu, &ticks);
    const uint64_t after = play_ticks(play.host);
    return ticks < before ? before - ticks : ticks > after ? ticks - after : 0;
}

static void to_ticks_near(uint64_t carry, uint64_t ns_before)
{
    play.step = 0;
    play.origin = play.host;
    play.start = carry - ns_before * play.hz / 1000000000;
    play.step = 30;
}

/* ---- Gaudi's counter: control at +0, low half at +8, high half at +0xC */

static unsigned char *stamp_block;
static npuprof_npu_requirement stamp_is_on = { 0, 32, 1, 1, "CNTCR.EN" };

static void show_stamp(uint64_t ticks)
{
    if (!(play_get(stamp_block, 0, 4) & 1)) return;
    play_put(stamp_block, 8, 4, ticks & UINT32_MAX);
    play_put(stamp_block, 0xC, 4, ticks >> 32);
}

static npuprof_npu_desc stamp_desc(void)
{
    npuprof_npu_desc d;
    memset(&d, 0, sizeof d);
    if (!stamp_block) stamp_block = play_memory(0x24);
    d.name = "gaudi";
    d.bar = stamp_block;
    d.bar_bytes = 0x24;
    d.counter.hz = play.hz;
    d.counter.lo_offset = 8;
    d.counter.hi_offset = 0xC;
    d.counter.order = NPUPROF_NPU_HI_LO_HI;
    d.requirements = &stamp_is_on;
    d.requirement_count = 1;
    play_put(stamp_block, 0, 4, 1);
    play.show = show_stamp;
    return d;
}

/* The high half changes between the loads: the driver's own way, high and then low, is wrong at times. */
static void gaudi_torn(void)
{
    unsigned naive = 0;
    npuprof_result result;
    for (unsigned i = 0; i < 200; i++) {
        const npuprof_npu_desc d = stamp_desc();
        to_ticks_near((i + 1ull) << 32, play_random(120) + 1);
        play_until(play.host);
        const uint64_t high = play_get(stamp_block, 0xC, 4);
        play_until(play.host + 30);
        const uint64_t value = high << 32 | play_get(stamp_block, 8, 4);
        naive += value + 1000 < play_ticks(play.host);
        to_ticks_near((i + 2ull) << 32, play_random(250) + 1);
        if (!i) npuprof_start(1);
        CHECK_INT(npuprof_npu_open(&npu, &d), NPUPROF_OK);
        CHECK_UINT(read_error(&result), 0);
        CHECK_INT(result, NPUPROF_OK);
        npuprof_npu_close(&npu);
    }
    CHECK(naive > 10);
}

/* By an ioctl: the answer is of some moment between the two looks at the host's clock. */
static uint64_t slow_ticks(void *user)
{
    (void)user;
    play_until(play.host + 2000);
    const uint64_t ticks = play_ticks(play.host);
    play_until(play.host + 100);
    return ticks;
}

static void gaudi_ioctl(void)
{
    npuprof_npu_desc d;
    memset(&d, 0, sizeof d);
    d.read_ticks = slow_ticks;
    d.counter.hz = play.hz;
    npuprof_start(1);
    const int64_t offset = npuprof_now_ns() - (int64_t)play.host;
    CHECK_INT(npuprof_npu_open(&npu, &d), NPUPROF_OK);
    for (int i = 0; i < 10; i++) {
        int64_t ns;
        uint64_t error;
        play_until(play.host + 50000000);
        CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
        CHECK_INT(npuprof_npu_host_ns(&npu, play_ticks(play.host), &ns, &error), NPUPROF_OK);
        CHECK(llabs((long long)(ns - offset - (int64_t)play.host)) <= (long long)error + 30);
    }
    npuprof_npu_close(&npu);
}

/* ---- Tenstorrent: a load of the low word latches the high one, and kernels load it, too */

static bool others_read;

static void show_latch(uint64_t ticks)
{
    tt_show(ticks);                              /* latched: the high word of before, when L was loaded */
    if (others_read) play_put(tt_window, 0x121F8, 4, ticks >> 32);
}

/* Wrong first values of a device that is opened at the carry of its low word. */
static unsigned wrong_values(int order)
{
    unsigned wrong = 0;
    npuprof_result result;
    npuprof_npu_desc d;
    memset(&d, 0, sizeof d);
    tt_describe_counter(&d);
    d.name = "tt";
    d.counter.hz = play.hz = 1350000000;
    d.counter.order = order;
    if (order == NPUPROF_NPU_LO_LATCHES_HI) d.counter.hi_offset = 0x121F8;
    play.show = show_latch;
    npuprof_start(1);
    for (unsigned i = 0; i < 200; i++) {
        to_ticks_near((i + 1ull) << 32, play_random(100) + 1);
        play_until(play.host);
        play_until(play.host);
        if (npuprof_npu_open(&npu, &d) != NPUPROF_OK) {
            wrong++;
            continue;
        }
        wrong += read_error(&result) > 0 || result != NPUPROF_OK;
        npuprof_npu_close(&npu);
    }
    return wrong;
}

static void tt_latch_of(const void *user)
{
    const int way = *(const int *)user;
    others_read = way != 0;
    const unsigned wrong = wrong_values(way == 2 ? NPUPROF_NPU_HI_LO_HI : NPUPROF_NPU_LO_LATCHES_HI);
    printf("note way %d: %u of 200 values are wrong\n", way, wrong);
    if (way == 1) CHECK(wrong > 10);
    else CHECK_UINT(wrong, 0);
}

static void tt_latch(void)
{
    for (int way = 0; way < 3; way++) check_in_child(tt_latch_of, &way);
}

/* ---- VIP */

static void show_swapped(uint64_t ticks)
{
    vip_show(ticks);
    for (unsigned i = 0; i < VIP_NPUS && vip[i].page; i++) {
        const uint64_t idle = play_get(vip[i].page, 0x7C, 4);
        play_put(vip[i].page, 0x7C, 4, play_get(vip[i].page, 0x78, 4));
        play_put(vip[i].page, 0x78, 4, idle);
    }
}

/* On some models 0x78 counts idle cycles: the counter stands while the block works. Nothing says that it is
   the wrong register (examples/devices/vip.toml does) but the trace; no span is longer than its block by more
   than its error. */
static void vip_other_model(void)
{
    static play_model model;
    model = vip_model;
    model.show = show_swapped;
    open_model(&model);
    vip_run(60);
    json_node *t = written();
    for (json_node *e = json_get(t, "traceEvents")->first; e; e = e->next)
        if (json_get(e, "args.pe_index") && json_text(json_get(e, "ph"))[0] == 'X')
            CHECK(trace_dur(e) >= 0 && trace_dur(e) < 60000 + 2 * json_int(json_get(e, "args.error_ns")));
    CHECK(said(t, "contradictions") > 0);
}

/* Nobody looked for a while. The measured rate counts the wraps, until its error is half a period. */
static void vip_gaps(void)
{
    uint64_t ticks;
    npuprof_result result = NPUPROF_OK;
    unsigned right = 0;
    open_model(&vip_model);
    CHECK_INT(npuprof_npu_read(&play_npus[0], &ticks), NPUPROF_OK);
    for (uint64_t gap = 2500000000; result == NPUPROF_OK && gap < 1000000000000000; gap *= 4) {
        const uint64_t last = ticks, before = play_ticks(play.host);
        play_until(play.host + gap);
        result = npuprof_npu_read(&play_npus[0], &ticks);
        const uint64_t off = ticks - last - (play_ticks(play.host) - before) + 1000;
        if (result == NPUPROF_OK) CHECK(off < 2000);
        right += result == NPUPROF_OK;
    }
    CHECK(right >= 1);
    CHECK_INT(result, NPUPROF_ERR_NPU_AMBIGUOUS);
    play_until(play.host + 1000000);
    CHECK_INT(npuprof_npu_read(&play_npus[0], &ticks), NPUPROF_OK);
    printf("note %u gaps were counted\n", right);
    CHECK_INT(said(written(), "ambiguous_gaps"), 1);
}

/* ---- Intel: the counter begins at 0 after D0i3, SysTime goes on, and the driver tells the new offset */

static void fence_resumes(void)
{
    open_model(&fence_model);
    play_jobs(100);
    for (unsigned i = 1; i <= 3; i++) {
        play_until(play.host + 20000000 * i);
        fence_systime += play_ticks(play.host) / 2;
        play.start = 0;
        play.origin = play.host;
        play_until(play.host + 5000000);
        CHECK_INT(npuprof_npu_sync(&play_npus[0]), NPUPROF_ERR_NPU_RESET);
        npuprof_npu_set_stamp_offset(&play_npus[0], -2 * (int64_t)fence_systime);
        play_jobs(100);
    }
    play_compare("arrows=right");
}

/* Two laps to the entry: the slot is what it was, and only the laps tell. */
static void fence_two_laps(void)
{
    fence_count = 20;
    open_model(&fence_model);
    jobs_on(1, 7);
    play_serve();
    jobs_on(1, 40);
    play_serve();
    play_serve();
    json_node *t = written();
    CHECK_UINT(device_spans(t) + (uint64_t)said(t, "ring_lost"), 47);
    CHECK(said(t, "ring_lost") == 20 || said(t, "ring_lost") == 21);
}

/* ---- XDNA: the halves of the tail in two stores, 1 us apart */

static void xdna_halves_of(const void *user)
{
    static play_model model;
    xdna_torn = *(const int *)user;
    model = xdna_model;
    model.show = xdna_show;
    model.serve_every = 10000;
    model.duration = 3000;
    play_model_run(&model, 4000);                /* 7 carries of the low half */
}

static void xdna_halves(void)
{
    for (int torn = 1; torn <= 2; torn++) check_in_child(xdna_halves_of, &torn);
}

/* ---- No power: a load from the BAR would end the test */

static bool has_power = true;
static bool power(void *user) { (void)user; return has_power; }

static void describe_in_bar(npuprof_npu_desc *d)
{
    hailo_describe(d);
    d->is_on = power;
}

static void index_without_power(void)
{
    static play_model model;
    model = hailo_model;
    model.describe = describe_in_bar;
    open_model(&model);
    jobs_on(0, 5);
    void *const page = (void *)((uintptr_t)progress[0].memory / 4096 * 4096);
    has_power = false;
    mprotect(page, 4096, PROT_NONE);
    for (int i = 0; i < 3; i++) CHECK_INT(npuprof_npu_drain(&play_npus[0]), NPUPROF_ERR_NPU_OFF);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    has_power = true;
    CHECK_INT(npuprof_npu_drain(&play_npus[0]), NPUPROF_OK);
    has_power = false;
    mprotect(page, 4096, PROT_NONE);             /* nor does a close */
    CHECK_UINT(device_spans(written()), 5);
}

CHECK_MAIN(CASE(gaudi_torn), CASE(gaudi_ioctl), CASE(tt_latch), CASE(vip_other_model), CASE(vip_gaps),
           CASE(fence_resumes), CASE(fence_two_laps), CASE(xdna_halves), CASE(index_without_power))

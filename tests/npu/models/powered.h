/* powered.h - devices without records, sampled by their driver: Arm Ethos-U, VeriSilicon VIP; host stamps of
   the driver: rknpu, NVDLA.
   SPDX-License-Identifier: MIT

   Ethos-U: ethosu55_interface.h:110-171 (hal_ethos_u 0356707), PMCR 0x180 (0 CNT_EN), PMCNTENSET 0x184 (31
   cycle), PMCCNTR 0x1A0 / 0x1A4 (48 bits), event counters 0x300; of the U85, ethosu85_interface.h:391, all of
   them 0x1000 higher. NPUs 0 and 1 are U55 or U65, 2 and 3 are U85. A power-up is a soft reset: the counter
   begins at 0, and what the driver enabled is gone. VIP: etna_viv db29029 state_hi.xml:147-153, 0x78
   PROFILE_TOTAL_CYCLES, 0x7C PROFILE_IDLE_CYCLES, 32 bits. rknpu: rknpu_job.c, hw_commit_time and the
   interrupt; a load while the block has no power ends the machine. NVDLA: dla_get_time_us(), us. */

enum { ETHOSU_NPUS = 4, ETHOSU_PAGE = 0x2000, VIP_NPUS = 4 };

/* ---- Ethos-U */

static struct {
    unsigned char *page;
    bool on, enabled;
    uint64_t on_at, ends_at;
    uint32_t handle, serial;
    uint64_t began_at;
} ethosu[ETHOSU_NPUS];
static unsigned ethosu_number[ETHOSU_NPUS] = { 0, 1, 2, 3 };
static uint64_t ethosu_start;            /* of the counter after a power-up: 0, or near its wrap */
static unsigned ethosu_pmu_at(unsigned i) { return i < 2 ? 0 : 0x1000; }

#define ETHOSU_NEEDS(at) \
    { (at) + 0x180, 32, 1, 1, "PMCR.CNT_EN" }, \
    { (at) + 0x184, 32, 0x80000000u, 0x80000000u, "PMCNTENSET.CYCLE_CNT" }
static const npuprof_npu_requirement ethosu_requirements[2][2] = { { ETHOSU_NEEDS(0) },
                                                                   { ETHOSU_NEEDS(0x1000) } };
#define ETHOSU_MACS(at) \
    { .name = "macs", .counter = { .lo_offset = (at) + 0x300, .bits = 32, .order = NPUPROF_NPU_SINGLE } }
static const npuprof_npu_pmu ethosu_pmu[] = { ETHOSU_MACS(0), ETHOSU_MACS(0x1000) };

static bool ethosu_is_on(void *user) { return ethosu[*(unsigned *)user].on; }

static void ethosu_describe(npuprof_npu_desc *d)
{
    d->bar = ethosu[play_opening].page = play_memory(ETHOSU_PAGE);
    d->bar_bytes = ETHOSU_PAGE;
    const unsigned at = ethosu_pmu_at(play_opening);
    d->counter.lo_offset = at + 0x1A0;
    d->counter.hi_offset = at + 0x1A4;
    d->counter.bits = 48;
    d->requirements = ethosu_requirements[at != 0];
    d->requirement_count = 2;
    d->is_on = ethosu_is_on;
    d->user = &ethosu_number[play_opening];
    d->pmu = &ethosu_pmu[at != 0];
    d->pmu_count = 1;
}

static void ethosu_show(uint64_t ticks)
{
    for (unsigned i = 0; i < ETHOSU_NPUS; i++) {
        if (!ethosu[i].page) continue;
        unsigned char *const pmu = ethosu[i].page + ethosu_pmu_at(i);
        if (!ethosu[i].on) {             /* what a powered-down block shows to nobody */
            play_put(pmu, 0x1A0, 4, 0xDEADDEAD);
            play_put(pmu, 0x1A4, 4, 0xDEAD);
            continue;
        }
        const uint64_t cycles = (ticks - play_ticks(ethosu[i].on_at) + ethosu_start) & 0xFFFFFFFFFFFF;
        play_put(pmu, 0x1A0, 4, ethosu[i].enabled ? cycles & UINT32_MAX : 0);
        play_put(pmu, 0x1A4, 4, ethosu[i].enabled ? cycles >> 32 : 0);
        play_put(pmu, 0x300, 4, (cycles - ethosu_start) / 4);
    }
}

static void ethosu_power(unsigned i, bool on)
{
    ethosu[i].on = ethosu[i].enabled = on;
    ethosu[i].on_at = play.host;
    play_put(ethosu[i].page + ethosu_pmu_at(i), 0x180, 4, on);
    play_put(ethosu[i].page + ethosu_pmu_at(i), 0x184, 4, on ? 0x80000001u : 0);
    if (play.show) play.show(play_ticks(play.host));
}

/* ethosu_inference_begin(): power is on, the counter runs. */
static void ethosu_begin(unsigned i)
{
    ethosu[i].serial = play.submitted++;
    ethosu_power(i, true);
    ethosu[i].began_at = play.host;
    ethosu[i].handle = npuprof_npu_begin(&play_npus[i], 7, "inference", "NPU",
                                         PROF_ARGS(PROF_UINT("serial", ethosu[i].serial)));
    if (!ethosu[i].handle) check_failed_(__FILE__, __LINE__, "no handle for %u", (unsigned)ethosu[i].serial);
    ethosu[i].ends_at = play.host + 5000 + play_random(40000);
}

/* ethosu_inference_end(). */
static void ethosu_end(unsigned i)
{
    play.zero = (double)ethosu[i].began_at - (double)ethosu_start * play_ns_per_tick();
    play_truth(i, "inference", ethosu[i].serial, ethosu[i].began_at, play.host);
    play_note(npuprof_npu_end(&play_npus[i], ethosu[i].handle));
    ethosu_power(i, false);
    ethosu[i].ends_at = 0;
    play.ended++;
    play.entries++;
}

static void ethosu_run(uint32_t jobs)
{
    uint64_t next = play.host;
    while (play.ended != jobs) {
        unsigned first = ETHOSU_NPUS, idle = ETHOSU_NPUS;
        for (unsigned i = 0; i < ETHOSU_NPUS; i++) {
            if (!ethosu[i].ends_at) idle = i;
            else if (first == ETHOSU_NPUS || ethosu[i].ends_at < ethosu[first].ends_at) first = i;
        }
        const bool submit = idle < ETHOSU_NPUS && play.submitted != jobs &&
                            (first == ETHOSU_NPUS || next <= ethosu[first].ends_at);
        play_until(submit ? next : ethosu[first].ends_at);
        if (!submit) ethosu_end(first);
        else ethosu_begin(idle);
        if (submit) next = play.host + play_random(9000);
    }
}

static const play_model ethosu_model = {
    .name = "ethosu", .lanes = ETHOSU_NPUS, .hz = 800000000, .separate = true, .describe = ethosu_describe,
    .show = ethosu_show, .run = ethosu_run, .own_truth = true, .entries_per_job = UINT32_MAX,
    .compare = "stamps=sampled counts=macs:0.25"
};

/* ---- VIP */

static struct { unsigned char *page; uint64_t idle, idle_at; bool working; } vip[VIP_NPUS];
static const npuprof_npu_pmu vip_pmu[] = {
    { .name = "idle", .counter = { .lo_offset = 0x7C, .bits = 32, .order = NPUPROF_NPU_SINGLE },
        .is_idle = true },
    { .name = "read", .counter = { .lo_offset = 0x40, .bits = 32, .order = NPUPROF_NPU_SINGLE }, .scale = 8,
      .unit = "bytes" }
};

static void vip_describe(npuprof_npu_desc *d)
{
    vip[play_opening].page = play_memory(0x1000);
    vip[play_opening].idle_at = play.host;
    d->bar = vip[play_opening].page;
    d->bar_bytes = 0x1000;
    d->counter.lo_offset = 0x78;
    d->counter.bits = 32;
    d->pmu = vip_pmu;
    d->pmu_count = 2;
}

static void vip_show(uint64_t ticks)
{
    for (unsigned i = 0; i < VIP_NPUS && vip[i].page; i++) {
        const uint64_t idle = vip[i].idle + (vip[i].working ? 0 : ticks - play_ticks(vip[i].idle_at));
        play_put(vip[i].page, 0x78, 4, ticks & UINT32_MAX);
        play_put(vip[i].page, 0x7C, 4, idle & UINT32_MAX);
        play_put(vip[i].page, 0x40, 4, (ticks - idle) / 16 & UINT32_MAX);
    }
}

static void vip_work(unsigned i, bool works)
{
    if (works) vip[i].idle += play_ticks(play.host) - play_ticks(vip[i].idle_at);
    vip[i].idle_at = play.host;
    vip[i].working = works;
}

static void vip_run(uint32_t jobs)
{
    while (play.ended != jobs) {
        const unsigned i = (unsigned)play_random(VIP_NPUS);
        const uint32_t serial = play.submitted++;
        uint64_t begin = 0, end = 0;
        play_until(play.host + play_random(5000));
        WITH_NPU_PROFILER(&play_npus[i], 7, "submit", "NPU", PROF_ARGS(PROF_UINT("serial", serial)), {
            begin = play.host;
            vip_work(i, true);
            play_until(play.host + 2000 + play_random(40000));
            vip_work(i, false);
            end = play.host;
        });
        play.zero = (double)play.origin - (double)play.start * play_ns_per_tick();
        play_truth(i, "submit", serial, begin, end);
        play.ended++;
        play.entries++;
    }
}

static const play_model vip_model = {
    .name = "vip", .lanes = VIP_NPUS, .hz = 1000000000, .start = 0xFFFF0000, .ppm = -9, .separate = true,
    .describe = vip_describe, .show = vip_show, .run = vip_run, .own_truth = true,
    .entries_per_job = UINT32_MAX, .compare = "stamps=sampled bits=32 counts=busy_ticks:1,read:0.5"
};

/* ---- rknpu, NVDLA: the driver's own stamps, in its interrupt's thread */

static struct {
    unsigned char *page;
    bool on;
    uint64_t unit, wrote, read;          /* wrote, read: bytes of all jobs */
    play_job done[1024];
    unsigned count;
} callback;
static uint32_t callback_reads;

static bool callback_is_on(void *user) { (void)user; return callback.on; }

/* rknpu: (top + core) * pc_data_amount_scale, while there is power. */
static bool callback_read(void *user, unsigned i, uint64_t *value)
{
    (void)user;
    callback_reads++;
    if (!callback.on) check_failed_(__FILE__, __LINE__, "a read while the block has no power");
    *value = play_get(callback.page, 0x2234 + 4 * i, 4) + play_get(callback.page, 0x2434 + 4 * i, 4);
    return true;
}

static const npuprof_npu_pmu callback_pmu[] = {
    { .name = "data_write", .counter = { .bits = 32 }, .read = callback_read, .scale = 2, .unit = "bytes",
      .restarts = true },
    { .name = "data_read", .counter = { .bits = 32 }, .read = callback_read, .scale = 2, .unit = "bytes",
      .restarts = true }
};

static void rknpu_describe(npuprof_npu_desc *d)
{
    callback.page = play_memory(0x3000);
    callback.unit = 1;
    callback.on = true;
    d->anchors_only = true;
    d->counter.hz = 0;
    d->is_on = callback_is_on;
    d->pmu = callback_pmu;
    d->pmu_count = 2;
}

static void nvdla_describe(npuprof_npu_desc *d)
{
    rknpu_describe(d);
    callback.unit = 1000;
}

static void callback_ended(const play_job *job)
{
    CHECK_STOP(callback.count < 1024);
    callback.done[callback.count++] = *job;
}

static void callback_serve(void)
{
    callback.on = true;
    while (callback.count) {
        const play_job job = callback.done[0];
        const uint64_t unit = callback.unit;
        play_put(callback.page, 0x2234, 4, 4096);        /* the counters are of the job that ended */
        play_put(callback.page, 0x2238, 4, job.serial % 1000);
        callback.wrote += 2 * 4096;
        callback.read += 2 * (job.serial % 1000);
        memmove(callback.done, callback.done + 1, --callback.count * sizeof job);
        /* Of whole us: the begin may lie before the submission, which is the bound then. */
        const uint64_t end = (job.end + unit - 1) / unit * unit, now = play.host;
        const bool found = npuprof_npu_complete_host(&play_npus[0], job.id, job.lane, "task", "NPU",
                                                     unit > 1 ? 0 : (int64_t)job.begin + play_ns_offset,
                                                     (int64_t)(end < now ? end : now) + play_ns_offset,
                                                         PROF_NO_ARGS, true);
        CHECK(found);
    }
    callback.on = play_random(2);
}

static void callback_finish(void)
{
    char track[60];
    snprintf(track, sizeof track, "%s data_write (bytes)", play_is->name);
    play_total(track, callback.wrote);
    snprintf(track, sizeof track, "%s data_read (bytes)", play_is->name);
    play_total(track, callback.read);
}

static const char *callback_name(const play_job *job) { (void)job; return "task"; }

#define CALLBACK_MODEL \
    .lanes = 4, .name_of = callback_name, .ended = callback_ended, .serve = callback_serve, \
        .finish = callback_finish
static const play_model rknpu_model = { .name = "rknpu", .describe = rknpu_describe, CALLBACK_MODEL,
                                        .compare = "stamps=host" };
static const play_model nvdla_model = { .name = "nvdla", .describe = nvdla_describe, CALLBACK_MODEL,
                                        .compare = "stamps=host tick_ns=1001" };

/* opening a device: sources, files, and what does not fit
   SPDX-License-Identifier: MIT */
#include "fixture.h"
#include <fcntl.h>
#include <sys/stat.h>


static npuprof_result opened(const npuprof_npu_desc *desc)
{
    npuprof_result result = npuprof_npu_open(&npu, desc);
    npuprof_npu_close(&npu);
    return result;
}

static uint64_t no_ticks(void *user)
{
    (void)user;
    return sim_truth();
}

static void exactly_one_source(void)
{
    SIM_DESC(desc);
    CHECK_INT(opened(&desc), NPUPROF_OK);
    desc.read_ticks = no_ticks;
    CHECK_INT(opened(&desc), NPUPROF_OK);
    desc.resource = "/dev/null";
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_SOURCE);
    desc.resource = NULL;
    desc.bar = NULL;
    CHECK_INT(opened(&desc), NPUPROF_OK);
    desc.read_ticks = NULL;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_SOURCE);
    desc.vfio = true;
    desc.vfio_device_fd = -1;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_MAP);
    CHECK_INT(npuprof_npu_open(NULL, &desc), NPUPROF_ERR_ARGUMENT);
    CHECK_INT(npuprof_npu_open(&npu, NULL), NPUPROF_ERR_ARGUMENT);
}

static void counters_that_cannot_be(void)
{
    const npuprof_npu_desc good = sim_desc();
    npuprof_npu_desc single = good;
    REFUSED(NPUPROF_ERR_NPU_COUNTER, "bits is above 64", desc.counter.bits = 65);
    REFUSED(NPUPROF_ERR_NPU_COUNTER, "access is not 32 or 64", desc.counter.access = 16);
    REFUSED(NPUPROF_ERR_NPU_COUNTER, "order NPUPROF_NPU_SINGLE reads",
            desc.counter.order = NPUPROF_NPU_SINGLE);
    REFUSED(NPUPROF_ERR_NPU_COUNTER, "order is none", desc.counter.order = NPUPROF_NPU_ORDER_COUNT_);
    REFUSED(NPUPROF_ERR_NPU_COUNTER, "hi_offset equals lo_offset", desc.counter.hi_offset = SIM_LO);
    REFUSED(NPUPROF_ERR_ARGUMENT, "", desc.max_rate_ppm = 600000);
    REFUSED(NPUPROF_ERR_NPU_RATE, "", desc.counter.hz = UINT64_C(1000000000000001));
    single.counter.order = NPUPROF_NPU_SINGLE;
    single.counter.bits = 32;
    CHECK_INT(opened(&single), NPUPROF_OK);
    single.counter.hz = UINT64_C(1000000000000000);              /* allowed, and unlike this counter */
    (void)opened(&single);
}

static uint64_t leaps(void *user)
{
    uint64_t *ticks = (uint64_t *)user;
    sim_advance(10);
    return *ticks += UINT64_C(100000000000000);
}

/* What no clock can be measured to be is no number of the trace. */
static void absurd_rates(void)
{
    uint64_t ticks = 5;
    npuprof_npu_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.read_ticks = leaps;
    desc.user = &ticks;
    npuprof_start(1);
    for (int i = 0; i < 2; i++) {
        desc.counter.hz = i ? 0 : UINT64_C(1000000000000000);
        CHECK_INT(opened(&desc), NPUPROF_OK);
    }
    const char *path = check_path("t.json");
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    json_node *devices = json_get(trace_load(path), "metadata.npuprof.devices");
    CHECK_STOP(devices && devices->count == 2);
    for (json_node *d = devices->first; d; d = d->next) {
        CHECK(json_get(d, "clock_sync.rate_hz")->type == JSON_NULL);
        CHECK(json_get(d, "clock_sync.drift_ppm")->type == JSON_NULL);
        CHECK(json_get(d, "clock_sync.rate_uncertainty_ppm")->type == JSON_NULL);
    }
}

static void registers_outside(void)
{
    const npuprof_result why = NPUPROF_ERR_NPU_RANGE;
    const npuprof_npu_desc two = sim_desc();
    npuprof_npu_desc good = two;
    good.counter.lo_offset = SIM_BYTES - 4;
    good.counter.order = NPUPROF_NPU_SINGLE;
    good.counter.bits = 32;
    sim_store(SIM_BYTES - 4, 4, 77);
    CHECK_INT(opened(&good), NPUPROF_OK);
    REFUSED(why, "", desc.counter.lo_offset = SIM_BYTES);
    REFUSED(why, "", desc.counter.lo_offset = SIZE_MAX - 3);
    REFUSED(why, "", desc.counter.lo_offset = SIM_LO + 2);
    good = two;
    REFUSED(why, "", desc.counter.hi_offset = SIM_BYTES - 2);
    REFUSED(why, "", desc.counter.access = 64; desc.counter.lo_offset = SIM_LO + 4);
    REFUSED(why, "", desc.bar = sim_bar.bytes + 2);
    REFUSED(why, "", desc.bar_bytes = SIM_HI + 3);
}

static void rings_that_do_not_fit(void)
{
    const npuprof_result why = NPUPROF_ERR_NPU_RANGE;
    npuprof_npu_desc good = sim_desc();
    good.ring = sim_ring();
    good.ring.entry_bytes = 32;
    good.ring.start.width_bytes = 0;
    CHECK_INT(opened(&good), NPUPROF_OK);
    npuprof_npu_desc fits[] = { good, good, good };
    fits[0].ring.offset = SIM_BYTES - 32 * 8;
    fits[1].ring.count = 12;
    fits[1].ring.producer.unit = NPUPROF_NPU_INDEX_SLOT;
    fits[2].ring.memory = sim_bar.bytes + SIM_RING;
    fits[2].ring.memory_bytes = 32 * 8;
    for (int i = 0; i < 3; i++) CHECK_INT(opened(&fits[i]), NPUPROF_OK);
    REFUSED(why, "", desc.ring.offset = SIM_BYTES - 32 * 8 + 8);
    REFUSED(why, "", desc.ring.offset = SIM_RING + 4);           /* the stamps are 8 bytes wide */
    REFUSED(why, "", desc.ring.count = 0xFFFFFFFFu);
    REFUSED(why, "", desc.ring.count = 12);              /* a 32-bit count would jump when it wraps */
    REFUSED(why, "", desc.ring.producer.offset = SIM_BYTES - 2);
    REFUSED(why, "", desc.ring.producer.bits = 2);
    REFUSED(why, "", desc.ring.end.offset = 28);
    REFUSED(why, "", desc.ring.end.width_bytes = 3);
    REFUSED(why, "", desc.ring.end.lsb = 60; desc.ring.end.bits = 5);
    REFUSED(why, "", desc.ring.end.width_bytes = 0);             /* no stamp at all */
    REFUSED(why, "", desc.ring.memory = sim_bar.bytes + SIM_RING; desc.ring.memory_bytes = 32 * 8 - 1);
    REFUSED(why, "", desc.bar = NULL; desc.read_ticks = no_ticks);
}

static void files(void)
{
    SIM_DESC(desc);
    const char *path = check_path("bar");
    unlink(path);
    desc.bar = NULL;
    desc.bar_bytes = 0;
    desc.resource = path;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NOT_FOUND);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    CHECK_STOP(fd >= 0);
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);             /* empty */
    CHECK(write(fd, sim_bar.bytes, SIM_HI + 3) == SIM_HI + 3);
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    CHECK(pwrite(fd, sim_bar.bytes, SIM_HI + 4, 0) == SIM_HI + 4);
    CHECK_INT(opened(&desc), NPUPROF_OK);
    chmod(path, 0400);                                           /* reading is enough */
    CHECK_INT(opened(&desc), NPUPROF_OK);
    chmod(path, 0200);
    CHECK_INT(opened(&desc), geteuid() == 0 ? NPUPROF_OK : NPUPROF_ERR_ACCESS);
    chmod(path, 0600);
    desc.resource_offset = 4096;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    CHECK(pwrite(fd, sim_bar.bytes, SIM_HI + 4, 4096) == SIM_HI + 4);
    CHECK_INT(opened(&desc), NPUPROF_OK);
    /* inside a page, and the counter on its first byte */
    desc.resource_offset = 4096 - SIM_LO;
    desc.counter.lo_offset = 2 * SIM_LO;
    desc.counter.hi_offset = SIM_LO + SIM_HI;
    CHECK_INT(opened(&desc), NPUPROF_OK);
    desc.resource_offset += 2;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);             /* not aligned */
    desc.counter.lo_offset = SIM_LO;
    desc.counter.hi_offset = SIM_HI;
    desc.resource_offset = 0;
    desc.resource = "/";
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_MAP);
    desc.resource = "/dev/null";
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_MAP);
    desc.resource = path;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);     /* what another process writes is seen */
    uint64_t before, after;
    CHECK_INT(npuprof_npu_read(&npu, &before), NPUPROF_OK);
    uint32_t low = (uint32_t)before + 100000;
    CHECK(pwrite(fd, &low, 4, SIM_LO) == 4);
    sim.host += 4000000;
    CHECK_INT(npuprof_npu_read(&npu, &after), NPUPROF_OK);
    CHECK_UINT(after - before, 100000);
    npuprof_npu_close(&npu);
    close(fd);
    unlink(path);
}

/* After a close, and after an open that failed, nothing is touched. */
static void closed_device(void)
{
    uint64_t ticks = 1, error = 1;
    int64_t ns = 1;
    SIM_DESC(desc);
    npuprof_start(1);
    desc.counter.bits = 99;
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_ERR_NPU_COUNTER);
    CHECK_STR(npu.device.name, "sim");
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_NOT_OPEN);
    CHECK_UINT(ticks, 0);
    CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_ERR_NPU_NOT_OPEN);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_ERR_NPU_NOT_OPEN);
    CHECK_INT(npuprof_npu_host_ns(&npu, 5, &ns, &error), NPUPROF_ERR_NPU_NOT_OPEN);
    CHECK(ns == 0 && error == 0);
    CHECK(npuprof_npu_job(&npu) != 0);
    npuprof_npu_set_job(&npu, 3);
    npuprof_npu_span(&npu, 0, "span", "NPU", 1, 2, PROF_NO_ARGS);
    int done = 0;
    WITH_NPU_PROFILER(&npu, 0, "block", "NPU", PROF_NO_ARGS, done++);
    CHECK_INT(done, 1);
    npuprof_npu_close(&npu);
}

CHECK_MAIN(CASE(exactly_one_source), CASE(counters_that_cannot_be), CASE(absurd_rates),
           CASE(registers_outside), CASE(rings_that_do_not_fit), CASE(files), CASE(closed_device))

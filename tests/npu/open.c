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

/* The sentence says which of the four does not fit. */
static void refused_counter(const npuprof_npu_desc *desc, const char *words)
{
    CHECK_INT(opened(desc), NPUPROF_ERR_NPU_COUNTER);
    CHECK(strstr(npuprof_result_string(NPUPROF_ERR_NPU_COUNTER), words) != NULL);
}

static void counters_that_cannot_be(void)
{
    SIM_DESC(good);
    npuprof_npu_desc desc = good;
    desc.counter.bits = 65;
    refused_counter(&desc, "bits is above 64");
    desc = good;
    desc.counter.access = 16;
    refused_counter(&desc, "access is not 32 or 64");
    desc = good;
    desc.counter.order = NPUPROF_NPU_SINGLE;
    refused_counter(&desc, "order NPUPROF_NPU_SINGLE reads");
    desc.counter.bits = 32;
    CHECK_INT(opened(&desc), NPUPROF_OK);
    desc = good;
    desc.counter.order = NPUPROF_NPU_ORDER_COUNT_;
    refused_counter(&desc, "order is none");
    desc = good;
    desc.counter.hi_offset = desc.counter.lo_offset;
    refused_counter(&desc, "hi_offset equals lo_offset");
    desc = good;
    desc.max_rate_ppm = 600000;
    CHECK_INT(opened(&desc), NPUPROF_ERR_ARGUMENT);
    desc = good;
    desc.counter.hz = UINT64_C(1000000000000001);
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RATE);
    desc.counter.hz--;                       /* allowed, and unlike this counter */
    (void)opened(&desc);
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
    SIM_DESC(good);
    npuprof_npu_desc desc = good;
    desc.counter.lo_offset = SIM_BYTES - 4;
    desc.counter.order = NPUPROF_NPU_SINGLE;
    desc.counter.bits = 32;
    sim_store(SIM_BYTES - 4, 4, 77);
    CHECK_INT(opened(&desc), NPUPROF_OK);
    desc.counter.lo_offset = SIM_BYTES;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc.counter.lo_offset = SIZE_MAX - 3;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc.counter.lo_offset = SIM_LO + 2;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc = good;
    desc.counter.hi_offset = SIM_BYTES - 2;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc = good;
    desc.counter.access = 64;
    desc.counter.lo_offset = SIM_LO + 4;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc = good;
    desc.bar = sim_bar.bytes + 2;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc = good;
    desc.bar_bytes = SIM_HI + 3;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
}

static void rings_that_do_not_fit(void)
{
    SIM_DESC(good);
    good.ring.offset = SIM_RING;
    good.ring.entry_bytes = 32;
    good.ring.count = 8;
    good.ring.producer.offset = SIM_PRODUCER;
    good.ring.end.offset = 8;
    good.ring.end.width_bytes = 8;
    CHECK_INT(opened(&good), NPUPROF_OK);
    npuprof_npu_desc desc = good;
    desc.ring.offset = SIM_BYTES - 32 * 8 + 8;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc.ring.offset -= 8;
    CHECK_INT(opened(&desc), NPUPROF_OK);
    desc = good;
    desc.ring.offset = SIM_RING + 4;                             /* the stamps are 8 bytes wide */
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc = good;
    desc.ring.count = 0xFFFFFFFFu;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc = good;
    /* a 32-bit count of entries would jump when it wraps */
    desc.ring.count = 12;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc.ring.producer.unit = NPUPROF_NPU_INDEX_SLOT;
    CHECK_INT(opened(&desc), NPUPROF_OK);
    desc = good;
    desc.ring.producer.offset = SIM_BYTES - 2;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc = good;
    desc.ring.producer.bits = 2;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc = good;
    desc.ring.end.offset = 28;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc = good;
    desc.ring.end.width_bytes = 3;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc = good;
    desc.ring.end.lsb = 60;
    desc.ring.end.bits = 5;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc = good;
    desc.ring.end.width_bytes = 0;                               /* no stamp at all */
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc = good;
    desc.ring.memory = sim_bar.bytes + SIM_RING;
    desc.ring.memory_bytes = 32 * 8 - 1;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
    desc.ring.memory_bytes++;
    CHECK_INT(opened(&desc), NPUPROF_OK);
    desc = good;
    desc.bar = NULL;
    desc.read_ticks = no_ticks;
    CHECK_INT(opened(&desc), NPUPROF_ERR_NPU_RANGE);
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
           CASE(registers_outside), CASE(rings_that_do_not_fit), CASE(files),
           CASE(closed_device))

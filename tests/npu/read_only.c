/* a device whose registers and ring cannot be written: whatever writes to them dies here
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "fixture.h"
#include <sys/mman.h>
#include <unistd.h>

enum { ENTRY = 16, COUNT = 8, KERNELS = 20 };
static unsigned char *writable;

/* What the simulated device writes goes through a mapping of its own. */
static void publish(void)
{
    sim.tick = NULL;
    sim_publish();
    sim.tick = publish;
    memcpy(writable, sim_bar.bytes, SIM_RING + COUNT * ENTRY);
}

/* The pages of sim_bar for the library: to be read only. */
static void *pages(void)
{
    const int fd = memfd_create("bar", MFD_CLOEXEC);
    CHECK_STOP(fd >= 0 && ftruncate(fd, SIM_BYTES) == 0);
    writable = (unsigned char *)mmap(NULL, SIM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void *const bar = mmap(NULL, SIM_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    CHECK_STOP(writable != MAP_FAILED && bar != MAP_FAILED);
    publish();
    return bar;
}

static int64_t spans(const char *name)
{
    npuprof_npu_close(&npu);
    CHECK_INT(npuprof_dump(check_path("t.json")), NPUPROF_OK);
    return (int64_t)trace_count(trace_load(check_path("t.json")), "X", name);
}

static void sampled(void)
{
    SIM_DESC(desc);
    const npuprof_npu_pmu busy = { .name = "busy", .counter = { .lo_offset = 0x40, .bits = 32 },
                                   .is_busy = true };
    desc.bar = pages();
    desc.pmu = &busy, desc.pmu_count = 1;
    open_npu(&desc);
    for (unsigned i = 0; i < KERNELS; i++) {
        CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
        WITH_NPU_PROFILER(&npu, i, "kernel", "NPU", PROF_NO_ARGS, sim_advance(5000));
    }
    CHECK_INT(spans("kernel"), 2 * KERNELS);          /* the host's and the device's */
}

/* Every way to see what is new, valid bits included, which a driver would clear. */
static void drained(void)
{
    static const int ready[] = { NPUPROF_NPU_READY_VALID, NPUPROF_NPU_READY_PHASE };
    for (size_t way = 0; way < sizeof ready / sizeof ready[0]; way++) {
        SIM_DESC(desc);
        desc.bar = pages();
        desc.ring.offset = SIM_RING, desc.ring.entry_bytes = ENTRY, desc.ring.count = COUNT;
        desc.ring.ready = ready[way];
        desc.ring.valid = (npuprof_npu_field)AT(0, 4, 31, 1);
        desc.ring.valid_value = 1;
        if (ready[way] == NPUPROF_NPU_READY_PHASE) {
            memset(&desc.ring.valid, 0, sizeof desc.ring.valid);
            desc.ring.valid_value = 0;
            desc.ring.phase = (npuprof_npu_field)AT(0, 4, 31, 1);
            desc.ring.phase_first = 1;
        }
        desc.ring.job = (npuprof_npu_field)AT(4, 4, 0, 0);
        desc.ring.end = (npuprof_npu_field)AT(8, 8, 0, 0);
        npuprof_clear();
        open_npu(&desc);
        for (unsigned i = 0; i < KERNELS; i++) {
            unsigned char *const entry = sim_bar.bytes + SIM_RING + i % COUNT * ENTRY;
            uint32_t job = 0;
            WITH_NPU_PROFILER(&npu, 1, "kernel", "NPU", PROF_NO_ARGS, job = npuprof_npu_job(&npu));
            sim_advance(100000);
            put(entry + 4, 4, job);
            put(entry + 8, 8, sim_truth());
            put(entry, 4, ready[way] == NPUPROF_NPU_READY_VALID || !(i / COUNT & 1) ? 0x80000000u : 0);
            publish();
            CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
            if (ready[way] == NPUPROF_NPU_READY_VALID) put(entry, 4, 0);       /* the driver, behind it */
        }
        CHECK_INT(spans("kernel"), 2 * KERNELS);
        memset(sim_bar.bytes + SIM_RING, 0, COUNT * ENTRY);
    }
}

CHECK_MAIN(CASE(sampled), CASE(drained))

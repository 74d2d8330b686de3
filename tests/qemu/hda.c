/* hda.c - Intel HDA's wall clock, 32 bits at 24 MHz: its rate, its laps of 179 s, a reset of the controller.
   SPDX-License-Identifier: MIT */
#include "guest.h"
#include "../../examples/devices/hda_regs.h"

static npuprof_npu npu;

static const char *open_hda(void)
{
    const char *pci = guest_pci(0x8086, 0x2668);
    npuprof_npu_desc desc = hda_npu_desc();
    (void)guest_write(guest_path("%s/enable", pci), "1");
    desc.resource = guest_path("%s/resource0", pci);
    guest_open(&npu, &desc);
    return pci;
}

/* Kernels of 10 us to 2 s; the host looks at the trace. */
static void sampled_kernels(void)
{
    static const int64_t lasts_ns[] = { 10000, 100000, 1000000, 10000000, 100000000, 2000000000 };
    (void)open_hda();
    for (int round = 0; round < 5; round++) {
        for (size_t i = 0; i < sizeof lasts_ns / sizeof lasts_ns[0]; i++) {
            WITH_NPU_PROFILER(&npu, 0, "kernel", "NPU", PROF_ARGS(PROF_INT("lasts_ns", lasts_ns[i])), {
                guest_sleep_ns(lasts_ns[i]);
            });
        }
    }
    npuprof_npu_close(&npu);
    guest_send_trace("hda_kernels.json");
}

/* 68 laps: looked at every minute, then less and less often, at last once in 11 laps. */
static void laps(void)
{
    static const int64_t gaps_s[] = { 60, 170, 190, 400, 1000, 2000 };
    (void)open_hda();
    const guest_moment first = guest_look(&npu);
    guest_moment last = first;
    for (size_t i = 0; i < sizeof gaps_s / sizeof gaps_s[0]; i++) {
        for (int64_t part = 0; part < 2000; part += gaps_s[i]) {
            guest_sleep(gaps_s[i]);
            last = guest_look(&npu);
            CHECK(guest_agrees(first, last, 3, 125));
            CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
        }
    }
    CHECK((last.ticks >> 32) - (first.ticks >> 32) >= 60);
    npuprof_metadata("laps", guest_path("%llu", (unsigned long long)(last.ticks >> 32)));
    npuprof_npu_close(&npu);
    guest_send_trace("hda_laps.json");
}

/* GCTL.CRST to 0 and 1 restarts the counter at 0: reported as a reset, once, and no lap is counted. */
static void controller_reset(void)
{
    uint64_t ticks = 0, before = 0;
    const char *pci = open_hda();
    volatile uint32_t *registers = guest_map(pci, 0);
    registers[HDA_GCTL_OFFSET / 4] = HDA_GCTL_CRST_MASK;
    guest_sleep(10);
    (void)npuprof_npu_read(&npu, &before);        /* CRST may have been 0 until now */
    WITH_NPU_PROFILER(&npu, 0, "before", "NPU", PROF_NO_ARGS, { guest_sleep(5); });
    CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
    WITH_NPU_PROFILER(&npu, 0, "reset inside", "NPU", PROF_NO_ARGS, {
        guest_sleep_ns(1000000);
        registers[HDA_GCTL_OFFSET / 4] = 0;
        guest_sleep_ns(1000000);
        registers[HDA_GCTL_OFFSET / 4] = HDA_GCTL_CRST_MASK;
        guest_sleep_ns(1000000);
    });
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    CHECK(ticks < 24000000);
    WITH_NPU_PROFILER(&npu, 0, "after", "NPU", PROF_NO_ARGS, { guest_sleep(5); });
    guest_sleep(1);
    registers[HDA_GCTL_OFFSET / 4] = 0;
    registers[HDA_GCTL_OFFSET / 4] = HDA_GCTL_CRST_MASK;
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_RESET);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    npuprof_npu_close(&npu);
    guest_send_trace("hda_reset.json");
}

CHECK_MAIN(CASE(sampled_kernels), CASE(laps), CASE(controller_reset))

/* mfindex.c - a USB controller's frame index: 14 bits at 8 kHz in a register of 32, a lap of 2.048 s.
   SPDX-License-Identifier: MIT */
#include "guest.h"

enum { MFINDEX = 0x1000 };
static npuprof_npu npu;

static npuprof_npu_desc describe(void)
{
    const char *pci = guest_pci(0x1b36, 0x000d);
    npuprof_npu_desc desc = { 0 };
    (void)guest_write(guest_path("%s/enable", pci), "1");
    desc.name = "xhci";
    desc.resource = guest_path("%s/resource0", pci);
    desc.counter.lo_offset = MFINDEX;
    desc.counter.bits = 14;
    desc.counter.hz = 8000;
    return desc;
}

/* Gaps of up to 500 laps, once the rate is known well enough to number them. */
static void gaps_of_many_laps(void)
{
    static const int64_t gaps_s[] = { 1, 3, 10, 30, 100, 300, 1000, 1024, 1 };
    const npuprof_npu_desc desc = describe();
    guest_open(&npu, &desc);
    const guest_moment first = guest_look(&npu);
    guest_moment last = first;
    for (size_t i = 0; i < sizeof gaps_s / sizeof gaps_s[0]; i++) {
        guest_sleep(gaps_s[i]);
        last = guest_look(&npu);
        CHECK(guest_agrees(first, last, 1, 125000));
        CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
    }
    npuprof_metadata("laps", guest_path("%llu", (unsigned long long)(last.ticks >> 14)));
    npuprof_npu_close(&npu);
    guest_send_trace("mfindex.json");
}

/* A gap whose laps nobody can number is said to be one: the rate is hardly measured yet, the nominal one not
   believed. */
static void gap_that_is_too_long(void)
{
    uint64_t ticks = 0;
    const npuprof_npu_desc desc = describe();
    npuprof_start(1);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    guest_sleep(100);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_AMBIGUOUS);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    npuprof_npu_close(&npu);
}

CHECK_MAIN(CASE(gaps_of_many_laps), CASE(gap_that_is_too_long))

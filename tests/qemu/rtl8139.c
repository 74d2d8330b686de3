/* rtl8139.c - a network card's 32-bit timer of 30 ns a tick, in a BAR of 256 bytes. Two cards: the BAR of the
   second may begin in the middle of a page.
   SPDX-License-Identifier: MIT */
#include "guest.h"
#include "../../examples/devices/rtl8139_regs.h"

static npuprof_npu npu;

static const char *open_card(unsigned nth)
{
    const char *pci = guest_pci_nth(0x10ec, 0x8139, nth);
    npuprof_npu_desc desc = rtl8139_npu_desc();
    CHECK_STOP(pci != NULL);
    (void)guest_write(guest_path("%s/enable", pci), "1");
    desc.resource = guest_path("%s/resource1", pci);
    desc.counter.hz = 33000000;                   /* a nominal rate that is 1 % wrong */
    guest_open(&npu, &desc);
    return pci;
}

/* 129 s a lap; a write to the timer restarts it at 0. */
static void laps_and_restart(void)
{
    uint64_t ticks = 0;
    const char *pci = open_card(0);
    volatile uint32_t *registers = guest_map(pci, 1);
    const guest_moment first = guest_look(&npu);
    for (int i = 0; i < 10; i++) {
        WITH_NPU_PROFILER(&npu, 0, "kernel", "NPU", PROF_NO_ARGS, { guest_sleep(100); });
        CHECK(guest_agrees(first, guest_look(&npu), 1, 30));
    }
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    npuprof_metadata("laps", guest_path("%llu", (unsigned long long)(ticks >> 32)));
    registers[RTL8139_TCTR_OFFSET / 4] = 0;
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_RESET);
    CHECK(ticks < 100000);
    CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
    guest_sleep(10);
    npuprof_npu_close(&npu);
    guest_send_trace("rtl8139.json");
}

static void second_card(void)
{
    const char *pci = open_card(1);
    char line[100] = "";
    FILE *list = fopen(guest_path("%s/resource", pci), "r");
    CHECK_STOP(list && fgets(line, sizeof line, list) && fgets(line, sizeof line, list));
    printf("  BAR at %s", line);
    volatile uint32_t *registers = guest_map(pci, 1);
    const uint32_t before = registers[RTL8139_TCTR_OFFSET / 4];
    const guest_moment m = guest_look(&npu);
    const uint32_t after = registers[RTL8139_TCTR_OFFSET / 4];
    CHECK(before <= (uint32_t)m.ticks && (uint32_t)m.ticks <= after);
    npuprof_npu_close(&npu);
}

CHECK_MAIN(CASE(laps_and_restart), CASE(second_card))

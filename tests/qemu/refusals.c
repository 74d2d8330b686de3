/* refusals.c - devices that cannot be read: each has a result of its own, whose sentence says what to do.
   SPDX-License-Identifier: MIT */
#include "guest.h"

static npuprof_npu npu;

static void refused(const npuprof_npu_desc *desc, npuprof_result wanted)
{
    const npuprof_result result = npuprof_npu_open(&npu, desc);
    npuprof_npu_close(&npu);
    printf("  %s\n", npuprof_result_string(result));
    CHECK_STR(npuprof_result_string(result), npuprof_result_string(wanted));
}

static npuprof_npu_desc describe(unsigned vendor, unsigned device, unsigned bar, size_t offset)
{
    npuprof_npu_desc desc = { 0 };
    const char *pci = guest_pci(vendor, device);
    desc.resource = guest_path("%s/resource%u", pci, bar);
    desc.counter.lo_offset = offset;
    desc.counter.bits = 32;
    return desc;
}

static npuprof_npu_desc hda(void) { return describe(0x8086, 0x2668, 0, 0x30); }

/* What the firmware of a PC switches on, and that of other machines does not. */
static void set_decode(const char *pci, bool on)
{
    const uint16_t command = on ? 2 : 0;
    const int fd = open(guest_path("%s/config", pci), O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && pwrite(fd, &command, 2, 4) == 2);
    close(fd);
}

static void decode_off(void)
{
    uint64_t ticks = 0;
    const npuprof_npu_desc desc = hda();
    const char *pci = guest_pci(0x8086, 0x2668);
    set_decode(pci, false);
    refused(&desc, NPUPROF_ERR_NPU_DECODE_OFF);
    set_decode(pci, true);
    guest_open(&npu, &desc);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    set_decode(pci, false);                       /* under the mapping: reads 0 or all ones */
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_DECODE_OFF);
    set_decode(pci, true);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    npuprof_npu_close(&npu);
}

/* The second HDA is in a slot: its power is switched off while it is open. */
static void removed(void)
{
    uint64_t ticks = 0, last = 0;
    char slot[256] = "";
    npuprof_npu_desc desc = hda();
    const char *pci = guest_pci_nth(0x8086, 0x2668, 1);
    CHECK_STOP(pci != NULL);
    CHECK_INT(guest_write(guest_path("%s/enable", pci), "1"), 0);
    desc.resource = guest_path("%s/resource0", pci);
    guest_open(&npu, &desc);
    CHECK_INT(npuprof_npu_read(&npu, &last), NPUPROF_OK);
    struct dirent **slots;
    const int count = scandir("/sys/bus/pci/slots", &slots, NULL, alphasort);
    for (int i = 0; i < count; i++)
        if (slots[i]->d_name[0] != '.') snprintf(slot, sizeof slot, "%s", slots[i]->d_name);
    CHECK_INT(guest_write(guest_path("/sys/bus/pci/slots/%s/power", slot), "0"), 0);
    guest_sleep(10);
    CHECK(access(pci, F_OK) != 0);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_ERR_NPU_REMOVED);
    CHECK(ticks == last);
    npuprof_npu_close(&npu);
    refused(&desc, NPUPROF_ERR_NOT_FOUND);
}

/* NVMe: its driver is in the kernel, and has the BAR. */
static void owned_by_a_driver(void)
{
    const npuprof_npu_desc desc = describe(0x1b36, 0x0010, 0, 0);
    refused(&desc, NPUPROF_ERR_NPU_OWNED);
}

static void bar_too_small(void)
{
    const npuprof_npu_desc desc = describe(0x10ec, 0x8139, 1, 0x100);
    (void)guest_write(guest_path("%s/enable", guest_pci(0x10ec, 0x8139)), "1");
    refused(&desc, NPUPROF_ERR_NPU_RANGE);
}

static void bar_of_io_ports(void)
{
    const npuprof_npu_desc desc = describe(0x10ec, 0x8139, 0, 0x48);
    refused(&desc, NPUPROF_ERR_NPU_IO_PORT);
}

static void unreadable(void)
{
    const npuprof_npu_desc desc = hda();
    CHECK_STOP(setuid(1000) == 0);
    refused(&desc, NPUPROF_ERR_ACCESS);
}

static void nothing_there(void)
{
    npuprof_npu_desc desc = hda();
    desc.resource = "/sys/bus/pci/devices/0000:99:00.0/resource0";
    refused(&desc, NPUPROF_ERR_NOT_FOUND);
    desc.resource = "/dev/uio7";
    refused(&desc, NPUPROF_ERR_NOT_FOUND);
    desc.resource = "/sys";
    refused(&desc, NPUPROF_ERR_NPU_MAP);
}

/* edu answers all ones where it has no register. */
static void register_that_is_not_there(void)
{
    const npuprof_npu_desc desc = describe(0x1234, 0x11e8, 0, 0x40);
    (void)guest_write(guest_path("%s/enable", guest_pci(0x1234, 0x11e8)), "1");
    refused(&desc, NPUPROF_ERR_NPU_DEAD);
}

static void bits_that_do_not_fit(void)
{
    npuprof_npu_desc desc = hda();
    desc.counter.bits = 65;
    refused(&desc, NPUPROF_ERR_NPU_COUNTER);
    desc.counter.bits = 32;
    desc.counter.lo_offset = 0x32;
    refused(&desc, NPUPROF_ERR_NPU_RANGE);
}

CHECK_MAIN(CASE(decode_off), CASE(owned_by_a_driver), CASE(bar_too_small), CASE(bar_of_io_ports),
           CASE(unreadable),
           CASE(nothing_there), CASE(register_that_is_not_there), CASE(bits_that_do_not_fit), CASE(removed))

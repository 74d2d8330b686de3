/* hpet.c - the PC's HPET through /dev/hpet: a 64-bit counter at 100 MHz in two words without a latch, whose
   low word laps every 43 s. Two loads tear there; three do not.
   SPDX-License-Identifier: MIT */
#include "guest.h"
#include "../../examples/devices/hpet_regs.h"

enum { LAPS = 100, READS = 1000, NAIVE_LAPS = 20, AIMED = 25 };
static npuprof_npu npu;
static const volatile uint32_t *hpet;

/* A mapping of our own. Why not beside the library's: an opener gets a comparator of the HPET, and the kernel
   has one left. */
static void map_hpet(void)
{
    const int fd = open("/dev/hpet", O_RDONLY | O_CLOEXEC);
    void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    CHECK_STOP(map != MAP_FAILED);
    close(fd);
    hpet = (const volatile uint32_t *)map;
}

/* Sleeps until the low word is about to lap. */
static void wait_for_lap(uint64_t now, int64_t before_ns)
{
    const int64_t left_ns = (int64_t)(UINT32_MAX - (uint32_t)now) * 10;
    guest_sleep_ns(left_ns > before_ns ? left_ns - before_ns : left_ns + INT64_C(42949672960) - before_ns);
}

/* What a driver without care does. Why the pause: a load takes 24 ns here, and half a microsecond on a real
   bus. */
static uint64_t naive(void)
{
    const uint32_t high = hpet[HPET_COUNTER_HI_OFFSET / 4];
    for (volatile int i = 0; i < 12; i++) {}
    return (uint64_t)high << 32 | hpet[HPET_COUNTER_LO_OFFSET / 4];
}

static void two_loads_tear(void)
{
    int torn = 0;
    map_hpet();
    for (int lap = 0; lap < NAIVE_LAPS; lap++) {
        wait_for_lap(naive(), 400000);
        uint64_t last = naive();
        for (int i = 0; i < 4 * READS; i++) {
            const uint64_t ticks = naive();
            torn += ticks < last;
            last = ticks;
        }
    }
    printf("  %d of %d laps torn\n", torn, NAIVE_LAPS);
    CHECK(torn > 0);
}

/* The library after gaps so long that the host's clock alone does not tell the high half: high, low, high.
   Each read is aimed at a lap, a little later every time, so that the lap falls into all of its parts. */
static void three_loads_do_not(void)
{
    int again = 0;
    npuprof_npu_desc desc = hpet_npu_desc();
    map_hpet();
    desc.bar = hpet;
    desc.bar_bytes = HPET_BAR_BYTES;
    npuprof_start(1);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    for (uint32_t aim = 0; aim < AIMED; aim++) {
        uint64_t ticks = 0;
        guest_sleep(5 * 43);
        wait_for_lap(naive(), 400000);
        const uint64_t start = (uint64_t)hpet[HPET_COUNTER_HI_OFFSET / 4] << 32 | (UINT32_MAX - 80 * aim);
        while ((int32_t)(hpet[HPET_COUNTER_LO_OFFSET / 4] - (uint32_t)start) < 0) {}
        const uint32_t loads = npu.mmio_reads;
        CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
        CHECK(ticks >= start && ticks < start + 10000);
        CHECK(npu.mmio_reads - loads >= 3);
        again += npu.mmio_reads - loads > 3;
    }
    printf("  %d reads at laps, %d of them loaded again\n", AIMED, again);
    /* else no lap fell between two loads, and nothing was shown */
    CHECK(again > 0);
    npuprof_npu_close(&npu);
}

/* 100,000 reads near laps with the rate known: one load each, and the host's clock. */
static void nor_does_one_load_with_the_hosts_clock(void)
{
    uint64_t last = 0, ticks = 0;
    npuprof_npu_desc desc = hpet_npu_desc();
    desc.resource = "/dev/hpet";
    guest_open(&npu, &desc);
    const uint32_t loads = npu.mmio_reads;
    for (int lap = 0; lap < LAPS; lap++) {
        CHECK_INT(npuprof_npu_read(&npu, &last), NPUPROF_OK);
        wait_for_lap(last, 1500000);
        CHECK_INT(npuprof_npu_read(&npu, &last), NPUPROF_OK);
        const uint64_t first = last;
        for (int i = 0; i < READS; i++) {
            CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
            CHECK(ticks > last && ticks < last + 100000);
            last = ticks;
        }
        CHECK(first >> 32 != last >> 32);
    }
    /* but for the first one behind most of a lap, which reads all of it: three */
    CHECK_INT(npu.mmio_reads - loads, LAPS * (READS + 4));
    npuprof_npu_close(&npu);
    guest_send_trace("hpet.json");
}

/* One more opener than there are comparators. */
static void all_taken(void)
{
    npuprof_npu_desc desc = hpet_npu_desc();
    map_hpet();
    desc.resource = "/dev/hpet";
    CHECK_INT(npuprof_npu_open(&npu, &desc), NPUPROF_ERR_NPU_OWNED);
}

CHECK_MAIN(CASE(two_loads_tear), CASE(three_loads_do_not), CASE(nor_does_one_load_with_the_hosts_clock),
           CASE(all_taken))

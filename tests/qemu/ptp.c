/* ptp.c - igb's clock as its kernel driver sees it, /dev/ptp0, and as npuprof does, by reading the same
   registers beside the driver: two opinions on one clock. The kernel is told to let it drift, and says what
   time it was: (system, device, system).
   SPDX-License-Identifier: MIT */
#include "guest.h"
#include "../../examples/devices/igb_regs.h"
#include <linux/ptp_clock.h>
#include <sys/ioctl.h>
#include <sys/timex.h>

enum { TICKS_IN_NS_LOG2 = 19, SAMPLES = 10, ROUNDS = 8 };
static npuprof_npu npu;
static int ptp;
static clockid_t ptp_clock;
/* the counter's value where the kernel's device time is 0, modulo 2^64 */
static uint64_t zero;
static const char *pci;

static void set_up(void)
{
    struct timespec t;
    pci = guest_pci(0x8086, 0x10c9);
    ptp = open("/dev/ptp0", O_RDWR | O_CLOEXEC);
    CHECK_STOP(ptp >= 0);
    ptp_clock = (clockid_t)((~(unsigned)ptp << 3) | 3);
    /* Only here the clock is held for a moment, so that both look at the same value. */
    volatile uint32_t *card = guest_map(pci, 0);
    const uint32_t rate = card[IGB_TIMINCA_OFFSET / 4];
    card[IGB_TIMINCA_OFFSET / 4] = rate & ~IGB_TIMINCA_INCVALUE_MASK;
    const uint32_t low = card[IGB_SYSTIML_OFFSET / 4], high = card[IGB_SYSTIMH_OFFSET / 4];
    CHECK(clock_gettime(ptp_clock, &t) == 0);
    CHECK_INT(card[IGB_SYSTIML_OFFSET / 4], low);
    card[IGB_TIMINCA_OFFSET / 4] = rate;
    zero = ((uint64_t)high << 32 | low)
        - (((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec) << TICKS_IN_NS_LOG2);
}

static void drift(int ppm)
{
    struct timex change;
    memset(&change, 0, sizeof change);
    change.modes = ADJ_FREQUENCY;
    change.freq = ppm * 65536L;
    CHECK(clock_adjtime(ptp_clock, &change) >= 0);
}

static int64_t ns_of(struct ptp_clock_time t) { return t.sec * 1000000000 + t.nsec; }

/* Ten triples of the kernel's. What the kernel and we say is apart by no more than our bound and half its
   bracket, and here by far less. */
static void compare(const struct ptp_sys_offset_extended *triples)
{
    for (unsigned i = 0; i < SAMPLES; i++) {
        const int64_t before = ns_of(triples->ts[i][0]), device = ns_of(triples->ts[i][1]),
            after = ns_of(triples->ts[i][2]);
        int64_t ours = 0;
        uint64_t bound = 0;
        CHECK_INT(npuprof_npu_host_ns(&npu, zero + ((uint64_t)device << TICKS_IN_NS_LOG2), &ours, &bound),
                  NPUPROF_OK);
        const int64_t middle = before + (after - before) / 2,
            apart = ours > middle ? ours - middle : middle - ours;
        if (i == 0) printf("  apart by %lld ns: the kernel +- %lld, ours +- %llu\n",
                           (long long)(ours - middle),
                           (long long)(after - before) / 2, (unsigned long long)bound);
        CHECK(apart <= (int64_t)bound + (after - before) / 2);
        CHECK(apart <= 1000 + (after - before) / 2);
    }
}

static void at(int ppm, const char *file)
{
    struct ptp_sys_offset_extended triples[ROUNDS];
    npuprof_npu_desc desc = igb_npu_desc();
    set_up();
    drift(ppm);
    desc.resource = guest_path("%s/resource0", pci);
    desc.counter.hz = UINT64_C(1000000000) << TICKS_IN_NS_LOG2;
    guest_open(&npu, &desc);
    for (int round = 0; round < ROUNDS; round++) {
        memset(&triples[round], 0, sizeof triples[round]);
        triples[round].n_samples = SAMPLES;
        guest_sleep_ns(400000000);
        CHECK(ioctl(ptp, PTP_SYS_OFFSET_EXTENDED, &triples[round]) == 0);
        compare(&triples[round]);                 /* after the last anchor */
        guest_sleep_ns(600000000);
        CHECK_INT(npuprof_npu_sync(&npu), NPUPROF_OK);
    }
    for (int round = 0; round < ROUNDS; round++) compare(&triples[round]);   /* between anchors */
    npuprof_metadata("told_ppm", guest_path("%d", ppm));
    npuprof_npu_close(&npu);
    guest_send_trace(file);
}

static void drift_200(void) { at(200, "ptp_200.json"); }
static void drift_minus_200(void) { at(-200, "ptp_minus_200.json"); }
static void drift_400(void) { at(400, "ptp_400.json"); }
static void drift_minus_400(void) { at(-400, "ptp_minus_400.json"); }

CHECK_MAIN(CASE(drift_200), CASE(drift_minus_200), CASE(drift_400), CASE(drift_minus_400))

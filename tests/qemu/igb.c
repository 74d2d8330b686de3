/* igb.c - Intel's 82576 network card: a 64-bit clock in two words of which the high one is latched by a read
   of the low one, at a rate that the driver chooses, and frames that the card stamps with it as they leave.
   What a job with a completion is to an NPU.
   SPDX-License-Identifier: MIT */
#include "guest.h"
#include "../../examples/devices/igb_regs.h"

enum { FRAMES = 64, READS = 100000 };
/* Of the transmitter, which the description of the clock leaves out. */
enum { TCTL = 0x400, TDBAL = 0xE000, TDBAH = 0xE004, TDLEN = 0xE008, TDH = 0xE010, TDT = 0xE018,
       TXDCTL = 0xE028 };
static npuprof_npu npu;
static volatile uint32_t *card;

static npuprof_npu_desc describe(void)
{
    const char *pci = guest_pci(0x8086, 0x10c9);
    npuprof_npu_desc desc = igb_npu_desc();
    card = guest_map(pci, 0);
    card[IGB_TSAUXC_OFFSET / 4] = 0;
    card[IGB_TIMINCA_OFFSET / 4] = 1u << IGB_TIMINCA_INCPERIOD_POS | 0x10000;    /* 16 would be 1 GHz */
    desc.resource = guest_path("%s/resource0", pci);
    desc.counter.hz = 4096000000000;
    return desc;
}

/* 4.096 THz: the low word laps every millisecond, 2^53 ticks are 37 minutes. */
static void never_backward_beyond_doubles(void)
{
    uint64_t ticks = 0, last = 0;
    int stale = 0;
    const npuprof_npu_desc desc = describe();
    guest_open(&npu, &desc);
    guest_sleep(2300);
    CHECK_INT(npuprof_npu_read(&npu, &last), NPUPROF_OK);
    CHECK(last > (uint64_t)1 << 53);
    for (int i = 0; i < READS; i++) {
        const npuprof_result result = npuprof_npu_read(&npu, &ticks);
        CHECK(result == NPUPROF_OK && ticks > last);
        last = ticks;
    }
    for (int i = 0; i < READS; i++) {             /* what a driver that reads the high word first sees */
        const uint32_t high = card[IGB_SYSTIMH_OFFSET / 4];
        ticks = (uint64_t)high << 32 | card[IGB_SYSTIML_OFFSET / 4];
        stale += i > 0 && ticks < last;
        last = ticks;
    }
    printf("  the wrong way round: %d of %d reads went back\n", stale, READS);
    CHECK(stale > 0);
    WITH_NPU_PROFILER(&npu, 0, "kernel", "NPU", PROF_NO_ARGS, { guest_sleep_ns(12345678); });
    npuprof_npu_close(&npu);
    guest_send_trace("igb_clock.json");
}

/* The physical address of a locked page: what the card is told. */
static uint64_t physical(const volatile void *page)
{
    uint64_t entry = 0;
    const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    CHECK_STOP(pread(fd, &entry, 8, (off_t)((uintptr_t)page / 4096 * 8)) == 8);
    close(fd);
    return (entry & (((uint64_t)1 << 55) - 1)) * 4096;
}

/* What the driver notes of each frame. With the card's own index of the next frame, TDH, it is the ring of
   completion records. */
typedef struct completion { uint64_t start, end; uint32_t job, unused; } completion;
static completion done[256];                      /* as many as the card has descriptors */
static volatile uint64_t *descriptors;            /* two words each */
static uint64_t frame;

static void start_card(void)
{
    const char *pci = guest_pci(0x8086, 0x10c9);
    /* memory decode, and bus master: the card reads descriptors and writes them */
    const uint16_t command = 6;
    const int fd = open(guest_path("%s/config", pci), O_RDWR | O_CLOEXEC);
    CHECK_STOP(pwrite(fd, &command, 2, 4) == 2);
    close(fd);
    void *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_LOCKED, -1, 0);
    CHECK_STOP(pages != MAP_FAILED);
    memset(pages, 0, 8192);
    descriptors = (volatile uint64_t *)pages;
    frame = physical(descriptors + 512);
    const uint64_t at = physical(descriptors);
    card[IGB_CTRL_OFFSET / 4] |= IGB_CTRL_SLU_MASK;                       /* link up */
    card[IGB_TSYNCTXCTL_OFFSET / 4] = IGB_TSYNCTXCTL_EN_MASK;                  /* stamp what leaves */
    card[TDBAL / 4] = (uint32_t)at;
    card[TDBAH / 4] = (uint32_t)(at >> 32);
    card[TDLEN / 4] = 256 * 16;
    card[TDH / 4] = card[TDT / 4] = 0;
    card[TXDCTL / 4] = 1u << 25;                      /* queue on */
}

/* Gives frame i to the card, which may send it lasts_ns later; waits until it is gone and notes the card's
   stamps. */
static void transmit(unsigned i, uint32_t job, int64_t lasts_ns)
{
    /* 64 bytes; STAMP, RS, EOP, IFCS, DEXT, type of an advanced descriptor */
    descriptors[2 * i] = frame;
    descriptors[2 * i + 1] = (uint64_t)(64u << 14) << 32
        | (64 | 3u << 20 | 1u << 19 | 1u << 24 | 1u << 25 | 1u << 27 | 1u << 29);
    card[TCTL / 4] = 1u << 3;                         /* transmitter off */
    const uint32_t start_low = card[IGB_SYSTIML_OFFSET / 4];
    done[i].start = (uint64_t)card[IGB_SYSTIMH_OFFSET / 4] << 32 | start_low;
    card[TDT / 4] = i + 1;
    guest_sleep_ns(lasts_ns);
    card[TCTL / 4] = 1u << 3 | 1u << 1;               /* on */
    card[TDT / 4] = i + 1;
    while (!(descriptors[2 * i + 1] >> 32 & 1)) {}       /* DD, written by the card */
    /* when the frame left; reading the high word frees the register */
    const uint32_t low = card[IGB_TXSTMPL_OFFSET / 4];
    done[i].end = (uint64_t)card[IGB_TXSTMPH_OFFSET / 4] << 32 | low;
    done[i].job = job;
}

/* Every frame is a job: a device span inside the call that sent it, tied to it by an arrow. */
static void stamped_frames(void)
{
    npuprof_npu_desc desc = describe();
    start_card();
    desc.ring.memory = done;
    desc.ring.memory_bytes = sizeof done;
    desc.ring.entry_bytes = sizeof done[0];
    desc.ring.count = 256;
    desc.ring.producer.offset = TDH;
    desc.ring.producer.unit = NPUPROF_NPU_INDEX_SLOT;
    desc.ring.start = (npuprof_npu_field){ .offset = offsetof(completion, start), .width_bytes = 8 };
    desc.ring.end = (npuprof_npu_field){ .offset = offsetof(completion, end), .width_bytes = 8 };
    desc.ring.job = (npuprof_npu_field){ .offset = offsetof(completion, job), .width_bytes = 4 };
    guest_open(&npu, &desc);
    for (unsigned i = 0; i < FRAMES; i++) {
        const int64_t lasts_ns = 10000 * (int64_t)i;
        WITH_NPU_PROFILER(&npu, 0, "transmit", "NPU", PROF_ARGS(PROF_INT("lasts_ns", lasts_ns)), {
            transmit(i, npuprof_npu_job(&npu), lasts_ns);
        });
        if (i % 8 == 7) CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    }
    npuprof_npu_close(&npu);
    guest_send_trace("igb_frames.json");
}

CHECK_MAIN(CASE(never_backward_beyond_doubles), CASE(stamped_frames))

/* sim.h - a device in an array and a host clock that only the test moves: 1 host tick is 1 ns.
   SPDX-License-Identifier: MIT

   Every look at the host clock moves it by sim.step and writes the device's registers anew, so a test knows
   exactly what lies between two register loads. Include before npuprof.h. */
#ifndef SIM_H
#define SIM_H

#include "check.h"
#include "own_clock.h"

enum { SIM_LO = 0x10, SIM_HI = 0x18, SIM_PRODUCER = 0x20, SIM_RING = 0x100, SIM_BYTES = 0x10000 };

static struct {
    uint64_t host, step;             /* ns */
    uint64_t start, hz;              /* counter = start + (host - origin) * hz / 1e9 */
    uint64_t origin;
    unsigned bits, access;           /* of the counter */
    bool latch, down, big;
    bool ones, zeros, frozen;
    void (*tick)(void);              /* instead of all that: writes the registers itself */
    uint64_t old_high;
} sim = { 1000000, 10, 5000, 25000000, 1000000, 64, 32, false, false, false, false, false, false, NULL, 0 };

static union { uint64_t align; unsigned char bytes[SIM_BYTES]; } sim_bar;

CHECK_UNUSED_ static uint64_t sim_mask(unsigned bits)
{
    return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

CHECK_UNUSED_ static void sim_store(size_t offset, unsigned bytes, uint64_t value)
{
    uint64_t turned = 0;
    for (unsigned i = 0; i < bytes; i++) turned |= (value >> 8 * i & 0xFF) << 8 * (bytes - 1 - i);
    if (sim.big) value = turned;
    switch (bytes) {
    case 1: sim_bar.bytes[offset] = (unsigned char)value; break;
    case 2: __atomic_store_n((uint16_t *)(void *)(sim_bar.bytes + offset), (uint16_t)value,
                             __ATOMIC_RELEASE); break;
    case 4: __atomic_store_n((uint32_t *)(void *)(sim_bar.bytes + offset), (uint32_t)value,
                             __ATOMIC_RELEASE); break;
    default: __atomic_store_n((uint64_t *)(void *)(sim_bar.bytes + offset), value, __ATOMIC_RELEASE); break;
    }
}

/* The true time of the device now, not cut to its bits. */
CHECK_UNUSED_ static uint64_t sim_truth(void)
{
    __extension__ typedef unsigned __int128 wide;
    return sim.start + (uint64_t)((wide)(sim.host - sim.origin) * sim.hz / 1000000000u);
}

CHECK_UNUSED_ static void sim_publish(void)
{
    uint64_t value = sim_truth(), high;
    if (sim.tick) {
        sim.tick();
        return;
    }
    if (sim.frozen) return;
    if (sim.down) value = ~value;
    value &= sim_mask(sim.bits);
    if (sim.ones) value = UINT64_MAX;
    if (sim.zeros) value = 0;
    high = sim.access < 64 ? value >> sim.access : 0;
    sim_store(SIM_LO, sim.access / 8, value & sim_mask(sim.access));
    if (sim.bits > sim.access || sim.ones) sim_store(SIM_HI, sim.access / 8, sim.latch ? sim.old_high : high);
    sim.old_high = high;             /* a latched half is the one of the load before */
}

CHECK_UNUSED_ static void sim_advance(uint64_t ns)
{
    sim.host += ns;
    sim_publish();
    sim_publish();
}

uint64_t own_clock(void)
{
    sim.host += sim.step;
    sim_publish();
    return sim.host;
}

/* The description that fits; the test changes what it wants. Needs npuprof_npu.h, so it is a macro. */
#define SIM_DESC(d)                                     \
    npuprof_npu_desc d;                                 \
    memset(&d, 0, sizeof d);                            \
    d.name = "sim";                                     \
    d.bar = sim_bar.bytes;                              \
    d.bar_bytes = sizeof sim_bar;                       \
    d.counter.lo_offset = SIM_LO;                       \
    d.counter.hi_offset = SIM_HI;                       \
    d.counter.bits = sim.bits;                          \
    d.counter.access = sim.access;                      \
    d.counter.order = sim.latch ? NPUPROF_NPU_LO_LATCHES_HI : NPUPROF_NPU_HI_LO_HI; \
    d.counter.counts_down = sim.down;                   \
    d.counter.big_endian = sim.big;                     \
    d.counter.hz = sim.hz;                              \
    sim_publish();                                      \
    sim_publish()

#endif /* SIM_H */

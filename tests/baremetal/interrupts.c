/* A Cortex-M records in its main loop and in an interrupt that comes every few dozen instructions: every span
   that ran is in the arena or counted as lost. The interrupt ends what the loop began on a device. The image
   is interrupts.img.
   SPDX-License-Identifier: MIT */
#include <stdint.h>

static volatile uint32_t reads;
static uint32_t read_clock(void) { return ++reads; }
#define NPUPROF_NOW() read_clock()
#define NPUPROF_NOW_HZ 1000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_ARENA_BYTES 8192
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#define PORT_TICK tick
#include "port.h"

static volatile uint32_t executed, ticks;
static volatile uint32_t seed = 1;
static npuprof_npu npu;
static volatile uint32_t pending, tried, begun, ended, refused;
static uint64_t read_device(void *user)
{
    (void)user;
    return reads;
}

void tick(void)
{
    const uint32_t handle = pending;
    pending = 0;
    if (handle) {
        const npuprof_result result = npuprof_npu_end(&npu, handle);
        if (result == NPUPROF_OK || result == NPUPROF_ERR_NPU_BUSY) ended++;
        else refused++;
        if (npuprof_npu_end(&npu, handle) != NPUPROF_ERR_ARGUMENT) refused++;
    }

    PROF_SCOPE("tick");
    ticks++;
    seed = seed * 1664525u + 1013904223u;
    *(volatile uint32_t *)0xE000E014 = 300 + (seed >> 24);      /* not always at the same instruction */
    if (seed >> 31) PROF_COUNTER("ticks", ticks);
    if (seed >> 31) ticks++;
}

int main(void)
{
    static npuprof_npu_desc desc;
    const npuprof_sink sink = { port_write, NULL };
    npuprof_start(1);
    desc.read_ticks = read_device;
    if (npuprof_npu_open(&npu, &desc) != NPUPROF_OK) return 4;
    *(volatile uint32_t *)0xE000E014 = 300;
    *(volatile uint32_t *)0xE000E018 = 0;
    *(volatile uint32_t *)0xE000E010 = 7;
    while (executed < 400) {
        PROF_SCOPE("loop");
        { PROF_SCOPE_ARGS("c", "args", PROF_ARGS(PROF_INT("n", executed))); }
        executed += 2;
        if (!pending && executed % 8 == 2) {
            const uint32_t handle = npuprof_npu_begin(&npu, 0, "in the loop", "NPU", PROF_NO_ARGS);
            tried++;
            begun += handle != 0;
            pending = handle;
        }
    }
    *(volatile uint32_t *)0xE000E010 = 0;
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    port_open("interrupts.img");
    const npuprof_result r = npuprof_write_image(sink);
    port_close();
    if (r != NPUPROF_OK) return 1;
    if (ticks < 10 || stats.lost < 10) return 2;
    if (begun < 4 || refused || ended + (pending != 0) != begun) return 5;
    return stats.recorded + stats.lost == executed + ticks + tried + ended ? 0 : 3;
}

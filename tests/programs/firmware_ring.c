/* A ring of 4 KiB that ran for many laps, for firmware/test_ring_image.py: out.img is what
   npuprof_write_image() writes, ram.bin a dump of its memory. It renames all it can, and has a device.
   usage: firmware_ring LAPS TICKS    TICKS: how far the clock jumps in each lap
   SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t ticks = (uint64_t)3 << 47;       /* beyond the bits of a stamp */
static volatile uint32_t registers[4];
static uint64_t now(void)
{
    ticks += 2;
    registers[0] = (uint32_t)(ticks / 2);
    registers[1] = (uint32_t)(ticks / 2 >> 32);
    return ticks;
}
#define NPUPROF_NOW() now()
#define NPUPROF_NOW_HZ 1000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_WHEN_FULL NPUPROF_KEEP_NEWEST
#define NPUPROF_ARENA_BYTES 4096
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"

static int put(void *file, const void *bytes, size_t count)
{
    return fwrite(bytes, 1, count, (FILE *)file) == count ? 0 : 5;
}

/* Records 256 events. */
static void lap(npuprof_npu *npu, int number)
{
    char text[40];
    for (int i = 0; i < 8; i++) {
        (void)snprintf(text, sizeof text, "task %d", 8 * number + i);
        PROF_THREAD_NAME(text);
        (void)snprintf(text, sizeof text, "value %d", 8 * number + i);
        npuprof_metadata("key", text);
        (void)snprintf(text, sizeof text, "counter %d", 8 * number + i);
        npuprof_name(7, text);
        npuprof_count(7, (uint64_t)i);
        WITH_NPU_PROFILER(npu, 0, "kernel", "NPU", PROF_NO_ARGS, ticks += 500);
        for (int k = 0; k < 29; k++) {
            PROF_SCOPE("filler");
            ticks += 10;
        }
    }
}

int main(int argc, char **argv)
{
    static npuprof_npu npu;
    npuprof_npu_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.bar = registers;
    desc.bar_bytes = sizeof registers;
    desc.counter.bits = 64;
    desc.counter.hi_offset = 4;
    desc.counter.hz = 500000;
    npuprof_start(1);
    PROF_BEGIN(NULL, "open all the time");
    if (argc < 3 || npuprof_npu_open(&npu, &desc) != NPUPROF_OK) return 1;
    for (int i = 0; i < atoi(argv[1]); i++) {
        ticks += strtoull(argv[2], NULL, 10);
        lap(&npu, i);
    }
    FILE *const image = fopen("out.img", "wb"), *const ram = fopen("ram.bin", "wb");
    const npuprof_sink sink = { put, image };
    if (!image || !ram || npuprof_write_image(sink) != NPUPROF_OK || fclose(image)) return 1;
    return fwrite(npuprof_fw_arena_, 1, NPUPROF_ARENA_BYTES, ram) != NPUPROF_ARENA_BYTES || fclose(ram);
}

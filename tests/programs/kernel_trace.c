/* What a kernel module records, made on this machine for firmware/test_host.py: ram.bin, a dump of its arena.
   After each anchor a task and an interrupt record. usage: kernel_trace HZ TASK HOST ANCHOR...
   SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t ticks = 5000;
static unsigned task;
static unsigned long long rate;
#define NPUPROF_NOW() ticks
#define NPUPROF_NOW_HZ ((uint64_t)rate)
#define NPUPROF_FREESTANDING
#define NPUPROF_CONTEXT() task
#define NPUPROF_CONTEXTS 256
#define NPUPROF_ARENA_BYTES 0
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

static uint64_t memory[8192];

int main(int argc, char **argv)
{
    npuprof_desc desc = { .arena = memory, .arena_bytes = sizeof memory };
    rate = strtoull(argv[1], NULL, 10);
    if (npuprof_init(&desc) != NPUPROF_OK || npuprof_start(1) != NPUPROF_OK) return 1;
    const uint64_t native = strtoull(argv[2], NULL, 10);
    (void)npuprof_metadata("npuprof.host", argv[3]);
    (void)npuprof_metadata("npuprof.program", "driver");
    (void)npuprof_metadata("npuprof.kernel", "6.1");
    for (int i = 4; i < argc; i++) {       /* an anchor, as text: the clock jumps there */
        const uint64_t said = strtoull(argv[i], NULL, 10) + 50;
        if (said > ticks && said < UINT64_C(1) << 60) ticks = said;
        (void)npuprof_metadata("npuprof.anchor", argv[i]);
        task = 7;
        if (i == 4) (void)npuprof_task("app", (uint32_t)native);
        ticks += 1000;
        PROF_BEGIN(NULL, "handler");
        task = 200;                        /* an interrupt of another context meanwhile */
        if (i == 4) (void)npuprof_task("CPU 0 hardirq", 0);
        ticks += 1000;
        {
            PROF_SCOPE("irq");
            ticks += 500;
        }
        task = 7;
        ticks += 500;
        PROF_END();
    }
    FILE *file = fopen("ram.bin", "wb");
    return !file || fwrite(memory, 1, sizeof memory, file) != sizeof memory || fclose(file) != 0;
}

/* What an RTOS tells the recorder, for firmware/test_rtos.py, on a clock of 24 bits and 1 MHz: out.img.
   usage: firmware_rtos MODE
   SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint64_t ticks = 5000;
static unsigned task;
#define NPUPROF_NOW() ((uint32_t)(ticks & 0xFFFFFF))
#define NPUPROF_NOW_BITS 24
#define NPUPROF_NOW_HZ 1000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_CONTEXT() task
#define NPUPROF_CONTEXTS 4
#define NPUPROF_ARENA_BYTES 4096
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

static int put(void *file, const void *bytes, size_t count)
{
    return fwrite(bytes, 1, count, (FILE *)file) == count ? 0 : 5;
}

/* Names given before, after and not at all; switches, interrupts, a stop in between. */
static void names(void)
{
    npuprof_name(0, "interrupts");
    npuprof_name(2, "first name");
    npuprof_name(2, "worker");
    for (uint32_t i = 0; i < 4; i++) {
        ticks += 10;
        npuprof_switch(1, i == 3 ? 65534 : 2 + i % 2);
    }
    ticks += 10;
    npuprof_switch(1, NPUPROF_NOBODY);
    ticks += 5;
    npuprof_switch(1, NPUPROF_NOBODY);
    npuprof_enter(0, 40);
    ticks += 1;
    npuprof_enter(0, 41);
    ticks += 1;
    npuprof_stop();
    npuprof_enter(0, 42);
    npuprof_leave(0);
    npuprof_switch(1, 2);
    npuprof_leave(0);
    ticks += 1;
    npuprof_leave(0);
    npuprof_leave(0);
    npuprof_start(1);
    npuprof_count(50, 7);
    npuprof_count(65535, 1);
    if (npuprof_name(65535, "x") != NPUPROF_ERR_ARGUMENT) ticks = 0;
    if (npuprof_name(1, NULL) != NPUPROF_ERR_ARGUMENT) ticks = 0;
    npuprof_name(1, "CPU");
    npuprof_name(41, "dma");
    npuprof_name(50, "stack free worker");
    task = 2;
    { PROF_SCOPE("work"); ticks += 3; }
}

/* Two sleeps, one inside a span, and one within a tick. */
static void sleeps(void)
{
    { PROF_SCOPE("before"); ticks += 1000; }
    {
        PROF_SCOPE("over");
        ticks += 100;
        npuprof_slept(UINT64_C(5000000));
        ticks += 100;
    }
    { PROF_SCOPE("between"); ticks += 50; }
    npuprof_stop();
    npuprof_slept(UINT64_C(3600000000));
    npuprof_slept(0);
    npuprof_start(1);
    { PROF_SCOPE("within a tick"); }
    ticks += 10;
    { PROF_SCOPE("after"); ticks += 20; }
    printf("%lld\n", (long long)npuprof_now_ns());
}

/* An hour without a record: the clock wraps 214 times. */
static void idle(bool ticking)
{
    for (int i = 0; i < 3600; i++) {
        ticks += 1000000;
        if (ticking) npuprof_tick();
    }
    { PROF_SCOPE("after"); ticks += 20; }
}

int main(int argc, char **argv)
{
    FILE *const file = fopen("out.img", "wb");
    const npuprof_sink sink = { put, file };
    if (argc < 2 || !file) return 2;
    npuprof_start(1);
    { PROF_SCOPE("start"); ticks += 10; }
    if (strcmp(argv[1], "names") == 0) names();
    else if (strcmp(argv[1], "sleeps") == 0) sleeps();
    else idle(strcmp(argv[1], "tick") == 0);
    return npuprof_write_image(sink) != NPUPROF_OK || fclose(file);
}

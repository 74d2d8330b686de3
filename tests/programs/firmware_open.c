/* What a stream sends while it is still open or kept, for firmware/test_stream_open.py. out.img is what the
   sink got; it prints how many events were recorded, how many were lost, and whether an interrupt came.
   usage: firmware_open recursion | replaced | interrupted K
     recursion     spans of one call site that begin in one tick, and are sent while they are open
     replaced      metadata whose first half was sent when it gets another value
     interrupted   at the K-th instruction of the end of a span that was sent, an interrupt records a lap of
                   the ring and sends it. Only on x86-64 with Linux.
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t ticks = 1, each = 1;
#define NPUPROF_NOW() (ticks += each)
#define NPUPROF_NOW_HZ 1000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_WHEN_FULL NPUPROF_STREAM
#define NPUPROF_ARENA_BYTES 592
static int put(const void *bytes, size_t count);
#define NPUPROF_SINK(bytes, count) put(bytes, count)
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

static FILE *image;
static int refuses;
static int put(const void *bytes, size_t count)
{
    return refuses ? 0 : (int)fwrite(bytes, 1, count, image);
}

static void spans(int count)
{
    while (count--) { PROF_SCOPE("span"); }
}

static void recursion(int depth)
{
    PROF_SCOPE("inner");
    if (depth) recursion(depth - 1);
    else npuprof_flush();
}

static void replaced(void)
{
    npuprof_flush();
    spans(15);
    npuprof_metadata("key", "the first value, which is longer");
    refuses = 1;
    npuprof_poll();                    /* the metadata's head is the last cell of the part */
    npuprof_metadata("key", "second");
    refuses = 0;
}

static int at, traps, came;
static void trap(int number)
{
    (void)number;
    if (++traps != at) return;
    came = 1;
    spans(13);
    npuprof_poll();
    spans(13);
    npuprof_flush();
}

static void interrupted(void)
{
    signal(SIGTRAP, trap);
    PROF_BEGIN("c", "sent");
    npuprof_flush();
    spans(3);
    npuprof_flush();
#if defined(__x86_64__) && defined(__linux__)
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" : : : "memory", "cc");
    PROF_END();
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" : : : "memory", "cc");
#endif
}

int main(int argc, char **argv)
{
    npuprof_stats stats;
    image = fopen("out.img", "wb");
    if (!image || argc < 2) return 1;
    at = argc > 2 ? atoi(argv[2]) : 0;
    npuprof_start(1);
    if (strcmp(argv[1], "recursion") == 0) each = 0;
    if (!each) recursion(3);
    each = 1;
    if (strcmp(argv[1], "replaced") == 0) replaced();
    if (strcmp(argv[1], "interrupted") == 0) interrupted();
    npuprof_stop();
    if (npuprof_flush() || fclose(image)) return 2;
    npuprof_get_stats(&stats);
    printf("%u %u %d\n", (unsigned)stats.recorded, (unsigned)stats.lost, came);
    return 0;
}

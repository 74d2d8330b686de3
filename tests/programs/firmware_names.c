/* Names in a stream of less than a lap, for firmware/test_names.py: out.img is what the sink got. A track, 20
   numbers and a key of metadata are named once, at the beginning; number 7 is renamed at half of the time.
   usage: firmware_names EVENTS
   SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t ticks;
#define NPUPROF_NOW() (ticks += 5)
#define NPUPROF_NOW_HZ 1000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_WHEN_FULL NPUPROF_STREAM
#define NPUPROF_ARENA_BYTES 262144
#define NPUPROF_CONTEXTS 4
static int put(const void *bytes, size_t count);
#define NPUPROF_SINK(bytes, count) put(bytes, count)
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

static FILE *image;
static int put(const void *bytes, size_t count) { return (int)fwrite(bytes, 1, count, image); }

int main(int argc, char **argv)
{
    char name[16];
    const int events = argc > 1 ? atoi(argv[1]) : 0;
    image = fopen("out.img", "wb");
    if (!image || npuprof_start(1) != NPUPROF_OK) return 1;
    PROF_THREAD_NAME("the task");
    npuprof_result r = npuprof_metadata("board", "no. 5");
    for (uint32_t n = 5; n < 25; n++) {
        (void)snprintf(name, sizeof name, "name %u", (unsigned)n);
        if (npuprof_name(n, name) != NPUPROF_OK) r = NPUPROF_ERR_TABLE_FULL;
    }
    for (int i = 0; i < events && r == NPUPROF_OK; i++) {
        if (i == events / 2) r = npuprof_name(7, "another");
        npuprof_count(5 + (uint32_t)i % 20, (uint64_t)i);
        if (i % 5 == 0) (void)npuprof_poll();
    }
    npuprof_stats stats;
    (void)npuprof_flush();
    return npuprof_get_stats(&stats) != NPUPROF_OK || stats.lost || r != NPUPROF_OK || fclose(image) != 0;
}

/* A recorder for bare machines on this one, for firmware/test_image.py: out.img is what npuprof_write_image()
   writes, ram.bin a dump of its memory, own.json its own JSON. usage: firmware_image MODE COUNT
   SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t ticks = 1000;
static unsigned task;
#ifndef HZ
#define HZ 1000000000u
#endif
#ifndef CLOCK
#define CLOCK uint64_t
#endif
#define NPUPROF_NOW() ((CLOCK)ticks)
#define NPUPROF_NOW_HZ HZ
#define NPUPROF_FREESTANDING
#define NPUPROF_CONTEXT() task
#define NPUPROF_CONTEXTS 3
#define NPUPROF_ARENA_BYTES 0
#ifdef BUILD
extern const unsigned char build_id[];
#define NPUPROF_BUILD_ID build_id
#endif
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

#ifndef NAME
#define NAME "conv1"
#endif

static int put(void *file, const void *bytes, size_t count)
{
    return fwrite(bytes, 1, count, (FILE *)file) == count ? 0 : 5;
}

static void save(const char *name, npuprof_result (*write)(npuprof_sink))
{
    FILE *file = fopen(name, "wb");
    const npuprof_sink sink = { put, file };
    if (!file || write(sink) != NPUPROF_OK || fclose(file)) exit(1);
}

static void layer(int n)
{
#ifdef SHIFTED
    PROF_INSTANT("c", "another call site", PROF_NO_ARGS);
#endif
    PROF_SCOPE(NAME);
    ticks += 10;
    {
        PROF_SCOPE_ARGS("npu", "kernel", PROF_ARGS(PROF_INT("n", n), PROF_STR("shape", "1x2x3x4 and so on")));
        ticks += 20;
    }
    PROF_COUNTER("queue", n);
    WITH_BASE_PROFILER(NULL, n & 1 ? "odd of run time" : "even of run time", "c", PROF_NO_ARGS, ticks += 5);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "plain";
    const int count = argc > 2 ? atoi(argv[2]) : 20;
    const size_t bytes = (size_t)count * 16 * 16 + 2048;
    npuprof_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.arena_bytes = bytes;
    desc.arena = calloc(1, bytes);
    if (npuprof_init(&desc) != NPUPROF_OK) return 1;
    npuprof_start(1);
    for (int i = 0; i < count; i++) {
        ticks += 100;
        if (strcmp(mode, "plain") == 0) {
            layer(i);
        } else if (strcmp(mode, "dead") == 0) {
            ticks = 1000;
            PROF_SCOPE("dead");
        } else if (strcmp(mode, "back") == 0) {
            PROF_SCOPE("back");
            if (i == count / 2) ticks -= 120;
        } else if (strcmp(mode, "falling") == 0) {
            ticks = 1000000000 - (uint64_t)i * 10;
            PROF_SCOPE("falling");
            ticks += 5;
        } else if (strcmp(mode, "contexts") == 0) {
            task = (unsigned)i * 0x55555555u;
            PROF_BEGIN("c", "by hand");
            PROF_END();
        } else if (strcmp(mode, "notes") == 0) {
            PROF_SCOPE("before");
            for (int k = 0; k < 3; k++)
                npuprof_metadata("model", "a value that takes some cells of the arena, and so on, and so on");
        }
    }
    npuprof_stop();
    save("out.img", npuprof_write_image);
    save("own.json", npuprof_write_json);
    FILE *file = fopen("ram.bin", "wb");
    if (!file || fwrite(desc.arena, 1, bytes, file) != bytes || fclose(file)) return 1;
    return 0;
}

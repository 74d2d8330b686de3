/* PROF_RESULT in a ring of 1 KiB that wraps, for firmware/test_ring_results.py: spans with results inside a
   long one that gets a result after each of them. out.img and out.json are of the ring; with STREAM, out.img
   is what the sink got.
   usage: firmware_results SPANS END    END: 1 ends the long span, too
   SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t ticks = 1;
#define NPUPROF_NOW() ((uint32_t)ticks)
#define NPUPROF_NOW_HZ 1000000u
#define NPUPROF_FREESTANDING
#ifdef STREAM
#define NPUPROF_WHEN_FULL NPUPROF_STREAM
#else
#define NPUPROF_WHEN_FULL NPUPROF_KEEP_NEWEST
#endif
#define NPUPROF_ARENA_BYTES 1024
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

static int put(void *file, const void *bytes, size_t count)
{
    return fwrite(bytes, 1, count, (FILE *)file) == count ? 0 : 5;
}

/* Span number i begins at 10 i us. */
static void spans(int count)
{
    for (int i = 1; i <= count; i++) {
        ticks = 1 + 10 * (uint64_t)i;
        {
            PROF_SCOPE("short");
            ticks++;
            if (NPUPROF_WHEN_FULL == NPUPROF_STREAM && i % 3 == 0 && npuprof_flush()) exit(2);
            PROF_RESULT(PROF_INT("n", i), PROF_STR("text", "more than one cell has"));
            ticks++;
        }
        PROF_RESULT(PROF_INT("last", i));
        if (i % 3 == 0) PROF_RESULT(PROF_INT("third", i));
        if (NPUPROF_WHEN_FULL == NPUPROF_STREAM && npuprof_poll()) exit(3);
    }
}

int main(int argc, char **argv)
{
    FILE *const image = fopen("out.img", "wb");
    const npuprof_sink sink = { put, image };
    const int count = argc == 3 ? atoi(argv[1]) : 0, ends = argc == 3 ? atoi(argv[2]) : 0;
    npuprof_desc desc = { 0 };
    if (!image) return 1;
    desc.when_full = NPUPROF_WHEN_FULL;
    desc.sink = sink;
    if (npuprof_init(&desc)) return 4;
#ifdef NEXT
    npuprof_fw_stream_.head.next = NEXT;           /* as if so many cells had been sent */
#endif
    npuprof_start(1);
    PROF_BEGIN("c", "long");
    spans(count);
    if (ends) PROF_END();
#ifdef STREAM
    if (npuprof_flush()) return 5;
#else
    if (npuprof_write_image(sink)) return 6;
    FILE *const json = fopen("out.json", "w");
    const npuprof_sink text = { put, json };
    if (!json || npuprof_write_json(text) || fclose(json)) return 7;
#endif
    return fclose(image);
}

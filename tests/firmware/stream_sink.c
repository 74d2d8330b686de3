/* test: - a stream whose sink is NPUPROF_SINK: no npuprof_init(), a sink that takes some or says nonsense
   SPDX-License-Identifier: MIT */
#include "check.h"
static uint32_t ticks;
static int put(const void *bytes, size_t count);
#define NPUPROF_NOW() (++ticks)
#define NPUPROF_NOW_HZ 1000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_ARENA_BYTES 1024
#define NPUPROF_WHEN_FULL NPUPROF_STREAM
#define NPUPROF_SINK(bytes, count) put(bytes, count)
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

static uint8_t taken[1 << 20];
static size_t streamed;
static uint32_t calls;
static int put(const void *bytes, size_t count)
{
    static const int some[] = { 1, -1, 0, 30, 1000000, 7 };
    const int takes = some[calls++ % 6];
    if (takes < 0 || (size_t)takes > count) return takes;       /* it took nothing */
    CHECK_STOP(streamed + count < sizeof taken);
    memcpy(taken + streamed, bytes, (size_t)takes);
    streamed += (size_t)takes;
    return takes;
}

static void drain(void)
{
    npuprof_result r;
    uint32_t before = calls;
    while ((r = npuprof_flush()) == NPUPROF_ERR_BUSY) CHECK_STOP(calls - before < 10000);
    CHECK_INT(r, NPUPROF_OK);
}

/* All that is recorded comes, in parts that are whole, and a header is the first and the last. */
static void streams(void)
{
    uint32_t spans = 0, headers = 0;
    bool header_is_last = false;
    CHECK_INT(npuprof_poll(), NPUPROF_ERR_BUSY);                 /* before npuprof_start(): a header */
    npuprof_start(1);
    for (uint32_t i = 0; i < 2000; i++) {
        { PROF_SCOPE("span"); }
        if (i % 5 == 0) drain();
    }
    drain();
    for (size_t at = 0; at < streamed;) {
        npuprof_stream_head_ head;
        memcpy(&head, taken + at, sizeof head);
        const size_t bytes = 16 + head.count * (size_t)16;
        CHECK_STOP(head.mark == NPUPROF_STREAM_MARK_ && at + bytes <= streamed);
        CHECK_UINT(head.crc, ~npuprof_crc_add_(UINT32_MAX, taken + at + 8, bytes - 8));
        header_is_last = memcmp(taken + at + 16, "NPUPROF\n", 8) == 0;
        CHECK(at || header_is_last);
        if (header_is_last) headers++;
        else spans += head.count;
        CHECK_UINT(head.next, spans);
        at += bytes;
    }
    CHECK(header_is_last && headers > 2);
    CHECK_UINT(spans, 2000);
}

static int put_other(void *user, const void *bytes, size_t count)
{
    (void)user;
    return put(bytes, count);
}

/* It is not needed. With it, one sink is enough. */
static void init(void)
{
    npuprof_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.when_full = NPUPROF_STREAM;
    desc.sink.write = put_other;
    CHECK_INT(npuprof_init(&desc), NPUPROF_ERR_UNSUPPORTED);
    desc.sink.write = NULL;
    CHECK_INT(npuprof_init(&desc), NPUPROF_OK);
    CHECK_INT(npuprof_init(&desc), NPUPROF_ERR_STARTED);
}

CHECK_MAIN(CASE(streams), CASE(init))

/* Writes one small image of a kind to a path, on a clock of its own: the same calls give the same trace on
   every machine. usage: images KIND PATH. A mapped arena expands the path as a pattern.
   SPDX-License-Identifier: MIT */
#include "../fake_clock.h"
#define NPUPROF_ARENA_BYTES 16384
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#include <string.h>

static FILE *stream_file;
static int write_stream(void *user, const void *bytes, size_t count)
{
    (void)user;
    return fwrite(bytes, 1, count, stream_file) == count ? 0 : 28;
}

static uint64_t device_ticks(void *user) { (void)user; return fake_ticks / 40; }

/* Every kind of span and event once or twice. */
static void all_kinds(int rounds)
{
    npuprof_device pool = { "pool", NULL, NULL, false };
    char name[24];
    npuprof_metadata("model", "resnet \"50\"");
    PROF_THREAD_NAME("main \xC3\xA9");
    PROF_RECORD("trace");
    fake_ticks += 1000;
    for (int i = 0; i < rounds; i++) {
        PROF_INFERENCE("Inference");
        fake_ticks += 10;
        { PROF_OPERATOR(3, "Quantize"); fake_ticks += 250; PROF_RESULT(PROF_INT("ne.forward_ns", 240)); }
        snprintf(name, sizeof name, "kernel %d", i % 7);
        WITH_BASE_PROFILER(
            NULL, name, "npu",
            PROF_ARGS(PROF_INT("n", -5), PROF_STR("s", "a\"b\\ and a string beyond eight bytes"),
                      PROF_REAL("x", 0.5), PROF_STR("none", NULL)),
            fake_ticks += 1000000; PROF_RESULT(PROF_STR("s", "what counts is the last"), PROF_INT("i", i)));
        { PROF_PHASES("one"); fake_ticks += 7; PROF_NEXT("two"); fake_ticks += 8; }
        PROF_COUNTER("queue", i);
        PROF_COUNTER("load", 0.25 * i);
        PROF_INSTANT("c", "now", PROF_ARGS(PROF_BOOL("even", i % 2 == 0), PROF_UINT("big", UINT64_MAX)));
        PROF_MEMORY(&pool, 1024 * (unsigned)i, 4096, "tag");
    }
    { PROF_RECORD_WARM_UP("warm"); fake_ticks += 5; }
    { PROF_SCOPE("out"); PROF_FLOW_OUT(1); fake_ticks += 5; }
    { PROF_SCOPE("in"); fake_ticks += 5; PROF_FLOW_IN(1); fake_ticks += 5; }
    npuprof_async_begin("q", "job", 9);
    fake_ticks += 50;
    npuprof_async_end(9);
    npuprof_span("dma", "d", "copy", npuprof_now_ns() - 40, npuprof_now_ns() - 10, PROF_NO_ARGS);
    npuprof_pause();
    fake_ticks += 100;
    npuprof_resume();
}

static npuprof_npu npu;
static void device(void)
{
    npuprof_npu_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "npu0";
    desc.read_ticks = device_ticks;
    desc.counter.hz = 25000000;
    if (npuprof_npu_open(&npu, &desc) != NPUPROF_OK) return;
    for (unsigned i = 0; i < 4; i++) {
        WITH_NPU_PROFILER(&npu, 0, "layer", "NPU", PROF_ARGS(PROF_INT("instruction_index", i)),
                          fake_ticks += 4000);
        const uint64_t t = fake_ticks / 40;
        npuprof_npu_span(&npu, 1, "conv", "NPU", t - 40, t - 10, PROF_ARGS(PROF_INT("execution_index", i)));
    }
    (void)npuprof_npu_sync(&npu);
    npuprof_npu_close(&npu);
}

static void fill(int count)
{
    PROF_SCOPE("long");
    PROF_BEGIN("c", "long by hand");
    PROF_RESULT(PROF_INT("first", 1));
    for (int i = 0; i < count; i++) {
        PROF_SCOPE_ARGS("c", "numbered", PROF_ARGS(PROF_INT("n", i)));
        fake_ticks += 11;
        if (i % 8 == 0) PROF_RESULT(PROF_INT("status", -i));
    }
    PROF_RESULT(PROF_INT("last", count));
    PROF_END();
}

int main(int argc, char **argv)
{
    npuprof_desc desc;
    if (argc < 3) return 2;
    const char *kind = argv[1], *path = argv[2];
    memset(&desc, 0, sizeof desc);
    const bool mapped = strstr(kind, "arena") != NULL;
    if (strstr(kind, "wrapped")) desc.when_full = NPUPROF_KEEP_NEWEST;
    if (strstr(kind, "stream")) {
        desc.when_full = NPUPROF_STREAM;
        desc.sink.write = write_stream;
        stream_file = fopen(path, "wb");
        if (!stream_file) return 3;
    }
    if (mapped) {
        desc.arena_path = path;
        desc.arena_bytes = strstr(kind, "tiny") ? 2048 : 16384;
    }
    const npuprof_result r = npuprof_init(&desc);
    if (r != NPUPROF_OK) {
        fprintf(stderr, "%s\n", npuprof_result_string(r));
        return 4;
    }
    npuprof_start(2);
    if (strstr(kind, "empty")) npuprof_stop();
    if (strstr(kind, "device")) device();
    else if (strstr(kind, "wrapped") || strstr(kind, "stream")) { all_kinds(2); fill(700); all_kinds(2); }
    else all_kinds(strstr(kind, "tiny") ? 1 : 4);
    if (strstr(kind, "stream")) (void)npuprof_flush();
    {
        PROF_SCOPE("open at the end");
        PROF_BEGIN("c", "open, too");
        fake_ticks += 9;
        if (strstr(kind, "open") && mapped) _exit(0);
        if (strstr(kind, "open") && !mapped && !desc.sink.write) return (int)npuprof_dump(path);
        PROF_END();
    }
    if (desc.sink.write) {
        (void)npuprof_flush();
        desc.sink.user = NULL;
        fflush(stream_file);
        _exit(0);
    }
    npuprof_stop();
    return mapped ? 0 : (int)npuprof_dump(path);
}

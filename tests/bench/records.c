/* What a record costs: npuprof_npu_feed() and npuprof_npu_drain() of each device's format, submissions
   matched as they go. SPDX-License-Identifier: MIT A ROW is the time of one record, of batches of 100; its
   limit, 150 ns, is for a quiet machine. */
#include "bench.h"
#define PLAY_REAL_CLOCK
#include "npu/models/play.h"
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_ARENA_BYTES (64 * 1024 * 1024)
#include "npuprof.h"
#include "npuprof_npu.h"
#include "npu/models/play_run.h"
#include "npu/models/all.h"
#include "npu/models/formats.h"

enum { JOBS = 100, BATCHES = 200, COUNT = 512, ROOM = COUNT * 96 };
static npuprof_npu npu;
static unsigned char *entries, *counts, batch[JOBS * 256];
static double fed[BATCHES], polled[BATCHES];

static uint64_t read_ticks(void *user)
{
    (void)user;
    play.host = (uint64_t)bench_ns(CLOCK_MONOTONIC_RAW);
    return play_ticks(play.host);
}

static size_t write_jobs(const play_format *format)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < JOBS; i++) {
        const uint64_t end = (uint64_t)bench_ns(CLOCK_MONOTONIC_RAW);
        const play_job job = { play.submitted, i % 4, 1, play.submitted + 1u, end - 500, end - 400, end };
        play.submitted++;
        WITH_NPU_PROFILER(&npu, job.lane, "submit", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, job.id));
        bytes += format->write(batch + bytes, &job);
    }
    return bytes;
}

/* The same in the ring. */
static uint64_t write_ring(const play_format *format, uint64_t written)
{
    const size_t size = npu.desc_.ring.entry_bytes, bytes = write_jobs(format);
    for (size_t at = 0; at < bytes; at += size)
        memcpy(entries + written++ % COUNT * size, batch + at, size);
    play_put(counts, 0, 4, written & UINT32_MAX);
    return written;
}

static void open_device(const play_format *format, bool feed)
{
    npuprof_npu_desc d;
    memset(&d, 0, sizeof d);
    d.read_ticks = read_ticks;
    d.counter.hz = play.hz;
    d.pe_count = 4;
    format->describe(&d.ring);
    d.ring.feed = feed;
    if (!feed) {
        d.ring.memory = entries;
        d.ring.memory_bytes = ROOM;
        d.ring.count = COUNT;
        d.ring.producer.memory = counts;
        d.ring.producer.memory_bytes = 8;
        play_put(counts, 0, 4, 0);
    }
    const npuprof_result result = npuprof_npu_open(&npu, &d);
    if (result != NPUPROF_OK) {
        fprintf(stderr, "%s does not open: %s\n", format->name, npuprof_result_string(result));
        exit(2);
    }
}

static void one_format(const play_format *format, double scale)
{
    char name[100];
    const uint64_t lost = play_lost();
    double records = 1;
    open_device(format, true);
    for (int i = 0; i < BATCHES; i++) {
        const size_t bytes = write_jobs(format);
        const uint64_t start = bench_ticks();
        records = (double)bytes / npu.desc_.ring.entry_bytes;
        if (npuprof_npu_feed(&npu, 0, batch, bytes) != NPUPROF_OK) exit(3);
        fed[i] = (double)(bench_ticks() - start) * scale / records;
    }
    npuprof_npu_close(&npu);
    npuprof_clear();
    open_device(format, false);
    uint64_t written = 0;
    for (int i = 0; i < BATCHES; i++) {
        written = write_ring(format, written);
        const uint64_t start = bench_ticks();
        if (npuprof_npu_drain(&npu) != NPUPROF_OK) exit(3);
        polled[i] = (double)(bench_ticks() - start) * scale / records;
    }
    npuprof_npu_close(&npu);
    npuprof_clear();
    if (play_lost() != lost) {
        fprintf(stderr, "%s: records were lost\n", format->name);
        exit(4);
    }
    snprintf(name, sizeof name, "feed, one record, %s", format->name);
    bench_row(name, fed, BATCHES, "ns", 150, 0);
    snprintf(name, sizeof name, "drain, one record, %s", format->name);
    bench_row(name, polled, BATCHES, "ns", 150, 0);
}

int main(int argc, char **argv)
{
    const double ns = bench_ns(CLOCK_MONOTONIC);
    const uint64_t ticks = bench_ticks();
    bench_pin(0);
    entries = play_memory(ROOM);
    counts = play_memory(8);
    play.host = play.origin = (uint64_t)bench_ns(CLOCK_MONOTONIC_RAW);
    while (bench_ns(CLOCK_MONOTONIC) < ns + 5e6) {}
    const double scale = (bench_ns(CLOCK_MONOTONIC) - ns) / (double)(bench_ticks() - ticks);
    npuprof_start(1);
    for (unsigned i = 0; i < PLAY_FORMATS; i++)
        if (argc < 2 || strstr(play_formats[i].name, argv[1])) one_format(&play_formats[i], scale);
    return 0;
}

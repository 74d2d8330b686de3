/* What a record costs: npuprof_npu_feed() and npuprof_npu_drain() of each device's format, submissions
   matched as they go. SPDX-License-Identifier: MIT
   CPU time of one record, in batches of 100 jobs, without that of the submissions: the median of the batches,
   and the least. Limit: 150 ns. The arena's pages are there before (npuprof_desc.populate), as they are again
   when records take the place of old ones; the last rows have pages that the kernel brings meanwhile, without
   a limit. usage: records [PART OF A NAME] */
#include "bench.h"
#define PLAY_REAL_CLOCK
#include "npu/models/play.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#include "npu/models/play_run.h"
#include "npu/models/all.h"
#include "npu/models/formats.h"

enum { JOBS = 100, BATCHES = 200, COUNT = 512, ROOM = COUNT * 96, LIMIT = 150 };
static npuprof_npu npu;
static unsigned char *entries, *counts, batch[JOBS * 256];
static double fed[BATCHES], polled[BATCHES], empty;

static double cpu_ns(void) { return bench_ns(CLOCK_THREAD_CPUTIME_ID); }

/* What the look at the CPU time costs. */
static double cpu_look(void)
{
    double least = 1e9;
    for (int i = 0; i < 1000; i++) {
        const double start = cpu_ns();
        least = fmin(least, cpu_ns() - start);
    }
    return least;
}

static void show(const char *what, const char *format, double *ns, bool fresh)
{
    char name[100];
    const double limit = fresh ? 0 : LIMIT;
    snprintf(name, sizeof name, "%s, %s%s", what, format, fresh ? ", fresh pages" : "");
    bench_row(name, ns, BATCHES, "ns", limit, 0);        /* sorts */
    snprintf(name + strlen(name), sizeof name - strlen(name), ", least");
    bench_row(name, ns, 1, "ns", limit, 0);
}

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

static void one_format(const play_format *format, bool fresh)
{
    const uint64_t lost = play_lost();
    double records = 1;
    open_device(format, true);
    for (int i = 0; i < BATCHES; i++) {
        const size_t bytes = write_jobs(format);
        const double start = cpu_ns();
        records = (double)bytes / npu.desc_.ring.entry_bytes;
        if (npuprof_npu_feed(&npu, 0, batch, bytes) != NPUPROF_OK) exit(3);
        fed[i] = (cpu_ns() - start - empty) / records;
    }
    npuprof_npu_close(&npu);
    npuprof_clear();
    open_device(format, false);
    uint64_t written = 0;
    for (int i = 0; i < BATCHES; i++) {
        written = write_ring(format, written);
        const double start = cpu_ns();
        if (npuprof_npu_drain(&npu) != NPUPROF_OK) exit(3);
        polled[i] = (cpu_ns() - start - empty) / records;
    }
    npuprof_npu_close(&npu);
    npuprof_clear();
    if (play_lost() != lost) {
        fprintf(stderr, "%s: records were lost\n", format->name);
        exit(4);
    }
    show("feed", format->name, fed, fresh);
    show("drain", format->name, polled, fresh);
}

static int run(const char *part, bool fresh)
{
    npuprof_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.arena_bytes = 64 * 1024 * 1024;
    desc.arena = mmap(NULL, desc.arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    desc.populate = !fresh;
    if (desc.arena == MAP_FAILED || npuprof_init(&desc) != NPUPROF_OK) return 2;
    entries = play_memory(ROOM);
    counts = play_memory(8);
    play.host = play.origin = (uint64_t)bench_ns(CLOCK_MONOTONIC_RAW);
    empty = cpu_look();
    npuprof_start(1);
    for (unsigned i = 0; i < PLAY_FORMATS; i++)
        if (!part || strstr(play_formats[i].name, part)) one_format(&play_formats[i], fresh);
    return 0;
}

/* Fresh pages are had once in a process, so those rows are another's. */
int main(int argc, char **argv)
{
    int status = 0;
    bench_pin(0);
    const pid_t child = fork();
    if (child == 0) return run(argc > 1 ? argv[1] : NULL, false);
    if (child < 0 || waitpid(child, &status, 0) != child) return 2;
    return status ? 2 : run(argc > 1 ? argv[1] : "the widest", true);
}

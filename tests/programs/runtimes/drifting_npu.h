/* drifting_npu.h - an NPU in memory whose clock drifts, and a driver for it that has npuprof. What it really
   did is kept, so that a test can compare.
   SPDX-License-Identifier: MIT

   The counter has 32 bits and wraps after half a second. Its rate is 80 ppm above the nominal one, and swings
   by 15 ppm around that in 3 s. Include after npuprof_npu.h; link with -lm. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { DRIFTING_HZ = 100000000, DRIFTING_ENTRIES = 256, DRIFTING_KEPT = 65536 };

typedef struct drifting_entry { uint32_t job, pe, start, end; } drifting_entry;
typedef struct drifting_truth {          /* a job: on CLOCK_MONOTONIC */
    uint64_t job;
    long thread;
    int64_t start_ns, end_ns;
    char name[48];
} drifting_truth;

static npuprof_npu drifting_npu;
static drifting_entry drifting_ring[DRIFTING_ENTRIES];
static uint32_t drifting_producer;
static drifting_truth drifting_kept[DRIFTING_KEPT];
static size_t drifting_count;
static int64_t drifting_origin;
static pthread_mutex_t drifting_mutex = PTHREAD_MUTEX_INITIALIZER;

static int64_t drifting_real_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The counter at a time. */
static uint64_t drifting_ticks(int64_t ns)
{
    const double t = (double)(ns - drifting_origin) / 1e9, turn = 2 * 3.14159265358979 / 3;
    const double seconds = t + 80e-6 * t + 15e-6 / turn * (1 - cos(turn * t));
    return UINT64_C(0xFFFFFFFF) - DRIFTING_HZ / 2 + (uint64_t)(seconds * DRIFTING_HZ);
}

static uint64_t drifting_read(void *user)
{
    return (void)user, drifting_ticks(drifting_real_ns()) & 0xFFFFFFFF;
}

static npuprof_result drifting_open(void)
{
    static npuprof_npu_desc d;
    d.name = "drifting";
    d.read_ticks = drifting_read;
    d.counter.bits = 32;
    d.counter.hz = DRIFTING_HZ;
    d.max_rate_ppm = 40;
    d.pe_count = 2;
    d.ring.memory = drifting_ring;
    d.ring.memory_bytes = sizeof drifting_ring;
    d.ring.entry_bytes = sizeof(drifting_entry);
    d.ring.count = DRIFTING_ENTRIES;
    d.ring.producer.memory = &drifting_producer;
    d.ring.producer.memory_bytes = sizeof drifting_producer;
    d.ring.job.width_bytes = d.ring.pe.width_bytes = d.ring.start.width_bytes = d.ring.end.width_bytes = 4;
    d.ring.pe.offset = 4, d.ring.start.offset = 8, d.ring.end.offset = 12;
    drifting_origin = drifting_real_ns();
    return npuprof_npu_open(&drifting_npu, &d);
}

/* The device: works for some ns, and writes its record. */
static void drifting_work(uint64_t job, const char *name, int64_t ns)
{
    drifting_truth *const kept = &drifting_kept[drifting_count++ % DRIFTING_KEPT];
    kept->job = job;
    kept->thread = syscall(SYS_gettid);
    kept->start_ns = drifting_real_ns();
    while ((kept->end_ns = drifting_real_ns()) - kept->start_ns < ns) { }
    snprintf(kept->name, sizeof kept->name, "%s", name);
    drifting_entry *const entry = &drifting_ring[drifting_producer % DRIFTING_ENTRIES];
    entry->job = (uint32_t)job;
    entry->pe = (uint32_t)(job & 1);
    entry->start = (uint32_t)drifting_ticks(kept->start_ns);
    entry->end = (uint32_t)drifting_ticks(kept->end_ns);
    __atomic_store_n(&drifting_producer, drifting_producer + 1, __ATOMIC_RELEASE);
}

/* The driver: one job at a time, and it waits. Whoever profiles drains; so does every 64th job. */
static void drifting_run(const char *name, int64_t ns)
{
    pthread_mutex_lock(&drifting_mutex);
    WITH_NPU_PROFILER(&drifting_npu, 0, name, "NPU", PROF_NO_ARGS, {
        drifting_work(npuprof_npu_job(&drifting_npu), name, ns);
    });
    if (drifting_count % 64 == 0) npuprof_npu_drain(&drifting_npu);
    pthread_mutex_unlock(&drifting_mutex);
}

/* Writes what it did: a line a job. */
static int drifting_tell(const char *path)
{
    FILE *const out = fopen(path, "w");
    if (!out) return -1;
    for (size_t i = 0; i < drifting_count && i < DRIFTING_KEPT; i++) {
        const drifting_truth *const k = &drifting_kept[i];
        fprintf(out, "%llu %ld %lld %lld %s\n", (unsigned long long)k->job, k->thread,
                (long long)k->start_ns, (long long)k->end_ns, k->name);
    }
    return fclose(out);
}

/* test: alone - every call from several threads at once, on a device that a thread moves; and from a signal handler
   SPDX-License-Identifier: MIT */
#include "trace.h"
#define NPUPROF_IMPLEMENTATION
#define NPUPROF_ARENA_BYTES (64 * 1024 * 1024)
#include "npuprof.h"
#include "npuprof_npu.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

enum { LO = 0x10, HI = 0x14, PRODUCER = 0x20, RING = 0x100, ENTRY = 24, COUNT = 256, HZ_MHZ = 1000 };

static union { uint64_t align; unsigned char bytes[0x10000]; } bar;
static int finish, stop_device;
static npuprof_npu npu;
static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t queue[4096], queue_in, queue_out, completed;

static void store32(size_t offset, uint32_t v) { __atomic_store_n((uint32_t *)(void *)(bar.bytes + offset), v, __ATOMIC_RELEASE); }
static void store64(size_t offset, uint64_t v) { __atomic_store_n((uint64_t *)(void *)(bar.bytes + offset), v, __ATOMIC_RELEASE); }
static uint64_t ticks_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec) * HZ_MHZ / 1000;
}

/* Moves the counter, both halves at once as a device does, and completes what is queued. */
static void *device(void *unused)
{
    const uint64_t start = ticks_now() - 0xFFF00000u;
    uint32_t written = 0;
    (void)unused;
    while (!__atomic_load_n(&stop_device, __ATOMIC_RELAXED)) {
        const uint64_t now = ticks_now() - start;
        store64(LO, now);
        uint32_t job = 0;
        pthread_mutex_lock(&queue_mutex);
        if (queue_out != queue_in) job = queue[queue_out++ % 4096];
        pthread_mutex_unlock(&queue_mutex);
        if (job) {
            const size_t at = RING + (written % COUNT) * ENTRY;
            store32(at, ~written);
            store32(at + 4, job);
            store64(at + 8, now - 100);
            store64(at + 16, now);
            store32(at, written);
            store32(PRODUCER, ++written);
            __atomic_store_n(&completed, written, __ATOMIC_RELEASE);
        }
    }
    return NULL;
}

static void describe(npuprof_npu_desc *d, bool ring)
{
    memset(d, 0, sizeof *d);
    d->bar = bar.bytes;
    d->bar_bytes = sizeof bar;
    d->counter.lo_offset = LO;
    d->counter.hi_offset = HI;
    if (!ring) return;
    d->ring.offset = RING;
    d->ring.entry_bytes = ENTRY;
    d->ring.count = COUNT;
    d->ring.producer_offset = PRODUCER;
    d->ring.sequence.width_bytes = d->ring.job.width_bytes = 4;
    d->ring.job.offset = 4;
    d->ring.start.offset = 8;
    d->ring.end.offset = 16;
    d->ring.start.width_bytes = d->ring.end.width_bytes = 8;
}

static int submitted, waits;
static void submit_jobs(int count)
{
    for (int i = 0; i < count; i++) {
        WITH_NPU_PROFILER(&npu, i, "submit", "NPU", PROF_NO_ARGS, {
            const uint32_t job = npuprof_npu_job(&npu);
            for (bool done = false; !done;) {
                pthread_mutex_lock(&queue_mutex);
                if (queue_in - queue_out < 100) {
                    queue[queue_in++ % 4096] = job;
                    done = true;
                }
                pthread_mutex_unlock(&queue_mutex);
                if (!done) sched_yield();
            }
        });
        __atomic_fetch_add(&submitted, 1, __ATOMIC_RELAXED);
    }
}
static void *submitter(void *unused)
{
    (void)unused;
    submit_jobs(2000);
    return NULL;
}
static void *drainer(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&finish, __ATOMIC_RELAXED)) {
        uint64_t ticks, error;
        int64_t ns;
        npuprof_npu_drain(&npu);
        if (npuprof_npu_read(&npu, &ticks) == NPUPROF_OK) (void)npuprof_npu_host_ns(&npu, ticks, &ns, &error);
        (void)npuprof_npu_sync(&npu);
        (void)npuprof_npu_extend(&npu, 5);
    }
    return NULL;
}

static pthread_t moving;
static void start_device(void)
{
    store32(LO, 1);
    pthread_create(&moving, NULL, device, NULL);
    while (__atomic_load_n((uint32_t *)(void *)(bar.bytes + LO), __ATOMIC_RELAXED) == 1) sched_yield();
}
static void end_device(void)
{
    __atomic_store_n(&stop_device, 1, __ATOMIC_RELAXED);
    pthread_join(moving, NULL);
}

static void submit_and_drain_at_once(void)
{
    pthread_t threads[4];
    npuprof_npu_desc desc;
    describe(&desc, true);
    npuprof_start(1);
    start_device();
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, i < 2 ? submitter : drainer, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 5000; i++) {
        pthread_mutex_lock(&queue_mutex);
        const bool empty = queue_in == queue_out;
        pthread_mutex_unlock(&queue_mutex);
        if (empty) break;
        usleep(1000);
    }
    usleep(10000);
    __atomic_store_n(&finish, 1, __ATOMIC_RELAXED);
    for (int i = 2; i < 4; i++) pthread_join(threads[i], NULL);
    npuprof_npu_close(&npu);
    end_device();
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    CHECK_UINT(stats.recorded + stats.lost, 2 * 4000);
    CHECK_UINT(stats.lost, stats.lost_by_cause[NPUPROF_LOST_RING]);
    CHECK_UINT(npu.epoch_, 0);
}

enum { WORKERS = 6, ROUNDS = 60, ROUND_JOBS = 30 };             /* a round fits the ring and the table of submissions */
static pthread_barrier_t round_end;
static void *worker(void *first)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < ROUND_JOBS; i++) {
            submit_jobs(1);
            npuprof_npu_drain(&npu);
        }
        pthread_barrier_wait(&round_end);
        if (first) {
            const uint32_t all = (uint32_t)(round + 1) * WORKERS * ROUND_JOBS;
            while (__atomic_load_n(&completed, __ATOMIC_ACQUIRE) != all) sched_yield();
            npuprof_npu_drain(&npu);
        }
        pthread_barrier_wait(&round_end);
    }
    return NULL;
}

/* Every thread submits and drains. Whoever is preempted where, each device span has the name of its submission. */
static void every_job_is_known(void)
{
    pthread_t threads[WORKERS];
    npuprof_npu_desc desc;
    npuprof_stats stats;
    describe(&desc, true);
    npuprof_start(1);
    start_device();
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    pthread_barrier_init(&round_end, NULL, WORKERS);
    for (int i = 0; i < WORKERS; i++) pthread_create(&threads[i], NULL, worker, i ? NULL : &round_end);
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
    npuprof_npu_close(&npu);
    end_device();
    npuprof_get_stats(&stats);
    CHECK_UINT(stats.lost, 0);
    CHECK_UINT(stats.recorded, 2 * WORKERS * ROUNDS * ROUND_JOBS);
    const char *path = check_path("t.json");
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    json_node *t = trace_load(path);
    CHECK_UINT(trace_count(t, "X", "submit"), 2 * WORKERS * ROUNDS * ROUND_JOBS);
    CHECK_UINT(trace_count(t, "X", "job"), 0);
}

static void *reader(void *unused)
{
    uint64_t last = 0;
    (void)unused;
    for (int i = 0; i < 20000; i++) {
        uint64_t ticks;
        const npuprof_result result = npuprof_npu_read(&npu, &ticks);
        if (result == NPUPROF_ERR_NPU_BUSY) continue;
        if (result != NPUPROF_OK || ticks < last) check_failed_(__FILE__, __LINE__, "%s: %" PRIu64 " after %" PRIu64, npuprof_result_string(result), ticks, last);
        last = ticks;
        if (i % 16 == 0) { WITH_NPU_PROFILER(&npu, 0, "sampled", "NPU", PROF_NO_ARGS, (void)0); }
    }
    return NULL;
}

/* Four threads see a counter that only goes forward, over the wrap of its low word. */
static void read_at_once(void)
{
    pthread_t threads[4];
    npuprof_npu_desc desc;
    describe(&desc, false);
    npuprof_start(1);
    start_device();
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, reader, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    CHECK_UINT(npu.epoch_, 0);
    npuprof_npu_close(&npu);
    end_device();
}

static void on_signal(int number)
{
    uint64_t ticks;
    (void)number;
    __atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
    WITH_NPU_PROFILER(&npu, 1, "in handler", "NPU", PROF_NO_ARGS, { (void)npuprof_npu_job(&npu); });
    (void)npuprof_npu_read(&npu, &ticks);
    (void)npuprof_npu_drain(&npu);
}

/* A handler that interrupts any call at any place neither hangs nor breaks anything. */
static void signal_handlers(void)
{
    npuprof_npu_desc desc;
    struct sigaction action;
    struct itimerval timer = { { 0, 1000 }, { 0, 1000 } }, none = { { 0, 0 }, { 0, 0 } };
    sigset_t block;
    describe(&desc, true);
    npuprof_start(1);
    sigemptyset(&block);
    sigaddset(&block, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &block, NULL);                    /* not in the device's thread */
    start_device();
    pthread_sigmask(SIG_UNBLOCK, &block, NULL);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    const uint64_t end = ticks_now() + 1000000000u;
    for (int i = 0; ticks_now() < end && i < 100000; i++) {
        uint64_t ticks;
        WITH_NPU_PROFILER(&npu, 0, "outside", "NPU", PROF_NO_ARGS, { (void)npuprof_npu_job(&npu); });
        (void)npuprof_npu_read(&npu, &ticks);
        (void)npuprof_npu_drain(&npu);
        (void)npuprof_npu_sync(&npu);
    }
    setitimer(ITIMER_REAL, &none, NULL);
    CHECK(waits > 10);
    npuprof_npu_close(&npu);
    end_device();
    CHECK_UINT(npu.lock_, 0);
}

CHECK_MAIN(CASE(submit_and_drain_at_once), CASE(every_job_is_known), CASE(read_at_once), CASE(signal_handlers))

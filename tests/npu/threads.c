/* test: alone large - every call from several threads at once, on a device that a thread moves; and from a
   signal handler
   SPDX-License-Identifier: MIT */
#include "trace.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#include "at_once.h"
#include "fed.h"

enum { LO = 0x10, HI = 0x14, PRODUCER = 0x20, RING = 0x100, ENTRY = 24, COUNT = 256 };

static union { uint64_t align; unsigned char bytes[0x10000]; } bar;
static int finish, stop_device;
static npuprof_npu npu;
static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t queue[4096], queue_in, queue_out, completed;

static json_node *written(void)
{
    const char *path = check_path("t.json");
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    return trace_load(path);
}

static void store32(size_t offset, uint32_t v)
{
    __atomic_store_n((uint32_t *)(void *)(bar.bytes + offset), v, __ATOMIC_RELEASE);
}

static void store64(size_t offset, uint64_t v)
{
    __atomic_store_n((uint64_t *)(void *)(bar.bytes + offset), v, __ATOMIC_RELEASE);
}

/* Moves the counter, both halves at once as a device does, and completes what is queued. */
static void *device(void *unused)
{
    const uint64_t start = real_ns() - 0xFFF00000u;
    uint32_t written = 0;
    (void)unused;
    while (!__atomic_load_n(&stop_device, __ATOMIC_RELAXED)) {
        const uint64_t now = real_ns() - start;
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

/* Why twice: the time that it shows, and stamps, may have been taken before a device was opened. */
static void let_device_go_on(void)
{
    for (int i = 0; i < 2; i++) {
        const uint64_t was = __atomic_load_n((uint64_t *)(void *)(bar.bytes + LO), __ATOMIC_ACQUIRE);
        while (__atomic_load_n((uint64_t *)(void *)(bar.bytes + LO), __ATOMIC_ACQUIRE) == was) sched_yield();
    }
}

static npuprof_npu_desc described(bool ring)
{
    npuprof_npu_desc d = { .bar = bar.bytes, .bar_bytes = sizeof bar,
                           .counter = { .lo_offset = LO, .hi_offset = HI } };
    if (ring)
        d.ring = (npuprof_npu_ring){ .offset = RING, .entry_bytes = ENTRY, .count = COUNT,
                                     .producer = { .offset = PRODUCER }, .sequence = AT(0, 4, 0, 0),
                                     .job = AT(4, 4, 0, 0), .start = AT(8, 8, 0, 0), .end = AT(16, 8, 0, 0) };
    return d;
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
    const npuprof_npu_desc desc = described(true);
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

/* a round fits the ring and the table of submissions */
enum { WORKERS = 6, ROUNDS = 60, ROUND_JOBS = 30 };
static pthread_barrier_t round_end;
static void *worker(void *number)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < ROUND_JOBS; i++) {
            submit_jobs(1);
            npuprof_npu_drain(&npu);
        }
        pthread_barrier_wait(&round_end);
        if (!number) {
            const uint32_t all = (uint32_t)(round + 1) * WORKERS * ROUND_JOBS;
            while (__atomic_load_n(&completed, __ATOMIC_ACQUIRE) != all) sched_yield();
            npuprof_npu_drain(&npu);
        }
        pthread_barrier_wait(&round_end);
    }
    return NULL;
}

/* Every thread submits and drains. Whoever is preempted where, each device span has the name of its
   submission. */
static void every_job_is_known(void)
{
    const npuprof_npu_desc desc = described(true);
    npuprof_stats stats;
    npuprof_start(1);
    start_device();
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    let_device_go_on();
    pthread_barrier_init(&round_end, NULL, WORKERS);
    at_once(WORKERS, worker);
    npuprof_npu_close(&npu);
    end_device();
    npuprof_get_stats(&stats);
    CHECK_UINT(stats.lost, 0);
    CHECK_UINT(stats.recorded, 2 * WORKERS * ROUNDS * ROUND_JOBS);
    json_node *t = written();
    CHECK_UINT(trace_count(t, "X", "submit"), 2 * WORKERS * ROUNDS * ROUND_JOBS);
    CHECK_UINT(trace_count(t, "X", "job"), 0);
}

static void *reader(void *unused)
{
    uint64_t last = 0;
    (void)unused;
    for (int i = 0; i < 20000; i++) {
        uint64_t ticks;
        npuprof_result result;
        /* Why again: the thread that moves the counter may be off the CPU. */
        while ((result = npuprof_npu_read(&npu, &ticks)) == NPUPROF_ERR_NPU_STOPPED) sched_yield();
        if (result != NPUPROF_OK || ticks < last)
            check_failed_(__FILE__, __LINE__, "%s: %" PRIu64 " after %" PRIu64, npuprof_result_string(result),
                          ticks, last);
        last = ticks;
        if (i % 16 == 0) { WITH_NPU_PROFILER(&npu, 0, "sampled", "NPU", PROF_NO_ARGS, (void)0); }
    }
    return NULL;
}

/* Four threads see a counter that only goes forward, over the wrap of its low word. */
static void read_at_once(void)
{
    const npuprof_npu_desc desc = described(false);
    npuprof_start(1);
    start_device();
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    at_once(4, reader);
    CHECK_UINT(npu.epoch_, 0);
    npuprof_npu_close(&npu);
    end_device();
}

/* A clock whose reader is preempted in the middle now and then: the device is then in use while another
   thread asks. */
static uint64_t slow_ticks(void *unused)
{
    static unsigned reads;
    (void)unused;
    if (__atomic_add_fetch(&reads, 1, __ATOMIC_RELAXED) % 16 == 0) sched_yield();
    return real_ns();
}

enum { BLOCKS = 10000 };
static int handled;
static void *sample(void *unused)
{
    (void)unused;
    for (int i = 0; i < BLOCKS; i++) {
        uint64_t ticks;
        WITH_NPU_PROFILER(&npu, 0, "sampled", "NPU", PROF_NO_ARGS, (void)0);
        if (i % 8 == 0) CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    }
    return NULL;
}

static void open_by(uint64_t (*ticks)(void *), unsigned brackets)
{
    const npuprof_npu_desc desc = { .read_ticks = ticks, .brackets = brackets };
    npuprof_start(1);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
}

/* Two threads sample one device: each block has its device span. */
static void sample_at_once(void)
{
    npuprof_stats stats;
    open_by(slow_ticks, 0);
    at_once(2, sample);
    npuprof_npu_close(&npu);
    npuprof_stop();
    npuprof_get_stats(&stats);
    CHECK_UINT(stats.lost, 0);
    json_node *const t = written();
    CHECK_UINT(device_spans(t), 2 * BLOCKS);
    CHECK_UINT(trace_count(t, "i", "no device span"), 0);
}

static void on_sample_signal(int number)
{
    (void)number;
    WITH_NPU_PROFILER(&npu, 1, "in handler", "NPU", PROF_NO_ARGS, (void)0);
    handled++;
}

/* A handler that interrupts a read cannot wait for it: its device span is missing, and counted by cause. */
static void sample_in_handlers(void)
{
    npuprof_stats stats;
    uint64_t outside = 0;
    open_by(slow_ticks, 0);
    interrupt_every(500, on_sample_signal);
    for (const uint64_t end = real_ns() + 10000000000u; handled < 80 && real_ns() < end; outside++) {
        WITH_NPU_PROFILER(&npu, 0, "outside", "NPU", PROF_NO_ARGS, (void)0);
    }
    interrupt_every(0, NULL);
    npuprof_npu_close(&npu);
    npuprof_stop();
    npuprof_get_stats(&stats);
    const uint64_t busy = stats.lost_by_cause[NPUPROF_LOST_BUSY];
    CHECK(handled > 10);
    CHECK(busy > 0);
    json_node *const t = written();
    CHECK_UINT(device_spans(t) + busy, outside + (uint64_t)handled);
    CHECK_UINT(trace_count(t, "i", "no device span"), busy);
    CHECK_UINT(stats.lost, busy);
}

static void *let_go(void *unused)
{
    (void)unused;
    usleep(150000);
    __atomic_store_n(&npu.lock_, 0, __ATOMIC_RELEASE);
    return NULL;
}

/* An owner that does not run for a while is waited for, and not by burning the CPU it may need. */
static void wait_for_an_owner(void)
{
    pthread_t thread;
    struct timespec before, after;
    uint64_t ticks;
    open_by(slow_ticks, 0);
    npu.lock_ = 1;                                               /* nobody's address */
    pthread_create(&thread, NULL, let_go, NULL);
    const uint64_t begun = real_ns();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    CHECK_INT(npuprof_npu_read(&npu, &ticks), NPUPROF_OK);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    const uint64_t waited = real_ns() - begun;
    pthread_join(thread, NULL);
    const int64_t spent = (after.tv_sec - before.tv_sec) * 1000000000 + (after.tv_nsec - before.tv_nsec);
    CHECK((uint64_t)spent < waited / 2);                         /* with a sanitizer it may be a third */
    npuprof_npu_close(&npu);
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
    const npuprof_npu_desc desc = described(true);
    sigset_t block;
    npuprof_start(1);
    sigemptyset(&block);
    sigaddset(&block, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &block, NULL);                    /* not in the device's thread */
    start_device();
    pthread_sigmask(SIG_UNBLOCK, &block, NULL);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    interrupt_every(1000, on_signal);
    const uint64_t end = real_ns() + 1000000000u;
    for (int i = 0; real_ns() < end && i < 100000; i++) {
        uint64_t ticks;
        WITH_NPU_PROFILER(&npu, 0, "outside", "NPU", PROF_NO_ARGS, { (void)npuprof_npu_job(&npu); });
        (void)npuprof_npu_read(&npu, &ticks);
        (void)npuprof_npu_drain(&npu);
        (void)npuprof_npu_sync(&npu);
    }
    interrupt_every(0, NULL);
    CHECK(waits > 10);
    npuprof_npu_close(&npu);
    end_device();
    CHECK_UINT(npu.lock_, 0);
}

CHECK_MAIN(CASE(submit_and_drain_at_once), CASE(every_job_is_known), CASE(read_at_once),
           CASE_THOROUGH(sample_at_once), CASE_THOROUGH(sample_in_handlers), CASE(wait_for_an_owner),
           CASE_THOROUGH(signal_handlers))

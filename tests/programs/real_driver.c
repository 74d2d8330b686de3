/* A driver that waits for its device in one of many ways, really measured. The device takes real time: its
   engines are timers, as hardware that works beside the CPU. usage: real_driver TRACE STYLE [KEY=VALUE]...
   prints the window and then the latency of each inference, in ns.
   SPDX-License-Identifier: MIT

   inferences=N           of all threads together
   device_us, prepare_us  how long a job takes, and the host's work before it
   device, prepare        percent of these times, of a changed run
   cpu_ns=1               desc.cpu_ns
   urgent=1               its threads come before everything else on the machine, where that is allowed
   busy=N                 so many processes that only work beside it; where that is allowed, they and the
                          driver have the machine for themselves */
#define _GNU_SOURCE
#include "npuprof.h"
#include "npuprof_npu.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>

enum { US = 1000, PES = 4, SLOTS = 8, MOST = 4096, DISPATCH_NS = 10 * US, FINISH_US = 300, POLL_NS = 500 * US,
       THREADS = 3, URGENT = 40, INTERRUPT = 50, LOAD_PCT = 90, STRAGGLER_PCT = 170, WORK_PCT = 60 };

/* As the device writes it into its ring. */
struct record { uint64_t job, start, end, pe; };
struct job { struct record record; sem_t done; };

struct engine {
    pthread_mutex_t lock;
    int timer;
    int64_t free_ns;                     /* when all that it was given is done */
    struct job *queue[SLOTS];
    unsigned put, taken;
};

struct style {
    const char *name;
    void (*serve)(unsigned thread, unsigned i);      /* an inference, but for its end */
    void (*wait)(struct job *job);       /* NULL: inside the block */
    unsigned threads, pes;
    bool is_sampled, is_open;
};

static struct { long inferences, device_us, prepare_us, device, prepare, cpu_ns, urgent, busy; } asked = {
    60, 4000, 1000, 100, 100, 0, 0, 0 };
static const struct style *style;
static npuprof_npu npu;
static struct engine engines[PES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t requests;
static int64_t begins[MOST], ends[MOST];

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

/* The device's counter: 100 ticks a microsecond. */
static uint64_t read_ticks(void *unused)
{
    (void)unused;
    return (uint64_t)now_ns() / 10;
}

static struct timespec as_time(int64_t ns)
{
    return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}

/* A number in [0, 1) for a purpose: a changed run draws the same. */
static double drawn(unsigned what, unsigned i)
{
    uint64_t x = ((uint64_t)what << 32 | i) + 0x9E3779B97F4A7C15u;
    for (int n = 0; n < 3; n++) x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
    return (double)(x >> 11) / (double)(UINT64_C(1) << 53);
}

/* Where it is allowed: an interrupt and a client do not wait for a CPU. */
static void be_urgent(int priority)
{
    const struct sched_param first = { .sched_priority = priority };
    pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
}

/* ---- The device */

static void arm(const struct engine *engine, const struct job *job)
{
    const struct itimerspec until = { .it_value = as_time((int64_t)job->record.end * 10) };
    timerfd_settime(engine->timer, TFD_TIMER_ABSTIME, &until, NULL);
}

/* The interrupt of a job that is done. */
static void *interrupts(void *of)
{
    struct engine *const engine = of;
    uint64_t count;
    be_urgent(INTERRUPT);
    while (read(engine->timer, &count, sizeof count) == sizeof count) {
        pthread_mutex_lock(&engine->lock);
        struct job *const job = engine->queue[engine->taken++ % SLOTS];
        if (engine->taken != engine->put) arm(engine, engine->queue[engine->taken % SLOTS]);
        pthread_mutex_unlock(&engine->lock);
        sem_post(&job->done);
    }
    return NULL;
}

static int64_t length_ns(unsigned pe, unsigned i)
{
    const bool slow = pe == THREADS - 1 && !strcmp(style->name, "barrier");
    const double us = (double)(asked.device_us * asked.device) / 100 * (0.95 + 0.1 * drawn(pe, i));
    return (int64_t)(us * US) * (slow ? STRAGGLER_PCT : 100) / 100;
}

/* The doorbell: from here on the device is on its own. */
static void start(struct job *job, unsigned pe, unsigned i)
{
    struct engine *const engine = &engines[pe];
    pthread_mutex_lock(&engine->lock);
    const int64_t now = now_ns() + DISPATCH_NS, begin = now > engine->free_ns ? now : engine->free_ns;
    engine->free_ns = begin + length_ns(pe, i);
    job->record.pe = pe;
    job->record.start = (uint64_t)begin / 10;
    job->record.end = (uint64_t)engine->free_ns / 10;
    engine->queue[engine->put++ % SLOTS] = job;
    if (engine->put - engine->taken == 1) arm(engine, job);
    pthread_mutex_unlock(&engine->lock);
}

static void plug_in(void)
{
    for (unsigned pe = 0; pe < PES; pe++) {
        pthread_t thread;
        pthread_mutex_init(&engines[pe].lock, NULL);
        engines[pe].timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
        pthread_create(&thread, NULL, interrupts, &engines[pe]);
    }
}

/* ---- The driver */

/* Why CPU time: what a thread loses to others is not its work. */
static void work(long us)
{
    const int64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + us * US;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until) continue;
}

static void sleep_until(int64_t ns)
{
    const struct timespec until = as_time(ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) continue;
}

static void prepare(void)
{
    PROF_SCOPE("prepare");
    work(asked.prepare_us * asked.prepare / 100);
}

static void wait_for(struct job *job) { while (sem_wait(&job->done) != 0) continue; }

static void submit(struct job *job, unsigned pe, unsigned i)
{
    sem_init(&job->done, 0, 0);
    WITH_NPU_PROFILER(&npu, pe, "kernel", "NPU", PROF_NO_ARGS, {
        job->record.job = npuprof_npu_job(&npu);
        start(job, pe, i);
        if (!style->wait) wait_for(job);
    });
}

/* Hands the record over to the library. */
static void reap(struct job *job)
{
    sem_destroy(&job->done);
    if (style->is_sampled) return;
    const npuprof_result result = npuprof_npu_feed(&npu, 0, &job->record, sizeof job->record);
    if (result != NPUPROF_OK) fprintf(stderr, "feed: %s\n", npuprof_result_string(result));
}

/* ---- Ways to wait */

static void marked(struct job *job)
{
    PROF_WAIT("driver", "wait");
    wait_for(job);
}

static void in_ioctl(struct job *job)
{
    PROF_SCOPE("ioctl");
    wait_for(job);
}

static void works_then_waits(struct job *job)
{
    PROF_SCOPE("step");
    work(asked.device_us * WORK_PCT / 100);
    wait_for(job);
}

static void spins(struct job *job)
{
    PROF_SCOPE("spin");
    while (sem_trywait(&job->done) != 0) continue;
}

static void polls(struct job *job)
{
    PROF_SCOPE("poll");
    while (sem_trywait(&job->done) != 0) sleep_until(now_ns() + POLL_NS);
}

/* ---- Inferences */

static void use_device(unsigned thread, unsigned i)
{
    struct job job;
    submit(&job, thread, i);
    if (style->wait) style->wait(&job);
    reap(&job);
}

static void alone(unsigned thread, unsigned i)
{
    prepare();
    use_device(thread, i);
}

static void behind_a_lock(unsigned thread, unsigned i)
{
    {
        PROF_SCOPE("lock");
        pthread_mutex_lock(&lock);
    }
    prepare();
    pthread_mutex_unlock(&lock);
    use_device(thread, i);
}

static void behind_a_hidden_lock(unsigned thread, unsigned i)
{
    {
        PROF_SCOPE("prepare");
        pthread_mutex_lock(&lock);
        work(asked.prepare_us * asked.prepare / 100);
        pthread_mutex_unlock(&lock);
    }
    use_device(thread, i);
}

static void feeds(unsigned thread, unsigned i)
{
    struct job jobs[PES];
    (void)thread;
    for (unsigned pe = 0; pe < PES; pe++) {
        prepare();
        submit(&jobs[pe], pe, i);
    }
    for (unsigned pe = 0; pe < PES; pe++) {
        style->wait(&jobs[pe]);
        reap(&jobs[pe]);
    }
}

static void meets(unsigned thread, unsigned i)
{
    alone(thread, i);
    PROF_SCOPE("barrier");
    pthread_barrier_wait(&barrier);
}

static const struct style styles[] = {
    { "no-span", alone, wait_for, 1, 1, false, false },
    { "marked", alone, marked, 1, 1, false, false },
    { "ioctl", alone, in_ioctl, 1, 1, false, false },
    { "block", alone, NULL, 1, 1, false, false },
    { "sampled", alone, NULL, 1, 1, true, false },
    { "works-then-waits", alone, works_then_waits, 1, 1, false, false },
    { "spin", alone, spins, 1, 1, false, false },
    { "poll", alone, polls, 1, 1, false, false },
    { "lock", behind_a_lock, marked, THREADS, THREADS, false, false },
    { "hidden-lock", behind_a_hidden_lock, marked, THREADS, THREADS, false, false },
    { "feeder", feeds, marked, 1, PES, false, false },
    { "barrier", meets, marked, THREADS, THREADS, false, false },
    { "open-loop", alone, marked, 1, 1, false, true },
};

/* ---- The run */

/* Why a session: Linux shares the CPUs among sessions first, and this one is to have nearly all. */
static void load_the_machine(void)
{
    FILE *const share = setsid() < 0 ? NULL : fopen("/proc/self/autogroup", "w");
    if (share) {
        fputs("-20", share);
        fclose(share);
    }
    for (long i = 0; i < asked.busy; i++) {
        if (fork() != 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile bool forever = true; forever;) continue;
    }
}

static void *client(void *unused)
{
    const double each = (double)(asked.device_us + asked.prepare_us + FINISH_US) * US * 100 / LOAD_PCT;
    int64_t next = now_ns();
    (void)unused;
    be_urgent(INTERRUPT);
    PROF_THREAD_NAME("client");
    for (unsigned i = 0; i < asked.inferences; i++) {
        sleep_until(next);
        {
            PROF_SCOPE("send");
            PROF_FLOW_OUT(i + 1);
            sem_post(&requests);
        }
        next += (int64_t)(each * 2 * drawn(PES, i));
    }
    return NULL;
}

static void infer(unsigned thread, unsigned i)
{
    if (style->is_open) while (sem_wait(&requests) != 0) continue;
    begins[i] = now_ns();
    {
        PROF_INFERENCE("Inference");
        if (style->is_open) PROF_FLOW_IN(i + 1);
        style->serve(thread, i);
        PROF_SCOPE("finish");
        work(FINISH_US);
    }
    ends[i] = now_ns();
}

static void *server(void *number)
{
    const unsigned thread = (unsigned)(uintptr_t)number;
    if (asked.urgent) be_urgent(URGENT);
    for (unsigned i = thread; i < asked.inferences; i += style->threads) infer(thread, i);
    return NULL;
}

static void run(void)
{
    pthread_t threads[THREADS], of_client;
    pthread_barrier_init(&barrier, NULL, style->threads);
    sem_init(&requests, 0, 0);
    if (style->is_open) pthread_create(&of_client, NULL, client, NULL);
    for (uintptr_t n = 0; n < style->threads; n++) pthread_create(&threads[n], NULL, server, (void *)n);
    for (unsigned n = 0; n < style->threads; n++) pthread_join(threads[n], NULL);
    if (style->is_open) pthread_join(of_client, NULL);
}

static npuprof_result plugged_in(void)
{
    npuprof_npu_desc desc = { .name = "npu", .read_ticks = read_ticks, .pe_count = style->pes,
                              .cpu_ns = asked.cpu_ns != 0 };
    desc.counter.hz = 100000000;
    if (!style->is_sampled)
        desc.ring = (npuprof_npu_ring){
            .feed = true, .entry_bytes = sizeof(struct record), .job = { .offset = 0, .width_bytes = 8 },
            .start = { .offset = 8, .width_bytes = 8 }, .end = { .offset = 16, .width_bytes = 8 },
            .pe = { .offset = 24, .width_bytes = 8 } };
    plug_in();
    return npuprof_npu_open(&npu, &desc);
}

static void print(void)
{
    int64_t first = begins[0], last = ends[0];
    for (long i = 1; i < asked.inferences; i++) {
        if (begins[i] < first) first = begins[i];
        if (ends[i] > last) last = ends[i];
    }
    printf("%lld\n", (long long)(last - first));
    for (long i = 0; i < asked.inferences; i++) printf("%lld\n", (long long)(ends[i] - begins[i]));
}

static bool take(const char *word)
{
    static const struct { const char *key; long *value; } keys[] = {
        { "inferences", &asked.inferences }, { "device_us", &asked.device_us },
        { "prepare_us", &asked.prepare_us }, { "device", &asked.device }, { "prepare", &asked.prepare },
        { "cpu_ns", &asked.cpu_ns }, { "urgent", &asked.urgent }, { "busy", &asked.busy } };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const size_t length = strlen(keys[i].key);
        if (strncmp(word, keys[i].key, length) || word[length] != '=') continue;
        *keys[i].value = atol(word + length + 1);
        return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    bool good = argc > 2;
    for (int i = 3; i < argc; i++) good = take(argv[i]) && good;
    for (size_t i = 0; good && i < sizeof styles / sizeof *styles; i++)
        if (!strcmp(argv[2], styles[i].name)) style = &styles[i];
    if (!style || asked.inferences < 1 || asked.inferences > MOST) return 2;
    if (asked.busy) load_the_machine();
    npuprof_start(1);
    const npuprof_result result = plugged_in();
    if (result != NPUPROF_OK) {
        fprintf(stderr, "%s\n", npuprof_result_string(result));
        return 3;
    }
    run();
    npuprof_npu_close(&npu);
    print();
    return npuprof_dump(argv[1]) == NPUPROF_OK ? 0 : 4;
}

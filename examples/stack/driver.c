/* driver.c: a user-mode driver of npusim, as a shared library in C.
 * SPDX-License-Identifier: MIT
 *
 * It has one thread. That thread takes jobs from a queue, gives them to the device, and hands them back when
 * they have ended. The lines with PROF_ and npuprof_ are all the profiling. NPUPROF_IMPLEMENTATION is not
 * here: this library is linked with libnpuprof.so, which holds the recorder for all layers.
 */
#define _GNU_SOURCE 1
#include "npuprof.h"
#include "npuprof_npu.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../digits/npusim.h"
#include "driver.h"

enum { SLOTS = 16, BUFFER_BYTES = 4096, POLL_NS = 20000, JOBS_OF_AN_ANCHOR = 8 };
static const int64_t LIMIT_NS = INT64_C(5000000000);        /* of the device to start, and to end a command */

extern char **environ;

static uint8_t *bar;
static char bar_path[64];
static pid_t simulator_pid;
static unsigned pe_count;
static npuprof_npu npu;

/* The network in the device's memory, and where the buffers of the slots begin. */
static struct { uint32_t inputs, outputs, buffers; } network;

/* What runs. Only the driver's thread knows it. */
static struct { driver_job *job; npusim_command *command; int64_t limit_ns; } slots[SLOTS];
static uint32_t submitted, running;

/* What waits for a slot. `mutex` guards it. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    driver_job *first, **end;
    bool closing;
} queue = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static pthread_t thread;
static bool has_thread;
static void (*job_done)(driver_job *);

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_ns(long ns) { nanosleep(&(struct timespec){.tv_nsec = ns}, NULL); }

static uint32_t *reg(size_t offset) { return (uint32_t *)(void *)(bar + offset); }

static uint32_t reg_read(size_t offset) { return __atomic_load_n(reg(offset), __ATOMIC_ACQUIRE); }

static void reg_ring(size_t offset, uint32_t value)
{
    __atomic_store_n(reg(offset), value, __ATOMIC_RELEASE);
    syscall(SYS_futex, reg(offset), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- jobs: the driver's thread ---------------------------------------------------------------- */

static uint32_t buffer_of(unsigned slot) { return network.buffers + slot * BUFFER_BYTES; }

static void submit(unsigned slot, driver_job *job)
{
    const unsigned pe = submitted++ % pe_count;
    PROF_NPU_SCOPE(&npu, pe, "submit", "driver", PROF_ARGS(PROF_ARG("slot", slot)));
    PROF_FLOW_IN(job->arrow);
    npusim_command *queued = (npusim_command *)(void *)(bar + NPUSIM_QUEUES_OFFSET) + pe * NPUSIM_QUEUE_SLOTS;
    const uint32_t count = reg_read(NPUSIM_DOORBELL_0_OFFSET + 4 * pe);

    memcpy(bar + buffer_of(slot), job->input, network.inputs);
    slots[slot].job = job;
    slots[slot].command = &queued[count % NPUSIM_QUEUE_SLOTS];
    slots[slot].limit_ns = now_ns() + LIMIT_NS;
    *slots[slot].command = (npusim_command){
        .job = npuprof_npu_job(&npu),
        .program = NPUSIM_MEMORY_OFFSET, .instruction_count = 1,
        .input = buffer_of(slot), .input_bytes = network.inputs,
        .output = buffer_of(slot) + network.inputs, .output_bytes = network.outputs};
    reg_ring(NPUSIM_DOORBELL_0_OFFSET + 4 * pe, count + 1);
    running++;
}
_Static_assert((int)SLOTS <= (int)NPUSIM_QUEUE_SLOTS, "a queue of the device is never full");

static void complete(unsigned slot, bool good)
{
    PROF_SCOPE_CAT("driver", "complete");
    driver_job *const job = slots[slot].job;
    slots[slot].job = NULL;
    running--;
    job->failed = !good;
    memcpy(job->output, bar + buffer_of(slot) + network.inputs, network.outputs);
    npuprof_npu_drain(&npu);        /* after each job: the device's spans so far become the timeline's */
    if (submitted % JOBS_OF_AN_ANCHOR == 0) npuprof_npu_sync(&npu);
    job_done(job);
}

static void complete_all(void)
{
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        if (!slots[slot].job)
            continue;
        const uint32_t state = __atomic_load_n(&slots[slot].command->state, __ATOMIC_ACQUIRE);
        if (state != NPUSIM_PENDING || now_ns() > slots[slot].limit_ns)
            complete(slot, state == NPUSIM_DONE);
    }
}

static unsigned free_slot(void)
{
    unsigned slot = 0;
    while (slots[slot].job)
        slot++;
    return slot;
}

static void *work(void *unused)
{
    (void)unused;
    PROF_THREAD_NAME("driver (C)");
    prctl(PR_SET_TIMERSLACK, 1);
    pthread_mutex_lock(&queue.mutex);
    while (queue.first || running || !queue.closing) {
        driver_job *job = running < SLOTS ? queue.first : NULL;
        if (!job && !running) {
            pthread_cond_wait(&queue.filled, &queue.mutex);
            continue;
        }
        if (job && !(queue.first = job->next))
            queue.end = &queue.first;
        pthread_mutex_unlock(&queue.mutex);
        if (job)
            submit(free_slot(), job);
        else
            sleep_ns(POLL_NS);
        complete_all();
        pthread_mutex_lock(&queue.mutex);
    }
    pthread_mutex_unlock(&queue.mutex);
    return NULL;
}

void driver_submit(driver_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&queue.mutex);
    *queue.end = job;
    queue.end = &job->next;
    pthread_cond_signal(&queue.filled);
    pthread_mutex_unlock(&queue.mutex);
}

/* ---- the device ------------------------------------------------------------------------------- */

static const char *start_simulator(const char *simulator)
{
    const int file = memfd_create("npusim-bar", 0);     /* the simulator inherits it */
    if (file < 0 || ftruncate(file, NPUSIM_BAR_BYTES) != 0) return "cannot create the BAR file";
    void *const mapping = mmap(NULL, NPUSIM_BAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapping == MAP_FAILED) return "cannot map the BAR";
    bar = mapping;
    snprintf(bar_path, sizeof bar_path, "/proc/self/fd/%d", file);
    char *arguments[] = {(char *)(uintptr_t)simulator, (char *)(uintptr_t)"--bar", bar_path, NULL};
    if (posix_spawn(&simulator_pid, simulator, NULL, NULL, arguments, environ) != 0) {
        simulator_pid = 0;
        return "cannot start the simulated NPU: run `make demo` to build it";
    }
    const int64_t limit_ns = now_ns() + LIMIT_NS;
    uint32_t status = 0;
    while ((status & NPUSIM_STATUS_STATE_MASK) >> NPUSIM_STATUS_STATE_POS != NPUSIM_STATUS_STATE_READY) {
        if (now_ns() > limit_ns || waitpid(simulator_pid, NULL, WNOHANG) != 0)
            return "the simulated NPU did not become ready";
        sleep_ns(200000);
        status = reg_read(NPUSIM_STATUS_OFFSET);
    }
    pe_count = (status & NPUSIM_STATUS_PE_COUNT_MASK) >> NPUSIM_STATUS_PE_COUNT_POS;
    if (reg_read(NPUSIM_ID_OFFSET) != NPUSIM_ID_VALUE || pe_count == 0 || pe_count > NPUSIM_QUEUES_MAX)
        return "unknown device: ID or STATUS is not npusim's";
    return NULL;
}

const char *driver_open(const char *simulator, void (*done)(driver_job *))
{
    PROF_SCOPE_CAT("driver", "driver_open");
    const char *wrong = start_simulator(simulator);
    if (wrong) return wrong;

    npuprof_npu_desc desc = npusim_npu_desc();
    desc.resource = bar_path;           /* npuprof maps it for itself, read-only */
    desc.pe_count = pe_count;
    const npuprof_result result = npuprof_npu_open(&npu, &desc);
    if (result != NPUPROF_OK) return npuprof_result_string(result);

    job_done = done;
    queue.end = &queue.first;
    queue.closing = false;
    has_thread = pthread_create(&thread, NULL, work, NULL) == 0;
    return has_thread ? NULL : "cannot start the driver's thread";
}

const char *driver_load(const int8_t *weights, const int32_t *channels, unsigned inputs, unsigned outputs)
{
    PROF_SCOPE_CAT("driver", "driver_load");
    if (inputs == 0 || outputs == 0 || inputs % NPUSIM_LANES || outputs % NPUSIM_LANES
        || inputs + outputs > BUFFER_BYTES)
        return "inputs and outputs must be multiples of 4, 4096 in all";
    const uint32_t table = outputs * 12u, bytes = table + inputs * outputs;
    if (bytes > NPUSIM_PARAMETER_BYTES) return "the weights do not fit into the device";
    const uint32_t parameters = NPUSIM_MEMORY_OFFSET + 64;
    *(npusim_instruction *)(void *)(bar + NPUSIM_MEMORY_OFFSET) = (npusim_instruction){
        .op = NPUSIM_OP_FULLY_CONNECTED, .to = NPUSIM_SCRATCH_BYTES / 2,
        .parameters = parameters, .parameter_bytes = bytes,
        .height = 1, .width = 1, .channels = (uint16_t)inputs, .out_channels = (uint16_t)outputs};
    memcpy(bar + parameters, channels, table);
    memcpy(bar + parameters + table, weights, (size_t)inputs * outputs);
    network.inputs = inputs;
    network.outputs = outputs;
    network.buffers = NPUSIM_MEMORY_OFFSET + 64 + NPUSIM_PARAMETER_BYTES;
    PROF_MEMORY(&npu.device, 0, NPUSIM_BAR_BYTES - NPUSIM_MEMORY_OFFSET, "memory window");
    PROF_ALLOC(&npu.device, bytes, "network");
    return NULL;
}

void driver_close(void)
{
    PROF_SCOPE_CAT("driver", "driver_close");
    if (has_thread) {
        pthread_mutex_lock(&queue.mutex);
        queue.closing = true;
        pthread_cond_signal(&queue.filled);
        pthread_mutex_unlock(&queue.mutex);
        pthread_join(thread, NULL);
        has_thread = false;
        npuprof_npu_close(&npu);
    }
    if (simulator_pid) {
        kill(simulator_pid, SIGTERM);
        waitpid(simulator_pid, NULL, 0);
        simulator_pid = 0;
    }
}

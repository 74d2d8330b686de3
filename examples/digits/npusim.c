/* npusim.c: a process that plays an NPU behind a BAR.
 * SPDX-License-Identifier: MIT
 *
 *     npusim --bar FILE [options]     (npusim --help)
 *
 * The BAR is a shared file. Behind it are several processing elements (PEs) that work at the same time,
 * each with a DMA engine, a vector engine (pad, reshape) and a matrix engine (convolutions, fully
 * connected). The operators are really computed; how long they take is a model, so that a PE that is
 * asleep on a busy host still shows the timing of a device. No result is visible before its modelled end.
 *
 * CLOCK. With `now` of CLOCK_MONOTONIC in ns, everywhere in this file and exactly, in integers:
 *
 *     ticks(now) = start_ticks + floor((now - origin_ns) * rate_millihertz / 10^12)
 *
 * Stamps in completion records come from this formula. A thread updates the two counter words in the BAR.
 * The host may preempt it, so it logs each time it did not update them for longer than --stall-ns. A PE
 * shows no record before they have passed its stamps, as in a device whose stamps are read from the counter.
 *
 * TRUTH FILE (--truth FILE), written at the end, key=value lines: origin_ns, start_ticks,
 * rate_millihertz (the formula's numbers), drift_ppm (already in the rate), nominal_hz, end_ns,
 * stall_ns (the threshold), stalls, stalls_lost (not logged, the log was full), and one
 * `stall=from_ns,to_ns` for each stall.
 *
 * It ends on CONTROL.STOP, on SIGTERM and SIGINT, and when the process that started it is gone.
 */
#define _GNU_SOURCE 1

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "int8_ops.h"
#include "npusim.h"

__extension__ typedef unsigned __int128 uint128;

typedef struct stall { int64_t from_ns, to_ns; } stall;

enum { STALLS_MAX = 1 << 18, LONGEST_WAIT_NS = 10000000 };

static struct {
    const char *bar_path, *truth_path;
    double rate_hz, drift_ppm, slower, dma, vector, matrix;
    uint64_t start_ticks;
    int64_t stall_ns;
    unsigned pe_count;
} options = {
    .rate_hz = 25003000, .drift_ppm = 7, .slower = 1, .dma = 1, .vector = 1, .matrix = 1,
    /* Why: the low word then wraps 80 ms after the start, in the middle of the traced part. */
    .start_ticks = (UINT64_C(1) << 32) - 2000000,
    .stall_ns = 250, .pe_count = 4,
};

static uint8_t *bar;
static int64_t origin_ns;
static uint64_t rate_millihertz;
static bool stopping;                   /* set once, by the main thread */
static bool counting;                   /* set once, by the counter thread */
static volatile sig_atomic_t signalled;

static stall *stalls;
static size_t stall_count, stalls_lost;

static pthread_mutex_t ring_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t ring_head;             /* under ring_mutex */

/* ---- clock and registers ---------------------------------------------------------------------- */

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t ticks_at(int64_t ns)
{
    const uint128 product = (uint128)(uint64_t)(ns - origin_ns) * rate_millihertz;
    return options.start_ticks + (uint64_t)(product / 1000000000000u);
}

static void sleep_until(int64_t ns)
{
    struct timespec when = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
        ;
}

static uint32_t *reg(size_t offset) { return (uint32_t *)(void *)(bar + offset); }

static void reg_write(size_t offset, uint32_t value)
{
    __atomic_store_n(reg(offset), value, __ATOMIC_RELEASE);
}

static uint32_t reg_read(size_t offset) { return __atomic_load_n(reg(offset), __ATOMIC_ACQUIRE); }

/* Waits until the register differs from `seen`, at most LONGEST_WAIT_NS. The writer may wake us. */
static void reg_wait(size_t offset, uint32_t seen)
{
    struct timespec limit = {.tv_nsec = LONGEST_WAIT_NS};
    syscall(SYS_futex, reg(offset), FUTEX_WAIT, seen, &limit, NULL, 0);
}

static void status_write(uint32_t state)
{
    reg_write(NPUSIM_STATUS_OFFSET,
              state << NPUSIM_STATUS_STATE_POS | options.pe_count << NPUSIM_STATUS_PE_COUNT_POS);
}

/* Does a real-time thread make sense here? On a single CPU it would keep all others from working. */
static bool has_spare_cpu(void)
{
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) > 1;
}

/* Makes the calling thread a real-time or an ordinary one. Returns false if that is not allowed. */
static bool set_real_time(bool real_time)
{
    struct sched_param priority = {.sched_priority = real_time ? 1 : 0};
    return pthread_setschedparam(pthread_self(), real_time ? SCHED_FIFO : SCHED_OTHER, &priority) == 0;
}

/* Updates the counter words until the end.
 * Why one store for both: in a device they change at one clock edge. Between two stores even a correct
 * hi-lo-hi reader would see 2^32 too much or too little. Readers still read two words. */
static void *counter_main(void *unused)
{
    (void)unused;
    uint64_t *words = (uint64_t *)(void *)(bar + NPUSIM_TICKS_LO_OFFSET);
    /* Why real-time: so that a busy host stalls the counter less. Why not all the time: Linux stops a
       real-time thread that takes more than 95 % of a second. */
    bool may_hurry = has_spare_cpu(), hurries = false;
    int64_t last_ns = now_ns(), change_ns = last_ns;
    while (!__atomic_load_n(&stopping, __ATOMIC_RELAXED)) {
        int64_t ns = now_ns();
        __atomic_store_n(words, ticks_at(ns), __ATOMIC_RELEASE);
        if (ns - last_ns > options.stall_ns) {
            if (stall_count < STALLS_MAX)
                stalls[stall_count++] = (stall){last_ns, ns};
            else
                stalls_lost++;
        }
        last_ns = ns;
        if (may_hurry && ns >= change_ns) {
            hurries = !hurries;
            may_hurry = set_real_time(hurries);
            change_ns = ns + (hurries ? 880000000 : 60000000);
        }
        __atomic_store_n(&counting, true, __ATOMIC_RELEASE);
    }
    return NULL;
}

_Static_assert(NPUSIM_TICKS_HI_OFFSET == NPUSIM_TICKS_LO_OFFSET + 4 && NPUSIM_TICKS_LO_OFFSET % 8 == 0,
               "the counter words are one aligned 64-bit word");
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "npusim.c: the simulator needs a little-endian host"
#endif

/* ---- a processing element --------------------------------------------------------------------- */

typedef struct phase { npusim_completion record; int64_t start_ns, end_ns; } phase;

typedef struct pe {
    pthread_t thread;
    unsigned index;
    uint32_t executions;
    phase phases[2 * NPUSIM_INSTRUCTIONS_MAX + 4];
    size_t phase_count;
    _Alignas(16) int8_t scratch[NPUSIM_SCRATCH_BYTES];
    _Alignas(16) uint8_t banks[2][NPUSIM_PARAMETER_BYTES];
} pe;

static pe pes[NPUSIM_QUEUES_MAX];

/* How long things take in the model. Slow enough for two CPUs to do the work of four PEs meanwhile. */
static int64_t modelled_ns(double ns, double engine) { return (int64_t)(ns * engine * options.slower); }
static int64_t dma_ns(size_t bytes) { return modelled_ns(3000 + 10.0 * (double)bytes, options.dma); }
static int64_t vector_ns(size_t bytes) { return modelled_ns(1000 + 16.0 * (double)bytes, options.vector); }
static int64_t matrix_ns(double products) { return modelled_ns(2000 + 2 * products, options.matrix); }
static int64_t latest(int64_t a, int64_t b) { return a > b ? a : b; }

/* Waits until the counter words have passed `ticks`, or the device stops.
 * Why it sleeps: a PE may be a real-time thread, and the counter's thread an ordinary one. */
static void wait_for_counter(uint64_t ticks)
{
    const uint64_t *const words = (const uint64_t *)(void *)(bar + NPUSIM_TICKS_LO_OFFSET);
    while ((int64_t)(ticks - __atomic_load_n(words, __ATOMIC_ACQUIRE)) > 0 &&
           !__atomic_load_n(&stopping, __ATOMIC_RELAXED))
        sleep_until(now_ns() + 5000);
}

static void push_completion(const npusim_completion *completion)
{
    wait_for_counter(completion->end);
    pthread_mutex_lock(&ring_mutex);
    npusim_completion *ring = (npusim_completion *)(void *)(bar + NPUSIM_RING_OFFSET);
    npusim_completion *entry = ring + ring_head % NPUSIM_RING_COUNT;
    /* Why: a reader that is a whole ring behind must not take a half-written entry for the old one. */
    (void)__atomic_exchange_n(&entry->sequence, ~ring_head, __ATOMIC_ACQUIRE);
    memcpy((uint8_t *)entry + sizeof entry->sequence, (const uint8_t *)completion + sizeof entry->sequence,
           sizeof *entry - sizeof entry->sequence);
    __atomic_store_n(&entry->sequence, ring_head, __ATOMIC_RELEASE);
    reg_write(NPUSIM_RING_HEAD_OFFSET, ++ring_head);
    pthread_mutex_unlock(&ring_mutex);
}

static void add_phase(pe *self, uint32_t op, uint32_t instruction, int64_t start_ns, int64_t end_ns)
{
    self->phases[self->phase_count++] = (phase){
        .record = {.op = (uint16_t)op, .instruction = instruction,
                   .start = ticks_at(start_ns), .end = ticks_at(end_ns)},
        .start_ns = start_ns, .end_ns = end_ns};
}

static bool inside(uint32_t offset, uint64_t bytes, uint32_t limit)
{
    return offset <= limit && bytes <= limit - offset;
}

static bool in_memory(uint32_t address, uint64_t bytes)
{
    return address >= NPUSIM_MEMORY_OFFSET && address % 4 == 0 && inside(address, bytes, NPUSIM_BAR_BYTES);
}

static size_t table_bytes(const npusim_instruction *i) { return i->out_channels * sizeof(int8_channel); }

static int8_shape in_shape(const npusim_instruction *i)
{
    return (int8_shape){i->height, i->width, i->channels};
}

/* The shape of the result and the bytes of weights it must have. False if the instruction makes no sense. */
static bool result_of(const npusim_instruction *i, int8_shape *out, uint64_t *weight_bytes)
{
    uint64_t taps = (uint64_t)i->kernel * i->kernel;
    bool slides = i->kernel > 0 && i->stride > 0 && i->kernel <= i->height && i->kernel <= i->width;
    *out = in_shape(i);
    *weight_bytes = 0;
    if (i->height == 0 || i->width == 0 || i->channels == 0 || i->channels % NPUSIM_LANES != 0
        || i->out_channels % NPUSIM_LANES != 0)
        return false;
    switch (i->op) {
    case NPUSIM_OP_PAD:
        *out = (int8_shape){i->height + 2u * i->pad, i->width + 2u * i->pad, i->channels};
        return true;
    case NPUSIM_OP_RESHAPE:
        *out = (int8_shape){1, 1, (unsigned)i->height * i->width * i->channels};
        return true;
    case NPUSIM_OP_CONV2D:
        *weight_bytes = taps * i->channels * i->out_channels;
        break;
    case NPUSIM_OP_DEPTHWISE_CONV2D:
        *weight_bytes = taps * i->channels;
        slides = slides && i->out_channels == i->channels;
        break;
    case NPUSIM_OP_FULLY_CONNECTED:
        *weight_bytes = (uint64_t)int8_bytes(in_shape(i)) * i->out_channels;
        *out = (int8_shape){1, 1, i->out_channels};
        return i->out_channels > 0;
    default:
        return false;
    }
    if (!slides || i->out_channels == 0)
        return false;
    *out = int8_slid(in_shape(i), i->kernel, i->stride, i->out_channels);
    return true;
}

/* Does everything that a command addresses lie where it may? */
static bool command_is_valid(const npusim_command *command, npusim_instruction *program, int8_shape *last)
{
    if (command->instruction_count == 0 || command->instruction_count > NPUSIM_INSTRUCTIONS_MAX
        || !in_memory(command->program, command->instruction_count * sizeof *program)
        || !in_memory(command->input, command->input_bytes) || command->input_bytes > NPUSIM_SCRATCH_BYTES
        || !in_memory(command->output, command->output_bytes))
        return false;
    memcpy(program, bar + command->program, command->instruction_count * sizeof *program);
    for (uint32_t k = 0; k < command->instruction_count; k++) {
        const npusim_instruction *i = &program[k];
        uint64_t weight_bytes, in_bytes = (uint64_t)i->height * i->width * i->channels;
        if (in_bytes > NPUSIM_SCRATCH_BYTES || !result_of(i, last, &weight_bytes))
            return false;
        uint64_t out_bytes = (uint64_t)last->height * last->width * last->channels;
        if (!inside(i->from, in_bytes, NPUSIM_SCRATCH_BYTES)
            || !inside(i->to, out_bytes, NPUSIM_SCRATCH_BYTES)
            || (i->from < i->to + out_bytes && i->to < i->from + in_bytes)
            || i->parameter_bytes != (weight_bytes ? table_bytes(i) + weight_bytes : 0)
            || i->parameter_bytes > NPUSIM_PARAMETER_BYTES || !in_memory(i->parameters, i->parameter_bytes))
            return false;
        if (k == command->instruction_count - 1
            && !inside(i->to, command->output_bytes, NPUSIM_SCRATCH_BYTES))
            return false;
    }
    return true;
}

/* Computes one instruction. Returns how long it takes in the model. */
static int64_t compute(pe *self, const npusim_instruction *i, const uint8_t *bank)
{
    int8_shape shape = in_shape(i), out_shape;
    uint64_t weight_bytes;
    const int8_t *in = self->scratch + i->from;
    int8_t *out = self->scratch + i->to;
    const int8_channel *table = (const int8_channel *)(const void *)bank;
    const int8_t *weights = (const int8_t *)bank + table_bytes(i);
    result_of(i, &out_shape, &weight_bytes);
    double positions = (double)out_shape.height * out_shape.width;
    switch (i->op) {
    case NPUSIM_OP_PAD:
        int8_pad(in, shape, i->pad, out);
        return vector_ns(int8_bytes(out_shape));
    case NPUSIM_OP_RESHAPE:
        memcpy(out, in, int8_bytes(shape));
        return vector_ns(int8_bytes(shape));
    case NPUSIM_OP_CONV2D:
        int8_conv2d(in, shape, i->kernel, i->stride, weights, table, i->out_channels, i->relu != 0, out);
        return matrix_ns(positions * (double)weight_bytes);
    case NPUSIM_OP_DEPTHWISE_CONV2D:        /* uses half of the multipliers */
        int8_depthwise_conv2d(in, shape, i->kernel, i->stride, weights, table, i->relu != 0, out);
        return matrix_ns(2 * positions * (double)weight_bytes);
    default:
        int8_fully_connected(in, int8_bytes(shape), weights, table, i->out_channels, out);
        return matrix_ns((double)weight_bytes);
    }
}

/* The first instruction from k on that has parameters; count if there is none. */
static uint32_t next_with_parameters(const npusim_instruction *program, uint32_t count, uint32_t k)
{
    while (k < count && program[k].parameter_bytes == 0)
        k++;
    return k;
}

/* Runs a valid program and lists its phases with the times of the model. The DMA engine loads the parameters
 * of the next layer into the second bank while the matrix engine works. The vector engine follows the matrix
 * engine row by row: it starts when half of the rows are there.
 * If the host was slower than the model, an operator ends when the host had computed it. */
static int64_t run_program(pe *self, const npusim_command *command, const npusim_instruction *program,
                           int64_t begin_ns)
{
    uint32_t count = command->instruction_count;
    int64_t bank_free_ns[2] = {begin_ns, begin_ns};  /* when the instruction before no longer needs it */
    int64_t bank_ready_ns[2] = {begin_ns, begin_ns};
    int64_t vector_free_ns = begin_ns, matrix_free_ns = begin_ns;
    unsigned bank = 0;

    memcpy(self->scratch, bar + command->input, command->input_bytes);
    int64_t dma_free_ns = begin_ns + dma_ns(command->input_bytes);
    add_phase(self, NPUSIM_OP_LOAD, 0, begin_ns, dma_free_ns);
    int64_t half_ns = dma_free_ns, ready_ns = dma_free_ns;  /* when half, and all, of the tensor is there */

    uint32_t load = next_with_parameters(program, count, 0);
    for (uint32_t k = 0; k < count; k++) {
        const npusim_instruction *i = &program[k];
        /* Load this instruction's parameters if they are the first ones, and the next ones in any case. */
        uint32_t last_load = i->parameter_bytes ? next_with_parameters(program, count, k + 1) : k;
        while (load < count && load <= last_load) {
            unsigned target = load == k ? bank : bank ^ 1u;
            int64_t start_ns = latest(dma_free_ns, bank_free_ns[target]);
            memcpy(self->banks[target], bar + program[load].parameters, program[load].parameter_bytes);
            bank_ready_ns[target] = dma_free_ns = start_ns + dma_ns(program[load].parameter_bytes);
            add_phase(self, NPUSIM_OP_LOAD, load, start_ns, dma_free_ns);
            load = next_with_parameters(program, count, load + 1);
        }
        int64_t cost_ns = compute(self, i, self->banks[bank]);
        int64_t computed_ns = now_ns();
        if (i->op == NPUSIM_OP_PAD || i->op == NPUSIM_OP_RESHAPE) {
            int64_t start_ns = latest(vector_free_ns, half_ns);
            int64_t end_ns = latest(latest(start_ns + cost_ns, ready_ns + cost_ns / 2), computed_ns);
            add_phase(self, i->op, k, start_ns, end_ns);
            vector_free_ns = half_ns = ready_ns = end_ns;
        } else {
            int64_t start_ns = latest(latest(matrix_free_ns, ready_ns), bank_ready_ns[bank]);
            int64_t end_ns = latest(start_ns + cost_ns, computed_ns);
            add_phase(self, i->op, k, start_ns, end_ns);
            half_ns = start_ns + (end_ns - start_ns) / 2;
            matrix_free_ns = ready_ns = bank_free_ns[bank] = end_ns;
            bank ^= 1u;
        }
    }
    int64_t store_ns = latest(dma_free_ns, ready_ns);
    int64_t end_ns = store_ns + dma_ns(command->output_bytes);
    add_phase(self, NPUSIM_OP_STORE, count, store_ns, end_ns);
    return end_ns;
}

static int by_end(const void *a, const void *b)
{
    const phase *left = a, *right = b;
    return left->end_ns < right->end_ns ? -1 : left->end_ns > right->end_ns;
}

static void run_command(pe *self, npusim_command *slot)
{
    npusim_command command;
    npusim_instruction program[NPUSIM_INSTRUCTIONS_MAX];
    int8_shape result;
    int64_t begin_ns = now_ns(), end_ns = begin_ns;
    uint32_t state = NPUSIM_REFUSED;

    memcpy(&command, slot, sizeof command);
    self->phase_count = 0;
    if (command_is_valid(&command, program, &result)) {
        state = NPUSIM_DONE;
        end_ns = run_program(self, &command, program, begin_ns);
    }
    qsort(self->phases, self->phase_count, sizeof self->phases[0], by_end);
    /* Why last: it stands for the whole command, so the driver may take it for the end of all others. */
    add_phase(self, NPUSIM_OP_EXECUTION, 0, begin_ns, end_ns);
    for (size_t n = 0; n < self->phase_count; n++) {
        phase *done = &self->phases[n];
        done->record.job = command.job;
        done->record.pe = (uint8_t)self->index;
        done->record.status = state == NPUSIM_DONE ? 0 : NPUSIM_REFUSED;
        done->record.execution = self->executions;
        sleep_until(done->end_ns);
        if (done->record.op == NPUSIM_OP_STORE)
            memcpy(bar + command.output, self->scratch + program[command.instruction_count - 1].to,
                   command.output_bytes);
        push_completion(&done->record);
    }
    self->executions++;
    __atomic_store_n(&slot->state, state, __ATOMIC_RELEASE);
}

static void *pe_main(void *argument)
{
    pe *self = argument;
    size_t doorbell = NPUSIM_DOORBELL_0_OFFSET + 4 * self->index;
    npusim_command *queue =
        (npusim_command *)(void *)(bar + NPUSIM_QUEUES_OFFSET) + self->index * NPUSIM_QUEUE_SLOTS;
    uint32_t taken = 0;
    /* Why: the default timer slack of 50 us is as long as the phases. */
    prctl(PR_SET_TIMERSLACK, 1);
    if (has_spare_cpu())
        (void)set_real_time(true);
    while (!__atomic_load_n(&stopping, __ATOMIC_ACQUIRE)) {
        if (reg_read(doorbell) == taken)
            reg_wait(doorbell, taken);
        else
            run_command(self, &queue[taken++ % NPUSIM_QUEUE_SLOTS]);
    }
    return NULL;
}

/* ---- process ---------------------------------------------------------------------------------- */

static void on_signal(int number)
{
    (void)number;
    signalled = 1;
}

static int fail(const char *what, const char *path, const char *why)
{
    fprintf(stderr, "npusim: %s %s: %s\n", what, path, why);
    return 1;
}

static int map_bar(void)
{
    int file = open(options.bar_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat info;
    if (file < 0)
        return fail("cannot open", options.bar_path, strerror(errno));
    if (fstat(file, &info) != 0
        || (info.st_size < (off_t)NPUSIM_BAR_BYTES && ftruncate(file, NPUSIM_BAR_BYTES) != 0)) {
        int error = errno;
        close(file);
        return fail("cannot size", options.bar_path, strerror(error));
    }
    void *mapping = mmap(NULL, NPUSIM_BAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    int error = errno;
    close(file);
    if (mapping == MAP_FAILED)
        return fail("cannot map", options.bar_path, strerror(error));
    bar = mapping;
    return 0;
}

static int write_truth(FILE *file)
{
    fprintf(file, "origin_ns=%" PRId64 "\nstart_ticks=%" PRIu64 "\nrate_millihertz=%" PRIu64 "\n", origin_ns,
            options.start_ticks, rate_millihertz);
    fprintf(file, "drift_ppm=%.3f\nnominal_hz=25000000\n", options.drift_ppm);
    fprintf(file, "end_ns=%" PRId64 "\nstall_ns=%" PRId64 "\n", now_ns(), options.stall_ns);
    fprintf(file, "stalls=%zu\nstalls_lost=%zu\n", stall_count, stalls_lost);
    for (size_t n = 0; n < stall_count; n++)
        fprintf(file, "stall=%" PRId64 ",%" PRId64 "\n", stalls[n].from_ns, stalls[n].to_ns);
    bool bad = ferror(file) != 0;
    if (fclose(file) != 0 || bad)
        return fail("cannot write", options.truth_path, strerror(errno));
    return 0;
}

static int usage(FILE *out)
{
    fputs("usage: npusim --bar FILE [options]\n"
          "  --bar FILE       shared file that is the BAR; created and sized if it must be\n"
          "  --truth FILE     write the true clock and the counter's stalls there at the end\n"
          "  --rate HZ        true rate of the counter (25003000; the description says 25000000)\n"
          "  --drift PPM      added to the rate (7)\n"
          "  --start TICKS    first value of the counter (2^32 - 2000000)\n"
          "  --pes N          processing elements, 1 to 8 (4)\n"
          "  --slower FACTOR  multiplies all modelled durations (1)\n"
          "  --dma FACTOR     multiplies those of one engine (1); also --vector and --matrix\n"
          "  --stall-ns NS    stalls of the counter words that are longer are logged (250)\n",
          out);
    return out == stdout ? 0 : 2;
}

/* Reads a number from min to max. Says what is wrong and returns false if the text is not one. */
static bool number(const char *name, const char *text, double min, double max, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end != text && *end == '\0' && *value >= min && *value <= max)
        return true;
    fprintf(stderr, "npusim: %s needs a number from %g to %g, not \"%s\"\n", name, min, max, text);
    return false;
}

/* Returns 0 to go on, else 1 + the exit code. */
static int parse(int argc, char **argv)
{
    for (int n = 1; n < argc; n += 2) {
        const char *name = argv[n], *text = n + 1 < argc ? argv[n + 1] : NULL;
        double value = 0;
        bool good = true;
        if (strcmp(name, "--help") == 0)
            return 1 + usage(stdout);
        if (!text)
            return 1 + usage(stderr);
        if (strcmp(name, "--bar") == 0)
            options.bar_path = text;
        else if (strcmp(name, "--truth") == 0)
            options.truth_path = text;
        else if (strcmp(name, "--rate") == 0)
            good = number(name, text, 1000, 4e9, &options.rate_hz);
        else if (strcmp(name, "--drift") == 0)
            good = number(name, text, -1e5, 1e5, &options.drift_ppm);
        else if (strcmp(name, "--slower") == 0)
            good = number(name, text, 0, 1e6, &options.slower);
        else if (strcmp(name, "--dma") == 0)
            good = number(name, text, 0, 1e6, &options.dma);
        else if (strcmp(name, "--vector") == 0)
            good = number(name, text, 0, 1e6, &options.vector);
        else if (strcmp(name, "--matrix") == 0)
            good = number(name, text, 0, 1e6, &options.matrix);
        else if (strcmp(name, "--start") == 0) {
            char *end;
            options.start_ticks = strtoull(text, &end, 0);
            good = end != text && *end == '\0';
            if (!good)
                fprintf(stderr, "npusim: --start needs a whole number, not \"%s\"\n", text);
        } else if (strcmp(name, "--pes") == 0) {
            good = number(name, text, 1, NPUSIM_QUEUES_MAX, &value);
            options.pe_count = (unsigned)value;
        } else if (strcmp(name, "--stall-ns") == 0) {
            good = number(name, text, 0, 1e12, &value);
            options.stall_ns = (int64_t)value;
        } else
            return 1 + usage(stderr);
        if (!good)
            return 1 + 2;
    }
    return options.bar_path ? 0 : 1 + usage(stderr);
}

int main(int argc, char **argv)
{
    pid_t parent = getppid();
    int parsed = parse(argc, argv);
    if (parsed)
        return parsed - 1;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);

    FILE *truth = options.truth_path ? fopen(options.truth_path, "w") : NULL;
    if (options.truth_path && !truth)
        return fail("cannot write", options.truth_path, strerror(errno));
    stalls = calloc(STALLS_MAX, sizeof *stalls);
    if (!stalls)
        return fail("no memory for", "the log of stalls", strerror(errno));
    if (map_bar() != 0)
        return 1;
    rate_millihertz = (uint64_t)(options.rate_hz * (1000 + options.drift_ppm / 1000) + 0.5);
    origin_ns = now_ns();
    memset(bar, 0, NPUSIM_MEMORY_OFFSET);
    reg_write(NPUSIM_ID_OFFSET, NPUSIM_ID_VALUE);
    reg_write(NPUSIM_VERSION_OFFSET, NPUSIM_VERSION_VALUE);

    pthread_t counter;
    int error = pthread_create(&counter, NULL, counter_main, NULL);
    for (unsigned n = 0; n < options.pe_count && !error; n++) {
        pes[n].index = n;
        error = pthread_create(&pes[n].thread, NULL, pe_main, &pes[n]);
    }
    if (error)
        return fail("cannot start", "a thread", strerror(error));
    while (!__atomic_load_n(&counting, __ATOMIC_ACQUIRE))
        sched_yield();
    status_write(NPUSIM_STATUS_STATE_READY);

    while (!(reg_read(NPUSIM_CONTROL_OFFSET) & NPUSIM_CONTROL_STOP_MASK) && !signalled && getppid() == parent)
        reg_wait(NPUSIM_CONTROL_OFFSET, 0);
    __atomic_store_n(&stopping, true, __ATOMIC_RELEASE);
    for (unsigned n = 0; n < options.pe_count; n++)
        pthread_join(pes[n].thread, NULL);
    pthread_join(counter, NULL);
    status_write(NPUSIM_STATUS_STATE_STOPPED);
    return truth ? write_truth(truth) : 0;
}

/* digits.c: hand-written digits on an NPU, instrumented with npuprof.
 * SPDX-License-Identifier: MIT
 *
 *     make demo        or: digits [--images N] [--seconds S] [--output FILE] ...   (digits --help)
 *
 * This is what the author of a driver and a runtime would write. The program starts the simulated NPU
 * (npusim), maps its BAR, and loads an int8 network into the device's memory. Several threads run the
 * 500 test images through it. The lines that begin with PROF_, WITH_ and npuprof_ are all the profiling.
 *
 * It writes one timeline of host threads and PEs, and prints the tables. It checks the NPU's results
 * against the labels and, bit by bit, against the same network on the host. The host's network is
 * profiled operator by operator. Both are measured with npuprof_bench.
 */
#define _GNU_SOURCE 1
#define NPUPROF_IMPLEMENTATION
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
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "digits_images.h"
#include "digits_weights.h"
#include "int8_ops.h"
#include "npusim.h"

enum {
    CLASSES = 10,
    WARM_UP_IMAGES = 8,
    BATCH_IMAGES = 8,           /* in each batch of images that are not traced */
    HOST_ITERATIONS = 3,        /* runs of the network on the host */
    BENCH_REPEATS = 5,
    WORKERS_MAX = 32,
    START_LIMIT_MS = 5000,
    COMMAND_LIMIT_MS = 5000,
    /* The NPU works on groups of 4 channels, so the host pads 1 channel to 4 and 10 results to 12. */
    INPUT_CHANNELS = NPUSIM_LANES,
    NPU_CLASSES = (CLASSES + NPUSIM_LANES - 1) / NPUSIM_LANES * NPUSIM_LANES,
    INPUT_BYTES = DIGITS_PIXELS * INPUT_CHANNELS,
    BUFFER_BYTES = 512,         /* of one worker, in the device's memory: input, then output */
};

extern char **environ;

static struct {
    const char *output, *truth, *npusim;
    char **npusim_arguments;
    int npusim_argument_count;
    unsigned images, workers;
    double seconds;
} options = {.output = "digits.json", .images = 16, .workers = 4, .seconds = 1.5};

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_ns(int64_t ns)
{
    struct timespec pause = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    if (ns > 0)
        nanosleep(&pause, NULL);
}

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "digits: %s: %s\n", what, why);
    return 1;
}

/* ---- the driver: BAR, commands, completion ---------------------------------------------------- */

static uint8_t *bar;
static char bar_path[64];
static pid_t npusim_pid;
static unsigned pe_count;
static npuprof_npu npu;

static struct {
    pthread_mutex_t mutex;
    uint32_t count;                     /* commands put into it so far */
} queues[NPUSIM_QUEUES_MAX];

static uint32_t *reg(size_t offset) { return (uint32_t *)(void *)(bar + offset); }

static uint32_t reg_read(size_t offset) { return __atomic_load_n(reg(offset), __ATOMIC_ACQUIRE); }

static void reg_ring(size_t offset, uint32_t value)
{
    __atomic_store_n(reg(offset), value, __ATOMIC_RELEASE);
    syscall(SYS_futex, reg(offset), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Starts npusim on a new BAR and waits until it is ready. */
static int npu_start(void)
{
    int file = memfd_create("npusim-bar", 0);   /* npusim inherits it; it vanishes with the last process */
    if (file < 0 || ftruncate(file, NPUSIM_BAR_BYTES) != 0)
        return fail("cannot create the BAR file", strerror(errno));
    void *mapping = mmap(NULL, NPUSIM_BAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapping == MAP_FAILED)
        return fail("cannot map the BAR", strerror(errno));
    bar = mapping;
    snprintf(bar_path, sizeof bar_path, "/proc/self/fd/%d", file);

    char beside[PATH_MAX + 8];
    if (!options.npusim) {
        ssize_t length = readlink("/proc/self/exe", beside, PATH_MAX);
        if (length < 0)
            return fail("cannot find npusim", "no /proc/self/exe; give --npusim PATH");
        beside[length] = '\0';
        strcpy(strrchr(beside, '/') + 1, "npusim");
        options.npusim = beside;
    }
    char *arguments[64] = {(char *)(uintptr_t)options.npusim, (char *)(uintptr_t)"--bar", bar_path};
    int count = 3;
    if (options.truth) {
        arguments[count++] = (char *)(uintptr_t)"--truth";
        arguments[count++] = (char *)(uintptr_t)options.truth;
    }
    for (int n = 0; n < options.npusim_argument_count && count < 63; n++)
        arguments[count++] = options.npusim_arguments[n];
    int error = posix_spawn(&npusim_pid, options.npusim, NULL, NULL, arguments, environ);
    if (error) {
        npusim_pid = 0;
        fprintf(stderr, "digits: cannot start %s: %s\n", options.npusim, strerror(error));
        return 1;
    }
    int64_t limit_ns = monotonic_ns() + (int64_t)START_LIMIT_MS * 1000000;
    for (;;) {
        uint32_t status = reg_read(NPUSIM_STATUS_OFFSET);
        if ((status & NPUSIM_STATUS_STATE_MASK) >> NPUSIM_STATUS_STATE_POS == NPUSIM_STATUS_STATE_READY) {
            pe_count = (status & NPUSIM_STATUS_PE_COUNT_MASK) >> NPUSIM_STATUS_PE_COUNT_POS;
            break;
        }
        if (waitpid(npusim_pid, NULL, WNOHANG) == npusim_pid) {
            npusim_pid = 0;
            return fail("npusim did not start", "it ended before it was ready");
        }
        if (monotonic_ns() > limit_ns)
            return fail("npusim did not start", "not ready in time");
        sleep_ns(200000);
    }
    if (reg_read(NPUSIM_ID_OFFSET) != NPUSIM_ID_VALUE || pe_count == 0 || pe_count > NPUSIM_QUEUES_MAX)
        return fail("unknown device", "ID or STATUS is not npusim's");
    for (unsigned n = 0; n < pe_count; n++)
        pthread_mutex_init(&queues[n].mutex, NULL);
    return 0;
}

/* Ends npusim, whatever state it is in. */
static int npu_stop(void)
{
    int status = 0;
    if (npusim_pid == 0)
        return 0;
    reg_ring(NPUSIM_CONTROL_OFFSET, NPUSIM_CONTROL_STOP_MASK);
    for (unsigned n = 0; n < pe_count; n++)     /* wakes the PEs, which then see that they must end */
        syscall(SYS_futex, reg(NPUSIM_DOORBELL_0_OFFSET + 4 * n), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    int64_t limit_ns = monotonic_ns() + (int64_t)START_LIMIT_MS * 1000000;
    while (waitpid(npusim_pid, &status, WNOHANG) == 0) {
        if (monotonic_ns() > limit_ns) {
            kill(npusim_pid, SIGKILL);
            waitpid(npusim_pid, &status, 0);
            break;
        }
        sleep_ns(1000000);
    }
    npusim_pid = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return fail("npusim ended badly", WIFEXITED(status) ? "it says why above" : "killed by a signal");
    return 0;
}

/* Puts a command into a queue. Returns its slot. */
static npusim_command *npu_submit(unsigned queue, const npusim_command *command)
{
    pthread_mutex_lock(&queues[queue].mutex);
    npusim_command *slot = (npusim_command *)(void *)(bar + NPUSIM_QUEUES_OFFSET) + queue * NPUSIM_QUEUE_SLOTS
                           + queues[queue].count % NPUSIM_QUEUE_SLOTS;
    /* Why no check for a full queue: each worker has one command in it at most, and there are more slots than
       workers. */
    *slot = *command;
    reg_ring(NPUSIM_DOORBELL_0_OFFSET + 4 * queue, ++queues[queue].count);
    pthread_mutex_unlock(&queues[queue].mutex);
    return slot;
}
_Static_assert((int)WORKERS_MAX <= (int)NPUSIM_QUEUE_SLOTS, "one slot for each worker");

/* Polls until the command has ended. */
static bool npu_wait(const npusim_command *slot)
{
    int64_t limit_ns = monotonic_ns() + (int64_t)COMMAND_LIMIT_MS * 1000000;
    for (;;) {
        uint32_t state = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
        if (state != NPUSIM_PENDING)
            return state == NPUSIM_DONE;
        if (monotonic_ns() > limit_ns)
            return false;
        sleep_ns(20000);
    }
}

/* The commands that the benchmark has submitted and not yet waited for. */
static struct {
    npusim_command *slot[NPUSIM_QUEUES_MAX * NPUSIM_QUEUE_SLOTS];
    unsigned count;
} pending;

/* Waits for all of them. Drains first: that costs the device nothing. */
static int npu_wait_for_all(void *user)
{
    bool good = true;
    (void)user;
    npuprof_npu_drain(&npu);
    for (unsigned n = 0; n < pending.count; n++)
        good = npu_wait(pending.slot[n]) && good;
    pending.count = 0;
    return good ? 0 : EIO;
}

/* ---- the compiler: network to instructions ---------------------------------------------------- */

typedef struct layer {
    const char *name;
    uint32_t op;
    uint16_t height, width, channels, out_channels;  /* of the input; of the result */
    uint8_t kernel, stride;
    const int8_t *weights;
    const int8_channel *table;
} layer;

/* The network's own shapes, without the padding to groups of channels. */
static const layer network[] = {
    {"pad1", NPUSIM_OP_PAD, 8, 8, 1, 1, 0, 0, NULL, NULL},
    {"conv1", NPUSIM_OP_CONV2D, 10, 10, 1, 16, 3, 1, digits_conv1_weights, digits_conv1_channels},
    {"pad2", NPUSIM_OP_PAD, 8, 8, 16, 16, 0, 0, NULL, NULL},
    {"depthwise1", NPUSIM_OP_DEPTHWISE_CONV2D, 10, 10, 16, 16, 3, 1, digits_depthwise1_weights,
     digits_depthwise1_channels},
    {"conv2", NPUSIM_OP_CONV2D, 8, 8, 16, 24, 1, 1, digits_conv2_weights, digits_conv2_channels},
    {"pad3", NPUSIM_OP_PAD, 8, 8, 24, 24, 0, 0, NULL, NULL},
    {"depthwise2", NPUSIM_OP_DEPTHWISE_CONV2D, 10, 10, 24, 24, 3, 2, digits_depthwise2_weights,
     digits_depthwise2_channels},
    {"conv3", NPUSIM_OP_CONV2D, 4, 4, 24, 32, 1, 1, digits_conv3_weights, digits_conv3_channels},
    {"reshape", NPUSIM_OP_RESHAPE, 4, 4, 32, 32, 0, 0, NULL, NULL},
    {"dense", NPUSIM_OP_FULLY_CONNECTED, 1, 1, 512, CLASSES, 0, 0, digits_dense_weights,
     digits_dense_channels},
};
enum { LAYERS = sizeof network / sizeof network[0] };

static uint32_t buffers_address;        /* in the device's memory: BUFFER_BYTES for each worker */

/* The number of channels, rounded up to a group. */
static unsigned lanes(unsigned channels)
{
    return (channels + NPUSIM_LANES - 1) / NPUSIM_LANES * NPUSIM_LANES;
}

/* Writes the table and the weights of a layer, padded to groups of channels. Returns their size in bytes. */
static uint32_t write_parameters(const layer *l, uint8_t *to)
{
    unsigned outputs = lanes(l->out_channels);
    unsigned inputs = l->op == NPUSIM_OP_DEPTHWISE_CONV2D ? 1 : l->channels;
    unsigned padded = l->op == NPUSIM_OP_DEPTHWISE_CONV2D ? 1 : lanes(l->channels);
    unsigned taps = l->op == NPUSIM_OP_FULLY_CONNECTED ? 1u : (unsigned)l->kernel * l->kernel;
    int8_channel *table = (int8_channel *)(void *)to;
    int8_t *weights = (int8_t *)(table + outputs);
    const int8_t *source = l->weights;

    if (!l->table)
        return 0;
    memset(weights, 0, (size_t)outputs * taps * padded);
    for (unsigned c = 0; c < outputs; c++) {
        table[c] = c < l->out_channels ? l->table[c] : (int8_channel){0, 1, 1};
        for (unsigned t = 0; c < l->out_channels && t < taps; t++, source += inputs)
            memcpy(weights + ((size_t)c * taps + t) * padded, source, inputs);
    }
    return (uint32_t)(outputs * (sizeof *table + (size_t)taps * padded));
}

/* Puts the program and the parameters into the device's memory. The buffers of the workers follow behind. */
static void load_network(void)
{
    PROF_SCOPE_CAT("Runtime", "ProgramBinary");
    PROF_MEMORY(&npu.device, 0, NPUSIM_BAR_BYTES - NPUSIM_MEMORY_OFFSET, "memory window");
    npusim_instruction *program = (npusim_instruction *)(void *)(bar + NPUSIM_MEMORY_OFFSET);
    uint32_t address = NPUSIM_MEMORY_OFFSET + LAYERS * (uint32_t)sizeof *program;
    PROF_ALLOC(&npu.device, LAYERS * sizeof *program, "program");
    for (unsigned n = 0; n < LAYERS; n++) {
        const layer *l = &network[n];
        uint32_t bytes = write_parameters(l, bar + address);
        program[n] = (npusim_instruction){
            .op = l->op,
            .from = n % 4 * (NPUSIM_SCRATCH_BYTES / 4), .to = (n + 1) % 4 * (NPUSIM_SCRATCH_BYTES / 4),
            .parameters = bytes ? address : NPUSIM_MEMORY_OFFSET, .parameter_bytes = bytes,
            .height = l->height, .width = l->width,
            .channels = (uint16_t)lanes(l->channels), .out_channels = (uint16_t)lanes(l->out_channels),
            .kernel = l->kernel, .stride = l->stride, .pad = l->op == NPUSIM_OP_PAD,
            .relu = l->op == NPUSIM_OP_CONV2D || l->op == NPUSIM_OP_DEPTHWISE_CONV2D};
        if (bytes)
            PROF_ALLOC(&npu.device, bytes, l->name);
        address = (address + bytes + 63) / 64 * 64;
    }
    buffers_address = address;
    PROF_INSTANT("Runtime", "network loaded", PROF_ARGS(PROF_ARG("bytes", address - NPUSIM_MEMORY_OFFSET)));
}

static int8_shape shape_in(const layer *l) { return (int8_shape){l->height, l->width, l->channels}; }

static int8_shape shape_out(const layer *l)
{
    int8_shape in = shape_in(l);
    if (l->op == NPUSIM_OP_PAD)
        return (int8_shape){in.height + 2, in.width + 2, in.channels};
    if (l->kernel)
        return int8_slid(in, l->kernel, l->stride, l->out_channels);
    if (l->op == NPUSIM_OP_FULLY_CONNECTED)
        return (int8_shape){1, 1, l->out_channels};
    return (int8_shape){1, 1, (unsigned)int8_bytes(in)};
}

/* One layer on the host, without npusim. */
static void run_layer(const layer *l, const int8_t *in, int8_t *out)
{
    switch (l->op) {
    case NPUSIM_OP_PAD:
        int8_pad(in, shape_in(l), 1, out);
        break;
    case NPUSIM_OP_CONV2D:
        int8_conv2d(in, shape_in(l), l->kernel, l->stride, l->weights, l->table, l->out_channels, true, out);
        break;
    case NPUSIM_OP_DEPTHWISE_CONV2D:
        int8_depthwise_conv2d(in, shape_in(l), l->kernel, l->stride, l->weights, l->table, true, out);
        break;
    case NPUSIM_OP_FULLY_CONNECTED:
        int8_fully_connected(in, l->channels, l->weights, l->table, l->out_channels, out);
        break;
    default:
        memcpy(out, in, int8_bytes(shape_in(l)));
    }
}

static int8_t tensors[2][10 * 10 * 24];         /* each layer reads one of them and writes the other */

static const int8_t *layer_input(unsigned n, const int8_t *image)
{
    return n == 0 ? image : tensors[(n - 1) % 2];
}

/* The same network on the host. */
static void reference(const int8_t *image, int8_t *logits)
{
    for (unsigned n = 0; n < LAYERS; n++)
        run_layer(&network[n], layer_input(n, image), n == LAYERS - 1 ? logits : tensors[n % 2]);
}

/* What the profiler is told about a layer. The members are the keys of an operator's arguments, ne.*. */
static struct {
    const char *type, *post_op;
    char input_names[64], input_shapes[64], input_dtypes[16], output_name[24], output_shape[24];
    char weight_shape[24], attributes[48];
    double sparse_ratio;
    bool sparse_support;
} described[LAYERS];

static void print_shape(char *to, size_t bytes, int8_shape shape)
{
    if (shape.height == 1 && shape.width == 1)
        snprintf(to, bytes, "1x%u", shape.channels);
    else
        snprintf(to, bytes, "%ux%ux%u", shape.height, shape.width, shape.channels);
}

static const char *type_of(const layer *l)
{
    switch (l->op) {
    case NPUSIM_OP_PAD:
        return "Pad";
    case NPUSIM_OP_RESHAPE:
        return "Reshape";
    case NPUSIM_OP_FULLY_CONNECTED:
        return "InnerProduct";
    default:
        return "Convolution";
    }
}

/* The rest of the description, of a layer that has weights. shape: of its input. */
static void describe_weights(unsigned n, const char *from, const char *shape)
{
    const layer *l = &network[n];
    const bool dense = l->op == NPUSIM_OP_FULLY_CONNECTED, depthwise = l->op == NPUSIM_OP_DEPTHWISE_CONV2D;
    const unsigned inputs = depthwise ? 1 : l->channels, taps = dense ? 1u : (unsigned)l->kernel * l->kernel;
    const unsigned weights = l->out_channels * taps * inputs;
    char *const weight_shape = described[n].weight_shape;
    unsigned zeros = 0;
    for (unsigned w = 0; w < weights; w++)
        zeros += l->weights[w] == 0;
    described[n].sparse_ratio = (double)zeros / weights;
    described[n].sparse_support = dense && inputs % 4 == 0;         /* blocks of 4 x 1 */
    if (dense)
        snprintf(weight_shape, sizeof described[n].weight_shape, "%ux%u", inputs, l->out_channels);
    else
        snprintf(weight_shape, sizeof described[n].weight_shape, "%ux%ux%ux%u", l->out_channels, l->kernel,
                 l->kernel, inputs);
    snprintf(described[n].input_names, sizeof described[n].input_names, "%s:0;%s_weights:0;%s_bias:0", from,
             l->name, l->name);
    snprintf(described[n].input_shapes, sizeof described[n].input_shapes, "%s;%s;%u", shape, weight_shape,
             l->out_channels);
    strcpy(described[n].input_dtypes, "s8;s8;s32");
    if (l->kernel)
        snprintf(described[n].attributes, sizeof described[n].attributes, "strides:%u,%u;group:%u", l->stride,
                 l->stride, depthwise ? l->channels : 1u);
}

static void describe_network(void)
{
    for (unsigned n = 0; n < LAYERS; n++) {
        const layer *l = &network[n];
        const char *from = n == 0 ? "image" : network[n - 1].name;
        const int8_shape flat = {1, 1, l->channels};
        char shape[24];
        print_shape(shape, sizeof shape, l->op == NPUSIM_OP_FULLY_CONNECTED ? flat : shape_in(l));
        print_shape(described[n].output_shape, sizeof described[n].output_shape, shape_out(l));
        snprintf(described[n].output_name, sizeof described[n].output_name, "%s:0", l->name);
        described[n].type = type_of(l);
        described[n].post_op = l->kernel ? "relu" : "";
        snprintf(described[n].input_names, sizeof described[n].input_names, "%s:0", from);
        snprintf(described[n].input_shapes, sizeof described[n].input_shapes, "%s", shape);
        strcpy(described[n].input_dtypes, "s8");
        if (l->weights)
            describe_weights(n, from, shape);
    }
}

/* One iteration of the network on the host: a span for each operator. */
static void host_iteration(unsigned iteration, const int8_t *image, int8_t *logits)
{
    char name[24];
    snprintf(name, sizeof name, "Iteration%u", iteration);
    WITH_BASE_PROFILER(NULL, name, "iteration", PROF_NO_ARGS, {
        for (unsigned n = 0; n < LAYERS; n++) {
            const layer *l = &network[n];
            PROF_ALLOC(NULL, int8_bytes(shape_out(l)), l->name);
            WITH_BASE_PROFILER(NULL, l->name, described[n].type,
                PROF_ARGS(PROF_ARG("ne.type", described[n].type),
                          PROF_ARG("ne.post_op", described[n].post_op),
                          PROF_ARG("ne.input_names", described[n].input_names),
                          PROF_ARG("ne.input_shapes", described[n].input_shapes),
                          PROF_ARG("ne.input_dtypes", described[n].input_dtypes),
                          PROF_ARG("ne.output_names", described[n].output_name),
                          PROF_ARG("ne.output_shapes", described[n].output_shape),
                          PROF_ARG("ne.output_dtypes", "s8"),
                          PROF_ARG("ne.weight_shape", described[n].weight_shape),
                          PROF_ARG("ne.sparse_ratio", described[n].sparse_ratio),
                          PROF_ARG("ne.sparse_support", described[n].sparse_support),
                          PROF_ARG("ne.attributes", described[n].attributes), PROF_ARG("ne.reshape_ns", 0)),
                run_layer(l, layer_input(n, image), n == LAYERS - 1 ? logits : tensors[n % 2]));
            if (n > 0)
                PROF_FREE(NULL, int8_bytes(shape_out(&network[n - 1])), network[n - 1].name);
        }
        PROF_FREE(NULL, int8_bytes(shape_out(&network[LAYERS - 1])), network[LAYERS - 1].name);
    });
}

/* ---- the runtime: images to answers ----------------------------------------------------------- */

static int8_t npu_logits[DIGITS_IMAGES][CLASSES];
static char answers[DIGITS_IMAGES];

/* How a batch is recorded. */
typedef enum batch_kind { NOT_TRACED, WARM_UP, TRACED } batch_kind;

/* The batch being worked on: consecutive images. `mutex` guards all of it. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t work, done;
    batch_kind kind;
    unsigned next, end, unfinished;
    uint64_t flow;                      /* id of the arrow that leads to the next image */
    bool quit, failed;
} todo = {
    .mutex = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static void quantize(const float *pixels, int8_t *image)
{
    for (unsigned n = 0; n < DIGITS_PIXELS; n++)
        image[n] = (int8_t)(pixels[n] * DIGITS_INPUT_STEPS + 0.5f);
}

/* Converts an image from the network's layout to the device's. */
static void lower(const int8_t *image, uint8_t *buffer)
{
    memset(buffer, 0, INPUT_BYTES);
    for (unsigned n = 0; n < DIGITS_PIXELS; n++)
        buffer[n * INPUT_CHANNELS] = (uint8_t)image[n];
}

static void unlower(const uint8_t *buffer, int8_t *logits) { memcpy(logits, buffer, CLASSES); }

static unsigned dequantize(const int8_t *logits, float *scores)
{
    unsigned best = 0;
    for (unsigned n = 0; n < CLASSES; n++) {
        scores[n] = (float)logits[n] * DIGITS_LOGIT_SCALE;
        if (scores[n] > scores[best])
            best = n;
    }
    return best;
}

static void image_pixels(unsigned image, float *pixels)
{
    for (unsigned n = 0; n < DIGITS_PIXELS; n++)
        pixels[n] = (float)(digits_images[image][n] - 'A') / 16.0f;
}

/* One inference, from pixels to the answer. False if the NPU refused it or did not answer. */
static bool infer(unsigned worker, unsigned image, uint64_t flow)
{
    PROF_INFERENCE("Inference");
    PROF_FLOW_IN(flow);
    PROF_ALLOC(&npu.device, BUFFER_BYTES, "image buffer");
    unsigned queue = worker % pe_count;
    uint32_t input = buffers_address + worker * BUFFER_BYTES, output = input + INPUT_BYTES;
    npusim_command *slot = NULL;
    float pixels[DIGITS_PIXELS], scores[CLASSES];
    int8_t quantized[DIGITS_PIXELS];
    bool good;

    image_pixels(image, pixels);
    {
        PROF_OPERATOR(0, "Quantize");
        quantize(pixels, quantized);
    }
    {
        PROF_OPERATOR(1, "Lower");
        lower(quantized, bar + input);
    }
    WITH_NPU_PROFILER(&npu, queue, "Submit", "NPU",
                      PROF_ARGS(PROF_ARG("image", image), PROF_ARG("queue", queue)), {
        npusim_command command = {
            .job = npuprof_npu_job(&npu),
            .program = NPUSIM_MEMORY_OFFSET, .instruction_count = LAYERS,
            .input = input, .input_bytes = INPUT_BYTES, .output = output, .output_bytes = NPU_CLASSES};
        slot = npu_submit(queue, &command);
    });
    {
        PROF_WAIT("Runtime", "Wait");
        good = npu_wait(slot);
    }
    {
        PROF_OPERATOR(2, "Unlower");
        unlower(bar + output, npu_logits[image]);
    }
    {
        PROF_OPERATOR(3, "Dequantize");
        answers[image] = (char)('0' + dequantize(npu_logits[image], scores));
    }
    PROF_FREE(&npu.device, BUFFER_BYTES, "image buffer");
    return good;
}

/* Takes images as long as there are any. The caller holds todo.mutex. */
static void work(unsigned worker)
{
    while (todo.next != todo.end) {
        unsigned image = todo.next++;
        uint64_t flow = todo.flow++;
        PROF_COUNTER("images waiting", todo.end - todo.next);
        pthread_mutex_unlock(&todo.mutex);
        bool good = infer(worker, image, flow);
        npuprof_npu_drain(&npu);        /* after each image: the ring cannot run over on a busy host */
        pthread_mutex_lock(&todo.mutex);
        todo.failed = todo.failed || !good;
        if (--todo.unfinished == 0)
            pthread_cond_signal(&todo.done);
    }
}

static void *worker_main(void *argument)
{
    unsigned worker = *(const unsigned *)argument;
    char name[32];
    snprintf(name, sizeof name, "worker %u", worker);
    PROF_THREAD_NAME(name);
    prctl(PR_SET_TIMERSLACK, 1);
    pthread_mutex_lock(&todo.mutex);
    for (;;) {
        while (todo.next == todo.end && !todo.quit)
            pthread_cond_wait(&todo.work, &todo.mutex);
        if (todo.next == todo.end)
            break;
        /* Why here and not once in main: a record belongs to the thread that runs it. */
        if (todo.kind == WARM_UP) {
            PROF_RECORD_WARM_UP("warm up");
            work(worker);
        } else if (todo.kind == TRACED) {
            PROF_RECORD("trace");
            work(worker);
        } else {
            work(worker);
        }
    }
    pthread_mutex_unlock(&todo.mutex);
    return NULL;
}

static unsigned refused_syncs;
static npuprof_result sync_result;

static void sync_clocks(void)
{
    npuprof_result result = npuprof_npu_sync(&npu);
    if (result != NPUPROF_OK) {
        refused_syncs++;
        sync_result = result;
    }
}

/* Runs the images [first, first + count), waits for all answers, and takes a clock anchor. */
static bool run_images(batch_kind kind, unsigned first, unsigned count)
{
    pthread_mutex_lock(&todo.mutex);
    {
        PROF_SCOPE_CAT("Runtime", "Enqueue");
        for (unsigned n = 0; n < count; n++)
            PROF_FLOW_OUT(todo.flow + n);
        todo.kind = kind;
        todo.next = first;
        todo.end = first + count;
        todo.unfinished = count;
        PROF_COUNTER("images waiting", count);
        pthread_cond_broadcast(&todo.work);
    }
    while (todo.unfinished > 0)
        pthread_cond_wait(&todo.done, &todo.mutex);
    bool good = !todo.failed;
    pthread_mutex_unlock(&todo.mutex);
    sync_clocks();
    return good;
}

/* Some iterations of the network on the host, after one to warm up. */
static void run_on_host(void)
{
    float pixels[DIGITS_PIXELS];
    int8_t image[DIGITS_PIXELS], logits[CLASSES];
    image_pixels(0, pixels);
    quantize(pixels, image);
    describe_network();
    PROF_MEMORY(NULL, 0, sizeof tensors, "tensor pool");
    {
        PROF_RECORD_WARM_UP("warm up");
        host_iteration(0, image, logits);
    }
    PROF_RECORD("model_inference");
    for (unsigned n = 1; n <= HOST_ITERATIONS; n++)
        host_iteration(n, image, logits);
}

/* All 500 images. The first ones are traced, then the network on the host. The others follow, not traced, and
 * spread evenly over the rest of the run.
 * Why they come last, with recording stopped: a viewer opens with the whole trace in view. A trace as long as
 * the run would look empty but for its ends. */
static bool run_all(void)
{
    int64_t begin_ns = monotonic_ns(), length_ns = (int64_t)(options.seconds * 1e9);
    if (!run_images(WARM_UP, 0, WARM_UP_IMAGES) || !run_images(TRACED, 0, options.images))
        return false;
    run_on_host();
    npuprof_stop();
    int64_t rest_ns = monotonic_ns();
    unsigned rest = DIGITS_IMAGES - options.images;
    for (unsigned n = 0; n < rest; n += BATCH_IMAGES) {
        int64_t due_ns = rest_ns + (begin_ns + length_ns - rest_ns) * n / rest;
        sleep_ns(due_ns - monotonic_ns());
        if (!run_images(NOT_TRACED, options.images + n, rest - n < BATCH_IMAGES ? rest - n : BATCH_IMAGES))
            return false;
    }
    sleep_ns(begin_ns + length_ns - monotonic_ns());
    sync_clocks();
    return true;
}

static int bench_on_host(void *user, intptr_t stream)
{
    int8_t logits[CLASSES];
    (void)stream;
    reference(user, logits);
    return 0;
}

/* Puts one image into a queue. Its pixels are in the buffer of the worker with the queue's number. */
static int bench_on_npu(void *user, intptr_t stream)
{
    (void)user;
    uint32_t input = buffers_address + (uint32_t)stream * BUFFER_BYTES, output = input + INPUT_BYTES;
    if (pending.count == sizeof pending.slot / sizeof pending.slot[0])
        return ENOSPC;
    npusim_command command = {
        .job = npuprof_npu_job(&npu),
        .program = NPUSIM_MEMORY_OFFSET, .instruction_count = LAYERS,
        .input = input, .input_bytes = INPUT_BYTES, .output = output, .output_bytes = NPU_CLASSES};
    pending.slot[pending.count++] = npu_submit((unsigned)stream, &command);
    return 0;
}

/* Measures the network on the host, on one PE, and with one image on every PE at the same time. */
static int bench(void)
{
    int8_t image[DIGITS_PIXELS] = {0};
    npuprof_bench_op on_host = {.run = bench_on_host, .user = image, .workspace_bytes = sizeof tensors};
    npuprof_bench_op on_npu[NPUSIM_QUEUES_MAX];
    npuprof_bench_desc descs[3] = {
        {.key = "digits, host", .ops = &on_host, .repeat = BENCH_REPEATS},
        {.key = "digits, one PE", .ops = on_npu, .repeat = BENCH_REPEATS},
        {.key = "digits, every PE", .ops = on_npu, .op_count = pe_count, .repeat = BENCH_REPEATS}};
    for (unsigned n = 0; n < pe_count; n++)
        on_npu[n] =
            (npuprof_bench_op){.run = bench_on_npu, .stream = (intptr_t)n, .workspace_bytes = BUFFER_BYTES};
    for (unsigned n = 0; n < 3; n++) {
        npuprof_bench_result measured;
        if (n > 0) {
            descs[n].device = &npu.device;
            descs[n].clock = npuprof_npu_clock(&npu);
        }
        npuprof_result result = npuprof_bench(&descs[n], &measured);
        if (result != NPUPROF_OK)
            return fail(descs[n].key, npuprof_result_string(result));
    }
    return 0;
}

static int open_profiler(void)
{
    char text[32];
    npuprof_metadata("model", "digits, int8, 4 convolutions of 2 kinds and a fully connected layer");
    const uint32_t version = reg_read(NPUSIM_VERSION_OFFSET);
    snprintf(text, sizeof text, "%u.%u", version >> 16, version & 0xFFFFu);
    npuprof_metadata("npusim interface", text);
    npuprof_start(1);
    PROF_THREAD_NAME("main");

    npuprof_npu_desc desc = npusim_npu_desc();
    desc.resource = bar_path;           /* npuprof maps it for itself, read-only */
    desc.pe_count = pe_count;
    desc.wait = npu_wait_for_all;       /* for npuprof_bench. No span waits: wait_around is not set */
    npuprof_result result = npuprof_npu_open(&npu, &desc);
    if (result != NPUPROF_OK)
        return fail("cannot open the NPU for profiling", npuprof_result_string(result));
    return 0;
}

static int run(void)
{
    static unsigned numbers[WORKERS_MAX];
    pthread_t workers[WORKERS_MAX];
    unsigned started = 0;
    bool good = false;

    load_network();
    while (started < options.workers) {
        numbers[started] = started;
        if (pthread_create(&workers[started], NULL, worker_main, &numbers[started]) != 0)
            break;
        started++;
    }
    if (started == options.workers)
        good = run_all();
    else
        fail("cannot start a worker", "no more threads");

    pthread_mutex_lock(&todo.mutex);
    todo.quit = true;
    pthread_cond_broadcast(&todo.work);
    pthread_mutex_unlock(&todo.mutex);
    for (unsigned n = 0; n < started; n++)
        pthread_join(workers[n], NULL);
    if (todo.failed)
        fail("the NPU refused a command or did not finish it", "no results");
    return good ? 0 : 1;
}

/* ---- results ---------------------------------------------------------------------------------- */

/* Prints how many answers are right. Returns 0 if the NPU computed what the host computes. */
static int print_results(void)
{
    unsigned right = 0, equal = 0;
    for (unsigned n = 0; n < DIGITS_IMAGES; n++) {
        float pixels[DIGITS_PIXELS];
        int8_t image[DIGITS_PIXELS], logits[CLASSES];
        image_pixels(n, pixels);
        quantize(pixels, image);
        reference(image, logits);
        right += answers[n] == digits_labels[n];
        equal += memcmp(logits, npu_logits[n], CLASSES) == 0;
    }
    printf("digits: %d test images on npusim, %u PEs, %u host threads\n", DIGITS_IMAGES, pe_count,
           options.workers);
    printf("Accuracy: %u of %d (%.1f %%)\n", right, DIGITS_IMAGES, 100.0 * right / DIGITS_IMAGES);
    printf("NPU results equal to the host reference: %s\n", equal == DIGITS_IMAGES ? "yes" : "NO");
    if (refused_syncs)
        printf("Clock anchors refused: %u (%s)\n", refused_syncs, npuprof_result_string(sync_result));
    return equal == DIGITS_IMAGES ? 0 : 1;
}

static int print_tables(void)
{
#define TABLE(print) print,
    npuprof_result (*const tables[])(FILE *) = {NPUPROF_TABLES(TABLE) npuprof_print_bench};
    for (size_t n = 0; n < sizeof tables / sizeof tables[0]; n++) {
        printf("\n");
        npuprof_result result = tables[n](stdout);
        if (result != NPUPROF_OK)
            return fail("cannot print a table", npuprof_result_string(result));
    }
    return 0;
}

static int write_trace(void)
{
    npuprof_result result = npuprof_dump(options.output);
    if (result != NPUPROF_OK)
        return fail(options.output, npuprof_result_string(result));
    return 0;
}

static int usage(FILE *out)
{
    fputs("usage: digits [options] [-- options of npusim]\n"
          "  --images N       images in the trace, 1 to 500 (16); the others run when it is complete\n"
          "  --seconds S      shortest length of the run (1.5): longer runs know the clock rate better\n"
          "  --workers N      host threads, 1 to 32 (4)\n"
          "  --output FILE    where the trace goes (digits.json)\n"
          "  --truth FILE     let npusim write its true clock there\n"
          "  --npusim PATH    the simulator (npusim beside this program)\n",
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
    fprintf(stderr, "digits: %s needs a number from %g to %g, not \"%s\"\n", name, min, max, text);
    return false;
}

/* Returns 0 to go on, else 1 + the exit code. */
static int parse(int argc, char **argv)
{
    for (int n = 1; n < argc; n += 2) {
        const char *name = argv[n], *text = n + 1 < argc ? argv[n + 1] : NULL;
        double value = 0;
        bool good = true;
        if (strcmp(name, "--") == 0) {
            options.npusim_arguments = argv + n + 1;
            options.npusim_argument_count = argc - n - 1;
            break;
        }
        if (strcmp(name, "--help") == 0)
            return 1 + usage(stdout);
        if (!text)
            return 1 + usage(stderr);
        if (strcmp(name, "--images") == 0) {
            good = number(name, text, 1, DIGITS_IMAGES, &value);
            options.images = (unsigned)value;
        } else if (strcmp(name, "--workers") == 0) {
            good = number(name, text, 1, WORKERS_MAX, &value);
            options.workers = (unsigned)value;
        } else if (strcmp(name, "--seconds") == 0)
            good = number(name, text, 0, 86400, &options.seconds);
        else if (strcmp(name, "--output") == 0)
            options.output = text;
        else if (strcmp(name, "--truth") == 0)
            options.truth = text;
        else if (strcmp(name, "--npusim") == 0)
            options.npusim = text;
        else
            return 1 + usage(stderr);
        if (!good)
            return 1 + 2;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int parsed = parse(argc, argv);
    if (parsed)
        return parsed - 1;
    bool opened = false;
    int code = npu_start();
    if (code == 0) {
        code = open_profiler();
        opened = code == 0;
    }
    if (code == 0)
        code = run();
    npuprof_stop();
    if (code == 0)
        code = bench();
    if (opened)
        npuprof_npu_close(&npu);
    code |= npu_stop();
    if (code != 0)
        return code;
    code = write_trace() | print_results() | print_tables();
#ifndef NPUPROF_OFF
    if (code == 0)
        printf("\nTrace: %s. Open it in https://ui.perfetto.dev, chrome://tracing or "
               "https://www.speedscope.app.\n", options.output);
#endif
    return code;
}

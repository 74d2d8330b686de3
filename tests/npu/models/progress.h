/* progress.h - Google Coral, Hailo, AMD XDNA AIE4: no records, an index of finished jobs.
   SPDX-License-Identifier: MIT

   Coral: google-coral/libedgetpu e35aed1 hardware_structures.h:78-87, a status block of 16 bytes in host
   memory, at 0 the completed head, a slot of 256. Hailo: hailo-ai/hailort-drivers 45e5fc5
   vdma_common.h:26-33, channel c at 32 c, at 4 num_proc, 16 bits, 1 to the count, where the driver expects 0
   to the count - 1. AIE4: amd/xdna-driver 856409ca aie4_host_queue.h, u64 read_index at the head of the
   queue, running. None has a counter that a host can read. Four queues are four devices here: each has an
   index of its own. */

enum { PROGRESS_QUEUES = 4, CORAL_COUNT = 256, HAILO_COUNT = 1024 };
static struct { unsigned char *memory; uint64_t done; } progress[PROGRESS_QUEUES];
static uint64_t progress_from;           /* jobs done before the device was opened */
static uint64_t progress_submitted[PROGRESS_QUEUES];

/* How many jobs of its queue were submitted before. */
static uint64_t progress_number(uint32_t serial, uint32_t lane)
{
    (void)serial;
    return progress_from + progress_submitted[lane]++;
}

static void coral_describe(npuprof_npu_desc *d)
{
    progress[play_opening].memory = play_memory(16);
    progress[play_opening].done = progress_from;
    play_put(progress[play_opening].memory, 0, 4, progress_from % CORAL_COUNT);
    d->anchors_only = true;
    d->counter.hz = 0;
    d->progress.is_there = true;
    d->progress.index.memory = progress[play_opening].memory;
    d->progress.index.memory_bytes = 16;
    d->progress.index.unit = NPUPROF_NPU_INDEX_SLOT;
    d->progress.count = CORAL_COUNT;
}

static void coral_ended(const play_job *job)
{
    const uint64_t done = ++progress[job->lane].done;
    play_put(progress[job->lane].memory, 0, 4, done % CORAL_COUNT);
}

static void hailo_describe(npuprof_npu_desc *d)
{
    unsigned char *bar = progress[play_opening].memory = play_memory(0x400);
    progress[play_opening].done = progress_from;
    play_put(bar, 3 * 0x20 + 4, 2, progress_from);
    d->bar = bar;                        /* channel 3 */
    d->bar_bytes = 0x400;
    d->anchors_only = true;
    d->counter.hz = 0;
    d->progress.is_there = true;
    d->progress.index.offset = 3 * 0x20 + 4;
    d->progress.index.width_bytes = 4;   /* the driver reads 32 bits at a time */
    d->progress.index.bits = 16;
    d->progress.index.unit = NPUPROF_NPU_INDEX_SLOT;
    d->progress.count = HAILO_COUNT;
}

static void hailo_ended(const play_job *job)
{
    const uint64_t done = ++progress[job->lane].done;
    play_put(progress[job->lane].memory, 3 * 0x20 + 4, 2, (done - 1) % HAILO_COUNT + 1);
    play_put(progress[job->lane].memory, 3 * 0x20 + 6, 2, 0xABCD);    /* ongoing */
}

static void aie4_describe(npuprof_npu_desc *d)
{
    progress[play_opening].memory = play_memory(64);
    progress[play_opening].done = progress_from;
    play_put(progress[play_opening].memory, 0, 8, progress_from);
    d->anchors_only = true;
    d->counter.hz = 0;
    d->progress.is_there = true;
    d->progress.index.memory = progress[play_opening].memory;
    d->progress.index.memory_bytes = 64;
    d->progress.index.width_bytes = 8;
}

static void aie4_ended(const play_job *job)
{
    play_put(progress[job->lane].memory, 0, 8, ++progress[job->lane].done);
}

#define PROGRESS_MODEL \
    .lanes = PROGRESS_QUEUES, .separate = true, .number = progress_number, .duration = 50000, \
        .compare = "stamps=host"
static const play_model coral_model = { .name = "coral", .describe = coral_describe, .ended = coral_ended,
                                        PROGRESS_MODEL };
static const play_model hailo_model = { .name = "hailo", .describe = hailo_describe, .ended = hailo_ended,
                                        PROGRESS_MODEL };
static const play_model aie4_model = { .name = "aie4", .describe = aie4_describe, .ended = aie4_ended,
                                       PROGRESS_MODEL };

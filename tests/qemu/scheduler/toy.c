/* toy.c - a device on the DRM scheduler that knows the truth about each of its jobs.
   SPDX-License-Identifier: GPL-2.0 OR MIT

   Two schedulers of one ring name, whose ends QEMU's device edu tells by its interrupt: ring 0 takes one job
   at a time, and the interrupt's thread ends it; ring 1 takes two, and the interrupt itself ends them. It
   works on them in order, or on both at once: then every other one is long, so that the one behind it ends
   first. Timers say when a job is done.

   /sys/kernel/debug/toy/submit: a write of "RING COUNT BOTH" submits that many jobs and waits for them; BOTH
   is 1 if ring 1 works on two at once. COUNT 0 submits one job that never ends, until the module goes.
   /sys/kernel/debug/toy/truth: a line for each job that was submitted, "CONTEXT NUMBER BEGIN DONE END": its
   fence "finished", and ns of CLOCK_MONOTONIC. BEGIN: the device begins with it. DONE: it is done. END: the
   CPU enters the interrupt that says so; 0: never. */
#include <drm/gpu_scheduler.h>
#include <linux/debugfs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/seq_file.h>
#include <linux/vmalloc.h>

enum { RINGS = 2, MOST = 1 << 14, FLYING = 8, SHORTEST_US = 60, SPREAD_US = 240, LONG = 4 /* bits */ };
enum { EDU_STATUS = 0x24, EDU_RAISE = 0x60, EDU_ACK = 0x64 };      /* bit N of the values: ring N */

struct truth { u64 context, number; ktime_t begin, done, end; };

struct job {
    struct drm_sched_job base;
    struct dma_fence fence;                  /* the hardware's */
    struct ring *ring;
    struct truth *truth;
    struct hrtimer timer;
    struct job *next;                        /* done, too */
    unsigned int us;                         /* 0: never ends */
};

static struct ring {
    struct drm_gpu_scheduler sched;
    struct drm_sched_entity entity;
    spinlock_t lock;
    struct job *working, *waiting;           /* in order; of both at once there is no order */
    struct job *told;                        /* of ring 0: its interrupt came, its thread not yet */
    struct job *done;                        /* of ring 1: the oldest first; their interrupt is to come */
    u64 context, numbers;
    bool both;
} rings[RINGS];
static struct truth *truths;
static atomic_t count;
static struct job *hung;
static struct dentry *folder;
static void __iomem *edu;
static u32 seed = 1;

static const char *name_of(struct dma_fence *fence) { return "toy-hw"; }
static void release(struct dma_fence *fence) { kfree_rcu(container_of(fence, struct job, fence), fence.rcu); }
static const struct dma_fence_ops fence_ops = {
    .get_driver_name = name_of, .get_timeline_name = name_of, .release = release
};

/* ---- The device */

static void begin(struct job *job)
{
    job->truth->begin = ktime_get();
    if (job->us)
        hrtimer_start(&job->timer, ns_to_ktime(job->us * 1000ull), HRTIMER_MODE_REL_HARD);
}

/* A job is done, and the device goes on with the next one. */
static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
    struct job *job = container_of(timer, struct job, timer);
    struct ring *ring = job->ring;
    struct job **end = &ring->done;
    unsigned long flags;

    job->truth->done = ktime_get();
    if (ring == &rings[1]) {
        spin_lock_irqsave(&ring->lock, flags);
        if (ring->working == job) {
            ring->working = ring->waiting;
            ring->waiting = NULL;
            if (ring->working)
                begin(ring->working);
        }
        while (*end)
            end = &(*end)->next;
        *end = job;
        spin_unlock_irqrestore(&ring->lock, flags);
    }
    iowrite32(1 << (ring - rings), edu + EDU_RAISE);
    return HRTIMER_NORESTART;
}

/* Ends what ring 1 has done. */
static void end_all(struct ring *ring, ktime_t now)
{
    struct job *job, *next;
    unsigned long flags;

    spin_lock_irqsave(&ring->lock, flags);
    job = ring->done;
    ring->done = NULL;
    spin_unlock_irqrestore(&ring->lock, flags);
    for (; job; job = next) {
        next = job->next;
        job->truth->end = now;
        dma_fence_signal(&job->fence);
    }
}

static irqreturn_t on_interrupt(int irq, void *unused)
{
    const ktime_t now = ktime_get();
    const u32 status = ioread32(edu + EDU_STATUS);
    struct ring *ring = &rings[0];

    if (!status)
        return IRQ_NONE;
    iowrite32(status, edu + EDU_ACK);
    if (status & 2)
        end_all(&rings[1], now);
    if (!(status & 1))
        return IRQ_HANDLED;
    ring->told = ring->working;
    if (ring->told)
        ring->told->truth->end = now;
    return IRQ_WAKE_THREAD;
}

static irqreturn_t in_thread(int irq, void *unused)
{
    struct ring *ring = &rings[0];
    struct job *job = xchg(&ring->told, NULL);

    if (job) {
        ring->working = NULL;
        dma_fence_signal(&job->fence);
    }
    return IRQ_HANDLED;
}

/* ---- The driver */

static struct dma_fence *run_job(struct drm_sched_job *base)
{
    struct job *job = container_of(base, struct job, base);
    struct ring *ring = job->ring;
    unsigned long flags;

    dma_fence_init(&job->fence, &fence_ops, &ring->lock, ring->context, ++ring->numbers);
    dma_fence_get(&job->fence);              /* one of the scheduler, one of free_job() */
    spin_lock_irqsave(&ring->lock, flags);
    if (ring->both) {
        begin(job);
    } else if (!ring->working) {
        ring->working = job;
        begin(job);
    } else {
        ring->waiting = job;
    }
    spin_unlock_irqrestore(&ring->lock, flags);
    return &job->fence;
}

static enum drm_gpu_sched_stat timed_out(struct drm_sched_job *base) { return DRM_GPU_SCHED_STAT_NOMINAL; }

static void free_job(struct drm_sched_job *base)
{
    struct job *job = container_of(base, struct job, base);

    drm_sched_job_cleanup(base);
    dma_fence_put(&job->fence);
}

static const struct drm_sched_backend_ops ops = {
    .run_job = run_job, .timedout_job = timed_out, .free_job = free_job
};

static struct dma_fence *submit_one(struct ring *ring, unsigned int us)
{
    struct job *job = kzalloc(sizeof(*job), GFP_KERNEL);
    struct dma_fence *finished;
    int n = atomic_inc_return(&count) - 1;

    if (!job || n >= MOST || drm_sched_job_init(&job->base, &ring->entity, NULL)) {
        kfree(job);
        return NULL;
    }
    job->ring = ring;
    job->us = us;
    job->truth = &truths[n];
    hrtimer_init(&job->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
    job->timer.function = on_timer;
    if (!us)
        hung = job;
    drm_sched_job_arm(&job->base);
    finished = dma_fence_get(&job->base.s_fence->finished);
    job->truth->context = finished->context;
    job->truth->number = finished->seqno;
    drm_sched_entity_push_job(&job->base);
    return finished;
}

static unsigned int some_us(void)
{
    seed = seed * 1664525 + 1013904223;
    return SHORTEST_US + (seed >> 8) % SPREAD_US;
}

/* So many fly at once as the ring takes, and some wait in its queue. */
static int submit(struct ring *ring, unsigned int jobs)
{
    struct dma_fence *flying[FLYING] = { NULL };
    unsigned int i;
    bool failed = false;

    for (i = 0; i < jobs + FLYING; i++) {
        struct dma_fence **place = &flying[i % FLYING];

        if (*place) {
            dma_fence_wait(*place, false);
            dma_fence_put(*place);
        }
        *place = i < jobs ? submit_one(ring, some_us() << (ring->both && !(i % 2) ? LONG : 0)) : NULL;
        failed = failed || (i < jobs && !*place);
    }
    return failed ? -ENOMEM : 0;
}

static ssize_t write_submit(struct file *file, const char __user *from, size_t size, loff_t *at)
{
    unsigned int ring, jobs, both;
    char text[32] = "";
    int error;

    if (size >= sizeof(text) || copy_from_user(text, from, size))
        return -EFAULT;
    if (sscanf(text, "%u %u %u", &ring, &jobs, &both) != 3 || ring >= RINGS)
        return -EINVAL;
    rings[ring].both = both && ring == 1;
    if (!jobs) {
        struct dma_fence *fence = submit_one(&rings[ring], 0);

        dma_fence_put(fence);
        return fence ? size : -ENOMEM;
    }
    error = submit(&rings[ring], jobs);
    return error ? error : size;
}

static const struct file_operations submit_file = { .owner = THIS_MODULE, .write = write_submit };

static int truth_show(struct seq_file *to, void *unused)
{
    int i, all = min(atomic_read(&count), (int)MOST);

    for (i = 0; i < all; i++)
        seq_printf(to, "%llu %llu %lld %lld %lld\n", truths[i].context, truths[i].number,
                   ktime_to_ns(truths[i].begin), ktime_to_ns(truths[i].done), ktime_to_ns(truths[i].end));
    return 0;
}
DEFINE_SHOW_ATTRIBUTE(truth);

/* ---- From the device's arrival to its removal */

static int open_rings(struct device *device)
{
    int i, error = 0;

    for (i = 0; i < RINGS && !error; i++) {
        const struct drm_sched_init_args args = {
            .ops = &ops, .credit_limit = i + 1, .timeout = MAX_SCHEDULE_TIMEOUT, .name = "toy", .dev = device
        };
        struct drm_gpu_scheduler *sched = &rings[i].sched;

        spin_lock_init(&rings[i].lock);
        rings[i].context = dma_fence_context_alloc(1);
        error = drm_sched_init(sched, &args);
        if (!error)
            error = drm_sched_entity_init(&rings[i].entity, DRM_SCHED_PRIORITY_NORMAL, &sched, 1, NULL);
    }
    return error;
}

static int toy_probe(struct pci_dev *pci, const struct pci_device_id *id)
{
    int error = pcim_enable_device(pci);

    if (!error)
        error = pcim_iomap_regions(pci, 1, "toy");
    if (error)
        return error;
    edu = pcim_iomap_table(pci)[0];
    truths = vzalloc(MOST * sizeof(*truths));
    if (!truths)
        return -ENOMEM;
    error = devm_request_threaded_irq(&pci->dev, pci->irq, on_interrupt, in_thread, IRQF_SHARED, "toy",
                                      rings);
    if (!error)
        error = open_rings(&pci->dev);
    if (error)
        return error;
    folder = debugfs_create_dir("toy", NULL);
    debugfs_create_file("submit", 0200, folder, NULL, &submit_file);
    debugfs_create_file("truth", 0400, folder, NULL, &truth_fops);
    return 0;
}

static void toy_remove(struct pci_dev *pci)
{
    int i;

    debugfs_remove(folder);
    if (hung)
        dma_fence_signal(&hung->fence);
    for (i = 0; i < RINGS; i++) {
        drm_sched_entity_destroy(&rings[i].entity);
        drm_sched_fini(&rings[i].sched);
    }
    vfree(truths);
}

static const struct pci_device_id ids[] = { { PCI_DEVICE(0x1234, 0x11e8) }, { } };
MODULE_DEVICE_TABLE(pci, ids);
static struct pci_driver toy_driver = {
    .name = "toy", .id_table = ids, .probe = toy_probe, .remove = toy_remove
};
module_pci_driver(toy_driver);
MODULE_DESCRIPTION("a device on the DRM scheduler that knows the truth about its jobs");
MODULE_LICENSE("Dual MIT/GPL");

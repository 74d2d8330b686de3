/* demo.c - a small driver that says in a trace what it does: /dev/npuprof_demo. README.md runs it.
   SPDX-License-Identifier: GPL-2.0 OR MIT

   A write of the text N gives the device a job of N microseconds, and returns when it is done. The device is
   a timer; its interrupt ends the job, and a tasklet wakes the task. */
#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/uaccess.h>

#include "npuprof_kernel.h"

static struct {
    struct mutex lock;                   /* one job at a time */
    struct hrtimer timer;
    struct tasklet_struct tasklet;
    struct completion done;
    npuprof_npu npu;
    unsigned job;
    u32 submission;                      /* of the job, for npuprof_npu_end() */
} demo;

/* The device's own clock: 25 MHz, from a start of its own. A real one is a register. */
static uint64_t demo_ticks(void *user)
{
    return ktime_get_boot_fast_ns() / 40 + 123456789;
}

/* Softirq: the rest of the interrupt. */
static void demo_finish(struct tasklet_struct *tasklet)
{
    PROF_FUNCTION();
    complete(&demo.done);
}

/* Hardirq. */
static enum hrtimer_restart demo_interrupt(struct hrtimer *timer)
{
    PROF_FUNCTION();
    npuprof_npu_end_args(&demo.npu, demo.submission, PROF_ARGS(PROF_UINT("job", demo.job)));
    tasklet_schedule(&demo.tasklet);
    return HRTIMER_NORESTART;
}

static void demo_run(unsigned microseconds)
{
    PROF_SCOPE_ARGS(NULL, "demo_run", PROF_ARGS(PROF_UINT("job", demo.job)));
    reinit_completion(&demo.done);
    demo.submission = npuprof_npu_begin(&demo.npu, 0, "job", "npu", PROF_ARGS(PROF_UINT("job", demo.job)));
    hrtimer_start(&demo.timer, ns_to_ktime((u64)microseconds * 1000), HRTIMER_MODE_REL);
    {
        PROF_WAIT(NULL, "wait for the device");
        wait_for_completion(&demo.done);
    }
}

static ssize_t demo_write(struct file *file, const char __user *from, size_t count, loff_t *at)
{
    unsigned microseconds;
    int error = kstrtouint_from_user(from, count, 10, &microseconds);

    if (error || microseconds > 1000000)
        return -EINVAL;
    mutex_lock(&demo.lock);
    demo.job++;
    demo_run(microseconds);
    mutex_unlock(&demo.lock);
    return count;
}

/* Where a real device is switched on: the clocks are compared before its first job. */
static int demo_open(struct inode *inode, struct file *file)
{
    npuprof_npu_sync(&demo.npu);
    return 0;
}

static const struct file_operations demo_operations = {
    .owner = THIS_MODULE, .open = demo_open, .write = demo_write,
};
static struct miscdevice demo_device = {
    .minor = MISC_DYNAMIC_MINOR, .name = "npuprof_demo", .fops = &demo_operations, .mode = 0600,
};

static int __init demo_init(void)
{
    const npuprof_npu_desc desc = {
        .name = "npu0", .read_ticks = demo_ticks, .counter = { .hz = 25000000 },
    };
    int error = npuprof_kernel_open(NULL, 0);

    if (error)
        return error;
    if (npuprof_npu_open(&demo.npu, &desc) != NPUPROF_OK)
        pr_warn("npuprof_demo: the device's clock cannot be read\n");
    mutex_init(&demo.lock);
    init_completion(&demo.done);
    tasklet_setup(&demo.tasklet, demo_finish);
    hrtimer_init(&demo.timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
    demo.timer.function = demo_interrupt;
    error = misc_register(&demo_device);
    if (error)
        npuprof_kernel_close();
    return error;
}

static void __exit demo_exit(void)
{
    misc_deregister(&demo_device);
    hrtimer_cancel(&demo.timer);
    tasklet_kill(&demo.tasklet);
    npuprof_npu_close(&demo.npu);
    npuprof_kernel_close();
}

module_init(demo_init);
module_exit(demo_exit);
MODULE_DESCRIPTION("a driver that records what it does with npuprof");
MODULE_LICENSE("Dual MIT/GPL");

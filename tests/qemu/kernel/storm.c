/* storm.c - a module that records from everywhere at once: tasks on all CPUs, and on each CPU a timer's
   interrupt, a tasklet and NMIs.
   SPDX-License-Identifier: GPL-2.0 OR MIT

   /sys/kernel/debug/storm/go: a write of N makes one task on each CPU record N spans, while the interrupts
   come; it returns when all is done. Reading it gives what was recorded, as lines "NAME COUNT": counted by
   the module itself, not by the recorder. */
#define NPUPROF_IMPLEMENTATION
#include "npuprof_kernel.h"

#include <asm/apic.h>
#include <asm/nmi.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/percpu.h>

static struct { atomic_long_t task, moved, hardirq, softirq, nmi; } count;
static struct dentry *go_file;

struct storm {
    struct hrtimer timer;
    struct tasklet_struct tasklet;
    struct task_struct *task;
    struct completion done;
    bool starts;
    unsigned spans, ticks;
};
static DEFINE_PER_CPU(struct storm, storms);

static int on_nmi(unsigned int type, struct pt_regs *regs)
{
    struct storm *s = this_cpu_ptr(&storms);

    if (!READ_ONCE(s->starts))
        return NMI_DONE;
    WRITE_ONCE(s->starts, false);
    PROF_SCOPE("nmi");
    atomic_long_inc(&count.nmi);
    return NMI_HANDLED;
}

static void on_softirq(struct tasklet_struct *tasklet)
{
    PROF_SCOPE("softirq");
    atomic_long_inc(&count.softirq);
}

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
    struct storm *s = container_of(timer, struct storm, timer);
    PROF_SCOPE_ARGS("irq", "hardirq", PROF_ARGS(PROF_UINT("tick", s->ticks)));

    atomic_long_inc(&count.hardirq);
    tasklet_schedule(&s->tasklet);
    if (s->ticks++ % 4 == 0) {           /* an NMI of this CPU, in the middle of this span */
        WRITE_ONCE(s->starts, true);
        apic->send_IPI_mask(cpumask_of(smp_processor_id()), NMI_VECTOR);
    }
    hrtimer_forward_now(timer, ns_to_ktime(200000));
    return HRTIMER_RESTART;
}

/* A task that is moved to another CPU in the middle of a span, and back. */
static void move_about(void)
{
    unsigned here = raw_smp_processor_id(), there = cpumask_next(here, cpu_online_mask);

    if (there >= nr_cpu_ids)
        there = cpumask_first(cpu_online_mask);
    PROF_BEGIN("storm", "moved");
    set_cpus_allowed_ptr(current, cpumask_of(there));
    PROF_BEGIN("storm", "inner");
    set_cpus_allowed_ptr(current, cpumask_of(here));
    PROF_END();
    PROF_END();
    atomic_long_inc(&count.moved);
}

static int run(void *data)
{
    struct storm *s = data;
    unsigned i;

    hrtimer_start(&s->timer, ns_to_ktime(200000), HRTIMER_MODE_REL_PINNED);
    for (i = 0; i < s->spans; i++) {
        PROF_SCOPE("task");
        atomic_long_inc(&count.task);
        if (i % 4096 == 0)
            move_about();
        if (i % 64 == 0)
            cond_resched();
    }
    hrtimer_cancel(&s->timer);
    complete(&s->done);
    return 0;
}

static ssize_t go_write(struct file *file, const char __user *from, size_t bytes, loff_t *at)
{
    unsigned spans;
    int cpu, error = kstrtouint_from_user(from, bytes, 10, &spans);

    if (error)
        return error;
    for_each_online_cpu(cpu) {
        struct storm *s = per_cpu_ptr(&storms, cpu);

        s->spans = spans;
        init_completion(&s->done);
        s->task = kthread_create_on_cpu(run, s, cpu, "storm/%u");
        if (IS_ERR(s->task))
            return PTR_ERR(s->task);
    }
    for_each_online_cpu(cpu) wake_up_process(per_cpu_ptr(&storms, cpu)->task);
    for_each_online_cpu(cpu) {
        wait_for_completion(&per_cpu_ptr(&storms, cpu)->done);
        tasklet_kill(&per_cpu_ptr(&storms, cpu)->tasklet);
    }
    return bytes;
}

static ssize_t go_read(struct file *file, char __user *to, size_t bytes, loff_t *at)
{
    char text[200];
    int length = scnprintf(text, sizeof text,
                           "task %ld\nmoved %ld\ninner %ld\nhardirq %ld\nsoftirq %ld\nnmi %ld\n",
                           atomic_long_read(&count.task), atomic_long_read(&count.moved),
                           atomic_long_read(&count.moved), atomic_long_read(&count.hardirq),
                           atomic_long_read(&count.softirq), atomic_long_read(&count.nmi));

    return simple_read_from_buffer(to, bytes, at, text, length);
}

static const struct file_operations go_operations = {
    .owner = THIS_MODULE, .open = simple_open, .read = go_read, .write = go_write, .llseek = default_llseek,
};

static int __init storm_init(void)
{
    int cpu, error = npuprof_kernel_open(NULL, 40u << 20);

    if (error)
        return error;
    for_each_possible_cpu(cpu) {
        struct storm *s = per_cpu_ptr(&storms, cpu);

        tasklet_setup(&s->tasklet, on_softirq);
        hrtimer_init(&s->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED);
        s->timer.function = on_timer;
    }
    error = register_nmi_handler(NMI_LOCAL, on_nmi, 0, "storm");
    if (error) {
        npuprof_kernel_close();
        return error;
    }
    go_file = debugfs_create_file("go", 0600, debugfs_lookup("storm", NULL), NULL, &go_operations);
    return 0;
}

static void __exit storm_exit(void)
{
    unregister_nmi_handler(NMI_LOCAL, "storm");
    debugfs_remove(go_file);
    npuprof_kernel_close();
}

module_init(storm_init);
module_exit(storm_exit);
MODULE_DESCRIPTION("records from tasks, interrupts and NMIs at once");
MODULE_LICENSE("Dual MIT/GPL");

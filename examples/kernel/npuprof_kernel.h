/* npuprof_kernel.h - npuprof in a Linux kernel module, such as a driver of drm/accel; README.md tells how.
   SPDX-License-Identifier: GPL-2.0 OR MIT

   Every file of the module includes this header instead of npuprof.h, and may use all macros. One file
   defines NPUPROF_IMPLEMENTATION before it.

       int npuprof_kernel_open(struct dentry *parent, size_t arena_bytes);     in module_init
       void npuprof_kernel_close(void);                                        in module_exit

   TRACKS  Each task has a track of its own, by its number in the first pid namespace, as in ftrace. So a span
   of a task that is preempted, or moves to another CPU, stays where it began. Softirq, hardirq and NMI have a
   track for each CPU. There are 255 tracks. Who comes later shares one, "others".

   CLOCK  CLOCK_BOOTTIME in nanoseconds, which NMIs may read. With NPUPROF_KERNEL_TSC defined in every file:
   the TSC of x86. Start, stop and a timer write the time of both clocks into the trace. So the stamps of user
   space, of ftrace and of the module are on one timeline.

   FILES  in the debugfs folder PARENT/npuprof:
     arena     the trace: read it, or map it read-only, also while the module records
     control   write start, "start LEVEL", stop or clear; reading says what is recorded and lost
     clock     the clock now: ticks; ns of CLOCK_BOOTTIME, _MONOTONIC and _REALTIME; error in ticks

   There is no floating point: PROF_REAL does not compile; on x86-64 it takes constants. */
#ifndef NPUPROF_KERNEL_H
#define NPUPROF_KERNEL_H

#include <linux/atomic.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/timekeeping.h>
#include <linux/types.h>

struct dentry;

unsigned npk_context(void);

#define NPUPROF_FREESTANDING
#define NPUPROF_NO_JSON                  /* npuprof-convert writes it */
#define NPUPROF_NPU_RECORDS              /* and matches the records of a device */
#define NPUPROF_ARENA_BYTES 0            /* npuprof_kernel_open() allocates it */
#define NPUPROF_CONTEXTS 256
#define NPUPROF_CONTEXT() npk_context()
#ifdef NPUPROF_KERNEL_TSC
#include <asm/tsc.h>
#define NPUPROF_NOW() ((uint64_t)rdtsc_ordered())
#define NPUPROF_NOW_HZ ((uint64_t)tsc_khz * 1000)
#else
#define NPUPROF_NOW() ((uint64_t)ktime_get_boot_fast_ns())
#define NPUPROF_NOW_HZ 1000000000u
#endif
#ifndef CHAR_BIT                         /* what Linux lacks of the headers of C */
#define CHAR_BIT 8
#endif
#ifndef UINT32_MAX
#define UINT32_MAX 0xFFFFFFFFu
#define UINT64_MAX 0xFFFFFFFFFFFFFFFFull
#define INT64_MAX 0x7FFFFFFFFFFFFFFFll
#define UINT64_C(number) number##ull
#endif
#include "npuprof.h"
/* Why: a ring keeps metadata for ever, and the clocks that are written now and then are metadata. */
#if defined(NPUPROF_WHEN_FULL) && NPUPROF_WHEN_FULL != NPUPROF_KEEP_OLDEST
#error "npuprof_kernel.h: a module keeps the oldest records; leave NPUPROF_WHEN_FULL out"
#endif
#ifdef NPUPROF_KERNEL_NPU                /* the module also uses npuprof_npu.h */
#include "npuprof_npu.h"
#endif

/* Allocates the arena and makes the files; nothing is recorded until `start`. parent NULL: the folder is
   /sys/kernel/debug/MODULE. arena_bytes: 16 for a span without arguments; 0 = 4 MiB. Process context, once in
   the life of the module. 0; -ENOMEM; -EINVAL: arena_bytes is below 4096; -EBUSY: it is open, or was. Without
   debugfs it records, and nobody can read it. */
int npuprof_kernel_open(struct dentry *parent, size_t arena_bytes);

/* Stops, removes the files, frees the arena. Process context, when nothing of the module runs any more that
   records: after its timers, interrupts and works. A file of it that is open, or mapped, keeps the module in
   use, so rmmod says so. */
void npuprof_kernel_close(void);

#ifdef NPUPROF_IMPLEMENTATION
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

/* What the files share; the lock is theirs. Who records takes none. */
static struct {
    struct mutex lock;
    struct dentry *folder;
    void *arena;                         /* NULL: closed */
    size_t bytes;
    int level;                           /* of what is recorded; 0 = stopped */
    bool was_opened;
} npk = { .lock = __MUTEX_INITIALIZER(npk.lock) };

/* ---- Tracks. The table holds the owner of each track by its number; 0: nobody. Owners are never removed but
   by clear. Track 0 is for those who found no place. */

static u32 npk_owners[NPUPROF_CONTEXTS];
enum { NPK_PROBES = 16 };
#define NPK_CPU 0x80000000u  /* an owner that is a CPU: with 4 * its number + level */
#define NPK_OTHERS 0xFFFFFFFFu

static noinline void npk_name_track(u32 owner)
{
    static const char *const levels[4] = { "idle", "softirq", "hardirq", "NMI" };
    const bool is_task = !(owner & NPK_CPU);
    char text[32] = "others";

    if (is_task)
        memcpy(text, current->comm, TASK_COMM_LEN);
    else if (owner != NPK_OTHERS)
        scnprintf(text, sizeof text, "CPU %u %s", (owner & ~NPK_CPU) >> 2, levels[owner & 3]);
    text[sizeof text - 1] = 0;
    (void)npuprof_task(text, is_task ? owner : 0);
}

/* The number of the caller's track. Any context. It may interrupt itself anywhere.
   Why a task's number and not its address: a number is what user space and ftrace say. */
unsigned npk_context(void)
{
    const u32 level = in_nmi() ? 3 : in_hardirq() ? 2 : in_serving_softirq() ? 1 : 0;
    const u32 cpu = NPK_CPU | (u32)raw_smp_processor_id() << 2 | level;
    const u32 owner = level || !current->pid ? cpu : (u32)current->pid;
    u32 at = (owner * 0x9E3779B1u) >> 24;
    int i;

    for (i = 0; i < NPK_PROBES; i++, at = (at + 1) % NPUPROF_CONTEXTS) {
        u32 found = READ_ONCE(npk_owners[at]);

        if (likely(found == owner))
            return at;
        if (found || !at)
            continue;
        found = cmpxchg(&npk_owners[at], 0, owner);
        if (!found)
            npk_name_track(owner);
        if (!found || found == owner)
            return at;
    }
    if (!READ_ONCE(npk_owners[0]) && !cmpxchg(&npk_owners[0], 0, NPK_OTHERS))
        npk_name_track(NPK_OTHERS);
    return 0;
}

/* ---- Clock. An anchor is the metadata "npuprof.anchor": ticks; ns of CLOCK_BOOTTIME, _MONOTONIC and
   _REALTIME; error in ticks. The host places the trace by it, and knows the upper bits of the stamps after
   it. */

struct npk_anchor { u64 ticks, boot_ns, mono_ns, unix_ns, error; };

static struct npk_anchor npk_read_clocks(void)
{
    struct npk_anchor best = { 0, 0, 0, 0, U64_MAX / 2 };
    unsigned long flags;
    int i;

    for (i = 0; i < 5; i++) {
        u64 before, boot_ns, mono_ns, unix_ns, after;

        local_irq_save(flags);
        before = NPUPROF_NOW();
        boot_ns = ktime_get_boot_fast_ns();
        mono_ns = ktime_get_mono_fast_ns();
        unix_ns = ktime_get_real_fast_ns();
        after = NPUPROF_NOW();
        local_irq_restore(flags);
        if (after - before >= 2 * best.error)
            continue;
        best.error = (after - before + 1) / 2;
        best.ticks = before + best.error;
        best.boot_ns = boot_ns;
        best.mono_ns = mono_ns;
        best.unix_ns = unix_ns;
    }
    return best;
}

static int npk_print_clocks(char *text, size_t bytes)
{
    const struct npk_anchor a = npk_read_clocks();

    return scnprintf(text, bytes, "%llu %llu %llu %llu %llu", a.ticks, a.boot_ns, a.mono_ns, a.unix_ns,
                     a.error);
}

static void npk_put_anchor(void)
{
    char text[108];

    npk_print_clocks(text, sizeof text);
    (void)npuprof_metadata("npuprof.anchor", text);
}

static void npk_tick(struct work_struct *work);
static DECLARE_DELAYED_WORK(npk_timer, npk_tick);

/* Why now and then: a record has 40 bits of its stamp. A gap of 2^39 ticks, 9 minutes in ns, would be
   lost. */
static void npk_tick(struct work_struct *work)
{
    npk_put_anchor();
    schedule_delayed_work(&npk_timer, (unsigned long)((1ull << 37) / NPUPROF_NOW_HZ) * HZ);
}

static int npk_start(int level)
{
    (void)npuprof_metadata("npuprof.host", init_utsname()->nodename);
    (void)npuprof_metadata("npuprof.program", KBUILD_MODNAME);
    (void)npuprof_metadata("npuprof.kernel", init_utsname()->release);
    npk_tick(NULL);
    if (npuprof_start(level) != NPUPROF_OK)
        return -EINVAL;
    npk.level = level;
    return 0;
}

static void npk_stop(void)
{
    (void)npuprof_stop();
    npk.level = 0;
    if (cancel_delayed_work_sync(&npk_timer))
        npk_put_anchor();
}

/* ---- Files */

static ssize_t npk_read_arena(struct file *file, char __user *to, size_t count, loff_t *at)
{
    ssize_t result = -ENODEV;

    mutex_lock(&npk.lock);
    if (npk.arena)
        result = simple_read_from_buffer(to, count, at, npk.arena, npk.bytes);
    mutex_unlock(&npk.lock);
    return result;
}

static int npk_map_arena(struct file *file, struct vm_area_struct *area)
{
    int result = -ENODEV;

    if (file->f_mode & FMODE_WRITE)
        return -EPERM;
    mutex_lock(&npk.lock);
    if (npk.arena)
        result = remap_vmalloc_range(area, npk.arena, area->vm_pgoff);
    mutex_unlock(&npk.lock);
    return result;
}

static const struct file_operations npk_arena_file = {
    .owner = THIS_MODULE,
    .open = simple_open,
    .read = npk_read_arena,
    .mmap = npk_map_arena,
    .llseek = default_llseek,
};

static ssize_t npk_read_clock(struct file *file, char __user *to, size_t count, loff_t *at)
{
    char text[108];
    int length = npk_print_clocks(text, sizeof text - 1);

    text[length++] = '\n';
    return simple_read_from_buffer(to, count, at, text, length);
}

static const struct file_operations npk_clock_file = {
    .owner = THIS_MODULE,
    .open = simple_open,
    .read = npk_read_clock,
    .llseek = default_llseek,
};

static ssize_t npk_read_control(struct file *file, char __user *to, size_t count, loff_t *at)
{
    npuprof_stats stats;
    char text[160];
    int length;

    mutex_lock(&npk.lock);
    (void)npuprof_get_stats(&stats);
    length = scnprintf(text, sizeof text,
                       "recording %d\nrecorded %llu\nlost %llu\nbytes_used %llu\nbytes %llu\n", npk.level,
                       stats.recorded, stats.lost, stats.bytes_used, stats.bytes_total);
    mutex_unlock(&npk.lock);
    return simple_read_from_buffer(to, count, at, text, length);
}

static int npk_obey(const char *word)
{
    int level = 1;

    if (!npk.arena)
        return -ENODEV;
    if (!strcmp(word, "start") || (sscanf(word, "start %d", &level) == 1 && level >= 1 && level <= 9))
        return npk_start(level);
    if (!strcmp(word, "stop")) {
        npk_stop();
        return 0;
    }
    if (strcmp(word, "clear") || npk.level)       /* Why stopped: names of tracks are cleared, too */
        return -EINVAL;
    (void)npuprof_clear();
    memset(npk_owners, 0, sizeof npk_owners);
    return 0;
}

static ssize_t npk_write_control(struct file *file, const char __user *from, size_t count,
                                             loff_t *at)
{
    char word[16];
    int result;

    if (count >= sizeof word)
        return -EINVAL;
    if (copy_from_user(word, from, count))
        return -EFAULT;
    word[count] = 0;
    mutex_lock(&npk.lock);
    result = npk_obey(strim(word));
    mutex_unlock(&npk.lock);
    return result ? result : (ssize_t)count;
}

static const struct file_operations npk_control_file = {
    .owner = THIS_MODULE,
    .open = simple_open,
    .read = npk_read_control,
    .write = npk_write_control,
    .llseek = default_llseek,
};

int npuprof_kernel_open(struct dentry *parent, size_t arena_bytes)
{
    const size_t bytes = PAGE_ALIGN(arena_bytes ? arena_bytes : 4u << 20);
    npuprof_desc desc = { .arena = NULL };
    struct dentry *folder;

    if (arena_bytes && arena_bytes < 4096)
        return -EINVAL;
    if (npk.was_opened)
        return -EBUSY;
    desc.arena = vmalloc_user(bytes);
    desc.arena_bytes = bytes;
    if (!desc.arena)
        return -ENOMEM;
    if (npuprof_init(&desc) != NPUPROF_OK) {
        vfree(desc.arena);
        return -EINVAL;
    }
    npk.was_opened = true;
    npk.arena = desc.arena;
    npk.bytes = bytes;
    folder = debugfs_create_dir(parent ? "npuprof" : KBUILD_MODNAME, parent);
    npk.folder = folder;
    /* Why unsafe: debugfs_create_file() refuses mmap. `owner` keeps the module while a file is open. */
    debugfs_create_file_unsafe("arena", 0400, folder, NULL, &npk_arena_file);
    debugfs_create_file("control", 0600, folder, NULL, &npk_control_file);
    debugfs_create_file("clock", 0400, folder, NULL, &npk_clock_file);
    return 0;
}

void npuprof_kernel_close(void)
{
    void *arena;

    debugfs_remove_recursive(npk.folder);
    mutex_lock(&npk.lock);
    if (npk.arena)
        npk_stop();
    arena = npk.arena;
    npk.arena = NULL;
    mutex_unlock(&npk.lock);
    vfree(arena);
}
#endif /* NPUPROF_IMPLEMENTATION */
#endif /* NPUPROF_KERNEL_H */

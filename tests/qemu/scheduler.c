/* scheduler.c - jobs of the module toy beside the kernel's own trace of them. The host compares what
   `merge --ftrace` makes of the trace with what the device knows.
   SPDX-License-Identifier: MIT */
#include "guest.h"

#include <pthread.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#define TRACING "/sys/kernel/tracing/"
#define TOY "/sys/kernel/debug/toy/"
enum { WHOLE = 4000, BOTH = 1500, LOST = 1000 };

static const char *const events[] = {
    "dma_fence/dma_fence_init", "dma_fence/dma_fence_signaled", "gpu_scheduler/drm_run_job",
    "irq/irq_handler_entry", "irq/irq_handler_exit", "timer/hrtimer_expire_entry",
    "timer/hrtimer_expire_exit", "sched/sched_switch", "sched/sched_waking" };
static bool is_read;                         /* the pipe is read until then */

static void put(const char *file, const char *text)
{
    CHECK_INT(guest_write(guest_path(TRACING "%s", file), text), 0);
}

static void begin(const char *buffer_kb)
{
    CHECK(mount("tracefs", TRACING, "tracefs", 0, NULL) == 0 || errno == EBUSY);
    CHECK(mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL) == 0 || errno == EBUSY);
    put("tracing_on", "0");
    put("trace_clock", "mono");
    put("buffer_size_kb", buffer_kb);
    put("options/record-tgid", "1");
    CHECK_INT(guest_write(TRACING "trace", "\n"), 0);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        put(guest_path("events/%s/enable", events[i]), "1");
    put("tracing_on", "1");
}

static void *submits(void *words)
{
    return guest_write(TOY "submit", (const char *)words) == 0 ? NULL : words;
}

/* Both rings at once, each fed by a thread. */
static void submit(int jobs, int both)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        CHECK_STOP(pthread_create(&threads[i], NULL, submits,
                                  (void *)(uintptr_t)guest_path("%d %d %d", i, jobs, both)) == 0);
    for (int i = 0; i < 2; i++) {
        void *failed = NULL;
        CHECK(pthread_join(threads[i], &failed) == 0 && !failed);
    }
}

/* Both in order. */
static void whole(void)
{
    begin("65536");
    submit(WHOLE, 0);
    put("tracing_on", "0");
    guest_store(TRACING "trace", "whole.ftrace");
    guest_store(TOY "truth", "whole.truth");
}

/* Ring 1 works on two jobs at once: they end in any order. The last one never ends. */
static void both_at_once(void)
{
    begin("65536");
    submit(BOTH, 1);
    CHECK_INT(guest_write(TOY "submit", "1 0 0"), 0);
    put("tracing_on", "0");
    guest_store(TRACING "trace", "both.ftrace");
    guest_store(TOY "truth", "both.truth");
}

static void *reads(void *to)
{
    static char block[1 << 16];
    const int from = open(TRACING "trace_pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const int file = open((const char *)to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool last = false;
    while (!last) {
        last = __atomic_load_n(&is_read, __ATOMIC_ACQUIRE);
        for (ssize_t n; (n = read(from, block, sizeof block)) > 0;)
            if (write(file, block, (size_t)n) != n) return to;
        guest_sleep_ns(150000000);
    }
    close(from);
    close(file);
    return NULL;
}

/* A buffer that the reader of the pipe does not empty in time. */
static void lost_events(void)
{
    pthread_t reader;
    void *failed = NULL;
    begin("32");
    CHECK_STOP(pthread_create(&reader, NULL, reads, (void *)(uintptr_t)"/tmp/lost.ftrace") == 0);
    submit(LOST, 0);
    put("tracing_on", "0");
    __atomic_store_n(&is_read, true, __ATOMIC_RELEASE);
    CHECK(pthread_join(reader, &failed) == 0 && !failed);
    guest_store("/tmp/lost.ftrace", "lost.ftrace");
    guest_store(TOY "truth", "lost.truth");
}

static void removed(void)
{
    CHECK_INT(syscall(SYS_delete_module, "toy", O_NONBLOCK), 0);
}

CHECK_MAIN(CASE(whole), CASE(lost_events), CASE(both_at_once), CASE(removed), CASE(guest_log))

/* ftrace.c - a thread that waits 1,000 times, and the kernel's own trace of when it slept. The host compares.
   SPDX-License-Identifier: MIT */
#include "guest.h"

#include <sys/mount.h>

#define TRACING "/sys/kernel/tracing/"

static void put(const char *file, const char *text)
{
    CHECK_INT(guest_write(guest_path(TRACING "%s", file), text), 0);
}

static void waits(void)
{
    static char block[1 << 16];
    CHECK_STOP(mount("tracefs", TRACING, "tracefs", 0, NULL) == 0 || errno == EBUSY);
    put("tracing_on", "0");
    put("trace_clock", "mono");
    put("buffer_size_kb", "8192");
    put("events/sched/sched_switch/enable", "1");
    npuprof_start(1);
    put("tracing_on", "1");
    for (int i = 0; i < 1000; i++) {
        PROF_SCOPE("wait");
        guest_sleep_ns(200000);
    }
    put("tracing_on", "0");
    CHECK_INT(npuprof_dump("waits.json"), NPUPROF_OK);
    guest_send("waits.json");
    const int from = open(TRACING "trace", O_RDONLY | O_CLOEXEC);
    FILE *to = fopen("waits.ftrace", "w");
    CHECK_STOP(from >= 0 && to != NULL);
    for (ssize_t n; (n = read(from, block, sizeof block)) > 0;) fwrite(block, 1, (size_t)n, to);
    fclose(to);
    guest_send("waits.ftrace");
}

CHECK_MAIN(CASE(waits))

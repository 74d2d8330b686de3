/* A ring in a file that others map while it records, for firmware/test_live.py. Each record says by itself
   whether it is whole: start, end, name and arguments follow from one number. A timer's signal records, too,
   wherever it comes.
   usage: firmware_live FILE SIGNAL_US SIGNALS    SIGNALS: so many are waited for after each 16 records
   The file begins with a page: two words that count the events, before and after each was recorded.
   SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static volatile uint32_t ticks, context;
#define NPUPROF_NOW() (ticks)
#define NPUPROF_NOW_HZ 1000000000u
#define NPUPROF_FREESTANDING
#ifndef NPUPROF_WHEN_FULL
#define NPUPROF_WHEN_FULL NPUPROF_KEEP_NEWEST
#endif
#define NPUPROF_CONTEXT() (context)
#define NPUPROF_CONTEXTS 2
#define NPUPROF_ARENA_BYTES 0
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

enum { PAGE = 4096, ARENA = 65536 };
static volatile uint64_t *counts;

static void interrupt(int number)
{
    static uint32_t n;
    (void)number;
    context = 1;
    counts[0]++;
    PROF_INSTANT("irq", "interrupt", PROF_ARGS(PROF_UINT("n", n), PROF_UINT("not_n", ~n)));
    counts[1]++;
    n++;
    context = 0;
}

static void plain(uint32_t i)
{
    ticks = 16 * i;
    switch (i % 4) {
    case 0: { PROF_SCOPE("p0"); ticks += 3 + i % 5; } break;
    case 1: { PROF_SCOPE("p1"); ticks += 3 + i % 5; } break;
    case 2: { PROF_SCOPE("p2"); ticks += 3 + i % 5; } break;
    default: {
        PROF_SCOPE_ARGS("c", "p3", PROF_ARGS(PROF_UINT("n", i), PROF_UINT("not_n", ~i)));
        ticks += 3 + i % 5;
    }
    }
}

int main(int argc, char **argv)
{
    npuprof_desc desc;
    if (argc < 4) return 2;
    const struct itimerval every = { { 0, atoi(argv[2]) }, { 0, atoi(argv[2]) } };
    const int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, PAGE + ARENA)) return 1;
    uint8_t *const memory = (uint8_t *)mmap(NULL, PAGE + ARENA, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return 1;
    counts = (volatile uint64_t *)(void *)memory;
    memset(&desc, 0, sizeof desc);
    desc.arena = memory + PAGE;
    desc.arena_bytes = ARENA;
    desc.when_full = NPUPROF_WHEN_FULL;
    if (npuprof_init(&desc) != NPUPROF_OK) return 1;
    npuprof_start(1);
    PROF_THREAD_NAME("main");
    npuprof_metadata("key", "a value that takes two cells");
    PROF_BEGIN("c", "open all the time");
    counts[0] = counts[1] = 1;
    signal(SIGALRM, interrupt);
    setitimer(ITIMER_REAL, &every, NULL);
    for (uint32_t i = 1;; i++) {
        __atomic_fetch_add(&counts[0], 1, __ATOMIC_SEQ_CST);
        plain(i);
        __atomic_fetch_add(&counts[1], 1, __ATOMIC_SEQ_CST);
        if (i % 256 == 0) {
            __atomic_fetch_add(&counts[0], 1, __ATOMIC_SEQ_CST);
            PROF_BEGIN("c", "long");
        }
        if (i % 256 == 100 && i > 256) {
            PROF_END();
            __atomic_fetch_add(&counts[1], 1, __ATOMIC_SEQ_CST);
        }
        for (int n = 0; i % 16 == 0 && n < atoi(argv[3]); n++) (void)pause();
    }
}

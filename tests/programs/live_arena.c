/* live_arena.c - records at full speed into a mapped arena that keeps the newest, until it is killed. Name
   and arguments agree.
   SPDX-License-Identifier: MIT
   usage: live_arena ARENA BYTES THREADS COUNTS; COUNTS: a file of two 64-bit numbers a thread, records begun
   and ended so far */
#include "npuprof.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct counts { uint64_t begun, ended, room[6]; } counts;
static counts *all;

#define ARGUMENTS(k) PROF_ARGS(PROF_INT("v", v), PROF_INT("w", v ^ 0x5A5A5A5A), PROF_INT("name", k))
#define RECORD(k) \
    case k: { \
        PROF_SCOPE_ARGS("c" #k, "span" #k, ARGUMENTS(k)); \
        PROF_INSTANT("c" #k, "inst" #k, ARGUMENTS(k)); \
        break; \
    }

static void count(uint64_t *number, uint64_t by) { __atomic_store_n(number, *number + by, __ATOMIC_RELEASE); }

static void record(counts *c, uint64_t number)
{
    const int64_t v = (int64_t)number * 64 + (c - all);
    count(&c->begun, 2);
    switch (number % 8) {
    RECORD(0) RECORD(1) RECORD(2) RECORD(3) RECORD(4) RECORD(5) RECORD(6) RECORD(7)
    }
    count(&c->ended, 2);
}

/* A long span, too: it moves from chunk to chunk. */
static void *run(void *user)
{
    counts *const c = (counts *)user;
    for (uint64_t n = 0;; n += 5000) {
        count(&c->begun, 1);
        {
            PROF_SCOPE("long");
            for (uint64_t i = 0; i < 4000; i++) record(c, n + i);
        }
        count(&c->ended, 1);
        for (uint64_t i = 4000; i < 5000; i++) record(c, n + i);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 5) return 2;
    const int threads = atoi(argv[3]), fd = open(argv[4], O_RDWR | O_CREAT, 0644);
    const size_t bytes = sizeof *all * (size_t)threads;
    const npuprof_desc desc = { .arena_path = argv[1], .arena_bytes = strtoul(argv[2], NULL, 10),
                                .when_full = NPUPROF_KEEP_NEWEST };
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) return 2;
    all = (counts *)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (all == MAP_FAILED || npuprof_init(&desc) != NPUPROF_OK) return 2;
    npuprof_start(1);
    pthread_t thread;
    for (int i = 1; i < threads; i++) if (pthread_create(&thread, NULL, run, &all[i]) != 0) return 2;
    run(&all[0]);
    return 0;
}

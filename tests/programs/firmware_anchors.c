/* A firmware whose clock is off, and a host that exchanges anchors with it through a mailbox in memory that
   both map, for firmware/test_anchors.py. Time is virtual: the host's nanoseconds. out.img is what a stream
   sent, ram.bin the memory that is shared; out.truth has a line for each span: its number, and its begin and
   end in host ns. The first line is the half widths of the exchanges.
   usage: firmware_anchors PPM SECONDS ANCHORS RATE_PPB WANDER_PPM SEED    RATE_PPB: "-" says nothing
   SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HZ 25000000u
#define BOOT_NS 5000000000000.0
static double host_ns, ppm, wander;
static uint64_t now(void)
{
    const double period = 200e9, turn = 2 * 3.14159265358979 / period;
    const double fast = host_ns * (1 + ppm * 1e-6) + wander * 1e-6 / turn * (1 - cos(turn * host_ns));
    return 777777 + (uint64_t)(fast * (HZ * 1e-9));
}
#define NPUPROF_NOW() now()
#define NPUPROF_NOW_HZ HZ
#define NPUPROF_FREESTANDING
#define NPUPROF_CONTEXTS 4
#define NPUPROF_ARENA_BYTES 0
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

enum { MEMORY = 65536, SPANS = 300 };
typedef struct mailbox { uint64_t asked, ticks; char anchor[120]; } mailbox;

static uint32_t seed;
static double chance(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) / 16777216.0;
}

static FILE *stream;
static int put(void *user, const void *bytes, size_t count)
{
    (void)user;
    return fwrite(bytes, 1, count, stream) == count ? 0 : 5;
}

/* The host asks, the firmware answers with its ticks; the host says what it knows of them. */
static double exchange(mailbox *m)
{
    const double before = host_ns;
    m->asked++;
    host_ns += 200 + 1800 * chance();
    m->ticks = now();
    host_ns += 200 + 1800 * chance();
    const double half = (host_ns - before) / 2;
    const unsigned long long middle = (unsigned long long)(BOOT_NS + before + half);
    (void)snprintf(m->anchor, sizeof m->anchor, "%llu %llu %llu %llu %u", (unsigned long long)m->ticks,
                   middle, middle, middle + 1700000000000000000ull, (unsigned)(half * HZ * 1e-9) + 1);
    host_ns += 500;
    (void)npuprof_metadata("npuprof.anchor", m->anchor);
    return half;
}

static void span(FILE *truth, int number)
{
    const double begin = host_ns;
    {
        PROF_SCOPE_ARGS("c", "work", PROF_ARGS(PROF_INT("n", number)));
        host_ns += 1000 + 100000 * chance();
    }
    fprintf(truth, "%d %.0f %.0f\n", number, BOOT_NS + begin, BOOT_NS + host_ns);
}

int main(int argc, char **argv)
{
    if (argc != 7) return 2;
    const int file = open("ram.bin", O_RDWR | O_CREAT | O_TRUNC, 0600), anchors = atoi(argv[3]);
    if (file < 0 || ftruncate(file, MEMORY) != 0) return 1;
    uint8_t *const shared = (uint8_t *)mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    FILE *const truth = fopen("out.truth", "w"), *const halves = fopen("out.halves", "w");
    stream = fopen("out.img", "wb");
    if (shared == MAP_FAILED || !truth || !halves || !stream) return 1;
    npuprof_desc desc = { .arena = shared + 4096, .arena_bytes = MEMORY - 4096 };
    desc.when_full = NPUPROF_WHEN_FULL;
    desc.sink.write = put;
    ppm = atof(argv[1]);
    wander = atof(argv[5]);
    seed = (uint32_t)atoi(argv[6]);
    if (npuprof_init(&desc) != NPUPROF_OK || npuprof_start(1) != NPUPROF_OK) return 1;
    if (strcmp(argv[4], "-") != 0) (void)npuprof_metadata("npuprof.rate_ppb", argv[4]);
    const double all = atof(argv[2]) * 1e9, step = all / SPANS;
    for (int i = 0, said = 0; i < SPANS; i++) {
        const double at = i * step;
        if (host_ns < at) host_ns = at;
        if (said < anchors && i * (anchors - 1) >= said * (SPANS - 10)) {
            fprintf(halves, "%.0f\n", exchange((mailbox *)(void *)shared));
            said++;
        }
        span(truth, i);
        (void)npuprof_poll();
    }
    (void)npuprof_flush();
    return fclose(truth) || fclose(halves) || fclose(stream) || munmap(shared, MEMORY) || close(file);
}

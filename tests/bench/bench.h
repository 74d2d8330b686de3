/* What the benchmarks share: pinning, the floor, medians, rows. SPDX-License-Identifier: MIT
   A benchmark prints rows for tests/bench/run.py, tab-separated: ROW name value unit limit first-quartile
   third-quartile ns. Include it in front of npuprof.h. */
#ifndef BENCH_H
#define BENCH_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BARRIER() __asm__ volatile("" ::: "memory")
enum { BATCH = 2000 };

static inline double bench_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline uint64_t bench_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return (uint64_t)bench_ns(CLOCK_MONOTONIC);
#endif
}

static inline double bench_ns_per_tick(void)
{
    const double ns = bench_ns(CLOCK_MONOTONIC);
    const uint64_t ticks = bench_ticks();
    while (bench_ns(CLOCK_MONOTONIC) < ns + 2e6) {}
    return (bench_ns(CLOCK_MONOTONIC) - ns) / (double)(bench_ticks() - ticks);
}

/* Where a sink's bytes go: memory, or a descriptor. */
typedef struct bench_memory { char *bytes; size_t count, room; } bench_memory;
static inline int bench_to_memory(void *to, const void *from, size_t count)
{
    bench_memory *const m = (bench_memory *)to;
    if (m->count + count > m->room) return ENOSPC;
    memcpy(m->bytes + m->count, from, count);
    m->count += count;
    return 0;
}

static inline int bench_to_fd(void *fd, const void *from, size_t count)
{
    return write(*(int *)fd, from, count) == (ssize_t)count ? 0 : EIO;
}

static inline void bench_pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fputs("bench: could not be pinned\n", stderr);
}

static inline int bench_by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* limit 0: there is none. Sorts the values. */
static inline void bench_row(const char *name, double *values, int count, const char *unit, double limit,
                             double ns)
{
    qsort(values, (size_t)count, sizeof *values, bench_by_value);
    printf("ROW\t%s\t%.6g\t%s\t%.6g\t%.6g\t%.6g\t%.6g\n", name, values[count / 2], unit, limit,
           values[count / 4], values[count * 3 / 4], ns);
    fflush(stdout);
}

/* The memory of this process that is resident now. 0: the system does not say. */
static inline double bench_resident_mib(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*s %ld", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1024 * 1024);
}

/* The floor: two reads of the counter and one 16-byte store, in a function of its own as a span is. */
static inline void bench_floor_span(uint64_t *ring, unsigned *at)
{
    uint64_t *const record = ring + *at;
    *at = (*at + 2) & 1022;
    record[0] = bench_ticks();
    BARRIER();
    record[1] = bench_ticks();
    BARRIER();
}

#define BENCH_NOINLINE __attribute__((noinline, noclone))
static BENCH_NOINLINE uint64_t bench_floor(void)
{
    uint64_t ring[1024];
    unsigned at = 0;
    const uint64_t start = bench_ticks();
    for (int i = 0; i < BATCH; i++) bench_floor_span(ring, &at);
    return bench_ticks() - start;
}

/* A loop of BATCH, as the floor is. */
#define LOOP(name, ...) \
    static BENCH_NOINLINE uint64_t name(void) \
    { \
        const uint64_t start = bench_ticks(); \
        for (int i = 0; i < BATCH; i++) { __VA_ARGS__; BARRIER(); } \
        return bench_ticks() - start; \
    }
#endif /* BENCH_H */

/* play.h - plays an NPU in memory: a schedule of jobs, the truth about them, the bytes that the device
   writes.
   SPDX-License-Identifier: MIT

   A model (play_model) is one device: it describes itself, and writes by offset what the device writes when
   a job begins and ends. Everything else is here: a clock that only the test moves (1 host tick is 1 ns),
   jobs on `lanes` engines or queues, the host that submits, serves and at times does not serve, and the
   comparison with the truth by compare.py.

   The device works whenever the library looks at the clock: records appear in the middle of a drain, too.
   Include before npuprof.h; play_run.h comes after npuprof_npu.h. */
#ifndef PLAY_H
#define PLAY_H

#include "check.h"
#include <sys/mman.h>

enum { PLAY_LANES = 16, PLAY_DEPTH = 512, PLAY_REGIONS = 16 };
#define PLAY_NEVER UINT64_MAX

typedef struct play_job {
    uint32_t serial, lane, op;
    uint64_t id;                         /* the driver's number of the command */
    uint64_t submitted, begin, end;      /* true host time, ns */
} play_job;

typedef struct play_lane {
    play_job jobs[PLAY_DEPTH];           /* what waits for this engine; [out] runs if `running` */
    uint32_t in, out;
    bool running;
    uint64_t free_at;
} play_lane;

static struct {
    uint64_t host, seed;
    unsigned step;                       /* a look at the clock takes 1 to step ns */
    uint64_t hz, start, origin;          /* counter = start + (host - origin) * hz * (1 + ppm / 10^6) */
    int ppm;
    bool is_device_off;                  /* it neither begins nor ends anything */
    uint64_t frozen_until;               /* the host serves nothing until then */
    uint32_t submitted, ended;           /* jobs */
    uint64_t entries;                    /* records that the device wrote or wanted to write */
    play_lane lanes[PLAY_LANES];
    struct { unsigned char *memory; size_t bytes; } regions[PLAY_REGIONS];
    unsigned region_count;
    FILE *truth;
    double zero;                         /* of a sampled device: host time when its counter showed 0 */
    void (*began)(const play_job *);
    void (*ended_job)(const play_job *);
    void (*show)(uint64_t ticks);        /* writes the counter's registers */
    bool busy;
} play = { .host = 1000000000, .seed = 88172645463325252u, .step = 30, .hz = 1000000000, .start = 123456789,
           .origin = 1000000000 };

CHECK_UNUSED_ static uint64_t play_random(uint64_t below)
{
    play.seed ^= play.seed << 13;
    play.seed ^= play.seed >> 7;
    play.seed ^= play.seed << 17;
    return below ? play.seed * UINT64_C(0x2545F4914F6CDD1D) % below : 0;
}

/* ---- Memory of the device */

/* Memory between two pages that nobody may touch. Its end is the second page's beginning. */
CHECK_UNUSED_ static unsigned char *play_memory(size_t bytes)
{
    const size_t page = 4096, whole = (bytes + page - 1) / page * page;
    unsigned char *base =
        (unsigned char *)mmap(NULL, whole + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                              -1, 0);
    CHECK_STOP((void *)base != MAP_FAILED);
    mprotect(base, page, PROT_NONE);
    mprotect(base + page + whole, page, PROT_NONE);
    CHECK_STOP(play.region_count < PLAY_REGIONS);
    unsigned char *memory = base + page + whole - bytes;
    play.regions[play.region_count].memory = memory;
    play.regions[play.region_count++].bytes = bytes;
    return memory;
}

static uint64_t play_little(unsigned width, uint64_t value)
{
    const uint16_t one = 1;
    uint64_t turned = 0;
    if (*(const unsigned char *)&one) return value;
    for (unsigned i = 0; i < width; i++) turned |= (value >> 8 * i & 0xFF) << 8 * (width - 1 - i);
    return turned;
}

/* One store of 1, 2, 4 or 8 bytes, little-endian, naturally aligned, behind all before it. */
CHECK_UNUSED_ static void play_put(unsigned char *memory, size_t offset, unsigned width, uint64_t value)
{
    void *at = memory + offset;
    value = play_little(width, value);
    switch (width) {
    case 1: __atomic_store_n((uint8_t *)at, (uint8_t)value, __ATOMIC_RELEASE); break;
    case 2: __atomic_store_n((uint16_t *)at, (uint16_t)value, __ATOMIC_RELEASE); break;
    case 4: __atomic_store_n((uint32_t *)at, (uint32_t)value, __ATOMIC_RELEASE); break;
    default: __atomic_store_n((uint64_t *)at, value, __ATOMIC_RELEASE); break;
    }
}

/* What a driver reads of the device's memory: one load. */
CHECK_UNUSED_ static uint64_t play_get(const unsigned char *memory, size_t offset, unsigned width)
{
    const void *at = memory + offset;
    uint64_t value;
    switch (width) {
    case 1: value = __atomic_load_n((const uint8_t *)at, __ATOMIC_ACQUIRE); break;
    case 2: value = __atomic_load_n((const uint16_t *)at, __ATOMIC_ACQUIRE); break;
    case 4: value = __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE); break;
    default: value = __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE); break;
    }
    return play_little(width, value);
}

/* Copies words of four bytes, as a driver does before it feeds them. */
CHECK_UNUSED_ static void play_copy(unsigned char *to, const unsigned char *memory, size_t offset,
                                    size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 4) {
        const uint32_t word = (uint32_t)play_little(4, play_get(memory, offset + i, 4));
        memcpy(to + i, &word, 4);
    }
}

/* ---- Time */

/* The counter's true value at a host time, not cut to its bits. */
CHECK_UNUSED_ static uint64_t play_ticks(uint64_t ns)
{
    __extension__ typedef unsigned __int128 wide;
    const uint64_t rate = play.hz / 1000 * (uint64_t)(1000000 + play.ppm);       /* ticks in 10^3 s */
    return play.start + (uint64_t)((wide)(ns - play.origin) * rate / UINT64_C(1000000000000));
}

/* One event of the device, the earliest not behind `until`. False: there is none. */
static bool play_event(uint64_t until)
{
    play_lane *next = NULL;
    uint64_t at = PLAY_NEVER;
    for (unsigned i = 0; i < PLAY_LANES; i++) {
        play_lane *lane = &play.lanes[i];
        if (lane->in == lane->out) continue;
        const play_job *job = &lane->jobs[lane->out % PLAY_DEPTH];
        const uint64_t due = lane->running ? job->end : job->begin;
        if (due < at) {
            at = due;
            next = lane;
        }
    }
    if (!next || at > until) return false;
    const play_job job = next->jobs[next->out % PLAY_DEPTH];
    next->running = !next->running;
    if (next->running) {
        if (play.began) play.began(&job);
        return true;
    }
    next->out++;
    play.ended++;
    if (play.ended_job) play.ended_job(&job);
    return true;
}

/* Time goes on to `ns`; the device does what is due until then. */
CHECK_UNUSED_ static void play_until(uint64_t ns)
{
    if (!play.busy) {                    /* a model may look at the clock while it is played */
        play.busy = true;
        while (!play.is_device_off && play_event(ns)) {}
        play.busy = false;
    }
    if (ns > play.host) play.host = ns;
    if (play.show) play.show(play_ticks(play.host));
}

/* Of a description: is_on, and a read_ticks of up to 2 us. */
static bool play_powered_on = true;
CHECK_UNUSED_ static bool play_is_on(void *user)
{
    (void)user;
    return play_powered_on;
}

CHECK_UNUSED_ static uint64_t play_read(void *user)
{
    (void)user;
    play_until(play.host + 20 + play_random(2000));
    return play_ticks(play.host);
}

CHECK_UNUSED_ static uint64_t play_now(void)
{
    play_until(play.host + (play.step ? 1 + play_random(play.step) : 0));
    return play.host;
}

#ifndef PLAY_REAL_CLOCK                  /* benchmarks have the real one */
#include "own_clock.h"
uint64_t own_clock(void) { return play_now(); }
#endif

/* A job goes to its engine: it begins after what is there, at least `latency` ns from now. */
CHECK_UNUSED_ static void play_submit(uint32_t lane_number, uint32_t op, uint64_t id, uint64_t latency,
                                      uint64_t duration)
{
    play_lane *lane = &play.lanes[lane_number];
    CHECK_STOP(lane->in - lane->out < PLAY_DEPTH);
    play_job *job = &lane->jobs[lane->in % PLAY_DEPTH];
    job->serial = play.submitted++;
    job->lane = lane_number;
    job->op = op;
    job->id = id;
    job->submitted = play.host;
    job->begin = play.host + latency > lane->free_at ? play.host + latency : lane->free_at + 100;
    job->end = lane->free_at = job->begin + duration;
    lane->in++;
}

/* ---- Truth */

/* A span that the trace must have: on which lane, named how, of which job, from when to when. submission: the
   arrow comes from that job's block; -1: it has none. */
CHECK_UNUSED_ static void play_truth(uint64_t lane, const char *name, int64_t submission, uint64_t begin,
                                     uint64_t end)
{
    fprintf(play.truth, "%" PRIu64 "\t%s\t%" PRId64 "\t%" PRIu64 "\t%" PRIu64 "\t%.3f\n", lane, name,
            submission, begin, end, play.zero);
}

enum { PLAY_INSTANT = -2, PLAY_TOTAL = -3 };

/* An instant that the trace must have. */
CHECK_UNUSED_ static void play_instant(uint64_t lane, const char *name, uint64_t ns)
{
    play_truth(lane, name, PLAY_INSTANT, ns, ns);
}

/* What a counter track must show at last. */
CHECK_UNUSED_ static void play_total(const char *track, uint64_t value)
{
    play_truth(0, track, PLAY_TOTAL, value, value);
}

#endif /* PLAY_H */

/* test: lib=-lm - a counter that stands and jumps, where only the order of its reads counts: what is drawn
   lies within its bound, in order, and has the length that its ticks say
   SPDX-License-Identifier: MIT */
#include "check.h"
#include "random.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include <math.h>

enum { PARTS = 60, STAMPS = 300, SECOND = 1000000000, HZ = 25000000, ROUNDS = 60 };

/* When the counter began to show its values, and reads of it. */
static struct {
    struct { double host, ticks; } corner[PARTS + 1];
    npuprof_anchor_ read[NPUPROF_MAP_POINTS_];
    unsigned corners, reads;
} odd;

static unsigned up_to(unsigned n) { return (unsigned)(uniform() * n); }

static double showed(uint64_t ticks)
{
    unsigned i = 1;
    while (odd.corner[i].ticks < (double)ticks) i++;
    const double all = odd.corner[i].ticks - odd.corner[i - 1].ticks;
    const double part = all > 0 ? ((double)ticks - odd.corner[i - 1].ticks) / all : 0;
    return odd.corner[i - 1].host + part * (odd.corner[i].host - odd.corner[i - 1].host);
}

static void read_at(double host, double ticks)
{
    odd.read[odd.reads++] = (npuprof_anchor_){ .device_ticks = (uint64_t)ticks,
                                               .host_before = (uint64_t)host - up_to(300),
                                               .host_after = (uint64_t)host + 1 + up_to(300) };
}

/* One part in `calm`, or none, runs as it should not: it stands, or jumps. */
static void make_odd(unsigned calm)
{
    double host = SECOND, ticks = 1000000;
    odd.corners = odd.reads = 0;
    for (unsigned part = 0; part < PARTS; part++) {
        const bool runs = up_to(calm) > 0, jumps = !runs && up_to(2);
        const double lasts = jumps ? 1 : 1000 + up_to(20000000), at = floor(lasts * uniform());
        odd.corner[odd.corners].host = host;
        odd.corner[odd.corners++].ticks = ticks;
        if (!jumps) read_at(host + at, floor(ticks + (runs ? at / 40 : 0)));
        host += lasts;
        ticks += runs ? lasts / 40 : jumps ? up_to(500000) : 0;
    }
    odd.corner[odd.corners].host = host;
    odd.corner[odd.corners++].ticks = ticks;
}

static int by_ticks(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Whatever the counter does, and whatever its rate is said to be, each stamp lies within its bound, and none
   before one of fewer ticks. */
static void bounds(void)
{
    static const uint64_t said[] = { HZ, HZ, 0, HZ / 4, 4 * (uint64_t)HZ };
    unsigned mapped = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t stamp[STAMPS], last = 0, host, error;
        make_odd(round % 2 ? 3 : 40);
        const npuprof_map_reads_ reads = { odd.read, odd.reads, NULL, 0,
                                           { SECOND, SECOND, said[round % 5], 2000, false, false } };
        const uint64_t from = odd.read[0].device_ticks, to = odd.read[odd.reads - 1].device_ticks;
        for (unsigned i = 0; i < STAMPS; i++)
            stamp[i] = i < STAMPS / 2 ? odd.read[up_to(odd.reads)].device_ticks + i % 3 - 1
                                      : from + (uint64_t)(uniform() * (double)(to - from));
        qsort(stamp, STAMPS, sizeof *stamp, by_ticks);
        for (unsigned i = 0; i < STAMPS; i++) {
            if (stamp[i] <= from || stamp[i] >= to) continue;
            if (!npuprof_map_ticks_(&reads, stamp[i], &host, &error)) continue;
            CHECK((double)host - (double)error <= showed(stamp[i]) + 1);
            CHECK((double)(host + error) >= showed(stamp[i] + 1) - 1);
            CHECK(host >= last);
            last = host;
            mapped++;
        }
    }
    CHECK(mapped > ROUNDS * STAMPS / 2);
}

/* 20 reads, 10 ms apart, of a counter that moves by so many ticks in between, or by half of it, in turn. */
static void move(uint64_t ticks)
{
    uint64_t now = 1000000;
    for (odd.reads = 0; odd.reads < 20; now += odd.reads % 2 ? ticks : ticks / 2) {
        const uint64_t host = SECOND + odd.reads * (uint64_t)10000000;
        odd.read[odd.reads++] = (npuprof_anchor_){ .device_ticks = now, .host_before = host,
                                                   .host_after = host + 400 };
    }
}

/* Two stamps in the gap behind read 10, so many ticks behind its begin; how far they are apart. */
static uint64_t apart(uint64_t hz, uint64_t a, uint64_t b)
{
    const npuprof_map_reads_ reads = { odd.read, odd.reads, NULL, 0,
                                       { SECOND, SECOND, hz, 2000, false, false } };
    const npuprof_anchor_ *const from = &odd.read[10];
    uint64_t host[2], error[2];
    CHECK_STOP(npuprof_map_ticks_(&reads, from->device_ticks + a, &host[0], &error[0]));
    CHECK_STOP(npuprof_map_ticks_(&reads, from->device_ticks + b, &host[1], &error[1]));
    for (int i = 0; i < 2; i++) {
        CHECK(host[i] >= from->host_after && host[i] <= from[1].host_before);
        CHECK_UINT(error[i], npuprof_max_(host[i] - from->host_before, from[1].host_after + 1 - host[i]));
    }
    return host[1] - host[0];
}

/* The length of what lies between two reads: as its ticks take by the nominal rate, around the middle; at
   most its part of the time between the reads. */
static void lengths(void)
{
    move(20000);                           /* it stands most of the time */
    CHECK_UINT(apart(HZ, 5000, 15000), 400000);
    CHECK_UINT(apart(HZ, 1, 19999), 19998 * 40);
    CHECK_UINT(apart(2 * HZ, 5000, 15000), 200000);
    CHECK_UINT(apart(0, 5000, 15000), 0);  /* nobody knows its rate */
    move(2000000);                         /* it jumps */
    const uint64_t length = apart(HZ, 500000, 1500000);
    CHECK(length >= 4999000 && length <= 5000000);
    CHECK_UINT(apart(0, 500000, 1500000), 0);
}

/* A clock with too many steps: its order alone counts in gaps without one, too. */
static void many_steps(void)
{
    for (odd.reads = 0; odd.reads < 40;) {
        const uint64_t host = SECOND + odd.reads * (uint64_t)10000000;
        const uint64_t ticks = host / 40 + odd.reads / 10 * (uint64_t)1000000;
        odd.read[odd.reads++] = (npuprof_anchor_){ .device_ticks = ticks, .host_before = host,
                                                   .host_after = host + 400 };
    }
    const uint64_t length = apart(HZ, 50000, 150000);
    CHECK(length > 3999000 && length <= 4000000);
}

CHECK_MAIN(CASE(bounds), CASE(lengths), CASE(many_steps))

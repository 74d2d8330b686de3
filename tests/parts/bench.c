/* What recording costs here, as a ratio to the floor: two clock reads and one 16-byte store. Floor and library alternate in one
   process; medians over the rounds, with the middle half's spread. SPDX-License-Identifier: MIT
   Build and run: make bench. Exits with 1 when the floor itself was unstable. */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 2000, ROUNDS = 151, ARENA_BYTES = 256 * 1024 * 1024 };
#define BARRIER() __asm__ volatile("" ::: "memory")

static uint64_t ring[1020];
static unsigned at;
static void floor_span(void)
{
    uint64_t *record = ring + at;
    at = at == 1018 ? 0 : at + 2;
    record[0] = npuprof_ticks_();
    BARRIER();
    record[1] = npuprof_ticks_();
}
static void nothing(void) { BARRIER(); }
static void span(void)
{
    PROF_SCOPE("span");
    BARRIER();
}
static void one_argument(void)
{
    PROF_SCOPE_ARGS("bench", "span", PROF_ARGS(PROF_INT("n", 1)));
    BARRIER();
}
static void four_arguments(void)
{
    PROF_SCOPE_ARGS("bench", "span", PROF_ARGS(PROF_INT("a", 1), PROF_INT("b", 2), PROF_REAL("c", 3), PROF_BOOL("d", true)));
    BARRIER();
}
static char run_time_name[] = "a run-time name";
static void named(void)
{
    WITH_BASE_PROFILER(NULL, run_time_name, NULL, PROF_NO_ARGS, BARRIER());
}
static void instant(void) { PROF_INSTANT("bench", "moment", PROF_NO_ARGS); }
static void counter(void) { PROF_COUNTER("value", 1); }
static void phases(void)
{
    PROF_PHASES("first");
    for (int i = 0; i < 9; i++) {
        PROF_NEXT("next");
        BARRIER();
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static uint64_t batch(void (*volatile f)(void))
{
    const uint64_t start = npuprof_ticks_();
    for (int i = 0; i < BATCH; i++) f();
    return npuprof_ticks_() - start;
}

int main(void)
{
    static const struct { const char *name; void (*f)(void); double spans; int recording; } cases[] = {
        { "span", span, 1, 1 }, { "span, 1 argument", one_argument, 1, 1 }, { "span, 4 arguments", four_arguments, 1, 1 },
        { "span, run-time name", named, 1, 1 }, { "phase (PROF_NEXT)", phases, 10, 1 }, { "instant", instant, 1, 1 },
        { "counter", counter, 1, 1 }, { "span, disabled", span, 1, 0 }, { "empty function", nothing, 1, 0 },
    };
    enum { CASES = sizeof cases / sizeof *cases };
    static double ratio[ROUNDS], floor_ns[ROUNDS];
    int unstable = 0;
    const npuprof_desc desc = { .arena = malloc(ARENA_BYTES), .arena_bytes = ARENA_BYTES };
    if (!desc.arena) return 2;
    memset(desc.arena, 1, ARENA_BYTES);                                 /* page faults are not in the figures */
    if (npuprof_init(&desc) != NPUPROF_OK) return 2;
    const double ns_per_tick = (double)npuprof_ns_per_4g_ticks_() / 4294967296.0;
    printf("%-24s %10s %18s %10s\n", "", "x floor", "middle half", "ns");
    for (int c = 0; c < CASES; c++) {
        if (cases[c].recording) npuprof_start(1);
        for (int r = 0; r < ROUNDS; r++) {
            const double base = (double)batch(floor_span);
            ratio[r] = (double)batch(cases[c].f) / base / cases[c].spans;
            floor_ns[r] = base * ns_per_tick / BATCH;
        }
        npuprof_stop();
        qsort(ratio, ROUNDS, sizeof *ratio, by_value);
        qsort(floor_ns, ROUNDS, sizeof *floor_ns, by_value);
        unstable |= floor_ns[ROUNDS * 3 / 4] > 1.2 * floor_ns[ROUNDS / 4];
        printf("%-24s %10.3f %8.3f .. %5.3f %10.2f\n", cases[c].name, ratio[ROUNDS / 2], ratio[ROUNDS / 4], ratio[ROUNDS * 3 / 4],
               ratio[ROUNDS / 2] * floor_ns[ROUNDS / 2]);
    }
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    printf("floor %.1f ns (two clock reads and a 16-byte store); recorded %llu, lost %llu\n", floor_ns[ROUNDS / 2],
           (unsigned long long)stats.recorded, (unsigned long long)stats.lost);
    if (unstable) puts("UNSTABLE: the floor moved by more than a fifth; run again on a quiet machine");
    return unstable;
}

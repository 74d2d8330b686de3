/* npuprof-judge: what npuprof_npu_open() would refuse of a description, for `npuprof.py gen`.
   SPDX-License-Identifier: MIT

       npuprof-judge [ticks] [PMU ...] < FILE.json

   FILE.json: what `npuprof.py gen --json` writes, and bar_bytes and memory_bytes where there is a BAR and
   where a ring lies in memory. ticks: a function reads the counter; PMU: and this event counter, by its
   number. The checks are those of open, before it maps or reads anything; so a device without memory can be
   judged.

   Exit code 0: it would be opened, if the device is there. 1: two lines say which part is wrong, and how. 2:
   it is no description. */
#define NPUPROF_IMPLEMENTATION
#include "npuprof_describe.c"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static npuprof_npu npu;

static uint64_t no_ticks(void *user) { (void)user; return 0; }

static bool no_event(void *user, unsigned i, uint64_t *value)
{
    (void)user, (void)i, (void)value;
    return false;
}

/* The whole standard input. */
static char *whole(size_t *bytes)
{
    char *input = NULL;
    size_t space = 0;
    for (*bytes = 0;; *bytes += fread(input + *bytes, 1, space - *bytes, stdin)) {
        if (feof(stdin) || ferror(stdin)) return input;
        if (*bytes < space) continue;
        space = space ? 2 * space : 1 << 16;
        char *const more = (char *)realloc(input, space);
        if (!more) exit(2);
        input = more;
    }
}

/* A place that nothing else has, and nobody reads. */
static const volatile void *placed(unsigned number)
{
    return (const volatile void *)((uintptr_t)(number + 1) << (8 * sizeof(uintptr_t) - 9));
}

/* Ends the program if that part is wrong. */
static void judge(npuprof_result result, const char *part, unsigned number)
{
    if (result == NPUPROF_OK) return;
    printf("%s %u\n%s\n", part, number, npuprof_result_string(result));
    exit(1);
}

/* Where a description names no memory, the caller of open sets it. */
static void place(npuprof_npu_desc *d, npuprof_npu_ring *rings, unsigned count)
{
    if (d->bar_bytes) d->bar = placed(NPUPROF_NPU_RINGS);
    if (d->progress.index.memory_bytes) d->progress.index.memory = placed(NPUPROF_NPU_RINGS + 1);
    for (unsigned i = 0; i < count; i++)
        if (rings[i].memory_bytes) rings[i].memory = placed(i);
}

/* Ends the program if that part reaches behind the BAR. */
static void judge_end(const char *part, unsigned number, const char *what, size_t end)
{
    if (end <= npu.desc_.bar_bytes) return;
    printf("%s %u\ndesc.%s.%s leads to %#" PRIx64 ", outside the BAR: its bar_bytes is %#" PRIx64 "\n", part,
           number, part, what, (uint64_t)end, (uint64_t)npu.desc_.bar_bytes);
    exit(1);
}

static void judge_rings(void)
{
    size_t needed = 0;
    judge(npuprof_npu_check_queues_(&npu, &needed), "ring", 0);
    for (unsigned i = 0; i < npu.queue_count_; i++) {
        size_t end = 0;
        judge(npuprof_npu_check_place_(&npu, &npu.queues_[i], &end), "ring", i);
        judge_end("ring", i, npu.queues_[i].is.memory ? "producer" : "offset", end);
    }
}

static void judge_all(npuprof_npu_desc *d)
{
    size_t needed = 0;
    npuprof_npu_desc one = *d;
    npu.desc_ = *d;
    npu.desc_.requirement_count = 0;
    judge(npuprof_npu_check_desc_(&npu, &needed), "counter", 0);
    for (one.requirement_count = 1; one.requirements < d->requirements + d->requirement_count;
         one.requirements++)
        judge(npuprof_npu_check_requirements_(&one, &needed), "requirement",
              (unsigned)(one.requirements - d->requirements));
    judge_rings();
    judge(npuprof_npu_check_progress_(&npu, &needed), "progress", 0);
    judge_end("progress", 0, "index", needed);
    for (unsigned i = 0; i < d->pmu_count; i++) {
        npuprof_npu_pmu event = d->pmu[i];
        judge(npuprof_npu_check_event_(&event, &needed), "pmu", i);
    }
    judge(npuprof_npu_check_pmu_(&npu, &needed), "pmu", d->pmu_count - 1);
}

int main(int argc, char **argv)
{
    size_t bytes;
    npuprof_npu_desc d;
    char *const json = whole(&bytes);
    const size_t left = ((size_t)1 << 20) + 8 * bytes;
    void *const storage = malloc(left);
    const char *const bad = storage ? npuprof_describe(&d, json, bytes, storage, left) : json;
    if (bad) return fprintf(stderr, "npuprof-judge: no description from \"%.40s\" on\n", bad), 2;
    /* Why cast: what the description points to lies in `storage`. */
    place(&d, d.ring_count ? (npuprof_npu_ring *)d.rings : &d.ring, d.ring_count ? d.ring_count : 1);
    for (int i = 1; i < argc; i++) {
        const unsigned long number = strtoul(argv[i], NULL, 10);
        if (!strcmp(argv[i], "ticks")) d.read_ticks = no_ticks;
        else if (number < d.pmu_count) ((npuprof_npu_pmu *)d.pmu)[number].read = no_event;
    }
    judge_all(&d);
    return 0;
}

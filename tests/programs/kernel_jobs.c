/* A driver in a kernel, made on this machine for firmware/test_jobs.py: its completions go raw into the
   image.
   usage: kernel_jobs MODE JOBS SEED: ram.bin is its arena, truth.txt what ran.
     plain   two rings of records without stamps, whose numbers are unique in their ring
     stamp   one ring with 32-bit stamps of a counter that wraps often
     power   as stamp, and the counter begins anew now and then, while nothing runs
     hand    npuprof_npu_complete_host(), and no counter
     calls   no records: npuprof_npu_begin() and npuprof_npu_end_args() read the counter
   SPDX-License-Identifier: MIT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t ticks = 5000000;
static unsigned task;
#define NPUPROF_NOW() ticks
#define NPUPROF_NOW_HZ 1000000000u
#define NPUPROF_FREESTANDING
#define NPUPROF_NO_JSON
#define NPUPROF_CONTEXT() task
#define NPUPROF_CONTEXTS 256
#define NPUPROF_ARENA_BYTES 0
#define NPUPROF_NPU_RECORDS
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"

enum { LAG = 500 };   /* jobs that are open at once, at most */
typedef struct job { uint32_t number, handle; unsigned ring, id, context; uint64_t start, end; } job;

static uint64_t seed, base = 4000000;
static uint64_t draw(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
}

static uint64_t counter(void *user)      /* 1.6 GHz */
{
    (void)user;
    ticks += 40;
    return (ticks - base) * 8 / 5;
}

static bool is_on(void *user) { return user == NULL; }

static npuprof_npu npu;
static FILE *truth;

static void finish(const char *mode, job *j)
{
    static const char *const units[] = { "a", "b", "c" };
    task = 200;                          /* the interrupt */
    if (strcmp(mode, "calls") == 0) {
        j->end = ticks;
        if (npuprof_npu_end_args(&npu, j->handle, PROF_ARGS(PROF_UINT("number", j->number))) != NPUPROF_OK ||
            npuprof_npu_end(&npu, j->handle) != NPUPROF_ERR_ARGUMENT) exit(5);
        return;
    }
    if (strcmp(mode, "hand") == 0) {
        const int64_t end = npuprof_now_ns();
        j->end = ticks;
        (void)npuprof_npu_complete_host(&npu, j->id + 1, j->ring, NULL, NULL, end - 700, end,
                                        PROF_ARGS(PROF_UINT("number", j->number),
                                                  PROF_STR("unit", units[j->number % 3])), true);
        return;
    }
    uint32_t entry[4] = { j->id | 5u << 16, (uint32_t)counter(NULL), j->number, 0 };
    j->end = ticks;
    entry[3] = entry[1];
    entry[1] -= 1120;                    /* 700 ns */
    (void)npuprof_npu_feed(&npu, strcmp(mode, "plain") == 0 ? j->ring : 0, entry, sizeof entry);
}

static void describe(const char *mode, npuprof_npu_desc *desc, npuprof_npu_ring *rings)
{
    static const npuprof_npu_op ops[] = { { 5, "convolution" } };
    memset(rings, 0, 2 * sizeof *rings);
    desc->name = "acme";
    rings[0].feed = true;
    rings[0].entry_bytes = 16;
    rings[0].job.width_bytes = rings[0].op.width_bytes = 2;
    rings[0].op.offset = 2;
    rings[0].args[0].name = "number";
    rings[0].args[0].field.offset = 8;
    rings[0].args[0].field.width_bytes = 4;
    rings[0].ops = ops;
    rings[0].op_count = 1;
    rings[0].stamp_clock = NPUPROF_NPU_STAMP_NONE;
    rings[1] = rings[0];
    rings[1].pe_base = 1;
    rings[1].feed = false;               /* described as polled: it is fed all the same */
    rings[1].count = 64;
    rings[1].producer.offset = 64;
    desc->pe_count = 2;
    if (strcmp(mode, "hand") == 0) {
        desc->anchors_only = true;
        return;
    }
    desc->read_ticks = counter;
    desc->counter.hz = 1600000000;
    if (strcmp(mode, "calls") == 0) return;
    desc->rings = rings;
    desc->ring_count = 2;
    if (strcmp(mode, "plain") == 0) return;
    if (strcmp(mode, "power") == 0) desc->is_on = is_on;
    desc->ring_count = 1;
    rings[0].stamp_clock = NPUPROF_NPU_STAMP_COUNTER;
    rings[0].start.offset = 4;
    rings[0].end.offset = 12;
    rings[0].start.width_bytes = rings[0].end.width_bytes = 4;
}

int main(int argc, char **argv)
{
    static job open[LAG];
    const char *const mode = argc > 1 ? argv[1] : "plain";
    const unsigned jobs = argc > 2 ? (unsigned)atoi(argv[2]) : 1000;
    const size_t bytes = (argc > 4 ? (size_t)atoi(argv[4]) : (size_t)jobs * 512 + 65536) & ~(size_t)15;
    const unsigned most = strcmp(mode, "power") == 0 ? 6 : LAG;
    unsigned ids[2] = { 0, 0 }, count = 0;
    static npuprof_desc init;
    static npuprof_npu_desc desc;
    static npuprof_npu_ring rings[2];
    seed = argc > 3 ? (uint64_t)atoi(argv[3]) : 1;
    init.arena = calloc(1, bytes);
    init.arena_bytes = bytes;
    truth = fopen("truth.txt", "w");
    if (!truth || npuprof_init(&init) != NPUPROF_OK || npuprof_start(1) != NPUPROF_OK) return 1;
    describe(mode, &desc, rings);
    if (npuprof_npu_open(&npu, &desc) != NPUPROF_OK) return 2;
    for (unsigned n = 0; n < jobs || count;) {
        ticks += 1 + draw(3000);
        if (draw(500) == 0) ticks += draw(4) == 0 ? 6000000000u : 20000000;      /* idle */
        if (strcmp(mode, "power") == 0 && !count && draw(4) == 0) {
            ticks += draw(3) * 2000000000;
            base = ticks - 1000;
        }
        if (n < jobs && count < most && (!count || draw(2))) {
            job *const j = &open[count++];
            j->number = n++;
            j->ring = (unsigned)draw(2);
            j->id = ids[strcmp(mode, "plain") == 0 ? j->ring : 0]++ & 0xFFFF;
            task = 1 + (unsigned)draw(3);
            j->context = task;
            char name[16];
            sprintf(name, "job %u", (unsigned)j->number);
            j->start = ticks;
            const unsigned id = j->id + (strcmp(mode, "hand") == 0);
            if (strcmp(mode, "calls") == 0) {
                j->handle = npuprof_npu_begin(&npu, j->ring, name, "NPU", PROF_NO_ARGS);
            } else if (draw(2)) {
                WITH_NPU_PROFILER(&npu, j->ring, name, "NPU", PROF_NO_ARGS,
                                  ticks += 100; npuprof_npu_set_job(&npu, id));
            } else {
                const uint32_t handle = npuprof_npu_begin(&npu, j->ring, name, "NPU", PROF_NO_ARGS);
                task = 1 + (unsigned)draw(3);
                ticks += 100;
                if (npuprof_npu_set_job_of(&npu, handle, id) != NPUPROF_OK) return 3;
                if (npuprof_npu_end(&npu, handle) != NPUPROF_OK) return 4;
            }
            ticks += 1000;
        } else if (count) {              /* any of them is done */
            const unsigned at = (unsigned)draw(count);
            finish(mode, &open[at]);
            fprintf(truth, "%u %u %llu %llu\n", (unsigned)open[at].number, open[at].ring,
                    (unsigned long long)open[at].start, (unsigned long long)open[at].end);
            open[at] = open[--count];
        }
    }
    npuprof_npu_close(&npu);
    FILE *const file = fopen("ram.bin", "wb");
    return !file || fwrite(init.arena, 1, bytes, file) != bytes || fclose(file) != 0 || fclose(truth) != 0;
}

/* One mistake of a user, named by argv[1]; the trace goes to argv[2]. Its device counts on a clock of the
   program: each span takes 1 ms.
   SPDX-License-Identifier: MIT */
#include "fake_clock.h"
#include "npuprof.h"
#include "npuprof_npu.h"

#include <string.h>

enum { SPANS = 50 };
static npuprof_npu npu, other;
static unsigned bits = 64;
static uint64_t hz = 25000000, standing_from = UINT64_MAX;
static bool off;

static uint64_t counter(void *unused)
{
    (void)unused;
    const uint64_t now = fake_ticks < standing_from ? fake_ticks : standing_from;
    const uint64_t ticks = 123456 + (uint64_t)((double)now * (double)hz / 1e9);
    return off ? UINT64_MAX : bits < 64 ? ticks & ((UINT64_C(1) << bits) - 1) : ticks;
}

static bool is(const char *mistake, const char *name) { return strcmp(mistake, name) == 0; }

static void work(npuprof_npu *device)
{
    for (int i = 0; i < SPANS; i++) {
        WITH_NPU_PROFILER(device, 0, "conv", "NPU", PROF_NO_ARGS, (void)(fake_ticks += 1000000));
        (void)(fake_ticks += 300000);
    }
}

/* Executions with a number of the device's own; of ten the last is not handed over. */
static void numbered(void)
{
    uint64_t ticks;
    for (int i = 0; i < SPANS; i++) {
        (void)npuprof_npu_read(&npu, &ticks);
        (void)(fake_ticks += 1000000);
        if (i % 10 != 9)
            npuprof_npu_span(&npu, 0, "conv", "NPU", ticks, ticks + 20000,
                             PROF_ARGS(PROF_INT("execution_index", i)));
    }
    (void)npuprof_npu_sync(&npu);
}

int main(int argc, char **argv)
{
    const char *const mistake = argc > 2 ? argv[1] : "", *const path = argc > 2 ? argv[2] : "m.json";
    npuprof_npu_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "npu0";
    desc.read_ticks = counter;
    desc.counter.hz = is(mistake, "hz 100") ? hz * 100 : is(mistake, "hz 3%") ? hz / 100 * 103 : hz;
    if (is(mistake, "bits 16")) bits = 16;
    if (is(mistake, "bits 20")) bits = 20;
    if (is(mistake, "stands")) standing_from = fake_ticks;
    if (is(mistake, "stands later")) standing_from = fake_ticks + 20000000;
    off = is(mistake, "dead") || is(mistake, "dead at first");
    if (is(mistake, "early")) return npuprof_dump(path);
    npuprof_start(is(mistake, "level") ? 0 : 1);
    if (!is(mistake, "never opened")) (void)npuprof_npu_open(&npu, &desc);
    off = false;
    if (is(mistake, "dead at first")) (void)npuprof_npu_open(&npu, &desc);
    desc.name = "npu1";
    if (is(mistake, "idle device")) (void)npuprof_npu_open(&other, &desc);
    if (is(mistake, "end")) PROF_END();
    if (is(mistake, "ends")) {
        PROF_BEGIN("c", "a");
        PROF_END();
        PROF_END();
        PROF_END();
    }
    if (is(mistake, "open")) PROF_BEGIN("c", "left open");
    if (is(mistake, "holes")) numbered();
    work(&npu);
    if (is(mistake, "paused")) npuprof_pause();
    if (!is(mistake, "not closed")) npuprof_npu_close(&npu);
    npuprof_npu_close(&other);
    return npuprof_dump(path);
}

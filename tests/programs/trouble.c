/* Provokes what the README's "When things go wrong" lists, one a run: trouble WHAT [FILE...]. What a user
   would see goes to standard output.
   SPDX-License-Identifier: MIT */
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "fake_clock.h"
#include "npuprof.h"
#include "npuprof_npu.h"

/* A device: 64-bit counter of 25 ticks a microsecond at 0x10 and 0x14, producer index at 0x20, 8 records of
   16 bytes (job, start, end, number) at 0x100. */
static uint32_t bar[256];
static npuprof_npu npu;

static void pass(uint64_t ns)
{
    fake_ticks += ns;
    bar[4] = (uint32_t)(fake_ticks / 40);
}

static npuprof_result open_device(bool with_ring)
{
    npuprof_npu_desc desc = { 0 };
    desc.name = "npu0", desc.bar = bar, desc.bar_bytes = sizeof bar;
    desc.counter.lo_offset = 0x10, desc.counter.hi_offset = 0x14;
    if (with_ring) {
        desc.ring.offset = 0x100, desc.ring.entry_bytes = 16, desc.ring.count = 8,
            desc.ring.producer.offset = 0x20;
        desc.ring.job = (npuprof_npu_field){ .offset = 0, .width_bytes = 4 },
            desc.ring.start = (npuprof_npu_field){ .offset = 4, .width_bytes = 4 };
        desc.ring.end = (npuprof_npu_field){ .offset = 8, .width_bytes = 4 },
            desc.ring.sequence = (npuprof_npu_field){ .offset = 12, .width_bytes = 4 };
    }
    return npuprof_npu_open(&npu, &desc);
}

static void complete(uint32_t job, uint32_t start, uint32_t end)
{
    uint32_t *r = bar + 64 + 4 * (bar[8] % 8);
    r[0] = job, r[1] = start, r[2] = end, r[3] = bar[8];
    bar[8]++;
}

static int say(npuprof_result result)
{
    puts(npuprof_result_string(result));
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *file = argc > 2 ? argv[2] : "";
    if (!strcmp(what, "mark")) {
        { PROF_SCOPE_CAT("cat", "mark"); pass(10); }
        return 0;
    }
    if (!strcmp(what, "not started")) {
        { PROF_SCOPE("mark"); pass(10); }
        return (int)npuprof_dump(file);
    }
    if (!strcmp(what, "killed")) {
        { PROF_SCOPE("mark"); pass(10); }
        raise(SIGKILL);
    }
    if (!strcmp(what, "left")) {
        { PROF_SCOPE("mark"); pass(10); }
        _exit(0);
    }
    if (!strcmp(what, "sentence")) {
        for (npuprof_result r = NPUPROF_OK; r < NPUPROF_RESULT_COUNT; r = (npuprof_result)(r + 1)) say(r);
        return 0;
    }
    pass(1000);
    if (!strcmp(what, "lost")) {
        static uint64_t small[256];
        npuprof_desc desc = { 0 };
        desc.arena = small, desc.arena_bytes = sizeof small;
        if (npuprof_init(&desc) != NPUPROF_OK) return 3;
    }
    npuprof_start(1);
    if (!strcmp(what, "lost")) {
        for (int i = 0; i < 1000; i++) { PROF_SCOPE("mark"); pass(10); }
        return (int)npuprof_dump(file);
    }
    if (!strcmp(what, "full")) {
        { PROF_SCOPE("mark"); pass(10); }
        return say(npuprof_dump(file)), (int)npuprof_dump(argv[3]);
    }
    if (!strcmp(what, "dead")) {
        memset(bar, 0xFF, sizeof bar);
        return say(open_device(false));
    }
    if (!strcmp(what, "range")) {
        npuprof_npu_desc desc = { 0 };
        desc.bar = bar, desc.bar_bytes = sizeof bar, desc.counter.lo_offset = sizeof bar,
            desc.counter.bits = 32;
        return say(npuprof_npu_open(&npu, &desc));
    }
    if (open_device(!strcmp(what, "causality") || !strcmp(what, "arrows")) != NPUPROF_OK) return 4;
    uint64_t ticks;
    if (!strcmp(what, "zeros")) {
        pass(5000000);
        if (npuprof_npu_read(&npu, &ticks) != NPUPROF_OK) return 5;
        fake_ticks += 1000000, bar[4] = bar[5] = 0;
        return say(npuprof_npu_read(&npu, &ticks));
    }
    if (!strcmp(what, "frozen")) {
        const uint32_t stands = bar[4];
        npuprof_result result = NPUPROF_OK;
        for (int i = 0; i < 5 && result == NPUPROF_OK; i++) {
            pass(60000000);
            bar[4] = stands;
            result = npuprof_npu_read(&npu, &ticks);
        }
        return say(result);
    }
    if (!strcmp(what, "reset")) {
        pass(5000000);
        if (npuprof_npu_read(&npu, &ticks) != NPUPROF_OK) return 5;
        fake_ticks += 1000000, bar[4] = 20000;
        say(npuprof_npu_read(&npu, &ticks));
        fake_ticks += 1000000, bar[4] += 25000;
        return say(npuprof_npu_read(&npu, &ticks));
    }
    if (!strcmp(what, "causality") || !strcmp(what, "arrows")) {
        pass(100000);
        (void)npuprof_npu_sync(&npu);      /* the first read that sees the counter move */
        pass(100000);
        WITH_NPU_PROFILER(&npu, 0, "conv1", "NPU", PROF_NO_ARGS, {
            const uint32_t job = (uint32_t)npuprof_npu_job(&npu), now = bar[4];
            pass(100000);
            /* it worked before it was asked */
            if (*what == 'c') complete(job, now - 2000, now - 1000);
            else complete(job + 77, now + 10, now + 100);                   /* a job that nobody submitted */
        });
        pass(1000);
        npuprof_npu_drain(&npu);
        npuprof_npu_close(&npu);
        return (int)npuprof_dump(file);
    }
    return 2;
}

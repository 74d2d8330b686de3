/* devices when the table of names is full, and how far off their host stamps may be
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include "fake_clock.h"
#define NPUPROF_ARENA_BYTES 65536
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "recorded.h"

/* Texts that stay what they are. */
static const char *text(unsigned n)
{
    static char texts[4000][12];
    snprintf(texts[n], sizeof texts[n], "text %u", n);
    return texts[n];
}

static uint64_t lost(unsigned cause)
{
    const npuprof_stats s = stats_now();
    return s.lost_by_cause[cause];
}

/* Each epoch takes an entry, until none is left. Of those that did not fit the newest counts. */
static void anchors_that_do_not_fit(void)
{
    npuprof_start(1);
    const uint32_t device = npuprof_device_add_("npu", 1, 1000000000, 100000);
    const uint64_t begin = fake_ticks;
    uint32_t epoch = 0, full = 0;
    PROF_INSTANT("c", "begin", PROF_NO_ARGS);
    while (full < 3 && epoch < 4000) {
        fake_ticks += 1000;
        const npuprof_anchor_ anchor = { 7000 + epoch, fake_ticks, fake_ticks };
        const npuprof_result r = npuprof_device_anchor_(device, epoch, &anchor);
        CHECK(r == (full ? NPUPROF_ERR_TABLE_FULL : NPUPROF_OK) || (!full && r == NPUPROF_ERR_TABLE_FULL));
        full += r != NPUPROF_OK;
        epoch++;
    }
    CHECK_INT(full, 3);
    const uint64_t at = fake_ticks;
    for (uint32_t back = 1; back <= 2; back++) {
        const uint64_t ticks = 7000 + epoch - back;
        const npuprof_device_event_ event = {
            device, epoch - back, 0, NPUPROF_STAMP_DEVICE, NULL, NULL, ticks, ticks, NULL
        };
        npuprof_device_span_(&event, PROF_NO_ARGS);
    }
    fake_ticks += 1000;
    json_node *const t = written(), *const first = trace_event(t, "i", "begin", 0);
    CHECK_STOP(first && trace_event(t, "X", "", 0));
    CHECK_INT(trace_start(trace_event(t, "X", "", 0)) - trace_start(first), (int64_t)(at - begin));
    CHECK(!trace_event(t, "X", "", 1));
}

static void record(npuprof_device_texts_ *texts, uint32_t device, unsigned name, uint64_t ticks,
                   npuprof_args args)
{
    const npuprof_device_event_ event = {
        device, 0, 0, NPUPROF_STAMP_DEVICE, NULL, text(name), ticks, ticks, NULL
    };
    npuprof_device_record_(texts, true, &event, args);
}

/* A record whose name or keys find no place is counted, and takes the name of no other. */
static void names_that_do_not_fit(void)
{
    npuprof_device_texts_ texts = { 0 };
    npuprof_start(1);
    const uint32_t device = npuprof_device_add_("npu", 1, 1000000000, 100000);
    const npuprof_anchor_ anchor = { 0, fake_ticks, fake_ticks };
    const npuprof_anchor_ later = { 5000, fake_ticks + 5000, fake_ticks + 5000 };
    CHECK_INT(npuprof_device_anchor_(device, 0, &anchor), NPUPROF_OK);
    CHECK_INT(npuprof_device_anchor_(device, 0, &later), NPUPROF_OK);
    unsigned n = 0;
    for (; n < 3000 && !lost(NPUPROF_LOST_NAMES); n++)
        record(&texts, device, n, n, PROF_NO_ARGS);
    CHECK(n > 20 && n < 3000);
    for (unsigned i = 0; i < 5; i++)
        record(&texts, device, 3000 + i, 1, PROF_NO_ARGS);
    CHECK_UINT(lost(NPUPROF_LOST_NAMES), 6);
    for (int i = 0; i < 2; i++)
        record(&texts, device, 0, 1, PROF_ARGS(PROF_INT("a key of no place", 1)));
    CHECK_UINT(lost(NPUPROF_LOST_ARGUMENTS), 2);
    const npuprof_stats s = stats_now();
    CHECK_UINT(s.recorded, n + 1);
    json_node *const t = written();
    CHECK_UINT(trace_count(t, "X", text(0)), 3);
    CHECK_UINT(trace_count(t, "X", text(1)), 1);
    CHECK_UINT(trace_count(t, "X", text(n - 2)), 1);
}

/* 16 bits for an error: never less than it, and hardly more. */
static void errors_of_host_stamps(void)
{
    CHECK_UINT(npuprof_host_error_code_(0), 1);
    for (unsigned bit = 0; bit < 42; bit++)
        for (uint64_t add = 0; add < 3; add++) {
            const uint64_t error = ((uint64_t)1 << bit) + add - 1;
            const uint32_t code = npuprof_host_error_code_(error);
            const uint64_t means = (uint64_t)(code & 2047) << (code >> 11);
            CHECK(means >= error && means <= error + error / 1024 + 1 && code <= 65535);
        }
    CHECK_UINT(npuprof_host_error_code_(UINT64_MAX), 0);
}

CHECK_MAIN(CASE(anchors_that_do_not_fit), CASE(names_that_do_not_fit), CASE(errors_of_host_stamps))

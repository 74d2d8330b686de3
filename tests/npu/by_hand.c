/* records by hand: matched, drawn and counted as those of a ring; the example that reads a framed log
   SPDX-License-Identifier: MIT */
#include "check.h"
#define main example_main
#include "examples/08_framed_log.c"
#undef main
#include "trace.h"
#include "fed.h"

static npuprof_npu npu;

static void open_npu(void)
{
    const npuprof_npu_desc desc = { .name = "hand", .anchors_only = true, .pe_count = 2,
                                    .counter = { .hz = 1000000000 } };
    npuprof_start(1);
    device_zero = device_now() - 1000000;
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    CHECK_INT(calibrate(&npu), NPUPROF_OK);
}

static json_node *written(void)
{
    CHECK_INT(calibrate(&npu), NPUPROF_OK);
    npuprof_npu_close(&npu);
    CHECK_INT(npuprof_dump(check_path("t.json")), NPUPROF_OK);
    return trace_load(check_path("t.json"));
}

static uint64_t spin(void)
{
    const uint64_t from = device_now();
    while (device_now() - from < 20000) { }
    return from;
}

static void matching(void)
{
    open_npu();
    uint64_t from[5];
    for (unsigned i = 0; i < 5; i++)
        WITH_NPU_PROFILER(&npu, i % 2, i == 3 ? "third" : "job", "NPU", PROF_NO_ARGS, {
            if (i > 1) npuprof_npu_set_job(&npu, i == 4 ? UINT64_C(0x123456789) : 100 + i);
            from[i] = spin();
        });
    /* 32 bits of a number are not the number; and one that nobody submitted */
    CHECK(!npuprof_npu_complete(&npu, 0x23456789, 0, "unknown", NULL, from[4], from[4] + 10, PROF_NO_ARGS,
                                true));
    CHECK(npuprof_npu_complete(&npu, UINT64_C(0x123456789), 1, "wide", "dma", from[4], from[4] + 10,
                               PROF_ARGS(PROF_UINT("bytes", 64)), true));
    CHECK(npuprof_npu_complete(&npu, 103, 1, "part", NULL, from[3], from[3] + 5,
                               PROF_ARGS(PROF_UINT("instruction_index", 0)), false));
    CHECK(npuprof_npu_complete(&npu, 103, 1, NULL, NULL, from[3], from[3] + 10, PROF_NO_ARGS, true));
    CHECK(!npuprof_npu_complete(&npu, 103, 1, "again", NULL, from[3], from[3] + 10, PROF_NO_ARGS, true));
    CHECK(npuprof_npu_complete(&npu, 102, 0, NULL, NULL, from[2], from[2] + 10, PROF_NO_ARGS, true));
    json_node *t = written(), *wide = device_span(t, "wide", 0);
    CHECK_STOP(wide && device_span(t, "third", 0) && device_span(t, "part", 0));
    CHECK_INT(arg(wide, "job"), 0x123456789);
    CHECK_INT(arg(wide, "bytes"), 64);
    CHECK_INT(arg(wide, "stream"), 0);
    CHECK_STR(json_text(json_get(wide, "cat")), "dma");
    CHECK_STR(trace_track(t, wide), "hand PE 1");
    CHECK_INT(json_int(json_get(device_span(t, "unknown", 0), "args.job")), 0x23456789);
    CHECK(!json_get(device_span(t, "unknown", 0), "args.stream"));
    CHECK_UINT(trace_count(t, "s", "submit"), 3);
    CHECK_INT(said(t, "spans"), 6);
    CHECK_INT(said(t, "ring_lost"), 0);
    CHECK_INT(said(t, "causality_violations"), 0);
}

/* Without numbers: the oldest of the PE, then the oldest of all. */
static void oldest_of_the_lane(void)
{
    open_npu();
    uint64_t at = 0;
    const char *const names[] = { "a", "b", "c" };
    for (unsigned i = 0; i < 3; i++)
        WITH_NPU_PROFILER(&npu, i == 1, names[i], "NPU", PROF_NO_ARGS, at = spin());
    CHECK(npuprof_npu_complete(&npu, 0, 1, NULL, NULL, at + 9000, at + 9010, PROF_NO_ARGS, true));
    CHECK(npuprof_npu_complete(&npu, 0, 0, NULL, NULL, at + 9000, at + 9010, PROF_NO_ARGS, true));
    CHECK(npuprof_npu_complete(&npu, 0, 1, NULL, NULL, at + 9000, at + 9010, PROF_NO_ARGS, true));
    CHECK(!npuprof_npu_complete(&npu, 0, 0, "d", NULL, at + 9000, at + 9010, PROF_NO_ARGS, true));
    json_node *t = written();
    CHECK_STR(trace_track(t, device_span(t, "b", 0)), "hand PE 1");
    CHECK_STR(trace_track(t, device_span(t, "a", 0)), "hand PE 0");
    CHECK_STR(trace_track(t, device_span(t, "c", 0)), "hand PE 1");
    CHECK_UINT(trace_count(t, "s", "submit"), 3);
}

/* recorded + lost = executed: also over a gate that closes, and with stamps that cannot be. */
static void nothing_uncounted(void)
{
    open_npu();
    unsigned executed = 0, muted = 0;
    for (unsigned i = 0; i < 300; i++) {
        const bool off = i % 3 == 1;
        uint64_t id = 0, at = 0;
        if (off) npuprof_stop();
        WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, at = spin());
        WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, {
            id = npuprof_npu_job(&npu);
            at = spin();
        });
        if (off) id = npuprof_npu_job(&npu);
        npuprof_start(1);
        if (off) {
            muted++;
            CHECK(!npuprof_npu_complete(&npu, id, 0, NULL, NULL, at, at + 10, PROF_NO_ARGS, true));
            continue;
        }
        executed++;
        if (i % 3 == 2) npuprof_stop();            /* submitted while on: drawn all the same */
        const uint64_t start = i % 10 == 3 ? at + 20 : at;
        const uint64_t end = i % 10 == 6 ? at + UINT64_C(1000000000000) : at + 10;
        CHECK(npuprof_npu_complete(&npu, id, 0, NULL, NULL, start, end, PROF_NO_ARGS, true));
        npuprof_start(1);
    }
    npuprof_npu_lost(&npu, 7);
    npuprof_npu_lost(&npu, 0);
    json_node *t = written();
    const int64_t lost = said(t, "ring_lost");
    CHECK_INT(records(t, "lost_by_driver"), 7);
    CHECK_INT(records(t, "lost_stamps"), lost - 7);
    CHECK(lost - 7 > 20);
    CHECK_INT(said(t, "spans") + lost - 7, executed);
    CHECK_UINT(muted, 100);
    CHECK_INT(json_int(json_get(t, "metadata.npuprof.lost.device_ring")), lost);
}

static void host_stamps(void)
{
    open_npu();
    WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, {
        npuprof_npu_set_job(&npu, 5);
        (void)spin();
    });
    WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, {
        npuprof_npu_set_job(&npu, 6);
        (void)spin();
    });
    const int64_t start = npuprof_now_ns();
    (void)spin();
    const int64_t end = npuprof_now_ns();
    npuprof_span("host", "test", "truth", start, end, PROF_NO_ARGS);
    CHECK(npuprof_npu_complete_host(&npu, 5, 0, "given", NULL, start, end, PROF_NO_ARGS, true));
    CHECK(npuprof_npu_complete_host(&npu, 6, 0, "submitted", NULL, 0, end, PROF_NO_ARGS, true));
    CHECK(!npuprof_npu_complete_host(&npu, 7, 0, "nobody's", NULL, 0, end, PROF_NO_ARGS, true));
    CHECK(!npuprof_npu_complete_host(&npu, 8, 0, "backwards", NULL, end, start, PROF_NO_ARGS, true));
    CHECK(!npuprof_npu_complete_host(&npu, 9, 0, "future", NULL, end, end + 1000000000, PROF_NO_ARGS, true));
    json_node *t = written(), *given = device_span(t, "given", 0), *from = device_span(t, "submitted", 0);
    json_node *truth = trace_event(t, "X", "truth", 0);
    CHECK_STOP(given && from && truth && device_span(t, "nobody's", 0));
    CHECK_STR(json_text(json_get(given, "args.stamp")), "host");
    const int64_t error = arg(given, "error_ns");
    CHECK(error > 0);
    CHECK(llabs(trace_start(given) - trace_start(truth)) <= error);
    CHECK(llabs(trace_end(given) - trace_end(truth)) <= error);
    CHECK(!json_get(given, "args.start_ticks") && arg(from, "error_ns") > 0);
    CHECK(json_int(json_get(device_span(t, "nobody's", 0), "args.error_ns")) > error);    /* since open */
    json_node *host = trace_event(t, "X", "job", 1);
    CHECK(host && trace_start(from) >= trace_start(host) && trace_start(from) <= trace_end(host));
    CHECK(!device_span(t, "backwards", 0) && !device_span(t, "future", 0));
    CHECK_UINT(trace_count(t, "s", "submit"), 2);
    CHECK_INT(said(t, "host_spans"), 3);
    CHECK_INT(said(t, "spans"), 0);
    CHECK_INT(records(t, "lost_stamps"), 2);
}

/* Whether a span is where it truly was, in times of npuprof_now_ns(), within its error and that of the
   trace's own clock. Why no span of the host beside it: that one's clock has an error that nobody states. */
static bool is_within(json_node *t, json_node *span, int64_t start, int64_t end)
{
    json_node *const bound = json_get(span, "args.error_ns");
    const int64_t zero = json_int(json_get(t, "metadata.npuprof.start_unix_ns"));
    const int64_t clock = json_int(json_get(t, "metadata.npuprof.clock.error_ns"));
    if (!bound || json_int(bound) <= 0) return false;
    const int64_t error = json_int(bound) + clock;
    return llabs(trace_start(span) - (start - zero)) <= error &&
           llabs(trace_end(span) - (end - zero)) <= error;
}

/* A driver that knows a duration alone, and notices the end late by a time that it does not know. */
static void noticed_late(void)
{
    static int64_t begin[300], end[300];
    size_t outside = 0;
    open_npu();
    for (unsigned i = 0; i < 300; i++) {
        WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, npuprof_npu_set_job(&npu, i + 1););
        begin[i] = npuprof_now_ns();
        while (npuprof_now_ns() - begin[i] < 2000) { }
        end[i] = npuprof_now_ns();
        while (npuprof_now_ns() - end[i] < (int64_t)(i * 7919 % 300) * 100) { }
        const int64_t now = npuprof_now_ns();
        const int64_t start = now - (end[i] - begin[i]);
        CHECK(npuprof_npu_complete_host(&npu, i + 1, 0, "late", NULL, start, now, PROF_NO_ARGS, true));
    }
    json_node *t = written();
    for (unsigned i = 0; i < 300; i++) {
        json_node *e = device_span(t, "late", i);
        CHECK_STOP(e != NULL);
        outside += !is_within(t, e, begin[i], end[i]);
    }
    CHECK_UINT(outside, 0);
}

static int64_t work(unsigned i)
{
    for (volatile unsigned n = 0; n < i * 977 % 20000; n++) { }
    return npuprof_now_ns();
}

/* Jobs whose true times are known, handed over in each way that a driver may know them: too late by some
   microseconds, as a length alone, between two sides, with an error of its own. None is outside its error. */
static void told_times(void)
{
    enum { JOBS = 240 };
    static int64_t from[JOBS + 1], to[JOBS + 1];
    char name[20];
    open_npu();
    for (unsigned i = 1; i <= JOBS; i++) {
        npuprof_npu_host_times times = { 0, 0, 0, 0, 0, 0 };
        WITH_NPU_PROFILER(&npu, 0, "job", "NPU", PROF_NO_ARGS, { npuprof_npu_set_job(&npu, i); });
        const int64_t before = work(i), start = work(i + 3), end = work(i + 5), noticed = work(i + 7);
        snprintf(name, sizeof name, "told %u", i);
        from[i] = start, to[i] = end;
        if (i % 4 == 1) {
            CHECK(npuprof_npu_complete_host(&npu, i, 0, name, NULL, i & 8 ? before : end, noticed,
                                            PROF_NO_ARGS, true));
            continue;
        }
        if (i % 4 == 2) times.duration_ns = (uint64_t)(end - start);
        if (i % 4 == 0) times.not_before_ns = before, times.not_after_ns = noticed, times.end_ns = noticed;
        if (i % 4 == 3)
            times.start_ns = before, times.end_ns = noticed,
            times.error_ns = (uint64_t)(noticed - end > start - before ? noticed - end : start - before);
        CHECK(npuprof_npu_complete_times(&npu, i, 0, name, NULL, times, PROF_NO_ARGS, true));
    }
    json_node *t = written();
    for (unsigned i = 1; i <= JOBS; i++) {
        snprintf(name, sizeof name, "told %u", i);
        json_node *span = device_span(t, name, 0);
        CHECK_STOP(span != NULL);
        CHECK(is_within(t, span, from[i], to[i]));
    }
}

/* The rate of the host's ticks is not known well when a device is opened: no bound becomes narrower by it. */
static void opened_early(void)
{
    const npuprof_npu_desc desc = { .name = "hand", .anchors_only = true,
                                    .counter = { .hz = 1000000000, .lag_ns = 1000000 } };
    npuprof_start(1);
    CHECK_STOP(npuprof_npu_open(&npu, &desc) == NPUPROF_OK);
    const uint64_t lag = npu.lag_;
    usleep(50000);
    CHECK(npuprof_mul_div_(lag, npuprof_ns_per_4g_ticks_(), (uint64_t)1 << 32, false) > 1000000);
    npu.second_ -= npu.second_ / 8;
    const int64_t now = npuprof_now_ns();
    const npuprof_npu_host_times times = { .start_ns = now - 1000, .end_ns = now, .error_ns = 5000000 };
    (void)npuprof_npu_complete_times(&npu, 0, 0, "early", NULL, times, PROF_NO_ARGS, true);
    json_node *const t = written(), *const span = device_span(t, "early", 0);
    CHECK_STOP(span != NULL);
    CHECK(json_int(json_get(span, "args.error_ns")) >= 5000000);
    CHECK(json_int(json_get(span, "args.error_ns")) < 6000000);
}

static void events(void)
{
    open_npu();
    const uint64_t at = spin();
    npuprof_npu_instant(&npu, 1, "fault", NULL, at, PROF_ARGS(PROF_UINT("code", 9)));
    for (unsigned i = 0; i < 3; i++) npuprof_npu_value(&npu, "power", 100 + i, at + 1000 * i);
    npuprof_stop();
    npuprof_npu_instant(&npu, 1, "fault", NULL, at, PROF_NO_ARGS);
    npuprof_npu_value(&npu, "power", 1, at);
    npuprof_start(1);
    json_node *t = written(), *fault = trace_event(t, "i", "fault", 0);
    CHECK_STOP(fault != NULL);
    CHECK_INT(arg(fault, "code"), 9);
    CHECK_UINT(trace_count(t, "i", "fault"), 1);
    CHECK_UINT(trace_count(t, "C", "power"), 3);
    CHECK_INT(json_int(json_get(trace_event(t, "C", "power", 2), "args.value")), 102);
    CHECK(llabs(trace_start(trace_event(t, "C", "power", 2)) - trace_start(fault) - 2000) < 100);
}

static void stamps(void)
{
    open_npu();
    const uint64_t now = device_now();
    for (unsigned bits = 16; bits <= 64; bits++) {
        const uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
        CHECK_UINT(npuprof_npu_extend_stamp(&npu, now & mask, bits, now > 5000 ? now - 5000 : 1), now);
        if (bits >= 32) CHECK_UINT(npuprof_npu_extend_stamp(&npu, now & mask, bits, 0), now);
    }
    CHECK_UINT(npuprof_npu_extend_stamp(&npu, 3, 8, 0x1FE), 0x203);
    CHECK_UINT(npuprof_npu_extend_stamp(&npu, 0xFE, 8, 0x1FE), 0x1FE);
    CHECK_UINT(npuprof_npu_extend_stamp(&npu, 77, 0, 0), 77);
    npuprof_npu_close(&npu);
    CHECK_UINT(npuprof_npu_extend_stamp(&npu, 77, 8, 1000), 77);
    CHECK(!npuprof_npu_complete(&npu, 1, 0, "a", NULL, 1, 2, PROF_NO_ARGS, true));
    CHECK(!npuprof_npu_complete_host(&npu, 1, 0, "a", NULL, 1, 2, PROF_NO_ARGS, true));
    npuprof_npu_lost(&npu, 1);
    npuprof_npu_instant(&npu, 0, "a", NULL, 1, PROF_NO_ARGS);
    npuprof_npu_value(&npu, "a", 1, 1);
}

/* ---- The example's decoder */

static const unsigned char vector[40] = {
    0xCA, 0x03, 0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
    0x00, 0x02, 0x05, 0x00, 0x64, 0x00, 0x09, 0x00, 0x6F, 0x6B, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x07, 0x00, 0x03, 0xBA };

static void frames(void)
{
    frame f;
    CHECK_UINT(decode_frame(vector, sizeof vector, &f), 40);
    CHECK_UINT(f.stamp, UINT64_C(0x1122334455667788));
    CHECK_UINT(f.sequence, 7);
    CHECK_STR(f.text, "ok");
    for (size_t left = 0; left < sizeof vector; left++) CHECK_UINT(decode_frame(vector, left, &f), 0);
    static const size_t framing[] = { 0, 1, 2, 3, 36, 37, 38, 39 };
    for (size_t i = 0; i < sizeof framing / sizeof *framing; i++) {
        unsigned char broken[sizeof vector];
        memcpy(broken, vector, sizeof vector);
        broken[framing[i]] ^= 0x10;
        CHECK_UINT(decode_frame(broken, sizeof broken, &f), 0);
    }
}

/* Garbage before, between and behind frames; a gap in the sequence, also where it wraps past 0. */
static void resynchronised(void)
{
    unsigned char log[4 * 60];
    static const uint16_t sequences[] = { 65533, 65535, 2 };       /* 65534 is missing, then 1 */
    size_t bytes = 0;
    uint16_t expected = 0;
    open_npu();
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned n = 0; n < 8; n++) log[bytes++] = n ? 0x55 : 0xCA;
        memcpy(log + bytes, vector, sizeof vector);
        const uint64_t stamp = device_now();
        for (int k = 0; k < 8; k++) log[bytes + 8 + (size_t)k] = (unsigned char)(stamp >> 8 * k);
        log[bytes + 2] = log[bytes + 36] = (unsigned char)sequences[i];
        log[bytes + 3] = log[bytes + 37] = (unsigned char)(sequences[i] >> 8);
        bytes += sizeof vector;
    }
    memcpy(log + bytes, vector, 16);                                /* cut at the end */
    read_log(&npu, log, bytes + 16, &expected);
    CHECK_UINT(expected, 3);
    json_node *t = written();
    CHECK_UINT(trace_count(t, "i", "ok"), 3);
    CHECK_INT(records(t, "lost_by_driver"), 2);
}

/* The whole example: ten jobs, one of them in a damaged frame. */
static void example(void)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s", check_path("example"));
    (void)mkdir(folder, 0700);
    CHECK_STOP(chdir(folder) == 0);
    CHECK_INT(example_main(), 0);
    json_node *t = trace_load("framed_log.json");
    CHECK_UINT(trace_count(t, "X", "conv1"), 10 + 9);
    CHECK_UINT(trace_count(t, "s", "submit"), 9);
    CHECK_INT(said(t, "ring_lost"), 1);
    CHECK_INT(said(t, "causality_violations"), 0);
}

CHECK_MAIN(CASE(matching), CASE(oldest_of_the_lane), CASE(nothing_uncounted), CASE(host_stamps),
           CASE(told_times), CASE(opened_early), CASE(noticed_late), CASE(events), CASE(stamps), CASE(frames),
           CASE(resynchronised), CASE(example))

/* test: - entries as they stand in memory, byte for byte, and what they mean
   SPDX-License-Identifier: MIT */
#include "npu/models/play.h"
#include "trace.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#include "npu/models/play_run.h"
#include "npu/models/all.h"

static npuprof_npu npu;
static npuprof_npu_desc desc;
static uint64_t now_ticks;               /* what the counter shows */

static uint64_t read_ticks(void *user)
{
    (void)user;
    play_until(play.host + 50);
    return now_ticks + (play.host - play.origin);
}

/* "A5 07" as bytes. */
static size_t bytes_of(const char *hex, unsigned char *to)
{
    size_t n = 0;
    int used = 0;
    for (unsigned byte; sscanf(hex, "%2x%n", &byte, &used) == 1; hex += used) to[n++] = (unsigned char)byte;
    return n;
}

static void open_fed(void (*describe)(npuprof_npu_ring *), uint64_t ticks)
{
    now_ticks = ticks;
    play.origin = play.host;
    memset(&desc, 0, sizeof desc);
    desc.name = "vector";
    desc.read_ticks = read_ticks;
    desc.counter.hz = 1000000000;
    describe(&desc.ring);
    desc.ring.feed = true;
    npuprof_start(1);
}

static void open_device(void)
{
    const npuprof_result result = npuprof_npu_open(&npu, &desc);
    if (result != NPUPROF_OK) check_failed_(__FILE__, __LINE__, "open: %s", npuprof_result_string(result));
    CHECK_STOP(result == NPUPROF_OK);
}

static void feed(const char *hex)
{
    static unsigned char bytes[1024];
    const size_t n = bytes_of(hex, bytes);
    play_until(play.host + 20000);               /* stamps lie between open and now */
    CHECK_INT(npuprof_npu_feed(&npu, 0, bytes, n), NPUPROF_OK);
}

static void submit(uint64_t id)
{
    WITH_NPU_PROFILER(&npu, 0, "submit", "NPU", PROF_NO_ARGS, {
        npuprof_npu_set_job(&npu, id);
        play_until(play.host + 100);
    });
}

static json_node *written(void)
{
    npuprof_npu_close(&npu);
    const char *path = check_path("t.json");
    CHECK_INT(npuprof_dump(path), NPUPROF_OK);
    CHECK_UINT(play_lost(), 0);
    return trace_load(path);
}

/* The n-th device span must say that. */
static void check_span(json_node *t, const char *name, const char *key, int64_t value)
{
    json_node *e = trace_event(t, "X", name, 0);
    for (size_t i = 1; e && !json_get(e, "args.pe_index"); i++) e = trace_event(t, "X", name, i);
    if (!e) check_failed_(__FILE__, __LINE__, "no device span %s", name);
    CHECK_STOP(e != NULL);
    if (json_int(json_get(json_get(e, "args"), key)) != value)
        check_failed_(__FILE__, __LINE__, "%s of %s is %" PRId64 ", not %" PRId64, key, name,
                      json_int(json_get(json_get(e, "args"), key)), value);
}

static void gaudi_cq(void)
{
    open_fed(gaudi_describe_entry, 1000000);
    open_device();
    submit(0x17A5);                              /* modulo 4096 */
    feed("A5 07 00 C0");
    json_node *t = written();
    check_span(t, "submit", "job", 0x7A5);
    CHECK_UINT(trace_count(t, "s", NULL), 1);
}

static void gaudi_eq(void)
{
    open_fed(gaudi_describe_eq_entry, 1000000);
    open_device();
    feed("00 00 00 00 04 00 23 81 07 00 00 00 00 00 00 00"
         " 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
         " 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
    json_node *t = written();
    CHECK_UINT(trace_count(t, "i", "HBM ECC"), 1);
    CHECK_INT(json_int(json_get(trace_event(t, "i", "HBM ECC", 0), "args.data")), 7);
}

static void qaic_response(void)
{
    open_fed(qaic_describe_entry, 1000000);
    open_device();
    submit(0x91234);
    feed("34 12 00 00");
    check_span(written(), "submit", "job", 0x1234);
}

static void hws_entry(void)
{
    open_fed(hws_describe_entry, 0x123456789A - 10000);
    open_device();
    feed("9A 78 56 34 12 00 00 00 01 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
         " 9C 78 56 34 12 00 00 00 03 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
    json_node *t = written();
    check_span(t, "work", "start_ticks", 0x123456789A);
    check_span(t, "work", "end_ticks", 0x123456789C);
}

static void fence_entry(void)
{
    open_fed(fence_describe_entry, 91000);
    desc.ring.stamp_offset = 90000;              /* ticks = 2 * stamp + 90000 */
    open_device();
    feed("07 00 00 00 00 00 00 00 40 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
         " E8 03 00 00 00 00 00 00 00 00 00 00 00 00 00 00 80 07 00 00 00 00 00 00");
    json_node *t = written();
    check_span(t, "wait", "job", 7);
    check_span(t, "wait", "handle", 0x40);
    check_span(t, "wait", "start_ticks", 92000);
    check_span(t, "wait", "end_ticks", 93840);
}

/* Six entries written, by either log's way to count laps; the ring has room for four. */
static void headers(void)
{
    static const struct { const char *hex; uint32_t laps_first; } header[] = {
        { "02 00 00 00 02 00 00 00 04 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00",
            1 },
        { "02 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00",
            0 }
    };
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t before = play_lost();
        unsigned char bytes[64];
        unsigned char *memory = play_memory(40 + 4 * 32);
        now_ticks = 1000000;
        play.origin = play.host;
        memset(&desc, 0, sizeof desc);
        desc.read_ticks = read_ticks;
        desc.counter.hz = 1000000000;
        desc.ring.entry_bytes = 32;
        desc.ring.start = play_field(0, 8, 63, 0);
        desc.ring.end = play_field(8, 8, 63, 0);
        desc.ring.memory = memory;
        desc.ring.memory_bytes = 40 + 4 * 32;
        desc.ring.first = i ? 40 : 32;
        desc.ring.count = 4;
        desc.ring.producer.in_memory = true;
        desc.ring.producer.unit = NPUPROF_NPU_INDEX_SLOT;
        desc.ring.producer.has_laps = true;
        desc.ring.producer.laps_offset = 4;
        desc.ring.producer.laps_first = header[i].laps_first;
        npuprof_start(1);
        npuprof_stats stats;
        npuprof_get_stats(&stats);
        const uint64_t recorded = stats.recorded;
        open_device();
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
        for (unsigned k = 0; k < 4; k++) {
            play_put(memory, desc.ring.first + 32 * k, 8, 1000000);
            play_put(memory, desc.ring.first + 32 * k + 8, 8, 1000100);
        }
        const size_t n = bytes_of(header[i].hex, bytes);
        for (size_t k = 0; k < n; k += 8) {
            uint64_t word;
            memcpy(&word, bytes + k, 8);
            play_put(memory, k, 8, play_little(8, word));
        }
        play_until(play.host + 10000);
        CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
        npuprof_get_stats(&stats);
        CHECK_UINT(stats.recorded - recorded + play_lost() - before, 6);
        CHECK(play_lost() - before <= 3);
        npuprof_npu_close(&npu);
    }
}

static void ethosn_entries(void)
{
    open_fed(ethosn_describe_entry, 0x123456700);
    open_device();
    feed("89 67 45 23 02 08 00 00 00 68 45 23 94 04 00 00 00 69 45 23 15 00 00 00");
    json_node *t = written();
    check_span(t, "MceStripe", "start_ticks", 0x123456800);
    check_span(t, "MceStripe", "end_ticks", 0x123456900);
}

static void ethosn_counter(void)
{
    open_fed(ethosn_describe_entry, 0x123456A00);
    static const npuprof_npu_kind kinds[] = { { 3, NPUPROF_NPU_KIND_COUNTER } };
    desc.ring.kinds = kinds;
    desc.ring.kind_count = 1;
    memset(&desc.ring.op, 0, sizeof desc.ring.op);
    desc.ring.op = play_field(4, 4, 6, 2);       /* which of 20 */
    desc.ring.ops = NULL;
    desc.ring.op_count = 0;
    desc.ring.execution_op = 0;
    desc.ring.value = play_field(4, 4, 31, 7);
    memset(desc.ring.key, 0, sizeof desc.ring.key);
    memset(desc.ring.clock_when, 0, sizeof desc.ring.clock_when);
    memset(&desc.ring.clock_high, 0, sizeof desc.ring.clock_high);
    open_device();
    feed("50 69 45 23 8B FF FF FF");
    json_node *t = written(), *e = trace_event(t, "C", NULL, 0);
    CHECK_STOP(e != NULL);
    bool found = false;
    for (size_t i = 0; (e = trace_event(t, "C", NULL, i)) != NULL; i++)
        found = found || json_int(json_get(e, "args.value")) == 0x1FFFFFF;
    CHECK(found);
}

static void tenstorrent_marker(void)
{
    open_fed(tt_describe_entry, 0xABC12345600 - 5000);
    open_device();
    feed("BC FA EE 8B 00 56 34 12 BC FA EE 9B 78 56 34 12");
    json_node *t = written();
    check_span(t, "kernel", "start_ticks", 0xABC12345600);
    check_span(t, "kernel", "end_ticks", 0xABC12345678);
}

/* 32 bits: bits 20:5 of the counter, so a stamp has 21 bits and a unit of 32 ticks. */
static void tenstorrent_small_event(void)
{
    open_fed(tt_describe_entry, 0x123440 - 5000);
    memset(&desc.ring, 0, sizeof desc.ring);
    desc.ring.feed = true;
    desc.ring.entry_bytes = 4;
    desc.ring.stamp = play_field(0, 4, 31, 16);
    desc.ring.op = play_field(0, 4, 15, 4);
    desc.ring.all_are = NPUPROF_NPU_KIND_INSTANT;
    desc.ring.scale_num = 32;
    open_device();
    feed("CA AB A2 91");
    json_node *t = written(), *e = trace_event(t, "i", "op 2748", 0);
    if (!e) e = trace_event(t, "i", "op 0xabc", 0);
    CHECK_STOP(e != NULL);
    json_node *ticks = json_get(e, "args.start_ticks");
    if (!ticks) ticks = json_get(e, "args.ticks");
    if (ticks) CHECK_INT(json_int(ticks), 0x123440);
}

/* The driver's own decoder, on one record of the firmware's log. */
static void xdna_log_record(void)
{
    unsigned char bytes[64];
    uint16_t seq;
    xdna_memory = play_memory(XDNA_SIZE);
    const size_t n = bytes_of("CA 03 07 00 00 00 00 00 88 77 66 55 44 33 22 11 00 02 05 00 64 00 09 00"
                              " 6F 6B 00 00 00 00 00 00 00 00 00 00 07 00 03 BA", bytes);
    CHECK_UINT(n, 40);
    for (size_t i = 0; i < n; i++) play_put(xdna_memory, i, 1, bytes[i]);
    CHECK_UINT(xdna_frame(0, 40, &seq), 40);
    CHECK_UINT(seq, 7);
    CHECK_UINT(xdna_read(8, 8), 0x1122334455667788);
    CHECK_UINT(xdna_frame(0, 39, &seq), 0);
}

/* A byte count that wraps at 2^32, over a ring whose size does not divide that. */
static void xdna_index(void)
{
    now_ticks = 1000000;
    play.origin = play.host;
    memset(&desc, 0, sizeof desc);
    unsigned char *memory = play_memory(XDNA_SIZE);
    desc.read_ticks = read_ticks;
    desc.counter.hz = 1000000000;
    desc.ring.entry_bytes = 8;
    desc.ring.start = play_field(0, 4, 31, 0);
    desc.ring.job = play_field(4, 4, 31, 0);
    desc.ring.memory = memory;
    desc.ring.memory_bytes = XDNA_SIZE;
    desc.ring.count = XDNA_RING / 8;
    desc.ring.producer.in_memory = true;
    desc.ring.producer.offset = XDNA_RING + 64;
    desc.ring.producer.unit = NPUPROF_NPU_INDEX_BYTES;
    play_put(memory, XDNA_RING + 64, 4, 0xFFFFFF98u);
    npuprof_start(1);
    open_device();
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    play_until(play.host + 1000000);
    const uint64_t places = 0xFFFFFF98u % XDNA_RING;
    for (uint64_t i = 0; i < (0x68 + 0x68) / 8; i++) {
        play_put(memory, places + 8 * i, 4, 1000000);
        play_put(memory, places + 8 * i + 4, 4, i + 1);
    }
    CHECK_UINT(places, 3992);
    play_put(memory, XDNA_RING + 64, 4, 0x00000068u);
    CHECK_INT(npuprof_npu_drain(&npu), NPUPROF_OK);
    json_node *t = written(), *e;
    unsigned n = 0;
    int64_t jobs = 0;
    for (e = json_get(t, "traceEvents")->first; e; e = e->next) {
        if (!json_get(e, "args.pe_index")) continue;
        n++;
        jobs += json_int(json_get(e, "args.job"));
    }
    CHECK_UINT(n, 26);
    CHECK_INT(jobs, 26 * 27 / 2);
}

CHECK_MAIN(CASE(gaudi_cq), CASE(gaudi_eq), CASE(qaic_response), CASE(hws_entry), CASE(fence_entry),
           CASE(headers),
           CASE(ethosn_entries), CASE(ethosn_counter), CASE(tenstorrent_marker),
               CASE(tenstorrent_small_event),
           CASE(xdna_log_record), CASE(xdna_index))

/* test: - entries as they stand in memory, byte for byte, and what they mean
   SPDX-License-Identifier: MIT */
#include "npu/models/played.h"

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

CHECK_MAIN(CASE(gaudi_cq), CASE(gaudi_eq), CASE(qaic_response), CASE(hws_entry), CASE(fence_entry),
           CASE(ethosn_entries), CASE(ethosn_counter), CASE(tenstorrent_marker))

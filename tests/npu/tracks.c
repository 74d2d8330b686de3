/* tracks and arrows of sampled devices: a lane for each stream, an arrow for each span that the clock's error
   does not put before its host span
   SPDX-License-Identifier: MIT */
#include "fixture.h"


static void on_stream(json_node *t, const char *name, const char *track, int64_t stream)
{
    json_node *e = device_span(t, name, 0);
    CHECK_STOP(e);
    CHECK_STR(trace_track(t, e), track);
    CHECK_INT(json_int(json_get(e, "args.stream")), stream);
}

static void streams(void)
{
    open_sim();
    sim_sync(1000000);
    void *const queue = (void *)(uintptr_t)0x12345678;
    WITH_NPU_PROFILER(&npu, 7, "a", "NPU", PROF_NO_ARGS, { sim_advance(1000); });
    WITH_NPU_PROFILER(&npu, 9, "b", "NPU", PROF_NO_ARGS, {
        sim_advance(1000);
        WITH_NPU_PROFILER(&npu, 7, "c", "NPU", PROF_NO_ARGS, { sim_advance(1000); });
    });
    WITH_NPU_PROFILER(&npu, queue, "d", "NPU", PROF_NO_ARGS, { sim_advance(1000); });
    WITH_NPU_PROFILER(&npu, -1, "e", "NPU", PROF_NO_ARGS, { sim_advance(1000); });
    json_node *t = closed();
    on_stream(t, "a", "sim stream 7", 7);
    on_stream(t, "b", "sim stream 9", 9);
    on_stream(t, "c", "sim stream 7", 7);
    on_stream(t, "d", "sim stream 305419896", 0x12345678);
    if (sizeof(void *) > 4) on_stream(t, "e", "sim stream 0xffffffffffffffff", -1);
    CHECK_INT(trace_tid(device_span(t, "a", 0)), trace_tid(device_span(t, "c", 0)));
}

/* More streams than there are lanes: none is lost, and no span gets a track of its own. */
static void many_streams(void)
{
    enum { STREAMS = 1000 };
    open_sim();
    sim_sync(1000000);
    for (int i = 0; i < STREAMS; i++)
        WITH_NPU_PROFILER(&npu, i, "many", "NPU", PROF_NO_ARGS, { sim_advance(1000); });
    json_node *t = closed();
    CHECK_UINT(trace_count(t, "X", "many"), 2 * STREAMS);
    CHECK(trace_count(t, "M", "thread_name") < 300);
}

/* A counter that is late while the device is opened: its spans lie before their host spans, and viewers draw
   no such arrow. */
static uint64_t late;
static uint64_t late_ticks(void *unused)
{
    (void)unused;
    return sim_truth() - late;
}

static void arrows_left_out(void)
{
    enum { BLOCKS = 10 };
    npuprof_npu_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.read_ticks = late_ticks;
    open_npu(&desc);
    late = 700;                                  /* 28 us */
    sim_advance(1000000);
    for (int i = 0; i < BLOCKS; i++) {
        if (i == BLOCKS / 2) late = 0;
        WITH_NPU_PROFILER(&npu, 0, "conv", "NPU", PROF_NO_ARGS, { sim_advance(1000); });
    }
    json_node *t = closed(), *devices = json_get(t, "metadata.npuprof.devices");
    CHECK_STOP(devices && devices->first);
    const int64_t arrows = (int64_t)trace_count(t, "s", "submit"),
        out = json_int(json_get(devices->first, "clock_sync.arrows_left_out"));
    CHECK(out > 0);
    CHECK_INT(arrows + out, BLOCKS);
}

CHECK_MAIN(CASE(streams), CASE(many_streams), CASE(arrows_left_out))

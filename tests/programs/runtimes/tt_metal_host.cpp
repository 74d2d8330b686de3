/* tt_metal_host.cpp - plays tt-metal for npuprof_tt_metal.h: two chips whose clocks are 1 GHz and a little
   more, and programs of which every fifth is submitted in a block. usage: tt_metal_host PATH: prints the
   begin and end of each program in ns of the trace's clock
   SPDX-License-Identifier: MIT */
#include "npuprof.h"
#include "npuprof_npu.h"
#include "npuprof_tt_metal.h"
#include <stdio.h>
#include <vector>

namespace tt::tt_metal::experimental {
static ProgramRealtimeProfilerCallback registered;

ProgramRealtimeProfilerCallbackHandle
RegisterProgramRealtimeProfilerCallback(ProgramRealtimeProfilerCallback f)
{
    registered = f;
    return 7;
}

void UnregisterProgramRealtimeProfilerCallback(ProgramRealtimeProfilerCallbackHandle handle)
{
    if (handle == 7) registered = nullptr;
}
}

namespace tt_profiler = tt::tt_metal::experimental;
enum { BATCHES = 20, IN_BATCH = 10, ERROR_NS = 300 };
static const std::string_view sources[] = { "/kernels/conv.cpp", "/kernels/pool.cpp" };

static int64_t steady()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* From steady() to the trace's clock: of many reads the one that nothing interrupted. */
static int64_t steady_to_trace()
{
    int64_t least = INT64_MAX, ahead = 0;
    for (int i = 0; i < 100; i++) {
        const int64_t before = steady(), now = npuprof_now_ns(), behind = steady();
        if (behind - before >= least) continue;
        least = behind - before;
        ahead = now - before - least / 2;
    }
    return ahead;
}

/* A program of 20 us that has just ended. Its ticks are above what a double holds. */
static tt_profiler::ProgramRealtimeRecord program(NpuprofTtMetal &profiler, uint32_t id, int64_t ahead_ns)
{
    tt_profiler::ProgramRealtimeRecord r = {};
    if (id % 5 == 0) {
        npuprof_npu *const npu = profiler.npu_of(id & 1);
        WITH_NPU_PROFILER(npu, 0, "enqueue", "tt", PROF_NO_ARGS, { npuprof_npu_set_job(npu, id); });
    }
    const int64_t start = steady(), end = start + 20000;
    while (steady() < end) { }
    r.runtime_id = id;
    r.chip_id = id & 1;
    r.frequency = r.chip_id ? 1.0 : 1.00005;
    r.clock_sync = { INT64_C(1) << 60, std::chrono::nanoseconds(ERROR_NS) };
    r.start_timestamp = (UINT64_C(1) << 60) + (uint64_t)((long double)start * (long double)r.frequency);
    r.end_timestamp = (UINT64_C(1) << 60) + (uint64_t)((long double)end * (long double)r.frequency);
    r.kernel_sources = std::span(&sources[id % 2], id % 5 ? 1 : 0);
    printf("%u %lld %lld\n", id, (long long)(start + ahead_ns), (long long)(end + ahead_ns));
    return r;
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    npuprof_start(1);
    const int64_t ahead_ns = steady_to_trace();
    {
        NpuprofTtMetal profiler;
        for (uint32_t batch = 0; batch < BATCHES; batch++) {
            std::vector<tt_profiler::ProgramRealtimeRecord> records;
            for (uint32_t i = 1; i <= IN_BATCH; i++)
                records.push_back(program(profiler, batch * IN_BATCH + i, ahead_ns));
            tt_profiler::registered({ records, batch == 3 ? 4u : 0u });
            if (batch == 5) tt_profiler::registered({ {}, 3u });
            tt_profiler::ProgramRealtimeRecord unknown = {};     /* without a rate: no time is known of it */
            unknown.end_timestamp = 7;
            if (batch == 6) tt_profiler::registered({ { &unknown, 1 }, 0u });
        }
    }
    return tt_profiler::registered ? 3 : (int)npuprof_dump(argv[1]);
}

/* What npuprof_tt_metal.h needs of tt-metal (August 2026): the same names, types and order, written for the
   tests. The test defines the functions.
   SPDX-License-Identifier: MIT */
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace tt::tt_metal::experimental {
struct ProgramRealtimeClockSync {
    int64_t device_cycle_offset;
    std::chrono::nanoseconds sync_error;
};

struct ProgramRealtimeRecord {
    uint32_t runtime_id, chip_id;
    uint64_t start_timestamp, end_timestamp;
    double frequency;                        /* cycles per ns */
    ProgramRealtimeClockSync clock_sync;
    std::span<const std::string_view> kernel_sources;
};

struct ProgramRealtimeRecordBatch {
    std::span<const ProgramRealtimeRecord> records;
    uint64_t dropped;
};

using ProgramRealtimeProfilerCallback = std::function<void(const ProgramRealtimeRecordBatch &)>;
using ProgramRealtimeProfilerCallbackHandle = uint64_t;
ProgramRealtimeProfilerCallbackHandle RegisterProgramRealtimeProfilerCallback(ProgramRealtimeProfilerCallback);
void UnregisterProgramRealtimeProfilerCallback(ProgramRealtimeProfilerCallbackHandle);
}

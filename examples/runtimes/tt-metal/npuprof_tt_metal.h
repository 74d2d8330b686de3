/* npuprof_tt_metal.h - records of tt-metal's real-time profiler as device spans of npuprof. C++20; include
   it after npuprof.h and npuprof_npu.h. ../README.md says what is exact.
   SPDX-License-Identifier: MIT

   tt-metal tells of each program when it began and ended on the chip, and how that maps to steady_clock. The
   error that it states is its own estimate, no bound: each span says so. The interface is experimental and
   has no version: compile it with the tt-metal that you run. */
#ifndef NPUPROF_TT_METAL_H
#define NPUPROF_TT_METAL_H

#include <tt-metalium/experimental/realtime_profiler.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <time.h>

namespace npuprof_tt = tt::tt_metal::experimental;

class NpuprofTtMetal {
public:
    /* Begins to listen. Open the devices of tt-metal before it; destroy it before they are closed. */
    NpuprofTtMetal()
        : handle_(npuprof_tt::RegisterProgramRealtimeProfilerCallback(
              [this](const npuprof_tt::ProgramRealtimeRecordBatch &batch) { take(batch); })) { }

    /* Waits for a call that is running. */
    ~NpuprofTtMetal()
    {
        npuprof_tt::UnregisterProgramRealtimeProfilerCallback(handle_);
        for (auto &[id, chip] : chips_) npuprof_npu_close(&chip->npu);
    }
    NpuprofTtMetal(const NpuprofTtMetal &) = delete;
    NpuprofTtMetal &operator=(const NpuprofTtMetal &) = delete;

    /* The device of a chip, for a WITH_NPU_PROFILER block around the submission of a program: in it,
       npuprof_npu_set_job() with the program's runtime id leads an arrow to its record. Any thread. */
    npuprof_npu *npu_of(uint32_t id)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        auto &chip = chips_[id];
        if (!chip) {
            npuprof_npu_desc desc = {};
            chip = std::make_unique<Chip>();
            chip->name = "tt chip " + std::to_string(id);
            desc.name = chip->name.c_str();
            desc.anchors_only = true;                        /* its counter is read by tt-metal alone */
            npuprof_npu_open(&chip->npu, &desc);             /* if it cannot, its spans are not drawn */
        }
        return &chip->npu;
    }

private:
    struct Chip {
        std::string name;
        npuprof_npu npu = {};
    };
    std::mutex mutex_;
    std::map<uint32_t, std::unique_ptr<Chip>> chips_;
    const npuprof_tt::ProgramRealtimeProfilerCallbackHandle handle_;

    /* Why the difference in integers: ticks may be more than a double holds. */
    static int64_t steady_ns(uint64_t ticks, const npuprof_tt::ProgramRealtimeRecord &r)
    {
        const auto zero = static_cast<uint64_t>(r.clock_sync.device_cycle_offset);
        const auto since = static_cast<int64_t>(ticks - zero);
        return static_cast<int64_t>(static_cast<long double>(since) / static_cast<long double>(r.frequency));
    }

    void take(const npuprof_tt::ProgramRealtimeRecordBatch &batch)
    {
        int64_t steady = 0, ours = 0;
        uint64_t bracket = 0;
        npuprof_clock_pair(CLOCK_MONOTONIC, &steady, &ours, &bracket);
        for (const auto &record : batch.records) draw(record, ours - steady, bracket / 2 + 2);
        const uint32_t chip = batch.records.empty() ? 0 : batch.records.front().chip_id;
        /* Why any chip: a batch does not say whose records were dropped. */
        if (batch.dropped) npuprof_npu_lost(npu_of(chip), batch.dropped);
    }

    void draw(const npuprof_tt::ProgramRealtimeRecord &r, int64_t ahead_ns, uint64_t error_ns)
    {
        npuprof_npu_host_times times = {};
        if (!(r.frequency > 0)) {                            /* nothing says when it was */
            npuprof_npu_lost(npu_of(r.chip_id), 1);
            return;
        }
        times.start_ns = steady_ns(r.start_timestamp, r) + ahead_ns;
        times.end_ns = steady_ns(r.end_timestamp, r) + ahead_ns;
        times.error_ns = static_cast<uint64_t>(r.clock_sync.sync_error.count()) + error_ns;
        const std::string name = r.kernel_sources.empty() ? std::string() : base(r.kernel_sources.front());
        npuprof_npu_complete_times(
            npu_of(r.chip_id), r.runtime_id, 0, name.empty() ? nullptr : name.c_str(), nullptr, times,
            PROF_ARGS(PROF_STR("error", "estimated by tt-metal"), PROF_UINT("start_ticks", r.start_timestamp),
                      PROF_UINT("end_ticks", r.end_timestamp)), true);
    }

    /* conv.cpp of /some/path/conv.cpp */
    static std::string base(std::string_view path)
    {
        return std::string(path.substr(path.rfind('/') + 1));
    }
};
#endif /* NPUPROF_TT_METAL_H */

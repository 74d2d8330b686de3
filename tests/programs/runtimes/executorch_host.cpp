/* executorch_host.cpp - plays ExecuTorch's runtime for npuprof_executorch.h: a tracer with an inner one, a
   method with operators and a delegate whose device has a driver with npuprof. ExecuTorch's ticks are 25 MHz,
   from a zero of their own. usage: executorch_host RUNS JSON DUMP TRUTH: what the inner tracer got goes into
   DUMP
   SPDX-License-Identifier: MIT */
#include "npuprof.h"
#include "npuprof_npu.h"
#include "npuprof_executorch.h"
#include "drifting_npu.h"
#include <stdlib.h>

namespace et = executorch::runtime;
static FILE *dump;
static int64_t pal_zero;

et_timestamp_t et::pal_current_ticks()
{
    return static_cast<et_timestamp_t>(drifting_real_ns() - pal_zero) / 40;
}

et_tick_ratio_t et::pal_ticks_to_ns_multiplier() { return { 40, 1 }; }

/* As ETDumpGen: keeps what it is told, and gives ids of its own. */
class Dump : public et::EventTracer {
    int64_t next_ = 100;
    et::EventTracerEntry entry(et::DelegateDebugIdType type)
    {
        return { next_++, chain_id_, debug_handle_, et::pal_current_ticks(), type };
    }

public:
    void create_event_block(const char *name) override { fprintf(dump, "block %s\n", name); }

    et::EventTracerEntry start_profiling(const char *name, et::ChainID, et::DebugHandle) override
    {
        fprintf(dump, "start %lld %d %u %s\n", (long long)next_, chain_id_, debug_handle_, name);
        return entry(et::DelegateDebugIdType::kNone);
    }

    void end_profiling(et::EventTracerEntry e) override
    {
        fprintf(dump, "end %lld\n", (long long)e.event_id);
    }

    et::EventTracerEntry start_profiling_delegate(const char *name, et::DelegateDebugIntId index) override
    {
        fprintf(dump, "delegate %lld %s %d\n", (long long)next_, name ? name : "-", index);
        return entry(et::DelegateDebugIdType::kInt);
    }

    void end_profiling_delegate(et::EventTracerEntry e, const void *metadata, size_t length) override
    {
        fprintf(dump, "delegate-end %lld %.*s\n", (long long)e.event_id, (int)length, (const char *)metadata);
    }

    void log_profiling_delegate(const char *name, et::DelegateDebugIntId index, et_timestamp_t start,
                                et_timestamp_t end, const void *metadata, size_t length) override
    {
        fprintf(dump, "log %s %d %llu %llu %.*s\n", name ? name : "-", index, (unsigned long long)start,
                (unsigned long long)end, (int)length, (const char *)metadata);
    }

    void track_allocation(et::AllocatorID id, size_t size) override
    {
        fprintf(dump, "bytes %u %zu\n", id, size);
    }

    et::AllocatorID track_allocator(const char *name) override { return fprintf(dump, "pool %s\n", name), 5; }
    et::Result<bool> log_evalue(const et::EValue &, et::LoggedEValueType) override { return true; }
#define OUTPUT(type, value)                                                                                  \
    et::Result<bool> log_intermediate_output_delegate(const char *, et::DelegateDebugIntId, type v) override \
    {                                                                                                        \
        return (void)v, value;                                                                               \
    }
    OUTPUT(const executorch::aten::Tensor &, true)
    OUTPUT(const et::ArrayRef<executorch::aten::Tensor>, true)
    OUTPUT(const int &, v == 3)
    OUTPUT(const bool &, true)
    OUTPUT(const double &, true)
    void set_delegation_intermediate_output_filter(et::EventTracerFilterBase *) override { }
};

static uint64_t lost;

static void delegate(et::EventTracer &tracer, NpuprofEtDelegate &spans, int run)
{
    const auto entry = tracer.start_profiling_delegate(nullptr, 17);
    drifting_run("conv on the NPU", 20000);
    /* a delegate that times with ExecuTorch's clock, and one that has another */
    if (run == 1) tracer.log_profiling_delegate("host part", -1, entry.start_time, et::pal_current_ticks());
    if (run == 2) tracer.log_profiling_delegate("strange clock", -1, 5, 1000000);
    spans.hand_over(&tracer, &lost);
    tracer.end_profiling_delegate(entry, "m", 1);
}

static void execute(et::EventTracer &tracer, NpuprofEtDelegate &spans, int run)
{
    char name[] = "native_call_add.out";
    tracer.create_event_block("Execute");
    const auto method = tracer.start_profiling("Method::execute");
    tracer.set_chain_debug_handle(0, 42);
    const auto op = tracer.start_profiling(name);
    memset(name, '#', sizeof name - 1);
    tracer.end_profiling(op);
    tracer.set_chain_debug_handle(0, 0);
    const auto call = tracer.start_profiling("DELEGATE_CALL");
    delegate(tracer, spans, run);
    tracer.end_profiling(call);
    tracer.end_profiling(method);
}

int main(int argc, char **argv)
{
    if (argc < 5 || !(dump = fopen(argv[3], "w"))) return 2;
    pal_zero = drifting_real_ns() - 50000000;
    npuprof_start(1);
    if (drifting_open()) return 3;
    drifting_run("before the tracer", 1000);
    {
        Dump inner;
        NpuprofEventTracer tracer(&inner), alone;
        NpuprofEtDelegate spans;
        tracer.track_allocation(tracer.track_allocator("planned"), 64);
        for (int run = 0; run < atoi(argv[1]); run++) execute(tracer, spans, run);
        const auto entry = alone.start_profiling("without an inner one", 3, 4);
        if (entry.chain_id != 3 || entry.debug_handle != 4) return 4;
        alone.end_profiling(entry);
        if (alone.log_intermediate_output_delegate("x", 0, 3).value) return 5;
        if (!tracer.log_intermediate_output_delegate("x", 0, 3).value) return 6;
        fprintf(dump, "lost %llu\nzero %lld\n", (unsigned long long)lost, (long long)pal_zero);
    }
    npuprof_npu_close(&drifting_npu);
    return fclose(dump) || drifting_tell(argv[4]) || npuprof_dump(argv[2]);
}

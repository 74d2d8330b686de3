/* npuprof_executorch.h - ExecuTorch's EventTracer on npuprof, and the other way round: npuprof's device spans
   as delegate events of any EventTracer. C++17; include it after npuprof.h and npuprof_npu.h. ../README.md
   says what is exact.
   SPDX-License-Identifier: MIT

   A tracer is of one Method and one thread, and its events nest: they are spans of that thread, and what a
   delegate's driver records is inside of them. With an inner tracer, such as ETDumpGen, each call goes on to
   it, so the Inspector works as before. */
#ifndef NPUPROF_EXECUTORCH_H
#define NPUPROF_EXECUTORCH_H

#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/platform/platform.h>

#include <cinttypes>
#include <cstdio>

namespace npuprof_et = ::executorch::runtime;

/* ExecuTorch's clock against that of npuprof: its ticks at a moment, known within half of bracket_ns. */
struct NpuprofEtClock {
    et_timestamp_t ticks;
    int64_t ns;
    uint64_t bracket_ns;

    /* Both clocks now: the narrowest of five reads of one between two of the other. */
    static NpuprofEtClock now()
    {
        NpuprofEtClock best = { 0, 0, UINT64_MAX };
        for (int i = 0; i < 5; i++) {
            const int64_t before = npuprof_now_ns();
            const et_timestamp_t ticks = npuprof_et::pal_current_ticks();
            const uint64_t bracket = static_cast<uint64_t>(npuprof_now_ns() - before);
            if (bracket < best.bracket_ns)
                best = { ticks, before + static_cast<int64_t>(bracket / 2), bracket };
        }
        return best;
    }

    static int64_t scaled(int64_t value, uint64_t by, uint64_t over)
    {
        const int64_t n = static_cast<int64_t>(by), d = static_cast<int64_t>(over);
        return value / d * n + value % d * n / d;
    }

    /* By the rate that ExecuTorch states. */
    int64_t ns_of(et_timestamp_t t) const
    {
        const et_tick_ratio_t rate = npuprof_et::pal_ticks_to_ns_multiplier();
        return ns + scaled(static_cast<int64_t>(t - ticks), rate.numerator, rate.denominator);
    }

    et_timestamp_t ticks_of(int64_t t) const
    {
        const et_tick_ratio_t rate = npuprof_et::pal_ticks_to_ns_multiplier();
        return ticks + static_cast<et_timestamp_t>(scaled(t - ns, rate.denominator, rate.numerator));
    }

    /* How far off such a time may be between this moment and `later`: half of both brackets, a tick, and how
       far the clocks have drifted apart. */
    uint64_t error_ns(const NpuprofEtClock &later) const
    {
        const et_tick_ratio_t rate = npuprof_et::pal_ticks_to_ns_multiplier();
        const int64_t drift = ns_of(later.ticks) - later.ns;
        return bracket_ns / 2 + later.bracket_ns / 2 + 2 + rate.numerator / rate.denominator +
            static_cast<uint64_t>(drift < 0 ? -drift : drift);
    }
};

class NpuprofEventTracer : public npuprof_et::EventTracer {
public:
    using Entry = npuprof_et::EventTracerEntry;
    using Debug = npuprof_et::DelegateDebugIntId;

    /* inner: may be NULL; it must outlive this. */
    explicit NpuprofEventTracer(npuprof_et::EventTracer *inner = nullptr)
        : inner_(inner), opened_(NpuprofEtClock::now()) { }

    void create_event_block(const char *name) override
    {
        if (inner()) inner_->create_event_block(name);
    }

    Entry start_profiling(const char *name, npuprof_et::ChainID chain,
                          npuprof_et::DebugHandle handle) override
    {
        Entry entry = begin("executorch", name, handle);
        if (inner()) return inner_->start_profiling(name, chain, handle);
        entry.chain_id = chain;
        entry.debug_handle = handle;
        return entry;
    }

    void end_profiling(Entry entry) override
    {
        end();
        if (inner()) inner_->end_profiling(entry);
    }

    Entry start_profiling_delegate(const char *name, Debug index) override
    {
        char number[32];
        const Entry entry = begin("delegate", name_of(name, index, number), 0);
        return inner() ? inner_->start_profiling_delegate(name, index) : entry;
    }

    void end_profiling_delegate(Entry entry, const void *metadata, size_t length) override
    {
        end();
        if (inner()) inner_->end_profiling_delegate(entry, metadata, length);
    }

    /* A span that the delegate has timed itself. Stamps that are ExecuTorch's ticks lie inside the event
       around the call. Others are of a clock that nobody knows here: then the span is that whole event, and
       its error is as long. */
    void log_profiling_delegate(const char *name, Debug index, et_timestamp_t start, et_timestamp_t end,
                                const void *metadata, size_t length) override
    {
        if (inner()) inner_->log_profiling_delegate(name, index, start, end, metadata, length);
        if (is_npuprofs) return;                 /* it has these already */
        char number[32];
        const NpuprofEtClock now = NpuprofEtClock::now();
        const int64_t from = opened_.ns_of(start), to = opened_.ns_of(end), around = around_ns();
        const uint64_t error = opened_.error_ns(now);
        const int64_t slack = static_cast<int64_t>(error);
        if (from >= around - slack && from <= to && to <= now.ns + slack)
            npuprof_span("delegate", "delegate", name_of(name, index, number), from, to,
                         PROF_ARGS(PROF_UINT("error_ns", error)));
        else
            npuprof_span("delegate", "delegate", name_of(name, index, number), around, now.ns,
                         PROF_ARGS(PROF_UINT("error_ns", static_cast<uint64_t>(now.ns - around)),
                                   PROF_STR("clock", "unknown"), PROF_UINT("start_ticks", start),
                                   PROF_UINT("end_ticks", end)));
    }
    inline static thread_local bool is_npuprofs = false;     /* NpuprofEtDelegate is calling */

    /* What is not about time goes to the inner tracer only. */
    void track_allocation(npuprof_et::AllocatorID id, size_t size) override
    {
        if (inner()) inner_->track_allocation(id, size);
    }

    npuprof_et::AllocatorID track_allocator(const char *name) override
    {
        return inner() ? inner_->track_allocator(name) : 0;
    }

    npuprof_et::Result<bool> log_evalue(const npuprof_et::EValue &value,
                                                   npuprof_et::LoggedEValueType type) override
    {
        if (inner()) return inner_->log_evalue(value, type);
        return false;
    }
#define NPUPROF_ET_OUTPUT(type)                                                                          \
    npuprof_et::Result<bool> log_intermediate_output_delegate(const char *name, Debug index, type output) \
        override                                                                                          \
    {                                                                                                     \
        if (inner()) return inner_->log_intermediate_output_delegate(name, index, output);                \
        return false;                                                                                     \
    }

    NPUPROF_ET_OUTPUT(const ::executorch::aten::Tensor &)
    NPUPROF_ET_OUTPUT(const npuprof_et::ArrayRef<::executorch::aten::Tensor>)
    NPUPROF_ET_OUTPUT(const int &)
    NPUPROF_ET_OUTPUT(const bool &)
    NPUPROF_ET_OUTPUT(const double &)
#undef NPUPROF_ET_OUTPUT
    void set_delegation_intermediate_output_filter(
        npuprof_et::EventTracerFilterBase *filter) override
    {
        if (inner()) inner_->set_delegation_intermediate_output_filter(filter);
    }

private:
    enum { DEPTH = 32 };
    npuprof_et::EventTracer *const inner_;
    const NpuprofEtClock opened_;
    int64_t begun_ns_[DEPTH] = {};
    unsigned depth_ = 0;

    /* The inner tracer, told first what the runtime told this one by functions that are not virtual. */
    npuprof_et::EventTracer *inner()
    {
        if (!inner_) return nullptr;
        inner_->set_chain_debug_handle(chain_id_, debug_handle_);
        inner_->set_bundled_input_index(bundled_input_index_);
        return inner_;
    }

    static const char *name_of(const char *name, Debug index, char (&number)[32])
    {
        if (name) return name;
        std::snprintf(number, sizeof number, "delegate %" PRId32, index);
        return number;
    }

    Entry begin(const char *category, const char *name, npuprof_et::DebugHandle handle)
    {
        Entry entry = {};
        entry.start_time = npuprof_et::pal_current_ticks();
        if (depth_ < DEPTH) begun_ns_[depth_] = npuprof_now_ns();
        depth_++;
        PROF_BEGIN(category, name);
        if (!handle) handle = debug_handle_;
        if (handle) PROF_RESULT(PROF_UINT("debug_handle", handle));
        return entry;
    }

    void end()
    {
        PROF_END();
        if (depth_) depth_--;
    }

    int64_t around_ns() const
    {
        return depth_ ? begun_ns_[depth_ < DEPTH ? depth_ - 1 : DEPTH - 1] : opened_.ns;
    }
};

/* The other way: hands the device spans that npuprof has since the last call to a tracer, as delegate events
   in ExecuTorch's ticks. Call it in the delegate's execute() after the work, with its event_tracer(), or at
   the end of all. The event's metadata is JSON with the span's error_ns, job and device ticks. One thread. */
class NpuprofEtDelegate {
public:
    NpuprofEtDelegate() : opened_(NpuprofEtClock::now())
    {
        npuprof_read(&cursor_, 1u << NPUPROF_KIND_DEVICE, nullptr, nullptr, nullptr);
    }

    ~NpuprofEtDelegate() { npuprof_read_end(&cursor_); }
    NpuprofEtDelegate(const NpuprofEtDelegate &) = delete;
    NpuprofEtDelegate &operator=(const NpuprofEtDelegate &) = delete;

    /* *lost: device spans that are not there, and those without a time; may be NULL. */
    npuprof_result hand_over(npuprof_et::EventTracer *to, uint64_t *lost = nullptr)
    {
        npuprof_read_result read = {};
        read.struct_size = sizeof read;
        Given given = { to, opened_, opened_.error_ns(NpuprofEtClock::now()), 0 };
        NpuprofEventTracer::is_npuprofs = true;
        const npuprof_result result =
            npuprof_read(&cursor_, 1u << NPUPROF_KIND_DEVICE, to ? give : nullptr, &given, &read);
        NpuprofEventTracer::is_npuprofs = false;
        if (lost) *lost = read.lost + given.without_time;
        return result;
    }

private:
    struct Given {
        npuprof_et::EventTracer *to;
        const NpuprofEtClock &clock;
        uint64_t error_ns, without_time;
    };
    npuprof_cursor cursor_ = {};
    const NpuprofEtClock opened_;

    static bool give(void *user, const npuprof_read_span *span)
    {
        Given &given = *static_cast<Given *>(user);
        char text[192];                          /* all numbers at their longest: 168 */
        if (span->flags & NPUPROF_READ_POINT) return true;
        if (span->flags & NPUPROF_READ_NO_TIME) {
            given.without_time++;
            return true;
        }
        const uint64_t error = span->error_ns == UINT64_MAX ? UINT64_MAX : span->error_ns + given.error_ns;
        const int length = std::snprintf(
            text, sizeof text,
            "{\"error_ns\":%" PRIu64 ",\"job\":%" PRIu64 ",\"engine\":%" PRIu32 ",\"epoch\":%" PRIu32
            ",\"start_ticks\":%" PRIu64 ",\"end_ticks\":%" PRIu64 "}",
            error, span->job, span->engine, span->epoch, span->start_ticks, span->end_ticks);
        given.to->log_profiling_delegate(span->name, npuprof_et::kUnsetDelegateDebugIntId,
                                         given.clock.ticks_of(span->start_ns),
                                         given.clock.ticks_of(span->end_ns), text,
                                         static_cast<size_t>(length));
        return true;
    }
};
#endif /* NPUPROF_EXECUTORCH_H */

/* npuprof_kineto.h - npuprof's device spans in the PyTorch profiler, for a PrivateUse1 backend: a child
   profiler of Kineto. Include it in one file of the backend's extension module, after npuprof.h and
   npuprof_npu.h, and register NpuprofKinetoProfiler. C++17 or what libkineto.h needs. ../README.md says how,
   and what is exact.
   SPDX-License-Identifier: MIT

   A session passes over what was recorded before it, and hands Kineto what came since, on Kineto's clock.
   That is the system's clock since 1970; both clocks are read together when the session starts and stops. */
#ifndef NPUPROF_KINETO_H
#define NPUPROF_KINETO_H

#include <libkineto.h>
#include <output_base.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <time.h>
#include <unordered_map>
#include <unordered_set>
#include <sys/syscall.h>
#include <unistd.h>

/* Kineto's clock and that of npuprof, read together. */
struct NpuprofKinetoPair {
    int64_t ahead_ns;                /* of npuprof's */
    uint64_t error_ns;

    static NpuprofKinetoPair now()
    {
        int64_t unix_ns = 0, ours_ns = 0;
        uint64_t bracket_ns = 0;
        npuprof_clock_pair(CLOCK_REALTIME, &unix_ns, &ours_ns, &bracket_ns);
        return { unix_ns - ours_ns, bracket_ns / 2 + 1 };
    }
};

/* What Kineto calls a span of that name: CONCURRENT_KERNEL or GPU_MEMCPY. A backend may know better. */
using NpuprofKinetoTypeOf = libkineto::ActivityType (*)(const std::string &name);
inline libkineto::ActivityType npuprof_kineto_type_of(const std::string &name)
{
    const bool copies = name == "Load" || name == "Store";
    return copies ? libkineto::ActivityType::GPU_MEMCPY : libkineto::ActivityType::CONCURRENT_KERNEL;
}

class NpuprofKinetoSession : public libkineto::IActivityProfilerSession {
public:
    NpuprofKinetoSession(std::set<libkineto::ActivityType> wanted, NpuprofKinetoTypeOf type_of)
        : wanted_(std::move(wanted)), type_of_(type_of),
          buffer_(std::make_unique<libkineto::CpuTraceBuffer>())
    {
        buffer_->gpuOpCount = 0;
    }

    ~NpuprofKinetoSession() override
    {
        npuprof_read_end(&devices_);
        npuprof_read_end(&hosts_);
    }

    void start() override
    {
        started_npuprof_ = !npuprof_is_recording() && npuprof_start(1) == NPUPROF_OK;
        check(npuprof_read(&devices_, DEVICES, nullptr, nullptr, nullptr));
        check(npuprof_read(&hosts_, HOSTS, nullptr, nullptr, nullptr));
        first_ = NpuprofKinetoPair::now();
        start_ns_ = npuprof_now_ns();
        status_ = libkineto::TraceStatus::RECORDING;
    }

    void stop() override
    {
        last_ = NpuprofKinetoPair::now();
        stop_ns_ = npuprof_now_ns();
        if (started_npuprof_) npuprof_stop();
        status_ = libkineto::TraceStatus::PROCESSING;
    }

    std::vector<std::string> errors() override { return errors_; }

    void processTrace(libkineto::ActivityLogger &logger) override
    {
        processTrace(logger, nullptr, INT64_MIN, INT64_MAX);
    }

    /* Drains the devices first, so a job that ran until stop() is there. */
    void processTrace(libkineto::ActivityLogger &logger, libkineto::getLinkedActivityCallback linked,
                      int64_t from, int64_t to) override
    {
        npuprof_read_result read = {};
        read.struct_size = sizeof read;
        logger_ = &logger;
        buffer_->span = libkineto::TraceSpan(start_ns_ + ahead_ns(), stop_ns_ + ahead_ns(), "npuprof");
        check(npuprof_read(&devices_, DEVICES, keep, this, &read));
        lost_ += read.lost;
        check(npuprof_read(&hosts_, HOSTS, submission, this, nullptr));
        std::sort(pushed_.begin(), pushed_.end());
        for (const Kept &k : kept_) give(k, linked, from, to);
        kept_.clear();
    }

    /* Kineto takes one device of a session: the others have no name in the trace. */
    std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override
    {
        if (names_.empty()) return nullptr;
        const auto &[id, name] = *names_.begin();
        const std::string label = "NPU " + std::to_string(id);
        return std::unique_ptr<libkineto::DeviceInfo>(
            new libkineto::DeviceInfo{ id, id + libkineto::kExceedMaxPid, name, label });
    }

    std::vector<libkineto::ResourceInfo> getResourceInfos() override
    {
        std::vector<libkineto::ResourceInfo> infos;
        for (const auto &[device, engine] : engines_)
            infos.push_back({ engine, engine, device, "PE " + std::to_string(engine) });
        return infos;
    }

    std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override { return std::move(buffer_); }

    std::unordered_map<std::string, std::string> getMetadata() override
    {
        return { { "npuprof_lost", std::to_string(lost_) },
                 { "npuprof_clock_error_ns", std::to_string(clock_error_ns()) } };
    }

    /* A job that is submitted between push and pop, on the same thread, is that of the operator. */
    void pushCorrelationId(uint64_t id) override { open_.push_back({ thread(), npuprof_now_ns(), 0, id }); }

    void popCorrelationId() override
    {
        if (open_.empty()) return;
        Pushed p = open_.back();
        open_.pop_back();
        p.popped_ns = npuprof_now_ns();
        const std::lock_guard<std::mutex> lock(mutex_);
        pushed_.push_back(p);
    }

private:
    enum : uint32_t { DEVICES = 1u << NPUPROF_KIND_DEVICE, HOSTS = 1u << NPUPROF_KIND_SPAN };
    struct Pushed {
        long thread;
        int64_t pushed_ns, popped_ns;
        uint64_t id;
        bool operator<(const Pushed &o) const
        {
            return thread != o.thread ? thread < o.thread : pushed_ns < o.pushed_ns;
        }
    };
    struct Kept {
        npuprof_read_span span;      /* its pointers are not valid any more */
        std::string name;
        std::vector<std::pair<std::string, std::string>> numbers;
    };
    struct Submission { long thread; int64_t ns; };

    const std::set<libkineto::ActivityType> wanted_;
    const NpuprofKinetoTypeOf type_of_;
    std::unique_ptr<libkineto::CpuTraceBuffer> buffer_;
    libkineto::ActivityLogger *logger_ = nullptr;
    npuprof_cursor devices_ = {}, hosts_ = {};
    NpuprofKinetoPair first_ = {}, last_ = {};
    int64_t start_ns_ = 0, stop_ns_ = 0;
    bool started_npuprof_ = false;
    uint64_t lost_ = 0;              /* of them without a time, too */
    std::vector<std::string> errors_;
    std::vector<Kept> kept_;
    std::unordered_map<uint64_t, Submission> submissions_;       /* by the host span's id */
    std::map<int64_t, std::string> names_;
    std::set<std::pair<int64_t, int64_t>> engines_;
    std::mutex mutex_;
    std::vector<Pushed> pushed_;
    inline static thread_local std::vector<Pushed> open_;

    static long thread() { return syscall(SYS_gettid); }

    void check(npuprof_result result)
    {
        if (result != NPUPROF_OK) errors_.emplace_back(npuprof_result_string(result));
    }

    int64_t ahead_ns() const { return first_.ahead_ns + (last_.ahead_ns - first_.ahead_ns) / 2; }
    /* If the system's clock was set between start and stop, this is as large as the step. */

    uint64_t clock_error_ns() const
    {
        return std::max(first_.error_ns, last_.error_ns) +
            static_cast<uint64_t>(std::llabs(last_.ahead_ns - first_.ahead_ns)) / 2 + 1;
    }

    static bool keep(void *user, const npuprof_read_span *span)
    {
        auto &self = *static_cast<NpuprofKinetoSession *>(user);
        if (span->flags & NPUPROF_READ_POINT) return true;
        if (span->flags & NPUPROF_READ_NO_TIME) {
            self.lost_++;
            return true;
        }
        if (span->end_ns < self.start_ns_ || span->start_ns > self.stop_ns_) return true;
        Kept k = { *span, span->name, {} };
        for (size_t i = 0; i < span->arg_count; i++) {
            const npuprof_arg &arg = span->args[i];
            if (arg.type == NPUPROF_ARG_INT) k.numbers.emplace_back(arg.key, std::to_string(arg.value.i));
            if (arg.type == NPUPROF_ARG_UINT) k.numbers.emplace_back(arg.key, std::to_string(arg.value.u));
        }
        self.names_.emplace(static_cast<int64_t>(span->device) - 1, span->track);
        if (span->parent) self.submissions_.emplace(span->parent, Submission{ 0, 0 });
        self.kept_.push_back(std::move(k));
        return true;
    }

    static bool submission(void *user, const npuprof_read_span *span)
    {
        auto &self = *static_cast<NpuprofKinetoSession *>(user);
        const auto found = self.submissions_.find(span->id);
        if (found != self.submissions_.end()) found->second = { span->native_id, span->start_ns };
        return true;
    }

    /* The innermost operator that submitted the job of a span; 0: none is known. */
    uint64_t correlation(const npuprof_read_span &span) const
    {
        const auto found = submissions_.find(span.parent);
        if (found == submissions_.end() || !found->second.thread) return 0;
        const Submission s = found->second;
        auto at = std::upper_bound(pushed_.begin(), pushed_.end(), Pushed{ s.thread, s.ns, 0, 0 });
        while (at != pushed_.begin() && (--at)->thread == s.thread)
            if (at->popped_ns >= s.ns) return at->id;
        return 0;
    }

    void give(const Kept &k, const libkineto::getLinkedActivityCallback &linked, int64_t from, int64_t to)
    {
        const libkineto::ActivityType type = type_of_(k.name);
        const int64_t start = k.span.start_ns + ahead_ns(), end = k.span.end_ns + ahead_ns();
        if (!wanted_.count(type) || end < from || start > to) return;
        auto activity = std::make_unique<libkineto::GenericTraceActivity>(buffer_->span, type, k.name);
        activity->startTime = start;
        activity->endTime = end;
        activity->device = static_cast<int32_t>(k.span.device) - 1;
        activity->resource = k.span.engine;
        if (const uint64_t id = correlation(k.span)) {
            activity->id = static_cast<int32_t>(id);             /* Kineto's have 32 bits */
            activity->flow.id = static_cast<uint32_t>(id);
            activity->flow.type = libkineto::kLinkAsyncCpuGpu;
            activity->flow.start = 0;
            if (linked) activity->linked = linked(activity->id);
        }
        const bool is_known = k.span.error_ns != UINT64_MAX;
        if (is_known) activity->addMetadata("error_ns", std::to_string(k.span.error_ns + clock_error_ns()));
        else activity->addMetadataQuoted("error_ns", "unknown");
        if (k.span.flags & NPUPROF_READ_HAS_TICKS) {
            activity->addMetadata("start_ticks", std::to_string(k.span.start_ticks));
            activity->addMetadata("end_ticks", std::to_string(k.span.end_ticks));
            activity->addMetadata("epoch", std::to_string(k.span.epoch));
        }
        for (const auto &[key, number] : k.numbers) activity->addMetadata(key, number);
        engines_.emplace(activity->device, activity->resource);
        logger_->handleActivity(*activity);
        buffer_->activities.push_back(std::move(activity));
    }
};

class NpuprofKinetoProfiler : public libkineto::IActivityProfiler {
public:
    explicit NpuprofKinetoProfiler(NpuprofKinetoTypeOf type_of = npuprof_kineto_type_of)
        : type_of_(type_of) { }

    const std::string &name() const override { return name_; }

    const std::set<libkineto::ActivityType> &availableActivities() const override { return types_; }

    /* nullptr: the caller wants none of them. */
    std::unique_ptr<libkineto::IActivityProfilerSession> configure(
        const std::set<libkineto::ActivityType> &wanted, const libkineto::Config &) override
    {
        const bool any = std::any_of(types_.begin(), types_.end(), [&](auto t) { return wanted.count(t); });
        return any ? std::make_unique<NpuprofKinetoSession>(wanted, type_of_) : nullptr;
    }

    std::unique_ptr<libkineto::IActivityProfilerSession> configure(
        int64_t, int64_t, const std::set<libkineto::ActivityType> &wanted,
        const libkineto::Config &config) override
    {
        return configure(wanted, config);
    }

private:
    const NpuprofKinetoTypeOf type_of_;
    const std::string name_ = "npuprof";
    const std::set<libkineto::ActivityType> types_ = { libkineto::ActivityType::CONCURRENT_KERNEL,
                                                       libkineto::ActivityType::GPU_MEMCPY };
};
#endif /* NPUPROF_KINETO_H */

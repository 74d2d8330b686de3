/* What npuprof_kineto.h needs of Kineto (114171df, August 2026): the same names, types and order, written for
   the tests. The metadata is kept as JSON text.
   SPDX-License-Identifier: MIT */
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace libkineto {
class Config { };
enum class ActivityType { CPU_OP, GPU_MEMCPY, GPU_MEMSET, CONCURRENT_KERNEL, PRIVATEUSE1_RUNTIME };
enum class TraceStatus { READY, WARMUP, RECORDING, PROCESSING, ERROR, WARNING };
enum class ResourceType { UNKNOWN, HOST_THREAD };
constexpr unsigned int kLinkAsyncCpuGpu = 2;

struct TraceSpan {
    TraceSpan(int64_t start, int64_t end, std::string of) : startTime(start), endTime(end), name(of) { }
    int64_t startTime, endTime;
    std::string name;
};

struct ITraceActivity {
    virtual ~ITraceActivity() = default;
};

class GenericTraceActivity : public ITraceActivity {
public:
    GenericTraceActivity(const TraceSpan &span, ActivityType type, const std::string &name)
        : activityType(type), activityName(name), traceSpan(&span) { }

    template <typename T> void addMetadata(const std::string &key, const T &value) { metadata[key] = value; }

    void addMetadataQuoted(const std::string &key, const std::string &value)
    {
        metadata[key] = '"' + value + '"';
    }
    int64_t startTime{ 0 }, endTime{ 0 };
    int32_t id{ 0 }, device{ 0 };
    int64_t resource{ 0 };
    int32_t threadId{ 0 };
    ActivityType activityType;
    std::string activityName;
    struct Flow {

        Flow() : id(0), type(0), start(0) { }
        uint32_t id;
        uint32_t type : 4;
        uint32_t start : 1;
    } flow;
    const ITraceActivity *linked{ nullptr };
    const TraceSpan *traceSpan;
    std::unordered_map<std::string, std::string> metadata;
};

struct CpuTraceBuffer {
    TraceSpan span{ 0, 0, "none" };
    int gpuOpCount;
    std::deque<std::unique_ptr<GenericTraceActivity>> activities;
};

struct DeviceInfo {
    int64_t id, sortIndex;
    const std::string name, label;
};

struct ResourceInfo {
    int64_t id, sortIndex, deviceId;
    const std::string name;
    ResourceType resourceType{ ResourceType::UNKNOWN };
};

using getLinkedActivityCallback = std::function<const ITraceActivity *(int32_t)>;
class ActivityLogger;

class IActivityProfilerSession {
public:
    virtual ~IActivityProfilerSession() = default;
    virtual void start() = 0;
    virtual void stop() = 0;
    TraceStatus status() { return status_; }
    virtual std::vector<std::string> errors() = 0;
    virtual void processTrace(ActivityLogger &logger) = 0;

    virtual void processTrace(ActivityLogger &logger, getLinkedActivityCallback, int64_t, int64_t)
    {
        processTrace(logger);
    }
    virtual std::unique_ptr<DeviceInfo> getDeviceInfo() = 0;
    virtual std::vector<ResourceInfo> getResourceInfos() = 0;
    virtual std::unique_ptr<CpuTraceBuffer> getTraceBuffer() = 0;

    virtual void pushCorrelationId(uint64_t) { }
    virtual void popCorrelationId() { }
    virtual std::unordered_map<std::string, std::string> getMetadata() { return {}; }

protected:
    TraceStatus status_ = TraceStatus::READY;
};

class IActivityProfiler {
public:
    virtual ~IActivityProfiler() = default;
    virtual const std::string &name() const = 0;
    virtual const std::set<ActivityType> &availableActivities() const = 0;
    virtual std::unique_ptr<IActivityProfilerSession> configure(const std::set<ActivityType> &,
                                                                const Config &) = 0;
    virtual std::unique_ptr<IActivityProfilerSession> configure(int64_t, int64_t,
                                                                const std::set<ActivityType> &,
                                                                const Config &) = 0;
};
}

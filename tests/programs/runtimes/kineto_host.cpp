/* kineto_host.cpp - plays Kineto's controller for npuprof_kineto.h: a session around operators of two
   threads, whose jobs run on a device with a driver that has npuprof. usage: kineto_host RUNS TRUTH: prints a
   line of JSON for each activity that Kineto would show, and one for the session
   SPDX-License-Identifier: MIT */
#include "npuprof.h"
#include "npuprof_npu.h"
#include "npuprof_kineto.h"
#include "drifting_npu.h"
#include <atomic>
#include <thread>

using libkineto::ActivityType;
struct Operator : libkineto::ITraceActivity {
    int32_t id;
};

struct Logger : libkineto::ActivityLogger {
    std::vector<const libkineto::GenericTraceActivity *> seen;
    void handleActivity(const libkineto::ITraceActivity &activity) override
    {
        seen.push_back(static_cast<const libkineto::GenericTraceActivity *>(&activity));
    }
};

static std::unordered_map<int32_t, Operator> operators;
/* As a backend does that has other names. */
struct Profiler : NpuprofKinetoProfiler {
    Profiler() : NpuprofKinetoProfiler(type_of) { }

    static ActivityType type_of(const std::string &name)
    {
        return name == "of no operator" ? ActivityType::GPU_MEMCPY : npuprof_kineto_type_of(name);
    }
};
static Profiler profiler;

/* An operator in an operator, of which the inner one submits; and a job without one. */
static void run_operators(libkineto::IActivityProfilerSession *session, int first, int count)
{
    for (int i = first; i < first + count; i++) {
        const uint64_t id = (UINT64_C(1) << 32) + 2 * static_cast<uint64_t>(i);
        char name[48];
        snprintf(name, sizeof name, "kernel %d", i);
        session->pushCorrelationId(id);
        session->pushCorrelationId(id + 1);
        drifting_run(i % 5 ? name : "Load", 5000);
        session->popCorrelationId();
        session->popCorrelationId();
    }
    drifting_run("of no operator", 5000);
}

/* A thread without an operator submits, and ends. Another one takes its row, within an operator that began
   before that. */
static void run_in_one_row(libkineto::IActivityProfilerSession *session)
{
    std::atomic<int> step(0);
    std::thread second([&] {
        session->pushCorrelationId(1);
        step = 1;
        while (step < 2) std::this_thread::yield();
        drifting_run("second of a row", 5000);
        session->popCorrelationId();
    });
    while (step < 1) std::this_thread::yield();
    std::thread(drifting_run, "first of a row", 5000).join();
    step = 2;
    second.join();
}

static void show(const libkineto::GenericTraceActivity &a)
{
    const auto *const op = static_cast<const Operator *>(a.linked);
    printf("{\"name\":\"%s\",\"start\":%lld,\"end\":%lld,\"type\":%d,\"id\":%d,\"device\":%d,"
           "\"resource\":%lld,\"flow\":[%u,%u,%u],\"linked\":%d,\"span\":\"%s\",\"args\":{",
           a.activityName.c_str(),
           (long long)a.startTime, (long long)a.endTime, (int)a.activityType, a.id, a.device,
           (long long)a.resource, a.flow.id, a.flow.type, a.flow.start, op ? op->id : -1,
           a.traceSpan->name.c_str());
    const char *comma = "";
    for (const auto &[key, value] : a.metadata) {
        printf("%s\"%s\":%s", comma, key.c_str(), value.c_str());
        comma = ",";
    }
    puts("}}");
}

/* The session is over before what Kineto keeps of it is looked at. */
static std::unique_ptr<libkineto::CpuTraceBuffer> profile(int runs)
{
    Logger logger;
    const std::set<ActivityType> wanted = { ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY };
    auto session = profiler.configure(0, 0, wanted, {});
    session->start();
    std::thread other([&] {
        PROF_THREAD_NAME("other");               /* so that its row stays its own */
        run_operators(session.get(), runs, runs);
    });
    run_operators(session.get(), 0, runs);
    other.join();
    run_in_one_row(session.get());
    session->stop();
    drifting_run("after the end", 5000);
    const auto linked = [](int32_t id) -> const libkineto::ITraceActivity * { return &operators[id]; };
    session->processTrace(logger, linked, 0, INT64_MAX);
    const auto device = session->getDeviceInfo();
    printf("{\"device\":[%lld,\"%s\",\"%s\"],\"resources\":%zu,\"errors\":%zu,\"lost\":%s,\"seen\":%zu,"
           "\"status\":%d}\n", (long long)device->id, device->name.c_str(), device->label.c_str(),
           session->getResourceInfos().size(), session->errors().size(),
           session->getMetadata()["npuprof_lost"].c_str(), logger.seen.size(),
           session->status() == libkineto::TraceStatus::PROCESSING);
    return session->getTraceBuffer();
}

int main(int argc, char **argv)
{
    if (argc < 3 || drifting_open()) return 2;
    const int runs = atoi(argv[1]);
    if (profiler.configure(0, 0, { ActivityType::CPU_OP }, {})) return 3;       /* it has none of these */
    for (int i = 0; i < 4 * runs; i++) operators[i].id = i;
    npuprof_start(1);
    drifting_run("before the session", 5000);
    npuprof_stop();
    const auto kept = profile(runs);
    if (npuprof_is_recording()) return 4;
    for (const auto &activity : kept->activities) show(*activity);
    struct timespec unix_time, now;
    clock_gettime(CLOCK_REALTIME, &unix_time);
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("{\"ahead\":%lld}\n", (long long)((unix_time.tv_sec - now.tv_sec) * 1000000000LL +
                                            (unix_time.tv_nsec - now.tv_nsec)));
    npuprof_npu_close(&drifting_npu);
    return drifting_tell(argv[2]);
}

/* ort_host.c - a program that runs a model in ONNX Runtime, with a plug-in and ORT's own profile.
   usage: ort_host PLUGIN MODEL PREFIX RUNS THREADS: prints the profile's path, its beginning in ns on ORT's
   clock, how far that clock is from CLOCK_MONOTONIC in ns, and the first element of the result. WITH_DEVICE:
   the first thread gives a device a job after each run, too.
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#include "ort_api.h"
#ifdef WITH_DEVICE
#include "npuprof.h"
#include "npuprof_npu.h"
#include "drifting_npu.h"
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ELEMENTS = 16, FLOAT = 1, ARENA = 1, CPU_MEMORY = 0, ERRORS = 3 };

static const OrtApi *ort;
static OrtSession *session;
static int runs;
static float result[ELEMENTS];

static void must(OrtStatus *status)
{
    if (!status) return;
    fprintf(stderr, "%s\n", ort->GetErrorMessage(status));
    exit(1);
}

static void *run_all(void *writes)
{
    static const int64_t shape = ELEMENTS;
    const char *const in = "x", *const out = "y";
    float data[ELEMENTS];
    OrtMemoryInfo *memory;
    OrtValue *input;
    for (int i = 0; i < ELEMENTS; i++) data[i] = 0.5f + 0.01f * (float)i;
    must(ort->CreateCpuMemoryInfo(ARENA, CPU_MEMORY, &memory));
    must(ort->CreateTensorWithDataAsOrtValue(memory, data, sizeof data, &shape, 1, FLOAT, &input));
    for (int i = 0; i < runs; i++) {
        OrtValue *output = NULL;
        void *values;
        must(ort->Run(session, NULL, &in, (const OrtValue *const *)&input, 1, &out, 1, &output));
        must(ort->GetTensorMutableData(output, &values));
        for (int k = 0; writes && k < ELEMENTS; k++) result[k] = ((float *)values)[k];
        ort->ReleaseValue(output);
#ifdef WITH_DEVICE
        if (writes) drifting_run("job of the host", 20000);
#endif
    }
    ort->ReleaseValue(input);
    ort->ReleaseMemoryInfo(memory);
    return NULL;
}

/* The last of the devices is the plug-in's: ORT's own come first. */
static void add_plugin(OrtEnv *env, OrtSessionOptions *options, const char *path)
{
    const OrtEpDevice *const *devices;
    size_t count;
    must(ort->RegisterExecutionProviderLibrary(env, "plugin", path));
    must(ort->GetEpDevices(env, &devices, &count));
    must(ort->SessionOptionsAppendExecutionProvider_V2(options, env, &devices[count - 1], 1, NULL, NULL, 0));
}

static long long ahead_of_monotonic(void)
{
    struct timespec unix_time, now;
    clock_gettime(CLOCK_REALTIME, &unix_time);
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unix_time.tv_sec - now.tv_sec) * 1000000000LL + (unix_time.tv_nsec - now.tv_nsec);
}

int main(int argc, char **argv)
{
    OrtEnv *env;
    OrtSessionOptions *options;
    OrtAllocator *allocator;
    pthread_t threads[8];
    uint64_t start;
    char *path;
    if (argc < 6) return 2;
    ort = OrtGetApiBase()->GetApi(ORT_API_VERSION);
    if (!ort) return 3;
    runs = atoi(argv[4]);
    const int count = atoi(argv[5]);
#ifdef WITH_DEVICE
    if (drifting_open()) return 4;
#endif
    must(ort->CreateEnv(ERRORS, "test", &env));
    must(ort->CreateSessionOptions(&options));
    must(ort->SetSessionGraphOptimizationLevel(options, 0));
    must(ort->SetIntraOpNumThreads(options, 1));
    must(ort->EnableProfiling(options, argv[3]));
    add_plugin(env, options, argv[1]);
    must(ort->CreateSession(env, argv[2], options, &session));
    for (int i = 1; i < count && i < 8; i++) pthread_create(&threads[i], NULL, run_all, NULL);
    run_all(argv);
    for (int i = 1; i < count && i < 8; i++) pthread_join(threads[i], NULL);
    must(ort->SessionGetProfilingStartTimeNs(session, &start));
    must(ort->GetAllocatorWithDefaultOptions(&allocator));
    must(ort->SessionEndProfiling(session, allocator, &path));
    printf("%s\n%llu\n%lld\n%.9g\n", path, (unsigned long long)start, ahead_of_monotonic(),
           (double)result[0]);
    must(ort->AllocatorFree(allocator, path));
    ort->ReleaseSession(session);
    ort->ReleaseSessionOptions(options);
    must(ort->UnregisterExecutionProviderLibrary(env, "plugin"));
    ort->ReleaseEnv(env);
#ifdef WITH_DEVICE
    npuprof_npu_close(&drifting_npu);
    return drifting_tell(getenv("DRIFTING_TRUTH"));
#else
    return 0;
#endif
}

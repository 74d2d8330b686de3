/* ort_api.h - the part of ONNX Runtime's public C API that the profiler and its plug-in call, for who has no
   onnxruntime_c_api.h. Names, order and types are facts of that API, which only ever grows at its ends; the
   functions in between are counted, not named. Checked with ONNX Runtime 1.30 on Linux. If
   onnxruntime_c_api.h was included before, this declares nothing.
   SPDX-License-Identifier: MIT */
#ifndef ORT_API_VERSION
#define ORT_API_VERSION 25              /* ONNX Runtime 1.25 was the first with profilers in plug-ins */
#define ORT_API_CALL                    /* nothing but on 32-bit Windows */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct OrtStatus OrtStatus;
typedef struct OrtEnv OrtEnv;
typedef struct OrtLogger OrtLogger;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtValue OrtValue;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtGraph OrtGraph;
typedef struct OrtNode OrtNode;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtKeyValuePairs OrtKeyValuePairs;
typedef struct OrtHardwareDevice OrtHardwareDevice;
typedef struct OrtEpDevice OrtEpDevice;
typedef struct OrtEpGraphSupportInfo OrtEpGraphSupportInfo;
typedef struct OrtNodeComputeContext OrtNodeComputeContext;
typedef struct OrtDataTransferImpl OrtDataTransferImpl;
typedef struct OrtProfilingEvent OrtProfilingEvent;
typedef struct OrtProfilingEventsContainer OrtProfilingEventsContainer;
typedef struct OrtEp OrtEp;
typedef struct OrtEpFactory OrtEpFactory;
typedef struct OrtEpProfilerImpl OrtEpProfilerImpl;
typedef struct OrtNodeComputeInfo OrtNodeComputeInfo;
typedef struct OrtNodeFusionOptions OrtNodeFusionOptions;
typedef enum { ORT_FAIL = 1 } OrtErrorCode;
typedef enum { OrtHardwareDeviceType_CPU } OrtHardwareDeviceType;
typedef enum { OrtProfilingEventCategory_SESSION, OrtProfilingEventCategory_NODE,
               OrtProfilingEventCategory_KERNEL, OrtProfilingEventCategory_API } OrtProfilingEventCategory;

/* What ORT gives for a plug-in: 65 functions, of which the profiler needs none but those behind them. */
typedef struct OrtEpApi {
    OrtStatus *(*CreateEpDevice)(OrtEpFactory *factory, const OrtHardwareDevice *hardware,
                                 const OrtKeyValuePairs *metadata, const OrtKeyValuePairs *options,
                                 OrtEpDevice **device);
    void (*ReleaseEpDevice)(OrtEpDevice *device);
    OrtStatus *(*EpGraphSupportInfo_AddNodesToFuse)(OrtEpGraphSupportInfo *support,
                                                    const OrtNode *const *nodes, size_t count,
                                                    const OrtNodeFusionOptions *options);
    void *slot_3;
    const char *(*NodeComputeContext_NodeName)(const OrtNodeComputeContext *context);
    void *slots_5_to_64[60];
    OrtStatus *(*CreateProfilingEvent)(OrtProfilingEventCategory category, int32_t process, int32_t thread,
                                       const char *name, int64_t timestamp_us, int64_t duration_us,
                                       const char *const *keys, const char *const *values, size_t count,
                                       OrtProfilingEvent **event);
    void (*ReleaseProfilingEvent)(OrtProfilingEvent *event);
    OrtStatus *(*ProfilingEvent_GetCategory)(const OrtProfilingEvent *event, OrtProfilingEventCategory *out);
    OrtStatus *(*ProfilingEvent_GetName)(const OrtProfilingEvent *event, const char **out);
    OrtStatus *(*ProfilingEvent_GetTimestampUs)(const OrtProfilingEvent *event, int64_t *out);
    OrtStatus *(*ProfilingEvent_GetDurationUs)(const OrtProfilingEvent *event, int64_t *out);
    OrtStatus *(*ProfilingEvent_GetArgValue)(const OrtProfilingEvent *event, const char *key,
                                             const char **out);
    OrtStatus *(*ProfilingEventsContainer_AddEvents)(OrtProfilingEventsContainer *container,
                                                     const OrtProfilingEvent *const *events, size_t count);
} OrtEpApi;

typedef struct OrtApi {
    OrtStatus *(*CreateStatus)(OrtErrorCode code, const char *message);
    OrtErrorCode (*GetErrorCode)(const OrtStatus *status);
    const char *(*GetErrorMessage)(const OrtStatus *status);
    OrtStatus *(*CreateEnv)(int log_level, const char *log_id, OrtEnv **out);
    void *slots_4_to_6[3];
    OrtStatus *(*CreateSession)(const OrtEnv *env, const char *path, const OrtSessionOptions *options,
                                OrtSession **out);
    void *slot_8;
    OrtStatus *(*Run)(OrtSession *session, const OrtRunOptions *options, const char *const *input_names,
                      const OrtValue *const *inputs, size_t input_count, const char *const *output_names,
                      size_t output_count, OrtValue **outputs);
    OrtStatus *(*CreateSessionOptions)(OrtSessionOptions **out);
    void *slots_11_to_13[3];
    OrtStatus *(*EnableProfiling)(OrtSessionOptions *options, const char *file_prefix);
    void *slots_15_to_22[8];
    OrtStatus *(*SetSessionGraphOptimizationLevel)(OrtSessionOptions *options, int level);
    OrtStatus *(*SetIntraOpNumThreads)(OrtSessionOptions *options, int count);
    void *slots_25_to_38[14];
    OrtStatus *(*CreateRunOptions)(OrtRunOptions **out);
    void *slots_40_to_48[9];
    OrtStatus *(*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo *info, void *data, size_t bytes,
                                                 const int64_t *shape, size_t dimensions, int type,
                                                 OrtValue **out);
    void *slot_50;
    OrtStatus *(*GetTensorMutableData)(OrtValue *value, void **out);
    void *slots_52_to_68[17];
    OrtStatus *(*CreateCpuMemoryInfo)(int allocator, int memory, OrtMemoryInfo **out);
    void *slots_70_to_75[6];
    OrtStatus *(*AllocatorFree)(OrtAllocator *allocator, void *memory);
    void *slot_77;
    OrtStatus *(*GetAllocatorWithDefaultOptions)(OrtAllocator **out);
    void *slots_79_to_87[9];
    OrtStatus *(*KernelContext_GetInputCount)(const OrtKernelContext *context, size_t *out);
    OrtStatus *(*KernelContext_GetOutputCount)(const OrtKernelContext *context, size_t *out);
    OrtStatus *(*KernelContext_GetInput)(const OrtKernelContext *context, size_t index, const OrtValue **out);
    OrtStatus *(*KernelContext_GetOutput)(OrtKernelContext *context, size_t index, const int64_t *dimensions,
                                          size_t count, OrtValue **out);
    void (*ReleaseEnv)(OrtEnv *env);
    void (*ReleaseStatus)(OrtStatus *status);
    void (*ReleaseMemoryInfo)(OrtMemoryInfo *info);
    void (*ReleaseSession)(OrtSession *session);
    void (*ReleaseValue)(OrtValue *value);
    void (*ReleaseRunOptions)(OrtRunOptions *options);
    void *slots_98_to_99[2];
    void (*ReleaseSessionOptions)(OrtSessionOptions *options);
    void *slots_101_to_109[9];
    OrtStatus *(*SessionEndProfiling)(OrtSession *session, OrtAllocator *allocator, char **path);
    void *slots_111_to_145[35];
    OrtStatus *(*SessionGetProfilingStartTimeNs)(const OrtSession *session, uint64_t *out);
    void *slots_147_to_300[154];
    OrtStatus *(*RegisterExecutionProviderLibrary)(OrtEnv *env, const char *name, const char *path);
    OrtStatus *(*UnregisterExecutionProviderLibrary)(OrtEnv *env, const char *name);
    OrtStatus *(*GetEpDevices)(const OrtEnv *env, const OrtEpDevice *const **devices, size_t *count);
    OrtStatus *(*SessionOptionsAppendExecutionProvider_V2)(OrtSessionOptions *options, OrtEnv *env,
                                                           const OrtEpDevice *const *devices, size_t count,
                                                           const char *const *keys, const char *const *values,
                                                           size_t option_count);
    void *slots_305_to_306[2];
    OrtHardwareDeviceType (*HardwareDevice_Type)(const OrtHardwareDevice *device);
    void *slots_308_to_311[4];
    const char *(*EpDevice_EpName)(const OrtEpDevice *device);
    void *slots_313_to_316[4];
    const OrtEpApi *(*GetEpApi)(void);
    void *slots_318_to_343[26];
    OrtStatus *(*Graph_GetNumNodes)(const OrtGraph *graph, size_t *out);
    OrtStatus *(*Graph_GetNodes)(const OrtGraph *graph, const OrtNode **nodes, size_t count);
    void *slots_346_to_348[3];
    OrtStatus *(*Node_GetName)(const OrtNode *node, const char **out);
    OrtStatus *(*Node_GetOperatorType)(const OrtNode *node, const char **out);
} OrtApi;

typedef struct OrtApiBase {
    const OrtApi *(*GetApi)(uint32_t version);
    const char *(*GetVersionString)(void);
} OrtApiBase;

const OrtApiBase *OrtGetApiBase(void);

/* What a plug-in gives. A pointer that is NULL is a function that it does not have. */
struct OrtEpProfilerImpl {
    uint32_t ort_version_supported;
    void (*Release)(OrtEpProfilerImpl *profiler);
    OrtStatus *(*StartProfiling)(OrtEpProfilerImpl *profiler, int64_t offset_ns);
    OrtStatus *(*StartEvent)(OrtEpProfilerImpl *profiler, uint64_t correlation);
    OrtStatus *(*StopEvent)(OrtEpProfilerImpl *profiler, uint64_t correlation,
                            const OrtProfilingEvent *event);
    OrtStatus *(*EndProfiling)(OrtEpProfilerImpl *profiler, OrtProfilingEventsContainer *events);
};

struct OrtNodeComputeInfo {
    uint32_t ort_version_supported;
    OrtStatus *(*CreateState)(OrtNodeComputeInfo *node, OrtNodeComputeContext *context, void **state);
    OrtStatus *(*Compute)(OrtNodeComputeInfo *node, void *state, OrtKernelContext *context);
    void (*ReleaseState)(OrtNodeComputeInfo *node, void *state);
};

struct OrtEp {
    uint32_t ort_version_supported;
    const char *(*GetName)(const OrtEp *ep);
    OrtStatus *(*GetCapability)(OrtEp *ep, const OrtGraph *graph, OrtEpGraphSupportInfo *support);
    OrtStatus *(*Compile)(OrtEp *ep, const OrtGraph **graphs, const OrtNode **nodes, size_t count,
                          OrtNodeComputeInfo **infos, OrtNode **context_nodes);
    void (*ReleaseNodeComputeInfos)(OrtEp *ep, OrtNodeComputeInfo **infos, size_t count);
    void *members_5_to_15[11];
    OrtStatus *(*CreateProfiler)(OrtEp *ep, OrtEpProfilerImpl **profiler);
    void *members_17_to_25[9];
};

struct OrtEpFactory {
    uint32_t ort_version_supported;
    const char *(*GetName)(const OrtEpFactory *factory);
    const char *(*GetVendor)(const OrtEpFactory *factory);
    OrtStatus *(*GetSupportedDevices)(OrtEpFactory *factory, const OrtHardwareDevice *const *hardware,
                                      size_t count, OrtEpDevice **devices, size_t most, size_t *found);
    OrtStatus *(*CreateEp)(OrtEpFactory *factory, const OrtHardwareDevice *const *hardware,
                           const OrtKeyValuePairs *const *metadata, size_t count,
                           const OrtSessionOptions *options, const OrtLogger *logger, OrtEp **ep);
    void (*ReleaseEp)(OrtEpFactory *factory, OrtEp *ep);
    uint32_t (*GetVendorId)(const OrtEpFactory *factory);
    const char *(*GetVersion)(const OrtEpFactory *factory);
    void *member_8;
    OrtStatus *(*CreateAllocator)(OrtEpFactory *factory, const OrtMemoryInfo *info,
                                  const OrtKeyValuePairs *options, OrtAllocator **allocator);
    void (*ReleaseAllocator)(OrtEpFactory *factory, OrtAllocator *allocator);
    OrtStatus *(*CreateDataTransfer)(OrtEpFactory *factory, OrtDataTransferImpl **transfer);
    bool (*IsStreamAware)(const OrtEpFactory *factory);
    void *members_13_to_20[8];
};
#endif /* ORT_API_VERSION */

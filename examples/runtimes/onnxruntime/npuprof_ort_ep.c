/* npuprof_ort_ep.c - a plug-in for ONNX Runtime that executes no node and profiles all of them. Use it where
   the execution provider that runs the model has no profiler of its own: each node of the session is recorded
   by npuprof, and the spans of all devices that npuprof knows in this process go into ORT's profile.
   SPDX-License-Identifier: MIT
   Build: cc -I../../.. -shared -fPIC npuprof_ort_ep.c -o libnpuprof_ort_ep.so -L../../../build -lnpuprof */
#include "npuprof.h"
#include "npuprof_npu.h"
#include "ort_api.h"
#include "npuprof_ort.h"

#define SHOWN __attribute__((visibility("default")))

static const OrtApi *api;

static const char *ep_name(const OrtEp *ep) { return (void)ep, "NpuprofExecutionProvider"; }
static const char *factory_name(const OrtEpFactory *factory) { return (void)factory, ep_name(NULL); }
static const char *factory_vendor(const OrtEpFactory *factory) { return (void)factory, "npuprof"; }
static const char *factory_version(const OrtEpFactory *factory) { return (void)factory, "1.0.0"; }
static uint32_t factory_vendor_id(const OrtEpFactory *factory) { return (void)factory, 0; }
static bool is_stream_aware(const OrtEpFactory *factory) { return (void)factory, false; }
static void release_ep(OrtEpFactory *factory, OrtEp *ep) { (void)factory, (void)ep; }
static void release_allocator(OrtEpFactory *factory, OrtAllocator *a) { (void)factory, (void)a; }

static OrtStatus *no_node(OrtEp *ep, const OrtGraph *graph, OrtEpGraphSupportInfo *support)
{
    return (void)ep, (void)graph, (void)support, NULL;
}

static OrtStatus *no_allocator(OrtEpFactory *factory, const OrtMemoryInfo *info,
                               const OrtKeyValuePairs *options, OrtAllocator **allocator)
{
    (void)factory, (void)info, (void)options;
    *allocator = NULL;
    return NULL;
}

static OrtStatus *no_data_transfer(OrtEpFactory *factory, OrtDataTransferImpl **transfer)
{
    (void)factory;
    *transfer = NULL;
    return NULL;
}

/* One device, the CPU: ORT asks for at least one. */
static OrtStatus *supported_devices(OrtEpFactory *factory, const OrtHardwareDevice *const *hardware,
                                    size_t count, OrtEpDevice **devices, size_t most, size_t *found)
{
    *found = 0;
    for (size_t i = 0; i < count && *found < most; i++) {
        if (*found || api->HardwareDevice_Type(hardware[i]) != OrtHardwareDeviceType_CPU) continue;
        OrtStatus *failed = api->GetEpApi()->CreateEpDevice(factory, hardware[i], NULL, NULL, &devices[0]);
        if (failed) return failed;
        *found = 1;
    }
    return NULL;
}

static OrtStatus *create_profiler(OrtEp *ep, OrtEpProfilerImpl **profiler)
{
    (void)ep;
    return npuprof_ort_create(api, profiler);
}

static OrtStatus *create_ep(OrtEpFactory *factory, const OrtHardwareDevice *const *hardware,
                            const OrtKeyValuePairs *const *metadata, size_t count,
                            const OrtSessionOptions *options, const OrtLogger *logger, OrtEp **ep)
{
    static OrtEp only;                   /* it has no state, so all sessions share it */
    (void)factory, (void)hardware, (void)metadata, (void)count, (void)options, (void)logger;
    only.ort_version_supported = ORT_API_VERSION;
    only.GetName = ep_name;
    only.GetCapability = no_node;
    only.CreateProfiler = create_profiler;
    *ep = &only;
    return NULL;
}

SHOWN OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger,
                                   OrtEpFactory **factories, size_t most, size_t *count);
SHOWN OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

SHOWN OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger,
                                   OrtEpFactory **factories, size_t most, size_t *count)
{
    static OrtEpFactory factory;
    (void)name, (void)logger;
    *count = 0;
    api = base->GetApi(ORT_API_VERSION);
    if (!api || !most) return NULL;      /* older than 1.25: it offers no provider */
    factory.ort_version_supported = ORT_API_VERSION;
    factory.GetName = factory_name;
    factory.GetVendor = factory_vendor;
    factory.GetVendorId = factory_vendor_id;
    factory.GetVersion = factory_version;
    factory.GetSupportedDevices = supported_devices;
    factory.CreateEp = create_ep;
    factory.ReleaseEp = release_ep;
    factory.CreateAllocator = no_allocator;
    factory.ReleaseAllocator = release_allocator;
    factory.CreateDataTransfer = no_data_transfer;
    factory.IsStreamAware = is_stream_aware;
    factories[0] = &factory;
    *count = 1;
    return NULL;
}

SHOWN OrtStatus *ReleaseEpFactory(OrtEpFactory *factory) { return (void)factory, NULL; }

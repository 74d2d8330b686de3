/* ort_device_ep.c - an execution provider as a vendor has it: it runs Mul and Add of float tensors on a
   device whose clock drifts, and hands ORT the profiler of npuprof. The factory is that of the example.
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE 1
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#include "drifting_npu.h"
#define CreateEpFactories example_factories
#define ReleaseEpFactory example_release
#include "npuprof_ort_ep.c"
#undef CreateEpFactories
#undef ReleaseEpFactory
#include <stdlib.h>

enum { ELEMENTS = 16, JOB_NS = 15000 };

typedef struct node { OrtNodeComputeInfo info; bool multiplies; char name[48]; } node;

static const char *device_ep_name(const OrtEp *ep) { return (void)ep, "DriftingExecutionProvider"; }
static const char *device_factory_name(const OrtEpFactory *f) { return (void)f, device_ep_name(NULL); }

static bool is_ours(const OrtNode *one, bool *multiplies)
{
    const char *type = "";
    if (api->Node_GetOperatorType(one, &type)) return false;
    *multiplies = !strcmp(type, "Mul");
    return *multiplies || !strcmp(type, "Add");
}

static OrtStatus *capability(OrtEp *ep, const OrtGraph *graph, OrtEpGraphSupportInfo *support)
{
    const OrtNode *nodes[256];
    size_t count = 0;
    bool multiplies;
    (void)ep;
    OrtStatus *failed = api->Graph_GetNumNodes(graph, &count);
    if (!failed && count <= 256) failed = api->Graph_GetNodes(graph, nodes, count);
    for (size_t i = 0; !failed && count <= 256 && i < count; i++)
        if (is_ours(nodes[i], &multiplies))
            failed = api->GetEpApi()->EpGraphSupportInfo_AddNodesToFuse(support, &nodes[i], 1, NULL);
    return failed;
}

static OrtStatus *create_state(OrtNodeComputeInfo *info, OrtNodeComputeContext *context, void **state)
{
    (void)context;
    *state = info;
    return NULL;
}

static void release_state(OrtNodeComputeInfo *info, void *state) { (void)info, (void)state; }

static OrtStatus *compute(OrtNodeComputeInfo *info, void *state, OrtKernelContext *context)
{
    static const int64_t shape = ELEMENTS;
    const node *const n = state;
    const OrtValue *input[2] = { NULL, NULL };
    OrtValue *output;
    void *data[3];
    size_t inputs;
    (void)info;
    OrtStatus *failed = api->KernelContext_GetInputCount(context, &inputs);
    for (size_t i = 0; !failed && i < inputs && i < 2; i++)
        failed = api->KernelContext_GetInput(context, i, &input[i]);
    if (!input[1]) input[1] = input[0];
    if (!failed) failed = api->KernelContext_GetOutput(context, 0, &shape, 1, &output);
    for (int i = 0; !failed && i < 2; i++)
        failed = api->GetTensorMutableData((OrtValue *)(uintptr_t)input[i], &data[i]);
    if (!failed) failed = api->GetTensorMutableData(output, &data[2]);
    if (failed) return failed;
    const float *const a = data[0], *const b = data[1];
    for (int i = 0; i < ELEMENTS; i++) ((float *)data[2])[i] = n->multiplies ? a[i] * b[i] : a[i] + b[i];
    drifting_run(n->name, JOB_NS);
    return NULL;
}

static OrtStatus *compile(OrtEp *ep, const OrtGraph **graphs, const OrtNode **fused, size_t count,
                          OrtNodeComputeInfo **infos, OrtNode **context_nodes)
{
    (void)ep, (void)fused, (void)context_nodes;
    for (size_t i = 0; i < count; i++) {
        const OrtNode *inside[1] = { NULL };
        const char *name = "";
        node *const n = calloc(1, sizeof *n);
        OrtStatus *failed = api->Graph_GetNodes(graphs[i], inside, 1);
        if (!failed) failed = api->Node_GetName(inside[0], &name);
        if (failed || !n || !is_ours(inside[0], &n->multiplies))
            return failed ? failed : api->CreateStatus(ORT_FAIL, "not a node of this provider");
        snprintf(n->name, sizeof n->name, "%s", name);
        n->info.ort_version_supported = ORT_API_VERSION;
        n->info.CreateState = create_state;
        n->info.Compute = compute;
        n->info.ReleaseState = release_state;
        infos[i] = &n->info;
    }
    return NULL;
}

static void release_infos(OrtEp *ep, OrtNodeComputeInfo **infos, size_t count)
{
    (void)ep;
    for (size_t i = 0; i < count; i++) free(infos[i]);
}

static OrtStatus *create_device_ep(OrtEpFactory *factory, const OrtHardwareDevice *const *hardware,
                                   const OrtKeyValuePairs *const *metadata, size_t count,
                                   const OrtSessionOptions *options, const OrtLogger *logger, OrtEp **ep)
{
    OrtStatus *const failed = create_ep(factory, hardware, metadata, count, options, logger, ep);
    if (failed) return failed;
    (*ep)->GetName = device_ep_name;
    (*ep)->GetCapability = capability;
    (*ep)->Compile = compile;
    (*ep)->ReleaseNodeComputeInfos = release_infos;
    if (drifting_origin) return NULL;
    const npuprof_result result = drifting_open();
    return result ? api->CreateStatus(ORT_FAIL, npuprof_result_string(result)) : NULL;
}

SHOWN OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger,
                                   OrtEpFactory **factories, size_t most, size_t *count);
SHOWN OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

SHOWN OrtStatus *CreateEpFactories(const char *name, const OrtApiBase *base, const OrtLogger *logger,
                                   OrtEpFactory **factories, size_t most, size_t *count)
{
    OrtStatus *const failed = example_factories(name, base, logger, factories, most, count);
    if (failed || !*count) return failed;
    factories[0]->GetName = device_factory_name;
    factories[0]->CreateEp = create_device_ep;
    return NULL;
}

SHOWN OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    const char *const path = getenv("DRIFTING_TRUTH");
    if (path) drifting_tell(path);
    npuprof_npu_close(&drifting_npu);
    return example_release(factory);
}

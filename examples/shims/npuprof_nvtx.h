/* npuprof_nvtx.h - NVTX 3 on npuprof: a program written against nvToolsExt.h is recorded, without a tool that
   is injected. README.md beside it says how to use it. Declarations made from the documentation of NVTX.
   SPDX-License-Identifier: MIT

   Ranges that are pushed become spans of the thread, started ones async spans, marks instants. The domain is
   the category; category and payload are arguments. Names of categories go into the metadata.
   Not held, and counted in the metadata (npuprof.collect.not_held.nvtx.*): payload (of started ranges, or of
   unknown type), order (pops that do not nest over domains), thread (names of other threads), object (named
   resources). Colours are left out. */
#ifndef NPUPROF_NVTX_H
#define NPUPROF_NVTX_H
#include "npuprof_shim.h"
#ifdef __cplusplus
extern "C" {
#endif

#define NVTX_VERSION 3
#define NVTX_API
#define NVTX_SUCCESS 0
#define NVTX_FAIL 1
#define NVTX_NO_PUSH_POP_TRACKING (-2)
typedef enum nvtxColorType_t { NVTX_COLOR_UNKNOWN = 0, NVTX_COLOR_ARGB = 1 } nvtxColorType_t;
typedef enum nvtxMessageType_t { NVTX_MESSAGE_UNKNOWN = 0, NVTX_MESSAGE_TYPE_ASCII = 1,
    NVTX_MESSAGE_TYPE_UNICODE = 2, NVTX_MESSAGE_TYPE_REGISTERED = 3 } nvtxMessageType_t;
typedef enum nvtxPayloadType_t { NVTX_PAYLOAD_UNKNOWN = 0, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1,
    NVTX_PAYLOAD_TYPE_INT64 = 2, NVTX_PAYLOAD_TYPE_DOUBLE = 3, NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 = 4,
    NVTX_PAYLOAD_TYPE_INT32 = 5, NVTX_PAYLOAD_TYPE_FLOAT = 6 } nvtxPayloadType_t;

typedef uint64_t nvtxRangeId_t;
typedef struct nvtxDomainRegistration_st nvtxDomainRegistration, *nvtxDomainHandle_t;
typedef struct nvtxStringRegistration_st nvtxStringRegistration, *nvtxStringHandle_t;
typedef struct nvtxResourceHandle *nvtxResourceHandle_t;
typedef union nvtxMessageValue_t { const char *ascii; const wchar_t *unicode; nvtxStringHandle_t registered; }
    nvtxMessageValue_t;
typedef struct nvtxEventAttributes_v2 {
    uint16_t version, size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType, reserved0;
    union payload_t { uint64_t ullValue; int64_t llValue; double dValue; uint32_t uiValue; int32_t iValue;
        float fValue; } payload;
    int32_t messageType;
    nvtxMessageValue_t message;
} nvtxEventAttributes_v2, nvtxEventAttributes_t;
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))

enum { NVTX_RESOURCE_TYPE_UNKNOWN = 0, NVTX_RESOURCE_TYPE_GENERIC_POINTER = 0x10001,
       NVTX_RESOURCE_TYPE_GENERIC_HANDLE, NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE,
       NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX };
typedef struct nvtxResourceAttributes_v0 {
    uint16_t version, size;
    int32_t identifierType;
    union { const void *pValue; uint64_t ullValue; } identifier;
    int32_t messageType;
    nvtxMessageValue_t message;
} nvtxResourceAttributes_v0, nvtxResourceAttributes_t;
#define NVTX_RESOURCE_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxResourceAttributes_t))

NPUPROF_SHIM void nvtxDomainMarkEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a);
NPUPROF_SHIM int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a);
NPUPROF_SHIM int nvtxDomainRangePop(nvtxDomainHandle_t domain);
NPUPROF_SHIM nvtxRangeId_t nvtxDomainRangeStartEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a);
NPUPROF_SHIM void nvtxDomainRangeEnd(nvtxDomainHandle_t domain, nvtxRangeId_t range);
NPUPROF_SHIM void nvtxDomainNameCategoryA(nvtxDomainHandle_t domain, uint32_t category, const char *name);
NPUPROF_SHIM nvtxResourceHandle_t nvtxDomainResourceCreate(nvtxDomainHandle_t d, nvtxResourceAttributes_t *a);
NPUPROF_SHIM void nvtxNameOsThreadA(uint32_t thread, const char *name);
NPUPROF_SHIM const nvtxEventAttributes_t *npuprof_nvtx_with(const char *text);   /* until the next call */
#ifdef __cplusplus
}
#endif

#define nvtxInitialize(reserved) ((void)(reserved))
#define nvtxDomainDestroy(domain) ((void)(domain))
#define nvtxDomainResourceDestroy(resource) ((void)(resource))
#define nvtxMarkEx(a) nvtxDomainMarkEx(NULL, a)
#define nvtxRangePushEx(a) nvtxDomainRangePushEx(NULL, a)
#define nvtxRangePop() nvtxDomainRangePop(NULL)
#define nvtxRangeStartEx(a) nvtxDomainRangeStartEx(NULL, a)
#define nvtxRangeEnd(range) nvtxDomainRangeEnd(NULL, range)
#define nvtxNameCategoryA(category, name) nvtxDomainNameCategoryA(NULL, category, name)
#define nvtxMarkA(text) nvtxMarkEx(npuprof_nvtx_with(text))
#define nvtxRangePushA(text) nvtxRangePushEx(npuprof_nvtx_with(text))
#define nvtxRangeStartA(text) nvtxRangeStartEx(npuprof_nvtx_with(text))
#define nvtxMarkW(text) nvtxMarkA(npuprof_shim_wide(text))
#define nvtxRangePushW(text) nvtxRangePushA(npuprof_shim_wide(text))
#define nvtxRangeStartW(text) nvtxRangeStartA(npuprof_shim_wide(text))
/* A handle is its text. */
#define nvtxDomainCreateA(name) ((nvtxDomainHandle_t)npuprof_shim_object(name, 0, NULL))
#define nvtxDomainRegisterStringA(domain, text) ((nvtxStringHandle_t)npuprof_shim_object(text, 0, NULL))
#define nvtxDomainCreateW(name) nvtxDomainCreateA(npuprof_shim_wide(name))
#define nvtxDomainRegisterStringW(domain, text) nvtxDomainRegisterStringA(domain, npuprof_shim_wide(text))
#define nvtxDomainNameCategoryW(domain, category, name) \
    nvtxDomainNameCategoryA(domain, category, npuprof_shim_wide(name))
#define nvtxNameCategoryW(category, name) nvtxNameCategoryA(category, npuprof_shim_wide(name))
#define nvtxNameOsThreadW(thread, name) nvtxNameOsThreadA(thread, npuprof_shim_wide(name))
#define nvtxMark nvtxMarkA
#define nvtxRangeStart nvtxRangeStartA
#define nvtxRangePush nvtxRangePushA
#define nvtxNameCategory nvtxNameCategoryA
#define nvtxNameOsThread nvtxNameOsThreadA
#define nvtxDomainCreate nvtxDomainCreateA
#define nvtxDomainRegisterString nvtxDomainRegisterStringA
#define nvtxDomainNameCategory nvtxDomainNameCategoryA
#endif /* NPUPROF_NVTX_H */

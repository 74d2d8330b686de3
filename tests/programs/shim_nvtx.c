/* A program written against NVTX 3, compiled with examples/shims instead: in C and in C++.
   SPDX-License-Identifier: MIT */
#include <nvtx3/nvToolsExt.h>

#include <string.h>

static nvtxEventAttributes_t with(const char *text)
{
    nvtxEventAttributes_t a;
    memset(&a, 0, sizeof a);
    a.version = NVTX_VERSION;
    a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    a.messageType = NVTX_MESSAGE_TYPE_ASCII;
    a.message.ascii = text;
    a.colorType = NVTX_COLOR_ARGB;
    a.color = 0xFF00FF00u;
    return a;
}

#ifdef __cplusplus
typedef nvtxEventAttributes_v2::payload_t Payload;       /* as nvtx3.hpp names it */
#else
typedef union payload_t Payload;
#endif

int main(void)
{
    const nvtxDomainHandle_t domain = nvtxDomainCreateA("lib"), other = nvtxDomainCreateW(L"w\u00fc");
    nvtxEventAttributes_t a = with("payload");
    char text[] = "lives in the caller";
    nvtxInitialize(NULL);
    nvtxNameCategoryA(4, "kernels");
    nvtxDomainNameCategory(domain, 4, "its kernels");
    nvtxNameOsThread(1, "another thread");
    nvtxRangePush(text);
    memset(text, 'x', sizeof text - 1);
    a.category = 4;
    a.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64, a.payload.ullValue = UINT64_MAX;
    nvtxDomainRangePushEx(domain, &a);
    nvtxDomainRangePop(domain);
    Payload minus;
    minus.iValue = -9;
    a.payloadType = NVTX_PAYLOAD_TYPE_INT32, a.payload = minus;
    nvtxRangePushEx(&a);
    nvtxRangePop();
    a.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE, a.payload.dValue = 0.125;
    a.size = 8;                          /* an older struct, which ends behind the category */
    nvtxRangePushEx(&a);
    nvtxRangePop();
    nvtxRangePop();
    a = with(NULL);
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    nvtxDomainRangePushEx(domain, &a);
    nvtxDomainRangePushEx(other, &a);
    nvtxDomainRangePop(domain);          /* ends the other one */
    nvtxDomainRangePop(other);
    a.payloadType = 99;
    nvtxDomainMarkEx(domain, &a);
    nvtxMarkW(L"wide \u20ac");
    const nvtxRangeId_t range = nvtxRangeStart("started");
    const nvtxRangeId_t second = nvtxDomainRangeStartEx(domain, &a);
    nvtxRangeEnd(range);
    nvtxDomainRangeEnd(domain, second);
    nvtxResourceAttributes_t resource;
    memset(&resource, 0, sizeof resource);
    resource.identifierType = NVTX_RESOURCE_TYPE_GENERIC_POINTER;
    nvtxDomainResourceDestroy(nvtxDomainResourceCreate(domain, &resource));
    nvtxDomainDestroy(domain);
    return domain != nvtxDomainCreateA("lib");
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "api.h"

/* WITH_NPU_PROFILER: a block, its host span and its device span. Owns no data. */

#ifndef NPUPROF_OFF
/* Why the warnings are off: as for npuprof_leave_scope_(). */
NPUPROF_MAYBE_PUSH_
NPUPROF_INLINE_ void npuprof_npu_leave_(npuprof_npu_block_ *block)
{
    NPUPROF_USDT_END_
    if (block->token && npuprof_is_open_(block->token)) npuprof_npu_end_(block);
}
NPUPROF_MAYBE_POP_

#ifdef __cplusplus
struct npuprof_npu_auto_block_ : npuprof_npu_block_ {
    NPUPROF_OWN_ npuprof_npu_auto_block_() { token = 0; }
    NPUPROF_OWN_ ~npuprof_npu_auto_block_() { npuprof_npu_leave_(this); }
    npuprof_npu_auto_block_(const npuprof_npu_auto_block_ &) = delete;
    npuprof_npu_auto_block_ &operator=(const npuprof_npu_auto_block_ &) = delete;
};
#endif
#endif

/* A queue's name, an integer or a pointer, as a number. */
#ifdef __cplusplus
#define NPUPROF_STREAM_(stream) NPUPROF_CAST_(uint64_t, stream)
#else
#define NPUPROF_STREAM_(stream) ((uint64_t)(uintptr_t)(stream))
#endif

#ifndef NPUPROF_OFF
#define NPUPROF_NPU_SELF_(id) (&id)
#ifdef __cplusplus
#define NPUPROF_NPU_BLOCK_(id, level, sites, begin) \
    sites npuprof_npu_auto_block_ id; if (NPUPROF_OPEN_(level)) id.token = (begin)
#else
#define NPUPROF_NPU_BLOCK_(id, level, sites, begin) \
    sites NPUPROF_ATTRIBUTE_((unused, cleanup(npuprof_npu_leave_))) npuprof_npu_block_ id; \
    id.token = 0; if (NPUPROF_OPEN_(level)) id.token = (begin)
#endif
#else
#define NPUPROF_NPU_SELF_(id) NPUPROF_STATIC_CAST_(npuprof_npu_block_ *, NPUPROF_NULL_)
#define NPUPROF_NPU_BLOCK_(id, level, sites, begin) NPUPROF_SCOPE_(id, level, sites, begin)
#endif

/* A host span around code that gives work to the device, and the device span for it (TWO WAYS TO STAMP A
   KERNEL above). code is expanded once; leaving it by return, break, continue or goto ends both. npu:
   npuprof_npu *; stream: any integer or pointer that names a queue; name and cat: any strings, copied; args:
   of the host span. A name that is no literal is cut to 127 bytes, such a category to 63; with a ring without
   `op` a name is cut to 63. Cut between characters. */
#define WITH_NPU_PROFILER(npu, stream, name, cat, args, ...) \
    WITH_NPU_PROFILER_LEVEL(1, npu, stream, name, cat, args, __VA_ARGS__)
#define WITH_NPU_PROFILER_LEVEL(level, npu, stream, name, cat, args, ...) \
    NPUPROF_STATEMENT_BEGIN_ \
        NPUPROF_WITH_NPU_(__COUNTER__, level, npu, stream, name, cat, NPUPROF_CHECKED_LIST_(args)); \
        { __VA_ARGS__; } \
    NPUPROF_STATEMENT_END_

/* WITH_NPU_PROFILER from here to the end of the enclosing block, where that suits the code better. */
#define PROF_NPU_SCOPE(npu, stream, name, cat, args) \
    NPUPROF_WITH_NPU_(__COUNTER__, 1, npu, stream, name, cat, NPUPROF_CHECKED_LIST_(args))

#ifdef NPUPROF_FREESTANDING
#define NPUPROF_WITH_NPU_(id, level, npu, stream, name, cat, args) \
    NPUPROF_NPU_BLOCK_(NPUPROF_GLUE_(npuprof_npu_block_, id), level, \
                       NPUPROF_NAMED_SITE_(id, NPUPROF_KIND_SPAN, cat, name), \
                       (npuprof_npu_enter_(NPUPROF_NPU_SELF_(NPUPROF_GLUE_(npuprof_npu_block_, id)), (npu), \
                                           NPUPROF_STREAM_(stream)), \
                        npuprof_npu_begin_(NPUPROF_NPU_SELF_(NPUPROF_GLUE_(npuprof_npu_block_, id)), \
                                           NPUPROF_BEGIN_NAMED_(id, NPUPROF_NULL_, NPUPROF_KIND_SPAN, (cat), \
                                                                (name), (args)))))
#else
#define NPUPROF_NPU_LITERALS_(name, cat) (NPUPROF_CONSTANT_(name) && NPUPROF_CONSTANT_(cat))
#define NPUPROF_WITH_NPU_(id, level, npu, stream, name, cat, args) \
    NPUPROF_NPU_BLOCK_(NPUPROF_GLUE_(npuprof_npu_block_, id), level, \
                       NPUPROF_SITE_(id, NPUPROF_KIND_SPAN, NPUPROF_NULL_, NPUPROF_NULL_) \
                       NPUPROF_KEYS_OF_(id, NPUPROF_KIND_SPAN) \
                       NPUPROF_USDT_MARK_(NPUPROF_KIND_SPAN, (cat), (name)), \
                       npuprof_npu_begin_(NPUPROF_NPU_SELF_(NPUPROF_GLUE_(npuprof_npu_block_, id)), (npu), \
                                          NPUPROF_STREAM_(stream), \
                                          NPUPROF_NPU_LITERALS_(name, cat) \
                                              ? NPUPROF_REF_(id, NPUPROF_NULL_, NPUPROF_NULL_) \
                                              : NPUPROF_NULL_, \
                                          NPUPROF_KEYS_REF_(id), NPUPROF_NPU_LITERALS_(name, cat), \
                                          (cat), (name), (args)))
#endif /* NPUPROF_FREESTANDING */

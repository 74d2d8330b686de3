#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"

/* What the device side asks of a compiler: functions that refuse to compile. Owns no data. */

/* A function that firmware does not have. A call of it does not compile, and the compiler prints the reason.
   */
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
#define NPUPROF_NPU_ABSENT_(why) \
    NPUPROF_ATTRIBUTE_((unavailable("npuprof_npu.h: not with NPUPROF_FREESTANDING: " why)))
#else
#define NPUPROF_NPU_ABSENT_(why) \
    NPUPROF_ATTRIBUTE_((error("npuprof_npu.h: not with NPUPROF_FREESTANDING: " why)))
#endif

/* NPUPROF_NPU_OPEN_SYMBOL_: the name that the linker has for npuprof_npu_open(), and prints where the
   implementing file does not include this header. NPUPROF_NPU_OPEN_OF_1_0_ is its plain name, too. */
#if NPUPROF_TWO_NAMES_
#define NPUPROF_NPU_OPEN_SYMBOL_ \
    "npuprof_npu_open_include_npuprof_npu_h_in_the_file_with_NPUPROF_IMPLEMENTATION_and_export_npuprof_names_"
#define NPUPROF_NPU_OPEN_NAMED_ __asm__(NPUPROF_NPU_OPEN_SYMBOL_)
#define NPUPROF_NPU_OPEN_OF_1_0_ \
    NPUPROF_C_ npuprof_result npuprof_npu_open_of_1_0_(npuprof_npu *npu, const npuprof_npu_desc *desc) \
        __asm__("npuprof_npu_open") NPUPROF_ATTRIBUTE_((alias(NPUPROF_NPU_OPEN_SYMBOL_)));
#else
#define NPUPROF_NPU_OPEN_NAMED_
#define NPUPROF_NPU_OPEN_OF_1_0_
#endif

/* NPUPROF_NPU_HOSTED_FN_: a public function of hosted code only, as NPUPROF_FN_ declares the others. */
#if !defined(NPUPROF_FREESTANDING) || defined(NPUPROF_OFF)
#define NPUPROF_NPU_HOSTED_FN_(why, type, name, params, ...) NPUPROF_FN_(type, name, params, __VA_ARGS__)
#else
#define NPUPROF_NPU_HOSTED_FN_(why, type, name, params, ...) \
    NPUPROF_C_ type name params NPUPROF_NPU_ABSENT_(why);
#endif

/* NPUPROF_NPU_RECORD_FN_: one that firmware has with NPUPROF_NPU_RECORDS. */
#if defined(NPUPROF_FREESTANDING) && defined(NPUPROF_NPU_RECORDS)
#define NPUPROF_NPU_RECORD_FN_(type, name, params, ...) NPUPROF_FN_(type, name, params, __VA_ARGS__)
#else
#define NPUPROF_NPU_RECORD_FN_(type, name, params, ...) \
    NPUPROF_NPU_HOSTED_FN_("define NPUPROF_NPU_RECORDS", type, name, params, __VA_ARGS__)
#endif
#define NPUPROF_NPU_NO_RING_ \
    "a completion ring is read on a host; sample the kernels with WITH_NPU_PROFILER, " \
    "or npuprof_npu_span() your own stamps"
#define NPUPROF_NPU_NO_CORRELATION_ "the runtime's numbers are known on a host; give an argument of your own"
#define NPUPROF_NPU_NO_PUSH_ "the counter is read there; give npuprof_npu_desc a bar or read_ticks"
#define NPUPROF_NPU_NO_HOST_NS_ "the host maps the ticks when it converts the image"

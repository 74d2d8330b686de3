#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"

NPUPROF_QUICK_ uint32_t npuprof_context_(void) { return (uint32_t)(NPUPROF_CONTEXT()); }
/* How two records that meet keep apart: where the core has no exclusive access, or as the user says, interrupts are masked from the
   stamp to the record; else the counter is added to, and the clock moved by a compare and swap. NPUPROF_WHOLE_*: the mask, or nothing. They do not
   nest. */
#if defined(NPUPROF_MASK)
#define NPUPROF_MASKS_ 1
typedef uint32_t npuprof_mask_;
static inline npuprof_mask_ npuprof_mask_interrupts_(void) { return (npuprof_mask_)(NPUPROF_MASK()); }
static inline void npuprof_unmask_interrupts_(npuprof_mask_ npuprof_before_) { NPUPROF_UNMASK(npuprof_before_); }
#elif defined(__AVR__)
#define NPUPROF_MASKS_ 1
typedef uint8_t npuprof_mask_;
static inline npuprof_mask_ npuprof_mask_interrupts_(void)
{
    npuprof_mask_ before;
    __asm__ volatile("in %0, 0x3f\n\tcli" : "=r"(before) : : "memory");
    return before;
}
static inline void npuprof_unmask_interrupts_(npuprof_mask_ before) { __asm__ volatile("out 0x3f, %0" : : "r"(before) : "memory"); }
#elif defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' && !defined(__ARM_FEATURE_LDREX)
#define NPUPROF_MASKS_ 1
typedef uint32_t npuprof_mask_;
static inline npuprof_mask_ npuprof_mask_interrupts_(void)
{
    npuprof_mask_ before;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(before) : : "memory");
    return before;
}
static inline void npuprof_unmask_interrupts_(npuprof_mask_ before) { __asm__ volatile("msr primask, %0" : : "r"(before) : "memory"); }
#elif defined(__riscv) && !defined(__riscv_atomic)
#define NPUPROF_MASKS_ 1
typedef uint32_t npuprof_mask_;
static inline npuprof_mask_ npuprof_mask_interrupts_(void)
{
    unsigned long before;
    __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(before) : : "memory");
    return (npuprof_mask_)before & 8;
}
static inline void npuprof_unmask_interrupts_(npuprof_mask_ before) { __asm__ volatile("csrs mstatus, %0" : : "r"((unsigned long)before) : "memory"); }
#else
#define NPUPROF_MASKS_ 0
#endif
/* NPUPROF_MOVE_: changes a word that is still what it was; false: it is not, and *was is what it is. NPUPROF_COUNT_: adds 1. */
#if NPUPROF_MASKS_
#define NPUPROF_MOVE_(word, was, to) (NPUPROF_STORE_((word), (to)), true)
#define NPUPROF_COUNT_(word) ((void)++*(word))
#define NPUPROF_WHOLE_BEGIN_ const npuprof_mask_ whole_before = npuprof_mask_interrupts_();
#define NPUPROF_WHOLE_END_ npuprof_unmask_interrupts_(whole_before);
#else
#define NPUPROF_MOVE_(word, was, to) NPUPROF_CAS_RELAXED_((word), (was), (to))
#define NPUPROF_COUNT_(word) ((void)NPUPROF_ADD_((word), 1))
#define NPUPROF_WHOLE_BEGIN_
#define NPUPROF_WHOLE_END_
#endif

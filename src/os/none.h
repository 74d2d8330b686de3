#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"

/* What firmware has for a system: the task it runs in, and the masking of interrupts. Owns no data.

   How two records that meet keep apart (a task and an interrupt, two cores):
     NPUPROF_MASKS_ 1   The core has no exclusive access, or the user defines NPUPROF_MASK(). Interrupts are
                        masked from NPUPROF_MASKED_BEGIN_ to NPUPROF_MASKED_END_: once for a stamp, and once
                        for the cells of a record. At most 12 instructions each, with a clock read of two
                        (gcc -Os and -O2).
     NPUPROF_MASKS_ 0   Cells are taken by an atomic addition, and the clock word is changed by
                        compare-and-swap. The two macros are empty.
   The two macros do not nest. */

/* Why the code alone: firmware has no room for a sentence on each argument. */
#define NPUPROF_REFUSE_(sentence) NPUPROF_ERR_ARGUMENT

NPUPROF_ALWAYS_INLINE_ uint32_t npuprof_user_context_(void) { return (uint32_t)(NPUPROF_CONTEXT()); }

#if defined(NPUPROF_MASK)
#define NPUPROF_MASKS_ 1
typedef uint32_t npuprof_os_mask_;
static inline npuprof_os_mask_ npuprof_os_mask_interrupts_(void)
{
    return (npuprof_os_mask_)(NPUPROF_MASK());
}

static inline void npuprof_os_unmask_interrupts_(npuprof_os_mask_ npuprof_mask_)
{
    NPUPROF_UNMASK(npuprof_mask_);
}

#elif defined(__AVR__)
#define NPUPROF_MASKS_ 1
typedef uint8_t npuprof_os_mask_;
static inline npuprof_os_mask_ npuprof_os_mask_interrupts_(void)
{
    npuprof_os_mask_ before;
    __asm__ volatile("in %0, 0x3f\n\tcli" : "=r"(before) : : "memory");
    return before;
}

static inline void npuprof_os_unmask_interrupts_(npuprof_os_mask_ before)
{
    __asm__ volatile("out 0x3f, %0" : : "r"(before) : "memory");
}

#elif defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' && !defined(__ARM_FEATURE_LDREX)
#define NPUPROF_MASKS_ 1
typedef uint32_t npuprof_os_mask_;
static inline npuprof_os_mask_ npuprof_os_mask_interrupts_(void)
{
    npuprof_os_mask_ before;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(before) : : "memory");
    return before;
}

static inline void npuprof_os_unmask_interrupts_(npuprof_os_mask_ before)
{
    __asm__ volatile("msr primask, %0" : : "r"(before) : "memory");
}

#elif defined(__riscv) && !defined(__riscv_atomic)
#define NPUPROF_MASKS_ 1
typedef uint32_t npuprof_os_mask_;
static inline npuprof_os_mask_ npuprof_os_mask_interrupts_(void)
{
    unsigned long before;
    __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(before) : : "memory");
    return (npuprof_os_mask_)before & 8;
}

static inline void npuprof_os_unmask_interrupts_(npuprof_os_mask_ before)
{
    __asm__ volatile("csrs mstatus, %0" : : "r"((unsigned long)before) : "memory");
}

#else /* the core has exclusive access: no __riscv without atomics, no __AVR__ */
#define NPUPROF_MASKS_ 0
#endif /* NPUPROF_MASK */

#if NPUPROF_MASKS_ && NPUPROF_CORES > 1 && !defined(NPUPROF_MASK)
#error "npuprof.h: NPUPROF_CORES above 1 needs NPUPROF_MASK() here: these cores have no exclusive access"
#endif

/* NPUPROF_REPLACE_: stores `to` in a word that still is *was. False: it is not; *was is now what it is.
   NPUPROF_INCREMENT_: adds 1. */
#if NPUPROF_MASKS_
#define NPUPROF_REPLACE_(word, was, to) (NPUPROF_STORE_((word), (to)), true)
#define NPUPROF_INCREMENT_(word) ((void)++*(word))
#define NPUPROF_MASKED_BEGIN_ const npuprof_os_mask_ npuprof_before_ = npuprof_os_mask_interrupts_();
#define NPUPROF_MASKED_END_ npuprof_os_unmask_interrupts_(npuprof_before_);
#else
#define NPUPROF_REPLACE_(word, was, to) NPUPROF_CAS_RELAXED_((word), (was), (to))
#define NPUPROF_INCREMENT_(word) ((void)NPUPROF_ADD_((word), 1))
#define NPUPROF_MASKED_BEGIN_
#define NPUPROF_MASKED_END_
#endif

/* A word that interrupts may read or write meanwhile. Why masked: on an 8-bit machine it is four bytes. */
static inline uint32_t npuprof_os_load_(const uint32_t *word)
{
#ifdef __AVR__
    NPUPROF_MASKED_BEGIN_
    const uint32_t value = NPUPROF_LOAD_(word);
    NPUPROF_MASKED_END_
    return value;
#else
    return NPUPROF_LOAD_(word);
#endif
}

static inline void npuprof_os_store_(uint32_t *word, uint32_t value)
{
#ifdef __AVR__
    NPUPROF_MASKED_BEGIN_
    NPUPROF_STORE_(word, value);
    NPUPROF_MASKED_END_
#else
    NPUPROF_STORE_(word, value);
#endif
}

/* The same of a word that says to another core what is there: all before the store is done before it, and all
   behind the load behind it. */
static inline uint32_t npuprof_os_acquire_(const uint32_t *word)
{
#if NPUPROF_MASKS_
    const uint32_t value = npuprof_os_load_(word);
    NPUPROF_SIGNAL_FENCE_();
    return value;
#else
    return NPUPROF_LOAD_ACQUIRE_(word);
#endif
}

static inline void npuprof_os_release_(uint32_t *word, uint32_t value)
{
#if NPUPROF_MASKS_
    NPUPROF_SIGNAL_FENCE_();
    npuprof_os_store_(word, value);
#else
    NPUPROF_STORE_RELEASE_(word, value);
#endif
}

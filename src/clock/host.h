#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/hot.h"
#include "../numbers/time.h"
#include "../os/common.h"

/* The clock of all stamps: which one it is, and one read of it.

   Data: npuprof_clock_source_, written by npuprof_clock_choose_() when the library is set up, read by all
   afterwards. With a user's clock of fewer than 64 bits also npuprof_clock_last_, the newest time given out,
   with all 64 bits: any thread reads it and sets it forward by CAS.

   This part may not know threads, files, or how ticks become ns. */

/* In header.clock_source of an image. */
enum { NPUPROF_CLOCK_USER, NPUPROF_CLOCK_MONOTONIC, NPUPROF_CLOCK_TSC, NPUPROF_CLOCK_CNTVCT,
       NPUPROF_CLOCK_RDTIME };

#if defined(NPUPROF_NOW)
#define npuprof_clock_source_ NPUPROF_CLOCK_USER
#define NPUPROF_CLOCK_IS_FAST_() true
#define npuprof_clock_fast_ npuprof_clock_
static uint64_t npuprof_clock_last_;

/* Extends the user's clock to 64 bits: adds to the last time what has passed since, modulo the clock's
   period. */
static inline uint64_t npuprof_clock_(void)
{
    if (NPUPROF_CLOCK_BITS_ == 64) return npuprof_user_now_();
    const uint64_t mask = UINT64_MAX >> (64 - NPUPROF_CLOCK_BITS_);
    uint64_t last = NPUPROF_LOAD_(&npuprof_clock_last_);
    for (;;) {
        NPUPROF_SIGNAL_FENCE_();
        const uint64_t since = (npuprof_user_now_() - last) & mask;
        /* A distance of almost a period is a negative one. Why that occurs: a CPU may read the clock before
           it reads `last`, and another thread has set that forward in between. */
        if (since > mask - mask / 8) return last;
        /* Why a CAS: a thread may stop here for some periods. Its plain store would set the clock back. */
        if (NPUPROF_CAS_(&npuprof_clock_last_, &last, last + since)) return last + since;
    }
}

#else /* !NPUPROF_NOW */
static int npuprof_clock_source_ = NPUPROF_CLOCK_MONOTONIC;
#define NPUPROF_CLOCK_IS_FAST_() (npuprof_clock_source_ != NPUPROF_CLOCK_MONOTONIC)
static inline uint64_t npuprof_clock_(void)
{
#if NPUPROF_HAS_TSC_
    if (NPUPROF_LIKELY_(npuprof_clock_source_ == NPUPROF_CLOCK_TSC)) return (uint64_t)__builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#elif defined(__riscv) && __riscv_xlen == 64
    uint64_t ticks;
    __asm__ volatile("rdtime %0" : "=r"(ticks));
    return ticks;
#endif
#if !defined(__aarch64__) && !(defined(__riscv) && __riscv_xlen == 64)
    return (uint64_t)npuprof_os_monotonic_ns_();
#endif
}
#endif /* !NPUPROF_NOW */

#if !defined(NPUPROF_NOW)
/* npuprof_clock_() without the look at the source, for where NPUPROF_CLOCK_IS_FAST_() holds.
   Why the instruction itself: gcc then joins the halves in the register of the high one, and what is
   returned can be made in the other: an instruction less in each record. */
static inline uint64_t npuprof_clock_fast_(void)
{
#if NPUPROF_HAS_TSC_ && defined(__x86_64__) && !defined(NPUPROF_TSAN_)
    uint64_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return high << 32 | low;
#elif NPUPROF_HAS_TSC_
    return (uint64_t)__builtin_ia32_rdtsc();
#else
    return npuprof_clock_();
#endif
}
#endif

/* The clock, read where it stands in the program: what was loaded before came before it, what is loaded later
   comes after it. For bounds and brackets; a record takes npuprof_clock_(), some 10 ns cheaper.
   Why: a CPU may read its clock before an earlier load is done. A thread that has seen another's record would
   then take a time before that of the record. */
static NPUPROF_NOINLINE_ uint64_t npuprof_clock_in_order_(void)
{
    NPUPROF_CLOCK_FENCE_();
    const uint64_t now = npuprof_clock_();
    NPUPROF_CLOCK_FENCE_();
    return now;
}

/* Chooses the clock, once. rdtsc only where the CPU promises that its rate is constant in all power states
   (CPUID 80000007h, EDX bit 8). */
static void npuprof_clock_choose_(void)
{
#if defined(NPUPROF_NOW)
    if (NPUPROF_CLOCK_BITS_ < 64)
        NPUPROF_STORE_(&npuprof_clock_last_, npuprof_user_now_() & UINT64_MAX >> (64 - NPUPROF_CLOCK_BITS_));
#else
#if NPUPROF_HAS_TSC_
    const int known = npuprof_os_tsc_is_constant_();
    if (known > 0) npuprof_clock_source_ = NPUPROF_CLOCK_TSC;
    if (known >= 0) return;
    uint32_t a = 0x80000000u, b, c, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
    if (a >= 0x80000007u) {
        a = 0x80000007u;
        __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
        if (d >> 8 & 1) npuprof_clock_source_ = NPUPROF_CLOCK_TSC;
    }
#elif defined(__aarch64__)
    npuprof_clock_source_ = NPUPROF_CLOCK_CNTVCT;
#elif defined(__riscv) && __riscv_xlen == 64
    npuprof_clock_source_ = NPUPROF_CLOCK_RDTIME;
#endif
#endif
}

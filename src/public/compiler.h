#pragma once   /* SPDX-License-Identifier: MIT */
#include "config.h"

/* What differs between compilers, under one name each; nothing here is for users.

   In order: extern "C"; attributes and cleanup; atomics, three times (gcc and clang; MSVC; others, such as
   tcc, for programs of one thread); floating point, rdtsc and its fence; linkage.
   Atomics: _LOAD_, _STORE_ and _ADD_ are relaxed, _ACQUIRE_ and _RELEASE_ say their order, _SEQ_ is
   sequentially consistent, _CAS_ acquires and releases. They may not know what they are used for. */

#ifdef __cplusplus
#define NPUPROF_C_ extern "C"
#define NPUPROF_BEGIN_C_ extern "C" {
#define NPUPROF_END_C_ }
#else
#define NPUPROF_C_ extern
#define NPUPROF_BEGIN_C_
#define NPUPROF_END_C_
#endif

/* tcc puts strings of an unevaluated sizeof into the object file. So with tcc, OFF does not check
   arguments. */
#ifdef __TINYC__
#define NPUPROF_SIZEOF_LEAVES_STRINGS_ 1
#define NPUPROF_CANNOT_COUNT_ITEMS_ 1
#endif
/* How OFF refuses a jump past a scope where ON refuses it. Why not with clang++ from 18 on: the type of
   variable length that does it is a warning of -Wall there. */
#if defined(__clang__) && (!defined(__cplusplus) || __clang_major__ < 18)
#define NPUPROF_REFUSE_BY_TYPE_ 1
#elif defined(__cplusplus) && !defined(__clang__)
#define NPUPROF_REFUSE_BY_OBJECT_ 1
#endif

/* Why __attribute and not __attribute__: for compilers it does not know, a C library may define
   __attribute__ as empty. */
#if defined(__GNUC__) || defined(__clang__) || defined(__TINYC__)
#define NPUPROF_HAS_CLEANUP_ 1
#define NPUPROF_ATTRIBUTE_(x) __attribute(x)
#define NPUPROF_HAS_GENERIC_ 1
#define NPUPROF_EXTENSION_ __extension__
#else
#define NPUPROF_HAS_CLEANUP_ 0
#define NPUPROF_ATTRIBUTE_(x)
#define NPUPROF_HAS_GENERIC_ (__STDC_VERSION__ >= 201112L)
#define NPUPROF_EXTENSION_
#endif

/* NPUPROF_OWN_: a function of the library. `make headers` puts it before each `static` function, so that none
   is forgotten. It keeps -finstrument-functions out: its hooks are ours (>>record/auto) and would call
   themselves. It also says how the function is compiled: NPUPROF_ROOM_ is empty, or NPUPROF_COLD_ from where
   the root says so. Cold functions are optimised for size, also with -O2: all but what records, and of that
   the slow paths, which are NPUPROF_COLD_ or NPUPROF_SLOW_ (and not inlined) one by one.
   NPUPROF_HOT_, in the place of NPUPROF_OWN_: a function of a cold room that runs once for each span that is
   read. Both allow for functions that nobody calls with NPUPROF_RECORD_ONLY. */
#define NPUPROF_ROOM_
#if defined(__clang__)
#define NPUPROF_COLD_ NPUPROF_ATTRIBUTE_((__cold__, __minsize__))
#elif defined(__GNUC__)
#define NPUPROF_COLD_ NPUPROF_ATTRIBUTE_((__cold__))
#else
#define NPUPROF_COLD_
#endif
#define NPUPROF_SLOW_ NPUPROF_NOINLINE_ NPUPROF_COLD_
#if (defined(__GNUC__) || defined(__clang__)) && defined(NPUPROF_RECORD_ONLY)
#define NPUPROF_OWN_ NPUPROF_ATTRIBUTE_((__no_instrument_function__, __unused__)) NPUPROF_ROOM_
#define NPUPROF_HOT_ NPUPROF_OWN_      /* size counts more than the time of reading */
#elif defined(__GNUC__) || defined(__clang__)
#define NPUPROF_OWN_ NPUPROF_ATTRIBUTE_((__no_instrument_function__)) NPUPROF_ROOM_
#define NPUPROF_HOT_ NPUPROF_ATTRIBUTE_((__no_instrument_function__, __hot__))
#else
#define NPUPROF_OWN_
#define NPUPROF_HOT_
#if defined(NPUPROF_AUTO) && !defined(NPUPROF_OFF)
#error "npuprof.h: NPUPROF_AUTO needs gcc or clang: other compilers have no -finstrument-functions"
#endif
#endif

/* Why npuprof_this_block_: the block's own name contains a number that only one macro knows, so a second
   variable holds its address. */
#if defined(_MSC_VER) && !NPUPROF_HAS_CLEANUP_ && !defined(__cplusplus) && !defined(NPUPROF_OFF)
#define NPUPROF_HAS_FINALLY_ 1
#define NPUPROF_TRY_ __try
#define NPUPROF_FINALLY_(leave) __finally { leave(npuprof_this_block_); }
#else
#define NPUPROF_HAS_FINALLY_ 0
#define NPUPROF_TRY_
#define NPUPROF_FINALLY_(leave)
#endif

#if defined(__GNUC__) || defined(__clang__)
#define NPUPROF_LIKELY_(x) __builtin_expect(!!(x), 1)
#define NPUPROF_UNLIKELY_(x) __builtin_expect(!!(x), 0)
#define NPUPROF_PREFETCH_(address) __builtin_prefetch((const void *)(address))
#define NPUPROF_NOINLINE_ NPUPROF_ATTRIBUTE_((__noinline__))   /* Linux has a macro noinline */
#define NPUPROF_FRAME_(local) __builtin_frame_address(0)       /* else where about: of a local variable */
#define NPUPROF_FRAME_IS_EXACT_ true
/* Bits of a number that is not 0, up to its highest one. */
#define NPUPROF_BITS_(v) (64u - (unsigned)__builtin_clzll(v))
/* Computes a variable here, on cores that mask. Why: a compiler moves it to where it is used, behind that. */
#define NPUPROF_KNOWN_(variable) do if (NPUPROF_MASKS_) NPUPROF_SETTLED_(variable); while (0)
#define NPUPROF_SETTLED_(variable) __asm__ volatile("" : "+r"(variable))   /* no older value of it is kept */
#define NPUPROF_FENCE_() __atomic_thread_fence(__ATOMIC_ACQ_REL)          /* for other cores */
#ifndef NPUPROF_FREESTANDING
#define NPUPROF_LOAD_(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define NPUPROF_STORE_(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#else
/* Why volatile: an 8-bit machine's atomics are calls, and a loop of plain stores becomes a memset(). */
#define NPUPROF_LOAD_(p) (*(const volatile __typeof__(*(p)) *)(p))
#define NPUPROF_STORE_(p, v) ((void)(*(volatile __typeof__(*(p)) *)(p) = (v)))
#endif
#define NPUPROF_LOAD_ACQUIRE_(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define NPUPROF_STORE_RELEASE_(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define NPUPROF_ADD_(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define NPUPROF_CAS_(p, expected, v) \
    __atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define NPUPROF_CAS_RELAXED_(p, expected, v) \
    __atomic_compare_exchange_n((p), (expected), (v), 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#define NPUPROF_LOAD_SEQ_(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define NPUPROF_STORE_SEQ_(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define NPUPROF_ADD_SEQ_(p, v) __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
#define NPUPROF_SIGNAL_FENCE_() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define NPUPROF_CONSTANT_(x) __builtin_constant_p(x)
#define NPUPROF_LOW_ZEROS_(v) ((unsigned)__builtin_ctzll(v))   /* zero bits below the lowest; v is not 0 */
#ifdef __cplusplus
#define NPUPROF_IS_LITERAL_(x) (sizeof(char[__builtin_constant_p(x) ? 2 : 1]) == 2)
#define NPUPROF_LITERAL_(x) (__builtin_constant_p(x) ? (x) : static_cast<const char *>(nullptr))
#else
#define NPUPROF_IS_LITERAL_(x) __builtin_choose_expr(__builtin_constant_p(x), 1, 0)
#define NPUPROF_LITERAL_(x) __builtin_choose_expr(__builtin_constant_p(x), (x), (const char *)0)
#endif
#define NPUPROF_ALIGNED_ NPUPROF_ATTRIBUTE_((aligned(64)))
#if defined(__PIC__) && !defined(__PIE__)
#define NPUPROF_INITIAL_EXEC_ \
    NPUPROF_ATTRIBUTE_((tls_model("initial-exec")))   /* no allocation at a thread's first access */
#else
#define NPUPROF_INITIAL_EXEC_
#endif
/* Is this compiled with a thread sanitizer? It must see every access. */
#if defined(__SANITIZE_THREAD__)
#define NPUPROF_TSAN_ 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NPUPROF_TSAN_ 1
#endif
#endif
/* A plain load while other threads may write. Use it only if any value is right and is used once. Why not
   atomic: compilers then spend an instruction of its own on the load. */
#ifdef NPUPROF_TSAN_
#define NPUPROF_LOAD_PLAIN_(p) NPUPROF_LOAD_(p)
#else
#define NPUPROF_LOAD_PLAIN_(p) (*(p))
#endif
/* Four steps of the hot path, each one instruction where the machine has one.
   npuprof_test_and_set_: sets a flag that only this thread and its signal handlers use; returns whether it
   was set before. npuprof_at_least_: *value >= least, with a new load each time. npuprof_differ_: a != *b.
   npuprof_is_other_: the same for an address, loaded with acquire. */
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__) && !defined(NPUPROF_TSAN_)
static inline bool npuprof_test_and_set_(uint32_t *flag)
{
    bool was;
    __asm__ volatile("btsl $0, %1" : "=@ccc"(was), "+m"(*flag) : : "memory");
    return was;
}

NPUPROF_ATTRIBUTE_((always_inline)) static inline bool npuprof_at_least_(const int *value, int least)
{
    bool is;
    __asm__ volatile("cmpl %2, %1" : "=@ccge"(is) : "m"(*value), "ri"(least));
    return is;
}

static inline bool npuprof_differ_(uint32_t a, const uint32_t *b)
{
    bool is;
    __asm__ volatile("cmpl %2, %1" : "=@ccne"(is) : "r"(a), "m"(*b));
    return is;
}

static inline bool npuprof_is_other_(const char *a, const char *const *b)
{
    bool is;
    __asm__ volatile("cmp %2, %1" : "=@ccne"(is) : "r"(a), "m"(*b) : "memory");
    return is;
}

#else /* !(__x86_64__ && __GCC_ASM_FLAG_OUTPUTS__ && !NPUPROF_TSAN_) */
#define npuprof_at_least_(value, least) (NPUPROF_LOAD_(value) >= (least))
#define npuprof_differ_(a, b) ((a) != NPUPROF_LOAD_(b))
#define npuprof_is_other_(a, b) ((a) != NPUPROF_LOAD_ACQUIRE_(b))
static inline bool npuprof_test_and_set_(uint32_t *flag)
{
    const bool was = NPUPROF_LOAD_(flag) != 0;
    if (!was) NPUPROF_STORE_(flag, 1);
    NPUPROF_SIGNAL_FENCE_();
    return was;
}

#endif /* !(__x86_64__ && __GCC_ASM_FLAG_OUTPUTS__ && !NPUPROF_TSAN_) */
#define NPUPROF_TLS_KEYWORD_ __thread
#define NPUPROF_CONSTRUCTOR_ NPUPROF_ATTRIBUTE_((constructor(101)))   /* before those of C++ */
#define NPUPROF_DESTRUCTOR_ NPUPROF_ATTRIBUTE_((destructor(101)))
#define NPUPROF_PRAGMA_(x) _Pragma(#x)
/* Around a block that may stand behind `if (x)` and whose code may leave it by any jump. Why no `if` with an
   `else`: compilers warn that it dangles. */
#define NPUPROF_STATEMENT_BEGIN_ __extension__({
#define NPUPROF_STATEMENT_END_ (void)0; })
#define NPUPROF_SHADOW_PUSH_ \
    NPUPROF_PRAGMA_(GCC diagnostic push) NPUPROF_PRAGMA_(GCC diagnostic ignored "-Wshadow")
#define NPUPROF_SHADOW_POP_ NPUPROF_PRAGMA_(GCC diagnostic pop)
/* Around what is compiled of the headers: tastes of the user's flags that are not ours. Each list is of one
   compiler; the other one may not know a word of it. */
#define NPUPROF_IGNORE_(word) NPUPROF_PRAGMA_(GCC diagnostic ignored word)
#if defined(__clang__)
#define NPUPROF_QUIET_PUSH_ NPUPROF_SHADOW_PUSH_ NPUPROF_IGNORE_("-Wunknown-warning-option") \
    NPUPROF_IGNORE_("-Wdeclaration-after-statement") NPUPROF_IGNORE_("-Wbad-function-cast") \
    NPUPROF_IGNORE_("-Wcomma") NPUPROF_IGNORE_("-Wconditional-uninitialized") NPUPROF_IGNORE_("-Wpadded") \
    NPUPROF_IGNORE_("-Wdisabled-macro-expansion") NPUPROF_IGNORE_("-Wused-but-marked-unused") \
    NPUPROF_IGNORE_("-Wold-style-cast") NPUPROF_IGNORE_("-Wzero-as-null-pointer-constant") \
    NPUPROF_IGNORE_("-Wc++98-compat") NPUPROF_IGNORE_("-Wc++98-compat-pedantic") \
    NPUPROF_IGNORE_("-Wfloat-equal") NPUPROF_IGNORE_("-Wunsafe-buffer-usage") \
    NPUPROF_IGNORE_("-Wswitch-default") NPUPROF_IGNORE_("-Wswitch-enum") NPUPROF_IGNORE_("-Wunused-parameter")
#else
#define NPUPROF_QUIET_PUSH_ NPUPROF_SHADOW_PUSH_ NPUPROF_IGNORE_("-Wpragmas") \
    NPUPROF_IGNORE_("-Wdeclaration-after-statement") NPUPROF_IGNORE_("-Wbad-function-cast") \
    NPUPROF_IGNORE_("-Wfloat-equal") NPUPROF_IGNORE_("-Wpadded") NPUPROF_IGNORE_("-Wunused-macros") \
    NPUPROF_IGNORE_("-Wold-style-cast") NPUPROF_IGNORE_("-Wuseless-cast") NPUPROF_IGNORE_("-Wlong-long") \
    NPUPROF_IGNORE_("-Wzero-as-null-pointer-constant") NPUPROF_IGNORE_("-Wunused-parameter") \
    NPUPROF_IGNORE_("-Wswitch-default") NPUPROF_IGNORE_("-Wswitch-enum") NPUPROF_IGNORE_("-Winline") \
    NPUPROF_IGNORE_("-Waggregate-return") NPUPROF_IGNORE_("-Wunsuffixed-float-constants") \
    NPUPROF_IGNORE_("-Wtraditional-conversion") NPUPROF_IGNORE_("-Wstack-protector") \
    NPUPROF_IGNORE_("-Wsuggest-attribute=pure") NPUPROF_IGNORE_("-Wsuggest-attribute=const")
#endif
#define NPUPROF_QUIET_POP_ NPUPROF_SHADOW_POP_
#if defined(__clang__)
#define NPUPROF_MAYBE_PUSH_
#define NPUPROF_MAYBE_POP_
#else
#define NPUPROF_MAYBE_PUSH_ \
    NPUPROF_PRAGMA_(GCC diagnostic push) NPUPROF_PRAGMA_(GCC diagnostic ignored "-Wmaybe-uninitialized")
#define NPUPROF_MAYBE_POP_ NPUPROF_PRAGMA_(GCC diagnostic pop)
#endif
#else /* !(__GNUC__ || __clang__) */
#define NPUPROF_LIKELY_(x) (x)
#define NPUPROF_UNLIKELY_(x) (x)
#define NPUPROF_PREFETCH_(address) ((void)(address))
#define NPUPROF_NOINLINE_
#define NPUPROF_FRAME_(local) ((const void *)&(local))
#define NPUPROF_FRAME_IS_EXACT_ false
#define NPUPROF_KNOWN_(variable) ((void)(variable))
#define NPUPROF_SETTLED_(variable) ((void)(variable))
#define NPUPROF_FENCE_() NPUPROF_SIGNAL_FENCE_()
static inline unsigned npuprof_bits_(uint64_t v)
{
    unsigned n = 0;
    for (; v; v >>= 1) n++;
    return n;
}

#define NPUPROF_BITS_(v) npuprof_bits_(v)
#if defined(_MSC_VER) && !defined(NPUPROF_FREESTANDING)
/* Needs /volatile:ms, under which a volatile load acquires and a volatile store releases. It is the default,
   except on arm64. */
#include <intrin.h>
#ifdef __cplusplus
extern "C++" {
template <class T> static inline T npuprof_volatile_load_(const T *p) { return *(const volatile T *)p; }

template <class T> struct npuprof_same_ { typedef T type; };
template <class T> static inline void npuprof_volatile_store_(T *p, typename npuprof_same_<T>::type v)
{
    *(volatile T *)p = v;
}

}
#define NPUPROF_LOAD_(p) npuprof_volatile_load_(p)
#define NPUPROF_STORE_(p, v) npuprof_volatile_store_((p), (v))
#else
#define NPUPROF_LOAD_(p) (*(const volatile __typeof__(*(p)) *)(p))
#define NPUPROF_STORE_(p, v) ((void)(*(volatile __typeof__(*(p)) *)(p) = (v)))
#endif
/* The sum takes integers of 32 and 64 bits, the compare-and-swap also those of 8. */
static inline uint64_t npuprof_interlocked_add_(volatile void *p, size_t bytes, uint64_t v)
{
    return bytes == 8 ? (uint64_t)_InterlockedExchangeAdd64((volatile long long *)p, (long long)v)
                      : (unsigned long)_InterlockedExchangeAdd((volatile long *)p, (long)v);
}

static inline bool npuprof_interlocked_cas_(volatile void *p, void *expected, size_t bytes, uint64_t v)
{
    if (bytes == 8) {
        const long long was = *(long long *)expected,
            found = _InterlockedCompareExchange64((volatile long long *)p, (long long)v, was);
        *(long long *)expected = found;
        return found == was;
    }
    if (bytes == 4) {
        const long was = *(long *)expected,
            found = _InterlockedCompareExchange((volatile long *)p, (long)v, was);
        *(long *)expected = found;
        return found == was;
    }
    const char was = *(char *)expected,
        found = _InterlockedCompareExchange8((volatile char *)p, (char)v, was);
    *(char *)expected = found;
    return found == was;
}

#define NPUPROF_ADD_(p, v) npuprof_interlocked_add_((p), sizeof *(p), (uint64_t)(v))
#define NPUPROF_CAS_(p, expected, v) npuprof_interlocked_cas_((p), (expected), sizeof *(p), (uint64_t)(v))
#define NPUPROF_LOAD_SEQ_(p) NPUPROF_LOAD_(p)
#define NPUPROF_STORE_SEQ_(p, v) \
    do { long full_ = 0; NPUPROF_STORE_((p), (v)); (void)_InterlockedOr(&full_, 0); } while (0)
#define NPUPROF_SIGNAL_FENCE_() _ReadWriteBarrier()
#else /* !(_MSC_VER && !NPUPROF_FREESTANDING) */
#define NPUPROF_LOAD_(p) (*(p))
#define NPUPROF_STORE_(p, v) ((void)(*(p) = (v)))
#define NPUPROF_ADD_(p, v) ((*(p) += (v)) - (v))
#define NPUPROF_CAS_(p, expected, v) (*(p) == *(expected) ? (*(p) = (v), 1) : (*(expected) = *(p), 0))
#define NPUPROF_LOAD_SEQ_(p) (*(p))
#define NPUPROF_STORE_SEQ_(p, v) ((void)(*(p) = (v)))
#define NPUPROF_SIGNAL_FENCE_() ((void)0)
#endif /* !(_MSC_VER && !NPUPROF_FREESTANDING) */
#define NPUPROF_CAS_RELAXED_(p, expected, v) NPUPROF_CAS_((p), (expected), (v))
#define NPUPROF_LOAD_ACQUIRE_(p) NPUPROF_LOAD_(p)
#define NPUPROF_STORE_RELEASE_(p, v) NPUPROF_STORE_((p), (v))
#define NPUPROF_ADD_SEQ_(p, v) NPUPROF_ADD_((p), (v))
#define NPUPROF_CONSTANT_(x) 0
static inline unsigned npuprof_low_zeros_(uint64_t v)
{
    unsigned n = 0;
    for (; !(v & 1); v >>= 1) n++;
    return n;
}

#define NPUPROF_LOW_ZEROS_(v) npuprof_low_zeros_(v)
#if defined(_MSC_VER)
#define NPUPROF_TLS_KEYWORD_ __declspec(thread)
#else
#define NPUPROF_TLS_KEYWORD_      /* tcc: for programs of one thread */
#endif
#define NPUPROF_IS_LITERAL_(x) 0
#define NPUPROF_LITERAL_(x) NPUPROF_NULL_
#define NPUPROF_ALIGNED_
#define NPUPROF_INITIAL_EXEC_
#define NPUPROF_LOAD_PLAIN_(p) (*(p))
#define npuprof_at_least_(value, least) (*(value) >= (least))
#define npuprof_differ_(a, b) ((a) != *(b))
#define npuprof_is_other_(a, b) ((a) != *(b))
static inline bool npuprof_test_and_set_(uint32_t *flag)
{
    const bool was = *flag != 0;
    *flag = 1;
    return was;
}
#define NPUPROF_SHADOW_PUSH_
#define NPUPROF_SHADOW_POP_
#define NPUPROF_QUIET_PUSH_
#define NPUPROF_QUIET_POP_
#define NPUPROF_STATEMENT_BEGIN_ if (1) {
#define NPUPROF_STATEMENT_END_ } else ((void)0)
#define NPUPROF_MAYBE_PUSH_
#define NPUPROF_MAYBE_POP_
#endif /* !(__GNUC__ || __clang__) */

/* Defined only if the target has no floating point. A call of a function declared with NPUPROF_NO_REAL_(why)
   does not compile, and the message is that sentence. NPUPROF_MAY_BE_REAL_(v): v is allowed all the same. */
#if defined(__GNUC__) && !defined(__cplusplus) && defined(__aarch64__) && !defined(__ARM_FP)
#define NPUPROF_NO_REAL_(why) NPUPROF_ATTRIBUTE_((error(why)))
#define NPUPROF_MAY_BE_REAL_(v) 0
#elif defined(__GNUC__) && !defined(__cplusplus) && defined(__x86_64__) && !defined(__SSE2__)
#define NPUPROF_NO_REAL_(why) NPUPROF_ATTRIBUTE_((error(why)))
#define NPUPROF_MAY_BE_REAL_(v) __builtin_constant_p(v)
#endif

/* Can this compiler emit rdtsc and cpuid? */
#if (defined(__GNUC__) || defined(__clang__)) && (defined(__x86_64__) || defined(__i386__))
#define NPUPROF_HAS_TSC_ 1
#else
#define NPUPROF_HAS_TSC_ 0
#endif

/* NPUPROF_CLOCK_FENCE_(): neither a load nor a read of the clock passes it.
   Why: a CPU reads its clock while earlier loads are still on their way, and starts later loads before it has
   read the clock. */
#if (!defined(__GNUC__) && !defined(__clang__)) || defined(__AVR__)
#define NPUPROF_CLOCK_FENCE_() NPUPROF_SIGNAL_FENCE_()
#elif defined(__x86_64__) || defined(__SSE2__)
#define NPUPROF_CLOCK_FENCE_() __asm__ volatile("lfence" ::: "memory")
#elif defined(__aarch64__)   /* Why dsb: isb alone does not wait for a load's value. */
#define NPUPROF_CLOCK_FENCE_() __asm__ volatile("dsb ld\n\tisb" ::: "memory")
#elif defined(__riscv)       /* Why all four: reading the clock counts as device input. */
#define NPUPROF_CLOCK_FENCE_() __asm__ volatile("fence iorw, iorw" ::: "memory")
#else
#define NPUPROF_CLOCK_FENCE_() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

/* NPUPROF_API_: the linkage of all public functions. With NPUPROF_STATIC they are private to the file. */
#if defined(NPUPROF_STATIC) && !defined(NPUPROF_OFF)
#define NPUPROF_API_ NPUPROF_OWN_ NPUPROF_ATTRIBUTE_((unused)) static
#ifndef NPUPROF_IMPLEMENTATION
#define NPUPROF_IMPLEMENTATION
#endif
#elif defined(__ELF__) && defined(__PIC__) && !defined(__PIE__) && (defined(__GNUC__) || \
    defined(__clang__)) && !defined(NPUPROF_FREESTANDING)
/* A shared library. If the program has another copy of npuprof, the linker may bind these names to that copy
   (see npuprof_arena_has_leader_). Why noinline: a function inlined here would still be this copy's. */
#define NPUPROF_SHARED_ 1
#define NPUPROF_API_ NPUPROF_C_ NPUPROF_OWN_ NPUPROF_NOINLINE_
#else
#define NPUPROF_API_ NPUPROF_C_ NPUPROF_OWN_
#endif
#ifndef NPUPROF_SHARED_
#define NPUPROF_SHARED_ 0
#endif
/* May a symbol have a second name? */
#if defined(__ELF__) && (defined(__GNUC__) || defined(__clang__)) && !defined(NPUPROF_STATIC) && \
    !defined(NPUPROF_OFF)
#define NPUPROF_TWO_NAMES_ 1
#else
#define NPUPROF_TWO_NAMES_ 0
#endif
/* Why always_inline with OFF: then the stubs leave no symbol even at -O0. */
#if defined(NPUPROF_OFF) && (defined(__GNUC__) || defined(__clang__))
#define NPUPROF_INLINE_ NPUPROF_OWN_ NPUPROF_ATTRIBUTE_((always_inline, unused)) static inline
#else
#define NPUPROF_INLINE_ NPUPROF_OWN_ static inline
#endif
#if defined(__GNUC__) || defined(__clang__)
#define NPUPROF_ALWAYS_INLINE_ NPUPROF_OWN_ NPUPROF_ATTRIBUTE_((always_inline, unused)) static inline
#else
#define NPUPROF_ALWAYS_INLINE_ static inline
#endif

/* The name of the function around it, a constant of the compiler. */
#if defined(__cplusplus) && (defined(__GNUC__) || defined(__clang__))
#define NPUPROF_FUNCTION_NAME_ __PRETTY_FUNCTION__
#elif defined(__cplusplus) && defined(_MSC_VER)
#define NPUPROF_FUNCTION_NAME_ __FUNCSIG__
#else
#define NPUPROF_FUNCTION_NAME_ __func__
#endif

/* The default of NPUPROF_THREAD_KEY. */
#if defined(NPUPROF_THREAD_KEY)
#elif defined(_MSC_VER) || (defined(_WIN32) && defined(__clang__)) || \
    (defined(__linux__) && !defined(__ANDROID__)) || defined(__TINYC__)
#define NPUPROF_THREAD_KEY 0
#else
#define NPUPROF_THREAD_KEY 1
#endif

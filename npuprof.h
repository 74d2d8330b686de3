/* npuprof.h - one timeline of host threads and NPU engines, in a header.
   SPDX-License-Identifier: MIT

   ==== NPUPROF ================================================================================== >>doc ====

   QUICK START (the text of examples/01_hello.c)

     #define NPUPROF_IMPLEMENTATION   // in one file of the program
     #include "npuprof.h"

     static int square(int n)
     {
         PROF_FUNCTION();             // ends by itself, however the block is left
         return n * n;
     }
     int main(void)
     {
         npuprof_start(1);
         for (int i = 0; i < 3; i++) {
             PROF_SCOPE_ARGS("demo", "step", PROF_ARGS(PROF_INT("i", i)));
             PROF_COUNTER("result", square(i));
         }
         return npuprof_dump("hello.json");   // NPUPROF_OK is 0
     }

   Run it, open hello.json in https://ui.perfetto.dev, or run any instrumented program with
   NPUPROF_OUTPUT_PATH=t.json in the environment and change no line at all.

   WHAT IT DOES NOT DO
   No sampling, no viewer, no daemon, no network, no kernel module, no symbolization, no heap, no thread of its own. It
   writes to no device register.

   KNOBS (defined before the include; section >>config has ranges and places)
     NPUPROF_IMPLEMENTATION   one file: the code goes here
     NPUPROF_OFF              any file: every npuprof name becomes a no-op there
     NPUPROF_STATIC           the implementing file: all names private to it, with an arena of its own
     NPUPROF_ARENA_BYTES      the implementing file: size of the static arena, default 16 MiB
     NPUPROF_SCRATCH_BYTES    the implementing file: working memory of writers and reports, default 1 MiB
     NPUPROF_NOW() NPUPROF_NOW_HZ NPUPROF_NOW_BITS   every file: your own clock, its rate and its width
     NPUPROF_NO_JSON NPUPROF_NO_REPORTS              the implementing file: leave that part out

   THREADS
   Every macro and function may be called from any thread, except where its comment says otherwise. A thread takes a slot
   at its first record and gives it back when it ends; its tid in the outputs is the number of that slot. Recording from
   a signal handler is allowed: a handler that interrupts a record in the making gets a context of its own, shown on the
   same thread.

   WHEN THE ARENA IS FULL
   NPUPROF_KEEP_OLDEST: later spans and events are counted as lost, exactly and by cause. recorded + lost = executed.
   The counts stand in every output. A thread may have 128 spans open (126 in arenas below 1 MiB, 30 below 128 KiB, 14 below
   16 KiB, 2 below 4 KiB); deeper ones are counted as lost, too.

   CLOCKS
   Stamps are raw ticks (rdtsc where the CPU says it is invariant, cntvct_el0, rdtime, else the monotonic clock, or your
   NPUPROF_NOW). They become nanoseconds in the reader, from clock anchors at the start and at the end of the trace. Device
   stamps become host time there too, from the device's own anchors (npuprof_npu.h), with an error bound.

   ERRORS
   Functions that can fail return npuprof_result; 0 is NPUPROF_OK and npuprof_result_string() gives the sentence. The hot
   path cannot fail: it counts what it drops. The library never aborts, allocates, or prints unasked; only what the environment
   asked for and cannot be had (a bad value, a file not written) is named once on stderr.

   OFF
   With NPUPROF_OFF the macros leave no code, no string and no symbol; their arguments are still type-checked. Functions
   become inline stubs that return NPUPROF_OK and fill their outputs with zero.

   OUTPUT
   Chrome trace JSON (Perfetto, chrome://tracing, speedscope): npuprof_dump("t.json"). CSV with one row a span:
   npuprof_dump("t.csv"). The arena image: npuprof_dump("t.npuprof"). Reports to a FILE*: npuprof_print_summary() and
   its siblings.

   COST (`make bench` measures it on your machine)
   A span is two clock reads and one 16-byte record. A disabled span is a load, a compare and a branch.

   MISTAKES PEOPLE MAKE
     - No npuprof_start() and no NPUPROF_OUTPUT_PATH: nothing is recorded.
     - A run-time string where a literal is asked for (PROF_SCOPE): does not compile. Use WITH_BASE_PROFILER or PROF_BEGIN.
     - if (x) PROF_SCOPE("a");  It is a declaration: it needs a block. Does not compile, in OFF builds too.
     - Arguments with side effects: they are evaluated only while recording is on.

   TAGS  >>doc >>version >>config >>compiler >>types >>api >>hot >>macros | >>impl >>platform >>arena >>record >>control
         >>devclock >>reader >>format >>json >>csv >>reports >>files >>public
   ========================================================================================================== */
#ifndef NPUPROF_H
#define NPUPROF_H

/* ==== VERSION ============================================================================== >>version ==== */

#define NPUPROF_VERSION_MAJOR 0
#define NPUPROF_VERSION_MINOR 1
#define NPUPROF_VERSION_PATCH 0
#define NPUPROF_VERSION (NPUPROF_VERSION_MAJOR * 10000 + NPUPROF_VERSION_MINOR * 100 + NPUPROF_VERSION_PATCH)
#define NPUPROF_VERSION_STRING "0.1.0"

#if defined(PROF_SCOPE) || defined(WITH_BASE_PROFILER)
#error "npuprof.h: PROF_SCOPE or WITH_BASE_PROFILER is already defined by another header; include npuprof.h first or rename that one"
#endif

/* Why: a strict -std=c99 hides clock_gettime() and mmap(). The implementing file asks for them here when no system header
   came before; section >>platform refuses in words when it is too late. */
#if (defined(NPUPROF_IMPLEMENTATION) || defined(NPUPROF_STATIC)) && !defined(NPUPROF_FREESTANDING) && !defined(NPUPROF_OFF) && \
    !defined(_WIN32) && !defined(_FEATURES_H) && !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE)
#define _DEFAULT_SOURCE 1
#endif

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifndef NPUPROF_FREESTANDING
#include <stdio.h>
#endif
#ifdef __cplusplus
extern "C++" {                     /* the include may stand inside extern "C" */
#include <initializer_list>
}
#endif

/* ==== CONFIG ================================================================================ >>config ==== */

/* NPUPROF_ARENA_BYTES: size of the static arena. Implementing file. Default 16 MiB, freestanding 4 KiB. At least 2048. */
#ifndef NPUPROF_ARENA_BYTES
#ifdef NPUPROF_FREESTANDING
#define NPUPROF_ARENA_BYTES 4096
#else
#define NPUPROF_ARENA_BYTES (16 * 1024 * 1024)
#endif
#endif
#if NPUPROF_ARENA_BYTES < 2048
#error "npuprof.h: NPUPROF_ARENA_BYTES must be at least 2048"
#endif

/* NPUPROF_SCRATCH_BYTES: static working memory of the writers and reports (sorting, lanes, output buffer). Implementing
   file. Default 1 MiB, freestanding 1 KiB. More is faster with many device spans, never needed for a right result. */
#ifndef NPUPROF_SCRATCH_BYTES
#ifdef NPUPROF_FREESTANDING
#define NPUPROF_SCRATCH_BYTES 1024
#else
#define NPUPROF_SCRATCH_BYTES (1024 * 1024)
#endif
#endif
#if NPUPROF_SCRATCH_BYTES < 1024
#error "npuprof.h: NPUPROF_SCRATCH_BYTES must be at least 1024"
#endif

/* NPUPROF_NO_JSON, NPUPROF_NO_REPORTS: implementing file. Without JSON its writers return NPUPROF_ERR_UNSUPPORTED; without
   reports a call of npuprof_print_* does not link. */

/* NPUPROF_NOW(): every file: an expression of unsigned type that reads the user's clock. NPUPROF_NOW_HZ: its rate.
   NPUPROF_NOW_BITS: valid bits, 8 to 64, default 64. A clock of fewer bits is extended; a gap longer than one period
   between two stamps of the process cannot be seen. */
#if defined(NPUPROF_NOW) && !defined(NPUPROF_NOW_HZ)
#error "npuprof.h: NPUPROF_NOW() needs NPUPROF_NOW_HZ, the rate of that clock in Hz"
#endif
#ifndef NPUPROF_NOW_BITS
#define NPUPROF_NOW_BITS 64
#endif
#if NPUPROF_NOW_BITS < 8 || NPUPROF_NOW_BITS > 64
#error "npuprof.h: NPUPROF_NOW_BITS must be 8 to 64"
#endif
#if defined(NPUPROF_FREESTANDING) && !defined(NPUPROF_NOW) && !defined(NPUPROF_OFF)
#error "npuprof.h: NPUPROF_FREESTANDING needs NPUPROF_NOW() and NPUPROF_NOW_HZ: there is no OS clock"
#endif

/* ==== COMPILER ============================================================================ >>compiler ==== */

#ifdef __cplusplus
#define NPUPROF_C_ extern "C"
#define NPUPROF_BEGIN_C_ extern "C" {
#define NPUPROF_END_C_ }
#else
#define NPUPROF_C_ extern
#define NPUPROF_BEGIN_C_
#define NPUPROF_END_C_
#endif

/* Why without trailing underscores: a C library may define __attribute__ away for compilers it does not know. */
#if defined(__GNUC__) || defined(__clang__) || defined(__TINYC__)
#define NPUPROF_HAS_CLEANUP_ 1
#define NPUPROF_ATTRIBUTE_(x) __attribute(x)
#else
#define NPUPROF_HAS_CLEANUP_ 0
#define NPUPROF_ATTRIBUTE_(x)
#endif

#if defined(__GNUC__) || defined(__clang__)
#define NPUPROF_LIKELY_(x) __builtin_expect(!!(x), 1)
#define NPUPROF_UNLIKELY_(x) __builtin_expect(!!(x), 0)
#define NPUPROF_NOINLINE_ NPUPROF_ATTRIBUTE_((noinline))
#define NPUPROF_LOAD_(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define NPUPROF_STORE_(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define NPUPROF_LOAD_ACQUIRE_(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define NPUPROF_STORE_RELEASE_(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define NPUPROF_ADD_(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define NPUPROF_CAS_(p, expected, v) __atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define NPUPROF_SIGNAL_FENCE_() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define NPUPROF_CONSTANT_(x) __builtin_constant_p(x)
#define NPUPROF_ALIGNED_ NPUPROF_ATTRIBUTE_((aligned(64)))
#define NPUPROF_INITIAL_EXEC_ NPUPROF_ATTRIBUTE_((tls_model("initial-exec")))   /* no allocation at a thread's first access */
#define NPUPROF_CONSTRUCTOR_ NPUPROF_ATTRIBUTE_((constructor(101)))   /* before those of C++ */
#define NPUPROF_PRAGMA_(x) _Pragma(#x)
#define NPUPROF_SHADOW_PUSH_ NPUPROF_PRAGMA_(GCC diagnostic push) NPUPROF_PRAGMA_(GCC diagnostic ignored "-Wshadow")
#define NPUPROF_SHADOW_POP_ NPUPROF_PRAGMA_(GCC diagnostic pop)
#else
#define NPUPROF_LIKELY_(x) (x)
#define NPUPROF_UNLIKELY_(x) (x)
#define NPUPROF_NOINLINE_
#define NPUPROF_LOAD_(p) (*(p))
#define NPUPROF_STORE_(p, v) ((void)(*(p) = (v)))
#define NPUPROF_LOAD_ACQUIRE_(p) (*(p))
#define NPUPROF_STORE_RELEASE_(p, v) ((void)(*(p) = (v)))
#define NPUPROF_ADD_(p, v) ((*(p) += (v)) - (v))
#define NPUPROF_CAS_(p, expected, v) (*(p) == *(expected) ? (*(p) = (v), 1) : (*(expected) = *(p), 0))
#define NPUPROF_SIGNAL_FENCE_() ((void)0)
#define NPUPROF_CONSTANT_(x) 0
#define NPUPROF_ALIGNED_
#define NPUPROF_INITIAL_EXEC_
#define NPUPROF_SHADOW_PUSH_
#define NPUPROF_SHADOW_POP_
#endif

/* Linkage of everything public. NPUPROF_STATIC keeps it inside the file. */
#if defined(NPUPROF_STATIC) && !defined(NPUPROF_OFF)
#define NPUPROF_API_ NPUPROF_ATTRIBUTE_((unused)) static
#ifndef NPUPROF_IMPLEMENTATION
#define NPUPROF_IMPLEMENTATION
#endif
#else
#define NPUPROF_API_ NPUPROF_C_
#endif
/* Why always inline when OFF: the stubs leave no symbol at -O0 either. */
#if defined(NPUPROF_OFF) && (defined(__GNUC__) || defined(__clang__))
#define NPUPROF_INLINE_ NPUPROF_ATTRIBUTE_((always_inline, unused)) static inline
#else
#define NPUPROF_INLINE_ static inline
#endif

#define NPUPROF_GLUE2_(a, b) a##b
#define NPUPROF_GLUE_(a, b) NPUPROF_GLUE2_(a, b)

/* Properties of the type of v, which is not evaluated. bool counts as int. */
#if defined(_MSC_VER) && defined(__cplusplus)
#define NPUPROF_TYPEOF_(v) decltype((v) + 0)
#else
#define NPUPROF_TYPEOF_(v) __typeof__((v) + 0)
#endif
#define NPUPROF_IS_REAL_(v) ((NPUPROF_TYPEOF_(v))0.5 != 0)
#define NPUPROF_IS_UNSIGNED_(v) ((NPUPROF_TYPEOF_(v))-1 > (NPUPROF_TYPEOF_(v))0)

/* ==== TYPES ================================================================================== >>types ==== */

NPUPROF_BEGIN_C_

/* Every result code, once: name, sentence. Tests and npuprof_result_string() walk this list. */
#define NPUPROF_RESULTS(X)                                                                               \
    X(NPUPROF_OK, "ok")                                                                                  \
    X(NPUPROF_ERR_ARGUMENT, "an argument is missing or out of its range")                                \
    X(NPUPROF_ERR_VERSION, "this file was compiled with another version of npuprof.h than the implementation; rebuild both") \
    X(NPUPROF_ERR_ARENA_SIZE, "the arena is too small or not aligned to 8 bytes; give at least 2048 bytes") \
    X(NPUPROF_ERR_STARTED, "npuprof already records; call npuprof_init before the first npuprof_start")  \
    X(NPUPROF_ERR_NOT_FOUND, "no such file or device; check the path")                                   \
    X(NPUPROF_ERR_ACCESS, "permission denied; check owner and mode of the path")                         \
    X(NPUPROF_ERR_NO_SPACE, "no space left on the device; the file was not written, the data is still in the arena") \
    X(NPUPROF_ERR_IO, "a read or write failed; the file was not written, the data is still in the arena") \
    X(NPUPROF_ERR_FORMAT, "the data is damaged or not an npuprof image")                                 \
    X(NPUPROF_ERR_UNSUPPORTED, "not supported in this build or on this system")                          \
    X(NPUPROF_ERR_TABLE_FULL, "the table of names, devices and anchors is full (255 devices at most); give a larger arena")    \
    X(NPUPROF_ERR_CATEGORIES, "a category list that cannot be used: give \"a,b\" or \"-a,-b\", not both")  \
    X(NPUPROF_ERR_NPU_SOURCE, "give exactly one of bar, resource, vfio and read_ticks")                  \
    X(NPUPROF_ERR_NPU_MAP, "the device's registers cannot be mapped; is memory decode on and no driver bound to the BAR?") \
    X(NPUPROF_ERR_NPU_RANGE, "a register or the ring lies outside the BAR, or is not aligned to its access") \
    X(NPUPROF_ERR_NPU_COUNTER, "the counter's bits, access or order do not fit together")                \
    X(NPUPROF_ERR_NPU_DEAD, "the device does not answer: its registers read all ones or all zeros")      \
    X(NPUPROF_ERR_NPU_STOPPED, "the device's counter does not move")                                     \
    X(NPUPROF_ERR_NPU_RESET, "the device's counter went back: it was reset, not wrapped; a new epoch of device time begins") \
    X(NPUPROF_ERR_NPU_TORN, "the counter's two halves never agreed; the device changes its high word too fast") \
    X(NPUPROF_ERR_NPU_BUSY, "another call is using the device; a signal handler interrupted it, or it takes too long") \
    X(NPUPROF_ERR_NPU_AMBIGUOUS, "too long since the last read: the number of wraps is not certain")     \
    X(NPUPROF_ERR_NPU_NO_ANCHOR, "no clock anchor yet; call npuprof_npu_sync first")                     \
    X(NPUPROF_ERR_NPU_NO_RING, "the device was opened without a completion ring")                        \
    X(NPUPROF_ERR_NPU_RING, "the ring's producer index makes no sense; the device may have been reset")

#define NPUPROF_ENUM_(name, text) name,
typedef enum npuprof_result { NPUPROF_RESULTS(NPUPROF_ENUM_) NPUPROF_RESULT_COUNT } npuprof_result;
#undef NPUPROF_ENUM_

/* What a full arena does. */
enum { NPUPROF_KEEP_OLDEST = 0, NPUPROF_KEEP_NEWEST = 1, NPUPROF_STREAM = 2 };

/* Why something was lost, once: enumerator, name in the outputs, 1 = a span or event, 0 = only a part of one. */
#define NPUPROF_LOSSES(X)                                                                        \
    X(NPUPROF_LOST_FULL, "arena_full", 1)        /* no chunk left */                             \
    X(NPUPROF_LOST_NAMES, "names_full", 1)       /* no room for a new name or call site */       \
    X(NPUPROF_LOST_DEPTH, "too_deep", 1)         /* more open spans in a thread than the limit */ \
    X(NPUPROF_LOST_CONTEXT, "no_context", 1)     /* no slot for a thread or signal handler */    \
    X(NPUPROF_LOST_OVERWRITTEN, "overwritten", 1) /* recycled under NPUPROF_KEEP_NEWEST */       \
    X(NPUPROF_LOST_SINK, "sink", 1)              /* the sink of NPUPROF_STREAM failed */         \
    X(NPUPROF_LOST_RING, "device_ring", 1)       /* completion records overwritten before a drain came */ \
    X(NPUPROF_LOST_ARGUMENTS, "arguments", 0)    /* the span is there, its arguments are not */

#define NPUPROF_ENUM_(name, text, whole) name,
enum { NPUPROF_LOSSES(NPUPROF_ENUM_) NPUPROF_LOST_COUNT };
#undef NPUPROF_ENUM_

/* Where bytes go. write returns 0, or an errno value; it is called from one thread at a time, and cannot write, print or
   clear the trace itself: that fails. */
typedef struct npuprof_sink {
    int (*write)(void *user, const void *bytes, size_t count);
    void *user;
} npuprof_sink;

/* A device as the host macros see it; NULL means the host. wait is called before both stamps of a span, only if
   wait_around is set and the span is recorded; what it returns is ignored. */
typedef struct npuprof_device {
    const char *name;
    int (*wait)(void *user);
    void *user;
    bool wait_around;
} npuprof_device;

/* Settings for npuprof_init(). Zero in a field means its default; the environment beats it. Strings are copied. */
typedef struct npuprof_desc {
    void *arena;                   /* caller's memory, aligned to 8, instead of the static arena */
    size_t arena_bytes;            /* its size; 0 without an arena */
    const char *arena_path;        /* or a mapped file (not yet: NPUPROF_ERR_UNSUPPORTED) */
    int when_full;                 /* NPUPROF_KEEP_OLDEST (the others not yet: NPUPROF_ERR_UNSUPPORTED) */
    npuprof_sink sink;             /* for NPUPROF_STREAM (not yet) */
    const char *output_path;       /* written at normal exit; turns nothing on by itself */
    const char *categories;        /* as npuprof_set_categories() */
} npuprof_desc;

/* Counts over the whole arena. recorded + lost = spans and events executed while the gate was open. */
typedef struct npuprof_stats {
    uint64_t recorded;             /* spans and events in the arena */
    uint64_t lost;                 /* spans and events lost, all causes together */
    uint64_t bytes_used;           /* arena bytes taken by records and names; 16 for a span without arguments */
    uint64_t bytes_total;          /* arena bytes */
    uint64_t threads;              /* slots ever in use at once */
    uint64_t lost_by_cause[NPUPROF_LOST_COUNT];
} npuprof_stats;

/* One typed argument. Made by PROF_INT and its siblings. */
typedef struct npuprof_arg {
    const char *key;
    uint32_t type;                 /* NPUPROF_ARG_* */
    union { int64_t i; uint64_t u; double d; const char *s; } value;
} npuprof_arg;
enum { NPUPROF_ARG_INT = 1, NPUPROF_ARG_UINT, NPUPROF_ARG_REAL, NPUPROF_ARG_BOOL, NPUPROF_ARG_STR };

/* A list of arguments; lives as long as the statement that made it. */
typedef struct npuprof_args { const npuprof_arg *items; size_t count; } npuprof_args;

/* Kinds of record, once: enumerator, 1 = a span that lies in its thread's nesting. Stored in the image: append only. */
#define NPUPROF_KINDS(X)                                                              \
    X(NPUPROF_KIND_NONE, 0) X(NPUPROF_KIND_SPAN, 1) X(NPUPROF_KIND_RECORD, 1)          \
    X(NPUPROF_KIND_WARM_UP, 1) X(NPUPROF_KIND_INFERENCE, 1) X(NPUPROF_KIND_OPERATOR, 1) \
    X(NPUPROF_KIND_INSTANT, 0) X(NPUPROF_KIND_COUNTER_INT, 0) X(NPUPROF_KIND_COUNTER_UINT, 0) \
    X(NPUPROF_KIND_COUNTER_REAL, 0)                                                   \
    X(NPUPROF_KIND_MEMORY, 0) X(NPUPROF_KIND_FLOW_OUT, 0) X(NPUPROF_KIND_FLOW_IN, 0)   \
    X(NPUPROF_KIND_ASYNC_BEGIN, 0) X(NPUPROF_KIND_ASYNC_END, 0) X(NPUPROF_KIND_FINISHED, 0) \
    X(NPUPROF_KIND_DEVICE, 0)
#define NPUPROF_ENUM_(name, nests) name,
enum { NPUPROF_KINDS(NPUPROF_ENUM_) NPUPROF_KIND_COUNT };
#undef NPUPROF_ENUM_

/* A call site: one static object a macro, resolved to a table entry at its first record. */
typedef struct npuprof_site_ {
    uint32_t generation, id;       /* valid while generation is the arena's */
    uint32_t kind;
    const char *name, *category;
} npuprof_site_;

/* Argument keys of a call site, resolved once. */
enum { NPUPROF_KEYS_ = 4 };
typedef struct npuprof_keys_ {
    uint32_t generation;
    uint32_t id[NPUPROF_KEYS_];
    const char *key[NPUPROF_KEYS_];
} npuprof_keys_;

typedef uint32_t npuprof_token_;   /* names an open span of this thread; 0 = not recorded. Checked before use */

/* ==== API ====================================================================================== >>api ==== */

/* NPUPROF_FN_(type, name, (parameters), body when OFF...): the one list of functions. */
#ifdef NPUPROF_OFF
#define NPUPROF_FN_(type, name, params, ...) NPUPROF_INLINE_ type name params { __VA_ARGS__ }
#else
#define NPUPROF_FN_(type, name, params, ...) NPUPROF_API_ type name params;
#endif
#define NPUPROF_UNUSED_(x) (void)(x)

/* Sets the arena up. Optional: without it the static arena and the environment are used. Once, before the first
   npuprof_start(), and with an arena before the first PROF_THREAD_NAME and npuprof_npu_open (NPUPROF_ERR_STARTED later). The
   arena's memory is touched only as it fills. desc may be NULL. */
#define npuprof_init(desc) npuprof_init_((desc), sizeof(npuprof_desc), NPUPROF_VERSION)
NPUPROF_FN_(npuprof_result, npuprof_init_, (const npuprof_desc *desc, size_t desc_bytes, int version),
            NPUPROF_UNUSED_(desc); NPUPROF_UNUSED_(desc_bytes); NPUPROF_UNUSED_(version); return NPUPROF_OK;)

/* Opens the gate for spans and events up to level: 1 = kernels and user scopes, 2 = runtime detail. Clamped to 1..9. Ends a
   pause. Data recorded before stays. Any thread. */
NPUPROF_FN_(void, npuprof_start, (int level), NPUPROF_UNUSED_(level);)
/* Closes the gate; keeps the data. A span that is open goes on and is closed as usual. */
NPUPROF_FN_(void, npuprof_stop, (void), )
/* Close and open the gate in between; idempotent. The gap stays in the trace and is marked. */
NPUPROF_FN_(void, npuprof_pause, (void), )
NPUPROF_FN_(void, npuprof_resume, (void), )
/* Forgets all spans and events recorded before now, and the loss counts. Names, devices and anchors stay. Frees the memory of
   what is forgotten, up to the chunk that each other running thread is filling. Not from a signal handler. */
NPUPROF_FN_(void, npuprof_clear, (void), )
/* Records only the categories of "a,b", or all but those of "-a,-b". NULL or "" = all. Spans without a category are
   recorded under "-a" lists and not under "a" lists. Copied. NPUPROF_ERR_CATEGORIES: nothing changes. While other threads
   record, but from one thread at a time. */
NPUPROF_FN_(npuprof_result, npuprof_set_categories, (const char *spec), NPUPROF_UNUSED_(spec); return NPUPROF_OK;)
/* Writes the trace: .json, .csv or .npuprof by the path's extension, JSON for any other. The file appears whole or not at
   all; the arena is not changed, so a second call writes the same bytes. Other threads may go on recording. */
NPUPROF_FN_(npuprof_result, npuprof_dump, (const char *path), NPUPROF_UNUSED_(path); return NPUPROF_OK;)
/* Writes the JSON into a sink. NPUPROF_ERR_IO or _NO_SPACE when the sink returns an errno value. */
NPUPROF_FN_(npuprof_result, npuprof_write_json, (npuprof_sink sink), NPUPROF_UNUSED_(sink); return NPUPROF_OK;)
/* Counts over the whole arena; walks it once. */
NPUPROF_FN_(void, npuprof_get_stats, (npuprof_stats *out),
            { static const npuprof_stats zero_ = {0, 0, 0, 0, 0, {0}}; *out = zero_; })
/* The trace's clock now: ns since the Unix epoch, monotonic. Costs one clock read. 0 when OFF. */
NPUPROF_FN_(int64_t, npuprof_now_ns, (void), return 0;)
/* The sentence for a result code. Never NULL. */
NPUPROF_FN_(const char *, npuprof_result_string, (npuprof_result result), NPUPROF_UNUSED_(result); return "npuprof is off";)

/* A span that begins here and may end on any thread: job submit to interrupt. The id joins the two; it may be used again
   after its end. Strings are copied. Costs a look-up of the name. */
NPUPROF_FN_(void, npuprof_async_begin, (const char *category, const char *name, uint64_t id),
            NPUPROF_UNUSED_(category); NPUPROF_UNUSED_(name); NPUPROF_UNUSED_(id);)
NPUPROF_FN_(void, npuprof_async_end, (uint64_t id), NPUPROF_UNUSED_(id);)
/* A finished span with the caller's own stamps on npuprof_now_ns()'s clock, on the track of that name. end before start
   is recorded with length 0 and marked; stamps more than 13 days outside the trace are drawn at the start of the trace and marked. Strings
   are copied. */
NPUPROF_FN_(void, npuprof_span, (const char *track, const char *category, const char *name, int64_t start_ns,
                                 int64_t end_ns, npuprof_args args),
            NPUPROF_UNUSED_(track); NPUPROF_UNUSED_(category); NPUPROF_UNUSED_(name); NPUPROF_UNUSED_(start_ns);
            NPUPROF_UNUSED_(end_ns); NPUPROF_UNUSED_(args);)
/* A key and value for the file's metadata: model, firmware, driver version. Copied; the last value of a key counts. Kept
   while stopped, too. */
NPUPROF_FN_(void, npuprof_metadata, (const char *key, const char *value), NPUPROF_UNUSED_(key); NPUPROF_UNUSED_(value);)

#ifndef NPUPROF_FREESTANDING
/* Reports, to a FILE*. Warm-up records are left out. Percentiles: linear interpolation between order statistics (type 7),
   rounded half up. All times in ns. */
NPUPROF_FN_(npuprof_result, npuprof_print_summary, (FILE *out), NPUPROF_UNUSED_(out); return NPUPROF_OK;)
NPUPROF_FN_(npuprof_result, npuprof_print_inferences, (FILE *out), NPUPROF_UNUSED_(out); return NPUPROF_OK;)
/* NPU Total = NPU Run + NPU IoWait in every row. Run is the union of the execution's compute intervals (all but Execution,
   Load, Store); NPU Sum is their plain sum. */
NPUPROF_FN_(npuprof_result, npuprof_print_npu_executions, (FILE *out), NPUPROF_UNUSED_(out); return NPUPROF_OK;)
NPUPROF_FN_(npuprof_result, npuprof_print_npu_operators, (FILE *out), NPUPROF_UNUSED_(out); return NPUPROF_OK;)
NPUPROF_FN_(npuprof_result, npuprof_print_external_operators, (FILE *out), NPUPROF_UNUSED_(out); return NPUPROF_OK;)
/* The PROF_MEMORY records: peaks with their index and tag, number of drops of the allocated figure, the table. MB = 2^20. */
NPUPROF_FN_(npuprof_result, npuprof_print_memory, (FILE *out), NPUPROF_UNUSED_(out); return NPUPROF_OK;)
#endif

/* ==== HOT PATH ================================================================================= >>hot ==== */

/* The one variable a disabled span reads: the level up to which the gate is open, INT_MIN = closed.
   Why the names: files that disagree on the clock or on the OS do not link, and the linker's message says why. */
#if defined(NPUPROF_FREESTANDING)
#define npuprof_gate_ npuprof_gate_of_a_build_with_NPUPROF_FREESTANDING_
#elif defined(NPUPROF_NOW)
#define npuprof_gate_ npuprof_gate_of_a_build_with_NPUPROF_NOW_
#else
#define npuprof_gate_ npuprof_gate_of_a_build_without_NPUPROF_NOW_or_FREESTANDING_
#endif
#ifndef NPUPROF_STATIC
extern int npuprof_gate_;
#elif !defined(NPUPROF_OFF)
static int npuprof_gate_ = INT_MIN;
#endif

/* Out of line: what the macros call while the gate is open. All async-signal safe. */
NPUPROF_API_ npuprof_token_ npuprof_begin_(npuprof_site_ *site);
NPUPROF_API_ npuprof_token_ npuprof_begin_args_(npuprof_site_ *site, npuprof_keys_ *keys, npuprof_args args);
NPUPROF_API_ npuprof_token_ npuprof_begin_named_(const npuprof_device *device, npuprof_site_ *site, npuprof_keys_ *keys,
                                                 uint32_t kind, const char *category, const char *name, npuprof_args args);
NPUPROF_API_ void npuprof_close_(npuprof_token_ token);
NPUPROF_API_ bool npuprof_is_open_(npuprof_token_ token);   /* is it an open span of this thread? */
NPUPROF_API_ npuprof_token_ npuprof_next_(npuprof_token_ token, npuprof_site_ *site);
NPUPROF_API_ void npuprof_begin_by_hand_(const char *category, const char *name);
NPUPROF_API_ void npuprof_end_by_hand_(void);
NPUPROF_API_ void npuprof_event_now_(npuprof_site_ *site, uint64_t value);
NPUPROF_API_ void npuprof_event_args_now_(npuprof_site_ *site, npuprof_keys_ *keys, uint64_t value, npuprof_args args);
NPUPROF_API_ void npuprof_memory_(const npuprof_device *device, uint64_t used_bytes, uint64_t allocated_bytes, const char *tag);
NPUPROF_API_ void npuprof_thread_name_(const char *name);
NPUPROF_API_ void npuprof_wait_(const npuprof_device *device);

NPUPROF_INLINE_ uint64_t npuprof_int_bits_(int64_t v) { return (uint64_t)v; }
NPUPROF_INLINE_ uint64_t npuprof_real_bits_(double v)
{
    union { double d; uint64_t u; } bits;
    bits.d = v;
    return bits.u;
}

NPUPROF_INLINE_ npuprof_arg npuprof_arg_(const char *key, uint32_t type)
{
    npuprof_arg a;
    a.key = key;
    a.type = type;
    a.value.u = 0;
    return a;
}
NPUPROF_INLINE_ npuprof_arg npuprof_int_(const char *key, int64_t v)
{
    npuprof_arg a = npuprof_arg_(key, NPUPROF_ARG_INT);
    a.value.i = v;
    return a;
}
NPUPROF_INLINE_ npuprof_arg npuprof_uint_(const char *key, uint64_t v)
{
    npuprof_arg a = npuprof_arg_(key, NPUPROF_ARG_UINT);
    a.value.u = v;
    return a;
}
NPUPROF_INLINE_ npuprof_arg npuprof_real_(const char *key, double v)
{
    npuprof_arg a = npuprof_arg_(key, NPUPROF_ARG_REAL);
    a.value.d = v;
    return a;
}
NPUPROF_INLINE_ npuprof_arg npuprof_bool_(const char *key, bool v)
{
    npuprof_arg a = npuprof_arg_(key, NPUPROF_ARG_BOOL);
    a.value.u = v ? 1 : 0;
    return a;
}
NPUPROF_INLINE_ npuprof_arg npuprof_str_(const char *key, const char *v)
{
    npuprof_arg a = npuprof_arg_(key, NPUPROF_ARG_STR);
    a.value.s = v;
    return a;
}
NPUPROF_INLINE_ npuprof_args npuprof_args_(const npuprof_arg *items, size_t count)
{
    npuprof_args list;
    list.items = items;
    list.count = count;
    return list;
}

NPUPROF_END_C_
#ifdef __cplusplus
extern "C++" {
NPUPROF_INLINE_ npuprof_args npuprof_args_(std::initializer_list<npuprof_arg> list)
{
    return npuprof_args_(list.begin(), list.size());
}
}
#endif

/* What a scope keeps on the stack. It is passed to the clean-up by address, garbage if a goto jumped over it. */
typedef struct npuprof_scope_ { npuprof_token_ token; } npuprof_scope_;
typedef struct npuprof_block_ { npuprof_token_ token; const npuprof_device *device; } npuprof_block_;

#ifndef NPUPROF_OFF
NPUPROF_INLINE_ void npuprof_leave_scope_(npuprof_scope_ *scope)
{
    if (scope->token) npuprof_close_(scope->token);
}
NPUPROF_INLINE_ void npuprof_leave_block_(npuprof_block_ *block)
{
    if (!block->token) return;
    /* Why the question: a goto into the block leaves garbage in it. */
    if (block->device && npuprof_is_open_(block->token) && block->device->wait_around) npuprof_wait_(block->device);
    npuprof_close_(block->token);
}
#ifdef __cplusplus
struct npuprof_auto_scope_ : npuprof_scope_ {
    explicit npuprof_auto_scope_(npuprof_token_ t) { token = t; }
    ~npuprof_auto_scope_() { npuprof_leave_scope_(this); }
    npuprof_auto_scope_(const npuprof_auto_scope_ &) = delete;
    npuprof_auto_scope_ &operator=(const npuprof_auto_scope_ &) = delete;
};
struct npuprof_auto_block_ : npuprof_block_ {
    npuprof_auto_block_(npuprof_token_ t, const npuprof_device *d) { token = t; device = d; }
    ~npuprof_auto_block_() { npuprof_leave_block_(this); }
    npuprof_auto_block_(const npuprof_auto_block_ &) = delete;
    npuprof_auto_block_ &operator=(const npuprof_auto_block_ &) = delete;
};
#endif
#endif

/* ==== MACROS ================================================================================ >>macros ==== */

/* The one switch. NPUPROF_VOID_ is a statement, NPUPROF_SCOPE_ a declaration, NPUPROF_BLOCK_ opens a block around code. OFF keeps
   the type checks, in an unevaluated sizeof, and nothing else. NPUPROF_REF_ is the address of a call site. */
#ifndef NPUPROF_OFF
#define NPUPROF_OPEN_(level) NPUPROF_UNLIKELY_(NPUPROF_LOAD_(&npuprof_gate_) >= (level))
#define NPUPROF_SITE_(id, kind, cat, name) \
    static npuprof_site_ NPUPROF_GLUE_(npuprof_site_, id) = { 0, 0, (kind), name, cat };
#define NPUPROF_KEYS_OF_(id) \
    static npuprof_keys_ NPUPROF_GLUE_(npuprof_keys_, id) = { 0, { 0, 0, 0, 0 }, { NULL, NULL, NULL, NULL } };
#define NPUPROF_REF_(id, cat, name) (&NPUPROF_GLUE_(npuprof_site_, id))
#define NPUPROF_KEYS_REF_(id) (&NPUPROF_GLUE_(npuprof_keys_, id))
#define NPUPROF_VOID_(level, sites, expr) do { sites if (NPUPROF_OPEN_(level)) { expr; } } while (0)
#define NPUPROF_ALWAYS_(expr) ((void)(expr))
#ifdef __cplusplus
#define NPUPROF_SCOPE_(id, level, sites, begin) sites npuprof_auto_scope_ id(NPUPROF_OPEN_(level) ? (begin) : 0)
#define NPUPROF_BLOCK_(id, level, dev, sites, begin) \
    sites npuprof_auto_block_ id(0, (dev)); if (NPUPROF_OPEN_(level)) id.token = (begin)
#else
#define NPUPROF_SCOPE_(id, level, sites, begin) \
    sites NPUPROF_ATTRIBUTE_((unused, cleanup(npuprof_leave_scope_))) npuprof_scope_ id = { NPUPROF_OPEN_(level) ? (begin) : 0 }
#define NPUPROF_BLOCK_(id, level, dev, sites, begin) \
    sites NPUPROF_ATTRIBUTE_((unused, cleanup(npuprof_leave_block_))) npuprof_block_ id = { 0, (dev) }; \
    if (NPUPROF_OPEN_(level)) id.token = (begin)
#endif
#define NPUPROF_DEVICE_OF_(id, dev) id.device
#define NPUPROF_ARGS_(...) __VA_ARGS__
#define NPUPROF_NEXT_(sites, next) \
    do { sites if (NPUPROF_OPEN_(1) || npuprof_phase_.token) npuprof_phase_.token = (next); } while (0)
#define NPUPROF_PHASE_TOKEN_ npuprof_phase_.token
#else
#define NPUPROF_SITE_(id, kind, cat, name)
#define NPUPROF_KEYS_OF_(id)
#define NPUPROF_REF_(id, cat, name) ((npuprof_site_ *)(sizeof(name) + sizeof(cat) ? NULL : NULL))
#define NPUPROF_KEYS_REF_(id) ((npuprof_keys_ *)NULL)
#define NPUPROF_VOID_(level, sites, expr) ((void)sizeof(((void)(0 >= (level)), (expr), 0)))
#define NPUPROF_ALWAYS_(expr) ((void)sizeof(((expr), 0)))
#define NPUPROF_SCOPE_(id, level, sites, begin)                                           \
    extern char NPUPROF_GLUE_(id, a_)[sizeof((void)(0 >= (level)), (begin))];                    \
    extern char NPUPROF_GLUE_(id, b_)[sizeof NPUPROF_GLUE_(id, a_)] NPUPROF_ATTRIBUTE_((unused))
#define NPUPROF_BLOCK_(id, level, dev, sites, begin) NPUPROF_SCOPE_(id, level, sites, begin)
#define NPUPROF_DEVICE_OF_(id, dev) (dev)
#define NPUPROF_ARGS_(...) ((void)sizeof(__VA_ARGS__), PROF_NO_ARGS)
#define NPUPROF_NEXT_(sites, next) ((void)sizeof((next)))
#define NPUPROF_PHASE_TOKEN_ (npuprof_token_)npuprof_phase_a_[0]
#endif

/* To the end of the enclosing block, whichever way control leaves it. name and cat are literals. */
#define PROF_SCOPE(name) NPUPROF_PLAIN_(__COUNTER__, 1, NULL, "" name "")
#define PROF_SCOPE_CAT(cat, name) NPUPROF_PLAIN_(__COUNTER__, 1, "" cat "", "" name "")
/* args: PROF_ARGS(PROF_INT("n", n), ...) or PROF_NO_ARGS; evaluated only while the gate is open. */
#define PROF_SCOPE_ARGS(cat, name, args) PROF_SCOPE_LEVEL(1, cat, name, args)
#define PROF_SCOPE_LEVEL(level, cat, name, args) NPUPROF_WITH_ARGS_(__COUNTER__, level, "" cat "", "" name "", args)
#define PROF_FUNCTION() NPUPROF_PLAIN_(__COUNTER__, 1, NULL, __func__)
/* A labelled section ("trace") that starts a trace id; the work inside becomes its child. name: any string, copied. */
#define PROF_RECORD(name) NPUPROF_NAMED_(__COUNTER__, NPUPROF_KIND_RECORD, name, PROF_NO_ARGS)
/* The same, and all inside it is left out of the reports. */
#define PROF_RECORD_WARM_UP(name) NPUPROF_NAMED_(__COUNTER__, NPUPROF_KIND_WARM_UP, name, PROF_NO_ARGS)
/* One inference query: a row of npuprof_print_summary() and npuprof_print_inferences(). name: any string, copied. */
#define PROF_INFERENCE(name) NPUPROF_NAMED_(__COUNTER__, NPUPROF_KIND_INFERENCE, name, PROF_NO_ARGS)
/* A host ("external") operator: a row of npuprof_print_external_operators(). name: any string, copied. */
#define PROF_OPERATOR(operator_index, name) \
    NPUPROF_NAMED_(__COUNTER__, NPUPROF_KIND_OPERATOR, name, PROF_ARGS(PROF_INT("operator_index", operator_index)))

/* Back-to-back spans that share one time stamp: PROF_PHASES begins the first, each PROF_NEXT ends one and begins the next,
   the end of the block ends the last. */
#define PROF_PHASES(name) NPUPROF_PHASES_(__COUNTER__, "" name "")
#define PROF_NEXT(name) NPUPROF_NEXT_PHASE_(__COUNTER__, "" name "")

/* By hand, nested per thread, 64 deep at most; PROF_END closes the last PROF_BEGIN, recorded or not. Any strings, copied; cat may be
   NULL. */
#define PROF_BEGIN(cat, name) NPUPROF_ALWAYS_(npuprof_begin_by_hand_((cat), (name)))
#define PROF_END() NPUPROF_ALWAYS_(npuprof_end_by_hand_())

/* An arrow between two host spans: OUT inside the one, IN inside the other, with the same 64-bit id. */
#define PROF_FLOW_OUT(id) NPUPROF_EVENT_(__COUNTER__, NPUPROF_KIND_FLOW_OUT, "flow", (uint64_t)(id))
#define PROF_FLOW_IN(id) NPUPROF_EVENT_(__COUNTER__, NPUPROF_KIND_FLOW_IN, "flow", (uint64_t)(id))

/* A span around code, which is expanded once; an exit by return, break, continue or goto ends it too. name and cat: any
   strings, copied; device: npuprof_device * or NULL. */
#define WITH_BASE_PROFILER(device, name, cat, args, ...) WITH_BASE_PROFILER_LEVEL(1, device, name, cat, args, __VA_ARGS__)
#define WITH_BASE_PROFILER_LEVEL(level, device, name, cat, args, ...) \
    if (1) { NPUPROF_WITH_BASE_(__COUNTER__, level, device, name, cat, args); { __VA_ARGS__; } } else ((void)0)

/* A moment. Literals. */
#define PROF_INSTANT(cat, name, args) NPUPROF_INSTANT_(__COUNTER__, "" cat "", "" name "", args)
/* A value over time. An integer stays an integer. name: a literal. */
#define PROF_COUNTER(name, value)                                                                                        \
    NPUPROF_EVENT_(__COUNTER__,                                                                                          \
                   (NPUPROF_IS_REAL_(value) ? NPUPROF_KIND_COUNTER_REAL                                                  \
                    : NPUPROF_IS_UNSIGNED_(value) ? NPUPROF_KIND_COUNTER_UINT : NPUPROF_KIND_COUNTER_INT), "" name "",    \
                   (NPUPROF_IS_REAL_(value) ? npuprof_real_bits_((double)(value)) : npuprof_int_bits_((int64_t)(value))))
/* The state of a memory pool after an operator. device: npuprof_device * or NULL; tag: any string, copied. */
#define PROF_MEMORY(device, used_bytes, allocated_bytes, tag) \
    NPUPROF_VOID_(1, , npuprof_memory_((device), (uint64_t)(used_bytes), (uint64_t)(allocated_bytes), (tag)))
/* Names the calling thread; any string, copied, kept while stopped, too. Not from a signal handler. */
#define PROF_THREAD_NAME(name) NPUPROF_ALWAYS_(npuprof_thread_name_(name))

/* Arguments. Keys are literals; a string is copied and cut at 1,024 bytes. */
#define PROF_INT(key, v) npuprof_int_("" key "", (int64_t)(v))
#define PROF_UINT(key, v) npuprof_uint_("" key "", (uint64_t)(v))
#define PROF_REAL(key, v) npuprof_real_("" key "", (double)(v))
#define PROF_BOOL(key, v) npuprof_bool_("" key "", (v) ? true : false)
#define PROF_STR(key, v) npuprof_str_("" key "", (v))
#define PROF_NO_ARGS npuprof_args_(NULL, 0)
#ifdef __cplusplus
#define PROF_ARGS(...) NPUPROF_ARGS_(npuprof_args_({ __VA_ARGS__ }))
#else
#define PROF_ARGS(...) NPUPROF_ARGS_( \
    npuprof_args_((const npuprof_arg[]){ __VA_ARGS__ }, sizeof((const npuprof_arg[]){ __VA_ARGS__ }) / sizeof(npuprof_arg)))
#endif

/* What the macros above share. id is a fresh number.
   Why __COUNTER__ and not __LINE__: two scopes may stand in one macro, and so on one line. */
#define NPUPROF_PLAIN_(id, level, cat, name)                                                        \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), level, NPUPROF_SITE_(id, NPUPROF_KIND_SPAN, cat, name), \
                   npuprof_begin_(NPUPROF_REF_(id, cat, name)))
#define NPUPROF_WITH_ARGS_(id, level, cat, name, args)                                              \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), level,                                        \
                   NPUPROF_SITE_(id, NPUPROF_KIND_SPAN, cat, name) NPUPROF_KEYS_OF_(id),            \
                   npuprof_begin_args_(NPUPROF_REF_(id, cat, name), NPUPROF_KEYS_REF_(id), (args)))
#define NPUPROF_BEGIN_NAMED_(id, dev, kind, cat, name, args)                                        \
    npuprof_begin_named_(dev, NPUPROF_CONSTANT_(name) && NPUPROF_CONSTANT_(cat) ? NPUPROF_REF_(id, NULL, NULL) : NULL, \
                         NPUPROF_KEYS_REF_(id), kind, cat, name, args)
#define NPUPROF_NAMED_(id, kind, name, args)                                                        \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), 1, NPUPROF_SITE_(id, kind, NULL, NULL) NPUPROF_KEYS_OF_(id), \
                   NPUPROF_BEGIN_NAMED_(id, NULL, kind, "Runtime", (name), (args)))
#define NPUPROF_WITH_BASE_(id, level, dev, name, cat, args)                                         \
    NPUPROF_BLOCK_(NPUPROF_GLUE_(npuprof_block_, id), level, dev,                                   \
                   NPUPROF_SITE_(id, NPUPROF_KIND_SPAN, NULL, NULL) NPUPROF_KEYS_OF_(id),           \
                   NPUPROF_BEGIN_NAMED_(id, NPUPROF_DEVICE_OF_(NPUPROF_GLUE_(npuprof_block_, id), dev), \
                                        NPUPROF_KIND_SPAN, (cat), (name), (args)))
#define NPUPROF_PHASES_(id, name)                                                                   \
    NPUPROF_SHADOW_PUSH_                                                                            \
    NPUPROF_SCOPE_(npuprof_phase_, 1, NPUPROF_SITE_(id, NPUPROF_KIND_SPAN, NULL, name),             \
                   npuprof_begin_(NPUPROF_REF_(id, NULL, name)));                                   \
    NPUPROF_SHADOW_POP_
#define NPUPROF_NEXT_PHASE_(id, name)                                                               \
    NPUPROF_NEXT_(NPUPROF_SITE_(id, NPUPROF_KIND_SPAN, NULL, name),                                 \
                  npuprof_next_(NPUPROF_PHASE_TOKEN_, NPUPROF_REF_(id, NULL, name)))
#define NPUPROF_EVENT_(id, kind, name, value) \
    NPUPROF_VOID_(1, NPUPROF_SITE_(id, kind, NULL, name), npuprof_event_now_(NPUPROF_REF_(id, NULL, name), (value)))
#define NPUPROF_INSTANT_(id, cat, name, args)                                                       \
    NPUPROF_VOID_(1, NPUPROF_SITE_(id, NPUPROF_KIND_INSTANT, cat, name) NPUPROF_KEYS_OF_(id),       \
                  npuprof_event_args_now_(NPUPROF_REF_(id, cat, name), NPUPROF_KEYS_REF_(id), 0, (args)))

/* What npuprof_npu.h builds on; not for users. Host ticks are those of the records. */
NPUPROF_BEGIN_C_
typedef struct npuprof_link_ {      /* the span that submitted a job */
    uint64_t position, root_position;   /* of that span and of its trace's root, in the slot's stream */
    uint64_t ticks;                 /* a host stamp inside the span; 0 = there is no span to link to */
    uint32_t slot;
    bool warm_up;
} npuprof_link_;
typedef struct npuprof_anchor_ {    /* device_ticks were read between the two host stamps */
    uint64_t device_ticks, host_before, host_after;
} npuprof_anchor_;
enum { NPUPROF_STAMP_SAMPLED = 1, NPUPROF_STAMP_DEVICE = 0, NPUPROF_STAMP_ANCHOR_WIDE = 2 };
enum { NPUPROF_NOTE_WRAPS, NPUPROF_NOTE_RESETS, NPUPROF_NOTE_DEAD_READS, NPUPROF_NOTE_TORN_READS, NPUPROF_NOTE_RING_LOST,
       NPUPROF_NOTE_COUNT };
#ifndef NPUPROF_OFF
/* Host ticks now; any ticks as ns on npuprof_now_ns()'s clock, by the rate known at this moment; ns per 2^32 ticks. */
NPUPROF_API_ uint64_t npuprof_ticks_(void);
NPUPROF_API_ int64_t npuprof_ticks_to_ns_(uint64_t ticks);
NPUPROF_API_ uint64_t npuprof_ns_per_4g_ticks_(void);
/* Adds a device to the arena: its number from 1, or 0 when the table is full. max_rate_ppb: the wander its clock may have. */
NPUPROF_API_ uint32_t npuprof_device_add_(const char *name, unsigned pe_count, uint64_t nominal_hz, uint32_t max_rate_ppb);
/* Stores an anchor. epoch counts the device's resets. Anchors of one device come from one thread at a time. */
NPUPROF_API_ npuprof_result npuprof_device_anchor_(uint32_t device, uint32_t epoch, const npuprof_anchor_ *anchor);
/* Adds to one of a device's counts (NPUPROF_NOTE_*). */
NPUPROF_API_ void npuprof_device_note_(uint32_t device, unsigned note, uint64_t add);
/* The innermost open recorded span of this thread. */
NPUPROF_API_ npuprof_link_ npuprof_link_here_(void);
/* A finished device span in extended device ticks. link may be NULL. flags: NPUPROF_STAMP_*. */
NPUPROF_API_ void npuprof_device_span_(uint32_t device, uint32_t epoch, unsigned pe, const char *category, const char *name,
                                       uint64_t start_ticks, uint64_t end_ticks, unsigned flags, const npuprof_link_ *link,
                                       npuprof_args args);
/* Counts spans or events that never came to be. */
NPUPROF_API_ void npuprof_count_lost_(unsigned cause, uint64_t count);
/* Maps device ticks to host ticks with the anchors given, ascending in device ticks; max_rate_ppb as above. The error is in host
   ticks. False: no anchors. The one place with the interpolation and its bound; readers use it too. */
NPUPROF_API_ bool npuprof_map_ticks_(const npuprof_anchor_ *anchors, size_t count, uint32_t max_rate_ppb, uint64_t device_ticks,
                                     uint64_t *host_ticks, uint64_t *error_ticks, bool *widened);
#endif
NPUPROF_END_C_

#endif /* NPUPROF_H: end of header */

/* ==== IMPLEMENTATION ========================================================================== >>impl ==== */

#if defined(NPUPROF_IMPLEMENTATION) && !defined(NPUPROF_OFF) && !defined(NPUPROF_IMPLEMENTATION_DONE_)
#define NPUPROF_IMPLEMENTATION_DONE_

#include <string.h>

NPUPROF_BEGIN_C_
/* Why: the file around may have globals of any name. */
NPUPROF_SHADOW_PUSH_

#define NPUPROF_UNITS_(bytes) (((bytes) + 15) / 16)
#define NPUPROF_OPEN_END_ UINT64_MAX                  /* w1 of a span that has not ended */
#define NPUPROF_CUT_ ((uint64_t)1 << 63)              /* w1 bit: ended by unwinding, not by its own end */
#define NPUPROF_ID_BITS_ 20
#define NPUPROF_ID_MASK_ (((uint32_t)1 << NPUPROF_ID_BITS_) - 1)
#define NPUPROF_DELTA_BITS_ 44

/* ---- Layout of the arena image, all of it -------------------------------------------------------------------
   header | table | chunks.  Every integer in the byte order of the machine that wrote it (header.endian tells).
   The table is append-only: hash buckets, then entries of a multiple of table_unit bytes (never lost, never moved). The id of
   a string or other entry is its offset / table_unit. Sites have numbers of their own, from 1 and below NPUPROF_CONTROL_: at
   the table's end, growing down, 4 bytes for each say which entry it is.
   A chunk is a 32-byte head and units of 16 bytes (w0, w1). w0 == 0: nothing here yet, the rest of the chunk is empty.
   w0 = payload << 20 | id. If id is a site: a span or event of that site, payload = start - chunk base in ticks, w1 = end -
   chunk base (63 bits, signed), or the event's value. If id is one of NPUPROF_CONTROL_..: a continuation of the record
   before it. Arguments follow their record. Moved spans (see npuprof_new_chunk_) stand first in their chunk. */

typedef struct npuprof_unit_ { uint64_t w0, w1; } npuprof_unit_;

enum { /* control ids */
    NPUPROF_CONTROL_ = 0xFFFF0,
    NPUPROF_CONTROL_MOVED_AWAY_ = 0xFFFF0,   /* payload: unit number in the arena where the span is now */
    NPUPROF_CONTROL_MOVED_,                  /* after a moved span: payload: its first position; w1: its start in ticks */
    NPUPROF_CONTROL_ARG_,                    /* payload: type:4 | key:28 | string bytes:12; w1: value or 8 string bytes; then the rest */
    NPUPROF_CONTROL_FINISHED_,               /* payload: track's name; w1: end ns (the head's w1: start ns) */
    NPUPROF_CONTROL_MEMORY_,                 /* w1: allocated bytes (the head's w1: used bytes) */
    NPUPROF_CONTROL_DEVICE_,                 /* payload: device:8 | pe:16 | epoch:16 | flags:4; w1: end ticks (head: start ticks) */
    NPUPROF_CONTROL_LINK_,                   /* payload: position of the submitting span; w1: its host stamp in ticks */
    NPUPROF_CONTROL_LINK_ROOT_               /* payload: position of the trace's root; w1: tid | warm-up << 32 */
};

typedef struct npuprof_chunk_ {
    uint64_t base;                 /* ticks */
    uint64_t first_position;       /* units written in the slot's stream before this chunk */
    uint32_t sequence;             /* chunks are numbered in the order they were taken */
    uint32_t next;                 /* the slot's next chunk, index + 1 */
    uint16_t state, moved_units;   /* NPUPROF_CHUNK_*; units of moved spans at the start */
    uint32_t tid;
} npuprof_chunk_;
enum { NPUPROF_CHUNK_FREE, NPUPROF_CHUNK_OPEN, NPUPROF_CHUNK_RETIRED, NPUPROF_CHUNK_SLOTS };

typedef struct npuprof_host_anchor_ {
    uint64_t ticks, error_ticks;   /* the three clocks were read at ticks, +- error */
    int64_t monotonic_ns, boot_ns, unix_ns;
} npuprof_host_anchor_;

enum { NPUPROF_LOST_ROOM_ = 16 };  /* room for causes to come */

typedef struct npuprof_header_ {
    char magic[8];
    uint32_t endian, format;
    uint64_t arena_bytes, clock_hz, clear_ticks, seed_high, seed_low;
    uint64_t lost[NPUPROF_LOST_ROOM_];
    npuprof_host_anchor_ first, last;
    uint32_t header_bytes, table_offset, table_bytes, table_unit, bucket_count, table_used, sites;
    uint32_t chunks_offset, chunk_bytes, chunk_count, chunk_next, chunk_free, sequence, contexts;
    uint32_t slot_bytes, slot_first, threads, devices;
    uint32_t when_full, clock_source, clock_bits, pid;
    char host[64], program[64];
    char traceparent[56];          /* W3C, or empty */
} npuprof_header_;

typedef struct npuprof_entry_ {    /* head of a table entry */
    uint32_t type_units;           /* type << 24 | table units */
    uint32_t hash, next, a;        /* next: id in the same bucket; a: by type */
} npuprof_entry_;
enum { NPUPROF_ENTRY_STRING = 1,   /* a: length; the bytes and a NUL follow */
       NPUPROF_ENTRY_SITE,         /* a: kind:8 | number << 8; b[0] name, b[1] category (0 = none) */
       NPUPROF_ENTRY_METADATA,     /* a: 0; b[0] key, b[1] value */
       NPUPROF_ENTRY_ENVIRONMENT,  /* a: 0; b[0] variable, b[1] what was wrong with its value */
       NPUPROF_ENTRY_PAUSE,        /* from, to in ticks, 0 = still */
       NPUPROF_ENTRY_DEVICE,
       NPUPROF_ENTRY_ANCHORS };

typedef struct npuprof_pair_entry_ { npuprof_entry_ head; uint32_t b[2]; } npuprof_pair_entry_;
typedef struct npuprof_pause_entry_ { npuprof_entry_ head; uint64_t from, to; } npuprof_pause_entry_;
typedef struct npuprof_device_entry_ {       /* a: number from 1 */
    npuprof_entry_ head;
    uint64_t nominal_hz, notes[NPUPROF_NOTE_COUNT];
    npuprof_anchor_ overflow;      /* the newest anchor once the table is full */
    uint32_t overflow_epoch, overflow_used;
    uint32_t name, pe_count, max_rate_ppb, first_anchors, last_anchors, pad;
} npuprof_device_entry_;
enum { NPUPROF_ANCHORS_ = 16 };
typedef struct npuprof_anchors_entry_ {      /* a: the device's next anchors entry */
    npuprof_entry_ head;
    uint32_t epoch, count;
    npuprof_anchor_ anchor[NPUPROF_ANCHORS_];
} npuprof_anchors_entry_;

typedef struct npuprof_open_ { npuprof_unit_ *unit; npuprof_token_ token; } npuprof_open_;
enum { NPUPROF_BY_HAND_ = 2 };     /* bit of an open span's token: PROF_BEGIN's */

typedef struct npuprof_slot_ {
    /* what readers use */
    uint32_t tid, parent;          /* tid from 1, 0 = never used; parent: the slot a signal handler interrupted, unit number */
    uint32_t next_slot;            /* unit number in the arena */
    uint32_t name;                 /* string id */
    uint32_t first_chunk, last_chunk;  /* index + 1 */
    uint64_t os_tid;
    uint64_t lost[NPUPROF_LOST_COUNT];
    /* what only the recording process uses */
    uint32_t owned, busy;          /* busy: a record is in the making */
    npuprof_unit_ *cursor, *end;
    uint64_t base;                 /* ticks, of the current chunk */
    uint64_t position;             /* of the stream where a first chunk begins: after a clear it goes on */
    uint32_t token_base;           /* of the current chunk: see npuprof_push_ */
    npuprof_open_ *top, *limit;
    struct npuprof_slot_ *nested;  /* for a signal handler that interrupts this one */
    uint64_t by_hand_bits;         /* PROF_BEGIN, newest in bit 0: was it recorded? */
    uint32_t by_hand_count, owners, named_by;  /* named_by: which of the owners gave the name */
    npuprof_open_ open[1];         /* [0] is a sentinel; the rest lies behind */
} npuprof_slot_;

enum { NPUPROF_DEPTH_ = 128 };     /* open spans of a thread at most */
enum { NPUPROF_CONTEXTS_ = 8 };    /* of a thread: its own and those of signal handlers that interrupt each other */

typedef struct npuprof_categories_ {
    int mode;                      /* 0 all, 1 only these, -1 all but these */
    char words[256];               /* with commas between */
    uint32_t seen;                 /* bit n: the list's n-th was met, n < 32 */
} npuprof_categories_;

/* The one arena of this file, and what the process knows about it. */
typedef struct npuprof_state_ {
    uint8_t *base;
    npuprof_header_ *header;
    uint8_t *table;
    uint32_t *buckets;
    uint8_t *chunks;
    uint32_t units, depth;         /* units in a chunk; open spans of a slot */
    int level;                     /* 0 = stopped */
    bool paused;
    uint32_t pause_entry;
    npuprof_categories_ lists[4];  /* Why several: a thread may still be reading the one before */
    npuprof_categories_ *categories;
    uint32_t list_number;
    char output_path[1024];
    char categories_from[24];      /* the variable they came from, or empty */
    bool write_at_exit, forked, started;      /* started: npuprof_start() was called */
    uint32_t own_path;             /* hash of the path this arena wrote last */
    uintptr_t writer;              /* the thread that writes or reports; 0 = none */
} npuprof_state_;

static npuprof_state_ npuprof_s_;
static uint32_t npuprof_generation_;      /* of arena and category settings, 31 bits; call sites compare theirs */
static uint32_t npuprof_quick_generation_ = UINT32_MAX;   /* the same where the clock is one instruction, else no call site's */
static uint32_t npuprof_ready_state_;     /* 0 not yet, 1 being set up, 2 ready */
#ifndef NPUPROF_STATIC
int npuprof_gate_ = INT_MIN;
#endif

static uint64_t npuprof_static_arena_[(NPUPROF_ARENA_BYTES) / 8] NPUPROF_ALIGNED_;
static uint64_t npuprof_scratch_[(NPUPROF_SCRATCH_BYTES) / 8] NPUPROF_ALIGNED_;

static npuprof_slot_ npuprof_no_slot_ = { 0, 0, 0, 0, 0, 0, 0, { 0 }, 0, 1, NULL, NULL, 0, 0, 0, npuprof_no_slot_.open, NULL, NULL, 0, 0, 0, 0,
                                         { { NULL, 0 } } };

/* ==== PLATFORM ============================================================================ >>platform ==== */

#if defined(NPUPROF_FREESTANDING)
#define NPUPROF_THREAD_LOCAL_
#elif defined(_WIN32)
#error "npuprof.h: the Windows platform section is not there yet"
#else
#if defined(__STRICT_ANSI__) && !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE) && !defined(__APPLE__)
#error "npuprof.h: strict -std hides clock_gettime and mmap; include npuprof.h before any system header in the implementing file, or add -D_DEFAULT_SOURCE"
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/syscall.h>
#endif
#define NPUPROF_THREAD_LOCAL_ NPUPROF_INITIAL_EXEC_ __thread
#endif

static NPUPROF_THREAD_LOCAL_ npuprof_slot_ *npuprof_my_slot_ = &npuprof_no_slot_;
static NPUPROF_THREAD_LOCAL_ uint32_t npuprof_by_hand_skipped_;   /* PROF_BEGINs of a thread without a slot */

/* The clocks beside the ticks. Without an OS they are all zero. */
static void npuprof_os_clocks_(npuprof_host_anchor_ *a)
{
#ifdef NPUPROF_FREESTANDING
    a->monotonic_ns = a->boot_ns = a->unix_ns = 0;
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    a->monotonic_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    a->boot_ns = a->monotonic_ns;
#ifdef CLOCK_BOOTTIME
    clock_gettime(CLOCK_BOOTTIME, &t);
    a->boot_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
#endif
    clock_gettime(CLOCK_REALTIME, &t);
    a->unix_ns = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
#endif
}

enum { NPUPROF_CLOCK_USER, NPUPROF_CLOCK_MONOTONIC, NPUPROF_CLOCK_TSC, NPUPROF_CLOCK_CNTVCT, NPUPROF_CLOCK_RDTIME };

#if defined(NPUPROF_NOW)
#define npuprof_clock_source_ NPUPROF_CLOCK_USER
#define NPUPROF_CLOCK_IS_QUICK_() true
#define npuprof_quick_clock_ npuprof_clock_
#if NPUPROF_NOW_BITS < 64
static uint64_t npuprof_last_now_;
#endif
static inline uint64_t npuprof_clock_(void)
{
#if NPUPROF_NOW_BITS < 64
    /* Why the old value first: whatever interrupts between the two reads, the new value is the later one. */
    const uint64_t last = NPUPROF_LOAD_(&npuprof_last_now_);
    NPUPROF_SIGNAL_FENCE_();
    const uint64_t mask = ((uint64_t)1 << NPUPROF_NOW_BITS) - 1;
    const uint64_t now = last + (((uint64_t)(NPUPROF_NOW()) - last) & mask);
    NPUPROF_STORE_(&npuprof_last_now_, now);
    return now;
#else
    return (uint64_t)(NPUPROF_NOW());
#endif
}
#else
static int npuprof_clock_source_ = NPUPROF_CLOCK_MONOTONIC;
#define NPUPROF_CLOCK_IS_QUICK_() (npuprof_clock_source_ != NPUPROF_CLOCK_MONOTONIC)
static inline uint64_t npuprof_clock_(void)
{
#if defined(__x86_64__) || defined(__i386__)
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
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}
#endif

#if !defined(NPUPROF_NOW)
/* The same where NPUPROF_CLOCK_IS_QUICK_(). */
static inline uint64_t npuprof_quick_clock_(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return (uint64_t)__builtin_ia32_rdtsc();
#else
    return npuprof_clock_();
#endif
}
#endif

/* Chooses the clock. rdtsc only where the CPU promises a constant rate in all its states (CPUID 80000007h EDX bit 8). */
static void npuprof_os_choose_clock_(void)
{
#if !defined(NPUPROF_NOW)
#if defined(__x86_64__) || defined(__i386__)
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

static void npuprof_next_generation_(void)
{
    const uint32_t next = (npuprof_generation_ + 1) & 0x7FFFFFFFu;
    NPUPROF_STORE_RELEASE_(&npuprof_generation_, next);
    NPUPROF_STORE_RELEASE_(&npuprof_quick_generation_, NPUPROF_CLOCK_IS_QUICK_() ? next : UINT32_MAX);
}

static void npuprof_copy_text_(char *to, size_t room, const char *from)
{
    size_t n = 0;
    for (; from && from[n] && n + 1 < room; n++) to[n] = from[n];
    to[n] = 0;
}

#ifndef NPUPROF_FREESTANDING
static uint32_t npuprof_os_pid_(void) { return (uint32_t)getpid(); }
static uint64_t npuprof_os_tid_(void)
{
#ifdef __linux__
    return (uint64_t)syscall(SYS_gettid);
#else
    return 0;
#endif
}
static void npuprof_os_names_(char *host, size_t host_bytes, char *program, size_t program_bytes)
{
    char path[512];
    if (gethostname(host, host_bytes) != 0) host[0] = 0;
    host[host_bytes - 1] = 0;
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = 0;
    const char *slash = strrchr(path, '/');
    npuprof_copy_text_(program, program_bytes, slash ? slash + 1 : path);
}
/* The environment, or NULL for a set-user-id program. */
static const char *npuprof_os_env_(const char *name)
{
#ifdef __linux__
    if (getauxval(AT_SECURE)) return NULL;
#endif
    if (getuid() != geteuid() || getgid() != getegid()) return NULL;
    return getenv(name);
}
static void npuprof_thread_ends_(void *slot);
static void npuprof_forked_(void);
static void npuprof_exits_(void);
static pthread_key_t npuprof_thread_key_;
static bool npuprof_has_thread_key_;
static void npuprof_os_hooks_(void)
{
    npuprof_has_thread_key_ = pthread_key_create(&npuprof_thread_key_, npuprof_thread_ends_) == 0;
    pthread_atfork(NULL, NULL, npuprof_forked_);
    atexit(npuprof_exits_);
}
static void npuprof_os_watch_thread_(npuprof_slot_ *slot)
{
    if (npuprof_has_thread_key_) pthread_setspecific(npuprof_thread_key_, slot);
}

/* Files. Each returns 0 or an errno value. */
static int npuprof_os_create_(const char *path, int *fd)       /* a new file; follows no link */
{
    *fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return *fd < 0 ? errno : 0;
}
static int npuprof_os_open_(const char *path, int *fd)         /* what is there, to write in place */
{
    /* Why not open() for our own descriptors: it would begin at the start of the file behind them. */
    const char *number = strncmp(path, "/dev/fd/", 8) == 0 ? path + 8 : strcmp(path, "/dev/stdout") == 0 ? "1" : strcmp(path, "/dev/stderr") == 0 ? "2" : NULL;
    if (number) {
        fflush(stdout);
        *fd = fcntl(atoi(number), F_DUPFD_CLOEXEC, 0);
    } else {
        *fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    }
    return *fd < 0 ? errno : 0;
}
/* Is it something to be written in place: a device, a fifo, an open descriptor? */
static bool npuprof_os_in_place_(const char *path)
{
    struct stat st;
    return strncmp(path, "/dev/std", 8) == 0 || strncmp(path, "/dev/fd/", 8) == 0 || (stat(path, &st) == 0 && !S_ISREG(st.st_mode));
}
/* A sink over a file descriptor, all bytes or an error. A closed pipe is an error, not a signal to the program. */
static int npuprof_os_write_(void *fd, const void *bytes, size_t count)
{
    const uint8_t *p = (const uint8_t *)bytes;
    sigset_t pipe_only, before, pending;
    int error = 0;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    while (count && !error) {
        const ssize_t n = write(*(const int *)fd, p, count);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            error = n < 0 ? errno : EIO;
        } else {
            p += n;
            count -= (size_t)n;
        }
    }
    if (error == EPIPE && !sigismember(&pending, SIGPIPE)) {
        const struct timespec now = { 0, 0 };
        while (sigtimedwait(&pipe_only, NULL, &now) < 0 && errno == EINTR) { }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
/* The first bytes of a regular file that was written since then; 0: there is none. */
static size_t npuprof_os_read_head_(const char *path, int64_t since_unix_ns, char *bytes, size_t room)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return 0;
    ssize_t n = 0;
    /* File times step by some milliseconds. */
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        ((int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec) >= since_unix_ns - 20000000)
        n = read(fd, bytes, room);
    close(fd);
    return n > 0 ? (size_t)n : 0;
}
static int npuprof_os_close_(int fd) { return close(fd) ? errno : 0; }
static int npuprof_os_rename_(const char *from, const char *to) { return rename(from, to) ? errno : 0; }
static void npuprof_os_remove_(const char *path) { unlink(path); }
static int npuprof_os_make_directory_(const char *path) { return mkdir(path, 0777) && errno != EEXIST ? errno : 0; }
static void npuprof_os_local_time_(int64_t unix_ns, char *text, size_t room)
{
    const time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm tm;
    text[0] = 0;
    if (localtime_r(&seconds, &tm) && !strftime(text, room, "%Y-%m-%d_%H-%M-%S", &tm)) text[0] = 0;
}
static npuprof_result npuprof_os_result_(int error)
{
    switch (error) {
    case 0: return NPUPROF_OK;
    case ENOENT: case ENOTDIR: case ENXIO: case ENODEV: return NPUPROF_ERR_NOT_FOUND;
    case EACCES: case EPERM: case EROFS: case ELOOP: return NPUPROF_ERR_ACCESS;
    case ENOSPC: case EDQUOT: case EFBIG: return NPUPROF_ERR_NO_SPACE;
    default: return NPUPROF_ERR_IO;
    }
}
#else
static uint32_t npuprof_os_pid_(void) { return 1; }
static uint64_t npuprof_os_tid_(void) { return 0; }
static void npuprof_os_names_(char *host, size_t host_bytes, char *program, size_t program_bytes)
{
    npuprof_copy_text_(host, host_bytes, "target");
    npuprof_copy_text_(program, program_bytes, "firmware");
}
static void npuprof_os_hooks_(void) {}
static void npuprof_os_watch_thread_(npuprof_slot_ *slot) { (void)slot; }
#endif

/* ==== ARENA ================================================================================== >>arena ==== */

/* Numbers. 128-bit products by halves where the compiler has no such type. */
typedef struct npuprof_u128_ { uint64_t high, low; } npuprof_u128_;
static npuprof_u128_ npuprof_multiply_(uint64_t a, uint64_t b)
{
    npuprof_u128_ r;
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 npuprof_wide_;
    const npuprof_wide_ p = (npuprof_wide_)a * b;
    r.high = (uint64_t)(p >> 64);
    r.low = (uint64_t)p;
#else
    const uint64_t al = a & 0xFFFFFFFFu, ah = a >> 32, bl = b & 0xFFFFFFFFu, bh = b >> 32;
    const uint64_t ll = al * bl, lh = al * bh, hl = ah * bl, hh = ah * bh;
    const uint64_t middle = (ll >> 32) + (lh & 0xFFFFFFFFu) + (hl & 0xFFFFFFFFu);
    r.low = middle << 32 | (ll & 0xFFFFFFFFu);
    r.high = hh + (lh >> 32) + (hl >> 32) + (middle >> 32);
#endif
    return r;
}
/* a * b / c, rounded down or up; UINT64_MAX when it does not fit or c is 0. */
static uint64_t npuprof_mul_div_(uint64_t a, uint64_t b, uint64_t c, bool up)
{
#if defined(__SIZEOF_INT128__) && !defined(NPUPROF_NO_INT128_)
    __extension__ typedef unsigned __int128 npuprof_wide_;
    npuprof_wide_ n = (npuprof_wide_)a * b;
    if ((uint64_t)(n >> 64) >= c) return UINT64_MAX;
    uint64_t q = (uint64_t)(n / c);
    bool rest = (uint64_t)n != q * c;
#else
    uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX), left = (a >> 32) * (b & UINT32_MAX), right = (a & UINT32_MAX) * (b >> 32);
    uint64_t middle = (low >> 32) + (left & UINT32_MAX) + (right & UINT32_MAX);
    uint64_t r = (a >> 32) * (b >> 32) + (left >> 32) + (right >> 32) + (middle >> 32), q = 0;
    low = (middle << 32) | (low & UINT32_MAX);
    if (r >= c) return UINT64_MAX;
    for (int bit = 63; bit >= 0; bit--) {
        bool carry = (r >> 63) != 0;
        r = (r << 1) | ((low >> bit) & 1);
        if (carry || r >= c) {
            r -= c;
            q |= (uint64_t)1 << bit;
        }
    }
    bool rest = r != 0;
#endif
    return up && rest && q != UINT64_MAX ? q + 1 : q;
}
static uint64_t npuprof_scale_(uint64_t a, uint64_t b, uint64_t c) { return npuprof_mul_div_(a, b, c, false); }

static uint64_t npuprof_mix_(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x9E3779B97F4A7C15u;
    x ^= x >> 29;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ x >> 32;
}

static npuprof_chunk_ *npuprof_chunk_at_(uint32_t index)
{
    return (npuprof_chunk_ *)(void *)(npuprof_s_.chunks + (size_t)index * npuprof_s_.header->chunk_bytes);
}
static npuprof_unit_ *npuprof_chunk_units_(npuprof_chunk_ *chunk) { return (npuprof_unit_ *)(void *)(chunk + 1); }
/* Where a table keeps the entry of a site. */
static inline uint32_t *npuprof_site_index_(const uint8_t *table, const npuprof_header_ *h, uint32_t number)
{
    return (uint32_t *)(uintptr_t)(table + h->table_bytes - (size_t)number * 4);
}
static void *npuprof_entry_at_(uint32_t id) { return npuprof_s_.table + (size_t)id * npuprof_s_.header->table_unit; }
static uint32_t npuprof_unit_number_from_(const uint8_t *base, const void *p) { return (uint32_t)((size_t)((const uint8_t *)p - base) / 16); }
static uint32_t npuprof_unit_number_(const void *p) { return npuprof_unit_number_from_(npuprof_s_.base, p); }

/* Appends a table entry of that type and size, zeroed and not yet published. NULL: the table is full. */
static npuprof_entry_ *npuprof_add_entry_(uint32_t type, size_t bytes, uint32_t *id)
{
    npuprof_header_ *h = npuprof_s_.header;
    const uint32_t units = (uint32_t)((bytes + h->table_unit - 1) / h->table_unit);
    uint32_t used = NPUPROF_LOAD_(&h->table_used);
    /* Why the margin: a running thread may have taken a site's number and not yet its entry. */
    const uint32_t margin = h->table_bytes < 2048 ? 32 : h->table_bytes < 65536 ? 256 : 4096;
    do {
        const uint64_t taken = (uint64_t)used + (uint64_t)NPUPROF_LOAD_(&h->sites) * 4 + margin;
        if (taken + (uint64_t)units * h->table_unit > h->table_bytes) return NULL;
    } while (!NPUPROF_CAS_(&h->table_used, &used, used + units * h->table_unit));
    *id = used / h->table_unit;
    npuprof_entry_ *e = (npuprof_entry_ *)npuprof_entry_at_(*id);
    NPUPROF_STORE_(&e->type_units, type << 24 | units);
    return e;
}

/* Hangs a finished entry into its bucket, so that look-ups find it. */
static void npuprof_publish_entry_(npuprof_entry_ *e, uint32_t id, uint32_t hash)
{
    uint32_t *bucket = &npuprof_s_.buckets[hash & (npuprof_s_.header->bucket_count - 1)];
    uint32_t head = NPUPROF_LOAD_ACQUIRE_(bucket);
    e->hash = hash;
    do e->next = head;
    while (!NPUPROF_CAS_(bucket, &head, id));
}

static uint32_t npuprof_hash_(const char *text, size_t length)
{
    uint64_t h = (uint64_t)length * 0x9E3779B97F4A7C15u, w;
    for (; length >= 8; text += 8, length -= 8) {
        memcpy(&w, text, 8);
        h = (h ^ w) * 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
    }
    w = 0;
    memcpy(&w, text, length);
    h = (h ^ w) * 0xD6E8FEB86659FD93u;
    return (uint32_t)(h >> 32);
}

/* Length of text cut to at most limit bytes, not inside a UTF-8 sequence. */
static size_t npuprof_cut_(const char *text, size_t length, size_t limit)
{
    if (length <= limit) return length;
    size_t n = limit;
    while (n > 0 && limit - n < 4 && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
    return ((unsigned char)text[n] & 0xC0) == 0x80 ? limit : n;
}

enum { NPUPROF_NAME_LIMIT_ = 65535, NPUPROF_STRING_LIMIT_ = 1024 };

/* The id of a string, copied into the table at its first use. 0: the table is full. Lock-free; two threads that meet
   here may store a string twice, which no reader minds. */
static uint32_t npuprof_intern_(const char *text)
{
    const size_t length = npuprof_cut_(text, strlen(text), NPUPROF_NAME_LIMIT_);
    const uint32_t hash = npuprof_hash_(text, length);
    uint32_t id = NPUPROF_LOAD_ACQUIRE_(&npuprof_s_.buckets[hash & (npuprof_s_.header->bucket_count - 1)]);
    while (id) {
        const npuprof_entry_ *e = (const npuprof_entry_ *)npuprof_entry_at_(id);
        if (e->hash == hash && e->type_units >> 24 == NPUPROF_ENTRY_STRING && e->a == length && memcmp(e + 1, text, length) == 0)
            return id;
        id = e->next;
    }
    npuprof_entry_ *e = npuprof_add_entry_(NPUPROF_ENTRY_STRING, sizeof *e + length + 1, &id);
    if (!e) return 0;
    e->a = (uint32_t)length;
    memcpy(e + 1, text, length);
    npuprof_publish_entry_(e, id, hash);
    return id;
}

/* The id of a call site: kind, name and category. 0: the table is full. */
static uint32_t npuprof_intern_site_(uint32_t kind, const char *category, const char *name)
{
    const uint32_t name_id = npuprof_intern_(name ? name : "");
    const uint32_t category_id = category && *category ? npuprof_intern_(category) : 0;
    if (!name_id || (category && *category && !category_id)) return 0;
    const uint32_t hash = (uint32_t)(npuprof_mix_((uint64_t)name_id << 32 ^ (uint64_t)category_id << 8 ^ kind) >> 16);
    uint32_t id = NPUPROF_LOAD_ACQUIRE_(&npuprof_s_.buckets[hash & (npuprof_s_.header->bucket_count - 1)]);
    while (id) {
        const npuprof_pair_entry_ *e = (const npuprof_pair_entry_ *)npuprof_entry_at_(id);
        if (e->head.hash == hash && e->head.type_units >> 24 == NPUPROF_ENTRY_SITE && (e->head.a & 0xFF) == kind && e->b[0] == name_id &&
            e->b[1] == category_id)
            return e->head.a >> 8;
        id = e->head.next;
    }
    npuprof_header_ *h = npuprof_s_.header;
    if (NPUPROF_LOAD_(&h->sites) >= NPUPROF_CONTROL_ - 1024) return 0;
    npuprof_pair_entry_ *e = (npuprof_pair_entry_ *)(void *)npuprof_add_entry_(NPUPROF_ENTRY_SITE, sizeof *e, &id);
    if (!e) return 0;
    const uint32_t number = NPUPROF_ADD_(&h->sites, 1) + 1;
    e->head.a = number << 8 | kind;
    e->b[0] = name_id;
    e->b[1] = category_id;
    NPUPROF_STORE_RELEASE_(npuprof_site_index_(npuprof_s_.table, h, number), id);
    npuprof_publish_entry_(&e->head, id, hash);
    return number;
}

/* A pair of strings for the metadata. False: the table is full. */
static bool npuprof_add_pair_(uint32_t type, const char *key, const char *value)
{
    uint32_t id;
    const uint32_t key_id = npuprof_intern_(key ? key : ""), value_id = npuprof_intern_(value ? value : "");
    npuprof_pair_entry_ *e = NULL;
    if (key_id && value_id) e = (npuprof_pair_entry_ *)(void *)npuprof_add_entry_(type, sizeof *e, &id);
    if (!e) return false;
    NPUPROF_STORE_(&e->b[0], key_id);
    NPUPROF_STORE_RELEASE_(&e->b[1], value_id);
    return true;
}

/* The narrowest of a few readings of ticks around the OS clocks. */
static void npuprof_read_host_anchor_(npuprof_host_anchor_ *best)
{
    uint64_t width = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        npuprof_host_anchor_ a;
        const uint64_t before = npuprof_clock_();
        npuprof_os_clocks_(&a);
        const uint64_t after = npuprof_clock_();
        a.ticks = before + (after - before) / 2;
        a.error_ticks = (after - before + 1) / 2;
        if (after - before < width) {
            width = after - before;
            *best = a;
        }
    }
}

/* Begins a trace in an arena that is laid out: clocks, names, seed. */
static void npuprof_begin_trace_(npuprof_header_ *h)
{
    h->pid = npuprof_os_pid_();
    npuprof_os_names_(h->host, sizeof h->host, h->program, sizeof h->program);
    npuprof_read_host_anchor_(&h->first);
    h->last = h->first;
    h->seed_high = npuprof_mix_((uint64_t)h->first.unix_ns ^ (uint64_t)h->pid << 32);
    h->seed_low = npuprof_mix_(h->seed_high ^ h->first.ticks);
}

/* Lays an empty arena out in that memory. Chunks need not be zero: each is zeroed when it is taken. False: too small. */
static bool npuprof_lay_out_(void *memory, size_t bytes, int when_full)
{
    npuprof_state_ *s = &npuprof_s_;
    const size_t header_bytes = (sizeof(npuprof_header_) + 63) / 64 * 64;
    /* Unit numbers have 32 bits. */
    if ((uint64_t)bytes > (uint64_t)16 * UINT32_MAX) bytes = (size_t)((uint64_t)16 * UINT32_MAX);
    if (bytes < 2048 || ((uintptr_t)memory & 7)) return false;
    size_t table_bytes = bytes < 65536 ? bytes / 4 : bytes / 8;
    if (table_bytes > 256 * 1024 * 1024) table_bytes = 256 * 1024 * 1024;
    table_bytes = table_bytes / 64 * 64;
    const uint32_t unit = 16;
    uint32_t buckets = 8;
    while (buckets < table_bytes / 256) buckets *= 2;
    const uint32_t chunk_bytes = bytes >= 1024 * 1024 ? 8192 : bytes >= 128 * 1024 ? 4096 : bytes >= 16384 ? 1024 : bytes >= 4096 ? 512 : 256;
    npuprof_header_ *h = (npuprof_header_ *)memory;
    memset(memory, 0, header_bytes + table_bytes);
    h->endian = 0x01020304u;
    h->format = 1;
    h->arena_bytes = bytes;
    h->header_bytes = (uint32_t)header_bytes;
    h->table_offset = (uint32_t)header_bytes;
    h->table_bytes = (uint32_t)table_bytes;
    h->table_unit = unit;
    h->bucket_count = buckets;
    h->table_used = (buckets * 4 + unit - 1) / unit * unit;
    h->chunks_offset = (uint32_t)(header_bytes + table_bytes);
    h->chunk_bytes = chunk_bytes;
    h->chunk_count = (uint32_t)((bytes - h->chunks_offset) / chunk_bytes);
    h->when_full = (uint32_t)when_full;
    s->units = (uint32_t)((chunk_bytes - sizeof(npuprof_chunk_)) / sizeof(npuprof_unit_));
    /* Why: the open spans move to each new chunk, two units each, and must leave room for more. */
    s->depth = (s->units - 2) / 2 < NPUPROF_DEPTH_ ? (s->units - 2) / 2 : (uint32_t)NPUPROF_DEPTH_;
    h->slot_bytes = (uint32_t)((sizeof(npuprof_slot_) + s->depth * sizeof(npuprof_open_) + 15) / 16 * 16);
    while (h->slot_bytes > chunk_bytes - sizeof(npuprof_chunk_) && s->depth > 1) {
        s->depth--;
        h->slot_bytes = (uint32_t)((sizeof(npuprof_slot_) + s->depth * sizeof(npuprof_open_) + 15) / 16 * 16);
    }
    h->clock_source = (uint32_t)npuprof_clock_source_;
    h->clock_bits = NPUPROF_NOW_BITS;
#ifdef NPUPROF_NOW
    h->clock_hz = (uint64_t)(NPUPROF_NOW_HZ);
#endif
    npuprof_begin_trace_(h);
    s->base = (uint8_t *)memory;
    s->header = h;
    s->table = s->base + h->table_offset;
    s->buckets = (uint32_t *)(void *)s->table;
    s->chunks = s->base + h->chunks_offset;
    memcpy(h->magic, "NPUPROF\n", 8);
    return h->chunk_count > 0;
}

/* header.chunk_free: index + 1 of the first free chunk, and above it the number of times one was given back.
   Why the number: a thread that stopped between reading the first and taking it must see that the stack was changed. */
#define NPUPROF_FREE_MASK_ ((uint32_t)0xFFFFF)

/* A fresh zeroed chunk, its index in *index. NULL: none left. */
static npuprof_chunk_ *npuprof_take_chunk_(uint32_t state, uint32_t *index)
{
    npuprof_header_ *h = npuprof_s_.header;
    npuprof_chunk_ *chunk = NULL;
    uint32_t next = NPUPROF_LOAD_(&h->chunk_next);
    while (next < h->chunk_count && !chunk)
        if (NPUPROF_CAS_(&h->chunk_next, &next, next + 1)) {
            chunk = npuprof_chunk_at_(next);
            *index = next;
        }
    /* What npuprof_clear() gave back: a stack. */
    uint32_t head = NPUPROF_LOAD_ACQUIRE_(&h->chunk_free);
    while (!chunk && (head & NPUPROF_FREE_MASK_)) {
        npuprof_chunk_ *c = npuprof_chunk_at_((head & NPUPROF_FREE_MASK_) - 1);
        if (!NPUPROF_CAS_(&h->chunk_free, &head, (head & ~NPUPROF_FREE_MASK_) | NPUPROF_LOAD_(&c->next))) continue;
        *index = (head & NPUPROF_FREE_MASK_) - 1;
        chunk = c;
    }
    if (!chunk) return NULL;
    memset(npuprof_chunk_units_(chunk), 0, h->chunk_bytes - sizeof *chunk);
    chunk->base = chunk->first_position = 0;
    chunk->tid = 0;
    chunk->moved_units = 0;
    NPUPROF_STORE_(&chunk->next, 0);
    chunk->sequence = NPUPROF_ADD_(&h->sequence, 1);
    NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)state);
    return chunk;
}

/* Takes a slot that nobody owns: with that name if name is not 0, else an unnamed one; fresh: one that never recorded. */
static npuprof_slot_ *npuprof_find_slot_(uint32_t name, bool fresh, bool any)
{
    uint32_t at = NPUPROF_LOAD_ACQUIRE_(&npuprof_s_.header->slot_first);
    while (at) {
        npuprof_slot_ *slot = (npuprof_slot_ *)(void *)(npuprof_s_.base + (size_t)at * 16);
        uint32_t nobody = 0;
        if (NPUPROF_LOAD_(&slot->owned) == 0 &&
            (any || (fresh ? NPUPROF_LOAD_(&slot->tid) == 0 : NPUPROF_LOAD_(&slot->tid) != 0 && NPUPROF_LOAD_(&slot->name) == name)) &&
            NPUPROF_CAS_(&slot->owned, &nobody, 1))
            return slot;
        at = slot->next_slot;
    }
    return NULL;
}

/* A chunk full of fresh slots; one of them is the caller's. */
static npuprof_slot_ *npuprof_make_slots_(void)
{
    npuprof_header_ *h = npuprof_s_.header;
    uint32_t index;
    npuprof_chunk_ *chunk = npuprof_take_chunk_(NPUPROF_CHUNK_SLOTS, &index);
    if (!chunk) return NULL;
    uint8_t *const start = (uint8_t *)(chunk + 1);
    npuprof_slot_ *newest = NULL;
    uint32_t head = NPUPROF_LOAD_ACQUIRE_(&h->slot_first), tail_at = 0;
    for (size_t at = 0; at + h->slot_bytes <= h->chunk_bytes - sizeof *chunk; at += h->slot_bytes) {
        npuprof_slot_ *slot = (npuprof_slot_ *)(void *)(start + at);
        slot->top = slot->open;
        slot->limit = slot->open + npuprof_s_.depth;
        slot->next_slot = tail_at;
        tail_at = npuprof_unit_number_(slot);
        newest = slot;
    }
    newest->owned = 1;
    npuprof_slot_ *last = (npuprof_slot_ *)(void *)start;
    do last->next_slot = head;
    while (!NPUPROF_CAS_(&h->slot_first, &head, tail_at));
    return newest;
}

enum { NPUPROF_NAMED_SLOTS_ = 1024 };   /* from here on, slots of other names are used again */

/* A slot for a thread or, with a parent, for a signal handler on the parent's thread. NULL: no room. */
static npuprof_slot_ *npuprof_take_slot_(npuprof_slot_ *parent, uint32_t name, bool fresh)
{
    npuprof_header_ *h = npuprof_s_.header;
    npuprof_slot_ *slot = NULL;
    if (!parent && !fresh) slot = npuprof_find_slot_(name, false, false);
    if (!slot) slot = npuprof_find_slot_(0, true, false);
    if (!slot && (parent || NPUPROF_LOAD_(&h->threads) < NPUPROF_NAMED_SLOTS_)) slot = npuprof_make_slots_();
    if (!slot && !parent) slot = npuprof_find_slot_(0, false, true);
    if (!slot) return NULL;
    if (slot->tid == 0) {
        if (parent) slot->parent = npuprof_unit_number_(parent);
        NPUPROF_STORE_(&slot->tid, parent ? parent->tid : NPUPROF_ADD_(&h->threads, 1) + 1);
    }
    slot->os_tid = npuprof_os_tid_();
    slot->owners++;
    slot->top = slot->open;
    slot->by_hand_bits = 0;
    slot->by_hand_count = 0;
    return slot;
}

/* Starts a new chunk for the slot and moves its open spans there. NULL: the arena is full, all stays as it was.
   Why: every open span then lies in its thread's current chunk, so a retired chunk has no writers: it can be recycled,
   streamed and counted, and a long span pins nothing. Where a span was, a note says where it is now. */
static npuprof_unit_ *npuprof_new_chunk_(npuprof_slot_ *slot, uint64_t now)
{
    uint32_t index;
    npuprof_chunk_ *chunk = npuprof_take_chunk_(NPUPROF_CHUNK_OPEN, &index);
    if (!chunk) return NULL;
    npuprof_chunk_ *old = slot->last_chunk ? npuprof_chunk_at_(slot->last_chunk - 1) : NULL;
    npuprof_unit_ *u = npuprof_chunk_units_(chunk);
    chunk->base = now;
    chunk->tid = slot->tid;
    /* Why the slot in it: the contexts of a thread's signal handlers count apart, and (tid, position) must stay unique. */
    chunk->first_position = slot->position;
    if (slot->parent && !slot->position) chunk->first_position = (uint64_t)1 << 43 | (uint64_t)(NPUPROF_ADD_(&npuprof_s_.header->contexts, 1) & 0xFFFF) << 27;
    if (old) chunk->first_position = old->first_position + (uint64_t)(slot->cursor - npuprof_chunk_units_(old));
    for (npuprof_open_ *e = slot->open + 1; e <= slot->top; e++) {
        npuprof_unit_ *was = e->unit;
        const uint64_t at = (uint64_t)(was - npuprof_chunk_units_(old));
        const bool moved = at < old->moved_units;
        const uint64_t position = moved ? was[1].w0 >> NPUPROF_ID_BITS_ : old->first_position + at;
        u[1].w1 = moved ? was[1].w1 : old->base + (was->w0 >> NPUPROF_ID_BITS_);
        u[1].w0 = position << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_MOVED_;
        u[0].w1 = NPUPROF_OPEN_END_;
        u[0].w0 = was->w0 & NPUPROF_ID_MASK_;
        u += 2;
    }
    chunk->moved_units = (uint16_t)(u - npuprof_chunk_units_(chunk));
    if (old) {
        NPUPROF_STORE_RELEASE_(&old->next, index + 1);
    } else {
        NPUPROF_STORE_RELEASE_(&slot->first_chunk, index + 1);
    }
    u = npuprof_chunk_units_(chunk);
    for (npuprof_open_ *e = slot->open + 1; e <= slot->top; e++, u += 2) {
        NPUPROF_STORE_RELEASE_(&e->unit->w0, (uint64_t)npuprof_unit_number_(u) << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_MOVED_AWAY_);
        e->unit = u;
    }
    slot->last_chunk = index + 1;
    slot->base = now;
    slot->cursor = u;
    slot->end = npuprof_chunk_units_(chunk) + npuprof_s_.units;
    slot->token_base = (uint32_t)chunk->first_position * 4 - (uint32_t)((uintptr_t)npuprof_chunk_units_(chunk) >> 2);
    if (old) NPUPROF_STORE_RELEASE_(&old->state, (uint16_t)NPUPROF_CHUNK_RETIRED);
    return u;
}

/* ==== RECORD ================================================================================ >>record ==== */

static npuprof_result npuprof_set_up_(const npuprof_desc *desc);
static bool npuprof_is_ready_(void) { return NPUPROF_LOAD_ACQUIRE_(&npuprof_ready_state_) == 2 || npuprof_set_up_(NULL) == NPUPROF_OK; }

NPUPROF_API_ void npuprof_count_lost_(unsigned cause, uint64_t count)
{
    if (npuprof_is_ready_()) NPUPROF_ADD_(&npuprof_s_.header->lost[cause], count);
}

static void npuprof_lose_(npuprof_slot_ *slot, unsigned cause, uint64_t count)
{
    NPUPROF_STORE_(&slot->lost[cause], NPUPROF_LOAD_(&slot->lost[cause]) + count);
}

/* The slot to record into, marked busy. NULL: there is none, and nothing was counted. */
static NPUPROF_NOINLINE_ npuprof_slot_ *npuprof_enter_slow_(void)
{
    npuprof_slot_ *slot = npuprof_my_slot_;
    if (slot == &npuprof_no_slot_) {
        if (!npuprof_is_ready_()) return NULL;
        slot = npuprof_take_slot_(NULL, 0, false);
        if (!slot) return NULL;
        slot->by_hand_count = npuprof_by_hand_skipped_;
        npuprof_by_hand_skipped_ = 0;
        npuprof_my_slot_ = slot;
        npuprof_os_watch_thread_(slot);
    }
    /* A signal handler has interrupted a record in the making: it gets a context of its own. */
    for (int contexts = 1; NPUPROF_LOAD_(&slot->busy); contexts++) {
        if (contexts == NPUPROF_CONTEXTS_) return NULL;
        if (!slot->nested) slot->nested = npuprof_take_slot_(slot, 0, true);
        if (!slot->nested) return NULL;
        slot = slot->nested;
    }
    return slot;
}
static inline npuprof_slot_ *npuprof_enter_(void)
{
    npuprof_slot_ *slot = npuprof_my_slot_;
    if (NPUPROF_UNLIKELY_(NPUPROF_LOAD_(&slot->busy))) {
        slot = npuprof_enter_slow_();
        if (!slot) return NULL;
    }
    NPUPROF_STORE_(&slot->busy, 1);
    NPUPROF_SIGNAL_FENCE_();
    return slot;
}
static inline void npuprof_leave_(npuprof_slot_ *slot)
{
    NPUPROF_SIGNAL_FENCE_();
    NPUPROF_STORE_(&slot->busy, 0);
}

/* Does the category list let this category through? Marks which of its words occurred. */
static bool npuprof_category_passes_(const char *category)
{
    npuprof_categories_ *list = NPUPROF_LOAD_ACQUIRE_(&npuprof_s_.categories);
    if (!list || list->mode == 0) return true;
    const size_t length = category ? strlen(category) : 0;
    unsigned n = 0;
    for (const char *p = list->words; *p; n++) {
        size_t word = 0;
        while (p[word] && p[word] != ',') word++;
        if (word == length && memcmp(p, category, word) == 0) {
            const uint32_t seen = NPUPROF_LOAD_(&list->seen);
            if (n < 32) NPUPROF_STORE_(&list->seen, seen | (uint32_t)1 << n);
            return list->mode > 0;
        }
        p += word + (p[word] == ',');
    }
    return list->mode < 0;
}

/* Makes a call site valid for this arena and these categories. False: not to be recorded; what was lost is counted. */
static NPUPROF_NOINLINE_ bool npuprof_resolve_(npuprof_slot_ *slot, npuprof_site_ *site)
{
    const uint32_t generation = NPUPROF_LOAD_(&npuprof_generation_), muted = generation | 0x80000000u;
    if (NPUPROF_LOAD_ACQUIRE_(&site->generation) == muted) return false;
    const char *const category = NPUPROF_LOAD_ACQUIRE_(&site->category);
    const bool passes = npuprof_category_passes_(category);
    if (passes) {
        const uint32_t id = npuprof_intern_site_(site->kind, category, NPUPROF_LOAD_(&site->name));
        if (!id) {
            npuprof_lose_(slot, NPUPROF_LOST_NAMES, 1);
            return false;
        }
        NPUPROF_STORE_(&site->id, id);
    }
    NPUPROF_STORE_RELEASE_(&site->generation, passes ? generation : muted);
    return passes;
}
static inline bool npuprof_resolved_(npuprof_slot_ *slot, npuprof_site_ *site)
{
    return NPUPROF_LIKELY_(NPUPROF_LOAD_ACQUIRE_(&site->generation) == NPUPROF_LOAD_(&npuprof_generation_)) || npuprof_resolve_(slot, site);
}

/* The id of a name that came at run time; 0: muted, or lost and counted. */
static uint32_t npuprof_resolve_name_(npuprof_slot_ *slot, uint32_t kind, const char *category, const char *name)
{
    if (!npuprof_category_passes_(category)) return 0;
    const uint32_t id = npuprof_intern_site_(kind, category, name);
    if (!id) npuprof_lose_(slot, NPUPROF_LOST_NAMES, 1);
    return id;
}

/* Units that a list of arguments takes. */
static size_t npuprof_args_units_(npuprof_args args)
{
    size_t units = 0;
    for (size_t i = 0; i < args.count; i++) {
        units++;
        if (args.items[i].type == NPUPROF_ARG_STR && args.items[i].value.s) {
            const size_t length = strlen(args.items[i].value.s);
            const size_t kept = length < NPUPROF_STRING_LIMIT_ ? length : (size_t)NPUPROF_STRING_LIMIT_;
            if (kept > 8) units += NPUPROF_UNITS_(kept - 8);
        }
    }
    return units;
}

enum { NPUPROF_ARG_STR_CUT_ = NPUPROF_ARG_STR + 1, NPUPROF_ARG_STR_NULL_ };

/* Writes the arguments from u on. False: a key found no room in the table. */
static bool npuprof_write_args_(npuprof_unit_ *u, npuprof_keys_ *keys, npuprof_args args)
{
    const uint32_t generation = NPUPROF_LOAD_(&npuprof_generation_);
    for (size_t i = 0; i < args.count; i++) {
        const npuprof_arg *a = &args.items[i];
        uint32_t key, type = a->type;
        size_t length = 0;
        if (keys && i < NPUPROF_KEYS_ && NPUPROF_LOAD_ACQUIRE_(&keys->generation) == generation && NPUPROF_LOAD_ACQUIRE_(&keys->key[i]) == a->key) {
            key = NPUPROF_LOAD_(&keys->id[i]);
        } else {
            key = npuprof_intern_(a->key);
            if (!key) return false;
            if (keys && i < NPUPROF_KEYS_) {
                /* Of another arena: forget them all. */
                if (NPUPROF_LOAD_(&keys->generation) != generation)
                    for (unsigned k = 0; k < NPUPROF_KEYS_; k++) NPUPROF_STORE_(&keys->key[k], NULL);
                NPUPROF_STORE_(&keys->id[i], key);
                NPUPROF_STORE_RELEASE_(&keys->key[i], a->key);
                NPUPROF_STORE_RELEASE_(&keys->generation, generation);
            }
        }
        npuprof_unit_ *const head = u++;
        uint64_t value = a->value.u;
        if (type == NPUPROF_ARG_STR) {
            const char *text = a->value.s;
            value = 0;
            if (!text) {
                type = NPUPROF_ARG_STR_NULL_;
            } else {
                const size_t whole = strlen(text);
                length = npuprof_cut_(text, whole, NPUPROF_STRING_LIMIT_);
                if (length < whole) type = NPUPROF_ARG_STR_CUT_;
                memcpy(&value, text, length < 8 ? length : 8);
                if (length > 8) {
                    memcpy(u, text + 8, length - 8);
                    u += NPUPROF_UNITS_(length - 8);
                }
            }
        }
        head->w1 = value;
        head->w0 = ((uint64_t)length << 32 | (uint64_t)key << 4 | type) << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_ARG_;
    }
    return true;
}

/* Room for that many units at the cursor, with a base that reaches now. NULL: the arena is full; not counted. */
static inline npuprof_unit_ *npuprof_room_(npuprof_slot_ *slot, size_t units, uint64_t now)
{
    if (NPUPROF_LIKELY_((size_t)(slot->end - slot->cursor) >= units && (now - slot->base) >> NPUPROF_DELTA_BITS_ == 0))
        return slot->cursor;
    if (units + 2 * (size_t)(slot->top - slot->open) > npuprof_s_.units) return NULL;
    npuprof_unit_ *u = npuprof_new_chunk_(slot, now);
    return u && (size_t)(slot->end - u) >= units ? u : NULL;
}

/* Writes one record: the head, extra units, arguments. Head last, so that a kill leaves a whole record or none.
   False: lost and counted. Arguments that fit nowhere are dropped, counted apart, and the record is kept. */
static npuprof_unit_ *npuprof_emit_(npuprof_slot_ *slot, uint32_t id, uint64_t now, uint64_t w1, const npuprof_unit_ *extra,
                                    size_t extra_count, npuprof_keys_ *keys, npuprof_args args)
{
    size_t arg_units = args.count ? npuprof_args_units_(args) : 0;
    npuprof_unit_ *u = npuprof_room_(slot, 1 + extra_count + arg_units, now);
    if (!u && arg_units) {
        u = npuprof_room_(slot, 1 + extra_count, now);
        if (u) npuprof_lose_(slot, NPUPROF_LOST_ARGUMENTS, args.count);
        arg_units = 0;
    }
    if (!u) {
        npuprof_lose_(slot, NPUPROF_LOST_FULL, 1);
        return NULL;
    }
    if (extra_count) memcpy(u + 1, extra, extra_count * sizeof *extra);
    if (arg_units && !npuprof_write_args_(u + 1 + extra_count, keys, args)) {
        memset(u + 1 + extra_count, 0, arg_units * sizeof *u);
        npuprof_lose_(slot, NPUPROF_LOST_ARGUMENTS, args.count);
        arg_units = 0;
    }
    NPUPROF_STORE_(&u->w1, w1);
    NPUPROF_STORE_RELEASE_(&u->w0, (now - slot->base) << NPUPROF_ID_BITS_ | id);
    slot->cursor = u + 1 + extra_count + arg_units;
    return u;
}

/* Pushes a span that was written at u. Its token is its position in the slot's stream, times 4, plus 1: never 0, and no other
   span's of the last 2^30.
   Why: a goto past a scope leaves garbage in its token; garbage must not close somebody else's span. */
static inline npuprof_token_ npuprof_push_(npuprof_slot_ *slot, npuprof_unit_ *u)
{
    npuprof_open_ *e = slot->top + 1;
    const npuprof_token_ token = ((npuprof_token_)((uintptr_t)u >> 2) + slot->token_base) | 1;
    e->unit = u;
    e->token = token;
    slot->top = e;
    return token;
}

static NPUPROF_NOINLINE_ npuprof_token_ npuprof_begin_span_args_(npuprof_slot_ *slot, uint32_t id, uint64_t now, npuprof_keys_ *keys,
                                                                 npuprof_args args)
{
    if (slot->top >= slot->limit) {
        npuprof_lose_(slot, NPUPROF_LOST_DEPTH, 1);
        return 0;
    }
    npuprof_unit_ *u = npuprof_emit_(slot, id, now, NPUPROF_OPEN_END_, NULL, 0, keys, args);
    return u ? npuprof_push_(slot, u) : 0;
}
static inline npuprof_token_ npuprof_begin_span_(npuprof_slot_ *slot, uint32_t id, uint64_t now)
{
    npuprof_unit_ *u = slot->cursor;
    const uint64_t delta = now - slot->base;
    if (NPUPROF_UNLIKELY_(u == slot->end || slot->top >= slot->limit || delta >> NPUPROF_DELTA_BITS_)) {
        const npuprof_args none = { NULL, 0 };
        return npuprof_begin_span_args_(slot, id, now, NULL, none);
    }
    NPUPROF_STORE_(&u->w1, NPUPROF_OPEN_END_);
    NPUPROF_STORE_RELEASE_(&u->w0, delta << NPUPROF_ID_BITS_ | id);
    slot->cursor = u + 1;
    return npuprof_push_(slot, u);
}
static inline void npuprof_end_span_(npuprof_slot_ *slot, npuprof_unit_ *u, uint64_t now, uint64_t flags)
{
    NPUPROF_STORE_RELEASE_(&u->w1, ((now - slot->base) & ~NPUPROF_CUT_) | flags);
}
static npuprof_token_ npuprof_no_context_(void)
{
    npuprof_count_lost_(NPUPROF_LOST_CONTEXT, 1);
    return 0;
}

static NPUPROF_NOINLINE_ npuprof_token_ npuprof_begin_slow_(npuprof_site_ *site)
{
    npuprof_slot_ *slot = npuprof_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return npuprof_no_context_();
    npuprof_token_ token = 0;
    if (npuprof_resolved_(slot, site)) token = npuprof_begin_span_(slot, NPUPROF_LOAD_(&site->id), npuprof_clock_());
    npuprof_leave_(slot);
    return token;
}

/* Why the rest is another function: this one then needs no stack frame. */
NPUPROF_API_ npuprof_token_ npuprof_begin_(npuprof_site_ *site)
{
    npuprof_slot_ *slot = npuprof_my_slot_;
    if (NPUPROF_UNLIKELY_(((NPUPROF_LOAD_ACQUIRE_(&site->generation) ^ NPUPROF_LOAD_(&npuprof_quick_generation_)) | NPUPROF_LOAD_(&slot->busy)) != 0))
        return npuprof_begin_slow_(site);
    NPUPROF_STORE_(&slot->busy, 1);
    NPUPROF_SIGNAL_FENCE_();
    npuprof_unit_ *u = slot->cursor;
    const uint64_t delta = npuprof_quick_clock_() - slot->base;
    if (NPUPROF_UNLIKELY_(u == slot->end || slot->top >= slot->limit || delta >> NPUPROF_DELTA_BITS_)) {
        npuprof_leave_(slot);
        return npuprof_begin_slow_(site);
    }
    NPUPROF_STORE_(&u->w1, NPUPROF_OPEN_END_);
    NPUPROF_STORE_RELEASE_(&u->w0, delta << NPUPROF_ID_BITS_ | NPUPROF_LOAD_(&site->id));
    slot->cursor = u + 1;
    const npuprof_token_ token = npuprof_push_(slot, u);
    npuprof_leave_(slot);
    return token;
}

NPUPROF_API_ npuprof_token_ npuprof_begin_args_(npuprof_site_ *site, npuprof_keys_ *keys, npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return npuprof_no_context_();
    npuprof_token_ token = 0;
    if (npuprof_resolved_(slot, site))
        token = npuprof_begin_span_args_(slot, NPUPROF_LOAD_(&site->id), npuprof_clock_(), keys, args);
    npuprof_leave_(slot);
    return token;
}

/* The id of a call site whose name and category are constants of the call, or came at run time (site NULL).
   Why the pointers are compared: inlining may give one call site several constants. */
static uint32_t npuprof_named_id_(npuprof_slot_ *slot, npuprof_site_ *site, uint32_t kind, const char *category, const char *name)
{
    if (site) {
        const char *nothing = NULL;
        if (NPUPROF_LOAD_(&site->name) == NULL && NPUPROF_CAS_(&site->name, &nothing, name)) NPUPROF_STORE_RELEASE_(&site->category, category);
        if (NPUPROF_LOAD_(&site->name) == name && NPUPROF_LOAD_ACQUIRE_(&site->category) == category)
            return npuprof_resolved_(slot, site) ? NPUPROF_LOAD_(&site->id) : 0;
    }
    return npuprof_resolve_name_(slot, kind, category, name);
}

NPUPROF_API_ void npuprof_wait_(const npuprof_device *device)
{
    if (device->wait) (void)device->wait(device->user);
}

NPUPROF_API_ npuprof_token_ npuprof_begin_named_(const npuprof_device *device, npuprof_site_ *site, npuprof_keys_ *keys,
                                                 uint32_t kind, const char *category, const char *name, npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return npuprof_no_context_();
    npuprof_token_ token = 0;
    const uint32_t id = npuprof_named_id_(slot, site, kind, category, name);
    if (id) {
        if (device && device->wait_around) {
            npuprof_leave_(slot);
            npuprof_wait_(device);
            NPUPROF_STORE_(&slot->busy, 1);
            NPUPROF_SIGNAL_FENCE_();
        }
        token = npuprof_begin_span_args_(slot, id, npuprof_clock_(), keys, args);
    }
    npuprof_leave_(slot);
    return token;
}

/* Ends the open spans above `entry` as cut, because their own ends can come no more. */
static void npuprof_unwind_(npuprof_slot_ *slot, npuprof_open_ *entry, uint64_t now)
{
    for (; slot->top > entry; slot->top--) {
        npuprof_end_span_(slot, slot->top->unit, now, NPUPROF_CUT_);
        if ((slot->top->token & NPUPROF_BY_HAND_) && slot->by_hand_count) {
            slot->by_hand_bits >>= 1;
            slot->by_hand_count--;
        }
    }
}

/* A token that is not on top: a longjmp left spans above it, or it is garbage, or it belongs to the context that a signal
   handler left by longjmp. */
static NPUPROF_NOINLINE_ void npuprof_unwind_to_(npuprof_slot_ *slot, npuprof_token_ token, uint64_t now)
{
    for (npuprof_slot_ *at = npuprof_my_slot_; at; at = at->nested) {
        for (npuprof_open_ *e = at->top; e > at->open; e--)
            if (e->token == token) {
                npuprof_unwind_(at, e, now);
                npuprof_end_span_(at, e->unit, now, 0);
                at->top = e - 1;
                /* Found below the context in use: what lies between, and what they were busy with, will not go on. */
                for (npuprof_slot_ *above = at; above != slot; above = above->nested) {
                    npuprof_unwind_(above->nested, above->nested->open, now);
                    NPUPROF_STORE_(&above->busy, 0);
                }
                return;
            }
        if (at == slot) return;
    }
}

/* Ends a span by its token, on top or not, with a stamp that may be shared. */
static inline void npuprof_close_at_(npuprof_slot_ *slot, npuprof_token_ token, uint64_t now)
{
    npuprof_open_ *e = slot->top;
    if (NPUPROF_LIKELY_(e->token == token)) {
        npuprof_end_span_(slot, e->unit, now, 0);
        slot->top = e - 1;
    } else {
        npuprof_unwind_to_(slot, token, now);
    }
}
static NPUPROF_NOINLINE_ void npuprof_close_slow_(npuprof_token_ token)
{
    if (npuprof_my_slot_ == &npuprof_no_slot_) return;
    npuprof_slot_ *slot = npuprof_enter_();
    if (!slot) return;
    npuprof_close_at_(slot, token, npuprof_clock_());
    npuprof_leave_(slot);
}
NPUPROF_API_ void npuprof_close_(npuprof_token_ token)
{
    npuprof_slot_ *slot = npuprof_my_slot_;
    if (NPUPROF_UNLIKELY_(NPUPROF_LOAD_(&slot->busy) || !NPUPROF_CLOCK_IS_QUICK_())) {
        npuprof_close_slow_(token);
        return;
    }
    NPUPROF_STORE_(&slot->busy, 1);
    NPUPROF_SIGNAL_FENCE_();
    npuprof_open_ *e = slot->top;
    if (NPUPROF_UNLIKELY_(e->token != token)) {
        npuprof_leave_(slot);
        npuprof_close_slow_(token);
        return;
    }
    npuprof_end_span_(slot, e->unit, npuprof_quick_clock_(), 0);
    slot->top = e - 1;
    npuprof_leave_(slot);
}

NPUPROF_API_ bool npuprof_is_open_(npuprof_token_ token)
{
    for (const npuprof_slot_ *at = npuprof_my_slot_; at; at = at->nested)
        for (const npuprof_open_ *e = at->top; e > at->open; e--)
            if (e->token == token) return true;
    return false;
}

NPUPROF_API_ npuprof_token_ npuprof_next_(npuprof_token_ token, npuprof_site_ *site)
{
    const bool open = NPUPROF_LOAD_(&npuprof_gate_) >= 1;
    npuprof_slot_ *slot = npuprof_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return open ? npuprof_no_context_() : 0;
    const uint64_t now = npuprof_clock_();
    if (NPUPROF_LIKELY_(token != 0)) npuprof_close_at_(slot, token, now);
    token = 0;
    if (open && npuprof_resolved_(slot, site)) token = npuprof_begin_span_(slot, NPUPROF_LOAD_(&site->id), now);
    npuprof_leave_(slot);
    return token;
}

NPUPROF_API_ void npuprof_begin_by_hand_(const char *category, const char *name)
{
    const bool open = NPUPROF_LOAD_(&npuprof_gate_) >= 1;
    npuprof_slot_ *slot = open || npuprof_my_slot_ != &npuprof_no_slot_ ? npuprof_enter_() : NULL;
    if (!slot) {
        npuprof_by_hand_skipped_++;
        if (open) (void)npuprof_no_context_();
        return;
    }
    npuprof_token_ token = 0;
    if (open && slot->by_hand_count >= 64) {
        npuprof_lose_(slot, NPUPROF_LOST_DEPTH, 1);
    } else if (open) {
        const npuprof_args none = { NULL, 0 };
        const uint32_t id = npuprof_resolve_name_(slot, NPUPROF_KIND_SPAN, category, name);
        if (id) token = npuprof_begin_span_args_(slot, id, npuprof_clock_(), NULL, none);
        if (token) slot->top->token |= NPUPROF_BY_HAND_;
    }
    slot->by_hand_count++;
    if (slot->by_hand_count <= 64) slot->by_hand_bits = slot->by_hand_bits << 1 | (token != 0);
    npuprof_leave_(slot);
}

NPUPROF_API_ void npuprof_end_by_hand_(void)
{
    if (npuprof_my_slot_ == &npuprof_no_slot_) {
        if (npuprof_by_hand_skipped_) npuprof_by_hand_skipped_--;
        return;
    }
    npuprof_slot_ *slot = npuprof_enter_();
    if (!slot) return;
    if (slot->by_hand_count > 64) {
        slot->by_hand_count--;
    } else if (slot->by_hand_count) {
        npuprof_open_ *e = slot->top;
        while (e > slot->open && !(e->token & NPUPROF_BY_HAND_)) e--;
        if ((slot->by_hand_bits & 1) && e > slot->open) {
            const uint64_t now = npuprof_clock_();
            npuprof_unwind_(slot, e, now);
            npuprof_end_span_(slot, e->unit, now, 0);
            slot->top = e - 1;
        }
        slot->by_hand_bits >>= 1;
        slot->by_hand_count--;
    }
    npuprof_leave_(slot);
}

NPUPROF_API_ void npuprof_event_now_(npuprof_site_ *site, uint64_t value)
{
    const npuprof_args none = { NULL, 0 };
    npuprof_event_args_now_(site, NULL, value, none);
}

NPUPROF_API_ void npuprof_event_args_now_(npuprof_site_ *site, npuprof_keys_ *keys, uint64_t value, npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_enter_();
    if (!slot) {
        (void)npuprof_no_context_();
        return;
    }
    if (npuprof_resolved_(slot, site)) npuprof_emit_(slot, NPUPROF_LOAD_(&site->id), npuprof_clock_(), value, NULL, 0, keys, args);
    npuprof_leave_(slot);
}

/* An event whose name came at run time. */
static void npuprof_named_event_(uint32_t kind, const char *category, const char *name, uint64_t w1, const npuprof_unit_ *extra,
                                 size_t extra_count, npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_enter_();
    if (!slot) {
        (void)npuprof_no_context_();
        return;
    }
    const uint32_t id = npuprof_resolve_name_(slot, kind, category, name);
    if (id) npuprof_emit_(slot, id, npuprof_clock_(), w1, extra, extra_count, NULL, args);
    npuprof_leave_(slot);
}
#define NPUPROF_GATE_IS_CLOSED_() (NPUPROF_LOAD_(&npuprof_gate_) < 1)

NPUPROF_API_ void npuprof_async_begin(const char *category, const char *name, uint64_t id)
{
    const npuprof_args none = { NULL, 0 };
    if (NPUPROF_GATE_IS_CLOSED_()) return;
    npuprof_named_event_(NPUPROF_KIND_ASYNC_BEGIN, category, name, id, NULL, 0, none);
}
/* Why the gate is not asked: an end whose beginning was recorded belongs to it, whatever happened in between. */
NPUPROF_API_ void npuprof_async_end(uint64_t id)
{
    static npuprof_site_ site = { 0, 0, NPUPROF_KIND_ASYNC_END, "", NULL };
    if (NPUPROF_GATE_IS_CLOSED_() && npuprof_my_slot_ == &npuprof_no_slot_) return;
    npuprof_event_now_(&site, id);
}

NPUPROF_API_ void npuprof_span(const char *track, const char *category, const char *name, int64_t start_ns, int64_t end_ns,
                               npuprof_args args)
{
    if (NPUPROF_GATE_IS_CLOSED_() || !npuprof_is_ready_()) return;
    const uint32_t track_id = npuprof_intern_(track ? track : "");
    if (!track_id) {
        npuprof_count_lost_(NPUPROF_LOST_NAMES, 1);
        return;
    }
    npuprof_unit_ extra;
    extra.w0 = (uint64_t)track_id << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_FINISHED_;
    extra.w1 = (uint64_t)end_ns;
    npuprof_named_event_(NPUPROF_KIND_FINISHED, category, name, (uint64_t)start_ns, &extra, 1, args);
}

NPUPROF_API_ void npuprof_memory_(const npuprof_device *device, uint64_t used_bytes, uint64_t allocated_bytes, const char *tag)
{
    const npuprof_args none = { NULL, 0 };
    npuprof_unit_ extra;
    extra.w0 = NPUPROF_CONTROL_MEMORY_;
    extra.w1 = allocated_bytes;
    npuprof_named_event_(NPUPROF_KIND_MEMORY, device && device->name ? device->name : "host", tag, used_bytes, &extra, 1, none);
}

/* Why a slot may be changed: the tracks of different threads stay apart. The first name of a thread moves it to a slot that had
   that name, or to one that nobody used, unless spans are open. */
NPUPROF_API_ void npuprof_thread_name_(const char *name)
{
    npuprof_slot_ *slot = npuprof_enter_();
    if (!slot) return;
    const uint32_t id = npuprof_intern_(name ? name : "");
    if (id && slot->name != id) {
        npuprof_slot_ *other = NULL;
        if (slot->top == slot->open && slot == npuprof_my_slot_ && (!slot->name || slot->named_by != slot->owners)) {
            other = npuprof_find_slot_(id, false, false);
            if (!other && (slot->name || slot->owners > 1)) other = npuprof_take_slot_(NULL, id, true);
        }
        if (other) {
            other->os_tid = slot->os_tid;
            other->top = other->open;
            other->by_hand_bits = slot->by_hand_bits;
            other->by_hand_count = slot->by_hand_count;
            npuprof_my_slot_ = other;
            npuprof_os_watch_thread_(other);
            npuprof_leave_(slot);
            NPUPROF_STORE_RELEASE_(&slot->owned, 0);
            slot = other;
        }
        NPUPROF_STORE_(&slot->name, id);
        slot->named_by = slot->owners;
    }
    npuprof_leave_(slot);
}

NPUPROF_API_ void npuprof_metadata(const char *key, const char *value)
{
    if (npuprof_is_ready_()) (void)npuprof_add_pair_(NPUPROF_ENTRY_METADATA, key, value);
}

/* The innermost open recorded span, and its root: the enclosing record, else the outermost span. */
NPUPROF_API_ npuprof_link_ npuprof_link_here_(void)
{
    npuprof_link_ link;
    memset(&link, 0, sizeof link);
    npuprof_slot_ *slot = npuprof_my_slot_;
    if (slot == &npuprof_no_slot_) return link;
    slot = npuprof_enter_();
    if (!slot) return link;
    if (slot->top > slot->open) {
        const npuprof_chunk_ *chunk = npuprof_chunk_at_(slot->last_chunk - 1);
        const npuprof_unit_ *units = (const npuprof_unit_ *)(const void *)(chunk + 1);
        bool root = false;
        for (npuprof_open_ *e = slot->top; e > slot->open; e--) {
            const uint64_t at = (uint64_t)(e->unit - units);
            const bool moved = at < chunk->moved_units;
            const uint64_t position = moved ? e->unit[1].w0 >> NPUPROF_ID_BITS_ : chunk->first_position + at;
            const uint32_t number = (uint32_t)e->unit->w0 & NPUPROF_ID_MASK_;
            const npuprof_entry_ *site = (const npuprof_entry_ *)npuprof_entry_at_(*npuprof_site_index_(npuprof_s_.table, npuprof_s_.header, number));
            const uint32_t kind = site->a & 0xFF;
            if (e == slot->top) {
                link.position = position;
                link.ticks = moved ? e->unit[1].w1 : chunk->base + (e->unit->w0 >> NPUPROF_ID_BITS_);
            }
            if (!root) link.root_position = position;
            if (kind == NPUPROF_KIND_RECORD || kind == NPUPROF_KIND_WARM_UP) root = true;
            if (kind == NPUPROF_KIND_WARM_UP) link.warm_up = true;
        }
        link.slot = slot->tid;
    }
    npuprof_leave_(slot);
    return link;
}

/* A device entry by its number, or NULL. */
static npuprof_device_entry_ *npuprof_device_at_(uint32_t device)
{
    const npuprof_header_ *h = npuprof_s_.header;
    const uint32_t end = NPUPROF_LOAD_ACQUIRE_(&h->table_used) / h->table_unit;
    for (uint32_t id = (h->bucket_count * 4 + h->table_unit - 1) / h->table_unit; id < end;) {
        npuprof_entry_ *e = (npuprof_entry_ *)npuprof_entry_at_(id);
        const uint32_t type_units = NPUPROF_LOAD_(&e->type_units);
        if (type_units >> 24 == NPUPROF_ENTRY_DEVICE && e->a == device) return (npuprof_device_entry_ *)(void *)e;
        id += type_units ? type_units & 0xFFFFFFu : 1;
    }
    return NULL;
}

NPUPROF_API_ uint32_t npuprof_device_add_(const char *name, unsigned pe_count, uint64_t nominal_hz, uint32_t max_rate_ppb)
{
    uint32_t id;
    if (!npuprof_is_ready_()) return 0;
    const uint32_t name_id = npuprof_intern_(name);
    npuprof_device_entry_ *d = NULL;
    if (name_id) d = (npuprof_device_entry_ *)(void *)npuprof_add_entry_(NPUPROF_ENTRY_DEVICE, sizeof *d, &id);
    if (!d) return 0;
    const uint32_t number = NPUPROF_ADD_(&npuprof_s_.header->devices, 1) + 1;
    if (number > 255) return 0;
    d->nominal_hz = nominal_hz;
    d->name = name_id;
    d->pe_count = pe_count;
    d->max_rate_ppb = max_rate_ppb;
    NPUPROF_STORE_RELEASE_(&d->head.a, number);
    return number;
}

NPUPROF_API_ npuprof_result npuprof_device_anchor_(uint32_t device, uint32_t epoch, const npuprof_anchor_ *anchor)
{
    npuprof_device_entry_ *d = npuprof_is_ready_() ? npuprof_device_at_(device) : NULL;
    if (!d) return NPUPROF_ERR_TABLE_FULL;
    npuprof_anchors_entry_ *block = d->last_anchors ? (npuprof_anchors_entry_ *)npuprof_entry_at_(d->last_anchors) : NULL;
    if (!block || block->count == NPUPROF_ANCHORS_ || block->epoch != epoch) {
        uint32_t id;
        npuprof_anchors_entry_ *fresh = (npuprof_anchors_entry_ *)(void *)npuprof_add_entry_(NPUPROF_ENTRY_ANCHORS, sizeof *fresh, &id);
        if (!fresh) {
            d->overflow_used = 0;
            NPUPROF_SIGNAL_FENCE_();
            d->overflow = *anchor;
            d->overflow_epoch = epoch;
            NPUPROF_STORE_RELEASE_(&d->overflow_used, 1);
            return NPUPROF_ERR_TABLE_FULL;
        }
        fresh->epoch = epoch;
        if (block) {
            NPUPROF_STORE_RELEASE_(&block->head.a, id);
        } else {
            NPUPROF_STORE_RELEASE_(&d->first_anchors, id);
        }
        d->last_anchors = id;
        block = fresh;
    }
    block->anchor[block->count] = *anchor;
    NPUPROF_STORE_RELEASE_(&block->count, block->count + 1);
    return NPUPROF_OK;
}

NPUPROF_API_ void npuprof_device_note_(uint32_t device, unsigned note, uint64_t add)
{
    npuprof_device_entry_ *d = npuprof_is_ready_() ? npuprof_device_at_(device) : NULL;
    if (d) NPUPROF_ADD_(&d->notes[note], add);
}

NPUPROF_API_ void npuprof_device_span_(uint32_t device, uint32_t epoch, unsigned pe, const char *category, const char *name,
                                       uint64_t start_ticks, uint64_t end_ticks, unsigned flags, const npuprof_link_ *link,
                                       npuprof_args args)
{
    npuprof_unit_ extra[3];
    size_t count = 1;
    extra[0].w0 = ((uint64_t)(flags & 15u) << 40 | (uint64_t)(epoch & 0xFFFFu) << 24 | (uint64_t)(pe & 0xFFFFu) << 8 | device)
                      << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_DEVICE_;
    extra[0].w1 = end_ticks;
    if (link && link->ticks) {
        extra[1].w0 = link->position << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_LINK_;
        extra[1].w1 = link->ticks;
        extra[2].w0 = link->root_position << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_LINK_ROOT_;
        extra[2].w1 = (uint64_t)link->warm_up << 32 | link->slot;
        count = 3;
    }
    npuprof_named_event_(NPUPROF_KIND_DEVICE, category, name, start_ticks, extra, count, args);
}

/* ==== CONTROL ============================================================================== >>control ==== */

static void npuprof_set_gate_(void)
{
    const int level = NPUPROF_LOAD_(&npuprof_s_.paused) ? 0 : NPUPROF_LOAD_(&npuprof_s_.level);
    NPUPROF_STORE_(&npuprof_gate_, level ? level : INT_MIN);
}

NPUPROF_API_ uint64_t npuprof_ticks_(void) { return npuprof_clock_(); }

/* ns per 2^32 ticks, by the first anchor and now. */
NPUPROF_API_ uint64_t npuprof_ns_per_4g_ticks_(void)
{
    if (!npuprof_is_ready_()) return 0;
    const npuprof_header_ *h = npuprof_s_.header;
    if (h->clock_hz) return npuprof_scale_(1000000000u, (uint64_t)1 << 32, h->clock_hz);
    npuprof_host_anchor_ now;
    npuprof_read_host_anchor_(&now);
    const uint64_t ticks = now.ticks - h->first.ticks;
    return ticks ? npuprof_scale_((uint64_t)(now.monotonic_ns - h->first.monotonic_ns), (uint64_t)1 << 32, ticks) : (uint64_t)1 << 32;
}

NPUPROF_API_ int64_t npuprof_ticks_to_ns_(uint64_t ticks)
{
    if (!npuprof_is_ready_()) return 0;
    const npuprof_header_ *h = npuprof_s_.header;
    npuprof_host_anchor_ now = h->first;
    if (!h->clock_hz) npuprof_read_host_anchor_(&now);
    const int64_t distance = (int64_t)(ticks - now.ticks);
    const uint64_t size = distance < 0 ? 0 - (uint64_t)distance : (uint64_t)distance;
    uint64_t ns;
    if (h->clock_hz) {
        ns = npuprof_scale_(size, 1000000000u, h->clock_hz);
    } else {
        const uint64_t ticks_so_far = now.ticks - h->first.ticks;
        ns = npuprof_scale_(size, (uint64_t)(now.monotonic_ns - h->first.monotonic_ns), ticks_so_far ? ticks_so_far : 1);
    }
    return h->first.unix_ns + (now.monotonic_ns - h->first.monotonic_ns) + (distance < 0 ? -(int64_t)ns : (int64_t)ns);
}

NPUPROF_API_ int64_t npuprof_now_ns(void)
{
    if (!npuprof_is_ready_()) return 0;
    const npuprof_header_ *h = npuprof_s_.header;
    if (h->clock_hz) return npuprof_ticks_to_ns_(npuprof_clock_());
    npuprof_host_anchor_ now;
    npuprof_os_clocks_(&now);
    return h->first.unix_ns + (now.monotonic_ns - h->first.monotonic_ns);
}

NPUPROF_API_ void npuprof_start(int level)
{
    if (!npuprof_is_ready_()) return;
    NPUPROF_STORE_(&npuprof_s_.level, level < 1 ? 1 : level > 9 ? 9 : level);
    npuprof_s_.started = true;
    npuprof_resume();
    npuprof_set_gate_();
}
NPUPROF_API_ void npuprof_stop(void)
{
    if (!npuprof_is_ready_()) return;
    NPUPROF_STORE_(&npuprof_s_.level, 0);
    npuprof_set_gate_();
}
NPUPROF_API_ void npuprof_pause(void)
{
    bool no = false;
    if (!npuprof_is_ready_() || !NPUPROF_CAS_(&npuprof_s_.paused, &no, true)) return;
    npuprof_set_gate_();
    uint32_t id = 0;
    npuprof_pause_entry_ *e = (npuprof_pause_entry_ *)(void *)npuprof_add_entry_(NPUPROF_ENTRY_PAUSE, sizeof *e, &id);
    if (e) NPUPROF_STORE_(&e->from, npuprof_clock_());
    npuprof_s_.pause_entry = e ? id : 0;
}
NPUPROF_API_ void npuprof_resume(void)
{
    bool yes = true;
    if (!npuprof_is_ready_() || !NPUPROF_CAS_(&npuprof_s_.paused, &yes, false)) return;
    if (npuprof_s_.pause_entry) {
        npuprof_pause_entry_ *e = (npuprof_pause_entry_ *)npuprof_entry_at_(npuprof_s_.pause_entry);
        NPUPROF_STORE_(&e->to, npuprof_clock_());
        npuprof_s_.pause_entry = 0;
    }
    npuprof_set_gate_();
}

/* One reader at a time: they share the scratch. False: this thread is one already (a sink that calls back, a signal handler). */
static bool npuprof_lock_scratch_(void)
{
    const uintptr_t me = (uintptr_t)&npuprof_my_slot_;
    if (!npuprof_is_ready_()) return false;
    for (;;) {
        uintptr_t nobody = 0;
        if (NPUPROF_CAS_(&npuprof_s_.writer, &nobody, me)) return true;
        if (nobody == me) return false;
    }
}
static void npuprof_unlock_scratch_(void) { NPUPROF_STORE_RELEASE_(&npuprof_s_.writer, (uintptr_t)0); }

/* Gives a slot's retired chunks back; with `all`, which only its owner may ask, the current one, too. */
static void npuprof_free_chunks_(npuprof_slot_ *slot, bool all)
{
    if (all && slot->last_chunk) {
        npuprof_chunk_ *last = npuprof_chunk_at_(slot->last_chunk - 1);
        slot->position = last->first_position + (uint64_t)(slot->cursor - npuprof_chunk_units_(last));
    }
    uint32_t index = NPUPROF_LOAD_ACQUIRE_(&slot->first_chunk);
    while (index) {
        npuprof_chunk_ *chunk = npuprof_chunk_at_(index - 1);
        if (!all && NPUPROF_LOAD_ACQUIRE_(&chunk->state) != NPUPROF_CHUNK_RETIRED) break;
        index = NPUPROF_LOAD_(&chunk->next);
        NPUPROF_STORE_RELEASE_(&slot->first_chunk, index);
        NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)NPUPROF_CHUNK_FREE);
        uint32_t *free_head = &npuprof_s_.header->chunk_free, head = NPUPROF_LOAD_ACQUIRE_(free_head);
        const uint32_t number = (uint32_t)(((uint8_t *)chunk - npuprof_s_.chunks) / npuprof_s_.header->chunk_bytes) + 1;
        if (number > NPUPROF_FREE_MASK_) continue;
        do NPUPROF_STORE_(&chunk->next, head & NPUPROF_FREE_MASK_);
        while (!NPUPROF_CAS_(free_head, &head, ((head & ~NPUPROF_FREE_MASK_) + NPUPROF_FREE_MASK_ + 1) | number));
    }
    if (!all) return;
    slot->last_chunk = 0;
    slot->cursor = slot->end = NULL;
}

NPUPROF_API_ void npuprof_clear(void)
{
    if (!npuprof_lock_scratch_()) return;
    npuprof_header_ *h = npuprof_s_.header;
    npuprof_slot_ *mine = npuprof_my_slot_ == &npuprof_no_slot_ ? NULL : npuprof_enter_();
    NPUPROF_STORE_(&h->clear_ticks, npuprof_clock_());
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) NPUPROF_STORE_(&h->lost[i], 0);
    for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&h->slot_first); at;) {
        npuprof_slot_ *slot = (npuprof_slot_ *)(void *)(npuprof_s_.base + (size_t)at * 16);
        uint32_t nobody = 0;
        for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) NPUPROF_STORE_(&slot->lost[i], 0);
        const bool idle = slot != mine && NPUPROF_CAS_(&slot->owned, &nobody, 1);
        npuprof_free_chunks_(slot, (idle || slot == mine) && slot->top == slot->open);
        at = slot->next_slot;
        if (idle) NPUPROF_STORE_RELEASE_(&slot->owned, 0);
    }
    if (mine) npuprof_leave_(mine);
    npuprof_unlock_scratch_();
}

NPUPROF_API_ npuprof_result npuprof_set_categories(const char *spec)
{
    npuprof_state_ *s = &npuprof_s_;
    if (!npuprof_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    char list[sizeof s->lists[0].words];
    size_t n = 0;
    int mode = 0;
    for (const char *p = spec ? spec : ""; *p;) {
        while (*p == ' ' || *p == ',') p++;
        if (!*p) break;
        const int sign = *p == '-' ? -1 : 1;
        if (sign < 0) p++;
        if (mode && mode != sign) return NPUPROF_ERR_CATEGORIES;
        mode = sign;
        const char *word = p;
        while (*p && *p != ',') p++;
        size_t length = (size_t)(p - word);
        while (length && word[length - 1] == ' ') length--;
        if (!length || n + length + 2 > sizeof list) return NPUPROF_ERR_CATEGORIES;
        if (n) list[n++] = ',';
        memcpy(list + n, word, length);
        n += length;
    }
    list[n] = 0;
    npuprof_categories_ *next = &s->lists[++s->list_number % (sizeof s->lists / sizeof *s->lists)];
    memcpy(next->words, list, n + 1);
    next->mode = mode;
    NPUPROF_STORE_(&next->seen, 0);
    NPUPROF_STORE_RELEASE_(&s->categories, next);
    s->categories_from[0] = 0;
    npuprof_next_generation_();
    return NPUPROF_OK;
}

NPUPROF_API_ const char *npuprof_result_string(npuprof_result result)
{
#define NPUPROF_CASE_(name, text) \
    case name: return text;
    switch (result) {
        NPUPROF_RESULTS(NPUPROF_CASE_)
    case NPUPROF_RESULT_COUNT: break;
    }
#undef NPUPROF_CASE_
    return "no such result code";
}

#ifndef NPUPROF_FREESTANDING
/* An environment value that cannot be used: into the metadata, and once on stderr. */
static void npuprof_refuse_env_(const char *name, const char *value, const char *why)
{
    char text[400];
    snprintf(text, sizeof text, "%.200s: %s", value, why);
    (void)npuprof_add_pair_(NPUPROF_ENTRY_ENVIRONMENT, name, text);
    fprintf(stderr, "npuprof: %s=%s\n", name, text);
}

/* A variable's value; NULL when unset, empty, 0, off or false. */
static const char *npuprof_env_(const char *name)
{
    const char *v = npuprof_os_env_(name);
    if (!v || !*v || strcmp(v, "0") == 0 || strcmp(v, "off") == 0 || strcmp(v, "false") == 0) return NULL;
    return v;
}

static void npuprof_read_environment_(void)
{
    npuprof_state_ *s = &npuprof_s_;
    const char *v = npuprof_env_("NPUPROF_OUTPUT_PATH");
    if (v) {
        if (strlen(v) < sizeof s->output_path) {
            npuprof_copy_text_(s->output_path, sizeof s->output_path, v);
            s->write_at_exit = true;
            s->level = 1;
        } else {
            npuprof_refuse_env_("NPUPROF_OUTPUT_PATH", v, "longer than 1023 bytes; nothing is recorded");
        }
    }
    v = npuprof_env_("NPUPROF_LEVEL");
    if (v) {
        char *end;
        errno = 0;
        const long level = strtol(v, &end, 10);
        if (*end || end == v) {
            npuprof_refuse_env_("NPUPROF_LEVEL", v, "not a number; give 1 to 9");
        } else {
            const int clamped = level < 1 ? 1 : level > 9 ? 9 : (int)level;
            if (clamped != level) npuprof_refuse_env_("NPUPROF_LEVEL", v, clamped == 9 ? "above 9; 9 is used" : "below 1; 1 is used");
            if (s->write_at_exit) s->level = clamped;
            else npuprof_refuse_env_("NPUPROF_LEVEL", v, "has no effect without NPUPROF_OUTPUT_PATH");
        }
    }
    v = npuprof_env_("NPUPROF_CATEGORIES");
    if (v) {
        if (npuprof_set_categories(v) == NPUPROF_OK) npuprof_copy_text_(s->categories_from, sizeof s->categories_from, "NPUPROF_CATEGORIES");
        else npuprof_refuse_env_("NPUPROF_CATEGORIES", v, npuprof_result_string(NPUPROF_ERR_CATEGORIES));
    }
    v = npuprof_env_("NPUPROF_WHEN_FULL");
    if (v && strcmp(v, "keep-oldest") != 0)
        npuprof_refuse_env_("NPUPROF_WHEN_FULL", v, strcmp(v, "keep-newest") == 0 || strcmp(v, "stream") == 0
                                                        ? "not supported yet; keep-oldest is used" : "give keep-oldest, keep-newest or stream");
    v = npuprof_env_("NPUPROF_ARENA_PATH");
    if (v) npuprof_refuse_env_("NPUPROF_ARENA_PATH", v, "not supported yet; the static arena is used");
    /* W3C Trace Context: 00-<32 hex>-<16 hex>-<2 hex>, ids not all zero. */
    v = npuprof_os_env_("TRACEPARENT");
    if (v && *v) {
        bool good = strlen(v) == 55 && memcmp(v, "00-", 3) == 0 && v[35] == '-' && v[52] == '-';
        bool trace = false, parent = false;
        for (int i = 3; good && i < 55; i++) {
            if (i == 35 || i == 52) continue;
            good = (v[i] >= '0' && v[i] <= '9') || (v[i] >= 'a' && v[i] <= 'f');
            if (i < 35) trace |= v[i] != '0';
            else if (i < 52) parent |= v[i] != '0';
        }
        if (good && trace && parent) npuprof_copy_text_(s->header->traceparent, sizeof s->header->traceparent, v);
        else npuprof_refuse_env_("TRACEPARENT", v, "not of the form 00-<32 hex>-<16 hex>-<2 hex>");
    }
}
#else
static void npuprof_read_environment_(void) {}
#endif

/* Sets everything up, once. */
static npuprof_result npuprof_set_up_(const npuprof_desc *desc)
{
    static const npuprof_desc none = { NULL, 0, NULL, 0, { NULL, NULL }, NULL, NULL };
    uint32_t fresh = 0;
    if (!desc) desc = &none;
    /* Why no waiting: a signal handler may come here while its own thread is the one setting up. */
    if (!NPUPROF_CAS_(&npuprof_ready_state_, &fresh, 1)) return fresh == 2 ? NPUPROF_OK : NPUPROF_ERR_STARTED;
    npuprof_os_choose_clock_();
    if (!npuprof_lay_out_(desc->arena ? desc->arena : npuprof_static_arena_,
                          desc->arena ? desc->arena_bytes : sizeof npuprof_static_arena_, desc->when_full)) {
        NPUPROF_STORE_RELEASE_(&npuprof_ready_state_, 0);
        return NPUPROF_ERR_ARENA_SIZE;
    }
    npuprof_next_generation_();
    npuprof_os_hooks_();
    NPUPROF_STORE_RELEASE_(&npuprof_ready_state_, 2);
    npuprof_read_environment_();
    npuprof_set_gate_();
    return NPUPROF_OK;
}

static void npuprof_carry_over_(const npuprof_header_ *old);
NPUPROF_API_ npuprof_result npuprof_init_(const npuprof_desc *desc, size_t desc_bytes, int version)
{
    static const npuprof_desc none = { NULL, 0, NULL, 0, { NULL, NULL }, NULL, NULL };
    npuprof_state_ *s = &npuprof_s_;
    if (version != NPUPROF_VERSION || desc_bytes != sizeof(npuprof_desc)) return NPUPROF_ERR_VERSION;
    if (!desc) desc = &none;
    if (desc->when_full < NPUPROF_KEEP_OLDEST || desc->when_full > NPUPROF_STREAM) return NPUPROF_ERR_ARGUMENT;
    if (desc->when_full != NPUPROF_KEEP_OLDEST || desc->arena_path || desc->sink.write) return NPUPROF_ERR_UNSUPPORTED;
    if ((desc->output_path && strlen(desc->output_path) >= sizeof s->output_path) || (desc->arena_bytes && !desc->arena))
        return NPUPROF_ERR_ARGUMENT;
    if (!npuprof_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (s->started) return NPUPROF_ERR_STARTED;
    if (desc->arena) {
        if (desc->arena_bytes < 2048 || ((uintptr_t)desc->arena & 7)) return NPUPROF_ERR_ARENA_SIZE;
        if (NPUPROF_LOAD_(&s->header->threads) || s->header->devices) return NPUPROF_ERR_STARTED;
        const npuprof_header_ *old = s->header;
        NPUPROF_STORE_(&npuprof_gate_, INT_MIN);
        (void)npuprof_lay_out_(desc->arena, desc->arena_bytes, desc->when_full);
        npuprof_carry_over_(old);
        s->pause_entry = 0;        /* it lies in the old table */
        npuprof_next_generation_();
    }
    if (desc->output_path && !s->write_at_exit) {
        npuprof_copy_text_(s->output_path, sizeof s->output_path, desc->output_path);
        s->write_at_exit = true;
    }
    npuprof_result r = NPUPROF_OK;
    if (desc->categories && !s->categories_from[0]) r = npuprof_set_categories(desc->categories);
    npuprof_set_gate_();
    return r;
}

#if !defined(NPUPROF_FREESTANDING) && defined(NPUPROF_CONSTRUCTOR_)
/* Why a constructor: NPUPROF_OUTPUT_PATH must work for a program that never calls npuprof. */
NPUPROF_CONSTRUCTOR_ static void npuprof_constructor_(void) { (void)npuprof_set_up_(NULL); }
#endif

#ifndef NPUPROF_FREESTANDING
static void npuprof_thread_ends_(void *user)
{
    npuprof_slot_ *slot = (npuprof_slot_ *)user;
    if (slot != npuprof_my_slot_) return;
    npuprof_my_slot_ = &npuprof_no_slot_;
    for (npuprof_slot_ *at = slot; at; at = at->nested) {
        npuprof_unwind_(at, at->open, npuprof_clock_());
        NPUPROF_STORE_(&at->busy, 0);
    }
    NPUPROF_STORE_RELEASE_(&slot->owned, 0);
}

/* In the child of a fork: an empty arena, another pid. Only the calling thread is left. */
static void npuprof_forked_(void)
{
    npuprof_state_ *s = &npuprof_s_;
    if (npuprof_ready_state_ != 2) return;
    /* The table stays: names, metadata and devices are the child's, too. Pauses and clock anchors are the parent's. */
    npuprof_header_ *h = s->header;
    const uint32_t end = h->table_used / h->table_unit;
    for (uint32_t id = (h->bucket_count * 4 + h->table_unit - 1) / h->table_unit; id < end;) {
        npuprof_entry_ *e = (npuprof_entry_ *)npuprof_entry_at_(id);
        const uint32_t type = e->type_units >> 24, units = e->type_units & 0xFFFFFFu;
        if (type == NPUPROF_ENTRY_PAUSE || type == NPUPROF_ENTRY_ANCHORS) e->type_units = units;
        if (type == NPUPROF_ENTRY_DEVICE) {
            npuprof_device_entry_ *d = (npuprof_device_entry_ *)(void *)e;
            memset(d->notes, 0, sizeof d->notes);
            d->overflow_used = d->first_anchors = d->last_anchors = 0;
        }
        id += units ? units : 1;
    }
    memset(h->lost, 0, sizeof h->lost);
    h->clear_ticks = 0;
    h->chunk_next = h->chunk_free = h->sequence = h->slot_first = h->threads = 0;
    npuprof_begin_trace_(h);
    s->forked = true;
    s->writer = 0;
    s->paused = false;
    s->pause_entry = 0;
    npuprof_my_slot_ = &npuprof_no_slot_;
    npuprof_next_generation_();
    npuprof_set_gate_();
}
#endif

/* ==== DEVICE CLOCK ======================================================================= >>devclock ==== */

/* Device ticks to host ticks: the one place with the interpolation and its error bound. Integers only, right over days.

   What an anchor says: the counter was read somewhere between two host stamps. Its position is the middle, its error half
   the width. Between two anchors A and B the position is the straight line. The error bound is true if
     - the device's rate wanders by at most max_rate_ppb around a centre, which
     - changes at most once inside an interval of anchors, and not in the stretch beside it on either side that is as long
       as the interval (or, where that is shorter, up to the last anchor).
   Proof: before the change the rate is the one of the stretch before A, after it the one of the stretch behind B. So the
   rate lies everywhere between the least and the greatest of the two, and the true line between four straight ones: from A
   and back from B, each with both. In the first and the last interval one of the stretches is missing: there the true
   line lies between the chord and the line drawn from the side that is known. With two anchors there is nothing to
   compare with, and no change is assumed. Beyond the last anchor (and before the first) the rate of the anchors there
   is taken to go on.
   A counter says floor(time * rate), so every stamp has an error of one tick more; it is in the bound (in the first and
   last interval as the average tick there). */

static uint64_t npuprof_plus_(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }
static uint64_t npuprof_minus_(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }
static uint64_t npuprof_least_(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t npuprof_most_(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t npuprof_anchor_width_(const npuprof_anchor_ *a) { return npuprof_minus_(a->host_after, a->host_before); }
static uint64_t npuprof_anchor_middle_(const npuprof_anchor_ *a) { return a->host_before + npuprof_anchor_width_(a) / 2; }
static uint64_t npuprof_anchor_error_(const npuprof_anchor_ *a) { return npuprof_anchor_width_(a) - npuprof_anchor_width_(a) / 2; }

/* The host ticks that go by in a distance of device ticks: least and most. */
typedef struct npuprof_reach_ { uint64_t least, most; } npuprof_reach_;

/* At the rate between two anchors. wander_ppb: how far the rate may be from the one between them. */
static npuprof_reach_ npuprof_reach_between_(const npuprof_anchor_ *a, const npuprof_anchor_ *b, uint64_t wander_ppb, uint64_t distance)
{
    npuprof_reach_ r;
    uint64_t ticks = npuprof_minus_(b->device_ticks, a->device_ticks), error = npuprof_anchor_error_(a) + npuprof_anchor_error_(b);
    uint64_t host = npuprof_minus_(npuprof_anchor_middle_(b), npuprof_anchor_middle_(a));
    r.least = npuprof_mul_div_(npuprof_minus_(host, error), npuprof_minus_(distance, 1), npuprof_plus_(ticks, 1), false);
    r.least = npuprof_minus_(r.least, npuprof_mul_div_(r.least, wander_ppb, 1000000000, true));
    r.most = npuprof_mul_div_(npuprof_plus_(host, error), npuprof_plus_(distance, 1), npuprof_minus_(ticks, 1), true);
    r.most = npuprof_plus_(r.most, npuprof_mul_div_(r.most, wander_ppb, 1000000000, true));
    return r;
}

/* At the rate beside one anchor, on its right (step 1, up to the anchor with number `end`) or left (step -1). Uses the
   next anchors until they are `stretch` host ticks away or contradict the nearer ones.
   Why not the next anchor alone: two anchors close together say little about the rate. */
static npuprof_reach_ npuprof_reach_beside_(const npuprof_anchor_ *anchor, ptrdiff_t step, size_t steps, uint64_t stretch,
                                            uint64_t wander_ppb, uint64_t distance)
{
    enum { steps_most = 16 };
    npuprof_reach_ r = { 0, UINT64_MAX }, check = { 0, UINT64_MAX };
    const npuprof_anchor_ *other = anchor;
    uint64_t first_ticks = 0;
    for (size_t i = 0; i < steps && i < steps_most; i++) {
        other += step;
        const npuprof_anchor_ *a = step > 0 ? anchor : other, *b = step > 0 ? other : anchor;
        uint64_t ticks = npuprof_minus_(b->device_ticks, a->device_ticks);
        if (i == 0) first_ticks = ticks;
        npuprof_reach_ next = npuprof_reach_between_(a, b, wander_ppb, first_ticks);
        check.least = npuprof_most_(check.least, next.least);
        check.most = npuprof_least_(check.most, next.most);
        if (check.least > check.most) break;
        next = npuprof_reach_between_(a, b, wander_ppb, distance);
        r.least = npuprof_most_(r.least, next.least);
        r.most = npuprof_least_(r.most, next.most);
        if (npuprof_minus_(npuprof_anchor_middle_(b), npuprof_anchor_middle_(a)) >= stretch) break;
    }
    return r;
}
static bool npuprof_reach_apart_(npuprof_reach_ a, npuprof_reach_ b) { return a.least > b.most || b.least > a.most; }
static npuprof_reach_ npuprof_reach_both_(npuprof_reach_ a, npuprof_reach_ b)
{
    npuprof_reach_ r;
    r.least = npuprof_least_(a.least, b.least);
    r.most = npuprof_most_(a.most, b.most);
    return r;
}

NPUPROF_API_ bool npuprof_map_ticks_(const npuprof_anchor_ *anchors, size_t count, uint32_t max_rate_ppb, uint64_t device_ticks,
                                     uint64_t *host_ticks, uint64_t *error_ticks, bool *widened)
{
    size_t behind = 0;                           /* number of anchors at or before device_ticks */
    for (size_t step = count; step > 0;) {
        size_t half = step / 2;
        if (anchors[behind + half].device_ticks <= device_ticks) behind += half + 1, step -= half + 1;
        else step = half;
    }
    *widened = false;
    *host_ticks = *error_ticks = 0;
    if (count == 0) return false;

    /* Two rates of a band of +-max_rate around a centre differ by this much of either. */
    uint64_t rate_ppb = npuprof_least_(max_rate_ppb, 500000000);
    uint64_t wander = npuprof_mul_div_(2000000000, rate_ppb, 1000000000 - rate_ppb, true);
    const npuprof_anchor_ *a = &anchors[behind ? behind - 1 : 0], *b = a + 1;
    uint64_t a_middle = npuprof_anchor_middle_(a), a_error = npuprof_anchor_error_(a), tick = 0;

    if (a->device_ticks == device_ticks) {
        *host_ticks = a_middle;
        *error_ticks = a_error;
        if (behind > 1) tick = npuprof_reach_between_(a - 1, a, wander, 0).most;
        if (behind < count) tick = npuprof_most_(tick, npuprof_reach_between_(a, b, wander, 0).most);
        *error_ticks = npuprof_plus_(*error_ticks, tick);
        return true;
    }
    if (count == 1) return false;
    if (behind == 0 || behind == count) {        /* outside: the nearest rate goes on */
        uint64_t distance = behind ? device_ticks - a->device_ticks : a->device_ticks - device_ticks;
        npuprof_reach_ r = npuprof_reach_beside_(a, behind ? -1 : 1, count - 1, UINT64_MAX, wander, distance);
        uint64_t ahead = r.least / 2 + r.most / 2;
        *host_ticks = behind ? npuprof_plus_(a_middle, ahead) : npuprof_minus_(a_middle, ahead);
        *error_ticks = npuprof_plus_(a_error, npuprof_most_(r.most, r.least) - ahead);
        if (!behind && ahead > a_middle) *error_ticks = npuprof_plus_(*error_ticks, ahead - a_middle);
        return true;
    }

    uint64_t b_error = npuprof_anchor_error_(b), host = npuprof_minus_(npuprof_anchor_middle_(b), a_middle);
    uint64_t ticks = b->device_ticks - a->device_ticks, x = device_ticks - a->device_ticks, y = ticks - x;
    uint64_t from_a = npuprof_mul_div_(host, x, ticks, false), from_b = host - from_a;
    npuprof_reach_ own = npuprof_reach_between_(a, b, 0, ticks);
    /* The error if the rate is constant: the two halves of brackets, a tick, and the rounding. */
    uint64_t error = npuprof_mul_div_(a_error, y, ticks, true) + npuprof_mul_div_(b_error, x, ticks, true) + 1;
    error = npuprof_plus_(error, npuprof_reach_between_(a, b, 0, 0).most);
    size_t left = behind - 1, right = count - behind - 1;   /* intervals on both sides */
    *host_ticks = a_middle + from_a;
    if (!left && !right) {
        uint64_t bow = npuprof_mul_div_(npuprof_mul_div_(host + a_error + b_error, x, ticks, true), y, ticks, true);
        *error_ticks = npuprof_plus_(error, npuprof_mul_div_(bow, wander, 1000000000, true));
    } else if (left && right) {
        npuprof_reach_ all = npuprof_reach_both_(npuprof_reach_beside_(a, -1, left, host, wander, ticks),
                                                 npuprof_reach_beside_(b, 1, right, host, wander, ticks));
        npuprof_reach_ to_x = npuprof_reach_both_(npuprof_reach_beside_(a, -1, left, host, wander, x),
                                                  npuprof_reach_beside_(b, 1, right, host, wander, x));
        npuprof_reach_ to_y = npuprof_reach_both_(npuprof_reach_beside_(a, -1, left, host, wander, y),
                                                  npuprof_reach_beside_(b, 1, right, host, wander, y));
        uint64_t late_a = npuprof_minus_(npuprof_plus_(to_x.most, a_error), from_a);
        uint64_t late_b = npuprof_minus_(from_b + b_error, to_y.least);
        uint64_t early_a = npuprof_minus_(from_a + a_error, to_x.least);
        uint64_t early_b = npuprof_minus_(npuprof_plus_(to_y.most, b_error), from_b);
        if (npuprof_reach_apart_(own, all))      /* more than one change: no bound; say what can be said */
            error = npuprof_most_(error, npuprof_most_(npuprof_most_(late_a, late_b), npuprof_most_(early_a, early_b)));
        else
            error = npuprof_most_(error, npuprof_most_(npuprof_least_(late_a, late_b), npuprof_least_(early_a, early_b)));
        *error_ticks = npuprof_plus_(error, 1);
        *widened = npuprof_reach_apart_(own, npuprof_reach_beside_(a, -1, left, host, wander, ticks)) ||
                   npuprof_reach_apart_(own, npuprof_reach_beside_(b, 1, right, host, wander, ticks));
    } else {
        const npuprof_anchor_ *known = left ? a : b;
        ptrdiff_t step = left ? -1 : 1;
        size_t steps = left ? left : right;
        uint64_t distance = left ? x : y, from = left ? from_a : from_b, known_error = left ? a_error : b_error;
        npuprof_reach_ r = npuprof_reach_beside_(known, step, steps, host, wander, distance);
        uint64_t more = npuprof_minus_(npuprof_plus_(r.most, known_error), from);
        uint64_t less = npuprof_minus_(from + known_error, r.least);
        uint64_t bow = npuprof_mul_div_(host + a_error + b_error, distance, ticks, true);
        error = npuprof_most_(error, npuprof_most_(more, less));
        bow = npuprof_plus_(npuprof_mul_div_(bow, wander, 1000000000, true), 1);
        *error_ticks = npuprof_plus_(error, bow);
        *widened = npuprof_reach_apart_(own, npuprof_reach_beside_(known, step, steps, host, wander, ticks));
    }
    return true;
}

/* ==== READER ================================================================================ >>reader ==== */

/* An arena to read: every output and report goes through this. Sizes are checked before use; a wrong one ends the walk. */
typedef struct npuprof_image_ {
    const uint8_t *base;
    const npuprof_header_ *h;
    uint32_t units, table_used, chunks, threads;
    uint64_t clear_ticks, last_ticks;      /* events outside are not shown; ends beyond count as not yet */
    uint64_t multiplier;                   /* ns = ticks * multiplier >> shift */
    unsigned shift;
    int64_t origin_ns;                     /* of the trace: ns after the first anchor, 0 or negative */
    uint64_t events;
    uint32_t kinds;                        /* bit k: there are events of kind k, so that walks for them can be left out */
    uint64_t lost[NPUPROF_LOST_COUNT];
} npuprof_image_;

/* A decoded record. */
typedef struct npuprof_event_ {
    uint32_t kind, tid, site, name, category, track;
    uint64_t position;                     /* in the slot's stream; names the event for ever */
    uint64_t start, end;                   /* host ticks; of a device span: device ticks */
    uint64_t host_ticks;                   /* when the record was written */
    uint64_t value, second;                /* by kind */
    bool unfinished, cut, has_link;
    uint32_t device, pe, epoch, flags;
    npuprof_link_ link;
    const npuprof_unit_ *args, *args_end;
    uint64_t locator;                      /* where it lies: to decode it again */
} npuprof_event_;

typedef struct npuprof_cursor_ {
    const npuprof_image_ *image;
    uint32_t chunk, unit, hops;            /* chunk: index + 1 */
    uint32_t tid;
    bool first;
} npuprof_cursor_;

static const npuprof_chunk_ *npuprof_image_chunk_(const npuprof_image_ *im, uint32_t index)
{
    return (const npuprof_chunk_ *)(const void *)(im->base + im->h->chunks_offset + (size_t)index * im->h->chunk_bytes);
}
static const npuprof_entry_ *npuprof_image_entry_(const npuprof_image_ *im, uint32_t id, uint32_t type, size_t bytes)
{
    const uint64_t at = (uint64_t)id * im->h->table_unit;
    if (id == 0 || at + bytes > im->table_used) return NULL;
    const npuprof_entry_ *e = (const npuprof_entry_ *)(const void *)(im->base + im->h->table_offset + at);
    return NPUPROF_LOAD_(&e->type_units) >> 24 == type ? e : NULL;
}
/* A site by its number, or NULL. */
static const npuprof_pair_entry_ *npuprof_image_site_(const npuprof_image_ *im, uint32_t number)
{
    if (number == 0 || (uint64_t)number * 4 + im->table_used > im->h->table_bytes) return NULL;
    const uint32_t id = NPUPROF_LOAD_ACQUIRE_(npuprof_site_index_(im->base + im->h->table_offset, im->h, number));
    return (const npuprof_pair_entry_ *)(const void *)npuprof_image_entry_(im, id, NPUPROF_ENTRY_SITE, sizeof(npuprof_pair_entry_));
}
/* A string of the table; "" for id 0 or a damaged one. */
static const char *npuprof_text_(const npuprof_image_ *im, uint32_t id, size_t *length)
{
    const npuprof_entry_ *e = npuprof_image_entry_(im, id, NPUPROF_ENTRY_STRING, sizeof *e);
    *length = 0;
    if (!e || (uint64_t)id * im->h->table_unit + sizeof *e + e->a > im->table_used) return "";
    *length = e->a;
    return (const char *)(e + 1);
}
/* The table's entries of a type, one after the other: 0 before the first, NULL after the last. */
static const npuprof_entry_ *npuprof_next_entry_(const npuprof_image_ *im, uint32_t type, size_t bytes, uint32_t *id)
{
    const uint32_t unit = im->h->table_unit, end = im->table_used / unit;
    if (*id == 0) *id = (im->h->bucket_count * 4 + unit - 1) / unit;
    while (*id < end) {
        const uint32_t at = *id;
        const npuprof_entry_ *e = (const npuprof_entry_ *)(const void *)(im->base + im->h->table_offset + (size_t)at * unit);
        const uint32_t type_units = NPUPROF_LOAD_(&e->type_units);
        *id += type_units & 0xFFFFFFu ? type_units & 0xFFFFFFu : 1;
        if (type_units >> 24 == type && (uint64_t)at * unit + bytes <= im->table_used) return e;
    }
    return NULL;
}

static void npuprof_rewind_(npuprof_cursor_ *c, const npuprof_image_ *im, const npuprof_slot_ *slot)
{
    c->image = im;
    c->chunk = NPUPROF_LOAD_ACQUIRE_(&slot->first_chunk);
    c->unit = 0;
    c->hops = 0;
    c->tid = NPUPROF_LOAD_(&slot->tid);
    c->first = true;
}

static inline uint64_t npuprof_load_w0_(const npuprof_unit_ *u) { return NPUPROF_LOAD_ACQUIRE_(&u->w0); }
static inline uint64_t npuprof_load_w1_(const npuprof_unit_ *u) { return NPUPROF_LOAD_ACQUIRE_(&u->w1); }

/* Where a moved span is now: the unit and its chunk. NULL: damaged. */
static const npuprof_unit_ *npuprof_follow_(const npuprof_image_ *im, uint64_t w0, const npuprof_chunk_ **chunk)
{
    const npuprof_header_ *h = im->h;
    for (uint32_t hops = 0; hops <= im->chunks; hops++) {
        const uint64_t at = (w0 >> NPUPROF_ID_BITS_) * 16;
        if (at < h->chunks_offset || at - h->chunks_offset >= (uint64_t)im->chunks * h->chunk_bytes) return NULL;
        const uint64_t within = (at - h->chunks_offset) % h->chunk_bytes;
        if (within < sizeof **chunk || within + 32 > h->chunk_bytes) return NULL;
        *chunk = npuprof_image_chunk_(im, (uint32_t)((at - h->chunks_offset) / h->chunk_bytes));
        const npuprof_unit_ *u = (const npuprof_unit_ *)(const void *)(im->base + at);
        w0 = npuprof_load_w0_(u);
        if (((uint32_t)w0 & NPUPROF_ID_MASK_) != NPUPROF_CONTROL_MOVED_AWAY_) return u;
    }
    return NULL;
}

/* Decodes the record at unit number `unit` of a chunk. Returns the units it takes; 0: nothing here; *shown false: a record
   that is shown elsewhere, is older than the last clear, or is damaged. */
static uint32_t npuprof_decode_(const npuprof_image_ *im, const npuprof_chunk_ *chunk, uint32_t unit, bool first, npuprof_event_ *ev,
                                bool *shown)
{
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    const npuprof_unit_ *const end = units + im->units;
    const npuprof_unit_ *u = units + unit, *at = u;
    const npuprof_chunk_ *home = chunk;
    uint64_t w0 = npuprof_load_w0_(u);
    const uint32_t id = (uint32_t)w0 & NPUPROF_ID_MASK_;
    *shown = false;
    if (w0 == 0) return 0;
    /* Why at once: to follow moved spans from every chunk they went through is quadratic. */
    if (unit < chunk->moved_units && !first) return 2;
    memset(ev, 0, sizeof *ev);
    ev->position = chunk->first_position + unit;
    ev->tid = chunk->tid;
    ev->locator = (uint64_t)npuprof_unit_number_from_(im->base, u) << 1 | first;
    const bool moved = unit < chunk->moved_units;
    if (id == NPUPROF_CONTROL_MOVED_AWAY_) {
        at = npuprof_follow_(im, w0, &home);
        if (!at) return 1;
        w0 = npuprof_load_w0_(at);
        ev->start = npuprof_load_w1_(at + 1);
        u++;
    } else if (moved) {
        if (u + 1 >= end) return 1;
        ev->position = npuprof_load_w0_(u + 1) >> NPUPROF_ID_BITS_;
        ev->start = npuprof_load_w1_(u + 1);
        u += 2;
    } else {
        ev->start = chunk->base + (w0 >> NPUPROF_ID_BITS_);
        u++;
    }
    ev->site = (uint32_t)w0 & NPUPROF_ID_MASK_;
    const npuprof_pair_entry_ *site = npuprof_image_site_(im, ev->site);
    if (!site || (site->head.a & 0xFF) >= NPUPROF_KIND_COUNT) return id >= NPUPROF_CONTROL_ ? 1 : (uint32_t)(u - units) - unit;
    ev->kind = site->head.a & 0xFF;
    ev->name = site->b[0];
    ev->category = site->b[1];
    ev->host_ticks = ev->start;
    ev->value = npuprof_load_w1_(at);
    if (ev->kind <= NPUPROF_KIND_OPERATOR) {
        if (ev->value == NPUPROF_OPEN_END_) {
            ev->unfinished = true;
            ev->end = im->last_ticks;
        } else {
            ev->cut = ev->value >> 63 != 0;
            ev->end = home->base + (uint64_t)((int64_t)(ev->value << 1) >> 1);
            if (ev->end > im->last_ticks) {
                ev->unfinished = true;
                ev->end = im->last_ticks;
            }
        }
    } else {
        ev->end = ev->start;
    }
    for (; u < end; u++) {
        const uint64_t c = npuprof_load_w0_(u), payload = c >> NPUPROF_ID_BITS_;
        const uint32_t control = (uint32_t)c & NPUPROF_ID_MASK_;
        if (control == NPUPROF_CONTROL_FINISHED_) {
            ev->track = (uint32_t)payload;
            ev->second = u->w1;
        } else if (control == NPUPROF_CONTROL_MEMORY_) {
            ev->second = u->w1;
        } else if (control == NPUPROF_CONTROL_DEVICE_) {
            ev->device = (uint32_t)payload & 0xFF;
            ev->pe = (uint32_t)(payload >> 8) & 0xFFFF;
            ev->epoch = (uint32_t)(payload >> 24) & 0xFFFF;
            ev->flags = (uint32_t)(payload >> 40) & 15;
            ev->start = ev->value;
            ev->end = u->w1;
        } else if (control == NPUPROF_CONTROL_LINK_) {
            ev->has_link = true;
            ev->link.position = payload;
            ev->link.ticks = u->w1;
        } else if (control == NPUPROF_CONTROL_LINK_ROOT_) {
            ev->link.root_position = payload;
            ev->link.slot = (uint32_t)u->w1;
            ev->link.warm_up = (u->w1 >> 32 & 1) != 0;
        } else {
            break;
        }
    }
    ev->args = u;
    while (u < end && ((uint32_t)npuprof_load_w0_(u) & NPUPROF_ID_MASK_) == NPUPROF_CONTROL_ARG_) {
        const uint64_t payload = u->w0 >> NPUPROF_ID_BITS_;
        const uint64_t length = payload >> 32;
        const uint64_t more = length > 8 ? NPUPROF_UNITS_(length - 8) : 0;
        if (more >= (uint64_t)(end - u)) break;
        u += 1 + more;
    }
    ev->args_end = u;
    *shown = (!moved || first) && ev->host_ticks >= im->clear_ticks && ev->host_ticks <= im->last_ticks;
    return (uint32_t)(u - units) - unit;
}

/* The slot's next event, in the order of their beginnings. */
static bool npuprof_next_event_(npuprof_cursor_ *c, npuprof_event_ *ev)
{
    const npuprof_image_ *im = c->image;
    while (c->chunk && c->chunk <= im->chunks && c->hops <= im->chunks) {
        const npuprof_chunk_ *chunk = npuprof_image_chunk_(im, c->chunk - 1);
        while (c->unit < im->units) {
            bool shown;
            const uint32_t taken = npuprof_decode_(im, chunk, c->unit, c->first, ev, &shown);
            if (!taken) break;
            c->unit += taken;
            if (shown) return true;
        }
        const uint32_t next = NPUPROF_LOAD_ACQUIRE_(&chunk->next);
        /* Filled meanwhile by a running thread: all before `next` is there now. */
        if (next && c->unit < im->units && npuprof_load_w0_((const npuprof_unit_ *)(const void *)(chunk + 1) + c->unit)) continue;
        c->chunk = next;
        c->unit = 0;
        c->hops++;
        c->first = false;
    }
    return false;
}

static bool npuprof_decode_again_(const npuprof_image_ *im, uint64_t locator, npuprof_event_ *ev)
{
    const uint64_t at = (locator >> 1) * 16 - im->h->chunks_offset;
    const npuprof_chunk_ *chunk = npuprof_image_chunk_(im, (uint32_t)(at / im->h->chunk_bytes));
    bool shown;
    npuprof_decode_(im, chunk, (uint32_t)((at % im->h->chunk_bytes - sizeof *chunk) / 16), locator & 1, ev, &shown);
    return shown;
}

/* The slots, one after the other; NULL at the end. */
static const npuprof_slot_ *npuprof_next_slot_(const npuprof_image_ *im, const npuprof_slot_ *slot)
{
    const uint64_t at = (uint64_t)(slot ? slot->next_slot : NPUPROF_LOAD_ACQUIRE_(&im->h->slot_first)) * 16;
    if (at < im->h->chunks_offset || at + im->h->slot_bytes > im->h->arena_bytes) return NULL;
    return (const npuprof_slot_ *)(const void *)(im->base + at);
}

/* A thread's own slot, by its tid: 1 to header.threads. NULL: damaged. */
static inline const npuprof_slot_ *npuprof_thread_slot_(const npuprof_image_ *im, uint32_t tid)
{
    const npuprof_slot_ *slot = npuprof_next_slot_(im, NULL);
    while (slot && (NPUPROF_LOAD_(&slot->tid) != tid || slot->parent)) slot = npuprof_next_slot_(im, slot);
    return slot;
}

/* ---- Time */

/* Host ticks as ns after the first anchor. */
static int64_t npuprof_ns_(const npuprof_image_ *im, uint64_t ticks)
{
    const int64_t distance = (int64_t)(ticks - im->h->first.ticks);
    const npuprof_u128_ p = npuprof_multiply_(distance < 0 ? 0 - (uint64_t)distance : (uint64_t)distance, im->multiplier);
    const uint64_t ns = im->shift >= 64 ? p.high >> (im->shift - 64) : im->shift ? p.high << (64 - im->shift) | p.low >> im->shift : p.low;
    return distance < 0 ? -(int64_t)ns : (int64_t)ns;
}
static inline int64_t npuprof_trace_ns_(const npuprof_image_ *im, uint64_t ticks) { return npuprof_ns_(im, ticks) - im->origin_ns; }

/* The multiplier for num / den: as many bits as fit into 63. */
static void npuprof_set_rate_(npuprof_image_ *im, uint64_t num, uint64_t den)
{
    im->shift = 0;
    im->multiplier = npuprof_scale_(num, 1, den);
    while (im->shift < 62) {
        const uint64_t next = npuprof_scale_(num, (uint64_t)2 << im->shift, den);
        if (next >> 63) break;
        im->multiplier = next;
        im->shift++;
    }
}

/* A device's anchors near some ticks, as an array for npuprof_map_ticks_(). Kept while they serve. */
typedef struct npuprof_near_ {
    uint32_t device, epoch, count, rate_ppb;
    bool whole_start, whole_end;           /* the array begins with the first anchor; ends with the last */
    npuprof_anchor_ anchor[4 * NPUPROF_ANCHORS_];
} npuprof_near_;
typedef struct npuprof_nears_ { npuprof_near_ of[4]; } npuprof_nears_;     /* by device, its low bits */

static const npuprof_device_entry_ *npuprof_image_device_(const npuprof_image_ *im, uint32_t device)
{
    uint32_t id = 0;
    const npuprof_entry_ *e;
    while ((e = npuprof_next_entry_(im, NPUPROF_ENTRY_DEVICE, sizeof(npuprof_device_entry_), &id)) != NULL)
        if (NPUPROF_LOAD_ACQUIRE_(&e->a) == device) return (const npuprof_device_entry_ *)(const void *)e;
    return NULL;
}
/* Walks a device's anchors: *block 0 before the first. NULL at the end. */
static const npuprof_anchor_ *npuprof_next_anchor_(const npuprof_image_ *im, const npuprof_device_entry_ *d, uint32_t *block,
                                                   uint32_t *index, uint32_t *epoch)
{
    if (*block == UINT32_MAX) return NULL;
    if (*block == 0) {
        *block = NPUPROF_LOAD_ACQUIRE_(&d->first_anchors);
        *index = 0;
    }
    for (;;) {
        const npuprof_anchors_entry_ *b = (const npuprof_anchors_entry_ *)(const void *)npuprof_image_entry_(
            im, *block, NPUPROF_ENTRY_ANCHORS, sizeof(npuprof_anchors_entry_));
        if (b && *index < NPUPROF_LOAD_ACQUIRE_(&b->count) && *index < NPUPROF_ANCHORS_) {
            *epoch = b->epoch;
            return &b->anchor[(*index)++];
        }
        const uint32_t next = b ? NPUPROF_LOAD_ACQUIRE_(&b->head.a) : 0;
        if (next <= *block) break;
        *block = next;
        *index = 0;
    }
    *block = UINT32_MAX;
    if (!NPUPROF_LOAD_ACQUIRE_(&d->overflow_used)) return NULL;
    *epoch = d->overflow_epoch;
    return &d->overflow;
}
static void npuprof_load_near_(const npuprof_image_ *im, npuprof_near_ *near_by, uint32_t device, uint32_t epoch, uint64_t ticks)
{
    const uint32_t n = near_by->count;
    if (near_by->device == device && near_by->epoch == epoch && n && (near_by->whole_start || ticks >= near_by->anchor[n / 4].device_ticks) &&
        (near_by->whole_end || ticks <= near_by->anchor[n - 1 - n / 4].device_ticks))
        return;
    memset(near_by, 0, sizeof *near_by);
    near_by->device = device;
    near_by->epoch = epoch;
    near_by->whole_start = true;
    const npuprof_device_entry_ *d = npuprof_image_device_(im, device);
    if (!d) return;
    near_by->rate_ppb = d->max_rate_ppb;
    uint32_t block = 0, index = 0, at_epoch, after = 0;
    const npuprof_anchor_ *a;
    enum { NPUPROF_NEAR_ROOM_ = 4 * NPUPROF_ANCHORS_, NPUPROF_NEAR_HALF_ = NPUPROF_NEAR_ROOM_ / 2 };
    near_by->whole_end = true;
    while ((a = npuprof_next_anchor_(im, d, &block, &index, &at_epoch)) != NULL) {
        if (at_epoch != epoch) continue;
        if (near_by->count == NPUPROF_NEAR_ROOM_) {
            if (after >= NPUPROF_NEAR_HALF_) {
                near_by->whole_end = false;
                break;
            }
            memmove(near_by->anchor, near_by->anchor + 1, (NPUPROF_NEAR_ROOM_ - 1) * sizeof *a);
            near_by->count--;
            near_by->whole_start = false;
        }
        near_by->anchor[near_by->count++] = *a;
        if (a->device_ticks > ticks) after++;
    }
}
/* Device ticks as host ticks. False: the device has no anchor to go by. */
static bool npuprof_host_ticks_(const npuprof_image_ *im, npuprof_nears_ *nears, const npuprof_event_ *ev, uint64_t ticks, uint64_t *host,
                                uint64_t *error_ticks)
{
    bool widened;
    npuprof_near_ *near_by = &nears->of[ev->device & 3];
    npuprof_load_near_(im, near_by, ev->device, ev->epoch, ticks);
    return npuprof_map_ticks_(near_by->anchor, near_by->count, near_by->rate_ppb, ticks, host, error_ticks, &widened);
}

/* ---- Spans that have tracks of their own: device, finished and async spans, sorted in the scratch */

enum { NPUPROF_TRACK_DEVICE_ = 1, NPUPROF_TRACK_FINISHED_, NPUPROF_TRACK_ASYNC_ };
typedef struct npuprof_placed_ {
    uint64_t track;                        /* NPUPROF_TRACK_* << 56 | device << 32 | pe; or the track's or span's name */
    int64_t start_ns, end_ns;              /* after the first anchor */
    int64_t order_ns;                      /* the end that the order goes by: an async span's real one is found later */
    uint64_t locator, id;                  /* id: of an async span */
    uint32_t tid;                          /* of an arrow's beginning */
    uint32_t bucket, next;                 /* of a batch's look-up by id: index + 1 */
    int64_t limit_ns;                      /* of an async span: where its id begins anew */
    bool unfinished, ends_at_once, out_of_range;   /* ends_at_once: an end in the tick of the beginning; out_of_range: stamps of another clock, drawn at the start of the trace */
} npuprof_placed_;

/* Order on the page: track, start, the longer first. The locator makes it total. */
static bool npuprof_before_(const npuprof_placed_ *a, const npuprof_placed_ *b)
{
    if (a->track != b->track) return a->track < b->track;
    if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns;
    if (a->order_ns != b->order_ns) return a->order_ns > b->order_ns;
    return a->locator < b->locator;
}

static uint64_t npuprof_track_(const npuprof_event_ *ev)
{
    if (ev->kind == NPUPROF_KIND_DEVICE) return (uint64_t)NPUPROF_TRACK_DEVICE_ << 56 | (uint64_t)ev->device << 32 | ev->pe;
    if (ev->kind == NPUPROF_KIND_FINISHED) return (uint64_t)NPUPROF_TRACK_FINISHED_ << 56 | ev->track;
    return (uint64_t)NPUPROF_TRACK_ASYNC_ << 56 | ev->name;
}

/* Where an event goes; false: it stays on its thread, or there is no anchor to place it. */
static bool npuprof_place_(const npuprof_image_ *im, npuprof_nears_ *near_by, const npuprof_event_ *ev, npuprof_placed_ *p)
{
    p->track = npuprof_track_(ev);
    p->locator = ev->locator;
    p->id = ev->value;
    p->tid = p->bucket = p->next = 0;
    p->limit_ns = 0;
    p->unfinished = p->ends_at_once = p->out_of_range = false;
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        uint64_t start, end, error;
        if (!npuprof_host_ticks_(im, near_by, ev, ev->start, &start, &error) || !npuprof_host_ticks_(im, near_by, ev, ev->end, &end, &error))
            return false;
        p->start_ns = npuprof_ns_(im, start);
        p->end_ns = npuprof_ns_(im, end);
    } else if (ev->kind == NPUPROF_KIND_FINISHED) {
        p->start_ns = (int64_t)ev->value - im->h->first.unix_ns;
        p->end_ns = (int64_t)ev->second - im->h->first.unix_ns;
        /* Why: farther off than this, viewers lose the nanoseconds of the whole trace. */
        const int64_t limit = (int64_t)1 << 50;
        const int64_t latest = npuprof_ns_(im, im->last_ticks) + limit;
        p->out_of_range = p->start_ns < -limit || p->start_ns > latest || p->end_ns < -limit || p->end_ns > latest;
        if (p->out_of_range) p->start_ns = p->end_ns = 0;
    } else if (ev->kind == NPUPROF_KIND_ASYNC_BEGIN) {
        p->start_ns = npuprof_ns_(im, ev->start);
        p->end_ns = npuprof_ns_(im, im->last_ticks);
        p->unfinished = true;
    } else {
        return false;
    }
    if (p->end_ns < p->start_ns) p->end_ns = p->start_ns;
    p->order_ns = p->end_ns;
    return true;
}

/* One batch of placed spans after *last, as many as the room holds, in order. 0: there are no more.
   Why in batches: no heap. Each batch is one walk over the arena that keeps the smallest it sees. */
static void npuprof_sift_(npuprof_placed_ *heap, size_t count, size_t at)
{
    for (;;) {
        size_t big = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (npuprof_before_(&heap[big], &heap[child])) big = child;
        if (big == at) return;
        const npuprof_placed_ swap = heap[at];
        heap[at] = heap[big];
        heap[big] = swap;
        at = big;
    }
}
/* Keeps p if it is among the least seen. */
static void npuprof_keep_least_(npuprof_placed_ *room, size_t rooms, size_t *count, const npuprof_placed_ *p)
{
    if (*count == rooms) {
        if (!npuprof_before_(p, &room[0])) return;
        room[0] = *p;
        npuprof_sift_(room, *count, 0);
        return;
    }
    room[(*count)++] = *p;
    for (size_t at = *count - 1; at && npuprof_before_(&room[(at - 1) / 2], &room[at]); at = (at - 1) / 2) {
        const npuprof_placed_ swap = room[at];
        room[at] = room[(at - 1) / 2];
        room[(at - 1) / 2] = swap;
    }
}
static void npuprof_sort_heap_(npuprof_placed_ *room, size_t count)
{
    for (size_t n = count; n > 1; n--) {
        const npuprof_placed_ swap = room[0];
        room[0] = room[n - 1];
        room[n - 1] = swap;
        npuprof_sift_(room, n - 1, 0);
    }
}
static size_t npuprof_next_batch_(const npuprof_image_ *im, uint32_t kinds, const npuprof_placed_ *last, npuprof_placed_ *room, size_t rooms)
{
    npuprof_nears_ near_by;
    npuprof_event_ ev;
    npuprof_cursor_ c;
    npuprof_placed_ p;
    size_t count = 0;
    bool async = false;
    if (!(im->kinds & kinds)) return 0;
    memset(&near_by, 0, sizeof near_by);
    for (const npuprof_slot_ *slot = npuprof_next_slot_(im, NULL); slot; slot = npuprof_next_slot_(im, slot)) {
        npuprof_rewind_(&c, im, slot);
        while (npuprof_next_event_(&c, &ev)) {
            if (!(kinds >> ev.kind & 1)) continue;
            /* Why here: the track costs nothing, the device's time does. */
            const uint64_t track = npuprof_track_(&ev);
            if ((last && track < last->track) || (count == rooms && track > room[0].track)) continue;
            if (!npuprof_place_(im, &near_by, &ev, &p) || (last && !npuprof_before_(last, &p))) continue;
            async |= ev.kind == NPUPROF_KIND_ASYNC_BEGIN;
            npuprof_keep_least_(room, rooms, &count, &p);
        }
    }
    npuprof_sort_heap_(room, count);
    if (!async) return count;
    for (size_t i = 0; i < count; i++) room[i].limit_ns = INT64_MAX;
    /* The ends of the async spans of this batch: a beginning takes the first end after it with its id, unless the id begins anew
       before that. */
    for (size_t i = 0; i < count; i++) room[i].bucket = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t *bucket = &room[npuprof_mix_(room[i].id) % count].bucket;
        if (room[i].track >> 56 != NPUPROF_TRACK_ASYNC_) continue;
        room[i].next = *bucket;
        *bucket = (uint32_t)i + 1;
    }
    for (const npuprof_slot_ *slot = npuprof_next_slot_(im, NULL); slot; slot = npuprof_next_slot_(im, slot)) {
        npuprof_rewind_(&c, im, slot);
        while (npuprof_next_event_(&c, &ev)) {
            if (ev.kind != NPUPROF_KIND_ASYNC_END && ev.kind != NPUPROF_KIND_ASYNC_BEGIN) continue;
            const int64_t end = npuprof_ns_(im, ev.start);
            for (uint32_t i = room[npuprof_mix_(ev.value) % count].bucket; i; i = room[i - 1].next) {
                npuprof_placed_ *at = &room[i - 1];
                if (at->id != ev.value) continue;
                if (ev.kind == NPUPROF_KIND_ASYNC_BEGIN) {
                    if (at->start_ns < end && end < at->limit_ns) at->limit_ns = end;
                } else if (at->start_ns == end) {
                    at->ends_at_once = true;
                } else if (at->start_ns < end) {
                    if (at->unfinished || end < at->end_ns) at->end_ns = end;
                    at->unfinished = false;
                }
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (room[i].end_ns > room[i].limit_ns) {
            room[i].end_ns = room[i].limit_ns;
            room[i].unfinished = true;
        }
        if (room[i].unfinished && room[i].ends_at_once) {
            room[i].end_ns = room[i].start_ns;
            room[i].unfinished = false;
        }
    }
    return count;
}

/* ---- Opening */

/* A live arena as an image: takes a closing clock anchor if anything was recorded since the last one.
   Why only then: reading twice must give the same bytes. */
static void npuprof_open_image_(npuprof_image_ *im)
{
    npuprof_header_ *h = npuprof_s_.header;
    npuprof_event_ ev;
    npuprof_cursor_ c;
    memset(im, 0, sizeof *im);
    im->base = npuprof_s_.base;
    im->h = h;
    im->units = npuprof_s_.units;
    im->table_used = NPUPROF_LOAD_ACQUIRE_(&h->table_used);
    im->chunks = NPUPROF_LOAD_ACQUIRE_(&h->chunk_next);
    im->threads = NPUPROF_LOAD_ACQUIRE_(&h->threads);
    im->clear_ticks = NPUPROF_LOAD_(&h->clear_ticks);
    im->last_ticks = UINT64_MAX;
    uint64_t last = 0;
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) im->lost[i] = NPUPROF_LOAD_(&h->lost[i]);
    for (const npuprof_slot_ *slot = npuprof_next_slot_(im, NULL); slot; slot = npuprof_next_slot_(im, slot)) {
        for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) im->lost[i] += NPUPROF_LOAD_(&slot->lost[i]);
        npuprof_rewind_(&c, im, slot);
        while (npuprof_next_event_(&c, &ev)) {
            im->events++;
            im->kinds |= (uint32_t)1 << ev.kind;
            if (ev.kind <= NPUPROF_KIND_OPERATOR) {
                if (!ev.unfinished && ev.end > last) last = ev.end;
            }
            if (ev.host_ticks > last) last = ev.host_ticks;
        }
    }
    if (last > h->last.ticks || h->last.ticks == h->first.ticks) npuprof_read_host_anchor_(&h->last);
    im->last_ticks = last ? last : h->first.ticks;
    if (h->clock_hz) npuprof_set_rate_(im, 1000000000u, h->clock_hz);
    else if (h->last.ticks > h->first.ticks && h->last.monotonic_ns > h->first.monotonic_ns)
        npuprof_set_rate_(im, (uint64_t)(h->last.monotonic_ns - h->first.monotonic_ns), h->last.ticks - h->first.ticks);
    else npuprof_set_rate_(im, 1, 1);
    if (!(im->kinds & ((uint32_t)1 << NPUPROF_KIND_DEVICE | (uint32_t)1 << NPUPROF_KIND_FINISHED))) return;
    /* Spans with their own stamps may begin before the first anchor: the trace begins with the earliest. */
    npuprof_nears_ near_by;
    memset(&near_by, 0, sizeof near_by);
    for (const npuprof_slot_ *slot = npuprof_next_slot_(im, NULL); slot; slot = npuprof_next_slot_(im, slot)) {
        npuprof_rewind_(&c, im, slot);
        while (npuprof_next_event_(&c, &ev)) {
            npuprof_placed_ p;
            if (ev.kind == NPUPROF_KIND_DEVICE || ev.kind == NPUPROF_KIND_FINISHED)
                if (npuprof_place_(im, &near_by, &ev, &p) && p.start_ns < im->origin_ns) im->origin_ns = p.start_ns;
        }
    }
}

/* What another arena knew before anything was recorded: its metadata. */
static void npuprof_carry_over_(const npuprof_header_ *old)
{
    npuprof_image_ im;
    size_t length;
    memset(&im, 0, sizeof im);
    im.h = old;
    im.base = (const uint8_t *)(const void *)old;
    im.table_used = old->table_used;
    memcpy(npuprof_s_.header->traceparent, old->traceparent, sizeof old->traceparent);
    static const uint32_t types[2] = { NPUPROF_ENTRY_METADATA, NPUPROF_ENTRY_ENVIRONMENT };
    for (int i = 0; i < 2; i++) {
        uint32_t id = 0;
        for (const npuprof_entry_ *e; (e = npuprof_next_entry_(&im, types[i], sizeof(npuprof_pair_entry_), &id)) != NULL;) {
            const npuprof_pair_entry_ *pair = (const npuprof_pair_entry_ *)(const void *)e;
            (void)npuprof_add_pair_(types[i], npuprof_text_(&im, pair->b[0], &length), npuprof_text_(&im, pair->b[1], &length));
        }
    }
}

/* ---- Arguments and ids */

typedef struct npuprof_value_ { uint32_t key, type; uint64_t bits; const uint8_t *text; size_t length; } npuprof_value_;

/* The argument at *u; moves on. False at the end. The text's first 8 bytes lie in the head unit, the rest follows it. */
static bool npuprof_next_arg_(const npuprof_unit_ **u, const npuprof_unit_ *end, npuprof_value_ *v)
{
    if (*u >= end) return false;
    const uint64_t payload = (*u)->w0 >> NPUPROF_ID_BITS_;
    v->type = (uint32_t)payload & 15;
    v->key = (uint32_t)(payload >> 4) & 0x0FFFFFFFu;
    v->length = (size_t)(payload >> 32);
    v->bits = (*u)->w1;
    v->text = (const uint8_t *)*u + 8;
    *u += 1 + (v->length > 8 ? NPUPROF_UNITS_(v->length - 8) : 0);
    return true;
}

/* An argument of that key as an integer: its type, or 0. */
static inline uint32_t npuprof_find_arg_(const npuprof_image_ *im, const npuprof_event_ *ev, const char *key, uint64_t *bits)
{
    npuprof_value_ v;
    const size_t key_length = strlen(key);
    for (const npuprof_unit_ *u = ev->args; npuprof_next_arg_(&u, ev->args_end, &v);) {
        size_t length;
        const char *text = npuprof_text_(im, v.key, &length);
        if (v.type <= NPUPROF_ARG_UINT && length == key_length && memcmp(text, key, length) == 0) {
            *bits = v.bits;
            return v.type;
        }
    }
    return 0;
}

static inline uint64_t npuprof_span_id_(const npuprof_image_ *im, uint32_t tid, uint64_t position)
{
    const uint64_t id = npuprof_mix_(im->h->seed_low ^ npuprof_mix_((uint64_t)tid << 44 ^ position));
    return id ? id : 1;
}

/* ---- A thread's events, with their nesting */

enum { NPUPROF_NESTING_ = 2 * NPUPROF_DEPTH_ };
typedef struct npuprof_walk_ {
    const npuprof_image_ *image;
    uint32_t tid, sources, depth;
    npuprof_cursor_ cursor[NPUPROF_CONTEXTS_];       /* the thread and its signal handlers' contexts */
    npuprof_event_ waiting[NPUPROF_CONTEXTS_];
    bool has[NPUPROF_CONTEXTS_];
    struct { uint64_t start, end, position, root; bool warm_up; } open[NPUPROF_NESTING_];
    bool has_parent, warm_up;                      /* of the event just given */
    uint64_t parent, root;                         /* positions */
    uint64_t parent_start, parent_end;             /* ticks */
} npuprof_walk_;

static void npuprof_walk_thread_(npuprof_walk_ *w, const npuprof_image_ *im, uint32_t tid)
{
    w->image = im;
    w->tid = tid;
    w->sources = 0;
    w->depth = 0;
    for (const npuprof_slot_ *slot = npuprof_next_slot_(im, NULL); slot && w->sources < NPUPROF_CONTEXTS_; slot = npuprof_next_slot_(im, slot))
        if (NPUPROF_LOAD_(&slot->tid) == tid && NPUPROF_LOAD_(&slot->first_chunk)) {
            npuprof_rewind_(&w->cursor[w->sources], im, slot);
            w->has[w->sources] = npuprof_next_event_(&w->cursor[w->sources], &w->waiting[w->sources]);
            w->sources++;
        }
}

/* The thread's next event; parent and root (the enclosing record, else the outermost span) by containment. */
static bool npuprof_walk_next_(npuprof_walk_ *w, npuprof_event_ *ev)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < w->sources; i++)
        if (w->has[i] && (best == UINT32_MAX || w->waiting[i].host_ticks < w->waiting[best].host_ticks)) best = i;
    if (best == UINT32_MAX) return false;
    *ev = w->waiting[best];
    w->has[best] = npuprof_next_event_(&w->cursor[best], &w->waiting[best]);
    /* At the very tick of an end: an event still lies in the span, and all in a span without length. */
    while (w->depth && w->open[w->depth - 1].end <= ev->host_ticks &&
           !(w->open[w->depth - 1].end == ev->host_ticks && (ev->kind > NPUPROF_KIND_OPERATOR || w->open[w->depth - 1].start == ev->host_ticks)))
        w->depth--;
    w->has_parent = w->depth > 0;
    w->parent_start = w->depth ? w->open[w->depth - 1].start : 0;
    w->parent_end = w->depth ? w->open[w->depth - 1].end : 0;
    w->parent = w->depth ? w->open[w->depth - 1].position : 0;
    w->root = w->depth ? w->open[w->depth - 1].root : ev->position;
    w->warm_up = w->depth && w->open[w->depth - 1].warm_up;
    if (ev->kind <= NPUPROF_KIND_OPERATOR) {
        if (ev->kind == NPUPROF_KIND_RECORD || ev->kind == NPUPROF_KIND_WARM_UP) w->root = ev->position;
        if (ev->kind == NPUPROF_KIND_WARM_UP) w->warm_up = true;
        if (w->depth < NPUPROF_NESTING_) {
            w->open[w->depth].start = ev->host_ticks;
            w->open[w->depth].end = ev->end;
            w->open[w->depth].position = ev->position;
            w->open[w->depth].root = w->root;
            w->open[w->depth].warm_up = w->warm_up;
            w->depth++;
        }
    }
    return true;
}

/* ==== FORMAT ================================================================================ >>format ==== */

/* A buffered writer over a sink. After an error it swallows what comes; the error stays. */
typedef struct npuprof_out_ {
    npuprof_sink sink;
    char *bytes;
    size_t room, used;
    int error;
} npuprof_out_;

static void npuprof_flush_(npuprof_out_ *o)
{
    if (o->used && !o->error) o->error = o->sink.write(o->sink.user, o->bytes, o->used);
    o->used = 0;
}
static NPUPROF_NOINLINE_ void npuprof_put_slow_(npuprof_out_ *o, const char *bytes, size_t count)
{
    while (count) {
        if (o->used == o->room) npuprof_flush_(o);
        const size_t n = count < o->room - o->used ? count : o->room - o->used;
        memcpy(o->bytes + o->used, bytes, n);
        o->used += n;
        bytes += n;
        count -= n;
    }
}
static inline void npuprof_put_(npuprof_out_ *o, const char *bytes, size_t count)
{
    if (NPUPROF_UNLIKELY_(count > o->room - o->used)) {
        npuprof_put_slow_(o, bytes, count);
        return;
    }
    memcpy(o->bytes + o->used, bytes, count);
    o->used += count;
}
static inline void npuprof_puts_(npuprof_out_ *o, const char *text) { npuprof_put_(o, text, strlen(text)); }
static void npuprof_put_uint_(npuprof_out_ *o, uint64_t v)
{
    char digits[20];
    size_t n = sizeof digits;
    do digits[--n] = (char)('0' + v % 10);
    while (v /= 10);
    npuprof_put_(o, digits + n, sizeof digits - n);
}
static void npuprof_put_int_(npuprof_out_ *o, int64_t v)
{
    if (v < 0) npuprof_put_(o, "-", 1);
    npuprof_put_uint_(o, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}
/* thousandths as a decimal with three places: ns as µs, mHz as Hz. */
static inline void npuprof_put_milli_(npuprof_out_ *o, int64_t v)
{
    const uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    const unsigned rest = (unsigned)(size % 1000);
    char tail[4];
    if (v < 0) npuprof_put_(o, "-", 1);
    npuprof_put_uint_(o, size / 1000);
    tail[0] = '.';
    tail[1] = (char)('0' + rest / 100);
    tail[2] = (char)('0' + rest / 10 % 10);
    tail[3] = (char)('0' + rest % 10);
    npuprof_put_(o, tail, 4);
}
static inline void npuprof_put_hex_(npuprof_out_ *o, uint64_t v)
{
    char digits[16];
    for (int i = 15; i >= 0; i--, v >>= 4) digits[i] = "0123456789abcdef"[v & 15];
    npuprof_put_(o, digits, 16);
}

/* Bytes of the well-formed UTF-8 sequence at p, or 0. */
static size_t npuprof_utf8_(const uint8_t *p, size_t left)
{
    const uint8_t c = p[0];
    if (c < 0x80) return 1;
    const size_t n = c >= 0xC2 && c <= 0xDF ? 2 : c >= 0xE0 && c <= 0xEF ? 3 : c >= 0xF0 && c <= 0xF4 ? 4 : 0;
    if (n == 0 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    if ((c == 0xE0 && p[1] < 0xA0) || (c == 0xED && p[1] > 0x9F) || (c == 0xF0 && p[1] < 0x90) || (c == 0xF4 && p[1] > 0x8F)) return 0;
    return n;
}

/* A string with quotes: raw UTF-8, bad bytes as U+FFFD. JSON escapes; CSV (json false) doubles its quotes. */
static void npuprof_put_string_(npuprof_out_ *o, const void *text, size_t length, bool json)
{
    const uint8_t *p = (const uint8_t *)text, *const end = p + length, *from = p;
    npuprof_put_(o, "\"", 1);
    while (p < end) {
        const size_t n = npuprof_utf8_(p, (size_t)(end - p));
        if (n == 1 && *p != '"' && (!json || (*p != '\\' && *p >= 0x20))) {
            p++;
            continue;
        }
        if (n > 1) {
            p += n;
            continue;
        }
        npuprof_put_(o, (const char *)from, (size_t)(p - from));
        if (n == 0) {
            npuprof_puts_(o, "\xEF\xBF\xBD");
        } else if (!json) {
            npuprof_puts_(o, "\"\"");
        } else if (*p == '"' || *p == '\\') {
            const char escape[2] = { '\\', (char)*p };
            npuprof_put_(o, escape, 2);
        } else {
            const char escape[6] = { '\\', 'u', '0', '0', (char)('0' + (*p >> 4)), "0123456789abcdef"[*p & 15] };
            npuprof_put_(o, escape, 6);
        }
        from = ++p;
    }
    npuprof_put_(o, (const char *)from, (size_t)(p - from));
    npuprof_put_(o, "\"", 1);
}
static void npuprof_put_text_(npuprof_out_ *o, const npuprof_image_ *im, uint32_t id, bool json)
{
    size_t length;
    const char *text = npuprof_text_(im, id, &length);
    npuprof_put_string_(o, text, length, json);
}
static inline void npuprof_put_quoted_(npuprof_out_ *o, const char *text) { npuprof_put_string_(o, text, strlen(text), true); }
/* A double with all its digits, whatever the locale. False: not finite, nothing written. */
static inline bool npuprof_put_real_(npuprof_out_ *o, uint64_t bits)
{
    union { uint64_t u; double d; } v;
    v.u = bits;
    if ((bits >> 52 & 0x7FF) == 0x7FF) return false;
#ifndef NPUPROF_FREESTANDING
    char text[40];
    int n = 0;
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(text, sizeof text, "%.*g", digits, v.d);
        if (digits == 17 || strtod(text, NULL) == v.d) break;
    }
    /* The locale's decimal point may be any bytes. */
    for (int i = 0, point = 0; i < n; i++) {
        const bool plain = (text[i] >= '0' && text[i] <= '9') || text[i] == '-' || text[i] == '+' || text[i] == 'e';
        if (plain) npuprof_put_(o, text + i, 1);
        else if (!point++) npuprof_put_(o, ".", 1);
    }
#else
    npuprof_put_int_(o, (int64_t)v.d);
#endif
    return true;
}
/* A counter's value. Why beyond int64 as a real: viewers garble such integers. */
static inline void npuprof_put_big_(npuprof_out_ *o, uint64_t v)
{
    if (v >> 63) (void)npuprof_put_real_(o, npuprof_real_bits_((double)v));
    else npuprof_put_uint_(o, v);
}
static inline void npuprof_put_value_(npuprof_out_ *o, const npuprof_value_ *v)
{
    switch (v->type) {
    case NPUPROF_ARG_INT: npuprof_put_int_(o, (int64_t)v->bits); break;
    case NPUPROF_ARG_UINT:
        /* Why: viewers garble integers beyond int64; as a string they stay what they are. */
        if (v->bits >> 63) npuprof_puts_(o, "\"");
        npuprof_put_uint_(o, v->bits);
        if (v->bits >> 63) npuprof_puts_(o, "\"");
        break;
    case NPUPROF_ARG_BOOL: npuprof_puts_(o, v->bits ? "true" : "false"); break;
    case NPUPROF_ARG_REAL:
        if (!npuprof_put_real_(o, v->bits)) npuprof_puts_(o, v->bits << 12 ? "\"NaN\"" : v->bits >> 63 ? "\"-Infinity\"" : "\"Infinity\"");
        break;
    case NPUPROF_ARG_STR:
    case NPUPROF_ARG_STR_CUT_: {
        /* A cut string ends with an ellipsis. */
        char text[NPUPROF_STRING_LIMIT_ + 3];
        const bool cut = v->type == NPUPROF_ARG_STR_CUT_ && v->length <= NPUPROF_STRING_LIMIT_;
        if (cut) {
            memcpy(text, v->text, v->length);
            memcpy(text + v->length, "\xE2\x80\xA6", 3);
        }
        npuprof_put_string_(o, cut ? (const void *)text : v->text, v->length + (cut ? 3 : 0), true);
        break;
    }
    default: npuprof_puts_(o, "null"); break;
    }
}

/* ---- The scratch, shared out */

typedef struct npuprof_lane_node_ { int64_t end; uint32_t below, pad; } npuprof_lane_node_;
enum { NPUPROF_LANES_ = 256 };
typedef struct npuprof_work_ {
    npuprof_out_ out;
    npuprof_lane_node_ *nodes;             /* [0] is nothing */
    uint32_t node_count, free_node, lanes;
    uint32_t top[NPUPROF_LANES_], tid[NPUPROF_LANES_ + 1];   /* of the track at hand */
    uint32_t next_tid;
    npuprof_placed_ *placed;
    size_t placed_room;
    npuprof_image_ image;
    npuprof_walk_ walk;
    bool comma;
    uint64_t skipped_values;
} npuprof_work_;
static npuprof_work_ npuprof_work_area_;

static void npuprof_share_scratch_(npuprof_work_ *w, npuprof_sink sink)
{
    uint8_t *p = (uint8_t *)npuprof_scratch_;
    const size_t quarter = sizeof npuprof_scratch_ / 4 / 16 * 16;
    memset(w, 0, sizeof *w);
    w->out.sink = sink;
    w->out.bytes = (char *)p;
    w->out.room = quarter;
    w->nodes = (npuprof_lane_node_ *)(void *)(p + quarter);
    w->node_count = (uint32_t)(quarter / sizeof *w->nodes);
    w->placed = (npuprof_placed_ *)(void *)(p + 2 * quarter);
    w->placed_room = (sizeof npuprof_scratch_ - 2 * quarter) / sizeof *w->placed;
}

static inline void npuprof_clear_lanes_(npuprof_work_ *w)
{
    w->lanes = 0;
    for (uint32_t i = 1; i < w->node_count; i++) w->nodes[i].below = i + 1 < w->node_count ? i + 1 : 0;
    w->free_node = 1;
}

static void npuprof_pop_lane_(npuprof_work_ *w, uint32_t lane, int64_t start)
{
    while (w->top[lane] && w->nodes[w->top[lane]].end <= start) {
        const uint32_t node = w->top[lane];
        w->top[lane] = w->nodes[node].below;
        w->nodes[node].below = w->free_node;
        w->free_node = node;
    }
}
/* The first lane where the span nests or stands free. Spans come in order of their starts. NPUPROF_LANES_: there is no room to
   know; the span then gets a track of its own. */
static inline uint32_t npuprof_lane_(npuprof_work_ *w, int64_t start, int64_t end)
{
    uint32_t lane = 0;
    for (; lane < w->lanes; lane++) {
        npuprof_pop_lane_(w, lane, start);
        if (!w->top[lane] || w->nodes[w->top[lane]].end >= end) break;
    }
    if (!w->free_node)
        for (uint32_t rest = lane + 1; rest < w->lanes; rest++) npuprof_pop_lane_(w, rest, start);
    if (lane == NPUPROF_LANES_ || !w->free_node) return NPUPROF_LANES_;
    if (lane == w->lanes) {
        w->top[lane] = 0;
        w->tid[lane] = 0;
        w->lanes++;
    }
    const uint32_t node = w->free_node;
    w->free_node = w->nodes[node].below;
    w->nodes[node].end = end;
    w->nodes[node].below = w->top[lane];
    w->top[lane] = node;
    return lane;
}

/* ==== JSON ==================================================================================== >>json ==== */

#ifndef NPUPROF_NO_JSON

/* Are two keys the same once they are written? Bad bytes all become U+FFFD. */
static bool npuprof_same_key_(const npuprof_image_ *im, uint32_t a, uint32_t b)
{
    size_t a_left, b_left;
    if (a == b) return true;
    const uint8_t *p = (const uint8_t *)npuprof_text_(im, a, &a_left), *q = (const uint8_t *)npuprof_text_(im, b, &b_left);
    while (a_left && b_left) {
        const size_t n = npuprof_utf8_(p, a_left), m = npuprof_utf8_(q, b_left);
        const bool p_bad = n == 0 || (n == 3 && memcmp(p, "\xEF\xBF\xBD", 3) == 0), q_bad = m == 0 || (m == 3 && memcmp(q, "\xEF\xBF\xBD", 3) == 0);
        if (p_bad != q_bad || (!p_bad && (n != m || memcmp(p, q, n) != 0))) return false;
        p += n ? n : 1;
        q += m ? m : 1;
        a_left -= n ? n : 1;
        b_left -= m ? m : 1;
    }
    return a_left == b_left;
}

/* Begins an event: everything up to the stamps. name_id 0: the text. */
static void npuprof_json_open_(npuprof_work_ *w, const char *phase, uint32_t name_id, const char *name, uint32_t category, uint32_t tid)
{
    npuprof_out_ *o = &w->out;
    npuprof_puts_(o, w->comma ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    w->comma = true;
    npuprof_puts_(o, phase);
    npuprof_puts_(o, "\",\"name\":");
    if (name_id) npuprof_put_text_(o, &w->image, name_id, true);
    else npuprof_put_quoted_(o, name);
    if (category) {
        npuprof_puts_(o, ",\"cat\":");
        npuprof_put_text_(o, &w->image, category, true);
    }
    npuprof_puts_(o, ",\"pid\":");
    npuprof_put_uint_(o, w->image.h->pid);
    npuprof_puts_(o, ",\"tid\":");
    npuprof_put_uint_(o, tid);
}
static void npuprof_json_stamp_(npuprof_work_ *w, const char *key, int64_t ns)
{
    npuprof_puts_(&w->out, key);
    npuprof_put_milli_(&w->out, ns);
}

/* ,"args":{...}: `first` is what the writer itself has to say, without its comma, or "". */
static void npuprof_json_args_(npuprof_work_ *w, const npuprof_event_ *ev, const char *first)
{
    npuprof_out_ *o = &w->out;
    npuprof_value_ v;
    bool any = *first != 0;
    const npuprof_unit_ *u = ev->args;
    if (!any && u == ev->args_end) return;
    npuprof_puts_(o, ",\"args\":{");
    npuprof_puts_(o, first);
    while (npuprof_next_arg_(&u, ev->args_end, &v)) {
        /* Why the last of a key: strict readers refuse a key twice. */
        bool again = false;
        npuprof_value_ later;
        for (const npuprof_unit_ *rest = u; !again && npuprof_next_arg_(&rest, ev->args_end, &later);)
            again = npuprof_same_key_(&w->image, later.key, v.key);
        if (again) continue;
        if (any) npuprof_put_(o, ",", 1);
        any = true;
        /* A key that the writer has used itself becomes "user.<key>". */
        char own[40];
        size_t length;
        const char *key = npuprof_text_(&w->image, v.key, &length);
        own[0] = 0;
        if (*first && length < 32) {
            own[0] = '"';
            memcpy(own + 1, key, length);
            memcpy(own + 1 + length, "\":", 3);
        }
        if (own[0] && strstr(first, own)) {
            npuprof_puts_(o, "\"user.");
            npuprof_puts_(o, own + 1);
        } else {
            npuprof_put_text_(o, &w->image, v.key, true);
            npuprof_put_(o, ":", 1);
        }
        npuprof_put_value_(o, &v);
    }
    npuprof_put_(o, "}", 1);
}

/* A metadata event: {"name":text} or {"sort_index":n}. */
static void npuprof_json_name_(npuprof_work_ *w, const char *what, uint32_t tid, uint32_t name_id, const char *prefix, const char *suffix)
{
    size_t length;
    const char *name = npuprof_text_(&w->image, name_id, &length);
    char text[160];
    npuprof_json_open_(w, "M", 0, what, 0, tid);
    npuprof_puts_(&w->out, ",\"args\":{\"name\":");
    if (!*prefix && !*suffix) {
        npuprof_put_string_(&w->out, name, length, true);
    } else {
        const size_t p = strlen(prefix), s = strlen(suffix);
        size_t n = p < 60 ? p : 60;
        memcpy(text, prefix, n);
        const size_t kept = npuprof_cut_(name, length, 64);
        memcpy(text + n, name, kept);
        n += kept;
        memcpy(text + n, suffix, s < 30 ? s : 30);
        n += s < 30 ? s : 30;
        npuprof_put_string_(&w->out, text, n, true);
    }
    npuprof_puts_(&w->out, "}}");
}
static void npuprof_json_sort_(npuprof_work_ *w, const char *what, uint32_t tid, uint32_t index)
{
    npuprof_json_open_(w, "M", 0, what, 0, tid);
    npuprof_puts_(&w->out, ",\"args\":{\"sort_index\":");
    npuprof_put_uint_(&w->out, index);
    npuprof_puts_(&w->out, "}}");
}
/* A decimal number as text. */
static const char *npuprof_decimal_(char *room, uint64_t v)
{
    char digits[20];
    size_t n = sizeof digits, i = 0;
    do digits[--n] = (char)('0' + v % 10);
    while (v /= 10);
    while (n < sizeof digits) room[i++] = digits[n++];
    room[i] = 0;
    return room;
}

static void npuprof_json_thread_(npuprof_work_ *w, const npuprof_slot_ *slot)
{
    npuprof_image_ *im = &w->image;
    npuprof_event_ ev;
    char text[64], number[24];
    const uint32_t name = NPUPROF_LOAD_(&slot->name);
    npuprof_walk_thread_(&w->walk, im, NPUPROF_LOAD_(&slot->tid));
    npuprof_clear_lanes_(w);
    const uint32_t tid = w->walk.tid;
    if (name) npuprof_json_name_(w, "thread_name", tid, name, "", "");
    else if (slot->os_tid == im->h->pid) npuprof_json_name_(w, "thread_name", tid, 0, "main", "");
    else npuprof_json_name_(w, "thread_name", tid, 0, "thread ", npuprof_decimal_(number, tid));
    npuprof_json_sort_(w, "thread_sort_index", tid, tid);
    while (npuprof_walk_next_(&w->walk, &ev)) {
        const int64_t ts = npuprof_trace_ns_(im, ev.start);
        if (ev.kind <= NPUPROF_KIND_OPERATOR) {
            int64_t end = npuprof_trace_ns_(im, ev.end);
            if (end < ts) end = ts;
            const uint32_t lane = npuprof_lane_(w, ts, end);
            if (lane && (!w->tid[lane] || lane == NPUPROF_LANES_)) {
                w->tid[lane] = w->next_tid++;
                npuprof_json_name_(w, "thread_name", w->tid[lane], name, name ? "" : "thread", " (overlap)");
                npuprof_json_sort_(w, "thread_sort_index", w->tid[lane], tid);
            }
            npuprof_json_open_(w, "X", ev.name, NULL, ev.category, lane ? w->tid[lane] : tid);
            npuprof_json_stamp_(w, ",\"ts\":", ts);
            npuprof_json_stamp_(w, ",\"dur\":", end - ts);
            text[0] = 0;
            if (ev.unfinished) npuprof_copy_text_(text, sizeof text, "\"unfinished\":true");
            else if (ev.cut) npuprof_copy_text_(text, sizeof text, "\"unfinished\":\"unwound\"");
            npuprof_json_args_(w, &ev, text);
            npuprof_puts_(&w->out, "}");
            continue;
        }
        const uint32_t k = ev.kind;
        if (k == NPUPROF_KIND_INSTANT) {
            npuprof_json_open_(w, "i", ev.name, NULL, ev.category, tid);
            npuprof_json_stamp_(w, ",\"s\":\"t\",\"ts\":", ts);
            npuprof_json_args_(w, &ev, "");
            npuprof_puts_(&w->out, "}");
        } else if (k == NPUPROF_KIND_COUNTER_INT || k == NPUPROF_KIND_COUNTER_UINT || k == NPUPROF_KIND_COUNTER_REAL) {
            if (k == NPUPROF_KIND_COUNTER_REAL && (ev.value >> 52 & 0x7FF) == 0x7FF) {
                w->skipped_values++;
                continue;
            }
            npuprof_json_open_(w, "C", ev.name, NULL, 0, tid);
            npuprof_json_stamp_(w, ",\"ts\":", ts);
            npuprof_puts_(&w->out, ",\"args\":{\"value\":");
            if (k == NPUPROF_KIND_COUNTER_INT) npuprof_put_int_(&w->out, (int64_t)ev.value);
            else if (k == NPUPROF_KIND_COUNTER_UINT) npuprof_put_big_(&w->out, ev.value);
            else npuprof_put_real_(&w->out, ev.value);
            npuprof_puts_(&w->out, "}}");
        } else if (k == NPUPROF_KIND_MEMORY) {
            npuprof_json_open_(w, "C", ev.category, NULL, 0, tid);
            npuprof_json_stamp_(w, ",\"ts\":", ts);
            npuprof_puts_(&w->out, ",\"args\":{\"used\":");
            npuprof_put_big_(&w->out, ev.value);
            npuprof_puts_(&w->out, ",\"allocated\":");
            npuprof_put_big_(&w->out, ev.second);
            npuprof_puts_(&w->out, "}}");
        }
    }
}

/* One arrow: from (tid, ns) to (tid, ns), in trace time. Viewers match the two halves by id, category and name. */
static void npuprof_json_arrow_(npuprof_work_ *w, const char *name, uint64_t id, uint32_t from_tid, int64_t from_ns, uint32_t to_tid, int64_t to_ns)
{
    for (int end = 0; end < 2; end++) {
        npuprof_json_open_(w, end ? "f" : "s", 0, name, 0, end ? to_tid : from_tid);
        npuprof_puts_(&w->out, end ? ",\"bp\":\"e\",\"cat\":\"" : ",\"cat\":\"");
        npuprof_puts_(&w->out, name);
        npuprof_puts_(&w->out, "\",\"id\":");
        npuprof_put_uint_(&w->out, id);
        npuprof_json_stamp_(w, ",\"ts\":", end ? to_ns : from_ns);
        npuprof_puts_(&w->out, "}");
    }
}

/* PROF_FLOW_OUT and PROF_FLOW_IN: each IN inside a span gets an arrow from the newest OUT before it with its id, if that
   lies inside a span. In batches by id; each arrow has an id of its own, so users may repeat theirs. */
static void npuprof_json_flows_(npuprof_work_ *w)
{
    const npuprof_image_ *im = &w->image;
    npuprof_placed_ last, p;
    npuprof_event_ ev;
    if (!(im->kinds >> NPUPROF_KIND_FLOW_IN & 1)) return;
    memset(&p, 0, sizeof p);
    for (const npuprof_placed_ *after = NULL;; after = &last) {
        size_t count = 0;
        for (int outs = 0; outs < 2; outs++) {
            for (uint32_t tid = 1; tid <= im->threads; tid++) {
                npuprof_walk_thread_(&w->walk, im, tid);
                while (npuprof_walk_next_(&w->walk, &ev)) {
                    if (ev.kind != (outs ? NPUPROF_KIND_FLOW_OUT : NPUPROF_KIND_FLOW_IN) || !w->walk.has_parent) continue;
                    p.track = ev.value;
                    p.start_ns = npuprof_ns_(im, ev.start);
                    /* Why: viewers bind an arrow to the slice around its stamp, and a slice's end is outside. */
                    const int64_t parent_end = npuprof_ns_(im, w->walk.parent_end);
                    if (p.start_ns >= parent_end) p.start_ns = parent_end - 1;
                    if (p.start_ns < npuprof_ns_(im, w->walk.parent_start)) continue;
                    p.end_ns = INT64_MIN;
                    p.locator = ev.locator;
                    if (!outs) {
                        p.tid = 0;
                        p.id = ev.tid;
                        if (!after || npuprof_before_(after, &p)) npuprof_keep_least_(w->placed, w->placed_room, &count, &p);
                        continue;
                    }
                    size_t low = 0, high = count;
                    while (low < high) {
                        const size_t middle = low + (high - low) / 2;
                        if (w->placed[middle].track < p.track || (w->placed[middle].track == p.track && w->placed[middle].start_ns < p.start_ns))
                            low = middle + 1;
                        else high = middle;
                    }
                    for (; low < count && w->placed[low].track == p.track; low++)
                        if (w->placed[low].end_ns <= p.start_ns) {
                            w->placed[low].end_ns = p.start_ns;
                            w->placed[low].tid = ev.tid;
                        }
                }
            }
            if (!outs) npuprof_sort_heap_(w->placed, count);
        }
        if (!count) return;
        for (size_t i = 0; i < count; i++) {
            const npuprof_placed_ *a = &w->placed[i];
            if (a->tid) npuprof_json_arrow_(w, "flow", a->locator >> 1, a->tid, a->end_ns - im->origin_ns, (uint32_t)a->id, a->start_ns - im->origin_ns);
        }
        last = w->placed[count - 1];
    }
}

/* The name of a track that is no thread. */
static void npuprof_json_track_name_(npuprof_work_ *w, uint64_t track, uint32_t lane, uint32_t tid, uint32_t sort)
{
    char text[48] = "", number[24];
    const npuprof_device_entry_ *d = NULL;
    uint32_t name = (uint32_t)track;
    if (track >> 56 == NPUPROF_TRACK_DEVICE_) {
        d = npuprof_image_device_(&w->image, (uint32_t)(track >> 32) & 0xFFu);
        name = d ? d->name : 0;
        if (d && (d->pe_count > 1 || (uint32_t)track)) {
            npuprof_copy_text_(text, sizeof text, " PE ");
            npuprof_copy_text_(text + 4, sizeof text - 4, npuprof_decimal_(number, (uint32_t)track));
        }
    }
    if (lane) {
        const size_t n = strlen(text);
        npuprof_copy_text_(text + n, sizeof text - n, " #");
        npuprof_copy_text_(text + n + 2, sizeof text - n - 2, npuprof_decimal_(number, lane + 1));
    }
    npuprof_json_name_(w, "thread_name", tid, name, "", text);
    npuprof_json_sort_(w, "thread_sort_index", tid, sort);
}

static bool npuprof_causality_broken_(const npuprof_event_ *ev, uint64_t start, uint64_t start_error, uint64_t end, uint64_t end_error)
{
    return ev->has_link && ((int64_t)(start + start_error - ev->link.ticks) < 0 || (int64_t)(ev->host_ticks + end_error - end) < 0);
}

static void npuprof_json_placed_(npuprof_work_ *w)
{
    const npuprof_image_ *im = &w->image;
    const uint32_t kinds = 1u << NPUPROF_KIND_DEVICE | 1u << NPUPROF_KIND_FINISHED | 1u << NPUPROF_KIND_ASYNC_BEGIN;
    npuprof_placed_ last;
    npuprof_nears_ near_by;
    npuprof_event_ ev;
    char number[24];
    uint64_t track = 0;
    size_t count;
    memset(&near_by, 0, sizeof near_by);
    for (const npuprof_placed_ *after = NULL; (count = npuprof_next_batch_(im, kinds, after, w->placed, w->placed_room)) > 0; after = &last) {
        for (size_t i = 0; i < count; i++) {
            const npuprof_placed_ *p = &w->placed[i];
            if (!npuprof_decode_again_(im, p->locator, &ev)) continue;
            if (p->track != track) {
                npuprof_clear_lanes_(w);
                track = p->track;
            }
            const uint32_t lane = npuprof_lane_(w, p->start_ns, p->end_ns);
            if (!w->tid[lane] || lane == NPUPROF_LANES_) {
                w->tid[lane] = w->next_tid++;
                npuprof_json_track_name_(w, track, lane, w->tid[lane], w->tid[lane]);
            }
            npuprof_json_open_(w, "X", ev.name, NULL, ev.category, w->tid[lane]);
            npuprof_json_stamp_(w, ",\"ts\":", p->start_ns - im->origin_ns);
            npuprof_json_stamp_(w, ",\"dur\":", p->end_ns - p->start_ns);
            if (ev.kind == NPUPROF_KIND_DEVICE) {
                char text[256];
                uint64_t start = 0, end = 0, start_error = 0, end_error = 0;
                (void)npuprof_host_ticks_(im, &near_by, &ev, ev.start, &start, &start_error);
                (void)npuprof_host_ticks_(im, &near_by, &ev, ev.end, &end, &end_error);
                const uint64_t error = start_error > end_error ? start_error : end_error;
                const bool broken = npuprof_causality_broken_(&ev, start, start_error, end, end_error);
                const char *parts[] = { "\"stamp\":\"", ev.flags & NPUPROF_STAMP_SAMPLED ? "sampled" : "device", "\",\"pe_index\":", NULL,
                                        ",\"start_ticks\":", NULL, ",\"end_ticks\":", NULL, ",\"error_ns\":", NULL,
                                        broken ? ",\"causality\":\"violated\"" : "" };
                const uint64_t numbers[] = { ev.pe, ev.start, ev.end, (uint64_t)npuprof_ns_(im, im->h->first.ticks + error) + 1 };
                size_t n = 0;
                for (size_t part = 0, next = 0; part < sizeof parts / sizeof *parts; part++) {
                    npuprof_copy_text_(text + n, sizeof text - n, parts[part] ? parts[part] : npuprof_decimal_(number, numbers[next++]));
                    n += strlen(text + n);
                }
                npuprof_json_args_(w, &ev, text);
            } else {
                npuprof_json_args_(w, &ev, p->unfinished ? "\"unfinished\":true" : p->out_of_range ? "\"stamps_out_of_range\":true"
                                           : ev.kind == NPUPROF_KIND_FINISHED && (int64_t)ev.second < (int64_t)ev.value ? "\"end_before_start\":true" : "");
            }
            npuprof_puts_(&w->out, "}");
            /* The arrow begins with the submitting span; a device span that lies before it gets none. */
            if (ev.kind == NPUPROF_KIND_DEVICE && ev.has_link && ev.link.ticks >= im->clear_ticks &&
                npuprof_ns_(im, ev.link.ticks) <= p->start_ns)
                npuprof_json_arrow_(w, "submit", p->locator >> 1, ev.link.slot, npuprof_trace_ns_(im, ev.link.ticks), w->tid[lane],
                                    p->start_ns - im->origin_ns);
        }
        last = w->placed[count - 1];
    }
}

static void npuprof_json_pauses_(npuprof_work_ *w)
{
    uint32_t id = 0;
    const npuprof_entry_ *e;
    while ((e = npuprof_next_entry_(&w->image, NPUPROF_ENTRY_PAUSE, sizeof(npuprof_pause_entry_), &id)) != NULL) {
        const npuprof_pause_entry_ *pause = (const npuprof_pause_entry_ *)(const void *)e;
        const uint64_t at[2] = { NPUPROF_LOAD_(&pause->from), NPUPROF_LOAD_(&pause->to) };
        for (int i = 0; i < 2; i++)
            if (at[i] && at[i] >= w->image.clear_ticks) {
                npuprof_json_open_(w, "i", 0, i ? "npuprof resumed" : "npuprof paused", 0, 1);
                npuprof_json_stamp_(w, ",\"s\":\"p\",\"ts\":", npuprof_trace_ns_(&w->image, at[i]));
                npuprof_puts_(&w->out, "}");
            }
    }
}

static void npuprof_json_member_(npuprof_out_ *o, const char *key, uint64_t value)
{
    npuprof_puts_(o, key);
    npuprof_put_uint_(o, value);
}

/* How a device's clock was mapped. Rate: between the first and the last anchor of the last epoch, so its uncertainty is
   their two errors over their distance. */
static void npuprof_json_clock_sync_(npuprof_work_ *w, const npuprof_device_entry_ *d)
{
    const npuprof_image_ *im = &w->image;
    npuprof_out_ *o = &w->out;
    npuprof_anchor_ first, last;
    npuprof_nears_ near_by;
    npuprof_event_ ev;
    npuprof_cursor_ c;
    uint32_t block = 0, index = 0, epoch = 0, of_epoch = 0, anchors = 0;
    uint64_t violations = 0, worst = 0, unplaced = 0, spans = 0;
    memset(&first, 0, sizeof first);
    memset(&near_by, 0, sizeof near_by);
    last = first;
    for (const npuprof_anchor_ *a; (a = npuprof_next_anchor_(im, d, &block, &index, &epoch)) != NULL; anchors++) {
        if (!anchors || epoch != of_epoch) first = *a;
        of_epoch = epoch;
        last = *a;
    }
    for (const npuprof_slot_ *slot = npuprof_next_slot_(im, NULL); slot; slot = npuprof_next_slot_(im, slot)) {
        npuprof_rewind_(&c, im, slot);
        while (npuprof_next_event_(&c, &ev)) {
            uint64_t start, end, start_error, end_error;
            if (ev.kind != NPUPROF_KIND_DEVICE || ev.device != d->head.a) continue;
            spans++;
            if (!npuprof_host_ticks_(im, &near_by, &ev, ev.start, &start, &start_error) ||
                !npuprof_host_ticks_(im, &near_by, &ev, ev.end, &end, &end_error)) {
                unplaced++;
                continue;
            }
            if (start_error > worst) worst = start_error;
            if (end_error > worst) worst = end_error;
            violations += npuprof_causality_broken_(&ev, start, start_error, end, end_error);
        }
    }
    const uint64_t ticks = last.device_ticks - first.device_ticks;
    const uint64_t first_at = first.host_before + (first.host_after - first.host_before) / 2;
    const uint64_t last_at = last.host_before + (last.host_after - last.host_before) / 2;
    const uint64_t wobble = (first.host_after - first.host_before) / 2 + (last.host_after - last.host_before) / 2 + 2;
    const uint64_t span_ns = (uint64_t)npuprof_ns_(im, im->h->first.ticks + (last_at - first_at));
    const uint64_t rate_mhz = span_ns ? npuprof_scale_(ticks, 1000000000000u, span_ns) : 0;
    npuprof_puts_(o, "{\"rate_hz\":");
    npuprof_put_milli_(o, (int64_t)rate_mhz);
    /* One device tick of reading granularity at either end, and the host clock's own two anchors. */
    uint64_t ppt = last_at > first_at ? npuprof_scale_(wobble, 1000000000000u, last_at - first_at) : 0;
    if (ticks) ppt += npuprof_scale_(1, 1000000000000u, ticks);
    if (im->h->last.ticks > im->h->first.ticks && !im->h->clock_hz)
        ppt += npuprof_scale_(im->h->first.error_ticks + im->h->last.error_ticks + 1, 1000000000000u, im->h->last.ticks - im->h->first.ticks);
    npuprof_puts_(o, ",\"rate_uncertainty_ppm\":");
    npuprof_put_milli_(o, (int64_t)(ppt / 1000 + 1));
    npuprof_puts_(o, ",\"nominal_hz\":");
    if (d->nominal_hz) npuprof_put_uint_(o, d->nominal_hz);
    else npuprof_puts_(o, "null");
    npuprof_puts_(o, ",\"drift_ppm\":");
    if (d->nominal_hz && rate_mhz) {
        const uint64_t nominal = d->nominal_hz * 1000;
        const bool slow = rate_mhz < nominal;
        const uint64_t ppb = npuprof_scale_(slow ? nominal - rate_mhz : rate_mhz - nominal, 1000000000u, nominal);
        npuprof_put_milli_(o, slow ? -(int64_t)ppb : (int64_t)ppb);
    } else {
        npuprof_puts_(o, "0.000");
    }
    npuprof_json_member_(o, ",\"max_error_ns\":", worst ? (uint64_t)npuprof_ns_(im, im->h->first.ticks + worst) + 1 : 0);
    npuprof_json_member_(o, ",\"anchors\":", anchors);
    npuprof_json_member_(o, ",\"wraps\":", NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_WRAPS]));
    npuprof_json_member_(o, ",\"resets\":", NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_RESETS]));
    npuprof_json_member_(o, ",\"dead_reads\":", NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_DEAD_READS]));
    npuprof_json_member_(o, ",\"torn_reads\":", NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_TORN_READS]));
    npuprof_json_member_(o, ",\"ring_lost\":", NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_RING_LOST]));
    npuprof_json_member_(o, ",\"spans\":", spans);
    npuprof_json_member_(o, ",\"unplaced_spans\":", unplaced);
    npuprof_json_member_(o, ",\"causality_violations\":", violations);
    /* [ns after the first clock anchor, half width in ns, device ticks] of each anchor, the first thousand. */
    npuprof_puts_(o, ",\"anchor_list\":[");
    block = index = 0;
    uint32_t shown = 0;
    for (const npuprof_anchor_ *a; shown < 1000 && (a = npuprof_next_anchor_(im, d, &block, &index, &epoch)) != NULL; shown++) {
        const uint64_t half = (a->host_after - a->host_before + 1) / 2;
        npuprof_puts_(o, shown ? ",[" : "[");
        npuprof_put_int_(o, npuprof_ns_(im, a->host_before + half));
        npuprof_json_member_(o, ",", (uint64_t)npuprof_ns_(im, im->h->first.ticks + half) + 1);
        npuprof_json_member_(o, ",", a->device_ticks);
        npuprof_puts_(o, "]");
    }
    npuprof_puts_(o, "]}");
}

/* Pairs of a type as an object; of a key that comes twice the last. */
static void npuprof_json_pairs_(npuprof_work_ *w, uint32_t type)
{
    const npuprof_image_ *im = &w->image;
    uint32_t id = 0, later_id;
    bool any = false;
    const npuprof_entry_ *e, *later;
    npuprof_puts_(&w->out, "{");
    while ((e = npuprof_next_entry_(im, type, sizeof(npuprof_pair_entry_), &id)) != NULL) {
        const npuprof_pair_entry_ *pair = (const npuprof_pair_entry_ *)(const void *)e;
        const uint32_t value = NPUPROF_LOAD_ACQUIRE_(&pair->b[1]);
        if (!value) continue;
        bool again = false;
        for (later_id = id; !again && (later = npuprof_next_entry_(im, type, sizeof(npuprof_pair_entry_), &later_id)) != NULL;) {
            const npuprof_pair_entry_ *other = (const npuprof_pair_entry_ *)(const void *)later;
            again = NPUPROF_LOAD_ACQUIRE_(&other->b[1]) && npuprof_same_key_(im, pair->b[0], other->b[0]);
        }
        if (again) continue;
        if (any) npuprof_puts_(&w->out, ",");
        any = true;
        npuprof_put_text_(&w->out, im, pair->b[0], true);
        npuprof_puts_(&w->out, ":");
        npuprof_put_text_(&w->out, im, value, true);
    }
    npuprof_puts_(&w->out, "}");
}

static void npuprof_json_metadata_(npuprof_work_ *w)
{
#define NPUPROF_TEXT_(name, text, whole) text,
    static const char *const causes[] = { NPUPROF_LOSSES(NPUPROF_TEXT_) };
#undef NPUPROF_TEXT_
    static const char *const sources[] = { "user", "monotonic", "tsc", "cntvct_el0", "rdtime" };
    const npuprof_image_ *im = &w->image;
    const npuprof_header_ *h = im->h;
    npuprof_out_ *o = &w->out;
    npuprof_puts_(o, "\"metadata\":{\"npuprof\":{\"version\":\"" NPUPROF_VERSION_STRING "\",\"host\":");
    npuprof_put_quoted_(o, h->host);
    npuprof_puts_(o, ",\"program\":");
    npuprof_put_quoted_(o, h->program);
    npuprof_json_member_(o, ",\"pid\":", h->pid);
    npuprof_puts_(o, ",\"start_unix_ns\":");
    npuprof_put_int_(o, h->first.unix_ns + im->origin_ns);
    npuprof_puts_(o, ",\"start_monotonic_ns\":");
    npuprof_put_int_(o, h->first.monotonic_ns + im->origin_ns);
    npuprof_puts_(o, ",\"start_boottime_ns\":");
    npuprof_put_int_(o, h->first.boot_ns + im->origin_ns);
    if (h->traceparent[0]) {
        npuprof_puts_(o, ",\"traceparent\":");
        npuprof_put_quoted_(o, h->traceparent);
    }
    npuprof_puts_(o, ",\"clock\":{\"source\":");
    npuprof_put_quoted_(o, h->clock_source < sizeof sources / sizeof *sources ? sources[h->clock_source] : "unknown");
    npuprof_puts_(o, ",\"hz\":");
    /* ns per tick is multiplier / 2^shift. */
    npuprof_put_milli_(o, (int64_t)(h->clock_hz ? h->clock_hz * 1000 : npuprof_scale_(1000000000000u, (uint64_t)1 << im->shift, im->multiplier)));
    npuprof_json_member_(o, ",\"error_ns\":", (uint64_t)npuprof_ns_(im, h->first.ticks + h->first.error_ticks) + 1);
    npuprof_json_member_(o, "},\"recorded\":", im->events);
    npuprof_puts_(o, ",\"lost\":{");
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) {
        if (i) npuprof_puts_(o, ",");
        npuprof_put_quoted_(o, causes[i]);
        npuprof_json_member_(o, ":", im->lost[i]);
    }
    npuprof_json_member_(o, "},\"threads\":", im->threads);
    npuprof_json_member_(o, ",\"counter_values_not_finite\":", w->skipped_values);
    npuprof_puts_(o, ",\"unused_environment\":");
    npuprof_json_pairs_(w, NPUPROF_ENTRY_ENVIRONMENT);
    npuprof_puts_(o, ",\"user\":");
    npuprof_json_pairs_(w, NPUPROF_ENTRY_METADATA);
    npuprof_puts_(o, ",\"devices\":[");
    const uint32_t devices = NPUPROF_LOAD_(&h->devices);
    for (uint32_t n = 1, any = 0; n <= devices; n++) {
        const npuprof_device_entry_ *d = npuprof_image_device_(im, n);
        if (!d) continue;
        npuprof_puts_(o, any++ ? ",{\"name\":" : "{\"name\":");
        npuprof_put_text_(o, im, d->name, true);
        npuprof_json_member_(o, ",\"pe_count\":", d->pe_count);
        npuprof_puts_(o, ",\"clock_sync\":");
        npuprof_json_clock_sync_(w, d);
        npuprof_puts_(o, "}");
    }
    npuprof_puts_(o, "]}}");
}

static int npuprof_write_json_locked_(npuprof_sink sink)
{
    npuprof_work_ *w = &npuprof_work_area_;
    npuprof_share_scratch_(w, sink);
    npuprof_open_image_(&w->image);
    w->next_tid = w->image.threads + 1;
    npuprof_puts_(&w->out, "{\"traceEvents\":[");
    npuprof_json_open_(w, "M", 0, "process_name", 0, 1);
    npuprof_puts_(&w->out, ",\"args\":{\"name\":");
    npuprof_put_quoted_(&w->out, w->image.h->program[0] ? w->image.h->program : "program");
    npuprof_puts_(&w->out, "}}");
    for (uint32_t tid = 1; tid <= w->image.threads; tid++) {
        const npuprof_slot_ *slot = npuprof_thread_slot_(&w->image, tid);
        if (slot) npuprof_json_thread_(w, slot);
    }
    npuprof_json_placed_(w);
    npuprof_json_flows_(w);
    npuprof_json_pauses_(w);
    npuprof_puts_(&w->out, "\n],\n\"displayTimeUnit\":\"ns\",\n");
    npuprof_json_metadata_(w);
    npuprof_puts_(&w->out, "}\n");
    npuprof_flush_(&w->out);
    return w->out.error;
}
#else
static int npuprof_write_json_locked_(npuprof_sink sink)
{
    (void)sink;
    return -1;
}
#endif

/* ==== CSV ====================================================================================== >>csv ==== */

#ifndef NPUPROF_FREESTANDING
/* The two words of a trace's id: TRACEPARENT's, else from the trace's root span. */
static void npuprof_put_trace_id_(npuprof_out_ *o, const npuprof_image_ *im, uint32_t tid, uint64_t root)
{
    if (im->h->traceparent[0]) {
        npuprof_put_(o, im->h->traceparent + 3, 32);
        return;
    }
    const uint64_t id = npuprof_span_id_(im, tid, root);
    npuprof_put_hex_(o, npuprof_mix_(id ^ im->h->seed_high));
    npuprof_put_hex_(o, id);
}

typedef struct npuprof_row_ {
    uint32_t tid, parent_tid, root_tid, thread;    /* thread: the thread.id column, 0 = empty */
    uint64_t position, parent, root;
    bool has_parent;
    int64_t start_ns, end_ns;                      /* after the first anchor */
} npuprof_row_;

static void npuprof_csv_row_(npuprof_work_ *w, const npuprof_event_ *ev, const npuprof_row_ *row)
{
    static const char *const keys[] = { "dram_base", "pe_index", "execution_index", "instruction_index", "operator_index" };
    const npuprof_image_ *im = &w->image;
    npuprof_out_ *o = &w->out;
    npuprof_put_trace_id_(o, im, row->root_tid, row->root);
    npuprof_puts_(o, ",");
    if (row->has_parent) npuprof_put_hex_(o, npuprof_span_id_(im, row->parent_tid, row->parent));
    else if (im->h->traceparent[0]) npuprof_put_(o, im->h->traceparent + 36, 16);
    npuprof_puts_(o, ",");
    npuprof_put_hex_(o, npuprof_span_id_(im, row->tid, row->position));
    npuprof_puts_(o, ",");
    npuprof_put_int_(o, im->h->first.unix_ns + row->start_ns);
    npuprof_puts_(o, ",");
    npuprof_put_int_(o, im->h->first.unix_ns + row->end_ns);
    npuprof_puts_(o, ",");
    if (ev->category) npuprof_put_text_(o, im, ev->category, false);
    npuprof_puts_(o, ",");
    npuprof_put_text_(o, im, ev->name, false);
    npuprof_puts_(o, ",");
    if (row->thread) npuprof_put_uint_(o, row->thread);
    for (unsigned i = 0; i < 5; i++) {
        uint64_t value = ev->pe;
        const uint32_t type = i == 1 && ev->kind == NPUPROF_KIND_DEVICE ? (uint32_t)NPUPROF_ARG_UINT : npuprof_find_arg_(im, ev, keys[i], &value);
        npuprof_puts_(o, ",");
        if (type == NPUPROF_ARG_INT) npuprof_put_int_(o, (int64_t)value);
        else if (type) npuprof_put_uint_(o, value);
    }
    npuprof_puts_(o, ",");
    npuprof_put_int_(o, row->end_ns - row->start_ns);
    npuprof_puts_(o, "\n");
}

/* Device spans on their way through a track in order: which execution does each belong to? */
typedef struct npuprof_execution_ {
    bool used, warm_up, has_link;
    uint32_t device, pe, tid;
    uint64_t position, execution_index, root;
    uint32_t root_tid;
    bool has_index;
    int64_t start_ns, end_ns, run_end, run_ns, sum_ns;
} npuprof_execution_;

/* Is it a whole execution? Those carry no instruction_index. Is it compute? Not Execution, Load or Store. */
static bool npuprof_is_execution_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    uint64_t unused;
    return npuprof_find_arg_(im, ev, "instruction_index", &unused) == 0;
}
static bool npuprof_text_is_(const npuprof_image_ *im, uint32_t id, const char *text)
{
    size_t length;
    const char *s = npuprof_text_(im, id, &length);
    return length == strlen(text) && memcmp(s, text, length) == 0;
}
static bool npuprof_is_compute_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    return !npuprof_text_is_(im, ev->name, "Execution") && !npuprof_text_is_(im, ev->name, "Load") && !npuprof_text_is_(im, ev->name, "Store");
}

/* Calls back for every device span in order of track and start, with the execution it lies in (NULL: none), and for every
   execution once it is complete.
   Why by containment and index: engines of one PE overlap each other, so nesting alone would hang one under another. */
enum { NPUPROF_EXECUTIONS_ = 16 };
typedef struct npuprof_device_walk_ {
    npuprof_work_ *work;
    void (*span)(struct npuprof_device_walk_ *, const npuprof_event_ *, const npuprof_placed_ *, const npuprof_execution_ *);
    void (*execution)(struct npuprof_device_walk_ *, const npuprof_execution_ *);
    FILE *out;
    uint64_t rows;
} npuprof_device_walk_;

static void npuprof_close_executions_(npuprof_device_walk_ *d, npuprof_execution_ *list, uint64_t before_track, int64_t before_ns)
{
    for (;;) {
        npuprof_execution_ *oldest = NULL;
        for (npuprof_execution_ *e = list; e < list + NPUPROF_EXECUTIONS_; e++) {
            const uint64_t track = (uint64_t)NPUPROF_TRACK_DEVICE_ << 56 | (uint64_t)e->device << 32 | e->pe;
            if (e->used && (track != before_track || e->end_ns < before_ns) && (!oldest || e->start_ns < oldest->start_ns)) oldest = e;
        }
        if (!oldest) return;
        oldest->used = false;
        if (d->execution) d->execution(d, oldest);
    }
}

static void npuprof_walk_devices_(npuprof_device_walk_ *d)
{
    npuprof_work_ *w = d->work;
    const npuprof_image_ *im = &w->image;
    npuprof_execution_ list[NPUPROF_EXECUTIONS_];
    npuprof_placed_ last;
    npuprof_event_ ev;
    size_t count;
    memset(list, 0, sizeof list);
    for (const npuprof_placed_ *after = NULL; (count = npuprof_next_batch_(im, 1u << NPUPROF_KIND_DEVICE, after, w->placed, w->placed_room)) > 0;
         after = &last) {
        for (size_t i = 0; i < count; i++) {
            const npuprof_placed_ *p = &w->placed[i];
            if (!npuprof_decode_again_(im, p->locator, &ev)) continue;
            npuprof_close_executions_(d, list, p->track, p->start_ns);
            uint64_t index = 0;
            const bool has_index = npuprof_find_arg_(im, &ev, "execution_index", &index) != 0;
            const npuprof_execution_ *within = NULL;
            if (npuprof_is_execution_(im, &ev)) {
                npuprof_execution_ *e = list;
                while (e < list + NPUPROF_EXECUTIONS_ - 1 && e->used) e++;
                if (e->used && d->execution) d->execution(d, e);
                memset(e, 0, sizeof *e);
                e->used = true;
                e->device = ev.device;
                e->pe = ev.pe;
                e->tid = ev.tid;
                e->position = ev.position;
                e->has_index = has_index;
                e->execution_index = index;
                e->has_link = ev.has_link;
                e->warm_up = ev.has_link && ev.link.warm_up;
                e->root_tid = ev.has_link ? ev.link.slot : ev.tid;
                e->root = ev.has_link ? ev.link.root_position : ev.position;
                e->start_ns = e->run_end = p->start_ns;
                e->end_ns = p->end_ns;
            } else {
                npuprof_execution_ *best = NULL;
                for (npuprof_execution_ *e = list; e < list + NPUPROF_EXECUTIONS_; e++)
                    if (e->used && e->start_ns <= p->start_ns && p->end_ns <= e->end_ns &&
                        (!has_index || !e->has_index || e->execution_index == index) && (!best || e->start_ns > best->start_ns))
                        best = e;
                if (best && npuprof_is_compute_(im, &ev)) {
                    best->sum_ns += p->end_ns - p->start_ns;
                    if (p->end_ns > best->run_end) {
                        best->run_ns += p->end_ns - (p->start_ns > best->run_end ? p->start_ns : best->run_end);
                        best->run_end = p->end_ns;
                    }
                }
                within = best;
            }
            if (d->span) d->span(d, &ev, p, within);
        }
        last = w->placed[count - 1];
    }
    npuprof_close_executions_(d, list, 0, 0);
}

static void npuprof_csv_device_(npuprof_device_walk_ *d, const npuprof_event_ *ev, const npuprof_placed_ *p, const npuprof_execution_ *within)
{
    npuprof_row_ row;
    memset(&row, 0, sizeof row);
    row.tid = row.root_tid = ev->tid;
    row.position = row.root = ev->position;
    row.start_ns = p->start_ns;
    row.end_ns = p->end_ns;
    if (within) {
        row.has_parent = true;
        row.parent_tid = within->tid;
        row.parent = within->position;
        row.root_tid = within->root_tid;
        row.root = within->root;
    } else if (ev->has_link) {
        row.has_parent = true;
        row.parent_tid = row.root_tid = ev->link.slot;
        row.parent = ev->link.position;
        row.root = ev->link.root_position;
    }
    npuprof_csv_row_(d->work, ev, &row);
}

static int npuprof_write_csv_locked_(npuprof_sink sink)
{
    npuprof_work_ *w = &npuprof_work_area_;
    npuprof_event_ ev;
    npuprof_share_scratch_(w, sink);
    npuprof_open_image_(&w->image);
    const npuprof_image_ *im = &w->image;
    npuprof_puts_(&w->out, "trace_id,parent_span_id,span_id,start,end,cat,name,thread.id,dram_base,pe_index,execution_index,"
                           "instruction_index,operator_index,dur\n");
    for (uint32_t tid = 1; tid <= im->threads; tid++) {
        npuprof_walk_thread_(&w->walk, im, tid);
        while (npuprof_walk_next_(&w->walk, &ev)) {
            if (ev.kind > NPUPROF_KIND_OPERATOR) continue;
            npuprof_row_ row;
            memset(&row, 0, sizeof row);
            row.tid = row.parent_tid = row.root_tid = row.thread = ev.tid;
            row.position = ev.position;
            row.has_parent = w->walk.has_parent;
            row.parent = w->walk.parent;
            row.root = w->walk.root;
            row.start_ns = npuprof_ns_(im, ev.start);
            row.end_ns = npuprof_ns_(im, ev.end);
            if (row.end_ns < row.start_ns) row.end_ns = row.start_ns;
            npuprof_csv_row_(w, &ev, &row);
        }
    }
    npuprof_device_walk_ d;
    memset(&d, 0, sizeof d);
    d.work = w;
    d.span = npuprof_csv_device_;
    npuprof_walk_devices_(&d);
    const uint32_t kinds = 1u << NPUPROF_KIND_FINISHED | 1u << NPUPROF_KIND_ASYNC_BEGIN;
    npuprof_placed_ last;
    size_t count;
    for (const npuprof_placed_ *after = NULL; (count = npuprof_next_batch_(im, kinds, after, w->placed, w->placed_room)) > 0; after = &last) {
        for (size_t i = 0; i < count; i++)
            if (npuprof_decode_again_(im, w->placed[i].locator, &ev)) npuprof_csv_device_(&d, &ev, &w->placed[i], NULL);
        last = w->placed[count - 1];
    }
    npuprof_flush_(&w->out);
    return w->out.error;
}
#endif

/* ==== REPORTS ============================================================================== >>reports ==== */

#if !defined(NPUPROF_FREESTANDING) && !defined(NPUPROF_NO_REPORTS)
static int npuprof_to_nowhere_(void *user, const void *bytes, size_t count)
{
    (void)user;
    (void)bytes;
    (void)count;
    return 0;
}

/* Opens the arena for a report. NULL: there is none. Ends with npuprof_end_report_. */
static npuprof_work_ *npuprof_begin_report_(FILE *out)
{
    static const npuprof_sink nowhere = { npuprof_to_nowhere_, NULL };
    if (!out || !npuprof_lock_scratch_()) return NULL;
    npuprof_share_scratch_(&npuprof_work_area_, nowhere);
    npuprof_open_image_(&npuprof_work_area_.image);
    return &npuprof_work_area_;
}
static npuprof_result npuprof_end_report_(FILE *out)
{
    npuprof_unlock_scratch_();
    return ferror(out) ? NPUPROF_ERR_IO : NPUPROF_OK;
}

/* Every host span of that kind outside warm-up records, thread by thread. */
typedef struct npuprof_spans_ { npuprof_work_ *work; uint32_t tid, kind; } npuprof_spans_;
static bool npuprof_next_span_(npuprof_spans_ *it, npuprof_event_ *ev, uint64_t *duration_ns)
{
    const npuprof_image_ *im = &it->work->image;
    for (;;) {
        while (it->tid && npuprof_walk_next_(&it->work->walk, ev)) {
            if (ev->kind != it->kind || ev->unfinished || it->work->walk.warm_up) continue;
            const int64_t ns = npuprof_ns_(im, ev->end) - npuprof_ns_(im, ev->start);
            *duration_ns = ns > 0 ? (uint64_t)ns : 0;
            return true;
        }
        if (it->tid == im->threads) return false;
        npuprof_walk_thread_(&it->work->walk, im, ++it->tid);
    }
}
static npuprof_spans_ npuprof_spans_of_(npuprof_work_ *w, uint32_t kind)
{
    npuprof_spans_ it;
    it.work = w;
    it.tid = 0;
    it.kind = kind;
    return it;
}

/* The durations of those ranks (0 = the least), exactly, without storing any: eight walks, a byte of the answer each. */
enum { NPUPROF_RANKS_ = 12 };
static void npuprof_order_statistics_(npuprof_work_ *w, uint32_t kind, uint64_t rank[], unsigned ranks, uint64_t value[])
{
    static uint64_t histogram[NPUPROF_RANKS_][256];
    npuprof_event_ ev;
    uint64_t ns;
    for (unsigned i = 0; i < ranks; i++) value[i] = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
        memset(histogram, 0, sizeof histogram);
        npuprof_spans_ it = npuprof_spans_of_(w, kind);
        while (npuprof_next_span_(&it, &ev, &ns))
            for (unsigned i = 0; i < ranks; i++)
                if (shift == 56 || ns >> (shift + 8) == value[i] >> (shift + 8)) histogram[i][ns >> shift & 255]++;
        for (unsigned i = 0; i < ranks; i++) {
            unsigned byte = 0;
            while (byte < 255 && rank[i] >= histogram[i][byte]) rank[i] -= histogram[i][byte++];
            value[i] |= (uint64_t)byte << shift;
        }
    }
}

NPUPROF_API_ npuprof_result npuprof_print_summary(FILE *out)
{
    static const unsigned per_mille[] = { 500, 900, 950, 970, 990, 999 };
    enum { COUNT = sizeof per_mille / sizeof *per_mille };
    npuprof_work_ *w = npuprof_begin_report_(out);
    if (!w) return NPUPROF_ERR_ARGUMENT;
    npuprof_event_ ev;
    uint64_t count = 0, total = 0, least = UINT64_MAX, most = 0, ns;
    npuprof_spans_ it = npuprof_spans_of_(w, NPUPROF_KIND_INFERENCE);
    while (npuprof_next_span_(&it, &ev, &ns)) {
        count++;
        total += ns;
        if (ns < least) least = ns;
        if (ns > most) most = ns;
    }
    fprintf(out, "================================================\n  Inference Results Summary\n"
                 "================================================\n");
    fprintf(out, "Inference counts                : %llu\n", (unsigned long long)count);
    if (count) {
        uint64_t rank[2 * COUNT], value[2 * COUNT], quantile[COUNT];
        for (unsigned i = 0; i < COUNT; i++) {
            rank[2 * i] = (count - 1) * per_mille[i] / 1000;
            rank[2 * i + 1] = rank[2 * i] + 1 < count ? rank[2 * i] + 1 : rank[2 * i];
        }
        npuprof_order_statistics_(w, NPUPROF_KIND_INFERENCE, rank, 2 * COUNT, value);
        for (unsigned i = 0; i < COUNT; i++) {
            const uint64_t part = (count - 1) * per_mille[i] % 1000;
            quantile[i] = value[2 * i] + ((value[2 * i + 1] - value[2 * i]) * part + 500) / 1000;
        }
        fprintf(out, "Min latency (ns)                : %llu\n", (unsigned long long)least);
        fprintf(out, "Max latency (ns)                : %llu\n", (unsigned long long)most);
        fprintf(out, "Mean latency (ns)               : %llu\n", (unsigned long long)((2 * total + count) / (2 * count)));
        fprintf(out, "Median latency (ns)             : %llu\n", (unsigned long long)quantile[0]);
        for (unsigned i = 1; i < COUNT; i++)
            fprintf(out, "%u.%u percentile Latency (ns)    : %llu\n", per_mille[i] / 10, per_mille[i] % 10, (unsigned long long)quantile[i]);
        fprintf(out, "Total latency (ns)              : %llu\n", (unsigned long long)total);
    }
    return npuprof_end_report_(out);
}

/* The trace id as 32 hex digits, through the writer that the CSV uses. */
static const char *npuprof_trace_id_text_(npuprof_work_ *w, uint32_t tid, uint64_t root, char room[40])
{
    w->out.used = 0;
    npuprof_put_trace_id_(&w->out, &w->image, tid, root);
    memcpy(room, w->out.bytes, 32);
    room[32] = 0;
    w->out.used = 0;
    return room;
}

/* A name as a table cell: control bytes as '?', cut to the room. */
static const char *npuprof_cell_(const npuprof_image_ *im, uint32_t id, char *room, size_t bytes)
{
    size_t length;
    const char *text = npuprof_text_(im, id, &length);
    length = npuprof_cut_(text, length, bytes - 1);
    for (size_t i = 0; i < length; i++) room[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7F ? '?' : text[i];
    room[length] = 0;
    return room;
}

static npuprof_result npuprof_print_spans_(FILE *out, uint32_t kind)
{
    npuprof_work_ *w = npuprof_begin_report_(out);
    if (!w) return NPUPROF_ERR_ARGUMENT;
    npuprof_event_ ev;
    uint64_t ns;
    char trace[40], name[49];
    const bool operators = kind == NPUPROF_KIND_OPERATOR;
    if (operators) fprintf(out, "%-32s  %-16s  %9s  %-24s  %14s  %12s\n", "trace_id", "span_id", "thread.id", "name", "operator_index", "dur");
    else fprintf(out, "%-32s  %-16s  %9s  %12s\n", "trace_id", "span_id", "thread.id", "dur");
    npuprof_spans_ it = npuprof_spans_of_(w, kind);
    while (npuprof_next_span_(&it, &ev, &ns)) {
        uint64_t index = 0;
        fprintf(out, "%s  %016llx  %9u  ", npuprof_trace_id_text_(w, ev.tid, w->walk.root, trace),
                (unsigned long long)npuprof_span_id_(&w->image, ev.tid, ev.position), (unsigned)ev.tid);
        if (operators) {
            (void)npuprof_find_arg_(&w->image, &ev, "operator_index", &index);
            fprintf(out, "%-24s  %14lld  ", npuprof_cell_(&w->image, ev.name, name, sizeof name), (long long)index);
        }
        fprintf(out, "%12llu\n", (unsigned long long)ns);
    }
    return npuprof_end_report_(out);
}
NPUPROF_API_ npuprof_result npuprof_print_inferences(FILE *out) { return npuprof_print_spans_(out, NPUPROF_KIND_INFERENCE); }
NPUPROF_API_ npuprof_result npuprof_print_external_operators(FILE *out) { return npuprof_print_spans_(out, NPUPROF_KIND_OPERATOR); }

static void npuprof_print_execution_(npuprof_device_walk_ *d, const npuprof_execution_ *e)
{
    char trace[40], index[24] = "";
    if (e->warm_up) return;
    if (e->has_index) snprintf(index, sizeof index, "%llu", (unsigned long long)e->execution_index);
    const int64_t total = e->end_ns - e->start_ns;
    fprintf(d->out, "%s  %016llx  %8u  %15s  %12lld  %12lld  %12lld  %12lld\n", npuprof_trace_id_text_(d->work, e->root_tid, e->root, trace),
            (unsigned long long)npuprof_span_id_(&d->work->image, e->tid, e->position), (unsigned)e->pe, index, (long long)total,
            (long long)e->run_ns, (long long)(total - e->run_ns), (long long)e->sum_ns);
}

NPUPROF_API_ npuprof_result npuprof_print_npu_executions(FILE *out)
{
    npuprof_device_walk_ d;
    memset(&d, 0, sizeof d);
    d.work = npuprof_begin_report_(out);
    if (!d.work) return NPUPROF_ERR_ARGUMENT;
    d.out = out;
    d.execution = npuprof_print_execution_;
    fprintf(out, "%-32s  %-16s  %8s  %15s  %12s  %12s  %12s  %12s\n", "trace_id", "span_id", "pe_index", "execution_index", "NPU Total",
            "NPU Run", "NPU IoWait", "NPU Sum");
    npuprof_walk_devices_(&d);
    return npuprof_end_report_(out);
}

/* Totals by name, kept in the sorting room of the scratch from its far end. */
typedef struct npuprof_total_ { uint32_t name, pad; uint64_t count, ns; } npuprof_total_;
typedef struct npuprof_totals_ { npuprof_device_walk_ walk; npuprof_total_ *list; size_t count, room; uint64_t ns, others; } npuprof_totals_;

static void npuprof_add_operator_(npuprof_device_walk_ *d, const npuprof_event_ *ev, const npuprof_placed_ *p, const npuprof_execution_ *within)
{
    npuprof_totals_ *t = (npuprof_totals_ *)(void *)d;
    const npuprof_image_ *im = &d->work->image;
    if (!npuprof_is_compute_(im, ev) || (within ? within->warm_up : ev->has_link && ev->link.warm_up)) return;
    const uint64_t ns = (uint64_t)(p->end_ns - p->start_ns);
    size_t i = 0, length, other_length;
    const char *name = npuprof_text_(im, ev->name, &length);
    /* Why not by id alone: two threads may have stored one name twice. */
    for (; i < t->count; i++) {
        if (t->list[i].name == ev->name) break;
        const char *other = npuprof_text_(im, t->list[i].name, &other_length);
        if (length == other_length && memcmp(name, other, length) == 0) break;
    }
    t->ns += ns;
    if (i == t->count) {
        if (t->count == t->room) {
            t->others++;
            return;
        }
        memset(&t->list[i], 0, sizeof t->list[i]);
        t->list[i].name = ev->name;
        t->count++;
    }
    t->list[i].count++;
    t->list[i].ns += ns;
}

NPUPROF_API_ npuprof_result npuprof_print_npu_operators(FILE *out)
{
    npuprof_totals_ t;
    char name[49];
    memset(&t, 0, sizeof t);
    npuprof_work_ *w = t.walk.work = npuprof_begin_report_(out);
    if (!w) return NPUPROF_ERR_ARGUMENT;
    const size_t half = w->placed_room / 2;
    t.list = (npuprof_total_ *)(void *)(w->placed + (w->placed_room - half));
    t.room = half * sizeof *w->placed / sizeof *t.list;
    w->placed_room -= half;
    t.walk.span = npuprof_add_operator_;
    npuprof_walk_devices_(&t.walk);
    fprintf(out, "%-40s  %21s  %8s  %14s  %9s\n", "name", "average_elapsed (ns)", "count", "total (ns)", "share (%)");
    for (size_t shown = 0; shown < t.count; shown++) {
        /* The next by mean, descending: a / b > c / d as a * d > c * b. */
        size_t best = t.count;
        for (size_t i = 0; i < t.count; i++) {
            if (t.list[i].pad) continue;
            if (best == t.count) {
                best = i;
                continue;
            }
            const npuprof_u128_ x = npuprof_multiply_(t.list[i].ns, t.list[best].count), y = npuprof_multiply_(t.list[best].ns, t.list[i].count);
            if (x.high > y.high || (x.high == y.high && x.low > y.low)) best = i;
        }
        npuprof_total_ *b = &t.list[best];
        b->pad = 1;
        const uint64_t whole = b->ns / b->count, millionths = npuprof_scale_(b->ns % b->count, 1000000, b->count);
        const uint64_t share = t.ns ? (npuprof_scale_(b->ns, 20000, t.ns) + 1) / 2 : 0;
        fprintf(out, "%-40s  %14llu.%06llu  %8llu  %14llu  %6llu.%02llu\n", npuprof_cell_(&w->image, b->name, name, sizeof name),
                (unsigned long long)whole, (unsigned long long)millionths, (unsigned long long)b->count, (unsigned long long)b->ns,
                (unsigned long long)(share / 100), (unsigned long long)(share % 100));
    }
    if (t.others) fprintf(out, "(%llu spans of further names are in the total only)\n", (unsigned long long)t.others);
    return npuprof_end_report_(out);
}

/* Every memory record, in each thread's order, with the peaks before it. MB = 2^20 bytes. */
NPUPROF_API_ npuprof_result npuprof_print_memory(FILE *out)
{
    npuprof_work_ *w = npuprof_begin_report_(out);
    if (!w) return NPUPROF_ERR_ARGUMENT;
    npuprof_image_ *im = &w->image;
    npuprof_event_ ev;
    npuprof_cursor_ c;
    char tag[81];
    uint64_t max_used = 0, max_allocated = 0, index = 0, used_at = 0, allocated_at = 0, drops = 0, before = 0;
    uint32_t used_tag = 0, allocated_tag = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass) {
            fprintf(out, "records %llu, drops of the allocated figure %llu\n", (unsigned long long)index, (unsigned long long)drops);
            fprintf(out, "peak used %.3f MB at #%llu %s\n", (double)max_used / 1048576, (unsigned long long)used_at, npuprof_cell_(im, used_tag, tag, sizeof tag));
            fprintf(out, "peak allocated %.3f MB at #%llu %s\n", (double)max_allocated / 1048576, (unsigned long long)allocated_at,
                    npuprof_cell_(im, allocated_tag, tag, sizeof tag));
            fprintf(out, "Trace in MB\n%-6s\t%-80s\t%-15s\t%-15s\n", "#Trace", "#Tag", "used", "alloc");
            index = 0;
        }
        for (const npuprof_slot_ *slot = npuprof_next_slot_(im, NULL); slot; slot = npuprof_next_slot_(im, slot)) {
            npuprof_rewind_(&c, im, slot);
            while (npuprof_next_event_(&c, &ev)) {
                if (ev.kind != NPUPROF_KIND_MEMORY) continue;
                if (pass) {
                    fprintf(out, "%-6llu\t%-80s\t%-15.3f\t%-15.3f\n", (unsigned long long)index, npuprof_cell_(im, ev.name, tag, sizeof tag),
                            (double)ev.value / 1048576, (double)ev.second / 1048576);
                } else {
                    drops += index && ev.second < before;
                    before = ev.second;
                    if (!index || ev.value > max_used) {
                        max_used = ev.value;
                        used_at = index;
                        used_tag = ev.name;
                    }
                    if (!index || ev.second > max_allocated) {
                        max_allocated = ev.second;
                        allocated_at = index;
                        allocated_tag = ev.name;
                    }
                }
                index++;
            }
        }
        if (!pass && !index) break;
    }
    if (!index) fprintf(out, "no memory records\n");
    return npuprof_end_report_(out);
}

#endif

/* ==== FILES ================================================================================== >>files ==== */

#ifndef NPUPROF_FREESTANDING
static int npuprof_write_image_locked_(npuprof_sink sink)
{
    npuprof_image_ im;
    npuprof_open_image_(&im);
    const npuprof_header_ *h = im.h;
    const size_t bytes = h->chunks_offset + (size_t)im.chunks * h->chunk_bytes;
    return sink.write(sink.user, im.base, bytes);
}

/* A file that appears whole or not at all: a temporary name beside it, renamed when done. What exists and is no regular
   file (a device, a fifo) is written in place. */
static npuprof_result npuprof_write_file_(const char *path)
{
    char temporary[1100];
    int fd = -1, error = EEXIST;
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    int (*const writer)(npuprof_sink) = dot && strcmp(dot, ".csv") == 0 ? npuprof_write_csv_locked_
                                        : dot && strcmp(dot, ".npuprof") == 0 ? npuprof_write_image_locked_ : npuprof_write_json_locked_;
#ifdef NPUPROF_NO_JSON
    if (writer == npuprof_write_json_locked_) return NPUPROF_ERR_UNSUPPORTED;
#endif
    if (!*path || strlen(path) > 1023) return NPUPROF_ERR_ARGUMENT;
    const bool in_place = npuprof_os_in_place_(path);
    if (in_place) error = npuprof_os_open_(path, &fd);
    for (unsigned n = 0; !in_place && n < 100 && error == EEXIST; n++) {
        snprintf(temporary, sizeof temporary, "%.*s.npuprof-%u-%u.tmp", (int)(slash ? slash + 1 - path : 0), path, (unsigned)npuprof_os_pid_(), n);
        error = npuprof_os_create_(temporary, &fd);
    }
    if (error) return npuprof_os_result_(error);
    npuprof_sink sink;
    sink.write = npuprof_os_write_;
    sink.user = &fd;
    if (npuprof_lock_scratch_()) {
        error = writer(sink);
        npuprof_unlock_scratch_();
    } else {
        error = EBUSY;
    }
    const int close_error = npuprof_os_close_(fd);
    if (!error) error = close_error;
    if (!in_place) {
        if (!error) error = npuprof_os_rename_(temporary, path);
        if (error) npuprof_os_remove_(temporary);
    }
    if (!error) npuprof_s_.own_path = npuprof_hash_(path, strlen(path));
    return npuprof_os_result_(error);
}

/* Appends text; false when it does not fit. */
static bool npuprof_append_(char *to, size_t room, size_t *used, const char *text)
{
    const size_t n = strlen(text);
    if (*used + n + 1 > room) return false;
    memcpy(to + *used, text, n + 1);
    *used += n;
    return true;
}

/* The path with its % sequences filled in. %i becomes the instance. *has_own: it holds %p or %i; *numbered: %i. False: too
   long, or an unknown %. */
static bool npuprof_expand_path_(const char *pattern, unsigned instance, char *to, size_t room, bool *has_own, bool *numbered)
{
    const npuprof_header_ *h = npuprof_s_.header;
    size_t used = 0;
    to[0] = 0;
    *has_own = *numbered = false;
    for (const char *p = pattern; *p; p++) {
        char text[80] = { *p, 0 };
        if (*p == '%') {
            p++;
            if (*p == 'p') snprintf(text, sizeof text, "%u", (unsigned)h->pid);
            else if (*p == 'i') snprintf(text, sizeof text, "%u", instance);
            else if (*p == 'h') snprintf(text, sizeof text, "%.63s", h->host);
            else if (*p == 't') npuprof_os_local_time_(h->first.unix_ns, text, sizeof text);
            else if (*p != '%') return false;
            *has_own |= *p == 'p' || *p == 'i';
            *numbered |= *p == 'i';
        }
        if (!npuprof_append_(to, room, &used, text)) return false;
    }
    return true;
}

/* Puts text before the extension of the last path component. */
static bool npuprof_insert_before_extension_(char *path, size_t room, const char *text)
{
    char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    if (!dot || (slash && dot < slash) || dot == path || (slash && dot == slash + 1)) dot = path + strlen(path);
    const size_t n = strlen(text);
    if (strlen(path) + n + 1 > room) return false;
    memmove(dot + n, dot, strlen(dot) + 1);
    memcpy(dot, text, n);
    return true;
}

/* Did another arena of this process write that trace? Its first event holds our pid, and it is not older than we are.
   Why by the file: arenas of NPUPROF_STATIC files share no symbol. */
static bool npuprof_is_ours_(const char *path)
{
    char head[256], ours[32];
    if (npuprof_s_.own_path == npuprof_hash_(path, strlen(path))) return false;
    const size_t n = npuprof_os_read_head_(path, npuprof_s_.header->first.unix_ns, head, sizeof head - 1);
    head[n] = 0;
    snprintf(ours, sizeof ours, "\"pid\":%u,", (unsigned)npuprof_s_.header->pid);
    return strstr(head, ours) != NULL;
}

/* Writes to a pattern: with %i the first instance whose file can be created, else the path itself; `apart` (after a fork) and
   where another arena of this process was there first, with the pid before the extension. */
static npuprof_result npuprof_write_pattern_(const char *pattern, bool apart, char *path, size_t room)
{
    char suffix[40];
    bool has_own, numbered;
    for (unsigned n = 0; n < 100000; n++) {
        if (!npuprof_expand_path_(pattern, n, path, room, &has_own, &numbered)) return NPUPROF_ERR_ARGUMENT;
        if (!numbered) {
            const unsigned extra = n + (apart && !has_own);
            if (extra == 1) snprintf(suffix, sizeof suffix, "-%u", (unsigned)npuprof_s_.header->pid);
            else snprintf(suffix, sizeof suffix, "-%u-%u", (unsigned)npuprof_s_.header->pid, extra);
            if (extra && !npuprof_insert_before_extension_(path, room, suffix)) return NPUPROF_ERR_ARGUMENT;
            if (npuprof_is_ours_(path)) continue;
            return npuprof_write_file_(path);
        }
        int fd;
        const int error = npuprof_os_create_(path, &fd);
        if (error == EEXIST) continue;
        if (error) return npuprof_os_result_(error);
        (void)npuprof_os_close_(fd);
        const npuprof_result r = npuprof_write_file_(path);
        if (r != NPUPROF_OK) npuprof_os_remove_(path);
        return r;
    }
    return NPUPROF_ERR_IO;
}

static npuprof_result npuprof_write_output_(char *path, size_t room)
{
    const npuprof_state_ *s = &npuprof_s_;
    const size_t n = strlen(s->output_path);
    if (n == 0 || s->output_path[n - 1] != '/') return npuprof_write_pattern_(s->output_path, s->forked, path, room);
    if (n > 900) return NPUPROF_ERR_ARGUMENT;
    static const char *const kind[2] = { "trace", "csv" };
    npuprof_result r = NPUPROF_OK;
    char directory[1024], pattern[1100];
    bool has_own, numbered;
    if (!npuprof_expand_path_(s->output_path, 0, directory, sizeof directory, &has_own, &numbered)) return NPUPROF_ERR_ARGUMENT;
    int error = npuprof_os_make_directory_(directory);
    for (int i = 0; i < 2 && r == NPUPROF_OK; i++) {
        snprintf(path, room, "%.900sprofiling_%s", directory, kind[i]);
        if (!error) error = npuprof_os_make_directory_(path);
        if (error) return npuprof_os_result_(error);
        snprintf(pattern, sizeof pattern, "%.900sprofiling_%s/profiling_%%t_%%i.%s", s->output_path, kind[i], i ? "csv" : "json");
        r = npuprof_write_pattern_(pattern, false, path, room);
    }
    return r;
}

/* Words of the category list that never occurred. */
static void npuprof_report_unseen_categories_(void)
{
    const npuprof_state_ *s = &npuprof_s_;
    const npuprof_categories_ *list = s->categories;
    unsigned n = 0;
    for (const char *p = list ? list->words : ""; *p; n++) {
        char word[sizeof list->words];
        size_t length = 0;
        while (p[length] && p[length] != ',') length++;
        memcpy(word, p, length);
        word[length] = 0;
        if (n < 32 && !(NPUPROF_LOAD_(&list->seen) >> n & 1))
            npuprof_refuse_env_(s->categories_from[0] ? s->categories_from : "categories", word, "this category never occurred");
        p += length + (p[length] == ',');
    }
}

/* At normal exit. */
static void npuprof_exits_(void)
{
    char path[1100] = "";
    if (NPUPROF_LOAD_ACQUIRE_(&npuprof_ready_state_) != 2 || !npuprof_s_.write_at_exit) return;
    npuprof_stop();
    npuprof_report_unseen_categories_();
    const npuprof_result r = npuprof_write_output_(path, sizeof path);
    if (r == NPUPROF_ERR_ARGUMENT) fprintf(stderr, "npuprof: %s: the path is too long or holds an unknown %% sequence; nothing written\n", npuprof_s_.output_path);
    else if (r != NPUPROF_OK) fprintf(stderr, "npuprof: %s: %s\n", path, npuprof_result_string(r));
}
#endif

/* ==== PUBLIC ================================================================================ >>public ==== */

NPUPROF_API_ npuprof_result npuprof_dump(const char *path)
{
#ifndef NPUPROF_FREESTANDING
    if (!path) return NPUPROF_ERR_ARGUMENT;
    if (!npuprof_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    return npuprof_write_file_(path);
#else
    (void)path;
    return NPUPROF_ERR_UNSUPPORTED;
#endif
}

NPUPROF_API_ npuprof_result npuprof_write_json(npuprof_sink sink)
{
    if (!sink.write) return NPUPROF_ERR_ARGUMENT;
#ifdef NPUPROF_NO_JSON
    return NPUPROF_ERR_UNSUPPORTED;
#else
    if (!npuprof_lock_scratch_()) return NPUPROF_ERR_ARENA_SIZE;
    const int error = npuprof_write_json_locked_(sink);
    npuprof_unlock_scratch_();
#ifndef NPUPROF_FREESTANDING
    return npuprof_os_result_(error);
#else
    return error ? NPUPROF_ERR_IO : NPUPROF_OK;
#endif
#endif
}

NPUPROF_API_ void npuprof_get_stats(npuprof_stats *out)
{
    memset(out, 0, sizeof *out);
    if (!npuprof_lock_scratch_()) return;
    npuprof_image_ *im = &npuprof_work_area_.image;
    const npuprof_header_ *h = npuprof_s_.header;
#define NPUPROF_WHOLE_(name, text, whole) whole,
    static const bool is_whole[] = { NPUPROF_LOSSES(NPUPROF_WHOLE_) };
#undef NPUPROF_WHOLE_
    npuprof_open_image_(im);
    out->recorded = im->events;
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) {
        out->lost_by_cause[i] = im->lost[i];
        if (is_whole[i]) out->lost += im->lost[i];
    }
    out->bytes_used = im->table_used + (uint64_t)NPUPROF_LOAD_(&h->sites) * 4;
    for (const npuprof_slot_ *slot = npuprof_next_slot_(im, NULL); slot; slot = npuprof_next_slot_(im, slot)) {
        uint32_t hops = 0;
        for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&slot->first_chunk); at && at <= im->chunks && hops <= im->chunks; hops++) {
            const npuprof_chunk_ *chunk = npuprof_image_chunk_(im, at - 1);
            npuprof_event_ ev;
            bool shown;
            uint32_t n = 0;
            for (uint32_t taken = 1; n < im->units && taken; n += taken) taken = npuprof_decode_(im, chunk, n, false, &ev, &shown);
            out->bytes_used += (uint64_t)n * 16;
            at = NPUPROF_LOAD_ACQUIRE_(&chunk->next);
        }
    }
    out->bytes_total = h->arena_bytes;
    out->threads = NPUPROF_LOAD_(&h->threads);
    npuprof_unlock_scratch_();
}

NPUPROF_SHADOW_POP_
NPUPROF_END_C_

#endif /* NPUPROF_IMPLEMENTATION */

/* MIT License

   Copyright (c) the npuprof authors

   Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
   documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
   rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
   persons to whom the Software is furnished to do so, subject to the following conditions:

   The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
   Software.

   THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
   WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
   COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
   OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE. */

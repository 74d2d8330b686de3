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
             PROF_SCOPE_ARGS("demo", "step", PROF_ARGS(PROF_ARG("i", i)));
             PROF_COUNTER("result", square(i));
         }
         return npuprof_dump("hello.json");   // NPUPROF_OK is 0
     }

   Run it and open hello.json in https://ui.perfetto.dev. To trace a program that is already instrumented, set
   NPUPROF_OUTPUT_PATH=t.json in the environment; no line of code changes.

   WHAT IT DOES NOT DO
   No sampling, no viewer, no daemon, no network, no kernel module, no symbolization, no heap, no thread of
   its own. It writes to no device register.

   MACROS AND FUNCTIONS
   >>public/macros lists the macros, >>public/args the arguments, >>public/api the functions; each comment
   there is the contract. Order of arguments: PROF_* take (category, name), as Perfetto, Chrome and minitrace
   do; WITH_*_PROFILER take (name, category), as the reference system does.

   KNOBS (macros to define before the include; >>public/config has defaults and ranges)
     NPUPROF_IMPLEMENTATION   one file of the program: it gets the code
     NPUPROF_OFF              any file: every npuprof name becomes a no-op there
     NPUPROF_STATIC           the implementing file: all names are private to it, and it has its own arena
     NPUPROF_ARENA_BYTES      the implementing file: size of the static arena, default 16 MiB
     NPUPROF_SCRATCH_BYTES    the implementing file: deprecated; what writers and reports may map
     NPUPROF_NOW() NPUPROF_NOW_HZ NPUPROF_NOW_BITS   every file: your own clock, its rate and its width
     NPUPROF_NO_JSON NPUPROF_NO_REPORTS              the implementing file: leave that part out
     NPUPROF_RECORD_ONLY      the implementing file: recorder and image alone; no other output, no environment
     NPUPROF_AUTO             the implementing file: records functions without marks; compile the files with
                              -finstrument-functions. NPUPROF_AUTO_FUNCTIONS: how many are looked up fast
     NPUPROF_NO_SOURCE                               any file: leave out file and line of its call sites
     NPUPROF_NPU_RECORDS      every file: with NPUPROF_FREESTANDING, for completion records (npuprof_npu.h)
     NPUPROF_FREESTANDING     every file: for a microcontroller. With it: NPUPROF_CONTEXT() NPUPROF_CONTEXTS
                              (tasks, cores), NPUPROF_MASK() NPUPROF_NAMES_SECTION NPUPROF_WHEN_FULL
                              NPUPROF_CORES; see examples/firmware

   THREADS
   Any thread may call every macro and function, except where a comment says otherwise. A thread takes a slot
   at its first record and frees it when it ends; its tid in the outputs is the number of that slot. Signal
   handlers may record. A handler that interrupts a record being written gets a context of its own; the
   outputs show it on the same thread.

   WHEN THE ARENA IS FULL
     NPUPROF_KEEP_OLDEST  (default) later spans and events are lost and counted.
     NPUPROF_KEEP_NEWEST  the oldest chunk of all threads is recycled, and its records are counted as lost.
                          While a writer or report reads, no chunk is recycled, and a thread that needs one
                          loses records.
     NPUPROF_STREAM       the thread that fills a chunk hands it to the sink. A thread that finds no free
                          chunk waits for the sink; a signal handler that interrupted a record does not wait.
   Every loss is counted by cause, exactly: recorded + lost = executed. The counts are in every output.
   A thread may have 253 spans open (125 in arenas below 1 MiB, 29 below 128 KiB, 13 below 16 KiB, 5 below
   4 KiB). Spans nested deeper may be counted as lost: it happens once their chunk is full.

   WHEN THE PROCESS DIES
   Put the arena into a mapped file (NPUPROF_ARENA_PATH in the environment, or npuprof_desc.arena_path). The
   file then holds everything recorded, however the process ends: closed spans whole, open ones marked
   unfinished. npuprof-convert reads it. It can also read while the process runs; it then shows the chunks
   that do not change meanwhile, and recorded + lost is still what was executed. After fork the child starts
   with an empty arena and files of its own.

   CLOCKS
   A record holds raw ticks. They come from NPUPROF_NOW() if you define it; else from rdtsc (if the CPU says
   it is invariant), cntvct_el0 or rdtime; else from the monotonic clock. The reader turns them into
   nanoseconds, with clock anchors taken at the start and at the end of the trace. It also turns device stamps
   into host time, from the device's own anchors, with an error bound (npuprof_npu.h).

   ERRORS
   A function that can fail returns npuprof_result. 0 is NPUPROF_OK; npuprof_result_string() gives the
   sentence for a code. The macros cannot fail: they count what they lose. The library never aborts or prints
   unasked, and recording allocates nothing. One exception: if the environment asks for something that cannot
   be done (a bad value, a file that cannot be written), stderr gets one line about it.

   OFF
   With NPUPROF_OFF the macros leave no code, no string and no symbol. Their arguments are still type-checked.
   Functions become inline stubs that return NPUPROF_OK and set their outputs to zero.

   OUTPUT
     npuprof_dump("t.json")      Chrome trace JSON, for Perfetto, chrome://tracing and speedscope
     npuprof_dump("t.csv")       CSV: one row a span, then one row for the peak of each memory pool
     npuprof_dump("t.npuprof")   the image: it holds everything, and npuprof-convert reads it
     npuprof_print_summary(f)    and its siblings: reports to a FILE*

   OPERATORS (`tools/npuprof.py report` and NPUPROF_OUTPUT_PATH=d/ make the Neural Engine table of them)
   A span with the argument ne.type is an operator of a network; the span's name is the operator's. All other
   keys are optional. In a list, ";" separates tensors; in a shape, "x" separates dimensions:
     ne.type                          PROF_STR   "InnerProduct"
     ne.post_op                       PROF_STR   what is fused into it: "gelu_tanh"
     ne.input_names, ne.output_names  PROF_STR   "116:0;641:0;bias:0"
     ne.input_shapes, ne.output_shapes PROF_STR  "1024x256;256x256;256"
     ne.input_dtypes, ne.output_dtypes PROF_STR  "fp32;fp32;fp32"
     ne.weight_shape                  PROF_STR   "256x256"
     ne.sparse_ratio                  PROF_REAL  share of zeros in the weight, 0 to 1
     ne.sparse_support                PROF_BOOL  whether a sparse kernel could do it
     ne.attributes                    PROF_STR   "append_op:sum;src1_perm:1,0"
     ne.reshape_ns                    PROF_INT   time to prepare shapes; 0: they did not change
     ne.forward_ns                    PROF_INT   time of the kernel
   A macro takes its arguments when the span begins. PROF_RESULT adds those that you know only afterwards.
   Use three levels: PROF_RECORD("model_inference") around spans "Iteration1", "Iteration2", ... around the
   operators. Use PROF_INFERENCE for the iterations if the summary shall list them, and PROF_RECORD_WARM_UP
   around iterations that do not count. examples/digits does all of this.

   COST (`make bench` measures it on your machine)
   A span is two clock reads and one 16-byte record. A disabled span is a load, a compare and a branch.

   MISTAKES PEOPLE MAKE
     - No npuprof_start() and no NPUPROF_OUTPUT_PATH: nothing is recorded.
     - PROF_SCOPE(text) with a run-time string: does not compile, the name must be a literal. Use
       WITH_BASE_PROFILER or PROF_BEGIN.
     - if (x) PROF_SCOPE("a");  It is a declaration and needs a block. Does not compile, in OFF builds too.
     - case 1: PROF_SCOPE("a");  The same. Write case 1: { PROF_SCOPE("a"); ... }
     - goto, or a case label, past a PROF_SCOPE: gcc's C accepts it; C++ and clang refuse it, in OFF builds
       too (except clang++ from 18 on).
     - PROF_SCOPE across a co_await: another thread may end it. Use npuprof_async_begin and npuprof_async_end.
     - PROF_SCOPE in MSVC's C: does not compile. Use PROF_BLOCK("c", "name") { ... } or WITH_BASE_PROFILER, or
       compile as C++, where everything works.
     - Arguments with side effects: they are evaluated only while recording is on.

   TAGS (to search for; a part is its room and name: >>arena/chunks)
         >>public/     what a user's file compiles: knobs, types, functions, macros
         >>numbers/    arithmetic and text; no knowledge of tracing
         >>format/     the image, byte by byte
         >>firmware/   the whole recorder for systems without an operating system
         >>os/         the only calls of the operating system
         >>clock/      ticks, and how they become nanoseconds
         >>arena/      memory, and which thread may touch it
         >>record/     the recording functions behind the macros
         >>control/    start, stop, categories, paths, the environment
         >>read/       the one reader of images
         >>write/      one writer for each output
         >>report/     printed tables, and the measuring of operators
         >>process/    set-up, ends of threads, fork and exit
   ======================================================================================================== */
#if defined(__clang__) && defined(NPUPROF_AUTO)
/* Why: clang puts calls of NPUPROF_AUTO's hooks also into inline functions of the C library, and the hooks
   use those. So none of them may be declared before this. */
#pragma clang attribute push(__attribute__((no_instrument_function)), apply_to = function)
#endif
#if !defined(__cplusplus) && defined(__STDC__) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
/* Why the rest is skipped: this sentence is then the only error. */
#error "npuprof.h: this is C89; compile with -std=c99 or later"
#elif !defined(NPUPROF_H)
#define NPUPROF_H

/* ==== src/public/config.h =========================================================== >>public/config ==== */

/* Version, standard headers, and the knobs.

   A knob is a macro that the user may define before the include. Each comment says which file defines it,
   its default and its range; a value out of range is an #error.
     "implementing file": the one file that defines NPUPROF_IMPLEMENTATION (or NPUPROF_STATIC).
     "every file": all files of the program, with the same value.
   The parts below read the knobs from here and add no defaults of their own. */

#define NPUPROF_VERSION_MAJOR 1
#define NPUPROF_VERSION_MINOR 0
#define NPUPROF_VERSION_PATCH 0
#define NPUPROF_VERSION (NPUPROF_VERSION_MAJOR * 10000 + NPUPROF_VERSION_MINOR * 100 + NPUPROF_VERSION_PATCH)
#define NPUPROF_VERSION_STRING "1.0.0"

#if defined(PROF_SCOPE) || defined(WITH_BASE_PROFILER)
#error "npuprof.h: another header has PROF_SCOPE or WITH_BASE_PROFILER; include npuprof.h first or rename it"
#endif

/* Why: a strict -std=c99 hides clock_gettime() and mmap(). If no system header was included before this one,
   the implementing file asks for them here. If it is too late, >>os/posix stops with an #error. */
#if (defined(NPUPROF_IMPLEMENTATION) || defined(NPUPROF_STATIC)) && !defined(NPUPROF_FREESTANDING) && \
    !defined(NPUPROF_OFF) && \
    !defined(_WIN32) && !defined(_FEATURES_H) && !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE)
#define _DEFAULT_SOURCE 1
#endif

#ifdef __KERNEL__                  /* Linux, which has no headers of C: see examples/kernel/ */
#include <linux/limits.h>
#include <linux/types.h>
#else
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#endif
#ifndef NPUPROF_FREESTANDING
#include <stdio.h>
#endif
#ifdef __cplusplus
extern "C++" {                     /* the user may include this header inside extern "C" */
#include <initializer_list>
}
#endif

/* NPUPROF_ARENA_BYTES: size of the static arena in bytes. Implementing file. Default 16 MiB, freestanding
   4 KiB. At least 2048, freestanding 256. Freestanding also takes 0: no static arena, npuprof_init() gets the
   memory. */
#ifndef NPUPROF_ARENA_BYTES
#ifdef NPUPROF_FREESTANDING
#define NPUPROF_ARENA_BYTES 4096
#else
#define NPUPROF_ARENA_BYTES (16 * 1024 * 1024)
#endif
#endif
#ifdef NPUPROF_FREESTANDING
#define NPUPROF_ARENA_LEAST_ 256
#else
#define NPUPROF_ARENA_LEAST_ 2048
#endif
#if NPUPROF_ARENA_BYTES < NPUPROF_ARENA_LEAST_ && !(defined(NPUPROF_FREESTANDING) && NPUPROF_ARENA_BYTES == 0)
#error "npuprof.h: NPUPROF_ARENA_BYTES must be at least 2048; with NPUPROF_FREESTANDING at least 256, or 0"
#endif

/* NPUPROF_SCRATCH_BYTES: how many bytes of address space writers and reports map for their lanes and tables,
   while they run. Implementing file. Default 4 MiB; at least 1024; not used with NPUPROF_FREESTANDING. Traces
   and tables are complete with any size; the memory tables are the exception, and say so when they leave
   records out. Deprecated: what nobody touches costs nothing, so none needs another size. */
#ifdef NPUPROF_SCRATCH_BYTES
#pragma message("NPUPROF_SCRATCH_BYTES is deprecated: leave it out, the default is for all")
#else
#define NPUPROF_SCRATCH_BYTES (4 * 1024 * 1024)
#endif
#if NPUPROF_SCRATCH_BYTES < 1024
#error "npuprof.h: NPUPROF_SCRATCH_BYTES must be at least 1024"
#endif

/* NPUPROF_NO_JSON: implementing file. Leaves the JSON writer out; calls for JSON return
   NPUPROF_ERR_UNSUPPORTED.
   NPUPROF_NO_REPORTS: implementing file. Leaves npuprof_print_* and npuprof_bench* out; they return
   NPUPROF_ERR_UNSUPPORTED.
   NPUPROF_RECORD_ONLY: implementing file. Both, and more is left out: what is recorded stays in memory until
   npuprof_dump() or npuprof_write_image() writes the image. No CSV, no stream, no mapped arena, no
   environment, no capture control. Functions and members of npuprof_desc for these return
   NPUPROF_ERR_UNSUPPORTED, and npuprof_result_string() says which. Not with NPUPROF_FREESTANDING, which has
   none of it. */
#ifdef NPUPROF_RECORD_ONLY
#ifdef NPUPROF_FREESTANDING
#error "npuprof.h: NPUPROF_RECORD_ONLY is for systems with an OS; NPUPROF_FREESTANDING is smaller without it"
#endif
#ifndef NPUPROF_NO_JSON
#define NPUPROF_NO_JSON
#endif
#ifndef NPUPROF_NO_REPORTS
#define NPUPROF_NO_REPORTS
#endif
#endif

/* NPUPROF_NOW(): every file. An expression of unsigned type that reads your own clock. The clock must count
   up and wrap from all ones to 0. A SysTick of 24 bits that counts down from 0xFFFFFF becomes such a clock as
   0xFFFFFF - SysTick->VAL.
   NPUPROF_NOW_HZ: every file, required with NPUPROF_NOW(). Its rate in Hz.
   NPUPROF_NOW_BITS: every file. Its valid bits, 8 to 64; default: the width of the type of NPUPROF_NOW().
   Without it NPUPROF_NOW() stands in a sizeof outside functions, where gcc refuses statement expressions.
   A clock of fewer than 64 bits is extended. This needs a stamp often enough: if the process takes none for
   longer than 7/8 of a period (freestanding: 99 %; 93 % below 13 bits), time is missing from the trace. */
#if defined(NPUPROF_NOW) && !defined(NPUPROF_NOW_HZ)
#error "npuprof.h: NPUPROF_NOW() needs NPUPROF_NOW_HZ, the rate of that clock in Hz"
#endif
#if !defined(NPUPROF_NOW_BITS) && defined(NPUPROF_NOW)
#define NPUPROF_WIDTH_ ((int)(sizeof(NPUPROF_NOW()) * CHAR_BIT))
#elif !defined(NPUPROF_NOW_BITS)
#define NPUPROF_WIDTH_ 64
#elif NPUPROF_NOW_BITS < 8 || NPUPROF_NOW_BITS > 64
#error "npuprof.h: NPUPROF_NOW_BITS must be 8 to 64"
#else
#define NPUPROF_WIDTH_ NPUPROF_NOW_BITS
#endif
#if defined(NPUPROF_FREESTANDING) && !defined(NPUPROF_NOW) && !defined(NPUPROF_OFF)
#error "npuprof.h: NPUPROF_FREESTANDING needs NPUPROF_NOW() and NPUPROF_NOW_HZ: there is no OS clock"
#endif

/* What happens when the arena is full: npuprof_desc.when_full, or NPUPROF_WHEN_FULL. See >>public/types. */
#define NPUPROF_KEEP_OLDEST 0
#define NPUPROF_KEEP_NEWEST 1
#define NPUPROF_STREAM 2

/* NPUPROF_NO_SOURCE: any file. Leaves file and line of its call sites out of the program and the trace. They
   are what __FILE__ and __LINE__ say; -fmacro-prefix-map shortens paths. Firmware has them only with
   NPUPROF_NAMES_SECTION, where they stay in the ELF file: else they would take flash. */
#ifdef NPUPROF_NO_SOURCE
#define NPUPROF_FILE_ NPUPROF_NULL_
#define NPUPROF_FILE_TEXT_ ""
#define NPUPROF_LINE_ 0
#else
#define NPUPROF_FILE_ __FILE__
#define NPUPROF_FILE_TEXT_ __FILE__
#define NPUPROF_LINE_ __LINE__
#endif

/* NPUPROF_AUTO: implementing file. Records the functions of the files that are compiled with
   -finstrument-functions (gcc, clang), without a mark in them. Each call is a span of the category "auto",
   whose name is the function's address; the tools turn it into the function's name. Not with
   NPUPROF_FREESTANDING. >>record/auto says what is exact.
   NPUPROF_AUTO_FUNCTIONS: implementing file. How many functions are looked up fast: a power of two, 16 to
   1048576, default 16384. Each takes 16 bytes. Beyond it all are recorded, but more slowly. */
#ifndef NPUPROF_AUTO_FUNCTIONS
#define NPUPROF_AUTO_FUNCTIONS 16384
#endif
#if NPUPROF_AUTO_FUNCTIONS < 16 || NPUPROF_AUTO_FUNCTIONS > 1048576 || \
    (NPUPROF_AUTO_FUNCTIONS & (NPUPROF_AUTO_FUNCTIONS - 1)) != 0
#error "npuprof.h: NPUPROF_AUTO_FUNCTIONS must be a power of two, 16 to 1048576"
#endif
#if defined(NPUPROF_AUTO) && defined(NPUPROF_FREESTANDING) && !defined(NPUPROF_OFF)
#error "npuprof.h: NPUPROF_AUTO is for systems with an OS, not for NPUPROF_FREESTANDING; use PROF_SCOPE there"
#endif

/* NPUPROF_THREAD_KEY: implementing file. 1: what a thread has is found by a key of the system, such as
   pthread_getspecific(); 0: by a thread-local variable. Default: 1 where compilers emulate such variables or
   the system allocates them late (Android, Apple, QNX, BSD, mingw's gcc), else 0: Linux, MSVC. Say 1 for
   another compiler that emulates them (-femulated-tls): that takes memory from the heap at a thread's first
   record. With 1 a span takes some nanoseconds more. */
#if defined(NPUPROF_THREAD_KEY) && NPUPROF_THREAD_KEY != 0 && NPUPROF_THREAD_KEY != 1
#error "npuprof.h: NPUPROF_THREAD_KEY must be 0 or 1"
#endif

/* The rest is for NPUPROF_FREESTANDING.

   NPUPROF_WHEN_FULL: implementing file. NPUPROF_KEEP_OLDEST (default), NPUPROF_KEEP_NEWEST or NPUPROF_STREAM.
   Why while compiling: so that nobody has the flash of what he does not use.
   NPUPROF_SINK(bytes, count): implementing file, with NPUPROF_STREAM. Hands bytes on: its value is how many
   of them were taken, 0 for none. In place of desc.sink and npuprof_init(), which take more flash.
   NPUPROF_CORES: implementing file. How many cores record into this arena, default 1.

   NPUPROF_CONTEXTS: every file. How many tasks or cores record, 1 to 256, default 1. Each gets a track.
   NPUPROF_CONTEXT(): every file. The number of the running task or core, 0 to NPUPROF_CONTEXTS - 1, default
   0. An interrupt handler may use the number of what it interrupted, or have one of its own.
   NPUPROF_MASK(), NPUPROF_UNMASK(before): implementing file. Turn interrupts off and back on, and keep other
   cores out, for at most 12 instructions, a clock that is one load included. They do not nest. Default: the
   interrupts of this core. Define them only if several cores record that have no exclusive access
   instructions; the two Cortex-M0+ of an RP2040 need a hardware spin lock.
   NPUPROF_BUILD_ID: implementing file. Address of the GNU build id note that ld --build-id writes, so that a
   RAM dump says which build it is from; npuprof_write_image() says so without it. A linker script gives the
   note a name: .note.gnu.build-id : { build_id = .; KEEP(*(.note.gnu.build-id)) }
   NPUPROF_NAMES_SECTION: every file. Name of a section for call sites and literal names, such as
   "npuprof_names". If the linker script places it as (INFO), names stay in the ELF file and take no flash.
   Needs NPUPROF_NO_JSON. */
#if defined(NPUPROF_WHEN_FULL) && defined(NPUPROF_FREESTANDING)
#define NPUPROF_RING_ (NPUPROF_WHEN_FULL != NPUPROF_KEEP_OLDEST)
#if NPUPROF_WHEN_FULL < NPUPROF_KEEP_OLDEST || NPUPROF_WHEN_FULL > NPUPROF_STREAM
#error "npuprof.h: NPUPROF_WHEN_FULL must be NPUPROF_KEEP_OLDEST, NPUPROF_KEEP_NEWEST or NPUPROF_STREAM"
#endif
#elif defined(NPUPROF_WHEN_FULL)
#error "npuprof.h: NPUPROF_WHEN_FULL is for NPUPROF_FREESTANDING; on a host set npuprof_desc.when_full"
#else
#define NPUPROF_WHEN_FULL NPUPROF_KEEP_OLDEST
#define NPUPROF_RING_ 0
#endif
#if defined(NPUPROF_SINK) && NPUPROF_WHEN_FULL != NPUPROF_STREAM
#error "npuprof.h: NPUPROF_SINK needs NPUPROF_WHEN_FULL NPUPROF_STREAM"
#endif
#if NPUPROF_RING_ && NPUPROF_ARENA_BYTES > 1024 * 1024
#error "npuprof.h: with NPUPROF_KEEP_NEWEST or NPUPROF_STREAM NPUPROF_ARENA_BYTES must be at most 1 MiB"
#endif
#ifndef NPUPROF_CORES
#define NPUPROF_CORES 1
#endif
#if NPUPROF_CORES < 1
#error "npuprof.h: NPUPROF_CORES must be at least 1"
#endif
#ifndef NPUPROF_CONTEXTS
#define NPUPROF_CONTEXTS 1
#endif
#ifndef NPUPROF_CONTEXT
#define NPUPROF_CONTEXT() 0
#endif
#if NPUPROF_CONTEXTS < 1 || NPUPROF_CONTEXTS > 256
#error "npuprof.h: NPUPROF_CONTEXTS must be 1 to 256"
#endif
/* ==== src/public/compiler.h ======================================================= >>public/compiler ==== */

/* What differs between compilers, under one name each; nothing here is for users.

   In order: extern "C"; attributes and cleanup; atomics, three times (gcc and clang; MSVC; others, such as
   tcc, for programs of one thread); floating point and rdtsc; linkage; casts and types inside macros.
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
/* Computes a variable here. Why: a compiler moves it to where it is used, and there interrupts are masked. It
   costs a register, so cores that mask none do not have it. */
#define NPUPROF_KNOWN_(variable) do if (NPUPROF_MASKS_) __asm__ volatile("" : "+r"(variable)); while (0)
#ifndef NPUPROF_FREESTANDING
#define NPUPROF_LOAD_(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define NPUPROF_STORE_(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#else
/* Why volatile and not the atomics: on an 8-bit machine the atomics are function calls. Also, the compiler
   never turns a loop of volatile stores into memset(), which firmware may not have. */
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
#define NPUPROF_LOW_ZEROS_(v) \
    ((unsigned)__builtin_ctzll(v))   /* zero bits below the lowest one; v is not 0 */
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
NPUPROF_OWN_ static inline bool npuprof_test_and_set_(uint32_t *flag)
{
    bool was;
    __asm__ volatile("btsl $0, %1" : "=@ccc"(was), "+m"(*flag) : : "memory");
    return was;
}

NPUPROF_ATTRIBUTE_((always_inline)) NPUPROF_OWN_ static inline bool npuprof_at_least_(const int *value, int least)
{
    bool is;
    __asm__ volatile("cmpl %2, %1" : "=@ccge"(is) : "m"(*value), "ri"(least));
    return is;
}

NPUPROF_OWN_ static inline bool npuprof_differ_(uint32_t a, const uint32_t *b)
{
    bool is;
    __asm__ volatile("cmpl %2, %1" : "=@ccne"(is) : "r"(a), "m"(*b));
    return is;
}

NPUPROF_OWN_ static inline bool npuprof_is_other_(const char *a, const char *const *b)
{
    bool is;
    __asm__ volatile("cmp %2, %1" : "=@ccne"(is) : "r"(a), "m"(*b) : "memory");
    return is;
}

#else /* !(__x86_64__ && __GCC_ASM_FLAG_OUTPUTS__ && !NPUPROF_TSAN_) */
#define npuprof_at_least_(value, least) (NPUPROF_LOAD_(value) >= (least))
#define npuprof_differ_(a, b) ((a) != NPUPROF_LOAD_(b))
#define npuprof_is_other_(a, b) ((a) != NPUPROF_LOAD_ACQUIRE_(b))
NPUPROF_OWN_ static inline bool npuprof_test_and_set_(uint32_t *flag)
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
    NPUPROF_IGNORE_("-Wswitch-default") NPUPROF_IGNORE_("-Wswitch-enum")
#else
#define NPUPROF_QUIET_PUSH_ NPUPROF_SHADOW_PUSH_ NPUPROF_IGNORE_("-Wpragmas") \
    NPUPROF_IGNORE_("-Wdeclaration-after-statement") NPUPROF_IGNORE_("-Wbad-function-cast") \
    NPUPROF_IGNORE_("-Wfloat-equal") NPUPROF_IGNORE_("-Wpadded") NPUPROF_IGNORE_("-Wunused-macros") \
    NPUPROF_IGNORE_("-Wold-style-cast") NPUPROF_IGNORE_("-Wuseless-cast") \
    NPUPROF_IGNORE_("-Wzero-as-null-pointer-constant") NPUPROF_IGNORE_("-Wlong-long") \
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
NPUPROF_OWN_ static inline unsigned npuprof_bits_(uint64_t v)
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
template <class T> NPUPROF_OWN_ static inline T npuprof_volatile_load_(const T *p) { return *(const volatile T *)p; }

template <class T> struct npuprof_same_ { typedef T type; };
template <class T> NPUPROF_OWN_ static inline void npuprof_volatile_store_(T *p, typename npuprof_same_<T>::type v)
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
NPUPROF_OWN_ static inline uint64_t npuprof_interlocked_add_(volatile void *p, size_t bytes, uint64_t v)
{
    return bytes == 8 ? (uint64_t)_InterlockedExchangeAdd64((volatile long long *)p, (long long)v)
                      : (unsigned long)_InterlockedExchangeAdd((volatile long *)p, (long)v);
}

NPUPROF_OWN_ static inline bool npuprof_interlocked_cas_(volatile void *p, void *expected, size_t bytes, uint64_t v)
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
NPUPROF_OWN_ static inline unsigned npuprof_low_zeros_(uint64_t v)
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
NPUPROF_OWN_ static inline bool npuprof_test_and_set_(uint32_t *flag)
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

#define NPUPROF_GLUE2_(a, b) a##b
#define NPUPROF_GLUE_(a, b) NPUPROF_GLUE2_(a, b)
#define NPUPROF_TEXT_OF2_(x) #x
#define NPUPROF_TEXT_OF_(x) NPUPROF_TEXT_OF2_(x)

/* Refuses a name that is no literal in words, where the compiler can. Its own words come, too. */
#if (defined(__GNUC__) || defined(__clang__)) && defined(__cplusplus)
#define NPUPROF_LITERAL_ONLY_(id, name) static_assert(__builtin_constant_p(name), NPUPROF_LITERAL_WORDS_);
#elif (defined(__GNUC__) || defined(__clang__)) && !defined(__TINYC__) && __STDC_VERSION__ >= 201112L
#define NPUPROF_LITERAL_ONLY_(id, name) _Static_assert(__builtin_constant_p(name), NPUPROF_LITERAL_WORDS_);
#elif defined(__GNUC__) && !defined(__TINYC__)
#define NPUPROF_LITERAL_ONLY_(id, name) \
    typedef char NPUPROF_GLUE_(npuprof_name_must_be_a_literal_else_use_WITH_BASE_PROFILER_or_PROF_BEGIN_, \
                               id)[__builtin_constant_p(name) ? 1 : -1] NPUPROF_ATTRIBUTE_((unused));
#else
#define NPUPROF_LITERAL_ONLY_(id, name)
#endif
#define NPUPROF_LITERAL_WORDS_ \
    "npuprof: the name must be a string literal; for another text use WITH_BASE_PROFILER or PROF_BEGIN"

/* Casts and null pointers for macros that expand in the user's file. Why C++ has its own forms: users compile
   with -Wold-style-cast and -Wzero-as-null-pointer-constant. */
#ifdef __cplusplus
#define NPUPROF_CAST_(type, v) (npuprof_cast_<type>(v))            /* of a number or a pointer */
#define NPUPROF_STATIC_CAST_(type, v) (static_cast<type>(v))
#define NPUPROF_ZERO_(type) type()
#define NPUPROF_NULL_ nullptr
extern "C++" {
template <class To, class From> NPUPROF_ALWAYS_INLINE_ To npuprof_cast_(From v) { return static_cast<To>(v); }

template <class To, class From> NPUPROF_ALWAYS_INLINE_ To npuprof_cast_(From *v)
{
    return static_cast<To>(reinterpret_cast<uintptr_t>(v));
}

template <class To> NPUPROF_ALWAYS_INLINE_ To npuprof_cast_(decltype(nullptr)) { return static_cast<To>(0); }
}
#else
#define NPUPROF_CAST_(type, v) ((type)(v))
#define NPUPROF_STATIC_CAST_(type, v) ((type)(v))
#define NPUPROF_ZERO_(type) ((type){0})
#define NPUPROF_NULL_ NULL
#endif

/* These look at the type of v and do not evaluate it. bool counts as int. */
#if defined(_MSC_VER) && defined(__cplusplus)
#define NPUPROF_TYPEOF_(v) decltype((v) + 0)
#else
#define NPUPROF_TYPEOF_(v) __typeof__((v) + 0)   /* MSVC's C has it from 19.39 on */
#endif
#ifdef __cplusplus
extern "C++" {
template <class Of> struct npuprof_number_ {
    enum { is_real = static_cast<Of>(0.5) > 0, is_unsigned = static_cast<Of>(-1) > static_cast<Of>(0) };
};
}
#define NPUPROF_IS_REAL_(v) (npuprof_number_<NPUPROF_TYPEOF_(v)>::is_real)
#define NPUPROF_IS_UNSIGNED_(v) (npuprof_number_<NPUPROF_TYPEOF_(v)>::is_unsigned)
#else
#define NPUPROF_IS_REAL_(v) \
    (NPUPROF_STATIC_CAST_(NPUPROF_TYPEOF_(v), 0.5) > 0)   /* Why not != : -Wfloat-equal */
#define NPUPROF_IS_UNSIGNED_(v) \
    (NPUPROF_STATIC_CAST_(NPUPROF_TYPEOF_(v), -1) > NPUPROF_STATIC_CAST_(NPUPROF_TYPEOF_(v), 0))
#endif
NPUPROF_QUIET_PUSH_
/* ==== src/public/types.h ============================================================= >>public/types ==== */

/* The types and enumerators of the public interface, and what a call site stores.

   Results, policies, causes of loss, then the structs that functions take and fill, then arguments and kinds
   of record. A list that is written as X(...) makes an enum here and tables of texts elsewhere. Losses and
   kinds are stored in images: append to them, never change or reorder. Names with a trailing underscore are
   private. */

NPUPROF_BEGIN_C_

/* Every result code with its sentence. npuprof_result_string() gives "NAME: sentence". For
   NPUPROF_ERR_ARGUMENT it names the argument and function that were refused last on this thread instead; with
   NPUPROF_FREESTANDING it gives the sentence here. */
#define NPUPROF_RESULTS(X)                                                                               \
    X(NPUPROF_OK, "ok")                                                                                  \
    X(NPUPROF_ERR_ARGUMENT, "an argument is missing or out of its range")                                \
    X(NPUPROF_ERR_VERSION, \
      "this file was compiled with another version of npuprof.h than the implementation; rebuild both") \
    X(NPUPROF_ERR_ARENA_SIZE, "the arena is too small or not aligned to 8 bytes; give at least 2048 bytes") \
    X(NPUPROF_ERR_STARTED, "npuprof has begun; call npuprof_init before all other functions of npuprof")  \
    X(NPUPROF_ERR_NOT_FOUND, "no such file or device, or a pipe that nobody reads; check the path")      \
    X(NPUPROF_ERR_ACCESS, "permission denied; check owner and mode of the path")                         \
    X(NPUPROF_ERR_NO_SPACE, \
      "no space left on the device; the file was not written, the data is still in the arena") \
    X(NPUPROF_ERR_IO, "a read or write failed; the file was not written, the data is still in the arena") \
    X(NPUPROF_ERR_UNSUPPORTED, \
      "not supported in this build or on this system; files are .json, .csv or .npuprof") \
    X(NPUPROF_ERR_TABLE_FULL, \
      "the table of names, devices and anchors is full (255 devices at most); give a larger arena") \
    X(NPUPROF_ERR_CATEGORIES, \
      "a category list that cannot be used: give \"a,b\" or \"-a,-b\", not both, up to 255 bytes") \
    X(NPUPROF_ERR_BENCH, "the function that was to be measured reported a failure")                      \
    X(NPUPROF_ERR_NPU_SOURCE, "give exactly one of bar, resource, vfio and read_ticks")                  \
    X(NPUPROF_ERR_NPU_MAP, "this file, device or region cannot be mapped")                               \
    X(NPUPROF_ERR_NPU_DECODE_OFF, \
      "the device's memory decode is off; write 1 to the file `enable` beside its resource files") \
    X(NPUPROF_ERR_NPU_REMOVED, "the device is gone from its bus")                                        \
    X(NPUPROF_ERR_NPU_OWNED, \
      "a driver or another program owns the device's registers; unbind it, or hand over the mapping it has") \
    X(NPUPROF_ERR_NPU_IO_PORT, "this BAR is one of I/O ports, which cannot be mapped")                   \
    X(NPUPROF_ERR_NPU_RANGE, "a register or the ring lies outside the BAR, or is not aligned to its access") \
    X(NPUPROF_ERR_NPU_COUNTER, "the counter's hi_offset, bits, access or order do not fit together")     \
    X(NPUPROF_ERR_NPU_DEAD, "the device does not answer: its registers read all ones or all zeros")      \
    X(NPUPROF_ERR_NPU_STOPPED, "the device's counter does not move")                                     \
    X(NPUPROF_ERR_NPU_RESET, \
      "the device's counter went back: it was reset, not wrapped; a new epoch of device time begins") \
    X(NPUPROF_ERR_NPU_TORN, \
      "the counter's two halves never agreed; the device changes its high word too fast") \
    X(NPUPROF_ERR_NPU_BUSY, \
      "another call is using the device: this one interrupted it in a signal handler, or it has not run " \
      "for seconds") \
    X(NPUPROF_ERR_NPU_AMBIGUOUS, "too long since the last read: the number of wraps is not certain")     \
    X(NPUPROF_ERR_NPU_NO_ANCHOR, "no clock anchor yet; call npuprof_npu_sync first")                     \
    X(NPUPROF_ERR_NPU_NO_RING, "the device was opened without a completion ring")                        \
    X(NPUPROF_ERR_NPU_RING, "the ring's producer index makes no sense; the device may have been reset") \
    X(NPUPROF_ERR_NPU_RATE, \
      "counter.hz is above 10^15, and no counter is that fast; give ticks a second, or 0 if unknown") \
    X(NPUPROF_ERR_NPU_NOT_OPEN, "the device is not open; call npuprof_npu_open first")                   \
    X(NPUPROF_ERR_NPU_NOT_ENABLED, "the device's counter stands: an enable bit that it requires is not set") \
    X(NPUPROF_ERR_NPU_OFF, "the device is powered off: it was not touched")                              \
    X(NPUPROF_ERR_BUSY, \
      "called from a sink, or by a signal handler that interrupted a writer or report; call again when " \
      "that is done")                                                                                     \
    X(NPUPROF_ERR_NPU_CALLS, \
      "as many calls of npuprof_npu_begin are open as there is room for; end them with npuprof_npu_end") \
    X(NPUPROF_ERR_NPU_MEMORY, \
      "the device's tables do not fit into desc.memory, or there is no memory for them")                  \
    X(NPUPROF_ERR_MEMORY, \
      "the system gives no memory to sort the events in; an image needs none: write t.npuprof, convert it")

#define NPUPROF_ENUM_(name, text) name,
typedef enum npuprof_result { NPUPROF_RESULTS(NPUPROF_ENUM_) NPUPROF_RESULT_COUNT } npuprof_result;
#undef NPUPROF_ENUM_

/* What happens when the arena is full.
   NPUPROF_KEEP_OLDEST: later records are lost and counted. NPUPROF_KEEP_NEWEST: the oldest chunk is recycled,
   and its records are counted as lost. NPUPROF_STREAM: full chunks go to a sink; a thread that finds no free
   chunk waits for the sink.
   With NPUPROF_FREESTANDING the policy is NPUPROF_WHEN_FULL, and desc.when_full must say the same. There
   NPUPROF_KEEP_NEWEST replaces the oldest records one by one, in an arena of up to 1 MiB; open spans and
   names stay. While npuprof_write_json(), npuprof_write_image(), npuprof_get_stats() or npuprof_clear() is
   at work, what would be recorded is lost and counted. NPUPROF_STREAM: npuprof_poll() hands parts to the
   sink, and nobody waits; a span that was sent while it was open, and whose end found no room, is shown as
   open, and the end is counted as a note. The writers and npuprof_clear() return NPUPROF_ERR_UNSUPPORTED. */

/* Causes of loss: enumerator, name in the outputs, 1 = a whole span or event was lost, 0 = only a part of
   one. */
#define NPUPROF_LOSSES(X)                                                                        \
    X(NPUPROF_LOST_FULL, "arena_full", 1)        /* no chunk left */                             \
    X(NPUPROF_LOST_NAMES, "names_full", 1)       /* table of names and call sites full */        \
    X(NPUPROF_LOST_DEPTH, "too_deep", 1)         /* too many open spans in a thread */           \
    X(NPUPROF_LOST_CONTEXT, "no_context", 1)     /* no slot for a thread or signal handler */    \
    X(NPUPROF_LOST_OVERWRITTEN, "overwritten", 1) /* recycled under NPUPROF_KEEP_NEWEST */       \
    X(NPUPROF_LOST_SINK, "sink", 1)              /* the sink of NPUPROF_STREAM failed */         \
    X(NPUPROF_LOST_RING, "device_ring", 1)       /* overwritten before npuprof_npu_drain() */    \
    X(NPUPROF_LOST_ARGUMENTS, "arguments", 0)    /* of a span that was recorded, also of one that
                                                    NPUPROF_KEEP_NEWEST overwrote since */ \
    X(NPUPROF_LOST_READING, "reading", 1)        /* NPUPROF_KEEP_NEWEST: a writer or report was running */ \
    X(NPUPROF_LOST_NOTES, "notes", 0)            /* metadata, thread names, pause marks */       \
    X(NPUPROF_LOST_BUSY, "device_busy", 1)       /* device span of a block that could not read the device,
                                                    which was in use: npuprof_npu_read() */ \
    X(NPUPROF_LOST_CALLS, "device_calls", 1)     /* npuprof_npu_begin(): too many, or not ended */ \
    X(NPUPROF_LOST_ENDS, "ends", 0)              /* PROF_END without a PROF_BEGIN on its thread */

#define NPUPROF_ENUM_(name, text, whole) name,
enum { NPUPROF_LOSSES(NPUPROF_ENUM_) NPUPROF_LOST_COUNT };
#undef NPUPROF_ENUM_

/* Where bytes go. write() returns 0 or an errno value. One thread at a time calls it. It must not write,
   print or clear the trace: those calls return NPUPROF_ERR_BUSY.
   As the sink of NPUPROF_STREAM it has three more rules:
   - Recording threads call it. If signal handlers record, a handler that fills a chunk calls it, too, so it
     must then be async-signal safe. The library's own sink for files is.
   - Threads that need a chunk, flush, dump or clear wait until it returns. So it must not take a lock under
     which another thread records or reads.
   - No signal handler may leave it with longjmp(). */
typedef struct npuprof_sink {
    int (*write)(void *user, const void *bytes, size_t count);
    void *user;
} npuprof_sink;

/* A device as the host macros see it. A NULL pointer to one means the host. */
typedef struct npuprof_device {
    const char *name;
    int (*wait)(void *user);       /* waits until the device is idle; its result is ignored */
    void *user;                    /* passed to wait */
    bool wait_around;              /* call wait before both stamps of a span, if the span is recorded */
} npuprof_device;

/* When to record and when to write a file, without a call for it: capture control. Each text is that of the
   environment variable in parentheses; examples/README.md describes them. NULL: none. Strings are copied.
   The library has no thread of its own: it looks at conditions where a PROF_RECORD or PROF_INFERENCE begins
   or ends, and by npuprof_poll(). So with a condition, no signal handler may use these two macros. Files go
   to output_path, each with a number of its own. */
typedef struct npuprof_capture {
    const char *schedule;          /* "wait=10,warmup=5,active=20,repeat=3" (NPUPROF_SCHEDULE) */
    const char *delay, *duration;  /* "1.5s" (NPUPROF_DELAY, NPUPROF_DURATION) */
    const char *trigger;           /* "inference>20ms,last=30s" (NPUPROF_TRIGGER) */
    const char *signal;            /* "USR2:dump" (NPUPROF_SIGNAL) */
    const char *control_path;      /* a file with start, stop or dump in it (NPUPROF_CONTROL) */
    /* Called when recording begins or ends, such as to arm the device's own profiling. By the thread that
       starts or stops it, after the change; a change by a signal handler is told where the next condition is
       looked at. One call at a time; what changes during a call is told behind it. It may use every macro
       and function but npuprof_init(), and must not begin or end recording. It comes before the file of what
       has ended is written. */
    void (*gate)(void *user, bool open);
    void *user;                    /* passed to gate */
} npuprof_capture;

/* Settings for npuprof_init(). Zero in a field means its default. The environment overrides a setting.
   Strings are copied. */
typedef struct npuprof_desc {
    void *arena;                   /* your memory instead of the static arena; aligned to 8 bytes */
    size_t arena_bytes;            /* its size, or that of the mapped file; for the file 0 means
                                      NPUPROF_ARENA_BYTES, the environment's if it has one */
    const char *arena_path;        /* or a file to map as the arena: it survives the process. Takes the %
                                      sequences of NPUPROF_OUTPUT_PATH */
    int when_full;                 /* NPUPROF_KEEP_OLDEST, NPUPROF_KEEP_NEWEST or NPUPROF_STREAM */
    npuprof_sink sink;             /* for NPUPROF_STREAM. Without one, the stream goes to output_path, which
                                      must then end in .npuprof */
    const char *output_path;       /* a file to write at normal exit; does not start recording */
    const char *categories;        /* as npuprof_set_categories() */
    bool populate;                 /* npuprof_init() touches the whole arena, so that no record causes a page
                                      fault; it uses huge pages if the system has them. Costs 0.1 to 0.5 ms a
                                      MiB, and all of that memory. No effect with NPUPROF_FREESTANDING */
    const npuprof_capture *capture;  /* NULL: npuprof_start() and npuprof_stop() alone decide. With
                                      NPUPROF_FREESTANDING: NPUPROF_ERR_UNSUPPORTED */
} npuprof_desc;

/* Counts over the whole arena. recorded + lost = spans and events executed while recording was on. */
typedef struct npuprof_stats {
    uint64_t recorded;             /* spans and events in the arena, and those already streamed */
    uint64_t lost;                 /* spans and events lost, all causes together */
    uint64_t bytes_used;           /* arena bytes that records and names take; a span without arguments
                                      takes 16 */
    uint64_t bytes_total;          /* arena bytes; if an image is read back, those of its arena */
    uint64_t threads;              /* slots: the most threads and contexts that recorded at once */
    uint64_t lost_by_cause[NPUPROF_LOST_COUNT];   /* index: NPUPROF_LOST_* */
    uint64_t captures;             /* files that capture control has written */
    uint64_t captures_failed;      /* files that it could not write; the first failure is in the metadata */
    uint64_t slow;                 /* spans that were slower than the trigger, with and without a file */
} npuprof_stats;

/* The peaks of a memory pool, over all threads in the order of time. An index counts the records of the pool
   from 0. */
typedef struct npuprof_memory_peaks {
    uint64_t records;              /* number of records; if it is 0, all else is 0, too */
    uint64_t used_bytes, used_at;  /* the most bytes used, and the index of the first record with that */
    uint64_t held_bytes;           /* bytes allocated at that record */
    uint64_t allocated_bytes, allocated_at;   /* the most bytes allocated, and the first record with that */
    uint64_t drops;                /* how often the allocated figure became smaller */
} npuprof_memory_peaks;

#ifndef NPUPROF_FREESTANDING
/* An operator for npuprof_bench(). */
typedef struct npuprof_bench_op {
    int (*run)(void *user, intptr_t stream);   /* does the work, or queues it; not 0: it failed, and the
                                                  measurement ends */
    void *user;                    /* passed to run */
    intptr_t stream;               /* passed to run: a queue, numbered as you like */
    uint64_t workspace_bytes;      /* the memory it needs; the result adds it up */
} npuprof_bench_op;

/* A clock to measure with. Both functions get user. */
typedef struct npuprof_bench_clock {
    npuprof_result (*read)(void *user, uint64_t *ticks);
    npuprof_result (*ns)(void *user, uint64_t from, uint64_t to, double *ns);   /* time between two reads */
    void *user;
} npuprof_bench_clock;

enum { NPUPROF_BENCH_REPEATS = 32 };  /* max of npuprof_bench_desc.repeat */

/* Settings for npuprof_bench(). Zero in a field means its default. */
typedef struct npuprof_bench_desc {
    const char *key;               /* up to 63 bytes: caches the result under this key and all settings;
                                      NULL: not cached */
    const npuprof_bench_op *ops;   /* one operator, or a group that is measured together */
    size_t op_count;               /* 0 = 1 */
    int warmup;                    /* runs before the measurement; 0 = 10, -1 = none */
    int number;                    /* runs in a repeat; its latency is their mean; 0 = 10 */
    int repeat;                    /* 0 = 1 */
    const npuprof_device *device;  /* its wait is called before every stamp; NULL, or no wait: a run is over
                                      when it returns */
    npuprof_bench_clock clock;     /* zero = the host's clock; npuprof_npu_clock() gives a device's */
} npuprof_bench_desc;

typedef struct npuprof_bench_result {
    double latency_us[NPUPROF_BENCH_REPEATS];   /* of each repeat: the mean of one run */
    int repeat;                    /* valid entries of latency_us */
    double mean_us, median_us, min_us, max_us;  /* over the repeats */
    double spread;                 /* (max - min) / median; 0 with one repeat */
    bool unstable;                 /* spread is above 0.1: there was other work, the clock rate changed, or
                                      the runs are too short to be timed */
    bool cached;                   /* the result is from the cache; nothing was run */
    uint64_t workspace_bytes;      /* sum over the operators */
} npuprof_bench_result;
#endif /* !NPUPROF_FREESTANDING */

/* One argument of a span. PROF_ARG, PROF_INT and their siblings make it. */
typedef struct npuprof_arg {
    const char *key;
    uint32_t type;                 /* NPUPROF_ARG_*; says which member of value is valid */
    union { int64_t i; uint64_t u; double d; const char *s; } value;
} npuprof_arg;
enum { NPUPROF_ARG_INT = 1, NPUPROF_ARG_UINT, NPUPROF_ARG_REAL, NPUPROF_ARG_BOOL, NPUPROF_ARG_STR };
#define NPUPROF_ARG_SHIFT_ 20      /* bit of a record's word where the type begins */

/* A list of arguments. PROF_ARGS makes it; it is valid until the end of that statement. */
typedef struct npuprof_args { const npuprof_arg *items; size_t count; } npuprof_args;

/* Kinds of record: enumerator, 1 = a span that nests with the other spans of its thread. */
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

#ifdef NPUPROF_FREESTANDING
/* A call site: one constant object for each use of a macro. A record holds its address.
   Why aligned: the two low bits of the address are free, and tell the kind of record. */
typedef struct npuprof_site_ {
    const char *name, *category;
    uint8_t kind;
    uint8_t line[3];               /* the lowest byte first; 0: there is no file */
#ifdef NPUPROF_NAMES_SECTION
    const char *file;
#endif
} NPUPROF_ATTRIBUTE_((aligned(4))) npuprof_site_;
#else
/* A call site: one static object for each use of a macro. Its first record enters it into the arena's
   table. */
#if UINTPTR_MAX > UINT32_MAX
typedef uint64_t npuprof_site_id_;   /* Why 64 bits: the hot path saves a conversion */
#else
typedef uint32_t npuprof_site_id_;
#endif
typedef struct npuprof_site_ {
    npuprof_site_id_ id;           /* in the arena's table; valid while generation is the
                                      arena's */
    uint32_t generation;
    uint32_t kind;
    const char *name, *category, *file;   /* file: NULL with NPUPROF_NO_SOURCE */
    uint32_t line;
} npuprof_site_;

/* What a call site caches: table entries of its argument keys, and of the last name given at run time. */
enum { NPUPROF_KEYS_ = 4 };
typedef struct npuprof_keys_ {
    uint32_t generation;           /* the keys are valid while it is the arena's */
    uint32_t fast;                 /* the call site is valid, too, while it is the arena's fast generation */
    uint64_t word[NPUPROF_KEYS_];  /* first word of an argument's record, without the type */
    const char *key[NPUPROF_KEYS_];
    uint64_t text;                 /* of the last name and category: place of their call site in the table
                                      << 32 | generation. The place is an offset in bytes. With bit 31 set it
                                      is an id, of an entry behind the table's first part */
    const char *file;              /* of the macro, as in npuprof_site_ */
    uint32_t line;
} npuprof_keys_;
#endif /* !NPUPROF_FREESTANDING */

typedef uint32_t npuprof_token_;   /* identifies an open span of this thread; 0 = not recorded. It is
                                      checked before each use: it may be garbage */
/* A token as a parameter. Why as wide as an address on hosts: what is called then need not widen it. */
#ifdef NPUPROF_FREESTANDING
typedef npuprof_token_ npuprof_token_given_;
#else
typedef uintptr_t npuprof_token_given_;
#endif

NPUPROF_END_C_
/* ==== src/public/api.h ================================================================= >>public/api ==== */

/* The public functions.

   Threads: any thread may call a function, unless its comment says otherwise. Signal handlers may call those
   that record: npuprof_async_begin(), npuprof_async_end(), npuprof_span().
   Results: a function that returns npuprof_result returns NPUPROF_OK on success, NPUPROF_ERR_ARGUMENT for a
   NULL or a value out of range (npuprof_result_string() then says which), and NPUPROF_ERR_ARENA_SIZE if there
   is no arena. The comments name the other errors.
   Waiting: functions that write, report or clear take turns: one waits while another thread is in one. Called
   from a sink, or by a signal handler that interrupted one of them, they return NPUPROF_ERR_BUSY. Other
   threads may go on recording meanwhile.
   With NPUPROF_OFF every function is an inline stub. */

NPUPROF_BEGIN_C_

/* NPUPROF_FN_(type, name, (parameters), body when OFF...): declares a function, or defines its stub. Each
   function stands here once, so that ON and OFF cannot differ. */
#ifdef NPUPROF_OFF
#define NPUPROF_FN_(type, name, params, ...) NPUPROF_INLINE_ type name params { __VA_ARGS__ }
#else
#define NPUPROF_FN_(type, name, params, ...) NPUPROF_API_ type name params;
#endif
#define NPUPROF_UNUSED_(x) (void)(x)

/* Sets up the arena and the settings of desc; NULL: all defaults. Optional: without it, the first record uses
   the static arena and the environment. Call it once, before the first npuprof_start(). If desc has an arena,
   call it also before the first PROF_THREAD_NAME and npuprof_npu_open(). Too late: NPUPROF_ERR_STARTED. Other
   errors: NPUPROF_ERR_VERSION, NPUPROF_ERR_ARENA_SIZE, NPUPROF_ERR_CATEGORIES, and those of opening a mapped
   file. The arena's memory is touched only as it fills, unless desc->populate is set; on Linux in pages of
   2 MiB if the arena has 4 MiB or more and is no file. */
#define npuprof_init(desc) npuprof_init_((desc), sizeof(npuprof_desc), NPUPROF_VERSION)
NPUPROF_FN_(npuprof_result, npuprof_init_, (const npuprof_desc *desc, size_t desc_bytes, int version),
            NPUPROF_UNUSED_(desc); NPUPROF_UNUSED_(desc_bytes); NPUPROF_UNUSED_(version); return NPUPROF_OK;)

/* Starts recording of spans and events up to a level, 1 to 9: 1 = kernels and user scopes, 2 = runtime
   detail, higher as you like. Ends a pause. What was recorded before stays. After an error nothing has
   changed. */
NPUPROF_FN_(npuprof_result, npuprof_start, (int level), NPUPROF_UNUSED_(level); return NPUPROF_OK;)
/* Stops recording and keeps the data. A span that is open is still recorded to its end. */
NPUPROF_FN_(npuprof_result, npuprof_stop, (void), return NPUPROF_OK;)
/* Stops recording until npuprof_resume(), and marks the gap in the trace. A second call has no effect.
   NPUPROF_ERR_TABLE_FULL: recording is paused, but the mark was lost and counted. */
NPUPROF_FN_(npuprof_result, npuprof_pause, (void), return NPUPROF_OK;)
/* Ends a pause. No effect without one. */
NPUPROF_FN_(npuprof_result, npuprof_resume, (void), return NPUPROF_OK;)
/* Is a span of level 1 recorded now? Cost: a load and a compare. */
NPUPROF_FN_(bool, npuprof_is_recording, (void), return false;)
#ifndef NPUPROF_FREESTANDING
/* Looks at the conditions of capture control now (npuprof_capture), and does what is due: starts, stops,
   writes a file. For the main loop of a program that has neither PROF_RECORD nor PROF_INFERENCE, or stands
   still for long between them. Returns the first failure to write since the last call. Not from a signal
   handler. */
NPUPROF_FN_(npuprof_result, npuprof_poll, (void), return NPUPROF_OK;)
#endif
/* Discards all spans and events recorded so far, and the counts of losses. Names, devices and clock anchors
   stay. Frees their memory, except the one chunk that each other running thread is filling.
   Not from a signal handler. NPUPROF_ERR_BUSY: nothing was discarded. */
NPUPROF_FN_(npuprof_result, npuprof_clear, (void), return NPUPROF_OK;)
/* Selects categories. "a,b": record only these. "-a,-b": record all but these. NULL or "": record all. A span
   without a category is recorded under a "-" list and not under the other. Memory records have the category
   "memory". spec is copied. NPUPROF_ERR_CATEGORIES: spec mixes both forms, has a "-" without a name,
   or is too long; nothing has changed. Any thread, while others record or call it, too. */
NPUPROF_FN_(npuprof_result, npuprof_set_categories, (const char *spec),
            NPUPROF_UNUSED_(spec); return NPUPROF_OK;)
/* Writes the trace to a file. The extension of path chooses the format: .json, .csv or .npuprof; none means
   JSON; another is NPUPROF_ERR_UNSUPPORTED. File errors: NPUPROF_ERR_NOT_FOUND, _ACCESS, _NO_SPACE, _IO.
   The file appears whole or not at all. It has the mode of the file it replaces. A temporary file that a
   killed dump to the same path left behind is removed. The arena is not changed: a second call writes the
   same bytes if nothing was recorded between and no span is open: those end at the moment of the call.
   The CSV has a row for each span, then a row for the peak of each memory pool: cat is "memory", name is
   `POOL used_bytes=N allocated_bytes=N tag=TAG` of the record with the most used, start and end are its time,
   dur is 0, the other columns are empty. If NPUPROF_SCRATCH_BYTES was too small for all memory records, one
   more such row says so. */
NPUPROF_FN_(npuprof_result, npuprof_dump, (const char *path), NPUPROF_UNUSED_(path); return NPUPROF_OK;)
/* NPUPROF_STREAM: hands everything recorded so far to the sink, with copies of the chunks that threads are
   still filling. This also happens at normal exit. Returns the first failure since the last call. A chunk
   that the sink refuses is lost and counted; the next one is tried again. Not from the sink. With other
   policies it does nothing. With NPUPROF_FREESTANDING: see npuprof_poll(). */
NPUPROF_FN_(npuprof_result, npuprof_flush, (void), return NPUPROF_OK;)
/* Writes the trace as JSON into a sink. NPUPROF_ERR_IO or NPUPROF_ERR_NO_SPACE: the sink returned an errno
   value. NPUPROF_ERR_UNSUPPORTED: built with NPUPROF_NO_JSON. */
NPUPROF_FN_(npuprof_result, npuprof_write_json, (npuprof_sink sink),
            NPUPROF_UNUSED_(sink); return NPUPROF_OK;)
/* Fills *out with counts over the whole arena. Cost: one walk over the arena. After an error *out is
   zero. */
NPUPROF_FN_(npuprof_result, npuprof_get_stats, (npuprof_stats *out),
            if (!out) return NPUPROF_ERR_ARGUMENT;
            *out = NPUPROF_ZERO_(npuprof_stats); return NPUPROF_OK;)
/* Writes the image into a sink: the bytes of a .npuprof file. Errors as npuprof_write_json().
   With NPUPROF_FREESTANDING: in pieces of up to 276 bytes, each with a CRC, so the reader sees what is
   missing or damaged. Names stay in the ELF file; `npuprof-convert --elf` adds them, and refuses an ELF file
   of another build. A record written meanwhile is in the image whole or not at all. If several cores record,
   stop recording first. */
NPUPROF_FN_(npuprof_result, npuprof_write_image, (npuprof_sink sink),
            NPUPROF_UNUSED_(sink); return NPUPROF_OK;)
/* The trace's clock now, in ns since the Unix epoch, monotonic; freestanding: since the trace began. 0 when
   OFF. Cost: one clock read. */
NPUPROF_FN_(int64_t, npuprof_now_ns, (void), return 0;)
/* The sentence for a result code; never NULL, not to be freed. */
NPUPROF_FN_(const char *, npuprof_result_string, (npuprof_result result),
            NPUPROF_UNUSED_(result); return "off";)

/* Begins a span that may end on another thread, such as from job submit to interrupt. id joins begin and end;
   it may be used again after the end. Strings are copied; category may be NULL. Cost: a record and a look-up
   of the name. */
NPUPROF_FN_(void, npuprof_async_begin, (const char *category, const char *name, uint64_t id),
            NPUPROF_UNUSED_(category); NPUPROF_UNUSED_(name); NPUPROF_UNUSED_(id);)
/* Ends the span that npuprof_async_begin() began with this id. */
NPUPROF_FN_(void, npuprof_async_end, (uint64_t id), NPUPROF_UNUSED_(id);)
/* Records a finished span with your own stamps, in ns on the clock of npuprof_now_ns(), on the track with
   that name. Strings are copied. If the end is before the start, the span gets length 0 and a mark. If a
   stamp is more than 13 days outside the trace, the span is drawn at the start of the trace and marked. */
NPUPROF_FN_(void, npuprof_span, (const char *track, const char *category, const char *name, int64_t start_ns,
                                 int64_t end_ns, npuprof_args args),
            NPUPROF_UNUSED_(track); NPUPROF_UNUSED_(category); NPUPROF_UNUSED_(name);
            NPUPROF_UNUSED_(start_ns);
            NPUPROF_UNUSED_(end_ns); NPUPROF_UNUSED_(args);)
/* Stores a key and a value in the trace's metadata: model, firmware, driver version. Both are copied; a later
   value of the same key replaces the first. Works while stopped, too. NPUPROF_ERR_TABLE_FULL: lost and
   counted. */
NPUPROF_FN_(npuprof_result, npuprof_metadata, (const char *key, const char *value),
            NPUPROF_UNUSED_(key); NPUPROF_UNUSED_(value);
            return NPUPROF_OK;)

#ifdef NPUPROF_FREESTANDING
/* Names the track of the caller, as PROF_THREAD_NAME() does, and says the number that the system gives this
   task, by which the trace is joined with those of user space and of the kernel. number 0: it has none. Works
   while stopped, too. NPUPROF_ERR_TABLE_FULL: lost and counted. */
NPUPROF_FN_(npuprof_result, npuprof_task, (const char *name, uint32_t number),
            NPUPROF_UNUSED_(name); NPUPROF_UNUSED_(number); return NPUPROF_OK;)
/* For an RTOS, a scheduler, a clock: only firmware has these. Interrupts may call all of them.

   A number stands for a name, which npuprof_name() gives it, before or after it is used: 0 to
   NPUPROF_NUMBER_MAX. The numbers below NPUPROF_CONTEXTS are the contexts: their names are those of the
   tracks. The others are free, for interrupts and counters. A track is the number of a context. What
   npuprof_switch() and npuprof_enter() begin is on the stack of that context's PROF_BEGIN. */
#define NPUPROF_NUMBER_MAX 65534u
#define NPUPROF_NOBODY UINT32_MAX

/* Names a number. The name is copied; the last one counts. Works while stopped, too. In a ring, this,
   npuprof_metadata() and PROF_THREAD_NAME() cost a look at each record, to take the older one out.
   NPUPROF_ERR_TABLE_FULL: lost and counted. */
NPUPROF_FN_(npuprof_result, npuprof_name, (uint32_t number, const char *name),
            NPUPROF_UNUSED_(number); NPUPROF_UNUSED_(name); return NPUPROF_OK;)
/* From now on `number` runs on that track: a span of 16 bytes up to the next call, which ends it with the
   stamp that begins the next. NPUPROF_NOBODY: nobody runs. Give it a track of its own for each core, and call
   it from one place, such as the scheduler. */
NPUPROF_FN_(void, npuprof_switch, (uint32_t track, uint32_t number),
            NPUPROF_UNUSED_(track); NPUPROF_UNUSED_(number);)
/* Begins and ends a span of 16 bytes on that track, such as an interrupt. They nest. */
NPUPROF_FN_(void, npuprof_enter, (uint32_t track, uint32_t number),
            NPUPROF_UNUSED_(track); NPUPROF_UNUSED_(number);)
NPUPROF_FN_(void, npuprof_leave, (uint32_t track), NPUPROF_UNUSED_(track);)
/* A counter whose name is that of a number. 32 bytes. */
NPUPROF_FN_(void, npuprof_count, (uint32_t number, uint64_t value),
            NPUPROF_UNUSED_(number); NPUPROF_UNUSED_(value);)
/* Reads the clock, so that a clock of few bits does not wrap unseen while nothing is recorded. Call it from a
   tick hook, at least once in a period of the clock. Cost: one clock read. */
NPUPROF_FN_(void, npuprof_tick, (void), )
/* The clock stood still for so many ticks of NPUPROF_NOW_HZ, such as in low power: the trace's time moves on
   by them, and the image draws a span `slept` of 16 bytes. Call it after waking up, before anything is
   recorded; also while stopped. No span may begin or end in between. A span of an earlier record that ends
   within the same tick counts as ended before. npuprof_write_json() on the target draws what was before later
   by that much. If the record did not fit, it is counted as a lost note, and the time does not move on. */
NPUPROF_FN_(void, npuprof_slept, (uint64_t ticks), NPUPROF_UNUSED_(ticks);)
#endif /* NPUPROF_FREESTANDING */

#ifdef NPUPROF_FREESTANDING
/* NPUPROF_WHEN_FULL = NPUPROF_STREAM: hands full parts of 272 bytes, and a header of 96 before every 64 of
   them, to desc.sink or NPUPROF_SINK. Call it often, from one place of low priority, such as an idle hook. It
   never blocks a record: when the arena is full, records are lost and counted.
   Threads: npuprof_poll() and npuprof_flush() are called by one task or interrupt; several need a lock of
   yours around each call.
   desc.sink returns 0: it took all; NPUPROF_SINK_TOOK(n): it took n bytes, 0 for none, and is asked for the
   rest in a later call; an errno value: it failed, and the same bytes come again.
   NPUPROF_ERR_BUSY: the sink did not take all, or another call is at work. NPUPROF_ERR_IO: the sink failed.
   NPUPROF_ERR_ARGUMENT: there is no sink. NPUPROF_ERR_UNSUPPORTED: another NPUPROF_WHEN_FULL.
   npuprof_flush() hands over all, also a part that is not full, and then a header, which says how many
   records were lost until then. The same results. npuprof_stop() before: what is recorded meanwhile is handed
   over, too, so a call while much is recorded may never return NPUPROF_OK. A record in which a task was
   interrupted holds up those behind it: what is called above that task leaves them to a later call.
   Cost: 20,000 instructions a part on a Cortex-M0+, most of them for its CRC-32. */
NPUPROF_FN_(npuprof_result, npuprof_poll, (void), return NPUPROF_OK;)
#endif
#define NPUPROF_SINK_TOOK(count) (-1 - (int)(count))

#ifndef NPUPROF_FREESTANDING
/* Reports. Each prints one table to a FILE*, times in ns, without the spans inside PROF_RECORD_WARM_UP. */

/* The latencies of all PROF_INFERENCE spans: count, min, max, mean, percentiles, total. Percentiles are
   linear interpolation between order statistics (type 7), rounded half up. */
NPUPROF_FN_(npuprof_result, npuprof_print_summary, (FILE *out), NPUPROF_UNUSED_(out); return NPUPROF_OK;)
/* A row for each PROF_INFERENCE: trace id, span id, thread, duration. */
NPUPROF_FN_(npuprof_result, npuprof_print_inferences, (FILE *out), NPUPROF_UNUSED_(out); return NPUPROF_OK;)
/* A row for each execution of a job on a device. NPU Total = NPU Run + NPU IoWait in every row. NPU Run is
   the union of the execution's compute intervals (all spans but Execution, Load, Store), or the device's busy
   counter. NPU Sum is the plain sum of these intervals. "-": a sampled execution without a busy counter, so
   nothing measured when the device worked. */
NPUPROF_FN_(npuprof_result, npuprof_print_npu_executions, (FILE *out),
            NPUPROF_UNUSED_(out); return NPUPROF_OK;)
/* A row for each name of compute span on a device: mean, count, total, share. */
NPUPROF_FN_(npuprof_result, npuprof_print_npu_operators, (FILE *out),
            NPUPROF_UNUSED_(out); return NPUPROF_OK;)
/* A row for each PROF_OPERATOR: its index and duration. */
NPUPROF_FN_(npuprof_result, npuprof_print_external_operators, (FILE *out),
            NPUPROF_UNUSED_(out); return NPUPROF_OK;)
/* For each memory pool, over all threads in the order of time: the peak used and the peak allocated with
   index and tag of their records, the bytes allocated but not used at the peak, how often the allocated
   figure dropped, and every record. */
NPUPROF_FN_(npuprof_result, npuprof_print_memory, (FILE *out), NPUPROF_UNUSED_(out); return NPUPROF_OK;)

/* Fills *out with the peaks of a device's memory pool; NULL is the host's. Pools go by the device's name.
   NPUPROF_ERR_NOT_FOUND: the pool has no records. NPUPROF_ERR_NO_SPACE: the records of some threads are left
   out; give a larger NPUPROF_SCRATCH_BYTES. */
NPUPROF_FN_(npuprof_result, npuprof_get_memory, (const npuprof_device *device, npuprof_memory_peaks *out),
            if (!out) return NPUPROF_ERR_ARGUMENT;
            *out = NPUPROF_ZERO_(npuprof_memory_peaks); NPUPROF_UNUSED_(device); return NPUPROF_OK;)

/* Measures operators: first desc->warmup runs, then desc->repeat times desc->number runs between two stamps.
   Returns when all runs are over. Recording need not be on; if it is, the warm-up runs are inside a warm-up
   record. Calls that use the same device must not overlap. With a key, the result goes into a cache of the
   last 32; a result found there is returned without running anything.
   NPUPROF_ERR_ARGUMENT: a NULL, a negative count, or more than NPUPROF_BENCH_REPEATS. NPUPROF_ERR_BENCH: an
   operator failed. An error of desc->clock is returned as it is. After an error, and when OFF, *out is
   zero. */
NPUPROF_FN_(npuprof_result, npuprof_bench, (const npuprof_bench_desc *desc, npuprof_bench_result *out),
            if (!out) return NPUPROF_ERR_ARGUMENT;
            *out = NPUPROF_ZERO_(npuprof_bench_result); NPUPROF_UNUSED_(desc); return NPUPROF_OK;)
/* Empties the cache of npuprof_bench(). */
NPUPROF_FN_(void, npuprof_bench_reset, (void), )
/* The number of results in the cache. */
NPUPROF_FN_(size_t, npuprof_bench_size, (void), return 0;)
/* Prints the results in the cache, one a row, oldest first, times in us. */
NPUPROF_FN_(npuprof_result, npuprof_print_bench, (FILE *out), NPUPROF_UNUSED_(out); return NPUPROF_OK;)
#endif /* !NPUPROF_FREESTANDING */

NPUPROF_END_C_
/* ==== src/public/args.h =============================================================== >>public/args ==== */

/* Arguments: how a span or an instant gets keys with values.

   PROF_ARGS(PROF_ARG("bytes", n), PROF_ARG("op", name)) makes a list (npuprof_args). The list is valid until
   the end of the statement.
   PROF_ARG takes the type from the value: in C with _Generic, in C++ with overloads. PROF_INT, PROF_UINT,
   PROF_REAL, PROF_BOOL and PROF_STR name the type and convert the value to it. PROF_NO_ARGS is the empty
   list. If something else than a list is given, the compiler's message says so in words.
   With NPUPROF_OFF the same code is compiled inside a sizeof, so its types are checked, too. */

NPUPROF_BEGIN_C_

NPUPROF_INLINE_ uint64_t npuprof_int_bits_(int64_t v) { return NPUPROF_STATIC_CAST_(uint64_t, v); }

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

NPUPROF_INLINE_ npuprof_arg npuprof_float_(const char *key, float v)
{
    return npuprof_real_(key, NPUPROF_STATIC_CAST_(double, v));
}

NPUPROF_END_C_

/* One argument each. key: a string literal. PROF_STR copies its string and cuts it at 1,024 bytes; NULL is
   shown as null. Without floating point, PROF_REAL does not compile (AArch64 with -mgeneral-regs-only) or
   takes only constants (x86-64 with -mno-sse). */
#define PROF_INT(key, v) npuprof_int_("" key "", NPUPROF_CAST_(int64_t, v))
#define PROF_UINT(key, v) npuprof_uint_("" key "", NPUPROF_CAST_(uint64_t, v))
#define PROF_REAL(key, v) NPUPROF_REAL_("" key "", v)
#define PROF_BOOL(key, v) npuprof_bool_("" key "", (v) ? true : false)
#define PROF_STR(key, v) npuprof_str_("" key "", (v))
#define PROF_NO_ARGS npuprof_args_(NPUPROF_NULL_, 0)

/* Why not a function: without floating point, no code with a variable of type double compiles. */
#ifdef NPUPROF_NO_REAL_
extern npuprof_arg npuprof_no_real_(const char *key)
    NPUPROF_NO_REAL_("npuprof.h: PROF_REAL needs floating point, which this target does not have; use "
                     "PROF_INT in a finer unit");
#define NPUPROF_REAL_(key, v) \
    __builtin_choose_expr(NPUPROF_MAY_BE_REAL_(v), ((npuprof_arg){ (key), NPUPROF_ARG_REAL, { .d = (v) } }), \
                          npuprof_no_real_(key))
#else
#define NPUPROF_REAL_(key, v) npuprof_real_((key), NPUPROF_CAST_(double, v))
#endif

#ifdef __cplusplus
extern "C++" {
NPUPROF_INLINE_ npuprof_args npuprof_args_(std::initializer_list<npuprof_arg> list)
{
    return npuprof_args_(list.begin(), list.size());
}

#define NPUPROF_ARG_OF_(type, make, as) \
    NPUPROF_INLINE_ npuprof_arg npuprof_arg_of_(const char *key, \
                                                type v) { return make(key, static_cast<as>(v)); }
NPUPROF_ARG_OF_(bool, npuprof_bool_, bool)
NPUPROF_ARG_OF_(char, npuprof_int_, int64_t)
NPUPROF_ARG_OF_(signed char, npuprof_int_, int64_t)
NPUPROF_ARG_OF_(short, npuprof_int_, int64_t)
NPUPROF_ARG_OF_(int, npuprof_int_, int64_t)
NPUPROF_ARG_OF_(long, npuprof_int_, int64_t)
NPUPROF_ARG_OF_(long long, npuprof_int_, int64_t)
NPUPROF_ARG_OF_(unsigned char, npuprof_uint_, uint64_t)
NPUPROF_ARG_OF_(unsigned short, npuprof_uint_, uint64_t)
NPUPROF_ARG_OF_(unsigned, npuprof_uint_, uint64_t)
NPUPROF_ARG_OF_(unsigned long, npuprof_uint_, uint64_t)
NPUPROF_ARG_OF_(unsigned long long, npuprof_uint_, uint64_t)
NPUPROF_ARG_OF_(float, npuprof_real_, double)
NPUPROF_ARG_OF_(double, npuprof_real_, double)
NPUPROF_ARG_OF_(const char *, npuprof_str_, const char *)
NPUPROF_ARG_OF_(char *, npuprof_str_, const char *)
#undef NPUPROF_ARG_OF_
/* Why deleted: other pointers would convert to bool. */
template <class T> npuprof_arg npuprof_arg_of_(const char *key, T *v) = delete;

/* npuprof_args for T = npuprof_args; for any other T an error in words. */
template <class T> struct npuprof_list_type_ {
    static_assert(sizeof(T) == 0, "npuprof.h: put the arguments into PROF_ARGS(...), or give PROF_NO_ARGS");
    typedef npuprof_args type;
};
template <> struct npuprof_list_type_<npuprof_args> { typedef npuprof_args type; };
template <class T> NPUPROF_ALWAYS_INLINE_ typename npuprof_list_type_<T>::type npuprof_checked_list_(T list)
{
    return list;
}

/* A category is a literal, or NULL for none. */
template <size_t N> constexpr const char *npuprof_category_of_(const char (&text)[N]) { return text; }
constexpr const char *npuprof_category_of_(decltype(nullptr)) { return nullptr; }
}
#define PROF_ARG(key, v) npuprof_arg_of_("" key "", (v))
#define PROF_ARGS(...) NPUPROF_ARGS_(npuprof_args_({ __VA_ARGS__ }))
#define NPUPROF_CHECKED_LIST_(args) npuprof_checked_list_(args)
#ifdef NPUPROF_NAMES_SECTION
#define NPUPROF_CATEGORY_(cat) \
    "" cat ""             /* Why NULL is refused: only arrays of characters fit into that section */
#else
#define NPUPROF_CATEGORY_(cat) npuprof_category_of_(cat)
#endif
#else /* !__cplusplus */

/* A value of a wrong type selects these functions, whose parameter it does not fit. Why the long names: the
   compiler's message shows them. */
struct npuprof_PROF_ARG_takes_integers_floating_point_bool_and_strings_ { uint32_t type; };
NPUPROF_INLINE_ npuprof_arg npuprof_PROF_ARG_takes_integers_floating_point_bool_and_strings_(
    const char *key, struct npuprof_PROF_ARG_takes_integers_floating_point_bool_and_strings_ v)
{
    return npuprof_arg_(key, v.type);
}

struct npuprof_put_the_arguments_into_PROF_ARGS_or_give_PROF_NO_ARGS_ { size_t count; };
NPUPROF_INLINE_ npuprof_args npuprof_put_the_arguments_into_PROF_ARGS_or_give_PROF_NO_ARGS_(
    struct npuprof_put_the_arguments_into_PROF_ARGS_or_give_PROF_NO_ARGS_ list)
{
    return npuprof_args_(NPUPROF_NULL_, list.count);
}

NPUPROF_ALWAYS_INLINE_ npuprof_args npuprof_checked_list_(npuprof_args list) { return list; }

#if defined(NPUPROF_NO_REAL_)
#define NPUPROF_REAL_TYPES_
#else
#define NPUPROF_REAL_TYPES_ float: npuprof_float_, double: npuprof_real_,
#endif
/* Why not for bit-fields: _Generic gives each a type of its own in gcc; PROF_INT and PROF_UINT take them. */
#define PROF_ARG(key, v) \
    NPUPROF_EXTENSION_ _Generic((v), _Bool: npuprof_bool_, char: npuprof_int_, \
                           signed char: npuprof_int_, \
        short: npuprof_int_, int: npuprof_int_, long: npuprof_int_, \
        long long: npuprof_int_, \
        unsigned char: npuprof_uint_, unsigned short: npuprof_uint_, \
        unsigned: npuprof_uint_, \
        unsigned long: npuprof_uint_, \
        unsigned long long: npuprof_uint_, \
        NPUPROF_REAL_TYPES_ char *: npuprof_str_, \
        const char *: npuprof_str_, \
        default: npuprof_PROF_ARG_takes_integers_floating_point_bool_and_strings_)("" key "", (v))
#if NPUPROF_HAS_GENERIC_
#define NPUPROF_CHECKED_LIST_(args) \
    NPUPROF_EXTENSION_ _Generic((args), \
        npuprof_args: npuprof_checked_list_, \
        default: npuprof_put_the_arguments_into_PROF_ARGS_or_give_PROF_NO_ARGS_)(args)
#else
#define NPUPROF_CHECKED_LIST_(args) (args)
#endif
#define PROF_ARGS(...) NPUPROF_ARGS_( \
    npuprof_args_((const npuprof_arg[NPUPROF_ARG_COUNT_(__VA_ARGS__)]){ __VA_ARGS__ }, \
                  sizeof((const npuprof_arg[NPUPROF_ARG_COUNT_(__VA_ARGS__)]){ __VA_ARGS__ }) \
                  / sizeof(npuprof_arg)))

/* A category is a literal, or NULL for none. The macro tells them apart by the first token: NULL is
   ((void *)0) and begins with a parenthesis, a literal does not. */
#define NPUPROF_CATEGORY_(cat) \
    NPUPROF_GLUE_(NPUPROF_CATEGORY_, NPUPROF_PICK_2ND_(NPUPROF_PARENTHESIS_ cat, TEXT_, ~))(cat)
#define NPUPROF_PARENTHESIS_(...) ~, NULL_
#define NPUPROF_CATEGORY_TEXT_(cat) "" cat ""
#ifdef NPUPROF_NAMES_SECTION
#define NPUPROF_CATEGORY_NULL_(cat) NPUPROF_NO_CATEGORY_
#else
#define NPUPROF_CATEGORY_NULL_(cat) (cat)            /* a literal in parentheses stays what it is */
#endif
#define NPUPROF_PICK_2ND_(...) NPUPROF_EXPAND_(NPUPROF_2ND_(__VA_ARGS__))
#define NPUPROF_2ND_(a, b, ...) b
#endif /* !__cplusplus */

/* The number of arguments. Empty means that the compiler counts the array. tcc cannot if the array begins
   with a call, so there the preprocessor counts, up to 16. */
#ifdef NPUPROF_CANNOT_COUNT_ITEMS_
#define NPUPROF_ARG_COUNT_(...) \
    NPUPROF_17TH_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#else
#define NPUPROF_ARG_COUNT_(...)
#endif
#define NPUPROF_17TH_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, seventeenth, ...) seventeenth

/* The parameters are `name` or `name, args`. NPUPROF_NAME_ gives the name, NPUPROF_LIST_ the list, or
   PROF_NO_ARGS if there is none. Why not `name, ...` as parameters: C99 does not allow "..." to be empty. */
#define NPUPROF_NAME_(...) NPUPROF_EXPAND_(NPUPROF_1ST_(__VA_ARGS__, ~))
#define NPUPROF_LIST_(...) \
    NPUPROF_EXPAND_(NPUPROF_GLUE_(NPUPROF_LIST_, \
                                  NPUPROF_EXPAND_(NPUPROF_17TH_(__VA_ARGS__, \
        MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, MANY_, \
        MANY_, \
        ONE_, NONE_, ~)))(__VA_ARGS__))
#define NPUPROF_LIST_NONE_(name) PROF_NO_ARGS
#define NPUPROF_LIST_ONE_(name, args) NPUPROF_CHECKED_LIST_(args)
#define NPUPROF_LIST_MANY_(...) NPUPROF_CHECKED_LIST_(0)
#define NPUPROF_1ST_(a, ...) a
#define NPUPROF_EXPAND_(x) \
    x       /* Why: MSVC's traditional preprocessor passes __VA_ARGS__ on as one argument */
/* ==== src/public/hot.h ================================================================= >>public/hot ==== */

/* What the macros call: the hot path as the user's file compiles it.

   Data: npuprof_gate_, the one variable that a macro reads while recording is off. Start, stop, pause and
   resume write it; every thread reads it.
   Parts: the gate; the functions behind an open gate, which are out of line; inline functions that pick the
   fastest of them for a call; the objects on the stack that end a span, with their clean-up.
   It may not know how anything is stored. Nothing here is for users to call. */

NPUPROF_BEGIN_C_

/* The gate before any setup. Why INT_MAX where no constructor runs before main(): the first macro then finds
   the gate open, and npuprof_opens_() reads the environment. */
#if defined(NPUPROF_CONSTRUCTOR_) || defined(NPUPROF_FREESTANDING) || defined(NPUPROF_OFF)
#define NPUPROF_GATE_AT_START_ INT_MIN
#else
#define NPUPROF_GATE_WAITS_ 1
#define NPUPROF_GATE_AT_START_ INT_MAX
#endif

/* The gate: spans up to this level are recorded; INT_MIN = none. NPUPROF_GATE_BOUNDARIES_: none either, but
   PROF_RECORD and PROF_INFERENCE call the library, which may then open the gate.
   Why three names: files that were built with different clocks, or with and without an OS, do not link. Why
   such names: the linker's message is all that its reader has. */
#if defined(NPUPROF_FREESTANDING)
#define npuprof_gate_ npuprof_gate_define_NPUPROF_IMPLEMENTATION_in_one_file_with_NPUPROF_FREESTANDING_
#elif defined(NPUPROF_NOW)
#define npuprof_gate_ npuprof_gate_define_NPUPROF_IMPLEMENTATION_in_one_file_with_this_NPUPROF_NOW_
#define NPUPROF_GATE_OF_1_0_ npuprof_gate_of_a_build_with_NPUPROF_NOW_
#else
#define npuprof_gate_ \
    npuprof_gate_define_NPUPROF_IMPLEMENTATION_in_one_file_without_NPUPROF_NOW_and_export_npuprof_names_
#define NPUPROF_GATE_OF_1_0_ npuprof_gate_of_a_build_without_NPUPROF_NOW_or_FREESTANDING_
#endif
enum { NPUPROF_GATE_BOUNDARIES_ = -1 };
#ifndef NPUPROF_STATIC
extern int npuprof_gate_;
#elif !defined(NPUPROF_OFF)
static int npuprof_gate_ = NPUPROF_GATE_AT_START_;
#endif
#ifndef NPUPROF_FREESTANDING
NPUPROF_API_ bool npuprof_opens_(int level);   /* sets up; is the gate open now? */
#endif

#if defined(NPUPROF_FREESTANDING) && defined(NPUPROF_NAMES_SECTION)
/* Why other names: if only one of the files that record and the implementing file has NPUPROF_NAMES_SECTION,
   they do not link. Else names would take flash, or be read where no memory is. */
#define npuprof_begin_ npuprof_begin_with_names_section_
#define npuprof_begin_args_ npuprof_begin_args_with_names_section_
#define npuprof_begin_list_ npuprof_begin_list_with_names_section_
#define npuprof_event_args_now_ npuprof_event_args_with_names_section_
#define npuprof_event_list_ npuprof_event_list_with_names_section_
#define npuprof_event_now_ npuprof_event_with_names_section_
#define npuprof_put_value_ npuprof_put_value_with_names_section_
#endif

/* Out of line; the macros call these while the gate is open. All are async-signal safe. The functions that
   begin a span return its token, or 0 if it was not recorded. npuprof_next_() ends one span and begins
   another with the same stamp. */
#ifdef NPUPROF_FREESTANDING
NPUPROF_API_ npuprof_token_ npuprof_begin_(const npuprof_site_ *site);
NPUPROF_API_ npuprof_token_ npuprof_begin_args_(const npuprof_site_ *site, npuprof_args args);
NPUPROF_API_ npuprof_token_ npuprof_begin_named_(uint32_t kind, const char *category, const char *name,
                                                 npuprof_args args);
NPUPROF_API_ npuprof_token_ npuprof_next_(npuprof_token_ token, const npuprof_site_ *site);
NPUPROF_API_ void npuprof_event_args_now_(const npuprof_site_ *site, npuprof_args args);
/* A span or an event with at most one value, which is not a string. shape: the value's type, NPUPROF_ARG_*;
   SHAPE_EVENT: it is the event's own, without a key; 0: there is none. SHAPE_SPAN, besides: a span begins.
   Why one number: on the smallest processors it takes one instruction. */
enum { NPUPROF_SHAPE_EVENT_ = 11, NPUPROF_SHAPE_SPAN_ = 128 };
NPUPROF_API_ npuprof_token_ npuprof_put_value_(const npuprof_site_ *site, const char *key, uint64_t value,
                                               uint32_t shape);
NPUPROF_API_ void npuprof_result_(npuprof_args args);
NPUPROF_API_ void npuprof_begin_by_hand_(const char *category, const char *name);
#else
NPUPROF_API_ npuprof_token_ npuprof_begin_(npuprof_site_ *site);
NPUPROF_API_ npuprof_token_ npuprof_begin_args_(npuprof_site_ *site, npuprof_keys_ *keys, npuprof_args args);
NPUPROF_API_ npuprof_token_ npuprof_begin_named_(const npuprof_device *device, npuprof_site_ *site,
                                                 npuprof_keys_ *keys, uint32_t kind, const char *category,
                                                 const char *name, npuprof_args args);
NPUPROF_API_ npuprof_token_ npuprof_next_(npuprof_token_given_ token, npuprof_site_ *site);
NPUPROF_API_ void npuprof_event_now_(npuprof_site_ *site, uint64_t value);
NPUPROF_API_ void npuprof_event_args_now_(npuprof_site_ *site, npuprof_keys_ *keys, uint64_t value,
                                          npuprof_args args);
NPUPROF_API_ void npuprof_result_(npuprof_keys_ *keys, npuprof_args args);
NPUPROF_API_ void npuprof_begin_by_hand_(npuprof_keys_ *keys, const char *category, const char *name);
/* Faster forms. npuprof_begin_arg_: one argument that is not a string. npuprof_begin_constant_: no arguments,
   the name is a constant. npuprof_begin_text_: no arguments, the name was made at run time. */
NPUPROF_API_ npuprof_token_ npuprof_begin_arg_(npuprof_keys_ *keys, const char *key, uint64_t type,
                                               uint64_t value, npuprof_site_ *site);
NPUPROF_API_ npuprof_token_ npuprof_begin_constant_(npuprof_site_ *site, const char *category,
                                                    const char *name);
NPUPROF_API_ npuprof_token_ npuprof_begin_text_(const char *name, const char *category, npuprof_keys_ *keys,
                                                uint32_t kind);
/* Begins a PROF_RECORD or PROF_INFERENCE, at whose ends capture control looks at its conditions. Called also
   while the gate is NPUPROF_GATE_BOUNDARIES_. */
NPUPROF_API_ npuprof_token_ npuprof_begin_boundary_(npuprof_site_ *site, npuprof_keys_ *keys, uint32_t kind,
                                                    const char *category, const char *name);
#endif /* !NPUPROF_FREESTANDING */
NPUPROF_API_ void npuprof_close_(npuprof_token_given_ token);
NPUPROF_API_ bool npuprof_is_open_(npuprof_token_ token);   /* an open span of this thread? */
NPUPROF_API_ void npuprof_end_by_hand_(void);
NPUPROF_API_ void npuprof_memory_(const npuprof_device *device, uint64_t used_bytes, uint64_t allocated_bytes,
                                  const char *tag);
NPUPROF_API_ void npuprof_memory_change_(const npuprof_device *device, bool is_free, uint64_t bytes,
                                         const char *tag);
NPUPROF_API_ void npuprof_thread_name_(const char *name);
NPUPROF_API_ void npuprof_wait_(const npuprof_device *device);

#ifndef NPUPROF_OFF
/* These pick the fastest function above that fits. The compiler decides while compiling, from what is
   constant in the call. */
NPUPROF_ALWAYS_INLINE_ bool npuprof_is_one_value_(npuprof_args args)
{
    return NPUPROF_CONSTANT_(args.count) && args.count == 1 && NPUPROF_CONSTANT_(args.items[0].type)
        && args.items[0].type < NPUPROF_ARG_STR;
}

#endif
#if !defined(NPUPROF_OFF) && !defined(NPUPROF_FREESTANDING)
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_begin_list_(npuprof_site_ *site, npuprof_keys_ *keys,
                                                          npuprof_args args)
{
    if (NPUPROF_CONSTANT_(args.count) && args.count == 0) return npuprof_begin_(site);
    if (npuprof_is_one_value_(args))
        return npuprof_begin_arg_(keys, args.items[0].key,
                                  NPUPROF_STATIC_CAST_(uint64_t, args.items[0].type) << NPUPROF_ARG_SHIFT_,
                                  args.items[0].value.u, site);
    return npuprof_begin_args_(site, keys, args);
}

NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_begin_name_(const npuprof_device *device, npuprof_site_ *site,
                                                          npuprof_keys_ *keys, uint32_t kind,
                                                          const char *category, const char *name,
                                                          npuprof_args args)
{
    const bool waits = device && device->wait_around;
    if (!NPUPROF_CONSTANT_(args.count) || args.count || waits)
        return npuprof_begin_named_(device, site, keys, kind, category, name, args);
    return site ? npuprof_begin_constant_(site, category, name)
        : npuprof_begin_text_(name, category, keys, kind);
}

NPUPROF_ALWAYS_INLINE_ void npuprof_event_list_(npuprof_site_ *site, npuprof_keys_ *keys, npuprof_args args)
{
    if (NPUPROF_CONSTANT_(args.count) && args.count == 0) npuprof_event_now_(site, 0);
    else npuprof_event_args_now_(site, keys, 0, args);
}

#elif !defined(NPUPROF_OFF)
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_begin_list_(const npuprof_site_ *site, npuprof_args args)
{
    if (NPUPROF_CONSTANT_(args.count) && args.count == 0) return npuprof_begin_(site);
    if (npuprof_is_one_value_(args))
        return npuprof_put_value_(site, args.items[0].key, args.items[0].value.u,
                                  args.items[0].type | NPUPROF_SHAPE_SPAN_);
    return npuprof_begin_args_(site, args);
}

NPUPROF_ALWAYS_INLINE_ void npuprof_event_list_(const npuprof_site_ *site, npuprof_args args)
{
    if (NPUPROF_CONSTANT_(args.count) && args.count == 0) (void)npuprof_put_value_(site, NPUPROF_NULL_, 0, 0);
    else if (npuprof_is_one_value_(args))
        (void)npuprof_put_value_(site, args.items[0].key, args.items[0].value.u, args.items[0].type);
    else npuprof_event_args_now_(site, args);
}

NPUPROF_ALWAYS_INLINE_ void npuprof_event_now_(const npuprof_site_ *site, uint64_t value)
{
    (void)npuprof_put_value_(site, NPUPROF_NULL_, value, NPUPROF_SHAPE_EVENT_);
}

#elif defined(NPUPROF_FREESTANDING)
NPUPROF_API_ npuprof_token_ npuprof_begin_list_(const npuprof_site_ *site, npuprof_args args);
NPUPROF_API_ void npuprof_event_list_(const npuprof_site_ *site, npuprof_args args);
NPUPROF_API_ void npuprof_event_now_(const npuprof_site_ *site, uint64_t value);
#else /* NPUPROF_OFF, hosted */
NPUPROF_API_ npuprof_token_ npuprof_begin_list_(npuprof_site_ *site, npuprof_keys_ *keys, npuprof_args args);
NPUPROF_API_ npuprof_token_ npuprof_begin_name_(const npuprof_device *device, npuprof_site_ *site,
                                                npuprof_keys_ *keys, uint32_t kind,
                                                const char *category, const char *name, npuprof_args args);
NPUPROF_API_ void npuprof_event_list_(npuprof_site_ *site, npuprof_keys_ *keys, npuprof_args args);
#endif /* !NPUPROF_OFF */

NPUPROF_END_C_

/* What a scope, a block and PROF_BLOCK keep on the stack. The clean-up gets its address. If a goto jumped
   past the declaration, its content is garbage. */
typedef struct npuprof_scope_ { npuprof_token_ token; } npuprof_scope_;
typedef struct npuprof_block_ { npuprof_token_ token; const npuprof_device *device; } npuprof_block_;
typedef struct npuprof_once_ {
    npuprof_token_ token;
    int left;                      /* passes left of a loop that runs once */
} npuprof_once_;

#ifdef NPUPROF_OFF
NPUPROF_API_ void npuprof_wait_around_(const npuprof_device *device);
#else
/* Why -Wmaybe-uninitialized is off: after a goto past the scope the token is garbage. That is harmless:
   npuprof_close_() checks a token before it uses it. */
NPUPROF_MAYBE_PUSH_
NPUPROF_INLINE_ void npuprof_leave_scope_(npuprof_scope_ *scope)
{
    if (scope->token) npuprof_close_(scope->token);
}

NPUPROF_INLINE_ void npuprof_wait_around_(const npuprof_device *device)
{
    if (device && device->wait_around) npuprof_wait_(device);
}

NPUPROF_INLINE_ void npuprof_leave_block_(npuprof_block_ *block)
{
    if (!block->token) return;
    /* Why it checks the token first: after a goto into the block, device is garbage. */
    if (block->device && npuprof_is_open_(block->token) && block->device->wait_around)
        npuprof_wait_(block->device);
    npuprof_close_(block->token);
}

NPUPROF_INLINE_ void npuprof_leave_once_(npuprof_once_ *once)
{
    if (once->token) npuprof_close_(once->token);
    once->left = 0;
}

NPUPROF_MAYBE_POP_
#ifdef __cplusplus
struct npuprof_auto_once_ : npuprof_once_ {
    NPUPROF_OWN_ explicit npuprof_auto_once_(npuprof_token_ t) { token = t; left = 1; }
    NPUPROF_OWN_ ~npuprof_auto_once_() { npuprof_leave_once_(this); }
    npuprof_auto_once_(const npuprof_auto_once_ &) = delete;
    npuprof_auto_once_ &operator=(const npuprof_auto_once_ &) = delete;
};
struct npuprof_auto_scope_ : npuprof_scope_ {
    NPUPROF_OWN_ explicit npuprof_auto_scope_(npuprof_token_ t) { token = t; }
    NPUPROF_OWN_ ~npuprof_auto_scope_() { npuprof_leave_scope_(this); }
    npuprof_auto_scope_(const npuprof_auto_scope_ &) = delete;
    npuprof_auto_scope_ &operator=(const npuprof_auto_scope_ &) = delete;
};
struct npuprof_auto_block_ : npuprof_block_ {
    NPUPROF_OWN_ npuprof_auto_block_(npuprof_token_ t, const npuprof_device *d) { token = t; device = d; }
    NPUPROF_OWN_ ~npuprof_auto_block_() { npuprof_leave_block_(this); }
    npuprof_auto_block_(const npuprof_auto_block_ &) = delete;
    npuprof_auto_block_ &operator=(const npuprof_auto_block_ &) = delete;
};
#endif
#endif /* !NPUPROF_OFF */
/* ==== src/public/macros.h =========================================================== >>public/macros ==== */

/* The macros that users write: PROF_* and WITH_*_PROFILER. Further down, after "The macros".

   Order of arguments: PROF_* take (category, name), as Perfetto, Chrome and minitrace do; WITH_*_PROFILER
   take (name, category), as the reference system does.
   Each macro exists once. The switch below, in an ON and an OFF version, decides what it becomes. Each use
   has a static call site with its name and category; the gate is checked before anything else is
   evaluated. */

/* The switch between ON and OFF. id is a fresh number; `sites` declares the call site.
     NPUPROF_SITE_      declares a call site; NPUPROF_LITERAL_SITE_ does it for literals
     NPUPROF_REF_       the address of a call site
     NPUPROF_VOID_      a statement: evaluates expr if the level is recorded
     NPUPROF_ALWAYS_    a statement: evaluates expr, also while nothing is recorded
     NPUPROF_SCOPE_     a declaration: a span to the end of the enclosing block
     NPUPROF_BLOCK_     a declaration: the same for WITH_*_PROFILER, with a device
     NPUPROF_ONCE_      a loop that runs once: a span around the statement that follows
     NPUPROF_NEXT_      a statement: the next phase
   OFF keeps the type checks of the arguments, in an unevaluated sizeof, and nothing else. */
#ifndef NPUPROF_OFF
#ifdef NPUPROF_GATE_WAITS_
#define NPUPROF_OPEN_(level) \
    (npuprof_at_least_(&npuprof_gate_, (level)) && (npuprof_gate_ != INT_MAX || npuprof_opens_(level)))
#else
#define NPUPROF_OPEN_(level) NPUPROF_UNLIKELY_(npuprof_at_least_(&npuprof_gate_, (level)))
#endif
#ifndef NPUPROF_FREESTANDING
#define NPUPROF_SITE_(id, kind, cat, name) \
    static npuprof_site_ NPUPROF_GLUE_(npuprof_site_, id) = \
        { 0, 0, (kind), name, cat, NPUPROF_FILE_, NPUPROF_LINE_ };
#define NPUPROF_KEYS_OF_(id) \
    static npuprof_keys_ NPUPROF_GLUE_(npuprof_keys_, id) = \
        { 0, 0, { 0, 0, 0, 0 }, { NPUPROF_NULL_, NPUPROF_NULL_, NPUPROF_NULL_, NPUPROF_NULL_ }, 0, \
          NPUPROF_FILE_, NPUPROF_LINE_ };
#define NPUPROF_KEYS_REF_(id) (&NPUPROF_GLUE_(npuprof_keys_, id))
#define NPUPROF_NO_CATEGORY_ NPUPROF_NULL_
#elif defined(NPUPROF_NAMES_SECTION)
#define NPUPROF_KEYS_OF_(id)
#define NPUPROF_IN_NAMES_ NPUPROF_ATTRIBUTE_((section(NPUPROF_NAMES_SECTION), unused))
#define NPUPROF_SITE_(id, kind, cat, name) \
    static const char NPUPROF_GLUE_(npuprof_file_, id)[] NPUPROF_IN_NAMES_ = NPUPROF_FILE_TEXT_; \
    static const npuprof_site_ NPUPROF_GLUE_(npuprof_site_, id) NPUPROF_IN_NAMES_ = \
        { name, cat, (kind), \
          { NPUPROF_LINE_ & 0xFF, NPUPROF_LINE_ >> 8 & 0xFF, NPUPROF_LINE_ >> 16 & 0xFF }, \
          NPUPROF_GLUE_(npuprof_file_, id) };
#define NPUPROF_LITERAL_SITE_(id, kind, cat, name)                                     \
    static const char NPUPROF_GLUE_(npuprof_name_, id)[] NPUPROF_IN_NAMES_ = "" name ""; \
    static const char NPUPROF_GLUE_(npuprof_category_, id)[] NPUPROF_IN_NAMES_ = cat;  \
    NPUPROF_SITE_(id, kind, NPUPROF_GLUE_(npuprof_category_, id), NPUPROF_GLUE_(npuprof_name_, id)) \
    NPUPROF_LITERAL_ONLY_(id, name)
#define NPUPROF_NO_CATEGORY_ ""
#else /* !NPUPROF_NAMES_SECTION */
#define NPUPROF_KEYS_OF_(id)
#define NPUPROF_SITE_(id, kind, cat, name) \
    static const npuprof_site_ NPUPROF_GLUE_(npuprof_site_, \
                                             id) NPUPROF_ATTRIBUTE_((unused)) = \
        { name, cat, (kind), { 0, 0, 0 } };
#define NPUPROF_NO_CATEGORY_ NPUPROF_NULL_
#endif /* !NPUPROF_NAMES_SECTION */
#ifdef NPUPROF_LITERAL_SITE_
#elif defined(__cplusplus)
/* Why constexpr: else a local array would be a category, whose address outlives it. */
#define NPUPROF_LITERAL_SITE_(id, kind, cat, name)                            \
    static constexpr const char *NPUPROF_GLUE_(npuprof_category_, id) = cat;  \
    NPUPROF_LITERAL_ONLY_(id, name) \
    NPUPROF_SITE_(id, kind, NPUPROF_GLUE_(npuprof_category_, id), "" name "")
#else
#define NPUPROF_LITERAL_SITE_(id, kind, cat, name) \
    NPUPROF_SITE_(id, kind, cat, "" name "") NPUPROF_LITERAL_ONLY_(id, name)
#endif
#define NPUPROF_REF_(id, cat, name) (&NPUPROF_GLUE_(npuprof_site_, id))
#define NPUPROF_VOID_(level, sites, expr) do { sites if (NPUPROF_OPEN_(level)) { expr; } } while (0)
#define NPUPROF_ALWAYS_(expr) (expr)         /* of functions that return nothing */
/* Begins a span in an expression that also declares its call site. Why: PROF_BLOCK must be one statement. */
#if defined(__cplusplus) && !NPUPROF_HAS_CLEANUP_
#define NPUPROF_BEGIN_HERE_(level, begin, ...) \
    [&]() -> npuprof_token_ { __VA_ARGS__ return NPUPROF_OPEN_(level) ? (begin) : 0; }()
#else
#define NPUPROF_BEGIN_HERE_(level, begin, ...) \
    __extension__({ __VA_ARGS__ NPUPROF_OPEN_(level) ? (begin) : 0; })
#endif
#ifdef __cplusplus
#define NPUPROF_SCOPE_(id, level, sites, begin) \
    sites npuprof_auto_scope_ id(NPUPROF_OPEN_(level) ? (begin) : 0)
#define NPUPROF_BLOCK_(id, level, dev, sites, begin) \
    sites npuprof_auto_block_ id(0, (dev)); if (NPUPROF_OPEN_(level)) id.token = (begin)
#define NPUPROF_ONCE_(id, level, sites, begin) \
    for (npuprof_auto_once_ id(NPUPROF_BEGIN_HERE_(level, begin, sites)); id.left; id.left = 0)
#elif !NPUPROF_HAS_CLEANUP_
/* Why an error: this compiler has no way to end the span. */
#define NPUPROF_SCOPE_(id, level, sites, begin) \
    typedef char npuprof_this_compiler_has_no_cleanup_attribute_use_PROF_BLOCK_or_compile_as_cpp_[-1]
#if NPUPROF_HAS_FINALLY_
#define NPUPROF_BLOCK_(id, level, dev, sites, begin) \
    sites npuprof_block_ id = { 0, (dev) }, \
        *npuprof_this_block_ = &id; if (NPUPROF_OPEN_(level)) id.token = (begin)
#else
#define NPUPROF_BLOCK_(id, level, dev, sites, begin) NPUPROF_SCOPE_(id, level, sites, begin)
#endif
/* Why two loops: a break leaves only the inner one, and the outer one then ends the span. */
#define NPUPROF_ONCE_(id, level, sites, begin) \
    sites for (npuprof_once_ id = { NPUPROF_OPEN_(level) ? (begin) : 0, \
                                    2 }; id.left == 2; npuprof_leave_once_(&id)) \
        for (; id.left == 2; id.left = 1)
#else /* NPUPROF_HAS_CLEANUP_ */
#define NPUPROF_ONCE_(id, level, sites, begin) \
    for (NPUPROF_ATTRIBUTE_((cleanup(npuprof_leave_once_))) npuprof_once_ id = \
             { NPUPROF_BEGIN_HERE_(level, begin, sites), 1 }; id.left; \
         id.left = 0)
#define NPUPROF_SCOPE_(id, level, sites, begin) \
    sites NPUPROF_ATTRIBUTE_((unused, cleanup(npuprof_leave_scope_))) npuprof_scope_ id = \
        { NPUPROF_OPEN_(level) ? (begin) : 0 }
#define NPUPROF_BLOCK_(id, level, dev, sites, begin) \
    sites NPUPROF_ATTRIBUTE_((unused, cleanup(npuprof_leave_block_))) npuprof_block_ id = { 0, (dev) }; \
    if (NPUPROF_OPEN_(level)) id.token = (begin)
#endif /* NPUPROF_HAS_CLEANUP_ */
#define NPUPROF_DEVICE_OF_(id, dev) id.device
#define NPUPROF_ARGS_(...) __VA_ARGS__
#define NPUPROF_NEXT_(sites, next) \
    do { sites if (npuprof_phase_.token || NPUPROF_OPEN_(1)) npuprof_phase_.token = (next); } while (0)
#define NPUPROF_PHASE_TOKEN_ npuprof_phase_.token
#else /* NPUPROF_OFF */
#define NPUPROF_SITE_(id, kind, cat, name)
#define NPUPROF_LITERAL_SITE_(id, kind, cat, name)
#define NPUPROF_NO_CATEGORY_ NPUPROF_NULL_
#define NPUPROF_KEYS_OF_(id)
#define NPUPROF_REF_(id, cat, name) \
    (sizeof(name) + sizeof(cat) ? NPUPROF_STATIC_CAST_(npuprof_site_ *, NPUPROF_NULL_) : NPUPROF_NULL_)
#define NPUPROF_KEYS_REF_(id) NPUPROF_STATIC_CAST_(npuprof_keys_ *, NPUPROF_NULL_)
#ifndef NPUPROF_SIZEOF_LEAVES_STRINGS_
#define NPUPROF_UNEVALUATED_(x) sizeof(x)
#else
#define NPUPROF_UNEVALUATED_(x) 1
#endif
#define NPUPROF_VOID_(level, sites, expr) ((void)NPUPROF_UNEVALUATED_(((void)(0 >= (level)), (expr), 0)))
#define NPUPROF_ALWAYS_(expr) ((void)NPUPROF_UNEVALUATED_(((expr), 0)))
/* Why three forms: where ON refuses a goto or a case label past a scope (C++, clang), OFF must refuse it,
   too. C++ refuses to jump past an object. clang also refuses to jump past a type of variable length, which
   leaves no code, while an object would leave some. */
#define NPUPROF_SCOPE_(id, level, sites, begin)                                           \
    extern char NPUPROF_GLUE_(id, a_)[NPUPROF_UNEVALUATED_(((void)(0 >= (level)), (begin)))];    \
    NPUPROF_NOTHING_(NPUPROF_GLUE_(id, b_), NPUPROF_GLUE_(id, a_))
#ifdef NPUPROF_REFUSE_BY_TYPE_
NPUPROF_INLINE_ size_t npuprof_nothing_(void) { return 1; }
#define NPUPROF_NOTHING_(id, after)                                                       \
    NPUPROF_PRAGMA_(clang diagnostic push) NPUPROF_PRAGMA_(clang diagnostic ignored "-Wvla") \
    __extension__ typedef char id[sizeof after * npuprof_nothing_()] NPUPROF_ATTRIBUTE_((unused)) \
    NPUPROF_PRAGMA_(clang diagnostic pop)
#elif defined(NPUPROF_REFUSE_BY_OBJECT_)
#define NPUPROF_NOTHING_(id, after) const size_t id = sizeof after; (void)id
#else
#define NPUPROF_NOTHING_(id, after) extern char id[sizeof after] NPUPROF_ATTRIBUTE_((unused))
#endif
#define NPUPROF_BLOCK_(id, level, dev, sites, begin) NPUPROF_SCOPE_(id, level, sites, begin)
/* Why a switch in a loop: compilers remove it completely, and break and continue act as in the loop of ON. */
#define NPUPROF_ONCE_(id, level, sites, begin) \
    switch (NPUPROF_UNEVALUATED_(((void)(0 >= (level)), (begin))) & 0) while (0) default:
#define NPUPROF_DEVICE_OF_(id, dev) (dev)
#define NPUPROF_ARGS_(...) ((void)NPUPROF_UNEVALUATED_((__VA_ARGS__)), PROF_NO_ARGS)
#define NPUPROF_NEXT_(sites, next) ((void)NPUPROF_UNEVALUATED_((next)))
#define NPUPROF_PHASE_TOKEN_ NPUPROF_STATIC_CAST_(npuprof_token_, npuprof_phase_a_[0])
#endif /* NPUPROF_OFF */

/* ---- The macros ----

   Rules for all, unless a comment says otherwise. Any thread and any signal handler may use them. Names and
   categories are string literals; cat may be NULL for none. Arguments are evaluated only while recording is
   on. A macro cannot fail: what it cannot record is counted as lost. Cost while recording is off: a load, a
   compare and a branch. Cost of a span: two clock reads and one 16-byte record; each argument adds to it. */

/* A span from here to the end of the enclosing block, however control leaves it. */
#define PROF_SCOPE(name) NPUPROF_PLAIN_(__COUNTER__, 1, NPUPROF_NO_CATEGORY_, name)
#define PROF_SCOPE_CAT(cat, name) NPUPROF_PLAIN_(__COUNTER__, 1, NPUPROF_CATEGORY_(cat), name)
/* A span around the statement that follows: PROF_BLOCK("c", "name") { ... }. Works in every compiler, also in
   MSVC's C, where PROF_SCOPE does not compile. A break or continue inside leaves this block, not a loop
   around it, and ends the span. return and goto end the span where PROF_SCOPE compiles. Elsewhere they leave
   it open; it then ends, marked, with the span around it. With OFF it is a loop that runs once, which an
   optimiser removes. */
#define PROF_BLOCK(cat, name) NPUPROF_BLOCK_OF_(__COUNTER__, NPUPROF_CATEGORY_(cat), name)
/* PROF_SCOPE_ARGS(cat, name, PROF_ARGS(...)): PROF_SCOPE with arguments; the list may be left out.
   PROF_SCOPE_LEVEL(level, cat, name, PROF_ARGS(...)): the same, recorded only if npuprof_start() was given
   this level or a higher one. */
#define PROF_SCOPE_ARGS(cat, ...) PROF_SCOPE_LEVEL(1, cat, __VA_ARGS__)
#define PROF_SCOPE_LEVEL(level, cat, ...) \
    NPUPROF_WITH_ARGS_(__COUNTER__, level, NPUPROF_CATEGORY_(cat), NPUPROF_NAME_(__VA_ARGS__), \
                       NPUPROF_LIST_(__VA_ARGS__))
/* PROF_SCOPE with the name of the function; in C++ with its class and parameters, as the compiler has
   them. */
#define PROF_FUNCTION() NPUPROF_FUNCTION_(__COUNTER__)
/* Before a function: NPUPROF_AUTO does not record it. For what is called too often, and for functions that
   the recorder itself calls: those behind NPUPROF_NOW() and a sink. */
#define PROF_NO_AUTO NPUPROF_OWN_
/* The next four are spans to the end of the enclosing block. name may be any string; it is copied. */

/* A labelled section, such as one run of a model. It starts a new trace id; the spans inside become its
   children. */
#define PROF_RECORD(name) NPUPROF_BOUNDARY_(__COUNTER__, NPUPROF_KIND_RECORD, name)
/* PROF_RECORD for a warm-up: the reports leave out what is inside. */
#define PROF_RECORD_WARM_UP(name) NPUPROF_NAMED_(__COUNTER__, NPUPROF_KIND_WARM_UP, name, PROF_NO_ARGS)
/* One inference query. npuprof_print_inferences() prints a row for it; npuprof_print_summary() counts it. */
#define PROF_INFERENCE(name) NPUPROF_BOUNDARY_(__COUNTER__, NPUPROF_KIND_INFERENCE, name)
/* An operator that runs on the host ("external"). npuprof_print_external_operators() prints a row for it. */
#define PROF_OPERATOR(operator_index, name) \
    NPUPROF_NAMED_(__COUNTER__, NPUPROF_KIND_OPERATOR, name, \
                   PROF_ARGS(PROF_INT("operator_index", operator_index)))

/* What is known only when the work is done: PROF_RESULT(PROF_INT("status", s), PROF_UINT("bytes", n)) adds
   these arguments to the innermost open span of this thread, whatever macro began it, in this function or in
   one that called it. It may be used several times; of a key that comes again, the last value counts. Without
   an open span it does nothing; nor while recording is off, also in a span that began before. If a level or
   the categories leave a span out, PROF_RESULT inside it adds to the span around it;
   PROF_RESULT_LEVEL(level, ...) is left out by the same level. */
#define PROF_RESULT(...) PROF_RESULT_LEVEL(1, __VA_ARGS__)
#define PROF_RESULT_LEVEL(level, ...) NPUPROF_ADD_RESULT_(__COUNTER__, level, PROF_ARGS(__VA_ARGS__))

/* Spans without a gap between them. PROF_PHASES begins the first; each PROF_NEXT ends one and begins the next
   with the same time stamp; the end of the block ends the last. One PROF_PHASES in a block. */
#define PROF_PHASES(name) NPUPROF_PHASES_(__COUNTER__, name)
#define PROF_NEXT(name) NPUPROF_NEXT_PHASE_(__COUNTER__, name)

/* PROF_BEGIN begins a span; PROF_END ends the last one that this thread began with PROF_BEGIN, whether it was
   recorded or not. They nest, at most 64 deep in a thread. cat and name may be any strings; they are copied.
   cat may be NULL. Both are evaluated also while recording is off. */
#define PROF_BEGIN(cat, name) NPUPROF_BY_HAND_(__COUNTER__, cat, name)
#define PROF_END() NPUPROF_ALWAYS_(npuprof_end_by_hand_())

/* An arrow between two host spans. Write PROF_FLOW_OUT inside the span where it starts, PROF_FLOW_IN inside
   the span where it ends, with the same 64-bit id; the threads may differ. */
#define PROF_FLOW_OUT(id) \
    NPUPROF_EVENT_(__COUNTER__, NPUPROF_KIND_FLOW_OUT, "flow", NPUPROF_CAST_(uint64_t, id))
#define PROF_FLOW_IN(id) \
    NPUPROF_EVENT_(__COUNTER__, NPUPROF_KIND_FLOW_IN, "flow", NPUPROF_CAST_(uint64_t, id))

/* A span around code: WITH_BASE_PROFILER(device, name, cat, PROF_NO_ARGS, { ... }). The code is expanded
   once. The span also ends when return, break, continue or goto leaves the code. name and cat may be any
   strings; they are copied. device: npuprof_device *, or NULL for the host; if its wait_around is set, its
   wait() is called before both stamps. WITH_BASE_PROFILER_LEVEL: recorded only from that level on. In MSVC's
   C it is a __try with a __finally. */
#define WITH_BASE_PROFILER(device, name, cat, args, ...) \
    WITH_BASE_PROFILER_LEVEL(1, device, name, cat, args, __VA_ARGS__)
#define WITH_BASE_PROFILER_LEVEL(level, device, name, cat, args, ...) \
    NPUPROF_STATEMENT_BEGIN_ \
        NPUPROF_WITH_BASE_(__COUNTER__, level, device, name, cat, NPUPROF_CHECKED_LIST_(args)); \
        NPUPROF_TRY_ { __VA_ARGS__; } \
        NPUPROF_FINALLY_(npuprof_leave_block_) \
    NPUPROF_STATEMENT_END_

/* An event without a duration: PROF_INSTANT(cat, name) or PROF_INSTANT(cat, name, PROF_ARGS(...)). */
#define PROF_INSTANT(cat, ...) \
    NPUPROF_INSTANT_(__COUNTER__, NPUPROF_CATEGORY_(cat), NPUPROF_NAME_(__VA_ARGS__), \
                     NPUPROF_LIST_(__VA_ARGS__))
/* A sample of a value that changes over time. Integers stay integers, others become double. */
#define PROF_COUNTER(name, value) \
    NPUPROF_EVENT_(__COUNTER__, \
                   (NPUPROF_IS_REAL_(value) \
                    ? NPUPROF_KIND_COUNTER_REAL \
                    : NPUPROF_IS_UNSIGNED_(value) ? NPUPROF_KIND_COUNTER_UINT : NPUPROF_KIND_COUNTER_INT), \
                    name, \
                   (NPUPROF_IS_REAL_(value) ? npuprof_real_bits_(NPUPROF_CAST_(double, value)) \
                    : npuprof_int_bits_(NPUPROF_CAST_(int64_t, value))))
/* The state of a memory pool, for instance after an operator: bytes in use, and bytes that the pool has
   allocated. device: npuprof_device *, or NULL for the host; devices with the same name share a pool. tag:
   any string, copied. */
#define PROF_MEMORY(device, used_bytes, allocated_bytes, tag) \
    NPUPROF_VOID_(1, , npuprof_memory_((device), NPUPROF_CAST_(uint64_t, used_bytes), \
                                       NPUPROF_CAST_(uint64_t, allocated_bytes), (tag)))
/* PROF_ALLOC: bytes of a pool come into use. PROF_FREE: they are free again. The library adds up the bytes in
   use, also while recording is off, and records the state of the pool. Its allocated bytes are those of the
   last PROF_MEMORY, or the most that was ever in use if that is more. At most 64 pools. */
#define PROF_ALLOC(device, bytes, tag) \
    NPUPROF_ALWAYS_(npuprof_memory_change_((device), false, NPUPROF_CAST_(uint64_t, bytes), (tag)))
#define PROF_FREE(device, bytes, tag) \
    NPUPROF_ALWAYS_(npuprof_memory_change_((device), true, NPUPROF_CAST_(uint64_t, bytes), (tag)))
/* Names the calling thread, also while recording is off. name: any string, copied. Not from a signal
   handler. */
#define PROF_THREAD_NAME(name) NPUPROF_ALWAYS_(npuprof_thread_name_(name))

/* ---- Private: what the macros above expand to ----

   id is a fresh number. Why __COUNTER__ and not __LINE__: a user's macro may hold two scopes, and both are
   then on one line. */
#define NPUPROF_PLAIN_(id, level, cat, name)                                                        \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), level, \
                   NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_SPAN, cat, name), \
                   npuprof_begin_(NPUPROF_REF_(id, cat, "" name "")))
#define NPUPROF_BLOCK_OF_(id, cat, name)                                                            \
    NPUPROF_ONCE_(NPUPROF_GLUE_(npuprof_once_, id), 1, \
                  NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_SPAN, cat, name), \
                  npuprof_begin_(NPUPROF_REF_(id, cat, "" name "")))
#define NPUPROF_FUNCTION_(id)                                                                       \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), 1, \
                   NPUPROF_SITE_(id, NPUPROF_KIND_SPAN, NPUPROF_NULL_, NPUPROF_FUNCTION_NAME_), \
                   npuprof_begin_(NPUPROF_REF_(id, NPUPROF_NULL_, NPUPROF_FUNCTION_NAME_)))
#define NPUPROF_WITH_ARGS_(id, level, cat, name, args)                                              \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), level,                                        \
                   NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_SPAN, cat, name) NPUPROF_KEYS_OF_(id),    \
                   NPUPROF_BEGIN_ARGS_(id, cat, "" name "", args))
#define NPUPROF_NAMED_(id, kind, name, args)                                                        \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), 1, \
                   NPUPROF_NAMED_SITE_(id, kind, "Runtime", name) NPUPROF_KEYS_OF_(id), \
                   NPUPROF_BEGIN_NAMED_(id, NPUPROF_NULL_, kind, "Runtime", (name), (args)))
#define NPUPROF_WITH_BASE_(id, level, dev, name, cat, args)                                         \
    NPUPROF_BLOCK_(NPUPROF_GLUE_(npuprof_block_, id), level, dev,                                   \
                   NPUPROF_NAMED_SITE_(id, NPUPROF_KIND_SPAN, cat, name) NPUPROF_KEYS_OF_(id),      \
                   NPUPROF_BEGIN_NAMED_(id, NPUPROF_DEVICE_OF_(NPUPROF_GLUE_(npuprof_block_, id), dev), \
                                        NPUPROF_KIND_SPAN, (cat), (name), (args)))
#ifndef NPUPROF_FREESTANDING
#define NPUPROF_BOUNDARY_(id, kind, name) \
    NPUPROF_SCOPE_(NPUPROF_GLUE_(npuprof_scope_, id), NPUPROF_GATE_BOUNDARIES_, \
                   NPUPROF_NAMED_SITE_(id, kind, "Runtime", name) NPUPROF_KEYS_OF_(id), \
                   npuprof_begin_boundary_(NPUPROF_CONSTANT_(name) \
                                           ? NPUPROF_REF_(id, NPUPROF_NULL_, NPUPROF_NULL_) : NPUPROF_NULL_, \
                                           NPUPROF_KEYS_REF_(id), kind, "Runtime", (name)))
#define NPUPROF_NAMED_SITE_(id, kind, cat, name) NPUPROF_SITE_(id, kind, NPUPROF_NULL_, NPUPROF_NULL_)
#define NPUPROF_BEGIN_ARGS_(id, cat, name, args) \
    npuprof_begin_list_(NPUPROF_REF_(id, cat, name), NPUPROF_KEYS_REF_(id), (args))
#define NPUPROF_BEGIN_NAMED_(id, dev, kind, cat, name, args)                                        \
    npuprof_begin_name_(dev, NPUPROF_CONSTANT_(name) && NPUPROF_CONSTANT_(cat) \
                        ? NPUPROF_REF_(id, NPUPROF_NULL_, NPUPROF_NULL_) : NPUPROF_NULL_, \
                        NPUPROF_KEYS_REF_(id), kind, cat, name, args)
#define NPUPROF_BY_HAND_(id, cat, name) \
    do { \
        NPUPROF_KEYS_OF_(id) \
        NPUPROF_ALWAYS_(npuprof_begin_by_hand_(NPUPROF_KEYS_REF_(id), (cat), (name))); \
    } while (0)
#define NPUPROF_RESULT_ARGS_(id, args) npuprof_result_(NPUPROF_KEYS_REF_(id), (args))
#define NPUPROF_EVENT_ARGS_(id, cat, name, args) \
    npuprof_event_list_(NPUPROF_REF_(id, cat, name), NPUPROF_KEYS_REF_(id), (args))
#else /* NPUPROF_FREESTANDING */
#define NPUPROF_BOUNDARY_(id, kind, name) NPUPROF_NAMED_(id, kind, name, PROF_NO_ARGS)
#define NPUPROF_NAMED_SITE_(id, kind, cat, name) \
    NPUPROF_SITE_(id, kind, NPUPROF_LITERAL_(cat), NPUPROF_LITERAL_(name))
#define NPUPROF_BEGIN_ARGS_(id, cat, name, args) npuprof_begin_list_(NPUPROF_REF_(id, cat, name), (args))
#define NPUPROF_BEGIN_NAMED_(id, dev, kind, cat, name, args)                                        \
    (npuprof_wait_around_(dev), NPUPROF_IS_LITERAL_(name) && NPUPROF_IS_LITERAL_(cat)               \
        ? npuprof_begin_list_(NPUPROF_REF_(id, "", ""), args) : npuprof_begin_named_(kind, cat, name, args))
#define NPUPROF_BY_HAND_(id, cat, name) NPUPROF_ALWAYS_(npuprof_begin_by_hand_((cat), (name)))
#define NPUPROF_RESULT_ARGS_(id, args) npuprof_result_((args))
#define NPUPROF_EVENT_ARGS_(id, cat, name, args) npuprof_event_list_(NPUPROF_REF_(id, cat, name), (args))
#endif /* NPUPROF_FREESTANDING */
#define NPUPROF_PHASES_(id, name)                                                                   \
    NPUPROF_SHADOW_PUSH_                                                                            \
    NPUPROF_SCOPE_(npuprof_phase_, 1, \
                   NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_SPAN, NPUPROF_NO_CATEGORY_, name), \
                   npuprof_begin_(NPUPROF_REF_(id, NPUPROF_NULL_, "" name ""))); \
    NPUPROF_SHADOW_POP_
#define NPUPROF_NEXT_PHASE_(id, name)                                                               \
    NPUPROF_NEXT_(NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_SPAN, NPUPROF_NO_CATEGORY_, name),         \
                  npuprof_next_(NPUPROF_PHASE_TOKEN_, \
                                NPUPROF_REF_(id, NPUPROF_NULL_, "" name "")))
#define NPUPROF_EVENT_(id, kind, name, value)                                                       \
    NPUPROF_VOID_(1, NPUPROF_LITERAL_SITE_(id, kind, NPUPROF_NO_CATEGORY_, name),                   \
                  npuprof_event_now_(NPUPROF_REF_(id, NPUPROF_NULL_, "" name ""), (value)))
#define NPUPROF_INSTANT_(id, cat, name, args)                                                       \
    NPUPROF_VOID_(1, NPUPROF_LITERAL_SITE_(id, NPUPROF_KIND_INSTANT, cat, name) NPUPROF_KEYS_OF_(id), \
                  NPUPROF_EVENT_ARGS_(id, cat, "" name "", args))
#define NPUPROF_ADD_RESULT_(id, level, args)                                                        \
    NPUPROF_VOID_(level, NPUPROF_KEYS_OF_(id), NPUPROF_RESULT_ARGS_(id, args))

/* ---- Private: what npuprof_npu.h calls ----

   Host ticks are the ticks of host records. */
NPUPROF_BEGIN_C_

/* The span that submitted a job. */
typedef struct npuprof_link_ {
    uint64_t position;              /* of the span, in the slot's sequence of records */
    uint64_t root_position;         /* of the span that is the root of its trace */
    uint64_t ticks;                 /* a host stamp inside the span; 0 = there is no span to link to */
    uint32_t slot;
    bool warm_up;
} npuprof_link_;

/* A clock anchor: device_ticks was read between the two host stamps. */
typedef struct npuprof_anchor_ {
    uint64_t device_ticks, host_before, host_after;
} npuprof_anchor_;

/* Flags of what a device recorded. HOST: the stamps are host ticks, and the span's epoch is
   npuprof_host_error_code_() of their error. INSTANT: one event, at its start; VALUE: besides, its end is the
   value of a counter. */
enum { NPUPROF_STAMP_SAMPLED = 1, NPUPROF_STAMP_DEVICE = 0, NPUPROF_STAMP_HOST = 4, NPUPROF_STAMP_INSTANT = 8,
       NPUPROF_STAMP_VALUE = 10 };
/* Counts of a device's records, by why one is lost or what is odd about it. Written into images: append
   only. */
enum { NPUPROF_RECORDS_OVERWRITTEN, NPUPROF_RECORDS_STAMPS, NPUPROF_RECORDS_EPOCH, NPUPROF_RECORDS_NO_ANCHOR,
       NPUPROF_RECORDS_DRIVER, NPUPROF_RECORDS_UNKNOWN, NPUPROF_RECORDS_UNMATCHED_END,
       NPUPROF_RECORDS_UNFINISHED, NPUPROF_RECORDS_NO_LANE, NPUPROF_RECORDS_LOSS_UNKNOWN,
       NPUPROF_RECORDS_DROPPED_JOBS, NPUPROF_RECORDS_OPEN_JOBS, NPUPROF_RECORDS_AMBIGUOUS,
       NPUPROF_RECORDS_PERIOD, NPUPROF_RECORDS_CONTRADICTION,
       NPUPROF_RECORDS_COUNT,
       /* A bit for each of them that is a lost record. */
       NPUPROF_RECORDS_LOST_MASK_ = 31 | 1 << NPUPROF_RECORDS_PERIOD | 1 << NPUPROF_RECORDS_CONTRADICTION,
       NPUPROF_RECORDS_ROOM_ = 16 };
enum { NPUPROF_NOTE_WRAPS, NPUPROF_NOTE_RESETS, NPUPROF_NOTE_DEAD_READS, NPUPROF_NOTE_TORN_READS,
       NPUPROF_NOTE_RING_LOST,
       NPUPROF_NOTE_AMBIGUOUS, NPUPROF_NOTE_LAG, NPUPROF_NOTE_UNIT, NPUPROF_NOTE_COUNT,
       NPUPROF_NOTE_ROOM_ = 8 };
#define NPUPROF_MAX_HZ_ \
    UINT64_C(1000000000000000)   /* of a device's clock: a simulator that counts femtoseconds */
/* What the table calls the texts of a device's records: so that each is looked up once. The caller's; one
   thread uses it at a time. Only for texts that stay what they are. */
enum { NPUPROF_DEVICE_KEYS_ = 21, NPUPROF_DEVICE_NAMES_ = 64 };
typedef struct npuprof_device_texts_ {
    uint32_t generation;                 /* that the rest is of; 0 = none */
    const char *key[NPUPROF_DEVICE_KEYS_];
    uint64_t word[NPUPROF_DEVICE_KEYS_];
    const char *name[NPUPROF_DEVICE_NAMES_], *category[NPUPROF_DEVICE_NAMES_];
    uint32_t id[NPUPROF_DEVICE_NAMES_];
    uint64_t stamp;                      /* of the record before */
    const void *behind;                  /* where that ended */
    unsigned stamp_left;                 /* records that may have the same; 0 = read the clock */
} npuprof_device_texts_;
#if !defined(NPUPROF_OFF) && !defined(NPUPROF_FREESTANDING)
/* Host ticks now. */
NPUPROF_API_ uint64_t npuprof_ticks_(void);
/* Host ticks as ns on the clock of npuprof_now_ns(), by the rate that is known now. */
NPUPROF_API_ int64_t npuprof_ticks_to_ns_(uint64_t ticks);
/* The other way round, and how far off that may be. */
NPUPROF_API_ uint64_t npuprof_ticks_at_ns_(int64_t ns, uint64_t *error_ticks);
/* The rate that is known now, in ns per 2^32 host ticks. */
NPUPROF_API_ uint64_t npuprof_ns_per_4g_ticks_(void);
/* Adds a device to the arena. Returns its number, from 1, or 0 if the table is full. max_rate_ppb: how far
   the rate of its clock may drift, in parts per 10^9. */
NPUPROF_API_ uint32_t npuprof_device_add_(const char *name, unsigned pe_count, uint64_t nominal_hz,
                                          uint32_t max_rate_ppb);
/* Stores an anchor of a device. epoch counts the device's resets. For one device, one thread at a time. */
NPUPROF_API_ npuprof_result npuprof_device_anchor_(uint32_t device, uint32_t epoch,
                                                   const npuprof_anchor_ *anchor);
/* Adds to one of a device's counts; note: NPUPROF_NOTE_*. */
NPUPROF_API_ void npuprof_device_note_(uint32_t device, unsigned note, uint64_t add);
/* Adds to the counts of a device's records: add[NPUPROF_RECORDS_COUNT]. */
NPUPROF_API_ void npuprof_device_records_(uint32_t device, const uint64_t *add);
/* Names the track of a PE of a device. False: the table is full. */
NPUPROF_API_ bool npuprof_device_lane_(uint32_t device, unsigned pe, const char *name);
enum { NPUPROF_DEVICE_IDLE_ = 1, NPUPROF_DEVICE_CAUSAL_ = 2 };
/* Says of a device: IDLE: its counter was 0 or stood at open; CAUSAL: device time follows from causality. */
NPUPROF_API_ void npuprof_device_flag_(uint32_t device, uint32_t flag);
/* This thread's slot, and its innermost span that is open and recorded; slot 0: it never recorded. */
NPUPROF_API_ npuprof_link_ npuprof_link_here_(void);
/* Records a finished device span; stamps in extended device ticks. flags: NPUPROF_STAMP_*. link may be
   NULL. */
NPUPROF_API_ void npuprof_device_span_(uint32_t device, uint32_t epoch, unsigned pe, const char *category,
                                       const char *name,
                                       uint64_t start_ticks, uint64_t end_ticks, unsigned flags,
                                       const npuprof_link_ *link,
                                       npuprof_args args);
/* An error in host ticks as 16 bits, rounded up, for a span with NPUPROF_STAMP_HOST; 0 = not known. */
NPUPROF_API_ uint32_t npuprof_host_error_code_(uint64_t error_ticks);
/* npuprof_device_span_() with integer arguments, whose keys are in `texts`; and the name, if keeps_name. */
NPUPROF_API_ void npuprof_device_record_(npuprof_device_texts_ *texts, bool keeps_name, uint32_t device,
                                         uint32_t epoch, unsigned pe, const char *category, const char *name,
                                         uint64_t start_ticks, uint64_t end_ticks, unsigned flags,
                                         const npuprof_link_ *link, npuprof_args args);
/* Counts spans or events as lost; cause: NPUPROF_LOST_*. */
NPUPROF_API_ void npuprof_count_lost_(unsigned cause, uint64_t count);
/* What is known of a device clock's rate. STEADY: it keeps within max_rate_ppb of a centre in a window of
   host ticks. VARIES, STANDS: it is between hz_min and hz_max; 0 = no limit. second: in host ticks. */
enum { NPUPROF_MAP_STEADY_, NPUPROF_MAP_VARIES_, NPUPROF_MAP_STANDS_ };
typedef struct npuprof_map_rate_ {
    uint32_t kind, max_rate_ppb;
    uint64_t second, window, hz_min, hz_max;
    bool may_be_late;              /* reads may show the counter late */
} npuprof_map_rate_;
/* Maps device ticks to host ticks. anchors: sorted by device ticks. newest: a read behind them; NULL: none
   is. now: host ticks. *error_ticks gets the error bound in host ticks. Returns false if the reads do not
   suffice: there are none, or only one, with other ticks; or they contradict each other, and the ticks are
   behind all of them. */
NPUPROF_API_ bool npuprof_map_ticks_(const npuprof_anchor_ *anchors, size_t count,
                                     const npuprof_anchor_ *newest, uint64_t now,
                                     const npuprof_map_rate_ *rate, uint64_t device_ticks,
                                     uint64_t *host_ticks, uint64_t *error_ticks);
#endif /* !NPUPROF_OFF && !NPUPROF_FREESTANDING */
NPUPROF_END_C_
NPUPROF_QUIET_POP_

#endif /* NPUPROF_H: end of header */

#if defined(NPUPROF_H) && defined(NPUPROF_IMPLEMENTATION) && !defined(NPUPROF_OFF) && \
    !defined(NPUPROF_IMPLEMENTATION_DONE_)
#define NPUPROF_IMPLEMENTATION_DONE_

#ifndef NPUPROF_FREESTANDING
#include <stdarg.h>
#include <string.h>
#endif

NPUPROF_BEGIN_C_
/* Why: a global of the user's file may have the name of a local here; -Wshadow would warn. */
NPUPROF_QUIET_PUSH_

/* ==== src/numbers/time.h ============================================================= >>numbers/time ==== */

/* Time as numbers: the user's clock, sums that do not wrap, and the window of an anchor. Both recorders and
   npuprof_npu.h use it. Owns no data; may not know where a time comes from or where it is stored. */

/* The user's expressions NPUPROF_NOW() and NPUPROF_NOW_HZ, each expanded here only.
   Why functions without a local or a parameter: an expression may use any name, and a name of ours would hide
   the user's. */
#ifdef NPUPROF_NOW
enum { NPUPROF_CLOCK_BITS_ = NPUPROF_WIDTH_ };
NPUPROF_ALWAYS_INLINE_ uint64_t npuprof_user_now_(void) { return (uint64_t)(NPUPROF_NOW()); }
NPUPROF_ALWAYS_INLINE_ uint64_t npuprof_user_hz_(void) { return (uint64_t)(NPUPROF_NOW_HZ); }

#else
enum { NPUPROF_CLOCK_BITS_ = 64 };
#endif

/* ---- Sums that stop at 0 and at UINT64_MAX */

NPUPROF_OWN_ static inline uint64_t npuprof_saturating_add_(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

NPUPROF_OWN_ static inline uint64_t npuprof_saturating_sub_(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }
NPUPROF_OWN_ static inline uint64_t npuprof_min_(uint64_t a, uint64_t b) { return a < b ? a : b; }
NPUPROF_OWN_ static inline uint64_t npuprof_max_(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* ---- An anchor: device ticks that were read at some moment between two host stamps */

NPUPROF_OWN_ static inline uint64_t npuprof_anchor_width_(const npuprof_anchor_ *a)
{
    return npuprof_saturating_sub_(a->host_after, a->host_before);
}

NPUPROF_OWN_ static inline uint64_t npuprof_anchor_middle_(const npuprof_anchor_ *a)
{
    return a->host_before + npuprof_anchor_width_(a) / 2;
}

/* How far the moment can be from the middle at most. */
NPUPROF_OWN_ static inline uint64_t npuprof_anchor_error_(const npuprof_anchor_ *a)
{
    return npuprof_anchor_width_(a) - npuprof_anchor_width_(a) / 2;
}

/* a * b / c, rounded down or up. UINT64_MAX: it does not fit, or c is 0. Bit by bit, for compilers that have
   no division of 128 bits. */
NPUPROF_OWN_ static inline uint64_t npuprof_mul_div_by_bits_(uint64_t a, uint64_t b, uint64_t c, bool up)
{
    uint64_t low = (a & UINT32_MAX) * (b & UINT32_MAX), left = (a >> 32) * (b & UINT32_MAX),
        right = (a & UINT32_MAX) * (b >> 32);
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
    return up && r != 0 && q != UINT64_MAX ? q + 1 : q;
}
/* ==== src/numbers/text.h ============================================================= >>numbers/text ==== */

/* Text: copying into a buffer of fixed size, lists with commas, and UTF-8.
   Both recorders use this part, so nothing of a C library is called here. A text may hold any bytes: what is
   not well-formed UTF-8 is copied and cut, too; writers show a bad byte as U+FFFD. */

/* Copies `from`, cut to capacity - 1 bytes, and a NUL. NULL is the empty text. */
NPUPROF_OWN_ static inline void npuprof_text_copy_(char *to, size_t capacity, const char *from)
{
    size_t n = 0;
    for (; from && from[n] && n + 1 < capacity; n++) to[n] = from[n];
    to[n] = 0;
}

/* The next item of a list with commas, and behind it *at. False: there are no more. */
NPUPROF_ATTRIBUTE_((unused)) NPUPROF_OWN_ static bool npuprof_text_next_item_(const char **at, const char **item,
                                                                 size_t *length)
{
    if (!**at) return false;
    *item = *at;
    for (*length = 0; (*at)[*length] && (*at)[*length] != ',';) ++*length;
    *at += *length + ((*at)[*length] == ',');
    return true;
}

/* Does a byte of that value continue a sequence? */
NPUPROF_OWN_ static inline bool npuprof_utf8_continues_(unsigned char c) { return (c & 0xC0) == 0x80; }

/* Bytes of the well-formed sequence at p, 1 to 4, of which `left` are there. 0: there is none. */
NPUPROF_ATTRIBUTE_((unused)) NPUPROF_OWN_ static size_t npuprof_utf8_length_(const uint8_t *p, size_t left)
{
    const uint32_t c = p[0];
    const size_t n = c < 0x80 ? 1 : c < 0xC2 ? 0 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : c < 0xF5 ? 4 : 0;
    if (n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if (!npuprof_utf8_continues_(p[i])) return 0;
    /* The second byte excludes longer forms than needed, surrogates, and what is above U+10FFFF. */
    if (c == 0xE0 && p[1] < 0xA0) return 0;
    if (c == 0xED && p[1] > 0x9F) return 0;
    if (c == 0xF0 && p[1] < 0x90) return 0;
    if (c == 0xF4 && p[1] > 0x8F) return 0;
    return n;
}

/* Length of a UTF-8 character that a terminal would obey or that turns the text around it: controls, C1
   controls, bidirectional marks, line separators. 0: it is none of these. */
NPUPROF_ATTRIBUTE_((unused)) NPUPROF_OWN_ static size_t npuprof_utf8_control_length_(const uint8_t *c, size_t left)
{
    if (c[0] < 0x20 || c[0] == 0x7F) return 1;
    if (left < 2) return 0;
    if ((c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0) || (c[0] == 0xD8 && c[1] == 0x9C)) return 2;
    if (left < 3 || c[0] != 0xE2) return 0;
    if (c[1] == 0x80) return c[2] == 0x8E || c[2] == 0x8F || (c[2] >= 0xA8 && c[2] <= 0xAE) ? 3 : 0;
    return c[1] == 0x81 && c[2] >= 0xA6 && c[2] <= 0xA9 ? 3 : 0;
}

/* Replaces, in the first `length` bytes, what a terminal would obey by '?', and what is no UTF-8. Returns the
   length that is left. */
NPUPROF_OWN_ static inline size_t npuprof_text_make_harmless_(char *text, size_t length)
{
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        const uint8_t *const c = (const uint8_t *)text + i;
        const size_t whole = npuprof_utf8_length_(c, length - i);
        const bool harmless = whole && !npuprof_utf8_control_length_(c, length - i);
        for (size_t n = 0; harmless && n < whole; n++) text[used + n] = text[i + n];
        if (!harmless) text[used] = '?';
        used += harmless ? whole : 1;
        i += whole ? whole : 1;
    }
    return used;
}

/* Length of a text of `length` bytes when cut to at most `limit`, not inside a sequence. Where there is no
   UTF-8 it is cut at the limit. */
NPUPROF_OWN_ static inline size_t npuprof_utf8_cut_(const char *text, size_t length, size_t limit)
{
    if (length <= limit) return length;
    size_t n = limit;
    while (n > 0 && limit - n < 4 && npuprof_utf8_continues_((unsigned char)text[n])) n--;
    return npuprof_utf8_continues_((unsigned char)text[n]) ? limit : n;
}

enum { NPUPROF_ADDRESS_TEXT_ = 19 };

/* An address as text: 0x and its digits, in lower case. Returns where it begins in `text`, which it ends. */
NPUPROF_OWN_ static inline const char *npuprof_address_text_(char text[NPUPROF_ADDRESS_TEXT_], uint64_t address)
{
    char *p = text + NPUPROF_ADDRESS_TEXT_ - 1;
    *p = 0;
    do *--p = "0123456789abcdef"[address & 15];
    while ((address >>= 4) != 0);
    *--p = 'x';
    *--p = '0';
    return p;
}
/* ==== src/format/layouts.h ========================================================= >>format/layouts ==== */

/* The image (.npuprof): the one binary format. It has five layouts.
   This part holds what they have in common.

     layout    where it is found                                                      described in
     ARENA     memory of a program that records, its mapped file, a dump of its RAM   format/arena.h
     CODED     what goes into a sink or a file: blocks of coded records               format/arena.h
     STREAM    what did so before 1.0: blocks of records as they are                  format/arena.h
     COMPACT   RAM of firmware that records                                           format/compact.h
     PARTS     what npuprof_write_image() of firmware sends                           format/compact.h

   Every image begins with npuprof_image_start_. All integers of an image are in the byte order that its
   `endian` shows. No structure has padding that a compiler could choose: an image is the same for every
   compiler and machine, up to its byte order.

   All arithmetic with ticks is modulo 2^64. Texts are UTF-8 where the program gave that. The numbers that
   images hold are listed in public/types.h (NPUPROF_KINDS, NPUPROF_LOSSES, NPUPROF_ARG_*) and public/macros.h
   (NPUPROF_STAMP_*, NPUPROF_NOTE_*, NPUPROF_RECORDS_*).

   A change here is seen by the writers (arena/, record/, write/ and firmware/), by read/, by tools/convert/,
   which checks every byte of an image before anything uses it, and by tests/image/second_reader.py, which is
   written by this specification alone. tests/image/corpus/ holds images of every machine, which must be
   readable for ever.

   This room owns no data and does not know who writes or reads an image. */

/* ---- VERSIONS  `format` is 1, and frozen: each reader of format 1 reads each image of format 1.

   What keeps the number: a new kind of record, control id, type of argument or field, type of table entry,
   state of a chunk or block, cause of loss, count of a device; a field that takes the place of one that was 0
   and means nothing by 0. Numbers are appended, and one that was written keeps its meaning. So that it can be
   skipped, a new control id or type of argument takes one unit, a new type of field one cell.
   A reader skips what has a number that it does not know, and counts it.

   What changes it: anything that a reader which skips would misunderstand. A reader refuses a larger number,
   and says which one it reads; a newer reader goes on reading the smaller ones. */

/* ---- KINDS of events and spans, and the value that each has:
     SPAN, RECORD, WARM_UP, INFERENCE, OPERATOR   spans, which nest on their thread: begin and end
     INSTANT                                      0
     COUNTER_INT, COUNTER_UINT, COUNTER_REAL      a signed or unsigned integer, the bits of a double
     MEMORY                                       bytes in use. Its name is the tag, its category the pool;
                                                  without one it is the host's
     FLOW_OUT, FLOW_IN, ASYNC_BEGIN, ASYNC_END    the id. An ASYNC_END ends the last ASYNC_BEGIN of its id,
                                                  and has no name
     FINISHED                                     its start in ns: of a host since the Unix epoch,
                                                  COMPACT and PARTS since `first`
     DEVICE                                       its start in device ticks
   Of two arguments with the same key the later one counts. */

/* The first 24 bytes of npuprof_header_ and of npuprof_compact_header_, which repeat these fields. */
typedef struct npuprof_image_start_ {
    char magic[8];                 /*  0 "NPUPROF\n" */
    uint32_t endian;               /*  8 0x01020304, as the machine that wrote the image stores it */
    uint32_t format;               /* 12 1, see VERSIONS */
    uint32_t layout;               /* 16 NPUPROF_LAYOUT_* */
    uint32_t header_bytes;         /* 20 size of the whole header */
} npuprof_image_start_;            /* 24 */

/* Written into images: append only. */
enum {
    NPUPROF_LAYOUT_ARENA = 1,
    NPUPROF_LAYOUT_STREAM = 2,
    NPUPROF_LAYOUT_COMPACT = 3,
    NPUPROF_LAYOUT_PARTS = 4,
    NPUPROF_LAYOUT_CODED = 5
};

/* Types of arguments: the public ones, and these two. */
enum {
    NPUPROF_ARG_STR_CUT_ = NPUPROF_ARG_STR + 1,   /* a string that was longer than an argument may be */
    NPUPROF_ARG_STR_NULL_                         /* a string that was NULL */
};

/* Checked when compiling; a false condition gives an array of size -1.
   Why not _Static_assert: C99 and C++ do not have it. */
#define NPUPROF_ASSERT_(name, condition)                              \
    typedef char npuprof_assert_##name##_[(condition) ? 1 : -1]       \
        NPUPROF_ATTRIBUTE_((unused))
/* ==== src/format/compact.h ========================================================= >>format/compact ==== */

/* The layouts COMPACT and PARTS, structure by structure. A number before a field's comment is its offset.

   COMPACT is the arena of a build with NPUPROF_FREESTANDING:
       header of 80 bytes | cells of 16 bytes
   PARTS is what npuprof_write_image() makes of it, to be sent over a line that may lose some:
       header | parts | header again
   A stream is PARTS, too, without an end, and its parts have another head, see STREAM:
       header | up to 64 parts | header | up to 64 parts | ...
   There the header is what is in a part, so a file of it begins with the head of one. Its clock and losses
   are of that moment. So who reads may come late, and sees a target that began anew: the numbers of cells go
   back.
   Everything is made of 32-bit words. */

/* ---- HEADER */
typedef struct npuprof_compact_header_ {
    uint8_t magic[8];              /*  0 npuprof_image_start_, down to header_bytes */
    uint32_t endian, format, layout, header_bytes;   /* 8 */
    uint8_t clock_bits, context_bits, pointer_bytes, build_kind;   /* 24 build_kind: NPUPROF_BUILD_*, and
                                         what happens when it is full: NPUPROF_KEEP_* << 4 */
    uint32_t cells;                /* 28 how many there are */
    uint32_t used;                 /* 32 how many are taken; more than `cells`: all of them. Of a RING: see
                                         there */
    uint32_t lost;                 /* 36 spans and events that did not fit, modulo 2^32; of
                                         NPUPROF_KEEP_NEWEST: all there were, so those that are not here were
                                         lost */
    uint32_t lost_notes;           /* 40 names, metadata, pauses, results and facts about devices that did
                                         not fit; of NPUPROF_STREAM also ends of spans */
    uint32_t clock;                /* 44 the clock when last read, without its low bits: its low 16, or half
                                         of them if it has fewer than 24. Of a clock with 48 bits or more only
                                         in a RING: when index 0 was last passed */
    uint32_t hz_low, hz_high;      /* 48 the clock's rate */
    uint32_t first_low, first_high;   /* 56 the stamp at the start of the trace */
    uint32_t address_low, address_high;   /* 64 of a constant of the program. Cells hold the low 32 bits of
                                         addresses; all addresses are near this one */
    uint32_t build;                /* 72 which program wrote this */
    uint32_t crc;                  /* 76 PARTS: of the 76 bytes before it. COMPACT: 0, because it stands where
                                         cell -1 has the bit NPUPROF_CELL_OPEN_; of NPUPROF_STREAM, also in
                                         the stream: as `used`, of the cell that is sent next */
} npuprof_compact_header_;         /* 80 */

/* build_kind: `build` is nothing; the first four bytes of the GNU build id, as a word. */
enum { NPUPROF_BUILD_UNKNOWN_, NPUPROF_BUILD_GNU_ };
enum { NPUPROF_BUILD_NOTE_HEAD_ = 16 };   /* bytes before the id in the ELF note that holds it */

/* ---- RING  The cells of a build with NPUPROF_KEEP_NEWEST or NPUPROF_STREAM: build_kind says so. A record
   lies in cells one behind the other, and none goes on from the last cell to the first, so who starts at cell
   0 finds each record behind the one before it.
   `used`: bits 0 to 15 are the index of the cell that is taken next; there begins the oldest record, which
   the next one replaces. An index of 0xFFFF: a reader was at work on the target, so where it begins is not
   known. Bits 16 to 28 count the laps, modulo 2^13. Bit 31 is set. Cells that were never taken are all 0.
   A record with NPUPROF_CELL_OPEN_ is kept in its place however long the ring runs: a span until it ends, a
   name or metadata until there is a newer one of the same context, number or key, a device for ever, and the
   four newest anchors of each. So a kept record may be older than those before it.
   Stamps: an old record's upper bits cannot follow from the one before it. They follow from `clock`: a start
   is at most a quarter of its range after that, and less than three quarters before.
   PARTS of a ring by npuprof_write_image(): all `cells`, from the oldest on, the first one as number 0;
   `used` is that of the ring, with the index of the oldest.
   A stream: cell number n is at index n mod `cells`, in lap n / `cells`. */
#define NPUPROF_RING_INDEX_ ((uint32_t)0xFFFF)
#define NPUPROF_RING_IS_ 0x80000000u
enum { NPUPROF_RING_LAP_SHIFT_ = 16 };

/* half[1] of a record in a ring with NPUPROF_CELL_OPEN_: `used` >> 16 of when it was taken, and flags. */
#define NPUPROF_CELL_CLAIMED_ 0x4000u   /* being written or replaced: nothing is here, whatever `ref` says */
#define NPUPROF_CELL_SENT_ 0x2000u      /* it was handed to the sink */

/* ---- CELL  A record is one cell, followed by field cells if it has more to say. A start has 48 -
   context_bits bits, an end 47. Above them: a start is the stamp with these bits that is nearest to the start
   of the record before, of the first record to `first`; in a RING see there. An end is the first stamp with
   these bits that is not before the start. A track is a context; their numbers begin with 0. A call site and
   a key are addresses: their upper half is that of `address`, or one more or less, whichever is nearer. */
typedef struct npuprof_cell_ {
    uint32_t ref;                  /*  0 the call site: low 32 bits of its address, a multiple of 4;
                                         or kind << 8 | NPUPROF_CELL_CLEARED_, kind: NPUPROF_KIND_*,
                                         NPUPROF_CELL_KIND_*, or 0: nothing is here. An event may have
                                         1 + a number in the upper half: its name is that of the number.
                                         Bit 0: field cells follow. 0: the record is not finished */
    uint32_t start;                /*  4 low 32 bits of the stamp */
    uint32_t end;                  /*  8 of a closed span: low 32 bits of the stamp.
                                         Of another record with fields, and of one that is not finished:
                                         how many cells it has (0 is 1). Of an open PROF_BEGIN: a token */
    union { uint32_t word; uint16_t half[2]; } high;
                                   /* 12 half[0]: context, and above it more bits of the start. 14 half[1]:
                                      more bits of the end. NPUPROF_CELL_OPEN_: the span is open, and
                                         the end means nothing */
} npuprof_cell_;                   /* 16 */

#define NPUPROF_CELL_OPEN_ 0x8000u
#define NPUPROF_CELL_CLEARED_ 2u   /* alone, or with bit 0: nothing is here any more */
enum { NPUPROF_CELL_STAMP_BITS_ = 47 };

/* Records that are no events: a thread's name, as an argument, and, as VALUE, its number in the system;
   metadata: the key is the name, the value an argument; a pause, as a span. SLEPT: the clock stood still just
   before the stamp for so many ticks, 47 bits in the place of an end, and the header's `first` was moved back
   by them. NAME: the name of the number VALUE, as an argument. Then what npuprof_npu.h records. device: its
   number, from 1.
     kind     VALUE           SECOND                                    THIRD
     DEVICE   nominal_hz      max_rate_ppb | bits of counter << 32      device | pe_count << 8 |
                              1 << 32, if the counter may stand while time goes on
     ANCHOR   device_ticks    host_after, in ticks                      device | epoch << 8 |
                                                                        (host_after - host_before) << 32
     COUNT    what is added   which NPUPROF_NOTE_*                      device
     RESULT   number of the cell of a span that was open, as of SAMPLED: its arguments are that span's, and
              replace those of the same key
   An event has its value (format/layouts.h, KINDS) as VALUE; of FINISHED, SECOND is the end in ns; of MEMORY,
   SECOND is the allocated bytes, and THIRD the bytes changed << 2 | 1 alloc, 2 free.
   Of devices whose records the host takes (NPUPROF_NPU_RECORDS), in the order of their stamps:
     RING     a number, or a code     what it is: NPUPROF_CELL_RING_*   device | ring << 8 | which << 16
              NAME: a name that belongs to it. NPUPROF_CELL_RING_WORD_: `which` is the member's number in
              src/npu/ring_words.h
     JOB      NPUPROF_CELL_JOB_*      x, as of SAMPLED; or 0            device | what << 8 | epoch << 16
     ENTRY    ring                    0                                 device | epoch << 8 |
              NPUPROF_CELL_TIMED_, if ticks are there. WORDs: those ticks, and the host's ticks before and
              after them; then the entry, its lowest byte first; none: the queue is empty
     HAND     job                     pe | last << 16                   device
              of npuprof_npu_complete_host(). WORDs: start_ns, end_ns
   CLOSE has no fields: NPUPROF_STREAM, the end of a span that was sent while it was open. `start` and half[0]
   are the end's stamp and the span's context; `end` and half[1] the low 47 bits of the span's start. It ends
   the last such span of that context that has no end yet.
   NPUPROF_STREAM sends what is kept once a lap: a record with NPUPROF_CELL_OPEN_ and the same index, kind or
   call site, context and start as one before is that one again, for hosts that came late or lost it.
   A device span is an event of kind NPUPROF_KIND_DEVICE:
              start_ticks     end_ticks                                 device | epoch << 8 | flags | x << 32
   NPUPROF_CELL_SAMPLED_: x is the number, from 1, of the cell of its host span, whose name and category it
   has; in a ring `used` of when that cell was taken. Else x is the pe. NPUPROF_CELL_BY_HOST_: both
   ticks are the recorder's own, and epoch is their error in ticks; 0 = not known. */
#define NPUPROF_CELL_SAMPLED_ 0x1000000u
#define NPUPROF_CELL_BY_HOST_ 0x2000000u
enum {
    NPUPROF_CELL_KIND_THREAD_ = 64, NPUPROF_CELL_KIND_METADATA_, NPUPROF_CELL_KIND_PAUSE_,
    NPUPROF_CELL_KIND_DEVICE_, NPUPROF_CELL_KIND_ANCHOR_, NPUPROF_CELL_KIND_COUNT_,
    NPUPROF_CELL_KIND_CLOSE_, NPUPROF_CELL_KIND_SLEPT_, NPUPROF_CELL_KIND_NAME_,
    NPUPROF_CELL_KIND_RESULT_, NPUPROF_CELL_KIND_RING_, NPUPROF_CELL_KIND_JOB_, NPUPROF_CELL_KIND_ENTRY_,
    NPUPROF_CELL_KIND_HAND_
};

/* Of RING: a member; the name of one of `args`; an op and its name; a lane and its name; a value of `kind`;
   what that is; the category, as NAME. */
enum {
    NPUPROF_CELL_RING_WORD_, NPUPROF_CELL_RING_ARG_, NPUPROF_CELL_RING_OP_, NPUPROF_CELL_RING_LANE_,
    NPUPROF_CELL_RING_KIND_, NPUPROF_CELL_RING_KIND_IS_, NPUPROF_CELL_RING_CATEGORY_
};

/* Of JOB: a submission begins in the span x, and VALUE is its stream; it ends; VALUE is its number; so many
   records end it. x 0: it is the newest open one of the context. */
enum {
    NPUPROF_CELL_JOB_BEGIN_, NPUPROF_CELL_JOB_END_, NPUPROF_CELL_JOB_NUMBER_, NPUPROF_CELL_JOB_RECORDS_,
    NPUPROF_CELL_JOB_CALL_               /* a call: VALUE is 1, open, or 2. WORDs: the target's */
};
#define NPUPROF_CELL_TIMED_ 0x1000000u   /* of ENTRY: ticks are there */

/* ---- FIELD CELL  Same size, other meaning:
      0  u32  key: address of an argument's key
      4  u32  type | length << 8 | NPUPROF_FIELD_MORE_ if another field follows; of the first field of a
              record in a RING also the cells of that record << 20
      8  u32  low half of the value, 12 u32 high half; or 8 bytes of a text, whose rest lies in the next cells
   type: of an argument, or one of these. A text has length bytes. NAME, CATEGORY and TRACK are of records
   without a call site; an argument of METADATA, THREAD and NAME has no key. A SECOND or THIRD that is not
   there is 0. RESULT is an argument: an npuprof_result, whose text the host has. WORD: see ENTRY and HAND. */
#define NPUPROF_FIELD_MORE_ 0x80000000u
#define NPUPROF_FIELD_LENGTH_(word) ((word) >> 8 & 0xFFF)
#define NPUPROF_FIELD_CELLS_(word) ((word) >> 20 & 0x7FF)
enum {
    NPUPROF_FIELD_NAME_ = 8, NPUPROF_FIELD_CATEGORY_, NPUPROF_FIELD_TRACK_, NPUPROF_FIELD_VALUE_,
    NPUPROF_FIELD_SECOND_, NPUPROF_FIELD_THIRD_, NPUPROF_FIELD_RESULT_, NPUPROF_FIELD_WORD_
};

/* ---- CALL SITE  In the target's memory, and so in its ELF file: pointer to the name, pointer to the
   category, u8 kind, u8[3] line, the lowest byte first. If line is not 0, pointer to the file's name,
   aligned; older programs have no line. */

/* ---- PART  A head and up to 16 cells. Each part, and each of the two headers, can be found and checked by
   itself: a header by its magic, a part by its mark, both by their crc. */
enum { NPUPROF_PART_CELLS_ = 16 };
#define NPUPROF_PART_MARK_ 0x5442504Eu

typedef struct npuprof_part_head_ {
    uint32_t mark;                 /*  0 */
    uint32_t first;                /*  4 number of its first cell, counted over all parts, modulo 2^32: a gap
                                         is a loss */
    uint16_t count;                /*  8 cells */
    uint16_t lead;                 /* 10 how many of them continue a record of an earlier part */
    uint32_t names;                /* 12 crc of the names, see below. 0: the target does not know them */
    uint32_t crc;                  /* 16 of the 16 bytes before it and of the cells */
} npuprof_part_head_;              /* 20 */

/* names covers the records that begin in the part, in their order. For each: the name of the call site, a
   0, the category (nothing if there is none), a 0, the kind; then of each field that has a key: the key, a
   0. */

/* ---- STREAM  A part of a stream: this head and up to 16 cells. One that begins with the magic of a header
   is a header: five cells without numbers, and its own `crc` says nothing. */
#define NPUPROF_STREAM_MARK_ 0x5453504Eu

typedef struct npuprof_stream_head_ {
    uint32_t mark;                 /*  0 */
    uint32_t crc;                  /*  4 of all that follows, with the cells */
    uint32_t next;                 /*  8 number of the cell behind it, modulo 2^32: a gap is a loss */
    uint16_t count;                /* 12 cells */
    uint16_t lead;                 /* 14 how many of them continue a record of an earlier part; it may be more
                                         than there are */
} npuprof_stream_head_;            /* 16 */

/* CRC-32 as in zip and Ethernet. Begin with UINT32_MAX; the complement at the end is the checksum. */
NPUPROF_OWN_ static inline uint32_t npuprof_crc_add_(uint32_t crc, const void *bytes, size_t count)
{
    for (const uint8_t *p = (const uint8_t *)bytes; count--; p++) {
        crc ^= *p;
#ifdef NPUPROF_FREESTANDING
        /* Why otherwise: less flash. */
        for (int bit = 7; bit >= 0; bit--)
            crc = (int32_t)(crc << 31) < 0 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
#else
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0xEDB88320u & (0 - (crc & 1)));
#endif
    }
    return crc;
}

NPUPROF_ASSERT_(part, sizeof(npuprof_part_head_) == 20 && sizeof(npuprof_stream_head_) == 16);
NPUPROF_ASSERT_(compact_start, offsetof(npuprof_compact_header_, header_bytes) ==
                           offsetof(npuprof_image_start_, header_bytes));
NPUPROF_ASSERT_(compact, sizeof(npuprof_compact_header_) == 80 && sizeof(npuprof_cell_) == 16 &&
                             offsetof(npuprof_compact_header_, hz_low) == 48);
/* Why asserted: where an int has 16 bits, ~0xFFFFu is 0. */
NPUPROF_ASSERT_(ring_index, ~NPUPROF_RING_INDEX_ == (uint32_t)0xFFFF0000u);

#ifdef NPUPROF_FREESTANDING

/* ==== src/os/none.h ======================================================================= >>os/none ==== */

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
NPUPROF_OWN_ static inline npuprof_os_mask_ npuprof_os_mask_interrupts_(void)
{
    return (npuprof_os_mask_)(NPUPROF_MASK());
}

NPUPROF_OWN_ static inline void npuprof_os_unmask_interrupts_(npuprof_os_mask_ npuprof_mask_)
{
    NPUPROF_UNMASK(npuprof_mask_);
}

#elif defined(__AVR__)
#define NPUPROF_MASKS_ 1
typedef uint8_t npuprof_os_mask_;
NPUPROF_OWN_ static inline npuprof_os_mask_ npuprof_os_mask_interrupts_(void)
{
    npuprof_os_mask_ before;
    __asm__ volatile("in %0, 0x3f\n\tcli" : "=r"(before) : : "memory");
    return before;
}

NPUPROF_OWN_ static inline void npuprof_os_unmask_interrupts_(npuprof_os_mask_ before)
{
    __asm__ volatile("out 0x3f, %0" : : "r"(before) : "memory");
}

#elif defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' && !defined(__ARM_FEATURE_LDREX)
#define NPUPROF_MASKS_ 1
typedef uint32_t npuprof_os_mask_;
NPUPROF_OWN_ static inline npuprof_os_mask_ npuprof_os_mask_interrupts_(void)
{
    npuprof_os_mask_ before;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(before) : : "memory");
    return before;
}

NPUPROF_OWN_ static inline void npuprof_os_unmask_interrupts_(npuprof_os_mask_ before)
{
    __asm__ volatile("msr primask, %0" : : "r"(before) : "memory");
}

#elif defined(__riscv) && !defined(__riscv_atomic)
#define NPUPROF_MASKS_ 1
typedef uint32_t npuprof_os_mask_;
NPUPROF_OWN_ static inline npuprof_os_mask_ npuprof_os_mask_interrupts_(void)
{
    unsigned long before;
    __asm__ volatile("csrrci %0, mstatus, 8" : "=r"(before) : : "memory");
    return (npuprof_os_mask_)before & 8;
}

NPUPROF_OWN_ static inline void npuprof_os_unmask_interrupts_(npuprof_os_mask_ before)
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
NPUPROF_OWN_ static inline uint32_t npuprof_os_load_(const uint32_t *word)
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

NPUPROF_OWN_ static inline void npuprof_os_store_(uint32_t *word, uint32_t value)
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
NPUPROF_OWN_ static inline uint32_t npuprof_os_acquire_(const uint32_t *word)
{
#if NPUPROF_MASKS_
    const uint32_t value = npuprof_os_load_(word);
    NPUPROF_SIGNAL_FENCE_();
    return value;
#else
    return NPUPROF_LOAD_ACQUIRE_(word);
#endif
}

NPUPROF_OWN_ static inline void npuprof_os_release_(uint32_t *word, uint32_t value)
{
#if NPUPROF_MASKS_
    NPUPROF_SIGNAL_FENCE_();
    npuprof_os_store_(word, value);
#else
    NPUPROF_STORE_RELEASE_(word, value);
#endif
}
/* ==== src/firmware/arena.h ========================================================= >>firmware/arena ==== */

/* The memory of the recorder without an operating system: one list of cells (format/compact.h), the clock
   that stamps them, and their set-up.
   Why another recorder: slots, chunks, a table of names, clocks to fit and lanes are not needed on a
   microcontroller, and take more flash than it has. The host makes of the cells what its own recorder would
   have recorded, so every output and report is there.

   Owns the arena:
     header.used    how many cells are taken: >>firmware/cells and >>firmware/ring.
     header.clock   the stamp without its low bits, moved on by who reads the clock.
     header.lost, lost_notes   any task counts.
     cells          who takes them owns them until the record is finished.
     the rest       written by npuprof_fw_set_up_(), before anything is recorded.
   May not know events. */

#if defined(NPUPROF_NAMES_SECTION) && !defined(NPUPROF_NO_JSON)
#error "npuprof.h: with NPUPROF_NAMES_SECTION the target does not know the names; define NPUPROF_NO_JSON, too"
#endif

#define NPUPROF_CONTEXT_BITS_                                                                          \
    ((NPUPROF_CONTEXTS > 1) + (NPUPROF_CONTEXTS > 2) + (NPUPROF_CONTEXTS > 4) + (NPUPROF_CONTEXTS > 8) + \
     (NPUPROF_CONTEXTS > 16) + (NPUPROF_CONTEXTS > 32) + (NPUPROF_CONTEXTS > 64) + (NPUPROF_CONTEXTS > 128))
enum { NPUPROF_FW_HEADER_CELLS_ = sizeof(npuprof_compact_header_) / sizeof(npuprof_cell_) };
#define NPUPROF_FW_CELLS_IN_(bytes) (((bytes) - sizeof(npuprof_compact_header_)) / sizeof(npuprof_cell_))

#if NPUPROF_ARENA_BYTES
/* Why address and size are constants: each saves an instruction. */
static struct {
    npuprof_compact_header_ header;
    npuprof_cell_ cells[NPUPROF_FW_CELLS_IN_(NPUPROF_ARENA_BYTES)];
} npuprof_static_arena_ NPUPROF_ATTRIBUTE_((aligned(8)));
#define npuprof_fw_arena_ (&npuprof_static_arena_.header)
#define NPUPROF_FW_CELL_COUNT_() ((uint32_t)NPUPROF_FW_CELLS_IN_(NPUPROF_ARENA_BYTES))
#else
/* Why never NULL: the header of no arena is all zero, so it has no cells, and needs no question. */
static npuprof_compact_header_ npuprof_fw_no_arena_;
static npuprof_compact_header_ *npuprof_fw_arena_ = &npuprof_fw_no_arena_;
#define NPUPROF_FW_CELL_COUNT_() npuprof_fw_arena_->cells
#endif
#ifndef NPUPROF_STATIC
int npuprof_gate_ = INT_MIN;
#endif

NPUPROF_OWN_ static npuprof_cell_ *npuprof_fw_cells_(const npuprof_compact_header_ *c)
{
    return (npuprof_cell_ *)(uintptr_t)(c + 1);
}

/* What the first field of a record of so many cells says of them. */
#define NPUPROF_FW_CELLS_WORD_(count) (NPUPROF_RING_ ? (uint32_t)(count) << 20 : 0)

/* The head of the record with that token, which must be one (>>firmware/cells), is element NPUPROF_FW_HEAD_
   of what this returns. Why an element: so the header's size becomes part of the instructions. */
NPUPROF_OWN_ static inline npuprof_cell_ *npuprof_fw_near_cell_(npuprof_compact_header_ *c, npuprof_token_ token)
{
#if NPUPROF_RING_
    return npuprof_fw_cells_(c) + (token & NPUPROF_RING_INDEX_);
#else
    return (npuprof_cell_ *)(uintptr_t)c + token;
#endif
}
enum { NPUPROF_FW_HEAD_ = NPUPROF_RING_ ? 0 : NPUPROF_FW_HEADER_CELLS_ - 1 };

NPUPROF_OWN_ static inline npuprof_cell_ *npuprof_fw_cell_(npuprof_compact_header_ *c, npuprof_token_ token)
{
    return npuprof_fw_near_cell_(c, token) + NPUPROF_FW_HEAD_;
}

/* Why by hand: a compiler turns a loop that it knows into a call of strlen or memcpy, which may not be there.
   */
NPUPROF_OWN_ static uint32_t npuprof_fw_text_length_(const char *text)
{
    uint32_t n = 0;
    while (NPUPROF_LOAD_(text + n)) n++;
    return n;
}

NPUPROF_OWN_ static void npuprof_fw_copy_bytes_(uint8_t *to, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++) NPUPROF_STORE_(to + i, ((const uint8_t *)from)[i]);
}

/* Now, in 47 bits or more. A narrower clock is extended by c->clock, which is the stamp without its low bits.
   Why it reads the clock again when another task changed c->clock: a task that was interrupted for a period
   of the clock would else put c->clock back by that period. */
NPUPROF_OWN_ static inline uint64_t npuprof_fw_stamp_(npuprof_compact_header_ *c)
{
    enum {
        BITS = NPUPROF_CLOCK_BITS_,
        LOW = BITS >= 24 ? 16 : BITS / 2,          /* bits that are not in c->clock */
        HIGH = BITS < 48 ? BITS - LOW : 1          /* bits of the clock that are */
    };
    if (BITS >= 48) return npuprof_user_now_();
#if NPUPROF_ARENA_BYTES
    c = npuprof_fw_arena_;                         /* so that nobody passes a constant */
#endif
    uint64_t wide = 0;
    uint32_t now;
    NPUPROF_KNOWN_(c);
    NPUPROF_MASKED_BEGIN_
    uint32_t before = NPUPROF_LOAD_(&c->clock), word;
    do {
        /* Why two ways: a clock of 32 bits needs no arithmetic of 64. */
        if (BITS > 32) wide = npuprof_user_now_();
        now = BITS > 32 ? (uint32_t)(wide >> LOW) : (uint32_t)npuprof_user_now_();
        word = before + (((BITS > 32 ? now : now >> LOW) - before) & (((uint32_t)1 << (HIGH & 31)) - 1));
    } while (!NPUPROF_REPLACE_(&c->clock, &before, word));
    NPUPROF_MASKED_END_
    if (BITS == 32) return (uint64_t)(word >> LOW) << 32 | now;
    return (uint64_t)word << LOW | ((BITS > 32 ? (uint32_t)wide : now) & (((uint32_t)1 << LOW) - 1));
}

/* Why masked: a wrong number must not write beyond what there is for each context. */
NPUPROF_OWN_ static inline uint32_t npuprof_fw_context_(void)
{
    return NPUPROF_CONTEXT_BITS_ ? npuprof_user_context_() & ((1u << NPUPROF_CONTEXT_BITS_) - 1) : 0;
}

/* Why a function: the user's expression sees no names of ours. */
#ifdef NPUPROF_BUILD_ID
NPUPROF_OWN_ static const uint8_t *npuprof_user_build_id_(void) { return (const uint8_t *)(NPUPROF_BUILD_ID); }
enum { NPUPROF_BUILD_KIND_ = NPUPROF_BUILD_GNU_ };
#else
enum { NPUPROF_BUILD_KIND_ = NPUPROF_BUILD_UNKNOWN_ };
#endif

/* Makes an arena of that memory, and begins the trace. `cells` is stored last: it says that the arena is
   ready. */
NPUPROF_OWN_ static void npuprof_fw_set_up_(void *memory, size_t bytes)
{
    static const struct {
        uint8_t magic[8];
        uint32_t words[4];
        uint8_t bytes[4];
    } blank = {
        { 'N', 'P', 'U', 'P', 'R', 'O', 'F', '\n' },
        { 0x01020304u, 1, NPUPROF_LAYOUT_COMPACT, sizeof(npuprof_compact_header_) },
        { NPUPROF_CLOCK_BITS_, NPUPROF_CONTEXT_BITS_, sizeof(void *),
          NPUPROF_BUILD_KIND_ | NPUPROF_WHEN_FULL << 4 },
    };
    npuprof_compact_header_ *c = (npuprof_compact_header_ *)memory;
#if !NPUPROF_ARENA_BYTES
    for (size_t i = 0; i < bytes / 4; i++) NPUPROF_STORE_((uint32_t *)memory + i, 0);
    npuprof_fw_arena_ = c;
#endif
    npuprof_fw_copy_bytes_((uint8_t *)c, &blank, sizeof blank);
    c->hz_low = (uint32_t)npuprof_user_hz_();
    if (npuprof_user_hz_() >> 32) c->hz_high = (uint32_t)(npuprof_user_hz_() >> 32);
    if (sizeof(void *) > 4) {
        c->address_low = (uint32_t)(uintptr_t)&blank;
        c->address_high = (uint32_t)((uint64_t)(uintptr_t)&blank >> 32);
    }
#ifdef NPUPROF_BUILD_ID
    const uint8_t *const id = npuprof_user_build_id_() + NPUPROF_BUILD_NOTE_HEAD_;
    npuprof_fw_copy_bytes_((uint8_t *)&c->build, id, sizeof c->build);
#endif
    if (NPUPROF_RING_) c->used = NPUPROF_RING_IS_;
    if (NPUPROF_WHEN_FULL == NPUPROF_STREAM) c->crc = NPUPROF_RING_IS_;
    const uint64_t now = npuprof_fw_stamp_(c);
    c->first_low = (uint32_t)now;
    c->first_high = (uint32_t)(now >> 32);
    uint32_t cells = (uint32_t)NPUPROF_FW_CELLS_IN_(bytes);
#if NPUPROF_RING_ && !NPUPROF_ARENA_BYTES
    if (cells > NPUPROF_RING_INDEX_) cells = NPUPROF_RING_INDEX_;
#endif
    NPUPROF_STORE_(&c->cells, cells);
}

/* Whether there is an arena. A static one is set up at the first call; it is always there, which the compiler
   then knows. */
#if NPUPROF_ARENA_BYTES
NPUPROF_OWN_ static void npuprof_fw_make_ready_(void)
{
    if (!npuprof_fw_arena_->cells) npuprof_fw_set_up_(&npuprof_static_arena_, NPUPROF_ARENA_BYTES);
}
#define npuprof_fw_is_ready_() (npuprof_fw_make_ready_(), true)

#else /* !NPUPROF_ARENA_BYTES */
NPUPROF_OWN_ static bool npuprof_fw_is_ready_(void) { return npuprof_fw_arena_->cells != 0; }
#endif
/* ==== src/firmware/ring.h =========================================================== >>firmware/ring ==== */

/* The ring: taking cells from the oldest records (format/compact.h, RING).
   Who wants cells claims the old record at header.used and moves header.used behind it. A record that is
   kept, or that another task is writing, cannot be claimed: it is passed. So nobody waits, and a task that is
   left in the middle of a record keeps its cells however many laps the others make.
   Owns header.used and the upper bits of half[1]. An index in header.used beyond the cells: a reader of
   NPUPROF_KEEP_NEWEST is at work, and what would be recorded is lost. */

#if NPUPROF_RING_

#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
/* Spans and events that were recorded. */
static uint32_t npuprof_fw_recorded_;
#endif

/* high.word with that half[1]; the other half is whatever it is. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define NPUPROF_FW_HIGH_WORD_(upper) ((upper) >> 16)
#else
#define NPUPROF_FW_HIGH_WORD_(upper) (upper)
#endif
#define NPUPROF_FW_OPEN_WORD_ NPUPROF_FW_HIGH_WORD_((uint32_t)NPUPROF_CELL_OPEN_ << 16)
#define NPUPROF_FW_SENT_WORD_ NPUPROF_FW_HIGH_WORD_((uint32_t)NPUPROF_CELL_SENT_ << 16)
#define NPUPROF_FW_CLAIMED_WORD_ UINT32_MAX
/* Why by a shift: the smallest processors have no constant for the bit. */
#define NPUPROF_FW_IS_CLAIMED_(word) \
    ((int32_t)((word) << (NPUPROF_FW_HIGH_WORD_((uint32_t)1 << 16) == 1 ? 17 : 1)) < 0)
#define NPUPROF_FW_FLAGS_ ((uint32_t)(NPUPROF_CELL_CLAIMED_ | NPUPROF_CELL_SENT_) << NPUPROF_RING_LAP_SHIFT_)

/* Stores `to` in a word that is `was`. False: it is not. */
NPUPROF_OWN_ static bool npuprof_fw_replace_(uint32_t *word, uint32_t was, uint32_t to)
{
    NPUPROF_MASKED_BEGIN_
#if NPUPROF_MASKS_
    const bool is = NPUPROF_LOAD_(word) == was;
    if (is) NPUPROF_STORE_(word, to);
#else
    const bool is = NPUPROF_CAS_(word, &was, to);
#endif
    NPUPROF_MASKED_END_
    return is;
}

NPUPROF_OWN_ static inline void npuprof_fw_count_(uint32_t *word)
{
    NPUPROF_MASKED_BEGIN_
    NPUPROF_INCREMENT_(word);
    NPUPROF_MASKED_END_
}

/* Stores half[1], which says who may write the cell: after all else. */
NPUPROF_ALWAYS_INLINE_ void npuprof_fw_store_half_(npuprof_cell_ *cell, uint32_t half)
{
#ifdef __AVR__
    NPUPROF_MASKED_BEGIN_
    NPUPROF_STORE_(&cell->high.half[1], (uint16_t)half);
    NPUPROF_MASKED_END_
#elif NPUPROF_MASKS_
    NPUPROF_SIGNAL_FENCE_();
    NPUPROF_STORE_(&cell->high.half[1], (uint16_t)half);
#else
    NPUPROF_STORE_RELEASE_(&cell->high.half[1], (uint16_t)half);
#endif
}

NPUPROF_ALWAYS_INLINE_ uint32_t npuprof_fw_length_(const npuprof_cell_ *head)
{
    uint32_t n = 1;
    if (head->ref & 1) n = NPUPROF_FIELD_CELLS_(head[1].start);
    return n;
}

/* Whether the cells before `next` may be replaced, or passed: of NPUPROF_STREAM if they were sent, so if it
   is ahead of header.crc by one lap at most. */
NPUPROF_OWN_ static inline bool npuprof_fw_may_pass_(const npuprof_compact_header_ *c, uint32_t next)
{
#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
    /* Why shifted: laps have 13 bits. Why signed: if header.used has moved on, more may have been sent. */
    const int32_t ahead = (int32_t)((next - npuprof_os_load_(&c->crc)) << 3);
    return ahead <= (int32_t)1 << (NPUPROF_RING_LAP_SHIFT_ + 3);
#else
    (void)c;
    (void)next;
    return true;
#endif
}

/* Moves header.used from `used` to `next`, behind the record at `head`. True: that record is claimed. False:
   it is passed, or another task was faster. Why its length may be read before: while header.used stands, it
   has that. */
NPUPROF_OWN_ static inline bool npuprof_fw_claim_(npuprof_compact_header_ *c, npuprof_cell_ *head, uint32_t used,
                                     uint32_t next)
{
    uint32_t high;
#if NPUPROF_MASKS_
    uint32_t claimed = NPUPROF_FW_CLAIMED_WORD_;
    if (NPUPROF_WHEN_FULL == NPUPROF_KEEP_NEWEST) NPUPROF_KNOWN_(claimed);
    NPUPROF_MASKED_BEGIN_
    bool is_ours = NPUPROF_LOAD_(&c->used) == used;
    if (is_ours) {
        NPUPROF_STORE_(&c->used, next);
        high = NPUPROF_LOAD_(&head->high.word);
        is_ours = !(high & NPUPROF_FW_OPEN_WORD_);
        if (is_ours) NPUPROF_STORE_(&head->high.word, claimed);
    }
    NPUPROF_MASKED_END_
    return is_ours;
#else
    high = NPUPROF_LOAD_(&head->high.word);
    const bool is_free = !(high & NPUPROF_FW_OPEN_WORD_) &&
                         NPUPROF_CAS_(&head->high.word, &high, NPUPROF_FW_CLAIMED_WORD_);
    if (NPUPROF_CAS_(&c->used, &used, next)) return is_free;
    if (is_free) NPUPROF_STORE_RELEASE_(&head->high.word, high);
    return false;
#endif
}

/* Gives `count` cells back, which are ours, as one record with nothing in it. */
NPUPROF_OWN_ static void npuprof_fw_give_back_(npuprof_cell_ *head, uint32_t count)
{
    if (count > 1) npuprof_os_store_(&head[1].start, count << 20);
    npuprof_os_store_(&head->ref, NPUPROF_CELL_CLEARED_ | (count > 1));
    npuprof_fw_store_half_(head, 0);
}

/* Empties a record that is ours. Why its fields stay: a stream may have sent its head, and sends them yet. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_fw_empty_(npuprof_cell_ *head)
{
    npuprof_os_store_(&head->ref, (head->ref & 1) + NPUPROF_CELL_CLEARED_);
    npuprof_fw_store_half_(head, 0);
}

/* Claims the next record that can be claimed: the token of its first cell. Of its cells it takes `most`, and
   gives the others back. 0: there is none.
   Why no limit for NPUPROF_STREAM: it ends where nothing was sent yet. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ npuprof_token_ npuprof_fw_claim_next_(npuprof_compact_header_ *c,
                                                                uint32_t most)
{
    const uint32_t cells = NPUPROF_FW_CELL_COUNT_();
    for (uint32_t tries = cells; tries; tries -= NPUPROF_WHEN_FULL != NPUPROF_STREAM) {
        const uint32_t used = npuprof_os_load_(&c->used);
        npuprof_cell_ *const head = npuprof_fw_cell_(c, used);
        if (NPUPROF_WHEN_FULL == NPUPROF_KEEP_NEWEST && (used & NPUPROF_RING_INDEX_) >= cells) break;
        const uint32_t n = npuprof_fw_length_(head);
        uint32_t next = used + n;
        if ((next & NPUPROF_RING_INDEX_) >= cells) {
            next = (used >> NPUPROF_RING_LAP_SHIFT_) + 1;
            next = next << NPUPROF_RING_LAP_SHIFT_ & ~NPUPROF_FW_FLAGS_;
            if (NPUPROF_CLOCK_BITS_ >= 48) c->clock = (uint32_t)(npuprof_fw_stamp_(c) >> 16);
        }
        if (!npuprof_fw_may_pass_(c, next)) break;
        if (!npuprof_fw_claim_(c, head, used, next)) continue;
        if (n > most) npuprof_fw_give_back_(head + most, n - most);
        return used;
    }
    return 0;
}

/* Lets go of the kept record of that token, if it is still there. empty: nothing of it is left, else it is as
   any other; what a stream has sent is always emptied. Why it is claimed first: another task may let go of
   the same one, and the cells are then somebody else's. */
NPUPROF_OWN_ static void npuprof_fw_release_(npuprof_compact_header_ *c, npuprof_token_ token, bool empty)
{
    npuprof_cell_ *const head = npuprof_fw_cell_(c, token);
    npuprof_cell_ was, to;
    uint32_t half;
    if (!(token & NPUPROF_RING_IS_)) return;
    do {
        was.high.word = to.high.word = npuprof_os_load_(&head->high.word);
        half = was.high.half[1];
        if (half & NPUPROF_CELL_CLAIMED_) return;
        if ((half & ~(uint32_t)NPUPROF_CELL_SENT_) != token >> NPUPROF_RING_LAP_SHIFT_) return;
        to.high.half[1] = 0;
        if (half & NPUPROF_CELL_SENT_) empty = true;
        if (empty) to.high.word = NPUPROF_FW_CLAIMED_WORD_;
    } while (!npuprof_fw_replace_(&head->high.word, was.high.word, to.high.word));
    if (empty) npuprof_fw_empty_(head);
}

/* Takes `count` cells, one behind the other, at least 2. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ npuprof_token_ npuprof_fw_take_more_(npuprof_compact_header_ *c, uint32_t count)
{
    const uint32_t cells = NPUPROF_FW_CELL_COUNT_();
    uint32_t have = 0, n = 1;
    npuprof_token_ token = 0;
    if (count > NPUPROF_FIELD_CELLS_(UINT32_MAX)) return 0;
    for (uint32_t tried = 0; tried <= cells && count <= cells; tried += n) {
        const npuprof_token_ more = npuprof_fw_claim_next_(c, count);
        n = npuprof_fw_length_(npuprof_fw_cell_(c, more));
        if (n > count) n = count;
        if (have && more != token + have) {
            npuprof_fw_give_back_(npuprof_fw_cell_(c, token), have);
            have = 0;
        }
        if (!more) break;
        if (!have) token = more;
        have += n;
        if (have < count) continue;
        npuprof_cell_ *const head = npuprof_fw_cell_(c, token);
        if (have > count) npuprof_fw_give_back_(head + count, have - count);
        npuprof_os_store_(&head[1].start, count << 20);
        npuprof_os_store_(&head->ref, NPUPROF_CELL_CLEARED_ | 1);
        return token;
    }
    if (have) npuprof_fw_give_back_(npuprof_fw_cell_(c, token), have);
    return 0;
}

#endif /* NPUPROF_RING_ */
/* ==== src/firmware/cells.h ========================================================= >>firmware/cells ==== */

/* Taking cells, and finishing the record in them. Two ways, of which a build has one:
     KEEP_OLDEST   Cells are taken one behind the other, until there are none.
     a ring        The next record replaces the oldest ones (format/compact.h, RING).
   A token is what names a record in cells: from npuprof_fw_take_() to npuprof_fw_finish_(), and for an open
   span until it ends. 0: no cells, so no record.
   Owns header.used and header.lost. May not know what a record says, except how long it is. */

/* Whether a record is there, and nobody is writing it. */
NPUPROF_OWN_ static inline bool npuprof_fw_is_there_(const npuprof_cell_ *head)
{
    const uint32_t claimed = NPUPROF_CELL_OPEN_ | NPUPROF_CELL_CLAIMED_;
    if (NPUPROF_RING_ && (NPUPROF_LOAD_(&head->high.half[1]) & claimed) == claimed) return false;
    return head->ref != 0;
}

NPUPROF_OWN_ static bool npuprof_fw_is_event_(const npuprof_cell_ *head)
{
    return npuprof_fw_is_there_(head) &&
           (!(head->ref & 2) || (head->ref >> 8 & 0xFF) - 1 < NPUPROF_CELL_KIND_THREAD_ - 1);
}

#if !NPUPROF_RING_

#if !NPUPROF_MASKS_
/* Cells from `at` on were taken and are too few: counts that as lost. Those that exist stay empty.
   Why they are not given back: whoever took cells meanwhile has those after them. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ npuprof_token_ npuprof_fw_lose_cells_(npuprof_compact_header_ *c, uint32_t at,
                                                               uint32_t *lost)
{
    const uint32_t cells = NPUPROF_FW_CELL_COUNT_();
    uint32_t used = NPUPROF_LOAD_(&c->used);
    for (; at < cells; at++) NPUPROF_STORE_(&npuprof_fw_cells_(c)[at].ref, NPUPROF_CELL_CLEARED_);
    if (used > cells) (void)NPUPROF_CAS_RELAXED_(&c->used, &used, cells);    /* it must not wrap to 0 */
    NPUPROF_INCREMENT_(lost);
    return 0;
}
#endif

/* Takes `count` cells: the token of the first. 0: they do not fit, and *lost is one more. While its `ref` is
   0, its `end` says how many they are, so that readers can step over it; of a span without fields it is 0,
   which is 1. */
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_fw_take_(npuprof_compact_header_ *c, uint32_t count,
                                                       uint32_t *lost)
{
    const bool is_plain = NPUPROF_CONSTANT_(count) && count == 1;
#if NPUPROF_MASKS_
    const uint32_t cells = NPUPROF_FW_CELL_COUNT_();
    int32_t places = (int32_t)(cells - count + 1);         /* where it may begin; not above 0: nowhere */
    if (!is_plain) NPUPROF_KNOWN_(places);
    NPUPROF_MASKED_BEGIN_
    const uint32_t at = c->used;
    const bool fits = (int32_t)at < places;
    if (NPUPROF_LIKELY_(fits)) {
        c->used = at + count;
        if (!is_plain) NPUPROF_STORE_(&npuprof_fw_cells_(c)[at].end, count);
    } else {
        NPUPROF_INCREMENT_(lost);
    }
    NPUPROF_MASKED_END_
    return fits ? at + 1 : 0;
#else
    const uint32_t at = NPUPROF_ADD_(&c->used, count), cells = NPUPROF_FW_CELL_COUNT_();
    if (NPUPROF_UNLIKELY_(at >= cells || count > cells - at)) return npuprof_fw_lose_cells_(c, at, lost);
    if (!is_plain) NPUPROF_STORE_(&npuprof_fw_cells_(c)[at].end, count);
    return at + 1;
#endif
}

/* The last thing done to a record: now it is there. half: its half[1]. */
NPUPROF_ALWAYS_INLINE_ void npuprof_fw_publish_half_(npuprof_cell_ *head, uint32_t ref, uint32_t half)
{
    head->high.half[1] = (uint16_t)half;
    NPUPROF_SIGNAL_FENCE_();
    npuprof_os_store_(&head->ref, ref);
}

/* The same. open: a span that is still to be ended. */
NPUPROF_ALWAYS_INLINE_ void npuprof_fw_publish_(npuprof_cell_ *head, npuprof_token_ token, uint32_t ref,
                                                bool open)
{
    (void)token;
    npuprof_fw_publish_half_(head, ref, open ? NPUPROF_CELL_OPEN_ : 0);
}

/* After that, or instead of it: nothing, what did not fit was counted. */
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_fw_tally_(npuprof_compact_header_ *c, npuprof_token_ token,
                                                        uint32_t *lost)
{
    (void)c;
    (void)lost;
    return token;
}

/* The open span of that token, or NULL.
   Why it asks: a goto past a scope leaves garbage in its token, and garbage must not write anywhere. */
NPUPROF_OWN_ static inline npuprof_cell_ *npuprof_fw_open_cell_(npuprof_compact_header_ *c, npuprof_token_ token)
{
    if (NPUPROF_UNLIKELY_(token > NPUPROF_FW_CELL_COUNT_())) return NULL;
    npuprof_cell_ *const around = npuprof_fw_near_cell_(c, token);
    const uint16_t half = NPUPROF_LOAD_(&around[NPUPROF_FW_HEAD_].high.half[1]);
    return NPUPROF_LIKELY_(half & NPUPROF_CELL_OPEN_) ? around + NPUPROF_FW_HEAD_ : NULL;
}

#else /* NPUPROF_RING_ */

/* Takes `count` cells: the token of the first. 0: they do not fit. Until npuprof_fw_publish_() the record is
   claimed, and is stepped over as a whole. */
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_fw_take_(npuprof_compact_header_ *c, uint32_t count,
                                                       uint32_t *lost)
{
    (void)lost;
    return count > 1 ? npuprof_fw_take_more_(c, count) : npuprof_fw_claim_next_(c, 1);
}

/* The last thing done to a record: now it is there. half: its half[1]. */
NPUPROF_ALWAYS_INLINE_ void npuprof_fw_publish_half_(npuprof_cell_ *head, uint32_t ref, uint32_t half)
{
    npuprof_os_store_(&head->ref, ref);
    npuprof_fw_store_half_(head, half);
}

/* The same. open: it is kept; a span until it ends. */
NPUPROF_ALWAYS_INLINE_ void npuprof_fw_publish_(npuprof_cell_ *head, npuprof_token_ token, uint32_t ref,
                                                bool open)
{
    npuprof_fw_publish_half_(head, ref, open ? token >> NPUPROF_RING_LAP_SHIFT_ : 0);
}

/* After that, or instead of it: *lost counts what did not fit; header.lost of NPUPROF_KEEP_NEWEST counts
   all. NPUPROF_STREAM counts the others, too. */
NPUPROF_OWN_ static inline npuprof_token_ npuprof_fw_tally_(npuprof_compact_header_ *c, npuprof_token_ token,
                                               uint32_t *lost)
{
    const bool is_event = lost == &c->lost;
#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
    if (token && is_event) lost = &npuprof_fw_recorded_;
#endif
    if (!token || is_event) npuprof_fw_count_(lost);
    return token;
}

/* The open span of that token, or NULL: garbage, or an end that came twice. */
NPUPROF_ALWAYS_INLINE_ npuprof_cell_ *npuprof_fw_open_cell_(npuprof_compact_header_ *c, npuprof_token_ token)
{
    npuprof_cell_ *const cell = npuprof_fw_cell_(c, token);
    if (!(token & NPUPROF_RING_IS_)) return NULL;
    if (NPUPROF_UNLIKELY_((token & NPUPROF_RING_INDEX_) >= NPUPROF_FW_CELL_COUNT_())) return NULL;
    uint32_t half = NPUPROF_LOAD_(&cell->high.half[1]);
    if (NPUPROF_WHEN_FULL == NPUPROF_STREAM) half &= ~(uint32_t)NPUPROF_CELL_SENT_;
    return half == token >> NPUPROF_RING_LAP_SHIFT_ ? cell : NULL;
}

#endif /* NPUPROF_RING_ */
/* ==== src/firmware/record.h ======================================================= >>firmware/record ==== */

/* The hot path on firmware: a span of one cell.
   Owns the cells of open spans: who holds the token ends the span. May not know arguments. */

/* The upper bits of a stamp and the context, as a cell has them. */
NPUPROF_OWN_ static inline uint16_t npuprof_fw_high_half_(uint64_t now, uint32_t context)
{
    return (uint16_t)((uint32_t)(now >> 32) << NPUPROF_CONTEXT_BITS_ | context);
}

/* Begins a span in the cell of that token. Its token, or 0. */
NPUPROF_OWN_ static inline npuprof_token_ npuprof_fw_begin_cell_(npuprof_compact_header_ *c, npuprof_token_ token,
                                                    uint32_t ref, uint64_t now, uint32_t context)
{
    if (NPUPROF_LIKELY_(token)) {
        npuprof_cell_ *const around = npuprof_fw_near_cell_(c, token);
        around[NPUPROF_FW_HEAD_].start = (uint32_t)now;
        around[NPUPROF_FW_HEAD_].high.half[0] = npuprof_fw_high_half_(now, context);
        npuprof_fw_publish_(&around[NPUPROF_FW_HEAD_], token, ref, true);
    }
    return npuprof_fw_tally_(c, token, &c->lost);
}

#if NPUPROF_WHEN_FULL == NPUPROF_STREAM

/* Ends a span that was sent while it was open: a record CLOSE, and its own cells are free. Why they are
   emptied first: else they could be sent again behind the end. */
NPUPROF_OWN_ static inline void npuprof_fw_close_sent_(npuprof_compact_header_ *c, npuprof_cell_ *cell, uint64_t now)
{
    const uint32_t mask = ((uint32_t)1 << NPUPROF_CONTEXT_BITS_) - 1;
    npuprof_os_store_(&cell->ref, (cell->ref & 1) + NPUPROF_CELL_CLEARED_);
    const npuprof_token_ token = npuprof_fw_take_(c, 1, &c->lost_notes);
    if (token) {
        npuprof_cell_ *const own = npuprof_fw_cell_(c, token);
        own->start = (uint32_t)now;
        own->end = cell->start;
        own->high.half[0] = (uint16_t)((uint32_t)(now >> 32) << NPUPROF_CONTEXT_BITS_ |
                                       (cell->high.half[0] & mask));
        npuprof_fw_publish_half_(own, (uint32_t)NPUPROF_CELL_KIND_CLOSE_ << 8 | 2,
                                 (uint32_t)cell->high.half[0] >> NPUPROF_CONTEXT_BITS_ & 0x7FFF);
    }
    (void)npuprof_fw_tally_(c, token, &c->lost_notes);
    npuprof_fw_store_half_(cell, 0);
}

/* Ends a span if half[1] of its cell is `was`. Returns what it was. */
NPUPROF_OWN_ static inline uint32_t npuprof_fw_end_if_(npuprof_cell_ *cell, uint32_t was, uint64_t now)
{
    const uint16_t end = (uint16_t)((uint32_t)(now >> 32) & 0x7FFF);
#if NPUPROF_MASKS_
    NPUPROF_MASKED_BEGIN_
    const uint32_t half = NPUPROF_LOAD_(&cell->high.half[1]);
    if (half == was) {
        NPUPROF_STORE_(&cell->end, (uint32_t)now);
        NPUPROF_STORE_(&cell->high.half[1], end);
    }
    NPUPROF_MASKED_END_
    return half;
#else
    npuprof_cell_ is, to;
    do {
        is.high.word = to.high.word = NPUPROF_LOAD_(&cell->high.word);
        if (is.high.half[1] != was) return is.high.half[1];
        NPUPROF_STORE_(&cell->end, (uint32_t)now);
        to.high.half[1] = end;
    } while (!npuprof_fw_replace_(&cell->high.word, is.high.word, to.high.word));
    return was;
#endif
}

NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_fw_end_cell_(npuprof_compact_header_ *c, npuprof_token_ token,
                                                   uint64_t now)
{
    npuprof_cell_ *const cell = npuprof_fw_cell_(c, token);
    const uint32_t was = token >> NPUPROF_RING_LAP_SHIFT_;
    if (!(token & NPUPROF_RING_IS_)) return;
    if (NPUPROF_UNLIKELY_((token & NPUPROF_RING_INDEX_) >= NPUPROF_FW_CELL_COUNT_())) return;
    if (npuprof_fw_end_if_(cell, was, now) == (was | NPUPROF_CELL_SENT_))
        npuprof_fw_close_sent_(c, cell, now);
}

#else /* NPUPROF_WHEN_FULL is not NPUPROF_STREAM */

NPUPROF_ALWAYS_INLINE_ void npuprof_fw_end_cell_(npuprof_compact_header_ *c, npuprof_token_ token,
                                                 uint64_t now)
{
    npuprof_cell_ *const cell = npuprof_fw_open_cell_(c, token);
    const uint16_t end = (uint16_t)((uint32_t)(now >> 32) & 0x7FFF);
    if (NPUPROF_UNLIKELY_(!cell)) return;
#if NPUPROF_RING_
    NPUPROF_STORE_(&cell->end, (uint32_t)now);
    npuprof_fw_store_half_(cell, end);
#else
    npuprof_cell_ *const around = npuprof_fw_near_cell_(c, token);
    NPUPROF_STORE_(&around[NPUPROF_FW_HEAD_].end, (uint32_t)now);
    NPUPROF_STORE_(&around[NPUPROF_FW_HEAD_].high.half[1], end);
#endif
}
#endif /* NPUPROF_WHEN_FULL */

NPUPROF_API_ npuprof_token_ npuprof_begin_(const npuprof_site_ *site)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint32_t ref = (uint32_t)(uintptr_t)site;
    /* Why two orders: each is the shorter one there. */
#if NPUPROF_MASKS_ || NPUPROF_RING_
    const npuprof_token_ token = npuprof_fw_take_(c, 1, &c->lost);
    const uint64_t now = npuprof_fw_stamp_(c);
#else
    const uint64_t now = npuprof_fw_stamp_(c);
    const npuprof_token_ token = npuprof_fw_take_(c, 1, &c->lost);
#endif
    return npuprof_fw_begin_cell_(c, token, ref, now, npuprof_fw_context_());
}

NPUPROF_API_ void npuprof_close_(npuprof_token_ token)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_fw_end_cell_(c, token, npuprof_fw_stamp_(c));
}

NPUPROF_API_ npuprof_token_ npuprof_next_(npuprof_token_ token, const npuprof_site_ *site)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint64_t now = npuprof_fw_stamp_(c);
    npuprof_fw_end_cell_(c, token, now);
    if (!NPUPROF_OPEN_(1)) return 0;
    token = npuprof_fw_take_(c, 1, &c->lost);
    return npuprof_fw_begin_cell_(c, token, (uint32_t)(uintptr_t)site, now, npuprof_fw_context_());
}

NPUPROF_API_ bool npuprof_is_open_(npuprof_token_ token)
{
    return npuprof_fw_open_cell_(npuprof_fw_arena_, token) != NULL;
}

NPUPROF_API_ void npuprof_wait_(const npuprof_device *device)
{
    if (device->wait) (void)device->wait(device->user);
}
/* ==== src/firmware/event.h ========================================================= >>firmware/event ==== */

/* Records with fields: spans with arguments or run-time names, events, memory, names and metadata. A record
   is a head cell and a field cell for each text and value (format/compact.h).
   Owns npuprof_fw_by_hand_of_: the spans of PROF_BEGIN, for each context its own; and the memory pools of
   PROF_ALLOC, which tasks may update at once without a lock. May not know who reads the cells. */

/* Two lists: the library's own fields, then the user's. */
typedef struct npuprof_fw_fields_ { npuprof_args list[2]; } npuprof_fw_fields_;

/* The bytes of a text that are recorded: 1,024 at most, and whole UTF-8 sequences. */
NPUPROF_OWN_ static uint32_t npuprof_fw_kept_length_(const char *text, bool *cut)
{
    uint32_t n = npuprof_fw_text_length_(text);
    *cut = n > 1024;
    if (*cut)
        for (n = 1024; n > 1020 && ((uint8_t)text[n] & 0xC0) == 0x80;) n--;
    return n;
}

NPUPROF_OWN_ static bool npuprof_fw_is_text_(uint32_t type)
{
    return type >= NPUPROF_ARG_STR && type < NPUPROF_FIELD_VALUE_;
}

/* Cells that a text takes beside its field cell, which holds 8 bytes of it. */
NPUPROF_OWN_ static uint32_t npuprof_fw_text_cells_(uint32_t length) { return length > 8 ? (length + 7) / 16 : 0; }

/* Fills one field cell, and those of its text. Returns its last cell. cells: NPUPROF_FW_CELLS_WORD_ of the
   record, for its first field; else 0. */
NPUPROF_OWN_ static inline npuprof_cell_ *npuprof_fw_put_field_(npuprof_cell_ *field, const npuprof_arg *a, uint32_t cells)
{
    uint32_t type = a->type, length = 0;
    bool cut = false;
    if (!npuprof_fw_is_text_(type)) {
        field->end = (uint32_t)a->value.u;
        field->high.word = (uint32_t)(a->value.u >> 32);
    } else if (a->value.s) {
        length = npuprof_fw_kept_length_(a->value.s, &cut);
        npuprof_fw_copy_bytes_((uint8_t *)&field->end, a->value.s, (size_t)length);
    } else {
        type = NPUPROF_ARG_STR_NULL_;
    }
    if (cut && type == NPUPROF_ARG_STR) type = NPUPROF_ARG_STR_CUT_;
    field->ref = (uint32_t)(uintptr_t)a->key;
    field->start = type | length << 8 | cells;
    return field + npuprof_fw_text_cells_(length);
}

/* The cells that all fields take. */
NPUPROF_OWN_ static inline uint32_t npuprof_fw_count_cells_(const npuprof_fw_fields_ *fields)
{
    uint32_t count = 0;
    bool cut;
    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < fields->list[l].count; i++) {
            const npuprof_arg *a = &fields->list[l].items[i];
            const bool has_text = npuprof_fw_is_text_(a->type) && a->value.s;
            count += 1 + npuprof_fw_text_cells_(has_text ? npuprof_fw_kept_length_(a->value.s, &cut) : 0);
        }
    return count;
}

/* Fills a record's head, after its fields, and finishes it. */
NPUPROF_OWN_ static inline void npuprof_fw_finish_(npuprof_cell_ *head, npuprof_token_ token, uint32_t ref, bool open,
                                      uint64_t now)
{
    head->start = (uint32_t)now;
    head->high.half[0] = npuprof_fw_high_half_(now, npuprof_fw_context_());
    npuprof_fw_publish_(head, token, ref, open);
}

/* Whether a ring keeps a record: what says a name, or how clocks go together. */
NPUPROF_OWN_ static inline bool npuprof_fw_is_kept_(uint32_t ref)
{
    const uint32_t note = (ref >> 8 & 0xFF) - NPUPROF_CELL_KIND_THREAD_;
    const uint32_t kept = 1u << (NPUPROF_CELL_KIND_METADATA_ - NPUPROF_CELL_KIND_THREAD_) | 1u |
                          1u << (NPUPROF_CELL_KIND_DEVICE_ - NPUPROF_CELL_KIND_THREAD_) |
                          1u << (NPUPROF_CELL_KIND_ANCHOR_ - NPUPROF_CELL_KIND_THREAD_) |
                          1u << (NPUPROF_CELL_KIND_NAME_ - NPUPROF_CELL_KIND_THREAD_);
    return NPUPROF_RING_ && (ref & 2) && note < 32 && (kept >> note & 1);
}

#if NPUPROF_RING_
/* Whether both say the same thing: the name of a context, of a number, or the value of a key. */
NPUPROF_OWN_ static bool npuprof_fw_is_same_note_(const npuprof_cell_ *a, const npuprof_cell_ *b)
{
    const uint32_t type = a[1].start & 0xFF, length = NPUPROF_FIELD_LENGTH_(a[1].start);
    const uint8_t *const p = (const uint8_t *)&a[1].end, *const q = (const uint8_t *)&b[1].end;
    if (a->ref != b->ref) return false;
    if (a->ref >> 8 == NPUPROF_CELL_KIND_THREAD_)
        return !((a->high.half[0] ^ b->high.half[0]) & ((1u << NPUPROF_CONTEXT_BITS_) - 1));
    if ((a[1].start ^ b[1].start) & 0xFFFFF) return false;
    for (uint32_t i = type == NPUPROF_FIELD_VALUE_ ? 8 : length; i--;)
        if (p[i] != q[i]) return false;
    return true;
}

/* Empties what the note of that token replaces. Why a search and no list: notes are rare. If tasks replace
   cells meanwhile, it may miss one; the next note finds it. Why it asks whether the note is there, after
   it looked at the other: an interrupt that replaced it has a newer one. */
NPUPROF_OWN_ static void npuprof_fw_replace_notes_(npuprof_compact_header_ *c, npuprof_token_ token)
{
    const npuprof_cell_ *const note = npuprof_fw_cell_(c, token);
    const uint32_t cells = NPUPROF_FW_CELL_COUNT_(), kind = note->ref >> 8;
    if (kind == NPUPROF_CELL_KIND_DEVICE_ || kind == NPUPROF_CELL_KIND_ANCHOR_) return;
    for (uint32_t at = 0, n; at + 1 < cells; at += n + !n) {
        const npuprof_cell_ *const old = npuprof_fw_cell_(c, at);
        const uint32_t half = NPUPROF_LOAD_(&old->high.half[1]) & ~(uint32_t)NPUPROF_CELL_SENT_;
        n = npuprof_fw_length_(old);
        if (n < 2 || n > cells - at || old == note || !npuprof_fw_is_same_note_(note, old)) continue;
        if (!npuprof_fw_open_cell_(c, token)) return;
        npuprof_fw_release_(c, at | half << NPUPROF_RING_LAP_SHIFT_, true);
    }
}
#endif /* NPUPROF_RING_ */

/* Where a record is counted that is lost: an event, or a note. */
NPUPROF_OWN_ static uint32_t *npuprof_fw_lost_(npuprof_compact_header_ *c, uint32_t ref)
{
    const uint32_t kind = ref >> 8 & 0xFF;
    const bool is_note = (ref & 2) && kind >= NPUPROF_CELL_KIND_THREAD_ && kind < NPUPROF_CELL_KIND_ENTRY_;
    return is_note ? &c->lost_notes : &c->lost;
}

NPUPROF_OWN_ static NPUPROF_NOINLINE_ npuprof_token_ npuprof_fw_take_fields_(npuprof_compact_header_ *c, uint32_t count,
                                                                uint32_t *lost)
{
    const npuprof_token_ token = npuprof_fw_take_(c, count, lost);
    if (NPUPROF_RING_ && token) npuprof_fw_cell_(c, token)->end = count;
    return token;
}

NPUPROF_ASSERT_(shape, (int)NPUPROF_SHAPE_EVENT_ == (int)NPUPROF_FIELD_VALUE_);

/* Records a head and its fields. span: it is left open. The token, or 0: lost. */
NPUPROF_OWN_ static npuprof_token_ npuprof_fw_put_record_(uint32_t ref, bool span, const npuprof_fw_fields_ *fields)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint64_t now = npuprof_fw_stamp_(c);
    const uint32_t count = 1 + npuprof_fw_count_cells_(fields);
    uint32_t *const lost = npuprof_fw_lost_(c, ref);
    const npuprof_token_ token = npuprof_fw_take_fields_(c, count, lost);
    if (!token) return npuprof_fw_tally_(c, 0, lost);
    npuprof_cell_ *const head = npuprof_fw_cell_(c, token), *field = head, *last = head;
    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < fields->list[l].count; i++) {
            const uint32_t cells = last == head ? NPUPROF_FW_CELLS_WORD_(count) : 0;
            if (last == head) ref |= 1;
            else last->start |= NPUPROF_FIELD_MORE_;
            last = ++field;
            field = npuprof_fw_put_field_(field, &fields->list[l].items[i], cells);
        }
    const bool is_kept = npuprof_fw_is_kept_(ref);
    npuprof_fw_finish_(head, token, ref, span || is_kept, now);
#if NPUPROF_RING_
    if (is_kept) npuprof_fw_replace_notes_(c, token);
#endif
    return npuprof_fw_tally_(c, token, lost);
}
#define NPUPROF_FW_REF_OF_KIND_(kind) ((uint32_t)(kind) << 8 | 2)

/* A record whose texts (name, category, track) and values came at run time. A text may be NULL, a value but
   the first 0: then it is not recorded. */
NPUPROF_OWN_ static npuprof_token_ npuprof_fw_put_named_(uint32_t ref, bool span, const char *const *texts,
                                            const uint64_t *values, npuprof_args args)
{
    npuprof_arg own[6];
    npuprof_fw_fields_ fields;
    size_t count = 0;
    for (uint32_t i = 0; i < 6; i++) {
        own[count].key = NULL;
        own[count].type = NPUPROF_FIELD_NAME_ + i;
        if (i < 3 && texts && texts[i]) own[count++].value.s = texts[i];
        if (i >= 3 && values && (i == 3 || values[i - 3])) own[count++].value.u = values[i - 3];
    }
    fields.list[0].items = own;
    fields.list[0].count = count;
    fields.list[1].items = args.items;
    fields.list[1].count = args.count;
    return npuprof_fw_put_record_(ref, span, &fields);
}

NPUPROF_API_ npuprof_token_ npuprof_begin_args_(const npuprof_site_ *site, npuprof_args args)
{
    return npuprof_fw_put_named_((uint32_t)(uintptr_t)site, true, NULL, NULL, args);
}

NPUPROF_API_ npuprof_token_ npuprof_begin_named_(uint32_t kind, const char *category, const char *name,
                                                 npuprof_args args)
{
    const char *const texts[3] = { name, category, NULL };
    return npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(kind), true, texts, NULL, args);
}

/* Spans of PROF_BEGIN, a stack for each context. top: token of the innermost. skipped: PROF_BEGINs after it
   that were not recorded. While such a span is open, its cell's `end` is the token of the one outside it, and
   the bits beside NPUPROF_CELL_OPEN_ are what `skipped` was. */
typedef struct npuprof_fw_by_hand_ {
    npuprof_token_ top;
    uint16_t skipped;
} npuprof_fw_by_hand_;
static npuprof_fw_by_hand_ npuprof_fw_by_hand_of_[1u << NPUPROF_CONTEXT_BITS_];

#if NPUPROF_RING_
/* What a span's cell keeps of its stack while it is open, and back. Why otherwise in a ring: there the bits
   beside NPUPROF_CELL_OPEN_ check a token. `end` has the index of the outer span's cell, from 1, and above it
   what `skipped` was. */
NPUPROF_OWN_ static void npuprof_fw_save_(npuprof_cell_ *cell, const npuprof_fw_by_hand_ *h)
{
    cell->end = (h->top ? (h->top & NPUPROF_RING_INDEX_) + 1 : 0) | (uint32_t)h->skipped << 16;
}

NPUPROF_OWN_ static void npuprof_fw_restore_(const npuprof_cell_ *cell, npuprof_fw_by_hand_ *h)
{
    const uint32_t outer = (cell->end & NPUPROF_RING_INDEX_) - 1;
    h->skipped = (uint16_t)(cell->end >> 16);
    h->top = 0;
    if (outer == UINT32_MAX) return;
    const uint32_t half = npuprof_fw_cell_(npuprof_fw_arena_, outer)->high.half[1];
    h->top = outer | (half & ~(uint32_t)NPUPROF_CELL_SENT_) << NPUPROF_RING_LAP_SHIFT_;
}

#else /* !NPUPROF_RING_ */
NPUPROF_OWN_ static void npuprof_fw_save_(npuprof_cell_ *cell, const npuprof_fw_by_hand_ *h)
{
    cell->end = h->top;
    cell->high.half[1] = NPUPROF_CELL_OPEN_ | (h->skipped & 0x7FFF);
}

NPUPROF_OWN_ static void npuprof_fw_restore_(const npuprof_cell_ *cell, npuprof_fw_by_hand_ *h)
{
    h->top = cell->end;
    h->skipped = cell->high.half[1] & 0x7FFF;
}
#endif /* NPUPROF_RING_ */

/* Makes a span the innermost of its stack; token 0: it was not recorded. */
NPUPROF_OWN_ static void npuprof_fw_push_(npuprof_fw_by_hand_ *h, npuprof_token_ token)
{
    npuprof_cell_ *cell = npuprof_fw_open_cell_(npuprof_fw_arena_, token);
    if (cell) {
        npuprof_fw_save_(cell, h);
        h->top = token;
        h->skipped = 0;
    } else {
        h->skipped++;
    }
}

/* Takes the innermost span off its stack: its token, or 0 if it was not recorded or there is none. */
NPUPROF_OWN_ static npuprof_token_ npuprof_fw_pop_(npuprof_fw_by_hand_ *h)
{
    const npuprof_token_ token = h->top;
    const npuprof_cell_ *cell = npuprof_fw_open_cell_(npuprof_fw_arena_, token);
    if (h->skipped) {
        h->skipped--;
    } else if (cell) {
        npuprof_fw_restore_(cell, h);
        return token;
    }
    return 0;
}

NPUPROF_API_ void npuprof_begin_by_hand_(const char *category, const char *name)
{
    const bool open = NPUPROF_OPEN_(1);
    const npuprof_token_ token =
        open ? npuprof_begin_named_(NPUPROF_KIND_SPAN, category, name, PROF_NO_ARGS) : 0;
    npuprof_fw_push_(&npuprof_fw_by_hand_of_[npuprof_fw_context_()], token);
}

NPUPROF_API_ void npuprof_end_by_hand_(void)
{
    const npuprof_token_ token = npuprof_fw_pop_(&npuprof_fw_by_hand_of_[npuprof_fw_context_()]);
    if (token) npuprof_close_(token);
}

NPUPROF_API_ void npuprof_event_args_now_(const npuprof_site_ *site, npuprof_args args)
{
    (void)npuprof_fw_put_named_((uint32_t)(uintptr_t)site, false, NULL, NULL, args);
}

NPUPROF_API_ npuprof_token_ npuprof_put_value_(const npuprof_site_ *site, const char *key, uint64_t value,
                                               uint32_t shape)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint32_t type = shape & ~(uint32_t)NPUPROF_SHAPE_SPAN_, fields = type != 0;
    const uint64_t now = npuprof_fw_stamp_(c);
    const npuprof_token_ token = npuprof_fw_take_fields_(c, 1 + fields, &c->lost);
    if (!token) return npuprof_fw_tally_(c, 0, &c->lost);
    npuprof_cell_ *const head = npuprof_fw_cell_(c, token);
    if (fields) {
        head[1].ref = (uint32_t)(uintptr_t)key;
        head[1].start = type | NPUPROF_FW_CELLS_WORD_(2);
        head[1].end = (uint32_t)value;
        head[1].high.word = (uint32_t)(value >> 32);
    }
    npuprof_fw_finish_(head, token, (uint32_t)(uintptr_t)site | fields, shape & NPUPROF_SHAPE_SPAN_, now);
    return npuprof_fw_tally_(c, token, &c->lost);
}

NPUPROF_OWN_ static void npuprof_fw_put_event_(uint32_t kind, const char *name, const char *category, const char *track,
                                  uint64_t first, uint64_t second, uint64_t third, npuprof_args args)
{
    const char *const texts[3] = { name, category, track };
    const uint64_t values[3] = { first, second, third };
    (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(kind), false, texts, values, args);
}

NPUPROF_API_ void npuprof_async_begin(const char *category, const char *name, uint64_t id)
{
    if (!NPUPROF_OPEN_(1)) return;
    npuprof_fw_put_event_(NPUPROF_KIND_ASYNC_BEGIN, name ? name : "", category, NULL, id, 0, 0, PROF_NO_ARGS);
}

NPUPROF_API_ void npuprof_async_end(uint64_t id)
{
    if (!npuprof_fw_arena_->cells) return;
    npuprof_fw_put_event_(NPUPROF_KIND_ASYNC_END, NULL, NULL, NULL, id, 0, 0, PROF_NO_ARGS);
}

NPUPROF_API_ void npuprof_span(const char *track, const char *category, const char *name, int64_t start_ns,
                               int64_t end_ns, npuprof_args args)
{
    if (!NPUPROF_OPEN_(1)) return;
    npuprof_fw_put_event_(NPUPROF_KIND_FINISHED, name ? name : "", category, track ? track : "",
                          (uint64_t)start_ns, (uint64_t)end_ns, 0, args);
}

/* What PROF_ALLOC and PROF_FREE count, for each device. */
typedef struct npuprof_fw_pool_ {
    const npuprof_device *device;
    bool taken;
    uint64_t used, allocated;
} npuprof_fw_pool_;

/* The pool of a device. Devices after the fourth share one. */
NPUPROF_OWN_ static npuprof_fw_pool_ *npuprof_fw_find_pool_(const npuprof_device *device)
{
    static npuprof_fw_pool_ pools[4], others;
    for (npuprof_fw_pool_ *pool = pools; pool < pools + 4; pool++) {
        if (pool->taken && pool->device != device) continue;
        pool->taken = true;
        pool->device = device;
        return pool;
    }
    return &others;
}

NPUPROF_OWN_ static void npuprof_fw_put_memory_(const npuprof_device *device, const npuprof_fw_pool_ *pool,
                                   uint64_t change, const char *tag)
{
    if (!NPUPROF_OPEN_(1)) return;
    const char *const name = device && device->name ? device->name : "host";
    npuprof_fw_put_event_(NPUPROF_KIND_MEMORY, tag ? tag : "", name, NULL, pool->used, pool->allocated,
                          change, PROF_NO_ARGS);
}

NPUPROF_API_ void npuprof_memory_(const npuprof_device *device, uint64_t used_bytes, uint64_t allocated_bytes,
                                  const char *tag)
{
    npuprof_fw_pool_ *const pool = npuprof_fw_find_pool_(device);
    pool->used = used_bytes;
    pool->allocated = allocated_bytes;
    npuprof_fw_put_memory_(device, pool, 0, tag);
}

NPUPROF_API_ void npuprof_memory_change_(const npuprof_device *device, bool is_free, uint64_t bytes,
                                         const char *tag)
{
    npuprof_fw_pool_ *const pool = npuprof_fw_find_pool_(device);
    pool->used = !is_free ? pool->used + bytes : pool->used > bytes ? pool->used - bytes : 0;
    if (pool->allocated < pool->used) pool->allocated = pool->used;
    npuprof_fw_put_memory_(device, pool, bytes << 2 | (is_free ? 2 : 1), tag);
}

/* A thread's name or metadata: the text is an argument.
   Why a thread's note has a name, too: the JSON writer then needs to know nothing of notes. */
NPUPROF_OWN_ static npuprof_result npuprof_fw_put_note_(uint32_t kind, const char *name, const char *key, const char *text)
{
    const char *const texts[3] = { name, NULL, NULL };
    const npuprof_arg arg = npuprof_str_(key, text ? text : "");
    if (!npuprof_fw_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    const uint32_t ref = NPUPROF_FW_REF_OF_KIND_(kind);
    const npuprof_token_ token = npuprof_fw_put_named_(ref, false, texts, NULL, npuprof_args_(&arg, 1));
    return token ? NPUPROF_OK : NPUPROF_ERR_TABLE_FULL;
}

NPUPROF_API_ void npuprof_thread_name_(const char *name)
{
    (void)npuprof_fw_put_note_(NPUPROF_CELL_KIND_THREAD_, "thread_name", "name", name);
}

NPUPROF_API_ npuprof_result npuprof_task(const char *name, uint32_t number)
{
    const char *const texts[3] = { "thread_name", NULL, NULL };
    const uint64_t values[3] = { number, 0, 0 };
    const npuprof_arg arg = npuprof_str_("name", name ? name : "");
    if (!npuprof_fw_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    const uint32_t ref = NPUPROF_FW_REF_OF_KIND_(NPUPROF_CELL_KIND_THREAD_);
    return npuprof_fw_put_named_(ref, false, texts, values, npuprof_args_(&arg, 1)) ? NPUPROF_OK
                                                                                    : NPUPROF_ERR_TABLE_FULL;
}

NPUPROF_API_ npuprof_result npuprof_metadata(const char *key, const char *value)
{
    if (!key) return NPUPROF_ERR_ARGUMENT;
    return npuprof_fw_put_note_(NPUPROF_CELL_KIND_METADATA_, key, "value", value);
}
/* ==== src/firmware/rtos.h =========================================================== >>firmware/rtos ==== */

/* What an RTOS, or the user's own scheduler, tells the recorder: names by number, who runs on a track,
   interrupts, ticks and sleep. What it opens lies on the stack that PROF_BEGIN has for that context.
   May not know an RTOS. */

/* The reference of a record whose name is that of a number: format/compact.h. */
NPUPROF_OWN_ static uint32_t npuprof_fw_ref_of_number_(uint32_t kind, uint32_t number)
{
    return (number + 1) << 16 | NPUPROF_FW_REF_OF_KIND_(kind);
}

NPUPROF_API_ npuprof_result npuprof_name(uint32_t number, const char *name)
{
    const uint64_t values[3] = { number, 0, 0 };
    const npuprof_arg arg = npuprof_str_("name", name);
    if (number > NPUPROF_NUMBER_MAX || !name) return NPUPROF_ERR_ARGUMENT;
    if (!npuprof_fw_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    const uint32_t ref = NPUPROF_FW_REF_OF_KIND_(NPUPROF_CELL_KIND_NAME_);
    return npuprof_fw_put_named_(ref, false, NULL, values, npuprof_args_(&arg, 1)) ? NPUPROF_OK
                                                                                   : NPUPROF_ERR_TABLE_FULL;
}

/* Ends a span and begins another with the same stamp. old 0: none ends. number NPUPROF_NOBODY: none
   begins. */
NPUPROF_OWN_ static npuprof_token_ npuprof_fw_change_(npuprof_token_ old, uint32_t track, uint32_t number)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint64_t now = npuprof_fw_stamp_(c);
    npuprof_fw_end_cell_(c, old, now);
    if (number > NPUPROF_NUMBER_MAX) return 0;
    const npuprof_token_ token = npuprof_fw_take_(c, 1, &c->lost);
    const uint32_t ref = npuprof_fw_ref_of_number_(NPUPROF_KIND_SPAN, number);
    return npuprof_fw_begin_cell_(c, token, ref, now, track);
}

NPUPROF_OWN_ static npuprof_fw_by_hand_ *npuprof_fw_track_(uint32_t *track)
{
    *track &= (1u << NPUPROF_CONTEXT_BITS_) - 1;
    return &npuprof_fw_by_hand_of_[*track];
}

NPUPROF_API_ void npuprof_switch(uint32_t track, uint32_t number)
{
    npuprof_fw_by_hand_ *const h = npuprof_fw_track_(&track);
    const npuprof_token_ old = npuprof_fw_pop_(h);
    if (!NPUPROF_OPEN_(1)) number = NPUPROF_NOBODY;
    if (!old && number == NPUPROF_NOBODY) return;
    const npuprof_token_ token = npuprof_fw_change_(old, track, number);
    if (number != NPUPROF_NOBODY) npuprof_fw_push_(h, token);
}

NPUPROF_API_ void npuprof_enter(uint32_t track, uint32_t number)
{
    npuprof_fw_by_hand_ *const h = npuprof_fw_track_(&track);
    npuprof_fw_push_(h, NPUPROF_OPEN_(1) ? npuprof_fw_change_(0, track, number) : 0);
}

NPUPROF_API_ void npuprof_leave(uint32_t track)
{
    const npuprof_token_ token = npuprof_fw_pop_(npuprof_fw_track_(&track));
    if (token) npuprof_close_(token);
}

NPUPROF_API_ void npuprof_count(uint32_t number, uint64_t value)
{
    const uint64_t values[3] = { value, 0, 0 };
    if (!NPUPROF_OPEN_(1) || number > NPUPROF_NUMBER_MAX) return;
    const uint32_t ref = npuprof_fw_ref_of_number_(NPUPROF_KIND_COUNTER_UINT, number);
    (void)npuprof_fw_put_named_(ref, false, NULL, values, PROF_NO_ARGS);
}

NPUPROF_API_ void npuprof_tick(void)
{
    if (NPUPROF_CLOCK_BITS_ < 48 && npuprof_fw_arena_->cells)
        (void)npuprof_fw_stamp_(npuprof_fw_arena_);
}

/* Why the start of the trace is moved back, and a record says by how much: times since the start are then
   right on the target, too, and stay right when the record is overwritten, because all before it is. */
NPUPROF_API_ void npuprof_slept(uint64_t ticks)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    if (!ticks || !c->cells) return;
    const npuprof_token_ token = npuprof_fw_take_(c, 1, &c->lost_notes);
    (void)npuprof_fw_tally_(c, token, &c->lost_notes);
    if (!token) return;
    npuprof_cell_ *const cell = npuprof_fw_cell_(c, token);
    const uint64_t now = npuprof_fw_stamp_(c), first = ((uint64_t)c->first_high << 32 | c->first_low) - ticks;
    uint32_t low = (uint32_t)first, high = (uint32_t)(first >> 32);
    NPUPROF_KNOWN_(low);
    NPUPROF_KNOWN_(high);
    NPUPROF_MASKED_BEGIN_
    c->first_low = low;
    c->first_high = high;
    NPUPROF_MASKED_END_
    cell->start = (uint32_t)now;
    cell->end = (uint32_t)ticks;
    cell->high.half[0] = npuprof_fw_high_half_(now, npuprof_fw_context_());
    npuprof_fw_publish_half_(cell, NPUPROF_FW_REF_OF_KIND_(NPUPROF_CELL_KIND_SLEPT_),
                             (uint32_t)(ticks >> 32) & 0x7FFF);
}
/* ==== src/firmware/read.h =========================================================== >>firmware/read ==== */

/* Reading the list of cells on the target: ticks as nanoseconds, the way from record to record,
   npuprof_clear(), npuprof_get_stats(). Tasks may record meanwhile: a record that is not finished says how
   many cells it has. May not know an output. */

/* A clock's rate. Why 32 bits on a machine of 32: nobody has a faster clock there, and arithmetic of 64 takes
   flash. */
#if UINTPTR_MAX > UINT32_MAX
typedef uint64_t npuprof_fw_rate_;
#else
typedef uint32_t npuprof_fw_rate_;
#endif

NPUPROF_OWN_ static npuprof_fw_rate_ npuprof_fw_rate_of_(const npuprof_compact_header_ *c)
{
    return (npuprof_fw_rate_)((uint64_t)c->hz_high << 32 | c->hz_low);
}

/* n / by with so many decimals, cut off, as a number without its point.
   Why by addition: products and divisions of 64 bits are calls into the compiler's library. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ uint64_t npuprof_fw_divide_(uint64_t n, npuprof_fw_rate_ by, int decimals)
{
    uint64_t result = 0;
    npuprof_fw_rate_ rest = 0;
    /* Negative steps: the quotient bit by bit, twice what it was and the next bit of n. Then the decimals:
       ten times what it was. */
    for (int step = -64; step < decimals; step++) {
        const uint64_t before = result;
        const npuprof_fw_rate_ add = rest;
        rest = (npuprof_fw_rate_)(n >> 63);
        n <<= 1;
        result = 0;
        for (int times = step < 0 ? 2 : 10; times; times--) {
            rest += add;
            result += before;
            if (rest < add || rest >= by) {
                rest -= by;
                result++;
            }
        }
    }
    return result;
}

/* Rounded down. */
NPUPROF_OWN_ static uint64_t npuprof_fw_ticks_to_ns_(uint64_t ticks)
{
    return npuprof_fw_divide_(ticks, npuprof_fw_rate_of_(npuprof_fw_arena_), 9);
}

NPUPROF_OWN_ static uint64_t npuprof_fw_first_stamp_(const npuprof_compact_header_ *c)
{
    return (uint64_t)c->first_high << 32 | c->first_low;
}
#define NPUPROF_BITS_MASK_(bits) (UINT64_MAX >> (64 - (bits)))

NPUPROF_API_ int64_t npuprof_now_ns(void)
{
    if (!npuprof_fw_is_ready_()) return 0;
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint64_t ticks = npuprof_fw_stamp_(c) - npuprof_fw_first_stamp_(c);
    return (int64_t)npuprof_fw_ticks_to_ns_(ticks & NPUPROF_BITS_MASK_(NPUPROF_CELL_STAMP_BITS_));
}

NPUPROF_OWN_ static uint32_t npuprof_fw_used_cells_(const npuprof_compact_header_ *c)
{
    if (NPUPROF_RING_) return c->cells;
    const uint32_t used = NPUPROF_LOAD_(&c->used);
    return used < c->cells ? used : c->cells;
}

NPUPROF_OWN_ static const npuprof_cell_ *npuprof_fw_cells_end_(const npuprof_compact_header_ *c)
{
    return npuprof_fw_cells_(c) + npuprof_fw_used_cells_(c);
}

/* The cell after a field and its text. */
NPUPROF_OWN_ static const npuprof_cell_ *npuprof_fw_after_field_(const npuprof_cell_ *field)
{
    return field + 1 + (NPUPROF_FIELD_LENGTH_(field->start) + 7) / 16;
}

/* The next field of a record: the first one if `at` is the head. After the last one NULL, and *end is where
   the next record may begin. */
NPUPROF_OWN_ static const npuprof_cell_ *npuprof_fw_next_field_(const npuprof_cell_ *at, bool head,
                                                   const npuprof_cell_ **end)
{
    const bool more = head ? at->ref & 1 : at->start & NPUPROF_FIELD_MORE_;
    *end = head ? at + 1 : npuprof_fw_after_field_(at);
    return more ? *end : NULL;
}

/* A record's field of that type, or NULL; *end is where the next record begins. */
NPUPROF_OWN_ static inline const npuprof_cell_ *npuprof_fw_find_field_(const npuprof_cell_ *head, uint32_t type,
                                                          const npuprof_cell_ **end)
{
    const npuprof_cell_ *found = NULL;
    const npuprof_cell_ *f = npuprof_fw_next_field_(head, true, end);
    for (; f; f = npuprof_fw_next_field_(f, false, end))
        if ((f->start & 0xFF) == type) found = f;
    return found;
}

/* Where the next record begins. */
NPUPROF_OWN_ static const npuprof_cell_ *npuprof_fw_after_record_(const npuprof_cell_ *head)
{
#if NPUPROF_RING_
    /* Why bounded: a task that is left in the middle of a record may be at it. */
    const uint32_t n = npuprof_fw_length_(head);
    const uint32_t left = (uint32_t)(npuprof_fw_cells_end_(npuprof_fw_arena_) - head);
    return head + (n - 1 < left ? n : left);
#else
    const npuprof_cell_ *end = head + (head->end ? head->end : 1);
    if (head->ref) (void)npuprof_fw_find_field_(head, 0, &end);
    return end;
#endif
}

#if NPUPROF_RING_
/* Index of the oldest cell, of the reader that is at work. */
static uint32_t npuprof_fw_oldest_;
#else
enum { npuprof_fw_oldest_ = 0 };
#endif

/* Whether a reader may begin: in a ring, what would be recorded is lost until npuprof_fw_let_go_(). False:
   another reader is at work. */
NPUPROF_OWN_ static bool npuprof_fw_hold_(npuprof_compact_header_ *c)
{
#if NPUPROF_WHEN_FULL == NPUPROF_KEEP_NEWEST
    for (;;) {
        const uint32_t used = npuprof_os_load_(&c->used), at = used & NPUPROF_RING_INDEX_;
        if (at == NPUPROF_RING_INDEX_ || !c->cells) return false;
        if (!npuprof_fw_replace_(&c->used, used, used | NPUPROF_RING_INDEX_)) continue;
        npuprof_fw_oldest_ = at;
        return true;
    }
#else
    (void)c;
    return true;
#endif
}

NPUPROF_OWN_ static void npuprof_fw_let_go_(npuprof_compact_header_ *c)
{
    (void)c;
#if NPUPROF_WHEN_FULL == NPUPROF_KEEP_NEWEST
    npuprof_os_store_(&c->used, (c->used & ~NPUPROF_RING_INDEX_) | npuprof_fw_oldest_);
#endif
}

/* The record after one, in the order of time but for those that are kept. After the last one `end`. */
NPUPROF_OWN_ static inline const npuprof_cell_ *npuprof_fw_next_record_(const npuprof_cell_ *at, const npuprof_cell_ *end)
{
    const npuprof_cell_ *const next = npuprof_fw_after_record_(at);
    if (!NPUPROF_RING_) return next;
    const npuprof_cell_ *const cells = npuprof_fw_cells_(npuprof_fw_arena_);
    const npuprof_cell_ *const first = cells + npuprof_fw_oldest_;
    if (at < first) return next < first ? next : end;
    return next < end || first == cells ? next : cells;
}

#define NPUPROF_FW_EACH_RECORD_(at, end)                                                           \
    (const npuprof_cell_ *at = npuprof_fw_cells_(npuprof_fw_arena_) + npuprof_fw_oldest_; at < end; \
     at = npuprof_fw_next_record_(at, end))

/* How many events were lost of NPUPROF_KEEP_NEWEST, if so many are there. */
NPUPROF_OWN_ static inline uint32_t npuprof_fw_overwritten_(const npuprof_compact_header_ *c, uint64_t recorded)
{
    const uint32_t all = c->lost;
    return all > recorded ? (uint32_t)(all - recorded) : 0;
}

#if NPUPROF_RING_

#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
/* Records are on their way to the sink. */
NPUPROF_API_ npuprof_result npuprof_clear(void) { return NPUPROF_ERR_UNSUPPORTED; }

#else /* NPUPROF_KEEP_NEWEST */

/* Spans that are open stay where they are, and lose their name. What is kept besides stays. */
NPUPROF_API_ npuprof_result npuprof_clear(void)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_cell_ *const cells = npuprof_fw_cells_(c);
    if (!c->cells) return NPUPROF_OK;
    if (!npuprof_fw_hold_(c)) return NPUPROF_ERR_BUSY;
    for (npuprof_cell_ *head = cells, *const end = cells + c->cells; head < end;) {
        npuprof_cell_ *const next = cells + (npuprof_fw_after_record_(head) - cells);
        const bool is_kept = (NPUPROF_LOAD_(&head->high.half[1]) & NPUPROF_CELL_OPEN_) != 0;
        if (npuprof_fw_is_event_(head) || !is_kept)
            npuprof_os_store_(&head->ref, NPUPROF_CELL_CLEARED_ | (head->ref & 1));
        head = next;
    }
    c->lost = c->lost_notes = 0;
    npuprof_fw_let_go_(c);
    return NPUPROF_OK;
}
#endif /* NPUPROF_WHEN_FULL */

#else /* !NPUPROF_RING_ */

/* A cell as nobody has taken it yet. */
NPUPROF_OWN_ static void npuprof_fw_empty_cell_(npuprof_cell_ *cell)
{
    NPUPROF_STORE_(&cell->ref, 0);
    NPUPROF_STORE_(&cell->start, 0);
    NPUPROF_STORE_(&cell->end, 0);
    NPUPROF_STORE_(&cell->high.word, 0);
}

/* Gives cleared cells back one by one, from the last, as long as nobody takes one meanwhile. */
NPUPROF_OWN_ static void npuprof_fw_give_back_cells_(npuprof_compact_header_ *c)
{
    uint32_t seen = NPUPROF_LOAD_(&c->used);
    while (seen > c->cells && !NPUPROF_REPLACE_(&c->used, &seen, c->cells)) { }
    for (uint32_t at = NPUPROF_LOAD_(&c->used), was = at; at && was == at; at--) {
        npuprof_cell_ *const cell = &npuprof_fw_cells_(c)[at - 1];
        if (NPUPROF_LOAD_(&cell->ref) != NPUPROF_CELL_CLEARED_) break;
        if (NPUPROF_LOAD_(&cell->high.half[1]) & NPUPROF_CELL_OPEN_) break;
        npuprof_fw_empty_cell_(cell);
        NPUPROF_MASKED_BEGIN_
        was = NPUPROF_LOAD_(&c->used);
        while (was == at && !NPUPROF_REPLACE_(&c->used, &was, at - 1)) { }
        NPUPROF_MASKED_END_
        if (was != at) NPUPROF_STORE_(&cell->ref, NPUPROF_CELL_CLEARED_);
        else was = at - 1;
    }
}

/* Records that are open, or not finished, stay where they are: their end is still to be written. Open ones
   lose their name. */
NPUPROF_API_ npuprof_result npuprof_clear(void)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_cell_ *const cells = npuprof_fw_cells_(c);
    const int gate = NPUPROF_LOAD_(&npuprof_gate_);
    NPUPROF_STORE_(&npuprof_gate_, INT_MIN);
    for (npuprof_cell_ *head = cells, *const end = cells + npuprof_fw_used_cells_(c); head < end;) {
        npuprof_cell_ *const next = cells + (npuprof_fw_after_record_(head) - cells);
        /* Why from the last to the first: an interrupt that reads meanwhile still finds the next record. */
        for (npuprof_cell_ *cell = NPUPROF_LOAD_(&head->ref) ? next : head; cell > head;) {
            if (--cell > head) NPUPROF_STORE_(&cell->high.word, 0);
            NPUPROF_STORE_(&cell->ref, NPUPROF_CELL_CLEARED_);
        }
        head = next;
    }
    npuprof_fw_give_back_cells_(c);
    c->lost = c->lost_notes = 0;
    NPUPROF_STORE_(&npuprof_gate_, gate);
    return NPUPROF_OK;
}

#endif /* NPUPROF_RING_ */

NPUPROF_API_ npuprof_result npuprof_get_stats(npuprof_stats *out)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const npuprof_cell_ *const end = npuprof_fw_cells_end_(c);
    if (!out) return NPUPROF_ERR_ARGUMENT;
    for (size_t i = 0; i < sizeof *out; i++) NPUPROF_STORE_((uint8_t *)out + i, 0);
    if (c->cells && !npuprof_fw_hold_(c)) return NPUPROF_ERR_BUSY;
    for NPUPROF_FW_EACH_RECORD_(at, end) {
        if (!npuprof_fw_is_event_(at)) continue;
        const uint32_t context = at->high.half[0] & (((uint32_t)1 << NPUPROF_CONTEXT_BITS_) - 1);
        out->recorded++;
        if (context >= out->threads) out->threads = context + 1;
    }
#if NPUPROF_WHEN_FULL == NPUPROF_KEEP_NEWEST
    out->lost = out->lost_by_cause[NPUPROF_LOST_OVERWRITTEN] = npuprof_fw_overwritten_(c, out->recorded);
    if (c->cells) npuprof_fw_let_go_(c);
#else
#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
    out->recorded = npuprof_fw_recorded_;
#endif
    out->lost = out->lost_by_cause[NPUPROF_LOST_FULL] = c->lost;
#endif
    out->lost_by_cause[NPUPROF_LOST_NOTES] = c->lost_notes;
    out->bytes_used = (uint64_t)(end - npuprof_fw_cells_(c)) * sizeof(npuprof_cell_);
    out->bytes_total = sizeof *c + (uint64_t)c->cells * sizeof(npuprof_cell_);
    return NPUPROF_OK;
}
/* ==== src/firmware/stream.h ======================================================= >>firmware/stream ==== */

/* npuprof_poll() and npuprof_flush() of NPUPROF_STREAM: the cells of the ring as parts, and the header as a
   part before every 64 of them (format/compact.h).
   A part is filled cell by cell. What is in it was copied, so its cells are free at once, and a part that the
   sink took half of goes on where it was. A record that is not finished holds up those behind it. No CRC of
   the names: that would take flash, and NPUPROF_BUILD_ID tells builds apart.
   Data: npuprof_fw_stream_, of the one task that polls; header.crc, which it alone moves on. */

#if NPUPROF_WHEN_FULL == NPUPROF_STREAM

enum { NPUPROF_FW_PARTS_ = 64 };                   /* from a header to the next one */
typedef struct npuprof_fw_stream_state_ {
    uint16_t left;                                 /* bytes of the part that the sink has not taken yet */
    uint16_t lead;                                 /* cells from the next one on that continue a record */
    uint8_t parts;                                 /* until the next header */
    bool is_busy;
    uint8_t may_lack;                              /* so many cells a part may have less than 16 */
    npuprof_stream_head_ head;
    npuprof_cell_ cell[NPUPROF_PART_CELLS_];
} npuprof_fw_stream_state_;
static npuprof_fw_stream_state_ npuprof_fw_stream_;

/* How many bytes the sink took; another number: it failed. */
#ifdef NPUPROF_SINK
NPUPROF_OWN_ static inline uint32_t npuprof_fw_write_(const void *bytes, size_t count)
{
    return (uint32_t)(NPUPROF_SINK(bytes, count));
}
enum { NPUPROF_FW_SINK_CAN_FAIL_ = 0 };

#else /* !NPUPROF_SINK */
static npuprof_sink npuprof_fw_sink_;

NPUPROF_OWN_ static inline uint32_t npuprof_fw_write_(const void *bytes, size_t count)
{
    const int result = npuprof_fw_sink_.write(npuprof_fw_sink_.user, bytes, count);
    if (result > 0) return UINT32_MAX;
    return result ? (uint32_t)~result : (uint32_t)count;   /* see NPUPROF_SINK_TOOK */
}
enum { NPUPROF_FW_SINK_CAN_FAIL_ = 1 };
#endif /* NPUPROF_SINK */

#if !NPUPROF_ARENA_BYTES
NPUPROF_OWN_ static void npuprof_fw_stream_anew_(void)
{
    uint8_t *const p = (uint8_t *)&npuprof_fw_stream_;
    for (size_t i = 0; i < sizeof npuprof_fw_stream_; i++) NPUPROF_STORE_(p + i, 0);
    npuprof_fw_recorded_ = 0;
}
#else
#define npuprof_fw_stream_anew_() ((void)0)        /* there is one trace only */
#endif

/* Copies a cell, and marks a record that is kept as sent. lead: see there. Returns the cells of its record
   from it on; 0: the record is not finished.
   Why the upper half is loaded first: it says whether the rest is there. An open span may end meanwhile; then
   it is copied once more.
   Why a record that was sent is cleared where nothing is masked: a task that claims it may find that another
   task was faster and passed it. Then it stays where it is, and would be sent again. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ uint32_t npuprof_fw_send_cell_(npuprof_cell_ *to, npuprof_cell_ *from,
                                                        uint32_t lead)
{
    uint32_t word;
    do {
        word = npuprof_os_acquire_(&from->high.word);
        to->high.word = word;
        to->ref = from->ref;
        to->start = from->start;
        to->end = from->end;
        NPUPROF_SIGNAL_FENCE_();
        if (lead) return lead;
        if (!(word & NPUPROF_FW_OPEN_WORD_)) {
            if (!NPUPROF_MASKS_) npuprof_os_store_(&from->ref, NPUPROF_CELL_CLEARED_ | (from->ref & 1));
            break;
        }
        if (NPUPROF_FW_IS_CLAIMED_(word)) return 0;
    } while (!npuprof_fw_replace_(&from->high.word, word, word | NPUPROF_FW_SENT_WORD_));
    return npuprof_fw_length_(from);
}

/* Copies the cells before `used` into the part, until it has 16. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_fw_gather_(npuprof_fw_stream_state_ *s, npuprof_compact_header_ *c,
                                                 uint32_t used)
{
    for (;;) {
        const uint32_t n = s->head.count;
        uint32_t sent = c->crc;
        if (n == NPUPROF_PART_CELLS_ || sent == used) return;
        const uint32_t lead = npuprof_fw_send_cell_(&s->cell[n], npuprof_fw_cell_(c, sent), s->lead);
        if (!lead) return;
        s->lead = (uint16_t)(lead - 1);
        s->head.count = (uint16_t)(n + 1);
        s->head.next++;
        sent++;
        /* Why the lap of `used`: that is ahead by less than one. */
        if ((sent & NPUPROF_RING_INDEX_) == NPUPROF_FW_CELL_COUNT_()) sent = used & ~NPUPROF_RING_INDEX_;
        npuprof_os_release_(&c->crc, sent);
    }
}

/* Fills the next part. False: there is none. */
NPUPROF_OWN_ static inline bool npuprof_fw_fill_(npuprof_fw_stream_state_ *s, npuprof_compact_header_ *c, uint32_t used)
{
    uint32_t parts = s->parts;
    if (!parts) {
        npuprof_compact_header_ *const h = (npuprof_compact_header_ *)(uintptr_t)s->cell;
        /* Why by words: an interrupt that counts meanwhile must not leave half of a count. */
        for (uint32_t i = 0; i < sizeof *h / 4; i++)
            NPUPROF_STORE_((uint32_t *)h + i, npuprof_os_load_((const uint32_t *)c + i));
        h->layout = NPUPROF_LAYOUT_PARTS;
        if (NPUPROF_CLOCK_BITS_ >= 48) h->clock = (uint32_t)(npuprof_fw_stamp_(c) >> 16);
        s->head.count = NPUPROF_FW_HEADER_CELLS_;
        parts = NPUPROF_FW_PARTS_ + 1;
    } else {
        npuprof_fw_gather_(s, c, used);
        if (s->head.count + s->may_lack < NPUPROF_PART_CELLS_) return false;
    }
    const uint32_t bytes = (s->head.count + 1u) * (uint32_t)sizeof(npuprof_cell_);
    s->parts = (uint8_t)(parts - 1);
    s->left = (uint16_t)bytes;
    s->head.mark = NPUPROF_STREAM_MARK_;
    s->head.crc = ~npuprof_crc_add_(UINT32_MAX, &s->head.next,
                                    (size_t)bytes - offsetof(npuprof_stream_head_, next));
    return true;
}

/* Why no further than where the records end now: what is recorded meanwhile would keep the task here. */
NPUPROF_OWN_ static inline npuprof_result npuprof_fw_hand_over_(npuprof_fw_stream_state_ *s, npuprof_compact_header_ *c)
{
    const uint32_t used = npuprof_os_acquire_(&c->used);
    while (s->left || npuprof_fw_fill_(s, c, used)) {
        const uint32_t left = s->left;
        const uint8_t *const from = (const uint8_t *)&s->cell[s->head.count] - left;
        const uint32_t took = npuprof_fw_write_(from, (size_t)left);
        if (took != left) {
            if (took < left) s->left = (uint16_t)(left - took);
            return NPUPROF_FW_SINK_CAN_FAIL_ && took == UINT32_MAX ? NPUPROF_ERR_IO : NPUPROF_ERR_BUSY;
        }
        s->left = s->head.count = 0;
        s->head.lead = s->lead;
    }
    return NPUPROF_OK;
}

/* One task at a time: a second one, or the sink itself, would find the part half done. */
NPUPROF_API_ npuprof_result npuprof_poll(void)
{
    npuprof_fw_stream_state_ *s = &npuprof_fw_stream_;
    npuprof_compact_header_ *c = npuprof_fw_arena_;
    /* Why: else gcc loads the address of each field. */
    NPUPROF_KNOWN_(s);
    NPUPROF_KNOWN_(c);
#ifdef NPUPROF_SINK
    if (!npuprof_fw_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
#else
    if (!npuprof_fw_sink_.write) return NPUPROF_ERR_ARGUMENT;
#endif
    if (s->is_busy) return NPUPROF_ERR_BUSY;
    s->is_busy = true;
    const npuprof_result result = npuprof_fw_hand_over_(s, c);
    s->is_busy = false;
    return result;
}

/* The part that is not full, and then a header, unless one was the last and says what was lost. That one is
   still there: nothing came after it. */
NPUPROF_API_ npuprof_result npuprof_flush(void)
{
    npuprof_fw_stream_state_ *const s = &npuprof_fw_stream_;
    const npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const npuprof_compact_header_ *const h = (const npuprof_compact_header_ *)(uintptr_t)s->cell;
    if (s->is_busy) return NPUPROF_ERR_BUSY;
    s->may_lack = NPUPROF_PART_CELLS_ - 1;
    npuprof_result result = npuprof_poll();
    if (result == NPUPROF_OK &&
        (s->parts != NPUPROF_FW_PARTS_ || h->lost != c->lost || h->lost_notes != c->lost_notes)) {
        s->parts = 0;
        result = npuprof_poll();
    }
    s->may_lack = 0;
    return result;
}

#else /* NPUPROF_WHEN_FULL is not NPUPROF_STREAM */

NPUPROF_API_ npuprof_result npuprof_poll(void) { return NPUPROF_ERR_UNSUPPORTED; }
NPUPROF_API_ npuprof_result npuprof_flush(void) { return NPUPROF_ERR_UNSUPPORTED; }

#endif /* NPUPROF_WHEN_FULL */
/* ==== src/firmware/control.h ===================================================== >>firmware/control ==== */

/* Start, stop and pause on firmware; what needs a file or a sink is unsupported there.
   Owns the gate, the level and the token of the open pause: one task controls. May not know how cells are
   read. */

static npuprof_token_ npuprof_fw_pause_token_;
static int npuprof_fw_level_;            /* 0 = stopped */

NPUPROF_API_ npuprof_result npuprof_init_(const npuprof_desc *desc, size_t desc_bytes, int version)
{
    if (desc_bytes != sizeof *desc || version != NPUPROF_VERSION) return NPUPROF_ERR_VERSION;
    if (npuprof_fw_arena_->cells) return NPUPROF_ERR_STARTED;
    if (desc && (desc->when_full != NPUPROF_WHEN_FULL || desc->arena_path || desc->output_path ||
                 desc->categories || desc->capture)) return NPUPROF_ERR_UNSUPPORTED;
#ifdef NPUPROF_SINK
    if (desc && desc->sink.write) return NPUPROF_ERR_UNSUPPORTED;
#else
    if (NPUPROF_WHEN_FULL == NPUPROF_STREAM && (!desc || !desc->sink.write)) return NPUPROF_ERR_ARGUMENT;
#endif
    if (desc && desc->arena) {
        if (NPUPROF_ARENA_BYTES) return NPUPROF_ERR_UNSUPPORTED;
        if ((uintptr_t)desc->arena & 7) return NPUPROF_ERR_ARENA_SIZE;
        if (desc->arena_bytes < NPUPROF_ARENA_LEAST_) return NPUPROF_ERR_ARENA_SIZE;
        npuprof_fw_set_up_(desc->arena, desc->arena_bytes);
    }
    if (!npuprof_fw_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
#if NPUPROF_WHEN_FULL == NPUPROF_STREAM
    npuprof_fw_stream_anew_();
#ifndef NPUPROF_SINK
    npuprof_fw_sink_ = desc->sink;
#endif
#endif
    return NPUPROF_OK;
}

NPUPROF_API_ bool npuprof_is_recording(void) { return NPUPROF_OPEN_(1); }

NPUPROF_API_ npuprof_result npuprof_start(int level)
{
    if (level < 1 || level > 9) return NPUPROF_ERR_ARGUMENT;
    if (!npuprof_fw_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    npuprof_fw_level_ = level;
    return npuprof_resume();
}

NPUPROF_API_ npuprof_result npuprof_stop(void)
{
    NPUPROF_STORE_(&npuprof_gate_, INT_MIN);
    npuprof_fw_level_ = 0;
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_pause(void)
{
    if (!NPUPROF_OPEN_(1)) return NPUPROF_OK;
    NPUPROF_STORE_(&npuprof_gate_, INT_MIN);
    npuprof_fw_pause_token_ = npuprof_begin_named_(NPUPROF_CELL_KIND_PAUSE_, NULL, "pause", PROF_NO_ARGS);
    return npuprof_fw_pause_token_ ? NPUPROF_OK : NPUPROF_ERR_TABLE_FULL;
}

NPUPROF_API_ npuprof_result npuprof_resume(void)
{
    npuprof_close_(npuprof_fw_pause_token_);
    npuprof_fw_pause_token_ = 0;
    if (npuprof_fw_level_) NPUPROF_STORE_(&npuprof_gate_, npuprof_fw_level_);
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_set_categories(const char *spec)
{
    return spec && *spec ? NPUPROF_ERR_UNSUPPORTED : NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_dump(const char *path)
{
    (void)path;
    return NPUPROF_ERR_UNSUPPORTED;
}

NPUPROF_API_ const char *npuprof_result_string(npuprof_result result)
{
    /* Why one object: the linker then leaves it out when nobody asks. */
#define NPUPROF_TEXT_(name, text) #name ": " text "\0"
    static const char texts[] = NPUPROF_RESULTS(NPUPROF_TEXT_) "not a result of npuprof";
#undef NPUPROF_TEXT_
    const char *text = texts;
    for (int i = 0; i < (int)result && i < NPUPROF_RESULT_COUNT; i++)
        text += npuprof_fw_text_length_(text) + 1;
    return text;
}
/* ==== src/firmware/image.h ========================================================= >>firmware/image ==== */

/* npuprof_write_image(): the cells in parts of 16 with a checksum each, over any line (format/compact.h).
   Tasks may record meanwhile. Also the way from a cell to what the program's constants say of it. Reads cells
   only. */

#ifndef NPUPROF_NAMES_SECTION
/* An address of this build from its low 32 bits. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ const void *npuprof_fw_address_of_(uint32_t low)
{
    static const char here = 0;
    /* Why: the constants of a program lie together, but maybe on both sides of a multiple of 2^32. */
    const int32_t distance = (int32_t)(low - (uint32_t)(uintptr_t)&here);
    if (sizeof(void *) > 4) return (const void *)((uintptr_t)&here + (uintptr_t)distance);
    return (const void *)(uintptr_t)low;
}

NPUPROF_OWN_ static const npuprof_site_ *npuprof_fw_site_of_(const npuprof_cell_ *head)
{
    return (const npuprof_site_ *)npuprof_fw_address_of_(head->ref & ~(uint32_t)3);
}

NPUPROF_OWN_ static uint32_t npuprof_fw_crc_text_(uint32_t crc, const char *text)
{
    return npuprof_crc_add_(crc, text, (size_t)npuprof_fw_text_length_(text) + 1);
}

/* Adds to a CRC what the ELF file says of a record: with it the host finds out whether it has the right file.
   */
NPUPROF_OWN_ static uint32_t npuprof_fw_crc_names_(uint32_t crc, const npuprof_cell_ *head)
{
    const npuprof_cell_ *end;
    if (!npuprof_fw_is_there_(head)) return crc;
    if (NPUPROF_RING_ && head->ref >> 1 == 1) return crc;
    if (!(head->ref & 2)) {
        const npuprof_site_ *site = npuprof_fw_site_of_(head);
        crc = npuprof_fw_crc_text_(crc, site->name);
        crc = npuprof_fw_crc_text_(crc, site->category ? site->category : "");
        crc = npuprof_crc_add_(crc, &site->kind, 1);
    }
    const npuprof_cell_ *f = npuprof_fw_next_field_(head, true, &end);
    for (; f; f = npuprof_fw_next_field_(f, false, &end))
        if (f->ref) crc = npuprof_fw_crc_text_(crc, (const char *)npuprof_fw_address_of_(f->ref));
    return crc;
}

#else /* NPUPROF_NAMES_SECTION: the target does not have the names */

NPUPROF_OWN_ static uint32_t npuprof_fw_crc_names_(uint32_t crc, const npuprof_cell_ *head)
{
    (void)head;
    return crc;
}

#endif /* NPUPROF_NAMES_SECTION */

/* Why with interrupts masked, and in this order: a record that is made meanwhile, or a span that ends, is
   then there either before or after. */
NPUPROF_OWN_ static void npuprof_fw_copy_cell_(npuprof_cell_ *to, const npuprof_cell_ *from)
{
    NPUPROF_MASKED_BEGIN_
    to->end = NPUPROF_LOAD_(&from->end);
    to->ref = NPUPROF_LOAD_(&from->ref);
    to->high.word = NPUPROF_LOAD_(&from->high.word);
    to->start = NPUPROF_LOAD_(&from->start);
    if (!NPUPROF_MASKS_ && to->ref) to->end = NPUPROF_LOAD_(&from->end);
    NPUPROF_MASKED_END_
}

NPUPROF_OWN_ static int npuprof_fw_write_header_(npuprof_sink sink, uint32_t used)
{
    npuprof_compact_header_ h;
    npuprof_fw_copy_bytes_((uint8_t *)&h, npuprof_fw_arena_, sizeof h);
    h.layout = NPUPROF_LAYOUT_PARTS;
#if NPUPROF_RING_
    (void)used;
    h.used = (h.used & ~NPUPROF_RING_INDEX_) | npuprof_fw_oldest_;
    if (NPUPROF_CLOCK_BITS_ >= 48) h.clock = (uint32_t)(npuprof_fw_stamp_(npuprof_fw_arena_) >> 16);
#else
    h.used = used;
#endif
    h.crc = ~npuprof_crc_add_(UINT32_MAX, &h, sizeof h - sizeof h.crc);
    return sink.write(sink.user, &h, sizeof h);
}

/* The cell with that number in an image. */
NPUPROF_OWN_ static const npuprof_cell_ *npuprof_fw_numbered_(uint32_t number)
{
    const npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint32_t left = c->cells - npuprof_fw_oldest_;
    return npuprof_fw_cells_(c) + (number < left ? npuprof_fw_oldest_ + number : number - left);
}

/* Copies the cells from *at on into a part. *next: the first cell after *at that begins a record. */
NPUPROF_OWN_ static uint32_t npuprof_fw_fill_part_(npuprof_part_head_ *head, npuprof_cell_ *to, uint32_t *at,
                                      uint32_t *next, uint32_t used)
{
    const uint32_t lead = *next - *at;
    uint32_t names = UINT32_MAX, n = 0;
    head->mark = NPUPROF_PART_MARK_;
    head->first = *at;
    for (; n < NPUPROF_PART_CELLS_ && *at < used; n++, (*at)++) {
        const npuprof_cell_ *const cell = npuprof_fw_numbered_(*at);
        npuprof_fw_copy_cell_(&to[n], cell);
        if (*at != *next) continue;
        if (to[n].ref) {
            *next += (uint32_t)(npuprof_fw_after_record_(cell) - cell);
            names = npuprof_fw_crc_names_(names, cell);
        } else {
            *next += to[n].end ? to[n].end : 1;
        }
    }
    head->lead = (uint16_t)(lead < n ? lead : n);
    head->count = (uint16_t)n;
    head->names = ~names;
    return n;
}

NPUPROF_API_ npuprof_result npuprof_write_image(npuprof_sink sink)
{
    struct { npuprof_part_head_ head; npuprof_cell_ cells[NPUPROF_PART_CELLS_]; } part;
    const uint32_t used = npuprof_fw_used_cells_(npuprof_fw_arena_);
    if (!sink.write || !npuprof_fw_arena_->cells) return NPUPROF_ERR_ARGUMENT;
    if (NPUPROF_WHEN_FULL == NPUPROF_STREAM) return NPUPROF_ERR_UNSUPPORTED;
    if (!npuprof_fw_hold_(npuprof_fw_arena_)) return NPUPROF_ERR_BUSY;
    int error = npuprof_fw_write_header_(sink, used);
    for (uint32_t at = 0, next = 0; at < used && !error;) {
        const uint32_t n = npuprof_fw_fill_part_(&part.head, part.cells, &at, &next, used);
        const size_t bytes = (size_t)n * sizeof *part.cells;
        const uint32_t crc = npuprof_crc_add_(UINT32_MAX, &part, sizeof part.head - sizeof part.head.crc);
        part.head.crc = ~npuprof_crc_add_(crc, part.cells, bytes);
        error = sink.write(sink.user, &part, sizeof part.head + bytes);
    }
    if (!error) error = npuprof_fw_write_header_(sink, used);
    npuprof_fw_let_go_(npuprof_fw_arena_);
    return error ? NPUPROF_ERR_IO : NPUPROF_OK;
}
/* ==== src/firmware/result.h ======================================================= >>firmware/result ==== */

/* PROF_RESULT on firmware: arguments of a span that become known while it is open, as a record of their own
   (NPUPROF_CELL_KIND_RESULT_) that names the cell of the span. The host makes one list of them.
   Why a search and no stack of open spans: a plain span stays as cheap as it is, and who has no results pays
   nothing. Data: the cells alone.
   When the cells are full, the arguments are lost and counted in lost_notes; the span is still there.
   In a ring they are overwritten as all records are, which nothing counts: they are no events. Those of a
   span that is open for longer than a lap may be missing while the span is there.
   May not know an output. */

/* The token of the innermost open span of this context; 0: there is none. Time: the records so far. */
NPUPROF_OWN_ static npuprof_token_ npuprof_fw_innermost_(const npuprof_compact_header_ *c)
{
    const npuprof_cell_ *const cells = npuprof_fw_cells_(c), *const end = npuprof_fw_cells_end_(c);
    const uint32_t context = npuprof_fw_context_(), mask = ((uint32_t)1 << NPUPROF_CONTEXT_BITS_) - 1;
    npuprof_token_ token = 0;
#if NPUPROF_RING_
    const uint64_t now = npuprof_fw_stamp_(npuprof_fw_arena_);
    uint64_t youngest = 0;
#endif
    for (const npuprof_cell_ *at = cells; at < end; at = npuprof_fw_after_record_(at)) {
        const bool open = NPUPROF_LOAD_(&at->high.half[1]) & NPUPROF_CELL_OPEN_;
        if (!open || (at->high.half[0] & mask) != context || !npuprof_fw_is_event_(at)) continue;
#if NPUPROF_RING_
        const uint64_t start = (uint64_t)(at->high.half[0] >> NPUPROF_CONTEXT_BITS_) << 32 | at->start;
        const uint64_t age = (now - start) & NPUPROF_BITS_MASK_(48 - NPUPROF_CONTEXT_BITS_);
        if (token && age > youngest) continue;
        youngest = age;
        token = (npuprof_token_)(at - cells) |
                (at->high.half[1] & ~(uint32_t)NPUPROF_CELL_SENT_) << NPUPROF_RING_LAP_SHIFT_;
#else
        token = (npuprof_token_)(at - cells) + 1;
#endif
    }
    return token;
}

NPUPROF_API_ void npuprof_result_(npuprof_args args)
{
    const npuprof_compact_header_ *const c = npuprof_fw_arena_;
    uint32_t used = npuprof_os_load_(&c->used), before = ~used;
    npuprof_token_ token = 0;
    /* Why again: an interrupt that takes cells of a ring divides them anew, and the search may miss the span.
       Why not for ever: one may come in each search. */
    for (int tries = 3; tries && used != before; tries--) {
        before = used;
        token = npuprof_fw_innermost_(c);
        used = npuprof_os_load_(&c->used);
    }
    const uint64_t values[3] = { token, 0, 0 };
    const uint32_t ref = NPUPROF_FW_REF_OF_KIND_(NPUPROF_CELL_KIND_RESULT_);
    if (token) (void)npuprof_fw_put_named_(ref, false, NULL, values, args);
}
/* ==== src/firmware/json_text.h ================================================= >>firmware/json_text ==== */

/* Text of the target's own JSON: strings, numbers and templates, into a sink. For those who have no host at
   hand. Works on a npuprof_fw_out_ on the caller's stack. Numbers of 64 bits are divided and multiplied by
   addition and shifts: the compiler's library functions for that take flash. May not know records. */

#ifndef NPUPROF_NO_JSON
enum { NPUPROF_FW_AROUND_ = 16 };        /* open spans that are compared; deeper ones are not */
typedef struct npuprof_fw_out_ {
    uint64_t number[7];                  /* begin and length in ns, track, id; at the end the metadata's */
    struct { const char *text; uint32_t length; } word[2];     /* name and category; NULL: none */
    npuprof_sink sink;
    struct { uint64_t start, end; } around[NPUPROF_FW_AROUND_];        /* the spans around the next one */
    uint64_t last;                       /* last stamp of the trace, in ticks since its first */
    uint32_t depth, left_out;            /* of around; records that are not in the JSON */
    int error, phase;                    /* of the sink; "ph" of the event, 'L': left out */
} npuprof_fw_out_;

NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_fw_put_bytes_(npuprof_fw_out_ *o, const char *bytes, size_t count)
{
    if (!o->error) o->error = o->sink.write(o->sink.user, bytes, count);
}

NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_fw_put_char_(npuprof_fw_out_ *o, int c)
{
    const char byte = (char)c;
    npuprof_fw_put_bytes_(o, &byte, 1);
}

/* A quoted text, up to its NUL or its length. A bad byte becomes U+FFFD. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_fw_put_text_(npuprof_fw_out_ *o, const char *text, uint32_t length)
{
    npuprof_fw_put_char_(o, '"');
    for (uint32_t n; length && *text; text += n, length -= n) {
        const int c = (uint8_t)*text;
        n = (uint32_t)npuprof_utf8_length_((const uint8_t *)text, (size_t)length);
        if (c < 32 || c == 127) {
            npuprof_fw_put_bytes_(o, "\\u00", 4);
            npuprof_fw_put_char_(o, '0' + (c >> 4));
            npuprof_fw_put_char_(o, "0123456789abcdef"[c & 15]);
            continue;
        }
        if (c == '"' || c == '\\') npuprof_fw_put_char_(o, '\\');
        npuprof_fw_put_bytes_(o, n ? text : "\xEF\xBF\xBD", n ? (size_t)n : 3);
        n += !n;
    }
    npuprof_fw_put_char_(o, '"');
}

/* point: number of digits after the point; 0: no point. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_fw_put_number_(uint64_t v, npuprof_fw_out_ *o, int point)
{
    char digits[24], *p = digits + sizeof digits;
    do {
        const uint32_t low = (uint32_t)v;
        v = npuprof_fw_divide_(v, 10, 0);
        *--p = (char)('0' + low - (uint32_t)v * 10);
        if (!--point) *--p = '.';
    } while (v || point >= 0);
    npuprof_fw_put_bytes_(o, p, (size_t)(digits + sizeof digits - p));
}

/* v * 2^twos, v below 2^61, with 15 digits: v * 2^twos * 10^tens stays the same while `twos` goes to 0. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_fw_put_scaled_(uint64_t v, npuprof_fw_out_ *o, int twos)
{
    enum { top = 28 };                   /* bit 60 is this one of the upper word */
    int tens = 0;
    uint32_t digit = 0;
    for (; twos > 0; twos--, v <<= 1)
        if (v >> 32 >> top) {
            v = npuprof_fw_divide_(v + 5, 10, 0);
            tens++;
        }
    for (; v && twos < 0; twos++) {
        for (; !(v >> 32 >> top); tens--) {
            uint64_t twice = v << 1;     /* Why so: a product is a call into the compiler's library. */
            v = (v << 3) + NPUPROF_LOAD_(&twice);
        }
        v = (v + (v >> 1 & 1)) >> 1;     /* halves are rounded to even */
    }
    for (uint64_t less; v >= UINT64_C(1000000000000000); v = less, tens++) {
        less = npuprof_fw_divide_(v, 10, 0);
        digit = (uint32_t)v - (uint32_t)less * 10;
    }
    v += digit >= 5 && tens < 294;       /* Why: the largest double, rounded up, is no double. */
    for (uint64_t less; v && tens; v = less, tens++) {
        less = npuprof_fw_divide_(v, 10, 0);
        if ((uint32_t)v != (uint32_t)less * 10) break;
    }
    npuprof_fw_put_number_(v, o, tens < 0 && tens >= -18 ? -tens : 0);
    if (tens > 0 || tens < -18) {
        npuprof_fw_put_bytes_(o, tens < 0 ? "e-" : "e+", 2);
        npuprof_fw_put_number_((uint64_t)(tens < 0 ? -tens : tens), o, 0);
    }
}

/* Writes a template:
     '          a quotation mark
     \1 \2      the words
     \3 to \11  the numbers; the first two with three decimals
     @          the phase
     ^abc,...^  what lies between the comma and the next ^, only for the phases a, b and c; with \2 instead of
     a phase, if
                there is that word; ^, ends the condition */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_fw_put_(npuprof_fw_out_ *o, const char *text)
{
    for (int c; (c = *text) != 0; text++) {
        if (c == '^') {
            bool shown = text[1] == ',';
            while ((c = *++text) != ',')
                if (c == o->phase || (c == 2 && o->word[1].text)) shown = true;
            if (!shown) {
                while (text[1] != '^') text++;
                continue;
            }
        }
        if (c < 3) npuprof_fw_put_text_(o, o->word[c - 1].text, o->word[c - 1].length);
        else if (c < 10) npuprof_fw_put_number_(o->number[c - 3], o, c < 5 ? 3 : 0);
        else npuprof_fw_put_char_(o, c == '\'' ? '"' : c == '@' ? o->phase : c);
    }
}

NPUPROF_OWN_ static bool npuprof_fw_is_finite_(uint64_t v) { return (~(uint32_t)(v >> 32) & 0x7FF00000u) != 0; }

/* A value of that type, NPUPROF_ARG_*. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_fw_put_value_(uint64_t v, npuprof_fw_out_ *o, uint32_t type)
{
    const bool minus = (type & 1) && v >> 63;                /* NPUPROF_ARG_INT and _REAL are odd */
    if (type == NPUPROF_ARG_REAL && !npuprof_fw_is_finite_(v)) {
        npuprof_fw_put_(o, v << 12 ? "'NaN'" : minus ? "'-Infinity'" : "'Infinity'");
        return;
    }
    if (minus) npuprof_fw_put_char_(o, '-');
    if (type == NPUPROF_ARG_REAL) {
        const int exponent = (int)(v >> 52) & 0x7FF;
        v &= 0xFFFFFFFFFFFFFu;
        npuprof_fw_put_scaled_(exponent ? v | 0x10000000000000u : v, o, (exponent ? exponent : 1) - 1075);
    } else if (type == NPUPROF_ARG_UINT && v >> 63) {        /* viewers take 63 bits at most */
        if (o->phase == 'C') {
            npuprof_fw_put_scaled_((v >> 4) + (v >> 3 & 1), o, 4);
        } else {
            npuprof_fw_put_char_(o, '"');
            npuprof_fw_put_number_(v, o, 0);
            npuprof_fw_put_char_(o, '"');
        }
    } else if (type == NPUPROF_ARG_BOOL) {
        npuprof_fw_put_(o, v ? "true" : "false");
    } else {
        npuprof_fw_put_number_(minus ? 0 - v : v, o, 0);
    }
}
#endif /* !NPUPROF_NO_JSON */
/* ==== src/firmware/json.h =========================================================== >>firmware/json ==== */

/* npuprof_write_json() on the target. Writes the cells in their order, context by context, without ids and
   lanes. Finished spans, device spans and spans that do not nest are left out and counted. Reads cells only;
   tasks may record meanwhile. */

#ifdef NPUPROF_NO_JSON
NPUPROF_API_ npuprof_result npuprof_write_json(npuprof_sink sink)
{
    (void)sink;
    return NPUPROF_ERR_UNSUPPORTED;
}

#else /* !NPUPROF_NO_JSON */

NPUPROF_OWN_ static uint64_t npuprof_fw_field_value_(const npuprof_cell_ *field)
{
    return (uint64_t)field->high.word << 32 | field->end;
}

#define NPUPROF_FW_RANGE_ NPUPROF_BITS_MASK_(NPUPROF_CELL_STAMP_BITS_ - NPUPROF_CONTEXT_BITS_)

#if NPUPROF_RING_
/* Ticks since the trace began that no record is older than: a ring runs longer than the range of a cell's
   stamp. */
static uint64_t npuprof_fw_zero_;
NPUPROF_OWN_ static void npuprof_fw_find_zero_(npuprof_compact_header_ *c)
{
    const uint64_t back = NPUPROF_FW_RANGE_ / 4 * 3, now = npuprof_fw_stamp_(c) - npuprof_fw_first_stamp_(c);
    npuprof_fw_zero_ = now > back ? now - back : 0;
}

#else
enum { npuprof_fw_zero_ = 0 };
#endif

/* Ticks since the trace began. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ uint64_t npuprof_fw_since_first_(uint32_t high, uint32_t low)
{
    const uint64_t ticks = ((uint64_t)high << 32 | low) - npuprof_fw_first_stamp_(npuprof_fw_arena_);
    return ((ticks - npuprof_fw_zero_) & NPUPROF_FW_RANGE_) + npuprof_fw_zero_;
}

NPUPROF_OWN_ static uint64_t npuprof_fw_start_of_(const npuprof_cell_ *head)
{
    return npuprof_fw_since_first_(head->high.half[0] >> NPUPROF_CONTEXT_BITS_, head->start);
}

/* When a span ends; an open one at the trace's last stamp. */
NPUPROF_OWN_ static uint64_t npuprof_fw_end_of_(const npuprof_fw_out_ *o, const npuprof_cell_ *head)
{
    if (head->high.half[1] & NPUPROF_CELL_OPEN_) return o->last;
    return npuprof_fw_since_first_(head->high.half[1], head->end);
}

/* Whether a span lies inside those around it. If so, it is one of them for the next. Tasks that share a
   context may overlap. */
NPUPROF_OWN_ static bool npuprof_fw_nests_(npuprof_fw_out_ *o, uint64_t start, uint64_t end)
{
    bool nests = end >= start;
    while (o->depth && (o->around[o->depth - 1].end <= start || o->around[o->depth - 1].start > start)) {
        o->depth--;
        if (o->around[o->depth].start > start && o->around[o->depth].start < end &&
            o->around[o->depth].end > end) nests = false;
    }
    if (o->depth && o->around[o->depth - 1].end < end) nests = false;
    if (nests && o->depth < NPUPROF_FW_AROUND_) {
        o->around[o->depth].start = start;
        o->around[o->depth++].end = end;
    }
    return nests;
}

NPUPROF_OWN_ static uint32_t npuprof_fw_kind_of_(const npuprof_cell_ *head)
{
    return head->ref & 2 ? head->ref >> 8 : npuprof_fw_site_of_(head)->kind;
}

NPUPROF_OWN_ static bool npuprof_fw_is_in_context_(const npuprof_cell_ *head, uint32_t context)
{
    const uint32_t own = head->high.half[0] & (((uint32_t)1 << NPUPROF_CONTEXT_BITS_) - 1);
    return npuprof_fw_is_there_(head) && own == context;
}

/* The phase of each kind, in the order of NPUPROF_KINDS. */
#define NPUPROF_FW_PHASES_ "?XXXXXiCCCCsfbeLL"
NPUPROF_ASSERT_(a_phase_for_each_kind, sizeof(NPUPROF_FW_PHASES_) - 1 == NPUPROF_KIND_COUNT);

/* The phase of a record; 'L': left out; '?': no event. The end of an asynchronous span gets the name of the
   last beginning before it with that id. */
NPUPROF_OWN_ static int npuprof_fw_phase_of_(npuprof_fw_out_ *o, const npuprof_cell_ *head, uint32_t kind)
{
    static const char phases[] = NPUPROF_FW_PHASES_, notes[] = "MMi";
    const npuprof_cell_ *end, *found;
    const uint32_t note = kind - NPUPROF_CELL_KIND_THREAD_;
    int phase = kind < sizeof phases - 1 ? phases[kind] : note < 3 ? notes[note] : kind >> 16 ? 'L' : '?';
    const bool span = phase == 'X';
    if (span && !npuprof_fw_nests_(o, npuprof_fw_start_of_(head), npuprof_fw_end_of_(o, head))) phase = 'L';
    found = npuprof_fw_find_field_(head, NPUPROF_FIELD_VALUE_, &end);
    if (kind == NPUPROF_KIND_COUNTER_REAL &&
        (!found || !npuprof_fw_is_finite_(npuprof_fw_field_value_(found)))) phase = 'L';
    if (phase != 'e') return phase;
    const uint64_t id = npuprof_fw_field_value_(found);
    phase = 'L';
    for NPUPROF_FW_EACH_RECORD_(at, npuprof_fw_cells_end_(npuprof_fw_arena_)) {
        if (at == head) break;
        if ((at->ref & ~(uint32_t)1) != NPUPROF_FW_REF_OF_KIND_(NPUPROF_KIND_ASYNC_BEGIN)) continue;
        if (npuprof_fw_field_value_(npuprof_fw_find_field_(at, NPUPROF_FIELD_VALUE_, &end)) != id) continue;
        found = npuprof_fw_find_field_(at, NPUPROF_FIELD_NAME_, &end);
        o->word[0].text = (const char *)&found->end;
        o->word[0].length = found->start >> 8 & 0xFFF;
        phase = 'e';
    }
    return phase;
}

/* The fields of a record: its own words and values into *o, the user's and a counter's as arguments. comma:
   what comes before the next argument; returned as it is behind them. */
NPUPROF_OWN_ static int npuprof_fw_put_fields_(npuprof_fw_out_ *o, const npuprof_cell_ *head, uint32_t kind, int comma)
{
    static const char own_keys[] = "used\0     allocated";
    const bool memory = kind == NPUPROF_KIND_MEMORY;
    const npuprof_cell_ *end;
    const npuprof_cell_ *f = npuprof_fw_next_field_(head, true, &end);
    for (; f; f = npuprof_fw_next_field_(f, false, &end)) {
        const char *key = (const char *)npuprof_fw_address_of_(f->ref);
        uint32_t type = f->start & 0xFF;
        const uint32_t own = type - NPUPROF_FIELD_NAME_, value = type - NPUPROF_FIELD_VALUE_;
        const uint32_t length = f->start >> 8 & 0xFFF;
        /* Why: a memory's name is that of its device, its second word the tag. */
        if (own == memory || (own == 1 && !memory)) {
            o->word[own ^ memory].text = (const char *)&f->end;
            o->word[own ^ memory].length = length;
        }
        if (value == 0) o->number[3] = npuprof_fw_field_value_(f);
        if (type == NPUPROF_FIELD_RESULT_) o->left_out++;
        if (own < 32) {
            if (o->phase != 'C' || value > (uint32_t)memory) continue;
            key = memory ? own_keys + value * 10 : "value";
            type = memory ? (uint32_t)NPUPROF_ARG_UINT : kind - NPUPROF_KIND_COUNTER_INT + NPUPROF_ARG_INT;
        }
        npuprof_fw_put_char_(o, comma);
        comma = ',';
        npuprof_fw_put_text_(o, key, UINT32_MAX);
        npuprof_fw_put_char_(o, ':');
        if (type == NPUPROF_ARG_STR_NULL_) npuprof_fw_put_(o, "null");
        else if (type >= NPUPROF_ARG_STR) npuprof_fw_put_text_(o, (const char *)&f->end, length);
        else npuprof_fw_put_value_(npuprof_fw_field_value_(f), o, type);
    }
    return comma;
}

/* Whether the RESULT at `at` is of the span at `head`. In a ring, a record that is newer than the result has
   replaced the span; a span that was open for long may lie behind its results. */
NPUPROF_OWN_ static bool npuprof_fw_is_result_of_(const npuprof_cell_ *at, const npuprof_cell_ *head)
{
    const npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint32_t number = (uint32_t)(head - npuprof_fw_cells_(c));
    if (at->ref != (NPUPROF_FW_REF_OF_KIND_(NPUPROF_CELL_KIND_RESULT_) | 1)) return false;
    const uint32_t token = at[1].end;              /* its first field */
#if NPUPROF_RING_
    const uint32_t cells = c->cells, own = (uint32_t)(at - npuprof_fw_cells_(c)) + cells - npuprof_fw_oldest_;
    if (!npuprof_fw_is_there_(at) || (token & NPUPROF_RING_INDEX_) != number) return false;
    if (own % cells > (number + cells - npuprof_fw_oldest_) % cells) return true;
    return npuprof_fw_start_of_(head) < npuprof_fw_start_of_(at);
#else
    return token == number + 1;
#endif
}

/* The next record behind `at` with results of the span at `head`, or NULL. The first one: `at` is the head.
   */
NPUPROF_OWN_ static const npuprof_cell_ *npuprof_fw_next_result_(const npuprof_cell_ *at, const npuprof_cell_ *head)
{
    const npuprof_cell_ *const end = npuprof_fw_cells_end_(npuprof_fw_arena_);
    if (NPUPROF_RING_ && at == head) {
        at = npuprof_fw_cells_(npuprof_fw_arena_) + npuprof_fw_oldest_;
        if (npuprof_fw_is_result_of_(at, head)) return at;
    }
    while ((at = npuprof_fw_next_record_(at, end)) < end)
        if (npuprof_fw_is_result_of_(at, head)) return at;
    return NULL;
}

/* All arguments of a record; those of a span may go on in RESULT records. Whether there is one. */
NPUPROF_OWN_ static bool npuprof_fw_put_args_(npuprof_fw_out_ *o, const npuprof_cell_ *head, uint32_t kind)
{
    int comma = '{';
    if (o->phase == 'X' && head->high.half[1] & NPUPROF_CELL_OPEN_) {
        npuprof_fw_put_(o, "{'unfinished':true");
        comma = ',';
    }
    const npuprof_cell_ *at = head;
    do comma = npuprof_fw_put_fields_(o, at, kind, comma);
    while (o->phase == 'X' && (at = npuprof_fw_next_result_(at, head)) != NULL);
    return comma == ',';
}

NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_fw_put_json_record_(npuprof_fw_out_ *o, const npuprof_cell_ *head)
{
    static const npuprof_site_ none = { "", NULL, 0, { 0, 0, 0 } };
    const char *rest = "{},'ph':'@','tid':\5,'ts':\3,'name':\1^\2,'cat':\2^X,'dur':\4^i,'s':'t'^f,'bp':'e'"
                       "^sfbe,'id':\6^,'pid':1}";
    const npuprof_site_ *const site = head->ref & 2 ? &none : npuprof_fw_site_of_(head);
    const uint32_t kind = npuprof_fw_kind_of_(head);
    o->word[0].text = site->name;
    o->word[1].text = site->category;
    o->word[0].length = o->word[1].length = UINT32_MAX;
    o->phase = npuprof_fw_phase_of_(o, head, kind);
    o->left_out += o->phase == 'L';
    if (o->phase == 'L' || o->phase == '?') return;
    npuprof_fw_put_(o, ",\n{'args':");
    if (npuprof_fw_put_args_(o, head, kind)) rest++;
    if ((uint32_t)o->phase - 'b' < 4) {
        o->word[1].text = "async";
        o->word[1].length = 5;
    }
    if (o->phase == 'C') o->word[1].text = NULL;
    o->number[0] = npuprof_fw_ticks_to_ns_(npuprof_fw_start_of_(head));
    o->number[1] = npuprof_fw_ticks_to_ns_(npuprof_fw_end_of_(o, head)) - o->number[0];
    /* Why: viewers do not show an event without a length. The host does the same. */
    if (!o->number[1] && head->high.half[1] & NPUPROF_CELL_OPEN_) o->number[1] = 1000;
    npuprof_fw_put_(o, rest);
}

/* The records of a context, and a name for it if they give none. */
NPUPROF_OWN_ static void npuprof_fw_put_context_(npuprof_fw_out_ *o, uint32_t context)
{
    const npuprof_cell_ *const end = npuprof_fw_cells_end_(npuprof_fw_arena_);
    bool seen = false, named = false;
    o->depth = 0;
    o->number[2] = context + 1;
    for NPUPROF_FW_EACH_RECORD_(at, end) {
        if (!npuprof_fw_is_in_context_(at, context)) continue;
        if (npuprof_fw_is_event_(at)) seen = true;
        else named = named || npuprof_fw_kind_of_(at) == NPUPROF_CELL_KIND_THREAD_;
        npuprof_fw_put_json_record_(o, at);
    }
    if (!seen || named) return;
    npuprof_fw_put_(o, ",\n{'ph':'M','name':'thread_name','pid':1,'tid':\5,'args':{'name':'thread \5'}}");
}

/* Counts the events and finds the last stamp. */
NPUPROF_OWN_ static uint32_t npuprof_fw_survey_(npuprof_fw_out_ *o)
{
    const npuprof_cell_ *const end = npuprof_fw_cells_end_(npuprof_fw_arena_);
    uint32_t recorded = 0;
    o->last = 0;
    for NPUPROF_FW_EACH_RECORD_(at, end) {
        if (!npuprof_fw_is_event_(at)) continue;
        uint64_t stamp = npuprof_fw_start_of_(at);
        recorded++;
        if (stamp > o->last) o->last = stamp;
        if (npuprof_fw_kind_of_(at) > NPUPROF_KIND_OPERATOR) continue;
        stamp = npuprof_fw_end_of_(o, at);
        if (stamp > o->last) o->last = stamp;
    }
    return recorded;
}

#if NPUPROF_RING_
#define NPUPROF_FW_CAUSE_ "overwritten"
#else
#define NPUPROF_FW_CAUSE_ "arena_full"
#endif

NPUPROF_API_ npuprof_result npuprof_write_json(npuprof_sink sink)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_fw_out_ o;
    if (!sink.write || !c->cells) return NPUPROF_ERR_ARGUMENT;
    if (NPUPROF_WHEN_FULL == NPUPROF_STREAM) return NPUPROF_ERR_UNSUPPORTED;
    if (sizeof(npuprof_fw_rate_) < 8 && c->hz_high) return NPUPROF_ERR_UNSUPPORTED;
    if (!npuprof_fw_hold_(c)) return NPUPROF_ERR_BUSY;
#if NPUPROF_RING_
    npuprof_fw_find_zero_(c);
#endif
    o.sink.write = sink.write;
    o.sink.user = sink.user;
    o.error = 0;
    o.left_out = 0;
    npuprof_fw_put_(&o, "{'traceEvents':[\n{'ph':'M','name':'process_name','pid':1,'tid':1,"
                        "'args':{'name':'firmware'}}");
    const uint32_t recorded = npuprof_fw_survey_(&o);
    for (uint32_t context = 0; context < 1u << NPUPROF_CONTEXT_BITS_; context++)
        npuprof_fw_put_context_(&o, context);
    o.number[2] = npuprof_fw_rate_of_(c);
#if NPUPROF_RING_
    o.number[3] = npuprof_fw_overwritten_(c, recorded);
#else
    o.number[3] = c->lost;
#endif
    o.number[4] = c->lost_notes;
    o.number[5] = recorded;
    o.number[6] = o.left_out;
    npuprof_fw_put_(&o, "\n],\n'displayTimeUnit':'ns','metadata':{'npuprof':{"
                        "'version':'" NPUPROF_VERSION_STRING "','host':'target','program':'firmware','pid':1,"
                        "'start_unix_ns':0,'clock':{'source':'user','hz':\5},'recorded':\10,'left_out':\11,"
                        "'lost':{'" NPUPROF_FW_CAUSE_ "':\6,'notes':\7}}}}\n");
    npuprof_fw_let_go_(c);
    return o.error ? NPUPROF_ERR_IO : NPUPROF_OK;
}
#endif /* NPUPROF_NO_JSON */

#else /* !NPUPROF_FREESTANDING */

/* ==== src/numbers/wide.h ============================================================= >>numbers/wide ==== */

/* Products of 128 bits, and their quotients, exact. Where the compiler has no type of 128 bits they are made
   of halves or bit by bit. Hosted code only: times and rates of long traces need it. Owns no data; may not
   know what the numbers mean. */

typedef struct npuprof_u128_ { uint64_t high, low; } npuprof_u128_;
NPUPROF_OWN_ static npuprof_u128_ npuprof_multiply_(uint64_t a, uint64_t b)
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

#if defined(__SIZEOF_INT128__) && !defined(NPUPROF_NO_INT128_)
/* (high * 2^64 + low) / c, where high < c. Why assembler: the quotient fits in 64 bits, and one instruction
   divides. The compiler does not know that; the function that it calls takes four times as long. */
NPUPROF_OWN_ static inline uint64_t npuprof_divide_(uint64_t high, uint64_t low, uint64_t c)
{
#ifdef __x86_64__
    uint64_t q, left;
    __asm__("divq %4" : "=a"(q), "=d"(left) : "0"(low), "1"(high), "r"(c) : "cc");
    (void)left;
    return q;
#else
    __extension__ typedef unsigned __int128 npuprof_wide_;
    return (uint64_t)(((npuprof_wide_)high << 64 | low) / c);
#endif
}
#endif

/* a * b / c, rounded down or up. UINT64_MAX: it does not fit, or c is 0. */
NPUPROF_OWN_ static uint64_t npuprof_mul_div_(uint64_t a, uint64_t b, uint64_t c, bool up)
{
#if defined(__SIZEOF_INT128__) && !defined(NPUPROF_NO_INT128_)
    __extension__ typedef unsigned __int128 npuprof_wide_;
    npuprof_wide_ n = (npuprof_wide_)a * b;
    const uint64_t high = (uint64_t)(n >> 64);
    if (high >= c) return UINT64_MAX;
    const uint64_t q = high ? npuprof_divide_(high, (uint64_t)n, c) : (uint64_t)n / c;
    const bool rest = (uint64_t)n != q * c;
    return up && rest && q != UINT64_MAX ? q + 1 : q;
#else /* !(__SIZEOF_INT128__ && !NPUPROF_NO_INT128_) */
    return npuprof_mul_div_by_bits_(a, b, c, up);
#endif /* !(__SIZEOF_INT128__ && !NPUPROF_NO_INT128_) */
}

/* The same, rounded down. */
NPUPROF_OWN_ static uint64_t npuprof_scale_(uint64_t a, uint64_t b, uint64_t c)
{
    return npuprof_mul_div_(a, b, c, false);
}
/* ==== src/numbers/hash.h ============================================================= >>numbers/hash ==== */

#include <string.h>

/* Hashes of hosted code: for look-ups (names in the table, maps of the writers) and for numbers that must not
   look alike (ids of traces and spans, marks of files).

   They do not resist an attacker who chooses the input: he can make look-ups slow and ids collide. An image
   holds hashes of its names, but no reader relies on them. Owns no data; may not know what is hashed. */

/* Two odd factors. Their set bits are spread evenly, so a product mixes all bits below. */
#define NPUPROF_HASH_FIRST_ 0x9E3779B97F4A7C15u
#define NPUPROF_HASH_SECOND_ 0xD6E8FEB86659FD93u

/* Mixes the bits of a number. Different numbers have different results.
   Why the shifts: a multiplication carries bits upwards only. */
NPUPROF_OWN_ static uint64_t npuprof_hash_mix_(uint64_t x)
{
    x ^= x >> 31;
    x *= NPUPROF_HASH_FIRST_;
    x ^= x >> 29;
    x *= NPUPROF_HASH_SECOND_;
    return x ^ x >> 32;
}

/* Hash of a text. Why 8 bytes at a time: a name that comes at run time may be hashed at each record. */
NPUPROF_OWN_ static uint32_t npuprof_hash_text_(const char *text, size_t length)
{
    uint64_t h = (uint64_t)length * NPUPROF_HASH_FIRST_, word;
    /* Why memcpy: a text need not be aligned. */
    for (; length >= 8; text += 8, length -= 8) {
        memcpy(&word, text, 8);
        h = (h ^ word) * NPUPROF_HASH_SECOND_;
        h ^= h >> 32;
    }
    word = 0;
    memcpy(&word, text, length);
    h = (h ^ word) * NPUPROF_HASH_SECOND_;
    return (uint32_t)(h >> 32);
}

/* FNV-1a of a text, never 0. For uses in which the hash replaces the text: with 64 bits, two of a few names
   practically never have the same one. */
NPUPROF_OWN_ static uint64_t npuprof_hash_key_(const char *text)
{
    uint64_t key = 0xCBF29CE484222325u;
    while (*text) key = (key ^ (unsigned char)*text++) * 0x100000001B3u;
    return key | (key == 0);
}
/* ==== src/numbers/heap.h ============================================================= >>numbers/heap ==== */
#include <string.h>

/* Heaps, and sorting. Owns no data; may not know what the elements are. An array of `count`
   elements of `bytes` bytes each is a heap if no element comes before one of its children, which for index i
   are 2 i + 1 and 2 i + 2. So the last element in the order is at index 0, and a heap becomes a sorted array
   in place. Nothing is allocated.

   before(a, b): does element a come before element b? For a heap with the first element on top, hand in the
   reverse.

   How to use it: for each type of element, write one function that calls one of these with the size and the
   order. All are inlined, so both are constants there, and the code is as good as if it were written for that
   type. */

enum { NPUPROF_HEAP_BYTES_MAX_ = 128 };    /* of an element */

typedef bool (*npuprof_heap_before_)(const void *a, const void *b);

NPUPROF_ALWAYS_INLINE_ void npuprof_heap_swap_(uint8_t *a, uint8_t *b, size_t bytes)
{
    uint64_t swap[NPUPROF_HEAP_BYTES_MAX_ / 8];
    memcpy(swap, a, bytes);
    memcpy(a, b, bytes);
    memcpy(b, swap, bytes);
}

/* The element at index `at` may come before its children: moves it down to its place. */
NPUPROF_ALWAYS_INLINE_ void npuprof_heap_sift_down_(void *heap, size_t bytes, size_t count, size_t at,
                                                    npuprof_heap_before_ before)
{
    uint8_t *const list = (uint8_t *)heap;
    for (;;) {
        size_t last = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++)
            if (before(list + last * bytes, list + child * bytes)) last = child;
        if (last == at) return;
        npuprof_heap_swap_(list + at * bytes, list + last * bytes, bytes);
        at = last;
    }
}

/* The element at index count - 1 was added: moves it up to its place. */
NPUPROF_ALWAYS_INLINE_ void npuprof_heap_sift_up_(void *heap, size_t bytes, size_t count,
                                                  npuprof_heap_before_ before)
{
    uint8_t *const list = (uint8_t *)heap;
    for (size_t at = count - 1, parent; at; at = parent) {
        parent = (at - 1) / 2;
        if (!before(list + parent * bytes, list + at * bytes)) return;
        npuprof_heap_swap_(list + at * bytes, list + parent * bytes, bytes);
    }
}

/* Sorts any array, heap or not. */
NPUPROF_ALWAYS_INLINE_ void npuprof_heap_sort_(void *array, size_t bytes, size_t count,
                                               npuprof_heap_before_ before)
{
    uint8_t *const list = (uint8_t *)array;
    size_t parents = count / 2, left = count;
    while (left > 1) {
        if (parents) { /* first: makes a heap, beginning at the last element that has children */
            parents--;
        } else { /* then: moves the top behind the rest of the heap */
            left--;
            npuprof_heap_swap_(list, list + left * bytes, bytes);
        }
        npuprof_heap_sift_down_(list, bytes, left, parents, before);
    }
}

/* ---- Sorting by merging, with as much memory beside the array: what is in order already costs one pass, and
   equal elements keep their order */

/* Merges the sorted runs [from, middle) and [middle, end) into `to`. */
NPUPROF_ALWAYS_INLINE_ void npuprof_sort_merge_(uint8_t *to, const uint8_t *from, const uint8_t *middle,
                                                const uint8_t *end, size_t bytes, npuprof_heap_before_ before)
{
    const uint8_t *a = from, *b = middle;
    if (b < end && before(b, b - bytes)) {
        while (a < middle && b < end) {
            const bool second = before(b, a);
            memcpy(to, second ? b : a, bytes);
            to += bytes;
            if (second) b += bytes;
            else a += bytes;
        }
    }
    memcpy(to, a, (size_t)(middle - a));
    memcpy(to + (middle - a), b, (size_t)(end - b));
}

/* Sorts `count` elements of `bytes` bytes. beside: memory for as many. Returns where the sorted ones are:
   in one of the two. */
NPUPROF_ALWAYS_INLINE_ void *npuprof_sort_(void *array, void *beside, size_t bytes, size_t count,
                                           npuprof_heap_before_ before)
{
    uint8_t *from = (uint8_t *)array, *to = (uint8_t *)beside;
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t at = 0; at < count; at += 2 * run) {
            const size_t middle = count - at > run ? at + run : count;
            const size_t end = count - middle > run ? middle + run : count;
            npuprof_sort_merge_(to + at * bytes, from + at * bytes, from + middle * bytes, from + end * bytes,
                                bytes, before);
        }
        uint8_t *const other = from;
        from = to;
        to = other;
    }
    return from;
}
/* ==== src/format/arena.h ============================================================= >>format/arena ==== */

/* The layouts ARENA, CODED and STREAM, structure by structure. A number before a field's comment is its
   offset.

   ARENA is the arena as it lies in memory:
       header | table | queue | overwritten | chunks        at the offsets that the header gives
   CODED is what goes into a sink or a file:
       header | blocks                                      see BLOCK below, and CODE

   The table holds names, the chunks hold records. Table, chunks and slots are made of units of 16 bytes.
   Threads, call sites and devices are numbered from 1. A chunk is named by its index + 1. 0 means none. */

#define NPUPROF_UNITS_(bytes) (((bytes) + 15) / 16)

/* ---- HEADER */

/* The host's clocks, read together: each was read at `ticks` +- `error_ticks`. */
typedef struct npuprof_host_anchor_ {
    uint64_t ticks, error_ticks;
    int64_t monotonic_ns, boot_ns, unix_ns;
} npuprof_host_anchor_;

enum { NPUPROF_LOST_CAPACITY_ = 16 };   /* of header.lost: more than there are causes today */

typedef struct npuprof_header_ {
    char magic[8];                 /*   0 npuprof_image_start_, down to header_bytes */
    uint32_t endian, format;       /*   8 */
    uint32_t layout, header_bytes; /*  16 header_bytes: a multiple of 64 */
    uint64_t arena_bytes;          /*  24 */
    uint64_t clock_hz;             /*  32 rate of the ticks; 0: to be computed from the host anchors */
    uint64_t clear_ticks;          /*  40 records that start before this were forgotten by npuprof_clear() */
    uint64_t seed_high, seed_low;  /*  48 of trace and span ids */
    uint64_t streamed;             /*  64 spans and events that the sink took */
    uint64_t lost[NPUPROF_LOST_CAPACITY_];   /* 72 by NPUPROF_LOST_*; SLOT and OVERWRITTEN add to it */
    npuprof_host_anchor_ first, last[2];   /* 200 of the start, and the two newest ones */
    uint32_t last_used;            /* 320 number of renewals; the newest anchor is last[last_used & 1] */
    uint32_t table_offset, table_bytes;   /* 324 of the table's first part */
    uint32_t table_unit;           /* 332 bytes of a table unit: 16 */
    uint32_t table_first;          /* 336 offset in the table of its first entry */
    uint32_t table_used, sites;    /* 340 where the table's entries end; number of call sites */
    uint32_t queue_offset, queue_slots;   /* 348 */
    uint32_t queue_head, queue_tail;      /* 356 positions, counting up for ever */
    uint32_t chunks_offset, chunk_bytes, chunk_count;   /* 364 */
    uint32_t chunk_next;           /* 376 chunks from this index on were never used */
    uint32_t overwritten_offset;   /* 380 0: there is no such region */
    uint32_t contexts;             /* 384 contexts of signal handlers so far */
    uint32_t slot_bytes, slot_first;      /* 388 slot_first: unit number of the newest slot */
    uint32_t threads, devices;     /* 396 how many there are */
    uint32_t when_full;            /* 404 NPUPROF_KEEP_OLDEST, NPUPROF_KEEP_NEWEST or NPUPROF_STREAM */
    uint32_t clock_source, clock_bits, pid;   /* 408 */
    uint32_t closed;               /* 420 1 in the header piece that ends a stream */
    char host[64], program[64];    /* 424 */
    char traceparent[56];          /* 552 of W3C Trace Context, or empty */
} npuprof_header_;                 /* 608 */

/* ---- TABLE  Entries of whole units, append-only. Offsets count from the table's start. The entries lie from
   table_first to table_used. What is in front of them is the recorder's own.

   The first part of the table holds the offsets below table_bytes. In an arena it lies at table_offset.
   Behind it the table goes on in parts of chunk_bytes each, the first one from table_bytes on. Each begins
   with 32 bytes that hold no entry: in an arena they are the head of the chunk that this part is. Such a
   chunk has the state TABLE_PIECE. Its `base` is the offset in the table of what is behind its head, and
   first_position is the length of that in bytes; 0 and 0 while the chunk is not in use. The parts may lie in
   any chunks, in any order. No entry lies in two parts: SKIP fills the rest of one.

   In an arena that was made before 1.0, table_first is how many buckets of 4 bytes lie in front of the first
   entry, a power of two. Such an arena is known by this: the type of what lies at table_first is 0, and the
   type of what lies at 4 * table_first is not.

   The id of an entry is its offset / 16. An entry begins with npuprof_entry_:
     STRING        a: length; the bytes and a NUL follow
     SITE          npuprof_site_entry_: a call site. a: kind | number << 8
     METADATA      npuprof_pair_entry_. b: key, value
     ENVIRONMENT   npuprof_pair_entry_. b: a variable that was refused, what is wrong with it
     PAUSE         npuprof_pause_entry_
     DEVICE        npuprof_device_entry_
     ANCHORS       npuprof_anchors_entry_
     LANE          npuprof_pair_entry_. a: number of the device; b: a PE of it, name of that one's track
     RECORDS       npuprof_records_entry_
     MODULE        npuprof_module_entry_
     SKIP          nothing for a reader
   A reader finds a call site by the number in its entry. It needs neither hash nor next. */

typedef struct npuprof_entry_ {
    uint32_t type_units;           /*  0 type << 24 | units. Type 0: the entry is not finished; skip it */
    uint32_t hash, next;           /*  4 next: id of the next entry in the same bucket */
    uint32_t a;                    /* 12 by type */
} npuprof_entry_;

enum {
    NPUPROF_ENTRY_STRING = 1, NPUPROF_ENTRY_SITE, NPUPROF_ENTRY_METADATA, NPUPROF_ENTRY_ENVIRONMENT,
    NPUPROF_ENTRY_PAUSE, NPUPROF_ENTRY_DEVICE, NPUPROF_ENTRY_ANCHORS, NPUPROF_ENTRY_LANE,
    NPUPROF_ENTRY_RECORDS, NPUPROF_ENTRY_MODULE, NPUPROF_ENTRY_SKIP
};

typedef struct npuprof_pair_entry_ { npuprof_entry_ head; uint32_t b[2]; } npuprof_pair_entry_;

typedef struct npuprof_site_entry_ {
    npuprof_entry_ head;
    uint32_t name, category;       /* 16 strings' ids; category 0: none */
    uint32_t file, line;           /* 24 file: a string's id; 0: unknown, as in older images.
                                      line | NPUPROF_SITE_RESULTS_ */
} npuprof_site_entry_;             /* 32 */

/* Of a call site: RESULT records follow in the chunks for each of its spans. */
#define NPUPROF_SITE_RESULTS_ 0x80000000u

/* In ticks. `to` is 0 while the pause lasts. */
typedef struct npuprof_pause_entry_ { npuprof_entry_ head; uint64_t from, to; } npuprof_pause_entry_;

typedef struct npuprof_device_entry_ {
    npuprof_entry_ head;           /*   0 a: number of the device */
    uint64_t nominal_hz;           /*  16 */
    uint64_t notes[NPUPROF_NOTE_ROOM_];   /* 24 counts by NPUPROF_NOTE_* */
    npuprof_anchor_ overflow;      /*  88 the newest clock anchor that the table had no space for */
    uint32_t overflow_epoch;       /* 112 */
    uint32_t overflow_used;        /* 116 0: none, or being written; else another number each time */
    uint32_t name, pe_count, max_rate_ppb;   /* 120 name: a string's id */
    uint32_t first_anchors, last_anchors;    /* 132 ids of entries; the anchors are a list, oldest first */
    uint32_t flags;                /* 140 NPUPROF_DEVICE_* */
} npuprof_device_entry_;           /* 144 */

enum { NPUPROF_ANCHORS_PER_ENTRY_ = 16 };

typedef struct npuprof_anchors_entry_ {
    npuprof_entry_ head;           /*   0 a: id of the device's next anchors entry */
    uint32_t epoch, count;         /*  16 count: how many of the anchors are there */
    npuprof_anchor_ anchor[NPUPROF_ANCHORS_PER_ENTRY_];   /* 24 */
} npuprof_anchors_entry_;          /* 408 */

/* Of a device with lost or odd records: how many, by NPUPROF_RECORDS_*. */
typedef struct npuprof_records_entry_ {
    npuprof_entry_ head;           /*   0 a: number of the device */
    uint64_t counts[NPUPROF_RECORDS_ROOM_];   /* 16 */
} npuprof_records_entry_;          /* 144 */

/* An object that the process had loaded: its program or a shared library. The names of NPUPROF_AUTO are
   addresses; an address from start to end - 1 is in this object, at address - bias of its ELF file. Entries
   overlap if one object was unloaded and another came to its place: the later entry is the later object. */
typedef struct npuprof_module_entry_ {
    npuprof_entry_ head;           /*  0 a: id of the module entry before it, or 0 */
    uint64_t bias, start, end;     /* 16 */
    uint32_t path, build_id;       /* 40 strings' ids. build_id: hex digits; "" if the object has none */
} npuprof_module_entry_;           /* 48 */

/* ---- QUEUE  u32[queue_slots]: the full chunks, oldest first, for whoever recycles them. A reader does not
   need it.

   ---- OVERWRITTEN  One pair for each chunk: how many spans and events were overwritten in it. next is 0,
   or the next value of count, + 1. While it is not 0 it holds instead of count, and the records that still
   lie in the chunk are gone, whatever the chunk's state says. The sum over all chunks adds to
   lost[NPUPROF_LOST_OVERWRITTEN]. */

typedef struct npuprof_overwritten_ { uint64_t count, next; } npuprof_overwritten_;

/* ---- CHUNK  A head, then units. A record is one unit, and more if it has more to say. w0 == 0 ends the
   chunk.

   The first unit of a record:
     w0 = start << 20 | number of the call site
          start: the low 44 bits of the start in ticks. The start is in the 2^44 ticks from chunk.base on
     w1 = of an event: its value
          of a span: its end in ticks, 63 bits. Bit 63: ended by unwinding, not by its own end.
                     All ones: still open
   Units that continue it have a control id where the first has the call site, and a payload where it has
   the start. Arguments come last.

   Spans that were open when their thread began this chunk stand at its start, two units each, moved_units
   in all:
     w0 = number of the call site,                  w1 = its end as above
     w0 = its first position << 20 | MOVED,         w1 = its start in ticks
   Where such a span was before, its first unit became:
     w0 = number of the call site << 20 | MOVED_AWAY,   w1 = its start in ticks
   Its arguments stay there.

   A RESULT is no record of its own: it holds arguments of a span that was open, in the same slot:
     w0 = time << 20 | RESULT,                      w1 = the span's position
   The call site of the span then has NPUPROF_SITE_RESULTS_.

   A record's position is first_position of its chunk + the number of its first unit there, from 0; of a span
   that was moved, where it was first. (thread, position) names a record for ever. */

typedef struct npuprof_unit_ { uint64_t w0, w1; } npuprof_unit_;

#define NPUPROF_ID_BITS_ 20                             /* of w0: call site or control id */
#define NPUPROF_ID_MASK_ (((uint32_t)1 << NPUPROF_ID_BITS_) - 1)
#define NPUPROF_START_BITS_ 44                          /* of w0: start or payload */
#define NPUPROF_END_OPEN_ UINT64_MAX
#define NPUPROF_END_CUT_ ((uint64_t)1 << 63)
/* Ticks as an end. Why not always masked: no hardware counter gets as far as bit 63. */
#ifdef NPUPROF_NOW
#define NPUPROF_END_STAMP_(now) ((now) & ~NPUPROF_END_CUT_)
#else
#define NPUPROF_END_STAMP_(now) (now)
#endif

/* Control ids, append only. Beside each its payload, fields from the high bits down, and its w1. A span or
   event with FINISHED to LINK_ROOT has more to say than w1 of its first unit holds, which is named in
   brackets.
     MOVED_AWAY, MOVED   of spans that were moved: see above
     ARG        bytes of a string:12 | key:28 | type:4       value, or 8 bytes of the string, whose rest
                                                             follows in units without an id
     FINISHED   name of the track (a string's id)            end in ns [start in ns] of npuprof_span()
     MEMORY     bytes changed:42 | 1 alloc, 2 free:2         allocated bytes [used bytes]
     DEVICE     flags:4 | epoch:16 | pe:16 | device:8        end in device ticks [start in device ticks].
                                                             With NPUPROF_STAMP_HOST both in host ticks, and
                                                             the epoch is the code of their error
     LINK       position of the span that submitted it       start of that span in ticks
     LINK_ROOT  position of the root of that span's trace    thread | warm-up << 32
     RESULT     of arguments that came while a span was open: see above */
enum {
    NPUPROF_CONTROL_ = 0xFFFF0,              /* call sites are numbered below this */
    NPUPROF_CONTROL_MOVED_AWAY_ = 0xFFFF0, NPUPROF_CONTROL_MOVED_, NPUPROF_CONTROL_ARG_,
    NPUPROF_CONTROL_FINISHED_, NPUPROF_CONTROL_MEMORY_, NPUPROF_CONTROL_DEVICE_,
    NPUPROF_CONTROL_LINK_, NPUPROF_CONTROL_LINK_ROOT_, NPUPROF_CONTROL_RESULT_
};

typedef struct npuprof_chunk_ {
    uint64_t base;                 /*  0 ticks */
    uint64_t first_position;       /*  8 units of the slot's earlier chunks */
    uint32_t owner;                /* 16 the slot: tid << 3 | context. 0: the chunk holds no records */
    uint32_t prev;                 /* 20 the slot's chunk before this one */
    uint32_t next;                 /* 24 the slot's next chunk, stored by readers; or the next free chunk */
    uint16_t state;                /* 28 NPUPROF_CHUNK_* */
    uint16_t moved_units;          /* 30 */
} npuprof_chunk_;                  /* 32 */

/* States of a chunk. SLOTS: it holds slots, not records. TABLE_PIECE: a part of the table. Then what else a
   block of a stream holds that is no chunk. */
enum {
    NPUPROF_CHUNK_FREE, NPUPROF_CHUNK_OPEN, NPUPROF_CHUNK_RETIRED, NPUPROF_CHUNK_SLOTS,
    NPUPROF_BLOCK_HEADER_PIECE, NPUPROF_BLOCK_TABLE_PIECE, NPUPROF_BLOCK_SLOTS_PIECE
};

/* ---- SLOT  What an image keeps of a thread, or of a thread's signal handlers: slot_bytes each, of which a
   reader uses this head. */
typedef struct npuprof_slot_head_ {
    uint32_t tid;                  /*  0 number of the thread; 0: the slot was never used */
    uint32_t context;              /*  4 0: the thread's own; 1 to 7: its signal handlers' */
    uint32_t next_slot;            /*  8 unit number in the arena */
    uint32_t name;                 /* 12 a string's id */
    uint32_t first_chunk;          /* 16 stored by readers, who follow `prev` from last_chunk on */
    uint32_t last_chunk;           /* 20 */
    uint32_t os_tid;               /* 24 the system's number of the thread that had the slot last */
    uint32_t owners;               /* 28 how many threads had it so far */
    uint64_t lost;                 /* 32 adds to lost[NPUPROF_LOST_FULL] */
} npuprof_slot_head_;              /* 40 */

/* ---- BLOCK  of layout CODED: npuprof_stored_, then its payload, then zeros up to a multiple of 8 bytes. The
   first block begins where the header ends, at header_bytes; each further one where the one before ends.

   sum covers the block with its zeros, as 64-bit integers in the image's byte order, with 0 in the place of
   sum itself. From 0 on, for each integer: sum = (sum ^ integer) * NPUPROF_BLOCK_FACTOR_, modulo 2^64; then
   the halves of sum change places. A block is good if its mark and its sum are right. Bytes that are no good
   block were damaged, or a part of them is missing: a reader counts that, and goes on at the next offset, of
   any alignment, where a good block begins. A process may be killed while it writes: what is behind the last
   good block is the beginning of one. A block of a state that a reader does not know it skips, and counts.

   State OPEN or RETIRED: units of a chunk with the same base, first_position, owner, state and moved_units;
   the payload is the CODE of its units from number first_unit on. A chunk of more units than one payload
   holds follows in further blocks, one behind the other; first_unit is 0 in the first. Where one of them is
   missing, the chunk ends there. All units behind those that were coded are zero. A later chunk with the same
   owner and first_position replaces the earlier one, because npuprof_flush() sends copies of chunks that come
   again: OPEN ones when they are full, RETIRED ones when they are handed on.

   Another state: a piece of a region, as it is. base is its offset in the region; first_position is its
   length, and the same as bytes; owner, moved_units and first_unit are 0.
     HEADER_PIECE   a newer header. The last block of a complete stream is one with closed = 1
     TABLE_PIECE    bytes of the table
     SLOTS_PIECE    heads of slots, back to back
   Later pieces replace earlier ones.

   Layout STREAM is from before there was a CODE: its blocks have chunk_bytes each, begin with
   npuprof_chunk_, in which `next` is NPUPROF_BLOCK_MARK_, and have no sum. A chunk's units follow as they
   are; a piece's bytes follow and, where it is shorter, zeros. */
typedef struct npuprof_stored_ {
    uint32_t mark;                 /*  0 NPUPROF_BLOCK_MARK_ */
    uint16_t bytes;                /*  4 of the payload, without the zeros behind it: NPUPROF_BLOCK_MAX_ at
                                         most */
    uint16_t first_unit;           /*  6 */
    uint64_t sum;                  /*  8 */
    uint64_t base;                 /* 16 */
    uint64_t first_position;       /* 24 */
    uint32_t owner;                /* 32 */
    uint16_t state;                /* 36 NPUPROF_CHUNK_*, NPUPROF_BLOCK_*_PIECE */
    uint16_t moved_units;          /* 38 */
} npuprof_stored_;                 /* 40 */

#define NPUPROF_BLOCK_MARK_ 0x4B4C424Eu
#define NPUPROF_BLOCK_FACTOR_ UINT64_C(0x9E3779B97F4A7C15)
enum { NPUPROF_BLOCK_MAX_ = 16384 };

/* ---- CODE  of a chunk's units, one behind the other. Each begins with a byte:
     bits 0-2   gap: how the unit's start (w0 >> 20) follows
     bits 3-5   length
     bits 6-7   site
   Integers in the code have the lowest byte first, in every image. Starts count modulo 2^44. What the code
   goes on from is, at the beginning of each block: start and end the low 44 bits of base, site 0, and 0 for
   all others.

   gap 1 to 7: a plain unit. Behind the byte follow, each with the number of bytes given:
     call site     `site` bytes; with 0 it is `site` of the unit before
     gap           gap 1, 2, 3: so many bytes; the unit's start is `start` + gap
                   gap 4, 5, 6: 1, 2, 3 bytes; the unit's start is `end` + gap
                   gap 7:       6 bytes; the unit's start is `start` + gap
     length        0 to 6 bytes: w1 is the whole start + length, the whole start being the one from base on
                   whose low 44 bits are the unit's start (see CHUNK). length 7: no bytes; w1 is all ones
   Then `start` is the unit's start, `site` its call site and, but for length 7, `end` the low 44 bits of w1.

   gap 0: bits 3-7 are the kind of another unit. But for RAW a second byte follows:
     bits 0-2   bytes of the first number, 0 to 6
     bits 3-6   bytes of the second number, 0 to 8
     bit 7      3 bytes with a call site follow, before the numbers; else it is `site`
   The second number stands for d, which is w1, or a difference of w1 modulo 2^64. d counts as a signed
   64-bit integer: the number is 2 d for d >= 0, and -2 d - 1 for d < 0.
     0 to 27       kind / 2 is the control id - NPUPROF_CONTROL_. Bit 7 is 0. First number: the payload
                   (w0 >> 20) XOR the payload of the unit before with that id. Second: w1; of an odd kind, the
                   difference of w1 to that of the unit before with that id
     28 EVENT      first number: the gap from `start` to the unit's start, which then is `start`. Second: w1
     29            as 28, with the difference of w1 to that of the unit of kind 28, 29 or 30 before
     30 MOVED      the start is 0, and `start` stays. First number: 0, without bytes. Second: w1
     31 RAW        w0 and w1 follow, 8 bytes each; nothing else changes
   After 28 to 30 `site` is the call site. Any kind may stand for any unit that it can express. */
enum {
    NPUPROF_CODE_CONTROLS_ = 14, NPUPROF_CODE_EVENT_ = 28, NPUPROF_CODE_MOVED_ = 30, NPUPROF_CODE_RAW_ = 31,
    NPUPROF_CODE_MOST_ = 19                /* bytes that a unit takes, at most */
};
#define NPUPROF_CODE_START_MASK_ (((uint64_t)1 << NPUPROF_START_BITS_) - 1)

NPUPROF_ASSERT_(chunk, sizeof(npuprof_chunk_) == 32 && offsetof(npuprof_chunk_, state) == 28);
NPUPROF_ASSERT_(block, sizeof(npuprof_stored_) == 40 && offsetof(npuprof_stored_, owner) == 32);
NPUPROF_ASSERT_(header_start, offsetof(npuprof_header_, header_bytes) ==
                           offsetof(npuprof_image_start_, header_bytes));
NPUPROF_ASSERT_(header, sizeof(npuprof_header_) == 608 && offsetof(npuprof_header_, first) == 200 &&
                            offsetof(npuprof_header_, host) == 424);
NPUPROF_ASSERT_(device, sizeof(npuprof_device_entry_) == 144 && sizeof(npuprof_anchors_entry_) == 408);
NPUPROF_ASSERT_(module, sizeof(npuprof_module_entry_) == 48);
NPUPROF_ASSERT_(site, sizeof(npuprof_site_entry_) == 32);
NPUPROF_ASSERT_(slot, sizeof(npuprof_slot_head_) == 40);
/* ==== src/arena/state.h =============================================================== >>arena/state ==== */

/* The words that the recording process keeps about its arena, a struct for the process and one for each
   slot, and where things lie in the arena. Each group of fields names its owner, a part of this room; some
   are handed down by another room. "set up" means: written before npuprof_record_setup_ is 2, or by a child
   of fork, which has one thread; plain, because everybody reads that first with acquire. Other words are
   atomic; the order of the accesses is described where their rules are, in chunks.h and exchange.h. What
   other rooms keep lies with them. */

/* An open span: its token, and these flags. A token is a place in the slot's stream in bytes: a multiple of
   16 and never 0. A scope holds the token without the flags, so a flag makes its end take the slow path. */
enum {
    NPUPROF_TOKEN_BY_HAND_ = 1,    /* PROF_BEGIN's */
    NPUPROF_TOKEN_MOVED_ = 2,      /* it was moved here: open span n is in units 2n - 2, 2n - 1 */
    NPUPROF_TOKEN_SLOW_ = 4,       /* the clock takes more than an instruction */
    NPUPROF_TOKEN_BOUNDARY_ = 8,   /* capture control looks at its end (record/boundary.h) */
    NPUPROF_TOKEN_FLAGS_ = 15
};

/* A call of NPUPROF_AUTO. */
typedef struct npuprof_slot_call_ {
    uint32_t key;                  /* of function and caller */
    npuprof_token_ token;          /* 0: not recorded */
} npuprof_slot_call_;

/* No span's token: that of the entry before the first call, and of the one behind the last. */
enum { NPUPROF_CALL_NONE_ = 1 };

/* The open calls of a thread, of NPUPROF_AUTO. Owner: record/auto.h. The entries lie behind the slot. */
typedef struct npuprof_slot_calls_ {
    npuprof_slot_call_ *next, *end;    /* next: of the next call; behind `end` while `beyond` is not 0 */
    uint32_t beyond;               /* open calls without an entry */
    uintptr_t deep;                /* where the first of them is on the C stack */
} npuprof_slot_calls_;

#define NPUPROF_SLOT_RETIRING_ UINT32_MAX
enum { NPUPROF_SLOT_CONTEXTS_ = 8 };   /* a thread's own, and those of its signal handlers */

#ifdef NPUPROF_AUTO
#define NPUPROF_CALLS_(...) __VA_ARGS__
#else
#define NPUPROF_CALLS_(...)
#endif

/* A thread's place to record, or that of a signal handler that interrupted a record. It lies in a chunk of
   slots, and stays when its thread ends: another thread takes it. */
typedef struct npuprof_slot_ {
    npuprof_slot_head_ head;       /* in the image: atomic; the owner writes, readers read */

    /* Ownership. `owned`: from 0 by CAS, to the system's number of a thread that takes the slot, or to
       NPUPROF_SLOT_RETIRING_ by one that retires what an ended thread left; it then owns all fields below.
       Back to 0 with release, by the owner; or by who finds that the thread is no more (slots.h). A nested
       slot is owned with its parent. `busy` is 1 while fields below are being changed; read by the owner's
       signal handlers, which then take `nested`. No other thread looks at it. */
    uint32_t owned, busy;

    /* The current chunk. Written and read by the owner. */
    npuprof_unit_ *cursor, *end;   /* of the next record, and where the slow path comes next, at the latest at
                                      the chunk's end (record/span.h). NULL: there is no chunk */
    uint64_t deadline;             /* the last start, in ticks, that the chunk can hold */
    uint64_t position;             /* while there is no chunk: where the slot's next one begins, 0 at first */
    uintptr_t token_zero;          /* a token + this is the address of its unit in the chunk */

    /* Open spans. Written and read by the owner. */
    npuprof_token_ *top;           /* the newest one; `open` if there is none */
    struct npuprof_slot_ *nested;  /* for a signal handler that interrupts this one; made once, kept */
    uint64_t by_hand_bits;         /* PROF_BEGIN: was it recorded? The newest in bit 0 */
    uint32_t by_hand_count;        /* PROF_BEGINs that are open */
    uint32_t named_by;             /* head.owners when the name was given */
    NPUPROF_CALLS_(npuprof_slot_calls_ calls;)      /* the thread's, also while its handlers run */
    npuprof_token_ open[1];        /* [0]: no span's. Then as many as a chunk has units */
} npuprof_slot_;

/* The one arena of this file, and what the process knows about it. */
typedef struct npuprof_arena_state_ {
    /* Where things lie. Owner: layout.h; fork.h moves them. Set up. */
    uint8_t *base;
    npuprof_header_ *header;
    uint8_t *table;
    uint32_t table_units;          /* in its first part */
    uint32_t *pages;               /* of each later part: index + 1 of its chunk; 0: none yet. By table.h */
    uint32_t page_count;
    unsigned page_shift;           /* 1 << page_shift units are in a chunk and its head */
    uint32_t *index;               /* ids of the entries that hold ids of call sites. By table.h */
    uint32_t index_count;
    uint32_t *buckets;
    uint32_t bucket_count;
    uint32_t *queue;
    uint8_t *chunks;
    uint32_t units;                /* in a chunk */
    uint32_t slot_calls, slot_calls_at;    /* of NPUPROF_AUTO: calls in each slot, and where they begin */
    bool zero_at_first;            /* all of the memory was zero when it was laid out */

    /* Free chunks. Owner: chunks.h, rule R5. */
    uint64_t chunk_free;

    /* Slots. Owner: thread.h and slots.h, atomic. */
    uint32_t slots_free;           /* that nobody owns. While it is 0, nobody looks for one */
    uint32_t slots_left;           /* how many were given back */
    uint32_t slots_swept;          /* how many of these when idle chunks were looked for (exchange.h) */
    uint32_t slots_taken;          /* how many were taken */
    uint32_t slots_checked;        /* how many of these when those of dead threads were looked for */
    uint32_t slots_checking;       /* 1: a thread looks for them. CAS from 0 */

    /* Handover of chunks. Owner: exchange.h; chunks.h for recycling and frozen. Rules R4 and R7 to R12. */
    uint32_t recycling;            /* threads that take retired chunks out of the queue just now */
    uint32_t frozen;               /* 1: a reader forbids that. Handed down by control/lock.h */
    uint32_t exchanging;           /* threads that are changing to a new chunk */
    uint32_t failed;               /* round << 16 | how many of them found none in this round */
    uint32_t hopeless;             /* round << 16 | 1: the last round in which all had failed */
    uintptr_t drainer;             /* the thread that hands chunks to the sink, 0: none. By write/stream.h */
    uintptr_t writer;              /* the thread that reads the arena, 0: none. By control/lock.h */

    /* Host anchors. Owner: anchors.h. */
    uint32_t keeping_time;         /* 1: a thread stores one. CAS from 0 */

    /* Handed down when the library is set up, and again by npuprof_init() and in the child of a fork. */
    int when_full;
    uint64_t first_position;       /* where the streams of this process's slots begin: behind a parent's */
} npuprof_arena_state_;

/* Why first: what set-up touches, here and in the rooms below, then shares pages. */
static uint64_t npuprof_arena_static_[(NPUPROF_ARENA_BYTES) / 8] NPUPROF_ALIGNED_;

static npuprof_arena_state_ npuprof_arena_;

/* Does the arena hand its chunks to a sink? */
#ifdef NPUPROF_RECORD_ONLY
#define NPUPROF_ARENA_STREAMS_() false
#else
#define NPUPROF_ARENA_STREAMS_() (npuprof_arena_.when_full == NPUPROF_STREAM)
#endif

/* Call sites compare their generation with these two, to learn whether what they know is still valid. The
   fast one equals the other while the gate is open and the clock is one instruction; else it is no call
   site's. Handed down by control/start.h. */
static uint32_t npuprof_arena_generation_;    /* of the arena and the categories, 31 bits; it counts up */
static uint32_t npuprof_arena_fast_ = UINT32_MAX;

#ifndef NPUPROF_STATIC
int npuprof_gate_ = NPUPROF_GATE_AT_START_;
#if NPUPROF_TWO_NAMES_
/* The name that plugins have for it which were compiled with 1.0. */
extern int NPUPROF_GATE_OF_1_0_ NPUPROF_ATTRIBUTE_((weak, alias(NPUPROF_TEXT_OF_(npuprof_gate_))));
#endif
#endif

/* Several implementations in one process, a program's and a plugin's, export the same names, and the
   dynamic linker gives all of them those of the first. That one leads. The others follow: they set nothing
   up, read no environment and write nothing; what their libraries record is in the leader's arena. Why a
   pointer to the counts: a library that was linked with -Bsymbolic-functions calls its own functions, with
   the leader's gate open. It cannot record, but counts what it loses where the leader counts. */
#ifdef NPUPROF_STATIC
static uint64_t *npuprof_lost_;
#else
extern uint64_t *npuprof_lost_;
uint64_t *npuprof_lost_;           /* the leader's header.lost, or NULL. Known to implementations alone */
#endif

#if NPUPROF_SHARED_
/* Names that the linker takes from nowhere else. */
extern uint64_t *npuprof_own_lost_ NPUPROF_ATTRIBUTE_((alias("npuprof_lost_"), visibility("hidden")));
extern int npuprof_own_gate_
    NPUPROF_ATTRIBUTE_((alias(NPUPROF_TEXT_OF_(npuprof_gate_)), visibility("hidden")));

/* Is what a name led to another copy's? Why asm: compilers take two names for two variables. */
NPUPROF_OWN_ static bool npuprof_arena_is_elsewhere_(const void *led_to, const void *own)
{
    __asm__("" : "+r"(led_to));
    return led_to != own;
}

/* Does a copy of another version lead? It has not our gate: the macros of this library find it closed. */
NPUPROF_OWN_ static bool npuprof_arena_has_other_version_(void)
{
    return (npuprof_arena_is_elsewhere_(&npuprof_lost_, &npuprof_own_lost_) ||
            npuprof_arena_is_elsewhere_(&NPUPROF_GATE_OF_1_0_, &npuprof_own_gate_)) &&
           !npuprof_arena_is_elsewhere_(&npuprof_gate_, &npuprof_own_gate_);
}

NPUPROF_OWN_ static bool npuprof_arena_has_leader_(void)
{
    return npuprof_arena_is_elsewhere_(&npuprof_lost_, &npuprof_own_lost_) ||
           npuprof_arena_has_other_version_();
}

#else /* !NPUPROF_SHARED_ */

NPUPROF_OWN_ static bool npuprof_arena_has_leader_(void) { return false; }
#endif /* !NPUPROF_SHARED_ */

NPUPROF_CALLS_(static npuprof_slot_call_ npuprof_slot_call_none_[1] = { { 0, NPUPROF_CALL_NONE_ } };)
/* The slot of a thread that has none. It is always busy, so everything takes the slow path, and has no open
   span. */
static npuprof_slot_ npuprof_slot_none_ = {
    { 0, 0, 0, 0, 0, 0, 0, 0, 0 }, 0, 1, NULL, NULL, 0, 0, 0, npuprof_slot_none_.open, NULL, 0, 0, 0,
    NPUPROF_CALLS_({ npuprof_slot_call_none_ + 1, npuprof_slot_call_none_ + 1, 0, 0 }) NPUPROF_CALLS_(,) { 1 }
};

/* ---- Where things lie */

NPUPROF_OWN_ static npuprof_chunk_ *npuprof_chunk_at_(uint32_t index)
{
    const size_t bytes = npuprof_arena_.header->chunk_bytes;
    return (npuprof_chunk_ *)(void *)(npuprof_arena_.chunks + index * bytes);
}

NPUPROF_OWN_ static uint32_t npuprof_chunk_index_(const npuprof_chunk_ *chunk)
{
    const size_t offset = (size_t)((const uint8_t *)chunk - npuprof_arena_.chunks);
    return (uint32_t)(offset / npuprof_arena_.header->chunk_bytes);
}

NPUPROF_OWN_ static npuprof_unit_ *npuprof_chunk_units_(npuprof_chunk_ *chunk)
{
    return (npuprof_unit_ *)(void *)(chunk + 1);
}

NPUPROF_OWN_ static npuprof_overwritten_ *npuprof_chunk_overwritten_at_(const npuprof_header_ *h, uint32_t index)
{
    return (npuprof_overwritten_ *)((uintptr_t)h + h->overwritten_offset) + index;
}

NPUPROF_OWN_ static npuprof_slot_ *npuprof_slot_at_(uint32_t unit)
{
    return (npuprof_slot_ *)(void *)(npuprof_arena_.base + (size_t)unit * 16);
}

enum { NPUPROF_TABLE_UNIT_ = 16 };     /* of this arena; another image says what its own is */

/* The first offset from `at` on where an entry of the table may begin: behind the head, if a later part
   begins there. */
NPUPROF_OWN_ static inline uint32_t npuprof_table_past_head_(const npuprof_header_ *h, uint32_t at)
{
    const bool is_head = at >= h->table_bytes && (at - h->table_bytes) % h->chunk_bytes == 0;
    return is_head ? at + (uint32_t)sizeof(npuprof_chunk_) : at;
}

/* An entry behind the first part of the table. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ void *npuprof_table_entry_behind_(uint32_t id)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    const uint32_t unit = id - s->table_units, in_page = unit & (((uint32_t)1 << s->page_shift) - 1);
    const uint32_t number = NPUPROF_LOAD_ACQUIRE_(&s->pages[unit >> s->page_shift]);
    return (uint8_t *)npuprof_chunk_at_(number - 1) + (size_t)in_page * NPUPROF_TABLE_UNIT_;
}

NPUPROF_OWN_ static inline void *npuprof_table_entry_at_(uint32_t id)
{
    if (NPUPROF_UNLIKELY_(id >= npuprof_arena_.table_units)) return npuprof_table_entry_behind_(id);
    return npuprof_arena_.table + (size_t)id * NPUPROF_TABLE_UNIT_;
}

enum { NPUPROF_TABLE_SITES_ = 16 };    /* call sites for each word of the index */

/* Holds ids of call sites' entries, of consecutive numbers. For readers it is of the type SKIP. */
typedef struct npuprof_table_index_entry_ {
    npuprof_entry_ head;
    uint32_t ids[NPUPROF_TABLE_SITES_];
} npuprof_table_index_entry_;

/* The id of a call site's entry. 0: there is no such call site. */
NPUPROF_OWN_ static inline uint32_t npuprof_table_site_id_(uint32_t number)
{
    const uint32_t at = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.index[number / NPUPROF_TABLE_SITES_]);
    if (!at) return 0;
    const npuprof_table_index_entry_ *e = (const npuprof_table_index_entry_ *)npuprof_table_entry_at_(at);
    return NPUPROF_LOAD_ACQUIRE_(&e->ids[number % NPUPROF_TABLE_SITES_]);
}

NPUPROF_OWN_ static inline const npuprof_site_entry_ *npuprof_table_site_at_(uint32_t number)
{
    return (const npuprof_site_entry_ *)npuprof_table_entry_at_(npuprof_table_site_id_(number));
}
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_ NPUPROF_COLD_
/* ==== src/os/vdso.h ======================================================================= >>os/vdso ==== */
#if defined(__linux__) && defined(__LP64__)
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

/* Linux: clock_gettime() as the kernel itself gives it to the process, in the page of code that it maps
   for that (vdso(7)). Why: who fakes the time of a program replaces the C library's function. This one stays,
   and readers compare the two. Why not a system call: a sandbox may end the process for it.

   This part knows the kernel's page and nothing else. */

typedef int (*npuprof_os_clock_read_)(clockid_t clock, struct timespec *to);

/* The dynamic section of the page, and what its addresses count from. NULL: there is none. */
NPUPROF_OWN_ static const Elf64_Dyn *npuprof_os_vdso_dynamic_(const uint8_t *page, uintptr_t *base)
{
    const Elf64_Ehdr *const head = (const Elf64_Ehdr *)(const void *)page;
    const Elf64_Phdr *const part = (const Elf64_Phdr *)(const void *)(page + head->e_phoff);
    const Elf64_Dyn *dynamic = NULL;
    bool loaded = false;
    for (unsigned i = 0; i < head->e_phnum; i++) {
        if (part[i].p_type == PT_LOAD && !loaded) {
            *base = (uintptr_t)page + (uintptr_t)part[i].p_offset - (uintptr_t)part[i].p_vaddr;
            loaded = true;
        }
        if (part[i].p_type == PT_DYNAMIC)
            dynamic = (const Elf64_Dyn *)(const void *)(page + part[i].p_offset);
    }
    return loaded ? dynamic : NULL;
}

/* NULL: the kernel gives none.
   Why the table of symbols ends where their names begin: the number of symbols stands nowhere, and the
   kernel lays the two side by side. */
NPUPROF_OWN_ static npuprof_os_clock_read_ npuprof_os_vdso_find_(void)
{
    const uint8_t *const page = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    const Elf64_Sym *symbol = NULL;
    const char *names = NULL;
    uintptr_t base = 0, found;
    npuprof_os_clock_read_ read;
    if (!page || memcmp(page, ELFMAG, SELFMAG) != 0) return NULL;
    const Elf64_Dyn *d = npuprof_os_vdso_dynamic_(page, &base);
    for (; d && d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_STRTAB) names = (const char *)(base + (uintptr_t)d->d_un.d_ptr);
        if (d->d_tag == DT_SYMTAB) symbol = (const Elf64_Sym *)(base + (uintptr_t)d->d_un.d_ptr);
    }
    if (!names || !symbol) return NULL;
    for (; (uintptr_t)(symbol + 1) <= (uintptr_t)names; symbol++) {
        const char *const name = names + symbol->st_name;
        if (symbol->st_shndx == SHN_UNDEF ||
            (strcmp(name, "__vdso_clock_gettime") != 0 && strcmp(name, "__kernel_clock_gettime") != 0))
            continue;
        found = base + (uintptr_t)symbol->st_value;
        memcpy(&read, &found, sizeof read);
        return read;
    }
    return NULL;
}
#endif /* __linux__ && __LP64__ */
/* ==== src/os/posix.h ===================================================================== >>os/posix ==== */

#ifndef _WIN32
#if defined(__STRICT_ANSI__) && !defined(_DEFAULT_SOURCE) && !defined(_GNU_SOURCE) && !defined(__APPLE__)
#error "npuprof.h: strict -std hides clock_gettime and mmap; include it first here or add -D_DEFAULT_SOURCE"
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#include <sys/syscall.h>
#endif

/* Linux, macOS and other POSIX systems: clocks, threads, signals, names, environment, and the moments at
   which the system calls the library. Files and memory are in posix_files.h. These two parts and windows.h
   are the only ones that call the system, and both systems offer the same functions to the rooms below. For a
   new system, write a part with these functions and include it in common.h.

   Data: npuprof_os_thread_key_, written by npuprof_os_hook_() when the library is set up.
   npuprof_os_has_thread_key_ says that it is valid: stored with release behind the key, and cleared by
   npuprof_os_unhook_() before the key is deleted. Any thread loads it with acquire before it uses the key.

   This part may not know what is recorded: what the system is to call is handed to npuprof_os_hook_(). */

/* A thread-local variable that takes no memory at a thread's first access, so that handlers and allocators
   may record. Why two models: glibc keeps room for variables of initial-exec in what dlopen() loads, and
   would allocate those of another model later. musl keeps none, and allocates all in dlopen(). */
#if defined(__GLIBC__)
#define NPUPROF_THREAD_LOCAL_ NPUPROF_INITIAL_EXEC_ NPUPROF_TLS_KEYWORD_
#else
#define NPUPROF_THREAD_LOCAL_ NPUPROF_TLS_KEYWORD_
#endif

/* ---- Clocks */

/* A clock of the system, in ns. */
NPUPROF_OWN_ static int64_t npuprof_os_ns_(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

NPUPROF_OWN_ static int64_t npuprof_os_monotonic_ns_(void) { return npuprof_os_ns_(CLOCK_MONOTONIC); }

#ifdef CLOCK_BOOTTIME
/* CLOCK_BOOTTIME, past what a program may have put in the place of clock_gettime(); vdso.h.
   Data: the function, found by the first call, if there is one; each thread that looks finds the same. */
NPUPROF_OWN_ static int64_t npuprof_os_boot_ns_(void)
{
#if defined(__linux__) && defined(__LP64__)
    static npuprof_os_clock_read_ found;
    static uint8_t has_looked;
    struct timespec t = { 0, 0 };
    if (!NPUPROF_LOAD_ACQUIRE_(&has_looked)) {
        NPUPROF_STORE_(&found, npuprof_os_vdso_find_());
        NPUPROF_STORE_RELEASE_(&has_looked, 1);
    }
    const npuprof_os_clock_read_ read = NPUPROF_LOAD_(&found);
    if (read && read(CLOCK_BOOTTIME, &t) == 0) return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
#endif
    return npuprof_os_ns_(CLOCK_BOOTTIME);
}
#endif

/* Fills boot_ns and unix_ns: what these clocks showed at a->monotonic_ns, which the caller has read.
   Why the monotonic clock is read before and after each: a read may be a system call of microseconds. The
   middle of the two is taken for the moment of the read. */
NPUPROF_OWN_ static void npuprof_os_clocks_(npuprof_host_anchor_ *a)
{
    int64_t before = npuprof_os_monotonic_ns_(), after;
    a->boot_ns = a->monotonic_ns;
#ifdef CLOCK_BOOTTIME
    a->boot_ns += npuprof_os_boot_ns_();
    after = npuprof_os_monotonic_ns_();
    a->boot_ns -= before + (after - before) / 2;
    before = after;
#endif
    a->unix_ns = a->monotonic_ns + npuprof_os_ns_(CLOCK_REALTIME);
    after = npuprof_os_monotonic_ns_();
    a->unix_ns -= before + (after - before) / 2;
}

NPUPROF_OWN_ static uint32_t npuprof_os_pid_(void) { return (uint32_t)getpid(); }

/* ---- Threads and signals */

/* Disables pthread_cancel() for the calling thread, until npuprof_os_release_cancel_() gets what this
   returned. Why: a thread cancelled in a sink or a wait would keep what it holds, and others would wait for
   ever. */
NPUPROF_OWN_ static int npuprof_os_hold_cancel_(void)
{
    int before = 0;
#ifdef PTHREAD_CANCEL_DISABLE
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
#endif
    return before;
}

NPUPROF_OWN_ static void npuprof_os_release_cancel_(int before)
{
#ifdef PTHREAD_CANCEL_DISABLE
    pthread_setcancelstate(before, &before);
#endif
    (void)before;
}

typedef sigset_t npuprof_os_signals_;

/* Blocks the signals of the calling thread, until npuprof_os_release_signals_() gets *before.
   Why: a handler that runs while the thread changes to another chunk could leave by a jump, and the change
   would stay half done. A handler that records would wait for the very thread that it interrupts.
   Why the signals of faults stay open: the system ends a process that has a fault while they are blocked. */
NPUPROF_OWN_ static void npuprof_os_hold_signals_(npuprof_os_signals_ *before)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS };
    npuprof_os_signals_ held;
    sigfillset(&held);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&held, faults[i]);
    (void)pthread_sigmask(SIG_BLOCK, &held, before);
}

NPUPROF_OWN_ static void npuprof_os_release_signals_(const npuprof_os_signals_ *before)
{
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Sleeps for so many us, below a second. errno stays. */
NPUPROF_OWN_ static void npuprof_os_nap_(uint32_t us)
{
    const struct timespec moment = { 0, (long)us * 1000 };
    const int error_before = errno, cancel_before = npuprof_os_hold_cancel_();
    nanosleep(&moment, NULL);
    npuprof_os_release_cancel_(cancel_before);
    errno = error_before;
}

/* Names the calling thread; never 0. */
NPUPROF_OWN_ static uintptr_t npuprof_os_me_(void) { return (uintptr_t)pthread_self(); }

/* Lets other threads run. */
NPUPROF_OWN_ static void npuprof_os_yield_(void) { npuprof_os_nap_(20); }

/* The system's number of the calling thread; 0: it has none. */
NPUPROF_OWN_ static uint64_t npuprof_os_tid_(void)
{
#ifdef __linux__
    return (uint64_t)syscall(SYS_gettid);
#else
    return 0;
#endif
}

/* Has the thread of this process with that number ended? False: no, or it cannot be known. errno stays. */
NPUPROF_OWN_ static bool npuprof_os_is_gone_(uint32_t tid)
{
#ifdef __linux__
    const int error_before = errno;
    const bool gone = syscall(SYS_tgkill, getpid(), (pid_t)tid, 0) != 0 && errno == ESRCH;
    errno = error_before;
    return gone;
#else
    return (void)tid, false;
#endif
}

/* ---- Names of the host and the program */

#if NPUPROF_SHARED_ && defined(__linux__)
/* dladdr() and its Dl_info, under names of our own. Why: the C library declares them only for _GNU_SOURCE.
   Why weak: an old C library has dladdr() in libdl, which the program may not be linked with. */
typedef struct npuprof_os_module_ {
    const char *file;
    void *base;
    const char *symbol;
    void *address;
} npuprof_os_module_;
extern int npuprof_os_dladdr_(const void *address,
                           npuprof_os_module_ *module) __asm__("dladdr") NPUPROF_ATTRIBUTE_((weak));

/* The file name of the shared library that holds this code. NULL: the program itself holds it, or it is not
   known. */
NPUPROF_OWN_ static const char *npuprof_os_library_(void)
{
    npuprof_os_module_ ours, main;
    int (*const volatile find)(const void *, npuprof_os_module_ *) = npuprof_os_dladdr_;
    const void *const program = (const void *)(uintptr_t)getauxval(AT_PHDR);
    if (!find || !program || !find((const void *)(uintptr_t)&npuprof_os_pid_, &ours) || !ours.file)
        return NULL;
    if (find(program, &main) && main.base == ours.base) return NULL;
    const char *slash = strrchr(ours.file, '/');
    return slash ? slash + 1 : ours.file;
}

#else /* !(NPUPROF_SHARED_ && __linux__) */
NPUPROF_OWN_ static const char *npuprof_os_library_(void) { return NULL; }

#endif /* !(NPUPROF_SHARED_ && __linux__) */

/* The host's name, and the program's without its directory. A shared library is appended: "app
   (plugin.so)". */
NPUPROF_OWN_ static void npuprof_os_names_(char *host, size_t host_bytes, char *program, size_t program_bytes)
{
    char path[512];
    const char *name = NULL, *library = npuprof_os_library_();
    if (gethostname(host, host_bytes) != 0) host[0] = 0;
    host[host_bytes - 1] = 0;
#ifdef __linux__
    /* Why not /proc/self/exe at once: reading it takes up to 28 us. It is read only for a program that was
       started through a descriptor: the name it was started by says nothing. */
    name = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    if (name && strncmp(name, "/dev/fd/", 8) == 0) name = NULL;
#endif
    if (!name) {
        const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
        path[n > 0 ? n : 0] = 0;
        name = path;
    }
    const char *slash = strrchr(name, '/');
    npuprof_text_copy_(program, program_bytes, slash ? slash + 1 : name);
    const size_t used = strlen(program);
    if (library) snprintf(program + used, program_bytes - used, " (%s)", library);
}

/* ---- Environment */

/* Does this program run with the rights of the user who started it? A set-user-id program does not. It must
   not trust the environment, so for npuprof it has none. */
NPUPROF_OWN_ static bool npuprof_os_is_own_(void)
{
#ifdef __linux__
    /* Why one question is enough: the kernel sets it in all cases, for capabilities and security modules
       as well. */
    return !getauxval(AT_SECURE);
#else
    static int own;                /* 1 yes, -1 no, 0 not asked yet. Cached: four system calls */
    if (own == 0) own = getuid() == geteuid() && getgid() == getegid() ? 1 : -1;
    return own > 0;
#endif
}

/* A variable's value; NULL: it is unset. */
NPUPROF_OWN_ static const char *npuprof_os_env_(const char *name) { return npuprof_os_is_own_() ? getenv(name) : NULL; }

#if defined(__APPLE__)
#include <crt_externs.h>
#define NPUPROF_ENVIRON_ (*_NSGetEnviron())
#elif defined(__GLIBC__)
#define NPUPROF_ENVIRON_ __environ
#else
extern char **environ;
#define NPUPROF_ENVIRON_ environ
#endif

/* All variables, each as NAME=VALUE, with a NULL at the end. NULL: there are none. */
NPUPROF_OWN_ static char **npuprof_os_environment_(void) { return npuprof_os_is_own_() ? NPUPROF_ENVIRON_ : NULL; }

/* ---- What the system calls */

static pthread_key_t npuprof_os_thread_key_;
static bool npuprof_os_has_thread_key_;

/* Called once, with functions of process/. thread_ends runs at the end of a thread that called
   npuprof_os_watch_thread_(), and gets what was given there; forked runs in the child of a fork; exits runs
   at normal exit. */
NPUPROF_OWN_ static void npuprof_os_hook_(void (*thread_ends)(void *), void (*forked)(void), void (*exits)(void))
{
    const bool has_key = pthread_key_create(&npuprof_os_thread_key_, thread_ends) == 0;
    NPUPROF_STORE_RELEASE_(&npuprof_os_has_thread_key_, has_key);
    pthread_atfork(NULL, NULL, forked);
    atexit(exits);
}

/* Called at exit and by dlclose(): thread_ends is not called any more.
   Why the flag first: at exit other threads may still begin to record and would use the deleted key. */
NPUPROF_OWN_ static void npuprof_os_unhook_(void)
{
    if (!NPUPROF_LOAD_ACQUIRE_(&npuprof_os_has_thread_key_)) return;
    NPUPROF_STORE_(&npuprof_os_has_thread_key_, false);
    pthread_key_delete(npuprof_os_thread_key_);
}

/* Has thread_ends called with `user` when the calling thread ends; NULL: not at all. The last call counts.
   False: it will not be called. */
NPUPROF_OWN_ static bool npuprof_os_watch_thread_(void *user)
{
    return NPUPROF_LOAD_ACQUIRE_(&npuprof_os_has_thread_key_) &&
           pthread_setspecific(npuprof_os_thread_key_, user) == 0;
}

#if NPUPROF_THREAD_KEY
/* What the calling thread gave npuprof_os_watch_thread_(), or NULL. */
NPUPROF_OWN_ static inline void *npuprof_os_own_(void)
{
    return NPUPROF_LOAD_ACQUIRE_(&npuprof_os_has_thread_key_) ? pthread_getspecific(npuprof_os_thread_key_)
        : NULL;
}
#endif
#endif /* !_WIN32 */
/* ==== src/os/posix_files.h ========================================================= >>os/posix_files ==== */

#ifndef _WIN32
/* Files and memory of POSIX systems: opening, locking, mapping, renaming, writing. A function that returns an
   int returns 0 or an errno value, if nothing else is said.

   Owns no data: descriptors and mappings belong to the caller. A file that npuprof made is recognized by its
   inode, not by its path: somebody may have renamed or replaced it in the meantime.

   This part may not know what is in the files. control/path.h chooses their names; write/ fills them. */

/* ---- Opening */

#ifdef __APPLE__
#define NPUPROF_OS_CHANGED_(st) ((st).st_mtimespec)
#define NPUPROF_OS_ALTERED_(st) ((st).st_ctimespec)
#else
#define NPUPROF_OS_CHANGED_(st) ((st).st_mtim)     /* its contents */
#define NPUPROF_OS_ALTERED_(st) ((st).st_ctim)     /* anything of it */
#endif

/* Are these two the same file? */
NPUPROF_OWN_ static bool npuprof_os_are_one_(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Does this path still lead to the file behind fd? */
NPUPROF_OWN_ static bool npuprof_os_is_at_(int fd, const char *path)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && lstat(path, &there) == 0 && npuprof_os_are_one_(&ours, &there);
}

/* Takes those of the descriptors 0, 1 and 2 that are closed, with what nobody can write to. Returns which, as
   bits. */
NPUPROF_OWN_ static unsigned npuprof_os_hold_places_(void)
{
    unsigned held = 0;
    for (int n = 0; n < 3; n++) {
        if (fcntl(n, F_GETFD) >= 0) continue;
        const int fd = open("/", O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && fd < 3) held |= 1u << fd;
        else if (fd >= 0) close(fd);       /* another thread was quicker */
    }
    return held;
}

/* Gives them back. Why the look: meanwhile another thread may have put a file of its own there with dup2(),
   which stays. It is closed only if it came between the look and close(). */
NPUPROF_OWN_ static void npuprof_os_release_places_(unsigned held)
{
    struct stat ours, now;
    for (int n = 0; n < 3; n++)
        if (held >> n & 1 && stat("/", &ours) == 0 && fstat(n, &now) == 0 && npuprof_os_are_one_(&ours, &now))
            close(n);
}

/* open(), but never as descriptor 0, 1 or 2. Why: a program may have closed one of those and still write to
   it; it would write into our file. Where open() gives such a number all the same, as another thread closed
   it meanwhile, this opens again. */
NPUPROF_OWN_ static int npuprof_os_open_above_2_(const char *path, int flags)
{
    for (int tries = 0; tries < 100; tries++) {
        const unsigned held = npuprof_os_hold_places_();
        const int fd = open(path, flags | O_CLOEXEC, 0666), error = errno;
        const bool is_low = fd >= 0 && fd < 3;
        npuprof_os_release_places_(held & ~(is_low ? 1u << fd : 0u));
        errno = error;
        if (!is_low) return fd;
        close(fd);
        if (flags & O_EXCL) unlink(path);
    }
    errno = EBUSY;
    return -1;
}

/* Creates a new file. Follows no link. EEXIST: there is something of that name. */
NPUPROF_OWN_ static int npuprof_os_create_(const char *path, int *fd)
{
    *fd = npuprof_os_open_above_2_(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW);
    return *fd < 0 ? errno : 0;
}

/* A write that fails with EPIPE or EFBIG also raises a signal, which would end the program. The signal is
   blocked before the write, and taken away behind it unless it was pending before. */
typedef struct npuprof_os_write_signals_ { sigset_t before, pending; } npuprof_os_write_signals_;

NPUPROF_OWN_ static void npuprof_os_hold_write_signals_(npuprof_os_write_signals_ *q)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    sigaddset(&ours, SIGXFSZ);
    sigpending(&q->pending);
    pthread_sigmask(SIG_BLOCK, &ours, &q->before);
}

/* error: what the write returned, 0 or an errno value. */
NPUPROF_OWN_ static void npuprof_os_release_write_signals_(const npuprof_os_write_signals_ *q, int error)
{
    const int signal = error == EPIPE ? SIGPIPE : error == EFBIG ? SIGXFSZ : 0;
    sigset_t ours;
    if (signal && !sigismember(&q->pending, signal) && sigpending(&ours) == 0 && sigismember(&ours, signal)) {
        int got;
        sigemptyset(&ours);
        sigaddset(&ours, signal);
        (void)sigwait(&ours, &got);
    }
    pthread_sigmask(SIG_SETMASK, &q->before, NULL);
}

/* Opens what exists, to write in place: a device, a pipe, a descriptor of this process. */
NPUPROF_OWN_ static int npuprof_os_open_(const char *path, int *fd)
{
    /* Why a descriptor is duplicated: open() would begin at the start of the file behind it. */
    const char *number = strncmp(path, "/dev/fd/", 8) == 0 ? path + 8 : strcmp(path, "/dev/stdout") == 0 ? "1"
        : strcmp(path, "/dev/stderr") == 0 ? "2" : NULL;
    if (number) {
        npuprof_os_write_signals_ quiet;
        npuprof_os_hold_write_signals_(&quiet);
        npuprof_os_release_write_signals_(&quiet, fflush(stdout) ? errno : 0);
        *fd = fcntl(atoi(number), F_DUPFD_CLOEXEC, 3);
    } else {
        /* Why O_NONBLOCK: the open of a fifo without a reader would wait for one for ever. One that is just
           being started gets 100 ms. */
        for (int tries = 0; tries < 100; tries++) {
            const struct timespec ms = { 0, 1000000 };
            *fd = npuprof_os_open_above_2_(path, O_WRONLY | O_NOCTTY | O_NONBLOCK);
            if (*fd >= 0 || errno != ENXIO) break;
            nanosleep(&ms, NULL);
            errno = ENXIO;
        }
        if (*fd >= 0) (void)fcntl(*fd, F_SETFL, fcntl(*fd, F_GETFL) & ~O_NONBLOCK);
    }
    return *fd < 0 ? errno : 0;
}

/* ---- Memory */

/* Zeroed memory from the system. NULL: there is none. */
NPUPROF_OWN_ static void *npuprof_os_memory_(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

NPUPROF_OWN_ static void npuprof_os_unmap_(void *memory, size_t bytes) { munmap(memory, bytes); }

/* ---- Locks: a file that grows or is not complete yet is locked by the process that writes it

   Locks of flock(): the system releases them however the process ends. */

/* Locks the file for this process. EWOULDBLOCK: another one has locked it. */
NPUPROF_OWN_ static int npuprof_os_lock_(int fd) { return flock(fd, LOCK_EX | LOCK_NB) ? errno : 0; }

NPUPROF_OWN_ static bool npuprof_os_is_locked_(int fd)
{
    return flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/* ---- Files that grow: a stream, a mapped arena */

/* Maps a file that was just created: shared, with all its blocks allocated, and locked.
   Why allocated: on a full disk, a write to the mapping would be a SIGBUS.
   Where the file system cannot allocate (EOPNOTSUPP), a byte is written to each page. */
NPUPROF_OWN_ static int npuprof_os_map_arena_(int fd, size_t bytes, void **memory)
{
    npuprof_os_write_signals_ quiet;
    npuprof_os_hold_write_signals_(&quiet);
#ifdef __APPLE__
    int error = EOPNOTSUPP;                /* there is no posix_fallocate() */
#else
    int error = posix_fallocate(fd, 0, (off_t)bytes);
#endif
    for (size_t at = 0; error == EOPNOTSUPP && at < bytes; at += 4096)
        if (pwrite(fd, "", 1, (off_t)(at + 4096 < bytes ? at + 4095 : bytes - 1)) != 1) error = errno;
    if (error == EOPNOTSUPP) error = 0;
    npuprof_os_release_write_signals_(&quiet, error);
    if (!error) error = npuprof_os_lock_(fd);
    if (!error) {
        *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (*memory == MAP_FAILED) error = errno;
    }
    return error;
}

/* Renames a regular file, if the new name is free. 0 also if there is no such file. EBUSY: a running process
   uses the file. EEXIST: the new name is taken. ELOOP, EINVAL: it is a link, or no regular file. */
NPUPROF_OWN_ static int npuprof_os_move_aside_(const char *path, const char *aside)
{
    struct stat st;
    if (lstat(path, &st) != 0) return errno == ENOENT ? 0 : errno;
    if (S_ISLNK(st.st_mode)) return ELOOP;
    if (!S_ISREG(st.st_mode)) return EINVAL;
    const int fd = npuprof_os_open_above_2_(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    const bool busy = fd >= 0 && npuprof_os_is_locked_(fd);
    if (fd >= 0) close(fd);
    if (busy) return EBUSY;
    /* Why link() and not rename(): it never replaces what is there. rename() is for file systems that
       have no links. */
    if (link(path, aside) == 0) return unlink(path) ? errno : 0;
    if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK) return errno;
    if (lstat(aside, &st) == 0) return EEXIST;
    return rename(path, aside) ? errno : 0;
}

/* Closes a file that was just created, and removes it, unless something else is at its path by now. */
NPUPROF_OWN_ static void npuprof_os_discard_(int fd, const char *path)
{
    if (npuprof_os_is_at_(fd, path)) unlink(path);
    close(fd);
}

/* Cuts the file off behind its first `good` bytes, where the next ones will go. False: it cannot be cut, as a
   pipe. */
NPUPROF_OWN_ static bool npuprof_os_take_back_(int fd, uint64_t good)
{
    return ftruncate(fd, (off_t)good) == 0 && lseek(fd, (off_t)good, SEEK_SET) == (off_t)good;
}

/* Is this path written in place, and not by a new file: a device, a fifo, an open descriptor? */
NPUPROF_OWN_ static bool npuprof_os_in_place_(const char *path)
{
    struct stat st;
    return strncmp(path, "/dev/std", 8) == 0 || strncmp(path, "/dev/fd/", 8) == 0
        || (stat(path, &st) == 0 && !S_ISREG(st.st_mode));
}

/* ---- Writing and reading */

/* The write function of a sink; fd: an int with the descriptor. Writes all bytes or returns an error. A
   closed pipe or a size limit is an error here, no signal to the program. */
NPUPROF_OWN_ static int npuprof_os_write_(void *fd, const void *bytes, size_t count)
{
    const uint8_t *p = (const uint8_t *)bytes;
    npuprof_os_write_signals_ quiet;
    int error = 0;
    npuprof_os_hold_write_signals_(&quiet);
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
    npuprof_os_release_write_signals_(&quiet, error);
    return error;
}

/* The start of this process, in ns since the Unix epoch, up to 10 ms too early. INT64_MAX: not known. */
NPUPROF_OWN_ static int64_t npuprof_os_process_start_ns_(void)
{
#if defined(__linux__) && defined(CLOCK_BOOTTIME)
    char text[1024];
    const int fd = npuprof_os_open_above_2_("/proc/self/stat", O_RDONLY);
    const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    /* The start is the 20th field behind the program's name. That is in parentheses and may hold anything, so
       the last ')' ends it. */
    const char *p = strrchr(text, ')');
    for (int field = 0; p && field < 20; field++) p = strchr(p + 1, ' ');
    const long hz = sysconf(_SC_CLK_TCK);
    if (!p || hz <= 0) return INT64_MAX;
    return npuprof_os_ns_(CLOCK_REALTIME) - npuprof_os_ns_(CLOCK_BOOTTIME)
        + (int64_t)(strtoll(p, NULL, 10) * (1000000000 / hz));
#else
    return INT64_MAX;
#endif
}

/* Reads the first bytes of a file into a buffer of `room` bytes. Returns how many. 0: it is no regular file,
   or was written last before since_unix_ns. */
NPUPROF_OWN_ static size_t npuprof_os_read_head_(const char *path, int64_t since_unix_ns, char *bytes, size_t room)
{
    struct stat st;
    const int fd = npuprof_os_open_above_2_(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return 0;
    ssize_t n = 0;
    /* Why 20 ms less: the clock of file times moves in steps of some milliseconds. */
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        const struct timespec changed = NPUPROF_OS_CHANGED_(st);
        const int64_t ns = (int64_t)changed.tv_sec * 1000000000 + changed.tv_nsec;
        if (ns >= since_unix_ns - 20000000) n = read(fd, bytes, room);
    }
    close(fd);
    return n > 0 ? (size_t)n : 0;
}

NPUPROF_OWN_ static int npuprof_os_close_(int fd) { return close(fd) ? errno : 0; }
NPUPROF_OWN_ static void npuprof_os_remove_(const char *path) { unlink(path); }

/* ---- Files that get their name when they are complete */

/* Removes a file that no process has locked. False: it was not removed. */
NPUPROF_OWN_ static bool npuprof_os_remove_stale_(const char *path)
{
    const int fd = npuprof_os_open_above_2_(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return false;
    const bool removed = npuprof_os_lock_(fd) == 0 && npuprof_os_is_at_(fd, path) && unlink(path) == 0;
    close(fd);
    return removed;
}

/* Gives a file the mode of the one that it replaces, if there is one. */
NPUPROF_OWN_ static void npuprof_os_take_mode_(int fd, const char *replaces)
{
    struct stat st;
    if (stat(replaces, &st) == 0 && S_ISREG(st.st_mode)) (void)fchmod(fd, st.st_mode & 0777);
}

/* Creates a temporary file at `path`, with the mode of `replaces`, the file that it will replace. It is
   locked until npuprof_os_publish_() or the end of the process. So another process can tell a file in use
   from one that a killed process left, which is removed here. EEXIST: a process uses the one that is
   there. */
NPUPROF_OWN_ static int npuprof_os_create_temporary_(const char *path, const char *replaces, int *fd)
{
    struct stat st, ours;
    int error = npuprof_os_create_(path, fd);
    if (error == EEXIST && npuprof_os_remove_stale_(path)) error = npuprof_os_create_(path, fd);
    if (error) return error;
    /* Before it was locked, another process may have removed it as one left by a killed process. What cannot
       be used is removed here: nobody else will, if no further trace goes there. */
    const bool busy = npuprof_os_lock_(*fd) == EWOULDBLOCK;
    error = fstat(*fd, &ours) || lstat(path, &st) ? errno : 0;
    const bool gone = error == ENOENT || (!error && (ours.st_dev != st.st_dev || ours.st_ino != st.st_ino));
    if (busy || gone || error) {
        if (!gone) unlink(path);
        close(*fd);
        return error && !gone ? error : EEXIST;
    }
    npuprof_os_take_mode_(*fd, replaces);
    return 0;
}

/* Closes a temporary file and renames it. Why a duplicate of the descriptor is closed first: close() tells of
   late write errors, and the lock must last until the file has its name. */
NPUPROF_OWN_ static int npuprof_os_publish_(int fd, const char *from, const char *to)
{
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int error = copy < 0 || close(copy) != 0 ? errno : 0;
    if (!error && rename(from, to) != 0) error = errno;
    close(fd);
    return error;
}

/* 0 also if the directory exists. */
NPUPROF_OWN_ static int npuprof_os_make_directory_(const char *path)
{
    return mkdir(path, 0777) && errno != EEXIST ? errno : 0;
}

/* ---- Text of times, and results */

/* Local time as 2000-12-31_23-59-59; "" if it cannot be had. */
NPUPROF_OWN_ static void npuprof_os_local_time_(int64_t unix_ns, char *text, size_t room)
{
    const time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm tm;
    text[0] = 0;
    if (localtime_r(&seconds, &tm) && !strftime(text, room, "%Y-%m-%d_%H-%M-%S", &tm)) text[0] = 0;
}

/* The result of a public function for 0 or an errno value. */
NPUPROF_OWN_ static npuprof_result npuprof_os_result_(int error)
{
    switch (error) {
    case 0: return NPUPROF_OK;
    case ENOENT: case ENOTDIR: case ENXIO: case ENODEV: return NPUPROF_ERR_NOT_FOUND;
    case EACCES: case EPERM: case EROFS: case ELOOP: return NPUPROF_ERR_ACCESS;
    case ENOSPC: case EDQUOT: case EFBIG: return NPUPROF_ERR_NO_SPACE;
    case ENOMEM: return NPUPROF_ERR_MEMORY;
    default: return NPUPROF_ERR_IO;
    }
}
#endif /* !_WIN32 */
/* ==== src/os/posix_control.h ===================================================== >>os/posix_control ==== */

#ifndef _WIN32
#include <sys/stat.h>

/* How somebody outside gives commands to the process, on POSIX systems: a signal, or a small file that is
   looked at now and then. windows.h has the same functions.

   Owns no data; what is known of the file belongs to the caller.

   This part may not know the commands. */

/* The number of the signal of that name, with or without SIG. -1: there is none that may be taken. Only those
   that are left to programs, and that no runtime takes. */
NPUPROF_OWN_ static int npuprof_os_signal_number_(const char *name, size_t length)
{
    static const struct { char name[8]; int number; } known[] = {
        { "HUP", SIGHUP }, { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 } };
    if (length > 3 && memcmp(name, "SIG", 3) == 0) {
        name += 3;
        length -= 3;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const bool same = strlen(known[i].name) == length && memcmp(name, known[i].name, length) == 0;
        if (same) return known[i].number;
    }
#ifdef SIGRTMIN
    if (length >= 7 && length <= 8 && memcmp(name, "RTMIN+", 6) == 0) {
        int more = 0;
        for (size_t i = 6; i < length; i++) {
            if (name[i] < '0' || name[i] > '9') return -1;
            more = more * 10 + (name[i] - '0');
        }
        return SIGRTMIN + more <= SIGRTMAX ? SIGRTMIN + more : -1;
    }
#endif
    return -1;
}

/* Installs a handler where the program has none. EBUSY: it has one, or ignores the signal.
   Why SA_RESTART and SA_ONSTACK: what the program does must not fail because of the signal, and runtimes with
   small stacks give signals one of their own. */
NPUPROF_OWN_ static int npuprof_os_take_signal_(int number, void (*handler)(int))
{
    struct sigaction before, ours;
    if (sigaction(number, NULL, &before) != 0) return errno;
    const bool has_one = (before.sa_flags & SA_SIGINFO) || before.sa_handler != SIG_DFL;
    if (has_one && !(before.sa_flags & SA_SIGINFO) && before.sa_handler == handler) return 0;
    if (has_one) return EBUSY;
    memset(&ours, 0, sizeof ours);
    ours.sa_handler = handler;
    ours.sa_flags = SA_RESTART | SA_ONSTACK;
    sigfillset(&ours.sa_mask);
    return sigaction(number, &ours, NULL) ? errno : 0;
}

/* Leaves a signal to the system again, as it was before, if this handler still has it. In a program, which
   ends now, it is ignored instead. Why: the default would end it in another way than it was about to. */
NPUPROF_OWN_ static void npuprof_os_leave_signal_(int number, void (*handler)(int))
{
    struct sigaction now;
    if (sigaction(number, NULL, &now) != 0 || (now.sa_flags & SA_SIGINFO)) return;
    if (now.sa_handler != handler) return;
    now.sa_handler = npuprof_os_library_() ? SIG_DFL : SIG_IGN;
    (void)sigaction(number, &now, NULL);
}

/* ---- A file that is looked at now and then */

NPUPROF_OWN_ static bool npuprof_os_has_commands_(void) { return true; }

/* What is known of it. Zero: nothing. */
typedef struct npuprof_os_seen_ {
    int64_t changed_ns;
    uint64_t inode, bytes;
    uint32_t hash;                 /* of its text */
    bool is_fresh;                 /* it was read less than 50 ms after its change */
} npuprof_os_seen_;

/* Is this file no other user's, and may no other user write it? 0 or an errno value. */
NPUPROF_OWN_ static int npuprof_os_check_commands_(const struct stat *st)
{
    if (S_ISLNK(st->st_mode)) return ELOOP;
    if (!S_ISREG(st->st_mode)) return EINVAL;
    if (st->st_uid != geteuid() && st->st_uid != 0) return EPERM;
    return st->st_mode & (S_IWGRP | S_IWOTH) ? EACCES : 0;
}

/* Reads the file if it has changed since the last time: up to `room` bytes, *bytes of them. EAGAIN: there is
   nothing new, or no file. Others: it must not be trusted, and is not looked at until it changes.
   Why a fresh one is read again: the clock of file times moves in steps, and a second change in the same step
   could not be seen. hash: of a text. */
NPUPROF_OWN_ static int npuprof_os_read_commands_(const char *path, npuprof_os_seen_ *seen, char *text, size_t room,
                                     size_t *bytes, uint32_t (*hash)(const char *, size_t))
{
    struct stat st;
    if (lstat(path, &st) != 0) return EAGAIN;
    npuprof_os_seen_ now;
    memset(&now, 0, sizeof now);
    now.changed_ns = (int64_t)NPUPROF_OS_ALTERED_(st).tv_sec * 1000000000 + NPUPROF_OS_ALTERED_(st).tv_nsec;
    now.inode = (uint64_t)st.st_ino;
    now.bytes = (uint64_t)st.st_size;
    const bool same =
        now.changed_ns == seen->changed_ns && now.inode == seen->inode && now.bytes == seen->bytes;
    if (same && !seen->is_fresh) return EAGAIN;
    int error = npuprof_os_check_commands_(&st);
    const int fd = error ? -1 : npuprof_os_open_above_2_(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (!error && fd < 0) error = errno;
    /* Why again: what is open may be another file than what was looked at. */
    if (!error) error = fstat(fd, &st) ? errno : npuprof_os_check_commands_(&st);
    const ssize_t n = error ? 0 : read(fd, text, room);
    if (n < 0) error = errno;
    if (fd >= 0) close(fd);
    *bytes = n > 0 ? (size_t)n : 0;
    now.hash = hash(text, *bytes);
    const int64_t age = npuprof_os_ns_(CLOCK_REALTIME) - now.changed_ns;
    now.is_fresh = age > -50000000 && age < 50000000;
    const bool equal = same && now.hash == seen->hash;
    *seen = now;
    return equal ? EAGAIN : error;
}
#endif /* !_WIN32 */
/* ==== src/os/windows.h ================================================================= >>os/windows ==== */

#ifdef _WIN32
#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <windows.h>

/* Windows: the functions of posix.h and posix_files.h, whose comments hold here, too. What differs is said at
   the function. There are no signals, no fork and no cancelling of threads; errors of files are errno values,
   as there.

   Data: npuprof_os_thread_key_ and npuprof_os_thread_ends_. npuprof_os_hook_() writes them when the library
   is set up, npuprof_os_unhook_() clears the key at exit; any thread reads them.

   This part may not know what is recorded. */

#define NPUPROF_THREAD_LOCAL_ NPUPROF_TLS_KEYWORD_

/* ---- Clocks */

NPUPROF_OWN_ static int64_t npuprof_os_monotonic_ns_(void)
{
    LARGE_INTEGER hz, now;
    QueryPerformanceFrequency(&hz);
    QueryPerformanceCounter(&now);
    return now.QuadPart / hz.QuadPart * 1000000000 + now.QuadPart % hz.QuadPart * 1000000000 / hz.QuadPart;
}

/* The system's time is in units of 100 ns since 1601. Windows has no boot clock that also counts the time
   asleep, so boot_ns is the monotonic time. */
NPUPROF_OWN_ static void npuprof_os_clocks_(npuprof_host_anchor_ *a)
{
    FILETIME time;
    const int64_t before = npuprof_os_monotonic_ns_();
    GetSystemTimeAsFileTime(&time);
    a->boot_ns = a->monotonic_ns;
    a->unix_ns = a->monotonic_ns + ((int64_t)((uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime)
                                    - 116444736000000000) * 100 - before;
}

/* ---- Threads; signals and cancelling do nothing */

typedef int npuprof_os_signals_;

NPUPROF_OWN_ static uint32_t npuprof_os_pid_(void) { return (uint32_t)GetCurrentProcessId(); }
NPUPROF_OWN_ static int npuprof_os_hold_cancel_(void) { return 0; }
NPUPROF_OWN_ static void npuprof_os_release_cancel_(int before) { (void)before; }
NPUPROF_OWN_ static void npuprof_os_hold_signals_(npuprof_os_signals_ *before) { *before = 0; }
NPUPROF_OWN_ static void npuprof_os_release_signals_(const npuprof_os_signals_ *before) { (void)before; }
/* Why not Sleep(0): a thread of lower priority would not run. */
NPUPROF_OWN_ static void npuprof_os_nap_(uint32_t us) { Sleep((us + 999) / 1000); }
NPUPROF_OWN_ static void npuprof_os_yield_(void) { npuprof_os_nap_(20); }
NPUPROF_OWN_ static uint64_t npuprof_os_tid_(void) { return GetCurrentThreadId(); }
NPUPROF_OWN_ static uintptr_t npuprof_os_me_(void) { return GetCurrentThreadId(); }
NPUPROF_OWN_ static bool npuprof_os_is_gone_(uint32_t tid) { return (void)tid, false; }

/* ---- Names and environment */

NPUPROF_OWN_ static void npuprof_os_names_(char *host, size_t host_bytes, char *program, size_t program_bytes)
{
    char path[512];
    DWORD bytes = (DWORD)host_bytes;
    if (!GetComputerNameA(host, &bytes)) host[0] = 0;
    path[GetModuleFileNameA(NULL, path, sizeof path - 1)] = 0;
    path[sizeof path - 1] = 0;
    const char *slash = strrchr(path, '\\');
    npuprof_text_copy_(program, program_bytes, slash ? slash + 1 : path);
}

NPUPROF_OWN_ static const char *npuprof_os_library_(void) { return NULL; }      /* it is not known */
NPUPROF_OWN_ static const char *npuprof_os_env_(const char *name) { return getenv(name); }
NPUPROF_OWN_ static char **npuprof_os_environment_(void) { return _environ; }

/* ---- What the system calls: at the end of a thread and at exit

   Why fiber storage: no other callback at a thread's end is open to a static library. */

static DWORD npuprof_os_thread_key_ = FLS_OUT_OF_INDEXES;
#if NPUPROF_THREAD_KEY
static DWORD npuprof_os_own_key_ = TLS_OUT_OF_INDEXES;     /* of a thread's one pointer. Not of a fiber */
#endif
static void (*npuprof_os_thread_ends_)(void *);

NPUPROF_OWN_ static void WINAPI npuprof_os_fiber_ends_(void *user)
{
    if (user) npuprof_os_thread_ends_(user);
}

NPUPROF_OWN_ static void npuprof_os_hook_(void (*thread_ends)(void *), void (*forked)(void), void (*exits)(void))
{
    (void)forked;
    npuprof_os_thread_ends_ = thread_ends;
    npuprof_os_thread_key_ = FlsAlloc(npuprof_os_fiber_ends_);
#if NPUPROF_THREAD_KEY
    npuprof_os_own_key_ = TlsAlloc();
#endif
    atexit(exits);
}

NPUPROF_OWN_ static void npuprof_os_unhook_(void)
{
    if (npuprof_os_thread_key_ != FLS_OUT_OF_INDEXES) FlsFree(npuprof_os_thread_key_);
    npuprof_os_thread_key_ = FLS_OUT_OF_INDEXES;
}

NPUPROF_OWN_ static bool npuprof_os_watch_thread_(void *user)
{
#if NPUPROF_THREAD_KEY
    if (npuprof_os_own_key_ == TLS_OUT_OF_INDEXES || !TlsSetValue(npuprof_os_own_key_, user)) return false;
    if ((uintptr_t)user & 1) user = NULL;
#endif
    return npuprof_os_thread_key_ != FLS_OUT_OF_INDEXES && FlsSetValue(npuprof_os_thread_key_, user);
}

#if NPUPROF_THREAD_KEY
/* Why the error is kept: TlsGetValue() sets the program's to 0. */
NPUPROF_OWN_ static inline void *npuprof_os_own_(void)
{
    if (npuprof_os_own_key_ == TLS_OUT_OF_INDEXES) return NULL;
    const DWORD error = GetLastError();
    void *const own = TlsGetValue(npuprof_os_own_key_);
    SetLastError(error);
    return own;
}
#endif

/* ---- Files */

/* GetLastError() as an errno value. */
NPUPROF_OWN_ static int npuprof_os_error_(void)
{
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND: case ERROR_PATH_NOT_FOUND: return ENOENT;
    case ERROR_ACCESS_DENIED: return EACCES;
    case ERROR_SHARING_VIOLATION: case ERROR_LOCK_VIOLATION: return EBUSY;
    case ERROR_ALREADY_EXISTS: case ERROR_FILE_EXISTS: return EEXIST;
    case ERROR_DISK_FULL: case ERROR_HANDLE_DISK_FULL: return ENOSPC;
    default: return EIO;
    }
}

/* fd, or a duplicate of it that is not 0, 1 or 2. Why: a program that closed one of those may still write to
   it. */
NPUPROF_OWN_ static int npuprof_os_apart_(int fd)
{
    if (fd < 0 || fd > 2) return fd;
    const int other = npuprof_os_apart_(_dup(fd)), error = errno;
    _close(fd);
    errno = error;
    return other;
}

NPUPROF_OWN_ static int npuprof_os_create_(const char *path, int *fd)
{
    *fd = npuprof_os_apart_(_open(path, _O_RDWR | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT,
                                  _S_IREAD | _S_IWRITE));
    return *fd < 0 ? errno : 0;
}

NPUPROF_OWN_ static int npuprof_os_open_(const char *path, int *fd)
{
    const int number = strcmp(path, "/dev/stdout") == 0 ? 1 : strcmp(path, "/dev/stderr") == 0 ? 2 : -1;
    if (number > 0) {
        fflush(stdout);
        *fd = npuprof_os_apart_(_dup(number));
        if (*fd >= 0) _setmode(*fd, _O_BINARY);
    } else {
        *fd = npuprof_os_apart_(_open(path, _O_WRONLY | _O_BINARY | _O_NOINHERIT));
    }
    return *fd < 0 ? errno : 0;
}

NPUPROF_OWN_ static void *npuprof_os_memory_(size_t bytes)
{
    return VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

NPUPROF_OWN_ static void npuprof_os_unmap_(void *memory, size_t bytes)
{
    MEMORY_BASIC_INFORMATION info;
    (void)bytes;
    if (VirtualQuery(memory, &info, sizeof info) && info.Type == MEM_MAPPED) UnmapViewOfFile(memory);
    else VirtualFree(memory, 0, MEM_RELEASE);
}

NPUPROF_OWN_ static HANDLE npuprof_os_handle_(int fd) { return (HANDLE)_get_osfhandle(fd); }

/* Why the lock is on a byte far behind the end of the file: other processes cannot read a locked part. */
NPUPROF_OWN_ static int npuprof_os_lock_handle_(HANDLE file)
{
    OVERLAPPED at;
    memset(&at, 0, sizeof at);
    at.OffsetHigh = 0x40000000;
    return LockFileEx(file, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at) ? 0 : EBUSY;
}

NPUPROF_OWN_ static int npuprof_os_lock_(int fd) { return npuprof_os_lock_handle_(npuprof_os_handle_(fd)); }

NPUPROF_OWN_ static int npuprof_os_map_arena_(int fd, size_t bytes, void **memory)
{
    HANDLE mapping = CreateFileMappingA(npuprof_os_handle_(fd), NULL, PAGE_READWRITE,
                                        (DWORD)((uint64_t)bytes >> 32), (DWORD)bytes, NULL);
    if (!mapping) return npuprof_os_error_();
    *memory = MapViewOfFile(mapping, FILE_MAP_ALL_ACCESS, 0, 0, bytes);
    const int error = *memory ? npuprof_os_lock_(fd) : npuprof_os_error_();
    CloseHandle(mapping);
    return error;
}

NPUPROF_OWN_ static int npuprof_os_move_aside_(const char *path, const char *aside)
{
    const DWORD attributes = GetFileAttributesA(path);
    if (attributes == INVALID_FILE_ATTRIBUTES) return npuprof_os_error_() == ENOENT ? 0 : npuprof_os_error_();
    if (attributes & FILE_ATTRIBUTE_REPARSE_POINT) return ELOOP;
    if (attributes & FILE_ATTRIBUTE_DIRECTORY) return EINVAL;
    HANDLE file = CreateFileA(path, GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
                              NULL, OPEN_EXISTING, 0, NULL);
    const bool busy = file != INVALID_HANDLE_VALUE && npuprof_os_lock_handle_(file) != 0;
    if (file != INVALID_HANDLE_VALUE) CloseHandle(file);
    if (busy) return EBUSY;
    return MoveFileExA(path, aside, 0) ? 0 : npuprof_os_error_();
}

NPUPROF_OWN_ static void npuprof_os_discard_(int fd, const char *path)
{
    _close(fd);
    DeleteFileA(path);
}

NPUPROF_OWN_ static bool npuprof_os_take_back_(int fd, uint64_t good)
{
    return _lseeki64(fd, (int64_t)good, SEEK_SET) == (int64_t)good && SetEndOfFile(npuprof_os_handle_(fd));
}

NPUPROF_OWN_ static bool npuprof_os_in_place_(const char *path)
{
    return strncmp(path, "/dev/std", 8) == 0 || _stricmp(path, "NUL") == 0 || _stricmp(path, "CON") == 0
        || strncmp(path, "\\\\.\\", 4) == 0;
}

NPUPROF_OWN_ static int npuprof_os_write_(void *fd, const void *bytes, size_t count)
{
    const char *p = (const char *)bytes;
    while (count) {
        const int n = _write(*(const int *)fd, p, count < 1 << 20 ? (unsigned)count : 1u << 20);
        if (n <= 0) return n < 0 ? errno : ENOSPC;
        p += n;
        count -= (size_t)n;
    }
    return 0;
}

NPUPROF_OWN_ static size_t npuprof_os_read_head_(const char *path, int64_t since_unix_ns, char *bytes, size_t room)
{
    struct _stat64 st;
    const int fd = npuprof_os_apart_(_open(path, _O_RDONLY | _O_BINARY | _O_NOINHERIT));
    if (fd < 0) return 0;
    int n = 0;
    if (_fstat64(fd, &st) == 0 && (st.st_mode & _S_IFREG) && (st.st_mtime + 1) * 1000000000 >= since_unix_ns)
        n = _read(fd, bytes, (unsigned)room);
    _close(fd);
    return n > 0 ? (size_t)n : 0;
}

NPUPROF_OWN_ static int64_t npuprof_os_process_start_ns_(void) { return INT64_MAX; }
NPUPROF_OWN_ static int npuprof_os_close_(int fd) { return _close(fd) ? errno : 0; }
NPUPROF_OWN_ static void npuprof_os_remove_(const char *path) { DeleteFileA(path); }

NPUPROF_OWN_ static void npuprof_os_take_mode_(int fd, const char *replaces) { (void)fd, (void)replaces; }

/* Why no lock: Windows removes no file that is open. */
NPUPROF_OWN_ static int npuprof_os_create_temporary_(const char *path, const char *replaces, int *fd)
{
    (void)replaces;
    const int error = npuprof_os_create_(path, fd);
    return error == EEXIST && DeleteFileA(path) ? npuprof_os_create_(path, fd) : error;
}

NPUPROF_OWN_ static int npuprof_os_publish_(int fd, const char *from, const char *to)
{
    if (_close(fd)) return errno;
    return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH) ? 0
        : npuprof_os_error_();
}

NPUPROF_OWN_ static int npuprof_os_make_directory_(const char *path)
{
    return _mkdir(path) && errno != EEXIST ? errno : 0;
}

NPUPROF_OWN_ static void npuprof_os_local_time_(int64_t unix_ns, char *text, size_t room)
{
    const time_t seconds = (time_t)(unix_ns / 1000000000);
    struct tm tm;
    text[0] = 0;
    if (localtime_s(&tm, &seconds) == 0 && !strftime(text, room, "%Y-%m-%d_%H-%M-%S", &tm)) text[0] = 0;
}

NPUPROF_OWN_ static npuprof_result npuprof_os_result_(int error)
{
    switch (error) {
    case 0: return NPUPROF_OK;
    case ENOENT: case ENOTDIR: case ENXIO: case ENODEV: return NPUPROF_ERR_NOT_FOUND;
    case EACCES: case EPERM: case EROFS: case ELOOP: case EBUSY: return NPUPROF_ERR_ACCESS;
    case ENOSPC: case EFBIG: return NPUPROF_ERR_NO_SPACE;
    case ENOMEM: return NPUPROF_ERR_MEMORY;
    default: return NPUPROF_ERR_IO;
    }
}

/* ---- Commands from outside: there are none (posix_control.h) */

typedef struct npuprof_os_seen_ { bool unused; } npuprof_os_seen_;

NPUPROF_OWN_ static bool npuprof_os_has_commands_(void) { return false; }

/* 0: this system has no signals for it. */
NPUPROF_OWN_ static int npuprof_os_signal_number_(const char *name, size_t length)
{
    (void)name;
    (void)length;
    return 0;
}

NPUPROF_OWN_ static int npuprof_os_take_signal_(int number, void (*handler)(int))
{
    (void)number;
    (void)handler;
    return ENOSYS;
}

NPUPROF_OWN_ static void npuprof_os_leave_signal_(int number, void (*handler)(int))
{
    (void)number;
    (void)handler;
}

NPUPROF_OWN_ static int npuprof_os_read_commands_(const char *path, npuprof_os_seen_ *seen, char *text, size_t room,
                                     size_t *bytes, uint32_t (*hash)(const char *, size_t))
{
    (void)path;
    (void)seen;
    (void)text;
    (void)room;
    (void)hash;
    *bytes = 0;
    return EAGAIN;
}
#endif /* _WIN32 */
/* ==== src/os/objects.h ================================================================= >>os/objects ==== */

/* The objects that the process has loaded: where they lie, and their build ids. Only for NPUPROF_AUTO.

   By dl_iterate_phdr() of ELF systems. Elsewhere (macOS, Windows) none is found: names stay addresses.
   Owns a buffer for paths, of who asks: one thread at a time, and no handler that interrupts it. Why not on
   the stack: that of a signal handler may be small. This part may not know who asks. */

#ifdef NPUPROF_AUTO

enum { NPUPROF_OS_BUILD_ID_LIMIT_ = 64 };      /* bytes; 20 are usual */

typedef struct npuprof_os_object_ {
    const char *path;              /* as the loader knows it */
    uint64_t bias, start, end;     /* as in npuprof_module_entry_ */
    char build_id[2 * NPUPROF_OS_BUILD_ID_LIMIT_ + 1];
} npuprof_os_object_;

#if defined(__ELF__) && !defined(_WIN32)
#include <link.h>

/* dl_iterate_phdr() and what it gives, under names of our own. Why: the C library declares them only for
   _GNU_SOURCE. */
typedef struct npuprof_os_phdrs_ {
    ElfW(Addr) bias;
    const char *path;
    const ElfW(Phdr) *headers;
    ElfW(Half) count;
    unsigned long long loads, unloads;
} npuprof_os_phdrs_;
extern int npuprof_os_phdrs_of_all_(int (*one)(npuprof_os_phdrs_ *, size_t, void *),
                                    void *user) __asm__("dl_iterate_phdr");

typedef struct npuprof_os_listing_ {
    uint64_t *changes;
    void (*found)(const npuprof_os_object_ *object);
    bool seen;                     /* one object was handed over */
} npuprof_os_listing_;

/* Reads the build id out of the notes of a segment that lies at `notes`. */
NPUPROF_OWN_ static void npuprof_os_read_notes_(npuprof_os_object_ *object, const uint8_t *notes, size_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    enum { HEAD = 12, BUILD_ID = 3 };
    while (bytes >= HEAD) {
        uint32_t head[3];                      /* length of the name, length of the content, type */
        memcpy(head, notes, HEAD);
        const uint64_t content = HEAD + (((uint64_t)head[0] + 3) & ~(uint64_t)3);
        const uint64_t next = content + (((uint64_t)head[1] + 3) & ~(uint64_t)3);
        if (content + head[1] > bytes) return;
        if (head[2] == BUILD_ID && head[0] == 4 && memcmp(notes + HEAD, "GNU", 4) == 0) {
            for (size_t i = 0; i < head[1] && i < NPUPROF_OS_BUILD_ID_LIMIT_; i++) {
                object->build_id[2 * i] = digits[notes[content + i] >> 4];
                object->build_id[2 * i + 1] = digits[notes[content + i] & 15];
            }
            return;
        }
        if (next > bytes) return;
        notes += next;
        bytes -= (size_t)next;
    }
}

/* The whole path of an object that was loaded by a path from the current directory. */
NPUPROF_OWN_ static const char *npuprof_os_path_from_here_(char *text, size_t bytes, const char *path)
{
    const size_t length = strlen(path), here = getcwd(text, bytes) ? strlen(text) : bytes;
    if (here + length + 2 > bytes) return path;
    text[here] = '/';
    memcpy(text + here + 1, path, length + 1);
    return text;
}

/* Hands one object on. Not 0: this was enough. */
NPUPROF_OWN_ static int npuprof_os_take_object_(npuprof_os_phdrs_ *o, size_t bytes, void *user)
{
    npuprof_os_listing_ *const listing = (npuprof_os_listing_ *)user;
    npuprof_os_object_ object;
    static char whole[2048];
    const bool counts = bytes >= offsetof(npuprof_os_phdrs_, unloads) + sizeof o->unloads;
    const uint64_t changes = counts ? o->loads + o->unloads : 0;
    const bool is_first = !listing->seen;
    listing->seen = true;
    if (is_first && changes && changes == *listing->changes) return 1;
    if (is_first) *listing->changes = changes;
    memset(&object, 0, sizeof object);
    object.bias = o->bias;
    object.start = UINT64_MAX;
    object.path = o->path ? o->path : "";
    if (!*object.path && is_first) {           /* the program comes first, without a name */
        const ssize_t n = readlink("/proc/self/exe", whole, sizeof whole - 1);
        whole[n > 0 ? n : 0] = 0;
        object.path = whole;
    } else if (*object.path != '/' && strchr(object.path, '/')) {
        object.path = npuprof_os_path_from_here_(whole, sizeof whole, object.path);
    }
    for (unsigned i = 0; i < o->count; i++) {
        const ElfW(Phdr) *const h = &o->headers[i];
        if (h->p_type != PT_LOAD) continue;
        if (o->bias + h->p_vaddr < object.start) object.start = o->bias + h->p_vaddr;
        if (o->bias + h->p_vaddr + h->p_memsz > object.end) object.end = o->bias + h->p_vaddr + h->p_memsz;
    }
    for (unsigned i = 0; i < o->count; i++) {
        const ElfW(Phdr) *const h = &o->headers[i];
        const uint64_t at = o->bias + h->p_vaddr;
        /* Why: notes that are not loaded have no address. */
        const bool loaded = at >= object.start && at < object.end && h->p_memsz <= object.end - at;
        if (h->p_type == PT_NOTE && loaded && !object.build_id[0])
            npuprof_os_read_notes_(&object, (const uint8_t *)(uintptr_t)at, (size_t)h->p_memsz);
    }
    /* Why a slash: what the kernel puts into each process (linux-vdso.so.1) is no file. */
    if (strchr(object.path, '/') && object.start < object.end) listing->found(&object);
    return 0;
}

/* Calls `found` for each loaded object, unless as many were loaded and unloaded as *changes says, which is
   updated; 0: not listed yet. Takes the loader's lock for short: not async-signal safe by the book.
   One thread at a time. */
NPUPROF_OWN_ static void npuprof_os_list_objects_(uint64_t *changes, void (*found)(const npuprof_os_object_ *object))
{
    npuprof_os_listing_ listing = { changes, found, false };
    (void)npuprof_os_phdrs_of_all_(npuprof_os_take_object_, &listing);
}

#else /* !__ELF__ */
NPUPROF_OWN_ static void npuprof_os_list_objects_(uint64_t *changes, void (*found)(const npuprof_os_object_ *object))
{
    (void)changes;
    (void)found;
}
#endif /* !__ELF__ */
#endif /* NPUPROF_AUTO */
/* ==== src/os/common.h =================================================================== >>os/common ==== */
#include <stdarg.h>

/* The system, as the rooms below include it: the functions of one of posix.h with its two siblings and
   windows.h, and what is the same on all systems: pages, refusing an argument, a message on
   stderr.

   Data: npuprof_os_said_to_ and npuprof_os_said_next_. A thread writes its own place, by NPUPROF_REFUSE_ and
   npuprof_os_explain_(), and reads it for npuprof_result_string().

   This part may not know what is recorded. */

/* Makes the system give every page of this memory now, so that no record has to wait for one. The contents
   stay. */
NPUPROF_OWN_ static void npuprof_os_populate_(void *memory, size_t bytes)
{
    enum { PAGE = 4096 };
#ifdef MADV_HUGEPAGE
    const uintptr_t from = (uintptr_t)memory & ~(uintptr_t)(PAGE - 1),
        to = ((uintptr_t)memory + bytes + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    (void)madvise((void *)from, to - from, MADV_HUGEPAGE);
    enum { POPULATE_WRITE = 23 };      /* MADV_POPULATE_WRITE, which older C libraries do not name */
    if (madvise((void *)from, to - from, POPULATE_WRITE) == 0) return;
#endif
    /* Why an atomic addition of 0: other threads may be writing to these words. */
    for (size_t at = 0; at < bytes; at += PAGE) NPUPROF_ADD_((uint32_t *)(void *)((uint8_t *)memory + at), 0);
}

/* Asks for huge pages in the part of this memory that holds whole ones; the memory is touched no earlier.
   Nothing happens where the system has no such request. */
NPUPROF_OWN_ static void npuprof_os_huge_pages_(void *memory, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t huge = 2 * 1024 * 1024;
    const uintptr_t from = ((uintptr_t)memory + huge - 1) & ~(huge - 1);
    const uintptr_t to = ((uintptr_t)memory + bytes) & ~(huge - 1);
    if (from < to) (void)madvise((void *)from, to - from, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)bytes;
#endif
}

/* Is the counter of rdtsc constant in all power states? 1 yes, 0 no, -1: the C library does not say.
   Why it is asked: the C library keeps what cpuid told it, and in a virtual machine each cpuid takes
   microseconds. */
#if defined(__linux__) && defined(__x86_64__)
/* Of glibc 2.33 and later: struct cpuid_feature, of which the first four words are eax, ebx, ecx and edx. */
extern const uint32_t *npuprof_os_cpuid_(unsigned leaf) __asm__("__x86_get_cpuid_feature_leaf")
    NPUPROF_ATTRIBUTE_((weak));

NPUPROF_ATTRIBUTE_((unused)) NPUPROF_OWN_ static int npuprof_os_tsc_is_constant_(void)
{
    enum { LEAF_80000007 = 4 };
    const uint32_t *(*const volatile ask)(unsigned) = npuprof_os_cpuid_;
    const uint32_t *const leaf = ask ? ask(LEAF_80000007) : NULL;
    return leaf ? (int)(leaf[3] >> 8 & 1) : -1;
}

#else
NPUPROF_ATTRIBUTE_((unused)) NPUPROF_OWN_ static int npuprof_os_tsc_is_constant_(void) { return -1; }

#endif

/* What was said last to a thread: the sentence about an argument of it that was refused, NULL: none was; and
   one that says more about a result than the result's own. Why not of each thread: thread-local memory is
   scarce in a shared library. A thread that says something takes the place that was taken longest ago. */
typedef struct npuprof_os_said_ {
    uintptr_t to;                  /* npuprof_os_me_() of the thread; 0: nobody */
    const char *refused;
    npuprof_result result;         /* that `explained` is about; NPUPROF_OK: none */
    char explained[320];
} npuprof_os_said_;

static npuprof_os_said_ npuprof_os_said_to_[8];
static uint32_t npuprof_os_said_next_;

/* NULL: nothing was said to the calling thread, or it was long ago. */
NPUPROF_OWN_ static npuprof_os_said_ *npuprof_os_find_said_(void)
{
    const uintptr_t me = npuprof_os_me_();
    for (size_t i = 0; i < sizeof npuprof_os_said_to_ / sizeof *npuprof_os_said_to_; i++)
        if (NPUPROF_LOAD_ACQUIRE_(&npuprof_os_said_to_[i].to) == me) return &npuprof_os_said_to_[i];
    return NULL;
}

/* The place for what is said to the calling thread. */
NPUPROF_OWN_ static npuprof_os_said_ *npuprof_os_say_to_me_(void)
{
    npuprof_os_said_ *said = npuprof_os_find_said_();
    if (said) return said;
    const uint32_t places = sizeof npuprof_os_said_to_ / sizeof *npuprof_os_said_to_;
    said = &npuprof_os_said_to_[NPUPROF_ADD_(&npuprof_os_said_next_, 1) % places];
    said->refused = NULL;
    said->result = NPUPROF_OK;
    NPUPROF_STORE_RELEASE_(&said->to, npuprof_os_me_());
    return said;
}

NPUPROF_OWN_ static npuprof_result npuprof_os_refuse_(const char *sentence)
{
    npuprof_os_say_to_me_()->refused = sentence;
    return NPUPROF_ERR_ARGUMENT;
}

/* Keeps the sentence. Returns `result`, for a public function to return. */
NPUPROF_ATTRIBUTE_((format(printf, 2, 3), unused))
NPUPROF_OWN_ NPUPROF_OWN_ static npuprof_result npuprof_os_explain_(npuprof_result result, const char *format, ...)
{
    npuprof_os_said_ *const said = npuprof_os_say_to_me_();
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(said->explained, sizeof said->explained, format, list);
    said->result = n > 0 ? result : NPUPROF_OK;
    va_end(list);
    return result;
}

/* The sentence that was said to the calling thread about this result. NULL: there is none. */
NPUPROF_OWN_ static const char *npuprof_os_sentence_(npuprof_result result)
{
    const npuprof_os_said_ *const said = npuprof_os_find_said_();
    if (said && result == NPUPROF_ERR_ARGUMENT && said->refused) return said->refused;
    return said && result != NPUPROF_OK && result == said->result ? said->explained : NULL;
}

/* NPUPROF_ERR_ARGUMENT, for a public function to return. sentence: a literal that names the function, the
   argument and what is wrong with it. */
#define NPUPROF_REFUSE_(sentence) npuprof_os_refuse_("NPUPROF_ERR_ARGUMENT: " sentence)
/* The same for NPUPROF_ERR_UNSUPPORTED: a knob leaves it out. */
#define NPUPROF_LEFT_OUT_(sentence) \
    npuprof_os_explain_(NPUPROF_ERR_UNSUPPORTED, "NPUPROF_ERR_UNSUPPORTED: %s", sentence)

/* Prints on stderr. Why not stdio: the program may have closed or buffered it. */
NPUPROF_ATTRIBUTE_((format(printf, 1, 2))) NPUPROF_OWN_ static void npuprof_os_say_(const char *format, ...)
{
    char text[2048];
    int fd = 2;
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (n <= 0) return;
    size_t length = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    length = npuprof_text_make_harmless_(text, length - (text[length - 1] == '\n'));
    text[length++] = '\n';
    (void)npuprof_os_write_(&fd, text, length);
}
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_
/* ==== src/clock/host.h ================================================================= >>clock/host ==== */

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
NPUPROF_OWN_ static inline uint64_t npuprof_clock_(void)
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
NPUPROF_OWN_ static inline uint64_t npuprof_clock_(void)
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
NPUPROF_OWN_ static inline uint64_t npuprof_clock_fast_(void)
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

/* Chooses the clock, once. rdtsc only where the CPU promises that its rate is constant in all power states
   (CPUID 80000007h, EDX bit 8). */
NPUPROF_OWN_ static void npuprof_clock_choose_(void)
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
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_ NPUPROF_COLD_
/* ==== src/arena/anchors.h =========================================================== >>arena/anchors ==== */

/* Host anchors: the ticks of the trace and the system's clocks, read together. A reader computes from the
   first and the last one how long a tick is. The last one is stored in two places by turns, so one of them
   is whole whenever the process dies. Words:
     header.last[2]       written by the thread that has set keeping_time, each word with release
     header.last_used     number of renewals, stored with release after that; it says which is the newest
     keeping_time         1 while a thread renews; CAS from 0, back to 0 with release
   This part does not know what is computed from the anchors. */

/* The best of four readings: the one that took the fewest ticks. */
NPUPROF_OWN_ static void npuprof_arena_read_anchor_(npuprof_host_anchor_ *best)
{
    uint64_t width = UINT64_MAX;
    for (int i = 0; i < 4; i++) {
        npuprof_host_anchor_ a;
        const uint64_t begin = npuprof_clock_();
        a.monotonic_ns = npuprof_os_monotonic_ns_();
        const uint64_t end = npuprof_clock_();
        npuprof_os_clocks_(&a);
        const uint64_t all = npuprof_clock_() - begin;
        a.ticks = begin + (end - begin) / 2;
        a.error_ticks = (end - begin + 1) / 2;
        if (npuprof_clock_source_ == NPUPROF_CLOCK_MONOTONIC) {
            a.ticks = (uint64_t)a.monotonic_ns;
            a.error_ticks = 0;
        }
        if (all < width) {
            width = all;
            *best = a;
        }
    }
}

/* The newest of the last ones. It may be renewed while the caller reads it. */
NPUPROF_OWN_ static const npuprof_host_anchor_ *npuprof_arena_last_anchor_(const npuprof_header_ *h)
{
    return &h->last[NPUPROF_LOAD_ACQUIRE_(&h->last_used) & 1];
}

/* A whole copy of it: if last_used is the same before and after, the anchor was not being written
   meanwhile. Why last_used counts: after two renewals it would else be the same again. Why each word with
   acquire: so they are read between the two looks at last_used. */
NPUPROF_OWN_ static npuprof_host_anchor_ npuprof_arena_copy_last_anchor_(const npuprof_header_ *h)
{
    npuprof_host_anchor_ a;
    uint32_t used = NPUPROF_LOAD_ACQUIRE_(&h->last_used);
    for (int tries = 0; tries < 100; tries++) {
        const npuprof_host_anchor_ *const from = &h->last[used & 1];
        const uint32_t before = used;
        a.ticks = NPUPROF_LOAD_ACQUIRE_(&from->ticks);
        a.error_ticks = NPUPROF_LOAD_ACQUIRE_(&from->error_ticks);
        a.monotonic_ns = NPUPROF_LOAD_ACQUIRE_(&from->monotonic_ns);
        a.boot_ns = NPUPROF_LOAD_ACQUIRE_(&from->boot_ns);
        a.unix_ns = NPUPROF_LOAD_ACQUIRE_(&from->unix_ns);
        used = NPUPROF_LOAD_ACQUIRE_(&h->last_used);
        if (used == before) break;
    }
    return a;
}

/* Reads and stores a new last one. Does nothing while another thread does so. */
NPUPROF_OWN_ static void npuprof_arena_renew_last_anchor_(void)
{
    npuprof_header_ *h = npuprof_arena_.header;
    uint32_t nobody = 0;
    if (!NPUPROF_CAS_(&npuprof_arena_.keeping_time, &nobody, 1)) return;
    const uint32_t next = NPUPROF_LOAD_(&h->last_used) + 1;
    npuprof_host_anchor_ *const to = &h->last[next & 1], a;
    npuprof_arena_read_anchor_(&a);
    NPUPROF_STORE_RELEASE_(&to->error_ticks, a.error_ticks);
    NPUPROF_STORE_RELEASE_(&to->monotonic_ns, a.monotonic_ns);
    NPUPROF_STORE_RELEASE_(&to->boot_ns, a.boot_ns);
    NPUPROF_STORE_RELEASE_(&to->unix_ns, a.unix_ns);
    NPUPROF_STORE_RELEASE_(&to->ticks, a.ticks);
    NPUPROF_STORE_RELEASE_(&h->last_used, next);
    NPUPROF_STORE_RELEASE_(&npuprof_arena_.keeping_time, 0);
}

/* The same once the trace has grown by an eighth since the last time: a process that is killed stores no
   last anchor. Why an eighth: the rate is then computed from nearly the whole trace, and few anchors are
   read. Why for a user's clock, too, whose rate is stated: the error of that rate is in the trace's
   metadata. */
NPUPROF_OWN_ static void npuprof_arena_renew_anchor_if_due_(uint64_t now)
{
    const npuprof_header_ *h = npuprof_arena_.header;
    const uint64_t last = NPUPROF_LOAD_(&npuprof_arena_last_anchor_(h)->ticks), since = now - last;
    const bool before_last = since >> 63;      /* the clocks of two CPUs may differ */
    if (!before_last && since > (last - h->first.ticks) / 8) npuprof_arena_renew_last_anchor_();
}
/* ==== src/arena/layout.h ============================================================= >>arena/layout ==== */

#include <string.h>

/* Lays an arena out in a piece of memory: how big the table's first part, the queue and the chunks are, and
   where they begin. Writes the whole header, and where things lie into the state. One thread is here, before
   others can record. It does not know whose memory it is. */

/* The bits of chunk_free and of the queue's entries that hold index + 1 of a chunk (R3, R5). */
#define NPUPROF_CHUNK_NUMBER_MASK_ ((uint32_t)0xFFFFF)

/* A mark of a process: the low half of seed_high. Trace ids show by it which process of a host they are
   of. */
NPUPROF_OWN_ static uint32_t npuprof_arena_mark_of_pid_(uint32_t pid) { return (uint32_t)npuprof_hash_mix_(pid); }

/* Begins a trace in an arena that is laid out: clocks, names, ids. */
NPUPROF_OWN_ static void npuprof_arena_begin_trace_(npuprof_header_ *h)
{
    h->pid = npuprof_os_pid_();
    npuprof_os_names_(h->host, sizeof h->host, h->program, sizeof h->program);
    npuprof_arena_read_anchor_(&h->first);
    h->last[0] = h->last[1] = h->first;
    h->last_used = 0;
    const uint64_t seed = npuprof_hash_mix_((uint64_t)h->first.unix_ns ^ (uint64_t)h->pid << 32);
    h->seed_high = (seed & ~(uint64_t)UINT32_MAX) | npuprof_arena_mark_of_pid_(h->pid);
    h->seed_low = npuprof_hash_mix_(h->seed_high ^ h->first.ticks);
}

/* Bigger chunks change less often; smaller ones leave less unused, and lose less at a time with
   keep-newest. */
NPUPROF_OWN_ static uint32_t npuprof_arena_chunk_bytes_(size_t bytes)
{
    if (bytes >> 16 >> 16) return 65536;               /* 4 GiB; a size_t may have 32 bits */
    if (bytes >= 1024 * 1024) return 8192;
    return bytes >= 128 * 1024 ? 4096 : bytes >= 16384 ? 1024 : bytes >= 4096 ? 512 : 256;
}

/* The table's first part: pages | index | buckets | entries. */
typedef struct npuprof_arena_table_plan_ {
    uint32_t pages, index, buckets;        /* words of 4 bytes */
    uint32_t first, bytes;                 /* offset of the first entry; bytes of the part */
} npuprof_arena_table_plan_;

/* With all of its pages the table takes a quarter of a small arena, an eighth of others, and no more than
   256 MiB. The first part has space for ten names at least. Why the smallest arenas have only a first part:
   they have few chunks, and threads need those. */
NPUPROF_OWN_ static npuprof_arena_table_plan_ npuprof_arena_plan_table_(uint64_t bytes)
{
    npuprof_arena_table_plan_ p;
    const uint32_t most = (uint32_t)npuprof_min_(bytes / (bytes < 65536 ? 4 : 8), 256 * 1024 * 1024);
    const uint32_t entries = bytes < 16384 ? most : (uint32_t)npuprof_max_(bytes / 256, 1024);
    const uint32_t page = npuprof_arena_chunk_bytes_((size_t)bytes) - (uint32_t)sizeof(npuprof_chunk_);
    const uint32_t most_index = (NPUPROF_ID_MASK_ + 1) / NPUPROF_TABLE_SITES_;
    p.pages = (most - entries + page - 1) / page;
    p.index = (uint32_t)npuprof_min_(most / 512 + 1, most_index);
    for (p.buckets = 8; p.buckets < most / 256;) p.buckets *= 2;
    p.first = ((p.pages + p.index + p.buckets) * 4 + 15) / 16 * 16;
    p.bytes = (p.first + entries + 63) / 64 * 64;
    return p;
}

/* Zeroes all but the chunks (not if the memory is fresh: zero already), and writes the sizes and offsets. */
NPUPROF_OWN_ static void npuprof_arena_plan_(npuprof_header_ *h, size_t bytes, bool fresh)
{
    const uint32_t max_chunks = NPUPROF_CHUNK_NUMBER_MASK_ - 1;
    const size_t header_bytes = (sizeof(npuprof_header_) + 63) / 64 * 64;
    const npuprof_arena_table_plan_ table = npuprof_arena_plan_table_(bytes);
    const uint32_t chunk_bytes = npuprof_arena_chunk_bytes_(bytes);
    const size_t for_each = chunk_bytes + sizeof(npuprof_overwritten_);      /* and 4 bytes of the queue */
    uint32_t queue_slots = 1;
    uint32_t count = (uint32_t)((bytes - header_bytes - table.bytes) / (for_each + 4));
    if (count > max_chunks) count = max_chunks;
    while (queue_slots < count) queue_slots *= 2;
    const size_t queue_offset = header_bytes + table.bytes;
    const size_t overwritten_offset = queue_offset + ((size_t)queue_slots * 4 + 15) / 16 * 16;
    while (count && overwritten_offset + count * for_each > bytes) count--;
    const size_t chunks_offset = overwritten_offset + count * sizeof(npuprof_overwritten_);
    if (!fresh) memset(h, 0, chunks_offset);
    h->arena_bytes = bytes;
    h->header_bytes = (uint32_t)header_bytes;
    h->table_offset = (uint32_t)header_bytes;
    h->table_bytes = table.bytes;
    h->table_unit = NPUPROF_TABLE_UNIT_;
    h->table_first = h->table_used = table.first;
    h->queue_offset = (uint32_t)queue_offset;
    h->queue_slots = queue_slots;
    h->overwritten_offset = (uint32_t)overwritten_offset;
    h->chunks_offset = (uint32_t)chunks_offset;
    h->chunk_bytes = chunk_bytes;
    h->chunk_count = count;
}

/* From now on the arena in that memory, which is laid out, is this file's. */
NPUPROF_OWN_ static void npuprof_arena_use_(void *memory)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    npuprof_header_ *const h = (npuprof_header_ *)memory;
    const npuprof_arena_table_plan_ table = npuprof_arena_plan_table_(h->arena_bytes);
    s->base = (uint8_t *)memory;
    s->header = h;
    NPUPROF_STORE_(&npuprof_lost_, &h->lost[0]);
    s->table = s->base + h->table_offset;
    s->table_units = table.bytes / NPUPROF_TABLE_UNIT_;
    s->pages = (uint32_t *)(void *)s->table;
    s->page_count = table.pages;
    for (s->page_shift = 0; h->chunk_bytes >> s->page_shift > NPUPROF_TABLE_UNIT_;) s->page_shift++;
    s->index = s->pages + table.pages;
    s->index_count = table.index;
    s->buckets = s->index + table.index;
    s->bucket_count = table.buckets;
    s->queue = (uint32_t *)(void *)(s->base + h->queue_offset);
    s->chunks = s->base + h->chunks_offset;
}

/* A slot: its words, its open spans, and with NPUPROF_AUTO its calls, as many as can be open spans. In the
   smallest arenas they are what space there is. */
NPUPROF_OWN_ static void npuprof_arena_plan_slot_(npuprof_header_ *h)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    const uint32_t room = h->chunk_bytes - (uint32_t)sizeof(npuprof_chunk_);
    s->units = room / (uint32_t)sizeof(npuprof_unit_);
    h->slot_bytes = (uint32_t)(sizeof(npuprof_slot_) + s->units * sizeof(npuprof_token_) + 7) / 8 * 8;
#ifdef NPUPROF_AUTO
    const uint32_t each = (uint32_t)sizeof(npuprof_slot_call_), rest = room - h->slot_bytes;
    s->slot_calls = (uint32_t)npuprof_min_(rest / each, npuprof_min_(s->units / 2 + 4, 256 + 2));
    s->slot_calls_at = h->slot_bytes;
    h->slot_bytes += s->slot_calls * each;
#endif
    h->slot_bytes = (h->slot_bytes + 15) / 16 * 16;
}

/* Lays an empty arena out. Chunks need not be zero: each is zeroed when it is taken. fresh: all of the
   memory is zero, and the pages of the table are left alone. False: the memory is too small, or not aligned
   to 8. */
NPUPROF_OWN_ static bool npuprof_arena_lay_out_(void *memory, size_t bytes, int when_full, bool fresh)
{
    npuprof_arena_state_ *s = &npuprof_arena_;
    npuprof_header_ *h = (npuprof_header_ *)memory;
    const uint64_t max_bytes = (uint64_t)16 * UINT32_MAX;      /* slots have unit numbers of 32 bits */
    if ((uint64_t)bytes > max_bytes) bytes = (size_t)max_bytes;
    if (bytes < 2048 || ((uintptr_t)memory & 7)) return false;
    npuprof_arena_plan_(h, bytes, fresh);
    h->endian = 0x01020304u;
    h->format = 1;
    h->layout = NPUPROF_LAYOUT_ARENA;
    h->when_full = (uint32_t)when_full;
    s->when_full = when_full;
    npuprof_arena_plan_slot_(h);
    h->clock_source = (uint32_t)npuprof_clock_source_;
    h->clock_bits = NPUPROF_CLOCK_BITS_;
#ifdef NPUPROF_NOW
    h->clock_hz = npuprof_user_hz_();
#endif
    npuprof_arena_use_(memory);
    s->zero_at_first = fresh;
    s->chunk_free = 0;
    s->slots_free = s->slots_left = s->slots_swept = s->slots_taken = s->slots_checked = 0;
    npuprof_arena_begin_trace_(h);
    memcpy(h->magic, "NPUPROF\n", 8);
    return h->chunk_count > 0;
}
/* ==== src/arena/chunks.h ============================================================= >>arena/chunks ==== */

/* Chunks: where each one is, and how it gets from one place to the next. Nothing here waits; exchange.h does.

     place         state     who may touch its contents       moved by                          to
     never used    0         nobody                           npuprof_chunk_take_unused_()      taken
     free stack    FREE      nobody; `next` is the stack's    npuprof_chunk_take_unused_()      taken
     taken         FREE      the thread that took it          npuprof_slot_change_chunk_()      open
                                                              npuprof_slot_make_chunk_()        slots
     open          OPEN      its slot's owner writes,         npuprof_chunk_retire_()           retired
                             readers read                     npuprof_clear() by the owner      free stack
     retired       RETIRED   nobody writes, readers read      by npuprof_chunk_unqueue_(), with
                                                                keep-newest, take_oldest()      taken
                                                                stream, the drainer             in the sink
                                                                any, npuprof_clear()            free stack
     in the sink   RETIRED   the drainer reads                npuprof_chunk_free_()             free stack
     slots         SLOTS     the owner of each slot           stays

   R1  A chunk is in one place. Whoever moves it out of a place that threads share, by a CAS, has it alone.

   R2  A retired chunk has no writers: spans that are open in a chunk are moved to the next one before it is
       retired. So whoever unqueues it may read it with plain loads, send it, and write it anew.

   R3  The queue has a place for every chunk, so it is never full. A thread takes a place by adding to
       queue_tail, then fills it. The first place that is not filled ends the queue for everybody. An entry
       is index + 1 of the chunk, and above it the lap: how many times the queue has been gone round. An
       entry of an earlier lap counts as not filled, so nobody has to clear it.

   R4  Retired chunks are unqueued only between begin_recycling and end_recycling, or by the one reader
       itself. A thread counts itself in `recycling`, then looks at `frozen`; a reader sets `frozen`, then
       waits until `recycling` is 0. Both words are sequentially consistent, so at least one of the two sees
       the other: no chunk is taken while a reader looks at it.

   R5  chunk_free is index + 1 of the first free chunk, and above it how many times a chunk was given back.
       So a thread that stops between reading the first chunk's `next` and its CAS notices that the stack
       was changed. Taking need not count: only giving back can put the same chunk on top again. The count
       has 44 bits and does not come round.

   R6  The records of a chunk stay until they are sent or counted as overwritten; it is zeroed when it is
       taken again. So a process that is killed leaves each record either there or counted. */

NPUPROF_OWN_ static uint32_t npuprof_chunk_queue_lap_(const npuprof_header_ *h, uint32_t at)
{
    return at / h->queue_slots * (NPUPROF_CHUNK_NUMBER_MASK_ + 1);
}

/* open -> retired. R2: the chunk has no open spans. R3 */
NPUPROF_OWN_ static void npuprof_chunk_retire_(npuprof_chunk_ *chunk)
{
    npuprof_header_ *h = npuprof_arena_.header;
    NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)NPUPROF_CHUNK_RETIRED);
    const uint32_t at = NPUPROF_ADD_(&h->queue_tail, 1);
    const uint32_t entry = npuprof_chunk_queue_lap_(h, at) | (npuprof_chunk_index_(chunk) + 1);
    NPUPROF_STORE_RELEASE_(&npuprof_arena_.queue[at & (h->queue_slots - 1)], entry);
}

NPUPROF_OWN_ static bool npuprof_chunk_are_queued_(void)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    return NPUPROF_LOAD_ACQUIRE_(&h->queue_head) != NPUPROF_LOAD_ACQUIRE_(&h->queue_tail);
}

/* The oldest retired chunk, now the caller's (R1). NULL: there is none. R3, R4 */
NPUPROF_OWN_ static npuprof_chunk_ *npuprof_chunk_unqueue_(void)
{
    npuprof_header_ *h = npuprof_arena_.header;
    const uint32_t mask = NPUPROF_CHUNK_NUMBER_MASK_;
    uint32_t head = NPUPROF_LOAD_ACQUIRE_(&h->queue_head);
    for (;;) {
        const uint32_t entry = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.queue[head & (h->queue_slots - 1)]);
        const uint32_t before = head;
        if (!(entry & mask) || (entry & ~mask) != npuprof_chunk_queue_lap_(h, head)) {
            head = NPUPROF_LOAD_ACQUIRE_(&h->queue_head);
            if (head == before) return NULL;
        } else if (NPUPROF_CAS_(&h->queue_head, &head, head + 1)) {
            return npuprof_chunk_at_((entry & mask) - 1);
        }
    }
}

/* False: a reader looks at the retired chunks. R4. Why a look first: threads that are refused again and
   again would keep `recycling` above 0, and the reader waiting. */
NPUPROF_OWN_ static bool npuprof_chunk_begin_recycling_(void)
{
    if (NPUPROF_LOAD_SEQ_(&npuprof_arena_.frozen)) return false;
    NPUPROF_ADD_SEQ_(&npuprof_arena_.recycling, 1);
    if (!NPUPROF_LOAD_SEQ_(&npuprof_arena_.frozen)) return true;
    NPUPROF_ADD_SEQ_(&npuprof_arena_.recycling, UINT32_MAX);
    return false;
}

NPUPROF_OWN_ static void npuprof_chunk_end_recycling_(void) { NPUPROF_ADD_SEQ_(&npuprof_arena_.recycling, UINT32_MAX); }

/* The caller's chunk -> free stack. R5 */
NPUPROF_OWN_ static void npuprof_chunk_free_(npuprof_chunk_ *chunk)
{
    uint64_t *const free_head = &npuprof_arena_.chunk_free;
    const uint64_t once = (uint64_t)NPUPROF_CHUNK_NUMBER_MASK_ + 1, number = npuprof_chunk_index_(chunk) + 1;
    uint64_t head = NPUPROF_LOAD_ACQUIRE_(free_head);
    NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)NPUPROF_CHUNK_FREE);
    do NPUPROF_STORE_(&chunk->next, (uint32_t)head & NPUPROF_CHUNK_NUMBER_MASK_);
    while (!NPUPROF_CAS_(free_head, &head, (head & ~(once - 1)) + once + number));
}

/* never used, or free stack -> taken. NULL: there is none. R5 */
NPUPROF_OWN_ static npuprof_chunk_ *npuprof_chunk_take_unused_(void)
{
    npuprof_header_ *h = npuprof_arena_.header;
    uint32_t next = NPUPROF_LOAD_(&h->chunk_next);
    while (next < h->chunk_count)
        if (NPUPROF_CAS_(&h->chunk_next, &next, next + 1)) return npuprof_chunk_at_(next);
    const uint64_t mask = NPUPROF_CHUNK_NUMBER_MASK_;
    for (uint64_t head = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.chunk_free); head & mask;) {
        npuprof_chunk_ *chunk = npuprof_chunk_at_((uint32_t)(head & mask) - 1);
        const uint64_t rest = (head & ~mask) | (NPUPROF_LOAD_(&chunk->next) & mask);
        if (NPUPROF_CAS_(&npuprof_arena_.chunk_free, &head, rest)) return chunk;
    }
    return NULL;
}

/* ---- What is in a chunk */

/* The start of a record, in ticks. */
NPUPROF_OWN_ static inline uint64_t npuprof_chunk_start_ticks_(const npuprof_chunk_ *chunk, uint64_t w0)
{
    const uint64_t mask = ((uint64_t)1 << NPUPROF_START_BITS_) - 1;
    return chunk->base + (((w0 >> NPUPROF_ID_BITS_) - chunk->base) & mask);
}

/* How many units behind this one are bytes of its string. */
NPUPROF_OWN_ static inline uint64_t npuprof_chunk_string_units_(uint64_t w0)
{
    const uint64_t length = w0 >> NPUPROF_ID_BITS_ >> 32;
    return ((uint32_t)w0 & NPUPROF_ID_MASK_) == NPUPROF_CONTROL_ARG_ && length > 8
        ? NPUPROF_UNITS_(length - 8) : 0;
}

/* Has the span at this position, which was in the chunk, moved on? */
NPUPROF_OWN_ static bool npuprof_chunk_span_left_(const npuprof_chunk_ *chunk, uint64_t position, uint32_t count)
{
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    uint64_t n = position - chunk->first_position;
    if (n >= count)
        for (n = 0; n + 1 < chunk->moved_units && units[n + 1].w0 >> NPUPROF_ID_BITS_ != position;) n += 2;
    return n < count && ((uint32_t)units[n].w0 & NPUPROF_ID_MASK_) == NPUPROF_CONTROL_MOVED_AWAY_;
}

/* Spans and events in a retired chunk, since the last npuprof_clear(). *left_arguments: arguments in it of
   spans that have moved on. */
NPUPROF_HOT_ static uint64_t npuprof_chunk_count_events_(const npuprof_header_ *h,
                                                         const npuprof_chunk_ *chunk,
                                                         uint64_t *left_arguments)
{
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    const uint64_t clear = NPUPROF_LOAD_(&h->clear_ticks);
    const uint32_t count = (h->chunk_bytes - (uint32_t)sizeof *chunk) / (uint32_t)sizeof *units;
    uint32_t n = 0;
    bool left = false;
    *left_arguments = 0;
    /* Why a loop of its own: most chunks hold only spans of one unit, and with keep-newest and stream this
       is part of what a span costs. */
    while (!clear && n < count && n >= chunk->moved_units &&
           ((uint32_t)units[n].w0 & NPUPROF_ID_MASK_) - 1 < NPUPROF_CONTROL_ - 1)
        n++;
    uint64_t events = n;
    for (; n < count && units[n].w0; n++) {
        const uint32_t id = (uint32_t)units[n].w0 & NPUPROF_ID_MASK_;
        if (id < NPUPROF_CONTROL_ || id == NPUPROF_CONTROL_MOVED_AWAY_) {
            left = id == NPUPROF_CONTROL_MOVED_AWAY_;
            const bool moved = n < chunk->moved_units;
            const uint64_t start = moved ? units[n + 1].w1 : npuprof_chunk_start_ticks_(chunk, units[n].w0);
            if (!left) events += start >= clear;
            n += moved;
        } else if (id == NPUPROF_CONTROL_ARG_) {
            *left_arguments += left;
            n += (uint32_t)npuprof_chunk_string_units_(units[n].w0);
        } else if (id == NPUPROF_CONTROL_RESULT_) {
            left = npuprof_chunk_span_left_(chunk, units[n].w1, count);
        }
    }
    return events;
}

/* retired -> taken: the oldest one. What is in it is counted as overwritten. NULL: there is none. R4, R6:
   the store of `next` makes everything in the chunk lost at once. */
NPUPROF_OWN_ static npuprof_chunk_ *npuprof_chunk_take_oldest_(void)
{
    npuprof_header_ *const h = npuprof_arena_.header;
    uint64_t arguments;
    npuprof_chunk_ *chunk = npuprof_chunk_unqueue_();
    if (!chunk) return NULL;
    npuprof_overwritten_ *const o = npuprof_chunk_overwritten_at_(h, npuprof_chunk_index_(chunk));
    const uint64_t count = NPUPROF_LOAD_(&o->count) + npuprof_chunk_count_events_(h, chunk, &arguments);
    if (arguments) NPUPROF_ADD_(&h->lost[NPUPROF_LOST_ARGUMENTS], arguments);
    NPUPROF_STORE_RELEASE_(&o->next, count + 1);
    NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)NPUPROF_CHUNK_FREE);
    NPUPROF_STORE_RELEASE_(&o->count, count);
    NPUPROF_STORE_RELEASE_(&o->next, (uint64_t)0);
    return chunk;
}

/* Spans and events that were overwritten in the first `chunks` chunks of an arena. */
NPUPROF_OWN_ static uint64_t npuprof_chunk_sum_overwritten_(const npuprof_header_ *h, uint32_t chunks)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < chunks && h->overwritten_offset; i++) {
        const npuprof_overwritten_ *const o = npuprof_chunk_overwritten_at_(h, i);
        const uint64_t next = NPUPROF_LOAD_(&o->next);
        sum += next ? next - 1 : NPUPROF_LOAD_(&o->count);
    }
    return sum;
}
/* ==== src/arena/thread.h ============================================================= >>arena/thread ==== */

/* A thread and the slot it records into: how a slot is found, and where its chunk and its open spans are.
   Words: slot_mine (the thread's own, changed by record/ and by the end of the thread), and of a slot those
   that state.h describes. Nothing here takes a chunk; slots.h does. */

/* The calling thread's slot; npuprof_slot_none_ if it has none. And while it has none, how many PROF_BEGINs
   are open. Of a thread-local variable, or of a key, whose one pointer is the slot, or 2 * the count + 1.
   npuprof_slot_me_() names the calling thread in the words `drainer` and `writer`, and above; never 0. */
#if NPUPROF_THREAD_KEY
NPUPROF_ALWAYS_INLINE_ npuprof_slot_ *npuprof_slot_mine_(void)
{
    void *const own = npuprof_os_own_();
    return own && !((uintptr_t)own & 1) ? (npuprof_slot_ *)own : &npuprof_slot_none_;
}

NPUPROF_OWN_ static uint32_t npuprof_slot_skipped_(void)
{
    const uintptr_t own = (uintptr_t)npuprof_os_own_();
    return own & 1 ? (uint32_t)(own >> 1) : 0;
}

NPUPROF_OWN_ static void npuprof_slot_set_skipped_(uint32_t count)
{
    npuprof_os_watch_thread_(count ? (void *)((uintptr_t)count << 1 | 1) : NULL);
}

NPUPROF_OWN_ static void npuprof_slot_clear_skipped_(void) {}       /* the slot is in its place */
NPUPROF_OWN_ static uintptr_t npuprof_slot_me_(void) { return npuprof_os_me_(); }

#else /* !NPUPROF_THREAD_KEY */
static NPUPROF_THREAD_LOCAL_ npuprof_slot_ *npuprof_slot_own_ = &npuprof_slot_none_;
static NPUPROF_THREAD_LOCAL_ uint32_t npuprof_slot_own_skipped_;

NPUPROF_ALWAYS_INLINE_ npuprof_slot_ *npuprof_slot_mine_(void) { return npuprof_slot_own_; }
NPUPROF_OWN_ static uint32_t npuprof_slot_skipped_(void) { return npuprof_slot_own_skipped_; }
NPUPROF_OWN_ static void npuprof_slot_set_skipped_(uint32_t count) { npuprof_slot_own_skipped_ = count; }
NPUPROF_OWN_ static void npuprof_slot_clear_skipped_(void) { npuprof_slot_own_skipped_ = 0; }
NPUPROF_OWN_ static uintptr_t npuprof_slot_me_(void) { return (uintptr_t)&npuprof_slot_own_; }

#endif /* !NPUPROF_THREAD_KEY */

/* Gives the calling thread this slot; NULL: none. False: the system has no place to keep it. */
NPUPROF_OWN_ static bool npuprof_slot_become_(npuprof_slot_ *slot)
{
#if !NPUPROF_THREAD_KEY
    npuprof_slot_own_ = slot ? slot : &npuprof_slot_none_;
#endif
    return npuprof_os_watch_thread_(slot) || !NPUPROF_THREAD_KEY;
}

#ifdef NPUPROF_AUTO
/* From now on no call is open in this slot. */
NPUPROF_OWN_ static void npuprof_slot_forget_calls_(npuprof_slot_ *slot)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    npuprof_slot_call_ *const first = (npuprof_slot_call_ *)(void *)((uint8_t *)slot + s->slot_calls_at);
    slot->calls.beyond = 0;
    slot->calls.next = slot->calls.end = npuprof_slot_call_none_ + 1;
    if (s->slot_calls < 3) return;
    first->token = first[s->slot_calls - 1].token = NPUPROF_CALL_NONE_;
    slot->calls.next = first + 1;
    slot->calls.end = first + s->slot_calls - 1;
}

#endif
/* What `owned` is in the slots of the calling thread. */
NPUPROF_OWN_ static uint32_t npuprof_slot_owner_(void)
{
    const uint32_t tid = (uint32_t)npuprof_os_tid_();
    return tid ? tid : 1;
}

/* Gives a slot of the calling thread back. */
NPUPROF_OWN_ static void npuprof_slot_give_back_(npuprof_slot_ *slot)
{
    NPUPROF_STORE_RELEASE_(&slot->owned, 0);
    NPUPROF_ADD_SEQ_(&npuprof_arena_.slots_left, 1);
    NPUPROF_ADD_(&npuprof_arena_.slots_free, 1);
}

#define NPUPROF_SLOT_FRESH_ UINT32_MAX

/* Takes a slot that nobody owns: one that recorded under that name; 0: without one; NPUPROF_SLOT_FRESH_: one
   that never recorded. NULL: there is none. */
NPUPROF_OWN_ static npuprof_slot_ *npuprof_slot_take_free_(uint32_t name)
{
    const uint32_t me = npuprof_slot_owner_();
    const bool fresh = name == NPUPROF_SLOT_FRESH_;
    uint32_t at = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.header->slot_first);
    while (at && NPUPROF_LOAD_(&npuprof_arena_.slots_free)) {
        npuprof_slot_ *const slot = npuprof_slot_at_(at);
        const npuprof_slot_head_ *const head = &slot->head;
        uint32_t nobody = 0;
        if (NPUPROF_LOAD_(&slot->owned) == 0) {
            const bool used = NPUPROF_LOAD_(&head->tid) != 0;
            const bool fits = fresh ? !used : used && NPUPROF_LOAD_(&head->name) == name;
            if (fits && NPUPROF_CAS_(&slot->owned, &nobody, me)) {
                NPUPROF_ADD_(&npuprof_arena_.slots_free, UINT32_MAX);
                return slot;
            }
        }
        at = head->next_slot;
    }
    return NULL;
}

/* The slot's chunk. It must have one. */
NPUPROF_OWN_ static inline npuprof_chunk_ *npuprof_slot_current_chunk_(const npuprof_slot_ *slot)
{
    return npuprof_chunk_at_(slot->head.last_chunk - 1);
}

/* Position of the next record of a slot that has a chunk. */
NPUPROF_OWN_ static uint64_t npuprof_slot_position_(const npuprof_slot_ *slot)
{
    npuprof_chunk_ *const chunk = npuprof_slot_current_chunk_(slot);
    return chunk->first_position + (uint64_t)(slot->cursor - npuprof_chunk_units_(chunk));
}

/* Takes its chunk from a slot that the caller owns. NULL: it has none, or spans are open in it (R2). */
NPUPROF_OWN_ static npuprof_chunk_ *npuprof_slot_detach_chunk_(npuprof_slot_ *slot)
{
    if (!slot->cursor || slot->top != slot->open) return NULL;
    slot->position = npuprof_slot_position_(slot);
    slot->cursor = slot->end = NULL;
    return npuprof_slot_current_chunk_(slot);
}

/* Where an open span lies; e is its place in slot->open, chunk the slot's current one. */
NPUPROF_OWN_ static inline npuprof_unit_ *npuprof_slot_open_unit_(const npuprof_slot_ *slot, npuprof_chunk_ *chunk,
                                                     const npuprof_token_ *e)
{
    if (*e & NPUPROF_TOKEN_MOVED_) return npuprof_chunk_units_(chunk) + 2 * (e - slot->open - 1);
    return (npuprof_unit_ *)(slot->token_zero + (*e & ~(npuprof_token_)NPUPROF_TOKEN_FLAGS_));
}
/* ==== src/arena/exchange.h ========================================================= >>arena/exchange ==== */

#include <string.h>

/* How a thread gets a new chunk for its full one, and how long it waits for it. With keep-oldest nobody
   waits. With keep-newest the oldest retired chunk is taken. With stream the thread hands retired chunks to
   the sink, or waits for the thread that does. The difficulty is when to stop waiting.

   Words, all sequentially consistent:
     exchanging        threads that are changing to a new chunk and may yet give their old one back
     failed            those of them that looked for a chunk in this round and found none. A round is the
                       time between two chunks that are given back; the word's upper half is its number
     drainer, frozen   see state.h

   R7   A thread enters `exchanging` before it looks for a chunk. It gives its old chunk back only after it
        has taken a new one, and leaves `exchanging` after that, or when it gives up.

   R8   So waiting is pointless once every thread in `exchanging` has looked and found none in the same round:
        nobody can give back what the others wait for. `hopeless` keeps that round: who comes later in it
        need not look, unless a slot was given back, whose chunk may be idle.

   R9   Whoever gives a chunk back begins a new round, and leaves `exchanging` afterwards. In the other order
        a thread could find that all others have failed, and give up, when a chunk has just come back.

   R10  A thread that naps or drains steps aside: it is in neither count. It looks again afterwards.

   R11  A thread in `exchanging` has its signals held: so no handler leaves it there for ever by a jump, or
        waits for the thread that it interrupted. Not with keep-oldest, where nobody waits: there no record
        makes a system call.

   R12  While a thread drains (`drainer`) or reads (`frozen`), others wait for it: chunks may come back when
        it is done. If that thread itself needs a chunk, in a sink that records, it does not wait. */

/* What the rooms above hand down, once, before anything records. */
static struct {
    bool (*drain)(void);           /* hands retired chunks to the sink. False: none was freed */
    void (*ends)(npuprof_slot_ *slot);     /* of a thread that is over: ends its spans, gives it back */
} npuprof_arena_hooks_;

/* Is there a thread to wait for? R12 */
NPUPROF_OWN_ static bool npuprof_exchange_may_wait_(void)
{
    return NPUPROF_LOAD_SEQ_(&npuprof_arena_.drainer) || NPUPROF_LOAD_SEQ_(&npuprof_arena_.frozen);
}

/* Does this thread drain, or read, further up its stack? R12 */
NPUPROF_OWN_ static bool npuprof_exchange_is_waited_for_(void)
{
    const uintptr_t me = npuprof_slot_me_();
    return NPUPROF_LOAD_(&npuprof_arena_.drainer) == me || NPUPROF_LOAD_(&npuprof_arena_.writer) == me;
}

/* A chunk was given back, or may be taken again. R9 */
NPUPROF_OWN_ static void npuprof_exchange_begin_round_(void)
{
    uint32_t failed = NPUPROF_LOAD_SEQ_(&npuprof_arena_.failed);
    while (!NPUPROF_CAS_(&npuprof_arena_.failed, &failed, (failed & 0xFFFF0000u) + 0x10000)) {}
}

/* Call when the old chunk is in the queue or on the free stack, after npuprof_chunk_take_() gave a new one.
   R9 */
NPUPROF_OWN_ static void npuprof_exchange_end_(void)
{
    npuprof_exchange_begin_round_();
    NPUPROF_ADD_SEQ_(&npuprof_arena_.exchanging, UINT32_MAX);
}

/* Retires the chunks, half full, of threads that have ended. False: there was none. Why not while no slot was
   given back since the last time: a thread that gets no chunk would pay for all slots with each record. */
NPUPROF_OWN_ static bool npuprof_chunk_retire_idle_(void)
{
    bool any = false;
    const uint32_t left = NPUPROF_LOAD_SEQ_(&npuprof_arena_.slots_left);
    if (left == NPUPROF_LOAD_(&npuprof_arena_.slots_swept)) return false;
    for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.header->slot_first); at;) {
        npuprof_slot_ *const slot = npuprof_slot_at_(at);
        uint32_t nobody = 0;
        if (NPUPROF_LOAD_(&slot->owned) == 0 && NPUPROF_CAS_(&slot->owned, &nobody, NPUPROF_SLOT_RETIRING_)) {
            for (npuprof_slot_ *s = slot; s; s = s->nested) {
                npuprof_chunk_ *chunk = npuprof_slot_detach_chunk_(s);
                if (!chunk) continue;
                /* Why before it, too: the caller may already be counted in `failed`, and others would give
                   up. */
                npuprof_exchange_begin_round_();
                npuprof_chunk_retire_(chunk);
                npuprof_exchange_begin_round_();
                any = true;
            }
            NPUPROF_STORE_RELEASE_(&slot->owned, 0);
        }
        at = slot->head.next_slot;
    }
    NPUPROF_STORE_(&npuprof_arena_.slots_swept, left);
    return any;
}

/* Had all failed in this round already, and has nothing come back since? R8 */
NPUPROF_OWN_ static bool npuprof_exchange_was_hopeless_(uint32_t round)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    return NPUPROF_LOAD_SEQ_(&s->hopeless) == (round << 16 | 1) && !npuprof_chunk_are_queued_() &&
           NPUPROF_LOAD_SEQ_(&s->slots_left) == NPUPROF_LOAD_(&s->slots_swept);
}

/* The caller found no chunk; `failed` is what the word was before it looked, *counted the round in which
   the caller is counted. Counts it, and says whether everybody has failed. R8 */
NPUPROF_OWN_ static bool npuprof_exchange_is_hopeless_(uint32_t failed, uint32_t *counted)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    const uint32_t round = failed >> 16, max = 0xFFFF;
    if (npuprof_exchange_may_wait_()) return false;
    if (NPUPROF_ARENA_STREAMS_() && npuprof_chunk_are_queued_()) return false;
    if (npuprof_exchange_was_hopeless_(round)) return true;
    for (uint32_t now = NPUPROF_LOAD_SEQ_(&s->failed); *counted != round;) {
        if (now >> 16 != round) return false;
        if ((now & max) == max || NPUPROF_CAS_(&s->failed, &now, now + 1)) *counted = round;
    }
    /* Why `failed` on both sides: between two looks one thread may leave and another come, and the failure
       of the first would be taken for one of the second. */
    const uint32_t before = NPUPROF_LOAD_SEQ_(&s->failed), exchanging = NPUPROF_LOAD_SEQ_(&s->exchanging);
    if (npuprof_exchange_may_wait_()) return false;
    if (before >> 16 != round || before != NPUPROF_LOAD_SEQ_(&s->failed)) return false;
    if ((before & max) < exchanging && (before & max) != max) return false;
    NPUPROF_STORE_SEQ_(&s->hopeless, round << 16 | 1);
    return true;
}

/* R10, R11. Why the signals come meanwhile: a sink that records may have to wait for them. held: as they
   were. */
NPUPROF_OWN_ static void npuprof_exchange_step_aside_(uint32_t *counted, const npuprof_os_signals_ *held)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    uint32_t now = NPUPROF_LOAD_SEQ_(&s->failed);
    while (*counted == now >> 16 && (now & 0xFFFF) && (now & 0xFFFF) != 0xFFFF)
        if (NPUPROF_CAS_(&s->failed, &now, now - 1)) *counted = UINT32_MAX;
    *counted = UINT32_MAX;
    NPUPROF_ADD_SEQ_(&s->exchanging, UINT32_MAX);
    npuprof_os_release_signals_(held);
}

NPUPROF_OWN_ static void npuprof_exchange_step_back_(void)
{
    npuprof_os_signals_ before;
    npuprof_os_hold_signals_(&before);
    NPUPROF_ADD_SEQ_(&npuprof_arena_.exchanging, 1);
}

NPUPROF_OWN_ static bool npuprof_exchange_drain_aside_(uint32_t *counted, const npuprof_os_signals_ *held)
{
    npuprof_exchange_step_aside_(counted, held);
    const bool any = npuprof_arena_hooks_.drain();
    npuprof_exchange_step_back_();
    return any;
}

/* Would npuprof_chunk_take_() find none, and not wait? Asked first: in a full arena each record comes this
   far. */
NPUPROF_OWN_ static bool npuprof_arena_is_full_(void)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    if (NPUPROF_LOAD_(&s->header->chunk_next) < s->header->chunk_count) return false;
    if (NPUPROF_LOAD_(&s->chunk_free) & NPUPROF_CHUNK_NUMBER_MASK_) return false;
    if (s->when_full == NPUPROF_KEEP_OLDEST) return true;
    if (s->when_full == NPUPROF_KEEP_NEWEST && NPUPROF_LOAD_SEQ_(&s->frozen)) return true;
    if (npuprof_exchange_may_wait_()) return false;
    return npuprof_exchange_was_hopeless_(NPUPROF_LOAD_SEQ_(&s->failed) >> 16);
}

/* Zeroes a chunk that was taken, and gives it its state. R6. In memory that was zero at first, one that never
   had an owner is left as it is. Why: zeroing would touch pages of it that may stay empty.
   Why `next` is written before `owner` is read: the first access to a page is then a write, which takes one
   page fault and not two. */
NPUPROF_OWN_ static void npuprof_chunk_make_fresh_(npuprof_chunk_ *chunk, uint32_t state)
{
    NPUPROF_STORE_(&chunk->next, 0);
    const bool is_zero = npuprof_arena_.zero_at_first && NPUPROF_LOAD_(&chunk->owner) == 0;
    NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)NPUPROF_CHUNK_FREE);
    /* Why: a release does not keep later stores behind it, and a process may be killed in between. */
    NPUPROF_SIGNAL_FENCE_();
    if (!is_zero) memset(npuprof_chunk_units_(chunk), 0, npuprof_arena_.header->chunk_bytes - sizeof *chunk);
    NPUPROF_STORE_(&chunk->base, 0);
    NPUPROF_STORE_(&chunk->first_position, 0);
    NPUPROF_STORE_(&chunk->owner, 0);
    NPUPROF_STORE_(&chunk->prev, 0);
    NPUPROF_STORE_(&chunk->moved_units, 0);
    NPUPROF_STORE_RELEASE_(&chunk->state, (uint16_t)state);
}

/* A zeroed chunk in that state: then the caller calls npuprof_exchange_end_(), with the signals still held.
   NULL: the arena is full. nested: for a signal handler's slot, which never waits. held: the signals as
   they were (R11). */
NPUPROF_OWN_ static npuprof_chunk_ *npuprof_chunk_take_(uint32_t state, bool nested, const npuprof_os_signals_ *held)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    npuprof_chunk_ *chunk = NULL;
    bool recycling = false;
    uint32_t counted = UINT32_MAX, nap = 20;
    if (npuprof_arena_is_full_()) return NULL;
    NPUPROF_ADD_SEQ_(&s->exchanging, 1);
    for (uint64_t since = 0;;) {
        const uint32_t failed = NPUPROF_LOAD_SEQ_(&s->failed);
        if ((chunk = npuprof_chunk_take_unused_()) != NULL || s->when_full == NPUPROF_KEEP_OLDEST) break;
        if (s->when_full == NPUPROF_KEEP_NEWEST) {
            if (!npuprof_chunk_begin_recycling_()) break;
            chunk = npuprof_chunk_take_oldest_();
            if (!chunk && npuprof_chunk_retire_idle_()) chunk = npuprof_chunk_take_oldest_();
            recycling = chunk != NULL;
            if (recycling) break;
            npuprof_chunk_end_recycling_();
        }
        if (nested) break;
        if (NPUPROF_ARENA_STREAMS_()) {
            if (npuprof_chunk_are_queued_() && npuprof_exchange_drain_aside_(&counted, held)) continue;
            if (npuprof_chunk_retire_idle_()) continue;
        }
        if (npuprof_exchange_is_waited_for_() || npuprof_exchange_is_hopeless_(failed, &counted)) break;
        /* Why an end: a thread may have left for good, by a jump out of a sink. */
        const uint64_t ns = (uint64_t)npuprof_os_monotonic_ns_();
        if (!since || npuprof_exchange_may_wait_()) since = ns;
        if (ns - since > UINT64_C(5000000000)) break;
        /* Why longer and longer: threads by the thousand that look again would keep those from running that
           are about to finish. */
        nap = npuprof_exchange_may_wait_() ? 20 : nap < 5000 ? nap * 2 : nap;
        npuprof_exchange_step_aside_(&counted, held);
        npuprof_os_nap_(nap);
        npuprof_exchange_step_back_();
    }
    if (chunk) npuprof_chunk_make_fresh_(chunk, state);
    else NPUPROF_ADD_SEQ_(&s->exchanging, UINT32_MAX);
    if (recycling) npuprof_chunk_end_recycling_();
    return chunk;
}
/* ==== src/arena/slots.h =============================================================== >>arena/slots ==== */

/* How a thread gets a slot, and how a slot changes to a new chunk: what may need a chunk, and so may wait.
   Words: header.slot_first and head.next_slot, the list of all slots. A slot is in it for ever; the list
   grows at its front, by a CAS, so whoever walks it sees whole slots only. The words of a slot: see
   state.h. Callers hold their signals (`held`: as they were before), or a handler that records would take a
   slot, too. */

/* A chunk full of fresh slots. One of them is the caller's. NULL: there is no chunk. */
NPUPROF_OWN_ static npuprof_slot_ *npuprof_slot_make_chunk_(bool nested, const npuprof_os_signals_ *held)
{
    npuprof_header_ *h = npuprof_arena_.header;
    npuprof_chunk_ *chunk = npuprof_chunk_take_(NPUPROF_CHUNK_SLOTS, nested, held);
    if (!chunk) return NULL;
    uint8_t *const start = (uint8_t *)(chunk + 1);
    npuprof_slot_ *newest = NULL;
    uint32_t count = 0;
    uint32_t head = NPUPROF_LOAD_ACQUIRE_(&h->slot_first), newest_at = 0;
    for (size_t at = 0; at + h->slot_bytes <= h->chunk_bytes - sizeof *chunk; at += h->slot_bytes) {
        npuprof_slot_ *slot = (npuprof_slot_ *)(void *)(start + at);
        slot->top = slot->open;
        slot->open[0] = 1;
        slot->head.next_slot = newest_at;
        newest_at = (uint32_t)((size_t)((const uint8_t *)slot - npuprof_arena_.base) / 16);
        newest = slot;
        count++;
    }
    newest->owned = npuprof_slot_owner_();
    npuprof_slot_ *oldest = (npuprof_slot_ *)(void *)start;
    do oldest->head.next_slot = head;
    while (!NPUPROF_CAS_(&h->slot_first, &head, newest_at));
    NPUPROF_ADD_(&npuprof_arena_.slots_free, count - 1);
    npuprof_exchange_end_();
    return newest;
}

/* Have the threads as many rows as they may have? With a chunk each they may take three quarters of the
   arena, but 64 rows at least. Then threads whose names are new share rows (record/thread.h). Why: names that
   never come again would take all of it. */
NPUPROF_OWN_ static bool npuprof_slot_rows_are_full_(void)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    const uint64_t each = (h->chunk_bytes - sizeof(npuprof_chunk_)) / h->slot_bytes;
    return NPUPROF_LOAD_(&h->threads) >= npuprof_max_(h->chunk_count * 3 / 4 * each / (each + 1), 64);
}

/* Ends the slots of threads that are no more and did not give them back: they ended without the clean-up of
   the system, or recorded behind it. Looked for when as many slots were taken as there are since the last
   time, so it costs each the same. A thread that lives has its number in `owned`, and a dead one's number
   changes only here. False: there was none. */
NPUPROF_OWN_ static bool npuprof_slot_end_dead_(void)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    const uint32_t threads = NPUPROF_LOAD_(&s->header->threads), few = 64;
    uint32_t nobody = 0;
    bool any = false;
    const uint32_t taken = NPUPROF_LOAD_(&s->slots_taken);
    if (threads < few || taken - NPUPROF_LOAD_(&s->slots_checked) < threads) return false;
    if (!NPUPROF_CAS_(&s->slots_checking, &nobody, 1)) return false;
    for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&s->header->slot_first); at;) {
        npuprof_slot_ *const slot = npuprof_slot_at_(at);
        const uint32_t owner = NPUPROF_LOAD_ACQUIRE_(&slot->owned);
        at = slot->head.next_slot;
        if (!owner || owner == NPUPROF_SLOT_RETIRING_ || NPUPROF_LOAD_(&slot->head.context)) continue;
        if (!npuprof_os_is_gone_(owner)) continue;
        npuprof_arena_hooks_.ends(slot);
        any = true;
    }
    NPUPROF_STORE_(&s->slots_checked, taken);
    NPUPROF_STORE_RELEASE_(&s->slots_checking, 0);
    return any;
}

/* A slot for a thread or, with a parent, for a signal handler on the parent's thread. NULL: there is no
   space. fresh: none that recorded before; always so with a parent. */
NPUPROF_OWN_ static npuprof_slot_ *npuprof_slot_take_(npuprof_slot_ *parent, bool fresh, const npuprof_os_signals_ *held)
{
    npuprof_header_ *h = npuprof_arena_.header;
    npuprof_slot_ *slot = NULL;
    if (!fresh) slot = npuprof_slot_take_free_(0);
    if (!slot) slot = npuprof_slot_take_free_(NPUPROF_SLOT_FRESH_);
    if (!slot && !fresh && npuprof_slot_end_dead_()) slot = npuprof_slot_take_free_(0);
    if (!slot) slot = npuprof_slot_make_chunk_(parent != NULL, held);
    if (!slot) return NULL;
    NPUPROF_ADD_(&npuprof_arena_.slots_taken, 1);
    if (slot->head.tid == 0) {
        if (parent) NPUPROF_STORE_(&slot->head.context, parent->head.context + 1);
        NPUPROF_STORE_(&slot->head.tid, parent ? parent->head.tid : NPUPROF_ADD_(&h->threads, 1) + 1);
    }
    NPUPROF_STORE_(&slot->head.os_tid, (uint32_t)npuprof_os_tid_());
    NPUPROF_STORE_(&slot->head.owners, slot->head.owners + 1);
    slot->top = slot->open;
    slot->by_hand_bits = 0;
    slot->by_hand_count = 0;
    NPUPROF_CALLS_(npuprof_slot_forget_calls_(slot);)
    return slot;
}

/* Where the slot's stream goes on in a new chunk; old: its chunk, or NULL.
   Why handlers' contexts begin elsewhere: they count apart, and (thread, position) must stay unique. */
NPUPROF_OWN_ static uint64_t npuprof_slot_next_position_(const npuprof_slot_ *slot, const npuprof_chunk_ *old)
{
    if (old) return npuprof_slot_position_(slot);
    if (slot->position) return slot->position;
    if (slot->head.context == 0) return npuprof_arena_.first_position;
    return (uint64_t)1 << 43 | (uint64_t)(NPUPROF_ADD_(&npuprof_arena_.header->contexts, 1) & 0xFFFF) << 27;
}

/* Copies the open spans of the slot from its old chunk to the start of another one. Returns where they
   end. */
NPUPROF_OWN_ static npuprof_unit_ *npuprof_slot_copy_open_(const npuprof_slot_ *slot, npuprof_chunk_ *old,
                                              npuprof_chunk_ *chunk)
{
    npuprof_unit_ *u = npuprof_chunk_units_(chunk);
    for (const npuprof_token_ *e = slot->open + 1; e <= slot->top; e++, u += 2) {
        const npuprof_unit_ *was = npuprof_slot_open_unit_(slot, old, e);
        uint64_t position, start;
        if (*e & NPUPROF_TOKEN_MOVED_) {
            position = was[1].w0 >> NPUPROF_ID_BITS_;
            start = was[1].w1;
        } else {
            position = old->first_position + (uint64_t)(was - npuprof_chunk_units_(old));
            start = npuprof_chunk_start_ticks_(old, was->w0);
        }
        u[0].w0 = was->w0 & NPUPROF_ID_MASK_;
        u[0].w1 = NPUPROF_END_OPEN_;
        u[1].w0 = position << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_MOVED_;
        u[1].w1 = start;
    }
    return u;
}

/* Marks the open spans as moved, in the old chunk and in the slot. */
NPUPROF_OWN_ static void npuprof_slot_mark_moved_(npuprof_slot_ *slot, npuprof_chunk_ *old, npuprof_chunk_ *chunk)
{
    const npuprof_unit_ *u = npuprof_chunk_units_(chunk);
    for (npuprof_token_ *e = slot->open + 1; e <= slot->top; e++, u += 2) {
        npuprof_unit_ *const was = npuprof_slot_open_unit_(slot, old, e);
        const uint64_t site = was->w0 & NPUPROF_ID_MASK_;
        /* Why this order: a reader that comes between the two finds the start where the span is now. */
        NPUPROF_STORE_RELEASE_(&was->w0, site << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_MOVED_AWAY_);
        NPUPROF_STORE_RELEASE_(&was->w1, u[1].w1);
        *e |= NPUPROF_TOKEN_MOVED_;
    }
}

/* Gives the slot a new chunk, with its open spans at the start, and retires the old one. Returns where the
   next record goes. NULL: the arena is full, and all is as it was. Why the open spans move: R2. A retired
   chunk can then be recycled, streamed and counted, however long a span is open. */
NPUPROF_OWN_ static npuprof_unit_ *npuprof_slot_change_chunk_(npuprof_slot_ *slot, uint64_t now,
                                                 const npuprof_os_signals_ *held)
{
    npuprof_chunk_ *chunk = npuprof_chunk_take_(NPUPROF_CHUNK_OPEN, slot->head.context != 0, held);
    if (!chunk) return NULL;
    npuprof_chunk_ *const old = slot->cursor ? npuprof_slot_current_chunk_(slot) : NULL;
    npuprof_unit_ *const units = npuprof_chunk_units_(chunk);
    /* Why a while before now: the clocks of two CPUs may differ a little. */
    NPUPROF_STORE_(&chunk->base, now - ((uint64_t)1 << 40));
    NPUPROF_STORE_(&chunk->prev, slot->head.last_chunk);
    NPUPROF_STORE_(&chunk->first_position, npuprof_slot_next_position_(slot, old));
    npuprof_unit_ *const cursor = npuprof_slot_copy_open_(slot, old, chunk);
    NPUPROF_STORE_(&chunk->moved_units, (uint16_t)(cursor - units));
    /* Why the owner after all that: a reader, or who reads what a killed process left, ignores a chunk
       without one. */
    NPUPROF_STORE_RELEASE_(&chunk->owner, slot->head.tid << 3 | slot->head.context);
    NPUPROF_STORE_RELEASE_(&slot->head.last_chunk, npuprof_chunk_index_(chunk) + 1);
    npuprof_slot_mark_moved_(slot, old, chunk);
    npuprof_token_ first_token = (npuprof_token_)(chunk->first_position * 16);
    if (!first_token || first_token > UINT32_MAX - npuprof_arena_.units * 16) first_token = 16;
    slot->token_zero = (uintptr_t)units - first_token;
    slot->deadline = chunk->base + (((uint64_t)1 << NPUPROF_START_BITS_) - 1);
    slot->cursor = cursor;
    slot->end = units + npuprof_arena_.units;
    if (old) npuprof_chunk_retire_(old);
    npuprof_exchange_end_();
    return cursor;
}

/* Changes the chunk as above, and holds this thread's signals meanwhile where chunks are recycled (R11). With
   the signals released again, it stores a host anchor if one is due, and drains the queue to the sink. */
NPUPROF_OWN_ static npuprof_unit_ *npuprof_slot_begin_chunk_(npuprof_slot_ *slot, uint64_t now)
{
    npuprof_os_signals_ held;
    if (npuprof_arena_is_full_()) return NULL;
    const bool shared = npuprof_arena_.when_full != NPUPROF_KEEP_OLDEST;   /* R11 */
    if (shared) npuprof_os_hold_signals_(&held);
    npuprof_unit_ *const u = npuprof_slot_change_chunk_(slot, now, &held);
    if (shared) npuprof_os_release_signals_(&held);
    if (!u) return NULL;
    npuprof_arena_renew_anchor_if_due_(now);
    if (NPUPROF_ARENA_STREAMS_() && slot->head.context == 0) (void)npuprof_arena_hooks_.drain();
    return u;
}
#ifndef NPUPROF_RECORD_ONLY    /* there, size counts more than the time of a record that is no plain span */
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_
#endif
/* ==== src/arena/table.h =============================================================== >>arena/table ==== */

#include <string.h>

/* The table of names: strings, call sites, metadata and devices, which records name by number
   (format/arena.h). It only grows: behind its first part in chunks, its pages. Words, all of them atomic:
     header.table_used     end of the entries. By CAS, by whoever comes, past an entry that has its size
     header.sites          number of call sites; added to
     pages                 chunk of a page by CAS from 0, before table_used goes into the page
     base, first_position  of that chunk's head: the same values by all who begin the page, before
                           table_used goes into it
     entry.type_units      size by CAS from 0: the entry is taken. Type, with release: the entry is whole
     buckets, entry.next   lists of whole entries by hash; an entry is put in front of its list by CAS
     index                 id, by CAS from 0, of a zeroed entry that holds ids of call sites
     the ids there         each with release, before anybody uses the number of its call site
   So whoever reads a number, an id or table_used with acquire sees whole what lies behind it. Lock-free, but
   for the chunk of a page (exchange.h): two threads may store the same name at the same time, and it is
   then there twice, which harms nobody. This part does not know who uses the names. */

/* Takes a chunk for a page, if nobody else does. Returns index + 1 of the page's chunk. 0: there is none. */
NPUPROF_COLD_ NPUPROF_OWN_ static uint32_t npuprof_table_take_page_(uint32_t page, bool nested)
{
    npuprof_os_signals_ held;
    uint32_t number = 0;
    const bool shared = npuprof_arena_.when_full != NPUPROF_KEEP_OLDEST;   /* R11 */
    if (shared) npuprof_os_hold_signals_(&held);
    npuprof_chunk_ *const chunk = npuprof_chunk_take_(NPUPROF_BLOCK_TABLE_PIECE, nested, &held);
    if (!chunk) {
        number = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.pages[page]);
    } else {
        const uint32_t ours = npuprof_chunk_index_(chunk) + 1;
        if (NPUPROF_CAS_(&npuprof_arena_.pages[page], &number, ours)) number = ours;
        else npuprof_chunk_free_(chunk);
        npuprof_exchange_end_();
    }
    if (shared) npuprof_os_release_signals_(&held);
    return number;
}

/* Makes sure that the page is there which begins at that offset. False: the table is full. */
NPUPROF_COLD_ NPUPROF_OWN_ static bool npuprof_table_make_page_(uint32_t at, bool nested)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    const uint32_t page = (at - h->table_bytes) / h->chunk_bytes, head = sizeof(npuprof_chunk_);
    if (page >= npuprof_arena_.page_count) return false;
    uint32_t number = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.pages[page]);
    if (!number) number = npuprof_table_take_page_(page, nested);
    if (!number) return false;
    npuprof_chunk_ *const chunk = npuprof_chunk_at_(number - 1);
    NPUPROF_STORE_(&chunk->base, (uint64_t)at + head);
    NPUPROF_STORE_(&chunk->first_position, (uint64_t)h->chunk_bytes - head);
    return true;
}

/* Appends an entry of that size, zeroed and not finished. NULL: the table is full. nested: for a signal
   handler, which waits for no chunk. */
NPUPROF_COLD_ NPUPROF_OWN_ static npuprof_entry_ *npuprof_table_append_(size_t bytes, bool nested, uint32_t *id)
{
    npuprof_header_ *const h = npuprof_arena_.header;
    const uint32_t unit = NPUPROF_TABLE_UNIT_, size = (uint32_t)((bytes + unit - 1) / unit * unit);
    for (uint32_t used = NPUPROF_LOAD_ACQUIRE_(&h->table_used);;) {
        const uint32_t at = npuprof_table_past_head_(h, used);
        if (at != used && !npuprof_table_make_page_(used, nested)) return NULL;
        const uint32_t beyond = used < h->table_bytes ? 0 : (used - h->table_bytes) / h->chunk_bytes + 1;
        const uint32_t left = h->table_bytes + beyond * h->chunk_bytes - at;
        const bool fits = size <= left;
        /* Why the page first: while there is none for a long entry, a short one may still fit. */
        if (!fits && size > h->chunk_bytes - sizeof(npuprof_chunk_)) return NULL;
        if (!fits && !npuprof_table_make_page_(at + left, nested)) return NULL;
        npuprof_entry_ *const e = (npuprof_entry_ *)npuprof_table_entry_at_(at / unit);
        uint32_t found = 0;
        const uint32_t ours = fits ? size / unit : left / unit | (uint32_t)NPUPROF_ENTRY_SKIP << 24;
        const bool mine = NPUPROF_CAS_(&e->type_units, &found, ours);
        /* Why the size before the end: a reader gets past an entry that is not finished, however long its
           thread stands still. */
        const uint32_t end = at + ((mine ? ours : found) & 0xFFFFFFu) * unit;
        if (NPUPROF_CAS_(&h->table_used, &used, end)) used = end;
        *id = at / unit;
        if (mine && fits) return e;
    }
}

/* The same; it may wait for a chunk, but not in a signal handler that interrupted a record. */
NPUPROF_COLD_ NPUPROF_OWN_ static npuprof_entry_ *npuprof_table_add_entry_(size_t bytes, uint32_t *id)
{
    const npuprof_slot_ *const slot = npuprof_slot_mine_();
    return npuprof_table_append_(bytes, slot->nested && NPUPROF_LOAD_(&slot->nested->busy), id);
}

/* Walks over the entries up to an offset. *at: 0 before the first one. NULL: there are no more, or one is
   being taken just now. */
NPUPROF_COLD_ NPUPROF_OWN_ static npuprof_entry_ *npuprof_table_next_(uint32_t *at, uint32_t end)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    const uint32_t here = npuprof_table_past_head_(h, *at ? *at : h->table_first);
    if (here >= end) return NULL;
    npuprof_entry_ *const e = (npuprof_entry_ *)npuprof_table_entry_at_(here / NPUPROF_TABLE_UNIT_);
    const uint32_t units = NPUPROF_LOAD_ACQUIRE_(&e->type_units) & 0xFFFFFFu;
    *at = here + units * NPUPROF_TABLE_UNIT_;
    return units ? e : NULL;
}

/* The entry is whole: readers may look at it. */
NPUPROF_OWN_ static void npuprof_table_finish_entry_(npuprof_entry_ *e, uint32_t type)
{
    NPUPROF_STORE_RELEASE_(&e->type_units, NPUPROF_LOAD_(&e->type_units) | type << 24);
}

NPUPROF_OWN_ static uint32_t *npuprof_table_bucket_(uint32_t hash)
{
    return &npuprof_arena_.buckets[hash & (npuprof_arena_.bucket_count - 1)];
}

/* The number at a place of the table's own memory, read by a write that changes nothing.
   Why: a first access that writes takes one page fault and not two. */
NPUPROF_OWN_ static uint32_t npuprof_table_read_(uint32_t *at)
{
    uint32_t found = 0;
    (void)NPUPROF_CAS_(at, &found, 0);
    return found;
}

/* Puts a finished entry into its bucket: look-ups find it. */
NPUPROF_OWN_ static void npuprof_table_publish_entry_(npuprof_entry_ *e, uint32_t id, uint32_t hash)
{
    uint32_t *bucket = npuprof_table_bucket_(hash);
    uint32_t head = NPUPROF_LOAD_ACQUIRE_(bucket);
    NPUPROF_STORE_(&e->hash, hash);
    do NPUPROF_STORE_(&e->next, head);
    while (!NPUPROF_CAS_(bucket, &head, id));
}

/* ---- Strings */

enum {
    NPUPROF_TABLE_STRING_LIMIT_ = 65535,   /* longest name of an image; see npuprof_table_text_limit_() */
    NPUPROF_ARG_STRING_LIMIT_ = 1024       /* longest string argument; those lie in the chunks */
};

/* Bytes of the longest name: it fits into a page. */
NPUPROF_OWN_ static size_t npuprof_table_text_limit_(void)
{
    return npuprof_arena_.header->chunk_bytes - sizeof(npuprof_chunk_) - sizeof(npuprof_entry_) - 1;
}

/* Of a name that is longer, its start and this are kept. */
#define NPUPROF_TABLE_CUT_ "\xE2\x80\xA6"

/* The id of a string that is in the table, or 0. It is the text of that length, and behind it `end`. */
NPUPROF_OWN_ static uint32_t npuprof_table_find_string_(const char *text, size_t length, const char *end, uint32_t hash)
{
    const size_t more = strlen(end);
    uint32_t id = npuprof_table_read_(npuprof_table_bucket_(hash));
    while (id) {
        const npuprof_entry_ *e = (const npuprof_entry_ *)npuprof_table_entry_at_(id);
        const bool is_string = NPUPROF_LOAD_(&e->type_units) >> 24 == NPUPROF_ENTRY_STRING;
        const char *const bytes = (const char *)(e + 1);
        if (e->hash == hash && is_string && e->a == length + more && memcmp(bytes, text, length) == 0 &&
            memcmp(bytes + length, end, more) == 0)
            break;
        id = e->next;
    }
    return id;
}

NPUPROF_OWN_ static bool npuprof_table_has_string_(const char *text)
{
    const size_t length = strlen(text);
    return npuprof_table_find_string_(text, length, "", npuprof_hash_text_(text, length)) != 0;
}

/* The id of a string, copied into the table at its first use. 0: the table is full. */
NPUPROF_OWN_ static uint32_t npuprof_table_intern_string_(const char *text)
{
    const size_t all = strlen(text), limit = npuprof_table_text_limit_();
    const char *const end = all > limit ? NPUPROF_TABLE_CUT_ : "";
    const size_t more = strlen(end), length = npuprof_utf8_cut_(text, all, limit - more);
    const uint32_t hash = npuprof_hash_text_(text, length);
    uint32_t id = npuprof_table_find_string_(text, length, end, hash);
    if (id) return id;
    npuprof_entry_ *e = npuprof_table_add_entry_(sizeof *e + length + more + 1, &id);
    if (!e) return 0;
    e->a = (uint32_t)(length + more);
    memcpy(e + 1, text, length);
    memcpy((char *)(e + 1) + length, end, more);
    npuprof_table_finish_entry_(e, NPUPROF_ENTRY_STRING);
    npuprof_table_publish_entry_(e, id, hash);
    return id;
}

/* ---- Call sites */

/* What makes a call site: equal ones share an entry. */
typedef struct npuprof_table_site_ { uint32_t kind, name, category, file, line; } npuprof_table_site_;

NPUPROF_OWN_ static uint32_t npuprof_table_hash_site_(const npuprof_table_site_ *s)
{
    const uint64_t source = (uint64_t)s->file << 32 ^ s->line;
    const uint64_t all = (uint64_t)s->name << 32 ^ (uint64_t)s->category << 8 ^ s->kind;
    return (uint32_t)(npuprof_hash_mix_(source ? all ^ npuprof_hash_mix_(source) : all) >> 16);
}

NPUPROF_OWN_ static const npuprof_site_entry_ *npuprof_table_find_site_(const npuprof_table_site_ *s, uint32_t hash)
{
    uint32_t id = npuprof_table_read_(npuprof_table_bucket_(hash));
    while (id) {
        const npuprof_site_entry_ *e = (const npuprof_site_entry_ *)npuprof_table_entry_at_(id);
        const bool is_site = NPUPROF_LOAD_(&e->head.type_units) >> 24 == NPUPROF_ENTRY_SITE;
        const bool same = e->name == s->name && e->category == s->category && e->file == s->file &&
                          e->line == s->line;
        if (e->head.hash == hash && is_site && same && (e->head.a & 0xFF) == s->kind) return e;
        id = e->head.next;
    }
    return NULL;
}

/* Where the id of a call site's entry goes. NULL: the table is full. */
NPUPROF_COLD_ NPUPROF_OWN_ static uint32_t *npuprof_table_make_site_id_(uint32_t number)
{
    const uint32_t n = number / NPUPROF_TABLE_SITES_;
    if (n >= npuprof_arena_.index_count) return NULL;
    uint32_t at = npuprof_table_read_(&npuprof_arena_.index[n]);
    if (!at) {
        uint32_t ours;
        npuprof_entry_ *const e = npuprof_table_add_entry_(sizeof(npuprof_table_index_entry_), &ours);
        if (!e) return NULL;
        npuprof_table_finish_entry_(e, NPUPROF_ENTRY_SKIP);
        if (NPUPROF_CAS_(&npuprof_arena_.index[n], &at, ours)) at = ours;
    }
    return &((npuprof_table_index_entry_ *)npuprof_table_entry_at_(at))->ids[number % NPUPROF_TABLE_SITES_];
}

/* The entry of a call site, made at its first use. NULL: the table is full. */
NPUPROF_COLD_ NPUPROF_OWN_ static const npuprof_site_entry_ *npuprof_table_enter_site_(const npuprof_table_site_ *s)
{
    const uint32_t hash = npuprof_table_hash_site_(s);
    const npuprof_site_entry_ *found = npuprof_table_find_site_(s, hash);
    if (found) return found;
    npuprof_header_ *h = npuprof_arena_.header;
    uint32_t id;
    /* Why 1024 before the end: that many threads may pass this line before one of them adds. */
    if (NPUPROF_LOAD_(&h->sites) >= NPUPROF_CONTROL_ - 1024) return NULL;
    /* Why before the number is taken: in a full table no number is lost. */
    if (!npuprof_table_make_site_id_(NPUPROF_LOAD_(&h->sites) + 1)) return NULL;
    npuprof_site_entry_ *e = (npuprof_site_entry_ *)(void *)npuprof_table_add_entry_(sizeof *e, &id);
    if (!e) return NULL;
    const uint32_t number = NPUPROF_ADD_(&h->sites, 1) + 1;
    uint32_t *const site_id = npuprof_table_make_site_id_(number);
    if (!site_id) {
        npuprof_table_finish_entry_(&e->head, NPUPROF_ENTRY_SKIP);
        return NULL;
    }
    e->head.a = number << 8 | s->kind;
    e->name = s->name;
    e->category = s->category;
    e->file = s->file;
    e->line = s->line;
    npuprof_table_finish_entry_(&e->head, NPUPROF_ENTRY_SITE);
    NPUPROF_STORE_RELEASE_(site_id, id);
    npuprof_table_publish_entry_(&e->head, id, hash);
    return e;
}

/* The entry of a call site by its texts. file: NULL if it is not known. NULL: the table is full. */
NPUPROF_OWN_ static const npuprof_site_entry_ *npuprof_table_intern_site_(uint32_t kind, const char *category,
                                                             const char *name, const char *file,
                                                             uint32_t line)
{
    const bool has_category = category && *category;
    npuprof_table_site_ s = { kind, 0, 0, 0, 0 };
    s.name = npuprof_table_intern_string_(name ? name : "");
    if (has_category) s.category = npuprof_table_intern_string_(category);
    if (!s.name || (has_category && !s.category)) return NULL;
    if (file) s.file = npuprof_table_intern_string_(file);
    if (s.file) s.line = line;
    return npuprof_table_enter_site_(&s);
}

/* Its number. 0: the table is full. */
NPUPROF_OWN_ static uint32_t npuprof_table_intern_site_number_(uint32_t kind, const char *category, const char *name,
                                                  const char *file, uint32_t line)
{
    const npuprof_site_entry_ *e = npuprof_table_intern_site_(kind, category, name, file, line);
    return e ? e->head.a >> 8 : 0;
}

/* The number of the call site that is like this one, and whose spans have results. 0: the table is full. */
NPUPROF_COLD_ NPUPROF_OWN_ static uint32_t npuprof_table_site_with_results_(uint32_t number)
{
    const npuprof_site_entry_ *e = npuprof_table_site_at_(number);
    npuprof_table_site_ s = { e->head.a & 0xFF, e->name, e->category, e->file, e->line };
    if (s.line & NPUPROF_SITE_RESULTS_) return number;
    s.line |= NPUPROF_SITE_RESULTS_;
    e = npuprof_table_enter_site_(&s);
    return e ? e->head.a >> 8 : 0;
}

/* ---- Notes: pairs and pauses. They come without an end in a process that lives long, so they get half of
   the table at most: a new call site always finds space beside them. */

NPUPROF_COLD_ NPUPROF_OWN_ static bool npuprof_table_takes_notes_(void)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    const uint64_t all = h->table_bytes + (uint64_t)npuprof_arena_.page_count * h->chunk_bytes;
    return NPUPROF_LOAD_ACQUIRE_(&h->table_used) < h->table_first + (all - h->table_first) / 2;
}

/* ---- Pairs: metadata, and variables that were refused. False: there is no space, which is counted. */
NPUPROF_COLD_ NPUPROF_OWN_ static bool npuprof_table_add_pair_(uint32_t type, const char *key, const char *value)
{
    uint32_t id;
    const bool fits = npuprof_table_takes_notes_();
    const uint32_t key_id = fits ? npuprof_table_intern_string_(key ? key : "") : 0;
    const uint32_t value_id = key_id ? npuprof_table_intern_string_(value ? value : "") : 0;
    npuprof_pair_entry_ *e = NULL;
    if (value_id) e = (npuprof_pair_entry_ *)(void *)npuprof_table_add_entry_(sizeof *e, &id);
    if (!e) {
        NPUPROF_ADD_(&npuprof_arena_.header->lost[NPUPROF_LOST_NOTES], 1);
        return false;
    }
    e->b[0] = key_id;
    e->b[1] = value_id;
    npuprof_table_finish_entry_(&e->head, type);
    return true;
}
/* ==== src/record/args.h =============================================================== >>record/args ==== */

#include <string.h>

/* Arguments, as the units behind a record. Their keys lie in the table; a macro remembers the keys of its
   arguments. Words of npuprof_keys_, one for each macro, written by whatever thread comes first:
     generation   of the arena for which the rest is right. Stored with release when `key` has been emptied
     key[k]       address of the text of argument k's key. NULL -> `taken` by CAS, then the address, with
                  release, by the same thread
     word[k]      low bits of the argument's first unit, stored before key[k]
     fast, text   see begin.h
   A place keeps its first key for ever. Why: another thread may be between reading key[k] and word[k]. An
   inlined copy of the macro that has another key there looks its key up each time. */

/* Units that a list of arguments takes. */
NPUPROF_OWN_ static size_t npuprof_record_count_arg_units_(npuprof_args args)
{
    size_t units = 0;
    for (size_t i = 0; i < args.count; i++) {
        units++;
        if (args.items[i].type == NPUPROF_ARG_STR && args.items[i].value.s) {
            const size_t length = strlen(args.items[i].value.s);
            const size_t limit = NPUPROF_ARG_STRING_LIMIT_, kept = length < limit ? length : limit;
            if (kept > 8) units += NPUPROF_UNITS_(kept - 8);
        }
    }
    return units;
}

/* Forgets the keys of another arena. */
NPUPROF_OWN_ static void npuprof_record_forget_keys_(npuprof_keys_ *keys, uint32_t generation)
{
    if (NPUPROF_LOAD_ACQUIRE_(&keys->generation) == generation) return;
    for (unsigned k = 0; k < NPUPROF_KEYS_; k++) NPUPROF_STORE_(&keys->key[k], NULL);
    NPUPROF_STORE_RELEASE_(&keys->generation, generation);
}

/* Remembers the word of key number k, unless another thread has taken the place. */
NPUPROF_OWN_ static void npuprof_record_remember_key_(npuprof_keys_ *keys, size_t k, const char *key, uint64_t word)
{
    static const char taken = 0;
    const char *nobody = NULL;
    if (NPUPROF_LOAD_(&keys->key[k]) || !NPUPROF_CAS_(&keys->key[k], &nobody, &taken)) return;
    NPUPROF_STORE_(&keys->word[k], word);
    NPUPROF_STORE_RELEASE_(&keys->key[k], key);
}

/* The part of an argument's first unit that its key and place in the list give. keys may be NULL. 0: the
   table is full. */
NPUPROF_OWN_ static uint64_t npuprof_record_key_word_(npuprof_keys_ *keys, size_t k, const char *key, uint32_t generation)
{
    const bool kept = keys && k < NPUPROF_KEYS_;
    const bool current = kept && NPUPROF_LOAD_ACQUIRE_(&keys->generation) == generation;
    if (current && NPUPROF_LOAD_ACQUIRE_(&keys->key[k]) == key) return NPUPROF_LOAD_(&keys->word[k]);
    const uint32_t id = npuprof_table_intern_string_(key);
    if (!id) return 0;
    const uint64_t word = (uint64_t)id << (NPUPROF_ID_BITS_ + 4) | NPUPROF_CONTROL_ARG_;
    if (kept) {
        npuprof_record_forget_keys_(keys, generation);
        npuprof_record_remember_key_(keys, k, key, word);
    }
    return word;
}

/* Writes the arguments from u on. False: a key did not fit into the table. */
NPUPROF_OWN_ static bool npuprof_record_write_args_(npuprof_unit_ *u, npuprof_keys_ *keys, npuprof_args args)
{
    const uint32_t generation = NPUPROF_LOAD_(&npuprof_arena_generation_);
    for (size_t i = 0; i < args.count; i++) {
        const npuprof_arg *a = &args.items[i];
        uint32_t type = a->type;
        size_t length = 0;
        const uint64_t word = npuprof_record_key_word_(keys, i, a->key, generation);
        if (!word) return false;
        npuprof_unit_ *const head = u++;
        uint64_t value = a->value.u;
        if (type == NPUPROF_ARG_STR) {
            const char *text = a->value.s;
            const size_t whole = text ? strlen(text) : 0;
            value = 0;
            length = text ? npuprof_utf8_cut_(text, whole, NPUPROF_ARG_STRING_LIMIT_) : 0;
            if (!text) type = NPUPROF_ARG_STR_NULL_;
            else if (length < whole) type = NPUPROF_ARG_STR_CUT_;
            if (length) memcpy(&value, text, length < 8 ? length : 8);
            if (length > 8) {
                memcpy(u, text + 8, length - 8);
                u += NPUPROF_UNITS_(length - 8);
            }
        }
        head->w1 = value;
        head->w0 = (uint64_t)length << (32 + NPUPROF_ID_BITS_) | (uint64_t)type << NPUPROF_ID_BITS_ | word;
    }
    return true;
}
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_
/* ==== src/record/enter.h ============================================================= >>record/enter ==== */

#include <string.h>

/* How a record begins, whatever it is: the library is ready, the thread has a slot, the call site is known.
   Between npuprof_record_enter_() and npuprof_record_leave_() the slot is `busy`: a signal handler that
   comes in between records into a slot of its own. Words: slot.busy (state.h), and of a call site:
     id           its number in the table
     generation   of the arena and categories for which id is right; with bit 31 set, the site is not to be
                  recorded. Stored with release after id, read with acquire before it
   This part does not know what a record looks like. */

/* What control/ hands down when capture control gets its first condition; NULL until then. `begins` is stored
   last, with release, and who uses one of them has loaded it with acquire.
   begins   as which kind a PROF_RECORD or PROF_INFERENCE is to be recorded; NPUPROF_KIND_NONE: not at all
   ends     its end. ticks: how long it took, if it was recorded, else UINT64_MAX
   moved    a thread has got a new chunk. Its slot is busy, and it may be in a signal handler */
static struct {
    uint32_t (*begins)(uint32_t kind);
    void (*ends)(uint32_t kind, uint64_t ticks);
    void (*moved)(void);
} npuprof_record_hooks_;

/* A list of categories. */
typedef struct npuprof_record_list_ {
    int mode;                      /* 0 all, 1 only these, -1 all but these */
    char words[256];               /* with commas between */
    uint32_t seen;                 /* bit n: number n of them occurred, n < 32. Atomic */
} npuprof_record_list_;

/* The one that holds: control/ hands it down with release when it is written. NULL: all are recorded. */
static npuprof_record_list_ *npuprof_record_categories_;

/* 0 not yet, 1 being set up, 2 ready, 3 a child of fork whose arena is still the parent's mapped file. Handed
   down by process/setup.h and fork.h; stored with release, read by all with acquire. */
static uint32_t npuprof_record_setup_;

/* Sets everything up if that has not been done. False: it is not possible, or another thread is at it. */
NPUPROF_OWN_ static bool npuprof_record_is_ready_(void)
{
    if (NPUPROF_LOAD_ACQUIRE_(&npuprof_record_setup_) == 2) return true;
    (void)npuprof_opens_(1);
    return NPUPROF_LOAD_ACQUIRE_(&npuprof_record_setup_) == 2;
}

NPUPROF_API_ NPUPROF_COLD_ void npuprof_count_lost_(unsigned cause, uint64_t count)
{
    uint64_t *lost = NULL;
    if (npuprof_record_is_ready_() || npuprof_arena_has_leader_()) lost = NPUPROF_LOAD_(&npuprof_lost_);
    if (lost) NPUPROF_ADD_(&lost[cause], count);
}

/* Counts a span or event that did not fit into the slot's chunk, for which no other was had. It is too deep
   if not even a fresh chunk would hold it beside the open spans. Why in the slot: threads in a full arena
   need not share a counter. */
NPUPROF_COLD_ NPUPROF_OWN_ static void npuprof_record_count_full_(npuprof_slot_ *slot)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    if (2 * (size_t)(slot->top - slot->open) + 4 > s->units) npuprof_count_lost_(NPUPROF_LOST_DEPTH, 1);
    else if (s->when_full == NPUPROF_KEEP_NEWEST && NPUPROF_LOAD_(&s->frozen))
        npuprof_count_lost_(NPUPROF_LOST_READING, 1);
    else NPUPROF_ADD_(&slot->head.lost, 1);      /* Why atomic: npuprof_clear() may set it to 0 */
}

/* Gives the calling thread a slot. False: there is none. Why the signals are held: a handler that records
   would take another. */
NPUPROF_COLD_ NPUPROF_OWN_ static bool npuprof_record_start_thread_(void)
{
    npuprof_os_signals_ held;
    const int error_before = errno;
    if (!npuprof_record_is_ready_()) return false;
    /* Why asked first: a thread that gets no slot pays for this with each record. */
    if (!NPUPROF_LOAD_(&npuprof_arena_.slots_free) && npuprof_arena_is_full_()) return false;
    npuprof_os_hold_signals_(&held);
    npuprof_slot_ *const slot = npuprof_slot_take_(NULL, false, &held);
    /* Why a look: while it waited for a chunk, with its signals let through, a handler recorded and gave the
       thread a slot. */
    bool taken = slot && npuprof_slot_mine_() == &npuprof_slot_none_;
    if (taken) {
        slot->by_hand_count = npuprof_slot_skipped_();
        taken = npuprof_slot_become_(slot);
    }
    if (taken) npuprof_slot_clear_skipped_();
    else if (slot) npuprof_slot_give_back_(slot);
    npuprof_os_release_signals_(&held);
    errno = error_before;
    return npuprof_slot_mine_() != &npuprof_slot_none_;
}

/* The slot to record into: the thread's, or in a signal handler that interrupted a record the first nested
   one that is not busy. NULL: there is none, and nothing was counted. */
NPUPROF_OWN_ static NPUPROF_SLOW_ npuprof_slot_ *npuprof_record_enter_slow_(void)
{
    if (npuprof_slot_mine_() == &npuprof_slot_none_ && !npuprof_record_start_thread_()) return NULL;
    npuprof_slot_ *slot = npuprof_slot_mine_();
    for (int contexts = 1; NPUPROF_LOAD_(&slot->busy); contexts++) {
        if (contexts == NPUPROF_SLOT_CONTEXTS_) return NULL;
        if (!slot->nested) {
            npuprof_os_signals_ held;
            npuprof_os_hold_signals_(&held);
            if (!slot->nested) slot->nested = npuprof_slot_take_(slot, true, &held);
            npuprof_os_release_signals_(&held);
        }
        if (!slot->nested) return NULL;
        slot = slot->nested;
    }
    return slot;
}

/* The slot to record into, busy from now on. NULL: there is none, and nothing was counted. */
NPUPROF_OWN_ static inline npuprof_slot_ *npuprof_record_enter_(void)
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    if (NPUPROF_UNLIKELY_(npuprof_test_and_set_(&slot->busy))) {
        slot = npuprof_record_enter_slow_();
        if (!slot) return NULL;
        NPUPROF_STORE_(&slot->busy, 1);
        NPUPROF_SIGNAL_FENCE_();
    }
    return slot;
}

NPUPROF_OWN_ static inline void npuprof_record_leave_(npuprof_slot_ *slot)
{
    NPUPROF_SIGNAL_FENCE_();
    NPUPROF_STORE_(&slot->busy, 0);
}

/* ---- Call sites */

/* Does this list let the category pass? Marks which of its words occurred. */
NPUPROF_OWN_ static NPUPROF_SLOW_ bool npuprof_record_list_passes_(npuprof_record_list_ *list, const char *category)
{
    const size_t length = category ? strlen(category) : 0;
    const char *at = list->words, *word;
    size_t bytes;
    for (unsigned n = 0; npuprof_text_next_item_(&at, &word, &bytes); n++) {
        if (bytes != length || memcmp(word, category, bytes) != 0) continue;
        const uint32_t seen = NPUPROF_LOAD_(&list->seen);
        if (n < 32) NPUPROF_STORE_(&list->seen, seen | (uint32_t)1 << n);
        return list->mode > 0;
    }
    return list->mode < 0;
}

/* Is this category to be recorded? */
NPUPROF_OWN_ static inline bool npuprof_record_category_passes_(const char *category)
{
    npuprof_record_list_ *const list = NPUPROF_LOAD_ACQUIRE_(&npuprof_record_categories_);
    return !list || list->mode == 0 || npuprof_record_list_passes_(list, category);
}

/* Makes a call site known for this arena and these categories. False: it is not to be recorded, or the
   table is full, which is counted. */
NPUPROF_OWN_ static NPUPROF_SLOW_ bool npuprof_record_resolve_site_(npuprof_site_ *site)
{
    /* Why acquire: the categories that are looked at below must not be older than the generation. */
    const uint32_t generation = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_generation_);
    const uint32_t muted = generation | 0x80000000u;
    if (NPUPROF_LOAD_ACQUIRE_(&site->generation) == muted) return false;
    const char *const category = NPUPROF_LOAD_ACQUIRE_(&site->category);
    const bool passes = npuprof_record_category_passes_(category);
    if (passes) {
        const char *const name = NPUPROF_LOAD_(&site->name);
        const uint32_t id = npuprof_table_intern_site_number_(site->kind, category, name, site->file,
                                                                site->line);
        if (!id) {
            npuprof_count_lost_(NPUPROF_LOST_NAMES, 1);
            return false;
        }
        NPUPROF_STORE_(&site->id, (npuprof_site_id_)id);
    }
    NPUPROF_STORE_RELEASE_(&site->generation, passes ? generation : muted);
    return passes;
}

NPUPROF_OWN_ static inline bool npuprof_record_is_resolved_(npuprof_site_ *site)
{
    const uint32_t known = NPUPROF_LOAD_ACQUIRE_(&site->generation);
    const bool current = known == NPUPROF_LOAD_(&npuprof_arena_generation_);
    return NPUPROF_LIKELY_(current) || npuprof_record_resolve_site_(site);
}

/* The number of a call site whose name came at run time. 0: it is not to be recorded, or the table is full,
   which is counted. */
NPUPROF_OWN_ static uint32_t npuprof_record_resolve_name_(uint32_t kind, const char *category, const char *name)
{
    /* A memory record has its pool's name where others have a category. */
    if (!npuprof_record_category_passes_(kind == NPUPROF_KIND_MEMORY ? "memory" : category)) return 0;
    const uint32_t id = npuprof_table_intern_site_number_(kind, category, name, NULL, 0);
    if (!id) npuprof_count_lost_(NPUPROF_LOST_NAMES, 1);
    return id;
}
/* ==== src/record/span.h =============================================================== >>record/span ==== */

#include <string.h>

/* Writes records into a slot, and pushes and ends its open spans: all on the slow path, and what both paths
   share. The slot is busy, so its plain words are the caller's. The words of a record, in this order:
     extra units and arguments   plain
     w1 of the first unit        relaxed
     w0 of the first unit        with release: it makes all of this a record. So a process that is killed
                                 leaves a whole record or none
     w1 of a span                once more when it ends, with release
   This part does not know which macro calls it. */

/* ---- Spans that were left behind

   longjmp() over a scope, or a child of vfork() that ends in one, leaves it open, and nothing ends it if no
   span is around it. When the place for open spans fills up, those that lie deeper in the stack than who
   begins a span now are over. How deep a span lies is noted above the first eighth of that place only: there
   all begins take the slow path (the slot's `end` says where). The notes are in the half of slot.open that
   tokens do not reach; the first word of it is up to which open span there are none.
   Why only then, and only a long row of them near by: a thread may have several stacks, of coroutines or
   signal handlers, and what lies on another one is not over. */

/* What the frames of this library's functions may differ in; those of begin_slow_() do not. */
enum { NPUPROF_RECORD_NEAR_ = 512 / 4, NPUPROF_RECORD_FAR_ = (256 << 10) / 4 };     /* in 4 bytes */
#define NPUPROF_RECORD_HERE_(local, exact) \
    npuprof_record_here_(NPUPROF_FRAME_(local), NPUPROF_FRAME_IS_EXACT_ && (exact))

/* So many spans may be open in a slot. */
NPUPROF_OWN_ static inline uint32_t npuprof_record_depth_(void) { return npuprof_arena_.units / 2 - 2; }

/* Where the depth in the stack of open span number `depth` is noted. */
NPUPROF_OWN_ static inline npuprof_token_ *npuprof_record_note_(npuprof_slot_ *slot, uint32_t depth)
{
    return &slot->open[npuprof_arena_.units / 2 + 1 + depth];
}

/* exact: it is the frame of npuprof_record_begin_slow_(). */
NPUPROF_OWN_ static inline uint32_t npuprof_record_here_(const void *frame, bool exact)
{
    return (uint32_t)((uintptr_t)frame >> 2 & ~(uintptr_t)1) | exact;
}

/* Sets where the next record takes the slow path, behind so many units that are written now: before there can
   be more open spans than fit. On the fast path no depth is noted. NULL: the chunk has no space for the
   units. */
NPUPROF_OWN_ static inline npuprof_unit_ *npuprof_record_set_end_(npuprof_slot_ *slot, size_t units)
{
    npuprof_unit_ *const end = npuprof_chunk_units_(npuprof_slot_current_chunk_(slot)) + npuprof_arena_.units;
    const size_t depth = (size_t)(slot->top - slot->open), most = npuprof_record_depth_(), noted = most / 8;
    const size_t free_units = depth >= noted ? 0 : most - noted - 2, room = (size_t)(end - slot->cursor);
    if (room < units) return NULL;
    npuprof_token_ *const none = npuprof_record_note_(slot, 0);
    if (free_units) *none = UINT32_MAX;
    else if (*none > depth) *none = (npuprof_token_)depth;
    slot->end = room - units < free_units ? end : slot->cursor + units + free_units;
    return slot->cursor;
}

NPUPROF_OWN_ static inline uint32_t npuprof_record_site_of_(npuprof_slot_ *slot, const npuprof_token_ *e)
{
    const npuprof_unit_ *const u = npuprof_slot_open_unit_(slot, npuprof_slot_current_chunk_(slot), e);
    return (uint32_t)NPUPROF_LOAD_(&u->w0) & NPUPROF_ID_MASK_;
}

/* Ends what was left behind, before a span of this site begins at that frame. */
NPUPROF_COLD_ NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_record_sweep_(npuprof_slot_ *slot, uint32_t site,
                                                                  uint32_t here, uint64_t now)
{
    const uint32_t most = npuprof_record_depth_();
    const uint32_t none = *npuprof_record_note_(slot, 0);
    uint32_t depth = (uint32_t)(slot->top - slot->open), last = depth;
    bool doubtful = false;
    for (uint32_t at = depth; at > none && at <= most && !(slot->open[at] & NPUPROF_TOKEN_BY_HAND_); at--) {
        const uint32_t note = *npuprof_record_note_(slot, at);
        const int32_t deeper = (int32_t)((here & ~1u) - (note & ~1u));
        const int32_t slack = here & note & 1 ? 0 : NPUPROF_RECORD_NEAR_;
        const bool same = deeper <= slack && deeper >= -slack;
        if (!same && (deeper < 0 || deeper > NPUPROF_RECORD_FAR_)) break;
        /* In one frame, a scope that begins again is over, with all that began since. Another one may be
           around the new one, and then so may be what lies below it. */
        const bool again = same && npuprof_record_site_of_(slot, slot->open + at) == site;
        doubtful = (doubtful || same) && !again;
        if (!doubtful) depth = at - 1;
    }
    /* Why fewer where many have no note: there is room for no more. */
    if (last - depth < npuprof_min_(most / 4, (most - npuprof_min_(none, most)) / 2)) return;
    for (; last > depth; last--) {
        npuprof_unit_ *const u =
            npuprof_slot_open_unit_(slot, npuprof_slot_current_chunk_(slot), slot->open + last);
        NPUPROF_STORE_RELEASE_(&u->w1, now | NPUPROF_END_CUT_);
        slot->top--;
    }
}

/* Space for so many units at the cursor, in a chunk that can hold a record that starts now. NULL: the arena
   is full, which is not counted. */
NPUPROF_OWN_ static inline npuprof_unit_ *npuprof_record_reserve_(npuprof_slot_ *slot, size_t units, uint64_t now)
{
    const bool in_reach = (slot->deadline - now) >> NPUPROF_START_BITS_ == 0;
    if (NPUPROF_LIKELY_((size_t)(slot->end - slot->cursor) >= units && in_reach)) return slot->cursor;
    if (slot->cursor && in_reach && npuprof_record_set_end_(slot, units)) return slot->cursor;
    /* The open spans move along, two units each. */
    if (units + 2 * (size_t)(slot->top - slot->open) > npuprof_arena_.units) return NULL;
    npuprof_unit_ *u = npuprof_slot_begin_chunk_(slot, now);
    if (NPUPROF_LOAD_ACQUIRE_(&npuprof_record_hooks_.begins)) npuprof_record_hooks_.moved();
    return u ? npuprof_record_set_end_(slot, units) : NULL;
}

/* Writes one record: the first unit, extra units, arguments. NULL: it did not fit, which is counted.
   Arguments that do not fit are dropped, which is counted apart, and the record is kept. */
NPUPROF_OWN_ static npuprof_unit_ *npuprof_record_emit_(npuprof_slot_ *slot, uint32_t id, uint64_t now, uint64_t w1,
                                           const npuprof_unit_ *extra, size_t extra_count,
                                           npuprof_keys_ *keys, npuprof_args args)
{
    size_t arg_units = args.count ? npuprof_record_count_arg_units_(args) : 0;
    npuprof_unit_ *u = npuprof_record_reserve_(slot, 1 + extra_count + arg_units, now);
    if (!u && arg_units) {
        u = npuprof_record_reserve_(slot, 1 + extra_count, now);
        if (u) npuprof_count_lost_(NPUPROF_LOST_ARGUMENTS, args.count);
        arg_units = 0;
    }
    if (!u) {
        npuprof_record_count_full_(slot);
        return NULL;
    }
    if (extra_count) memcpy(u + 1, extra, extra_count * sizeof *extra);
    if (arg_units && !npuprof_record_write_args_(u + 1 + extra_count, keys, args)) {
        memset(u + 1 + extra_count, 0, arg_units * sizeof *u);
        npuprof_count_lost_(NPUPROF_LOST_ARGUMENTS, args.count);
        arg_units = 0;
    }
    NPUPROF_STORE_(&u->w1, w1);
    NPUPROF_STORE_RELEASE_(&u->w0, now << NPUPROF_ID_BITS_ | id);
    slot->cursor = u + 1 + extra_count + arg_units;
    return u;
}

/* ---- Open spans */

/* Pushes a span that was written at u. Returns its token.
   Why a token and no address: a goto past a scope leaves garbage in it, which must not end another span. */
NPUPROF_OWN_ static inline npuprof_token_ npuprof_record_push_span_(npuprof_slot_ *slot, npuprof_unit_ *u, uint32_t here)
{
    npuprof_token_ *const top = slot->top;
    const npuprof_token_ token = (npuprof_token_)((uintptr_t)u - slot->token_zero);
    const uint32_t depth = (uint32_t)(top + 1 - slot->open), most = npuprof_record_depth_();
    if (depth > most / 8 && depth <= most)
        *npuprof_record_note_(slot, depth) = here;
    top[1] = NPUPROF_CLOCK_IS_FAST_() ? token : token | NPUPROF_TOKEN_SLOW_;
    slot->top = top + 1;
    return token;
}

/* Writes the first unit of a span at u and pushes the span. For where the clock is known to be fast. */
NPUPROF_OWN_ static inline npuprof_token_ npuprof_record_put_span_(npuprof_slot_ *slot, npuprof_unit_ *u, uint64_t w0)
{
    NPUPROF_STORE_(&u->w1, NPUPROF_END_OPEN_);
    NPUPROF_STORE_RELEASE_(&u->w0, w0);
    const npuprof_token_ token = (npuprof_token_)((uintptr_t)u - slot->token_zero);
    slot->top[1] = token;
    /* Why the fence: compilers then add in memory, one instruction less. */
    NPUPROF_SIGNAL_FENCE_();
    slot->top++;
    return token;
}

/* Before a span begins: is the place for open spans nearly full? */
NPUPROF_OWN_ static inline void npuprof_record_make_room_(npuprof_slot_ *slot, uint32_t id, uint64_t now, uint32_t here)
{
    const uint32_t depth = (uint32_t)(slot->top - slot->open);
    if (NPUPROF_UNLIKELY_(depth > npuprof_record_depth_() / 4 * 3))
        npuprof_record_sweep_(slot, id, here, now);
}

/* Begins a span. 0: it did not fit, which is counted. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ npuprof_token_ npuprof_record_begin_span_args_(npuprof_slot_ *slot, uint32_t id,
                                                                        uint64_t now, npuprof_keys_ *keys,
                                                                        npuprof_args args)
{
    const uint32_t here = NPUPROF_RECORD_HERE_(slot, false);
    npuprof_record_make_room_(slot, id, now, here);
    npuprof_unit_ *u = npuprof_record_emit_(slot, id, now, NPUPROF_END_OPEN_, NULL, 0, keys, args);
    return u ? npuprof_record_push_span_(slot, u, here) : 0;
}

/* The same without arguments. */
NPUPROF_OWN_ static inline npuprof_token_ npuprof_record_begin_span_at_(npuprof_slot_ *slot, uint32_t id, uint64_t now,
                                                           uint32_t here)
{
    npuprof_record_make_room_(slot, id, now, here);
    npuprof_unit_ *const u = npuprof_record_reserve_(slot, 1, now);
    if (!u) {
        npuprof_record_count_full_(slot);
        return 0;
    }
    NPUPROF_STORE_(&u->w1, NPUPROF_END_OPEN_);
    NPUPROF_STORE_RELEASE_(&u->w0, now << NPUPROF_ID_BITS_ | id);
    slot->cursor = u + 1;
    return npuprof_record_push_span_(slot, u, here);
}

NPUPROF_OWN_ static inline npuprof_token_ npuprof_record_begin_span_(npuprof_slot_ *slot, uint32_t id, uint64_t now)
{
    const uint32_t here = NPUPROF_RECORD_HERE_(slot, false);
    return npuprof_record_begin_span_at_(slot, id, now, here);
}

/* flags: 0 or NPUPROF_END_CUT_. */
NPUPROF_OWN_ static inline void npuprof_record_end_span_(npuprof_unit_ *u, uint64_t now, uint64_t flags)
{
    NPUPROF_STORE_RELEASE_(&u->w1, (now & ~NPUPROF_END_CUT_) | flags);
}

/* Counts a record for which there is no slot. */
NPUPROF_COLD_ NPUPROF_OWN_ static npuprof_token_ npuprof_record_count_no_context_(void)
{
    npuprof_count_lost_(NPUPROF_LOST_CONTEXT, 1);
    return 0;
}

NPUPROF_OWN_ static NPUPROF_SLOW_ npuprof_token_ npuprof_record_begin_slow_(npuprof_site_ *site)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return npuprof_record_count_no_context_();
    npuprof_token_ token = 0;
    if (npuprof_record_is_resolved_(site))
        token = npuprof_record_begin_span_at_(slot, (uint32_t)NPUPROF_LOAD_(&site->id), npuprof_clock_(),
                                              NPUPROF_RECORD_HERE_(slot, true));
    npuprof_record_leave_(slot);
    return token;
}
/* ==== src/record/begin.h ============================================================= >>record/begin ==== */

#include <string.h>

/* How spans begin. Each kind has a fast path and a slow one (..._slow_), a function of its own. Why: the
   fast one then needs no stack frame. The fast path is taken if the clock is one instruction, the call site
   (and its keys) are known, the slot is not busy, the chunk has space, and no argument is a string. It
   looks nothing up and counts nothing: if one of these does not hold, the slow path does all of it again.
   Words of npuprof_keys_, beside those of args.h, each with release:
     fast    the fast generation for which the call site and the keys that are there are known
     text    where the site whose name and category came last at this place is in the table, in bytes, << 32 |
             the generation */

/* ---- Name and category are constants of the macro */

NPUPROF_API_ npuprof_token_ npuprof_begin_(npuprof_site_ *site)
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    const uint32_t known = NPUPROF_LOAD_ACQUIRE_(&site->generation);
    if (NPUPROF_UNLIKELY_(npuprof_differ_(known, &npuprof_arena_fast_)))
        return npuprof_record_begin_slow_(site);
    if (NPUPROF_UNLIKELY_(npuprof_test_and_set_(&slot->busy))) return npuprof_record_begin_slow_(site);
    const uint64_t now = npuprof_clock_fast_();
    npuprof_unit_ *const u = slot->cursor;
    if (NPUPROF_UNLIKELY_(u == slot->end || now > slot->deadline)) {
        npuprof_record_leave_(slot);
        return npuprof_record_begin_slow_(site);
    }
    const npuprof_token_ token =
        npuprof_record_put_span_(slot, u, now << NPUPROF_ID_BITS_ | NPUPROF_LOAD_PLAIN_(&site->id));
    slot->cursor++;
    npuprof_record_leave_(slot);
    return token;
}

/* Writes the arguments of a record that begins at the cursor, if the fast path may. False: nothing was
   written. */
NPUPROF_OWN_ static inline bool npuprof_record_write_args_fast_(const npuprof_slot_ *slot, const npuprof_keys_ *keys,
                                                   npuprof_args args, uint64_t now)
{
    npuprof_unit_ *const u = slot->cursor;
    const bool fits = (size_t)(slot->end - u) > args.count;
    if (NPUPROF_UNLIKELY_(!fits || now > slot->deadline || args.count > NPUPROF_KEYS_)) return false;
    for (size_t i = 0; i < args.count; i++) {
        const npuprof_arg *const a = &args.items[i];
        if (NPUPROF_UNLIKELY_(a->type >= NPUPROF_ARG_STR || NPUPROF_LOAD_ACQUIRE_(&keys->key[i]) != a->key)) {
            /* Without a first unit this is no record. It must not become part of the next one. */
            for (; i; i--) u[i].w0 = u[i].w1 = 0;
            return false;
        }
        u[1 + i].w1 = a->value.u;
        u[1 + i].w0 = NPUPROF_LOAD_PLAIN_(&keys->word[i]) | (uint64_t)a->type << NPUPROF_ID_BITS_;
    }
    return true;
}

/* From now on the fast path may be taken here: the call site is known, and those of its keys that are
   there. */
NPUPROF_OWN_ static void npuprof_record_make_keys_fast_(const npuprof_site_ *site, npuprof_keys_ *keys)
{
    const uint32_t generation = NPUPROF_LOAD_ACQUIRE_(&site->generation);
    if (keys && generation == NPUPROF_LOAD_(&npuprof_arena_generation_)) {
        npuprof_record_forget_keys_(keys, generation);
        NPUPROF_STORE_RELEASE_(&keys->fast, generation);
    }
}

NPUPROF_OWN_ static NPUPROF_SLOW_ npuprof_token_
npuprof_record_begin_args_slow_(npuprof_site_ *site, npuprof_keys_ *keys, npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return npuprof_record_count_no_context_();
    npuprof_token_ token = 0;
    if (npuprof_record_is_resolved_(site)) {
        const uint32_t id = (uint32_t)NPUPROF_LOAD_(&site->id);
        token = npuprof_record_begin_span_args_(slot, id, npuprof_clock_(), keys, args);
        npuprof_record_make_keys_fast_(site, keys);
    }
    npuprof_record_leave_(slot);
    return token;
}

NPUPROF_API_ npuprof_token_ npuprof_begin_args_(npuprof_site_ *site, npuprof_keys_ *keys, npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    if (NPUPROF_UNLIKELY_(npuprof_differ_(NPUPROF_LOAD_ACQUIRE_(&keys->fast), &npuprof_arena_fast_) ||
                          npuprof_test_and_set_(&slot->busy)))
        return npuprof_record_begin_args_slow_(site, keys, args);
    const uint64_t now = npuprof_clock_fast_();
    npuprof_token_ token = 0;
    const bool done = npuprof_record_write_args_fast_(slot, keys, args, now);
    if (NPUPROF_LIKELY_(done)) {
        const uint64_t w0 = now << NPUPROF_ID_BITS_ | NPUPROF_LOAD_PLAIN_(&site->id);
        token = npuprof_record_put_span_(slot, slot->cursor, w0);
        slot->cursor += 1 + args.count;
    }
    npuprof_record_leave_(slot);
    return NPUPROF_LIKELY_(done) ? token : npuprof_record_begin_args_slow_(site, keys, args);
}

/* ---- One argument, not a string. Its type comes as NPUPROF_ARG_* << NPUPROF_ARG_SHIFT_ */

NPUPROF_OWN_ static NPUPROF_SLOW_ npuprof_token_
npuprof_record_begin_arg_slow_(npuprof_keys_ *keys, const char *key, uint64_t type, uint64_t value,
                               npuprof_site_ *site)
{
    npuprof_arg a;
    npuprof_args args;
    a.key = key;
    a.type = (uint32_t)(type >> NPUPROF_ARG_SHIFT_);
    a.value.u = value;
    args.items = &a;
    args.count = 1;
    return npuprof_record_begin_args_slow_(site, keys, args);
}

NPUPROF_ASSERT_(arg_shift, NPUPROF_ARG_SHIFT_ == NPUPROF_ID_BITS_);

/* The fast path wrote the argument, and then saw that the chunk cannot hold this time. Takes the argument
   back from there, and begins the span on the slow path. */
NPUPROF_OWN_ static NPUPROF_SLOW_ npuprof_token_
npuprof_record_begin_arg_late_(npuprof_keys_ *keys, npuprof_site_ *site)
{
    npuprof_slot_ *const slot = npuprof_slot_mine_();
    npuprof_unit_ *const argument = slot->cursor + 1;
    const uint64_t type = argument->w0 ^ NPUPROF_LOAD_(&keys->word[0]), value = argument->w1;
    argument->w0 = argument->w1 = 0;
    npuprof_record_leave_(slot);
    return npuprof_record_begin_arg_slow_(keys, NPUPROF_LOAD_(&keys->key[0]), type, value, site);
}

/* Why the parameters are in this order: rdtsc needs rdx, so there is one that is used before it. */
NPUPROF_API_ npuprof_token_ npuprof_begin_arg_(npuprof_keys_ *keys, const char *key, uint64_t type,
                                               uint64_t value, npuprof_site_ *site)
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    if (NPUPROF_UNLIKELY_(npuprof_differ_(NPUPROF_LOAD_ACQUIRE_(&keys->fast), &npuprof_arena_fast_) ||
                          npuprof_is_other_(key, &keys->key[0]) || npuprof_test_and_set_(&slot->busy)))
        return npuprof_record_begin_arg_slow_(keys, key, type, value, site);
    npuprof_unit_ *const argument = slot->cursor + 1;
    if (NPUPROF_UNLIKELY_(argument >= slot->end)) {
        npuprof_record_leave_(slot);
        return npuprof_record_begin_arg_slow_(keys, key, type, value, site);
    }
    argument->w0 = NPUPROF_LOAD_PLAIN_(&keys->word[0]) | type;
    argument->w1 = value;
    const uint64_t now = npuprof_clock_fast_();
    /* Why the fence: the address is read again then, which takes no register across the clock. */
    NPUPROF_SIGNAL_FENCE_();
    if (NPUPROF_UNLIKELY_(now > slot->deadline)) return npuprof_record_begin_arg_late_(keys, site);
    npuprof_unit_ *const u = slot->cursor;
    const uint64_t w0 = now << NPUPROF_ID_BITS_ | NPUPROF_LOAD_PLAIN_(&site->id);
    const npuprof_token_ token = npuprof_record_put_span_(slot, u, w0);
    slot->cursor += 2;
    npuprof_record_leave_(slot);
    return token;
}

/* ---- A call site that is known by its number */

NPUPROF_OWN_ static NPUPROF_SLOW_ npuprof_token_ npuprof_record_begin_number_slow_(uint32_t number)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return npuprof_record_count_no_context_();
    const npuprof_token_ token = npuprof_record_begin_span_(slot, number, npuprof_clock_());
    npuprof_record_leave_(slot);
    return token;
}

/* Begins it; `slow` does where the fast path may not. Why inline: the compiler then sees which function that
   is. */
NPUPROF_ALWAYS_INLINE_ npuprof_token_ npuprof_record_begin_number_or_(uint32_t number,
                                                                      npuprof_token_ (*slow)(uint32_t))
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    if (NPUPROF_UNLIKELY_(npuprof_test_and_set_(&slot->busy))) return slow(number);
    const uint64_t now = npuprof_clock_fast_();
    npuprof_unit_ *const u = slot->cursor;
    if (NPUPROF_UNLIKELY_(u == slot->end || now > slot->deadline)) {
        npuprof_record_leave_(slot);
        return slow(number);
    }
    const npuprof_token_ token = npuprof_record_put_span_(slot, u, now << NPUPROF_ID_BITS_ | number);
    slot->cursor++;
    npuprof_record_leave_(slot);
    return token;
}

NPUPROF_OWN_ static inline npuprof_token_ npuprof_record_begin_number_(uint32_t number)
{
    return npuprof_record_begin_number_or_(number, npuprof_record_begin_number_slow_);
}

/* ---- Name and category come at run time, or may differ between inlined copies of one macro */

/* An entry, in_first: of the first part of the table. */
NPUPROF_OWN_ static inline const npuprof_entry_ *npuprof_record_entry_(uint32_t id, bool in_first)
{
    const void *const first = npuprof_arena_.table + (size_t)id * NPUPROF_TABLE_UNIT_;
    return (const npuprof_entry_ *)(in_first ? first : npuprof_table_entry_at_(id));
}

/* The site whose name and category came last at this place, if these are the same texts. NULL: they are not.
   in_first: it lies in the first part of the table, and so do its texts, which came before it.
   Why texts and not pointers: a buffer may hold another name by now. */
NPUPROF_OWN_ static inline const npuprof_site_entry_ *npuprof_record_match_text_(const npuprof_site_entry_ *e,
                                                                    bool in_first, const char *category,
                                                                    const char *name)
{
    if (NPUPROF_UNLIKELY_(!name)) return NULL;
    if (NPUPROF_UNLIKELY_(strcmp(name, (const char *)(npuprof_record_entry_(e->name, in_first) + 1)) != 0))
        return NULL;
    if (!category || !e->category) return !category && !e->category ? e : NULL;
    return strcmp(category, (const char *)(npuprof_record_entry_(e->category, in_first) + 1)) == 0 ? e : NULL;
}

/* Of a site in the table's first part, by its offset there. */
NPUPROF_OWN_ static inline const npuprof_site_entry_ *npuprof_record_match_first_(uint32_t at, const char *category,
                                                                     const char *name)
{
    const void *const e = npuprof_arena_.table + at;
    return npuprof_record_match_text_((const npuprof_site_entry_ *)e, true, category, name);
}

/* Of any site, by its id. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ const npuprof_site_entry_ *npuprof_record_match_anywhere_(uint32_t id,
                                                                                  const char *category,
                                                                                  const char *name)
{
    const void *const e = npuprof_table_entry_at_(id);
    return npuprof_record_match_text_((const npuprof_site_entry_ *)e, false, category, name);
}

/* Gives a call site the name and category of its first call. Does it have these?
   Why the pointers are compared: inlining may give one call site several constants. */
NPUPROF_OWN_ static bool npuprof_record_name_site_(npuprof_site_ *site, const char *category, const char *name)
{
    static const char taken = 0;               /* no name's address: the category comes first */
    const char *nothing = NULL;
    if (NPUPROF_LOAD_(&site->name) == NULL && NPUPROF_CAS_(&site->name, &nothing, &taken)) {
        NPUPROF_STORE_(&site->category, category);
        NPUPROF_STORE_RELEASE_(&site->name, name);
    }
    return NPUPROF_LOAD_ACQUIRE_(&site->name) == name && NPUPROF_LOAD_(&site->category) == category;
}

/* In keys->text beside the generation, which has 31 bits: the site does not lie in the table's first part. */
#define NPUPROF_KEYS_ANYWHERE_ 0x80000000u

/* The number of a call site, by its own name and category if it has one (constants of the call), else by
   `keys`, where they came at run time. 0: it is not to be recorded, or the table is full, which is
   counted. */
NPUPROF_OWN_ static uint32_t npuprof_record_named_id_(npuprof_site_ *site, npuprof_keys_ *keys, uint32_t kind,
                                         const char *category, const char *name)
{
    if (site && npuprof_record_name_site_(site, category, name))
        return npuprof_record_is_resolved_(site) ? (uint32_t)NPUPROF_LOAD_(&site->id) : 0;
    if (!keys) return npuprof_record_resolve_name_(kind, category, name);
    const uint32_t generation = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_generation_);
    const uint64_t text = NPUPROF_LOAD_ACQUIRE_(&keys->text);
    const npuprof_site_entry_ *e = NULL;
    const uint32_t place = (uint32_t)(text >> 32);
    if ((uint32_t)text == generation) e = npuprof_record_match_first_(place, category, name);
    else if ((uint32_t)text == (generation | NPUPROF_KEYS_ANYWHERE_))
        e = npuprof_record_match_anywhere_(place, category, name);
    if (e) return e->head.a >> 8;
    if (!npuprof_record_category_passes_(category)) return 0;
    e = npuprof_table_intern_site_(kind, category, name, keys->file, keys->line);
    if (!e) {
        npuprof_count_lost_(NPUPROF_LOST_NAMES, 1);
        return 0;
    }
    const uint32_t number = e->head.a >> 8, id = npuprof_table_site_id_(number);
    const bool in_first = id < npuprof_arena_.table_units;
    const uint64_t at = in_first ? id * NPUPROF_TABLE_UNIT_ : id;
    NPUPROF_STORE_RELEASE_(&keys->text, at << 32 | generation | (in_first ? 0 : NPUPROF_KEYS_ANYWHERE_));
    return number;
}

NPUPROF_API_ void npuprof_wait_(const npuprof_device *device)
{
    if (device->wait) (void)device->wait(device->user);
}

NPUPROF_API_ npuprof_token_ npuprof_begin_named_(const npuprof_device *device, npuprof_site_ *site,
                                                 npuprof_keys_ *keys, uint32_t kind, const char *category,
                                                 const char *name, npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return npuprof_record_count_no_context_();
    npuprof_token_ token = 0;
    const uint32_t id = npuprof_record_named_id_(site, keys, kind, category, name);
    if (id) {
        if (device && device->wait_around) {
            npuprof_record_leave_(slot);
            npuprof_wait_(device);
            NPUPROF_STORE_(&slot->busy, 1);
            NPUPROF_SIGNAL_FENCE_();
        }
        token = npuprof_record_begin_span_args_(slot, id, npuprof_clock_(), keys, args);
    }
    npuprof_record_leave_(slot);
    return token;
}

NPUPROF_API_ npuprof_token_ npuprof_begin_constant_(npuprof_site_ *site, const char *category,
                                                    const char *name)
{
    if (NPUPROF_LIKELY_(NPUPROF_LOAD_ACQUIRE_(&site->name) == name &&
                        NPUPROF_LOAD_(&site->category) == category))
        return npuprof_begin_(site);
    return npuprof_begin_named_(NULL, site, NULL, site->kind, category, name, PROF_NO_ARGS);
}

NPUPROF_OWN_ static NPUPROF_NOINLINE_ npuprof_token_
npuprof_record_begin_text_slow_(const char *name, const char *category, npuprof_keys_ *keys, uint32_t kind)
{
    const uint64_t text = NPUPROF_LOAD_ACQUIRE_(&keys->text);
    if ((uint32_t)text == (NPUPROF_LOAD_(&npuprof_arena_fast_) | NPUPROF_KEYS_ANYWHERE_)) {
        const npuprof_site_entry_ *const e =
            npuprof_record_match_anywhere_((uint32_t)(text >> 32), category, name);
        if (e) return npuprof_record_begin_number_(e->head.a >> 8);
    }
    return npuprof_begin_named_(NULL, NULL, keys, kind, category, name, PROF_NO_ARGS);
}

NPUPROF_API_ npuprof_token_ npuprof_begin_text_(const char *name, const char *category, npuprof_keys_ *keys,
                                                uint32_t kind)
{
    const uint64_t text = NPUPROF_LOAD_ACQUIRE_(&keys->text);
    const npuprof_site_entry_ *e = NULL;
    if (NPUPROF_LIKELY_(!npuprof_differ_((uint32_t)text, &npuprof_arena_fast_)))
        e = npuprof_record_match_first_((uint32_t)(text >> 32), category, name);
    return NPUPROF_LIKELY_(e != NULL) ? npuprof_record_begin_number_(e->head.a >> 8)
        : npuprof_record_begin_text_slow_(name, category, keys, kind);
}
/* ==== src/record/boundary.h ======================================================= >>record/boundary ==== */

/* Boundaries: the begins and ends of PROF_RECORD and PROF_INFERENCE. There capture control looks at its
   conditions (control/capture.h), by the functions in npuprof_record_hooks_.

   How an end comes here without a cost for other spans: a boundary that was recorded has a flag in its place
   among the open spans, so that its end takes the slow path (arena/state.h). One that was not recorded has a
   token that no span has: the flag alone, and its kind in bit 0. Without capture control there is neither.

   This part may not know what the conditions are. */

/* The span that is about to end, if capture control looks at it. */
typedef struct npuprof_record_boundary_ {
    uint32_t kind;                 /* NPUPROF_KIND_NONE: it does not */
    uint64_t ticks;                /* how long the span took */
} npuprof_record_boundary_;

/* Puts the flag on the span that was just begun. */
NPUPROF_OWN_ static npuprof_token_ npuprof_record_mark_boundary_(npuprof_token_ token)
{
    for (npuprof_slot_ *at = npuprof_slot_mine_(); at && token; at = at->nested)
        if ((*at->top & ~(npuprof_token_)NPUPROF_TOKEN_FLAGS_) == token) {
            *at->top |= NPUPROF_TOKEN_BOUNDARY_;
            break;
        }
    return token;
}

/* Begins a boundary while there is capture control; begins: that of npuprof_record_hooks_. */
NPUPROF_COLD_ NPUPROF_OWN_ static npuprof_token_
npuprof_record_begin_armed_(uint32_t (*begins)(uint32_t), npuprof_site_ *site, npuprof_keys_ *keys,
                            uint32_t kind, const char *category, const char *name, npuprof_args args)
{
    const uint32_t as = begins(kind);
    const npuprof_token_ unrecorded = NPUPROF_TOKEN_BOUNDARY_ | (kind == NPUPROF_KIND_RECORD);
    if (!as) return unrecorded;
    const bool same = as == kind;
    const npuprof_token_ token =
        npuprof_begin_named_(NULL, same ? site : NULL, same ? keys : NULL, as, category, name, args);
    return token ? npuprof_record_mark_boundary_(token) : unrecorded;
}

NPUPROF_API_ npuprof_token_ npuprof_begin_boundary_(npuprof_site_ *site, npuprof_keys_ *keys, uint32_t kind,
                                                    const char *category, const char *name)
{
    uint32_t (*const begins)(uint32_t) = NPUPROF_LOAD_ACQUIRE_(&npuprof_record_hooks_.begins);
    if (NPUPROF_UNLIKELY_(begins != NULL))
        return npuprof_record_begin_armed_(begins, site, keys, kind, category, name, PROF_NO_ARGS);
    return site ? npuprof_begin_constant_(site, category, name)
        : npuprof_begin_text_(name, category, keys, kind);
}

/* The end of a boundary that was not recorded? Then that is all. A token that a goto left as garbage may be
   taken for one; it then counts as an inference. */
NPUPROF_COLD_ NPUPROF_OWN_ static bool npuprof_record_end_unrecorded_(npuprof_token_ token)
{
    const npuprof_token_ in_flags = token & NPUPROF_TOKEN_FLAGS_;
    if (token != in_flags || (token & ~(npuprof_token_)1) != NPUPROF_TOKEN_BOUNDARY_) return false;
    if (NPUPROF_LOAD_ACQUIRE_(&npuprof_record_hooks_.begins))
        npuprof_record_hooks_.ends(token & 1 ? NPUPROF_KIND_RECORD : NPUPROF_KIND_INFERENCE, UINT64_MAX);
    return true;
}

/* What capture control is to know of a span before it ends. */
NPUPROF_COLD_ NPUPROF_OWN_ static npuprof_record_boundary_
npuprof_record_look_at_end_(const npuprof_slot_ *slot, npuprof_token_ token, uint64_t now)
{
    npuprof_record_boundary_ b = { NPUPROF_KIND_NONE, 0 };
    const npuprof_token_ top = *slot->top, flags = NPUPROF_TOKEN_FLAGS_;
    if ((top & ~flags) != token || !(top & NPUPROF_TOKEN_BOUNDARY_) || slot->top == slot->open) return b;
    npuprof_chunk_ *const chunk = npuprof_slot_current_chunk_(slot);
    const npuprof_unit_ *const u = npuprof_slot_open_unit_(slot, chunk, slot->top);
    const uint64_t start = top & NPUPROF_TOKEN_MOVED_ ? u[1].w1 : npuprof_chunk_start_ticks_(chunk, u->w0);
    b.kind = npuprof_table_site_at_((uint32_t)u->w0 & NPUPROF_ID_MASK_)->head.a & 0xFF;
    b.ticks = now > start ? now - start : 0;
    return b;
}
/* ==== src/record/end.h ================================================================= >>record/end ==== */

/* How spans end: by their token, or by PROF_END. A slot's open spans are a stack. A span that is ended
   while others lie above it ends those, too, as cut: their own ends can come no more, because a longjmp or
   an exception left them. PROF_BEGIN and PROF_END have no token. by_hand_bits remembers for the newest 64
   of them whether they were recorded, so that PROF_END ends the right one. Words: of the slot, plain, while
   it is busy; w1 of the span, with release. */

/* Ends the newest open span. */
NPUPROF_OWN_ static inline void npuprof_record_pop_span_(npuprof_slot_ *slot, uint64_t now, uint64_t flags)
{
    npuprof_unit_ *const u = npuprof_slot_open_unit_(slot, npuprof_slot_current_chunk_(slot), slot->top);
    npuprof_record_end_span_(u, now, flags);
    slot->top--;
}

/* Ends the open spans above `entry` as cut. */
NPUPROF_COLD_ NPUPROF_OWN_ static void npuprof_record_unwind_(npuprof_slot_ *slot, npuprof_token_ *entry, uint64_t now)
{
    while (slot->top > entry) {
        if ((*slot->top & NPUPROF_TOKEN_BY_HAND_) && slot->by_hand_count) {
            slot->by_hand_bits >>= 1;
            slot->by_hand_count--;
        }
        npuprof_record_pop_span_(slot, now, NPUPROF_END_CUT_);
    }
}

/* The open span of that token, or NULL. */
NPUPROF_OWN_ static npuprof_token_ *npuprof_record_find_open_(npuprof_slot_ *slot, npuprof_token_ token)
{
    for (npuprof_token_ *e = slot->top; e > slot->open; e--)
        if ((*e & ~(npuprof_token_)NPUPROF_TOKEN_FLAGS_) == token) return e;
    return NULL;
}

/* Ends the span of a token that is not on top of this slot. It may lie below other spans, or in the context
   that a signal handler left by longjmp; or the token is garbage, and nothing happens. */
NPUPROF_OWN_ static NPUPROF_SLOW_ void npuprof_record_unwind_to_(npuprof_slot_ *slot, npuprof_token_ token,
                                                    uint64_t now)
{
    for (npuprof_slot_ *at = npuprof_slot_mine_(); at; at = at->nested) {
        npuprof_token_ *const e = npuprof_record_find_open_(at, token);
        if (e) {
            npuprof_record_unwind_(at, e, now);
            npuprof_record_pop_span_(at, now, 0);
            /* Found in a context below the one in use: the contexts in between, busy or not, will not go
               on. */
            for (npuprof_slot_ *above = at; above != slot; above = above->nested) {
                npuprof_record_unwind_(above->nested, above->nested->open, now);
                NPUPROF_STORE_(&above->busy, 0);
            }
            return;
        }
        if (at == slot) return;
    }
}

/* Ends a span by its token, on top or not, with a stamp that may be shared. */
NPUPROF_OWN_ static inline void npuprof_record_close_at_(npuprof_slot_ *slot, npuprof_token_ token, uint64_t now)
{
    if (NPUPROF_LIKELY_(*slot->top == token)) npuprof_record_pop_span_(slot, now, 0);
    else npuprof_record_unwind_to_(slot, token, now);
}

NPUPROF_OWN_ static NPUPROF_SLOW_ void npuprof_record_close_slow_(npuprof_token_given_ given)
{
    const npuprof_token_ token = (npuprof_token_)given;
    if (npuprof_record_end_unrecorded_(token) || npuprof_slot_mine_() == &npuprof_slot_none_) return;
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (!slot) return;
    const uint64_t now = npuprof_clock_();
    const npuprof_record_boundary_ boundary = npuprof_record_look_at_end_(slot, token, now);
    npuprof_record_close_at_(slot, token, now);
    npuprof_record_leave_(slot);
    if (boundary.kind) npuprof_record_hooks_.ends(boundary.kind, boundary.ticks);
}

/* Why the clock first: what follows does not belong to the span. */
NPUPROF_API_ void npuprof_close_(npuprof_token_given_ token)
{
    const uint64_t now = npuprof_clock_fast_();
    npuprof_slot_ *slot = npuprof_slot_mine_();
    if (NPUPROF_UNLIKELY_(npuprof_test_and_set_(&slot->busy))) {
        npuprof_record_close_slow_(token);
        return;
    }
    if (NPUPROF_UNLIKELY_(*slot->top != (npuprof_token_)token)) {
        npuprof_record_leave_(slot);
        npuprof_record_close_slow_(token);
        return;
    }
    npuprof_unit_ *const u = (npuprof_unit_ *)(slot->token_zero + token);
    NPUPROF_STORE_RELEASE_(&u->w1, NPUPROF_END_STAMP_(now));
    NPUPROF_SIGNAL_FENCE_();
    slot->top--;
    npuprof_record_leave_(slot);
}

NPUPROF_API_ bool npuprof_is_open_(npuprof_token_ token)
{
    for (npuprof_slot_ *at = npuprof_slot_mine_(); at; at = at->nested)
        if (npuprof_record_find_open_(at, token)) return true;
    return false;
}

NPUPROF_OWN_ static NPUPROF_SLOW_ npuprof_token_ npuprof_record_next_slow_(npuprof_token_given_ given,
                                                              npuprof_site_ *site)
{
    npuprof_token_ token = (npuprof_token_)given;
    const bool open = NPUPROF_OPEN_(1);
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return open ? npuprof_record_count_no_context_() : 0;
    const uint64_t now = npuprof_clock_();
    if (NPUPROF_LIKELY_(token != 0)) npuprof_record_close_at_(slot, token, now);
    token = 0;
    if (open && npuprof_record_is_resolved_(site))
        token = npuprof_record_begin_span_(slot, (uint32_t)NPUPROF_LOAD_(&site->id), now);
    npuprof_record_leave_(slot);
    return token;
}

NPUPROF_API_ npuprof_token_ npuprof_next_(npuprof_token_given_ token, npuprof_site_ *site)
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    const uint32_t known = NPUPROF_LOAD_ACQUIRE_(&site->generation);
    /* While the gate is closed, no call site's generation is the fast one. */
    if (NPUPROF_UNLIKELY_(npuprof_differ_(known, &npuprof_arena_fast_) ||
                          npuprof_test_and_set_(&slot->busy)))
        return npuprof_record_next_slow_(token, site);
    npuprof_token_ *const top = slot->top;
    const uint64_t now = npuprof_clock_fast_();
    npuprof_unit_ *const u = slot->cursor;
    if (NPUPROF_UNLIKELY_(*top != (npuprof_token_)token || u == slot->end || now > slot->deadline)) {
        npuprof_record_leave_(slot);
        return npuprof_record_next_slow_(token, site);
    }
    const uintptr_t zero = slot->token_zero;
    NPUPROF_STORE_RELEASE_(&((npuprof_unit_ *)(zero + token))->w1, NPUPROF_END_STAMP_(now));
    NPUPROF_STORE_(&u->w1, NPUPROF_END_OPEN_);
    NPUPROF_STORE_RELEASE_(&u->w0, now << NPUPROF_ID_BITS_ | NPUPROF_LOAD_PLAIN_(&site->id));
    const npuprof_token_ next = (npuprof_token_)((uintptr_t)u - zero);
    *top = next;
    NPUPROF_SIGNAL_FENCE_();
    slot->cursor++;
    npuprof_record_leave_(slot);
    return next;
}

NPUPROF_API_ void npuprof_begin_by_hand_(npuprof_keys_ *keys, const char *category, const char *name)
{
    const bool open = NPUPROF_OPEN_(1), has_slot = npuprof_slot_mine_() != &npuprof_slot_none_;
    npuprof_slot_ *slot = open || has_slot ? npuprof_record_enter_() : NULL;
    if (!slot) {
        npuprof_slot_set_skipped_(npuprof_slot_skipped_() + 1);
        if (open) (void)npuprof_record_count_no_context_();
        return;
    }
    npuprof_token_ token = 0;
    if (open && slot->by_hand_count >= 64) {
        npuprof_count_lost_(NPUPROF_LOST_DEPTH, 1);
    } else if (open) {
        const uint32_t id = npuprof_record_named_id_(NULL, keys, NPUPROF_KIND_SPAN, category, name);
        if (id) token = npuprof_record_begin_span_args_(slot, id, npuprof_clock_(), NULL, PROF_NO_ARGS);
        if (token) *slot->top |= NPUPROF_TOKEN_BY_HAND_;
    }
    slot->by_hand_count++;
    if (slot->by_hand_count <= 64) slot->by_hand_bits = slot->by_hand_bits << 1 | (token != 0);
    npuprof_record_leave_(slot);
}

NPUPROF_API_ void npuprof_end_by_hand_(void)
{
    if (npuprof_slot_mine_() == &npuprof_slot_none_) {
        const uint32_t skipped = npuprof_slot_skipped_();
        if (skipped) npuprof_slot_set_skipped_(skipped - 1);
        else if (NPUPROF_OPEN_(1)) npuprof_count_lost_(NPUPROF_LOST_ENDS, 1);
        return;
    }
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (!slot) return;
    if (slot->by_hand_count > 64) {
        slot->by_hand_count--;
    } else if (slot->by_hand_count) {
        npuprof_token_ *e = slot->top;
        while (e > slot->open && !(*e & NPUPROF_TOKEN_BY_HAND_)) e--;
        if ((slot->by_hand_bits & 1) && e > slot->open) {
            const uint64_t now = npuprof_clock_();
            npuprof_record_unwind_(slot, e, now);
            npuprof_record_pop_span_(slot, now, 0);
        }
        slot->by_hand_bits >>= 1;
        slot->by_hand_count--;
    } else if (NPUPROF_OPEN_(1)) {
        npuprof_count_lost_(NPUPROF_LOST_ENDS, 1);
    }
    npuprof_record_leave_(slot);
}
#ifdef NPUPROF_RECORD_ONLY
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_ NPUPROF_COLD_
#endif
/* ==== src/record/event.h ============================================================= >>record/event ==== */

/* Events: one stamp and one value. Instants, counters and flows; the two ends of an async span;
   npuprof_span(), whose times the caller knows. Fast and slow paths as in begin.h. Words: those of span.h
   and begin.h. */

/* ---- Events of a macro */

NPUPROF_OWN_ static NPUPROF_SLOW_ void npuprof_record_event_slow_(npuprof_site_ *site, npuprof_keys_ *keys,
                                                     uint64_t value, npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (!slot) {
        (void)npuprof_record_count_no_context_();
        return;
    }
    if (npuprof_record_is_resolved_(site)) {
        const uint32_t id = (uint32_t)NPUPROF_LOAD_(&site->id);
        npuprof_record_emit_(slot, id, npuprof_clock_(), value, NULL, 0, keys, args);
        npuprof_record_make_keys_fast_(site, keys);
    }
    npuprof_record_leave_(slot);
}

NPUPROF_API_ void npuprof_event_args_now_(npuprof_site_ *site, npuprof_keys_ *keys, uint64_t value,
                                          npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    const uint32_t known = NPUPROF_LOAD_ACQUIRE_(&keys->fast);
    bool done = false;
    if (NPUPROF_LIKELY_(!npuprof_differ_(known, &npuprof_arena_fast_) &&
                        !npuprof_test_and_set_(&slot->busy))) {
        const uint64_t now = npuprof_clock_fast_();
        done = npuprof_record_write_args_fast_(slot, keys, args, now);
        if (done) {
            NPUPROF_STORE_(&slot->cursor->w1, value);
            const uint64_t w0 = now << NPUPROF_ID_BITS_ | NPUPROF_LOAD_PLAIN_(&site->id);
            NPUPROF_STORE_RELEASE_(&slot->cursor->w0, w0);
            slot->cursor += 1 + args.count;
        }
        npuprof_record_leave_(slot);
    }
    if (NPUPROF_UNLIKELY_(!done)) npuprof_record_event_slow_(site, keys, value, args);
}

NPUPROF_OWN_ static NPUPROF_SLOW_ void npuprof_record_event_now_slow_(npuprof_site_ *site, uint64_t value)
{
    npuprof_record_event_slow_(site, NULL, value, PROF_NO_ARGS);
}

NPUPROF_API_ void npuprof_event_now_(npuprof_site_ *site, uint64_t value)
{
    npuprof_slot_ *slot = npuprof_slot_mine_();
    const uint32_t known = NPUPROF_LOAD_ACQUIRE_(&site->generation);
    if (NPUPROF_UNLIKELY_(npuprof_differ_(known, &npuprof_arena_fast_) ||
                          npuprof_test_and_set_(&slot->busy))) {
        npuprof_record_event_now_slow_(site, value);
        return;
    }
    npuprof_unit_ *const u = slot->cursor;
    const uint64_t now = npuprof_clock_fast_();
    if (NPUPROF_UNLIKELY_(u == slot->end || now > slot->deadline)) {
        npuprof_record_leave_(slot);
        npuprof_record_event_now_slow_(site, value);
        return;
    }
    NPUPROF_STORE_(&u->w1, value);
    NPUPROF_STORE_RELEASE_(&u->w0, now << NPUPROF_ID_BITS_ | NPUPROF_LOAD_PLAIN_(&site->id));
    slot->cursor = u + 1;
    npuprof_record_leave_(slot);
}

/* ---- Events of a function: the name comes at run time */

/* extra: what does not fit into w1. */
NPUPROF_OWN_ static void npuprof_record_named_event_(uint32_t kind, const char *category, const char *name, uint64_t w1,
                                        const npuprof_unit_ *extra, size_t extra_count, npuprof_args args)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (!slot) {
        (void)npuprof_record_count_no_context_();
        return;
    }
    const uint32_t id = npuprof_record_resolve_name_(kind, category, name);
    if (id) npuprof_record_emit_(slot, id, npuprof_clock_(), w1, extra, extra_count, NULL, args);
    npuprof_record_leave_(slot);
}

#define NPUPROF_GATE_IS_CLOSED_() (!NPUPROF_OPEN_(1))

NPUPROF_API_ void npuprof_async_begin(const char *category, const char *name, uint64_t id)
{
    if (NPUPROF_GATE_IS_CLOSED_()) return;
    npuprof_record_named_event_(NPUPROF_KIND_ASYNC_BEGIN, category, name, id, NULL, 0, PROF_NO_ARGS);
}

/* Recorded while the gate is closed, too, if the thread ever recorded. Why: its beginning may be in the
   trace. */
NPUPROF_API_ void npuprof_async_end(uint64_t id)
{
    static npuprof_site_ site = { 0, 0, NPUPROF_KIND_ASYNC_END, "", NULL, NULL, 0 };
    if (NPUPROF_GATE_IS_CLOSED_() && npuprof_slot_mine_() == &npuprof_slot_none_) return;
    npuprof_event_now_(&site, id);
}

NPUPROF_API_ void npuprof_span(const char *track, const char *category, const char *name, int64_t start_ns,
                               int64_t end_ns, npuprof_args args)
{
    if (NPUPROF_GATE_IS_CLOSED_()) return;
    if (!npuprof_record_is_ready_()) {
        (void)npuprof_record_count_no_context_();
        return;
    }
    const uint32_t track_id = npuprof_table_intern_string_(track ? track : "");
    if (!track_id) {
        npuprof_count_lost_(NPUPROF_LOST_NAMES, 1);
        return;
    }
    npuprof_unit_ extra;
    extra.w0 = (uint64_t)track_id << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_FINISHED_;
    extra.w1 = (uint64_t)end_ns;
    npuprof_record_named_event_(NPUPROF_KIND_FINISHED, category, name, (uint64_t)start_ns, &extra, 1, args);
}
/* ==== src/record/objects.h ========================================================= >>record/objects ==== */

#include <string.h>

/* Writes into the table which objects are loaded, for names that are addresses. Only for NPUPROF_AUTO.

   When: before the name of a function is stored for the first time, if objects were loaded or unloaded since.
   So an arena that is left behind by a process that was killed has all that its names need. Nothing is done
   at dlclose(): the entry stays. If another object then lies at the same addresses, it has a later entry; a
   function of it whose address was recorded before keeps that name.
   Data: npuprof_record_objects_. This part does not know what a function is. */

#ifdef NPUPROF_AUTO

/* Atomic. All but `listing` is written by the thread that has it; `newest` with release. */
static struct {
    uint32_t listing;              /* 1: a thread lists them. CAS from 0 */
    uint32_t newest;               /* id of the newest module entry, 0: none */
    uint64_t changes;              /* how many loads and unloads there were when they were listed */
} npuprof_record_objects_;

/* Is it in the table, and has nothing else been at its addresses since? */
NPUPROF_OWN_ static bool npuprof_record_knows_object_(const npuprof_os_object_ *o, uint32_t path, uint32_t build_id)
{
    uint32_t id = NPUPROF_LOAD_(&npuprof_record_objects_.newest);
    while (id) {
        const npuprof_module_entry_ *const m = (const npuprof_module_entry_ *)npuprof_table_entry_at_(id);
        if (m->start < o->end && o->start < m->end)
            return m->bias == o->bias && m->start == o->start && m->end == o->end && m->path == path &&
                   m->build_id == build_id;
        id = m->head.a;
    }
    return false;
}

NPUPROF_OWN_ static void npuprof_record_take_object_(const npuprof_os_object_ *o)
{
    uint32_t id;
    const uint32_t path = npuprof_table_intern_string_(o->path);
    const uint32_t build_id = npuprof_table_intern_string_(o->build_id);
    npuprof_module_entry_ *m = NULL;
    if (path && build_id && npuprof_record_knows_object_(o, path, build_id)) return;
    if (path && build_id) m = (npuprof_module_entry_ *)(void *)npuprof_table_add_entry_(sizeof *m, &id);
    if (!m) {
        NPUPROF_ADD_(&npuprof_arena_.header->lost[NPUPROF_LOST_NOTES], 1);
        return;
    }
    m->head.a = NPUPROF_LOAD_(&npuprof_record_objects_.newest);
    m->bias = o->bias;
    m->start = o->start;
    m->end = o->end;
    m->path = path;
    m->build_id = build_id;
    npuprof_table_finish_entry_(&m->head, NPUPROF_ENTRY_MODULE);
    NPUPROF_STORE_RELEASE_(&npuprof_record_objects_.newest, id);
}

/* Brings the list up to date. Keeps errno. */
NPUPROF_OWN_ static void npuprof_record_list_objects_(void)
{
    const int error_before = errno;
    uint32_t nobody = 0;
    if (!NPUPROF_CAS_(&npuprof_record_objects_.listing, &nobody, 1)) return;
    if (!NPUPROF_LOAD_(&npuprof_record_objects_.newest)) npuprof_record_objects_.changes = 0;
    npuprof_os_list_objects_(&npuprof_record_objects_.changes, npuprof_record_take_object_);
    NPUPROF_STORE_RELEASE_(&npuprof_record_objects_.listing, 0);
    errno = error_before;
}

#endif /* NPUPROF_AUTO */
/* ==== src/record/auto.h =============================================================== >>record/auto ==== */

/* NPUPROF_AUTO: the two hooks that -finstrument-functions calls, at the begin and the end of each function.
   A call becomes a plain span, by the same paths as a mark's. Only who it is differs:
     its name    the function's address as text, in the table once. A hash table of addresses finds its number
     its end     by a stack of open calls in the thread's slot, as no clean-up holds the span's token
   The stack also holds calls that are not recorded, once the thread has a slot, so that an end finds its own
   begin, whatever started or stopped in between. A call that was left by longjmp(), or by an exception with
   clang, which calls no hook then, ends as cut with the function around it that ends next. The end of a call
   whose begin is not on the stack does nothing. Deeper than the stack, calls are lost and counted.

   A function that the recorder calls may be instrumented, but that of NPUPROF_NOW() would call itself. Fibers
   that change the stack inside a function mix up their calls. Before the library is set up a hook touches
   nothing of the thread. Why: in a static program the loader's functions (ifunc) run before threads have
   memory.

   Words: address of a function by CAS from 0; number and generation as id and generation of a call site
   (enter.h). The stack is its thread's own. Its depth is stored before an entry is used and after it was: the
   hooks of a signal handler in between leave it as it was. */

#ifdef NPUPROF_AUTO

typedef struct npuprof_record_function_ {
    uintptr_t address;
    uint32_t number, generation;
} npuprof_record_function_;

static npuprof_record_function_ npuprof_record_functions_[NPUPROF_AUTO_FUNCTIONS];

/* Why the caller, too: after a longjmp() a recursive function would end the wrong one of its calls. */
NPUPROF_OWN_ static inline uint32_t npuprof_record_call_key_(const void *function, const void *caller)
{
    return (uint32_t)((uintptr_t)function + 8 * (uintptr_t)caller);
}

/* ---- Functions by address */

/* Where a function is in the hash table, if nothing else is there. */
NPUPROF_OWN_ static inline npuprof_record_function_ *npuprof_record_function_home_(uintptr_t address)
{
    const uint32_t hash = (uint32_t)address * 0x9E3779B1u;
    return &npuprof_record_functions_[hash / (UINT32_MAX / NPUPROF_AUTO_FUNCTIONS + 1)];
}

/* The place of a function in the hash table. NULL: there is no room near its home. */
NPUPROF_OWN_ static npuprof_record_function_ *npuprof_record_function_at_(uintptr_t address)
{
    enum { TRIES = 16 };
    npuprof_record_function_ *f = npuprof_record_function_home_(address);
    for (int n = 0; n < TRIES; n++) {
        uintptr_t there = NPUPROF_LOAD_(&f->address);
        if (!there && NPUPROF_CAS_(&f->address, &there, address)) return f;
        if (there == address) return f;
        if (++f == npuprof_record_functions_ + NPUPROF_AUTO_FUNCTIONS) f = npuprof_record_functions_;
    }
    return NULL;
}

/* The number of a function's call site. 0: it is not to be recorded, or the table of names is full, which is
   counted. */
NPUPROF_OWN_ static uint32_t npuprof_record_function_number_(uintptr_t address)
{
    npuprof_record_function_ *const f = npuprof_record_function_at_(address);
    const uint32_t generation = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_generation_);
    const uint32_t muted = generation | 0x80000000u;
    const uint32_t known = f ? NPUPROF_LOAD_ACQUIRE_(&f->generation) : 0;
    char text[NPUPROF_ADDRESS_TEXT_];
    uint32_t number = 0;
    if (f && known == generation) return NPUPROF_LOAD_(&f->number);
    if (f && known == muted) return 0;
    const bool passes = npuprof_record_category_passes_("auto");
    if (passes) {
        npuprof_record_list_objects_();
        number = npuprof_table_intern_site_number_(NPUPROF_KIND_SPAN, "auto",
                                                   npuprof_address_text_(text, address), NULL, 0);
        if (!number) {
            npuprof_count_lost_(NPUPROF_LOST_NAMES, 1);
            return 0;
        }
    }
    if (f) {
        NPUPROF_STORE_(&f->number, number);
        NPUPROF_STORE_RELEASE_(&f->generation, passes ? generation : muted);
    }
    return number;
}

/* ---- Begin and end of a call */

/* fits: the stack has room for it. Else it is counted as lost. */
NPUPROF_OWN_ static npuprof_token_ npuprof_record_begin_function_(uintptr_t address, bool fits)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (NPUPROF_UNLIKELY_(!slot)) return npuprof_record_count_no_context_();
    npuprof_token_ token = 0;
    const uint32_t number = npuprof_record_function_number_(address);
    if (number && fits) token = npuprof_record_begin_span_(slot, number, npuprof_clock_());
    else if (number) npuprof_count_lost_(NPUPROF_LOST_DEPTH, 1);
    npuprof_record_leave_(slot);
    return token;
}

NPUPROF_OWN_ static inline npuprof_token_ npuprof_record_begins_not_(uint32_t number) { return (void)number, 0; }

/* Begins a call, recorded or not. The stack has its key already, if it has room. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ npuprof_token_ npuprof_record_begin_call_slow_(uintptr_t address, bool fits)
{
    return NPUPROF_OPEN_(1) ? npuprof_record_begin_function_(address, fits) : 0;
}

/* Begins a call for which the stack has no entry, or of a thread that has no slot. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_record_begin_call_deep_(uintptr_t address, uint32_t key)
{
    if (npuprof_slot_mine_() == &npuprof_slot_none_) {
        if (!NPUPROF_OPEN_(1)) return;
        npuprof_slot_ *const got = npuprof_record_enter_();
        if (got) npuprof_record_leave_(got);
        else (void)npuprof_record_count_no_context_();
    }
    npuprof_slot_calls_ *const calls = &npuprof_slot_mine_()->calls;
    npuprof_slot_call_ *const call = calls->next;
    if (call == npuprof_slot_call_none_ + 1) return;
    const bool fits = call < calls->end;
    calls->next = fits ? call + 1 : calls->end + 1;
    NPUPROF_SIGNAL_FENCE_();
    if (fits) call->key = key;
    else if (!calls->beyond++) calls->deep = (uintptr_t)__builtin_frame_address(0);
    const npuprof_token_ token = npuprof_record_begin_call_slow_(address, fits);
    if (fits) call->token = token;
}

/* The call that ends, if it is not the newest one. NULL: it has no entry. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ npuprof_slot_call_ *npuprof_record_find_call_(npuprof_slot_calls_ *calls,
                                                                       uint32_t key)
{
    /* What the frames of the hooks may differ in. */
    enum { NEAR_ENOUGH = 256 };
    if (calls->beyond) {
        const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
        const bool ends = here <= calls->deep + NEAR_ENOUGH;
        /* Else all that had no entry was left by longjmp(). */
        calls->beyond = ends ? calls->beyond - 1 : 0;
        if (!calls->beyond) calls->next = calls->end;
        if (ends) return NULL;
    }
    for (npuprof_slot_call_ *call = calls->next - 1; call->token != NPUPROF_CALL_NONE_; call--)
        if (call->key == key) return call;
    return NULL;
}

NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_record_end_call_slow_(uint32_t key)
{
    npuprof_slot_calls_ *const calls = &npuprof_slot_mine_()->calls;
    npuprof_slot_call_ *const call = npuprof_record_find_call_(calls, key);
    if (!call) return;
    const npuprof_token_ token = call->token;
    NPUPROF_SIGNAL_FENCE_();
    calls->next = call;
    if (token) npuprof_close_(token);
}

/* ---- The hooks. Why visible: the functions of shared libraries call them, too */

NPUPROF_OWN_ NPUPROF_ATTRIBUTE_((visibility("default"))) void __cyg_profile_func_enter(void *, void *);
NPUPROF_OWN_ NPUPROF_ATTRIBUTE_((visibility("default"))) void __cyg_profile_func_exit(void *, void *);

void __cyg_profile_func_enter(void *function, void *caller)
{
    const uintptr_t address = (uintptr_t)function;
    const uint32_t key = npuprof_record_call_key_(function, caller);
    const bool open = NPUPROF_OPEN_(1);
    if (!open && NPUPROF_LOAD_PLAIN_(&npuprof_record_setup_) != 2) return;
    npuprof_slot_calls_ *const calls = &npuprof_slot_mine_()->calls;
    npuprof_slot_call_ *const call = calls->next;
    if (NPUPROF_UNLIKELY_(call >= calls->end)) {
        npuprof_record_begin_call_deep_(address, key);
        return;
    }
    calls->next = call + 1;
    NPUPROF_SIGNAL_FENCE_();
    call->key = key;
    if (!open) {
        call->token = 0;
        return;
    }
    const npuprof_record_function_ *const f = npuprof_record_function_home_(address);
    const uint32_t generation = NPUPROF_LOAD_ACQUIRE_(&f->generation);
    npuprof_token_ token = 0;
    if (NPUPROF_LIKELY_(NPUPROF_LOAD_(&f->address) == address &&
                        !npuprof_differ_(generation, &npuprof_arena_fast_)))
        token = npuprof_record_begin_number_or_(NPUPROF_LOAD_PLAIN_(&f->number), npuprof_record_begins_not_);
    call->token = NPUPROF_LIKELY_(token != 0) ? token : npuprof_record_begin_call_slow_(address, true);
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    const uint32_t key = npuprof_record_call_key_(function, caller);
    if (NPUPROF_UNLIKELY_(NPUPROF_LOAD_PLAIN_(&npuprof_record_setup_) != 2)) return;
    npuprof_slot_calls_ *const calls = &npuprof_slot_mine_()->calls;
    npuprof_slot_call_ *const call = calls->next - 1;
    const npuprof_token_ token = call->token;
    if (NPUPROF_UNLIKELY_(call->key != key || token == NPUPROF_CALL_NONE_)) {
        npuprof_record_end_call_slow_(key);
        return;
    }
    NPUPROF_SIGNAL_FENCE_();
    calls->next = call;
    if (token) npuprof_close_(token);
}

#endif /* NPUPROF_AUTO */
/* ==== src/record/device_span.h ================================================= >>record/device_span ==== */

/* The spans of devices. Two ways: npuprof_device_span_() looks its texts up each time. For
   npuprof_device_record_() the caller keeps an npuprof_device_texts_, in which it finds them again.
   Words: those of span.h.
   This part does not know how a device is read, nor what is stored of it (device.h). */

/* The units of a device span behind its first one. Returns how many. */
NPUPROF_OWN_ static size_t npuprof_record_device_units_(npuprof_unit_ extra[3], uint32_t device, uint32_t epoch,
                                           unsigned pe, uint64_t end_ticks, unsigned flags,
                                           const npuprof_link_ *link)
{
    const uint64_t where = (uint64_t)(epoch & 0xFFFFu) << 24 | (uint64_t)(pe & 0xFFFFu) << 8 | device;
    const uint64_t payload = (uint64_t)(flags & 15u) << 40 | where;
    extra[0].w0 = payload << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_DEVICE_;
    extra[0].w1 = end_ticks;
    if (!link || !link->ticks) return 1;
    extra[1].w0 = link->position << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_LINK_;
    extra[1].w1 = link->ticks;
    extra[2].w0 = link->root_position << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_LINK_ROOT_;
    extra[2].w1 = (uint64_t)link->warm_up << 32 | link->slot;
    return 3;
}

NPUPROF_API_ void npuprof_device_span_(uint32_t device, uint32_t epoch, unsigned pe, const char *category,
                                       const char *name, uint64_t start_ticks, uint64_t end_ticks,
                                       unsigned flags, const npuprof_link_ *link, npuprof_args args)
{
    npuprof_unit_ extra[3];
    const size_t count = npuprof_record_device_units_(extra, device, epoch, pe, end_ticks, flags, link);
    npuprof_record_named_event_(NPUPROF_KIND_DEVICE, category, name, start_ticks, extra, count, args);
}

/* The number of the call site of a name that stays. 0: it is not to be recorded. */
NPUPROF_OWN_ static uint32_t npuprof_record_kept_name_(npuprof_device_texts_ *texts, const char *category,
                                          const char *name)
{
    const size_t at = ((uintptr_t)name / 8 ^ (uintptr_t)name / 512) % NPUPROF_DEVICE_NAMES_;
    if (texts->name[at] == name && texts->category[at] == category) return texts->id[at];
    const uint32_t id = npuprof_record_resolve_name_(NPUPROF_KIND_DEVICE, category, name);
    if (!id) return 0;
    texts->name[at] = name;
    texts->category[at] = category;
    texts->id[at] = id;
    return id;
}

/* Finds the words of integer arguments, texts->word. Returns how many arguments are to be recorded: all, or
   none if the table is full, which is counted. */
NPUPROF_OWN_ static size_t npuprof_record_keep_keys_(npuprof_device_texts_ *texts, npuprof_args args)
{
    for (size_t i = 0; i < args.count; i++) {
        const char *const key = args.items[i].key;
        if (NPUPROF_LIKELY_(texts->key[i] == key)) continue;
        texts->word[i] = npuprof_record_key_word_(NULL, i, key, texts->generation);
        texts->key[i] = texts->word[i] ? key : NULL;
        if (texts->word[i]) continue;
        npuprof_count_lost_(NPUPROF_LOST_ARGUMENTS, args.count);
        return 0;
    }
    return args.count;
}

/* When a record is written. Why not the clock for each: that read costs as much as the rest. What follows at
   once in the same slot, up to 16 records, has the same stamp. */
NPUPROF_OWN_ static uint64_t npuprof_record_shared_stamp_(npuprof_device_texts_ *texts, const npuprof_slot_ *slot)
{
    if (!texts->stamp_left || texts->behind != slot->cursor) {
        texts->stamp = npuprof_clock_();
        texts->stamp_left = 16;
    }
    texts->stamp_left--;
    return texts->stamp;
}

/* Writes a device record whose texts are known. */
NPUPROF_OWN_ static void npuprof_record_put_device_(npuprof_device_texts_ *texts, npuprof_slot_ *slot, uint32_t id,
                                       uint64_t start_ticks, const npuprof_unit_ extra[3], size_t count,
                                       npuprof_args args)
{
    const uint64_t now = npuprof_record_shared_stamp_(texts, slot);
    npuprof_unit_ *const u = npuprof_record_reserve_(slot, 1 + count + args.count, now);
    if (!u) {
        npuprof_record_count_full_(slot);
        return;
    }
    npuprof_unit_ *at = u + 1;
    for (size_t i = 0; i < count; i++) *at++ = extra[i];
    for (size_t i = 0; i < args.count; i++, at++) {
        at->w0 = texts->word[i] | (uint64_t)args.items[i].type << NPUPROF_ID_BITS_;
        at->w1 = args.items[i].value.u;
    }
    NPUPROF_STORE_(&u->w1, start_ticks);
    NPUPROF_STORE_RELEASE_(&u->w0, now << NPUPROF_ID_BITS_ | id);
    slot->cursor = at;
    texts->behind = at;
}

NPUPROF_API_ void npuprof_device_record_(npuprof_device_texts_ *texts, bool keeps_name, uint32_t device,
                                         uint32_t epoch, unsigned pe, const char *category, const char *name,
                                         uint64_t start_ticks, uint64_t end_ticks, unsigned flags,
                                         const npuprof_link_ *link, npuprof_args args)
{
    npuprof_unit_ extra[3];
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (!slot) {
        (void)npuprof_record_count_no_context_();
        return;
    }
    const uint32_t generation = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_generation_);
    if (texts->generation != generation) memset(texts, 0, sizeof *texts);
    texts->generation = generation;
    const uint32_t id = keeps_name ? npuprof_record_kept_name_(texts, category, name)
                                   : npuprof_record_resolve_name_(NPUPROF_KIND_DEVICE, category, name);
    if (id) {
        const size_t n = npuprof_record_device_units_(extra, device, epoch, pe, end_ticks, flags, link);
        args.count = npuprof_record_keep_keys_(texts, args);
        npuprof_record_put_device_(texts, slot, id, start_ticks, extra, n, args);
    }
    npuprof_record_leave_(slot);
}
/* What follows runs seldom, or does not record: it is compiled for size. */
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_ NPUPROF_COLD_
/* ==== src/record/memory.h =========================================================== >>record/memory ==== */

/* Memory pools: what PROF_ALLOC and PROF_FREE count, one pool for each device and one for the host. Words
   of a pool, all relaxed: key, the hash of its name, by CAS from 0; then used and allocated bytes. Two
   threads may allocate at the same time: each event has the sum that its own change gave, so the last one
   recorded need not be the last one counted. Why outside the arena: the counts go on while nothing is
   recorded and nothing is set up. */

enum { NPUPROF_RECORD_POOLS_ = 64 };

typedef struct npuprof_record_pool_ { uint64_t key, used, allocated; } npuprof_record_pool_;

static npuprof_record_pool_ npuprof_record_pools_[NPUPROF_RECORD_POOLS_];

NPUPROF_OWN_ static const char *npuprof_record_pool_name_(const npuprof_device *device)
{
    return device && device->name ? device->name : "host";
}

/* The pool of that name, made at its first use. NULL: there are too many. */
NPUPROF_OWN_ static npuprof_record_pool_ *npuprof_record_find_pool_(const char *name)
{
    const uint64_t key = npuprof_hash_key_(name);
    npuprof_record_pool_ *const end = npuprof_record_pools_ + NPUPROF_RECORD_POOLS_;
    for (npuprof_record_pool_ *pool = npuprof_record_pools_; pool < end; pool++) {
        uint64_t has = NPUPROF_LOAD_(&pool->key);
        if (has == key || (has == 0 && (NPUPROF_CAS_(&pool->key, &has, key) || has == key))) return pool;
    }
    return NULL;
}

/* change: 0, or bytes << 2 | 1 for an allocation, 2 for a release. */
NPUPROF_OWN_ static void npuprof_record_memory_event_(const char *name, uint64_t used, uint64_t allocated, uint64_t change,
                                         const char *tag)
{
    npuprof_unit_ extra;
    extra.w0 = change << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_MEMORY_;
    extra.w1 = allocated;
    npuprof_record_named_event_(NPUPROF_KIND_MEMORY, name, tag, used, &extra, 1, PROF_NO_ARGS);
}

NPUPROF_API_ void npuprof_memory_(const npuprof_device *device, uint64_t used_bytes, uint64_t allocated_bytes,
                                  const char *tag)
{
    const char *const name = npuprof_record_pool_name_(device);
    npuprof_record_pool_ *const pool = npuprof_record_find_pool_(name);
    if (pool) {
        NPUPROF_STORE_(&pool->used, used_bytes);
        NPUPROF_STORE_(&pool->allocated, allocated_bytes);
    }
    npuprof_record_memory_event_(name, used_bytes, allocated_bytes, 0, tag);
}

NPUPROF_API_ void npuprof_memory_change_(const npuprof_device *device, bool is_free, uint64_t bytes,
                                         const char *tag)
{
    const char *const name = npuprof_record_pool_name_(device);
    npuprof_record_pool_ *const pool = npuprof_record_find_pool_(name);
    if (!pool) {
        if (!NPUPROF_GATE_IS_CLOSED_()) npuprof_count_lost_(NPUPROF_LOST_NAMES, 1);
        return;
    }
    uint64_t used = NPUPROF_LOAD_(&pool->used), now, allocated = NPUPROF_LOAD_(&pool->allocated);
    do now = !is_free ? used + bytes : used > bytes ? used - bytes : 0;
    while (!NPUPROF_CAS_(&pool->used, &used, now));
    while (allocated < now && !NPUPROF_CAS_(&pool->allocated, &allocated, now)) {}
    if (NPUPROF_GATE_IS_CLOSED_()) return;
    const uint64_t max = ((uint64_t)1 << 42) - 1;
    const uint64_t change = (bytes < max ? bytes : max) << 2 | (is_free ? 2 : 1);
    npuprof_record_memory_event_(name, now, allocated > now ? allocated : now, change, tag);
}
/* ==== src/record/thread.h =========================================================== >>record/thread ==== */

#include <string.h>

/* What a program says about the calling thread and the process, and where the thread stands: names,
   metadata, the link from a device span to the host span that submitted it. A name may move the thread to
   another slot, so that threads of the same name, one after the other, share a track and threads of
   different names do not. Words: slot_mine, and of both slots those of state.h, while both are owned. */

/* The name of the rows of threads that found no row of their own left. 0: the table is full. */
NPUPROF_OWN_ static uint32_t npuprof_record_name_of_others_(void) { return npuprof_table_intern_string_("other threads"); }

/* Moves the thread to a slot for that name: one that had it, or one that nobody used. NULL: it stays. Only
   the first name of a thread moves it, and not while spans are open. *id becomes the name of all other
   threads, which is counted, if the name is new and there are as many rows as may be. */
NPUPROF_OWN_ static npuprof_slot_ *npuprof_record_move_thread_(npuprof_slot_ *slot, uint32_t *id)
{
    const bool is_named = slot->head.name && slot->named_by == slot->head.owners;
    if (slot->top != slot->open || slot != npuprof_slot_mine_() || is_named) return NULL;
    npuprof_os_signals_ held;
    npuprof_os_hold_signals_(&held);
    npuprof_slot_ *other = npuprof_slot_take_free_(*id);
    if (!other && npuprof_slot_rows_are_full_()) {
        *id = npuprof_record_name_of_others_();
        npuprof_count_lost_(NPUPROF_LOST_NOTES, 1);
        other = npuprof_slot_take_free_(*id);
    }
    if (other) NPUPROF_STORE_(&other->head.owners, other->head.owners + 1);
    else if (slot->head.name || slot->head.owners > 1) other = npuprof_slot_take_(NULL, true, &held);
    if (other) {
        NPUPROF_STORE_(&other->head.os_tid, slot->head.os_tid);
        other->top = other->open;
        other->by_hand_bits = slot->by_hand_bits;
        other->by_hand_count = slot->by_hand_count;
        NPUPROF_CALLS_(npuprof_slot_forget_calls_(other);)   /* those of now are not recorded */
        (void)npuprof_slot_become_(other);
        npuprof_record_leave_(slot);
        npuprof_slot_give_back_(slot);
    }
    npuprof_os_release_signals_(&held);
    return other;
}

/* Names the thread that has this slot. Returns the slot it has then. */
NPUPROF_OWN_ static npuprof_slot_ *npuprof_record_name_thread_(npuprof_slot_ *slot, uint32_t id)
{
    uint32_t as = id;
    if (slot->head.name == id) return slot;
    npuprof_slot_ *const other = npuprof_record_move_thread_(slot, &as);
    if (other) slot = other;
    const uint32_t others = npuprof_slot_rows_are_full_() ? npuprof_record_name_of_others_() : 0;
    if (others && slot->head.name == others) {     /* a row of many threads keeps its name */
        if (as == id) npuprof_count_lost_(NPUPROF_LOST_NOTES, 1);
    } else if (as) {
        NPUPROF_STORE_(&slot->head.name, as);
        slot->named_by = slot->head.owners;
    }
    return slot;
}

NPUPROF_API_ void npuprof_thread_name_(const char *name)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    const uint32_t id = slot ? npuprof_table_intern_string_(name ? name : "") : 0;
    if (!id) npuprof_count_lost_(NPUPROF_LOST_NOTES, 1);
    if (id) slot = npuprof_record_name_thread_(slot, id);
    if (slot) npuprof_record_leave_(slot);
}

NPUPROF_API_ npuprof_result npuprof_metadata(const char *key, const char *value)
{
    if (!key) return NPUPROF_REFUSE_("npuprof_metadata: key is NULL");
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    return npuprof_table_add_pair_(NPUPROF_ENTRY_METADATA, key, value) ? NPUPROF_OK : NPUPROF_ERR_TABLE_FULL;
}

/* Position of an open span. e is its place in slot->open. */
NPUPROF_OWN_ static uint64_t npuprof_record_position_(const npuprof_slot_ *slot, npuprof_chunk_ *chunk,
                                         const npuprof_token_ *e)
{
    const npuprof_unit_ *u = npuprof_slot_open_unit_(slot, chunk, e);
    if (*e & NPUPROF_TOKEN_MOVED_) return u[1].w0 >> NPUPROF_ID_BITS_;
    return chunk->first_position + (uint64_t)(u - npuprof_chunk_units_(chunk));
}

/* NPUPROF_KIND_* of the call site of a span that lies at u. */
NPUPROF_OWN_ static uint32_t npuprof_record_kind_(const npuprof_unit_ *u)
{
    const uint32_t number = (uint32_t)u->w0 & NPUPROF_ID_MASK_;
    return npuprof_table_site_at_(number)->head.a & 0xFF;
}

/* The slot, its newest open span, and the root of its trace: the innermost PROF_RECORD around it, else the
   outermost span. */
NPUPROF_API_ npuprof_link_ npuprof_link_here_(void)
{
    npuprof_link_ link;
    memset(&link, 0, sizeof link);
    npuprof_slot_ *slot = npuprof_slot_mine_();
    if (slot == &npuprof_slot_none_) return link;
    slot = npuprof_record_enter_();
    if (!slot) return link;
    link.slot = slot->head.tid;
    if (slot->top > slot->open) {
        npuprof_chunk_ *chunk = npuprof_slot_current_chunk_(slot);
        const npuprof_unit_ *const u = npuprof_slot_open_unit_(slot, chunk, slot->top);
        const bool moved = *slot->top & NPUPROF_TOKEN_MOVED_;
        link.position = npuprof_record_position_(slot, chunk, slot->top);
        link.ticks = moved ? u[1].w1 : npuprof_chunk_start_ticks_(chunk, u->w0);
        bool root = false;
        for (const npuprof_token_ *e = slot->top; e > slot->open; e--) {
            const uint32_t kind = npuprof_record_kind_(npuprof_slot_open_unit_(slot, chunk, e));
            if (!root) link.root_position = npuprof_record_position_(slot, chunk, e);
            if (kind == NPUPROF_KIND_RECORD || kind == NPUPROF_KIND_WARM_UP) root = true;
            if (kind == NPUPROF_KIND_WARM_UP) link.warm_up = true;
        }
    }
    npuprof_record_leave_(slot);
    return link;
}
/* ==== src/record/result.h =========================================================== >>record/result ==== */

/* PROF_RESULT: arguments of a span that become known while it is open. They are a RESULT record at the
   cursor, which names the span by its position, and the span's call site becomes one whose spans have results
   (format/arena.h). So a span without results costs nothing more, here or in a reader.
   Words: those of span.h; and w0 of the open span once more, with release, when the RESULT record is whole:
   only the number of the call site changes, to that of its twin in the table. A process that is killed in
   between leaves a RESULT that no span asks for. */

/* Writes the record. NULL: there is no space, or the table is full. */
NPUPROF_OWN_ static npuprof_unit_ *npuprof_record_put_result_(npuprof_slot_ *slot, uint64_t position, npuprof_keys_ *keys,
                                                 npuprof_args args)
{
    const size_t units = npuprof_record_count_arg_units_(args);
    const uint64_t now = npuprof_clock_();
    npuprof_unit_ *const u = npuprof_record_reserve_(slot, 1 + units, now);
    if (!u) return NULL;
    if (!npuprof_record_write_args_(u + 1, keys, args)) {
        memset(u + 1, 0, units * sizeof *u);
        return NULL;
    }
    NPUPROF_STORE_(&u->w1, position);
    NPUPROF_STORE_RELEASE_(&u->w0, now << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_RESULT_);
    slot->cursor = u + 1 + units;
    return u;
}

/* Adds arguments to the newest open span of a slot, which has one. False: they are lost. */
NPUPROF_OWN_ static bool npuprof_record_add_result_(npuprof_slot_ *slot, npuprof_keys_ *keys, npuprof_args args)
{
    const uint64_t position =
        npuprof_record_position_(slot, npuprof_slot_current_chunk_(slot), slot->top);
    if (!npuprof_record_put_result_(slot, position, keys, args)) return false;
    /* Why only now: the span may have moved to a new chunk. */
    npuprof_unit_ *const span = npuprof_slot_open_unit_(slot, npuprof_slot_current_chunk_(slot), slot->top);
    const uint64_t w0 = NPUPROF_LOAD_(&span->w0), mask = NPUPROF_ID_MASK_;
    const uint32_t twin = npuprof_table_site_with_results_((uint32_t)(w0 & mask));
    if (twin) NPUPROF_STORE_RELEASE_(&span->w0, (w0 & ~mask) | twin);
    return twin != 0;
}

NPUPROF_API_ void npuprof_result_(npuprof_keys_ *keys, npuprof_args args)
{
    npuprof_slot_ *const slot = npuprof_record_enter_();
    bool lost = !slot;
    if (slot) {
        /* In a handler that interrupted a record, the spans of the thread cannot be told apart. */
        if (slot->top > slot->open) lost = !npuprof_record_add_result_(slot, keys, args);
        else lost = slot != npuprof_slot_mine_();
        npuprof_record_leave_(slot);
    }
    if (lost) npuprof_count_lost_(NPUPROF_LOST_ARGUMENTS, args.count);
}
/* ==== src/record/device.h =========================================================== >>record/device ==== */

/* What npuprof_npu.h records: devices, their clock anchors, their spans. A device is an entry of the table;
   one thread at a time stores anchors of a device. Words:
     d->first_anchors, block->a   ids of the lists' next entries, with release when that entry is whole
     block->count                 with release when the anchor is there
     d->overflow_used             0 while `overflow` is written, then a number it did not have before, with
                                  release: the same number before and after means a whole anchor
   This part does not know how a device is read. */

/* The first entry of a type whose `a` is the number of a device, or NULL. */
NPUPROF_OWN_ static npuprof_entry_ *npuprof_record_entry_of_(unsigned type, uint32_t device)
{
    const uint32_t end = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.header->table_used);
    uint32_t at = 0;
    npuprof_entry_ *e;
    while ((e = npuprof_table_next_(&at, end)) != NULL)
        if (NPUPROF_LOAD_ACQUIRE_(&e->type_units) >> 24 == type && e->a == device) return e;
    return NULL;
}

/* A device entry by its number, or NULL. */
NPUPROF_OWN_ static npuprof_device_entry_ *npuprof_record_device_at_(uint32_t device)
{
    return (npuprof_device_entry_ *)(void *)npuprof_record_entry_of_(NPUPROF_ENTRY_DEVICE, device);
}

NPUPROF_API_ uint32_t npuprof_device_add_(const char *name, unsigned pe_count, uint64_t nominal_hz,
                                          uint32_t max_rate_ppb)
{
    uint32_t id;
    if (!npuprof_record_is_ready_()) return 0;
    const uint32_t name_id = npuprof_table_intern_string_(name);
    npuprof_device_entry_ *d = NULL;
    if (name_id) d = (npuprof_device_entry_ *)(void *)npuprof_table_add_entry_(sizeof *d, &id);
    if (!d) return 0;
    const uint32_t number = NPUPROF_ADD_(&npuprof_arena_.header->devices, 1) + 1;
    if (number > 255) return 0;                /* a device span has 8 bits for it */
    d->nominal_hz = nominal_hz;
    d->name = name_id;
    d->pe_count = pe_count;
    d->max_rate_ppb = max_rate_ppb;
    d->head.a = number;
    npuprof_table_finish_entry_(&d->head, NPUPROF_ENTRY_DEVICE);
    return number;
}

NPUPROF_OWN_ static void npuprof_record_store_anchor_(npuprof_anchor_ *to, const npuprof_anchor_ *from)
{
    NPUPROF_STORE_(&to->device_ticks, from->device_ticks);
    NPUPROF_STORE_(&to->host_before, from->host_before);
    NPUPROF_STORE_(&to->host_after, from->host_after);
}

/* The table is full: of the anchors that did not fit, the newest is kept in the device's entry. */
NPUPROF_OWN_ static void npuprof_record_store_overflow_(npuprof_device_entry_ *d, uint32_t epoch,
                                           const npuprof_anchor_ *anchor)
{
    const uint32_t used = NPUPROF_LOAD_(&d->overflow_used) + 1;
    NPUPROF_STORE_(&d->overflow_used, 0);
    NPUPROF_STORE_RELEASE_(&d->overflow.device_ticks, anchor->device_ticks);
    NPUPROF_STORE_RELEASE_(&d->overflow.host_before, anchor->host_before);
    NPUPROF_STORE_RELEASE_(&d->overflow.host_after, anchor->host_after);
    NPUPROF_STORE_RELEASE_(&d->overflow_epoch, epoch);
    NPUPROF_STORE_RELEASE_(&d->overflow_used, used ? used : 1);
}

/* Appends an entry for anchors to the device's list; last: the newest one, or NULL. NULL: the table is
   full. */
NPUPROF_OWN_ static npuprof_anchors_entry_ *npuprof_record_add_anchors_(npuprof_device_entry_ *d,
                                                           npuprof_anchors_entry_ *last, uint32_t epoch)
{
    uint32_t id;
    npuprof_entry_ *const e = npuprof_table_add_entry_(sizeof(npuprof_anchors_entry_), &id);
    npuprof_anchors_entry_ *const block = (npuprof_anchors_entry_ *)(void *)e;
    if (!block) return NULL;
    block->epoch = epoch;
    npuprof_table_finish_entry_(&block->head, NPUPROF_ENTRY_ANCHORS);
    NPUPROF_STORE_RELEASE_(last ? &last->head.a : &d->first_anchors, id);
    NPUPROF_STORE_(&d->last_anchors, id);
    return block;
}

NPUPROF_API_ npuprof_result npuprof_device_anchor_(uint32_t device, uint32_t epoch,
                                                   const npuprof_anchor_ *anchor)
{
    npuprof_device_entry_ *d = npuprof_record_is_ready_() ? npuprof_record_device_at_(device) : NULL;
    if (!d) return NPUPROF_ERR_TABLE_FULL;
    npuprof_anchors_entry_ *block = NULL;
    if (d->last_anchors) block = (npuprof_anchors_entry_ *)npuprof_table_entry_at_(d->last_anchors);
    if (!block || block->count == NPUPROF_ANCHORS_PER_ENTRY_ || block->epoch != epoch)
        block = npuprof_record_add_anchors_(d, block, epoch);
    if (!block) {
        npuprof_record_store_overflow_(d, epoch, anchor);
        return NPUPROF_ERR_TABLE_FULL;
    }
    npuprof_record_store_anchor_(&block->anchor[block->count], anchor);
    NPUPROF_STORE_RELEASE_(&block->count, block->count + 1);
    return NPUPROF_OK;
}

NPUPROF_API_ void npuprof_device_note_(uint32_t device, unsigned note, uint64_t add)
{
    npuprof_device_entry_ *d = npuprof_record_is_ready_() ? npuprof_record_device_at_(device) : NULL;
    if (d) NPUPROF_ADD_(&d->notes[note], add);
}

NPUPROF_API_ void npuprof_device_flag_(uint32_t device, uint32_t flag)
{
    npuprof_device_entry_ *d = npuprof_record_is_ready_() ? npuprof_record_device_at_(device) : NULL;
    uint32_t flags = d ? NPUPROF_LOAD_(&d->flags) : 0;
    while (d && !NPUPROF_CAS_(&d->flags, &flags, flags | flag)) continue;
}

/* 11 bits and, above them, by how much they are shifted. Why 1 for no error: 0 says that it is not known. */
NPUPROF_API_ uint32_t npuprof_host_error_code_(uint64_t error_ticks)
{
    uint32_t shift = 0;
    while (shift < 31 && error_ticks > 2047u) {
        error_ticks = (error_ticks >> 1) + (error_ticks & 1);
        shift++;
    }
    if (error_ticks > 2047u) return 0;
    return shift << 11 | (uint32_t)npuprof_max_(error_ticks, 1);
}

/* Why two threads may add an entry each: both are there, and a reader adds them up. */
NPUPROF_API_ void npuprof_device_records_(uint32_t device, const uint64_t *add)
{
    if (!npuprof_record_is_ready_()) return;
    npuprof_entry_ *e = npuprof_record_entry_of_(NPUPROF_ENTRY_RECORDS, device);
    uint32_t id;
    if (!e) {
        e = npuprof_table_add_entry_(sizeof(npuprof_records_entry_), &id);
        if (!e) return;
        e->a = device;
        npuprof_table_finish_entry_(e, NPUPROF_ENTRY_RECORDS);
    }
    npuprof_records_entry_ *const r = (npuprof_records_entry_ *)(void *)e;
    for (unsigned i = 0; i < NPUPROF_RECORDS_COUNT; i++)
        if (add[i]) NPUPROF_ADD_(&r->counts[i], add[i]);
}

NPUPROF_API_ bool npuprof_device_lane_(uint32_t device, unsigned pe, const char *name)
{
    uint32_t id;
    const uint32_t name_id = npuprof_record_is_ready_() ? npuprof_table_intern_string_(name) : 0;
    npuprof_entry_ *const e = name_id ? npuprof_table_add_entry_(sizeof(npuprof_pair_entry_), &id) : NULL;
    if (!e) return false;
    npuprof_pair_entry_ *const lane = (npuprof_pair_entry_ *)(void *)e;
    lane->b[0] = pe;
    lane->b[1] = name_id;
    e->a = device;
    npuprof_table_finish_entry_(e, NPUPROF_ENTRY_LANE);
    return true;
}
/* ==== src/control/start.h =========================================================== >>control/start ==== */

/* What decides whether something is recorded: the level, a pause, capture control (capture.h), the
   categories. And the time as users ask for it. Call sites look at three words only, which this part
   computes:
     npuprof_gate_               macros up to this level record; INT_MIN: none do; NPUPROF_GATE_BOUNDARIES_:
                                 none do, but records and inferences call capture control
     npuprof_arena_generation_   counts up when call sites must look their category and id up again
     npuprof_arena_fast_         equals it while the gate is open and the clock is one instruction

   Data, beside these three: npuprof_control_, all atomic, and npuprof_control_lists_. Any thread may call the
   public functions. Each writes its own word first, and computes the three words from all. Two threads may do
   so at a time. So whoever computes looks at the inputs once more behind the store, and repeats if they have
   changed.

   This part may not know files or formats. */

enum { NPUPROF_PAUSE_NO_ENTRY_ = 1 };  /* a pause that the table had no space for; no entry has this id */

static struct {
    int level;                     /* 0: stopped */
    uint32_t paused;               /* 0, the entry of the pause, or NPUPROF_PAUSE_NO_ENTRY_ */
    uint32_t held;                 /* by capture control: 0, or the entry of that gap << 2 | NPUPROF_HOLD_* */
    uint32_t armed;                /* 1: capture control has a condition */
    void (*tell)(void *user, bool open);   /* npuprof_capture.gate, or NULL; with its user. Set up */
    void *tell_user;
    uintptr_t telling;             /* the thread that is in it, 0: none */
    uint32_t told;                 /* what it was told last */
    uint32_t window, window_over;  /* number of the active phase that began last; of the one that is over */
    bool started;                  /* npuprof_start() was called */
} npuprof_control_;

enum { NPUPROF_CONTROL_LISTS_ = 4 };

/* The lists of categories. Why several: a thread may still be reading the one before. */
static struct {
    uint32_t count;                /* of those that were written */
    char from[24];                 /* the variable that the last one came from, or empty */
    npuprof_record_list_ last[NPUPROF_CONTROL_LISTS_];
} npuprof_control_lists_;

/* ---- Gate and generation */

/* Opens the fast path for call sites, or closes it. */
NPUPROF_OWN_ static void npuprof_control_set_fast_path_(void)
{
    for (;;) {
        const int gate = NPUPROF_LOAD_SEQ_(&npuprof_gate_);
        const uint32_t generation = NPUPROF_LOAD_SEQ_(&npuprof_arena_generation_);
        const bool fast = gate >= 1 && NPUPROF_CLOCK_IS_FAST_();
        NPUPROF_STORE_SEQ_(&npuprof_arena_fast_, fast ? generation : UINT32_MAX);
        /* Why again: another thread may have changed them before the store. */
        if (gate == NPUPROF_LOAD_SEQ_(&npuprof_gate_)
            && generation == NPUPROF_LOAD_SEQ_(&npuprof_arena_generation_))
            return;
    }
}

/* Makes call sites look their category and their id up again. Why a CAS: two threads that load the same
   number would store the same one behind it. A call site that looked its category up between the two stores,
   by the list of the first, would keep that verdict. */
NPUPROF_OWN_ static void npuprof_control_advance_generation_(void)
{
    uint32_t was = NPUPROF_LOAD_(&npuprof_arena_generation_);
    while (!NPUPROF_CAS_(&npuprof_arena_generation_, &was, (was + 1) & 0x7FFFFFFFu)) {}
    npuprof_control_set_fast_path_();
}

/* What the gate is to be. The program's own stop and pause count for more than capture control. */
NPUPROF_OWN_ static int npuprof_control_gate_(void)
{
    const bool paused = NPUPROF_LOAD_SEQ_(&npuprof_control_.paused) != 0;
    const int level = paused ? 0 : NPUPROF_LOAD_SEQ_(&npuprof_control_.level);
    const uint32_t window = NPUPROF_LOAD_SEQ_(&npuprof_control_.window);
    const bool over = window && NPUPROF_LOAD_SEQ_(&npuprof_control_.window_over) == window;
    if (level && !over && !NPUPROF_LOAD_SEQ_(&npuprof_control_.held)) return level;
    return level && NPUPROF_LOAD_SEQ_(&npuprof_control_.armed) ? NPUPROF_GATE_BOUNDARIES_ : INT_MIN;
}

/* Call after a change of `level`, `paused`, `held`, `window`, `window_over` or `armed`. Async-signal safe. */
NPUPROF_OWN_ static void npuprof_control_set_gate_(void)
{
    for (;;) {
        const int gate = npuprof_control_gate_();
        NPUPROF_STORE_SEQ_(&npuprof_gate_, gate);
        /* Why again: another thread may have changed it before the store. */
        if (gate == npuprof_control_gate_()) break;
    }
    npuprof_control_set_fast_path_();
}

NPUPROF_API_ bool npuprof_is_recording(void) { return NPUPROF_OPEN_(1); }

/* Calls npuprof_capture.gate if the gate has opened or closed since the last time. Not from a signal handler.
   Why a flag and no lock: what another thread changes meanwhile is told behind the call by who is at it. */
NPUPROF_OWN_ static void npuprof_control_tell_(void)
{
#ifndef NPUPROF_RECORD_ONLY                /* it refuses capture control */
    for (;;) {
        /* At exit it is taken away. */
        void (*const tell)(void *, bool) = NPUPROF_LOAD_ACQUIRE_(&npuprof_control_.tell);
        const uint32_t open = NPUPROF_LOAD_SEQ_(&npuprof_gate_) >= 1;
        uintptr_t nobody = 0;
        if (!tell || NPUPROF_LOAD_(&npuprof_control_.told) == open) return;
        if (!NPUPROF_CAS_(&npuprof_control_.telling, &nobody, npuprof_slot_me_())) return;
        NPUPROF_STORE_(&npuprof_control_.told, open);
        tell(npuprof_control_.tell_user, open != 0);
        NPUPROF_STORE_SEQ_(&npuprof_control_.telling, (uintptr_t)0);
    }
#endif
}

/* What happens when the arena is full, for new chunks and in the image. */
NPUPROF_OWN_ static void npuprof_control_set_policy_(int when_full)
{
    npuprof_arena_.when_full = when_full;
    npuprof_arena_.header->when_full = (uint32_t)when_full;
}

/* ---- Time: where the clock's rate is not known, it follows from the first host anchor and one read now */

NPUPROF_API_ uint64_t npuprof_ticks_(void) { return npuprof_clock_(); }

/* The ns that pass in 2^32 ticks. */
NPUPROF_API_ uint64_t npuprof_ns_per_4g_ticks_(void)
{
    if (!npuprof_record_is_ready_()) return 0;
    const npuprof_header_ *h = npuprof_arena_.header;
    if (h->clock_hz) return npuprof_scale_(1000000000u, (uint64_t)1 << 32, h->clock_hz);
    npuprof_host_anchor_ now;
    npuprof_arena_read_anchor_(&now);
    const uint64_t ticks = now.ticks - h->first.ticks;
    return ticks ? npuprof_scale_((uint64_t)(now.monotonic_ns - h->first.monotonic_ns), (uint64_t)1 << 32,
                                  ticks) : (uint64_t)1 << 32;
}

/* Ticks as ns since the Unix epoch. They may lie before the start of the trace or in the future. */
NPUPROF_API_ int64_t npuprof_ticks_to_ns_(uint64_t ticks)
{
    if (!npuprof_record_is_ready_()) return 0;
    const npuprof_header_ *h = npuprof_arena_.header;
    npuprof_host_anchor_ now = h->first;
    if (!h->clock_hz) npuprof_arena_read_anchor_(&now);
    const int64_t distance = (int64_t)(ticks - now.ticks);
    const uint64_t size = distance < 0 ? 0 - (uint64_t)distance : (uint64_t)distance;
    uint64_t ns;
    if (h->clock_hz) {
        ns = npuprof_scale_(size, 1000000000u, h->clock_hz);
    } else {
        const uint64_t ticks_so_far = now.ticks - h->first.ticks;
        ns = npuprof_scale_(size, (uint64_t)(now.monotonic_ns - h->first.monotonic_ns),
                            ticks_so_far ? ticks_so_far : 1);
    }
    return h->first.unix_ns + (now.monotonic_ns - h->first.monotonic_ns)
        + (distance < 0 ? -(int64_t)ns : (int64_t)ns);
}

NPUPROF_API_ uint64_t npuprof_ticks_at_ns_(int64_t ns, uint64_t *error_ticks)
{
    *error_ticks = 0;
    if (!npuprof_record_is_ready_()) return 0;
    const npuprof_header_ *h = npuprof_arena_.header;
    npuprof_host_anchor_ now = h->first;
    if (!h->clock_hz) npuprof_arena_read_anchor_(&now);
    const uint64_t ticks_so_far = h->clock_hz ? h->clock_hz : now.ticks - h->first.ticks;
    const uint64_t ns_so_far =
        h->clock_hz ? 1000000000u : npuprof_max_((uint64_t)(now.monotonic_ns - h->first.monotonic_ns), 1);
    const int64_t distance = ns - h->first.unix_ns - (now.monotonic_ns - h->first.monotonic_ns);
    const uint64_t size = distance < 0 ? 0 - (uint64_t)distance : (uint64_t)distance;
    const uint64_t ticks = npuprof_scale_(size, ticks_so_far, ns_so_far);
    /* A ns may be several ticks; the rate is as good as the two anchors it comes from. */
    *error_ticks = npuprof_scale_(1, ticks_so_far, ns_so_far) + 1;
    if (!h->clock_hz)
        *error_ticks += now.error_ticks +
            npuprof_scale_(size, h->first.error_ticks + now.error_ticks + 1, ns_so_far);
    return distance < 0 ? npuprof_saturating_sub_(now.ticks, ticks) : now.ticks + ticks;
}

NPUPROF_API_ int64_t npuprof_now_ns(void)
{
    if (!npuprof_record_is_ready_()) return 0;
    const npuprof_header_ *h = npuprof_arena_.header;
    if (h->clock_hz) return npuprof_ticks_to_ns_(npuprof_clock_());
    return h->first.unix_ns + (npuprof_os_monotonic_ns_() - h->first.monotonic_ns);
}

/* ---- Start and stop, pause and resume */

NPUPROF_API_ npuprof_result npuprof_start(int level)
{
    if (level < 1 || level > 9)
        return NPUPROF_REFUSE_("npuprof_start: level is not 1 to 9; npuprof_stop() turns recording off");
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    NPUPROF_STORE_(&npuprof_control_.level, level);
    npuprof_control_.started = true;
    (void)npuprof_resume();
    npuprof_control_set_gate_();
    npuprof_control_tell_();
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_stop(void)
{
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    NPUPROF_STORE_(&npuprof_control_.level, 0);
    npuprof_control_set_gate_();
    npuprof_control_tell_();
    return NPUPROF_OK;
}

/* Why the entry is made before `paused` is set: npuprof_resume() on another thread reads in `paused` which
   entry to end. */
NPUPROF_API_ npuprof_result npuprof_pause(void)
{
    uint32_t id = NPUPROF_PAUSE_NO_ENTRY_, no = 0;
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (NPUPROF_LOAD_(&npuprof_control_.paused)) return NPUPROF_OK;
    npuprof_pause_entry_ *e = NULL;
    if (npuprof_table_takes_notes_())
        e = (npuprof_pause_entry_ *)(void *)npuprof_table_add_entry_(sizeof *e, &id);
    if (e) e->from = npuprof_clock_();
    if (!NPUPROF_CAS_(&npuprof_control_.paused, &no, id)) return NPUPROF_OK;
    npuprof_control_set_gate_();
    npuprof_control_tell_();
    if (e) npuprof_table_finish_entry_(&e->head, NPUPROF_ENTRY_PAUSE);
    else npuprof_count_lost_(NPUPROF_LOST_NOTES, 1);
    return e ? NPUPROF_OK : NPUPROF_ERR_TABLE_FULL;
}

NPUPROF_API_ npuprof_result npuprof_resume(void)
{
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    uint32_t id = NPUPROF_LOAD_ACQUIRE_(&npuprof_control_.paused);
    if (!id || !NPUPROF_CAS_(&npuprof_control_.paused, &id, 0)) return NPUPROF_OK;
    if (id != NPUPROF_PAUSE_NO_ENTRY_) {
        npuprof_pause_entry_ *e = (npuprof_pause_entry_ *)npuprof_table_entry_at_(id);
        NPUPROF_STORE_(&e->to, npuprof_clock_());
    }
    npuprof_control_set_gate_();
    npuprof_control_tell_();
    return NPUPROF_OK;
}

/* ---- Categories */

/* Copies the words of "a, b" or "-a, -b" into `list` with commas between. *mode: 0 without words, 1 only
   these, -1 all but these. False: a word is empty, the list is too long, or the words are mixed. */
NPUPROF_OWN_ static bool npuprof_control_parse_categories_(const char *spec, char *list, size_t bytes, int *mode)
{
    const char *item;
    size_t length, n = 0;
    *mode = 0;
    while (npuprof_text_next_item_(&spec, &item, &length)) {
        const char *word = item, *end = item + length;
        while (word < end && *word == ' ') word++;
        while (word < end && end[-1] == ' ') end--;
        if (word == end) continue;
        const int sign = *word == '-' ? -1 : 1;
        word += sign < 0;
        if (*mode && *mode != sign) return false;
        *mode = sign;
        length = (size_t)(end - word);
        if (!length || n + (n > 0) + length >= bytes) return false;
        if (n) list[n++] = ',';
        memcpy(list + n, word, length);
        n += length;
    }
    list[n] = 0;
    return true;
}

NPUPROF_API_ npuprof_result npuprof_set_categories(const char *spec)
{
    char words[sizeof npuprof_control_lists_.last[0].words];
    int mode;
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (!npuprof_control_parse_categories_(spec ? spec : "", words, sizeof words, &mode))
        return NPUPROF_ERR_CATEGORIES;
    /* Why each call takes another list: two threads may call at a time. */
    const uint32_t number = (NPUPROF_ADD_(&npuprof_control_lists_.count, 1) + 1) % NPUPROF_CONTROL_LISTS_;
    npuprof_record_list_ *const next = &npuprof_control_lists_.last[number];
    memcpy(next->words, words, strlen(words) + 1);
    next->mode = mode;
    NPUPROF_STORE_(&next->seen, 0);
    NPUPROF_STORE_RELEASE_(&npuprof_record_categories_, next);
    NPUPROF_STORE_(&npuprof_control_lists_.from[0], 0);
    npuprof_control_advance_generation_();
    return NPUPROF_OK;
}

/* ---- Results */

/* The text of each result, one behind the other. Why no table of pointers: each would be relocated. */
#define NPUPROF_MEMBER_(name, text) char of_##name[sizeof #name ": " text];
#define NPUPROF_MEMBER_TEXT_(name, text) #name ": " text,
static const struct { NPUPROF_RESULTS(NPUPROF_MEMBER_) char none[20]; } npuprof_control_results_ = {
    NPUPROF_RESULTS(NPUPROF_MEMBER_TEXT_) "no such result code" };
#undef NPUPROF_MEMBER_
#undef NPUPROF_MEMBER_TEXT_

/* Why not the same sentence each time for NPUPROF_ERR_ARGUMENT: the one about the argument that this thread
   gave says more. */
NPUPROF_API_ const char *npuprof_result_string(npuprof_result result)
{
    const char *const said = npuprof_os_sentence_(result);
    if (said) return said;
    const char *text = (const char *)&npuprof_control_results_;
    const int n = (unsigned)result < NPUPROF_RESULT_COUNT ? (int)result : NPUPROF_RESULT_COUNT;
    for (int i = 0; i < n; i++) text += strlen(text) + 1;
    return text;
}
/* ==== src/control/lock.h ============================================================= >>control/lock ==== */

/* The lock of the readers: of whoever writes an output, prints a report or empties the arena. One of them at
   a time uses the scratch, and while it does, no chunk is recycled.

   Data, in npuprof_arena_, which is for arena/:
     writer   the thread that has the lock, 0: none. CAS from 0; back to 0 with release
     frozen   1 while the lock is held. Written by the thread that has it; threads that want to recycle read
              it (arena/chunks.h, R4)
   A reader stores `frozen` first, and then waits until nobody recycles any more.

   This part may not know what the readers do. */

/* What npuprof_os_hold_cancel_() gave the thread that has the lock; it alone writes and reads it. */
static int npuprof_scratch_cancel_before_;

/* Takes the lock. False: this thread cannot have it. It has it already (a sink that calls back, a signal
   handler), or it is in the sink of NPUPROF_STREAM, or there is no arena. */
NPUPROF_OWN_ static bool npuprof_scratch_lock_(void)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    const uintptr_t me = npuprof_slot_me_();
    if (!npuprof_record_is_ready_() || NPUPROF_LOAD_(&s->drainer) == me) return false;
    const int cancel_before = npuprof_os_hold_cancel_();
    for (;;) {
        uintptr_t nobody = 0;
        if (NPUPROF_CAS_(&s->writer, &nobody, me)) break;
        if (nobody == me) {
            npuprof_os_release_cancel_(cancel_before);
            return false;
        }
        npuprof_os_yield_();
    }
    npuprof_scratch_cancel_before_ = cancel_before;
    NPUPROF_STORE_SEQ_(&s->frozen, 1);
    /* Why this wait ends: a thread that recycles cannot be the one that waits here. Its signals are blocked,
       so no handler of it waits; or it is the drainer, which was refused above. */
    while (NPUPROF_LOAD_SEQ_(&s->recycling)) npuprof_os_yield_();
    return true;
}

/* Gives the lock back. Threads that found no chunk may look again: chunks may be free, or be recycled. */
NPUPROF_OWN_ static void npuprof_scratch_unlock_(void)
{
    NPUPROF_ADD_SEQ_(&npuprof_arena_.exchanging, 1);
    npuprof_exchange_begin_round_();
    NPUPROF_STORE_SEQ_(&npuprof_arena_.frozen, 0);
    npuprof_exchange_end_();
    const int cancel_before = npuprof_scratch_cancel_before_;
    NPUPROF_STORE_RELEASE_(&npuprof_arena_.writer, (uintptr_t)0);
    npuprof_os_release_cancel_(cancel_before);
}

/* The result to return after npuprof_scratch_lock_() returned false. */
NPUPROF_OWN_ static npuprof_result npuprof_scratch_result_(void)
{
    return npuprof_record_is_ready_() ? NPUPROF_ERR_BUSY : NPUPROF_ERR_ARENA_SIZE;
}

/* Takes back a chunk that is given up. Returns how many spans and events began in it since `clear_ticks`:
   they are lost. counts: shall it look? */
NPUPROF_OWN_ static uint64_t npuprof_control_give_up_(npuprof_chunk_ *chunk, bool counts)
{
    uint64_t arguments;
    const uint64_t lost = counts ? npuprof_chunk_count_events_(npuprof_arena_.header, chunk, &arguments) : 0;
    npuprof_chunk_free_(chunk);
    return lost;
}

/* Empties the arena of what began before these ticks. Chunks that other threads fill stay theirs: readers
   leave out what is in them from before clear_ticks. 0: before now, and what begins meanwhile may be
   forgotten, too; else it is counted as lost where it does not stay. */
NPUPROF_OWN_ static npuprof_result npuprof_control_clear_before_(uint64_t before)
{
    uint64_t lost = 0;
    if (!npuprof_scratch_lock_()) return npuprof_scratch_result_();
    npuprof_header_ *h = npuprof_arena_.header;
    npuprof_slot_ *mine = npuprof_slot_mine_() == &npuprof_slot_none_ ? NULL : npuprof_record_enter_();
    NPUPROF_STORE_(&h->clear_ticks, before ? before : npuprof_clock_());
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) NPUPROF_STORE_(&h->lost[i], 0);
    NPUPROF_STORE_(&h->streamed, 0);
    for (uint32_t i = 0, chunks = NPUPROF_LOAD_ACQUIRE_(&h->chunk_next); i < chunks; i++)
        NPUPROF_STORE_(&npuprof_chunk_overwritten_at_(h, i)->count, 0);
    for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&h->slot_first); at; at = npuprof_slot_at_(at)->head.next_slot)
        NPUPROF_STORE_(&npuprof_slot_at_(at)->head.lost, 0);
    (void)npuprof_chunk_retire_idle_();
    npuprof_chunk_ *chunk = mine ? npuprof_slot_detach_chunk_(mine) : NULL;
    if (chunk) lost += npuprof_control_give_up_(chunk, before != 0);
    while ((chunk = npuprof_chunk_unqueue_()) != NULL) lost += npuprof_control_give_up_(chunk, before != 0);
    if (lost) npuprof_count_lost_(NPUPROF_LOST_READING, lost);
    if (mine) npuprof_record_leave_(mine);
    npuprof_scratch_unlock_();
    return NPUPROF_OK;
}

NPUPROF_API_ npuprof_result npuprof_clear(void) { return npuprof_control_clear_before_(0); }
#ifndef NPUPROF_RECORD_ONLY
/* ==== src/control/path.h ============================================================= >>control/path ==== */

/* Paths as users write them, and files that grow while the program runs: a stream, a mapped arena. A path is
   a pattern: %p stands for the pid, %h for the host, %t for the local time at the start of the trace, %i for
   the first number whose file does not exist yet, %% for a percent sign. Its extension says in which form the
   trace is written.
   Data: npuprof_path_output_ and npuprof_path_arena_, written by the thread that sets up (by npuprof_init(),
   too) and in the child of a fork.
   This part knows the forms by name, not how one is written. */

/* Where the trace goes. */
static struct {
    bool at_exit;                  /* it is written when the program ends */
    bool forked;                   /* a child, of a parent that recorded: it needs files of its own */
    char pattern[1024];            /* empty: nowhere */
} npuprof_path_output_;

/* The file that is mapped as the arena. */
static struct {
    size_t bytes;                  /* 0: none is */
    int fd;                        /* holds the lock of that file */
    char pattern[1024];
} npuprof_path_arena_;

/* In which form a trace goes to a path. The operators' sheet has no extension of its own. */
enum { NPUPROF_FORM_UNKNOWN_ = -1, NPUPROF_FORM_JSON_, NPUPROF_FORM_CSV_, NPUPROF_FORM_IMAGE_,
       NPUPROF_FORM_SHEET_ };

/* The form that the extension asks for. JSON is for paths without one, and for devices and pipes.
   An extension begins with a letter: in "trace.1" there is none. */
NPUPROF_OWN_ static int npuprof_path_form_(const char *path)
{
    static const char known[][9] = { ".json", ".csv", ".npuprof" };
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    for (int i = 0; dot && i <= NPUPROF_FORM_IMAGE_; i++)
        if (strcmp(dot, known[i]) == 0) return i;
    const bool has_extension = dot && dot != name && (dot[1] | 32) >= 'a' && (dot[1] | 32) <= 'z';
    return has_extension && !npuprof_os_in_place_(path) ? NPUPROF_FORM_UNKNOWN_ : NPUPROF_FORM_JSON_;
}

/* From now on the trace goes there, at exit, too. It is short enough, and has a known form. */
NPUPROF_OWN_ static void npuprof_path_set_output_(const char *pattern)
{
    npuprof_text_copy_(npuprof_path_output_.pattern, sizeof npuprof_path_output_.pattern, pattern);
    npuprof_path_output_.at_exit = true;
}

/* Can the output path be the file of a stream? */
NPUPROF_OWN_ static bool npuprof_path_is_stream_(void)
{
    return npuprof_path_form_(npuprof_path_output_.pattern) == NPUPROF_FORM_IMAGE_;
}

/* A pattern with its % sequences replaced. */
typedef struct npuprof_path_ {
    char text[1100];
    bool is_own;                   /* it holds %p or %i: no other process has the same path */
    bool is_numbered;              /* it holds %i */
} npuprof_path_;

/* Replaces the % sequences; %i becomes `number`. False: the path is too long, or there is no such
   sequence. */
NPUPROF_OWN_ static bool npuprof_path_expand_(const npuprof_header_ *h, const char *pattern, unsigned number,
                                 npuprof_path_ *out)
{
    size_t used = 0;
    out->text[0] = 0;
    out->is_own = out->is_numbered = false;
    for (const char *p = pattern; *p; p++) {
        char text[80] = { *p, 0 };
        if (*p == '%') {
            p++;
            if (*p == 'p') snprintf(text, sizeof text, "%u", (unsigned)h->pid);
            else if (*p == 'i') snprintf(text, sizeof text, "%u", number);
            else if (*p == 'h') snprintf(text, sizeof text, "%.63s", h->host);
            else if (*p == 't') npuprof_os_local_time_(h->first.unix_ns, text, sizeof text);
            else if (*p != '%') return false;
            out->is_own |= *p == 'p' || *p == 'i';
            out->is_numbered |= *p == 'i';
        }
        const size_t length = strlen(text);
        if (used + length + 1 > sizeof out->text) return false;
        memcpy(out->text + used, text, length + 1);
        used += length;
    }
    return true;
}

/* Inserts text before the extension of the file's name. False: the path becomes too long. */
NPUPROF_OWN_ static bool npuprof_path_insert_(npuprof_path_ *path, const char *text)
{
    char *const slash = strrchr(path->text, '/'), *const name = slash ? slash + 1 : path->text;
    char *dot = strrchr(name, '.');
    const size_t length = strlen(path->text), added = strlen(text);
    if (!dot || dot == name) dot = path->text + length;
    if (length + added + 1 > sizeof path->text) return false;
    memmove(dot + added, dot, strlen(dot) + 1);
    memcpy(dot, text, added);
    return true;
}

/* Gives the file at this path the first free one of the names NAME.1.EXTENSION, NAME.2.EXTENSION and so on;
   *aside is that name. Returns 0 or an errno value. EBUSY: a running process uses the file. */
NPUPROF_OWN_ static int npuprof_path_move_aside_(const npuprof_path_ *path, npuprof_path_ *aside)
{
    char number[16];
    int error = EEXIST;
    for (unsigned n = 1; error == EEXIST && n < 100000; n++) {
        *aside = *path;
        snprintf(number, sizeof number, ".%u", n);
        if (!npuprof_path_insert_(aside, number)) return EINVAL;
        error = npuprof_os_move_aside_(path->text, aside->text);
    }
    if (error) aside->text[0] = 0;
    return error;
}

/* Creates the file of a stream or a mapped arena. A file that is there already is moved aside: *aside is its
   new name, "" if there was none, and its mode is taken. Where a running process uses it, the new file has
   the pid in its name; with `apart`, in the child of a fork, it always has. Returns 0 or an errno value. */
NPUPROF_OWN_ static int npuprof_path_create_growing_(const npuprof_header_ *h, const char *pattern, bool apart, int *fd,
                                        npuprof_path_ *path, npuprof_path_ *aside)
{
    char suffix[16];
    aside->text[0] = 0;
    snprintf(suffix, sizeof suffix, "-%u", (unsigned)h->pid);
    for (unsigned n = 0; n < 100000; n++) {
        if (!npuprof_path_expand_(h, pattern, n, path)) return EINVAL;
        if (apart && !path->is_own && !npuprof_path_insert_(path, suffix)) return EINVAL;
        int error = npuprof_os_create_(path->text, fd);
        if (!error && aside->text[0]) npuprof_os_take_mode_(*fd, aside->text);
        if (error != EEXIST) return error;
        if (path->is_numbered) continue;
        error = npuprof_path_move_aside_(path, aside);
        if (error == EBUSY && !apart && !path->is_own) apart = true;
        else if (error) return error;
    }
    return EEXIST;
}

/* Removes a file that was just created, and gives the one that was moved aside for it its name back. */
NPUPROF_OWN_ static void npuprof_path_discard_(int fd, const npuprof_path_ *path, const npuprof_path_ *aside)
{
    npuprof_os_discard_(fd, path->text);
    if (aside->text[0]) (void)npuprof_os_move_aside_(aside->text, path->text);
}

/* Creates a file and maps it as the arena's memory. pattern NULL: that of the last call. Returns 0 or an
   errno value. */
NPUPROF_OWN_ static int npuprof_path_map_arena_(const char *pattern, size_t bytes, bool apart, void **memory)
{
    npuprof_header_ h;
    npuprof_path_ path, aside;
    int fd = -1;
    void *mapped = NULL;
    if (pattern && strlen(pattern) >= sizeof npuprof_path_arena_.pattern) return EINVAL;
    if (pattern) npuprof_text_copy_(npuprof_path_arena_.pattern, sizeof npuprof_path_arena_.pattern, pattern);
    /* Why a header of its own: the arena that will have one does not exist yet. */
    memset(&h, 0, sizeof h);
    h.pid = npuprof_os_pid_();
    npuprof_os_names_(h.host, sizeof h.host, h.program, sizeof h.program);
    h.first.monotonic_ns = npuprof_os_monotonic_ns_();
    npuprof_os_clocks_(&h.first);
    int error = npuprof_path_create_growing_(&h, npuprof_path_arena_.pattern, apart, &fd, &path, &aside);
    if (error) return error;
    error = npuprof_os_map_arena_(fd, bytes, &mapped);
    if (error) {
        npuprof_path_discard_(fd, &path, &aside);
        return error;
    }
    npuprof_path_arena_.fd = fd;
    npuprof_path_arena_.bytes = bytes;
    *memory = mapped;
    return 0;
}
/* ==== src/control/conditions.h ================================================= >>control/conditions ==== */

#include <string.h>

/* The conditions of capture control, as texts and as settings: a schedule of inferences or seconds, a
   trigger, signals, a control file. The texts are those of the environment and of npuprof_capture. Each
   function reads one of them. It returns NULL, or a sentence that says what to give instead; then nothing has
   changed.

   Data: npuprof_capture_set_, written when the library is set up and by npuprof_init(), and plain: who looks
   at it has loaded npuprof_record_hooks_.begins or installed the signal handler, behind all writes.

   This part may not know what follows from a condition: that is capture.h. */

/* A number of spans, or ns. */
typedef struct npuprof_capture_amount_ {
    uint64_t n;
    bool is_time;
} npuprof_capture_amount_;

/* The phases of a schedule. They follow each other; one of length 0 is skipped. */
enum { NPUPROF_PHASE_WAIT_, NPUPROF_PHASE_WARM_UP_, NPUPROF_PHASE_ACTIVE_, NPUPROF_PHASE_DONE_ };

enum { NPUPROF_DO_START_, NPUPROF_DO_STOP_, NPUPROF_DO_TOGGLE_, NPUPROF_DO_DUMP_, NPUPROF_DO_COUNT_ };
static const char npuprof_capture_actions_[NPUPROF_DO_COUNT_][8] = { "start", "stop", "toggle", "dump" };

enum { NPUPROF_SIGNALS_MAX_ = 4 };

typedef struct npuprof_capture_settings_ {
    /* Schedule */
    npuprof_capture_amount_ phases[NPUPROF_PHASE_DONE_];   /* ACTIVE of UINT64_MAX: for ever */
    uint64_t repeat;               /* 0: for ever */
    uint32_t counted;              /* NPUPROF_KIND_INFERENCE or _RECORD; 0: there is no schedule */
    bool by_windows;               /* each active phase is written into a file of its own */
    /* Trigger */
    uint32_t slow_kind;            /* NPUPROF_KIND_INFERENCE or _RECORD; 0: there is no trigger */
    uint64_t slow_ns, last_ns, every_ns, max;
    /* Commands */
    struct { int number, action; } signals[NPUPROF_SIGNALS_MAX_];
    uint32_t signal_count;
    char control_path[1024];       /* a pattern; empty: there is none */
} npuprof_capture_settings_;

static npuprof_capture_settings_ npuprof_capture_set_;

/* ---- Words and numbers */

/* Is the text, of that length, this word? */
NPUPROF_OWN_ static bool npuprof_capture_is_(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

NPUPROF_OWN_ static bool npuprof_capture_is_digit_(char c) { return c >= '0' && c <= '9'; }

/* Reads 20, or a time as 1.5s, with ns, us, ms, s, min or h. seconds: a number without a unit is one of
   seconds. Why not strtod(): the decimal point would be that of the program's locale. */
NPUPROF_OWN_ static bool npuprof_capture_read_amount_(const char *text, size_t length, bool seconds,
                                         npuprof_capture_amount_ *out)
{
    static const struct { char name[8]; uint64_t ns; } units[] = {
        { "s", 1000000000u }, { "ms", 1000000u }, { "us", 1000u }, { "ns", 1u },
        { "min", UINT64_C(60000000000) }, { "h", UINT64_C(3600000000000) } };
    uint64_t whole = 0, part = 0, scale = 1;
    size_t n = 0;
    for (; n < length && npuprof_capture_is_digit_(text[n]); n++) {
        if (whole > UINT64_C(100000000000)) return false;
        whole = whole * 10 + (uint64_t)(text[n] - '0');
    }
    if (n == 0) return false;
    if (n < length && text[n] == '.') {
        for (n++; n < length && npuprof_capture_is_digit_(text[n]); n++, scale *= 10) {
            if (scale > 100000000) return false;
            part = part * 10 + (uint64_t)(text[n] - '0');
        }
        if (scale == 1) return false;
    }
    out->is_time = n < length || seconds;
    out->n = whole;
    if (!out->is_time) return scale == 1;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (n < length ? !npuprof_capture_is_(text + n, length - n, units[i].name) : i > 0) continue;
        if (whole > (UINT64_MAX >> 2) / units[i].ns) return false;
        out->n = whole * units[i].ns + npuprof_scale_(part, units[i].ns, scale);
        return true;
    }
    return false;
}

/* The kind of span that a word names; 0: none. */
NPUPROF_OWN_ static uint32_t npuprof_capture_kind_(const char *text, size_t length)
{
    if (npuprof_capture_is_(text, length, "inference")) return NPUPROF_KIND_INFERENCE;
    return npuprof_capture_is_(text, length, "record") ? NPUPROF_KIND_RECORD : 0;
}

/* ---- The texts */

/* Reads key=value with one of these keys, each once. Returns its number, and where the value begins; or
   -1. */
NPUPROF_OWN_ static int npuprof_capture_read_key_(const char *item, size_t length, const char (*keys)[8], int count,
                                     unsigned *seen, size_t *value)
{
    const char *const equals = (const char *)memchr(item, '=', length);
    const size_t name = equals ? (size_t)(equals - item) : 0;
    for (int i = 0; equals && i < count; i++) {
        if (!npuprof_capture_is_(item, name, keys[i]) || (*seen >> i & 1)) continue;
        *seen |= 1u << i;
        *value = name + 1;
        return i;
    }
    return -1;
}

NPUPROF_OWN_ static const char *npuprof_capture_set_schedule_(const char *text)
{
    static const char form[] = "give wait=10,warmup=5,active=20,repeat=3: numbers of inferences, or times "
        "as 10s; active must be there; by=record counts records";
    static const char keys[][8] = { "wait", "warmup", "active", "repeat", "by" };
    npuprof_capture_amount_ amounts[4];
    uint32_t kind = NPUPROF_KIND_INFERENCE;
    unsigned seen = 0;
    const char *item;
    size_t length, value;
    memset(amounts, 0, sizeof amounts);
    while (npuprof_text_next_item_(&text, &item, &length)) {
        const int key = npuprof_capture_read_key_(item, length, keys, 5, &seen, &value);
        if (key < 0) return form;
        item += value;
        length -= value;
        if (key == 4) kind = npuprof_capture_kind_(item, length);
        else if (!npuprof_capture_read_amount_(item, length, false, &amounts[key])) return form;
    }
    if (!amounts[NPUPROF_PHASE_ACTIVE_].n || amounts[3].is_time || !kind) return form;
    memcpy(npuprof_capture_set_.phases, amounts, sizeof npuprof_capture_set_.phases);
    npuprof_capture_set_.repeat = amounts[3].n;
    npuprof_capture_set_.counted = kind;
    npuprof_capture_set_.by_windows = true;
    return NULL;
}

/* A delay is a schedule that waits once; a duration limits its one active phase. */
NPUPROF_OWN_ static const char *npuprof_capture_set_time_(const char *text, int phase)
{
    npuprof_capture_amount_ amount;
    if (npuprof_capture_set_.by_windows) return "there is a schedule; give wait= and active= in it";
    if (!npuprof_capture_read_amount_(text, strlen(text), true, &amount)
        || (!amount.n && phase == NPUPROF_PHASE_ACTIVE_))
        return "give a time, as 1.5 (seconds), 500ms or 10min";
    if (!npuprof_capture_set_.counted) npuprof_capture_set_.phases[NPUPROF_PHASE_ACTIVE_].n = UINT64_MAX;
    npuprof_capture_set_.phases[phase] = amount;
    npuprof_capture_set_.repeat = 1;
    npuprof_capture_set_.counted = NPUPROF_KIND_INFERENCE;
    return NULL;
}

NPUPROF_OWN_ static const char *npuprof_capture_set_delay_(const char *text)
{
    return npuprof_capture_set_time_(text, NPUPROF_PHASE_WAIT_);
}

NPUPROF_OWN_ static const char *npuprof_capture_set_duration_(const char *text)
{
    return npuprof_capture_set_time_(text, NPUPROF_PHASE_ACTIVE_);
}

NPUPROF_OWN_ static const char *npuprof_capture_set_trigger_(const char *text)
{
    static const char form[] = "give inference>20ms or record>20ms; ,last=30s limits a file to what began "
        "30 s before it, ,every=10s (default) their rate, ,max=100 (default) their number";
    static const char keys[][8] = { "last", "every", "max" };
    npuprof_capture_amount_ over = { 0, false }, amounts[3] = { { 0, true }, { UINT64_C(10000000000), true },
                                                                { 100, false } };
    unsigned seen = 0;
    const char *item;
    size_t length, value;
    if (!npuprof_text_next_item_(&text, &item, &length)) return form;
    const char *const than = (const char *)memchr(item, '>', length);
    const size_t name = than ? (size_t)(than - item) : 0;
    const uint32_t kind = npuprof_capture_kind_(item, name);
    if (!kind || !npuprof_capture_read_amount_(than + 1, length - name - 1, false, &over)) return form;
    while (npuprof_text_next_item_(&text, &item, &length)) {
        const int key = npuprof_capture_read_key_(item, length, keys, 3, &seen, &value);
        if (key < 0 || !npuprof_capture_read_amount_(item + value, length - value, false, &amounts[key]))
            return form;
    }
    if (!over.is_time || !amounts[0].is_time || !amounts[1].is_time || amounts[2].is_time) return form;
    npuprof_capture_set_.slow_kind = kind;
    npuprof_capture_set_.slow_ns = over.n;
    npuprof_capture_set_.last_ns = amounts[0].n;
    npuprof_capture_set_.every_ns = amounts[1].n;
    npuprof_capture_set_.max = amounts[2].n;
    return NULL;
}

/* The action of that name; -1: there is none. */
NPUPROF_OWN_ static int npuprof_capture_action_(const char *text, size_t length)
{
    for (int i = 0; i < NPUPROF_DO_COUNT_; i++)
        if (npuprof_capture_is_(text, length, npuprof_capture_actions_[i])) return i;
    return -1;
}

NPUPROF_OWN_ static const char *npuprof_capture_set_signal_(const char *text)
{
    static const char form[] = "give HUP, USR1, USR2 or RTMIN+3, then :start, :stop, :toggle or :dump "
        "(default); commas between, four at most, each signal once";
    int numbers[NPUPROF_SIGNALS_MAX_], actions[NPUPROF_SIGNALS_MAX_];
    uint32_t count = 0;
    const char *item;
    size_t length;
    while (npuprof_text_next_item_(&text, &item, &length)) {
        const char *const colon = (const char *)memchr(item, ':', length);
        const size_t name = colon ? (size_t)(colon - item) : length;
        const int number = npuprof_os_signal_number_(item, name);
        if (number == 0) return "this system has no such signals";
        const int action = colon ? npuprof_capture_action_(colon + 1, length - name - 1) : NPUPROF_DO_DUMP_;
        if (number < 0 || action < 0 || count == NPUPROF_SIGNALS_MAX_) return form;
        for (uint32_t i = 0; i < count; i++)
            if (numbers[i] == number) return form;
        numbers[count] = number;
        actions[count++] = action;
    }
    if (!count) return form;
    for (uint32_t i = 0; i < count; i++) {
        npuprof_capture_set_.signals[i].number = numbers[i];
        npuprof_capture_set_.signals[i].action = actions[i];
    }
    npuprof_capture_set_.signal_count = count;
    return NULL;
}

NPUPROF_OWN_ static const char *npuprof_capture_set_control_(const char *text)
{
    if (!npuprof_os_has_commands_()) return "this system has no control files";
    if (strlen(text) >= sizeof npuprof_capture_set_.control_path) return "longer than 1023 bytes";
    npuprof_text_copy_(npuprof_capture_set_.control_path, sizeof npuprof_capture_set_.control_path, text);
    return NULL;
}

/* All of them, in the order in which they are read: the schedule before what it excludes. Of the same group,
   npuprof_init() leaves alone what the environment gave. */
typedef struct npuprof_capture_text_ {
    char variable[17], field[13];
    uint8_t group;
    const char *(*set)(const char *text);
} npuprof_capture_text_;
enum { NPUPROF_CAPTURE_TEXTS_ = 6 };
static const npuprof_capture_text_ npuprof_capture_texts_[NPUPROF_CAPTURE_TEXTS_] = {
    { "NPUPROF_SCHEDULE", "schedule", 1, npuprof_capture_set_schedule_ },
    { "NPUPROF_DELAY", "delay", 1, npuprof_capture_set_delay_ },
    { "NPUPROF_DURATION", "duration", 1, npuprof_capture_set_duration_ },
    { "NPUPROF_TRIGGER", "trigger", 2, npuprof_capture_set_trigger_ },
    { "NPUPROF_CONTROL", "control_path", 4, npuprof_capture_set_control_ },
    { "NPUPROF_SIGNAL", "signal", 8, npuprof_capture_set_signal_ } };

/* Is there any condition? */
NPUPROF_OWN_ static bool npuprof_capture_is_set_(void)
{
    return npuprof_capture_set_.counted || npuprof_capture_set_.slow_kind || npuprof_capture_set_.signal_count
        || npuprof_capture_set_.control_path[0];
}
/* ==== src/control/environment.h =============================================== >>control/environment ==== */

/* The environment. Each variable is read once, when the library is set up, by one function; the table
   npuprof_env_variables_ names them. A value that cannot be used is refused: it is named on stderr and in the
   metadata of the trace, and the program goes on as if the variable were unset; a level out of range becomes
   the nearest one.

   Data: npuprof_env_, the settings of start.h, path.h and conditions.h, and header.traceparent. They are
   written by the thread that sets up; a variable comes before the same setting of npuprof_init().
   NPUPROF_ARENA_PATH and NPUPROF_ARENA_BYTES are used earlier, by npuprof_setup_arena_(): here it is only
   told what became of them.

   This part may not know how a trace is written. For a new variable, write its function and add a line to the
   table. */

/* What it said that other settings look at later. */
static struct {
    int when_full;                 /* NPUPROF_WHEN_FULL, -1: unset */
    bool populate;                 /* NPUPROF_POPULATE */
    unsigned conditions;           /* which conditions of capture control it gave: NPUPROF_ENV_GAVE_* */
    size_t arena_bytes;            /* NPUPROF_ARENA_BYTES, 0: unset */
    int arena_error;               /* NPUPROF_ARENA_PATH: 0, or errno if that file cannot be had */
} npuprof_env_;

/* ---- Values */

/* Tells about a value that cannot be used: in the metadata of the trace, and on stderr. */
NPUPROF_OWN_ static void npuprof_env_refuse_(const char *name, const char *value, const char *why)
{
    char text[400];
    snprintf(text, sizeof text, "%.200s: %s", value, why);
    npuprof_table_add_pair_(NPUPROF_ENTRY_ENVIRONMENT, name, text);
    npuprof_os_say_("npuprof: %s=%s\n", name, text);
}

/* A variable that is empty, 0, off or false counts as unset. */
NPUPROF_OWN_ static bool npuprof_env_is_unset_(const char *v)
{
    return !v || !*v || strcmp(v, "0") == 0 || strcmp(v, "off") == 0 || strcmp(v, "false") == 0;
}

/* A variable's value. NULL: it is unset. */
NPUPROF_OWN_ static const char *npuprof_env_get_(const char *name)
{
    const char *v = npuprof_os_env_(name);
    return npuprof_env_is_unset_(v) ? NULL : v;
}

/* Is it a value of the W3C Trace Context: 00-<32 hex>-<16 hex>-<2 hex>, neither of the two ids all zero? */
NPUPROF_OWN_ static bool npuprof_env_is_traceparent_(const char *v)
{
    bool good = strlen(v) == 55 && memcmp(v, "00-", 3) == 0 && v[35] == '-' && v[52] == '-';
    bool trace = false, parent = false;        /* the id has a digit that is not 0 */
    for (int i = 3; good && i < 55; i++) {
        if (i == 35 || i == 52) continue;
        good = (v[i] >= '0' && v[i] <= '9') || (v[i] >= 'a' && v[i] <= 'f');
        if (i < 35) trace |= v[i] != '0';
        else if (i < 52) parent |= v[i] != '0';
    }
    return good && trace && parent;
}

/* By NPUPROF_KEEP_OLDEST, NPUPROF_KEEP_NEWEST, NPUPROF_STREAM. */
static const char npuprof_env_policies_[][12] = { "keep-oldest", "keep-newest", "stream" };

/* Reads a size: a number of bytes, or of KiB, MiB or GiB with K, M or G behind it. 0: no arena can have this
   size. */
NPUPROF_OWN_ static size_t npuprof_env_read_size_(const char *v)
{
    static const char suffixes[] = "KMG";
    char *end = NULL;
    errno = 0;
    unsigned long long n = *v >= '0' && *v <= '9' ? strtoull(v, &end, 10) : 0;
    if (!end || errno) return 0;
    const char *const suffix = *end ? strchr(suffixes, *end & ~32) : NULL;
    const unsigned shift = suffix ? 10 * (unsigned)(suffix - suffixes + 1) : 0;
    if (end[suffix != NULL] || n > (SIZE_MAX / 2) >> shift) return 0;
    n <<= shift;
    return n < 2048 ? 0 : (size_t)n;
}

/* ---- One function for each variable. It gets a value that is set */

/* With a mapped arena, recording starts at once. */
NPUPROF_OWN_ static void npuprof_env_read_arena_path_(const char *name, const char *value)
{
    const int error = npuprof_env_.arena_error;
    if (npuprof_path_arena_.bytes) npuprof_control_.level = 1;
    else if (error)
        npuprof_env_refuse_(name, value, error == EINVAL
                            ? "not a path that can be used; the arena is in no file" : strerror(error));
}

NPUPROF_OWN_ static void npuprof_env_read_arena_bytes_(const char *name, const char *value)
{
    if (npuprof_env_.arena_bytes) return;
    npuprof_env_refuse_(name, value, npuprof_env_read_size_(value) ? "so much memory cannot be had"
                        : "give a number of bytes, at least 2048; K, M or G may follow");
}

/* Recording starts at once, and the trace is written at exit. */
NPUPROF_OWN_ static void npuprof_env_read_output_path_(const char *name, const char *value)
{
    if (strlen(value) >= sizeof npuprof_path_output_.pattern) {
        npuprof_env_refuse_(name, value, "longer than 1023 bytes; nothing is recorded");
    } else if (npuprof_path_form_(value) < 0) {
        npuprof_env_refuse_(name, value,
                            "unknown extension, give .json, .csv or .npuprof; nothing is recorded");
    } else {
        npuprof_path_set_output_(value);
        npuprof_control_.level = 1;
    }
}

/* Changes the level at which another variable has started the recording. */
NPUPROF_OWN_ static void npuprof_env_read_level_(const char *name, const char *value)
{
    char *end;
    errno = 0;
    const long level = strtol(value, &end, 10);
    if (*end || end == value) {
        npuprof_env_refuse_(name, value, "not a number; give 1 to 9");
        return;
    }
    const int clamped = level < 1 ? 1 : level > 9 ? 9 : (int)level;
    if (clamped != level)
        npuprof_env_refuse_(name, value, clamped == 9 ? "above 9; 9 is used" : "below 1; 1 is used");
    if (npuprof_control_.level) npuprof_control_.level = clamped;
    else npuprof_env_refuse_(name, value,
                             "has no effect without NPUPROF_OUTPUT_PATH or NPUPROF_ARENA_PATH");
}

NPUPROF_OWN_ static void npuprof_env_read_categories_(const char *name, const char *value)
{
    if (npuprof_set_categories(value) == NPUPROF_OK)
        npuprof_text_copy_(npuprof_control_lists_.from, sizeof npuprof_control_lists_.from, name);
    else npuprof_env_refuse_(name, value, "give \"a,b\" or \"-a,-b\", not both, up to 255 bytes");
}

/* "stream" without a file that can be one waits for the sink of npuprof_init(). */
NPUPROF_OWN_ static void npuprof_env_read_when_full_(const char *name, const char *value)
{
    int *const policy = &npuprof_env_.when_full;
    for (int i = 0; i <= NPUPROF_STREAM; i++)
        if (strcmp(value, npuprof_env_policies_[i]) == 0) *policy = i;
    if (*policy < 0) npuprof_env_refuse_(name, value, "give keep-oldest, keep-newest or stream");
    else if (*policy != NPUPROF_STREAM || npuprof_path_is_stream_()) npuprof_control_set_policy_(*policy);
}

NPUPROF_OWN_ static void npuprof_env_read_populate_(const char *name, const char *value)
{
    const bool on = strcmp(value, "1") == 0 || strcmp(value, "on") == 0 || strcmp(value, "true") == 0;
    npuprof_env_.populate = on;
    if (!npuprof_env_.populate) npuprof_env_refuse_(name, value, "give 1, on or true");
}

/* Capture control: a text that conditions.h reads. */
NPUPROF_OWN_ static void npuprof_env_read_condition_(const char *name, const char *value)
{
    for (int i = 0; i < NPUPROF_CAPTURE_TEXTS_; i++) {
        const npuprof_capture_text_ *const t = &npuprof_capture_texts_[i];
        if (strcmp(t->variable, name) != 0) continue;
        const char *const why = t->set(value);
        if (why) npuprof_env_refuse_(name, value, why);
        npuprof_env_.conditions |= t->group;
    }
}

/* The context in which another program called this one. Why not in the table: the name is not ours, and "0"
   is no way to unset it. */
NPUPROF_OWN_ static void npuprof_env_read_traceparent_(void)
{
    npuprof_header_ *const h = npuprof_arena_.header;
    const char *const value = npuprof_os_env_("TRACEPARENT");
    if (!value || !*value) return;
    if (npuprof_env_is_traceparent_(value))
        npuprof_text_copy_(h->traceparent, sizeof h->traceparent, value);
    else npuprof_env_refuse_("TRACEPARENT", value, "not of the form 00-<32 hex>-<16 hex>-<2 hex>");
}

/* ---- All of them */

/* In the order in which they are read: those that start the recording come before NPUPROF_LEVEL, and the
   output path before NPUPROF_WHEN_FULL, and a schedule before what it excludes. */
static const struct npuprof_env_variable_ {
    char name[20];
    void (*read)(const char *name, const char *value);
} npuprof_env_variables_[] = {
    { "NPUPROF_ARENA_PATH", npuprof_env_read_arena_path_ },
    { "NPUPROF_OUTPUT_PATH", npuprof_env_read_output_path_ },
    { "NPUPROF_ARENA_BYTES", npuprof_env_read_arena_bytes_ },
    { "NPUPROF_LEVEL", npuprof_env_read_level_ },
    { "NPUPROF_CATEGORIES", npuprof_env_read_categories_ },
    { "NPUPROF_WHEN_FULL", npuprof_env_read_when_full_ },
    { "NPUPROF_POPULATE", npuprof_env_read_populate_ },
    { "NPUPROF_SCHEDULE", npuprof_env_read_condition_ },
    { "NPUPROF_DELAY", npuprof_env_read_condition_ },
    { "NPUPROF_DURATION", npuprof_env_read_condition_ },
    { "NPUPROF_TRIGGER", npuprof_env_read_condition_ },
    { "NPUPROF_SIGNAL", npuprof_env_read_condition_ },
    { "NPUPROF_CONTROL", npuprof_env_read_condition_ },
};
enum { NPUPROF_ENV_COUNT_ = sizeof npuprof_env_variables_ / sizeof *npuprof_env_variables_ };

/* Is this a variable that npuprof reads, or none that looks like one? Names that begin with NPUPROF_TEST_ are
   left to the project's own tests. */
NPUPROF_OWN_ static bool npuprof_env_is_known_(const char *name, size_t length)
{
    if (strncmp(name, "NPUPROF_", 8) != 0 || strncmp(name, "NPUPROF_TEST_", 13) == 0) return true;
    for (int i = 0; i < NPUPROF_ENV_COUNT_; i++) {
        const char *const known = npuprof_env_variables_[i].name;
        if (strlen(known) == length && strncmp(name, known, length) == 0) return true;
    }
    return false;
}

/* Does any variable begin like those of npuprof? Why that is asked: looking for each by its name is most of
   what a process with none pays for its environment. */
NPUPROF_OWN_ static bool npuprof_env_has_any_(void)
{
    for (char **at = npuprof_os_environment_(); at && *at; at++)
        if (strncmp(*at, "NPUPROF_", 8) == 0) return true;
    return false;
}

/* Refuses what looks like a variable of npuprof and is none, such as a misspelt name. */
NPUPROF_OWN_ static void npuprof_env_refuse_unknown_(void)
{
    for (char **at = npuprof_os_environment_(); at && *at; at++) {
        const char *const equals = strchr(*at, '=');
        char name[80];
        if (!equals || npuprof_env_is_unset_(equals + 1)) continue;
        const size_t length = (size_t)(equals - *at);
        if (npuprof_env_is_known_(*at, length)) continue;
        npuprof_text_copy_(name, length < sizeof name ? length + 1 : sizeof name, *at);
        npuprof_env_refuse_(name, equals + 1, "there is no such variable");
    }
}

/* Reads all variables. Called once, behind npuprof_setup_arena_(). */
NPUPROF_OWN_ static void npuprof_env_read_(void)
{
    npuprof_env_.when_full = -1;
    const int count = npuprof_env_has_any_() ? NPUPROF_ENV_COUNT_ : 0;
    for (int i = 0; i < count; i++) {
        const char *const name = npuprof_env_variables_[i].name, *const value = npuprof_env_get_(name);
        if (value) npuprof_env_variables_[i].read(name, value);
    }
    if (count) npuprof_env_refuse_unknown_();
    npuprof_env_read_traceparent_();
}
/* ==== src/control/capture.h ======================================================= >>control/capture ==== */

/* Capture control: what follows from the conditions of conditions.h. There are three actions: open the gate,
   close it, write a file. All conditions are looked at in one place, npuprof_capture_look_(), where a record
   or inference begins or ends (record/boundary.h) or the program calls npuprof_poll(). Elsewhere only two
   things happen: a signal handler moves the gate, which is a few atomic operations; and a new chunk closes it
   when its time is over. So neither writes a file, and neither calls the program.

   Words, all atomic, of npuprof_capture_now_ if nothing else is said:
     requests, looking   who wants a look adds to `requests` and takes `looking` by CAS. If another thread has
                         it, that one looks again: it compares `requests` before and behind its look
     ended               spans of the counted kind that have ended; anybody adds
     slow                those slower than the trigger; anybody adds
     slow_wanted_ns      how long the slowest of them since the last look took; 0: there was none
     dump_wanted         1: somebody wants a file. Stored by anybody, taken by who looks
     phase, from_count, from_ns, cycles, files, ...   written by who looks
     npuprof_control_.held   why the gate is closed, and the entry of that gap in the table. By CAS

   This part may not know how a file is written: write/capture.h hands down `write`. */

/* Why the gate is closed: by the schedule, by a command (signal, control file). */
enum { NPUPROF_HOLD_SCHEDULE_ = 1, NPUPROF_HOLD_COMMAND_ = 2, NPUPROF_HOLD_BITS_ = 3 };

enum {
    NPUPROF_CAPTURE_GAPS_MAX_ = 1000,      /* gaps that are marked in the table, which never shrinks */
    NPUPROF_CAPTURE_FILES_MAX_ = 1000,     /* files of a process */
    NPUPROF_CAPTURE_POLL_NS_ = 100000000   /* how often the control file is looked at */
};

static struct {
    uint32_t requests, looking;
    uint64_t ended, slow;
    uint64_t slow_wanted_ns, half_ticks;       /* half_ticks: half of the limit, about; 0: not known */
    uint32_t dump_wanted;
    uint32_t phase, gaps, complaints;
    uint64_t over_ticks;                       /* when a new chunk closed the gate */
    uint64_t from_count, cycles;
    int64_t from_ns, polled_ns, slow_at_ns;    /* slow_at_ns: of the last file of the trigger; 0: none */
    uint64_t files, slow_files, failed;
    npuprof_result failure;                    /* the first since npuprof_poll() */
    npuprof_os_seen_ seen;
} npuprof_capture_now_;

/* What write/ hands down. clear: empties the arena behind the file. last_ns: leaves out what began longer
   ago; 0: nothing. */
static struct {
    npuprof_result (*write)(bool clear, uint64_t last_ns);
} npuprof_capture_hooks_;

/* ---- The gate */

/* Begins the mark of a gap in the trace. NULL: it is not marked. */
NPUPROF_OWN_ static npuprof_pause_entry_ *npuprof_capture_begin_gap_(uint32_t *id)
{
    if (NPUPROF_LOAD_ACQUIRE_(&npuprof_record_setup_) != 2) return NULL;
    if (NPUPROF_ADD_(&npuprof_capture_now_.gaps, 1) >= NPUPROF_CAPTURE_GAPS_MAX_) return NULL;
    npuprof_pause_entry_ *const e =
        (npuprof_pause_entry_ *)(void *)npuprof_table_append_(sizeof *e, true, id);
    const uint32_t window = NPUPROF_LOAD_(&npuprof_control_.window);
    const bool over = window && NPUPROF_LOAD_ACQUIRE_(&npuprof_control_.window_over) == window;
    if (e) e->from = over ? NPUPROF_LOAD_(&npuprof_capture_now_.over_ticks) : npuprof_clock_();
    else npuprof_count_lost_(NPUPROF_LOST_NOTES, 1);
    return e;
}

/* Sets or clears a reason why the gate is closed. The trace has a mark of the gap, but not of those between
   the windows of a schedule. Async-signal safe. */
NPUPROF_OWN_ static void npuprof_capture_hold_(uint32_t reason, bool hold)
{
    const uint32_t bits = NPUPROF_HOLD_BITS_;
    const bool mark = reason == NPUPROF_HOLD_COMMAND_ || !npuprof_capture_set_.by_windows;
    uint32_t old = NPUPROF_LOAD_ACQUIRE_(&npuprof_control_.held), next, id = 0;
    npuprof_pause_entry_ *e = NULL;
    do {
        next = hold ? old | reason : old & ~reason;
        if (next == old) return;
        if (!old && mark && !e) e = npuprof_capture_begin_gap_(&id);
        if (!old) next |= id << 2;
        if (!(next & bits)) next = 0;
    } while (!NPUPROF_CAS_(&npuprof_control_.held, &old, next));
    if (!old && e) npuprof_table_finish_entry_(&e->head, NPUPROF_ENTRY_PAUSE);
    if (!next && old >> 2 && NPUPROF_LOAD_ACQUIRE_(&npuprof_record_setup_) == 2)
        NPUPROF_STORE_(&((npuprof_pause_entry_ *)npuprof_table_entry_at_(old >> 2))->to, npuprof_clock_());
    npuprof_control_set_gate_();
}

/* Async-signal safe. */
NPUPROF_OWN_ static void npuprof_capture_do_(int action)
{
    const bool held = NPUPROF_LOAD_(&npuprof_control_.held) & NPUPROF_HOLD_COMMAND_;
    if (action == NPUPROF_DO_DUMP_) NPUPROF_STORE_(&npuprof_capture_now_.dump_wanted, 1);
    else npuprof_capture_hold_(NPUPROF_HOLD_COMMAND_,
                               action == NPUPROF_DO_STOP_ || (action == NPUPROF_DO_TOGGLE_ && !held));
}

/* The handler of all signals that were taken. Why it writes no file: hardly anything may be called here. */
NPUPROF_OWN_ static void npuprof_capture_on_signal_(int number)
{
    for (uint32_t i = 0; i < npuprof_capture_set_.signal_count; i++)
        if (npuprof_capture_set_.signals[i].number == number)
            npuprof_capture_do_(npuprof_capture_set_.signals[i].action);
}

/* ---- Files */

/* Names what went wrong, in the metadata and on stderr, each cause once. */
NPUPROF_OWN_ static void npuprof_capture_complain_(uint32_t cause, const char *name, const char *value, const char *why)
{
    if (npuprof_capture_now_.complaints >> cause & 1) return;
    npuprof_capture_now_.complaints |= (uint32_t)1 << cause;
    npuprof_env_refuse_(name, value, why);
}

/* Writes a file. False: it failed, which is counted. */
NPUPROF_OWN_ static bool npuprof_capture_write_(bool clear, uint64_t last_ns)
{
    npuprof_result r = NPUPROF_ERR_NO_SPACE;
    const bool may = npuprof_capture_now_.files < NPUPROF_CAPTURE_FILES_MAX_;
    if (may) r = npuprof_capture_hooks_.write(clear, last_ns);
    if (r == NPUPROF_OK) {
        NPUPROF_ADD_(&npuprof_capture_now_.files, 1);
        return true;
    }
    NPUPROF_ADD_(&npuprof_capture_now_.failed, 1);
    if (npuprof_capture_now_.failure == NPUPROF_OK) npuprof_capture_now_.failure = r;
    npuprof_capture_complain_(0, "capture", npuprof_path_output_.pattern, may ? npuprof_result_string(r)
                              : "1000 files were written; this process writes no more");
    return false;
}

/* ---- The control file */

/* Does what a complete line says. */
NPUPROF_OWN_ static void npuprof_capture_obey_(const char *line, size_t length)
{
    char word[40];
    while (length && (line[length - 1] == ' ' || line[length - 1] == '\r')) length--;
    if (!length) return;
    for (int i = 0; i < NPUPROF_DO_COUNT_; i++)
        if (npuprof_capture_is_(line, length, npuprof_capture_actions_[i])) {
            npuprof_capture_do_(i);
            return;
        }
    npuprof_text_copy_(word, length < sizeof word ? length + 1 : sizeof word, line);
    for (char *p = word; *p; p++)
        if (*p < ' ' || *p > '~') *p = '?';
    npuprof_capture_complain_(1, "NPUPROF_CONTROL", word, "not a command; give start, stop, toggle or dump");
}

/* Looks at the control file, if that is due. A line counts when its end is there. */
NPUPROF_OWN_ static void npuprof_capture_poll_(int64_t now)
{
    char text[1024];
    npuprof_path_ path;
    size_t bytes = 0, done = 0;
    if (!npuprof_capture_set_.control_path[0]
        || now - npuprof_capture_now_.polled_ns < NPUPROF_CAPTURE_POLL_NS_) return;
    npuprof_capture_now_.polled_ns = now;
    if (!npuprof_path_expand_(npuprof_arena_.header, npuprof_capture_set_.control_path, 0, &path)) {
        npuprof_capture_complain_(2, "NPUPROF_CONTROL", npuprof_capture_set_.control_path,
                                  "the path is too long or holds an unknown % sequence");
        return;
    }
    const int error = npuprof_os_read_commands_(path.text, &npuprof_capture_now_.seen, text, sizeof text,
                                                &bytes, npuprof_hash_text_);
    if (error == EAGAIN) return;
    if (error || bytes == sizeof text) {
        npuprof_capture_complain_(3, "NPUPROF_CONTROL", path.text, error == EACCES
                                  ? "it must be readable, and other users must not be able to write it"
                                  : error == EPERM ? "another user owns it" : error
                                  ? "not a regular file" : "longer than 1023 bytes; it is ignored");
        return;
    }
    for (size_t at = 0; at < bytes; at++) {
        if (text[at] != '\n') continue;
        npuprof_capture_obey_(text + done, at - done);
        done = at + 1;
    }
}

/* ---- The schedule */

NPUPROF_OWN_ static bool npuprof_capture_is_due_(int64_t now)
{
    const uint32_t phase = NPUPROF_LOAD_(&npuprof_capture_now_.phase);
    if (!npuprof_capture_set_.counted || phase == NPUPROF_PHASE_DONE_) return false;
    const npuprof_capture_amount_ a = npuprof_capture_set_.phases[phase];
    const int64_t passed = a.is_time ? now - NPUPROF_LOAD_(&npuprof_capture_now_.from_ns)
        : (int64_t)(NPUPROF_LOAD_(&npuprof_capture_now_.ended) - npuprof_capture_now_.from_count);
    return passed >= 0 && (uint64_t)passed >= a.n;     /* Why below 0: `now` may be older than the phase */
}

/* Goes to the next phase, which begins now. Behind the last one nothing is recorded. */
NPUPROF_OWN_ static void npuprof_capture_advance_(void)
{
    uint32_t next = npuprof_capture_now_.phase + 1;
    if (next == NPUPROF_PHASE_DONE_) {
        npuprof_capture_hold_(NPUPROF_HOLD_SCHEDULE_, true);
        npuprof_control_tell_();
        if (npuprof_capture_set_.by_windows) (void)npuprof_capture_write_(true, 0);
        npuprof_capture_now_.cycles++;
        if (npuprof_capture_now_.cycles != npuprof_capture_set_.repeat) next = NPUPROF_PHASE_WAIT_;
    }
    npuprof_capture_now_.from_count = NPUPROF_LOAD_(&npuprof_capture_now_.ended);
    /* Why the clock only now: the file of the last window may have taken a while. */
    NPUPROF_STORE_(&npuprof_capture_now_.from_ns, npuprof_os_monotonic_ns_());
    if (next == NPUPROF_PHASE_ACTIVE_) NPUPROF_ADD_SEQ_(&npuprof_control_.window, 1);
    NPUPROF_STORE_RELEASE_(&npuprof_capture_now_.phase, next);
    if (next == NPUPROF_PHASE_ACTIVE_
        || (next == NPUPROF_PHASE_WARM_UP_ && npuprof_capture_set_.phases[next].n))
        npuprof_capture_hold_(NPUPROF_HOLD_SCHEDULE_, false);
}

/* ---- The look */

/* A file for the trigger, unless the last one is too young or there were enough. took_ns: of the slow span,
   which is to be in the file, with what came before it. */
NPUPROF_OWN_ static void npuprof_capture_write_slow_(int64_t now, uint64_t took_ns)
{
    const uint64_t last_ns = npuprof_capture_set_.last_ns;
    const int64_t before = npuprof_capture_now_.slow_at_ns;
    if (npuprof_capture_now_.slow_files >= npuprof_capture_set_.max) return;
    if (before && (uint64_t)(now - before) < npuprof_capture_set_.every_ns) return;
    npuprof_capture_now_.slow_at_ns = now;
    npuprof_capture_now_.slow_files++;
    (void)npuprof_capture_write_(false, last_ns ? last_ns + took_ns : 0);
}

NPUPROF_OWN_ static void npuprof_capture_look_(void)
{
    const int64_t now = npuprof_os_monotonic_ns_();
    npuprof_capture_poll_(now);
    uint64_t took_ns = NPUPROF_LOAD_(&npuprof_capture_now_.slow_wanted_ns);
    while (took_ns && !NPUPROF_CAS_(&npuprof_capture_now_.slow_wanted_ns, &took_ns, 0)) {}
    if (took_ns) npuprof_capture_write_slow_(now, took_ns);
    if (NPUPROF_LOAD_(&npuprof_capture_now_.dump_wanted)) {
        NPUPROF_STORE_(&npuprof_capture_now_.dump_wanted, 0);
        (void)npuprof_capture_write_(false, 0);
    }
    while (npuprof_capture_is_due_(npuprof_os_monotonic_ns_())) npuprof_capture_advance_();
    npuprof_control_tell_();
}

/* Looks, or has the thread look that is at it. */
NPUPROF_OWN_ static void npuprof_capture_request_(void)
{
    uint32_t seen, nobody = 0;
    NPUPROF_ADD_SEQ_(&npuprof_capture_now_.requests, 1);
    do {
        nobody = 0;
        if (!NPUPROF_CAS_(&npuprof_capture_now_.looking, &nobody, 1)) return;
        const int cancel_before = npuprof_os_hold_cancel_(), error_before = errno;
        seen = NPUPROF_LOAD_SEQ_(&npuprof_capture_now_.requests);
        npuprof_capture_look_();
        errno = error_before;
        npuprof_os_release_cancel_(cancel_before);
        NPUPROF_STORE_SEQ_(&npuprof_capture_now_.looking, 0);
    } while (seen != NPUPROF_LOAD_SEQ_(&npuprof_capture_now_.requests));
}

/* ---- Where a look is taken: npuprof_record_hooks_ */

NPUPROF_OWN_ static uint32_t npuprof_capture_begins_(uint32_t kind)
{
    if (!npuprof_record_is_ready_()) return NPUPROF_KIND_NONE;
    npuprof_capture_request_();
    if (!npuprof_is_recording()) return NPUPROF_KIND_NONE;
    const bool warm_up = NPUPROF_LOAD_(&npuprof_capture_now_.phase) == NPUPROF_PHASE_WARM_UP_;
    return warm_up && kind == npuprof_capture_set_.counted ? (uint32_t)NPUPROF_KIND_WARM_UP : kind;
}

/* Is a span that took so long slower than the trigger? The next look then writes a file.
   Why the ticks first: to know the rate of a clock takes most of a microsecond. A millisecond after the start
   it is known well enough to tell what took less than half of the limit. */
NPUPROF_OWN_ static void npuprof_capture_compare_(uint64_t ticks)
{
    const uint64_t limit_ns = npuprof_capture_set_.slow_ns, once = (uint64_t)1 << 32;
    if (ticks < NPUPROF_LOAD_(&npuprof_capture_now_.half_ticks)) return;
    const uint64_t rate = npuprof_ns_per_4g_ticks_(), ns = npuprof_scale_(ticks, rate, once);
    if (rate && npuprof_os_monotonic_ns_() - npuprof_arena_.header->first.monotonic_ns > 1000000)
        NPUPROF_STORE_(&npuprof_capture_now_.half_ticks, npuprof_scale_(limit_ns / 2, once, rate));
    if (ns <= limit_ns) return;
    NPUPROF_ADD_(&npuprof_capture_now_.slow, 1);
    uint64_t slowest = NPUPROF_LOAD_(&npuprof_capture_now_.slow_wanted_ns);
    while (ns > slowest && !NPUPROF_CAS_(&npuprof_capture_now_.slow_wanted_ns, &slowest, ns)) {}
}

NPUPROF_OWN_ static void npuprof_capture_ends_(uint32_t kind, uint64_t ticks)
{
    if (!npuprof_record_is_ready_()) return;
    if (kind == npuprof_capture_set_.counted || kind == NPUPROF_KIND_WARM_UP)
        NPUPROF_ADD_(&npuprof_capture_now_.ended, 1);
    if (ticks != UINT64_MAX && kind == npuprof_capture_set_.slow_kind)
        npuprof_capture_compare_(ticks);
    npuprof_capture_request_();
}

/* Closes the gate when the active phase is over; the next look finds that, too, and goes on from there.
   Why by the number of the phase: another thread may look meanwhile, and the next one has begun. */
NPUPROF_OWN_ static void npuprof_capture_moved_(void)
{
    const uint32_t window = NPUPROF_LOAD_SEQ_(&npuprof_control_.window);
    uint32_t over = NPUPROF_LOAD_(&npuprof_control_.window_over);
    if (NPUPROF_LOAD_ACQUIRE_(&npuprof_capture_now_.phase) != NPUPROF_PHASE_ACTIVE_) return;
    if (!npuprof_capture_set_.phases[NPUPROF_PHASE_ACTIVE_].is_time) return;
    if (!npuprof_capture_is_due_(npuprof_os_monotonic_ns_())) return;
    NPUPROF_STORE_(&npuprof_capture_now_.over_ticks, npuprof_clock_());
    while ((int32_t)(window - over) > 0)
        if (NPUPROF_CAS_(&npuprof_control_.window_over, &over, window)) npuprof_control_set_gate_();
}

NPUPROF_API_ npuprof_result npuprof_poll(void)
{
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (!NPUPROF_LOAD_(&npuprof_control_.armed)) return NPUPROF_OK;
    npuprof_capture_request_();
    const npuprof_result r = npuprof_capture_now_.failure;
    npuprof_capture_now_.failure = NPUPROF_OK;
    return r;
}

/* ---- The beginning */

/* Begins at the first phase, with nothing counted. held: by a command. Also in the child of a fork: what a
   command said of the parent holds for it, or one file for both would toggle them apart. */
NPUPROF_OWN_ static void npuprof_capture_start_over_(uint32_t held)
{
    const int64_t polled = npuprof_capture_now_.polled_ns;
    const npuprof_os_seen_ seen = npuprof_capture_now_.seen;
    const uint32_t complaints = npuprof_capture_now_.complaints;
    memset(&npuprof_capture_now_, 0, sizeof npuprof_capture_now_);
    npuprof_capture_now_.polled_ns = polled;
    npuprof_capture_now_.seen = seen;
    npuprof_capture_now_.complaints = complaints;
    npuprof_capture_now_.from_ns = npuprof_os_monotonic_ns_();
    if (npuprof_capture_set_.counted) held |= NPUPROF_HOLD_SCHEDULE_;
    npuprof_control_.held = held;
    while (npuprof_capture_set_.counted && !npuprof_capture_set_.phases[npuprof_capture_now_.phase].n)
        npuprof_capture_advance_();
}

/* Takes the signals that are free; the others are no conditions. NULL, or a sentence about those. */
NPUPROF_OWN_ static const char *npuprof_capture_take_signals_(void)
{
    const char *why = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < npuprof_capture_set_.signal_count; i++) {
        npuprof_capture_set_.signals[count] = npuprof_capture_set_.signals[i];
        if (npuprof_os_take_signal_(npuprof_capture_set_.signals[i].number, npuprof_capture_on_signal_) == 0)
            count++;
        else why = "the program has a handler for this signal, or ignores it; it was left alone";
    }
    npuprof_capture_set_.signal_count = count;
    return why;
}

/* Makes the conditions count. Called at the end of the set-up, and by npuprof_init() if it brought some.
   Returns NULL, or a sentence about the signals. */
NPUPROF_OWN_ static const char *npuprof_capture_arm_(void)
{
    uint32_t (*const begins)(uint32_t) = npuprof_capture_begins_;
    const char *const why = npuprof_capture_take_signals_();
    if (!npuprof_capture_is_set_()) return why;
    /* A stop before npuprof_init() holds behind it. */
    uint32_t held = npuprof_control_.armed ? NPUPROF_LOAD_(&npuprof_control_.held) : 0;
    held = held & NPUPROF_HOLD_COMMAND_ ? held & ~(uint32_t)NPUPROF_HOLD_SCHEDULE_ : 0;
    for (uint32_t i = 0; i < npuprof_capture_set_.signal_count; i++) {
        const int action = npuprof_capture_set_.signals[i].action;
        if (action == NPUPROF_DO_START_ || action == NPUPROF_DO_TOGGLE_) held |= NPUPROF_HOLD_COMMAND_;
    }
    npuprof_capture_start_over_(held);
    npuprof_capture_poll_(npuprof_os_monotonic_ns_());
    npuprof_capture_now_.dump_wanted = 0;          /* an old command; nothing is recorded yet */
    npuprof_record_hooks_.ends = npuprof_capture_ends_;
    npuprof_record_hooks_.moved = npuprof_capture_moved_;
    NPUPROF_STORE_SEQ_(&npuprof_control_.armed, 1);
    NPUPROF_STORE_RELEASE_(&npuprof_record_hooks_.begins, begins);
    npuprof_control_set_gate_();
    return why;
}

/* At exit: names the variables of conditions that nothing has looked at. */
NPUPROF_OWN_ static void npuprof_capture_report_unseen_(void)
{
    if (!NPUPROF_LOAD_(&npuprof_control_.armed) || NPUPROF_LOAD_(&npuprof_capture_now_.requests)) return;
    for (int i = 0; i < NPUPROF_CAPTURE_TEXTS_; i++) {
        const char *const name = npuprof_capture_texts_[i].variable, *const value = npuprof_env_get_(name);
        const bool alone = strcmp(name, "NPUPROF_DURATION") == 0 || strcmp(name, "NPUPROF_SIGNAL") == 0;
        if (value && !alone)
            npuprof_env_refuse_(name, value, "never looked at: the program has no PROF_RECORD, no "
                                "PROF_INFERENCE and no npuprof_poll()");
    }
}

/* Called when the library is unloaded. */
NPUPROF_OWN_ static void npuprof_capture_leave_signals_(void)
{
    for (uint32_t i = 0; i < npuprof_capture_set_.signal_count; i++)
        npuprof_os_leave_signal_(npuprof_capture_set_.signals[i].number, npuprof_capture_on_signal_);
}
#endif /* !NPUPROF_RECORD_ONLY */
/* ==== src/clock/device_map.h ===================================================== >>clock/device_map ==== */
#include <string.h>

/* Maps device ticks to host ticks, with an error bound that is true and that no method can improve much.

   Data: an npuprof_map_ with neighbouring reads of one device and epoch, ascending, which the caller fills;
   what was computed of them stays there. This part knows no image and no thread.

   ---- The bound, step by step

   Notation: x device ticks; L(x) the true host ticks at which the counter began to show x. It never
   decreases. A slope is one of L.

   Assumptions:
     C1  A read that showed x is an upper point (x, after): L(x) <= after; and a lower point (x + 1, before):
         L(x + 1) >= before. The two are kept apart.
     C2  In any stretch of D host ticks the slope stays in [c (1 - r), c (1 + r)] for some c, where
         r = max_rate_ppb / 10^9 * max(1, D / window): steady. Clocks of another kind have fixed limits of the
         slope, or none (npuprof_map_rate_ in public/types.h).

   M1  In a window of points, v = L(x) and c are unknown. For each upper point (xi, hi), lower point (xi, li):
          xi <= x:  v <= hi + c (1 + r) (x - xi)      v >= li + c (1 - r) (x - xi)        by C2
          xi >  x:  v <= hi - c (1 - r) (xi - x)      v >= li - c (1 + r) (xi - x)
       and between each lower and each upper point:
          lj - hi <= c (1 + r) (xj - xi)              hj - li >= c (1 - r) (xj - xi)
   M2  The second part of M1 gives the range of c. If it is empty, C2 does not hold there.
   M3  U(x): the largest v over all c, a concave maximum of the minimum of lines. Lo(x): the smallest. The
       true (c, v) fits M1, so Lo(x) <= L(x) <= U(x). One more point can only bring them closer. They are the
       best:
       for a c that M2 allows, the minimum of the lines is itself a possible L (McShane).
   M4  The minimum of any two of the lines is above the minimum of all. So a search for the maximum may end
       where it likes: what it has is true.
   M5  M3 is solved at each point, in a window of up to 8 neighbours on each side: a node. Between two nodes A
       and B of one side, T apart, x behind A: let f, g be the mean slopes from A to x and from x to B.
          L(x) = chord of L + (f - g) x (T - x) / T,  |f - g| <= 2 r c                    by C2 from A to B
          c T <= H / (1 - r),  H >= L(B) - L(A)
       So L(x) <= chord of U + bow, and L(x) >= chord of Lo - bow, where
          bow = 2 r / (1 - r) H (x / T) (1 - x / T)
   M6  Before the first node and behind the last one M3 itself holds, with the D that reaches to x.
   M7  A stamp that shows s is in [Lo(s), U(s + 1)]. Where no point bounds it, its submission and
       its record do: `since` and `until`. The middle is the answer.

   What contradicts C1 and C2 is in clock/evidence.h.

   Why floating point: distances from the nearest point have less than 53 bits over days, and each result is
   moved outwards by more than what is rounded. */

enum { NPUPROF_MAP_SIDE_ = 8, NPUPROF_MAP_WINDOW_ = 2 * NPUPROF_MAP_SIDE_ + 2, NPUPROF_MAP_POINTS_ = 64,
       NPUPROF_MAP_RECENT_ = 16, NPUPROF_MAP_STEPS_ = 8, NPUPROF_MAP_READS_ = 6, NPUPROF_MAP_LATE_ = 32,
       NPUPROF_MAP_IN_A_ROW_ = 3, NPUPROF_MAP_FIRST_ = 3 };

/* The two best reads of some time: the one that is the best upper point, and the best lower one. */
typedef struct npuprof_map_point_ { uint64_t upper, upper_host, lower, lower_host; } npuprof_map_point_;

typedef struct npuprof_map_ {
    npuprof_map_rate_ rate;
    uint32_t count;
    npuprof_map_point_ point[NPUPROF_MAP_POINTS_];
    bool open[NPUPROF_MAP_POINTS_];        /* the gap before the point: E1, E2 */
    bool known[2][NPUPROF_MAP_POINTS_];    /* of the lower side, of the upper one: `node` is */
    double node[2][NPUPROF_MAP_POINTS_];   /* U or Lo there, from the point's own host ticks on */
    uint32_t at[2];                        /* where the last stamp was found */
} npuprof_map_;

/* Points of a window as distances from one place, in host ticks by the slope of their chord; `rest`: by how
   much the host ticks differ from that. c of C2 is (1 + k) times the chord's slope. */
typedef struct npuprof_map_window_ {
    uint32_t count;
    double slope, r, min_k, max_k, span;
    double at[2][NPUPROF_MAP_WINDOW_], rest[2][NPUPROF_MAP_WINDOW_];
} npuprof_map_window_;

NPUPROF_OWN_ static npuprof_map_point_ npuprof_map_point_of_(const npuprof_anchor_ *a)
{
    npuprof_map_point_ p;
    p.upper = p.lower = a->device_ticks;
    p.upper_host = a->host_after;
    p.lower_host = a->host_before;
    return p;
}

NPUPROF_OWN_ static double npuprof_map_distance_(uint64_t from, uint64_t to)
{
    return to >= from ? (double)(to - from) : -(double)(from - to);
}

/* The device ticks of a point: of its upper side, or of its lower one (C1). */
NPUPROF_OWN_ static uint64_t npuprof_map_ticks_at_(const npuprof_map_point_ *p, int side)
{
    return side ? p->upper : npuprof_saturating_add_(p->lower, 1);
}

NPUPROF_OWN_ static uint64_t npuprof_map_host_at_(const npuprof_map_point_ *p, int side)
{
    return side ? p->upper_host : p->lower_host;
}

/* Fills a window with neighbouring points, seen from one side of a point. ahead: how many device ticks a
   stamp lies outside of them. False: they give no rate, or contradict C2 (M2). */
NPUPROF_OWN_ static bool npuprof_map_fill_(npuprof_map_window_ *w, const npuprof_map_rate_ *rate,
                              const npuprof_map_point_ *points, uint32_t count,
                              const npuprof_map_point_ *from, int side, double ahead)
{
    const npuprof_map_point_ *const last = points + count - 1;
    const double ticks = npuprof_map_distance_(points->upper, last->upper);
    const double host = npuprof_map_distance_(points->upper_host, last->upper_host);
    if (count < 2 || ticks < 1 || host < 1) return false;
    w->count = count;
    w->slope = host / ticks;
    w->span = npuprof_map_distance_(points->lower_host, last->upper_host) + ahead * w->slope;
    const double windows = w->span / (double)npuprof_max_(rate->window, 1);
    w->r = (double)rate->max_rate_ppb * 1e-9 * (windows > 1 ? windows : 1);
    if (w->r > 0.5) w->r = 0.5;
    for (uint32_t i = 0; i < count; i++)
        for (int s = 0; s < 2; s++) {
            w->at[s][i] = w->slope * npuprof_map_distance_(npuprof_map_ticks_at_(from, side),
                                                           npuprof_map_ticks_at_(&points[i], s));
            w->rest[s][i] = npuprof_map_distance_(npuprof_map_host_at_(from, side),
                                                  npuprof_map_host_at_(&points[i], s)) - w->at[s][i];
        }
    const double slack = w->span * 8e-15;
    w->min_k = -1;
    w->max_k = 1e9;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < count; j++) {
            const double behind = w->at[0][j] - w->at[1][i], before = w->at[1][j] - w->at[0][i];
            const double least = behind > 0
                ? ((w->rest[0][j] - w->rest[1][i] - slack) / behind + 1) / (1 + w->r) - 1 : -1;
            const double most = before > 0
                ? ((w->rest[1][j] - w->rest[0][i] + slack) / before + 1) / (1 - w->r) - 1 : 1e9;
            if (least > w->min_k) w->min_k = least;
            if (most < w->max_k) w->max_k = most;
        }
    return w->min_k <= w->max_k;
}

/* A line of M1 over k: its value is base + k slope. Of the lower side all signs are turned. */
typedef struct npuprof_map_line_ { double base, slope; } npuprof_map_line_;

/* The lowest line at k, for the place that many host ticks from where the window is seen from. */
NPUPROF_OWN_ static npuprof_map_line_ npuprof_map_lowest_(const npuprof_map_window_ *w, int side, double place, double k)
{
    const double sign = side ? 1 : -1;
    npuprof_map_line_ best = { 0, 0 };
    for (uint32_t i = 0; i < w->count; i++) {
        const double d = place - w->at[side][i];
        npuprof_map_line_ line;
        line.base = sign * w->rest[side][i] + (d < 0 ? -d : d) * w->r;
        line.slope = sign * d * (1 + (d < 0 ? -sign : sign) * w->r);
        if (!i || line.base + line.slope * k < best.base + best.slope * k) best = line;
    }
    return best;
}

/* M3: U at that place, or Lo, as a distance from the chord. */
NPUPROF_OWN_ static double npuprof_map_solve_(const npuprof_map_window_ *w, int side, double place)
{
    npuprof_map_line_ left = npuprof_map_lowest_(w, side, place, w->min_k);
    npuprof_map_line_ right = npuprof_map_lowest_(w, side, place, w->max_k);
    double v = left.base + left.slope * w->min_k;
    if (left.slope > 0) {
        v = right.base + right.slope * w->max_k;
        for (int i = 0; right.slope < 0 && i < 2 * NPUPROF_MAP_WINDOW_; i++) {
            const double k = (right.base - left.base) / (left.slope - right.slope);
            v = left.base + left.slope * k;
            const npuprof_map_line_ lowest = npuprof_map_lowest_(w, side, place, k);
            if (lowest.base + lowest.slope * k >= v - 1e-3) break;
            if (lowest.slope > 0) left = lowest;
            else right = lowest;
            if (right.slope >= 0) v = right.base;          /* a point's own line at the point */
        }
    }
    return side ? v : -v;
}

/* The neighbours of points a to b: up to 8 on each side that are within half a window, at least one; none
   behind an open gap. */
NPUPROF_OWN_ static void npuprof_map_neighbours_(const npuprof_map_ *m, uint32_t a, uint32_t b, uint32_t *from,
                                    uint32_t *to)
{
    const npuprof_map_point_ *const p = m->point;
    const uint64_t half = m->rate.window / 2;
    for (*from = a; *from > 0 && a - *from < NPUPROF_MAP_SIDE_ && !m->open[*from]; --*from)
        if (*from < a && npuprof_saturating_sub_(p[a].upper_host, p[*from - 1].lower_host) > half) break;
    for (*to = b; *to + 1 < m->count && *to - b < NPUPROF_MAP_SIDE_ && !m->open[*to + 1]; ++*to)
        if (*to > b && npuprof_saturating_sub_(p[*to + 1].upper_host, p[b].lower_host) > half) break;
}

/* Solves M3 for points `from` to `to`, `ahead` device ticks outside of point i, as host ticks from its own
   on. False: there is no bound but L's order. */
NPUPROF_OWN_ static bool npuprof_map_among_(const npuprof_map_ *m, int side, uint32_t i, double ahead, uint32_t from,
                               uint32_t to, double *v)
{
    npuprof_map_window_ w;
    if (!npuprof_map_fill_(&w, &m->rate, m->point + from, to - from + 1, &m->point[i], side,
                           ahead < 0 ? -ahead : ahead)) return false;
    *v = ahead * w.slope + npuprof_map_solve_(&w, side, ahead * w.slope);
    return true;
}

/* The same among the neighbours of point i. Outside of all points the better one of two: with one more point
   on each side, too. Why: a pair of reads close together says nothing of the rate. */
NPUPROF_OWN_ static bool npuprof_map_beside_(const npuprof_map_ *m, int side, uint32_t i, double ahead, double *v)
{
    uint32_t from, to;
    double wide = 0;
    npuprof_map_neighbours_(m, i, i, &from, &to);
    const bool found = npuprof_map_among_(m, side, i, ahead, from, to, v);
    const bool before = from > 0 && !m->open[from], behind = to + 1 < m->count && !m->open[to + 1];
    if (!(ahead < 0 || ahead > 0) || !(before || behind)) return found;
    if (!npuprof_map_among_(m, side, i, ahead, from - before, to + behind, &wide)) return found;
    if (!found || (side ? wide < *v : wide > *v)) *v = wide;
    return true;
}

NPUPROF_OWN_ static bool npuprof_map_node_(npuprof_map_ *m, int side, uint32_t i)
{
    if (!m->known[side][i]) m->known[side][i] = npuprof_map_beside_(m, side, i, 0, &m->node[side][i]);
    return m->known[side][i];
}

/* M5, M6: the bound of one side at x, as host ticks from point i's on, the last one at or before x or else
   the first. False: only the limits of the slope hold there. */
NPUPROF_OWN_ static bool npuprof_map_steady_(npuprof_map_ *m, int side, uint32_t i, uint64_t x, double *v)
{
    const npuprof_map_point_ *const p = &m->point[i];
    const uint64_t a = npuprof_map_ticks_at_(p, side);
    if (m->rate.kind != NPUPROF_MAP_STEADY_) return false;
    if (x <= a || i + 1 == m->count)
        return npuprof_map_beside_(m, side, i, npuprof_map_distance_(a, x), v);
    if (m->open[i + 1] || !npuprof_map_node_(m, side, i) || !npuprof_map_node_(m, side, i + 1)) return false;
    const npuprof_map_point_ *const q = p + 1;
    const double ticks = npuprof_map_distance_(a, npuprof_map_ticks_at_(q, side));
    const double host = npuprof_map_distance_(npuprof_map_host_at_(p, side), npuprof_map_host_at_(q, side));
    const double begin = m->node[side][i], end = host + m->node[side][i + 1];
    /* H of M5, for whichever of a point's two reads was the later one. */
    const uint64_t apart = npuprof_max_(p->lower, p->upper) - npuprof_min_(p->lower, p->upper) + 1;
    const double longest =
        npuprof_map_distance_(p->lower_host, q->upper_host) * (1 + 2 * (double)apart / ticks);
    const double windows = longest / (double)npuprof_max_(m->rate.window, 1);
    const double part = npuprof_map_distance_(a, x) / ticks;
    double r = (double)m->rate.max_rate_ppb * 1e-9 * (windows > 1 ? windows : 1);
    if (r > 0.5) r = 0.5;
    const double bow = 2 * r / (1 - r) * longest * part * (1 - part);
    *v = begin + (end - begin) * part + (side ? bow : -bow);
    return true;
}

/* The bound by the order of L alone, from the points beside x, and with has_limits by those of the slope.
   False: no point bounds it. */
NPUPROF_OWN_ static bool npuprof_map_by_order_(const npuprof_map_ *m, int side, uint32_t i, uint64_t x, bool has_limits,
                                  double *v)
{
    const npuprof_map_rate_ *const rate = &m->rate;
    const double second = (double)rate->second;
    /* Host ticks for one device tick; largest 0: no limit. */
    const double smallest = has_limits && rate->hz_max ? second / (double)rate->hz_max : 0;
    const double largest = has_limits && rate->hz_min ? second / (double)rate->hz_min : 0;
    const uint32_t from = i < NPUPROF_MAP_SIDE_ ? 0 : i - NPUPROF_MAP_SIDE_;
    bool found = false;
    for (uint32_t j = from; j < m->count && j <= i + NPUPROF_MAP_SIDE_; j++) {
        const double host = npuprof_map_distance_(npuprof_map_host_at_(&m->point[i], side),
                                                  npuprof_map_host_at_(&m->point[j], side));
        const double ticks = npuprof_map_distance_(npuprof_map_ticks_at_(&m->point[j], side), x);
        const bool is_behind = side ? ticks > 0 : ticks < 0;    /* where L may be as steep as it can */
        if (is_behind && largest <= 0) continue;
        const double bound = host + ticks * (is_behind ? largest : smallest);
        if (!found || (side ? bound < *v : bound > *v)) *v = bound;
        found = true;
    }
    return found;
}

/* Host ticks and a distance, moved outwards by what is rounded. */
NPUPROF_OWN_ static uint64_t npuprof_map_outwards_(uint64_t host, double v, int side)
{
    const double slack = 0.01 + (v < 0 ? -v : v) * 8e-15;
    double size = side ? v + slack : v - slack;
    const bool is_back = size < 0;
    if (is_back) size = -size;
    if (size > 9e18) return is_back ? 0 : UINT64_MAX;
    const uint64_t whole = (uint64_t)size;
    if (is_back) return npuprof_saturating_sub_(host, whole + !side);
    return npuprof_saturating_add_(host, whole + (side ? 1 : 0));
}

/* Lo(x), or U(x). False: nothing bounds it. */
NPUPROF_OWN_ static bool npuprof_map_side_(npuprof_map_ *m, int side, uint64_t x, bool by_order, uint64_t *host)
{
    uint32_t i = m->at[side] < m->count ? m->at[side] : 0;
    double v;
    if (npuprof_map_ticks_at_(&m->point[i], side) > x) i = 0;
    while (i + 1 < m->count && npuprof_map_ticks_at_(&m->point[i + 1], side) <= x) i++;
    m->at[side] = i;
    const bool has_limits = !by_order && m->rate.kind != NPUPROF_MAP_STEADY_;
    if ((by_order || !npuprof_map_steady_(m, side, i, x, &v)) &&
        !npuprof_map_by_order_(m, side, i, x, has_limits, &v)) return false;
    *host = npuprof_map_outwards_(npuprof_map_host_at_(&m->point[i], side), v, side);
    return true;
}

/* M7. since, until: host ticks; 0 and UINT64_MAX: not known. Each counts only where no point bounds the stamp
   from that side. False: the points do not suffice. */
NPUPROF_OWN_ static bool npuprof_map_stamp_(npuprof_map_ *m, uint64_t ticks, uint64_t unit, uint64_t since, uint64_t until,
                               uint64_t *host, uint64_t *error)
{
    const uint64_t next = npuprof_saturating_add_(ticks, npuprof_max_(unit, 1));
    uint64_t low = since, high = until;
    *host = *error = 0;
    if (!m->count) return false;
    if (m->count == 1 && m->point->upper == ticks && m->point->lower == ticks) {
        low = m->point->lower_host;
        high = m->point->upper_host;
    } else if ((!npuprof_map_side_(m, 0, ticks, false, &low) && !since) ||
               (!npuprof_map_side_(m, 1, next, false, &high) && until == UINT64_MAX)) {
        return false;
    }
    /* Two windows that contradict each other, unseen by E1. */
    if (low > high && (!npuprof_map_side_(m, 0, ticks, true, &low) ||
                       !npuprof_map_side_(m, 1, next, true, &high))) return false;
    *error = npuprof_saturating_sub_(high, low);
    *host = low + *error / 2;
    *error -= *error / 2;
    return true;
}
/* ==== src/clock/evidence.h ========================================================= >>clock/evidence ==== */
#include <string.h>

/* What all reads of one epoch say against the kind of clock that was declared: which gaps between points of a
   map are open, which reads were too late.

   Data: an npuprof_map_evidence_, which is given the points of an epoch, oldest first.

   Evidence. Each read is held against those before it (M2). Where no c is left, L did what C2 excludes, once:
     E1  The step lies behind the last point that does not fit those after it, and before the newest one. Only
         L's order is certain there: the gap is open.
     E2  A side with fewer than 6 reads proves no rate, and is open, too.
     E3  More than 8 steps, or more than 2 and one every 2 s: the clock is no steady one. All is open.
     E4  Of a counter that reads may show late (lag_ns), a read that shows too little for its time, while all
         others fit, at least 3, was later than declared: C1 does not hold for it, and it is left out. More
         than 3 in a row, or 32 in all, are a step. Others may be late by as much as nobody sees, at most what
         the reads beside them are wide: each lower point of that epoch lies earlier by the width of its
         read. */

typedef struct npuprof_map_evidence_ {
    npuprof_map_rate_ rate;                /* limits that a read contradicted are 0 */
    uint32_t recent_count, reads, steps, ranges;
    bool is_wild;                          /* E3 */
    uint32_t lates, in_a_row;              /* in_a_row: of them, the newest reads */
    uint64_t late[NPUPROF_MAP_LATE_];      /* their ticks */
    uint64_t first_host, last_host, opened_host;
    struct { uint64_t from, to; } range[NPUPROF_MAP_STEPS_];   /* open, in ticks of upper points */
    npuprof_map_point_ recent[NPUPROF_MAP_RECENT_];
} npuprof_map_evidence_;

/* Whether some points fit C2. */
NPUPROF_OWN_ static bool npuprof_map_fit_(const npuprof_map_evidence_ *e, uint32_t from)
{
    npuprof_map_window_ w;
    const npuprof_map_point_ *const p = e->recent + from;
    const uint32_t count = e->recent_count - from;
    const bool rate_is_there = count > 1 && p[count - 1].upper > p->upper &&
                               p[count - 1].upper_host > p->upper_host;
    return !rate_is_there || npuprof_map_fill_(&w, &e->rate, p, count, p, 1, 0);
}

/* E4: finds the one late read that keeps the others from fitting, and leaves it out. False: there is none. */
NPUPROF_OWN_ static bool npuprof_map_leave_out_(npuprof_map_evidence_ *e)
{
    const uint32_t last = e->recent_count - 1;
    if (!e->rate.may_be_late || e->lates == NPUPROF_MAP_LATE_ || last < NPUPROF_MAP_FIRST_) return false;
    if (e->in_a_row == NPUPROF_MAP_IN_A_ROW_) return false;
    for (uint32_t j = last + 1; j-- > 0;) {
        npuprof_map_point_ *const p = e->recent, left = p[j];
        const npuprof_map_point_ *const from = j ? p : &p[1], *const to = j == last ? &p[last - 1] : &p[last];
        const double slope = npuprof_map_distance_(from->lower_host, to->lower_host) /
                             npuprof_map_distance_(from->lower, to->lower);
        const double host = npuprof_map_distance_(from->lower_host, left.lower_host);
        if (host <= slope * npuprof_map_distance_(from->lower, left.lower)) continue;
        memmove(p + j, p + j + 1, (last - j) * sizeof *p);
        e->recent_count--;
        if (npuprof_map_fit_(e, 0)) {
            e->late[e->lates++] = left.upper;
            e->in_a_row = j == last ? e->in_a_row + 1 : 0;
            return true;
        }
        memmove(p + j + 1, p + j, (last - j) * sizeof *p);
        p[j] = left;
        e->recent_count++;
    }
    return false;
}

/* The newest reads that were left out were no late ones. */
NPUPROF_OWN_ static void npuprof_map_take_back_(npuprof_map_evidence_ *e)
{
    e->lates -= e->in_a_row;
    e->in_a_row = 0;
}

/* A step before the newest point (E1, E2). */
NPUPROF_OWN_ static void npuprof_map_step_(npuprof_map_evidence_ *e)
{
    const npuprof_map_point_ *const newest = &e->recent[e->recent_count - 1];
    uint32_t begin = 1;
    while (begin + 1 < e->recent_count && !npuprof_map_fit_(e, begin)) begin++;
    const npuprof_map_point_ *const before = &e->recent[begin - 1];
    uint64_t from = before->upper;
    e->steps++;
    e->opened_host += npuprof_saturating_sub_(newest->upper_host, before->lower_host);
    if (e->reads <= NPUPROF_MAP_READS_) from = e->ranges ? e->range[e->ranges - 1].to : 0;
    if (e->ranges && from <= e->range[e->ranges - 1].to) e->ranges--;
    else if (e->ranges == NPUPROF_MAP_STEPS_) e->is_wild = true;
    else e->range[e->ranges].from = from;
    if (e->ranges < NPUPROF_MAP_STEPS_) e->range[e->ranges++].to = newest->upper;
    e->recent[0] = *newest;
    e->recent_count = e->reads = 1;
}

/* Takes the next point of an epoch. */
NPUPROF_OWN_ static void npuprof_map_witness_(npuprof_map_evidence_ *e, const npuprof_map_point_ *p)
{
    uint32_t gone = 0;
    if (!e->first_host) e->first_host = p->lower_host;
    e->last_host = p->upper_host;
    while (e->recent_count - gone >= NPUPROF_MAP_RECENT_ ||
           (e->recent_count - gone > 3 && npuprof_saturating_sub_(p->upper_host, e->recent[gone].lower_host) >
                                              e->rate.window)) gone++;
    e->recent_count -= gone;
    memmove(e->recent, e->recent + gone, e->recent_count * sizeof *p);
    for (uint32_t i = 0; i < e->recent_count && e->rate.kind != NPUPROF_MAP_STEADY_; i++) {
        const npuprof_map_point_ *const a = &e->recent[i];
        const double second = (double)e->rate.second;
        const double most = npuprof_map_distance_(a->lower_host, p->upper_host) / second;
        const double least = npuprof_map_distance_(a->upper_host, p->lower_host) / second;
        const double fewest = npuprof_map_distance_(a->lower, p->upper) - 1;
        if (e->rate.hz_max && fewest > most * (double)e->rate.hz_max) e->rate.hz_max = 0, e->steps++;
        if (e->rate.hz_min && npuprof_map_distance_(a->upper, p->lower) + 1 < least * (double)e->rate.hz_min)
            e->rate.hz_min = 0, e->steps++;
    }
    e->recent[e->recent_count++] = *p;
    e->reads++;
    if (e->rate.kind != NPUPROF_MAP_STEADY_) return;
    if (npuprof_map_fit_(e, 0)) {
        e->in_a_row = 0;
    } else if (e->rate.may_be_late && e->recent_count <= NPUPROF_MAP_FIRST_) {
        return;                            /* E4: which of them is late the next ones show */
    } else if (!npuprof_map_leave_out_(e)) {
        npuprof_map_take_back_(e);
        npuprof_map_step_(e);
    }
}

/* After the last point. */
NPUPROF_OWN_ static void npuprof_map_judge_(npuprof_map_evidence_ *e)
{
    const uint64_t lasted = npuprof_saturating_sub_(e->last_host, e->first_host);
    if (e->rate.kind == NPUPROF_MAP_STEADY_ && e->recent_count > 1 && !npuprof_map_fit_(e, 0))
        npuprof_map_step_(e);
    if (e->rate.kind != NPUPROF_MAP_STEADY_ || !e->steps) return;
    if (e->reads < NPUPROF_MAP_READS_) e->range[e->ranges - 1].to = UINT64_MAX;
    e->is_wild |= e->steps > 2 && e->steps > lasted / (2 * npuprof_max_(e->rate.second, 1));
    if (!e->is_wild) return;
    e->rate.kind = NPUPROF_MAP_STANDS_;
    e->rate.hz_min = e->rate.hz_max = 0;
    e->opened_host = lasted;
}

/* Whether the gap between two neighbouring points is open. */
NPUPROF_OWN_ static bool npuprof_map_is_open_(const npuprof_map_evidence_ *e, const npuprof_map_point_ *a,
                                 const npuprof_map_point_ *b)
{
    for (uint32_t i = 0; i < e->ranges; i++)
        if (e->range[i].from <= a->upper && b->upper <= e->range[i].to) return true;
    return false;
}

NPUPROF_OWN_ static bool npuprof_map_was_late_(const npuprof_map_evidence_ *e, const npuprof_map_point_ *p)
{
    for (uint32_t i = 0; i < e->lates; i++)
        if (e->late[i] == p->upper) return true;
    return false;
}

/* Adds a point to a map that has room. One that is not later on both sides says nothing. */
NPUPROF_OWN_ static void npuprof_map_add_(npuprof_map_ *m, const npuprof_map_evidence_ *e, const npuprof_map_point_ *p)
{
    const npuprof_map_point_ *const last = m->count ? &m->point[m->count - 1] : NULL;
    if (last && (p->upper <= last->upper || p->lower <= last->lower)) return;
    if (npuprof_map_was_late_(e, p)) return;
    m->open[m->count] = last && npuprof_map_is_open_(e, last, p);
    m->point[m->count] = *p;
    if (e->lates) {
        uint64_t *const host = &m->point[m->count].lower_host;
        *host -= npuprof_min_(*host, npuprof_saturating_sub_(p->upper_host, *host));
    }
    m->count++;
}

/* Why the newest read counts here: reads become anchors some time later, the best two of that time, and what
   it contradicts may not be taken for known until then. What a read has shown was before now. */
NPUPROF_API_ bool npuprof_map_ticks_(const npuprof_anchor_ *anchors, size_t count,
                                     const npuprof_anchor_ *newest, uint64_t now,
                                     const npuprof_map_rate_ *rate, uint64_t device_ticks,
                                     uint64_t *host_ticks, uint64_t *error_ticks)
{
    npuprof_map_ m;
    npuprof_map_evidence_ e;
    const size_t all = count + (newest != NULL);
    const size_t first = all > NPUPROF_MAP_POINTS_ ? all - NPUPROF_MAP_POINTS_ : 0;
    memset(&m, 0, sizeof m);
    memset(&e, 0, sizeof e);
    e.rate = *rate;
    for (size_t i = first; i < all; i++) {
        const npuprof_map_point_ p = npuprof_map_point_of_(i < count ? &anchors[i] : newest);
        npuprof_map_witness_(&e, &p);
    }
    npuprof_map_judge_(&e);
    m.rate = e.rate;
    for (size_t i = first; i < all; i++) {
        const npuprof_map_point_ p = npuprof_map_point_of_(i < count ? &anchors[i] : newest);
        npuprof_map_add_(&m, &e, &p);
    }
    const uint64_t until = newest && device_ticks <= newest->device_ticks ? now : UINT64_MAX;
    return npuprof_map_stamp_(&m, device_ticks, 1, 0, until, host_ticks, error_ticks);
}
/* ==== src/numbers/digits.h ========================================================= >>numbers/digits ==== */
#include <string.h>

/* Numbers as text: at p, returning the end of the text. Writing numbers is most of the work of a writer, so
   eight digits are made at a time, without a loop, a table or a division.

   All of these may overwrite up to 7 bytes behind the end. Nothing here has state but npuprof_stamp_cache_,
   which the writer owns. */

/* bytes that a number needs at most, those behind its end included */
enum { NPUPROF_DIGITS_MAX_ = 40 };

#define NPUPROF_DIGITS_ZEROS_ ((uint64_t)0x3030303030303030u)      /* "00000000" */

/* Stores eight bytes, the lowest bits first, on machines of any byte order.
   Why two ways: of single bytes, some of them known to be 0, gcc makes four stores. */
NPUPROF_HOT_ static inline void npuprof_digits_store_(char *p, uint64_t text)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(p, &text, 8);
#else
    for (int i = 0; i < 8; i++) p[i] = (char)(text >> 8 * i);
#endif
}

/* The eight decimal digits of v < 10^8, a byte each, the first in the lowest one. First the two halves of
   four digits are split, then all pairs of digits at once, then all digits at once. A product and a shift
   stand for each division. What is split into q and x - 10^n q, that one so many bits higher, is
   (x << bits) - ((10^n << bits) - 1) q. */
NPUPROF_HOT_ static inline uint64_t npuprof_digits_eight_(uint64_t v)
{
    const uint64_t high = v * 109951163 >> 40, halves = (v << 32) - high * (((uint64_t)10000 << 32) - 1);
    const uint64_t top = halves * 10486 >> 20 & 0x0000007F0000007Fu;
    const uint64_t pairs = (halves << 16) - top * ((100 << 16) - 1);
    const uint64_t tens = pairs * 103 >> 10 & 0x000F000F000F000Fu;
    return (pairs << 8) - tens * ((10 << 8) - 1);
}

NPUPROF_HOT_ static inline char *npuprof_digits_uint_(char *p, uint64_t v)
{
    if (NPUPROF_UNLIKELY_(v >= 100000000)) {
        const uint64_t high = v / 100000000;
        p = npuprof_digits_uint_(p, high);
        npuprof_digits_store_(p, npuprof_digits_eight_(v - high * 100000000) | NPUPROF_DIGITS_ZEROS_);
        return p + 8;
    }
    const uint64_t digits = npuprof_digits_eight_(v);
    const unsigned zeros = NPUPROF_LOW_ZEROS_(digits | (uint64_t)1 << 56) / 8;
    npuprof_digits_store_(p, (digits | NPUPROF_DIGITS_ZEROS_) >> 8 * zeros);
    return p + 8 - zeros;
}

NPUPROF_OWN_ static inline char *npuprof_digits_int_(char *p, int64_t v)
{
    *p = '-';
    return npuprof_digits_uint_(p + (v < 0), v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* Eight digits with a point behind the fifth, without the first `zeros` of them. */
NPUPROF_HOT_ static inline char *npuprof_digits_pointed_(char *p, uint64_t digits, unsigned zeros)
{
    digits |= NPUPROF_DIGITS_ZEROS_;
    npuprof_digits_store_(p, ((digits & 0xFFFFFFFFFFu) | (uint64_t)'.' << 40) >> 8 * zeros);
    npuprof_digits_store_(p + 6 - zeros, digits >> 40);
    return p + 9 - zeros;
}

NPUPROF_OWN_ static NPUPROF_NOINLINE_ char *npuprof_digits_long_milli_(char *p, int64_t v)
{
    const uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    *p = '-';
    p = npuprof_digits_uint_(p + (v < 0), size / 1000);
    *p++ = '.';
    npuprof_digits_store_(p, (npuprof_digits_eight_(size % 1000) | NPUPROF_DIGITS_ZEROS_) >> 40);
    return p + 3;
}

/* Thousandths as a decimal with three places: ns as microseconds, mHz as Hz. */
NPUPROF_HOT_ static inline char *npuprof_digits_milli_(char *p, int64_t v)
{
    if (NPUPROF_UNLIKELY_((uint64_t)v >= 100000000)) return npuprof_digits_long_milli_(p, v);
    const uint64_t digits = npuprof_digits_eight_((uint64_t)v);
    return npuprof_digits_pointed_(p, digits, NPUPROF_LOW_ZEROS_(digits | (uint64_t)1 << 32) / 8);
}

/* The text of a stamp's digits above 10^8, which many stamps in a row have in common. `above` is
   NPUPROF_NO_STAMP_, far from all stamps, if nothing is cached. */
#define NPUPROF_NO_STAMP_ ((uint64_t)1 << 63)
typedef struct npuprof_stamp_cache_ {
    uint64_t above;
    uint32_t length;
    char text[NPUPROF_DIGITS_MAX_];
} npuprof_stamp_cache_;

NPUPROF_OWN_ static NPUPROF_NOINLINE_ char *npuprof_digits_far_stamp_(npuprof_stamp_cache_ *cache, char *p, int64_t v)
{
    if (v >= 100000000) {
        cache->above = (uint64_t)v - (uint64_t)v % 100000000;
        cache->length = (uint32_t)(npuprof_digits_uint_(cache->text, cache->above / 100000000) - cache->text);
    }
    return npuprof_digits_milli_(p, v);
}

/* npuprof_digits_milli_() for stamps. */
NPUPROF_HOT_ static inline char *npuprof_digits_stamp_(npuprof_stamp_cache_ *cache, char *p, int64_t v)
{
    const uint64_t rest = (uint64_t)v - cache->above;
    if (NPUPROF_UNLIKELY_(rest >= 100000000)) return npuprof_digits_far_stamp_(cache, p, v);
    memcpy(p, cache->text, 16);
    return npuprof_digits_pointed_(p + cache->length, npuprof_digits_eight_(rest), 0);
}

/* 16 hexadecimal digits, eight at a time: each digit is spread to a byte of its own, and those above 9 move
   on to the letters. */
NPUPROF_OWN_ static inline void npuprof_digits_hex_(char *p, uint64_t v)
{
    for (int half = 0; half < 2; half++, v <<= 32) {
        uint64_t x = v >> 48 | (v >> 32 & 0xFFFF) << 32;
        x = (x >> 8 & 0x000000FF000000FFu) | (x & 0x000000FF000000FFu) << 16;
        x = (x >> 4 & 0x000F000F000F000Fu) | (x & 0x000F000F000F000Fu) << 8;
        const uint64_t letters = (x + 0x0606060606060606u) >> 4 & 0x0101010101010101u;
        npuprof_digits_store_(p + 8 * half, x + NPUPROF_DIGITS_ZEROS_ + letters * ('a' - '0' - 10));
    }
}

NPUPROF_OWN_ static inline void npuprof_digits_hex_text_(char digits[17], uint64_t v)
{
    npuprof_digits_hex_(digits, v);
    digits[16] = 0;
}
/* ==== src/read/image.h ================================================================= >>read/image ==== */
#include <string.h>

/* An image to read: the live arena, or one that was loaded. All outputs and reports read through the
   functions of this room, so there is one reader.

   An image may be damaged: every size, number and offset in it is checked before it is used, and what is
   wrong ends the walk. A live image may change while it is read: each function takes what is published with
   an acquire, and nothing else. Only readers write `first_chunk` of a slot and `next` of a chunk
   (read/survey.h). */
typedef struct npuprof_image_ {
    const npuprof_header_ *h;
    const uint8_t *table, *chunks;         /* chunk number i is at chunks + i * chunk_bytes */
    const uint32_t *pages;                 /* live: index + 1 of the chunks where the table goes on */
    const uint32_t *site_ids;              /* ids of the call sites' entries, if loaded; else NULL */
    const uint8_t *slots;                  /* the slots' unit numbers count from here */
    uint64_t slots_bytes;
    /* the next chunk of each chunk, if loaded; NULL: the chunks say it */
    const uint32_t *next;
    uint32_t units;                        /* in a chunk */
    uint32_t table_used, chunk_total, threads;
    uint32_t slot_first;                   /* unit number of the first slot */
    uint32_t slot_count;                   /* 0, or, if loaded: its slots are sorted by tid and context */
    /* events before and behind are not shown; a later end is none yet */
    uint64_t clear_ticks, last_ticks;
    uint64_t open_until;                   /* host ticks where spans end that are still open */
    uint64_t multiplier;                   /* ns = ticks * multiplier >> shift */
    unsigned shift, left;                  /* left: 64 - shift */
    /* up to these, ns is the high half of (ticks << left) * multiplier */
    uint64_t fast_ticks;
    /* where the trace begins: ns after the first anchor, 0 or negative */
    int64_t origin_ns;
    uint64_t events;
    uint32_t kinds;                        /* bit k: there are events of kind k */
    uint64_t lost[NPUPROF_LOST_COUNT];
    uint64_t damaged;                      /* places that cannot be read, if loaded */
    bool in_use;                           /* loaded from a file that another process goes on writing, */
    uint64_t changed;                      /* and so many of its chunks changed while they were read */
    npuprof_host_anchor_ closing;          /* the newest clock anchor */
    int doubt;                             /* NPUPROF_DOUBT_*: do the clocks contradict each other? */
    uint64_t doubt_ns;                     /* and by how much, between the first anchor and that one */
} npuprof_image_;

/* See rate.h. */
enum { NPUPROF_DOUBT_NONE_, NPUPROF_DOUBT_SLEPT_, NPUPROF_DOUBT_REPLACED_, NPUPROF_DOUBT_STANDS_ };

/* The image to read instead of the live arena; NULL: there is none. tools/convert sets it, while it
   holds the lock of the readers; write/files.h clears it at exit. */
static const npuprof_image_ *npuprof_image_given_;

/* Events of the live arena that began before or behind these ticks are not shown, beside those that
   npuprof_clear() forgot; 0: there is no such limit. For the one thread that writes a part of the trace. */
typedef struct npuprof_image_window_ {
    uint64_t since, until;
    uintptr_t of;                          /* that thread; stored with release behind the others */
} npuprof_image_window_;
static npuprof_image_window_ npuprof_image_part_;

NPUPROF_OWN_ static void npuprof_image_limit_(uint64_t since, uint64_t until)
{
    npuprof_image_part_.since = since;
    npuprof_image_part_.until = until;
    NPUPROF_STORE_RELEASE_(&npuprof_image_part_.of, since || until ? npuprof_slot_me_() : 0);
}

/* The limits for the calling thread. */
NPUPROF_OWN_ static npuprof_image_window_ npuprof_image_limits_(void)
{
    static const npuprof_image_window_ none = { 0, 0, 0 };
    return NPUPROF_LOAD_ACQUIRE_(&npuprof_image_part_.of) == npuprof_slot_me_() ? npuprof_image_part_ : none;
}

/* A decoded record. */
typedef struct npuprof_event_ {
    uint32_t kind, tid, site, name, category, track;
    uint64_t position;                     /* in the slot's stream: the same each time the record is read */
    uint64_t start, end;                   /* host ticks; of a device span: device ticks */
    uint64_t host_ticks;                   /* when the record was written */
    uint64_t value, second;                /* by kind */
    /* of a memory pool: bytes that came or went; 0: only the state is known */
    int64_t change;
    bool unfinished, cut, has_link;
    bool results;                          /* more arguments follow, in RESULT records */
    uint32_t device, pe, epoch, flags;
    uint32_t unknown;                      /* units of it with control ids of a newer version */
    npuprof_link_ link;
    const npuprof_unit_ *args, *args_end;
    uint64_t locator;                      /* where the record is: npuprof_cursor_decode_at_() */
} npuprof_event_;

NPUPROF_HOT_ static const npuprof_chunk_ *npuprof_image_chunk_(const npuprof_image_ *im, uint32_t index)
{
    return (const npuprof_chunk_ *)(const void *)(im->chunks + (size_t)index * im->h->chunk_bytes);
}

/* The chunk behind this one in its slot, index + 1; 0: there is none. */
NPUPROF_OWN_ static uint32_t npuprof_image_next_chunk_(const npuprof_image_ *im, uint32_t index)
{
    const uint32_t next =
        im->next ? im->next[index] : NPUPROF_LOAD_ACQUIRE_(&npuprof_image_chunk_(im, index)->next);
    return next <= im->chunk_total ? next : 0;
}

/* Bytes of the table that are in use.
   Why not im->table_used of a live arena: a record newer than that may name what lies behind it. */
NPUPROF_HOT_ static uint32_t npuprof_image_table_used_(const npuprof_image_ *im)
{
    return im->next ? im->table_used : NPUPROF_LOAD_ACQUIRE_(&im->h->table_used);
}

/* Where an offset of the table lies that is below table_used. */
NPUPROF_OWN_ static const npuprof_entry_ *npuprof_image_table_at_(const npuprof_image_ *im, uint64_t at)
{
    const uint8_t *place = im->table + at;
    if (NPUPROF_UNLIKELY_(at >= im->h->table_bytes)) {
        const uint32_t beyond = (uint32_t)at - im->h->table_bytes, page = beyond / im->h->chunk_bytes;
        place = im->chunks + (size_t)(NPUPROF_LOAD_ACQUIRE_(&im->pages[page]) - 1) * im->h->chunk_bytes;
        place += beyond % im->h->chunk_bytes;
    }
    return (const npuprof_entry_ *)(const void *)place;
}

/* The table's entry `id`, if it is of this type and at least so many bytes long; otherwise NULL. */
NPUPROF_HOT_ static const npuprof_entry_ *npuprof_image_entry_(const npuprof_image_ *im, uint32_t id,
                                                               uint32_t type, size_t bytes)
{
    const uint64_t at = (uint64_t)id * im->h->table_unit;
    if (id == 0 || at + bytes > npuprof_image_table_used_(im)) return NULL;
    const npuprof_entry_ *e = npuprof_image_table_at_(im, at);
    /* Why acquire: who adds an entry stores its type last. */
    return NPUPROF_LOAD_ACQUIRE_(&e->type_units) >> 24 == type ? e : NULL;
}

/* A call site by its number, or NULL. */
NPUPROF_HOT_ static const npuprof_site_entry_ *npuprof_image_site_(const npuprof_image_ *im, uint32_t number)
{
    if (number == 0 || number > NPUPROF_LOAD_(&im->h->sites)) return NULL;
    const uint32_t id = im->site_ids ? im->site_ids[number] : npuprof_table_site_id_(number);
    return (const npuprof_site_entry_ *)(const void *)npuprof_image_entry_(im, id, NPUPROF_ENTRY_SITE,
                                                                           sizeof(npuprof_site_entry_));
}

/* A string of the table; "" for id 0 and for a damaged one. */
NPUPROF_OWN_ static const char *npuprof_image_text_(const npuprof_image_ *im, uint32_t id, size_t *length)
{
    const npuprof_entry_ *e = npuprof_image_entry_(im, id, NPUPROF_ENTRY_STRING, sizeof *e);
    *length = 0;
    if (!e || (uint64_t)id * im->h->table_unit + sizeof *e + e->a > npuprof_image_table_used_(im)) return "";
    *length = e->a;
    return (const char *)(e + 1);
}

/* Are two strings of the table the same? Why not by id alone: two threads may have added one string twice. */
NPUPROF_OWN_ static inline bool npuprof_image_same_text_(const npuprof_image_ *im, uint32_t a, uint32_t b)
{
    size_t length, other_length;
    if (a == b) return true;
    const char *const text = npuprof_image_text_(im, a, &length);
    const char *const other = npuprof_image_text_(im, b, &other_length);
    return length == other_length && memcmp(text, other, length) == 0;
}

NPUPROF_OWN_ static inline bool npuprof_image_text_is_(const npuprof_image_ *im, uint32_t id, const char *text)
{
    size_t length;
    const char *s = npuprof_image_text_(im, id, &length);
    return length == strlen(text) && memcmp(s, text, length) == 0;
}

/* Walks the table's entries of a type. *id: 0 before the first one. NULL: there are no more. */
NPUPROF_OWN_ static const npuprof_entry_ *npuprof_image_next_entry_(const npuprof_image_ *im, uint32_t type, size_t bytes,
                                                       uint32_t *id)
{
    const uint32_t unit = im->h->table_unit;
    for (uint32_t at = *id ? *id * unit : im->h->table_first;;) {
        at = npuprof_table_past_head_(im->h, at);
        if (at >= im->table_used) return NULL;
        const npuprof_entry_ *e = npuprof_image_table_at_(im, at);
        const uint32_t type_units = NPUPROF_LOAD_ACQUIRE_(&e->type_units), left = im->table_used - at;
        if (!(type_units & 0xFFFFFFu)) return NULL;    /* it is being added right now */
        at += (type_units & 0xFFFFFFu) * unit;
        *id = at / unit;
        if (type_units >> 24 == type && bytes <= left) return e;
    }
}

/* The id that follows from the arena's seed for a record: never 0, and the same each time it is read. */
NPUPROF_OWN_ static inline uint64_t npuprof_image_span_id_(const npuprof_image_ *im, uint32_t tid, uint64_t position)
{
    const uint64_t id =
        npuprof_hash_mix_(im->h->seed_low ^ npuprof_hash_mix_((uint64_t)tid << 44 ^ position));
    return id ? id : 1;
}

/* The id of a trace as 32 digits: TRACEPARENT's, else the arena's seed and the id of its root span. */
NPUPROF_OWN_ static inline void npuprof_image_trace_id_(const npuprof_image_ *im, uint32_t tid, uint64_t root,
                                           char digits[33])
{
    const uint64_t id = npuprof_image_span_id_(im, tid, root);
    npuprof_digits_hex_text_(digits, im->h->seed_high);
    npuprof_digits_hex_text_(digits + 16, id);
    if (im->h->traceparent[0]) memcpy(digits, im->h->traceparent + 3, 32);
}

/* Does an arrow lead to this device span? It begins in the span that submitted the job, which a clear may
   have forgotten. */
NPUPROF_OWN_ static inline bool npuprof_image_has_arrow_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    return ev->has_link && ev->link.ticks >= im->clear_ticks;
}
/* ==== src/read/cursor.h =============================================================== >>read/cursor ==== */

/* Decodes records, and walks those of one slot, chunk by chunk, in the order in which they began.

   A record is one unit or several: its head (start and site; end or value), then units with control ids that
   belong to it, then its arguments. A chunk begins with the spans that were open when it was taken
   (moved_units units, two for each): such a span moved here from the chunk before, where its unit now says
   NPUPROF_CONTROL_MOVED_AWAY_. A span is shown where it began, with the end that it has in the chunk it moved
   to last; a moved span is shown only in the first chunk that the image still has of its slot.

   A cursor is the caller's own and on its stack. Of a live arena it may be stopped at any moment and copied:
   it holds no lock. The words of a unit are read with acquire, since their threads may be writing them. */
typedef struct npuprof_cursor_ {
    const npuprof_image_ *image;
    uint32_t chunk, unit;                  /* chunk: index + 1; 0: behind the last one */
    uint32_t tid;
    bool first;                            /* the chunk is the first of its slot */
    uint32_t plain_begin, plain_count;     /* units of the chunk that may be plain: not moved, not the last */
    const npuprof_unit_ *units;
    uint64_t base, first_position;         /* the chunk's */
    uint64_t clear_ticks;                  /* the image's */
    /* the image's, bit 63 cleared: in an end stamp that bit means 'cut' */
    uint64_t last_ticks;
} npuprof_cursor_;

/* A plain record: one unit, with nothing that belongs to it. A closed span, or an event; its site says which.
   Most records are plain spans. */
typedef struct npuprof_plain_ { uint64_t start, end; uint32_t site; } npuprof_plain_;

/* Goes to the beginning of a chunk, index + 1; 0: to the end. */
NPUPROF_OWN_ static void npuprof_cursor_begin_chunk_(npuprof_cursor_ *c, uint32_t index)
{
    c->chunk = index;
    c->unit = c->plain_begin = c->plain_count = 0;
    if (!index) return;
    const npuprof_chunk_ *chunk = npuprof_image_chunk_(c->image, index - 1);
    c->units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    c->base = chunk->base;
    c->first_position = chunk->first_position;
    c->clear_ticks = c->image->clear_ticks;
    c->last_ticks = c->image->last_ticks < NPUPROF_END_CUT_ ? c->image->last_ticks : NPUPROF_END_CUT_ - 1;
    c->plain_begin = chunk->moved_units;
    c->plain_count = c->plain_begin < c->image->units ? c->image->units - 1 - c->plain_begin : 0;
}

NPUPROF_OWN_ static void npuprof_cursor_begin_slot_(npuprof_cursor_ *c, const npuprof_image_ *im,
                                       const npuprof_slot_head_ *slot)
{
    c->image = im;
    npuprof_cursor_begin_chunk_(c, NPUPROF_LOAD_ACQUIRE_(&slot->first_chunk));
    c->tid = NPUPROF_LOAD_(&slot->tid);
    c->first = true;
}

NPUPROF_HOT_ static inline uint64_t npuprof_unit_load_w0_(const npuprof_unit_ *u)
{
    return NPUPROF_LOAD_ACQUIRE_(&u->w0);
}

NPUPROF_HOT_ static inline uint64_t npuprof_unit_load_w1_(const npuprof_unit_ *u)
{
    return NPUPROF_LOAD_ACQUIRE_(&u->w1);
}

/* The id in the first word of a unit: a site's number, or NPUPROF_CONTROL_*. */
NPUPROF_HOT_ static inline uint32_t npuprof_unit_load_id_(const npuprof_unit_ *u)
{
    return (uint32_t)npuprof_unit_load_w0_(u) & NPUPROF_ID_MASK_;
}

/* Where a span that moved away from chunk `index` is now: its unit, and its chunk. NULL: not in the image. */
NPUPROF_OWN_ static const npuprof_unit_ *npuprof_cursor_follow_moved_(const npuprof_image_ *im, uint32_t index,
                                                         uint64_t position, const npuprof_chunk_ **home)
{
    while ((index = npuprof_image_next_chunk_(im, index)) != 0) {
        *home = npuprof_image_chunk_(im, --index);
        const npuprof_unit_ *u = (const npuprof_unit_ *)(const void *)(*home + 1);
        const npuprof_unit_ *const end =
            u + ((*home)->moved_units < im->units ? (*home)->moved_units & ~1u : 0);
        while (u < end && npuprof_unit_load_w0_(u + 1) >> NPUPROF_ID_BITS_ != position) u += 2;
        if (u == end) return NULL;
        if (npuprof_unit_load_id_(u) != NPUPROF_CONTROL_MOVED_AWAY_) return u;
    }
    return NULL;
}

/* The end of a span, from the stamp in ev->value. */
NPUPROF_HOT_ static inline void npuprof_cursor_decode_end_(const npuprof_image_ *im, npuprof_event_ *ev)
{
    if (ev->value != NPUPROF_END_OPEN_) {
        ev->cut = ev->value >> 63 != 0;
        ev->end = (ev->value & ~NPUPROF_END_CUT_) | (ev->start & NPUPROF_END_CUT_);
        if (ev->end <= im->last_ticks) return;
    }
    ev->unfinished = true;
    ev->end = im->open_until;
}

/* The units with control ids behind a head. Returns the first one that is none of these. */
NPUPROF_HOT_ static inline const npuprof_unit_ *
npuprof_cursor_decode_controls_(const npuprof_unit_ *u, const npuprof_unit_ *end, npuprof_event_ *ev)
{
    for (; u < end; u++) {
        const uint64_t w0 = npuprof_unit_load_w0_(u), payload = w0 >> NPUPROF_ID_BITS_;
        const uint32_t control = (uint32_t)w0 & NPUPROF_ID_MASK_;
        if (control == NPUPROF_CONTROL_FINISHED_) {
            ev->track = (uint32_t)payload;
            ev->second = u->w1;
        } else if (control == NPUPROF_CONTROL_MEMORY_) {
            ev->second = u->w1;
            ev->change = (int64_t)(payload >> 2) * ((payload & 1) ? 1 : -1);
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
        } else if (control <= NPUPROF_CONTROL_RESULT_) {
            break;
        } else {
            ev->unknown++;                 /* of a newer version: one unit (format/layouts.h, VERSIONS) */
        }
    }
    return u;
}

/* The end of the units behind a head that have control ids of their own, and no arguments. */
NPUPROF_HOT_ static inline const npuprof_unit_ *
npuprof_cursor_skip_controls_(const npuprof_unit_ *u, const npuprof_unit_ *end)
{
    for (; u < end; u++) {
        const uint32_t id = npuprof_unit_load_id_(u), of_record = id - NPUPROF_CONTROL_FINISHED_;
        const bool is_known = of_record <= NPUPROF_CONTROL_LINK_ROOT_ - NPUPROF_CONTROL_FINISHED_;
        if (!is_known && id <= NPUPROF_CONTROL_RESULT_) break;
    }
    return u;
}

/* The end of the arguments that begin at u. */
NPUPROF_HOT_ static inline const npuprof_unit_ *npuprof_cursor_skip_args_(const npuprof_unit_ *u,
                                                                          const npuprof_unit_ *end)
{
    while (u < end && npuprof_unit_load_id_(u) == NPUPROF_CONTROL_ARG_) {
        const uint64_t length = u->w0 >> NPUPROF_ID_BITS_ >> 32;
        const uint64_t more = length > 8 ? NPUPROF_UNITS_(length - 8) : 0;
        if (more >= (uint64_t)(end - u)) break;
        u += 1 + more;
    }
    return u;
}

/* The head of the record at *u: where and when it began, and its site. Moves *u behind it. Returns the unit
   that has the end or value, which is elsewhere if the span moved away; NULL: not in the image. */
NPUPROF_HOT_ static inline const npuprof_unit_ *npuprof_cursor_decode_head_(const npuprof_image_ *im,
                                                               uint32_t index, bool moved,
                                                               const npuprof_unit_ **u,
                                                               uint64_t w0, npuprof_event_ *ev)
{
    const npuprof_unit_ *const head = *u, *at = head;
    const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, index), *home = chunk;
    ev->site = (uint32_t)w0 & NPUPROF_ID_MASK_;
    ev->start = npuprof_chunk_start_ticks_(chunk, w0);
    ++*u;
    if (moved) {
        ev->position = npuprof_unit_load_w0_(*u) >> NPUPROF_ID_BITS_;
        ev->start = npuprof_unit_load_w1_(*u);
        ++*u;
    }
    if (ev->site == NPUPROF_CONTROL_MOVED_AWAY_) {
        ev->site = (uint32_t)(w0 >> NPUPROF_ID_BITS_) & NPUPROF_ID_MASK_;
        ev->start = npuprof_unit_load_w1_(head);
        at = npuprof_cursor_follow_moved_(im, index, ev->position, &home);
        if (at) ev->start = npuprof_unit_load_w1_(at + 1);
        else if (ev->start == NPUPROF_END_OPEN_) ev->start = chunk->base + ((uint64_t)1 << 40);
    }
    return at;
}

/* Decodes the record at unit number `unit` of a chunk; `first`: the chunk is the first of its slot. Returns
   how many units it takes; 0: there is none. *shown is false if the record is shown elsewhere, is older than
   the last clear, or is damaged (kind NPUPROF_KIND_NONE). */
NPUPROF_HOT_ static uint32_t npuprof_cursor_decode_(const npuprof_image_ *im, uint32_t index, uint32_t unit,
                                                    bool first, npuprof_event_ *ev, bool *shown)
{
    const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, index);
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    const npuprof_unit_ *const end = units + im->units;
    const npuprof_unit_ *u = units + unit;
    const uint64_t w0 = npuprof_unit_load_w0_(u);
    const bool moved = unit < chunk->moved_units;
    *shown = false;
    if (w0 == 0) return 0;
    memset(ev, 0, sizeof *ev);
    /* Why at once: following moved spans from every chunk they went through takes time quadratic in the
       chunks. */
    if (moved && (!first || u + 1 == end)) {
        ev->kind = NPUPROF_KIND_SPAN;
        return u + 1 == end ? 1 : 2;
    }
    ev->position = chunk->first_position + unit;
    ev->tid = chunk->owner >> 3;
    ev->locator = ((uint64_t)index * im->units + unit) << 1 | first;
    if (((uint32_t)w0 & NPUPROF_ID_MASK_) == NPUPROF_CONTROL_RESULT_) {    /* it belongs to a span */
        ev->kind = NPUPROF_KIND_SPAN;
        return (uint32_t)(npuprof_cursor_skip_args_(u + 1, end) - units) - unit;
    }
    const npuprof_unit_ *const at = npuprof_cursor_decode_head_(im, index, moved, &u, w0, ev);
    const npuprof_site_entry_ *site = npuprof_image_site_(im, ev->site);
    if (!site || !(site->head.a & 0xFF) || (site->head.a & 0xFF) >= NPUPROF_KIND_COUNT) {
        u = npuprof_cursor_decode_controls_(u, end, ev);
        return (uint32_t)(npuprof_cursor_skip_args_(u, end) - units) - unit;
    }
    ev->kind = site->head.a & 0xFF;
    ev->name = site->name;
    ev->category = site->category;
    ev->host_ticks = ev->start;
    ev->value = at ? npuprof_unit_load_w1_(at) : NPUPROF_END_OPEN_;
    /* Why again: the span may have moved away after its first word was read; then its second word is its
       start. */
    if (NPUPROF_UNLIKELY_(ev->value == ev->start && at &&
                          npuprof_unit_load_id_(at) == NPUPROF_CONTROL_MOVED_AWAY_))
        return npuprof_cursor_decode_(im, index, unit, first, ev, shown);
    if (ev->kind <= NPUPROF_KIND_OPERATOR) {
        npuprof_cursor_decode_end_(im, ev);
        if (at) site = npuprof_image_site_(im, npuprof_unit_load_id_(at));
        ev->results = site && (site->line & NPUPROF_SITE_RESULTS_);
    } else {
        ev->end = ev->start;
    }
    u = npuprof_cursor_decode_controls_(u, end, ev);
    ev->args = u;
    ev->args_end = u = npuprof_cursor_skip_args_(u, end);
    *shown = ev->host_ticks >= im->clear_ticks && ev->host_ticks <= im->last_ticks;
    return (uint32_t)(u - units) - unit;
}

/* The fast path beside npuprof_cursor_next_event_(): a walk over the plain records that come next in the
   chunk. `at` is the caller's to move on. Why a struct of its own, on the caller's stack: else the compiler
   must assume that what the loop writes is a part of the cursor, and loads all of it again each time. */
typedef struct npuprof_plain_walk_ {
    const npuprof_unit_ *at, *end;         /* NULL: there are none */
    uint64_t base, clear_ticks, last_ticks;
} npuprof_plain_walk_;

NPUPROF_HOT_ static inline npuprof_plain_walk_ npuprof_cursor_begin_plains_(const npuprof_cursor_ *c)
{
    npuprof_plain_walk_ p = { NULL, NULL, c->base, c->clear_ticks, c->last_ticks };
    const uint32_t passed = c->unit - c->plain_begin;
    if (passed < c->plain_count) {
        p.at = c->units + c->unit;
        p.end = p.at + (c->plain_count - passed);
    }
    return p;
}

/* Moves the cursor to where the walk is. Returns over how many records. */
NPUPROF_HOT_ static inline uint32_t npuprof_cursor_end_plains_(npuprof_cursor_ *c,
                                                               const npuprof_plain_walk_ *p)
{
    const uint32_t passed = p->at ? (uint32_t)(p->at - c->units) - c->unit : 0;
    c->unit += passed;
    return passed;
}

/* Is the next record plain, and shown? Its site is not looked up, and may be none at all: the caller knows
   the sites that it met. `end` is the value if it is an event. */
NPUPROF_HOT_ static inline bool npuprof_cursor_peek_plain_(const npuprof_plain_walk_ *c, npuprof_plain_ *p)
{
    const npuprof_unit_ *const u = c->at;
    if (u == c->end) return false;
    const uint64_t w0 = npuprof_unit_load_w0_(u);
    /* Why first: behind a head that is not there yet, a thread may be writing arguments by plain stores. */
    if (!w0) return false;
    p->site = (uint32_t)w0 & NPUPROF_ID_MASK_;
    p->end = npuprof_unit_load_w1_(u);
    if (npuprof_unit_load_id_(u + 1) >= NPUPROF_CONTROL_) return false;
    p->start = c->base + (((w0 >> NPUPROF_ID_BITS_) - c->base) & (((uint64_t)1 << NPUPROF_START_BITS_) - 1));
    if (p->start < c->clear_ticks || p->end > c->last_ticks) return false;
    if (NPUPROF_LIKELY_(p->start < p->end)) return true;
    /* Why equal ones again: the second word of a span that moved away after the first was read is its start.
       */
    return p->start == p->end && npuprof_unit_load_w0_(u) == w0;
}

/* The position of the record that npuprof_cursor_peek_plain_() found. */
NPUPROF_HOT_ static inline uint64_t npuprof_cursor_plain_position_(const npuprof_cursor_ *c,
                                                                   const npuprof_plain_walk_ *p)
{
    return c->first_position + (uint64_t)(p->at - c->units);
}

/* The slot's next event. False: there are no more. */
NPUPROF_OWN_ static bool npuprof_cursor_next_event_(npuprof_cursor_ *c, npuprof_event_ *ev)
{
    const npuprof_image_ *im = c->image;
    while (c->chunk) {
        while (c->unit < im->units) {
            bool shown;
            const uint32_t taken = npuprof_cursor_decode_(im, c->chunk - 1, c->unit, c->first, ev, &shown);
            if (!taken) break;
            c->unit += taken;
            if (shown) return true;
        }
        npuprof_cursor_begin_chunk_(c, npuprof_image_next_chunk_(im, c->chunk - 1));
        c->first = false;
    }
    return false;
}

/* Decodes a record again, by event.locator. */
NPUPROF_OWN_ static bool npuprof_cursor_decode_at_(const npuprof_image_ *im, uint64_t locator, npuprof_event_ *ev)
{
    const uint64_t unit = locator >> 1;
    bool shown;
    npuprof_cursor_decode_(im, (uint32_t)(unit / im->units), (uint32_t)(unit % im->units), locator & 1, ev,
                           &shown);
    return shown;
}
/* ==== src/read/threads.h ============================================================= >>read/threads ==== */

/* The slots of an image, and which of them belong to one thread: its own, and those of the signal handlers
   that interrupted it (their `context` is not 0).

   The slots of a live arena are a list in the order in which they were made. Those of a loaded image are
   sorted by tid and context and lie at equal distances, so they are found by binary search. */

/* of a loaded image, from unit 1 on */
enum { NPUPROF_IMAGE_SLOT_UNITS_ = (sizeof(npuprof_slot_head_) + 15) / 16 };

NPUPROF_OWN_ static const npuprof_slot_head_ *npuprof_image_slot_(const npuprof_image_ *im, uint32_t unit)
{
    const uint64_t at = (uint64_t)unit * 16;
    if (!unit || at + sizeof(npuprof_slot_head_) > im->slots_bytes) return NULL;
    return (const npuprof_slot_head_ *)(const void *)(im->slots + at);
}

/* Walks all slots: NULL before the first one and behind the last. */
NPUPROF_OWN_ static const npuprof_slot_head_ *npuprof_image_next_slot_(const npuprof_image_ *im,
                                                          const npuprof_slot_head_ *slot)
{
    return npuprof_image_slot_(im, slot ? slot->next_slot : im->slot_first);
}

/* Of a loaded image: the first slot whose tid is at least this one. NULL: there is none. */
NPUPROF_OWN_ static const npuprof_slot_head_ *npuprof_image_first_slot_from_(const npuprof_image_ *im, uint32_t tid)
{
    uint32_t low = 0, high = im->slot_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (npuprof_image_slot_(im, 1 + middle * NPUPROF_IMAGE_SLOT_UNITS_)->tid < tid) low = middle + 1;
        else high = middle;
    }
    return low < im->slot_count ? npuprof_image_slot_(im, 1 + low * NPUPROF_IMAGE_SLOT_UNITS_) : NULL;
}

/* Walks the slots of one thread: NULL before the first one and behind the last. */
NPUPROF_OWN_ static const npuprof_slot_head_ *npuprof_image_next_slot_of_(const npuprof_image_ *im, uint32_t tid,
                                                             const npuprof_slot_head_ *slot)
{
    if (!im->slot_count) {
        do slot = npuprof_image_next_slot_(im, slot);
        while (slot && NPUPROF_LOAD_(&slot->tid) != tid);
        return slot;
    }
    slot = slot ? npuprof_image_next_slot_(im, slot) : npuprof_image_first_slot_from_(im, tid);
    return slot && slot->tid == tid ? slot : NULL;
}

/* Walks the threads by their tids: 0 before the first one and behind the last.
   Why not simply all numbers up to the last: in a damaged image that may be a million. */
NPUPROF_OWN_ static uint32_t npuprof_image_next_tid_(const npuprof_image_ *im, uint32_t tid)
{
    if (!im->slot_count) return tid < im->threads ? tid + 1 : 0;
    const npuprof_slot_head_ *const slot = npuprof_image_first_slot_from_(im, tid + 1);
    return slot ? slot->tid : 0;
}

/* The thread's own slot. NULL: the image is damaged. */
NPUPROF_OWN_ static inline const npuprof_slot_head_ *npuprof_image_thread_slot_(const npuprof_image_ *im, uint32_t tid)
{
    const npuprof_slot_head_ *slot = NULL;
    do slot = npuprof_image_next_slot_of_(im, tid, slot);
    while (slot && NPUPROF_LOAD_(&slot->context));
    return slot;
}
/* ==== src/read/time.h =================================================================== >>read/time ==== */

/* Stamps as nanoseconds. Host ticks go through the image's rate, which follows from its clock anchors; device
   ticks first become host ticks, by the anchors of their device near them.

   Data: an npuprof_image_anchor_caches_, which the caller owns: the anchors that were used last, so that
   stamps near each other do not search the table again. Of a live arena, anchors are added meanwhile: an
   entry's `count` is read with acquire, and the anchors before it do not change. */

/* Why a limit: a damaged stamp must not overflow what is computed from it. 9 years. */
#define NPUPROF_NS_LIMIT_ ((uint64_t)1 << 58)

/* ---- Host time */

NPUPROF_OWN_ static NPUPROF_NOINLINE_ int64_t npuprof_image_far_ns_(const npuprof_image_ *im, uint64_t ticks)
{
    const int64_t distance = (int64_t)(ticks - im->h->first.ticks);
    const uint64_t size = distance < 0 ? 0 - (uint64_t)distance : (uint64_t)distance;
    const npuprof_u128_ p = npuprof_multiply_(size, im->multiplier);
    uint64_t ns = p.low;
    if (im->shift >= 64) ns = p.high >> (im->shift - 64);
    else if (im->shift) ns = p.high << (64 - im->shift) | p.low >> im->shift;
    if (NPUPROF_UNLIKELY_(ns > NPUPROF_NS_LIMIT_)) ns = NPUPROF_NS_LIMIT_;
    return distance < 0 ? -(int64_t)ns : (int64_t)ns;
}

/* Host ticks as ns after the first anchor. */
NPUPROF_HOT_ static inline int64_t npuprof_image_ns_(const npuprof_image_ *im, uint64_t ticks)
{
    const uint64_t distance = ticks - im->h->first.ticks;
    if (NPUPROF_UNLIKELY_(distance > im->fast_ticks)) return npuprof_image_far_ns_(im, ticks);
    return (int64_t)npuprof_multiply_(distance << im->left, im->multiplier).high;
}

NPUPROF_OWN_ static inline int64_t npuprof_image_earlier_(int64_t a, int64_t b) { return a < b ? a : b; }

/* The first host ticks that are not before a time: ns after the first anchor, not negative. */
NPUPROF_OWN_ static uint64_t npuprof_image_ticks_at_(const npuprof_image_ *im, int64_t ns)
{
    const uint64_t distance = npuprof_scale_((uint64_t)ns, (uint64_t)1 << im->shift, im->multiplier);
    const uint64_t ticks = im->h->first.ticks + distance;
    return ticks + (npuprof_image_ns_(im, ticks) < ns);
}

/* Host ticks as ns after the beginning of the trace. */
NPUPROF_HOT_ static inline int64_t npuprof_image_trace_ns_(const npuprof_image_ *im, uint64_t ticks)
{
    return npuprof_image_ns_(im, ticks) - im->origin_ns;
}

/* The rate num / den as a multiplier and a shift: as many bits as fit into 63. */
NPUPROF_OWN_ static void npuprof_image_set_rate_(npuprof_image_ *im, uint64_t num, uint64_t den)
{
    im->shift = 0;
    im->multiplier = npuprof_scale_(num, 1, den);
    while (im->shift < 62) {
        const uint64_t next = npuprof_scale_(num, (uint64_t)2 << im->shift, den);
        if (next >> 63) break;
        im->multiplier = next;
        im->shift++;
    }
    im->left = 0;
    im->fast_ticks = 0;
    if (!im->shift) return;
    const uint64_t one = (uint64_t)1 << im->shift;
    im->left = 64 - im->shift;
    im->fast_ticks = npuprof_min_(npuprof_scale_(NPUPROF_NS_LIMIT_, one, im->multiplier), one - 1);
}

/* ---- Device time */

/* Points of one device and epoch that are neighbours, and what all of them say of its clock. */
typedef struct npuprof_image_anchors_ {
    uint32_t device, epoch;
    uint64_t lag, unit;                    /* NPUPROF_NOTE_LAG, NPUPROF_NOTE_UNIT */
    bool whole_start, whole_end;           /* it begins with the first point; ends with the last */
    const npuprof_device_entry_ *entry;
    uint32_t block[NPUPROF_MAP_POINTS_];   /* the table's entry that each of them is in */
    npuprof_map_evidence_ evidence;        /* of the whole epoch */
    npuprof_map_ map;
} npuprof_image_anchors_;

/* by the low bits of the device */
typedef struct npuprof_image_anchor_caches_ { npuprof_image_anchors_ of[4]; } npuprof_image_anchor_caches_;

/* Empty ones, for one walk at a time of who holds the lock of the readers. Why static: they are large for a
   thread's stack. */
NPUPROF_OWN_ static npuprof_image_anchor_caches_ *npuprof_image_clear_caches_(void)
{
    static npuprof_image_anchor_caches_ caches;
    memset(&caches, 0, sizeof caches);
    return &caches;
}

NPUPROF_OWN_ static const npuprof_device_entry_ *npuprof_image_device_(const npuprof_image_ *im, uint32_t device)
{
    const npuprof_entry_ *e;
    uint32_t id = 0;
    while ((e = npuprof_image_next_entry_(im, NPUPROF_ENTRY_DEVICE, sizeof(npuprof_device_entry_), &id)) !=
           NULL)
        if (NPUPROF_LOAD_ACQUIRE_(&e->a) == device) return (const npuprof_device_entry_ *)(const void *)e;
    return NULL;
}

/* The anchor that found the table full; false: there is none.
   Why not until it succeeds: the thread that writes it may have been killed, or never run. */
NPUPROF_OWN_ static bool npuprof_image_overflow_anchor_(const npuprof_device_entry_ *d, uint32_t *epoch,
                                           npuprof_anchor_ *to)
{
    for (int tries = 0; tries < 1000; tries++) {
        const uint32_t used = NPUPROF_LOAD_ACQUIRE_(&d->overflow_used);
        to->device_ticks = NPUPROF_LOAD_ACQUIRE_(&d->overflow.device_ticks);
        to->host_before = NPUPROF_LOAD_ACQUIRE_(&d->overflow.host_before);
        to->host_after = NPUPROF_LOAD_ACQUIRE_(&d->overflow.host_after);
        *epoch = NPUPROF_LOAD_ACQUIRE_(&d->overflow_epoch);
        if (used && NPUPROF_LOAD_ACQUIRE_(&d->overflow_used) == used) return true;
        if (!used && !to->host_after) return false;          /* never written */
    }
    return false;
}

/* Walks a device's anchors in the order of their recording. *block: 0 before the first one. False: no more.
   */
NPUPROF_OWN_ static bool npuprof_image_next_anchor_(const npuprof_image_ *im, const npuprof_device_entry_ *d,
                                       uint32_t *block, uint32_t *index, uint32_t *epoch, npuprof_anchor_ *to)
{
    if (*block == UINT32_MAX) return false;
    if (*block == 0) {
        *block = NPUPROF_LOAD_ACQUIRE_(&d->first_anchors);
        *index = 0;
    }
    for (;;) {
        const npuprof_entry_ *const entry =
            npuprof_image_entry_(im, *block, NPUPROF_ENTRY_ANCHORS, sizeof(npuprof_anchors_entry_));
        const npuprof_anchors_entry_ *b = (const npuprof_anchors_entry_ *)(const void *)entry;
        if (b && *index < NPUPROF_LOAD_ACQUIRE_(&b->count) && *index < NPUPROF_ANCHORS_PER_ENTRY_) {
            *epoch = b->epoch;
            *to = b->anchor[(*index)++];
            return true;
        }
        const uint32_t next = b ? NPUPROF_LOAD_ACQUIRE_(&b->head.a) : 0;
        if (next <= *block) break;
        *block = next;
        *index = 0;
    }
    *block = UINT32_MAX;
    return npuprof_image_overflow_anchor_(d, epoch, to);
}

/* What is declared of a device's clock; its anchors may contradict it. */
NPUPROF_OWN_ static void npuprof_image_begin_evidence_(const npuprof_image_ *im, const npuprof_device_entry_ *d,
                                          npuprof_map_evidence_ *e)
{
    memset(e, 0, sizeof *e);
    e->rate.max_rate_ppb = d->max_rate_ppb;
    e->rate.may_be_late = NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_LAG]) != 0;
    e->rate.second = e->rate.window = npuprof_image_ticks_at_(im, 1000000000) - im->h->first.ticks;
}

/* What all anchors of an epoch say of the device's clock. */
NPUPROF_OWN_ static void npuprof_image_judge_(const npuprof_image_ *im, const npuprof_device_entry_ *d, uint32_t epoch,
                                 npuprof_map_evidence_ *e)
{
    uint32_t block = 0, index = 0, at_epoch;
    npuprof_anchor_ a;
    npuprof_image_begin_evidence_(im, d, e);
    while (npuprof_image_next_anchor_(im, d, &block, &index, &at_epoch, &a)) {
        const npuprof_map_point_ p = npuprof_map_point_of_(&a);
        if (at_epoch == epoch) npuprof_map_witness_(e, &p);
    }
    npuprof_map_judge_(e);
}

/* Does the cache have the anchors around some ticks, with enough of them on both sides? */
NPUPROF_OWN_ static bool npuprof_image_anchors_cover_(const npuprof_image_anchors_ *cache, uint64_t ticks)
{
    const npuprof_map_ *const m = &cache->map;
    const uint32_t margin = m->count / 4;
    return (cache->whole_start || ticks >= m->point[margin].upper) &&
           (cache->whole_end || ticks <= m->point[m->count - 1 - margin].lower);
}

/* Makes room for one more point in a map that is full: the oldest goes. */
NPUPROF_OWN_ static void npuprof_image_anchors_shift_(npuprof_image_anchors_ *cache)
{
    npuprof_map_ *const m = &cache->map;
    memmove(m->point, m->point + 1, (NPUPROF_MAP_POINTS_ - 1) * sizeof *m->point);
    memmove(m->open, m->open + 1, (NPUPROF_MAP_POINTS_ - 1) * sizeof *m->open);
    memmove(cache->block, cache->block + 1, (NPUPROF_MAP_POINTS_ - 1) * sizeof *cache->block);
    m->count--;
    cache->whole_start = false;
}

/* Caches the anchors around some ticks: as many before as behind, if there are.
   Why it goes on from the entry where the cached ones begin: starting from the first anchor each time would
   take time quadratic in the anchors of a device. */
NPUPROF_OWN_ static void npuprof_image_anchors_find_(const npuprof_image_ *im, npuprof_image_anchors_ *cache,
                                        uint32_t device, uint32_t epoch, uint64_t ticks)
{
    npuprof_map_ *const m = &cache->map;
    const bool same = cache->device == device && cache->epoch == epoch && m->count;
    if (same && npuprof_image_anchors_cover_(cache, ticks)) return;
    const bool found = cache->device == device && cache->entry;
    const npuprof_device_entry_ *const d = found ? cache->entry : npuprof_image_device_(im, device);
    const bool goes_on =
        same && ticks >= m->point[m->count / 4].upper && cache->block[0] != UINT32_MAX;
    uint32_t block = goes_on ? cache->block[0] : 0, index = 0, at_epoch, after = 0;
    npuprof_anchor_ a;
    memset(m, 0, sizeof *m);
    cache->device = device;
    cache->epoch = epoch;
    cache->whole_start = cache->whole_end = true;
    cache->entry = d;
    if (!d) return;
    if (!same) npuprof_image_judge_(im, d, epoch, &cache->evidence);
    m->rate = cache->evidence.rate;
    cache->whole_start = block == 0 || block == NPUPROF_LOAD_ACQUIRE_(&d->first_anchors);
    cache->lag = NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_LAG]);
    cache->unit = NPUPROF_LOAD_(&d->notes[NPUPROF_NOTE_UNIT]);
    while (npuprof_image_next_anchor_(im, d, &block, &index, &at_epoch, &a)) {
        const npuprof_map_point_ p = npuprof_map_point_of_(&a);
        if (at_epoch != epoch) continue;
        if (m->count == NPUPROF_MAP_POINTS_) {
            if (after >= NPUPROF_MAP_POINTS_ / 2) {
                cache->whole_end = false;
                break;
            }
            npuprof_image_anchors_shift_(cache);
        }
        cache->block[m->count] = block;
        npuprof_map_add_(m, &cache->evidence, &p);
        if (p.upper > ticks) after++;
    }
}

/* Device ticks of an event as host ticks, with the error if it is wanted. False: nothing bounds them. */
NPUPROF_OWN_ static bool npuprof_image_host_ticks_(const npuprof_image_ *im, npuprof_image_anchor_caches_ *caches,
                                      const npuprof_event_ *ev, uint64_t ticks, uint64_t *host,
                                      uint64_t *error_ticks)
{
    npuprof_image_anchors_ *const c = &caches->of[ev->device & 3];
    uint64_t error;
    if (ev->flags & NPUPROF_STAMP_HOST) {        /* npuprof_host_error_code_() */
        *host = ticks;
        if (error_ticks) *error_ticks = (uint64_t)(ev->epoch & 2047u) << (ev->epoch >> 11);
        return true;
    }
    npuprof_image_anchors_find_(im, c, ev->device, ev->epoch, ticks);
    const uint64_t since = npuprof_image_has_arrow_(im, ev) ? ev->link.ticks : 0;
    const uint64_t unit = ev->flags & NPUPROF_STAMP_SAMPLED ? 1 : c->unit;
    if (!npuprof_map_stamp_(&c->map, ticks, unit, since, ev->host_ticks, host, &error)) return false;
    /* Why more: the anchors' errors contain how late the anchors were read. This stamp may have been read
       late, too. */
    if (ev->flags & NPUPROF_STAMP_SAMPLED) error = npuprof_saturating_add_(error, c->lag);
    if (error_ticks) *error_ticks = error;
    return true;
}
/* ==== src/read/rate.h =================================================================== >>read/rate ==== */

/* The rate of the trace's ticks, from the first and the last host anchor. Each anchor holds three clocks of
   the system. Two of them are compared before a rate is stated: programs that set the time of others replace
   some of them, and a system that slept makes them differ.

   What a difference says. MONOTONIC stands while the system sleeps, BOOTTIME goes on, and both are never set:
     BOOTTIME went further, REALTIME with it    the system slept, or MONOTONIC was slowed down. Which one,
                                                and if the counter slept, too, is not known:
                                                MONOTONIC counts, the difference is the error
     else, or a rate that no counter has        MONOTONIC was replaced: BOOTTIME counts
     neither moved                              ticks count as ns, and nothing is known of their rate
   This part may not know events. */

/* Less than this is no difference, and its share of the time: how well two clocks are read together. */
enum { NPUPROF_RATE_SAME_NS_ = 100000, NPUPROF_RATE_SAME_SHIFT_ = 14 };

NPUPROF_OWN_ static bool npuprof_rate_same_(int64_t a, int64_t b)
{
    const int64_t off = a < b ? b - a : a - b;
    return off <= NPUPROF_RATE_SAME_NS_ + (b < 0 ? 0 : b >> NPUPROF_RATE_SAME_SHIFT_);
}

/* Compares the clocks: sets im->doubt, and im->doubt_ns, how far they are apart. Returns the ns that passed
   between the anchors. */
NPUPROF_OWN_ static int64_t npuprof_rate_compare_clocks_(npuprof_image_ *im)
{
    const npuprof_host_anchor_ *const first = &im->h->first, *const closing = &im->closing;
    const int64_t ns = closing->monotonic_ns - first->monotonic_ns, boot = closing->boot_ns - first->boot_ns;
    const int64_t unix_ns = closing->unix_ns - first->unix_ns;
    im->doubt = NPUPROF_DOUBT_NONE_;
    im->doubt_ns = 0;
    if (im->h->clock_source == NPUPROF_CLOCK_USER || closing->ticks <= first->ticks) return ns;
    if (ns > 0 && npuprof_rate_same_(ns, boot)) return ns;
    im->doubt_ns = (uint64_t)(ns < boot ? boot - ns : ns - boot);
    im->doubt = boot <= 0 ? NPUPROF_DOUBT_STANDS_
        : ns > 0 && boot > ns && npuprof_rate_same_(unix_ns, boot) &&
          npuprof_scale_(closing->ticks - first->ticks, 1000000000u, (uint64_t)ns) < NPUPROF_MAX_HZ_
        ? NPUPROF_DOUBT_SLEPT_
        : NPUPROF_DOUBT_REPLACED_;
    return im->doubt == NPUPROF_DOUBT_REPLACED_ ? boot : ns;
}

/* Sets the image's rate: ns a tick. */
NPUPROF_OWN_ static void npuprof_rate_find_(npuprof_image_ *im)
{
    const npuprof_header_ *const h = im->h;
    const int64_t ns = npuprof_rate_compare_clocks_(im);
    if (h->clock_hz) npuprof_image_set_rate_(im, 1000000000u, h->clock_hz);
    else if (im->closing.ticks > h->first.ticks && ns > 0)
        npuprof_image_set_rate_(im, (uint64_t)ns, im->closing.ticks - h->first.ticks);
    else npuprof_image_set_rate_(im, 1, 1);
}
/* ==== src/read/place.h ================================================================= >>read/place ==== */

/* Placed spans: those that have tracks of their own, beside the threads. Device spans, finished spans
   (npuprof_span()) and async spans are recorded by any thread at any time, so they are sorted by track and
   start before they are written (read/placed.h). What one has in memory is 48 bytes; its record is decoded
   again when it is written. */

enum { NPUPROF_TRACK_DEVICE_ = 1, NPUPROF_TRACK_FINISHED_, NPUPROF_TRACK_ASYNC_ };
typedef struct npuprof_placed_ {
    /* NPUPROF_TRACK_* << 56 | device << 32 | pe; or the name of track or span */
    uint64_t track;
    int64_t start_ns, end_ns;              /* after the first anchor */
    uint64_t locator;
    size_t event;                          /* of an async span: index of its begin (read/placed.h) */
    bool unfinished;
    /* its stamps are of another clock: it is drawn where the trace begins */
    bool out_of_range;
} npuprof_placed_;

/* The order on the page: by track, start, then the longer one first. The locator makes the order total. */
NPUPROF_HOT_ static bool npuprof_placed_is_before_(const void *one, const void *other)
{
    const npuprof_placed_ *const a = (const npuprof_placed_ *)one, *const b = (const npuprof_placed_ *)other;
    if (a->track != b->track) return a->track < b->track;
    if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns;
    if (a->end_ns != b->end_ns) return a->end_ns > b->end_ns;
    return a->locator < b->locator;
}

NPUPROF_OWN_ static uint64_t npuprof_place_track_(const npuprof_event_ *ev)
{
    const uint64_t pe = (uint64_t)ev->device << 32 | ev->pe;
    if (ev->kind == NPUPROF_KIND_DEVICE) return (uint64_t)NPUPROF_TRACK_DEVICE_ << 56 | pe;
    if (ev->kind == NPUPROF_KIND_FINISHED) return (uint64_t)NPUPROF_TRACK_FINISHED_ << 56 | ev->track;
    return (uint64_t)NPUPROF_TRACK_ASYNC_ << 56 | ev->name;
}

/* ---- Placing an event, in two steps. False: it stays on its thread, or there is no anchor to place it by.
   Why two: the end of a device span costs as much as its start, and a survey of starts needs none. */

NPUPROF_OWN_ static bool npuprof_place_start_(const npuprof_image_ *im, npuprof_image_anchor_caches_ *caches,
                                 const npuprof_event_ *ev, npuprof_placed_ *p)
{
    p->track = npuprof_place_track_(ev);
    p->locator = ev->locator;
    p->unfinished = p->out_of_range = false;
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        uint64_t start;
        if (!npuprof_image_host_ticks_(im, caches, ev, ev->start, &start, NULL)) return false;
        p->start_ns = npuprof_image_ns_(im, start);
    } else if (ev->kind == NPUPROF_KIND_FINISHED) {
        p->start_ns = (int64_t)(ev->value - (uint64_t)im->h->first.unix_ns);
        p->end_ns = (int64_t)(ev->second - (uint64_t)im->h->first.unix_ns);
        /* Why: farther away than this (13 days), viewers lose the nanoseconds of the whole trace. */
        const int64_t limit = (int64_t)1 << 50, latest = npuprof_image_ns_(im, im->last_ticks) + limit;
        const bool early = p->start_ns < -limit || p->end_ns < -limit;
        p->out_of_range = early || p->start_ns > latest || p->end_ns > latest;
        if (p->out_of_range) p->start_ns = p->end_ns = 0;
    } else if (ev->kind == NPUPROF_KIND_ASYNC_BEGIN) {
        p->start_ns = npuprof_image_ns_(im, ev->start);
        p->end_ns = npuprof_image_ns_(im, im->open_until);
        p->unfinished = true;
    } else {
        return false;
    }
    return true;
}

NPUPROF_OWN_ static bool npuprof_place_end_(const npuprof_image_ *im, npuprof_image_anchor_caches_ *caches,
                               const npuprof_event_ *ev, npuprof_placed_ *p)
{
    if (ev->kind == NPUPROF_KIND_DEVICE && ev->flags & NPUPROF_STAMP_INSTANT) {
        p->end_ns = p->start_ns;
    } else if (ev->kind == NPUPROF_KIND_DEVICE) {
        uint64_t end;
        if (!npuprof_image_host_ticks_(im, caches, ev, ev->end, &end, NULL)) return false;
        p->end_ns = npuprof_image_ns_(im, end);
    }
    if (p->end_ns < p->start_ns) p->end_ns = p->start_ns;
    return true;
}

/* Both steps. */
NPUPROF_OWN_ static bool npuprof_place_(const npuprof_image_ *im, npuprof_image_anchor_caches_ *caches,
                           const npuprof_event_ *ev, npuprof_placed_ *p)
{
    return npuprof_place_start_(im, caches, ev, p) && npuprof_place_end_(im, caches, ev, p);
}
/* ==== src/read/list.h =================================================================== >>read/list ==== */

/* A reader's lists, in pages of the system's: mapped as the list grows, given back by npuprof_list_free_().
   Why not the heap: it may be the program's thread in it that dumps. A list that the system has no memory for
   stays as it was: who adds says so (ENOMEM). May not know what the elements are. */
typedef struct npuprof_list_ {
    uint8_t *at;
    size_t bytes, count, capacity;         /* bytes: of an element */
} npuprof_list_;

NPUPROF_OWN_ static npuprof_list_ npuprof_list_of_(size_t bytes)
{
    npuprof_list_ list;
    memset(&list, 0, sizeof list);
    list.bytes = bytes;
    return list;
}

NPUPROF_OWN_ static void npuprof_list_free_(npuprof_list_ *l)
{
    if (l->at) npuprof_os_unmap_(l->at, l->capacity * l->bytes);
    *l = npuprof_list_of_(l->bytes);
}

/* Makes room for as many elements again. */
NPUPROF_COLD_ NPUPROF_OWN_ static bool npuprof_list_grow_(npuprof_list_ *l)
{
    const size_t capacity = l->capacity ? 2 * l->capacity : 65536 / l->bytes;
    uint8_t *const at = (uint8_t *)npuprof_os_memory_(capacity * l->bytes);
    if (!at) return false;
    if (l->at) {
        memcpy(at, l->at, l->count * l->bytes);
        npuprof_os_unmap_(l->at, l->capacity * l->bytes);
    }
    l->at = at;
    l->capacity = capacity;
    return true;
}

/* False: the system has no memory for it. */
NPUPROF_OWN_ static inline bool npuprof_list_add_(npuprof_list_ *l, const void *element)
{
    if (l->count == l->capacity && !npuprof_list_grow_(l)) return false;
    memcpy(l->at + l->count++ * l->bytes, element, l->bytes);
    return true;
}

/* Sorts elements of `bytes` bytes, which is a constant. False: the system has no memory beside them. */
NPUPROF_ALWAYS_INLINE_ bool npuprof_list_sort_(npuprof_list_ *l, size_t bytes, npuprof_heap_before_ before)
{
    uint8_t *const array = l->at;
    if (l->count < 2) return true;
    uint8_t *const beside = (uint8_t *)npuprof_os_memory_(l->capacity * bytes);
    if (!beside) return false;
    l->at = (uint8_t *)npuprof_sort_(array, beside, bytes, l->count, before);
    npuprof_os_unmap_(l->at == array ? beside : array, l->capacity * bytes);
    return true;
}
/* ==== src/read/placed.h =============================================================== >>read/placed ==== */

/* All placed spans of an image in order: one walk collects them, one sort puts them in order, and the async
   ones get their ends. */

/* A begin or an end of an async span, in the order of its thread. span: a begin's index + 1 in the list; 0:
   it is an end. */
typedef struct npuprof_async_ { uint64_t id; int64_t ns; size_t span; } npuprof_async_;

NPUPROF_OWN_ static bool npuprof_async_before_(const void *one, const void *other)
{
    const npuprof_async_ *const a = (const npuprof_async_ *)one, *const b = (const npuprof_async_ *)other;
    return a->id != b->id ? a->id < b->id : a->ns < b->ns;
}

NPUPROF_OWN_ static void npuprof_async_close_(npuprof_placed_ *p, int64_t ns)
{
    p->end_ns = ns;
    p->unfinished = false;
}

/* No end came before `ns`, where its id begins anew. early: an end of another thread came in its tick. */
NPUPROF_OWN_ static void npuprof_async_leave_(npuprof_placed_ *p, bool early, int64_t ns)
{
    if (early) npuprof_async_close_(p, p->start_ns);
    else if (ns < p->end_ns) p->end_ns = ns;
}

/* Gives the async spans of a sorted list their ends: a begin takes the first end behind it that has its id,
   unless the id begins anew before. In one tick, what began before it ends first; then the order of the
   threads counts. Returns 0 or an errno value. */
NPUPROF_OWN_ static int npuprof_async_find_ends_(const npuprof_list_ *spans, npuprof_list_ *events)
{
    npuprof_placed_ *const list = (npuprof_placed_ *)(void *)spans->at, *open = NULL;
    npuprof_async_ *from = (npuprof_async_ *)(void *)events->at;
    bool early = false;
    for (size_t i = 0; i < spans->count; i++)
        if (list[i].track >> 56 == NPUPROF_TRACK_ASYNC_) from[list[i].event].span = i + 1;
    if (!npuprof_list_sort_(events, sizeof(npuprof_async_), npuprof_async_before_)) return ENOMEM;
    from = (npuprof_async_ *)(void *)events->at;
    const npuprof_async_ *const last = from + events->count;
    while (from < last) {
        npuprof_async_ *behind = from, *taken = from;
        const uint64_t id = from->id;
        const int64_t ns = from->ns;
        while (behind < last && behind->id == id && behind->ns == ns) behind++;
        while (taken < behind && taken->span) taken++;
        if (!open) taken = NULL;
        else if (taken < behind) npuprof_async_close_(open, ns);
        else npuprof_async_leave_(open, early, ns);
        open = NULL;
        early = false;
        for (; from < behind; from++) {
            if (from == taken) continue;
            if (open && from->span) npuprof_async_leave_(open, false, ns);
            if (open && !from->span) npuprof_async_close_(open, ns);
            early = early || (!open && !from->span);
            open = from->span ? &list[from->span - 1] : NULL;
        }
        if (open && (from == last || from->id != id)) {
            npuprof_async_leave_(open, early, INT64_MAX);
            open = NULL;
        }
    }
    return 0;
}

/* Moves the cursor over plain records of sites that are known to be unwanted. Why: most records are, and need
   not be decoded. */
NPUPROF_OWN_ static void npuprof_placed_skip_plain_(npuprof_cursor_ *c, const uint32_t unwanted[256])
{
    const uint32_t end = c->plain_begin + c->plain_count;
    uint32_t unit = c->unit;
    for (; unit >= c->plain_begin && unit < end; unit++) {
        const uint32_t site = npuprof_unit_load_id_(c->units + unit);
        if (site - 1 >= NPUPROF_CONTROL_ - 1 || unwanted[site % 256] != site) break;
        if (npuprof_unit_load_id_(c->units + unit + 1) >= NPUPROF_CONTROL_) break;
    }
    c->unit = unit;
}

/* Walks the image once. Returns 0 or an errno value. Its caller holds the lock of the readers. */
NPUPROF_OWN_ static int npuprof_placed_gather_(const npuprof_image_ *im, uint32_t kinds, npuprof_list_ *spans,
                                  npuprof_list_ *events)
{
    npuprof_image_anchor_caches_ *const caches = npuprof_image_clear_caches_();
    npuprof_event_ ev;
    npuprof_cursor_ c;
    npuprof_placed_ p;
    const npuprof_slot_head_ *slot = NULL;
    uint32_t unwanted[256];
    const bool async = kinds >> NPUPROF_KIND_ASYNC_BEGIN & 1;
    memset(unwanted, 0, sizeof unwanted);
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL) {
        npuprof_cursor_begin_slot_(&c, im, slot);
        while (npuprof_placed_skip_plain_(&c, unwanted), npuprof_cursor_next_event_(&c, &ev)) {
            const size_t at = events->count;
            if (async && (ev.kind == NPUPROF_KIND_ASYNC_BEGIN || ev.kind == NPUPROF_KIND_ASYNC_END)) {
                const npuprof_async_ event = { ev.value, npuprof_image_ns_(im, ev.start), 0 };
                if (!npuprof_list_add_(events, &event)) return ENOMEM;
            } else if (!(kinds >> ev.kind & 1)) {
                unwanted[ev.site % 256] = ev.site;
            }
            if (!(kinds >> ev.kind & 1) || !npuprof_place_(im, caches, &ev, &p)) continue;
            p.event = at;
            if (!npuprof_list_add_(spans, &p)) return ENOMEM;
        }
    }
    return 0;
}

/* A walk over the placed spans of these kinds, in order. */
typedef struct npuprof_placed_walk_ {
    const npuprof_image_ *image;
    npuprof_list_ list;
    size_t at;
    int error;                             /* 0, or ENOMEM: the system has no memory for them */
} npuprof_placed_walk_;

NPUPROF_OWN_ static npuprof_placed_walk_ npuprof_placed_begin_(const npuprof_image_ *im, uint32_t kinds)
{
    npuprof_placed_walk_ walk = { im, npuprof_list_of_(sizeof(npuprof_placed_)), 0, 0 };
    npuprof_list_ events = npuprof_list_of_(sizeof(npuprof_async_));
    if (!(im->kinds & kinds)) return walk;
    walk.error = npuprof_placed_gather_(im, kinds, &walk.list, &events);
    if (!walk.error && !npuprof_list_sort_(&walk.list, sizeof(npuprof_placed_), npuprof_placed_is_before_))
        walk.error = ENOMEM;
    if (!walk.error) walk.error = npuprof_async_find_ends_(&walk.list, &events);
    if (walk.error) npuprof_list_free_(&walk.list);
    npuprof_list_free_(&events);
    return walk;
}

/* The next span and its record. NULL: there is none; the walk is over, and its pages are given back. */
NPUPROF_OWN_ static const npuprof_placed_ *npuprof_placed_next_(npuprof_placed_walk_ *walk, npuprof_event_ *ev)
{
    const npuprof_placed_ *const list = (const npuprof_placed_ *)(const void *)walk->list.at;
    while (walk->at < walk->list.count) {
        const npuprof_placed_ *const p = &list[walk->at++];
        if (npuprof_cursor_decode_at_(walk->image, p->locator, ev)) return p;
    }
    npuprof_list_free_(&walk->list);
    return NULL;
}
/* ==== src/read/live.h =================================================================== >>read/live ==== */

/* Opens the live arena as an image, while its threads go on recording.

   A slot knows its last chunk, and each chunk the one before (`prev`). A reader goes this way back and writes
   `next` into the chunks and `first_chunk` into the slots, which only readers use and only under their lock.
   Meanwhile a chunk may be taken away from its slot and recycled: then its owner or its position does not
   fit, and the way ends there. */

/* All but the order of the chunks. */
NPUPROF_OWN_ static void npuprof_image_init_live_(npuprof_image_ *im)
{
    const npuprof_header_ *h = npuprof_arena_.header;
    memset(im, 0, sizeof *im);
    im->h = h;
    im->table = npuprof_arena_.table;
    im->chunks = npuprof_arena_.chunks;
    im->pages = npuprof_arena_.pages;
    im->slots = npuprof_arena_.base;
    im->slots_bytes = h->arena_bytes;
    im->units = npuprof_arena_.units;
    im->table_used = NPUPROF_LOAD_ACQUIRE_(&h->table_used);
    im->chunk_total = NPUPROF_LOAD_ACQUIRE_(&h->chunk_next);
    im->threads = NPUPROF_LOAD_ACQUIRE_(&h->threads);
    im->slot_first = NPUPROF_LOAD_ACQUIRE_(&h->slot_first);
}

/* Chains the chunks of a slot. Returns the first one, index + 1; 0: it has none. */
NPUPROF_OWN_ static uint32_t npuprof_image_chain_live_(const npuprof_image_ *im, const npuprof_slot_head_ *slot)
{
    uint32_t index = NPUPROF_LOAD_ACQUIRE_(&slot->last_chunk), next = 0;
    const uint32_t owner = NPUPROF_LOAD_(&slot->tid) << 3 | NPUPROF_LOAD_(&slot->context);
    for (uint64_t position = UINT64_MAX; index && index <= im->h->chunk_count;) {
        npuprof_chunk_ *const chunk = npuprof_chunk_at_(index - 1);
        /* Why: each chunk's head is a cache miss, and only the chunk itself says which one comes next. Most
           often it is the one that was taken eight before; a prefetch outside of the arena does nothing. */
        NPUPROF_PREFETCH_((uintptr_t)chunk - 8 * (uintptr_t)im->h->chunk_bytes);
        const uint16_t state = NPUPROF_LOAD_ACQUIRE_(&chunk->state);
        const bool in_use = state == NPUPROF_CHUNK_RETIRED || state == NPUPROF_CHUNK_OPEN;
        const bool ours = in_use && NPUPROF_LOAD_ACQUIRE_(&chunk->owner) == owner;
        const uint64_t first = NPUPROF_LOAD_(&chunk->first_position);
        if (!ours || first >= position) break;       /* recycled */
        NPUPROF_STORE_(&chunk->next, next);
        next = index;
        position = first;
        index = NPUPROF_LOAD_(&chunk->prev);
    }
    return next;
}

NPUPROF_OWN_ static void npuprof_image_open_live_(npuprof_image_ *im)
{
    npuprof_image_init_live_(im);
    for (uint32_t at = im->slot_first; at; at = npuprof_slot_at_(at)->head.next_slot) {
        npuprof_slot_head_ *const slot = &npuprof_slot_at_(at)->head;
        NPUPROF_STORE_(&slot->first_chunk, npuprof_image_chain_live_(im, slot));
    }
    /* Why only now: just before its slot is looked at, a thread may take a chunk or a tid that was never
       used. */
    im->chunk_total = NPUPROF_LOAD_ACQUIRE_(&im->h->chunk_next);
    im->threads = NPUPROF_LOAD_ACQUIRE_(&im->h->threads);
}

/* Copies what another arena knew before anything was recorded, its metadata, into the live one. */
NPUPROF_OWN_ static void npuprof_image_copy_metadata_(const npuprof_header_ *old)
{
    static const uint32_t types[2] = { NPUPROF_ENTRY_METADATA, NPUPROF_ENTRY_ENVIRONMENT };
    npuprof_image_ im;
    size_t length;
    memset(&im, 0, sizeof im);
    im.h = old;
    im.table = (const uint8_t *)(const void *)old + old->table_offset;
    im.pages = (const uint32_t *)(const void *)im.table;
    im.chunks = (const uint8_t *)(const void *)old + old->chunks_offset;
    im.table_used = old->table_used;
    memcpy(npuprof_arena_.header->traceparent, old->traceparent, sizeof old->traceparent);
    for (int i = 0; i < 2; i++) {
        const npuprof_entry_ *e;
        uint32_t id = 0;
        while ((e = npuprof_image_next_entry_(&im, types[i], sizeof(npuprof_pair_entry_), &id)) != NULL) {
            const npuprof_pair_entry_ *pair = (const npuprof_pair_entry_ *)(const void *)e;
            npuprof_table_add_pair_(types[i], npuprof_image_text_(&im, pair->b[0], &length),
                                    npuprof_image_text_(&im, pair->b[1], &length));
        }
    }
}
/* ==== src/read/survey.h =============================================================== >>read/survey ==== */

/* Opens an image for a reader: goes through all of its events once, counts them, and finds what the trace
   spans, how fast its clock was, where the trace begins, and where spans end that are still open.

   Data: the image, which the caller owns and fills here. A live arena goes on recording meanwhile; what is
   newer than the last stamp found here is not shown, so that a reader sees the same events in each of its
   walks. */

/* What a trace spans, in host ticks: from the earliest stamp, as a distance from the first anchor, to the
   last one. Of device and finished spans the moment of recording counts, and for the last stamp only. */
typedef struct npuprof_extent_ {
    int64_t earliest;
    uint64_t last, newest_open;            /* newest_open: the start of the last span that is still open, */
    bool open;                             /* if there is one */
} npuprof_extent_;

/* The later one of a stamp and of those of an event. */
NPUPROF_OWN_ static uint64_t npuprof_extent_newest_(uint64_t last, const npuprof_event_ *ev)
{
    if (ev->kind <= NPUPROF_KIND_OPERATOR && !ev->unfinished && ev->end > last) last = ev->end;
    return ev->host_ticks > last ? ev->host_ticks : last;
}

NPUPROF_OWN_ static void npuprof_extent_add_(const npuprof_image_ *im, npuprof_extent_ *x, const npuprof_event_ *ev)
{
    const int64_t start = (int64_t)(ev->host_ticks - im->h->first.ticks);
    const bool own_stamps = ev->kind == NPUPROF_KIND_DEVICE || ev->kind == NPUPROF_KIND_FINISHED;
    if (!own_stamps && start < x->earliest) x->earliest = start;
    x->last = npuprof_extent_newest_(x->last, ev);
    if (ev->kind > NPUPROF_KIND_OPERATOR || !ev->unfinished) return;
    if (ev->host_ticks > x->newest_open) x->newest_open = ev->host_ticks;
    x->open = true;
}

/* ---- The walk over all events */

/* Passes over the plain records that come next, as long as their sites are among those met last, which are
   number << 8 | kind. Returns how many. */
NPUPROF_HOT_ NPUPROF_NOINLINE_ static uint32_t
npuprof_survey_plain_(npuprof_cursor_ *cursor, const uint32_t sites[256], npuprof_extent_ *x)
{
    npuprof_plain_walk_ c = npuprof_cursor_begin_plains_(cursor);
    npuprof_plain_ p;
    const uint64_t first = cursor->image->h->first.ticks;
    uint64_t newest = x->last;
    int64_t earliest = x->earliest;
    while (npuprof_cursor_peek_plain_(&c, &p)) {
        const uint32_t site = sites[p.site % 256];
        if (site >> 8 != p.site) break;
        const uint64_t at = (site & 0xFF) <= NPUPROF_KIND_OPERATOR ? p.end : p.start;
        if (at > newest) newest = at;
        if ((int64_t)(p.start - first) < earliest) earliest = (int64_t)(p.start - first);
        c.at++;
    }
    x->last = newest;
    x->earliest = earliest;
    return npuprof_cursor_end_plains_(cursor, &c);
}

NPUPROF_OWN_ static npuprof_extent_ npuprof_survey_events_(npuprof_image_ *im)
{
    npuprof_event_ ev;
    npuprof_cursor_ c;
    npuprof_extent_ x;
    uint32_t sites[256];                   /* those met last */
    uint64_t events = 0;
    const npuprof_slot_head_ *slot = NULL;
    memset(&x, 0, sizeof x);
    memset(sites, 0, sizeof sites);
    sites[0] = (uint32_t)1 << 8;           /* there is no site 0 */
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL) {
        npuprof_cursor_begin_slot_(&c, im, slot);
        for (;;) {
            events += npuprof_survey_plain_(&c, sites, &x);
            if (!npuprof_cursor_next_event_(&c, &ev)) break;
            sites[ev.site % 256] = ev.site << 8 | ev.kind;
            events++;
            im->kinds |= (uint32_t)1 << ev.kind;
            npuprof_extent_add_(im, &x, &ev);
        }
    }
    im->events = events;
    return x;
}

/* Spans with stamps of their own: the trace begins with the earliest of all, and open spans end with the
   last. */
NPUPROF_OWN_ static void npuprof_survey_placed_(npuprof_image_ *im, bool open)
{
    npuprof_image_anchor_caches_ caches;
    npuprof_event_ ev;
    npuprof_cursor_ c;
    npuprof_placed_ p;
    int64_t last_ns = INT64_MIN;
    const npuprof_slot_head_ *slot = NULL;
    memset(&caches, 0, sizeof caches);
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL) {
        npuprof_cursor_begin_slot_(&c, im, slot);
        while (npuprof_cursor_next_event_(&c, &ev)) {
            if (ev.kind != NPUPROF_KIND_DEVICE && ev.kind != NPUPROF_KIND_FINISHED) continue;
            if (npuprof_image_has_arrow_(im, &ev))
                im->origin_ns = npuprof_image_earlier_(im->origin_ns, npuprof_image_ns_(im, ev.link.ticks));
            if (!npuprof_place_start_(im, &caches, &ev, &p)) continue;
            im->origin_ns = npuprof_image_earlier_(im->origin_ns, p.start_ns);
            if (open && npuprof_place_end_(im, &caches, &ev, &p) && p.end_ns > last_ns) last_ns = p.end_ns;
        }
    }
    if (open && last_ns > npuprof_image_ns_(im, im->open_until))
        im->open_until = npuprof_image_ticks_at_(im, last_ns);
}

/* The trace begins before its first pause, too. */
NPUPROF_OWN_ static void npuprof_survey_pauses_(npuprof_image_ *im)
{
    const npuprof_entry_ *e;
    uint32_t id = 0;
    while ((e = npuprof_image_next_entry_(im, NPUPROF_ENTRY_PAUSE, sizeof(npuprof_pause_entry_), &id)) !=
           NULL) {
        const npuprof_pause_entry_ *pause = (const npuprof_pause_entry_ *)(const void *)e;
        const uint64_t at[2] = { NPUPROF_LOAD_(&pause->from), NPUPROF_LOAD_(&pause->to) };
        for (int i = 0; i < 2; i++)
            if (at[i] && at[i] >= im->clear_ticks)
                im->origin_ns = npuprof_image_earlier_(im->origin_ns, npuprof_image_ns_(im, at[i]));
    }
}

/* ---- Opening */

/* Opens what is to be read, the image given or else the live arena, without a look at its events. */
NPUPROF_OWN_ static void npuprof_image_open_unread_(npuprof_image_ *im)
{
    if (npuprof_image_given_) *im = *npuprof_image_given_;
    else npuprof_image_open_live_(im);
    im->clear_ticks = NPUPROF_LOAD_(&im->h->clear_ticks);
    const npuprof_image_window_ limits = npuprof_image_limits_();
    if (!npuprof_image_given_ && limits.since > im->clear_ticks) im->clear_ticks = limits.since;
    im->last_ticks = im->open_until = UINT64_MAX;
    if (!npuprof_image_given_ && limits.until) im->last_ticks = limits.until;
}

/* Fills im->lost. */
NPUPROF_OWN_ static void npuprof_image_sum_lost_(npuprof_image_ *im)
{
    const npuprof_slot_head_ *slot = NULL;
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) im->lost[i] = NPUPROF_LOAD_(&im->h->lost[i]);
    if (!im->next)
        im->lost[NPUPROF_LOST_OVERWRITTEN] += npuprof_chunk_sum_overwritten_(im->h, im->chunk_total);
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL)
        im->lost[NPUPROF_LOST_FULL] += NPUPROF_LOAD_(&slot->lost);
}

/* The newest clock anchor. A live arena takes one if anything was recorded since the last one, or spans are
   open: `last` is the newest stamp, or now.
   Why not always: reading twice must give the same bytes while nothing happens. */
NPUPROF_OWN_ static void npuprof_image_take_closing_anchor_(npuprof_image_ *im, uint64_t last)
{
    im->closing = npuprof_arena_copy_last_anchor_(im->h);
    if (npuprof_image_given_ || (last <= im->closing.ticks && im->closing.ticks != im->h->first.ticks))
        return;
    npuprof_arena_renew_last_anchor_();
    im->closing = npuprof_arena_copy_last_anchor_(im->h);
}

/* Opens what is to be read, and goes through its events. */
NPUPROF_OWN_ static void npuprof_image_open_(npuprof_image_ *im)
{
    const uint32_t placed = (uint32_t)1 << NPUPROF_KIND_DEVICE | (uint32_t)1 << NPUPROF_KIND_FINISHED;
    npuprof_image_open_unread_(im);
    npuprof_image_sum_lost_(im);
    /* Why before the walk: what the walk finds open was open now. */
    const uint64_t now = npuprof_image_given_ ? 0 : npuprof_min_(im->last_ticks, npuprof_clock_());
    const npuprof_extent_ x = npuprof_survey_events_(im);
    npuprof_image_take_closing_anchor_(im, x.open ? npuprof_max_(x.last, now) : x.last);
    const npuprof_header_ *const h = im->h;
    im->last_ticks = x.last ? x.last : h->first.ticks;
    /* Spans without an end are known to be open up to now; in an image, up to its last anchor, when the
       process that recorded it lived. */
    im->open_until = npuprof_max_(im->last_ticks, npuprof_image_given_ ? im->closing.ticks : now);
    npuprof_rate_find_(im);
    /* Why not at the first anchor: the clock of another thread may be behind that of the thread that took the
       anchor, and viewers drop events with negative times. */
    im->origin_ns = npuprof_image_earlier_(0, npuprof_image_ns_(im, h->first.ticks + (uint64_t)x.earliest));
    npuprof_survey_pauses_(im);
    if (im->kinds & placed) npuprof_survey_placed_(im, x.open);
    /* Why a microsecond more: the last stamp of a crash is often the start of the span that it happened in,
       and viewers show no span without length. */
    if (x.open && x.newest_open >= im->open_until)
        im->open_until = x.newest_open + npuprof_image_ticks_at_(im, 1000) - h->first.ticks;
}
/* ==== src/read/args.h =================================================================== >>read/args ==== */

/* The arguments of an event, one after the other: each is a unit with its key, type and value, and a string
   goes on in the units behind it. Where they end is checked when the event is decoded (read/cursor.h).

   A span may have several lists of them: its own, and one in each RESULT record that follows in its slot,
   up to its end. Those are looked for when the list before is over, chunk by chunk. Time: the records inside
   the span. If a key comes twice, the last one counts. */

typedef struct npuprof_value_ {
    uint32_t key, type;                    /* type: NPUPROF_ARG_* */
    uint64_t bits;
    const uint8_t *text;                   /* of a string; not terminated */
    size_t length;
} npuprof_value_;

typedef struct npuprof_args_walk_ {
    const npuprof_image_ *image;
    const npuprof_unit_ *u, *end;          /* the rest of the list */
    uint32_t chunk, unit;                  /* where the next list may be. chunk: index + 1; 0: nowhere */
    uint64_t position, until;              /* of the span; the ticks of its end */
} npuprof_args_walk_;

NPUPROF_OWN_ static inline npuprof_args_walk_ npuprof_args_begin_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    npuprof_args_walk_ w = { im, ev->args, ev->args_end, 0, 0, ev->position, ev->end };
    if (!ev->results) return w;
    w.chunk = (uint32_t)((ev->locator >> 1) / im->units) + 1;
    w.unit = (uint32_t)((ev->locator >> 1) % im->units);
    if (ev->unfinished) w.until = UINT64_MAX;
    return w;
}

/* Goes to the span's next list. False: there are no more. */
NPUPROF_OWN_ static bool npuprof_args_next_list_(npuprof_args_walk_ *w)
{
    const npuprof_image_ *const im = w->image;
    while (w->chunk) {
        const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, w->chunk - 1);
        const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
        const npuprof_unit_ *const end = units + im->units;
        while (w->unit < im->units) {
            const npuprof_unit_ *const head = units + w->unit;
            const uint64_t w0 = npuprof_unit_load_w0_(head);
            const uint32_t id = (uint32_t)w0 & NPUPROF_ID_MASK_, left = (uint32_t)(end - head);
            const bool moved = w->unit < chunk->moved_units;
            if (w0 == 0) break;
            const npuprof_unit_ *const u =
                npuprof_cursor_skip_controls_(head + (moved && left > 1 ? 2 : 1), end);
            const npuprof_unit_ *const behind = npuprof_cursor_skip_args_(u, end);
            w->unit = (uint32_t)(behind - units);
            if (id == NPUPROF_CONTROL_RESULT_ && npuprof_unit_load_w1_(head) == w->position) {
                w->u = u;
                w->end = behind;
                return true;
            }
            if (id < NPUPROF_CONTROL_ && !moved && npuprof_chunk_start_ticks_(chunk, w0) > w->until) {
                w->chunk = 0;
                return false;
            }
        }
        w->chunk = npuprof_image_next_chunk_(im, w->chunk - 1);
        w->unit = 0;
    }
    return false;
}

/* The next argument. False: there are no more. */
NPUPROF_OWN_ static inline bool npuprof_args_next_(npuprof_args_walk_ *w, npuprof_value_ *v)
{
    while (w->u >= w->end)
        if (!w->chunk || !npuprof_args_next_list_(w)) return false;
    const uint64_t payload = w->u->w0 >> NPUPROF_ID_BITS_;
    v->type = (uint32_t)payload & 15;
    v->key = (uint32_t)(payload >> 4) & 0x0FFFFFFFu;
    v->length = (size_t)(payload >> 32);
    v->bits = w->u->w1;
    v->text = (const uint8_t *)w->u + 8;   /* the first 8 bytes are in this unit, the others behind it */
    w->u += 1 + (v->length > 8 ? NPUPROF_UNITS_(v->length - 8) : 0);
    return true;
}

/* The argument that has this key. False: there is none, and *found is all 0. */
NPUPROF_OWN_ static inline bool npuprof_args_find_value_(const npuprof_image_ *im, const npuprof_event_ *ev,
                                            const char *key, npuprof_value_ *found)
{
    npuprof_args_walk_ w = npuprof_args_begin_(im, ev);
    npuprof_value_ v;
    bool any = false;
    memset(found, 0, sizeof *found);
    while (npuprof_args_next_(&w, &v)) {
        if (!npuprof_image_text_is_(im, v.key, key)) continue;
        *found = v;
        any = true;
    }
    return any;
}

/* The integer argument that has this key: its type, and its bits. 0: there is none. */
NPUPROF_OWN_ static inline uint32_t npuprof_args_find_(const npuprof_image_ *im, const npuprof_event_ *ev, const char *key,
                                          uint64_t *bits)
{
    npuprof_value_ v;
    if (!npuprof_args_find_value_(im, ev, key, &v) || v.type > NPUPROF_ARG_UINT) return 0;
    *bits = v.bits;
    return v.type;
}

/* Is a device span a whole execution? An instruction of one has the argument instruction_index. */
NPUPROF_OWN_ static bool npuprof_args_is_execution_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    uint64_t unused;
    return npuprof_args_find_(im, ev, "instruction_index", &unused) == 0;
}
#ifndef NPUPROF_RECORD_ONLY
/* ==== src/read/walk.h =================================================================== >>read/walk ==== */

/* Walks the events of one thread in the order of time, and knows for each of them the span around it (its
   parent) and the root of its trace: the PROF_RECORD around it, else the outermost span. A thread's own slot
   and those of its signal handlers are merged.

   Nesting follows from the stamps alone: spans that are over when the next event begins are left, so the
   stack of open spans needs no ends. Data: a walk is large; there is one in the work area (write/work.h). */

enum { NPUPROF_WALK_DEPTH_ = 512 };        /* a deeper span has the span at this depth as its parent */

typedef struct npuprof_walk_ {
    const npuprof_image_ *image;
    uint32_t tid, sources, depth, from;    /* from: the source of the event just given */
    npuprof_cursor_ cursor[NPUPROF_SLOT_CONTEXTS_];       /* of the sources: the thread's slots */
    /* the next event of each, if there are several sources */
    npuprof_event_ waiting[NPUPROF_SLOT_CONTEXTS_];
    bool has[NPUPROF_SLOT_CONTEXTS_];
    struct { uint64_t start, end, position, root; } open[NPUPROF_WALK_DEPTH_];
    bool warm[NPUPROF_WALK_DEPTH_];        /* the open span is in warm-up */
    bool has_parent, warm_up;              /* of the event just given, */
    uint64_t parent, root;                 /* their positions, */
    uint64_t parent_start, parent_end;     /* and host ticks */
} npuprof_walk_;

NPUPROF_OWN_ static void npuprof_walk_begin_(npuprof_walk_ *w, const npuprof_image_ *im, uint32_t tid)
{
    const npuprof_slot_head_ *slot = NULL;
    w->image = im;
    w->tid = tid;
    w->sources = w->depth = w->from = 0;
    while (w->sources < NPUPROF_SLOT_CONTEXTS_ && (slot = npuprof_image_next_slot_of_(im, tid, slot)) != NULL)
        if (NPUPROF_LOAD_(&slot->first_chunk)) {
            npuprof_cursor_begin_slot_(&w->cursor[w->sources], im, slot);
            w->sources++;
        }
    for (uint32_t i = 0; i < w->sources && w->sources > 1; i++)
        w->has[i] = npuprof_cursor_next_event_(&w->cursor[i], &w->waiting[i]);
}

/* Leaves the spans that are over at a moment; `span`: a span begins then, otherwise it is an event. In the
   very tick where a span ends, an event is still inside it, and a span is only if the one around it has no
   length. */
NPUPROF_HOT_ static inline void npuprof_walk_leave_(npuprof_walk_ *w, uint64_t at, bool span)
{
    uint32_t depth = w->depth;
    for (; depth && w->open[depth - 1].end <= at; depth--)
        if (NPUPROF_UNLIKELY_(w->open[depth - 1].end == at) && (!span || w->open[depth - 1].start == at))
            break;
    w->depth = depth;
}

/* Enters a span, which has w->root and w->warm_up. */
NPUPROF_HOT_ static inline void npuprof_walk_enter_(npuprof_walk_ *w, uint64_t start, uint64_t end,
                                                    uint64_t position)
{
    if (w->depth == NPUPROF_WALK_DEPTH_) return;
    w->open[w->depth].start = start;
    w->open[w->depth].end = end;
    w->open[w->depth].position = position;
    w->open[w->depth].root = w->root;
    w->warm[w->depth] = w->warm_up;
    w->depth++;
}

/* The step of npuprof_walk_next_() for a plain span, which the caller has from the cursor. */
NPUPROF_HOT_ static inline void npuprof_walk_plain_(npuprof_walk_ *w, const npuprof_plain_ *p,
                                                    uint64_t position)
{
    npuprof_walk_leave_(w, p->start, true);
    w->has_parent = w->depth > 0;
    w->root = position;
    w->warm_up = false;
    if (w->depth) {
        w->parent = w->open[w->depth - 1].position;
        w->root = w->open[w->depth - 1].root;
        w->warm_up = w->warm[w->depth - 1];
    }
    npuprof_walk_enter_(w, p->start, p->end, position);
}

/* The thread's next event. False: there are no more. */
NPUPROF_OWN_ static bool npuprof_walk_next_(npuprof_walk_ *w, npuprof_event_ *ev)
{
    if (w->sources <= 1) {                 /* nothing to merge, nothing to copy */
        if (!w->sources || !npuprof_cursor_next_event_(&w->cursor[0], ev)) return false;
    } else {
        uint32_t first = UINT32_MAX;
        for (uint32_t i = 0; i < w->sources; i++) {
            const bool earlier =
                first == UINT32_MAX || w->waiting[i].host_ticks < w->waiting[first].host_ticks;
            if (w->has[i] && earlier) first = i;
        }
        if (first == UINT32_MAX) return false;
        *ev = w->waiting[first];
        w->from = first;
        w->has[first] = npuprof_cursor_next_event_(&w->cursor[first], &w->waiting[first]);
    }
    npuprof_walk_leave_(w, ev->host_ticks, ev->kind <= NPUPROF_KIND_OPERATOR);
    w->has_parent = w->depth > 0;
    w->parent_start = w->depth ? w->open[w->depth - 1].start : 0;
    w->parent_end = w->depth ? w->open[w->depth - 1].end : 0;
    w->parent = w->depth ? w->open[w->depth - 1].position : 0;
    w->root = w->depth ? w->open[w->depth - 1].root : ev->position;
    w->warm_up = w->depth && w->warm[w->depth - 1];
    if (ev->kind <= NPUPROF_KIND_OPERATOR) {
        if (ev->kind == NPUPROF_KIND_RECORD || ev->kind == NPUPROF_KIND_WARM_UP) w->root = ev->position;
        if (ev->kind == NPUPROF_KIND_WARM_UP) w->warm_up = true;
        npuprof_walk_enter_(w, ev->host_ticks, ev->end, ev->position);
    }
    return true;
}
/* ==== src/read/executions.h ======================================================= >>read/executions ==== */

/* Walks all device spans in the order of track and start, and tells for each the execution that it lies in.
   An execution is a span of a whole job on one PE; the spans of its instructions lie inside it.

   Engines of one PE work at the same time, so their spans overlap each other, and nesting alone would put one
   under another. A span therefore belongs to the execution on its track that contains it and has the same
   execution_index, if both have one. An execution is complete, and handed over, when the walk is behind its
   end. */
typedef struct npuprof_execution_ {
    bool used, warm_up, has_link, has_index;
    bool counted;                          /* the device itself says how long it worked (busy_ticks) */
    /* run_ns and sum_ns are known: counted, or spans inside, or stamps of the device */
    bool measured;
    uint32_t device, pe, tid, root_tid;
    uint64_t position, root, execution_index;
    int64_t start_ns, end_ns;
    /* compute inside: the time of any, up to run_end; and of all together */
    int64_t run_end, run_ns, sum_ns;
} npuprof_execution_;

enum { NPUPROF_EXECUTIONS_ = 16 };         /* that a PE may work at at the same time */

/* The caller fills in what is above the line, and what its callbacks need; a callback may be NULL. */
typedef struct npuprof_device_walk_ {
    /* within: NULL if the span is itself an execution, or in none */
    void (*span)(struct npuprof_device_walk_ *, const npuprof_event_ *, const npuprof_placed_ *,
                 const npuprof_execution_ *within);
    void (*execution)(struct npuprof_device_walk_ *, const npuprof_execution_ *);
    void *user;                            /* these two are the callbacks' own */
    FILE *out;
    /* ---- */
    npuprof_execution_ list[NPUPROF_EXECUTIONS_];
} npuprof_device_walk_;

/* Is it compute? Not the execution itself, and no transfer. */
NPUPROF_OWN_ static bool npuprof_execution_is_compute_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    return !npuprof_image_text_is_(im, ev->name, "Execution") &&
           !npuprof_image_text_is_(im, ev->name, "Load") && !npuprof_image_text_is_(im, ev->name, "Store");
}

/* Hands over the executions that are not on this track, or ended before this moment, the earliest first. */
NPUPROF_OWN_ static void npuprof_execution_close_(npuprof_device_walk_ *d, uint64_t track, int64_t before_ns)
{
    for (;;) {
        npuprof_execution_ *oldest = NULL;
        for (npuprof_execution_ *e = d->list; e < d->list + NPUPROF_EXECUTIONS_; e++) {
            const uint64_t own = (uint64_t)NPUPROF_TRACK_DEVICE_ << 56 | (uint64_t)e->device << 32 | e->pe;
            const bool over = own != track || e->end_ns < before_ns;
            if (e->used && over && (!oldest || e->start_ns < oldest->start_ns)) oldest = e;
        }
        if (!oldest) return;
        oldest->used = false;
        if (d->execution) d->execution(d, oldest);
    }
}

NPUPROF_OWN_ static void npuprof_execution_begin_(npuprof_device_walk_ *d, const npuprof_image_ *im,
                                     const npuprof_event_ *ev, const npuprof_placed_ *p)
{
    npuprof_execution_ *e = d->list;
    while (e < d->list + NPUPROF_EXECUTIONS_ - 1 && e->used) e++;
    if (e->used && d->execution) d->execution(d, e);
    memset(e, 0, sizeof *e);
    e->used = true;
    e->device = ev->device;
    e->pe = ev->pe;
    e->tid = ev->tid;
    e->position = ev->position;
    e->has_index = npuprof_args_find_(im, ev, "execution_index", &e->execution_index) != 0;
    e->has_link = ev->has_link;
    e->warm_up = ev->has_link && ev->link.warm_up;
    e->root_tid = ev->has_link ? ev->link.slot : ev->tid;
    e->root = ev->has_link ? ev->link.root_position : ev->position;
    e->start_ns = e->run_end = p->start_ns;
    e->end_ns = p->end_ns;
    uint64_t busy;
    uint64_t ticks = ev->end - ev->start;
    if (ev->flags & NPUPROF_STAMP_HOST && npuprof_args_find_(im, ev, "ticks", &ticks) != NPUPROF_ARG_UINT)
        ticks = 0;
    const bool has_busy = npuprof_args_find_(im, ev, "busy_ticks", &busy) == NPUPROF_ARG_UINT;
    e->counted = has_busy && ev->end > ev->start && ticks && p->end_ns > p->start_ns;
    e->measured = e->counted || !(ev->flags & (NPUPROF_STAMP_SAMPLED | NPUPROF_STAMP_HOST));
    if (!e->counted) return;
    const uint64_t ns = (uint64_t)(p->end_ns - p->start_ns);
    e->run_ns = e->sum_ns = (int64_t)npuprof_scale_(ns, busy < ticks ? busy : ticks, ticks);
}

/* The execution that a span lies in, the latest one; NULL: in none. */
NPUPROF_OWN_ static npuprof_execution_ *npuprof_execution_around_(npuprof_device_walk_ *d, const npuprof_image_ *im,
                                                     const npuprof_event_ *ev, const npuprof_placed_ *p)
{
    uint64_t index = 0;
    const bool has_index = npuprof_args_find_(im, ev, "execution_index", &index) != 0;
    npuprof_execution_ *best = NULL;
    for (npuprof_execution_ *e = d->list; e < d->list + NPUPROF_EXECUTIONS_; e++) {
        if (!e->used || e->start_ns > p->start_ns || p->end_ns > e->end_ns) continue;
        if (has_index && e->has_index && e->execution_index != index) continue;
        if (!best || e->start_ns > best->start_ns) best = e;
    }
    return best;
}

/* Adds the time of a span to its execution. */
NPUPROF_OWN_ static void npuprof_execution_add_(npuprof_execution_ *e, const npuprof_image_ *im, const npuprof_event_ *ev,
                                   const npuprof_placed_ *p)
{
    e->measured = true;
    if (e->counted || !npuprof_execution_is_compute_(im, ev)) return;
    e->sum_ns += p->end_ns - p->start_ns;
    if (p->end_ns <= e->run_end) return;
    e->run_ns += p->end_ns - (p->start_ns > e->run_end ? p->start_ns : e->run_end);
    e->run_end = p->end_ns;
}

/* Walks all device spans of an image, with the callbacks of *d. Returns 0 or an errno value. */
NPUPROF_OWN_ static int npuprof_execution_walk_(npuprof_device_walk_ *d, const npuprof_image_ *im)
{
    npuprof_placed_walk_ spans = npuprof_placed_begin_(im, 1u << NPUPROF_KIND_DEVICE);
    npuprof_event_ ev;
    memset(d->list, 0, sizeof d->list);
    for (const npuprof_placed_ *p; (p = npuprof_placed_next_(&spans, &ev)) != NULL;) {
        if (ev.flags & NPUPROF_STAMP_INSTANT) continue;
        npuprof_execution_close_(d, p->track, p->start_ns);
        npuprof_execution_ *within = NULL;
        if (npuprof_args_is_execution_(im, &ev)) npuprof_execution_begin_(d, im, &ev, p);
        else within = npuprof_execution_around_(d, im, &ev, p);
        if (within) npuprof_execution_add_(within, im, &ev, p);
        if (d->span) d->span(d, &ev, p, within);
    }
    npuprof_execution_close_(d, 0, 0);
    return spans.error;
}
/* ==== src/read/merge.h ================================================================= >>read/merge ==== */

/* The memory records of all threads in the order of time, without those in warm-up: a merge of the slots by a
   heap, in memory that the caller hands in. Records of the same nanosecond come in the order of tids, as the
   JSON has them. */

typedef struct npuprof_merge_source_ {     /* a slot, and where its next record of memory or warm-up is */
    int64_t ns, warm_up_ns;                /* of that record; until then the thread is in warm-up */
    uint32_t chunk, unit, tid, context;
    bool first;
} npuprof_merge_source_;

typedef struct npuprof_merge_ {
    const npuprof_image_ *image;
    npuprof_merge_source_ *heap;           /* the earliest on top */
    size_t count, capacity, left_out;      /* left_out: slots that found no room */
} npuprof_merge_;

NPUPROF_OWN_ static bool npuprof_merge_is_later_(const void *one, const void *other)
{
    const npuprof_merge_source_ *const a = (const npuprof_merge_source_ *)one;
    const npuprof_merge_source_ *const b = (const npuprof_merge_source_ *)other;
    if (a->ns != b->ns) return a->ns > b->ns;
    return a->tid != b->tid ? a->tid > b->tid : a->context > b->context;
}

/* Moves a source to its next record of memory or warm-up. False: there is none. */
NPUPROF_OWN_ static bool npuprof_merge_seek_(const npuprof_image_ *im, npuprof_merge_source_ *s, npuprof_cursor_ *c)
{
    npuprof_event_ ev;
    do {
        s->chunk = c->chunk;
        s->unit = c->unit;
        s->first = c->first;
        if (!npuprof_cursor_next_event_(c, &ev)) return false;
    } while (ev.kind != NPUPROF_KIND_MEMORY && ev.kind != NPUPROF_KIND_WARM_UP);
    s->ns = npuprof_image_ns_(im, ev.host_ticks);
    return true;
}

NPUPROF_OWN_ static void npuprof_merge_begin_(npuprof_merge_ *m, const npuprof_image_ *im, void *memory, size_t bytes)
{
    npuprof_cursor_ c;
    const npuprof_slot_head_ *slot = NULL;
    m->image = im;
    m->heap = (npuprof_merge_source_ *)memory;
    m->capacity = bytes / sizeof *m->heap;
    m->count = m->left_out = 0;
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL) {
        npuprof_merge_source_ s;
        memset(&s, 0, sizeof s);
        npuprof_cursor_begin_slot_(&c, im, slot);
        s.tid = c.tid;
        s.context = slot->context;
        s.warm_up_ns = INT64_MIN;
        if (!npuprof_merge_seek_(im, &s, &c)) continue;
        if (m->count == m->capacity) {
            m->left_out++;
            continue;
        }
        m->heap[m->count++] = s;
        npuprof_heap_sift_up_(m->heap, sizeof *m->heap, m->count, npuprof_merge_is_later_);
    }
}

/* The next memory record. False: there are no more. */
NPUPROF_OWN_ static bool npuprof_merge_next_(npuprof_merge_ *m, npuprof_event_ *ev)
{
    while (m->count) {
        npuprof_merge_source_ *const s = m->heap;
        npuprof_cursor_ c;
        c.image = m->image;
        c.chunk = s->chunk;
        c.unit = s->unit;
        c.tid = s->tid;
        c.first = s->first;
        if (npuprof_cursor_next_event_(&c, ev) && ev->kind == NPUPROF_KIND_WARM_UP) {
            /* Why all sources of the thread: its signal handlers have slots of their own. */
            const int64_t end = npuprof_image_ns_(m->image, ev->end);
            for (npuprof_merge_source_ *other = s; other < s + m->count; other++)
                if (other->tid == s->tid && other->warm_up_ns < end) other->warm_up_ns = end;
        }
        const bool wanted = ev->kind == NPUPROF_KIND_MEMORY && s->ns > s->warm_up_ns;
        if (!npuprof_merge_seek_(m->image, s, &c)) *s = s[--m->count];
        npuprof_heap_sift_down_(m->heap, sizeof *m->heap, m->count, 0, npuprof_merge_is_later_);
        if (wanted) return true;
    }
    return false;
}
/* ==== src/read/lanes.h ================================================================= >>read/lanes ==== */

/* Lanes: a viewer's track shows spans that nest. Spans of a track that overlap without nesting go into
   further lanes, each a track of its own. Spans come in the order of their starts; each goes into the first
   lane of its group where it nests or stands free.

   Data: a lane is a stack of the ends of its open spans, as a list of nodes. The memory is the caller's. */

enum { NPUPROF_LANES_ = 256 };

/* mark: the output's own word of the span, for its end. */
typedef struct npuprof_lane_node_ { int64_t end; uint32_t below, mark; } npuprof_lane_node_;

/* Spans of one track that must not share lanes: on a device's PE whole executions are above their
   instructions, so that arrows end at the execution; sampled spans go by stream. */
enum { NPUPROF_GROUP_EXECUTIONS_ = 0, NPUPROF_GROUP_INSTRUCTIONS_, NPUPROF_GROUP_STREAM_ };
typedef struct npuprof_lane_group_ { uint32_t sort; uint64_t stream; } npuprof_lane_group_;
static const npuprof_lane_group_ npuprof_lane_no_group_ = { 0, 0 };

typedef struct npuprof_lane_set_ {
    npuprof_lane_node_ *nodes;             /* [0] is below all others, and never ends */
    uint32_t node_count, free_node, fresh_node;      /* nodes from fresh_node on were never used */
    uint32_t count;
    uint32_t top[NPUPROF_LANES_];
    npuprof_lane_group_ group[NPUPROF_LANES_];
    /* the output's numbers of the tracks, 0: not begun; and of that of the last span that got no lane */
    uint64_t track[NPUPROF_LANES_ + 1];
} npuprof_lane_set_;

NPUPROF_OWN_ static inline void npuprof_lane_clear_all_(npuprof_lane_set_ *l)
{
    l->count = 0;
    l->free_node = 0;
    l->fresh_node = 1;
    l->nodes[0].end = INT64_MAX;
}

/* Takes the spans off a lane that are over at a moment. */
NPUPROF_HOT_ static inline void npuprof_lane_pop_(npuprof_lane_set_ *l, uint32_t lane, int64_t start)
{
    uint32_t top = l->top[lane];
    while (l->nodes[top].end <= start) {
        const uint32_t node = top;
        top = l->nodes[node].below;
        l->nodes[node].below = l->free_node;
        l->free_node = node;
    }
    l->top[lane] = top;
}

/* Takes the innermost open span off a lane. */
NPUPROF_OWN_ static inline void npuprof_lane_drop_(npuprof_lane_set_ *l, uint32_t lane)
{
    const uint32_t node = l->top[lane];
    l->top[lane] = l->nodes[node].below;
    l->nodes[node].below = l->free_node;
    l->free_node = node;
}

/* Puts a span into a lane. False: it neither nests nor stands free there, or there is no node left. */
NPUPROF_HOT_ static inline bool npuprof_lane_nest_(npuprof_lane_set_ *l, uint32_t lane, int64_t start,
                                                   int64_t end)
{
    npuprof_lane_node_ *const nodes = l->nodes, *const last = &nodes[l->top[lane]];
    if (last->end <= start) {              /* the next span in the one around the last: it takes its place */
        const int64_t around = nodes[last->below].end;
        if (start < around && end <= around) {
            last->end = end;
            return true;
        }
    }
    npuprof_lane_pop_(l, lane, start);
    const uint32_t top = l->top[lane];
    uint32_t node = l->free_node;
    if (nodes[top].end < end) return false;
    if (node) {
        l->free_node = nodes[node].below;
    } else {
        node = l->fresh_node;
        if (node == l->node_count) return false;
        l->fresh_node++;
    }
    nodes[node].end = end;
    nodes[node].below = top;
    l->top[lane] = node;
    return true;
}

NPUPROF_OWN_ static inline void npuprof_lane_add_(npuprof_lane_set_ *l, npuprof_lane_group_ group)
{
    l->top[l->count] = 0;
    l->track[l->count] = 0;
    l->group[l->count] = group;
    l->count++;
}

NPUPROF_OWN_ static inline bool npuprof_lane_same_group_(npuprof_lane_group_ a, npuprof_lane_group_ b)
{
    return a.sort == b.sort && a.stream == b.stream;
}

/* Puts a span into the first lane of its group that can take it; if there are too many lanes, of any group.
   Returns the lane. NPUPROF_LANES_: no lane or no node is left, and the span gets a track of its own. */
NPUPROF_OWN_ static inline uint32_t npuprof_lane_find_(npuprof_lane_set_ *l, npuprof_lane_group_ group, int64_t start,
                                          int64_t end)
{
    uint32_t lane = 0;
    for (; lane < l->count; lane++) npuprof_lane_pop_(l, lane, start);
    for (lane = 0; lane < NPUPROF_LANES_; lane++) {
        if (lane == l->count) npuprof_lane_add_(l, group);
        if (npuprof_lane_same_group_(l->group[lane], group) && npuprof_lane_nest_(l, lane, start, end))
            return lane;
        if (!l->free_node && l->fresh_node == l->node_count) return NPUPROF_LANES_;
    }
    for (lane = 0; lane < NPUPROF_LANES_ && !npuprof_lane_nest_(l, lane, start, end);) lane++;
    return lane;
}

/* The lane of an event without length: the first of its group, whatever is open there. */
NPUPROF_OWN_ static inline uint32_t npuprof_lane_point_(npuprof_lane_set_ *l, npuprof_lane_group_ group)
{
    uint32_t lane = 0;
    while (lane < l->count && !npuprof_lane_same_group_(l->group[lane], group)) lane++;
    if (lane == NPUPROF_LANES_) return 0;
    if (lane == l->count) npuprof_lane_add_(l, group);
    return lane;
}
/* ==== src/read/scene.h ================================================================= >>read/scene ==== */

/* The scene: what an image shows, decided once for every output that draws it. It has tracks, and lanes of
   them; spans, instants, counters, pools; and what the library itself says of an event, its facts. An output
   is a set of functions that spell these (npuprof_scene_output_).

   The parts: scene_facts.h (facts), scene_thread.h (threads), scene_placed.h (tracks that are no threads),
   scene_flows.h (arrows of flows). Times are ns after the beginning of the trace. Data: npuprof_scene_, the
   caller's, who holds the lock of the readers. */

/* Keys of facts. A user's key that is one of those on the event is written as "user.<key>". */
#define NPUPROF_FACTS_(X) \
    X(KIND, "kind") X(TRACE_ID, "trace_id") X(SPAN_ID, "span_id") X(UNFINISHED, "unfinished") \
    X(STAMP, "stamp") X(PE_INDEX, "pe_index") X(START_TICKS, "start_ticks") X(END_TICKS, "end_ticks") \
    X(ERROR_NS, "error_ns") X(CAUSALITY, "causality") X(WARM_UP, "warm_up") X(POOL, "pool") X(TAG, "tag") \
    X(CHANGE, "change") X(OUT_OF_RANGE, "stamps_out_of_range") X(REVERSED, "end_before_start")
#define NPUPROF_FACT_ENUM_(name, text) NPUPROF_FACT_##name##_,
enum { NPUPROF_FACTS_(NPUPROF_FACT_ENUM_) NPUPROF_FACT_COUNT_ };
#define NPUPROF_FACT_TEXT_(name, text) text,
static const char *const npuprof_fact_keys_[] = { NPUPROF_FACTS_(NPUPROF_FACT_TEXT_) };

enum { NPUPROF_FACTS_MAX_ = 9 };           /* on one event */

/* An event as it is shown. */
typedef struct npuprof_scene_event_ {
    const npuprof_event_ *ev;              /* with the user's arguments and the call site */
    uint32_t name, category;               /* ids in the image's table, 0: none; or words of the scene: */
    const char *own_name, *own_category;   /* NULL: the table's */
    int64_t start, end;
    uint64_t track;                        /* the output's number of it */
    bool derived;                          /* it follows from another event, which is shown, too */
    bool submitted;                        /* an arrow comes from the span that submitted it */
    bool of_process;                       /* an instant of the whole process */
    uint32_t keys;                         /* a bit for each fact's key */
    uint32_t fact_count;
    npuprof_value_ facts[NPUPROF_FACTS_MAX_];        /* key: NPUPROF_FACT_* */
    char trace_id[33], span_id[17];        /* of facts */
} npuprof_scene_event_;

/* The track of a thread, and that of lanes beside it. */
typedef struct npuprof_scene_thread_track_ {
    uint32_t tid, native_id, owners;       /* native_id: the system's number; 0: unknown */
    uint32_t name;                         /* id of its name; 0: it is `own` */
    char own[24];
} npuprof_scene_thread_track_;

typedef struct npuprof_scene_ npuprof_scene_;

/* An output. `user` of the scene is its own. A track's number is what the output gives it, and never 0. */
typedef struct npuprof_scene_output_ {
    /* Begins the track of a thread, before its events are walked; or a further lane of it. */
    uint64_t (*thread)(npuprof_scene_ *s, const npuprof_scene_thread_track_ *t);
    uint64_t (*overlap)(npuprof_scene_ *s, const npuprof_scene_thread_track_ *t);
    /* Begins a lane of a track that is no thread, by the first event in it. */
    uint64_t (*lane)(npuprof_scene_ *s, const npuprof_event_ *ev, uint32_t lane);
    /* Takes from s->walk as many plain spans as it can write at once, in lane 0. May take none. */
    void (*plain)(npuprof_scene_ *s);
    /* A span. Returns a mark of it, for its end. */
    uint32_t (*span)(npuprof_scene_ *s, const npuprof_scene_event_ *e);
    /* The end of a span, when all that is inside of it was shown. NULL: the output needs none. */
    void (*end)(npuprof_scene_ *s, uint64_t track, int64_t ns, uint32_t mark);
    void (*instant)(npuprof_scene_ *s, const npuprof_scene_event_ *e);
    /* A value of a counter, of a kind of counter. */
    void (*counter)(npuprof_scene_ *s, const npuprof_scene_event_ *e, uint32_t kind, uint64_t bits);
    /* The state of a memory pool. Its name is the event's category. */
    void (*pool)(npuprof_scene_ *s, const npuprof_scene_event_ *e);
    /* An arrow between spans of two threads. */
    void (*arrow)(npuprof_scene_ *s, uint32_t from_tid, int64_t from_ns, uint32_t to_tid, int64_t to_ns);
    bool counters_in_lanes;                /* a device's counter is on the device's track, not on its own */
} npuprof_scene_output_;

struct npuprof_scene_ {
    const npuprof_image_ *image;
    npuprof_walk_ *walk;                   /* through the thread at hand */
    npuprof_lane_set_ *lanes;                 /* of the track at hand */
    const npuprof_scene_output_ *output;
    void *user;
    npuprof_scene_thread_track_ thread;          /* the one at hand */
    uint64_t placed;                       /* npuprof_placed_.track of the track at hand */
    uint64_t skipped_values;               /* of counters: not finite */
    int error;                             /* 0 or an errno value: memory was refused */
};
#ifndef NPUPROF_NO_JSON
/* ==== src/read/scene_facts.h ===================================================== >>read/scene_facts ==== */

/* Text of the scene: names of tracks; keys of arguments; and facts, which are what the library itself says
   of an event, before the user's arguments. */

/* ---- Text of names */

/* Appends text; returns the new length. */
NPUPROF_OWN_ static size_t npuprof_scene_append_(char *text, size_t at, size_t capacity, const char *more)
{
    npuprof_text_copy_(text + at, capacity - at, more);
    return at + strlen(text + at);
}

/* A name of the table, cut to `most` bytes, or "unnamed", with a text behind it. Returns the length. */
NPUPROF_OWN_ static size_t npuprof_scene_name_(const npuprof_image_ *im, uint32_t id, size_t most, const char *suffix,
                                  char text[192])
{
    size_t length;
    const char *const name = npuprof_image_text_(im, id, &length);
    const size_t cut = npuprof_utf8_cut_(name, length, most);
    memcpy(text, name, cut);
    const size_t at = length ? cut : npuprof_scene_append_(text, 0, 192, "unnamed");
    return npuprof_scene_append_(text, at, 192, suffix);
}

/* The name of a lane beside a thread's track, likewise. */
NPUPROF_OWN_ static size_t npuprof_scene_overlap_name_(const npuprof_image_ *im, const npuprof_scene_thread_track_ *t,
                                          size_t most, char text[192])
{
    if (!t->name) return npuprof_scene_append_(text, 0, 192, "thread (overlap)");
    return npuprof_scene_name_(im, t->name, most, " (overlap)", text);
}

/* ---- Keys */

/* Are two keys the same once they are written? Bad bytes all become U+FFFD. */
NPUPROF_OWN_ static bool npuprof_scene_same_key_(const npuprof_image_ *im, uint32_t a, uint32_t b)
{
    size_t a_left, b_left;
    if (a == b) return true;
    const uint8_t *p = (const uint8_t *)npuprof_image_text_(im, a, &a_left);
    const uint8_t *q = (const uint8_t *)npuprof_image_text_(im, b, &b_left);
    while (a_left && b_left) {
        const size_t n = npuprof_utf8_length_(p, a_left), m = npuprof_utf8_length_(q, b_left);
        const bool p_bad = n == 0 || (n == 3 && memcmp(p, "\xEF\xBF\xBD", 3) == 0);
        const bool q_bad = m == 0 || (m == 3 && memcmp(q, "\xEF\xBF\xBD", 3) == 0);
        if (p_bad != q_bad || (!p_bad && (n != m || memcmp(p, q, n) != 0))) return false;
        p += n ? n : 1;
        q += m ? m : 1;
        a_left -= n ? n : 1;
        b_left -= m ? m : 1;
    }
    return a_left == b_left;
}

/* Does an argument with this key come again behind the last one? */
NPUPROF_OWN_ static bool npuprof_scene_key_comes_again_(const npuprof_args_walk_ *args, uint32_t key)
{
    npuprof_args_walk_ rest = *args;
    npuprof_value_ later;
    while (npuprof_args_next_(&rest, &later))
        if (npuprof_scene_same_key_(args->image, later.key, key)) return true;
    return false;
}

/* ---- Facts */

NPUPROF_OWN_ static npuprof_value_ *npuprof_fact_add_(npuprof_scene_event_ *e, uint32_t key, uint32_t type, uint64_t bits)
{
    npuprof_value_ *const fact = &e->facts[e->fact_count++];
    e->keys |= 1u << key;
    fact->key = key;
    fact->type = type;
    fact->bits = bits;
    fact->text = NULL;
    fact->length = 0;
    return fact;
}

NPUPROF_OWN_ static void npuprof_fact_add_text_(npuprof_scene_event_ *e, uint32_t key, const char *text, size_t length)
{
    npuprof_value_ *const fact = npuprof_fact_add_(e, key, NPUPROF_ARG_STR, 0);
    fact->text = (const uint8_t *)text;
    fact->length = length;
}

NPUPROF_OWN_ static void npuprof_fact_add_words_(npuprof_scene_event_ *e, uint32_t key, const char *words)
{
    npuprof_fact_add_text_(e, key, words, strlen(words));
}

/* trace_id: TRACEPARENT's, else the arena's seed and the id of the trace's root span. */
NPUPROF_OWN_ static void npuprof_fact_add_ids_(npuprof_scene_event_ *e, const npuprof_image_ *im, uint32_t root_tid,
                                  uint64_t root)
{
    npuprof_image_trace_id_(im, root_tid, root, e->trace_id);
    npuprof_digits_hex_text_(e->span_id, npuprof_image_span_id_(im, e->ev->tid, e->ev->position));
    npuprof_fact_add_words_(e, NPUPROF_FACT_TRACE_ID_, e->trace_id);
    npuprof_fact_add_words_(e, NPUPROF_FACT_SPAN_ID_, e->span_id);
}

/* The fact of the event that a user's key is the key of. NULL: it is none's. */
NPUPROF_OWN_ static const char *npuprof_fact_key_(const npuprof_scene_event_ *e, const npuprof_image_ *im, uint32_t key)
{
    for (unsigned n = 0; e->keys >> n; n++)
        if ((e->keys >> n & 1) && npuprof_image_text_is_(im, key, npuprof_fact_keys_[n]))
            return npuprof_fact_keys_[n];
    return NULL;
}

/* ---- Spans of threads */

NPUPROF_OWN_ static void npuprof_fact_of_span_(npuprof_scene_event_ *e, const npuprof_image_ *im, uint64_t root)
{
    static const char *const kinds[] = { "", "record", "warm_up", "inference", "operator" };
    const npuprof_event_ *const ev = e->ev;
    if (ev->kind != NPUPROF_KIND_SPAN) {
        npuprof_fact_add_words_(e, NPUPROF_FACT_KIND_, kinds[ev->kind - NPUPROF_KIND_SPAN]);
        npuprof_fact_add_ids_(e, im, ev->tid, root);
    }
    if (ev->unfinished) (void)npuprof_fact_add_(e, NPUPROF_FACT_UNFINISHED_, NPUPROF_ARG_BOOL, 1);
    else if (ev->cut) npuprof_fact_add_words_(e, NPUPROF_FACT_UNFINISHED_, "unwound");
}

/* ---- Spans and instants of devices */

/* Did a device span start before its submission, or end behind its record, by more than the error says? */
NPUPROF_OWN_ static bool npuprof_fact_causality_broken_(const npuprof_event_ *ev, uint64_t start, uint64_t start_error,
                                           uint64_t end, uint64_t end_error)
{
    if (!ev->has_link) return false;
    return (int64_t)(start + start_error - ev->link.ticks) < 0 ||
           (int64_t)(ev->host_ticks + end_error - end) < 0;
}

/* Is an arrow drawn to a device span that starts there? Viewers draw none back in time, so there is none to a
   span that the error of the clock puts before the span that submitted it. */
NPUPROF_OWN_ static bool npuprof_fact_draws_arrow_(const npuprof_image_ *im, const npuprof_event_ *ev, int64_t start_ns)
{
    return npuprof_image_has_arrow_(im, ev) && npuprof_image_ns_(im, ev->link.ticks) <= start_ns;
}

/* Where the event was, on which clock, and how wrong it may be. A host's stamps have no device ticks, and
   maybe no known error. A whole execution has ids; its instructions have its trace id. */
NPUPROF_OWN_ static void npuprof_fact_of_device_(npuprof_scene_event_ *e, const npuprof_image_ *im,
                                    npuprof_image_anchor_caches_ *caches)
{
    const npuprof_event_ *const ev = e->ev;
    uint64_t start = 0, end = 0, start_error = 0, end_error = 0;
    const bool by_host = (ev->flags & NPUPROF_STAMP_HOST) != 0;
    (void)npuprof_image_host_ticks_(im, caches, ev, ev->start, &start, &start_error);
    (void)npuprof_image_host_ticks_(im, caches, ev, ev->end, &end, &end_error);
    const uint64_t error = start_error > end_error ? start_error : end_error;
    npuprof_fact_add_words_(e, NPUPROF_FACT_STAMP_,
                            ev->flags & NPUPROF_STAMP_SAMPLED ? "sampled" : by_host ? "host" : "device");
    (void)npuprof_fact_add_(e, NPUPROF_FACT_PE_INDEX_, NPUPROF_ARG_UINT, ev->pe);
    if (!by_host) {
        (void)npuprof_fact_add_(e, NPUPROF_FACT_START_TICKS_, NPUPROF_ARG_UINT, ev->start);
        (void)npuprof_fact_add_(e, NPUPROF_FACT_END_TICKS_, NPUPROF_ARG_UINT, ev->end);
    }
    if (!by_host || ev->epoch)
        (void)npuprof_fact_add_(e, NPUPROF_FACT_ERROR_NS_, NPUPROF_ARG_UINT,
                                (uint64_t)npuprof_image_ns_(im, im->h->first.ticks + error) + 1);
    if (npuprof_fact_causality_broken_(ev, start, start_error, end, end_error))
        npuprof_fact_add_words_(e, NPUPROF_FACT_CAUSALITY_, "violated");
    if (ev->has_link && ev->link.warm_up)
        (void)npuprof_fact_add_(e, NPUPROF_FACT_WARM_UP_, NPUPROF_ARG_BOOL, 1);
    if (!npuprof_args_is_execution_(im, ev)) return;
    if (ev->has_link) npuprof_fact_add_ids_(e, im, ev->link.slot, ev->link.root_position);
    else npuprof_fact_add_ids_(e, im, ev->tid, ev->position);
}

/* ---- Finished and async spans: what is wrong with their stamps */

NPUPROF_OWN_ static void npuprof_fact_of_finished_(npuprof_scene_event_ *e, const npuprof_placed_ *p)
{
    const npuprof_event_ *const ev = e->ev;
    const bool reversed = ev->kind == NPUPROF_KIND_FINISHED && (int64_t)ev->second < (int64_t)ev->value;
    const uint32_t key = p->unfinished     ? NPUPROF_FACT_UNFINISHED_
                         : p->out_of_range ? NPUPROF_FACT_OUT_OF_RANGE_
                         : reversed        ? NPUPROF_FACT_REVERSED_
                                           : NPUPROF_FACT_COUNT_;
    if (key < NPUPROF_FACT_COUNT_) (void)npuprof_fact_add_(e, key, NPUPROF_ARG_BOOL, 1);
}
/* ==== src/read/scene_thread.h =================================================== >>read/scene_thread ==== */

/* The events of threads, in the order of time: spans, instants, counters, states of memory pools. Spans that
   do not nest, because a signal handler or an unwound span is between them, go to lanes beside the thread's
   track. */

/* ---- Ends of spans */

/* Tells the output the ends of a lane's spans that are over at a moment, or before it. */
NPUPROF_OWN_ static void npuprof_scene_close_(npuprof_scene_ *s, uint32_t lane, int64_t until)
{
    npuprof_lane_set_ *const l = s->lanes;
    while (s->output->end && l->nodes[l->top[lane]].end <= until) {
        const npuprof_lane_node_ *const node = &l->nodes[l->top[lane]];
        s->output->end(s, l->track[lane], node->end, node->mark);
        npuprof_lane_drop_(l, lane);
    }
}

NPUPROF_OWN_ static void npuprof_scene_close_all_(npuprof_scene_ *s, int64_t until)
{
    for (uint32_t lane = 0; lane < s->lanes->count; lane++) npuprof_scene_close_(s, lane, until);
}

/* Shows a span, which was put into a lane. */
NPUPROF_OWN_ static void npuprof_scene_span_(npuprof_scene_ *s, npuprof_scene_event_ *e, uint32_t lane)
{
    e->track = s->lanes->track[lane];
    const uint32_t mark = s->output->span(s, e);
    if (lane < NPUPROF_LANES_) s->lanes->nodes[s->lanes->top[lane]].mark = mark;
    else if (s->output->end) s->output->end(s, e->track, e->end, mark);
}

/* ---- Events */

/* Must the spans around each span be known? Why not always: only these kinds have ids, or are left out in
   warm-up. */
NPUPROF_OWN_ static bool npuprof_scene_needs_walk_(const npuprof_image_ *im)
{
    const uint32_t kinds = 1u << NPUPROF_KIND_RECORD | 1u << NPUPROF_KIND_WARM_UP |
                           1u << NPUPROF_KIND_INFERENCE | 1u << NPUPROF_KIND_OPERATOR |
                           1u << NPUPROF_KIND_MEMORY;
    return (im->kinds & kinds) != 0;
}

/* An event on the track of the thread at hand, without facts. */
NPUPROF_OWN_ static void npuprof_scene_show_(npuprof_scene_ *s, const npuprof_event_ *ev, npuprof_scene_event_ *e)
{
    e->ev = ev;
    e->name = ev->name;
    e->category = ev->category;
    e->own_name = e->own_category = NULL;
    e->start = e->end = npuprof_image_trace_ns_(s->image, ev->start);
    e->track = s->lanes->track[0];
    e->derived = e->submitted = e->of_process = false;
    e->keys = e->fact_count = 0;
}

NPUPROF_OWN_ static void npuprof_scene_thread_span_(npuprof_scene_ *s, npuprof_scene_event_ *e)
{
    e->end = npuprof_image_trace_ns_(s->image, e->ev->end);
    if (e->end < e->start) e->end = e->start;
    npuprof_scene_close_all_(s, e->start);
    const uint32_t lane = npuprof_lane_find_(s->lanes, npuprof_lane_no_group_, e->start, e->end);
    if (!s->lanes->track[lane] || lane == NPUPROF_LANES_)
        s->lanes->track[lane] = s->output->overlap(s, &s->thread);
    npuprof_fact_of_span_(e, s->image, s->walk->root);
    npuprof_scene_span_(s, e, lane);
}

NPUPROF_OWN_ static void npuprof_scene_instant_(npuprof_scene_ *s, npuprof_scene_event_ *e)
{
    s->output->instant(s, e);
}

NPUPROF_OWN_ static void npuprof_scene_counter_(npuprof_scene_ *s, npuprof_scene_event_ *e)
{
    const uint64_t bits = e->ev->value;
    const bool finite = e->ev->kind != NPUPROF_KIND_COUNTER_REAL || (bits >> 52 & 0x7FF) != 0x7FF;
    if (finite) s->output->counter(s, e, e->ev->kind, bits);
    else s->skipped_values++;
}

/* The state of a memory pool; and what changed it as an instant beside it, because a counter takes nothing
   but values. Why a category: without it, Chrome's viewer takes a counter and a pool of the same name for
   one. */
NPUPROF_OWN_ static void npuprof_scene_memory_(npuprof_scene_ *s, npuprof_scene_event_ *e)
{
    const npuprof_event_ *const ev = e->ev;
    size_t length, pool_length;
    e->own_category = "memory";
    s->output->pool(s, e);
    const char *const tag = npuprof_image_text_(s->image, ev->name, &length);
    const char *const pool = npuprof_image_text_(s->image, ev->category, &pool_length);
    if (!length && !ev->change) return;
    if (!length) e->own_name = "memory";
    e->derived = true;
    npuprof_fact_add_text_(e, NPUPROF_FACT_POOL_, pool, pool_length);
    npuprof_fact_add_text_(e, NPUPROF_FACT_TAG_, tag, length);
    (void)npuprof_fact_add_(e, NPUPROF_FACT_CHANGE_, NPUPROF_ARG_INT, (uint64_t)ev->change);
    s->output->instant(s, e);
}

/* What is shown of an event on its thread's track, by kind: a new kind needs its line here. NULL: nothing;
   scene_placed.h and scene_flows.h have those. */
static void (*const npuprof_scene_of_kind_[])(npuprof_scene_ *s, npuprof_scene_event_ *e) = {
    NULL,                                  /* none */
    npuprof_scene_thread_span_, npuprof_scene_thread_span_, npuprof_scene_thread_span_,
    npuprof_scene_thread_span_, npuprof_scene_thread_span_,
    npuprof_scene_instant_,
    npuprof_scene_counter_, npuprof_scene_counter_, npuprof_scene_counter_,
    npuprof_scene_memory_,
    NULL, NULL,                            /* flows */
    NULL, NULL,                            /* async */
    NULL, NULL                             /* finished, device */
};
typedef char npuprof_scene_knows_each_kind_[
    sizeof npuprof_scene_of_kind_ / sizeof *npuprof_scene_of_kind_ == NPUPROF_KIND_COUNT ? 1 : -1];

NPUPROF_OWN_ static void npuprof_scene_begin_thread_(npuprof_scene_ *s, const npuprof_slot_head_ *slot)
{
    npuprof_scene_thread_track_ *const t = &s->thread;
    size_t length;
    t->tid = NPUPROF_LOAD_(&slot->tid);
    t->native_id = NPUPROF_LOAD_(&slot->os_tid);
    t->owners = NPUPROF_LOAD_(&slot->owners);
    t->name = NPUPROF_LOAD_(&slot->name);
    (void)npuprof_image_text_(s->image, t->name, &length);
    if (!length) t->name = 0;
    if (t->native_id == s->image->h->pid) npuprof_text_copy_(t->own, sizeof t->own, "main");
    else snprintf(t->own, sizeof t->own, "thread %u", (unsigned)t->tid);
    npuprof_lane_clear_all_(s->lanes);
    npuprof_lane_add_(s->lanes, npuprof_lane_no_group_);
    s->lanes->track[0] = s->output->thread(s, t);
    s->lanes->track[NPUPROF_LANES_] = 0;
}

/* All threads. */
NPUPROF_OWN_ static void npuprof_scene_threads_(npuprof_scene_ *s)
{
    npuprof_event_ ev;
    npuprof_scene_event_ e;
    for (uint32_t tid = 0; (tid = npuprof_image_next_tid_(s->image, tid)) != 0;) {
        const npuprof_slot_head_ *const slot = npuprof_image_thread_slot_(s->image, tid);
        if (!slot) continue;
        npuprof_scene_begin_thread_(s, slot);
        npuprof_walk_begin_(s->walk, s->image, tid);
        for (;;) {
            if (s->walk->sources == 1) s->output->plain(s);
            if (!npuprof_walk_next_(s->walk, &ev)) break;
            if (!npuprof_scene_of_kind_[ev.kind]) continue;
            npuprof_scene_show_(s, &ev, &e);
            /* Why one less: in the very tick where a span ends, an event is still inside it. */
            if (ev.kind > NPUPROF_KIND_OPERATOR) npuprof_scene_close_(s, 0, e.start - 1);
            npuprof_scene_of_kind_[ev.kind](s, &e);
        }
        npuprof_scene_close_all_(s, INT64_MAX - 1);
    }
}
/* ==== src/read/scene_placed.h =================================================== >>read/scene_placed ==== */

/* The tracks that are no threads: device spans, a track for each PE; finished spans; async spans, a track for
   each name. They come sorted by track and start (placed.h). */

/* ---- Lanes and their names */

NPUPROF_OWN_ static npuprof_lane_group_ npuprof_scene_group_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    npuprof_lane_group_ group = npuprof_lane_no_group_;
    if (ev->kind != NPUPROF_KIND_DEVICE) return group;
    if (ev->flags & NPUPROF_STAMP_SAMPLED && npuprof_args_find_(im, ev, "stream", &group.stream))
        group.sort = NPUPROF_GROUP_STREAM_;
    else
        group.sort =
            npuprof_args_is_execution_(im, ev) ? NPUPROF_GROUP_EXECUTIONS_ : NPUPROF_GROUP_INSTRUCTIONS_;
    return group;
}

/* The name of a PE's track, a string's id; 0: it has none. */
NPUPROF_OWN_ static uint32_t npuprof_scene_pe_name_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    const npuprof_entry_ *e;
    uint32_t id = 0;
    while ((e = npuprof_image_next_entry_(im, NPUPROF_ENTRY_LANE, sizeof(npuprof_pair_entry_), &id)) !=
           NULL) {
        const npuprof_pair_entry_ *const lane = (const npuprof_pair_entry_ *)(const void *)e;
        if (NPUPROF_LOAD_ACQUIRE_(&e->a) == ev->device && lane->b[0] == ev->pe) return lane->b[1];
    }
    return 0;
}

/* What a lane of a device has behind the device's name: " PE 1 instructions". The PE's number is there if
   `numbers` says so, or if it is not the first. Returns the length. */
NPUPROF_OWN_ static size_t npuprof_scene_lane_text_(const npuprof_image_ *im, const npuprof_event_ *ev, bool numbers,
                                       char text[96])
{
    const npuprof_lane_group_ group = npuprof_scene_group_(im, ev);
    const uint32_t named = npuprof_scene_pe_name_(im, ev);
    const unsigned long long stream = group.stream;
    size_t n = 0, length;
    text[0] = 0;
    if (named) {
        const char *const name = npuprof_image_text_(im, named, &length);
        n = (size_t)snprintf(text, 96, " %.*s", (int)(length < 47 ? length : 47), name);
    } else if (numbers || ev->pe) {
        n = (size_t)snprintf(text, 96, " PE %u", (unsigned)ev->pe);
    }
    if (group.sort == NPUPROF_GROUP_INSTRUCTIONS_) n = npuprof_scene_append_(text, n, 96, " instructions");
    if (group.sort != NPUPROF_GROUP_STREAM_) return n;
    /* A stream that is no small number is written as the pointer it may be. */
    if (stream >> 32) return n + (size_t)snprintf(text + n, 96 - n, " stream 0x%016llx", stream);
    return n + (size_t)snprintf(text + n, 96 - n, " stream %llu", stream);
}

/* ---- Events */

/* The lane of an event, with a track. point: it is no span. */
NPUPROF_OWN_ static uint32_t npuprof_scene_placed_lane_(npuprof_scene_ *s, const npuprof_scene_event_ *e, bool point)
{
    npuprof_lane_set_ *const l = s->lanes;
    const npuprof_lane_group_ group = npuprof_scene_group_(s->image, e->ev);
    npuprof_scene_close_all_(s, e->start - point);     /* in the tick of its end, a point is in a span */
    const uint32_t lane =
        point ? npuprof_lane_point_(l, group) : npuprof_lane_find_(l, group, e->start, e->end);
    if (!l->track[lane] || lane == NPUPROF_LANES_) l->track[lane] = s->output->lane(s, e->ev, lane);
    return lane;
}

/* Is it the value of a device's counter? */
NPUPROF_OWN_ static bool npuprof_scene_is_value_(const npuprof_event_ *ev)
{
    return ev->kind == NPUPROF_KIND_DEVICE && (ev->flags & NPUPROF_STAMP_VALUE) == NPUPROF_STAMP_VALUE;
}

NPUPROF_OWN_ static void npuprof_scene_placed_event_(npuprof_scene_ *s, npuprof_image_anchor_caches_ *caches,
                                        const npuprof_placed_ *p, npuprof_scene_event_ *e)
{
    const npuprof_event_ *const ev = e->ev;
    const bool is_device = ev->kind == NPUPROF_KIND_DEVICE;
    const bool is_point = is_device && (ev->flags & NPUPROF_STAMP_INSTANT);
    const uint32_t lane = npuprof_scene_placed_lane_(s, e, is_point);
    e->track = s->lanes->track[lane];
    if (npuprof_scene_is_value_(ev)) {
        s->output->counter(s, e, NPUPROF_KIND_COUNTER_UINT, ev->end);
        return;
    }
    if (is_device) npuprof_fact_of_device_(e, s->image, caches);
    else npuprof_fact_of_finished_(e, p);
    e->submitted = is_device && npuprof_fact_draws_arrow_(s->image, ev, p->start_ns);
    if (is_point) s->output->instant(s, e);
    else npuprof_scene_span_(s, e, lane);
}

/* All of them. */
NPUPROF_OWN_ static void npuprof_scene_placed_(npuprof_scene_ *s)
{
    const npuprof_image_ *const im = s->image;
    const uint32_t kinds =
        1u << NPUPROF_KIND_DEVICE | 1u << NPUPROF_KIND_FINISHED | 1u << NPUPROF_KIND_ASYNC_BEGIN;
    npuprof_placed_walk_ spans = npuprof_placed_begin_(im, kinds);
    npuprof_image_anchor_caches_ *const caches = npuprof_image_clear_caches_();
    npuprof_event_ ev;
    npuprof_scene_event_ e;
    s->placed = 0;
    npuprof_lane_clear_all_(s->lanes);
    for (const npuprof_placed_ *p; (p = npuprof_placed_next_(&spans, &ev)) != NULL;) {
        npuprof_scene_show_(s, &ev, &e);
        e.start = p->start_ns - im->origin_ns;
        e.end = p->end_ns - im->origin_ns;
        if (!s->output->counters_in_lanes && npuprof_scene_is_value_(&ev)) {
            s->output->counter(s, &e, NPUPROF_KIND_COUNTER_UINT, ev.end);
            continue;
        }
        if (p->track != s->placed) {
            npuprof_scene_close_all_(s, INT64_MAX - 1);
            npuprof_lane_clear_all_(s->lanes);
            s->lanes->track[NPUPROF_LANES_] = 0;
            /* The first lane is that of executions, even if an instruction comes first. */
            if (npuprof_scene_group_(im, &ev).sort == NPUPROF_GROUP_INSTRUCTIONS_)
                npuprof_lane_add_(s->lanes, npuprof_lane_no_group_);
            s->placed = p->track;
        }
        npuprof_scene_placed_event_(s, caches, p, &e);
    }
    npuprof_scene_close_all_(s, INT64_MAX - 1);
    if (!s->error) s->error = spans.error;
}

/* ---- Pauses */

/* Two instants of the whole process for each pause, on a track of the output's. */
NPUPROF_OWN_ static void npuprof_scene_pauses_(npuprof_scene_ *s, uint64_t track)
{
    const npuprof_image_ *const im = s->image;
    const npuprof_entry_ *entry;
    npuprof_event_ none;
    npuprof_scene_event_ e;
    uint32_t id = 0;
    memset(&none, 0, sizeof none);
    memset(&e, 0, sizeof e);
    e.ev = &none;
    e.track = track;
    e.of_process = true;
    while ((entry = npuprof_image_next_entry_(im, NPUPROF_ENTRY_PAUSE, sizeof(npuprof_pause_entry_), &id)) !=
           NULL) {
        const npuprof_pause_entry_ *const pause = (const npuprof_pause_entry_ *)(const void *)entry;
        const uint64_t at[2] = { NPUPROF_LOAD_(&pause->from), NPUPROF_LOAD_(&pause->to) };
        for (int i = 0; i < 2; i++) {
            if (!at[i] || at[i] < im->clear_ticks) continue;
            e.own_name = i ? "npuprof resumed" : "npuprof paused";
            e.start = e.end = npuprof_image_trace_ns_(im, at[i]);
            s->output->instant(s, &e);
        }
    }
}
/* ==== src/read/scene_flows.h ===================================================== >>read/scene_flows ==== */

/* Arrows of PROF_FLOW_OUT and PROF_FLOW_IN: each IN inside a span gets an arrow from the newest OUT before it
   that has its id and is inside a span. Each arrow has an id of its own, so users may use theirs again. All
   flows are collected and sorted by id and time; then each IN comes behind its OUT. */

/* One that is inside a span. ns: where its arrow begins or ends. order: the same, but never before that of
   the flow before it on its thread. Why: a thread's flows keep their order even if its clock steps back. */
typedef struct npuprof_flow_ {
    uint64_t id, locator;
    int64_t ns, order;
    uint32_t tid;
    bool in;
} npuprof_flow_;

/* By id and time; OUTs first, then by thread. */
NPUPROF_HOT_ static bool npuprof_flow_before_(const void *one, const void *other)
{
    const npuprof_flow_ *const a = (const npuprof_flow_ *)one, *const b = (const npuprof_flow_ *)other;
    if (a->id != b->id) return a->id < b->id;
    if (a->order != b->order) return a->order < b->order;
    if (a->in != b->in) return b->in;
    if (a->tid != b->tid) return a->tid < b->tid;
    return a->locator < b->locator;
}

/* Is the flow that was just walked to inside a span? *ns: where its arrow ends.
   Why before the end of the span: viewers bind an arrow to the slice around its stamp, and the end is
   outside. */
NPUPROF_OWN_ static bool npuprof_flow_arrow_ns_(const npuprof_scene_ *s, const npuprof_event_ *ev, int64_t *ns)
{
    const npuprof_image_ *const im = s->image;
    if (!s->walk->has_parent) return false;
    const int64_t parent_end = npuprof_image_ns_(im, s->walk->parent_end);
    *ns = npuprof_image_ns_(im, ev->start);
    if (*ns >= parent_end) *ns = parent_end - 1;
    return *ns >= npuprof_image_ns_(im, s->walk->parent_start);
}

/* Adds the flows of a thread. Returns 0 or an errno value. */
NPUPROF_OWN_ static int npuprof_flow_gather_thread_(npuprof_scene_ *s, uint32_t tid, npuprof_list_ *flows)
{
    npuprof_event_ ev;
    npuprof_flow_ f;
    f.order = INT64_MIN;
    f.tid = tid;
    npuprof_walk_begin_(s->walk, s->image, tid);
    while (npuprof_walk_next_(s->walk, &ev)) {
        f.in = ev.kind == NPUPROF_KIND_FLOW_IN;
        if ((!f.in && ev.kind != NPUPROF_KIND_FLOW_OUT) || !npuprof_flow_arrow_ns_(s, &ev, &f.ns)) continue;
        if (f.ns > f.order) f.order = f.ns;
        f.id = ev.value;
        f.locator = ev.locator;
        if (!npuprof_list_add_(flows, &f)) return ENOMEM;
    }
    return 0;
}

/* All of them: tells the output their arrows. */
NPUPROF_OWN_ static void npuprof_scene_flows_(npuprof_scene_ *s)
{
    const npuprof_image_ *const im = s->image;
    npuprof_list_ flows = npuprof_list_of_(sizeof(npuprof_flow_));
    const npuprof_flow_ *out = NULL;       /* the newest one */
    int error = 0;
    if (!(im->kinds >> NPUPROF_KIND_FLOW_IN & 1)) return;
    for (uint32_t tid = 0; !error && (tid = npuprof_image_next_tid_(im, tid)) != 0;)
        error = npuprof_flow_gather_thread_(s, tid, &flows);
    if (!error && !npuprof_list_sort_(&flows, sizeof(npuprof_flow_), npuprof_flow_before_)) error = ENOMEM;
    const npuprof_flow_ *const list = (const npuprof_flow_ *)(const void *)flows.at;
    for (const npuprof_flow_ *f = list; !error && f < list + flows.count; f++) {
        if (!f->in) out = f;
        else if (out && out->id == f->id && out->ns <= f->ns)
            s->output->arrow(s, out->tid, out->ns - im->origin_ns, f->tid, f->ns - im->origin_ns);
    }
    npuprof_list_free_(&flows);
    if (!s->error) s->error = error;
}
#endif /* !NPUPROF_NO_JSON */
/* ==== src/read/memory.h =============================================================== >>read/memory ==== */

/* Memory pools: what the CSV and the report say about each of them. A pool goes by its name. */

typedef struct npuprof_pool_report_ {
    uint32_t device, used_tag, allocated_tag;   /* names; the tags are those of the two peaks */
    uint64_t allocated;                    /* after the last record */
    uint64_t used_ticks;                   /* of the record with the most bytes used */
    npuprof_memory_peaks peaks;
} npuprof_pool_report_;

/* All pools, in the order of their first records. */
typedef struct npuprof_pool_reports_ {
    npuprof_pool_report_ *list, *end;
    uint64_t records_left_out;             /* of pools that found no room in the list */
    uint64_t threads_left_out;             /* that found no room in the merge, with all their records */
} npuprof_pool_reports_;

/* The allocated bytes after a record.
   Why not always what it says: an alloc or a free takes nothing from the pool, but two threads may have
   stamped their records in another order than they changed the pool. */
NPUPROF_OWN_ static uint64_t npuprof_pool_allocated_(const npuprof_event_ *ev, uint64_t before)
{
    return ev->change && ev->second < before ? before : ev->second;
}

NPUPROF_OWN_ static void npuprof_pool_add_(npuprof_pool_report_ *p, const npuprof_event_ *ev)
{
    npuprof_memory_peaks *const peaks = &p->peaks;
    const uint64_t allocated = npuprof_pool_allocated_(ev, p->allocated);
    peaks->drops += peaks->records && allocated < p->allocated;
    p->allocated = allocated;
    if (!peaks->records || ev->value > peaks->used_bytes) {
        peaks->used_bytes = ev->value;
        peaks->held_bytes = allocated;
        peaks->used_at = peaks->records;
        p->used_ticks = ev->host_ticks;
        p->used_tag = ev->name;
    }
    if (!peaks->records || allocated > peaks->allocated_bytes) {
        peaks->allocated_bytes = allocated;
        peaks->allocated_at = peaks->records;
        p->allocated_tag = ev->name;
    }
    peaks->records++;
}

/* Goes through a merge that has just begun. `list`: memory for the pools. */
NPUPROF_OWN_ static npuprof_pool_reports_ npuprof_pool_collect_(npuprof_merge_ *merge, npuprof_pool_report_ *list,
                                                   size_t capacity)
{
    npuprof_pool_reports_ pools = { list, list, 0, 0 };
    npuprof_event_ ev;
    while (npuprof_merge_next_(merge, &ev)) {
        npuprof_pool_report_ *p = list;
        while (p < pools.end && !npuprof_image_same_text_(merge->image, p->device, ev.category)) p++;
        if (p == list + capacity) {
            pools.records_left_out++;
            continue;
        }
        if (p == pools.end) {
            memset(p, 0, sizeof *p);
            p->device = ev.category;
            pools.end++;
        }
        npuprof_pool_add_(p, &ev);
    }
    pools.threads_left_out = merge->left_out;
    return pools;
}
#endif /* !NPUPROF_RECORD_ONLY */
/* ==== src/write/text.h ================================================================= >>write/text ==== */
#include <stdlib.h>

/* A buffered writer of text over a sink, for JSON and CSV: bytes, numbers, strings with their quotes, values
   of arguments. After an error of the sink it swallows what comes; the error stays. The buffer is the
   caller's. */
typedef struct npuprof_out_ {
    npuprof_sink sink;
    char *bytes;
    size_t capacity, used;
    uint64_t flushes;
    int error;
    bool fresh;                            /* of JSON: nothing is behind the bracket yet (emit.h) */
} npuprof_out_;

NPUPROF_OWN_ static void npuprof_out_flush_(npuprof_out_ *o)
{
    if (o->used && !o->error) o->error = o->sink.write(o->sink.user, o->bytes, o->used);
    o->used = 0;
    o->flushes++;
}

/* The writer itself failed, with an errno value; 0: it did not. The first error stays. */
NPUPROF_OWN_ static void npuprof_out_fail_(npuprof_out_ *o, int error)
{
    if (!o->error) o->error = error;
}

/* Makes room, at least 4096 bytes of a buffer that has them: whole pages go, what is left stays.
   Why whole pages: a file system writes a page of which it gets a piece more slowly, and twice. */
NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_out_make_room_(npuprof_out_ *o)
{
    const size_t left = o->used % 4096, pages = o->used - left;
    o->used = pages ? pages : left;
    npuprof_out_flush_(o);
    if (!pages) return;
    memcpy(o->bytes, o->bytes + pages, left);
    o->used = left;
}

NPUPROF_OWN_ static NPUPROF_NOINLINE_ void npuprof_out_put_slow_(npuprof_out_ *o, const char *bytes, size_t count)
{
    while (count) {
        if (o->used == o->capacity) npuprof_out_make_room_(o);
        const size_t n = count < o->capacity - o->used ? count : o->capacity - o->used;
        memcpy(o->bytes + o->used, bytes, n);
        o->used += n;
        bytes += n;
        count -= n;
    }
}

NPUPROF_OWN_ static inline void npuprof_out_put_(npuprof_out_ *o, const char *bytes, size_t count)
{
    if (NPUPROF_UNLIKELY_(count > o->capacity - o->used)) {
        npuprof_out_put_slow_(o, bytes, count);
        return;
    }
    memcpy(o->bytes + o->used, bytes, count);
    o->used += count;
}

NPUPROF_OWN_ static inline void npuprof_out_puts_(npuprof_out_ *o, const char *text)
{
    npuprof_out_put_(o, text, strlen(text));
}

/* Makes so many bytes free in the buffer, at most its capacity, and returns where they are. Who fills them
   adds to o->used. */
NPUPROF_HOT_ static inline char *npuprof_out_reserve_(npuprof_out_ *o, size_t count)
{
    if (NPUPROF_UNLIKELY_(count > o->capacity - o->used)) npuprof_out_make_room_(o);
    return o->bytes + o->used;
}

/* ---- Numbers */

NPUPROF_OWN_ static void npuprof_out_uint_(npuprof_out_ *o, uint64_t v)
{
    char *const p = npuprof_out_reserve_(o, NPUPROF_DIGITS_MAX_);
    o->used += (size_t)(npuprof_digits_uint_(p, v) - p);
}

NPUPROF_OWN_ static void npuprof_out_int_(npuprof_out_ *o, int64_t v)
{
    char *const p = npuprof_out_reserve_(o, NPUPROF_DIGITS_MAX_);
    o->used += (size_t)(npuprof_digits_int_(p, v) - p);
}

NPUPROF_OWN_ static inline void npuprof_out_milli_(npuprof_out_ *o, int64_t v)
{
    char *const p = npuprof_out_reserve_(o, NPUPROF_DIGITS_MAX_);
    o->used += (size_t)(npuprof_digits_milli_(p, v) - p);
}

/* A double with all its digits, whatever the locale. False: it is not finite, and nothing was written. */
NPUPROF_OWN_ static inline bool npuprof_out_real_(npuprof_out_ *o, uint64_t bits)
{
    union { uint64_t u; double d; } v;
    v.u = bits;
    if ((bits >> 52 & 0x7FF) == 0x7FF) return false;
    char text[40];
    int n = 0;
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(text, sizeof text, "%.*g", digits, v.d);
        if (digits == 17 || strtod(text, NULL) == v.d) break;
    }
    /* The locale's decimal point may be any bytes. */
    for (int i = 0, point = 0; i < n; i++) {
        const bool plain =
            (text[i] >= '0' && text[i] <= '9') || text[i] == '-' || text[i] == '+' || text[i] == 'e';
        if (plain) npuprof_out_put_(o, text + i, 1);
        else if (!point++) npuprof_out_put_(o, ".", 1);
    }
    return true;
}

/* A counter's value. Why a real above int64: viewers garble such integers. */
NPUPROF_OWN_ static inline void npuprof_out_big_(npuprof_out_ *o, uint64_t v)
{
    if (v >> 63) (void)npuprof_out_real_(o, npuprof_real_bits_((double)v));
    else npuprof_out_uint_(o, v);
}

/* ---- Strings */

/* The inside of a quoted string: raw UTF-8, bad bytes as U+FFFD. JSON escapes; CSV (json false) doubles its
   quotes. Why DEL, too: Perfetto refuses a file that has it raw in the metadata. */
NPUPROF_OWN_ static void npuprof_out_escaped_(npuprof_out_ *o, const void *text, size_t length, bool json)
{
    const uint8_t *p = (const uint8_t *)text, *const end = p + length, *from = p;
    while (p < end) {
        while (p < end && *p >= 0x20 && *p < 0x7F && *p != '"' && *p != '\\') p++;
        if (p == end) break;
        const size_t n = npuprof_utf8_length_(p, (size_t)(end - p));
        if (n > 1 || (n == 1 && *p != '"' && (!json || (*p != '\\' && *p >= 0x20 && *p != 0x7F)))) {
            p += n;
            continue;
        }
        npuprof_out_put_(o, (const char *)from, (size_t)(p - from));
        if (n == 0) {
            npuprof_out_puts_(o, "\xEF\xBF\xBD");
        } else if (!json) {
            npuprof_out_puts_(o, "\"\"");
        } else if (*p == '"' || *p == '\\') {
            const char escape[2] = { '\\', (char)*p };
            npuprof_out_put_(o, escape, 2);
        } else {
            const char escape[6] = {
                '\\', 'u', '0', '0', (char)('0' + (*p >> 4)), "0123456789abcdef"[*p & 15]
            };
            npuprof_out_put_(o, escape, 6);
        }
        from = ++p;
    }
    npuprof_out_put_(o, (const char *)from, (size_t)(p - from));
}

/* What a text in a CSV has before it if a spreadsheet would take it for a formula: a quote. A text that has
   quotes there already gets one more, so that the reader takes away what was put. */
NPUPROF_OWN_ static void npuprof_out_guard_(npuprof_out_ *o, const char *text, size_t length)
{
    size_t n = 0;
    while (n < length && text[n] == '\'') n++;
    if (n < length && memchr("=+-@\t\r", text[n], 6)) npuprof_out_put_(o, "'", 1);
}

NPUPROF_OWN_ static void npuprof_out_string_(npuprof_out_ *o, const void *text, size_t length, bool json)
{
    npuprof_out_put_(o, "\"", 1);
    if (!json) npuprof_out_guard_(o, (const char *)text, length);
    npuprof_out_escaped_(o, text, length, json);
    npuprof_out_put_(o, "\"", 1);
}

/* A string of the image's table. */
NPUPROF_OWN_ static void npuprof_out_text_(npuprof_out_ *o, const npuprof_image_ *im, uint32_t id, bool json)
{
    size_t length;
    const char *text = npuprof_image_text_(im, id, &length);
    npuprof_out_string_(o, text, length, json);
}

NPUPROF_OWN_ static inline void npuprof_out_quoted_(npuprof_out_ *o, const char *text)
{
    npuprof_out_string_(o, text, strlen(text), true);
}

/* A string argument; one that was cut when it was recorded ends with an ellipsis. */
NPUPROF_OWN_ static inline void npuprof_out_string_value_(npuprof_out_ *o, const npuprof_value_ *v)
{
    char text[NPUPROF_ARG_STRING_LIMIT_ + 3];
    if (v->type != NPUPROF_ARG_STR_CUT_ || v->length > NPUPROF_ARG_STRING_LIMIT_) {
        npuprof_out_string_(o, v->text, v->length, true);
        return;
    }
    memcpy(text, v->text, v->length);
    memcpy(text + v->length, "\xE2\x80\xA6", 3);
    npuprof_out_string_(o, text, v->length + 3, true);
}

/* The value of an argument, as JSON. */
NPUPROF_OWN_ static inline void npuprof_out_value_(npuprof_out_ *o, const npuprof_value_ *v)
{
    /* Why: JSON has no such numbers, and viewers garble integers above int64. As strings they stay what they
       are. */
    const char *const not_finite = v->bits << 12   ? "\"NaN\""
                                   : v->bits >> 63 ? "\"-Infinity\""
                                                   : "\"Infinity\"";
    const char *const quote = v->bits >> 63 ? "\"" : "";
    switch (v->type) {
    case NPUPROF_ARG_INT: npuprof_out_int_(o, (int64_t)v->bits); break;
    case NPUPROF_ARG_UINT:
        npuprof_out_puts_(o, quote);
        npuprof_out_uint_(o, v->bits);
        npuprof_out_puts_(o, quote);
        break;
    case NPUPROF_ARG_BOOL: npuprof_out_puts_(o, v->bits ? "true" : "false"); break;
    case NPUPROF_ARG_REAL:
        if (!npuprof_out_real_(o, v->bits)) npuprof_out_puts_(o, not_finite);
        break;
    case NPUPROF_ARG_STR:
    case NPUPROF_ARG_STR_CUT_: npuprof_out_string_value_(o, v); break;
    default: npuprof_out_puts_(o, "null"); break;
    }
}
/* ==== src/write/code.h ================================================================= >>write/code ==== */
#include <string.h>

/* The code of a chunk's units in a block (src/format/arena.h, CODE): a few bytes for what follows from the
   unit before, and no way to lose one: what fits no shorter form is written as it is.
   Data: npuprof_block_coder_, of the one thread that writes. The units may be those of an open chunk: each
   word is loaded once.
   This part knows words, not records: it need not know which call site is a span and which a counter. */

typedef struct npuprof_block_coder_ {
    uint64_t base, start, end;             /* of the chunk; the references of CODE */
    uint64_t payload[NPUPROF_CODE_CONTROLS_], w1[NPUPROF_CODE_CONTROLS_ + 1];
    uint32_t site;
    uint32_t string;                       /* units that are bytes of a string, from here on */
} npuprof_block_coder_;

/* Begins a block. What is left of a string stays. */
NPUPROF_OWN_ static void npuprof_block_coder_begin_(npuprof_block_coder_ *c, uint64_t base)
{
    const uint32_t string = c->string;
    memset(c, 0, sizeof *c);
    c->base = base;
    c->start = c->end = base & NPUPROF_CODE_START_MASK_;
    c->string = string;
}

/* How many bytes hold a number; 0: none. */
NPUPROF_HOT_ static inline unsigned npuprof_block_coder_bytes_(uint64_t v)
{
    return v ? (NPUPROF_BITS_(v) + 7) / 8 : 0;
}

/* Puts the low `count` bytes of a number, lowest first. Writes 8 in any case. */
NPUPROF_HOT_ static inline uint8_t *npuprof_block_coder_put_(uint8_t *to, uint64_t v, unsigned count)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    memcpy(to, &v, 8);
    return to + count;
}

/* The shorter one of v and its difference to `before`, as a number without sign. *is_difference: which. */
NPUPROF_HOT_ static inline uint64_t npuprof_block_coder_choose_(uint64_t v, uint64_t before,
                                                                 bool *is_difference)
{
    const uint64_t difference = v - before;
    const uint64_t a = v << 1 ^ (0 - (v >> 63)), b = difference << 1 ^ (0 - (difference >> 63));
    *is_difference = b < a;
    return b < a ? b : a;
}

/* One of the long forms: code, lengths, site if it is another one, two numbers. */
NPUPROF_HOT_ static NPUPROF_NOINLINE_ uint8_t *
npuprof_block_coder_put_long_(uint8_t *to, unsigned code, const uint32_t *site, uint64_t first,
                              uint64_t second)
{
    const unsigned a = npuprof_block_coder_bytes_(first), b = npuprof_block_coder_bytes_(second);
    *to++ = (uint8_t)(code << 3);
    *to++ = (uint8_t)(a | b << 3 | (site ? 0x80u : 0));
    if (site) to = npuprof_block_coder_put_(to, *site, 3);
    to = npuprof_block_coder_put_(to, first, a);
    return npuprof_block_coder_put_(to, second, b);
}

/* A unit with a call site that is no plain span with a short gap before it. */
NPUPROF_HOT_ static uint8_t *npuprof_block_coder_put_site_(npuprof_block_coder_ *c, uint64_t w0, uint64_t w1,
                                                          uint8_t *to)
{
    const uint32_t site = (uint32_t)w0 & NPUPROF_ID_MASK_, *const other = site == c->site ? NULL : &site;
    const uint64_t start = w0 >> NPUPROF_ID_BITS_, mask = NPUPROF_CODE_START_MASK_;
    const uint64_t length = w1 - (c->base + ((start - c->base) & mask));
    const bool is_open = w1 == NPUPROF_END_OPEN_;
    bool is_difference;
    c->site = site;
    if (start && (is_open || length >> 48 == 0)) {
        const unsigned sites = !other ? 0 : 1u + (site > 0xFF) + (site > 0xFFFF);
        const unsigned bytes = is_open ? 0 : npuprof_block_coder_bytes_(length);
        *to++ = (uint8_t)(7u | (is_open ? 7u : bytes) << 3 | sites << 6);
        to = npuprof_block_coder_put_(to, site, sites);
        to = npuprof_block_coder_put_(to, (start - c->start) & mask, 6);
        to = npuprof_block_coder_put_(to, length, bytes);
        if (!is_open) c->end = w1 & mask;
        c->start = start;
        return to;
    }
    const uint64_t value = npuprof_block_coder_choose_(w1, c->w1[NPUPROF_CODE_CONTROLS_], &is_difference);
    c->w1[NPUPROF_CODE_CONTROLS_] = w1;
    if (!start) {                          /* the first unit of a span that was moved */
        const uint64_t as_is = w1 << 1 ^ (0 - (w1 >> 63));
        return npuprof_block_coder_put_long_(to, NPUPROF_CODE_MOVED_, other, 0, as_is);
    }
    const uint64_t gap = (start - c->start) & mask;
    c->start = start;
    return npuprof_block_coder_put_long_(to, NPUPROF_CODE_EVENT_ + is_difference, other, gap, value);
}

/* A unit that is not plain. NULL: it ends the chunk. */
NPUPROF_HOT_ static NPUPROF_NOINLINE_ uint8_t *
npuprof_block_coder_put_other_(npuprof_block_coder_ *c, uint64_t w0, uint64_t w1, uint8_t *to)
{
    const uint32_t id = (uint32_t)w0 & NPUPROF_ID_MASK_, k = id - NPUPROF_CONTROL_;
    const uint64_t payload = w0 >> NPUPROF_ID_BITS_;
    bool is_difference;
    if (!c->string) {
        if (!w0) return NULL;
        if (id - 1 < NPUPROF_CONTROL_ - 1) return npuprof_block_coder_put_site_(c, w0, w1, to);
        if (id && k < NPUPROF_CODE_CONTROLS_) {
            const uint64_t value = npuprof_block_coder_choose_(w1, c->w1[k], &is_difference);
            const uint64_t change = payload ^ c->payload[k];
            if (id == NPUPROF_CONTROL_ARG_ && payload >> 32 > 8)
                c->string = (uint32_t)NPUPROF_UNITS_((payload >> 32) - 8);
            c->payload[k] = payload;
            c->w1[k] = w1;
            return npuprof_block_coder_put_long_(to, k << 1 | is_difference, NULL, change, value);
        }
    } else {
        c->string--;
    }
    *to++ = NPUPROF_CODE_RAW_ << 3;
    to = npuprof_block_coder_put_(to, w0, 8);
    return npuprof_block_coder_put_(to, w1, 8);
}

/* Codes units until the chunk ends. *to: where the code goes, and then its end; NPUPROF_CODE_MOST_ bytes for
   each unit, and 8. Returns the first unit that was not coded. */
NPUPROF_HOT_ static const npuprof_unit_ *
npuprof_block_coder_put_units_(npuprof_block_coder_ *c, const npuprof_unit_ *u, const npuprof_unit_ *end,
                               uint8_t **to)
{
    const uint64_t base = c->base, mask = NPUPROF_CODE_START_MASK_;
    uint8_t *p = *to;
    for (; u < end; u++) {
        const uint64_t w0 = NPUPROF_LOAD_(&u->w0), w1 = NPUPROF_LOAD_(&u->w1);
        const uint64_t start = w0 >> NPUPROF_ID_BITS_, length = w1 - (base + ((start - base) & mask));
        const uint64_t after_start = (start - c->start) & mask, after_end = (start - c->end) & mask;
        const bool by_end = after_end < after_start;
        const uint64_t gap = by_end ? after_end : after_start;
        const uint32_t site = (uint32_t)w0 & NPUPROF_ID_MASK_;
        if (NPUPROF_UNLIKELY_(site - 1 >= NPUPROF_CONTROL_ - 1 || gap >> 24 || length >> 48 || !start ||
                              c->string)) {
            uint8_t *const behind = npuprof_block_coder_put_other_(c, w0, w1, p);
            if (!behind) break;
            p = behind;
            continue;
        }
        const unsigned gaps = 1u + (gap > 0xFF) + (gap > 0xFFFF);
        const unsigned lengths = npuprof_block_coder_bytes_(length);
        const unsigned sites = site == c->site ? 0 : 1u + (site > 0xFF) + (site > 0xFFFF);
        *p = (uint8_t)((gaps + (by_end ? 3 : 0)) | lengths << 3 | sites << 6);
        p = npuprof_block_coder_put_(p + 1, site, sites);
        p = npuprof_block_coder_put_(p, gap, gaps);
        p = npuprof_block_coder_put_(p, length, lengths);
        c->start = start;
        c->end = w1 & mask;
        c->site = site;
    }
    *to = p;
    return u;
}

/* The sum of a block; the length is a multiple of 8. */
NPUPROF_HOT_ static uint64_t npuprof_block_coder_sum_(const uint64_t *words, size_t bytes)
{
    uint64_t sum = 0;
    for (const uint64_t *const end = words + bytes / 8; words < end; words++) {
        sum = (sum ^ *words) * NPUPROF_BLOCK_FACTOR_;
        sum = sum << 32 | sum >> 32;
    }
    return sum;
}
/* ==== src/write/block.h =============================================================== >>write/block ==== */

/* Blocks: what the image in a file and a stream consist of behind their header (src/format/arena.h, BLOCK).
   A block is made of a chunk, or of a piece of a region: header, table or slots.
   Data: npuprof_block_writer_, and npuprof_block_now_, the block that is being made. Both are of the one
   thread that writes: it holds the scratch, or is the drainer, and neither runs while the other does. What is
   written may belong to threads that record meanwhile; the words of a region and of an open chunk are loaded
   one by one, so each is whole.
   This part does not know whether the blocks go to a file or a sink, nor which of them are needed. */

/* Why not all of a chunk: one of 64 KiB would need as much memory, which nothing else does. */
enum { NPUPROF_BLOCK_UNITS_ = 512, NPUPROF_BLOCK_PAYLOAD_ = NPUPROF_BLOCK_UNITS_ * NPUPROF_CODE_MOST_ };
NPUPROF_ASSERT_(block_max, (int)NPUPROF_BLOCK_PAYLOAD_ <= (int)NPUPROF_BLOCK_MAX_);

static struct {
    npuprof_stored_ head;
    uint64_t payload[NPUPROF_BLOCK_PAYLOAD_ / 8 + 2];      /* the coder writes 8 bytes more */
} npuprof_block_now_;

typedef struct npuprof_block_writer_ {
    npuprof_out_ out;
    uint32_t chunk_bytes;
    uint64_t put;                          /* bytes of all that was put */
} npuprof_block_writer_;

NPUPROF_OWN_ static void npuprof_block_begin_writer_(npuprof_block_writer_ *b, npuprof_sink sink, uint32_t chunk_bytes,
                                        void *buffer, size_t buffer_bytes)
{
    memset(b, 0, sizeof *b);
    b->out.sink = sink;
    b->out.bytes = (char *)buffer;
    b->out.capacity = buffer_bytes;
    b->chunk_bytes = chunk_bytes;
}

/* Puts bytes: what does not fit into the buffer goes to the sink at once, behind all that was put. */
NPUPROF_OWN_ static void npuprof_block_put_bytes_(npuprof_block_writer_ *b, const void *bytes, size_t count)
{
    npuprof_out_ *const o = &b->out;
    b->put += count;
    if (count > o->capacity - o->used) npuprof_out_flush_(o);
    if (count <= o->capacity) npuprof_out_put_(o, (const char *)bytes, count);
    else if (!o->error) o->error = o->sink.write(o->sink.user, bytes, count);
}

/* Puts the block that was made, with so many bytes of payload. */
NPUPROF_OWN_ static void npuprof_block_put_(npuprof_block_writer_ *b, size_t bytes)
{
    npuprof_stored_ *const head = &npuprof_block_now_.head;
    const size_t zeros = (8 - bytes % 8) % 8, count = sizeof *head + bytes + zeros;
    memset((uint8_t *)npuprof_block_now_.payload + bytes, 0, zeros);
    head->mark = NPUPROF_BLOCK_MARK_;
    head->bytes = (uint16_t)bytes;
    head->sum = 0;
    head->sum = npuprof_block_coder_sum_((const uint64_t *)(const void *)&npuprof_block_now_, count);
    npuprof_block_put_bytes_(b, &npuprof_block_now_, count);
}

/* ---- Regions: the bytes from `at` to `end`, put one after the other, as pieces of one block each */

typedef struct npuprof_block_region_ {
    npuprof_block_writer_ *blocks;
    uint16_t state;                        /* of the blocks: NPUPROF_BLOCK_*_PIECE */
    uint64_t at;
    uint32_t used;                         /* bytes of the piece that is being made */
} npuprof_block_region_;

NPUPROF_OWN_ static npuprof_block_region_ npuprof_block_begin_region_(npuprof_block_writer_ *b, uint16_t state,
                                                         uint64_t at)
{
    npuprof_block_region_ r;
    r.blocks = b;
    r.state = state;
    r.at = at;
    r.used = 0;
    return r;
}

/* Puts the piece that was made, if any. */
NPUPROF_OWN_ static void npuprof_block_end_region_(npuprof_block_region_ *r)
{
    npuprof_stored_ *const head = &npuprof_block_now_.head;
    if (!r->used) return;
    memset(head, 0, sizeof *head);
    head->state = r->state;
    head->base = r->at;
    head->first_position = r->used;
    npuprof_block_put_(r->blocks, r->used);
    r->at += r->used;
    r->used = 0;
}

/* Puts words that other threads may be changing. count: bytes, a multiple of 8. */
NPUPROF_OWN_ static void npuprof_block_put_region_(npuprof_block_region_ *r, const void *words, size_t count)
{
    /* Why no more than a chunk: a reader may give each block the space of one. */
    const uint32_t chunk_room = r->blocks->chunk_bytes - (uint32_t)sizeof(npuprof_chunk_);
    const uint32_t room = (uint32_t)npuprof_min_(chunk_room, NPUPROF_BLOCK_PAYLOAD_);
    for (const uint64_t *w = (const uint64_t *)words; count; w++, count -= 8) {
        npuprof_block_now_.payload[r->used / 8] = NPUPROF_LOAD_(w);
        r->used += 8;
        if (r->used + 8 > room) npuprof_block_end_region_(r);
    }
}

/* Puts an entry that a thread is adding: its length if that is known, else that of all that is behind it.
   A reader skips it. Returns its bytes. */
NPUPROF_OWN_ static uint32_t npuprof_block_put_unfinished_(npuprof_block_region_ *r, uint32_t units, uint32_t unit,
                                              uint32_t left)
{
    uint32_t words[4] = { units, 0, 0, 0 };
    const uint32_t bytes = units && (uint64_t)units * unit <= left ? units * unit : left;
    for (uint32_t put = 0; put < bytes; put += unit, words[0] = 0) npuprof_block_put_region_(r, words, unit);
    return bytes;
}

/* Puts the table from offset `from` on, or from its first entry. Returns the offset of the first entry that
   is not finished: the next call goes on there. */
NPUPROF_OWN_ static uint32_t npuprof_block_put_table_(npuprof_block_writer_ *b, const npuprof_image_ *im, uint32_t from)
{
    static const uint64_t no_entry[sizeof(npuprof_chunk_) / 8] = { 0 };
    const uint32_t unit = im->h->table_unit, end = im->table_used;
    uint32_t finished = end;
    if (from < im->h->table_first) from = im->h->table_first;
    npuprof_block_region_ r = npuprof_block_begin_region_(b, NPUPROF_BLOCK_TABLE_PIECE, from);
    for (uint32_t at = from; at < end;) {
        if (npuprof_table_past_head_(im->h, at) != at) {
            npuprof_block_put_region_(&r, no_entry, sizeof no_entry);
            at += (uint32_t)sizeof no_entry;
            continue;
        }
        const npuprof_entry_ *const e = npuprof_image_table_at_(im, at);
        const uint32_t type_units = NPUPROF_LOAD_ACQUIRE_(&e->type_units), units = type_units & 0xFFFFFFu;
        if (type_units >> 24 && units && (uint64_t)units * unit <= end - at) {
            npuprof_block_put_region_(&r, e, units * unit);
            at += units * unit;
            continue;
        }
        if (at < finished) finished = at;
        at += npuprof_block_put_unfinished_(&r, units, unit, end - at);
    }
    npuprof_block_end_region_(&r);
    return finished;
}

/* Puts the heads of all slots. Why also of those that no thread has: a thread may take one after they were
   counted, and the count must stay right. */
NPUPROF_OWN_ static void npuprof_block_put_slots_(npuprof_block_writer_ *b, const npuprof_image_ *im)
{
    const npuprof_slot_head_ *slot = NULL;
    npuprof_block_region_ r = npuprof_block_begin_region_(b, NPUPROF_BLOCK_SLOTS_PIECE, 0);
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL)
        npuprof_block_put_region_(&r, slot, sizeof *slot);
    npuprof_block_end_region_(&r);
}

/* ---- The header */

/* The header as it is now, as that of a stream. */
NPUPROF_OWN_ static void npuprof_block_copy_header_(const npuprof_image_ *im, npuprof_header_ *copy)
{
    const uint64_t *const from = (const uint64_t *)(const void *)im->h;
    uint64_t *const to = (uint64_t *)(void *)copy;
    for (size_t i = 0; i < sizeof *copy / 8; i++) to[i] = NPUPROF_LOAD_(from + i);
    copy->layout = NPUPROF_LAYOUT_CODED;
    copy->header_bytes = (sizeof *copy + 63) / 64 * 64;
    copy->threads = im->threads;
    copy->table_used = im->table_used;
    copy->closed = 0;
    if (im->clear_ticks > copy->clear_ticks) copy->clear_ticks = im->clear_ticks;
    if (!im->next)
        copy->lost[NPUPROF_LOST_OVERWRITTEN] += npuprof_chunk_sum_overwritten_(im->h, im->chunk_total);
    copy->overwritten_offset = 0;
}

/* The header that an image begins with. */
NPUPROF_OWN_ static void npuprof_block_put_header_(npuprof_block_writer_ *b, const npuprof_image_ *im)
{
    union { npuprof_header_ h; uint8_t bytes[(sizeof(npuprof_header_) + 63) / 64 * 64]; } head;
    memset(&head, 0, sizeof head);
    npuprof_block_copy_header_(im, &head.h);
    npuprof_block_put_bytes_(b, &head, sizeof head);
}

/* A newer header; `closing`: nothing comes behind it. */
NPUPROF_OWN_ static void npuprof_block_put_header_piece_(npuprof_block_writer_ *b, const npuprof_image_ *im, bool closing)
{
    npuprof_header_ h;
    npuprof_block_copy_header_(im, &h);
    h.closed = closing;
    npuprof_block_region_ r = npuprof_block_begin_region_(b, NPUPROF_BLOCK_HEADER_PIECE, 0);
    npuprof_block_put_region_(&r, &h, sizeof h);
    npuprof_block_end_region_(&r);
}

/* ---- Chunks */

/* How many units of an open chunk hold whole records: those before the first empty head, as heads are stored
   last. */
NPUPROF_OWN_ static uint32_t npuprof_block_whole_units_(const npuprof_image_ *im, const npuprof_chunk_ *chunk)
{
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    const uint64_t limit = npuprof_image_limits_().until, until = limit ? limit : UINT64_MAX;
    uint32_t n = 0;
    for (; n < im->units; n++) {
        const uint64_t w0 = npuprof_unit_load_w0_(units + n), strings = npuprof_chunk_string_units_(w0);
        const uint32_t id = (uint32_t)w0 & NPUPROF_ID_MASK_;
        if (!w0) break;
        if (n < chunk->moved_units) continue;
        if (id < NPUPROF_CONTROL_ && npuprof_chunk_start_ticks_(chunk, w0) > until) break;
        if (id == NPUPROF_CONTROL_MOVED_AWAY_ && npuprof_unit_load_w1_(units + n) > until) break;
        if (strings < im->units - n) n += (uint32_t)strings;
    }
    return n;
}

/* Puts the records of a chunk; of one that a thread is filling, the whole ones. */
NPUPROF_OWN_ static void npuprof_block_put_chunk_(npuprof_block_writer_ *b, const npuprof_image_ *im,
                                     const npuprof_chunk_ *chunk)
{
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1), *u = units;
    npuprof_stored_ *const head = &npuprof_block_now_.head;
    npuprof_block_coder_ coder;
    uint32_t taken;
    head->state = NPUPROF_LOAD_ACQUIRE_(&chunk->state);
    head->base = chunk->base;
    head->first_position = chunk->first_position;
    head->owner = chunk->owner;
    head->moved_units = chunk->moved_units;
    const npuprof_unit_ *end = u + im->units;
    if (head->state == NPUPROF_CHUNK_OPEN)
        end = u + npuprof_block_whole_units_(im, chunk);
    coder.string = 0;
    do {
        uint8_t *const code = (uint8_t *)npuprof_block_now_.payload, *code_end = code;
        const npuprof_unit_ *const from = u;
        const uint32_t left = (uint32_t)(end - u);
        taken = (uint32_t)npuprof_min_(left, NPUPROF_BLOCK_UNITS_);
        head->first_unit = (uint16_t)(u - units);
        npuprof_block_coder_begin_(&coder, head->base);
        u = npuprof_block_coder_put_units_(&coder, u, u + taken, &code_end);
        if (u > from || from == units) npuprof_block_put_(b, (size_t)(code_end - code));
        taken -= (uint32_t)(u - from);
    } while (u < end && !taken);
}
/* ==== src/write/image.h =============================================================== >>write/image ==== */

/* The image of an arena, in one go: header, table, slots, chunks, and a last header that says it is complete.
   Threads go on recording meanwhile. What they add to chunks behind the place that was read is not in the
   image; the table is sent up to the newest name that a copied record may use.
   Data: the caller holds the scratch, which is the buffer here. */

/* The newest stamp in an open chunk of the live arena: the start of a record, or the end of a span; now, if a
   span is open. */
NPUPROF_OWN_ static uint64_t npuprof_write_newest_in_(const npuprof_image_ *im, const npuprof_chunk_ *chunk)
{
    const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
    const uint32_t count = npuprof_block_whole_units_(im, chunk);
    uint64_t newest = 0;
    for (uint32_t n = 0; n < count; n++) {
        const uint64_t w0 = npuprof_unit_load_w0_(units + n), w1 = npuprof_unit_load_w1_(units + n);
        const uint32_t id = (uint32_t)w0 & NPUPROF_ID_MASK_;
        const bool moved = n < chunk->moved_units;
        if (id < NPUPROF_CONTROL_) {
            const npuprof_site_entry_ *const site = npuprof_table_site_at_(id);
            const bool span = (site->head.a & 0xFF) <= NPUPROF_KIND_OPERATOR;
            if (span && w1 == NPUPROF_END_OPEN_) return npuprof_clock_();
            if (span) newest = npuprof_max_(newest, w1 & ~NPUPROF_END_CUT_);
            if (!moved) newest = npuprof_max_(newest, npuprof_chunk_start_ticks_(chunk, w0));
        }
        n += moved ? 1 : (uint32_t)npuprof_chunk_string_units_(w0);
    }
    return newest;
}

/* The newest stamp of the live arena. Only a slot's last chunk can hold it: open spans move to it. */
NPUPROF_OWN_ static uint64_t npuprof_write_newest_live_(const npuprof_image_ *im)
{
    const npuprof_slot_head_ *slot = NULL;
    uint64_t newest = 0;
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL) {
        /* Why the first one, too: a slot whose chunks were all taken away still has its last number. */
        const uint32_t index = NPUPROF_LOAD_ACQUIRE_(&slot->last_chunk);
        if (index && NPUPROF_LOAD_ACQUIRE_(&slot->first_chunk))
            newest = npuprof_max_(newest, npuprof_write_newest_in_(im, npuprof_image_chunk_(im, index - 1)));
    }
    return newest;
}

/* Writes the image of what the reader is to read. Returns 0 or an errno value. */
NPUPROF_OWN_ static int npuprof_write_image_locked_(npuprof_sink sink)
{
    const npuprof_slot_head_ *slot = NULL;
    npuprof_block_writer_ b;
    npuprof_image_ im;
    uint64_t few[512];
    npuprof_image_open_unread_(&im);
    npuprof_image_take_closing_anchor_(&im, im.next ? 0 : npuprof_write_newest_live_(&im));
    /* Why no more than 64 KiB: what is written is then still in the cache when the system copies it. Why also
       without: an image is the last thing that can be had where memory is short. */
    void *const pages = npuprof_os_memory_(65536);
    npuprof_block_begin_writer_(&b, sink, im.h->chunk_bytes, pages ? pages : few, pages ? 65536 : sizeof few);
    npuprof_block_put_header_(&b, &im);
    const uint32_t table_sent = npuprof_block_put_table_(&b, &im, 0);
    npuprof_block_put_slots_(&b, &im);
    while ((slot = npuprof_image_next_slot_(&im, slot)) != NULL)
        for (uint32_t at = slot->first_chunk; at; at = npuprof_image_next_chunk_(&im, at - 1)) {
            NPUPROF_PREFETCH_((uintptr_t)npuprof_image_chunk_(&im, at - 1) +
                              8 * (uintptr_t)im.h->chunk_bytes);
            npuprof_block_put_chunk_(&b, &im, npuprof_image_chunk_(&im, at - 1));
        }
    if (!im.next) {
        /* Why again: a record that was just copied may use a name that is newer than the table above. */
        im.table_used = NPUPROF_LOAD_ACQUIRE_(&im.h->table_used);
        if (table_sent != im.table_used) (void)npuprof_block_put_table_(&b, &im, table_sent);
    }
    npuprof_block_put_header_piece_(&b, &im, true);
    npuprof_out_flush_(&b.out);
    if (pages) npuprof_os_unmap_(pages, 65536);
    return b.out.error;
}
/* ==== src/write/dump.h ================================================================= >>write/dump ==== */

/* The image into a sink of the program, and the counts of what was recorded. They lock the scratch, so one
   thread at a time writes or reads. */

NPUPROF_API_ npuprof_result npuprof_write_image(npuprof_sink sink)
{
    if (!sink.write) return NPUPROF_REFUSE_("npuprof_write_image: sink.write is NULL");
    if (!npuprof_scratch_lock_()) return npuprof_scratch_result_();
    const int error = npuprof_write_image_locked_(sink);
    npuprof_scratch_unlock_();
    return npuprof_os_result_(error);
}

/* Bytes that the records of a slot take. */
NPUPROF_OWN_ static uint64_t npuprof_write_count_bytes_(const npuprof_image_ *im, const npuprof_slot_head_ *slot)
{
    uint64_t units = 0;
    for (uint32_t at = slot->first_chunk; at; at = npuprof_image_next_chunk_(im, at - 1))
        units += npuprof_block_whole_units_(im, npuprof_image_chunk_(im, at - 1));
    return units * sizeof(npuprof_unit_);
}

NPUPROF_API_ npuprof_result npuprof_get_stats(npuprof_stats *out)
{
#define NPUPROF_WHOLE_(name, text, whole) whole,
    static const bool is_whole[] = { NPUPROF_LOSSES(NPUPROF_WHOLE_) };
#undef NPUPROF_WHOLE_
    const npuprof_slot_head_ *slot = NULL;
    if (!out) return NPUPROF_REFUSE_("npuprof_get_stats: out is NULL");
    memset(out, 0, sizeof *out);
    if (!npuprof_scratch_lock_()) return npuprof_scratch_result_();
    npuprof_image_ im;
    npuprof_image_open_unread_(&im);
    npuprof_image_sum_lost_(&im);
    (void)npuprof_survey_events_(&im);
    const npuprof_header_ *const h = im.h;
    const uint64_t chunk_bytes = (uint64_t)im.chunk_total * h->chunk_bytes;
    out->recorded = im.events + NPUPROF_LOAD_(&h->streamed);
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) {
        out->lost_by_cause[i] = im.lost[i];
        if (is_whole[i]) out->lost += im.lost[i];
    }
    out->bytes_used = im.table_used;
    while ((slot = npuprof_image_next_slot_(&im, slot)) != NULL)
        out->bytes_used += npuprof_write_count_bytes_(&im, slot);
    out->bytes_total = im.next ? h->table_bytes + chunk_bytes : h->arena_bytes;
    out->threads = im.threads;
    npuprof_scratch_unlock_();
#ifndef NPUPROF_RECORD_ONLY
    out->captures = NPUPROF_LOAD_(&npuprof_capture_now_.files);
    out->captures_failed = NPUPROF_LOAD_(&npuprof_capture_now_.failed);
    out->slow = NPUPROF_LOAD_(&npuprof_capture_now_.slow);
#endif
    return NPUPROF_OK;
}
/* ==== src/write/file.h ================================================================= >>write/file ==== */

/* One file of a finished trace, whatever its output: a writer, and where its bytes go.
   A file is written under a temporary name and renamed when it is complete, so a reader never sees half of
   one. The temporary name follows from the path: the next dump there finds and removes what a killed one
   left.
   Data: npuprof_file_own_path_. */

static uint32_t npuprof_file_own_path_;        /* hash of the path that was written last; atomic */

/* Writes the open image into a sink. Returns 0 or an errno value. */
typedef int (*npuprof_file_writer_)(npuprof_sink sink);

/* Runs a writer while no other thread writes or reports. Returns 0 or an errno value. */
NPUPROF_OWN_ static int npuprof_file_run_writer_(npuprof_file_writer_ writer, int *fd)
{
    npuprof_sink sink;
    sink.write = npuprof_os_write_;
    sink.user = fd;
    if (!npuprof_scratch_lock_()) return EBUSY;
    const int error = writer(sink);
    npuprof_scratch_unlock_();
    return error;
}

/* Writes a device or a pipe, which cannot be replaced. Returns 0 or an errno value. */
NPUPROF_OWN_ static int npuprof_file_write_in_place_(const char *path, npuprof_file_writer_ writer)
{
    int fd = -1, error = npuprof_os_open_(path, &fd);
    if (error) return error;
    error = npuprof_file_run_writer_(writer, &fd);
    const int close_error = npuprof_os_close_(fd);
    return error ? error : close_error;
}

/* Writes a new file and puts it in the place of the one at `path`. Returns 0 or an errno value. */
NPUPROF_OWN_ static int npuprof_file_replace_(const char *path, npuprof_file_writer_ writer)
{
    char temporary[1100];
    int fd = -1, error = EEXIST;
    const char *slash = strrchr(path, '/'), *const name = slash ? slash + 1 : path;
    const unsigned mark = (unsigned)npuprof_hash_text_(name, strlen(name));
    for (unsigned n = 0; n < 100 && error == EEXIST; n++) {
        snprintf(temporary, sizeof temporary, "%.*s.npuprof-%08x-%u.tmp", (int)(name - path), path, mark, n);
        error = npuprof_os_create_temporary_(temporary, path, &fd);
    }
    if (error) return error;
    error = npuprof_file_run_writer_(writer, &fd);
    if (error) (void)npuprof_os_close_(fd);
    else error = npuprof_os_publish_(fd, temporary, path);
    if (error) npuprof_os_remove_(temporary);
    return error;
}

NPUPROF_OWN_ static npuprof_result npuprof_file_write_by_(const char *path, npuprof_file_writer_ writer)
{
    const size_t length = strlen(path);
    if (!length || length > 1023) return NPUPROF_REFUSE_("npuprof_dump: path is not 1 to 1023 bytes long");
    if (!writer) return NPUPROF_ERR_UNSUPPORTED;
    /* Why asked here, too: an errno value would not say that this thread itself is the writer. */
    if (npuprof_exchange_is_waited_for_()) return NPUPROF_ERR_BUSY;
    const bool in_place = npuprof_os_in_place_(path);
    const int error =
        in_place ? npuprof_file_write_in_place_(path, writer) : npuprof_file_replace_(path, writer);
    if (!error) NPUPROF_STORE_(&npuprof_file_own_path_, npuprof_hash_text_(path, strlen(path)));
    return npuprof_os_result_(error);
}
#ifndef NPUPROF_RECORD_ONLY
/* ==== src/write/work.h ================================================================= >>write/work ==== */

/* The work area of the writers and reports: what is too large for a thread's stack, in pages of the system's
   that are mapped from npuprof_work_begin_() to npuprof_work_end_(), by who holds the lock of the readers. Of
   the NPUPROF_SCRATCH_BYTES behind it a quarter, but 64 KiB at most, is the writer's buffer, a quarter is for
   lanes, and the rest for a writer's own tables. Pages that nobody touches cost nothing. */

enum { NPUPROF_SPAN_TEXTS_ = 256, NPUPROF_SPAN_TEXT_MAX_ = 128 };

/* What the rows of a site on a track have in common: all text before the first number (write/span_text.h),
   and so many bytes behind it that come after the last. key: tid << 32 | site << 8 | kind; 0: none. */
typedef struct npuprof_span_text_ {
    uint64_t key;
    uint32_t length, last;
    char text[NPUPROF_SPAN_TEXT_MAX_];
} npuprof_span_text_;

typedef struct npuprof_work_ {
    npuprof_out_ out;
    npuprof_image_ image;
    npuprof_walk_ walk;
    void *room;                            /* for tables of the writer at hand */
    size_t room_bytes;
    npuprof_lane_set_ lanes;                  /* of the track at hand */
    npuprof_scene_ scene;
    /* text that is used again */
    npuprof_span_text_ span_text[NPUPROF_SPAN_TEXTS_];
    npuprof_stamp_cache_ stamps;
    uint32_t trace_tid;                    /* trace_id is the text of the trace with this root */
    uint64_t trace_root;
    char trace_id[33];
    /* of the JSON: the next track that is no thread; the track at hand, and the tid of its first lane */
    uint32_t next_tid, first_tid;
    uint64_t placed;
    uint64_t arrows;
} npuprof_work_;

#define NPUPROF_WORK_BYTES_ (sizeof(npuprof_work_) + (size_t)(NPUPROF_SCRATCH_BYTES))

/* NULL: the system has no memory for it. */
NPUPROF_OWN_ static npuprof_work_ *npuprof_work_begin_(npuprof_sink sink)
{
    npuprof_work_ *const w = (npuprof_work_ *)npuprof_os_memory_(NPUPROF_WORK_BYTES_);
    uint8_t *const p = (uint8_t *)(w + 1);
    const size_t quarter = (size_t)(NPUPROF_SCRATCH_BYTES) / 4 / 16 * 16;
    if (!w) return NULL;
    w->out.sink = sink;
    w->out.bytes = (char *)p;
    /* Why 64 KiB: fewer calls cost less than a first cache that holds it all gains; more gains nothing. */
    w->out.capacity = quarter < 65536 ? quarter : 65536;
    w->trace_root = UINT64_MAX;            /* of no trace */
    w->stamps.above = NPUPROF_NO_STAMP_;
    w->lanes.nodes = (npuprof_lane_node_ *)(void *)(p + w->out.capacity);
    w->lanes.node_count = (uint32_t)(quarter / sizeof *w->lanes.nodes);
    w->room = p + w->out.capacity + quarter;
    w->room_bytes = (size_t)(NPUPROF_SCRATCH_BYTES) - w->out.capacity - quarter;
    return w;
}

/* Returns 0, or the error of the output. */
NPUPROF_OWN_ static int npuprof_work_end_(npuprof_work_ *w)
{
    const int error = w->out.error;
    npuprof_os_unmap_(w, NPUPROF_WORK_BYTES_);
    return error;
}

/* The same at the end of an output. */
NPUPROF_OWN_ static int npuprof_work_finish_(npuprof_work_ *w)
{
    npuprof_out_flush_(&w->out);
    return npuprof_work_end_(w);
}

/* ---- The walks of read/ that need memory, in that of the work area */

NPUPROF_OWN_ static inline npuprof_work_ *npuprof_work_of_(const npuprof_device_walk_ *d)
{
    return (npuprof_work_ *)d->user;
}

/* d->user: the work area. */
NPUPROF_OWN_ static inline void npuprof_work_walk_devices_(npuprof_device_walk_ *d)
{
    npuprof_work_ *const w = npuprof_work_of_(d);
    npuprof_out_fail_(&w->out, npuprof_execution_walk_(d, &w->image));
}

NPUPROF_OWN_ static inline void npuprof_work_begin_merge_(npuprof_merge_ *m, npuprof_work_ *w)
{
    npuprof_merge_begin_(m, &w->image, w->room, w->room_bytes);
}

NPUPROF_OWN_ static inline npuprof_pool_reports_ npuprof_work_collect_pools_(npuprof_work_ *w)
{
    npuprof_merge_ merge;
    npuprof_pool_report_ *const list = (npuprof_pool_report_ *)(void *)w->lanes.nodes;
    npuprof_work_begin_merge_(&merge, w);
    return npuprof_pool_collect_(&merge, list, w->lanes.node_count * sizeof *w->lanes.nodes / sizeof *list);
}
/* ==== src/write/span_text.h ======================================================= >>write/span_text ==== */

/* A cache of text: the rows of one site on one track begin alike, with names that need quoting, so the
   beginning is made once and then copied. One place for each hash of the site (w->span_text); a later site
   takes the place. */

NPUPROF_HOT_ static inline uint64_t npuprof_span_text_key_(uint32_t tid, uint32_t site, uint32_t kind)
{
    return (uint64_t)tid << 32 | site << 8 | kind;
}

/* The place of a key. It has the text only if its `key` says so. */
NPUPROF_HOT_ static inline npuprof_span_text_ *npuprof_span_text_at_(npuprof_work_ *w, uint64_t key)
{
    return &w->span_text[((uint32_t)key >> 8) % NPUPROF_SPAN_TEXTS_];
}

/* From here on the writer's output goes into the cache; *aside keeps the real output. */
NPUPROF_OWN_ static inline void npuprof_span_text_begin_(npuprof_work_ *w, npuprof_span_text_ *cached, npuprof_out_ *aside)
{
    *aside = w->out;
    cached->key = 0;
    w->out.bytes = cached->text;
    w->out.capacity = sizeof cached->text;
    w->out.used = 0;
    w->out.error = -1;
}

/* Until here. False: the text is too long for the cache. */
NPUPROF_OWN_ static inline bool npuprof_span_text_end_(npuprof_work_ *w, npuprof_span_text_ *cached, uint64_t key,
                                          const npuprof_out_ *aside)
{
    const bool fits = w->out.flushes == aside->flushes;
    cached->length = (uint32_t)w->out.used;
    cached->last = 0;
    if (fits) cached->key = key;
    w->out = *aside;
    return fits;
}

/* The last so many bytes of the text just cached are what comes after the numbers. */
NPUPROF_OWN_ static inline void npuprof_span_text_split_(npuprof_span_text_ *cached, uint32_t last)
{
    cached->last = last;
    cached->length -= last;
}

/* Room for the cached text, three numbers and its last bytes behind it. */
enum { NPUPROF_SPAN_TEXT_ROOM_ = 2 * NPUPROF_SPAN_TEXT_MAX_ + 3 * NPUPROF_DIGITS_MAX_ };

/* Copies the cached text to p, and returns its end. */
NPUPROF_HOT_ static inline char *npuprof_span_text_copy_(char *p, const npuprof_span_text_ *cached)
{
    const size_t length = cached->length;
    memcpy(p, cached->text, 64);
    if (NPUPROF_UNLIKELY_(length > 64)) memcpy(p + 64, cached->text + 64, sizeof cached->text - 64);
    return p + length;
}
/* ==== src/write/stream.h ============================================================= >>write/stream ==== */

/* NPUPROF_STREAM: full chunks go to a sink, the program's or a file of our own, while threads record.
   Data: npuprof_stream_, and the chunk in the sink. One thread at a time touches them: the drainer (it
   has put itself into npuprof_arena_.drainer), or the reader that holds the scratch, for which drainers wait.
   header.streamed counts the spans and events that the sink took; header.lost those that it did not.
   This part may wait for the sink, and may not wait for a recording thread. */

static struct {
    npuprof_sink sink;             /* the program's, or our own file's; write is NULL: none yet */
    bool begun;                    /* the header is out */
    /* a part of a block is out and cannot be taken back: nothing more can be sent */
    bool broken;
    int fd;                        /* of our own file; -1: there is none */
    uint32_t table_sent;           /* bytes of the table that are out */
    uint64_t sent;                 /* bytes of all that is out and whole */
    uint32_t chunks;               /* chunks sent since all slots, the table and the header were */
    npuprof_result result;         /* the first failure since the last npuprof_flush() */
} npuprof_stream_ = { { NULL, NULL }, false, false, -1, 0, 0, 0, NPUPROF_OK };

/* Call in a child of fork, where the stream is still the parent's. A file is closed, and the child will
   create its own. A sink of the program stays with the parent: the child keeps its oldest records. */
NPUPROF_OWN_ static void npuprof_stream_forget_(void)
{
    if (npuprof_stream_.fd >= 0) (void)npuprof_os_close_(npuprof_stream_.fd);
    else if (npuprof_stream_.sink.write && npuprof_arena_.when_full == NPUPROF_STREAM)
        npuprof_arena_.when_full = NPUPROF_KEEP_OLDEST;
    memset(&npuprof_stream_, 0, sizeof npuprof_stream_);
    npuprof_stream_.fd = -1;
}

/* Creates the file that output_path names and makes it the sink. Returns 0 or an errno value. */
NPUPROF_OWN_ static int npuprof_stream_open_file_(void)
{
    const npuprof_header_ *const h = npuprof_arena_.header;
    const char *const pattern = npuprof_path_output_.pattern;
    npuprof_path_ path, aside;
    int *const fd = &npuprof_stream_.fd, error;
    if (npuprof_path_expand_(h, pattern, 0, &path) && npuprof_os_in_place_(path.text)) {
        error = npuprof_os_open_(path.text, fd);
    } else {
        error = npuprof_path_create_growing_(h, pattern, npuprof_path_output_.forked, fd, &path, &aside);
        if (!error && (error = npuprof_os_lock_(*fd)) != 0) {
            npuprof_path_discard_(*fd, &path, &aside);
            *fd = -1;
        }
    }
    npuprof_stream_.sink.write = error ? NULL : npuprof_os_write_;
    npuprof_stream_.sink.user = fd;
    return error;
}

/* Notes a failure. From our own file, what was written since the last success is taken back, so the next
   block may succeed. */
NPUPROF_OWN_ static void npuprof_stream_fail_(int error)
{
    if (npuprof_stream_.fd >= 0 && !npuprof_stream_.broken)
        npuprof_stream_.broken = !npuprof_os_take_back_(npuprof_stream_.fd, npuprof_stream_.sent);
    if (npuprof_stream_.result == NPUPROF_OK) npuprof_stream_.result = npuprof_os_result_(error);
}

/* Sends the new part of the table and one chunk, or none. With `all` it also sends all slots, the whole table
   and the header, which without a chunk ends the stream. False: the sink failed. */
NPUPROF_OWN_ static bool npuprof_stream_send_(const npuprof_image_ *im, const npuprof_chunk_ *chunk, bool all)
{
    npuprof_block_writer_ b;
    char buffer[1024];
    uint32_t table_sent = npuprof_stream_.table_sent;
    int error = npuprof_stream_.broken ? EPIPE : npuprof_stream_.sink.write ? 0 : npuprof_stream_open_file_();
    if (!error) {
        npuprof_block_begin_writer_(&b, npuprof_stream_.sink, im->h->chunk_bytes, buffer, sizeof buffer);
        if (!npuprof_stream_.begun) npuprof_block_put_header_(&b, im);
        if (all) npuprof_block_put_slots_(&b, im);
        if (all || table_sent != im->table_used)
            table_sent = npuprof_block_put_table_(&b, im, all ? 0 : table_sent);
        if (all) npuprof_block_put_header_piece_(&b, im, !chunk);
        /* Why last: a chunk that fails is counted as lost, so nothing behind it may fail. */
        if (chunk) npuprof_block_put_chunk_(&b, im, chunk);
        npuprof_out_flush_(&b.out);
        error = b.out.error;
    }
    if (error) {
        npuprof_stream_fail_(error);
        return false;
    }
    npuprof_stream_.begun = true;
    npuprof_stream_.sent += b.put;
    npuprof_stream_.table_sent = table_sent;
    npuprof_stream_.chunks = all ? 0 : npuprof_stream_.chunks + 1;
    return true;
}

/* Hands the chunks that are queued by now to the sink, oldest first, and frees them. False: there were
   none. */
NPUPROF_OWN_ static bool npuprof_stream_drain_locked_(void)
{
    npuprof_header_ *const h = npuprof_arena_.header;
    npuprof_chunk_ *chunk;
    uint64_t arguments;
    bool any = false;
    /* Why only those: while other threads record, the queue may never be empty. */
    const uint32_t end = NPUPROF_LOAD_ACQUIRE_(&h->queue_tail);
    while ((int32_t)(end - NPUPROF_LOAD_ACQUIRE_(&h->queue_head)) > 0 &&
           (chunk = npuprof_chunk_unqueue_()) != NULL) {
        npuprof_image_ im;
        npuprof_image_init_live_(&im);
        const uint64_t events = npuprof_chunk_count_events_(h, chunk, &arguments);
        /* Why all now and then: clock anchors and names of threads change, and the process may be killed. */
        const bool all = npuprof_stream_.chunks > 64 * (1 + im.table_used / h->chunk_bytes);
        if (npuprof_stream_send_(&im, chunk, all)) NPUPROF_ADD_(&h->streamed, events);
        else NPUPROF_ADD_(&h->lost[NPUPROF_LOST_SINK], events);
        npuprof_chunk_free_(chunk);
        any = true;
    }
    return any;
}

/* Makes this thread the drainer and drains. False: nothing was freed; another thread drains, or a reader has
   the chunks. */
NPUPROF_OWN_ static bool npuprof_stream_drain_(void)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    uintptr_t nobody = 0;
    bool any = false;
    const int cancel = npuprof_os_hold_cancel_();
    if (!NPUPROF_CAS_(&s->drainer, &nobody, npuprof_slot_me_())) {
        npuprof_os_release_cancel_(cancel);
        return false;
    }
    /* Why: this runs inside a macro, which must not change the program's errno */
    const int error_before = errno;
    if (npuprof_chunk_begin_recycling_()) {
        any = npuprof_stream_drain_locked_();
        if (any) npuprof_exchange_begin_round_();
        npuprof_chunk_end_recycling_();
    }
    errno = error_before;
    NPUPROF_STORE_RELEASE_(&s->drainer, (uintptr_t)0);
    npuprof_os_release_cancel_(cancel);
    return any;
}

/* Does what npuprof_flush() says. *left: spans and events that the sink did not take and that are still in
   the arena. */
NPUPROF_OWN_ static npuprof_result npuprof_stream_flush_(uint64_t *left)
{
    npuprof_image_ im;
    uint64_t arguments;
    *left = 0;
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (npuprof_arena_.when_full != NPUPROF_STREAM) return NPUPROF_OK;
    if (!npuprof_scratch_lock_()) return npuprof_scratch_result_();
    (void)npuprof_stream_drain_locked_();
    npuprof_arena_renew_last_anchor_();
    npuprof_image_open_live_(&im);
    const npuprof_slot_head_ *slot = NULL;
    while ((slot = npuprof_image_next_slot_(&im, slot)) != NULL)
        for (uint32_t at = slot->first_chunk; at; at = npuprof_image_next_chunk_(&im, at - 1))
            if (!npuprof_stream_send_(&im, npuprof_image_chunk_(&im, at - 1), false))
                *left += npuprof_chunk_count_events_(im.h, npuprof_chunk_at_(at - 1), &arguments);
    /* Why again: the chunks just sent may use names that are newer than the table that was sent. */
    im.table_used = NPUPROF_LOAD_ACQUIRE_(&im.h->table_used);
    (void)npuprof_stream_send_(&im, NULL, true);
    const npuprof_result r = npuprof_stream_.result;
    npuprof_stream_.result = NPUPROF_OK;
    npuprof_scratch_unlock_();
    return r;
}

NPUPROF_API_ npuprof_result npuprof_flush(void)
{
    uint64_t left;
    return npuprof_stream_flush_(&left);
}
#ifndef NPUPROF_NO_JSON
/* ==== src/write/emit.h ================================================================= >>write/emit ==== */

/* JSON, nested: begin, members, end. The commas come by themselves. key: of a member of an object, plain
   ASCII; NULL: the value is an element of a list. */

NPUPROF_OWN_ static void npuprof_emit_key_(npuprof_out_ *o, const char *key)
{
    if (!o->fresh) npuprof_out_put_(o, ",", 1);
    o->fresh = false;
    if (!key) return;
    npuprof_out_put_(o, "\"", 1);
    npuprof_out_puts_(o, key);
    npuprof_out_put_(o, "\":", 2);
}

/* bracket: "{" or "[". */
NPUPROF_OWN_ static void npuprof_emit_begin_(npuprof_out_ *o, const char *key, const char *bracket)
{
    npuprof_emit_key_(o, key);
    npuprof_out_put_(o, bracket, 1);
    o->fresh = true;
}

NPUPROF_OWN_ static void npuprof_emit_end_(npuprof_out_ *o, const char *bracket)
{
    npuprof_out_put_(o, bracket, 1);
    o->fresh = false;
}

NPUPROF_OWN_ static void npuprof_emit_uint_(npuprof_out_ *o, const char *key, uint64_t v)
{
    npuprof_emit_key_(o, key);
    npuprof_out_uint_(o, v);
}

NPUPROF_OWN_ static void npuprof_emit_int_(npuprof_out_ *o, const char *key, int64_t v)
{
    npuprof_emit_key_(o, key);
    npuprof_out_int_(o, v);
}

/* Thousandths, with three places. */
NPUPROF_OWN_ static void npuprof_emit_milli_(npuprof_out_ *o, const char *key, int64_t v)
{
    npuprof_emit_key_(o, key);
    npuprof_out_milli_(o, v);
}

/* true, null, or a number that is text already. */
NPUPROF_OWN_ static void npuprof_emit_word_(npuprof_out_ *o, const char *key, const char *word)
{
    npuprof_emit_key_(o, key);
    npuprof_out_puts_(o, word);
}

NPUPROF_OWN_ static void npuprof_emit_text_(npuprof_out_ *o, const char *key, const char *text)
{
    npuprof_emit_key_(o, key);
    npuprof_out_quoted_(o, text);
}

/* A string of the image's table. */
NPUPROF_OWN_ static void npuprof_emit_name_(npuprof_out_ *o, const char *key, const npuprof_image_ *im, uint32_t id)
{
    npuprof_emit_key_(o, key);
    npuprof_out_text_(o, im, id, true);
}
/* ==== src/write/json.h ================================================================= >>write/json ==== */

/* The scene as events of Chrome's trace format. Times are microseconds with three decimals; tids are those of
   threads first, then one for each further track. A track's number is its tid.

   Data: the work area. Most records are plain spans, and npuprof_json_plain_() is the fast path for them. The
   other parts: json_clock.h (clocks of devices), json_head.h (metadata, and the order of it all). */

/* Begins the scene of the open image. */
NPUPROF_OWN_ static npuprof_scene_ *npuprof_work_scene_(npuprof_work_ *w, const npuprof_scene_output_ *output,
                                           void *user)
{
    npuprof_scene_ *const s = &w->scene;
    s->image = &w->image;
    s->walk = &w->walk;
    s->lanes = &w->lanes;
    s->output = output;
    s->user = user;
    return s;
}

/* ---- Events */

/* Begins an event, up to its tid. name: NULL for name_id. category: 0 for none. */
NPUPROF_OWN_ static void npuprof_json_open_(npuprof_work_ *w, const char *phase, uint32_t name_id, const char *name,
                               uint32_t category, uint64_t tid)
{
    npuprof_out_ *const o = &w->out;
    npuprof_out_puts_(o, o->fresh ? "\n{\"ph\":\"" : ",\n{\"ph\":\"");
    o->fresh = false;
    npuprof_out_puts_(o, phase);
    npuprof_out_puts_(o, "\",\"name\":");
    if (name) npuprof_out_quoted_(o, name);
    else npuprof_out_text_(o, &w->image, name_id, true);
    if (category) npuprof_emit_name_(o, "cat", &w->image, category);
    npuprof_emit_uint_(o, "pid", w->image.h->pid);
    npuprof_emit_uint_(o, "tid", tid);
}

NPUPROF_OWN_ static void npuprof_json_value_(npuprof_out_ *o, uint32_t kind, uint64_t bits)
{
    if (kind == NPUPROF_KIND_COUNTER_INT) npuprof_out_int_(o, (int64_t)bits);
    else if (kind == NPUPROF_KIND_COUNTER_UINT) npuprof_out_big_(o, bits);
    else npuprof_out_real_(o, bits);
}

/* "args":{...}, if there are any: facts, then the user's. Why of a key that comes twice only the last: strict
   readers refuse a key twice. */
NPUPROF_OWN_ static void npuprof_json_args_(npuprof_work_ *w, const npuprof_scene_event_ *e)
{
    npuprof_out_ *const o = &w->out;
    npuprof_args_walk_ args = npuprof_args_begin_(&w->image, e->ev);
    npuprof_value_ v;
    if (!e->fact_count && e->ev->args == e->ev->args_end && !e->ev->results) return;
    npuprof_emit_begin_(o, "args", "{");
    for (const npuprof_value_ *fact = e->facts; fact < e->facts + e->fact_count; fact++) {
        if (fact->key == NPUPROF_FACT_CHANGE_ && !fact->bits) continue;    /* as in the pool's own members */
        npuprof_emit_key_(o, npuprof_fact_keys_[fact->key]);
        if (fact->type == NPUPROF_ARG_UINT) npuprof_out_uint_(o, fact->bits);
        else npuprof_out_value_(o, fact);
    }
    while (npuprof_args_next_(&args, &v)) {
        if (npuprof_scene_key_comes_again_(&args, v.key)) continue;
        npuprof_emit_key_(o, NULL);
        const char *const fact = npuprof_fact_key_(e, &w->image, v.key);
        if (fact) npuprof_out_puts_(o, "\"user.");
        if (fact) npuprof_out_puts_(o, fact);
        if (fact) npuprof_out_put_(o, "\"", 1);
        else npuprof_out_text_(o, &w->image, v.key, true);
        npuprof_out_put_(o, ":", 1);
        npuprof_out_value_(o, &v);
    }
    npuprof_emit_end_(o, "}");
}

NPUPROF_OWN_ static void npuprof_json_instant_(npuprof_scene_ *s, const npuprof_scene_event_ *e)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    npuprof_out_ *const o = &w->out;
    npuprof_json_open_(w, "i", e->name, e->own_name, e->own_category ? 0 : e->category, e->track);
    if (e->own_category) npuprof_emit_text_(o, "cat", e->own_category);
    if (e->derived) npuprof_emit_word_(o, "derived", "true");
    npuprof_emit_text_(o, "s", e->of_process ? "p" : "t");
    npuprof_emit_milli_(o, "ts", e->start);
    npuprof_json_args_(w, e);
    npuprof_emit_end_(o, "}");
}

NPUPROF_OWN_ static void npuprof_json_counter_(npuprof_scene_ *s, const npuprof_scene_event_ *e, uint32_t kind,
                                  uint64_t bits)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    npuprof_json_open_(w, "C", e->name, NULL, 0, e->track);
    npuprof_emit_milli_(&w->out, "ts", e->start);
    npuprof_emit_begin_(&w->out, "args", "{");
    npuprof_emit_key_(&w->out, "value");
    npuprof_json_value_(&w->out, kind, bits);
    npuprof_out_puts_(&w->out, "}}");
}

/* The state of a memory pool as a counter of two values. */
NPUPROF_OWN_ static void npuprof_json_pool_(npuprof_scene_ *s, const npuprof_scene_event_ *e)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    npuprof_out_ *const o = &w->out;
    npuprof_json_open_(w, "C", e->category, NULL, 0, e->track);
    npuprof_emit_text_(o, "cat", e->own_category);
    npuprof_emit_name_(o, "tag", &w->image, e->name);
    if (e->ev->change) npuprof_emit_int_(o, "change", e->ev->change);
    if (s->walk->warm_up) npuprof_emit_word_(o, "warm_up", "true");
    npuprof_emit_milli_(o, "ts", e->start);
    npuprof_emit_begin_(o, "args", "{");
    npuprof_emit_key_(o, "used");
    npuprof_out_big_(o, e->ev->value);
    npuprof_emit_key_(o, "allocated");
    npuprof_out_big_(o, e->ev->second);
    npuprof_out_puts_(o, "}}");
}

/* One arrow. Viewers match its two halves by id, category and name. */
NPUPROF_OWN_ static void npuprof_json_put_arrow_(npuprof_work_ *w, const char *name, uint64_t from_tid, int64_t from_ns,
                                    uint64_t to_tid, int64_t to_ns)
{
    for (int end = 0; end < 2; end++) {
        npuprof_json_open_(w, end ? "f" : "s", 0, name, 0, end ? to_tid : from_tid);
        if (end) npuprof_emit_text_(&w->out, "bp", "e");
        npuprof_emit_text_(&w->out, "cat", name);
        w->arrows += !end;
        npuprof_emit_uint_(&w->out, "id", w->arrows);
        npuprof_emit_milli_(&w->out, "ts", end ? to_ns : from_ns);
        npuprof_emit_end_(&w->out, "}");
    }
}

NPUPROF_OWN_ static void npuprof_json_arrow_(npuprof_scene_ *s, uint32_t from_tid, int64_t from_ns, uint32_t to_tid,
                                int64_t to_ns)
{
    npuprof_json_put_arrow_((npuprof_work_ *)s->user, "flow", from_tid, from_ns, to_tid, to_ns);
}

/* ---- Spans: the beginning is the same for all spans of a site on a track, so it is cached */

/* A span up to its arguments to p, where NPUPROF_SPAN_TEXT_ROOM_ bytes are free, and a closing brace that is
   not counted: who writes no arguments counts it. Returns the end. */
NPUPROF_HOT_ static inline char *npuprof_json_cached_span_(npuprof_work_ *w, char *p,
                                                           const npuprof_span_text_ *cached, int64_t start,
                                                           int64_t end)
{
    p = npuprof_digits_stamp_(&w->stamps, npuprof_span_text_copy_(p, cached), start);
    memcpy(p, ",\"dur\": ", 8);
    p = npuprof_digits_milli_(p + 7, end - start);
    *p = '}';
    return p;
}

NPUPROF_OWN_ static uint32_t npuprof_json_span_(npuprof_scene_ *s, const npuprof_scene_event_ *e)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    const npuprof_event_ *const ev = e->ev;
    const uint64_t key = npuprof_span_text_key_((uint32_t)e->track, ev->site, ev->kind);
    npuprof_span_text_ *const cached = npuprof_span_text_at_(w, key);
    bool fits = cached->key == key;
    if (!fits) {
        npuprof_out_ aside;
        npuprof_span_text_begin_(w, cached, &aside);
        npuprof_json_open_(w, "X", ev->name, NULL, ev->category, e->track);
        npuprof_emit_key_(&w->out, "ts");
        fits = npuprof_span_text_end_(w, cached, key, &aside);
    }
    if (fits) {
        char *const p = npuprof_out_reserve_(&w->out, NPUPROF_SPAN_TEXT_ROOM_);
        w->out.used += (size_t)(npuprof_json_cached_span_(w, p, cached, e->start, e->end) - p);
    } else {
        npuprof_json_open_(w, "X", ev->name, NULL, ev->category, e->track);
        npuprof_emit_milli_(&w->out, "ts", e->start);
        npuprof_emit_milli_(&w->out, "dur", e->end - e->start);
    }
    npuprof_json_args_(w, e);
    npuprof_emit_end_(&w->out, "}");
    if (e->submitted)
        npuprof_json_put_arrow_(w, "submit", ev->link.slot,
                                npuprof_image_trace_ns_(&w->image, ev->link.ticks), e->track, e->start);
    return 0;
}

/* Writes the plain spans that come next, as long as they nest and their beginnings are cached. */
NPUPROF_HOT_ NPUPROF_NOINLINE_ static void npuprof_json_plain_(npuprof_scene_ *s)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    const bool walk = npuprof_scene_needs_walk_(&w->image);
    const uint32_t tid = w->walk.tid;
    npuprof_plain_walk_ c = npuprof_cursor_begin_plains_(&w->walk.cursor[0]);
    npuprof_plain_ p;
    char *at = npuprof_out_reserve_(&w->out, NPUPROF_SPAN_TEXT_ROOM_);
    const char *last = w->out.bytes + w->out.capacity - NPUPROF_SPAN_TEXT_ROOM_;
    while (npuprof_cursor_peek_plain_(&c, &p)) {
        const uint64_t key = npuprof_span_text_key_(tid, p.site, NPUPROF_KIND_SPAN);
        const npuprof_span_text_ *cached = npuprof_span_text_at_(w, key);
        if (cached->key != key) break;
        const int64_t start = npuprof_image_trace_ns_(&w->image, p.start);
        const int64_t end = npuprof_image_trace_ns_(&w->image, p.end);
        if (!npuprof_lane_nest_(&w->lanes, 0, start, end)) break;
        if (walk) npuprof_walk_plain_(&w->walk, &p, npuprof_cursor_plain_position_(&w->walk.cursor[0], &c));
        if (NPUPROF_UNLIKELY_(at > last)) {
            w->out.used = (size_t)(at - w->out.bytes);
            at = npuprof_out_reserve_(&w->out, NPUPROF_SPAN_TEXT_ROOM_);
        }
        at = npuprof_json_cached_span_(w, at, cached, start, end) + 1;
        c.at++;
    }
    w->out.used = (size_t)(at - w->out.bytes);
    (void)npuprof_cursor_end_plains_(&w->walk.cursor[0], &c);
}

/* ---- Tracks */

/* Names a track, and says where a viewer puts it. thread: NULL for a track that is none; else also its number
   in the system, by which the trace can be joined with those of perf, ftrace and strace; and how many threads
   had the track one after the other: it is the last one's name and number. */
NPUPROF_OWN_ static void npuprof_json_track_(npuprof_work_ *w, uint64_t tid, const char *name, size_t length,
                                uint64_t sort, const npuprof_scene_thread_track_ *thread)
{
    npuprof_out_ *const o = &w->out;
    npuprof_json_open_(w, "M", 0, "thread_name", 0, tid);
    npuprof_emit_begin_(o, "args", "{");
    npuprof_emit_key_(o, "name");
    npuprof_out_string_(o, name, length, true);
    if (thread && thread->native_id) npuprof_emit_uint_(o, "native_id", thread->native_id);
    if (thread && thread->owners > 1) npuprof_emit_uint_(o, "native_threads", thread->owners);
    npuprof_out_puts_(o, "}}");
    npuprof_json_open_(w, "M", 0, "thread_sort_index", 0, tid);
    npuprof_emit_begin_(o, "args", "{");
    npuprof_emit_uint_(o, "sort_index", sort);
    npuprof_out_puts_(o, "}}");
}

NPUPROF_OWN_ static uint64_t npuprof_json_thread_(npuprof_scene_ *s, const npuprof_scene_thread_track_ *t)
{
    size_t length = strlen(t->own);
    const char *const name = t->name ? npuprof_image_text_(s->image, t->name, &length) : t->own;
    npuprof_json_track_((npuprof_work_ *)s->user, t->tid, name, length, t->tid, t);
    return t->tid;
}

NPUPROF_OWN_ static uint64_t npuprof_json_overlap_(npuprof_scene_ *s, const npuprof_scene_thread_track_ *t)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    const uint32_t tid = w->next_tid++;
    char text[192];
    const size_t length = npuprof_scene_overlap_name_(s->image, t, 64, text);
    npuprof_json_track_(w, tid, text, length, t->tid, NULL);
    return tid;
}

/* A lane has the name of its track; the second and further ones of a group have a number, too. Why the tid of
   the first lane is taken with the track: it may be begun after others. */
NPUPROF_OWN_ static uint64_t npuprof_json_lane_(npuprof_scene_ *s, const npuprof_event_ *ev, uint32_t lane)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    const npuprof_image_ *const im = s->image;
    const npuprof_lane_set_ *const l = s->lanes;
    const npuprof_lane_group_ group = npuprof_scene_group_(im, ev);
    char text[192], suffix[96] = "";
    uint32_t name = (uint32_t)s->placed, of_group = 1;
    size_t n = 0;
    if (w->placed != s->placed) w->first_tid = w->next_tid++;
    w->placed = s->placed;
    const uint32_t tid = lane ? w->next_tid++ : w->first_tid;
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        const npuprof_device_entry_ *const d = npuprof_image_device_(im, ev->device);
        name = d ? d->name : 0;
        n = npuprof_scene_lane_text_(im, ev, d && d->pe_count > 1, suffix);
    }
    for (uint32_t i = 0; i < lane && i < NPUPROF_LANES_; i++)
        of_group += npuprof_lane_same_group_(l->group[i], group);
    if (of_group > 1) snprintf(suffix + n, sizeof suffix - n, " #%u", (unsigned)of_group);
    if (suffix[0]) {
        n = npuprof_scene_name_(im, name, 64, suffix, text);
        npuprof_json_track_(w, tid, text, n, tid, NULL);
        return tid;
    }
    const char *const own = npuprof_image_text_(im, name, &n);
    npuprof_json_track_(w, tid, n ? own : "unnamed", n ? n : 7, tid, NULL);
    return tid;
}

static const npuprof_scene_output_ npuprof_json_output_ = {
    npuprof_json_thread_, npuprof_json_overlap_, npuprof_json_lane_, npuprof_json_plain_,
    npuprof_json_span_, NULL, npuprof_json_instant_, npuprof_json_counter_, npuprof_json_pool_,
    npuprof_json_arrow_, true
};
/* ==== src/write/json_clock.h ===================================================== >>write/json_clock ==== */

/* The metadata's "clock_sync" of a device: how its clock was mapped to the host's, how well, and what went
   wrong. */

/* What a walk over all spans of the device finds. */
typedef struct npuprof_json_sync_ {
    uint64_t spans, unplaced, violations, undrawn;
    uint64_t host_spans;                   /* on the host's clock: not mapped */
    uint64_t max_error;                    /* in host ticks */
    uint32_t anchors;
    uint64_t contradictions, opened;       /* of the declared rate; host ticks in which it does not count */
    uint64_t late_reads;                   /* left out: clock/evidence.h, E4 */
    bool is_wild;                          /* it counts nowhere in some epoch */
    npuprof_anchor_ first, last;           /* of the epoch whose anchors are farthest apart */
} npuprof_json_sync_;

/* A member in thousandths; null if it is not known. */
NPUPROF_OWN_ static void npuprof_json_known_milli_(npuprof_out_ *o, const char *key, bool is_known, uint64_t thousandths,
                                      bool is_negative)
{
    if (!is_known) npuprof_emit_word_(o, key, "null");
    else npuprof_emit_milli_(o, key, is_negative ? -(int64_t)thousandths : (int64_t)thousandths);
}

NPUPROF_OWN_ static void npuprof_json_collect_anchors_(const npuprof_image_ *im, const npuprof_device_entry_ *d,
                                          npuprof_json_sync_ *s)
{
    npuprof_anchor_ a, begin = s->first;
    npuprof_map_evidence_ evidence;
    uint32_t block = 0, index = 0, epoch = 0, of_epoch = 0;
    npuprof_image_begin_evidence_(im, d, &evidence);
    for (;; s->anchors++) {
        const bool more = npuprof_image_next_anchor_(im, d, &block, &index, &epoch, &a);
        if (!more || (s->anchors && epoch != of_epoch)) {
            npuprof_map_judge_(&evidence);
            s->contradictions += evidence.steps;
            s->opened += evidence.opened_host;
            s->late_reads += evidence.lates;
            s->is_wild |= evidence.is_wild;
            npuprof_image_begin_evidence_(im, d, &evidence);
        }
        if (!more) break;
        const npuprof_map_point_ p = npuprof_map_point_of_(&a);
        npuprof_map_witness_(&evidence, &p);
        if (!s->anchors || epoch != of_epoch) begin = a;
        of_epoch = epoch;
        if (a.host_after - begin.host_after <= s->last.host_after - s->first.host_after) continue;
        s->first = begin;
        s->last = a;
    }
}

NPUPROF_OWN_ static void npuprof_json_collect_sync_(const npuprof_image_ *im, const npuprof_device_entry_ *d,
                                       npuprof_json_sync_ *s)
{
    npuprof_image_anchor_caches_ caches;
    npuprof_event_ ev;
    npuprof_cursor_ c;
    const npuprof_slot_head_ *slot = NULL;
    memset(&caches, 0, sizeof caches);
    memset(s, 0, sizeof *s);
    npuprof_json_collect_anchors_(im, d, s);
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL) {
        npuprof_cursor_begin_slot_(&c, im, slot);
        while (npuprof_cursor_next_event_(&c, &ev)) {
            uint64_t start, end, start_error, end_error;
            if (ev.kind != NPUPROF_KIND_DEVICE || ev.device != d->head.a) continue;
            if (ev.flags & NPUPROF_STAMP_INSTANT) continue;
            /* Why: nobody measured the times of a job that has no stamps. */
            if (ev.flags & NPUPROF_STAMP_HOST && !(ev.flags & NPUPROF_STAMP_SAMPLED)) {
                s->host_spans++;
                continue;
            }
            s->spans++;
            if (!npuprof_image_host_ticks_(im, &caches, &ev, ev.start, &start, &start_error) ||
                !npuprof_image_host_ticks_(im, &caches, &ev, ev.end, &end, &end_error)) {
                s->unplaced++;
                continue;
            }
            s->max_error = npuprof_max_(s->max_error, npuprof_max_(start_error, end_error));
            s->violations += npuprof_fact_causality_broken_(&ev, start, start_error, end, end_error);
            const bool drawn = npuprof_fact_draws_arrow_(im, &ev, npuprof_image_ns_(im, start));
            s->undrawn += npuprof_image_has_arrow_(im, &ev) && !drawn;
        }
    }
}

/* The rate between the first and the last anchor; null if there is none. Its uncertainty is the errors of the
   two over their distance: half the distance of their host stamps, a device tick of either, and the host
   clock's own anchors. */
NPUPROF_OWN_ static void npuprof_json_rate_(npuprof_out_ *o, const npuprof_image_ *im, const npuprof_device_entry_ *d,
                               const npuprof_json_sync_ *s)
{
    const uint64_t ticks = s->last.device_ticks - s->first.device_ticks, trillion = 1000000000000u;
    const uint64_t first_half = (s->first.host_after - s->first.host_before) / 2;
    const uint64_t last_half = (s->last.host_after - s->last.host_before) / 2;
    const uint64_t first_at = s->first.host_before + first_half, last_at = s->last.host_before + last_half;
    const uint64_t error = first_half + last_half + 2;
    const uint64_t ns = (uint64_t)npuprof_image_ns_(im, im->h->first.ticks + (last_at - first_at));
    uint64_t rate_mhz = ns ? npuprof_scale_(ticks, trillion, ns) : 0;
    if (rate_mhz > NPUPROF_MAX_HZ_ * 1000) rate_mhz = 0;     /* no counter is so fast: its values jump */
    npuprof_json_known_milli_(o, "rate_hz", rate_mhz, rate_mhz, false);
    uint64_t ppt = last_at > first_at ? npuprof_scale_(error, trillion, last_at - first_at) : 0;
    if (ticks) ppt += npuprof_scale_(1, trillion, ticks);
    const npuprof_host_anchor_ *const first = &im->h->first, *const closing = &im->closing;
    if (closing->ticks > first->ticks && !im->h->clock_hz)
        ppt += npuprof_scale_(first->error_ticks + closing->error_ticks + 1, trillion,
                              closing->ticks - first->ticks);
    npuprof_json_known_milli_(o, "rate_uncertainty_ppm", rate_mhz, ppt / 1000 + 1, false);
    if (d->nominal_hz) npuprof_emit_uint_(o, "nominal_hz", d->nominal_hz);
    else npuprof_emit_word_(o, "nominal_hz", "null");
    const bool has_drift = d->nominal_hz && d->nominal_hz <= NPUPROF_MAX_HZ_ && rate_mhz;
    const uint64_t nominal = has_drift ? d->nominal_hz * 1000 : 1;
    const bool slow = rate_mhz < nominal;
    const uint64_t ppb = npuprof_scale_(slow ? nominal - rate_mhz : rate_mhz - nominal, 1000000000u, nominal);
    npuprof_json_known_milli_(o, "drift_ppm", has_drift, npuprof_min_(ppb, INT64_MAX), slow);
}

/* [ns after the first clock anchor, half width in ns, device ticks] of each anchor, at most a thousand. */
NPUPROF_OWN_ static void npuprof_json_anchor_list_(npuprof_out_ *o, const npuprof_image_ *im,
                                      const npuprof_device_entry_ *d)
{
    npuprof_anchor_ a;
    uint32_t block = 0, index = 0, epoch = 0, shown = 0;
    npuprof_emit_begin_(o, "anchor_list", "[");
    for (; shown < 1000 && npuprof_image_next_anchor_(im, d, &block, &index, &epoch, &a); shown++) {
        const uint64_t half = (a.host_after - a.host_before + 1) / 2;
        npuprof_emit_begin_(o, NULL, "[");
        npuprof_emit_int_(o, NULL, npuprof_image_ns_(im, a.host_before + half));
        npuprof_emit_uint_(o, NULL, (uint64_t)npuprof_image_ns_(im, im->h->first.ticks + half) + 1);
        npuprof_emit_uint_(o, NULL, a.device_ticks);
        npuprof_emit_end_(o, "]");
    }
    npuprof_emit_end_(o, "]");
}

/* How many records are lost or odd, by why: those that are not 0. */
NPUPROF_OWN_ static void npuprof_json_records_(npuprof_out_ *o, const npuprof_image_ *im, const npuprof_device_entry_ *d)
{
    static const char *const keys[NPUPROF_RECORDS_COUNT] = {
        "lost_overwritten", "lost_stamps", "lost_epoch", "lost_no_anchor", "lost_by_driver",
        "unknown_records", "unmatched_ends", "unfinished", "past_last_lane", "loss_unknown",
        "dropped_jobs", "open_jobs", "ambiguous_jobs", "lost_period", "lost_contradiction" };
    const npuprof_entry_ *e;
    uint64_t counts[NPUPROF_RECORDS_COUNT] = { 0 };
    uint32_t id = 0;
    bool any = false;
    while ((e = npuprof_image_next_entry_(im, NPUPROF_ENTRY_RECORDS, sizeof(npuprof_records_entry_), &id)) !=
           NULL) {
        const npuprof_records_entry_ *const r = (const npuprof_records_entry_ *)(const void *)e;
        if (e->a != d->head.a) continue;
        for (unsigned i = 0; i < NPUPROF_RECORDS_COUNT; i++) counts[i] += NPUPROF_LOAD_(&r->counts[i]);
    }
    for (unsigned i = 0; i < NPUPROF_RECORDS_COUNT; i++) {
        if (!counts[i]) continue;
        if (!any) npuprof_emit_begin_(o, "records", "{");
        npuprof_emit_uint_(o, keys[i], counts[i]);
        any = true;
    }
    if (any) npuprof_emit_end_(o, "}");
}

NPUPROF_OWN_ static void npuprof_json_clock_sync_(npuprof_work_ *w, const npuprof_device_entry_ *d)
{
    static const struct { const char *key; uint32_t note; } notes[] = {
        { "wraps", NPUPROF_NOTE_WRAPS },
        { "resets", NPUPROF_NOTE_RESETS },
        { "ambiguous_gaps", NPUPROF_NOTE_AMBIGUOUS },
        { "dead_reads", NPUPROF_NOTE_DEAD_READS },
        { "torn_reads", NPUPROF_NOTE_TORN_READS },
        { "ring_lost", NPUPROF_NOTE_RING_LOST },
    };
    const npuprof_image_ *im = &w->image;
    npuprof_out_ *o = &w->out;
    npuprof_json_sync_ s;
    npuprof_json_collect_sync_(im, d, &s);
    npuprof_emit_begin_(o, "clock_sync", "{");
    npuprof_json_rate_(o, im, d, &s);
    const uint64_t max_error_ns = (uint64_t)npuprof_image_ns_(im, im->h->first.ticks + s.max_error) + 1;
    npuprof_emit_uint_(o, "max_error_ns", s.max_error ? max_error_ns : 0);
    npuprof_emit_uint_(o, "anchors", s.anchors);
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        npuprof_emit_uint_(o, notes[i].key, NPUPROF_LOAD_(&d->notes[notes[i].note]));
    npuprof_emit_uint_(o, "spans", s.spans);
    if (s.host_spans) npuprof_emit_uint_(o, "host_spans", s.host_spans);
    npuprof_emit_uint_(o, "unplaced_spans", s.unplaced);
    npuprof_emit_uint_(o, "causality_violations", s.violations);
    npuprof_emit_uint_(o, "arrows_left_out", s.undrawn);
    if (s.late_reads) npuprof_emit_uint_(o, "late_reads", s.late_reads);
    if (s.contradictions) {
        npuprof_emit_uint_(o, "contradictions", s.contradictions);
        npuprof_emit_uint_(o, "opened_ns", (uint64_t)npuprof_image_ns_(im, im->h->first.ticks + s.opened));
        npuprof_emit_text_(o, "class", s.is_wild ? "stands" : "steady");
    }
    npuprof_json_records_(o, im, d);
    npuprof_json_anchor_list_(o, im, d);
    const uint32_t flags = NPUPROF_LOAD_(&d->flags);
    if (flags & NPUPROF_DEVICE_IDLE_) npuprof_emit_word_(o, "idle_at_open", "true");
    if (flags & NPUPROF_DEVICE_CAUSAL_) npuprof_emit_text_(o, "clock", "causal");
    npuprof_emit_end_(o, "}");
}
/* ==== src/write/json_head.h ======================================================= >>write/json_head ==== */

/* The JSON as a whole: the list of events, and the metadata behind it, which say what the trace is of, what
   its clocks are worth, and what was lost. */

/* ---- Pairs of names: user's metadata, unused environment variables. Of a key that comes twice only the last
   counts */

/* The last entry of each key: a hash table in the scratch memory, which lanes and spans no longer need. Where
   keys may be more than half of its room, they are written in rounds, a share of them by hash in each. */
typedef struct npuprof_json_last_pair_ { uint32_t key, entry; } npuprof_json_last_pair_;     /* key 0: free */
typedef struct npuprof_json_last_pairs_ {
    npuprof_json_last_pair_ *list;
    size_t capacity, count;
    uint64_t round, rounds;
} npuprof_json_last_pairs_;

/* The same for keys that are the same to npuprof_scene_same_key_(): bad bytes count as U+FFFD. */
NPUPROF_OWN_ static uint64_t npuprof_json_key_hash_(const npuprof_image_ *im, uint32_t key)
{
    size_t left;
    uint64_t h = 0;
    for (const uint8_t *p = (const uint8_t *)npuprof_image_text_(im, key, &left); left;) {
        const size_t n = npuprof_utf8_length_(p, left), step = n ? n : 1;
        const uint8_t *const bytes = n ? p : (const uint8_t *)"\xEF\xBF\xBD";
        for (size_t i = 0; i < (n ? n : 3); i++) h = (h + bytes[i]) * UINT64_C(0x9E3779B97F4A7C15);
        p += step;
        left -= step;
    }
    return npuprof_hash_mix_(h);
}

/* The next pair of this round, if it is whole, and where its key is in the table, or would be. *place is NULL
   if the table is full of others. Why that cannot be but by keys made for it: half of the table is free. */
NPUPROF_OWN_ static const npuprof_pair_entry_ *npuprof_json_next_pair_(const npuprof_image_ *im,
                                                          const npuprof_json_last_pairs_ *t, uint32_t type,
                                                          uint32_t *id, npuprof_json_last_pair_ **place)
{
    const npuprof_entry_ *e;
    while ((e = npuprof_image_next_entry_(im, type, sizeof(npuprof_pair_entry_), id)) != NULL) {
        const npuprof_pair_entry_ *const pair = (const npuprof_pair_entry_ *)(const void *)e;
        const uint64_t hash = npuprof_json_key_hash_(im, pair->b[0]);
        if (hash % t->rounds != t->round || !NPUPROF_LOAD_ACQUIRE_(&pair->b[1])) continue;
        size_t i = (size_t)(hash / t->rounds % t->capacity);
        while (t->list[i].key && !npuprof_scene_same_key_(im, t->list[i].key, pair->b[0]))
            i = i + 1 < t->capacity ? i + 1 : 0;
        *place = t->list[i].key || t->count + 1 < t->capacity ? &t->list[i] : NULL;
        return pair;
    }
    return NULL;
}

/* The pairs of one round: the first walk notes the last entries, the second one writes them. */
NPUPROF_OWN_ static void npuprof_json_pairs_of_round_(npuprof_work_ *w, npuprof_json_last_pairs_ *t, uint32_t type)
{
    const npuprof_pair_entry_ *pair;
    npuprof_json_last_pair_ *last;
    uint32_t id = 0;
    t->count = 0;
    memset(t->list, 0, t->capacity * sizeof *t->list);
    while ((pair = npuprof_json_next_pair_(&w->image, t, type, &id, &last)) != NULL) {
        if (!last) continue;
        t->count += !last->key;
        last->key = pair->b[0];
        last->entry = id;
    }
    id = 0;
    while ((pair = npuprof_json_next_pair_(&w->image, t, type, &id, &last)) != NULL) {
        if (last && last->entry != id) continue;
        npuprof_emit_name_(&w->out, NULL, &w->image, pair->b[0]);
        npuprof_out_puts_(&w->out, ":");
        npuprof_out_text_(&w->out, &w->image, NPUPROF_LOAD_ACQUIRE_(&pair->b[1]), true);
    }
}

/* The pairs of a type as an object. */
NPUPROF_OWN_ static void npuprof_json_pairs_(npuprof_work_ *w, const char *key, uint32_t type)
{
    npuprof_json_last_pairs_ t;
    uint32_t id = 0, pairs = 0;
    t.list = (npuprof_json_last_pair_ *)(void *)w->lanes.nodes;
    t.capacity = (size_t)((uint8_t *)w->room + w->room_bytes - (uint8_t *)w->lanes.nodes) / sizeof *t.list;
    while (npuprof_image_next_entry_(&w->image, type, sizeof(npuprof_pair_entry_), &id)) pairs++;
    t.rounds = pairs / (t.capacity / 2) + 1;
    npuprof_emit_begin_(&w->out, key, "{");
    for (t.round = 0; t.round < t.rounds; t.round++) npuprof_json_pairs_of_round_(w, &t, type);
    npuprof_emit_end_(&w->out, "}");
}

/* ---- Metadata */

/* ,"drift_ns":N: how far a user's clock, at the rate that the user states, is from the system's at the end of
   the trace. Nothing if the rate is measured, or if no second anchor was taken. */
NPUPROF_OWN_ static void npuprof_json_drift_(npuprof_out_ *o, const npuprof_image_ *im)
{
    const npuprof_host_anchor_ *const first = &im->h->first, *const closing = &im->closing;
    const int64_t os_ns = closing->monotonic_ns - first->monotonic_ns;
    if (!im->h->clock_hz || closing->ticks <= first->ticks || os_ns <= 0) return;
    const int64_t ns = npuprof_image_ns_(im, closing->ticks);
    const uint64_t gone = closing->ticks - first->ticks, all = im->last_ticks - first->ticks;
    const uint64_t error_ns = (uint64_t)npuprof_image_ns_(im, first->ticks + closing->error_ticks) + 1;
    uint64_t drift = (uint64_t)(ns < os_ns ? os_ns - ns : ns - os_ns) + error_ns;
    if (all >> 63 == 0 && all > gone) drift = npuprof_scale_(drift, all, gone);
    npuprof_emit_uint_(o, "drift_ns", npuprof_min_(drift, INT64_MAX));
}

/* Where and when the trace was recorded. */
NPUPROF_OWN_ static void npuprof_json_origin_(npuprof_out_ *o, const npuprof_image_ *im)
{
    const npuprof_header_ *h = im->h;
    npuprof_emit_text_(o, "version", NPUPROF_VERSION_STRING);
    npuprof_emit_text_(o, "host", h->host);
    npuprof_emit_text_(o, "program", h->program);
    npuprof_emit_uint_(o, "pid", h->pid);
    npuprof_emit_int_(o, "start_unix_ns", h->first.unix_ns + im->origin_ns);
    npuprof_emit_int_(o, "start_monotonic_ns", h->first.monotonic_ns + im->origin_ns);
    npuprof_emit_int_(o, "start_boottime_ns", h->first.boot_ns + im->origin_ns);
    if (h->traceparent[0]) npuprof_emit_text_(o, "traceparent", h->traceparent);
}

/* ,"doubt":"...": what the system's clocks say against each other, if they do; rate.h. */
NPUPROF_OWN_ static void npuprof_json_doubt_(npuprof_out_ *o, const npuprof_image_ *im)
{
    static const char *const means[] = { "",
        "the system slept, or a clock was replaced: times may be off by that",
        "a program replaced the clock: the rate follows from CLOCK_BOOTTIME",
        "no clock of the system moved: a tick is drawn as a ns" };
    if (!im->doubt) return;
    const npuprof_host_anchor_ *const first = &im->h->first, *const closing = &im->closing;
    npuprof_emit_key_(o, "doubt");
    npuprof_out_puts_(o, "\"CLOCK_MONOTONIC went on by ");
    npuprof_out_int_(o, closing->monotonic_ns - first->monotonic_ns);
    npuprof_out_puts_(o, " ns while CLOCK_BOOTTIME went on by ");
    npuprof_out_int_(o, closing->boot_ns - first->boot_ns);
    npuprof_out_puts_(o, " ns; ");
    npuprof_out_puts_(o, means[im->doubt]);
    npuprof_out_puts_(o, "\"");
}

NPUPROF_OWN_ static void npuprof_json_host_clock_(npuprof_out_ *o, const npuprof_image_ *im)
{
    static const char *const sources[] = { "user", "monotonic", "tsc", "cntvct_el0", "rdtime" };
    const npuprof_header_ *h = im->h;
    const bool known = h->clock_source < sizeof sources / sizeof *sources;
    npuprof_emit_begin_(o, "clock", "{");
    npuprof_emit_text_(o, "source", known ? sources[h->clock_source] : "unknown");
    if (h->clock_hz) {
        npuprof_emit_uint_(o, "hz", h->clock_hz);
        npuprof_out_puts_(o, ".000");
    } else {
        /* ns per tick is multiplier / 2^shift. */
        const uint64_t mhz = npuprof_scale_(1000000000000u, (uint64_t)1 << im->shift, im->multiplier);
        npuprof_emit_milli_(o, "hz", (int64_t)npuprof_min_(mhz, INT64_MAX));
    }
    const int64_t error_ns = npuprof_image_ns_(im, h->first.ticks + h->first.error_ticks);
    npuprof_emit_uint_(o, "error_ns", (uint64_t)error_ns + 1 + im->doubt_ns);
    npuprof_json_doubt_(o, im);
    /* By these, a trace that is stamped with the same counter can be put beside this one. */
    const uint64_t gone_ns = (uint64_t)-im->origin_ns;
    const uint64_t before = npuprof_scale_(gone_ns, (uint64_t)1 << im->shift, im->multiplier);
    npuprof_emit_uint_(o, "start_ticks", h->first.ticks - before);
    npuprof_json_drift_(o, im);
    npuprof_emit_end_(o, "}");
}

/* What was recorded and what was lost. */
NPUPROF_OWN_ static void npuprof_json_counts_(npuprof_out_ *o, const npuprof_work_ *w)
{
#define NPUPROF_TEXT_(name, text, whole) text,
    static const char *const causes[] = { NPUPROF_LOSSES(NPUPROF_TEXT_) };
#undef NPUPROF_TEXT_
    const npuprof_image_ *im = &w->image;
    const npuprof_header_ *h = im->h;
    npuprof_emit_uint_(o, "recorded", im->events);
    npuprof_emit_begin_(o, "lost", "{");
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) npuprof_emit_uint_(o, causes[i], im->lost[i]);
    npuprof_emit_end_(o, "}");
    npuprof_emit_uint_(o, "streamed", NPUPROF_LOAD_(&h->streamed));
    npuprof_emit_text_(o, "when_full",
                       npuprof_env_policies_[h->when_full <= NPUPROF_STREAM ? h->when_full : 0]);
    if (im->damaged) npuprof_emit_uint_(o, "damaged_places", im->damaged);
    if (im->in_use) npuprof_emit_uint_(o, "changed_while_read", im->changed);
    npuprof_emit_uint_(o, "threads", im->threads);
    npuprof_emit_uint_(o, "counter_values_not_finite", w->scene.skipped_values);
}

NPUPROF_OWN_ static void npuprof_json_devices_(npuprof_work_ *w)
{
    npuprof_out_ *o = &w->out;
    const uint32_t devices = NPUPROF_LOAD_(&w->image.h->devices);
    npuprof_emit_begin_(o, "devices", "[");
    for (uint32_t n = 1; n <= devices; n++) {
        const npuprof_device_entry_ *d = npuprof_image_device_(&w->image, n);
        if (!d) continue;
        npuprof_emit_begin_(o, NULL, "{");
        npuprof_emit_name_(o, "name", &w->image, d->name);
        npuprof_emit_uint_(o, "pe_count", d->pe_count);
        npuprof_json_clock_sync_(w, d);
        npuprof_emit_end_(o, "}");
    }
    npuprof_emit_end_(o, "]");
}

/* ,"sites":[...]: where the call sites are in the code. Why here and not in each event: it is the same for
   all of a call site, and a third of a plain span's bytes. Nothing if none is known. */
NPUPROF_OWN_ static void npuprof_json_sites_(npuprof_work_ *w)
{
    npuprof_out_ *const o = &w->out;
    const npuprof_entry_ *e;
    uint32_t id = 0, any = 0;
    while ((e = npuprof_image_next_entry_(&w->image, NPUPROF_ENTRY_SITE, sizeof(npuprof_site_entry_), &id)) !=
           NULL) {
        const npuprof_site_entry_ *const site = (const npuprof_site_entry_ *)(const void *)e;
        /* Why not with results: the same call site is there without, too. */
        if (!site->file || (site->line & NPUPROF_SITE_RESULTS_)) continue;
        if (!any++) npuprof_emit_begin_(o, "sites", "[");
        npuprof_emit_begin_(o, NULL, "{");
        npuprof_emit_name_(o, "name", &w->image, site->name);
        if (site->category) npuprof_emit_name_(o, "cat", &w->image, site->category);
        npuprof_emit_name_(o, "file", &w->image, site->file);
        npuprof_emit_uint_(o, "line", site->line);
        npuprof_emit_end_(o, "}");
    }
    if (any) npuprof_emit_end_(o, "]");
}

/* ,"modules":[...]: the objects that were loaded, for names that are addresses. Nothing if none is known. */
NPUPROF_OWN_ static void npuprof_json_modules_(npuprof_work_ *w)
{
    npuprof_out_ *const o = &w->out;
    const npuprof_entry_ *e;
    uint32_t id = 0, any = 0;
    while ((e = npuprof_image_next_entry_(&w->image, NPUPROF_ENTRY_MODULE, sizeof(npuprof_module_entry_),
                                          &id)) != NULL) {
        const npuprof_module_entry_ *const m = (const npuprof_module_entry_ *)(const void *)e;
        char text[NPUPROF_ADDRESS_TEXT_];
        if (!any++) npuprof_emit_begin_(o, "modules", "[");
        npuprof_emit_begin_(o, NULL, "{");
        npuprof_emit_name_(o, "path", &w->image, m->path);
        npuprof_emit_name_(o, "build_id", &w->image, m->build_id);
        npuprof_emit_text_(o, "bias", npuprof_address_text_(text, m->bias));
        npuprof_emit_text_(o, "start", npuprof_address_text_(text, m->start));
        npuprof_emit_text_(o, "end", npuprof_address_text_(text, m->end));
        npuprof_emit_end_(o, "}");
    }
    if (any) npuprof_emit_end_(o, "]");
}

/* sites: with the table of call sites, which may be long. */
NPUPROF_OWN_ static void npuprof_json_metadata_(npuprof_work_ *w, const char *key, bool sites)
{
    npuprof_out_ *o = &w->out;
    npuprof_emit_begin_(o, key, "{");
    npuprof_emit_begin_(o, "npuprof", "{");
    npuprof_json_origin_(o, &w->image);
    npuprof_json_host_clock_(o, &w->image);
    npuprof_json_counts_(o, w);
    npuprof_json_pairs_(w, "unused_environment", NPUPROF_ENTRY_ENVIRONMENT);
    npuprof_json_pairs_(w, "user", NPUPROF_ENTRY_METADATA);
    npuprof_json_devices_(w);
    if (sites) npuprof_json_sites_(w);
    npuprof_json_modules_(w);
    npuprof_out_puts_(o, "}}");
    o->fresh = false;
}

/* Writes the JSON. The caller holds the lock of the readers. 0, or what the sink returned. */
NPUPROF_OWN_ static int npuprof_write_json_locked_(npuprof_sink sink)
{
    npuprof_work_ *const w = npuprof_work_begin_(sink);
    if (!w) return ENOMEM;
    npuprof_out_ *const o = &w->out;
    npuprof_image_open_(&w->image);
    npuprof_scene_ *const s = npuprof_work_scene_(w, &npuprof_json_output_, w);
    w->next_tid = w->image.threads + 1;
    npuprof_out_puts_(o, "{\"traceEvents\":[");
    o->fresh = true;
    npuprof_json_open_(w, "M", 0, "process_name", 0, 1);
    npuprof_emit_begin_(o, "args", "{");
    npuprof_emit_text_(o, "name", w->image.h->program[0] ? w->image.h->program : "program");
    npuprof_out_puts_(o, "}}");
    npuprof_scene_threads_(s);
    npuprof_scene_placed_(s);
    npuprof_scene_flows_(s);
    npuprof_scene_pauses_(s, 1);
    npuprof_out_fail_(o, s->error);
    npuprof_out_puts_(o, "\n],\n\"displayTimeUnit\":\"ns\",\n");
    o->fresh = true;
    npuprof_json_metadata_(w, "metadata", true);
    npuprof_out_puts_(o, "}\n");
    return npuprof_work_finish_(w);
}
#endif /* !NPUPROF_NO_JSON */
/* ==== src/write/csv.h =================================================================== >>write/csv ==== */

/* Rows of the CSV, one for each span: ids and times, which differ from row to row, then names and arguments,
   which repeat. A span without arguments has the same text each time, so that is cached by call site and
   thread (span_text.h). Times are in ns since the Unix epoch.
   Data: npuprof_work_, of the thread that holds the scratch. */

/* What a row's ids and times are made of. */
typedef struct npuprof_csv_columns_ {
    uint32_t tid, parent_tid, root_tid;
    uint32_t thread;                       /* column thread.id; 0: empty */
    uint64_t position, parent, root;       /* of the span, the span around it, and its trace's root */
    bool has_parent;
    int64_t start_ns, end_ns;              /* after the first anchor */
} npuprof_csv_columns_;

/* The columns trace_id to end. */
NPUPROF_OWN_ static inline void npuprof_csv_put_ids_(npuprof_work_ *w, const npuprof_csv_columns_ *row)
{
    const npuprof_image_ *const im = &w->image;
    npuprof_out_ *const o = &w->out;
    if (row->root_tid != w->trace_tid || row->root != w->trace_root) {
        npuprof_image_trace_id_(im, row->root_tid, row->root, w->trace_id);
        w->trace_tid = row->root_tid;
        w->trace_root = row->root;
    }
    char *p = npuprof_out_reserve_(o, 72 + 2 * NPUPROF_DIGITS_MAX_);
    memcpy(p, w->trace_id, 32);
    p += 32;
    *p++ = ',';
    if (row->has_parent) npuprof_digits_hex_(p, npuprof_image_span_id_(im, row->parent_tid, row->parent));
    else if (im->h->traceparent[0]) memcpy(p, im->h->traceparent + 36, 16);
    if (row->has_parent || im->h->traceparent[0]) p += 16;
    *p++ = ',';
    npuprof_digits_hex_(p, npuprof_image_span_id_(im, row->tid, row->position));
    p += 16;
    *p++ = ',';
    p = npuprof_digits_int_(p, im->h->first.unix_ns + row->start_ns);
    *p++ = ',';
    p = npuprof_digits_int_(p, im->h->first.unix_ns + row->end_ns);
    o->used = (size_t)(p - o->bytes);
}

/* The columns cat to operator_index, with a comma on either side. A device span's pe is that of its
   record. */
NPUPROF_OWN_ static void npuprof_csv_put_text_(npuprof_work_ *w, const npuprof_event_ *ev, uint32_t thread)
{
    enum { PE_INDEX = 1, KEYS = 5 };
    static const char keys[KEYS][18] = { "dram_base", "pe_index", "execution_index", "instruction_index",
                                            "operator_index" };
    const npuprof_image_ *const im = &w->image;
    npuprof_out_ *const o = &w->out;
    npuprof_out_puts_(o, ",");
    if (ev->category) npuprof_out_text_(o, im, ev->category, false);
    npuprof_out_puts_(o, ",");
    npuprof_out_text_(o, im, ev->name, false);
    npuprof_out_puts_(o, ",");
    if (thread) npuprof_out_uint_(o, thread);
    for (unsigned i = 0; i < KEYS; i++) {
        uint64_t value = ev->pe;
        uint32_t type = NPUPROF_ARG_UINT;
        if (i != PE_INDEX || ev->kind != NPUPROF_KIND_DEVICE)
            type = npuprof_args_find_(im, ev, keys[i], &value);
        npuprof_out_puts_(o, ",");
        if (type == NPUPROF_ARG_INT) npuprof_out_int_(o, (int64_t)value);
        else if (type) npuprof_out_uint_(o, value);
    }
    npuprof_out_puts_(o, ",");
}

/* The column source, with the comma before it and the end of the line: file and line of the call site. */
NPUPROF_OWN_ static void npuprof_csv_put_source_(npuprof_work_ *w, const npuprof_event_ *ev)
{
    const npuprof_site_entry_ *const site = npuprof_image_site_(&w->image, ev->site);
    npuprof_out_ *const o = &w->out;
    size_t length;
    npuprof_out_puts_(o, ",");
    if (site && site->file) {
        const char *const file = npuprof_image_text_(&w->image, site->file, &length);
        npuprof_out_puts_(o, "\"");
        npuprof_out_guard_(o, file, length);
        npuprof_out_escaped_(o, file, length, false);
        npuprof_out_puts_(o, ":");
        npuprof_out_uint_(o, site->line & ~NPUPROF_SITE_RESULTS_);
        npuprof_out_puts_(o, "\"");
    }
    npuprof_out_puts_(o, "\n");
}

/* A row whose text is cached. */
NPUPROF_OWN_ static inline void npuprof_csv_cached_row_(npuprof_work_ *w, const npuprof_span_text_ *cached,
                                           const npuprof_csv_columns_ *row)
{
    npuprof_csv_put_ids_(w, row);
    char *p = npuprof_out_reserve_(&w->out, NPUPROF_SPAN_TEXT_ROOM_);
    p = npuprof_span_text_copy_(p, cached);
    p = npuprof_digits_int_(p, row->end_ns - row->start_ns);
    memcpy(p, cached->text + cached->length, cached->last);
    p += cached->last;
    w->out.used = (size_t)(p - w->out.bytes);
}

/* The cached text of a span without arguments, made if it is new. NULL: it is too long for the cache. */
NPUPROF_OWN_ static const npuprof_span_text_ *npuprof_csv_cache_text_(npuprof_work_ *w, const npuprof_event_ *ev,
                                                         uint32_t thread)
{
    const uint64_t key = npuprof_span_text_key_(thread, ev->site, ev->kind);
    npuprof_span_text_ *const cached = npuprof_span_text_at_(w, key);
    npuprof_out_ aside;
    if (cached->key == key) return cached;
    npuprof_span_text_begin_(w, cached, &aside);
    npuprof_csv_put_text_(w, ev, thread);
    const size_t used = w->out.used;
    npuprof_csv_put_source_(w, ev);
    const size_t last = w->out.used - used;
    if (!npuprof_span_text_end_(w, cached, key, &aside)) return NULL;
    npuprof_span_text_split_(cached, (uint32_t)last);
    return cached;
}

NPUPROF_OWN_ static void npuprof_csv_row_(npuprof_work_ *w, const npuprof_event_ *ev, const npuprof_csv_columns_ *row)
{
    const bool is_plain = row->thread && ev->args == ev->args_end && !ev->results;
    const npuprof_span_text_ *const cached = is_plain ? npuprof_csv_cache_text_(w, ev, row->thread) : NULL;
    if (cached) {
        npuprof_csv_cached_row_(w, cached, row);
        return;
    }
    npuprof_csv_put_ids_(w, row);
    npuprof_csv_put_text_(w, ev, row->thread);
    npuprof_out_int_(&w->out, row->end_ns - row->start_ns);
    npuprof_csv_put_source_(w, ev);
}

/* Fills in the row of the thread's span that the walk has just given. */
NPUPROF_OWN_ static inline void npuprof_csv_thread_columns_(const npuprof_work_ *w, npuprof_csv_columns_ *row,
                                               uint64_t start, uint64_t end, uint64_t position)
{
    row->tid = row->parent_tid = row->root_tid = row->thread = w->walk.tid;
    row->position = position;
    row->has_parent = w->walk.has_parent;
    row->parent = w->walk.parent;
    row->root = w->walk.root;
    row->start_ns = npuprof_image_ns_(&w->image, start);
    row->end_ns = npuprof_image_ns_(&w->image, end);
    if (row->end_ns < row->start_ns) row->end_ns = row->start_ns;
}

/* The fast path: writes the plain spans that come next, as long as their text is cached. */
NPUPROF_OWN_ static void npuprof_csv_plain_(npuprof_work_ *w)
{
    npuprof_plain_walk_ c = npuprof_cursor_begin_plains_(&w->walk.cursor[0]);
    npuprof_plain_ p;
    npuprof_csv_columns_ row;
    while (npuprof_cursor_peek_plain_(&c, &p)) {
        const uint64_t key = npuprof_span_text_key_(w->walk.tid, p.site, NPUPROF_KIND_SPAN);
        const npuprof_span_text_ *const cached = npuprof_span_text_at_(w, key);
        if (cached->key != key) break;
        const uint64_t position = npuprof_cursor_plain_position_(&w->walk.cursor[0], &c);
        npuprof_walk_plain_(&w->walk, &p, position);
        npuprof_csv_thread_columns_(w, &row, p.start, p.end, position);
        npuprof_csv_cached_row_(w, cached, &row);
        c.at++;
    }
    (void)npuprof_cursor_end_plains_(&w->walk.cursor[0], &c);
}

/* The row of a span that has a place of its own: a device span, `within` an execution or NULL, or one with
   stamps of the caller's. Its parent is the execution, else the span that submitted it. */
NPUPROF_OWN_ static void npuprof_csv_device_(npuprof_device_walk_ *d, const npuprof_event_ *ev, const npuprof_placed_ *p,
                                const npuprof_execution_ *within)
{
    npuprof_csv_columns_ row;
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
    npuprof_csv_row_(npuprof_work_of_(d), ev, &row);
}
/* ==== src/write/csv_memory.h ===================================================== >>write/csv_memory ==== */

/* The CSV as a whole: the rows of all threads, of the devices, of spans with stamps of the caller's, and
   behind them a row for the peak of each memory pool. What the scratch had no space for is a last such
   row. */

/* A row that is no span: it has no ids, and its name is put by the caller, up to
   npuprof_csv_end_memory_(). */
NPUPROF_OWN_ static void npuprof_csv_begin_memory_(npuprof_work_ *w, int64_t ns)
{
    npuprof_out_puts_(&w->out, ",,,");
    npuprof_out_int_(&w->out, ns);
    npuprof_out_puts_(&w->out, ",");
    npuprof_out_int_(&w->out, ns);
    npuprof_out_puts_(&w->out, ",\"memory\",\"");
}

NPUPROF_OWN_ static void npuprof_csv_end_memory_(npuprof_work_ *w)
{
    npuprof_out_puts_(&w->out, "\",,,,,,,0,\n");
}

NPUPROF_OWN_ static void npuprof_csv_memory_text_(npuprof_work_ *w, uint32_t id)
{
    size_t length;
    const char *const text = npuprof_image_text_(&w->image, id, &length);
    npuprof_out_escaped_(&w->out, text, length, false);
}

NPUPROF_OWN_ static void npuprof_csv_put_left_out_(npuprof_work_ *w, uint64_t count, const char *what)
{
    if (!count) return;
    npuprof_csv_begin_memory_(w, w->image.h->first.unix_ns);
    npuprof_out_uint_(&w->out, count);
    npuprof_out_puts_(&w->out, what);
    npuprof_out_puts_(&w->out, " are left out: NPUPROF_SCRATCH_BYTES");
    npuprof_csv_end_memory_(w);
}

/* A row for the peak of each memory pool. */
NPUPROF_OWN_ static void npuprof_csv_memory_(npuprof_work_ *w)
{
    npuprof_out_ *const o = &w->out;
    if (!(w->image.kinds >> NPUPROF_KIND_MEMORY & 1)) return;
    const npuprof_pool_reports_ pools = npuprof_work_collect_pools_(w);
    for (const npuprof_pool_report_ *p = pools.list; p < pools.end; p++) {
        npuprof_csv_begin_memory_(w, w->image.h->first.unix_ns + npuprof_image_ns_(&w->image, p->used_ticks));
        size_t length;
        const char *const device = npuprof_image_text_(&w->image, p->device, &length);
        npuprof_out_guard_(o, device, length);
        npuprof_csv_memory_text_(w, p->device);
        npuprof_out_puts_(o, " used_bytes=");
        npuprof_out_uint_(o, p->peaks.used_bytes);
        npuprof_out_puts_(o, " allocated_bytes=");
        npuprof_out_uint_(o, p->peaks.held_bytes);
        npuprof_out_puts_(o, " tag=");
        npuprof_csv_memory_text_(w, p->used_tag);
        npuprof_csv_end_memory_(w);
    }
    npuprof_csv_put_left_out_(w, pools.records_left_out, " records of further pools");
    npuprof_csv_put_left_out_(w, pools.threads_left_out, " threads' memory records");
}

/* The rows of a thread's spans. */
NPUPROF_OWN_ static void npuprof_csv_thread_(npuprof_work_ *w, uint32_t tid)
{
    npuprof_event_ ev;
    npuprof_csv_columns_ row;
    npuprof_walk_begin_(&w->walk, &w->image, tid);
    for (;;) {
        if (w->walk.sources == 1) npuprof_csv_plain_(w);
        if (!npuprof_walk_next_(&w->walk, &ev)) break;
        if (ev.kind > NPUPROF_KIND_OPERATOR) continue;
        npuprof_csv_thread_columns_(w, &row, ev.start, ev.end, ev.position);
        npuprof_csv_row_(w, &ev, &row);
    }
}

/* The rows of finished and async spans, in the order of time. */
NPUPROF_OWN_ static void npuprof_csv_placed_(npuprof_device_walk_ *d)
{
    const uint32_t kinds = 1u << NPUPROF_KIND_FINISHED | 1u << NPUPROF_KIND_ASYNC_BEGIN;
    npuprof_work_ *const w = npuprof_work_of_(d);
    npuprof_placed_walk_ spans = npuprof_placed_begin_(&w->image, kinds);
    npuprof_event_ ev;
    for (const npuprof_placed_ *p; (p = npuprof_placed_next_(&spans, &ev)) != NULL;)
        npuprof_csv_device_(d, &ev, p, NULL);
    npuprof_out_fail_(&w->out, spans.error);
}

/* Writes the CSV. Returns 0 or an errno value. */
NPUPROF_OWN_ static int npuprof_csv_write_locked_(npuprof_sink sink)
{
    npuprof_work_ *const w = npuprof_work_begin_(sink);
    npuprof_device_walk_ d;
    if (!w) return ENOMEM;
    npuprof_image_open_(&w->image);
    npuprof_out_puts_(&w->out,
                      "trace_id,parent_span_id,span_id,start,end,cat,name,thread.id,dram_base,pe_index,"
                               "execution_index,instruction_index,operator_index,dur,source\n");
    for (uint32_t tid = 0; (tid = npuprof_image_next_tid_(&w->image, tid)) != 0;) npuprof_csv_thread_(w, tid);
    memset(&d, 0, sizeof d);
    d.user = w;
    d.span = npuprof_csv_device_;
    npuprof_work_walk_devices_(&d);
    npuprof_csv_placed_(&d);
    npuprof_csv_memory_(w);
    return npuprof_work_finish_(w);
}
/* ==== src/write/sheet.h =============================================================== >>write/sheet ==== */

/* The operators' sheet, which NPUPROF_OUTPUT_PATH=d/ writes: settings, a row for each operator, totals, with
   formulas that a spreadsheet computes. An operator is a span with the argument ne.type. Spans whose texts
   are the same are one operator; its latency is their mean. Warm-up is left out.
   tools/npuprof/report/operator_sheet.py writes the same sheet, byte for byte; a test compares them.
   Data: npuprof_sheet_, whose list and buckets lie in the upper half of the scratch's space for sorting, of
   the thread that holds the scratch. Texts are not copied: an operator keeps the place of its first span. */

/* The texts of an operator are its first columns. "": the span's name. */
enum { NPUPROF_SHEET_TYPE_, NPUPROF_SHEET_NAME_ = 2, NPUPROF_SHEET_WEIGHT_ = 9, NPUPROF_SHEET_TEXTS_ };
static const char npuprof_sheet_keys_[NPUPROF_SHEET_TEXTS_][17] = {
    "ne.type", "ne.post_op", "", "ne.input_names", "ne.input_shapes", "ne.input_dtypes",
    "ne.output_names", "ne.output_shapes", "ne.output_dtypes", "ne.weight_shape" };
static const char npuprof_sheet_head_[] =
    "operator type,post op,operator name,input tensor name,input shape,input dtype,output tensor name,"
    "output shape,output dtype,weight shape,weight sparse ratio,sparse support,operator latency (ms),"
    "aim to weight sparse ratio,sparse kernel pref ratio,aim to sparse latency(ms)\n";

typedef struct npuprof_sheet_text_ {
    const char *text;
    size_t length;
    bool cut;                              /* the recorder cut it to the longest length */
} npuprof_sheet_text_;

typedef struct npuprof_sheet_row_ {
    uint64_t locator;                      /* of the operator's first span */
    uint64_t count, ns;                    /* of all its spans */
    uint32_t hash, next;                   /* next: of the same bucket, index + 1 */
    uint32_t shape, pad;                   /* shape: number, from 1, of its setting; 0: it cannot be sparse */
} npuprof_sheet_row_;

typedef struct npuprof_sheet_ {
    npuprof_device_walk_ walk;             /* first: callbacks of the walk get a pointer to it */
    npuprof_sheet_row_ *list;
    uint32_t *buckets;                     /* by hash: index + 1 */
    size_t count, capacity, shapes;
    uint64_t left_out;                     /* spans of operators that had no space */
} npuprof_sheet_;

/* ---- What a span says of its operator */

NPUPROF_OWN_ static bool npuprof_sheet_is_text_(const npuprof_value_ *v)
{
    return v->type == NPUPROF_ARG_STR || v->type == NPUPROF_ARG_STR_CUT_;
}

/* The text of column i; "" if the span does not have it. */
NPUPROF_OWN_ static npuprof_sheet_text_ npuprof_sheet_operator_text_(const npuprof_image_ *im, const npuprof_event_ *ev,
                                                        unsigned i)
{
    npuprof_sheet_text_ p = { "", 0, false };
    npuprof_value_ v;
    if (i == NPUPROF_SHEET_NAME_) {
        p.text = npuprof_image_text_(im, ev->name, &p.length);
    } else if (npuprof_args_find_value_(im, ev, npuprof_sheet_keys_[i], &v) && npuprof_sheet_is_text_(&v)) {
        p.text = (const char *)v.text;
        p.length = v.length;
        p.cut = v.type == NPUPROF_ARG_STR_CUT_;
    }
    return p;
}

NPUPROF_OWN_ static bool npuprof_sheet_same_text_(npuprof_sheet_text_ a, npuprof_sheet_text_ b)
{
    return a.length == b.length && a.cut == b.cut && memcmp(a.text, b.text, a.length) == 0;
}

NPUPROF_OWN_ static bool npuprof_sheet_same_operator_(const npuprof_image_ *im, const npuprof_event_ *a,
                                         const npuprof_event_ *b)
{
    for (unsigned i = 0; i < NPUPROF_SHEET_TEXTS_; i++)
        if (!npuprof_sheet_same_text_(npuprof_sheet_operator_text_(im, a, i),
                                      npuprof_sheet_operator_text_(im, b, i))) return false;
    return true;
}

/* The share of zeros in the weight; below 0: it is not known. */
NPUPROF_OWN_ static double npuprof_sheet_sparse_ratio_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    npuprof_value_ v;
    union { uint64_t u; double d; } bits;
    if (!npuprof_args_find_value_(im, ev, "ne.sparse_ratio", &v)) return -1;
    bits.u = v.bits;
    if (v.type == NPUPROF_ARG_REAL) return bits.d >= 0 && bits.d <= 1 ? bits.d : -1;
    return (v.type == NPUPROF_ARG_INT || v.type == NPUPROF_ARG_UINT) && v.bits <= 1 ? (double)v.bits : -1;
}

/* Is it this word, in any case of letters? */
NPUPROF_OWN_ static bool npuprof_sheet_is_word_(npuprof_sheet_text_ p, const char *word)
{
    if (p.length != strlen(word) || p.cut) return false;
    for (size_t i = 0; i < p.length; i++)
        if ((p.text[i] >= 'A' && p.text[i] <= 'Z' ? p.text[i] + 32 : p.text[i]) != word[i]) return false;
    return true;
}

/* Is it a shape NxM, where N is a multiple of 4? A sparse kernel takes 4 rows at a time. */
NPUPROF_OWN_ static bool npuprof_sheet_is_by_four_(npuprof_sheet_text_ p)
{
    size_t digits = 0, rest;
    while (digits < p.length && p.text[digits] >= '0' && p.text[digits] <= '9') digits++;
    if (!digits || digits + 1 >= p.length || p.text[digits] != 'x' || p.cut) return false;
    for (rest = digits + 1; rest < p.length && p.text[rest] >= '0' && p.text[rest] <= '9'; rest++) {}
    const int tens = digits > 1 ? p.text[digits - 2] - '0' : 0;
    return rest == p.length && (tens * 10 + p.text[digits - 1] - '0') % 4 == 0;
}

/* Could a sparse kernel do it? The argument ne.sparse_support says so; without it, matrix products with a
   weight by four that is less than half zeros. */
NPUPROF_OWN_ static bool npuprof_sheet_can_be_sparse_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    npuprof_value_ v;
    const npuprof_sheet_text_ type = npuprof_sheet_operator_text_(im, ev, 0);
    const npuprof_sheet_text_ weight = npuprof_sheet_operator_text_(im, ev, NPUPROF_SHEET_WEIGHT_);
    if (npuprof_args_find_value_(im, ev, "ne.sparse_support", &v) && v.type != NPUPROF_ARG_STR_NULL_)
        return v.type == NPUPROF_ARG_BOOL && v.bits && weight.length;
    if (!npuprof_sheet_is_word_(type, "innerproduct") && !npuprof_sheet_is_word_(type, "matmul"))
        return false;
    return npuprof_sheet_is_by_four_(weight) && npuprof_sheet_sparse_ratio_(im, ev) < 0.5;
}

/* ---- Collecting operators */

/* Hash of all texts of an operator. */
NPUPROF_OWN_ static uint64_t npuprof_sheet_hash_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    uint64_t h = 0;
    for (unsigned i = 0; i < NPUPROF_SHEET_TEXTS_; i++) {
        const npuprof_sheet_text_ p = npuprof_sheet_operator_text_(im, ev, i);
        h = npuprof_hash_mix_(h ^ npuprof_hash_text_(p.text, p.length));
    }
    return h;
}

/* Adds a span of this duration to its operator, a new one if it has none. Other spans: nothing. */
NPUPROF_OWN_ static void npuprof_sheet_add_(npuprof_sheet_ *t, const npuprof_event_ *ev, uint64_t ns)
{
    const npuprof_image_ *im = &npuprof_work_of_(&t->walk)->image;
    npuprof_value_ v;
    npuprof_event_ other;
    if (ev->unfinished || !npuprof_args_find_value_(im, ev, "ne.type", &v) || !npuprof_sheet_is_text_(&v))
        return;
    const uint64_t h = npuprof_sheet_hash_(im, ev);
    uint32_t *const bucket = &t->buckets[h % t->capacity], first = *bucket;
    for (uint32_t i = first; i; i = t->list[i - 1].next) {
        npuprof_sheet_row_ *const op = &t->list[i - 1];
        if (op->hash != (uint32_t)h || !npuprof_cursor_decode_at_(im, op->locator, &other)) continue;
        if (!npuprof_sheet_same_operator_(im, ev, &other)) continue;
        op->count++;
        op->ns += ns;
        return;
    }
    if (t->count == t->capacity) {
        t->left_out++;
        return;
    }
    npuprof_sheet_row_ *const op = &t->list[t->count++];
    memset(op, 0, sizeof *op);
    op->locator = ev->locator;
    op->hash = (uint32_t)h;
    op->next = first;
    op->count = 1;
    op->ns = ns;
    *bucket = (uint32_t)t->count;
}

/* A span that has a place of its own: of a device, or with stamps of the caller's. */
NPUPROF_OWN_ static void npuprof_sheet_device_(npuprof_device_walk_ *d, const npuprof_event_ *ev, const npuprof_placed_ *p,
                                  const npuprof_execution_ *within)
{
    if (within ? within->warm_up : ev->has_link && ev->link.warm_up) return;
    npuprof_sheet_add_((npuprof_sheet_ *)(void *)d, ev, (uint64_t)(p->end_ns - p->start_ns));
}

/* The spans of a thread. */
NPUPROF_OWN_ static void npuprof_sheet_collect_thread_(npuprof_sheet_ *t, uint32_t tid)
{
    npuprof_walk_ *const walk = &npuprof_work_of_(&t->walk)->walk;
    const npuprof_image_ *const im = &npuprof_work_of_(&t->walk)->image;
    npuprof_event_ ev;
    npuprof_walk_begin_(walk, im, tid);
    while (npuprof_walk_next_(walk, &ev)) {
        const int64_t ns = npuprof_image_ns_(im, ev.end) - npuprof_image_ns_(im, ev.start);
        if (ev.kind > NPUPROF_KIND_OPERATOR || walk->warm_up) continue;
        npuprof_sheet_add_(t, &ev, ns > 0 ? (uint64_t)ns : 0);
    }
}

/* All spans: those of threads, of devices, and those with stamps of the caller's. */
NPUPROF_OWN_ static void npuprof_sheet_collect_(npuprof_sheet_ *t)
{
    npuprof_work_ *const w = npuprof_work_of_(&t->walk);
    const npuprof_image_ *const im = &w->image;
    npuprof_event_ ev;
    for (uint32_t tid = 0; (tid = npuprof_image_next_tid_(im, tid)) != 0;)
        npuprof_sheet_collect_thread_(t, tid);
    t->walk.span = npuprof_sheet_device_;
    npuprof_work_walk_devices_(&t->walk);
    const uint32_t kinds = 1u << NPUPROF_KIND_FINISHED;
    npuprof_placed_walk_ spans = npuprof_placed_begin_(im, kinds);
    for (const npuprof_placed_ *p; (p = npuprof_placed_next_(&spans, &ev)) != NULL;)
        npuprof_sheet_device_(&t->walk, &ev, p, NULL);
    npuprof_out_fail_(&w->out, spans.error);
}

/* ---- Writing the sheet */

/* A cell. guarded: its first character does not make it a formula. A cut text ends in an ellipsis. */
NPUPROF_OWN_ static void npuprof_sheet_put_text_(npuprof_out_ *o, npuprof_sheet_text_ p, bool guarded)
{
    bool quoted = false;
    for (size_t i = 0; i < p.length; i++) quoted |= memchr(",\"\r\n", p.text[i], 4) != NULL;
    if (quoted) npuprof_out_puts_(o, "\"");
    if (guarded) npuprof_out_guard_(o, p.text, p.length);
    npuprof_out_escaped_(o, p.text, p.length, false);
    if (p.cut) npuprof_out_puts_(o, "\xE2\x80\xA6");
    if (quoted) npuprof_out_puts_(o, "\"");
}

/* An operator's row, number r of the sheet. The formulas look up the ratio in the settings of its shape. */
NPUPROF_OWN_ static void npuprof_sheet_put_row_(npuprof_sheet_ *t, const npuprof_sheet_row_ *op, size_t r)
{
    npuprof_out_ *const o = &npuprof_work_of_(&t->walk)->out;
    const npuprof_image_ *im = &npuprof_work_of_(&t->walk)->image;
    npuprof_event_ ev;
    char text[400];
    if (!npuprof_cursor_decode_at_(im, op->locator, &ev)) return;
    for (unsigned i = 0; i < NPUPROF_SHEET_TEXTS_; i++) {
        npuprof_sheet_put_text_(o, npuprof_sheet_operator_text_(im, &ev, i), true);
        npuprof_out_puts_(o, ",");
    }
    const double ratio = npuprof_sheet_sparse_ratio_(im, &ev);
    const unsigned hundredths = ratio < 0 ? 0 : (unsigned)(ratio * 10000 + 0.5);
    const unsigned long long ns = (2 * op->ns + op->count) / (2 * op->count), n = r, s = op->shape + 1;
    if (ratio >= 0) snprintf(text, sizeof text, "%u.%02u%%", hundredths / 100, hundredths % 100);
    npuprof_out_puts_(o, ratio >= 0 ? text : "");
    snprintf(text, sizeof text, ",%s,%llu.%06llu,", op->shape ? "true" : "", ns / 1000000, ns % 1000000);
    npuprof_out_puts_(o, text);
    if (op->shape)
        snprintf(text, sizeof text, "90%%,\"=IF(OR(N%llu=0.9,N%llu=\"\"90%%\"\"),B%llu,"
                 "IF(OR(N%llu=0.8,N%llu=\"\"80%%\"\"),C%llu,"
                 "IF(OR(N%llu=0.7,N%llu=\"\"70%%\"\"),D%llu,E%llu)))\","
                 "\"=IF(O%llu>0,M%llu/O%llu,M%llu)\"\n", n, n, s, n, n, s, n, n, s, s, n, n, n, n);
    else
        snprintf(text, sizeof text, ",,=M%llu\n", n);
    npuprof_out_puts_(o, text);
}

/* How many spans each operator is the mean of, and what was left out. */
NPUPROF_OWN_ static void npuprof_sheet_put_notes_(npuprof_sheet_ *t)
{
    npuprof_out_ *const o = &npuprof_work_of_(&t->walk)->out;
    uint64_t min = UINT64_MAX, max = 0;
    for (size_t i = 0; i < t->count; i++) {
        min = npuprof_min_(min, t->list[i].count);
        max = npuprof_max_(max, t->list[i].count);
    }
    npuprof_out_puts_(o, "\"operator latency: mean of ");
    npuprof_out_uint_(o, min);
    if (max != min) {
        npuprof_out_puts_(o, " to ");
        npuprof_out_uint_(o, max);
    }
    npuprof_out_puts_(o, " spans for each operator, warm-up left out\"\n");
    if (!t->left_out) return;
    npuprof_out_uint_(o, t->left_out);
    npuprof_out_puts_(o, " spans of further operators are left out: NPUPROF_SCRATCH_BYTES\n");
}

/* The totals of the rows from number `first` on, as formulas. */
NPUPROF_OWN_ static void npuprof_sheet_put_totals_(npuprof_sheet_ *t, unsigned long long first)
{
    npuprof_out_ *const o = &npuprof_work_of_(&t->walk)->out;
    const unsigned long long last = first + t->count - 1, at = last + 1;
    char text[400];
    static const char before[] = ",,,,,,,,,,,";
    snprintf(text, sizeof text, "%stotal latency(ms),=SUM(M%llu:M%llu),,"
             "total aim to sparse latency(ms),=SUM(P%llu:P%llu),sparse improve,"
             "\"=IF(P%llu>0,M%llu/P%llu,1)\"\n", before, first, last, first, last, at, at, at);
    npuprof_out_puts_(o, text);
    snprintf(text, sizeof text, "%ssparse support latency(ms),"
             "\"=SUMIF(O%llu:O%llu,\"\">0\"\",M%llu:M%llu)\",,"
             "aim to sparse support latency(ms),\"=SUMIF(O%llu:O%llu,\"\">0\"\",P%llu:P%llu)\"\n",
             before, first, last, first, last, first, last, first, last);
    npuprof_out_puts_(o, text);
    snprintf(text, sizeof text, "%ssparse support latency ratio,=M%llu/(M%llu+0.000001),,"
             "aim to sparse support latency ratio,"
             "\"=IF(P%llu>0,P%llu/P%llu,0)\"\n", before, at + 1, at, at, at + 1, at);
    npuprof_out_puts_(o, text);
}

/* A row of settings for each shape of a weight that can be sparse; numbers the shapes. */
NPUPROF_OWN_ static void npuprof_sheet_put_settings_(npuprof_sheet_ *t)
{
    const npuprof_image_ *im = &npuprof_work_of_(&t->walk)->image;
    npuprof_out_ *const o = &npuprof_work_of_(&t->walk)->out;
    npuprof_event_ ev, other;
    npuprof_out_puts_(o, "weight shape,90% 4x1 perf ratio,80% 4x1 perf ratio,70% 4x1 perf ratio,others\n");
    for (size_t i = 0; i < t->count; i++) {
        npuprof_sheet_row_ *const op = &t->list[i];
        if (!npuprof_cursor_decode_at_(im, op->locator, &ev) || !npuprof_sheet_can_be_sparse_(im, &ev))
            continue;
        const npuprof_sheet_text_ weight = npuprof_sheet_operator_text_(im, &ev, NPUPROF_SHEET_WEIGHT_);
        for (size_t k = 0; k < i && !op->shape; k++)
            if (t->list[k].shape && npuprof_cursor_decode_at_(im, t->list[k].locator, &other) &&
                npuprof_sheet_same_text_(weight,
                                         npuprof_sheet_operator_text_(im, &other, NPUPROF_SHEET_WEIGHT_)))
                op->shape = t->list[k].shape;
        if (op->shape) continue;
        op->shape = (uint32_t)++t->shapes;
        npuprof_sheet_put_text_(o, weight, false);
        npuprof_out_puts_(o, ",4,4,4,1\n");
    }
}

/* Writes the sheet. Returns 0 or an errno value; ENOENT: there are no operators. */
NPUPROF_OWN_ static int npuprof_sheet_write_locked_(npuprof_sink sink)
{
    npuprof_work_ *const w = npuprof_work_begin_(sink);
    npuprof_sheet_ t;
    if (!w) return ENOMEM;
    memset(&t, 0, sizeof t);
    npuprof_image_open_(&w->image);
    t.walk.user = w;
    t.capacity = w->room_bytes / (sizeof *t.list + sizeof *t.buckets);
    t.list = (npuprof_sheet_row_ *)w->room;
    t.buckets = (uint32_t *)(void *)(t.list + t.capacity);
    if (t.capacity) npuprof_sheet_collect_(&t);
    if (!t.count) {
        const int error = npuprof_work_end_(w);
        return error ? error : ENOENT;
    }
    npuprof_sheet_put_settings_(&t);
    npuprof_out_puts_(&w->out, npuprof_sheet_head_);
    for (size_t i = 0; i < t.count; i++) npuprof_sheet_put_row_(&t, &t.list[i], t.shapes + 3 + i);
    npuprof_sheet_put_totals_(&t, t.shapes + 3);
    npuprof_sheet_put_notes_(&t);
    return npuprof_work_finish_(w);
}
#endif /* !NPUPROF_RECORD_ONLY */
#ifndef NPUPROF_NO_REPORTS
/* ==== src/report/common.h =========================================================== >>report/common ==== */

/* What all printed tables need: a report holds the scratch from npuprof_report_begin_() to
   npuprof_report_end_(), reads the image from its work area, and prints to a FILE. Tables are for people:
   names in them cannot control a terminal. Numbers are made of integers, so the locale changes no decimal
   point.
   Data: the work area, of the thread that holds the scratch. */

/* A sink for work areas that write nothing. */
NPUPROF_OWN_ static int npuprof_report_discard_(void *user, const void *bytes, size_t count)
{
    (void)user;
    (void)bytes;
    (void)count;
    return 0;
}

/* Opens what the reader is to read. *work: NULL if that is refused. */
NPUPROF_OWN_ static npuprof_result npuprof_report_open_(npuprof_work_ **work)
{
    static const npuprof_sink nowhere = { npuprof_report_discard_, NULL };
    *work = NULL;
    if (!npuprof_scratch_lock_()) return npuprof_scratch_result_();
    *work = npuprof_work_begin_(nowhere);
    if (*work) npuprof_image_open_(&(*work)->image);
    else npuprof_scratch_unlock_();
    return *work ? NPUPROF_OK : NPUPROF_ERR_MEMORY;
}

/* The same, for a table that is printed. */
NPUPROF_OWN_ static npuprof_result npuprof_report_begin_(FILE *out, npuprof_work_ **work)
{
    return out ? npuprof_report_open_(work) : NPUPROF_REFUSE_("npuprof_print_...: out is NULL");
}

NPUPROF_OWN_ static npuprof_result npuprof_report_end_(FILE *out, npuprof_work_ *w)
{
    const int error = npuprof_work_end_(w);
    npuprof_scratch_unlock_();
    return ferror(out) ? NPUPROF_ERR_IO : npuprof_os_result_(error);
}

/* The finished host spans of one kind outside warm-up records, thread by thread. */
typedef struct npuprof_report_spans_ {
    npuprof_work_ *work;
    uint32_t tid, kind;                    /* tid 0: not begun */
} npuprof_report_spans_;

NPUPROF_OWN_ static npuprof_report_spans_ npuprof_report_spans_of_(npuprof_work_ *w, uint32_t kind)
{
    npuprof_report_spans_ it;
    it.work = w;
    it.tid = 0;
    it.kind = kind;
    return it;
}

/* The next span and its duration. False: there are no more. */
NPUPROF_OWN_ static bool npuprof_report_next_span_(npuprof_report_spans_ *it, npuprof_event_ *ev, uint64_t *duration_ns)
{
    const npuprof_image_ *const im = &it->work->image;
    npuprof_walk_ *const walk = &it->work->walk;
    for (;;) {
        while (it->tid && npuprof_walk_next_(walk, ev)) {
            if (ev->kind != it->kind || ev->unfinished || walk->warm_up) continue;
            const int64_t ns = npuprof_image_ns_(im, ev->end) - npuprof_image_ns_(im, ev->start);
            *duration_ns = ns > 0 ? (uint64_t)ns : 0;
            return true;
        }
        const uint32_t next = npuprof_image_next_tid_(im, it->tid);
        if (!next) return false;
        it->tid = next;
        npuprof_walk_begin_(walk, im, next);
    }
}

/* A string of the table as a cell, in `cell`: '?' for what a terminal would obey, cut to bytes - 1. */
NPUPROF_OWN_ static const char *npuprof_report_cell_(const npuprof_image_ *im, uint32_t id, char *cell, size_t bytes)
{
    size_t length, used = 0;
    const char *const text = npuprof_image_text_(im, id, &length);
    length = npuprof_utf8_cut_(text, length, bytes - 1);
    for (size_t i = 0; i < length; used++) {
        const size_t control = npuprof_utf8_control_length_((const uint8_t *)text + i, length - i);
        cell[used] = control ? '?' : text[i];
        i += control ? control : 1;
    }
    cell[used] = 0;
    return cell;
}

/* Hundredths of a percent that `part` is of `whole`, rounded half up. */
NPUPROF_OWN_ static uint64_t npuprof_report_share_(uint64_t part, uint64_t whole)
{
    return whole ? (npuprof_scale_(part, 20000, whole) + 1) / 2 : 0;
}
/* ==== src/report/summary.h ========================================================= >>report/summary ==== */

/* The summary of inferences: count, extremes, mean and percentiles of their durations, exact however many
   there are. No duration is stored. A percentile is an order statistic, or lies between two; an order
   statistic is found byte by byte from the top: a walk over all spans counts the next byte of those that have
   the bytes found so far. */

enum { NPUPROF_REPORT_HISTOGRAM_ = 256 };      /* numbers in one: by the value of a byte */

/* Finds the durations of `ranks` ranks (0 is the shortest), which lie in `histograms` meanwhile, one each.
   rank[] is used up. */
NPUPROF_OWN_ static void npuprof_report_find_ranks_(npuprof_work_ *w, uint32_t kind, uint64_t *histograms, uint64_t rank[],
                                       size_t ranks, uint64_t value[])
{
    npuprof_event_ ev;
    uint64_t ns;
    for (size_t i = 0; i < ranks; i++) value[i] = 0;
    for (unsigned shift = 64; shift;) {
        const unsigned above = shift;
        shift -= 8;
        memset(histograms, 0, ranks * NPUPROF_REPORT_HISTOGRAM_ * sizeof *histograms);
        npuprof_report_spans_ it = npuprof_report_spans_of_(w, kind);
        while (npuprof_report_next_span_(&it, &ev, &ns))
            for (size_t i = 0; i < ranks; i++)
                if (above == 64 || ns >> above == value[i] >> above)
                    histograms[i * NPUPROF_REPORT_HISTOGRAM_ + (ns >> shift & 255)]++;
        for (size_t i = 0; i < ranks; i++) {
            const uint64_t *const count = histograms + i * NPUPROF_REPORT_HISTOGRAM_;
            unsigned byte = 0;
            while (byte < 255 && rank[i] >= count[byte]) rank[i] -= count[byte++];
            value[i] |= (uint64_t)byte << shift;
        }
    }
}

/* The same for any number of ranks: as many at a time as the scratch has space for, at least one. */
NPUPROF_OWN_ static void npuprof_report_order_statistics_(npuprof_work_ *w, uint32_t kind, uint64_t rank[], size_t ranks,
                                             uint64_t value[])
{
    uint64_t single[NPUPROF_REPORT_HISTOGRAM_];
    const size_t fit = w->room_bytes / sizeof single, most = fit ? fit : 1;
    uint64_t *const histograms = fit ? (uint64_t *)w->room : single;
    for (size_t i = 0; i < ranks; i += most) {
        const size_t now = ranks - i < most ? ranks - i : most;
        npuprof_report_find_ranks_(w, kind, histograms, rank + i, now, value + i);
    }
}

enum { NPUPROF_REPORT_QUANTILES_ = 6 };
static const unsigned npuprof_report_per_mille_[NPUPROF_REPORT_QUANTILES_] = { 500, 900, 950, 970, 990, 999 };

/* The quantiles of `count` durations: linear interpolation between order statistics (type 7), rounded half
   up. */
NPUPROF_OWN_ static void npuprof_report_quantiles_(npuprof_work_ *w, uint32_t kind, uint64_t count, uint64_t quantile[])
{
    enum { RANKS = 2 * NPUPROF_REPORT_QUANTILES_ };
    uint64_t rank[RANKS], value[RANKS];
    for (unsigned i = 0; i < NPUPROF_REPORT_QUANTILES_; i++) {
        const uint64_t below = (count - 1) * npuprof_report_per_mille_[i] / 1000;
        rank[2 * i] = below;
        rank[2 * i + 1] = below + 1 < count ? below + 1 : below;
    }
    npuprof_report_order_statistics_(w, kind, rank, RANKS, value);
    for (unsigned i = 0; i < NPUPROF_REPORT_QUANTILES_; i++) {
        const uint64_t part = (count - 1) * npuprof_report_per_mille_[i] % 1000;
        quantile[i] = value[2 * i] + ((value[2 * i + 1] - value[2 * i]) * part + 500) / 1000;
    }
}

NPUPROF_OWN_ static void npuprof_report_print_line_(FILE *out, const char *what, uint64_t value)
{
    fprintf(out, "%-32s: %llu\n", what, (unsigned long long)value);
}

NPUPROF_API_ npuprof_result npuprof_print_summary(FILE *out)
{
    npuprof_work_ *w;
    const npuprof_result refused = npuprof_report_begin_(out, &w);
    if (refused) return refused;
    npuprof_event_ ev;
    uint64_t count = 0, total = 0, min = UINT64_MAX, max = 0, ns;
    npuprof_report_spans_ it = npuprof_report_spans_of_(w, NPUPROF_KIND_INFERENCE);
    while (npuprof_report_next_span_(&it, &ev, &ns)) {
        count++;
        total += ns;
        if (ns < min) min = ns;
        if (ns > max) max = ns;
    }
    fprintf(out, "================================================\n  Inference Results Summary\n"
                 "================================================\n");
    npuprof_report_print_line_(out, "Inference counts", count);
    if (count) {
        uint64_t quantile[NPUPROF_REPORT_QUANTILES_];
        npuprof_report_quantiles_(w, NPUPROF_KIND_INFERENCE, count, quantile);
        npuprof_report_print_line_(out, "Min latency (ns)", min);
        npuprof_report_print_line_(out, "Max latency (ns)", max);
        npuprof_report_print_line_(out, "Mean latency (ns)", (2 * total + count) / (2 * count));
        npuprof_report_print_line_(out, "Median latency (ns)", quantile[0]);
        for (unsigned i = 1; i < NPUPROF_REPORT_QUANTILES_; i++) {
            const unsigned per_mille = npuprof_report_per_mille_[i];
            fprintf(out, "%u.%u percentile Latency (ns)    : %llu\n", per_mille / 10, per_mille % 10,
                    (unsigned long long)quantile[i]);
        }
        npuprof_report_print_line_(out, "Total latency (ns)", total);
    }
    return npuprof_report_end_(out, w);
}
/* ==== src/report/tables.h =========================================================== >>report/tables ==== */

/* Tables of spans: inferences, operators outside the NPU, executions of the NPU, and its operators by name.
   A new table is a function npuprof_print_...() here, declared in public/api.h: it begins and ends as these
   do. */

/* Host spans of a kind, one a row. */
NPUPROF_OWN_ static npuprof_result npuprof_report_print_spans_(FILE *out, uint32_t kind)
{
    npuprof_work_ *w;
    const npuprof_result refused = npuprof_report_begin_(out, &w);
    if (refused) return refused;
    npuprof_event_ ev;
    uint64_t ns;
    char trace[33], name[49];
    const bool operators = kind == NPUPROF_KIND_OPERATOR;
    fprintf(out, "%-32s  %-16s  %9s", "trace_id", "span_id", "thread.id");
    if (operators) fprintf(out, "  %-24s  %14s", "name", "operator_index");
    fprintf(out, "  %12s\n", "dur");
    npuprof_report_spans_ it = npuprof_report_spans_of_(w, kind);
    while (npuprof_report_next_span_(&it, &ev, &ns)) {
        const uint64_t span = npuprof_image_span_id_(&w->image, ev.tid, ev.position);
        uint64_t index = 0;
        npuprof_image_trace_id_(&w->image, ev.tid, w->walk.root, trace);
        fprintf(out, "%s  %016llx  %9u  ", trace, (unsigned long long)span, (unsigned)ev.tid);
        if (operators) {
            (void)npuprof_args_find_(&w->image, &ev, "operator_index", &index);
            npuprof_report_cell_(&w->image, ev.name, name, sizeof name);
            fprintf(out, "%-24s  %14lld  ", name, (long long)index);
        }
        fprintf(out, "%12llu\n", (unsigned long long)ns);
    }
    return npuprof_report_end_(out, w);
}

NPUPROF_API_ npuprof_result npuprof_print_inferences(FILE *out)
{
    return npuprof_report_print_spans_(out, NPUPROF_KIND_INFERENCE);
}

NPUPROF_API_ npuprof_result npuprof_print_external_operators(FILE *out)
{
    return npuprof_report_print_spans_(out, NPUPROF_KIND_OPERATOR);
}

/* ---- Executions of the NPU */

NPUPROF_OWN_ static void npuprof_report_print_execution_(npuprof_device_walk_ *d, const npuprof_execution_ *e)
{
    const npuprof_image_ *const im = &npuprof_work_of_(d)->image;
    const int64_t total = e->end_ns - e->start_ns;
    char trace[33], index[24] = "";
    if (e->warm_up) return;
    npuprof_image_trace_id_(im, e->root_tid, e->root, trace);
    if (e->has_index) snprintf(index, sizeof index, "%llu", (unsigned long long)e->execution_index);
    fprintf(d->out, "%s  %016llx  %8u  %15s  %12lld", trace,
            (unsigned long long)npuprof_image_span_id_(im, e->tid, e->position), (unsigned)e->pe, index,
                (long long)total);
    if (e->measured)
        fprintf(d->out, "  %12lld  %12lld  %12lld\n", (long long)e->run_ns, (long long)(total - e->run_ns),
                (long long)e->sum_ns);
    else
        fprintf(d->out, "  %12s  %12s  %12s\n", "-", "-", "-");
}

NPUPROF_API_ npuprof_result npuprof_print_npu_executions(FILE *out)
{
    npuprof_device_walk_ d;
    memset(&d, 0, sizeof d);
    npuprof_work_ *w;
    const npuprof_result refused = npuprof_report_begin_(out, &w);
    if (refused) return refused;
    d.user = w;
    d.out = out;
    d.execution = npuprof_report_print_execution_;
    fprintf(out, "%-32s  %-16s  %8s  %15s  %12s  %12s  %12s  %12s\n", "trace_id", "span_id", "pe_index",
            "execution_index", "NPU Total", "NPU Run", "NPU IoWait", "NPU Sum");
    npuprof_work_walk_devices_(&d);
    return npuprof_report_end_(out, w);
}

/* ---- Operators of the NPU, by name */

typedef struct npuprof_report_total_ {
    uint32_t name, order;                  /* order: of the first span of this name */
    uint64_t count, ns;                    /* count 0: the place is free */
} npuprof_report_total_;

/* A hash table of totals. */
typedef struct npuprof_report_totals_ {
    npuprof_device_walk_ walk;             /* first: callbacks of the walk get a pointer to it */
    npuprof_report_total_ *list;
    size_t count, capacity;
    uint64_t ns;                           /* of all names */
    uint64_t left_out;                     /* spans of names that had no space */
} npuprof_report_totals_;

NPUPROF_OWN_ static void npuprof_report_add_operator_(npuprof_device_walk_ *d, const npuprof_event_ *ev,
                                         const npuprof_placed_ *p, const npuprof_execution_ *within)
{
    npuprof_report_totals_ *const t = (npuprof_report_totals_ *)(void *)d;
    const npuprof_image_ *const im = &npuprof_work_of_(d)->image;
    const bool is_warm_up = within ? within->warm_up : ev->has_link && ev->link.warm_up;
    if (!npuprof_execution_is_compute_(im, ev) || is_warm_up) return;
    const uint64_t ns = (uint64_t)(p->end_ns - p->start_ns);
    size_t length;
    if (!t->capacity) {
        t->left_out++;
        return;
    }
    const char *const name = npuprof_image_text_(im, ev->name, &length);
    size_t i = npuprof_hash_text_(name, length) % t->capacity;
    while (t->list[i].count && !npuprof_image_same_text_(im, t->list[i].name, ev->name))
        i = i + 1 < t->capacity ? i + 1 : 0;
    t->ns += ns;
    if (!t->list[i].count) {
        /* Why an eighth stays free: look-ups end at a free place. */
        if (t->count + t->capacity / 8 >= t->capacity) {
            t->left_out++;
            return;
        }
        t->list[i].name = ev->name;
        t->list[i].order = (uint32_t)t->count++;
    }
    t->list[i].count++;
    t->list[i].ns += ns;
}

/* By mean, longest first; equal ones as they came. Why multiplied: a / b > c / d is a * d > c * b, which is
   exact. */
NPUPROF_OWN_ static bool npuprof_report_total_before_(const void *one, const void *other)
{
    const npuprof_report_total_ *const a = (const npuprof_report_total_ *)one;
    const npuprof_report_total_ *const b = (const npuprof_report_total_ *)other;
    const npuprof_u128_ x = npuprof_multiply_(a->ns, b->count), y = npuprof_multiply_(b->ns, a->count);
    if (x.high != y.high) return x.high > y.high;
    return x.low != y.low ? x.low > y.low : a->order < b->order;
}

/* Packs the totals to the front of the list and sorts them; returns how many there are. */
NPUPROF_OWN_ static size_t npuprof_report_sort_totals_(npuprof_report_totals_ *t)
{
    size_t used = 0;
    for (size_t i = 0; i < t->capacity; i++)
        if (t->list[i].count) t->list[used++] = t->list[i];
    npuprof_heap_sort_(t->list, sizeof *t->list, used, npuprof_report_total_before_);
    return used;
}

NPUPROF_OWN_ static void npuprof_report_print_total_(FILE *out, const npuprof_report_totals_ *t,
                                        const npuprof_report_total_ *b)
{
    char name[49];
    /* The mean in millionths of a ns, rounded half up. */
    const uint64_t part = (npuprof_scale_(b->ns % b->count, 2000000, b->count) + 1) / 2;
    const uint64_t whole = b->ns / b->count + part / 1000000, millionths = part % 1000000;
    const uint64_t share = npuprof_report_share_(b->ns, t->ns);
    npuprof_report_cell_(&npuprof_work_of_(&t->walk)->image, b->name, name, sizeof name);
    fprintf(out, "%-40s  %14llu.%06llu  %8llu  %14llu  %6llu.%02llu\n", name, (unsigned long long)whole,
            (unsigned long long)millionths, (unsigned long long)b->count, (unsigned long long)b->ns,
            (unsigned long long)(share / 100), (unsigned long long)(share % 100));
}

NPUPROF_API_ npuprof_result npuprof_print_npu_operators(FILE *out)
{
    npuprof_report_totals_ t;
    memset(&t, 0, sizeof t);
    npuprof_work_ *w;
    const npuprof_result refused = npuprof_report_begin_(out, &w);
    if (refused) return refused;
    t.walk.user = w;
    t.list = (npuprof_report_total_ *)w->room;
    t.capacity = w->room_bytes / sizeof *t.list;
    memset(t.list, 0, t.capacity * sizeof *t.list);
    t.walk.span = npuprof_report_add_operator_;
    npuprof_work_walk_devices_(&t.walk);
    fprintf(out, "%-40s  %21s  %8s  %14s  %9s\n", "name", "average_elapsed (ns)", "count", "total (ns)",
            "share (%)");
    const size_t used = npuprof_report_sort_totals_(&t);
    for (size_t i = 0; i < used; i++) npuprof_report_print_total_(out, &t, &t.list[i]);
    if (t.left_out)
        fprintf(out, "(%llu spans of further names are in the total only)\n", (unsigned long long)t.left_out);
    return npuprof_report_end_(out, w);
}
/* ==== src/report/memory.h =========================================================== >>report/memory ==== */

/* Memory pools: the printed report, and the peaks of one pool for the program. What counts as a pool, and how
   its peaks come about, is in read/memory.h. */

/* Bytes as MB of 2^20, in `text`, rounded half up to six decimals, which tell single bytes apart. */
NPUPROF_OWN_ static const char *npuprof_report_mb_(uint64_t bytes, char text[32])
{
    const uint64_t part = ((bytes & 0xFFFFF) * 1000000 + 0x80000) >> 20;
    snprintf(text, 32, "%llu.%06u", (unsigned long long)(bytes >> 20) + part / 1000000,
             (unsigned)(part % 1000000));
    return text;
}

NPUPROF_OWN_ static void npuprof_report_print_peak_(FILE *out, const npuprof_image_ *im, const char *what, uint64_t bytes,
                                       uint64_t at, uint32_t tag_id)
{
    char tag[81], mb[32];
    fprintf(out, "%-16s: %s at #%llu %s\n", what, npuprof_report_mb_(bytes, mb), (unsigned long long)at,
            npuprof_report_cell_(im, tag_id, tag, sizeof tag));
}

/* The lines above a pool's records. */
NPUPROF_OWN_ static void npuprof_report_print_pool_(FILE *out, const npuprof_image_ *im, const npuprof_pool_report_ *p)
{
    const npuprof_memory_peaks *const peaks = &p->peaks;
    const uint64_t held = peaks->held_bytes, used = peaks->used_bytes, unused = held > used ? held - used : 0;
    const uint64_t share = npuprof_report_share_(unused, held);
    char name[81], mb[32];
    npuprof_report_cell_(im, p->device, name, sizeof name);
    fprintf(out, "Memory of %s (MB of 2^20 bytes): %llu records\n", name, (unsigned long long)peaks->records);
    npuprof_report_print_peak_(out, im, "peak used", used, peaks->used_at, p->used_tag);
    npuprof_report_print_peak_(out, im, "peak allocated", peaks->allocated_bytes, peaks->allocated_at,
                               p->allocated_tag);
    fprintf(out, "fragmentation   : %s (%llu.%02llu %%) allocated but not used at the peak\n",
            npuprof_report_mb_(unused, mb), (unsigned long long)(share / 100),
                (unsigned long long)(share % 100));
    fprintf(out, "allocated drops : %llu\n", (unsigned long long)peaks->drops);
}

/* A pool's records, one a row, in the order of time over all threads. */
NPUPROF_OWN_ static void npuprof_report_print_pool_records_(FILE *out, npuprof_work_ *w, const npuprof_pool_report_ *p)
{
    const npuprof_image_ *const im = &w->image;
    npuprof_merge_ merge;
    npuprof_event_ ev;
    uint64_t index = 0, allocated = 0;
    char tag[81], mb[2][32];
    fprintf(out, "%-6s\t%-80s\t%-15s\t%-15s\n", "#Trace", "#Tag", "used", "alloc");
    for (npuprof_work_begin_merge_(&merge, w); npuprof_merge_next_(&merge, &ev);) {
        if (!npuprof_image_same_text_(im, p->device, ev.category)) continue;
        allocated = npuprof_pool_allocated_(&ev, allocated);
        npuprof_report_cell_(im, ev.name, tag, sizeof tag);
        fprintf(out, "%-6llu\t%-80s\t%-15s\t%-15s\n", (unsigned long long)index++, tag,
                npuprof_report_mb_(ev.value, mb[0]), npuprof_report_mb_(allocated, mb[1]));
    }
}

NPUPROF_API_ npuprof_result npuprof_print_memory(FILE *out)
{
    npuprof_work_ *w;
    const npuprof_result refused = npuprof_report_begin_(out, &w);
    if (refused) return refused;
    const npuprof_pool_reports_ pools = npuprof_work_collect_pools_(w);
    if (pools.end == pools.list) fprintf(out, "no memory records\n");
    for (const npuprof_pool_report_ *p = pools.list; p < pools.end; p++) {
        npuprof_report_print_pool_(out, &w->image, p);
        npuprof_report_print_pool_records_(out, w, p);
    }
    if (pools.records_left_out)
        fprintf(out, "(%llu records of further pools are left out: NPUPROF_SCRATCH_BYTES)\n",
                (unsigned long long)pools.records_left_out);
    if (pools.threads_left_out)
        fprintf(out, "(the records of %llu more threads are left out: NPUPROF_SCRATCH_BYTES)\n",
                (unsigned long long)pools.threads_left_out);
    return npuprof_report_end_(out, w);
}

NPUPROF_API_ npuprof_result npuprof_get_memory(const npuprof_device *device, npuprof_memory_peaks *out)
{
    npuprof_work_ *w;
    const char *const name = npuprof_record_pool_name_(device);
    npuprof_pool_report_ pool;
    npuprof_merge_ merge;
    npuprof_event_ ev;
    if (!out) return NPUPROF_REFUSE_("npuprof_get_memory: out is NULL");
    memset(out, 0, sizeof *out);
    memset(&pool, 0, sizeof pool);
    const npuprof_result refused = npuprof_report_open_(&w);
    if (refused) return refused;
    for (npuprof_work_begin_merge_(&merge, w); npuprof_merge_next_(&merge, &ev);)
        if (npuprof_image_text_is_(&w->image, ev.category, name)) npuprof_pool_add_(&pool, &ev);
    (void)npuprof_work_end_(w);
    npuprof_scratch_unlock_();
    *out = pool.peaks;
    return merge.left_out ? NPUPROF_ERR_NO_SPACE : pool.peaks.records ? NPUPROF_OK : NPUPROF_ERR_NOT_FOUND;
}
/* ==== src/report/bench.h ============================================================= >>report/bench ==== */

/* Measuring operators: npuprof_bench() and its cache.
   Data: the cache, a ring of the last results, and the number of results that ever went into it. Both belong
   to the thread that holds the scratch; npuprof_bench_size() loads the number without it. While an operator
   runs, nothing is held. */

enum { NPUPROF_BENCH_CACHE_ = 32 };

typedef struct npuprof_bench_entry_ {
    uint64_t settings;                     /* hash of all settings but key and repeat */
    char key[64];
    npuprof_bench_result result;
} npuprof_bench_entry_;

static npuprof_bench_entry_ npuprof_bench_cache_[NPUPROF_BENCH_CACHE_];
static size_t npuprof_bench_stored_;       /* results since the last reset; a new one replaces the oldest */

/* Result number i of the cache, the oldest first. */
NPUPROF_OWN_ static const npuprof_bench_entry_ *npuprof_bench_entry_at_(size_t i)
{
    const size_t stored = npuprof_bench_stored_, oldest = stored > NPUPROF_BENCH_CACHE_ ? stored : 0;
    return &npuprof_bench_cache_[(oldest + i) % NPUPROF_BENCH_CACHE_];
}

/* Runs all operators, `count` times. */
NPUPROF_OWN_ static npuprof_result npuprof_bench_runs_(const npuprof_bench_desc *d, size_t ops, int count)
{
    while (count-- > 0)
        for (size_t i = 0; i < ops; i++)
            if (d->ops[i].run(d->ops[i].user, d->ops[i].stream)) return NPUPROF_ERR_BENCH;
    return NPUPROF_OK;
}

/* Waits for the device, and reads the clock to measure with. */
NPUPROF_OWN_ static npuprof_result npuprof_bench_stamp_(const npuprof_bench_desc *d, uint64_t *ticks)
{
    if (d->device && d->device->wait) (void)d->device->wait(d->device->user);
    if (d->clock.read) return d->clock.read(d->clock.user, ticks);
    *ticks = (uint64_t)npuprof_now_ns();
    return NPUPROF_OK;
}

/* One repeat: `number` runs between two stamps. *us: the mean of one run. */
NPUPROF_OWN_ static npuprof_result npuprof_bench_repeat_(const npuprof_bench_desc *d, size_t ops, int number, double *us)
{
    uint64_t from = 0, to = 0;
    npuprof_result result = npuprof_bench_stamp_(d, &from);
    if (result == NPUPROF_OK) result = npuprof_bench_runs_(d, ops, number);
    if (result == NPUPROF_OK) result = npuprof_bench_stamp_(d, &to);
    double ns = (double)(int64_t)(to - from);
    if (result == NPUPROF_OK && d->clock.read) result = d->clock.ns(d->clock.user, from, to, &ns);
    *us = ns / 1000 / number;
    return result;
}

NPUPROF_OWN_ static npuprof_result npuprof_bench_measure_(const npuprof_bench_desc *d, size_t ops, int warmup, int number,
                                             npuprof_bench_result *r)
{
    npuprof_result result = NPUPROF_OK;
    double sorted[NPUPROF_BENCH_REPEATS] = { 0 }, us;
    NPUPROF_ONCE_(warm, 1, NPUPROF_SITE_(bench_, NPUPROF_KIND_WARM_UP, "Runtime", "warm up"),
                  npuprof_begin_(NPUPROF_REF_(bench_, "", "")))
        result = npuprof_bench_runs_(d, ops, warmup);
    for (int i = 0; i < r->repeat; i++) {
        if (result == NPUPROF_OK) result = npuprof_bench_repeat_(d, ops, number, &us);
        if (result != NPUPROF_OK) return result;
        r->latency_us[i] = us;
        r->mean_us += us / r->repeat;
        int at = i;
        for (; at && sorted[at - 1] > us; at--) sorted[at] = sorted[at - 1];
        sorted[at] = us;
    }
    r->min_us = sorted[0];
    r->max_us = sorted[r->repeat - 1];
    r->median_us = (sorted[(r->repeat - 1) / 2] + sorted[r->repeat / 2]) / 2;
    r->spread = r->median_us > 0 ? (r->max_us - r->min_us) / r->median_us : 0;
    r->unstable = r->spread > 0.1;
    for (size_t i = 0; i < ops; i++) r->workspace_bytes += d->ops[i].workspace_bytes;
    return NPUPROF_OK;
}

NPUPROF_OWN_ static npuprof_result npuprof_bench_check_(const npuprof_bench_desc *d, size_t ops)
{
    if (!d || !d->ops) return NPUPROF_REFUSE_("npuprof_bench: desc or desc.ops is NULL");
    if (d->warmup < -1 || d->number < 0)
        return NPUPROF_REFUSE_("npuprof_bench: desc.warmup or desc.number is negative");
    if (d->repeat < 0 || d->repeat > NPUPROF_BENCH_REPEATS)
        return NPUPROF_REFUSE_("npuprof_bench: desc.repeat is not 0 to 32");
    if (!d->clock.read != !d->clock.ns)
        return NPUPROF_REFUSE_("npuprof_bench: desc.clock needs both read and ns");
    for (size_t i = 0; i < ops; i++)
        if (!d->ops[i].run) return NPUPROF_REFUSE_("npuprof_bench: run of an operator is NULL");
    return NPUPROF_OK;
}

/* Hash of the settings that make two results comparable. */
NPUPROF_OWN_ static uint64_t npuprof_bench_hash_(const npuprof_bench_desc *d, size_t ops, int warmup, int number)
{
    uint64_t h = npuprof_hash_mix_((uint64_t)(unsigned)warmup << 32 | (unsigned)number);
    h ^= npuprof_hash_mix_((uintptr_t)d->device);
    h ^= npuprof_hash_mix_((uintptr_t)d->clock.user + (d->clock.read != NULL));
    for (size_t i = 0; i < ops; i++) h = npuprof_hash_mix_(h + (uint64_t)d->ops[i].stream + 1);
    return h;
}

/* Takes a result from the cache. False: it is not there. */
NPUPROF_OWN_ static bool npuprof_bench_find_(const char *key, uint64_t settings, npuprof_bench_result *out)
{
    if (!npuprof_scratch_lock_()) return false;
    for (size_t i = 0; i < npuprof_bench_size() && !out->cached; i++) {
        const npuprof_bench_entry_ *const e = &npuprof_bench_cache_[i];
        if (e->settings != settings || e->result.repeat != out->repeat || strcmp(e->key, key) != 0) continue;
        *out = e->result;
        out->cached = true;
    }
    npuprof_scratch_unlock_();
    return out->cached;
}

NPUPROF_OWN_ static void npuprof_bench_store_(const char *key, uint64_t settings, const npuprof_bench_result *result)
{
    if (!npuprof_scratch_lock_()) return;
    npuprof_bench_entry_ *const e = &npuprof_bench_cache_[npuprof_bench_stored_ % NPUPROF_BENCH_CACHE_];
    e->settings = settings;
    npuprof_text_copy_(e->key, sizeof e->key, key);
    e->result = *result;
    NPUPROF_STORE_(&npuprof_bench_stored_, npuprof_bench_stored_ + 1);
    npuprof_scratch_unlock_();
}

NPUPROF_API_ npuprof_result npuprof_bench(const npuprof_bench_desc *d, npuprof_bench_result *out)
{
    if (!out) return NPUPROF_REFUSE_("npuprof_bench: out is NULL");
    memset(out, 0, sizeof *out);
    const size_t ops = d && d->op_count ? d->op_count : 1;
    npuprof_result result = npuprof_bench_check_(d, ops);
    if (result != NPUPROF_OK) return result;
    const int warmup = d->warmup == 0 ? 10 : d->warmup, number = d->number ? d->number : 10;
    const uint64_t settings = npuprof_bench_hash_(d, ops, warmup, number);
    const bool is_cached = d->key && strlen(d->key) < sizeof npuprof_bench_cache_[0].key;
    out->repeat = d->repeat ? d->repeat : 1;
    if (is_cached && npuprof_bench_find_(d->key, settings, out)) return NPUPROF_OK;
    result = npuprof_bench_measure_(d, ops, warmup, number, out);
    if (result != NPUPROF_OK) memset(out, 0, sizeof *out);
    else if (is_cached) npuprof_bench_store_(d->key, settings, out);
    return result;
}

NPUPROF_API_ void npuprof_bench_reset(void)
{
    if (!npuprof_scratch_lock_()) return;
    NPUPROF_STORE_(&npuprof_bench_stored_, 0);
    npuprof_scratch_unlock_();
}

NPUPROF_API_ size_t npuprof_bench_size(void)
{
    const size_t stored = NPUPROF_LOAD_(&npuprof_bench_stored_), capacity = NPUPROF_BENCH_CACHE_;
    return stored < capacity ? stored : capacity;
}

/* A number with three decimals, in `text`. */
NPUPROF_OWN_ static const char *npuprof_bench_three_digits_(double v, char text[32])
{
    const uint64_t thousandths = (uint64_t)(v * 1000 + 0.5);
    snprintf(text, 32, "%llu.%03u", (unsigned long long)(thousandths / 1000), (unsigned)(thousandths % 1000));
    return text;
}

NPUPROF_API_ npuprof_result npuprof_print_bench(FILE *out)
{
    char mean[32], min[32], max[32], spread[32];
    npuprof_work_ *w;
    const npuprof_result refused = npuprof_report_begin_(out, &w);
    if (refused) return refused;
    fprintf(out, "%-40s  %12s  %12s  %12s  %10s  %6s  %15s\n", "operator", "mean (us)", "min", "max",
            "spread (%)",
            "repeat", "workspace (B)");
    for (size_t i = 0; i < npuprof_bench_size(); i++) {
        const npuprof_bench_entry_ *const e = npuprof_bench_entry_at_(i);
        const npuprof_bench_result *const r = &e->result;
        npuprof_bench_three_digits_(r->mean_us, mean);
        npuprof_bench_three_digits_(r->min_us, min);
        npuprof_bench_three_digits_(r->max_us, max);
        npuprof_bench_three_digits_(100 * r->spread, spread);
        fprintf(out, "%-40s  %12s  %12s  %12s  %10s  %6d  %15llu%s\n", e->key, mean, min, max,
                r->repeat > 1 ? spread : "-", r->repeat, (unsigned long long)r->workspace_bytes,
                r->unstable ? "  unstable" : "");
    }
    return npuprof_report_end_(out, w);
}
#else
/* ==== src/report/none.h =============================================================== >>report/none ==== */
#include <string.h>

/* NPUPROF_NO_REPORTS: this part stands in place of the others of this room. A program that prints a report
   still links; it gets a result and the sentence that says what to do.
   Owns no data. */

/* ---- What all of them return */

NPUPROF_OWN_ static npuprof_result npuprof_report_left_out_(void)
{
    return NPUPROF_LEFT_OUT_("NPUPROF_NO_REPORTS leaves the reports out; dump the trace, and use "
                             "`npuprof.py report`");
}

#define NPUPROF_LEFT_OUT_REPORT_(name)                          \
    NPUPROF_API_ npuprof_result npuprof_##name(FILE *out)       \
    {                                                           \
        (void)out;                                              \
        return npuprof_report_left_out_();                      \
    }
NPUPROF_LEFT_OUT_REPORT_(print_summary)
NPUPROF_LEFT_OUT_REPORT_(print_inferences)
NPUPROF_LEFT_OUT_REPORT_(print_npu_executions)
NPUPROF_LEFT_OUT_REPORT_(print_npu_operators)
NPUPROF_LEFT_OUT_REPORT_(print_external_operators)
NPUPROF_LEFT_OUT_REPORT_(print_memory)
NPUPROF_LEFT_OUT_REPORT_(print_bench)
#undef NPUPROF_LEFT_OUT_REPORT_

NPUPROF_API_ npuprof_result npuprof_get_memory(const npuprof_device *device, npuprof_memory_peaks *out)
{
    (void)device;
    if (!out) return NPUPROF_REFUSE_("npuprof_get_memory: out is NULL");
    memset(out, 0, sizeof *out);
    return npuprof_report_left_out_();
}

NPUPROF_API_ npuprof_result npuprof_bench(const npuprof_bench_desc *desc, npuprof_bench_result *out)
{
    (void)desc;
    if (!out) return NPUPROF_REFUSE_("npuprof_bench: out is NULL");
    memset(out, 0, sizeof *out);
    return npuprof_report_left_out_();
}

NPUPROF_API_ void npuprof_bench_reset(void) {}

NPUPROF_API_ size_t npuprof_bench_size(void) { return 0; }
#endif /* !NPUPROF_NO_REPORTS */
/* ==== src/process/restart.h ======================================================= >>process/restart ==== */

/* The end of a thread, and the empty trace with which the child of a fork begins.

   A thread that ends closes its open spans and gives its slot back. Another thread may take the slot then.
   The child of a fork has one thread: every word that names a thread is set back. Names, metadata and devices
   stay.

   Data: npuprof_setup_thread_, of setup.h. In the child, npuprof_arena_ and the arena, and what lower rooms
   know of threads or of an arena that is no more. A thread's end changes that thread's slot only.

   This part may not know formats, nor files. */

static uintptr_t npuprof_setup_thread_;        /* that sets up; written by it, atomic */

/* Lays an arena out, behind which everything that the process knows about another one is void. */
NPUPROF_OWN_ static bool npuprof_process_lay_out_(void *memory, size_t bytes, int when_full, bool fresh)
{
    NPUPROF_CALLS_(npuprof_record_objects_.newest = 0;)
    return npuprof_arena_lay_out_(memory, bytes, when_full, fresh);
}

/* Ends the slot of a thread that is over. */
NPUPROF_OWN_ static void npuprof_process_end_slot_(npuprof_slot_ *slot)
{
    for (npuprof_slot_ *at = slot; at; at = at->nested) {
        npuprof_record_unwind_(at, at->open, npuprof_clock_());
        NPUPROF_STORE_(&at->busy, 0);
    }
    npuprof_slot_give_back_(slot);
}

/* Runs at the end of the thread that has this slot. */
NPUPROF_OWN_ static void npuprof_process_thread_ends_(void *user)
{
    if ((uintptr_t)user & 1) return;       /* it had none (arena/thread.h) */
    (void)npuprof_slot_become_(NULL);
    npuprof_process_end_slot_((npuprof_slot_ *)user);
}

/* Empties the entries of the table that are about the parent: pauses, clock anchors, counts of devices. */
NPUPROF_OWN_ static void npuprof_fork_empty_table_(npuprof_header_ *h)
{
    const uint32_t skip = (uint32_t)NPUPROF_ENTRY_SKIP << 24;
    for (uint32_t at = h->table_first; (at = npuprof_table_past_head_(h, at)) < h->table_used;) {
        npuprof_entry_ *const e = (npuprof_entry_ *)npuprof_table_entry_at_(at / NPUPROF_TABLE_UNIT_);
        /* 0: a thread of the parent was adding this entry. It takes one unit. */
        if (!e->type_units) e->type_units = 1;
        const uint32_t type = e->type_units >> 24, units = e->type_units & 0xFFFFFFu;
        const bool goes = !type || type == NPUPROF_ENTRY_PAUSE || type == NPUPROF_ENTRY_ANCHORS;
        if (goes) e->type_units = units | skip;
        if (type == NPUPROF_ENTRY_RECORDS) {
            npuprof_records_entry_ *r = (npuprof_records_entry_ *)(void *)e;
            memset(r->counts, 0, sizeof r->counts);
        }
        if (type == NPUPROF_ENTRY_DEVICE) {
            npuprof_device_entry_ *d = (npuprof_device_entry_ *)(void *)e;
            memset(d->notes, 0, sizeof d->notes);
            memset(&d->overflow, 0, sizeof d->overflow);
            d->overflow_used = d->first_anchors = d->last_anchors = 0;
        }
        at += units * NPUPROF_TABLE_UNIT_;
    }
}

/* Moves the pages of the table to the first chunks, whose records are not needed any more. Returns how many
   those are. */
NPUPROF_OWN_ static uint32_t npuprof_fork_gather_pages_(void)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    const size_t words = s->header->chunk_bytes / sizeof(uint64_t);
    uint32_t page = 0;
    for (; page < s->page_count && s->pages[page]; page++) {
        uint64_t *const to = (uint64_t *)(void *)npuprof_chunk_at_(page);
        uint64_t *const from = (uint64_t *)(void *)npuprof_chunk_at_(s->pages[page] - 1);
        if (from == to) continue;
        for (uint32_t later = page + 1; later < s->page_count; later++)
            if (s->pages[later] == page + 1) s->pages[later] = s->pages[page];
        s->pages[page] = page + 1;
        for (size_t i = 0; i < words; i++) {
            const uint64_t was = to[i];
            to[i] = from[i];
            from[i] = was;
        }
    }
    return page;
}

/* Empties the child's arena and begins a trace in it. Names, metadata and devices stay. */
NPUPROF_OWN_ static void npuprof_fork_start_over_(void)
{
    npuprof_header_ *h = npuprof_arena_.header;
    npuprof_fork_empty_table_(h);
    memset(h->lost, 0, sizeof h->lost);
    memset(npuprof_arena_.queue, 0, (size_t)h->queue_slots * 4);
    memset(npuprof_chunk_overwritten_at_(h, 0), 0, (size_t)h->chunk_count * sizeof(npuprof_overwritten_));
    h->clear_ticks = h->streamed = 0;
    h->queue_head = h->queue_tail = h->slot_first = h->threads = 0;
    h->chunk_next = npuprof_fork_gather_pages_();
    npuprof_arena_.chunk_free = 0;
    npuprof_arena_.slots_free = npuprof_arena_.slots_left = npuprof_arena_.slots_swept = 0;
    npuprof_arena_.zero_at_first = false;
    npuprof_arena_begin_trace_(h);
    npuprof_control_advance_generation_();
}

/* Sets back, in the child, every word that names a thread of the parent. */
NPUPROF_OWN_ static void npuprof_process_forget_threads_(void)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    s->writer = s->drainer = 0;
    s->recycling = s->frozen = s->exchanging = s->failed = s->hopeless = s->keeping_time = 0;
    NPUPROF_CALLS_(npuprof_record_objects_.listing = 0;)
    s->slots_checking = s->slots_taken = s->slots_checked = 0;
    npuprof_control_.paused = 0;
    if (npuprof_control_.telling != npuprof_slot_me_()) npuprof_control_.telling = 0;
    /* Why positions go on: scopes that the parent opened on this thread's stack also end in the child. Their
       tokens must not equal those of the child's spans. Why + 1: tokens of the first chunk are 1 ahead,
       because no token is 0. */
    const npuprof_slot_ *const mine = npuprof_slot_mine_();
    if (mine->cursor) s->first_position = npuprof_slot_position_(mine) + 1;
    /* The PROF_ENDs of the parent's PROF_BEGINs end nothing in the child. */
    const uint32_t by_hand = mine->by_hand_count + npuprof_slot_skipped_();
    (void)npuprof_slot_become_(NULL);
    npuprof_slot_set_skipped_(by_hand);
}
#ifdef NPUPROF_RECORD_ONLY
/* ==== src/process/only.h ============================================================= >>process/only ==== */

/* NPUPROF_RECORD_ONLY: this part stands in place of setup.h, fork.h and the outputs. It sets the recorder up
   in the program's memory, and writes the image. There is no environment, so nothing runs before main() or at
   exit. What is left out is refused with one sentence.

   Data: npuprof_record_setup_, as in setup.h, without 3. */

/* ---- Set-up */

NPUPROF_OWN_ static void npuprof_process_restart_(void)
{
    if (npuprof_record_setup_ != 2) return;
    npuprof_process_forget_threads_();
    npuprof_fork_start_over_();
    npuprof_control_set_gate_();
}

NPUPROF_OWN_ static void npuprof_process_exits_(void) {}

/* Sets up unless that is done. A thread that finds another one at it waits, for some seconds at most; a
   signal handler that interrupted it does not. */
NPUPROF_OWN_ static npuprof_result npuprof_process_set_up_(void)
{
    uint32_t state = 0;
    const uintptr_t me = npuprof_slot_me_();
    if (npuprof_arena_has_leader_()) return NPUPROF_ERR_STARTED;
    if (NPUPROF_CAS_(&npuprof_record_setup_, &state, 1)) {
        NPUPROF_STORE_(&npuprof_setup_thread_, me);
        npuprof_clock_choose_();
        (void)npuprof_process_lay_out_(npuprof_arena_static_, sizeof npuprof_arena_static_,
                                       NPUPROF_KEEP_OLDEST, true);
        npuprof_control_advance_generation_();
        npuprof_arena_hooks_.ends = npuprof_process_end_slot_;
        npuprof_os_hook_(npuprof_process_thread_ends_, npuprof_process_restart_, npuprof_process_exits_);
        NPUPROF_STORE_RELEASE_(&npuprof_record_setup_, 2);
        npuprof_control_set_gate_();
        return NPUPROF_OK;
    }
    for (unsigned n = 0; state == 1 && NPUPROF_LOAD_(&npuprof_setup_thread_) != me && n < 100000; n++) {
        npuprof_os_yield_();
        state = NPUPROF_LOAD_ACQUIRE_(&npuprof_record_setup_);
    }
    return state == 2 ? NPUPROF_OK : NPUPROF_ERR_STARTED;
}

NPUPROF_API_ bool npuprof_opens_(int level)
{
    int waiting = INT_MAX;
    (void)npuprof_process_set_up_();
    (void)NPUPROF_CAS_(&npuprof_gate_, &waiting, INT_MIN);
    return NPUPROF_LOAD_(&npuprof_gate_) >= level;
}

NPUPROF_API_ npuprof_result npuprof_init_(const npuprof_desc *desc, size_t desc_bytes, int version)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    if (version != NPUPROF_VERSION || desc_bytes != sizeof(npuprof_desc)) return NPUPROF_ERR_VERSION;
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (npuprof_control_.started) return NPUPROF_ERR_STARTED;
    if (!desc) return NPUPROF_OK;
    if (desc->output_path || desc->arena_path || desc->capture || desc->sink.write)
        return NPUPROF_LEFT_OUT_("NPUPROF_RECORD_ONLY leaves out output_path, arena_path, capture and sink "
                                 "of npuprof_desc");
    if (desc->when_full != NPUPROF_KEEP_OLDEST && desc->when_full != NPUPROF_KEEP_NEWEST)
        return NPUPROF_LEFT_OUT_("NPUPROF_RECORD_ONLY leaves out every when_full but NPUPROF_KEEP_OLDEST and "
                                 "NPUPROF_KEEP_NEWEST");
    if (desc->arena) {
        const npuprof_header_ *const old = s->header;
        if (NPUPROF_LOAD_(&old->threads) || old->devices) return NPUPROF_ERR_STARTED;
        if (desc->arena_bytes < 2048 || ((uintptr_t)desc->arena & 7)) return NPUPROF_ERR_ARENA_SIZE;
        NPUPROF_STORE_(&npuprof_gate_, INT_MIN);
        (void)npuprof_process_lay_out_(desc->arena, desc->arena_bytes, s->when_full, false);
        npuprof_image_copy_metadata_(old);
        npuprof_control_advance_generation_();
    } else if (desc->arena_bytes) {
        return NPUPROF_REFUSE_("npuprof_init: arena_bytes without arena");
    }
    if (desc->populate) npuprof_os_populate_(s->base, (size_t)s->header->arena_bytes);
    npuprof_control_set_policy_(desc->when_full);
    const npuprof_result r = desc->categories ? npuprof_set_categories(desc->categories) : NPUPROF_OK;
    npuprof_control_set_gate_();
    return r;
}

#ifdef NPUPROF_DESTRUCTOR_
/* Why: as in setup.h. */
NPUPROF_DESTRUCTOR_ NPUPROF_OWN_ static void npuprof_process_unhook_(void) { npuprof_os_unhook_(); }
#endif

/* ---- The outputs */

NPUPROF_API_ npuprof_result npuprof_dump(const char *path)
{
    if (!path) return NPUPROF_REFUSE_("npuprof_dump: path is NULL");
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    const char *const dot = strrchr(path, '.');
    if (!dot || strcmp(dot, ".npuprof") != 0)
        return NPUPROF_LEFT_OUT_("NPUPROF_RECORD_ONLY leaves out all outputs but .npuprof; npuprof-convert "
                                 "makes them of it");
    return npuprof_file_write_by_(path, npuprof_write_image_locked_);
}

NPUPROF_API_ npuprof_result npuprof_write_json(npuprof_sink sink)
{
    (void)sink;
    return NPUPROF_LEFT_OUT_("NPUPROF_RECORD_ONLY leaves out JSON; npuprof-convert makes it of an image");
}

NPUPROF_API_ npuprof_result npuprof_flush(void)
{
    return NPUPROF_LEFT_OUT_("NPUPROF_RECORD_ONLY leaves out streams");
}

NPUPROF_API_ npuprof_result npuprof_poll(void)
{
    return NPUPROF_LEFT_OUT_("NPUPROF_RECORD_ONLY leaves out capture control");
}
#else
/* ==== src/write/files.h =============================================================== >>write/files ==== */
#ifndef NPUPROF_NO_JSON
#endif

/* Which file gets which output: npuprof_dump(), and what is written at normal exit. file.h writes one.
   Data: npuprof_file_own_path_, which is only read here.
   A new output adds its writer to npuprof_file_writers_ and its form and extension to
   control/path.h. */

/* By form (NPUPROF_FORM_*). Each writes the open image into a sink, and returns 0 or an errno value. NULL:
   left out. */
static const npuprof_file_writer_ npuprof_file_writers_[] = {
#ifdef NPUPROF_NO_JSON
    NULL,
#else
    npuprof_write_json_locked_,
#endif
    npuprof_csv_write_locked_, npuprof_write_image_locked_, npuprof_sheet_write_locked_ };

/* form: one of NPUPROF_FORM_*; negative: a path of no known form. */
NPUPROF_OWN_ static npuprof_result npuprof_file_write_(const char *path, int form)
{
    return npuprof_file_write_by_(path, form < 0 ? NULL : npuprof_file_writers_[form]);
}

/* Did another arena of this process write the trace at `path`? Such a file is younger than the process and
   has our pid: in the first event of a JSON, in the header of an image, in the first trace id of a CSV.
   Why ask the file: the arenas of NPUPROF_STATIC files and of plugins have no variable in common. */
NPUPROF_OWN_ static bool npuprof_file_is_of_this_process_(const char *path)
{
    union { char text[sizeof(npuprof_header_) + 1]; npuprof_header_ header; } head;
    char ours[33];
    const npuprof_header_ *const h = npuprof_arena_.header;
    if (NPUPROF_LOAD_(&npuprof_file_own_path_) == npuprof_hash_text_(path, strlen(path))) return false;
    const int64_t began = npuprof_os_process_start_ns_(), first = h->first.unix_ns;
    const size_t n = npuprof_os_read_head_(path, began < first ? began : first, head.text,
                                           sizeof head.text - 1);
    head.text[n] = 0;
    if (n >= sizeof(npuprof_header_) && memcmp(head.header.magic, "NPUPROF\n", 8) == 0)
        return head.header.pid == h->pid;
    snprintf(ours, sizeof ours, "\"pid\":%u,", (unsigned)h->pid);
    if (strstr(head.text, ours)) return true;
    const char *const row = strncmp(head.text, "trace_id,", 9) == 0 ? strchr(head.text, '\n') : NULL;
    if (!row) return false;
    npuprof_digits_hex_text_(ours, npuprof_arena_mark_of_pid_(h->pid));
    if (h->traceparent[0]) return strncmp(row + 1, h->traceparent + 3, 32) == 0;
    return strncmp(row + 9, ours + 8, 8) == 0;
}

/* Writes to the first number of a pattern with %i whose file can be created. */
NPUPROF_OWN_ static npuprof_result npuprof_file_write_numbered_(const char *pattern, int form, npuprof_path_ *path)
{
    for (unsigned n = 0; n < 100000; n++) {
        int fd;
        if (!npuprof_path_expand_(npuprof_arena_.header, pattern, n, path)) return NPUPROF_ERR_ARGUMENT;
        const int error = npuprof_os_create_(path->text, &fd);
        if (error == EEXIST) continue;
        if (error) return npuprof_os_result_(error);
        (void)npuprof_os_close_(fd);
        const npuprof_result r = npuprof_file_write_(path->text, form);
        if (r != NPUPROF_OK) npuprof_os_remove_(path->text);
        return r;
    }
    return NPUPROF_ERR_IO;
}

/* Inserts the suffix of the n-th file of this process that would have one path; n 0: none. */
NPUPROF_OWN_ static bool npuprof_file_insert_(npuprof_path_ *path, unsigned n)
{
    const unsigned pid = (unsigned)npuprof_arena_.header->pid;
    char suffix[40] = "";
    if (n == 1) snprintf(suffix, sizeof suffix, "-%u", pid);
    else if (n > 1) snprintf(suffix, sizeof suffix, "-%u-%u", pid, n);
    return npuprof_path_insert_(path, suffix);
}

/* Gives another name to what another arena of this process wrote to this path, if this is the program's and
   so has the name that was asked for. False: it stays. */
NPUPROF_OWN_ static bool npuprof_file_take_place_(const npuprof_path_ *path)
{
    int error = npuprof_os_library_() ? EBUSY : EEXIST;
    for (unsigned n = 1; error == EEXIST && n < 100; n++) {
        npuprof_path_ aside = *path;
        if (!npuprof_file_insert_(&aside, n)) return false;
        error = npuprof_os_move_aside_(path->text, aside.text);
    }
    return error == 0;
}

/* Writes to a pattern; *path is where. The pid goes before the extension where another arena of this process
   was there first, unless this is the program's; with `apart`, in the child of a fork, always. */
NPUPROF_OWN_ static npuprof_result npuprof_file_write_pattern_(const char *pattern, int form, bool apart,
                                                  npuprof_path_ *path)
{
    for (unsigned n = 0; n < 100000; n++) {
        if (!npuprof_path_expand_(npuprof_arena_.header, pattern, 0, path)) return NPUPROF_ERR_ARGUMENT;
        if (path->is_numbered) return npuprof_file_write_numbered_(pattern, form, path);
        if (!npuprof_file_insert_(path, n + (apart && !path->is_own))) return NPUPROF_ERR_ARGUMENT;
        if (!npuprof_file_is_of_this_process_(path->text) || (n == 0 && npuprof_file_take_place_(path)))
            return npuprof_file_write_(path->text, form);
    }
    return NPUPROF_ERR_IO;
}

/* Writes into the folders of NPUPROF_OUTPUT_PATH=d/: JSON, CSV and, if there are operators, their sheet. All
   are of one moment: spans that are open end there in each of them, and their clocks have one rate. */
NPUPROF_OWN_ static npuprof_result npuprof_file_write_folders_(npuprof_path_ *path)
{
    static const struct { char folder[6], extension[5]; uint8_t form; } outputs[] = {
        { "trace", "json", NPUPROF_FORM_JSON_ }, { "csv", "csv", NPUPROF_FORM_CSV_ },
        { "sheet", "csv", NPUPROF_FORM_SHEET_ } };
    const char *const to = npuprof_path_output_.pattern;
    const size_t count = sizeof outputs / sizeof *outputs - !npuprof_table_has_string_("ne.type");
    npuprof_result r = NPUPROF_OK;
    const npuprof_image_window_ part = npuprof_image_limits_();
    npuprof_path_ directory;
    char pattern[1100];
    if (!npuprof_path_expand_(npuprof_arena_.header, to, 0, &directory)) return NPUPROF_ERR_ARGUMENT;
    if (strlen(to) > 900 || strlen(directory.text) > 900) return NPUPROF_ERR_ARGUMENT;
    int error = npuprof_os_make_directory_(directory.text);
    npuprof_image_limit_(part.since, part.until ? part.until : npuprof_clock_());
    for (size_t i = 0; i < count && r == NPUPROF_OK; i++) {
        snprintf(path->text, sizeof path->text, "%.900sprofiling_%s", directory.text, outputs[i].folder);
        if (!error) error = npuprof_os_make_directory_(path->text);
        r = npuprof_os_result_(error);
        if (r != NPUPROF_OK) break;
        snprintf(pattern, sizeof pattern, "%.900sprofiling_%s/profiling_%%t_%%i.%s", to,
                 outputs[i].folder, outputs[i].extension);
        r = npuprof_file_write_pattern_(pattern, outputs[i].form, false, path);
        /* No row: all operators were warm-up. */
        if (outputs[i].form == NPUPROF_FORM_SHEET_ && r == NPUPROF_ERR_NOT_FOUND) r = NPUPROF_OK;
    }
    npuprof_image_limit_(part.since, part.until);
    return r;
}

/* Writes what output_path asks for. *path: the file, or where it failed.
   Why the form of the pattern, not of the path: a host's name, %h, may have dots. */
NPUPROF_OWN_ static npuprof_result npuprof_file_write_output_(npuprof_path_ *path)
{
    const char *const to = npuprof_path_output_.pattern;
    const size_t n = strlen(to);
    if (n && to[n - 1] == '/') return npuprof_file_write_folders_(path);
    return npuprof_file_write_pattern_(to, npuprof_path_form_(to), npuprof_path_output_.forked, path);
}

/* Writes the trace as it is now to a file that does not exist yet: the output path with a number before its
   extension, and in the child of a fork with the pid. *path: the file, or where it failed. A device or a pipe
   is written again. */
NPUPROF_OWN_ static npuprof_result npuprof_file_write_next_(npuprof_path_ *path)
{
    const char *const to = npuprof_path_output_.pattern;
    const int form = npuprof_path_form_(to);
    const size_t n = strlen(to);
    npuprof_path_ pattern;
    if (!npuprof_path_expand_(npuprof_arena_.header, to, 0, path)) return NPUPROF_ERR_ARGUMENT;
    if (to[n - 1] == '/' || npuprof_os_in_place_(path->text)) return npuprof_file_write_output_(path);
    if (path->is_numbered) return npuprof_file_write_numbered_(to, form, path);
    npuprof_text_copy_(pattern.text, sizeof pattern.text, to);
    if (!npuprof_path_insert_(&pattern, npuprof_path_output_.forked && !path->is_own ? "-%p.%i" : ".%i"))
        return NPUPROF_ERR_ARGUMENT;
    return npuprof_file_write_numbered_(pattern.text, form, path);
}

/* At exit, what the windows of a schedule are to have: the last one, if anything was recorded in it. */
NPUPROF_OWN_ static npuprof_result npuprof_file_write_last_window_(npuprof_path_ *path)
{
    npuprof_stats stats;
    const npuprof_result r = npuprof_get_stats(&stats);
    if (r == NPUPROF_OK && !stats.recorded && !stats.lost) return NPUPROF_OK;
    return npuprof_file_write_next_(path);
}

/* Names the words of the category list that never occurred: they may be misspelt. */
NPUPROF_OWN_ static void npuprof_file_report_unseen_categories_(void)
{
    const npuprof_record_list_ *const list = npuprof_record_categories_;
    const char *const from = npuprof_control_lists_.from[0] ? npuprof_control_lists_.from : "categories";
    const char *at = list ? list->words : "", *item;
    size_t length;
    for (unsigned n = 0; n < 32 && npuprof_text_next_item_(&at, &item, &length); n++) {
        char word[sizeof list->words];
        npuprof_text_copy_(word, length + 1, item);
        if (!(NPUPROF_LOAD_(&list->seen) >> n & 1))
            npuprof_env_refuse_(from, word, "this category never occurred");
    }
}

/* Ends the stream, and says on stderr what was lost if that failed. */
NPUPROF_OWN_ static void npuprof_file_end_stream_(void)
{
    uint64_t left = 0;
    const npuprof_result r = npuprof_stream_flush_(&left);
    const char *const why = r == NPUPROF_ERR_NO_SPACE ? "no space left on the device" :
                            r == NPUPROF_ERR_ACCESS ? "permission denied" : "its sink failed";
    const unsigned long long lost = NPUPROF_LOAD_(&npuprof_arena_.header->lost[NPUPROF_LOST_SINK]) + left;
    if (r == NPUPROF_OK) return;
    npuprof_os_say_("npuprof: the stream: %s, %llu spans and events are lost by cause \"sink\"\n", why, lost);
}

/* At normal exit: ends the stream, and writes what output_path asks for. */
NPUPROF_OWN_ static void npuprof_file_write_at_exit_(void)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    void (*const nothing)(void *, bool) = NULL;
    npuprof_path_ path;
    if (NPUPROF_LOAD_ACQUIRE_(&npuprof_record_setup_) != 2) return;
    const bool is_stream = s->when_full == NPUPROF_STREAM;
    const bool is_ours = is_stream && npuprof_path_is_stream_() &&
        (npuprof_stream_.fd >= 0 || !npuprof_stream_.sink.write);
    if (npuprof_path_arena_.bytes) npuprof_arena_renew_last_anchor_();
    if (!npuprof_path_output_.at_exit && !is_stream) return;
    /* Why: a program that reads an image back still writes its own trace. */
    npuprof_image_given_ = NULL;
    /* Why: what the program's function needs may be gone. */
    NPUPROF_STORE_RELEASE_(&npuprof_control_.tell, nothing);
    npuprof_stop();
    npuprof_file_report_unseen_categories_();
    npuprof_capture_report_unseen_();
    if (npuprof_env_.when_full == NPUPROF_STREAM && !is_stream)
        npuprof_env_refuse_("NPUPROF_WHEN_FULL", "stream",
                            "needs NPUPROF_OUTPUT_PATH to end in .npuprof, or a sink of the program; "
                            "keep-oldest was used");
    if (is_stream) npuprof_file_end_stream_();
    if (!npuprof_path_output_.at_exit || is_ours) return;
    path.text[0] = 0;
    const npuprof_result r = npuprof_capture_set_.by_windows ? npuprof_file_write_last_window_(&path)
        : npuprof_file_write_output_(&path);
    if (r == NPUPROF_ERR_ARGUMENT)
        npuprof_os_say_("npuprof: %s: the path is too long or holds an unknown %% sequence; "
                        "nothing written\n", npuprof_path_output_.pattern);
    else if (r != NPUPROF_OK)
        npuprof_os_say_("npuprof: %s: %s\n", path.text, npuprof_result_string(r));
}

NPUPROF_API_ npuprof_result npuprof_dump(const char *path)
{
    if (!path) return NPUPROF_REFUSE_("npuprof_dump: path is NULL");
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    const char *const dot = strrchr(path, '.');
    if (dot && (strcmp(dot, ".pftrace") == 0 || strcmp(dot, ".gz") == 0) && !npuprof_os_in_place_(path))
        return NPUPROF_REFUSE_("npuprof_dump: path ends in .pftrace or .gz: dump a .npuprof, and "
                               "`npuprof.py convert t.npuprof -o t.pftrace.gz` makes that of it");
    return npuprof_file_write_(path, npuprof_path_form_(path));
}

NPUPROF_API_ npuprof_result npuprof_write_json(npuprof_sink sink)
{
    if (!sink.write) return NPUPROF_REFUSE_("npuprof_write_json: sink.write is NULL");
#ifdef NPUPROF_NO_JSON
    return NPUPROF_LEFT_OUT_("NPUPROF_NO_JSON leaves JSON out; npuprof-convert makes it of an image");
#else
    if (!npuprof_scratch_lock_()) return npuprof_scratch_result_();
    const int error = npuprof_write_json_locked_(sink);
    npuprof_scratch_unlock_();
    return npuprof_os_result_(error);
#endif
}
/* ==== src/write/capture.h =========================================================== >>write/capture ==== */

/* The files of capture control: the trace as it is now, or a part of it, under a name that is new.

   A window of a schedule is written and then forgotten, so that each file holds its own window. Nothing may
   be lost uncounted between the two, or be in two files: a thread that passed the gate before it closed may
   record while the file is written. So a moment divides the windows: what began up to then is written and
   forgotten, and what begins later belongs to the next file. A thread that is in the middle of a record at
   that moment is waited for.

   Owns no data. This part may not know the conditions. */

/* Waits until no thread is in the middle of a record, but for a second at most. The gate is closed. */
NPUPROF_OWN_ static void npuprof_file_wait_for_records_(void)
{
    bool busy = true;
    const int64_t begin = npuprof_os_monotonic_ns_();
    while (busy && npuprof_os_monotonic_ns_() - begin < 1000000000) {
        npuprof_os_yield_();
        busy = false;
        for (uint32_t at = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.header->slot_first); at;) {
            const npuprof_slot_ *const slot = npuprof_slot_at_(at);
            busy |= NPUPROF_LOAD_(&slot->owned) && NPUPROF_LOAD_(&slot->busy);
            at = slot->head.next_slot;
        }
    }
}

/* Writes a window and forgets it. */
NPUPROF_OWN_ static npuprof_result npuprof_file_write_window_(npuprof_path_ *path)
{
    npuprof_stats before, now;
    const uint64_t until = npuprof_clock_();
    npuprof_file_wait_for_records_();
    npuprof_result r = npuprof_get_stats(&before);
    if (r != NPUPROF_OK) return r;
    npuprof_image_limit_(0, until);
    r = npuprof_file_write_next_(path);
    npuprof_image_limit_(0, 0);
    if (r == NPUPROF_OK) r = npuprof_get_stats(&now);
    if (r == NPUPROF_OK) r = npuprof_control_clear_before_(until + 1);
    /* What was lost meanwhile counts for the next file. */
    if (r == NPUPROF_OK && now.lost > before.lost)
        npuprof_count_lost_(NPUPROF_LOST_READING, now.lost - before.lost);
    return r;
}

/* clear: forgets what was written. last_ns: leaves out what began longer ago; 0: nothing. With NPUPROF_STREAM
   the sink gets what was recorded so far. */
NPUPROF_OWN_ static npuprof_result npuprof_file_capture_(bool clear, uint64_t last_ns)
{
    npuprof_path_ path;
    uint64_t error_ticks;
    if (npuprof_arena_.when_full == NPUPROF_STREAM) return npuprof_flush();
    if (!npuprof_path_output_.pattern[0])
        return NPUPROF_REFUSE_("capture control: there is no path to write to; give NPUPROF_OUTPUT_PATH, or "
                               "output_path in npuprof_desc");
    if (clear) return npuprof_file_write_window_(&path);
    if (last_ns)
        npuprof_image_limit_(npuprof_ticks_at_ns_(npuprof_now_ns() - (int64_t)last_ns, &error_ticks), 0);
    const npuprof_result r = npuprof_file_write_next_(&path);
    npuprof_image_limit_(0, 0);
    return r;
}
/* ==== src/process/fork.h ============================================================= >>process/fork ==== */

/* The child of a fork: a function that setup.h hands to os/, and the first record of the child.

   In the child of a fork only the calling thread is left. Every word that names a thread is set back, and the
   child begins with an empty arena; the table of names stays. Memory is emptied at once. A mapped file is the
   parent's, so npuprof_record_setup_ becomes 3, and the first record moves the child to a file of its own
   (npuprof_fork_leave_parent_).

   Data: all of npuprof_arena_ and of the arena. In the child, nobody else writes it: the hook runs before
   fork() returns, and state 3 is left by one thread, as in setup.h.

   This part may not know formats. */

/* Runs in the child of a fork. */
NPUPROF_OWN_ static void npuprof_fork_in_child_(void)
{
    npuprof_arena_state_ *s = &npuprof_arena_;
    if (npuprof_record_setup_ != 2) return;
    /* Why not always: a daemon forks before it records anything, and keeps the paths as they are. */
    const bool records = npuprof_control_.started || s->header->threads;
    if (records || npuprof_path_output_.at_exit || npuprof_path_arena_.bytes)
        npuprof_path_output_.forked = true;
    npuprof_process_forget_threads_();
    if (npuprof_control_.armed) npuprof_capture_start_over_(npuprof_control_.held & NPUPROF_HOLD_COMMAND_);
    npuprof_stream_forget_();
    if (npuprof_path_arena_.bytes) {
        /* Why the file is not made now: most children only call exec, and would leave an empty one. */
        npuprof_record_setup_ = 3;
        npuprof_control_advance_generation_();
    } else {
        npuprof_fork_start_over_();
    }
    npuprof_control_set_gate_();
}

/* Makes npuprof_arena_ point to the arena that was copied to this memory. */
NPUPROF_OWN_ static void npuprof_fork_move_to_(void *memory)
{
    npuprof_arena_state_ *s = &npuprof_arena_;
    npuprof_arena_use_(memory);
    if (memory == npuprof_arena_static_) {
        const size_t room =
            (sizeof npuprof_arena_static_ - s->header->chunks_offset) / s->header->chunk_bytes;
        if (s->header->chunk_count > room) s->header->chunk_count = (uint32_t)room;
    }
}

/* Copies header and table of the parent's arena, whose threads go on, to this memory of so many bytes. The
   table's pages come to the first chunks. False: they do not fit. */
NPUPROF_OWN_ static bool npuprof_fork_copy_names_(uint8_t *memory, size_t bytes)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    const npuprof_header_ *const h = s->header;
    uint32_t *const copy = (uint32_t *)(void *)(memory + h->table_offset);
    const size_t buckets = (size_t)((uint8_t *)s->buckets - s->base);
    const size_t behind_them = buckets + (size_t)s->bucket_count * 4;
    if (h->chunks_offset > bytes) return false;
    /* Why in this order: what leads to a name before the name, whose thread went the other way. */
    memcpy(memory + buckets, s->buckets, behind_them - buckets);
    (void)NPUPROF_LOAD_SEQ_(&h->table_used);
    memcpy(memory, s->base, buckets);
    (void)NPUPROF_LOAD_SEQ_(&h->table_used);
    memcpy(memory + behind_them, s->base + behind_them, h->chunks_offset - behind_them);
    const uint32_t used = NPUPROF_LOAD_ACQUIRE_(&h->table_used);
    const uint32_t behind = used > h->table_bytes ? used - h->table_bytes : 0;
    const uint32_t pages = (behind + h->chunk_bytes - 1) / h->chunk_bytes;
    if (h->chunks_offset + (uint64_t)pages * h->chunk_bytes > bytes) return false;
    for (uint32_t i = 0; i < pages; i++)
        memcpy(memory + h->chunks_offset + (size_t)i * h->chunk_bytes, npuprof_chunk_at_(s->pages[i] - 1),
               h->chunk_bytes);
    for (uint32_t i = 0; i < s->page_count; i++) copy[i] = i < pages ? i + 1 : 0;
    npuprof_header_ *const to = (npuprof_header_ *)(void *)memory;
    to->table_used = used;
    /* Why these again: what was copied may have the newest numbers, which nothing else may get. */
    to->sites = NPUPROF_LOAD_(&h->sites);
    to->devices = NPUPROF_LOAD_(&h->devices);
    return true;
}

/* Leaves the parent's mapped file, at the child's first record. The child moves to a file of its own; if it
   cannot be made, to memory of the same size; if there is none, to the static arena. Header and table are
   copied, if they fit. */
NPUPROF_OWN_ static void npuprof_fork_leave_parent_(void)
{
    npuprof_arena_state_ *s = &npuprof_arena_;
    uint8_t *const old = s->base;
    const size_t bytes = npuprof_path_arena_.bytes;
    void *memory = NULL;
    (void)npuprof_os_close_(npuprof_path_arena_.fd);
    npuprof_path_arena_.bytes = 0;
    const int error = npuprof_path_map_arena_(NULL, bytes, true, &memory);
    if (error) memory = npuprof_os_memory_(bytes);
    if (!memory) memory = npuprof_arena_static_;
    const size_t room = memory == npuprof_arena_static_ ? sizeof npuprof_arena_static_ : bytes;
    if (npuprof_fork_copy_names_((uint8_t *)memory, room)) {
        npuprof_fork_move_to_(memory);
        npuprof_fork_start_over_();
    } else {
        (void)npuprof_process_lay_out_(memory, sizeof npuprof_arena_static_, s->when_full, false);
    }
    npuprof_os_unmap_(old, bytes);
    if (error) npuprof_env_refuse_("NPUPROF_ARENA_PATH", npuprof_path_arena_.pattern, strerror(error));
}
/* ==== src/process/setup.h =========================================================== >>process/setup ==== */

/* Set-up: lays out the arena, reads the environment, and hands down the functions that lower rooms call.

   It runs once: in a constructor before main() where the compiler has one, else in the first macro or
   function that needs it. npuprof_init() comes afterwards, and may replace the arena while nothing is
   recorded in it.

   Data: npuprof_record_setup_. 0 not begun; 1 a thread is setting up; 2 ready; 3 a child of fork whose arena
   is the parent's file (fork.h). A thread turns 0 or 3 into 1 by CAS and then owns the library, until it
   stores 2, or 0 if that failed, with release. Others load it with acquire.

   This is the top: it may know every room, and none may know it. */

/* Waits for the thread that sets up, for some seconds at most. before: the state that was found.
   Why not if it is the calling thread: this is a signal handler then, and the set-up goes on behind it. */
NPUPROF_OWN_ static npuprof_result npuprof_setup_wait_(uint32_t before)
{
    const uintptr_t me = npuprof_slot_me_();
    for (unsigned n = 0; before == 1 && NPUPROF_LOAD_(&npuprof_setup_thread_) != me && n < 100000; n++) {
        npuprof_os_yield_();
        before = NPUPROF_LOAD_ACQUIRE_(&npuprof_record_setup_);
    }
    return before == 2 ? NPUPROF_OK : NPUPROF_ERR_STARTED;
}

/* Asks for huge pages for the chunks of an arena that is no file: a thread that fills fresh memory then waits
   for one page in 2 MiB instead of 512. Why not for the first chunks, nor for an arena below 4 MiB: a process
   that records little would wait for 2 MiB to be zeroed, and keep them. */
NPUPROF_OWN_ static void npuprof_setup_pages_(void)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    const size_t first = 256 * 1024, all = (size_t)s->header->arena_bytes;
    const size_t before = (size_t)s->header->chunks_offset + first;
    if (!npuprof_path_arena_.bytes && all >= 4 * 1024 * 1024)
        npuprof_os_huge_pages_(s->base + before, all - before);
}

/* Lays out the first arena, as the environment says: a mapped file, memory of another size, or the static
   one. False: the static arena is too small. */
NPUPROF_OWN_ static bool npuprof_setup_arena_(void)
{
    void *memory = npuprof_arena_static_;
    const char *const path = npuprof_env_get_("NPUPROF_ARENA_PATH"),
        *const size = npuprof_env_get_("NPUPROF_ARENA_BYTES");
    size_t bytes = size ? npuprof_env_read_size_(size) : 0;
    npuprof_env_.arena_bytes = bytes;
    if (!bytes) bytes = sizeof npuprof_arena_static_;
    npuprof_env_.arena_error = path ? npuprof_path_map_arena_(path, bytes, false, &memory) : 0;
    if (!npuprof_path_arena_.bytes && bytes > sizeof npuprof_arena_static_
        && (memory = npuprof_os_memory_(bytes)) == NULL) {
        memory = npuprof_arena_static_;
        bytes = sizeof npuprof_arena_static_;
        npuprof_env_.arena_bytes = 0;
    }
    return npuprof_process_lay_out_(memory, bytes, NPUPROF_KEEP_OLDEST, true);
}

/* Sets up, unless it is done. State 3: only leaves the parent's file. */
NPUPROF_OWN_ static npuprof_result npuprof_setup_once_(void)
{
    npuprof_arena_state_ *const s = &npuprof_arena_;
    if (npuprof_arena_has_leader_()) return NPUPROF_ERR_STARTED;
    uint32_t before = 0;
    /* Why no look before: a first access that writes takes one page fault and not two. */
    if (!NPUPROF_CAS_(&npuprof_record_setup_, &before, 1) &&
        (before != 3 || !NPUPROF_CAS_(&npuprof_record_setup_, &before, 1)))
        return npuprof_setup_wait_(before);
    NPUPROF_STORE_(&npuprof_setup_thread_, npuprof_slot_me_());
    if (before == 3) {
        npuprof_fork_leave_parent_();
        NPUPROF_STORE_RELEASE_(&npuprof_record_setup_, 2);
        return NPUPROF_OK;
    }
    npuprof_clock_choose_();
    if (!npuprof_setup_arena_()) {
        NPUPROF_STORE_RELEASE_(&npuprof_record_setup_, 0);
        return NPUPROF_ERR_ARENA_SIZE;
    }
    npuprof_setup_pages_();
    npuprof_control_advance_generation_();
    npuprof_os_hook_(npuprof_process_thread_ends_, npuprof_fork_in_child_, npuprof_file_write_at_exit_);
    npuprof_arena_hooks_.drain = npuprof_stream_drain_;
    npuprof_arena_hooks_.ends = npuprof_process_end_slot_;
    npuprof_capture_hooks_.write = npuprof_file_capture_;
    NPUPROF_STORE_RELEASE_(&npuprof_record_setup_, 2);
    npuprof_env_read_();
    const char *const why = npuprof_capture_arm_();
    if (why) npuprof_env_refuse_("NPUPROF_SIGNAL", npuprof_os_env_("NPUPROF_SIGNAL"), why);
    if (npuprof_capture_set_.slow_kind && npuprof_env_.when_full < 0)
        npuprof_control_set_policy_(NPUPROF_KEEP_NEWEST);
    if (npuprof_env_.populate) npuprof_os_populate_(s->base, (size_t)s->header->arena_bytes);
    npuprof_control_set_gate_();
    return NPUPROF_OK;
}

/* Sets up if nothing has yet. Does a macro of this level record now? INT_MAX in the gate means that nobody
   has set it. */
NPUPROF_API_ bool npuprof_opens_(int level)
{
    (void)npuprof_setup_once_();
    /* Why not a plain store: another thread may have opened the gate meanwhile. */
    int waiting = INT_MAX;
    (void)NPUPROF_CAS_(&npuprof_gate_, &waiting, INT_MIN);
    return NPUPROF_LOAD_(&npuprof_gate_) >= level;
}

/* Looks for what is wrong with the settings alone, whatever the state of the library. */
NPUPROF_OWN_ static npuprof_result npuprof_setup_check_(const npuprof_desc *desc)
{
    if (desc->when_full < NPUPROF_KEEP_OLDEST || desc->when_full > NPUPROF_STREAM)
        return NPUPROF_REFUSE_("npuprof_init: when_full is none of NPUPROF_KEEP_OLDEST, _KEEP_NEWEST and "
                               "_STREAM");
    if (desc->output_path && strlen(desc->output_path) >= sizeof npuprof_path_output_.pattern)
        return NPUPROF_REFUSE_("npuprof_init: output_path is longer than 1023 bytes");
    if (desc->arena && desc->arena_path)
        return NPUPROF_REFUSE_("npuprof_init: give arena or arena_path, not both");
    if (desc->arena_bytes && !desc->arena && !desc->arena_path)
        return NPUPROF_REFUSE_("npuprof_init: arena_bytes without arena or arena_path");
    if (desc->arena && (desc->arena_bytes < 2048 || ((uintptr_t)desc->arena & 7)))
        return NPUPROF_ERR_ARENA_SIZE;
    if (desc->arena_path && desc->arena_bytes && desc->arena_bytes < 2048) return NPUPROF_ERR_ARENA_SIZE;
    if (desc->output_path && npuprof_path_form_(desc->output_path) < 0) return NPUPROF_ERR_UNSUPPORTED;
    return NPUPROF_OK;
}

/* Moves to the arena that the settings ask for, unless the environment chose one. */
NPUPROF_OWN_ static npuprof_result npuprof_setup_move_(const npuprof_desc *desc)
{
    npuprof_arena_state_ *s = &npuprof_arena_;
    void *memory = npuprof_path_arena_.bytes || npuprof_env_.arena_bytes ? NULL : desc->arena;
    size_t bytes = npuprof_env_.arena_bytes ? npuprof_env_.arena_bytes : desc->arena_bytes ? desc->arena_bytes
        : sizeof npuprof_arena_static_;
    const bool map = desc->arena_path && !npuprof_path_arena_.bytes;
    if ((memory || map) && (NPUPROF_LOAD_(&s->header->threads) || s->header->devices))
        return NPUPROF_ERR_STARTED;
    if (map) {
        const npuprof_result mapped =
            npuprof_os_result_(npuprof_path_map_arena_(desc->arena_path, bytes, false, &memory));
        if (mapped != NPUPROF_OK) return mapped;
    }
    if (memory) {
        const npuprof_header_ *old = s->header;
        NPUPROF_STORE_(&npuprof_gate_, INT_MIN);
        (void)npuprof_process_lay_out_(memory, bytes, s->when_full, map);
        npuprof_setup_pages_();
        npuprof_image_copy_metadata_(old);
        /* The entries of gaps lie in the old table. */
        if (npuprof_control_.paused) npuprof_control_.paused = NPUPROF_PAUSE_NO_ENTRY_;
        NPUPROF_STORE_(&npuprof_control_.held, NPUPROF_LOAD_(&npuprof_control_.held) & NPUPROF_HOLD_BITS_);
        npuprof_control_advance_generation_();
    }
    if (desc->populate || (memory && npuprof_env_.populate))
        npuprof_os_populate_(s->base, (size_t)s->header->arena_bytes);
    return NPUPROF_OK;
}

/* Sets what happens when the arena is full, unless the environment said it. */
NPUPROF_OWN_ static npuprof_result npuprof_setup_policy_(const npuprof_desc *desc)
{
    int when_full = npuprof_env_.when_full >= 0 ? npuprof_env_.when_full : desc->when_full;
    /* A trigger is for what was recorded last. */
    if (npuprof_capture_set_.slow_kind && npuprof_env_.when_full < 0 && when_full == NPUPROF_KEEP_OLDEST)
        when_full = NPUPROF_KEEP_NEWEST;
    npuprof_stream_.sink = desc->sink;
    if (when_full != NPUPROF_STREAM || npuprof_stream_.sink.write || npuprof_path_is_stream_())
        npuprof_control_set_policy_(when_full);
    else if (npuprof_env_.when_full < 0)
        return NPUPROF_REFUSE_("npuprof_init: NPUPROF_STREAM without a sink, and output_path does not end "
                               "in .npuprof");
    return NPUPROF_OK;
}

/* Capture control, as the settings ask for it. The signals last: they are taken only if all else is right. */
NPUPROF_OWN_ static npuprof_result npuprof_setup_capture_(const npuprof_capture *c)
{
    const char *const texts[NPUPROF_CAPTURE_TEXTS_] = { c->schedule, c->delay, c->duration, c->trigger,
                                                        c->control_path, c->signal };
    const npuprof_capture_settings_ before = npuprof_capture_set_;
    for (int i = 0; i < NPUPROF_CAPTURE_TEXTS_; i++) {
        const npuprof_capture_text_ *const t = &npuprof_capture_texts_[i];
        const char *const why = texts[i] && !(npuprof_env_.conditions & t->group) ? t->set(texts[i]) : NULL;
        if (!why) continue;
        npuprof_capture_set_ = before;
        (void)npuprof_os_explain_(NPUPROF_ERR_ARGUMENT, "NPUPROF_ERR_ARGUMENT: npuprof_init: capture.%s: %s",
                                  t->field, why);
        return npuprof_os_refuse_(npuprof_os_say_to_me_()->explained);
    }
    npuprof_control_.tell_user = c->user;
    npuprof_control_.tell = c->gate;
    if (!npuprof_capture_arm_()) return NPUPROF_OK;
    return NPUPROF_REFUSE_("npuprof_init: capture.signal: the program has a handler for this signal, or "
                           "ignores it");
}

NPUPROF_API_ npuprof_result npuprof_init_(const npuprof_desc *desc, size_t desc_bytes, int version)
{
    static const npuprof_desc none = { NULL, 0, NULL, 0, { NULL, NULL }, NULL, NULL, false, NULL };
    if (version != NPUPROF_VERSION || desc_bytes != sizeof(npuprof_desc)) return NPUPROF_ERR_VERSION;
    if (!desc) desc = &none;
    npuprof_result r = npuprof_setup_check_(desc);
    if (r != NPUPROF_OK) return r;
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    if (npuprof_control_.started) return NPUPROF_ERR_STARTED;
    r = npuprof_setup_move_(desc);
    if (r != NPUPROF_OK) return r;
    if (desc->output_path && !npuprof_path_output_.at_exit) npuprof_path_set_output_(desc->output_path);
    if (desc->capture) r = npuprof_setup_capture_(desc->capture);
    if (r == NPUPROF_OK) r = npuprof_setup_policy_(desc);
    if (r == NPUPROF_OK && desc->categories && !npuprof_control_lists_.from[0])
        r = npuprof_set_categories(desc->categories);
    npuprof_control_set_gate_();
    npuprof_control_tell_();
    return r;
}

#ifdef NPUPROF_DESTRUCTOR_
/* Why: threads may live longer than a plugin that is unloaded. They must not call into it when they end. */
NPUPROF_DESTRUCTOR_ NPUPROF_OWN_ static void npuprof_process_unhook_(void)
{
    npuprof_capture_leave_signals_();
    npuprof_os_unhook_();
}

#endif
#ifdef NPUPROF_CONSTRUCTOR_
#if NPUPROF_SHARED_
/* Says that the spans of this library are not recorded, because a copy of another version leads: in its
   trace, and on stderr if one is asked for. Why not recorded: nothing says that the two versions agree. */
NPUPROF_COLD_ NPUPROF_OWN_ static void npuprof_process_name_other_version_(void)
{
    const char *const library = npuprof_os_library_();
    char text[400];
    snprintf(text, sizeof text, "the spans of %.200s are not recorded: the program has an npuprof.h of "
             "another version, or another NPUPROF_NOW; compile both with the same",
             library ? library : "a library");
    (void)npuprof_metadata("npuprof of another version", text);
    if (npuprof_env_get_("NPUPROF_OUTPUT_PATH")) npuprof_os_say_("npuprof: %s\n", text);
}

#endif
/* Why a constructor: NPUPROF_OUTPUT_PATH must work for a program that never calls npuprof. */
NPUPROF_CONSTRUCTOR_ NPUPROF_OWN_ static void npuprof_process_begin_(void)
{
#if NPUPROF_SHARED_
    if (npuprof_arena_has_other_version_()) npuprof_process_name_other_version_();
#endif
    (void)npuprof_setup_once_();
}
#endif /* NPUPROF_CONSTRUCTOR_ */
#endif /* !NPUPROF_RECORD_ONLY */
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_

#endif /* NPUPROF_FREESTANDING */

NPUPROF_QUIET_POP_
NPUPROF_END_C_

#endif /* NPUPROF_IMPLEMENTATION */
#if defined(__clang__) && defined(NPUPROF_AUTO)
#pragma clang attribute pop
#endif

/* MIT License

   Copyright (c) the npuprof authors

   Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
   associated documentation files (the "Software"), to deal in the Software without restriction, including
   without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
   copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the
   following conditions:

   The above copyright notice and this permission notice shall be included in all copies or substantial
   portions of the Software.

   THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
   LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO
   EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER
   IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE
   USE OR OTHER DEALINGS IN THE SOFTWARE. */

#pragma once   /* SPDX-License-Identifier: MIT */

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

/* NPUPROF_SCRATCH_BYTES: deprecated, without a successor. How many bytes of address space writers and reports
   map for lanes and tables, while they run. Implementing file. Default 4 MiB; at least 1024; not used with
   NPUPROF_FREESTANDING. What is mapped and not used costs nothing. Traces and tables are complete with any
   size; the memory tables are the exception, and say so when they leave records out: of more than 70,000
   threads with the default.
   Why two ways to say it: before C23 #warning is an extension, which strict builds refuse. */
#ifndef NPUPROF_SCRATCH_BYTES
#define NPUPROF_SCRATCH_BYTES (4 * 1024 * 1024)
#elif defined(__STRICT_ANSI__) || defined(_WIN32)
#pragma message("npuprof.h: NPUPROF_SCRATCH_BYTES is deprecated; leave it out, there is no scratch memory")
#else
#warning "npuprof.h: NPUPROF_SCRATCH_BYTES is deprecated; leave it out, there is no scratch memory"
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

/* NPUPROF_USDT: any file. A probe at each macro that begins or ends a span, marks a moment or counts, for
   perf, bpftrace, SystemTap and gdb. >>public/usdt lists them. A file that includes both headers defines it
   before the first. Needs gcc or clang, and ELF. Levels and categories are the recorder's: a probe has
   neither. */

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

/* NPUPROF_NO_ATTACH: implementing file. Leaves out what `npuprof.py attach PID` looks for, so nobody switches
   the recording on from outside. It is there on Linux only, and neither with NPUPROF_RECORD_ONLY nor with
   NPUPROF_FREESTANDING. */

/* The rest is for NPUPROF_FREESTANDING.

   NPUPROF_WHEN_FULL: implementing file. NPUPROF_KEEP_OLDEST (default), NPUPROF_KEEP_NEWEST or NPUPROF_STREAM.
   Why while compiling: so that nobody has the flash of what he does not use.
   NPUPROF_SINK(bytes, count): implementing file, with NPUPROF_STREAM. Hands bytes on: its value is how many
   of them were taken, 0 for none. In place of desc.sink and npuprof_init(), which take more flash.
   NPUPROF_NAMES: implementing file, with a ring: NPUPROF_KEEP_NEWEST or NPUPROF_STREAM. So many names of
   numbers and tracks, and keys of metadata, stay however long it runs: a power of two, 1 to 4096, default 32.
   Each takes 8 bytes of RAM. Those beyond are overwritten as other records are.
   NPUPROF_CHECKED: implementing file, with NPUPROF_KEEP_OLDEST. Each 16 cells have a checksum of the records
   that are finished, so the host names what a dump of the memory has wrong. On a Cortex-M0+ a record takes
   some 30 instructions more, and 45 for each of its cells; 160 bytes of flash, and 1.5 % of the arena.
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
#if defined(NPUPROF_CHECKED) && NPUPROF_WHEN_FULL != NPUPROF_KEEP_OLDEST
#error "npuprof.h: NPUPROF_CHECKED needs NPUPROF_WHEN_FULL NPUPROF_KEEP_OLDEST"
#endif
#ifndef NPUPROF_NAMES
#define NPUPROF_NAMES 32
#endif
#if NPUPROF_NAMES < 1 || NPUPROF_NAMES > 4096 || (NPUPROF_NAMES & (NPUPROF_NAMES - 1)) != 0
#error "npuprof.h: NPUPROF_NAMES must be a power of two, 1 to 4096"
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

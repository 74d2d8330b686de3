#pragma once   /* SPDX-License-Identifier: MIT */
#include "version.h"

/* NPUPROF_ARENA_BYTES: size of the static arena. Implementing file. Default 16 MiB, freestanding 4 KiB. At
   least 2048, freestanding 256, or 0: then npuprof_init() gives the memory. */
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

/* NPUPROF_SCRATCH_BYTES: static working memory of the writers and reports (sorting, lanes, output buffer).
   Implementing file. Default 1 MiB; freestanding there is none. More is faster with many device spans, never
   needed for a right result. */
#ifndef NPUPROF_SCRATCH_BYTES
#define NPUPROF_SCRATCH_BYTES (1024 * 1024)
#endif
#if NPUPROF_SCRATCH_BYTES < 1024
#error "npuprof.h: NPUPROF_SCRATCH_BYTES must be at least 1024"
#endif

/* NPUPROF_NO_JSON, NPUPROF_NO_REPORTS: implementing file. Without JSON its writers return
   NPUPROF_ERR_UNSUPPORTED; without reports a call of npuprof_print_* or npuprof_bench* does not link. */

/* NPUPROF_NOW(): every file: an expression of unsigned type that reads the user's clock. NPUPROF_NOW_HZ: its
   rate.
   NPUPROF_NOW_BITS: valid bits, 8 to 64, default those of its type. A clock of fewer bits is extended; a gap
   longer than 7/8 of a period between two stamps of the process cannot be seen (freestanding: 99 % of one, 93
   % below 13 bits). It must count up and wrap to 0 after all ones: of a 24-bit SysTick that counts down from
   0xFFFFFF, take 0xFFFFFF - SysTick->VAL. Without NPUPROF_NOW_BITS it must be allowed in a sizeof outside
   functions, which gcc's statement expressions are not. */
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

/* The rest is for NPUPROF_FREESTANDING.
   NPUPROF_CONTEXT(): every file: number of the running task or core, below NPUPROF_CONTEXTS (1 to 256,
   default 1). Each is a track of its own. An interrupt belongs to what it interrupts, or is given a number,
   too. NPUPROF_MASK() NPUPROF_UNMASK(before): implementing file: keep interrupts, and other cores, off for
   some thirty instructions and a clock read; they do not nest. Needed only where several cores without
   exclusive access record (the two Cortex-M0+ of an RP2040: a hardware spin lock); default: the core's own.
   NPUPROF_BUILD_ID: implementing file: address of the program's GNU build id, the note that ld --build-id
   writes; a linker script gives it a name: .note.gnu.build-id : { build_id = .; KEEP(*(.note.gnu.build-id))
   }. A dump of memory then says which build it is of, as npuprof_write_image() does by the names.
   NPUPROF_NAMES_SECTION: every file: name of a section for call sites and literal names, such as
   "npuprof_names". A linker script that places it as (INFO) keeps them in the ELF file and out of the flash.
   Needs NPUPROF_NO_JSON. */
#ifndef NPUPROF_CONTEXTS
#define NPUPROF_CONTEXTS 1
#endif
#ifndef NPUPROF_CONTEXT
#define NPUPROF_CONTEXT() 0
#endif
#if NPUPROF_CONTEXTS < 1 || NPUPROF_CONTEXTS > 256
#error "npuprof.h: NPUPROF_CONTEXTS must be 1 to 256"
#endif

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

   KNOBS (macros to define before the include; >>public/config has all others, with defaults and ranges)
     NPUPROF_IMPLEMENTATION   one file of the program: it gets the code
     NPUPROF_OFF              any file: every npuprof name becomes a no-op there
     NPUPROF_STATIC           the implementing file: all names are private to it, and it has its own arena
     NPUPROF_FREESTANDING     every file: for a microcontroller; see examples/firmware
     NPUPROF_NPU_RECORDS      every file: with it, for completion records (npuprof_npu.h)

   THREADS
   Any thread may call every macro and function, except where a comment says otherwise. A thread takes a slot
   at its first record and frees it when it ends; its tid in the outputs is the number of that slot. Signal
   handlers may record. A handler that interrupts a record being written gets a context of its own; the
   outputs show it on the same thread.

   WHEN THE ARENA IS FULL
   The oldest records stay, or the newest, or all go to a sink: >>public/types. Every loss is counted by
   cause, exactly: recorded + lost = executed. The counts are in every output.
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
#if defined(__clang__) && defined(NPUPROF_AUTO) && !defined(NPUPROF_OFF) && \
    (!defined(NPUPROF_H) || (defined(NPUPROF_IMPLEMENTATION) && !defined(NPUPROF_IMPLEMENTATION_DONE_)))
#define NPUPROF_PUSHED_
/* Why: clang puts calls of NPUPROF_AUTO's hooks also into inline functions of the C library, and the hooks
   use those. So none of them may be declared before this. */
#pragma clang attribute push(__attribute__((no_instrument_function)), apply_to = function)
#endif
#if !defined(__cplusplus) && defined(__STDC__) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
/* Why the rest is skipped: this sentence is then the only error. */
#error "npuprof.h: this is C89; compile with -std=c99 or later"
#elif !defined(NPUPROF_H)
#define NPUPROF_H

#include "public/config.h"
#include "public/compiler.h"
NPUPROF_QUIET_PUSH_
#include "public/types.h"
#include "public/api.h"
#include "public/read.h"
#include "public/args.h"
#include "public/usdt.h"
#include "public/hot.h"
#include "public/device.h"
#include "public/macros.h"
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

#include "numbers/time.h"
#include "numbers/text.h"
#include "format/layouts.h"
#include "format/compact.h"

#ifdef NPUPROF_FREESTANDING

#include "os/none.h"
#include "firmware/arena.h"
#include "firmware/cells.h"
#include "firmware/oldest.h"
#include "firmware/ring.h"
#include "firmware/newest.h"
#include "firmware/stream.h"
#include "firmware/policy.h"
#include "firmware/poll.h"
#include "firmware/record.h"
#include "firmware/notes.h"
#include "firmware/event.h"
#include "firmware/rtos.h"
#include "firmware/read.h"
#include "firmware/control.h"
#include "firmware/image.h"
#include "firmware/result.h"
#include "firmware/json_text.h"
#include "firmware/json.h"

#else /* !NPUPROF_FREESTANDING */

#include "numbers/wide.h"
#include "numbers/hash.h"
#include "numbers/heap.h"
#include "format/arena.h"
#include "arena/state.h"
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_ NPUPROF_COLD_
#include "os/vdso.h"
#include "os/posix.h"
#include "os/posix_files.h"
#include "os/posix_control.h"
#include "os/windows.h"
#include "os/objects.h"
#include "os/common.h"
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_
#include "clock/host.h"
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_ NPUPROF_COLD_
#include "arena/anchors.h"
#include "arena/layout.h"
#include "arena/chunks.h"
#include "arena/thread.h"
#include "arena/exchange.h"
#include "arena/slots.h"
#ifndef NPUPROF_RECORD_ONLY    /* there, size counts more than the time of a record that is no plain span */
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_
#endif
#include "arena/table.h"
#include "record/args.h"
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_
#include "record/attach.h"
#include "record/enter.h"
#include "record/span.h"
#include "record/begin.h"
#include "record/boundary.h"
#include "record/end.h"
#ifdef NPUPROF_RECORD_ONLY
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_ NPUPROF_COLD_
#endif
#include "record/event.h"
#include "record/objects.h"
#include "record/auto.h"
#include "record/device_span.h"
#include "record/memory.h"
#include "record/thread.h"
#include "record/result.h"
/* What follows runs seldom, or does not record: it is compiled for size. */
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_ NPUPROF_COLD_
#include "record/device.h"
#include "control/start.h"
#include "control/lock.h"
#include "control/attach.h"
#ifndef NPUPROF_RECORD_ONLY
#include "control/path.h"
#include "control/conditions.h"
#include "control/environment.h"
#include "control/capture.h"
#endif /* !NPUPROF_RECORD_ONLY */
#include "clock/device_map.h"
#include "clock/evidence.h"
#include "numbers/digits.h"
#include "read/image.h"
#include "read/cursor.h"
#include "read/threads.h"
#include "read/time.h"
#include "read/rate.h"
#include "read/kinds.h"
#include "read/place.h"
#include "read/list.h"
#include "read/placed.h"
#include "read/live.h"
#include "read/survey.h"
#include "read/args.h"
#ifndef NPUPROF_RECORD_ONLY
#include "read/since.h"
#include "read/hand.h"
#include "read/walk.h"
#include "read/executions.h"
#include "read/merge.h"
#include "read/lanes.h"
#include "read/scene.h"
#ifndef NPUPROF_NO_JSON
#include "read/scene_facts.h"
#include "read/scene_thread.h"
#include "read/scene_placed.h"
#include "read/scene_flows.h"
#endif /* !NPUPROF_NO_JSON */
#include "read/memory.h"
#endif /* !NPUPROF_RECORD_ONLY */
#include "numbers/real.h"
#include "write/text.h"
#include "write/code.h"
#include "write/block.h"
#include "write/image.h"
#include "write/dump.h"
#include "write/file.h"
#ifndef NPUPROF_RECORD_ONLY
#include "write/work.h"
#include "write/span_text.h"
#include "write/stream.h"
#ifndef NPUPROF_NO_JSON
#include "write/emit.h"
#include "write/json_plain.h"
#include "write/json.h"
#include "write/json_clock.h"
#include "write/json_head.h"
#endif /* !NPUPROF_NO_JSON */
#include "write/csv.h"
#include "write/csv_memory.h"
#include "write/sheet.h"
#endif /* !NPUPROF_RECORD_ONLY */
#ifndef NPUPROF_NO_REPORTS
#include "report/common.h"
#include "report/summary.h"
#include "report/tables.h"
#include "report/memory.h"
#include "report/bench.h"
#else
#include "report/none.h"
#endif /* !NPUPROF_NO_REPORTS */
#include "process/restart.h"
#ifdef NPUPROF_RECORD_ONLY
#include "process/only.h"
#else
#include "write/files.h"
#include "write/capture.h"
#include "process/fork.h"
#include "process/setup.h"
#endif /* !NPUPROF_RECORD_ONLY */
#undef NPUPROF_ROOM_
#define NPUPROF_ROOM_

#endif /* NPUPROF_FREESTANDING */

NPUPROF_QUIET_POP_
NPUPROF_END_C_

#endif /* NPUPROF_IMPLEMENTATION */
#ifdef NPUPROF_PUSHED_
#undef NPUPROF_PUSHED_
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

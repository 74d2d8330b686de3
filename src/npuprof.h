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

   Run it, open hello.json in https://ui.perfetto.dev, or run any instrumented program with
   NPUPROF_OUTPUT_PATH=t.json in the environment and change no line at all.

   WHAT IT DOES NOT DO
   No sampling, no viewer, no daemon, no network, no kernel module, no symbolization, no heap, no thread of
   its own. It writes to no device register.

   KNOBS (defined before the include; section >>config has ranges and places)
     NPUPROF_IMPLEMENTATION   one file: the code goes here
     NPUPROF_OFF              any file: every npuprof name becomes a no-op there
     NPUPROF_STATIC           the implementing file: all names private to it, with an arena of its own
     NPUPROF_ARENA_BYTES      the implementing file: size of the static arena, default 16 MiB
     NPUPROF_SCRATCH_BYTES    the implementing file: working memory of writers and reports, default 1 MiB
     NPUPROF_NOW() NPUPROF_NOW_HZ NPUPROF_NOW_BITS   every file: your own clock, its rate and its width
     NPUPROF_NO_JSON NPUPROF_NO_REPORTS              the implementing file: leave that part out
     NPUPROF_FREESTANDING     every file: a microcontroller; with it NPUPROF_CONTEXT() NPUPROF_CONTEXTS
                              (tasks, cores), NPUPROF_MASK() NPUPROF_NAMES_SECTION; examples/firmware

   THREADS
   Every macro and function may be called from any thread, except where its comment says otherwise. A thread
   takes a slot at its first record and gives it back when it ends; its tid in the outputs is the number of
   that slot. Recording from a signal handler is allowed: a handler that interrupts a record in the making
   gets a context of its own, shown on the same thread.

   WHEN THE ARENA IS FULL
   NPUPROF_KEEP_OLDEST: later spans and events are counted as lost. NPUPROF_KEEP_NEWEST: the oldest chunk of
   all threads is recycled, what was in it counted; while a writer or report reads, nothing is, and threads
   that need a chunk then lose. NPUPROF_STREAM: full chunks go to a sink, by the thread that filled one; a
   thread that finds none free waits for the sink (a signal handler that interrupted a record does not). All
   exactly and by cause: recorded + lost = executed. The counts stand in every output. A thread may have 253
   spans open (125 in arenas below 1 MiB, 29 below 128 KiB, 13 below 16 KiB, 5 below 4 KiB); deeper ones are
   counted as lost, too, once their chunk is full.

   WHEN THE PROCESS DIES
   With the arena in a mapped file (NPUPROF_ARENA_PATH, npuprof_desc.arena_path) all that was recorded is in
   that file, whatever ends the process: closed spans whole, open ones marked unfinished. npuprof-convert
   reads it, also while the process runs: it shows the chunks that stand still meanwhile, and recorded + lost
   is what was executed. A child of fork starts empty, with files of its own.

   CLOCKS
   Stamps are raw ticks (rdtsc where the CPU says it is invariant, cntvct_el0, rdtime, else the monotonic
   clock, or your NPUPROF_NOW). They become nanoseconds in the reader, from clock anchors at the start and at
   the end of the trace. Device stamps become host time there too, from the device's own anchors
   (npuprof_npu.h), with an error bound.

   ERRORS
   Functions that can fail return npuprof_result; 0 is NPUPROF_OK and npuprof_result_string() gives the
   sentence. The hot path cannot fail: it counts what it drops. The library never aborts, allocates, or prints
   unasked; only what the environment asked for and cannot be had (a bad value, a file not written) is named
   once on stderr.

   OFF
   With NPUPROF_OFF the macros leave no code, no string and no symbol; their arguments are still type-checked.
   Functions become inline stubs that return NPUPROF_OK and fill their outputs with zero.

   OUTPUT
   Chrome trace JSON (Perfetto, chrome://tracing, speedscope): npuprof_dump("t.json"). CSV with one row a
   span, and behind them one for the peak of each memory pool: npuprof_dump("t.csv"). The image, which holds
   all and can be read again by npuprof-convert: npuprof_dump("t.npuprof"). Reports to a FILE*:
   npuprof_print_summary() and its siblings.

   OPERATORS (`tools/npuprof.py report` and NPUPROF_OUTPUT_PATH=d/ make the Neural Engine table of them)
   A span with the argument ne.type is an operator of a network; its name is the operator's. All other keys
   may be left out. Lists have ";" between tensors, shapes "x" inside:
     ne.type, ne.post_op              PROF_STR   "InnerProduct"; what is fused into it: "gelu_tanh"
     ne.input_names, ne.output_names  PROF_STR   "116:0;641:0;bias:0"
     ne.input_shapes, ne.output_shapes           "1024x256;256x256;256"
     ne.input_dtypes, ne.output_dtypes           "fp32;fp32;fp32"
     ne.weight_shape                  PROF_STR   "256x256"
     ne.sparse_ratio                  PROF_REAL  the share of zeros in the weight, 0 to 1
     ne.sparse_support                PROF_BOOL  a sparse kernel could do it
     ne.attributes                    PROF_STR   "append_op:sum;src1_perm:1,0"
     ne.reshape_ns, ne.forward_ns     PROF_INT   time to prepare shapes (0: they did not change), time of the
                                                 kernel. Arguments are taken when a span begins: what is known
                                                 only afterwards goes into a npuprof_span()
   Three levels: PROF_RECORD("model_inference") around spans "Iteration1", "Iteration2" (PROF_INFERENCE, if
   they are to be in the summary) around the operators; PROF_RECORD_WARM_UP around iterations that do not
   count. examples/digits does it.

   COST (`make bench` measures it on your machine)
   A span is two clock reads and one 16-byte record. A disabled span is a load, a compare and a branch.

   MISTAKES PEOPLE MAKE
     - No npuprof_start() and no NPUPROF_OUTPUT_PATH: nothing is recorded.
     - A run-time string where a literal is asked for (PROF_SCOPE): does not compile. Use WITH_BASE_PROFILER
       or PROF_BEGIN.
     - if (x) PROF_SCOPE("a");  It is a declaration: it needs a block. Does not compile, in OFF builds too.
     - case 1: PROF_SCOPE("a");  The same: case 1: { PROF_SCOPE("a"); ... }
     - goto, or a case label, past a PROF_SCOPE: gcc's C takes it, C++ and clang refuse it, in OFF builds too
       (but clang++ from 18 on).
     - PROF_SCOPE across a co_await: another thread may end it. Use npuprof_async_begin and npuprof_async_end.
     - PROF_SCOPE in MSVC's C: it does not compile. PROF_BLOCK("c", "name") { ... } and WITH_BASE_PROFILER do,
       and C++ has all.
     - Arguments with side effects: they are evaluated only while recording is on.

   TAGS  (a part stands behind its name: >>arena/chunks)
         >>public/     what a user's file compiles
         >>numbers/    arithmetic and text that know nothing of tracing
         >>format/     the image, byte by byte
         >>firmware/   the recorder without an operating system, all of it
         >>os/         the only calls of the system
         >>clock/      ticks, and their way to nanoseconds
         >>arena/      memory, and who may touch it
         >>record/     the recording functions behind the macros
         >>control/    start, stop, paths, the environment
         >>read/       the one reader of images
         >>write/      one writer for each output
         >>report/     the tables that are printed
         >>process/    set-up, ends of threads, fork and exit
   ======================================================================================================== */
#if !defined(__cplusplus) && defined(__STDC__) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L)
/* Why nothing else is read: one sentence says more than a page of errors. */
#error "npuprof.h: this is C89; compile with -std=c99 or later"
#elif !defined(NPUPROF_H)
#define NPUPROF_H

#include "public/version.h"
#include "public/config.h"
#include "public/compiler.h"
#include "public/types.h"
#include "public/api.h"
#include "public/args.h"
#include "public/hot.h"
#include "public/macros.h"

#endif /* NPUPROF_H: end of header */

#if defined(NPUPROF_H) && defined(NPUPROF_IMPLEMENTATION) && !defined(NPUPROF_OFF) && \
    !defined(NPUPROF_IMPLEMENTATION_DONE_)
#define NPUPROF_IMPLEMENTATION_DONE_

#ifndef NPUPROF_FREESTANDING
#include <stdarg.h>
#include <string.h>
#endif

NPUPROF_BEGIN_C_
/* Why: the file around may have globals of any name. */
NPUPROF_SHADOW_PUSH_

#include "numbers/time.h"
#include "numbers/text.h"
#include "format/layouts.h"
#include "format/compact.h"

#ifdef NPUPROF_FREESTANDING

#include "os/none.h"
#include "firmware/arena.h"
#include "firmware/record.h"
#include "firmware/event.h"
#include "firmware/control.h"
#include "firmware/read.h"
#include "firmware/image.h"
#include "firmware/json_text.h"
#include "firmware/json.h"

#else /* !NPUPROF_FREESTANDING */

#include "numbers/wide.h"
#include "numbers/hash.h"
#include "numbers/heap.h"
#include "format/arena.h"
#include "arena/state.h"
#include "os/posix.h"
#include "os/posix_files.h"
#include "os/windows.h"
#include "os/common.h"
#include "clock/host.h"
#include "arena/table.h"
#include "arena/anchors.h"
#include "arena/layout.h"
#include "arena/chunks.h"
#include "arena/thread.h"
#include "arena/exchange.h"
#include "arena/slots.h"
#include "record/enter.h"
#include "record/args.h"
#include "record/span.h"
#include "record/begin.h"
#include "record/end.h"
#include "record/event.h"
#include "record/memory.h"
#include "record/thread.h"
#include "record/device.h"
#include "control/start.h"
#include "control/lock.h"
#include "control/path.h"
#include "control/environment.h"
#include "clock/device_map.h"
#include "read/image.h"
#include "read/cursor.h"
#include "read/threads.h"
#include "read/time.h"
#include "read/place.h"
#include "read/order.h"
#include "read/async.h"
#include "read/batch.h"
#include "read/live.h"
#include "read/survey.h"
#include "read/args.h"
#include "read/walk.h"
#include "read/executions.h"
#include "read/merge.h"
#include "read/memory.h"
#include "write/digits.h"
#include "write/text.h"
#include "write/work.h"
#include "write/lanes.h"
#include "write/span_text.h"
#include "write/block.h"
#include "write/image.h"
#include "write/stream.h"
#ifndef NPUPROF_NO_JSON
#include "read/resume.h"
#include "write/json.h"
#include "write/json_thread.h"
#include "write/json_placed.h"
#include "write/json_flow.h"
#include "write/json_clock.h"
#include "write/json_head.h"
#endif /* !NPUPROF_NO_JSON */
#include "write/csv.h"
#include "write/csv_memory.h"
#include "write/sheet.h"
#ifndef NPUPROF_NO_REPORTS
#include "report/common.h"
#include "report/summary.h"
#include "report/tables.h"
#include "report/memory.h"
#include "report/bench.h"
#endif /* !NPUPROF_NO_REPORTS */
#include "write/files.h"
#include "write/dump.h"
#include "process/fork.h"
#include "process/setup.h"

#endif /* NPUPROF_FREESTANDING */

NPUPROF_SHADOW_POP_
NPUPROF_END_C_

#endif /* NPUPROF_IMPLEMENTATION */

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

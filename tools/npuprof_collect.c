/* libnpuprof-collect: records programs that use ITT or NVTX, without a change. `make tools` builds it.
   SPDX-License-Identifier: MIT

   A program with ITT opens the library that INTEL_LIBITTNOTIFY64 names; one with NVTX 3 that of
   NVTX_INJECTION64_PATH. NPUPROF_OUTPUT_PATH says where the trace goes, as in any program with npuprof.h;
   `npuprof.py run` sets the three. Each API is a header beside this file, with declarations of its own:

     collect/names.h   names that live as long as the process, and counts of what cannot be held
     collect/itt.h     ITT: tasks, regions, frames, markers, counters, metadata
     collect/nvtx.h    NVTX: ranges, marks, registered strings, payloads

   Spans are those of PROF_BEGIN and PROF_END, which keep the nesting: the library needs one word for each
   thread. Why so few: a library that is opened late shares some hundred bytes of thread-local storage with
   all others, and where they do not suffice, ITT says nothing and the program runs unrecorded. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE          /* dladdr */
#endif
#define NPUPROF_IMPLEMENTATION
#include "../npuprof.h"

#include "collect/itt.h"
#include "collect/nvtx.h"

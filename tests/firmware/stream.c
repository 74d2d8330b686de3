/* test: - the same as ring of a stream: parts, polled by a sink that takes some of them or fails
   SPDX-License-Identifier: MIT */
#define NPUPROF_WHEN_FULL NPUPROF_STREAM
#include "ring.c"

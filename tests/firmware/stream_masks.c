/* test: - the same as stream where cells are taken with interrupts masked
   SPDX-License-Identifier: MIT */
#define RING_MASKS
#define NPUPROF_WHEN_FULL NPUPROF_STREAM
#include "ring.c"

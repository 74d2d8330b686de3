/* test: - the same as ring where cells are taken with interrupts masked, and the clock has 20 bits
   SPDX-License-Identifier: MIT */
#define RING_MASKS
#define NPUPROF_NOW_BITS 20
#include "ring.c"

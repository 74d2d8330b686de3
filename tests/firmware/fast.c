/* test: cc=-O2 lib=-lm - the fast functions of the recorder for microcontrollers: the right values and times
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include "fake_clock.h"
#define NPUPROF_FREESTANDING
#define NPUPROF_ARENA_BYTES 65536
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "fast.h"
#include "own_json.h"

static void arguments(void) { fast_recorded(30, written); }

CHECK_MAIN(CASE(arguments))

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

enum { ROUNDS = 30 };

static void arguments(void)
{
    npuprof_start(1);
    for (int i = 0; i < ROUNDS; i++) {
        fast_spans(i);
        fast_instants(i);
    }
    npuprof_stop();
    json_node *const t = written();
    for (int i = 0; i < ROUNDS; i++) {
        fast_check(t, "X", i, 5);
        fast_check(t, "i", i, 0);
    }
}

CHECK_MAIN(CASE(arguments))

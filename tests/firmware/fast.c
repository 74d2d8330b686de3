/* test: cc=-O2 lib=-lm - the fast functions of the recorder for microcontrollers: the right values and times
   SPDX-License-Identifier: MIT */
#include "trace.h"
#include "fake_clock.h"
#define NPUPROF_FREESTANDING
#define NPUPROF_ARENA_BYTES 65536
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "fast.h"

enum { ROUNDS = 30 };
static char text[1 << 18];
static size_t length;

static int put(void *user, const void *bytes, size_t count)
{
    if (user || length + count >= sizeof text) return 5;
    memcpy(text + length, bytes, count);
    length += count;
    return 0;
}

static void arguments(void)
{
    const npuprof_sink sink = { put, NULL };
    npuprof_start(1);
    for (int i = 0; i < ROUNDS; i++) {
        fast_spans(i);
        fast_instants(i);
    }
    npuprof_stop();
    CHECK_INT(npuprof_write_json(sink), NPUPROF_OK);
    json_node *const t = json_parse(text, length);
    CHECK_STOP(t != NULL);
    for (int i = 0; i < ROUNDS; i++) {
        fast_check(t, "X", i, 5);
        fast_check(t, "i", i, 0);
    }
}

CHECK_MAIN(CASE(arguments))

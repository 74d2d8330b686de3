/* One trace of firmware for the corpus, on a clock that only it moves. -DPOLICY=NPUPROF_KEEP_OLDEST writes
   parts.img (npuprof_write_image()) and ram.img (the arena's memory), NPUPROF_KEEP_NEWEST the same of a ring
   that ran for several laps, NPUPROF_STREAM stream.img. tests/image/make_corpus.py builds and runs it.
   SPDX-License-Identifier: MIT */
#include <stdint.h>

static volatile uint32_t ticks = 0xFFFC18;         /* of 24 bits: wraps at once */
static volatile uint8_t task;
#define NPUPROF_NOW() (ticks & 0xFFFFFFu)
#define NPUPROF_NOW_HZ 1000000000u
#define NPUPROF_NOW_BITS 24
#define NPUPROF_FREESTANDING
#define NPUPROF_CONTEXT() task
#define NPUPROF_CONTEXTS 2
#define NPUPROF_ARENA_BYTES 1616
#define NPUPROF_WHEN_FULL POLICY
#define NPUPROF_NO_JSON
#define NPUPROF_IMPLEMENTATION
#include "../../npuprof.h"
#include "../baremetal/port.h"

static void wait(uint32_t time) { ticks += time; }

/* Every kind of record that firmware has, but those of a device. */
static void step(int i)
{
    PROF_INFERENCE("Inference");
    wait(10);
    { PROF_OPERATOR(3, "Quantize"); wait(250); PROF_RESULT(PROF_INT("ne.forward_ns", 200)); }
    {
        PROF_SCOPE_ARGS("npu", "kernel",
                        PROF_ARGS(PROF_INT("n", -i), PROF_STR("long", "0123456789abcdefgh")));
        wait(1000);
    }
    { PROF_PHASES("one"); wait(7); PROF_NEXT("two"); wait(8); }
    PROF_COUNTER("queue", i - 1);
    PROF_INSTANT("c", "now", PROF_ARGS(PROF_BOOL("even", i % 2 == 0), PROF_UINT("u", UINT64_MAX)));
    task = 1;
    PROF_BEGIN(NULL, "other task");
    wait(3);
    task = 0;
    wait(4);
    task = 1;
    PROF_END();
    task = 0;
    npuprof_count(8, (uint64_t)i);
}

static void rest(void)
{
    { PROF_SCOPE("out"); PROF_FLOW_OUT(1); wait(5); }
    { PROF_SCOPE("in"); wait(5); PROF_FLOW_IN(1); wait(5); }
    PROF_MEMORY(NULL, 4096, 8192, "conv");
    npuprof_async_begin("q", "job", 9);
    wait(50);
    npuprof_async_end(9);
    npuprof_span("dma", "d", "copy", npuprof_now_ns() - 40, npuprof_now_ns() - 10, PROF_NO_ARGS);
    npuprof_pause();
    wait(100);
    npuprof_resume();
}

int main(void)
{
    const npuprof_sink sink = { port_write, NULL };
    int failed = 0;
#if POLICY == NPUPROF_STREAM
    npuprof_desc desc;
    for (size_t i = 0; i < sizeof desc; i++) ((volatile uint8_t *)&desc)[i] = 0;
    desc.when_full = POLICY;
    desc.sink = sink;
    failed = npuprof_init(&desc) != NPUPROF_OK;
    port_open("stream.img");
#endif
    npuprof_metadata("model", "corpus");
    PROF_THREAD_NAME("main");
    (void)npuprof_name(8, "work left");
    npuprof_start(1);
    PROF_BEGIN("os", "open all the time");
    wait(5);
    for (int i = 0; i < (POLICY == NPUPROF_KEEP_OLDEST ? 2 : 8); i++) {
        step(i);
        if (POLICY == NPUPROF_STREAM) failed |= npuprof_poll() != NPUPROF_OK;
    }
    rest();
    PROF_BEGIN(NULL, "never ends");
    wait(20);
    npuprof_stop();
#if POLICY == NPUPROF_STREAM
    failed |= npuprof_flush() != NPUPROF_OK;
    port_close();
#else
    port_open("ram.img");
    failed |= port_write(NULL, npuprof_fw_arena_, NPUPROF_ARENA_BYTES);
    port_close();
    port_open("parts.img");
    failed |= npuprof_write_image(sink) != NPUPROF_OK;
    port_close();
#endif
    return failed;
}

/* shared_npu.c - the firmware of an NPU, on a RISC-V core without an operating system. Its trace is a ring in
   memory that the host maps: SHARED.md has the commands, shared_host.c the host's side.
   SPDX-License-Identifier: MIT */
#include "shared.h"

/* The core's clock, which is 244 ppm fast: QEMU's own would be exact. */
static uint64_t core_timer(void)
{
    const volatile uint32_t *const mtime = (const volatile uint32_t *)0x0200BFF8;
    uint32_t high, low;
    do {
        high = mtime[1];
        low = mtime[0];
    } while (mtime[1] != high);
    return (uint64_t)high << 32 | low;
}

static uint64_t core_clock(void)
{
    const uint64_t t = core_timer();
    return t + (t >> 12);
}

#define NPUPROF_FREESTANDING
#define NPUPROF_NOW() core_clock()
#define NPUPROF_NOW_HZ 10000000u
#define NPUPROF_WHEN_FULL NPUPROF_KEEP_NEWEST
#define NPUPROF_ARENA_BYTES 0                        /* npuprof_init() gets the memory */
#define NPUPROF_NO_JSON
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"

#define MEMORY 0x80000000u
static shared_mailbox *const mailbox = (shared_mailbox *)(MEMORY + SHARED_MAILBOX);

/* The engine, simulated: 40 MHz and 30 ppm slow. Yours has registers: put them into desc.bar. */
static uint64_t engine_busy_until;

static uint64_t engine_ticks(void *user)
{
    const uint64_t t = core_timer();
    (void)user;
    return 4 * t - (t >> 13);
}

static void engine_start(uint32_t size) { engine_busy_until = engine_ticks(NULL) + size; }
static bool engine_is_busy(void) { return engine_ticks(NULL) < engine_busy_until; }

static npuprof_npu engine;

static void run(uint32_t job, uint32_t size)
{
    PROF_SCOPE_ARGS("npu", "job", PROF_ARGS(PROF_UINT("job", job)));
    {
        PROF_SCOPE("descriptors");
        for (volatile uint32_t i = 0; i < 200; i++) { }
    }
    WITH_NPU_PROFILER(&engine, 0, "conv", "NPU", PROF_ARGS(PROF_UINT("job", job)), {
        engine_start(size);
        while (engine_is_busy()) { }
    });
}

static void answer(void)
{
    const uint64_t ticks = core_clock();             /* first: the host waits for it */
    mailbox->ticks[0] = (uint32_t)ticks;
    mailbox->ticks[1] = (uint32_t)(ticks >> 32);
    if (mailbox->what == SHARED_SAY)
        (void)npuprof_metadata((const char *)mailbox->key, (const char *)mailbox->value);
    if (mailbox->what == SHARED_RUN) run(mailbox->job, mailbox->size);
}

int main(void);
int main(void)
{
    static npuprof_desc desc;
    static npuprof_npu_desc npu;
    desc.arena = (void *)(MEMORY + SHARED_ARENA);
    desc.arena_bytes = SHARED_ARENA_BYTES;
    desc.when_full = NPUPROF_KEEP_NEWEST;
    npu.name = "engine";
    npu.read_ticks = engine_ticks;
    npu.counter.hz = 40000000;
    if (npuprof_init(&desc) != NPUPROF_OK || npuprof_start(1) != NPUPROF_OK) return 1;
    if (npuprof_npu_open(&engine, &npu) != NPUPROF_OK) return 1;
    PROF_THREAD_NAME("firmware");
    uint32_t number = mailbox->number;
    mailbox->done = number;
    shared_publish(&mailbox->ready, SHARED_READY);
    for (;;) {
        if (shared_look(&mailbox->number) == number) continue;
        number = mailbox->number;
        answer();
        shared_publish(&mailbox->done, number);
    }
}

/* What the processor runs first, and what compilers call for a structure. Your program has both. */
void *memcpy(void *to, const void *from, size_t count);
void *memcpy(void *to, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++) ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}

extern uint32_t bss_start[], bss_end[];
void clear(void);
void clear(void)
{
    for (volatile uint32_t *p = bss_start; p < bss_end; p++) *p = 0;
    (void)main();
    for (;;) { }
}
__asm__(".section .vectors, \"ax\"\n.globl reset\nreset:\n\tla sp, stack_end\n\tj clear\n\t.text");

/* npuprof_threadx.h - ThreadX in a trace of npuprof: a track for each thread under its name, a track that
   shows who runs, a track of the interrupts, and counters. One core, Cortex-M.
   SPDX-License-Identifier: MIT

   1. tx_user.h, last line: #include "npuprof_threadx.h"
      Compile all files of the kernel with -DTX_ENABLE_EXECUTION_CHANGE_NOTIFY and
      -DTX_INCLUDE_USER_DEFINE_FILE, also those in assembler: tx_initialize_low_level.S, which has the tick,
      does not include tx_user.h. The ports then call the functions _tx_execution_* that this file has,
      instead of those of the execution profile kit. With TX_ENABLE_STACK_CHECKING, too, there are counters
      of the stacks.
   2. Each file that records: #define your clock, NPUPROF_NOW() and NPUPROF_NOW_HZ, such as
      examples/firmware/systick.h; #include "tx_api.h" and then "npuprof_threadx.h" (it includes npuprof.h).
      One of them has #define NPUPROF_IMPLEMENTATION before it.
   3. tx_application_define(): npuprof_threadx_start(1).
   4. _tx_execution_isr_enter() and _tx_execution_isr_exit() in your interrupt handlers. The kernel has them
      in its tick.
   5. Now and then, from a thread: npuprof_threadx_counters().

   A switch takes 16 bytes of the arena, as an interrupt does; a name is recorded once, when the thread first
   runs. While no thread runs, the track "CPU" is empty. With NPUPROF_OFF, leave step 1 out.
   The kernel has no hook for a thread that is deleted. So when a thread first runs, those that the kernel
   does not list any more give their numbers back: to a thread of the same name, or to others when all are in
   use. */
#ifndef NPUPROF_THREADX_HOOKS
#define NPUPROF_THREADX_HOOKS
/* Where a thread keeps its number. If you have an extension of your own, add this member to it. */
#ifndef TX_THREAD_USER_EXTENSION
#define TX_THREAD_USER_EXTENSION unsigned long npuprof_number;
#endif
#endif /* NPUPROF_THREADX_HOOKS */

#if defined(TX_API_H) && defined(TX_READY) && !defined(NPUPROF_THREADX_H)
#define NPUPROF_THREADX_H

#ifdef TX_SMP_CORE_ID                        /* tx_api.h of ThreadX SMP has it */
#error "npuprof_threadx.h is for one core: ThreadX SMP runs several"
#endif

/* How many tracks: interrupts, CPU, start-up, and from 3 on the threads. Threads beyond share the last. */
#ifndef NPUPROF_CONTEXTS
#define NPUPROF_CONTEXTS 16
#endif
#if NPUPROF_CONTEXTS < 5
#error "npuprof_threadx.h: NPUPROF_CONTEXTS must be 5 or more"
#endif
#ifdef __cplusplus
extern "C" {
#endif
extern volatile uint32_t npuprof_threadx_running;         /* the number of the running thread */

/* The exception that runs; 0: a thread. */
static inline uint32_t npuprof_threadx_exception(void)
{
    uint32_t number;
    __asm__ volatile("mrs %0, ipsr" : "=r"(number));
    return number & 0x1FF;
}

#define NPUPROF_FREESTANDING
#define NPUPROF_CONTEXT() (npuprof_threadx_exception() ? 0 : npuprof_threadx_running)
#include "npuprof.h"

/* The number of an interrupt, from 0, for npuprof_name(NPUPROF_THREADX_IRQ(5), "uart"). */
#define NPUPROF_THREADX_IRQ(irq) (NPUPROF_CONTEXTS + 16u + (irq))

#ifndef NPUPROF_OFF
/* Names the tracks and starts recording up to a level. */
npuprof_result npuprof_threadx_start(int level);
/* Records the counters: tick, idle ticks, and the bytes of each thread's stack that were never used, as far
   as the kernel's last check saw. */
void npuprof_threadx_counters(void);
#else
static inline npuprof_result npuprof_threadx_start(int level) { (void)level; return NPUPROF_OK; }
static inline void npuprof_threadx_counters(void) { }
#endif

#if defined(NPUPROF_IMPLEMENTATION) && !defined(NPUPROF_OFF)
enum { NPUPROF_THREADX_START_UP = 2, NPUPROF_THREADX_FIRST, NPUPROF_THREADX_STACKS = NPUPROF_CONTEXTS + 512 };
extern TX_THREAD *_tx_thread_current_ptr, *_tx_thread_created_ptr;
extern ULONG _tx_thread_created_count;
volatile uint32_t npuprof_threadx_running = NPUPROF_THREADX_START_UP;
static TX_THREAD *npuprof_threadx_threads[NPUPROF_CONTEXTS];
static uint32_t npuprof_threadx_names[NPUPROF_CONTEXTS];        /* hashes */
static uint32_t npuprof_threadx_next = NPUPROF_THREADX_FIRST, npuprof_threadx_idle_ticks;
static bool npuprof_threadx_ticked, npuprof_threadx_warned;

VOID _tx_execution_initialize(VOID);
VOID _tx_execution_thread_enter(VOID);
VOID _tx_execution_thread_exit(VOID);
VOID _tx_execution_isr_enter(VOID);
VOID _tx_execution_isr_exit(VOID);

npuprof_result npuprof_threadx_start(int level)
{
    npuprof_name(0, "interrupts");
    npuprof_name(1, "CPU");
    npuprof_name(NPUPROF_THREADX_START_UP, "start-up");
    npuprof_name(NPUPROF_CONTEXTS - 1, "other threads");
    npuprof_name(NPUPROF_CONTEXTS + 15, "tick");
    return npuprof_start(level);
}

/* Whether the thread with that number is still there. Its memory may be gone, or another thread's by now. */
static bool npuprof_threadx_exists(uint32_t number)
{
    const TX_THREAD *thread = _tx_thread_created_ptr;
    for (ULONG n = _tx_thread_created_count; n; n--, thread = thread->tx_thread_created_next)
        if (thread == npuprof_threadx_threads[number]) return thread->npuprof_number == number;
    return false;
}

/* The number of a new thread whose name has this hash. */
static uint32_t npuprof_threadx_choose(uint32_t hash)
{
    uint32_t free_number = NPUPROF_CONTEXTS - 1;
    for (uint32_t i = NPUPROF_THREADX_FIRST; i < npuprof_threadx_next; i++) {
        if (npuprof_threadx_exists(i)) continue;
        if (npuprof_threadx_names[i] == hash) return i;
        free_number = i;
    }
    return npuprof_threadx_next < NPUPROF_CONTEXTS - 1 ? npuprof_threadx_next++ : free_number;
}

/* Gives a thread that runs for the first time its number. The number, if it needs this thread's name; else
   0. */
static uint32_t npuprof_threadx_adopt(TX_THREAD *thread, const char *name)
{
    uint32_t hash = 2166136261u;
    for (const char *c = name; *c; c++) hash = (hash ^ (uint8_t)*c) * 16777619u;
    const uint32_t number = npuprof_threadx_choose(hash);
    thread->npuprof_number = number;
    if (number == NPUPROF_CONTEXTS - 1) return 0;
    npuprof_threadx_threads[number] = thread;
    if (npuprof_threadx_names[number] == hash) return 0;
    npuprof_threadx_names[number] = hash;
    return number;
}

static void npuprof_threadx_name(uint32_t number, const char *name)
{
    static const char what[] = "stack free ";
    char text[sizeof what + 32];
    size_t n = 0;
    for (; what[n]; n++) text[n] = what[n];
    for (; *name && n < sizeof text - 1; n++) text[n] = *name++;
    text[n] = 0;
    npuprof_name(number, text + sizeof what - 1);
    npuprof_name(NPUPROF_THREADX_STACKS + number, text);
}

VOID _tx_execution_initialize(VOID) { }

VOID _tx_execution_thread_enter(VOID)
{
    TX_THREAD *const thread = _tx_thread_current_ptr;
    const char *const name = thread->tx_thread_name ? thread->tx_thread_name : "thread";
    const uint32_t is_new = thread->npuprof_number ? 0 : npuprof_threadx_adopt(thread, name);
    npuprof_threadx_running = (uint32_t)thread->npuprof_number;
    npuprof_switch(1, npuprof_threadx_running);
    if (is_new) npuprof_threadx_name(is_new, name);
}

VOID _tx_execution_thread_exit(VOID) { npuprof_switch(1, NPUPROF_NOBODY); }

VOID _tx_execution_isr_enter(VOID)
{
    const uint32_t exception = npuprof_threadx_exception();
    npuprof_enter(0, NPUPROF_CONTEXTS + exception);
    if (exception != 15) return;
    npuprof_tick();
    npuprof_threadx_ticked = true;
    if (!_tx_thread_current_ptr) npuprof_threadx_idle_ticks++;
}

VOID _tx_execution_isr_exit(VOID) { npuprof_leave(0); }

void npuprof_threadx_counters(void)
{
    PROF_COUNTER("tick", (uint32_t)tx_time_get());
    PROF_COUNTER("idle ticks", npuprof_threadx_idle_ticks);
    if (tx_time_get() > 1 && !npuprof_threadx_ticked && !npuprof_threadx_warned) {
        npuprof_threadx_warned = true;
        npuprof_metadata("npuprof.clock", "the tick has no hook, so times are too short: step 1 of "
                                          "npuprof_threadx.h");
    }
#ifdef TX_ENABLE_STACK_CHECKING
    for (uint32_t i = NPUPROF_THREADX_FIRST; i < npuprof_threadx_next; i++) {
        TX_INTERRUPT_SAVE_AREA
        uintptr_t left = 0;
        TX_DISABLE                           /* Why: nobody deletes the thread meanwhile. */
        const TX_THREAD *const thread = npuprof_threadx_exists(i) ? npuprof_threadx_threads[i] : NULL;
        if (thread) left = (uintptr_t)thread->tx_thread_stack_highest_ptr -
                           (uintptr_t)thread->tx_thread_stack_start;
        TX_RESTORE
        if (thread) npuprof_count(NPUPROF_THREADX_STACKS + i, left);
    }
#endif
}
#endif /* NPUPROF_IMPLEMENTATION */
#ifdef __cplusplus
}
#endif
#endif /* NPUPROF_THREADX_H */

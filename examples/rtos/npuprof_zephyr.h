/* npuprof_zephyr.h - Zephyr in a trace of npuprof: a track for each thread under its name, a track that shows
   who runs, a track of the interrupts, and counters. One core. For Zephyr 3 and later.
   SPDX-License-Identifier: MIT

   1. prj.conf: CONFIG_TRACING=y, CONFIG_TRACING_USER=y, CONFIG_THREAD_NAME=y, and for the counters
      CONFIG_INIT_STACKS=y and CONFIG_THREAD_STACK_INFO=y.
   2. Each file that records: #include "npuprof_zephyr.h" (it includes npuprof.h). One of them has
      #define NPUPROF_IMPLEMENTATION before it: that file has the functions sys_trace_*_user.
   3. main(): npuprof_zephyr_start(1). Threads that exist before are named when they first run.
   4. Now and then, from a thread: npuprof_zephyr_counters().

   The clock is k_cycle_get_64(), or k_cycle_get_32() where the timer has no 64 bits: then something must be
   recorded in each period. For another one define NPUPROF_NOW() and NPUPROF_NOW_HZ.
   A switch takes 16 bytes of the arena, as an interrupt does; a name is recorded once. With NPUPROF_OFF
   nothing is left. */
#ifndef NPUPROF_ZEPHYR_H
#define NPUPROF_ZEPHYR_H
#include <zephyr/kernel.h>
#ifdef CONFIG_SMP
#error "npuprof_zephyr.h is for one core"
#endif

/* How many tracks: interrupts, CPU, start-up, and from 3 on the threads. Threads beyond share the last. */
#ifndef NPUPROF_CONTEXTS
#define NPUPROF_CONTEXTS 16
#endif
#if NPUPROF_CONTEXTS < 5
#error "npuprof_zephyr.h: NPUPROF_CONTEXTS must be 5 or more"
#endif
#ifndef NPUPROF_NOW
#ifdef CONFIG_TIMER_HAS_64BIT_CYCLE_COUNTER
#define NPUPROF_NOW() k_cycle_get_64()
#else
#define NPUPROF_NOW() k_cycle_get_32()
#endif
#define NPUPROF_NOW_HZ sys_clock_hw_cycles_per_sec()
#endif
#ifdef __cplusplus
extern "C" {
#endif
extern volatile uint32_t npuprof_zephyr_running;          /* the number of the running thread */
#define NPUPROF_FREESTANDING
#define NPUPROF_CONTEXT() (k_is_in_isr() ? 0 : npuprof_zephyr_running)
#include "npuprof.h"

/* The number of an interrupt, from 0, for npuprof_name(NPUPROF_ZEPHYR_IRQ(5), "uart"). On other processors
   than Cortex-M all interrupts have number NPUPROF_CONTEXTS. */
#define NPUPROF_ZEPHYR_IRQ(irq) (NPUPROF_CONTEXTS + 16u + (irq))

#ifndef NPUPROF_OFF
/* Names the tracks and starts recording up to a level. */
npuprof_result npuprof_zephyr_start(int level);
/* Records the counters: tick, how often the CPU went idle, and the bytes of each thread's stack that were
   never used. */
void npuprof_zephyr_counters(void);
#else
static inline npuprof_result npuprof_zephyr_start(int level) { (void)level; return NPUPROF_OK; }
static inline void npuprof_zephyr_counters(void) { }
#endif

#if defined(NPUPROF_IMPLEMENTATION) && !defined(NPUPROF_OFF)
enum { NPUPROF_ZEPHYR_START_UP = 2, NPUPROF_ZEPHYR_FIRST, NPUPROF_ZEPHYR_STACKS = NPUPROF_CONTEXTS + 512 };
volatile uint32_t npuprof_zephyr_running = NPUPROF_ZEPHYR_START_UP;
static struct k_thread *npuprof_zephyr_threads[NPUPROF_CONTEXTS];
static uint32_t npuprof_zephyr_next = NPUPROF_ZEPHYR_FIRST, npuprof_zephyr_idles;

void sys_trace_thread_create_user(struct k_thread *thread);
void sys_trace_thread_abort_user(struct k_thread *thread);
void sys_trace_thread_name_set_user(struct k_thread *thread);
void sys_trace_thread_switched_in_user(void);
void sys_trace_isr_enter_user(void);
void sys_trace_isr_exit_user(void);
void sys_trace_idle_user(void);

npuprof_result npuprof_zephyr_start(int level)
{
    npuprof_name(0, "interrupts");
    npuprof_name(1, "CPU");
    npuprof_name(NPUPROF_ZEPHYR_START_UP, "start-up");
    npuprof_name(NPUPROF_CONTEXTS - 1, "other threads");
    npuprof_name(NPUPROF_CONTEXTS + 15, "tick");
    return npuprof_start(level);
}

/* The number of a thread, which gets one when it is first seen; *is_new then. */
static uint32_t npuprof_zephyr_number(struct k_thread *thread, bool *is_new)
{
    uint32_t i = NPUPROF_ZEPHYR_FIRST;
    *is_new = false;
    while (i < npuprof_zephyr_next && npuprof_zephyr_threads[i] != thread) i++;
    if (i < npuprof_zephyr_next || i == NPUPROF_CONTEXTS - 1) return i;
    npuprof_zephyr_threads[i] = thread;
    *is_new = true;
    return npuprof_zephyr_next++;
}

static void npuprof_zephyr_name(struct k_thread *thread, uint32_t number)
{
    static const char what[] = "stack free ";
    const char *name = k_thread_name_get(thread);
    char text[sizeof what + 32];
    size_t n = 0;
    if (!name || !*name || number == NPUPROF_CONTEXTS - 1) return;
    for (; what[n]; n++) text[n] = what[n];
    for (; *name && n < sizeof text - 1; n++) text[n] = *name++;
    text[n] = 0;
    npuprof_name(number, text + sizeof what - 1);
    npuprof_name(NPUPROF_ZEPHYR_STACKS + number, text);
}

/* Why not named here: the kernel has not set the name yet. */
void sys_trace_thread_create_user(struct k_thread *thread)
{
    bool is_new;
    (void)npuprof_zephyr_number(thread, &is_new);
}

/* Its memory may be another thread's next: the number stays that of the thread that is gone. */
void sys_trace_thread_abort_user(struct k_thread *thread)
{
    for (uint32_t i = NPUPROF_ZEPHYR_FIRST; i < npuprof_zephyr_next; i++)
        if (npuprof_zephyr_threads[i] == thread) npuprof_zephyr_threads[i] = NULL;
}

void sys_trace_thread_name_set_user(struct k_thread *thread)
{
    bool is_new;
    npuprof_zephyr_name(thread, npuprof_zephyr_number(thread, &is_new));
}

void sys_trace_thread_switched_in_user(void)
{
    /* Why not k_current_get(): with CONFIG_CURRENT_THREAD_USE_TLS it is NULL at a thread's first switch. */
    struct k_thread *const thread = k_sched_current_thread_query();
    bool is_new;
    const uint32_t number = npuprof_zephyr_number(thread, &is_new);
    if (number != npuprof_zephyr_running) npuprof_switch(1, number);
    npuprof_zephyr_running = number;
    if (is_new) npuprof_zephyr_name(thread, number);
}

void sys_trace_isr_enter_user(void)
{
    uint32_t number = 0;
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
    __asm__ volatile("mrs %0, ipsr" : "=r"(number));
#endif
    npuprof_enter(0, NPUPROF_CONTEXTS + (number & 0x1FF));
}

void sys_trace_isr_exit_user(void) { npuprof_leave(0); }

void sys_trace_idle_user(void) { npuprof_zephyr_idles++; }

void npuprof_zephyr_counters(void)
{
    npuprof_tick();
    PROF_COUNTER("tick", (uint64_t)k_uptime_ticks());
    PROF_COUNTER("idle", npuprof_zephyr_idles);
#if defined(CONFIG_INIT_STACKS) && defined(CONFIG_THREAD_STACK_INFO)
    for (uint32_t i = NPUPROF_ZEPHYR_FIRST; i < npuprof_zephyr_next; i++) {
        size_t left = 0;
        k_sched_lock();                      /* Why: nobody aborts the thread meanwhile. */
        struct k_thread *const thread = npuprof_zephyr_threads[i];
        const bool known = thread && k_thread_stack_space_get(thread, &left) == 0;
        k_sched_unlock();
        if (known) npuprof_count(NPUPROF_ZEPHYR_STACKS + i, left);
    }
#endif
}
#endif /* NPUPROF_IMPLEMENTATION */
#ifdef __cplusplus
}
#endif
#endif /* NPUPROF_ZEPHYR_H */

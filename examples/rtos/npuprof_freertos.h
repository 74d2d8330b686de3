/* npuprof_freertos.h - FreeRTOS in a trace of npuprof: a track for each task under its name, a track that
   shows who runs, a track of the interrupts, and counters. Cortex-M, or RISC-V with 32 bits. One core with
   FreeRTOS 10 and 11; several (SMP) with 11.
   SPDX-License-Identifier: MIT

   1. FreeRTOSConfig.h, last line:      #include "npuprof_freertos.h"
      and in it: configUSE_TRACE_FACILITY, INCLUDE_uxTaskGetStackHighWaterMark and
      INCLUDE_xTaskGetIdleTaskHandle are 1.
   2. Each file that records, behind task.h:   #include "npuprof_freertos.h"   (it includes npuprof.h)
      One of them has #define NPUPROF_IMPLEMENTATION before it.
   3. main(), before it creates tasks: npuprof_freertos_start(1).
   4. traceISR_ENTER() first and traceISR_EXIT() last in your interrupt handlers, also behind
      portYIELD_FROM_ISR(). In FreeRTOS 11 that calls traceISR_EXIT() itself, and a second exit does nothing.
      The tick is in the trace by itself in FreeRTOS 11 only; 10 has no hook in its handler.
   5. Now and then, from a task: npuprof_freertos_counters().

   RISC-V: step 4 is for your freertos_risc_v_application_interrupt_handler(). The port's tick has no hook for
   interrupts, so it is not in the trace.
   The clock is SysTick as FreeRTOS sets it; it begins with the scheduler. On RISC-V it is the timer at
   configMTIME_BASE_ADDRESS. For another one, and always with tickless idle on a Cortex-M, define
   NPUPROF_NOW() and NPUPROF_NOW_HZ in FreeRTOSConfig.h before the #include.
   A switch takes 16 bytes of the arena, as an interrupt does; a name is recorded once. With NPUPROF_OFF
   nothing is left.
   A task's number is in its uxTaskNumber. If your program uses that itself (vTaskSetTaskNumber()), define
   NPUPROF_FREERTOS_BY_HANDLE in FreeRTOSConfig.h: then each switch searches the table of tasks.
   A deleted task's number is given to the next task of the same name, and to others when all are in use; its
   track then has the newest name.
   MPU ports: only privileged tasks may record, because the recorder writes its arena, masks interrupts and
   reads SysTick.

   SMP, configNUMBER_OF_CORES 2 to 9: each core has its own tracks, "CPU 0" and "interrupts 0" of the first,
   and its own counter "idle ticks 0". A task keeps its one track on whatever core it runs. On a Cortex-M
   define NPUPROF_NOW() and NPUPROF_NOW_HZ: all cores must read one clock, and each has a SysTick of its own.
   Cores without exclusive access (Cortex-M0+: RP2040) need NPUPROF_MASK() and NPUPROF_UNMASK(before), a spin
   lock. Code that runs on another core before the scheduler does may not record. Give each task a number, see
   NPUPROF_CONTEXTS: those that share the last one must not record at the same time. */
#ifndef NPUPROF_FREERTOS_HOOKS
#define NPUPROF_FREERTOS_HOOKS

/* How many tracks: interrupts of each core, CPU of each, start-up, and behind that the tasks. Tasks beyond
   share the last one. */
#ifndef NPUPROF_CONTEXTS
#define NPUPROF_CONTEXTS 16
#endif
#if defined(configNUMBER_OF_CORES) && configNUMBER_OF_CORES > 1
#define NPUPROF_FREERTOS_CORES configNUMBER_OF_CORES
#else
#define NPUPROF_FREERTOS_CORES 1
#endif

#if !defined(__ASSEMBLER__) && !defined(NPUPROF_OFF)
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
extern volatile uint32_t npuprof_freertos_running[NPUPROF_FREERTOS_CORES];  /* the running task's number */
uint32_t npuprof_freertos_created(void *task, const char *name);
void npuprof_freertos_deleted(uint32_t number);
void npuprof_freertos_switched(uint32_t number);
uint32_t npuprof_freertos_number(const volatile void *task);
#if NPUPROF_FREERTOS_CORES > 1
void npuprof_freertos_ticked(uint32_t count);
#else
void npuprof_freertos_ticked(void);
#endif
void npuprof_freertos_isr_enter(void);
void npuprof_freertos_isr_exit(void);
#ifdef __cplusplus
}
#endif

/* What the hooks of the kernel know: the task of this core, and the tick. */
#if NPUPROF_FREERTOS_CORES > 1
#define NPUPROF_FREERTOS_TASK pxCurrentTCBs[portGET_CORE_ID()]
#define traceTASK_INCREMENT_TICK(count) npuprof_freertos_ticked((uint32_t)(count))
#else
#define NPUPROF_FREERTOS_TASK pxCurrentTCB
#define traceTASK_INCREMENT_TICK(count) npuprof_freertos_ticked()
#endif
#ifdef NPUPROF_FREERTOS_BY_HANDLE
#define traceTASK_CREATE(task) \
    ((void)npuprof_freertos_created((task), pcTaskGetName((TaskHandle_t)(task))))
#define traceTASK_DELETE(task) npuprof_freertos_deleted(npuprof_freertos_number(task))
#define traceTASK_SWITCHED_IN() npuprof_freertos_switched(npuprof_freertos_number(NPUPROF_FREERTOS_TASK))
#else
#define traceTASK_CREATE(task) \
    ((task)->uxTaskNumber = npuprof_freertos_created((task), pcTaskGetName((TaskHandle_t)(task))))
#define traceTASK_DELETE(task) npuprof_freertos_deleted((uint32_t)(task)->uxTaskNumber)
#define traceTASK_SWITCHED_IN() npuprof_freertos_switched((uint32_t)NPUPROF_FREERTOS_TASK->uxTaskNumber)
#endif
#define traceISR_ENTER() npuprof_freertos_isr_enter()
#define traceISR_EXIT() npuprof_freertos_isr_exit()
#define traceISR_EXIT_TO_SCHEDULER() npuprof_freertos_isr_exit()
#endif /* !__ASSEMBLER__ && !NPUPROF_OFF */
#endif /* NPUPROF_FREERTOS_HOOKS */

#if defined(INC_TASK_H) && !defined(NPUPROF_FREERTOS_H)
#define NPUPROF_FREERTOS_H
#if configUSE_TRACE_FACILITY != 1 && !defined(NPUPROF_FREERTOS_BY_HANDLE)
#error "npuprof_freertos.h: FreeRTOSConfig.h needs configUSE_TRACE_FACILITY 1: a task keeps its number there"
#endif
#if defined(configNUMBER_OF_CORES) && configNUMBER_OF_CORES != NPUPROF_FREERTOS_CORES
#error "npuprof_freertos.h: include it in FreeRTOSConfig.h behind configNUMBER_OF_CORES"
#endif
#if defined(configNUM_CORES) && configNUM_CORES > 1
#error "npuprof_freertos.h: several cores need FreeRTOS 11, which has configNUMBER_OF_CORES"
#endif
#if NPUPROF_FREERTOS_CORES > 9
#error "npuprof_freertos.h: configNUMBER_OF_CORES must be 9 or less"
#endif
#if NPUPROF_CONTEXTS < 2 * NPUPROF_FREERTOS_CORES + 3
#error "npuprof_freertos.h: NPUPROF_CONTEXTS must be 5 or more, and 2 more for each further core"
#endif
#if NPUPROF_FREERTOS_CORES > 1
#define NPUPROF_FREERTOS_CORE() ((uint32_t)portGET_CORE_ID())
#else
#define NPUPROF_FREERTOS_CORE() 0u
#endif

/* Interrupts that were entered and not left. */
extern volatile uint32_t npuprof_freertos_depth[NPUPROF_FREERTOS_CORES];

/* The exception that runs; 0: a task. RISC-V: 16 + the code of the one that came last. */
static inline uint32_t npuprof_freertos_exception(void)
{
    uint32_t number;
#ifdef __riscv
    __asm__ volatile("csrr %0, mcause" : "=r"(number));
    return 16 + (number & 0xFF);
#else
    __asm__ volatile("mrs %0, ipsr" : "=r"(number));
    return number & 0x1FF;
#endif
}

#ifdef __riscv
#define NPUPROF_FREERTOS_IN_TASK() (!npuprof_freertos_depth[NPUPROF_FREERTOS_CORE()])
#else
#define NPUPROF_FREERTOS_IN_TASK() (!npuprof_freertos_exception())
#endif

#if !defined(NPUPROF_NOW) && defined(__riscv)
#if defined(configMTIME_BASE_ADDRESS) && !(configMTIME_BASE_ADDRESS)
#error "npuprof_freertos.h: no timer at configMTIME_BASE_ADDRESS: define NPUPROF_NOW(), another clock"
#endif
#define NPUPROF_NOW() (*(volatile uint32_t *)(configMTIME_BASE_ADDRESS))
#define NPUPROF_NOW_HZ configCPU_CLOCK_HZ
#endif /* !NPUPROF_NOW && __riscv */

#ifndef NPUPROF_NOW
#if NPUPROF_FREERTOS_CORES > 1
#error "npuprof_freertos.h: each core has a SysTick of its own: define NPUPROF_NOW(), a clock of all cores"
#endif
#if configUSE_TICKLESS_IDLE
#error "npuprof_freertos.h: tickless idle stops SysTick: define NPUPROF_NOW(), another clock"
#endif
extern uint32_t npuprof_freertos_passed;
/* Ticks of SysTick since it was switched on, modulo 2^32, for any LOAD and from any interrupt; each period
   needs one read, which npuprof_freertos_ticked() makes. Why by COUNTFLAG: examples/firmware/systick.h. */
static inline uint32_t npuprof_freertos_now(void)
{
    volatile uint32_t *systick = (volatile uint32_t *)0xE000E010u;       /* SYST_CSR, LOAD, VAL */
    uint32_t *at = &npuprof_freertos_passed, mask, left, passed;
    const uint32_t period = systick[1] + 1;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(mask), "+r"(systick), "+r"(at) : : "memory");
    left = systick[2];
    passed = *at;
    if (systick[0] & 0x10000u) {
        left = systick[2];
        *at = passed += period;
    }
    __asm__ volatile("msr primask, %0" : : "r"(mask) : "memory");
    return left ? passed + period - left : passed;
}
#define NPUPROF_NOW() npuprof_freertos_now()
#ifdef configSYSTICK_CLOCK_HZ
#define NPUPROF_NOW_HZ configSYSTICK_CLOCK_HZ
#else
#define NPUPROF_NOW_HZ configCPU_CLOCK_HZ
#endif
#define NPUPROF_FREERTOS_SYSTICK
#endif /* NPUPROF_NOW */

#define NPUPROF_FREESTANDING
#if NPUPROF_FREERTOS_CORES > 1
#define NPUPROF_CORES NPUPROF_FREERTOS_CORES
#define NPUPROF_CONTEXT() npuprof_freertos_context()
#ifndef NPUPROF_OFF
/* Why masked: a task that moves to another core in between would have the number of another task. */
static inline uint32_t npuprof_freertos_context(void)
{
    const UBaseType_t before = (UBaseType_t)portSET_INTERRUPT_MASK();
    const uint32_t core = NPUPROF_FREERTOS_CORE();
    const uint32_t number = NPUPROF_FREERTOS_IN_TASK() ? npuprof_freertos_running[core] : core;
    portCLEAR_INTERRUPT_MASK(before);
    return number;
}
#endif
#else /* NPUPROF_FREERTOS_CORES is 1 */
#define NPUPROF_CONTEXT() (NPUPROF_FREERTOS_IN_TASK() ? npuprof_freertos_running[0] : 0)
#endif /* NPUPROF_FREERTOS_CORES */
#include "npuprof.h"

/* The number of an interrupt, from 0, for npuprof_name(NPUPROF_FREERTOS_IRQ(5), "uart"). */
#define NPUPROF_FREERTOS_IRQ(irq) (NPUPROF_CONTEXTS + 16u + (irq))

#ifdef __cplusplus
extern "C" {
#endif
#ifndef NPUPROF_OFF
/* Names the tracks and starts recording up to a level. Before the first task is created. */
npuprof_result npuprof_freertos_start(int level);
/* Records the counters: tick, idle ticks, and the bytes of each task's stack that were never used. */
void npuprof_freertos_counters(void);
#else
static inline npuprof_result npuprof_freertos_start(int level) { (void)level; return NPUPROF_OK; }
static inline void npuprof_freertos_counters(void) { }
#endif
#ifdef __cplusplus
}
#endif

#if defined(NPUPROF_IMPLEMENTATION) && !defined(NPUPROF_OFF)
enum { NPUPROF_FREERTOS_CPU = NPUPROF_FREERTOS_CORES, NPUPROF_FREERTOS_START_UP = 2 * NPUPROF_FREERTOS_CORES,
       NPUPROF_FREERTOS_FIRST, NPUPROF_FREERTOS_STACKS = NPUPROF_CONTEXTS + 512 };
/* Of the further cores no task yet: their idle task runs first and yields at once, and that has a hook. */
volatile uint32_t npuprof_freertos_running[NPUPROF_FREERTOS_CORES] = { NPUPROF_FREERTOS_START_UP };
#ifdef NPUPROF_FREERTOS_SYSTICK
uint32_t npuprof_freertos_passed;
#endif
static TaskHandle_t npuprof_freertos_tasks[NPUPROF_CONTEXTS];
static uint32_t npuprof_freertos_names[NPUPROF_CONTEXTS];       /* hashes */
static uint32_t npuprof_freertos_next = NPUPROF_FREERTOS_FIRST;
static uint32_t npuprof_freertos_idle_ticks[NPUPROF_FREERTOS_CORES];
/* The exceptions that were entered and not left, the innermost one last. One that is deeper is not shown. */
static volatile uint16_t npuprof_freertos_open[NPUPROF_FREERTOS_CORES][16];
volatile uint32_t npuprof_freertos_depth[NPUPROF_FREERTOS_CORES];

#if NPUPROF_FREERTOS_CORES > 1
static void npuprof_freertos_name_cores(void)
{
    /* Why static: for the others a compiler may call memcpy. */
    static char interrupts[] = "interrupts 0", cpu[] = "CPU 0", idle_ticks[] = "idle ticks 0";
    for (uint32_t core = 0; core < NPUPROF_FREERTOS_CORES; core++) {
        const char digit = (char)('0' + core);
        interrupts[sizeof interrupts - 2] = cpu[sizeof cpu - 2] = idle_ticks[sizeof idle_ticks - 2] = digit;
        npuprof_name(core, interrupts);
        npuprof_name(NPUPROF_FREERTOS_CPU + core, cpu);
        npuprof_name(NPUPROF_FREERTOS_STACKS + core, idle_ticks);
    }
}

#else
static void npuprof_freertos_name_cores(void)
{
    npuprof_name(0, "interrupts");
    npuprof_name(NPUPROF_FREERTOS_CPU, "CPU");
}
#endif

npuprof_result npuprof_freertos_start(int level)
{
    npuprof_freertos_name_cores();
    npuprof_name(NPUPROF_FREERTOS_START_UP, "start-up");
    npuprof_name(NPUPROF_CONTEXTS - 1, "other tasks");
    npuprof_name(NPUPROF_CONTEXTS + 15, "tick");
    return npuprof_start(level);
}

/* Whether a number is nobody's. Why not while it runs: a task that another core deleted goes on for a moment,
   and its number has one stack of open spans. */
static bool npuprof_freertos_is_free(uint32_t number)
{
    bool is_free = !npuprof_freertos_tasks[number];
#if NPUPROF_FREERTOS_CORES > 1
    for (uint32_t core = 0; core < NPUPROF_FREERTOS_CORES; core++)
        is_free = is_free && npuprof_freertos_running[core] != number;
#endif
    return is_free;
}

/* The number of a new task whose name has this hash. */
static uint32_t npuprof_freertos_choose(uint32_t hash)
{
    uint32_t free_number = NPUPROF_CONTEXTS - 1;
    for (uint32_t i = NPUPROF_FREERTOS_FIRST; i < npuprof_freertos_next; i++) {
        if (!npuprof_freertos_is_free(i)) continue;
        if (npuprof_freertos_names[i] == hash) return i;
        free_number = i;
    }
    return npuprof_freertos_next < NPUPROF_CONTEXTS - 1 ? npuprof_freertos_next++ : free_number;
}

uint32_t npuprof_freertos_created(void *task, const char *name)
{
    static const char what[] = "stack free ";
    char text[sizeof what + configMAX_TASK_NAME_LEN];
    uint32_t hash = 2166136261u;
    size_t n = 0;
    for (const char *c = name; *c; c++) hash = (hash ^ (uint8_t)*c) * 16777619u;
    const uint32_t number = npuprof_freertos_choose(hash);
    if (number == NPUPROF_CONTEXTS - 1) return number;
    npuprof_freertos_tasks[number] = (TaskHandle_t)task;
    if (npuprof_freertos_names[number] == hash) return number;
    npuprof_freertos_names[number] = hash;
    for (; what[n]; n++) text[n] = what[n];
    for (; *name && n < sizeof text - 1; n++) text[n] = *name++;
    text[n] = 0;
    npuprof_name(number, text + sizeof what - 1);
    npuprof_name(NPUPROF_FREERTOS_STACKS + number, text);
    return number;
}

void npuprof_freertos_deleted(uint32_t number)
{
    if (number < NPUPROF_CONTEXTS - 1) npuprof_freertos_tasks[number] = NULL;
}

uint32_t npuprof_freertos_number(const volatile void *task)
{
    for (uint32_t i = NPUPROF_FREERTOS_FIRST; i < npuprof_freertos_next; i++)
        if ((const volatile void *)npuprof_freertos_tasks[i] == task) return i;
    return NPUPROF_CONTEXTS - 1;
}

void npuprof_freertos_switched(uint32_t number)
{
    const uint32_t core = NPUPROF_FREERTOS_CORE();
    if (number >= NPUPROF_CONTEXTS) number = NPUPROF_CONTEXTS - 1;
    if (number == npuprof_freertos_running[core]) return;
    npuprof_freertos_running[core] = number;
    npuprof_switch(NPUPROF_FREERTOS_CPU + core, number);
}

#if NPUPROF_FREERTOS_CORES > 1
/* Any idle task may run on any core. Why each count once: a tick while the scheduler is suspended comes again
   when that goes on, and the count stands meanwhile. */
void npuprof_freertos_ticked(uint32_t count)
{
    static uint32_t last = UINT32_MAX;
    npuprof_tick();
    if (count == last) return;
    last = count;
    for (uint32_t core = 0; core < NPUPROF_FREERTOS_CORES; core++) {
        const TaskHandle_t task = npuprof_freertos_tasks[npuprof_freertos_running[core]];
        for (BaseType_t i = 0; i < NPUPROF_FREERTOS_CORES; i++)
            if (task == xTaskGetIdleTaskHandleForCore(i)) npuprof_freertos_idle_ticks[core]++;
    }
}

#else /* NPUPROF_FREERTOS_CORES is 1 */
void npuprof_freertos_ticked(void)
{
    npuprof_tick();
    if (npuprof_freertos_tasks[npuprof_freertos_running[0]] == xTaskGetIdleTaskHandle())
        npuprof_freertos_idle_ticks[0]++;
}
#endif /* NPUPROF_FREERTOS_CORES */

/* Why the depth first: an interrupt in between puts its number above, and takes it away again. */
void npuprof_freertos_isr_enter(void)
{
    const uint32_t core = NPUPROF_FREERTOS_CORE();
    const uint32_t number = npuprof_freertos_exception(), depth = npuprof_freertos_depth[core];
    if (depth == sizeof *npuprof_freertos_open / sizeof **npuprof_freertos_open) return;
    npuprof_freertos_depth[core] = depth + 1;
    npuprof_freertos_open[core][depth] = (uint16_t)number;
    npuprof_enter(core, NPUPROF_CONTEXTS + number);
}

void npuprof_freertos_isr_exit(void)
{
    const uint32_t core = NPUPROF_FREERTOS_CORE(), depth = npuprof_freertos_depth[core];
    if (!depth || npuprof_freertos_open[core][depth - 1] != npuprof_freertos_exception()) return;
    npuprof_leave(core);
    npuprof_freertos_depth[core] = depth - 1;
}

void npuprof_freertos_counters(void)
{
    PROF_COUNTER("tick", (uint32_t)xTaskGetTickCount());
#if NPUPROF_FREERTOS_CORES > 1
    for (uint32_t core = 0; core < NPUPROF_FREERTOS_CORES; core++)
        npuprof_count(NPUPROF_FREERTOS_STACKS + core, npuprof_freertos_idle_ticks[core]);
#else
    PROF_COUNTER("idle ticks", npuprof_freertos_idle_ticks[0]);
#endif
    for (uint32_t i = NPUPROF_FREERTOS_FIRST; i < npuprof_freertos_next; i++) {
        vTaskSuspendAll();                   /* Why: nobody deletes the task meanwhile. */
        const TaskHandle_t task = npuprof_freertos_tasks[i];
        const uint32_t words = task ? (uint32_t)uxTaskGetStackHighWaterMark(task) : 0;
        (void)xTaskResumeAll();
        if (task) npuprof_count(NPUPROF_FREERTOS_STACKS + i, words * sizeof(StackType_t));
    }
}
#endif /* NPUPROF_IMPLEMENTATION */
#endif /* NPUPROF_FREERTOS_H */

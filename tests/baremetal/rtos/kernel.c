/* kernel.c - a small preemptive kernel for a Cortex-M, with the hooks of the RTOS whose rtos.h it is built
   with, and three tasks that preempt each other under two interrupts that nest. Two files come out of a run:
   rtos.img is the image, and kernel.log what the kernel itself noted, stamped with another timer.
   SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdint.h>

#ifdef MICROBIT
#define KERNEL_HZ 16000000u
#define KERNEL_LOAD 15872u                   /* a period of 15,873 ticks */
#else
#define KERNEL_HZ 25000000u
#define KERNEL_LOAD 24680u
#endif
enum { TASKS = 4, STACK_WORDS = 160, RUN_TICKS = 60, LOG = 180 };
typedef struct kernel_state {
    uint32_t *stack_pointer;
    uint32_t wake;                           /* tick at which it goes on; 0: it is ready */
    uint32_t stack[STACK_WORDS];
} kernel_state;

#define NPUPROF_ARENA_BYTES 10240
#define NPUPROF_NO_JSON
#define NPUPROF_IMPLEMENTATION
static volatile uint32_t kernel_ticks;

static inline void copy_name(char *to, const char *from, size_t bytes)
{
    while (--bytes && *from) *to++ = *from++;
    *to = 0;
}

#include "rtos.h"

/* Tasks in the order of their priority; the last one that is ready runs. Number 0 is idle. */
static kernel_task kernel_tasks[TASKS], *volatile kernel_current = kernel_tasks;
#define pxCurrentTCB kernel_current
static struct { uint32_t time, what; } kernel_log[LOG];
static uint32_t kernel_logged;
static volatile uint32_t kernel_locked;

#define PORT_TICK kernel_tick
#define PORT_PENDSV kernel_pendsv
#define PORT_IRQ0 kernel_irq0
#define PORT_IRQ1 kernel_irq1
#include "../port.h"
#include "../second_timer.h"

#define PEND_SWITCH() (REG(0xE000ED04) = 1u << 28)

static uint32_t lock(void)
{
    uint32_t before;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(before) : : "memory");
    return before;
}

static void unlock(uint32_t before) { __asm__ volatile("msr primask, %0" : : "r"(before) : "memory"); }

static void note(uint32_t what)
{
    const uint32_t before = lock();
    if (kernel_logged < LOG) {
        kernel_log[kernel_logged].time = timer_now();
        kernel_log[kernel_logged++].what = what;
    }
    unlock(before);
}

/* Called by PendSV: keeps a task's stack pointer, returns that of the task that goes on. */
uint32_t *kernel_switch(uint32_t *stack_pointer);
__attribute__((used)) uint32_t *kernel_switch(uint32_t *stack_pointer)
{
    kernel_task *next = kernel_tasks;
    kernel_current->kernel.stack_pointer = stack_pointer;
    const uint32_t before = lock();
    for (int i = 1; i < TASKS && !kernel_locked; i++)
        if (!kernel_tasks[i].kernel.wake) next = &kernel_tasks[i];
    if (kernel_locked) next = kernel_current;
    unlock(before);
    if (next != kernel_current) {
        KERNEL_SWITCHED_OUT();
        kernel_current = next;
        note((uint32_t)(next - kernel_tasks));
        KERNEL_SWITCHED_IN();
    }
    return kernel_current->kernel.stack_pointer;
}

void kernel_pendsv(void);
__attribute__((naked)) void kernel_pendsv(void)
{
    __asm__ volatile("mrs r0, psp\n\tsub r0, #32\n\tmov r1, r0\n\tstmia r1!, {r4-r7}\n\t"
                     "mov r4, r8\n\tmov r5, r9\n\tmov r6, r10\n\tmov r7, r11\n\tstmia r1!, {r4-r7}\n\t"
                     "push {r3, lr}\n\tbl kernel_switch\n\t"
                     "add r0, #16\n\tldmia r0!, {r4-r7}\n\tmov r8, r4\n\tmov r9, r5\n\tmov r10, r6\n\t"
                     "mov r11, r7\n\tmsr psp, r0\n\tsub r0, #32\n\tldmia r0!, {r4-r7}\n\tpop {r3, pc}");
}

#ifndef KERNEL_TICK_ENTER
#define KERNEL_TICK_ENTER() KERNEL_ISR_ENTER()
#define KERNEL_TICK_EXIT() KERNEL_ISR_EXIT()
#endif

void kernel_tick(void);
void kernel_tick(void)
{
    KERNEL_TICK_ENTER();
    kernel_ticks++;
    KERNEL_TICK();
    for (int i = 1; i < TASKS; i++)
        if (kernel_tasks[i].kernel.wake && kernel_ticks >= kernel_tasks[i].kernel.wake)
            kernel_tasks[i].kernel.wake = 0;
    KERNEL_TICK_EXIT();
    PEND_SWITCH();
}

static void sleep_until(uint32_t tick)
{
    kernel_current->kernel.wake = tick;
    PEND_SWITCH();
    __asm__ volatile("isb" : : : "memory");
}

static void create(int index, char *name, void (*entry)(void))
{
    kernel_task *const task = &kernel_tasks[index];
    uint32_t *const top = task->kernel.stack + STACK_WORDS - 16;
    for (int i = 0; i < STACK_WORDS; i++) task->kernel.stack[i] = 0xA5A5A5A5;
    for (int i = 0; i < 14; i++) top[i] = 0;
    top[14] = (uint32_t)(uintptr_t)entry & ~1u;
    top[15] = 1u << 24;
    task->kernel.stack_pointer = top;
    KERNEL_NAME(task, name);
    KERNEL_CREATED(task);
}

/* Bytes of a task's stack that nobody ever wrote. */
static uint32_t stack_left(const kernel_task *task)
{
    uint32_t words = 0;
    while (words < STACK_WORDS && task->kernel.stack[words] == 0xA5A5A5A5) words++;
    return words * 4;
}

#include "interface.h"

/* Two interrupts: the lower one asks for the higher one in the middle. */
static volatile uint32_t work;
static uint32_t counts[5];                   /* of spans: sample, compute, report; of interrupts */
static void spin(uint32_t n) { while (n--) work = n; }

void kernel_irq0(void);
void kernel_irq0(void)
{
    KERNEL_ISR_ENTER();
    {
        PROF_SCOPE("receive");
        counts[3]++;
        spin(20);
        REG(0xE000E200) = 2;
        __asm__ volatile("dsb\n\tisb" : : : "memory");
        spin(20);
    }
    KERNEL_ISR_EXIT();
}

void kernel_irq1(void);
void kernel_irq1(void)
{
    KERNEL_ISR_ENTER();
    counts[4]++;
    spin(5);
    KERNEL_ISR_EXIT();
}

static void sample(void)
{
    for (;;) {
        { PROF_SCOPE("sample"); counts[0]++; spin(200); }
        sleep_until(kernel_ticks + 2);
    }
}

static void compute(void)
{
    for (;;) {
        {
            PROF_SCOPE("compute");
            counts[1]++;
            for (int i = 0; i < 3; i++) {
                spin(4000);
                REG(0xE000E200) = 1;
            }
        }
        sleep_until(kernel_ticks + 4);
    }
}

static void finish(void)
{
    const npuprof_sink sink = { port_write, NULL };
    kernel_refresh();
    KERNEL_COUNTERS();
    (void)lock();
    npuprof_stop();
    REG(0xE000E010) = 0;
    port_open("rtos.img");
    const npuprof_result result = npuprof_write_image(sink);
    port_close();
    port_open("kernel.log");
    for (int i = 0; i < 5; i++) port_write(NULL, &counts[i], 4);
    for (int i = 0; i < TASKS; i++) {
        const uint32_t left = stack_left(&kernel_tasks[i]);
        port_write(NULL, &left, 4);
    }
    port_write(NULL, kernel_log, kernel_logged * sizeof *kernel_log);
    port_close();
    port_exit(result != NPUPROF_OK);
}

static void report(void)
{
    for (;;) {
        { PROF_SCOPE("report"); counts[2]++; spin(3000); }
        if (kernel_ticks > RUN_TICKS) finish();
        if (kernel_ticks % 12 == 0) { kernel_refresh(); KERNEL_COUNTERS(); }
        sleep_until(kernel_ticks + 1);
    }
}

/* Why without wfi: the emulator may then pass two periods of SysTick without an instruction between. */
static void idle(void)
{
    KERNEL_IDLE();
    for (;;) { }
}

int main(void)
{
    timer_start();
    KERNEL_START();
    npuprof_name(KERNEL_IRQ(0), "uart");
    npuprof_name(KERNEL_IRQ(1), "dma");
    create(0, "IDLE", idle);
    create(1, "report", report);
    create(2, "compute", compute);
    create(3, "sample", sample);
    REG(0xE000ED20) = 0xC0C00000;            /* SysTick and PendSV: lowest; interrupts: below the highest */
    REG(0xE000E400) = 0x4080;
    REG(0xE000E100) = 3;
    REG(0xE000E014) = KERNEL_LOAD;
    REG(0xE000E018) = 0;
    REG(0xE000E010) = 7;
    /* Why from a frame that is given up: the first switch then is as any other. */
    __asm__ volatile("msr psp, %0\n\tmsr control, %1\n\tisb"
                     : : "r"(kernel_tasks[0].kernel.stack + STACK_WORDS), "r"(2) : "memory");
    kernel_current = kernel_tasks;
    note(0);
    KERNEL_SWITCHED_IN();
    idle();
    return 0;
}

/* real.c - random tasks on a real RTOS: they are created, run, sleep, ask for interrupts that nest, and end.
   The kernel's own words, taken by another hook, are the truth. A file seed-N in the folder chooses the seed.
   Two files come out: real.img is the image; real.log has four counts, and then who ran until when.
   SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NPUPROF_WHEN_FULL NPUPROF_KEEP_NEWEST
#define NPUPROF_ARENA_BYTES (256 * 1024)
#define NPUPROF_NO_JSON
#define NPUPROF_IMPLEMENTATION
#ifdef REAL_THREADX
#include "systick.h"
#define NPUPROF_NOW() systick_now()
#define NPUPROF_NOW_HZ 25000000u
#define NPUPROF_CONTEXTS 64
#include "tx_api.h"
#include "npuprof_threadx.h"
#else
#include "FreeRTOS.h"
#include "task.h"
#include "npuprof_freertos.h"
#endif

#define PORT_TICK kernel_tick
#define PORT_PENDSV kernel_pendsv
#define PORT_SVC real_svc
#define PORT_IRQ0 kernel_irq0
#define PORT_IRQ1 kernel_irq1
#include "../port.h"

enum { WORKERS = 12, RUN_TICKS = 800, LOG = 30000, TOP = 6 };
#define REG(address) (*(volatile uint32_t *)(address))

static struct { uint32_t time; char name[4]; } truth[LOG];
static uint32_t counts[4];                   /* of the log; of two interrupts; of the kernel's ticks */
static volatile uint32_t work;
static void spin(uint32_t n) { while (n--) work = n; }

static uint32_t seed;
static uint32_t chance(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* Another timer than the recorder's. A RISC-V has only one. */
static uint32_t timer_now(void)
{
#ifdef __riscv
    return REG(0x0200BFF8);
#else
    return 0xFFFFFFFF - REG(0x40002004);
#endif
}

void real_switched_out(const char *name);
void real_switched_out(const char *name)
{
    if (counts[0] == LOG) port_exit(3);
    truth[counts[0]].time = timer_now();
    memcpy(truth[counts[0]++].name, name, 4);
}

/* Asks for the lower interrupt. On a Cortex-M that asks for the higher one in the middle. */
static void interrupt(void)
{
#ifdef __riscv
    REG(0x02000000) = 1;
#else
    REG(0xE000E200) = 1;
#endif
}

static void finish(void);

#ifdef REAL_THREADX
#define ISR_ENTER() _tx_execution_isr_enter()
#define ISR_EXIT() _tx_execution_isr_exit()
void PendSV_Handler(void);
void SysTick_Handler(void);
void kernel_tick(void) { SysTick_Handler(); }
void kernel_pendsv(void);
__attribute__((naked)) void kernel_pendsv(void) { __asm__ volatile("b PendSV_Handler"); }
void real_svc(void) { port_exit(98); }
VOID __real__tx_execution_thread_exit(VOID);
VOID __wrap__tx_execution_thread_exit(VOID);
VOID __wrap__tx_execution_thread_exit(VOID)
{
    if (_tx_thread_current_ptr) real_switched_out(_tx_thread_current_ptr->tx_thread_name);
    __real__tx_execution_thread_exit();
}

typedef TX_THREAD *task_handle;
static TX_THREAD control[WORKERS + 1];
static uint32_t stacks[WORKERS + 1][256];
static void nap(uint32_t ticks) { tx_thread_sleep(ticks); }
static uint32_t now(void) { return (uint32_t)tx_time_get(); }
static void counters(void) { npuprof_threadx_counters(); }

static void create(int i, char *name, void (*entry)(ULONG), uint32_t priority)
{
    memset(&control[i], 0xA5, sizeof control[i]);              /* memory that was something else */
    tx_thread_create(&control[i], name, entry, (ULONG)i, stacks[i], sizeof stacks[i], TOP + 1 - priority,
                     TOP + 1 - priority, TX_NO_TIME_SLICE, TX_AUTO_START);
}

static void end(int i)
{
    tx_thread_terminate(&control[i]);
    tx_thread_delete(&control[i]);
}

#define PARAMETER ULONG
#else /* !REAL_THREADX: FreeRTOS */
#define ISR_ENTER() traceISR_ENTER()
#define ISR_EXIT() do { portYIELD_FROM_ISR(counts[1] & 1); traceISR_EXIT(); } while (0)
static TaskHandle_t handles[WORKERS + 1];
static void nap(uint32_t ticks) { vTaskDelay(ticks); }
static uint32_t now(void) { return (uint32_t)xTaskGetTickCount(); }
static void counters(void) { npuprof_freertos_counters(); }

static void create(int i, char *name, void (*entry)(void *), uint32_t priority)
{
    if (xTaskCreate(entry, name, 256, (void *)(uintptr_t)i, priority, &handles[i]) != pdPASS) port_exit(4);
}

static void end(int i) { vTaskDelete(handles[i]); }

#define PARAMETER void *
#endif /* REAL_THREADX */

#ifdef __riscv
void freertos_risc_v_application_interrupt_handler(uint32_t cause);
void freertos_risc_v_application_interrupt_handler(uint32_t cause)
{
    ISR_ENTER();
    (void)cause;
    REG(0x02000000) = 0;
    { PROF_SCOPE("receive"); spin(20); }
    counts[1]++;
    ISR_EXIT();
}

void freertos_risc_v_application_exception_handler(uint32_t cause);
void freertos_risc_v_application_exception_handler(uint32_t cause) { port_exit(90 + (int)(cause & 7)); }

#else /* !__riscv */
void kernel_irq0(void)
{
    ISR_ENTER();
    { PROF_SCOPE("receive"); spin(20); REG(0xE000E200) = 2; __asm__ volatile("dsb\n\tisb"); spin(20); }
    counts[1]++;
    ISR_EXIT();
}

void kernel_irq1(void)
{
    ISR_ENTER();
    counts[2]++;
    spin(5);
    ISR_EXIT();
}
#endif /* __riscv */

static void worker(PARAMETER which)
{
    (void)which;
    for (;;) {
        {
            PROF_SCOPE("job");
            spin(100 + 37 * (now() % 40));
            if (now() % 3) interrupt();
            spin(500);
        }
        nap(1 + now() % 4);
    }
}

static void boss(PARAMETER unused)
{
    static char names[WORKERS + 1][4];
    bool is_there[WORKERS + 1] = { false };
    (void)unused;
    while (now() < RUN_TICKS) {
        const int i = 1 + (int)chance(WORKERS);
        if (is_there[i]) {
            end(i);
        } else {
            memcpy(names[i], "w00", 4);
            names[i][1] = (char)('0' + chance(3));
            names[i][2] = (char)('0' + i % 10);
            create(i, names[i], worker, 1 + chance(TOP - 1));
        }
        is_there[i] = !is_there[i];
        if (chance(8) == 0) counters();
        nap(1 + chance(5));
    }
    finish();
}

static void finish(void)
{
    const npuprof_sink sink = { port_write, NULL };
#ifdef __riscv
    __asm__ volatile("csrci mstatus, 8");
#else
    __asm__ volatile("cpsid i");
#endif
    counts[3] = now();
    PROF_COUNTER("tick", counts[3]);
    npuprof_stop();
    port_open("real.img");
    const npuprof_result result = npuprof_write_image(sink);
    port_close();
    port_open("real.log");
    port_write(NULL, counts, sizeof counts);
    port_write(NULL, truth, counts[0] * sizeof *truth);
    port_close();
    port_exit(result != NPUPROF_OK);
}

/* Before the scheduler runs. */
static void prepare(void)
{
    char name[] = "seed-0";
    while (!port_exists(name) && name[5] < '9') name[5]++;
    seed = (uint32_t)(name[5] - '0') * 2654435761u + 12345u;
#ifdef __riscv
    extern void freertos_risc_v_trap_handler(void);
    __asm__ volatile("csrw mtvec, %0\n\tcsrs mie, %1" : : "r"(freertos_risc_v_trap_handler), "r"(8));
#else
    REG(0x40002000) = 0xFFFFFFFF;            /* the other timer */
    REG(0x40002008) = 0x82;
    REG(0xE000E400) = 0x80C0;                /* the second one is above the first */
    REG(0xE000E100) = 3;
#endif
}

#ifdef REAL_THREADX
void tx_application_define(void *memory);
void tx_application_define(void *memory)
{
    (void)memory;
    prepare();
    npuprof_threadx_start(1);
    npuprof_name(NPUPROF_THREADX_IRQ(0), "irq0");
    npuprof_name(NPUPROF_THREADX_IRQ(1), "irq1");
    create(0, "boss", boss, TOP);
}

int main(void)
{
    tx_kernel_enter();
    return 9;
}

#else /* !REAL_THREADX */
int main(void)
{
    prepare();
    npuprof_freertos_start(1);
    npuprof_name(NPUPROF_FREERTOS_IRQ(0), "irq0");
    npuprof_name(NPUPROF_FREERTOS_IRQ(1), "irq1");
    npuprof_name(NPUPROF_FREERTOS_IRQ(3), "irq0");
    create(0, "boss", boss, TOP);
    vTaskStartScheduler();
    return 9;
}
#endif /* REAL_THREADX */

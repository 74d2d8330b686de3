/* rtos.h - the kernel of these tests as FreeRTOS: its task and where it calls the hooks.
   SPDX-License-Identifier: MIT */
#include "FreeRTOS.h"
#include "task.h"
#include "npuprof_freertos.h"

typedef struct tskTaskControlBlock {
    kernel_state kernel;
    char pcTaskName[configMAX_TASK_NAME_LEN];
    UBaseType_t uxTaskNumber;
} kernel_task;
#define KERNEL_NAME(task, name) copy_name((task)->pcTaskName, (name), configMAX_TASK_NAME_LEN)
#define KERNEL_CREATED(pxNewTCB) traceTASK_CREATE(pxNewTCB)
#define KERNEL_SWITCHED_OUT() traceTASK_SWITCHED_OUT()
#define KERNEL_SWITCHED_IN() traceTASK_SWITCHED_IN()
#define KERNEL_TICK() traceTASK_INCREMENT_TICK(kernel_ticks)
/* FreeRTOS 10 has no hooks in its tick, and none in portYIELD_FROM_ISR(); 11 has both. So one handler, right
   for both, ends with two exits in 11. */
#define KERNEL_ISR_ENTER() traceISR_ENTER()
#if FREERTOS_VERSION >= 11
#define portYIELD_FROM_ISR(x) \
    do { if (x) { traceISR_EXIT_TO_SCHEDULER(); } else { traceISR_EXIT(); } } while (0)
#define KERNEL_TICK_ENTER() traceISR_ENTER()
#define KERNEL_TICK_EXIT() traceISR_EXIT()
#else
#define portYIELD_FROM_ISR(x) ((void)(x))
#define KERNEL_TICK_ENTER() ((void)0)
#define KERNEL_TICK_EXIT() ((void)0)
#endif
#define KERNEL_ISR_EXIT() do { portYIELD_FROM_ISR(kernel_ticks & 1); traceISR_EXIT(); } while (0)
#define KERNEL_IDLE() ((void)0)
#define KERNEL_START() kernel_start()
#define KERNEL_COUNTERS() npuprof_freertos_counters()
#define KERNEL_IRQ(n) NPUPROF_FREERTOS_IRQ(n)

/* A deleted task's number is given to the next task of its name; to others only when all are in use. Else
   nothing is recorded, and the rig fails. */
static void kernel_start(void)
{
#ifndef NPUPROF_OFF
    int some[16];
    uint32_t numbers[16], n = 0;
    npuprof_freertos_start(1);
    const uint32_t first = npuprof_freertos_created(&some[0], "worker");
    npuprof_freertos_deleted(first);
    const uint32_t other = npuprof_freertos_created(&some[1], "other");
    const uint32_t again = npuprof_freertos_created(&some[2], "worker");
    bool is_right = first == again && other != first && npuprof_freertos_number(&some[1]) == other;
    npuprof_freertos_deleted(other);
    npuprof_freertos_deleted(again);
    for (; n < 12; n++) numbers[n] = npuprof_freertos_created(&some[n], n == 11 ? "late" : "many");
    is_right = is_right && numbers[9] != NPUPROF_CONTEXTS - 1 && numbers[11] != numbers[9];
    const uint32_t none = npuprof_freertos_created(&some[12], "none");
    is_right = is_right && none == NPUPROF_CONTEXTS - 1;
    for (uint32_t i = 0; i < n; i++) npuprof_freertos_deleted(numbers[i]);
    if (!is_right) npuprof_stop();
#endif
}

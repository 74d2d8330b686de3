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
#define KERNEL_ISR_ENTER() traceISR_ENTER()
#define KERNEL_ISR_EXIT() traceISR_EXIT()
#define KERNEL_IDLE() ((void)0)
#define KERNEL_START() npuprof_freertos_start(1)
#define KERNEL_COUNTERS() npuprof_freertos_counters()
#define KERNEL_IRQ(n) NPUPROF_FREERTOS_IRQ(n)

/* rtos.h - the kernel of these tests as ThreadX: its thread and where it calls the hooks. While no thread
   runs, its idle task stands for the loop of the scheduler.
   SPDX-License-Identifier: MIT */
#include "tx_api.h"
#include "systick.h"
#define NPUPROF_NOW() systick_now()
#define NPUPROF_NOW_HZ KERNEL_HZ
#include "npuprof_threadx.h"

typedef TX_THREAD kernel_task;
#define KERNEL_NAME(task, name) ((task)->tx_thread_name = (name))
#define KERNEL_CREATED(task) ((task)->tx_thread_stack_start = (task)->kernel.stack)
#define KERNEL_SWITCHED_OUT() \
    do { if (_tx_thread_current_ptr) _tx_execution_thread_exit(); } while (0)
#define KERNEL_SWITCHED_IN() \
    do { \
        const int is_idle = kernel_current == kernel_tasks; \
        _tx_thread_current_ptr = is_idle ? NULL : kernel_current; \
        if (!is_idle) _tx_execution_thread_enter(); \
    } while (0)
#define KERNEL_TICK() ((void)0)
#define KERNEL_ISR_ENTER() _tx_execution_isr_enter()
#define KERNEL_ISR_EXIT() _tx_execution_isr_exit()
#define KERNEL_IDLE() ((void)0)
#define KERNEL_START() npuprof_threadx_start(1)
#define KERNEL_COUNTERS() npuprof_threadx_counters()
#define KERNEL_IRQ(n) NPUPROF_THREADX_IRQ(n)

/* rtos.h - the kernel of these tests as ThreadX: its thread and where it calls the hooks. While no thread
   runs, its idle task stands for the loop of the scheduler. As the real one does:
   The port's file with the tick does not include tx_user.h: THREADX_NO_TICK_HOOK is what that gives without
   the compiler's option of step 1.
   A thread that is deleted has no hook: it is no more in the list of those that were created. One that is
   created in the same memory finds its extension cleared.
   _tx_execution_thread_enter() comes with interrupts on.
   SPDX-License-Identifier: MIT */
#include "tx_api.h"
#include "systick.h"
#define NPUPROF_NOW() systick_now()
#define NPUPROF_NOW_HZ KERNEL_HZ
#include "npuprof_threadx.h"

typedef TX_THREAD kernel_task;
#define KERNEL_NAME(task, name) ((task)->tx_thread_name = (name))
#define KERNEL_CREATED(task) kernel_created(task)
#ifdef THREADX_NO_TICK_HOOK
#define KERNEL_TICK_ENTER() ((void)0)
#define KERNEL_TICK_EXIT() ((void)0)
#endif
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
#define KERNEL_START() kernel_start()
#define KERNEL_COUNTERS() npuprof_threadx_counters()
#define KERNEL_IRQ(n) NPUPROF_THREADX_IRQ(n)

extern TX_THREAD *_tx_thread_created_ptr;
extern ULONG _tx_thread_created_count;

static void kernel_list(TX_THREAD *thread)
{
    thread->npuprof_number = 0;
    thread->tx_thread_created_next = _tx_thread_created_ptr;
    _tx_thread_created_ptr = thread;
    _tx_thread_created_count++;
}

static void kernel_created(TX_THREAD *thread)
{
    thread->tx_thread_stack_start = thread->kernel.stack;
    kernel_list(thread);
}

static TX_THREAD kernel_tasks[TASKS];

/* Threads that come and go: one of the same name gets its number again, others when all are in use. Else
   nothing is recorded, and the rig fails. */
static void kernel_start(void)
{
    static char *const names[] = { "one", "two" };
    unsigned long first = 0;
    bool is_right = true;
    npuprof_threadx_start(1);
    for (int i = 0; i < 100; i++) {
        TX_THREAD *const thread = &kernel_tasks[i % 2];
        thread->tx_thread_name = names[i % 3 == 1];
        kernel_list(thread);
        (void)npuprof_threadx_adopt(thread, thread->tx_thread_name);
        if (i == 0) first = thread->npuprof_number;
        if (i % 3 != 1) is_right = is_right && thread->npuprof_number == first;
        else is_right = is_right && thread->npuprof_number == first + 1;
        _tx_thread_created_ptr = NULL;
        _tx_thread_created_count = 0;
    }
    if (!is_right) npuprof_stop();
}

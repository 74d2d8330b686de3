/* rtos.h - the kernel of these tests as Zephyr: its thread and where it calls the hooks. As the real one with
   CONFIG_CURRENT_THREAD_USE_TLS: at a thread's first switch k_current_get() is still NULL.
   SPDX-License-Identifier: MIT */
#include "npuprof_zephyr.h"

typedef struct k_thread {
    kernel_state kernel;
    const char *name;
    bool has_run;
} kernel_task;
#define KERNEL_NAME(task, text) ((task)->name = (text))
#define KERNEL_CREATED(task) \
    do { sys_trace_thread_create_user(task); sys_trace_thread_name_set_user(task); } while (0)
#define KERNEL_SWITCHED_OUT() ((void)0)
#define KERNEL_SWITCHED_IN() (sys_trace_thread_switched_in_user(), (void)(kernel_current->has_run = true))
#define KERNEL_TICK() ((void)0)
#define KERNEL_ISR_ENTER() sys_trace_isr_enter_user()
#define KERNEL_ISR_EXIT() sys_trace_isr_exit_user()
#define KERNEL_IDLE() sys_trace_idle_user()
#define KERNEL_START() npuprof_zephyr_start(1)
#define KERNEL_COUNTERS() npuprof_zephyr_counters()
#define KERNEL_IRQ(n) NPUPROF_ZEPHYR_IRQ(n)

#ifdef NPUPROF_OFF
/* The kernel's own hooks, which do nothing. */
#define HOOK(name) \
    static inline void name(void) { }
#define sys_trace_thread_create_user(thread) ((void)(thread))
#define sys_trace_thread_name_set_user(thread) ((void)(thread))
HOOK(sys_trace_thread_switched_in_user)
HOOK(sys_trace_isr_enter_user)
HOOK(sys_trace_isr_exit_user)
HOOK(sys_trace_idle_user)
#endif

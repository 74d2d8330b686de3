/* interface.h - what Zephyr gives the threads. The cycles are those of a SysTick.
   SPDX-License-Identifier: MIT */
#include "systick.h"
struct k_thread *k_current_get(void) { return kernel_current->has_run ? kernel_current : NULL; }
struct k_thread *k_sched_current_thread_query(void) { return kernel_current; }
const char *k_thread_name_get(struct k_thread *thread) { return thread->name; }

int k_thread_stack_space_get(const struct k_thread *thread, size_t *unused)
{
    *unused = stack_left(thread);
    return 0;
}

int64_t k_uptime_ticks(void) { return kernel_ticks; }
uint32_t k_cycle_get_32(void) { return systick_now(); }
uint32_t sys_clock_hw_cycles_per_sec(void) { return KERNEL_HZ; }

bool k_is_in_isr(void)
{
    uint32_t number;
    __asm__ volatile("mrs %0, ipsr" : "=r"(number));
    return number != 0;
}

void k_sched_lock(void) { kernel_locked++; }

void k_sched_unlock(void)
{
    kernel_locked--;
    PEND_SWITCH();
}

static void kernel_refresh(void) { }

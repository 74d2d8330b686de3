/* zephyr/kernel.h - what npuprof_zephyr.h uses of the interface of Zephyr, for the kernel of these tests.
   SPDX-License-Identifier: MIT */
#ifndef ZEPHYR_KERNEL_H
#define ZEPHYR_KERNEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#define CONFIG_INIT_STACKS 1
#define CONFIG_THREAD_STACK_INFO 1
struct k_thread;
struct k_thread *k_current_get(void);
struct k_thread *k_sched_current_thread_query(void);
const char *k_thread_name_get(struct k_thread *thread);
int k_thread_stack_space_get(const struct k_thread *thread, size_t *unused);
int64_t k_uptime_ticks(void);
uint32_t k_cycle_get_32(void);
uint32_t sys_clock_hw_cycles_per_sec(void);
bool k_is_in_isr(void);
void k_sched_lock(void);
void k_sched_unlock(void);
#endif

/* interface.h - what ThreadX gives the threads.
   SPDX-License-Identifier: MIT */
TX_THREAD *_tx_thread_current_ptr, *_tx_thread_created_ptr;
ULONG _tx_thread_created_count;
ULONG tx_time_get(VOID) { return kernel_ticks; }

/* What the kernel's stack check finds out. */
static void kernel_refresh(void)
{
    for (TX_THREAD *t = kernel_tasks; t < kernel_tasks + TASKS; t++)
        t->tx_thread_stack_highest_ptr = (char *)t->kernel.stack + stack_left(t);
}

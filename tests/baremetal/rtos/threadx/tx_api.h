/* tx_api.h - what npuprof_threadx.h uses of the interface of ThreadX, for the kernel of these tests.
   SPDX-License-Identifier: MIT */
#ifndef TX_API_H
#define TX_API_H
#include <stddef.h>
#include <stdint.h>
#define VOID void
typedef unsigned long ULONG;
typedef char CHAR;
#include "tx_user.h"
#define TX_READY ((unsigned)0)
typedef struct TX_THREAD_STRUCT {
    kernel_state kernel;
    CHAR *tx_thread_name;
    VOID *tx_thread_stack_start;
    VOID *tx_thread_stack_highest_ptr;
    struct TX_THREAD_STRUCT *tx_thread_created_next;
    TX_THREAD_USER_EXTENSION
} TX_THREAD;
ULONG tx_time_get(VOID);
#define TX_INTERRUPT_SAVE_AREA uint32_t before;
#define TX_DISABLE before = lock();
#define TX_RESTORE unlock(before);
static uint32_t lock(void);
static void unlock(uint32_t before);
#endif /* TX_API_H */

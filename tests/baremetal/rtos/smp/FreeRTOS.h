/* FreeRTOS.h - what npuprof_freertos.h uses of the interface of FreeRTOS on several cores.
   SPDX-License-Identifier: MIT */
#ifndef INC_FREERTOS_H
#define INC_FREERTOS_H
#include <stddef.h>
#include <stdint.h>
#include "harts.h"
typedef uint32_t StackType_t, TickType_t;
typedef unsigned long UBaseType_t;
typedef long BaseType_t;
#include "FreeRTOSConfig.h"
#define portSET_INTERRUPT_MASK() harts_mask()
#define portCLEAR_INTERRUPT_MASK(before) harts_unmask((uint32_t)(before))
#define portGET_CORE_ID() kernel_core()

/* A task that asks with interrupts on moves to another core behind that, whenever it can. */
static inline uint32_t kernel_core(void)
{
    const uint32_t core = harts_id(), before = harts_mask();
    harts_unmask(before);
    if (before) harts_yield();
    return core;
}
#ifdef NPUPROF_OFF
#define traceTASK_CREATE(task) ((void)(task))
#define traceTASK_DELETE(task) ((void)(task))
#define traceTASK_SWITCHED_IN()
#define traceTASK_INCREMENT_TICK(count)
#define traceISR_ENTER()
#define traceISR_EXIT()
#endif
#endif /* INC_FREERTOS_H */

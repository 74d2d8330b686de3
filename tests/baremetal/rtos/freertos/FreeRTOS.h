/* FreeRTOS.h - what npuprof_freertos.h uses of the interface of FreeRTOS, for the kernel of these tests.
   SPDX-License-Identifier: MIT */
#ifndef INC_FREERTOS_H
#define INC_FREERTOS_H
#include <stddef.h>
#include <stdint.h>
typedef uint32_t StackType_t, TickType_t;
typedef unsigned long UBaseType_t;
typedef long BaseType_t;
#include "FreeRTOSConfig.h"
#ifndef traceTASK_CREATE
#define traceTASK_CREATE(task)
#define traceTASK_SWITCHED_IN()
#define traceTASK_INCREMENT_TICK(count)
#define traceISR_ENTER()
#define traceISR_EXIT()
#define traceISR_EXIT_TO_SCHEDULER()
#endif
#ifndef traceTASK_SWITCHED_OUT
#define traceTASK_SWITCHED_OUT()
#endif
#endif

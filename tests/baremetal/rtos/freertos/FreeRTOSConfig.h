/* FreeRTOSConfig.h - the configuration of these tests.
   SPDX-License-Identifier: MIT */
#define configUSE_TRACE_FACILITY 1
#define configMAX_TASK_NAME_LEN 12
#if FREERTOS_VERSION >= 11
#define configCPU_CLOCK_HZ 1                 /* Why wrong: the recorder must use the one below */
#define configSYSTICK_CLOCK_HZ KERNEL_HZ
#else
#define configCPU_CLOCK_HZ KERNEL_HZ
#define NPUPROF_FREERTOS_BY_HANDLE
#endif
#define configUSE_TICKLESS_IDLE 0
#include "npuprof_freertos.h"

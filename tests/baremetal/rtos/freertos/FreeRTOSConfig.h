/* FreeRTOSConfig.h - the configuration of these tests.
   SPDX-License-Identifier: MIT */
#define configUSE_TRACE_FACILITY 1
#define configMAX_TASK_NAME_LEN 12
#define configCPU_CLOCK_HZ KERNEL_HZ
#define configUSE_TICKLESS_IDLE 0
#include "npuprof_freertos.h"

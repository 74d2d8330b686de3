/* FreeRTOSConfig.h - two cores.
   SPDX-License-Identifier: MIT */
#ifndef configNUMBER_OF_CORES
#define configNUMBER_OF_CORES 2
#endif
#define configUSE_TRACE_FACILITY 1
#define configMAX_TASK_NAME_LEN 12
#define configUSE_TICKLESS_IDLE 0
#define configCPU_CLOCK_HZ 10000000u
#define configMTIME_BASE_ADDRESS 0x0200BFF8u
#ifndef NPUPROF_CONTEXTS
#define NPUPROF_CONTEXTS 32
#endif
#include "npuprof_freertos.h"

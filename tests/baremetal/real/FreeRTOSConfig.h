/* FreeRTOSConfig.h - the real FreeRTOS in these tests: Cortex-M3 of an MPS2 board, or a RISC-V of QEMU.
   SPDX-License-Identifier: MIT */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H
#define configUSE_PREEMPTION 1
#define configUSE_IDLE_HOOK 0
#define configUSE_TICK_HOOK 0
#define configTICK_RATE_HZ 1000
#define configMAX_PRIORITIES 8
#define configMINIMAL_STACK_SIZE 256
#define configTOTAL_HEAP_SIZE 65536
#define configMAX_TASK_NAME_LEN 16
#define configUSE_16_BIT_TICKS 0
#define configUSE_TRACE_FACILITY 1
#define configUSE_TIMERS 0
#define configUSE_MUTEXES 0
#define configCHECK_FOR_STACK_OVERFLOW 0
#define configUSE_TICKLESS_IDLE 0
#define INCLUDE_vTaskDelete 1
#define INCLUDE_vTaskDelay 1
#define INCLUDE_uxTaskGetStackHighWaterMark 1
#define INCLUDE_xTaskGetIdleTaskHandle 1
#ifdef __riscv
#define configCPU_CLOCK_HZ 10000000u
#define configMTIME_BASE_ADDRESS 0x0200BFF8u
#define configMTIMECMP_BASE_ADDRESS 0x02004000u
#define configISR_STACK_SIZE_WORDS 1024
#define configUSE_PORT_OPTIMISED_TASK_SELECTION 0
#else
#define configCPU_CLOCK_HZ 25000000u
#define configPRIO_BITS 3
#define configKERNEL_INTERRUPT_PRIORITY 0xE0
#define configMAX_SYSCALL_INTERRUPT_PRIORITY 0x40
#define vPortSVCHandler real_svc
#define xPortPendSVHandler kernel_pendsv
#define xPortSysTickHandler kernel_tick
#endif
#define NPUPROF_CONTEXTS 64
#include "npuprof_freertos.h"
/* The truth: what the kernel itself says, by another hook. */
#if !defined(__ASSEMBLER__)
#ifdef __cplusplus
extern "C"
#endif
void real_switched_out(const char *name);
#define traceTASK_SWITCHED_OUT() real_switched_out(pxCurrentTCB->pcTaskName)
#endif
#endif /* FREERTOS_CONFIG_H */

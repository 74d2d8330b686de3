/* task.h - see FreeRTOS.h.
   SPDX-License-Identifier: MIT */
#ifndef INC_TASK_H
#define INC_TASK_H
typedef struct tskTaskControlBlock *TaskHandle_t;
char *pcTaskGetName(TaskHandle_t task);
TickType_t xTaskGetTickCount(void);
UBaseType_t uxTaskGetStackHighWaterMark(TaskHandle_t task);
TaskHandle_t xTaskGetIdleTaskHandle(void);
void vTaskSuspendAll(void);
BaseType_t xTaskResumeAll(void);
#endif

/* task.h - see FreeRTOS.h.
   SPDX-License-Identifier: MIT */
#ifndef INC_TASK_H
#define INC_TASK_H
typedef struct tskTaskControlBlock *TaskHandle_t;
char *pcTaskGetName(TaskHandle_t task);
TickType_t xTaskGetTickCount(void);
UBaseType_t uxTaskGetStackHighWaterMark(TaskHandle_t task);
TaskHandle_t xTaskGetIdleTaskHandleForCore(BaseType_t core);
BaseType_t xTaskCreate(void (*entry)(void *), const char *name, uint32_t words, void *parameter,
                       UBaseType_t priority, TaskHandle_t *task);
void vTaskDelete(TaskHandle_t task);
void vTaskDelay(TickType_t ticks);
void vTaskSuspendAll(void);
BaseType_t xTaskResumeAll(void);
void vTaskStartScheduler(void);
#define pdPASS 1
#endif

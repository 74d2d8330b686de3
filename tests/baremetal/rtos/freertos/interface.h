/* interface.h - what FreeRTOS gives the tasks.
   SPDX-License-Identifier: MIT */
char *pcTaskGetName(TaskHandle_t task) { return task->pcTaskName; }
TickType_t xTaskGetTickCount(void) { return kernel_ticks; }
UBaseType_t uxTaskGetStackHighWaterMark(TaskHandle_t task) { return stack_left(task) / sizeof(StackType_t); }
TaskHandle_t xTaskGetIdleTaskHandle(void) { return kernel_tasks; }
void vTaskSuspendAll(void) { kernel_locked++; }

BaseType_t xTaskResumeAll(void)
{
    kernel_locked--;
    PEND_SWITCH();
    return 0;
}

static void kernel_refresh(void) { }

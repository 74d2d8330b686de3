/* kernel.h - a small kernel for two harts, with the interface and the hooks of FreeRTOS. One lock guards all
   that is in it. The ready task of the highest priority runs on whatever hart is free; of equal ones the
   next in turn, so that tasks move between the harts.
   SPDX-License-Identifier: MIT */
enum { KERNEL_SLOTS = 20, KERNEL_WORDS = 512 };
typedef struct tskTaskControlBlock {
    uint32_t *frame;
    TickType_t wake;                         /* tick at which it goes on; 0: it is ready */
    UBaseType_t priority, uxTaskNumber;
    int hart;                                /* where it runs; -1: nowhere */
    bool is_used, is_deleted;
    char pcTaskName[configMAX_TASK_NAME_LEN];
    uint32_t stack[KERNEL_WORDS];
} kernel_task;

static kernel_task kernel_tasks[KERNEL_SLOTS], *volatile pxCurrentTCBs[HARTS];
static TaskHandle_t kernel_idles[HARTS];
static volatile uint32_t kernel_word;        /* the lock */
static volatile TickType_t kernel_ticks, kernel_late;    /* late: came while the scheduler was suspended */
static volatile uint32_t kernel_suspended;
static uint32_t kernel_turn, kernel_counted, kernel_idle_ticks[HARTS], kernel_all_late;
static volatile bool kernel_runs;

static uint32_t kernel_enter(void)
{
    const uint32_t before = harts_mask();
    harts_lock(&kernel_word);
    return before;
}

static void kernel_leave(uint32_t before)
{
    harts_unlock(&kernel_word);
    harts_unmask(before);
}

char *pcTaskGetName(TaskHandle_t task) { return task->pcTaskName; }
TickType_t xTaskGetTickCount(void) { return kernel_ticks; }
TaskHandle_t xTaskGetIdleTaskHandleForCore(BaseType_t core) { return kernel_idles[core]; }

UBaseType_t uxTaskGetStackHighWaterMark(TaskHandle_t task)
{
    UBaseType_t words = 0;
    while (words < KERNEL_WORDS && task->stack[words] == 0xA5A5A5A5) words++;
    return words;
}

/* With the lock held. */
static void kernel_choose(int hart)
{
    kernel_task *const old = pxCurrentTCBs[hart], *next = NULL;
    if (kernel_suspended) return;
    kernel_turn++;
    for (uint32_t i = 0; i < KERNEL_SLOTS; i++) {
        kernel_task *const task = &kernel_tasks[(kernel_turn + i) % KERNEL_SLOTS];
        const bool is_ready = task->is_used && !task->is_deleted && !task->wake;
        if (!is_ready || (task->hart >= 0 && task->hart != hart)) continue;
        if (!next || task->priority > next->priority) next = task;
    }
    old->hart = -1;
    if (old->is_deleted) old->is_used = false;
    next->hart = hart;
    pxCurrentTCBs[hart] = next;
    traceTASK_SWITCHED_IN();
}

static uint32_t *kernel_switch(uint32_t hart, uint32_t *frame)
{
    const uint32_t before = kernel_enter();
    pxCurrentTCBs[hart]->frame = frame;
    kernel_choose((int)hart);
    frame = pxCurrentTCBs[hart]->frame;
    kernel_leave(before);
    return frame;
}

static const char *kernel_name(uint32_t hart) { return pxCurrentTCBs[hart]->pcTaskName; }

/* With the lock held. Why it comes again: so does the tick of FreeRTOS. */
static void kernel_advance(void)
{
    traceTASK_INCREMENT_TICK(kernel_ticks);
    for (int i = 0; i < HARTS && kernel_ticks == kernel_counted; i++)
        kernel_idle_ticks[i] += !pxCurrentTCBs[i]->priority;
    if (kernel_ticks == kernel_counted) kernel_counted++;
    if (kernel_suspended) {
        kernel_late++;
        kernel_all_late++;
        return;
    }
    kernel_ticks++;
    for (int i = 0; i < KERNEL_SLOTS; i++)
        if (kernel_tasks[i].wake && kernel_ticks >= kernel_tasks[i].wake) kernel_tasks[i].wake = 0;
}

static void kernel_tick(void)
{
    traceISR_ENTER();
    const uint32_t before = kernel_enter();
    kernel_advance();
    kernel_leave(before);
    traceISR_EXIT();
}

BaseType_t xTaskCreate(void (*entry)(void *), const char *name, uint32_t words, void *parameter,
                       UBaseType_t priority, TaskHandle_t *handle)
{
    const uint32_t before = kernel_enter();
    kernel_task *task = kernel_tasks;
    size_t n = 0;
    (void)words;
    while (task->is_used)
        if (++task == kernel_tasks + KERNEL_SLOTS) port_exit(4);
    *task = (kernel_task){ .priority = priority, .hart = -1, .is_used = true };
    for (; name[n]; n++) task->pcTaskName[n] = name[n];
    for (int i = 0; i < KERNEL_WORDS; i++) task->stack[i] = 0xA5A5A5A5;
    task->frame = harts_frame(task->stack + KERNEL_WORDS, entry, parameter);
    *handle = task;
    traceTASK_CREATE(task);
    kernel_leave(before);
    if (kernel_runs) {
        harts_wake(0);
        harts_wake(1);
    }
    return pdPASS;
}

/* The other hart runs the task until it is interrupted. */
void vTaskDelete(TaskHandle_t task)
{
    const uint32_t before = kernel_enter();
    traceTASK_DELETE(task);
    task->is_deleted = true;
    task->is_used = task->hart >= 0;
    if (task->hart >= 0) harts_wake((uint32_t)task->hart);
    kernel_leave(before);
}

void vTaskDelay(TickType_t ticks)
{
    const uint32_t before = kernel_enter();
    pxCurrentTCBs[harts_id()]->wake = kernel_ticks + ticks;
    kernel_leave(before);
    harts_yield();
}

void vTaskSuspendAll(void)
{
    const uint32_t before = kernel_enter();
    kernel_suspended = 1;
    kernel_leave(before);
}

BaseType_t xTaskResumeAll(void)
{
    const uint32_t before = kernel_enter();
    kernel_suspended = 0;
    for (; kernel_late; kernel_late--) kernel_advance();
    kernel_leave(before);
    harts_yield();
    return 0;
}

/* Why it sleeps: the emulator then gives the other hart its time. */
static void kernel_idle(void *unused)
{
    (void)unused;
    for (;;) {
        harts_yield();
        __asm__ volatile("wfi");
    }
}

static void kernel_begin(void)
{
    while (!kernel_runs) { }
    harts_begin(pxCurrentTCBs[harts_id()]->frame);
}

void vTaskStartScheduler(void)
{
    char name[] = "IDLE0";
    for (int i = 0; i < HARTS; i++, name[4]++) {
        (void)xTaskCreate(kernel_idle, name, KERNEL_WORDS, NULL, 0, &kernel_idles[i]);
        kernel_idles[i]->hart = i;
        pxCurrentTCBs[i] = kernel_idles[i];
    }
    traceTASK_SWITCHED_IN();
    smp_noted(0);
    __atomic_store_n(&kernel_runs, true, __ATOMIC_RELEASE);
    kernel_begin();
}

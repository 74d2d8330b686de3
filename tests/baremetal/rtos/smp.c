/* smp.c - random tasks on two harts under FreeRTOS: they are created, run, sleep, ask for interrupts of both
   harts, and are deleted while they run. What the traps see is the truth: who goes on, behind all hooks. A
   file seed-N in the folder chooses the seed. Two files come out: smp.img is the image, smp.log the truth.
   SPDX-License-Identifier: MIT */
#define PORT_SECOND smp_second
#include "../port.h"

#define NPUPROF_ARENA_BYTES (1 << 19)
#define NPUPROF_NO_JSON
#define NPUPROF_IMPLEMENTATION
#define HARTS_IMPLEMENTATION
#include "FreeRTOS.h"
#include "task.h"
#ifdef SMP_MASK                              /* as two cores without exclusive access */
static volatile uint32_t smp_masked;
/* Why it wakes the other hart: the emulator then runs that one, within what is masked here. */
static uint32_t smp_mask(void)
{
    static uint32_t count;
    const uint32_t before = harts_mask();
    harts_lock(&smp_masked);
    if (++count % 61 == 0) harts_wake(!harts_id());
    return before;
}

static void smp_unmask(uint32_t before)
{
    harts_unlock(&smp_masked);
    harts_unmask(before);
}
#define NPUPROF_MASK() smp_mask()
#define NPUPROF_UNMASK(before) smp_unmask(before)
#endif /* SMP_MASK */
#include "npuprof_freertos.h"
#include "harts.h"
#include "kernel.h"

enum { SMP_WORKERS = 10, SMP_ROUNDS = 300, SMP_LOG = 12000, SMP_IDS = 1000, SMP_TOP = 4, SMP_NAMES = 40 };
typedef struct smp_noticed { uint32_t time, hart; char name[8]; } smp_noticed;
static smp_noticed smp_log[HARTS][SMP_LOG];
/* Of the log of each hart, its interrupts, ticks of the kernel, idle ticks of each hart, and how many ticks
   came late. */
static struct { uint32_t logged[HARTS], interrupts[HARTS], ticks, idle[HARTS], late, ids; } smp_counts;
/* Of each worker: its name, how many jobs it began and ended, whether it was deleted. */
static struct { char name[8]; uint32_t begun, ended, deleted; } smp_ids[SMP_IDS];
static uint32_t smp_seed, smp_work[HARTS];

static void smp_spin(uint32_t n)
{
    while (n--) *(volatile uint32_t *)&smp_work[0] = n;
}

static uint32_t smp_chance(uint32_t below)
{
    smp_seed = smp_seed * 1664525u + 1013904223u;
    return (smp_seed >> 8) % below;
}

static bool smp_same(const char *a, const char *b)
{
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

static void smp_copy(char *to, const char *from)
{
    while ((*to++ = *from++)) { }
}

/* Each hart writes its own. */
static void smp_noted(uint32_t hart)
{
    const uint32_t n = smp_counts.logged[hart];
    const char *const name = kernel_name(hart);
    if (n && smp_same(smp_log[hart][n - 1].name, name)) return;
    if (n == SMP_LOG) port_exit(3);
    smp_log[hart][n].time = harts_now();
    smp_log[hart][n].hart = hart;
    smp_copy(smp_log[hart][n].name, name);
    smp_counts.logged[hart] = n + 1;
}

static void smp_interrupt(uint32_t hart)
{
    traceISR_ENTER();
    { PROF_SCOPE("receive"); smp_spin(20); }
    smp_counts.interrupts[hart]++;
    traceISR_EXIT();
}

static void smp_ask(uint32_t hart)
{
    harts_asked[hart] = 1;
    harts_wake(hart);
}

static void smp_worker(void *parameter)
{
    const uint32_t id = (uint32_t)(uintptr_t)parameter;
    for (uint32_t n = id;; n++) {
        smp_ids[id].begun++;
        {
            PROF_SCOPE_ARGS("smp", "job", PROF_ARGS(PROF_UINT("id", id)));
            smp_spin(100 + 37 * (n % 40));
            if (n % 3) smp_ask(n & 1);
            PROF_BEGIN("smp", "part");
            smp_spin(300);
            PROF_END();
        }
        smp_ids[id].ended++;
        if (n % 4) vTaskDelay(1 + n % 3);
    }
}

/* A name like w07. Why not one that lives: what belongs to which task would not be known. */
static void smp_name(char *name, const uint32_t *living)
{
    bool is_taken = true;
    smp_copy(name, "w00");
    while (is_taken) {
        const uint32_t n = smp_chance(SMP_NAMES);
        name[1] = (char)('0' + n / 10);
        name[2] = (char)('0' + n % 10);
        is_taken = false;
        for (int i = 0; i < SMP_WORKERS; i++)
            if (living[i]) is_taken = is_taken || smp_same(name, smp_ids[living[i]].name);
    }
}

static void smp_finish(void)
{
    const npuprof_sink sink = { port_write, NULL };
    (void)harts_mask();
    harts_stop_other();
    smp_counts.ticks = xTaskGetTickCount();
    smp_counts.late = kernel_all_late;
    for (int i = 0; i < HARTS; i++) smp_counts.idle[i] = kernel_idle_ticks[i];
#ifndef NPUPROF_OFF
    PROF_COUNTER("tick", smp_counts.ticks);
    for (uint32_t i = 0; i < HARTS; i++)
        npuprof_count(NPUPROF_FREERTOS_STACKS + i, npuprof_freertos_idle_ticks[i]);
#endif
    npuprof_stop();
    port_open("smp.img");
    const npuprof_result result = npuprof_write_image(sink);
    port_close();
    port_open("smp.log");
    port_write(NULL, &smp_counts, sizeof smp_counts);
    port_write(NULL, smp_ids, (smp_counts.ids + 1) * sizeof *smp_ids);
    for (int i = 0; i < HARTS; i++) port_write(NULL, smp_log[i], smp_counts.logged[i] * sizeof **smp_log);
    port_close();
    port_exit(result != NPUPROF_OK);
}

static void smp_boss(void *unused)
{
    static uint32_t living[SMP_WORKERS];               /* the id of each, from 1 */
    static TaskHandle_t handles[SMP_WORKERS];
    (void)unused;
    for (int round = 0; round < SMP_ROUNDS; round++) {
        const uint32_t i = smp_chance(SMP_WORKERS);
        if (living[i]) {
            smp_ids[living[i]].deleted = 1;
            vTaskDelete(handles[i]);
            living[i] = 0;
        } else {
            const uint32_t id = ++smp_counts.ids;
            if (id == SMP_IDS - 1) port_exit(5);
            smp_name(smp_ids[id].name, living);
            living[i] = id;
            if (xTaskCreate(smp_worker, smp_ids[id].name, 512, (void *)(uintptr_t)id, 1 + smp_chance(2),
                            &handles[i]) != pdPASS) port_exit(6);
        }
        if (smp_chance(8) == 0) npuprof_freertos_counters();
        if (smp_chance(4)) vTaskDelay(1 + smp_chance(2));
    }
    smp_finish();
}

/* A deleted task that still runs on the other core keeps its number; it is given on when that is over. */
static void smp_check_numbers(void)
{
#ifndef NPUPROF_OFF
    static int some[3];
    const uint32_t first = npuprof_freertos_created(&some[0], "gone");
    npuprof_freertos_running[1] = first;
    npuprof_freertos_deleted(first);
    const uint32_t other = npuprof_freertos_created(&some[1], "gone");
    npuprof_freertos_running[1] = 0;
    const uint32_t again = npuprof_freertos_created(&some[2], "gone");
    if (other == first || again != first) port_exit(7);
    npuprof_freertos_deleted(other);
    npuprof_freertos_deleted(again);
#endif
}

void smp_second(void) { kernel_begin(); }

int main(void)
{
    char name[] = "seed-0";
    static TaskHandle_t boss;
    while (!port_exists(name) && name[5] < '9') name[5]++;
    smp_seed = (uint32_t)(name[5] - '0') * 2654435761u + 12345u;
    npuprof_freertos_start(1);
    npuprof_name(NPUPROF_FREERTOS_IRQ(3), "irq");
    npuprof_name(NPUPROF_FREERTOS_IRQ(7), "tick");
    smp_check_numbers();
    if (xTaskCreate(smp_boss, "boss", 512, NULL, SMP_TOP, &boss) != pdPASS) port_exit(6);
    vTaskStartScheduler();
    return 9;
}

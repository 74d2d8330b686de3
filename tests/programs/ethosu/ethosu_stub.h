/* ethosu_stub.h - an Ethos-U in memory and its driver, on a clock that only this program moves. What the
   driver does around an inference is what Arm's does: power-up with a soft reset, which switches the PMU off
   and sets it to 0; begin callback; run; interrupt; end callback; power down. While the NPU is off its
   registers read as garbage.
   Include it before npuprof.h: it defines NPUPROF_NOW.
   SPDX-License-Identifier: MIT */
#include "ethosu_driver.h"
#include "pmu_ethosu.h"

#ifdef ETHOSU85
enum { STUB_PMU = 0x1000 / 4, STUB_WORDS = 0x2000 / 4, STUB_EVENTS = 8 };
#else
enum { STUB_PMU = 0, STUB_WORDS = 0x1000 / 4, STUB_EVENTS = 4 };
#endif
enum { PMCR = STUB_PMU + 0x180 / 4, PMCNTENSET = STUB_PMU + 0x184 / 4, PMCCNTR = STUB_PMU + 0x1A0 / 4,
       PMEVCNTR = STUB_PMU + 0x300 / 4 };

/* host: ns. The NPU counts 2 cycles in 5 of them (400 MHz). */
static struct { uint64_t host, cycles, told, events[STUB_EVENTS]; bool on; } stub = { .host = 1000000 };
static volatile uint32_t stub_registers[STUB_WORDS];
static enum ethosu_pmu_event_type stub_types[STUB_EVENTS];

/* How many of the cycles of a run count as this event. */
static uint64_t stub_share(enum ethosu_pmu_event_type type, uint64_t cycles)
{
    return type == ETHOSU_PMU_NPU_ACTIVE ? cycles : type ? cycles / ((uint64_t)type + 1) : 0;
}

static void stub_publish(void)
{
    if (!stub.on) return;
    stub_registers[PMCCNTR] = (uint32_t)stub.cycles;
    stub_registers[PMCCNTR + 1] = (uint32_t)(stub.cycles >> 32) & 0xFFFF;
    for (int i = 0; i < STUB_EVENTS; i++) stub_registers[PMEVCNTR + i] = (uint32_t)stub.events[i];
}

/* Time passes; the PMU counts, if it is on and enabled. */
static void stub_pass(uint64_t ns)
{
    static uint64_t rest;                /* fifths of a cycle */
    const uint64_t fifths = ns * 2 + rest, cycles = fifths / 5;
    stub.host += ns;
    rest = fifths % 5;
    if (stub.on && stub_registers[PMCR] & 1 && stub_registers[PMCNTENSET] >> 31) stub.cycles += cycles;
    stub_publish();
}

static uint32_t stub_now(void)
{
    stub_pass(20);
    return (uint32_t)stub.host;
}
#define NPUPROF_NOW() stub_now()
#define NPUPROF_NOW_HZ 1000000000u

static void stub_clear(void)
{
    stub.cycles = 0;
    for (int i = 0; i < STUB_EVENTS; i++) stub.events[i] = 0;
}

static void stub_power(bool on)
{
    stub.on = on;
    for (int i = 0; i < STUB_WORDS; i++) stub_registers[i] = on ? 0 : 0xDEADBEEF;
    stub_clear();
}

int ethosu_init(struct ethosu_driver *drv, void *base_address, const void *fast_memory,
                size_t fast_memory_size, uint32_t secure_enable, uint32_t privilege_enable)
{
    (void)fast_memory, (void)fast_memory_size, (void)secure_enable, (void)privilege_enable;
    drv->dev.reg = (volatile struct NPU_REG *)base_address;
    drv->power_request_counter = 0;
    stub_power(false);
    return 0;
}

int ethosu_soft_reset(struct ethosu_driver *drv)
{
    (void)drv;
    stub_power(true);
    return 0;
}

int ethosu_request_power(struct ethosu_driver *drv)
{
    return drv->power_request_counter++ ? 0 : ethosu_soft_reset(drv);
}

void ethosu_release_power(struct ethosu_driver *drv)
{
    if (--drv->power_request_counter == 0) stub_power(false);
}

void ETHOSU_PMU_Enable(struct ethosu_driver *drv)
{
    (void)ethosu_request_power(drv);
    stub_registers[PMCR] = 1;
}

void ETHOSU_PMU_Disable(struct ethosu_driver *drv)
{
    stub_registers[PMCR] = 0;
    ethosu_release_power(drv);
}

void ETHOSU_PMU_Set_EVTYPER(struct ethosu_driver *drv, uint32_t num, enum ethosu_pmu_event_type type)
{
    (void)drv;
    stub_types[num] = type;
}

void ETHOSU_PMU_CYCCNT_Reset(struct ethosu_driver *drv)
{
    (void)drv;
    stub.cycles = 0;
    stub_publish();
}

void ETHOSU_PMU_EVCNTR_ALL_Reset(struct ethosu_driver *drv)
{
    (void)drv;
    for (int i = 0; i < STUB_EVENTS; i++) stub.events[i] = 0;
    stub_publish();
}

void ETHOSU_PMU_CNTR_Enable(struct ethosu_driver *drv, uint32_t mask)
{
    (void)drv;
    stub_registers[PMCNTENSET] = stub_registers[PMCNTENSET] | mask;
}

uint32_t ETHOSU_PMU_Get_EVCNTR(struct ethosu_driver *drv, uint32_t num)
{
    (void)drv;
    return stub_registers[PMEVCNTR + num];
}

/* The NPU works for so many ns, and its events count; then it raises its interrupt. */
static void stub_run(uint64_t ns)
{
    const uint64_t before = stub.cycles;
    stub_pass(ns);
    for (int i = 0; i < STUB_EVENTS; i++)
        if (stub_registers[PMCNTENSET] >> i & 1)
            stub.events[i] += stub_share(stub_types[i], stub.cycles - before);
    stub_publish();
}

static void stub_interrupt(struct ethosu_driver *drv);

/* custom_data_size is how long the NPU runs, custom_data how long the task takes to wake up, in ns. */
int ethosu_invoke_v3(struct ethosu_driver *drv, const void *custom_data, int custom_data_size,
                     uint64_t *base_addr, const size_t *base_addr_size, int num_base_addr, void *user_arg)
{
    (void)base_addr, (void)base_addr_size, (void)num_base_addr;
    if (ethosu_request_power(drv)) return -1;
    ethosu_inference_begin(drv, user_arg);
    stub_run((uint64_t)custom_data_size);
    stub_interrupt(drv);
    stub_pass(*(const uint64_t *)custom_data);
    ethosu_inference_end(drv, user_arg);
    ethosu_release_power(drv);
    return 0;
}

void ethosu_irq_handler(struct ethosu_driver *drv) { (void)drv; }

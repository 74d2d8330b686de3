/* npuprof_ethosu.h - each inference of an Arm Ethos-U55, U65 or U85 as spans. Copy it, and include it in one
   C file, after npuprof_npu.h. It defines the two callbacks that the driver (ethosu_driver.h) leaves to the
   user. README.md beside it says how to use it.
   SPDX-License-Identifier: MIT */
#include "ethosu_driver.h"
#include "pmu_ethosu.h"

#ifndef NPUPROF_ETHOSU_NAME              /* a string, or NULL; user_arg may be any object of the program's */
#define NPUPROF_ETHOSU_NAME(user_arg) NULL
#endif
#ifdef ETHOSU85                          /* where the PMU is, and events that U55 and U65 name differently */
enum { NPUPROF_ETHOSU_PMU = 0x1000, NPUPROF_ETHOSU_READ = ETHOSU_PMU_SRAM_RD_DATA_BEAT_RECEIVED,
       NPUPROF_ETHOSU_WRITE = ETHOSU_PMU_SRAM_WR_DATA_BEAT_WRITTEN };
#else
enum { NPUPROF_ETHOSU_PMU = 0, NPUPROF_ETHOSU_READ = ETHOSU_PMU_AXI0_RD_DATA_BEAT_RECEIVED,
       NPUPROF_ETHOSU_WRITE = ETHOSU_PMU_AXI0_WR_DATA_BEAT_WRITTEN };
#endif
static npuprof_npu npuprof_ethosu;
static volatile uint32_t npuprof_ethosu_run, npuprof_ethosu_wake;   /* what is open: the run, the wake-up */

static bool npuprof_ethosu_is_on(void *drv)
{
    return ((struct ethosu_driver *)drv)->power_request_counter != 0;
}

/* Call it after ethosu_init() and npuprof_start(). base: the address that ethosu_init() was given; hz: the
   NPU's clock, 0 = unknown. */
static inline npuprof_result npuprof_ethosu_open(struct ethosu_driver *drv, const volatile void *base,
                                                 uint64_t hz)
{
    enum { PMU = NPUPROF_ETHOSU_PMU };
    static const npuprof_npu_requirement on[] = {
        { PMU + 0x180, 32, 1, 1, "PMCR.CNT_EN" },
        { PMU + 0x184, 32, 1u << 31, 1u << 31, "PMCNTENSET.CYCLE_CNT" } };
    static npuprof_npu_desc desc;
    desc.name = "ethosu", desc.bar = base, desc.bar_bytes = PMU + 0x1000;
    desc.counter.lo_offset = PMU + 0x1A0, desc.counter.hi_offset = PMU + 0x1A4;
    desc.counter.bits = 48, desc.counter.hz = hz;
    desc.requirements = on, desc.requirement_count = 2;
    desc.is_on = npuprof_ethosu_is_on, desc.user = drv;
    return npuprof_npu_open(&npuprof_ethosu, &desc);
}

/* The driver calls it before it starts the NPU, with power on. */
void ethosu_inference_begin(struct ethosu_driver *drv, void *user_arg)
{
    const char *name = NPUPROF_ETHOSU_NAME(user_arg);
    PROF_SCOPE("submit");
    (void)user_arg;
    ETHOSU_PMU_Enable(drv);              /* after each power-up the PMU is off and its counters are 0 */
    ETHOSU_PMU_Set_EVTYPER(drv, 0, ETHOSU_PMU_NPU_ACTIVE);
    ETHOSU_PMU_Set_EVTYPER(drv, 1, ETHOSU_PMU_MAC_ACTIVE);
    ETHOSU_PMU_Set_EVTYPER(drv, 2, (enum ethosu_pmu_event_type)NPUPROF_ETHOSU_READ);
    ETHOSU_PMU_Set_EVTYPER(drv, 3, (enum ethosu_pmu_event_type)NPUPROF_ETHOSU_WRITE);
    ETHOSU_PMU_CYCCNT_Reset(drv);
    ETHOSU_PMU_EVCNTR_ALL_Reset(drv);
    ETHOSU_PMU_CNTR_Enable(drv, ETHOSU_PMU_CCNT_Msk | 15);
    npuprof_ethosu_run = npuprof_npu_begin(&npuprof_ethosu, 0,
        name ? name : "inference", "NPU", PROF_NO_ARGS);
}

/* Ends the NPU's run. busy_ticks: npuprof.py takes NPU Run from it. */
static inline void npuprof_ethosu_end_run(struct ethosu_driver *drv)
{
    const uint32_t run = npuprof_ethosu_run;
    npuprof_ethosu_run = 0;
    if (run) npuprof_npu_end_args(&npuprof_ethosu, run,
                                  PROF_ARGS(PROF_UINT("busy_ticks", ETHOSU_PMU_Get_EVCNTR(drv, 0)),
                                            PROF_UINT("mac_active", ETHOSU_PMU_Get_EVCNTR(drv, 1)),
                                            PROF_UINT("read_beats", ETHOSU_PMU_Get_EVCNTR(drv, 2)),
                                            PROF_UINT("write_beats", ETHOSU_PMU_Get_EVCNTR(drv, 3))));
}

/* Optional: call it in the interrupt handler, before ethosu_irq_handler(). The run then ends there, and a
   span leads from there to the task that wakes up. */
static inline void npuprof_ethosu_irq(struct ethosu_driver *drv)
{
    const uint32_t run = npuprof_ethosu_run;
    npuprof_ethosu_end_run(drv);
    if (run) npuprof_async_begin("NPU", "interrupt to wake-up", npuprof_ethosu_wake = run);
}

/* The driver calls it in the task that waited, with power on; after a timeout, too. */
void ethosu_inference_end(struct ethosu_driver *drv, void *user_arg)
{
    (void)user_arg;
    if (npuprof_ethosu_wake) npuprof_async_end(npuprof_ethosu_wake);
    npuprof_ethosu_wake = 0;
    npuprof_ethosu_end_run(drv);
    ETHOSU_PMU_Disable(drv);
}

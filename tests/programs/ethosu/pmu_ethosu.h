/* pmu_ethosu.h - a stub with the names of the PMU interface of Arm's Ethos-U core driver, as much of it as
   examples/ethosu uses. Written for npuprof's tests.
   SPDX-License-Identifier: MIT */
#ifndef PMU_ETHOSU_H
#define PMU_ETHOSU_H
#include "ethosu_driver.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ETHOSU_PMU_CCNT_Msk (1UL << 31)

enum ethosu_pmu_event_type {
    ETHOSU_PMU_NO_EVENT = 0,
    ETHOSU_PMU_NPU_ACTIVE,
    ETHOSU_PMU_MAC_ACTIVE,
#ifdef ETHOSU85
    ETHOSU_PMU_SRAM_RD_DATA_BEAT_RECEIVED,
    ETHOSU_PMU_SRAM_WR_DATA_BEAT_WRITTEN,
#else
    ETHOSU_PMU_AXI0_RD_DATA_BEAT_RECEIVED,
    ETHOSU_PMU_AXI0_WR_DATA_BEAT_WRITTEN,
#endif
    ETHOSU_PMU_SENTINEL
};

void ETHOSU_PMU_Enable(struct ethosu_driver *drv);
void ETHOSU_PMU_Disable(struct ethosu_driver *drv);
void ETHOSU_PMU_Set_EVTYPER(struct ethosu_driver *drv, uint32_t num, enum ethosu_pmu_event_type type);
void ETHOSU_PMU_CYCCNT_Reset(struct ethosu_driver *drv);
void ETHOSU_PMU_EVCNTR_ALL_Reset(struct ethosu_driver *drv);
void ETHOSU_PMU_CNTR_Enable(struct ethosu_driver *drv, uint32_t mask);
uint32_t ETHOSU_PMU_Get_EVCNTR(struct ethosu_driver *drv, uint32_t num);

#ifdef __cplusplus
}
#endif
#endif /* PMU_ETHOSU_H */

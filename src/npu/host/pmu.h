#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../record/event.h"
#include "../types.h"
#include "../mmio.h"
#include "../describe.h"

/* Event counters of a device (desc.pmu): loading them, their sums since open, their tracks. Owns pmu_
   (npuprof_npu in types.h): set by open, then written and read under the device's lock. May not know kernels
   and rings. */

/* Fills in the counters' defaults, checks them and names their tracks. *needed grows to the bytes of BAR they
   reach. */
static npuprof_result npuprof_npu_check_pmu_(npuprof_npu *npu, size_t *needed)
{
    const npuprof_npu_desc *d = &npu->desc_;
    if (d->pmu_count > NPUPROF_NPU_PMU_)
        return NPUPROF_REFUSE_("npuprof_npu_open: desc.pmu_count is above 8");
    if (d->pmu_count && !d->pmu) return NPUPROF_REFUSE_("npuprof_npu_open: desc.pmu is NULL");
    if (d->pmu_count && d->read_ticks) return NPUPROF_ERR_NPU_RANGE;
    for (unsigned i = 0; i < d->pmu_count; i++) {
        npuprof_npu_pmu_state_ *p = &npu->pmu_[i];
        p->is = d->pmu[i];
        if (!p->is.name) return NPUPROF_REFUSE_("npuprof_npu_open: name of an event counter is NULL");
        const npuprof_result result = npuprof_npu_check_counter_(&p->is.counter, needed);
        if (result != NPUPROF_OK) return result;
        npuprof_npu_copy_text_(p->track, sizeof p->track, npu->device.name);
        const size_t length = strlen(p->track);
        if (length + 1 < sizeof p->track) {
            p->track[length] = ' ';
            npuprof_npu_copy_text_(p->track + length + 1, sizeof p->track - length - 1, p->is.name);
        }
        p->site.kind = NPUPROF_KIND_COUNTER_UINT;
        p->site.name = p->track;
    }
    return NPUPROF_OK;
}

/* Loads all. Bit n of the result: value[n] is good. Under the lock. */
static uint32_t npuprof_npu_load_pmu_(npuprof_npu *npu, uint64_t *value)
{
    npuprof_npu_raw_ raw;
    uint32_t good = 0;
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++) {
        if (npuprof_npu_load_counter_(npu, &npu->pmu_[i].is.counter, false, &raw) != NPUPROF_OK) continue;
        value[i] = raw.value;
        good |= 1u << i;
    }
    return good;
}

/* Adds what was loaded in this epoch to the sums, and puts those in its place. Under the lock. */
static void npuprof_npu_add_pmu_(npuprof_npu *npu, uint32_t good, uint64_t *value)
{
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++) {
        npuprof_npu_pmu_state_ *p = &npu->pmu_[i];
        if (!(good >> i & 1)) continue;
        const uint64_t step = (value[i] - p->raw) & npuprof_npu_mask_(p->is.counter.bits);
        if (p->epoch == npu->epoch_ + 1) p->total += step;
        p->epoch = npu->epoch_ + 1;
        p->raw = value[i];
        value[i] = p->total;
    }
}

/* Records the sums on their tracks. */
static void npuprof_npu_draw_pmu_(npuprof_npu *npu, uint32_t good, const uint64_t *total)
{
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++)
        if (good >> i & 1) npuprof_event_now_(&npu->pmu_[i].site, total[i]);
}

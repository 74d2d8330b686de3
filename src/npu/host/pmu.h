#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../record/event.h"
#include "../types.h"
#include "../mmio.h"
#include "../clock.h"
#include "../describe.h"

/* Event counters of a device (desc.pmu): loading them, their sums since open, their tracks. Owns pmu_
   (npuprof_npu in types.h): set by open, then written and read under the device's lock. May not know kernels
   and rings. */

/* Fills in the defaults of one and checks it. *needed grows to the bytes of BAR that it reaches. */
static npuprof_result npuprof_npu_check_event_(npuprof_npu_pmu *p, size_t *needed)
{
    size_t none = 0;
    if (!p->name) return NPUPROF_REFUSE_("npuprof_npu_open: name of an event counter is NULL");
    if (p->is_busy && p->is_idle)
        return NPUPROF_REFUSE_("npuprof_npu_open: an event counter is both is_busy and is_idle");
    if (!p->scale) p->scale = 1;
    if (p->scale > (uint64_t)1 << 32)
        return NPUPROF_REFUSE_("npuprof_npu_open: scale of an event counter is above 2^32");
    if (p->read) {                       /* the function gives all bits at once */
        p->counter.order = NPUPROF_NPU_SINGLE;
        p->counter.access = 64;
        p->counter.lo_offset = 0;
        p->counter.lo_lsb = p->counter.lo_bits = 0;
    }
    return npuprof_npu_check_counter_(&p->counter, p->read ? &none : needed);
}

/* Names the track of one: "npu0 macs", "npu0 read (bytes)". */
static void npuprof_npu_name_track_(const npuprof_npu *npu, npuprof_npu_pmu_state_ *p)
{
    const char *const parts[] = { npu->device.name, " ", p->is.name, p->is.unit ? " (" : "",
                                  p->is.unit ? p->is.unit : "", p->is.unit ? ")" : "" };
    size_t n = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        npuprof_npu_copy_text_(p->track + n, sizeof p->track - n, parts[i]);
        n += strlen(p->track + n);
    }
    p->site.kind = NPUPROF_KIND_COUNTER_UINT;
    p->site.name = p->track;
}

/* Fills in the counters' defaults, checks them and names their tracks. *needed grows to the bytes of BAR they
   reach. */
static npuprof_result npuprof_npu_check_pmu_(npuprof_npu *npu, size_t *needed)
{
    const npuprof_npu_desc *d = &npu->desc_;
    unsigned busy = 0;
    if (d->pmu_count > NPUPROF_NPU_PMU_)
        return NPUPROF_REFUSE_("npuprof_npu_open: desc.pmu_count is above 8");
    if (d->pmu_count && !d->pmu) return NPUPROF_REFUSE_("npuprof_npu_open: desc.pmu is NULL");
    for (unsigned i = 0; i < d->pmu_count; i++) {
        npuprof_npu_pmu_state_ *p = &npu->pmu_[i];
        p->is = d->pmu[i];
        const npuprof_result result = npuprof_npu_check_event_(&p->is, needed);
        if (result != NPUPROF_OK) return result;
        busy += p->is.is_busy || p->is.is_idle;
        npuprof_npu_name_track_(npu, p);
    }
    if (busy > 1)
        return NPUPROF_REFUSE_("npuprof_npu_open: more than one event counter is is_busy or is_idle");
    return NPUPROF_OK;
}

/* Loads all. Bit n of the result: value[n] is good. Under the lock. */
static uint32_t npuprof_npu_load_pmu_(npuprof_npu *npu, uint64_t *value)
{
    npuprof_npu_raw_ raw;
    uint32_t good = 0;
    if (!npu->desc_.pmu_count || !npuprof_npu_is_on_(npu)) return 0;
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++) {
        const npuprof_npu_pmu *p = &npu->pmu_[i].is;
        if (p->read) {
            value[i] = 0;
            if (!p->read(npu->desc_.user, i, &value[i])) continue;
            if (p->counter.counts_down) value[i] = ~value[i];
            value[i] &= npuprof_npu_mask_(p->counter.bits);
        } else {
            if (npuprof_npu_load_counter_(npu, &p->counter, false, &raw) != NPUPROF_OK) continue;
            value[i] = raw.value;
        }
        good |= 1u << i;
    }
    return good;
}

/* What is known of the time since the load before. */
enum {
    NPUPROF_NPU_JOBS_RAN_ = 1,           /* a job has ended */
    NPUPROF_NPU_SAME_RUN_ = 2            /* nothing was reset meanwhile, although an epoch may have begun */
};

/* Adds what was loaded to the sums, and puts those in its place. Without SAME_RUN_ a step must lie in one
   epoch, and a device that may stand makes none: it was maybe off. Under the lock. */
static void npuprof_npu_add_pmu_(npuprof_npu *npu, uint32_t good, uint64_t *value, unsigned since)
{
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++) {
        npuprof_npu_pmu_state_ *p = &npu->pmu_[i];
        if (!(good >> i & 1)) continue;
        const bool same = since & NPUPROF_NPU_SAME_RUN_ ||
                          (p->epoch == npu->epoch_ + 1 && !npuprof_npu_may_stand_(npu));
        uint64_t step = same ? (value[i] - p->raw) & npuprof_npu_mask_(p->is.counter.bits) : 0;
        if (p->is.restarts) step = since & NPUPROF_NPU_JOBS_RAN_ ? value[i] : 0;
        p->total += step * p->is.scale;
        p->epoch = npu->epoch_ + 1;
        p->raw = value[i];
        value[i] = p->total;
    }
}

/* The argument of a sampled span that lasted so many ticks, in which the sum of event counter i went from one
   value to another. */
static npuprof_arg npuprof_npu_pmu_arg_(const npuprof_npu *npu, unsigned i, uint64_t from, uint64_t to,
                                        uint64_t ticks)
{
    const npuprof_npu_pmu *p = &npu->pmu_[i].is;
    if (p->is_idle) return npuprof_uint_("busy_ticks", npuprof_saturating_sub_(ticks, to - from));
    return npuprof_uint_(p->is_busy ? "busy_ticks" : p->name, to - from);
}

/* Records the sums on their tracks. */
static void npuprof_npu_draw_pmu_(npuprof_npu *npu, uint32_t good, const uint64_t *total)
{
    for (unsigned i = 0; i < npu->desc_.pmu_count; i++)
        if (good >> i & 1) npuprof_event_now_(&npu->pmu_[i].site, total[i]);
}

/* Loads them because jobs have ended, and records the sums. */
static void npuprof_npu_sample_pmu_(npuprof_npu *npu)
{
    uint64_t pmu[NPUPROF_NPU_PMU_];
    if (!npu->desc_.pmu_count || !NPUPROF_OPEN_(1) || !npuprof_npu_lock_(npu)) return;
    const uint32_t good = npuprof_npu_load_pmu_(npu, pmu);
    npuprof_npu_add_pmu_(npu, good, pmu, NPUPROF_NPU_JOBS_RAN_);
    npuprof_npu_unlock_(npu);
    npuprof_npu_draw_pmu_(npu, good, pmu);
}

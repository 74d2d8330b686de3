#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "../format/compact.h"
#include "../numbers/wide.h"
#include "../record/enter.h"
#include "types.h"
#include "api.h"
#include "mmio.h"
#include "map.h"
#include "clock.h"
#include "anchors.h"
#include "ring.h"

/* Whether [offset, offset + bytes) is aligned to `align`; *end grows to what it reaches. */
static bool npuprof_npu_cover_range_(size_t offset, size_t bytes, size_t align, size_t *end)
{
    if (offset % align || bytes > SIZE_MAX / 2 || offset > SIZE_MAX / 2) return false;
    if (offset + bytes > *end) *end = offset + bytes;
    return true;
}

/* Fills in a counter's defaults and checks it. *needed grows to the bytes of BAR it reaches. */
static npuprof_result npuprof_npu_check_counter_(npuprof_npu_counter *c, size_t *needed)
{
    if (!c->bits) c->bits = 64;
    if (!c->access) c->access = 32;
    if (c->bits > 64 || (c->access != 32 && c->access != 64)) return NPUPROF_ERR_NPU_COUNTER;
    if (c->order < NPUPROF_NPU_HI_LO_HI || c->order > NPUPROF_NPU_SINGLE) return NPUPROF_ERR_NPU_COUNTER;
    if (c->order == NPUPROF_NPU_SINGLE && c->bits > c->access) return NPUPROF_ERR_NPU_COUNTER;
    if (npuprof_npu_is_split_(c) && c->hi_offset == c->lo_offset) return NPUPROF_ERR_NPU_COUNTER;
    const size_t bytes = c->access / 8;
    if (!npuprof_npu_cover_range_(c->lo_offset, bytes, bytes, needed)) return NPUPROF_ERR_NPU_RANGE;
    return !npuprof_npu_is_split_(c) || npuprof_npu_cover_range_(c->hi_offset, bytes, bytes, needed) ? NPUPROF_OK : NPUPROF_ERR_NPU_RANGE;
}

#ifndef NPUPROF_FREESTANDING
/* The same for the event counters. */
static npuprof_result npuprof_npu_check_pmu_(npuprof_npu *npu, size_t *needed)
{
    const npuprof_npu_desc *d = &npu->desc_;
    if (d->pmu_count > NPUPROF_NPU_PMU_ || (d->pmu_count && !d->pmu)) return NPUPROF_ERR_ARGUMENT;
    if (d->pmu_count && d->read_ticks) return NPUPROF_ERR_NPU_RANGE;
    for (unsigned i = 0; i < d->pmu_count; i++) {
        npuprof_npu_pmu_state_ *p = &npu->pmu_[i];
        p->is = d->pmu[i];
        if (!p->is.name) return NPUPROF_ERR_ARGUMENT;
        const npuprof_result result = npuprof_npu_check_counter_(&p->is.counter, needed);
        if (result != NPUPROF_OK) return result;
        npuprof_npu_copy_text_(p->track, sizeof p->track, npu->device.name);
        const size_t length = strlen(p->track);
        if (length + 1 < sizeof p->track) p->track[length] = ' ';
        if (length + 1 < sizeof p->track) npuprof_npu_copy_text_(p->track + length + 1, sizeof p->track - length - 1, p->is.name);
        p->site.kind = NPUPROF_KIND_COUNTER_UINT;
        p->site.name = p->track;
    }
    return NPUPROF_OK;
}

/* Fills in the defaults and checks the ring. *needed grows to the bytes of BAR it reaches. */
static npuprof_result npuprof_npu_check_ring_(npuprof_npu *npu, size_t *needed)
{
    npuprof_npu_ring *r = &npu->desc_.ring;
    const npuprof_npu_field fields[] = { r->sequence, r->job, r->start, r->end, r->pe, r->op, r->status, r->execution, r->instruction };
    size_t align = 1;
    if (!r->count) return NPUPROF_OK;
    if (npu->desc_.read_ticks) return NPUPROF_ERR_NPU_RANGE;     /* no BAR, no producer index */
    if (!r->producer_bits) r->producer_bits = 32;
    if (r->producer_bits > 32 || !r->entry_bytes || (!r->start.width_bytes && !r->end.width_bytes)) return NPUPROF_ERR_NPU_RANGE;
    if (!r->producer_is_slot && (r->count - 1 > npuprof_npu_mask_(r->producer_bits) || (npuprof_npu_mask_(r->producer_bits) + 1) % r->count))
        return NPUPROF_ERR_NPU_RANGE;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const npuprof_npu_field f = fields[i];
        if (!f.width_bytes) continue;
        if (f.width_bytes != 1 && f.width_bytes != 2 && f.width_bytes != 4 && f.width_bytes != 8) return NPUPROF_ERR_NPU_RANGE;
        if (f.offset % f.width_bytes || (unsigned)f.offset + f.width_bytes > r->entry_bytes) return NPUPROF_ERR_NPU_RANGE;
        if (f.lsb + (f.bits ? f.bits : 1u) > 8u * f.width_bytes) return NPUPROF_ERR_NPU_RANGE;
        if (f.width_bytes > align) align = f.width_bytes;
    }
    if (r->count > 1 && r->entry_bytes % align) return NPUPROF_ERR_NPU_RANGE;
    if (r->count > SIZE_MAX / 2 / r->entry_bytes || !npuprof_npu_cover_range_(r->producer_offset, 4, 4, needed)) return NPUPROF_ERR_NPU_RANGE;
    const size_t bytes = (size_t)r->count * r->entry_bytes;
    if (r->memory) return r->memory_bytes < bytes || (uintptr_t)r->memory % align ? NPUPROF_ERR_NPU_RANGE : NPUPROF_OK;
    return npuprof_npu_cover_range_(r->offset, bytes, align, needed) ? NPUPROF_OK : NPUPROF_ERR_NPU_RANGE;
}

#endif

NPUPROF_API_ npuprof_result npuprof_npu_open(npuprof_npu *npu, const npuprof_npu_desc *desc)
{
    npuprof_result result;
    size_t needed = 0;
    if (!npu) return NPUPROF_ERR_ARGUMENT;
#ifndef NPUPROF_FREESTANDING
    memset(npu, 0, sizeof *npu);
    if (!desc) return NPUPROF_ERR_ARGUMENT;
    npu->desc_ = *desc;
#else   /* Why not that: calls, which may not be there. */
    for (size_t i = 0; i < sizeof *npu; i++) NPUPROF_STORE_((uint8_t *)npu + i, 0);
    if (!desc) return NPUPROF_ERR_ARGUMENT;
    npuprof_fw_copy_bytes_((uint8_t *)&npu->desc_, desc, sizeof *desc);
#endif
    npuprof_npu_desc *d = &npu->desc_;
    const npuprof_npu_counter *c = &d->counter;
    npu->device.name = d->name ? d->name : "npu";
    npu->device.wait = d->wait;
    npu->device.user = d->user;
    npu->device.wait_around = d->wait_around;
    if ((d->bar != NULL) + (d->resource != NULL) + (d->vfio ? 1 : 0) + (d->read_ticks != NULL) != 1) return NPUPROF_ERR_NPU_SOURCE;
    if (!d->pe_count) d->pe_count = 1;
    if (!d->brackets) d->brackets = 8;
    if (!d->max_rate_ppm) d->max_rate_ppm = 2;
    const uint32_t rate_ppm = d->max_rate_ppm;   /* an unsigned may have 16 bits */
    if (rate_ppm > 500000) return NPUPROF_ERR_ARGUMENT;
    if (c->hz > NPUPROF_MAX_HZ_) return NPUPROF_ERR_NPU_RATE;
    if (d->read_ticks) {                 /* the function tells all bits at once, and offsets are nothing to it */
        d->counter.order = NPUPROF_NPU_SINGLE;
        d->counter.access = 64;
        d->counter.lo_offset = 0;
    }
    result = npuprof_npu_check_counter_(&d->counter, &needed);
#ifndef NPUPROF_FREESTANDING
    if (result == NPUPROF_OK) result = npuprof_npu_check_ring_(npu, &needed);
    if (result == NPUPROF_OK) result = npuprof_npu_check_pmu_(npu, &needed);
#else
    if (d->ring.count || (d->bar && c->access > 8 * sizeof(void *) && c->access > 32)) return NPUPROF_ERR_UNSUPPORTED;
    if (npuprof_user_hz_() >> 32) return NPUPROF_ERR_UNSUPPORTED;      /* second_ has 32 bits */
#endif
    if (result != NPUPROF_OK) return result;
    if (d->bar) {
        if (d->bar_bytes < needed || (uintptr_t)d->bar % (c->access / 8)) return NPUPROF_ERR_NPU_RANGE;
        npu->bar_ = (const volatile unsigned char *)d->bar;
    } else if (!d->read_ticks) {
        result = npuprof_npu_map_(npu, needed);
        if (result == NPUPROF_OK && (uintptr_t)npu->bar_ % (c->access / 8)) result = NPUPROF_ERR_NPU_RANGE;
        if (result != NPUPROF_OK) {
            npuprof_npu_unmap_(npu);
            return result;
        }
    }

#ifndef NPUPROF_FREESTANDING
    npu->tickets_ = npu->first_ticket_ = NPUPROF_NPU_JOBS_;      /* none of the entries, whose tickets are 0, is one of them */
    const uint64_t ns_per_4g = npuprof_ns_per_4g_ticks_();
    npu->second_ = npuprof_max_(npuprof_mul_div_((uint64_t)1000000000 << 30, 4, npuprof_max_(ns_per_4g, 1), false), 1000);
#else
    static uint8_t devices;
    if (!npuprof_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    npu->second_ = (uint32_t)npuprof_max_((uint32_t)npuprof_user_hz_(), 1000);
#endif
    npu->lag_ = npuprof_mul_div_(npu->second_, c->lag_ns, 1000000000, true);
    npuprof_anchor_ sample;
    result = npuprof_npu_read_locked_(npu, &sample);
#ifdef NPUPROF_FREESTANDING
    if (result == NPUPROF_OK && devices == 255) result = NPUPROF_ERR_TABLE_FULL;
    if (result == NPUPROF_OK) {
        const uint64_t bits = c->bits;
        npu->number_ = ++devices;
        const uint64_t values[3] = { c->hz, d->max_rate_ppm * (uint64_t)1000 | bits << 32, npu->number_ | (uint64_t)(d->pe_count & 0xFFFFFF) << 8 };
        const npuprof_args none = { NULL, 0 };
        npuprof_npu_put_record_(npu->device.name, NPUPROF_CELL_KIND_DEVICE_, values, none);
        if (d->pmu_count) npuprof_fw_put_note_(NPUPROF_CELL_KIND_METADATA_, npu->device.name, "value", "desc.pmu is not sampled on firmware");
        if (npu->lag_) npuprof_npu_note_(npu, NPUPROF_NOTE_LAG, npu->lag_);
    }
#else
    if (result == NPUPROF_OK) {
        npu->number_ = npuprof_device_add_(npu->device.name, d->pe_count, c->hz, d->max_rate_ppm * 1000u);
        npuprof_npu_note_(npu, NPUPROF_NOTE_LAG, npu->lag_);
        if (!npu->number_) result = NPUPROF_ERR_TABLE_FULL;
    }
    if (result == NPUPROF_OK && d->ring.count) {
        uint64_t producer;
        result = npuprof_npu_read_producer_(npu, &producer);
        npu->ring_next_ = producer;
    }
#endif
    if (result == NPUPROF_OK) {
        bool stale;
        result = npuprof_npu_take_brackets_(npu, &stale);
        if (stale && npu->anchor_count_ == 0) result = npuprof_npu_add_anchor_(npu, &npu->last_);
        if (result == NPUPROF_OK) npuprof_npu_take_second_anchor_(npu);
    }
    if (result != NPUPROF_OK) {
        result = npuprof_npu_explain_result_(npu, result);
        npu->number_ = 0;
        npuprof_npu_unmap_(npu);
    }
    return result;
}

NPUPROF_API_ void npuprof_npu_close(npuprof_npu *npu)
{
    if (!npu->number_) return;
#ifndef NPUPROF_FREESTANDING
    if (npu->desc_.ring.count) {
        const npuprof_result result = npuprof_npu_drain_(npu, true);
        uint64_t producer;
        if (result != NPUPROF_ERR_NPU_DEAD && npuprof_npu_read_producer_(npu, &producer) == NPUPROF_OK)
            npuprof_npu_count_lost_(npu, producer - npu->ring_next_);
    }
#endif
    (void)npuprof_npu_sync(npu);
    npu->number_ = 0;
    npuprof_npu_unmap_(npu);
}

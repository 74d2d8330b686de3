#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "types.h"
#include "mmio.h"
#include "requirements.h"

/* What a user's description of a device is checked for, on both sides, and its defaults. Works on
   npuprof_npu.desc_ while the device is being opened: one thread. May not know how a resource is mapped, or
   what is in a ring. */

/* Fills in a counter's defaults and checks it. *needed grows to the bytes of BAR that it reaches. */
static npuprof_result npuprof_npu_check_counter_(npuprof_npu_counter *c, size_t *needed)
{
    if (!c->bits) c->bits = 64;
    if (!c->access) c->access = 32;
    if (NPUPROF_NPU_DIVIDES_ && !c->lo_bits && c->lo_lsb < c->access)
        c->lo_bits = (uint8_t)(c->access - c->lo_lsb);
    const bool split = npuprof_npu_is_split_(c);
    const char *wrong = NULL;
    if (c->bits > 64) wrong = "bits is above 64";
    else if (c->access != 32 && c->access != 64) wrong = "access is not 32 or 64";
    else if (c->order < 0 || c->order >= NPUPROF_NPU_ORDER_COUNT_) wrong = "order is none of NPUPROF_NPU_*";
    else if (c->order == NPUPROF_NPU_SINGLE && c->bits > npuprof_npu_low_bits_(c))
        wrong = "order NPUPROF_NPU_SINGLE reads `access` bits, and bits is more; give access = 64";
    else if (split && c->hi_offset == c->lo_offset)
        wrong = "hi_offset equals lo_offset; give the register of the upper half, or for a counter of one "
                "register bits <= access and order NPUPROF_NPU_SINGLE";
    else if (NPUPROF_NPU_DIVIDES_ && (c->lo_lsb + c->lo_bits > c->access ||
                                      (split && c->hi_lsb + c->bits - c->lo_bits > c->access)))
        wrong = "lo_lsb, lo_bits or hi_lsb names bits outside of its register";
    else if (!NPUPROF_NPU_DIVIDES_ && (c->lo_lsb || c->lo_bits || c->hi_lsb))
        wrong = "lo_lsb, lo_bits and hi_lsb are for hosts; give read_ticks";
    if (wrong) return npuprof_npu_wrong_counter_(wrong);
    const size_t bytes = c->access / 8;
    if (!npuprof_npu_cover_range_(c->lo_offset, bytes, bytes, needed)) return NPUPROF_ERR_NPU_RANGE;
    if (split && !npuprof_npu_cover_range_(c->hi_offset, bytes, bytes, needed)) return NPUPROF_ERR_NPU_RANGE;
    return NPUPROF_OK;
}

/* Fills in the defaults of desc_ and of `device`, and checks all but ring and event counters. *needed grows
   to the bytes of BAR that the counter reaches. */
static npuprof_result npuprof_npu_check_desc_(npuprof_npu *npu, size_t *needed)
{
    npuprof_npu_desc *d = &npu->desc_;
    npu->device.name = d->name ? d->name : "npu";
    npu->device.wait = d->wait;
    npu->device.user = d->user;
    npu->device.wait_around = d->wait_around;
    const int bars = (d->bar != NULL) + (d->resource != NULL) + (d->vfio ? 1 : 0);
    const int clocks = (d->read_ticks != NULL) + (d->anchors_only ? 1 : 0);
    if (bars > 1 || clocks > 1 || bars + clocks == 0) return NPUPROF_ERR_NPU_SOURCE;
    if (!d->pe_count) d->pe_count = 1;
    if (!d->brackets) d->brackets = 8;
    if (!d->max_rate_ppm) d->max_rate_ppm = 2;
    const uint32_t rate_ppm = d->max_rate_ppm;   /* Why: an unsigned may have 16 bits. */
    if (rate_ppm > 500000) return NPUPROF_REFUSE_("npuprof_npu_open: desc.max_rate_ppm is above 500000");
    if (d->counter.hz > NPUPROF_MAX_HZ_) return NPUPROF_ERR_NPU_RATE;
    size_t none = 0;
    if (clocks) {                        /* all bits come at once, and no register holds them */
        d->counter.order = NPUPROF_NPU_SINGLE;
        d->counter.access = 64;
        d->counter.lo_offset = 0;
        d->counter.lo_lsb = d->counter.lo_bits = 0;
    }
    const npuprof_result result = npuprof_npu_check_counter_(&d->counter, clocks ? &none : needed);
    return result == NPUPROF_OK ? npuprof_npu_check_requirements_(d, needed) : result;
}

/* Whether there is a BAR, which holds registers. */
static bool npuprof_npu_has_bar_(const npuprof_npu_desc *d) { return d->bar || d->resource || d->vfio; }

/* What the widest register of counter and requirements needs. */
static size_t npuprof_npu_register_align_(const npuprof_npu_desc *d)
{
    size_t align = d->read_ticks || d->anchors_only ? 1 : d->counter.access / 8;
    for (unsigned i = 0; i < d->requirement_count; i++) {
        const size_t bytes = d->requirements[i].access == 64 ? 8 : 4;
        if (bytes > align) align = bytes;
    }
    return align;
}

/* Takes the caller's mapping for the BAR, of which something needs that alignment. */
static npuprof_result npuprof_npu_use_bar_(npuprof_npu *npu, size_t needed, size_t align)
{
    const npuprof_npu_desc *d = &npu->desc_;
    if (d->bar_bytes < needed || (uintptr_t)d->bar % align) return NPUPROF_ERR_NPU_RANGE;
    npu->bar_ = (const volatile unsigned char *)d->bar;
    return NPUPROF_OK;
}

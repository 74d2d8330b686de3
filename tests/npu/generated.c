/* the generated descriptions of examples/devices against those of the models: two readings of the same sources
   SPDX-License-Identifier: MIT */
#include "npu/models/play.h"
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
#include "npu/models/play_run.h"
#include "npu/models/all.h"
#include "examples/devices/coral_regs.h"
#include "examples/devices/ethosn_regs.h"
#include "examples/devices/ethosu_regs.h"
#include "examples/devices/gaudi_polled_regs.h"
#include "examples/devices/gaudi_regs.h"
#include "examples/devices/hailo_regs.h"
#include "examples/devices/intel_fence_regs.h"
#include "examples/devices/intel_hws_regs.h"
#include "examples/devices/neuron_regs.h"
#include "examples/devices/qaic_regs.h"
#include "examples/devices/tenstorrent_regs.h"
#include "examples/devices/vip_regs.h"
#include "examples/devices/xdna_regs.h"

static npuprof_npu_ring rings[NPUPROF_NPU_RINGS];

/* A field with its defaults, as one number to compare. */
static uint64_t field_is(npuprof_npu_field f)
{
    const unsigned bits = f.bits ? f.bits : 8u * f.width_bytes - f.lsb;
    const unsigned hi_bits = f.hi_bits ? f.hi_bits : 8u * f.hi_width_bytes - f.hi_lsb;
    if (!f.width_bytes) return 0;
    const uint64_t low = (uint64_t)f.offset << 20 | (uint64_t)f.width_bytes << 16 |
                         (uint64_t)f.lsb << 8 | bits;
    if (!f.hi_width_bytes) return low;
    return low | ((uint64_t)f.hi_offset << 20 | (uint64_t)f.hi_width_bytes << 16 |
                  (uint64_t)f.hi_lsb << 8 | hi_bits) << 28;
}

/* The two conditions of a rule as one number, in any order. */
static uint64_t conditions_are(const npuprof_npu_condition *c)
{
    return (field_is(c[0].field) * 31 + c[0].value) * (field_is(c[0].field) != 0) +
           (field_is(c[1].field) * 31 + c[1].value) * (field_is(c[1].field) != 0);
}

static int kind_of(const npuprof_npu_ring *r, uint64_t value)
{
    for (unsigned i = 0; i < r->kind_count; i++) if (r->kinds[i].value == value) return r->kinds[i].is;
    return r->kind_count ? -1 : r->all_are;
}

static void compare_transport(const npuprof_npu_ring *a, const npuprof_npu_ring *b)
{
    const npuprof_npu_index *x = &a->producer, *y = &b->producer;
    CHECK_INT(a->feed, b->feed);
    CHECK_UINT(a->entry_bytes, b->entry_bytes);
    CHECK_INT(a->ready, b->ready);
    CHECK_UINT(field_is(a->valid), field_is(b->valid));
    CHECK_UINT(a->valid_value, b->valid_value);
    CHECK_UINT(field_is(a->phase), field_is(b->phase));
    CHECK_UINT(a->phase_first, b->phase_first);
    CHECK_UINT(a->first, b->first);
    CHECK_INT(x->in_memory, y->in_memory);
    CHECK_UINT(x->offset, y->offset);
    CHECK_UINT(x->width_bytes ? x->width_bytes : 4, y->width_bytes ? y->width_bytes : 4);
    CHECK_UINT(x->lsb, y->lsb);
    CHECK_INT(x->unit, y->unit);
    CHECK_INT(x->has_laps, y->has_laps);
    CHECK_UINT(x->laps_offset, y->laps_offset);
    CHECK_UINT(x->laps_first, y->laps_first);
}

static void compare(const npuprof_npu_ring *a, const npuprof_npu_ring *b)
{
    compare_transport(a, b);
    CHECK_UINT(field_is(a->start), field_is(b->start));
    CHECK_UINT(field_is(a->end), field_is(b->end));
    CHECK_UINT(field_is(a->duration), field_is(b->duration));
    CHECK_UINT(field_is(a->stamp), field_is(b->stamp));
    CHECK_UINT(field_is(a->kind), field_is(b->kind));
    CHECK_UINT(field_is(a->key[0]), field_is(b->key[0]));
    CHECK_UINT(field_is(a->key[1]), field_is(b->key[1]));
    CHECK_UINT(field_is(a->job), field_is(b->job));
    CHECK_UINT(field_is(a->pe), field_is(b->pe));
    CHECK_UINT(field_is(a->status), field_is(b->status));
    CHECK_UINT(field_is(a->clock_high), field_is(b->clock_high));
    CHECK_UINT(conditions_are(a->empty), conditions_are(b->empty));
    CHECK_UINT(conditions_are(a->clock_when), conditions_are(b->clock_when));
    for (uint64_t value = 0; value < 5; value++) CHECK_INT(kind_of(a, value), kind_of(b, value));
    CHECK_INT(a->stamp_clock, b->stamp_clock);
    CHECK_UINT(a->scale_num * (b->scale_den ? b->scale_den : 1),
               b->scale_num * (a->scale_den ? a->scale_den : 1));
    CHECK_INT(a->ascending, b->ascending);
    CHECK_INT(a->big_endian, b->big_endian);
}

static npuprof_npu_desc described(void (*describe)(npuprof_npu_desc *))
{
    static const npuprof_npu_desc zero;
    npuprof_npu_desc d = zero;
    play.region_count = 0;
    describe(&d);
    return d;
}

static void fed(void)
{
    npuprof_npu_desc got = ethosn_npu_desc(), hand = described(ethosn_describe);
    compare(&got.ring, &hand.ring);
    CHECK_UINT(got.counter.bits, hand.counter.bits);
    CHECK(got.anchors_only && hand.anchors_only);
    CHECK_UINT(got.ring.execution_op, hand.ring.execution_op);
    (void)tenstorrent_npu_desc(rings);
    hand = described(tt_describe);
    compare(&rings[3], &hand.rings[3]);
    CHECK_UINT(rings[3].pe_base, hand.rings[3].pe_base);
    (void)gaudi_npu_desc(rings);
    hand = described(gaudi_describe_fed);
    compare(&rings[0], &hand.rings[0]);
}

static void polled(void)
{
    npuprof_npu_desc got = intel_fence_npu_desc(), hand = described(fence_describe);
    compare(&got.ring, &hand.rings[0]);
    CHECK_UINT(got.counter.lo_offset % 4096, 0x1029008 % 4096);
    CHECK_INT(got.counter.order, hand.counter.order);
    got = intel_hws_npu_desc();
    hand = described(hws_describe);
    compare(&got.ring, &hand.ring);
    (void)gaudi_polled_npu_desc(rings);
    hand = described(gaudi_describe_polled);
    compare(&rings[0], &hand.rings[0]);
    got = neuron_npu_desc();
    hand = described(neuron_describe);
    compare(&got.ring, &hand.ring);
    got = qaic_npu_desc(rings);
    hand = described(qaic_describe);
    compare(&rings[3], &hand.rings[3]);
    CHECK_UINT(got.counter.lo_offset, hand.counter.lo_offset);
    CHECK_UINT(got.counter.access, hand.counter.access);
}

static void indices(void)
{
    npuprof_npu_desc got[] = { coral_npu_desc(), hailo_npu_desc(), xdna_npu_desc() };
    void (*const hands[])(npuprof_npu_desc *) = { coral_describe, hailo_describe, aie4_describe };
    for (unsigned i = 0; i < 3; i++) {
        const npuprof_npu_desc hand = described(hands[i]);
        const npuprof_npu_index *x = &got[i].progress.index, *y = &hand.progress.index;
        CHECK(got[i].progress.is_there && got[i].anchors_only);
        CHECK_INT(x->unit, y->unit);
        CHECK_UINT(x->offset % 0x10, y->offset % 0x10);          /* Hailo: in its half of a channel */
        CHECK_UINT(x->width_bytes ? x->width_bytes : 4, y->width_bytes ? y->width_bytes : 4);
        CHECK_UINT(got[i].progress.count, hand.progress.count);
    }
}

static void sampled(void)
{
    npuprof_npu_desc got[] = { ethosu_npu_desc(), vip_npu_desc() };
    void (*const hands[])(npuprof_npu_desc *) = { ethosu_describe, vip_describe };
    for (unsigned i = 0; i < 2; i++) {
        const npuprof_npu_desc hand = described(hands[i]);
        CHECK_UINT(got[i].counter.lo_offset, hand.counter.lo_offset);
        CHECK_UINT(got[i].counter.bits, hand.counter.bits);
        CHECK_UINT(got[i].pmu[0].counter.lo_offset, hand.pmu[0].counter.lo_offset);
        CHECK_INT(got[i].pmu[0].is_idle, hand.pmu[0].is_idle);
        CHECK_UINT(got[i].requirement_count, hand.requirement_count);
        for (unsigned k = 0; k < hand.requirement_count; k++) {
            CHECK_UINT(got[i].requirements[k].offset, hand.requirements[k].offset);
            CHECK_UINT(got[i].requirements[k].mask, hand.requirements[k].mask);
            CHECK_UINT(got[i].requirements[k].value, hand.requirements[k].value);
        }
    }
    CHECK_UINT(got[1].pmu[1].counter.lo_offset, vip_pmu[1].counter.lo_offset);
    CHECK_UINT(got[1].pmu[1].scale, vip_pmu[1].scale);
}

CHECK_MAIN(CASE(fed), CASE(polled), CASE(indices), CASE(sampled))

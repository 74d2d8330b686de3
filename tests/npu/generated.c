/* the generated descriptions of examples/devices against those of the models: two readings of the same sources
   SPDX-License-Identifier: MIT */
#include "npu/models/played.h"
#include "examples/devices/coral_regs.h"
#include "examples/devices/ethosn_regs.h"
#include "examples/devices/ethosu85_regs.h"
#include "examples/devices/ethosu_regs.h"
#include "examples/devices/gaudi_polled_regs.h"
#include "examples/devices/gaudi_regs.h"
#include "examples/devices/hailo_regs.h"
#include "examples/devices/intel_fence_regs.h"
#include "examples/devices/intel_hws_regs.h"
#include "examples/devices/neuron_regs.h"
#include "examples/devices/nvdla_regs.h"
#include "examples/devices/qaic_regs.h"
#include "examples/devices/rknpu_regs.h"
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
    CHECK_UINT(a->valid_value, b->valid_value);
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
    const npuprof_npu_field x[] = { a->start, a->end, a->duration, a->stamp, a->kind, a->key[0], a->key[1], a->job,
        a->pe, a->op, a->status, a->execution, a->instruction, a->value, a->clock_high, a->valid, a->phase };
    const npuprof_npu_field y[] = { b->start, b->end, b->duration, b->stamp, b->kind, b->key[0], b->key[1], b->job,
        b->pe, b->op, b->status, b->execution, b->instruction, b->value, b->clock_high, b->valid, b->phase };
    for (unsigned i = 0; i < sizeof x / sizeof *x; i++)
        if (field_is(x[i]) != field_is(y[i])) check_failed_(__FILE__, __LINE__, "field %u differs", i);
    for (unsigned i = 0; i < 4; i++)
        if (b->args[i].name) CHECK_UINT(field_is(a->args[i].field), field_is(b->args[i].field));
    CHECK_UINT(conditions_are(a->empty), conditions_are(b->empty));
    CHECK_UINT(conditions_are(a->clock_when), conditions_are(b->clock_when));
    for (uint64_t value = 0; value < 5; value++) CHECK_INT(kind_of(a, value), kind_of(b, value));
    CHECK_INT(a->stamp_clock, b->stamp_clock);
    CHECK_UINT(a->scale_num * (b->scale_den ? b->scale_den : 1),
               b->scale_num * (a->scale_den ? a->scale_den : 1));
    CHECK_INT(a->ascending, b->ascending);
    CHECK_INT(a->big_endian, b->big_endian);
}

/* window: what the model's registers begin at, in the description's. */
static void compare_counters(const npuprof_npu_counter *a, const npuprof_npu_counter *b, size_t window)
{
    const bool split = b->order != NPUPROF_NPU_SINGLE && (b->bits ? b->bits : 64) > (b->access ? b->access : 32);
    CHECK_UINT(a->lo_offset + window, b->lo_offset);
    if (split) CHECK_UINT(a->hi_offset + window, b->hi_offset);
    if (split) CHECK_INT(a->order, b->order);
    CHECK_UINT(a->bits ? a->bits : 64, b->bits ? b->bits : 64);
    CHECK_UINT(a->access ? a->access : 32, b->access ? b->access : 32);
    CHECK_INT(a->counts_down, b->counts_down);
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
    got = tenstorrent_npu_desc(rings);
    hand = described(tt_describe);
    compare_counters(&got.counter, &hand.counter, 0x12000);
    compare(&rings[3], &hand.rings[3]);
    CHECK_UINT(rings[3].pe_base, hand.rings[3].pe_base);
    (void)gaudi_npu_desc(rings);
    hand = described(gaudi_describe_fed);
    compare(&rings[GAUDI_RING_CQ], &hand.rings[0]);
    compare(&rings[GAUDI_RING_EQ], &hand.rings[GAUDI_QUEUES]);
}

static void polled(void)
{
    npuprof_npu_desc got = intel_fence_npu_desc(), hand = described(fence_describe);
    intel_rings[0].pe = got.ring.pe;             /* the model's fences have a ring each */
    compare(&got.ring, &hand.rings[0]);
    compare_counters(&got.counter, &hand.counter, 0);
    got = intel_hws_npu_desc();
    hand = described(hws_describe);
    compare(&got.ring, &hand.ring);
    compare_counters(&got.counter, &hand.counter, 0);
    (void)gaudi_polled_npu_desc(rings);
    hand = described(gaudi_describe_polled);
    compare(&rings[0], &hand.rings[0]);
    compare(&rings[1], &hand.rings[GAUDI_QUEUES]);
    got = neuron_npu_desc();
    hand = described(neuron_describe);
    compare(&got.ring, &hand.ring);
    got = qaic_npu_desc(rings);
    hand = described(qaic_describe);
    compare(&rings[3], &hand.rings[3]);
    compare_counters(&got.counter, &hand.counter, 0);
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
        CHECK_UINT(x->bits ? x->bits : 8u * (x->width_bytes ? x->width_bytes : 4),
                   y->bits ? y->bits : 8u * (y->width_bytes ? y->width_bytes : 4));
        CHECK_UINT(got[i].progress.count, hand.progress.count);
    }
}

/* The first event counters of both, and what the counter needs to run. window as above. */
static void compare_powered(const npuprof_npu_desc *got, const npuprof_npu_desc *hand, size_t window)
{
    compare_counters(&got->counter, &hand->counter, window);
    CHECK(got->pmu_count >= hand->pmu_count);
    for (unsigned i = 0; i < hand->pmu_count; i++) {
        const npuprof_npu_pmu *a = &got->pmu[i], *b = &hand->pmu[i];
        if (!b->read) compare_counters(&a->counter, &b->counter, window);
        CHECK_UINT(a->counter.bits, b->counter.bits);
        CHECK_INT(a->is_idle, b->is_idle);
        CHECK_INT(a->is_busy, b->is_busy);
        CHECK_INT(a->restarts, b->restarts);
        if (!b->read) CHECK_UINT(a->scale ? a->scale : 1, b->scale ? b->scale : 1);
    }
    CHECK_UINT(got->requirement_count, hand->requirement_count);
    for (unsigned i = 0; i < hand->requirement_count; i++) {
        CHECK_UINT(got->requirements[i].offset + window, hand->requirements[i].offset);
        CHECK_UINT(got->requirements[i].mask, hand->requirements[i].mask);
        CHECK_UINT(got->requirements[i].value, hand->requirements[i].value);
    }
}

static void sampled(void)
{
    npuprof_npu_pmu pmu[8];
    npuprof_npu_desc got = ethosu_npu_desc(), hand = described(ethosu_describe);
    compare_powered(&got, &hand, 0);
    play_opening = 2;
    hand = described(ethosu_describe);
    play_opening = 0;
    got = ethosu85_npu_desc();
    compare_powered(&got, &hand, 0);
    got = vip_npu_desc();
    hand = described(vip_describe);
    compare_powered(&got, &hand, 0);
    hand = described(rknpu_describe);
    got = rknpu_npu_desc(pmu);
    CHECK(got.anchors_only && got.pmu_count == 3);
    compare_powered(&got, &hand, 0);
    got = nvdla_npu_desc(pmu);
    CHECK(got.anchors_only && got.pmu_count == 4);
    compare_powered(&got, &hand, 0);
}

CHECK_MAIN(CASE(fed), CASE(polled), CASE(indices), CASE(sampled))

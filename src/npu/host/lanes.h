#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/hash.h"
#include "../types.h"
#include "format.h"
#include "draw.h"

/* Lanes: the PE that a value of `pe` stands for, and the last stamp there. Owns lanes_ (npuprof_npu in
   types.h), a table by hash of ring and value. May not know what happens in a lane. */

enum { NPUPROF_NPU_LANE_LIMIT_ = NPUPROF_NPU_LANES_ / 4 * 3 };

/* The place of a value in lanes_: where it is, or the free one where it belongs. */
static unsigned npuprof_npu_lane_place_(const npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t value)
{
    const uint64_t hash = npuprof_hash_mix_fast_(value ^ (uint64_t)q->number << 56);
    unsigned at = (unsigned)(hash >> 32) % NPUPROF_NPU_LANES_;
    while (npu->lanes_[at].ring && (npu->lanes_[at].ring != q->number + 1 || npu->lanes_[at].value != value))
        at = (at + 1) % NPUPROF_NPU_LANES_;
    return at;
}

/* Whether a name of the queue, or a value that it met, has that PE. */
static bool npuprof_npu_pe_is_taken_(const npuprof_npu *npu, const npuprof_npu_queue_ *q, uint64_t pe)
{
    if (pe < (uint64_t)q->is.pe_base + q->is.lane_count) return true;
    for (unsigned i = 0; i < NPUPROF_NPU_LANES_; i++)
        if (npu->lanes_[i].ring == q->number + 1 && npu->lanes_[i].lane == pe) return true;
    return false;
}

/* The PE of a value without a name, of a queue that has names. A PE's number keeps its PE, unless that is
   taken: then the last free one, so that it moves no other number. Another value takes the first free one.
   UINT64_MAX: there is none. */
static uint64_t npuprof_npu_unnamed_pe_(const npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t value)
{
    const uint64_t base = q->is.pe_base, last = npu->desc_.pe_count - 1;
    const bool is_number = value <= last && base + value <= last;
    if (is_number && !npuprof_npu_pe_is_taken_(npu, q, base + value)) return base + value;
    while (base + q->next_lane + q->spare_lane <= last) {
        const uint64_t pe = is_number ? last - q->spare_lane : base + q->next_lane;
        if (!npuprof_npu_pe_is_taken_(npu, q, pe)) return pe;
        if (is_number) q->spare_lane++;
        else q->next_lane++;
    }
    return UINT64_MAX;
}

/* The PE of a value that has no place in lanes_. room: it will have one. */
static uint16_t npuprof_npu_new_lane_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t value, bool room,
                                      bool *fits)
{
    uint64_t pe = UINT64_MAX;
    *fits = true;
    for (unsigned i = 0; i < q->is.lane_count; i++)
        if (q->is.lanes[i].value == value) return (uint16_t)(q->is.pe_base + i);
    if (!q->is.lane_count && value <= 0xFFFFu) pe = q->is.pe_base + value;
    else if (q->is.lane_count && room) pe = npuprof_npu_unnamed_pe_(npu, q, value);
    *fits = pe <= 0xFFFFu;
    return (uint16_t)(*fits ? pe : npu->desc_.pe_count - 1);
}

/* The lane of a value. Past the last one that there is room for, all share the state of place LANES_. */
static npuprof_npu_lane_state_ *npuprof_npu_lane_of_(npuprof_npu *npu, npuprof_npu_queue_ *q, uint64_t value)
{
    npuprof_npu_lane_state_ *lane = q->last_lane ? &npu->lanes_[q->last_lane - 1] : NULL;
    bool fits;
    if (lane && lane->value == value) return lane;
    const unsigned at = npuprof_npu_lane_place_(npu, q, value);
    lane = &npu->lanes_[at];
    q->last_lane = at + 1;
    if (lane->ring) return lane;
    const bool room = npu->lane_count_ < NPUPROF_NPU_LANE_LIMIT_;
    const uint16_t pe = npuprof_npu_new_lane_(npu, q, value, room, &fits);
    if (!fits) npuprof_npu_count_records_(npu, NPUPROF_RECORDS_NO_LANE, 1);
    if (!fits || !room) {
        lane = &npu->lanes_[NPUPROF_NPU_LANES_];
        lane->lane = pe;
        lane->has_last = false;          /* it was another's */
        q->last_lane = 0;
        return lane;
    }
    npu->lane_count_++;
    lane->ring = (uint8_t)(q->number + 1);
    lane->value = value;
    lane->lane = pe;
    return lane;
}

/* Names the lanes of a queue in the trace, and says whether they remember their stamps. */
static void npuprof_npu_begin_lanes_(npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    q->remembers = q->is.ascending || q->is.lane_count || npuprof_npu_has_(q, NPUPROF_NPU_AT_CLOCK_HIGH_) ||
                   npuprof_npu_has_(q, NPUPROF_NPU_AT_KIND_);
    for (unsigned i = 0; i < q->is.lane_count; i++)
        if (q->is.lanes[i].name)
            (void)npuprof_device_lane_(npu->number_, q->is.pe_base + i, q->is.lanes[i].name);
    q->next_lane = q->is.lane_count;
}

/* Forgets a queue's last stamps: its clock was set anew. */
static void npuprof_npu_forget_stamps_(npuprof_npu *npu, const npuprof_npu_queue_ *q)
{
    for (unsigned i = 0; i < NPUPROF_NPU_LANES_; i++)
        if (npu->lanes_[i].ring == q->number + 1) npu->lanes_[i].has_last = false;
}

/* Forgets the stamps of another epoch. */
static void npuprof_npu_lane_epoch_(npuprof_npu_lane_state_ *lane, uint32_t epoch)
{
    if (lane->epoch == epoch) return;
    lane->epoch = epoch;
    lane->has_last = false;
    lane->last_ticks = 0;
}

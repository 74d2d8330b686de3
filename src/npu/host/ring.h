#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/time.h"
#include "../types.h"
#include "../mmio.h"
#include "../clock.h"
#include "../describe.h"

/* The completion ring as the device writes it: its description, a record copied out of it, the producer
   index.
   Owns ring_next_ and ring_numbered_ (npuprof_npu in types.h): for the one drain that works. May not know
   submissions, or how a record is drawn.

   Entries have numbers that start at 0 and never wrap. The producer index shows the low bits of the next
   entry's number, or its slot. Entries from ring_next_ up to the producer are read. An entry is the expected
   one if its sequence field says its number both before and after the copy; without that field, if the
   producer has not come round to its slot meanwhile. */

/* What types.h describes and no part of this library does yet. */
static bool npuprof_npu_is_unbuilt_(const npuprof_npu_desc *d)
{
    const npuprof_npu_ring *r = &d->ring;
    const npuprof_npu_index *at = &r->producer;
    return d->ring_count || d->progress.is_there ||
           r->feed || r->first || r->ready || at->memory || at->in_memory || at->has_laps ||
           at->unit > NPUPROF_NPU_INDEX_SLOT || r->sequence_first || r->duration.width_bytes ||
           r->stamp.width_bytes || r->kind.width_bytes || r->all_are || r->empty[0].field.width_bytes ||
           r->clock_when[0].field.width_bytes || r->value.width_bytes || r->args[0].field.width_bytes ||
           r->op_name || r->lane_count || r->pe_base || r->stamp_clock || r->scale_num || r->scale_den ||
           r->stamp_offset || r->ascending;
}

/* Fills in the ring's defaults and checks its fields. *align: what the widest needs. */
static npuprof_result npuprof_npu_check_fields_(const npuprof_npu_ring *r, size_t *align)
{
    const npuprof_npu_field fields[] = { r->sequence, r->job, r->start, r->end, r->pe, r->op, r->status,
                                         r->execution, r->instruction };
    *align = 1;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const npuprof_npu_field f = fields[i];
        const unsigned bytes = f.width_bytes;
        if (!bytes) continue;
        if (f.hi_width_bytes) return NPUPROF_ERR_UNSUPPORTED;
        if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return NPUPROF_ERR_NPU_RANGE;
        if (f.offset % bytes || (unsigned)f.offset + bytes > r->entry_bytes) return NPUPROF_ERR_NPU_RANGE;
        if (f.lsb + (f.bits ? f.bits : 1u) > 8u * bytes) return NPUPROF_ERR_NPU_RANGE;
        if (bytes > *align) *align = bytes;
    }
    return r->count > 1 && r->entry_bytes % *align ? NPUPROF_ERR_NPU_RANGE : NPUPROF_OK;
}

/* Fills in the defaults and checks the ring. *needed grows to the bytes of BAR that it reaches. */
static npuprof_result npuprof_npu_check_ring_(npuprof_npu *npu, size_t *needed)
{
    npuprof_npu_ring *r = &npu->desc_.ring;
    size_t align;
    if (npuprof_npu_is_unbuilt_(&npu->desc_)) return NPUPROF_ERR_UNSUPPORTED;
    if (!r->count) return NPUPROF_OK;
    if (!r->producer.bits) r->producer.bits = 32;
    if (r->producer.bits > 32 || !r->entry_bytes) return NPUPROF_ERR_NPU_RANGE;
    if (!r->start.width_bytes && !r->end.width_bytes) return NPUPROF_ERR_NPU_RANGE;
    const uint64_t mask = npuprof_npu_mask_(r->producer.bits);
    if (r->producer.unit != NPUPROF_NPU_INDEX_SLOT && (r->count - 1 > mask || (mask + 1) % r->count))
        return NPUPROF_ERR_NPU_RANGE;
    const npuprof_result result = npuprof_npu_check_fields_(r, &align);
    if (result != NPUPROF_OK) return result;
    if (r->count > SIZE_MAX / 2 / r->entry_bytes) return NPUPROF_ERR_NPU_RANGE;
    if (!npuprof_npu_cover_range_(r->producer.offset, 4, 4, needed)) return NPUPROF_ERR_NPU_RANGE;
    const size_t bytes = (size_t)r->count * r->entry_bytes;
    const bool fits = r->memory ? r->memory_bytes >= bytes && (uintptr_t)r->memory % align == 0
                                : npuprof_npu_cover_range_(r->offset, bytes, align, needed);
    return fits ? NPUPROF_OK : NPUPROF_ERR_NPU_RANGE;
}

static unsigned npuprof_npu_field_bits_(npuprof_npu_field field)
{
    return field.bits ? field.bits : 8u * field.width_bytes - field.lsb;
}

/* One field of the entry that begins at `entry`; 0 if there is no such field. */
static uint64_t npuprof_npu_load_field_(npuprof_npu *npu, const volatile unsigned char *entry,
                                        npuprof_npu_field field)
{
    if (!field.width_bytes) return 0;
    if (!npu->desc_.ring.memory) npuprof_npu_count_load_(npu);
    const uint64_t word =
        npuprof_npu_load_word_(entry + field.offset, field.width_bytes, npu->desc_.ring.big_endian);
    return word >> field.lsb & npuprof_npu_mask_(npuprof_npu_field_bits_(field));
}

/* A completion record, as copied from the ring. */
typedef struct npuprof_npu_record_ {
    uint64_t sequence, sequence_after, job, start, end, pe, op, status, execution, instruction;
} npuprof_npu_record_;

static void npuprof_npu_copy_record_(npuprof_npu *npu, uint64_t number, npuprof_npu_record_ *r)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    const volatile unsigned char *base =
        ring->memory ? (const volatile unsigned char *)ring->memory : npu->bar_ + ring->offset;
    const volatile unsigned char *entry = base + (size_t)(number % ring->count) * ring->entry_bytes;
    r->sequence = npuprof_npu_load_field_(npu, entry, ring->sequence);
    r->job = npuprof_npu_load_field_(npu, entry, ring->job);
    r->start = npuprof_npu_load_field_(npu, entry, ring->start);
    r->end = npuprof_npu_load_field_(npu, entry, ring->end);
    r->pe = npuprof_npu_load_field_(npu, entry, ring->pe);
    r->op = npuprof_npu_load_field_(npu, entry, ring->op);
    r->status = npuprof_npu_load_field_(npu, entry, ring->status);
    r->execution = npuprof_npu_load_field_(npu, entry, ring->execution);
    r->instruction = npuprof_npu_load_field_(npu, entry, ring->instruction);
    r->sequence_after = npuprof_npu_load_field_(npu, entry, ring->sequence);
}

/* The bits in which the sequence field and the number of an entry must agree. */
static uint64_t npuprof_npu_sequence_mask_(const npuprof_npu *npu)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    unsigned bits = npuprof_npu_field_bits_(ring->sequence);
    if (ring->producer.unit != NPUPROF_NPU_INDEX_SLOT && bits > ring->producer.bits)
        bits = ring->producer.bits;
    return npuprof_npu_mask_(bits);
}

/* The index is the next slot: the number of the next entry. The newest entry tells it at first, if it has a
   number. */
static npuprof_result npuprof_npu_number_of_slot_(npuprof_npu *npu, uint64_t index, uint64_t *producer)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    if (index >= ring->count) return NPUPROF_ERR_NPU_RING;
    if (!npu->ring_numbered_) {
        npuprof_npu_record_ newest;
        npu->ring_numbered_ = true;
        npu->ring_next_ = index;
        if (ring->sequence.width_bytes) {
            npuprof_npu_copy_record_(npu, index + ring->count - 1, &newest);
            if ((newest.sequence + 1) % ring->count == index) npu->ring_next_ = newest.sequence + 1;
        }
    }
    *producer = npu->ring_next_ + (index + ring->count - npu->ring_next_ % ring->count) % ring->count;
    return NPUPROF_OK;
}

/* The index counts freely: the number of the next entry. */
static npuprof_result npuprof_npu_number_of_count_(npuprof_npu *npu, uint64_t index, uint64_t *producer)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    const uint64_t mask = npuprof_npu_mask_(ring->producer.bits);
    if (!npu->ring_numbered_) {
        npu->ring_numbered_ = true;
        npu->ring_next_ = index;
    }
    const uint64_t ahead = (index - npu->ring_next_) & mask;
    if (ahead > mask / 2) {              /* it went back: the device counts from 0 again */
        npu->ring_next_ = index > ring->count ? index - ring->count : 0;
        *producer = index;
        return NPUPROF_ERR_NPU_RING;
    }
    *producer = npu->ring_next_ + ahead;
    return NPUPROF_OK;
}

/* Reads the producer index: *producer is the number of the next entry that the device will write.
   NPUPROF_ERR_NPU_RING: the index cannot be, or went back, and ring_next_ follows it. _NPU_DEAD; _NPU_BUSY.
   */
static npuprof_result npuprof_npu_read_producer_(npuprof_npu *npu, uint64_t *producer)
{
    const npuprof_npu_ring *ring = &npu->desc_.ring;
    const uint64_t word = npuprof_npu_load_register_(npu, ring->producer.offset, 4, ring->big_endian);
    const uint64_t index = word & npuprof_npu_mask_(ring->producer.bits);
    *producer = npu->ring_next_;
    if (word == 0xFFFFFFFFu) {           /* an index, or a device that does not answer */
        npuprof_anchor_ sample;
        if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
        const npuprof_result result = npuprof_npu_read_locked_(npu, &sample);
        npuprof_npu_unlock_(npu);
        if (result == NPUPROF_ERR_NPU_DEAD) return result;
    }
    return ring->producer.unit == NPUPROF_NPU_INDEX_SLOT ? npuprof_npu_number_of_slot_(npu, index, producer)
                                  : npuprof_npu_number_of_count_(npu, index, producer);
}

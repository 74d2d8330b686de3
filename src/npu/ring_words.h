#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "ring_types.h"

/* A ring's description as words, for an image: firmware writes them, and the host reads its records by them.
   A member's number is its place in the list of its kind: append only. Owns no data. */

#define NPUPROF_NPU_RING_FIELDS_(X)                                                                        \
    X(start) X(end) X(duration) X(stamp) X(kind) X(sequence) X(clock_high) X(job) X(pe) X(op) X(status)    \
    X(execution) X(instruction) X(value) X(key[0]) X(key[1]) X(empty[0].field) X(empty[1].field)           \
    X(clock_when[0].field) X(clock_when[1].field) X(args[0].field) X(args[1].field) X(args[2].field)       \
    X(args[3].field)
#define NPUPROF_NPU_RING_NUMBERS_(X)                                                                       \
    X(entry_bytes) X(big_endian) X(sequence_first) X(all_are) X(job_scope) X(execution_op) X(pe_base)      \
    X(stamp_clock) X(stamp_unit_ns) X(scale_num) X(scale_den) X(stamp_offset) X(ascending) X(max_age_ms)   \
    X(empty[0].value) X(empty[1].value) X(clock_when[0].value) X(clock_when[1].value)
enum { NPUPROF_NPU_RING_NUMBERS_AT_ = 64 };      /* fields have the numbers below */

/* A field in 64 bits. Its second part must lie in the first 16 KiB of an entry. */
static inline uint64_t npuprof_npu_pack_field_(const npuprof_npu_field *f)
{
    return (uint64_t)f->offset | (uint64_t)(f->width_bytes & 15) << 16 | (uint64_t)(f->lsb & 63) << 20 |
           (uint64_t)(f->bits & 127) << 26 | (uint64_t)(f->hi_width_bytes & 15) << 33 |
           (uint64_t)(f->hi_lsb & 63) << 37 | (uint64_t)(f->hi_bits & 127) << 43 |
           (uint64_t)f->hi_offset << 50;
}

static inline void npuprof_npu_unpack_field_(npuprof_npu_field *f, uint64_t word)
{
    f->offset = (uint16_t)word;
    f->width_bytes = word >> 16 & 15;
    f->lsb = word >> 20 & 63;
    f->bits = word >> 26 & 127;
    f->hi_width_bytes = word >> 33 & 15;
    f->hi_lsb = word >> 37 & 63;
    f->hi_bits = word >> 43 & 127;
    f->hi_offset = (uint16_t)(word >> 50);
}

#ifndef NPUPROF_FREESTANDING
/* Sets the member of that number. One that this version does not know: nothing. */
static inline void npuprof_npu_set_ring_word_(npuprof_npu_ring *r, uint32_t which, uint64_t value)
{
    uint32_t n = 0;
#define NPUPROF_NPU_SET_FIELD_(member) if (which == n++) npuprof_npu_unpack_field_(&r->member, value);
    NPUPROF_NPU_RING_FIELDS_(NPUPROF_NPU_SET_FIELD_)
    n = NPUPROF_NPU_RING_NUMBERS_AT_;
#define NPUPROF_NPU_SET_NUMBER_(member) if (which == n++) r->member = (__typeof__(r->member))value;
    NPUPROF_NPU_RING_NUMBERS_(NPUPROF_NPU_SET_NUMBER_)
}
#endif

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/time.h"
#include "types.h"

#ifdef NPUPROF_FREESTANDING
/* What the code below wants of the recorder, here in cells of its list. */
static uint64_t npuprof_mul_div_(uint64_t a, uint64_t b, uint64_t c, bool up) { return npuprof_mul_div_by_bits_(a, b, c, up); }
static uint64_t npuprof_ticks_(void) { return npuprof_fw_stamp_masked_(npuprof_fw_arena_); }
/* Why the device's name: so the target's own JSON shows whose record it is. */
static void npuprof_npu_put_record_(const char *name, uint32_t kind, const uint64_t *values, npuprof_args args)
{
    const char *const texts[3] = { name, NULL, NULL };
    (void)npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(kind), false, texts, values, args);
}
#ifdef NPUPROF_NO_JSON
#define NPUPROF_NPU_NAME_OF_(npu) NULL
#else
#define NPUPROF_NPU_NAME_OF_(npu) (npu)->device.name
#endif
#endif

enum {
    NPUPROF_NPU_TRIES_ = 8,              /* to get two equal high words */
    NPUPROF_NPU_BATCH_ = 32,             /* ring entries copied before the producer is read again */
    NPUPROF_NPU_FREE_ = 0, NPUPROF_NPU_READY_ = 1, NPUPROF_NPU_HELD_ = 2,
    NPUPROF_NPU_HAS_ID_ = 1, NPUPROF_NPU_IN_BLOCK_ = 2,          /* its block has not ended */
    NPUPROF_NPU_MUTED_ = 4,                                      /* not to be recorded */
    NPUPROF_NPU_OWNER_ = 8                                       /* times the slot of the thread that submitted it */
};

static uint64_t npuprof_npu_mask_(unsigned bits) { return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1; }

/* The only loads from a device, of exactly that width, from an address aligned to it. Later loads are not made earlier. */
static uint64_t npuprof_npu_load_word_(const volatile void *address, unsigned bytes, bool big_endian)
{
    uint64_t v;
    switch (bytes) {
#ifdef __AVR__                           /* Why: there an atomic load is a call. */
    case 1: return *(const volatile uint8_t *)address;
    case 2: v = *(const volatile uint16_t *)address; break;
    case 4: v = *(const volatile uint32_t *)address; break;
#else
    case 1: return NPUPROF_LOAD_ACQUIRE_((const volatile uint8_t *)address);
    case 2: v = NPUPROF_LOAD_ACQUIRE_((const volatile uint16_t *)address); break;
    case 4: v = NPUPROF_LOAD_ACQUIRE_((const volatile uint32_t *)address); break;
#endif
    default:
#if UINTPTR_MAX > 0xFFFFFFFFu
        v = NPUPROF_LOAD_ACQUIRE_((const volatile uint64_t *)address);
#else   /* Why: an atomic 64-bit load is a call there, and may write. */
        v = *(const volatile uint64_t *)address;
#endif
        break;
    }
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    big_endian = !big_endian;
#endif
    if (!big_endian) return v;
    uint64_t turned = 0;
    for (unsigned i = 0; i < bytes; i++) turned |= (v >> 8 * i & 0xFF) << 8 * (bytes - 1 - i);
    return turned;
}

static uint64_t npuprof_npu_load_register_(npuprof_npu *npu, size_t offset, unsigned bytes, bool big_endian)
{
#ifndef NPUPROF_FREESTANDING
    NPUPROF_ADD_(&npu->mmio_reads, 1u);
#else   /* Why: whoever reads holds the lock. */
    npu->mmio_reads++;
#endif
    const uint64_t value = npuprof_npu_load_word_(npu->bar_ + offset, bytes, big_endian);
    return NPUPROF_LOAD_(&npu->gone_) ? npuprof_npu_mask_(8 * bytes) : value;
}

/* The host clock before and after a counter load, ordered against it. */
static uint64_t npuprof_npu_ticks_before_(void)
{
    const uint64_t now = npuprof_ticks_();
    NPUPROF_NPU_FENCE_();
    return now;
}
static uint64_t npuprof_npu_ticks_after_(void)
{
    NPUPROF_NPU_FENCE_();
    return npuprof_ticks_();
}

/* The counter as the device shows it. */
typedef struct npuprof_npu_raw_ {
    uint64_t value;                      /* counting up, desc.counter.bits valid bits; of low_bits only if that was asked for */
    uint64_t before, after;              /* host ticks around the load that tells the time */
    bool ones, zeros;                    /* every bit loaded was 1, or 0 */
} npuprof_npu_raw_;

static bool npuprof_npu_is_split_(const npuprof_npu_counter *c) { return c->order != NPUPROF_NPU_SINGLE && c->bits > c->access; }

/* low_only: the low word alone. NPUPROF_OK, NPUPROF_ERR_NPU_TORN, or _NPU_DEAD where a fault took the mapping away. */
static npuprof_result npuprof_npu_load_counter_(npuprof_npu *npu, const npuprof_npu_counter *c, bool low_only, npuprof_npu_raw_ *raw)
{
    const unsigned bytes = c->access / 8;
    const uint64_t word = npuprof_npu_mask_(c->access);
    uint64_t low = 0, high = 0, again;
    npuprof_result result = NPUPROF_OK;
    raw->ones = raw->zeros = false;
    if (npu->desc_.read_ticks) {
        raw->before = npuprof_npu_ticks_before_();
        low = npu->desc_.read_ticks(npu->desc_.user) & npuprof_npu_mask_(c->bits);
        raw->after = npuprof_npu_ticks_after_();
        raw->ones = low == npuprof_npu_mask_(c->bits);
        raw->zeros = low == 0;
    } else if (!npuprof_npu_is_split_(c) || low_only) {
        raw->before = npuprof_npu_ticks_before_();
        low = npuprof_npu_load_register_(npu, c->lo_offset, bytes, c->big_endian);
        raw->after = npuprof_npu_ticks_after_();
        raw->ones = low == word;
        raw->zeros = low == 0;
    } else if (c->order == NPUPROF_NPU_LO_LATCHES_HI) {
        raw->before = npuprof_npu_ticks_before_();
        low = npuprof_npu_load_register_(npu, c->lo_offset, bytes, c->big_endian);
        raw->after = npuprof_npu_ticks_after_();
        high = npuprof_npu_load_register_(npu, c->hi_offset, bytes, c->big_endian);
        raw->ones = low == word && high == word;
        raw->zeros = low == 0 && high == 0;
    } else {
        again = npuprof_npu_load_register_(npu, c->hi_offset, bytes, c->big_endian);
        result = NPUPROF_ERR_NPU_TORN;
        for (int i = 0; i < NPUPROF_NPU_TRIES_ && result != NPUPROF_OK; i++) {
            high = again;
            raw->before = npuprof_npu_ticks_before_();
            low = npuprof_npu_load_register_(npu, c->lo_offset, bytes, c->big_endian);
            raw->after = npuprof_npu_ticks_after_();
            again = npuprof_npu_load_register_(npu, c->hi_offset, bytes, c->big_endian);
            if (again == high) result = NPUPROF_OK;
        }
        raw->ones = low == word && high == word;
        raw->zeros = low == 0 && high == 0;
    }
    raw->value = c->bits > c->access ? low | high << (c->access & 63) : low;
    if (c->counts_down) raw->value = ~raw->value;
    raw->value &= npuprof_npu_mask_(low_only && c->bits > c->access ? c->access : c->bits);
    raw->before = npuprof_saturating_sub_(raw->before, npu->lag_);
    return NPUPROF_LOAD_(&npu->gone_) ? NPUPROF_ERR_NPU_DEAD : result;
}

#ifndef NPUPROF_FREESTANDING
/* One field of a ring entry, whose first byte is at `entry`. */
static uint64_t npuprof_npu_load_field_(npuprof_npu *npu, const volatile unsigned char *entry, npuprof_npu_field field)
{
    if (!field.width_bytes) return 0;
    if (!npu->desc_.ring.memory) NPUPROF_ADD_(&npu->mmio_reads, 1u);
    const uint64_t word = npuprof_npu_load_word_(entry + field.offset, field.width_bytes, npu->desc_.ring.big_endian);
    return word >> field.lsb & npuprof_npu_mask_(field.bits ? field.bits : 8u * field.width_bytes - field.lsb);
}

#endif

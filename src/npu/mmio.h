#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "compiler.h"
#include "types.h"
#ifdef NPUPROF_FREESTANDING
#include "firmware_side.h"
#else
#include "host_side.h"
#endif

/* The only loads from a device: one register, and a counter with the host clock around it. Writes nothing to
   a device and owns no data. May not know what a counter's value means: clock.h decides that. */

static uint64_t npuprof_npu_mask_(unsigned bits)
{
    return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

static uint64_t npuprof_npu_swap_bytes_(uint64_t value, unsigned bytes)
{
    uint64_t swapped = 0;
    for (unsigned i = 0; i < bytes; i++) swapped |= (value >> 8 * i & 0xFF) << 8 * (bytes - 1 - i);
    return swapped;
}

/* One load of exactly that width, from an address aligned to it. Later loads are not made earlier. */
static uint64_t npuprof_npu_load_word_(const volatile void *address, unsigned bytes, bool big_endian)
{
    uint64_t value;
    switch (bytes) {
#ifdef __AVR__                           /* Why: an atomic load is a function call there. */
    case 1: return *(const volatile uint8_t *)address;
    case 2: value = *(const volatile uint16_t *)address; break;
    case 4: value = *(const volatile uint32_t *)address; break;
#else
    case 1: return NPUPROF_LOAD_ACQUIRE_((const volatile uint8_t *)address);
    case 2: value = NPUPROF_LOAD_ACQUIRE_((const volatile uint16_t *)address); break;
    case 4: value = NPUPROF_LOAD_ACQUIRE_((const volatile uint32_t *)address); break;
#endif
    default:
#if UINTPTR_MAX > 0xFFFFFFFFu
        value = NPUPROF_LOAD_ACQUIRE_((const volatile uint64_t *)address);
#else   /* Why: an atomic load of 64 bits is a function call there, and may write. */
        value = *(const volatile uint64_t *)address;
#endif
        break;
    }
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    big_endian = !big_endian;
#endif
    return big_endian ? npuprof_npu_swap_bytes_(value, bytes) : value;
}

/* A register of the BAR. All ones where a fault took the mapping away. */
static uint64_t npuprof_npu_load_register_(npuprof_npu *npu, size_t offset, unsigned bytes, bool big_endian)
{
    npuprof_npu_count_load_(npu);
    const uint64_t value = npuprof_npu_load_word_(npu->bar_ + offset, bytes, big_endian);
    return npuprof_npu_is_gone_(npu) ? npuprof_npu_mask_(8 * bytes) : value;
}

/* Whether the device has power: asked before each group of loads. The caller touches nothing else of it if
   not. */
static bool npuprof_npu_is_on_(const npuprof_npu *npu)
{
    return !npu->desc_.is_on || npu->desc_.is_on(npu->desc_.user);
}

/* A bracket: the counter as the device shows it, and the host clock on both sides of the load.
   Why it bounds the time of the value:
     1. `before` is read first, then comes the fence, then the load. So the device answers after `before`.
     2. After the load comes the fence, then `after` is read. So the device has answered before `after`.
     3. By 1 and 2, the device showed `value` at some host time t:   before <= t <= after.
     4. A counter may show its value late, by up to lag_ns:          before - lag <= t <= after.
        `before` is moved back by the lag, so 3 stays true.
     5. The middle of the bracket differs from t by at most half the width, rounded up:
                                                                     |middle - t| <= error
        (npuprof_anchor_middle_, npuprof_anchor_error_).
   A slow load makes the bracket wider, never wrong. Split counters: the bracket is around the load of the low
   word. The high word belongs to it, because it was the same before and after (HI_LO_HI), or was frozen by
   that load (LO_LATCHES_HI). */
typedef struct npuprof_npu_raw_ {
    uint64_t value;                      /* counts up; desc.counter.bits valid bits, or those of the low word
                                            if only that was asked for */
    uint64_t before, after;              /* host ticks */
    bool ones, zeros;                    /* every bit loaded was 1, or 0 */
} npuprof_npu_raw_;

/* Bits of the low word. Why all of a register in firmware: each shift of 64 bits is a function there. */
static unsigned npuprof_npu_low_bits_(const npuprof_npu_counter *c)
{
    return NPUPROF_NPU_DIVIDES_ ? c->lo_bits : c->access;
}

static bool npuprof_npu_is_split_(const npuprof_npu_counter *c)
{
    return c->order != NPUPROF_NPU_SINGLE && c->bits > npuprof_npu_low_bits_(c);
}

/* Loads the low word, and the host clock around it. */
static uint64_t npuprof_npu_load_low_(npuprof_npu *npu, const npuprof_npu_counter *c, npuprof_npu_raw_ *raw)
{
    raw->before = npuprof_npu_ticks_();
    const uint64_t low = npuprof_npu_load_register_(npu, c->lo_offset, c->access / 8, c->big_endian);
    raw->after = npuprof_npu_ticks_();
    return low;
}

static uint64_t npuprof_npu_load_high_(npuprof_npu *npu, const npuprof_npu_counter *c, bool *ones)
{
    const uint64_t word = npuprof_npu_load_register_(npu, c->hi_offset, c->access / 8, c->big_endian);
    if (!NPUPROF_NPU_DIVIDES_) return word;
    *ones = word == npuprof_npu_mask_(c->access);
    return word >> c->hi_lsb & npuprof_npu_mask_(c->bits - c->lo_bits);
}

/* low_only: the low word alone. NPUPROF_OK; _NPU_TORN: the high word changed at each of 8 tries; _NPU_DEAD: a
   fault took the mapping away. */
static npuprof_result npuprof_npu_load_counter_(npuprof_npu *npu, const npuprof_npu_counter *c, bool low_only,
                                                npuprof_npu_raw_ *raw)
{
    enum { tries = 8 };
    uint64_t word = npuprof_npu_mask_(c->access), low, high = 0;
    npuprof_result result = NPUPROF_OK;
    bool ones = true;
    const unsigned low_bits = npuprof_npu_low_bits_(c);
    const bool split = npuprof_npu_is_split_(c) && !low_only;
    if (npu->desc_.read_ticks && c == &npu->desc_.counter) {
        word = npuprof_npu_mask_(c->bits);
        raw->before = npuprof_npu_ticks_();
        low = npu->desc_.read_ticks(npu->desc_.user) & word;
        raw->after = npuprof_npu_ticks_();
    } else if (!split || c->order == NPUPROF_NPU_LO_LATCHES_HI) {
        low = npuprof_npu_load_low_(npu, c, raw);
        if (split) high = npuprof_npu_load_high_(npu, c, &ones);
    } else {
        uint64_t again = npuprof_npu_load_high_(npu, c, &ones);
        int left = tries;
        do {
            high = again;
            low = npuprof_npu_load_low_(npu, c, raw);
            again = npuprof_npu_load_high_(npu, c, &ones);
        } while (again != high && --left);
        if (again != high) result = NPUPROF_ERR_NPU_TORN;
    }
    raw->ones = low == word && (NPUPROF_NPU_DIVIDES_ ? ones : !split || high == word);
    raw->zeros = low == 0 && high == 0;
    if (NPUPROF_NPU_DIVIDES_) low = low >> c->lo_lsb & npuprof_npu_mask_(c->lo_bits);
    raw->value = c->bits > low_bits ? low | high << (low_bits & 63) : low;
    if (c->counts_down) raw->value = ~raw->value;
    raw->value &= npuprof_npu_mask_(low_only && c->bits > low_bits ? low_bits : c->bits);
    raw->before = npuprof_saturating_sub_(raw->before, npu->lag_);
    return npuprof_npu_is_gone_(npu) ? NPUPROF_ERR_NPU_DEAD : result;
}

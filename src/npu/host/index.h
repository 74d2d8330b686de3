#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../../numbers/hash.h"
#include "../types.h"
#include "../mmio.h"
#include "../clock.h"
#include "../describe.h"

/* An index that a device writes: how far it has come, in whatever unit, wherever it lies. Becomes the number
   of entries since reset, 64 bits, which never wraps. Owns an npuprof_npu_index_state_. May not know what
   lies in an entry.

   A device may write an index in two steps: two halves of 64 bits, or a slot and a count of laps. What is
   read between the two looks as if it went back, or on by a whole lap. So such a value is read again, for a
   while, until it fits. */

/* Finds where an index lies, and checks it. entries: where those begin; entries_end: bytes from `memory` to
   their end. *needed grows to the bytes of BAR that it reaches. NULL, or what is wrong with it. */
static const char *npuprof_npu_check_index_(npuprof_npu_index *x, npuprof_npu_index_state_ *state,
                                            const volatile void *memory, size_t memory_bytes,
                                            size_t *needed)
{
    const volatile void *const at = x->memory ? x->memory : x->in_memory ? memory : NULL;
    const size_t bytes = x->memory ? x->memory_bytes : memory_bytes;
    if (!x->width_bytes) x->width_bytes = 4;
    if (x->width_bytes != 2 && x->width_bytes != 4 &&
        x->width_bytes != 8) return "is not 2, 4 or 8 bytes wide";
    if (x->lsb + (x->bits ? x->bits : 1u) > 8u * x->width_bytes) return "has bits outside its word";
    if (!x->bits) x->bits = (uint8_t)(8u * x->width_bytes - x->lsb);
    if (x->unit < 0 || x->unit >= NPUPROF_NPU_INDEX_UNIT_COUNT_) return "has an unknown unit";
    const bool is_slot = x->unit == NPUPROF_NPU_INDEX_SLOT || x->unit == NPUPROF_NPU_INDEX_BYTE_OFFSET;
    if (x->has_laps && !is_slot) return "has laps, but its unit is neither a slot nor a byte offset";
    if (x->has_wrap && !is_slot) return "has a wrap bit, but its unit is neither a slot nor a byte offset";
    if (x->has_wrap && x->has_laps) return "has a wrap bit and laps: give one";
    if (x->has_wrap && (x->wrap_bit >= 8u * x->width_bytes ||
                        (x->wrap_bit >= x->lsb && x->wrap_bit < x->lsb + x->bits)))
        return "has its wrap bit outside its word, or among its own bits";
    if (x->in_memory && !x->memory && !memory) return "is in_memory, but there is no memory";
    state->mask = npuprof_npu_mask_(x->bits);
    state->in_bar = !at;
    const size_t offsets[] = { x->offset, x->has_laps ? x->laps_offset : x->offset };
    for (int i = 0; i < 2; i++) {
        size_t end = 0;
        if (!npuprof_npu_cover_range_(offsets[i], x->width_bytes, x->width_bytes, at ? &end : needed))
            return i ? "has laps that are not aligned to its width" : "is not aligned to its width";
        if (at && end > bytes) return "lies outside its memory";
        if (at && ((uintptr_t)at + offsets[i]) % x->width_bytes) return "is not aligned to its width";
    }
    if (!at) return NULL;
    state->at = (const volatile unsigned char *)at + x->offset;
    state->laps_at = (const volatile unsigned char *)at + x->laps_offset;
    return NULL;
}

/* One load of the word at an offset; at: the same word in memory. */
static uint64_t npuprof_npu_load_index_word_(npuprof_npu *npu, const npuprof_npu_index *x,
                                             const volatile unsigned char *at, size_t offset, bool big)
{
    if (at) return npuprof_npu_load_word_(at, x->width_bytes, big);
    return npuprof_npu_load_register_(npu, offset, x->width_bytes, big);
}

/* What was loaded at once. */
typedef struct npuprof_npu_index_raw_ { uint64_t word, value, laps; } npuprof_npu_index_raw_;

/* Loads the index, and its laps before and after it until both agree. */
static npuprof_npu_index_raw_ npuprof_npu_load_index_(npuprof_npu *npu, const npuprof_npu_index *x,
                                                      const npuprof_npu_index_state_ *s)
{
    const bool big = s->big_endian;
    npuprof_npu_index_raw_ raw = { 0, 0, 0 };
    uint64_t again = 0;
    if (x->has_laps) again = npuprof_npu_load_index_word_(npu, x, s->laps_at, x->laps_offset, big);
    for (int i = 0; i < 8; i++) {
        raw.laps = again;
        raw.word = npuprof_npu_load_index_word_(npu, x, s->at, x->offset, big);
        if (!x->has_laps) break;
        again = npuprof_npu_load_index_word_(npu, x, s->laps_at, x->laps_offset, big);
        if (again == raw.laps) break;
    }
    raw.value = raw.word >> x->lsb & s->mask;
    return raw;
}

/* Entries since reset, by a slot and the count of laps. The laps advance when slot 0 is written, so a lap
   that they name is complete when the slot is 0 again: unless nothing was ever written. */
static uint64_t npuprof_npu_entries_by_laps_(const npuprof_npu_index *x, const npuprof_npu_index_state_ *s,
                                             uint64_t slot, uint64_t laps)
{
    const uint64_t bits = 8u * x->width_bytes;
    const uint64_t lap = (laps - x->laps_first) & npuprof_npu_mask_((unsigned)bits);
    if (lap == npuprof_npu_mask_((unsigned)bits)) return 0;     /* before the first lap */
    if (slot) return lap * s->count + slot;
    return lap == 0 && s->was_empty ? 0 : (lap + 1) * s->count;
}

static bool npuprof_npu_wrap_of_(const npuprof_npu_index *x, npuprof_npu_index_raw_ raw)
{
    return x->has_wrap && raw.word >> x->wrap_bit & 1;
}

/* What the index shows, as entries since reset. Does not change what is known of it. *fits: it is not before
   what was read last, nor more than a lap behind it. False: it cannot be. */
static bool npuprof_npu_entries_of_(const npuprof_npu_index *x, const npuprof_npu_index_state_ *s,
                                    npuprof_npu_index_raw_ raw, uint64_t *entries, bool *fits)
{
    const uint64_t count = s->count;
    const bool in_bytes = x->unit == NPUPROF_NPU_INDEX_BYTES || x->unit == NPUPROF_NPU_INDEX_BYTE_OFFSET;
    const uint64_t unit = in_bytes ? s->entry_bytes : 1;
    const bool runs = x->unit == NPUPROF_NPU_INDEX_COUNT || x->unit == NPUPROF_NPU_INDEX_BYTES;
    *fits = true;
    if (runs) {
        const uint64_t ahead = (raw.value - s->last) & s->mask;
        *entries = s->known ? s->last + ahead : raw.value;
        if (!s->known) return true;
        /* The ring is as long as the index's period: what seems to go back has gone on. */
        const bool whole = count > s->mask / 2 / unit && count - 1 <= s->mask / unit;
        *fits = (whole || ahead <= s->mask / 2) && ahead / unit <= count;
        return whole || ahead <= s->mask / 2;
    }
    uint64_t slot = raw.value / unit;
    if (s->shows_count && slot == count) slot = 0;
    *entries = s->last;
    if (slot >= count) return false;
    if (x->has_laps) {
        *entries = npuprof_npu_entries_by_laps_(x, s, slot, raw.laps);
        /* Why not a whole lap to slot 0: the laps may have been written, and the slot not yet. */
        *fits = !s->known || (*entries >= s->last && *entries - s->last <= count - (slot == 0));
        return !s->known || *entries >= s->last;
    }
    *entries = s->known ? s->last + (slot + count - s->last % count) % count : slot;
    /* The bit is the other one after an odd number of laps. */
    const uint64_t laps = *entries / count - s->last / count;
    if (s->known && x->has_wrap && (laps & 1) != (uint64_t)(npuprof_npu_wrap_of_(x, raw) != s->wrap))
        *entries += count;
    return true;
}

/* Whether a device may write that index in two steps. */
static bool npuprof_npu_is_torn_(const npuprof_npu_index *x) { return x->has_laps || x->width_bytes == 8; }

/* All bits of an index are 1: of a device that does not answer, unless the counter says that it does. */
static npuprof_result npuprof_npu_index_dead_(npuprof_npu *npu, const npuprof_npu_index_state_ *s,
                                              bool may_be)
{
    npuprof_anchor_ sample;
    if (!may_be) return NPUPROF_ERR_NPU_DEAD;
    if (!s->in_bar || npu->desc_.read_ticks) return NPUPROF_OK;
    if (!npuprof_npu_lock_(npu)) return NPUPROF_ERR_NPU_BUSY;
    const npuprof_result result = npuprof_npu_read_locked_(npu, &sample);
    npuprof_npu_unlock_(npu);
    return result == NPUPROF_ERR_NPU_DEAD ? result : NPUPROF_OK;
}

/* Loads the index until it fits what was read before: for 20 us where a device may write it in two steps. The
   rest as npuprof_npu_entries_of_(). */
static bool npuprof_npu_settle_index_(npuprof_npu *npu, const npuprof_npu_index *x,
                                      const npuprof_npu_index_state_ *s, npuprof_npu_index_raw_ *raw,
                                      uint64_t *entries)
{
    const uint64_t begin = npuprof_npu_ticks_();
    bool fits;
    for (;;) {
        *raw = npuprof_npu_load_index_(npu, x, s);
        const bool good = npuprof_npu_entries_of_(x, s, *raw, entries, &fits);
        if ((good && fits) || !npuprof_npu_is_torn_(x)) return good;
        if (npuprof_saturating_sub_(npuprof_npu_ticks_(), begin) > npu->second_ / 50000) return good;
    }
}

/* Reads the index. *entries: how many the device has written since reset. NPUPROF_ERR_NPU_RING, once: it
   cannot be (*entries is as before), or it went back, and *entries is what it shows now; _NPU_DEAD;
   _NPU_BUSY. An index in two steps that went back is believed the second time. */
static npuprof_result npuprof_npu_read_index_(npuprof_npu *npu, const npuprof_npu_index *x,
                                              npuprof_npu_index_state_ *s, uint64_t *entries)
{
    const uint64_t unit = x->unit == NPUPROF_NPU_INDEX_BYTES ? s->entry_bytes : 1;
    const bool runs = x->unit == NPUPROF_NPU_INDEX_COUNT || x->unit == NPUPROF_NPU_INDEX_BYTES;
    const bool was_bad = s->is_bad;
    npuprof_npu_index_raw_ raw;
    uint64_t now;
    const bool good = npuprof_npu_settle_index_(npu, x, s, &raw, &now);
    *entries = s->last / unit;
    if (raw.word == npuprof_npu_mask_(8u * x->width_bytes)) {
        const npuprof_result dead = npuprof_npu_index_dead_(npu, s, runs && x->width_bytes < 8);
        if (dead != NPUPROF_OK) return dead;
    }
    s->is_bad = !good;
    if (!good && npuprof_npu_is_torn_(x) && s->known && !was_bad) return NPUPROF_OK;
    if (!good && !runs && (!x->has_laps || now == s->last)) {    /* no slot of this ring */
        return was_bad && !npuprof_npu_is_torn_(x) ? NPUPROF_OK : NPUPROF_ERR_NPU_RING;
    }
    s->is_bad = false;
    s->known = true;
    s->wrap = npuprof_npu_wrap_of_(x, raw);
    s->last = good || !runs ? now : raw.value;
    *entries = s->last / unit;
    return good ? NPUPROF_OK : NPUPROF_ERR_NPU_RING;
}

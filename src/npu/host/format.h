#pragma once   /* SPDX-License-Identifier: MIT */
#include "../../public/macros.h"
#include "../types.h"
#include "../mmio.h"

/* The format of an entry: which words of it are loaded, and which bits of them are which value. The same for
   an entry in a ring and for one that was fed. May not know what a value means, or who says that an entry is
   there. */

/* NPUPROF_ERR_NPU_RANGE, and its sentence: "desc.rings[2].start: ...". */
static npuprof_result npuprof_npu_refuse_(const npuprof_npu *npu, unsigned ring, const char *key,
                                          const char *why)
{
    char which[24] = "ring";
    if (npu->desc_.ring_count) snprintf(which, sizeof which, "rings[%u]", ring);
    return npuprof_os_explain_(NPUPROF_ERR_NPU_RANGE,
                               "NPUPROF_ERR_NPU_RANGE: npuprof_npu_open: desc.%s.%s %s",
                               which, key, why);
}

#define NPUPROF_NPU_VALUE_KEY_(word, member) #member,
static const char *const npuprof_npu_value_keys_[NPUPROF_NPU_VALUES_] = {
    NPUPROF_NPU_RING_VALUES_(NPUPROF_NPU_VALUE_KEY_)
    "more_args[0]", "more_args[1]", "more_args[2]", "more_args[3]", "more_args[4]", "more_args[5]",
    "more_args[6]", "more_args[7]"
};

/* An argument of the span; without a field if there is none. */
static npuprof_npu_arg npuprof_npu_arg_at_(const npuprof_npu_ring *r, unsigned i)
{
    const npuprof_npu_arg none = { { 0, 0, 0, 0, 0, 0, 0, 0 }, NULL };
    if (i < NPUPROF_NPU_ARGS) return r->args[i];
    return i - NPUPROF_NPU_ARGS < r->more_arg_count ? r->more_args[i - NPUPROF_NPU_ARGS] : none;
}

/* The field of a value. */
#define NPUPROF_NPU_VALUE_OFFSET_(word, member) offsetof(npuprof_npu_ring, member),
static npuprof_npu_field npuprof_npu_field_at_(const npuprof_npu_ring *r, unsigned at)
{
    static const uint16_t offsets[] = { NPUPROF_NPU_RING_VALUES_(NPUPROF_NPU_VALUE_OFFSET_) };
    npuprof_npu_field field;
    if (at >= NPUPROF_NPU_AT_ARGS_) return npuprof_npu_arg_at_(r, at - NPUPROF_NPU_AT_ARGS_).field;
    memcpy(&field, (const char *)r + offsets[at], sizeof field);
    return field;
}

/* The key of the argument that a value becomes; NULL: it becomes none. */
static const char *npuprof_npu_key_of_(const npuprof_npu_ring *r, unsigned at)
{
    if (at >= NPUPROF_NPU_AT_ARGS_) return npuprof_npu_arg_at_(r, at - NPUPROF_NPU_AT_ARGS_).name;
    if (at == NPUPROF_NPU_AT_JOB_) return "job";
    if (at == NPUPROF_NPU_AT_EXECUTION_) return "execution_index";
    return at == NPUPROF_NPU_AT_INSTRUCTION_ ? "instruction_index" : NULL;
}

/* A word of the entry, added to those that are loaded. NULL, or what is wrong with the part of a field. */
static const char *npuprof_npu_add_word_(npuprof_npu_queue_ *q, unsigned offset, unsigned bytes, unsigned lsb,
                                         uint8_t *bits, uint8_t *word)
{
    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return "is not 1, 2, 4 or 8 bytes wide";
    if (offset % bytes) return "is not aligned to its width";
    if (offset + bytes > q->is.entry_bytes) return "lies outside the entry";
    if (lsb + (*bits ? *bits : 1u) > 8u * bytes) return "has bits outside its word";
    if (!*bits) *bits = (uint8_t)(8u * bytes - lsb);
    unsigned i = 0;
    while (i < q->word_count && (q->words[i].offset != offset || q->words[i].bytes != bytes)) i++;
    *word = (uint8_t)i;
    if (i < q->word_count) return NULL;
    q->words[i].offset = (uint16_t)offset;
    q->words[i].bytes = (uint8_t)bytes;
    q->word_count++;
    return NULL;
}

/* Finds the words and bits of one value. NULL, or what is wrong with it. */
static const char *npuprof_npu_add_value_(npuprof_npu_queue_ *q, unsigned at)
{
    const npuprof_npu_field f = npuprof_npu_field_at_(&q->is, at);
    npuprof_npu_value_ *v = &q->values[at];
    if (!f.width_bytes) return f.hi_width_bytes ? "has a second part and no first" : NULL;
    v->lsb = f.lsb;
    v->bits = f.bits;
    const char *wrong = npuprof_npu_add_word_(q, f.offset, f.width_bytes, f.lsb, &v->bits, &v->word);
    if (wrong) return wrong;
    v->mask = npuprof_npu_mask_(v->bits);
    q->present[q->present_count++] = (uint8_t)at;
    if (!f.hi_width_bytes) return NULL;
    v->hi_lsb = f.hi_lsb;
    v->hi_bits = f.hi_bits;
    wrong = npuprof_npu_add_word_(q, f.hi_offset, f.hi_width_bytes, f.hi_lsb, &v->hi_bits, &v->hi_word);
    if (wrong) return wrong;
    v->hi_mask = npuprof_npu_mask_(v->hi_bits);
    if (v->bits + v->hi_bits > 64) return "has more than 64 bits";
    const bool apart = v->hi_lsb >= v->lsb + v->bits || v->lsb >= v->hi_lsb + v->hi_bits;
    return v->word == v->hi_word && !apart ? "has two parts that overlap" : NULL;
}

/* Finds the words and bits of all values. */
static npuprof_result npuprof_npu_add_values_(const npuprof_npu *npu, npuprof_npu_queue_ *q)
{
    for (unsigned at = 0; at < NPUPROF_NPU_VALUES_; at++) {
        const char *const wrong = npuprof_npu_add_value_(q, at);
        if (wrong) return npuprof_npu_refuse_(npu, q->number, npuprof_npu_value_keys_[at], wrong);
    }
    return NPUPROF_OK;
}

/* What the widest word needs. */
static size_t npuprof_npu_entry_align_(const npuprof_npu_queue_ *q)
{
    size_t align = 1;
    for (unsigned i = 0; i < q->word_count; i++)
        if (q->words[i].bytes > align) align = q->words[i].bytes;
    return align;
}

static bool npuprof_npu_has_(const npuprof_npu_queue_ *q, unsigned at) { return q->values[at].bits != 0; }

static unsigned npuprof_npu_bits_at_(const npuprof_npu_queue_ *q, unsigned at)
{
    return (unsigned)q->values[at].bits + q->values[at].hi_bits;
}

/* ---- Entries */

/* Whether this machine's most significant byte comes first. */
static inline bool npuprof_npu_is_big_endian_(void)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return true;
#else
    return false;
#endif
}

/* ---- The copy of a whole entry

   Why other words than those of `values`: one load of 8 bytes brings what two or more fields hold. So it is
   in the host's memory only; a register of a device is loaded with the width that it has. */

/* Whether entries may be copied in words of 8 bytes. */
static bool npuprof_npu_can_copy_wide_(const npuprof_npu_ring *r)
{
    if (UINTPTR_MAX <= UINT32_MAX || r->big_endian || npuprof_npu_is_big_endian_()) return false;
    if (r->entry_bytes % 8) return false;
    return r->feed || (r->memory && ((uintptr_t)r->memory + r->first) % 8 == 0);
}

/* The word of 8 bytes, among those that are copied, that word number `word` lies in. *lsb: a bit of that
   word, and becomes the same one there. */
static uint8_t npuprof_npu_widen_word_(npuprof_npu_queue_ *q, unsigned word, uint8_t *lsb)
{
    const unsigned offset = q->words[word].offset, wide = offset / 8 * 8;
    unsigned i = 0;
    while (i < q->copied_count && q->copied[i].offset != wide) i++;
    q->copied[i].offset = (uint16_t)wide;
    q->copied[i].bytes = 8;
    if (i == q->copied_count) q->copied_count++;
    *lsb = (uint8_t)(*lsb + 8 * (offset - wide));
    return (uint8_t)i;
}

/* Plans how an entry is copied, and what is drawn of it, when its values are known. */
static void npuprof_npu_plan_entry_(npuprof_npu_queue_ *q)
{
    q->copies_wide = npuprof_npu_can_copy_wide_(&q->is);
    q->copied_count = q->copies_wide ? 0 : q->word_count;
    if (!q->copies_wide) memcpy(q->copied, q->words, sizeof q->copied);
    for (unsigned i = 0; i < q->present_count; i++) {
        const npuprof_npu_value_ v = q->values[q->present[i]];
        const npuprof_npu_drawn_ drawn = { q->present[i], npuprof_npu_key_of_(&q->is, q->present[i]) };
        if (drawn.key) q->drawn[q->drawn_count++] = drawn;
        npuprof_npu_step_ s = { q->present[i], v.word, v.lsb, v.hi_word, v.hi_lsb, v.bits, v.mask,
                                v.hi_mask };
        if (q->copies_wide) s.word = npuprof_npu_widen_word_(q, v.word, &s.lsb);
        if (q->copies_wide && s.hi_mask) s.hi_word = npuprof_npu_widen_word_(q, v.hi_word, &s.hi_lsb);
        if (s.hi_mask && s.hi_word == s.word && s.hi_lsb == s.lsb + s.bits) {    /* one behind the other */
            s.mask = npuprof_npu_mask_((unsigned)v.bits + v.hi_bits);
            s.hi_mask = 0;
        }
        q->steps[i] = s;
    }
}

static const volatile unsigned char *npuprof_npu_entry_at_(const npuprof_npu_queue_ *q, uint64_t number)
{
    return q->base + (size_t)(number % q->is.count) * q->is.entry_bytes;
}

static uint64_t npuprof_npu_load_entry_word_(npuprof_npu *npu, const npuprof_npu_queue_ *q,
                                             const volatile unsigned char *entry, unsigned word)
{
    if (!q->is.memory) npuprof_npu_count_load_(npu);
    return npuprof_npu_load_word_(entry + q->words[word].offset, q->words[word].bytes, q->is.big_endian);
}

/* One value of an entry that a device may be writing. */
static uint64_t npuprof_npu_load_value_(npuprof_npu *npu, const npuprof_npu_queue_ *q,
                                        const volatile unsigned char *entry, unsigned at)
{
    const npuprof_npu_value_ *v = &q->values[at];
    uint64_t value = npuprof_npu_load_entry_word_(npu, q, entry, v->word) >> v->lsb & v->mask;
    if (v->hi_bits)
        value |= (npuprof_npu_load_entry_word_(npu, q, entry, v->hi_word) >> v->hi_lsb & v->hi_mask)
                 << v->bits;
    return value;
}

/* Takes the values out of the words of npuprof_npu_queue_.copied. r: 0 where the queue has no value; it stays
   so. */
static inline void npuprof_npu_decode_(const npuprof_npu_queue_ *q, const uint64_t *words,
                                       npuprof_npu_record_ *r)
{
    const npuprof_npu_step_ *const end = q->steps + q->present_count;
    for (const npuprof_npu_step_ *s = q->steps; s < end; s++) {
        uint64_t value = words[s->word] >> s->lsb & s->mask;
        if (s->hi_mask) value |= (words[s->hi_word] >> s->hi_lsb & s->hi_mask) << s->bits;
        r->v[s->at] = value;
    }
}

/* Copies an entry of a ring. */
static void npuprof_npu_copy_entry_(npuprof_npu *npu, const npuprof_npu_queue_ *q,
                                    const volatile unsigned char *entry, npuprof_npu_record_ *r)
{
    uint64_t words[2 * NPUPROF_NPU_VALUES_];
    if (!q->is.memory) NPUPROF_ADD_(&npu->mmio_reads, q->copied_count);
    if (q->copies_wide)
        for (unsigned i = 0; i < q->copied_count; i++)
            words[i] = npuprof_npu_load_word_(entry + q->copied[i].offset, 8, false);
    else
        for (unsigned i = 0; i < q->copied_count; i++)
            words[i] = npuprof_npu_load_word_(entry + q->copied[i].offset, q->copied[i].bytes,
                                              q->is.big_endian);
    npuprof_npu_decode_(q, words, r);
}

/* One word of a buffer of the driver's, at any address. */
static inline uint64_t npuprof_npu_take_word_(const unsigned char *at, unsigned bytes)
{
    uint64_t u64;
    uint32_t u32;
    uint16_t u16;
    switch (bytes) {
    case 1: return *at;
    case 2: memcpy(&u16, at, 2); return u16;
    case 4: memcpy(&u32, at, 4); return u32;
    default: memcpy(&u64, at, 8); return u64;
    }
}

/* Takes an entry out of a buffer of the driver's. */
static void npuprof_npu_take_entry_(const npuprof_npu_queue_ *q, const unsigned char *entry,
                                    npuprof_npu_record_ *r)
{
    uint64_t words[2 * NPUPROF_NPU_VALUES_];
    if (q->copies_wide) {
        for (unsigned i = 0; i < q->copied_count; i++)
            words[i] = npuprof_npu_take_word_(entry + q->copied[i].offset, 8);
        npuprof_npu_decode_(q, words, r);
        return;
    }
    for (unsigned i = 0; i < q->copied_count; i++)
        words[i] = npuprof_npu_take_word_(entry + q->copied[i].offset, q->copied[i].bytes);
    if (q->is.big_endian != npuprof_npu_is_big_endian_())
        for (unsigned i = 0; i < q->copied_count; i++)
            words[i] = npuprof_npu_swap_bytes_(words[i], q->copied[i].bytes);
    npuprof_npu_decode_(q, words, r);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/time.h"
#include "../format/layouts.h"
#include "../format/compact.h"
#include "../firmware/arena.h"
#include "../firmware/cells.h"
#include "../firmware/record.h"
#include "../firmware/event.h"
#include "types.h"

/* What the parts for both sides ask of firmware; host_side.h defines the same functions for a host. Here the
   lock of a device, and its records as cells of the recorder's list. May not know how a counter is read.

   lock_: 0 = free, 1 = held. Nobody waits for it: what cannot have it does without. Interrupts are masked
   while it is taken, where the core has no compare-and-swap. */

static uint64_t npuprof_npu_ticks_(void) { return npuprof_fw_stamp_in_order_(npuprof_fw_arena_); }

/* Without NPUPROF_NPU_RECORDS npuprof_npu_open() refuses such a device. */
static inline bool npuprof_npu_is_pushed_(const npuprof_npu *npu)
{
#ifdef NPUPROF_NPU_RECORDS
    return npu->desc_.anchors_only;
#else
    NPUPROF_UNUSED_(npu);
    return false;
#endif
}

static uint64_t npuprof_npu_mul_div_(uint64_t a, uint64_t b, uint64_t c, bool up)
{
    return npuprof_mul_div_by_bits_(a, b, c, up);
}

/* False: a task, core or interrupt that this one met holds it. */
static bool npuprof_npu_lock_(npuprof_npu *npu)
{
#if NPUPROF_MASKS_
    const npuprof_os_mask_ before = npuprof_os_mask_interrupts_();
    const bool is_free = npu->lock_ == 0;
    npu->lock_ = 1;
    npuprof_os_unmask_interrupts_(before);
    return is_free;
#else
    uintptr_t owner = 0;
    return NPUPROF_CAS_(&npu->lock_, &owner, (uintptr_t)1);
#endif
}

static void npuprof_npu_unlock_(npuprof_npu *npu)
{
    NPUPROF_SIGNAL_FENCE_();
#if NPUPROF_MASKS_
    NPUPROF_STORE_(&npu->lock_, (uintptr_t)0);
#else
    NPUPROF_STORE_RELEASE_(&npu->lock_, (uintptr_t)0);
#endif
}

/* Stores `to` in a word that is `was`. False: it is not. */
static bool npuprof_npu_replace_word_(uint32_t *word, uint32_t was, uint32_t to)
{
#if NPUPROF_MASKS_
    const npuprof_os_mask_ before = npuprof_os_mask_interrupts_();
    const bool is = NPUPROF_LOAD_(word) == was;
    if (is) NPUPROF_STORE_(word, to);
    npuprof_os_unmask_interrupts_(before);
    return is;
#else
    return NPUPROF_CAS_(word, &was, to);
#endif
}

/* Why not atomic: who reads the device holds the lock. */
static inline void npuprof_npu_count_load_(npuprof_npu *npu) { npu->mmio_reads++; }

/* Firmware maps nothing, so nothing can be taken away. */
static inline bool npuprof_npu_is_gone_(const npuprof_npu *npu)
{
    NPUPROF_UNUSED_(npu);
    return false;
}

/* A record of the device. With the target's own JSON it bears the device's name, so a reader of that sees
   whose it is. */
static npuprof_token_ npuprof_npu_put_record_(const char *name, uint32_t kind, const uint64_t *values,
                                              npuprof_args args)
{
    const char *const texts[3] = { name, NULL, NULL };
    return npuprof_fw_put_named_(NPUPROF_FW_REF_OF_KIND_(kind), false, texts, values, args);
}
#ifdef NPUPROF_NO_JSON
#define NPUPROF_NPU_NAME_OF_(npu) NULL
#else
#define NPUPROF_NPU_NAME_OF_(npu) (npu)->device.name
#endif

/* Firmware keeps the narrowest bracket of an anchor, and no other read. */
static inline void npuprof_npu_weigh_read_(npuprof_npu *npu, const npuprof_anchor_ *a) { (void)npu, (void)a; }

static inline bool npuprof_npu_best_reads_(npuprof_npu *npu, npuprof_anchor_ *first, npuprof_anchor_ *second)
{
    (void)npu, (void)first, (void)second;
    return false;
}

/* A change of rate is left to the user, and to the host. */
static inline bool npuprof_npu_rate_changed_(npuprof_npu *npu, const npuprof_anchor_ *sample)
{
    (void)npu, (void)sample;
    return false;
}

static inline void npuprof_npu_set_unsteady_(npuprof_npu *npu) { (void)npu; }

/* Adds to one of the device's tallies, NPUPROF_NOTE_*. Wraps are not noted: the host sees them in the ticks.
   */
static void npuprof_npu_note_(const npuprof_npu *npu, unsigned note, uint64_t add)
{
    const uint64_t values[3] = { add, note, npu->number_ };
    if (!npu->number_ || note == NPUPROF_NOTE_WRAPS) return;
    (void)npuprof_npu_put_record_(NPUPROF_NPU_NAME_OF_(npu), NPUPROF_CELL_KIND_COUNT_, values, PROF_NO_ARGS);
}

/* Stores an anchor of this epoch in the arena. One whose width has more than 32 bits is left out: the stamps
   themselves tell the host more. A ring keeps the newest ones of a device, and lets the others age. Why four:
   two each of an epoch and of the one before it. */
static npuprof_result npuprof_npu_store_anchor_(npuprof_npu *npu, const npuprof_anchor_ *anchor)
{
    const uint64_t width = npuprof_anchor_width_(anchor);
    if (width > UINT32_MAX) return NPUPROF_OK;
    const uint64_t values[3] = { anchor->device_ticks, anchor->host_after,
                                 npu->number_ | (npu->epoch_ & 0xFFFF) << 8 | width << 32 };
    const npuprof_token_ token =
        npuprof_npu_put_record_(NPUPROF_NPU_NAME_OF_(npu), NPUPROF_CELL_KIND_ANCHOR_, values, PROF_NO_ARGS);
    npuprof_fw_keep_last_(npuprof_fw_arena_, npu->kept_, NPUPROF_NPU_KEPT_, token);
    return NPUPROF_OK;
}

static npuprof_result npuprof_npu_wrong_counter_(const char *why)
{
    NPUPROF_UNUSED_(why);
    return NPUPROF_ERR_NPU_COUNTER;
}

/* A result for the user. Firmware knows nothing more of it. */
static npuprof_result npuprof_npu_explain_result_(const npuprof_npu *npu, npuprof_result result)
{
    NPUPROF_UNUSED_(npu);
    return result;
}

/* A counter that stands because of a requirement that does not hold. */
static npuprof_result npuprof_npu_not_enabled_(const npuprof_npu_requirement *unmet, uint64_t word)
{
    NPUPROF_UNUSED_(unmet);
    NPUPROF_UNUSED_(word);
    return NPUPROF_ERR_NPU_NOT_ENABLED;
}

/* The anchor from which the rate is measured, up to the last one. Firmware has two. */
static const npuprof_anchor_ *npuprof_npu_rate_begin_(const npuprof_npu *npu)
{
    return &npu->anchors_[npu->anchor_count_ - 2];
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "types.h"
#include "mmio.h"

/* Why a counter stands: the fields of registers that must have a value for it to run (desc.requirements).
   They are only read, and only when the counter stands: at open and where a result is explained. Also what
   open checks of them, and of any range of registers. Owns no data. */

/* Whether [offset, offset + bytes) is aligned to `align`; *end grows to the end of it. */
static bool npuprof_npu_cover_range_(size_t offset, size_t bytes, size_t align, size_t *end)
{
    if (offset % align || bytes > SIZE_MAX / 2 || offset > SIZE_MAX / 2) return false;
    if (offset + bytes > *end) *end = offset + bytes;
    return true;
}

/* Checks desc.requirements. *needed grows to the bytes of BAR that they reach. */
static npuprof_result npuprof_npu_check_requirements_(const npuprof_npu_desc *d, size_t *needed)
{
    for (unsigned i = 0; i < d->requirement_count; i++) {
        const npuprof_npu_requirement *r = d->requirements ? &d->requirements[i] : NULL;
        if (!r || !r->text)
            return NPUPROF_REFUSE_("npuprof_npu_open: desc.requirements, or the text of one, is NULL");
        const unsigned access = r->access ? r->access : 32;
        if (access != 32 && access != 64)
            return NPUPROF_REFUSE_("npuprof_npu_open: access of a requirement is not 32 or 64");
        if (!r->mask || r->value & ~r->mask || r->mask & ~npuprof_npu_mask_(access))
            return NPUPROF_REFUSE_("npuprof_npu_open: mask and value of a requirement can never agree");
        if (!npuprof_npu_cover_range_(r->offset, access / 8, access / 8, needed))
            return NPUPROF_ERR_NPU_RANGE;
    }
    return NPUPROF_OK;
}

/* The first requirement that does not hold; NULL: all hold, or nobody can tell. *word: what was read. */
static const npuprof_npu_requirement *npuprof_npu_find_unmet_(npuprof_npu *npu, uint64_t *word)
{
    const npuprof_npu_desc *d = &npu->desc_;
    if (!d->requirement_count || !npuprof_npu_is_on_(npu)) return NULL;
    for (unsigned i = 0; i < d->requirement_count; i++) {
        const npuprof_npu_requirement *r = &d->requirements[i];
        const unsigned bytes = r->access == 64 ? 8 : 4;
        *word = npuprof_npu_load_register_(npu, r->offset, bytes, d->counter.big_endian);
        if (*word == npuprof_npu_mask_(8 * bytes)) return NULL;  /* Why: it may be a device that is dead. */
        if ((*word & r->mask) != r->value) return r;
    }
    return NULL;
}

/* A result for the user: instead of a counter that stands the enable bit that is missing, instead of a dead
   device why it is dead, where that can be found out. */
static npuprof_result npuprof_npu_explain_(npuprof_npu *npu, npuprof_result result)
{
    uint64_t word = 0;
    if (result != NPUPROF_ERR_NPU_STOPPED) return npuprof_npu_explain_result_(npu, result);
    const npuprof_npu_requirement *unmet = npuprof_npu_find_unmet_(npu, &word);
    return unmet ? npuprof_npu_not_enabled_(unmet, word) : result;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../public/hot.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"

/* What a cell says, for all policies: whether it begins an event, and the way through the fields of a record.
   Reads cells only. */

/* Spans of PROF_BEGIN, a stack for each context. top: token of the innermost. skipped: PROF_BEGINs after it
   that were not recorded. While such a span is open, its cell keeps both as they were before it:
   npuprof_fw_save_() of the policy. */
typedef struct npuprof_fw_by_hand_ {
    npuprof_token_ top;
    uint16_t skipped;
} npuprof_fw_by_hand_;

/* Whether a record that is there is an event. */
static inline bool npuprof_fw_says_event_(const npuprof_cell_ *head)
{
    return !(head->ref & 2) || (head->ref >> 8 & 0xFF) - 1 < NPUPROF_CELL_KIND_THREAD_ - 1;
}

static inline uint32_t npuprof_fw_context_of_(const npuprof_cell_ *head)
{
    return head->high.half[0] & NPUPROF_FW_CONTEXT_MASK_;
}

/* The upper bits of a stamp and the context, as half[0] has them. */
static inline uint16_t npuprof_fw_high_half_(uint64_t now, uint32_t context)
{
    return (uint16_t)((uint32_t)(now >> 32) << NPUPROF_CONTEXT_BITS_ | context);
}

/* half[1] of a span that ends then. */
static inline uint16_t npuprof_fw_end_half_(uint64_t stamp)
{
    return (uint16_t)((uint32_t)(stamp >> 32) & 0x7FFF);
}

static uint64_t npuprof_fw_first_stamp_(const npuprof_compact_header_ *c)
{
    return (uint64_t)c->first_high << 32 | c->first_low;
}
#define NPUPROF_BITS_MASK_(bits) (UINT64_MAX >> (64 - (bits)))
#define NPUPROF_FW_RANGE_ NPUPROF_BITS_MASK_(NPUPROF_CELL_STAMP_BITS_ - NPUPROF_CONTEXT_BITS_)

/* The cell after a field and its text. */
static const npuprof_cell_ *npuprof_fw_after_field_(const npuprof_cell_ *field)
{
    return field + 1 + (NPUPROF_FIELD_LENGTH_(field->start) + 7) / 16;
}

/* The next field of a record: the first one if `at` is the head. After the last one NULL, and *end is where
   the next record may begin. */
static const npuprof_cell_ *npuprof_fw_next_field_(const npuprof_cell_ *at, bool head,
                                                   const npuprof_cell_ **end)
{
    const bool more = head ? at->ref & 1 : at->start & NPUPROF_FIELD_MORE_;
    *end = head ? at + 1 : npuprof_fw_after_field_(at);
    return more ? *end : NULL;
}

/* A record's field of that type, or NULL; *end is where the next record begins. */
static inline const npuprof_cell_ *npuprof_fw_find_field_(const npuprof_cell_ *head, uint32_t type,
                                                          const npuprof_cell_ **end)
{
    const npuprof_cell_ *found = NULL;
    const npuprof_cell_ *f = npuprof_fw_next_field_(head, true, end);
    for (; f; f = npuprof_fw_next_field_(f, false, end))
        if ((f->start & 0xFF) == type) found = f;
    return found;
}


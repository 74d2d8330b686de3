#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/time.h"
#include "../format/compact.h"
#include "../os/none.h"

/* The whole library where there is no OS: a recorder into one list of cells, and a JSON writer.
   Why not the one below: slots, chunks, a table of names, clocks to fit and lanes are not needed to record on a microcontroller, and
   take more flash than it has. npuprof_load() makes of the cells what the one below would have recorded, so every output and
   report is there on the host. The JSON writer here is for who has no host at hand: it writes the cells in their order, without
   ids and lanes; finished and device spans are left out there, and counted. */

#if defined(NPUPROF_NAMES_SECTION) && !defined(NPUPROF_NO_JSON)
#error "npuprof.h: with NPUPROF_NAMES_SECTION the target does not know the names; define NPUPROF_NO_JSON, too"
#endif

#define NPUPROF_CONTEXT_BITS_                                                                                             \
    ((NPUPROF_CONTEXTS > 1) + (NPUPROF_CONTEXTS > 2) + (NPUPROF_CONTEXTS > 4) + (NPUPROF_CONTEXTS > 8) + (NPUPROF_CONTEXTS > 16) + \
     (NPUPROF_CONTEXTS > 32) + (NPUPROF_CONTEXTS > 64) + (NPUPROF_CONTEXTS > 128))
enum { NPUPROF_FW_HEADER_CELLS_ = sizeof(npuprof_compact_header_) / sizeof(npuprof_cell_) };
#define NPUPROF_FW_CELLS_IN_(bytes) (((bytes) - sizeof(npuprof_compact_header_)) / sizeof(npuprof_cell_))

typedef struct npuprof_fw_by_hand_ { npuprof_token_ top; uint16_t skipped; } npuprof_fw_by_hand_;   /* skipped: PROF_BEGINs after top, not recorded */

#if NPUPROF_ARENA_BYTES
/* Why the address and the size are constants: an instruction less for each. */
static struct { npuprof_compact_header_ header; npuprof_cell_ cells[NPUPROF_FW_CELLS_IN_(NPUPROF_ARENA_BYTES)]; } npuprof_static_arena_
    NPUPROF_ATTRIBUTE_((aligned(8)));
#define npuprof_fw_arena_ (&npuprof_static_arena_.header)
#define NPUPROF_FW_CELL_COUNT_() ((uint32_t)NPUPROF_FW_CELLS_IN_(NPUPROF_ARENA_BYTES))
#else
/* Why never NULL: the header of nothing is all zero, so it has no cells. */
static npuprof_compact_header_ npuprof_nothing_;
static npuprof_compact_header_ *npuprof_fw_arena_ = &npuprof_nothing_;
#define NPUPROF_FW_CELL_COUNT_() npuprof_fw_arena_->cells
#endif
static npuprof_fw_by_hand_ npuprof_fw_by_hand_of_[1u << NPUPROF_CONTEXT_BITS_];
static npuprof_token_ npuprof_fw_pause_token_;
static int npuprof_fw_level_;
#ifndef NPUPROF_STATIC
int npuprof_gate_ = INT_MIN;
#endif

static npuprof_cell_ *npuprof_fw_cells_(const npuprof_compact_header_ *c) { return (npuprof_cell_ *)(uintptr_t)(c + 1); }

#define NPUPROF_FW_NO_CELL_ UINT32_MAX
#if !NPUPROF_MASKS_
/* Cells from `at` on were taken, and are too few: counts that. Those that are there stay empty.
   Why not given back: who took others meanwhile has them from further on. */
static NPUPROF_NOINLINE_ uint32_t npuprof_fw_lose_cells_(npuprof_compact_header_ *c, uint32_t at, uint32_t *lost)
{
    const uint32_t cells = NPUPROF_FW_CELL_COUNT_();
    uint32_t used = NPUPROF_LOAD_(&c->used);
    for (; at < cells; at++) NPUPROF_STORE_(&npuprof_fw_cells_(c)[at].ref, NPUPROF_CELL_CLEARED_);
    if (used > cells) (void)NPUPROF_CAS_RELAXED_(&c->used, &used, cells);    /* it must not come round to 0 */
    NPUPROF_INCREMENT_(lost);
    return NPUPROF_FW_NO_CELL_;
}
#endif
/* Takes count cells: the number of the first, or NPUPROF_FW_NO_CELL_: they do not fit, and *lost is one more. In NPUPROF_WHOLE_*. */
static inline uint32_t npuprof_fw_reserve_cells_(npuprof_compact_header_ *c, uint32_t count, uint32_t *lost)
{
#if NPUPROF_MASKS_
    const uint32_t at = c->used;
    if (NPUPROF_UNLIKELY_(count > NPUPROF_FW_CELL_COUNT_() - at)) {
        NPUPROF_INCREMENT_(lost);
        return NPUPROF_FW_NO_CELL_;
    }
    c->used = at + count;
    return at;
#else
    const uint32_t at = NPUPROF_ADD_(&c->used, count);
    return NPUPROF_LIKELY_(at < NPUPROF_FW_CELL_COUNT_() && count <= NPUPROF_FW_CELL_COUNT_() - at) ? at : npuprof_fw_lose_cells_(c, at, lost);
#endif
}

/* Now, in 47 bits or more. A narrower clock is extended by the word c->clock, which is all of the stamp but its low bits. In
   NPUPROF_WHOLE_*.
   Why the clock again when the word has changed: who comes back after a period would else put it back by that period. */
static inline uint64_t npuprof_fw_stamp_(npuprof_compact_header_ *c)
{
    enum { BITS = NPUPROF_CLOCK_BITS_, LOW = BITS >= 24 ? 16 : BITS / 2, HIGH = BITS < 48 ? BITS - LOW : 1 };
    if (BITS >= 48) return npuprof_user_now_();
    uint32_t before = NPUPROF_LOAD_(&c->clock), word;
    uint64_t wide = 0;
    uint32_t now;
    do {
        /* Why two ways: a clock of 32 bits needs no arithmetic of 64. */
        if (BITS > 32) wide = npuprof_user_now_();
        now = BITS > 32 ? (uint32_t)(wide >> LOW) : (uint32_t)npuprof_user_now_();
        word = before + (((BITS > 32 ? now : now >> LOW) - before) & (((uint32_t)1 << (HIGH & 31)) - 1));
    } while (!NPUPROF_REPLACE_(&c->clock, &before, word));
    if (BITS == 32) return (uint64_t)(word >> LOW) << 32 | now;
    return (uint64_t)word << LOW | ((BITS > 32 ? (uint32_t)wide : now) & (((uint32_t)1 << LOW) - 1));
}
/* The same for who is not in NPUPROF_WHOLE_*. */
static NPUPROF_NOINLINE_ uint64_t npuprof_fw_stamp_masked_(npuprof_compact_header_ *c)
{
    NPUPROF_MASKED_BEGIN_
    const uint64_t now = npuprof_fw_stamp_(c);
    NPUPROF_MASKED_END_
    return now;
}

/* Why masked: a wrong number must not write beyond what there is for each. */
static inline uint32_t npuprof_fw_context_(void)
{
    return NPUPROF_CONTEXT_BITS_ ? npuprof_user_context_() & ((1u << NPUPROF_CONTEXT_BITS_) - 1) : 0;
}
static inline uint16_t npuprof_fw_high_half_(uint64_t now)
{
    return (uint16_t)((uint32_t)(now >> 32) << NPUPROF_CONTEXT_BITS_ | npuprof_fw_context_());
}
static inline npuprof_token_ npuprof_fw_begin_cell_(npuprof_compact_header_ *c, const npuprof_site_ *site, uint64_t now)
{
    const uint32_t at = npuprof_fw_reserve_cells_(c, 1, &c->lost);
    if (NPUPROF_UNLIKELY_(at == NPUPROF_FW_NO_CELL_)) return 0;
    /* Why not npuprof_fw_cells_(): the header's size goes into the instructions then. */
    npuprof_cell_ *cell = (npuprof_cell_ *)(uintptr_t)c + at;
    cell[NPUPROF_FW_HEADER_CELLS_].start = (uint32_t)now;
    cell[NPUPROF_FW_HEADER_CELLS_].high.half[0] = npuprof_fw_high_half_(now);
    cell[NPUPROF_FW_HEADER_CELLS_].high.half[1] = NPUPROF_CELL_OPEN_;
    NPUPROF_SIGNAL_FENCE_();
    NPUPROF_STORE_(&cell[NPUPROF_FW_HEADER_CELLS_].ref, (uint32_t)(uintptr_t)site);
    return at + 1;
}
/* The open span of that token, or NULL.
   Why the question: a goto past a scope leaves garbage in its token; garbage must not write anywhere. */
static inline npuprof_cell_ *npuprof_fw_open_cell_(const npuprof_compact_header_ *c, npuprof_token_ token)
{
    if (NPUPROF_UNLIKELY_(token > NPUPROF_FW_CELL_COUNT_())) return NULL;
    npuprof_cell_ *cell = (npuprof_cell_ *)(uintptr_t)c + token;
    return NPUPROF_LIKELY_(NPUPROF_LOAD_(&cell[NPUPROF_FW_HEADER_CELLS_ - 1].high.half[1]) & NPUPROF_CELL_OPEN_) ? cell + (NPUPROF_FW_HEADER_CELLS_ - 1) : NULL;
}
static inline void npuprof_fw_end_cell_(npuprof_compact_header_ *c, npuprof_token_ token, uint64_t now)
{
    npuprof_cell_ *cell = (npuprof_cell_ *)(uintptr_t)c + token;
    if (NPUPROF_UNLIKELY_(!npuprof_fw_open_cell_(c, token))) return;
    NPUPROF_STORE_(&cell[NPUPROF_FW_HEADER_CELLS_ - 1].end, (uint32_t)now);
    NPUPROF_STORE_(&cell[NPUPROF_FW_HEADER_CELLS_ - 1].high.half[1], (uint16_t)((uint32_t)(now >> 32) & 0x7FFF));
}

NPUPROF_API_ npuprof_token_ npuprof_begin_(const npuprof_site_ *site)
{
    NPUPROF_MASKED_BEGIN_
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const npuprof_token_ token = npuprof_fw_begin_cell_(c, site, npuprof_fw_stamp_(c));
    NPUPROF_MASKED_END_
    return token;
}
NPUPROF_API_ void npuprof_close_(npuprof_token_ token)
{
    NPUPROF_MASKED_BEGIN_
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_fw_end_cell_(c, token, npuprof_fw_stamp_(c));
    NPUPROF_MASKED_END_
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../public/hot.h"
#include "../numbers/time.h"
#include "../format/compact.h"
#include "../os/none.h"

/* The memory of the recorder without an operating system: one list of cells (format/compact.h), the clock
   that stamps them, and their set-up.
   Why another recorder: slots, chunks, a table of names, clocks to fit and lanes are not needed on a
   microcontroller, and take more flash than it has. The host makes of the cells what its own recorder would
   have recorded, so every output and report is there.

   Owns the arena:
     header.used    how many cells are taken: >>firmware/cells and >>firmware/ring.
     header.clock   the stamp without its low bits, moved on by who reads the clock.
     header.lost, lost_notes   any task counts.
     cells          who takes them owns them until the record is finished.
     the rest       written by npuprof_fw_set_up_(), before anything is recorded.
   May not know events. */

#if defined(NPUPROF_NAMES_SECTION) && !defined(NPUPROF_NO_JSON)
#error "npuprof.h: with NPUPROF_NAMES_SECTION the target does not know the names; define NPUPROF_NO_JSON, too"
#endif

#define NPUPROF_CONTEXT_BITS_                                                                          \
    ((NPUPROF_CONTEXTS > 1) + (NPUPROF_CONTEXTS > 2) + (NPUPROF_CONTEXTS > 4) + (NPUPROF_CONTEXTS > 8) + \
     (NPUPROF_CONTEXTS > 16) + (NPUPROF_CONTEXTS > 32) + (NPUPROF_CONTEXTS > 64) + (NPUPROF_CONTEXTS > 128))
#define NPUPROF_FW_CONTEXT_MASK_ (((uint32_t)1 << NPUPROF_CONTEXT_BITS_) - 1)
enum { NPUPROF_FW_HEADER_CELLS_ = sizeof(npuprof_compact_header_) / sizeof(npuprof_cell_) };
#ifdef NPUPROF_CHECKED                   /* 16 cells and their check */
#define NPUPROF_FW_CELLS_IN_(bytes) (((bytes) - sizeof(npuprof_compact_header_) - 4) / 65 * 4)
#else
#define NPUPROF_FW_CELLS_IN_(bytes) (((bytes) - sizeof(npuprof_compact_header_)) / sizeof(npuprof_cell_))
#endif

#if NPUPROF_ARENA_BYTES
/* Why address and size are constants: each saves an instruction. */
static struct {
    npuprof_compact_header_ header;
    npuprof_cell_ cells[NPUPROF_FW_CELLS_IN_(NPUPROF_ARENA_BYTES)];
#ifdef NPUPROF_CHECKED
    uint32_t checks[(NPUPROF_FW_CELLS_IN_(NPUPROF_ARENA_BYTES) + 15) / 16];
#endif
} npuprof_static_arena_ NPUPROF_ATTRIBUTE_((aligned(8)));
#define npuprof_fw_arena_ (&npuprof_static_arena_.header)
#define NPUPROF_FW_CELL_COUNT_() ((uint32_t)NPUPROF_FW_CELLS_IN_(NPUPROF_ARENA_BYTES))
#else
/* Why never NULL: the header of no arena is all zero, so it has no cells, and needs no question. */
static npuprof_compact_header_ npuprof_fw_no_arena_;
static npuprof_compact_header_ *npuprof_fw_arena_ = &npuprof_fw_no_arena_;
#define NPUPROF_FW_CELL_COUNT_() npuprof_fw_arena_->cells
#endif
#ifndef NPUPROF_STATIC
int npuprof_gate_ = INT_MIN;
#endif

static npuprof_cell_ *npuprof_fw_cells_(const npuprof_compact_header_ *c)
{
    return (npuprof_cell_ *)(uintptr_t)(c + 1);
}

/* Why by hand: a compiler turns a loop that it knows into a call of strlen or memcpy, which may not be there.
   */
static uint32_t npuprof_fw_text_length_(const char *text)
{
    uint32_t n = 0;
    while (NPUPROF_LOAD_(text + n)) n++;
    return n;
}

static void npuprof_fw_copy_bytes_(uint8_t *to, const void *from, size_t count)
{
    for (size_t i = 0; i < count; i++) NPUPROF_STORE_(to + i, ((const uint8_t *)from)[i]);
}

/* Stores the stamp without its low bits, which was *before. False: another task changed it; *before is now
   what it is. Why it is only looked at if it stays: that is shorter than an exclusive store. */
NPUPROF_ALWAYS_INLINE_ bool npuprof_fw_move_clock_(uint32_t *clock, uint32_t *before, uint32_t word)
{
#if !NPUPROF_MASKS_
    if (NPUPROF_LIKELY_(word == *before)) return (*before = NPUPROF_LOAD_(clock)) == word;
#endif
    return NPUPROF_REPLACE_(clock, before, word);
}

/* Now, in 47 bits or more. A narrower clock is extended by c->clock, which is the stamp without its low bits.
   Why it reads the clock again when another task changed c->clock: a task that was interrupted for a period
   of the clock would else put c->clock back by that period. */
NPUPROF_ALWAYS_INLINE_ uint64_t npuprof_fw_stamp_here_(npuprof_compact_header_ *c)
{
    enum {
        BITS = NPUPROF_CLOCK_BITS_,
        LOW = BITS >= 24 ? 16 : BITS / 2,          /* bits that are not in c->clock */
        HIGH = BITS < 48 ? BITS - LOW : 1          /* bits of the clock that are */
    };
    if (BITS >= 48) return npuprof_user_now_();
#if NPUPROF_ARENA_BYTES
    c = npuprof_fw_arena_;                         /* so that nobody passes a constant */
#endif
    uint64_t wide = 0;
    uint32_t now;
    NPUPROF_KNOWN_(c);
    NPUPROF_MASKED_BEGIN_
    uint32_t before = NPUPROF_LOAD_(&c->clock), word;
    do {
        /* Why two ways: a clock of 32 bits needs no arithmetic of 64. */
        if (BITS > 32) wide = npuprof_user_now_();
        now = BITS > 32 ? (uint32_t)(wide >> LOW) : (uint32_t)npuprof_user_now_();
        word = before + (((BITS > 32 ? now : now >> LOW) - before) & (((uint32_t)1 << (HIGH & 31)) - 1));
    } while (!npuprof_fw_move_clock_(&c->clock, &before, word));
    NPUPROF_MASKED_END_
    if (BITS == 32) return (uint64_t)(word >> LOW) << 32 | now;
    return (uint64_t)word << LOW | ((BITS > 32 ? (uint32_t)wide : now) & (((uint32_t)1 << LOW) - 1));
}

static inline uint64_t npuprof_fw_stamp_(npuprof_compact_header_ *c) { return npuprof_fw_stamp_here_(c); }

/* The same, read where it stands in the program, as npuprof_clock_in_order_() on a host. */
NPUPROF_ATTRIBUTE_((unused)) static uint64_t npuprof_fw_stamp_in_order_(npuprof_compact_header_ *c)
{
    NPUPROF_CLOCK_FENCE_();
    const uint64_t now = npuprof_fw_stamp_(c);
    NPUPROF_CLOCK_FENCE_();
    return now;
}

/* The same where few registers are left. Why: what does not fit into them is moved with interrupts off. */
NPUPROF_ATTRIBUTE_((unused))
static NPUPROF_NOINLINE_ uint64_t npuprof_fw_stamp_apart_(npuprof_compact_header_ *c)
{
    return npuprof_fw_stamp_here_(c);
}

/* Why masked: a wrong number must not write beyond what there is for each context. */
static inline uint32_t npuprof_fw_context_(void)
{
    return NPUPROF_CONTEXT_BITS_ ? npuprof_user_context_() & NPUPROF_FW_CONTEXT_MASK_ : 0;
}


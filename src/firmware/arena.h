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
     header.used    how many cells are taken; grows by an addition, or with interrupts masked. Who takes cells
     owns
                    them until he stores the first one's `ref`, last of all. It may pass header.cells: then
                    all are taken.
     header.clock   the stamp without its low bits, moved on by who reads the clock.
     header.lost, lost_notes   any task counts.
     the rest       written by npuprof_fw_set_up_(), before anything is recorded.
   May not know events. */

#if defined(NPUPROF_NAMES_SECTION) && !defined(NPUPROF_NO_JSON)
#error "npuprof.h: with NPUPROF_NAMES_SECTION the target does not know the names; define NPUPROF_NO_JSON, too"
#endif

#define NPUPROF_CONTEXT_BITS_                                                                          \
    ((NPUPROF_CONTEXTS > 1) + (NPUPROF_CONTEXTS > 2) + (NPUPROF_CONTEXTS > 4) + (NPUPROF_CONTEXTS > 8) + \
     (NPUPROF_CONTEXTS > 16) + (NPUPROF_CONTEXTS > 32) + (NPUPROF_CONTEXTS > 64) + (NPUPROF_CONTEXTS > 128))
enum { NPUPROF_FW_HEADER_CELLS_ = sizeof(npuprof_compact_header_) / sizeof(npuprof_cell_) };
#define NPUPROF_FW_CELLS_IN_(bytes) (((bytes) - sizeof(npuprof_compact_header_)) / sizeof(npuprof_cell_))

#if NPUPROF_ARENA_BYTES
/* Why address and size are constants: each saves an instruction. */
static struct {
    npuprof_compact_header_ header;
    npuprof_cell_ cells[NPUPROF_FW_CELLS_IN_(NPUPROF_ARENA_BYTES)];
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

#define NPUPROF_FW_NO_CELL_ UINT32_MAX
#if !NPUPROF_MASKS_
/* Cells from `at` on were taken and are too few: counts that as lost. Those that exist stay empty.
   Why they are not given back: whoever took cells meanwhile has those after them. */
static NPUPROF_NOINLINE_ uint32_t npuprof_fw_lose_cells_(npuprof_compact_header_ *c, uint32_t at,
                                                         uint32_t *lost)
{
    const uint32_t cells = NPUPROF_FW_CELL_COUNT_();
    uint32_t used = NPUPROF_LOAD_(&c->used);
    for (; at < cells; at++) NPUPROF_STORE_(&npuprof_fw_cells_(c)[at].ref, NPUPROF_CELL_CLEARED_);
    if (used > cells) (void)NPUPROF_CAS_RELAXED_(&c->used, &used, cells);    /* it must not wrap to 0 */
    NPUPROF_INCREMENT_(lost);
    return NPUPROF_FW_NO_CELL_;
}
#endif

/* Takes `count` cells: the number of the first. NPUPROF_FW_NO_CELL_: they do not fit, and *lost is one more.
   Call between NPUPROF_MASKED_BEGIN_ and _END_. */
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
    const uint32_t at = NPUPROF_ADD_(&c->used, count), cells = NPUPROF_FW_CELL_COUNT_();
    return NPUPROF_LIKELY_(at < cells && count <= cells - at) ? at : npuprof_fw_lose_cells_(c, at, lost);
#endif
}

/* Now, in 47 bits or more. A narrower clock is extended by c->clock, which is the stamp without its low bits.
   Call between NPUPROF_MASKED_BEGIN_ and _END_.
   Why it reads the clock again when another task changed c->clock: a task that was interrupted for a period
   of the clock would else put c->clock back by that period. */
static inline uint64_t npuprof_fw_stamp_(npuprof_compact_header_ *c)
{
    enum {
        BITS = NPUPROF_CLOCK_BITS_,
        LOW = BITS >= 24 ? 16 : BITS / 2,          /* bits that are not in c->clock */
        HIGH = BITS < 48 ? BITS - LOW : 1          /* bits of the clock that are */
    };
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

/* The same, with interrupts masked as needed. */
static NPUPROF_NOINLINE_ uint64_t npuprof_fw_stamp_masked_(npuprof_compact_header_ *c)
{
    NPUPROF_MASKED_BEGIN_
    const uint64_t now = npuprof_fw_stamp_(c);
    NPUPROF_MASKED_END_
    return now;
}

/* Why masked: a wrong number must not write beyond what there is for each context. */
static inline uint32_t npuprof_fw_context_(void)
{
    return NPUPROF_CONTEXT_BITS_ ? npuprof_user_context_() & ((1u << NPUPROF_CONTEXT_BITS_) - 1) : 0;
}

/* Why a function: the user's expression sees no names of ours. */
#ifdef NPUPROF_BUILD_ID
static const uint8_t *npuprof_user_build_id_(void) { return (const uint8_t *)(NPUPROF_BUILD_ID); }
enum { NPUPROF_BUILD_KIND_ = NPUPROF_BUILD_GNU_ };
#else
enum { NPUPROF_BUILD_KIND_ = NPUPROF_BUILD_UNKNOWN_ };
#endif

/* Makes an arena of that memory, and begins the trace. `cells` is stored last: it says that the arena is
   ready. */
static void npuprof_fw_set_up_(void *memory, size_t bytes)
{
    static const struct {
        uint8_t magic[8];
        uint32_t words[4];
        uint8_t bytes[4];
    } blank = {
        { 'N', 'P', 'U', 'P', 'R', 'O', 'F', '\n' },
        { 0x01020304u, 1, NPUPROF_LAYOUT_COMPACT, sizeof(npuprof_compact_header_) },
        { NPUPROF_CLOCK_BITS_, NPUPROF_CONTEXT_BITS_, sizeof(void *), NPUPROF_BUILD_KIND_ },
    };
    npuprof_compact_header_ *c = (npuprof_compact_header_ *)memory;
#if !NPUPROF_ARENA_BYTES
    for (size_t i = 0; i < bytes / 4; i++) NPUPROF_STORE_((uint32_t *)memory + i, 0);
    npuprof_fw_arena_ = c;
#endif
    npuprof_fw_copy_bytes_((uint8_t *)c, &blank, sizeof blank);
    c->hz_low = (uint32_t)npuprof_user_hz_();
    if (npuprof_user_hz_() >> 32) c->hz_high = (uint32_t)(npuprof_user_hz_() >> 32);
    if (sizeof(void *) > 4) {
        c->address_low = (uint32_t)(uintptr_t)&blank;
        c->address_high = (uint32_t)((uint64_t)(uintptr_t)&blank >> 32);
    }
#ifdef NPUPROF_BUILD_ID
    const uint8_t *const id = npuprof_user_build_id_() + NPUPROF_BUILD_NOTE_HEAD_;
    npuprof_fw_copy_bytes_((uint8_t *)&c->build, id, sizeof c->build);
#endif
    const uint64_t now = npuprof_fw_stamp_(c);
    c->first_low = (uint32_t)now;
    c->first_high = (uint32_t)(now >> 32);
    NPUPROF_STORE_(&c->cells, (uint32_t)NPUPROF_FW_CELLS_IN_(bytes));
}

/* Whether there is an arena. A static one is set up at the first call. */
static bool npuprof_fw_is_ready_(void)
{
#if NPUPROF_ARENA_BYTES
    if (!npuprof_fw_arena_->cells) npuprof_fw_set_up_(&npuprof_static_arena_, NPUPROF_ARENA_BYTES);
    return true;
#else
    return npuprof_fw_arena_->cells != 0;
#endif
}

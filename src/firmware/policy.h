#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"
#include "cells.h"
#include "oldest.h"
#include "newest.h"
#include "stream.h"

/* The policy: what happens when the cells are all taken. NPUPROF_WHEN_FULL chooses one of three files:
   oldest.h, newest.h, stream.h; the last two have ring.h in common. The rest of the room calls these
   functions, npuprof_fw_ before each name, and asks nothing. A token is what names a record in cells, from
   when it is taken until it is finished, and for an open span until it ends; 0: no cells, so no record.

   Set-up
     begin_trace_(c, cells)   first words of the header; how many of so many cells can be used
     check_sink_(desc)        whether npuprof_init() may go on; keep_sink_(desc) when it did
   Recording
     near_cell_(c, token)     the head of the record is element NPUPROF_FW_HEAD_ of it. Why an element: so the
                              header's size becomes part of the instructions. cell_(c, token): that head
     take_(c, count, lost)    takes cells: a token. take_now_(c, &now): one cell, and the stamp
     publish_half_(head, ref, half)      the last thing done to a record: now it is there, with that half[1].
                              NPUPROF_FW_OPEN_HALF_(token): that of a span that is still to be ended, or of a
                              record that is kept
     tally_(c, token, lost)   counts a record, after it is there, or one that did not fit. lost: the header's
                              lost or lost_notes
     open_cell_(c, token)     the open span, or NULL. Why it asks: a goto past a scope leaves garbage in its
                              token, and garbage must not write anywhere
     end_cell_(c, token, now) ends that span; end_found_(cell, now) the open one that open_cell_() found
     take_short_(c, count, &head, &token)    the usual way of a record with values, which is then counted:
                              true. begin_short_(head, ref, count) says at once how long it is, and
                              publish_short_(head, ref, half) is the last thing. False: put_long_() of event.h
     is_kept_(ref)            whether a record stays however much comes after it, until notes.h lets it go;
                              keep_last_(c, kept, count, token): of such records only the last `count` stay,
                              which are kept[]
     save_(cell, h)           what an open PROF_BEGIN keeps of its stack, and restore_(cell, h) back
     NPUPROF_FW_CELLS_WORD_(count)       what the first field of a record of so many cells says of them
     NPUPROF_FW_KEEPS_ALL_    whether it is defined: what is recorded stays, and stays where it is
   Reading
     hold_(c), let_go_(c)     a reader begins, unless another is at work, and ends
     used_cells_(c)           cells to read; oldest_ is the index of the first one in time
     is_there_(head)          whether a record is there, and nobody is writing it
     after_record_(head)      where the next one begins; next_record_(at, end): the next in the order of time
                              but for those that are kept, after the last one `end`
     recorded_of_(found), lost_of_(c, found)    events, if so many are there. NPUPROF_FW_LOST_: why they are
                              lost; NPUPROF_FW_CAUSE_ the same as text
     set_image_words_(h, used)           the header of an image that begins with the oldest cell
     token_of_(c, head)       the token of an open span; age_(head, age_now_()): how old it is
     find_zero_(c)            before since_first_(high, low): ticks since the trace began
     is_of_(result, token, head), first_after_(head)    whether a result that names that token is of the span
                              at head, and where such records begin
     NPUPROF_FW_CAN_WRITE_    whether image and JSON are written on the target
   and npuprof_clear(), npuprof_poll(), npuprof_flush(): those of a stream are in poll.h. */

static bool npuprof_fw_is_event_(const npuprof_cell_ *head)
{
    return npuprof_fw_is_there_(head) && npuprof_fw_says_event_(head);
}

static const npuprof_cell_ *npuprof_fw_cells_end_(const npuprof_compact_header_ *c)
{
    return npuprof_fw_cells_(c) + npuprof_fw_used_cells_(c);
}

#define NPUPROF_FW_EACH_RECORD_(at, end)                                                           \
    (const npuprof_cell_ *at = npuprof_fw_cells_(npuprof_fw_arena_) + npuprof_fw_oldest_; at < end; \
     at = npuprof_fw_next_record_(at, end))

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
        { NPUPROF_CLOCK_BITS_, NPUPROF_CONTEXT_BITS_, sizeof(void *),
          NPUPROF_BUILD_KIND_ | NPUPROF_WHEN_FULL << 4 },
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
#ifdef NPUPROF_CHECKED
    c->crc = NPUPROF_COMPACT_CHECKED_;
#endif
    const uint32_t cells = npuprof_fw_begin_trace_(c, (uint32_t)NPUPROF_FW_CELLS_IN_(bytes));
    const uint64_t now = npuprof_fw_stamp_(c);
    c->first_low = (uint32_t)now;
    c->first_high = (uint32_t)(now >> 32);
    NPUPROF_STORE_(&c->cells, cells);
}

/* Whether there is an arena. A static one is set up at the first call; it is always there, which the compiler
   then knows. */
#if NPUPROF_ARENA_BYTES
static void npuprof_fw_make_ready_(void)
{
    if (!npuprof_fw_arena_->cells) npuprof_fw_set_up_(&npuprof_static_arena_, NPUPROF_ARENA_BYTES);
}
#define npuprof_fw_is_ready_() (npuprof_fw_make_ready_(), true)

#else /* !NPUPROF_ARENA_BYTES */
static bool npuprof_fw_is_ready_(void) { return npuprof_fw_arena_->cells != 0; }
#endif

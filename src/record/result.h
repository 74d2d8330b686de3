#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../clock/host.h"
#include "../arena/table.h"
#include "../arena/slots.h"
#include "enter.h"
#include "args.h"
#include "span.h"
#include "begin.h"
#include "thread.h"

/* PROF_RESULT: arguments of a span that become known while it is open. They are a RESULT record at the
   cursor, which names the span by its position, and the span's call site becomes one whose spans have results
   (format/arena.h). So a span without results costs nothing more, here or in a reader.
   Words: those of span.h; and w0 of the open span once more, with release, when the RESULT record is whole:
   only the number of the call site changes, to that of its twin in the table. A process that is killed in
   between leaves a RESULT that no span asks for. */

/* Writes the arguments behind the place of the record, whatever they are. Returns where they end. NULL: there
   is no space, or the table is full. */
static NPUPROF_SLOW_ npuprof_unit_ *npuprof_record_write_result_(npuprof_slot_ *slot, npuprof_keys_ *keys,
                                                                 npuprof_args args, uint64_t now)
{
    const size_t units = npuprof_record_count_arg_units_(args);
    const uint32_t generation = NPUPROF_LOAD_(&npuprof_arena_generation_);
    npuprof_unit_ *const u = npuprof_record_reserve_(slot, 1 + units, now);
    if (!u) return NULL;
    if (!npuprof_record_write_args_(u + 1, keys, args)) {
        slot->end = u;                 /* as in npuprof_record_emit_() */
        return NULL;
    }
    npuprof_record_forget_keys_(keys, generation);
    NPUPROF_STORE_RELEASE_(&keys->fast, generation);
    return u + 1 + units;
}

/* Writes the record. False: there is no space, or the table is full. */
static inline bool npuprof_record_put_result_(npuprof_slot_ *slot, uint64_t position, npuprof_keys_ *keys,
                                              npuprof_args args)
{
    const uint64_t now = npuprof_clock_();
    npuprof_unit_ *behind = NULL;
    if (!NPUPROF_RECORD_SMALL_ && NPUPROF_LOAD_ACQUIRE_(&keys->fast) == NPUPROF_LOAD_(&npuprof_arena_fast_))
        behind = npuprof_record_write_args_fast_(slot, keys, args, now);
    if (!behind) behind = npuprof_record_write_result_(slot, keys, args, now);
    if (!behind) return false;
    npuprof_unit_ *const u = slot->cursor;
    npuprof_record_publish_(u, behind, now << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_RESULT_, position);
    slot->cursor = behind;
    return true;
}

/* The number of the call site that has results beside this one. keys->text is what was found last here: the
   number, its twin, and 24 bits of the generation. 0: the table is full. */
static inline uint32_t npuprof_record_twin_(npuprof_keys_ *keys, uint32_t number)
{
    const uint64_t generation = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_generation_) & 0xFFFFFFu;
    const uint64_t asked = (uint64_t)number << 44 | generation, known = NPUPROF_LOAD_(&keys->text);
    const uint64_t twin_mask = (uint64_t)NPUPROF_ID_MASK_ << 24;
    if (NPUPROF_LIKELY_((known & ~twin_mask) == asked)) return (uint32_t)(known >> 24) & NPUPROF_ID_MASK_;
    const uint32_t twin = npuprof_table_site_with_results_(number);
    if (twin) NPUPROF_STORE_(&keys->text, asked | (uint64_t)twin << 24);
    return twin;
}

/* Adds arguments to the newest open span of a slot, which has one. False: they are lost. */
static bool npuprof_record_add_result_(npuprof_slot_ *slot, npuprof_keys_ *keys, npuprof_args args)
{
    const uint64_t position = npuprof_record_position_(slot, slot->top);
    if (!npuprof_record_put_result_(slot, position, keys, args)) return false;
    /* Why only now: the span may have moved to a new chunk. */
    npuprof_unit_ *const span = npuprof_record_open_unit_(slot, slot->top);
    const uint64_t w0 = NPUPROF_LOAD_(&span->w0), mask = NPUPROF_ID_MASK_;
    const uint32_t twin = npuprof_record_twin_(keys, (uint32_t)(w0 & mask));
    if (twin) NPUPROF_STORE_RELEASE_(&span->w0, (w0 & ~mask) | twin);
    return twin != 0;
}

NPUPROF_API_ void npuprof_result_(npuprof_keys_ *keys, npuprof_args args)
{
    npuprof_slot_ *const slot = npuprof_record_enter_();
    bool lost = !slot;
    if (slot) {
        /* In a handler that interrupted a record, the spans of the thread cannot be told apart. */
        if (slot->top > slot->open) lost = !npuprof_record_add_result_(slot, keys, args);
        else lost = slot != npuprof_slot_mine_();
        npuprof_record_leave_(slot);
    }
    if (lost) npuprof_count_lost_(NPUPROF_LOST_ARGUMENTS, args.count);
}

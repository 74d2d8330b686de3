#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../public/api.h"
#include "../format/compact.h"
#include "../os/none.h"
#include "arena.h"
#include "record.h"
#include "event.h"

/* What an RTOS, or the user's own scheduler, tells the recorder: names by number, who runs on a track,
   interrupts, ticks and sleep. What it opens lies on the stack that PROF_BEGIN has for that context.
   May not know an RTOS. */

/* The reference of a record whose name is that of a number: format/compact.h. */
static uint32_t npuprof_fw_ref_of_number_(uint32_t kind, uint32_t number)
{
    return (number + 1) << 16 | NPUPROF_FW_REF_OF_KIND_(kind);
}

/* Why not npuprof_fw_put_named_(): a task is created with interrupts off, and this takes half as long. */
NPUPROF_API_ npuprof_result npuprof_name(uint32_t number, const char *name)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    bool cut;
    if (number > NPUPROF_NUMBER_MAX || !name) return NPUPROF_ERR_ARGUMENT;
    if (!npuprof_fw_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    const uint64_t now = npuprof_fw_stamp_(c);
    const uint32_t length = npuprof_fw_kept_length_(name, &cut);
    const uint32_t count = 2 + npuprof_fw_text_cells_(length);
    const npuprof_token_ token = npuprof_fw_take_fields_(c, count, &c->lost_notes);
    if (!token) {
        (void)npuprof_fw_tally_(c, 0, &c->lost_notes);
        return NPUPROF_ERR_TABLE_FULL;
    }
    npuprof_fw_slot_ *const slot = npuprof_fw_slot_of_(number + 1);
    npuprof_cell_ *const head = npuprof_fw_cell_(c, token);
    /* Why no call: else recording alone would have that function, too. */
    for (uint32_t i = 0; i < length; i++) NPUPROF_STORE_((uint8_t *)&head[1].end + i, (uint8_t)name[i]);
    head[1].ref = 0;
    head[1].start = NPUPROF_FIELD_NAME_ | length << 8 | NPUPROF_FW_CELLS_WORD_(count);
    if (npuprof_fw_has_note_(slot)) head->end = count | NPUPROF_CELL_RENAMES_;
    npuprof_fw_finish_(head, npuprof_fw_ref_of_number_(NPUPROF_CELL_KIND_NAME_, number) | 1,
                       NPUPROF_RING_ ? NPUPROF_FW_OPEN_HALF_(token) : 0, now);
    return npuprof_fw_keep_note_(slot, token);
}

/* Ends a span and begins another with the same stamp. old NULL: none ends. number NPUPROF_NOBODY: none
   begins. */
static npuprof_token_ npuprof_fw_change_(npuprof_cell_ *old, uint32_t track, uint32_t number)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    const uint64_t now = npuprof_fw_stamp_(c);
    if (old) npuprof_fw_end_found_(old, now);
    if (number > NPUPROF_NUMBER_MAX) return 0;
    const npuprof_token_ token = npuprof_fw_take_(c, 1, &c->lost);
    const uint32_t ref = npuprof_fw_ref_of_number_(NPUPROF_KIND_SPAN, number);
    return npuprof_fw_begin_cell_(c, token, ref, now, track);
}

static npuprof_fw_by_hand_ *npuprof_fw_track_(uint32_t *track)
{
    *track &= NPUPROF_FW_CONTEXT_MASK_;
    return &npuprof_fw_by_hand_of_[*track];
}

NPUPROF_API_ void npuprof_switch(uint32_t track, uint32_t number)
{
    npuprof_fw_by_hand_ *const h = npuprof_fw_track_(&track);
    npuprof_cell_ *const old = npuprof_fw_pop_(h);
    if (!NPUPROF_OPEN_(1)) number = NPUPROF_NOBODY;
    if (!old && number == NPUPROF_NOBODY) return;
    const npuprof_token_ token = npuprof_fw_change_(old, track, number);
    if (number != NPUPROF_NOBODY) npuprof_fw_push_(h, token);
}

NPUPROF_API_ void npuprof_enter(uint32_t track, uint32_t number)
{
    npuprof_fw_by_hand_ *const h = npuprof_fw_track_(&track);
    npuprof_fw_push_(h, NPUPROF_OPEN_(1) ? npuprof_fw_change_(NULL, track, number) : 0);
}

NPUPROF_API_ void npuprof_leave(uint32_t track)
{
    npuprof_fw_end_top_(npuprof_fw_track_(&track));
}

NPUPROF_API_ void npuprof_count(uint32_t number, uint64_t value)
{
    if (!NPUPROF_OPEN_(1) || number > NPUPROF_NUMBER_MAX) return;
    const uint32_t ref = npuprof_fw_ref_of_number_(NPUPROF_KIND_COUNTER_UINT, number);
    /* Why as an address, where it fits in one: of a call site, too, that is all that is recorded. */
    const uint64_t values[3] = { value, 0, 0 };
    if (sizeof(uintptr_t) < sizeof ref) (void)npuprof_fw_put_named_(ref, false, NULL, values, PROF_NO_ARGS);
    else (void)npuprof_put_value_((const npuprof_site_ *)(uintptr_t)ref, NULL, value,
                                  NPUPROF_SHAPE_EVENT_ << NPUPROF_SHAPE_SHIFT_);
}

NPUPROF_API_ void npuprof_tick(void)
{
    if (NPUPROF_CLOCK_BITS_ < 48 && npuprof_fw_arena_->cells)
        (void)npuprof_fw_stamp_(npuprof_fw_arena_);
}

/* Why the start of the trace is moved back, and a record says by how much: times since the start are then
   right on the target, too, and stay right when the record is overwritten, because all before it is. */
NPUPROF_API_ void npuprof_slept(uint64_t ticks)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    if (!ticks || !c->cells) return;
    const npuprof_token_ token = npuprof_fw_take_(c, 1, &c->lost_notes);
    (void)npuprof_fw_tally_(c, token, &c->lost_notes);
    if (!token) return;
    npuprof_cell_ *const cell = npuprof_fw_cell_(c, token);
    const uint64_t now = npuprof_fw_stamp_(c), first = npuprof_fw_first_stamp_(c) - ticks;
    uint32_t low = (uint32_t)first, high = (uint32_t)(first >> 32);
    NPUPROF_KNOWN_(low);
    NPUPROF_KNOWN_(high);
    NPUPROF_MASKED_BEGIN_
    c->first_low = low;
    c->first_high = high;
    NPUPROF_MASKED_END_
    cell->start = (uint32_t)now;
    cell->end = (uint32_t)ticks;
    cell->high.half[0] = npuprof_fw_high_half_(now, npuprof_fw_context_());
    npuprof_fw_publish_half_(cell, NPUPROF_FW_REF_OF_KIND_(NPUPROF_CELL_KIND_SLEPT_),
                             npuprof_fw_end_half_(ticks));
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../arena/table.h"
#include "../arena/chunks.h"
#include "../arena/thread.h"
#include "../arena/slots.h"
#include "enter.h"
#include "span.h"

#include <string.h>

/* What a program says about the calling thread and the process, and where the thread stands: names,
   metadata, the link from a device span to the host span that submitted it. A name may move the thread to
   another slot, so that threads of the same name, one after the other, share a track and threads of
   different names do not. Words: slot_mine, and of both slots those of state.h, while both are owned. */

/* Moves the thread to a slot for that name: one that had it, or one that nobody used. NULL: it stays, as one
   with open spans does, or one that has a name and the row for itself. full: the rows are as many as may be.
   Then *id becomes `others`, the name of all other threads, if the name is new, which is counted. */
NPUPROF_COLD_ static npuprof_slot_ *npuprof_record_move_thread_(npuprof_slot_ *slot, uint32_t *id, bool full,
                                                                uint32_t others)
{
    const bool is_named = slot->head.name && slot->named_by == slot->head.owners && slot->head.owners == 1;
    if (slot->top != slot->open || slot != npuprof_slot_mine_() || is_named) return NULL;
    npuprof_os_signals_ held;
    npuprof_os_hold_signals_(&held);
    npuprof_slot_ *other = npuprof_slot_take_free_(*id);
    if (!other && full) {
        *id = others;
        npuprof_count_lost_(NPUPROF_LOST_NOTES, 1);
        other = npuprof_slot_take_free_(*id);
    }
    if (other) NPUPROF_STORE_(&other->head.owners, other->head.owners + 1);
    else if (slot->head.name || slot->head.owners > 1) other = npuprof_slot_take_(NULL, true, &held);
    if (other) {
        NPUPROF_STORE_RELEASE_(&other->head.os_tid, slot->head.os_tid);
        other->by_hand_bits = slot->by_hand_bits;
        other->by_hand_count = slot->by_hand_count;
        NPUPROF_CALLS_(npuprof_slot_forget_calls_(other);)   /* those of now are not recorded */
        (void)npuprof_slot_become_(other);
        npuprof_record_leave_(slot);
        npuprof_slot_give_back_(slot);
    }
    npuprof_os_release_signals_(&held);
    return other;
}

/* Names the thread that has this slot, unless its row shows other threads, too, and it cannot leave it: then
   the name is counted. Returns the slot it has then. */
NPUPROF_COLD_ static npuprof_slot_ *npuprof_record_name_thread_(npuprof_slot_ *slot, uint32_t id)
{
    uint32_t as = id;
    if (slot->head.name == id) return slot;
    const bool full = npuprof_slot_rows_are_full_();
    const uint32_t others = full ? npuprof_table_intern_string_("other threads") : 0;
    npuprof_slot_ *const other = npuprof_record_move_thread_(slot, &as, full, others);
    const bool is_shared = !other && slot->head.owners > 1;
    if (other) slot = other;
    if (is_shared || (others && slot->head.name == others)) {     /* a row of many threads keeps its name */
        if (as == id) npuprof_count_lost_(NPUPROF_LOST_NOTES, 1);
    } else if (as) {
        NPUPROF_STORE_(&slot->head.name, as);
        slot->named_by = slot->head.owners;
    }
    return slot;
}

NPUPROF_API_ NPUPROF_COLD_ void npuprof_thread_name_(const char *name)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    const uint32_t id = slot ? npuprof_table_intern_string_(name ? name : "") : 0;
    if (!id) npuprof_count_lost_(NPUPROF_LOST_NOTES, 1);
    if (id) slot = npuprof_record_name_thread_(slot, id);
    if (slot) npuprof_record_leave_(slot);
}

NPUPROF_API_ NPUPROF_COLD_ npuprof_result npuprof_metadata(const char *key, const char *value)
{
    if (!key) return NPUPROF_REFUSE_("npuprof_metadata: key is NULL");
    if (!npuprof_record_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    return npuprof_table_add_pair_(NPUPROF_ENTRY_METADATA, key, value) ? NPUPROF_OK : NPUPROF_ERR_TABLE_FULL;
}

/* Position of an open span. e is its place in slot->open. */
static NPUPROF_NOINLINE_ uint64_t npuprof_record_position_(const npuprof_slot_ *slot, const npuprof_token_ *e)
{
    const npuprof_unit_ *const u = npuprof_record_open_unit_(slot, e);
    if (*e & NPUPROF_TOKEN_MOVED_) return u[1].w0 >> NPUPROF_ID_BITS_;
    npuprof_chunk_ *const chunk = npuprof_slot_current_chunk_(slot);
    return chunk->first_position + (uint64_t)(u - npuprof_chunk_units_(chunk));
}

/* NPUPROF_KIND_* of the call site of a span that lies at u. */
static uint32_t npuprof_record_kind_(const npuprof_unit_ *u)
{
    const uint32_t number = (uint32_t)u->w0 & NPUPROF_ID_MASK_;
    return npuprof_table_site_at_(number)->head.a & 0xFF;
}

/* The slot, its newest open span, and the root of its trace: the innermost PROF_RECORD around it, else the
   outermost span. */
NPUPROF_API_ npuprof_link_ npuprof_link_here_(void)
{
    npuprof_link_ link;
    memset(&link, 0, sizeof link);
    npuprof_slot_ *slot = npuprof_slot_mine_();
    if (slot == &npuprof_slot_none_) return link;
    slot = npuprof_record_enter_();
    if (!slot) return link;
    link.slot = slot->head.tid;
    link.correlation = *npuprof_slot_correlation_(slot);
    if (slot->top > slot->open) {
        npuprof_chunk_ *const chunk = npuprof_slot_current_chunk_(slot);
        const npuprof_unit_ *const u = npuprof_slot_open_unit_(slot, chunk, slot->top);
        const bool moved = *slot->top & NPUPROF_TOKEN_MOVED_;
        link.position = npuprof_record_position_(slot, slot->top);
        link.ticks = moved ? u[1].w1 : npuprof_chunk_start_ticks_(chunk, u->w0);
        bool root = false;
        for (const npuprof_token_ *e = slot->top; e > slot->open; e--) {
            const uint32_t kind = npuprof_record_kind_(npuprof_slot_open_unit_(slot, chunk, e));
            if (!root) link.root_position = npuprof_record_position_(slot, e);
            if (kind == NPUPROF_KIND_RECORD || kind == NPUPROF_KIND_WARM_UP) root = true;
            if (kind == NPUPROF_KIND_WARM_UP) link.warm_up = true;
        }
    }
    npuprof_record_leave_(slot);
    return link;
}

NPUPROF_API_ uint64_t npuprof_correlate_(uint64_t id)
{
    if (!NPUPROF_OPEN_(1) && npuprof_slot_mine_() == &npuprof_slot_none_) return 0;
    npuprof_slot_ *const slot = npuprof_record_enter_();
    if (!slot) return 0;
    uint64_t *const correlation = npuprof_slot_correlation_(slot), before = *correlation;
    *correlation = id;
    npuprof_record_leave_(slot);
    return before;
}

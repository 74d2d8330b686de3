#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../arena/table.h"
#include "../arena/chunks.h"
#include "../arena/slots.h"
#include "enter.h"

/* The slot for a thread's name: one that had it, or that nobody used. NULL: the one it has. Why a slot may be changed: the tracks of
   different threads stay apart. Only the first name of a thread moves it, and not while spans are open. */
static npuprof_slot_ *npuprof_record_slot_of_name_(npuprof_slot_ *slot, uint32_t id)
{
    if (slot->top != slot->open || slot != npuprof_slot_mine_ || (slot->head.name && slot->named_by == slot->head.owners)) return NULL;
    npuprof_signals_ held;
    npuprof_os_hold_signals_(&held);
    npuprof_slot_ *other = npuprof_slot_find_(id, false, false);
    if (other) NPUPROF_STORE_(&other->head.owners, other->head.owners + 1);
    else if (slot->head.name || slot->head.owners > 1) other = npuprof_slot_take_(NULL, id, true, &held);
    if (other) {
        NPUPROF_STORE_(&other->head.os_tid, slot->head.os_tid);
        other->top = other->open;
        other->by_hand_bits = slot->by_hand_bits;
        other->by_hand_count = slot->by_hand_count;
        npuprof_slot_mine_ = other;
        npuprof_os_watch_thread_(other);
        npuprof_record_leave_(slot);
        NPUPROF_STORE_RELEASE_(&slot->owned, 0);
    }
    npuprof_os_release_signals_(&held);
    return other;
}
NPUPROF_API_ void npuprof_thread_name_(const char *name)
{
    npuprof_slot_ *slot = npuprof_record_enter_();
    if (!slot) {
        npuprof_count_lost_(NPUPROF_LOST_NOTES, 1);
        return;
    }
    const uint32_t id = npuprof_table_intern_string_(name ? name : "");
    if (!id) npuprof_count_lost_(NPUPROF_LOST_NOTES, 1);
    if (id && slot->head.name != id) {
        npuprof_slot_ *const other = npuprof_record_slot_of_name_(slot, id);
        if (other) slot = other;
        NPUPROF_STORE_(&slot->head.name, id);
        slot->named_by = slot->head.owners;
    }
    npuprof_record_leave_(slot);
}

NPUPROF_API_ npuprof_result npuprof_metadata(const char *key, const char *value)
{
    if (!key) return NPUPROF_REFUSE_("npuprof_metadata: key is NULL");
    if (!npuprof_is_ready_()) return NPUPROF_ERR_ARENA_SIZE;
    return npuprof_table_add_pair_(NPUPROF_ENTRY_METADATA, key, value) ? NPUPROF_OK : NPUPROF_ERR_TABLE_FULL;
}

/* The innermost open recorded span, and its root: the enclosing record, else the outermost span. */
NPUPROF_API_ npuprof_link_ npuprof_link_here_(void)
{
    npuprof_link_ link;
    memset(&link, 0, sizeof link);
    npuprof_slot_ *slot = npuprof_slot_mine_;
    if (slot == &npuprof_slot_none_) return link;
    slot = npuprof_record_enter_();
    if (!slot) return link;
    if (slot->top > slot->open) {
        npuprof_chunk_ *chunk = npuprof_slot_current_chunk_(slot);
        bool root = false;
        for (const npuprof_token_ *e = slot->top; e > slot->open; e--) {
            const npuprof_unit_ *u = npuprof_slot_open_unit_(slot, chunk, e);
            const bool moved = *e & NPUPROF_TOKEN_MOVED_;
            const uint64_t position = moved ? u[1].w0 >> NPUPROF_ID_BITS_ : chunk->first_position + (uint64_t)(u - npuprof_chunk_units_(chunk));
            const uint32_t number = (uint32_t)u->w0 & NPUPROF_ID_MASK_;
            const npuprof_entry_ *site = (const npuprof_entry_ *)npuprof_table_entry_at_(*npuprof_table_site_id_at_(npuprof_s_.table, npuprof_s_.header, number));
            const uint32_t kind = site->a & 0xFF;
            if (e == slot->top) {
                link.position = position;
                link.ticks = moved ? u[1].w1 : npuprof_chunk_start_ticks_(chunk, u->w0);
            }
            if (!root) link.root_position = position;
            if (kind == NPUPROF_KIND_RECORD || kind == NPUPROF_KIND_WARM_UP) root = true;
            if (kind == NPUPROF_KIND_WARM_UP) link.warm_up = true;
        }
        link.slot = slot->head.tid;
    }
    npuprof_record_leave_(slot);
    return link;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../arena/table.h"
#include "enter.h"
#include "event.h"

/* What npuprof_npu.h records: devices, their clock anchors, their spans. A device is an entry of the table;
   one thread at a time stores anchors of a device. Words:
     d->first_anchors, block->a   ids of the lists' next entries, with release when that entry is whole
     block->count                 with release when the anchor is there
     d->overflow_used             0 while `overflow` is written, then a number it did not have before, with
                                  release: the same number before and after means a whole anchor
     npuprof_record_drains_       the devices that npuprof_read() drains; of the thread in `holder`
   This part does not know how a device is read. */

/* The first entry of a type whose `a` is the number of a device, or NULL. */
static npuprof_entry_ *npuprof_record_entry_of_(unsigned type, uint32_t device)
{
    const uint32_t end = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.header->table_used);
    uint32_t at = 0;
    npuprof_entry_ *e;
    while ((e = npuprof_table_next_(&at, end)) != NULL)
        if (NPUPROF_LOAD_ACQUIRE_(&e->type_units) >> 24 == type && e->a == device) return e;
    return NULL;
}

/* A device entry by its number, or NULL. */
static npuprof_device_entry_ *npuprof_record_device_at_(uint32_t device)
{
    return (npuprof_device_entry_ *)(void *)npuprof_record_entry_of_(NPUPROF_ENTRY_DEVICE, device);
}

NPUPROF_API_ uint32_t npuprof_device_add_(const char *name, unsigned pe_count, uint64_t nominal_hz,
                                          uint32_t max_rate_ppb)
{
    uint32_t id;
    if (!npuprof_record_is_ready_()) return 0;
    const uint32_t name_id = npuprof_table_intern_string_(name);
    npuprof_device_entry_ *d = NULL;
    if (name_id) d = (npuprof_device_entry_ *)(void *)npuprof_table_add_entry_(sizeof *d, &id);
    if (!d) return 0;
    const uint32_t number = NPUPROF_ADD_(&npuprof_arena_.header->devices, 1) + 1;
    if (number > 255) return 0;                /* a device span has 8 bits for it */
    d->nominal_hz = nominal_hz;
    d->name = name_id;
    d->pe_count = pe_count;
    d->max_rate_ppb = max_rate_ppb;
    d->head.a = number;
    npuprof_table_finish_entry_(&d->head, NPUPROF_ENTRY_DEVICE);
    return number;
}

static void npuprof_record_store_anchor_(npuprof_anchor_ *to, const npuprof_anchor_ *from)
{
    NPUPROF_STORE_(&to->device_ticks, from->device_ticks);
    NPUPROF_STORE_(&to->host_before, from->host_before);
    NPUPROF_STORE_(&to->host_after, from->host_after);
}

/* The table is full: of the anchors that did not fit, the newest is kept in the device's entry. */
static void npuprof_record_store_overflow_(npuprof_device_entry_ *d, uint32_t epoch,
                                           const npuprof_anchor_ *anchor)
{
    const uint32_t used = NPUPROF_LOAD_(&d->overflow_used) + 1;
    NPUPROF_STORE_(&d->overflow_used, 0);
    NPUPROF_STORE_RELEASE_(&d->overflow.device_ticks, anchor->device_ticks);
    NPUPROF_STORE_RELEASE_(&d->overflow.host_before, anchor->host_before);
    NPUPROF_STORE_RELEASE_(&d->overflow.host_after, anchor->host_after);
    NPUPROF_STORE_RELEASE_(&d->overflow_epoch, epoch);
    NPUPROF_STORE_RELEASE_(&d->overflow_used, used ? used : 1);
}

/* Appends an entry for anchors to the device's list; last: the newest one, or NULL. NULL: the table is
   full. */
static npuprof_anchors_entry_ *npuprof_record_add_anchors_(npuprof_device_entry_ *d,
                                                           npuprof_anchors_entry_ *last, uint32_t epoch)
{
    uint32_t id;
    npuprof_entry_ *const e = npuprof_table_add_entry_(sizeof(npuprof_anchors_entry_), &id);
    npuprof_anchors_entry_ *const block = (npuprof_anchors_entry_ *)(void *)e;
    if (!block) return NULL;
    block->epoch = epoch;
    npuprof_table_finish_entry_(&block->head, NPUPROF_ENTRY_ANCHORS);
    NPUPROF_STORE_RELEASE_(last ? &last->head.a : &d->first_anchors, id);
    NPUPROF_STORE_(&d->last_anchors, id);
    return block;
}

NPUPROF_API_ npuprof_result npuprof_device_anchor_(uint32_t device, uint32_t epoch,
                                                   const npuprof_anchor_ *anchor)
{
    npuprof_device_entry_ *d = npuprof_record_is_ready_() ? npuprof_record_device_at_(device) : NULL;
    if (!d) return NPUPROF_ERR_TABLE_FULL;
    npuprof_anchors_entry_ *block = NULL;
    if (d->last_anchors) block = (npuprof_anchors_entry_ *)npuprof_table_entry_at_(d->last_anchors);
    if (!block || block->count == NPUPROF_ANCHORS_PER_ENTRY_ || block->epoch != epoch)
        block = npuprof_record_add_anchors_(d, block, epoch);
    if (!block) {
        npuprof_record_store_overflow_(d, epoch, anchor);
        return NPUPROF_ERR_TABLE_FULL;
    }
    npuprof_record_store_anchor_(&block->anchor[block->count], anchor);
    NPUPROF_STORE_RELEASE_(&block->count, block->count + 1);
    return NPUPROF_OK;
}

NPUPROF_API_ void npuprof_device_note_(uint32_t device, unsigned note, uint64_t add)
{
    npuprof_device_entry_ *d = npuprof_record_is_ready_() ? npuprof_record_device_at_(device) : NULL;
    if (d) NPUPROF_ADD_(&d->notes[note], add);
}

NPUPROF_API_ void npuprof_device_flag_(uint32_t device, uint32_t flag)
{
    npuprof_device_entry_ *d = npuprof_record_is_ready_() ? npuprof_record_device_at_(device) : NULL;
    uint32_t flags = d ? NPUPROF_LOAD_(&d->flags) : 0;
    while (d && !NPUPROF_CAS_(&d->flags, &flags, flags | flag)) continue;
}

/* 11 bits and, above them, by how much they are shifted. Why 1 for no error: 0 says that it is not known. */
NPUPROF_API_ uint32_t npuprof_host_error_code_(uint64_t error_ticks)
{
    uint32_t shift = 0;
    while (shift < 31 && error_ticks > 2047u) {
        error_ticks = (error_ticks >> 1) + (error_ticks & 1);
        shift++;
    }
    if (error_ticks > 2047u) return 0;
    return shift << 11 | (uint32_t)npuprof_max_(error_ticks, 1);
}

/* Why two threads may add an entry each: both are there, and a reader adds them up. */
NPUPROF_API_ void npuprof_device_records_(uint32_t device, const uint64_t *add)
{
    if (!npuprof_record_is_ready_()) return;
    npuprof_entry_ *e = npuprof_record_entry_of_(NPUPROF_ENTRY_RECORDS, device);
    uint32_t id;
    if (!e) {
        e = npuprof_table_add_entry_(sizeof(npuprof_records_entry_), &id);
        if (!e) return;
        e->a = device;
        npuprof_table_finish_entry_(e, NPUPROF_ENTRY_RECORDS);
    }
    npuprof_records_entry_ *const r = (npuprof_records_entry_ *)(void *)e;
    for (unsigned i = 0; i < NPUPROF_RECORDS_COUNT; i++)
        if (add[i]) NPUPROF_ADD_(&r->counts[i], add[i]);
}

NPUPROF_API_ bool npuprof_device_lane_(uint32_t device, unsigned pe, const char *name)
{
    uint32_t id;
    const uint32_t name_id = npuprof_record_is_ready_() ? npuprof_table_intern_string_(name) : 0;
    npuprof_entry_ *const e = name_id ? npuprof_table_add_entry_(sizeof(npuprof_pair_entry_), &id) : NULL;
    if (!e) return false;
    npuprof_pair_entry_ *const lane = (npuprof_pair_entry_ *)(void *)e;
    lane->b[0] = pe;
    lane->b[1] = name_id;
    e->a = device;
    npuprof_table_finish_entry_(e, NPUPROF_ENTRY_LANE);
    return true;
}

/* ---- Devices that are drained before spans are handed back */

static struct { npuprof_device_drain_ *first; uintptr_t holder; } npuprof_record_drains_;

/* Takes the list. False: the caller has it already, further up its stack: in a function of a device that is
   being drained. Why it is held during the drains: a device must not be closed meanwhile. */
static bool npuprof_record_take_drains_(void)
{
    uintptr_t nobody = 0;
    const uintptr_t me = npuprof_slot_me_();
    while (!NPUPROF_CAS_(&npuprof_record_drains_.holder, &nobody, me)) {
        if (nobody == me) return false;
        nobody = 0;
        npuprof_os_yield_();
    }
    return true;
}

static void npuprof_record_leave_drains_(bool taken)
{
    if (taken) NPUPROF_STORE_RELEASE_(&npuprof_record_drains_.holder, (uintptr_t)0);
}

NPUPROF_API_ void npuprof_device_watch_(npuprof_device_drain_ *device)
{
    const bool taken = npuprof_record_take_drains_();
    device->next = npuprof_record_drains_.first;
    npuprof_record_drains_.first = device;
    npuprof_record_leave_drains_(taken);
}

NPUPROF_API_ void npuprof_device_unwatch_(npuprof_device_drain_ *device)
{
    const bool taken = npuprof_record_take_drains_();
    for (npuprof_device_drain_ **at = &npuprof_record_drains_.first; *at; at = &(*at)->next) {
        if (*at != device) continue;
        *at = device->next;
        break;
    }
    npuprof_record_leave_drains_(taken);
}

/* Drains them all. Not under the lock of the readers: a drain records. */
static void npuprof_record_drain_devices_(void)
{
    if (!npuprof_record_take_drains_()) return;
    for (npuprof_device_drain_ *at = npuprof_record_drains_.first, *next; at; at = next) {
        next = at->next;
        at->drain(at->user);
    }
    npuprof_record_leave_drains_(true);
}

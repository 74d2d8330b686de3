#pragma once   /* SPDX-License-Identifier: MIT */
#include "expander.h"

/* What a firmware's records say of its devices: who one is, its clock anchors, what was counted, and how
   often its counter wrapped. All goes into the table's entries, as npuprof_npu.h writes them on a host; the
   meaning of the three values of such a record is in src/format/compact.h. */

/* The entry of a device, found or made. NULL: it has no number, or the table is full. */
static npuprof_device_entry_ *npuprof_expand_device_(npuprof_expander_ *x, uint32_t device)
{
    uint32_t *const id = &x->devices[device & 0xFF].id;
    if (!(device & 0xFF)) return NULL;
    if (!*id) {
        /* Why a name: the record that says it may be forgotten, by npuprof_clear(). */
        const uint32_t name = npuprof_expand_text_(x, "npu", 3);
        npuprof_entry_ *const e = npuprof_expand_new_(x, NPUPROF_ENTRY_DEVICE, sizeof(npuprof_device_entry_),
                                                      id);
        npuprof_device_entry_ *const d = (npuprof_device_entry_ *)(void *)e;
        if (!d) return NULL;
        d->head.a = device & 0xFF;
        d->name = name;
        d->pe_count = 1;
        x->h->devices++;
    }
    return (npuprof_device_entry_ *)(void *)(x->table + (size_t)*id * 16);
}

/* Adds a clock anchor to the device's newest block of anchors, or to a new block. */
static void npuprof_expand_anchor_(npuprof_expander_ *x, npuprof_device_entry_ *d, uint32_t epoch,
                                   const npuprof_anchor_ *anchor)
{
    void *const last = d->last_anchors ? x->table + (size_t)d->last_anchors * 16 : NULL;
    npuprof_anchors_entry_ *block = (npuprof_anchors_entry_ *)last;
    if (!block || block->count == NPUPROF_ANCHORS_PER_ENTRY_ || block->epoch != epoch) {
        uint32_t id;
        npuprof_entry_ *const e = npuprof_expand_new_(x, NPUPROF_ENTRY_ANCHORS,
                                                      sizeof(npuprof_anchors_entry_), &id);
        if (!e) return;
        if (block) block->head.a = id;
        else d->first_anchors = id;
        d->last_anchors = id;
        block = (npuprof_anchors_entry_ *)(void *)e;
        block->epoch = epoch;
    }
    block->anchor[block->count++] = *anchor;
}

/* Counts the wraps up to these ticks. Device time begins with a raw value of the counter, so what lies above
   the counter's bits is the number of its wraps. */
static void npuprof_expand_wraps_(npuprof_expander_ *x, npuprof_device_entry_ *d, uint32_t epoch,
                                  uint64_t ticks)
{
    npuprof_expand_device_info_ *const known = &x->devices[d->head.a];
    const uint64_t wraps = known->bits && known->bits < 64 ? ticks >> known->bits : 0;
    if (known->epoch != epoch) known->wraps = 0;
    known->epoch = epoch;
    if (wraps <= known->wraps) return;
    d->notes[NPUPROF_NOTE_WRAPS] += wraps - known->wraps;
    known->wraps = wraps;
}

/* An anchor's host stamp becomes its distance before the record's own, which has all bits. The record has
   the low ones of it. Other records stay as they are. */
static void npuprof_expand_read_anchor_(npuprof_expand_item_ *r)
{
    if (r->kind != NPUPROF_CELL_KIND_ANCHOR_) return;
    r->values[1] = (r->start - r->values[1]) & (UINT64_MAX >> (64 - NPUPROF_CELL_STAMP_BITS_));
}

/* Notes what a record says of a device. Other records: nothing. */
static void npuprof_expand_note_(npuprof_expander_ *x, const npuprof_expand_item_ *r)
{
    const uint64_t *const v = r->values;
    const uint32_t epoch = (uint32_t)(v[2] >> 8) & 0xFFFF;
    const bool is_note = r->kind >= NPUPROF_CELL_KIND_DEVICE_ && r->kind <= NPUPROF_CELL_KIND_COUNT_;
    if (r->kind != NPUPROF_KIND_DEVICE && !is_note) return;
    npuprof_device_entry_ *const d = npuprof_expand_device_(x, (uint32_t)v[2]);
    if (!d) return;
    if (r->kind == NPUPROF_CELL_KIND_DEVICE_) {
        d->name = r->name;
        d->nominal_hz = v[0];
        d->max_rate_ppb = (uint32_t)v[1];
        d->pe_count = (uint32_t)(v[2] >> 8) & 0xFFFFFF;
        x->devices[d->head.a].bits = (uint32_t)(v[1] >> 32);
        x->devices[d->head.a].may_stand = v[2] >> 32 & 1;
    } else if (r->kind == NPUPROF_CELL_KIND_COUNT_) {
        if (v[1] < NPUPROF_NOTE_ROOM_) d->notes[v[1]] += v[0];
    } else if (r->kind == NPUPROF_CELL_KIND_ANCHOR_) {
        npuprof_anchor_ anchor;
        anchor.device_ticks = v[0];
        anchor.host_after = r->start - v[1];
        anchor.host_before = anchor.host_after - (v[2] >> 32);
        npuprof_expand_wraps_(x, d, epoch, v[0]);
        npuprof_expand_anchor_(x, d, epoch, &anchor);
    } else if (!(v[2] & NPUPROF_CELL_BY_HOST_)) {
        npuprof_expand_wraps_(x, d, epoch, npuprof_max_(v[0], v[1]));
    }
}

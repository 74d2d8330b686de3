#pragma once   /* SPDX-License-Identifier: MIT */
#include "record.h"

enum { NPUPROF_EXPAND_DEPTH_MAX_ = 256 };
/* Spans that never ended, because a longjmp left them, end with the one around them. list: those of a context, by their start. */
static void npuprof_expand_cut_lost_spans_(npuprof_expand_item_ *list, uint32_t count)
{
    uint32_t open[NPUPROF_EXPAND_DEPTH_MAX_], depth = 0;
    for (uint32_t i = 0; i <= count; i++) {
        for (uint32_t d = 0; d < depth; d++) {
            const npuprof_expand_item_ *outer = &list[open[d]];
            if (outer->open || (i < count && outer->end > list[i].start)) continue;
            for (uint32_t k = d + 1; k < depth; k++)
                if (list[open[k]].open) {
                    list[open[k]].open = false;
                    list[open[k]].cut = true;
                    list[open[k]].end = outer->end;
                }
            depth = d;
        }
        if (i < count && list[i].kind <= NPUPROF_KIND_OPERATOR && depth < NPUPROF_EXPAND_DEPTH_MAX_) open[depth++] = i;
    }
}
/* Finds the span around each span of a context, and its root: the innermost record around it, or itself; else the outermost span. */
static void npuprof_expand_find_roots_(npuprof_expand_item_ *list, uint32_t count)
{
    uint32_t top = 0;
    for (uint32_t i = 0; i < count; i++) {
        npuprof_expand_item_ *r = &list[i];
        if (r->kind > NPUPROF_KIND_OPERATOR) continue;
        while (top && !list[top - 1].open && list[top - 1].end <= r->start) top = list[top - 1].around;
        const bool own = r->kind == NPUPROF_KIND_RECORD || r->kind == NPUPROF_KIND_WARM_UP;
        r->around = top;
        r->root = own || !top ? i + 1 : list[top - 1].root;
        r->warm_up = r->kind == NPUPROF_KIND_WARM_UP || (top && list[top - 1].warm_up);
        top = i + 1;
    }
}
enum { NPUPROF_EXPAND_SAMPLED_ = 1 << 24 };   /* in the third value of a device span */
/* The entry of a device, found or made; NULL: there is none of that number, or the table is full. */
static npuprof_device_entry_ *npuprof_expand_device_(npuprof_expander_ *x, uint32_t device)
{
    uint32_t *const id = &x->devices[device & 0xFF].id;
    if (!(device & 0xFF)) return NULL;
    if (!*id) {
        /* Why a name: npuprof_clear() may have forgotten who it is. */
        const uint32_t name = npuprof_expand_text_(x, "npu", 3);
        npuprof_device_entry_ *d = (npuprof_device_entry_ *)(void *)npuprof_expand_new_(x, NPUPROF_ENTRY_DEVICE, sizeof *d, id);
        if (!d) return NULL;
        d->head.a = device & 0xFF;
        d->name = name;
        d->pe_count = 1;
        x->h->devices++;
    }
    return (npuprof_device_entry_ *)(void *)(x->table + (size_t)*id * 16);
}
static void npuprof_expand_anchor_(npuprof_expander_ *x, npuprof_device_entry_ *d, uint32_t epoch, const npuprof_anchor_ *anchor)
{
    npuprof_anchors_entry_ *block = d->last_anchors ? (npuprof_anchors_entry_ *)(void *)(x->table + (size_t)d->last_anchors * 16) : NULL;
    if (!block || block->count == NPUPROF_ANCHORS_PER_ENTRY_ || block->epoch != epoch) {
        uint32_t id;
        npuprof_anchors_entry_ *fresh = (npuprof_anchors_entry_ *)(void *)npuprof_expand_new_(x, NPUPROF_ENTRY_ANCHORS, sizeof *fresh, &id);
        if (!fresh) return;
        fresh->epoch = epoch;
        if (block) block->head.a = id;
        else d->first_anchors = id;
        d->last_anchors = id;
        block = fresh;
    }
    block->anchor[block->count++] = *anchor;
}
/* Device time is extended from a raw value on, so its wraps are what lies above the counter's bits. */
static void npuprof_expand_wraps_(npuprof_expander_ *x, npuprof_device_entry_ *d, uint32_t epoch, uint64_t ticks)
{
    const uint32_t device = d->head.a, bits = x->devices[device].bits;
    const uint64_t wraps = bits && bits < 64 ? ticks >> bits : 0;
    if (x->devices[device].epoch != epoch) x->devices[device].wraps = 0;
    x->devices[device].epoch = epoch;
    if (wraps <= x->devices[device].wraps) return;
    d->notes[NPUPROF_NOTE_WRAPS] += wraps - x->devices[device].wraps;
    x->devices[device].wraps = wraps;
}
/* What a record says of a device: who it is, an anchor, a count, or how far its time has come. */
static void npuprof_expand_note_(npuprof_expander_ *x, const npuprof_expand_item_ *r)
{
    const uint64_t *v = r->values;
    const uint32_t epoch = (uint32_t)(v[2] >> 8) & 0xFFFF;
    npuprof_anchor_ anchor;
    if (r->kind != NPUPROF_KIND_DEVICE && (r->kind < NPUPROF_CELL_KIND_DEVICE_ || r->kind > NPUPROF_CELL_KIND_COUNT_)) return;
    npuprof_device_entry_ *d = npuprof_expand_device_(x, (uint32_t)v[2]);
    if (!d) return;
    if (r->kind == NPUPROF_CELL_KIND_DEVICE_) {
        d->name = r->name;
        d->nominal_hz = v[0];
        d->max_rate_ppb = (uint32_t)v[1];
        d->pe_count = (uint32_t)(v[2] >> 8) & 0xFFFFFF;
        x->devices[d->head.a].bits = (uint32_t)(v[1] >> 32);
    } else if (r->kind == NPUPROF_CELL_KIND_COUNT_) {
        if (v[1] < NPUPROF_NOTE_ROOM_) d->notes[v[1]] += v[0];
    } else {
        npuprof_expand_wraps_(x, d, epoch, v[0] > v[1] || r->kind == NPUPROF_CELL_KIND_ANCHOR_ ? v[0] : v[1]);
    }
    if (r->kind == NPUPROF_CELL_KIND_ANCHOR_) {
        anchor.device_ticks = v[0];
        /* Why the difference: the record has the low bits of the stamp, which lies before its own. */
        anchor.host_after = r->start - ((r->start - v[1]) & (UINT64_MAX >> (64 - NPUPROF_CELL_STAMP_BITS_)));
        anchor.host_before = anchor.host_after - (v[2] >> 32);
        npuprof_expand_anchor_(x, d, epoch, &anchor);
    }
}

/* Writes a record's units at u; returns how many. room: so many fit. host: the span around the block of a sampled device span, or NULL. */
static uint32_t npuprof_expand_units_(npuprof_expander_ *x, const npuprof_expand_item_ *list, const npuprof_expand_item_ *r, const npuprof_expand_item_ *host,
                                      uint32_t tid, npuprof_unit_ *u, uint32_t room)
{
    const uint32_t ids[2] = { host ? host->name : r->name, host ? host->category : r->category };
    const uint32_t id = npuprof_expand_entry_(x, NPUPROF_ENTRY_SITE, r->kind, ids, sizeof ids, false);
    if (!id || room < 4) return 0;
    uint32_t n = 1;
    u[0].w0 = r->start << NPUPROF_ID_BITS_ | ((const npuprof_entry_ *)(const void *)(x->table + (size_t)id * 16))->a >> 8;
    u[0].w1 = r->kind > NPUPROF_KIND_OPERATOR ? r->values[0] : r->open ? NPUPROF_END_OPEN_ : (r->end & ~NPUPROF_END_CUT_) | (r->cut ? NPUPROF_END_CUT_ : 0);
    if (r->kind == NPUPROF_KIND_FINISHED || r->kind == NPUPROF_KIND_MEMORY) {
        u[n].w0 = r->kind == NPUPROF_KIND_MEMORY ? r->values[2] << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_MEMORY_ : (uint64_t)r->track << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_FINISHED_;
        u[n++].w1 = r->values[1];
    }
    if (r->kind == NPUPROF_KIND_DEVICE) {
        const uint64_t what = r->values[2], sampled = what & NPUPROF_EXPAND_SAMPLED_ ? NPUPROF_STAMP_SAMPLED : NPUPROF_STAMP_DEVICE;
        const uint64_t pe = sampled ? 0 : what >> 32 & 0xFFFF;
        u[n].w0 = (sampled << 40 | (what >> 8 & 0xFFFF) << 24 | pe << 8 | (what & 0xFF)) << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_DEVICE_;
        u[n++].w1 = r->values[1];
        if (host) {
            u[n].w0 = host->position << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_LINK_;
            u[n++].w1 = host->start;
            u[n].w0 = list[host->root - 1].position << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_LINK_ROOT_;
            u[n++].w1 = (uint64_t)host->warm_up << 32 | tid;
        }
    }
    for (uint32_t f = npuprof_expand_next_field_(x, r->cell, true, NULL); f != UINT32_MAX; f = npuprof_expand_next_field_(x, f, false, NULL)) {
        uint32_t type = npuprof_expand_cell_word_(x, f, 1) & 0xFF, length = npuprof_expand_cell_word_(x, f, 1) >> 8 & 0x7FFFFF;
        const char *text = (const char *)x->cells + (size_t)f * 16 + 8;
        if (type == NPUPROF_FIELD_RESULT_) {
            text = npuprof_result_string((npuprof_result)(npuprof_expand_field_value_(x, f) & 0x7FFFFFFF));
            length = (uint32_t)strlen(text);
            type = NPUPROF_ARG_STR;
        }
        const uint32_t units = type >= NPUPROF_ARG_STR && length > 8 ? NPUPROF_UNITS_(length - 8) : 0u;
        if (type >= NPUPROF_FIELD_NAME_ || !type) continue;
        if (n + 1 + units > room) break;
        const uint32_t key = npuprof_expand_target_text_(x, npuprof_expand_target_address_(x, npuprof_expand_cell_word_(x, f, 0)));
        u[n].w0 = ((uint64_t)(type >= NPUPROF_ARG_STR ? length : 0) << 32 | (uint64_t)key << 4 | type) << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_ARG_;
        u[n].w1 = npuprof_expand_field_value_(x, f);
        if (type >= NPUPROF_ARG_STR) {
            u[n].w1 = 0;
            memcpy(&u[n].w1, text, length < 8 ? length : 8);
            if (length > 8) memcpy(&u[n + 1], text + 8, length - 8);
        }
        n += 1 + units;
    }
    return n;
}

enum { NPUPROF_EXPAND_CHUNK_BYTES_ = 65536 };

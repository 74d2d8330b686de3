#pragma once   /* SPDX-License-Identifier: MIT */
#include "expander.h"
#include "fields.h"
#include "gaps.h"
#include "ring.h"

/* Records of a firmware as the units that a host would have recorded (src/format/arena.h), and what a host
   knows while it records but a firmware leaves open: which span lies in which, and where spans end that were
   left by a longjmp. */

enum { NPUPROF_EXPAND_DEPTH_MAX_ = 256 };

/* Ends the open spans inside a span that has ended: a longjmp left them, so they end with it. list: a
   context's records by their starts. */
static void npuprof_expand_cut_lost_spans_(npuprof_expand_item_ *list, uint32_t count)
{
    uint32_t open[NPUPROF_EXPAND_DEPTH_MAX_], depth = 0;
    for (uint32_t i = 0; i <= count; i++) {
        for (uint32_t d = 0; d < depth; d++) {
            const npuprof_expand_item_ *const outer = &list[open[d]];
            if (outer->open || (i < count && outer->end > list[i].start)) continue;
            for (uint32_t k = d + 1; k < depth; k++) {
                npuprof_expand_item_ *const inner = &list[open[k]];
                if (!inner->open) continue;
                inner->open = false;
                inner->cut = true;
                inner->end = outer->end;
            }
            depth = d;
        }
        if (i < count && npuprof_kind_nests_(list[i].kind) && depth < NPUPROF_EXPAND_DEPTH_MAX_)
            open[depth++] = i;
    }
}

/* Finds the span around each span, and its root: the innermost record (PROF_RECORD) around it or the span
   itself if it is one; else the outermost span. */
static void npuprof_expand_find_roots_(npuprof_expand_item_ *list, uint32_t count)
{
    uint32_t top = 0;
    for (uint32_t i = 0; i < count; i++) {
        npuprof_expand_item_ *const r = &list[i];
        if (!npuprof_kind_nests_(r->kind)) continue;
        while (top && !list[top - 1].open && list[top - 1].end <= r->start) top = list[top - 1].around;
        const bool is_root = r->kind == NPUPROF_KIND_RECORD || r->kind == NPUPROF_KIND_WARM_UP || !top;
        r->around = top;
        r->root = is_root ? i + 1 : list[top - 1].root;
        r->warm_up = r->kind == NPUPROF_KIND_WARM_UP || (top && list[top - 1].warm_up);
        top = i + 1;
    }
}

/* The host's span of a sampled device span, which has the number of that span's cell. NULL: it is not there.
   It may be another context's: an interrupt handler may end what a task began. */
static const npuprof_expand_item_ *npuprof_expand_host_span_(const npuprof_expander_ *x,
                                                             const npuprof_expand_item_ *r)
{
    uint32_t cell;
    if (r->drawn) {
        const uint32_t place = r->drawn->host ? x->place[r->drawn->host - 1] : 0;
        return place && npuprof_kind_nests_(x->list[place - 1].kind) ? &x->list[place - 1] : NULL;
    }
    if (r->kind != NPUPROF_KIND_DEVICE || !(r->values[2] & NPUPROF_CELL_SAMPLED_)) return NULL;
    const uint32_t number = npuprof_expand_named_number_(x, (uint32_t)(r->values[2] >> 32), r->cell);
    if (!npuprof_expand_find_cell_(x->g, number, &cell) || !x->place[cell]) return NULL;
    const npuprof_expand_item_ *const host = &x->list[x->place[cell] - 1];
    return host->start <= r->start && npuprof_kind_nests_(host->kind) ? host : NULL;
}

/* The further units of a device span: device, and of a sampled one the link to its host span, whose position
   npuprof_expand_link_() fills in. Returns how many. */
static uint32_t npuprof_expand_device_units_(const npuprof_expander_ *x, const npuprof_expand_item_ *r,
                                             const npuprof_expand_item_ *host, npuprof_unit_ *u)
{
    const uint64_t what = r->values[2], is_sampled = what & NPUPROF_CELL_SAMPLED_;
    const uint64_t by_host = what & NPUPROF_CELL_BY_HOST_ ? (uint64_t)NPUPROF_STAMP_HOST : 0;
    const uint64_t flags = is_sampled ? NPUPROF_STAMP_SAMPLED | by_host : (uint64_t)NPUPROF_STAMP_DEVICE;
    const uint64_t epoch = what >> 8 & 0xFFFF, pe = flags ? 0 : what >> 32 & 0xFFFF, device = what & 0xFF;
    u[0].w0 = (flags << 40 | epoch << 24 | pe << 8 | device) << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_DEVICE_;
    if (r->drawn) u[0].w0 = r->drawn->what << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_DEVICE_;
    u[0].w1 = r->values[1];
    if (!host) return 1;
    u[1].w0 = NPUPROF_CONTROL_LINK_;
    u[1].w1 = host->start;
    u[2].w0 = NPUPROF_CONTROL_LINK_ROOT_;
    u[2].w1 = (uint64_t)host->warm_up << 32 | x->tid[host->context];
    return 3;
}

/* Says where the host span of a device span lies, once the units of all contexts are written. */
static void npuprof_expand_link_(const npuprof_expander_ *x, const npuprof_expand_item_ *r)
{
    const npuprof_expand_item_ *const host = npuprof_expand_host_span_(x, r);
    if (!host || !r->link) return;
    r->link[0].w0 |= host->position << NPUPROF_ID_BITS_;
    r->link[1].w0 |= x->list[x->begin[host->context] + host->root - 1].position << NPUPROF_ID_BITS_;
}

/* The units of an argument. Returns how many; 0: it is none, or more than `capacity`. */
static uint32_t npuprof_expand_arg_units_(npuprof_expander_ *x, uint32_t f, npuprof_unit_ *u,
                                          uint32_t capacity)
{
    uint32_t type = npuprof_expand_field_type_(x, f), length = npuprof_expand_field_length_(x, f);
    const char *text = npuprof_expand_field_text_(x, f);
    if (type == NPUPROF_FIELD_RESULT_) {
        text = npuprof_result_string((npuprof_result)(npuprof_expand_field_value_(x, f) & 0x7FFFFFFF));
        length = (uint32_t)strlen(text);
        type = NPUPROF_ARG_STR;
    }
    const bool is_string = type >= NPUPROF_ARG_STR;
    const uint32_t further = is_string && length > 8 ? NPUPROF_UNITS_(length - 8) : 0u;
    if (!type || type >= NPUPROF_FIELD_NAME_ || 1 + further > capacity) return 0;
    const uint64_t address = npuprof_expand_target_address_(x, npuprof_expand_cell_word_(x, f, 0));
    const uint64_t key = npuprof_expand_target_text_(x, address), bytes = is_string ? length : 0;
    u[0].w0 = (bytes << 32 | key << 4 | type) << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_ARG_;
    u[0].w1 = is_string ? 0 : npuprof_expand_field_value_(x, f);
    if (is_string) memcpy(&u[0].w1, text, length < 8 ? length : 8);
    if (further) memcpy(&u[1], text + 8, length - 8);
    return 1 + further;
}

/* w1 of a record's first unit. */
static uint64_t npuprof_expand_first_value_(const npuprof_expand_item_ *r)
{
    if (!npuprof_kind_nests_(r->kind)) return r->values[0];
    if (r->open) return NPUPROF_END_OPEN_;
    return (r->end & ~NPUPROF_END_CUT_) | (r->cut ? NPUPROF_END_CUT_ : 0);
}

/* Writes a record's units at u; returns how many. `capacity` fit: arguments beyond are left out. */
static uint32_t npuprof_expand_units_(npuprof_expander_ *x, npuprof_expand_item_ *r, npuprof_unit_ *u,
                                      uint32_t capacity)
{
    const npuprof_expand_item_ *const host = npuprof_expand_host_span_(x, r);
    const npuprof_expand_item_ *const named = host && !r->drawn ? host : r;
    const uint32_t ids[4] = { named->name, named->category, r->file, r->line };
    const uint32_t id = npuprof_expand_entry_(x, NPUPROF_ENTRY_SITE, r->kind, ids, sizeof ids);
    if (!id || capacity < 4) {
        x->h->lost[NPUPROF_LOST_NAMES]++;
        return 0;
    }
    const npuprof_entry_ *const site = (const npuprof_entry_ *)(const void *)(x->table + (size_t)id * 16);
    uint32_t n = 1;
    if (r->missing) npuprof_expand_place_gap_(x, r);
    u[0].w0 = r->start << NPUPROF_ID_BITS_ | site->a >> 8;
    u[0].w1 = npuprof_expand_first_value_(r);
    if (r->kind == NPUPROF_KIND_FINISHED || r->kind == NPUPROF_KIND_MEMORY) {
        const bool is_memory = r->kind == NPUPROF_KIND_MEMORY;
        u[n].w0 = is_memory ? r->values[2] << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_MEMORY_
                            : (uint64_t)r->track << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_FINISHED_;
        u[n++].w1 = r->values[1];
    }
    if (host) r->link = u + n + 1;
    if (r->kind == NPUPROF_KIND_DEVICE) n += npuprof_expand_device_units_(x, r, host, u + n);
    if (r->missing) {
        const uint64_t key = npuprof_expand_text_(x, "cells", 5);
        u[n].w0 = (key << 4 | NPUPROF_ARG_UINT) << NPUPROF_ID_BITS_ | NPUPROF_CONTROL_ARG_;
        u[n++].w1 = r->missing;
        return n;
    }
    if (r->drawn) {
        const uint32_t units = r->drawn->units <= capacity - n ? r->drawn->units : 0;
        memcpy(u + n, r->drawn->unit, units * sizeof *u);
        return n + units;
    }
    for (uint32_t cell = r->cell + 1; cell; cell = x->results[cell - 1])
        NPUPROF_EXPAND_EACH_FIELD_(x, f, cell - 1) n += npuprof_expand_arg_units_(x, f, u + n, capacity - n);
    return n;
}

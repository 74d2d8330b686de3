#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "image.h"
#include "cursor.h"

/* A cursor that gives the records of some kinds only, and sums up the others. Why: most records are plain,
   and what is asked of them is little, so they are passed or given without decoding, as long as their sites
   were met. The caller puts `cursor` at a slot; else all is owned here. */

/* What records span, in host ticks: from the earliest stamp, as a distance from the first anchor, to the last
   one. Of device and finished spans the moment of recording counts, and for the last stamp only. */
#define NPUPROF_OWN_STAMPS_ (1u << NPUPROF_KIND_DEVICE | 1u << NPUPROF_KIND_FINISHED)
typedef struct npuprof_extent_ {
    int64_t earliest;
    uint64_t last, events;
} npuprof_extent_;

NPUPROF_HOT_ static inline void npuprof_extent_add_(npuprof_extent_ *x, uint32_t kind, uint64_t distance,
                                                    uint64_t last)
{
    if ((int64_t)distance < x->earliest && !(NPUPROF_OWN_STAMPS_ >> kind & 1))
        x->earliest = (int64_t)distance;
    if (last > x->last) x->last = last;
    x->events++;
}

#define NPUPROF_CURSOR_DECODED_ (1u << 31)
typedef struct npuprof_cursor_kinds_ {
    npuprof_cursor_ cursor;
    npuprof_plain_walk_ plain;             /* what comes next; no records where a slot begins */
    npuprof_extent_ passed;                /* of the plain records that were not given */
    uint32_t kinds;                        /* a bit for each, or what must be decoded, whatever it is */
    struct { uint32_t use, name; } met[256];         /* those met last. use: site << 8 | kind */
} npuprof_cursor_kinds_;

static void npuprof_cursor_begin_kinds_(npuprof_cursor_kinds_ *k, uint32_t kinds)
{
    memset(k, 0, sizeof *k);
    k->kinds = kinds;
    k->met[0].use = 1u << 8;               /* there is no site 0 */
}

/* Fills in what is known of the plain record *p, whose site was met. False: it must be decoded. */
NPUPROF_HOT_ static inline bool npuprof_cursor_fill_plain_(const npuprof_cursor_kinds_ *k,
                                                           const npuprof_plain_walk_ *walk,
                                                           const npuprof_plain_ *p, npuprof_event_ *ev)
{
    const npuprof_cursor_ *const c = &k->cursor;
    const npuprof_unit_ *const more = walk->at + 1;
    const uint64_t w0 = npuprof_unit_load_w0_(more);
    const uint32_t id = (uint32_t)w0 & NPUPROF_ID_MASK_;
    const bool finished = id == NPUPROF_CONTROL_FINISHED_;
    ev->kind = k->met[p->site % 256].use & 0xFF;
    if (finished != (ev->kind == NPUPROF_KIND_FINISHED)) return false;
    ev->site = p->site;
    ev->name = k->met[p->site % 256].name;
    ev->start = ev->host_ticks = p->start;
    ev->end = ev->value = p->end;
    ev->track = (uint32_t)(w0 >> NPUPROF_ID_BITS_);
    ev->second = npuprof_unit_load_w1_(more);
    ev->has_link = false;
    ev->args = more + (p->behind != more && npuprof_cursor_has_more_(id));
    ev->args_end = p->behind;
    ev->position = npuprof_cursor_plain_position_(c, walk);
    const uint64_t before = (uint64_t)(c->chunk - 1) * c->image->units;
    ev->locator = (before + (uint64_t)(walk->at - c->units)) << 1 | c->first;
    return true;
}

/* A record that was decoded: its site was met. Why not a device's: its records are more than *ev has of a
   plain one. */
NPUPROF_HOT_ static inline void npuprof_cursor_note_site_(npuprof_cursor_kinds_ *k, const npuprof_event_ *ev)
{
    if (ev->kind == NPUPROF_KIND_DEVICE) return;
    k->met[ev->site % 256].use = ev->site << 8 | ev->kind;
    k->met[ev->site % 256].name = ev->name;
}

/* The next one among the plain records that come next. False: what is behind them must be decoded, if
   anything is there. */
NPUPROF_HOT_ static bool npuprof_cursor_plain_of_kinds_(npuprof_cursor_kinds_ *k, npuprof_event_ *ev)
{
    const uint64_t first = k->cursor.image->h->first.ticks;
    const uint32_t kinds = k->kinds;
    npuprof_extent_ x = k->passed;
    npuprof_plain_walk_ c = k->plain;
    npuprof_plain_ p;
    while (npuprof_cursor_peek_plain_(&c, &p)) {
        const uint32_t use = k->met[p.site % 256].use, kind = use & 0xFF;
        const bool nests = NPUPROF_KINDS_THAT_NEST_ >> kind & 1;
        if (use >> 8 == p.site) {
            if (nests && !npuprof_cursor_plain_ended_(&c, &p)) break;
            if (kinds >> kind & 1) {
                if (!npuprof_cursor_fill_plain_(k, &c, &p, ev)) break;
                k->passed = x;
                k->plain.at = p.behind;
                return true;
            }
            npuprof_extent_add_(&x, kind, p.start - first, nests ? p.end : p.start);
        } else if (p.site != NPUPROF_CONTROL_RESULT_) {
            break;
        }
        c.at = p.behind;
    }
    k->passed = x;
    k->plain = c;
    return false;
}

/* The next record of the kinds. Of others than those of devices, *ev has only what is filled in above.
   False: there are no more in the slot. */
NPUPROF_HOT_ static bool npuprof_cursor_next_of_kinds_(npuprof_cursor_kinds_ *k, npuprof_event_ *ev)
{
    while (!npuprof_cursor_plain_of_kinds_(k, ev)) {
        npuprof_cursor_end_plains_(&k->cursor, &k->plain);
        const bool more = npuprof_cursor_next_event_(&k->cursor, ev);
        k->plain = npuprof_cursor_begin_plains_(&k->cursor);
        if (!more) return false;
        npuprof_cursor_note_site_(k, ev);
        if (k->kinds & (NPUPROF_CURSOR_DECODED_ | 1u << ev->kind)) break;
    }
    return true;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/hash.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "image.h"
#include "cursor.h"
#include "threads.h"

/* ---- Arguments and ids */

typedef struct npuprof_value_ { uint32_t key, type; uint64_t bits; const uint8_t *text; size_t length; } npuprof_value_;

/* The argument at *u; moves on. False at the end. The text's first 8 bytes lie in the head unit, the rest follows it. */
static bool npuprof_args_next_(const npuprof_unit_ **u, const npuprof_unit_ *end, npuprof_value_ *v)
{
    if (*u >= end) return false;
    const uint64_t payload = (*u)->w0 >> NPUPROF_ID_BITS_;
    v->type = (uint32_t)payload & 15;
    v->key = (uint32_t)(payload >> 4) & 0x0FFFFFFFu;
    v->length = (size_t)(payload >> 32);
    v->bits = (*u)->w1;
    v->text = (const uint8_t *)*u + 8;
    *u += 1 + (v->length > 8 ? NPUPROF_UNITS_(v->length - 8) : 0);
    return true;
}

/* An argument of that key as an integer: its type, or 0. */
static inline uint32_t npuprof_args_find_(const npuprof_image_ *im, const npuprof_event_ *ev, const char *key, uint64_t *bits)
{
    npuprof_value_ v;
    const size_t key_length = strlen(key);
    for (const npuprof_unit_ *u = ev->args; npuprof_args_next_(&u, ev->args_end, &v);) {
        size_t length;
        const char *text = npuprof_image_text_(im, v.key, &length);
        if (v.type <= NPUPROF_ARG_UINT && length == key_length && memcmp(text, key, length) == 0) {
            *bits = v.bits;
            return v.type;
        }
    }
    return 0;
}

/* Is a device span a whole execution? Those carry no instruction_index. */
static bool npuprof_walk_is_execution_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    uint64_t unused;
    return npuprof_args_find_(im, ev, "instruction_index", &unused) == 0;
}
/* ---- A thread's events, with their nesting */

enum { NPUPROF_WALK_DEPTH_ = 512 };           /* deeper ones have the one at this depth as their parent */
typedef struct npuprof_walk_ {
    const npuprof_image_ *image;
    uint32_t tid, sources, depth, from;    /* from: the source of the event just given */
    npuprof_cursor_ cursor[NPUPROF_SLOT_CONTEXTS_];       /* the thread and its signal handlers' contexts */
    npuprof_event_ waiting[NPUPROF_SLOT_CONTEXTS_];
    bool has[NPUPROF_SLOT_CONTEXTS_];
    struct { uint64_t start, end, position, root; } open[NPUPROF_WALK_DEPTH_];
    bool warm[NPUPROF_WALK_DEPTH_];
    bool has_parent, warm_up;                      /* of the event just given */
    uint64_t parent, root;                         /* positions */
    uint64_t parent_start, parent_end;             /* ticks */
} npuprof_walk_;

static void npuprof_walk_begin_(npuprof_walk_ *w, const npuprof_image_ *im, uint32_t tid)
{
    w->image = im;
    w->tid = tid;
    w->sources = w->depth = w->from = 0;
    const npuprof_slot_head_ *slot = NULL;
    while (w->sources < NPUPROF_SLOT_CONTEXTS_ && (slot = npuprof_image_next_slot_of_(im, tid, slot)) != NULL)
        if (NPUPROF_LOAD_(&slot->first_chunk)) {
            npuprof_cursor_begin_slot_(&w->cursor[w->sources], im, slot);
            w->sources++;
        }
    for (uint32_t i = 0; i < w->sources && w->sources > 1; i++) w->has[i] = npuprof_cursor_next_event_(&w->cursor[i], &w->waiting[i]);
}

/* Leaves the spans that are over at a moment. At the very tick of an end: an event still lies in the span, and all in a span without length. */
static inline void npuprof_walk_leave_(npuprof_walk_ *w, uint64_t at, bool span)
{
    uint32_t depth = w->depth;
    for (; depth && w->open[depth - 1].end <= at; depth--)
        if (NPUPROF_UNLIKELY_(w->open[depth - 1].end == at) && (!span || w->open[depth - 1].start == at)) break;
    w->depth = depth;
}
/* Enters a span, with w->root and w->warm_up. */
static inline void npuprof_walk_enter_(npuprof_walk_ *w, uint64_t start, uint64_t end, uint64_t position)
{
    if (w->depth == NPUPROF_WALK_DEPTH_) return;
    w->open[w->depth].start = start;
    w->open[w->depth].end = end;
    w->open[w->depth].position = position;
    w->open[w->depth].root = w->root;
    w->warm[w->depth] = w->warm_up;
    w->depth++;
}
/* The same for a plain span. */
static inline void npuprof_walk_plain_(npuprof_walk_ *w, const npuprof_plain_ *p)
{
    npuprof_walk_leave_(w, p->start, true);
    w->has_parent = w->depth > 0;
    w->root = p->position;
    w->warm_up = false;
    if (w->depth) {
        w->parent = w->open[w->depth - 1].position;
        w->root = w->open[w->depth - 1].root;
        w->warm_up = w->warm[w->depth - 1];
    }
    npuprof_walk_enter_(w, p->start, p->end, p->position);
}

/* The thread's next event; parent and root (the enclosing record, else the outermost span) by containment. */
static bool npuprof_walk_next_(npuprof_walk_ *w, npuprof_event_ *ev)
{
    if (w->sources <= 1) {                        /* nothing to merge: no copy */
        if (!w->sources || !npuprof_cursor_next_event_(&w->cursor[0], ev)) return false;
    } else {
        uint32_t best = UINT32_MAX;
        for (uint32_t i = 0; i < w->sources; i++)
            if (w->has[i] && (best == UINT32_MAX || w->waiting[i].host_ticks < w->waiting[best].host_ticks)) best = i;
        if (best == UINT32_MAX) return false;
        *ev = w->waiting[best];
        w->from = best;
        w->has[best] = npuprof_cursor_next_event_(&w->cursor[best], &w->waiting[best]);
    }
    npuprof_walk_leave_(w, ev->host_ticks, ev->kind <= NPUPROF_KIND_OPERATOR);
    w->has_parent = w->depth > 0;
    w->parent_start = w->depth ? w->open[w->depth - 1].start : 0;
    w->parent_end = w->depth ? w->open[w->depth - 1].end : 0;
    w->parent = w->depth ? w->open[w->depth - 1].position : 0;
    w->root = w->depth ? w->open[w->depth - 1].root : ev->position;
    w->warm_up = w->depth && w->warm[w->depth - 1];
    if (ev->kind <= NPUPROF_KIND_OPERATOR) {
        if (ev->kind == NPUPROF_KIND_RECORD || ev->kind == NPUPROF_KIND_WARM_UP) w->root = ev->position;
        if (ev->kind == NPUPROF_KIND_WARM_UP) w->warm_up = true;
        npuprof_walk_enter_(w, ev->host_ticks, ev->end, ev->position);
    }
    return true;
}

#ifndef NPUPROF_NO_JSON
/* ---- Walks that begin in the middle of a thread */

/* Where to go on in one of the slots of a thread: the locator of a record. */
typedef struct npuprof_resume_ { uint64_t locator; uint32_t tid; bool ended; } npuprof_resume_;

/* The end of a span that was open when its chunk ended: it is looked up when it is asked for. */
#define NPUPROF_WALK_END_LATER_ UINT64_MAX

/* The spans that were open when the chunk began are around what comes. */
static void npuprof_walk_enter_open_(npuprof_walk_ *w, uint32_t index)
{
    const npuprof_image_ *const im = w->image;
    const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, index);
    const npuprof_unit_ *const u = (const npuprof_unit_ *)(const void *)(chunk + 1);
    const uint32_t units = chunk->moved_units < im->units ? chunk->moved_units & ~1u : 0;
    for (uint32_t n = 0; n < units; n += 2) {
        const uint64_t w0 = npuprof_unit_load_w0_(u + n), start = npuprof_unit_load_w1_(u + n + 1);
        uint64_t end = npuprof_unit_load_w1_(u + n);
        const bool away = ((uint32_t)npuprof_unit_load_w0_(u + n) & NPUPROF_ID_MASK_) == NPUPROF_CONTROL_MOVED_AWAY_;
        const uint64_t site = away ? w0 >> NPUPROF_ID_BITS_ : w0;
        if (start < im->clear_ticks || start > im->last_ticks || !npuprof_image_site_(im, (uint32_t)site & NPUPROF_ID_MASK_)) continue;
        if (away) {
            end = NPUPROF_WALK_END_LATER_;
        } else {
            if (end != NPUPROF_END_OPEN_) end = (end & ~NPUPROF_END_CUT_) | (start & NPUPROF_END_CUT_);
            if (end > im->last_ticks) end = im->open_until;
        }
        w->root = index;                   /* Why: for NPUPROF_WALK_END_LATER_ */
        npuprof_walk_enter_(w, start, end, npuprof_unit_load_w0_(u + n + 1) >> NPUPROF_ID_BITS_);
    }
}
/* Begins a walk at these places, those of a thread's slots. Positions and roots of the spans around it are not known. */
static void npuprof_walk_resume_(npuprof_walk_ *w, const npuprof_image_ *im, const npuprof_resume_ *at, uint32_t count)
{
    w->image = im;
    w->tid = at->tid;
    w->sources = count;
    w->depth = w->from = 0;
    w->warm_up = false;
    for (uint32_t i = 0; i < count; i++) {
        npuprof_cursor_ *const c = &w->cursor[i];
        c->image = im;
        npuprof_cursor_begin_chunk_(c, at[i].ended ? 0 : (uint32_t)((at[i].locator >> 1) / im->units) + 1);
        c->tid = at->tid;
        c->left = UINT32_MAX;
        c->first = at[i].locator & 1;
        if (c->chunk && !c->first) npuprof_walk_enter_open_(w, c->chunk - 1);
    }
    for (uint32_t i = 0; i < count && count > 1; i++) w->has[i] = npuprof_cursor_next_event_(&w->cursor[i], &w->waiting[i]);
}
/* Where the walk is, before the event it has just given. Nothing, if it could not go on from there: a span around the event is not
   among those that its chunk says were open. */
static bool npuprof_walk_save_(const npuprof_walk_ *w, const npuprof_event_ *ev, npuprof_resume_ *at)
{
    const npuprof_image_ *const im = w->image;
    for (uint32_t i = 0; i < w->sources; i++) {
        const npuprof_event_ *const next = i == w->from ? ev : w->has[i] ? &w->waiting[i] : NULL;
        if (!next) {
            at[i].ended = true;
            continue;
        }
        const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, (uint32_t)((next->locator >> 1) / im->units));
        uint32_t before = 0;
        while (w->sources == 1 && before < w->depth && w->open[before].position < chunk->first_position) before++;
        if (before > chunk->moved_units / 2u && !(next->locator & 1)) return false;
        at[i].locator = next->locator;
    }
    return true;
}
/* The end of the span around the event just given. */
static uint64_t npuprof_walk_parent_end_(npuprof_walk_ *w)
{
    const npuprof_image_ *const im = w->image;
    if (!w->depth || w->open[w->depth - 1].end != NPUPROF_WALK_END_LATER_) return w->parent_end;
    const npuprof_chunk_ *home;
    const npuprof_unit_ *const u = npuprof_cursor_follow_moved_(im, (uint32_t)w->open[w->depth - 1].root, w->open[w->depth - 1].position, &home);
    uint64_t end = u ? npuprof_unit_load_w1_(u) : NPUPROF_END_OPEN_;
    if (end != NPUPROF_END_OPEN_) end = (end & ~NPUPROF_END_CUT_) | (w->parent_start & NPUPROF_END_CUT_);
    return w->open[w->depth - 1].end = end > im->last_ticks ? im->open_until : end;
}
#endif /* NPUPROF_NO_JSON */

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../format/arena.h"
#include "image.h"
#include "cursor.h"
#include "walk.h"

/* Walks that begin in the middle of a thread, for readers that go through all threads side by side, a part of
   each at a time (write/json_flow.h). A place is the locator of the next record in each slot of the thread.
   Which spans are open there the chunk itself says: it begins with those that were open when it was taken.
   Positions and roots of the spans around a place are not known; their stamps are. */
typedef struct npuprof_walk_place_ { uint64_t locator; uint32_t tid; bool ended; } npuprof_walk_place_;

/* Stands for the end of a span that moved away from its chunk: it is looked up when it is asked for. */
#define NPUPROF_WALK_END_LATER_ UINT64_MAX

/* Enters the spans that were open when a chunk was taken. */
static void npuprof_walk_enter_open_(npuprof_walk_ *w, uint32_t index)
{
    const npuprof_image_ *const im = w->image;
    const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, index);
    const npuprof_unit_ *const u = (const npuprof_unit_ *)(const void *)(chunk + 1);
    const uint32_t units = chunk->moved_units < im->units ? chunk->moved_units & ~1u : 0;
    for (uint32_t n = 0; n < units; n += 2) {
        const uint64_t w0 = npuprof_unit_load_w0_(u + n), start = npuprof_unit_load_w1_(u + n + 1);
        uint64_t end = npuprof_unit_load_w1_(u + n);
        const bool away = npuprof_unit_load_id_(u + n) == NPUPROF_CONTROL_MOVED_AWAY_;
        const uint32_t site = (uint32_t)(away ? w0 >> NPUPROF_ID_BITS_ : w0) & NPUPROF_ID_MASK_;
        if (start < im->clear_ticks || start > im->last_ticks || !npuprof_image_site_(im, site)) continue;
        if (away) {
            end = NPUPROF_WALK_END_LATER_;
        } else {
            if (end != NPUPROF_END_OPEN_) end = (end & ~NPUPROF_END_CUT_) | (start & NPUPROF_END_CUT_);
            if (end > im->last_ticks) end = im->open_until;
        }
        w->root = index;                   /* where to look for an end that is not known yet */
        npuprof_walk_enter_(w, start, end, npuprof_unit_load_w0_(u + n + 1) >> NPUPROF_ID_BITS_);
    }
}

/* Begins a walk at a place: `count` slots of one thread. */
static void npuprof_walk_resume_(npuprof_walk_ *w, const npuprof_image_ *im, const npuprof_walk_place_ *at,
                                 uint32_t count)
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
    for (uint32_t i = 0; i < count && count > 1; i++)
        w->has[i] = npuprof_cursor_next_event_(&w->cursor[i], &w->waiting[i]);
}

/* The place before the event just given. False: no walk can begin there, because a span around the event is
   not among those that the chunk begins with. */
static bool npuprof_walk_save_(const npuprof_walk_ *w, const npuprof_event_ *ev, npuprof_walk_place_ *at)
{
    const npuprof_image_ *const im = w->image;
    for (uint32_t i = 0; i < w->sources; i++) {
        const npuprof_event_ *const next = i == w->from ? ev : w->has[i] ? &w->waiting[i] : NULL;
        if (!next) {
            at[i].ended = true;
            continue;
        }
        const npuprof_chunk_ *const chunk =
            npuprof_image_chunk_(im, (uint32_t)((next->locator >> 1) / im->units));
        uint32_t before = 0;               /* open spans that began before the chunk */
        while (w->sources == 1 && before < w->depth && w->open[before].position < chunk->first_position)
            before++;
        if (before > chunk->moved_units / 2u && !(next->locator & 1)) return false;
        at[i].locator = next->locator;
    }
    return true;
}

/* The end of the span around the event just given, in host ticks. */
static uint64_t npuprof_walk_parent_end_(npuprof_walk_ *w)
{
    const npuprof_image_ *const im = w->image;
    if (!w->depth || w->open[w->depth - 1].end != NPUPROF_WALK_END_LATER_) return w->parent_end;
    const npuprof_chunk_ *home;
    const uint32_t index = (uint32_t)w->open[w->depth - 1].root;
    const npuprof_unit_ *const u =
        npuprof_cursor_follow_moved_(im, index, w->open[w->depth - 1].position, &home);
    uint64_t end = u ? npuprof_unit_load_w1_(u) : NPUPROF_END_OPEN_;
    if (end != NPUPROF_END_OPEN_) end = (end & ~NPUPROF_END_CUT_) | (w->parent_start & NPUPROF_END_CUT_);
    if (end > im->last_ticks) end = im->open_until;
    w->open[w->depth - 1].end = end;
    return end;
}

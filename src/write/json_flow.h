#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../numbers/hash.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../read/image.h"
#include "../read/threads.h"
#include "../read/time.h"
#include "../read/place.h"
#include "../read/order.h"
#include "../read/walk.h"
#include "../read/resume.h"
#include "text.h"
#include "work.h"
#include "json.h"
#include "json_placed.h"

/* Arrows of PROF_FLOW_OUT and PROF_FLOW_IN: each IN inside a span gets an arrow from the newest OUT before it
   that has its id and is inside a span. Each arrow has an id of its own, so users may use theirs again.

   All flows of all threads are read in the order of time, in batches. For each batch every thread is walked
   on from its place, where the batch before left it. The newest OUTs are in a table; an IN whose OUT the
   table has forgotten waits for a second look, through the parts of the arena that have OUTs with such ids.
   So it takes as long as a few walks over the arena, if no more OUTs are under way than the table holds, or
   if ids grow with time.

   Data: the scratch memory from the lanes on, which are done (npuprof_flow_share_scratch_), and the marks of
   the index (read/order.h). */

/* The newest OUT of an id. tid 0: free. */
typedef struct npuprof_flow_sent_ { uint64_t id; int64_t ns; uint32_t tid, pad; } npuprof_flow_sent_;

/* Where to go on in a slot. Of a thread's first slot also: the flow to go on with (0: its first one), and the
   order of the one before. */
typedef struct npuprof_flow_place_ {
    npuprof_walk_place_ at;
    uint64_t flow;
    int64_t order;
} npuprof_flow_place_;

typedef struct npuprof_flow_state_ {
    npuprof_work_ *work;
    /* start_ns: the order; end_ns: where the arrow ends; unfinished: it is an IN */
    npuprof_placed_ *batch;
    npuprof_placed_ *waiting;              /* arrows (npuprof_flow_arrow_) */
    size_t batch_capacity, count, waiting_capacity, waiting_count;
    npuprof_flow_sent_ *sent[2];           /* hash tables: the newest OUTs, and those before them */
    size_t sent_capacity, sent_count;
    bool emptied, forgotten;               /* a table was emptied; it was one with OUTs */
    npuprof_flow_place_ *place;            /* of the slots, thread by thread */
    size_t place_capacity, places;
    uint32_t tid_behind;                   /* the first thread that found no room for its places; 0: none */
    uint32_t mark_count;
} npuprof_flow_state_;

/* ---- The table of OUTs */

/* Where an id is in one of the two tables, or would be (tid 0). */
static npuprof_flow_sent_ *npuprof_flow_find_sent_(const npuprof_flow_state_ *f, unsigned table, uint64_t id)
{
    npuprof_flow_sent_ *const list = f->sent[table];
    size_t i = npuprof_hash_mix_(id) % f->sent_capacity;
    while (list[i].tid && list[i].id != id) i = i + 1 < f->sent_capacity ? i + 1 : 0;
    return &list[i];
}

/* Adds an OUT. A full table becomes the older one, and the older one is emptied. */
static void npuprof_flow_add_sent_(npuprof_flow_state_ *f, const npuprof_placed_ *out)
{
    npuprof_flow_sent_ *e = npuprof_flow_find_sent_(f, 0, out->id);
    if (!e->tid && f->sent_count >= f->sent_capacity / 4 * 3) {
        npuprof_flow_sent_ *const older = f->sent[0];
        f->sent[0] = f->sent[1];
        f->sent[1] = older;
        f->forgotten |= f->emptied;
        f->emptied = true;
        f->sent_count = 0;
        memset(f->sent[0], 0, f->sent_capacity * sizeof *older);
        e = npuprof_flow_find_sent_(f, 0, out->id);
    }
    f->sent_count += !e->tid;
    e->id = out->id;
    e->ns = out->end_ns;
    e->tid = out->tid;
}

/* ---- Batches of flows, in the order of time */

/* Is the flow that was just walked to inside a span? *ns: where its arrow ends.
   Why before the end of the span: viewers bind an arrow to the slice around its stamp, and the end is
   outside. */
static bool npuprof_flow_arrow_ns_(npuprof_work_ *w, const npuprof_event_ *ev, int64_t *ns)
{
    const npuprof_image_ *const im = &w->image;
    if (!w->walk.has_parent) return false;
    const int64_t parent_end = npuprof_image_ns_(im, npuprof_walk_parent_end_(&w->walk));
    *ns = npuprof_image_ns_(im, ev->start);
    if (*ns >= parent_end) *ns = parent_end - 1;
    return *ns >= npuprof_image_ns_(im, w->walk.parent_start);
}

/* The flow that was just walked to is the first of its thread behind this batch: the next batch begins here.
   */
static void npuprof_flow_save_place_(const npuprof_walk_ *walk, const npuprof_event_ *ev, int64_t order,
                                     npuprof_flow_place_ *place)
{
    npuprof_walk_place_ at[NPUPROF_SLOT_CONTEXTS_];
    for (uint32_t i = 0; i < walk->sources; i++) at[i] = place[i].at;
    if (!npuprof_walk_save_(walk, ev, at)) return;
    for (uint32_t i = 0; i < walk->sources; i++) place[i].at = at[i];
    place->flow = ev->locator;
    place->order = order;
}

/* Adds to the batch what the thread that is walked has behind `last` (NULL: all). place: where the walk
   began, or NULL. */
static void npuprof_flow_gather_thread_(npuprof_flow_state_ *f, npuprof_flow_place_ *place,
                                        const npuprof_placed_ *last)
{
    npuprof_work_ *const w = f->work;
    npuprof_event_ ev;
    npuprof_placed_ p;
    int64_t order = place ? place->order : INT64_MIN;
    bool skip = place && place->flow, saved = false;
    memset(&p, 0, sizeof p);
    while (npuprof_walk_next_(&w->walk, &ev)) {
        if (ev.kind != NPUPROF_KIND_FLOW_OUT && ev.kind != NPUPROF_KIND_FLOW_IN) continue;
        if (skip && ev.locator != place->flow) continue;
        skip = false;
        if (!npuprof_flow_arrow_ns_(w, &ev, &p.end_ns)) continue;
        const int64_t before = order;
        /* Why: a thread's flows must keep their order even if its clock steps back, else one falls between
           batches. */
        if (p.end_ns > order) order = p.end_ns;
        p.unfinished = ev.kind == NPUPROF_KIND_FLOW_IN;
        p.start_ns = order;
        /* OUTs first, then by thread */
        p.order_ns = (p.unfinished ? 0 : (int64_t)1 << 40) - (int64_t)ev.tid;
        p.locator = ev.locator;
        p.id = ev.value;
        p.tid = ev.tid;
        if (last && !npuprof_placed_before_(last, &p)) continue;
        if (place && !saved) npuprof_flow_save_place_(&w->walk, &ev, before, place);
        saved = true;
        if (f->count == f->batch_capacity && order > f->batch[0].start_ns) return;
        npuprof_placed_keep_min_(f->batch, f->batch_capacity, &f->count, &p);
    }
    for (uint32_t i = 0; place && !saved && i < w->walk.sources; i++) place[i].at.ended = true;
}

/* The batch behind `last`, as a heap. */
static void npuprof_flow_next_batch_(npuprof_flow_state_ *f, const npuprof_placed_ *last)
{
    npuprof_work_ *const w = f->work;
    const npuprof_image_ *const im = &w->image;
    npuprof_walk_place_ at[NPUPROF_SLOT_CONTEXTS_];
    f->count = 0;
    for (size_t i = 0; i < f->places;) {
        npuprof_flow_place_ *const place = &f->place[i];
        uint32_t n = 0, ended = 0;
        for (; i < f->places && f->place[i].at.tid == place->at.tid; i++) {
            at[n++] = f->place[i].at;
            ended += f->place[i].at.ended;
        }
        if (ended == n) continue;
        npuprof_walk_resume_(&w->walk, im, at, n);
        npuprof_flow_gather_thread_(f, place, last);
    }
    for (uint32_t tid = f->tid_behind; tid; tid = npuprof_image_next_tid_(im, tid)) {
        npuprof_walk_begin_(&w->walk, im, tid);
        npuprof_flow_gather_thread_(f, NULL, last);
    }
}

/* ---- Arrows: placed spans again. track: the user's id. end_ns, tid: where the arrow begins; tid 0: nowhere.
   start_ns, id: time and tid where it ends */

static npuprof_placed_ npuprof_flow_arrow_(const npuprof_placed_ *in, const npuprof_flow_sent_ *from)
{
    npuprof_placed_ a = *in;
    a.track = in->id;
    a.start_ns = in->end_ns;
    a.order_ns = 0;
    a.id = in->tid;
    a.tid = from->tid;
    a.end_ns = from->tid ? from->ns : INT64_MIN;
    return a;
}

static void npuprof_flow_put_arrows_(npuprof_work_ *w, npuprof_placed_ *list, size_t count)
{
    const int64_t origin = w->image.origin_ns;
    npuprof_placed_sort_(list, count);
    for (const npuprof_placed_ *a = list; a < list + count; a++)
        if (a->tid)
            w->put_arrow(w, "flow", a->tid, a->end_ns - origin, (uint32_t)a->id, a->start_ns - origin);
}

/* The first of sorted arrows with at least this id of the user's that does not end before ns. */
static size_t npuprof_flow_first_arrow_(const npuprof_placed_ *list, size_t count, uint64_t id, int64_t ns)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const npuprof_placed_ *const a = &list[middle];
        if (a->track < id || (a->track == id && a->start_ns < ns)) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* ---- The second look, for INs whose OUTs the table has forgotten */

static npuprof_piece_mark_ *npuprof_flow_add_mark_(npuprof_flow_state_ *f, uint32_t tid, uint32_t chunk)
{
    npuprof_piece_mark_ *const m = &npuprof_piece_index_.mark[f->mark_count++];
    m->min_id = UINT64_MAX;
    m->max_id = 0;
    m->tid = tid;
    m->chunk = chunk;
    return m;
}

/* Cuts the arena into parts of about as many chunks each, and notes which ids the OUTs in each part have. */
static void npuprof_flow_mark_parts_(npuprof_flow_state_ *f)
{
    const npuprof_image_ *const im = &f->work->image;
    npuprof_walk_ *const walk = &f->work->walk;
    npuprof_piece_mark_ *m = npuprof_piece_index_.mark;
    npuprof_walk_place_ at[NPUPROF_SLOT_CONTEXTS_];
    npuprof_event_ ev;
    uint32_t walked = UINT32_MAX;          /* chunks since the last mark */
    const uint32_t step = (im->chunk_total + im->threads) / (NPUPROF_PIECE_MARKS_ - 1) + 1;
    for (uint32_t tid = 0; (tid = npuprof_image_next_tid_(im, tid)) != 0;) {
        npuprof_walk_begin_(walk, im, tid);
        bool begins = walked >= step;
        for (uint32_t chunk = 0; npuprof_walk_next_(walk, &ev); begins = false) {
            const bool other = walk->sources == 1 && walk->cursor[0].chunk != chunk;
            if (other && chunk) begins = ++walked >= step && npuprof_walk_save_(walk, &ev, at);
            if (begins && f->mark_count < NPUPROF_PIECE_MARKS_) {
                m = npuprof_flow_add_mark_(f, tid, chunk ? walk->cursor[0].chunk : 0);
                walked = 0;
            }
            chunk = walk->cursor[0].chunk;
            if (ev.kind != NPUPROF_KIND_FLOW_OUT) continue;
            if (ev.value < m->min_id) m->min_id = ev.value;
            if (ev.value > m->max_id) m->max_id = ev.value;
        }
        if (walked < UINT32_MAX) walked++;
    }
}

/* An OUT: is it the newest one so far for some of those that wait? */
static void npuprof_flow_offer_out_(npuprof_flow_state_ *f, const npuprof_event_ *ev, int64_t ns)
{
    const size_t count = f->waiting_count;
    size_t i = npuprof_flow_first_arrow_(f->waiting, count, ev->value, ns);
    for (; i < count && f->waiting[i].track == ev->value; i++) {
        if (f->waiting[i].end_ns > ns) continue;
        f->waiting[i].end_ns = ns;
        f->waiting[i].tid = ev->tid;
    }
}

/* Walks the part from a mark to the next one (NULL: to the end). */
static void npuprof_flow_offer_part_(npuprof_flow_state_ *f, const npuprof_piece_mark_ *m,
                                     const npuprof_piece_mark_ *behind)
{
    npuprof_work_ *const w = f->work;
    const npuprof_image_ *const im = &w->image;
    npuprof_event_ ev;
    int64_t ns;
    npuprof_walk_place_ at;
    memset(&at, 0, sizeof at);
    at.tid = m->tid;
    if (m->chunk) {
        at.locator = (uint64_t)(m->chunk - 1) * im->units << 1;
        npuprof_walk_resume_(&w->walk, im, &at, 1);
    } else {
        npuprof_walk_begin_(&w->walk, im, m->tid);
    }
    for (uint32_t tid = m->tid; tid;) {
        while (npuprof_walk_next_(&w->walk, &ev)) {
            if (behind && behind->tid == tid && behind->chunk == w->walk.cursor[0].chunk) return;
            if (ev.kind != NPUPROF_KIND_FLOW_OUT) continue;
            const size_t first = npuprof_flow_first_arrow_(f->waiting, f->waiting_count, ev.value, INT64_MIN);
            const bool waited_for = first < f->waiting_count && f->waiting[first].track == ev.value;
            if (waited_for && npuprof_flow_arrow_ns_(w, &ev, &ns)) npuprof_flow_offer_out_(f, &ev, ns);
        }
        tid = npuprof_image_next_tid_(im, tid);
        if (behind && behind->tid == tid && !behind->chunk) return;
        if (tid) npuprof_walk_begin_(&w->walk, im, tid);
    }
}

/* Finds the OUTs of those that wait, and writes their arrows. */
static void npuprof_flow_put_waiting_(npuprof_flow_state_ *f)
{
    npuprof_placed_ *const list = f->waiting;
    const size_t count = f->waiting_count;
    if (!count) return;
    if (!f->mark_count) npuprof_flow_mark_parts_(f);
    npuprof_placed_sort_(list, count);
    const npuprof_piece_mark_ *const end = npuprof_piece_index_.mark + f->mark_count;
    for (const npuprof_piece_mark_ *m = npuprof_piece_index_.mark; m < end; m++) {
        const size_t first = npuprof_flow_first_arrow_(list, count, m->min_id, INT64_MIN);
        if (first < count && list[first].track <= m->max_id)
            npuprof_flow_offer_part_(f, m, m + 1 < end ? m + 1 : NULL);
    }
    npuprof_flow_put_arrows_(f->work, list, count);
    f->waiting_count = 0;
}

/* ---- All of it */

/* Writes the arrows of a sorted batch. */
static void npuprof_flow_put_batch_(npuprof_flow_state_ *f)
{
    static const npuprof_flow_sent_ nowhere = { 0, 0, 0, 0 };
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++) {
        const npuprof_placed_ p = f->batch[i];
        if (!p.unfinished) {
            npuprof_flow_add_sent_(f, &p);
            continue;
        }
        const npuprof_flow_sent_ *from = npuprof_flow_find_sent_(f, 0, p.id);
        if (!from->tid) from = npuprof_flow_find_sent_(f, 1, p.id);
        if (from->tid && from->ns <= p.end_ns) {
            f->batch[count++] = npuprof_flow_arrow_(&p, from);       /* over those that are done */
        } else if (f->forgotten) {
            if (f->waiting_count == f->waiting_capacity) npuprof_flow_put_waiting_(f);
            f->waiting[f->waiting_count++] = npuprof_flow_arrow_(&p, &nowhere);
        }
    }
    npuprof_flow_put_arrows_(f->work, f->batch, count);
}

/* Shares the scratch memory out in eighths: the batch, those that wait, the two tables, the places. */
static void npuprof_flow_share_scratch_(npuprof_flow_state_ *f, npuprof_work_ *w)
{
    uint8_t *p = (uint8_t *)w->nodes;
    const size_t share = (size_t)((uint8_t *)(w->placed + w->placed_room) - p) / 8 / 16 * 16;
    memset(f, 0, sizeof *f);
    f->work = w;
    f->batch = (npuprof_placed_ *)(void *)p;
    f->batch_capacity = 2 * share / sizeof *f->batch;
    f->waiting = (npuprof_placed_ *)(void *)(p + 2 * share);
    f->waiting_capacity = 3 * share / sizeof *f->waiting;
    f->sent[0] = (npuprof_flow_sent_ *)(void *)(p + 5 * share);
    f->sent[1] = (npuprof_flow_sent_ *)(void *)(p + 6 * share);
    f->sent_capacity = share / sizeof *f->sent[0];
    f->place = (npuprof_flow_place_ *)(void *)(p + 7 * share);
    f->place_capacity = share / sizeof *f->place;
    memset(f->sent[0], 0, 2 * share);
}

/* Sets the places of a thread to its beginning. */
static void npuprof_flow_add_places_(npuprof_flow_state_ *f, uint32_t tid)
{
    const npuprof_image_ *const im = &f->work->image;
    const size_t before = f->places;
    const npuprof_slot_head_ *slot = NULL;
    while (f->places < before + NPUPROF_SLOT_CONTEXTS_ &&
           (slot = npuprof_image_next_slot_of_(im, tid, slot)) != NULL) {
        const uint32_t chunk = NPUPROF_LOAD_(&slot->first_chunk);
        if (!chunk) continue;
        if (f->places == f->place_capacity) {
            f->places = before;
            f->tid_behind = tid;
            return;
        }
        npuprof_flow_place_ *const place = &f->place[f->places++];
        memset(place, 0, sizeof *place);
        place->at.tid = tid;
        place->at.locator = (uint64_t)(chunk - 1) * im->units << 1 | 1;
        place->order = INT64_MIN;
    }
}

static void npuprof_json_flows_(npuprof_work_ *w)
{
    const npuprof_image_ *const im = &w->image;
    const npuprof_placed_ *after = NULL;
    npuprof_flow_state_ f;
    npuprof_placed_ last;
    if (!(im->kinds >> NPUPROF_KIND_FLOW_IN & 1)) return;
    npuprof_flow_share_scratch_(&f, w);
    for (uint32_t tid = 0; !f.tid_behind && (tid = npuprof_image_next_tid_(im, tid)) != 0;)
        npuprof_flow_add_places_(&f, tid);
    for (;; after = &last) {
        npuprof_flow_next_batch_(&f, after);
        if (!f.count) break;
        npuprof_placed_sort_(f.batch, f.count);
        last = f.batch[f.count - 1];
        npuprof_flow_put_batch_(&f);
    }
    npuprof_flow_put_waiting_(&f);
}

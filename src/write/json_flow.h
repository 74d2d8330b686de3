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

/* One arrow: from (tid, ns) to (tid, ns), in trace time. Viewers match the two halves by id, category and name. */
static void npuprof_json_arrow_(npuprof_work_ *w, const char *name, uint32_t from_tid, int64_t from_ns, uint32_t to_tid, int64_t to_ns)
{
    for (int end = 0; end < 2; end++) {
        npuprof_json_open_(w, end ? "f" : "s", 0, name, 0, end ? to_tid : from_tid);
        npuprof_out_puts_(&w->out, end ? ",\"bp\":\"e\",\"cat\":\"" : ",\"cat\":\"");
        npuprof_out_puts_(&w->out, name);
        npuprof_out_puts_(&w->out, "\",\"id\":");
        w->arrows += !end;
        npuprof_out_uint_(&w->out, w->arrows);
        npuprof_json_stamp_(w, ",\"ts\":", end ? to_ns : from_ns);
        npuprof_out_puts_(&w->out, "}");
    }
}

/* PROF_FLOW_OUT and PROF_FLOW_IN: each IN inside a span gets an arrow from the newest OUT before it with its id, if there is one inside
   a span. Each arrow has an id of its own, so users may repeat theirs.
   In batches in the order of time: each thread is walked on from where the batch before left it, and a table holds what was sent last.
   An IN whose OUT the table has forgotten waits for a walk of its own, through the parts of the arena that have OUTs with such ids.
   So it takes the time of a few walks if no more OUTs are under way than the table holds, or if ids grow with time. */
typedef struct npuprof_flow_sent_ { uint64_t id; int64_t ns; uint32_t tid, pad; } npuprof_flow_sent_;    /* tid 0: free */
/* Where to go on in a slot; of a thread's first one: the flow to go on with (0: its first), and the order of the one before. */
typedef struct npuprof_flow_place_ { npuprof_walk_place_ at; uint64_t flow; int64_t order; } npuprof_flow_place_;
typedef struct npuprof_flows_ {
    npuprof_work_ *work;
    npuprof_placed_ *batch, *waiting;      /* track 0, start_ns the order, end_ns where its arrow ends, unfinished: it is an IN */
    size_t batch_room, count, waiting_room, waiting_count;
    npuprof_flow_sent_ *sent[2];                /* hash tables: the newer, and what it held before it was emptied last */
    size_t sent_room, sent_count;
    bool emptied, forgotten;
    npuprof_flow_place_ *place;            /* of the slots, thread by thread */
    size_t place_room, places;
    uint32_t mark_count, tid_behind;       /* tid_behind: the first thread that had no room for its places; 0: all had */
} npuprof_flows_;

/* The room for an id in one of the tables; tid 0: it is not there. */
static npuprof_flow_sent_ *npuprof_flow_find_sent_(const npuprof_flows_ *f, unsigned table, uint64_t id)
{
    npuprof_flow_sent_ *const list = f->sent[table];
    size_t i = npuprof_hash_mix_(id) % f->sent_room;
    while (list[i].tid && list[i].id != id) i = i + 1 < f->sent_room ? i + 1 : 0;
    return &list[i];
}
static void npuprof_flow_add_sent_(npuprof_flows_ *f, const npuprof_placed_ *out)
{
    npuprof_flow_sent_ *e = npuprof_flow_find_sent_(f, 0, out->id);
    if (!e->tid && f->sent_count >= f->sent_room / 4 * 3) {
        npuprof_flow_sent_ *const older = f->sent[0];
        f->sent[0] = f->sent[1];
        f->sent[1] = older;
        f->forgotten |= f->emptied;
        f->emptied = true;
        f->sent_count = 0;
        memset(f->sent[0], 0, f->sent_room * sizeof *older);
        e = npuprof_flow_find_sent_(f, 0, out->id);
    }
    f->sent_count += !e->tid;
    e->id = out->id;
    e->ns = out->end_ns;
    e->tid = out->tid;
}

/* Is the event just walked to a flow's, inside a span? *ns: where its arrow ends.
   Why before the span's end: viewers bind an arrow to the slice around its stamp, and a slice's end is outside. */
static bool npuprof_flow_arrow_ns_(npuprof_work_ *w, const npuprof_event_ *ev, int64_t *ns)
{
    const npuprof_image_ *const im = &w->image;
    if (!w->walk.has_parent) return false;
    const int64_t parent_end = npuprof_image_ns_(im, npuprof_walk_parent_end_(&w->walk));
    *ns = npuprof_image_ns_(im, ev->start);
    if (*ns >= parent_end) *ns = parent_end - 1;
    return *ns >= npuprof_image_ns_(im, w->walk.parent_start);
}

/* The flow just walked to is the first of its thread that the batches before did not have: the next one begins here. */
static void npuprof_flow_save_place_(const npuprof_walk_ *walk, const npuprof_event_ *ev, int64_t order, npuprof_flow_place_ *place)
{
    npuprof_walk_place_ at[NPUPROF_SLOT_CONTEXTS_];
    for (uint32_t i = 0; i < walk->sources; i++) at[i] = place[i].at;
    if (!npuprof_walk_save_(walk, ev, at)) return;
    for (uint32_t i = 0; i < walk->sources; i++) place[i].at = at[i];
    place->flow = ev->locator;
    place->order = order;
}

/* What the thread at hand has for the batch behind `last` (NULL: the first one). place: where the walk began, or NULL. */
static void npuprof_flow_gather_thread_(npuprof_flows_ *f, npuprof_flow_place_ *place, const npuprof_placed_ *last)
{
    npuprof_work_ *const w = f->work;
    npuprof_event_ ev;
    npuprof_placed_ p;
    int64_t order = place ? place->order : INT64_MIN;
    bool skip = place && place->flow, left = false;
    memset(&p, 0, sizeof p);
    while (npuprof_walk_next_(&w->walk, &ev)) {
        if (ev.kind != NPUPROF_KIND_FLOW_OUT && ev.kind != NPUPROF_KIND_FLOW_IN) continue;
        if (skip && ev.locator != place->flow) continue;
        skip = false;
        if (!npuprof_flow_arrow_ns_(w, &ev, &p.end_ns)) continue;
        const int64_t before = order;
        /* Why: a thread's flows keep their order even if its clock steps back, or they could fall between two batches. */
        if (p.end_ns > order) order = p.end_ns;
        p.unfinished = ev.kind == NPUPROF_KIND_FLOW_IN;
        p.start_ns = order;
        p.order_ns = (p.unfinished ? 0 : (int64_t)1 << 40) - (int64_t)ev.tid;   /* OUT first, then by thread */
        p.locator = ev.locator;
        p.id = ev.value;
        p.tid = ev.tid;
        if (last && !npuprof_placed_before_(last, &p)) continue;
        if (place && !left) npuprof_flow_save_place_(&w->walk, &ev, before, place);
        left = true;
        if (f->count == f->batch_room && order > f->batch[0].start_ns) return;
        npuprof_placed_keep_min_(f->batch, f->batch_room, &f->count, &p);
    }
    for (uint32_t i = 0; place && !left && i < w->walk.sources; i++) place[i].at.ended = true;
}
static void npuprof_flow_next_batch_(npuprof_flows_ *f, const npuprof_placed_ *last)
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

/* Arrows: track the user's id, end_ns and tid where it begins (tid 0: there is none), start_ns and id where it ends. By these. */
static void npuprof_flow_put_arrows_(npuprof_work_ *w, npuprof_placed_ *list, size_t count)
{
    const int64_t origin = w->image.origin_ns;
    npuprof_placed_sort_(list, count);
    for (const npuprof_placed_ *a = list; a < list + count; a++)
        if (a->tid) npuprof_json_arrow_(w, "flow", a->tid, a->end_ns - origin, (uint32_t)a->id, a->start_ns - origin);
}
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

/* The first of the arrows whose user's id is at least this, and which do not end before ns. */
static size_t npuprof_flow_first_arrow_(const npuprof_placed_ *list, size_t count, uint64_t id, int64_t ns)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (list[middle].track < id || (list[middle].track == id && list[middle].start_ns < ns)) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Cuts the arena into parts of about as many chunks, and notes the ids of the OUTs in each. */
static void npuprof_flow_mark_parts_(npuprof_flows_ *f)
{
    const npuprof_image_ *const im = &f->work->image;
    npuprof_walk_ *const walk = &f->work->walk;
    npuprof_flow_mark_ *const list = npuprof_piece_index_.mark, *m = list;
    npuprof_walk_place_ at[NPUPROF_SLOT_CONTEXTS_];
    npuprof_event_ ev;
    uint32_t walked = UINT32_MAX, chunk;
    const uint32_t step = (im->chunk_total + im->threads) / (NPUPROF_FLOW_MARKS_ - 1) + 1;
    for (uint32_t tid = npuprof_image_next_tid_(im, 0); tid; tid = npuprof_image_next_tid_(im, tid)) {
        npuprof_walk_begin_(walk, im, tid);
        bool begins = walked >= step;
        for (chunk = 0; npuprof_walk_next_(walk, &ev); begins = false) {
            const bool other = walk->sources == 1 && walk->cursor[0].chunk != chunk;
            if (other && chunk) begins = ++walked >= step && npuprof_walk_save_(walk, &ev, at);
            if (begins && f->mark_count < NPUPROF_FLOW_MARKS_) {
                m = &list[f->mark_count++];
                m->min_id = UINT64_MAX;
                m->max_id = 0;
                m->tid = tid;
                m->chunk = chunk ? walk->cursor[0].chunk : 0;
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
/* An OUT may be the one that some of the waiting wait for. */
static void npuprof_flow_offer_out_(npuprof_flows_ *f, const npuprof_event_ *ev, int64_t ns)
{
    for (size_t i = npuprof_flow_first_arrow_(f->waiting, f->waiting_count, ev->value, ns);
         i < f->waiting_count && f->waiting[i].track == ev->value; i++)
        if (f->waiting[i].end_ns <= ns) {
            f->waiting[i].end_ns = ns;
            f->waiting[i].tid = ev->tid;
        }
}
/* Walks from a mark to the next one. */
static void npuprof_flow_offer_part_(npuprof_flows_ *f, const npuprof_flow_mark_ *m, const npuprof_flow_mark_ *behind)
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
            if (first == f->waiting_count || f->waiting[first].track != ev.value) continue;      /* most are nobody's */
            if (npuprof_flow_arrow_ns_(w, &ev, &ns)) npuprof_flow_offer_out_(f, &ev, ns);
        }
        tid = npuprof_image_next_tid_(im, tid);
        if (behind && behind->tid == tid && !behind->chunk) return;
        if (tid) npuprof_walk_begin_(&w->walk, im, tid);
    }
}
/* The INs whose OUTs were forgotten. */
static void npuprof_flow_put_waiting_(npuprof_flows_ *f)
{
    npuprof_placed_ *const list = f->waiting;
    const size_t count = f->waiting_count;
    if (!count) return;
    if (!f->mark_count) npuprof_flow_mark_parts_(f);
    npuprof_placed_sort_(list, count);
    const npuprof_flow_mark_ *const end = npuprof_piece_index_.mark + f->mark_count;
    for (const npuprof_flow_mark_ *m = npuprof_piece_index_.mark; m < end; m++) {
        const size_t first = npuprof_flow_first_arrow_(list, count, m->min_id, INT64_MIN);
        if (first < count && list[first].track <= m->max_id) npuprof_flow_offer_part_(f, m, m + 1 < end ? m + 1 : NULL);
    }
    npuprof_flow_put_arrows_(f->work, list, count);
    f->waiting_count = 0;
}

/* The arrows of a batch. */
static void npuprof_flow_put_batch_(npuprof_flows_ *f)
{
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
            f->batch[count++] = npuprof_flow_arrow_(&p, from);
        } else if (f->forgotten) {
            static const npuprof_flow_sent_ nowhere = { 0, 0, 0, 0 };
            if (f->waiting_count == f->waiting_room) npuprof_flow_put_waiting_(f);
            f->waiting[f->waiting_count++] = npuprof_flow_arrow_(&p, &nowhere);
        }
    }
    npuprof_flow_put_arrows_(f->work, f->batch, count);
}

/* Shares the scratch out: the lanes need none any more. */
static void npuprof_flow_share_scratch_(npuprof_flows_ *f, npuprof_work_ *w)
{
    uint8_t *p = (uint8_t *)w->nodes;
    const size_t share = (size_t)((uint8_t *)(w->placed + w->placed_room) - p) / 8 / 16 * 16;
    memset(f, 0, sizeof *f);
    f->work = w;
    f->batch = (npuprof_placed_ *)(void *)p;
    f->batch_room = 2 * share / sizeof *f->batch;
    f->waiting = (npuprof_placed_ *)(void *)(p + 2 * share);
    f->waiting_room = 3 * share / sizeof *f->waiting;
    f->sent[0] = (npuprof_flow_sent_ *)(void *)(p + 5 * share);
    f->sent[1] = (npuprof_flow_sent_ *)(void *)(p + 6 * share);
    f->sent_room = share / sizeof *f->sent[0];
    f->place = (npuprof_flow_place_ *)(void *)(p + 7 * share);
    f->place_room = share / sizeof *f->place;
    memset(f->sent[0], 0, 2 * share);
}
/* A thread's places: its beginning. */
static void npuprof_flow_add_places_(npuprof_flows_ *f, uint32_t tid)
{
    const npuprof_image_ *const im = &f->work->image;
    const size_t before = f->places;
    const npuprof_slot_head_ *slot = NULL;
    while (f->places < before + NPUPROF_SLOT_CONTEXTS_ && (slot = npuprof_image_next_slot_of_(im, tid, slot)) != NULL) {
        const uint32_t chunk = NPUPROF_LOAD_(&slot->first_chunk);
        if (!chunk) continue;
        if (f->places == f->place_room) {
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
    npuprof_flows_ f;
    npuprof_placed_ last;
    if (!(im->kinds >> NPUPROF_KIND_FLOW_IN & 1)) return;
    npuprof_flow_share_scratch_(&f, w);
    for (uint32_t tid = npuprof_image_next_tid_(im, 0); tid && !f.tid_behind; tid = npuprof_image_next_tid_(im, tid)) npuprof_flow_add_places_(&f, tid);
    for (const npuprof_placed_ *after = NULL;; after = &last) {
        npuprof_flow_next_batch_(&f, after);
        if (!f.count) break;
        npuprof_placed_sort_(f.batch, f.count);
        last = f.batch[f.count - 1];
        npuprof_flow_put_batch_(&f);
    }
    npuprof_flow_put_waiting_(&f);
}

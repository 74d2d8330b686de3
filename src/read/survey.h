#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../arena/table.h"
#include "../arena/anchors.h"
#include "../arena/chunks.h"
#include "image.h"
#include "cursor.h"
#include "threads.h"
#include "time.h"
#include "place.h"

/* ---- Opening */

static void npuprof_image_init_live_(npuprof_image_ *im)
{
    const npuprof_header_ *h = npuprof_s_.header;
    memset(im, 0, sizeof *im);
    im->h = h;
    im->table = npuprof_s_.table;
    im->chunks = npuprof_s_.chunks;
    im->slots = npuprof_s_.base;
    im->slots_bytes = h->arena_bytes;
    im->units = npuprof_s_.units;
    im->table_used = NPUPROF_LOAD_ACQUIRE_(&h->table_used);
    im->chunk_total = NPUPROF_LOAD_ACQUIRE_(&h->chunk_next);
    im->threads = NPUPROF_LOAD_ACQUIRE_(&h->threads);
    im->slot_first = NPUPROF_LOAD_ACQUIRE_(&h->slot_first);
}
/* The live arena. Finds each slot's chunks from the last one back, and writes `next` into them: only readers use that. */
static void npuprof_image_open_live_(npuprof_image_ *im)
{
    npuprof_image_init_live_(im);
    for (uint32_t at = im->slot_first; at; at = npuprof_slot_at_(at)->head.next_slot) {
        npuprof_slot_head_ *const slot = &npuprof_slot_at_(at)->head;
        uint32_t index = NPUPROF_LOAD_ACQUIRE_(&slot->last_chunk), next = 0;
        const uint32_t owner = NPUPROF_LOAD_(&slot->tid) << 3 | NPUPROF_LOAD_(&slot->context);
        for (uint64_t position = UINT64_MAX; index && index <= im->h->chunk_count;) {
            npuprof_chunk_ *const chunk = npuprof_chunk_at_(index - 1);
            /* Why: a head in every eighth KiB is a miss each, and which comes next only the one before says. Outside the arena it does nothing. */
            NPUPROF_PREFETCH_((uintptr_t)chunk - 8 * (uintptr_t)im->h->chunk_bytes);
            const uint16_t state = NPUPROF_LOAD_ACQUIRE_(&chunk->state);
            /* Was it recycled? It is ours, and older than the one behind. */
            const bool ours = (state == NPUPROF_CHUNK_RETIRED || state == NPUPROF_CHUNK_OPEN) && NPUPROF_LOAD_ACQUIRE_(&chunk->owner) == owner;
            const uint64_t first = NPUPROF_LOAD_(&chunk->first_position);
            if (!ours || first >= position) break;
            NPUPROF_STORE_(&chunk->next, next);
            next = index;
            position = first;
            index = NPUPROF_LOAD_(&chunk->prev);
        }
        NPUPROF_STORE_(&slot->first_chunk, next);
    }
    /* Why only now: a thread may take a chunk that was never used, or its number, just before its slot is looked at. */
    im->chunk_total = NPUPROF_LOAD_ACQUIRE_(&im->h->chunk_next);
    im->threads = NPUPROF_LOAD_ACQUIRE_(&im->h->threads);
}

/* What is to be read: the image given, else the live arena. Its events are not looked at yet. */
static void npuprof_image_open_unread_(npuprof_image_ *im)
{
    const npuprof_image_ *given = npuprof_image_given_;
    if (given) *im = *given;
    else npuprof_image_open_live_(im);
    im->clear_ticks = NPUPROF_LOAD_(&im->h->clear_ticks);
    im->last_ticks = im->open_until = UINT64_MAX;
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) im->lost[i] = NPUPROF_LOAD_(&im->h->lost[i]);
    if (!im->next) im->lost[NPUPROF_LOST_OVERWRITTEN] += npuprof_chunk_sum_overwritten_(im->h, im->chunk_total);
    for (const npuprof_slot_head_ *slot = npuprof_image_next_slot_(im, NULL); slot; slot = npuprof_image_next_slot_(im, slot))
        im->lost[NPUPROF_LOST_FULL] += NPUPROF_LOAD_(&slot->lost);
}
/* The later one of a stamp and of those of an event. */
static uint64_t npuprof_extent_newest_(uint64_t last, const npuprof_event_ *ev)
{
    if (ev->kind <= NPUPROF_KIND_OPERATOR && !ev->unfinished && ev->end > last) last = ev->end;
    return ev->host_ticks > last ? ev->host_ticks : last;
}
/* What a trace spans, in host ticks: from its earliest stamp, counted from the first anchor, to its last, and where the span begins
   that was opened last and is still open. Of device and finished spans the moment they were recorded counts here, for the
   last stamp only. */
typedef struct npuprof_extent_ { int64_t earliest; uint64_t last, newest_open; bool open; } npuprof_extent_;

static void npuprof_extent_add_(const npuprof_image_ *im, npuprof_extent_ *x, const npuprof_event_ *ev)
{
    const int64_t start = (int64_t)(ev->host_ticks - im->h->first.ticks);
    const bool own_stamps = ev->kind == NPUPROF_KIND_DEVICE || ev->kind == NPUPROF_KIND_FINISHED;
    if (!own_stamps && start < x->earliest) x->earliest = start;
    x->last = npuprof_extent_newest_(x->last, ev);
    if (ev->kind > NPUPROF_KIND_OPERATOR || !ev->unfinished) return;
    if (ev->host_ticks > x->newest_open) x->newest_open = ev->host_ticks;
    x->open = true;
}
/* The newest clock anchor. last: the newest stamp. A live arena takes an anchor if anything was recorded since the last one. Why only
   then: reading twice must give the same bytes. */
static void npuprof_image_take_closing_anchor_(npuprof_image_ *im, uint64_t last)
{
    im->closing = npuprof_arena_copy_last_anchor_(im->h);
    if (npuprof_image_given_ || (last <= im->closing.ticks && im->closing.ticks != im->h->first.ticks)) return;
    npuprof_arena_renew_last_anchor_();
    im->closing = npuprof_arena_copy_last_anchor_(im->h);
}
/* Passes over the plain records that come next, as long as their sites are known: number << 8 | kind. Returns how many. */
static uint32_t npuprof_survey_plain_(npuprof_cursor_ *cursor, const uint32_t sites[256], npuprof_extent_ *x)
{
    npuprof_cursor_ c = *cursor;
    npuprof_plain_ p;
    const uint64_t first = c.image->h->first.ticks;
    uint64_t newest = x->last;
    int64_t earliest = x->earliest;
    while (npuprof_cursor_peek_plain_(&c, &p)) {
        const uint32_t site = sites[p.site % 256];
        if (site >> 8 != p.site) break;
        const uint64_t at = (site & 0xFF) <= NPUPROF_KIND_OPERATOR ? p.end : p.start;
        if (at > newest) newest = at;
        if ((int64_t)(p.start - first) < earliest) earliest = (int64_t)(p.start - first);
        c.unit++;
    }
    const uint32_t passed = c.unit - cursor->unit;
    cursor->unit = c.unit;
    x->last = newest;
    x->earliest = earliest;
    return passed;
}
/* Goes through all events once: counts them, and finds what the trace spans. */
static npuprof_extent_ npuprof_survey_(npuprof_image_ *im)
{
    npuprof_event_ ev;
    npuprof_cursor_ c;
    uint32_t sites[256];                   /* those met last */
    npuprof_extent_ x;
    memset(&x, 0, sizeof x);
    memset(sites, 0, sizeof sites);
    uint64_t events = 0;
    for (const npuprof_slot_head_ *slot = npuprof_image_next_slot_(im, NULL); slot; slot = npuprof_image_next_slot_(im, slot)) {
        npuprof_cursor_begin_slot_(&c, im, slot);
        for (;;) {
            events += npuprof_survey_plain_(&c, sites, &x);
            if (!npuprof_cursor_next_event_(&c, &ev)) break;
            sites[ev.site % 256] = ev.site << 8 | ev.kind;
            events++;
            im->kinds |= (uint32_t)1 << ev.kind;
            npuprof_extent_add_(im, &x, &ev);
        }
    }
    im->events = events;
    return x;
}
/* Spans with their own stamps: the trace begins with the earliest of all, and open spans end with the last. */
static void npuprof_survey_placed_(npuprof_image_ *im, bool open)
{
    npuprof_map_caches_ near_by;
    npuprof_event_ ev;
    npuprof_cursor_ c;
    npuprof_placed_ p;
    int64_t last_ns = INT64_MIN;
    memset(&near_by, 0, sizeof near_by);
    for (const npuprof_slot_head_ *slot = npuprof_image_next_slot_(im, NULL); slot; slot = npuprof_image_next_slot_(im, slot)) {
        npuprof_cursor_begin_slot_(&c, im, slot);
        while (npuprof_cursor_next_event_(&c, &ev)) {
            if (ev.kind != NPUPROF_KIND_DEVICE && ev.kind != NPUPROF_KIND_FINISHED) continue;
            if (npuprof_image_has_arrow_(im, &ev))
                im->origin_ns = npuprof_image_earlier_(im->origin_ns, npuprof_image_ns_(im, ev.link.ticks));
            if (!npuprof_place_start_(im, &near_by, &ev, &p)) continue;
            im->origin_ns = npuprof_image_earlier_(im->origin_ns, p.start_ns);
            if (open && npuprof_place_end_(im, &near_by, &ev, &p) && p.end_ns > last_ns) last_ns = p.end_ns;
        }
    }
    if (open && last_ns > npuprof_image_ns_(im, im->open_until)) im->open_until = npuprof_image_ticks_at_(im, last_ns);
}
static void npuprof_survey_pauses_(npuprof_image_ *im)
{
    uint32_t id = 0;
    for (const npuprof_entry_ *e; (e = npuprof_image_next_entry_(im, NPUPROF_ENTRY_PAUSE, sizeof(npuprof_pause_entry_), &id)) != NULL;) {
        const npuprof_pause_entry_ *pause = (const npuprof_pause_entry_ *)(const void *)e;
        const uint64_t at[2] = { NPUPROF_LOAD_(&pause->from), NPUPROF_LOAD_(&pause->to) };
        for (int i = 0; i < 2; i++)
            if (at[i] && at[i] >= im->clear_ticks) im->origin_ns = npuprof_image_earlier_(im->origin_ns, npuprof_image_ns_(im, at[i]));
    }
}
/* Opens it, and goes through its events once. */
static void npuprof_image_open_(npuprof_image_ *im)
{
    npuprof_image_open_unread_(im);
    const npuprof_extent_ x = npuprof_survey_(im);
    npuprof_image_take_closing_anchor_(im, x.last);
    const npuprof_header_ *const h = im->h;
    const npuprof_host_anchor_ *const closing = &im->closing;
    im->last_ticks = im->open_until = x.last ? x.last : h->first.ticks;
    if (h->clock_hz) npuprof_image_set_rate_(im, 1000000000u, h->clock_hz);
    else if (closing->ticks > h->first.ticks && closing->monotonic_ns > h->first.monotonic_ns)
        npuprof_image_set_rate_(im, (uint64_t)(closing->monotonic_ns - h->first.monotonic_ns), closing->ticks - h->first.ticks);
    else npuprof_image_set_rate_(im, 1, 1);
    /* Why not at the first anchor: a thread's clock may be behind that of the thread that took it, and viewers drop what is negative. */
    im->origin_ns = npuprof_image_earlier_(0, npuprof_image_ns_(im, h->first.ticks + (uint64_t)x.earliest));
    npuprof_survey_pauses_(im);
    if (im->kinds & ((uint32_t)1 << NPUPROF_KIND_DEVICE | (uint32_t)1 << NPUPROF_KIND_FINISHED)) npuprof_survey_placed_(im, x.open);
    /* Why a microsecond more: the last stamp of a crash is often the beginning of the span that it happened in, and viewers show no
       span without length. */
    if (x.open && x.newest_open >= im->open_until) im->open_until = x.newest_open + npuprof_image_ticks_at_(im, 1000) - h->first.ticks;
}

/* What another arena knew before anything was recorded: its metadata. */
static void npuprof_image_copy_metadata_(const npuprof_header_ *old)
{
    npuprof_image_ im;
    size_t length;
    memset(&im, 0, sizeof im);
    im.h = old;
    im.table = (const uint8_t *)(const void *)old + old->table_offset;
    im.table_used = old->table_used;
    memcpy(npuprof_s_.header->traceparent, old->traceparent, sizeof old->traceparent);
    static const uint32_t types[2] = { NPUPROF_ENTRY_METADATA, NPUPROF_ENTRY_ENVIRONMENT };
    for (int i = 0; i < 2; i++) {
        uint32_t id = 0;
        for (const npuprof_entry_ *e; (e = npuprof_image_next_entry_(&im, types[i], sizeof(npuprof_pair_entry_), &id)) != NULL;) {
            const npuprof_pair_entry_ *pair = (const npuprof_pair_entry_ *)(const void *)e;
            npuprof_table_add_pair_(types[i], npuprof_image_text_(&im, pair->b[0], &length), npuprof_image_text_(&im, pair->b[1], &length));
        }
    }
}

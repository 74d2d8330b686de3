#pragma once   /* SPDX-License-Identifier: MIT */
#include "load.h"

/* What a running process has recorded in its mapped arena since the look before: npuprof-convert --top.

   Each look copies the arena as live.h does, but of the chunks only those that were not full at the look
   before, because a full one does not change. So a look costs what was recorded since, whatever the arena's
   size.

   What is new: a span ends later than all that were seen of its slot, because a thread's spans end one after
   the other; anything else lies at a later position. Records that were overwritten between two looks are
   counted as `unseen`, by their units, so at most so many.

   Data: npuprof_top_, of the one thread that looks. */

enum { NPUPROF_TOP_SLOTS_ = 1 << 14, NPUPROF_TOP_NAMES_ = 1 << 12, NPUPROF_TOP_SLOWEST_ = 5,
       NPUPROF_TOP_JOBS_ = 1 << 18, NPUPROF_TOP_DEVICES_ = 64 };

typedef struct npuprof_top_slot_ { uint32_t owner; uint64_t end, position; } npuprof_top_slot_;
typedef struct npuprof_top_name_ { uint32_t name; uint64_t count, total_ns, max_ns; } npuprof_top_name_;
typedef struct npuprof_top_job_ { uint32_t device, pe; int64_t start_ns, end_ns; } npuprof_top_job_;
typedef struct npuprof_top_device_ { uint64_t jobs, in_flight_ns, linked; } npuprof_top_device_;
typedef struct npuprof_top_slow_ { uint32_t name, thread; uint64_t ns; } npuprof_top_slow_;

static struct {
    npuprof_top_slot_ slot[NPUPROF_TOP_SLOTS_];            /* by a hash of the owner */
    npuprof_top_name_ name[NPUPROF_TOP_NAMES_];            /* by a hash of the name's id */
    npuprof_top_job_ job[NPUPROF_TOP_JOBS_];               /* executions of devices */
    npuprof_top_device_ device[NPUPROF_TOP_DEVICES_];
    npuprof_top_slow_ slowest[NPUPROF_TOP_SLOWEST_];       /* the slowest first */
    npuprof_image_anchor_caches_ caches;
    size_t jobs;
    uint64_t spans, events, open, unseen;
    uint64_t others;                       /* spans for whose names there was no room */
} npuprof_top_;

/* Goes on from looks before; the first one sees nothing new. */
static void npuprof_top_start_(void)
{
    npuprof_load_seen_.on = npuprof_load_seen_.is_first = true;
}

/* The place of a key in a table of 2^n entries: its own, or a free one; NULL: the table is full. `keys`: the
   first member of each entry, 0 if it is free. */
static void *npuprof_top_place_(void *table, size_t bytes, uint32_t entries, uint32_t key)
{
    uint32_t at = (uint32_t)npuprof_hash_mix_(key);
    for (uint32_t n = 0; n < entries; n++, at++) {
        uint32_t *const entry = (uint32_t *)(void *)((uint8_t *)table + (size_t)(at % entries) * bytes);
        if (!*entry) *entry = key;
        if (*entry == key) return entry;
    }
    return NULL;
}

/* ---- Adding up */

static void npuprof_top_add_slow_(const npuprof_event_ *ev, uint64_t ns)
{
    npuprof_top_slow_ *const slow = npuprof_top_.slowest;
    int at = NPUPROF_TOP_SLOWEST_;
    while (at && slow[at - 1].ns < ns) at--;
    if (at == NPUPROF_TOP_SLOWEST_) return;
    memmove(slow + at + 1, slow + at, (size_t)(NPUPROF_TOP_SLOWEST_ - 1 - at) * sizeof *slow);
    slow[at].name = ev->name;
    slow[at].thread = ev->tid;
    slow[at].ns = ns;
}

static void npuprof_top_add_span_(const npuprof_event_ *ev, int64_t ns)
{
    const uint64_t length = ns > 0 ? (uint64_t)ns : 0;
    npuprof_top_name_ *const name = (npuprof_top_name_ *)npuprof_top_place_(
        npuprof_top_.name, sizeof *npuprof_top_.name, NPUPROF_TOP_NAMES_, ev->name);
    npuprof_top_.spans++;
    npuprof_top_add_slow_(ev, length);
    if (!name || !ev->name) {
        npuprof_top_.others++;
        return;
    }
    name->count++;
    name->total_ns += length;
    if (length > name->max_ns) name->max_ns = length;
}

/* A device span: an execution counts for its device, and for the queue from its submission on. */
static void npuprof_top_add_device_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    npuprof_placed_ p;
    memset(&p, 0, sizeof p);
    if (ev->flags & NPUPROF_STAMP_INSTANT) return;
    if (!npuprof_place_start_(im, &npuprof_top_.caches, ev, &p)) return;
    if (!npuprof_place_end_(im, &npuprof_top_.caches, ev, &p)) return;
    npuprof_top_add_span_(ev, p.end_ns - p.start_ns);
    if (!npuprof_args_is_execution_(im, ev) || ev->device >= NPUPROF_TOP_DEVICES_) return;
    npuprof_top_device_ *const d = &npuprof_top_.device[ev->device];
    d->jobs++;
    if (ev->has_link && ev->link.ticks) {
        const int64_t flight = p.end_ns - npuprof_image_ns_(im, ev->link.ticks);
        d->linked++;
        d->in_flight_ns += flight > 0 ? (uint64_t)flight : 0;
    }
    if (npuprof_top_.jobs == NPUPROF_TOP_JOBS_) return;
    const npuprof_top_job_ job = { ev->device, ev->pe, p.start_ns, p.end_ns };
    npuprof_top_.job[npuprof_top_.jobs++] = job;
}

static void npuprof_top_add_(const npuprof_image_ *im, const npuprof_top_slot_ *before,
                             const npuprof_event_ *ev)
{
    if (npuprof_kind_nests_(ev->kind)) {
        if (ev->unfinished) npuprof_top_.open++;
        else if (ev->end > before->end)
            npuprof_top_add_span_(ev, npuprof_image_ns_(im, ev->end) - npuprof_image_ns_(im, ev->start));
    } else if (ev->position >= before->position) {
        npuprof_top_.events++;
        if (ev->kind == NPUPROF_KIND_DEVICE) npuprof_top_add_device_(im, ev);
    }
}

/* The new records of a slot. is_first: the look is the first one, and nothing is new. */
static void npuprof_top_read_slot_(const npuprof_image_ *im, const npuprof_slot_head_ *head, bool is_first)
{
    npuprof_event_ ev;
    npuprof_cursor_ c;
    npuprof_top_slot_ *const slot = (npuprof_top_slot_ *)npuprof_top_place_(
        npuprof_top_.slot, sizeof *npuprof_top_.slot, NPUPROF_TOP_SLOTS_, head->tid << 3 | head->context);
    if (!slot || !head->first_chunk) return;
    npuprof_top_slot_ before = *slot;
    if (is_first) before.end = before.position = UINT64_MAX;
    npuprof_cursor_begin_slot_(&c, im, head);
    if (!is_first && before.position && c.first_position > before.position)
        npuprof_top_.unseen += c.first_position - before.position;
    while (npuprof_cursor_next_event_(&c, &ev)) {
        npuprof_top_add_(im, &before, &ev);
        if (ev.position >= slot->position) slot->position = ev.position + 1;
        if (npuprof_kind_nests_(ev.kind) && !ev.unfinished && ev.end > slot->end) slot->end = ev.end;
    }
}

/* ---- A look */

/* Forgets what the look before has added up, not what was seen. */
static void npuprof_top_begin_(void)
{
    memset(npuprof_top_.name, 0, sizeof npuprof_top_.name);
    memset(npuprof_top_.device, 0, sizeof npuprof_top_.device);
    memset(npuprof_top_.slowest, 0, sizeof npuprof_top_.slowest);
    memset(&npuprof_top_.caches, 0, sizeof npuprof_top_.caches);
    npuprof_top_.jobs = 0;
    npuprof_top_.spans = npuprof_top_.events = npuprof_top_.open = 0;
    npuprof_top_.unseen = npuprof_top_.others = 0;
}

static void npuprof_top_read_(const npuprof_image_ *im, bool is_first)
{
    const npuprof_slot_head_ *slot = NULL;
    npuprof_top_begin_();
    while ((slot = npuprof_image_next_slot_(im, slot)) != NULL) npuprof_top_read_slot_(im, slot, is_first);
}

/* ---- Printing: one JSON object on one line */

static bool npuprof_top_job_before_(const void *a, const void *b)
{
    const npuprof_top_job_ *const one = (const npuprof_top_job_ *)a;
    const npuprof_top_job_ *const other = (const npuprof_top_job_ *)b;
    return one->device != other->device ? one->device < other->device : one->start_ns < other->start_ns;
}

/* ns in which any job of the device ran. The jobs are sorted. */
static uint64_t npuprof_top_busy_ns_(uint32_t device)
{
    int64_t until = INT64_MIN;
    uint64_t busy = 0;
    for (const npuprof_top_job_ *job = npuprof_top_.job; job < npuprof_top_.job + npuprof_top_.jobs; job++) {
        if (job->device != device || job->end_ns <= until) continue;
        busy += (uint64_t)(job->end_ns - (job->start_ns > until ? job->start_ns : until));
        until = job->end_ns;
    }
    return busy;
}

static void npuprof_top_print_names_(npuprof_out_ *o, const npuprof_image_ *im)
{
    npuprof_emit_begin_(o, "names", "[");
    for (const npuprof_top_name_ *n = npuprof_top_.name; n < npuprof_top_.name + NPUPROF_TOP_NAMES_; n++) {
        if (!n->name) continue;
        npuprof_emit_begin_(o, NULL, "{");
        npuprof_emit_name_(o, "name", im, n->name);
        npuprof_emit_uint_(o, "count", n->count);
        npuprof_emit_uint_(o, "total_ns", n->total_ns);
        npuprof_emit_uint_(o, "max_ns", n->max_ns);
        npuprof_emit_end_(o, "}");
    }
    npuprof_emit_end_(o, "]");
    npuprof_emit_begin_(o, "slowest", "[");
    for (const npuprof_top_slow_ *s = npuprof_top_.slowest;
         s < npuprof_top_.slowest + NPUPROF_TOP_SLOWEST_ && s->name; s++) {
        npuprof_emit_begin_(o, NULL, "{");
        npuprof_emit_name_(o, "name", im, s->name);
        npuprof_emit_uint_(o, "thread", s->thread);
        npuprof_emit_uint_(o, "dur_ns", s->ns);
        npuprof_emit_end_(o, "}");
    }
    npuprof_emit_end_(o, "]");
}

static void npuprof_top_print_devices_(npuprof_out_ *o, const npuprof_image_ *im)
{
    npuprof_heap_sort_(npuprof_top_.job, sizeof *npuprof_top_.job, npuprof_top_.jobs,
                       npuprof_top_job_before_);
    npuprof_emit_begin_(o, "devices", "[");
    for (uint32_t d = 1; d < NPUPROF_TOP_DEVICES_; d++) {
        const npuprof_device_entry_ *const entry = npuprof_image_device_(im, d);
        const npuprof_top_device_ *const own = &npuprof_top_.device[d];
        if (!entry) continue;
        npuprof_emit_begin_(o, NULL, "{");
        npuprof_emit_name_(o, "name", im, entry->name);
        npuprof_emit_uint_(o, "executions", own->jobs);
        npuprof_emit_uint_(o, "busy_ns", npuprof_top_busy_ns_(d));
        npuprof_emit_uint_(o, "linked", own->linked);
        npuprof_emit_uint_(o, "in_flight_ns", own->in_flight_ns);
        npuprof_emit_end_(o, "}");
    }
    npuprof_emit_end_(o, "]");
}

static void npuprof_top_print_(npuprof_out_ *o, const npuprof_image_ *im, int64_t interval_ns)
{
#define NPUPROF_TEXT_(name, text, whole) text,
    static const char *const causes[] = { NPUPROF_LOSSES(NPUPROF_TEXT_) };
#undef NPUPROF_TEXT_
    o->fresh = true;
    npuprof_emit_begin_(o, NULL, "{");
    npuprof_emit_uint_(o, "npuprof_top", 1);
    npuprof_emit_uint_(o, "interval_ns", (uint64_t)interval_ns);
    npuprof_emit_uint_(o, "pid", im->h->pid);
    npuprof_emit_text_(o, "program", im->h->program);
    npuprof_emit_uint_(o, "threads", im->threads);
    npuprof_emit_uint_(o, "arena_bytes", im->h->arena_bytes);
    npuprof_emit_uint_(o, "spans", npuprof_top_.spans);
    npuprof_emit_uint_(o, "events", npuprof_top_.events);
    npuprof_emit_uint_(o, "open", npuprof_top_.open);
    npuprof_emit_uint_(o, "unseen", npuprof_top_.unseen);
    npuprof_emit_uint_(o, "unnamed", npuprof_top_.others);
    npuprof_top_print_names_(o, im);
    npuprof_top_print_devices_(o, im);
    npuprof_emit_begin_(o, "lost", "{");
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) npuprof_emit_uint_(o, causes[i], im->lost[i]);
    npuprof_out_puts_(o, "}}\n");
}

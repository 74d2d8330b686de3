#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/text.h"
#include "../numbers/hash.h"
#include "../numbers/time.h"
#include "../numbers/wide.h"
#include "../format/arena.h"
#include "../arena/state.h"
#include "../os/common.h"
#include "../control/environment.h"
#include "../read/image.h"
#include "../read/threads.h"
#include "../read/time.h"
#include "../read/survey.h"
#include "text.h"
#include "work.h"
#include "../read/scene_flows.h"
#include "emit.h"
#include "json.h"
#include "json_clock.h"

/* The JSON as a whole: the list of events, and the metadata behind it, which say what the trace is of, what
   its clocks are worth, and what was lost. */

/* ---- Pairs of names: user's metadata, unused environment variables. Of a key that comes twice only the last
   counts */

/* A hash table by key: the last entry of each, of those up to `end`. Half of it stays free. Why an end: where
   other threads add entries, a later walk may find more. */
typedef struct npuprof_json_last_pair_ { uint32_t key, entry; } npuprof_json_last_pair_;     /* key 0: free */
typedef struct npuprof_json_last_pairs_ { npuprof_json_last_pair_ *list; size_t capacity; uint32_t end; }
    npuprof_json_last_pairs_;

/* A hash that is the same for keys that are the same to npuprof_scene_same_key_(): bad bytes count as
   U+FFFD. */
static uint64_t npuprof_json_key_hash_(const npuprof_image_ *im, uint32_t key)
{
    size_t left;
    uint64_t h = 0;
    for (const uint8_t *p = (const uint8_t *)npuprof_image_text_(im, key, &left); left;) {
        const size_t n = npuprof_utf8_length_(p, left), step = n ? n : 1;
        const uint8_t *const bytes = n ? p : (const uint8_t *)"\xEF\xBF\xBD";
        for (size_t i = 0; i < (n ? n : 3); i++) h = (h + bytes[i]) * UINT64_C(0x9E3779B97F4A7C15);
        p += step;
        left -= step;
    }
    return npuprof_hash_mix_(h);
}

/* The next pair that is whole, and where its key is in the table, or would be. */
static const npuprof_pair_entry_ *npuprof_json_next_pair_(const npuprof_image_ *im, uint32_t type,
                                                          const npuprof_json_last_pairs_ *t, uint32_t *id,
                                                          npuprof_json_last_pair_ **place)
{
    const npuprof_entry_ *e;
    while ((e = npuprof_image_next_entry_(im, type, sizeof(npuprof_pair_entry_), id)) && *id <= t->end) {
        const npuprof_pair_entry_ *const pair = (const npuprof_pair_entry_ *)(const void *)e;
        if (!NPUPROF_LOAD_ACQUIRE_(&pair->b[1])) continue;
        size_t i = (size_t)(npuprof_json_key_hash_(im, pair->b[0]) % t->capacity);
        while (t->list[i].key && !npuprof_scene_same_key_(im, t->list[i].key, pair->b[0]))
            i = i + 1 < t->capacity ? i + 1 : 0;
        *place = &t->list[i];
        return pair;
    }
    return NULL;
}

/* The pairs of a type as an object: the first walk notes the last entries, the second one writes them. */
static void npuprof_json_pairs_(npuprof_work_ *w, const char *key, uint32_t type)
{
    const npuprof_pair_entry_ *pair;
    npuprof_json_last_pairs_ t = { NULL, 2, 0 };
    npuprof_json_last_pair_ *last;
    uint32_t id = 0;
    while (npuprof_image_next_entry_(&w->image, type, sizeof *pair, &id)) {
        t.capacity += 2;
        t.end = id;
    }
    t.list = (npuprof_json_last_pair_ *)npuprof_os_memory_(t.capacity * sizeof *t.list);
    if (!t.list) {
        npuprof_out_fail_(&w->out, ENOMEM);
        return;
    }
    npuprof_emit_begin_(&w->out, key, "{");
    for (id = 0; (pair = npuprof_json_next_pair_(&w->image, type, &t, &id, &last)) != NULL;) {
        last->key = pair->b[0];
        last->entry = id;
    }
    for (id = 0; (pair = npuprof_json_next_pair_(&w->image, type, &t, &id, &last)) != NULL;) {
        if (last->entry != id) continue;
        npuprof_emit_name_(&w->out, NULL, &w->image, pair->b[0]);
        npuprof_out_puts_(&w->out, ":");
        npuprof_out_text_(&w->out, &w->image, NPUPROF_LOAD_ACQUIRE_(&pair->b[1]), true);
    }
    npuprof_emit_end_(&w->out, "}");
    npuprof_os_unmap_(t.list, t.capacity * sizeof *t.list);
}

/* ---- Metadata */

/* ,"drift_ns":N: how far a user's clock, at the rate that the user states, is from the system's at the end of
   the trace. Nothing if the rate is measured, or if no second anchor was taken. */
static void npuprof_json_drift_(npuprof_out_ *o, const npuprof_image_ *im)
{
    const npuprof_host_anchor_ *const first = &im->h->first, *const closing = &im->closing;
    const int64_t os_ns = closing->monotonic_ns - first->monotonic_ns;
    if (!im->h->clock_hz || closing->ticks <= first->ticks || os_ns <= 0) return;
    const int64_t ns = npuprof_image_ns_(im, closing->ticks);
    const uint64_t gone = closing->ticks - first->ticks, all = im->last_ticks - first->ticks;
    const uint64_t error_ns = (uint64_t)npuprof_image_ns_(im, first->ticks + closing->error_ticks) + 1;
    uint64_t drift = (uint64_t)(ns < os_ns ? os_ns - ns : ns - os_ns) + error_ns;
    if (all >> 63 == 0 && all > gone) drift = npuprof_scale_(drift, all, gone);
    npuprof_emit_uint_(o, "drift_ns", npuprof_min_(drift, INT64_MAX));
}

/* Where and when the trace was recorded. */
static void npuprof_json_origin_(npuprof_out_ *o, const npuprof_image_ *im)
{
    const npuprof_header_ *h = im->h;
    npuprof_emit_text_(o, "version", NPUPROF_VERSION_STRING);
    npuprof_emit_text_(o, "host", h->host);
    npuprof_emit_text_(o, "program", h->program);
    npuprof_emit_uint_(o, "pid", h->pid);
    npuprof_emit_int_(o, "start_unix_ns", h->first.unix_ns + im->origin_ns);
    npuprof_emit_int_(o, "start_monotonic_ns", h->first.monotonic_ns + im->origin_ns);
    npuprof_emit_int_(o, "start_boottime_ns", h->first.boot_ns + im->origin_ns);
    if (h->traceparent[0]) npuprof_emit_text_(o, "traceparent", h->traceparent);
}

/* ,"doubt":"...": what the system's clocks say against each other, if they do; rate.h. */
static void npuprof_json_doubt_(npuprof_out_ *o, const npuprof_image_ *im)
{
    static const char *const means[] = { "",
        "the system slept, or a clock was replaced: times may be off by that",
        "a program replaced the clock: the rate follows from CLOCK_BOOTTIME",
        "no clock of the system moved: a tick is drawn as a ns" };
    if (!im->doubt) return;
    const npuprof_host_anchor_ *const first = &im->h->first, *const closing = &im->closing;
    npuprof_emit_key_(o, "doubt");
    npuprof_out_puts_(o, "\"CLOCK_MONOTONIC went on by ");
    npuprof_out_int_(o, closing->monotonic_ns - first->monotonic_ns);
    npuprof_out_puts_(o, " ns while CLOCK_BOOTTIME went on by ");
    npuprof_out_int_(o, closing->boot_ns - first->boot_ns);
    npuprof_out_puts_(o, " ns; ");
    npuprof_out_puts_(o, means[im->doubt]);
    npuprof_out_puts_(o, "\"");
}

static void npuprof_json_host_clock_(npuprof_out_ *o, const npuprof_image_ *im)
{
    static const char *const sources[] = { "user", "monotonic", "tsc", "cntvct_el0", "rdtime" };
    const npuprof_header_ *h = im->h;
    const bool known = h->clock_source < sizeof sources / sizeof *sources;
    npuprof_emit_begin_(o, "clock", "{");
    npuprof_emit_text_(o, "source", known ? sources[h->clock_source] : "unknown");
    if (h->clock_hz) {
        npuprof_emit_uint_(o, "hz", h->clock_hz);
        npuprof_out_puts_(o, ".000");
    } else {
        /* ns per tick is multiplier / 2^shift. */
        const uint64_t mhz = npuprof_scale_(1000000000000u, (uint64_t)1 << im->shift, im->multiplier);
        npuprof_emit_milli_(o, "hz", (int64_t)npuprof_min_(mhz, INT64_MAX));
    }
    const int64_t error_ns = npuprof_image_ns_(im, h->first.ticks + h->first.error_ticks);
    npuprof_emit_uint_(o, "error_ns", (uint64_t)error_ns + 1 + im->doubt_ns);
    npuprof_json_doubt_(o, im);
    /* By these, a trace that is stamped with the same counter can be put beside this one. */
    const uint64_t gone_ns = (uint64_t)-im->origin_ns;
    const uint64_t before = npuprof_scale_(gone_ns, (uint64_t)1 << im->shift, im->multiplier);
    npuprof_emit_uint_(o, "start_ticks", h->first.ticks - before);
    npuprof_json_drift_(o, im);
    npuprof_emit_end_(o, "}");
}

/* What was recorded and what was lost. */
static void npuprof_json_counts_(npuprof_out_ *o, const npuprof_work_ *w)
{
#define NPUPROF_TEXT_(name, text, whole) text,
    static const char *const causes[] = { NPUPROF_LOSSES(NPUPROF_TEXT_) };
#undef NPUPROF_TEXT_
    const npuprof_image_ *im = &w->image;
    const npuprof_header_ *h = im->h;
    npuprof_emit_uint_(o, "recorded", im->events);
    npuprof_emit_begin_(o, "lost", "{");
    for (unsigned i = 0; i < NPUPROF_LOST_COUNT; i++) npuprof_emit_uint_(o, causes[i], im->lost[i]);
    npuprof_emit_end_(o, "}");
    npuprof_emit_uint_(o, "streamed", NPUPROF_LOAD_(&h->streamed));
    npuprof_emit_text_(o, "when_full",
                       npuprof_env_policies_[h->when_full <= NPUPROF_STREAM ? h->when_full : 0]);
    if (im->damaged) npuprof_emit_uint_(o, "damaged_places", im->damaged);
    if (h->closed == NPUPROF_CLOSED_BY_FLUSH_) npuprof_emit_uint_(o, "ends_with_flush", 1);
    if (im->in_use) npuprof_emit_uint_(o, "changed_while_read", im->changed);
    npuprof_emit_uint_(o, "threads", im->threads);
    npuprof_emit_uint_(o, "counter_values_not_finite", w->scene.skipped_values);
}

static void npuprof_json_devices_(npuprof_work_ *w)
{
    npuprof_out_ *o = &w->out;
    const uint32_t devices = NPUPROF_LOAD_(&w->image.h->devices);
    npuprof_emit_begin_(o, "devices", "[");
    for (uint32_t n = 1; n <= devices; n++) {
        const npuprof_device_entry_ *d = npuprof_image_device_(&w->image, n);
        if (!d) continue;
        npuprof_emit_begin_(o, NULL, "{");
        npuprof_emit_name_(o, "name", &w->image, d->name);
        npuprof_emit_uint_(o, "pe_count", d->pe_count);
        npuprof_json_clock_sync_(w, d);
        npuprof_emit_end_(o, "}");
    }
    npuprof_emit_end_(o, "]");
}

/* ,"sites":[...]: where the call sites are in the code. Why here and not in each event: it is the same for
   all of a call site, and a third of a plain span's bytes. Nothing if none is known. */
static void npuprof_json_sites_(npuprof_work_ *w)
{
    npuprof_out_ *const o = &w->out;
    const npuprof_entry_ *e;
    uint32_t id = 0, any = 0;
    while ((e = npuprof_image_next_entry_(&w->image, NPUPROF_ENTRY_SITE, sizeof(npuprof_site_entry_), &id)) !=
           NULL) {
        const npuprof_site_entry_ *const site = (const npuprof_site_entry_ *)(const void *)e;
        /* Why not with results: the same call site is there without, too. */
        if (!site->file || (site->line & NPUPROF_SITE_RESULTS_)) continue;
        if (!any++) npuprof_emit_begin_(o, "sites", "[");
        npuprof_emit_begin_(o, NULL, "{");
        npuprof_emit_name_(o, "name", &w->image, site->name);
        if (site->category) npuprof_emit_name_(o, "cat", &w->image, site->category);
        npuprof_emit_name_(o, "file", &w->image, site->file);
        npuprof_emit_uint_(o, "line", site->line);
        npuprof_emit_end_(o, "}");
    }
    if (any) npuprof_emit_end_(o, "]");
}

/* ,"modules":[...]: the objects that were loaded, for names that are addresses. Nothing if none is known. */
static void npuprof_json_modules_(npuprof_work_ *w)
{
    npuprof_out_ *const o = &w->out;
    const npuprof_entry_ *e;
    uint32_t id = 0, any = 0;
    while ((e = npuprof_image_next_entry_(&w->image, NPUPROF_ENTRY_MODULE, sizeof(npuprof_module_entry_),
                                          &id)) != NULL) {
        const npuprof_module_entry_ *const m = (const npuprof_module_entry_ *)(const void *)e;
        char text[NPUPROF_ADDRESS_TEXT_];
        if (!any++) npuprof_emit_begin_(o, "modules", "[");
        npuprof_emit_begin_(o, NULL, "{");
        npuprof_emit_name_(o, "path", &w->image, m->path);
        npuprof_emit_name_(o, "build_id", &w->image, m->build_id);
        npuprof_emit_text_(o, "bias", npuprof_address_text_(text, m->bias));
        npuprof_emit_text_(o, "start", npuprof_address_text_(text, m->start));
        npuprof_emit_text_(o, "end", npuprof_address_text_(text, m->end));
        npuprof_emit_end_(o, "}");
    }
    if (any) npuprof_emit_end_(o, "]");
}

/* sites: with the table of call sites, which may be long. */
static void npuprof_json_metadata_(npuprof_work_ *w, const char *key, bool sites)
{
    npuprof_out_ *o = &w->out;
    npuprof_emit_begin_(o, key, "{");
    npuprof_emit_begin_(o, "npuprof", "{");
    npuprof_json_origin_(o, &w->image);
    npuprof_json_host_clock_(o, &w->image);
    npuprof_json_counts_(o, w);
    npuprof_json_pairs_(w, "unused_environment", NPUPROF_ENTRY_ENVIRONMENT);
    npuprof_json_pairs_(w, "user", NPUPROF_ENTRY_METADATA);
    npuprof_json_devices_(w);
    if (sites) npuprof_json_sites_(w);
    npuprof_json_modules_(w);
    npuprof_out_puts_(o, "}}");
    o->fresh = false;
}

/* Writes the JSON. The caller holds the lock of the readers. 0, or what the sink returned. */
static int npuprof_write_json_locked_(npuprof_sink sink)
{
    npuprof_work_ *const w = npuprof_work_begin_(sink);
    if (!w) return ENOMEM;
    npuprof_out_ *const o = &w->out;
    npuprof_image_open_(&w->image);
    npuprof_scene_ *const s = npuprof_work_scene_(w, &npuprof_json_output_, w);
    w->next_tid = w->image.threads + 1;
    npuprof_out_puts_(o, "{\"traceEvents\":[");
    o->fresh = true;
    npuprof_json_open_(w, "M", 0, "process_name", 0, 1);
    npuprof_emit_begin_(o, "args", "{");
    npuprof_emit_text_(o, "name", w->image.h->program[0] ? w->image.h->program : "program");
    npuprof_out_puts_(o, "}}");
    npuprof_scene_threads_(s);
    npuprof_scene_placed_(s);
    npuprof_scene_flows_(s);
    npuprof_scene_pauses_(s, 1);
    npuprof_out_fail_(o, s->error);
    npuprof_out_puts_(o, "\n],\n\"displayTimeUnit\":\"ns\",\n");
    o->fresh = true;
    npuprof_json_metadata_(w, "metadata", true);
    npuprof_out_puts_(o, "}\n");
    return npuprof_work_finish_(w);
}

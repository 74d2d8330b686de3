#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../numbers/text.h"
#include "../format/arena.h"
#include "../read/image.h"
#include "../read/args.h"
#include "../read/cursor.h"
#include "../read/time.h"
#include "../read/walk.h"
#include "../read/scene.h"
#include "../read/scene_facts.h"
#include "../read/scene_thread.h"
#include "../read/scene_placed.h"
#include "text.h"
#include "emit.h"
#include "work.h"
#include "span_text.h"
#include "json_plain.h"

/* The scene as events of Chrome's trace format. Times are microseconds with three decimals; tids are those of
   threads first, then one for each further track. A track's number is its tid.

   Data: the work area. The other parts: json_plain.h (the fast path, for most records), json_clock.h (clocks
   of devices), json_head.h (metadata, and the order of it all). */

/* Begins the scene of the open image. */
static npuprof_scene_ *npuprof_work_scene_(npuprof_work_ *w, const npuprof_scene_output_ *output,
                                           void *user)
{
    npuprof_scene_ *const s = &w->scene;
    s->image = &w->image;
    s->walk = &w->walk;
    s->lanes = &w->lanes;
    s->output = output;
    s->user = user;
    return s;
}

/* ---- Text that is made once */

/* Begins an event, up to its tid. name: NULL for name_id. category: 0 for none. */
static void npuprof_json_open_(npuprof_work_ *w, const char *phase, uint32_t name_id, const char *name,
                               uint32_t category, uint64_t tid)
{
    npuprof_out_ *const o = &w->out;
    npuprof_out_puts_(o, o->fresh ? "\n{\"ph\":\"" : ",\n{\"ph\":\"");
    o->fresh = false;
    npuprof_out_puts_(o, phase);
    npuprof_out_puts_(o, "\",\"name\":");
    if (name) npuprof_out_quoted_(o, name);
    else npuprof_out_text_(o, &w->image, name_id, true);
    if (category) npuprof_emit_name_(o, "cat", &w->image, category);
    npuprof_emit_uint_(o, "pid", w->image.h->pid);
    npuprof_emit_uint_(o, "tid", tid);
}

/* The same for an event of a track and site, up to its first number: `spell` writes it, once for each key
   (span_text.h). key 0: each time. What is written must follow from the key. Returns where the rest goes;
   there is space for three numbers. */
static char *npuprof_json_begin_(npuprof_work_ *w, uint64_t key, const npuprof_scene_event_ *e,
                                 void (*spell)(npuprof_work_ *w, const npuprof_scene_event_ *e))
{
    npuprof_span_text_ *const cached = npuprof_span_text_at_(w, key);
    npuprof_out_ aside;
    bool fits = cached->key == key && key;
    if (!fits && key) {
        npuprof_span_text_begin_(w, cached, &aside);
        spell(w, e);
        fits = npuprof_span_text_end_(w, cached, key, &aside);
    }
    if (!fits) spell(w, e);
    char *const p = npuprof_out_reserve_(&w->out, NPUPROF_SPAN_TEXT_ROOM_);
    return fits ? npuprof_span_text_copy_(p, cached) : p;
}

/* What the text of an event is cached by; 0: not at all. Why not what a device did at one moment: its kind is
   that of its spans. */
static uint64_t npuprof_json_key_(const npuprof_scene_event_ *e)
{
    const uint32_t kind = e->ev->kind;
    if (e->of_process || (kind == NPUPROF_KIND_DEVICE && e->ev->flags & NPUPROF_STAMP_INSTANT)) return 0;
    const bool has_results = kind == NPUPROF_KIND_SPAN && e->ev->results;
    const uint32_t use = e->derived ? NPUPROF_JSON_DERIVED_ + kind
                         : has_results ? (uint32_t)NPUPROF_SPAN_TEXT_RESULTS_ : kind;
    return e->ev->site ? npuprof_span_text_key_((uint32_t)e->track, e->ev->site, use) : 0;
}

/* A key of arguments, with its colon. Cached, it has a comma before it. */
static void npuprof_json_put_key_(npuprof_work_ *w, uint32_t id)
{
    npuprof_work_key_ *const cached = &w->key_text[id % NPUPROF_KEY_TEXTS_];
    npuprof_out_ *const o = &w->out;
    if (cached->id == id) {
        npuprof_out_put_(o, cached->text + 1, cached->length - 1);
        return;
    }
    const uint64_t flushes = o->flushes;
    const size_t used = o->used;
    npuprof_out_text_(o, &w->image, id, true);
    npuprof_out_put_(o, ":", 1);
    const size_t length = o->used - used + 1;
    if (o->flushes != flushes || length > sizeof cached->text) return;
    cached->id = id;
    cached->mark = (uint64_t)1 << id % NPUPROF_KEY_TEXTS_;
    cached->length = (uint32_t)length;
    cached->text[0] = ',';
    memcpy(cached->text + 1, o->bytes + used, length - 1);
    for (const npuprof_work_key_ *k = w->key_text; k < w->key_text + NPUPROF_KEY_TEXTS_; k++)
        if (k != cached && k->length == length && memcmp(k->text, cached->text, length) == 0)
            cached->mark = k->mark;
}

/* ---- Events */

/* All but the change of a pool, the last one: it does not follow from the site. */
static void npuprof_json_spell_facts_(npuprof_work_ *w, const npuprof_scene_event_ *e)
{
    npuprof_out_ *const o = &w->out;
    npuprof_out_puts_(o, ",\"args\":{");
    o->fresh = true;
    for (const npuprof_value_ *fact = e->facts; fact < e->facts + e->fact_count; fact++) {
        if (fact->key == NPUPROF_FACT_CHANGE_) continue;
        npuprof_emit_key_(o, npuprof_fact_user_keys_[fact->key] + NPUPROF_FACT_USER_);
        if (fact->type == NPUPROF_ARG_UINT) npuprof_out_uint_(o, fact->bits);
        else npuprof_out_value_(o, fact);
    }
}

/* "args":{...}, if there are any: facts, then the user's. Why of a key that comes twice only the last: strict
   readers refuse a key twice. */
static void npuprof_json_args_(npuprof_work_ *w, const npuprof_scene_event_ *e)
{
    npuprof_out_ *const o = &w->out;
    if (!e->fact_count && !npuprof_args_any_(e->ev)) return;
    npuprof_args_walk_ args = npuprof_args_begin_(&w->image, e->ev);
    npuprof_value_ v;
    const uint64_t key = e->derived ? npuprof_json_key_(e) : 0;
    const uint64_t facts = key ? key + NPUPROF_JSON_DERIVED_ : 0;
    char *const p = npuprof_json_begin_(w, facts, e, npuprof_json_spell_facts_);
    npuprof_out_take_(o, e->derived ? npuprof_json_put_change_(p, e->ev->change) : p);
    o->fresh = !e->fact_count;
    while (npuprof_args_next_(&args, &v)) {
        if (npuprof_scene_key_comes_again_(&args, v.key)) continue;
        const char *const fact = npuprof_fact_key_(e, &w->image, v.key);
        npuprof_emit_key_(o, fact);
        if (!fact) npuprof_json_put_key_(w, v.key);
        npuprof_out_value_(o, &v);
    }
    npuprof_emit_end_(o, "}");
}

static void npuprof_json_spell_instant_(npuprof_work_ *w, const npuprof_scene_event_ *e)
{
    npuprof_out_ *const o = &w->out;
    npuprof_json_open_(w, "i", e->name, e->own_name, e->own_category ? 0 : e->category, e->track);
    if (e->own_category) npuprof_emit_text_(o, "cat", e->own_category);
    if (e->derived) npuprof_emit_word_(o, "derived", "true");
    npuprof_emit_text_(o, "s", e->of_process ? "p" : "t");
    npuprof_emit_key_(o, "ts");
}

static void npuprof_json_instant_(npuprof_scene_ *s, const npuprof_scene_event_ *e)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    char *const p = npuprof_json_begin_(w, npuprof_json_key_(e), e, npuprof_json_spell_instant_);
    npuprof_out_take_(&w->out, npuprof_json_put_stamp_(w, p, e->start));
    npuprof_json_args_(w, e);
    npuprof_emit_end_(&w->out, "}");
}

static void npuprof_json_spell_counter_(npuprof_work_ *w, const npuprof_scene_event_ *e)
{
    npuprof_json_open_(w, "C", e->name, NULL, 0, e->track);
    npuprof_emit_key_(&w->out, "ts");
}

static void npuprof_json_counter_(npuprof_scene_ *s, const npuprof_scene_event_ *e,
                                               uint32_t kind, uint64_t bits)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    char *const p = npuprof_json_begin_(w, npuprof_json_key_(e), e, npuprof_json_spell_counter_);
    char *const end = npuprof_json_put_counter_(npuprof_json_put_stamp_(w, p, e->start), kind, bits);
    npuprof_out_take_(&w->out, end);
    npuprof_emit_end_(&w->out, "}");
}

static void npuprof_json_spell_pool_(npuprof_work_ *w, const npuprof_scene_event_ *e)
{
    npuprof_json_open_(w, "C", e->category, NULL, 0, e->track);
    npuprof_emit_text_(&w->out, "cat", e->own_category);
    npuprof_emit_name_(&w->out, "tag", &w->image, e->name);
}

/* The state of a memory pool as a counter of two values. */
static void npuprof_json_pool_(npuprof_scene_ *s, const npuprof_scene_event_ *e)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    char *const p = npuprof_json_begin_(w, npuprof_json_key_(e), e, npuprof_json_spell_pool_);
    const uint64_t bytes[2] = { e->ev->value, e->ev->second };
    npuprof_out_take_(&w->out, npuprof_json_put_pool_(w, p, e->start, e->ev->change, bytes));
    npuprof_emit_end_(&w->out, "}");
}

/* Half of an arrow: e->own_name is its name, e->derived says that it ends there. */
static void npuprof_json_spell_arrow_(npuprof_work_ *w, const npuprof_scene_event_ *e)
{
    npuprof_json_open_(w, e->derived ? "f" : "s", 0, e->own_name, 0, e->track);
    if (e->derived) npuprof_emit_text_(&w->out, "bp", "e");
    npuprof_emit_text_(&w->out, "cat", e->own_name);
    npuprof_emit_key_(&w->out, "id");
}

/* One arrow: of a flow, or to the job of a device that a span submitted. Viewers match its two halves by id,
   category and name. */
static void npuprof_json_put_arrow_(npuprof_work_ *w, bool submit, const uint64_t tids[2],
                                                 const int64_t ns[2])
{
    npuprof_scene_event_ half;
    char *p;
    half.own_name = submit ? "submit" : "flow";
    w->arrows++;
    for (int end = 0; end < 2; end++) {
        half.track = tids[end];
        half.derived = end != 0;
        p = npuprof_json_begin_(w, npuprof_span_text_key_((uint32_t)half.track, 2u * submit + (uint32_t)end,
                                                          NPUPROF_JSON_ARROWS_), &half,
                                npuprof_json_spell_arrow_);
        p = npuprof_json_put_stamp_(w, npuprof_json_put_word_(npuprof_digits_uint_(p, w->arrows),
                                                                     ",\"ts\":"), ns[end]);
        *p++ = '}';
        npuprof_out_take_(&w->out, p);
    }
}

static void npuprof_json_arrow_(npuprof_scene_ *s, uint32_t from_tid, int64_t from_ns, uint32_t to_tid,
                                int64_t to_ns)
{
    const uint64_t tids[2] = { from_tid, to_tid };
    const int64_t ns[2] = { from_ns, to_ns };
    npuprof_json_put_arrow_((npuprof_work_ *)s->user, false, tids, ns);
}

/* ---- Spans */

static void npuprof_json_spell_span_(npuprof_work_ *w, const npuprof_scene_event_ *e)
{
    npuprof_json_open_(w, "X", e->ev->name, NULL, e->ev->category, e->track);
    npuprof_emit_key_(&w->out, "ts");
}

/* Writes its two times to p, behind its text. Returns the end. */
static char *npuprof_json_put_times_(npuprof_work_ *w, char *p, int64_t start, int64_t end)
{
    p = npuprof_json_put_word_(npuprof_json_put_stamp_(w, p, start), ",\"dur\":");
    return npuprof_digits_milli_(p, end - start);
}

static uint32_t npuprof_json_span_(npuprof_scene_ *s, const npuprof_scene_event_ *e)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    char *const p = npuprof_json_begin_(w, npuprof_json_key_(e), e, npuprof_json_spell_span_);
    npuprof_out_take_(&w->out, npuprof_json_put_times_(w, p, e->start, e->end));
    npuprof_json_args_(w, e);
    npuprof_emit_end_(&w->out, "}");
    if (e->submitted) {
        const uint64_t tids[2] = { e->ev->link.slot, e->track };
        const int64_t ns[2] = { npuprof_image_trace_ns_(&w->image, e->ev->link.ticks), e->start };
        npuprof_json_put_arrow_(w, true, tids, ns);
    }
    return 0;
}

/* A placed span without arguments, whose text is cached for its lane: the first one that can take it. */
static bool npuprof_json_placed_(npuprof_scene_ *s, const npuprof_placed_ *p)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    npuprof_lane_set_ *const l = s->lanes;
    const int64_t start = p->start_ns - w->image.origin_ns, end = p->end_ns - w->image.origin_ns;
    for (uint32_t lane = 0; p->text && !p->fault && lane < l->count; lane++) {
        const uint64_t key = l->track[lane] << 32 | p->text;
        const npuprof_span_text_ *const cached = npuprof_span_text_at_(w, key);
        if (cached->key != key) return false;
        if (npuprof_lane_nest_(l, lane, start, end)) {
            char *at = npuprof_out_reserve_(&w->out, NPUPROF_SPAN_TEXT_ROOM_);
            at = npuprof_json_put_times_(w, npuprof_span_text_copy_(at, cached), start, end);
            *at = '}';
            npuprof_out_take_(&w->out, at + 1);
            return true;
        }
        if (npuprof_lane_is_full_(l)) return false;
    }
    return false;
}

/* ---- Tracks */

/* Names a track, and says where a viewer puts it. thread: NULL for a track that is none; else also its number
   in the system, by which the trace can be joined with those of perf, ftrace and strace; and how many threads
   had the track one after the other: it is the last one's name and number. */
static void npuprof_json_track_(npuprof_work_ *w, uint64_t tid, const char *name, size_t length,
                                uint64_t sort, const npuprof_scene_thread_track_ *thread)
{
    npuprof_out_ *const o = &w->out;
    npuprof_json_open_(w, "M", 0, "thread_name", 0, tid);
    npuprof_emit_begin_(o, "args", "{");
    npuprof_emit_key_(o, "name");
    npuprof_out_string_(o, name, length, true);
    if (thread && thread->native_id) npuprof_emit_uint_(o, "native_id", thread->native_id);
    if (thread && thread->owners > 1) npuprof_emit_uint_(o, "native_threads", thread->owners);
    npuprof_out_puts_(o, "}}");
    npuprof_json_open_(w, "M", 0, "thread_sort_index", 0, tid);
    npuprof_emit_begin_(o, "args", "{");
    npuprof_emit_uint_(o, "sort_index", sort);
    npuprof_out_puts_(o, "}}");
}

static uint64_t npuprof_json_thread_(npuprof_scene_ *s, const npuprof_scene_thread_track_ *t)
{
    size_t length = strlen(t->own);
    const char *const name = t->name ? npuprof_image_text_(s->image, t->name, &length) : t->own;
    npuprof_json_track_((npuprof_work_ *)s->user, t->tid, name, length, t->tid, t);
    return t->tid;
}

static uint64_t npuprof_json_overlap_(npuprof_scene_ *s, const npuprof_scene_thread_track_ *t)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    const uint32_t tid = w->next_tid++;
    char text[192];
    const size_t length = npuprof_scene_overlap_name_(s->image, t, 64, text);
    npuprof_json_track_(w, tid, text, length, t->tid, NULL);
    return tid;
}

/* A lane has the name of its track; the second and further ones of a group have a number, too. Why the tid of
   the first lane is taken with the track: it may be begun after others. */
static uint64_t npuprof_json_lane_(npuprof_scene_ *s, const npuprof_event_ *ev, uint32_t lane)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    const npuprof_image_ *const im = s->image;
    const npuprof_lane_set_ *const l = s->lanes;
    const npuprof_lane_group_ group = npuprof_scene_group_(im, ev);
    char text[192], suffix[96] = "";
    uint32_t name = (uint32_t)s->placed, of_group = 1;
    size_t n = 0;
    if (w->placed != s->placed) w->first_tid = w->next_tid++;
    w->placed = s->placed;
    const uint32_t tid = lane ? w->next_tid++ : w->first_tid;
    if (ev->kind == NPUPROF_KIND_DEVICE) {
        const npuprof_device_entry_ *const d = npuprof_image_device_(im, ev->device);
        name = d ? d->name : 0;
        n = npuprof_scene_lane_text_(im, ev, d && d->pe_count > 1, suffix);
    }
    for (uint32_t i = 0; i < lane && i < NPUPROF_LANES_; i++)
        of_group += npuprof_lane_same_group_(l->group[i], group);
    if (of_group > 1) snprintf(suffix + n, sizeof suffix - n, " #%u", (unsigned)of_group);
    if (suffix[0]) {
        n = npuprof_scene_name_(im, name, 64, suffix, text);
        npuprof_json_track_(w, tid, text, n, tid, NULL);
        return tid;
    }
    const char *const own = npuprof_image_text_(im, name, &n);
    npuprof_json_track_(w, tid, n ? own : "unnamed", n ? n : 7, tid, NULL);
    return tid;
}

static const npuprof_scene_output_ npuprof_json_output_ = {
    npuprof_json_thread_, npuprof_json_overlap_, npuprof_json_lane_, npuprof_json_plain_,
    npuprof_json_placed_, npuprof_json_span_, NULL, npuprof_json_instant_, npuprof_json_counter_,
    npuprof_json_pool_, npuprof_json_arrow_, true
};

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"
#include "../numbers/digits.h"
#include "../numbers/real.h"
#include "../format/arena.h"
#include "../read/image.h"
#include "../read/cursor.h"
#include "../read/args.h"
#include "../read/time.h"
#include "../read/walk.h"
#include "../read/lanes.h"
#include "../read/scene.h"
#include "../read/scene_thread.h"
#include "text.h"
#include "work.h"
#include "span_text.h"

/* The fast path of the JSON: records of one unit and their arguments, whose text is cached: what is the same
   for all records of a site by site (span_text.h), keys of arguments by key. json.h makes these texts when it
   writes the first such record. Here nothing is looked up in the table, escaped or checked for space twice.
   Data: the work area. */

/* More of these: the instant of what changed a pool, and, 32 beyond, its facts. Of no site: the halves of
   arrows. */
enum { NPUPROF_JSON_DERIVED_ = 32, NPUPROF_JSON_ARROWS_ = 96 };

#define NPUPROF_JSON_VALUES_ (1u << NPUPROF_KIND_INSTANT | 7u << NPUPROF_KIND_COUNTER_INT)
#define NPUPROF_JSON_ELSEWHERE_ (31u << NPUPROF_KIND_FLOW_OUT)       /* flows, async, finished */
/* Units of arguments at most, and bytes of a string. */
enum { NPUPROF_JSON_ARGS_ = 16, NPUPROF_JSON_STRING_ = 64 };
enum { NPUPROF_JSON_ROOM_ = NPUPROF_SPAN_TEXT_ROOM_ + NPUPROF_JSON_ARGS_ * 128 };

/* Copies a word. Why a macro: of a literal the length is known. */
#define npuprof_json_put_word_(p, word) ((char *)memcpy(p, word, sizeof(word)) + sizeof(word) - 1)

/* Why not inlined: but for spans a call costs little. */
NPUPROF_HOT_ static NPUPROF_NOINLINE_ char *npuprof_json_put_stamp_(npuprof_work_ *w, char *p, int64_t ns)
{
    return npuprof_digits_stamp_(&w->stamps, p, ns);
}

/* The value of an argument to p. NULL: it needs a word of its own or an escape. */
NPUPROF_HOT_ static NPUPROF_NOINLINE_ char *npuprof_json_put_value_(char *p, const npuprof_value_ *v)
{
    if (v->type == NPUPROF_ARG_INT) return npuprof_digits_int_(p, (int64_t)v->bits);
    if (v->type == NPUPROF_ARG_BOOL)
        return v->bits ? npuprof_json_put_word_(p, "true") : npuprof_json_put_word_(p, "false");
    if (v->type == NPUPROF_ARG_REAL)
        return (v->bits >> 52 & 0x7FF) == 0x7FF ? NULL : npuprof_digits_real_(p, v->bits);
    if (v->type != NPUPROF_ARG_STR || v->length > NPUPROF_JSON_STRING_) return NULL;
    const uint8_t *const end = v->text + v->length;
    *p++ = '"';
    for (const uint8_t *c = v->text; c < end; *p++ = (char)*c++)
        if (*c < 0x20 || *c >= 0x7F || *c == '"' || *c == '\\') return NULL;
    *p++ = '"';
    return p;
}

/* Writes the arguments from u to end to p, which has the space, and those of the lists that `more` finds, if
   it is not NULL. Returns the end. NULL: the fast path cannot: not all keys are known and differ, a value
   needs more, there are none, or another unit is before them. */
NPUPROF_HOT_ static NPUPROF_NOINLINE_ char *npuprof_json_put_args_(const npuprof_work_ *w, char *p,
                                                                  const npuprof_unit_ *u,
                                                                  const npuprof_unit_ *end,
                                                                  npuprof_args_walk_ *more)
{
    const npuprof_work_key_ *const keys = w->key_text;
    char *const open = npuprof_json_put_word_(p, ",\"args\":");
    uint64_t seen = 0;                     /* marks */
    npuprof_value_ v;
    int64_t room = NPUPROF_JSON_ARGS_;
    if (u < end && npuprof_unit_load_id_(u) != NPUPROF_CONTROL_ARG_) return NULL;
    for (p = open;; end = more->end, u = more->u) {
        room -= end - u;
        if (room < 0) return NULL;
        while (u < end) {
            const uint32_t id = npuprof_args_key_(u->w0);
            const npuprof_work_key_ *const key = &keys[id % NPUPROF_KEY_TEXTS_];
            if (key->id != id || seen & key->mark) return NULL;
            seen |= key->mark;
            memcpy(p, key->text, 16);
            if (NPUPROF_UNLIKELY_(key->length > 16)) memcpy(p + 16, key->text + 16, sizeof key->text - 16);
            p += key->length;
            if (npuprof_args_is_count_(u)) {
                p = npuprof_digits_uint_(p, u->w1);
                u++;
                continue;
            }
            u = npuprof_args_decode_(u, &v);
            p = npuprof_json_put_value_(p, &v);
            if (!p) return NULL;
        }
        if (!more || !npuprof_args_next_list_(more)) break;
    }
    *open = '{';
    *p++ = '}';
    return seen ? p : NULL;
}

/* A number of a counter. Why a real above int64: viewers garble such integers. */
static char *npuprof_json_put_big_(char *p, uint64_t v)
{
    return v >> 63 ? npuprof_digits_real_(p, npuprof_real_bits_((double)v)) : npuprof_digits_uint_(p, v);
}

/* The value of a counter, which is finite. */
static char *npuprof_json_put_counter_(char *p, uint32_t kind, uint64_t bits)
{
    p = npuprof_json_put_word_(p, ",\"args\":{\"value\":");
    if (kind == NPUPROF_KIND_COUNTER_INT) p = npuprof_digits_int_(p, (int64_t)bits);
    else if (kind == NPUPROF_KIND_COUNTER_UINT) p = npuprof_json_put_big_(p, bits);
    else p = npuprof_digits_real_(p, bits);
    *p++ = '}';
    return p;
}

/* What changed a pool, if it is known. */
static char *npuprof_json_put_change_(char *p, int64_t change)
{
    return change ? npuprof_digits_int_(npuprof_json_put_word_(p, ",\"change\":"), change) : p;
}

/* The state of a pool, behind its text: bytes used and allocated. */
static char *npuprof_json_put_pool_(npuprof_work_ *w, char *p, int64_t ns, int64_t change,
                                    const uint64_t bytes[2])
{
    p = npuprof_json_put_change_(p, change);
    if (w->walk.warm_up) p = npuprof_json_put_word_(p, ",\"warm_up\":true");
    p = npuprof_json_put_stamp_(w, npuprof_json_put_word_(p, ",\"ts\":"), ns);
    p = npuprof_json_put_big_(npuprof_json_put_word_(p, ",\"args\":{\"used\":"), bytes[0]);
    p = npuprof_json_put_big_(npuprof_json_put_word_(p, ",\"allocated\":"), bytes[1]);
    *p++ = '}';
    return p;
}

/* Of a site that was not met: notes that its records are shown elsewhere, if they are. */
static NPUPROF_NOINLINE_ bool npuprof_json_skips_(npuprof_work_ *w, npuprof_span_text_ *cached, uint32_t site)
{
    const npuprof_site_entry_ *const e = npuprof_image_site_(&w->image, site);
    const uint32_t of_site = e ? e->head.a & 0xFF : 0;
    const uint32_t kind = site == NPUPROF_CONTROL_RESULT_ ? (uint32_t)NPUPROF_KIND_FLOW_OUT : of_site;
    if (kind >= NPUPROF_KIND_COUNT || !(NPUPROF_JSON_ELSEWHERE_ >> kind & 1)) return false;
    cached->key = npuprof_span_text_key_(w->walk.tid, site, kind);
    return true;
}

/* The same for a span with results, which ends at `until`: those behind its record, too. Its head is right
   before its arguments. Why not the record itself: the loop would keep it in memory. */
static NPUPROF_NOINLINE_ char *npuprof_json_put_results_(const npuprof_work_ *w, char *p,
                                                         const npuprof_unit_ *args,
                                                         const npuprof_unit_ *behind, uint64_t until)
{
    const npuprof_cursor_ *const c = &w->walk.cursor[0];
    const uint64_t position = c->first_position + (uint64_t)(args - 1 - c->units);
    npuprof_args_walk_ more = { &w->image, NULL, NULL, c->chunk, (uint32_t)(behind - c->units), position,
                                until };
    return npuprof_json_put_args_(w, p, args, behind, &more);
}

/* Writes a span with the text `cached` to p. Returns the end. NULL: it is open, or does not nest, or what
   npuprof_json_put_args_() says, and nothing happened; else it is in its lane. */
NPUPROF_HOT_ static inline char *npuprof_json_put_span_(npuprof_work_ *w, char *p,
                                                        const npuprof_span_text_ *cached, uint64_t use,
                                                        const npuprof_plain_walk_ *c,
                                                        const npuprof_plain_ *r)
{
    const int64_t start = npuprof_image_trace_ns_(&w->image, r->start);
    const int64_t end = npuprof_image_trace_ns_(&w->image, r->end);
    if (!npuprof_cursor_plain_ended_(c, r)) return NULL;
    p = npuprof_digits_stamp_(&w->stamps, npuprof_span_text_copy_(p, cached), start);
    p = npuprof_digits_milli_(npuprof_json_put_word_(p, ",\"dur\":"), end - start);
    if (NPUPROF_UNLIKELY_(use != NPUPROF_KIND_SPAN))
        p = npuprof_json_put_results_(w, p, c->at + 1, r->behind, r->end);
    else if (r->behind != c->at + 1)
        p = npuprof_json_put_args_(w, p, c->at + 1, r->behind, NULL);
    if (!p) return NULL;
    *p = '}';
    return npuprof_lane_nest_(&w->lanes, 0, start, end) ? p + 1 : NULL;
}

/* The same for the state of a pool, at `unit`, and the instant beside it: three cached texts. NULL: one is
   not there. */
static char *npuprof_json_put_memory_(npuprof_work_ *w, char *p, const npuprof_span_text_ *cached,
                                      const npuprof_unit_ *unit, const npuprof_unit_ *behind)
{
    const npuprof_span_text_ *const moment = npuprof_span_text_at_(w, cached->key + NPUPROF_JSON_DERIVED_);
    const npuprof_span_text_ *const facts = npuprof_span_text_at_(w, cached->key + 2 * NPUPROF_JSON_DERIVED_);
    const npuprof_unit_ *const more = unit + 1;
    const uint64_t at = npuprof_chunk_ticks_from_(w->walk.cursor[0].base, unit->w0);
    const int64_t ns = npuprof_image_trace_ns_(&w->image, at);
    if (behind != more + 1 || npuprof_unit_load_id_(more) != NPUPROF_CONTROL_MEMORY_) return NULL;
    if (moment->key != cached->key + NPUPROF_JSON_DERIVED_) return NULL;
    if (facts->key != moment->key + NPUPROF_JSON_DERIVED_) return NULL;
    npuprof_walk_plain_event_(&w->walk, at);
    const int64_t change = npuprof_cursor_change_(more->w0 >> NPUPROF_ID_BITS_);
    const uint64_t bytes[2] = { unit->w1, more->w1 };
    p = npuprof_json_put_pool_(w, npuprof_span_text_copy_(p, cached), ns, change, bytes);
    *p = '}';
    p = npuprof_json_put_stamp_(w, npuprof_span_text_copy_(p + 1, moment), ns);
    p = npuprof_json_put_change_(npuprof_span_text_copy_(p, facts), change);
    return npuprof_json_put_word_(p, "}}");
}

/* The same for a record that is no span. Why not of npuprof_plain_: the loop would keep it in memory. */
NPUPROF_HOT_ static NPUPROF_NOINLINE_ char *npuprof_json_put_record_(npuprof_work_ *w, char *p,
                                                                    const npuprof_span_text_ *cached,
                                                                    const npuprof_unit_ *unit,
                                                                    const npuprof_unit_ *behind)
{
    const uint32_t use = (uint32_t)cached->key & 0xFF;
    const uint64_t value = unit->w1;
    if (use == NPUPROF_KIND_MEMORY) return npuprof_json_put_memory_(w, p, cached, unit, behind);
    if (!(NPUPROF_JSON_VALUES_ >> use & 1)) return NULL;
    if (npuprof_kind_is_real_(use) && (value >> 52 & 0x7FF) == 0x7FF) return NULL;
    const uint64_t at = npuprof_chunk_ticks_from_(w->walk.cursor[0].base, unit->w0);
    const int64_t ns = npuprof_image_trace_ns_(&w->image, at);
    p = npuprof_json_put_stamp_(w, npuprof_span_text_copy_(p, cached), ns);
    if (use != NPUPROF_KIND_INSTANT) p = npuprof_json_put_counter_(p, use, value);
    if (behind != unit + 1 && !(p = npuprof_json_put_args_(w, p, unit + 1, behind, NULL))) return NULL;
    return npuprof_json_put_word_(p, "}");
}

/* Writes the records that come next, as long as they are plain and the text of their sites is cached. */
NPUPROF_HOT_ NPUPROF_NOINLINE_ static void npuprof_json_plain_(npuprof_scene_ *s)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    const bool walk = npuprof_scene_needs_walk_(&w->image);
    const uint64_t tid = npuprof_span_text_key_(w->walk.tid, 0, 0);
    npuprof_plain_walk_ c = npuprof_cursor_begin_plains_(&w->walk.cursor[0]);
    npuprof_plain_ r;
    char *at = w->out.bytes + w->out.used, *next;
    const char *const last = w->out.bytes + w->out.capacity - NPUPROF_JSON_ROOM_;
    for (; npuprof_cursor_peek_plain_(&c, &r); at = next, c.at = r.behind) {
        const uint64_t key = tid | r.site << 8;
        npuprof_span_text_ *const cached = npuprof_span_text_at_(w, key);
        const uint64_t use = cached->key ^ key;        /* below 32 if the site was met */
        if (NPUPROF_UNLIKELY_(at > last)) {
            npuprof_out_take_(&w->out, at);
            npuprof_out_make_room_(&w->out);
            at = w->out.bytes + w->out.used;
        }
        if (NPUPROF_LIKELY_(use == NPUPROF_KIND_SPAN) || use == NPUPROF_SPAN_TEXT_RESULTS_) {
            next = npuprof_json_put_span_(w, at, cached, use, &c, &r);
            if (walk && next)
                npuprof_walk_plain_(&w->walk, r.start, r.end,
                                    npuprof_cursor_plain_position_(&w->walk.cursor[0], &c));
        } else if (use < 32 && !(NPUPROF_JSON_ELSEWHERE_ >> use & 1)) {
            next = npuprof_json_put_record_(w, at, cached, c.at, r.behind);
        } else {
            next = use < 32 || npuprof_json_skips_(w, cached, r.site) ? at : NULL;
        }
        if (NPUPROF_UNLIKELY_(!next)) break;
    }
    npuprof_out_take_(&w->out, at);
    npuprof_cursor_end_plains_(&w->walk.cursor[0], &c);
}

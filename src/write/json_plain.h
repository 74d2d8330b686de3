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

/* Uses of a site that are no kind: spans with results; the instant of what changed a pool. Of no site: the
   halves of arrows. */
enum { NPUPROF_JSON_RESULTS_ = 31, NPUPROF_JSON_DERIVED_ = 32, NPUPROF_JSON_ARROWS_ = 96 };

#define NPUPROF_JSON_SPANS_ (1u << NPUPROF_KIND_SPAN | 1u << NPUPROF_JSON_RESULTS_)
#define NPUPROF_JSON_VALUES_ (1u << NPUPROF_KIND_INSTANT | 7u << NPUPROF_KIND_COUNTER_INT)
#define NPUPROF_JSON_ELSEWHERE_ (15u << NPUPROF_KIND_FLOW_OUT)       /* flows and async spans */
enum { NPUPROF_JSON_ARGS_ = 8, NPUPROF_JSON_STRING_ = 64 };
enum { NPUPROF_JSON_ROOM_ = NPUPROF_SPAN_TEXT_ROOM_ + NPUPROF_JSON_ARGS_ * 128 };

/* Is a text of the arena, of so many bytes, the same in JSON? */
NPUPROF_HOT_ static bool npuprof_json_is_clean_(const uint8_t *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] < 0x20 || text[i] >= 0x7F || text[i] == '"' || text[i] == '\\') return false;
    return true;
}

/* May the fast path write these arguments? All keys are known and differ, and no value needs a word of its
   own or an escape. */
NPUPROF_HOT_ static bool npuprof_json_knows_args_(const npuprof_work_ *w, npuprof_args_walk_ args)
{
    uint32_t marks[NPUPROF_JSON_ARGS_];
    npuprof_value_ v;
    for (unsigned n = 0; npuprof_args_next_(&args, &v); n++) {
        const npuprof_work_key_ *const key = &w->key_text[v.key % NPUPROF_KEY_TEXTS_];
        const bool finite = v.type != NPUPROF_ARG_REAL || (v.bits >> 52 & 0x7FF) != 0x7FF;
        if (n == NPUPROF_JSON_ARGS_ || key->id != v.key || !v.type || v.type > NPUPROF_ARG_STR) return false;
        if (!finite || (v.type == NPUPROF_ARG_UINT && v.bits >> 63)) return false;
        if (v.length > NPUPROF_JSON_STRING_) return false;
        if (v.type == NPUPROF_ARG_STR && !npuprof_json_is_clean_(v.text, v.length)) return false;
        marks[n] = key->mark;
        for (unsigned i = 0; i < n; i++)
            if (marks[i] == key->mark) return false;
    }
    return true;
}

/* Writes them to p, which has the space. Returns the end. */
NPUPROF_HOT_ static char *npuprof_json_put_args_(const npuprof_work_ *w, char *p, npuprof_args_walk_ args)
{
    npuprof_value_ v;
    memcpy(p, ",\"args\":{ ", 10);
    for (p += 9; npuprof_args_next_(&args, &v); *p++ = ',') {
        const npuprof_work_key_ *const key = &w->key_text[v.key % NPUPROF_KEY_TEXTS_];
        memcpy(p, key->text, sizeof key->text);
        p += key->length;
        if (v.type == NPUPROF_ARG_INT) {
            p = npuprof_digits_int_(p, (int64_t)v.bits);
        } else if (v.type == NPUPROF_ARG_UINT) {
            p = npuprof_digits_uint_(p, v.bits);
        } else if (v.type == NPUPROF_ARG_REAL) {
            p = npuprof_digits_real_(p, v.bits);
        } else if (v.type == NPUPROF_ARG_BOOL) {
            memcpy(p, v.bits ? "true " : "false", 5);
            p += v.bits ? 4 : 5;
        } else {
            *p++ = '"';
            memcpy(p, v.text, v.length);
            p += v.length;
            *p++ = '"';
        }
    }
    p[-1] = '}';
    return p;
}

/* The value of a counter to p. NULL: it is not finite. */
NPUPROF_HOT_ static char *npuprof_json_put_counter_(char *p, uint32_t kind, uint64_t bits)
{
    const bool real = kind == NPUPROF_KIND_COUNTER_REAL;
    if (real && (bits >> 52 & 0x7FF) == 0x7FF) return NULL;
    if (kind == NPUPROF_KIND_COUNTER_UINT && bits >> 63) return NULL;
    memcpy(p, ",\"args\":{\"value\":", 17);
    p += 17;
    p = real ? npuprof_digits_real_(p, bits) : npuprof_digits_int_(p, (int64_t)bits);
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

/* The arguments of a plain record. */
NPUPROF_HOT_ static inline npuprof_args_walk_ npuprof_json_args_of_(const npuprof_work_ *w, bool has_results,
                                                                   const npuprof_plain_walk_ *c,
                                                                   const npuprof_plain_ *r)
{
    const npuprof_cursor_ *const cursor = &w->walk.cursor[0];
    npuprof_args_walk_ args = { &w->image, c->at + 1, r->behind, 0, 0, 0, r->end };
    if (!has_results) return args;
    args.chunk = cursor->chunk;
    args.unit = (uint32_t)(c->at - cursor->units);
    args.position = npuprof_cursor_plain_position_(cursor, c);
    return args;
}

/* A span with the text `cached`, up to its arguments, to p. NULL: it is open or does not nest, and nothing
   happened; else it is in its lane. */
NPUPROF_HOT_ static inline char *npuprof_json_put_span_(npuprof_work_ *w, char *p,
                                                        const npuprof_span_text_ *cached,
                                                        const npuprof_plain_walk_ *c, const npuprof_plain_ *r)
{
    const int64_t start = npuprof_image_trace_ns_(&w->image, r->start);
    const int64_t end = npuprof_image_trace_ns_(&w->image, r->end);
    if (!npuprof_cursor_plain_ended_(c, r) || !npuprof_lane_nest_(&w->lanes, 0, start, end)) return NULL;
    p = npuprof_digits_stamp_(&w->stamps, npuprof_span_text_copy_(p, cached), start);
    memcpy(p, ",\"dur\": ", 8);
    return npuprof_digits_milli_(p + 7, end - start);
}

/* The same for a record of any use of its site, whole. */
NPUPROF_HOT_ static NPUPROF_NOINLINE_ char *npuprof_json_put_record_(npuprof_work_ *w, char *p,
                                                                    const npuprof_span_text_ *cached,
                                                                    const npuprof_plain_walk_ *c,
                                                                    const npuprof_plain_ *r)
{
    const uint32_t use = (uint32_t)cached->key & 0xFF;
    const bool has_results = use == NPUPROF_JSON_RESULTS_, any = c->at + 1 != r->behind || has_results;
    npuprof_args_walk_ args = npuprof_json_args_of_(w, has_results, c, r);
    if (NPUPROF_JSON_ELSEWHERE_ >> use & 1) return p;
    if (any && !npuprof_json_knows_args_(w, args)) return NULL;
    if (NPUPROF_JSON_SPANS_ >> use & 1) {
        p = npuprof_json_put_span_(w, p, cached, c, r);
    } else if (NPUPROF_JSON_VALUES_ >> use & 1) {
        p = npuprof_digits_stamp_(&w->stamps, npuprof_span_text_copy_(p, cached),
                                  npuprof_image_trace_ns_(&w->image, r->start));
        if (use != NPUPROF_KIND_INSTANT) p = npuprof_json_put_counter_(p, use, r->end);
    } else {
        return NULL;
    }
    if (!p) return NULL;
    if (any) p = npuprof_json_put_args_(w, p, args);
    *p = '}';
    return p + 1;
}

/* Writes the records that come next, as long as they are plain and the text of their sites is cached. */
NPUPROF_HOT_ NPUPROF_NOINLINE_ static void npuprof_json_plain_(npuprof_scene_ *s)
{
    npuprof_work_ *const w = (npuprof_work_ *)s->user;
    const bool walk = npuprof_scene_needs_walk_(&w->image);
    const uint64_t tid = npuprof_span_text_key_(w->walk.tid, 0, 0);
    npuprof_plain_walk_ c = npuprof_cursor_begin_plains_(&w->walk.cursor[0]);
    npuprof_plain_ r;
    char *at = npuprof_out_reserve_(&w->out, NPUPROF_JSON_ROOM_), *next;
    const char *last = w->out.bytes + w->out.capacity - NPUPROF_JSON_ROOM_;
    while (npuprof_cursor_peek_plain_(&c, &r)) {
        const uint64_t key = tid | r.site << 8;
        npuprof_span_text_ *const cached = npuprof_span_text_at_(w, key);
        if (NPUPROF_UNLIKELY_(at > last)) {
            w->out.used = (size_t)(at - w->out.bytes);
            at = npuprof_out_reserve_(&w->out, NPUPROF_JSON_ROOM_);
        }
        if (NPUPROF_LIKELY_(cached->key == (key | NPUPROF_KIND_SPAN) && r.behind == c.at + 1)) {
            next = npuprof_json_put_span_(w, at, cached, &c, &r);
            if (NPUPROF_UNLIKELY_(!next)) break;
            *next++ = '}';
        } else {
            const bool met = (cached->key ^ key) <= NPUPROF_JSON_RESULTS_ && cached->key;
            if (!met && !npuprof_json_skips_(w, cached, r.site)) break;
            next = npuprof_json_put_record_(w, at, cached, &c, &r);
            if (!next) break;
        }
        if (walk && (NPUPROF_JSON_SPANS_ >> (cached->key & 31) & 1))
            npuprof_walk_plain_(&w->walk, &r, npuprof_cursor_plain_position_(&w->walk.cursor[0], &c));
        at = next;
        c.at = r.behind;
    }
    w->out.used = (size_t)(at - w->out.bytes);
    npuprof_cursor_end_plains_(&w->walk.cursor[0], &c);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/digits.h"
#include "image.h"
#include "args.h"
#include "time.h"
#include "place.h"
#include "scene.h"

/* Text of the scene: names of tracks; keys of arguments; and facts, which are what the library itself says
   of an event, before the user's arguments. */

/* ---- Text of names */

/* Appends text; returns the new length. */
static size_t npuprof_scene_append_(char *text, size_t at, size_t capacity, const char *more)
{
    npuprof_text_copy_(text + at, capacity - at, more);
    return at + strlen(text + at);
}

/* A name of the table, cut to `most` bytes, or "unnamed", with a text behind it. Returns the length. */
static size_t npuprof_scene_name_(const npuprof_image_ *im, uint32_t id, size_t most, const char *suffix,
                                  char text[192])
{
    size_t length;
    const char *const name = npuprof_image_text_(im, id, &length);
    const size_t cut = npuprof_utf8_cut_(name, length, most);
    memcpy(text, name, cut);
    const size_t at = length ? cut : npuprof_scene_append_(text, 0, 192, "unnamed");
    return npuprof_scene_append_(text, at, 192, suffix);
}

/* The name of a lane beside a thread's track, likewise. */
static size_t npuprof_scene_overlap_name_(const npuprof_image_ *im, const npuprof_scene_thread_track_ *t,
                                          size_t most, char text[192])
{
    if (!t->name) return npuprof_scene_append_(text, 0, 192, "thread (overlap)");
    return npuprof_scene_name_(im, t->name, most, " (overlap)", text);
}

/* ---- Keys */

/* Are two keys the same once they are written? Bad bytes all become U+FFFD. */
static bool npuprof_scene_same_key_(const npuprof_image_ *im, uint32_t a, uint32_t b)
{
    size_t a_left, b_left;
    if (a == b) return true;
    const uint8_t *p = (const uint8_t *)npuprof_image_text_(im, a, &a_left);
    const uint8_t *q = (const uint8_t *)npuprof_image_text_(im, b, &b_left);
    while (a_left && b_left) {
        const size_t n = npuprof_utf8_length_(p, a_left), m = npuprof_utf8_length_(q, b_left);
        const bool p_bad = n == 0 || (n == 3 && memcmp(p, "\xEF\xBF\xBD", 3) == 0);
        const bool q_bad = m == 0 || (m == 3 && memcmp(q, "\xEF\xBF\xBD", 3) == 0);
        if (p_bad != q_bad || (!p_bad && (n != m || memcmp(p, q, n) != 0))) return false;
        p += n ? n : 1;
        q += m ? m : 1;
        a_left -= n ? n : 1;
        b_left -= m ? m : 1;
    }
    return a_left == b_left;
}

/* Does an argument with this key come again behind the last one? */
static bool npuprof_scene_key_comes_again_(const npuprof_args_walk_ *args, uint32_t key)
{
    npuprof_args_walk_ rest = *args;
    npuprof_value_ later;
    while (npuprof_args_next_(&rest, &later))
        if (npuprof_scene_same_key_(args->image, later.key, key)) return true;
    return false;
}

/* ---- Facts */

static npuprof_value_ *npuprof_fact_add_(npuprof_scene_event_ *e, uint32_t key, uint32_t type, uint64_t bits)
{
    npuprof_value_ *const fact = &e->facts[e->fact_count++];
    e->keys |= 1u << key;
    fact->key = key;
    fact->type = type;
    fact->bits = bits;
    fact->text = NULL;
    fact->length = 0;
    return fact;
}

static void npuprof_fact_add_text_(npuprof_scene_event_ *e, uint32_t key, const char *text, size_t length)
{
    npuprof_value_ *const fact = npuprof_fact_add_(e, key, NPUPROF_ARG_STR, 0);
    fact->text = (const uint8_t *)text;
    fact->length = length;
}

static void npuprof_fact_add_words_(npuprof_scene_event_ *e, uint32_t key, const char *words)
{
    npuprof_fact_add_text_(e, key, words, strlen(words));
}

/* trace_id: TRACEPARENT's, else the arena's seed and the id of the trace's root span. */
static void npuprof_fact_add_ids_(npuprof_scene_event_ *e, const npuprof_image_ *im, uint32_t root_tid,
                                  uint64_t root)
{
    npuprof_image_trace_id_(im, root_tid, root, e->trace_id);
    npuprof_digits_hex_text_(e->span_id, npuprof_image_span_id_(im, e->ev->tid, e->ev->position));
    npuprof_fact_add_words_(e, NPUPROF_FACT_TRACE_ID_, e->trace_id);
    npuprof_fact_add_words_(e, NPUPROF_FACT_SPAN_ID_, e->span_id);
}

/* How an argument's key is written that is the key of a fact. NULL: as it is. Why no other one for
   "unfinished" of a device: there it is the library's, from the record. */
static const char *npuprof_fact_key_(const npuprof_scene_event_ *e, const npuprof_image_ *im, uint32_t key)
{
    const uint32_t is_device = e->keys >> NPUPROF_FACT_STAMP_ & 1;
    const uint32_t keys = (e->keys | NPUPROF_FACTS_OURS_) & ~(is_device << NPUPROF_FACT_UNFINISHED_);
    for (unsigned n = 0; keys >> n; n++) {
        const char *const text = npuprof_fact_user_keys_[n];
        if ((keys >> n & 1) && npuprof_image_text_is_(im, key, text + NPUPROF_FACT_USER_)) return text;
    }
    return NULL;
}

/* ---- Spans of threads */

static void npuprof_fact_of_span_(npuprof_scene_event_ *e, const npuprof_image_ *im, uint64_t root)
{
    static const char *const kinds[] = { "", "record", "warm_up", "inference", "operator" };
    const npuprof_event_ *const ev = e->ev;
    if (ev->kind != NPUPROF_KIND_SPAN) {
        npuprof_fact_add_words_(e, NPUPROF_FACT_KIND_, kinds[ev->kind - NPUPROF_KIND_SPAN]);
        npuprof_fact_add_ids_(e, im, ev->tid, root);
    }
    if (ev->unfinished) (void)npuprof_fact_add_(e, NPUPROF_FACT_UNFINISHED_, NPUPROF_ARG_BOOL, 1);
    else if (ev->cut) npuprof_fact_add_words_(e, NPUPROF_FACT_UNFINISHED_, "unwound");
}

/* ---- Spans and instants of devices */

/* Is an arrow drawn to a device span that starts there? Viewers draw none back in time, so there is none to a
   span that the error of the clock puts before the span that submitted it. */
static bool npuprof_fact_draws_arrow_(const npuprof_image_ *im, const npuprof_event_ *ev, int64_t start_ns)
{
    return npuprof_image_has_arrow_(im, ev) && npuprof_image_ns_(im, ev->link.ticks) <= start_ns;
}

/* Where the event was, on which clock, and how wrong it may be. A host's stamps have no device ticks, and
   maybe no known error. A whole execution has ids; its instructions have its trace id. */
static void npuprof_fact_of_device_(npuprof_scene_event_ *e, const npuprof_image_ *im,
                                    npuprof_image_anchor_caches_ *caches)
{
    const npuprof_event_ *const ev = e->ev;
    npuprof_image_times_ times = { 0, 0, 0, false };
    const bool by_host = (ev->flags & NPUPROF_STAMP_HOST) != 0;
    (void)npuprof_image_times_of_(im, caches, ev, &times);
    npuprof_fact_add_words_(e, NPUPROF_FACT_STAMP_,
                            ev->flags & NPUPROF_STAMP_SAMPLED ? "sampled" : by_host ? "host" : "device");
    (void)npuprof_fact_add_(e, NPUPROF_FACT_PE_INDEX_, NPUPROF_ARG_UINT, ev->pe);
    if (!by_host) {
        (void)npuprof_fact_add_(e, NPUPROF_FACT_START_TICKS_, NPUPROF_ARG_UINT, ev->start);
        (void)npuprof_fact_add_(e, NPUPROF_FACT_END_TICKS_, NPUPROF_ARG_UINT, ev->end);
    }
    if (!by_host || ev->epoch)
        (void)npuprof_fact_add_(e, NPUPROF_FACT_ERROR_NS_, NPUPROF_ARG_UINT,
                                npuprof_image_error_ns_(im, times.error));
    if (times.broken)
        npuprof_fact_add_words_(e, NPUPROF_FACT_CAUSALITY_, "violated");
    if (ev->has_link && ev->link.warm_up)
        (void)npuprof_fact_add_(e, NPUPROF_FACT_WARM_UP_, NPUPROF_ARG_BOOL, 1);
    if (!npuprof_args_is_execution_(im, ev)) return;
    if (ev->has_link) npuprof_fact_add_ids_(e, im, ev->link.slot, ev->link.root_position);
    else npuprof_fact_add_ids_(e, im, ev->tid, ev->position);
}

/* ---- Finished and async spans: what is wrong with their stamps */

static void npuprof_fact_of_finished_(npuprof_scene_event_ *e, const npuprof_placed_ *p)
{
    static const uint8_t keys[] = {        /* by NPUPROF_FAULT_* */
        0, NPUPROF_FACT_UNFINISHED_, NPUPROF_FACT_OUT_OF_RANGE_, NPUPROF_FACT_REVERSED_
    };
    if (p->fault) (void)npuprof_fact_add_(e, keys[p->fault], NPUPROF_ARG_BOOL, 1);
}

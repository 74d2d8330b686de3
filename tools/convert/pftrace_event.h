#pragma once   /* SPDX-License-Identifier: MIT */
#include "pftrace.h"

/* TrackEvents: begin, end, instant, counter, and their arguments. track_event.proto,
   debug_annotation.proto. */

enum { NPUPROF_PFTRACE_ARGS_ = 4, NPUPROF_PFTRACE_TYPE_ = 9, NPUPROF_PFTRACE_NAME_IID_ = 10,
       NPUPROF_PFTRACE_CATEGORY_IIDS_ = 3, NPUPROF_PFTRACE_NAME_TEXT_ = 23,
       NPUPROF_PFTRACE_COUNTER_VALUE_ = 30, NPUPROF_PFTRACE_COUNTER_REAL_ = 44,
       NPUPROF_PFTRACE_SOURCE_IID_ = 34, NPUPROF_PFTRACE_FLOW_IDS_ = 47, NPUPROF_PFTRACE_FLOW_END_IDS_ = 48 };
enum { NPUPROF_PFTRACE_BEGIN_ = 1, NPUPROF_PFTRACE_END_ = 2, NPUPROF_PFTRACE_INSTANT_ = 3,
       NPUPROF_PFTRACE_COUNTER_ = 4 };

static void npuprof_pftrace_begin_event_(npuprof_pftrace_ *p, unsigned type)
{
    npuprof_pftrace_begin_(p);
    npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_TYPE_, type);
}

/* Name and category (0: none) by their ids. */
static void npuprof_pftrace_put_names_(npuprof_pftrace_ *p, uint32_t name, uint32_t category)
{
    const uint32_t iid = npuprof_pftrace_intern_id_(p, NPUPROF_PFTRACE_NAMES_, name);
    if (iid) npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_NAME_IID_, iid);
    if (!category) return;
    const uint32_t word = npuprof_pftrace_intern_id_(p, NPUPROF_PFTRACE_CATEGORIES_, category);
    if (word) npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_CATEGORY_IIDS_, word);
}

/* File and line of the event's call site, if they are known. source_location.proto */
static void npuprof_pftrace_put_source_(npuprof_pftrace_ *p, const npuprof_event_ *ev)
{
    const npuprof_image_ *const im = &p->work->image;
    const npuprof_site_entry_ *const site = npuprof_image_site_(im, ev->site);
    size_t length;
    if (!site || !site->file) return;
    const size_t id = (size_t)((const uint8_t *)site - im->table) / im->h->table_unit;
    npuprof_pftrace_name_ *const place = &p->names[NPUPROF_PFTRACE_WORD_COUNT_ + id];
    if (NPUPROF_PFTRACE_WORD_COUNT_ + id >= p->name_count) return;
    if (!place->iid) place->iid = ++p->iids;
    npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_SOURCE_IID_, place->iid);
    if (place->sent >> NPUPROF_PFTRACE_SOURCES_ & 1) return;
    place->sent |= 1u << NPUPROF_PFTRACE_SOURCES_;
    const size_t entry = npuprof_proto_begin_(&p->interned, NPUPROF_PFTRACE_SOURCES_);
    npuprof_proto_uint_(&p->interned, 1, place->iid);
    const char *const file = npuprof_image_text_(im, site->file, &length);
    npuprof_proto_text_(&p->interned, 2, file, length);
    npuprof_proto_uint_(&p->interned, 4, site->line & ~NPUPROF_SITE_RESULTS_);
    npuprof_proto_end_(&p->interned, entry);
}

/* ---- Arguments. The writer's own first; p->used_words has a bit for each */

static size_t npuprof_pftrace_begin_word_(npuprof_pftrace_ *p, unsigned word)
{
    const char *const text = npuprof_pftrace_words_[word];
    const size_t arg = npuprof_proto_begin_(&p->event, NPUPROF_PFTRACE_ARGS_);
    npuprof_proto_uint_(&p->event, 1, npuprof_pftrace_intern_(p, NPUPROF_PFTRACE_KEYS_, word, text,
                                                              strlen(text)));
    return arg;
}

static void npuprof_pftrace_put_word_(npuprof_pftrace_ *p, unsigned word, const char *value)
{
    const size_t arg = npuprof_pftrace_begin_word_(p, word);
    npuprof_proto_words_(&p->event, 6, value);
    npuprof_proto_end_(&p->event, arg);
}

static void npuprof_pftrace_put_uint_(npuprof_pftrace_ *p, unsigned word, uint64_t value)
{
    const size_t arg = npuprof_pftrace_begin_word_(p, word);
    npuprof_proto_uint_(&p->event, 3, value);
    npuprof_proto_end_(&p->event, arg);
}

static void npuprof_pftrace_put_true_(npuprof_pftrace_ *p, unsigned word)
{
    const size_t arg = npuprof_pftrace_begin_word_(p, word);
    npuprof_proto_uint_(&p->event, 2, 1);
    npuprof_proto_end_(&p->event, arg);
}

/* "trace_id" and "span_id", as the JSON has them. */
static void npuprof_pftrace_put_ids_(npuprof_pftrace_ *p, uint32_t root_tid, uint64_t root, uint32_t tid,
                                     uint64_t position)
{
    const npuprof_image_ *const im = &p->work->image;
    char trace[33], span[17];
    npuprof_digits_trace_id_(im, root_tid, root, trace);
    npuprof_digits_hex_text_(span, npuprof_image_span_id_(im, tid, position));
    npuprof_pftrace_put_word_(p, NPUPROF_PFTRACE_WORD_TRACE_ID_, trace);
    npuprof_pftrace_put_word_(p, NPUPROF_PFTRACE_WORD_SPAN_ID_, span);
}

static void npuprof_pftrace_put_value_(npuprof_pftrace_ *p, const npuprof_value_ *v)
{
    npuprof_proto_ *const m = &p->event;
    switch (v->type) {
    case NPUPROF_ARG_INT: npuprof_proto_uint_(m, 4, v->bits); break;
    case NPUPROF_ARG_UINT: npuprof_proto_uint_(m, 3, v->bits); break;
    case NPUPROF_ARG_BOOL: npuprof_proto_uint_(m, 2, v->bits != 0); break;
    case NPUPROF_ARG_REAL: npuprof_proto_fixed64_(m, 5, v->bits); break;
    case NPUPROF_ARG_STR: npuprof_proto_text_(m, 6, v->text, v->length); break;
    case NPUPROF_ARG_STR_CUT_: {
        const size_t begin = npuprof_proto_begin_(m, 6);
        npuprof_proto_clean_(m, v->text, v->length);
        npuprof_proto_raw_(m, "\xE2\x80\xA6", 3);
        npuprof_proto_end_(m, begin);
        break;
    }
    default: npuprof_proto_words_(m, 6, ""); break;
    }
}

/* Is it a key that the writer itself puts on this event? */
static bool npuprof_pftrace_is_taken_(const npuprof_image_ *im, uint32_t key, uint32_t words)
{
    for (unsigned word = 0; words >> word; word++)
        if ((words >> word & 1) && npuprof_image_text_is_(im, key, npuprof_pftrace_words_[word])) return true;
    return false;
}

/* The user's arguments. words: a bit for each word that the writer has put already; a user's key that is one
   of them becomes "user.<key>". Of a key that comes twice only the last is written, as in the JSON. */
static void npuprof_pftrace_put_args_(npuprof_pftrace_ *p, const npuprof_event_ *ev, uint32_t words)
{
    const npuprof_image_ *const im = &p->work->image;
    npuprof_args_walk_ args = npuprof_args_begin_(im, ev);
    npuprof_value_ v;
    while (npuprof_args_next_(&args, &v)) {
        if (npuprof_json_key_comes_again_(&args, v.key)) continue;
        const size_t arg = npuprof_proto_begin_(&p->event, NPUPROF_PFTRACE_ARGS_);
        if (npuprof_pftrace_is_taken_(im, v.key, words)) {
            char key[40] = "user.";
            size_t length;
            const char *const text = npuprof_image_text_(im, v.key, &length);
            memcpy(key + 5, text, length < 34 ? length : 34);
            npuprof_proto_text_(&p->event, 10, key, 5 + (length < 34 ? length : 34));
        } else {
            const uint32_t iid = npuprof_pftrace_intern_id_(p, NPUPROF_PFTRACE_KEYS_, v.key);
            npuprof_proto_uint_(&p->event, 1, iid);
        }
        npuprof_pftrace_put_value_(p, &v);
        npuprof_proto_end_(&p->event, arg);
    }
}

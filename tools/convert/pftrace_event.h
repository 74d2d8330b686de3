#pragma once   /* SPDX-License-Identifier: MIT */
#include "pftrace.h"

/* TrackEvents: begin, end, instant, counter, and their arguments. track_event.proto,
   debug_annotation.proto. */

enum { NPUPROF_PFTRACE_ARGS_ = 4, NPUPROF_PFTRACE_TYPE_ = 9, NPUPROF_PFTRACE_NAME_IID_ = 10,
       NPUPROF_PFTRACE_CATEGORY_IIDS_ = 3, NPUPROF_PFTRACE_CATEGORY_TEXT_ = 22,
       NPUPROF_PFTRACE_NAME_TEXT_ = 23,
       NPUPROF_PFTRACE_COUNTER_VALUE_ = 30, NPUPROF_PFTRACE_COUNTER_REAL_ = 44,
       NPUPROF_PFTRACE_SOURCE_IID_ = 34, NPUPROF_PFTRACE_FLOW_IDS_ = 47, NPUPROF_PFTRACE_FLOW_END_IDS_ = 48,
       NPUPROF_PFTRACE_CORRELATION_ = 52 };
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
    npuprof_pftrace_name_ *const place = &p->names[NPUPROF_FACT_COUNT_ + id];
    if (NPUPROF_FACT_COUNT_ + id >= p->name_count) return;
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

/* A span and what it submitted have one number, by which the viewer colours them. Why 35 bits: 5 bytes. */
static void npuprof_pftrace_put_correlation_(npuprof_pftrace_ *p, uint32_t tid, uint64_t position)
{
    const uint64_t number = npuprof_pftrace_number_(p, NPUPROF_PFTRACE_OF_JOBS_,
                                                    npuprof_hash_mix_(position) + tid);
    npuprof_proto_uint_(&p->event, NPUPROF_PFTRACE_CORRELATION_, number >> 29);
}

/* ---- Arguments */

/* Begins an argument whose key is a word of the library's own. */
static size_t npuprof_pftrace_begin_word_(npuprof_pftrace_ *p, unsigned word)
{
    const char *const text = npuprof_fact_user_keys_[word] + NPUPROF_FACT_USER_;
    const size_t arg = npuprof_proto_begin_(&p->event, NPUPROF_PFTRACE_ARGS_);
    npuprof_proto_uint_(&p->event, 1, npuprof_pftrace_intern_(p, NPUPROF_PFTRACE_KEYS_, word, text,
                                                              strlen(text)));
    return arg;
}

NPUPROF_ASSERT_(pftrace_value_type_without_case, NPUPROF_ARG_TYPE_COUNT_ == NPUPROF_ARG_STR_NULL_ + 1);

/* Other types are those of damaged images. */
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
    case NPUPROF_ARG_STR_NULL_:
    default: npuprof_proto_words_(m, 6, "null"); break;
    }
}

static void npuprof_pftrace_put_facts_(npuprof_pftrace_ *p, const npuprof_scene_event_ *e)
{
    for (const npuprof_value_ *fact = e->facts; fact < e->facts + e->fact_count; fact++) {
        const size_t arg = npuprof_pftrace_begin_word_(p, fact->key);
        npuprof_pftrace_put_value_(p, fact);
        npuprof_proto_end_(&p->event, arg);
    }
}

/* The user's arguments. Of a key that comes twice only the last is written, as in the JSON. */
static void npuprof_pftrace_put_args_(npuprof_pftrace_ *p, const npuprof_scene_event_ *e)
{
    const npuprof_image_ *const im = &p->work->image;
    npuprof_args_walk_ args = npuprof_args_begin_(im, e->ev);
    npuprof_value_ v;
    while (npuprof_args_next_(&args, &v)) {
        if (npuprof_scene_key_comes_again_(&args, v.key)) continue;
        const size_t arg = npuprof_proto_begin_(&p->event, NPUPROF_PFTRACE_ARGS_);
        const char *const fact = npuprof_fact_key_(e, im, v.key);
        if (fact) {
            npuprof_proto_words_(&p->event, 10, fact);
        } else {
            npuprof_proto_uint_(&p->event, 1, npuprof_pftrace_intern_id_(p, NPUPROF_PFTRACE_KEYS_, v.key));
        }
        npuprof_pftrace_put_value_(p, &v);
        npuprof_proto_end_(&p->event, arg);
    }
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../public/api.h"
#include "../format/layouts.h"
#include "../format/compact.h"
#include "arena.h"
#include "cells.h"
#include "policy.h"
#include "event.h"
#include "read.h"
#include "image.h"
#include "result.h"
#include "json_text.h"

/* npuprof_write_json() on the target. Writes the cells in their order, context by context, without ids and
   lanes. Finished spans, device spans and spans that do not nest are left out and counted. Reads cells only;
   tasks may record meanwhile. */

#ifdef NPUPROF_NO_JSON
NPUPROF_API_ npuprof_result npuprof_write_json(npuprof_sink sink)
{
    (void)sink;
    return NPUPROF_ERR_UNSUPPORTED;
}

#else /* !NPUPROF_NO_JSON */

static uint64_t npuprof_fw_field_value_(const npuprof_cell_ *field)
{
    return (uint64_t)field->high.word << 32 | field->end;
}

static void npuprof_fw_keep_text_(npuprof_fw_text_ *text, const npuprof_cell_ *field)
{
    text->text = (const char *)&field->end;
    text->length = NPUPROF_FIELD_LENGTH_(field->start);
}

static uint64_t npuprof_fw_start_of_(const npuprof_cell_ *head)
{
    return npuprof_fw_since_first_(head->high.half[0] >> NPUPROF_CONTEXT_BITS_, head->start);
}

/* When a span ends; an open one at the trace's last stamp. */
static NPUPROF_NOINLINE_ uint64_t npuprof_fw_end_of_(const npuprof_fw_out_ *o, const npuprof_cell_ *head)
{
    if (head->high.half[1] & NPUPROF_CELL_OPEN_) return o->last;
    return npuprof_fw_since_first_(head->high.half[1], head->end);
}

/* Whether a span lies inside those around it. If so, it is one of them for the next. Tasks that share a
   context may overlap. */
static bool npuprof_fw_nests_(npuprof_fw_out_ *o, uint64_t start, uint64_t end)
{
    bool nests = end >= start;
    while (o->depth && (o->around[o->depth - 1].end <= start || o->around[o->depth - 1].start > start)) {
        o->depth--;
        if (o->around[o->depth].start > start && o->around[o->depth].start < end &&
            o->around[o->depth].end > end) nests = false;
    }
    if (o->depth && o->around[o->depth - 1].end < end) nests = false;
    if (nests && o->depth < NPUPROF_FW_AROUND_) {
        o->around[o->depth].start = start;
        o->around[o->depth++].end = end;
    }
    return nests;
}

static uint32_t npuprof_fw_kind_of_(const npuprof_cell_ *head)
{
    return head->ref & 2 ? head->ref >> 8 : npuprof_fw_site_of_(head)->kind;
}

static bool npuprof_fw_is_in_context_(const npuprof_cell_ *head, uint32_t context)
{
    return npuprof_fw_is_there_(head) && npuprof_fw_context_of_(head) == context;
}

/* Of each kind, in the order of NPUPROF_KINDS: its phase, and what is shown of its value: '0' nothing;
   '1' to '3' an argument "value", whose NPUPROF_ARG_ type it is; 'm' a pool's two; '.', which is below '0',
   the id. */
#define NPUPROF_FW_PHASES_ "?XXXXXiCCCCsfbeLL"
#define NPUPROF_FW_VALUES_ "0000000123m....00"
NPUPROF_ASSERT_(a_value_for_each_kind, sizeof(NPUPROF_FW_VALUES_) - 1 == NPUPROF_KIND_COUNT);
NPUPROF_ASSERT_(a_phase_for_each_kind, sizeof(NPUPROF_FW_PHASES_) - 1 == NPUPROF_KIND_COUNT);

/* The phase of a record; 'L': left out; '?': no event. The end of an asynchronous span gets the name of the
   last beginning before it with that id. */
static NPUPROF_NOINLINE_ int npuprof_fw_phase_of_(npuprof_fw_out_ *o, const npuprof_cell_ *head,
                                                  uint32_t kind)
{
    static const char phases[] = NPUPROF_FW_PHASES_, notes[] = "MMi";
    const npuprof_cell_ *end, *found;
    const uint32_t note = kind - NPUPROF_CELL_KIND_THREAD_;
    /* Notes have the bit of the first one, events have not. */
    const bool is_note = (kind & NPUPROF_CELL_KIND_THREAD_) != 0;
    int phase = kind < sizeof phases - 1 ? phases[kind] : note < 3 ? notes[note]
        : kind >> 16 && !is_note ? 'L' : '?';
    const bool span = phase == 'X';
    if (span && !npuprof_fw_nests_(o, npuprof_fw_start_of_(head), npuprof_fw_end_of_(o, head))) phase = 'L';
    found = npuprof_fw_find_field_(head, NPUPROF_FIELD_VALUE_, &end);
    if (npuprof_kind_is_real_(kind) &&
        (!found || !npuprof_fw_is_finite_(npuprof_fw_field_value_(found)))) phase = 'L';
    if (phase != 'e') return phase;
    const uint64_t id = npuprof_fw_field_value_(found);
    phase = 'L';
    for NPUPROF_FW_EACH_RECORD_(at, npuprof_fw_cells_end_(npuprof_fw_arena_)) {
        if (at == head) break;
        if ((at->ref & ~(uint32_t)1) != NPUPROF_FW_REF_OF_KIND_(NPUPROF_KIND_ASYNC_BEGIN)) continue;
        if (npuprof_fw_field_value_(npuprof_fw_find_field_(at, NPUPROF_FIELD_VALUE_, &end)) != id) continue;
        found = npuprof_fw_find_field_(at, NPUPROF_FIELD_NAME_, &end);
        npuprof_fw_keep_text_(&o->word[0], found);
        phase = 'e';
    }
    return phase;
}

/* The fields of a record: its own words and values into *o, the user's and a counter's as arguments. comma:
   what comes before the next argument; returned as it is behind them. */
static int npuprof_fw_put_fields_(npuprof_fw_out_ *o, const npuprof_cell_ *head, uint32_t kind, int comma)
{
    static const char own_keys[] = "used\0     allocated", values[] = NPUPROF_FW_VALUES_;
    const char shown = kind < sizeof values - 1 ? values[kind] : '0';
    const bool memory = shown == 'm';
    const npuprof_cell_ *end;
    const npuprof_cell_ *f = npuprof_fw_next_field_(head, true, &end);
    for (; f; f = npuprof_fw_next_field_(f, false, &end)) {
        const char *key = (const char *)npuprof_fw_address_of_(f->ref);
        uint32_t type = f->start & 0xFF;
        const uint32_t own = type - NPUPROF_FIELD_NAME_, value = type - NPUPROF_FIELD_VALUE_;
        const uint32_t length = NPUPROF_FIELD_LENGTH_(f->start);
        /* Why: a memory's name is that of its device, its second word the tag. */
        if (own - memory < 2u - memory) npuprof_fw_keep_text_(&o->word[own - memory], f);
        if (value == 0) o->number[NPUPROF_FW_AT_(NPUPROF_FW_VALUE_)] = npuprof_fw_field_value_(f);
        if (type == NPUPROF_FIELD_RESULT_) o->left_out++;
        if (own < 32) {
            if (shown <= '0' || value > (uint32_t)memory) continue;
            key = memory ? own_keys + value * 10 : "value";
            type = memory ? (uint32_t)NPUPROF_ARG_UINT : (uint32_t)shown - '0';
        }
        npuprof_fw_put_char_(o, comma);
        comma = ',';
        npuprof_fw_put_text_(o, key, UINT32_MAX);
        npuprof_fw_put_char_(o, ':');
        if (type == NPUPROF_ARG_STR_NULL_) npuprof_fw_put_(o, "null");
        else if (type >= NPUPROF_ARG_STR) npuprof_fw_put_text_(o, (const char *)&f->end, length);
        else npuprof_fw_put_value_(npuprof_fw_field_value_(f), o, type);
    }
    return comma;
}

/* Whether the RESULT at `at` is of the span at `head`: its first field says so. */
static bool npuprof_fw_is_result_of_(const npuprof_cell_ *at, const npuprof_cell_ *head)
{
    return at->ref == (NPUPROF_FW_REF_OF_KIND_(NPUPROF_CELL_KIND_RESULT_) | 1) &&
           npuprof_fw_is_of_(at, at[1].end, head);
}

/* The next record behind `at` with results of the span at `head`, or NULL. The first one: `at` is the head.
   */
static const npuprof_cell_ *npuprof_fw_next_result_(const npuprof_cell_ *at, const npuprof_cell_ *head)
{
    const npuprof_cell_ *const end = npuprof_fw_cells_end_(npuprof_fw_arena_);
    bool is_first = at == head;
    do {
        at = is_first ? npuprof_fw_first_after_(at) : npuprof_fw_next_record_(at, end);
        is_first = false;
    } while (at < end && !npuprof_fw_is_result_of_(at, head));
    return at < end ? at : NULL;
}

/* All arguments of a record; those of a span may go on in RESULT records. Whether there is one. */
static bool npuprof_fw_put_args_(npuprof_fw_out_ *o, const npuprof_cell_ *head, uint32_t kind)
{
    int comma = '{';
    if (o->phase == 'X' && head->high.half[1] & NPUPROF_CELL_OPEN_) {
        npuprof_fw_put_(o, "{'unfinished':true");
        comma = ',';
    }
    const npuprof_cell_ *at = head;
    do comma = npuprof_fw_put_fields_(o, at, kind, comma);
    while (o->phase == 'X' && (at = npuprof_fw_next_result_(at, head)) != NULL);
    return comma == ',';
}

static void npuprof_fw_put_length_(npuprof_fw_out_ *o, const npuprof_cell_ *head)
{
    const uint64_t end = npuprof_fw_ticks_to_ns_(npuprof_fw_end_of_(o, head));
    o->number[NPUPROF_FW_AT_(NPUPROF_FW_LENGTH_)] = end - o->number[NPUPROF_FW_AT_(NPUPROF_FW_START_)];
    /* Why: viewers do not show an event without a length. The host does the same. */
    if (!o->number[NPUPROF_FW_AT_(NPUPROF_FW_LENGTH_)] && head->high.half[1] & NPUPROF_CELL_OPEN_)
        o->number[NPUPROF_FW_AT_(NPUPROF_FW_LENGTH_)] = 1000;
    npuprof_fw_put_(o, ",'dur':" NPUPROF_FW_LENGTH_);
}

static NPUPROF_NOINLINE_ void npuprof_fw_put_json_record_(npuprof_fw_out_ *o, const npuprof_cell_ *head)
{
    static const npuprof_site_ none = { "", NULL, 0, { 0, 0, 0 } };
    const npuprof_site_ *const site = head->ref & 2 ? &none : npuprof_fw_site_of_(head);
    const uint32_t kind = npuprof_fw_kind_of_(head);
    o->word[0].text = site->name;
    o->word[1].text = site->category;
    o->word[0].length = o->word[1].length = UINT32_MAX;
    o->phase = npuprof_fw_phase_of_(o, head, kind);
    o->left_out += o->phase == 'L';
    if (o->phase == 'L' || o->phase == '?') return;
    npuprof_fw_put_(o, ",\n{'args':");
    if (!npuprof_fw_put_args_(o, head, kind)) npuprof_fw_put_char_(o, '{');
    o->number[NPUPROF_FW_AT_(NPUPROF_FW_START_)] = npuprof_fw_ticks_to_ns_(npuprof_fw_start_of_(head));
    npuprof_fw_put_(o, "},'ph':'" NPUPROF_FW_PHASE_ "','tid':" NPUPROF_FW_TRACK_ ",'ts':" NPUPROF_FW_START_
                       ",'name':" NPUPROF_FW_NAME_);
    if (kind - NPUPROF_KIND_ASYNC_BEGIN < 2) npuprof_fw_put_(o, ",'cat':'async'");
    else if (o->word[1].text && o->phase != 'C')
        npuprof_fw_put_(o, ",'cat':" NPUPROF_FW_CATEGORY_);
    if (o->phase == 'X') npuprof_fw_put_length_(o, head);
    if (o->phase == 'i') npuprof_fw_put_(o, ",'s':'t'");
    if (o->phase == 'f') npuprof_fw_put_(o, ",'bp':'e'");
    if (kind - NPUPROF_KIND_FLOW_OUT < 4) npuprof_fw_put_(o, ",'id':" NPUPROF_FW_VALUE_);
    npuprof_fw_put_(o, ",'pid':1}");
}

/* The records of a context, and a name for it if they give none. */
static void npuprof_fw_put_context_(npuprof_fw_out_ *o, uint32_t context)
{
    const npuprof_cell_ *const end = npuprof_fw_cells_end_(npuprof_fw_arena_);
    bool seen = false, named = false;
    o->depth = 0;
    o->number[NPUPROF_FW_AT_(NPUPROF_FW_TRACK_)] = context + 1;
    for NPUPROF_FW_EACH_RECORD_(at, end) {
        if (!npuprof_fw_is_in_context_(at, context)) continue;
        if (npuprof_fw_is_event_(at)) seen = true;
        else named = named || npuprof_fw_kind_of_(at) == NPUPROF_CELL_KIND_THREAD_;
        npuprof_fw_put_json_record_(o, at);
    }
    if (!seen || named) return;
    npuprof_fw_put_(o, ",\n{'ph':'M','name':'thread_name','pid':1,'tid':" NPUPROF_FW_TRACK_ ",'args':{'name':"
                       "'thread " NPUPROF_FW_TRACK_ "'}}");
}

/* Counts the events and finds the last stamp. */
static uint32_t npuprof_fw_survey_(npuprof_fw_out_ *o)
{
    const npuprof_cell_ *const end = npuprof_fw_cells_end_(npuprof_fw_arena_);
    uint32_t recorded = 0;
    o->last = 0;
    for NPUPROF_FW_EACH_RECORD_(at, end) {
        if (!npuprof_fw_is_event_(at)) continue;
        uint64_t stamp = npuprof_fw_start_of_(at);
        recorded++;
        if (stamp > o->last) o->last = stamp;
        if (!npuprof_kind_nests_(npuprof_fw_kind_of_(at))) continue;
        stamp = npuprof_fw_end_of_(o, at);
        if (stamp > o->last) o->last = stamp;
    }
    return recorded;
}

NPUPROF_API_ npuprof_result npuprof_write_json(npuprof_sink sink)
{
    npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_fw_out_ o;
    if (!sink.write || !c->cells) return NPUPROF_ERR_ARGUMENT;
    if (!NPUPROF_FW_CAN_WRITE_) return NPUPROF_ERR_UNSUPPORTED;
    if (sizeof(npuprof_fw_rate_) < 8 && c->hz_high) return NPUPROF_ERR_UNSUPPORTED;
    if (!npuprof_fw_hold_(c)) return NPUPROF_ERR_BUSY;
    npuprof_fw_find_zero_(c);
    o.sink.write = sink.write;
    o.sink.user = sink.user;
    o.error = 0;
    o.left_out = 0;
    npuprof_fw_put_(&o, "{'traceEvents':[\n{'ph':'M','name':'process_name','pid':1,'tid':1,"
                        "'args':{'name':'firmware'}}");
    const uint32_t recorded = npuprof_fw_survey_(&o);
    for (uint32_t context = 0; context < 1u << NPUPROF_CONTEXT_BITS_; context++)
        npuprof_fw_put_context_(&o, context);
    o.number[NPUPROF_FW_AT_(NPUPROF_FW_HZ_)] = npuprof_fw_rate_of_(c);
    o.number[NPUPROF_FW_AT_(NPUPROF_FW_LOST_EVENTS_)] = npuprof_fw_lost_of_(c, recorded);
    o.number[NPUPROF_FW_AT_(NPUPROF_FW_LOST_NOTES_)] = c->lost_notes;
    o.number[NPUPROF_FW_AT_(NPUPROF_FW_RECORDED_)] = recorded;
    o.number[NPUPROF_FW_AT_(NPUPROF_FW_LEFT_OUT_)] = o.left_out;
    npuprof_fw_put_(&o, "\n],\n'displayTimeUnit':'ns','metadata':{'npuprof':{"
                        "'version':'" NPUPROF_VERSION_STRING "','host':'target','program':'firmware','pid':1,"
                        "'start_unix_ns':0,'clock':{'source':'user','hz':" NPUPROF_FW_HZ_ "},"
                        "'recorded':" NPUPROF_FW_RECORDED_ ",'left_out':" NPUPROF_FW_LEFT_OUT_ ","
                        "'lost':{'" NPUPROF_FW_CAUSE_ "':" NPUPROF_FW_LOST_EVENTS_
                        ",'notes':" NPUPROF_FW_LOST_NOTES_ "}}}}\n");
    npuprof_fw_let_go_(c);
    return o.error ? NPUPROF_ERR_IO : NPUPROF_OK;
}
#endif /* NPUPROF_NO_JSON */

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../numbers/text.h"
#include "../format/layouts.h"
#include "../format/compact.h"
#include "record.h"
#include "event.h"
#include "control.h"
#include "image.h"

#ifdef NPUPROF_NO_JSON
NPUPROF_API_ npuprof_result npuprof_write_json(npuprof_sink sink)
{
    (void)sink;
    return NPUPROF_ERR_UNSUPPORTED;
}
#else
/* What the template shows. Numbers: begin and length in ns, track, id; at the end what the metadata say; words: name and category, NULL:
   none. */
enum { NPUPROF_FW_AROUND_ = 16 };
typedef struct npuprof_out_ {
    uint64_t number[7];
    struct { const char *text; uint32_t length; } word[2];
    npuprof_sink sink;
    struct { uint64_t start, end; } around[NPUPROF_FW_AROUND_];   /* the spans that are open where the next one begins; deeper ones are not compared */
    uint64_t last;                 /* stamp of the trace, in ticks since its first */
    uint32_t depth, left_out;
    int error, phase;
} npuprof_out_;

static NPUPROF_NOINLINE_ void npuprof_fw_put_bytes_(npuprof_out_ *o, const char *bytes, size_t count)
{
    if (!o->error) o->error = o->sink.write(o->sink.user, bytes, count);
}
static NPUPROF_NOINLINE_ void npuprof_fw_put_char_(npuprof_out_ *o, int c)
{
    const char byte = (char)c;
    npuprof_fw_put_bytes_(o, &byte, 1);
}
/* A quoted text, up to its NUL or its length; bad bytes as U+FFFD. */
static NPUPROF_NOINLINE_ void npuprof_put_text_(npuprof_out_ *o, const char *text, uint32_t length)
{
    npuprof_fw_put_char_(o, '"');
    for (uint32_t n; length && *text; text += n, length -= n) {
        const int c = (uint8_t)*text;
        n = (uint32_t)npuprof_utf8_length_((const uint8_t *)text, length);
        if (c < 32) {
            npuprof_fw_put_bytes_(o, "\\u00", 4);
            npuprof_fw_put_char_(o, '0' + (c >> 4));
            npuprof_fw_put_char_(o, "0123456789abcdef"[c & 15]);
            continue;
        }
        if (c == '"' || c == '\\') npuprof_fw_put_char_(o, '\\');
        npuprof_fw_put_bytes_(o, n ? text : "\xEF\xBF\xBD", n ? (size_t)n : 3);
        n += !n;
    }
    npuprof_fw_put_char_(o, '"');
}
/* point: so many of the digits stand behind a point; 0: none. */
static NPUPROF_NOINLINE_ void npuprof_fw_put_number_(uint64_t v, npuprof_out_ *o, int point)
{
    char digits[24], *p = digits + sizeof digits;
    do {
        const uint32_t low = (uint32_t)v;
        v = npuprof_fw_divide_(v, 10, 0);
        *--p = (char)('0' + low - (uint32_t)v * 10);
        if (!--point) *--p = '.';
    } while (v || point >= 0);
    npuprof_fw_put_bytes_(o, p, (size_t)(digits + sizeof digits - p));
}
static uint64_t npuprof_fw_field_value_(const npuprof_cell_ *field) { return (uint64_t)field->high.word << 32 | field->end; }
/* v * 2^twos, v below 2^61, to 15 digits. */
static NPUPROF_NOINLINE_ void npuprof_fw_put_scaled_(uint64_t v, npuprof_out_ *o, int twos)
{
    enum { TOP = 28 };                                       /* of the upper word: 2^60 */
    int tens = 0;
    uint32_t digit = 0;
    for (; twos > 0; twos--, v <<= 1)
        if (v >> 32 >> TOP) {
            v = npuprof_fw_divide_(v + 5, 10, 0);
            tens++;
        }
    for (; v && twos < 0; twos++) {
        for (; !(v >> 32 >> TOP); tens--) {
            uint64_t twice = v << 1;                         /* Why so: a product is a call into the compiler's library */
            v = (v << 3) + NPUPROF_LOAD_(&twice);
        }
        v = (v + (v >> 1 & 1)) >> 1;                         /* a half to the even one */
    }
    for (uint64_t less; v >= UINT64_C(1000000000000000); v = less, tens++) {
        less = npuprof_fw_divide_(v, 10, 0);
        digit = (uint32_t)v - (uint32_t)less * 10;
    }
    v += digit >= 5 && tens < 294;                           /* Why not there: the largest one would be beyond what there is */
    for (uint64_t less; v && tens; v = less, tens++) {
        less = npuprof_fw_divide_(v, 10, 0);
        if ((uint32_t)v != (uint32_t)less * 10) break;
    }
    npuprof_fw_put_number_(v, o, tens < 0 && tens >= -18 ? -tens : 0);
    if (tens > 0 || tens < -18) {
        npuprof_fw_put_bytes_(o, tens < 0 ? "e-" : "e+", 2);
        npuprof_fw_put_number_((uint64_t)(tens < 0 ? -tens : tens), o, 0);
    }
}
static void npuprof_put_(npuprof_out_ *o, const char *text);
static bool npuprof_fw_is_finite_(uint64_t v) { return (~(uint32_t)(v >> 32) & 0x7FF00000u) != 0; }
static NPUPROF_NOINLINE_ void npuprof_put_value_(uint64_t v, npuprof_out_ *o, uint32_t type)
{
    const bool minus = (type & 1) && v >> 63;                /* NPUPROF_ARG_INT and _REAL */
    if (type == NPUPROF_ARG_REAL && !npuprof_fw_is_finite_(v)) {
        npuprof_put_(o, v << 12 ? "'NaN'" : minus ? "'-Infinity'" : "'Infinity'");
        return;
    }
    if (minus) npuprof_fw_put_char_(o, '-');
    if (type == NPUPROF_ARG_REAL) {
        const int exponent = (int)(v >> 52) & 0x7FF;
        v &= 0xFFFFFFFFFFFFFu;
        npuprof_fw_put_scaled_(exponent ? v | 0x10000000000000u : v, o, (exponent ? exponent : 1) - 1075);
    } else if (type == NPUPROF_ARG_UINT && v >> 63) {        /* Why so: viewers take no more than 63 bits for an integer */
        if (o->phase == 'C') {
            npuprof_fw_put_scaled_((v >> 4) + (v >> 3 & 1), o, 4);
        } else {
            npuprof_fw_put_char_(o, '"');
            npuprof_fw_put_number_(v, o, 0);
            npuprof_fw_put_char_(o, '"');
        }
    } else if (type == NPUPROF_ARG_BOOL) {
        npuprof_put_(o, v ? "true" : "false");
    } else {
        npuprof_fw_put_number_(minus ? 0 - v : v, o, 0);
    }
}
/* Writes a template: ' is a quotation mark, \1 and \2 are the words, \3 to \11 the numbers, the first two with three decimals, @ is the
   phase. From ^ to the next ^ it is written only for the phases that stand before the comma, or, with \2 there, if there is that
   word. */
static NPUPROF_NOINLINE_ void npuprof_put_(npuprof_out_ *o, const char *text)
{
    for (int c; (c = *text) != 0; text++) {
        if (c == '^') {
            bool shown = text[1] == ',';
            while ((c = *++text) != ',')
                if (c == o->phase || (c == 2 && o->word[1].text)) shown = true;
            if (!shown) {
                while (text[1] != '^') text++;
                continue;
            }
        }
        if (c < 3) npuprof_put_text_(o, o->word[c - 1].text, o->word[c - 1].length);
        else if (c < 10) npuprof_fw_put_number_(o->number[c - 3], o, c < 5 ? 3 : 0);
        else npuprof_fw_put_char_(o, c == '\'' ? '"' : c == '@' ? o->phase : c);
    }
}
/* Ticks since the trace began. */
static NPUPROF_NOINLINE_ uint64_t npuprof_fw_since_first_(uint32_t high, uint32_t low)
{
    return (((uint64_t)high << 32 | low) - npuprof_fw_first_stamp_(npuprof_fw_arena_)) & NPUPROF_BITS_MASK_(NPUPROF_CELL_STAMP_BITS_ - NPUPROF_CONTEXT_BITS_);
}
static uint64_t npuprof_fw_start_of_(const npuprof_cell_ *head)
{
    return npuprof_fw_since_first_(head->high.half[0] >> NPUPROF_CONTEXT_BITS_, head->start);
}
/* When the span of a cell ends; an open one at the trace's last stamp. */
static uint64_t npuprof_fw_end_of_(const npuprof_out_ *o, const npuprof_cell_ *head)
{
    return head->high.half[1] & NPUPROF_CELL_OPEN_ ? o->last : npuprof_fw_since_first_(head->high.half[1], head->end);
}
/* Does a span lie in those around it? Then it is one of them for the next. Tasks that share a context may overlap. */
static bool npuprof_fw_nests_(npuprof_out_ *o, uint64_t start, uint64_t end)
{
    bool nests = end >= start;
    while (o->depth && (o->around[o->depth - 1].end <= start || o->around[o->depth - 1].start > start)) {
        o->depth--;
        if (o->around[o->depth].start > start && o->around[o->depth].start < end && o->around[o->depth].end > end) nests = false;
    }
    if (o->depth && o->around[o->depth - 1].end < end) nests = false;
    if (nests && o->depth < NPUPROF_FW_AROUND_) {
        o->around[o->depth].start = start;
        o->around[o->depth++].end = end;
    }
    return nests;
}
static uint32_t npuprof_fw_kind_of_(const npuprof_cell_ *head) { return head->ref & 2 ? head->ref >> 8 : npuprof_fw_site_of_(head)->kind; }
static bool npuprof_fw_is_in_context_(const npuprof_cell_ *head, uint32_t context)
{
    return head->ref && (head->high.half[0] & (((uint32_t)1 << NPUPROF_CONTEXT_BITS_) - 1)) == context;
}
/* The phase of a record; 'L': left out. */
static int npuprof_fw_phase_of_(npuprof_out_ *o, const npuprof_cell_ *head, uint32_t kind)
{
    static const char phases[] = "?XXXXXiCCCCsfbeLL", notes[] = "MMi";
    const npuprof_cell_ *end, *found;
    int phase = kind < sizeof phases - 1 ? phases[kind] : kind - NPUPROF_CELL_KIND_THREAD_ < 3 ? notes[kind - NPUPROF_CELL_KIND_THREAD_] : '?';
    if (phase == 'X' && !npuprof_fw_nests_(o, npuprof_fw_start_of_(head), npuprof_fw_end_of_(o, head))) phase = 'L';
    found = npuprof_fw_find_field_(head, NPUPROF_FIELD_VALUE_, &end);
    if (kind == NPUPROF_KIND_COUNTER_REAL && (!found || !npuprof_fw_is_finite_(npuprof_fw_field_value_(found)))) phase = 'L';
    if (phase == 'e') {
        /* It has the name of the last beginning before it of that id. */
        const uint64_t id = npuprof_fw_field_value_(found);
        phase = 'L';
        for (const npuprof_cell_ *at = npuprof_fw_cells_(npuprof_fw_arena_); at < head; at = npuprof_fw_after_record_(at)) {
            if ((at->ref & ~(uint32_t)1) != NPUPROF_FW_REF_OF_KIND_(NPUPROF_KIND_ASYNC_BEGIN)) continue;
            if (npuprof_fw_field_value_(npuprof_fw_find_field_(at, NPUPROF_FIELD_VALUE_, &end)) != id) continue;
            found = npuprof_fw_find_field_(at, NPUPROF_FIELD_NAME_, &end);
            o->word[0].text = (const char *)&found->end;
            o->word[0].length = found->start >> 8 & 0x7FFFFF;
            phase = 'e';
        }
    }
    return phase;
}
/* The fields of a record: its own words and values into *o, the user's as arguments. Is there an argument? */
static bool npuprof_fw_put_fields_(npuprof_out_ *o, const npuprof_cell_ *head, uint32_t kind)
{
    static const char own_keys[] = "used\0     allocated";
    const bool memory = kind == NPUPROF_KIND_MEMORY;
    const npuprof_cell_ *end;
    int comma = '{';
    if (o->phase == 'X' && head->high.half[1] & NPUPROF_CELL_OPEN_) {
        npuprof_put_(o, "{'unfinished':true");
        comma = ',';
    }
    for (const npuprof_cell_ *f = npuprof_fw_next_field_(head, true, &end); f; f = npuprof_fw_next_field_(f, false, &end)) {
        const char *key = (const char *)npuprof_fw_address_of_(f->ref);
        uint32_t type = f->start & 0xFF;
        const uint32_t own = type - NPUPROF_FIELD_NAME_, value = type - NPUPROF_FIELD_VALUE_, length = f->start >> 8 & 0x7FFFFF;
        if (own == memory || (own == 1 && !memory)) {        /* Why: a memory's name is that of its device, its second word the tag */
            o->word[own ^ memory].text = (const char *)&f->end;
            o->word[own ^ memory].length = length;
        }
        if (value == 0) o->number[3] = npuprof_fw_field_value_(f);
        if (type == NPUPROF_FIELD_RESULT_) o->left_out++;
        if (own < 32) {
            if (o->phase != 'C' || value > (uint32_t)memory) continue;
            key = memory ? own_keys + value * 10 : "value";
            type = memory ? (uint32_t)NPUPROF_ARG_UINT : kind - NPUPROF_KIND_COUNTER_INT + NPUPROF_ARG_INT;
        }
        npuprof_fw_put_char_(o, comma);
        comma = ',';
        npuprof_put_text_(o, key, UINT32_MAX);
        npuprof_fw_put_char_(o, ':');
        if (type == NPUPROF_ARG_STR_NULL_) npuprof_put_(o, "null");
        else if (type >= NPUPROF_ARG_STR) npuprof_put_text_(o, (const char *)&f->end, length);
        else npuprof_put_value_(npuprof_fw_field_value_(f), o, type);
    }
    return comma == ',';
}
static NPUPROF_NOINLINE_ void npuprof_fw_put_json_record_(npuprof_out_ *o, const npuprof_cell_ *head)
{
    static const npuprof_site_ none = { "", NULL, 0 };
    const char *rest = "{},'ph':'@','tid':\5,'ts':\3,'name':\1^\2,'cat':\2^X,'dur':\4^i,'s':'t'^f,'bp':'e'^sfbe,'id':\6^,'pid':1}";
    const npuprof_site_ *const site = head->ref & 2 ? &none : npuprof_fw_site_of_(head);
    const uint32_t kind = npuprof_fw_kind_of_(head);
    o->word[0].text = site->name;
    o->word[1].text = site->category;
    o->word[0].length = o->word[1].length = UINT32_MAX;
    o->phase = npuprof_fw_phase_of_(o, head, kind);
    o->left_out += o->phase == 'L';
    if (o->phase == 'L' || o->phase == '?') return;
    npuprof_put_(o, ",\n{'args':");
    if (npuprof_fw_put_fields_(o, head, kind)) rest++;
    if ((uint32_t)o->phase - 'b' < 4) {
        o->word[1].text = "async";
        o->word[1].length = 5;
    }
    if (o->phase == 'C') o->word[1].text = NULL;
    o->number[0] = npuprof_fw_ticks_to_ns_(npuprof_fw_start_of_(head));
    o->number[1] = npuprof_fw_ticks_to_ns_(npuprof_fw_end_of_(o, head)) - o->number[0];
    if (!o->number[1] && head->high.half[1] & NPUPROF_CELL_OPEN_) o->number[1] = 1000;     /* Why: viewers do not show it else; as on the host */
    npuprof_put_(o, rest);
}
/* The records of a context, and a name for it, if they do not say one. */
static void npuprof_fw_put_context_(npuprof_out_ *o, uint32_t context)
{
    const npuprof_cell_ *const end = npuprof_fw_cells_end_(npuprof_fw_arena_);
    bool seen = false, named = false;
    o->depth = 0;
    o->number[2] = context + 1;
    for (const npuprof_cell_ *at = npuprof_fw_cells_(npuprof_fw_arena_); at < end; at = npuprof_fw_after_record_(at)) {
        if (!npuprof_fw_is_in_context_(at, context)) continue;
        if (npuprof_fw_is_event_(at)) seen = true;
        else named = named || npuprof_fw_kind_of_(at) == NPUPROF_CELL_KIND_THREAD_;
        npuprof_fw_put_json_record_(o, at);
    }
    if (seen && !named) npuprof_put_(o, ",\n{'ph':'M','name':'thread_name','pid':1,'tid':\5,'args':{'name':'thread \5'}}");
}
/* Counts the events, and finds the last stamp. */
static uint32_t npuprof_survey_(npuprof_out_ *o)
{
    const npuprof_cell_ *const end = npuprof_fw_cells_end_(npuprof_fw_arena_);
    uint32_t recorded = 0;
    o->last = 0;
    for (const npuprof_cell_ *at = npuprof_fw_cells_(npuprof_fw_arena_); at < end; at = npuprof_fw_after_record_(at)) {
        if (!npuprof_fw_is_event_(at)) continue;
        uint64_t stamp = npuprof_fw_start_of_(at);
        recorded++;
        if (stamp > o->last) o->last = stamp;
        if (npuprof_fw_kind_of_(at) > NPUPROF_KIND_OPERATOR) continue;
        stamp = npuprof_fw_end_of_(o, at);
        if (stamp > o->last) o->last = stamp;
    }
    return recorded;
}

NPUPROF_API_ npuprof_result npuprof_write_json(npuprof_sink sink)
{
    const npuprof_compact_header_ *const c = npuprof_fw_arena_;
    npuprof_out_ o;
    if (!sink.write || !c->cells) return NPUPROF_ERR_ARGUMENT;
    if (sizeof(npuprof_fw_rate_) < 8 && c->hz_high) return NPUPROF_ERR_UNSUPPORTED;
    o.sink.write = sink.write;
    o.sink.user = sink.user;
    o.error = 0;
    o.left_out = 0;
    npuprof_put_(&o, "{'traceEvents':[\n{'ph':'M','name':'process_name','pid':1,'tid':1,'args':{'name':'firmware'}}");
    const uint32_t recorded = npuprof_survey_(&o);
    for (uint32_t context = 0; context < 1u << NPUPROF_CONTEXT_BITS_; context++) npuprof_fw_put_context_(&o, context);
    o.number[2] = npuprof_fw_rate_of_(c);
    o.number[3] = c->lost;
    o.number[4] = c->lost_notes;
    o.number[5] = recorded;
    o.number[6] = o.left_out;
    npuprof_put_(&o, "\n],\n'displayTimeUnit':'ns','metadata':{'npuprof':{'version':'" NPUPROF_VERSION_STRING
                     "','host':'target','program':'firmware','pid':1,'start_unix_ns':0,'clock':{'source':'user','hz':\5},'recorded':\10,'left_out':\11,"
                     "'lost':{'arena_full':\6,'notes':\7}}}}\n");
    return o.error ? NPUPROF_ERR_IO : NPUPROF_OK;
}
#endif

/* libnpuprof-columns: reads npuprof's own JSON and CSV, and runs the loops over all spans that a report of a
   large trace is made of. `make tools` builds it.
   SPDX-License-Identifier: MIT

   npuprof/loops/native.py is its only user and finds the functions by their names: none has a prototype. The
   loops come from npuprof/loops/kernels.py, which runs itself where this is not built. Columns are arrays
   with one element a span. Rows count from 0; -1 is none. Functions that need memory return -1 without it. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { DRAM_BASE, PE_INDEX, EXECUTION_INDEX, INSTRUCTION_INDEX, OPERATOR_INDEX, INDEXES };
#define EMPTY INT64_MIN                 /* an index that is not there */

/* ---- What the loops sort */

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void columns_sort(int64_t *values, int64_t first, int64_t end)
{
    qsort(values + first, (size_t)(end - first), sizeof *values, by_value);
}

static int by_start(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return x[0] != y[0] ? (x[0] < y[0] ? -1 : 1) : x[1] < y[1] ? -1 : x[1] > y[1];
}

static void columns_sort_pairs(int64_t *pairs, int64_t n)
{
    qsort(pairs, (size_t)n, 2 * sizeof *pairs, by_start);
}

static const int64_t *sort_start, *sort_dur;
static int by_moment(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    if (sort_start[x] != sort_start[y]) return sort_start[x] < sort_start[y] ? -1 : 1;
    if (sort_dur[x] != sort_dur[y]) return sort_dur[x] > sort_dur[y] ? -1 : 1;
    return x < y ? -1 : 1;
}

static void columns_sort_rows(int32_t *rows, int64_t first, int64_t end, const int64_t *start,
                              const int64_t *dur)
{
    sort_start = start;
    sort_dur = dur;
    qsort(rows + first, (size_t)(end - first), sizeof *rows, by_moment);
}

#include "columns_loops.h"              /* of npuprof/loops/kernels.py, and FORM */

/* ---- Texts as small numbers */

typedef struct entry { uint64_t hash; size_t at, length; } entry;
typedef struct texts {
    char *bytes;
    size_t used, room;
    entry *all;
    uint32_t count, limit, *slots, mask;
} texts;
typedef struct reader { texts labels, ids; } reader;

static uint64_t hash_of(const char *c, size_t length)
{
    uint64_t h = length;
    for (; length >= 8; c += 8, length -= 8) {
        uint64_t word;
        memcpy(&word, c, 8);
        h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        h ^= h >> 29;
    }
    while (length--) h = (h ^ (unsigned char)*c++) * UINT64_C(0x100000001B3);
    h *= UINT64_C(0xD6E8FEB86659FD93);
    return h ^ h >> 32;
}

static bool more_slots(texts *t)
{
    const uint32_t mask = t->mask ? t->mask * 2 + 1 : 1023;
    uint32_t *slots = calloc((size_t)mask + 1, sizeof *slots);
    if (!slots) return false;
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t at = (uint32_t)t->all[i].hash & mask;
        while (slots[at]) at = (at + 1) & mask;
        slots[at] = i + 1;
    }
    free(t->slots);
    t->slots = slots;
    t->mask = mask;
    return true;
}

/* Its number, a new one if it was never seen; UINT32_MAX without memory. */
static uint32_t number_of(texts *t, const char *c, size_t length)
{
    const uint64_t hash = hash_of(c, length);
    if ((!t->mask || t->count >= t->mask / 2) && !more_slots(t)) return UINT32_MAX;
    uint32_t at = (uint32_t)hash & t->mask;
    for (; t->slots[at]; at = (at + 1) & t->mask) {
        const entry *known = &t->all[t->slots[at] - 1];
        if (known->hash == hash && known->length == length && memcmp(t->bytes + known->at, c, length) == 0)
            return t->slots[at] - 1;
    }
    if (t->count == t->limit) {
        entry *all = realloc(t->all, ((size_t)t->limit * 2 + 64) * sizeof *all);
        if (!all) return UINT32_MAX;
        t->all = all;
        t->limit = t->limit * 2 + 64;
    }
    if (t->room - t->used < length) {
        char *bytes = realloc(t->bytes, t->room * 2 + length + 4096);
        if (!bytes) return UINT32_MAX;
        t->bytes = bytes;
        t->room = t->room * 2 + length + 4096;
    }
    memcpy(t->bytes + t->used, c, length);
    t->all[t->count] = (entry){ hash, t->used, length };
    t->used += length;
    t->slots[at] = t->count + 1;
    return t->count++;
}

void columns_close(reader *r)
{
    texts *const both[] = { &r->labels, &r->ids };
    for (int i = 0; i < 2; i++) {
        free(both[i]->bytes);
        free(both[i]->all);
        free(both[i]->slots);
    }
    free(r);
}

const char *columns_text(const reader *r, int which, uint32_t number, size_t *length)
{
    const texts *t = which ? &r->ids : &r->labels;
    if (number >= t->count) return NULL;
    *length = t->all[number].length;
    return t->bytes + t->all[number].at;
}

/* ---- Lines of npuprof's own JSON and CSV */

typedef struct block {                  /* room for one element a line, each */
    int64_t *start, *dur, *index[INDEXES];
    uint32_t *label, *ids;
    uint8_t *kind, *flags;
    uint32_t *given;                    /* rows that state their ids, */
    uint8_t *given_ids;                 /* 16 and 8 bytes each */
    uint64_t *others;                   /* offset and length of lines that are no spans */
    uint8_t *trace;                     /* CSV: 16 bytes each */
    uint64_t *span, *parent;            /* CSV */
    /* indexes: bit set of those that occur; rich: spans with arguments; asked: bit set of ASKED, trace.py */
    uint32_t given_count, others_count, indexes, rich, asked;
} block;

/* NULL: no memory, or built from another version. */
reader *columns_open(size_t form) { return form == FORM ? calloc(1, sizeof(reader)) : NULL; }

/* Each of these returns the place behind what it reads, or NULL. */
static const char *word(const char *c, const char *end, const char *wanted, size_t length)
{
    return (size_t)(end - c) >= length && memcmp(c, wanted, length) == 0 ? c + length : NULL;
}

#define WORD(c, end, literal) word(c, end, literal, sizeof literal - 1)
static const char *string(const char *c, const char *end)
{
    if (c >= end || *c++ != '"') return NULL;
    for (; c < end; c++) {
        if (*c == '"') return c + 1;
        if (*c == '\\' && ++c >= end) return NULL;
    }
    return NULL;
}

static const char *digits(const char *c, const char *end)
{
    const char *from = c;
    while (c < end && *c >= '0' && *c <= '9') c++;
    return c > from ? c : NULL;
}

/* Why at most 15 digits: sums of two stamps fit 64 bits then. */
static const char *thousandths(const char *c, const char *end, int64_t *value)
{
    const char *point = digits(c, end);
    if (!point || point - c > 15 || end - point < 4 || *point != '.') return NULL;
    uint64_t v = 0;
    for (; c < point; c++) v = v * 10 + (uint64_t)(*c - '0');
    for (c++; c < point + 4; c++) {
        if (*c < '0' || *c > '9') return NULL;
        v = v * 10 + (uint64_t)(*c - '0');
    }
    *value = (int64_t)v;
    return c;
}

/* An integer that ends at `end`; false: it is none, or more than 63 bits. */
static bool integer(const char *c, const char *end, int64_t *value)
{
    const bool negative = c < end && *c == '-';
    uint64_t v = 0;
    c += negative;
    if (c >= end) return false;
    for (; c < end; c++) {
        const unsigned digit = (unsigned)(unsigned char)*c - '0';
        if (digit > 9 || v > ((uint64_t)INT64_MAX - digit) / 10) return false;
        v = v * 10 + digit;
    }
    *value = negative ? -(int64_t)v : (int64_t)v;
    return true;
}

static int nibble(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool hex(const char *c, size_t bytes, uint8_t *out)
{
    for (size_t i = 0; i < bytes; i++) {
        const int high = nibble(c[2 * i]), low = nibble(c[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool is(const char *c, const char *end, const char *wanted)
{
    return (size_t)(end - c) == strlen(wanted) && memcmp(c, wanted, (size_t)(end - c)) == 0;
}

static void index_value(block *out, int64_t row, int which, const char *value, const char *end)
{
    if (out->index[which][row] != EMPTY) return;
    out->indexes |= 1u << which;
    if (!integer(value, end, &out->index[which][row])) out->index[which][row] = EMPTY;
}

static uint8_t kind_of(const char *value, const char *end, uint8_t before)
{
    if (is(value, end, "\"record\"")) return RECORD;
    if (is(value, end, "\"warm_up\"")) return WARM_UP;
    if (is(value, end, "\"inference\"")) return INFERENCE;
    return is(value, end, "\"operator\"") ? OPERATOR : before;
}

/* The ids that a span was given: a trace_id of 32 digits at value, and the span_id behind it. */
static bool given_ids(block *out, int64_t row, const char *value, const char *behind, const char *end)
{
    const char *span = WORD(behind, end, ",\"span_id\":\"");
    uint8_t *ids = out->given_ids + (size_t)out->given_count * 24;
    if (!span || end - span <= 16 || span[16] != '"' || behind - value != 34) return false;
    if (!hex(value + 1, 16, ids) || !hex(span, 8, ids + 16)) return false;
    out->given[out->given_count++] = (uint32_t)row;
    return true;
}

/* Notes arguments that analyses ask for; the bits are those of ASKED in trace.py. */
static void note_asked(block *out, const char *key, const char *key_end, const char *value, const char *end)
{
    if (is(key, key_end, "kind")) out->asked |= is(value, end, "\"wait\"");
    else if (is(key, key_end, "cpu_ns")) out->asked |= 2;
    else if (is(key, key_end, "ne.type")) out->asked |= 4;
    else if (is(key, key_end, "doorbell_ns")) out->asked |= 8;
    else if (is(key, key_end, "wait_cpu_ns")) out->asked |= 16;
    else if (is(key, key_end, "ops")) out->asked |= 32;
    else if (is(key, key_end, "bytes")) out->asked |= 64;
    else if (is(key, key_end, "stamps_out_of_range")) out->asked |= 128;
    else if (is(key, key_end, "end_before_start")) out->asked |= 256;
}

/* The arguments of a span, from behind the brace: what of them has a column of its own. */
static bool arguments(const char *c, const char *end, int64_t row, block *out)
{
    bool first = true, given = false;
    uint8_t *flags = &out->flags[row];
    out->rich++;
    for (; c < end && *c != '}'; first = false) {
        const char *key = c + 1, *key_end, *value;
        if (!(c = string(c, end)) || c >= end || *c != ':') return false;
        key_end = c - 1;
        value = ++c;
        if (c < end && *c == '"') {
            if (!(c = string(c, end))) return false;
        } else {
            while (c < end && *c != ',' && *c != '}') {
                if (*c == '"' || *c == '{' || *c == '[') return false;
                c++;
            }
        }
        note_asked(out, key, key_end, value, c);
        switch (key_end - key) {
        case 4:
            if (first && is(key, key_end, "kind")) out->kind[row] = kind_of(value, c, out->kind[row]);
            break;
        case 5:
            if (!first || *value != '"' || !is(key, key_end, "stamp")) break;
            out->kind[row] = DEVICE;
            if (is(value, c, "\"sampled\"")) *flags |= SAMPLED;
            break;
        case 7: if (is(key, key_end, "warm_up") && is(value, c, "true")) *flags |= IN_WARM_UP; break;
        case 8:
            if (is(key, key_end, "pe_index")) index_value(out, row, PE_INDEX, value, c);
            /* Why the kind: in other spans the key is the user's own. */
            else if (!given && out->kind[row] != SPAN && is(key, key_end, "trace_id"))
                given = given_ids(out, row, value, c, end);
            break;
        case 9:
            if (is(key, key_end, "dram_base")) index_value(out, row, DRAM_BASE, value, c);
            else if (is(key, key_end, "causality") && is(value, c, "\"violated\"")) *flags |= VIOLATED;
            break;
        case 10:
            if (out->kind[row] == DEVICE && is(key, key_end, "busy_ticks")) *flags |= COUNTED;
            if (!is(key, key_end, "unfinished")) break;
            if (is(value, c, "true")) *flags |= UNFINISHED;
            else if (is(value, c, "\"unwound\"")) *flags |= UNWOUND;
            break;
        case 14:
            if (is(key, key_end, "operator_index")) index_value(out, row, OPERATOR_INDEX, value, c);
            break;
        case 15:
            if (is(key, key_end, "execution_index")) index_value(out, row, EXECUTION_INDEX, value, c);
            break;
        case 17:
            if (is(key, key_end, "instruction_index")) index_value(out, row, INSTRUCTION_INDEX, value, c);
            break;
        default: break;
        }
        if (c < end && *c == ',' && (++c >= end || *c != '"')) return false;
    }
    return is(c, end, "}},");
}

static void new_row(block *out, int64_t row)
{
    out->kind[row] = SPAN;
    out->flags[row] = 0;
    for (int k = 0; k < INDEXES; k++) out->index[k][row] = EMPTY;
}

static void other(block *out, const char *text, const char *line, const char *end)
{
    out->others[2 * out->others_count] = (uint64_t)(line - text);
    out->others[2 * out->others_count++ + 1] = (uint64_t)(end - line);
}

/* Whole lines. The number of spans; -1: some line is not as npuprof writes it, or no memory. */
int64_t columns_json(reader *r, const char *text, size_t bytes, block *out)
{
    int64_t rows = 0;
    out->given_count = out->others_count = out->indexes = out->rich = out->asked = 0;
    for (const char *line = text, *stop = text + bytes, *end; line < stop; line = end + 1) {
        end = memchr(line, '\n', (size_t)(stop - line));
        if (!end || end - line < 2 || end[-1] != ',' || end[-2] != '}') return -1;
        const char *c = WORD(line, end, "{\"ph\":\"X\""), *from, *behind;
        if (!c) {
            other(out, text, line, end);
            continue;
        }
        if (!(from = WORD(c, end, ",\"name\":")) || !(c = string(from, end))) return -1;
        if ((behind = WORD(c, end, ",\"cat\":")) != NULL && !(c = string(behind, end))) return -1;
        out->label[rows] = number_of(&r->labels, from, (size_t)(c - from));
        if (!(from = WORD(c, end, ",\"pid\":")) || !(c = digits(from, end))
            || !(c = WORD(c, end, ",\"tid\":")) || !(c = digits(c, end))) return -1;
        out->ids[rows] = number_of(&r->ids, from, (size_t)(c - from));
        if (!(c = WORD(c, end, ",\"ts\":")) || !(c = thousandths(c, end, &out->start[rows]))) return -1;
        if (!(c = WORD(c, end, ",\"dur\":")) || !(c = thousandths(c, end, &out->dur[rows]))) return -1;
        if (out->label[rows] == UINT32_MAX || out->ids[rows] == UINT32_MAX) return -1;
        new_row(out, rows);
        if (!is(c, end, "},") && (!(c = WORD(c, end, ",\"args\":{")) || !arguments(c, end, rows, out)))
            return -1;
        rows++;
    }
    return rows;
}

/* The end of a cell with text; NULL: its quote is not closed. */
static const char *cell_end(const char *c, const char *end)
{
    if (c < end && *c == '"') {
        for (c++; c < end; c++)
            if (*c == '"' && (++c >= end || *c != '"')) return c;
        return NULL;
    }
    while (c < end && *c != ',' && *c != '"') c++;
    return c;
}

/* A cell with text; the place of the comma behind it. */
static const char *cell(const char *c, const char *end)
{
    c = cell_end(c, end);
    return c && c < end && *c == ',' ? c : NULL;
}

static const char *comma(const char *c, const char *end)
{
    return c < end ? memchr(c, ',', (size_t)(end - c)) : NULL;
}

static bool id(const char *c, const char *end, uint64_t *out)
{
    uint64_t v = 0;
    if (end - c != 16) return false;
    for (; c < end; c++) {
        const int n = nibble(*c);
        if (n < 0) return false;
        v = v << 4 | (unsigned)n;
    }
    *out = v;
    return true;
}

/* The row of a memory pool's peak, which is no span. */
static bool is_memory_peak(const char *c, const char *end)
{
    const char *from = WORD(c, end, ",,,");
    int64_t ns;
    for (int i = 0; i < 2; i++, from = c + 1)
        if (!from || !(c = comma(from, end)) || !integer(from, c, &ns)) return false;
    return (from = WORD(from, end, "\"memory\",")) != NULL && (c = cell(from, end)) != NULL
        && (is(c, end, ",,,,,,,0") || is(c, end, ",,,,,,,0,"));
}

/* Rows below the head, with the contract's columns. As columns_json. */
int64_t columns_csv(reader *r, const char *text, size_t bytes, block *out)
{
    int64_t rows = 0;
    out->others_count = out->indexes = 0;
    for (const char *line = text, *stop = text + bytes, *end; line < stop; line = end + 1) {
        char key[64];
        const char *c = line, *behind, *thread, *thread_end, *pe = NULL, *pe_end = NULL;
        if (!(end = memchr(line, '\n', (size_t)(stop - line)))) return -1;
        if (is_memory_peak(line, end)) {
            other(out, text, line, end);
            continue;
        }
        if (!(behind = comma(c, end)) || behind - c != 32 || !hex(c, 16, out->trace + 16 * rows)) return -1;
        if (!(behind = comma(c = behind + 1, end))) return -1;
        out->parent[rows] = 0;
        if (behind != c && !id(c, behind, &out->parent[rows])) return -1;
        if (!(behind = comma(c = behind + 1, end)) || !id(c, behind, &out->span[rows])) return -1;
        int64_t stop_ns;
        if (!(behind = comma(c = behind + 1, end)) || !integer(c, behind, &out->start[rows])) return -1;
        if (!(behind = comma(c = behind + 1, end)) || !integer(c, behind, &stop_ns)) return -1;
        if (!(behind = cell(c = behind + 1, end)) || !(behind = cell(behind + 1, end))) return -1;
        out->label[rows] = number_of(&r->labels, c, (size_t)(behind - c));
        if (!(thread_end = comma(thread = behind + 1, end))) return -1;
        new_row(out, rows);
        behind = thread_end;
        for (int k = 0; k < INDEXES; k++) {
            if (!(behind = comma(c = behind + 1, end))) return -1;
            if (k == PE_INDEX) { pe = c; pe_end = behind; }
            if (behind == c) continue;
            if (!integer(c, behind, &out->index[k][rows])) return -1;
            out->indexes |= 1u << k;
        }
        const char *last = comma(c = behind + 1, end);           /* the column source may follow */
        if (last && cell_end(last + 1, end) != end) return -1;
        if (!integer(c, last ? last : end, &out->dur[rows])) return -1;
        const bool host = thread_end != thread;
        if (host && digits(thread, thread_end) != thread_end) return -1;
        const char *name = host ? thread : pe;
        const size_t length = (size_t)(host ? thread_end - thread : pe_end - pe);
        if (length >= sizeof key) return -1;
        key[0] = host ? 't' : 'p';
        memcpy(key + 1, name, length);
        out->ids[rows] = number_of(&r->ids, key, length + 1);
        if (out->label[rows] == UINT32_MAX || out->ids[rows] == UINT32_MAX) return -1;
        if (!host && length) out->kind[rows] = DEVICE;
        rows++;
    }
    return rows;
}

/* ---- Columns */

void columns_gather(int64_t n, const uint32_t *numbers, const uint32_t *table, uint32_t *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = table[numbers[i]];
}

int columns_nest_by_id(int64_t n, const uint64_t *span, const uint64_t *above, int32_t *parents)
{
    uint64_t mask = 1023;
    while (mask < (uint64_t)n * 3 / 2) mask = mask * 2 + 1;
    uint32_t *slots = calloc((size_t)mask + 1, sizeof *slots);
    if (!slots) return -1;
    for (int64_t i = n; i-- > 0;) {               /* of two rows with one id the last is the parent */
        uint64_t at = span[i] * UINT64_C(0x9E3779B97F4A7C15) >> 20 & mask;
        while (slots[at] && span[slots[at] - 1] != span[i]) at = (at + 1) & mask;
        if (!slots[at]) slots[at] = (uint32_t)i + 1;
    }
    for (int64_t i = 0; i < n; i++) {
        if (!above[i]) continue;
        uint64_t at = above[i] * UINT64_C(0x9E3779B97F4A7C15) >> 20 & mask;
        while (slots[at] && span[slots[at] - 1] != above[i]) at = (at + 1) & mask;
        parents[i] = (int32_t)slots[at] - 1;
    }
    free(slots);
    return 0;
}

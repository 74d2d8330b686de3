/* npuprof_describe: fills a npuprof_npu_desc at run time from the JSON of `npuprof.py gen --json`, so that a
   tool tries a new device without a compiler.
   SPDX-License-Identifier: MIT

   The text is walked once, along the tables below, which say where each member lies. Strings and tables go
   to the caller's storage. Everything is checked: a text that is no description is refused with its place. */
#include "../npuprof.h"
#include "../npuprof_npu.h"
#include <stddef.h>
#include <string.h>

enum { NUMBER, SWITCH, STRING, STRUCT, ROWS, IGNORED };
typedef struct member {
    const char *name;
    size_t at, bytes;                   /* in its struct; ROWS: bytes of a row; STRUCT: of one of an array */
    int is;
    unsigned most;                      /* STRUCT: elements of the array, 0 = no array; ROWS: the most rows */
    const struct member *inside;
    size_t count_at;                    /* ROWS: the unsigned member that counts them */
} member;
#define END { NULL, 0, 0, 0, 0, NULL, 0 }
#define N(t, m) { #m, offsetof(t, m), sizeof ((t *)0)->m, NUMBER, 0, NULL, 0 }
#define B(t, m) { #m, offsetof(t, m), sizeof ((t *)0)->m, SWITCH, 0, NULL, 0 }
#define T(t, m) { #m, offsetof(t, m), sizeof ((t *)0)->m, STRING, 0, NULL, 0 }
#define S(t, m, s) { #m, offsetof(t, m), sizeof ((t *)0)->m, STRUCT, 0, s, 0 }
#define A(t, m, s, n) { #m, offsetof(t, m), sizeof ((t *)0)->m[0], STRUCT, n, s, 0 }
#define R(t, m, s, c, n) { #m, offsetof(t, m), sizeof *((t *)0)->m, ROWS, n, s, offsetof(t, c) }

typedef npuprof_npu_field field_;
typedef npuprof_npu_index index_;
typedef npuprof_npu_counter counter_;
typedef npuprof_npu_ring ring_;
typedef npuprof_npu_desc desc_;
static const member field[] = { N(field_, offset), N(field_, width_bytes), N(field_, lsb), N(field_, bits),
    N(field_, hi_width_bytes), N(field_, hi_lsb), N(field_, hi_bits), N(field_, hi_offset), END };
static const member condition[] = { S(npuprof_npu_condition, field, field), N(npuprof_npu_condition, value),
    END };
static const member arg[] = { S(npuprof_npu_arg, field, field), T(npuprof_npu_arg, name), END };
static const member kind[] = { N(npuprof_npu_kind, value), N(npuprof_npu_kind, is), END };
static const member op[] = { N(npuprof_npu_op, code), T(npuprof_npu_op, name), END };
static const member lane[] = { N(npuprof_npu_lane, value), T(npuprof_npu_lane, name), END };
static const member requirement[] = { N(npuprof_npu_requirement, offset),
    N(npuprof_npu_requirement, access), N(npuprof_npu_requirement, mask), N(npuprof_npu_requirement, value),
    T(npuprof_npu_requirement, text), END };
static const member producer[] = { B(index_, in_memory), N(index_, offset), N(index_, width_bytes),
    N(index_, lsb), N(index_, bits), N(index_, unit), B(index_, has_laps), N(index_, laps_offset),
    N(index_, laps_first), B(index_, has_wrap), N(index_, wrap_bit), N(index_, memory_bytes), END };
static const member counter[] = { N(counter_, lo_offset), N(counter_, hi_offset), N(counter_, bits),
    N(counter_, access), N(counter_, order), B(counter_, counts_down), B(counter_, big_endian),
    N(counter_, hz), N(counter_, lag_ns), N(counter_, lo_lsb), N(counter_, lo_bits), N(counter_, hi_lsb),
    END };
static const member pmu[] = { T(npuprof_npu_pmu, name), S(npuprof_npu_pmu, counter, counter),
    B(npuprof_npu_pmu, is_busy), { "read", 0, 0, IGNORED, 0, NULL, 0 }, N(npuprof_npu_pmu, scale),
    T(npuprof_npu_pmu, unit), B(npuprof_npu_pmu, is_idle), B(npuprof_npu_pmu, restarts), END };
static const member progress[] = { B(npuprof_npu_progress, is_there),
    S(npuprof_npu_progress, index, producer), N(npuprof_npu_progress, count),
    N(npuprof_npu_progress, entry_bytes), B(npuprof_npu_progress, big_endian), END };
#define F(word, m) S(ring_, m, field),
static const member ring[] = { NPUPROF_NPU_PLAIN_VALUES_(F)
    B(ring_, feed), N(ring_, offset), N(ring_, first), N(ring_, entry_bytes), N(ring_, count),
    N(ring_, ready), S(ring_, producer, producer), N(ring_, valid_value), N(ring_, phase_first),
    N(ring_, sequence_first), B(ring_, big_endian), R(ring_, kinds, kind, kind_count, 256),
    N(ring_, all_are), A(ring_, key, field, NPUPROF_NPU_KEYS),
    A(ring_, empty, condition, NPUPROF_NPU_CONDITIONS),
    A(ring_, clock_when, condition, NPUPROF_NPU_CONDITIONS), A(ring_, args, arg, NPUPROF_NPU_ARGS),
    R(ring_, ops, op, op_count, 65536), N(ring_, execution_op), R(ring_, lanes, lane, lane_count, 65536),
    N(ring_, pe_base), T(ring_, category), N(ring_, stamp_clock), N(ring_, stamp_unit_ns),
    N(ring_, scale_num), N(ring_, scale_den), B(ring_, ascending), N(ring_, job_scope),
    N(ring_, max_age_ms), N(ring_, duration_num), N(ring_, duration_den), B(ring_, duration_in_ns),
    N(ring_, memory_bytes), R(ring_, more_args, arg, more_arg_count, NPUPROF_NPU_MORE_ARGS), END };
static const member desc[] = { T(desc_, name), B(desc_, anchors_only),
    R(desc_, requirements, requirement, requirement_count, 64), S(desc_, counter, counter),
    R(desc_, rings, ring, ring_count, NPUPROF_NPU_RINGS), S(desc_, progress, progress),
    R(desc_, pmu, pmu, pmu_count, 8), N(desc_, pe_count),
    N(desc_, bar_bytes), END };

typedef struct text { const char *at, *end; char *storage; size_t left; } text;

/* The next character that is no space; 0 at the end. */
static char look(text *t)
{
    while (t->at < t->end && strchr(" \t\r\n", *t->at)) t->at++;
    return t->at < t->end ? *t->at : 0;
}

static bool take(text *t, char c) { return look(t) == c && c && t->at++; }

static void *room(text *t, size_t bytes, size_t align)
{
    const size_t gap = (align - (uintptr_t)t->storage % align) % align;
    if (gap > t->left || bytes > t->left - gap) return NULL;
    char *const result = t->storage + gap;
    t->storage += gap + bytes, t->left -= gap + bytes;
    return memset(result, 0, bytes);
}

static bool read_number(text *t, uint64_t *value)
{
    const char *const from = (look(t), t->at);
    for (*value = 0; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++) {
        const uint64_t digit = (uint64_t)(*t->at - '0');
        if (*value > (UINT64_MAX - digit) / 10) return false;
        *value = *value * 10 + digit;
    }
    return t->at > from;
}

static const char *read_string(text *t)
{
    if (!take(t, '"')) return NULL;
    char *const result = t->storage, *to = result;
    if (!t->left) return NULL;
    for (; t->at < t->end && *t->at != '"' && (unsigned char)*t->at >= ' '; t->at++) {
        if (*t->at == '\\' && (++t->at == t->end || !strchr("\"\\", *t->at))) return NULL;
        if ((size_t)(to - result) + 1 >= t->left) return NULL;
        *to++ = *t->at;
    }
    *to++ = 0;
    t->storage = to, t->left -= (size_t)(to - result);
    return take(t, '"') ? result : NULL;
}

static bool read_word(text *t, const char *word)
{
    const size_t length = strlen(word);
    look(t);
    if ((size_t)(t->end - t->at) < length || memcmp(t->at, word, length)) return false;
    t->at += length;
    return true;
}

static bool read_struct(text *t, const member *members, char *base);

static bool store(char *to, size_t bytes, uint64_t value)
{
    const uint8_t u8 = (uint8_t)value;
    const uint16_t u16 = (uint16_t)value;
    const uint32_t u32 = (uint32_t)value;
    memcpy(to, bytes == 1 ? (const void *)&u8 : bytes == 2 ? (const void *)&u16 :
               bytes == 4 ? (const void *)&u32 : (const void *)&value, bytes);
    return bytes >= 8 || value >> 8 * bytes == 0;
}

/* [ {...}, ... ]: at most m->most structs, from `base` on, or in storage if that is NULL. *count of them. */
static char *read_array(text *t, const member *m, char *base, unsigned *count)
{
    /* Why counted before: the rows lie one behind the other, and their strings behind them. */
    size_t rows = 0, depth = 0;
    if (!take(t, '[')) return NULL;
    for (const char *p = t->at; p < t->end && (*p != ']' || depth); p++) {
        if (*p == '"') while (++p < t->end && *p != '"') p += *p == '\\';
        if (p < t->end && (*p == '{' || *p == '[')) rows += !depth++;
        if (p < t->end && (*p == '}' || *p == ']') && depth) depth--;
    }
    if (rows > m->most) return NULL;
    if (!base && !(base = room(t, rows * m->bytes, sizeof(uint64_t)))) return NULL;
    for (*count = 0; look(t) != ']'; ++*count)
        if (*count >= rows || (*count && !take(t, ','))
            || !read_struct(t, m->inside, base + *count * m->bytes)) return NULL;
    return take(t, ']') ? base : NULL;
}

static bool read_member(text *t, const member *m, char *base)
{
    uint64_t value;
    unsigned count;
    if (read_word(t, "null")) return true;
    if (m->is == IGNORED) return false;
    if (m->is == NUMBER) return read_number(t, &value) && store(base + m->at, m->bytes, value);
    if (m->is == SWITCH) {
        const bool is = read_word(t, "true");
        memcpy(base + m->at, &is, sizeof is);
        return is || read_word(t, "false");
    }
    if (m->is == STRING) {
        const char *const string = read_string(t);
        memcpy(base + m->at, &string, sizeof string);
        return string != NULL;
    }
    if (m->is == STRUCT && !m->most) return read_struct(t, m->inside, base + m->at);
    if (m->is == STRUCT) return read_array(t, m, base + m->at, &count) != NULL;
    char *const rows = read_array(t, m, NULL, &count);
    memcpy(base + m->at, &rows, sizeof rows);
    memcpy(base + m->count_at, &count, sizeof count);
    return rows != NULL;
}

static bool read_struct(text *t, const member *members, char *base)
{
    if (!take(t, '{')) return false;
    while (look(t) != '}') {
        const text before = *t;
        const char *const name = read_string(t);
        const member *m = members;
        while (name && m->name && strcmp(m->name, name)) m++;
        t->storage = before.storage, t->left = before.left;
        if (!name || !m->name || !take(t, ':') || !read_member(t, m, base)) return false;
        if (look(t) != '}' && !take(t, ',')) return false;
    }
    return take(t, '}');
}

/* Fills *to from a text of `bytes` bytes. NULL, or the place from which on the text is no description (or
   storage is too small; 64 KiB are plenty). What *to points to lies in storage, which must outlive the open
   device; its rings may be changed there. The caller sets bar, memory, functions, as after
   <device>_npu_desc(). */
const char *npuprof_describe(npuprof_npu_desc *to, const char *json, size_t bytes, void *storage,
                             size_t left);
const char *npuprof_describe(npuprof_npu_desc *to, const char *json, size_t bytes, void *storage,
                             size_t left)
{
    static const npuprof_npu_desc zero;
    text t = { json, json + bytes, (char *)storage, left };
    *to = zero;
    if (!read_struct(&t, desc, (char *)to) || look(&t)) return t.at;
    if (to->ring_count == 1) to->ring = to->rings[0], to->rings = NULL, to->ring_count = 0;
    return NULL;
}

/* trace.h - reads a written trace back: a strict JSON reader for the C tests.
   SPDX-License-Identifier: MIT

       json_node *t = trace_load(path);                     // the case ends here when it is not strict JSON
       json_node *e = trace_event(t, "X", "conv1", 0);      // first event of that phase and name, NULL if
       none CHECK_INT(json_int(json_get(e, "args.n")), 3); Nothing is freed: a case is a process. */
#ifndef TRACE_H
#define TRACE_H

#include "check.h"

typedef enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } json_type;
typedef struct json_node {
    json_type type;
    const char *key;         /* inside an object */
    const char *text;        /* a string's bytes, a number as written, "true" or "false" */
    size_t text_bytes;
    struct json_node *first, *next;
    size_t count;
} json_node;

typedef struct json_reader_ { const char *at, *end; const char *error; } json_reader_;

CHECK_UNUSED_ static void json_space_(json_reader_ *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t')) r->at++;
}

CHECK_UNUSED_ static json_node *json_fail_(json_reader_ *r, const char *error)
{
    if (!r->error) r->error = error;
    return NULL;
}

/* Length of the UTF-8 sequence at s, 0 if it is not valid. */
CHECK_UNUSED_ static size_t json_utf8_(const unsigned char *s, size_t left)
{
    static const unsigned least[5] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xC2 && s[0] < 0xE0 ? 2 : s[0] >= 0xE0
        && s[0] < 0xF0 ? 3 : s[0] >= 0xF0 && s[0] < 0xF5 ? 4 : 0;
    unsigned code = n == 1 ? s[0] : n == 2 ? s[0] & 0x1Fu : n == 3 ? s[0] & 0x0Fu : s[0] & 0x07u;
    if (!n || n > left) return 0;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
        code = code << 6 | (s[i] & 0x3Fu);
    }
    return code < least[n] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? 0 : n;
}

CHECK_UNUSED_ static char *json_string_(json_reader_ *r, size_t *bytes)
{
    char *out = (char *)malloc((size_t)(r->end - r->at) < 64 ? 64 : 64), *grown;
    size_t n = 0, room = 64;
    r->at++;
    while (r->at < r->end && *r->at != '"') {
        unsigned char c = (unsigned char)*r->at;
        char piece[8];
        size_t k = 0;
        if (c < 0x20) return (char *)(void *)json_fail_(r, "raw control character in a string");
        if (c == '\\') {
            const char *names = "\"\\/bfnrt", *values = "\"\\/\b\f\n\r\t", *found;
            if (r->end - r->at < 2) return (char *)(void *)json_fail_(r, "end inside a string");
            if (r->at[1] == 'u') {
                unsigned code = 0;
                if (r->end - r->at < 6) return (char *)(void *)json_fail_(r, "end inside a string");
                for (int i = 2; i < 6; i++) {
                    const char *digit = strchr("0123456789abcdef0123456789ABCDEF", r->at[i]);
                    if (!r->at[i] || !digit) return (char *)(void *)json_fail_(r, "bad \\u escape");
                    code = code * 16
                        + (unsigned)((digit - strchr("0123456789abcdef0123456789ABCDEF", '0')) & 15);
                }
                if (code >= 0xD800 && code < 0xE000) return (char *)(void *)json_fail_(r, "surrogate escape");
                if (code < 0x80) piece[k++] = (char)code;
                else if (code < 0x800) {
                    piece[k++] = (char)(0xC0 | code >> 6);
                    piece[k++] = (char)(0x80 | (code & 63));
                }
                else {
                    piece[k++] = (char)(0xE0 | code >> 12);
                    piece[k++] = (char)(0x80 | (code >> 6 & 63));
                    piece[k++] = (char)(0x80 | (code & 63));
                }
                r->at += 6;
            } else {
                found = r->at[1] ? strchr(names, r->at[1]) : NULL;
                if (!found) return (char *)(void *)json_fail_(r, "bad escape");
                piece[k++] = values[found - names];
                r->at += 2;
            }
        } else {
            k = json_utf8_((const unsigned char *)r->at, (size_t)(r->end - r->at));
            if (!k) return (char *)(void *)json_fail_(r, "invalid UTF-8");
            memcpy(piece, r->at, k);
            r->at += k;
        }
        if (n + k + 1 > room) {
            grown = (char *)realloc(out, room *= 2);
            if (!grown) abort();
            out = grown;
        }
        memcpy(out + n, piece, k);
        n += k;
    }
    if (r->at >= r->end) return (char *)(void *)json_fail_(r, "end inside a string");
    r->at++;
    out[n] = 0;
    *bytes = n;
    return out;
}

CHECK_UNUSED_ static json_node *json_value_(json_reader_ *r, int depth)
{
    json_node *v = (json_node *)calloc(1, sizeof *v), **tail;
    if (!v) abort();
    json_space_(r);
    if (r->at >= r->end || depth > 100) return json_fail_(r, "a value is missing");
    tail = &v->first;
    if (*r->at == '{' || *r->at == '[') {
        char close = *r->at == '{' ? '}' : ']';
        v->type = close == '}' ? JSON_OBJECT : JSON_ARRAY;
        r->at++;
        json_space_(r);
        if (r->at < r->end && *r->at == close) { r->at++; return v; }
        for (;;) {
            char *key = NULL;
            size_t bytes = 0;
            if (close == '}') {
                json_space_(r);
                if (r->at >= r->end || *r->at != '"') return json_fail_(r, "a key is missing");
                key = json_string_(r, &bytes);
                if (!key) return NULL;
                for (json_node *other = v->first; other; other = other->next)
                    if (!strcmp(other->key, key)) return json_fail_(r, "a key twice in one object");
                json_space_(r);
                if (r->at >= r->end || *r->at++ != ':') return json_fail_(r, "':' is missing");
            }
            *tail = json_value_(r, depth + 1);
            if (!*tail) return NULL;
            (*tail)->key = key;
            tail = &(*tail)->next;
            v->count++;
            json_space_(r);
            if (r->at >= r->end || (*r->at != ',' && *r->at != close))
                return json_fail_(r, "',' or the end is missing");
            if (*r->at++ == close) return v;
        }
    }
    if (*r->at == '"') {
        v->type = JSON_STRING;
        v->text = json_string_(r, &v->text_bytes);
        return v->text ? v : NULL;
    }
    static const struct { const char *word; json_type type; } words[] =
        { { "true", JSON_BOOL }, { "false", JSON_BOOL }, { "null", JSON_NULL } };
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(words[i].word);
        if ((size_t)(r->end - r->at) >= n && !memcmp(r->at, words[i].word, n)) {
            v->type = words[i].type;
            v->text = words[i].word;
            r->at += n;
            return v;
        }
    }
    const char *start = r->at, *digits;
    v->type = JSON_NUMBER;
    if (r->at < r->end && *r->at == '-') r->at++;
    digits = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') r->at++;
    if (r->at == digits || (*digits == '0' && r->at - digits > 1)) return json_fail_(r, "not a value");
    if (r->at < r->end && *r->at == '.') {
        digits = ++r->at;
        while (r->at < r->end && *r->at >= '0' && *r->at <= '9') r->at++;
        if (r->at == digits) return json_fail_(r, "bad number");
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-')) r->at++;
        digits = r->at;
        while (r->at < r->end && *r->at >= '0' && *r->at <= '9') r->at++;
        if (r->at == digits) return json_fail_(r, "bad number");
    }
    v->text_bytes = (size_t)(r->at - start);
    char *copy = (char *)malloc(v->text_bytes + 1);
    if (!copy) abort();
    memcpy(copy, start, v->text_bytes);
    copy[v->text_bytes] = 0;
    v->text = copy;
    return v;
}

/* NULL and a failed check when the bytes are not one strict JSON value. */
CHECK_UNUSED_ static json_node *json_parse(const char *bytes, size_t count)
{
    json_reader_ r = { bytes, bytes + count, NULL };
    json_node *v = json_value_(&r, 0);
    json_space_(&r);
    if (v && r.at != r.end) v = json_fail_(&r, "bytes behind the end");
    if (!v)
        check_failed_(__FILE__, __LINE__, "not strict JSON at byte %ld: %s: %.60s", (long)(r.at - bytes),
                      r.error, r.at);
    return v;
}

/* The member at a path of keys with dots between them; NULL if there is none. */
CHECK_UNUSED_ static json_node *json_get(json_node *v, const char *path)
{
    while (v && *path) {
        size_t n = strcspn(path, ".");
        json_node *member = v->type == JSON_OBJECT ? v->first : NULL;
        while (member && (strncmp(member->key, path, n) != 0 || member->key[n])) member = member->next;
        v = member;
        path += n + (path[n] == '.');
    }
    return v;
}

CHECK_UNUSED_ static const char *json_text(json_node *v) { return v ? v->text : NULL; }

CHECK_UNUSED_ static int64_t json_int(json_node *v)
{
    return v && v->type == JSON_NUMBER ? strtoll(v->text, NULL, 10) : INT64_MIN;
}

CHECK_UNUSED_ static double json_real(json_node *v)
{
    return v && v->type == JSON_NUMBER ? strtod(v->text, NULL) : -1e300;
}

/* Microseconds with exactly three decimals, as ns; a failed check for any other form. */
CHECK_UNUSED_ static int64_t json_us_as_ns(json_node *v)
{
    const char *dot = v && v->type == JSON_NUMBER ? strchr(v->text, '.') : NULL;
    if (!dot || strlen(dot) != 4 || strpbrk(v->text, "eE-")) {
        check_failed_(__FILE__, __LINE__, "a time is \"%s\", not a positive number with three decimals",
                      v && v->text ? v->text : "(none)");
        return INT64_MIN;
    }
    return strtoll(v->text, NULL, 10) * 1000 + strtoll(dot + 1, NULL, 10);
}

CHECK_UNUSED_ static json_node *trace_load(const char *path)
{
    size_t size = 0;
    char *bytes = check_read_file(path, &size);
    if (!bytes) {
        check_failed_(__FILE__, __LINE__, "no file %s", path);
        check_end_(NULL);
        return NULL;
    }
    json_node *t = json_parse(bytes, size);
    if (!t || !json_get(t, "traceEvents")) {
        check_failed_(__FILE__, __LINE__, "no traceEvents in %s", path);
        check_end_(NULL);
    }
    return t;
}

/* The nth event (from 0) of that phase and name; NULL as phase or name matches all. */
CHECK_UNUSED_ static json_node *trace_event(json_node *t, const char *phase, const char *name, size_t nth)
{
    json_node *list = json_get(t, "traceEvents");
    for (json_node *e = list ? list->first : NULL; e; e = e->next) {
        const char *ph = json_text(json_get(e, "ph")), *n = json_text(json_get(e, "name"));
        if ((!phase || (ph && !strcmp(ph, phase))) && (!name || (n && !strcmp(n, name))) && !nth--) return e;
    }
    return NULL;
}

CHECK_UNUSED_ static size_t trace_count(json_node *t, const char *phase, const char *name)
{
    size_t n = 0;
    json_node *list = json_get(t, "traceEvents");
    for (json_node *e = list ? list->first : NULL; e; e = e->next) {
        const char *ph = json_text(json_get(e, "ph")), *en = json_text(json_get(e, "name"));
        n += (!phase || (ph && !strcmp(ph, phase))) && (!name || (en && !strcmp(en, name)));
    }
    return n;
}

/* CHECK_COUNTS(t, "X", { "one", 1 }, { "none", 0 }): how many events of a phase have each name. */
typedef struct trace_wanted { const char *name; uint64_t count; } trace_wanted;
#define CHECK_COUNTS(t, phase, ...) \
    do { \
        const trace_wanted wanted_[] = { __VA_ARGS__ }; \
        trace_counts_(__FILE__, __LINE__, (t), (phase), wanted_, sizeof wanted_ / sizeof wanted_[0]); \
    } while (0)

CHECK_UNUSED_ static void trace_counts_(const char *file, int line, json_node *t, const char *phase,
                                        const trace_wanted *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_uint_(file, line, wanted[i].name ? wanted[i].name : "all",
                    trace_count(t, phase, wanted[i].name), wanted[i].count);
}

CHECK_UNUSED_ static int64_t trace_start(json_node *e) { return json_us_as_ns(json_get(e, "ts")); }
CHECK_UNUSED_ static int64_t trace_dur(json_node *e) { return json_us_as_ns(json_get(e, "dur")); }
CHECK_UNUSED_ static int64_t trace_end(json_node *e) { return trace_start(e) + trace_dur(e); }
CHECK_UNUSED_ static int64_t trace_tid(json_node *e) { return json_int(json_get(e, "tid")); }

/* Is inner inside outer, on the same track? */
CHECK_UNUSED_ static bool trace_inside(json_node *inner, json_node *outer)
{
    return inner && outer && trace_tid(inner) == trace_tid(outer) && trace_start(inner) >= trace_start(outer)
        &&
           trace_end(inner) <= trace_end(outer);
}

/* Does every slice nest in or lie beside the others of its track, as the viewers ask? Quick: one pass with a
   stack for each track, so the events of a track must stand in the order of their starts. A failed check if
   not. */
CHECK_UNUSED_ static void trace_check_nesting(json_node *t)
{
    enum { TRACKS = 300, DEPTH = 1100 };
    static int64_t (*ends)[DEPTH], last_start[TRACKS];
    static int depth[TRACKS];
    json_node *list = json_get(t, "traceEvents");
    if (!ends) ends = (int64_t (*)[DEPTH])malloc(sizeof *ends * TRACKS);
    if (!ends) abort();
    memset(depth, 0, sizeof depth);
    memset(last_start, 0, sizeof last_start);
    for (json_node *e = list ? list->first : NULL; e; e = e->next) {
        const char *ph = json_text(json_get(e, "ph"));
        if (!ph || strcmp(ph, "X") != 0) continue;
        int64_t tid = trace_tid(e), start = trace_start(e), end = trace_end(e);
        if (tid < 1 || tid >= TRACKS) {
            check_failed_(__FILE__, __LINE__, "tid %" PRId64 " is no small number from 1", tid);
            return;
        }
        if (start < last_start[tid]) {
            check_failed_(__FILE__, __LINE__, "slices of track %" PRId64
                                              " are not in the order of their starts", tid);
            return;
        }
        last_start[tid] = start;
        while (depth[tid] && ends[tid][depth[tid] - 1] <= start) depth[tid]--;
        if (depth[tid] && end > ends[tid][depth[tid] - 1]) {
            check_failed_(__FILE__, __LINE__, "slice %s at %" PRId64 " ns overlaps another of track %" PRId64
                                              " by %" PRId64 " ns",
                          json_text(json_get(e, "name")), start, tid, end - ends[tid][depth[tid] - 1]);
            return;
        }
        if (depth[tid] == DEPTH) return;
        ends[tid][depth[tid]++] = end;
    }
}

/* The name of an event's track, from its thread_name record. */
CHECK_UNUSED_ static const char *trace_track(json_node *t, json_node *e)
{
    json_node *list = json_get(t, "traceEvents");
    for (json_node *m = list ? list->first : NULL; e && m; m = m->next) {
        const char *ph = json_text(json_get(m, "ph")), *n = json_text(json_get(m, "name"));
        if (ph && *ph == 'M' && n && !strcmp(n, "thread_name") && trace_tid(m) == trace_tid(e))
            return json_text(json_get(m, "args.name"));
    }
    return NULL;
}

#endif /* TRACE_H */

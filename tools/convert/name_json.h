#pragma once   /* SPDX-License-Identifier: MIT */
#include "resolve.h"

/* The names of functions into a JSON trace that the library wrote: a copy in which each automatic span
       "name":"0x55d0c0de1139","cat":"auto"
   has the name of its function. Quotes inside of strings have backslashes, so these bytes are nothing else.
   Two passes: one collects the addresses, and at the end the modules from the metadata; the other writes. In
   constant memory but for the metadata. */

enum { NPUPROF_SYMBOLS_PIECE_ = 1 << 20, NPUPROF_SYMBOLS_MATCH_ = 64 };
static const char npuprof_symbols_before_[] = "\"name\":\"0x";
static const char npuprof_symbols_behind_[] = "\",\"cat\":\"auto\"";
static const char npuprof_symbols_tail_[] = "\n],\n\"displayTimeUnit\"";

/* A JSON file while it is read: a piece, and behind it what it shares with the next one. */
typedef struct npuprof_symbols_json_ {
    FILE *file;
    char *piece, *tail;            /* tail: all from npuprof_symbols_tail_ on */
    size_t used, tail_bytes, tail_places;
    bool ended;                    /* the piece is the last one */
} npuprof_symbols_json_;

/* Reads on behind the `kept` last bytes of the piece. False: there is no more. */
static bool npuprof_symbols_read_piece_(npuprof_symbols_json_ *j, size_t kept)
{
    if (j->ended) return false;
    memmove(j->piece, j->piece + j->used - kept, kept);
    j->used = kept + fread(j->piece + kept, 1, NPUPROF_SYMBOLS_PIECE_ - kept, j->file);
    j->ended = j->used < NPUPROF_SYMBOLS_PIECE_;
    return true;
}

/* The next place in the piece, from `at` on, where an address is a name: where its name begins, or the
   piece's end. *address, and *length of the address's text. */
static size_t npuprof_symbols_next_(const npuprof_symbols_json_ *j, size_t at, uint64_t *address,
                                    size_t *length)
{
    const size_t before = sizeof npuprof_symbols_before_ - 1, behind = sizeof npuprof_symbols_behind_ - 1;
    while (at < j->used) {
        const char *const p = (const char *)memchr(j->piece + at, '"', j->used - at);
        if (!p) break;
        at = (size_t)(p - j->piece);
        if (j->used - at >= before + behind && memcmp(p, npuprof_symbols_before_, before) == 0) {
            const size_t name = at + before - 2;
            const char *const end = (const char *)memchr(j->piece + name, '"', j->used - name);
            *length = end ? (size_t)(end - j->piece) - name : 0;
            if (end && j->used - name - *length >= behind &&
                memcmp(end, npuprof_symbols_behind_, behind) == 0 &&
                npuprof_symbols_address_(j->piece + name, *length, address))
                return name;
        }
        at++;
    }
    return j->used;
}

/* Keeps what belongs to the metadata. False: no memory. */
static bool npuprof_symbols_keep_tail_(npuprof_symbols_json_ *j, const char *from, size_t bytes)
{
    while (j->tail_places - j->tail_bytes < bytes) {
        void *tail = j->tail;
        if (!npuprof_symbols_grow_(&tail, &j->tail_places, 1)) return false;
        j->tail = (char *)tail;
    }
    memcpy(j->tail + j->tail_bytes, from, bytes);
    j->tail_bytes += bytes;
    return true;
}

/* Where these bytes are, or NULL. */
static const char *npuprof_symbols_bytes_of_(const char *from, size_t bytes, const char *text)
{
    const size_t length = strlen(text);
    const char *p = from;
    while (bytes - (size_t)(p - from) >= length &&
           (p = (const char *)memchr(p, text[0], bytes - (size_t)(p - from) - length + 1)) != NULL) {
        if (memcmp(p, text, length) == 0) return p;
        p++;
    }
    return NULL;
}

/* The first pass. False: no memory, or the file has no metadata of npuprof. */
static bool npuprof_symbols_collect_json_(npuprof_symbols_ *s, npuprof_symbols_json_ *j)
{
    uint64_t address;
    size_t length, kept = 0;
    for (j->used = 0; npuprof_symbols_read_piece_(j, kept);) {
        for (size_t at = 0; (at = npuprof_symbols_next_(j, at, &address, &length)) < j->used; at += length)
            if (!npuprof_symbols_add_address_(s, address)) return false;
        kept = (size_t)npuprof_min_(j->used, NPUPROF_SYMBOLS_MATCH_);
        const char *const begins = npuprof_symbols_bytes_of_(j->piece, j->used, npuprof_symbols_tail_);
        const char *const tail = j->tail ? j->piece : begins;
        const size_t skipped = tail ? (size_t)(tail - j->piece) : 0;
        const size_t whole = j->ended ? j->used : j->used - kept;
        if (tail && whole > skipped && !npuprof_symbols_keep_tail_(j, tail, whole - skipped)) return false;
    }
    return j->tail != NULL;
}

/* Reads a string of JSON at *p, which begins with a quote, into `text`, and goes behind it. Returns its
   length; SIZE_MAX: it is none, or too long. */
static size_t npuprof_symbols_read_string_(const char **p, const char *end, char *text, size_t most)
{
    size_t length = 0;
    const char *q = *p;
    if (q >= end || *q++ != '"') return SIZE_MAX;
    for (; q < end && *q != '"'; q++) {
        if (length == most) return SIZE_MAX;
        text[length] = *q;
        if (*q == '\\') {
            if (++q == end || (*q != '"' && *q != '\\' && *q != '/')) return SIZE_MAX;
            text[length] = *q;
        }
        length++;
    }
    if (q == end) return SIZE_MAX;
    *p = q + 1;
    return length;
}

/* Reads one of the modules at *p, as the library writes them. False: it is none. */
static bool npuprof_symbols_read_module_(npuprof_symbols_ *s, const char **p, const char *end)
{
    static const char *const keys[] = {
        "{\"path\":", ",\"build_id\":", ",\"bias\":", ",\"start\":", ",\"end\":" };
    char texts[5][NPUPROF_SYMBOLS_PATH_];
    size_t lengths[5];
    uint64_t places[3];
    for (int i = 0; i < 5; i++) {
        const size_t key = strlen(keys[i]);
        if ((size_t)(end - *p) < key || memcmp(*p, keys[i], key) != 0) return false;
        *p += key;
        lengths[i] = npuprof_symbols_read_string_(p, end, texts[i], NPUPROF_SYMBOLS_PATH_);
        if (lengths[i] == SIZE_MAX) return false;
        if (i > 1 && !npuprof_symbols_address_(texts[i], lengths[i], &places[i - 2])) return false;
    }
    npuprof_symbols_add_module_(s, texts[0], lengths[0], texts[1], lengths[1], places);
    return *p < end && *(*p)++ == '}';
}

/* Reads the modules of the metadata. Why not those behind "processes": a merged trace has the modules of
   each process there, and an address means something else in each. */
static void npuprof_symbols_read_modules_(npuprof_symbols_ *s, const npuprof_symbols_json_ *j)
{
    static const char key[] = "\"modules\":[";
    const char *const end = j->tail + j->tail_bytes;
    const char *p = npuprof_symbols_bytes_of_(j->tail, j->tail_bytes, key);
    const char *const merged = npuprof_symbols_bytes_of_(j->tail, j->tail_bytes, "\"processes\":[");
    if (!p || (merged && merged < p)) return;
    p += sizeof key - 1;
    while (npuprof_symbols_read_module_(s, &p, end) && p < end && *p == ',') p++;
}

/* The second pass. */
static void npuprof_symbols_write_json_(npuprof_symbols_ *s, npuprof_symbols_json_ *j, npuprof_out_ *out)
{
    uint64_t address = 0;
    size_t length = 0, kept = 0;
    j->ended = false;
    for (j->used = 0; npuprof_symbols_read_piece_(j, kept);) {
        size_t from = 0, at = 0;
        const size_t most = (size_t)npuprof_min_(j->used, NPUPROF_SYMBOLS_MATCH_);
        while ((at = npuprof_symbols_next_(j, at, &address, &length)) < j->used) {
            const npuprof_symbols_name_ *const name = npuprof_symbols_name_of_(s, address);
            if (name) {
                npuprof_out_put_(out, j->piece + from, at - from);
                npuprof_out_escaped_(out, name->text, name->length, true);
                from = at + length;
            }
            at += length;
        }
        size_t whole = j->ended ? j->used : j->used - most;
        if (whole < from) whole = from;
        npuprof_out_put_(out, j->piece + from, whole - from);
        kept = j->used - whole;
    }
}

/* What the writer is given; only who holds the scratch uses it. */
static struct {
    npuprof_symbols_ symbols;
    npuprof_symbols_json_ json;
} npuprof_symbols_job_;

static int npuprof_symbols_write_locked_(npuprof_sink sink)
{
    npuprof_symbols_json_ *const j = &npuprof_symbols_job_.json;
    npuprof_work_ *const w = npuprof_work_begin_(sink);
    if (!w) return ENOMEM;
    const bool begins = fseek(j->file, 0, SEEK_SET) == 0;
    if (begins) npuprof_symbols_write_json_(&npuprof_symbols_job_.symbols, j, &w->out);
    const int error = npuprof_work_finish_(w);
    return !begins || ferror(j->file) ? EIO : error;
}

/* Is it a JSON trace that the library wrote? */
static bool npuprof_symbols_is_json_(const char *path)
{
    static const char begin[] = "{\"traceEvents\":[\n";
    char text[sizeof begin - 1];
    FILE *const file = fopen(path, "rb");
    const bool is_json = file && fread(text, 1, sizeof text, file) == sizeof text &&
        memcmp(text, begin, sizeof text) == 0;
    if (file) fclose(file);
    return is_json;
}

/* Writes a copy of a JSON trace in which automatic spans have the names of their functions. Results as
   npuprof_dump(); NPUPROF_ERR_FORMAT: the file ends too early. */
static npuprof_result npuprof_symbols_name_json_(const npuprof_symbols_options_ *options, const char *input,
                                                 const char *output)
{
    npuprof_symbols_ *const s = &npuprof_symbols_job_.symbols;
    npuprof_symbols_json_ *const j = &npuprof_symbols_job_.json;
    npuprof_result r = NPUPROF_ERR_NO_SPACE;
    memset(&npuprof_symbols_job_, 0, sizeof npuprof_symbols_job_);
    s->options = options;
    j->file = fopen(input, "rb");
    j->piece = (char *)npuprof_os_memory_(NPUPROF_SYMBOLS_PIECE_);
    if (!j->file) r = npuprof_os_result_(errno);
    else if (j->piece) r = npuprof_symbols_collect_json_(s, j) ? NPUPROF_OK : NPUPROF_ERR_FORMAT;
    if (r == NPUPROF_OK) {
        npuprof_symbols_read_modules_(s, j);
        npuprof_symbols_resolve_(s);
        r = npuprof_file_write_by_(output, npuprof_symbols_write_locked_, NULL);
    }
    if (j->file) fclose(j->file);
    if (j->piece) npuprof_os_unmap_(j->piece, NPUPROF_SYMBOLS_PIECE_);
    if (j->tail) npuprof_os_unmap_(j->tail, j->tail_places);
    npuprof_symbols_end_(s);
    return r;
}

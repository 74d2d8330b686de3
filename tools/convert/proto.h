#pragma once   /* SPDX-License-Identifier: MIT */
#include "api.h"

/* Messages of protocol buffers, written into a buffer: the wire format's varints, 64-bit words and byte
   strings. It knows no message of Perfetto. What does not fit into the buffer is left out, and `full` says
   so. Wire format: protobuf.dev/programming-guides/encoding. */

enum {
    NPUPROF_PROTO_VARINT_ = 0, NPUPROF_PROTO_FIXED64_ = 1, NPUPROF_PROTO_BYTES_ = 2,
    NPUPROF_PROTO_VARINT_MAX_ = 10       /* bytes of the longest varint */
};

typedef struct npuprof_proto_ {
    uint8_t *bytes;
    size_t capacity, used;
    bool full;
} npuprof_proto_;

/* Writes a varint and returns its end. The caller has room for NPUPROF_PROTO_VARINT_MAX_ bytes. */
static inline uint8_t *npuprof_proto_put_varint_(uint8_t *p, uint64_t v)
{
    for (; v > 127; v >>= 7) *p++ = (uint8_t)(v & 127) | 128;
    *p++ = (uint8_t)v;
    return p;
}

static inline unsigned npuprof_proto_varint_bytes_(uint64_t v)
{
    unsigned n = 1;
    while (v >>= 7) n++;
    return n;
}

/* Is there room for so many bytes? */
static inline bool npuprof_proto_has_room_(npuprof_proto_ *m, size_t bytes)
{
    if (NPUPROF_UNLIKELY_(bytes > m->capacity - m->used)) m->full = true;
    return !m->full;
}

static void npuprof_proto_tag_(npuprof_proto_ *m, unsigned field, unsigned type)
{
    if (!npuprof_proto_has_room_(m, NPUPROF_PROTO_VARINT_MAX_)) return;
    uint8_t *const p = npuprof_proto_put_varint_(m->bytes + m->used, (uint64_t)field << 3 | type);
    m->used = (size_t)(p - m->bytes);
}

static void npuprof_proto_uint_(npuprof_proto_ *m, unsigned field, uint64_t v)
{
    npuprof_proto_tag_(m, field, NPUPROF_PROTO_VARINT_);
    if (!npuprof_proto_has_room_(m, NPUPROF_PROTO_VARINT_MAX_)) return;
    m->used = (size_t)(npuprof_proto_put_varint_(m->bytes + m->used, v) - m->bytes);
}

/* A fixed64 or a double: its 8 bytes, the lowest first. */
static void npuprof_proto_fixed64_(npuprof_proto_ *m, unsigned field, uint64_t v)
{
    npuprof_proto_tag_(m, field, NPUPROF_PROTO_FIXED64_);
    if (!npuprof_proto_has_room_(m, 8)) return;
    for (int i = 0; i < 8; i++) m->bytes[m->used++] = (uint8_t)(v >> 8 * i);
}

static void npuprof_proto_raw_(npuprof_proto_ *m, const void *bytes, size_t count)
{
    if (!npuprof_proto_has_room_(m, count)) return;
    memcpy(m->bytes + m->used, bytes, count);
    m->used += count;
}

/* Begins a message or string of a length that is not known yet. Returns where its content begins. */
static size_t npuprof_proto_begin_(npuprof_proto_ *m, unsigned field)
{
    npuprof_proto_tag_(m, field, NPUPROF_PROTO_BYTES_);
    if (npuprof_proto_has_room_(m, 1)) m->used++;
    return m->used;
}

/* Ends it: puts the length before the content. */
static void npuprof_proto_end_(npuprof_proto_ *m, size_t begin)
{
    if (m->full) return;
    const size_t length = m->used - begin, more = npuprof_proto_varint_bytes_(length) - 1;
    if (more) {
        if (!npuprof_proto_has_room_(m, more)) return;
        memmove(m->bytes + begin + more, m->bytes + begin, length);
        m->used += more;
    }
    (void)npuprof_proto_put_varint_(m->bytes + begin - 1, length);
}

/* Text as UTF-8; bad bytes become U+FFFD. */
static void npuprof_proto_clean_(npuprof_proto_ *m, const void *text, size_t length)
{
    const uint8_t *p = (const uint8_t *)text, *const end = p + length;
    while (p < end && !m->full) {
        const size_t n = npuprof_utf8_length_(p, (size_t)(end - p));
        npuprof_proto_raw_(m, n ? (const void *)p : "\xEF\xBF\xBD", n ? n : 3);
        p += n ? n : 1;
    }
}

/* A string field. */
static void npuprof_proto_text_(npuprof_proto_ *m, unsigned field, const void *text, size_t length)
{
    const size_t begin = npuprof_proto_begin_(m, field);
    npuprof_proto_clean_(m, text, length);
    npuprof_proto_end_(m, begin);
}

static inline void npuprof_proto_words_(npuprof_proto_ *m, unsigned field, const char *words)
{
    npuprof_proto_text_(m, field, words, strlen(words));
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "work.h"

/* A cache of text: the rows of one site on one track begin alike, with names that need quoting, so the
   beginning is made once and then copied. One place for each hash of the site (w->span_text); a later site
   takes the place. */

/* A use of a site that is no kind: spans with results. */
enum { NPUPROF_SPAN_TEXT_RESULTS_ = 31 };

NPUPROF_HOT_ static inline uint64_t npuprof_span_text_key_(uint32_t tid, uint32_t site, uint32_t kind)
{
    return (uint64_t)tid << 32 | site << 8 | kind;
}

/* The place of a key. It has the text only if its `key` says so. Why not by kind, but for the uses of a site
   beside its own (32 and above): who reads a record knows its site first. */
NPUPROF_HOT_ static inline npuprof_span_text_ *npuprof_span_text_at_(npuprof_work_ *w, uint64_t key)
{
    return &w->span_text[((uint32_t)key >> 8 ^ ((uint32_t)key & 0xE0)) % NPUPROF_SPAN_TEXTS_];
}

/* From here on the writer's output goes into the cache; *aside keeps the real output. */
static inline void npuprof_span_text_begin_(npuprof_work_ *w, npuprof_span_text_ *cached, npuprof_out_ *aside)
{
    *aside = w->out;
    cached->key = 0;
    w->out.bytes = cached->text;
    w->out.capacity = sizeof cached->text;
    w->out.used = 0;
    w->out.error = -1;
}

/* Until here. False: the text is too long for the cache. */
static inline bool npuprof_span_text_end_(npuprof_work_ *w, npuprof_span_text_ *cached, uint64_t key,
                                          const npuprof_out_ *aside)
{
    const bool fits = w->out.flushes == aside->flushes;
    cached->length = (uint32_t)w->out.used;
    cached->last = 0;
    if (fits) cached->key = key;
    w->out = *aside;
    return fits;
}

/* The last so many bytes of the text just cached are what comes after the numbers. */
static inline void npuprof_span_text_split_(npuprof_span_text_ *cached, uint32_t last)
{
    cached->last = last;
    cached->length -= last;
}

/* Room for the cached text, three numbers and its last bytes behind it. */
enum { NPUPROF_SPAN_TEXT_ROOM_ = 2 * NPUPROF_SPAN_TEXT_MAX_ + 3 * NPUPROF_DIGITS_MAX_ };

/* Copies the cached text to p, and returns its end. */
NPUPROF_HOT_ static inline char *npuprof_span_text_copy_(char *p, const npuprof_span_text_ *cached)
{
    const size_t length = cached->length;
    memcpy(p, cached->text, 64);
    if (NPUPROF_UNLIKELY_(length > 64)) memcpy(p + 64, cached->text + 64, sizeof cached->text - 64);
    return p + length;
}

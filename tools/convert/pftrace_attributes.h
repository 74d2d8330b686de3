#pragma once   /* SPDX-License-Identifier: MIT */
#include "pftrace.h"

/* The metadata of the JSON as attributes of the trace, which the viewer's overview lists: one for each value.
   Its key is the path to it in the JSON, such as npuprof.4711.lost.arena_full, where 4711 is the process. Why
   the process is in it: of files that are put together the viewer keeps the last value of a key. What the
   program said by npuprof_metadata() has the program's key alone. trace_attributes.proto */

enum { NPUPROF_PFTRACE_ATTRIBUTES_ = 126 };      /* trace_packet.proto */

typedef struct npuprof_pftrace_attributes_ {
    npuprof_pftrace_ *p;
    char *at;                            /* what is read: JSON of the writer, so it is whole and right */
    npuprof_proto_ path;
    size_t skipped;                      /* bytes of the path that the keys of the program lack */
} npuprof_pftrace_attributes_;

/* A sink in memory, for the JSON. */
typedef struct npuprof_pftrace_text_ { char *bytes; size_t capacity, used; } npuprof_pftrace_text_;

static int npuprof_pftrace_keep_(void *user, const void *bytes, size_t count)
{
    npuprof_pftrace_text_ *const text = (npuprof_pftrace_text_ *)user;
    if (count >= text->capacity - text->used) return ENOSPC;
    memcpy(text->bytes + text->used, bytes, count);
    text->used += count;
    text->bytes[text->used] = 0;
    return 0;
}

/* Reads a string, and writes what it says over it. */
static char *npuprof_pftrace_unescape_(npuprof_pftrace_attributes_ *a, size_t *length)
{
    char *const text = ++a->at, *end = text;
    for (; *a->at != '"'; a->at++) {
        unsigned code;
        if (*a->at == '\\' && *++a->at == 'u') {
            (void)sscanf(a->at + 1, "%4x", &code);         /* below 128: npuprof_out_escaped_() */
            *end++ = (char)code;
            a->at += 4;
        } else {
            *end++ = *a->at;
        }
    }
    a->at++;
    *length = (size_t)(end - text);
    return text;
}

static void npuprof_pftrace_put_attribute_(const npuprof_pftrace_attributes_ *a, const char *text,
                                           size_t length, bool is_number)
{
    npuprof_proto_ *const m = &a->p->event;
    npuprof_pftrace_begin_(a->p);
    const size_t packet = npuprof_proto_begin_(m, NPUPROF_PFTRACE_ATTRIBUTES_);
    const size_t attribute = npuprof_proto_begin_(m, 1);
    npuprof_proto_text_(m, 1, a->path.bytes + a->skipped, a->path.used - a->skipped);
    if (is_number) npuprof_proto_uint_(m, 2, (uint64_t)strtoll(text, NULL, 10));
    else npuprof_proto_text_(m, 3, text, length);
    npuprof_proto_end_(m, attribute);
    npuprof_proto_end_(m, packet);
    npuprof_pftrace_send_whole_(a->p);
}

static void npuprof_pftrace_put_attributes_(npuprof_pftrace_attributes_ *a, unsigned depth);

/* A member of an object or a list, whose key or number goes on the path. */
static void npuprof_pftrace_put_member_(npuprof_pftrace_attributes_ *a, unsigned depth, const char *key,
                                        size_t length)
{
    const size_t used = a->path.used;
    npuprof_proto_raw_(&a->path, ".", 1);
    npuprof_proto_raw_(&a->path, key, length);
    if (depth == 1 && length == 4 && !memcmp(key, "user", 4)) a->skipped = a->path.used + 1;
    npuprof_pftrace_put_attributes_(a, depth);
    a->path.used = used;
    if (depth == 1) a->skipped = 0;
}

/* Reads a value. depth: how many keys lead to it. */
static void npuprof_pftrace_put_attributes_(npuprof_pftrace_attributes_ *a, unsigned depth)
{
    const char open = *a->at;
    size_t length;
    if (open == '{' || open == '[') {
        char number[16];
        a->at++;
        for (unsigned i = 0; *a->at != (open == '{' ? '}' : ']'); i++) {
            if (*a->at == ',') a->at++;
            const char *key = number;
            if (open == '[') {
                length = (size_t)snprintf(number, sizeof number, "%u", i);
            } else {
                key = npuprof_pftrace_unescape_(a, &length);
                a->at++;
            }
            npuprof_pftrace_put_member_(a, depth + 1, key, length);
        }
        a->at++;
    } else if (open == '"') {
        const char *const text = npuprof_pftrace_unescape_(a, &length);
        npuprof_pftrace_put_attribute_(a, text, length, false);
    } else {
        const char *const text = a->at;
        length = strcspn(text, ",]}");
        a->at += length;
        npuprof_pftrace_put_attribute_(a, text, length, strspn(text, "-0123456789") == length);
    }
}

/* All of them. What does not fit into the buffer is left out as a whole. */
static void npuprof_pftrace_attributes_write_(npuprof_pftrace_ *p)
{
    npuprof_work_ *const w = p->work;
    npuprof_pftrace_text_ text = { (char *)p->event.bytes + p->event.capacity, p->event.capacity, 0 };
    const npuprof_out_ aside = w->out;
    npuprof_pftrace_attributes_ a;
    npuprof_out_flush_(&w->out);
    w->out.sink.write = npuprof_pftrace_keep_;
    w->out.sink.user = &text;
    w->out.fresh = true;
    npuprof_json_metadata_(w, NULL, false);
    npuprof_out_flush_(&w->out);
    const bool whole = !w->out.error && text.used;
    w->out.sink = aside.sink;
    w->out.error = aside.error;
    if (!whole) return;
    a.p = p;
    a.at = text.bytes + sizeof "{\"npuprof\":" - 1;
    a.path = p->interned;                /* nothing is interned any more */
    a.path.used = (size_t)snprintf((char *)a.path.bytes, a.path.capacity, "npuprof.%u",
                                   (unsigned)w->image.h->pid);
    a.path.full = false;
    a.skipped = 0;
    npuprof_pftrace_put_attributes_(&a, 0);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "image.h"

/* The arguments of an event, one after the other: each is a unit with its key, type and value, and a string
   goes on in the units behind it. Where they end is checked when the event is decoded (read/cursor.h). */

typedef struct npuprof_value_ {
    uint32_t key, type;                    /* type: NPUPROF_ARG_* */
    uint64_t bits;
    const uint8_t *text;                   /* of a string; not terminated */
    size_t length;
} npuprof_value_;

/* The argument at *u; moves *u behind it. False: there are no more. */
static bool npuprof_args_next_(const npuprof_unit_ **u, const npuprof_unit_ *end, npuprof_value_ *v)
{
    if (*u >= end) return false;
    const uint64_t payload = (*u)->w0 >> NPUPROF_ID_BITS_;
    v->type = (uint32_t)payload & 15;
    v->key = (uint32_t)(payload >> 4) & 0x0FFFFFFFu;
    v->length = (size_t)(payload >> 32);
    v->bits = (*u)->w1;
    v->text = (const uint8_t *)*u + 8;     /* the first 8 bytes are in this unit, the others behind it */
    *u += 1 + (v->length > 8 ? NPUPROF_UNITS_(v->length - 8) : 0);
    return true;
}

/* The integer argument that has this key: its type, and its bits. 0: there is none. */
static inline uint32_t npuprof_args_find_(const npuprof_image_ *im, const npuprof_event_ *ev, const char *key,
                                          uint64_t *bits)
{
    npuprof_value_ v;
    const npuprof_unit_ *u = ev->args;
    while (npuprof_args_next_(&u, ev->args_end, &v)) {
        if (v.type > NPUPROF_ARG_UINT || !npuprof_image_text_is_(im, v.key, key)) continue;
        *bits = v.bits;
        return v.type;
    }
    return 0;
}

/* Is a device span a whole execution? An instruction of one has the argument instruction_index. */
static bool npuprof_args_is_execution_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    uint64_t unused;
    return npuprof_args_find_(im, ev, "instruction_index", &unused) == 0;
}

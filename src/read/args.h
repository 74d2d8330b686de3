#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"
#include "../format/layouts.h"
#include "../format/arena.h"
#include "image.h"
#include "cursor.h"

/* The arguments of an event, one after the other: each is a unit with its key, type and value, and a string
   goes on in the units behind it. Where they end is checked when the event is decoded (read/cursor.h).

   A span may have several lists of them: its own, and one in each RESULT record that follows in its slot,
   up to its end. Those are looked for when the list before is over, chunk by chunk. Time: the records inside
   the span. If a key comes twice, the last one counts. */

typedef struct npuprof_value_ {
    uint32_t key, type;                    /* type: NPUPROF_ARG_* */
    uint64_t bits;
    const uint8_t *text;                   /* of a string; not terminated */
    size_t length;
} npuprof_value_;

typedef struct npuprof_args_walk_ {
    const npuprof_image_ *image;
    const npuprof_unit_ *u, *end;          /* the rest of the list */
    uint32_t chunk, unit;                  /* where the next list may be. chunk: index + 1; 0: nowhere */
    uint64_t position, until;              /* of the span; the ticks of its end */
} npuprof_args_walk_;

static inline npuprof_args_walk_ npuprof_args_begin_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    npuprof_args_walk_ w = { im, ev->args, ev->args_end, 0, 0, ev->position, ev->end };
    if (!ev->results) return w;
    w.chunk = (uint32_t)((ev->locator >> 1) / im->units) + 1;
    w.unit = (uint32_t)((ev->locator >> 1) % im->units);
    if (ev->unfinished) w.until = UINT64_MAX;
    return w;
}

/* May it have arguments of the user's? */
static inline bool npuprof_args_any_(const npuprof_event_ *ev)
{
    return ev->args != ev->args_end || ev->results;
}

/* Goes to the span's next list. False: there are no more. */
NPUPROF_HOT_ static bool npuprof_args_next_list_(npuprof_args_walk_ *w)
{
    const npuprof_image_ *const im = w->image;
    while (w->chunk) {
        const npuprof_chunk_ *const chunk = npuprof_image_chunk_(im, w->chunk - 1);
        const npuprof_unit_ *const units = (const npuprof_unit_ *)(const void *)(chunk + 1);
        const npuprof_unit_ *const end = units + im->units;
        while (w->unit < im->units) {
            const npuprof_unit_ *const head = units + w->unit;
            const uint64_t w0 = npuprof_unit_load_w0_(head);
            const uint32_t id = (uint32_t)w0 & NPUPROF_ID_MASK_, left = (uint32_t)(end - head);
            const bool moved = w->unit < chunk->moved_units;
            if (w0 == 0) break;
            if (id < NPUPROF_CONTROL_ && !moved && npuprof_chunk_start_ticks_(chunk, w0) > w->until) {
                w->chunk = 0;
                return false;
            }
            const npuprof_unit_ *const u =
                npuprof_cursor_skip_controls_(head + (moved && left > 1 ? 2 : 1), end);
            const npuprof_unit_ *const behind = npuprof_cursor_skip_args_(u, end);
            w->unit = (uint32_t)(behind - units);
            if (id == NPUPROF_CONTROL_RESULT_ && npuprof_unit_load_w1_(head) == w->position) {
                w->u = u;
                w->end = behind;
                return true;
            }
        }
        w->chunk = npuprof_image_next_chunk_(im, w->chunk - 1);
        w->unit = 0;
    }
    return false;
}

NPUPROF_HOT_ static inline uint32_t npuprof_args_key_(uint64_t w0)
{
    return (uint32_t)(w0 >> (NPUPROF_ID_BITS_ + 4)) & 0x0FFFFFFFu;
}

/* Is the argument at a unit an integer that is not negative, of this one unit? */
NPUPROF_HOT_ static inline bool npuprof_args_is_count_(const npuprof_unit_ *u)
{
    const uint64_t length = UINT64_MAX << (NPUPROF_ID_BITS_ + 32), type = (uint64_t)15 << NPUPROF_ID_BITS_;
    const uint64_t form = (u->w0 & (length | type)) >> NPUPROF_ID_BITS_;
    return form - NPUPROF_ARG_INT <= NPUPROF_ARG_UINT - NPUPROF_ARG_INT && !(u->w1 >> 63);
}

/* The argument at a unit. Returns the end of its units. */
NPUPROF_HOT_ static inline const npuprof_unit_ *npuprof_args_decode_(const npuprof_unit_ *u,
                                                                     npuprof_value_ *v)
{
    const uint64_t w0 = u->w0, payload = w0 >> NPUPROF_ID_BITS_;
    v->type = (uint32_t)payload & 15;
    v->key = npuprof_args_key_(w0);
    v->length = (size_t)(payload >> 32);
    v->bits = u->w1;
    v->text = (const uint8_t *)u + 8;      /* the first 8 bytes are in this unit, the others behind it */
    return u + 1 + npuprof_cursor_arg_more_(w0);
}

/* The next argument. False: there are no more. */
NPUPROF_HOT_ static inline bool npuprof_args_next_(npuprof_args_walk_ *w, npuprof_value_ *v)
{
    while (w->u >= w->end)
        if (!w->chunk || !npuprof_args_next_list_(w)) return false;
    w->u = npuprof_args_decode_(w->u, v);
    return true;
}

/* The argument that has this key. False: there is none, and *found is all 0. */
static inline bool npuprof_args_find_value_(const npuprof_image_ *im, const npuprof_event_ *ev,
                                            const char *key, npuprof_value_ *found)
{
    npuprof_args_walk_ w = npuprof_args_begin_(im, ev);
    npuprof_value_ v;
    bool any = false;
    memset(found, 0, sizeof *found);
    while (npuprof_args_next_(&w, &v)) {
        if (!npuprof_image_text_is_(im, v.key, key)) continue;
        *found = v;
        any = true;
    }
    return any;
}

/* The integer argument that has this key: its type, and its bits. 0: there is none. */
static inline uint32_t npuprof_args_find_(const npuprof_image_ *im, const npuprof_event_ *ev, const char *key,
                                          uint64_t *bits)
{
    npuprof_value_ v;
    if (!npuprof_args_find_value_(im, ev, key, &v) || v.type > NPUPROF_ARG_UINT) return 0;
    *bits = v.bits;
    return v.type;
}

/* Is a device span a whole execution? An instruction of one has the argument instruction_index. */
static bool npuprof_args_is_execution_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    uint64_t unused;
    return npuprof_args_find_(im, ev, "instruction_index", &unused) == 0;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../numbers/hash.h"
#include "../numbers/digits.h"
#include "../format/arena.h"
#include "../os/common.h"
#include "../arena/state.h"
#include "../arena/thread.h"
#include <string.h>

/* An image to read: the live arena, or one that was loaded. All outputs and reports read through the
   functions of this room, so there is one reader.

   An image may be damaged: every size, number and offset in it is checked before it is used, and what is
   wrong ends the walk. A live image may change while it is read: each function takes what is published with
   an acquire, and nothing else. Only readers write `first_chunk` of a slot and `next` of a chunk
   (read/survey.h). */
typedef struct npuprof_image_ {
    const npuprof_header_ *h;
    const uint8_t *table, *chunks;         /* chunk number i is at chunks + i * chunk_bytes */
    const uint32_t *pages;                 /* live: index + 1 of the chunks where the table goes on */
    const uint32_t *site_ids;              /* ids of the call sites' entries, if loaded; else NULL */
    const uint8_t *slots;                  /* the slots' unit numbers count from here */
    uint64_t slots_bytes;
    /* the next chunk of each chunk, if loaded; NULL: the chunks say it */
    const uint32_t *next;
    uint32_t units;                        /* in a chunk */
    uint32_t table_used, chunk_total, threads;
    uint32_t slot_first;                   /* unit number of the first slot */
    uint32_t slot_count;                   /* 0, or, if loaded: its slots are sorted by tid and context */
    /* events before and behind are not shown; a later end is none yet */
    uint64_t clear_ticks, last_ticks;
    uint64_t open_until;                   /* host ticks where spans end that are still open */
    uint64_t multiplier;                   /* ns = ticks * multiplier >> shift */
    unsigned shift, left;                  /* left: 64 - shift */
    /* up to these, ns is the high half of (ticks << left) * multiplier */
    uint64_t fast_ticks;
    /* where the trace begins: ns after the first anchor, 0 or negative */
    int64_t origin_ns;
    uint64_t events;
    uint32_t kinds;                        /* bit k: there are events of kind k */
    uint64_t lost[NPUPROF_LOST_COUNT];
    uint64_t damaged;                      /* places that cannot be read, if loaded */
    bool in_use;                           /* loaded from a file that another process goes on writing, */
    uint64_t changed;                      /* and so many of its chunks changed while they were read */
    npuprof_host_anchor_ closing;          /* the newest clock anchor */
    int doubt;                             /* NPUPROF_DOUBT_*: do the clocks contradict each other? */
    uint64_t doubt_ns;                     /* and by how much, between the first anchor and that one */
} npuprof_image_;

/* See rate.h. */
enum { NPUPROF_DOUBT_NONE_, NPUPROF_DOUBT_SLEPT_, NPUPROF_DOUBT_REPLACED_, NPUPROF_DOUBT_STANDS_ };

/* The image to read instead of the live arena; NULL: there is none. tools/convert sets it, while it
   holds the lock of the readers; write/files.h clears it at exit. */
static const npuprof_image_ *npuprof_image_given_;

/* Events of the live arena that began before or behind these ticks are not shown, beside those that
   npuprof_clear() forgot; 0: there is no such limit. For the one thread that writes a part of the trace. */
typedef struct npuprof_image_window_ {
    uint64_t since, until;
    uintptr_t of;                          /* that thread; stored with release behind the others */
} npuprof_image_window_;
static npuprof_image_window_ npuprof_image_part_;

static void npuprof_image_limit_(uint64_t since, uint64_t until)
{
    npuprof_image_part_.since = since;
    npuprof_image_part_.until = until;
    NPUPROF_STORE_RELEASE_(&npuprof_image_part_.of, since || until ? npuprof_slot_me_() : 0);
}

/* The limits for the calling thread. */
static npuprof_image_window_ npuprof_image_limits_(void)
{
    static const npuprof_image_window_ none = { 0, 0, 0 };
    return NPUPROF_LOAD_ACQUIRE_(&npuprof_image_part_.of) == npuprof_slot_me_() ? npuprof_image_part_ : none;
}

/* A decoded record. */
typedef struct npuprof_event_ {
    uint32_t kind, tid, site, name, category, track;
    uint64_t position;                     /* in the slot's stream: the same each time the record is read */
    uint64_t start, end;                   /* host ticks; of a device span: device ticks */
    uint64_t host_ticks;                   /* when the record was written */
    uint64_t value, second;                /* by kind */
    /* of a memory pool: bytes that came or went; 0: only the state is known */
    int64_t change;
    bool unfinished, cut, has_link;
    bool results;                          /* more arguments follow, in RESULT records */
    uint32_t device, pe, epoch, flags;
    uint32_t unknown;                      /* units of it with control ids of a newer version */
    npuprof_link_ link;
    const npuprof_unit_ *args, *args_end;
    uint64_t locator;                      /* where the record is: npuprof_cursor_decode_at_() */
} npuprof_event_;

NPUPROF_HOT_ static const npuprof_chunk_ *npuprof_image_chunk_(const npuprof_image_ *im, uint32_t index)
{
    return (const npuprof_chunk_ *)(const void *)(im->chunks + (size_t)index * im->h->chunk_bytes);
}

/* The chunk behind this one in its slot, index + 1; 0: there is none. */
static uint32_t npuprof_image_next_chunk_(const npuprof_image_ *im, uint32_t index)
{
    const uint32_t next =
        im->next ? im->next[index] : NPUPROF_LOAD_ACQUIRE_(&npuprof_image_chunk_(im, index)->next);
    return next <= im->chunk_total ? next : 0;
}

/* Bytes of the table that are in use.
   Why not im->table_used of a live arena: a record newer than that may name what lies behind it. */
NPUPROF_HOT_ static uint32_t npuprof_image_table_used_(const npuprof_image_ *im)
{
    return im->next ? im->table_used : NPUPROF_LOAD_ACQUIRE_(&im->h->table_used);
}

/* Where an offset of the table lies that is below table_used. */
NPUPROF_HOT_ static const npuprof_entry_ *npuprof_image_table_at_(const npuprof_image_ *im, uint64_t at)
{
    const uint8_t *place = im->table + at;
    if (NPUPROF_UNLIKELY_(at >= im->h->table_bytes)) {
        const uint32_t beyond = (uint32_t)at - im->h->table_bytes, page = beyond / im->h->chunk_bytes;
        place = im->chunks + (size_t)(NPUPROF_LOAD_ACQUIRE_(&im->pages[page]) - 1) * im->h->chunk_bytes;
        place += beyond % im->h->chunk_bytes;
    }
    return (const npuprof_entry_ *)(const void *)place;
}

/* The table's entry `id`, if it is of this type and at least so many bytes long; otherwise NULL. */
NPUPROF_HOT_ static const npuprof_entry_ *npuprof_image_entry_(const npuprof_image_ *im, uint32_t id,
                                                               uint32_t type, size_t bytes)
{
    const uint64_t at = (uint64_t)id * im->h->table_unit;
    if (id == 0 || at + bytes > npuprof_image_table_used_(im)) return NULL;
    const npuprof_entry_ *e = npuprof_image_table_at_(im, at);
    /* Why acquire: who adds an entry stores its type last. */
    return NPUPROF_LOAD_ACQUIRE_(&e->type_units) >> 24 == type ? e : NULL;
}

/* A call site by its number, or NULL. */
NPUPROF_HOT_ static const npuprof_site_entry_ *npuprof_image_site_(const npuprof_image_ *im, uint32_t number)
{
    if (number == 0 || number > NPUPROF_LOAD_(&im->h->sites)) return NULL;
    const uint32_t id = im->site_ids ? im->site_ids[number] : npuprof_table_site_id_(number);
    return (const npuprof_site_entry_ *)(const void *)npuprof_image_entry_(im, id, NPUPROF_ENTRY_SITE,
                                                                           sizeof(npuprof_site_entry_));
}

/* A string of the table; "" for id 0 and for a damaged one. */
static const char *npuprof_image_text_(const npuprof_image_ *im, uint32_t id, size_t *length)
{
    const npuprof_entry_ *e = npuprof_image_entry_(im, id, NPUPROF_ENTRY_STRING, sizeof *e);
    *length = 0;
    if (!e || (uint64_t)id * im->h->table_unit + sizeof *e + e->a > npuprof_image_table_used_(im)) return "";
    *length = e->a;
    return (const char *)(e + 1);
}

/* Are two strings of the table the same? Why not by id alone: two threads may have added one string twice. */
static inline bool npuprof_image_same_text_(const npuprof_image_ *im, uint32_t a, uint32_t b)
{
    size_t length, other_length;
    if (a == b) return true;
    const char *const text = npuprof_image_text_(im, a, &length);
    const char *const other = npuprof_image_text_(im, b, &other_length);
    return length == other_length && memcmp(text, other, length) == 0;
}

static inline bool npuprof_image_text_is_(const npuprof_image_ *im, uint32_t id, const char *text)
{
    size_t length;
    const char *s = npuprof_image_text_(im, id, &length);
    return length == strlen(text) && memcmp(s, text, length) == 0;
}

/* Walks the table's entries of a type. *id: 0 before the first one. NULL: there are no more. */
static const npuprof_entry_ *npuprof_image_next_entry_(const npuprof_image_ *im, uint32_t type, size_t bytes,
                                                       uint32_t *id)
{
    const uint32_t unit = im->h->table_unit;
    for (uint32_t at = *id ? *id * unit : im->h->table_first;;) {
        at = npuprof_table_past_head_(im->h, at);
        if (at >= im->table_used) return NULL;
        const npuprof_entry_ *e = npuprof_image_table_at_(im, at);
        const uint32_t type_units = NPUPROF_LOAD_ACQUIRE_(&e->type_units), left = im->table_used - at;
        if (!(type_units & 0xFFFFFFu)) return NULL;    /* it is being added right now */
        at += (type_units & 0xFFFFFFu) * unit;
        *id = at / unit;
        if (type_units >> 24 == type && bytes <= left) return e;
    }
}

/* The id that follows from the arena's seed for a record: never 0, and the same each time it is read. */
static inline uint64_t npuprof_image_span_id_(const npuprof_image_ *im, uint32_t tid, uint64_t position)
{
    const uint64_t id =
        npuprof_hash_mix_(im->h->seed_low ^ npuprof_hash_mix_((uint64_t)tid << 44 ^ position));
    return id ? id : 1;
}

/* The id of a trace as 32 digits: TRACEPARENT's, else the arena's seed and the id of its root span. */
static inline void npuprof_image_trace_id_(const npuprof_image_ *im, uint32_t tid, uint64_t root,
                                           char digits[33])
{
    const uint64_t id = npuprof_image_span_id_(im, tid, root);
    npuprof_digits_hex_text_(digits, im->h->seed_high);
    npuprof_digits_hex_text_(digits + 16, id);
    if (im->h->traceparent[0]) memcpy(digits, im->h->traceparent + 3, 32);
}

/* Does an arrow lead to this device span? It begins in the span that submitted the job, which a clear may
   have forgotten. */
static inline bool npuprof_image_has_arrow_(const npuprof_image_ *im, const npuprof_event_ *ev)
{
    return ev->has_link && ev->link.ticks >= im->clear_ticks;
}

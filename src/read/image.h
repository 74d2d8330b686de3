#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "../format/arena.h"
#include "../arena/state.h"

/* An image to read, live or loaded: every output and report goes through this. Sizes are checked before use; what is wrong ends
   the walk. */
typedef struct npuprof_image_ {
    const npuprof_header_ *h;
    const uint8_t *table, *chunks;         /* chunk number i lies at chunks + i * chunk_bytes */
    const uint8_t *slots;                  /* what the slots' unit numbers count from */
    uint64_t slots_bytes;
    const uint32_t *next;                  /* a loaded image's next chunks; NULL: in the chunks' heads */
    uint32_t units, table_used, chunk_total, threads;
    uint32_t slot_first, slot_count;       /* slot_count: of a loaded image, whose slots are sorted by tid and context */
    uint64_t clear_ticks, last_ticks;      /* events outside are not shown; ends beyond count as not yet */
    uint64_t open_until;                   /* host ticks: where spans end that are still open */
    uint64_t multiplier;                   /* ns = ticks * multiplier >> shift */
    unsigned shift, left;                  /* left: 64 - shift */
    uint64_t quick_ticks;                  /* up to these it is the upper half of (ticks << left) * multiplier */
    int64_t origin_ns;                     /* of the trace: ns after the first anchor, 0 or negative */
    uint64_t events;
    uint32_t kinds;                        /* bit k: there are events of kind k, so that walks for them can be left out */
    uint64_t lost[NPUPROF_LOST_COUNT];
    uint64_t damaged;                      /* places of a loaded image that cannot be read */
    uint64_t changed;                      /* chunks of a running process's file that it took for newer records meanwhile */
    bool in_use;                           /* a process goes on writing into the file */
    npuprof_host_anchor_ closing;          /* the newest clock anchor */
} npuprof_image_;

/* What to read in place of the live arena, or NULL. Nothing here sets it: tools/convert does. */
static const npuprof_image_ *npuprof_image_given_;

/* A decoded record. */
typedef struct npuprof_event_ {
    uint32_t kind, tid, site, name, category, track;
    uint64_t position;                     /* in the slot's stream; names the event for ever */
    uint64_t start, end;                   /* host ticks; of a device span: device ticks */
    uint64_t host_ticks;                   /* when the record was written */
    uint64_t value, second;                /* by kind */
    int64_t change;                        /* of a memory pool: bytes that came or went; 0 = only the state is known */
    bool unfinished, cut, has_link;
    uint32_t device, pe, epoch, flags;
    npuprof_link_ link;
    const npuprof_unit_ *args, *args_end;
    uint64_t locator;                      /* where it lies: to decode it again */
} npuprof_event_;

typedef struct npuprof_cursor_ {
    const npuprof_image_ *image;
    uint32_t chunk, unit;                  /* chunk: index + 1 */
    uint32_t tid;
    uint32_t left;                         /* chunks to walk before it stops */
    bool first;
    uint32_t plain_begin, plain_count;     /* units of the chunk that may be plain ones: not moved, not the last */
    const npuprof_unit_ *units;
    uint64_t base, first_position;
    uint64_t clear_ticks, last_ticks;      /* of plain ones: the image's, the last without bit 63, which an end means something else by */
} npuprof_cursor_;

/* A record of one unit: a closed span, or an event, by its site. What most are. */
typedef struct npuprof_plain_ { uint64_t start, end, position; uint32_t site; } npuprof_plain_;

static const npuprof_chunk_ *npuprof_image_chunk_(const npuprof_image_ *im, uint32_t index)
{
    return (const npuprof_chunk_ *)(const void *)(im->chunks + (size_t)index * im->h->chunk_bytes);
}
/* The slot's chunk behind this one, index + 1; 0: there is none. */
static uint32_t npuprof_image_next_chunk_(const npuprof_image_ *im, uint32_t index)
{
    const uint32_t next = im->next ? im->next[index] : NPUPROF_LOAD_ACQUIRE_(&npuprof_image_chunk_(im, index)->next);
    return next <= im->chunk_total ? next : 0;
}
/* Bytes of the table that are in use. Why not im->table_used of a live arena: what a new record names may lie behind it. */
static uint32_t npuprof_image_table_used_(const npuprof_image_ *im) { return im->next ? im->table_used : NPUPROF_LOAD_ACQUIRE_(&im->h->table_used); }
static const npuprof_entry_ *npuprof_image_entry_(const npuprof_image_ *im, uint32_t id, uint32_t type, size_t bytes)
{
    const uint64_t at = (uint64_t)id * im->h->table_unit;
    if (id == 0 || at + bytes > npuprof_image_table_used_(im)) return NULL;
    const npuprof_entry_ *e = (const npuprof_entry_ *)(const void *)(im->table + at);
    return NPUPROF_LOAD_ACQUIRE_(&e->type_units) >> 24 == type ? e : NULL;      /* acquire: the type is stored last */
}
/* A site by its number, or NULL. */
static const npuprof_pair_entry_ *npuprof_image_site_(const npuprof_image_ *im, uint32_t number)
{
    if (number == 0 || (uint64_t)number * 4 + npuprof_image_table_used_(im) > im->h->table_bytes) return NULL;
    const uint32_t id = NPUPROF_LOAD_ACQUIRE_(npuprof_table_site_id_at_(im->table, im->h, number));
    return (const npuprof_pair_entry_ *)(const void *)npuprof_image_entry_(im, id, NPUPROF_ENTRY_SITE, sizeof(npuprof_pair_entry_));
}
/* A string of the table; "" for id 0 or a damaged one. */
static const char *npuprof_image_text_(const npuprof_image_ *im, uint32_t id, size_t *length)
{
    const npuprof_entry_ *e = npuprof_image_entry_(im, id, NPUPROF_ENTRY_STRING, sizeof *e);
    *length = 0;
    if (!e || (uint64_t)id * im->h->table_unit + sizeof *e + e->a > npuprof_image_table_used_(im)) return "";
    *length = e->a;
    return (const char *)(e + 1);
}
/* The table's entries of a type, one after the other: 0 before the first, NULL after the last. */
static const npuprof_entry_ *npuprof_image_next_entry_(const npuprof_image_ *im, uint32_t type, size_t bytes, uint32_t *id)
{
    const uint32_t unit = im->h->table_unit, end = im->table_used / unit;
    if (*id == 0) *id = (im->h->bucket_count * 4 + unit - 1) / unit;
    while (*id < end) {
        const uint32_t at = *id;
        const npuprof_entry_ *e = (const npuprof_entry_ *)(const void *)(im->table + (size_t)at * unit);
        const uint32_t type_units = NPUPROF_LOAD_ACQUIRE_(&e->type_units);
        if (!(type_units & 0xFFFFFFu)) break;      /* just being added */
        *id += type_units & 0xFFFFFFu;
        if (type_units >> 24 == type && (uint64_t)at * unit + bytes <= im->table_used) return e;
    }
    return NULL;
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "loaded.h"
#include "elf.h"
#include "cells.h"

/* The arena that is made of a firmware's image, and its table of names.
   Data: npuprof_expander_ holds all that the expansion knows; one thread uses it, and it lies in the memory
   of the arena being made. Entries are only added. This part knows no cell. */

/* A record of the firmware. */
typedef struct npuprof_expand_item_ {
    uint32_t cell, context, kind;
    uint32_t number;                       /* from 1, whose name the record has; 0: it has its own */
    uint32_t name, category, track, file;  /* ids of strings; 0: none */
    uint32_t line;
    uint64_t start, end, values[3];
    uint64_t position;                     /* in the slot's stream, once it is written */
    uint32_t around, root;                 /* number in its context, from 1, of the span around it; of its
                                              trace's root */
    npuprof_unit_ *link;                   /* of a sampled device span: the units of its link, once written */
    uint32_t missing;                      /* a gap: so many cells; 0: it is a record */
    uint32_t kept;                         /* the next one in a list of `kept`, from 1; 0: the last */
    const struct npuprof_replay_drawn_ *drawn;   /* a device span that replay.h drew; NULL: it is a record */
    bool open, cut, warm_up;
    bool is_old;                           /* a kept note of a ring, from before all that is not kept there:
                                              by `end` as they came */
} npuprof_expand_item_;

/* A device span that the host drew of a raw record. */
typedef struct npuprof_replay_drawn_ {
    uint64_t what;                         /* the payload of its DEVICE unit */
    uint32_t host;                         /* the cell of its host span, + 1; 0: none */
    uint32_t units;                        /* of its arguments */
    npuprof_unit_ unit[30];
} npuprof_replay_drawn_;

/* A device of the firmware. */
typedef struct npuprof_expand_device_info_ {
    uint32_t id;                           /* of its entry; 0: it was not met yet */
    uint32_t bits, epoch;                  /* of its counter; the newest epoch */
    uint64_t wraps;                        /* in that epoch */
    bool may_stand;                        /* while time goes on */
} npuprof_expand_device_info_;

/* A clock anchor that the target took: see host_time.h. */
typedef struct npuprof_expand_said_anchor_ {
    npuprof_host_anchor_ is;
    uint32_t cell;
} npuprof_expand_said_anchor_;
/* Its record has at least a head, two cells of its key, and two of its text. */
enum { NPUPROF_EXPAND_ANCHOR_CELLS_ = 5 };

enum { NPUPROF_EXPAND_KEPT_ = 16384, NPUPROF_EXPAND_LAPS_ = 0x1FFF };   /* LAPS: bits of `used` that count */

typedef struct npuprof_expander_ {
    const npuprof_elf_ *elf;
    const npuprof_expand_cells_ *g;
    uint32_t pointer_bytes;
    uint64_t near_address;                 /* all addresses of the target are near this one */
    npuprof_header_ *h;                    /* of the arena being made */
    uint8_t *table;
    size_t chunks;                         /* so many fit */
    npuprof_expand_item_ *list;            /* the records, at the end by context and start */
    uint32_t record_count, room;           /* room: how many the list has space for */
    uint32_t begin[257];                   /* where each context begins in the list, and the end */
    uint32_t tid[256];                     /* of a context's slot */
    uint32_t *place;                       /* of a cell: the event there, by its number in the list, from 1 */
    uint32_t *results;                     /* of a cell: the next one with its span's results, + 1; 0: none */
    uint32_t refs, foreign;                /* references to call sites; those that lead to none */
    uint32_t anchors;                      /* how many the target took; once sorted, each once */
    npuprof_expand_said_anchor_ *anchor;
    uint32_t rate_ppb;                     /* what the target says of its rate, if rate_is_said */
    bool rate_is_said;
    uint64_t host_error_ns;                /* of all times, by the anchors; UINT64_MAX: nothing bounds them */
    uint32_t task[256];                    /* of a context: the system's number; 0: not known */
    uint32_t *names;                       /* of the numbers, 65536; 0: none */
    uint64_t slept;                        /* ticks that the clock stood still, up to the record being read */
    uint32_t no_begin;                     /* ends of spans whose beginning is missing */
    uint32_t kept[NPUPROF_EXPAND_KEPT_];   /* see ring.h: lists of records that are kept, by start */
    uint32_t back, still;                  /* stamps before the one before; stamps, if all are the same */
    uint32_t buckets[1024];                /* of the entries below, by hash */
    npuprof_expand_device_info_ devices[256];
} npuprof_expander_;

/* A new entry, empty, and its id. NULL: the table is full. */
static npuprof_entry_ *npuprof_expand_new_(npuprof_expander_ *x, uint32_t type, size_t bytes, uint32_t *id)
{
    const uint32_t units = (uint32_t)((bytes + 15) / 16);
    /* Why 64 KiB less: there the index of the call sites will lie. */
    if (x->h->table_used + (uint64_t)units * 16 + 65536 > x->h->table_bytes) return NULL;
    npuprof_entry_ *const e = (npuprof_entry_ *)(void *)(x->table + x->h->table_used);
    *id = x->h->table_used / 16;
    e->type_units = units | type << 24;
    x->h->table_used += units * 16;
    return e;
}

/* Is it such an entry, with these bytes behind its head? */
static bool npuprof_expand_is_entry_(const npuprof_entry_ *e, uint32_t type_units, uint32_t hash, uint32_t a,
                                     const void *bytes, size_t count)
{
    const uint32_t own = type_units >> 24 == NPUPROF_ENTRY_SITE ? e->a & 0xFF : e->a;
    return e->hash == hash && e->type_units == type_units && own == a && memcmp(e + 1, bytes, count) == 0;
}

/* The id of an entry with these bytes behind its head, found or made. A call site gets the next number. 0:
   the table is full. */
static uint32_t npuprof_expand_entry_(npuprof_expander_ *x, uint32_t type, uint32_t a, const void *bytes,
                                      size_t count)
{
    const bool is_string = type == NPUPROF_ENTRY_STRING;       /* has a NUL behind it */
    const size_t size = sizeof(npuprof_entry_) + count + is_string;
    const uint32_t hash = npuprof_hash_text_((const char *)bytes, count) ^ type ^ a << 8;
    const uint32_t type_units = (uint32_t)((size + 15) / 16) | type << 24;
    uint32_t *const bucket = &x->buckets[hash % 1024], id;
    for (id = *bucket; id;) {
        const npuprof_entry_ *const e = (const npuprof_entry_ *)(const void *)(x->table + (size_t)id * 16);
        if (npuprof_expand_is_entry_(e, type_units, hash, a, bytes, count)) return id;
        id = e->next;
    }
    npuprof_entry_ *const e = npuprof_expand_new_(x, type, size, &id);
    if (!e) return 0;
    e->hash = hash;
    e->next = *bucket;
    e->a = type == NPUPROF_ENTRY_SITE ? a | ++x->h->sites << 8 : a;
    memcpy(e + 1, bytes, count);
    *bucket = id;
    return id;
}

static uint32_t npuprof_expand_text_(npuprof_expander_ *x, const char *text, size_t length)
{
    return npuprof_expand_entry_(x, NPUPROF_ENTRY_STRING, (uint32_t)length, text, length);
}

/* The text at an address of the target, up to the longest name. One that is not in the ELF file becomes "@"
   and the address. */
static uint32_t npuprof_expand_target_text_(npuprof_expander_ *x, uint64_t address)
{
    uint64_t left;
    char number[24];
    const char *text = (const char *)npuprof_elf_bytes_at_(x->elf, address, &left);
    const size_t limit = text ? (size_t)npuprof_min_(left, NPUPROF_TABLE_STRING_LIMIT_) : 0;
    const char *end = text ? (const char *)memchr(text, 0, limit) : NULL;
    if (!end) {
        number[0] = '@';
        npuprof_digits_hex_text_(number + 1, address);
        size_t zeros = 0;
        while (zeros < 8 && number[1 + zeros] == '0') zeros++;
        memmove(number + 1, number + 1 + zeros, 17 - zeros);
        text = number;
        end = number + strlen(number);
    }
    return npuprof_expand_text_(x, text, (size_t)(end - text));
}

/* A 32-bit word of the target as an address. */
static uint64_t npuprof_expand_target_address_(const npuprof_expander_ *x, uint32_t low)
{
    if (x->pointer_bytes <= 4) return low;
    return x->near_address + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)x->near_address);
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/hot.h"
#include "../format/arena.h"

/* An open span: its token, which is its place in the slot's stream in bytes, a multiple of 16 and never 0, and these flags. A scope
   has the token without them, so the flags send its end to the slow path. */
enum { NPUPROF_TOKEN_BY_HAND_ = 1,       /* PROF_BEGIN's */
       NPUPROF_TOKEN_MOVED_ = 2,         /* it was moved to this chunk: number n of the open spans lies in its units 2n - 2 and 2n - 1 */
       NPUPROF_TOKEN_SLOW_ = 4,          /* the clock takes more than an instruction */
       NPUPROF_TOKEN_FLAGS_ = 15 };

typedef struct npuprof_slot_ {
    npuprof_slot_head_ head;
    /* what only the recording process uses */
    uint32_t owned, busy;          /* busy: a record is in the making */
    npuprof_unit_ *cursor, *end;
    uint64_t deadline;             /* the last start, in ticks, that the current chunk can hold */
    uint64_t position;             /* of the stream where a first chunk begins: after a clear it goes on */
    uintptr_t token_zero;          /* a token + this is the address of its unit in the current chunk */
    npuprof_token_ *top;           /* the newest open span */
    struct npuprof_slot_ *nested;  /* for a signal handler that interrupts this one */
    uint64_t by_hand_bits;         /* PROF_BEGIN, newest in bit 0: was it recorded? */
    uint32_t by_hand_count, named_by;  /* named_by: which of the owners gave the name */
    npuprof_token_ open[1];        /* [0] is nobody's token; behind it as many as a chunk has units: there is no limit to check */
} npuprof_slot_;

enum { NPUPROF_SLOT_CONTEXTS_ = 8 };    /* of a thread: its own and those of signal handlers that interrupt each other */

typedef struct npuprof_arena_categories_ {
    int mode;                      /* 0 all, 1 only these, -1 all but these */
    char words[256];               /* with commas between */
    uint32_t seen;                 /* bit n: the list's n-th was met, n < 32 */
} npuprof_arena_categories_;

enum { NPUPROF_PAUSE_NO_ENTRY_ = 1 };   /* a pause that found no room in the table; no entry has this id */

/* The one arena of this file, and what the process knows about it. */
typedef struct npuprof_arena_state_ {
    uint8_t *base;
    npuprof_header_ *header;
    uint8_t *table;
    uint32_t *buckets;
    uint32_t *queue;               /* of retired chunks: see npuprof_chunk_retire_ */
    uint8_t *chunks;
    uint64_t chunk_free;           /* chunks that were given back: see npuprof_chunk_free_ */
    uint32_t units;                /* in a chunk */
    int when_full;
    npuprof_sink sink;             /* of NPUPROF_STREAM */
    uint32_t recycling, frozen;    /* threads that take retired chunks; a reader forbids it */
    uint32_t exchanging;           /* threads that are changing to a new chunk */
    uint32_t failed;               /* those of them that found none since the last one was given back; above bit 16 how often one was */
    uintptr_t drainer;             /* the thread that hands chunks to the sink; 0 = none */
    uint32_t keeping_time;         /* a clock anchor is being stored */
    int level;                     /* 0 = stopped */
    uint32_t paused;               /* 0, or the entry of the pause, or NPUPROF_PAUSE_NO_ENTRY_ */
    npuprof_arena_categories_ lists[4];  /* Why several: a thread may still be reading the one before */
    npuprof_arena_categories_ *categories;
    uint32_t list_number;
    char output_path[1024];
    char categories_from[24];      /* the variable they came from, or empty */
    bool write_at_exit, forked, started;      /* started: npuprof_start() was called */
    uint64_t first_position;       /* where the streams of this process's slots begin: behind those of a parent's */
    uint32_t own_path;             /* hash of the path this arena wrote last */
    char arena_path[1024];         /* pattern of the mapped file, or empty */
    size_t mapped_bytes;           /* of the mapped arena */
    int mapped_fd;                 /* keeps its lock */
    int env_when_full;             /* NPUPROF_WHEN_FULL, -1: unset */
    bool env_populate;             /* NPUPROF_POPULATE */
    size_t env_arena_bytes;        /* NPUPROF_ARENA_BYTES, 0: unset */
    uintptr_t setting_up;          /* the thread that does */
    uintptr_t writer;              /* the thread that writes or reports; 0 = none */
    int writer_whole;              /* see npuprof_os_hold_cancel_ */
} npuprof_arena_state_;

static npuprof_arena_state_ npuprof_s_;
static uint32_t npuprof_generation_;      /* of arena and category settings, 31 bits; call sites compare theirs */
static uint32_t npuprof_fast_generation_ = UINT32_MAX;   /* the same while the gate is open and the clock is one instruction, else no call site's */
static uint32_t npuprof_setup_state_;     /* 0 not yet, 1 being set up, 2 ready, 3 the arena is the parent process's mapped file */
#ifndef NPUPROF_STATIC
int npuprof_gate_ = NPUPROF_GATE_AT_START_;
#endif

/* Several implementations in one process (a program's, a plugin's) each have names of their own, or the dynamic linker gives all of them
   those of the first that exports them. That one leads. The others follow: they set nothing up, read no environment, write nothing,
   and what their libraries record is in the leader's arena. A library whose functions were bound to it when it was linked
   (-Bsymbolic-functions) calls the follower's with the leader's gate open; they count what they lose where the leader counts. */
#ifdef NPUPROF_STATIC
static uint64_t *npuprof_lost_;
#else
extern uint64_t *npuprof_lost_;
uint64_t *npuprof_lost_;           /* the leader's header.lost, or NULL. Only implementations know this name */
#endif
#if NPUPROF_SHARED_
extern uint64_t *npuprof_own_lost_ NPUPROF_ATTRIBUTE_((alias("npuprof_lost_"), visibility("hidden")));
static bool npuprof_arena_has_leader_(void)
{
    uint64_t **leading = &npuprof_lost_;
    __asm__("" : "+r"(leading));   /* Why: compilers take two names for two variables */
    return leading != &npuprof_own_lost_;
}
#else
static bool npuprof_arena_has_leader_(void) { return false; }
#endif

static uint64_t npuprof_static_arena_[(NPUPROF_ARENA_BYTES) / 8] NPUPROF_ALIGNED_;
static uint64_t npuprof_scratch_[(NPUPROF_SCRATCH_BYTES) / 8] NPUPROF_ALIGNED_;

static npuprof_slot_ npuprof_slot_none_ = { { 0, 0, 0, 0, 0, 0, 0, 0, 0 }, 0, 1, NULL, NULL, 0, 0, 0, npuprof_slot_none_.open, NULL, 0, 0, 0, { 1 } };

static npuprof_chunk_ *npuprof_chunk_at_(uint32_t index)
{
    return (npuprof_chunk_ *)(void *)(npuprof_s_.chunks + (size_t)index * npuprof_s_.header->chunk_bytes);
}
static npuprof_unit_ *npuprof_chunk_units_(npuprof_chunk_ *chunk) { return (npuprof_unit_ *)(void *)(chunk + 1); }
/* Where a table keeps the entry of a site. */
static inline uint32_t *npuprof_table_site_id_at_(const uint8_t *table, const npuprof_header_ *h, uint32_t number)
{
    return (uint32_t *)(uintptr_t)(table + h->table_bytes - (size_t)number * 4);
}
enum { NPUPROF_TABLE_UNIT_ = 16 };         /* of this arena; a loaded image has its own */
static inline void *npuprof_table_entry_at_(uint32_t id) { return npuprof_s_.table + (size_t)id * NPUPROF_TABLE_UNIT_; }
static uint32_t npuprof_chunk_index_(const npuprof_chunk_ *chunk)
{
    return (uint32_t)((size_t)((const uint8_t *)chunk - npuprof_s_.chunks) / npuprof_s_.header->chunk_bytes);
}
static npuprof_overwritten_ *npuprof_chunk_overwritten_at_(const npuprof_header_ *h, uint32_t index)
{
    return (npuprof_overwritten_ *)((uintptr_t)h + h->overwritten_offset) + index;
}
static npuprof_slot_ *npuprof_slot_at_(uint32_t unit)
{
    return (npuprof_slot_ *)(void *)(npuprof_s_.base + (size_t)unit * 16);
}

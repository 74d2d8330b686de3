#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/hot.h"
#include "../format/arena.h"

/* The words that the recording process keeps about its arena, a struct for the process and one for each
   slot, and where things lie in the arena. Each group of fields names its owner, a part of this room; some
   are handed down by another room. "set up" means: written before npuprof_record_setup_ is 2, or by a child
   of fork, which has one thread; plain, because everybody reads that first with acquire. Other words are
   atomic; the order of the accesses is described where their rules are, in chunks.h and exchange.h. What
   other rooms keep lies with them. */

/* An open span: its token, and these flags. A token is a place in the slot's stream in bytes: a multiple of
   16 and never 0. A scope holds the token without the flags, so a flag makes its end take the slow path. */
enum {
    NPUPROF_TOKEN_BY_HAND_ = 1,    /* PROF_BEGIN's */
    NPUPROF_TOKEN_MOVED_ = 2,      /* it was moved here: open span n is in units 2n - 2, 2n - 1 */
    NPUPROF_TOKEN_SLOW_ = 4,       /* the clock takes more than an instruction */
    NPUPROF_TOKEN_BOUNDARY_ = 8,   /* capture control looks at its end (record/boundary.h) */
    NPUPROF_TOKEN_FLAGS_ = 15
};

/* A call of NPUPROF_AUTO. */
typedef struct npuprof_slot_call_ {
    uint32_t key;                  /* of function and caller */
    npuprof_token_ token;          /* 0: not recorded */
} npuprof_slot_call_;

/* No span's token: that of the entry before the first call, and of the one behind the last. */
enum { NPUPROF_CALL_NONE_ = 1 };

/* The open calls of a thread, of NPUPROF_AUTO. Owner: record/auto.h. The entries lie behind the slot. */
typedef struct npuprof_slot_calls_ {
    npuprof_slot_call_ *next, *end;    /* next: of the next call; behind `end` while `beyond` is not 0 */
    uint32_t beyond;               /* open calls without an entry */
    uintptr_t deep;                /* where the first of them is on the C stack */
} npuprof_slot_calls_;

#define NPUPROF_SLOT_RETIRING_ UINT32_MAX
enum { NPUPROF_SLOT_CONTEXTS_ = 8 };   /* a thread's own, and those of its signal handlers */

#ifdef NPUPROF_AUTO
#define NPUPROF_CALLS_(...) __VA_ARGS__
#else
#define NPUPROF_CALLS_(...)
#endif

/* A thread's place to record, or that of a signal handler that interrupted a record. It lies in a chunk of
   slots, and stays when its thread ends: another thread takes it. */
typedef struct npuprof_slot_ {
    npuprof_slot_head_ head;       /* in the image: atomic; the owner writes, readers read */

    /* Ownership. `owned`: from 0 by CAS, to the system's number of a thread that takes the slot, or to
       NPUPROF_SLOT_RETIRING_ by one that retires what an ended thread left; it then owns all fields below.
       Back to 0 with release, by the owner; or by who finds that the thread is no more (slots.h). A nested
       slot is owned with its parent. `busy` is 1 while fields below are being changed; read by the owner's
       signal handlers, which then take `nested`. No other thread looks at it. */
    uint32_t owned, busy;

    /* The current chunk. Written and read by the owner. */
    npuprof_unit_ *cursor, *end;   /* of the next record, and where the slow path comes next, at the latest at
                                      the chunk's end (record/span.h). NULL: there is no chunk */
    uint64_t deadline;             /* the last start, in ticks, that the chunk can hold */
    uint64_t position;             /* while there is no chunk: where the slot's next one begins, 0 at first */
    uintptr_t token_zero;          /* a token + this is the address of its unit in the chunk */

    /* Open spans. Written and read by the owner. */
    npuprof_token_ *top;           /* the newest one; `open` if there is none */
    struct npuprof_slot_ *nested;  /* for a signal handler that interrupts this one; made once, kept */
    uint64_t by_hand_bits;         /* PROF_BEGIN: was it recorded? The newest in bit 0 */
    uint32_t by_hand_count;        /* PROF_BEGINs that are open */
    uint32_t named_by;             /* head.owners when the name was given */
    NPUPROF_CALLS_(npuprof_slot_calls_ calls;)      /* the thread's, also while its handlers run */
    uint32_t changes_to;           /* index + 1 of the chunk that it is changing to (slots.h); 0: none */
    npuprof_token_ open[1];        /* [0]: no span's. Then one for each unit of a chunk. Then 8-aligned what
                                      npuprof_npu_set_correlation() said. Why there: what is before `open` is
                                      reached by shorter instructions */
} npuprof_slot_;

/* While a reader has the arena, with NPUPROF_KEEP_NEWEST a thread that needs a chunk loses its record; or, if
   the reader takes but microseconds, waits. */
enum { NPUPROF_FROZEN_NOT_, NPUPROF_FROZEN_, NPUPROF_FROZEN_BRIEFLY_ };

/* The one arena of this file, and what the process knows about it. */
typedef struct npuprof_arena_state_ {
    /* Where things lie. Owner: layout.h; fork.h moves them. Set up. */
    uint8_t *base;
    npuprof_header_ *header;
    uint8_t *table;
    uint32_t table_units;          /* in its first part */
    uint32_t *pages;               /* of each later part: index + 1 of its chunk; 0: none yet. By table.h */
    uint32_t page_count;
    unsigned page_shift;           /* 1 << page_shift units are in a chunk and its head */
    uint32_t *index;               /* ids of the entries that hold ids of call sites. By table.h */
    uint32_t index_count;
    uint32_t *buckets;
    uint32_t bucket_count;
    uint32_t *queue;
    uint8_t *chunks;
    uint32_t units;                /* in a chunk */
    uint32_t correlation_at;       /* in a slot, from its start */
    uint32_t slot_calls, slot_calls_at;    /* of NPUPROF_AUTO: calls in each slot, and where they begin */

    /* Free chunks. Owner: chunks.h, rule R5. */
    uint64_t chunk_free;

    /* Slots. Owner: thread.h and slots.h, atomic. */
    uint32_t slots_free;           /* that nobody owns. While it is 0, nobody looks for one */
    uint32_t slots_left;           /* how many were given back */
    uint32_t slots_swept;          /* how many of these when idle chunks were looked for (exchange.h) */
    uint32_t slots_taken;          /* how many were taken */
    uint32_t slots_checked;        /* how many of these when those of dead threads were looked for */
    uint32_t slots_checking;       /* 1: a thread looks for them. CAS from 0 */

    /* Handover of chunks. Owner: exchange.h; chunks.h for recycling and frozen. Rules R4 and R7 to R12. */
    uint32_t recycling;            /* threads that take retired chunks out of the queue just now */
    uint32_t frozen;               /* NPUPROF_FROZEN_*: a reader forbids that. By control/lock.h */
    uint32_t exchanging;           /* threads that are changing to a new chunk */
    uint32_t failed;               /* round << 16 | how many of them found none in this round */
    uint32_t hopeless;             /* round << 16 | 1: the last round in which all had failed */
    uintptr_t drainer;             /* the thread that hands chunks to the sink, 0: none. By write/stream.h */
    uintptr_t writer;              /* the thread that reads the arena, 0: none. By control/lock.h */

    /* Cursors of npuprof_read(). By read/hand.h; and control/lock.h, under the lock of the readers. */
    uint32_t cursors;              /* how many there are */
    uint64_t forgotten;            /* while there are any: spans and events that npuprof_clear() discarded,
                                      lost ones among them */

    /* Host anchors. Owner: anchors.h. */
    uint32_t keeping_time;         /* 1: a thread stores one. CAS from 0 */

    /* Handed down when the library is set up, and again by npuprof_init() and in the child of a fork. */
    int when_full;
    uint64_t first_position;       /* where the streams of this process's slots begin: behind a parent's */
} npuprof_arena_state_;

/* Why first: what set-up touches, here and in the rooms below, then shares pages. */
static uint64_t npuprof_arena_static_[(NPUPROF_ARENA_BYTES) / 8] NPUPROF_ALIGNED_;

static npuprof_arena_state_ npuprof_arena_;

/* Does the arena hand its chunks to a sink? */
#ifdef NPUPROF_RECORD_ONLY
#define NPUPROF_ARENA_STREAMS_() false
#else
#define NPUPROF_ARENA_STREAMS_() (npuprof_arena_.when_full == NPUPROF_STREAM)
#endif

/* Call sites compare their generation with these two, to learn whether what they know is still valid. The
   fast one equals the other while the gate is open and the clock is one instruction; else it is no call
   site's. Handed down by control/start.h. */
static uint32_t npuprof_arena_generation_;    /* of the arena and the categories, 31 bits; it counts up */
static uint32_t npuprof_arena_fast_ = UINT32_MAX;

#ifndef NPUPROF_STATIC
int npuprof_gate_ = NPUPROF_GATE_AT_START_;
#if NPUPROF_TWO_NAMES_
/* The name that plugins have for it which were compiled with 1.0. */
extern int NPUPROF_GATE_OF_1_0_ NPUPROF_ATTRIBUTE_((weak, alias(NPUPROF_TEXT_OF_(npuprof_gate_))));
#endif
#endif

/* Several implementations in one process, a program's and a plugin's, export the same names, and the
   dynamic linker gives all of them those of the first. That one leads. The others follow: they set nothing
   up, read no environment and write nothing; what their libraries record is in the leader's arena. Why a
   pointer to the counts: a library that was linked with -Bsymbolic-functions calls its own functions, with
   the leader's gate open. It cannot record, but counts what it loses where the leader counts. */
#ifdef NPUPROF_STATIC
static uint64_t *npuprof_lost_;
#else
extern uint64_t *npuprof_lost_;
uint64_t *npuprof_lost_;           /* the leader's header.lost, or NULL. Known to implementations alone */
#endif

#if NPUPROF_SHARED_
/* Names that the linker takes from nowhere else. */
extern uint64_t *npuprof_own_lost_ NPUPROF_ATTRIBUTE_((alias("npuprof_lost_"), visibility("hidden")));
extern int npuprof_own_gate_
    NPUPROF_ATTRIBUTE_((alias(NPUPROF_TEXT_OF_(npuprof_gate_)), visibility("hidden")));

/* Is what a name led to another copy's? Why asm: compilers take two names for two variables. */
static bool npuprof_arena_is_elsewhere_(const void *led_to, const void *own)
{
    __asm__("" : "+r"(led_to));
    return led_to != own;
}

/* Does a copy of another version lead? It has not our gate: the macros of this library find it closed. */
static bool npuprof_arena_has_other_version_(void)
{
    return (npuprof_arena_is_elsewhere_(&npuprof_lost_, &npuprof_own_lost_) ||
            npuprof_arena_is_elsewhere_(&NPUPROF_GATE_OF_1_0_, &npuprof_own_gate_)) &&
           !npuprof_arena_is_elsewhere_(&npuprof_gate_, &npuprof_own_gate_);
}

static bool npuprof_arena_has_leader_(void)
{
    return npuprof_arena_is_elsewhere_(&npuprof_lost_, &npuprof_own_lost_) ||
           npuprof_arena_has_other_version_();
}

#else /* !NPUPROF_SHARED_ */

static bool npuprof_arena_has_leader_(void) { return false; }
#endif /* !NPUPROF_SHARED_ */

NPUPROF_CALLS_(static npuprof_slot_call_ npuprof_slot_call_none_[1] = { { 0, NPUPROF_CALL_NONE_ } };)
/* The slot of a thread that has none. It is always busy, so everything takes the slow path, and has no open
   span. */
static npuprof_slot_ npuprof_slot_none_ = {
    { 0, 0, 0, 0, 0, 0, 0, 0, 0 }, 0, 1, NULL, NULL, 0, 0, 0, npuprof_slot_none_.open, NULL, 0, 0, 0,
    NPUPROF_CALLS_({ npuprof_slot_call_none_ + 1, npuprof_slot_call_none_ + 1, 0, 0 }) NPUPROF_CALLS_(,)
    0, { 1 }
};

/* ---- Where things lie */

static uint64_t *npuprof_slot_correlation_(npuprof_slot_ *slot)
{
    return (uint64_t *)(void *)((uint8_t *)slot + npuprof_arena_.correlation_at);
}

static npuprof_chunk_ *npuprof_chunk_at_(uint32_t index)
{
    const size_t bytes = npuprof_arena_.header->chunk_bytes;
    return (npuprof_chunk_ *)(void *)(npuprof_arena_.chunks + index * bytes);
}

static uint32_t npuprof_chunk_index_(const npuprof_chunk_ *chunk)
{
    const size_t offset = (size_t)((const uint8_t *)chunk - npuprof_arena_.chunks);
    return (uint32_t)(offset / npuprof_arena_.header->chunk_bytes);
}

static npuprof_unit_ *npuprof_chunk_units_(npuprof_chunk_ *chunk)
{
    return (npuprof_unit_ *)(void *)(chunk + 1);
}

static npuprof_overwritten_ *npuprof_chunk_overwritten_at_(const npuprof_header_ *h, uint32_t index)
{
    return (npuprof_overwritten_ *)((uintptr_t)h + h->overwritten_offset) + index;
}

static npuprof_slot_ *npuprof_slot_at_(uint32_t unit)
{
    return (npuprof_slot_ *)(void *)(npuprof_arena_.base + (size_t)unit * 16);
}

enum { NPUPROF_TABLE_UNIT_ = 16 };     /* of this arena; another image says what its own is */

/* The first offset from `at` on where an entry of the table may begin: behind the head, if a later part
   begins there. */
static inline uint32_t npuprof_table_past_head_(const npuprof_header_ *h, uint32_t at)
{
    const bool is_head = at >= h->table_bytes && (at - h->table_bytes) % h->chunk_bytes == 0;
    return is_head ? at + (uint32_t)sizeof(npuprof_chunk_) : at;
}

/* An entry behind the first part of the table. */
static NPUPROF_NOINLINE_ void *npuprof_table_entry_behind_(uint32_t id)
{
    const npuprof_arena_state_ *const s = &npuprof_arena_;
    const uint32_t unit = id - s->table_units, in_page = unit & (((uint32_t)1 << s->page_shift) - 1);
    const uint32_t number = NPUPROF_LOAD_ACQUIRE_(&s->pages[unit >> s->page_shift]);
    return (uint8_t *)npuprof_chunk_at_(number - 1) + (size_t)in_page * NPUPROF_TABLE_UNIT_;
}

static inline void *npuprof_table_entry_fast_(uint32_t id)
{
    if (NPUPROF_UNLIKELY_(id >= npuprof_arena_.table_units)) return npuprof_table_entry_behind_(id);
    return npuprof_arena_.table + (size_t)id * NPUPROF_TABLE_UNIT_;
}

/* The same where no span waits for it: shorter by the test. */
static NPUPROF_NOINLINE_ void *npuprof_table_entry_at_(uint32_t id)
{
    return npuprof_table_entry_fast_(id);
}

enum { NPUPROF_TABLE_SITES_ = 16 };    /* call sites for each word of the index */

/* Holds ids of call sites' entries, of consecutive numbers. For readers it is of the type SKIP. */
typedef struct npuprof_table_index_entry_ {
    npuprof_entry_ head;
    uint32_t ids[NPUPROF_TABLE_SITES_];
} npuprof_table_index_entry_;

/* The id of a call site's entry. 0: there is no such call site. */
static inline uint32_t npuprof_table_site_id_(uint32_t number)
{
    const uint32_t at = NPUPROF_LOAD_ACQUIRE_(&npuprof_arena_.index[number / NPUPROF_TABLE_SITES_]);
    if (!at) return 0;
    const npuprof_table_index_entry_ *e = (const npuprof_table_index_entry_ *)npuprof_table_entry_fast_(at);
    return NPUPROF_LOAD_ACQUIRE_(&e->ids[number % NPUPROF_TABLE_SITES_]);
}

static inline const npuprof_site_entry_ *npuprof_table_site_at_(uint32_t number)
{
    return (const npuprof_site_entry_ *)npuprof_table_entry_fast_(npuprof_table_site_id_(number));
}

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "layouts.h"

typedef struct npuprof_unit_ { uint64_t w0, w1; } npuprof_unit_;

enum { /* control ids. Append only */
    NPUPROF_CONTROL_ = 0xFFFF0,
    NPUPROF_CONTROL_MOVED_AWAY_ = 0xFFFF0,   /* payload: the span's site; w1: its start in ticks */
    NPUPROF_CONTROL_MOVED_,                  /* after a moved span: payload: its first position; w1: its start in ticks */
    NPUPROF_CONTROL_ARG_,                    /* payload: type:4 | key:28 | string bytes:12; w1: value or 8 string bytes; then the rest */
    NPUPROF_CONTROL_FINISHED_,               /* payload: track's name; w1: end ns (the head's w1: start ns) */
    NPUPROF_CONTROL_MEMORY_,                 /* payload: bytes changed:42 | 1 alloc, 2 free; w1: allocated bytes (the head's w1: used bytes) */
    NPUPROF_CONTROL_DEVICE_,                 /* payload: device:8 | pe:16 | epoch:16 | flags:4; w1: end ticks (head: start ticks) */
    NPUPROF_CONTROL_LINK_,                   /* payload: position of the submitting span; w1: its host stamp in ticks */
    NPUPROF_CONTROL_LINK_ROOT_               /* payload: position of the trace's root; w1: tid | warm-up << 32 */
};

typedef struct npuprof_chunk_ {
    uint64_t base;                 /*  0 ticks; every start in the chunk is in the 2^44 from here on */
    uint64_t first_position;       /*  8 units written in the slot's stream before this chunk */
    uint32_t owner;                /* 16 the slot: tid << 3 | context */
    uint32_t prev;                 /* 20 the slot's chunk before */
    uint32_t next;                 /* 24 the one after, for readers, who find it; or in the list of free chunks */
    uint16_t state, moved_units;   /* 28 NPUPROF_CHUNK_*; units of moved spans at the start */
} npuprof_chunk_;
enum { NPUPROF_CHUNK_FREE, NPUPROF_CHUNK_OPEN, NPUPROF_CHUNK_RETIRED, NPUPROF_CHUNK_SLOTS,
       NPUPROF_BLOCK_HEADER_PIECE, NPUPROF_BLOCK_TABLE_PIECE, NPUPROF_BLOCK_SLOTS_PIECE };
#define NPUPROF_BLOCK_MARK_ 0x4B4C424Eu

typedef struct npuprof_host_anchor_ {
    uint64_t ticks, error_ticks;   /* the three clocks were read at ticks, +- error */
    int64_t monotonic_ns, boot_ns, unix_ns;
} npuprof_host_anchor_;

enum { NPUPROF_LOST_CAPACITY_ = 16 };  /* room for causes to come */

typedef struct npuprof_header_ {
    char magic[8];                 /*   0 "NPUPROF\n" */
    uint32_t endian, format;       /*   8 0x01020304; 1 */
    uint32_t layout, header_bytes; /*  16 header_bytes: a multiple of 64 */
    uint64_t arena_bytes, clock_hz;   /* 24 clock_hz: 0 = by the anchors */
    uint64_t clear_ticks;          /*  40 what is older was forgotten by npuprof_clear() */
    uint64_t seed_high, seed_low;  /*  48 of trace and span ids */
    uint64_t streamed;             /*  64 spans and events that the sink took */
    uint64_t lost[NPUPROF_LOST_CAPACITY_];   /* 72 NPUPROF_LOST_*; the slots have more of NPUPROF_LOST_FULL */
    npuprof_host_anchor_ first, last[2];   /* 200 */
    uint32_t last_used;            /* 320 its lowest bit: which of last[] is the newer one; it counts */
    uint32_t table_offset, table_bytes, table_unit, bucket_count, table_used, sites;        /* 324 */
    uint32_t queue_offset, queue_slots, queue_head, queue_tail;                             /* 348 */
    uint32_t chunks_offset, chunk_bytes, chunk_count, chunk_next, overwritten_offset, contexts;     /* 364 chunk_next: ever used */
    uint32_t slot_bytes, slot_first, threads, devices;                                      /* 388 */
    uint32_t when_full, clock_source, clock_bits, pid;                                      /* 404 */
    uint32_t closed;               /* 420 in the piece that ends a stream: 1 */
    char host[64], program[64];    /* 424 */
    char traceparent[56];          /* 552 W3C, or empty */
} npuprof_header_;                 /* 608 */

typedef struct npuprof_overwritten_ { uint64_t count, next; } npuprof_overwritten_;   /* of a chunk. next: 0, or the next count + 1 */

typedef struct npuprof_entry_ { uint32_t type_units, hash, next, a; } npuprof_entry_;
enum { NPUPROF_ENTRY_STRING = 1, NPUPROF_ENTRY_SITE, NPUPROF_ENTRY_METADATA, NPUPROF_ENTRY_ENVIRONMENT, NPUPROF_ENTRY_PAUSE,
       NPUPROF_ENTRY_DEVICE, NPUPROF_ENTRY_ANCHORS };

typedef struct npuprof_pair_entry_ { npuprof_entry_ head; uint32_t b[2]; } npuprof_pair_entry_;
typedef struct npuprof_pause_entry_ { npuprof_entry_ head; uint64_t from, to; } npuprof_pause_entry_;
typedef struct npuprof_device_entry_ {       /* a: number from 1 */
    npuprof_entry_ head;
    uint64_t nominal_hz, notes[NPUPROF_NOTE_ROOM_];   /* 16, 24 NPUPROF_NOTE_* */
    npuprof_anchor_ overflow;      /*  88 the newest anchor once the table is full */
    uint32_t overflow_epoch, overflow_used;   /* 112 used: 0 = none, or being written; else another number each time */
    uint32_t name, pe_count, max_rate_ppb, first_anchors, last_anchors, flags;   /* 120 */
} npuprof_device_entry_;           /* 144 */
enum { NPUPROF_ANCHORS_PER_ENTRY_ = 16 };
typedef struct npuprof_anchors_entry_ {      /* a: the device's next anchors entry */
    npuprof_entry_ head;
    uint32_t epoch, count;         /* 16 */
    npuprof_anchor_ anchor[NPUPROF_ANCHORS_PER_ENTRY_];   /* 24 */
} npuprof_anchors_entry_;          /* 408 */

typedef struct npuprof_slot_head_ {
    uint32_t tid, context;         /*  0 tid from 1, 0 = never used; context: 0 the thread's own, 1 to 7 its signal handlers' */
    uint32_t next_slot;            /*  8 unit number in the arena */
    uint32_t name;                 /* 12 string id */
    uint32_t first_chunk, last_chunk;   /* 16 first_chunk: for readers, who find it */
    uint32_t os_tid, owners;       /* 24 os_tid: the system's number of the thread that had the slot last; owners: how many had it so far */
    uint64_t lost;                 /* 32 for NPUPROF_LOST_FULL */
} npuprof_slot_head_;              /* 40 */

NPUPROF_ASSERT_(chunk, sizeof(npuprof_chunk_) == 32 && offsetof(npuprof_chunk_, state) == 28);
NPUPROF_ASSERT_(header, sizeof(npuprof_header_) == 608 && offsetof(npuprof_header_, first) == 200 && offsetof(npuprof_header_, host) == 424);
NPUPROF_ASSERT_(device, sizeof(npuprof_device_entry_) == 144 && sizeof(npuprof_anchors_entry_) == 408);
NPUPROF_ASSERT_(slot, sizeof(npuprof_slot_head_) == 40);

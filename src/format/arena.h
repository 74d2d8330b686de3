#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/macros.h"
#include "layouts.h"

/* The layouts ARENA, CODED and STREAM, structure by structure. A number before a field's comment is its
   offset.

   ARENA is the arena as it lies in memory:
       header | table | queue | overwritten | chunks        at the offsets that the header gives
   CODED is what goes into a sink or a file:
       header | blocks                                      see BLOCK below, and CODE

   The table holds names, the chunks hold records. Table, chunks and slots are made of units of 16 bytes.
   Threads, call sites and devices are numbered from 1. A chunk is named by its index + 1. 0 means none. */

#define NPUPROF_UNITS_(bytes) (((bytes) + 15) / 16)

/* ---- HEADER */

/* The host's clocks, read together: each was read at `ticks` +- `error_ticks`. */
typedef struct npuprof_host_anchor_ {
    uint64_t ticks, error_ticks;
    int64_t monotonic_ns, boot_ns, unix_ns;
} npuprof_host_anchor_;

enum { NPUPROF_LOST_CAPACITY_ = 16 };   /* of header.lost: more than there are causes today */

typedef struct npuprof_header_ {
    char magic[8];                 /*   0 npuprof_image_start_, down to header_bytes */
    uint32_t endian, format;       /*   8 */
    uint32_t layout, header_bytes; /*  16 header_bytes: a multiple of 64 */
    uint64_t arena_bytes;          /*  24 */
    uint64_t clock_hz;             /*  32 rate of the ticks; 0: to be computed from the host anchors */
    uint64_t clear_ticks;          /*  40 records that start before this were forgotten by npuprof_clear() */
    uint64_t seed_high, seed_low;  /*  48 of trace and span ids */
    uint64_t streamed;             /*  64 spans and events that the sink took */
    uint64_t lost[NPUPROF_LOST_CAPACITY_];   /* 72 by NPUPROF_LOST_*; SLOT and OVERWRITTEN add to it */
    npuprof_host_anchor_ first, last[2];   /* 200 of the start, and the two newest ones */
    uint32_t last_used;            /* 320 number of renewals; the newest anchor is last[last_used & 1] */
    uint32_t table_offset, table_bytes;   /* 324 of the table's first part */
    uint32_t table_unit;           /* 332 bytes of a table unit: 16 */
    uint32_t table_first;          /* 336 offset in the table of its first entry */
    uint32_t table_used, sites;    /* 340 where the table's entries end; number of call sites */
    uint32_t queue_offset, queue_slots;   /* 348 */
    uint32_t queue_head, queue_tail;      /* 356 positions, counting up for ever */
    uint32_t chunks_offset, chunk_bytes, chunk_count;   /* 364 */
    uint32_t chunk_next;           /* 376 chunks from this index on were never used */
    uint32_t overwritten_offset;   /* 380 0: there is no such region */
    uint32_t contexts;             /* 384 contexts of signal handlers so far */
    uint32_t slot_bytes, slot_first;      /* 388 slot_first: unit number of the newest slot */
    uint32_t threads, devices;     /* 396 how many there are */
    uint32_t when_full;            /* 404 NPUPROF_KEEP_OLDEST, NPUPROF_KEEP_NEWEST or NPUPROF_STREAM */
    uint32_t clock_source, clock_bits, pid;   /* 408 */
    uint32_t closed;               /* 420 NPUPROF_CLOSED_*, in the piece that ends a stream */
    char host[64], program[64];    /* 424 */
    char traceparent[56];          /* 552 of W3C Trace Context, or empty */
} npuprof_header_;                 /* 608 */

/* How a stream ends: it goes on; with its program; with npuprof_flush(), and what came later is not known. */
enum { NPUPROF_CLOSED_NOT_, NPUPROF_CLOSED_BY_END_, NPUPROF_CLOSED_BY_FLUSH_ };

/* ---- TABLE  Entries of whole units, append-only. Offsets count from the table's start. The entries lie from
   table_first to table_used. What is in front of them is the recorder's own.

   The first part of the table holds the offsets below table_bytes. In an arena it lies at table_offset.
   Behind it the table goes on in parts of chunk_bytes each, the first one from table_bytes on. Each begins
   with 32 bytes that hold no entry: in an arena they are the head of the chunk that this part is. Such a
   chunk has the state TABLE_PIECE. Its `base` is the offset in the table of what is behind its head, and
   first_position is the length of that in bytes; 0 and 0 while the chunk is not in use. The parts may lie in
   any chunks, in any order. No entry lies in two parts: SKIP fills the rest of one.

   In an arena that was made before 1.0, table_first is how many buckets of 4 bytes lie in front of the first
   entry, a power of two. Such an arena is known by this: the type of what lies at table_first is 0, and the
   type of what lies at 4 * table_first is not.

   The id of an entry is its offset / 16. An entry begins with npuprof_entry_:
     STRING        a: length; the bytes and a NUL follow
     SITE          npuprof_site_entry_: a call site. a: kind | number << 8
     METADATA      npuprof_pair_entry_. b: key, value
     ENVIRONMENT   npuprof_pair_entry_. b: a variable that was refused, what is wrong with it
     PAUSE         npuprof_pause_entry_
     DEVICE        npuprof_device_entry_
     ANCHORS       npuprof_anchors_entry_
     LANE          npuprof_pair_entry_. a: number of the device; b: a PE of it, name of that one's track
     RECORDS       npuprof_records_entry_
     MODULE        npuprof_module_entry_
     SKIP          nothing for a reader
   A reader finds a call site by the number in its entry. It needs neither hash nor next. */

typedef struct npuprof_entry_ {
    uint32_t type_units;           /*  0 type << 24 | units. Type 0: the entry is not finished; skip it */
    uint32_t hash, next;           /*  4 next: id of the next entry in the same bucket */
    uint32_t a;                    /* 12 by type */
} npuprof_entry_;

enum {
    NPUPROF_ENTRY_STRING = 1, NPUPROF_ENTRY_SITE, NPUPROF_ENTRY_METADATA, NPUPROF_ENTRY_ENVIRONMENT,
    NPUPROF_ENTRY_PAUSE, NPUPROF_ENTRY_DEVICE, NPUPROF_ENTRY_ANCHORS, NPUPROF_ENTRY_LANE,
    NPUPROF_ENTRY_RECORDS, NPUPROF_ENTRY_MODULE, NPUPROF_ENTRY_SKIP
};

typedef struct npuprof_pair_entry_ { npuprof_entry_ head; uint32_t b[2]; } npuprof_pair_entry_;

typedef struct npuprof_site_entry_ {
    npuprof_entry_ head;
    uint32_t name, category;       /* 16 strings' ids; category 0: none */
    uint32_t file, line;           /* 24 file: a string's id; 0: unknown, as in older images.
                                      line | NPUPROF_SITE_RESULTS_ */
} npuprof_site_entry_;             /* 32 */

/* Of a call site: RESULT records follow in the chunks for each of its spans. */
#define NPUPROF_SITE_RESULTS_ 0x80000000u

/* In ticks. `to` is 0 while the pause lasts. */
typedef struct npuprof_pause_entry_ { npuprof_entry_ head; uint64_t from, to; } npuprof_pause_entry_;

typedef struct npuprof_device_entry_ {
    npuprof_entry_ head;           /*   0 a: number of the device */
    uint64_t nominal_hz;           /*  16 */
    uint64_t notes[NPUPROF_NOTE_ROOM_];   /* 24 counts by NPUPROF_NOTE_* */
    npuprof_anchor_ overflow;      /*  88 the newest clock anchor that the table had no space for */
    uint32_t overflow_epoch;       /* 112 */
    uint32_t overflow_used;        /* 116 0: none, or being written; else another number each time */
    uint32_t name, pe_count, max_rate_ppb;   /* 120 name: a string's id */
    uint32_t first_anchors, last_anchors;    /* 132 ids of entries; the anchors are a list, oldest first */
    uint32_t flags;                /* 140 NPUPROF_DEVICE_* */
} npuprof_device_entry_;           /* 144 */

enum { NPUPROF_ANCHORS_PER_ENTRY_ = 16 };

typedef struct npuprof_anchors_entry_ {
    npuprof_entry_ head;           /*   0 a: id of the device's next anchors entry */
    uint32_t epoch, count;         /*  16 count: how many of the anchors are there */
    npuprof_anchor_ anchor[NPUPROF_ANCHORS_PER_ENTRY_];   /* 24 */
} npuprof_anchors_entry_;          /* 408 */

/* Of a device with lost or odd records: how many, by NPUPROF_RECORDS_*. */
typedef struct npuprof_records_entry_ {
    npuprof_entry_ head;           /*   0 a: number of the device */
    uint64_t counts[NPUPROF_RECORDS_ROOM_];   /* 16 */
} npuprof_records_entry_;          /* 144 */

/* An object that the process had loaded: its program or a shared library. The names of NPUPROF_AUTO are
   addresses; an address from start to end - 1 is in this object, at address - bias of its ELF file. Entries
   overlap if one object was unloaded and another came to its place: the later entry is the later object. */
typedef struct npuprof_module_entry_ {
    npuprof_entry_ head;           /*  0 a: id of the module entry before it, or 0 */
    uint64_t bias, start, end;     /* 16 */
    uint32_t path, build_id;       /* 40 strings' ids. build_id: hex digits; "" if the object has none */
} npuprof_module_entry_;           /* 48 */

/* ---- QUEUE  u32[queue_slots]: the full chunks, oldest first, for whoever recycles them. A reader does not
   need it.

   ---- OVERWRITTEN  One pair for each chunk: how many spans and events were overwritten in it. next is 0,
   or the next value of count, + 1. While it is not 0 it holds instead of count, and the records that still
   lie in the chunk are gone, whatever the chunk's state says. The sum over all chunks adds to
   lost[NPUPROF_LOST_OVERWRITTEN]. */

typedef struct npuprof_overwritten_ { uint64_t count, next; } npuprof_overwritten_;

/* ---- CHUNK  A head, then units. A record is one unit, and more if it has more to say. w0 == 0 ends the
   chunk, where no string goes on; in an arena, any bytes may lie behind that.

   The first unit of a record:
     w0 = start << 20 | number of the call site
          start: the low 44 bits of the start in ticks. The start is in the 2^44 ticks from chunk.base on
     w1 = of an event: its value
          of a span: its end in ticks, 63 bits. Bit 63: ended by unwinding, not by its own end.
                     All ones: still open
   Units that continue it have a control id where the first has the call site, and a payload where it has
   the start. Arguments come last.

   Spans that were open when their thread began this chunk stand at its start, two units each, moved_units
   in all:
     w0 = number of the call site,                  w1 = its end as above
     w0 = its first position << 20 | MOVED,         w1 = its start in ticks
   Where such a span was before, its first unit became:
     w0 = number of the call site << 20 | MOVED_AWAY,   w1 = its start in ticks
   Its arguments stay there.

   A RESULT is no record of its own: it holds arguments of a span that was open, in the same slot:
     w0 = time << 20 | RESULT,                      w1 = the span's position
   The call site of the span then has NPUPROF_SITE_RESULTS_.

   A record's position is first_position of its chunk + the number of its first unit there, from 0; of a span
   that was moved, where it was first. (thread, position) names a record for ever. */

typedef struct npuprof_unit_ { uint64_t w0, w1; } npuprof_unit_;

#define NPUPROF_ID_BITS_ 20                             /* of w0: call site or control id */
#define NPUPROF_ID_MASK_ (((uint32_t)1 << NPUPROF_ID_BITS_) - 1)
#define NPUPROF_START_BITS_ 44                          /* of w0: start or payload */
#define NPUPROF_END_OPEN_ UINT64_MAX
#define NPUPROF_END_CUT_ ((uint64_t)1 << 63)
/* Ticks as an end. Why not always masked: no hardware counter gets as far as bit 63. */
#ifdef NPUPROF_NOW
#define NPUPROF_END_STAMP_(now) ((now) & ~NPUPROF_END_CUT_)
#else
#define NPUPROF_END_STAMP_(now) (now)
#endif

/* Control ids, append only. Beside each its payload, fields from the high bits down, and its w1. A span or
   event with FINISHED to LINK_ROOT has more to say than w1 of its first unit holds, which is named in
   brackets.
     MOVED_AWAY, MOVED   of spans that were moved: see above
     ARG        bytes of a string:12 | key:28 | type:4       value, or 8 bytes of the string, whose rest
                                                             follows in units without an id
     FINISHED   name of the track (a string's id)            end in ns [start in ns] of npuprof_span()
     MEMORY     bytes changed:42 | 1 alloc, 2 free:2         allocated bytes [used bytes]
     DEVICE     flags:4 | epoch:16 | pe:16 | device:8        end in device ticks [start in device ticks].
                                                             With NPUPROF_STAMP_HOST both in host ticks, and
                                                             the epoch is the code of their error
     LINK       position of the span that submitted it       start of that span in ticks
     LINK_ROOT  position of the root of that span's trace    thread | warm-up << 32
     RESULT     of arguments that came while a span was open: see above */
enum {
    NPUPROF_CONTROL_ = 0xFFFF0,              /* call sites are numbered below this */
    NPUPROF_CONTROL_MOVED_AWAY_ = 0xFFFF0, NPUPROF_CONTROL_MOVED_, NPUPROF_CONTROL_ARG_,
    NPUPROF_CONTROL_FINISHED_, NPUPROF_CONTROL_MEMORY_, NPUPROF_CONTROL_DEVICE_,
    NPUPROF_CONTROL_LINK_, NPUPROF_CONTROL_LINK_ROOT_, NPUPROF_CONTROL_RESULT_
};

typedef struct npuprof_chunk_ {
    uint64_t base;                 /*  0 ticks */
    uint64_t first_position;       /*  8 units of the slot's earlier chunks */
    uint32_t owner;                /* 16 the slot: tid << 3 | context. 0: the chunk holds no records */
    uint32_t prev;                 /* 20 the slot's chunk before this one */
    uint32_t next;                 /* 24 the slot's next chunk, stored by readers; or the next free chunk */
    uint16_t state;                /* 28 NPUPROF_CHUNK_* */
    uint16_t moved_units;          /* 30 */
} npuprof_chunk_;                  /* 32 */

/* States of a chunk. SLOTS: it holds slots, not records. TABLE_PIECE: a part of the table. Then what else a
   block of a stream holds that is no chunk. */
enum {
    NPUPROF_CHUNK_FREE, NPUPROF_CHUNK_OPEN, NPUPROF_CHUNK_RETIRED, NPUPROF_CHUNK_SLOTS,
    NPUPROF_BLOCK_HEADER_PIECE, NPUPROF_BLOCK_TABLE_PIECE, NPUPROF_BLOCK_SLOTS_PIECE
};

/* ---- SLOT  What an image keeps of a thread, or of a thread's signal handlers: slot_bytes each, of which a
   reader uses this head. */
typedef struct npuprof_slot_head_ {
    uint32_t tid;                  /*  0 number of the thread; 0: the slot was never used */
    uint32_t context;              /*  4 0: the thread's own; 1 to 7: its signal handlers' */
    uint32_t next_slot;            /*  8 unit number in the arena */
    uint32_t name;                 /* 12 a string's id */
    uint32_t first_chunk;          /* 16 stored by readers, who follow `prev` from last_chunk on */
    uint32_t last_chunk;           /* 20 */
    uint32_t os_tid;               /* 24 the system's number of the thread that had the slot last */
    uint32_t owners;               /* 28 how many threads had it so far */
    uint64_t lost;                 /* 32 adds to lost[NPUPROF_LOST_FULL] */
} npuprof_slot_head_;              /* 40 */

/* ---- BLOCK  of layout CODED: npuprof_stored_, then its payload, then zeros up to a multiple of 8 bytes. The
   first block begins where the header ends, at header_bytes; each further one where the one before ends.

   sum covers the block with its zeros, as 64-bit integers in the image's byte order, with 0 in the place of
   sum itself. From 0 on, for each integer: sum = (sum ^ integer) * NPUPROF_BLOCK_FACTOR_, modulo 2^64; then
   the halves of sum change places. A block is good if its mark and its sum are right. Bytes that are no good
   block were damaged, or a part of them is missing: a reader counts that, and goes on at the next offset, of
   any alignment, where a good block begins. A process may be killed while it writes: what is behind the last
   good block is the beginning of one. A block of a state that a reader does not know it skips, and counts.

   State OPEN or RETIRED: units of a chunk with the same base, first_position, owner, state and moved_units;
   the payload is the CODE of its units from number first_unit on. A chunk of more units than one payload
   holds follows in further blocks, one behind the other; first_unit is 0 in the first. Where one of them is
   missing, the chunk ends there. All units behind those that were coded are zero. A later chunk with the same
   owner and first_position replaces the earlier one, because npuprof_flush() sends copies of chunks that come
   again: OPEN ones when they are full, RETIRED ones when they are handed on.

   Another state: a piece of a region, as it is. base is its offset in the region; first_position is its
   length, and the same as bytes; owner, moved_units and first_unit are 0.
     HEADER_PIECE   a newer header. The last block of a complete stream is one with `closed`
     TABLE_PIECE    bytes of the table
     SLOTS_PIECE    heads of slots, back to back
   Later pieces replace earlier ones.

   Layout STREAM is from before there was a CODE: its blocks have chunk_bytes each, begin with
   npuprof_chunk_, in which `next` is NPUPROF_BLOCK_MARK_, and have no sum. A chunk's units follow as they
   are; a piece's bytes follow and, where it is shorter, zeros. */
typedef struct npuprof_stored_ {
    uint32_t mark;                 /*  0 NPUPROF_BLOCK_MARK_ */
    uint16_t bytes;                /*  4 of the payload, without the zeros behind it: NPUPROF_BLOCK_MAX_ at
                                         most */
    uint16_t first_unit;           /*  6 */
    uint64_t sum;                  /*  8 */
    uint64_t base;                 /* 16 */
    uint64_t first_position;       /* 24 */
    uint32_t owner;                /* 32 */
    uint16_t state;                /* 36 NPUPROF_CHUNK_*, NPUPROF_BLOCK_*_PIECE */
    uint16_t moved_units;          /* 38 */
} npuprof_stored_;                 /* 40 */

#define NPUPROF_BLOCK_MARK_ 0x4B4C424Eu
#define NPUPROF_BLOCK_FACTOR_ UINT64_C(0x9E3779B97F4A7C15)
enum { NPUPROF_BLOCK_MAX_ = 16384 };

/* ---- CODE  of a chunk's units, one behind the other. Each begins with a byte:
     bits 0-2   gap: how the unit's start (w0 >> 20) follows
     bits 3-5   length
     bits 6-7   site
   Integers in the code have the lowest byte first, in every image. Starts count modulo 2^44. What the code
   goes on from is, at the beginning of each block: start and end the low 44 bits of base, site 0, and 0 for
   all others.

   gap 1 to 7: a plain unit. Behind the byte follow, each with the number of bytes given:
     call site     `site` bytes; with 0 it is `site` of the unit before
     gap           gap 1, 2, 3: so many bytes; the unit's start is `start` + gap
                   gap 4, 5, 6: 1, 2, 3 bytes; the unit's start is `end` + gap
                   gap 7:       6 bytes; the unit's start is `start` + gap
     length        0 to 6 bytes: w1 is the whole start + length, the whole start being the one from base on
                   whose low 44 bits are the unit's start (see CHUNK). length 7: no bytes; w1 is all ones
   Then `start` is the unit's start, `site` its call site and, but for length 7, `end` the low 44 bits of w1.

   gap 0: bits 3-7 are the kind of another unit. But for RAW a second byte follows:
     bits 0-2   bytes of the first number, 0 to 6
     bits 3-6   bytes of the second number, 0 to 8
     bit 7      3 bytes with a call site follow, before the numbers; else it is `site`
   The second number stands for d, which is w1, or a difference of w1 modulo 2^64. d counts as a signed
   64-bit integer: the number is 2 d for d >= 0, and -2 d - 1 for d < 0.
     0 to 27       kind / 2 is the control id - NPUPROF_CONTROL_. Bit 7 is 0. First number: the payload
                   (w0 >> 20) XOR the payload of the unit before with that id. Second: w1; of an odd kind, the
                   difference of w1 to that of the unit before with that id
     28 EVENT      first number: the gap from `start` to the unit's start, which then is `start`. Second: w1
     29            as 28, with the difference of w1 to that of the unit of kind 28, 29 or 30 before
     30 MOVED      the start is 0, and `start` stays. First number: 0, without bytes. Second: w1
     31 RAW        w0 and w1 follow, 8 bytes each; nothing else changes
   After 28 to 30 `site` is the call site. Any kind may stand for any unit that it can express. */
enum {
    NPUPROF_CODE_CONTROLS_ = 14, NPUPROF_CODE_EVENT_ = 28, NPUPROF_CODE_MOVED_ = 30, NPUPROF_CODE_RAW_ = 31,
    NPUPROF_CODE_MOST_ = 19                /* bytes that a unit takes, at most */
};
#define NPUPROF_CODE_START_MASK_ (((uint64_t)1 << NPUPROF_START_BITS_) - 1)

NPUPROF_ASSERT_(chunk, sizeof(npuprof_chunk_) == 32 && offsetof(npuprof_chunk_, state) == 28);
NPUPROF_ASSERT_(block, sizeof(npuprof_stored_) == 40 && offsetof(npuprof_stored_, owner) == 32);
NPUPROF_ASSERT_(header_start, offsetof(npuprof_header_, header_bytes) ==
                           offsetof(npuprof_image_start_, header_bytes));
NPUPROF_ASSERT_(header, sizeof(npuprof_header_) == 608 && offsetof(npuprof_header_, first) == 200 &&
                            offsetof(npuprof_header_, host) == 424);
NPUPROF_ASSERT_(device, sizeof(npuprof_device_entry_) == 144 && sizeof(npuprof_anchors_entry_) == 408);
NPUPROF_ASSERT_(module, sizeof(npuprof_module_entry_) == 48);
NPUPROF_ASSERT_(site, sizeof(npuprof_site_entry_) == 32);
NPUPROF_ASSERT_(slot, sizeof(npuprof_slot_head_) == 40);

#pragma once   /* SPDX-License-Identifier: MIT */
#include "layouts.h"

/* The layouts COMPACT and PARTS, structure by structure. A number before a field's comment is its offset.

   COMPACT is the arena of a build with NPUPROF_FREESTANDING:
       header of 80 bytes | cells of 16 bytes
   PARTS is what npuprof_write_image() makes of it, to be sent over a line that may lose some:
       header | parts | header again
   A stream is PARTS, too, without an end, and its parts have another head, see STREAM:
       header | up to 64 parts | header | up to 64 parts | ...
   There the header is what is in a part, so a file of it begins with the head of one. Its clock and losses
   are of that moment. So who reads may come late, and sees a target that began anew: the numbers of cells go
   back.
   Everything is made of 32-bit words. */

/* ---- HEADER */
typedef struct npuprof_compact_header_ {
    uint8_t magic[8];              /*  0 npuprof_image_start_, down to header_bytes */
    uint32_t endian, format, layout, header_bytes;   /* 8 */
    uint8_t clock_bits, context_bits, pointer_bytes, build_kind;   /* 24 build_kind: NPUPROF_BUILD_*, and
                                         what happens when it is full: NPUPROF_KEEP_* << 4 */
    uint32_t cells;                /* 28 how many there are */
    uint32_t used;                 /* 32 how many are taken; more than `cells`: all of them. Of a RING: see
                                         there */
    uint32_t lost;                 /* 36 spans and events that did not fit, modulo 2^32; of
                                         NPUPROF_KEEP_NEWEST: all there were, so those that are not here were
                                         lost */
    uint32_t lost_notes;           /* 40 names, metadata, pauses, results and facts about devices that did
                                         not fit; of NPUPROF_STREAM also ends of spans */
    uint32_t clock;                /* 44 the clock when last read, without its low bits: its low 16, or half
                                         of them if it has fewer than 24. Of a clock with 48 bits or more only
                                         in a RING: when index 0 was last passed */
    uint32_t hz_low, hz_high;      /* 48 the clock's rate */
    uint32_t first_low, first_high;   /* 56 the stamp at the start of the trace */
    uint32_t address_low, address_high;   /* 64 of a constant of the program. Cells hold the low 32 bits of
                                         addresses; all addresses are near this one */
    uint32_t build;                /* 72 which program wrote this */
    uint32_t crc;                  /* 76 PARTS: of the 76 bytes before it. COMPACT: 0, or
                                         NPUPROF_COMPACT_CHECKED_, because it stands where cell -1 has the
                                         bit NPUPROF_CELL_OPEN_; of NPUPROF_STREAM, also in
                                         the stream: as `used`, of the cell that is sent next */
} npuprof_compact_header_;         /* 80 */

/* build_kind: `build` is nothing; the first four bytes of the GNU build id, as a word. */
enum { NPUPROF_BUILD_UNKNOWN_, NPUPROF_BUILD_GNU_ };
/* `crc` of COMPACT where checks are behind the cells, a word for each 16 of them: the sum of
   npuprof_compact_check_() of the records that begin there, are finished and not open, and say something. */
enum { NPUPROF_COMPACT_CHECKED_ = 1 };
enum { NPUPROF_BUILD_NOTE_HEAD_ = 16 };   /* bytes before the id in the ELF note that holds it */

/* ---- RING  The cells of a build with NPUPROF_KEEP_NEWEST or NPUPROF_STREAM: build_kind says so. A record
   lies in cells one behind the other, and none goes on from the last cell to the first, so who starts at cell
   0 finds each record behind the one before it.
   `used`: bits 0 to 15 are the index of the cell that is taken next; there begins the oldest record, which
   the next one replaces. An index of 0xFFFF: a reader was at work on the target, so where it begins is not
   known. Bits 16 to 28 count the laps, modulo 2^13. Bit 31 is set. Cells that were never taken are all 0.
   A record with NPUPROF_CELL_OPEN_ is kept in its place however long the ring runs: a span until it ends, a
   name or metadata until there is a newer one of the same context, number or key, a device for ever, the
   four newest anchors of each, some of the metadata npuprof.anchor, and some names that others replaced.
   What does not fit into the target's table is not kept. So a kept record may be older than those before it.
   Stamps: an old record's upper bits cannot follow from the one before it. They follow from `clock`: a start
   is at most a quarter of its range after that, and less than three quarters before.
   PARTS of a ring by npuprof_write_image(): all `cells`, from the oldest on, the first one as number 0;
   `used` is that of the ring, with the index of the oldest.
   A stream: cell number n is at index n mod `cells`, in lap n / `cells`. */
#define NPUPROF_RING_INDEX_ ((uint32_t)0xFFFF)
#define NPUPROF_RING_IS_ 0x80000000u
enum { NPUPROF_RING_LAP_SHIFT_ = 16 };

/* half[1] of a record in a ring with NPUPROF_CELL_OPEN_: `used` >> 16 of when it was taken, and flags. */
#define NPUPROF_CELL_CLAIMED_ 0x4000u   /* being written or replaced: nothing is here, whatever `ref` says */
#define NPUPROF_CELL_SENT_ 0x2000u      /* it was handed to the sink */
/* In `end` of such a record: NPUPROF_STREAM sends it again with other numbers; a name of a number that had
   another one before. */
#define NPUPROF_CELL_AGAIN_ 0x80000000u
#define NPUPROF_CELL_RENAMES_ 0x40000000u

/* ---- CELL  A record is one cell, followed by field cells if it has more to say. A start has 48 -
   context_bits bits, an end 47. Above them: a start is the stamp with these bits that is nearest to the start
   of the record before, of the first record to `first`; in a RING see there. An end is the first stamp with
   these bits that is not before the start. A track is a context; their numbers begin with 0. A call site and
   a key are addresses: their upper half is that of `address`, or one more or less, whichever is nearer. */
typedef struct npuprof_cell_ {
    uint32_t ref;                  /*  0 the call site: low 32 bits of its address, a multiple of 4;
                                         or kind << 8 | NPUPROF_CELL_CLEARED_, kind: NPUPROF_KIND_*,
                                         NPUPROF_CELL_KIND_*, or 0: nothing is here. An event may have
                                         1 + a number in the upper half: its name is that of the number.
                                         Bit 0: field cells follow. 0: the record is not finished */
    uint32_t start;                /*  4 low 32 bits of the stamp */
    uint32_t end;                  /*  8 of a closed span: low 32 bits of the stamp.
                                         Of another record with fields, and of one that is not finished:
                                         how many cells it has (0 is 1). Of an open PROF_BEGIN: a token */
    union { uint32_t word; uint16_t half[2]; } high;
                                   /* 12 half[0]: context, and above it more bits of the start. 14 half[1]:
                                      more bits of the end. NPUPROF_CELL_OPEN_: the span is open, and
                                         the end means nothing */
} npuprof_cell_;                   /* 16 */

#define NPUPROF_CELL_OPEN_ 0x8000u
#define NPUPROF_CELL_CLEARED_ 2u   /* alone, or with bit 0: nothing is here any more */
enum { NPUPROF_CELL_STAMP_BITS_ = 47 };

/* Records that are no events: a thread's name, as an argument, and, as VALUE, its number in the system;
   metadata: the key is the name, the value an argument; a pause, as a span. SLEPT: the clock stood still just
   before the stamp for so many ticks, 47 bits in the place of an end, and the header's `first` was moved back
   by them. NAME: the name of a number from then on, which is in the upper half of `ref` as of an event; older
   ones have it as VALUE, and the name as an argument. Then what npuprof_npu.h records. device: its number,
   from 1.
     kind     VALUE           SECOND                                    THIRD
     DEVICE   nominal_hz      max_rate_ppb | bits of counter << 32      device | pe_count << 8 |
                              1 << 32, if the counter may stand while time goes on
     ANCHOR   device_ticks    host_after, in ticks                      device | epoch << 8 |
                                                                        (host_after - host_before) << 32
     COUNT    what is added   which NPUPROF_NOTE_*                      device
     RESULT   number of the cell of a span that was open, as of SAMPLED: its arguments are that span's, and
              replace those of the same key
   An event has its value (format/layouts.h, KINDS) as VALUE; of FINISHED, SECOND is the end in ns; of MEMORY,
   SECOND is the allocated bytes, and THIRD the bytes changed << 2 | 1 alloc, 2 free.
   Of devices whose records the host takes (NPUPROF_NPU_RECORDS), in the order of their stamps:
     RING     a number, or a code     what it is: NPUPROF_CELL_RING_*   device | ring << 8 | which << 16
              NAME: a name that belongs to it. NPUPROF_CELL_RING_WORD_: `which` is the member's number in
              src/npu/ring_words.h
     JOB      NPUPROF_CELL_JOB_*      x, as of SAMPLED; or 0            device | what << 8 | epoch << 16
     ENTRY    ring                    0                                 device | epoch << 8 |
              NPUPROF_CELL_TIMED_, if ticks are there. WORDs: those ticks, and the host's ticks before and
              after them; then the entry, its lowest byte first; none: the queue is empty
     HAND     job                     pe | last << 16                   device
              of npuprof_npu_complete_host(). WORDs: start_ns, end_ns
   CLOSE has no fields: NPUPROF_STREAM, the end of a span that was sent while it was open. `start` and half[0]
   are the end's stamp and the span's context; `end` and half[1] the low 47 bits of the span's start. It ends
   the last such span of that context that has no end yet.
   NPUPROF_STREAM sends what is kept once a lap, and names, metadata and npuprof.anchor between two headers,
   with NPUPROF_CELL_AGAIN_, other numbers and the same contents. Of one lap: a record with NPUPROF_CELL_OPEN_
   and the same index, kind or call site, context and start as one before is that one again, for hosts that
   came late or lost it.
   A device span is an event of kind NPUPROF_KIND_DEVICE:
              start_ticks     end_ticks                                 device | epoch << 8 | flags | x << 32
   NPUPROF_CELL_SAMPLED_: x is the number, from 1, of the cell of its host span, whose name and category it
   has; in a ring `used` of when that cell was taken. Else x is the pe. NPUPROF_CELL_BY_HOST_: both
   ticks are the recorder's own, and epoch is their error in ticks; 0 = not known. */
#define NPUPROF_CELL_SAMPLED_ 0x1000000u
#define NPUPROF_CELL_BY_HOST_ 0x2000000u
enum {
    NPUPROF_CELL_KIND_THREAD_ = 64, NPUPROF_CELL_KIND_METADATA_, NPUPROF_CELL_KIND_PAUSE_,
    NPUPROF_CELL_KIND_DEVICE_, NPUPROF_CELL_KIND_ANCHOR_, NPUPROF_CELL_KIND_COUNT_,
    NPUPROF_CELL_KIND_CLOSE_, NPUPROF_CELL_KIND_SLEPT_, NPUPROF_CELL_KIND_NAME_,
    NPUPROF_CELL_KIND_RESULT_, NPUPROF_CELL_KIND_RING_, NPUPROF_CELL_KIND_JOB_, NPUPROF_CELL_KIND_ENTRY_,
    NPUPROF_CELL_KIND_HAND_
};

/* Of RING: a member; the name of one of `args`; an op and its name; a lane and its name; a value of `kind`;
   what that is; the category, as NAME. */
enum {
    NPUPROF_CELL_RING_WORD_, NPUPROF_CELL_RING_ARG_, NPUPROF_CELL_RING_OP_, NPUPROF_CELL_RING_LANE_,
    NPUPROF_CELL_RING_KIND_, NPUPROF_CELL_RING_KIND_IS_, NPUPROF_CELL_RING_CATEGORY_
};

/* Of JOB: a submission begins in the span x, and VALUE is its stream; it ends; VALUE is its number; so many
   records end it. x 0: it is the newest open one of the context. */
enum {
    NPUPROF_CELL_JOB_BEGIN_, NPUPROF_CELL_JOB_END_, NPUPROF_CELL_JOB_NUMBER_, NPUPROF_CELL_JOB_RECORDS_,
    NPUPROF_CELL_JOB_CALL_               /* a call: VALUE is 1, open, or 2. WORDs: the target's */
};
#define NPUPROF_CELL_TIMED_ 0x1000000u   /* of ENTRY: ticks are there */

/* ---- FIELD CELL  Same size, other meaning:
      0  u32  key: address of an argument's key
      4  u32  type | length << 8 | NPUPROF_FIELD_MORE_ if another field follows; of the first field of a
              record in a RING also the cells of that record << 20
      8  u32  low half of the value, 12 u32 high half; or 8 bytes of a text, whose rest lies in the next cells
   type: of an argument, or one of these. A text has length bytes. NAME, CATEGORY and TRACK are of records
   without a call site; an argument of METADATA, THREAD and NAME has no key. A SECOND or THIRD that is not
   there is 0. RESULT is an argument: an npuprof_result, whose text the host has. WORD: see ENTRY and HAND. */
#define NPUPROF_FIELD_MORE_ 0x80000000u
#define NPUPROF_FIELD_LENGTH_(word) ((word) >> 8 & 0xFFF)
#define NPUPROF_FIELD_CELLS_(word) ((word) >> 20 & 0x7FF)
enum {
    NPUPROF_FIELD_NAME_ = 8, NPUPROF_FIELD_CATEGORY_, NPUPROF_FIELD_TRACK_, NPUPROF_FIELD_VALUE_,
    NPUPROF_FIELD_SECOND_, NPUPROF_FIELD_THIRD_, NPUPROF_FIELD_RESULT_, NPUPROF_FIELD_WORD_
};

/* ---- CALL SITE  In the target's memory, and so in its ELF file: pointer to the name, pointer to the
   category, u8 kind, u8[3] line, the lowest byte first. If line is not 0, pointer to the file's name,
   aligned; older programs have no line. */

/* ---- PART  A head and up to 16 cells. Each part, and each of the two headers, can be found and checked by
   itself: a header by its magic, a part by its mark, both by their crc. */
enum { NPUPROF_PART_CELLS_ = 16 };
#define NPUPROF_PART_MARK_ 0x5442504Eu

typedef struct npuprof_part_head_ {
    uint32_t mark;                 /*  0 */
    uint32_t first;                /*  4 number of its first cell, counted over all parts, modulo 2^32: a gap
                                         is a loss */
    uint16_t count;                /*  8 cells */
    uint16_t lead;                 /* 10 how many of them continue a record of an earlier part */
    uint32_t names;                /* 12 crc of the names, see below. 0: the target does not know them */
    uint32_t crc;                  /* 16 of the 16 bytes before it and of the cells */
} npuprof_part_head_;              /* 20 */

/* names covers the records that begin in the part, in their order. For each: the name of the call site, a
   0, the category (nothing if there is none), a 0, the kind; then of each field that has a key: the key, a
   0. */

/* ---- STREAM  A part of a stream: this head and up to 16 cells. One that begins with the magic of a header
   is a header: five cells without numbers, and its own `crc` says nothing. */
#define NPUPROF_STREAM_MARK_ 0x5453504Eu

typedef struct npuprof_stream_head_ {
    uint32_t mark;                 /*  0 */
    uint32_t crc;                  /*  4 of all that follows, with the cells */
    uint32_t next;                 /*  8 number of the cell behind it, modulo 2^32: a gap is a loss */
    uint16_t count;                /* 12 cells */
    uint16_t lead;                 /* 14 how many of them continue a record of an earlier part; it may be more
                                         than there are */
} npuprof_stream_head_;            /* 16 */

/* CRC-32 as in zip and Ethernet. Begin with UINT32_MAX; the complement at the end is the checksum. */
static inline uint32_t npuprof_crc_add_(uint32_t crc, const void *bytes, size_t count)
{
    for (const uint8_t *p = (const uint8_t *)bytes; count--; p++) {
        crc ^= *p;
#ifdef NPUPROF_FREESTANDING
        /* Why otherwise: less flash. */
        for (int bit = 7; bit >= 0; bit--)
            crc = (int32_t)(crc << 31) < 0 ? crc >> 1 ^ 0xEDB88320u : crc >> 1;
#else
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0xEDB88320u & (0 - (crc & 1)));
#endif
    }
    return crc;
}

/* A checksum and one word more of a record. Begin with 0. Why odd: then each bit counts. */
static inline uint32_t npuprof_compact_check_(uint32_t check, uint32_t word)
{
    return (check ^ word) * 0x9E3779B1u;
}

NPUPROF_ASSERT_(part, sizeof(npuprof_part_head_) == 20 && sizeof(npuprof_stream_head_) == 16);
NPUPROF_ASSERT_(compact_start, offsetof(npuprof_compact_header_, header_bytes) ==
                           offsetof(npuprof_image_start_, header_bytes));
NPUPROF_ASSERT_(compact, sizeof(npuprof_compact_header_) == 80 && sizeof(npuprof_cell_) == 16 &&
                             offsetof(npuprof_compact_header_, hz_low) == 48);
/* Why asserted: where an int has 16 bits, ~0xFFFFu is 0. */
NPUPROF_ASSERT_(ring_index, ~NPUPROF_RING_INDEX_ == (uint32_t)0xFFFF0000u);

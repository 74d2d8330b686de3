#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"

#define NPUPROF_UNITS_(bytes) (((bytes) + 15) / 16)
#define NPUPROF_END_OPEN_ UINT64_MAX                  /* w1 of a span that has not ended */
#define NPUPROF_END_CUT_ ((uint64_t)1 << 63)              /* w1 bit: ended by unwinding, not by its own end */
#define NPUPROF_ID_BITS_ 20
#define NPUPROF_ID_MASK_ (((uint32_t)1 << NPUPROF_ID_BITS_) - 1)
#define NPUPROF_START_BITS_ 44
#ifdef NPUPROF_NOW
#define NPUPROF_END_STAMP_(now) ((now) & ~NPUPROF_END_CUT_)
#else
#define NPUPROF_END_STAMP_(now) (now)                     /* no hardware counter gets that far */
#endif

/* ---- The image: the one binary format (.npuprof), all of it -------------------------------------------------------
   It comes in three layouts. NPUPROF_LAYOUT_ARENA is the arena as it lies in memory, in a mapped file or in a RAM dump:
       header | table | queue | overwritten | chunks        at the offsets that the header gives
   NPUPROF_LAYOUT_STREAM is what goes into a sink or a file:
       header | blocks of chunk_bytes each    (a block begins with a chunk's head: a whole chunk, or a piece of a region)
   Every integer is in the byte order of the machine that wrote it; header.endian tells which. Structures have no padding that
   a compiler could choose. Numbers of things start at 1 and index + 1 names a chunk, 0 meaning none.

   HEADER (npuprof_header_, offsets beside its fields).
   TABLE  Append-only: hash buckets (bucket_count * 4 bytes, no use to a reader), then entries of whole 16-byte table units:
       0  u32  type << 24 | units        type 0: not finished, skip it
       4  u32  hash     8  u32  next in the same bucket     12  u32  a, by type
     STRING       a: length; the bytes and a NUL follow at 16
     SITE         a: kind | number << 8; 16 u32 name, 20 u32 category (0: none)
     METADATA     16 u32 key, 20 u32 value          ENVIRONMENT  16 u32 variable, 20 u32 what was wrong with it
     PAUSE        16 u64 from, 24 u64 to, in ticks; 0: still
     DEVICE       npuprof_device_entry_             ANCHORS      npuprof_anchors_entry_: 16 clock anchors of a device
     The id of an entry is its offset / 16. Sites are numbered, below NPUPROF_CONTROL_; at the table's end, growing down, 4 bytes
     for each number say which entry it is (a reader can rebuild that from the entries).
   QUEUE  Chunks that are full, oldest first, for those who recycle them. No use to a reader.
   OVERWRITTEN  (layout ARENA, at overwritten_offset, 0: there is none) For each chunk two u64: how many spans and events were overwritten in it;
     0, or the next such number + 1. That one then holds, and what lies in the chunk is no longer there, whatever its state says.
     Added up they are lost by NPUPROF_LOST_OVERWRITTEN, beside the header's.
   CHUNK  A 32-byte head (npuprof_chunk_), then units of 16 bytes: u64 w0, u64 w1. w0 == 0: the rest is empty.
     state SLOTS: slots of slot_bytes each, of which a reader uses npuprof_slot_head_.
     w0 = payload << 20 | id. id below NPUPROF_CONTROL_: a span or event of that site; payload: the low 44 bits of its start in
     ticks, which is in the 2^44 ticks from base on; w1: of a span its end in ticks (63 bits; bit 63: ended by unwinding; all
     ones: open), else the event's value.
     Control ids continue the record before them; arguments come last (see the enumeration below).
     The first moved_units units are the spans that were open when the thread began this chunk, two units each:
       w0 = site, w1 its end as above | w0 = its first position << 20 | MOVED, w1 = its start in ticks
     Where such a span lay before, its first unit is w0 = site << 20 | MOVED_AWAY, w1 = its start in ticks; the arguments stay.
     first_position counts the units of the slot's earlier chunks: (tid, position) names a record for ever.
   BLOCK  of a stream: `next` is NPUPROF_BLOCK_MARK_. state OPEN, RETIRED: a chunk. A later block with the same owner and
     first_position replaces it: an OPEN one was still being filled, and npuprof_flush() sends a copy of a RETIRED one before it is handed on. Else a piece: base: offset in the region, first_position: bytes of it
     here, after the head: HEADER_PIECE (a newer header; the last block of a whole stream is one with closed = 1), TABLE_PIECE, SLOTS_PIECE (slot heads back to back). Later ones count.
   COMPACT  NPUPROF_LAYOUT_COMPACT is the arena of a build with NPUPROF_FREESTANDING: a header of 80 bytes (npuprof_compact_header_), then
     cells of 16 bytes (npuprof_cell_), all of 32-bit words. A record is a cell, and field cells if it has more to say:
       0  u32  ref      address of the call site (its low 32 bits, a multiple of 4), or kind << 8 | 2 (kind 0: nothing). Bit 0: fields
                        follow. 0: a record in the making
       4  u32  start    low 32 bits of the stamp           8  u32  end      the same; of one in the making, and of a record with fields
                        that is no closed span, how many cells it has (0 is 1); PROF_BEGIN keeps a token there while it is open
      12  u16           context (context_bits of them), above it more bits of the start
      14  u16           more bits of the end; bit 15: the span is open (then the end means nothing)
     So a start has 48 - context_bits bits and an end 47; the rest follows from the record before and from the start.
     A field: 0 u32 key: address of the argument's key; 4 u32 type | length << 8 | more fields << 31; 8 u32 low, 12 u32 high half of
     the value, or the first 8 bytes of a text, whose rest lies in the cells behind.
     Of npuprof_npu.h, by their three values (VALUE, SECOND, THIRD; a SECOND or THIRD that is not there is 0). device: its number, from 1:
       NOTE_DEVICE   nominal_hz; max_rate_ppb | bits of its counter << 32; device | pe_count << 8
       NOTE_ANCHOR   device_ticks; host_after, in ticks; device | epoch << 8 | (host_after - host_before) << 32
       NOTE_TALLY    what is added; which NPUPROF_NOTE_*; device
       DEVICE        start_ticks; end_ticks; device | epoch << 8 | sampled << 24 | low << 32. low of a sampled one: number from 1 of the
                     cell of its host span, whose name and category it has; else: the pe
     A call site in the target's memory: pointer to the name, pointer to the category, u8 kind. The ELF file has it.
   PARTS    NPUPROF_LAYOUT_PARTS is what npuprof_write_image() makes of that: the header, parts, and the header again. A header's crc is of
     the 76 bytes before it. A part is a head of 20 bytes (npuprof_part_head_) and up to 16 cells. Each can be checked and found by itself: a
     header by its magic, a part by its mark. `first` counts on from part to part, so it says what is missing, and where. names: the name,
     a 0, the category (none: nothing), a 0 and the kind of each call site in the order of the records, and behind a record the key of
     each field that has one, with a 0. */

enum { NPUPROF_LAYOUT_ARENA = 1, NPUPROF_LAYOUT_STREAM = 2, NPUPROF_LAYOUT_COMPACT = 3, NPUPROF_LAYOUT_PARTS = 4 };
enum { NPUPROF_ARG_STR_CUT_ = NPUPROF_ARG_STR + 1, NPUPROF_ARG_STR_NULL_ };
/* The layout is the same for every compiler and machine. */
#define NPUPROF_ASSERT_(name, condition) typedef char npuprof_assert_##name##_[(condition) ? 1 : -1] NPUPROF_ATTRIBUTE_((unused))

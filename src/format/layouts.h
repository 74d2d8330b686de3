#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"

/* The image (.npuprof): the one binary format. It has five layouts.
   This part holds what they have in common.

     layout    where it is found                                                      described in
     ARENA     memory of a program that records, its mapped file, a dump of its RAM   format/arena.h
     CODED     what goes into a sink or a file: blocks of coded records               format/arena.h
     STREAM    what did so before 1.0: blocks of records as they are                  format/arena.h
     COMPACT   RAM of firmware that records                                           format/compact.h
     PARTS     what npuprof_write_image() of firmware sends                           format/compact.h

   Every image begins with npuprof_image_start_. All integers of an image are in the byte order that its
   `endian` shows. No structure has padding that a compiler could choose: an image is the same for every
   compiler and machine, up to its byte order.

   All arithmetic with ticks is modulo 2^64. Texts are UTF-8 where the program gave that. The numbers that
   images hold are listed in public/types.h (NPUPROF_KINDS, NPUPROF_LOSSES, NPUPROF_ARG_*) and public/macros.h
   (NPUPROF_STAMP_*, NPUPROF_NOTE_*, NPUPROF_RECORDS_*).

   A change here is seen by the writers (arena/, record/, write/ and firmware/), by read/, by tools/convert/,
   which checks every byte of an image before anything uses it, and by tests/image/second_reader.py, which is
   written by this specification alone. tests/image/corpus/ holds images of every machine, which must be
   readable for ever.

   This room owns no data and does not know who writes or reads an image. */

/* ---- VERSIONS  `format` is 1, and frozen: each reader of format 1 reads each image of format 1.

   What keeps the number: a new kind of record, control id, type of argument or field, type of table entry,
   state of a chunk or block, cause of loss, count of a device; a field that takes the place of one that was 0
   and means nothing by 0. Numbers are appended, and one that was written keeps its meaning. So that it can be
   skipped, a new control id or type of argument takes one unit, a new type of field one cell.
   A reader skips what has a number that it does not know, and counts it.

   What changes it: anything that a reader which skips would misunderstand. A reader refuses a larger number,
   and says which one it reads; a newer reader goes on reading the smaller ones. */

/* ---- KINDS of events and spans, and the value that each has:
     SPAN, RECORD, WARM_UP, INFERENCE, OPERATOR   spans, which nest on their thread: begin and end
     INSTANT                                      0
     COUNTER_INT, COUNTER_UINT, COUNTER_REAL      a signed or unsigned integer, the bits of a double
     MEMORY                                       bytes in use. Its name is the tag, its category the pool;
                                                  without one it is the host's
     FLOW_OUT, FLOW_IN, ASYNC_BEGIN, ASYNC_END    the id. An ASYNC_END ends the last ASYNC_BEGIN of its id,
                                                  and has no name
     FINISHED                                     its start in ns: of a host since the Unix epoch,
                                                  COMPACT and PARTS since `first`
     DEVICE                                       its start in device ticks
   Of two arguments with the same key the later one counts. */

/* The kinds that are spans which nest, so that they have an end: a bit for each. NPUPROF_KIND_NONE, which a
   damaged place has, is handled as one. */
#define NPUPROF_KIND_BIT_(name, nests) | (uint32_t)(nests) << name
#define NPUPROF_KINDS_THAT_NEST_ (1u NPUPROF_KINDS(NPUPROF_KIND_BIT_))
static inline bool npuprof_kind_nests_(uint32_t kind)
{
    return kind < 32 && (NPUPROF_KINDS_THAT_NEST_ >> kind & 1);
}

/* The kinds whose value is the bits of a double. */
static inline bool npuprof_kind_is_real_(uint32_t kind) { return kind == NPUPROF_KIND_COUNTER_REAL; }

/* The first 24 bytes of npuprof_header_ and of npuprof_compact_header_, which repeat these fields. */
typedef struct npuprof_image_start_ {
    char magic[8];                 /*  0 "NPUPROF\n" */
    uint32_t endian;               /*  8 0x01020304, as the machine that wrote the image stores it */
    uint32_t format;               /* 12 1, see VERSIONS */
    uint32_t layout;               /* 16 NPUPROF_LAYOUT_* */
    uint32_t header_bytes;         /* 20 size of the whole header */
} npuprof_image_start_;            /* 24 */

/* Written into images: append only. */
enum {
    NPUPROF_LAYOUT_ARENA = 1,
    NPUPROF_LAYOUT_STREAM = 2,
    NPUPROF_LAYOUT_COMPACT = 3,
    NPUPROF_LAYOUT_PARTS = 4,
    NPUPROF_LAYOUT_CODED = 5
};

/* Types of arguments: the public ones, and these two. */
enum {
    NPUPROF_ARG_STR_CUT_ = NPUPROF_ARG_STR + 1,   /* a string that was longer than an argument may be */
    NPUPROF_ARG_STR_NULL_,                        /* a string that was NULL */
    NPUPROF_ARG_TYPE_COUNT_
};

/* Checked when compiling; a false condition gives an array of size -1.
   Why not _Static_assert: C99 and C++ do not have it. */
#define NPUPROF_ASSERT_(name, condition)                              \
    typedef char npuprof_assert_##name##_[(condition) ? 1 : -1]       \
        NPUPROF_ATTRIBUTE_((unused))

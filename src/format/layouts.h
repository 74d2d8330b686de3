#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"

/* The image (.npuprof): the one binary format. It has four layouts.
   This part holds what they have in common.

     layout    where it is found                                                      described in
     ARENA     memory of a program that records, its mapped file, a dump of its RAM   format/arena.h
     STREAM    what goes into a sink or a file, block by block                        format/arena.h
     COMPACT   RAM of firmware that records                                           format/compact.h
     PARTS     what npuprof_write_image() of firmware sends                           format/compact.h

   Every image begins with npuprof_image_start_. All integers of an image are in the byte order that its
   `endian` shows. No structure has padding that a compiler could choose: an image is the same for every
   compiler and machine, up to its byte order.

   A change here is seen by the writers (arena/, record/, write/ and firmware/), by read/, and by
   tools/convert/, which checks every byte of an image before anything uses it. Enumerations are only
   appended to: a number that was written keeps its meaning. What an older reader would misunderstand needs
   a new `format`.

   This room owns no data and does not know who writes or reads an image. */

/* The first 24 bytes of npuprof_header_ and of npuprof_compact_header_, which repeat these fields. */
typedef struct npuprof_image_start_ {
    char magic[8];                 /*  0 "NPUPROF\n" */
    uint32_t endian;               /*  8 0x01020304, as the machine that wrote the image stores it */
    uint32_t format;               /* 12 1: the only one so far */
    uint32_t layout;               /* 16 NPUPROF_LAYOUT_* */
    uint32_t header_bytes;         /* 20 size of the whole header */
} npuprof_image_start_;            /* 24 */

/* Written into images: append only. */
enum {
    NPUPROF_LAYOUT_ARENA = 1,
    NPUPROF_LAYOUT_STREAM = 2,
    NPUPROF_LAYOUT_COMPACT = 3,
    NPUPROF_LAYOUT_PARTS = 4
};

/* Types of arguments: the public ones, and these two. */
enum {
    NPUPROF_ARG_STR_CUT_ = NPUPROF_ARG_STR + 1,   /* a string that was longer than an argument may be */
    NPUPROF_ARG_STR_NULL_                         /* a string that was NULL */
};

/* Checked when compiling; a false condition gives an array of size -1.
   Why not _Static_assert: C99 and C++ do not have it. */
#define NPUPROF_ASSERT_(name, condition)                              \
    typedef char npuprof_assert_##name##_[(condition) ? 1 : -1]       \
        NPUPROF_ATTRIBUTE_((unused))

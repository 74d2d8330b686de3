#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/types.h"

/* The image (.npuprof): the one binary format. It has four layouts; this part holds what they have in
   common.

     layout    where it is found                                                      described in
     ARENA     memory of a program that records, its mapped file, a dump of its RAM   format/arena.h
     STREAM    what goes into a sink or a file, block by block                        format/arena.h
     COMPACT   RAM of firmware that records                                           format/compact.h
     PARTS     what npuprof_write_image() of firmware sends                           format/compact.h

   Every image begins with these 24 bytes:
      0  u8[8]  magic          "NPUPROF\n"
      8  u32    endian         0x01020304, in the byte order of the machine that wrote the image
     12  u32    format         1
     16  u32    layout         NPUPROF_LAYOUT_*
     20  u32    header_bytes   size of the whole header
   All integers of an image are in the byte order that `endian` shows. No structure has padding that a
   compiler could choose, so an image is the same for every compiler and machine, up to its byte order.

   This room owns no data and does not know who writes or reads an image. */

enum {
    NPUPROF_LAYOUT_ARENA = 1,
    NPUPROF_LAYOUT_STREAM = 2,
    NPUPROF_LAYOUT_COMPACT = 3,
    NPUPROF_LAYOUT_PARTS = 4
};

/* Types of arguments, behind the public ones: a string that was cut to the longest length, a NULL string. */
enum { NPUPROF_ARG_STR_CUT_ = NPUPROF_ARG_STR + 1, NPUPROF_ARG_STR_NULL_ };

/* Checked when compiling. Why not _Static_assert: C99 and C++ do not have it. */
#define NPUPROF_ASSERT_(name, condition)                              \
    typedef char npuprof_assert_##name##_[(condition) ? 1 : -1]       \
        NPUPROF_ATTRIBUTE_((unused))

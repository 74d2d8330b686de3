#pragma once   /* SPDX-License-Identifier: MIT */
#include "layouts.h"

/* ---- NPUPROF_LAYOUT_COMPACT */
typedef struct npuprof_compact_header_ {
    uint8_t magic[8];              /*  0 the first 24 bytes as in npuprof_header_ */
    uint32_t endian, format, layout, header_bytes;   /* 8 */
    uint8_t clock_bits, context_bits, pointer_bytes, build_kind;   /* 24; NPUPROF_BUILD_* */
    uint32_t cells, used;          /* 28 cells behind the header, and how many of them are taken; more than there are: all */
    uint32_t lost, lost_notes;     /* 36 spans and events that found no room; and names, metadata, pauses, what is said of devices */
    uint32_t clock;                /* 44 the clock when last read, without its low bits */
    uint32_t hz_low, hz_high;      /* 48 its rate */
    uint32_t first_low, first_high;   /* 56 the stamp at the start of the trace */
    uint32_t address_low, address_high;   /* 64 of a constant of the program, where addresses have more than 32 bits: others are near it */
    uint32_t build;                /* 72 says which program wrote this, as build_kind says */
    uint32_t crc;                  /* 76 in memory always 0: it stands where cell -1 would have its flag */
} npuprof_compact_header_;                /* 80 */
typedef struct npuprof_cell_ {
    uint32_t ref, start, end;
    union { uint32_t word; uint16_t half[2]; } high;
} npuprof_cell_;
enum { NPUPROF_BUILD_UNKNOWN_, NPUPROF_BUILD_GNU_ };   /* build: nothing; the first four bytes of the GNU build id, as a word */
enum { NPUPROF_BUILD_NOTE_HEAD_ = 16 };  /* bytes of a GNU build id's note before the id */
/* ---- NPUPROF_LAYOUT_PARTS */
enum { NPUPROF_PART_CELLS_ = 16 };
#define NPUPROF_PART_MARK_ 0x5442504Eu
typedef struct npuprof_part_head_ {
    uint32_t mark;                 /*  0 */
    uint32_t first;                /*  4 number of its first cell */
    uint16_t count, lead;          /*  8 cells, and how many of them belong to a record that began in an earlier part */
    uint32_t names;                /* 12 CRC of the names of the records that begin here; 0: the target does not know them */
    uint32_t crc;                  /* 16 of the 16 bytes before it and the cells behind it */
} npuprof_part_head_;                   /* 20 */
/* CRC-32 as in zip and Ethernet; begin with UINT32_MAX, and take the complement at the end. */
static inline uint32_t npuprof_crc_add_(uint32_t crc, const void *bytes, size_t count)
{
    for (const uint8_t *p = (const uint8_t *)bytes; count--; p++) {
        crc ^= *p;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0xEDB88320u & (0 - (crc & 1)));
    }
    return crc;
}
#define NPUPROF_CELL_OPEN_ 0x8000u
#define NPUPROF_CELL_CLEARED_ 2u           /* ref of a cell that npuprof_clear() has emptied */
#define NPUPROF_FIELD_MORE_ 0x80000000u
enum { NPUPROF_CELL_STAMP_BITS_ = 47 };
enum { NPUPROF_FIELD_NAME_ = 8, NPUPROF_FIELD_CATEGORY_, NPUPROF_FIELD_TRACK_, NPUPROF_FIELD_VALUE_, NPUPROF_FIELD_SECOND_, NPUPROF_FIELD_THIRD_,
       NPUPROF_FIELD_RESULT_ };    /* after the types of arguments; the last: an npuprof_result, an argument whose text the host has */
enum { NPUPROF_CELL_KIND_THREAD_ = 64, NPUPROF_CELL_KIND_METADATA_, NPUPROF_CELL_KIND_PAUSE_, NPUPROF_CELL_KIND_DEVICE_, NPUPROF_CELL_KIND_ANCHOR_, NPUPROF_CELL_KIND_COUNT_ };   /* kinds that are no events: a thread's name, as an
                                      argument; metadata: the key is the name, the value an argument; a pause, as a span */
NPUPROF_ASSERT_(part, sizeof(npuprof_part_head_) == 20);
NPUPROF_ASSERT_(compact, sizeof(npuprof_compact_header_) == 80 && offsetof(npuprof_compact_header_, hz_low) == 48 && sizeof(npuprof_cell_) == 16);

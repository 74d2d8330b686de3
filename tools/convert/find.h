#pragma once   /* SPDX-License-Identifier: MIT */
#include "cells.h"

/* Where an image begins. One of a host begins with the file. One of firmware may lie anywhere: in a dump of
   memory, in a core file, or in what a serial line brought beside other output. */

static bool npuprof_load_is_firmware_(uint32_t layout)
{
    return layout == NPUPROF_LAYOUT_COMPACT || layout == NPUPROF_LAYOUT_PARTS;
}

/* Looks for the first header of a layout from `from` to `to`. False: there is none. */
static bool npuprof_load_find_layout_(const uint8_t *bytes, size_t count, uint32_t from, uint32_t to,
                                      npuprof_load_found_ *found)
{
    const uint8_t *const end = bytes + count;
    uint32_t words[4];
    for (const uint8_t *p = bytes; count >= 24 && p <= end - 24; p++) {
        p = (const uint8_t *)memchr(p, 'N', (size_t)(end - 23 - p));
        if (!p) break;
        if (memcmp(p, "NPUPROF\n", 8) != 0) continue;
        memcpy(words, p + 8, sizeof words);
        if (words[0] == 0x04030201u) npuprof_load_swap32_(words, 4);
        if (words[0] != 0x01020304u || words[2] < from || words[2] > to) continue;
        if (words[1] != 1) continue;
        const bool is_firmware = npuprof_load_is_firmware_(words[2]);
        if (is_firmware &&
            npuprof_expand_header_fault_(p, (size_t)(end - p), &found->header, &found->swap)) continue;
        found->layout = words[2];
        found->at = (size_t)(p - bytes);
        return true;
    }
    return false;
}

/* Finds the image in a file. in_dump: it may be a dump of memory. Why COMPACT before PARTS: the memory may
   still hold parts that were sent. */
static npuprof_load_found_ npuprof_load_find_image_(const uint8_t *bytes, size_t count, bool in_dump)
{
    npuprof_load_found_ found;
    npuprof_parts_item_ item;
    const size_t head = (size_t)npuprof_min_(count, sizeof found.header);
    memset(&found, 0, sizeof found);
    if (count >= 8 && memcmp(bytes, "NPUPROF\n", 8) == 0 &&
        npuprof_load_find_layout_(bytes, head, NPUPROF_LAYOUT_ARENA, NPUPROF_LAYOUT_CODED, &found))
        return found;
    if (in_dump &&
        npuprof_load_find_layout_(bytes, count, NPUPROF_LAYOUT_ARENA, NPUPROF_LAYOUT_COMPACT, &found))
        return found;
    for (found.at = 0; npuprof_parts_next_(bytes, count, true, &found.at, &item); found.at += item.bytes) {
        if (!item.is_header) continue;
        found.layout = NPUPROF_LAYOUT_PARTS;
        found.header = item.c;
        found.swap = item.swap;
        return found;
    }
    memset(&found, 0, sizeof found);
    return found;
}

/* Why nothing was found, and where: the header of firmware's image is none, though the file begins as one; or
   the file is a dump of memory, and was not said to be one. NULL: what is there is for header.h to say. */
static const char *npuprof_load_find_fault_(const uint8_t *bytes, size_t count, bool in_dump, size_t *at)
{
    npuprof_load_found_ found;
    const uint32_t layout = NPUPROF_LAYOUT_COMPACT;
    uint32_t words[2];                     /* endian, format */
    *at = 0;
    /* Bytes 16 to 19 are the layout, in either byte order. */
    if (count >= 24 && memcmp(bytes, "NPUPROF\n", 8) == 0 &&
        npuprof_load_is_firmware_(bytes[16] | bytes[19])) {
        if (count < sizeof found.header) return "shorter than a header";
        memcpy(words, bytes + 8, sizeof words);
        if (words[0] == 0x04030201u) npuprof_load_swap32_(words, 2);
        return words[0] == 0x01020304u && words[1] > 1 ? "an image format that this version does not know"
                                                       : "a damaged header";
    }
    if (in_dump) return "nothing of npuprof is in this dump: it must hold the memory of the arena, after "
                        "npuprof_start(); the search began";
    if (!npuprof_load_find_layout_(bytes, count, layout, layout, &found)) return NULL;
    *at = found.at;
    return "a dump of memory, whose names are in the program: give --elf FIRMWARE.elf; its image begins";
}

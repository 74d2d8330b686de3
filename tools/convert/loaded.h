#pragma once   /* SPDX-License-Identifier: MIT */
#include "api.h"
#include "file.h"

/* The one loaded image, and its damage.
   Data: npuprof_loaded_, and the pointer npuprof_image_given_ of the reader, which is set while an image is
   loaded. Only the thread that has the readers' lock reads or writes them. What follows
   from the file's contents lies in `side`, so the image itself stays as it is, but for byte order and
   damage. */

/* A block that was coded. */
typedef struct npuprof_load_block_ {
    uint64_t offset;                       /* where it was in the file */
    uint32_t most;                         /* of its call sites the largest number - 1, if all of its records
                                              have one unit and arguments of one, or were moved; UINT32_MAX:
                                              others may be there */
} npuprof_load_block_;

static struct {
    npuprof_image_ image;                  /* what the reader is given */
    npuprof_header_ header;                /* a copy of the image's header, in our byte order */
    void *file, *side;                     /* memory of our own, or NULL: the file; what was made of it */
    size_t file_bytes, side_bytes;
    void *table;                           /* the table of names with those of functions, or NULL */
    size_t table_bytes;
    npuprof_damage damage;
    bool swap;                             /* the image has the other byte order */
    size_t from;                           /* offset in the file where the image to load begins */
    bool is_live, is_target;               /* a process goes on writing into the file; firmware does */
    uint32_t *order;                       /* indexes of the chunks with records, by owner and position */
    uint32_t ordered;                      /* how many */
    /* of a stream whose units were coded (coded.h): its blocks; how many; the file's size */
    struct { const npuprof_load_block_ *blocks; uint64_t count, end; } coded;
} npuprof_loaded_;

/* Where in the file is what lies at this offset of the image? Of a block that was coded, its beginning. */
static uint64_t npuprof_load_offset_in_file_(uint64_t offset)
{
    const npuprof_header_ *const h = &npuprof_loaded_.header;
    if (!npuprof_loaded_.coded.blocks || offset < h->header_bytes) return offset;
    const uint64_t block = (offset - h->header_bytes) / h->chunk_bytes;
    return block < npuprof_loaded_.coded.count ? npuprof_loaded_.coded.blocks[block].offset
                                               : npuprof_loaded_.coded.end;
}

/* Counts a damaged place. The first one is reported. */
static void npuprof_load_note_damage_(uint64_t offset, const char *what)
{
    if (npuprof_loaded_.damage.places++) return;
    npuprof_loaded_.damage.offset = npuprof_load_offset_in_file_(offset);
    npuprof_loaded_.damage.what = what;
}

/* Nothing can be read, because of what is at this offset. */
static npuprof_result npuprof_load_refuse_(uint64_t offset, const char *what)
{
    npuprof_loaded_.damage.places = 0;
    npuprof_load_note_damage_(offset, what);
    return NPUPROF_ERR_FORMAT;
}

static void npuprof_load_release_locked_(void)
{
    npuprof_image_given_ = NULL;
    if (npuprof_loaded_.table) npuprof_os_unmap_(npuprof_loaded_.table, npuprof_loaded_.table_bytes);
    if (npuprof_loaded_.side) npuprof_os_unmap_(npuprof_loaded_.side, npuprof_loaded_.side_bytes);
    npuprof_load_free_(npuprof_loaded_.file, npuprof_loaded_.file_bytes);
    memset(&npuprof_loaded_, 0, sizeof npuprof_loaded_);
}

/* Does a chunk in this state hold records? */
static bool npuprof_load_has_records_(uint16_t state)
{
    return state == NPUPROF_CHUNK_OPEN || state == NPUPROF_CHUNK_RETIRED;
}

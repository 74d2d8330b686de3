#pragma once   /* SPDX-License-Identifier: MIT */
#include "api.h"

static struct {
    npuprof_image_ image;
    npuprof_header_ header;
    void *file, *side;                     /* our own mappings, or NULL */
    size_t file_bytes, side_bytes;
    npuprof_damage damage;
    bool swap;                             /* the image is of the other byte order */
    uint32_t *order;                       /* chunks of the slots, by owner and position */
    uint32_t ordered;
} npuprof_loaded_;

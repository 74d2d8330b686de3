#pragma once   /* SPDX-License-Identifier: MIT */
#include "cells.h"

/* What find.h has found and expand.h expands. */

typedef struct npuprof_load_found_ {
    size_t at;                             /* offset of its header */
    uint32_t layout;                       /* NPUPROF_LAYOUT_*; 0: there is no image */
    npuprof_compact_header_ header;        /* of a firmware's image, in our byte order */
    bool swap;                             /* a firmware's image has the other byte order */
} npuprof_load_found_;

#pragma once   /* SPDX-License-Identifier: MIT */
#include "../public/compiler.h"

static void npuprof_text_copy_(char *to, size_t room, const char *from)
{
    size_t n = 0;
    for (; from && from[n] && n + 1 < room; n++) to[n] = from[n];
    to[n] = 0;
}

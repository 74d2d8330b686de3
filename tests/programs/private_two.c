/* See private_one.c.
   SPDX-License-Identifier: MIT */
#define NPUPROF_STATIC
#define NPUPROF_ARENA_BYTES 4096
#include "npuprof.h"

void two(void);
void two(void)
{
    PROF_SCOPE("two");
}

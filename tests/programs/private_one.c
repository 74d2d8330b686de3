/* A file with an arena of its own, beside that of private_two.c.
   SPDX-License-Identifier: MIT */
#define NPUPROF_STATIC
#define NPUPROF_ARENA_BYTES 65536
#include "npuprof.h"

void two(void);
int main(void)
{
    { PROF_SCOPE("one"); two(); }
    return 0;
}

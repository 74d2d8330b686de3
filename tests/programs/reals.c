/* Records doubles, given as the bytes of a file, as arguments, and writes them as JSON.
   SPDX-License-Identifier: MIT usage: reals DOUBLES JSON */
#include "npuprof.h"
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    npuprof_desc desc;
    double v;
    memset(&desc, 0, sizeof desc);
    desc.arena_bytes = (size_t)64 << 20;
    desc.arena = malloc(desc.arena_bytes);
    FILE *const f = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!f || !desc.arena || npuprof_init(&desc) != NPUPROF_OK) return 2;
    npuprof_start(1);
    while (fread(&v, sizeof v, 1, f) == 1) PROF_INSTANT(NULL, "real", PROF_ARGS(PROF_REAL("x", v)));
    fclose(f);
    return npuprof_dump(argv[2]) == NPUPROF_OK ? 0 : 1;
}

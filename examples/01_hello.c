// SPDX-License-Identifier: MIT
#define NPUPROF_IMPLEMENTATION   // in one file of the program
#include "npuprof.h"

static int square(int n)
{
    PROF_FUNCTION();             // ends by itself, however the block is left
    return n * n;
}

int main(void)
{
    npuprof_start(1);
    for (int i = 0; i < 3; i++) {
        PROF_SCOPE_ARGS("demo", "step", PROF_ARGS(PROF_ARG("i", i)));
        PROF_COUNTER("result", square(i));
    }
    return npuprof_dump("hello.json");   // NPUPROF_OK is 0
}

/* Spans with results whose records do not follow those of results: a span is before each and one is inside.
   SPDX-License-Identifier: MIT usage: results_between JSON */
#include "npuprof.h"

int main(int argc, char **argv)
{
    npuprof_start(1);
    for (int n = 0; n < 5; n++) {
        { PROF_SCOPE("before"); }
        PROF_SCOPE_ARGS("c", "with", PROF_ARGS(PROF_INT("n", n), PROF_INT("twice", -1)));
        { PROF_SCOPE("inside"); }
        PROF_RESULT(PROF_INT("twice", 2 * n), PROF_STR("text", n % 2 ? "a \"quote\"" : "plain"));
    }
    return argc == 2 && npuprof_dump(argv[1]) == NPUPROF_OK ? 0 : 1;
}

/* Call sites of each form; those whose line says "here" stand there. usage: source FILE...
   SPDX-License-Identifier: MIT */
#include "npuprof.h"

static void function(void) { PROF_FUNCTION(); }                        /* here */

static int twice(const char *name)
{
    PROF_BEGIN("c", name);                                             /* here */
    PROF_RESULT(PROF_INT("n", 1));
    PROF_END();
    WITH_BASE_PROFILER(NULL, name, "with", PROF_NO_ARGS, { ; });       /* here */
    return 0;
}

int main(int argc, char **argv)
{
    npuprof_start(1);
    { PROF_SCOPE("scope"); }                                           /* here */
    { PROF_SCOPE_ARGS("c", "args", PROF_ARGS(PROF_INT("n", 1))); }     /* here */
    { PROF_SCOPE("scope"); PROF_RESULT(PROF_INT("n", 1)); }            /* here */
    { PROF_INFERENCE("inference"); }                                   /* here */
    { PROF_OPERATOR(1, "operator"); }                                  /* here */
    { PROF_PHASES("one"); PROF_NEXT("two"); }                          /* here */
    PROF_BLOCK("c", "block") { PROF_INSTANT("c", "now"); }             /* here */
    function();
    char name[] = "made";
    int bad = twice(name);
    name[0]++;
    bad += twice(name);
    npuprof_span("track", "c", "finished", npuprof_now_ns(), npuprof_now_ns(), PROF_NO_ARGS);
    npuprof_stop();
    for (int i = 1; i < argc; i++) bad += npuprof_dump(argv[i]) != NPUPROF_OK;
    return bad;
}

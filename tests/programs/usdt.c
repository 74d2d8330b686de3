/* A mark of each kind, in a file with NPUPROF_USDT; usdt_other() is in one without, if TWO is defined.
   SPDX-License-Identifier: MIT */
#include "npuprof.h"

#ifdef __cplusplus
extern "C" void usdt_other(void);
#else
void usdt_other(void);
#endif

#ifndef OTHER
static void leaf(int i)
{
    PROF_FUNCTION();
    PROF_COUNTER("count", i);
    if (i == 1) return;                  /* ends the span */
    PROF_INSTANT("cat", "moment", PROF_NO_ARGS);
}

int main(void)
{
    char name[] = "made at run time";
    for (int i = 0; i < 2; i++) {
        PROF_SCOPE_CAT("cat", "loop");
        leaf(i);
        PROF_BEGIN("cat", name);
        PROF_END();
    }
    PROF_BLOCK("cat", "block") {
        WITH_BASE_PROFILER(NULL, name, "cat", PROF_NO_ARGS, { name[0] = 'M'; });
    }
    {
        PROF_PHASES("one");
        PROF_NEXT("two");
    }
    PROF_FLOW_OUT(7);
    PROF_INFERENCE("inference");
#ifdef TWO
    usdt_other();
#endif
    return 0;
}
#else /* OTHER */

void usdt_other(void)
{
    PROF_SCOPE("other");
    PROF_BLOCK("cat", "other block") PROF_COUNTER("other count", 1);
}
#endif /* OTHER */

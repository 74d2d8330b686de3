/* two spans that are open at the end, and a finished one that ends much later: argument "exit", "kill", or
   else a file to dump into.
   SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "npuprof.h"

int main(int argc, char **argv)
{
    const char *const how = argc > 1 ? argv[1] : "exit";
    npuprof_start(1);
    PROF_SCOPE_CAT("c", "outer");
    const int64_t now = npuprof_now_ns();
    npuprof_span("plan", "plan", "deadline", now, now + INT64_C(1000000000000), PROF_NO_ARGS);
    for (int i = 0; i < 2; i++) { PROF_SCOPE("done"); }
    PROF_SCOPE("waiting");
    usleep(60000);
    if (strcmp(how, "exit") == 0) exit(0);
    if (strcmp(how, "kill") == 0) {
        npuprof_flush();
        raise(SIGKILL);
    }
    return npuprof_dump(how) != NPUPROF_OK;
}

/* An instrumented program that never calls npuprof. What else it does is in its arguments:
   fork: a child with spans of its own; execute: three more steps after it has executed itself; abort: ends by
   abort(); fail: ends with 4; wait: says so, and ends when its standard input does.
   SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "npuprof.h"

int main(int argc, char **argv)
{
    const char *extra = argc > 1 ? argv[1] : "";
    const bool executes = !strcmp(extra, "execute");
    PROF_FUNCTION();
    if (executes) {
        pid_t child = fork();
        if (child == 0) {
            execl(argv[0], argv[0], (char *)NULL);
            _exit(5);
        }
        if (waitpid(child, NULL, 0) != child) return 3;
    }
    for (int i = 0; i < (executes ? 6 : 3); i++) {
        PROF_SCOPE_CAT("runtime", "step");
        { PROF_SCOPE_LEVEL(2, "detail", "level 2", PROF_NO_ARGS); }
        { PROF_SCOPE_LEVEL(9, "detail", "level 9", PROF_NO_ARGS); }
        WITH_BASE_PROFILER(NULL, "kernel", "npu", PROF_ARGS(PROF_INT("i", i)), usleep(100));
    }
    if (!strcmp(extra, "fork")) {
        pid_t child = fork();
        if (child == 0) {
            { PROF_SCOPE("of the child"); }
            return 0;
        }
        if (waitpid(child, NULL, 0) != child) return 3;
    }
    if (!strcmp(extra, "wait") && write(1, ".", 1) == 1)
        for (char c; read(0, &c, 1) > 0;) continue;
    if (!strcmp(extra, "abort")) abort();
    return !strcmp(extra, "fail") ? 4 : 0;
}

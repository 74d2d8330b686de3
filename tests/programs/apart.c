/* Writes an image with ends of arrows whose partners are in other processes. Usage: apart [+-=]ID... PATH
   +ID an out, -ID an in, each in a span of its own; =ID: both in this process.
   SPDX-License-Identifier: MIT */
#include "npuprof.h"
#include <stdlib.h>

int main(int argc, char **argv)
{
    npuprof_start(1);
    for (int i = 1; i < argc - 1; i++) {
        const unsigned long id = strtoul(argv[i] + 1, NULL, 10);
        if (argv[i][0] != '-') {
            PROF_SCOPE("sends");
            PROF_FLOW_OUT(id);
        }
        if (argv[i][0] != '+') {
            PROF_SCOPE("gets");
            PROF_FLOW_IN(id);
        }
    }
    return argc < 2 || npuprof_dump(argv[argc - 1]) != NPUPROF_OK;
}

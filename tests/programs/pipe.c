/* Dumps into the fifo argv[1] until its reader is gone: a result then, not a signal.
   SPDX-License-Identifier: MIT */
#include <unistd.h>
#include "npuprof.h"

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    npuprof_start(1);
    for (int i = 0; i < 20000; i++) { PROF_SCOPE("more than a pipe holds"); }
    npuprof_result result = npuprof_dump(argv[1]);
    if (result != NPUPROF_ERR_IO) printf("result %d: %s\n", (int)result, npuprof_result_string(result));
    npuprof_stats stats;
    npuprof_get_stats(&stats);
    return result == NPUPROF_ERR_IO && stats.recorded == 20000 ? 0 : 3;
}

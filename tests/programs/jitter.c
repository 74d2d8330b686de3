/* Records ten names with random durations, on a clock of its own. Usage: jitter SEED COUNT SLOWER PATH: op3
   takes SLOWER percent more.
   SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include "fake_clock.h"
#include "npuprof.h"

int main(int argc, char **argv)
{
    if (argc < 5) return 2;
    uint64_t random = strtoull(argv[1], NULL, 10) * UINT64_C(0x9E3779B97F4A7C15) + 1;
    const int count = atoi(argv[2]), slower = atoi(argv[3]);
    npuprof_start(1);
    for (int i = 0; i < count; i++)
        for (unsigned op = 0; op < 10; op++) {
            char name[8];
            uint64_t ns = 10000;
            snprintf(name, sizeof name, "op%u", op);
            for (int k = 0; k < 4; k++) {         /* a sum of four: bell-shaped, 10 % wide */
                random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                ns += random >> 53;
            }
            if (op == 3) ns = ns * (uint64_t)(100 + slower) / 100;
            WITH_BASE_PROFILER(NULL, name, "op", PROF_NO_ARGS, fake_ticks += ns);
        }
    npuprof_stop();
    return (int)npuprof_dump(argv[4]);
}

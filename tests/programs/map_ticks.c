/* Maps device ticks by clock anchors: reads from a file "ppb window count", `count` anchors "ticks before
   after" and then ticks; prints the host ticks and the error of each.
   SPDX-License-Identifier: MIT */
#include "npuprof.h"
#include "npuprof_npu.h"
#include <inttypes.h>

int main(int argc, char **argv)
{
    static npuprof_anchor_ anchors[64];
    npuprof_map_reads_ reads = { anchors, 0, NULL, 0, { .second = 1000000000 } };
    unsigned count;
    uint64_t ticks, host, error;
    if (argc != 2 || !freopen(argv[1], "r", stdin)) return 2;
    if (scanf("%" SCNu32 " %" SCNu64 " %u", &reads.rate.max_rate_ppb, &reads.rate.window, &count) != 3)
        return 2;
    if (count > sizeof anchors / sizeof *anchors) return 2;
    reads.count = count;
    for (unsigned i = 0; i < count; i++)
        if (scanf("%" SCNu64 " %" SCNu64 " %" SCNu64, &anchors[i].device_ticks, &anchors[i].host_before,
                  &anchors[i].host_after) != 3) return 2;
    while (scanf("%" SCNu64, &ticks) == 1) {
        const bool good = npuprof_map_ticks_(&reads, ticks, &host, &error);
        printf("%d %" PRIu64 " %" PRIu64 "\n", good, host, error);
    }
    return 0;
}

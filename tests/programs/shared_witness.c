/* A second opinion of the clocks in an NPU's shared memory, for baremetal/shared.py: many exchanges, each as
   a line: the firmware's ticks, and CLOCK_MONOTONIC before and after.
   usage: shared_witness MEMORY SECONDS
   SPDX-License-Identifier: MIT */
#define main shared_main
#include "../../examples/firmware/shared_host.c"
#undef main

int main(int argc, char **argv)
{
    exchange x;
    if (argc != 3 || !open_mailbox(argv[1])) return 1;
    const int64_t end = read_clock(CLOCK_MONOTONIC) + atoi(argv[2]) * 1000000000LL;
    while (read_clock(CLOCK_MONOTONIC) < end) {
        exchange_once(&x);
        printf("%llu %lld %lld\n", (unsigned long long)x.ticks, (long long)x.before[1],
               (long long)x.after[1]);
    }
    return 0;
}

/* Start-up: from before the library's constructor to the end of the first span, less what lies in between and
   is not the library's. Prints us. SPDX-License-Identifier: MIT
   Why a program of its own, and small: each page that is touched first costs a fault, and a benchmark with
   arrays has more of them. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
static double started_at = 1, set_up_at = 1;     /* initialised: they lie in a page that is there already */
static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

__attribute__((constructor(101))) static void before(void)
{
    started_at = now_us();
    started_at = now_us();
}
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

__attribute__((constructor(102))) static void after(void)
{
    set_up_at = now_us();
}

int main(void)
{
    const double in_main = now_us();
    npuprof_start(1);
    { PROF_SCOPE("first"); }
    const double end = now_us();
    printf("%.3f %.3f\n", set_up_at - started_at, end - in_main);
    return 0;
}

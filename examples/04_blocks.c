/* Spans around blocks of code, with run-time names. Records, inferences and operators for the reports.
   SPDX-License-Identifier: MIT
   Build: cc -I.. 04_blocks.c */
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"

static int quantize(int x)
{
    PROF_OPERATOR(0, "Quantize");                  /* a row of npuprof_print_external_operators() */
    return x / 2;
}

static int infer(int x)
{
    PROF_INFERENCE("Inference");                   /* a row of npuprof_print_inferences() */
    char name[32];
    x = quantize(x);
    for (int layer = 0; layer < 3; layer++) {
        snprintf(name, sizeof name, "layer %d", layer);         /* copied: may change afterwards */
        WITH_BASE_PROFILER(NULL, name, "ComputationOperator", PROF_ARGS(PROF_ARG("x", x)), {
            if (x == 0) return 0;                  /* ends the span, too */
            x--;
        });
    }
    return x;
}

int main(void)
{
    int sum = 0;
    npuprof_start(1);
    {
        PROF_RECORD_WARM_UP("warm up");            /* left out of the reports */
        sum += infer(3);
    }
    {
        PROF_RECORD("trace");
        for (int i = 0; i < 10; i++) sum += infer(i);
    }
    npuprof_print_summary(stdout);
    npuprof_print_external_operators(stdout);
    printf("sum %d\n", sum);
    return npuprof_dump("blocks.json");
}

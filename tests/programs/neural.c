/* Records a network of a few operators with the keys of the Neural Engine table, on a clock of its own: one
   warm-up iteration and two more, 1 us apart. Usage: neural PATH...
   SPDX-License-Identifier: MIT */
#include <stdio.h>
#include "fake_clock.h"
#include "npuprof.h"

/* ms of published totals: 4.512 in all, 3.127 of it in operators that can be sparse; 0.075 is the published
   example. */
static const struct { const char *name, *type, *post_op, *weight; uint64_t ns; bool sparse; } operators[] = {
    { "input", "LayerNorm", "", "", 1000000, false },
    { "Add_37", "InnerProduct", "gelu_tanh", "256x256", 75000, true },
    { "Add_38", "InnerProduct", "", "256x256", 2000, true },
    { "=Add_284", "InnerProduct", "sum", "1024x256", 3050000, true },
    { "Soft;\"max\"", "Softmax", "", "", 385000, false },
};

static void iteration(uint64_t more)
{
    for (unsigned i = 0; i < sizeof operators / sizeof *operators; i++)
        WITH_BASE_PROFILER(NULL, operators[i].name, operators[i].type,
                           PROF_ARGS(PROF_STR("ne.type", operators[i].type),
                                     PROF_STR("ne.post_op", operators[i].post_op),
                                     PROF_STR("ne.input_names", "116:0;641:0;bias:0"),
                                     PROF_STR("ne.input_shapes", "1024x256;256x256;256"),
                                     PROF_STR("ne.input_dtypes", "fp32;fp32;fp32"),
                                     PROF_STR("ne.output_names", "Add_37:0"),
                                     PROF_STR("ne.output_shapes", "1024x256"),
                                     PROF_STR("ne.output_dtypes", "fp32"),
                                     PROF_STR("ne.weight_shape", operators[i].weight),
                                     PROF_REAL("ne.sparse_ratio", 0.0),
                                     PROF_BOOL("ne.sparse_support", operators[i].sparse),
                                     PROF_STR("ne.attributes", "append_op:sum;src1_perm:1,0"),
                                     PROF_INT("ne.reshape_ns", 4000),
                                     PROF_INT("ne.forward_ns", (int64_t)operators[i].ns - 4000)),
                           fake_ticks += operators[i].ns + more);
}

int main(int argc, char **argv)
{
    npuprof_start(1);
    {
        PROF_RECORD_WARM_UP("first");
        PROF_INFERENCE("Iteration0");
        iteration(1000000);
    }
    {
        PROF_RECORD("model_inference");
        for (int i = 1; i < 3; i++) {
            PROF_INFERENCE(i == 1 ? "Iteration1" : "Iteration2");
            fake_ticks += 10;
            iteration(i == 1 ? 500 : (uint64_t)0 - 500);     /* the mean is the figure */
            fake_ticks += 10;
        }
    }
    npuprof_stop();
    for (int i = 1; i < argc; i++)
        if (npuprof_dump(argv[i]) != NPUPROF_OK) return 1;
    return 0;
}

/* Three inferences, each in a record of its own, in one outer span: the ids that tools/test_load.py groups
   by.
   SPDX-License-Identifier: MIT */
#include "npuprof.h"
#include "npuprof_npu.h"

static uint64_t read_ticks(void *unused)
{
    (void)unused;
    return (uint64_t)npuprof_now_ns();
}

int main(int argc, char **argv)
{
    static npuprof_npu npu;
    npuprof_npu_desc desc = { 0 };
    desc.read_ticks = read_ticks;
    npuprof_start(1);
    if (npuprof_npu_open(&npu, &desc) != NPUPROF_OK) return 1;
    {
        PROF_SCOPE("serve");
        for (int i = 0; i < 3; i++) {
            PROF_RECORD("trace");
            PROF_INFERENCE("resnet50");
            { PROF_SCOPE("pre"); }
            WITH_NPU_PROFILER(&npu, 0, "conv1", "NPU", PROF_NO_ARGS, (void)0);
        }
    }
    npuprof_npu_close(&npu);
    for (int i = 1; i < argc; i++) if (npuprof_dump(argv[i]) != NPUPROF_OK) return 2;
    return 0;
}

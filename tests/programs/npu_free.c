/* Everything of npuprof_npu.h that firmware has, once; built in many ways by test_compile.py.
   SPDX-License-Identifier: MIT */
#include "npuprof.h"
#include "npuprof_npu.h"

npuprof_npu every_device;
int every_call(int n, char *run_time_name, npuprof_npu_desc *desc);

int every_call(int n, char *run_time_name, npuprof_npu_desc *desc)
{
    uint64_t ticks;
    if (npuprof_npu_open(&every_device, desc) != NPUPROF_OK) return 1;
    for (int i = 0; i < n; i++) {
        WITH_NPU_PROFILER(&every_device, i, "literal", "NPU", PROF_ARGS(PROF_INT("i", i)),
                          if (n == 5) return 3; n++);
        WITH_NPU_PROFILER_LEVEL(2, &every_device, run_time_name, run_time_name, NULL, PROF_NO_ARGS,
                                if (n == 6) break; if (n == 7) continue; n--);
        if (n == 8)
            WITH_NPU_PROFILER(&every_device, 0, "in an if", "NPU", PROF_NO_ARGS, n++);
        else
            WITH_BASE_PROFILER(&every_device.device, "in an else", "NPU", PROF_NO_ARGS, n--);
    }
    PROF_NPU_SCOPE(&every_device, n, run_time_name, "NPU", PROF_NO_ARGS);
    const uint32_t handle = npuprof_npu_begin(&every_device, 1, run_time_name, "NPU", PROF_NO_ARGS);
    if (npuprof_npu_end_args(&every_device, handle, PROF_ARGS(PROF_INT("status", n))) != NPUPROF_OK ||
        npuprof_npu_end(&every_device, 0) != NPUPROF_OK) return 5;
    if (npuprof_npu_read(&every_device, &ticks) != NPUPROF_OK
        || npuprof_npu_sync(&every_device) != NPUPROF_OK) return 2;
    npuprof_npu_span(&every_device, 1, run_time_name, "dma", npuprof_npu_extend(&every_device, 4), ticks,
                     PROF_ARGS(PROF_STR("s", run_time_name)));
    npuprof_npu_close(&every_device);
    return npuprof_npu_fault(desc) ? 4 : 0;
}

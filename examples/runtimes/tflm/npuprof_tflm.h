/* npuprof_tflm.h - TensorFlow Lite Micro's profiler interface on npuprof, for a host or for firmware
   (NPUPROF_FREESTANDING). Include it after npuprof.h, and give a NpuprofMicroProfiler to MicroInterpreter.
   SPDX-License-Identifier: MIT

   TFLM begins an event for each operator, and ends it by its handle. Each becomes a span on the thread or
   context that runs the interpreter, so what the kernel records itself is inside of it: the job of an NPU,
   for instance. Nothing here limits the number of events; that is the arena's. */
#ifndef NPUPROF_TFLM_H
#define NPUPROF_TFLM_H

#include "tensorflow/lite/micro/micro_profiler_interface.h"

class NpuprofMicroProfiler : public tflite::MicroProfilerInterface {
public:
    /* tag: the operator's name. TFLM keeps it; it is copied, and on firmware once a record. */
    uint32_t BeginEvent(const char *tag) override
    {
        PROF_BEGIN("tflm", tag);
        return depth_++;
    }

    /* Ends what was begun inside of the event and not ended, too. An event that is over already: nothing. */
    void EndEvent(uint32_t event_handle) override
    {
        while (depth_ > event_handle) {
            PROF_END();
            depth_--;
        }
    }

private:
    uint32_t depth_ = 0;                 /* events that are open: the handle is how many were before */
#ifdef TF_LITE_REMOVE_VIRTUAL_DELETE     /* of compatibility.h: where there is no heap */
    TF_LITE_REMOVE_VIRTUAL_DELETE
#endif
};
#endif /* NPUPROF_TFLM_H */

/* What npuprof_tflm.h needs of TensorFlow Lite Micro: the same names and signatures, written for the tests.
   SPDX-License-Identifier: MIT */
#pragma once
#include <stdint.h>

#define TF_LITE_REMOVE_VIRTUAL_DELETE void operator delete(void *) { }

namespace tflite {
class MicroProfilerInterface {
public:
    virtual ~MicroProfilerInterface() { }
    virtual uint32_t BeginEvent(const char *tag) = 0;
    virtual void EndEvent(uint32_t handle) = 0;
};
}

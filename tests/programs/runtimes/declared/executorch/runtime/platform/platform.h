/* What npuprof_executorch.h needs of ExecuTorch's platform layer: the same names and signatures, written for
   the tests. The test defines the two functions.
   SPDX-License-Identifier: MIT */
#pragma once
#include <stdint.h>

using et_timestamp_t = uint64_t;
struct et_tick_ratio { uint64_t numerator, denominator; };
using et_tick_ratio_t = et_tick_ratio;

namespace executorch {
namespace runtime {
et_timestamp_t pal_current_ticks();
et_tick_ratio_t pal_ticks_to_ns_multiplier();
}
}

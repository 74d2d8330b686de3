/* SPDX-License-Identifier: MIT */
#pragma once
#include "libkineto.h"

namespace libkineto {
constexpr int64_t kExceedMaxPid = 5000000;

class ActivityLogger {
public:
    virtual ~ActivityLogger() = default;
    virtual void handleActivity(const ITraceActivity &activity) = 0;
};
}

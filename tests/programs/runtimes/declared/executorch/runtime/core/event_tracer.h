/* What npuprof_executorch.h needs of ExecuTorch (cff6f4dd, August 2026): the same names, signatures and
   order, written for the tests.
   SPDX-License-Identifier: MIT */
#pragma once
#include <executorch/runtime/platform/platform.h>
#include <stddef.h>

namespace executorch {
namespace aten {
class Tensor { };
}
namespace runtime {
class EValue { };
template <typename T> class ArrayRef { };
template <typename T> struct Result {
    Result(T v) : value(v) { }
    T value;
};
typedef uint32_t AllocatorID, DebugHandle;
typedef int32_t ChainID, DelegateDebugIntId;
constexpr ChainID kUnsetChainId = -1;
constexpr DebugHandle kUnsetDebugHandle = 0;
constexpr DelegateDebugIntId kUnsetDelegateDebugIntId = -1;
enum class DelegateDebugIdType { kNone, kInt, kStr };
enum class LoggedEValueType { kIntermediateOutput, kProgramOutput };
class EventTracerFilterBase;

struct EventTracerEntry {
    int64_t event_id;
    ChainID chain_id;
    DebugHandle debug_handle;
    et_timestamp_t start_time;
    DelegateDebugIdType delegate_event_id_type;
};

class EventTracer {
public:
    virtual void create_event_block(const char *name) = 0;
    virtual EventTracerEntry start_profiling(const char *name, ChainID chain = kUnsetChainId,
                                             DebugHandle handle = kUnsetDebugHandle) = 0;
    virtual EventTracerEntry start_profiling_delegate(const char *name, DelegateDebugIntId index) = 0;
    virtual void end_profiling_delegate(EventTracerEntry entry, const void *metadata = nullptr,
                                        size_t length = 0) = 0;
    virtual void log_profiling_delegate(const char *name, DelegateDebugIntId index, et_timestamp_t start,
                                        et_timestamp_t end, const void *metadata = nullptr,
                                        size_t length = 0) = 0;
    virtual void end_profiling(EventTracerEntry entry) = 0;
    virtual void track_allocation(AllocatorID id, size_t size) = 0;
    virtual AllocatorID track_allocator(const char *name) = 0;
    virtual Result<bool> log_evalue(const EValue &value, LoggedEValueType type) = 0;
    virtual Result<bool> log_intermediate_output_delegate(const char *, DelegateDebugIntId,
                                                          const aten::Tensor &) = 0;
    virtual Result<bool> log_intermediate_output_delegate(const char *, DelegateDebugIntId,
                                                          const ArrayRef<aten::Tensor>) = 0;
    virtual Result<bool> log_intermediate_output_delegate(const char *, DelegateDebugIntId, const int &) = 0;
    virtual Result<bool> log_intermediate_output_delegate(const char *, DelegateDebugIntId, const bool &) = 0;
    virtual Result<bool> log_intermediate_output_delegate(const char *, DelegateDebugIntId,
                                                          const double &) = 0;
    virtual void set_delegation_intermediate_output_filter(EventTracerFilterBase *filter) = 0;
    void set_chain_debug_handle(ChainID chain, DebugHandle handle)
    {
        chain_id_ = chain;
        debug_handle_ = handle;
    }

    void set_bundled_input_index(int index) { bundled_input_index_ = index; }
    virtual ~EventTracer() { }

protected:
    ChainID chain_id_ = kUnsetChainId;
    DebugHandle debug_handle_ = kUnsetDebugHandle;
    int bundled_input_index_ = -1;
};
}
}

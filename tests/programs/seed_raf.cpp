/* The call shapes of AWS RAF's documents, by examples/seeds/npuprof_raf.h.
   SPDX-License-Identifier: MIT */
#include "npuprof.h"
#include "npuprof_npu.h"
#include "npuprof_raf.h"

#include <memory>

struct device { int type, id; };
struct call_node { device dev; };
struct op_node { std::string name; };
struct request { std::vector<int> memory; };
/* As of TVM: it becomes a std::string. */
struct tvm_string {
    operator std::string() const { return "of TVM"; }
};

static int requested;
static void RequestMemory(request *, int) { requested++; }

static int leaves(const std::string &name)
{
    for (int i = 0; i < 3; i++)
        WITH_BASE_PROFILER(i, name, "left", {}, {
            if (i == 0) continue;
            if (i == 1) break;
        });
    WITH_BASE_PROFILER_LEVEL(2, 0, name + " at level 2", "VMInstruction", {}, { requested++; });
    if (name.empty()) WITH_BASE_PROFILER(0, "no", "left", {}, return 0);
    else WITH_BASE_PROFILER(0, "returns", "left", {}, return 1);
    return 2;
}

static bool pool(uint64_t *used, uint64_t *allocated)
{
    *used = 1 << 20, *allocated = 2 << 20;
    return true;
}

int main()
{
    const auto call = std::make_shared<call_node>();
    const auto op = std::make_shared<op_node>(op_node{ "raf.op.dense" });
    const auto req = std::make_shared<request>(request{ { 1, 2, 3 } });

    WITH_BASE_PROFILER(call->dev, op->name, "MemoryRequest",
                  {"Count: " + std::to_string(req->memory.size())}, {
                    for (int i = 0, n = req->memory.size(); i < n; ++i) {
                      RequestMemory(req.get(), i);
                    }
                  });

    const std::vector<std::string> several = { "T<768xf32>,", "T<768xf16>" };
    WITH_BASE_PROFILER(call->dev, tvm_string(), std::string("Default Stream"), several, {
        WITH_BASE_PROFILER(call->dev, "inner", "Default Stream", {}, { requested++; });
    });
    WITH_CUDA_PROFILER(call->dev, nullptr, op->name, "Default Stream", {"on a device"}, { requested++; });
    npuprof_raf::memory() = pool;
    PROFILE_MEMORY(call->dev, op->name);
    if (leaves("loop") != 1) return 1;
    printf("%d\n", requested);
    return 0;
}

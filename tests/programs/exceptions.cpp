// Exceptions end spans as every other way out does. argv[1]: the trace to write.
// SPDX-License-Identifier: MIT
#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include <stdexcept>
#include <string>

static void leave(int form, const std::string &name)
{
    PROF_FUNCTION();
    PROF_SCOPE("scope");
    PROF_RECORD(name.c_str());
    PROF_INFERENCE("inference");
    PROF_PHASES("phase 1");
    PROF_NEXT("phase 2");
    WITH_BASE_PROFILER(NULL, "block", "c", PROF_ARGS(PROF_INT("form", form), PROF_STR("name", name.c_str())),
                       {
        PROF_RESULT(PROF_INT("reached", form));
        if (form == 0) throw std::runtime_error("out of the block");
    });
    throw std::runtime_error("out of the function");
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    npuprof_start(1);
    for (int i = 0; i < 2; i++) {
        try {
            PROF_SCOPE("around");
            leave(i, "name " + std::to_string(i));
        } catch (const std::runtime_error &) {
            PROF_SCOPE("caught");
            PROF_RESULT(PROF_INT("status", i));
        }
    }
    auto lambda = [] { PROF_SCOPE("lambda"); };
    lambda();
    return (int)npuprof_dump(argv[1]);
}

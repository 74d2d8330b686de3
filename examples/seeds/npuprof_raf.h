/* npuprof_raf.h - the profiler macros of AWS RAF on npuprof, with std::string and lists of it. C++11. Include
   it in the place of raf/profiler.h; for WITH_CUDA_PROFILER include npuprof_npu.h before it. README.md says
   more.
   SPDX-License-Identifier: MIT

   WITH_BASE_PROFILER(DEVICE, NAME, CAT, ARGS, CODE) and its form with a LEVEL first: a span around CODE,
   which is expanded once, and may be left by return, break, continue and goto. NAME and CAT: anything that
   is, or becomes, a std::string. ARGS: {} or one string in braces, joined or not; a variable of
   std::vector<std::string> holds more, because a comma in braces ends a macro's argument. They are the
   argument args_string. NAME, CAT and ARGS are evaluated only while that level is recorded. DEVICE is not
   looked at: nothing waits for a device.
   These two replace npuprof's macros of the same names in the files that include this one. */
#ifndef NPUPROF_RAF_H
#define NPUPROF_RAF_H
#include "npuprof.h"
#include <cstdlib>
#include <string>
#include <vector>

namespace npuprof_raf {

inline const std::string &text(const std::string &s) { return s; }

inline std::string text(const char *s) { return s ? s : ""; }

template <class T> std::string text(const T &s) { return static_cast<std::string>(s); }

inline std::string joined(const std::vector<std::string> &list)
{
    std::string all;
    for (const std::string &one : list) all += (&one == &list[0] ? "" : ";") + one;
    return all;
}

class span {
public:
    explicit span(int level) : on(npuprof_is_recording_level(level)) {}

    span(span &&other) : on(other.on) { other.on = false; }
    span(const span &) = delete;
    span &operator=(const span &) = delete;
    ~span() { if (on) PROF_END(); }
    explicit operator bool() const { return true; }

    template <class Device, class Name, class Category>
    void begin(const Device &, const Name &name, const Category &category,
               const std::vector<std::string> &args)
    {
        PROF_BEGIN(text(category).c_str(), text(name).c_str());
        if (!args.empty()) PROF_RESULT(PROF_STR("args_string", joined(args).c_str()));
    }
    bool on;
};

/* What PROFILE_MEMORY records: set it to a function that knows the pool. False: there is nothing to say. */
typedef bool (*pool)(uint64_t *used_bytes, uint64_t *allocated_bytes);
inline pool &memory()
{
    static pool source = nullptr;
    return source;
}

inline const char *own(const char *name)
{
    const char *const value = std::getenv(name);
    const std::string is = value ? value : "";
    return is.empty() || is == "0" || is == "off" || is == "false" ? nullptr : value;
}

/* The environment names of RAF's siblings: the trace goes where they say. True: one of them counted. Called
   before main(), once; NPUPROF_OUTPUT_PATH wins. */
inline bool environment()
{
    npuprof_desc desc = npuprof_desc();
    if (own("NPUPROF_OUTPUT_PATH")) return false;
    desc.output_path = own("FURIOSA_PROFILER_OUTPUT_PATH");
    if (!desc.output_path) desc.output_path = own("NUX_PROFILER_PATH");
    if (!desc.output_path && own("ENGINE_PROFILING")) desc.output_path = "engine_profiling/";
    return desc.output_path && npuprof_init(&desc) == NPUPROF_OK && npuprof_start(1) == NPUPROF_OK;
}

inline bool environment_once()
{
    static const bool counted = environment();
    return counted;
}

static const bool environment_is_read __attribute__((unused)) = environment_once();

#ifdef NPUPROF_NPU_VERSION
/* The device of WITH_CUDA_PROFILER: npuprof_raf::npu() = &yours. Until then there is no device span. */
inline npuprof_npu *&npu()
{
    static npuprof_npu none;
    static npuprof_npu *device = &none;
    return device;
}

template <class Context> npuprof_npu *npu_of(const Context &) { return npu(); }
#endif

}  /* namespace npuprof_raf */

#undef WITH_BASE_PROFILER
#undef WITH_BASE_PROFILER_LEVEL
#define NPUPROF_RAF_GLUE2(a, b) a##b
#define NPUPROF_RAF_GLUE(a, b) NPUPROF_RAF_GLUE2(a, b)
#define NPUPROF_RAF_SPAN(id, LEVEL, DEVICE, NAME, CAT, ARGS, ...)                                  \
    if (npuprof_raf::span id = npuprof_raf::span(LEVEL)) {                                         \
        if (id.on) id.begin(DEVICE, NAME, CAT, ARGS);                                              \
        { __VA_ARGS__; }                                                                           \
    } else (void)0
#define WITH_BASE_PROFILER_LEVEL(LEVEL, DEVICE, NAME, CAT, ARGS, ...)                              \
    NPUPROF_RAF_SPAN(NPUPROF_RAF_GLUE(npuprof_raf_span, __COUNTER__), LEVEL, DEVICE, NAME, CAT, ARGS, \
                     __VA_ARGS__)
#define WITH_BASE_PROFILER(DEVICE, NAME, CAT, ARGS, ...) \
    WITH_BASE_PROFILER_LEVEL(1, DEVICE, NAME, CAT, ARGS, __VA_ARGS__)

#ifdef NPUPROF_NPU_VERSION
#define WITH_CUDA_PROFILER_LEVEL(LEVEL, CTX, STREAM, NAME, CAT, ARGS, ...)                         \
    WITH_NPU_PROFILER_LEVEL(LEVEL, npuprof_raf::npu_of(CTX), STREAM, npuprof_raf::text(NAME).c_str(), \
                            npuprof_raf::text(CAT).c_str(),                                        \
                            PROF_ARGS(PROF_STR("args_string", npuprof_raf::joined(ARGS).c_str())), \
                            __VA_ARGS__)
#define WITH_CUDA_PROFILER(CTX, STREAM, NAME, CAT, ARGS, ...) \
    WITH_CUDA_PROFILER_LEVEL(1, CTX, STREAM, NAME, CAT, ARGS, __VA_ARGS__)
#endif

#define PROFILE_MEMORY(DEVICE, TAG)                                                                \
    do {                                                                                           \
        uint64_t used_ = 0, allocated_ = 0;                                                        \
        if (npuprof_raf::memory() && npuprof_raf::memory()(&used_, &allocated_))                   \
            PROF_MEMORY(NULL, used_, allocated_, npuprof_raf::text(TAG).c_str());                  \
    } while (0)
#endif /* NPUPROF_RAF_H */

/* npuprof_tracy.h - Tracy's C API on npuprof: a program written against TracyC.h is recorded, without a
   server that is connected. README.md beside it says how to use it. Declarations made from the documentation
   of Tracy. The C++ API (ZoneScoped) is another one, and not here.
   SPDX-License-Identifier: MIT

   Only with TRACY_ENABLE, as in Tracy. Zones become spans of the thread, named frames with a start and an end
   async spans, other frame marks and messages instants, plots counters. Text, value and a later name of a
   zone are its arguments.
   Not held, and counted in the metadata (npuprof.collect.not_held.tracy.*): order (a zone that is not the
   innermost of its thread is ended, or given a text), memory, lock, gpu, fiber, image. Colours, depths of
   stacks and the looks of plots are left out. */
#ifndef NPUPROF_TRACY_H
#define NPUPROF_TRACY_H
#include "npuprof_shim.h"
#ifdef __cplusplus
extern "C" {
#endif
struct ___tracy_source_location_data { const char *name, *function, *file; uint32_t line, color; };
typedef struct ___tracy_c_zone_context { uint32_t id; int32_t active; } TracyCZoneCtx;
typedef struct __tracy_lockable_context_data *TracyCLockCtx;
enum TracyPlotFormatEnum { TracyPlotFormatNumber, TracyPlotFormatMemory, TracyPlotFormatPercentage,
                           TracyPlotFormatWatt };
enum TracyMessageSeverity { TracyMessageSeverityTrace, TracyMessageSeverityDebug, TracyMessageSeverityInfo,
                            TracyMessageSeverityWarning, TracyMessageSeverityError,
                            TracyMessageSeverityFatal };

NPUPROF_SHIM TracyCZoneCtx ___tracy_emit_zone_begin(const struct ___tracy_source_location_data *at,
                                                     int32_t active);
NPUPROF_SHIM void ___tracy_emit_zone_text(TracyCZoneCtx zone, const char *text, size_t size);
NPUPROF_SHIM void ___tracy_emit_zone_name(TracyCZoneCtx zone, const char *text, size_t size);
NPUPROF_SHIM void ___tracy_emit_zone_value(TracyCZoneCtx zone, uint64_t value);
NPUPROF_SHIM TracyCZoneCtx npuprof_tracy_enter(int active);
NPUPROF_SHIM void npuprof_tracy_leave(TracyCZoneCtx zone);
NPUPROF_SHIM void npuprof_tracy_message(const char *text, size_t size);
NPUPROF_SHIM void npuprof_tracy_frame(const char *name, int what);   /* 1: start, -1: end, 0: a mark */
NPUPROF_SHIM void npuprof_tracy_info(const char *text, size_t size);
#ifdef __cplusplus
}
#endif

/* What a macro becomes. Each stands once, so that both cannot differ. */
#ifdef TRACY_ENABLE
#define NPUPROF_TRACY(...) __VA_ARGS__
#define NPUPROF_TRACY_IS(yes) (yes)
#else
#define NPUPROF_TRACY(...)
#define NPUPROF_TRACY_IS(yes) 0
#endif
#define NPUPROF_TRACY_LOST(what) NPUPROF_TRACY((void)npuprof_shim_not_held("tracy." what))

/* Zones. Why the span is begun here and not in a function: then its source is the program's line. */
#define NPUPROF_TRACY_ZONE(zone, name, on)                                                        \
    NPUPROF_TRACY(TracyCZoneCtx zone = npuprof_tracy_enter(on);                            \
                   if (zone.active) PROF_BEGIN(NULL, name);)
#define TracyCZone(zone, on) NPUPROF_TRACY_ZONE(zone, __func__, on)
#define TracyCZoneN(zone, name, on) NPUPROF_TRACY_ZONE(zone, name, on)
#define TracyCZoneC(zone, color, on) NPUPROF_TRACY_ZONE(zone, __func__, on)
#define TracyCZoneNC(zone, name, color, on) NPUPROF_TRACY_ZONE(zone, name, on)
#define TracyCZoneS(zone, depth, on) NPUPROF_TRACY_ZONE(zone, __func__, on)
#define TracyCZoneNS(zone, name, depth, on) NPUPROF_TRACY_ZONE(zone, name, on)
#define TracyCZoneCS(zone, color, depth, on) NPUPROF_TRACY_ZONE(zone, __func__, on)
#define TracyCZoneNCS(zone, name, color, depth, on) NPUPROF_TRACY_ZONE(zone, name, on)
#define TracyCZoneEnd(zone) NPUPROF_TRACY(npuprof_tracy_leave(zone);)
#define TracyCZoneText(zone, text, size) NPUPROF_TRACY(___tracy_emit_zone_text(zone, text, size);)
#define TracyCZoneName(zone, text, size) NPUPROF_TRACY(___tracy_emit_zone_name(zone, text, size);)
#define TracyCZoneColor(zone, color)
#define TracyCZoneValue(zone, value) NPUPROF_TRACY(___tracy_emit_zone_value(zone, value);)
#define ___tracy_emit_zone_begin_callstack(at, depth, on) ___tracy_emit_zone_begin(at, on)
#define ___tracy_emit_zone_end(zone) npuprof_tracy_leave(zone)
#define ___tracy_emit_zone_color(zone, color) ((void)(zone), (void)(color))

#define TracyCFrameMark NPUPROF_TRACY(npuprof_tracy_frame(NULL, 0);)
#define TracyCFrameMarkNamed(name) NPUPROF_TRACY(npuprof_tracy_frame(name, 0);)
#define TracyCFrameMarkStart(name) NPUPROF_TRACY(npuprof_tracy_frame(name, 1);)
#define TracyCFrameMarkEnd(name) NPUPROF_TRACY(npuprof_tracy_frame(name, -1);)
#define TracyCFrameImage(image, width, height, offset, flip) NPUPROF_TRACY_LOST("image");
#define ___tracy_emit_frame_mark(name) npuprof_tracy_frame(name, 0)
#define ___tracy_emit_frame_mark_start(name) npuprof_tracy_frame(name, 1)
#define ___tracy_emit_frame_mark_end(name) npuprof_tracy_frame(name, -1)

#define TracyCPlot(name, value) NPUPROF_TRACY(npuprof_counter_real(name, value);)
#define TracyCPlotF(name, value) NPUPROF_TRACY(npuprof_counter_real(name, value);)
#define TracyCPlotI(name, value) NPUPROF_TRACY(npuprof_counter_int(name, value);)
#define TracyCPlotConfig(name, type, step, fill, color)
#define ___tracy_emit_plot(name, value) npuprof_counter_real(name, value)
#define ___tracy_emit_plot_float(name, value) npuprof_counter_real(name, value)
#define ___tracy_emit_plot_int(name, value) npuprof_counter_int(name, value)

#define TracyCMessage(text, size) NPUPROF_TRACY(npuprof_tracy_message(text, size))
#define TracyCMessageL(text) NPUPROF_TRACY(npuprof_tracy_message(text, strlen(text)))
#define TracyCMessageC(text, size, color) TracyCMessage(text, size)
#define TracyCMessageLC(text, color) TracyCMessageL(text)
#define TracyCMessageS(text, size, depth) TracyCMessage(text, size)
#define TracyCMessageLS(text, depth) TracyCMessageL(text)
#define TracyCMessageCS(text, size, color, depth) TracyCMessage(text, size)
#define TracyCMessageLCS(text, color, depth) TracyCMessageL(text)
#define TracyCAppInfo(text, size) NPUPROF_TRACY(npuprof_tracy_info(text, size);)
#define TracyCSetThreadName(name) NPUPROF_TRACY(PROF_THREAD_NAME(name);)
#define ___tracy_set_thread_name(name) PROF_THREAD_NAME(name)
#define TracyCIsConnected NPUPROF_TRACY_IS(npuprof_is_recording())
#define TracyCIsStarted NPUPROF_TRACY_IS(1)

/* Counted alone. Their arguments are not evaluated. */
#define TracyCAlloc(address, size) NPUPROF_TRACY_LOST("memory")
#define TracyCFree(address) NPUPROF_TRACY_LOST("memory")
#define TracyCMemoryDiscard(name) NPUPROF_TRACY_LOST("memory")
#define TracyCAllocN(address, size, name) NPUPROF_TRACY_LOST("memory")
#define TracyCFreeN(address, name) NPUPROF_TRACY_LOST("memory")
#define TracyCAllocS(address, size, depth) NPUPROF_TRACY_LOST("memory")
#define TracyCFreeS(address, depth) NPUPROF_TRACY_LOST("memory")
#define TracyCAllocNS(address, size, depth, name) NPUPROF_TRACY_LOST("memory")
#define TracyCFreeNS(address, depth, name) NPUPROF_TRACY_LOST("memory")
#define TracyCSecureAlloc(address, size) NPUPROF_TRACY_LOST("memory")
#define TracyCSecureFree(address) NPUPROF_TRACY_LOST("memory")
#define TracyCLockAnnounce(lock) NPUPROF_TRACY(lock = NULL;)
#define TracyCLockTerminate(lock)
#define TracyCLockBeforeLock(lock) NPUPROF_TRACY_LOST("lock");
#define TracyCLockAfterLock(lock) NPUPROF_TRACY_LOST("lock");
#define TracyCLockAfterUnlock(lock) NPUPROF_TRACY_LOST("lock");
#define TracyCLockAfterTryLock(lock, taken) NPUPROF_TRACY_LOST("lock");
#define TracyCLockMark(lock) NPUPROF_TRACY_LOST("lock");
#define TracyCLockCustomName(lock, name, size)
#define TracyCFiberEnter(fiber) NPUPROF_TRACY_LOST("fiber")
#define TracyCFiberLeave NPUPROF_TRACY_LOST("fiber")
#define ___tracy_startup_profiler() ((void)0)
#define ___tracy_shutdown_profiler() ((void)0)
#define ___tracy_profiler_started() 1
#define ___tracy_connected() TracyCIsConnected
#define TracyCBeginSamplingProfiling() 0
#define TracyCEndSamplingProfiling()
#define ___tracy_emit_memory_alloc(...) ((void)npuprof_shim_not_held("tracy.memory"))
#define ___tracy_emit_memory_free(...) ((void)npuprof_shim_not_held("tracy.memory"))
#define ___tracy_emit_memory_alloc_named(...) ((void)npuprof_shim_not_held("tracy.memory"))
#define ___tracy_emit_memory_free_named(...) ((void)npuprof_shim_not_held("tracy.memory"))
#define ___tracy_emit_gpu_new_context(...) ((void)npuprof_shim_not_held("tracy.gpu"))
#define ___tracy_emit_gpu_zone_begin(...) ((void)npuprof_shim_not_held("tracy.gpu"))
#define ___tracy_emit_gpu_zone_begin_alloc(...) ((void)npuprof_shim_not_held("tracy.gpu"))
#define ___tracy_emit_gpu_zone_end(...) ((void)npuprof_shim_not_held("tracy.gpu"))
#define ___tracy_emit_gpu_time(...) ((void)npuprof_shim_not_held("tracy.gpu"))
#define ___tracy_emit_gpu_calibration(...) ((void)npuprof_shim_not_held("tracy.gpu"))
#endif /* NPUPROF_TRACY_H */

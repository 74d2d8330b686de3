#pragma once   /* SPDX-License-Identifier: MIT */
#include "types.h"

/* The public functions.

   Threads: any thread may call a function, unless its comment says otherwise. Signal handlers may call those
   that record: npuprof_async_begin(), npuprof_async_end(), npuprof_span(), npuprof_instant() and
   npuprof_counter_*().
   Results: a function that returns npuprof_result returns NPUPROF_OK on success, NPUPROF_ERR_ARGUMENT for a
   NULL or a value out of range (npuprof_result_string() then says which), and NPUPROF_ERR_ARENA_SIZE if there
   is no arena. The comments name the other errors.
   Waiting: functions that write, report or clear take turns: one waits while another thread is in one. Called
   from a sink, or by a signal handler that interrupted one of them, they return NPUPROF_ERR_BUSY. Other
   threads may go on recording meanwhile.
   With NPUPROF_OFF every function is an inline stub. */

NPUPROF_BEGIN_C_

/* NPUPROF_FN_(type, name, (parameters), body when OFF...): declares a function, or defines its stub. Each
   function stands here once, so that ON and OFF cannot differ. */
#ifdef NPUPROF_OFF
#define NPUPROF_FN_(type, name, params, ...) NPUPROF_INLINE_ type name params { __VA_ARGS__ }
#else
#define NPUPROF_FN_(type, name, params, ...) NPUPROF_API_ type name params;
#endif
#define NPUPROF_UNUSED_(x) (void)(x)

/* Sets up the arena and the settings of desc; NULL: all defaults. Optional: without it, the first record uses
   the static arena and the environment. Call it once, before the first npuprof_start(). If desc has an arena,
   call it also before the first PROF_THREAD_NAME and npuprof_npu_open(). Too late: NPUPROF_ERR_STARTED. Other
   errors: NPUPROF_ERR_VERSION, NPUPROF_ERR_ARENA_SIZE, NPUPROF_ERR_CATEGORIES, and those of opening a mapped
   file. The arena's memory is touched only as it fills, unless desc->populate is set; on Linux in pages of
   2 MiB if the arena has 4 MiB or more and is no file. */
#define npuprof_init(desc) npuprof_init_((desc), sizeof(npuprof_desc), NPUPROF_VERSION)
NPUPROF_FN_(npuprof_result, npuprof_init_, (const npuprof_desc *desc, size_t desc_bytes, int version),
            NPUPROF_UNUSED_(desc); NPUPROF_UNUSED_(desc_bytes); NPUPROF_UNUSED_(version); return NPUPROF_OK;)

/* Starts recording of spans and events up to a level, 1 to 9: 1 = kernels and user scopes, 2 = runtime
   detail, higher as you like. Ends a pause. What was recorded before stays. After an error nothing has
   changed. */
NPUPROF_FN_(npuprof_result, npuprof_start, (int level), NPUPROF_UNUSED_(level); return NPUPROF_OK;)
/* Stops recording and keeps the data. A span that is open is still recorded to its end. */
NPUPROF_FN_(npuprof_result, npuprof_stop, (void), return NPUPROF_OK;)
/* Stops recording until npuprof_resume(), and marks the gap in the trace. A second call has no effect.
   NPUPROF_ERR_TABLE_FULL: recording is paused, but the mark was lost and counted. */
NPUPROF_FN_(npuprof_result, npuprof_pause, (void), return NPUPROF_OK;)
/* Ends a pause. No effect without one. */
NPUPROF_FN_(npuprof_result, npuprof_resume, (void), return NPUPROF_OK;)
/* Is a span of level 1 recorded now? Cost: a load and a compare. */
NPUPROF_FN_(bool, npuprof_is_recording, (void), return false;)
/* The same of a level. */
NPUPROF_FN_(bool, npuprof_is_recording_level, (int level), NPUPROF_UNUSED_(level); return false;)
#ifndef NPUPROF_FREESTANDING
/* Looks at the conditions of capture control now (npuprof_capture), and does what is due: starts, stops,
   writes a file. For the main loop of a program that has neither PROF_RECORD nor PROF_INFERENCE, or stands
   still for long between them. Returns the first failure to write since the last call. Not from a signal
   handler. */
NPUPROF_FN_(npuprof_result, npuprof_poll, (void), return NPUPROF_OK;)
#endif
/* Discards all spans and events recorded so far, and the counts of losses. Names, devices and clock anchors
   stay. Frees their memory, except the one chunk that each other running thread is filling.
   Not from a signal handler. NPUPROF_ERR_BUSY: nothing was discarded. */
NPUPROF_FN_(npuprof_result, npuprof_clear, (void), return NPUPROF_OK;)
/* Selects categories. "a,b": record only these. "-a,-b": record all but these. NULL or "": record all. What
   has no category, as counters and arrows, is recorded under a "-" list and not under the other. Memory
   records have the category "memory". spec is copied. NPUPROF_ERR_CATEGORIES: spec mixes both forms, has a
   "-" without a name, or is too long; nothing has changed. Any thread, while others record or call it too. */
NPUPROF_FN_(npuprof_result, npuprof_set_categories, (const char *spec),
            NPUPROF_UNUSED_(spec); return NPUPROF_OK;)
/* Writes the trace to a file. The extension of path chooses the format: .json, .csv or .npuprof; none means
   JSON; another is NPUPROF_ERR_UNSUPPORTED. File errors: NPUPROF_ERR_NOT_FOUND, _ACCESS, _NO_SPACE, _IO.
   NPUPROF_ERR_MEMORY: the system gives no pages to work in; .npuprof needs none.
   The file appears whole or not at all. It has the mode of the file it replaces. A temporary file that a
   killed dump to the same path left behind is removed. The arena is not changed: a second call writes the
   same bytes if nothing was recorded between and no span is open: those end at the moment of the call.
   The CSV has a row for each span, then a row for the peak of each memory pool: cat is "memory", name is
   `POOL used_bytes=N allocated_bytes=N tag=TAG` of the record with the most used, start and end are its time,
   dur is 0, the other columns are empty. If NPUPROF_SCRATCH_BYTES was too small for all memory records, one
   more such row says so. */
NPUPROF_FN_(npuprof_result, npuprof_dump, (const char *path), NPUPROF_UNUSED_(path); return NPUPROF_OK;)
/* NPUPROF_STREAM: hands everything recorded so far to the sink, with copies of the chunks that threads are
   still filling. This also happens at normal exit. Returns the first failure since the last call. A chunk
   that the sink refuses is lost and counted; the next one is tried again. Not from the sink. With other
   policies it does nothing. With NPUPROF_FREESTANDING: see npuprof_poll(). */
NPUPROF_FN_(npuprof_result, npuprof_flush, (void), return NPUPROF_OK;)
/* Writes the trace as JSON into a sink. NPUPROF_ERR_IO or NPUPROF_ERR_NO_SPACE: the sink returned an errno
   value. NPUPROF_ERR_UNSUPPORTED: built with NPUPROF_NO_JSON. */
NPUPROF_FN_(npuprof_result, npuprof_write_json, (npuprof_sink sink),
            NPUPROF_UNUSED_(sink); return NPUPROF_OK;)
/* Fills *out with counts over the whole arena. Cost: one walk over the arena. After an error *out is
   zero. */
NPUPROF_FN_(npuprof_result, npuprof_get_stats, (npuprof_stats *out),
            if (!out) return NPUPROF_ERR_ARGUMENT;
            *out = NPUPROF_ZERO_(npuprof_stats); return NPUPROF_OK;)
/* Writes the image into a sink: the bytes of a .npuprof file. Errors as npuprof_write_json().
   With NPUPROF_FREESTANDING: in pieces of up to 276 bytes, each with a CRC, so the reader sees what is
   missing or damaged. Names stay in the ELF file; `npuprof-convert --elf` adds them, and refuses an ELF file
   of another build. A record written meanwhile is in the image whole or not at all. If several cores record,
   stop recording first. */
NPUPROF_FN_(npuprof_result, npuprof_write_image, (npuprof_sink sink),
            NPUPROF_UNUSED_(sink); return NPUPROF_OK;)
/* The trace's clock now, in ns since the Unix epoch, monotonic; freestanding: since the trace began. It is
   read where the call stands: loads before it are done, later ones not begun. 0 when OFF. Cost: one read of
   the clock and two fences. */
NPUPROF_FN_(int64_t, npuprof_now_ns, (void), return 0;)
/* The sentence for a result code; never NULL, not to be freed. */
NPUPROF_FN_(const char *, npuprof_result_string, (npuprof_result result),
            NPUPROF_UNUSED_(result); return "off";)

/* Begins a span that may end on another thread, such as from job submit to interrupt. id joins begin and end;
   it may be used again after the end. Strings are copied; category may be NULL. Cost: a record and a look-up
   of the name. */
NPUPROF_FN_(void, npuprof_async_begin, (const char *category, const char *name, uint64_t id),
            NPUPROF_UNUSED_(category); NPUPROF_UNUSED_(name); NPUPROF_UNUSED_(id);)
/* Ends the span that npuprof_async_begin() began with this id. Without one it is left out of the trace, and
   counted as recorded. */
NPUPROF_FN_(void, npuprof_async_end, (uint64_t id), NPUPROF_UNUSED_(id);)
#ifndef NPUPROF_FREESTANDING
/* PROF_INSTANT and PROF_COUNTER with a name that comes at run time. Strings are copied; category may be NULL.
   Cost: a record and a look-up of the name. */
NPUPROF_FN_(void, npuprof_instant, (const char *category, const char *name, npuprof_args args),
            NPUPROF_UNUSED_(category); NPUPROF_UNUSED_(name); NPUPROF_UNUSED_(args);)
NPUPROF_FN_(void, npuprof_counter_int, (const char *name, int64_t value),
            NPUPROF_UNUSED_(name); NPUPROF_UNUSED_(value);)
NPUPROF_FN_(void, npuprof_counter_real, (const char *name, double value),
            NPUPROF_UNUSED_(name); NPUPROF_UNUSED_(value);)
#endif
/* Records a finished span with your own stamps, in ns on the clock of npuprof_now_ns(), on the track with
   that name. Strings are copied. If the end is before the start, the span gets length 0 and a mark. If a
   stamp is more than 13 days outside the trace, the span is drawn at the start of the trace and marked. */
NPUPROF_FN_(void, npuprof_span, (const char *track, const char *category, const char *name, int64_t start_ns,
                                 int64_t end_ns, npuprof_args args),
            NPUPROF_UNUSED_(track); NPUPROF_UNUSED_(category); NPUPROF_UNUSED_(name);
            NPUPROF_UNUSED_(start_ns);
            NPUPROF_UNUSED_(end_ns); NPUPROF_UNUSED_(args);)
/* Stores a key and a value in the trace's metadata: model, firmware, driver version. Both are copied; a later
   value of the same key replaces the first. Works while stopped, too. NPUPROF_ERR_TABLE_FULL: lost and
   counted. */
NPUPROF_FN_(npuprof_result, npuprof_metadata, (const char *key, const char *value),
            NPUPROF_UNUSED_(key); NPUPROF_UNUSED_(value);
            return NPUPROF_OK;)

#ifdef NPUPROF_FREESTANDING
/* Names the track of the caller, as PROF_THREAD_NAME() does, and says the number that the system gives this
   task, by which the trace is joined with those of user space and of the kernel. number 0: it has none. Works
   while stopped, too. NPUPROF_ERR_TABLE_FULL: lost and counted. */
NPUPROF_FN_(npuprof_result, npuprof_task, (const char *name, uint32_t number),
            NPUPROF_UNUSED_(name); NPUPROF_UNUSED_(number); return NPUPROF_OK;)
/* For an RTOS, a scheduler, a clock: only firmware has these. Interrupts may call all of them.

   A number stands for a name, which npuprof_name() gives it, before or after it is used: 0 to
   NPUPROF_NUMBER_MAX. The numbers below NPUPROF_CONTEXTS are the contexts: their names are those of the
   tracks. The others are free, for interrupts and counters. A track is the number of a context. What
   npuprof_switch() and npuprof_enter() begin is on the stack of that context's PROF_BEGIN. */
#define NPUPROF_NUMBER_MAX 65534u
#define NPUPROF_NOBODY UINT32_MAX

/* Names a number. The name is copied; the last one counts. Works while stopped, too. In a ring, this,
   npuprof_metadata() and PROF_THREAD_NAME() cost a look at each record, to take the older one out.
   NPUPROF_ERR_TABLE_FULL: lost and counted. */
NPUPROF_FN_(npuprof_result, npuprof_name, (uint32_t number, const char *name),
            NPUPROF_UNUSED_(number); NPUPROF_UNUSED_(name); return NPUPROF_OK;)
/* From now on `number` runs on that track: a span of 16 bytes up to the next call, which ends it with the
   stamp that begins the next. NPUPROF_NOBODY: nobody runs. Give it a track of its own for each core, and call
   it from one place, such as the scheduler. */
NPUPROF_FN_(void, npuprof_switch, (uint32_t track, uint32_t number),
            NPUPROF_UNUSED_(track); NPUPROF_UNUSED_(number);)
/* Begins and ends a span of 16 bytes on that track, such as an interrupt. They nest. */
NPUPROF_FN_(void, npuprof_enter, (uint32_t track, uint32_t number),
            NPUPROF_UNUSED_(track); NPUPROF_UNUSED_(number);)
NPUPROF_FN_(void, npuprof_leave, (uint32_t track), NPUPROF_UNUSED_(track);)
/* A counter whose name is that of a number. 32 bytes. */
NPUPROF_FN_(void, npuprof_count, (uint32_t number, uint64_t value),
            NPUPROF_UNUSED_(number); NPUPROF_UNUSED_(value);)
/* Reads the clock, so that a clock of few bits does not wrap unseen while nothing is recorded. Call it from a
   tick hook, at least once in a period of the clock. Cost: one clock read. */
NPUPROF_FN_(void, npuprof_tick, (void), )
/* The clock stood still for so many ticks of NPUPROF_NOW_HZ, such as in low power: the trace's time moves on
   by them, and the image draws a span `slept` of 16 bytes. Call it after waking up, before anything is
   recorded; also while stopped. No span may begin or end in between. A span of an earlier record that ends
   within the same tick counts as ended before. npuprof_write_json() on the target draws what was before later
   by that much. If the record did not fit, it is counted as a lost note, and the time does not move on. */
NPUPROF_FN_(void, npuprof_slept, (uint64_t ticks), NPUPROF_UNUSED_(ticks);)
#endif /* NPUPROF_FREESTANDING */

#ifdef NPUPROF_FREESTANDING
/* NPUPROF_WHEN_FULL = NPUPROF_STREAM: hands full parts of 272 bytes, and a header of 96 before every 64 of
   them, to desc.sink or NPUPROF_SINK. Call it often, from one place of low priority, such as an idle hook. It
   never blocks a record: when the arena is full, records are lost and counted.
   Threads: npuprof_poll() and npuprof_flush() are called by one task or interrupt; several need a lock of
   yours around each call.
   desc.sink returns 0: it took all; NPUPROF_SINK_TOOK(n): it took n bytes, 0 for none, and is asked for the
   rest in a later call; an errno value: it failed, and the same bytes come again.
   NPUPROF_ERR_BUSY: the sink did not take all, or another call is at work. A task that flushes while it keeps
   the one that polls from running waits for ever: it must sleep between two tries, or one task does both.
   NPUPROF_ERR_IO: the sink failed.
   NPUPROF_ERR_ARGUMENT: there is no sink. NPUPROF_ERR_UNSUPPORTED: another NPUPROF_WHEN_FULL.
   npuprof_flush() hands over all, also a part that is not full, and then a header, which says how many
   records were lost until then. The same results. npuprof_stop() before: what is recorded meanwhile is handed
   over, too, so a call while much is recorded may never return NPUPROF_OK. A record in which a task was
   interrupted holds up those behind it: what is called above that task leaves them to a later call.
   Cost: 20,000 instructions a part on a Cortex-M0+, most of them for its CRC-32. */
NPUPROF_FN_(npuprof_result, npuprof_poll, (void), return NPUPROF_OK;)
#endif
#define NPUPROF_SINK_TOOK(count) (-1 - (int)(count))

#ifndef NPUPROF_FREESTANDING
/* Reports. Each prints one table to a FILE*, times in ns, without the spans inside PROF_RECORD_WARM_UP.
   NPUPROF_ERR_BUSY: this thread is writing already. NPUPROF_ERR_MEMORY: the system gives no pages to work
   in. NPUPROF_ERR_IO: the FILE* failed. NPUPROF_TABLES(X) is all of them but npuprof_print_bench(), each
   npuprof_result name(FILE *out). */
#define NPUPROF_TABLES(X)                                                                                    \
    /* The latencies of all PROF_INFERENCE spans: count, min, max, mean, percentiles, total. Percentiles are \
       linear interpolation between order statistics (type 7), rounded half up. */                           \
    X(npuprof_print_summary)                                                                                 \
    /* A row for each PROF_INFERENCE: trace id, span id, thread, duration. */                                \
    X(npuprof_print_inferences)                                                                              \
    /* A row for each execution of a job on a device. NPU Total = NPU Run + NPU IoWait in every row. NPU Run \
       is the union of the execution's compute intervals (all spans but Execution, Load, Store), or the      \
       device's busy counter. NPU Sum is the plain sum of these intervals. "-": a sampled execution without  \
       a busy counter, so nothing measured when the device worked. */                                        \
    X(npuprof_print_npu_executions)                                                                          \
    /* A row for each name of compute span on a device: mean, count, total, share. */                        \
    X(npuprof_print_npu_operators)                                                                           \
    /* A row for each PROF_OPERATOR: its index and duration. */                                              \
    X(npuprof_print_external_operators)                                                                      \
    /* For each memory pool, over all threads in the order of time: the peak used and the peak allocated     \
       with index and tag of their records, the bytes allocated but not used at the peak, how often the      \
       allocated figure dropped, and every record. */                                                        \
    X(npuprof_print_memory)
#define NPUPROF_TABLE_FN_(name) \
    NPUPROF_FN_(npuprof_result, name, (FILE *out), NPUPROF_UNUSED_(out); return NPUPROF_OK;)
NPUPROF_TABLES(NPUPROF_TABLE_FN_)

/* Fills *out with the peaks of a device's memory pool; NULL is the host's. Pools go by the device's name.
   NPUPROF_ERR_NOT_FOUND: the pool has no records. NPUPROF_ERR_NO_SPACE: the records of some threads are left
   out; give a larger NPUPROF_SCRATCH_BYTES. */
NPUPROF_FN_(npuprof_result, npuprof_get_memory, (const npuprof_device *device, npuprof_memory_peaks *out),
            if (!out) return NPUPROF_ERR_ARGUMENT;
            *out = NPUPROF_ZERO_(npuprof_memory_peaks); NPUPROF_UNUSED_(device); return NPUPROF_OK;)

/* Measures operators: first desc->warmup runs, then desc->repeat times desc->number runs between two stamps.
   Returns when all runs are over. Recording need not be on; if it is, the warm-up runs are inside a warm-up
   record. Calls that use the same device must not overlap. With a key, the result goes into a cache of the
   last 32; a result found there is returned without running anything.
   NPUPROF_ERR_ARGUMENT: a NULL, a negative count, or more than NPUPROF_BENCH_REPEATS. NPUPROF_ERR_BENCH: an
   operator failed. An error of desc->clock is returned as it is. After an error, and when OFF, *out is
   zero. */
NPUPROF_FN_(npuprof_result, npuprof_bench, (const npuprof_bench_desc *desc, npuprof_bench_result *out),
            if (!out) return NPUPROF_ERR_ARGUMENT;
            *out = NPUPROF_ZERO_(npuprof_bench_result); NPUPROF_UNUSED_(desc); return NPUPROF_OK;)
/* Empties the cache of npuprof_bench(). */
NPUPROF_FN_(void, npuprof_bench_reset, (void), )
/* The number of results in the cache. */
NPUPROF_FN_(size_t, npuprof_bench_size, (void), return 0;)
/* Prints the results in the cache, one a row, oldest first, times in us. */
NPUPROF_TABLE_FN_(npuprof_print_bench)
#endif /* !NPUPROF_FREESTANDING */

NPUPROF_END_C_

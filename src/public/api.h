#pragma once   /* SPDX-License-Identifier: MIT */
#include "types.h"

NPUPROF_BEGIN_C_

/* NPUPROF_FN_(type, name, (parameters), body when OFF...): the one list of functions. */
#ifdef NPUPROF_OFF
#define NPUPROF_FN_(type, name, params, ...) NPUPROF_INLINE_ type name params { __VA_ARGS__ }
#else
#define NPUPROF_FN_(type, name, params, ...) NPUPROF_API_ type name params;
#endif
#define NPUPROF_UNUSED_(x) (void)(x)

/* Sets the arena up. Optional: without it the static arena and the environment are used. Once, before the
   first npuprof_start(), and with an arena before the first PROF_THREAD_NAME and npuprof_npu_open
   (NPUPROF_ERR_STARTED later). The arena's memory is touched only as it fills, unless desc says populate.
   desc may be NULL. */
#define npuprof_init(desc) npuprof_init_((desc), sizeof(npuprof_desc), NPUPROF_VERSION)
NPUPROF_FN_(npuprof_result, npuprof_init_, (const npuprof_desc *desc, size_t desc_bytes, int version),
            NPUPROF_UNUSED_(desc); NPUPROF_UNUSED_(desc_bytes); NPUPROF_UNUSED_(version); return NPUPROF_OK;)

/* Opens the gate for spans and events up to level: 1 = kernels and user scopes, 2 = runtime detail, up to 9.
   Ends a pause. Data recorded before stays. Any thread. NPUPROF_ERR_ARGUMENT: level is not 1 to 9, and
   nothing changes;
   NPUPROF_ERR_ARENA_SIZE: there is no arena. */
NPUPROF_FN_(npuprof_result, npuprof_start, (int level), NPUPROF_UNUSED_(level); return NPUPROF_OK;)
/* Closes the gate; keeps the data. A span that is open goes on and is closed as usual. */
NPUPROF_FN_(npuprof_result, npuprof_stop, (void), return NPUPROF_OK;)
/* Close and open the gate in between; idempotent. The gap stays in the trace and is marked.
   NPUPROF_ERR_TABLE_FULL: paused, but the mark found no room and is counted as lost. */
NPUPROF_FN_(npuprof_result, npuprof_pause, (void), return NPUPROF_OK;)
NPUPROF_FN_(npuprof_result, npuprof_resume, (void), return NPUPROF_OK;)
/* Forgets all spans and events recorded before now, and the loss counts. Names, devices and anchors stay.
   Frees the memory of what is forgotten, up to the chunk that each other running thread is filling. Not from
   a signal handler. NPUPROF_ERR_BUSY: nothing is forgotten. */
NPUPROF_FN_(npuprof_result, npuprof_clear, (void), return NPUPROF_OK;)
/* Records only the categories of "a,b", or all but those of "-a,-b". NULL or "" = all. Spans without a
   category are recorded under "-a" lists and not under "a" lists; memory records have the category
   "memory". Copied. NPUPROF_ERR_CATEGORIES: nothing changes. While other threads record, but from one
   thread at a time. */
NPUPROF_FN_(npuprof_result, npuprof_set_categories, (const char *spec),
            NPUPROF_UNUSED_(spec); return NPUPROF_OK;)
/* Writes the trace: .json, .csv or .npuprof by the path's extension, JSON without one.
   NPUPROF_ERR_UNSUPPORTED: another extension. The
   CSV has a row for each span and ends with one for the peak of each memory pool that has records: cat is
   memory, the ids and all else are empty, start and end are the time of the record with the most used, name
   is `POOL used_bytes=N allocated_bytes=N tag=TAG` of that record, dur is 0. What the scratch had no room for
   is a last such row. The file appears whole or not at all, with the mode of the one it replaces; what a
   killed dump to this path left is removed; the arena is not changed, so a second call writes the same bytes.
   Other threads may go on recording. */
NPUPROF_FN_(npuprof_result, npuprof_dump, (const char *path), NPUPROF_UNUSED_(path); return NPUPROF_OK;)
/* NPUPROF_STREAM: hands everything recorded so far to the sink, copies of what threads are still filling
   included; also done at normal exit. The result is the first failure since the last call; a chunk that the
   sink refused is lost and counted, the next one is tried again. Other policies: NPUPROF_OK. Not from the
   sink. */
NPUPROF_FN_(npuprof_result, npuprof_flush, (void), return NPUPROF_OK;)
/* Writes the JSON into a sink. NPUPROF_ERR_IO or _NO_SPACE when the sink returns an errno value. */
NPUPROF_FN_(npuprof_result, npuprof_write_json, (npuprof_sink sink),
            NPUPROF_UNUSED_(sink); return NPUPROF_OK;)
/* Counts over the whole arena; walks it once. NPUPROF_ERR_BUSY, NPUPROF_ERR_ARENA_SIZE: *out is zero. */
NPUPROF_FN_(npuprof_result, npuprof_get_stats, (npuprof_stats *out),
            *out = NPUPROF_ZERO_(npuprof_stats); return NPUPROF_OK;)
/* Writes the image into a sink, as npuprof_dump() does with a .npuprof file. With NPUPROF_FREESTANDING in
   pieces of up to 276 bytes, each with a CRC, so the reader sees what is missing or damaged; the names are in
   the ELF file: npuprof-convert --elf, which refuses the file of another build. A span that ends and a record
   that is made meanwhile are there or not, never half; several cores stop first. */
NPUPROF_FN_(npuprof_result, npuprof_write_image, (npuprof_sink sink),
            NPUPROF_UNUSED_(sink); return NPUPROF_OK;)
/* The trace's clock now: ns since the Unix epoch, monotonic; freestanding: since the trace began. Costs one
   clock read. 0 when OFF. */
NPUPROF_FN_(int64_t, npuprof_now_ns, (void), return 0;)
/* The sentence for a result code. Never NULL. */
NPUPROF_FN_(const char *, npuprof_result_string, (npuprof_result result),
            NPUPROF_UNUSED_(result); return "off";)

/* A span that begins here and may end on any thread: job submit to interrupt. The id joins the two; it may be
   used again after its end. Strings are copied. Costs a look-up of the name. */
NPUPROF_FN_(void, npuprof_async_begin, (const char *category, const char *name, uint64_t id),
            NPUPROF_UNUSED_(category); NPUPROF_UNUSED_(name); NPUPROF_UNUSED_(id);)
NPUPROF_FN_(void, npuprof_async_end, (uint64_t id), NPUPROF_UNUSED_(id);)
/* A finished span with the caller's own stamps on npuprof_now_ns()'s clock, on the track of that name. end
   before start is recorded with length 0 and marked; stamps more than 13 days outside the trace are drawn at
   the start of the trace and marked. Strings are copied. */
NPUPROF_FN_(void, npuprof_span, (const char *track, const char *category, const char *name, int64_t start_ns,
                                 int64_t end_ns, npuprof_args args),
            NPUPROF_UNUSED_(track); NPUPROF_UNUSED_(category); NPUPROF_UNUSED_(name);
            NPUPROF_UNUSED_(start_ns);
            NPUPROF_UNUSED_(end_ns); NPUPROF_UNUSED_(args);)
/* A key and value for the file's metadata: model, firmware, driver version. Copied; the last value of a key
   counts. Kept while stopped, too. NPUPROF_ERR_TABLE_FULL: it found no room and is counted as lost. */
NPUPROF_FN_(npuprof_result, npuprof_metadata, (const char *key, const char *value),
            NPUPROF_UNUSED_(key); NPUPROF_UNUSED_(value);
            return NPUPROF_OK;)

#ifndef NPUPROF_FREESTANDING
/* Reports, to a FILE*. Warm-up records are left out. Percentiles: linear interpolation between order
   statistics (type 7), rounded half up. All times in ns. */
NPUPROF_FN_(npuprof_result, npuprof_print_summary, (FILE *out), NPUPROF_UNUSED_(out); return NPUPROF_OK;)
NPUPROF_FN_(npuprof_result, npuprof_print_inferences, (FILE *out), NPUPROF_UNUSED_(out); return NPUPROF_OK;)
/* NPU Total = NPU Run + NPU IoWait in every row. Run is the union of the execution's compute intervals (all
   but Execution, Load, Store), or what the device's busy counter says; NPU Sum is their plain sum. A sampled
   execution with neither has "-": nobody measured when the device worked. */
NPUPROF_FN_(npuprof_result, npuprof_print_npu_executions, (FILE *out),
            NPUPROF_UNUSED_(out); return NPUPROF_OK;)
NPUPROF_FN_(npuprof_result, npuprof_print_npu_operators, (FILE *out),
            NPUPROF_UNUSED_(out); return NPUPROF_OK;)
NPUPROF_FN_(npuprof_result, npuprof_print_external_operators, (FILE *out),
            NPUPROF_UNUSED_(out); return NPUPROF_OK;)
/* For each memory pool, in the order of time over all threads: the peaks of used and allocated with index and
   tag of their records, what was allocated but not used at the peak, how often the allocated figure dropped,
   and every record. */
NPUPROF_FN_(npuprof_result, npuprof_print_memory, (FILE *out), NPUPROF_UNUSED_(out); return NPUPROF_OK;)

/* The peaks of that device's memory, NULL: the host's; its name is what counts. NPUPROF_ERR_NOT_FOUND: there
   are no records of it.
   NPUPROF_ERR_NO_SPACE: the records of some threads are left out: NPUPROF_SCRATCH_BYTES. */
NPUPROF_FN_(npuprof_result, npuprof_get_memory, (const npuprof_device *device, npuprof_memory_peaks *out),
            *out = NPUPROF_ZERO_(npuprof_memory_peaks); NPUPROF_UNUSED_(device); return NPUPROF_OK;)

/* Measures operators: warmup runs, then repeat times number runs between two stamps. Needs no recording;
   while there is one, the warm-up runs lie in a warm-up record. Blocks. Any thread, one at a time if they use
   one device. The cache holds 32 results, the last ones; a result from it runs nothing. NPUPROF_ERR_ARGUMENT
   (a NULL, a negative count, more than NPUPROF_BENCH_REPEATS); NPUPROF_ERR_BENCH: an operator failed; what
   the clock returns. *out is zero then. OFF: runs nothing, and *out is zero. */
NPUPROF_FN_(npuprof_result, npuprof_bench, (const npuprof_bench_desc *desc, npuprof_bench_result *out),
            *out = NPUPROF_ZERO_(npuprof_bench_result); NPUPROF_UNUSED_(desc); return NPUPROF_OK;)
/* Empties the cache; the number of results in it. */
NPUPROF_FN_(void, npuprof_bench_reset, (void), )
NPUPROF_FN_(size_t, npuprof_bench_size, (void), return 0;)
/* The results in the cache, the oldest first, one a row. */
NPUPROF_FN_(npuprof_result, npuprof_print_bench, (FILE *out), NPUPROF_UNUSED_(out); return NPUPROF_OK;)
#endif /* !NPUPROF_FREESTANDING */

NPUPROF_END_C_

#pragma once   /* SPDX-License-Identifier: MIT */
#include "compiler.h"

NPUPROF_BEGIN_C_

/* Every result code, once: name, sentence. npuprof_result_string() gives "NAME: sentence"; of
   NPUPROF_ERR_ARGUMENT it says which argument of which function was refused last on this thread (with
   NPUPROF_FREESTANDING: the sentence here). */
#define NPUPROF_RESULTS(X)                                                                               \
    X(NPUPROF_OK, "ok")                                                                                  \
    X(NPUPROF_ERR_ARGUMENT, "an argument is missing or out of its range")                                \
    X(NPUPROF_ERR_VERSION, \
      "this file was compiled with another version of npuprof.h than the implementation; rebuild both") \
    X(NPUPROF_ERR_ARENA_SIZE, "the arena is too small or not aligned to 8 bytes; give at least 2048 bytes") \
    X(NPUPROF_ERR_STARTED, "npuprof already records; call npuprof_init before the first npuprof_start")  \
    X(NPUPROF_ERR_NOT_FOUND, "no such file or device; check the path")                                   \
    X(NPUPROF_ERR_ACCESS, "permission denied; check owner and mode of the path")                         \
    X(NPUPROF_ERR_NO_SPACE, \
      "no space left on the device; the file was not written, the data is still in the arena") \
    X(NPUPROF_ERR_IO, "a read or write failed; the file was not written, the data is still in the arena") \
    X(NPUPROF_ERR_UNSUPPORTED, \
      "not supported in this build or on this system; files are .json, .csv or .npuprof") \
    X(NPUPROF_ERR_TABLE_FULL, \
      "the table of names, devices and anchors is full (255 devices at most); give a larger arena") \
    X(NPUPROF_ERR_CATEGORIES, "a category list that cannot be used: give \"a,b\" or \"-a,-b\", not both")  \
    X(NPUPROF_ERR_BENCH, "the function that was to be measured reported a failure")                      \
    X(NPUPROF_ERR_NPU_SOURCE, "give exactly one of bar, resource, vfio and read_ticks")                  \
    X(NPUPROF_ERR_NPU_MAP, "this file, device or region cannot be mapped")                               \
    X(NPUPROF_ERR_NPU_DECODE_OFF, \
      "the device's memory decode is off; write 1 to the file `enable` beside its resource files") \
    X(NPUPROF_ERR_NPU_REMOVED, "the device is gone from its bus")                                        \
    X(NPUPROF_ERR_NPU_OWNED, \
      "a driver or another program owns the device's registers; unbind it, or hand over the mapping it has") \
    X(NPUPROF_ERR_NPU_IO_PORT, "this BAR is one of I/O ports, which cannot be mapped")                   \
    X(NPUPROF_ERR_NPU_RANGE, "a register or the ring lies outside the BAR, or is not aligned to its access") \
    X(NPUPROF_ERR_NPU_COUNTER, "the counter's hi_offset, bits, access or order do not fit together")     \
    X(NPUPROF_ERR_NPU_DEAD, "the device does not answer: its registers read all ones or all zeros")      \
    X(NPUPROF_ERR_NPU_STOPPED, "the device's counter does not move")                                     \
    X(NPUPROF_ERR_NPU_RESET, \
      "the device's counter went back: it was reset, not wrapped; a new epoch of device time begins") \
    X(NPUPROF_ERR_NPU_TORN, \
      "the counter's two halves never agreed; the device changes its high word too fast") \
    X(NPUPROF_ERR_NPU_BUSY, \
      "another call is using the device: this one interrupted it in a signal handler, or it has not run " \
      "for seconds") \
    X(NPUPROF_ERR_NPU_AMBIGUOUS, "too long since the last read: the number of wraps is not certain")     \
    X(NPUPROF_ERR_NPU_NO_ANCHOR, "no clock anchor yet; call npuprof_npu_sync first")                     \
    X(NPUPROF_ERR_NPU_NO_RING, "the device was opened without a completion ring")                        \
    X(NPUPROF_ERR_NPU_RING, "the ring's producer index makes no sense; the device may have been reset") \
    X(NPUPROF_ERR_NPU_RATE, \
      "counter.hz is above 10^15, and no counter is that fast; give ticks a second, or 0 if unknown") \
    X(NPUPROF_ERR_NPU_NOT_OPEN, "the device is not open; call npuprof_npu_open first")                   \
    X(NPUPROF_ERR_BUSY, \
      "called from a sink, or by a signal handler that interrupted a writer or report; call again when " \
      "that is done")

#define NPUPROF_ENUM_(name, text) name,
typedef enum npuprof_result { NPUPROF_RESULTS(NPUPROF_ENUM_) NPUPROF_RESULT_COUNT } npuprof_result;
#undef NPUPROF_ENUM_

/* What a full arena does: it stops and counts; it recycles its oldest chunks and counts what was in them; it
   hands full chunks to a sink, and a thread that finds none free waits for that. */
enum { NPUPROF_KEEP_OLDEST = 0, NPUPROF_KEEP_NEWEST = 1, NPUPROF_STREAM = 2 };

/* Why something was lost, once: enumerator, name in the outputs, 1 = a span or event, 0 = only a part of one.
   Stored in the image: append only. */
#define NPUPROF_LOSSES(X)                                                                        \
    X(NPUPROF_LOST_FULL, "arena_full", 1)        /* no chunk left */                             \
    X(NPUPROF_LOST_NAMES, "names_full", 1)       /* no room for a new name or call site */       \
    X(NPUPROF_LOST_DEPTH, "too_deep", 1)         /* more open spans in a thread than the limit */ \
    X(NPUPROF_LOST_CONTEXT, "no_context", 1)     /* no slot for a thread or signal handler */    \
    X(NPUPROF_LOST_OVERWRITTEN, "overwritten", 1) /* recycled under NPUPROF_KEEP_NEWEST */       \
    X(NPUPROF_LOST_SINK, "sink", 1)              /* the sink of NPUPROF_STREAM failed */         \
    X(NPUPROF_LOST_RING, "device_ring", 1)       /* completion records overwritten before a drain came */ \
    X(NPUPROF_LOST_ARGUMENTS, "arguments", 0)    /* the span is there, its arguments are not */  \
    X(NPUPROF_LOST_READING, "reading", 1)        /* NPUPROF_KEEP_NEWEST: a writer held the old chunks */ \
    X(NPUPROF_LOST_NOTES, "notes", 0)            /* metadata, names and pause marks that found no room */ \
    X(NPUPROF_LOST_BUSY, "device_busy", 1)       /* device spans of blocks whose read of the device found it
                                                    in use: npuprof_npu_read() */

#define NPUPROF_ENUM_(name, text, whole) name,
enum { NPUPROF_LOSSES(NPUPROF_ENUM_) NPUPROF_LOST_COUNT };
#undef NPUPROF_ENUM_

/* Where bytes go. write returns 0, or an errno value; it is called from one thread at a time, and cannot
   write, print or clear the trace itself: that fails. The sink of NPUPROF_STREAM is called by recording
   threads; where signal handlers record, a handler that fills a chunk is such a one, so the sink must be
   async-signal safe there, as the library's own for files is. Others that find no room, and who flushes,
   dumps or clears, wait for it as long as it takes: it must not take a lock under which another thread
   records or reads, and no handler may leave it by a jump. */
typedef struct npuprof_sink {
    int (*write)(void *user, const void *bytes, size_t count);
    void *user;
} npuprof_sink;

/* A device as the host macros see it; NULL means the host. wait is called before both stamps of a span, only
   if wait_around is set and the span is recorded; what it returns is ignored. */
typedef struct npuprof_device {
    const char *name;
    int (*wait)(void *user);
    void *user;
    bool wait_around;
} npuprof_device;

/* Settings for npuprof_init(). Zero in a field means its default; the environment beats it. Strings are
   copied. */
typedef struct npuprof_desc {
    void *arena;                   /* caller's memory, aligned to 8, instead of the static arena */
    size_t arena_bytes;            /* its size, or the mapped file's; 0 there: NPUPROF_ARENA_BYTES, which the
                                      environment may have, too */
    const char *arena_path;        /* or a file to map as the arena: it survives the process. % sequences as
                                      in NPUPROF_OUTPUT_PATH */
    int when_full;                 /* NPUPROF_KEEP_OLDEST, NPUPROF_KEEP_NEWEST or NPUPROF_STREAM */
    npuprof_sink sink;             /* for NPUPROF_STREAM; none: output_path, which must end in .npuprof, is
                                      the stream */
    const char *output_path;       /* written at normal exit; turns nothing on by itself */
    const char *categories;        /* as npuprof_set_categories() */
    bool populate;                 /* npuprof_init() touches all of the arena, so that no record waits for the
                                      system to find it a page; huge pages where there are. Takes 0.1 to 0.5
                                      ms a MiB, and that much memory. Freestanding: no effect */
} npuprof_desc;

/* Counts over the whole arena. recorded + lost = spans and events executed while the gate was open. */
typedef struct npuprof_stats {
    uint64_t recorded;             /* spans and events in the arena */
    uint64_t lost;                 /* spans and events lost, all causes together */
    uint64_t bytes_used;           /* arena bytes taken by records and names; 16 for a span without
                                      arguments */
    uint64_t bytes_total;          /* arena bytes; of an image that is read back its own */
    uint64_t threads;              /* slots ever in use at once */
    uint64_t lost_by_cause[NPUPROF_LOST_COUNT];
} npuprof_stats;

/* The peaks of a memory pool, over all threads in the order of time; a record's index counts those of the
   pool from 0. */
typedef struct npuprof_memory_peaks {
    uint64_t records;              /* 0: all else is 0, too */
    uint64_t used_bytes, used_at;  /* the most that was used, the index of the first record that says so */
    uint64_t held_bytes;           /* allocated at that record */
    uint64_t allocated_bytes, allocated_at;   /* the same of what was allocated */
    uint64_t drops;                /* how often the allocated figure became smaller */
} npuprof_memory_peaks;

#ifndef NPUPROF_FREESTANDING
/* What npuprof_bench() measures: an operator that does its work, or puts it into the queue `stream` (as you
   number them). Not 0: it failed, and the measurement ends. */
typedef struct npuprof_bench_op {
    int (*run)(void *user, intptr_t stream);
    void *user;
    intptr_t stream;
    uint64_t workspace_bytes;
} npuprof_bench_op;

/* A clock to measure with: read gives ticks, ns the time between two of them. */
typedef struct npuprof_bench_clock {
    npuprof_result (*read)(void *user, uint64_t *ticks);
    npuprof_result (*ns)(void *user, uint64_t from, uint64_t to, double *ns);
    void *user;
} npuprof_bench_clock;

enum { NPUPROF_BENCH_REPEATS = 32 };  /* most repeats */
typedef struct npuprof_bench_desc {
    const char *key;               /* keeps the result in the cache under that name (up to 63 bytes) and the
                                      settings; NULL = not kept */
    const npuprof_bench_op *ops;   /* one, or a group: the latency of all of them together */
    size_t op_count;               /* 0 = 1 */
    int warmup;                    /* runs before; 0 = 10, -1 = none */
    int number;                    /* runs in a repeat, whose mean is its latency; 0 = 10 */
    int repeat;                    /* 0 = 1 */
    const npuprof_device *device;  /* its wait, if it has one, is called before every stamp; NULL: every run
                                      is over when it returns */
    npuprof_bench_clock clock;     /* zero = the host's; npuprof_npu_clock() is a device's */
} npuprof_bench_desc;

typedef struct npuprof_bench_result {
    double latency_us[NPUPROF_BENCH_REPEATS];   /* of each repeat: the mean of one run */
    int repeat;
    double mean_us, median_us, min_us, max_us;  /* over the repeats */
    double spread;                 /* (max - min) / median. One repeat has none: 0 */
    bool unstable;                 /* the spread is above 0.1: other work, a changing clock rate, or runs too
                                      short to be timed */
    bool cached;                   /* nothing was run */
    uint64_t workspace_bytes;      /* of all operators */
} npuprof_bench_result;
#endif /* !NPUPROF_FREESTANDING */

/* One typed argument. Made by PROF_INT and its siblings. */
typedef struct npuprof_arg {
    const char *key;
    uint32_t type;                 /* NPUPROF_ARG_* */
    union { int64_t i; uint64_t u; double d; const char *s; } value;
} npuprof_arg;
enum { NPUPROF_ARG_INT = 1, NPUPROF_ARG_UINT, NPUPROF_ARG_REAL, NPUPROF_ARG_BOOL, NPUPROF_ARG_STR };
#define NPUPROF_ARG_SHIFT_ 20      /* where a record has it */

/* A list of arguments; lives as long as the statement that made it. */
typedef struct npuprof_args { const npuprof_arg *items; size_t count; } npuprof_args;

/* Kinds of record, once: enumerator, 1 = a span that lies in its thread's nesting. Stored in the image:
   append only. */
#define NPUPROF_KINDS(X)                                                              \
    X(NPUPROF_KIND_NONE, 0) X(NPUPROF_KIND_SPAN, 1) X(NPUPROF_KIND_RECORD, 1)          \
    X(NPUPROF_KIND_WARM_UP, 1) X(NPUPROF_KIND_INFERENCE, 1) X(NPUPROF_KIND_OPERATOR, 1) \
    X(NPUPROF_KIND_INSTANT, 0) X(NPUPROF_KIND_COUNTER_INT, 0) X(NPUPROF_KIND_COUNTER_UINT, 0) \
    X(NPUPROF_KIND_COUNTER_REAL, 0)                                                   \
    X(NPUPROF_KIND_MEMORY, 0) X(NPUPROF_KIND_FLOW_OUT, 0) X(NPUPROF_KIND_FLOW_IN, 0)   \
    X(NPUPROF_KIND_ASYNC_BEGIN, 0) X(NPUPROF_KIND_ASYNC_END, 0) X(NPUPROF_KIND_FINISHED, 0) \
    X(NPUPROF_KIND_DEVICE, 0)
#define NPUPROF_ENUM_(name, nests) name,
enum { NPUPROF_KINDS(NPUPROF_ENUM_) NPUPROF_KIND_COUNT };
#undef NPUPROF_ENUM_

#ifdef NPUPROF_FREESTANDING
/* A call site: one constant object a macro. A record holds its address.
   Why aligned: the two low bits of an address then say what kind of record it is. */
typedef struct npuprof_site_ {
    const char *name, *category;
    uint8_t kind;
} NPUPROF_ATTRIBUTE_((aligned(4))) npuprof_site_;
#else
/* A call site: one static object a macro, resolved to a table entry at its first record. */
#if UINTPTR_MAX > UINT32_MAX
typedef uint64_t npuprof_site_id_;   /* Why 64 bits: no widening on the hot path */
#else
typedef uint32_t npuprof_site_id_;
#endif
typedef struct npuprof_site_ {
    npuprof_site_id_ id;           /* valid while generation is the arena's */
    uint32_t generation;
    uint32_t kind;
    const char *name, *category;
} npuprof_site_;

/* What a call site remembers of its argument keys, and of the name when that comes at run time. */
enum { NPUPROF_KEYS_ = 4 };
typedef struct npuprof_keys_ {
    uint32_t generation;           /* the keys are valid while it is the arena's */
    uint32_t fast;                 /* and while this is the fast one, the call site is, too */
    uint64_t word[NPUPROF_KEYS_];  /* what an argument's record begins with, but for the type */
    const char *key[NPUPROF_KEYS_];
    uint64_t text;                 /* generation << 32 | table entry of the name and category that came
                                      last */
} npuprof_keys_;
#endif /* !NPUPROF_FREESTANDING */

typedef uint32_t npuprof_token_;   /* names an open span of this thread; 0 = not recorded. Checked before
                                      use */

NPUPROF_END_C_

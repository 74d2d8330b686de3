#pragma once   /* SPDX-License-Identifier: MIT */
#include "compiler.h"
#include "compiler_macros.h"

/* The types and enumerators of the public interface, and what a call site stores.

   Results, policies, causes of loss, then the structs that functions take and fill, then arguments and kinds
   of record. A list that is written as X(...) makes an enum here and tables of texts elsewhere. Losses and
   kinds are stored in images: append to them, never change or reorder. Names with a trailing underscore are
   private. */

NPUPROF_BEGIN_C_

/* Every result code with its sentence. npuprof_result_string() gives "NAME: sentence". For
   NPUPROF_ERR_ARGUMENT it names the argument and function that were refused last on this thread instead; with
   NPUPROF_FREESTANDING it gives the sentence here. */
#define NPUPROF_RESULTS(X)                                                                               \
    X(NPUPROF_OK, "ok")                                                                                  \
    X(NPUPROF_ERR_ARGUMENT, "an argument is missing or out of its range")                                \
    X(NPUPROF_ERR_VERSION, \
      "this file was compiled with another version of npuprof.h than the implementation; rebuild both") \
    X(NPUPROF_ERR_ARENA_SIZE, "the arena is too small or not aligned to 8 bytes; give at least 2048 bytes") \
    X(NPUPROF_ERR_STARTED, "npuprof has begun; call npuprof_init before all other functions of npuprof")  \
    X(NPUPROF_ERR_NOT_FOUND, \
      "no such file or device, a directory, or a pipe that nobody reads; check the path") \
    X(NPUPROF_ERR_ACCESS, "permission denied; check owner and mode of the path")                         \
    X(NPUPROF_ERR_NO_SPACE, \
      "no space left on the device; the file was not written, the data is still in the arena") \
    X(NPUPROF_ERR_IO, "a read or write failed; the file was not written, the data is still in the arena") \
    X(NPUPROF_ERR_UNSUPPORTED, \
      "not supported in this build or on this system; files are .json, .csv or .npuprof") \
    X(NPUPROF_ERR_TABLE_FULL, \
      "the table of names, devices and anchors is full (255 devices at most); give a larger arena") \
    X(NPUPROF_ERR_CATEGORIES, \
      "a category list that cannot be used: give \"a,b\" or \"-a,-b\", not both, up to 255 bytes") \
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
    X(NPUPROF_ERR_NPU_AMBIGUOUS, "too long since the last read: wraps or a reset may have been missed")  \
    X(NPUPROF_ERR_NPU_NO_ANCHOR, "no clock anchor yet; call npuprof_npu_sync first")                     \
    X(NPUPROF_ERR_NPU_NO_RING, "the device was opened without a completion ring")                        \
    X(NPUPROF_ERR_NPU_RING, "the ring's index makes no sense (a reset?), or no entry was seen cleared") \
    X(NPUPROF_ERR_NPU_RATE, \
      "counter.hz is above 10^15, and no counter is that fast; give ticks a second, or 0 if unknown") \
    X(NPUPROF_ERR_NPU_NOT_OPEN, "the device is not open; call npuprof_npu_open first")                   \
    X(NPUPROF_ERR_NPU_NOT_ENABLED, "the device's counter stands: an enable bit that it requires is not set") \
    X(NPUPROF_ERR_NPU_OFF, "the device is powered off: it was not touched")                              \
    X(NPUPROF_ERR_BUSY, \
      "called from a sink, or above a writer, report or npuprof_poll() that it interrupted; let that go " \
      "on first")                                                                                         \
    X(NPUPROF_ERR_NPU_CALLS, \
      "as many calls of npuprof_npu_begin are open as there is room for; end them with npuprof_npu_end") \
    X(NPUPROF_ERR_NPU_MEMORY, \
      "the device's tables do not fit into desc.memory, or there is no memory for them")                  \
    X(NPUPROF_ERR_MEMORY, \
      "the system gives no memory to sort the events in; an image needs none: write t.npuprof, convert it")

#define NPUPROF_ENUM_(name, text) name,
typedef enum npuprof_result { NPUPROF_RESULTS(NPUPROF_ENUM_) NPUPROF_RESULT_COUNT } npuprof_result;
#undef NPUPROF_ENUM_

/* What happens when the arena is full.
   NPUPROF_KEEP_OLDEST (default): later records are lost and counted. NPUPROF_KEEP_NEWEST: the oldest chunk of
   all threads is recycled, and its records are counted as lost; while a writer or report reads none is, and a
   thread that needs one loses records; beside npuprof_read() it waits. NPUPROF_STREAM: the thread that fills
   a chunk hands it to the sink; one that finds no free chunk waits for the sink, but not a signal handler
   that interrupted a record.
   With NPUPROF_FREESTANDING the policy is NPUPROF_WHEN_FULL, and desc.when_full must say the same. There
   NPUPROF_KEEP_NEWEST replaces the oldest records one by one, in an arena of up to 1 MiB; open spans and
   names stay. While npuprof_write_json(), npuprof_write_image(), npuprof_get_stats() or npuprof_clear() is
   at work, what would be recorded is lost and counted. NPUPROF_STREAM: npuprof_poll() hands parts to the
   sink, and nobody waits; a span that was sent while it was open, and whose end found no room, is shown as
   open, and the end is counted as a note. The writers and npuprof_clear() return NPUPROF_ERR_UNSUPPORTED. */

/* Causes of loss: enumerator, name in the outputs, 1 = a whole span or event was lost, 0 = only a part of
   one. */
#define NPUPROF_LOSSES(X)                                                                        \
    X(NPUPROF_LOST_FULL, "arena_full", 1)        /* no chunk left */                             \
    X(NPUPROF_LOST_NAMES, "names_full", 1)       /* table of names and call sites full */        \
    X(NPUPROF_LOST_DEPTH, "too_deep", 1)         /* too many open spans in a thread */           \
    X(NPUPROF_LOST_CONTEXT, "no_context", 1)     /* no slot for a thread or signal handler */    \
    X(NPUPROF_LOST_OVERWRITTEN, "overwritten", 1) /* recycled under NPUPROF_KEEP_NEWEST */       \
    X(NPUPROF_LOST_SINK, "sink", 1)              /* the sink of NPUPROF_STREAM failed */         \
    X(NPUPROF_LOST_RING, "device_ring", 1)       /* overwritten before npuprof_npu_drain() */    \
    X(NPUPROF_LOST_ARGUMENTS, "arguments", 0)    /* of a span that was recorded, also of one that
                                                    NPUPROF_KEEP_NEWEST overwrote since */ \
    X(NPUPROF_LOST_READING, "reading", 1)        /* NPUPROF_KEEP_NEWEST: a writer or report was running */ \
    X(NPUPROF_LOST_NOTES, "notes", 0)            /* metadata, thread names, pause marks */       \
    X(NPUPROF_LOST_BUSY, "device_busy", 1)       /* device span of a block that could not read the device,
                                                    which was in use: npuprof_npu_read() */ \
    X(NPUPROF_LOST_CALLS, "device_calls", 1)     /* npuprof_npu_begin(): too many, or not ended */ \
    X(NPUPROF_LOST_ENDS, "ends", 0)              /* PROF_END without a PROF_BEGIN on its thread */

#define NPUPROF_ENUM_(name, text, whole) name,
enum { NPUPROF_LOSSES(NPUPROF_ENUM_) NPUPROF_LOST_COUNT };
#undef NPUPROF_ENUM_

/* Where bytes go. write() returns 0 or an errno value. One thread at a time calls it. It must not write,
   print or clear the trace: those calls return NPUPROF_ERR_BUSY.
   As the sink of NPUPROF_STREAM it has three more rules:
   - Recording threads call it. If signal handlers record, a handler that fills a chunk calls it, too, so it
     must then be async-signal safe. The library's own sink for files is.
   - Threads that need a chunk, flush, dump or clear wait until it returns. So it must not take a lock under
     which another thread records or reads.
   - No signal handler may leave it with longjmp(). */
typedef struct npuprof_sink {
    int (*write)(void *user, const void *bytes, size_t count);
    void *user;
} npuprof_sink;

/* A device as the host macros see it. A NULL pointer to one means the host. */
typedef struct npuprof_device {
    const char *name;
    int (*wait)(void *user);       /* waits until the device is idle; its result is ignored */
    void *user;                    /* passed to wait */
    bool wait_around;              /* call wait before both stamps of a span, if the span is recorded */
} npuprof_device;

/* When to record and when to write a file, without a call for it: capture control. Each text is that of the
   environment variable in parentheses; examples/REFERENCE.md describes them. NULL: none. Strings are copied.
   The library has no thread of its own: it looks at conditions where a PROF_RECORD or PROF_INFERENCE begins
   or ends, where what a trigger names ends, and by npuprof_poll(). So with a condition, no signal handler may
   use these marks. Files go to output_path, each with a number of its own. */
typedef struct npuprof_capture {
    const char *schedule;          /* "wait=10,warmup=5,active=20,repeat=3" (NPUPROF_SCHEDULE) */
    const char *delay, *duration;  /* "1.5s" (NPUPROF_DELAY, NPUPROF_DURATION) */
    const char *trigger;           /* "span:decode>5ms,before=2s,after=3s", or inference>5ms,
                                      record>5ms, instant:NAME, category:NAME (NPUPROF_TRIGGER) */
    const char *signal;            /* "USR2:dump" (NPUPROF_SIGNAL) */
    const char *control_path;      /* a file with start, stop or dump in it (NPUPROF_CONTROL) */
    /* Called when recording begins or ends, such as to arm the device's own profiling. By the thread that
       starts or stops it, after the change; a change by a signal handler is told where the next condition is
       looked at. One call at a time; what changes during a call is told behind it. It may use every macro
       and function but npuprof_init(), and must not begin or end recording. It comes before the file of what
       has ended is written. */
    void (*gate)(void *user, bool open);
    void *user;                    /* passed to gate */
} npuprof_capture;

/* Settings for npuprof_init(). Zero in a field means its default. The environment overrides a setting.
   Strings are copied. */
typedef struct npuprof_desc {
    void *arena;                   /* your memory instead of the static arena; aligned to 8 bytes */
    size_t arena_bytes;            /* its size, or that of the mapped file; for the file 0 means
                                      NPUPROF_ARENA_BYTES, the environment's if it has one */
    const char *arena_path;        /* or a file to map as the arena: it survives the process. Takes the %
                                      sequences of NPUPROF_OUTPUT_PATH */
    int when_full;                 /* NPUPROF_KEEP_OLDEST, NPUPROF_KEEP_NEWEST or NPUPROF_STREAM */
    npuprof_sink sink;             /* for NPUPROF_STREAM. Without one, the stream goes to output_path, which
                                      must then end in .npuprof */
    const char *output_path;       /* a file to write at normal exit; does not start recording */
    const char *categories;        /* as npuprof_set_categories() */
    bool populate;                 /* npuprof_init() touches the whole arena, so that no record causes a page
                                      fault; it uses huge pages if the system has them. Costs 0.1 to 0.5 ms a
                                      MiB, and all of that memory. No effect with NPUPROF_FREESTANDING */
    const npuprof_capture *capture;  /* NULL: npuprof_start() and npuprof_stop() alone decide. With
                                      NPUPROF_FREESTANDING: NPUPROF_ERR_UNSUPPORTED */
} npuprof_desc;

/* Counts over the whole arena. recorded + lost = spans and events executed while recording was on. */
typedef struct npuprof_stats {
    uint64_t recorded;             /* spans and events in the arena, and those already streamed */
    uint64_t lost;                 /* spans and events lost, all causes together */
    uint64_t bytes_used;           /* arena bytes that records and names take; a span without arguments
                                      takes 16 */
    uint64_t bytes_total;          /* arena bytes; if an image is read back, those of its arena */
    uint64_t threads;              /* slots: the most threads and contexts that recorded at once */
    uint64_t lost_by_cause[NPUPROF_LOST_COUNT];   /* index: NPUPROF_LOST_* */
    uint64_t captures;             /* files that capture control has written */
    uint64_t captures_failed;      /* files that it could not write; the first failure is in the metadata */
    uint64_t slow;                 /* spans that were slower than the trigger, with and without a file */
} npuprof_stats;

/* The peaks of a memory pool, over all threads in the order of time. An index counts the records of the pool
   from 0. */
typedef struct npuprof_memory_peaks {
    uint64_t records;              /* number of records; if it is 0, all else is 0, too */
    uint64_t used_bytes, used_at;  /* the most bytes used, and the index of the first record with that */
    uint64_t held_bytes;           /* bytes allocated at that record */
    uint64_t allocated_bytes, allocated_at;   /* the most bytes allocated, and the first record with that */
    uint64_t drops;                /* how often the allocated figure became smaller */
} npuprof_memory_peaks;

#ifndef NPUPROF_FREESTANDING
/* An operator for npuprof_bench(). */
typedef struct npuprof_bench_op {
    int (*run)(void *user, intptr_t stream);   /* does the work, or queues it; not 0: it failed, and the
                                                  measurement ends */
    void *user;                    /* passed to run */
    intptr_t stream;               /* passed to run: a queue, numbered as you like */
    uint64_t workspace_bytes;      /* the memory it needs; the result adds it up */
} npuprof_bench_op;

/* A clock to measure with. Both functions get user. */
typedef struct npuprof_bench_clock {
    npuprof_result (*read)(void *user, uint64_t *ticks);
    npuprof_result (*ns)(void *user, uint64_t from, uint64_t to, double *ns);   /* time between two reads */
    void *user;
} npuprof_bench_clock;

enum { NPUPROF_BENCH_REPEATS = 32 };  /* max of npuprof_bench_desc.repeat */

/* Settings for npuprof_bench(). Zero in a field means its default. */
typedef struct npuprof_bench_desc {
    const char *key;               /* up to 63 bytes: caches the result under this key and all settings;
                                      NULL: not cached */
    const npuprof_bench_op *ops;   /* one operator, or a group that is measured together */
    size_t op_count;               /* 0 = 1 */
    int warmup;                    /* runs before the measurement; 0 = 10, -1 = none */
    int number;                    /* runs in a repeat; its latency is their mean; 0 = 10 */
    int repeat;                    /* 0 = 1 */
    const npuprof_device *device;  /* its wait is called before every stamp; NULL, or no wait: a run is over
                                      when it returns */
    npuprof_bench_clock clock;     /* zero = the host's clock; npuprof_npu_clock() gives a device's */
} npuprof_bench_desc;

typedef struct npuprof_bench_result {
    double latency_us[NPUPROF_BENCH_REPEATS];   /* of each repeat: the mean of one run */
    int repeat;                    /* valid entries of latency_us */
    double mean_us, median_us, min_us, max_us;  /* over the repeats */
    double spread;                 /* (max - min) / median; 0 with one repeat */
    bool unstable;                 /* spread is above 0.1: there was other work, the clock rate changed, or
                                      the runs are too short to be timed */
    bool cached;                   /* the result is from the cache; nothing was run */
    uint64_t workspace_bytes;      /* sum over the operators */
} npuprof_bench_result;
#endif /* !NPUPROF_FREESTANDING */

/* One argument of a span. PROF_ARG, PROF_INT and their siblings make it. */
typedef struct npuprof_arg {
    const char *key;
    uint32_t type;                 /* NPUPROF_ARG_*; says which member of value is valid */
    union { int64_t i; uint64_t u; double d; const char *s; } value;
} npuprof_arg;
enum { NPUPROF_ARG_INT = 1, NPUPROF_ARG_UINT, NPUPROF_ARG_REAL, NPUPROF_ARG_BOOL, NPUPROF_ARG_STR };
#define NPUPROF_ARG_SHIFT_ 20      /* bit of a record's word where the type begins */

/* A list of arguments. PROF_ARGS makes it; it is valid until the end of that statement. */
typedef struct npuprof_args { const npuprof_arg *items; size_t count; } npuprof_args;

/* Kinds of record: enumerator, 1 = a span that nests with the other spans of its thread. */
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
/* A call site: one constant object for each use of a macro. A record holds its address.
   Why aligned: the two low bits of the address are free, and tell the kind of record. */
typedef struct npuprof_site_ {
    const char *name, *category;
    uint8_t kind;
    uint8_t line[3];               /* the lowest byte first; 0: there is no file */
#ifdef NPUPROF_NAMES_SECTION
    const char *file;
#endif
} NPUPROF_ATTRIBUTE_((aligned(4))) npuprof_site_;
#else
/* A call site: one static object for each use of a macro. Its first record enters it into the arena's
   table. */
#if UINTPTR_MAX > UINT32_MAX
typedef uint64_t npuprof_site_id_;   /* Why 64 bits: the hot path saves a conversion */
#else
typedef uint32_t npuprof_site_id_;
#endif
typedef struct npuprof_site_ {
    npuprof_site_id_ id;           /* in the arena's table; valid while generation is the
                                      arena's */
    uint32_t generation;
    uint32_t kind;
    const char *name, *category, *file;   /* file: NULL with NPUPROF_NO_SOURCE */
    uint32_t line;
} npuprof_site_;

/* What a call site caches: table entries of its argument keys, and of the last name given at run time. */
enum { NPUPROF_KEYS_ = 4 };
typedef struct npuprof_keys_ {
    uint32_t generation;           /* the keys are valid while it is the arena's */
    uint32_t fast;                 /* the call site is valid, too, while it is the arena's fast generation */
    uint64_t word[NPUPROF_KEYS_];  /* first word of an argument's record, without the type */
    const char *key[NPUPROF_KEYS_];
    uint64_t text;                 /* of the last name and category: place of their call site in the table
                                      << 32 | generation. The place is an offset in bytes. With bit 31 set it
                                      is an id, of an entry behind the table's first part */
    const char *file;              /* of the macro, as in npuprof_site_ */
    uint32_t line, kind;
} npuprof_keys_;
#endif /* !NPUPROF_FREESTANDING */

typedef uint32_t npuprof_token_;   /* identifies an open span of this thread; 0 = not recorded. It is
                                      checked before each use: it may be garbage */
/* A token as a parameter. Why as wide as an address on hosts: what is called then need not widen it. */
#ifdef NPUPROF_FREESTANDING
typedef npuprof_token_ npuprof_token_given_;
#else
typedef uintptr_t npuprof_token_given_;
#endif

NPUPROF_END_C_
